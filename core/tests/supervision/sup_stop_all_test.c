/* Goal: the action STOP under one_for_all ends all children, the youngest first, and keeps their
 * specs; other strategies, other actions and ends that no action is asked about do not (R19).
 * Method: simulation; a, b, c and d, of which one fails in every way. */
#include "sup_fixture.h"

enum { KIDS = 4 };

static const jzx_supervisor_spec stop_all = {.strategy = JZX_ONE_FOR_ALL,
                                             .action = JZX_ACTION_STOP};

static void test_a_stop_under_one_for_all_ends_all_children_R19(void)
{
    static const uint32_t reasons[] = {JZX_REASON_FAILED, JZX_REASON_PANIC, JZX_REASON_KILLED};
    static const char *const lives[KIDS] = {"-a -d -c -b", "-b -d -c -a", "-c -d -b -a",
                                            "-d -c -b -a"};
    for (size_t i = 0; i < COUNT_OF(reasons) * KIDS; i++) {
        tree t;
        kid *k[KIDS];
        tree_open(&t);
        tree_start_kids(&t, &stop_all, k, NULL, KIDS);
        (void)words_take(&t.life);
        kid_end(k[i % KIDS], reasons[i / KIDS]);
        CHECK_STR(words_take(&t.life), lives[i % KIDS]);
        CHECK_EQ(jzx_actor_state(t.loop, t.sup), JZX_STATE_RUNNING);
        CHECK_COUNTS(&t, KIDS, 0, 0, KIDS);
        CHECK_STR(words_take(&t.restarts), "");
        CHECK_STR(words_take(&t.escalations), "");
        const char *ends = words_take(&t.ends);
        for (size_t n = 0; n < KIDS; n++) {
            char word[64];
            uint32_t why = n == i % KIDS ? reasons[i / KIDS] : JZX_REASON_SHUTDOWN;
            snprintf(word, sizeof word, "%s:%s", k[n]->id, jzx_reason_name(why));
            CHECK_EQ(words_count(ends, word), 1);
            CHECK_EQ(tree_status(&t, k[n]->id), JZX_CHILD_DOWN);
        }
        tree_close(&t);
    }
}

/* Each can be started again, and then a failure ends again all that are up. */
static void test_children_that_stopped_together_start_one_by_one_R19(void)
{
    tree t;
    kid *k[KIDS];
    tree_open(&t);
    tree_start_kids(&t, &stop_all, k, NULL, KIDS);
    kid_end(k[2], JZX_REASON_FAILED);
    REQUIRE_OK(jzx_supervisor_restart_child(t.loop, t.sup, "b", NULL));
    REQUIRE_OK(jzx_supervisor_restart_child(t.loop, t.sup, "d", NULL));
    tree_idle(&t);
    CHECK_COUNTS(&t, KIDS, 2, 0, KIDS);
    (void)words_take(&t.life);
    kid_end(k[1], JZX_REASON_PANIC);
    CHECK_STR(words_take(&t.life), "-b -d");
    CHECK_OK(jzx_supervisor_delete_child(t.loop, t.sup, "a"));
    CHECK_COUNTS(&t, KIDS - 1, 0, 0, KIDS - 1);
    tree_close(&t);
}

/* They stop one after the other, each within its time; meanwhile the supervisor answers. */
static void test_they_stop_one_after_the_other_R16(void)
{
    tree t;
    kid *k[KIDS];
    tree_open(&t);
    tree_start_kids(&t, &stop_all, k, NULL, KIDS);
    kid_tell(k[2], KID_LINGER, 100);
    kid_tell(k[0], KID_LINGER, 300);
    tree_idle(&t);
    (void)words_take(&t.life);
    kid_end(k[3], JZX_REASON_FAILED);
    CHECK_STR(words_take(&t.life), "-d");
    CHECK_EQ(tree_status(&t, "c"), JZX_CHILD_STOPPING);
    CHECK_EQ(jzx_supervisor_restart_child(t.loop, t.sup, "c", NULL), JZX_ERR_CHILD_RUNNING);
    tree_pass(&t, 150);
    CHECK_STR(words_take(&t.life), "-c -b");
    tree_pass(&t, 200);
    CHECK_STR(words_take(&t.life), "-a");
    CHECK_COUNTS(&t, KIDS, 0, 0, KIDS);
    tree_close(&t);
}

static void test_temporary_children_are_forgotten_with_it_R19(void)
{
    const uint32_t modes[KIDS] = {JZX_PERMANENT, JZX_TEMPORARY, JZX_TRANSIENT, JZX_PERMANENT};
    tree t;
    kid *k[KIDS];
    tree_open(&t);
    tree_start_kids(&t, &stop_all, k, modes, KIDS);
    kid_end(k[0], JZX_REASON_FAILED);
    CHECK_COUNTS(&t, KIDS - 1, 0, 0, KIDS - 1);
    CHECK_EQ(tree_status(&t, "b"), NO_CHILD);
    tree_close(&t);
}

/* What is no STOP of a failure touches nobody else: a normal end, a limit, a temporary child. */
static void test_other_ends_leave_the_siblings_alone_R19(void)
{
    static const struct {
        jzx_supervisor_spec spec;
        uint32_t mode;
        uint32_t reason;
        const char *life;
    } cases[] = {
        {{.strategy = JZX_ONE_FOR_ALL, .action = JZX_ACTION_STOP},
         JZX_TRANSIENT,
         JZX_REASON_NORMAL,
         "-b"},
        {{.strategy = JZX_ONE_FOR_ALL, .action = JZX_ACTION_STOP},
         JZX_PERMANENT,
         JZX_REASON_NORMAL,
         "-b -d -c -a +a +b +c +d"},
        {{.strategy = JZX_ONE_FOR_ALL,
          .intensity = JZX_INTENSITY_NEVER,
          .on_limit = JZX_LIMIT_STOP_CHILD},
         JZX_PERMANENT,
         JZX_REASON_FAILED,
         "-b"},
        {{.strategy = JZX_ONE_FOR_ALL}, JZX_TEMPORARY, JZX_REASON_FAILED, "-b"},
        {{.strategy = JZX_REST_FOR_ONE, .action = JZX_ACTION_STOP},
         JZX_PERMANENT,
         JZX_REASON_FAILED,
         "-b"},
        {{.strategy = JZX_ONE_FOR_ONE, .action = JZX_ACTION_STOP},
         JZX_PERMANENT,
         JZX_REASON_FAILED,
         "-b"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const uint32_t modes[KIDS] = {JZX_PERMANENT, cases[i].mode, JZX_PERMANENT, JZX_PERMANENT};
        tree t;
        kid *k[KIDS];
        tree_open(&t);
        tree_start_kids(&t, &cases[i].spec, k, modes, KIDS);
        (void)words_take(&t.life);
        kid_end(k[1], cases[i].reason);
        CHECK_STR(words_take(&t.life), cases[i].life);
        tree_close(&t);
    }
}

static jzx_action only_c_counts(void *ctx, const jzx_failure *failure)
{
    (void)ctx;
    return strcmp(failure->child_id, "c") == 0 ? JZX_ACTION_STOP : JZX_ACTION_RESUME;
}

static void test_a_decider_ends_all_with_one_word_R19(void)
{
    const jzx_supervisor_spec spec = {.strategy = JZX_ONE_FOR_ALL, .decide = only_c_counts};
    tree t;
    kid *k[KIDS];
    tree_open(&t);
    tree_start_kids(&t, &spec, k, NULL, KIDS);
    (void)words_take(&t.life);
    kid_end(k[0], JZX_REASON_FAILED);
    CHECK_STR(words_take(&t.life), "");
    kid_end(k[2], JZX_REASON_FAILED);
    CHECK_STR(words_take(&t.life), "-c -d -b -a");
    tree_close(&t);
}

/* The one that failed ended by itself, the others did not: only it can end the supervisor. */
static void test_significance_is_that_of_the_one_that_failed_R19(void)
{
    for (uint32_t i = 0; i < 4; i++) {
        jzx_supervisor_spec spec = stop_all;
        spec.auto_shutdown = i < 2 ? JZX_AUTO_ANY_SIGNIFICANT : JZX_AUTO_ALL_SIGNIFICANT;
        bool own = i % 2 == 0;
        tree t;
        tree_open(&t);
        kid *a = kid_new(&t, "a");
        kid *b = kid_new(&t, "b");
        jzx_child_spec children[] = {kid_spec(a, JZX_TRANSIENT), kid_spec(b, JZX_TRANSIENT)};
        children[own ? 0 : 1].significant = 1;
        tree_start(&t, &spec, children, 2);
        kid_end(a, JZX_REASON_FAILED);
        CHECK_EQ(jzx_actor_state(t.loop, t.sup), own ? JZX_STATE_TERMINATED : JZX_STATE_RUNNING);
        CHECK_EQ(b->me.deinits, 1);
        tree_close(&t);
    }
}

static void test_a_plan_says_that_all_end_R19(void)
{
    tree t;
    kid *k[KIDS];
    jzx_plan_step steps[KIDS + 1];
    size_t count = 0;
    tree_open(&t);
    tree_start_kids(&t, &stop_all, k, NULL, KIDS);
    REQUIRE_OK(jzx_supervisor_plan(t.loop, t.sup, k[1]->me.id, steps, COUNT_OF(steps), &count));
    REQUIRE_EQ(count, KIDS);
    static const char *const order[KIDS] = {"b", "d", "c", "a"};
    for (size_t i = 0; i < KIDS; i++) {
        CHECK_EQ(steps[i].what, JZX_PLAN_END);
        CHECK_STR(steps[i].child_id, order[i]);
    }
    tree_close(&t);
}

/* A start that fails during a restart of all is a failure as well. */
static void test_a_failed_start_of_the_group_can_end_it_R19(void)
{
    const jzx_supervisor_spec restart = {.strategy = JZX_ONE_FOR_ALL, .intensity = 5};
    tree t;
    kid *k[KIDS];
    tree_open(&t);
    tree_start_kids(&t, &restart, k, NULL, KIDS);
    k[2]->plan = "f";
    jzx_supervisor_spec spec = restart;
    spec.backoff_min_ms = 50;
    REQUIRE_OK(jzx_supervisor_reconfigure(t.loop, t.sup, &spec));
    kid_end(k[0], JZX_REASON_FAILED);
    spec.action = JZX_ACTION_STOP;
    REQUIRE_OK(jzx_supervisor_reconfigure(t.loop, t.sup, &spec));
    (void)words_take(&t.life);
    tree_pass(&t, 1000);
    CHECK_STR(words_take(&t.life), "+a +b !c -b -a");
    CHECK_COUNTS(&t, KIDS, 0, 0, KIDS);
    tree_close(&t);
}

static const jzt_test tests[] = {
    {"a_stop_under_one_for_all_ends_all_children_R19",
     test_a_stop_under_one_for_all_ends_all_children_R19},
    {"children_that_stopped_together_start_one_by_one_R19",
     test_children_that_stopped_together_start_one_by_one_R19},
    {"they_stop_one_after_the_other_R16", test_they_stop_one_after_the_other_R16},
    {"temporary_children_are_forgotten_with_it_R19",
     test_temporary_children_are_forgotten_with_it_R19},
    {"other_ends_leave_the_siblings_alone_R19", test_other_ends_leave_the_siblings_alone_R19},
    {"a_decider_ends_all_with_one_word_R19", test_a_decider_ends_all_with_one_word_R19},
    {"significance_is_that_of_the_one_that_failed_R19",
     test_significance_is_that_of_the_one_that_failed_R19},
    {"a_plan_says_that_all_end_R19", test_a_plan_says_that_all_end_R19},
    {"a_failed_start_of_the_group_can_end_it_R19", test_a_failed_start_of_the_group_can_end_it_R19},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
