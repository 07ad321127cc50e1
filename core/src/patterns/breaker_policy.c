#include "patterns/breaker_policy.h"

#include "base/assert.h"

#include <string.h>

enum {
    WINDOW_CALLS = 20,
    MIN_CALLS = 10,
    FAILURE_PERCENT = 50,
    OPEN_MS = 5000,
    PROBES = 1,
    CALLS = 1024,
    ATTEMPTS = 3,
    BACKOFF_MIN_MS = 50,
    BACKOFF_MAX_MS = 10000,
    BUDGET_PERCENT = 20,
    BUDGET_PER_S = 10,
    BUDGET_BURST = 10,
};
#define FACTOR 2.0
#define PER_RETRY UINT64_C(1000) /* thousandths */
#define NS_PER_S UINT64_C(1000000000)

static uint32_t value_or(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

/* --- the breaker --- */

static jzx_err check_breaker(const jzx_breaker_opts *opts, uint32_t min_calls)
{
    bool one_callee = (opts->callee != JZX_NOBODY) != (opts->find != NULL);
    bool two_windows = opts->window_calls != 0 && opts->window_ms != 0;
    bool cannot_fill =
        opts->window_ms == 0 && min_calls > value_or(opts->window_calls, WINDOW_CALLS);
    bool shrinks = opts->open_max_ms != 0 && opts->open_max_ms < value_or(opts->open_ms, OPEN_MS);
    if (!one_callee || two_windows || cannot_fill || shrinks || opts->failure_percent > 100 ||
        jzi_backoff_wrong(opts->open_factor, opts->open_jitter) != NULL || opts->reserved != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    if (opts->window_calls > JZX_BREAKER_WINDOW_MAX || opts->max_calls > JZX_BREAKER_CALLS_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    return JZX_OK;
}

jzx_err jzi_breaker_rules_make(const jzx_breaker_opts *opts, jzi_breaker_rules *out)
{
    uint32_t window = opts->window_ms != 0 ? 0 : value_or(opts->window_calls, WINDOW_CALLS);
    uint32_t most = window != 0 && window < MIN_CALLS ? window : MIN_CALLS;
    uint32_t min_calls = value_or(opts->min_calls, most);
    jzx_err err = check_breaker(opts, min_calls);
    if (err != JZX_OK) {
        return err;
    }
    uint32_t open_ms = value_or(opts->open_ms, OPEN_MS);
    *out = (jzi_breaker_rules){
        .window_calls = window,
        .bucket_ns = opts->window_ms * JZI_NS_PER_MS / JZI_BREAKER_BUCKETS,
        .min_calls = min_calls,
        .failure_percent = value_or(opts->failure_percent, FAILURE_PERCENT),
        .probes = value_or(opts->probes, PROBES),
        .max_calls = value_or(opts->max_calls, CALLS),
        .open = {.min_ns = open_ms * JZI_NS_PER_MS,
                 .max_ns = value_or(opts->open_max_ms, open_ms) * JZI_NS_PER_MS,
                 .factor = opts->open_factor == 0 ? FACTOR : opts->open_factor,
                 .jitter = opts->open_jitter},
    };
    return JZX_OK;
}

static void forget_window(jzi_breaker *breaker)
{
    breaker->filled = breaker->head = breaker->failures = 0;
    memset(breaker->buckets, 0, sizeof breaker->buckets);
}

/* The one place that assigns the state. */
static void move_to(jzi_breaker *breaker, jzx_breaker_state state, uint64_t now_ns)
{
    breaker->state = state;
    breaker->epoch++;
    breaker->since_ns = now_ns;
    breaker->until_ns = 0;
    breaker->probes_out = breaker->probes_ok = 0;
    if (state == JZX_BREAKER_CLOSED) {
        breaker->attempt = 0;
        forget_window(breaker);
    }
}

static void open_for_a_while(jzi_breaker *breaker, uint64_t now_ns, uint32_t random)
{
    move_to(breaker, JZX_BREAKER_OPEN, now_ns);
    breaker->attempt += breaker->attempt < UINT32_MAX ? 1 : 0;
    breaker->until_ns = now_ns + jzi_backoff_delay(&breaker->rules->open, breaker->attempt, random);
}

void jzi_breaker_init(jzi_breaker *breaker, const jzi_breaker_rules *rules, uint8_t *slots,
                      uint64_t now_ns)
{
    *breaker = (jzi_breaker){.rules = rules, .slots = slots};
    move_to(breaker, JZX_BREAKER_CLOSED, now_ns);
}

void jzi_breaker_look(jzi_breaker *breaker, uint64_t now_ns)
{
    if (breaker->state == JZX_BREAKER_OPEN && !breaker->forced && now_ns >= breaker->until_ns) {
        move_to(breaker, JZX_BREAKER_HALF_OPEN, now_ns);
    }
}

jzi_admission jzi_breaker_admit(jzi_breaker *breaker, uint32_t in_flight, uint64_t now_ns)
{
    jzi_breaker_look(breaker, now_ns);
    const jzi_breaker_rules *rules = breaker->rules;
    bool probing = breaker->state == JZX_BREAKER_HALF_OPEN;
    /* Successes count against the limit too: no more probes than can matter. */
    if (breaker->state == JZX_BREAKER_OPEN ||
        (probing && breaker->probes_out + breaker->probes_ok >= rules->probes)) {
        return JZI_ADMIT_OPEN;
    }
    if (in_flight >= rules->max_calls) {
        return JZI_ADMIT_BUSY;
    }
    if (!probing) {
        return JZI_ADMIT_PASS;
    }
    breaker->probes_out++;
    return JZI_ADMIT_PROBE;
}

static void count_in_ring(jzi_breaker *breaker, bool failed)
{
    uint32_t cap = breaker->rules->window_calls;
    if (breaker->filled == cap) {
        breaker->failures -= breaker->slots[breaker->head];
    } else {
        breaker->filled++;
    }
    breaker->slots[breaker->head] = failed ? 1 : 0;
    breaker->failures += failed ? 1 : 0;
    breaker->head = breaker->head + 1 == cap ? 0 : breaker->head + 1;
}

static void count_in_bucket(jzi_breaker *breaker, bool failed, uint64_t now_ns)
{
    uint64_t number = now_ns / breaker->rules->bucket_ns;
    jzi_breaker_bucket *bucket = &breaker->buckets[number % JZI_BREAKER_BUCKETS];
    if (bucket->number != number) {
        *bucket = (jzi_breaker_bucket){.number = number};
    }
    bucket->calls++;
    bucket->failures += failed ? 1 : 0;
}

void jzi_breaker_window(const jzi_breaker *breaker, uint64_t now_ns, uint32_t *out_calls,
                        uint32_t *out_failures)
{
    if (breaker->rules->bucket_ns == 0) {
        *out_calls = breaker->filled;
        *out_failures = breaker->failures;
        return;
    }
    uint64_t number = now_ns / breaker->rules->bucket_ns;
    *out_calls = *out_failures = 0;
    for (size_t i = 0; i < JZI_BREAKER_BUCKETS; i++) {
        const jzi_breaker_bucket *bucket = &breaker->buckets[i];
        if (number - bucket->number < JZI_BREAKER_BUCKETS) {
            *out_calls += bucket->calls;
            *out_failures += bucket->failures;
        }
    }
}

static void done_while_closed(jzi_breaker *breaker, bool failed, uint64_t now_ns, uint32_t random)
{
    if (breaker->rules->bucket_ns == 0) {
        count_in_ring(breaker, failed);
    } else {
        count_in_bucket(breaker, failed, now_ns);
    }
    uint32_t calls;
    uint32_t failures;
    jzi_breaker_window(breaker, now_ns, &calls, &failures);
    bool over = calls >= breaker->rules->min_calls &&
                (uint64_t)failures * 100 >= (uint64_t)calls * breaker->rules->failure_percent;
    if (over && !breaker->forced) {
        open_for_a_while(breaker, now_ns, random);
    }
}

static void probe_is_over(jzi_breaker *breaker, jzi_call_result result, uint64_t now_ns,
                          uint32_t random)
{
    jzi_assert(breaker->probes_out > 0);
    breaker->probes_out--;
    if (result == JZI_CALL_FAILED) {
        open_for_a_while(breaker, now_ns, random);
        return;
    }
    breaker->probes_ok += result == JZI_CALL_OK ? 1 : 0;
    if (breaker->probes_ok == breaker->rules->probes) {
        move_to(breaker, JZX_BREAKER_CLOSED, now_ns);
    }
}

void jzi_breaker_done(jzi_breaker *breaker, uint32_t epoch, jzi_call_result result, uint64_t now_ns,
                      uint32_t random)
{
    if (epoch != breaker->epoch) {
        return;
    }
    jzi_assert(breaker->state != JZX_BREAKER_OPEN);
    if (breaker->state == JZX_BREAKER_HALF_OPEN) {
        probe_is_over(breaker, result, now_ns, random);
    } else if (result != JZI_CALL_VOID) {
        done_while_closed(breaker, result == JZI_CALL_FAILED, now_ns, random);
    }
}

void jzi_breaker_obey(jzi_breaker *breaker, uint32_t order, uint64_t now_ns)
{
    if (order < JZX_BREAKER_RESET || order > JZX_BREAKER_FORCE_CLOSED) {
        return;
    }
    breaker->forced = order != JZX_BREAKER_RESET;
    jzx_breaker_state wanted =
        order == JZX_BREAKER_FORCE_OPEN ? JZX_BREAKER_OPEN : JZX_BREAKER_CLOSED;
    /* A reset starts over even where it was closed all the time. */
    if (breaker->state != wanted || order == JZX_BREAKER_RESET) {
        move_to(breaker, wanted, now_ns);
    }
    breaker->until_ns = 0;
}

uint32_t jzi_breaker_retry_after_ms(const jzi_breaker *breaker, uint64_t now_ns)
{
    if (breaker->state != JZX_BREAKER_OPEN || now_ns >= breaker->until_ns) {
        return 0;
    }
    uint64_t left_ms = (breaker->until_ns - now_ns + JZI_NS_PER_MS - 1) / JZI_NS_PER_MS;
    return left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX;
}

/* --- retries --- */

static void fill(jzi_budget *budget, uint64_t more)
{
    uint64_t room = budget->cap - budget->tokens;
    budget->tokens += more < room ? more : room;
}

/* Seconds and the rest of one apart, so that nothing overflows; what makes no whole thousandth is
 * carried to the next time. */
void jzi_budget_look(jzi_budget *budget, uint64_t now_ns)
{
    if (now_ns <= budget->filled_ns) {
        return;
    }
    uint64_t passed = now_ns - budget->filled_ns;
    uint64_t rest = passed % NS_PER_S * budget->per_s + budget->carry;
    budget->carry = rest % NS_PER_S;
    budget->filled_ns = now_ns;
    fill(budget, passed / NS_PER_S * budget->per_s + rest / NS_PER_S);
}

void jzi_budget_add_call(jzi_budget *budget, uint64_t now_ns)
{
    jzi_budget_look(budget, now_ns);
    fill(budget, budget->per_call);
}

bool jzi_budget_take(jzi_budget *budget, uint64_t now_ns)
{
    if (budget->unlimited) {
        return true;
    }
    jzi_budget_look(budget, now_ns);
    if (budget->tokens < PER_RETRY) {
        return false;
    }
    budget->tokens -= PER_RETRY;
    return true;
}

static bool is_too_big(uint32_t budget_number)
{
    return budget_number > JZX_RETRY_BUDGET_MAX && budget_number != JZX_RETRY_NONE;
}

static jzx_err check_retry(const jzx_retry_opts *opts)
{
    bool one_callee = (opts->callee != JZX_NOBODY) != (opts->find != NULL);
    bool shrinks = opts->backoff_max_ms != 0 && opts->backoff_min_ms != JZX_RETRY_NONE &&
                   opts->backoff_max_ms < value_or(opts->backoff_min_ms, BACKOFF_MIN_MS);
    if (!one_callee || shrinks ||
        jzi_backoff_wrong(opts->backoff_factor, opts->backoff_jitter) != NULL ||
        opts->reserved != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    bool percent_too_big =
        is_too_big(opts->budget_percent) && opts->budget_percent != JZX_RETRY_UNLIMITED;
    if (percent_too_big || is_too_big(opts->budget_per_s) || is_too_big(opts->budget_burst) ||
        opts->max_attempts > JZX_RETRY_ATTEMPTS_MAX || opts->max_calls > JZX_BREAKER_CALLS_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    return JZX_OK;
}

/* 0 is the default, JZX_RETRY_NONE is 0. */
static uint32_t none_or(uint32_t value, uint32_t otherwise)
{
    return value == JZX_RETRY_NONE ? 0 : value_or(value, otherwise);
}

static jzi_budget make_budget(const jzx_retry_opts *opts)
{
    uint64_t cap = none_or(opts->budget_burst, BUDGET_BURST) * PER_RETRY;
    return (jzi_budget){
        .tokens = cap,
        .cap = cap,
        .per_call = none_or(opts->budget_percent, BUDGET_PERCENT) * PER_RETRY / 100,
        .per_s = none_or(opts->budget_per_s, BUDGET_PER_S) * PER_RETRY,
        .unlimited = opts->budget_percent == JZX_RETRY_UNLIMITED,
    };
}

jzx_err jzi_retry_rules_make(const jzx_retry_opts *opts, jzi_retry_rules *out)
{
    jzx_err err = check_retry(opts);
    if (err != JZX_OK) {
        return err;
    }
    uint32_t min_ms = none_or(opts->backoff_min_ms, BACKOFF_MIN_MS);
    uint32_t max_ms =
        value_or(opts->backoff_max_ms, min_ms > BACKOFF_MAX_MS ? min_ms : BACKOFF_MAX_MS);
    *out = (jzi_retry_rules){
        .max_attempts = value_or(opts->max_attempts, ATTEMPTS),
        .retry_on = none_or(opts->retry_on, JZX_RETRY_ON_DEFAULT),
        .max_calls = value_or(opts->max_calls, CALLS),
        .backoff = {.min_ns = min_ms * JZI_NS_PER_MS,
                    .max_ns = min_ms == 0 ? 0 : max_ms * JZI_NS_PER_MS,
                    .factor = opts->backoff_factor == 0 ? FACTOR : opts->backoff_factor,
                    .jitter = opts->backoff_jitter},
        .budget = make_budget(opts),
    };
    return JZX_OK;
}

/* The user named the replies that count as failed, and wants another one in their place. */
static bool is_retried(const jzi_retry_rules *rules, uint32_t outcome)
{
    return outcome == JZX_OUTCOME_REPLIED ||
           (outcome < 32 && (rules->retry_on & JZX_RETRY_ON(outcome)) != 0);
}

jzi_retry_verdict jzi_retry_decide(const jzi_retry_rules *rules, jzi_budget *budget,
                                   const jzi_attempt *attempt, uint64_t now_ns)
{
    if (attempt->number >= rules->max_attempts || !is_retried(rules, attempt->outcome)) {
        return (jzi_retry_verdict){.what = JZI_RETRY_ENOUGH};
    }
    uint64_t delay = jzi_backoff_delay(&rules->backoff, attempt->number, attempt->random);
    if (delay < attempt->wait_ns) {
        delay = attempt->wait_ns;
    }
    /* A difference, not a sum: delays are long. */
    if (attempt->deadline_ns != 0 &&
        (attempt->deadline_ns <= now_ns || attempt->deadline_ns - now_ns <= delay)) {
        return (jzi_retry_verdict){.what = JZI_RETRY_NO_TIME};
    }
    if (!jzi_budget_take(budget, now_ns)) {
        return (jzi_retry_verdict){.what = JZI_RETRY_NO_BUDGET};
    }
    return (jzi_retry_verdict){.what = JZI_RETRY_AGAIN, .delay_ns = delay};
}

/* --- what both say --- */

/* err 63..56, outcome 55..48, attempts 47..32, retry_after_ms 31..0. */
uint64_t jzi_failure_pack(const jzx_call_failure *failure)
{
    jzi_assert(failure->err <= 0 && failure->err >= -255);
    uint64_t attempts = failure->attempts < 0xFFFF ? failure->attempts : 0xFFFF;
    return (uint64_t)(-failure->err) << 56 | (uint64_t)(failure->outcome & 0xFF) << 48 |
           attempts << 32 | failure->retry_after_ms;
}

jzx_call_failure jzi_failure_unpack(uint64_t packed)
{
    return (jzx_call_failure){
        .err = -(int32_t)(packed >> 56),
        .outcome = (uint32_t)(packed >> 48) & 0xFF,
        .attempts = (uint32_t)(packed >> 32) & 0xFFFF,
        .retry_after_ms = (uint32_t)packed,
    };
}
