/* The test runner: a list of named functions, checks that go on, requirements that leave the test.
 *
 *     static const jzt_test tests[] = {{"ids_are_never_reused", test_ids_are_never_reused}};
 *     int main(int argc, char **argv)
 *     {
 *         return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
 *     }
 *
 * A program runs all of its tests, or those named on its command line. It exits with 0 when none
 * failed, 1 when one did, 2 when it was called wrongly and 77 when all were skipped.
 *
 * Checks work on every thread. Requirements and jzt_skip() jump out of the test, so they belong to
 * the thread that runs it; on another thread a failed requirement ends the program. */
#ifndef JZT_CHECK_H
#define JZT_CHECK_H

#include "program.h"

#include <stddef.h>
#include <stdint.h>

/* What this build is checked by: tests that are about numbers do with less then. */
#if defined(__has_feature)
#define JZT_FEATURE(name) __has_feature(name)
#else
#define JZT_FEATURE(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || JZT_FEATURE(thread_sanitizer)
#define JZT_TSAN 1
#else
#define JZT_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__) || JZT_FEATURE(address_sanitizer) || JZT_TSAN
#define JZT_SANITIZED 1
#else
#define JZT_SANITIZED 0
#endif

typedef struct jzt_test {
    const char *name;
    void (*run)(void);
} jzt_test;

int jzt_main(int argc, char **argv, const jzt_test *tests, size_t count);

/* Leaves the current test, which then counts as skipped. `why` is a sentence. */
_Noreturn void jzt_skip(const char *why);

/* Failures of the current test so far, for loops that want to stop early. */
unsigned jzt_failures(void);

/* What JZX_DISPATCHER makes of loops that do not choose (R31), for the few checks that hold on some
 * dispatchers only. Each use says why. */
/* How many workers share the actors; 0: it is no pool. In simulation they are virtual. */
unsigned jzt_on_pool(void);
/* Whether actors run on threads of the library, in pools or pinned; not in simulation. */
int jzt_on_threads(void);

/* A small generator for random tests. The seed is JZX_SEED, or drawn once per program, and printed
 * with the first failure. Each test starts from the seed afresh, so it replays alone as well. */
typedef struct jzt_rng {
    uint64_t state;
} jzt_rng;

uint64_t jzt_seed(void);
jzt_rng jzt_rng_seeded(void);
uint64_t jzt_rng_next(jzt_rng *rng);
/* Uniform in [0, bound); bound must not be 0. */
uint64_t jzt_rng_below(jzt_rng *rng, uint64_t bound);

/* What a failed check does: note it and go on, or leave the test. */
typedef enum jzt_grade { JZT_CHECK, JZT_REQUIRE } jzt_grade;

void jzt_check_true(jzt_grade grade, const char *file, int line, const char *text, int holds);
void jzt_check_eq(jzt_grade grade, const char *file, int line, const char *a_text,
                  const char *b_text, intmax_t a, intmax_t b);
void jzt_check_str(jzt_grade grade, const char *file, int line, const char *a_text, const char *a,
                   const char *b);
void jzt_check_ok(jzt_grade grade, const char *file, int line, const char *text, int err);

/* Each argument is evaluated once. CHECK_EQ compares integers of any type, as 64 bits. */
#define CHECK(cond) jzt_check_true(JZT_CHECK, __FILE__, __LINE__, #cond, (cond) ? 1 : 0)
#define CHECK_EQ(a, b)                                                                             \
    jzt_check_eq(JZT_CHECK, __FILE__, __LINE__, #a, #b, (intmax_t)(a), (intmax_t)(b))
#define CHECK_STR(a, b) jzt_check_str(JZT_CHECK, __FILE__, __LINE__, #a, (a), (b))
#define CHECK_OK(err) jzt_check_ok(JZT_CHECK, __FILE__, __LINE__, #err, (int)(err))

#define REQUIRE(cond) jzt_check_true(JZT_REQUIRE, __FILE__, __LINE__, #cond, (cond) ? 1 : 0)
#define REQUIRE_EQ(a, b)                                                                           \
    jzt_check_eq(JZT_REQUIRE, __FILE__, __LINE__, #a, #b, (intmax_t)(a), (intmax_t)(b))
#define REQUIRE_STR(a, b) jzt_check_str(JZT_REQUIRE, __FILE__, __LINE__, #a, (a), (b))
#define REQUIRE_OK(err) jzt_check_ok(JZT_REQUIRE, __FILE__, __LINE__, #err, (int)(err))

#endif
