/* Numbered slots that stay where they are until the table goes, so that a thread with a number can
 * look at the slot's word at any time, on any thread. What a slot is, its generation and its links
 * are the user's; here are the memory, the numbers, and two lists of free slots: one of the owner,
 * which needs no lock, and one for all threads.
 *
 * Chunk k has FIRST << k slots, and all of them together are what 24 bits can number: so a chunk is
 * found by the highest bit of the number, and growing moves nothing. A slot is touched when it is
 * taken for the first time, not when its chunk is made: that takes no longer for a large one. */
#ifndef JZI_SLOTS_H
#define JZI_SLOTS_H

#include <jzx/types.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#ifndef JZI_STRESS
#define JZI_STRESS 0
#endif
/* Few at first in the stress build, so that there are more all the time. */
enum { JZI_SLOTS_SHIFT = JZI_STRESS ? 1 : 6, JZI_SLOTS_CHUNKS = 24 - JZI_SLOTS_SHIFT };

typedef struct jzi_slots {
    _Atomic(unsigned char *) chunks[JZI_SLOTS_CHUNKS];
    _Atomic uint32_t made; /* slots that were taken at least once */
    bool shared;           /* set by a user that does without the lock while it is alone */
    void *free_list;       /* the owner's */
    pthread_mutex_t lock;  /* what follows, and making more; see `shared` */
    void *far_list;        /* free slots for all threads */
    unsigned char *next;   /* of the latest chunk, the first slot that was never taken; */
    unsigned char *end;    /* there is none at the chunk's end */
    uint32_t bytes;        /* of a slot, once there is one */
    uint32_t chunk_count;
} jzi_slots;

/* A zeroed table, and back to one. */
void jzi_slots_init(jzi_slots *slots);
void jzi_slots_deinit(jzi_slots *slots, const jzx_allocator *alloc);

/* A chunk more, of slots with so many bytes. False: no memory, or there are too many. */
bool jzi_slots_grow(jzi_slots *slots, const jzx_allocator *alloc, uint32_t bytes);

/* A slot that was never taken, and its number; NULL: as jzi_slots_grow(). The caller fills the slot
 * in and then publishes it. With the lock, or by the only user. */
static inline void *jzi_slots_make(jzi_slots *slots, const jzx_allocator *alloc, uint32_t bytes,
                                   uint32_t *out_slot)
{
    if (__builtin_expect(slots->next == slots->end, 0) && !jzi_slots_grow(slots, alloc, bytes)) {
        return NULL;
    }
    unsigned char *slot = slots->next;
    slots->next += bytes;
    *out_slot = atomic_load_explicit(&slots->made, memory_order_relaxed);
    return slot;
}
static inline void jzi_slots_publish(jzi_slots *slots, uint32_t slot)
{
    /* release: a thread that sees the new count sees the chunk and what is in the slot. */
    atomic_store_explicit(&slots->made, slot + 1, memory_order_release);
}

/* The slot of a number that is known to have been made. */
static inline void *jzi_slots_at(const jzi_slots *slots, uint32_t slot, uint32_t bytes)
{
    uint32_t number = slot + (1u << JZI_SLOTS_SHIFT);
    uint32_t top = 31u - (uint32_t)__builtin_clz(number);
    /* acquire: pairs with the release of jzi_slots_grow(). */
    unsigned char *chunk =
        atomic_load_explicit(&slots->chunks[top - JZI_SLOTS_SHIFT], memory_order_acquire);
    return chunk + (size_t)(number - (1u << top)) * bytes;
}
/* NULL: there is no such slot. Thread: any. */
static inline void *jzi_slots_find(const jzi_slots *slots, uint32_t slot, uint32_t bytes)
{
    /* acquire: pairs with the release of jzi_slots_publish(). */
    return slot < atomic_load_explicit(&slots->made, memory_order_acquire)
               ? jzi_slots_at(slots, slot, bytes)
               : NULL;
}

#endif
