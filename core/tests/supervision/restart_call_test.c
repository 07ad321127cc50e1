/* Goal: jzx_restart() has the parent restart an actor that runs, in place and at no cost, for
 * children of supervisors, of parents and of the root; a stop wins over it (R3, R18, R19).
 * Method: simulation. */
#include "sup_fixture.h"

static void test_a_child_of_a_supervisor_restarts_alone_R18(void)
{
    for (uint32_t strategy = JZX_ONE_FOR_ONE; strategy <= JZX_REST_FOR_ONE; strategy++) {
        const jzx_supervisor_spec spec = {
            .strategy = strategy, .intensity = JZX_INTENSITY_NEVER, .backoff_min_ms = 1000};
        tree t;
        kid *k[3];
        tree_open(&t);
        tree_start_kids(&t, &spec, k, NULL, 3);
        jzx_actor_id id = k[1]->me.id;
        (void)words_take(&t.life);
        for (uint32_t life = 2; life < 5; life++) {
            CHECK_OK(jzx_restart(t.loop, id));
            CHECK_EQ(jzx_restart(t.loop, id), JZX_ERR_CHILD_RESTARTING);
            tree_idle(&t);
            CHECK_STR(words_take(&t.life), "-b +b");
            KID_CHECK_LIFE(k[1], id, life);
        }
        CHECK_EQ(tree_child(&t, "b").attempt, 0);
        CHECK_STR(words_take(&t.fails), "");
        tree_close(&t);
    }
}

/* Asked for as often as one likes, the failures that are allowed are still all there. */
static void test_it_costs_no_restart_of_the_limit_R19(void)
{
    const jzx_supervisor_spec spec = {.intensity = 2, .period_ms = 60000};
    tree t;
    kid *k[1];
    tree_open(&t);
    tree_start_kids(&t, &spec, k, NULL, 1);
    for (uint32_t i = 0; i < 10; i++) {
        CHECK_OK(jzx_restart(t.loop, k[0]->me.id));
        tree_idle(&t);
    }
    for (uint32_t i = 0; i < 2; i++) {
        kid_tell(k[0], T_FAIL, 0);
        tree_idle(&t);
    }
    CHECK_EQ(k[0]->me.ups, 13);
    CHECK_EQ(jzx_actor_state(t.loop, k[0]->me.id), JZX_STATE_RUNNING);
    tree_close(&t);
}

/* What is queued waits for the next life; watchers and the id stay. */
static void test_the_mailbox_survives_it_R18(void)
{
    tree t;
    kid *k[1];
    tree_open(&t);
    tree_start_kids(&t, NULL, k, NULL, 1);
    CHECK_OK(jzx_restart(t.loop, k[0]->me.id));
    for (uint64_t i = 0; i < 5; i++) {
        kid_tell(k[0], KID_NOTE, i);
    }
    tree_idle(&t);
    CHECK_EQ(k[0]->me.handled, 5);
    CHECK_EQ(k[0]->me.ups, 2);
    tree_close(&t);
}

static void test_a_stop_wins_over_it_R18(void)
{
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t mode = JZX_TRANSIENT;
        tree t;
        kid *k[1];
        tree_open(&t);
        tree_start_kids(&t, NULL, k, &mode, 1);
        jzx_actor_id id = k[0]->me.id;
        switch (i) {
        case 0: /* asked for before */
            CHECK_OK(jzx_stop(t.loop, id));
            CHECK_EQ(jzx_restart(t.loop, id), JZX_ERR_STOPPING);
            break;
        case 1: /* and after */
            CHECK_OK(jzx_restart(t.loop, id));
            CHECK_OK(jzx_stop(t.loop, id));
            break;
        case 2:
            CHECK_OK(jzx_restart(t.loop, id));
            CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "a"));
            break;
        case 3:
            CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "a"));
            CHECK_EQ(jzx_restart(t.loop, id), JZX_ERR_STOPPING);
            break;
        case 4:
            CHECK_OK(jzx_restart(t.loop, id));
            CHECK_OK(jzx_stop(t.loop, t.sup));
            break;
        default:
            CHECK_OK(jzx_stop(t.loop, t.sup));
            (void)jzx_restart(t.loop, id);
            break;
        }
        tree_pass(&t, 100);
        CHECK_EQ(jzx_actor_state(t.loop, id), JZX_STATE_TERMINATED);
        CHECK_EQ(k[0]->me.ups, 1);
        CHECK_EQ(jzx_restart(t.loop, id), JZX_ERR_NO_SUCH_ACTOR);
        tree_close(&t);
    }
}

static jzx_behavior_result idle(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static void test_each_refusal_has_its_error_R19(void)
{
    const uint32_t modes[] = {JZX_TEMPORARY, JZX_PERMANENT};
    tree t;
    kid *k[2];
    tree_open(&t);
    tree_start_kids(&t, &(jzx_supervisor_spec){.backoff_min_ms = 50}, k, modes, 2);
    CHECK_EQ(jzx_restart(NULL, k[0]->me.id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_restart(t.loop, JZX_NOBODY), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_restart(t.loop, k[0]->me.id), JZX_ERR_NOT_RESTARTABLE);
    CHECK_EQ(jzx_restart(t.loop, t.sup), JZX_ERR_WRONG_SUPERVISOR); /* the root has no policy */
    jzx_actor_id plain = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = idle};
    REQUIRE_OK(jzx_spawn(t.loop, &opts, &plain));
    CHECK_EQ(jzx_restart(t.loop, plain), JZX_ERR_WRONG_SUPERVISOR);
    kid_end(k[1], JZX_REASON_FAILED);
    CHECK_EQ(jzx_restart(t.loop, k[1]->me.id), JZX_ERR_CHILD_RESTARTING); /* it backs off */
    tree_pass(&t, 100);
    CHECK_OK(jzx_restart(t.loop, k[1]->me.id));
    tree_idle(&t);
    KID_CHECK_LIFE(k[1], k[1]->me.id, 3);
    tree_close(&t);
}

/* A subtree: its children end, and new ones take their place. */
static void test_a_supervisor_restarts_with_new_children_R3(void)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    jzx_child_spec child = kid_spec(a, JZX_PERMANENT);
    jzx_supervisor_init inner = {.name = "inner", .children = &child, .child_count = 1};
    jzx_child_spec top = {.id = "inner", .supervisor = &inner};
    tree_start(&t, NULL, &top, 1);
    jzx_actor_id sup = tree_child(&t, "inner").actor, old = a->me.id;
    CHECK_OK(jzx_restart(t.loop, sup));
    tree_idle(&t);
    CHECK_EQ(jzx_actor_incarnation(t.loop, sup), 2);
    CHECK(a->me.id != old);
    CHECK_EQ(a->me.ups, 2);
    tree_close(&t);
}

/* Of the root, and by the actor itself in the middle of a message. */
static jzx_behavior_result restart_self(jzx_context *ctx, const jzx_message *msg)
{
    unsigned *lives = ctx->state;
    CHECK_EQ(msg->u64, *lives);
    CHECK_OK(jzx_restart(ctx->loop, ctx->self));
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result count_life(jzx_context *ctx, void *arg)
{
    ++*(unsigned *)arg;
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

static void test_an_actor_restarts_itself_under_the_root_R18(void)
{
    tree t;
    unsigned lives = 0;
    jzx_actor_id id = JZX_NOBODY;
    tree_open(&t);
    jzx_spawn_opts opts = {.behavior = restart_self,
                           .init = count_life,
                           .state = &lives,
                           .restart = JZX_RESTART_TRANSIENT,
                           .restart_intensity = JZX_INTENSITY_NEVER};
    REQUIRE_OK(jzx_spawn(t.loop, &opts, &id));
    tree_idle(&t);
    for (uint64_t i = 1; i < 5; i++) {
        REQUIRE_OK(jzx_send_u64(t.loop, id, i, 1));
        tree_idle(&t);
        CHECK_EQ(lives, i + 1);
    }
    CHECK_OK(jzx_restart(t.loop, id));
    CHECK_OK(jzx_stop(t.loop, id));
    tree_idle(&t);
    CHECK_EQ(lives, 5);
    CHECK(jzx_loop_done(t.loop));
    tree_close(&t);
}

static const jzt_test tests[] = {
    {"a_child_of_a_supervisor_restarts_alone_R18", test_a_child_of_a_supervisor_restarts_alone_R18},
    {"it_costs_no_restart_of_the_limit_R19", test_it_costs_no_restart_of_the_limit_R19},
    {"the_mailbox_survives_it_R18", test_the_mailbox_survives_it_R18},
    {"a_stop_wins_over_it_R18", test_a_stop_wins_over_it_R18},
    {"each_refusal_has_its_error_R19", test_each_refusal_has_its_error_R19},
    {"a_supervisor_restarts_with_new_children_R3", test_a_supervisor_restarts_with_new_children_R3},
    {"an_actor_restarts_itself_under_the_root_R18",
     test_an_actor_restarts_itself_under_the_root_R18},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
