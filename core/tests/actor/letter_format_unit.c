/* Goal: a dead letter reads as one line, and a log of them stays within its limit (R21).
 * Method: lines as tables; for the limit borders of the bucket, then seeded letters against what a
 * limit means: in no stretch of time more than its burst and its rate. */
#include <jzx/dead_letter.h>

#include "support/check.h"

#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define SECOND UINT64_C(1000000000)
#define ID(slot, generation) ((jzx_actor_id)(generation) << 32 | (slot))

typedef struct line {
    jzx_dead_letter letter;
    const char *text;
} line;

static void test_a_letter_is_one_line_R21(void)
{
    static const line lines[] = {
        {{.seq = 17,
          .tag = 3,
          .len = 8,
          .sender = ID(5, 1),
          .target = ID(9, 2),
          .reason = JZX_DEAD_STOPPED},
         "dead letter 17: tag 3, 8 bytes, from 5.1 to 9.2: stopped"},
        {{.seq = 1, .len = 1, .target = ID(0, 4), .reason = JZX_DEAD_EXPIRED},
         "dead letter 1: tag 0, 1 byte, from nobody to 0.4: expired"},
        {{.seq = UINT64_MAX,
          .tag = UINT32_MAX,
          .len = UINT64_MAX,
          .sender = UINT64_MAX,
          .target = UINT64_MAX,
          .reason = JZX_DEAD_LOOP_CLOSED},
         "dead letter 18446744073709551615: tag 4294967295, 18446744073709551615 bytes, from "
         "16777215.4294967295 to 16777215.4294967295: loop closed"},
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char buf[256];
        CHECK_EQ(jzx_dead_letter_format(&lines[i].letter, buf, sizeof buf), strlen(lines[i].text));
        CHECK_STR(buf, lines[i].text);
    }
}

static void test_every_reason_has_its_word_in_the_line_R21(void)
{
    for (uint32_t reason = 0; reason <= JZX_DEAD_REASONS; reason++) {
        jzx_dead_letter letter = {.reason = (uint8_t)reason};
        char buf[256];
        CHECK(jzx_dead_letter_format(&letter, buf, sizeof buf) > 0);
        const char *last = strrchr(buf, ':');
        const char *name = jzx_dead_reason_name(reason);
        REQUIRE(last != NULL && name != NULL);
        CHECK_STR(last + 2, name);
    }
}

/* As snprintf(3): whatever the room, the same length, and never a byte too many. */
static void test_a_line_that_does_not_fit_is_cut_R21(void)
{
    jzx_dead_letter letter = {.seq = 2, .target = ID(1, 1)};
    char whole[256];
    int length = jzx_dead_letter_format(&letter, whole, sizeof whole);
    CHECK_EQ(jzx_dead_letter_format(&letter, NULL, 0), length);
    for (size_t cap = 0; cap <= (size_t)length + 1; cap++) {
        char buf[256];
        memset(buf, '#', sizeof buf);
        CHECK_EQ(jzx_dead_letter_format(&letter, buf, cap), length);
        CHECK_EQ(buf[cap], '#');
        if (cap > 0) {
            CHECK_EQ(strlen(buf), cap - 1);
            CHECK(strncmp(buf, whole, cap - 1) == 0);
        }
    }
}

static void test_missing_arguments_do_nothing(void)
{
    char buf[8] = "as it is";
    jzx_dead_letter letter = {.seq = 1};
    jzx_letter_limit limit = {.burst = 1};
    uint64_t suppressed = 5;
    CHECK_EQ(jzx_dead_letter_format(NULL, buf, sizeof buf), -1);
    CHECK_EQ(jzx_dead_letter_format(&letter, NULL, 4), -1);
    CHECK_EQ(buf[0], 'a');
    CHECK_EQ(jzx_letter_limit_pass(NULL, &letter, &suppressed), 0);
    CHECK_EQ(jzx_letter_limit_pass(&limit, NULL, &suppressed), 0);
    CHECK_EQ(suppressed, 5);
    CHECK_EQ(jzx_letter_limit_pass(&limit, &letter, NULL), 1);
}

static int pass_at(jzx_letter_limit *limit, uint64_t time_ns, uint64_t *out_suppressed)
{
    jzx_dead_letter letter = {.time_ns = time_ns};
    return jzx_letter_limit_pass(limit, &letter, out_suppressed);
}

/* How many of many letters of one moment are printed. */
static uint64_t passed_at(jzx_letter_limit *limit, uint64_t time_ns)
{
    uint64_t count = 0;
    for (int i = 0; i < 1000; i++) {
        count += pass_at(limit, time_ns, NULL) == 1;
    }
    return count;
}

static void test_a_zeroed_limit_has_the_documented_numbers_R21(void)
{
    jzx_letter_limit limit = {0};
    CHECK_EQ(passed_at(&limit, 0), 20);          /* a world may begin at zero */
    CHECK_EQ(passed_at(&limit, SECOND), 10);     /* ten a second */
    CHECK_EQ(passed_at(&limit, 2 * SECOND), 10); /* again */
    CHECK_EQ(passed_at(&limit, 9 * SECOND), 20); /* and never more than the burst */
    jzx_letter_limit late = {0};
    CHECK_EQ(passed_at(&late, 77 * SECOND), 20);
}

static void test_the_line_after_a_silence_says_how_many_were_left_out_R21(void)
{
    jzx_letter_limit limit = {.per_second = 1, .burst = 2};
    uint64_t suppressed = 99;
    CHECK_EQ(pass_at(&limit, 1, &suppressed), 1);
    CHECK_EQ(suppressed, 0);
    CHECK_EQ(pass_at(&limit, 1, &suppressed), 1);
    for (int i = 0; i < 5; i++) {
        suppressed = 99;
        CHECK_EQ(pass_at(&limit, 1, &suppressed), 0);
        CHECK_EQ(suppressed, 99);
    }
    CHECK_EQ(pass_at(&limit, SECOND, &suppressed), 0); /* one nanosecond early */
    CHECK_EQ(pass_at(&limit, SECOND + 1, &suppressed), 1);
    CHECK_EQ(suppressed, 6);
    CHECK_EQ(pass_at(&limit, 2 * SECOND + 1, &suppressed), 1);
    CHECK_EQ(suppressed, 0);
}

static void test_a_line_is_not_due_a_nanosecond_early_R21(void)
{
    jzx_letter_limit limit = {.per_second = 3, .burst = 1};
    CHECK_EQ(pass_at(&limit, 0, NULL), 1);
    CHECK_EQ(pass_at(&limit, SECOND / 3, NULL), 0); /* a third, rounded down */
    CHECK_EQ(pass_at(&limit, SECOND / 3 + 1, NULL), 1);
}

static void test_time_that_goes_back_or_leaps_does_no_harm_R21(void)
{
    jzx_letter_limit limit = {.per_second = UINT32_MAX, .burst = UINT32_MAX};
    CHECK_EQ(pass_at(&limit, 5 * SECOND, NULL), 1);
    CHECK_EQ(pass_at(&limit, UINT64_MAX, NULL), 1);
    CHECK_EQ(pass_at(&limit, 3, NULL), 1);
    jzx_letter_limit small = {.per_second = 1, .burst = 1};
    CHECK_EQ(pass_at(&small, 5 * SECOND, NULL), 1);
    CHECK_EQ(pass_at(&small, 1, NULL), 0); /* going back earns nothing, */
    CHECK_EQ(pass_at(&small, 5 * SECOND, NULL), 0);
    CHECK_EQ(pass_at(&small, 6 * SECOND, NULL), 1); /* and costs nothing */
    CHECK_EQ(pass_at(&small, UINT64_MAX, NULL), 1);
    CHECK_EQ(pass_at(&small, UINT64_MAX, NULL), 0);
    jzx_letter_limit shrunk = {.per_second = 1, .burst = 100};
    CHECK_EQ(passed_at(&shrunk, 0), 100);
    shrunk.burst = 2;
    CHECK_EQ(passed_at(&shrunk, SECOND), 0); /* it is deep in debt by the new measure */
    CHECK_EQ(passed_at(&shrunk, 100 * SECOND), 2);
}

enum { LETTERS = 400 };

/* Among the first `count` letters, those that were printed: between any two of them no more than
 * the burst and what the time between them brings. Products of small numbers, so nothing wraps. */
static void check_stretches(const uint64_t *printed, size_t count, uint64_t per_second,
                            uint64_t burst)
{
    for (size_t first = 0; first < count; first++) {
        for (size_t last = first; last < count; last++) {
            uint64_t lines = last - first + 1;
            uint64_t time = printed[last] - printed[first];
            CHECK(lines * SECOND <= burst * SECOND + time * per_second);
            if (jzt_failures() > 0) {
                return;
            }
        }
    }
}

static void test_no_stretch_of_time_has_more_lines_than_allowed_R21(void)
{
    jzt_rng rng = jzt_rng_seeded();
    for (int round = 0; round < 20 && jzt_failures() == 0; round++) {
        jzx_letter_limit limit = {.per_second = 1 + (uint32_t)jzt_rng_below(&rng, 50),
                                  .burst = 1 + (uint32_t)jzt_rng_below(&rng, 10)};
        uint64_t printed[LETTERS];
        size_t count = 0;
        uint64_t left_out = 0;
        uint64_t told = 0;
        uint64_t now = jzt_rng_below(&rng, 3) * SECOND;
        for (int i = 0; i < LETTERS; i++) {
            now += jzt_rng_below(&rng, 4) == 0 ? jzt_rng_below(&rng, SECOND / 2) : 0;
            uint64_t suppressed = 0;
            if (pass_at(&limit, now, &suppressed) == 1) {
                printed[count++] = now;
                told += suppressed;
                CHECK_EQ(told, left_out);
            } else {
                left_out++;
            }
        }
        CHECK_EQ(count + left_out, LETTERS);
        CHECK(count >= limit.burst);
        check_stretches(printed, count, limit.per_second, limit.burst);
    }
}

/* The limit is kept and also used up: a flood gets every line there is. */
static void test_a_steady_flood_gets_its_full_rate_R21(void)
{
    jzx_letter_limit limit = {.per_second = 7, .burst = 3};
    uint64_t count = 0;
    for (uint64_t ms = 0; ms <= 100000; ms++) {
        count += pass_at(&limit, ms * 1000000, NULL) == 1;
    }
    CHECK_EQ(count, 3 + 7 * 100);
}

static const jzt_test tests[] = {
    {"a_letter_is_one_line_R21", test_a_letter_is_one_line_R21},
    {"every_reason_has_its_word_in_the_line_R21", test_every_reason_has_its_word_in_the_line_R21},
    {"a_line_that_does_not_fit_is_cut_R21", test_a_line_that_does_not_fit_is_cut_R21},
    {"missing_arguments_do_nothing", test_missing_arguments_do_nothing},
    {"a_zeroed_limit_has_the_documented_numbers_R21",
     test_a_zeroed_limit_has_the_documented_numbers_R21},
    {"the_line_after_a_silence_says_how_many_were_left_out_R21",
     test_the_line_after_a_silence_says_how_many_were_left_out_R21},
    {"a_line_is_not_due_a_nanosecond_early_R21", test_a_line_is_not_due_a_nanosecond_early_R21},
    {"time_that_goes_back_or_leaps_does_no_harm_R21",
     test_time_that_goes_back_or_leaps_does_no_harm_R21},
    {"no_stretch_of_time_has_more_lines_than_allowed_R21",
     test_no_stretch_of_time_has_more_lines_than_allowed_R21},
    {"a_steady_flood_gets_its_full_rate_R21", test_a_steady_flood_gets_its_full_rate_R21},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
