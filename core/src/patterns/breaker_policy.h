/* When a breaker opens and closes, and whether and when a call is tried again: pure decisions. No
 * clock, no memory but the caller's, no randomness but an argument. */
#ifndef JZI_BREAKER_POLICY_H
#define JZI_BREAKER_POLICY_H

#include <jzx/retry.h>

#include "base/backoff.h"

#include <stdbool.h>

#define JZI_NS_PER_MS UINT64_C(1000000)

/* --- the breaker --- */

enum { JZI_BREAKER_BUCKETS = 10 };

/* A jzx_breaker_opts with every default filled in. */
typedef struct jzi_breaker_rules {
    uint32_t window_calls; /* 0: by time */
    uint64_t bucket_ns;    /* 0: by count */
    uint32_t min_calls;
    uint32_t failure_percent;
    uint32_t probes;
    uint32_t max_calls;
    jzi_backoff open;
} jzi_breaker_rules;

/* Fills in defaults and checks. Errors: INVALID_ARG, TOO_BIG; then *out is unchanged. */
jzx_err jzi_breaker_rules_make(const jzx_breaker_opts *opts, jzi_breaker_rules *out);

typedef struct jzi_breaker_bucket {
    uint64_t number; /* which tenth of the window, counted from the clock's zero */
    uint32_t calls;
    uint32_t failures;
} jzi_breaker_bucket;

/* Invariants:
 *   I1  By count: failures of the window are those among its `filled` slots.
 *   I2  HALF_OPEN: probes_out + probes_ok <= rules->probes; probes_ok < rules->probes at rest.
 *   I3  The epoch changes with every change of state, so that a call that began in an earlier state
 *       decides nothing in this one. */
typedef struct jzi_breaker {
    const jzi_breaker_rules *rules;
    uint32_t state; /* jzx_breaker_state */
    uint32_t epoch;
    bool forced;
    uint32_t attempt; /* how often the circuit opened since it was last closed */
    uint32_t probes_out;
    uint32_t probes_ok;
    uint64_t since_ns; /* when the state began */
    uint64_t until_ns; /* OPEN: when that state ends */
    uint8_t *slots;    /* by count: the caller's, window_calls of them; 1: failed */
    uint32_t filled;
    uint32_t head; /* where the next one goes */
    uint32_t failures;
    jzi_breaker_bucket buckets[JZI_BREAKER_BUCKETS]; /* by time */
} jzi_breaker;

/* CLOSED. rules and slots are borrowed; slots may be NULL when the window goes by time. */
void jzi_breaker_init(jzi_breaker *breaker, const jzi_breaker_rules *rules, uint8_t *slots,
                      uint64_t now_ns);

typedef enum jzi_admission {
    JZI_ADMIT_PASS,
    JZI_ADMIT_PROBE,
    JZI_ADMIT_OPEN, /* refused: circuit open */
    JZI_ADMIT_BUSY  /* refused: max_calls are under way */
} jzi_admission;

/* Whether one more call may pass beside those under way. PASS and PROBE are followed by one
 * jzi_breaker_done() with the epoch of now. */
jzi_admission jzi_breaker_admit(jzi_breaker *breaker, uint32_t in_flight, uint64_t now_ns);

typedef enum jzi_call_result {
    JZI_CALL_OK,
    JZI_CALL_FAILED,
    JZI_CALL_VOID /* the call never took place */
} jzi_call_result;

/* A call that was admitted in that epoch is over. */
void jzi_breaker_done(jzi_breaker *breaker, uint32_t epoch, jzi_call_result result, uint64_t now_ns,
                      uint32_t random);
/* OPEN becomes HALF_OPEN when its time is over. */
void jzi_breaker_look(jzi_breaker *breaker, uint64_t now_ns);
/* order is a jzx_breaker_order_kind; others do nothing. */
void jzi_breaker_obey(jzi_breaker *breaker, uint32_t order, uint64_t now_ns);

/* Calls and failures the window holds now. */
void jzi_breaker_window(const jzi_breaker *breaker, uint64_t now_ns, uint32_t *out_calls,
                        uint32_t *out_failures);
/* What is left of OPEN, rounded up; 0 in other states, and when it is forced. */
uint32_t jzi_breaker_retry_after_ms(const jzi_breaker *breaker, uint64_t now_ns);

/* --- retries --- */

/* Thousandths of a retry. Invariant: tokens <= cap. */
typedef struct jzi_budget {
    uint64_t tokens;
    uint64_t cap;
    uint64_t per_call;
    uint64_t per_s;
    uint64_t filled_ns; /* up to when per_s was added, */
    uint64_t carry;     /* but for so many billionths of a thousandth */
    bool unlimited;
} jzi_budget;

/* Adds what time brought. The other two do so themselves. */
void jzi_budget_look(jzi_budget *budget, uint64_t now_ns);
void jzi_budget_add_call(jzi_budget *budget, uint64_t now_ns);
/* Takes one retry, if there is one. */
bool jzi_budget_take(jzi_budget *budget, uint64_t now_ns);

/* A jzx_retry_opts with every default filled in. */
typedef struct jzi_retry_rules {
    uint32_t max_attempts;
    uint32_t retry_on;
    uint32_t max_calls;
    jzi_backoff backoff;
    jzi_budget budget; /* full */
} jzi_retry_rules;

/* Fills in defaults and checks. Errors: INVALID_ARG, TOO_BIG; then *out is unchanged. */
jzx_err jzi_retry_rules_make(const jzx_retry_opts *opts, jzi_retry_rules *out);

/* An attempt that failed. */
typedef struct jzi_attempt {
    uint32_t number;      /* from 1 */
    uint32_t outcome;     /* jzx_outcome; REPLIED: by its reply */
    uint64_t deadline_ns; /* of the caller; 0: none */
    uint64_t wait_ns;     /* what the callee asked us to wait at least */
    uint32_t random;
} jzi_attempt;

typedef enum jzi_retry_kind {
    JZI_RETRY_AGAIN,    /* after delay_ns; costs one of the budget */
    JZI_RETRY_ENOUGH,   /* no attempt is left, or this outcome is not tried again */
    JZI_RETRY_NO_TIME,  /* the next one would begin at the caller's deadline or later */
    JZI_RETRY_NO_BUDGET /* others tried again too often */
} jzi_retry_kind;

typedef struct jzi_retry_verdict {
    uint32_t what; /* jzi_retry_kind */
    uint64_t delay_ns;
} jzi_retry_verdict;

jzi_retry_verdict jzi_retry_decide(const jzi_retry_rules *rules, jzi_budget *budget,
                                   const jzi_attempt *attempt, uint64_t now_ns);

/* --- what both say --- */

/* A failure as the integer that a JZX_TAG_CALL_FAILED carries, so that telling it needs no memory.
 */
uint64_t jzi_failure_pack(const jzx_call_failure *failure);
jzx_call_failure jzi_failure_unpack(uint64_t packed);

#endif
