/* Goal: adding, stopping, starting again and forgetting single children, and what a supervisor
 * says of them (R19). Method: simulation; the meaning of OTP's child_adm, which_children and
 * count_* cases, which docs/reference/SPEC.md lists. */
#include "sup_fixture.h"

/* The children in start order: "a=running b=down". */
static const char *listing(const tree *t)
{
    static const char *const names[] = {"down", "starting", "running", "stopping", "restarting"};
    static char text[WORDS_SIZE];
    jzx_child_info list[16];
    size_t len = 0;
    size_t count = jzx_supervisor_children(t->loop, t->sup, list, COUNT_OF(list));
    text[0] = '\0';
    for (size_t i = 0; i < count && i < COUNT_OF(list); i++) {
        REQUIRE(list[i].status < COUNT_OF(names));
        CHECK_EQ(list[i].actor != 0, list[i].status != JZX_CHILD_DOWN);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s=%s", i == 0 ? "" : " ",
                                list[i].id, names[list[i].status]);
        if (t->sup != 0 && strcmp(list[i].id, "kid") != 0) { /* one by one it is the same */
            jzx_child_info one = tree_child(t, list[i].id);
            CHECK_EQ(one.actor, list[i].actor);
            CHECK_EQ(one.status, list[i].status);
            CHECK_EQ(one.mode, list[i].mode);
        }
    }
    return text;
}

static void test_a_child_is_added_stopped_started_again_and_forgotten_R19(void)
{
    tree t;
    kid *kids[2];
    tree_open(&t);
    tree_start_kids(&t, NULL, kids, NULL, 2);
    kid *c = kid_new(&t, "c");
    jzx_child_spec spec = kid_spec(c, JZX_PERMANENT);
    jzx_actor_id first = 0;
    jzx_actor_id second = 0;
    jzx_actor_id untouched = 12345;
    REQUIRE_OK(jzx_supervisor_start_child(t.loop, t.sup, &spec, &first));
    tree_idle(&t);
    CHECK_EQ(first, c->me.id);
    CHECK_STR(listing(&t), "a=running b=running c=running");

    CHECK_EQ(jzx_supervisor_start_child(t.loop, t.sup, &spec, &untouched), JZX_ERR_CHILD_RUNNING);
    CHECK_EQ(jzx_supervisor_restart_child(t.loop, t.sup, "c", &untouched), JZX_ERR_CHILD_RUNNING);
    CHECK_EQ(jzx_supervisor_delete_child(t.loop, t.sup, "c"), JZX_ERR_CHILD_RUNNING);
    CHECK_EQ(c->me.inits, 1);

    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "c"));
    tree_idle(&t);
    CHECK_STR(listing(&t), "a=running b=running c=down");
    CHECK_EQ(tree_child(&t, "c").last.kind, JZX_REASON_SHUTDOWN);
    CHECK_EQ(jzx_actor_state(t.loop, first), JZX_STATE_TERMINATED);
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "c")); /* again is fine */
    CHECK_EQ(jzx_supervisor_start_child(t.loop, t.sup, &spec, &untouched), JZX_ERR_CHILD_PRESENT);
    CHECK_EQ(untouched, 12345);

    REQUIRE_OK(jzx_supervisor_restart_child(t.loop, t.sup, "c", &second));
    tree_idle(&t);
    CHECK_EQ(second, c->me.id);
    CHECK(second != first); /* the first one is gone for good (R2) */
    KID_CHECK_LIFE(c, second, 1);
    CHECK_EQ(c->me.inits, 2);

    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "c"));
    tree_idle(&t);
    CHECK_OK(jzx_supervisor_delete_child(t.loop, t.sup, "c"));
    CHECK_STR(listing(&t), "a=running b=running");
    CHECK_EQ(jzx_supervisor_delete_child(t.loop, t.sup, "c"), JZX_ERR_NO_SUCH_CHILD);
    CHECK_EQ(jzx_supervisor_terminate_child(t.loop, t.sup, "c"), JZX_ERR_NO_SUCH_CHILD);
    CHECK_EQ(jzx_supervisor_restart_child(t.loop, t.sup, "c", NULL), JZX_ERR_NO_SUCH_CHILD);
    CHECK_OK(jzx_supervisor_start_child(t.loop, t.sup, &spec, NULL));
    tree_idle(&t);
    CHECK_STR(listing(&t), "a=running b=running c=running");
    KID_CHECK_LIFE(kids[0], kids[0]->me.id, 1); /* nobody else noticed */
    KID_CHECK_LIFE(kids[1], kids[1]->me.id, 1);
    tree_stop_now(&t);
    tree_close(&t);
}

static void test_a_temporary_child_that_is_terminated_is_forgotten_R19(void)
{
    static const uint32_t modes[] = {JZX_TEMPORARY, JZX_TRANSIENT};
    tree t;
    kid *kids[2];
    tree_open(&t);
    tree_start_kids(&t, NULL, kids, modes, 2);
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "a"));
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "b"));
    tree_idle(&t);
    CHECK_STR(listing(&t), "b=down");
    CHECK_EQ(jzx_supervisor_terminate_child(t.loop, t.sup, "a"), JZX_ERR_NO_SUCH_CHILD);
    CHECK_EQ(jzx_supervisor_restart_child(t.loop, t.sup, "a", NULL), JZX_ERR_NO_SUCH_CHILD);
    tree_close(&t);
}

/* The call returns at once; the supervisor answers while the child takes its time. */
static void test_terminating_a_slow_child_blocks_nobody_R19(void)
{
    tree t;
    kid *kids[2];
    tree_open(&t);
    tree_start_kids(&t, NULL, kids, NULL, 2);
    kids[0]->at_stop = 'd';
    jzx_actor_id b = kids[1]->me.id;
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "a"));
    tree_pass(&t, 1000);
    CHECK_STR(listing(&t), "a=stopping b=running");
    kid_end(kids[1], JZX_REASON_FAILED);
    KID_CHECK_LIFE(kids[1], b, 2);
    CHECK_STR(listing(&t), "a=stopping b=running");
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "a"));
    tree_pass(&t, 4100);
    CHECK_STR(listing(&t), "a=down b=running");
    CHECK_EQ(tree_child(&t, "a").last.kind, JZX_REASON_STOP_TIMEOUT);
    tree_stop_now(&t);
    tree_close(&t);
}

static void test_a_child_can_be_terminated_by_its_actor_R19(void)
{
    static const uint32_t modes[] = {JZX_PERMANENT, JZX_TRANSIENT, JZX_TEMPORARY};
    tree t;
    kid *kids[3];
    tree_open(&t);
    tree_start_kids(&t, NULL, kids, modes, 3);
    for (size_t i = 0; i < COUNT_OF(kids); i++) {
        CHECK_OK(jzx_supervisor_terminate(t.loop, t.sup, kids[i]->me.id));
    }
    tree_idle(&t);
    CHECK_STR(listing(&t), "a=down b=down");
    CHECK_OK(jzx_supervisor_terminate(t.loop, t.sup, kids[2]->me.id)); /* gone is fine */
    tree_close(&t);
}

static jzx_behavior_result idle_behavior(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static void test_calls_to_the_wrong_actor_or_with_no_name_are_refused_R19(void)
{
    tree t;
    kid *a = NULL;
    tree_open(&t);
    tree_start_kids(&t, NULL, &a, NULL, 1);
    kid *late = kid_new(&t, "late");
    jzx_child_spec spec = kid_spec(late, JZX_PERMANENT);
    jzx_child_info info;
    jzx_child_counts counts;
    jzx_spawn_opts opts = {.behavior = idle_behavior};
    jzx_actor_id plain = 0;
    REQUIRE_OK(jzx_spawn(t.loop, &opts, &plain));
    const struct {
        jzx_actor_id id;
        jzx_err err;
    } wrong[] = {{plain, JZX_ERR_WRONG_SUPERVISOR},
                 {a->me.id, JZX_ERR_WRONG_SUPERVISOR},
                 {0, JZX_ERR_NO_SUCH_ACTOR},
                 {t.sup + (UINT64_C(1) << 32), JZX_ERR_NO_SUCH_ACTOR}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        jzx_actor_id id = wrong[i].id;
        CHECK_EQ(jzx_supervisor_start_child(t.loop, id, &spec, NULL), wrong[i].err);
        CHECK_EQ(jzx_supervisor_start_dynamic(t.loop, id, late, NULL), wrong[i].err);
        CHECK_EQ(jzx_supervisor_terminate_child(t.loop, id, "a"), wrong[i].err);
        CHECK_EQ(jzx_supervisor_terminate(t.loop, id, a->me.id), wrong[i].err);
        CHECK_EQ(jzx_supervisor_restart_child(t.loop, id, "a", NULL), wrong[i].err);
        CHECK_EQ(jzx_supervisor_delete_child(t.loop, id, "a"), wrong[i].err);
        CHECK_EQ(jzx_supervisor_child(t.loop, id, "a", &info), wrong[i].err);
        CHECK_EQ(jzx_supervisor_count(t.loop, id, &counts), wrong[i].err);
        CHECK_EQ(jzx_supervisor_get_spec(t.loop, id, "a", &spec), wrong[i].err);
        CHECK_EQ(jzx_supervisor_children(t.loop, id, &info, 1), 0);
    }
    CHECK_EQ(jzx_supervisor_start_child(t.loop, t.sup, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_supervisor_terminate_child(t.loop, t.sup, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_supervisor_restart_child(t.loop, t.sup, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_supervisor_delete_child(t.loop, t.sup, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_supervisor_child(t.loop, t.sup, "a", NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_supervisor_child(t.loop, t.sup, "b", &info), JZX_ERR_NO_SUCH_CHILD);
    CHECK_EQ(jzx_supervisor_terminate(t.loop, t.sup, plain), JZX_ERR_NO_SUCH_CHILD);
    tree_idle(&t);
    CHECK_EQ(jzx_actor_state(t.loop, plain), JZX_STATE_RUNNING);
    CHECK_EQ(late->me.inits, 0);
    KID_CHECK_LIFE(a, a->me.id, 1);
    tree_close(&t);
}

static void test_a_dynamic_supervisor_knows_its_children_by_actor_only_R19(void)
{
    tree t;
    tree_open(&t);
    tree_start_dynamic(&t, NULL, JZX_PERMANENT, 0);
    kid *a = tree_add_dynamic(&t, NULL);
    kid *b = tree_add_dynamic(&t, NULL);
    tree_idle(&t);
    jzx_child_spec spec = kid_spec(a, JZX_PERMANENT);
    CHECK_EQ(jzx_supervisor_start_child(t.loop, t.sup, &spec, NULL), JZX_ERR_WRONG_SUPERVISOR);
    CHECK_EQ(jzx_supervisor_terminate_child(t.loop, t.sup, "kid"), JZX_ERR_WRONG_SUPERVISOR);
    CHECK_EQ(jzx_supervisor_restart_child(t.loop, t.sup, "kid", NULL), JZX_ERR_WRONG_SUPERVISOR);
    CHECK_EQ(jzx_supervisor_delete_child(t.loop, t.sup, "kid"), JZX_ERR_WRONG_SUPERVISOR);
    CHECK_OK(jzx_supervisor_terminate(t.loop, t.sup, a->me.id));
    tree_idle(&t);
    CHECK_STR(listing(&t), "kid=running");
    CHECK_COUNTS(&t, 1, 1, 0, 1);
    CHECK_EQ(a->me.inits, 1);
    CHECK_OK(jzx_supervisor_terminate(t.loop, t.sup, a->me.id)); /* gone is fine */
    CHECK_EQ(jzx_supervisor_terminate(t.loop, t.sup, t.sup), JZX_ERR_NO_SUCH_CHILD);
    KID_CHECK_LIFE(b, b->me.id, 1);
    tree_stop_now(&t);
    tree_close(&t);

    tree_open(&t);
    kid *kids[1];
    tree_start_kids(&t, NULL, kids, NULL, 1);
    CHECK_EQ(jzx_supervisor_start_dynamic(t.loop, t.sup, kids[0], NULL), JZX_ERR_WRONG_SUPERVISOR);
    tree_close(&t);
}

/* extra_return: what a child was started with reaches its init, then and at every restart. */
static void test_init_gets_the_same_argument_at_every_start_R18(void)
{
    tree t;
    kid *a = NULL;
    tree_open(&t);
    tree_start_kids(&t, NULL, &a, NULL, 1);
    jzx_actor_id id = a->me.id;
    kid_end(a, JZX_REASON_FAILED);
    KID_CHECK_LIFE(a, id, 2);
    CHECK_EQ(a->me.inits, 2); /* counted through its argument */
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "a"));
    tree_idle(&t);
    CHECK_OK(jzx_supervisor_restart_child(t.loop, t.sup, "a", NULL));
    tree_idle(&t);
    CHECK_EQ(a->me.inits, 3);
    KID_CHECK_LIFE(a, a->me.id, 1);
    tree_close(&t);
}

static void test_children_are_listed_in_start_order_after_every_change_R19(void)
{
    tree t;
    kid *kids[3];
    static const char *const added[] = {"d", "e"};
    tree_open(&t);
    tree_start(&t, NULL, NULL, 0);
    CHECK_STR(listing(&t), "");
    tree_stop_now(&t);
    tree_close(&t);

    tree_open(&t);
    tree_start_kids(&t, NULL, kids, NULL, 3);
    CHECK_STR(listing(&t), "a=running b=running c=running");
    for (size_t i = 0; i < COUNT_OF(added); i++) {
        jzx_child_spec spec = kid_spec(kid_new(&t, added[i]), JZX_TRANSIENT);
        CHECK_OK(jzx_supervisor_start_child(t.loop, t.sup, &spec, NULL));
        tree_idle(&t);
    }
    CHECK_STR(listing(&t), "a=running b=running c=running d=running e=running");
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "b"));
    tree_idle(&t);
    CHECK_STR(listing(&t), "a=running b=down c=running d=running e=running");
    CHECK_OK(jzx_supervisor_restart_child(t.loop, t.sup, "b", NULL));
    tree_idle(&t);
    CHECK_STR(listing(&t), "a=running b=running c=running d=running e=running");
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "d"));
    tree_idle(&t);
    CHECK_OK(jzx_supervisor_delete_child(t.loop, t.sup, "d"));
    CHECK_STR(listing(&t), "a=running b=running c=running e=running");
    jzx_child_info two[2];
    CHECK_EQ(jzx_supervisor_children(t.loop, t.sup, two, 2), 4); /* how many there are */
    CHECK_STR(two[1].id, "b");
    tree_stop_now(&t);
    CHECK_EQ(jzx_supervisor_children(t.loop, t.sup, two, 2), 0);
    tree_close(&t);
}

static void test_dynamic_children_are_listed_in_start_order_after_every_change_R19(void)
{
    tree t;
    kid *kids[4];
    jzx_child_info list[4];
    tree_open(&t);
    tree_start_dynamic(&t, NULL, JZX_TRANSIENT, 0);
    CHECK_STR(listing(&t), "");
    for (size_t i = 0; i < COUNT_OF(kids); i++) {
        kids[i] = tree_add_dynamic(&t, NULL);
        tree_idle(&t);
        CHECK_EQ(jzx_supervisor_children(t.loop, t.sup, NULL, 0), i + 1);
    }
    CHECK_OK(jzx_supervisor_terminate(t.loop, t.sup, kids[1]->me.id));
    kid_end(kids[2], JZX_REASON_NORMAL);
    REQUIRE_EQ(jzx_supervisor_children(t.loop, t.sup, list, COUNT_OF(list)), 2);
    CHECK_EQ(list[0].actor, kids[0]->me.id);
    CHECK_EQ(list[1].actor, kids[3]->me.id);
    for (size_t i = 0; i < 2; i++) {
        CHECK_STR(list[i].id, "kid");
        CHECK_EQ(list[i].mode, JZX_TRANSIENT);
        CHECK_EQ(list[i].status, JZX_CHILD_RUNNING);
    }
    kid_end(kids[0], JZX_REASON_FAILED); /* keeps its place and its id */
    REQUIRE_EQ(jzx_supervisor_children(t.loop, t.sup, list, COUNT_OF(list)), 2);
    CHECK_EQ(list[0].actor, kids[0]->me.id);
    CHECK_EQ(list[0].restarts, 1);
    CHECK_EQ(list[0].last.kind, JZX_REASON_FAILED);
    tree_close(&t);
}

static void test_thousands_of_temporary_children_are_counted_R19(void)
{
    enum { COUNT = 1000 };
    tree t;
    tree_open(&t);
    tree_start_dynamic(&t, NULL, JZX_TEMPORARY, 0);
    for (uint32_t round = 1; round <= 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            (void)tree_add_dynamic(&t, NULL);
        }
        tree_idle(&t);
        CHECK_COUNTS(&t, 1, round * COUNT, 0, round * COUNT);
    }
    for (kid *k = t.kids; k != NULL; k = k->next) { /* in each way a quarter of them ends */
        static const uint32_t reasons[] = {JZX_REASON_NORMAL, JZX_REASON_SHUTDOWN,
                                           JZX_REASON_FAILED, JZX_REASON_KILLED};
        kid_begin_end(k, reasons[jzx_id_slot(k->me.id) % 4]);
    }
    tree_idle(&t);
    CHECK_COUNTS(&t, 1, 0, 0, 0);
    CHECK_EQ(rig_counters(&t.r).live, 1);
    tree_close(&t);
}

static void test_supervisors_and_workers_are_counted_apart_R19(void)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    jzx_supervisor_init nested = {.name = "nested"};
    jzx_child_spec specs[] = {{.id = "one", .supervisor = &nested},
                              kid_spec(a, JZX_PERMANENT),
                              {.id = "two", .supervisor = &nested}};
    tree_start(&t, NULL, specs, COUNT_OF(specs));
    CHECK_COUNTS(&t, 3, 3, 2, 1);
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "one"));
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "a"));
    tree_idle(&t);
    CHECK_COUNTS(&t, 3, 1, 2, 1); /* alive or not */
    CHECK_OK(jzx_supervisor_delete_child(t.loop, t.sup, "one"));
    CHECK_COUNTS(&t, 2, 1, 1, 1);
    tree_close(&t);

    tree_open(&t);
    jzx_supervisor_spec spec = {.strategy = JZX_DYNAMIC};
    jzx_child_spec child = {.id = "nested", .supervisor = &nested};
    tree_start(&t, &spec, &child, 1);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(jzx_supervisor_start_dynamic(t.loop, t.sup, NULL, NULL));
    }
    tree_idle(&t);
    CHECK_COUNTS(&t, 1, 3, 3, 0);
    tree_stop_now(&t);
    tree_close(&t);
}

static void test_a_child_that_is_being_restarted_is_not_active_R19(void)
{
    tree t;
    kid *kids[2];
    jzx_supervisor_spec spec = {.intensity = 100, .backoff_min_ms = 100, .backoff_max_ms = 100};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 2);
    kids[0]->plan = "ffo";
    kid_end(kids[0], JZX_REASON_FAILED);
    for (int i = 0; i < 3; i++) { /* it failed; its first try will; its second will */
        jzx_child_counts counts = {0};
        CHECK_STR(listing(&t), "a=restarting b=running");
        CHECK_COUNTS(&t, 2, 1, 0, 2);
        REQUIRE_OK(jzx_supervisor_count(t.loop, t.sup, &counts));
        CHECK_EQ(counts.restarting, 1);
        CHECK_EQ(counts.restarts, i);
        CHECK_EQ(tree_child(&t, "a").attempt, i + 1);
        tree_pass(&t, 101);
    }
    CHECK_STR(listing(&t), "a=running b=running");
    CHECK_COUNTS(&t, 2, 2, 0, 2);
    CHECK_EQ(tree_child(&t, "a").restarts, 3);
    tree_close(&t);
}

/* already_started_outside_supervisor, without a registry: an id that is taken is not taken over. */
static void test_an_id_that_is_taken_is_not_taken_over_R19(void)
{
    tree t;
    kid *a = NULL;
    tree_open(&t);
    tree_start_kids(&t, NULL, &a, NULL, 1);
    kid *other = kid_new(&t, "a");
    jzx_child_spec spec = kid_spec(other, JZX_PERMANENT);
    spec.drop_arg = kid_drop_arg;
    CHECK_EQ(jzx_supervisor_start_child(t.loop, t.sup, &spec, NULL), JZX_ERR_CHILD_RUNNING);
    tree_idle(&t);
    CHECK_EQ(other->me.inits, 0);
    CHECK_EQ(other->drops, 0); /* the argument stays the caller's */
    CHECK_EQ(tree_child(&t, "a").actor, a->me.id);
    KID_CHECK_LIFE(a, a->me.id, 1);
    tree_close(&t);
}

static const jzt_test tests[] = {
    {"a_child_is_added_stopped_started_again_and_forgotten_R19",
     test_a_child_is_added_stopped_started_again_and_forgotten_R19},
    {"a_temporary_child_that_is_terminated_is_forgotten_R19",
     test_a_temporary_child_that_is_terminated_is_forgotten_R19},
    {"terminating_a_slow_child_blocks_nobody_R19", test_terminating_a_slow_child_blocks_nobody_R19},
    {"a_child_can_be_terminated_by_its_actor_R19", test_a_child_can_be_terminated_by_its_actor_R19},
    {"calls_to_the_wrong_actor_or_with_no_name_are_refused_R19",
     test_calls_to_the_wrong_actor_or_with_no_name_are_refused_R19},
    {"a_dynamic_supervisor_knows_its_children_by_actor_only_R19",
     test_a_dynamic_supervisor_knows_its_children_by_actor_only_R19},
    {"init_gets_the_same_argument_at_every_start_R18",
     test_init_gets_the_same_argument_at_every_start_R18},
    {"children_are_listed_in_start_order_after_every_change_R19",
     test_children_are_listed_in_start_order_after_every_change_R19},
    {"dynamic_children_are_listed_in_start_order_after_every_change_R19",
     test_dynamic_children_are_listed_in_start_order_after_every_change_R19},
    {"thousands_of_temporary_children_are_counted_R19",
     test_thousands_of_temporary_children_are_counted_R19},
    {"supervisors_and_workers_are_counted_apart_R19",
     test_supervisors_and_workers_are_counted_apart_R19},
    {"a_child_that_is_being_restarted_is_not_active_R19",
     test_a_child_that_is_being_restarted_is_not_active_R19},
    {"an_id_that_is_taken_is_not_taken_over_R19", test_an_id_that_is_taken_is_not_taken_over_R19},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
