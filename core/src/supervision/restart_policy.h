/* Whether, when and how a child is restarted: pure decisions (R19). No clock, no memory but the
 * caller's, no randomness but an argument. */
#ifndef JZI_RESTART_POLICY_H
#define JZI_RESTART_POLICY_H

#include <jzx/supervisor.h>

#include "actor/life_table.h"
#include "base/backoff.h"

#include <stdbool.h>

/* A jzx_supervisor_spec with every default filled in. */
typedef struct jzi_policy {
    uint32_t strategy;
    uint32_t intensity; /* 0: not even one restart */
    bool unlimited;     /* there is no shared limit: each child has one of its own */
    uint32_t action;
    uint32_t on_limit;
    uint32_t auto_shutdown;
    uint64_t period_ns;
    jzi_backoff backoff;
    uint64_t backoff_reset_ns;
    jzx_action (*decide)(void *decide_ctx, const jzx_failure *failure);
    void *decide_ctx;
} jzi_policy;

/* What a child may say about its delays itself; what is 0 is its parent's. */
typedef struct jzi_child_backoff {
    uint32_t min_ms; /* JZX_BACKOFF_NONE: no delay */
    uint32_t max_ms;
    uint32_t reset_ms;
    double factor;
    double jitter;
} jzi_child_backoff;

/* What is wrong with a backoff, in a sentence (a literal); NULL: nothing. */
const char *jzi_child_backoff_wrong(const jzi_child_backoff *backoff);
/* The policy as it is for a child with a backoff of its own. */
jzi_policy jzi_policy_with(const jzi_policy *policy, const jzi_child_backoff *own);

/* Fills in defaults and checks. NULL is all defaults. *out_why names the field that is wrong, in a
 * sentence (a literal), or is "". Errors: BAD_SPEC, TOO_BIG (intensity); then *out is unchanged. */
jzx_err jzi_policy_make(const jzx_supervisor_spec *spec, jzi_policy *out, const char **out_why);

/* The last restarts: a ring of as many stamps as are allowed, so that the test looks at one of
 * them.
 *
 * Invariants:
 *   I1  count <= cap; the oldest stamp is at (head - count) mod cap.
 *   I2  Stamps do not decrease. */
typedef struct jzi_window {
    uint64_t *stamps; /* the caller's, cap entries; NULL with cap 0 */
    uint32_t cap;     /* the intensity */
    uint32_t count;
    uint32_t head; /* where the next one goes */
} jzi_window;

/* Whether one more restart now would be over the limit: `cap` of them happened at or after
 * now - period (a stamp exactly `period` old still counts). cap 0: always. */
bool jzi_window_is_full(const jzi_window *window, uint64_t now_ns, uint64_t period_ns);
/* Remembers a restart; the oldest makes room. cap 0: nothing. */
void jzi_window_add(jzi_window *window, uint64_t now_ns);
/* How many happened within the period. */
uint32_t jzi_window_within(const jzi_window *window, uint64_t now_ns, uint64_t period_ns);
/* Moves what fits, the newest, into another ring (a changed intensity). */
void jzi_window_copy(jzi_window *to, const jzi_window *from);

typedef enum jzi_verdict_kind {
    JZI_VERDICT_RESTART, /* after delay_ns; costs one */
    JZI_VERDICT_RESUME,
    JZI_VERDICT_STOP,     /* the child ends */
    JZI_VERDICT_STOP_ALL, /* the child and all its siblings end */
    JZI_VERDICT_ESCALATE, /* the parent fails with ESCALATED */
    JZI_VERDICT_GIVE_UP   /* the parent fails with GAVE_UP */
} jzi_verdict_kind;

/* What is known of the child. */
typedef struct jzi_case {
    uint32_t mode;         /* jzx_restart_mode */
    uint32_t reason;       /* jzx_reason_kind */
    uint32_t action;       /* what the decider said; any value */
    uint32_t attempt;      /* failures in a row before this one */
    uint64_t up_since_ns;  /* when the child was last RUNNING; 0: not since the last attempt */
    const jzi_window *own; /* the child's own budget, or NULL */
    uint64_t own_period_ns;
    uint32_t random; /* for the jitter, uniform over all values */
} jzi_case;

typedef struct jzi_verdict {
    uint32_t what;    /* jzi_verdict_kind */
    uint32_t attempt; /* failures in a row with this one */
    uint64_t delay_ns;
    bool over; /* a restart was wanted, and a limit is reached */
} jzi_verdict;

/* The decision. Pure: a caller that obeys a RESTART adds to the windows.
 *   - A normal reason is never given to the action: RESTART if the mode wants it, else STOP.
 *   - Actions out of range: ESCALATE. RESUME after START_FAILED, KILLED or CRASH: RESTART.
 *   - STOP under one_for_all: STOP_ALL. Other strategies say which children restart, not which end.
 *   - RESTART of what the mode does not want (temporary): STOP.
 *   - Over the shared or the child's own limit: on_limit decides, GIVE_UP or STOP.
 *   - delay = min * factor^(attempt - 1), jittered, never above max, 0 if min is 0.
 *   - attempt starts over at 1 when the child was up for backoff_reset_ns. */
jzi_verdict jzi_policy_decide(const jzi_policy *policy, const jzi_window *shared,
                              const jzi_case *it, uint64_t now_ns);

#endif
