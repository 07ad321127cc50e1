/* The life of an actor: its states, and the signals that tell it of them (R14, R15, R16, R18). */
#ifndef JZX_LIFECYCLE_H
#define JZX_LIFECYCLE_H

#include <jzx/actor.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The eight states.
 *
 *   CREATED ---> STARTING ---> RUNNING ---> STOPPING ---> TERMINATED
 *                 ^    |          |           ^   |            ^
 *                 |    v          v           |   v            |
 *   RESTARTING ---+   FAILED <----+-----------+  STOPPED ------+
 *       ^               |                           |
 *       +---------------+---------------------------+
 *
 * In FAILED, RESTARTING and STOPPED the mailbox is open but nothing runs; jzx_lifecycle_next() has
 * every transition. An actor without init and on_signal has nothing to start: it is RUNNING when
 * jzx_spawn() returns. */
typedef enum jzx_state {
    JZX_STATE_CREATED = 0,    /* has an id and a mailbox; init has not run */
    JZX_STATE_STARTING = 1,   /* in init or its start signals; a supervisor: starts its children */
    JZX_STATE_RUNNING = 2,    /* also while a stop is deferred */
    JZX_STATE_STOPPING = 3,   /* stops its children, releases what it has */
    JZX_STATE_STOPPED = 4,    /* clean, and waits for its supervisor to start or to end it */
    JZX_STATE_FAILED = 5,     /* its parent decides what happens next */
    JZX_STATE_RESTARTING = 6, /* cleans up, or is clean and backs off */
    JZX_STATE_TERMINATED = 7, /* gone: the id does not resolve */
    JZX_STATES = 8
} jzx_state;

/* What moves an actor from one state to the next. */
typedef enum jzx_life_event {
    JZX_LIFE_START = 0,   /* init begins */
    JZX_LIFE_STARTED = 1, /* init and the start signals are done */
    JZX_LIFE_STOP = 2,    /* an end, or a stop that its supervisor may follow by a start, begins */
    JZX_LIFE_FAIL = 3,    /* failed, and the parent decides */
    JZX_LIFE_RESTART = 4, /* clean-up for a restart begins */
    JZX_LIFE_RESUME = 5,  /* goes on as if nothing had happened */
    JZX_LIFE_HALT = 6,    /* is clean and waits */
    JZX_LIFE_END = 7,     /* the id is given up */
    JZX_LIFE_EVENTS = 8
} jzx_life_event;

/* The next state, or -1 where the event is impossible. The runtime uses the same table.
 * Thread: any. */
JZX_API int jzx_lifecycle_next(uint32_t state, uint32_t event);
/* "running", "restarting", ... Never NULL. Thread: any. */
JZX_API const char *jzx_state_name(uint32_t state);

/* The state of an actor. One that is gone is TERMINATED, and so is an id that never was. These two
 * also tell of actors of other dispatchers, as of a moment ago. Thread: loop. */
JZX_API jzx_state jzx_actor_state(jzx_loop *loop, jzx_actor_id id);
/* Its last states, oldest first and with the present one last; at most JZX_HISTORY_MAX. Returns how
 * many there are; writes at most cap. Thread: loop. */
#define JZX_HISTORY_MAX 10
JZX_API size_t jzx_actor_history(jzx_loop *loop, jzx_actor_id id, jzx_state *out, size_t cap);
/* 1 for the first life of this id, one more with every restart; 0 when it is gone, or lives on
 * another dispatcher. Thread: loop. */
JZX_API uint32_t jzx_actor_incarnation(jzx_loop *loop, jzx_actor_id id);

/* What happened. The first six are hooks of the actor's own life and come to on_signal only; the
 * others are notices: they keep their place among messages (R6), need no memory when they are sent
 * (R9), and reach the behavior as messages of kind NOTICE if there is no on_signal. */
typedef enum jzx_signal_kind {
    JZX_SIGNAL_PRE_START = 1,    /* after init */
    JZX_SIGNAL_POST_START = 2,   /* RUNNING follows */
    JZX_SIGNAL_PRE_STOP = 3,     /* about to stop; may return JZX_BEHAVIOR_DEFER */
    JZX_SIGNAL_POST_STOP = 4,    /* children, timers and I/O are gone; deinit follows */
    JZX_SIGNAL_PRE_RESTART = 5,  /* `reason`: why */
    JZX_SIGNAL_POST_RESTART = 6, /* after POST_START of a restart; `reason` is the same */
    JZX_SIGNAL_TERMINATED = 7,   /* a watched actor is gone; see jzx/monitor.h */
    JZX_SIGNAL_EXIT = 8,         /* a linked actor ended, and exits are trapped */
    JZX_SIGNAL_CHILD_FAILED = 9, /* a child of this actor is gone, for an abnormal reason */
    JZX_SIGNAL_CHILD_ENDED = 10, /* a child of this actor is gone, for a normal reason */
    /* A child that was spawned with JZX_SPAWN_TELL_START is RUNNING, for the first time or after a
     * restart: behind what its start hooks sent, before anything it sends later (R6). A start that
     * comes while such a notice still waits adds no second one. A supervisor is not told: it knows.
     */
    JZX_SIGNAL_CHILD_STARTED = 12,
    JZX_SIGNAL_RESTARTED = 11 /* a watched actor was restarted; see JZX_WATCH_RESTARTS */
} jzx_signal_kind;

/* Borrowed for the call.
 *
 * PRE_STOP that returns DEFER keeps the actor RUNNING, closed to new sends, so that it can finish
 * what is queued and owed; it then stops itself by returning STOP or calling jzx_stop() on itself,
 * at the latest when its stop_timeout_ms is over. FAIL or a panic in PRE_START, POST_START and
 * POST_RESTART is a failed start; in PRE_STOP, POST_STOP and PRE_RESTART it becomes the reason of
 * an end that was normal so far, and the sequence goes on. From a notice, results mean what they
 * mean in a behavior.
 *
 * An actor that fails and is not restarted gets POST_STOP and deinit, no PRE_STOP; one that is
 * killed gets deinit only. In POST_STOP and deinit sends work; spawn, timers and watches give
 * STOPPING. */
typedef struct jzx_signal {
    uint32_t kind;            /* jzx_signal_kind */
    uint32_t incarnation;     /* of the actor it is about */
    jzx_actor_id from;        /* the actor it is about; the receiver itself for the first six */
    jzx_watch_ref ref;        /* TERMINATED, RESTARTED: what jzx_watch() returned */
    const jzx_reason *reason; /* never NULL */
    jzx_failed_on failed_on;  /* CHILD_FAILED: what it had in hand; else there is none */
} jzx_signal;

/* "pre_start", "terminated", ... Never NULL. Thread: any. */
JZX_API const char *jzx_signal_name(uint32_t kind);
/* The signal in a message of kind NOTICE, or NULL if the message is something else: for actors
 * without on_signal. Borrowed like the message. Thread: any. */
JZX_API const jzx_signal *jzx_message_signal(const jzx_message *msg);

/* Whether the end of linked actors is a signal (1) or a failure (0) for the running actor, from now
 * on. Thread: loop, inside an actor. Errors: INVALID_ARG (called outside of an actor's code). */
JZX_API jzx_err jzx_trap_exits(jzx_context *ctx, int on);

/* The actor that spawned it, or JZX_NOBODY: the root, or the actor is gone or lives on another
 * dispatcher. Thread: loop. */
JZX_API jzx_actor_id jzx_actor_parent(jzx_loop *loop, jzx_actor_id id);
/* The children of an actor, or of the root (JZX_NOBODY), in the order they were started. Returns
 * how many there are, 0 for an actor of another dispatcher; writes at most cap. Thread: loop. */
JZX_API size_t jzx_actor_children(jzx_loop *loop, jzx_actor_id id, jzx_actor_id *out, size_t cap);

/* Runs the loop until the actor is RUNNING. For main(): a supervisor is RUNNING once its children
 * are. Thread: loop, outside of actors. Errors: NO_SUCH_ACTOR (the actor was gone before the call),
 * START_FAILED (the actor ended meanwhile), TIMED_OUT (nothing is left to do, and the actor is not
 * RUNNING), WRONG_DISPATCHER (the actor runs on another dispatcher), as jzx_loop_run(). */
JZX_API JZX_NODISCARD jzx_err jzx_loop_run_until_started(jzx_loop *loop, jzx_actor_id id);

#ifdef __cplusplus
}
#endif
#endif
