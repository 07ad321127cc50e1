/* Goal: whether, when and how a child is restarted, cell by cell (R19).
 * Method: tables over every mode, reason and action; windows against a plain list that forgets
 * nothing; the backoff curve against a loop that multiplies. */
#include "supervision/restart_policy.h"

#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

enum { MODES = 3, REASONS = JZX_REASON_NOCONNECTION + 1, RING_MAX = 8 };

static jzi_policy policy_of(const jzx_supervisor_spec *spec)
{
    jzi_policy policy = {0};
    const char *why = NULL;
    REQUIRE_OK(jzi_policy_make(spec, &policy, &why));
    REQUIRE_STR(why, "");
    return policy;
}

/* A window with room for one restart that never happened. */
static jzi_window open_window(uint64_t *stamp)
{
    return (jzi_window){.stamps = stamp, .cap = 1};
}

/* --- making a policy --- */

static jzx_action decide_nothing(void *ctx, const jzx_failure *failure)
{
    (void)ctx;
    (void)failure;
    return JZX_ACTION_STOP;
}

static void check_defaults(const jzi_policy *policy)
{
    CHECK_EQ(policy->strategy, JZX_ONE_FOR_ONE);
    CHECK_EQ(policy->intensity, 1);
    CHECK_EQ(policy->action, JZX_ACTION_RESTART);
    CHECK_EQ(policy->on_limit, JZX_LIMIT_GIVE_UP);
    CHECK_EQ(policy->auto_shutdown, JZX_AUTO_NEVER);
    CHECK_EQ(policy->period_ns, 5 * SECOND);
    CHECK_EQ(policy->backoff.min_ns, 0);
    CHECK_EQ(policy->backoff.max_ns, 30 * SECOND);
    CHECK_EQ(policy->backoff_reset_ns, 30 * SECOND);
    CHECK(policy->backoff.factor == 2.0);
    CHECK(policy->backoff.jitter == 0.0);
    CHECK(policy->decide == NULL && policy->decide_ctx == NULL);
}

static void test_no_spec_and_a_zero_spec_are_the_defaults_R36(void)
{
    jzx_supervisor_spec zero = {0};
    jzi_policy policy = policy_of(NULL);
    check_defaults(&policy);
    policy = policy_of(&zero);
    check_defaults(&policy);
}

static void test_what_the_spec_says_is_taken_R19(void)
{
    int ctx = 0;
    jzx_supervisor_spec spec = {
        .strategy = JZX_REST_FOR_ONE,
        .intensity = 7,
        .period_ms = 90,
        .action = JZX_ACTION_ESCALATE,
        .on_limit = JZX_LIMIT_STOP_CHILD,
        .auto_shutdown = JZX_AUTO_ALL_SIGNIFICANT,
        .backoff_min_ms = 3,
        .backoff_max_ms = 4,
        .backoff_reset_ms = 2,
        .backoff_factor = 1.0,
        .backoff_jitter = 1.0,
        .decide = decide_nothing,
        .decide_ctx = &ctx,
    };
    jzi_policy policy = policy_of(&spec);
    CHECK_EQ(policy.strategy, JZX_REST_FOR_ONE);
    CHECK_EQ(policy.intensity, 7);
    CHECK_EQ(policy.period_ns, 90 * MS);
    CHECK_EQ(policy.action, JZX_ACTION_ESCALATE);
    CHECK_EQ(policy.on_limit, JZX_LIMIT_STOP_CHILD);
    CHECK_EQ(policy.auto_shutdown, JZX_AUTO_ALL_SIGNIFICANT);
    CHECK_EQ(policy.backoff.min_ns, 3 * MS);
    CHECK_EQ(policy.backoff.max_ns, 4 * MS);
    CHECK_EQ(policy.backoff_reset_ns, 2 * MS);
    CHECK(policy.backoff.factor == 1.0 && policy.backoff.jitter == 1.0);
    CHECK(policy.decide == decide_nothing && policy.decide_ctx == &ctx);
}

static void test_defaults_that_follow_other_fields_R36(void)
{
    static const struct {
        uint32_t period, min, max, reset; /* given, ms */
        uint64_t max_out, reset_out;      /* ms */
    } rows[] = {
        {0, 0, 0, 0, 30000, 30000},
        {0, 100, 0, 0, 30000, 30000},
        {0, 30000, 0, 0, 30000, 30000},
        {0, 30001, 0, 0, 30001, 30001}, /* the default maximum is never below the minimum */
        {0, UINT32_MAX, 0, 0, UINT32_MAX, UINT32_MAX},
        {0, 100, 100, 0, 100, 5000},
        {60000, 100, 200, 0, 200, 60000},
        {1000, 100, 2000, 0, 2000, 2000},
        {1000, 100, 2000, 1, 2000, 1},
        {UINT32_MAX, 0, 0, UINT32_MAX, 30000, UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzx_supervisor_spec spec = {.period_ms = rows[i].period,
                                    .backoff_min_ms = rows[i].min,
                                    .backoff_max_ms = rows[i].max,
                                    .backoff_reset_ms = rows[i].reset};
        jzi_policy policy = policy_of(&spec);
        CHECK_EQ(policy.backoff.min_ns, rows[i].min * MS);
        CHECK_EQ(policy.backoff.max_ns, rows[i].max_out * MS);
        CHECK_EQ(policy.backoff_reset_ns, rows[i].reset_out * MS);
    }
}

static void test_intensity_has_a_default_a_name_for_none_and_a_maximum_R36(void)
{
    static const struct {
        uint32_t given;
        jzx_err err;
        uint32_t out;
    } rows[] = {
        {0, JZX_OK, 1},
        {1, JZX_OK, 1},
        {2, JZX_OK, 2},
        {JZX_INTENSITY_MAX, JZX_OK, JZX_INTENSITY_MAX},
        {JZX_INTENSITY_NEVER, JZX_OK, 0},
        {JZX_INTENSITY_MAX + 1, JZX_ERR_TOO_BIG, 77},
        {JZX_INTENSITY_NEVER - 1, JZX_ERR_TOO_BIG, 77},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzx_supervisor_spec spec = {.intensity = rows[i].given};
        jzi_policy policy = {.intensity = 77};
        const char *why = NULL;
        CHECK_EQ(jzi_policy_make(&spec, &policy, &why), rows[i].err);
        CHECK_EQ(policy.intensity, rows[i].out);
        CHECK_STR(why, rows[i].err == JZX_OK ? "" : "intensity is above JZX_INTENSITY_MAX");
    }
}

static void test_each_bad_field_has_its_sentence_and_nothing_is_written_R19(void)
{
    static const struct {
        jzx_supervisor_spec spec;
        const char *why;
    } rows[] = {
        {{.strategy = JZX_DYNAMIC + 1}, "strategy is no jzx_restart_strategy"},
        {{.strategy = UINT32_MAX}, "strategy is no jzx_restart_strategy"},
        {{.action = JZX_ACTIONS}, "action is no jzx_action"},
        {{.on_limit = 2}, "on_limit is no jzx_on_limit"},
        {{.auto_shutdown = 3}, "auto_shutdown is no jzx_auto_shutdown"},
        {{.strategy = JZX_DYNAMIC, .auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT},
         "auto_shutdown does not go with the strategy JZX_DYNAMIC"},
        {{.strategy = JZX_DYNAMIC, .auto_shutdown = JZX_AUTO_ALL_SIGNIFICANT},
         "auto_shutdown does not go with the strategy JZX_DYNAMIC"},
        {{.reserved = 1}, "reserved is not 0"},
        {{.backoff_min_ms = 2, .backoff_max_ms = 1}, "backoff_max_ms is below backoff_min_ms"},
        {{.backoff_factor = 0.5}, "backoff_factor is below 1"},
        {{.backoff_factor = 0.999999}, "backoff_factor is below 1"},
        {{.backoff_factor = -2}, "backoff_factor is below 1"},
        {{.backoff_factor = NAN}, "backoff_factor is no finite number"},
        {{.backoff_factor = INFINITY}, "backoff_factor is no finite number"},
        {{.backoff_factor = -INFINITY}, "backoff_factor is no finite number"},
        {{.backoff_jitter = -0.01}, "backoff_jitter is not between 0 and 1"},
        {{.backoff_jitter = 1.01}, "backoff_jitter is not between 0 and 1"},
        {{.backoff_jitter = NAN}, "backoff_jitter is no finite number"},
        {{.backoff_jitter = INFINITY}, "backoff_jitter is no finite number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzi_policy policy, before;
        const char *why = NULL;
        memset(&policy, 0x5A, sizeof policy);
        memset(&before, 0x5A, sizeof before);
        CHECK_EQ(jzi_policy_make(&rows[i].spec, &policy, &why), JZX_ERR_BAD_SPEC);
        CHECK_STR(why, rows[i].why);
        CHECK(memcmp(&policy, &before, sizeof policy) == 0);
    }
}

static void test_extremes_that_are_allowed_R19(void)
{
    static const jzx_supervisor_spec rows[] = {
        {.strategy = JZX_DYNAMIC},
        {.action = JZX_ACTION_ESCALATE},
        {.auto_shutdown = JZX_AUTO_ALL_SIGNIFICANT},
        {.backoff_factor = 1},
        {.backoff_factor = -0.0},
        {.backoff_factor = 1e308},
        {.backoff_jitter = 1},
        {.backoff_min_ms = 5, .backoff_max_ms = 5},
        {.backoff_max_ms = 1},
        {.period_ms = UINT32_MAX, .backoff_min_ms = UINT32_MAX, .backoff_max_ms = UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)policy_of(&rows[i]);
    }
}

/* --- windows --- */

static void test_a_window_lets_intensity_restarts_pass_and_refuses_the_next_R19(void)
{
    static const uint32_t intensities[] = {1, 2, 3, 16, 17, JZX_INTENSITY_MAX};
    uint64_t *stamps = calloc(JZX_INTENSITY_MAX, sizeof *stamps);
    REQUIRE(stamps != NULL);
    for (size_t i = 0; i < sizeof intensities / sizeof intensities[0]; i++) {
        jzi_window window = {.stamps = stamps, .cap = intensities[i]};
        for (uint32_t n = 0; n < intensities[i]; n++) {
            if (jzi_window_is_full(&window, SECOND, 5 * SECOND)) {
                CHECK_EQ(n, intensities[i]);
                break;
            }
            jzi_window_add(&window, SECOND);
        }
        CHECK(jzi_window_is_full(&window, SECOND, 5 * SECOND));
        CHECK_EQ(jzi_window_within(&window, SECOND, 5 * SECOND), intensities[i]);
        CHECK(!jzi_window_is_full(&window, 6 * SECOND + 1, 5 * SECOND));
    }
    free(stamps);
}

static void test_a_window_of_intensity_zero_is_always_full_and_remembers_nothing_R19(void)
{
    jzi_window window = {0};
    CHECK(jzi_window_is_full(&window, 0, 5));
    jzi_window_add(&window, 1);
    CHECK(jzi_window_is_full(&window, UINT64_MAX, 1));
    CHECK_EQ(window.count, 0);
    CHECK_EQ(jzi_window_within(&window, 1, 1), 0);
}

static void test_a_stamp_exactly_one_period_old_still_counts_R19(void)
{
    static const struct {
        uint64_t stamp, now, period;
        bool counts;
    } rows[] = {
        {1000, 1000, 1, true},
        {1000, 1099, 100, true},
        {1000, 1100, 100, true},
        {1000, 1101, 100, false},
        {1001, 1000, 100, true}, /* from the future: surely not too old */
        {0, 100, 100, true},
        {0, 101, 100, false},
        {1000, 1000, UINT64_MAX, true}, /* now - period would be below zero */
        {5, 50, 100, true},
        {UINT64_MAX - 1, UINT64_MAX, 100, true}, /* stamp + period would be beyond the end */
        {UINT64_MAX - 101, UINT64_MAX, 100, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t stamp = 0;
        jzi_window window = open_window(&stamp);
        jzi_window_add(&window, rows[i].stamp);
        CHECK_EQ(jzi_window_is_full(&window, rows[i].now, rows[i].period), rows[i].counts);
        CHECK_EQ(jzi_window_within(&window, rows[i].now, rows[i].period), rows[i].counts);
    }
}

static void test_the_window_slides_instead_of_starting_over_R19(void)
{
    uint64_t stamps[2] = {0};
    jzi_window window = {.stamps = stamps, .cap = 2};
    jzi_window_add(&window, 10);
    jzi_window_add(&window, 90);
    CHECK(jzi_window_is_full(&window, 110, 100));
    CHECK(!jzi_window_is_full(&window, 111, 100)); /* the first is out, the second is not */
    jzi_window_add(&window, 111);
    CHECK(jzi_window_is_full(&window, 190, 100));
    CHECK(!jzi_window_is_full(&window, 191, 100));
}

/* The plain list: counts by looking at everything. */
static uint32_t recount(const uint64_t *all, size_t len, uint64_t now, uint64_t period, size_t last)
{
    uint32_t found = 0;
    for (size_t i = len > last ? len - last : 0; i < len; i++) {
        found += now - all[i] <= period;
    }
    return found;
}

static void test_random_walk_agrees_with_a_list_that_forgets_nothing_R19(void)
{
    enum { STEPS = 2000 };
    static uint64_t all[STEPS];
    jzt_rng rng = jzt_rng_seeded();
    for (uint32_t cap = 1; cap <= RING_MAX; cap++) {
        uint64_t stamps[RING_MAX] = {0};
        jzi_window window = {.stamps = stamps, .cap = cap};
        uint64_t now = 1 + jzt_rng_below(&rng, 100);
        size_t len = 0;
        for (int step = 0; step < STEPS; step++) {
            uint64_t period = 1 + jzt_rng_below(&rng, 40);
            now += jzt_rng_below(&rng, 12);
            REQUIRE_EQ(jzi_window_is_full(&window, now, period),
                       recount(all, len, now, period, len) >= cap);
            REQUIRE_EQ(jzi_window_within(&window, now, period),
                       recount(all, len, now, period, cap));
            REQUIRE(window.count <= cap && window.head < cap);
            if (jzt_rng_below(&rng, 2) == 0) {
                jzi_window_add(&window, now);
                all[len++] = now;
            }
        }
    }
}

static void test_a_copy_keeps_the_newest_that_fit_in_order_R19(void)
{
    for (uint32_t from_cap = 0; from_cap <= RING_MAX; from_cap++) {
        for (uint32_t added = 0; added <= 2 * RING_MAX; added++) {
            for (uint32_t to_cap = 0; to_cap <= RING_MAX; to_cap++) {
                uint64_t from_stamps[RING_MAX] = {0}, to_stamps[RING_MAX] = {0};
                jzi_window from = {.stamps = from_stamps, .cap = from_cap};
                /* Left over from another life: the copy starts over. */
                jzi_window to = {
                    .stamps = to_stamps, .cap = to_cap, .count = to_cap, .head = to_cap / 2};
                for (uint32_t i = 1; i <= added; i++) {
                    jzi_window_add(&from, i);
                }
                jzi_window_copy(&to, &from);
                uint32_t known = added < from_cap ? added : from_cap;
                uint32_t kept = known < to_cap ? known : to_cap;
                REQUIRE_EQ(to.count, kept);
                for (uint32_t newest = 1; newest <= kept; newest++) {
                    /* The stamp `added - newest + 1` counts, the one before it does not. */
                    REQUIRE_EQ(jzi_window_within(&to, added, newest - 1), newest);
                }
                CHECK_EQ(to.head, to_cap == 0 ? 0 : kept % to_cap);
            }
        }
    }
}

/* --- mode, reason and action --- */

static bool normal(uint32_t reason)
{
    return reason == JZX_REASON_NORMAL || reason == JZX_REASON_SHUTDOWN;
}

static void test_which_ends_are_followed_by_a_restart_R19(void)
{
    for (uint32_t reason = 0; reason < REASONS; reason++) {
        CHECK(jzi_policy_wants(JZX_PERMANENT, reason));
        CHECK_EQ(jzi_policy_wants(JZX_TRANSIENT, reason), !normal(reason));
        CHECK(!jzi_policy_wants(JZX_TEMPORARY, reason));
    }
    CHECK(jzi_policy_wants(JZX_TRANSIENT, JZX_REASON_GAVE_UP)); /* OTP's trap */
    CHECK(!jzi_policy_wants(MODES, JZX_REASON_FAILED));
}

/* One letter per action R(estart) r(esume) S(top) E(scalate) and one that is none; the letters in
 * the cells are what comes out. */
typedef struct matrix_row {
    uint32_t mode;
    uint32_t reason;
    const char *out;
} matrix_row;

static uint32_t verdict_of(char letter)
{
    return letter == 'R'   ? JZI_VERDICT_RESTART
           : letter == 'r' ? JZI_VERDICT_RESUME
           : letter == 'S' ? JZI_VERDICT_STOP
                           : JZI_VERDICT_ESCALATE;
}

static void test_every_mode_reason_and_action_R19(void)
{
    static const matrix_row rows[] = {
        {JZX_PERMANENT, JZX_REASON_NORMAL, "RRRRR"},
        {JZX_PERMANENT, JZX_REASON_SHUTDOWN, "RRRRR"},
        {JZX_PERMANENT, JZX_REASON_KILLED, "RRSEE"},
        {JZX_PERMANENT, JZX_REASON_FAILED, "RrSEE"},
        {JZX_PERMANENT, JZX_REASON_PANIC, "RrSEE"},
        {JZX_PERMANENT, JZX_REASON_CRASH, "RRSEE"},
        {JZX_PERMANENT, JZX_REASON_START_FAILED, "RRSEE"},
        {JZX_PERMANENT, JZX_REASON_STOP_TIMEOUT, "RRSEE"},
        {JZX_PERMANENT, JZX_REASON_GAVE_UP, "RRSEE"},
        {JZX_PERMANENT, JZX_REASON_ESCALATED, "RRSEE"},
        {JZX_PERMANENT, JZX_REASON_LINKED, "RrSEE"},
        {JZX_PERMANENT, JZX_REASON_STUCK, "RRSEE"},
        {JZX_PERMANENT, JZX_REASON_NOPROC, "RRSEE"},
        {JZX_PERMANENT, JZX_REASON_NOCONNECTION, "RRSEE"},
        {JZX_TRANSIENT, JZX_REASON_NORMAL, "SSSSS"},
        {JZX_TRANSIENT, JZX_REASON_SHUTDOWN, "SSSSS"},
        {JZX_TRANSIENT, JZX_REASON_KILLED, "RRSEE"},
        {JZX_TRANSIENT, JZX_REASON_FAILED, "RrSEE"},
        {JZX_TRANSIENT, JZX_REASON_PANIC, "RrSEE"},
        {JZX_TRANSIENT, JZX_REASON_CRASH, "RRSEE"},
        {JZX_TRANSIENT, JZX_REASON_START_FAILED, "RRSEE"},
        {JZX_TRANSIENT, JZX_REASON_STOP_TIMEOUT, "RRSEE"},
        {JZX_TRANSIENT, JZX_REASON_GAVE_UP, "RRSEE"},
        {JZX_TRANSIENT, JZX_REASON_ESCALATED, "RRSEE"},
        {JZX_TRANSIENT, JZX_REASON_LINKED, "RrSEE"},
        {JZX_TRANSIENT, JZX_REASON_STUCK, "RRSEE"},
        {JZX_TRANSIENT, JZX_REASON_NOPROC, "RRSEE"},
        {JZX_TRANSIENT, JZX_REASON_NOCONNECTION, "RRSEE"},
        {JZX_TEMPORARY, JZX_REASON_NORMAL, "SSSSS"},
        {JZX_TEMPORARY, JZX_REASON_SHUTDOWN, "SSSSS"},
        {JZX_TEMPORARY, JZX_REASON_KILLED, "SSSEE"},
        {JZX_TEMPORARY, JZX_REASON_FAILED, "SrSEE"},
        {JZX_TEMPORARY, JZX_REASON_PANIC, "SrSEE"},
        {JZX_TEMPORARY, JZX_REASON_CRASH, "SSSEE"},
        {JZX_TEMPORARY, JZX_REASON_START_FAILED, "SSSEE"},
        {JZX_TEMPORARY, JZX_REASON_STOP_TIMEOUT, "SSSEE"},
        {JZX_TEMPORARY, JZX_REASON_GAVE_UP, "SSSEE"},
        {JZX_TEMPORARY, JZX_REASON_ESCALATED, "SSSEE"},
        {JZX_TEMPORARY, JZX_REASON_LINKED, "SrSEE"},
        {JZX_TEMPORARY, JZX_REASON_STUCK, "SSSEE"},
        {JZX_TEMPORARY, JZX_REASON_NOPROC, "SSSEE"},
        {JZX_TEMPORARY, JZX_REASON_NOCONNECTION, "SSSEE"},
    };
    _Static_assert(sizeof rows / sizeof rows[0] == MODES * REASONS, "every mode and reason");
    jzi_policy policy = policy_of(&(jzx_supervisor_spec){.backoff_min_ms = 10});
    uint64_t stamp = 0;
    jzi_window window = open_window(&stamp);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (uint32_t action = 0; action <= JZX_ACTIONS; action++) {
            jzi_case it = {.mode = rows[i].mode, .reason = rows[i].reason, .action = action};
            jzi_verdict verdict = jzi_policy_decide(&policy, &window, &it, SECOND);
            CHECK_EQ(verdict.what, verdict_of(rows[i].out[action]));
            CHECK_EQ(verdict.attempt, 1);
            CHECK_EQ(verdict.delay_ns, verdict.what == JZI_VERDICT_RESTART ? 10 * MS : 0);
        }
    }
}

static void test_an_action_that_is_none_escalates_R19(void)
{
    static const uint32_t nonsense[] = {JZX_ACTIONS, 5, 255, 1u << 31, UINT32_MAX};
    jzi_policy policy = policy_of(NULL);
    uint64_t stamp = 0;
    jzi_window window = open_window(&stamp);
    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
        jzi_case it = {.reason = JZX_REASON_FAILED, .action = nonsense[i]};
        CHECK_EQ(jzi_policy_decide(&policy, &window, &it, 1).what, JZI_VERDICT_ESCALATE);
        it.reason = JZX_REASON_NORMAL; /* was not asked, so its answer does not matter */
        CHECK_EQ(jzi_policy_decide(&policy, &window, &it, 1).what, JZI_VERDICT_RESTART);
    }
}

/* --- limits --- */

static void test_beyond_a_limit_on_limit_decides_R19(void)
{
    /* Whether the supervisor's and the child's own budget are used up. */
    static const struct {
        bool shared_full, has_own, own_full, over;
    } rows[] = {
        {false, false, false, false}, {true, false, false, true}, {false, true, false, false},
        {false, true, true, true},    {true, true, false, true},  {true, true, true, true},
    };
    for (uint32_t on_limit = 0; on_limit <= JZX_LIMIT_STOP_CHILD; on_limit++) {
        jzi_policy policy = policy_of(&(jzx_supervisor_spec){.on_limit = on_limit});
        uint32_t beyond = on_limit == JZX_LIMIT_GIVE_UP ? JZI_VERDICT_GIVE_UP : JZI_VERDICT_STOP;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            uint64_t shared_stamp = 0, own_stamp = 0;
            jzi_window shared = open_window(&shared_stamp), own = open_window(&own_stamp);
            /* Just inside, or just outside, of 5 s and 2 s. */
            jzi_window_add(&shared, 10 * SECOND - 5 * SECOND - (rows[i].shared_full ? 0 : 1));
            jzi_window_add(&own, 10 * SECOND - 2 * SECOND - (rows[i].own_full ? 0 : 1));
            jzi_case it = {.reason = JZX_REASON_FAILED,
                           .own = rows[i].has_own ? &own : NULL,
                           .own_period_ns = 2 * SECOND};
            jzi_verdict verdict = jzi_policy_decide(&policy, &shared, &it, 10 * SECOND);
            CHECK_EQ(verdict.what, rows[i].over ? beyond : JZI_VERDICT_RESTART);
            CHECK_EQ(verdict.delay_ns, 0);
            CHECK_EQ(shared.count, 1); /* deciding remembers nothing */
            CHECK_EQ(own.count, 1);
        }
    }
}

static void test_the_limit_concerns_restarts_only_R19(void)
{
    static const struct {
        uint32_t mode, reason, action, what;
    } rows[] = {
        {JZX_PERMANENT, JZX_REASON_FAILED, JZX_ACTION_RESUME, JZI_VERDICT_RESUME},
        {JZX_PERMANENT, JZX_REASON_FAILED, JZX_ACTION_STOP, JZI_VERDICT_STOP},
        {JZX_PERMANENT, JZX_REASON_FAILED, JZX_ACTION_ESCALATE, JZI_VERDICT_ESCALATE},
        {JZX_TEMPORARY, JZX_REASON_FAILED, JZX_ACTION_RESTART, JZI_VERDICT_STOP},
        {JZX_TRANSIENT, JZX_REASON_NORMAL, JZX_ACTION_RESTART, JZI_VERDICT_STOP},
        {JZX_PERMANENT, JZX_REASON_NORMAL, JZX_ACTION_RESTART, JZI_VERDICT_GIVE_UP},
        {JZX_PERMANENT, JZX_REASON_CRASH, JZX_ACTION_RESUME, JZI_VERDICT_GIVE_UP},
    };
    jzi_policy policy = policy_of(&(jzx_supervisor_spec){.intensity = JZX_INTENSITY_NEVER});
    jzi_window never = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzi_case it = {.mode = rows[i].mode, .reason = rows[i].reason, .action = rows[i].action};
        CHECK_EQ(jzi_policy_decide(&policy, &never, &it, 1).what, rows[i].what);
    }
}

/* Only the action STOP, and only under one_for_all: ends that no action asked for are one child's.
 */
static void test_the_action_stop_ends_all_under_one_for_all_R19(void)
{
    CHECK(jzi_policy_wants(JZI_MODE_SERVICE, JZX_REASON_NORMAL));
    CHECK(jzi_policy_wants(JZI_MODE_SERVICE, JZX_REASON_FAILED));
    CHECK(!jzi_policy_wants(JZI_MODE_SERVICE, JZX_REASON_SHUTDOWN)); /* a stop keeps it down */
    static const struct {
        uint32_t strategy, mode, reason, action, what;
    } rows[] = {
        {JZX_ONE_FOR_ALL, JZX_PERMANENT, JZX_REASON_FAILED, JZX_ACTION_STOP, JZI_VERDICT_STOP_ALL},
        {JZX_ONE_FOR_ALL, JZX_TEMPORARY, JZX_REASON_CRASH, JZX_ACTION_STOP, JZI_VERDICT_STOP_ALL},
        {JZX_ONE_FOR_ALL, JZX_TRANSIENT, JZX_REASON_NORMAL, JZX_ACTION_STOP, JZI_VERDICT_STOP},
        {JZX_ONE_FOR_ALL, JZX_TEMPORARY, JZX_REASON_FAILED, JZX_ACTION_RESTART, JZI_VERDICT_STOP},
        {JZX_ONE_FOR_ALL, JZX_PERMANENT, JZX_REASON_FAILED, JZX_ACTION_RESTART, JZI_VERDICT_STOP},
        {JZX_ONE_FOR_ONE, JZX_PERMANENT, JZX_REASON_FAILED, JZX_ACTION_STOP, JZI_VERDICT_STOP},
        {JZX_REST_FOR_ONE, JZX_PERMANENT, JZX_REASON_FAILED, JZX_ACTION_STOP, JZI_VERDICT_STOP},
        {JZX_DYNAMIC, JZX_PERMANENT, JZX_REASON_FAILED, JZX_ACTION_STOP, JZI_VERDICT_STOP},
    };
    jzi_window never = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzi_policy policy = policy_of(&(jzx_supervisor_spec){.strategy = rows[i].strategy,
                                                             .intensity = JZX_INTENSITY_NEVER,
                                                             .on_limit = JZX_LIMIT_STOP_CHILD});
        jzi_case it = {.mode = rows[i].mode, .reason = rows[i].reason, .action = rows[i].action};
        CHECK_EQ(jzi_policy_decide(&policy, &never, &it, 1).what, rows[i].what);
    }
}

static void test_a_child_with_a_budget_of_none_is_never_restarted_R19(void)
{
    jzi_policy policy = policy_of(&(jzx_supervisor_spec){.on_limit = JZX_LIMIT_STOP_CHILD});
    uint64_t stamp = 0;
    jzi_window shared = open_window(&stamp), none = {0};
    jzi_case it = {.reason = JZX_REASON_FAILED, .own = &none, .own_period_ns = SECOND};
    CHECK_EQ(jzi_policy_decide(&policy, &shared, &it, 1).what, JZI_VERDICT_STOP);
}

/* Goal: the whole story of a child that fails at once after each start, as a supervisor would run
 * it: the limit of OTP, I restarts pass and the next fails. */
static void test_a_child_that_flaps_gets_exactly_intensity_restarts_R19(void)
{
    for (uint32_t intensity = 1; intensity <= RING_MAX; intensity++) {
        jzi_policy policy = policy_of(&(jzx_supervisor_spec){.intensity = intensity});
        uint64_t stamps[RING_MAX] = {0};
        jzi_window window = {.stamps = stamps, .cap = policy.intensity};
        jzi_case it = {.reason = JZX_REASON_PANIC};
        uint32_t restarts = 0;
        for (;; restarts++) {
            REQUIRE(restarts <= RING_MAX);
            jzi_verdict verdict = jzi_policy_decide(&policy, &window, &it, SECOND);
            CHECK_EQ(verdict.attempt, restarts + 1);
            if (verdict.what != JZI_VERDICT_RESTART) {
                CHECK_EQ(verdict.what, JZI_VERDICT_GIVE_UP);
                break;
            }
            jzi_window_add(&window, SECOND);
            it.attempt = verdict.attempt;
        }
        CHECK_EQ(restarts, intensity);
    }
}

/* --- backoff --- */

static uint64_t delay_of(const jzi_policy *policy, uint32_t attempts_before, uint32_t random)
{
    uint64_t stamp = 0;
    jzi_window window = open_window(&stamp);
    jzi_case it = {.reason = JZX_REASON_FAILED, .attempt = attempts_before, .random = random};
    jzi_verdict verdict = jzi_policy_decide(policy, &window, &it, SECOND);
    REQUIRE_EQ(verdict.what, JZI_VERDICT_RESTART);
    return verdict.delay_ns;
}

static void test_the_backoff_curve_is_min_times_factor_up_to_max_R19(void)
{
    static const struct {
        uint32_t min_ms, max_ms;
        double factor;
        uint64_t delays_us[6]; /* of the first to the sixth attempt */
    } rows[] = {
        {0, 1000, 2, {0, 0, 0, 0, 0, 0}},
        {100, 0, 0, {100000, 200000, 400000, 800000, 1600000, 3200000}},
        {100, 1000, 0, {100000, 200000, 400000, 800000, 1000000, 1000000}},
        {100, 800, 2, {100000, 200000, 400000, 800000, 800000, 800000}},
        {100, 100, 2, {100000, 100000, 100000, 100000, 100000, 100000}},
        {100, 1000, 1, {100000, 100000, 100000, 100000, 100000, 100000}},
        {8, 40, 1.5, {8000, 12000, 18000, 27000, 40000, 40000}},
        {1, 5000, 10, {1000, 10000, 100000, 1000000, 5000000, 5000000}},
        {1, 5000, 1e308, {1000, 5000000, 5000000, 5000000, 5000000, 5000000}},
        {40000, 0, 2, {40000000, 40000000, 40000000, 40000000, 40000000, 40000000}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzi_policy policy = policy_of(&(jzx_supervisor_spec){.backoff_min_ms = rows[i].min_ms,
                                                             .backoff_max_ms = rows[i].max_ms,
                                                             .backoff_factor = rows[i].factor});
        for (uint32_t before = 0; before < 6; before++) {
            CHECK_EQ(delay_of(&policy, before, 12345), rows[i].delays_us[before] * 1000);
        }
    }
}

static void test_huge_attempts_neither_overflow_nor_wrap_R19(void)
{
    static const uint32_t attempts[] = {
        62, 63, 64, 1023, 1024, 1000000, INT32_MAX, 0x80000000u, UINT32_MAX - 1, UINT32_MAX};
    static const double factors[] = {1.0, 1.0000000001, 1.5, 2.0, 1e300};
    for (size_t f = 0; f < sizeof factors / sizeof factors[0]; f++) {
        jzi_policy policy = policy_of(&(jzx_supervisor_spec){.backoff_min_ms = 1,
                                                             .backoff_max_ms = UINT32_MAX,
                                                             .backoff_factor = factors[f],
                                                             .backoff_jitter = 1});
        uint64_t previous = 0;
        for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
            uint64_t delay = delay_of(&policy, attempts[i], UINT32_MAX);
            CHECK(delay >= previous && delay >= 2 * MS && delay <= UINT32_MAX * MS);
            CHECK(factors[f] < 1.5 || delay == UINT32_MAX * MS);
            CHECK_EQ(delay_of(&policy, attempts[i], 0), 0);
            previous = delay;
        }
    }
    jzi_policy policy = policy_of(NULL);
    CHECK_EQ(delay_of(&policy, UINT32_MAX, UINT32_MAX), 0); /* zero times infinity */
    uint64_t stamp = 0;
    jzi_window window = open_window(&stamp);
    jzi_case it = {.reason = JZX_REASON_FAILED, .attempt = UINT32_MAX};
    CHECK_EQ(jzi_policy_decide(&policy, &window, &it, 1).attempt, UINT32_MAX);
}

static void test_jitter_stays_in_its_bounds_and_reaches_them_R19(void)
{
    static const struct {
        uint32_t before; /* failures: the delay without jitter is 100 ms times two to this */
        double jitter;
        uint64_t low_us, middle_us, high_us; /* for the least, middle and greatest random number */
    } rows[] = {
        {0, 0.0, 100000, 100000, 100000},  {0, 0.1, 90000, 100000, 110000},
        {0, 0.5, 50000, 100000, 150000},   {0, 1.0, 0, 100000, 200000},
        {2, 0.5, 200000, 400000, 600000},  {3, 0.5, 400000, 700000, 1000000}, /* cut at 1 s */
        {9, 0.5, 500000, 750000, 1000000}, {9, 1.0, 0, 500000, 1000000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzi_policy policy = policy_of(&(jzx_supervisor_spec){
            .backoff_min_ms = 100, .backoff_max_ms = 1000, .backoff_jitter = rows[i].jitter});
        CHECK_EQ(delay_of(&policy, rows[i].before, 0) / 1000, rows[i].low_us);
        CHECK_EQ((delay_of(&policy, rows[i].before, UINT32_MAX / 2) + 500) / 1000,
                 rows[i].middle_us);
        CHECK_EQ((delay_of(&policy, rows[i].before, UINT32_MAX) + 500) / 1000, rows[i].high_us);
    }
}

static void test_random_jitter_is_spread_evenly_even_at_the_maximum_R19(void)
{
    enum { DRAWS = 10000, BINS = 10 };
    jzi_policy policy = policy_of(&(jzx_supervisor_spec){
        .backoff_min_ms = 100, .backoff_max_ms = 1000, .backoff_jitter = 0.5});
    jzt_rng rng = jzt_rng_seeded();
    for (uint32_t before = 0; before < 8; before += 7) {
        uint64_t low = before == 0 ? 50 * MS : 500 * MS, high = before == 0 ? 150 * MS : SECOND;
        unsigned bins[BINS] = {0};
        for (int i = 0; i < DRAWS; i++) {
            uint64_t delay = delay_of(&policy, before, (uint32_t)jzt_rng_next(&rng));
            REQUIRE(delay >= low && delay <= high);
            uint64_t bin = (delay - low) * BINS / (high - low);
            bins[bin < BINS ? bin : BINS - 1]++;
        }
        for (int bin = 0; bin < BINS; bin++) {
            CHECK(bins[bin] > DRAWS / BINS / 2 && bins[bin] < DRAWS / BINS * 2);
        }
    }
}

static void test_the_attempts_start_over_after_a_quiet_period_R19(void)
{
    /* now is 100 s; the quiet period is 10 s. */
    static const struct {
        uint32_t before;
        uint64_t up_since_ns;
        uint32_t attempt;
    } rows[] = {
        {0, 0, 1},
        {4, 0, 5}, /* has not run since */
        {4, 100 * SECOND, 5},
        {4, 90 * SECOND + 1, 5},
        {4, 90 * SECOND, 1},
        {4, 1, 1},
        {4, 101 * SECOND, 5}, /* from the future: not quiet */
        {0, 99 * SECOND, 1},
    };
    jzi_policy policy =
        policy_of(&(jzx_supervisor_spec){.backoff_min_ms = 100, .backoff_reset_ms = 10000});
    uint64_t stamp = 0;
    jzi_window window = open_window(&stamp);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzi_case it = {.reason = JZX_REASON_FAILED,
                       .attempt = rows[i].before,
                       .up_since_ns = rows[i].up_since_ns};
        jzi_verdict verdict = jzi_policy_decide(&policy, &window, &it, 100 * SECOND);
        CHECK_EQ(verdict.attempt, rows[i].attempt);
        CHECK_EQ(verdict.delay_ns, (100 * MS) << (rows[i].attempt - 1));
        it.action = JZX_ACTION_STOP; /* counted in every verdict */
        CHECK_EQ(jzi_policy_decide(&policy, &window, &it, 100 * SECOND).attempt, rows[i].attempt);
    }
}

static const jzt_test tests[] = {
    {"no_spec_and_a_zero_spec_are_the_defaults_R36",
     test_no_spec_and_a_zero_spec_are_the_defaults_R36},
    {"what_the_spec_says_is_taken_R19", test_what_the_spec_says_is_taken_R19},
    {"defaults_that_follow_other_fields_R36", test_defaults_that_follow_other_fields_R36},
    {"intensity_has_a_default_a_name_for_none_and_a_maximum_R36",
     test_intensity_has_a_default_a_name_for_none_and_a_maximum_R36},
    {"each_bad_field_has_its_sentence_and_nothing_is_written_R19",
     test_each_bad_field_has_its_sentence_and_nothing_is_written_R19},
    {"extremes_that_are_allowed_R19", test_extremes_that_are_allowed_R19},
    {"a_window_lets_intensity_restarts_pass_and_refuses_the_next_R19",
     test_a_window_lets_intensity_restarts_pass_and_refuses_the_next_R19},
    {"a_window_of_intensity_zero_is_always_full_and_remembers_nothing_R19",
     test_a_window_of_intensity_zero_is_always_full_and_remembers_nothing_R19},
    {"a_stamp_exactly_one_period_old_still_counts_R19",
     test_a_stamp_exactly_one_period_old_still_counts_R19},
    {"the_window_slides_instead_of_starting_over_R19",
     test_the_window_slides_instead_of_starting_over_R19},
    {"random_walk_agrees_with_a_list_that_forgets_nothing_R19",
     test_random_walk_agrees_with_a_list_that_forgets_nothing_R19},
    {"a_copy_keeps_the_newest_that_fit_in_order_R19",
     test_a_copy_keeps_the_newest_that_fit_in_order_R19},
    {"which_ends_are_followed_by_a_restart_R19", test_which_ends_are_followed_by_a_restart_R19},
    {"every_mode_reason_and_action_R19", test_every_mode_reason_and_action_R19},
    {"an_action_that_is_none_escalates_R19", test_an_action_that_is_none_escalates_R19},
    {"beyond_a_limit_on_limit_decides_R19", test_beyond_a_limit_on_limit_decides_R19},
    {"the_limit_concerns_restarts_only_R19", test_the_limit_concerns_restarts_only_R19},
    {"the_action_stop_ends_all_under_one_for_all_R19",
     test_the_action_stop_ends_all_under_one_for_all_R19},
    {"a_child_with_a_budget_of_none_is_never_restarted_R19",
     test_a_child_with_a_budget_of_none_is_never_restarted_R19},
    {"a_child_that_flaps_gets_exactly_intensity_restarts_R19",
     test_a_child_that_flaps_gets_exactly_intensity_restarts_R19},
    {"the_backoff_curve_is_min_times_factor_up_to_max_R19",
     test_the_backoff_curve_is_min_times_factor_up_to_max_R19},
    {"huge_attempts_neither_overflow_nor_wrap_R19",
     test_huge_attempts_neither_overflow_nor_wrap_R19},
    {"jitter_stays_in_its_bounds_and_reaches_them_R19",
     test_jitter_stays_in_its_bounds_and_reaches_them_R19},
    {"random_jitter_is_spread_evenly_even_at_the_maximum_R19",
     test_random_jitter_is_spread_evenly_even_at_the_maximum_R19},
    {"the_attempts_start_over_after_a_quiet_period_R19",
     test_the_attempts_start_over_after_a_quiet_period_R19},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
