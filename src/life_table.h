/* The states of an actor and what moves it between them (R14): one table, and the history that is
 * packed into 32 bits. */
#ifndef JZI_LIFE_TABLE_H
#define JZI_LIFE_TABLE_H

#include <jzx/lifecycle.h>

/* A history is the last states, three bits each and the newest lowest, under a 1 that marks where
 * they begin. */
#define JZI_HISTORY_NEW ((1u << 3) | JZX_STATE_CREATED)

static inline uint32_t jzi_history_add(uint32_t history, uint32_t state)
{
    uint32_t full = history >> 30; /* ten states: the oldest makes room, the mark stays */
    return full != 0 ? ((history << 3 | state) & 0x3FFFFFFFu) | 1u << 30 : history << 3 | state;
}
/* How many states it holds; writes at most cap of them, the oldest first. */
size_t jzi_history_list(uint32_t history, jzx_state *out, size_t cap);

#endif
