/* Actors: what they run, how they are made and ended, how messages reach them. */
#ifndef JZX_ACTOR_H
#define JZX_ACTOR_H

#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a behavior sees of itself. Dies with the call; `loop` may be stored, ctx may not.
 * A behavior may assign ctx->state: the actor keeps the new value. */
typedef struct jzx_context {
    void *state;
    jzx_actor_id self;
    jzx_loop *loop;
} jzx_context;

typedef enum jzx_behavior_result {
    JZX_BEHAVIOR_OK = 0,
    JZX_BEHAVIOR_STOP = 1, /* end with reason NORMAL. From init: do not start after all */
    JZX_BEHAVIOR_FAIL = 2, /* fail with reason FAILED; any other value means the same */
    JZX_BEHAVIOR_DEFER = 3 /* from on_signal(PRE_STOP) only: not yet; see jzx/lifecycle.h */
} jzx_behavior_result;

/* Runs one message at a time and never blocks. ctx and msg are borrowed for the call;
 * jzx_message_owner() tells the owner of msg->data. */
typedef jzx_behavior_result (*jzx_behavior_fn)(jzx_context *ctx, const jzx_message *msg);

/* What happens to an ordinary message that finds the mailbox full (R11). */
typedef enum jzx_full_policy {
    JZX_FULL_REJECT = 0,      /* the sender gets JZX_ERR_MAILBOX_FULL */
    JZX_FULL_DROP_NEWEST = 1, /* accepted, then dead-lettered */
    JZX_FULL_DROP_OLDEST = 2  /* accepted; the oldest ordinary message is dead-lettered */
} jzx_full_policy;

#define JZX_MAILBOX_CAP_MAX 1048575u
#define JZX_NAME_MAX 47
#define JZX_LOW_WATER_EMPTY UINT32_MAX

/* What becomes of messages that are still queued when the actor ends (R16). */
typedef enum jzx_drain_policy {
    JZX_DRAIN_DEAD_LETTERS = 0,
    JZX_DRAIN_DROP = 1,    /* released and counted as dead; no hook, no dead letter */
    JZX_DRAIN_REDIRECT = 2 /* sent on to redirect_to; what is refused there becomes a dead letter */
} jzx_drain_policy;

#define JZX_BACKOFF_NONE UINT32_MAX /* for a child whose parent has a backoff: not for this one */

/* For stop_timeout_ms and shutdown_ms, where 0 is the default. */
#define JZX_SHUTDOWN_INFINITE UINT32_MAX
#define JZX_SHUTDOWN_BRUTAL (UINT32_MAX - 1) /* killed at once instead of being asked */

/* Bits of jzx_spawn_opts.flags and jzx_child_spec.flags. */
#define JZX_SPAWN_TRAP_EXITS 0x1u  /* the end of a linked actor is an EXIT signal, not a failure */
#define JZX_SPAWN_CRASH_GUARD 0x2u /* see jzx/guard.h */
#define JZX_SPAWN_STATELESS 0x4u   /* may be restarted without init: it keeps its `state` */
#define JZX_SPAWN_QUIET 0x8u       /* a normal end sends the parent no CHILD_ENDED */
#define JZX_SPAWN_DROP_QUEUE                                                                       \
    0x10u /* a restart dead-letters what is queued instead of keeping it                           \
           */
#define JZX_SPAWN_REDELIVER                                                                        \
    0x20u /* after a restart the message that failed comes again, first:                           \
           */
          /* values, copies, and data with drop that was not taken */

#define JZX_REDELIVER_NO_LIMIT UINT32_MAX /* for redeliver_max: it comes again every time */

#define JZX_SPAWN_REGISTER 0x40u /* under its `name`, which must be free: see jzx/registry.h */

#define JZX_SPAWN_TELL_START                                                                       \
    0x80u /* the parent is told whenever it is RUNNING: JZX_SIGNAL_CHILD_STARTED                   \
           */

/* Whether an actor is restarted by its parent, which may be the root (R18, R19). */
typedef enum jzx_spawn_restart {
    JZX_RESTART_DEFAULT = 0,   /* as the parent's policy says; without one it is not */
    JZX_RESTART_TRANSIENT = 1, /* after a failure */
    JZX_RESTART_PERMANENT = 2, /* also after it returned STOP. jzx_stop() ends it for good */
    JZX_RESTART_NEVER = 3      /* also if the parent has a policy */
} jzx_spawn_restart;

struct jzx_signal;

/* Zero is the default everywhere but in `behavior`. */
typedef struct jzx_spawn_opts {
    jzx_behavior_fn behavior; /* required */
    /* Borrowed until the actor ended; the runtime never looks at it. With init: only the argument
     * that init gets. */
    void *state;
    /* Runs as the actor's last code, and before each restart: release the state here. Sends to
     * others work (while the loop is destroyed: STOPPING or NO_SUCH_ACTOR); spawn, timers and
     * watches give STOPPING. A failure in here becomes the reason of an end that was normal so far;
     * the end goes on in any case. Not called when init failed. */
    void (*deinit)(jzx_context *ctx);
    /* Releases the data of a message without `drop` that dies before the actor handled it. May run
     * on any thread and calls no jzx_ function. Without it such data is counted as abandoned. */
    void (*drop_msg)(const jzx_message *msg);
    const char *name;        /* for people; the first JZX_NAME_MAX bytes are copied */
    jzx_actor_id supervisor; /* 0, or the running actor: the spawning actor is the parent */
    uint32_t mailbox_cap;    /* ordinary messages that may wait; 0: the loop's default */
    uint32_t low_water;      /* room notices go out at or below it; 0: half of the cap */
                             /* JZX_LOW_WATER_EMPTY: only when nothing waits */
    uint32_t max_msgs;       /* messages per turn; 0: the loop's default */
    uint32_t full_policy;    /* jzx_full_policy */
    /* Builds the state at every start and restart: assigns ctx->state, which is NULL before. `arg`
     * is opts.state. It is the actor's first turn, after jzx_spawn() returned. OK: started. STOP:
     * do not start after all, which is no failure. FAIL, or a panic: a failed start. It may send,
     * spawn, watch and set timers. What it built itself before failing it releases itself. */
    jzx_behavior_result (*init)(jzx_context *ctx, void *arg);
    /* Lifecycle signals; see jzx/lifecycle.h. Without it, notices reach the behavior. */
    jzx_behavior_result (*on_signal)(jzx_context *ctx, const struct jzx_signal *signal);
    jzx_actor_id redirect_to; /* with JZX_DRAIN_REDIRECT */
    uint32_t drain;           /* jzx_drain_policy */
    uint32_t stop_timeout_ms; /* how long a stop may take; 0: 5,000; JZX_SHUTDOWN_* */
    uint32_t flags;           /* JZX_SPAWN_* */
    uint32_t reserved;
    const char *dispatcher; /* where it runs, by name; NULL: with its parent. See jzx/system.h */
    /* Supervision of this one actor. Without a policy of the parent it has a budget of its own, and
     * beyond it the actor ends as any child that failed; with one, the parent's limits hold as
     * well. What is 0 in the backoff is the parent's. A first start that fails is its end. */
    uint32_t restart;           /* jzx_spawn_restart */
    uint32_t restart_intensity; /* restarts within restart_period_ms; 0: 1, or only the parent's */
    uint32_t restart_period_ms; /* 0: 5,000, or the parent's */
    uint32_t backoff_min_ms;    /* delay of the first restart; JZX_BACKOFF_NONE */
    uint32_t backoff_max_ms;    /* delays double up to it; 0: 30,000 */
    /* With JZX_SPAWN_REDELIVER: how often a message that the actor failed on comes again; then it
     * is a dead letter, reason JZX_DEAD_POISON. 0: 3; JZX_REDELIVER_NO_LIMIT. Counted per message,
     * across restarts. */
    uint32_t redeliver_max;
} jzx_spawn_opts;

/* Makes an actor. Its id works at once; its code runs after this call: init and PRE_START first, if
 * it has them. Its parent is the running actor, else the root. The parent hears of its end:
 * CHILD_ENDED or CHILD_FAILED. Thread: loop. Errors: INVALID_ARG (`opts` is NULL or has no
 * behavior; a policy or flag is unknown; `low_water` is above the cap; `supervisor` is neither 0
 * nor the running actor; `redirect_to` is set without JZX_DRAIN_REDIRECT, or missing with it; a
 * limit of restarts is set for an actor that is not restarted), NOT_RESTARTABLE (`restart` or the
 * parent's policy would restart the actor, which has neither `init` nor JZX_SPAWN_STATELESS),
 * NEWER_STRUCT, TOO_BIG (`mailbox_cap` is above JZX_MAILBOX_CAP_MAX), NAME_TAKEN
 * (JZX_SPAWN_REGISTER, and another actor has the name), MAX_ACTORS, NO_MEMORY, STOPPING (the
 * spawning actor is ending, or the loop is being shut down or destroyed), NO_SUCH_DISPATCHER (the
 * system has no dispatcher of this name, or the loop belongs to no system), MAX_DISPATCHERS
 * (`dispatcher` is "pinned", or "pool" for the first time, and there are 255 dispatchers already),
 * NO_THREADS (`dispatcher` is "pinned", or "pool" for the first time, and the operating system
 * refused a thread). */
JZX_API JZX_NODISCARD jzx_err jzx_spawn_sized(jzx_loop *loop, const jzx_spawn_opts *opts,
                                              size_t opts_size, jzx_actor_id *out_id);
static inline JZX_NODISCARD jzx_err jzx_spawn(jzx_loop *loop, const jzx_spawn_opts *opts,
                                              jzx_actor_id *out_id)
{
    return jzx_spawn_sized(loop, opts, sizeof *opts, out_id);
}

/* Stops an actor after the message it is handling now (R16): PRE_STOP, its children stop first,
 * then POST_STOP and deinit. From here on sends to it give STOPPING, and what is queued at the end
 * goes the way of its drain policy. Past its stop_timeout_ms what is left is killed. Stopping an
 * actor that is stopping already is OK; one that failed and waits for a restart ends. A permanent
 * child of a supervisor that is running is started again afterwards, with the same id.
 * Thread: loop. Errors: NO_SUCH_ACTOR. */
JZX_API jzx_err jzx_stop(jzx_loop *loop, jzx_actor_id id);
/* The same, after everything that is queued now was handled; what arrives meanwhile is refused and
 * armed timers are not waited for. Errors: as jzx_stop(). */
JZX_API jzx_err jzx_stop_drained(jzx_loop *loop, jzx_actor_id id);
/* Ends an actor by force, reason KILLED: after the message it is handling now, without PRE_STOP and
 * POST_STOP; its children are killed first; deinit runs and messages are released. Supervisors
 * treat it as a failure. Thread: loop. Errors: NO_SUCH_ACTOR. */
JZX_API jzx_err jzx_kill(jzx_loop *loop, jzx_actor_id id);

/* Gives the failure that the caller is about to return a code and a text (copied, at most
 * JZX_REASON_TEXT_MAX bytes; NULL is empty): `return jzx_fail(ctx, 7, "disk full");`. Returns
 * JZX_BEHAVIOR_FAIL. In behaviors, init and on_signal. Thread: loop. */
JZX_API jzx_behavior_result jzx_fail(jzx_context *ctx, int32_t code, const char *text);

/* Fails the running actor from any depth of its code; does not return. The text is
 * copied, at most JZX_REASON_TEXT_MAX bytes of it; NULL is empty. What the behavior allocated and
 * did not hand on is lost, as with any longjmp. Thread: loop, inside an actor's code; elsewhere
 * aborts. */
JZX_API JZX_NORETURN void jzx_panic(jzx_context *ctx, int32_t code, const char *text);

/* Sends data to an actor (R4): on JZX_OK it is transferred and reaches exactly one of the behavior
 * and the dead letters; on an error it stays the caller's. The sender is the running actor. Thread:
 * loop; elsewhere jzx_send_async(). Errors: NO_SUCH_ACTOR, STOPPING, MAILBOX_FULL, NO_MEMORY,
 * RESERVED_TAG, INVALID_ARG. */
JZX_API JZX_NODISCARD jzx_err jzx_send(jzx_loop *loop, jzx_actor_id to, void *data, size_t len,
                                       uint32_t tag);
/* Sends an integer by value: msg->u64, flag JZX_MSG_VALUE. Errors: as jzx_send(). */
JZX_API JZX_NODISCARD jzx_err jzx_send_u64(jzx_loop *loop, jzx_actor_id to, uint64_t value,
                                           uint32_t tag);
/* Sends a copy of the bytes; the caller keeps its own. The receiver's copy is borrowed for the
 * call. Errors: as jzx_send(), TOO_BIG (the copy is longer than JZX_COPY_MAX). */
JZX_API JZX_NODISCARD jzx_err jzx_send_copy(jzx_loop *loop, jzx_actor_id to, const void *bytes,
                                            size_t len, uint32_t tag);
#define JZX_COPY_MAX ((size_t)1 << 30)

/* Urgent: ahead of ordinary messages, and up to an eighth beyond the cap. Consume: data is dropped
 * on errors too (not on NULL arguments and NEWER_STRUCT, where nothing was understood); it needs
 * `drop`. */
#define JZX_SEND_URGENT 0x1u
#define JZX_SEND_CONSUME 0x2u
#define JZX_SEND_COPY 0x4u  /* as jzx_send_copy() */
#define JZX_SEND_VALUE 0x8u /* as jzx_send_u64(): the value is in u64 */

/* The full form. Zero is the default everywhere. */
typedef struct jzx_send_opts {
    union {
        void *data;
        uint64_t u64;
    };
    size_t len;
    void (*drop)(void *data); /* may run on any thread of the system; calls no jzx_ function */
    uint64_t deadline_ns;     /* jzx_loop_now() + ...; later it is dead-lettered as expired */
    uint32_t tag;
    uint32_t flags;  /* JZX_SEND_* */
    uint32_t margin; /* accept only while more than this many slots are free, whatever the policy */
    uint32_t reserved;
} jzx_send_opts;

/* Thread: loop. Errors: as jzx_send(), MAILBOX_FULL (there is no room, or not as much as `margin`
 * asks for), NEWER_STRUCT, TOO_BIG (the copy is longer than JZX_COPY_MAX), INVALID_ARG (an argument
 * is NULL; a flag is unknown; JZX_SEND_CONSUME without `drop`; JZX_SEND_COPY or JZX_SEND_VALUE with
 * `drop`; JZX_SEND_COPY with JZX_SEND_VALUE; `margin` with JZX_SEND_URGENT). */
JZX_API JZX_NODISCARD jzx_err jzx_send_with_sized(jzx_loop *loop, jzx_actor_id to,
                                                  const jzx_send_opts *opts, size_t opts_size);
static inline JZX_NODISCARD jzx_err jzx_send_with(jzx_loop *loop, jzx_actor_id to,
                                                  const jzx_send_opts *opts)
{
    return jzx_send_with_sized(loop, to, opts, sizeof *opts);
}

/* Moves the data of the message in hand to the actor, which releases it from now on (with the
 * message's own `drop`). Without `drop` it is the actor's already: returns data, changes nothing.
 * NULL when there is nothing to move: values, copies, I/O, notices, periodic timers, or taken
 * before. Thread: loop, inside a behavior. */
JZX_API void *jzx_message_take(jzx_context *ctx);

/* What a room notice (kind NOTICE, tag JZX_TAG_ROOM) points to. */
typedef struct jzx_room_notice {
    jzx_actor_id target;
    uint32_t room; /* slots free when the notice was made */
    int32_t err;   /* JZX_OK, or JZX_ERR_NO_SUCH_ACTOR: the target ended */
} jzx_room_notice;

/* Asks for one notice to the running actor when `target` has room (R12): at once if it is at or
 * below its low-water mark; when it ended; else when it falls to the mark. As many waiters are told
 * as there are free slots, in the order of asking; a slot stays promised until the notice was
 * handled. Asking again while a request waits is OK and makes no second one. Thread: loop, inside a
 * behavior. Errors: INVALID_ARG (called outside of a behavior), NO_MEMORY, STOPPING (the asking
 * actor is ending). */
JZX_API JZX_NODISCARD jzx_err jzx_notify_room(jzx_loop *loop, jzx_actor_id target);

#ifdef __cplusplus
}
#endif
#endif
