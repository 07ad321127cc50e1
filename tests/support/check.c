#define _DEFAULT_SOURCE
#include "check.h"

#include <jzx/types.h>

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More messages than this say nothing new, and a broken loop of a million steps would fill disks.
 */
enum { FAILURES_SHOWN_MAX = 20 };

static const char *program;
static const char *current_name;
static const char *skip_reason; /* NULL unless the current test was skipped */
static jmp_buf leave_test;
static atomic_uint failures;
static atomic_uint seeds_used;
static uint64_t seed;
static _Thread_local bool on_runner_thread;

_Noreturn static void jump_out(void)
{
    if (!on_runner_thread) {
        fprintf(stderr, "A test left from a thread that does not run it; the program ends here.\n");
        exit(1);
    }
    longjmp(leave_test, 1);
}

static void report(jzt_grade grade, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void report(jzt_grade grade, const char *file, int line, const char *format, ...)
{
    unsigned before = atomic_fetch_add(&failures, 1);
    if (before == 0) {
        printf("\n");
        if (atomic_load(&seeds_used) > 0) {
            printf("    seed %" PRIu64 "; replay with: JZX_SEED=%" PRIu64 " %s %s\n", seed, seed,
                   program, current_name);
        }
    }
    if (before < FAILURES_SHOWN_MAX) {
        char text[1024];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        printf("    %s:%d: %s\n", file, line, text);
    } else if (before == FAILURES_SHOWN_MAX) {
        printf("    and more\n");
    }
    fflush(stdout);
    if (grade == JZT_REQUIRE) {
        jump_out();
    }
}

void jzt_check_true(jzt_grade grade, const char *file, int line, const char *text, int holds)
{
    if (!holds) {
        report(grade, file, line, "%s does not hold", text);
    }
}

void jzt_check_eq(jzt_grade grade, const char *file, int line, const char *a_text,
                  const char *b_text, intmax_t a, intmax_t b)
{
    if (a != b) {
        report(grade, file, line, "%s is %jd (0x%jx), not %s, which is %jd (0x%jx)", a_text, a,
               (uintmax_t)a, b_text, b, (uintmax_t)b);
    }
}

void jzt_check_str(jzt_grade grade, const char *file, int line, const char *a_text, const char *a,
                   const char *b)
{
    bool same = a != NULL && b != NULL ? strcmp(a, b) == 0 : a == b;
    if (!same) {
        report(grade, file, line, "%s is \"%s\", not \"%s\"", a_text, a != NULL ? a : "(null)",
               b != NULL ? b : "(null)");
    }
}

void jzt_check_ok(jzt_grade grade, const char *file, int line, const char *text, int err)
{
    if (err != JZX_OK) {
        report(grade, file, line, "%s gave %s (%d)", text, jzx_err_name(err), err);
    }
}

_Noreturn void jzt_skip(const char *why)
{
    skip_reason = why;
    jump_out();
}

unsigned jzt_failures(void)
{
    return atomic_load(&failures);
}

unsigned jzt_on_pool(void)
{
    static const char prefix[] = "pool:";
    const char *wish = getenv("JZX_DISPATCHER");
    bool pool = wish != NULL && strncmp(wish, prefix, sizeof prefix - 1) == 0;
    return pool ? (unsigned)strtoul(wish + sizeof prefix - 1, NULL, 10) : 0;
}

int jzt_on_threads(void)
{
    const char *wish = getenv("JZX_DISPATCHER");
    return jzt_on_pool() > 0 || (wish != NULL && strcmp(wish, "pinned") == 0);
}

uint64_t jzt_seed(void)
{
    atomic_fetch_add(&seeds_used, 1);
    return seed;
}

jzt_rng jzt_rng_seeded(void)
{
    /* Several generators in one test must differ, and each must come out the same in a replay. */
    uint64_t nth = atomic_fetch_add(&seeds_used, 1);
    return (jzt_rng){.state = seed + nth * UINT64_C(0xD1B54A32D192ED03)};
}

/* SplitMix64: a counter and a mixing function; every state is a good one. */
uint64_t jzt_rng_next(jzt_rng *rng)
{
    rng->state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = rng->state;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint64_t jzt_rng_below(jzt_rng *rng, uint64_t bound)
{
    /* Values below 2^64 mod bound are drawn again, so that every remainder is equally likely. */
    uint64_t refused = (0 - bound) % bound;
    uint64_t value = jzt_rng_next(rng);
    while (value < refused) {
        value = jzt_rng_next(rng);
    }
    return value % bound;
}

static bool seed_choose(void)
{
    const char *given = getenv("JZX_SEED");
    if (given == NULL || *given == '\0') {
        /* Short seeds are easier to type again. */
        uint32_t drawn = 0;
        if (getentropy(&drawn, sizeof drawn) != 0) {
            drawn = (uint32_t)getpid();
        }
        seed = drawn;
        return true;
    }
    char *end = NULL;
    seed = strtoull(given, &end, 0);
    if (*end != '\0') {
        fprintf(stderr, "JZX_SEED is not a number: %s\n", given);
        return false;
    }
    return true;
}

static bool name_is_wanted(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return true;
        }
    }
    return argc < 2;
}

static bool names_exist(int argc, char **argv, const jzt_test *tests, size_t count)
{
    for (int i = 1; i < argc; i++) {
        size_t at = 0;
        while (at < count && strcmp(tests[at].name, argv[i]) != 0) {
            at++;
        }
        if (at == count) {
            fprintf(stderr, "There is no test called %s.\n", argv[i]);
            return false;
        }
    }
    return true;
}

typedef enum outcome { PASSED, FAILED, SKIPPED } outcome;

static outcome test_run(const jzt_test *test)
{
    current_name = test->name;
    skip_reason = NULL;
    atomic_store(&failures, 0);
    atomic_store(&seeds_used, 0);
    /* The name comes before the test runs, so that a crash tells where it happened. */
    printf("%s ... ", test->name);
    fflush(stdout);
    if (setjmp(leave_test) == 0) {
        test->run();
    }
    if (atomic_load(&failures) > 0) {
        printf("FAILED %s\n", test->name);
        return FAILED;
    }
    if (skip_reason != NULL) {
        printf("skipped: %s\n", skip_reason);
        return SKIPPED;
    }
    printf("ok\n");
    return PASSED;
}

int jzt_main(int argc, char **argv, const jzt_test *tests, size_t count)
{
    program = argc > 0 ? argv[0] : "";
    on_runner_thread = true;
    if (!seed_choose() || !names_exist(argc, argv, tests, count)) {
        return 2;
    }
    unsigned counts[3] = {0};
    for (size_t i = 0; i < count; i++) {
        if (name_is_wanted(argc, argv, tests[i].name)) {
            counts[test_run(&tests[i])]++;
        }
    }
    printf("%u passed, %u failed, %u skipped\n", counts[PASSED], counts[FAILED], counts[SKIPPED]);
    if (counts[FAILED] > 0) {
        return 1;
    }
    return counts[PASSED] == 0 && counts[SKIPPED] > 0 ? 77 : 0;
}
