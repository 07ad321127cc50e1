/* The actor: 128 bytes in a type-stable slot. The first line is the door and what rarely changes;
 * the second is the desk, which only the worker that runs the actor touches (R32). */
#ifndef JZI_ACTOR_H
#define JZI_ACTOR_H

#include <jzx/actor.h>

#include "door.h"
#include "kind.h"
#include "lane.h"

#include <assert.h>

struct jzi_room;
struct jzi_timer;
struct jzi_source;

/* What most actors never have; made on first use. */
typedef struct jzi_ext {
    struct jzi_room *waiters; /* who waits for room here, oldest first */
    struct jzi_room *waiters_last;
    struct jzi_room *requests;  /* where this actor waits for room */
    uint32_t told;              /* waiters that were told and whose notice is not yet out */
    struct jzi_timer *timers;   /* timers this actor owns */
    struct jzi_source *sources; /* I/O references this actor owns */
    char name[JZX_NAME_MAX + 1];
} jzi_ext;

/* Bits of jzi_actor.flags. */
#define JZI_ACTOR_QUEUED 0x01u  /* in the run ring for more than its ordinary lane */
#define JZI_ACTOR_MIXED 0x02u   /* something is, or lately was, in a lane other than the ordinary */
#define JZI_ACTOR_STOP 0x04u    /* end before the next message */
#define JZI_ACTOR_DRAIN 0x08u   /* end once nothing is queued */
#define JZI_ACTOR_ENDING 0x10u  /* its end has begun: no new timers, watches, children */
#define JZI_ACTOR_WAITERS 0x20u /* somebody waits for room */
#define JZI_ACTOR_OVERFULL 0x40u /* the observer heard that it is full, and it still is */
#define JZI_ACTOR_SLOW 0x80u     /* takes long per message: read the clock after each */
#define JZI_ACTOR_FEW 0x100u     /* its turns are shorter than JZI_FIRST_LEG */
#define JZI_ACTOR_FOREIGN 0x200u /* this turn finished messages of other threads */
#define JZI_ACTOR_COMMANDS (JZI_ACTOR_STOP | JZI_ACTOR_DRAIN)

/* Invariants, for an actor that is alive:
 *   I1  It is in the run ring, once, exactly if it is not running and has an ordinary message or
 *       QUEUED. Any other non-empty lane and any command mean QUEUED.
 *   I2  own_used is the length of the ordinary lane plus that of the urgent lane, less what came
 *       from other threads; those are counted by the gate until they are done.
 *   I3  accepted = handled + dead + revoked + what is in the lanes + what is in hand. */
typedef struct jzi_actor {
    _Alignas(64) jzi_door door;
    jzx_actor_id id; /* of the tenant; its low half never changes */
    jzx_actor_id parent;
    jzi_kind *kind;
    jzi_node *urgent; /* a lane, here because most actors never use it */
    uint32_t dead;    /* these two modulo 2^32 */
    uint32_t revoked;
    union {
        uint32_t drain_stamp; /* with DRAIN: what has a lower stamp is still to be handled */
        uint32_t next_free;   /* slot number, while free */
    };
    uint8_t quota_events; /* left of this round of the mixed lanes (R8) */
    uint8_t quota_urgent;
    uint8_t quota_ordinary;
    uint8_t reserved;

    _Alignas(64) jzi_node *user; /* lanes, by their tails */
    jzi_node *events;
    jzi_node *notices;
    jzx_behavior_fn behavior;
    void *state;
    jzi_ext *ext;
    /* accepted:32 | own_used:32, in one word because every send changes both. Written by the worker
     * only; other threads read own_used to judge room. accepted, modulo 2^32, is also the next
     * arrival stamp. */
    _Atomic uint64_t counts;
    uint32_t handled; /* modulo 2^32 */
    uint32_t flags;
} jzi_actor;
_Static_assert(sizeof(jzi_actor) == 128, "an actor is two cache lines");
_Static_assert(offsetof(jzi_actor, user) == 64, "the desk has a line of its own");

static inline uint64_t jzi_actor_gate(const jzi_actor *actor)
{
    return atomic_load_explicit(&actor->door.gate, memory_order_relaxed);
}
static inline uint32_t jzi_actor_cap(const jzi_actor *actor)
{
    return atomic_load_explicit(&actor->door.cap, memory_order_relaxed);
}
static inline uint64_t jzi_actor_counts(const jzi_actor *actor)
{
    return atomic_load_explicit(&actor->counts, memory_order_relaxed);
}
static inline void jzi_actor_set_counts(jzi_actor *actor, uint64_t counts)
{
    atomic_store_explicit(&actor->counts, counts, memory_order_relaxed);
}
#define JZI_COUNTS_ACCEPTED ((uint64_t)1 << 32)
#define JZI_COUNTS_USED ((uint64_t)1)

static inline uint32_t jzi_actor_own_used(const jzi_actor *actor)
{
    return (uint32_t)jzi_actor_counts(actor);
}
static inline uint32_t jzi_actor_accepted(const jzi_actor *actor)
{
    return (uint32_t)(jzi_actor_counts(actor) >> 32);
}
/* One of the loop's own messages left its lane. */
static inline void jzi_actor_unuse(jzi_actor *actor)
{
    jzi_actor_set_counts(actor, jzi_actor_counts(actor) - JZI_COUNTS_USED);
}
/* Ordinary and urgent messages that wait or are being handled, from everywhere. */
static inline uint32_t jzi_actor_used(const jzi_actor *actor)
{
    return jzi_actor_own_used(actor) + jzi_gate_used(jzi_actor_gate(actor));
}
static inline uint32_t jzi_actor_slot(const jzi_actor *actor)
{
    return jzx_id_slot(actor->id);
}
static inline const char *jzi_actor_name(const jzi_actor *actor)
{
    return actor->ext == NULL ? "" : actor->ext->name;
}

#endif
