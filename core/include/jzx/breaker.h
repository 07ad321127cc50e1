/* A circuit breaker: an actor before another one that stops asking it while it fails.
 *
 * Callers ask the breaker as if it were the callee. CLOSED, it asks the callee and hands the answer
 * on. When too many of the last calls failed it is OPEN and answers at once, without troubling the
 * callee. After a while it is HALF_OPEN: a few probes go through, and how they end decides.
 *
 *     CLOSED ---- failures over the limit ----> OPEN <---- a probe failed ----+
 *       ^                                        |                            |
 *       |                                        +--- its time is over ---> HALF_OPEN
 *       +---------------------- all probes succeeded --------------------------+
 *
 * No timer runs: an OPEN breaker whose time is over is HALF_OPEN when it is asked next. A restart
 * makes it CLOSED and forgets what it counted. docs/guide/patterns/breaker.md says more. */
#ifndef JZX_BREAKER_H
#define JZX_BREAKER_H

#include <jzx/actor.h>
#include <jzx/ask.h>
#include <jzx/supervisor.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What breakers and retries (jzx/retry.h) reply instead of the callee. */
#define JZX_TAG_CALL_FAILED 0xFE040000u

/* Why there is no answer of the callee. */
typedef struct jzx_call_failure {
    int32_t err;             /* jzx_err: CIRCUIT_OPEN; BUSY (max_calls are under way); NO_BUDGET; */
                             /* NOT_SUPPORTED (cannot be asked twice); NO_MEMORY; else as outcome */
    uint32_t outcome;        /* jzx_outcome of the last ask; REFUSED if the callee was not asked */
    uint32_t attempts;       /* how often the callee was asked */
    uint32_t retry_after_ms; /* CIRCUIT_OPEN: it lets no call through before */
} jzx_call_failure;

/* 1: the message says that a call failed, and *out says why: a JZX_TAG_CALL_FAILED reply, or the
 * JZX_TAG_ASK_FAILED of the ask itself (then attempts is 0). 0: it is the callee's reply, or no
 * reply at all. out may be NULL. Thread: any. */
JZX_API int jzx_call_failed(const jzx_message *msg, jzx_call_failure *out);

typedef enum jzx_breaker_state {
    JZX_BREAKER_CLOSED = 0,
    JZX_BREAKER_OPEN = 1,
    JZX_BREAKER_HALF_OPEN = 2
} jzx_breaker_state;
/* "closed", "open", "half-open". Never NULL. Thread: any. */
JZX_API const char *jzx_breaker_state_name(uint32_t state);

#define JZX_BREAKER_WINDOW_MAX 65536u
#define JZX_BREAKER_CALLS_MAX 1048576u

/* Zero is the default everywhere, but `callee` or `find` is required. A call failed if its outcome
 * is not REPLIED, if its reply is a JZX_TAG_CALL_FAILED, if is_failure says so, or if it was slow.
 * Errors on this side of the callee (no memory) are told to the caller and not counted. */
typedef struct jzx_breaker_opts {
    jzx_actor_id callee;
    jzx_actor_id (*find)(jzx_context *ctx, void *arg); /* instead: names the callee, call by call */
    int (*is_failure)(void *arg, const jzx_message *reply); /* borrows; calls no jzx_ function */
    void *arg; /* for these two; borrowed until the breaker ended */
    /* Releases data without `drop` that no actor gets: requests refused, replies to callers that
     * are gone. As in jzx_spawn_opts. Without it such data is lost. */
    void (*drop_msg)(const jzx_message *msg);
    jzx_actor_id listener; /* 0, or the actor that gets a JZX_TAG_BREAKER_STATE for every change */
    uint32_t timeout_ms;   /* of one call; 0: 5,000. Never longer than the caller waits */
    uint32_t slow_ms;      /* a reply that took longer counts as a failure; 0: none does */
    uint32_t window_calls; /* how many of the last calls are looked at; 0: 20 */
    uint32_t window_ms;    /* instead: calls of this time are looked at, in tenths of it */
    uint32_t min_calls;    /* fewer than that open nothing; 0: 10, at most window_calls */
    uint32_t failure_percent; /* as many failures among them open it, 1 to 100; 0: 50 */
    uint32_t open_ms;         /* how long it stays open the first time; 0: 5,000 */
    uint32_t open_max_ms;     /* and at most, when probes fail again and again; 0: open_ms */
    uint32_t probes;          /* successes that close it again, tried side by side; 0: 1 */
    uint32_t max_calls;       /* under way at once; 0: 1,024; at most JZX_BREAKER_CALLS_MAX */
    double open_factor;       /* each failed probe makes the next time this much longer; 0: 2.0 */
    double open_jitter;       /* times vary by up to this part of themselves, 0 to 1; 0: none */
    uint64_t seed;            /* of the jitter; 0: from the actor's id and the clock */
    const char *name;         /* these three as in jzx_spawn_opts; not for jzx_breaker_child() */
    const char *dispatcher;
    uint32_t mailbox_cap;
    uint32_t reserved;
} jzx_breaker_opts;

/* Makes a breaker. opts is copied. Its parent is the running actor, else the root. Messages that
 * are no asks are passed on uncounted while it is CLOSED, and dropped otherwise. Thread: loop.
 * Errors: as jzx_breaker_child(), NOT_RESTARTABLE (the parent restarts its children: use
 * jzx_breaker_child() with a supervisor), as jzx_spawn() but NOT_RESTARTABLE and INVALID_ARG and
 * TOO_BIG. */
JZX_API JZX_NODISCARD jzx_err jzx_breaker_spawn_sized(jzx_loop *loop, const jzx_breaker_opts *opts,
                                                      size_t opts_size, jzx_actor_id *out_id);
static inline JZX_NODISCARD jzx_err jzx_breaker_spawn(jzx_loop *loop, const jzx_breaker_opts *opts,
                                                      jzx_actor_id *out_id)
{
    return jzx_breaker_spawn_sized(loop, opts, sizeof *opts, out_id);
}

/* For supervisors: fills in behavior, init, deinit, arg, drop_arg and drop_msg of a spec whose id
 * and other fields are the caller's. arg is a copy of opts, and the caller's until a call takes the
 * spec: a spec that is not used after all is released by spec->drop_arg(spec->arg), before the loop
 * is destroyed. Thread: loop. Errors: INVALID_ARG (there is neither `callee` nor `find`, or both;
 * both kinds of window; `min_calls` above `window_calls`; `failure_percent` above 100;
 * `open_max_ms` below `open_ms`; a factor below 1, a jitter not between 0 and 1, a number that is
 * not finite), TOO_BIG (`window_calls` is above JZX_BREAKER_WINDOW_MAX, or `max_calls` above
 * JZX_BREAKER_CALLS_MAX), NEWER_STRUCT, NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_breaker_child_sized(jzx_loop *loop, const jzx_breaker_opts *opts,
                                                      size_t opts_size, jzx_child_spec *spec);
static inline JZX_NODISCARD jzx_err jzx_breaker_child(jzx_loop *loop, const jzx_breaker_opts *opts,
                                                      jzx_child_spec *spec)
{
    return jzx_breaker_child_sized(loop, opts, sizeof *opts, spec);
}

/* To the listener: the new state is in u64, the breaker is the sender. Lost if it has no room. */
#define JZX_TAG_BREAKER_STATE 0xFE040001u

typedef enum jzx_breaker_order_kind {
    JZX_BREAKER_RESET = 1,       /* CLOSED, with nothing counted; ends the two below */
    JZX_BREAKER_FORCE_OPEN = 2,  /* and stays so; retry_after_ms is 0 */
    JZX_BREAKER_FORCE_CLOSED = 3 /* and stays so, whatever happens */
} jzx_breaker_order_kind;

/* Tells a breaker what to do, by an urgent message. Thread: loop. Errors: INVALID_ARG (`order` is
 * unknown), as jzx_send() but INVALID_ARG and RESERVED_TAG. */
JZX_API JZX_NODISCARD jzx_err jzx_breaker_order(jzx_loop *loop, jzx_actor_id breaker,
                                                uint32_t order);

/* An ask with this tag is answered with the same tag and a jzx_breaker_facts, borrowed for the
 * call. It is no call: no state keeps it from being answered. */
#define JZX_TAG_BREAKER_FACTS 0xFE040002u

/* Since the breaker started, or was restarted.
 * calls = successes + failures + short_circuited + busy + errors + in_flight. */
typedef struct jzx_breaker_facts {
    uint64_t calls;           /* asks that came */
    uint64_t successes;       /* these two: by what the callee made of it, in whatever state */
    uint64_t failures;        /* slow ones included */
    uint64_t slow;            /* replies later than slow_ms */
    uint64_t short_circuited; /* refused: not CLOSED */
    uint64_t busy;            /* refused: max_calls were under way */
    uint64_t errors;          /* neither: no memory */
    uint64_t probes;          /* calls let through in HALF_OPEN */
    uint64_t opened;          /* how often it opened */
    uint64_t passed;          /* messages that are no asks: passed on, */
    uint64_t dropped;         /* and not */
    uint64_t since_ns;        /* when the present state began */
    uint32_t state;           /* jzx_breaker_state */
    uint32_t forced;          /* 1: by an order */
    uint32_t in_flight;       /* calls under way */
    uint32_t retry_after_ms;  /* OPEN: what is left of it */
    uint32_t window_calls;    /* looked at now */
    uint32_t window_failures; /* of these */
} jzx_breaker_facts;

#ifdef __cplusplus
}
#endif
#endif
