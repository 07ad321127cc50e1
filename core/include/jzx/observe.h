/* Looking at a loop: callbacks, dead letters, counters, actor facts. The library prints
 * nothing, unless jzx/log.h is asked to. */
#ifndef JZX_OBSERVE_H
#define JZX_OBSERVE_H

#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why an accepted message was not handled. */
typedef enum jzx_dead_reason {
    JZX_DEAD_STOPPED = 0,        /* its target ended first */
    JZX_DEAD_EXPIRED = 1,        /* its deadline passed */
    JZX_DEAD_DROPPED_NEWEST = 2, /* full mailbox, policy DROP_NEWEST */
    JZX_DEAD_DROPPED_OLDEST = 3, /* full mailbox, policy DROP_OLDEST */
    JZX_DEAD_LOOP_CLOSED = 4,    /* the loop was destroyed */
    JZX_DEAD_RESTARTED = 5,      /* its target restarted, with JZX_SPAWN_DROP_QUEUE */
    JZX_DEAD_DROPPED = 6,        /* drain policy DROP: counted only */
    JZX_DEAD_CANCELLED = 7,      /* an ask: its asker does not wait any more */
    JZX_DEAD_DISCARDED = 8,      /* jzx_discard() */
    JZX_DEAD_FAILED_ON = 9,      /* its target failed on it, and is not given it again */
    JZX_DEAD_POISON = 10,        /* with JZX_SPAWN_REDELIVER: failed on more often than allowed */
    JZX_DEAD_REASONS = 11
} jzx_dead_reason;

/* Room for reasons that later versions add. */
#define JZX_REASON_SLOTS 16

/* The facts of a dead letter, not its payload (R21). */
typedef struct jzx_dead_letter {
    uint64_t seq; /* 1, 2, 3, ... */
    uint64_t time_ns;
    jzx_actor_id target;
    jzx_actor_id sender;
    uint64_t len;
    uint32_t tag;
    uint8_t kind;   /* jzx_kind */
    uint8_t reason; /* jzx_dead_reason */
    uint16_t reserved;
} jzx_dead_letter;

/* "stopped", "expired", ... Never NULL. Thread: any. */
JZX_API const char *jzx_dead_reason_name(uint32_t reason);

/* Reads remembered dead letters: those after *cursor, oldest first, at most cap; moves *cursor
 * (start with 0). *out_lagged counts the ones that were overwritten before they could be read.
 * Returns how many were read. out_lagged may be NULL. In a system every dispatcher reads those of
 * all, which are one sequence whose times never go back. Thread: loop. */
JZX_API size_t jzx_dead_letters_read_sized(jzx_loop *loop, uint64_t *cursor, jzx_dead_letter *out,
                                           size_t letter_size, size_t cap, uint64_t *out_lagged);
static inline size_t jzx_dead_letters_read(jzx_loop *loop, uint64_t *cursor, jzx_dead_letter *out,
                                           size_t cap, uint64_t *out_lagged)
{
    return jzx_dead_letters_read_sized(loop, cursor, out, sizeof *out, cap, out_lagged);
}

/* A restart, told when the new incarnation begins to start. Borrowed for the call. */
typedef struct jzx_restart_event {
    jzx_actor_id id;
    jzx_actor_id supervisor;
    const char *name;
    const jzx_reason *cause; /* of a sibling that one_for_all takes along, and of one that */
                             /* jzx_restart() asked for: SHUTDOWN */
    uint64_t uptime_ns;      /* of the incarnation that ended */
    uint32_t attempt;        /* 1, 2, ...: failures in a row; 0 for these two */
    uint32_t incarnation;    /* of the one that starts: 2, 3, ... */
    uint32_t delay_ms;       /* how long it backed off */
    uint32_t reserved;
} jzx_restart_event;

/* A supervisor, or a parent with a policy, fails because of a child. Borrowed for the call. */
typedef struct jzx_escalation_event {
    jzx_actor_id supervisor;
    jzx_actor_id child;
    const char *supervisor_name;
    const char *child_name;
    const jzx_reason *cause; /* the child's */
    uint32_t reason;         /* the supervisor's: JZX_REASON_GAVE_UP or JZX_REASON_ESCALATED */
    uint32_t restarts;       /* within the period, when it gave up */
} jzx_escalation_event;

/* An incarnation failed. Borrowed for the call. */
typedef struct jzx_failure_event {
    jzx_actor_id id;
    jzx_actor_id parent; /* JZX_NOBODY: the root */
    const char *name;
    const jzx_reason *reason;
    uint64_t time_ns;        /* on the loop's clock */
    jzx_failed_on failed_on; /* what it had in hand */
    uint32_t incarnation;
    uint32_t state; /* jzx_state in which it failed: STARTING for a start that failed */
} jzx_failure_event;

/* An actor moved from one state to the next: a cell of jzx_lifecycle_next(). Borrowed for the call.
 */
typedef struct jzx_transition_event {
    jzx_actor_id id;
    const char *name;
    uint64_t time_ns; /* on the loop's clock, as read last */
    uint32_t from;    /* jzx_state */
    uint32_t to;
    uint32_t incarnation;
    uint32_t reserved;
} jzx_transition_event;

/* Callbacks, on the thread of the event (or of "loop": see jzx_system_set_observer()); any may be
 * NULL. They may read counters and use jzx_send_async(), nothing else. Keep them short: a pool
 * holds its lock meanwhile, so that they are told things in their order; take no lock in them under
 * which others call the library. */
typedef struct jzx_observer {
    /* It is RUNNING for the first time: init, PRE_START and POST_START are done. An actor that has
     * none of them runs from its birth, so this comes inside jzx_spawn(), or on its dispatcher's
     * thread. The name is "" if there is none. An actor that cannot start is never told here: its
     * on_actor_fail says START_FAILED. */
    void (*on_actor_start)(void *ctx, jzx_actor_id id, const char *name);
    /* After any end, also by jzx_loop_destroy() and of an actor that never started; the id no
     * longer resolves. */
    void (*on_actor_stop)(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason);
    /* The short forms of on_restart and on_escalate. */
    void (*on_actor_restart)(void *ctx, jzx_actor_id id, int attempt);
    void (*on_supervisor_escalate)(void *ctx, jzx_actor_id id);
    /* Once per run of refusals. A refusal of another thread or dispatcher is told when the actor's
     * own dispatcher next takes in what was sent. */
    void (*on_mailbox_full)(void *ctx, jzx_actor_id id);
    void (*on_loop_start)(void *ctx); /* jzx_loop_run() begins */
    void (*on_loop_stop)(void *ctx);  /* and returns */
    /* The message is borrowed for the call and released afterwards. */
    void (*on_dead_letter)(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg);
    /* An incarnation failed, whatever follows: before the parent decides. Also a failure in a hook
     * of an actor that is stopping. */
    void (*on_actor_fail)(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason);
    void (*on_restart)(void *ctx, const jzx_restart_event *event);
    void (*on_escalate)(void *ctx, const jzx_escalation_event *event);
    /* The long form of on_actor_fail, and before it. */
    void (*on_failure)(void *ctx, const jzx_failure_event *event);
    /* Every transition of every actor, when it was made. What leaves CREATED is the
     * first, what leads to TERMINATED the last. */
    void (*on_transition)(void *ctx, const jzx_transition_event *event);
    /* It has an id and a mailbox, and init has not run: inside jzx_spawn(), or on its dispatcher's
     * thread. on_actor_stop is told for each of these once. */
    void (*on_actor_spawn)(void *ctx, jzx_actor_id id, const char *name);
} jzx_observer;

/* The struct is copied; NULL removes the observer. Thread: loop. Errors: INVALID_ARG,
 * NEWER_STRUCT. */
JZX_API jzx_err jzx_loop_set_observer_sized(jzx_loop *loop, const jzx_observer *observer,
                                            size_t observer_size, void *ctx);
static inline jzx_err jzx_loop_set_observer(jzx_loop *loop, const jzx_observer *observer, void *ctx)
{
    return jzx_loop_set_observer_sized(loop, observer, sizeof *observer, ctx);
}

/* Why a send was refused, as an index. */
typedef enum jzx_refused_reason {
    JZX_REFUSED_NO_SUCH_ACTOR = 0,
    JZX_REFUSED_STOPPING = 1,
    JZX_REFUSED_FULL = 2,
    JZX_REFUSED_NO_MEMORY = 3,
    JZX_REFUSED_INVALID = 4, /* reserved tag, bad flags, too big */
    JZX_REFUSED_LOOP_CLOSED = 5,
    JZX_REFUSED_REASONS = 6
} jzx_refused_reason;

/* Totals since the loop was created. Conservation (R5), exact at rest:
 *   accepted = handled + dead + redirected + revoked + queued + in_hand
 * for user and event messages. Each is counted where it happens. */
typedef struct jzx_counters {
    uint64_t accepted;
    uint64_t handled; /* given to a behavior; but for those it failed on, which are dead */
    uint64_t dead;
    uint64_t redirected;
    uint64_t revoked; /* events that were cancelled while queued, or whose actor ended */
    uint64_t queued;  /* now */
    uint64_t in_hand; /* now: 1 inside a behavior that was given a message */
    uint64_t dead_by[JZX_REASON_SLOTS]; /* by jzx_dead_reason */
    uint64_t refused[JZX_REASON_SLOTS]; /* by jzx_refused_reason */
    uint64_t abandoned;                 /* dead messages whose data could not be released */
    uint64_t commands;                  /* stops and kills asked for */
    uint64_t async_sent;                /* accepted from other threads, counted by them */
    uint64_t async_arrived;             /* taken in by the loop */
    uint64_t spawned;
    uint64_t ended;
    uint64_t live;   /* actors now */
    uint64_t timers; /* armed now */
    uint64_t refs;   /* I/O references now */
    uint64_t ticks;
    uint64_t turns;
    uint64_t polls;        /* looks at the poller, waiting or not */
    uint64_t wakeups;      /* waits that ended */
    uint64_t wakes_sent;   /* wake-up calls that other threads had to make */
    uint64_t failures;     /* incarnations that failed */
    uint64_t restarts;     /* incarnations that began to start again */
    uint64_t escalations;  /* supervisors that gave up or escalated */
    uint64_t watches;      /* jzx_watch() and jzx_link() now; a link counts one */
    uint64_t asks;         /* jzx_ask() by actors */
    uint64_t replies;      /* given to askers */
    uint64_t late_replies; /* of these, whose askers did not wait any more */
} jzx_counters;

/* Fills in *out without stopping the loop; each number is right for some recent moment. A smaller
 * out_size fills in that much. Thread: any, while the loop exists. */
JZX_API void jzx_loop_counters_sized(jzx_loop *loop, jzx_counters *out, size_t out_size);
static inline void jzx_loop_counters(jzx_loop *loop, jzx_counters *out)
{
    jzx_loop_counters_sized(loop, out, sizeof *out);
}

/* What is known of one actor. */
typedef struct jzx_actor_facts {
    jzx_actor_id id;
    jzx_actor_id parent;
    uint32_t mailbox_cap;
    uint32_t ordinary; /* ordinary messages queued */
    uint32_t urgent;
    uint32_t events;   /* timers, I/O, notices queued */
    uint32_t accepted; /* these six: modulo 2^32, conserved as in jzx_counters */
    uint32_t handled;
    uint32_t dead;
    uint32_t revoked;
    uint32_t queued;
    uint32_t in_hand;
    uint32_t stopping; /* 1 after jzx_stop() */
    uint32_t state;    /* jzx_state */
    char name[48];
    uint32_t incarnation;
    uint32_t children; /* alive now */
    uint32_t redirected;
    uint32_t stashed; /* in the stash; part of `queued` */
} jzx_actor_facts;

/* Thread: loop. Errors: INVALID_ARG, NO_SUCH_ACTOR, WRONG_DISPATCHER (the actor runs on another
 * dispatcher). */
JZX_API JZX_NODISCARD jzx_err jzx_actor_inspect_sized(jzx_loop *loop, jzx_actor_id id,
                                                      jzx_actor_facts *out, size_t out_size);
static inline JZX_NODISCARD jzx_err jzx_actor_inspect(jzx_loop *loop, jzx_actor_id id,
                                                      jzx_actor_facts *out)
{
    return jzx_actor_inspect_sized(loop, id, out, sizeof *out);
}

/* Messages that wait at an actor, on any dispatcher, stashed ones included. UINT32_MAX: there is no
 * such actor. A moment's number. Thread: any, while the loop exists. */
JZX_API uint32_t jzx_mailbox_depth(jzx_loop *loop, jzx_actor_id id);

/* Walks every mailbox, recounts what is queued and checks every term of R5 for each actor and for
 * the loop, and the invariants of the structures behind them. Returns NULL when all is well, else a
 * sentence that stays valid until the next call. Takes time in proportion to what is alive.
 * Thread: loop, at rest or inside a behavior. */
JZX_API const char *jzx_loop_audit(jzx_loop *loop);

#ifdef __cplusplus
}
#endif
#endif
