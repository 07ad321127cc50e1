/* Goal: which ends of a child are followed by a restart, and what stays of those that are not
 * (R18, R19). A restart shows by the incarnation, the same id and a state built anew.
 * Method: simulation, every mode with every reason; the meaning of OTP's permanent_*, transient_*
 * and temporary_* cases, which docs/reference/SPEC.md lists. */
#include "sup_fixture.h"

static const uint32_t NORMAL[] = {JZX_REASON_NORMAL};
static const uint32_t SHUTDOWN[] = {JZX_REASON_SHUTDOWN};
static const uint32_t ABNORMAL[] = {JZX_REASON_FAILED, JZX_REASON_PANIC, JZX_REASON_KILLED};

/* A child that has seen a message ends; its neighbour is never touched. */
static void restarts_after(uint32_t mode, const uint32_t *reasons, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t modes[] = {mode, JZX_PERMANENT};
        tree t;
        kid *kids[2];
        tree_open(&t);
        tree_start_kids(&t, NULL, kids, modes, 2);
        jzx_actor_id id = kids[0]->me.id;
        jzx_actor_id other = kids[1]->me.id;
        KID_CHECK_LIFE(kids[0], id, 1);
        kid_end(kids[0], reasons[i]);
        CHECK_EQ(kids[0]->seen, 0); /* what the first life saw is forgotten */
        KID_CHECK_LIFE(kids[0], id, 2);
        KID_CHECK_LIFE(kids[1], other, 1);
        CHECK_EQ(kids[0]->me.deinits, 1);
        jzx_child_info info = tree_child(&t, "a");
        CHECK_EQ(info.actor, id);
        CHECK_EQ(info.restarts, 1);
        CHECK_STR(jzx_reason_name(info.last.kind), jzx_reason_name(reasons[i]));
        CHECK_STR(words_take(&t.restarts), "a#2");
        CHECK_STR(words_take(&t.ends), ""); /* a restart is no end */
        CHECK_COUNTS(&t, 2, 2, 0, 2);
        tree_stop_now(&t);
        tree_close(&t);
    }
}

/* It ends and stays down. Its spec stays unless it is temporary. */
static void ends_after(uint32_t mode, const uint32_t *reasons, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t modes[] = {mode, JZX_PERMANENT};
        char word[32];
        tree t;
        kid *kids[2];
        tree_open(&t);
        tree_start_kids(&t, NULL, kids, modes, 2);
        jzx_actor_id id = kids[0]->me.id;
        kid_end(kids[0], reasons[i]);
        tree_pass(&t, 60 * 1000); /* not later, either */
        snprintf(word, sizeof word, "a:%s", jzx_reason_name(reasons[i]));
        CHECK_STR(words_take(&t.ends), word);
        CHECK_EQ(jzx_actor_state(t.loop, id), JZX_STATE_TERMINATED);
        CHECK_EQ(jzx_actor_incarnation(t.loop, id), 0);
        CHECK_EQ(kids[0]->me.inits, 1);
        CHECK_EQ(kids[0]->me.deinits, 1);
        CHECK_EQ(rig_counters(&t.r).restarts, 0);
        if (mode == JZX_TEMPORARY) {
            CHECK_EQ(tree_status(&t, "a"), NO_CHILD);
            CHECK_COUNTS(&t, 1, 1, 0, 1);
        } else {
            CHECK_EQ(tree_status(&t, "a"), JZX_CHILD_DOWN);
            CHECK_EQ(tree_child(&t, "a").actor, 0);
            CHECK_STR(jzx_reason_name(tree_child(&t, "a").last.kind), jzx_reason_name(reasons[i]));
            CHECK_COUNTS(&t, 2, 1, 0, 2);
            CHECK_OK(jzx_supervisor_restart_child(t.loop, t.sup, "a", NULL));
            tree_idle(&t);
            KID_CHECK_LIFE(kids[0], kids[0]->me.id, 1);
        }
        KID_CHECK_LIFE(kids[1], kids[1]->me.id, 1);
        tree_stop_now(&t);
        tree_close(&t);
    }
}

static void test_a_permanent_child_is_restarted_after_a_normal_end_R19(void)
{
    restarts_after(JZX_PERMANENT, NORMAL, COUNT_OF(NORMAL));
}
static void test_a_permanent_child_is_restarted_after_a_shutdown_R19(void)
{
    restarts_after(JZX_PERMANENT, SHUTDOWN, COUNT_OF(SHUTDOWN));
}
static void test_a_permanent_child_is_restarted_after_a_failure_R19(void)
{
    restarts_after(JZX_PERMANENT, ABNORMAL, COUNT_OF(ABNORMAL));
}
static void test_a_transient_child_stays_down_after_a_normal_end_R19(void)
{
    ends_after(JZX_TRANSIENT, NORMAL, COUNT_OF(NORMAL));
}
static void test_a_transient_child_stays_down_after_a_shutdown_R19(void)
{
    ends_after(JZX_TRANSIENT, SHUTDOWN, COUNT_OF(SHUTDOWN));
}
static void test_a_transient_child_is_restarted_after_a_failure_R19(void)
{
    restarts_after(JZX_TRANSIENT, ABNORMAL, COUNT_OF(ABNORMAL));
}
static void test_a_temporary_child_is_forgotten_after_a_normal_end_R19(void)
{
    ends_after(JZX_TEMPORARY, NORMAL, COUNT_OF(NORMAL));
}
static void test_a_temporary_child_is_forgotten_after_a_shutdown_R19(void)
{
    ends_after(JZX_TEMPORARY, SHUTDOWN, COUNT_OF(SHUTDOWN));
}
static void test_a_temporary_child_is_forgotten_after_a_failure_R19(void)
{
    ends_after(JZX_TEMPORARY, ABNORMAL, COUNT_OF(ABNORMAL));
}

/* A stop that took too long is a failure of the child, not a shutdown. */
static void test_a_transient_child_that_did_not_stop_in_time_is_restarted_R16(void)
{
    tree t;
    kid *a = NULL;
    static const uint32_t mode = JZX_TRANSIENT;
    tree_open(&t);
    tree_start_kids(&t, NULL, &a, &mode, 1);
    jzx_actor_id id = a->me.id;
    a->at_stop = 'd';
    CHECK_OK(jzx_stop(t.loop, id));
    tree_pass(&t, 5100);
    CHECK_STR(jzx_reason_name(tree_child(&t, "a").last.kind), "stop_timeout");
    a->at_stop = 0;
    KID_CHECK_LIFE(a, id, 2);
    tree_close(&t);
}

/* A child of either mode is restarted in the place it had, when it is its own event that costs. */
static void test_what_is_no_restart_costs_nothing_of_the_budget_R19(void)
{
    static const uint32_t modes[] = {JZX_PERMANENT, JZX_TRANSIENT};
    tree t;
    kid *kids[2];
    tree_open(&t);
    tree_start_kids(&t, NULL, kids, modes, 2); /* by default one restart in five seconds */
    kid *c = kid_new(&t, "c");
    jzx_child_spec spec = kid_spec(c, JZX_TEMPORARY);
    for (uint32_t i = 0; i < 10; i++) {
        kid_end(kids[1], i % 2 == 0 ? JZX_REASON_NORMAL : JZX_REASON_SHUTDOWN);
        CHECK_OK(jzx_supervisor_restart_child(t.loop, t.sup, "b", NULL));
        CHECK_OK(jzx_supervisor_start_child(t.loop, t.sup, &spec, NULL));
        tree_idle(&t);
        kid_end(c, ABNORMAL[i % COUNT_OF(ABNORMAL)]);
        CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "a"));
        tree_idle(&t);
        CHECK_OK(jzx_supervisor_restart_child(t.loop, t.sup, "a", NULL));
        tree_idle(&t);
    }
    CHECK_EQ(c->me.ups, 10);
    CHECK_EQ(kids[0]->me.ups, 11);
    kid_end(kids[0], JZX_REASON_FAILED);
    KID_CHECK_LIFE(kids[0], kids[0]->me.id, 2);
    kid_end(kids[1], JZX_REASON_FAILED);
    CHECK_GONE(&t, JZX_REASON_GAVE_UP);
    tree_close(&t);
}

/* one_for_all and rest_for_one stop it with the others and do not bring it back. */
static void test_a_temporary_bystander_is_stopped_and_not_started_again_R19(void)
{
    static const uint32_t strategies[] = {JZX_ONE_FOR_ALL, JZX_REST_FOR_ONE};
    static const uint32_t modes[] = {JZX_PERMANENT, JZX_TEMPORARY, JZX_TRANSIENT};
    for (size_t i = 0; i < COUNT_OF(strategies); i++) {
        tree t;
        kid *kids[3];
        jzx_supervisor_spec spec = {.strategy = strategies[i]};
        tree_open(&t);
        tree_start_kids(&t, &spec, kids, modes, 3);
        jzx_actor_id a = kids[0]->me.id;
        jzx_actor_id b = kids[1]->me.id;
        jzx_actor_id c = kids[2]->me.id;
        kid_end(kids[0], JZX_REASON_KILLED);
        KID_CHECK_LIFE(kids[0], a, 2);
        KID_CHECK_LIFE(kids[2], c, 2);
        CHECK_EQ(jzx_actor_state(t.loop, b), JZX_STATE_TERMINATED);
        CHECK_STR(words_take(&t.ends), "b:shutdown");
        CHECK_EQ(kids[1]->me.inits, 1);
        CHECK_EQ(tree_status(&t, "b"), NO_CHILD);
        CHECK_COUNTS(&t, 2, 2, 0, 2);
        tree_stop_now(&t);
        tree_close(&t);
    }
}

/* Nor does a temporary child take the others down when it ends. */
static void test_a_temporary_child_takes_nobody_down_with_it_R19(void)
{
    static const uint32_t modes[] = {JZX_PERMANENT, JZX_TEMPORARY, JZX_PERMANENT};
    for (uint32_t strategy = JZX_ONE_FOR_ONE; strategy <= JZX_REST_FOR_ONE; strategy++) {
        for (size_t i = 0; i < COUNT_OF(ABNORMAL); i++) {
            tree t;
            kid *kids[3];
            jzx_supervisor_spec spec = {.strategy = strategy};
            tree_open(&t);
            tree_start_kids(&t, &spec, kids, modes, 3);
            kid_end(kids[1], ABNORMAL[i]);
            KID_CHECK_LIFE(kids[0], kids[0]->me.id, 1);
            KID_CHECK_LIFE(kids[2], kids[2]->me.id, 1);
            tree_close(&t);
        }
    }
}

/* The id of a temporary child is free as soon as it ended, however it did. */
static void test_the_id_of_a_temporary_child_can_be_used_again_R19(void)
{
    static const uint32_t reasons[] = {JZX_REASON_KILLED, JZX_REASON_NORMAL,   JZX_REASON_FAILED,
                                       JZX_REASON_PANIC,  JZX_REASON_SHUTDOWN, UINT32_MAX};
    tree t;
    tree_open(&t);
    tree_start(&t, NULL, NULL, 0);
    kid *a = kid_new(&t, "a");
    jzx_child_spec spec = kid_spec(a, JZX_TEMPORARY);
    spec.drop_arg = kid_drop_arg;
    for (uint32_t i = 0; i < COUNT_OF(reasons); i++) {
        CHECK_OK(jzx_supervisor_start_child(t.loop, t.sup, &spec, NULL));
        tree_idle(&t);
        CHECK_EQ(a->drops, i);
        KID_CHECK_LIFE(a, a->me.id, 1);
        if (reasons[i] != UINT32_MAX) {
            kid_end(a, reasons[i]);
        } else {
            CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "a"));
            tree_idle(&t);
        }
        CHECK_EQ(tree_status(&t, "a"), NO_CHILD);
        CHECK_EQ(a->drops, i + 1); /* nothing of the spec is kept */
    }
    tree_close(&t);
}

/* Thousands of temporary children that came and went hold no memory. */
static void test_nothing_is_kept_of_temporary_children_R19(void)
{
    enum { ROUNDS = 20, COUNT = 200 };
    tree t;
    size_t bytes[2] = {0};
    tree_open(&t);
    tree_start_dynamic(&t, NULL, JZX_TEMPORARY, 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++) {
            (void)tree_add_dynamic(&t, NULL);
        }
        tree_idle(&t);
        CHECK_COUNTS(&t, 1, COUNT, 0, COUNT);
        for (kid *k = t.kids; k != NULL; k = k->next) {
            if (k->me.deinits == 0) {
                kid_begin_end(k, round % 2 == 0 ? JZX_REASON_NORMAL : JZX_REASON_FAILED);
            }
        }
        tree_idle(&t);
        CHECK_COUNTS(&t, 1, 0, 0, 0);
        if (round == 1) {
            bytes[0] = rig_bytes(&t.r);
        }
    }
    bytes[1] = rig_bytes(&t.r);
    CHECK_EQ(bytes[1], bytes[0]);
    tree_close(&t);
}

static const jzt_test tests[] = {
    {"a_permanent_child_is_restarted_after_a_normal_end_R19",
     test_a_permanent_child_is_restarted_after_a_normal_end_R19},
    {"a_permanent_child_is_restarted_after_a_shutdown_R19",
     test_a_permanent_child_is_restarted_after_a_shutdown_R19},
    {"a_permanent_child_is_restarted_after_a_failure_R19",
     test_a_permanent_child_is_restarted_after_a_failure_R19},
    {"a_transient_child_stays_down_after_a_normal_end_R19",
     test_a_transient_child_stays_down_after_a_normal_end_R19},
    {"a_transient_child_stays_down_after_a_shutdown_R19",
     test_a_transient_child_stays_down_after_a_shutdown_R19},
    {"a_transient_child_is_restarted_after_a_failure_R19",
     test_a_transient_child_is_restarted_after_a_failure_R19},
    {"a_temporary_child_is_forgotten_after_a_normal_end_R19",
     test_a_temporary_child_is_forgotten_after_a_normal_end_R19},
    {"a_temporary_child_is_forgotten_after_a_shutdown_R19",
     test_a_temporary_child_is_forgotten_after_a_shutdown_R19},
    {"a_temporary_child_is_forgotten_after_a_failure_R19",
     test_a_temporary_child_is_forgotten_after_a_failure_R19},
    {"a_transient_child_that_did_not_stop_in_time_is_restarted_R16",
     test_a_transient_child_that_did_not_stop_in_time_is_restarted_R16},
    {"what_is_no_restart_costs_nothing_of_the_budget_R19",
     test_what_is_no_restart_costs_nothing_of_the_budget_R19},
    {"a_temporary_bystander_is_stopped_and_not_started_again_R19",
     test_a_temporary_bystander_is_stopped_and_not_started_again_R19},
    {"a_temporary_child_takes_nobody_down_with_it_R19",
     test_a_temporary_child_takes_nobody_down_with_it_R19},
    {"the_id_of_a_temporary_child_can_be_used_again_R19",
     test_the_id_of_a_temporary_child_can_be_used_again_R19},
    {"nothing_is_kept_of_temporary_children_R19", test_nothing_is_kept_of_temporary_children_R19},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
