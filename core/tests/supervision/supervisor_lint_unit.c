/* Goal: a spec that is allowed but likely to hurt gets one warning, at the child it is about; specs
 * that are fine get none (R19).
 * Method: tables of specs with the warnings expected of them, by child and by a few words. */
#include "supervision/supervisor_spec.h"

#include "support/check.h"

#include <stdio.h>
#include <string.h>

enum { WARNINGS_MAX = 8 };

typedef struct heard {
    size_t count;
    char child_id[WARNINGS_MAX][256];
    char sentence[WARNINGS_MAX][256];
} heard;

static void hear(void *ctx, const char *child_id, const char *sentence)
{
    heard *it = ctx;
    REQUIRE(child_id != NULL && sentence != NULL);
    REQUIRE(it->count < WARNINGS_MAX);
    (void)snprintf(it->child_id[it->count], sizeof it->child_id[0], "%s", child_id);
    (void)snprintf(it->sentence[it->count], sizeof it->sentence[0], "%s", sentence);
    it->count++;
}

/* Words that each warning has and no other one. */
#define NONE NULL
#define INFINITE_WORKER "does not stop, neither does its supervisor"
#define FLAPPING "more than 10 times a second"
#define TOO_SHORT "one after the other"
#define NO_LIMIT_INSIDE "has no limit of its own"
#define BRUTAL "brutal for a supervisor"
#define TRANSIENT_SUPERVISOR "the mode of a supervisor is transient"
#define TEMPORARY_SUPERVISOR "the mode of a supervisor is temporary"
#define BYSTANDER "does not come back"
#define DYNAMIC_PERMANENT "of a dynamic supervisor are permanent"
#define NOT_SIGNIFICANT "auto_shutdown has no effect"
#define NEVER_TRIPS "never reaches the limit"
#define OWN_NEVER_TRIPS "its own intensity is never reached"
#define OWN_USELESS "its own intensity has no effect"

/* Expects exactly one warning with these words about this child, or none at all. */
static void expect(const jzx_supervisor_init *init, const char *child_id, const char *words)
{
    heard it = {0};
    size_t count = jzx_supervisor_lint(init, hear, &it);
    CHECK_EQ(it.count, count);
    CHECK_EQ(jzx_supervisor_lint(init, NULL, NULL), count);
    CHECK_EQ(count, words != NONE);
    if (words == NONE) {
        CHECK_STR(it.sentence[0], "");
    } else {
        CHECK_STR(it.child_id[0], child_id);
        CHECK(strstr(it.sentence[0], words) != NULL);
        if (strstr(it.sentence[0], words) == NULL) {
            CHECK_STR(it.sentence[0], words); /* to see it */
        }
    }
}

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static unsigned drops;

static void drop_arg(void *arg)
{
    (void)arg;
    drops++;
}

#define WORKER(name) .id = (name), .behavior = behave, .flags = JZX_SPAWN_STATELESS

static void test_a_plain_tree_has_no_warnings(void)
{
    jzx_child_spec leaves[] = {{WORKER("x")}, {WORKER("y"), .mode = JZX_TRANSIENT}};
    jzx_supervisor_spec dynamic = {.strategy = JZX_DYNAMIC};
    jzx_child_spec conn = {WORKER("conn"), .mode = JZX_TEMPORARY};
    jzx_supervisor_init pool = {.children = leaves, .child_count = 2};
    jzx_supervisor_init conns = {.spec = &dynamic, .children = &conn, .child_count = 1};
    jzx_child_spec children[] = {
        {WORKER("a")}, {.id = "pool", .supervisor = &pool}, {.id = "conns", .supervisor = &conns}};
    jzx_supervisor_init init = {.children = children, .child_count = 3};
    expect(&init, "", NONE);
    expect(&(jzx_supervisor_init){0}, "", NONE);
}

static void test_a_worker_that_may_take_for_ever_to_stop_is_named(void)
{
    static const struct {
        uint32_t shutdown_ms;
        const char *words;
    } rows[] = {
        {0, NONE},
        {1, NONE},
        {JZX_SHUTDOWN_BRUTAL, NONE},
        {JZX_SHUTDOWN_BRUTAL - 1, NONE},
        {JZX_SHUTDOWN_INFINITE, INFINITE_WORKER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzx_child_spec child = {WORKER("a"), .shutdown_ms = rows[i].shutdown_ms};
        expect(&(jzx_supervisor_init){.children = &child, .child_count = 1}, "a", rows[i].words);
    }
}

static void test_a_supervisor_with_less_time_to_stop_than_its_children_is_named(void)
{
    static const struct {
        uint32_t own;         /* of the nested supervisor, ms */
        uint32_t children[3]; /* 0: 5,000 */
        uint32_t groups[3];
        const char *words;
    } rows[] = {
        {0, {0}, {0}, NONE},
        {15000, {0}, {0}, NONE},
        {14999, {0}, {0}, TOO_SHORT},
        {60, {10, 20, 30}, {0}, NONE},
        {59, {10, 20, 30}, {0}, TOO_SHORT},
        {30, {10, 20, 30}, {1, 1, 1}, NONE}, /* together: the slowest counts */
        {29, {10, 20, 30}, {1, 1, 1}, TOO_SHORT},
        {50, {10, 20, 30}, {1, 0, 1}, NONE},
        {49, {10, 20, 30}, {1, 0, 1}, TOO_SHORT},
        {50, {20, 10, 30}, {1, 1, 2}, NONE},
        {49, {20, 10, 30}, {1, 1, 2}, TOO_SHORT},
        {30, {10, JZX_SHUTDOWN_BRUTAL, 20}, {0}, NONE},
        {29, {10, JZX_SHUTDOWN_BRUTAL, 20}, {0}, TOO_SHORT},
        {JZX_SHUTDOWN_BRUTAL, {10, 20, 30}, {0}, BRUTAL},
        {JZX_SHUTDOWN_INFINITE, {10, 20, 30}, {0}, NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzx_child_spec leaves[] = {{WORKER("x")}, {WORKER("y")}, {WORKER("z")}};
        for (size_t k = 0; k < 3; k++) {
            leaves[k].shutdown_ms = rows[i].children[k];
            leaves[k].stop_group = rows[i].groups[k];
        }
        jzx_supervisor_init nested = {.children = leaves, .child_count = 3};
        jzx_child_spec sub = {.id = "sub", .supervisor = &nested, .shutdown_ms = rows[i].own};
        expect(&(jzx_supervisor_init){.children = &sub, .child_count = 1}, "sub", rows[i].words);
    }
}

static void test_a_supervisor_without_a_time_needs_that_of_its_children(void)
{
    jzx_supervisor_spec dynamic = {.strategy = JZX_DYNAMIC};
    jzx_child_spec leaves[] = {{WORKER("x")}, {WORKER("y")}};
    jzx_supervisor_init inner = {.children = leaves, .child_count = 2};
    jzx_child_spec middle = {.id = "inner", .supervisor = &inner};
    jzx_supervisor_init outer = {.children = &middle, .child_count = 1};
    jzx_child_spec sub = {.id = "outer", .supervisor = &outer, .shutdown_ms = 10000};
    jzx_supervisor_init init = {.children = &sub, .child_count = 1};
    expect(&init, "", NONE);
    sub.shutdown_ms = 9999;
    expect(&init, "outer", TOO_SHORT);
    middle.shutdown_ms = 9999; /* then it is the inner one that is too short */
    expect(&init, "outer/inner", TOO_SHORT);
    middle.shutdown_ms = JZX_SHUTDOWN_BRUTAL;
    expect(&init, "outer/inner", BRUTAL);
    middle.shutdown_ms = 0;

    inner.spec = &dynamic; /* all children of a dynamic one stop together */
    inner.child_count = 1;
    leaves[0].mode = JZX_TEMPORARY;
    sub.shutdown_ms = 5000;
    expect(&init, "", NONE);
    sub.shutdown_ms = 4999;
    expect(&init, "outer", TOO_SHORT);
}

static void test_a_worker_without_a_limit_is_named_with_the_supervisor_that_has_one(void)
{
    jzx_child_spec leaves[] = {{WORKER("x"), .shutdown_ms = JZX_SHUTDOWN_INFINITE},
                               {WORKER("y"), .shutdown_ms = 1}}; /* for ever and 1 is for ever */
    jzx_supervisor_init nested = {.children = leaves, .child_count = 2};
    jzx_child_spec sub = {.id = "sub", .supervisor = &nested, .shutdown_ms = 1000};
    jzx_supervisor_init init = {.children = &sub, .child_count = 1};
    heard it = {0};
    CHECK_EQ(jzx_supervisor_lint(&init, hear, &it), 2);
    CHECK_STR(it.child_id[0], "sub");
    CHECK(strstr(it.sentence[0], NO_LIMIT_INSIDE) != NULL);
    CHECK_STR(it.child_id[1], "sub/x");
    CHECK(strstr(it.sentence[1], INFINITE_WORKER) != NULL);
}

static void test_numbers_are_in_the_sentence(void)
{
    jzx_child_spec leaves[] = {{WORKER("x")}, {WORKER("y")}};
    jzx_supervisor_init nested = {.children = leaves, .child_count = 2};
    jzx_child_spec sub = {.id = "sub", .supervisor = &nested, .shutdown_ms = 1000};
    jzx_supervisor_init init = {.children = &sub, .child_count = 1};
    heard it = {0};
    CHECK_EQ(jzx_supervisor_lint(&init, hear, &it), 1);
    CHECK_STR(it.sentence[0],
              "shutdown_ms is 1000, but its children may take 10000 one after the other, and what "
              "is left then is killed; use JZX_SHUTDOWN_INFINITE or stop_group");
}

static void test_a_child_that_may_flap_for_ever_is_named(void)
{
    static const struct {
        uint32_t mode, intensity, period_ms, backoff_min_ms, own, own_period_ms;
        const char *words;
    } rows[] = {
        {JZX_PERMANENT, 0, 0, 0, 0, 0, NONE},
        {JZX_PERMANENT, 10, 1000, 0, 0, 0, NONE},
        {JZX_PERMANENT, 11, 1000, 0, 0, 0, FLAPPING},
        {JZX_PERMANENT, 50, 5000, 0, 0, 0, NONE},
        {JZX_PERMANENT, 51, 0, 0, 0, 0, FLAPPING},
        {JZX_PERMANENT, JZX_INTENSITY_MAX, 1, 0, 0, 0, FLAPPING},
        {JZX_PERMANENT, 1, UINT32_MAX, 0, 0, 0, NONE},
        {JZX_TRANSIENT, 1000, 1000, 0, 0, 0, FLAPPING},
        {JZX_TEMPORARY, 1000, 1000, 0, 0, 0, NONE}, /* is never restarted */
        {JZX_PERMANENT, 1000, 1000, 1, 0, 0, NEVER_TRIPS},
        {JZX_PERMANENT, 1000, 1000, 0, 3, 1000, NONE}, /* its own budget holds it */
        {JZX_PERMANENT, 1000, 1000, 0, 999, 1000, FLAPPING},
        {JZX_PERMANENT, 1000, 1000, 0, JZX_INTENSITY_NEVER, 1000, NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzx_supervisor_spec spec = {.intensity = rows[i].intensity,
                                    .period_ms = rows[i].period_ms,
                                    .backoff_min_ms = rows[i].backoff_min_ms};
        jzx_child_spec child = {WORKER("a"), .mode = rows[i].mode, .intensity = rows[i].own,
                                .period_ms = rows[i].own_period_ms};
        jzx_supervisor_init init = {.spec = &spec, .children = &child, .child_count = 1};
        bool about_supervisor = rows[i].backoff_min_ms != 0;
        expect(&init, about_supervisor ? "" : "a", rows[i].words);
    }
}

static void test_a_limit_that_the_backoff_keeps_from_tripping_is_found(void)
{
    static const struct {
        uint32_t intensity, period_ms, min, max, reset; /* ms */
        double factor, jitter;
        const char *words;
    } rows[] = {
        {0, 0, 0, 0, 0, 0, 0, NONE},
        {1, 5000, 5000, 0, 0, 0, 0, NONE}, /* exactly one period old still counts */
        {1, 5000, 5001, 0, 0, 0, 0, NEVER_TRIPS},
        {1, 5000, 6000, 0, 0, 0, 0.5, NONE}, /* may be shorter */
        {1, 5000, 6000, 0, 0, 0, 0.1, NEVER_TRIPS},
        {3, 5000, 100, 0, 0, 0, 0, NONE}, /* 100 + 200 + 400 */
        {3, 700, 100, 0, 0, 0, 0, NONE},
        {3, 699, 100, 0, 0, 0, 0, NEVER_TRIPS},
        {3, 500, 100, 200, 0, 0, 0, NONE}, /* 100 + 200 + 200 */
        {3, 499, 100, 200, 0, 0, 0, NEVER_TRIPS},
        {3, 300, 100, 0, 0, 1, 0, NONE},
        {3, 299, 100, 0, 0, 1, 0, NEVER_TRIPS},
        {10, 5000, 1000, 30000, 0, 0, 0, NEVER_TRIPS},
        {3, 699, 100, 0, 699, 0, 0, NEVER_TRIPS},
        {3, 699, 100, 0, 50, 0, 0, NONE}, /* starts over whenever it ran for 50 ms */
        {JZX_INTENSITY_MAX, 60000, 1, 1, 0, 0, 0, NEVER_TRIPS},
        {JZX_INTENSITY_NEVER, 1, 5000, 0, 0, 0, 0, NONE}, /* trips at once */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzx_supervisor_spec spec = {.intensity = rows[i].intensity,
                                    .period_ms = rows[i].period_ms,
                                    .backoff_min_ms = rows[i].min,
                                    .backoff_max_ms = rows[i].max,
                                    .backoff_reset_ms = rows[i].reset,
                                    .backoff_factor = rows[i].factor,
                                    .backoff_jitter = rows[i].jitter};
        jzx_child_spec child = {WORKER("a")};
        jzx_supervisor_init init = {.spec = &spec, .children = &child, .child_count = 1};
        expect(&init, "", rows[i].words);
        child.mode = JZX_TEMPORARY; /* nobody to be restarted */
        expect(&init, "", NONE);
        init.child_count = 0;
        expect(&init, "", NONE);
    }
}

/* A child's own backoff counts: it holds one that would flap, and lets a limit be reached. */
static void test_a_backoff_of_its_own_is_looked_at(void)
{
    jzx_supervisor_spec spec = {.intensity = 1000, .period_ms = 1000};
    jzx_child_spec children[] = {{WORKER("a"), .backoff_min_ms = 10}, {WORKER("b")}};
    jzx_supervisor_init init = {.spec = &spec, .children = children, .child_count = 1};
    expect(&init, "", NEVER_TRIPS);
    init.child_count = 2;
    expect(&init, "b", FLAPPING);
    children[1].backoff_min_ms = 10;
    spec.backoff_min_ms = 10;
    children[0].backoff_min_ms = JZX_BACKOFF_NONE;
    expect(&init, "a", FLAPPING);
}

static void test_a_budget_of_a_child_that_does_nothing_is_found(void)
{
    static const struct {
        uint32_t intensity, period_ms, own, own_period_ms, backoff_min_ms;
        const char *words;
    } rows[] = {
        {5, 5000, 4, 5000, 0, NONE},
        {5, 5000, 4, 0, 0, NONE},
        {5, 5000, 5, 5000, 0, OWN_USELESS},
        {5, 5000, 5, 0, 0, OWN_USELESS},
        {5, 5000, 5, 5001, 0, NONE}, /* looks back further */
        {5, 5000, 5, 4999, 0, OWN_USELESS},
        {5, 5000, JZX_INTENSITY_NEVER, 0, 0, NONE},
        {5, 60000, 2, 200, 100, OWN_NEVER_TRIPS}, /* 100 + 200 */
        {5, 60000, 2, 300, 100, NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzx_supervisor_spec spec = {.intensity = rows[i].intensity,
                                    .period_ms = rows[i].period_ms,
                                    .backoff_min_ms = rows[i].backoff_min_ms};
        jzx_child_spec child = {WORKER("a"), .intensity = rows[i].own,
                                .period_ms = rows[i].own_period_ms};
        jzx_supervisor_init init = {.spec = &spec, .children = &child, .child_count = 1};
        expect(&init, "a", rows[i].words);
        child.mode = JZX_TEMPORARY;
        expect(&init, "", NONE);
    }
}

static void test_a_supervisor_that_may_stay_down_is_named_unless_it_is_significant(void)
{
    static const char *const words[] = {NONE, TRANSIENT_SUPERVISOR, TEMPORARY_SUPERVISOR};
    jzx_supervisor_spec any = {.auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT};
    jzx_supervisor_init nested = {0};
    for (uint32_t mode = 0; mode <= JZX_TEMPORARY; mode++) {
        jzx_child_spec sub = {.id = "sub", .supervisor = &nested, .mode = mode};
        jzx_supervisor_init init = {.children = &sub, .child_count = 1};
        expect(&init, "sub", words[mode]);
        if (mode != JZX_PERMANENT) { /* a significant one is meant to end */
            sub.significant = 1;
            init.spec = &any;
            expect(&init, "", NONE);
        }
    }
}

static void test_a_temporary_child_that_others_take_down_is_named(void)
{
    static const struct {
        uint32_t strategy;
        uint32_t modes[2];
        const char *child_id;
        const char *words;
    } rows[] = {
        {JZX_ONE_FOR_ONE, {JZX_PERMANENT, JZX_TEMPORARY}, "", NONE},
        {JZX_ONE_FOR_ALL, {JZX_PERMANENT, JZX_TRANSIENT}, "", NONE},
        {JZX_ONE_FOR_ALL, {JZX_PERMANENT, JZX_TEMPORARY}, "b", BYSTANDER},
        {JZX_ONE_FOR_ALL, {JZX_TEMPORARY, JZX_TRANSIENT}, "a", BYSTANDER},
        {JZX_ONE_FOR_ALL, {JZX_TEMPORARY, JZX_TEMPORARY}, "", NONE},
        {JZX_REST_FOR_ONE, {JZX_PERMANENT, JZX_TEMPORARY}, "b", BYSTANDER},
        {JZX_REST_FOR_ONE, {JZX_TEMPORARY, JZX_PERMANENT}, "", NONE},
        {JZX_REST_FOR_ONE, {JZX_TEMPORARY, JZX_TEMPORARY}, "", NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzx_supervisor_spec spec = {.strategy = rows[i].strategy};
        jzx_child_spec children[] = {{WORKER("a"), .mode = rows[i].modes[0]},
                                     {WORKER("b"), .mode = rows[i].modes[1]}};
        jzx_supervisor_init init = {.spec = &spec, .children = children, .child_count = 2};
        expect(&init, rows[i].child_id, rows[i].words);
    }
}

static void test_dynamic_children_that_are_permanent_are_named(void)
{
    static const char *const words[] = {DYNAMIC_PERMANENT, NONE, NONE};
    jzx_supervisor_spec spec = {.strategy = JZX_DYNAMIC};
    for (uint32_t mode = 0; mode <= JZX_TEMPORARY; mode++) {
        jzx_child_spec child = {WORKER("conn"), .mode = mode};
        expect(&(jzx_supervisor_init){.spec = &spec, .children = &child, .child_count = 1}, "conn",
               words[mode]);
    }
}

static void test_an_auto_shutdown_that_nobody_can_cause_is_found(void)
{
    for (uint32_t rule = 0; rule <= JZX_AUTO_ALL_SIGNIFICANT; rule++) {
        jzx_supervisor_spec spec = {.auto_shutdown = rule};
        jzx_child_spec children[] = {{WORKER("a")}, {WORKER("b"), .mode = JZX_TRANSIENT}};
        jzx_supervisor_init init = {.spec = &spec, .children = children, .child_count = 2};
        expect(&init, "", rule == JZX_AUTO_NEVER ? NONE : NOT_SIGNIFICANT);
        children[1].significant = rule != JZX_AUTO_NEVER;
        expect(&init, "", NONE);
    }
}

static void test_warnings_of_nested_supervisors_have_their_path(void)
{
    jzx_supervisor_spec any = {.auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT};
    jzx_child_spec leaf = {WORKER("x"), .shutdown_ms = JZX_SHUTDOWN_INFINITE};
    jzx_supervisor_init pool = {.spec = &any, .children = &leaf, .child_count = 1};
    jzx_child_spec middle = {.id = "pool", .supervisor = &pool};
    jzx_supervisor_init db = {.children = &middle, .child_count = 1};
    jzx_child_spec children[] = {{.id = "db", .supervisor = &db},
                                 {WORKER("after"), .shutdown_ms = JZX_SHUTDOWN_INFINITE}};
    jzx_supervisor_init init = {.children = children, .child_count = 2};
    heard it = {0};
    CHECK_EQ(jzx_supervisor_lint(&init, hear, &it), 3);
    CHECK_STR(it.child_id[0], "db/pool");
    CHECK(strstr(it.sentence[0], NOT_SIGNIFICANT) != NULL);
    CHECK_STR(it.child_id[1], "db/pool/x");
    CHECK(strstr(it.sentence[1], INFINITE_WORKER) != NULL);
    CHECK_STR(it.child_id[2], "after");
    CHECK(strstr(it.sentence[2], INFINITE_WORKER) != NULL);
}

static void measure(void *ctx, const char *child_id, const char *sentence)
{
    (void)sentence;
    *(size_t *)ctx = strlen(child_id);
}

static void test_the_deepest_path_of_the_longest_ids_fits(void)
{
    enum { DEEP = 64, LONGEST = DEEP * (JZX_CHILD_ID_MAX + 1) - 1 };
    static const char id[] = "0123456789012345678901234567890123456789abcdefg";
    _Static_assert(sizeof id == JZX_CHILD_ID_MAX + 1, "an id that just fits");
    jzx_supervisor_init inits[DEEP] = {0};
    jzx_child_spec children[DEEP] = {0};
    for (int i = 0; i < DEEP; i++) {
        children[i] = (jzx_child_spec){.id = id};
        if (i + 1 < DEEP) {
            children[i].supervisor = &inits[i + 1];
        } else {
            children[i].behavior = behave;
            children[i].mode = JZX_TEMPORARY;
            children[i].shutdown_ms = JZX_SHUTDOWN_INFINITE;
        }
        inits[i] = (jzx_supervisor_init){.children = &children[i], .child_count = 1};
    }
    expect(&inits[DEEP - 1], id, INFINITE_WORKER);
    size_t len = 0;
    CHECK_EQ(jzx_supervisor_lint(&inits[0], measure, &len), 1);
    CHECK_EQ(len, LONGEST);
}

static void test_a_spec_that_is_wrong_gets_its_sentence_as_the_only_warning(void)
{
    jzx_child_spec children[] = {{WORKER("a"), .shutdown_ms = JZX_SHUTDOWN_INFINITE},
                                 {WORKER("b"), .mode = 9}};
    jzx_supervisor_init init = {.children = children, .child_count = 2};
    expect(&init, "", "child \"b\": mode is no jzx_restart_mode");
    expect(NULL, "", "init is NULL");
}

static void test_looking_takes_no_argument_R4(void)
{
    int arg = 0;
    jzx_child_spec leaf = {WORKER("x"), .arg = &arg, .drop_arg = drop_arg};
    jzx_supervisor_init nested = {.children = &leaf, .child_count = 1};
    jzx_child_spec children[] = {{WORKER("a"), .arg = &arg, .drop_arg = drop_arg},
                                 {.id = "sub", .supervisor = &nested}};
    jzx_supervisor_init init = {.children = children, .child_count = 2};
    drops = 0;
    expect(&init, "", NONE);
    CHECK_EQ(drops, 0);
}

static void test_steps_of_plans_have_names(void)
{
    static const char *const names[] = {"restart", "stop",    "end",     "wait",
                                        "start",   "give_up", "escalate"};
    for (uint32_t what = 0; what <= JZX_PLAN_ESCALATE; what++) {
        CHECK_STR(jzx_plan_name(what), names[what]);
    }
    CHECK_STR(jzx_plan_name(JZX_PLAN_ESCALATE + 1), "unknown");
    CHECK_STR(jzx_plan_name(UINT32_MAX), "unknown");
}

static const jzt_test tests[] = {
    {"a_plain_tree_has_no_warnings", test_a_plain_tree_has_no_warnings},
    {"a_worker_that_may_take_for_ever_to_stop_is_named",
     test_a_worker_that_may_take_for_ever_to_stop_is_named},
    {"a_supervisor_with_less_time_to_stop_than_its_children_is_named",
     test_a_supervisor_with_less_time_to_stop_than_its_children_is_named},
    {"a_supervisor_without_a_time_needs_that_of_its_children",
     test_a_supervisor_without_a_time_needs_that_of_its_children},
    {"a_worker_without_a_limit_is_named_with_the_supervisor_that_has_one",
     test_a_worker_without_a_limit_is_named_with_the_supervisor_that_has_one},
    {"numbers_are_in_the_sentence", test_numbers_are_in_the_sentence},
    {"a_child_that_may_flap_for_ever_is_named", test_a_child_that_may_flap_for_ever_is_named},
    {"a_backoff_of_its_own_is_looked_at", test_a_backoff_of_its_own_is_looked_at},
    {"a_limit_that_the_backoff_keeps_from_tripping_is_found",
     test_a_limit_that_the_backoff_keeps_from_tripping_is_found},
    {"a_budget_of_a_child_that_does_nothing_is_found",
     test_a_budget_of_a_child_that_does_nothing_is_found},
    {"a_supervisor_that_may_stay_down_is_named_unless_it_is_significant",
     test_a_supervisor_that_may_stay_down_is_named_unless_it_is_significant},
    {"a_temporary_child_that_others_take_down_is_named",
     test_a_temporary_child_that_others_take_down_is_named},
    {"dynamic_children_that_are_permanent_are_named",
     test_dynamic_children_that_are_permanent_are_named},
    {"an_auto_shutdown_that_nobody_can_cause_is_found",
     test_an_auto_shutdown_that_nobody_can_cause_is_found},
    {"warnings_of_nested_supervisors_have_their_path",
     test_warnings_of_nested_supervisors_have_their_path},
    {"the_deepest_path_of_the_longest_ids_fits", test_the_deepest_path_of_the_longest_ids_fits},
    {"a_spec_that_is_wrong_gets_its_sentence_as_the_only_warning",
     test_a_spec_that_is_wrong_gets_its_sentence_as_the_only_warning},
    {"looking_takes_no_argument_R4", test_looking_takes_no_argument_R4},
    {"steps_of_plans_have_names", test_steps_of_plans_have_names},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
