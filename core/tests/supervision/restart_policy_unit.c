/* Goal: how a policy is made of a spec, and whether a child is restarted, cell by cell (R19).
 * Method: tables over every mode, reason and action. */
#include "policy_kit.h"

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
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
