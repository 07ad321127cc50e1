/* The states of an actor and what moves it between them (R14): one table, and the history that is
 * packed into 32 bits; and which ends a restart follows. */
#ifndef JZI_LIFE_TABLE_H
#define JZI_LIFE_TABLE_H

#include <jzx/lifecycle.h>
#include <jzx/supervisor.h>

#include <stdbool.h>

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

/* A child that is spawned to be permanent, besides jzx_restart_mode: only its parent's code could
 * keep it down, so a stop does. */
#define JZI_MODE_SERVICE 16u
/* Whether an end for this reason is one that was wanted. */
static inline bool jzi_reason_is_normal(uint32_t reason_kind)
{
    return reason_kind == JZX_REASON_NORMAL || reason_kind == JZX_REASON_SHUTDOWN;
}
/* Whether this end of a child is to be followed by a restart (R19). */
bool jzi_policy_wants(uint32_t mode, uint32_t reason_kind);
/* Whether the longest delay before a restart is said to be below the shortest; 0: not said. */
bool jzi_backoff_is_reversed(uint32_t min_ms, uint32_t max_ms);

#endif
