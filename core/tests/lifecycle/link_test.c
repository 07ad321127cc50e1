/* Goal: links (R20): both die together unless one traps exits, a normal end hurts nobody, links do
 * not stack and join incarnations, unlink is final. Method: simulation; actors keep a journal. The
 * rules are Erlang's, with one name more: who dies of a link dies of LINKED. */
#include "family.h"

static void link_arg(jzx_context *ctx, puppet *self)
{
    puppet *target = self->arg;
    CHECK_OK(jzx_link(ctx->loop, target->id));
}

static void unlink_arg(jzx_context *ctx, puppet *self)
{
    puppet *target = self->arg;
    CHECK_OK(jzx_unlink(ctx->loop, target->id));
}

static void trap(jzx_context *ctx, puppet *self)
{
    (void)self;
    CHECK_OK(jzx_trap_exits(ctx, 1));
}

static void trap_no_more(jzx_context *ctx, puppet *self)
{
    (void)self;
    CHECK_OK(jzx_trap_exits(ctx, 0));
}

/* a linked itself to b. */
static void open_pair(rig *r, puppet *a, puppet *b)
{
    play_open(r, NULL);
    puppet_spawn(r, a, "a");
    puppet_spawn(r, b, "b");
    a->arg = b;
    b->arg = a;
    inside(r, a, link_arg);
    said_clear();
}

static void test_trapping_is_decided_when_the_end_comes_R20(void)
{
    for (int by_flag = 0; by_flag < 2; by_flag++) {
        rig r;
        puppet a, b, c;
        play_open(&r, NULL);
        puppet_name(&a, "a");
        jzx_spawn_opts opts = puppet_opts(&a);
        opts.flags = by_flag ? JZX_SPAWN_TRAP_EXITS : 0;
        puppet_spawn_with(r.loop, &a, &opts);
        puppet_spawn(&r, &b, "b");
        puppet_spawn(&r, &c, "c");
        if (!by_flag) {
            inside(&r, &a, trap);
        }
        a.arg = &b;
        inside(&r, &a, link_arg);
        a.arg = &c;
        inside(&r, &a, link_arg);
        tell(&r, &b, T_FAIL);
        rig_idle(&r);
        CHECK_EQ(said_times("a<exit b failed 7>"), 1);
        inside(&r, &a, trap_no_more);
        tell(&r, &c, T_FAIL);
        rig_idle(&r);
        CHECK_ENDED(&r, &a, JZX_REASON_LINKED);
        play_close(&r);
    }
}

static void test_unlink_revokes_an_exit_that_is_queued_R20(void)
{
    for (int trapping = 0; trapping < 2; trapping++) {
        rig r;
        puppet a, b;
        open_pair(&r, &a, &b);
        if (trapping) {
            inside(&r, &a, trap);
        }
        a.call = unlink_arg;
        CHECK_OK(jzx_kill(r.loop, b.id)); /* b's turn is first */
        tell(&r, &a, T_CALL);
        rig_idle(&r);
        CHECK_ENDED(&r, &b, JZX_REASON_KILLED);
        if (trapping) {
            CHECK_EQ(said_times("a<exit"), 0);
            CHECK_STATE(&r, &a, JZX_STATE_RUNNING);
        } else { /* an exit that is not trapped may be obeyed at once, as a command */
            CHECK(a.ends <= 1);
        }
        CHECK_EQ(rig_counters(&r).watches, 0);
        play_close(&r);
    }
}

static void test_last_words_come_before_the_exit_R6(void)
{
    rig r;
    puppet a, b;
    open_pair(&r, &a, &b);
    inside(&r, &a, trap);
    said_clear();
    tell(&r, &a, 1);
    CHECK_OK(jzx_kill(r.loop, b.id));
    tell(&r, &a, 2); /* queued before b ended */
    rig_idle(&r);
    b.mute = true;
    CHECK(said_before("a:1", "a:2"));
    CHECK(said_before("a:2", "a<exit b killed>"));
    play_close(&r);
}

enum { CHAIN = 100 };
static puppet chain[CHAIN];

static void chain_open(rig *r)
{
    play_open(r, NULL);
    for (int i = 0; i < CHAIN; i++) {
        puppet_name(&chain[i], "chain");
        chain[i].mute = true;
        jzx_spawn_opts opts = puppet_opts(&chain[i]);
        puppet_spawn_with(r->loop, &chain[i], &opts);
    }
    for (int i = 0; i < CHAIN; i++) {
        if (i > 0) {
            chain[i].arg = &chain[i - 1];
            inside(r, &chain[i], link_arg);
        }
    }
    rig_idle(r);
}

static void test_a_chain_of_links_falls_from_where_it_breaks_R20(void)
{
    for (int ring = 0; ring < 2; ring++) {
        rig r;
        chain_open(&r);
        if (ring) {
            chain[0].arg = &chain[CHAIN - 1];
            inside(&r, &chain[0], link_arg);
        }
        tell(&r, &chain[CHAIN / 2], T_FAIL);
        rig_idle(&r);
        for (int i = 0; i < CHAIN; i++) {
            CHECK_ENDED(&r, &chain[i], i == CHAIN / 2 ? JZX_REASON_FAILED : JZX_REASON_LINKED);
            CHECK_EQ(chain[i].deinits, 1);
        }
        CHECK_EQ(rig_counters(&r).live, 0);
        CHECK_EQ(rig_counters(&r).watches, 0);
        play_close(&r);
    }
}

static void test_one_that_traps_stops_the_fall_R20(void)
{
    enum { WALL = 70 };
    rig r;
    chain_open(&r);
    inside(&r, &chain[WALL], trap);
    tell(&r, &chain[10], T_PANIC);
    rig_idle(&r);
    for (int i = 0; i < CHAIN; i++) {
        CHECK_EQ(is_gone(&r, &chain[i]), i < WALL);
    }
    CHECK_EQ(rig_counters(&r).live, CHAIN - WALL);
    play_close(&r);
}

static void test_a_link_joins_incarnations_not_ids_R18(void)
{
    rig r;
    family f;
    jzx_supervisor_spec policy = {.intensity = 10, .backoff_min_ms = 100};
    family_open(&r, &f, NULL, &policy, 2, 0);
    puppet *a = &f.child[0], *b = &f.child[1];
    a->arg = b;
    inside(&r, a, link_arg);
    tell(&r, a, T_FAIL);
    run_ms(&r, 10); /* at the failure, not at the end of the backoff */
    CHECK_EQ(b->fails, 1);
    CHECK_EQ(b->failed.kind, JZX_REASON_LINKED);
    run_ms(&r, 1000);
    CHECK_EQ(a->restarts, 1);
    CHECK_EQ(b->restarts, 1); /* a failure like any other for its parent */
    CHECK_EQ(rig_counters(&r).watches, 0);
    tell(&r, a, T_FAIL); /* the new lives are not linked */
    run_ms(&r, 1000);
    CHECK_EQ(a->restarts, 2);
    CHECK_EQ(b->restarts, 1);
    play_close(&r);
}

static void spawn_reluctant(jzx_context *ctx, puppet *self)
{
    puppet *child = self->arg;
    child->answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    jzx_spawn_opts opts = puppet_opts(child);
    opts.flags = JZX_SPAWN_STATELESS;
    puppet_spawn_with(ctx->loop, child, &opts);
}

static void test_the_exit_comes_at_the_failure_not_after_the_clean_up_R18(void)
{
    rig r;
    family f;
    puppet peer, slow;
    jzx_supervisor_spec policy = {.intensity = 10};
    family_open(&r, &f, NULL, &policy, 1, 0);
    puppet *a = &f.child[0];
    puppet_name(&slow, "slow");
    a->arg = &slow;
    inside(&r, a, spawn_reluctant);
    puppet_spawn(&r, &peer, "peer");
    inside(&r, &peer, trap);
    a->arg = &peer;
    inside(&r, a, link_arg);
    tell(&r, a, T_FAIL);
    rig_idle(&r);
    CHECK_STATE(&r, a, JZX_STATE_RESTARTING); /* waits for its child */
    CHECK_EQ(said_times("peer<exit a failed 7>"), 1);
    run_ms(&r, 6000);
    CHECK_STATE(&r, a, JZX_STATE_RUNNING);
    CHECK_EQ(said_times("peer<exit"), 1);
    play_close(&r);
}

static void test_a_restarted_actor_hears_no_exit_of_its_former_life_R18(void)
{
    rig r;
    family f;
    puppet peer;
    jzx_supervisor_spec policy = {.intensity = 10};
    family_open(&r, &f, NULL, &policy, 1, JZX_SPAWN_TRAP_EXITS);
    puppet *a = &f.child[0];
    puppet_spawn(&r, &peer, "peer");
    inside(&r, &peer, trap);
    a->arg = &peer;
    inside(&r, a, link_arg);
    CHECK_OK(jzx_kill(r.loop, peer.id)); /* its EXIT is queued behind the failure */
    tell(&r, a, T_FAIL);
    rig_idle(&r);
    CHECK_EQ(a->restarts, 1);
    CHECK_EQ(said_times("a<exit"), 0);
    play_close(&r);
}

static void link_and_fail(jzx_context *ctx, puppet *self)
{
    link_arg(ctx, self);
    jzx_panic(ctx, 1, NULL);
}

static void test_who_is_linked_before_its_first_turn_dies_along_R20(void)
{
    rig r;
    puppet a, b;
    play_open(&r, NULL);
    puppet_spawn(&r, &a, "a");
    rig_idle(&r);
    a.call = link_and_fail;
    tell(&r, &a, T_CALL); /* its turn comes before b's */
    puppet_spawn(&r, &b, "b");
    a.arg = &b;
    rig_idle(&r);
    CHECK_ENDED(&r, &a, JZX_REASON_PANIC);
    CHECK_EQ(b.ends, 1);
    CHECK_EQ(b.ups, b.deinits);
    CHECK_EQ(rig_counters(&r).live, 0);
    play_close(&r);
}

static void test_trapping_by_flag_outlives_a_restart_R18(void)
{
    rig r;
    family f;
    puppet peer;
    jzx_supervisor_spec policy = {.intensity = 10};
    family_open(&r, &f, NULL, &policy, 1, JZX_SPAWN_TRAP_EXITS);
    puppet *a = &f.child[0];
    tell(&r, a, T_FAIL);
    rig_idle(&r);
    puppet_spawn(&r, &peer, "peer");
    a->arg = &peer;
    inside(&r, a, link_arg);
    tell(&r, &peer, T_FAIL);
    rig_idle(&r);
    CHECK_EQ(said_times("a<exit peer failed 7>"), 1);
    CHECK_EQ(a->restarts, 1);
    play_close(&r);
}

static void test_a_parent_linked_to_its_child_hears_both_or_dies_R20(void)
{
    rig r;
    family f;
    jzx_supervisor_spec policy = {.action = JZX_ACTION_STOP};
    family_open(&r, &f, NULL, &policy, 1, 0);
    puppet *a = &f.child[0];
    a->arg = &f.p;
    inside(&r, a, link_arg);
    tell(&r, a, T_FAIL);
    rig_idle(&r);
    CHECK_ENDED(&r, a, JZX_REASON_FAILED);
    CHECK_ENDED(&r, &f.p, JZX_REASON_LINKED);
    CHECK_EQ(rig_counters(&r).live, 0);
    play_close(&r);
}

static const jzt_test tests[] = {
    {"trapping_is_decided_when_the_end_comes_R20", test_trapping_is_decided_when_the_end_comes_R20},
    {"unlink_revokes_an_exit_that_is_queued_R20", test_unlink_revokes_an_exit_that_is_queued_R20},
    {"last_words_come_before_the_exit_R6", test_last_words_come_before_the_exit_R6},
    {"a_chain_of_links_falls_from_where_it_breaks_R20",
     test_a_chain_of_links_falls_from_where_it_breaks_R20},
    {"one_that_traps_stops_the_fall_R20", test_one_that_traps_stops_the_fall_R20},
    {"a_link_joins_incarnations_not_ids_R18", test_a_link_joins_incarnations_not_ids_R18},
    {"the_exit_comes_at_the_failure_not_after_the_clean_up_R18",
     test_the_exit_comes_at_the_failure_not_after_the_clean_up_R18},
    {"a_restarted_actor_hears_no_exit_of_its_former_life_R18",
     test_a_restarted_actor_hears_no_exit_of_its_former_life_R18},
    {"who_is_linked_before_its_first_turn_dies_along_R20",
     test_who_is_linked_before_its_first_turn_dies_along_R20},
    {"trapping_by_flag_outlives_a_restart_R18", test_trapping_by_flag_outlives_a_restart_R18},
    {"a_parent_linked_to_its_child_hears_both_or_dies_R20",
     test_a_parent_linked_to_its_child_hears_both_or_dies_R20},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
