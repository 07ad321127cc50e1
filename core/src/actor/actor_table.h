/* Slots and generations: from an id to its actor in a few instructions, never through freed memory
 * (R2). Chunks of slots are made as needed and stay until the table goes, because other threads may
 * look at a door at any time.
 *
 * Not a base/slots: the number of slots is a limit that the program set, so the chunks are of one
 * size and a send finds one by a shift and a load; large tables take memory by huge pages; and the
 * free list is made of numbers, which fit where an actor has room. */
#ifndef JZI_ACTOR_TABLE_H
#define JZI_ACTOR_TABLE_H

#include "actor/actor.h"

#include <pthread.h>

#if JZI_STRESS
#define JZI_CHUNK_SHIFT 2
#else
#define JZI_CHUNK_SHIFT 10
#endif
#define JZI_CHUNK_SLOTS (1u << JZI_CHUNK_SHIFT)
#define JZI_NO_SLOT UINT32_MAX

typedef struct jzi_slab {
    struct jzi_slab *next;
    size_t bytes;
} jzi_slab;

/* Invariants:
 *   I1  Slots below `made` are in a published chunk and have a valid gate.
 *   I2  A slot is on the free list exactly when its gate is free and its generations are not used
 *       up. */
typedef struct jzi_actor_table {
    _Atomic(jzi_actor *) *chunks; /* max_slots / JZI_CHUNK_SLOTS entries, NULL until made */
    _Atomic uint32_t made;        /* slots handed out at least once */
    uint32_t max_slots;
    uint32_t chunk_slots;      /* slots that have memory */
    uint32_t free_head;        /* LIFO: the warmest slot first */
    uint32_t base;             /* the dispatcher's part of every index */
    uint32_t first_generation; /* salted, so ids of two systems differ */
    uint32_t retired;          /* slots that ran through all generations */
    jzi_slab *slabs;
    /* In a system other threads make actors here as well: what they and the owner share is under a
     * lock. Slots come back to them from the owner, as many as they took. */
    bool shared;
    uint32_t nursery; /* free slots for them */
    _Atomic uint32_t debt;
    pthread_mutex_t lock;
} jzi_actor_table;

jzx_err jzi_actor_table_init(jzi_actor_table *table, const jzx_allocator *alloc, uint32_t max_slots,
                             uint32_t salt);
void jzi_actor_table_deinit(jzi_actor_table *table, const jzx_allocator *alloc);

/* A slot for a new actor: all but the gate, the index and next_free is for the caller to fill in,
 * then jzi_actor_table_open() makes the id resolve. Errors: MAX_ACTORS, NO_MEMORY. */
jzx_err jzi_actor_table_take(jzi_actor_table *table, const jzx_allocator *alloc,
                             jzi_actor **out_actor);
/* The same for any thread, once jzi_actor_table_share() was called. */
jzx_err jzi_actor_table_take_far(jzi_actor_table *table, const jzx_allocator *alloc,
                                 jzi_actor **out_actor);
/* Gives back one that was never used. Thread: any. */
void jzi_actor_table_give_far(jzi_actor_table *table, jzi_actor *actor);
void jzi_actor_table_share(jzi_actor_table *table, uint32_t base);
/* Gives a slot back whose gate is free. */
void jzi_actor_table_give(jzi_actor_table *table, jzi_actor *actor);

/* The next generation, with one pin for the actor's life. */
static inline void jzi_actor_table_open(jzi_actor *actor)
{
    uint32_t generation = jzi_gate_generation(jzi_actor_gate(actor)) + 1;
    actor->id = (uint64_t)generation << 32 | jzx_id_index(actor->id);
    atomic_store_explicit(&actor->door.gate, jzi_gate_make(generation) | JZI_GATE_PIN,
                          memory_order_release);
}

/* The actor in a slot that is known to have been made. */
static inline jzi_actor *jzi_actor_table_at(const jzi_actor_table *table, uint32_t slot)
{
    jzi_actor *chunk =
        atomic_load_explicit(&table->chunks[slot >> JZI_CHUNK_SHIFT], memory_order_relaxed);
    return chunk + (slot & (JZI_CHUNK_SLOTS - 1));
}

/* The slot's current tenant or last one; NULL when there never was one. */
static inline jzi_actor *jzi_actor_table_slot(const jzi_actor_table *table, uint32_t slot)
{
    /* acquire: pairs with the release in take(), for threads that only just heard of the slot. */
    if (slot >= atomic_load_explicit(&table->made, memory_order_acquire)) {
        return NULL;
    }
    return jzi_actor_table_at(table, slot);
}

#endif
