/* What runs actors (R23): a run queue, node pools, a clock reading, the actor at work, and the jump
 * target for panics. A loop is one worker with a poller and a wheel. */
#ifndef JZI_WORKER_H
#define JZI_WORKER_H

#include <jzx/env.h>
#include <jzx/lifecycle.h>

#include "actor/dispatcher.h"
#include "actor/event_ring.h"
#include "base/assert.h"
#include "os/asym.h"

#include <setjmp.h>

/* The first leg of a turn is this long; then the clock is read. */
enum { JZI_FIRST_LEG = 16 };

/* Which user code is running, for panics. */
typedef enum jzi_phase {
    JZI_PHASE_NONE,
    JZI_PHASE_BEHAVIOR, /* a message or a notice is in hand */
    JZI_PHASE_START,    /* init and the start signals */
    JZI_PHASE_LEAVE,    /* PRE_STOP, PRE_RESTART: the actor still has what it had */
    JZI_PHASE_DEINIT    /* POST_STOP and deinit: it gets nothing new */
} jzi_phase;

/* Why jzi_worker_run() gave an actor to its caller. */
typedef enum jzi_outcome {
    JZI_OUTCOME_LIFE, /* a command waits, or it is drained */
    JZI_OUTCOME_STOP, /* returned JZX_BEHAVIOR_STOP */
    JZI_OUTCOME_FAIL  /* failed: worker->reason says how */
} jzi_outcome;

/* How code was left without returning: jzx_panic(), the crash guard. */
enum { JZI_THROWN_NOT, JZI_THROWN_PANIC, JZI_THROWN_CRASH };

/* The lock of a pool as its bias owner has it; see pool_lock.c. */
enum { JZI_BIAS_NOT, JZI_BIAS_USER, JZI_BIAS_BUSY };
/* Messages that take longer are worth sharing. */
#define JZI_PACE_SHARED UINT64_C(1500)

struct jzi_worker {
    /* Sends and turns. */
    jzi_dispatcher *dispatcher;
    jzi_inbox *inbox;
    jzi_actor_table *table;
    _Atomic(jzi_actor *) *chunks; /* table->chunks and table->made, one load nearer */
    uint32_t slots_made;
    uint32_t quick_slots;     /* the same where sends take the quick way; 0 in a pool */
    bool quick;               /* whether they do: not in a pool, and not while a tool looks */
    uint32_t base;            /* the dispatcher's part of its actors' indexes */
    bool pooled;              /* dispatcher->pooled, one load nearer */
    bool instrumented;        /* a tool looks at its messages, or they are simulated */
    bool recording;           /* rare events are to be noted */
    bool recording_often;     /* also those that may come in masses: spawns, stops, ends, timers */
    bool timing;              /* times are wanted: asks always, the rest in some ticks */
    bool throttled;           /* events came in masses, and such ones are not noted for a moment */
    uint32_t wanted;          /* of the board, as it was seen last */
    uint32_t probed;          /* JZI_WANT_PROBES while a tracer is attached to them */
    uint32_t number;          /* among the workers of a pool */
    uint32_t pool_lock_depth; /* how many calls of ours hold the pool lock, one inside the other */
    bool may_bias;    /* no other worker has anything to do: the lock may be biased to this one */
    bool biased;      /* as far as this worker knows */
    bool light_fence; /* jzi_asym_ready() */
    _Atomic unsigned bias_state;   /* JZI_BIAS_* */
    _Atomic unsigned bias_revoked; /* another worker has the pool lock, or is about to */
    _Atomic uint64_t pace_ns;      /* what user code takes per message, as of late */
    uint64_t timed_from;           /* when the user code that is timed began; 0: none is */
    uint32_t until_timed;
    uint64_t driver_saw;         /* jzi_worker_done() when the pool's driver last looked */
    _Atomic uint64_t stuck_at;   /* the same, when the driver found the worker stuck */
    struct jzi_worker *store;    /* whose nodes it uses: its own; in a pool the first one's */
    bool taking_in;              /* inside the intake */
    jzi_count stolen;            /* turns taken from other workers of the pool */
    _Atomic int32_t tid;         /* of its thread, as the kernel names it */
    struct jzx_sender **outlets; /* by dispatcher: how this worker sends to other dispatchers */
    jzi_node_pool plain;
    jzi_node_pool wide;
    /* Actors that are ready, with room for every one there is, so a push cannot fail. Pointers to
     * slots, which stay where they are; an actor that leaves the ring for good does so before its
     * end (ADR 0009). */
    jzi_actor **ring;
    uint32_t ring_mask;
    uint32_t ring_head; /* both run free and wrap at 2^32; so turns are counted by the head */
    uint32_t ring_tail;
    uint32_t ring_limit; /* where this tick stops */
    jzx_context ctx;     /* of the actor at work; self is 0 when there is none */
    jzi_actor *current;
    jzi_node *in_hand;       /* meaningful in JZI_PHASE_BEHAVIOR */
    bool dropping;           /* in a pool: what is in hand has been handled, and its `drop` runs */
    jzx_behavior_fn instead; /* set by a claim: called for this event instead of the behavior */
    /* Ordinary messages of `current`, detached for its turn: a plain list whose links do not depend
     * on what the turn stores. NULL: none. */
    jzi_node *batch;
    jzi_node *batch_last;
    uint32_t turn_number;  /* ring_head of the turn that had its second leg last */
    uint32_t turn_foreign; /* of this turn's, how many hold a reservation on the gate */
    uint32_t until_clock;  /* messages until the clock is read again */
    uint32_t stride;       /* what until_clock starts from */
    uint32_t timed_turn;   /* ring_head of the turn in which the clock was read last */
    bool timed_one;        /* the next reading comes after one message: it is that one's time */
    uint32_t max_stride;   /* 1 in simulation */
    uint32_t phase;        /* jzi_phase */
    uint64_t now_ns;       /* as of the last reading */
    uint64_t turn_start_ns;
    uint64_t tick_end_ns;
    uint64_t turn_budget_ns;
    jzi_counters counters;

    /* Nodes on their way back to the senders. */
    struct {
        jzi_node *first, *last;
        uint32_t count;
    } returns[2];

    const jzx_env *env;
    jzx_allocator alloc;
    uint32_t default_cap;
    uint32_t default_max_msgs;
    struct jzi_timers *timers; /* set by jzi_timers_init(), for its own operations */
    struct jzi_alarms *alarms; /* likewise by jzi_alarms_init(), */
    struct jzi_io *io;         /* and by jzi_io_init() */
    jzx_actor_id reason_by;    /* whose jzx_fail() filled in `reason`, */
    uint64_t reason_at;        /* and how many messages were handled then */
    /* Of the message in hand, if it is a request or a reply: while the actor is the same and no
     * message was handled since. So plain messages need not clear it. */
    uint64_t correlation;
    jzx_actor_id correlated_by;
    uint64_t correlated_at;
    uint32_t request_tries;  /* of a request: how often it failed before, with JZI_HAND_TRIED */
    uint32_t outcome;        /* jzi_outcome of the actor that jzi_worker_run() returned */
    uint32_t hook_result;    /* jzx_behavior_result of the last hook; FAIL if it panicked */
    jzx_reason reason;       /* why `current` failed or is about to end */
    jzx_failed_on failed_on; /* with `reason`, if `there`: what was in hand then */
    /* What failed last, until lifecycle hears of it: by returning, or thrown (JZI_THROWN_*). */
    struct {
        jzx_actor_id actor; /* JZX_NOBODY: no message was in hand */
        jzx_failed_on on;
        uint32_t thrown;
    } failed;
    jzx_signal signal; /* what a child's notice points to while it is handed over */
    jzx_reason signal_reason;
    jmp_buf panic;              /* valid unless the phase is JZI_PHASE_NONE */
    _Atomic uint64_t thread;    /* the one inside a step, and not waiting in a pool; 0: none */
    jzi_event_ring *event_ring; /* NULL until something was wanted */
    struct jzi_worker *outer;   /* this one's step runs inside of user code of that one; or NULL */
};

static inline void jzi_dispatcher_rests(jzi_dispatcher *dispatcher)
{
    if (jzi_unlikely(dispatcher->on_rest != NULL)) {
        dispatcher->on_rest(dispatcher);
    }
}

/* Takes the lock of a pool, and gives it back. On a loop there is none, and nothing to call. */
void jzi_worker_lock_pool(jzi_worker *worker);
void jzi_worker_unlock_pool(jzi_worker *worker);
/* After a wait in which other workers had the lock: what they changed is known. */
void jzi_worker_pool_is_locked(jzi_worker *worker);
/* Before a wait that gives the mutex away: the pool lock is held, and not just kept. */
void jzi_worker_hold_pool_lock(jzi_worker *worker);
/* Code of the user's, put off until the pool lock is given back: run() is called without the lock.
 * With the pool lock. */
static inline void jzi_worker_defer(jzi_worker *worker, jzi_errand *errand)
{
    jzi_msg_set(&errand->node.msg, JZI_MSG_ERRAND);
    jzi_lane_push(&worker->dispatcher->deferred, &errand->node);
}
/* Does what is due, in the order it became due; the pool lock is given away meanwhile. Before other
 * user code runs, too: so what a message held is gone before that. */
void jzi_worker_run_deferred(jzi_worker *worker);

/* Of a pool whose lock is biased to no worker: some of what runs is timed, for pace_ns. */
void jzi_worker_user_code_begins(jzi_worker *worker);
void jzi_worker_user_code_ended(jzi_worker *worker);
/* The short way of a bias owner, in line: what jzi_worker_unlock_pool() and _lock_pool() do for it.
 * False: the lock is not biased to this worker; take the long way. */
static inline bool jzi_bias_unlock(jzi_worker *worker)
{
    if (jzi_unlikely(!worker->biased || worker->pool_lock_depth != 1)) {
        return false;
    }
    worker->pool_lock_depth = 0;
    atomic_store_explicit(&worker->bias_state, JZI_BIAS_USER, memory_order_release);
    return true;
}
static inline bool jzi_bias_lock(jzi_worker *worker)
{
    if (jzi_unlikely(!worker->biased || worker->pool_lock_depth != 0) ||
        jzi_unlikely(jzi_asym_store_load(&worker->bias_state, JZI_BIAS_BUSY, &worker->bias_revoked,
                                         worker->light_fence) != 0)) {
        return false;
    }
    worker->pool_lock_depth = 1;
    worker->slots_made = atomic_load_explicit(&worker->table->made, memory_order_relaxed);
    return true;
}
/* Around every call of user code. */
static inline void jzi_user_code_begins(jzi_worker *worker)
{
    if (jzi_unlikely(worker->pooled)) {
        if (worker->dispatcher->deferred != NULL) {
            jzi_worker_run_deferred(worker);
        }
        if (jzi_bias_unlock(worker)) {
            return;
        }
        jzi_worker_unlock_pool(worker);
        if (!worker->biased) {
            jzi_worker_user_code_begins(worker);
        }
    }
}
/* What the actor sent is taken in before anything else becomes known of it (R6). */
void jzi_worker_intake(jzi_worker *worker);
/* The same, of messages and errands at most so many, unless there are orders: before one is obeyed,
 * all that came before it is taken in. */
void jzi_worker_intake_some(jzi_worker *worker, uint32_t max);
static inline void jzi_user_code_ends(jzi_worker *worker)
{
    if (jzi_unlikely(worker->pooled)) {
        if (jzi_unlikely(!jzi_bias_lock(worker))) {
            if (worker->timed_from != 0) {
                jzi_worker_user_code_ended(worker);
            }
            jzi_worker_lock_pool(worker);
        }
        if (jzi_inbox_has_mail(worker->inbox)) {
            jzi_worker_intake(worker);
        }
    }
}

/* A request or a reply is about to be handed to `current`. */
static inline void jzi_worker_correlate(jzi_worker *worker, uint64_t correlation)
{
    worker->correlation = correlation;
    worker->correlated_by = worker->ctx.self;
    worker->correlated_at = jzi_count_get(&worker->counters.handled);
}
/* The correlation of the message in hand; 0: the message has none. */
static inline uint64_t jzi_worker_correlation(const jzi_worker *worker)
{
    bool now = worker->correlated_by == worker->ctx.self &&
               worker->correlated_at == jzi_count_get(&worker->counters.handled);
    return now ? worker->correlation : 0;
}

/* Grows while a worker gets anything done. Thread: any. */
static inline uint64_t jzi_worker_done(const jzi_worker *worker)
{
    return jzi_count_get(&worker->counters.handled) + jzi_count_get(&worker->counters.ticks);
}

/* What a worker's messages take. relaxed: an estimate. */
static inline uint64_t jzi_worker_pace(const jzi_worker *worker)
{
    return atomic_load_explicit(&worker->pace_ns, memory_order_relaxed);
}
static inline void jzi_worker_set_pace(jzi_worker *worker, uint64_t ns)
{
    atomic_store_explicit(&worker->pace_ns, ns, memory_order_relaxed);
}
/* Whether a worker has more than it gets done soon: its messages take their time, or it is stuck.
 * Tiny messages are done sooner where they are than they change hands. */
bool jzi_worker_needs_help(const jzi_worker *other);

/* Takes half of the longest ring of the pool, from its end: the owner goes on at its beginning.
 * False: no worker has anything to give. With the pool lock. */
bool jzi_worker_steal(jzi_worker *thief);

/* Room in the ring for one actor more, in a pool in the ring of every worker. False: no memory. */
bool jzi_worker_grow_ring(jzi_worker *worker);
bool jzi_worker_reserve_all(jzi_worker *worker);
static inline bool jzi_worker_reserve(jzi_worker *worker)
{
    if (jzi_unlikely(worker->pooled)) {
        return jzi_worker_reserve_all(worker);
    }
    return (worker->ring != NULL &&
            (uint32_t)jzi_count_get(&worker->counters.live) <= worker->ring_mask) ||
           jzi_worker_grow_ring(worker);
}

/* Reads the clock and sets when to read it next. True: this turn has taken its time. */
bool jzi_worker_look_at_clock(jzi_worker *worker, jzi_actor *actor);
/* A turn that is shorter than a leg, or whose every message is timed. Returns its length. */
uint32_t jzi_worker_begin_instrumented(const jzi_worker *worker, const jzi_actor *actor,
                                       uint32_t *until_clock);
/* After the first leg of a turn the clock is read, so that a slow actor is found out soon. Returns
 * how many messages may follow: none after the second. */
uint32_t jzi_worker_next_leg(jzi_worker *worker, jzi_actor *actor, uint32_t *until_clock);

/* The next message of an actor that has more than ordinary ones. Notices keep their place among the
 * ordinary ones by their stamps; events and urgent messages may jump, in rounds. NULL: none. */
jzi_node *jzi_worker_pick(jzi_actor *actor);

/* Runs ready actors until none is left, or the tick's turns or time are used up. Returns an actor
 * that lifecycle has to deal with, for worker->outcome and with worker->reason filled in, or NULL.
 * The actor is in no ring. The caller has set worker->panic. */
jzi_actor *jzi_worker_run(jzi_worker *worker);
/* After a panic in a behavior, in a pool: what the behavior did not take goes before the pool lock
 * is back. */
void jzi_worker_drop_in_hand(jzi_worker *worker);
/* After a panic in a behavior: completes the message in hand; returns the actor that failed. */
jzi_actor *jzi_worker_panicked(jzi_worker *worker);
/* Hands one notice over, out of turn, to an actor that is not running and in no ring. May panic as
 * a behavior does. */
jzx_behavior_result jzi_worker_hand_over(jzi_worker *worker, jzi_actor *actor, jzi_node *node);

/* A message that failed was put back to be redelivered, but the actor goes on without a restart:
 * the message has been handled. */
void jzi_worker_forget_redelivery(jzi_worker *worker, jzi_actor *actor);
/* There is a restart: from now on the failed message is one like any other. */
void jzi_worker_redeliver(jzi_actor *actor);

/* The worker whose step runs on this thread; the innermost one, see `outer`. */
extern _Thread_local __attribute__((tls_model("initial-exec"))) jzi_worker *jzi_worker_here;
/* The worker of this dispatcher that acts for the calling thread; NULL: none. */
static inline jzi_worker *jzi_worker_of_thread(const jzi_dispatcher *dispatcher)
{
    jzi_worker *worker = jzi_worker_here;
    while (worker != NULL && worker->dispatcher != dispatcher) {
        worker = worker->outer;
    }
    return worker;
}
/* Whether code of an actor that asked for the crash guard is running. */
bool jzi_worker_is_guarded(const jzi_worker *worker);
/* Code of a guarded actor crashed: the reason becomes CRASH(signo) and the code is left by a
 * jump. */
JZX_NORETURN void jzi_worker_crash(jzi_worker *worker, int signo, const char *text);
/* Fills in worker->reason. text may be NULL. */
void jzi_worker_set_reason(jzi_worker *worker, jzx_reason_kind kind, int32_t code,
                           const char *text);

uint64_t jzi_worker_clock(jzi_worker *worker); /* reads it; it never goes back */
/* A reading that is at most this much behind, mostly without the price of a new one. Exact where
 * the clock is not the system's. */
#define JZI_RECENT_NS UINT64_C(10000000)
uint64_t jzi_worker_recent(jzi_worker *worker);
static inline bool jzi_worker_is_exact(const jzi_worker *worker)
{
    return worker->max_stride == 1;
}

/* One message or errand of what jzi_worker_intake(), above, takes in. */
void jzi_worker_take_in(jzi_worker *worker, jzi_node *node);
/* Puts a message from another thread where it belongs, or dead-letters it. */
void jzi_worker_deliver_foreign(jzi_worker *worker, jzi_node *node);
/* Gives emptied foreign nodes back to the senders. */
void jzi_worker_flush_returns(jzi_worker *worker);

/* Ends a message that was accepted and will not be handled: hook, ring, counts, release (R21).
 * The node is in no lane any more. */
void jzi_worker_dead_letter(jzi_worker *worker, jzi_actor *actor, jzi_node *node,
                            jzx_dead_reason reason);
/* For a message that was handed over and is not counted as handled. */
void jzi_worker_dead_letter_in_hand(jzi_worker *worker, jzi_actor *actor, jzi_node *node,
                                    jzx_dead_reason reason);
/* The same for a message that was accepted only to die: it never was in a lane. */
void jzi_worker_dead_letter_unqueued(jzi_worker *worker, jzi_actor *actor, jzi_node *node,
                                     jzx_dead_reason reason);
/* The oldest ordinary message dies to make room. False: there is none. */
bool jzi_worker_evict(jzi_worker *worker, jzi_actor *actor);
/* As jzi_worker_dead_letter() for an event: counted as revoked, and given back to its owner. */
void jzi_worker_revoke(jzi_worker *worker, jzi_actor *actor, jzi_node *node);
/* Releases the data of a message that no actor handled, by drop, drop_msg, or as abandoned. */
void jzi_worker_release_data(jzi_worker *worker, const jzi_actor *actor, jzx_message *msg);
/* In a pool: releases data and node as a deferred callback. False: no user code is called for
 * them. */
bool jzi_worker_release_later(jzi_worker *worker, const jzi_actor *actor, jzi_node *node);
/* Frees the copy, if there is one, and gives the node back. */
void jzi_worker_release_node(jzi_worker *worker, jzi_node *node);
/* Gives foreign reservations back, and with the last one the slot of an actor that ended. */
void jzi_worker_leave(jzi_worker *worker, jzi_actor *actor, uint32_t count);
/* Returns the slot of an actor that ended to the table, once nothing keeps it. */
void jzi_worker_free_slot(jzi_worker *worker, jzi_actor *actor);
/* Puts what is left of the batch back in front of the lane. Code that looks at the lane of the
 * actor at work does this first. */
void jzi_worker_reattach(jzi_worker *worker);

/* The cold part, made if need be. NULL: no memory. */
jzi_cold *jzi_worker_cold(jzi_worker *worker, jzi_actor *actor);
/* The same for what the patterns leave there. */
jzi_pattern_state *jzi_worker_pattern_state(jzi_worker *worker, jzi_actor *actor);
static inline jzi_pattern_state *jzi_pattern_state_of(const jzi_actor *actor)
{
    return actor->cold == NULL ? NULL : actor->cold->patterns;
}

void jzi_worker_others_refused(jzi_worker *worker, jzi_node *node); /* JZI_EVENT_FULL arrived */
/* Counts a refused send and tells the observer if the mailbox was full. Returns err. */
jzx_err jzi_worker_refuse(jzi_worker *worker, jzx_actor_id to, jzx_err err);

void jzi_worker_trace(jzi_worker *worker, jzx_trace_what what, const jzi_actor *actor,
                      const jzx_message *msg, uint32_t detail);

/* Which sends may go the quick way. */
void jzi_worker_set_quick(jzi_worker *worker);
/* There may be a slot more. */
static inline void jzi_worker_more_slots(jzi_worker *worker)
{
    worker->slots_made = atomic_load_explicit(&worker->table->made, memory_order_relaxed);
    if (jzi_likely(worker->quick)) { /* in a pool it stays 0: workers in user code read it */
        worker->quick_slots = worker->slots_made;
    }
}

/* The actor in a slot that is known to have been made. */
static inline jzi_actor *jzi_worker_slot(const jzi_worker *worker, uint32_t index)
{
    uint32_t slot = index & 0xFFFFFFu;
    jzi_actor *chunk =
        atomic_load_explicit(&worker->chunks[slot >> JZI_CHUNK_SHIFT], memory_order_relaxed);
    return chunk + (slot & (JZI_CHUNK_SLOTS - 1));
}

/* The same for a slot of any dispatcher; foreign ones are looked at through their doors only. */
static inline jzi_actor *jzi_worker_any(const jzi_worker *worker, uint32_t index)
{
    if (jzi_likely((index ^ worker->base) >> 24 == 0)) {
        return jzi_worker_slot(worker, index);
    }
    const jzi_inbox *inbox = jzi_directory_inbox(worker->dispatcher->directory, index >> 24);
    return jzi_actor_table_at(&inbox->table, index & 0xFFFFFFu);
}
/* Whether an actor, or an index, belongs to another dispatcher. */
static inline bool jzi_worker_is_far(const jzi_worker *worker, uint64_t id_or_index)
{
    return ((uint32_t)id_or_index ^ worker->base) >> 24 != 0;
}

/* An actor that is on its way here from another dispatcher: it is taken in first. */
jzi_actor *jzi_worker_find_unborn(const jzi_worker *worker, jzx_actor_id id);

/* The actor if the id resolves, also one that is stopping; NULL otherwise. */
static inline jzi_actor *jzi_worker_find(const jzi_worker *worker, jzx_actor_id id)
{
    uint32_t slot = jzx_id_index(id) ^ worker->base;
    if (slot >= worker->slots_made) {
        bool alone = worker->dispatcher->directory == NULL;
        return jzi_likely(alone) ? NULL : jzi_worker_find_unborn(worker, id);
    }
    jzi_actor *actor = jzi_worker_slot(worker, slot);
    uint64_t gate = jzi_actor_gate(actor);
    if (jzi_gate_generation(gate) != jzx_id_generation(id) || (gate & JZI_GATE_PINS) == 0) {
        return NULL;
    }
    return jzi_unlikely(jzi_gate_is_unborn(gate)) ? jzi_worker_find_unborn(worker, id) : actor;
}

/* The name of an actor that lives here; "": it has none, is gone, or lives elsewhere. */
const char *jzi_worker_name(const jzi_worker *worker, jzx_actor_id id);

/* The actor if it may be given something new. Errors: NO_SUCH_ACTOR, STOPPING. */
static inline jzx_err jzi_worker_find_open(const jzi_worker *worker, jzx_actor_id id,
                                           jzi_actor **out_actor)
{
    jzi_actor *actor = jzi_worker_find(worker, id);
    if (actor == NULL) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    if ((jzi_actor_gate(actor) & (JZI_GATE_CLOSED | JZI_GATE_ORDERS)) != 0 ||
        worker->dispatcher->destroying) {
        return JZX_ERR_STOPPING;
    }
    *out_actor = actor;
    return JZX_OK;
}

/* The same for what an actor owns itself: timers, references, watches. One that deferred its stop
 * still may have them. */
static inline jzx_err jzi_worker_find_owner(const jzi_worker *worker, jzx_actor_id id,
                                            jzi_actor **out_actor)
{
    jzi_actor *actor = jzi_worker_find(worker, id);
    if (actor == NULL) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    *out_actor = actor;
    if (worker->dispatcher->destroying || (actor->flags & JZI_ACTOR_ENDING) != 0) {
        /* Also an actor that is cleaned up to be restarted, with its door open. */
        return JZX_ERR_STOPPING;
    }
    bool leaving = (actor->flags & JZI_ACTOR_DEFERRED) != 0 ||
                   (worker->phase == JZI_PHASE_LEAVE && worker->current == actor);
    return (jzi_actor_gate(actor) & JZI_GATE_CLOSED) == 0 || leaving ? JZX_OK : JZX_ERR_STOPPING;
}

/* For what is only done at home, with an id that does not resolve here: WRONG_DISPATCHER if the
 * actor lives in another dispatcher, else NO_SUCH_ACTOR. */
jzx_err jzi_worker_not_here(const jzi_worker *worker, jzx_actor_id id);

static inline void jzi_worker_enqueue(jzi_worker *worker, jzi_actor *actor)
{
    worker->ring[worker->ring_tail++ & worker->ring_mask] = actor;
}

/* Gives the actor a turn for something that is not in its ordinary lane. */
static inline void jzi_worker_schedule(jzi_worker *worker, jzi_actor *actor)
{
    if ((actor->flags & JZI_ACTOR_QUEUED) == 0) {
        actor->flags |= JZI_ACTOR_QUEUED;
        if (actor->user == NULL && actor != worker->current) {
            jzi_worker_enqueue(worker, actor);
        }
    }
}

/* A message was accepted: number it and count it. `used` is JZI_COUNTS_USED for one of our own that
 * takes room in the mailbox, else 0. */
static inline void jzi_worker_count_in(jzi_worker *worker, jzi_actor *actor, jzi_node *node,
                                       uint64_t used)
{
    uint64_t counts = jzi_actor_counts(actor);
    node->stamp = (uint32_t)(counts >> 32);
    jzi_actor_set_counts(actor, counts + JZI_COUNTS_ACCEPTED + used);
    jzi_count_add(&worker->counters.accepted, 1);
}

/* Puts an accepted message into the ordinary lane and sees that it gets a turn. */
static inline void jzi_worker_accepted_ordinary(jzi_worker *worker, jzi_actor *actor,
                                                jzi_node *node, uint64_t used)
{
    jzi_node *last = actor->user;
    jzi_worker_count_in(worker, actor, node, used);
    actor->user = node;
    if (last != NULL) {
        node->next = last->next;
        last->next = node;
        return;
    }
    node->next = node;
    if ((actor->flags & JZI_ACTOR_QUEUED) == 0 && actor != worker->current) {
        jzi_worker_enqueue(worker, actor);
    }
}

/* The same for a message that the caller put into another lane. */
static inline void jzi_worker_accepted_aside(jzi_worker *worker, jzi_actor *actor, jzi_node *node,
                                             uint64_t used)
{
    jzi_worker_count_in(worker, actor, node, used);
    actor->flags |= JZI_ACTOR_MIXED;
    jzi_worker_schedule(worker, actor);
}

/* Queues an event's own node: cannot fail (R9). The caller set node->msg and node->ops. */
static inline void jzi_worker_post_event(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    jzi_lane_push(&actor->events, node);
    jzi_worker_accepted_aside(worker, actor, node, 0);
}
/* The same for a notice, which keeps its place among ordinary messages (R6). */
static inline void jzi_worker_post_notice(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    jzi_lane_push(&actor->notices, node);
    jzi_worker_accepted_aside(worker, actor, node, 0);
}

/* The calling thread, as a number that is never 0. */
uint64_t jzi_thread_self(void);

/* Debug builds abort when a call that belongs to the loop's thread comes from another one (R35). */
#if JZI_DEBUG
void jzi_worker_check_thread(const jzi_worker *worker, const char *call);
#else
static inline void jzi_worker_check_thread(const jzi_worker *worker, const char *call)
{
    (void)worker;
    (void)call;
}
#endif

#endif
