/* Goal: supervisors whose children are made from one spec, as many as are asked for (R19).
 * Method: simulation; the meaning of OTP's simple_one_for_one cases, which docs/reference/SPEC.md
 * lists. */
#include "sup_fixture.h"

#define HOUR_MS (3600 * 1000)

static void test_a_dynamic_child_is_restarted_alone_R19(void)
{
    tree t;
    kid *kids[3];
    jzx_actor_id ids[3];
    jzx_supervisor_spec spec = {.intensity = 2, .period_ms = HOUR_MS};
    tree_open(&t);
    tree_start_dynamic(&t, &spec, JZX_PERMANENT, 0);
    for (size_t i = 0; i < COUNT_OF(kids); i++) {
        kids[i] = tree_add_dynamic(&t, NULL);
        ids[i] = kids[i]->me.id;
    }
    tree_idle(&t);
    kid_end(kids[0], JZX_REASON_FAILED);
    KID_CHECK_LIFE(kids[0], ids[0], 2);
    kid_end(kids[2], JZX_REASON_KILLED);
    KID_CHECK_LIFE(kids[0], ids[0], 2);
    KID_CHECK_LIFE(kids[1], ids[1], 1);
    KID_CHECK_LIFE(kids[2], ids[2], 2);
    kid_end(kids[1], JZX_REASON_FAILED); /* the budget is shared, and used up */
    CHECK_GONE(&t, JZX_REASON_GAVE_UP);
    CHECK_EQ(t.sup_end.from, ids[1]);
    CHECK_STR(words_take(&t.escalations), "sup:gave_up:kid");
    tree_close(&t);
}

static void test_a_dynamic_child_that_cannot_start_again_ends_the_supervisor_R19(void)
{
    tree t;
    jzx_supervisor_spec spec = {.intensity = 4, .period_ms = HOUR_MS};
    tree_open(&t);
    tree_start_dynamic(&t, &spec, JZX_PERMANENT, 0);
    kid *a = tree_add_dynamic(&t, "of");
    kid *b = tree_add_dynamic(&t, NULL);
    tree_idle(&t);
    kid_end(a, JZX_REASON_FAILED);
    CHECK_GONE(&t, JZX_REASON_GAVE_UP);
    CHECK_EQ(a->me.inits, 1 + 4);
    CHECK_EQ(b->me.inits, 1);
    CHECK_EQ(b->me.deinits, 1);
    CHECK(words_in_order(t.ends.text, "kid:shutdown sup:gave_up"));
    tree_close(&t);
}

/* All are asked at once and share their time: ten slow ones take as long as one. */
static void test_dynamic_children_stop_at_the_same_time_R16(void)
{
    enum { COUNT = 10 };
    tree t;
    tree_open(&t);
    tree_start_dynamic(&t, NULL, JZX_PERMANENT, 0);
    for (int i = 0; i < COUNT; i++) {
        (void)tree_add_dynamic(&t, NULL);
    }
    tree_idle(&t);
    for (kid *k = t.kids; k != NULL; k = k->next) {
        kid_tell(k, KID_LINGER, 1000);
    }
    tree_idle(&t);
    uint64_t began = tree_ms(&t);
    CHECK_OK(jzx_stop(t.loop, t.sup));
    tree_pass(&t, 10);
    CHECK_EQ(words_count(words_take(&t.asked), "kid"), COUNT);
    CHECK_STR(words_take(&t.ends), "");
    while (jzx_actor_state(t.loop, t.sup) != JZX_STATE_TERMINATED && tree_ms(&t) < began + 20000) {
        tree_pass(&t, 10);
    }
    CHECK(tree_ms(&t) >= began + 990);
    CHECK(tree_ms(&t) < began + 1100);
    CHECK_EQ(words_count(words_take(&t.ends), "kid:shutdown"), COUNT);
    tree_close(&t);
}

/* The time of a dynamic supervisor's children is one time, also for those that never stop. */
static void test_dynamic_children_share_one_timeout_R16(void)
{
    enum { COUNT = 10 };
    tree t;
    tree_open(&t);
    tree_start_dynamic(&t, NULL, JZX_PERMANENT, 1000);
    for (int i = 0; i < COUNT; i++) {
        tree_add_dynamic(&t, NULL)->at_stop = 'd';
    }
    tree_idle(&t);
    CHECK_OK(jzx_stop(t.loop, t.sup));
    tree_pass(&t, 1050);
    CHECK_EQ(words_count(words_take(&t.ends), "kid:stop_timeout"), COUNT);
    CHECK_GONE(&t, JZX_REASON_SHUTDOWN);
    tree_close(&t);
}

/* simple_one_for_one_extra: each child has its own argument, then and at every restart. */
static void test_each_dynamic_child_is_restarted_with_its_own_argument_R18(void)
{
    tree t;
    kid *kids[5];
    jzx_supervisor_spec spec = {.intensity = 10};
    tree_open(&t);
    tree_start_dynamic(&t, &spec, JZX_TRANSIENT, 0);
    for (size_t i = 0; i < COUNT_OF(kids); i++) {
        kids[i] = tree_add_dynamic(&t, NULL);
    }
    tree_idle(&t);
    for (size_t i = 0; i < COUNT_OF(kids); i++) {
        for (size_t j = 0; j < i; j++) {
            kid_end(kids[i], JZX_REASON_FAILED);
        }
    }
    for (size_t i = 0; i < COUNT_OF(kids); i++) {
        CHECK_EQ(kids[i]->me.inits, 1 + i);
        KID_CHECK_LIFE(kids[i], kids[i]->me.id, (uint32_t)(1 + i));
    }
    tree_close(&t);
}

/* simple_one_for_one_corruption: the argument lives exactly as long as it may be needed. */
static void test_the_argument_of_a_dynamic_child_is_released_once_when_it_ended_R4(void)
{
    static const struct {
        uint32_t mode, reason;
        bool ends;
    } cases[] = {
        {JZX_TEMPORARY, JZX_REASON_NORMAL, true},    {JZX_TEMPORARY, JZX_REASON_FAILED, true},
        {JZX_TEMPORARY, JZX_REASON_KILLED, true},    {JZX_TRANSIENT, JZX_REASON_NORMAL, true},
        {JZX_TRANSIENT, JZX_REASON_SHUTDOWN, true},  {JZX_TRANSIENT, JZX_REASON_PANIC, false},
        {JZX_PERMANENT, JZX_REASON_NORMAL, false},   {JZX_PERMANENT, JZX_REASON_FAILED, false},
        {JZX_PERMANENT, JZX_REASON_SHUTDOWN, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        tree t;
        tree_open(&t);
        kid *a = kid_new(&t, "kid");
        kid *b = kid_new(&t, "kid");
        jzx_supervisor_spec spec = {.strategy = JZX_DYNAMIC};
        jzx_child_spec child = kid_spec(a, cases[i].mode);
        child.arg = NULL;
        child.drop_arg = kid_drop_arg;
        tree_start(&t, &spec, &child, 1);
        REQUIRE_OK(jzx_supervisor_start_dynamic(t.loop, t.sup, a, NULL));
        REQUIRE_OK(jzx_supervisor_start_dynamic(t.loop, t.sup, b, NULL));
        tree_idle(&t);
        kid_end(a, cases[i].reason);
        CHECK_EQ(a->drops, cases[i].ends ? 1 : 0);
        CHECK_EQ(a->me.inits, cases[i].ends ? 1 : 2);
        CHECK_EQ(b->drops, 0);
        tree_stop_now(&t);
        CHECK_EQ(a->drops, 1);
        CHECK_EQ(b->drops, 1);
        tree_close(&t);
    }
}

static void test_a_refused_dynamic_child_leaves_its_argument_with_the_caller_R4(void)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "kid");
    jzx_supervisor_spec spec = {.strategy = JZX_DYNAMIC};
    jzx_child_spec child = kid_spec(a, JZX_PERMANENT);
    child.arg = NULL;
    child.drop_arg = kid_drop_arg;
    tree_start(&t, &spec, &child, 1);
    CHECK_OK(jzx_stop(t.loop, t.sup));
    CHECK(jzx_supervisor_start_dynamic(t.loop, t.sup, a, NULL) != JZX_OK);
    tree_idle(&t);
    CHECK_EQ(jzx_supervisor_start_dynamic(t.loop, t.sup, a, NULL), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(a->drops, 0);
    tree_close(&t);
}

static void test_a_dynamic_child_that_declines_its_restart_is_forgotten_R19(void)
{
    tree t;
    tree_open(&t);
    tree_start_dynamic(&t, NULL, JZX_PERMANENT, 0);
    kid *a = tree_add_dynamic(&t, "oi");
    kid *b = tree_add_dynamic(&t, NULL);
    tree_idle(&t);
    CHECK_COUNTS(&t, 1, 2, 0, 2);
    kid_end(a, JZX_REASON_FAILED);
    CHECK_EQ(a->me.inits, 2);
    CHECK_EQ(kid_state_of(a), JZX_STATE_TERMINATED);
    CHECK_COUNTS(&t, 1, 1, 0, 1);
    KID_CHECK_LIFE(b, b->me.id, 1);
    tree_stop_now(&t);
    tree_close(&t);
}

/* hanging_restart_loop_simple: in the middle of it the child can be given up, and so can the
 * supervisor. */
static void test_a_dynamic_child_that_fails_to_restart_for_ever_can_be_terminated_R19(void)
{
    tree t;
    jzx_supervisor_spec spec = {
        .intensity = JZX_INTENSITY_MAX, .backoff_min_ms = 50, .backoff_max_ms = 50};
    tree_open(&t);
    tree_start_dynamic(&t, &spec, JZX_PERMANENT, 0);
    kid *a = tree_add_dynamic(&t, "of");
    kid *b = tree_add_dynamic(&t, NULL);
    tree_idle(&t);
    kid_end(a, JZX_REASON_FAILED);
    tree_pass(&t, 1000);
    CHECK(a->me.inits > 10);
    jzx_child_info list[2];
    REQUIRE_EQ(jzx_supervisor_children(t.loop, t.sup, list, 2), 2);
    CHECK_EQ(list[0].status, JZX_CHILD_RESTARTING);
    CHECK_EQ(list[1].status, JZX_CHILD_RUNNING);
    CHECK_COUNTS(&t, 1, 1, 0, 2);
    uint32_t inits = a->me.inits;
    CHECK_OK(jzx_supervisor_terminate(t.loop, t.sup, a->me.id));
    tree_pass(&t, 10000);
    CHECK(a->me.inits <= inits);
    CHECK_EQ(kid_state_of(a), JZX_STATE_TERMINATED);
    CHECK_EQ(jzx_supervisor_children(t.loop, t.sup, list, 2), 1);
    b->plan = "f";
    kid_end(b, JZX_REASON_FAILED);
    tree_pass(&t, 1000);
    CHECK(b->me.inits > 10);
    tree_stop_now(&t);
    tree_close(&t);
}

/* What `count` children cost to start and to end, in turns of actors. */
static uint64_t turns_of(uint32_t count, uint32_t mode, bool all_by_themselves)
{
    tree t;
    tree_open(&t);
    tree_start_dynamic(&t, NULL, mode, 0);
    uint64_t before = rig_counters(&t.r).turns;
    for (uint32_t i = 0; i < count; i++) {
        (void)tree_add_dynamic(&t, NULL);
    }
    tree_idle(&t);
    CHECK_COUNTS(&t, 1, count, 0, count);
    if (all_by_themselves) {
        for (kid *k = t.kids; k != NULL; k = k->next) {
            kid_tell(k, T_STOP, 0);
        }
        tree_idle(&t);
        CHECK_COUNTS(&t, 1, 0, 0, 0);
    }
    tree_stop_now(&t);
    uint64_t after = rig_counters(&t.r).turns;
    tree_close(&t);
    return after - before;
}

/* Counted in turns: the time itself is measured by the benchmarks. */
static void test_ten_times_the_temporary_children_take_ten_times_the_turns_R24(void)
{
    uint64_t few = turns_of(1000, JZX_TEMPORARY, true);
    uint64_t many = turns_of(10000, JZX_TEMPORARY, true);
    CHECK(many >= 10000);
    CHECK(many <= 12 * few);
}

static void test_starting_and_stopping_many_children_is_linear_in_turns_R24(void)
{
    uint64_t few = turns_of(1000, JZX_PERMANENT, false);
    uint64_t many = turns_of(50000, JZX_PERMANENT, false);
    CHECK(many >= 50000);
    CHECK(many <= 60 * few);
}

static const jzt_test tests[] = {
    {"a_dynamic_child_is_restarted_alone_R19", test_a_dynamic_child_is_restarted_alone_R19},
    {"a_dynamic_child_that_cannot_start_again_ends_the_supervisor_R19",
     test_a_dynamic_child_that_cannot_start_again_ends_the_supervisor_R19},
    {"dynamic_children_stop_at_the_same_time_R16", test_dynamic_children_stop_at_the_same_time_R16},
    {"dynamic_children_share_one_timeout_R16", test_dynamic_children_share_one_timeout_R16},
    {"each_dynamic_child_is_restarted_with_its_own_argument_R18",
     test_each_dynamic_child_is_restarted_with_its_own_argument_R18},
    {"the_argument_of_a_dynamic_child_is_released_once_when_it_ended_R4",
     test_the_argument_of_a_dynamic_child_is_released_once_when_it_ended_R4},
    {"a_refused_dynamic_child_leaves_its_argument_with_the_caller_R4",
     test_a_refused_dynamic_child_leaves_its_argument_with_the_caller_R4},
    {"a_dynamic_child_that_declines_its_restart_is_forgotten_R19",
     test_a_dynamic_child_that_declines_its_restart_is_forgotten_R19},
    {"a_dynamic_child_that_fails_to_restart_for_ever_can_be_terminated_R19",
     test_a_dynamic_child_that_fails_to_restart_for_ever_can_be_terminated_R19},
    {"ten_times_the_temporary_children_take_ten_times_the_turns_R24",
     test_ten_times_the_temporary_children_take_ten_times_the_turns_R24},
    {"starting_and_stopping_many_children_is_linear_in_turns_R24",
     test_starting_and_stopping_many_children_is_linear_in_turns_R24},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
