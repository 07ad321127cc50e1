/* Goal: the same seed draws the same numbers, and they are spread evenly; hashes of neighbours
 * differ in about half of their bits. Method: published values of splitmix64, and counting. */
#include "base/hash.h"
#include "base/random.h"
#include "check.h"

static void test_it_is_splitmix64_R30(void)
{
    /* The upper halves of what the reference implementation gives for the seed 1234567. */
    static const uint32_t want[] = {0x599ED017, 0x2C73F084, 0x883EBCE5, 0x3FBEF740, 0xE3B83467};
    uint64_t state = 1234567;
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(jzi_random_next(&state), want[i]);
    }
}

static void test_numbers_below_a_limit_are_spread_evenly(void)
{
    enum { DRAWS = 40000, LIMIT = 10 };
    uint64_t state = 0;
    unsigned bins[LIMIT] = {0};
    for (int i = 0; i < DRAWS; i++) {
        uint32_t drawn = jzi_random_below(&state, LIMIT);
        REQUIRE(drawn < LIMIT);
        bins[drawn]++;
    }
    for (int i = 0; i < LIMIT; i++) {
        CHECK(bins[i] > DRAWS / LIMIT * 9 / 10 && bins[i] < DRAWS / LIMIT * 11 / 10);
    }
}

static void test_limits_of_none_one_and_all(void)
{
    uint64_t state = 42;
    uint32_t most = 0;
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(jzi_random_below(&state, 0), 0);
        CHECK_EQ(jzi_random_below(&state, 1), 0);
        uint32_t drawn = jzi_random_below(&state, UINT32_MAX);
        CHECK(drawn < UINT32_MAX);
        most = drawn > most ? drawn : most;
    }
    CHECK(most > UINT32_MAX / 100 * 99);
}

static void test_a_hash_of_a_neighbour_differs_in_half_of_its_bits(void)
{
    int changed = 0;
    for (uint64_t number = 1; number <= 1000; number++) {
        for (int bit = 0; bit < 64; bit++) {
            changed += __builtin_popcountll(jzi_hash_mix(number) ^
                                            jzi_hash_mix(number ^ UINT64_C(1) << bit));
        }
    }
    CHECK(changed > 64000 * 31 && changed < 64000 * 33);
}

static void test_texts_have_the_same_hash_in_every_run_R30(void)
{
    CHECK(jzi_hash_text("") != jzi_hash_text("a"));
    CHECK(jzi_hash_text("ab") != jzi_hash_text("ba"));
    CHECK_EQ(jzi_hash_text("a"), jzi_hash_mix(UINT64_C(0xAF63DC4C8601EC8C))); /* FNV-1a of "a" */
}

static const jzt_test tests[] = {
    {"it_is_splitmix64_R30", test_it_is_splitmix64_R30},
    {"numbers_below_a_limit_are_spread_evenly", test_numbers_below_a_limit_are_spread_evenly},
    {"limits_of_none_one_and_all", test_limits_of_none_one_and_all},
    {"a_hash_of_a_neighbour_differs_in_half_of_its_bits",
     test_a_hash_of_a_neighbour_differs_in_half_of_its_bits},
    {"texts_have_the_same_hash_in_every_run_R30", test_texts_have_the_same_hash_in_every_run_R30},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
