/* Goal: a spec is refused with a sentence that names child and field, or copied whole, so that the
 * caller may forget it (R19); what a failed call leaves behind is nothing (R4).
 * Method: tables of one wrong field each; an allocator that checks sizes, counts blocks and fails
 * on demand; structs of older and newer callers (R36). */
#include "supervision/supervisor_spec.h"

#include "support/check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_MAX = 256 };

/* --- the allocator --- */

static size_t blocks, bytes, asked;
static size_t fail_at; /* the nth allocation from start() fails; 0: none */

static void *counted_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    if (new_size == 0) {
        REQUIRE(blocks > 0 && bytes >= old_size);
        blocks--;
        bytes -= old_size;
        free(ptr);
        return NULL;
    }
    REQUIRE(ptr == NULL && old_size == 0);
    if (++asked == fail_at) {
        return NULL;
    }
    blocks++;
    bytes += new_size;
    ptr = malloc(new_size);
    REQUIRE(ptr != NULL);
    memset(ptr, 0xA5, new_size);
    return ptr;
}

static const jzx_allocator alloc = {counted_realloc, NULL};

static unsigned drops;

static void start(void)
{
    blocks = bytes = asked = fail_at = 0;
    drops = 0;
}

/* --- parts of specs --- */

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result init_state(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result hear(jzx_context *ctx, const struct jzx_signal *signal)
{
    (void)ctx;
    (void)signal;
    return JZX_BEHAVIOR_OK;
}

static void deinit_state(jzx_context *ctx)
{
    (void)ctx;
}

static void drop_msg(const jzx_message *msg)
{
    (void)msg;
}

/* Arguments count how often they were dropped. */
static void drop_arg(void *arg)
{
    drops++;
    if (arg != NULL) {
        ++*(int *)arg;
    }
}

#define WORKER(name) .id = (name), .behavior = behave, .init = init_state

static const jzx_child_spec worker_a = {WORKER("a")};
static const jzx_supervisor_init inner = {.children = &worker_a, .child_count = 1};
static const jzx_supervisor_sizes sizes = {sizeof(jzx_supervisor_init), sizeof(jzx_supervisor_spec),
                                           sizeof(jzx_child_spec)};

/* Makes a plan and checks that jzx_supervisor_check() says the same; releases the plan. */
static void expect(const jzx_supervisor_init *init, jzx_err err, const char *sentence)
{
    char made[WHY_MAX] = "unset", checked[WHY_MAX] = "unset";
    jzi_supervisor_plan *plan = NULL;
    start();
    CHECK_EQ(jzi_supervisor_plan_make(&alloc, init, &sizes, made, sizeof made, &plan), err);
    CHECK_STR(made, sentence);
    CHECK_EQ(plan != NULL, err == JZX_OK);
    jzi_supervisor_plan_release(&alloc, plan);
    CHECK_EQ(blocks, 0);
    CHECK_EQ(bytes, 0);
    CHECK_EQ(jzx_supervisor_check(init, checked, sizeof checked), err);
    CHECK_STR(checked, sentence);
}

static jzi_supervisor_plan *plan_of(const jzx_supervisor_init *init)
{
    char why[WHY_MAX];
    jzi_supervisor_plan *plan = NULL;
    start();
    REQUIRE_OK(jzi_supervisor_plan_make(&alloc, init, &sizes, why, sizeof why, &plan));
    REQUIRE(plan != NULL);
    REQUIRE_STR(why, "");
    return plan;
}

/* --- what is refused --- */

typedef struct child_row {
    jzx_child_spec child;
    jzx_err err;
    const char *sentence;
} child_row;

#define LONGEST "0123456789012345678901234567890123456789abcdefg"
_Static_assert(sizeof LONGEST == JZX_CHILD_ID_MAX + 1, "an id that just fits");

/* Each as the only child of a supervisor with this spec. */
static void check_rows(const child_row *rows, size_t count, const jzx_supervisor_spec *spec)
{
    for (size_t i = 0; i < count; i++) {
        jzx_supervisor_init init = {.spec = spec, .children = &rows[i].child, .child_count = 1};
        expect(&init, rows[i].err, rows[i].sentence);
    }
}

static void test_each_bad_field_of_a_child_has_its_sentence_R19(void)
{
    static const child_row rows[] = {
        {{.behavior = behave, .init = init_state}, JZX_ERR_BAD_SPEC, "child \"#0\": id is missing"},
        {{WORKER("")}, JZX_ERR_BAD_SPEC, "child \"#0\": id is missing"},
        {{WORKER(LONGEST)}, JZX_OK, ""},
        {{WORKER(LONGEST "h")},
         JZX_ERR_TOO_BIG,
         "child \"" LONGEST "...\": id is longer than JZX_CHILD_ID_MAX"},
        {{.id = "a"},
         JZX_ERR_BAD_SPEC,
         "child \"a\": behavior is missing; a child needs it, or supervisor"},
        {{.id = "a", .behavior = behave, .supervisor = &inner},
         JZX_ERR_BAD_SPEC,
         "child \"a\": behavior and supervisor are both set; a child has one of them"},
        {{WORKER("a"), .mode = 3}, JZX_ERR_BAD_SPEC, "child \"a\": mode is no jzx_restart_mode"},
        {{WORKER("a"), .full_policy = 3},
         JZX_ERR_BAD_SPEC,
         "child \"a\": full_policy is no jzx_full_policy"},
        {{WORKER("a"), .drain = 3, .redirect_to = 9},
         JZX_ERR_BAD_SPEC,
         "child \"a\": drain is no jzx_drain_policy"},
        {{WORKER("a"), .drain = JZX_DRAIN_REDIRECT},
         JZX_ERR_BAD_SPEC,
         "child \"a\": redirect_to is missing; the drain policy JZX_DRAIN_REDIRECT needs it"},
        {{WORKER("a"), .redirect_to = 9},
         JZX_ERR_BAD_SPEC,
         "child \"a\": redirect_to needs the drain policy JZX_DRAIN_REDIRECT"},
        {{WORKER("a"), .drain = JZX_DRAIN_DROP, .redirect_to = 9},
         JZX_ERR_BAD_SPEC,
         "child \"a\": redirect_to needs the drain policy JZX_DRAIN_REDIRECT"},
        {{WORKER("a"), .drain = JZX_DRAIN_REDIRECT, .redirect_to = 9}, JZX_OK, ""},
        {{WORKER("a"), .flags = 0x80},
         JZX_ERR_BAD_SPEC,
         "child \"a\": flags has a bit that is no JZX_SPAWN_ flag"},
        {{WORKER("a"), .flags = 0x80000000u},
         JZX_ERR_BAD_SPEC,
         "child \"a\": flags has a bit that is no JZX_SPAWN_ flag"},
        {{WORKER("a"), .flags = 0x3F}, JZX_OK, ""},
        {{WORKER("a"), .mailbox_cap = JZX_MAILBOX_CAP_MAX}, JZX_OK, ""},
        {{WORKER("a"), .mailbox_cap = JZX_MAILBOX_CAP_MAX + 1},
         JZX_ERR_TOO_BIG,
         "child \"a\": mailbox_cap is above JZX_MAILBOX_CAP_MAX"},
        {{WORKER("a"), .mailbox_cap = 8, .low_water = 8}, JZX_OK, ""},
        {{WORKER("a"), .mailbox_cap = 8, .low_water = 9},
         JZX_ERR_BAD_SPEC,
         "child \"a\": low_water is above mailbox_cap"},
        {{WORKER("a"), .mailbox_cap = 8, .low_water = JZX_LOW_WATER_EMPTY}, JZX_OK, ""},
        {{WORKER("a"), .low_water = JZX_MAILBOX_CAP_MAX}, JZX_OK, ""},
        {{WORKER("a"), .low_water = JZX_MAILBOX_CAP_MAX + 1},
         JZX_ERR_BAD_SPEC,
         "child \"a\": low_water is above mailbox_cap"},
        {{WORKER("a"), .intensity = JZX_INTENSITY_MAX}, JZX_OK, ""},
        {{WORKER("a"), .intensity = JZX_INTENSITY_NEVER}, JZX_OK, ""},
        {{WORKER("a"), .intensity = JZX_INTENSITY_MAX + 1},
         JZX_ERR_TOO_BIG,
         "child \"a\": intensity is above JZX_INTENSITY_MAX"},
        {{WORKER("a"), .shutdown_ms = JZX_SHUTDOWN_BRUTAL}, JZX_OK, ""},
        {{WORKER("a"), .backoff_min_ms = 5, .backoff_max_ms = 5}, JZX_OK, ""},
        {{WORKER("a"), .backoff_min_ms = JZX_BACKOFF_NONE, .backoff_max_ms = 5}, JZX_OK, ""},
        {{WORKER("a"), .backoff_min_ms = 6, .backoff_max_ms = 5},
         JZX_ERR_BAD_SPEC,
         "child \"a\": backoff_max_ms is below backoff_min_ms"},
        {{WORKER("a"), .backoff_factor = 0.5},
         JZX_ERR_BAD_SPEC,
         "child \"a\": backoff_factor is below 1"},
        {{WORKER("a"), .backoff_jitter = 1.5},
         JZX_ERR_BAD_SPEC,
         "child \"a\": backoff_jitter is not between 0 and 1"},
        {{WORKER("a"), .shutdown_ms = JZX_SHUTDOWN_INFINITE}, JZX_OK, ""},
        {{WORKER("a\n\177b"), .mode = 3},
         JZX_ERR_BAD_SPEC,
         "child \"a??b\": mode is no jzx_restart_mode"},
    };
    check_rows(rows, sizeof rows / sizeof rows[0], NULL);
}

static void test_a_supervisor_as_child_takes_nothing_of_a_worker_R19(void)
{
    static int arg;
#define TAKES_NONE "child \"a\": a supervisor takes no init, arg, deinit, on_signal or drop_arg"
    static const child_row rows[] = {
        {{.id = "a", .supervisor = &inner}, JZX_OK, ""},
        {{.id = "a", .supervisor = &inner, .init = init_state}, JZX_ERR_BAD_SPEC, TAKES_NONE},
        {{.id = "a", .supervisor = &inner, .arg = &arg}, JZX_ERR_BAD_SPEC, TAKES_NONE},
        {{.id = "a", .supervisor = &inner, .deinit = deinit_state}, JZX_ERR_BAD_SPEC, TAKES_NONE},
        {{.id = "a", .supervisor = &inner, .on_signal = hear}, JZX_ERR_BAD_SPEC, TAKES_NONE},
        {{.id = "a", .supervisor = &inner, .drop_arg = drop_arg}, JZX_ERR_BAD_SPEC, TAKES_NONE},
        {{.id = "a", .supervisor = &inner, .mailbox_cap = 8, .drop_msg = drop_msg}, JZX_OK, ""},
    };
    check_rows(rows, sizeof rows / sizeof rows[0], NULL);
}

static void test_a_worker_that_may_be_restarted_needs_init_or_stateless_R18(void)
{
    static const struct {
        uint32_t mode;
        bool has_init;
        uint32_t flags;
        bool fits;
    } rows[] = {
        {JZX_PERMANENT, false, 0, false},
        {JZX_PERMANENT, true, 0, true},
        {JZX_PERMANENT, false, JZX_SPAWN_STATELESS, true},
        {JZX_TRANSIENT, false, 0, false},
        {JZX_TRANSIENT, false, 0x3F & ~JZX_SPAWN_STATELESS, false},
        {JZX_TRANSIENT, true, 0, true},
        {JZX_TRANSIENT, false, JZX_SPAWN_STATELESS, true},
        {JZX_TEMPORARY, false, 0, true},
        {JZX_TEMPORARY, true, 0, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzx_child_spec child = {.id = "a",
                                .behavior = behave,
                                .init = rows[i].has_init ? init_state : NULL,
                                .mode = rows[i].mode,
                                .flags = rows[i].flags};
        jzx_supervisor_init init = {.children = &child, .child_count = 1};
        expect(&init, rows[i].fits ? JZX_OK : JZX_ERR_NOT_RESTARTABLE,
               rows[i].fits ? ""
                            : "child \"a\": it would be restarted but has no init; give it one, "
                              "the flag JZX_SPAWN_STATELESS, or the mode JZX_TEMPORARY");
    }
}

static void test_significant_children_need_a_rule_and_an_end_R19(void)
{
    static const char *const sentences[] = {
        "",
        "child \"a\": significant does not go with the mode JZX_PERMANENT",
        "child \"a\": significant needs an auto_shutdown of the supervisor",
        "child \"a\": significant is neither 0 nor 1",
    };
    static const struct {
        uint32_t rule, mode, significant;
        size_t sentence;
    } rows[] = {
        {JZX_AUTO_NEVER, JZX_PERMANENT, 0, 0},
        {JZX_AUTO_NEVER, JZX_PERMANENT, 1, 1},
        {JZX_AUTO_NEVER, JZX_TRANSIENT, 1, 2},
        {JZX_AUTO_NEVER, JZX_TEMPORARY, 1, 2},
        {JZX_AUTO_ANY_SIGNIFICANT, JZX_PERMANENT, 0, 0},
        {JZX_AUTO_ANY_SIGNIFICANT, JZX_PERMANENT, 1, 1},
        {JZX_AUTO_ANY_SIGNIFICANT, JZX_TRANSIENT, 1, 0},
        {JZX_AUTO_ANY_SIGNIFICANT, JZX_TEMPORARY, 1, 0},
        {JZX_AUTO_ANY_SIGNIFICANT, JZX_TEMPORARY, 2, 3},
        {JZX_AUTO_ALL_SIGNIFICANT, JZX_PERMANENT, 1, 1},
        {JZX_AUTO_ALL_SIGNIFICANT, JZX_TRANSIENT, 1, 0},
        {JZX_AUTO_ALL_SIGNIFICANT, JZX_TRANSIENT, UINT32_MAX, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzx_supervisor_spec spec = {.auto_shutdown = rows[i].rule};
        child_row row = {
            {WORKER("a"), .mode = rows[i].mode, .significant = rows[i].significant},
            rows[i].sentence == 0 ? JZX_OK : JZX_ERR_BAD_SPEC,
            sentences[rows[i].sentence],
        };
        check_rows(&row, 1, &spec);
    }
}

static void test_bad_supervisors_have_their_sentence_R19(void)
{
    static const jzx_supervisor_spec bad = {.backoff_factor = 0.5};
    static const jzx_supervisor_spec big = {.intensity = JZX_INTENSITY_MAX + 1};
    static const jzx_supervisor_spec dynamic = {.strategy = JZX_DYNAMIC};
    static const jzx_supervisor_spec both = {.strategy = JZX_DYNAMIC, .auto_shutdown = 1};
    static const jzx_child_spec pair[] = {{WORKER("a")}, {WORKER("b")}};
    static const struct {
        jzx_supervisor_init init;
        jzx_err err;
        const char *sentence;
    } rows[] = {
        {{0}, JZX_OK, ""},
        {{.children = pair}, JZX_OK, ""},
        {{.children = pair, .child_count = 2}, JZX_OK, ""},
        {{.spec = &bad}, JZX_ERR_BAD_SPEC, "supervisor: backoff_factor is below 1"},
        {{.spec = &big}, JZX_ERR_TOO_BIG, "supervisor: intensity is above JZX_INTENSITY_MAX"},
        {{.child_count = 1},
         JZX_ERR_BAD_SPEC,
         "supervisor: children is missing but child_count is not 0"},
        {{.spec = &dynamic},
         JZX_ERR_BAD_SPEC,
         "supervisor: child_count is not 1, as the strategy JZX_DYNAMIC needs"},
        {{.spec = &dynamic, .children = pair, .child_count = 2},
         JZX_ERR_BAD_SPEC,
         "supervisor: child_count is not 1, as the strategy JZX_DYNAMIC needs"},
        {{.spec = &dynamic, .children = pair, .child_count = 1}, JZX_OK, ""},
        {{.spec = &both, .children = pair, .child_count = 1},
         JZX_ERR_BAD_SPEC,
         "supervisor: auto_shutdown does not go with the strategy JZX_DYNAMIC"},
        {{.children = pair, .child_count = SIZE_MAX},
         JZX_ERR_TOO_BIG,
         "supervisor: child_count is more than there can be actors"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect(&rows[i].init, rows[i].err, rows[i].sentence);
    }
    expect(NULL, JZX_ERR_INVALID_ARG, "supervisor: init is NULL");
}

static void test_the_limit_of_children_is_that_of_the_whole_tree_R19(void)
{
    jzx_supervisor_init crowd = {.children = &worker_a, .child_count = 0xFFFFFF};
    jzx_child_spec nested = {.id = "crowd", .supervisor = &crowd};
    jzx_supervisor_init top = {.children = &nested, .child_count = 1};
    expect(&top, JZX_ERR_TOO_BIG,
           "supervisor \"crowd\": child_count is more than there can be actors");
}

/* --- nesting --- */

static void test_the_sentence_has_the_path_to_what_is_nested_R19(void)
{
    jzx_supervisor_spec bad_policy = {.reserved = 1};
    jzx_child_spec leaves[] = {{WORKER("x")}, {WORKER("y"), .mode = 7}};
    jzx_supervisor_init pool = {.children = leaves, .child_count = 2};
    jzx_child_spec middle[] = {{WORKER("w")}, {.id = "pool", .supervisor = &pool}};
    jzx_supervisor_init db = {.children = middle, .child_count = 2};
    jzx_child_spec outer = {.id = "db", .supervisor = &db};
    jzx_supervisor_init top = {.children = &outer, .child_count = 1};

    expect(&top, JZX_ERR_BAD_SPEC, "child \"db/pool/y\": mode is no jzx_restart_mode");
    leaves[1] = (jzx_child_spec){.behavior = behave};
    expect(&top, JZX_ERR_BAD_SPEC, "child \"db/pool/#1\": id is missing");
    leaves[1] = (jzx_child_spec){WORKER("x")};
    expect(&top, JZX_ERR_DUPLICATE_CHILD, "child \"db/pool/x\": id is that of an earlier child");
    leaves[1] = (jzx_child_spec){.id = "y", .behavior = behave};
    expect(&top, JZX_ERR_NOT_RESTARTABLE,
           "child \"db/pool/y\": it would be restarted but has no init; give it one, the flag "
           "JZX_SPAWN_STATELESS, or the mode JZX_TEMPORARY");
    leaves[1] = (jzx_child_spec){WORKER("db")}; /* ids are unique in their supervisor only */
    expect(&top, JZX_OK, "");
    pool.spec = &bad_policy;
    expect(&top, JZX_ERR_BAD_SPEC, "supervisor \"db/pool\": reserved is not 0");
    pool = (jzx_supervisor_init){.child_count = 3};
    expect(&top, JZX_ERR_BAD_SPEC,
           "supervisor \"db/pool\": children is missing but child_count is not 0");
}

static void test_sixty_four_supervisors_may_be_nested_and_no_more_R19(void)
{
    enum { DEEP = 65 };
    jzx_supervisor_init inits[DEEP] = {0};
    jzx_child_spec children[DEEP] = {0};
    for (int i = 0; i + 1 < DEEP; i++) {
        children[i] = (jzx_child_spec){.id = "down", .supervisor = &inits[i + 1]};
        inits[i] = (jzx_supervisor_init){.children = &children[i], .child_count = 1};
    }
    expect(&inits[1], JZX_OK, "");
    expect(&inits[0], JZX_ERR_BAD_SPEC,
           "supervisor \"down\": supervisors are nested more than 64 deep in it, or in a circle");
}

static void test_a_spec_that_contains_itself_is_refused_R19(void)
{
    jzx_supervisor_init init = {0};
    jzx_child_spec children[] = {{WORKER("a")}, {.id = "again", .supervisor = &init}};
    init = (jzx_supervisor_init){.children = children, .child_count = 2};
    expect(&init, JZX_ERR_BAD_SPEC,
           "supervisor \"again\": supervisors are nested more than 64 deep in it, or in a circle");
}

/* --- ids --- */

static void test_ids_are_unique_however_many_there_are_R19(void)
{
    enum { MOST = 5000 };
    static const size_t counts[] = {2, 3, 31, 32, 33, 64, 65, 1000, MOST};
    static char names[MOST][8];
    jzx_child_spec *children = calloc(MOST, sizeof *children);
    REQUIRE(children != NULL);
    jzt_rng rng = jzt_rng_seeded();
    for (size_t i = 0; i < MOST; i++) {
        (void)snprintf(names[i], sizeof names[i], "c%zu", i);
        children[i] = (jzx_child_spec){WORKER(names[i])};
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        jzx_supervisor_init init = {.children = children, .child_count = counts[i]};
        expect(&init, JZX_OK, "");
        for (int round = 0; round < 4; round++) {
            /* The same text elsewhere in memory, first and last among the places it may have. */
            size_t first = round == 0 ? 0 : (size_t)jzt_rng_below(&rng, counts[i] - 1);
            size_t second = round < 2
                                ? counts[i] - 1
                                : first + 1 + (size_t)jzt_rng_below(&rng, counts[i] - first - 1);
            char twin[8], sentence[64];
            memcpy(twin, names[first], sizeof twin);
            (void)snprintf(sentence, sizeof sentence,
                           "child \"%s\": id is that of an earlier child", twin);
            children[second].id = twin;
            expect(&init, JZX_ERR_DUPLICATE_CHILD, sentence);
            children[second].id = names[second];
        }
    }
    free(children);
}

/* --- sentences --- */

static void test_a_sentence_is_cut_to_its_buffer_and_may_be_left_out(void)
{
    static const char whole[] = "child \"a\": mode is no jzx_restart_mode";
    jzx_child_spec child = {WORKER("a"), .mode = 9};
    jzx_supervisor_init init = {.children = &child, .child_count = 1};
    CHECK_EQ(jzx_supervisor_check(&init, NULL, 0), JZX_ERR_BAD_SPEC);
    CHECK_EQ(jzx_supervisor_check(&init, NULL, 100), JZX_ERR_BAD_SPEC);
    for (size_t cap = 0; cap <= sizeof whole; cap++) {
        char why[sizeof whole + 1];
        memset(why, '#', sizeof why);
        CHECK_EQ(jzx_supervisor_check(&init, why, cap), JZX_ERR_BAD_SPEC);
        size_t len = cap == 0 ? 0 : cap - 1 < sizeof whole - 1 ? cap - 1 : sizeof whole - 1;
        CHECK(memcmp(why, whole, len) == 0);
        CHECK(cap == 0 || why[len] == '\0');
        for (size_t i = cap == 0 ? 0 : len + 1; i < sizeof why; i++) {
            CHECK_EQ(why[i], '#');
        }
    }
}

/* --- copies --- */

static void test_defaults_are_filled_in_R36(void)
{
    static const struct {
        jzx_child_spec child;
        uint32_t shutdown_ms, period_ms, intensity;
    } rows[] = {
        {{WORKER("a")}, 5000, 700, 0},
        {{WORKER("a"), .shutdown_ms = 1}, 1, 700, 0},
        {{WORKER("a"), .shutdown_ms = JZX_SHUTDOWN_BRUTAL}, JZX_SHUTDOWN_BRUTAL, 700, 0},
        {{WORKER("a"), .shutdown_ms = JZX_SHUTDOWN_INFINITE}, JZX_SHUTDOWN_INFINITE, 700, 0},
        {{.id = "a", .supervisor = &inner}, JZX_SHUTDOWN_INFINITE, 700, 0},
        {{.id = "a", .supervisor = &inner, .shutdown_ms = 9}, 9, 700, 0},
        {{WORKER("a"), .intensity = 3}, 5000, 700, 3},
        {{WORKER("a"), .intensity = 3, .period_ms = 20}, 5000, 20, 3},
        {{WORKER("a"), .intensity = JZX_INTENSITY_NEVER}, 5000, 700, JZX_INTENSITY_NEVER},
    };
    jzx_supervisor_spec spec = {.period_ms = 700};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzx_supervisor_init init = {.spec = &spec, .children = &rows[i].child, .child_count = 1};
        jzi_supervisor_plan *plan = plan_of(&init);
        const jzi_child_plan *child = plan->children[0];
        CHECK_EQ(child->spec.shutdown_ms, rows[i].shutdown_ms);
        CHECK_EQ(child->spec.period_ms, rows[i].period_ms);
        CHECK_EQ(child->spec.intensity, rows[i].intensity);
        CHECK_EQ(child->nested != NULL, rows[i].child.supervisor != NULL);
        CHECK(child->spec.supervisor == NULL);
        CHECK_EQ(child->refs, 1);
        jzi_supervisor_plan_release(&alloc, plan);
    }
    CHECK_EQ(blocks, 0);
}

static void test_a_plan_outlives_what_it_was_made_from_R19(void)
{
    int arg = 0;
    char name[80], id[8] = "worker", nested_id[8] = "nested";
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    jzx_supervisor_spec spec = {.strategy = JZX_ONE_FOR_ALL, .intensity = 4};
    jzx_child_spec leaf = worker_a;
    jzx_supervisor_init nested = {.name = "inside", .children = &leaf, .child_count = 1};
    jzx_child_spec full = {
        .id = id,
        .behavior = behave,
        .init = init_state,
        .arg = &arg,
        .deinit = deinit_state,
        .on_signal = hear,
        .drop_msg = drop_msg,
        .redirect_to = 77,
        .mode = JZX_TRANSIENT,
        .shutdown_ms = 11,
        .stop_group = 12,
        .intensity = 13,
        .period_ms = 14,
        .mailbox_cap = 16,
        .low_water = 15,
        .max_msgs = 17,
        .full_policy = JZX_FULL_DROP_OLDEST,
        .drain = JZX_DRAIN_REDIRECT,
        .flags = JZX_SPAWN_QUIET,
    };
    jzx_child_spec children[] = {full, {.id = nested_id, .supervisor = &nested}};
    jzx_supervisor_init init = {
        .name = name, .spec = &spec, .children = children, .child_count = 2};
    jzi_supervisor_plan *plan = plan_of(&init);

    memset(name, 'x', sizeof name - 1);
    memset(id, 'x', sizeof id - 1);
    memset(nested_id, 'x', sizeof nested_id - 1);
    memset(&spec, 0xFF, sizeof spec);
    memset(&leaf, 0xFF, sizeof leaf);
    memset(&nested, 0xFF, sizeof nested);
    memset(children, 0xFF, sizeof children);
    memset(&init, 0xFF, sizeof init);

    CHECK_EQ(strlen(plan->name), JZX_NAME_MAX);
    CHECK_EQ(plan->name[JZX_NAME_MAX - 1], 'n');
    CHECK_EQ(plan->policy.strategy, JZX_ONE_FOR_ALL);
    CHECK_EQ(plan->policy.intensity, 4);
    REQUIRE_EQ(plan->child_count, 2);
    const jzi_child_plan *worker = plan->children[0];
    CHECK_STR(worker->id, "worker");
    CHECK(worker->spec.id == worker->id);
    full.id = worker->id; /* everything else is as it was given */
    CHECK(memcmp(&worker->spec, &full, sizeof full) == 0);
    CHECK(!worker->drops_arg && worker->nested == NULL);
    const jzi_child_plan *sub = plan->children[1];
    CHECK_STR(sub->spec.id, "nested");
    REQUIRE(sub->nested != NULL);
    CHECK_STR(sub->nested->name, "inside");
    REQUIRE_EQ(sub->nested->child_count, 1);
    CHECK_STR(sub->nested->children[0]->id, "a");
    CHECK(sub->nested->children[0]->spec.behavior == behave);
    jzi_supervisor_plan_release(&alloc, plan);
    CHECK_EQ(blocks, 0);
}

static void test_a_plan_goes_with_its_last_user_R19(void)
{
    int args[2] = {0};
    jzx_child_spec leaf = {WORKER("leaf"), .arg = &args[0], .drop_arg = drop_arg};
    jzx_supervisor_init nested = {.children = &leaf, .child_count = 1};
    jzx_child_spec children[] = {{WORKER("a"), .arg = &args[1], .drop_arg = drop_arg},
                                 {.id = "b", .supervisor = &nested}};
    jzx_supervisor_init init = {.children = children, .child_count = 2};
    jzi_supervisor_plan *plan = plan_of(&init);
    jzi_child_plan *kept_child = plan->children[0];
    jzi_supervisor_plan *kept_nested = plan->children[1]->nested;
    kept_child->refs++;
    kept_nested->refs++;
    plan->refs++;
    jzi_supervisor_plan_release(&alloc, plan);
    CHECK_EQ(plan->refs, 1);
    jzi_supervisor_plan_release(&alloc, plan);
    CHECK_EQ(drops, 0);
    CHECK_STR(kept_child->spec.id, "a");
    CHECK_STR(kept_nested->children[0]->spec.id, "leaf");
    jzi_child_plan_release(&alloc, kept_child);
    CHECK(args[0] == 0 && args[1] == 1);
    jzi_supervisor_plan_release(&alloc, kept_nested);
    CHECK(args[0] == 1 && args[1] == 1);
    CHECK_EQ(blocks, 0);
    jzi_supervisor_plan_release(&alloc, NULL);
    jzi_child_plan_release(&alloc, NULL);
}

/* --- arguments --- */

static void test_arguments_are_transferred_on_success_only_and_dropped_once_R4(void)
{
    int args[3] = {0};
    jzx_child_spec leaf = {WORKER("leaf"), .arg = &args[0], .drop_arg = drop_arg};
    jzx_supervisor_init nested = {.children = &leaf, .child_count = 1};
    jzx_child_spec children[] = {
        {WORKER("a"), .arg = &args[1], .drop_arg = drop_arg},
        {.id = "b", .supervisor = &nested},
        {WORKER("borrowed"), .arg = &args[2]},
        {WORKER("nothing"), .drop_arg = drop_arg},
        {WORKER("last")},
    };
    jzx_supervisor_init init = {.children = children, .child_count = 5};
    jzi_supervisor_plan *plan = plan_of(&init);
    CHECK_EQ(drops, 0);
    jzi_supervisor_plan_release(&alloc, plan);
    CHECK(args[0] == 1 && args[1] == 1 && args[2] == 0);
    CHECK_EQ(drops, 2);

    children[4].mode = 9;
    expect(&init, JZX_ERR_BAD_SPEC, "child \"last\": mode is no jzx_restart_mode");
    CHECK_EQ(drops, 0);
    children[4] = (jzx_child_spec){WORKER("a")};
    expect(&init, JZX_ERR_DUPLICATE_CHILD, "child \"a\": id is that of an earlier child");
    CHECK_EQ(drops, 0);
    CHECK(args[0] == 1 && args[1] == 1 && args[2] == 0);
}

static void test_checking_a_good_spec_takes_no_argument(void)
{
    int arg = 0;
    char why[WHY_MAX];
    jzx_child_spec child = {WORKER("a"), .arg = &arg, .drop_arg = drop_arg};
    jzx_supervisor_init init = {.children = &child, .child_count = 1};
    start();
    CHECK_OK(jzx_supervisor_check(&init, why, sizeof why));
    CHECK_EQ(drops, 0);
}

static void test_children_of_a_dynamic_supervisor_bring_their_own_argument_R19(void)
{
    int arg = 0;
    jzx_supervisor_spec dynamic = {.strategy = JZX_DYNAMIC};
    jzx_child_spec child = {WORKER("conn"), .drop_arg = drop_arg};
    jzx_supervisor_init init = {.spec = &dynamic, .children = &child, .child_count = 1};
    jzi_supervisor_plan *plan = plan_of(&init);
    CHECK(!plan->children[0]->drops_arg);
    CHECK(plan->children[0]->spec.drop_arg == drop_arg);
    jzi_supervisor_plan_release(&alloc, plan);
    CHECK_EQ(drops, 0);

    child.arg = &arg;
    expect(&init, JZX_ERR_BAD_SPEC,
           "child \"conn\": arg is set beside drop_arg; each child of a dynamic supervisor brings "
           "its own");
    child.drop_arg = NULL; /* borrowed by all of them */
    expect(&init, JZX_OK, "");
    CHECK_EQ(drops, 0);
}

/* --- one child --- */

static void test_one_child_is_checked_against_the_policy_it_comes_under_R19(void)
{
    char why[WHY_MAX] = "unset";
    jzi_child_plan *plan = NULL;
    jzi_policy never = {.period_ns = UINT64_C(700000000)};
    jzi_policy any = {.auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT};
    jzi_policy dynamic = {.strategy = JZX_DYNAMIC};
    int arg = 0;
    jzx_child_spec child = {WORKER("late"), .mode = JZX_TRANSIENT, .significant = 1};
    start();
    CHECK_EQ(jzi_child_plan_make(&alloc, &child, &sizes, &never, why, sizeof why, &plan),
             JZX_ERR_BAD_SPEC);
    CHECK_STR(why, "child \"late\": significant needs an auto_shutdown of the supervisor");
    CHECK_EQ(jzi_child_plan_make(&alloc, NULL, &sizes, &never, why, sizeof why, &plan),
             JZX_ERR_INVALID_ARG);
    CHECK_STR(why, "child \"#0\": spec is NULL");
    CHECK(plan == NULL);
    CHECK_OK(jzi_child_plan_make(&alloc, &child, &sizes, &any, why, sizeof why, &plan));
    CHECK_STR(why, "");
    jzi_child_plan_release(&alloc, plan);

    child = (jzx_child_spec){WORKER("late"), .arg = &arg, .drop_arg = drop_arg};
    plan = NULL;
    CHECK_EQ(jzi_child_plan_make(&alloc, &child, &sizes, &dynamic, why, sizeof why, &plan),
             JZX_ERR_BAD_SPEC);
    CHECK(plan == NULL && drops == 0);
    REQUIRE_OK(jzi_child_plan_make(&alloc, &child, &sizes, &never, NULL, 0, &plan));
    CHECK_EQ(plan->spec.period_ms, 700);
    CHECK_EQ(plan->spec.shutdown_ms, 5000);
    CHECK(plan->drops_arg);
    jzi_child_plan_release(&alloc, plan);
    CHECK_EQ(arg, 1);

    child = (jzx_child_spec){.id = "sub", .supervisor = &inner};
    REQUIRE_OK(jzi_child_plan_make(&alloc, &child, &sizes, &never, NULL, 0, &plan));
    CHECK_STR(plan->nested->children[0]->id, "a");
    jzi_child_plan_release(&alloc, plan);
    CHECK_EQ(blocks, 0);
}

/* --- memory --- */

/* Goal: R9's opposite side: where memory may be missing, nothing is left behind and nothing taken.
 * Method: every allocation of a tree with arguments and more children than are compared in place
 * fails once. */
static void test_every_allocation_may_fail_and_nothing_is_taken_R4(void)
{
    enum { WIDE = 40 };
    static char names[WIDE][8];
    int arg = 0;
    jzx_child_spec wide[WIDE];
    for (size_t i = 0; i < WIDE; i++) {
        (void)snprintf(names[i], sizeof names[i], "c%zu", i);
        wide[i] = (jzx_child_spec){WORKER(names[i]), .arg = &arg, .drop_arg = drop_arg};
    }
    jzx_supervisor_init pool = {.children = wide, .child_count = WIDE};
    jzx_child_spec children[] = {{WORKER("a"), .arg = &arg, .drop_arg = drop_arg},
                                 {.id = "b", .supervisor = &pool},
                                 {.id = "c", .supervisor = &inner}};
    jzx_supervisor_init init = {.children = children, .child_count = 3};
    char why[WHY_MAX];
    size_t n = 1;
    for (;; n++) {
        jzi_supervisor_plan *plan = NULL;
        start();
        fail_at = n;
        jzx_err err = jzi_supervisor_plan_make(&alloc, &init, &sizes, why, sizeof why, &plan);
        if (err == JZX_OK) {
            CHECK(asked < n); /* it was never reached */
            jzi_supervisor_plan_release(&alloc, plan);
            break;
        }
        CHECK_EQ(err, JZX_ERR_NO_MEMORY);
        CHECK_STR(why, n == 1 ? "supervisor \"b\": no memory is left to check it"
                              : "supervisor: no memory is left to copy it");
        CHECK(plan == NULL);
        CHECK_EQ(blocks, 0);
        CHECK_EQ(drops, 0);
        REQUIRE(n < 1000);
    }
    /* The table of ids; a plan and a list per supervisor; a plan per child. */
    CHECK_EQ(n, 1 + 3 * 2 + (3 + WIDE + 1) + 1);
    CHECK_EQ(drops, 1 + WIDE);
    CHECK_EQ(blocks, 0);
    for (n = 1; n <= 5; n++) {
        jzi_child_plan *plan = NULL;
        jzi_policy policy = {0};
        start();
        fail_at = n;
        jzx_err err =
            jzi_child_plan_make(&alloc, &children[2], &sizes, &policy, why, sizeof why, &plan);
        CHECK_EQ(err, n <= 4 ? JZX_ERR_NO_MEMORY : JZX_OK);
        CHECK_STR(why, n <= 4 ? "child \"c\": no memory is left to copy it" : "");
        CHECK_EQ(plan == NULL, n <= 4);
        jzi_child_plan_release(&alloc, plan);
        CHECK_EQ(blocks, 0);
    }
}

/* --- older and newer callers --- */

typedef struct newer_child {
    jzx_child_spec known;
    uint64_t more[3];
} newer_child;

typedef struct newer_spec {
    jzx_supervisor_spec known;
    uint64_t more;
} newer_spec;

typedef struct newer_init {
    jzx_supervisor_init known;
    uint64_t more;
} newer_init;

/* A tree in the shape of a newer caller: two levels, so that nested structs are read by the same
 * sizes. */
typedef struct newer_tree {
    newer_child leaves[3];
    newer_init nested;
    newer_spec spec;
    newer_child children[2];
    newer_init init;
} newer_tree;

static void build_newer(newer_tree *tree)
{
    memset(tree, 0, sizeof *tree);
    tree->leaves[0].known = (jzx_child_spec){WORKER("x")};
    tree->leaves[1].known = (jzx_child_spec){WORKER("y"), .mode = JZX_TEMPORARY};
    tree->leaves[2].known = (jzx_child_spec){WORKER("z")};
    tree->nested.known =
        (jzx_supervisor_init){.children = &tree->leaves[0].known, .child_count = 3};
    tree->spec.known.intensity = 9;
    tree->children[0].known = (jzx_child_spec){WORKER("a")};
    tree->children[1].known =
        (jzx_child_spec){.id = "b", .supervisor = &tree->nested.known, .flags = 0x10};
    tree->init.known = (jzx_supervisor_init){
        .spec = &tree->spec.known, .children = &tree->children[0].known, .child_count = 2};
}

static void test_structs_of_newer_callers_are_read_by_stride_R36(void)
{
    static const jzx_supervisor_sizes newer = {sizeof(newer_init), sizeof(newer_spec),
                                               sizeof(newer_child)};
    static newer_tree tree;
    char why[WHY_MAX];
    jzi_supervisor_plan *plan = NULL;
    build_newer(&tree);
    start();
    REQUIRE_OK(jzi_supervisor_plan_make(&alloc, &tree.init.known, &newer, why, sizeof why, &plan));
    CHECK_EQ(plan->policy.intensity, 9);
    REQUIRE_EQ(plan->child_count, 2);
    CHECK_STR(plan->children[0]->id, "a");
    CHECK_STR(plan->children[1]->id, "b");
    CHECK_EQ(plan->children[1]->spec.flags, 0x10);
    const jzi_supervisor_plan *nested = plan->children[1]->nested;
    REQUIRE(nested != NULL && nested->child_count == 3);
    CHECK_STR(nested->children[0]->id, "x");
    CHECK_STR(nested->children[1]->id, "y");
    CHECK_EQ(nested->children[1]->spec.mode, JZX_TEMPORARY);
    CHECK_STR(nested->children[2]->id, "z");
    jzi_supervisor_plan_release(&alloc, plan);
    tree.leaves[2].known.id = "x";
    CHECK_EQ(jzx_supervisor_check_sized(&tree.init.known, newer, why, sizeof why),
             JZX_ERR_DUPLICATE_CHILD);
    CHECK_STR(why, "child \"b/x\": id is that of an earlier child");
}

static void test_fields_that_we_do_not_know_are_refused_wherever_they_are_R36(void)
{
#define NEWER ": a field that this library does not know is set; update the library"
    static const jzx_supervisor_sizes newer = {sizeof(newer_init), sizeof(newer_spec),
                                               sizeof(newer_child)};
    static newer_tree tree;
    static const struct {
        uint64_t *field;
        const char *sentence;
    } rows[] = {
        {&tree.init.more, "supervisor" NEWER},
        {&tree.spec.more, "supervisor" NEWER},
        {&tree.children[0].more[0], "child \"#0\"" NEWER},
        {&tree.children[1].more[2], "child \"#1\"" NEWER},
        {&tree.nested.more, "supervisor \"b\"" NEWER},
        {&tree.leaves[2].more[1], "child \"b/#2\"" NEWER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char why[WHY_MAX];
        jzi_supervisor_plan *plan = NULL;
        build_newer(&tree);
        *rows[i].field = 1;
        start();
        CHECK_EQ(jzi_supervisor_plan_make(&alloc, &tree.init.known, &newer, why, sizeof why, &plan),
                 JZX_ERR_NEWER_STRUCT);
        CHECK_STR(why, rows[i].sentence);
        CHECK(plan == NULL && blocks == 0);
        CHECK_EQ(jzx_supervisor_check_sized(&tree.init.known, newer, NULL, 0),
                 JZX_ERR_NEWER_STRUCT);
    }
}

static void test_structs_of_older_callers_are_completed_with_zeros_R36(void)
{
    /* Their child ended before shutdown_ms, their spec after intensity, their init is ours. */
    static const jzx_supervisor_sizes older = {sizeof(jzx_supervisor_init),
                                               offsetof(jzx_supervisor_spec, period_ms),
                                               offsetof(jzx_child_spec, shutdown_ms)};
    unsigned char packed[2][offsetof(jzx_child_spec, shutdown_ms)];
    jzx_child_spec child = {WORKER("a"), .mode = JZX_TRANSIENT};
    memcpy(packed[0], &child, sizeof packed[0]);
    child = (jzx_child_spec){WORKER("b"), .mode = JZX_TEMPORARY};
    memcpy(packed[1], &child, sizeof packed[1]);
    jzx_supervisor_spec spec;
    memset(&spec, 0xEE, sizeof spec); /* what lies behind the short struct */
    spec.strategy = JZX_ONE_FOR_ALL;
    spec.intensity = 6;
    jzx_supervisor_init init = {.spec = &spec, .child_count = 2};
    const void *list = packed;
    memcpy(&init.children, &list, sizeof list);
    char why[WHY_MAX];
    jzi_supervisor_plan *plan = NULL;
    start();
    REQUIRE_OK(jzi_supervisor_plan_make(&alloc, &init, &older, why, sizeof why, &plan));
    CHECK_EQ(plan->policy.strategy, JZX_ONE_FOR_ALL);
    CHECK_EQ(plan->policy.intensity, 6);
    CHECK_EQ(plan->policy.period_ns, UINT64_C(5000000000));
    CHECK_STR(plan->children[0]->id, "a");
    CHECK_EQ(plan->children[0]->spec.mode, JZX_TRANSIENT);
    CHECK_STR(plan->children[1]->id, "b");
    CHECK_EQ(plan->children[1]->spec.mode, JZX_TEMPORARY);
    CHECK_EQ(plan->children[1]->spec.shutdown_ms, 5000);
    CHECK_EQ(plan->children[1]->spec.flags, 0);
    jzi_supervisor_plan_release(&alloc, plan);
    CHECK_EQ(blocks, 0);
    jzx_supervisor_sizes none = {sizeof init, 0, 0};
    CHECK_EQ(jzx_supervisor_check_sized(&init, none, why, sizeof why), JZX_ERR_BAD_SPEC);
    CHECK_STR(why, "child \"#0\": id is missing");
}

static const jzt_test tests[] = {
    {"each_bad_field_of_a_child_has_its_sentence_R19",
     test_each_bad_field_of_a_child_has_its_sentence_R19},
    {"a_supervisor_as_child_takes_nothing_of_a_worker_R19",
     test_a_supervisor_as_child_takes_nothing_of_a_worker_R19},
    {"a_worker_that_may_be_restarted_needs_init_or_stateless_R18",
     test_a_worker_that_may_be_restarted_needs_init_or_stateless_R18},
    {"significant_children_need_a_rule_and_an_end_R19",
     test_significant_children_need_a_rule_and_an_end_R19},
    {"bad_supervisors_have_their_sentence_R19", test_bad_supervisors_have_their_sentence_R19},
    {"the_limit_of_children_is_that_of_the_whole_tree_R19",
     test_the_limit_of_children_is_that_of_the_whole_tree_R19},
    {"the_sentence_has_the_path_to_what_is_nested_R19",
     test_the_sentence_has_the_path_to_what_is_nested_R19},
    {"sixty_four_supervisors_may_be_nested_and_no_more_R19",
     test_sixty_four_supervisors_may_be_nested_and_no_more_R19},
    {"a_spec_that_contains_itself_is_refused_R19", test_a_spec_that_contains_itself_is_refused_R19},
    {"ids_are_unique_however_many_there_are_R19", test_ids_are_unique_however_many_there_are_R19},
    {"a_sentence_is_cut_to_its_buffer_and_may_be_left_out",
     test_a_sentence_is_cut_to_its_buffer_and_may_be_left_out},
    {"defaults_are_filled_in_R36", test_defaults_are_filled_in_R36},
    {"a_plan_outlives_what_it_was_made_from_R19", test_a_plan_outlives_what_it_was_made_from_R19},
    {"a_plan_goes_with_its_last_user_R19", test_a_plan_goes_with_its_last_user_R19},
    {"arguments_are_transferred_on_success_only_and_dropped_once_R4",
     test_arguments_are_transferred_on_success_only_and_dropped_once_R4},
    {"checking_a_good_spec_takes_no_argument", test_checking_a_good_spec_takes_no_argument},
    {"children_of_a_dynamic_supervisor_bring_their_own_argument_R19",
     test_children_of_a_dynamic_supervisor_bring_their_own_argument_R19},
    {"one_child_is_checked_against_the_policy_it_comes_under_R19",
     test_one_child_is_checked_against_the_policy_it_comes_under_R19},
    {"every_allocation_may_fail_and_nothing_is_taken_R4",
     test_every_allocation_may_fail_and_nothing_is_taken_R4},
    {"structs_of_newer_callers_are_read_by_stride_R36",
     test_structs_of_newer_callers_are_read_by_stride_R36},
    {"fields_that_we_do_not_know_are_refused_wherever_they_are_R36",
     test_fields_that_we_do_not_know_are_refused_wherever_they_are_R36},
    {"structs_of_older_callers_are_completed_with_zeros_R36",
     test_structs_of_older_callers_are_completed_with_zeros_R36},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
