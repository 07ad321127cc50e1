/* Goal: a spec is copied whole, so that the caller may forget it (R19); what a failed call leaves
 * behind is nothing (R4). Method: an allocator that checks sizes, counts blocks and fails on
 * demand; structs of older and newer callers (R36). */
#include "spec_kit.h"

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
    {"defaults_are_filled_in_R36", test_defaults_are_filled_in_R36},
    {"a_plan_outlives_what_it_was_made_from_R19", test_a_plan_outlives_what_it_was_made_from_R19},
    {"a_plan_goes_with_its_last_user_R19", test_a_plan_goes_with_its_last_user_R19},
    {"arguments_are_transferred_on_success_only_and_dropped_once_R4",
     test_arguments_are_transferred_on_success_only_and_dropped_once_R4},
    {"checking_a_good_spec_takes_no_argument", test_checking_a_good_spec_takes_no_argument},
    {"children_of_a_dynamic_supervisor_bring_their_own_argument_R19",
     test_children_of_a_dynamic_supervisor_bring_their_own_argument_R19},
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
