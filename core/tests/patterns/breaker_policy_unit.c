/* Goal: when a breaker opens, probes and closes, and whether and when a call is tried again.
 * Method: `now` and the random numbers are arguments, so any time is crossed at once; tables for
 * bad input, small stories for the states, sums for the budget. */
#include "patterns/breaker_policy.h"

#include "support/check.h"

#include <math.h>
#include <string.h>

#define MS JZI_NS_PER_MS
#define SECOND (1000 * MS)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const jzx_actor_id somebody = 0x100000007;

typedef struct stand {
    jzi_breaker_rules rules;
    jzi_breaker core;
    uint8_t slots[64];
    uint64_t now;
} stand;

static void stand_open(stand *s, const jzx_breaker_opts *given)
{
    jzx_breaker_opts opts = *given;
    opts.callee = somebody;
    *s = (stand){.now = 7 * SECOND};
    REQUIRE_OK(jzi_breaker_rules_make(&opts, &s->rules));
    REQUIRE(s->rules.window_calls <= sizeof s->slots);
    jzi_breaker_init(&s->core, &s->rules, s->slots, s->now);
}

/* One call from beginning to end. */
static jzi_admission one(stand *s, jzi_call_result result)
{
    jzi_admission admission = jzi_breaker_admit(&s->core, 0, s->now);
    if (admission == JZI_ADMIT_PASS || admission == JZI_ADMIT_PROBE) {
        jzi_breaker_done(&s->core, s->core.epoch, result, s->now, 0);
    }
    return admission;
}

static void many(stand *s, uint32_t count, jzi_call_result result)
{
    for (uint32_t i = 0; i < count; i++) {
        CHECK(one(s, result) == JZI_ADMIT_PASS);
    }
}

static void check_window(const stand *s, uint32_t calls, uint32_t failures)
{
    uint32_t got_calls = 0;
    uint32_t got_failures = 0;
    jzi_breaker_window(&s->core, s->now, &got_calls, &got_failures);
    CHECK_EQ(got_calls, calls);
    CHECK_EQ(got_failures, failures);
}

/* --- options --- */

static jzx_actor_id find_nobody(jzx_context *ctx, void *arg)
{
    (void)ctx;
    (void)arg;
    return JZX_NOBODY;
}

static void test_zero_options_are_the_documented_defaults_R36(void)
{
    jzi_breaker_rules rules;
    REQUIRE_OK(jzi_breaker_rules_make(&(jzx_breaker_opts){.callee = somebody}, &rules));
    CHECK_EQ(rules.window_calls, 20);
    CHECK_EQ(rules.bucket_ns, 0);
    CHECK_EQ(rules.min_calls, 10);
    CHECK_EQ(rules.failure_percent, 50);
    CHECK_EQ(rules.probes, 1);
    CHECK_EQ(rules.max_calls, 1024);
    CHECK_EQ(rules.open.min_ns, 5 * SECOND);
    CHECK_EQ(rules.open.max_ns, 5 * SECOND);
    CHECK(rules.open.factor == 2.0 && rules.open.jitter == 0.0);

    jzi_retry_rules retry;
    REQUIRE_OK(jzi_retry_rules_make(&(jzx_retry_opts){.callee = somebody}, &retry));
    CHECK_EQ(retry.max_attempts, 3);
    CHECK_EQ(retry.retry_on, JZX_RETRY_ON_DEFAULT);
    CHECK_EQ(retry.max_calls, 1024);
    CHECK_EQ(retry.backoff.min_ns, 50 * MS);
    CHECK_EQ(retry.backoff.max_ns, 10 * SECOND);
    CHECK_EQ(retry.budget.tokens, 10000);
    CHECK_EQ(retry.budget.cap, 10000);
    CHECK_EQ(retry.budget.per_call, 200);
    CHECK_EQ(retry.budget.per_s, 10000);
    CHECK(!retry.budget.unlimited);
}

static void test_defaults_follow_what_was_given(void)
{
    jzi_breaker_rules rules;
    jzx_breaker_opts small = {.callee = somebody, .window_calls = 4};
    REQUIRE_OK(jzi_breaker_rules_make(&small, &rules));
    CHECK_EQ(rules.min_calls, 4);
    jzx_breaker_opts timed = {.find = find_nobody, .window_ms = 2000, .min_calls = 5000};
    REQUIRE_OK(jzi_breaker_rules_make(&timed, &rules));
    CHECK_EQ(rules.window_calls, 0);
    CHECK_EQ(rules.bucket_ns, 200 * MS);
    CHECK_EQ(rules.min_calls, 5000);

    jzi_retry_rules retry;
    jzx_retry_opts none = {.find = find_nobody,
                           .backoff_min_ms = JZX_RETRY_NONE,
                           .retry_on = JZX_RETRY_NONE,
                           .budget_percent = JZX_RETRY_NONE,
                           .budget_per_s = JZX_RETRY_NONE,
                           .budget_burst = JZX_RETRY_NONE};
    REQUIRE_OK(jzi_retry_rules_make(&none, &retry));
    CHECK_EQ(retry.backoff.min_ns, 0);
    CHECK_EQ(retry.backoff.max_ns, 0);
    CHECK_EQ(retry.retry_on, 0);
    CHECK_EQ(retry.budget.cap + retry.budget.per_call + retry.budget.per_s, 0);
    jzx_retry_opts patient = {.callee = somebody, .backoff_min_ms = 20000};
    REQUIRE_OK(jzi_retry_rules_make(&patient, &retry));
    CHECK_EQ(retry.backoff.max_ns, 20 * SECOND);
}

static void test_bad_breaker_options_are_refused_and_change_nothing(void)
{
    static const struct {
        jzx_breaker_opts opts;
        jzx_err err;
    } bad[] = {
        {{0}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .find = find_nobody}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .window_calls = 5, .window_ms = 5}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .window_calls = 5, .min_calls = 6}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .min_calls = 21}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .failure_percent = 101}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .open_max_ms = 4999}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .open_ms = 9000, .open_max_ms = 8999}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .open_factor = 0.5}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .open_factor = -2}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .open_factor = (double)NAN}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .open_factor = (double)INFINITY}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .open_jitter = 1.5}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .open_jitter = -0.1}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .open_jitter = (double)NAN}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .reserved = 1}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .window_calls = JZX_BREAKER_WINDOW_MAX + 1}, JZX_ERR_TOO_BIG},
        {{.callee = 7, .max_calls = JZX_BREAKER_CALLS_MAX + 1}, JZX_ERR_TOO_BIG},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        jzi_breaker_rules rules = {.probes = 77};
        CHECK_EQ(jzi_breaker_rules_make(&bad[i].opts, &rules), bad[i].err);
        CHECK_EQ(rules.probes, 77);
    }
}

static void test_bad_retry_options_are_refused_and_change_nothing(void)
{
    static const struct {
        jzx_retry_opts opts;
        jzx_err err;
    } bad[] = {
        {{0}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .find = find_nobody}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .backoff_max_ms = 49}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .backoff_factor = 0.99}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .backoff_jitter = 2}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .reserved = 1}, JZX_ERR_INVALID_ARG},
        {{.callee = 7, .max_attempts = JZX_RETRY_ATTEMPTS_MAX + 1}, JZX_ERR_TOO_BIG},
        {{.callee = 7, .max_calls = JZX_BREAKER_CALLS_MAX + 1}, JZX_ERR_TOO_BIG},
        {{.callee = 7, .budget_percent = JZX_RETRY_BUDGET_MAX + 1}, JZX_ERR_TOO_BIG},
        {{.callee = 7, .budget_per_s = JZX_RETRY_BUDGET_MAX + 1}, JZX_ERR_TOO_BIG},
        {{.callee = 7, .budget_per_s = JZX_RETRY_UNLIMITED}, JZX_ERR_TOO_BIG},
        {{.callee = 7, .budget_burst = JZX_RETRY_BUDGET_MAX + 1}, JZX_ERR_TOO_BIG},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        jzi_retry_rules rules = {.max_attempts = 77};
        CHECK_EQ(jzi_retry_rules_make(&bad[i].opts, &rules), bad[i].err);
        CHECK_EQ(rules.max_attempts, 77);
    }
}

/* --- the breaker --- */

static void test_it_opens_when_the_rate_is_reached_and_not_before(void)
{
    stand s;
    stand_open(&s, &(jzx_breaker_opts){.window_calls = 10, .min_calls = 4});
    many(&s, 3, JZI_CALL_OK);
    many(&s, 2, JZI_CALL_FAILED); /* 2 of 5 */
    CHECK_EQ(s.core.state, JZX_BREAKER_CLOSED);
    many(&s, 1, JZI_CALL_FAILED); /* 3 of 6 */
    CHECK_EQ(s.core.state, JZX_BREAKER_OPEN);
    CHECK(one(&s, JZI_CALL_OK) == JZI_ADMIT_OPEN);
    CHECK_EQ(jzi_breaker_retry_after_ms(&s.core, s.now), 5000);
}

static void test_fewer_than_min_calls_open_nothing(void)
{
    stand s;
    stand_open(&s, &(jzx_breaker_opts){.window_calls = 10, .min_calls = 5});
    many(&s, 4, JZI_CALL_FAILED);
    CHECK_EQ(s.core.state, JZX_BREAKER_CLOSED);
    many(&s, 1, JZI_CALL_OK); /* also a success may be the one that was missing */
    CHECK_EQ(s.core.state, JZX_BREAKER_OPEN);
}

static void test_the_window_by_count_forgets_the_oldest(void)
{
    stand s;
    stand_open(&s, &(jzx_breaker_opts){.window_calls = 4, .failure_percent = 75});
    many(&s, 2, JZI_CALL_FAILED);
    many(&s, 4, JZI_CALL_OK);
    check_window(&s, 4, 0);
    many(&s, 2, JZI_CALL_FAILED);
    check_window(&s, 4, 2);
    many(&s, 1, JZI_CALL_FAILED);
    CHECK_EQ(s.core.state, JZX_BREAKER_OPEN);
}

static void test_the_window_by_time_forgets_by_tenths(void)
{
    stand s;
    stand_open(&s, &(jzx_breaker_opts){.window_ms = 1000, .min_calls = 10});
    many(&s, 5, JZI_CALL_FAILED);
    check_window(&s, 5, 5);
    s.now += 999 * MS; /* 7.999: the tenth of 7.0 is still one of the last ten */
    check_window(&s, 5, 5);
    s.now += 1 * MS;
    check_window(&s, 0, 0);
    many(&s, 5, JZI_CALL_OK); /* takes the place of those of 7.0 */
    s.now += 500 * MS;
    many(&s, 4, JZI_CALL_FAILED);
    check_window(&s, 9, 4);
    many(&s, 1, JZI_CALL_FAILED);
    CHECK_EQ(s.core.state, JZX_BREAKER_OPEN);
    s.now += (uint64_t)UINT32_MAX * SECOND; /* a long sleep is no trap */
    jzi_breaker_look(&s.core, s.now);
    check_window(&s, 0, 0);
}

/* Open, with a probe due. */
static void go_half_open(stand *s)
{
    while (s->core.state == JZX_BREAKER_CLOSED) {
        (void)one(s, JZI_CALL_FAILED);
    }
    s->now = s->core.until_ns;
    jzi_breaker_look(&s->core, s->now);
    REQUIRE_EQ(s->core.state, JZX_BREAKER_HALF_OPEN);
}

static void test_open_lasts_exactly_its_time(void)
{
    stand s;
    stand_open(&s, &(jzx_breaker_opts){.window_calls = 1, .open_ms = 100});
    many(&s, 1, JZI_CALL_FAILED);
    s.now += 100 * MS - 1;
    CHECK(one(&s, JZI_CALL_OK) == JZI_ADMIT_OPEN);
    CHECK_EQ(jzi_breaker_retry_after_ms(&s.core, s.now), 1);
    s.now += 1;
    CHECK_EQ(jzi_breaker_retry_after_ms(&s.core, s.now), 0);
    CHECK(one(&s, JZI_CALL_OK) == JZI_ADMIT_PROBE);
    CHECK_EQ(s.core.state, JZX_BREAKER_CLOSED);
    check_window(&s, 0, 0);
}

static void test_as_many_probes_as_asked_for_and_no_more(void)
{
    stand s;
    stand_open(&s, &(jzx_breaker_opts){.window_calls = 1, .probes = 3});
    go_half_open(&s);
    uint32_t epoch = s.core.epoch;
    CHECK(jzi_breaker_admit(&s.core, 0, s.now) == JZI_ADMIT_PROBE);
    CHECK(jzi_breaker_admit(&s.core, 1, s.now) == JZI_ADMIT_PROBE);
    jzi_breaker_done(&s.core, epoch, JZI_CALL_OK, s.now, 0);
    CHECK(jzi_breaker_admit(&s.core, 1, s.now) == JZI_ADMIT_PROBE);
    CHECK(jzi_breaker_admit(&s.core, 2, s.now) == JZI_ADMIT_OPEN);
    jzi_breaker_done(&s.core, epoch, JZI_CALL_OK, s.now, 0);
    CHECK_EQ(s.core.state, JZX_BREAKER_HALF_OPEN);
    jzi_breaker_done(&s.core, epoch, JZI_CALL_VOID, s.now, 0); /* gives its place back */
    CHECK(jzi_breaker_admit(&s.core, 0, s.now) == JZI_ADMIT_PROBE);
    jzi_breaker_done(&s.core, epoch, JZI_CALL_OK, s.now, 0);
    CHECK_EQ(s.core.state, JZX_BREAKER_CLOSED);
}

static void test_a_failed_probe_opens_for_longer_each_time(void)
{
    static const uint64_t want_ms[] = {100, 200, 400, 500, 500};
    stand s;
    stand_open(&s, &(jzx_breaker_opts){.window_calls = 1, .open_ms = 100, .open_max_ms = 500});
    many(&s, 1, JZI_CALL_FAILED);
    for (size_t i = 0; i < COUNT_OF(want_ms); i++) {
        CHECK_EQ(s.core.until_ns - s.now, want_ms[i] * MS);
        s.now = s.core.until_ns;
        CHECK(one(&s, JZI_CALL_FAILED) == JZI_ADMIT_PROBE);
        CHECK_EQ(s.core.state, JZX_BREAKER_OPEN);
    }
    s.now = s.core.until_ns;
    CHECK(one(&s, JZI_CALL_OK) == JZI_ADMIT_PROBE);
    many(&s, 1, JZI_CALL_FAILED); /* closed in between: it starts over */
    CHECK_EQ(s.core.until_ns - s.now, 100 * MS);
}

static void test_outcomes_of_an_earlier_state_decide_nothing(void)
{
    stand s;
    stand_open(&s, &(jzx_breaker_opts){.window_calls = 1});
    uint32_t early = s.core.epoch;
    CHECK(jzi_breaker_admit(&s.core, 0, s.now) == JZI_ADMIT_PASS);
    go_half_open(&s);
    CHECK(jzi_breaker_admit(&s.core, 1, s.now) == JZI_ADMIT_PROBE);
    jzi_breaker_done(&s.core, early, JZI_CALL_FAILED, s.now, 0);
    CHECK_EQ(s.core.state, JZX_BREAKER_HALF_OPEN);
    jzi_breaker_done(&s.core, early, JZI_CALL_OK, s.now, 0);
    CHECK_EQ(s.core.state, JZX_BREAKER_HALF_OPEN);
    jzi_breaker_done(&s.core, s.core.epoch, JZI_CALL_OK, s.now, 0);
    CHECK_EQ(s.core.state, JZX_BREAKER_CLOSED);
    jzi_breaker_done(&s.core, early, JZI_CALL_FAILED, s.now, 0);
    check_window(&s, 0, 0);
}

static void test_max_calls_refuses_but_open_comes_first(void)
{
    stand s;
    stand_open(&s, &(jzx_breaker_opts){.window_calls = 1, .max_calls = 2});
    CHECK(jzi_breaker_admit(&s.core, 1, s.now) == JZI_ADMIT_PASS);
    CHECK(jzi_breaker_admit(&s.core, 2, s.now) == JZI_ADMIT_BUSY);
    many(&s, 1, JZI_CALL_FAILED);
    CHECK(jzi_breaker_admit(&s.core, 2, s.now) == JZI_ADMIT_OPEN);
    s.now = s.core.until_ns;
    CHECK(jzi_breaker_admit(&s.core, 2, s.now) == JZI_ADMIT_BUSY); /* no probe was spent on it */
    CHECK(jzi_breaker_admit(&s.core, 1, s.now) == JZI_ADMIT_PROBE);
}

static void test_orders_hold_until_a_reset(void)
{
    stand s;
    stand_open(&s, &(jzx_breaker_opts){.window_calls = 1, .open_ms = 10});
    jzi_breaker_obey(&s.core, JZX_BREAKER_FORCE_OPEN, s.now);
    s.now += 3600 * SECOND;
    CHECK(one(&s, JZI_CALL_OK) == JZI_ADMIT_OPEN);
    CHECK_EQ(jzi_breaker_retry_after_ms(&s.core, s.now), 0);
    jzi_breaker_obey(&s.core, JZX_BREAKER_FORCE_CLOSED, s.now);
    many(&s, 5, JZI_CALL_FAILED);
    CHECK_EQ(s.core.state, JZX_BREAKER_CLOSED);
    CHECK(s.core.forced);
    jzi_breaker_obey(&s.core, JZX_BREAKER_RESET, s.now);
    CHECK(!s.core.forced);
    check_window(&s, 0, 0);
    many(&s, 1, JZI_CALL_FAILED);
    CHECK_EQ(s.core.state, JZX_BREAKER_OPEN);
    jzi_breaker_obey(&s.core, JZX_BREAKER_FORCE_OPEN, s.now); /* open already, but not for ever */
    s.now += 3600 * SECOND;
    CHECK(one(&s, JZI_CALL_OK) == JZI_ADMIT_OPEN);
    jzi_breaker_obey(&s.core, 0, s.now);
    jzi_breaker_obey(&s.core, 99, s.now);
    CHECK(s.core.forced && s.core.state == JZX_BREAKER_OPEN);
}

/* --- retries --- */

static jzi_retry_rules rules_of(const jzx_retry_opts *given)
{
    jzx_retry_opts opts = *given;
    jzi_retry_rules rules = {0};
    opts.callee = somebody;
    REQUIRE_OK(jzi_retry_rules_make(&opts, &rules));
    return rules;
}

static void test_outcomes_are_tried_again_as_the_mask_says(void)
{
    jzi_retry_rules usual = rules_of(&(jzx_retry_opts){.max_attempts = 9});
    jzi_retry_rules only =
        rules_of(&(jzx_retry_opts){.retry_on = JZX_RETRY_ON(JZX_OUTCOME_FORGOTTEN)});
    jzi_retry_rules none = rules_of(&(jzx_retry_opts){.retry_on = JZX_RETRY_NONE});
    for (uint32_t outcome = 0; outcome <= JZX_OUTCOME_REFUSED + 30; outcome++) {
        jzi_attempt attempt = {.number = 1, .outcome = outcome};
        jzi_budget budget = {.unlimited = true};
        bool again = jzi_retry_decide(&usual, &budget, &attempt, 1).what == JZI_RETRY_AGAIN;
        CHECK_EQ(again, outcome <= JZX_OUTCOME_REFUSED && outcome != JZX_OUTCOME_CANCELLED &&
                            outcome != JZX_OUTCOME_FORGOTTEN);
        again = jzi_retry_decide(&only, &budget, &attempt, 1).what == JZI_RETRY_AGAIN;
        CHECK_EQ(again, outcome == JZX_OUTCOME_FORGOTTEN || outcome == JZX_OUTCOME_REPLIED);
        again = jzi_retry_decide(&none, &budget, &attempt, 1).what == JZI_RETRY_AGAIN;
        CHECK_EQ(again, outcome == JZX_OUTCOME_REPLIED);
    }
}

static void test_attempts_time_and_budget_end_it_in_this_order(void)
{
    jzi_retry_rules rules = rules_of(&(jzx_retry_opts){.backoff_min_ms = 100});
    jzi_budget empty = {.cap = 1000};
    jzi_attempt attempt = {.number = 3, .outcome = JZX_OUTCOME_TIMED_OUT, .deadline_ns = 100 * MS};
    CHECK_EQ(jzi_retry_decide(&rules, &empty, &attempt, 0).what, JZI_RETRY_ENOUGH);
    attempt.number = 1;
    CHECK_EQ(jzi_retry_decide(&rules, &empty, &attempt, 0).what, JZI_RETRY_NO_TIME);
    attempt.deadline_ns = 100 * MS + 1;
    CHECK_EQ(jzi_retry_decide(&rules, &empty, &attempt, 0).what, JZI_RETRY_NO_BUDGET);
    attempt.deadline_ns = 0;
    CHECK_EQ(jzi_retry_decide(&rules, &empty, &attempt, 0).what, JZI_RETRY_NO_BUDGET);
    jzi_budget one_left = {.tokens = 1000, .cap = 1000};
    jzi_retry_verdict verdict = jzi_retry_decide(&rules, &one_left, &attempt, 0);
    CHECK_EQ(verdict.what, JZI_RETRY_AGAIN);
    CHECK_EQ(verdict.delay_ns, 100 * MS);
    CHECK_EQ(one_left.tokens, 0);
    attempt.deadline_ns = 5; /* long past */
    CHECK_EQ(jzi_retry_decide(&rules, &one_left, &attempt, SECOND).what, JZI_RETRY_NO_TIME);
}

static void test_it_waits_as_long_as_the_callee_asked_for(void)
{
    jzi_retry_rules rules = rules_of(&(jzx_retry_opts){.backoff_min_ms = 100});
    jzi_budget budget = {.unlimited = true};
    jzi_attempt attempt = {
        .number = 1, .outcome = JZX_OUTCOME_REFUSED, .wait_ns = 3 * SECOND, .deadline_ns = 0};
    CHECK_EQ(jzi_retry_decide(&rules, &budget, &attempt, 0).delay_ns, 3 * SECOND);
    attempt.wait_ns = 1;
    CHECK_EQ(jzi_retry_decide(&rules, &budget, &attempt, 0).delay_ns, 100 * MS);
    attempt.wait_ns = 3 * SECOND;
    attempt.deadline_ns = 2 * SECOND;
    CHECK_EQ(jzi_retry_decide(&rules, &budget, &attempt, 0).what, JZI_RETRY_NO_TIME);
}

static uint32_t take_all(jzi_budget *budget, uint64_t now_ns)
{
    uint32_t taken = 0;
    while (jzi_budget_take(budget, now_ns)) {
        taken++;
    }
    return taken;
}

static void test_the_budget_is_a_part_of_the_calls_and_some_per_second(void)
{
    jzi_budget budget = rules_of(&(jzx_retry_opts){.budget_per_s = JZX_RETRY_NONE}).budget;
    CHECK_EQ(take_all(&budget, 0), 10); /* the burst */
    for (int i = 0; i < 10; i++) {
        jzi_budget_add_call(&budget, SECOND);
    }
    CHECK_EQ(take_all(&budget, 3600 * SECOND), 2); /* 20 % of ten calls, and none for the hour */
    for (int i = 0; i < 1000; i++) {
        jzi_budget_add_call(&budget, SECOND);
    }
    CHECK_EQ(take_all(&budget, SECOND), 10); /* never more than the burst */

    budget =
        rules_of(&(jzx_retry_opts){.budget_percent = JZX_RETRY_NONE, .budget_per_s = 3}).budget;
    CHECK_EQ(take_all(&budget, 0), 10);
    jzi_budget_add_call(&budget, 0);
    CHECK_EQ(take_all(&budget, SECOND), 3);
    CHECK_EQ(take_all(&budget, SECOND), 0);
    CHECK_EQ(take_all(&budget, 3600 * SECOND), 10);
}

static void test_time_in_small_steps_adds_up_to_the_same(void)
{
    static const uint32_t rates[] = {1, 3, 7, 999, JZX_RETRY_BUDGET_MAX};
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        jzi_budget budget = rules_of(&(jzx_retry_opts){.budget_percent = JZX_RETRY_NONE,
                                                       .budget_per_s = rates[i],
                                                       .budget_burst = JZX_RETRY_BUDGET_MAX})
                                .budget;
        budget.tokens = 0;
        uint64_t now = 0;
        for (uint64_t step = 1; now < SECOND / 2; step = step * 3 % 1000003) {
            now += step;
            jzi_budget_look(&budget, now);
        }
        CHECK_EQ(budget.tokens * SECOND + budget.carry, now * rates[i] * 1000);
    }
    jzi_budget big = {.cap = UINT64_C(1000000000), .per_s = UINT64_C(1000000000)};
    jzi_budget_look(&big, UINT64_MAX); /* five hundred years at the highest rate */
    CHECK_EQ(big.tokens, big.cap);
}

static void test_an_unlimited_budget_never_ends(void)
{
    jzi_budget budget = rules_of(&(jzx_retry_opts){.budget_percent = JZX_RETRY_UNLIMITED,
                                                   .budget_burst = JZX_RETRY_NONE})
                            .budget;
    for (int i = 0; i < 1000; i++) {
        CHECK(jzi_budget_take(&budget, 0));
    }
}

static void test_a_failure_survives_packing(void)
{
    static const jzx_call_failure all[] = {
        {0},
        {.err = JZX_ERR_CIRCUIT_OPEN, .outcome = JZX_OUTCOME_REFUSED, .retry_after_ms = UINT32_MAX},
        {.err = -255, .outcome = 255, .attempts = 65535, .retry_after_ms = 1},
        {.err = JZX_ERR_NO_BUDGET, .outcome = JZX_OUTCOME_TIMED_OUT, .attempts = 3},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        jzx_call_failure back = jzi_failure_unpack(jzi_failure_pack(&all[i]));
        CHECK(memcmp(&back, &all[i], sizeof back) == 0);
    }
    jzx_call_failure many_attempts = {.attempts = 70000};
    CHECK_EQ(jzi_failure_unpack(jzi_failure_pack(&many_attempts)).attempts, 65535);
}

static const jzt_test tests[] = {
    {"zero_options_are_the_documented_defaults_R36",
     test_zero_options_are_the_documented_defaults_R36},
    {"defaults_follow_what_was_given", test_defaults_follow_what_was_given},
    {"bad_breaker_options_are_refused_and_change_nothing",
     test_bad_breaker_options_are_refused_and_change_nothing},
    {"bad_retry_options_are_refused_and_change_nothing",
     test_bad_retry_options_are_refused_and_change_nothing},
    {"it_opens_when_the_rate_is_reached_and_not_before",
     test_it_opens_when_the_rate_is_reached_and_not_before},
    {"fewer_than_min_calls_open_nothing", test_fewer_than_min_calls_open_nothing},
    {"the_window_by_count_forgets_the_oldest", test_the_window_by_count_forgets_the_oldest},
    {"the_window_by_time_forgets_by_tenths", test_the_window_by_time_forgets_by_tenths},
    {"open_lasts_exactly_its_time", test_open_lasts_exactly_its_time},
    {"as_many_probes_as_asked_for_and_no_more", test_as_many_probes_as_asked_for_and_no_more},
    {"a_failed_probe_opens_for_longer_each_time", test_a_failed_probe_opens_for_longer_each_time},
    {"outcomes_of_an_earlier_state_decide_nothing",
     test_outcomes_of_an_earlier_state_decide_nothing},
    {"max_calls_refuses_but_open_comes_first", test_max_calls_refuses_but_open_comes_first},
    {"orders_hold_until_a_reset", test_orders_hold_until_a_reset},
    {"outcomes_are_tried_again_as_the_mask_says", test_outcomes_are_tried_again_as_the_mask_says},
    {"attempts_time_and_budget_end_it_in_this_order",
     test_attempts_time_and_budget_end_it_in_this_order},
    {"it_waits_as_long_as_the_callee_asked_for", test_it_waits_as_long_as_the_callee_asked_for},
    {"the_budget_is_a_part_of_the_calls_and_some_per_second",
     test_the_budget_is_a_part_of_the_calls_and_some_per_second},
    {"time_in_small_steps_adds_up_to_the_same", test_time_in_small_steps_adds_up_to_the_same},
    {"an_unlimited_budget_never_ends", test_an_unlimited_budget_never_ends},
    {"a_failure_survives_packing", test_a_failure_survives_packing},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
