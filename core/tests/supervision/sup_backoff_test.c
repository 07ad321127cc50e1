/* Goal: a child may have a backoff of its own; what it leaves out is its supervisor's (R19).
 * Method: simulation; when starts were tried is on the clock to the millisecond. */
#include "sup_fixture.h"

static const jzx_supervisor_spec rules = {
    .intensity = 1000, .backoff_min_ms = 100, .backoff_max_ms = 400, .backoff_reset_ms = 60000};

/* Timers are never early and, with nothing else to do, at most a tick late. */
static void check_delay(int line, uint64_t from_ns, uint64_t to_ns, uint64_t want_ms)
{
    jzt_check_true(JZT_CHECK, "delay", line, "not early", to_ns - from_ns >= want_ms * MS);
    jzt_check_true(JZT_CHECK, "delay", line, "not late", to_ns - from_ns < (want_ms + 2) * MS);
}
/* Between a start that was tried, and the one before. */
#define CHECK_GAP(k, start, want_ms)                                                               \
    check_delay(__LINE__, (k)->at_ns[(start)-1], (k)->at_ns[start], want_ms)
/* Between its last end and its second start. */
#define CHECK_FIRST(k, failed_ns, want_ms) check_delay(__LINE__, failed_ns, (k)->at_ns[1], want_ms)

/* The delays of five failed starts in a row after one failure. */
static void check_delays(const jzx_child_spec *own, const uint64_t *want)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    kid *b = kid_new(&t, "b");
    a->plan = "offffo";
    jzx_child_spec children[] = {kid_spec(a, JZX_PERMANENT), kid_spec(b, JZX_PERMANENT)};
    children[0].backoff_min_ms = own->backoff_min_ms;
    children[0].backoff_max_ms = own->backoff_max_ms;
    children[0].backoff_reset_ms = own->backoff_reset_ms;
    children[0].backoff_factor = own->backoff_factor;
    tree_start(&t, &rules, children, 2);
    tree_pass(&t, 10);
    uint64_t failed_ns = jzx_sim_now(t.r.sim);
    kid_end(a, JZX_REASON_FAILED);
    tree_pass(&t, 20000);
    REQUIRE_EQ(a->me.inits, 6);
    CHECK_FIRST(a, failed_ns, want[0]);
    for (size_t i = 1; i < 5; i++) {
        CHECK_GAP(a, i + 1, want[i]);
    }
    /* Its sibling has the supervisor's. */
    failed_ns = jzx_sim_now(t.r.sim);
    kid_end(b, JZX_REASON_FAILED);
    tree_pass(&t, 1000);
    REQUIRE_EQ(b->me.inits, 2);
    CHECK_FIRST(b, failed_ns, 100);
    tree_close(&t);
}

static void test_a_child_waits_by_its_own_backoff_R19(void)
{
    static const struct {
        jzx_child_spec own;
        uint64_t want[5];
    } rows[] = {
        {{0}, {100, 200, 400, 400, 400}},
        {{.backoff_min_ms = 10}, {10, 20, 40, 80, 160}},
        {{.backoff_min_ms = 1000}, {1000, 1000, 1000, 1000, 1000}},
        {{.backoff_max_ms = 150}, {100, 150, 150, 150, 150}},
        {{.backoff_max_ms = 50}, {50, 50, 50, 50, 50}},
        {{.backoff_max_ms = 5000}, {100, 200, 400, 800, 1600}},
        {{.backoff_factor = 1}, {100, 100, 100, 100, 100}},
        {{.backoff_min_ms = 5, .backoff_max_ms = 1000, .backoff_factor = 10},
         {5, 50, 500, 1000, 1000}},
        {{.backoff_min_ms = JZX_BACKOFF_NONE}, {0, 0, 0, 0, 0}},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_delays(&rows[i].own, rows[i].want);
    }
}

static void test_a_quiet_time_of_its_own_starts_the_delays_over_R19(void)
{
    tree t;
    tree_open(&t);
    kid *k[2] = {kid_new(&t, "a"), kid_new(&t, "b")};
    jzx_child_spec children[] = {kid_spec(k[0], JZX_PERMANENT), kid_spec(k[1], JZX_PERMANENT)};
    children[0].backoff_reset_ms = 500;
    tree_start(&t, &rules, children, 2);
    for (size_t i = 0; i < 3; i++) {
        kid_end(k[0], JZX_REASON_FAILED);
        kid_end(k[1], JZX_REASON_FAILED);
        tree_pass(&t, 1000);
    }
    CHECK_EQ(tree_child(&t, "a").attempt, 1);
    CHECK_EQ(tree_child(&t, "b").attempt, 3);
    tree_close(&t);
}

/* A group waits as long as the one that took it along. */
static void test_a_group_waits_for_the_one_that_failed_R19(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        jzx_supervisor_spec spec = rules;
        spec.strategy = JZX_ONE_FOR_ALL;
        tree t;
        tree_open(&t);
        kid *k[2] = {kid_new(&t, "a"), kid_new(&t, "b")};
        jzx_child_spec children[] = {kid_spec(k[0], JZX_PERMANENT), kid_spec(k[1], JZX_PERMANENT)};
        children[0].backoff_min_ms = 2000;
        tree_start(&t, &spec, children, 2);
        uint64_t failed_ns = jzx_sim_now(t.r.sim);
        kid_end(k[i], JZX_REASON_FAILED);
        tree_pass(&t, 5000);
        for (size_t n = 0; n < 2; n++) {
            REQUIRE_EQ(k[n]->me.inits, 2);
            CHECK_FIRST(k[n], failed_ns, i == 0 ? 2000 : 100);
        }
        tree_close(&t);
    }
}

/* What is the supervisor's changes with the supervisor; what is the child's stays. */
static void test_new_rules_reach_what_a_child_left_out_R19(void)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    jzx_child_spec child = kid_spec(a, JZX_PERMANENT);
    child.backoff_factor = 3;
    a->plan = "offo";
    tree_start(&t, &rules, &child, 1);
    jzx_supervisor_spec spec = rules;
    spec.backoff_min_ms = 10;
    REQUIRE_OK(jzx_supervisor_reconfigure(t.loop, t.sup, &spec));
    kid_end(a, JZX_REASON_FAILED);
    tree_pass(&t, 1000);
    REQUIRE_EQ(a->me.inits, 4);
    CHECK_GAP(a, 2, 30);
    CHECK_GAP(a, 3, 90);
    jzx_child_spec got;
    REQUIRE_OK(jzx_supervisor_get_spec(t.loop, t.sup, "a", &got));
    CHECK(got.backoff_factor == 3);
    CHECK_EQ(got.backoff_min_ms, 0);
    tree_close(&t);
}

static void test_jitter_of_its_own_spreads_the_delays_R19(void)
{
    uint64_t low = UINT64_MAX, high = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        tree t;
        tree_open_seeded(&t, seed);
        kid *a = kid_new(&t, "a");
        jzx_child_spec child = kid_spec(a, JZX_PERMANENT);
        child.backoff_jitter = 0.5;
        tree_start(&t, &rules, &child, 1);
        uint64_t failed_ns = jzx_sim_now(t.r.sim);
        kid_end(a, JZX_REASON_FAILED);
        tree_pass(&t, 1000);
        REQUIRE_EQ(a->me.inits, 2);
        uint64_t delay = (a->at_ns[1] - failed_ns) / MS;
        low = delay < low ? delay : low;
        high = delay > high ? delay : high;
        tree_close(&t);
    }
    CHECK(low >= 50 && low < 80);
    CHECK(high <= 151 && high > 120);
}

/* Of a dynamic supervisor each child has it, and a plan counts with it. */
static void test_plans_and_dynamic_children_know_it_R19(void)
{
    tree t;
    tree_open(&t);
    jzx_supervisor_spec spec = rules;
    spec.strategy = JZX_DYNAMIC;
    jzx_child_spec child = kid_spec(&(kid){.id = "kid"}, JZX_PERMANENT);
    child.arg = NULL;
    child.backoff_min_ms = 30;
    tree_start(&t, &spec, &child, 1);
    kid *k = tree_add_dynamic(&t, NULL);
    tree_idle(&t);
    jzx_plan_step steps[4];
    size_t count = 0;
    REQUIRE_OK(jzx_supervisor_plan(t.loop, t.sup, k->me.id, steps, COUNT_OF(steps), &count));
    REQUIRE_EQ(count, 3);
    CHECK_EQ(steps[1].delay_ms, 30);
    uint64_t failed_ns = jzx_sim_now(t.r.sim);
    kid_end(k, JZX_REASON_FAILED);
    tree_pass(&t, 1000);
    CHECK_FIRST(k, failed_ns, 30);
    tree_close(&t);
}

static const jzt_test tests[] = {
    {"a_child_waits_by_its_own_backoff_R19", test_a_child_waits_by_its_own_backoff_R19},
    {"a_quiet_time_of_its_own_starts_the_delays_over_R19",
     test_a_quiet_time_of_its_own_starts_the_delays_over_R19},
    {"a_group_waits_for_the_one_that_failed_R19", test_a_group_waits_for_the_one_that_failed_R19},
    {"new_rules_reach_what_a_child_left_out_R19", test_new_rules_reach_what_a_child_left_out_R19},
    {"jitter_of_its_own_spreads_the_delays_R19", test_jitter_of_its_own_spreads_the_delays_R19},
    {"plans_and_dynamic_children_know_it_R19", test_plans_and_dynamic_children_know_it_R19},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
