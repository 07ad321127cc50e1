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
    struct jzi_timer *timers;   /* timers this actor owns */
    struct jzi_source *sources; /* I/O references this actor owns */
    char name[JZX_NAME_MAX + 1];
} jzi_ext;

/* Bits of jzi_actor.flags. */
#define JZI_ACTOR_QUEUED 0x01u  /* in the run ring, or running */
#define JZI_ACTOR_MIXED 0x02u   /* something is, or lately was, in a lane other than the ordinary */
#define JZI_ACTOR_STOP 0x04u    /* end before the next message */
#define JZI_ACTOR_DRAIN 0x08u   /* end once nothing is queued */
#define JZI_ACTOR_ENDING 0x10u  /* its end has begun: no new timers, watches, children */
#define JZI_ACTOR_WAITERS 0x20u /* somebody waits for room */
#define JZI_ACTOR_OVERFULL 0x40u /* the observer heard that it is full, and it still is */
#define JZI_ACTOR_SLOW 0x80u     /* takes long per message: read the clock after each */
#define JZI_ACTOR_COMMANDS (JZI_ACTOR_STOP | JZI_ACTOR_DRAIN)

/* Invariants, for an actor that is alive:
 *   I1  A non-empty lane or a command means QUEUED.
 *   I2  own_used is the length of the ordinary lane plus that of the urgent lane, less what came
 *       from other threads; those are counted by the gate until they are done.
 *   I3  accepted = handled + dead + revoked + redirected + what is in the lanes + what is in hand.
 */
typedef struct jzi_actor {
    _Alignas(64) jzi_door door;
    jzx_actor_id parent;
    jzi_kind *kind;
    uint32_t dead; /* these three modulo 2^32 */
    uint32_t revoked;
    uint32_t redirected;
    uint32_t next_free;   /* slot number, while free */
    jzi_node *urgent;     /* a lane, here because most actors never use it */
    uint8_t quota_events; /* left of this round of the mixed lanes (R8) */
    uint8_t quota_urgent;
    uint8_t quota_ordinary;
    uint8_t reserved;
    uint32_t drain_stamp; /* with DRAIN: what has a lower stamp is still to be handled */

    _Alignas(64) jzi_node *user; /* lanes, by their tails */
    jzi_node *events;
    jzi_node *notices;
    jzx_behavior_fn behavior;
    void *state;
    jzi_ext *ext;
    _Atomic uint32_t own_used; /* written by the worker only; other threads read it to judge room */
    uint32_t accepted;         /* modulo 2^32; also the next arrival stamp */
    uint32_t handled;          /* modulo 2^32 */
    uint32_t flags;
} jzi_actor;
_Static_assert(sizeof(jzi_actor) == 128, "an actor is two cache lines");
_Static_assert(offsetof(jzi_actor, user) == 64, "the desk has a line of its own");

static inline uint64_t jzi_actor_gate(const jzi_actor *actor)
{
    return atomic_load_explicit(&actor->door.gate, memory_order_relaxed);
}
static inline jzx_actor_id jzi_actor_id(const jzi_actor *actor)
{
    return (jzi_actor_gate(actor) & 0xFFFFFFFF00000000u) | actor->door.index;
}
static inline uint32_t jzi_actor_cap(const jzi_actor *actor)
{
    return atomic_load_explicit(&actor->door.limits, memory_order_relaxed) & JZI_LIMITS_CAP;
}
static inline uint32_t jzi_actor_own_used(const jzi_actor *actor)
{
    return atomic_load_explicit(&actor->own_used, memory_order_relaxed);
}
static inline void jzi_actor_set_own_used(jzi_actor *actor, uint32_t used)
{
    atomic_store_explicit(&actor->own_used, used, memory_order_relaxed);
}
/* Ordinary and urgent messages that wait or are being handled, from everywhere. */
static inline uint32_t jzi_actor_used(const jzi_actor *actor)
{
    return jzi_actor_own_used(actor) + jzi_gate_used(jzi_actor_gate(actor));
}
static inline const char *jzi_actor_name(const jzi_actor *actor)
{
    return actor->ext == NULL ? "" : actor->ext->name;
}

#endif
