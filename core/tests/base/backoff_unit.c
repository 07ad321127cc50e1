/* Goal: delays grow from the shortest to the longest, jitter moves them within its part, and no
 * number makes them anything else. Method: the random number is an argument, so both ends are
 * tried. What supervisors make of it is in restart_policy_unit.c. */
#include "base/backoff.h"
#include "base/random.h"
#include "check.h"

#include <math.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void test_delays_grow_by_the_factor_up_to_the_maximum(void)
{
    jzi_backoff backoff = {.min_ns = 100, .max_ns = 1000, .factor = 2};
    static const uint64_t want[] = {100, 200, 400, 800, 1000, 1000};
    for (uint32_t i = 0; i < COUNT_OF(want); i++) {
        CHECK_EQ(jzi_backoff_delay(&backoff, i + 1, UINT32_MAX), want[i]);
    }
    CHECK_EQ(jzi_backoff_delay(&backoff, UINT32_MAX, 0), 1000);
    jzi_backoff none = {.factor = 2, .jitter = 1};
    CHECK_EQ(jzi_backoff_delay(&none, 1, UINT32_MAX), 0);
    CHECK_EQ(jzi_backoff_delay(&none, UINT32_MAX, UINT32_MAX), 0);
}

static void test_jitter_stays_in_its_range_and_below_the_maximum(void)
{
    jzi_backoff backoff = {.min_ns = 1000, .max_ns = 1100, .factor = 1, .jitter = 0.5};
    CHECK_EQ(jzi_backoff_delay(&backoff, 1, 0), 500);
    CHECK_EQ(jzi_backoff_delay(&backoff, 1, UINT32_MAX), 1100);
    uint64_t random = 5;
    uint64_t below = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t delay = jzi_backoff_delay(&backoff, 1, jzi_random_next(&random));
        CHECK(delay >= 500 && delay <= 1100);
        below += delay < 800 ? 1 : 0;
    }
    CHECK(below > 400 && below < 600);
}

static void test_no_attempt_and_no_number_is_too_large(void)
{
    static const double factors[] = {1, 1.0000001, 2, 1e10, 1e308};
    static const uint32_t attempts[] = {1, 2, 64, 1025, UINT32_MAX};
    static const uint64_t maxima[] = {1, 1000, UINT64_C(4294967295000000), UINT64_MAX};
    for (size_t f = 0; f < COUNT_OF(factors); f++) {
        for (size_t a = 0; a < COUNT_OF(attempts); a++) {
            for (size_t m = 0; m < COUNT_OF(maxima); m++) {
                jzi_backoff backoff = {
                    .min_ns = 1, .max_ns = maxima[m], .factor = factors[f], .jitter = 1};
                CHECK(jzi_backoff_delay(&backoff, attempts[a], UINT32_MAX) <= maxima[m]);
                CHECK_EQ(jzi_backoff_delay(&backoff, attempts[a], 0), 0);
                backoff.jitter = 0;
                CHECK(jzi_backoff_delay(&backoff, attempts[a], UINT32_MAX) >= 1);
            }
        }
    }
}

static void test_without_a_shortest_delay_there_is_none(void)
{
    jzi_backoff none = {.max_ns = 1000, .factor = 1e308, .jitter = 1};
    CHECK_EQ(jzi_backoff_delay(&none, 1, UINT32_MAX), 0);
    CHECK_EQ(jzi_backoff_delay(&none, UINT32_MAX, UINT32_MAX), 0); /* 0 times infinity */
}

static void test_what_is_wrong_is_named(void)
{
    static const struct {
        double factor, jitter;
        const char *why;
    } rows[] = {
        {0, 0, NULL},
        {1, 1, NULL},
        {1e308, 0.5, NULL},
        {0.999, 0, "backoff_factor is below 1"},
        {-1, 0, "backoff_factor is below 1"},
        {NAN, 0, "backoff_factor is no finite number"},
        {INFINITY, 0, "backoff_factor is no finite number"},
        {2, NAN, "backoff_jitter is no finite number"},
        {2, -0.001, "backoff_jitter is not between 0 and 1"},
        {2, 1.001, "backoff_jitter is not between 0 and 1"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *why = jzi_backoff_wrong(rows[i].factor, rows[i].jitter);
        CHECK_EQ(why != NULL, rows[i].why != NULL);
        if (why != NULL && rows[i].why != NULL) {
            CHECK_STR(why, rows[i].why);
        }
    }
}

static const jzt_test tests[] = {
    {"delays_grow_by_the_factor_up_to_the_maximum",
     test_delays_grow_by_the_factor_up_to_the_maximum},
    {"jitter_stays_in_its_range_and_below_the_maximum",
     test_jitter_stays_in_its_range_and_below_the_maximum},
    {"no_attempt_and_no_number_is_too_large", test_no_attempt_and_no_number_is_too_large},
    {"without_a_shortest_delay_there_is_none", test_without_a_shortest_delay_there_is_none},
    {"what_is_wrong_is_named", test_what_is_wrong_is_named},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
