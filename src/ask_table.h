/* Slots of asks. They stay where they are until the post office goes, so that whoever has a number
 * of one can look at its word at any time, on any thread; see ask.h. */
#ifndef JZI_ASK_TABLE_H
#define JZI_ASK_TABLE_H

#include <jzx/types.h>

#include <pthread.h>
#include <stdatomic.h>

struct jzi_ask;

#ifndef JZI_STRESS
#define JZI_STRESS 0
#endif
/* Chunk k has FIRST << k slots; all of them together are what 24 bits can number. Few at first in
 * the stress build, so that there are more all the time. */
enum { JZI_ASK_FIRST_SHIFT = JZI_STRESS ? 1 : 6, JZI_ASK_CHUNKS = 24 - JZI_ASK_FIRST_SHIFT };

typedef struct jzi_ask_table {
    _Atomic(unsigned char *) chunks[JZI_ASK_CHUNKS];
    uint32_t slot_bytes;       /* set before the first one is made */
    struct jzi_ask *free_list; /* the dispatcher's own */
    pthread_mutex_t lock;      /* what follows, and making more */
    uint32_t chunk_count;
    struct jzi_ask *far_list; /* free slots that other threads gave back, and theirs to take */
} jzi_ask_table;

void jzi_ask_table_init(jzi_ask_table *table);
void jzi_ask_table_deinit(jzi_ask_table *table, const jzx_allocator *alloc);

/* The slots of chunk k, zeroed, and in *out_first the number of the first one. NULL: no memory, or
 * there are too many. With the lock. */
unsigned char *jzi_ask_table_grow(jzi_ask_table *table, const jzx_allocator *alloc,
                                  uint32_t *out_first, uint32_t *out_count);

/* NULL: there is no such slot. Thread: any. */
static inline struct jzi_ask *jzi_ask_table_find(const jzi_ask_table *table, uint32_t slot)
{
    uint32_t number = (slot & 0xFFFFFFu) + (1u << JZI_ASK_FIRST_SHIFT);
    uint32_t top = 31u - (uint32_t)__builtin_clz(number);
    uint32_t chunk = top - JZI_ASK_FIRST_SHIFT;
    /* acquire: pairs with the release of jzi_ask_table_grow(). */
    unsigned char *slots = chunk >= JZI_ASK_CHUNKS
                               ? NULL
                               : atomic_load_explicit(&table->chunks[chunk], memory_order_acquire);
    return slots == NULL ? NULL
                         : (struct jzi_ask *)(void *)(slots + (size_t)(number - (1u << top)) *
                                                                  table->slot_bytes);
}

#endif
