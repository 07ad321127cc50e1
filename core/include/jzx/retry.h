/* Retry: an actor before another one that asks it again when it failed.
 *
 * Callers ask it as if it were the callee, and get the callee's reply, or a JZX_TAG_CALL_FAILED
 * (jzx/breaker.h) with what became of the last attempt. Between attempts it backs off. It does not
 * ask again beyond the caller's deadline, for a caller that does not wait any more, or when the
 * budget of all callers together is spent: retries must not become the load that keeps a callee
 * down. What it asks must be harmless to do twice.
 *
 * Before a breaker, not behind it: callers -> retry -> breaker -> callee.
 * docs/guide/patterns/breaker.md says why. */
#ifndef JZX_RETRY_H
#define JZX_RETRY_H

#include <jzx/breaker.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For jzx_retry_opts.retry_on: the bit of a jzx_outcome. */
#define JZX_RETRY_ON(outcome) (1u << (outcome))
/* All but REPLIED, CANCELLED and FORGOTTEN. */
#define JZX_RETRY_ON_DEFAULT                                                                       \
    (JZX_RETRY_ON(JZX_OUTCOME_TIMED_OUT) | JZX_RETRY_ON(JZX_OUTCOME_EXPIRED) |                     \
     JZX_RETRY_ON(JZX_OUTCOME_CALLEE_DIED) | JZX_RETRY_ON(JZX_OUTCOME_CALLEE_RESTARTED) |          \
     JZX_RETRY_ON(JZX_OUTCOME_NO_SUCH_ACTOR) | JZX_RETRY_ON(JZX_OUTCOME_MAILBOX_FULL) |            \
     JZX_RETRY_ON(JZX_OUTCOME_REFUSED))

#define JZX_RETRY_NONE UINT32_MAX            /* where 0 is the default: nothing at all */
#define JZX_RETRY_UNLIMITED (UINT32_MAX - 1) /* budget_percent: there is no budget */
#define JZX_RETRY_ATTEMPTS_MAX 65535u
#define JZX_RETRY_BUDGET_MAX 1000000u

/* Zero is the default everywhere, but `callee` or `find` is required. An attempt failed if its
 * outcome is not REPLIED, or if is_failure says so of its reply. A JZX_TAG_CALL_FAILED that comes
 * as a reply counts as the outcome in it, and its retry_after_ms is waited for. */
typedef struct jzx_retry_opts {
    jzx_actor_id callee; /* these five as in jzx_breaker_opts */
    jzx_actor_id (*find)(jzx_context *ctx, void *arg);
    int (*is_failure)(void *arg, const jzx_message *reply);
    void *arg;
    void (*drop_msg)(const jzx_message *msg);
    uint32_t max_attempts;   /* the first one included; 0: 3; at most JZX_RETRY_ATTEMPTS_MAX */
    uint32_t timeout_ms;     /* of one attempt; 0: 5,000. Never longer than the caller waits */
    uint32_t backoff_min_ms; /* before the second attempt; 0: 50; JZX_RETRY_NONE: at once */
    uint32_t backoff_max_ms; /* 0: 10,000, or backoff_min_ms if that is more */
    double backoff_factor;   /* each further delay is this much longer; 0: 2.0; at least 1 */
    double backoff_jitter;   /* delays vary by up to this part of themselves, 0 to 1; 0: none */
    uint64_t seed;           /* of the jitter; 0: from the actor's id and the clock */
    uint32_t retry_on; /* JZX_RETRY_ON() bits; 0: JZX_RETRY_ON_DEFAULT; JZX_RETRY_NONE: only */
                       /* replies that is_failure names */
    /* The budget is a bucket of retries, full at first. Each call adds budget_percent of one, each
     * second adds budget_per_s, each retry takes one; at most budget_burst fit in. */
    uint32_t budget_percent; /* 0: 20; JZX_RETRY_NONE; JZX_RETRY_UNLIMITED */
    uint32_t budget_per_s;   /* 0: 10; JZX_RETRY_NONE */
    uint32_t
        budget_burst;   /* 0: 10; JZX_RETRY_NONE; each of the three at most JZX_RETRY_BUDGET_MAX */
    uint32_t max_calls; /* under way at once; 0: 1,024; at most JZX_BREAKER_CALLS_MAX */
    const char *name;   /* these three as in jzx_spawn_opts; not for jzx_retry_child() */
    const char *dispatcher;
    uint32_t mailbox_cap;
    uint32_t reserved;
} jzx_retry_opts;

/* Makes one. opts is copied. Its parent is the running actor, else the root.
 *
 * A request is asked again as it was: an integer, a copy, or no data. Data with a `drop`, or that
 * belongs to its receiver, can be given away only once: such a call fails with NOT_SUPPORTED. A
 * reply that is_failure names is handed on as it is when there are no more attempts. Messages that
 * are no asks are passed on. Thread: loop. Errors: as jzx_retry_child(), NOT_RESTARTABLE (the
 * parent restarts its children: use jzx_retry_child() with a supervisor), as jzx_spawn() but
 * NOT_RESTARTABLE and INVALID_ARG and TOO_BIG. */
JZX_API JZX_NODISCARD jzx_err jzx_retry_spawn_sized(jzx_loop *loop, const jzx_retry_opts *opts,
                                                    size_t opts_size, jzx_actor_id *out_id);
static inline JZX_NODISCARD jzx_err jzx_retry_spawn(jzx_loop *loop, const jzx_retry_opts *opts,
                                                    jzx_actor_id *out_id)
{
    return jzx_retry_spawn_sized(loop, opts, sizeof *opts, out_id);
}

/* For supervisors, as jzx_breaker_child(). Thread: loop. Errors: INVALID_ARG (there is neither
 * `callee` nor `find`, or both; `backoff_max_ms` below `backoff_min_ms`; a factor below 1, a jitter
 * not between 0 and 1, a number that is not finite), TOO_BIG (`max_attempts` is above
 * JZX_RETRY_ATTEMPTS_MAX, `max_calls` above JZX_BREAKER_CALLS_MAX, or a number of the budget above
 * JZX_RETRY_BUDGET_MAX), NEWER_STRUCT, NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_retry_child_sized(jzx_loop *loop, const jzx_retry_opts *opts,
                                                    size_t opts_size, jzx_child_spec *spec);
static inline JZX_NODISCARD jzx_err jzx_retry_child(jzx_loop *loop, const jzx_retry_opts *opts,
                                                    jzx_child_spec *spec)
{
    return jzx_retry_child_sized(loop, opts, sizeof *opts, spec);
}

/* An ask with this tag is answered with the same tag and a jzx_retry_facts, borrowed for the call.
 */
#define JZX_TAG_RETRY_FACTS 0xFE050000u

/* Since it started, or was restarted. calls = successes + failures + refused + in_flight. */
typedef struct jzx_retry_facts {
    uint64_t calls;         /* asks that came */
    uint64_t successes;     /* got the callee's reply in the end */
    uint64_t failures;      /* the rest of those that were asked, unwanted ones included */
    uint64_t refused;       /* never asked: cannot be repeated, max_calls, no memory */
    uint64_t attempts;      /* asks to the callee */
    uint64_t retries;       /* of these, second ones and later */
    uint64_t no_budget;     /* calls that ended because the budget was spent */
    uint64_t no_time;       /* because the next attempt would be after the caller's deadline */
    uint64_t unwanted;      /* because the caller did not wait any more */
    uint64_t passed;        /* messages that are no asks: passed on, */
    uint64_t dropped;       /* and not */
    uint32_t budget_permil; /* what is in the bucket, in thousandths of a retry */
    uint32_t in_flight;     /* calls under way, backing off or asked */
} jzx_retry_facts;

#ifdef __cplusplus
}
#endif
#endif
