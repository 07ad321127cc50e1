/* The actor: 128 bytes in a type-stable slot. The first line is the door and what rarely changes;
 * the second is the desk, which only the worker that runs the actor touches (R32). */
#ifndef JZI_ACTOR_H
#define JZI_ACTOR_H

#include <jzx/behavior.h>

#include "actor/door.h"
#include "actor/lane.h"
#include "actor/type.h"
#include "base/publish.h"

#include <assert.h>

struct jzi_room;
struct jzi_timer;
struct jzi_source;

struct jzi_life;
struct jzi_watch;
struct jzi_feed;

/* Among the children of one parent, in the order of spawning: indexes. */
typedef struct jzi_siblings {
    uint32_t next;
    uint32_t prev;
} jzi_siblings;

/* What the patterns leave with an actor; made on first use. */
typedef struct jzi_pattern_state {
    jzi_node *stash; /* a lane: messages set aside, oldest first; they count in own_used */
    uint32_t stash_count;
    uint32_t stash_cap;          /* 0: the default */
    jzx_behavior_fn *behaviors;  /* JZX_BECOME_MAX that jzx_unbecome() goes back to, or NULL */
    uint32_t depth;              /* how many there are */
    jzx_behavior_fn first;       /* what it was spawned with, once it became something else */
    struct jzi_ask *asks;        /* those of this incarnation that are not over */
    struct jzi_ask *owed;        /* those it kept and has to answer */
    struct jzi_sub *subs;        /* subscriptions to buses */
    struct jzi_name_wait *waits; /* for names, and groups that it watches */
    struct jzi_name *names;      /* of its identity */
    struct jzi_member *groups;   /* likewise */
} jzi_pattern_state;

#define JZI_BECOME_BYTES (JZX_BECOME_MAX * sizeof(jzx_behavior_fn))

/* What most actors never have; made on first use. */
typedef struct jzi_cold {
    struct jzi_room *waiters; /* requests for room here, oldest first */
    struct jzi_room *waiters_last;
    struct jzi_room *requests;          /* where this actor waits for room */
    struct jzi_timer *timers;           /* timers this actor owns */
    struct jzi_source *sources;         /* I/O references this actor owns */
    struct jzi_watch *watchers;         /* watches and links of others to this actor */
    struct jzi_watch *watching;         /* watches and links of this actor to others */
    struct jzi_feed *feed;              /* its subscription to dead letters */
    struct jzi_job_list *jobs;          /* blocking work it asked for */
    struct jzi_life *life;              /* hooks, children, supervision */
    struct jzi_pattern_state *patterns; /* what patterns leave here */
    uint32_t told;                      /* waiters that were told and whose notice is not yet out */
    uint32_t revoked;                   /* events that were not handed over, modulo 2^32 */
    uint32_t redirected;                /* likewise messages that went elsewhere */
    uint8_t quota_events;               /* left of this round of the mixed lanes (R8) */
    uint8_t quota_urgent;
    uint8_t quota_ordinary;
    char name[JZX_NAME_MAX + 1];
} jzi_cold;

/* Bits of jzi_actor.flags. */
#define JZI_ACTOR_QUEUED 0x01u   /* in the run ring for more than its ordinary lane */
#define JZI_ACTOR_MIXED 0x02u    /* something is, or lately was, in a lane but the ordinary one */
#define JZI_ACTOR_LIFE 0x04u     /* lifecycle has work to do here before the next message */
#define JZI_ACTOR_DRAIN 0x08u    /* stop once nothing is queued */
#define JZI_ACTOR_ENDING 0x10u   /* the actor's end, or a clean-up, has begun: nothing new for it */
#define JZI_ACTOR_WAITERS 0x20u  /* there are requests for room here */
#define JZI_ACTOR_OVERFULL 0x40u /* the observer heard that it is full, and it still is */
#define JZI_ACTOR_SLOW 0x80u     /* takes long per message: read the clock after each */
#define JZI_ACTOR_FEW 0x100u     /* its turns are shorter than JZI_FIRST_LEG */
#define JZI_ACTOR_FOREIGN 0x200u /* this turn finished messages of other threads */
#define JZI_ACTOR_FROZEN 0x400u  /* messages wait: only lifecycle works on it */
/* Commands; lifecycle takes them when the actor is not running. They merge and need no memory. */
#define JZI_ACTOR_STOP 0x800u
#define JZI_ACTOR_KILL 0x1000u
#define JZI_ACTOR_RESTART 0x2000u        /* clean up to be started again */
#define JZI_ACTOR_HALT 0x4000u           /* the same, for a sibling of the one that failed */
#define JZI_ACTOR_START 0x8000u          /* start it, once it is clean */
#define JZI_ACTOR_RESUME 0x10000u        /* go on after a failure */
#define JZI_ACTOR_FINISH 0x20000u        /* its parent wants it gone: with STOP or KILL */
#define JZI_ACTOR_LATE 0x40000u          /* its stop takes too long */
#define JZI_ACTOR_LINKED 0x80000u        /* a linked actor ended */
#define JZI_ACTOR_CHILD_EVENTS 0x100000u /* there are events of its children */
#define JZI_ACTOR_TRAP 0x200000u         /* ends of linked actors are signals */
#define JZI_ACTOR_DEFERRED 0x400000u     /* PRE_STOP asked for time */
#define JZI_ACTOR_KILLED 0x800000u       /* ends by force: no signals */
#define JZI_ACTOR_STOPPING (JZI_ACTOR_STOP | JZI_ACTOR_KILL | JZI_ACTOR_DRAIN | JZI_ACTOR_ENDING)
/* The top byte: state:3 and, above it, the step of the lifecycle's procedure:5. */
#define JZI_ACTOR_STATE_SHIFT 24
#define JZI_ACTOR_STEP_SHIFT 27

#define JZI_NO_ACTOR UINT32_MAX
/* In `history`: this slot's desk is the notice of its tenant's end. */
#define JZI_HISTORY_ZOMBIE UINT32_MAX

/* Invariants, for an actor that is alive:
 *   I1  It is in the run ring, once, exactly if it is not running and has an ordinary message or
 *       QUEUED. Any other non-empty lane and any command mean QUEUED. While it is FROZEN it has
 *       QUEUED, so that nothing puts it there, and is in the ring exactly if it has LIFE.
 *   I2  own_used is the length of the ordinary lane plus that of the urgent lane, less what came
 *       from other threads; those are counted by the gate until they are done.
 *   I3  accepted = handled + dead + redirected + revoked + what is in the lanes + what is in hand.
 *   I4  An actor with something in the events or notices lane has a cold part. */
typedef struct jzi_actor {
    _Alignas(64) jzi_door door;
    jzx_actor_id id; /* of the tenant; its low half never changes */
    jzi_actor_type *type;
    union {
        jzi_node *urgent;           /* a lane, here because most actors never use it */
        jzx_actor_id failed_sender; /* of a zombie: the sender of the message */
    };
    union {
        jzi_siblings siblings; /* its parent's; with a parent in another dispatcher: in `far` */
        struct jzi_far *far;
    };
    uint32_t parent;          /* index; it outlives its children. JZI_NO_ACTOR: the root */
    uint32_t dead;            /* modulo 2^32 */
    _Atomic uint32_t history; /* the last ten states, three bits each, under a 1 */
    union {
        uint32_t drain_stamp; /* with DRAIN: what has a lower stamp is still to be handled */
        uint32_t next_free;   /* slot number, while free */
        uint32_t failed_tag;  /* of a zombie: the tag of what it failed on */
    };

    union {
        _Alignas(64) struct {
            jzi_node *user; /* lanes, by their tails */
            jzi_node *events;
            jzi_node *notices;
            jzx_behavior_fn behavior;
            void *state;
            jzi_cold *cold;
            /* accepted:32 | own_used:32, in one word because every send changes both. Written by
             * the worker only; other threads read own_used to judge room. accepted, modulo 2^32, is
             * also the next arrival stamp. */
            _Atomic uint64_t counts;
            uint32_t handled; /* modulo 2^32 */
            uint32_t flags;
        };
        /* When the actor is gone and its parent has yet to hear of it, the desk is the notice: so
         * it needs no memory (R9). Other threads may still read `counts`: its place, which is
         * msg.deadline_ns, is not written as part of the node. */
        jzi_node zombie;
    };
} jzi_actor;
_Static_assert(sizeof(jzi_actor) == 128, "an actor is two cache lines");
_Static_assert(offsetof(jzi_actor, user) == 64, "the desk has a line of its own");
_Static_assert(offsetof(jzi_actor, counts) ==
                   offsetof(jzi_actor, zombie) + offsetof(jzi_node, msg.deadline_ns),
               "what other threads read of a desk is not written in a zombie");
_Static_assert(offsetof(jzi_actor, cold) ==
                   offsetof(jzi_actor, zombie) + offsetof(jzi_node, msg.drop),
               "and what readers look at is NULL there");

static inline uint32_t jzi_actor_state_of(const jzi_actor *actor)
{
    return actor->flags >> JZI_ACTOR_STATE_SHIFT & 7u;
}
/* Other threads may look at the history. */
static inline uint32_t jzi_actor_history(const jzi_actor *actor)
{
    return atomic_load_explicit(&actor->history, memory_order_relaxed);
}
static inline void jzi_actor_set_history(jzi_actor *actor, uint32_t history)
{
    atomic_store_explicit(&actor->history, history, memory_order_relaxed);
}
static inline uint32_t jzi_actor_step_of(const jzi_actor *actor)
{
    return actor->flags >> JZI_ACTOR_STEP_SHIFT;
}

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
    return actor->cold == NULL ? "" : actor->cold->name;
}

#endif
