/* Goal: supervisors below supervisors, restarts that never succeed, and the order of everything
 * (R3, R16, R18, R19). Method: simulation; the meaning of OTP's tree, hanging_restart_loop* and
 * order_of_children cases, which docs/reference/SPEC.md lists. */
#include "sup_fixture.h"

#define HOUR_MS (3600 * 1000)

static jzx_actor_id child_actor(const tree *t, jzx_actor_id sup, const char *id)
{
    jzx_child_info info = {0};
    REQUIRE_OK(jzx_supervisor_child(t->loop, sup, id, &info));
    return info.actor;
}

/* sup
 *   leaf
 *   inner (one for all): b, c
 *   pool (dynamic) */
typedef struct forest {
    tree t;
    kid *leaf, *b, *c;
    jzx_actor_id inner, pool;
} forest;

static void forest_start(forest *f, uint32_t inner_mode)
{
    tree_open(&f->t);
    f->leaf = kid_new(&f->t, "leaf");
    f->b = kid_new(&f->t, "b");
    f->c = kid_new(&f->t, "c");
    kid shape = {.id = "kid"};
    jzx_supervisor_spec one_for_all = {.strategy = JZX_ONE_FOR_ALL};
    jzx_supervisor_spec dynamic = {.strategy = JZX_DYNAMIC};
    jzx_child_spec inner_kids[] = {kid_spec(f->b, JZX_PERMANENT), kid_spec(f->c, JZX_PERMANENT)};
    jzx_child_spec pool_kid = kid_spec(&shape, JZX_PERMANENT);
    pool_kid.arg = NULL;
    jzx_supervisor_init inner = {
        .name = "in", .spec = &one_for_all, .children = inner_kids, .child_count = 2};
    jzx_supervisor_init pool = {
        .name = "po", .spec = &dynamic, .children = &pool_kid, .child_count = 1};
    jzx_child_spec top[] = {kid_spec(f->leaf, JZX_PERMANENT),
                            {.id = "inner", .supervisor = &inner, .mode = inner_mode},
                            {.id = "pool", .supervisor = &pool}};
    jzx_supervisor_spec spec = {.intensity = 10};
    tree_start(&f->t, &spec, top, COUNT_OF(top));
    f->inner = child_actor(&f->t, f->t.sup, "inner");
    f->pool = child_actor(&f->t, f->t.sup, "pool");
    CHECK_STR(words_take(&f->t.life), "+leaf +b +c");
}

/* More failures than `inner` or `pool` allows: one. */
static void fail_twice(kid *k)
{
    kid_end(k, JZX_REASON_FAILED);
    kid_end(k, JZX_REASON_FAILED);
}

static void test_a_subtree_is_restarted_with_the_children_of_its_spec_R3(void)
{
    forest f;
    forest_start(&f, JZX_PERMANENT);
    kid *added = kid_new(&f.t, "added");
    jzx_child_spec spec = kid_spec(added, JZX_PERMANENT);
    REQUIRE_OK(jzx_supervisor_start_child(f.t.loop, f.inner, &spec, NULL));
    tree_idle(&f.t);
    jzx_actor_id b = f.b->me.id;
    jzx_actor_id c = f.c->me.id;
    fail_twice(f.b);
    CHECK_STR(words_take(&f.t.escalations), "inner:gave_up:b");
    CHECK_EQ(child_actor(&f.t, f.t.sup, "inner"), f.inner); /* restarted by its own parent */
    CHECK_EQ(jzx_actor_incarnation(f.t.loop, f.inner), 2);
    CHECK(f.b->me.id != b); /* descendants end, and their successors are others */
    CHECK(f.c->me.id != c);
    CHECK_EQ(jzx_actor_state(f.t.loop, b), JZX_STATE_TERMINATED);
    CHECK_EQ(jzx_actor_state(f.t.loop, c), JZX_STATE_TERMINATED);
    KID_CHECK_LIFE(f.b, child_actor(&f.t, f.inner, "b"), 1);
    KID_CHECK_LIFE(f.c, child_actor(&f.t, f.inner, "c"), 1);
    CHECK_EQ(added->me.inits, 2); /* with b's first failure */
    CHECK_EQ(added->me.deinits, 2);
    CHECK_EQ(jzx_supervisor_children(f.t.loop, f.inner, NULL, 0), 2);
    KID_CHECK_LIFE(f.leaf, f.leaf->me.id, 1);
    CHECK_EQ(jzx_actor_incarnation(f.t.loop, f.pool), 1);
    tree_stop_now(&f.t);
    tree_close(&f.t);
}

static void test_a_dynamic_supervisor_is_restarted_without_its_children_R3(void)
{
    forest f;
    kid *kids[3];
    forest_start(&f, JZX_PERMANENT);
    for (size_t i = 0; i < COUNT_OF(kids); i++) {
        kids[i] = kid_new(&f.t, "kid");
        REQUIRE_OK(jzx_supervisor_start_dynamic(f.t.loop, f.pool, kids[i], NULL));
    }
    tree_idle(&f.t);
    fail_twice(kids[1]);
    CHECK_STR(words_take(&f.t.escalations), "pool:gave_up:kid");
    CHECK_EQ(jzx_actor_state(f.t.loop, f.pool), JZX_STATE_RUNNING);
    CHECK_EQ(jzx_actor_incarnation(f.t.loop, f.pool), 2);
    CHECK_EQ(jzx_supervisor_children(f.t.loop, f.pool, NULL, 0), 0);
    for (size_t i = 0; i < COUNT_OF(kids); i++) {
        CHECK_EQ(kid_state_of(kids[i]), JZX_STATE_TERMINATED);
    }
    kid *next = kid_new(&f.t, "kid"); /* it works as before */
    REQUIRE_OK(jzx_supervisor_start_dynamic(f.t.loop, f.pool, next, NULL));
    tree_idle(&f.t);
    KID_CHECK_LIFE(next, next->me.id, 1);
    KID_CHECK_LIFE(f.b, f.b->me.id, 1);
    tree_stop_now(&f.t);
    tree_close(&f.t);
}

/* The trap of OTP and others: giving up looks like a shutdown there, and nobody restarts it. */
static void test_a_transient_supervisor_that_gave_up_is_restarted_R17(void)
{
    forest f;
    forest_start(&f, JZX_TRANSIENT);
    fail_twice(f.c);
    CHECK_EQ(jzx_actor_state(f.t.loop, f.inner), JZX_STATE_RUNNING);
    CHECK_EQ(jzx_actor_incarnation(f.t.loop, f.inner), 2);
    CHECK_STR(jzx_reason_name(tree_child(&f.t, "inner").last.kind), "gave_up");
    CHECK_OK(jzx_stop(f.t.loop, f.inner)); /* asked to, it stays down */
    tree_idle(&f.t);
    CHECK_EQ(tree_status(&f.t, "inner"), JZX_CHILD_DOWN);
    CHECK_EQ(kid_state_of(f.b), JZX_STATE_TERMINATED);
    tree_stop_now(&f.t);
    tree_close(&f.t);
}

/* simple_global_supervisor, by spec ids: there is no registry yet. */
static void test_children_are_found_by_their_ids_after_every_restart_R3(void)
{
    forest f;
    forest_start(&f, JZX_PERMANENT);
    for (uint32_t i = 0; i < 3; i++) {
        jzx_actor_id b = f.b->me.id;
        kid_end(f.b, JZX_REASON_FAILED); /* the worker dies: it keeps its id */
        CHECK_EQ(child_actor(&f.t, f.inner, "b"), b);
        CHECK_EQ(f.b->me.id, b);
        CHECK_OK(jzx_kill(f.t.loop, f.inner)); /* its supervisor dies: it gets another */
        tree_idle(&f.t);
        CHECK_EQ(child_actor(&f.t, f.t.sup, "inner"), f.inner);
        CHECK_EQ(jzx_actor_incarnation(f.t.loop, f.inner), 2 + i);
        CHECK(child_actor(&f.t, f.inner, "b") != b);
        KID_CHECK_LIFE(f.b, child_actor(&f.t, f.inner, "b"), 1);
    }
    tree_close(&f.t);
}

/* faulty_application_shutdown: from the leaf to the top, each with its cause. */
static void test_a_failure_that_nobody_handles_reaches_the_top_with_its_cause_R17(void)
{
    tree t;
    tree_open(&t);
    kid *leaf = kid_new(&t, "leaf");
    jzx_supervisor_spec never = {.intensity = JZX_INTENSITY_NEVER};
    jzx_child_spec leaf_spec = kid_spec(leaf, JZX_PERMANENT);
    jzx_supervisor_init low = {.spec = &never, .children = &leaf_spec, .child_count = 1};
    jzx_child_spec low_spec = {.id = "low", .supervisor = &low};
    jzx_supervisor_init mid = {.spec = &never, .children = &low_spec, .child_count = 1};
    jzx_child_spec mid_spec = {.id = "mid", .supervisor = &mid};
    tree_start(&t, &never, &mid_spec, 1);
    jzx_actor_id mid_id = child_actor(&t, t.sup, "mid");
    kid_end(leaf, JZX_REASON_FAILED);
    CHECK_STR(t.escalations.text, "low:gave_up:leaf mid:gave_up:low sup:gave_up:mid");
    CHECK_EQ(t.cause.kind, JZX_REASON_FAILED);
    CHECK_EQ(t.cause.code, KID_FAIL_CODE);
    CHECK_STR(t.cause.text, "as told");
    CHECK_STR(words_take(&t.ends), "leaf:failed low:gave_up mid:gave_up sup:gave_up");
    CHECK_EQ(t.sup_end.from, mid_id);
    CHECK_EQ(rig_counters(&t.r).escalations, 3);
    CHECK_GONE(&t, JZX_REASON_GAVE_UP);
    tree_close(&t);
}

static void unlink_parent(jzx_context *ctx, kid *k)
{
    CHECK_OK(jzx_trap_exits(ctx, 1));
    CHECK_OK(jzx_unlink(ctx->loop, k->t->sup));
}

/* Being a child is no link: nothing that a child does frees it of its parent. */
static void test_a_child_cannot_leave_its_supervisor_R16(void)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    kid *b = kid_new(&t, "b");
    a->on_init = unlink_parent;
    b->on_init = unlink_parent;
    jzx_child_spec specs[] = {kid_spec(a, JZX_PERMANENT), kid_spec(b, JZX_PERMANENT)};
    tree_start(&t, NULL, specs, COUNT_OF(specs));
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "a"));
    tree_idle(&t);
    CHECK_EQ(tree_status(&t, "a"), JZX_CHILD_DOWN);
    kid_end(b, JZX_REASON_FAILED);
    KID_CHECK_LIFE(b, b->me.id, 2);
    tree_stop_now(&t);
    CHECK_STR(words_take(&t.ends), "a:shutdown b:shutdown sup:shutdown");
    tree_close(&t);
}

/* Child b cannot start again, and the budget is endless. */
static void start_hanging(tree *t, kid **kids, uint32_t strategy, uint32_t backoff_ms)
{
    jzx_supervisor_spec spec = {.strategy = strategy,
                                .intensity = JZX_INTENSITY_MAX,
                                .period_ms = HOUR_MS,
                                .backoff_min_ms = backoff_ms,
                                .backoff_max_ms = backoff_ms};
    tree_open(t);
    tree_start_kids(t, &spec, kids, NULL, 3);
    kids[1]->plan = "f";
    kid_begin_end(kids[1], JZX_REASON_FAILED);
}

static void check_hanging(tree *t, kid **kids)
{
    jzx_child_spec spec = kid_spec(kids[1], JZX_PERMANENT);
    CHECK_EQ(tree_status(t, "b"), JZX_CHILD_RESTARTING);
    CHECK_EQ(jzx_supervisor_start_child(t->loop, t->sup, &spec, NULL), JZX_ERR_CHILD_RESTARTING);
    CHECK_EQ(jzx_supervisor_restart_child(t->loop, t->sup, "b", NULL), JZX_ERR_CHILD_RESTARTING);
    CHECK_EQ(jzx_supervisor_delete_child(t->loop, t->sup, "b"), JZX_ERR_CHILD_RESTARTING);
}

static void hanging_restart_can_be_ended(uint32_t strategy, uint32_t running)
{
    tree t;
    kid *kids[3];
    start_hanging(&t, kids, strategy, 50);
    tree_pass(&t, 1020); /* between two tries */
    CHECK(kids[1]->me.inits > 10);
    check_hanging(&t, kids);
    CHECK_COUNTS(&t, 3, running, 0, 3);
    uint32_t inits = kids[1]->me.inits;
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "b"));
    tree_pass(&t, 10000);
    CHECK_EQ(kids[1]->me.inits, inits);
    CHECK_EQ(tree_status(&t, "b"), JZX_CHILD_DOWN);
    CHECK(tree_status(&t, "a") != JZX_CHILD_RESTARTING); /* nobody waits for it any more */
    CHECK(tree_status(&t, "c") != JZX_CHILD_RESTARTING);
    CHECK_OK(jzx_supervisor_delete_child(t.loop, t.sup, "b"));
    tree_stop_now(&t);
    tree_close(&t);

    start_hanging(&t, kids, strategy, 50); /* and the supervisor in the middle of it */
    tree_pass(&t, 1020);
    check_hanging(&t, kids);
    tree_stop_now(&t);
    tree_close(&t);

    start_hanging(&t, kids, strategy, 50); /* and it goes on when the trouble is over */
    tree_pass(&t, 1020);
    kids[1]->plan = "o";
    tree_pass(&t, 100);
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(kid_state_of(kids[i]), JZX_STATE_RUNNING);
        KID_CHECK_LIFE(kids[i], kids[i]->me.id, kids[i]->me.inits);
    }
    tree_close(&t);
}

static void test_a_restart_that_fails_for_ever_can_be_ended_one_for_one_R19(void)
{
    hanging_restart_can_be_ended(JZX_ONE_FOR_ONE, 2);
}
static void test_a_restart_that_fails_for_ever_can_be_ended_one_for_all_R19(void)
{
    hanging_restart_can_be_ended(JZX_ONE_FOR_ALL, 0);
}
static void test_a_restart_that_fails_for_ever_can_be_ended_rest_for_one_R19(void)
{
    hanging_restart_can_be_ended(JZX_REST_FOR_ONE, 1);
}

/* Without any backoff, as in OTP: the supervisor answers and others run between two tries. */
static void test_a_supervisor_answers_between_the_tries_of_a_restart_R19(void)
{
    for (uint32_t strategy = JZX_ONE_FOR_ONE; strategy <= JZX_REST_FOR_ONE; strategy++) {
        tree t;
        kid *kids[3];
        start_hanging(&t, kids, strategy, 0);
        for (int i = 0; i < 5; i++) {
            REQUIRE_OK(jzx_loop_step(t.loop, 0));
        }
        CHECK(kids[1]->me.inits > 1);
        CHECK(tree_status(&t, "b") == JZX_CHILD_RESTARTING ||
              tree_status(&t, "b") == JZX_CHILD_STARTING);
        if (strategy != JZX_ONE_FOR_ALL) {
            kid_tell(kids[0], KID_NOTE, 0);
            REQUIRE_OK(jzx_loop_step(t.loop, 0));
            for (int i = 0; i < 100 && jzt_on_pool() > 1 && kids[0]->me.handled == 0; i++) {
                REQUIRE_OK(jzx_loop_step(t.loop, 0)); /* a few turns of one worker of the pool */
            }
            CHECK_EQ(kids[0]->me.handled, 1);
        }
        CHECK(kids[1]->me.inits < JZX_INTENSITY_MAX); /* it is still at it */
        if (strategy == JZX_ONE_FOR_ONE) {
            CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "b"));
            tree_idle(&t);
            CHECK_EQ(tree_status(&t, "b"), JZX_CHILD_DOWN);
        }
        tree_stop_now(&t);
        tree_close(&t);
    }
}

static void test_children_start_in_order_and_stop_in_reverse_order_R16(void)
{
    tree t;
    kid *kids[5];
    jzx_supervisor_spec spec = {.intensity = 5};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 5);
    CHECK_STR(words_take(&t.life), "+a +b +c +d +e");
    jzx_child_spec added = kid_spec(kid_new(&t, "x"), JZX_PERMANENT);
    CHECK_OK(jzx_supervisor_start_child(t.loop, t.sup, &added, NULL));
    tree_idle(&t);
    kid_end(kids[1], JZX_REASON_FAILED); /* neither of these changes anybody's place */
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "d"));
    tree_idle(&t);
    CHECK_OK(jzx_supervisor_restart_child(t.loop, t.sup, "d", NULL));
    tree_idle(&t);
    CHECK_STR(words_take(&t.life), "+x -b +b -d +d");
    tree_stop_now(&t);
    CHECK_STR(words_take(&t.asked), "d x e d c b a");
    CHECK_STR(words_take(&t.life), "-x -e -d -c -b -a");
    tree_close(&t);
}

/* Partly: rest_for_one stops the later ones only, also those that are down or were added. */
static void test_a_partial_stop_is_in_reverse_order_too_R16(void)
{
    tree t;
    kid *kids[5];
    jzx_supervisor_spec spec = {.strategy = JZX_REST_FOR_ONE, .intensity = 5};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 5);
    jzx_child_spec added = kid_spec(kid_new(&t, "x"), JZX_PERMANENT);
    CHECK_OK(jzx_supervisor_start_child(t.loop, t.sup, &added, NULL));
    tree_idle(&t);
    (void)words_take(&t.life);
    kid_end(kids[2], JZX_REASON_FAILED);
    CHECK(words_in_order(words_take(&t.life), "-x -e -d +c +d +e +x"));
    tree_close(&t);
}

/* A parent never ends before its children, on any level (R16). */
static void test_a_tree_stops_from_its_leaves_R16(void)
{
    forest f;
    forest_start(&f, JZX_PERMANENT);
    kid *kids[2];
    for (size_t i = 0; i < COUNT_OF(kids); i++) {
        kids[i] = kid_new(&f.t, "kid");
        REQUIRE_OK(jzx_supervisor_start_dynamic(f.t.loop, f.pool, kids[i], NULL));
    }
    tree_idle(&f.t);
    kid_tell(f.b, KID_LINGER, 3000);
    tree_idle(&f.t);
    CHECK_OK(jzx_stop(f.t.loop, f.t.sup));
    tree_pass(&f.t, 2900);
    CHECK_STR(words_take(&f.t.ends), "kid:shutdown kid:shutdown pool:shutdown c:shutdown");
    CHECK_EQ(kid_state_of(f.leaf), JZX_STATE_RUNNING);
    tree_pass(&f.t, 200);
    CHECK_STR(words_take(&f.t.ends), "b:shutdown inner:shutdown leaf:shutdown sup:shutdown");
    tree_close(&f.t);
}

static const jzt_test tests[] = {
    {"a_subtree_is_restarted_with_the_children_of_its_spec_R3",
     test_a_subtree_is_restarted_with_the_children_of_its_spec_R3},
    {"a_dynamic_supervisor_is_restarted_without_its_children_R3",
     test_a_dynamic_supervisor_is_restarted_without_its_children_R3},
    {"a_transient_supervisor_that_gave_up_is_restarted_R17",
     test_a_transient_supervisor_that_gave_up_is_restarted_R17},
    {"children_are_found_by_their_ids_after_every_restart_R3",
     test_children_are_found_by_their_ids_after_every_restart_R3},
    {"a_failure_that_nobody_handles_reaches_the_top_with_its_cause_R17",
     test_a_failure_that_nobody_handles_reaches_the_top_with_its_cause_R17},
    {"a_child_cannot_leave_its_supervisor_R16", test_a_child_cannot_leave_its_supervisor_R16},
    {"a_restart_that_fails_for_ever_can_be_ended_one_for_one_R19",
     test_a_restart_that_fails_for_ever_can_be_ended_one_for_one_R19},
    {"a_restart_that_fails_for_ever_can_be_ended_one_for_all_R19",
     test_a_restart_that_fails_for_ever_can_be_ended_one_for_all_R19},
    {"a_restart_that_fails_for_ever_can_be_ended_rest_for_one_R19",
     test_a_restart_that_fails_for_ever_can_be_ended_rest_for_one_R19},
    {"a_supervisor_answers_between_the_tries_of_a_restart_R19",
     test_a_supervisor_answers_between_the_tries_of_a_restart_R19},
    {"children_start_in_order_and_stop_in_reverse_order_R16",
     test_children_start_in_order_and_stop_in_reverse_order_R16},
    {"a_partial_stop_is_in_reverse_order_too_R16", test_a_partial_stop_is_in_reverse_order_too_R16},
    {"a_tree_stops_from_its_leaves_R16", test_a_tree_stops_from_its_leaves_R16},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
