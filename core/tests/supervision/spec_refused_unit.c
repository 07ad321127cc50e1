/* Goal: a spec is refused with a sentence that names child and field (R19). Method: tables of one
 * wrong field each. */
#include "spec_kit.h"

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
    {"one_child_is_checked_against_the_policy_it_comes_under_R19",
     test_one_child_is_checked_against_the_policy_it_comes_under_R19},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
