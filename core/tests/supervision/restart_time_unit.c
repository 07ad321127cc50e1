/* Goal: when a child is restarted: windows of intensity and backoff (R19).
 * Method: windows against a plain list that forgets nothing; the backoff curve against a loop that
 * multiplies. */
#include "policy_kit.h"

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
