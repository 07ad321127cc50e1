/* Goal: supervisors that end with their work: auto_shutdown and significant children, also when
 * the rule changes while they run (R19). Method: simulation; the meaning of OTP's significant_*
 * cases, which docs/reference/SPEC.md lists. */
#include "sup_fixture.h"

static const uint32_t NONE[] = {0, 0, 0};
static const uint32_t FIRST_TWO[] = {1, 1, 0};

/* Kids a, b, c; c is an insignificant bystander. */
static void start_three(tree *t, kid **kids, uint32_t strategy, uint32_t rule, uint32_t mode,
                        const uint32_t *significant)
{
    static const char *const ids[] = {"a", "b", "c"};
    jzx_child_spec specs[3];
    jzx_supervisor_spec spec = {.strategy = strategy, .auto_shutdown = rule, .intensity = 10};
    tree_open(t);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        kids[i] = kid_new(t, ids[i]);
        specs[i] = kid_spec(kids[i], i < 2 ? mode : JZX_PERMANENT);
        specs[i].significant = significant[i];
    }
    tree_start(t, &spec, specs, COUNT_OF(specs));
}

/* The supervisor stopped by itself, after everybody else, and said so. */
static void check_done(tree *t, const char *ends)
{
    CHECK_GONE(t, JZX_REASON_SHUTDOWN);
    CHECK_STR(words_take(&t->ends), ends);
    CHECK_STR(words_take(&t->escalations), "");
}

static bool is_up(const tree *t)
{
    return jzx_actor_state(t->loop, t->sup) == JZX_STATE_RUNNING;
}

static void insignificant_ends_stop_nobody(uint32_t mode)
{
    static const uint32_t reasons[] = {JZX_REASON_NORMAL, JZX_REASON_SHUTDOWN, JZX_REASON_FAILED,
                                       JZX_REASON_KILLED};
    for (uint32_t rule = JZX_AUTO_NEVER; rule <= JZX_AUTO_ALL_SIGNIFICANT; rule++) {
        for (size_t i = 0; i < COUNT_OF(reasons); i++) {
            tree t;
            kid *kids[3];
            start_three(&t, kids, JZX_ONE_FOR_ONE, rule, mode, NONE);
            kid_end(kids[0], reasons[i]);
            kid_end(kids[1], reasons[i]);
            CHECK(is_up(&t));
            KID_CHECK_LIFE(kids[2], kids[2]->me.id, 1);
            tree_stop_now(&t);
            tree_close(&t);
        }
    }
}

static void test_an_insignificant_temporary_child_ends_alone_R19(void)
{
    insignificant_ends_stop_nobody(JZX_TEMPORARY);
}
static void test_an_insignificant_transient_child_ends_alone_R19(void)
{
    insignificant_ends_stop_nobody(JZX_TRANSIENT);
}

/* However a temporary child ends, it ended by itself. */
static void test_a_significant_temporary_child_ends_its_supervisor_R19(void)
{
    static const uint32_t reasons[] = {JZX_REASON_NORMAL, JZX_REASON_FAILED, JZX_REASON_PANIC,
                                       JZX_REASON_KILLED};
    static const char *const names[] = {"normal", "failed", "panic", "killed"};
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        tree t;
        kid *kids[3];
        char ends[128];
        start_three(&t, kids, JZX_ONE_FOR_ONE, JZX_AUTO_ANY_SIGNIFICANT, JZX_TEMPORARY, FIRST_TWO);
        kid_end(kids[0], reasons[i]);
        snprintf(ends, sizeof ends, "a:%s c:shutdown b:shutdown sup:shutdown", names[i]);
        check_done(&t, ends);
        tree_close(&t);

        start_three(&t, kids, JZX_ONE_FOR_ONE, JZX_AUTO_ALL_SIGNIFICANT, JZX_TEMPORARY, FIRST_TWO);
        kid_end(kids[1], reasons[i]);
        CHECK(is_up(&t)); /* there is another one */
        KID_CHECK_LIFE(kids[0], kids[0]->me.id, 1);
        kid_end(kids[0], reasons[i]);
        snprintf(ends, sizeof ends, "b:%s a:%s c:shutdown sup:shutdown", names[i], names[i]);
        check_done(&t, ends);
        tree_close(&t);
    }
}

static void test_a_significant_transient_child_ends_its_supervisor_when_it_is_done_R19(void)
{
    for (uint32_t rule = JZX_AUTO_ANY_SIGNIFICANT; rule <= JZX_AUTO_ALL_SIGNIFICANT; rule++) {
        tree t;
        kid *kids[3];
        start_three(&t, kids, JZX_ONE_FOR_ONE, rule, JZX_TRANSIENT, FIRST_TWO);
        jzx_actor_id a = kids[0]->me.id;
        kid_end(kids[0], JZX_REASON_KILLED); /* a failure is restarted, and is no end */
        KID_CHECK_LIFE(kids[0], a, 2);
        kid_end(kids[0], JZX_REASON_FAILED);
        KID_CHECK_LIFE(kids[0], a, 3);
        kid_end(kids[0], JZX_REASON_NORMAL);
        if (rule == JZX_AUTO_ANY_SIGNIFICANT) {
            check_done(&t, "a:normal c:shutdown b:shutdown sup:shutdown");
        } else {
            CHECK(is_up(&t));
            kid_end(kids[1], JZX_REASON_NORMAL);
            check_done(&t, "a:normal b:normal c:shutdown sup:shutdown");
        }
        tree_close(&t);
    }
}

/* With all_significant one that is down and is started again counts again. */
static void test_a_significant_child_that_was_started_again_is_waited_for_R19(void)
{
    tree t;
    kid *kids[3];
    start_three(&t, kids, JZX_ONE_FOR_ONE, JZX_AUTO_ALL_SIGNIFICANT, JZX_TRANSIENT, FIRST_TWO);
    kid_end(kids[0], JZX_REASON_NORMAL);
    CHECK_OK(jzx_supervisor_restart_child(t.loop, t.sup, "a", NULL));
    tree_idle(&t);
    kid_end(kids[1], JZX_REASON_NORMAL);
    CHECK(is_up(&t));
    kid_end(kids[0], JZX_REASON_NORMAL);
    CHECK_GONE(&t, JZX_REASON_SHUTDOWN);
    tree_close(&t);
}

/* What somebody else asked for is not the child's own end. */
static void test_terminating_a_significant_child_ends_nobody_else_R19(void)
{
    for (uint32_t rule = JZX_AUTO_ANY_SIGNIFICANT; rule <= JZX_AUTO_ALL_SIGNIFICANT; rule++) {
        for (uint32_t mode = JZX_TRANSIENT; mode <= JZX_TEMPORARY; mode++) {
            tree t;
            kid *kids[3];
            start_three(&t, kids, JZX_ONE_FOR_ONE, rule, mode, FIRST_TWO);
            CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "a"));
            tree_idle(&t);
            CHECK_OK(jzx_supervisor_terminate(t.loop, t.sup, kids[1]->me.id));
            tree_idle(&t);
            CHECK(is_up(&t));
            CHECK_STR(words_take(&t.ends), "a:shutdown b:shutdown");
            KID_CHECK_LIFE(kids[2], kids[2]->me.id, 1);
            tree_close(&t);
        }
    }
}

static void test_significance_is_refused_where_it_means_nothing_R19(void)
{
    static const struct {
        uint32_t strategy, rule, mode;
        jzx_err err;
    } cases[] = {
        {JZX_ONE_FOR_ONE, JZX_AUTO_NEVER, JZX_TRANSIENT, JZX_ERR_BAD_SPEC},
        {JZX_ONE_FOR_ONE, JZX_AUTO_ANY_SIGNIFICANT, JZX_PERMANENT, JZX_ERR_BAD_SPEC},
        {JZX_ONE_FOR_ALL, JZX_AUTO_ALL_SIGNIFICANT, JZX_PERMANENT, JZX_ERR_BAD_SPEC},
        {JZX_DYNAMIC, JZX_AUTO_NEVER, JZX_TEMPORARY, JZX_ERR_BAD_SPEC},
        {JZX_DYNAMIC, JZX_AUTO_ANY_SIGNIFICANT, JZX_TEMPORARY, JZX_ERR_BAD_SPEC},
        {JZX_DYNAMIC, JZX_AUTO_ALL_SIGNIFICANT, JZX_TRANSIENT, JZX_ERR_BAD_SPEC},
        {JZX_REST_FOR_ONE, JZX_AUTO_ALL_SIGNIFICANT, JZX_TRANSIENT, JZX_OK},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        kid shape = {.id = "a"};
        jzx_child_spec child = kid_spec(&shape, cases[i].mode);
        jzx_supervisor_spec spec = {.strategy = cases[i].strategy, .auto_shutdown = cases[i].rule};
        jzx_supervisor_init init = {.spec = &spec, .children = &child, .child_count = 1};
        char why[200] = "";
        child.significant = 1;
        CHECK_EQ(jzx_supervisor_check(&init, why, sizeof why), cases[i].err);
    }
}

/* A stop that a sibling's failure causes is not the child's own end either. */
static void test_a_significant_bystander_that_is_stopped_with_others_ends_nobody_R19(void)
{
    static const uint32_t strategies[] = {JZX_ONE_FOR_ALL, JZX_REST_FOR_ONE};
    for (size_t i = 0; i < COUNT_OF(strategies); i++) {
        for (uint32_t rule = JZX_AUTO_ANY_SIGNIFICANT; rule <= JZX_AUTO_ALL_SIGNIFICANT; rule++) {
            for (uint32_t mode = JZX_TRANSIENT; mode <= JZX_TEMPORARY; mode++) {
                tree t;
                tree_open(&t);
                kid *a = kid_new(&t, "a");
                kid *b = kid_new(&t, "b");
                jzx_child_spec specs[] = {kid_spec(a, JZX_PERMANENT), kid_spec(b, mode)};
                jzx_supervisor_spec spec = {.strategy = strategies[i], .auto_shutdown = rule};
                specs[1].significant = 1;
                tree_start(&t, &spec, specs, COUNT_OF(specs));
                kid_end(a, JZX_REASON_FAILED);
                CHECK(is_up(&t));
                KID_CHECK_LIFE(a, a->me.id, 2);
                CHECK_EQ(b->me.inits, mode == JZX_TRANSIENT ? 2 : 1);
                if (mode == JZX_TRANSIENT) {
                    kid_end(b, JZX_REASON_NORMAL); /* this one is */
                    CHECK_GONE(&t, JZX_REASON_SHUTDOWN);
                }
                tree_close(&t);
            }
        }
    }
}

/* sup (rule) > mid (rule) > a, x: whether the end of `a` ends `sup` depends on `mid`. */
static void test_the_end_goes_up_through_significant_supervisors_only_R19(void)
{
    for (uint32_t significant = 0; significant <= 1; significant++) {
        for (uint32_t mode = JZX_TRANSIENT; mode <= JZX_TEMPORARY; mode++) {
            tree t;
            tree_open(&t);
            kid *a = kid_new(&t, "a");
            kid *x = kid_new(&t, "x");
            kid *other = kid_new(&t, "other");
            jzx_supervisor_spec rule = {.auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT};
            jzx_child_spec low[] = {kid_spec(a, JZX_TRANSIENT), kid_spec(x, JZX_PERMANENT)};
            low[0].significant = 1;
            jzx_supervisor_init mid = {.spec = &rule, .children = low, .child_count = 2};
            jzx_child_spec top[] = {
                {.id = "mid", .supervisor = &mid, .mode = mode, .significant = significant},
                kid_spec(other, JZX_PERMANENT)};
            tree_start(&t, &rule, top, COUNT_OF(top));
            kid_end(a, JZX_REASON_NORMAL);
            if (significant == 1) {
                check_done(&t, "a:normal x:shutdown mid:shutdown other:shutdown sup:shutdown");
            } else {
                CHECK(is_up(&t));
                CHECK_STR(words_take(&t.ends), "a:normal x:shutdown mid:shutdown");
                CHECK_EQ(tree_status(&t, "mid"), mode == JZX_TRANSIENT ? JZX_CHILD_DOWN : NO_CHILD);
                KID_CHECK_LIFE(other, other->me.id, 1);
            }
            tree_close(&t);
        }
    }
}

/* A permanent supervisor that shut itself down is started again by its parent. */
static void test_a_permanent_supervisor_that_is_done_is_started_again_R19(void)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    jzx_supervisor_spec rule = {.auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT};
    jzx_child_spec low = kid_spec(a, JZX_TRANSIENT);
    low.significant = 1;
    jzx_supervisor_init mid = {.spec = &rule, .children = &low, .child_count = 1};
    jzx_child_spec top = {.id = "mid", .supervisor = &mid};
    tree_start(&t, NULL, &top, 1);
    jzx_actor_id id = tree_child(&t, "mid").actor;
    kid_end(a, JZX_REASON_NORMAL);
    CHECK_EQ(tree_child(&t, "mid").actor, id);
    CHECK_EQ(jzx_actor_incarnation(t.loop, id), 2);
    CHECK_EQ(a->me.inits, 2);
    tree_close(&t);
}

static jzx_err change_rule(tree *t, uint32_t rule)
{
    jzx_supervisor_spec spec = {.auto_shutdown = rule, .intensity = 10};
    return jzx_supervisor_reconfigure(t->loop, t->sup, &spec);
}

/* Adds a significant transient child, which a rule of never refuses. */
static kid *add_significant(tree *t, const char *id, jzx_err err)
{
    kid *k = kid_new(t, id);
    jzx_child_spec spec = kid_spec(k, JZX_TRANSIENT);
    spec.significant = 1;
    CHECK_EQ(jzx_supervisor_start_child(t->loop, t->sup, &spec, NULL), err);
    tree_idle(t);
    return k;
}

/* From never to a rule: nobody is touched, and from now on significant children may be added. */
static void rule_begins(uint32_t rule)
{
    tree t;
    kid *kids[3];
    start_three(&t, kids, JZX_ONE_FOR_ONE, JZX_AUTO_NEVER, JZX_TRANSIENT, NONE);
    (void)add_significant(&t, "early", JZX_ERR_BAD_SPEC);
    (void)words_take(&t.life);
    CHECK_OK(change_rule(&t, rule));
    tree_idle(&t);
    CHECK_STR(words_take(&t.life), ""); /* running children are not touched */
    kid_end(kids[0], JZX_REASON_NORMAL);
    CHECK(is_up(&t)); /* it is still insignificant */
    kid *x = add_significant(&t, "x", JZX_OK);
    kid *y = add_significant(&t, "y", JZX_OK);
    kid_end(x, JZX_REASON_NORMAL);
    CHECK_EQ(is_up(&t), rule == JZX_AUTO_ALL_SIGNIFICANT);
    if (rule == JZX_AUTO_ALL_SIGNIFICANT) {
        kid_end(y, JZX_REASON_NORMAL);
    }
    CHECK_GONE(&t, JZX_REASON_SHUTDOWN);
    tree_close(&t);
}

/* From a rule to never: nobody is touched, and the end of a significant child means nothing any
 * more. */
static void rule_ends(uint32_t rule)
{
    tree t;
    kid *kids[3];
    start_three(&t, kids, JZX_ONE_FOR_ONE, rule, JZX_TRANSIENT, NONE);
    kid *x = add_significant(&t, "x", JZX_OK);
    (void)words_take(&t.life);
    CHECK_OK(change_rule(&t, JZX_AUTO_NEVER));
    tree_idle(&t);
    CHECK_STR(words_take(&t.life), "");
    (void)add_significant(&t, "late", JZX_ERR_BAD_SPEC);
    kid_end(kids[0], JZX_REASON_NORMAL);
    kid_end(x, JZX_REASON_NORMAL);
    CHECK(is_up(&t));
    KID_CHECK_LIFE(kids[1], kids[1]->me.id, 1);
    CHECK_OK(change_rule(&t, rule)); /* what ended before counts for nobody */
    tree_idle(&t);
    CHECK(is_up(&t));
    CHECK_OK(jzx_supervisor_restart_child(t.loop, t.sup, "x", NULL));
    tree_idle(&t);
    kid_end(x, JZX_REASON_NORMAL);
    CHECK_GONE(&t, JZX_REASON_SHUTDOWN);
    tree_close(&t);
}

static void test_a_rule_of_never_can_become_any_R19(void)
{
    rule_begins(JZX_AUTO_ANY_SIGNIFICANT);
}
static void test_a_rule_of_any_can_become_never_R19(void)
{
    rule_ends(JZX_AUTO_ANY_SIGNIFICANT);
}
static void test_a_rule_of_never_can_become_all_R19(void)
{
    rule_begins(JZX_AUTO_ALL_SIGNIFICANT);
}
static void test_a_rule_of_all_can_become_never_R19(void)
{
    rule_ends(JZX_AUTO_ALL_SIGNIFICANT);
}

static void test_a_rule_of_any_can_become_all_R19(void)
{
    tree t;
    kid *kids[3];
    start_three(&t, kids, JZX_ONE_FOR_ONE, JZX_AUTO_ANY_SIGNIFICANT, JZX_TRANSIENT, FIRST_TWO);
    CHECK_OK(change_rule(&t, JZX_AUTO_ALL_SIGNIFICANT));
    kid_end(kids[0], JZX_REASON_NORMAL);
    CHECK(is_up(&t));
    KID_CHECK_LIFE(kids[1], kids[1]->me.id, 1);
    kid_end(kids[1], JZX_REASON_NORMAL);
    CHECK_GONE(&t, JZX_REASON_SHUTDOWN);
    tree_close(&t);
}

static void test_a_rule_of_all_can_become_any_R19(void)
{
    tree t;
    kid *kids[3];
    start_three(&t, kids, JZX_ONE_FOR_ONE, JZX_AUTO_ALL_SIGNIFICANT, JZX_TRANSIENT, FIRST_TWO);
    CHECK_OK(change_rule(&t, JZX_AUTO_ANY_SIGNIFICANT));
    tree_idle(&t);
    CHECK(is_up(&t));
    KID_CHECK_LIFE(kids[0], kids[0]->me.id, 1);
    kid_end(kids[1], JZX_REASON_NORMAL);
    check_done(&t, "b:normal c:shutdown a:shutdown sup:shutdown");
    tree_close(&t);
}

/* Whether a child is significant changes with its spec: forget the old one, add the new one. */
static void test_a_child_can_become_significant_and_cease_to_be_R19(void)
{
    tree t;
    kid *kids[3];
    start_three(&t, kids, JZX_ONE_FOR_ONE, JZX_AUTO_ANY_SIGNIFICANT, JZX_TRANSIENT, FIRST_TWO);
    static const char *const ids[] = {"a", "c"};
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, ids[i]));
        tree_idle(&t);
        CHECK_OK(jzx_supervisor_delete_child(t.loop, t.sup, ids[i]));
    }
    jzx_child_spec a = kid_spec(kids[0], JZX_TRANSIENT);
    CHECK_OK(jzx_supervisor_start_child(t.loop, t.sup, &a, NULL));
    tree_idle(&t);
    kid *c = add_significant(&t, "c", JZX_OK);
    kid_end(kids[0], JZX_REASON_NORMAL);
    CHECK(is_up(&t));
    KID_CHECK_LIFE(kids[1], kids[1]->me.id, 1);
    kid_end(c, JZX_REASON_NORMAL);
    CHECK_GONE(&t, JZX_REASON_SHUTDOWN);
    tree_close(&t);
}

static const jzt_test tests[] = {
    {"an_insignificant_temporary_child_ends_alone_R19",
     test_an_insignificant_temporary_child_ends_alone_R19},
    {"an_insignificant_transient_child_ends_alone_R19",
     test_an_insignificant_transient_child_ends_alone_R19},
    {"a_significant_temporary_child_ends_its_supervisor_R19",
     test_a_significant_temporary_child_ends_its_supervisor_R19},
    {"a_significant_transient_child_ends_its_supervisor_when_it_is_done_R19",
     test_a_significant_transient_child_ends_its_supervisor_when_it_is_done_R19},
    {"a_significant_child_that_was_started_again_is_waited_for_R19",
     test_a_significant_child_that_was_started_again_is_waited_for_R19},
    {"terminating_a_significant_child_ends_nobody_else_R19",
     test_terminating_a_significant_child_ends_nobody_else_R19},
    {"significance_is_refused_where_it_means_nothing_R19",
     test_significance_is_refused_where_it_means_nothing_R19},
    {"a_significant_bystander_that_is_stopped_with_others_ends_nobody_R19",
     test_a_significant_bystander_that_is_stopped_with_others_ends_nobody_R19},
    {"the_end_goes_up_through_significant_supervisors_only_R19",
     test_the_end_goes_up_through_significant_supervisors_only_R19},
    {"a_permanent_supervisor_that_is_done_is_started_again_R19",
     test_a_permanent_supervisor_that_is_done_is_started_again_R19},
    {"a_rule_of_never_can_become_any_R19", test_a_rule_of_never_can_become_any_R19},
    {"a_rule_of_any_can_become_never_R19", test_a_rule_of_any_can_become_never_R19},
    {"a_rule_of_never_can_become_all_R19", test_a_rule_of_never_can_become_all_R19},
    {"a_rule_of_all_can_become_never_R19", test_a_rule_of_all_can_become_never_R19},
    {"a_rule_of_any_can_become_all_R19", test_a_rule_of_any_can_become_all_R19},
    {"a_rule_of_all_can_become_any_R19", test_a_rule_of_all_can_become_any_R19},
    {"a_child_can_become_significant_and_cease_to_be_R19",
     test_a_child_can_become_significant_and_cease_to_be_R19},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
