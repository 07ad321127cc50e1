/* Goal: the way out: stop, drained stop, kill and deferred stop in every state, deadlines nested in
 * deadlines, children before their parent (R16), and what ends exactly once whatever is asked for
 * how often. Method: simulation in virtual time; actors write a journal. */
#include "puppet.h"

enum { WORK = 1, MORE = 2, LATE = 3 };

static void test_death_has_one_order_and_the_parent_hears_last_R16(void)
{
    rig r;
    puppet a;
    play_open(&r, NULL);
    puppet_spawn(&r, &a, "a");
    tell(&r, &a, WORK);
    tell(&r, &a, T_SELF_STOP);
    tell(&r, &a, MORE);
    rig_idle(&r);
    CHECK_SAID("a.init a.pre_start a.post_start a:1 a:self_stop a.pre_stop a.post_stop a.deinit "
               "a.end(shutdown)");
    CHECK_DEAD(&r, DEAD(JZX_DEAD_STOPPED, MORE));
    CHECK_ENDED(&r, &a, JZX_REASON_SHUTDOWN);
    CHECK_EQ(jzx_stop(r.loop, a.id), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_stop_drained(r.loop, a.id), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_kill(r.loop, a.id), JZX_ERR_NO_SUCH_ACTOR);
    play_close(&r);
}

/* The states a plain actor passes through, each with what brings it there and what holds there. */
typedef enum moment { CREATED, IN_START, RUNNING, DEFERRED, STOPPING_NOW, MOMENTS } moment;
typedef jzx_err (*way_fn)(jzx_loop *loop, jzx_actor_id id);
static const way_fn ways[] = {jzx_stop, jzx_stop_drained, jzx_kill};
enum { STOP, DRAIN, KILL, WAYS };

static way_fn now_end;

static void end_self_once(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what == IN_INIT || what == JZX_SIGNAL_PRE_START) {
        CHECK_OK(now_end(ctx->loop, self->id));
    }
}

static void spawn_reluctant(jzx_context *ctx, puppet *self)
{
    puppet *child = self->arg;
    child->answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    jzx_spawn_opts opts = puppet_opts(child);
    puppet_spawn_with(ctx->loop, child, &opts);
}

/* Brings the actor to the moment at which the end is asked for. */
static void bring_to(rig *r, puppet *a, puppet *child, moment when)
{
    if (when == CREATED) {
        CHECK_STATE(r, a, JZX_STATE_CREATED);
    } else if (when == IN_START) {
        a->during = end_self_once;
        rig_idle(r);
        a->during = NULL;
    } else if (when == RUNNING) {
        rig_idle(r);
        CHECK_STATE(r, a, JZX_STATE_RUNNING);
    } else if (when == DEFERRED) {
        a->answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
        rig_idle(r);
        CHECK_OK(jzx_stop(r->loop, a->id));
        rig_idle(r);
        CHECK_STATE(r, a, JZX_STATE_RUNNING);
    } else {
        a->arg = child;
        rig_idle(r);
        inside(r, a, spawn_reluctant);
        CHECK_OK(jzx_stop(r->loop, a->id));
        rig_idle(r);
        CHECK_STATE(r, a, JZX_STATE_STOPPING);
    }
}

static uint32_t reason_of(moment when, int way)
{
    if (way == KILL) {
        return JZX_REASON_KILLED;
    }
    /* A second request changes nothing: the deferred one runs into its deadline. */
    return when == DEFERRED ? JZX_REASON_STOP_TIMEOUT : JZX_REASON_SHUTDOWN;
}

static void check_end_at(moment when, int way)
{
    rig r;
    puppet a, child;
    play_open(&r, NULL);
    puppet_name(&child, "child");
    puppet_spawn(&r, &a, "a");
    now_end = ways[way];
    bring_to(&r, &a, &child, when);
    if (when != IN_START) {
        for (int times = 0; times < 3; times++) {
            CHECK_OK(ways[way](r.loop, a.id));
        }
        CHECK_EQ(jzx_send_u64(r.loop, a.id, 0, LATE), JZX_ERR_STOPPING);
        rig_idle(&r);
    }
    run_ms(&r, 6000);
    CHECK_ENDED(&r, &a, reason_of(when, way));
    /* To drain what is queued before the first turn it has to start. */
    CHECK_EQ(a.ups, when == CREATED && way != DRAIN ? 0 : 1);
    CHECK_EQ(a.deinits, a.ups);
    CHECK(said_times("a.pre_stop") <= 1);
    CHECK_EQ(said_times("a.post_stop"), way == KILL || when == DEFERRED ? 0 : a.ups);
    CHECK_EQ(child.ends, child.ups);
    CHECK_EQ(rig_counters(&r).live, 0);
    play_close(&r);
}

static void test_every_way_to_end_works_in_every_state_and_ends_once_R16(void)
{
    for (moment when = CREATED; when < MOMENTS; when++) {
        for (int way = STOP; way < WAYS && jzt_failures() == 0; way++) {
            check_end_at(when, way);
            if (jzt_failures() > 0) {
                fprintf(stderr, "  moment %d, way %d; the journal: %s\n", (int)when, way, said);
            }
        }
    }
}

static void test_a_deferred_stop_finishes_what_is_queued_and_takes_nothing_new_R15(void)
{
    static const struct {
        uint32_t tag, kind;
    } cases[] = {{T_STOP, JZX_REASON_NORMAL}, /* its own word is the reason */
                 {T_SELF_STOP, JZX_REASON_SHUTDOWN},
                 {T_FAIL, JZX_REASON_FAILED},
                 {T_PANIC, JZX_REASON_PANIC},
                 {T_SELF_KILL, JZX_REASON_KILLED}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rig r;
        puppet a;
        play_open(&r, NULL);
        puppet_spawn(&r, &a, "a");
        a.answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
        rig_idle(&r);
        REQUIRE_OK(jzx_send_after(r.loop, a.id, 100, NULL, 0, cases[i].tag, NULL));
        tell(&r, &a, WORK);
        CHECK_OK(jzx_stop(r.loop, a.id));
        CHECK_EQ(jzx_send_u64(r.loop, a.id, 0, LATE), JZX_ERR_STOPPING);
        run_ms(&r, 50);
        CHECK_STATE(&r, &a, JZX_STATE_RUNNING);
        CHECK_EQ(a.handled, 1);
        CHECK_EQ(said_times("a.pre_stop"), 1);
        jzx_actor_facts facts;
        REQUIRE_OK(jzx_actor_inspect(r.loop, a.id, &facts));
        CHECK_EQ(facts.stopping, 1);
        CHECK_OK(jzx_stop(r.loop, a.id)); /* asking again does not hurry it */
        run_ms(&r, 30);
        CHECK_STATE(&r, &a, JZX_STATE_RUNNING);
        run_ms(&r, 50); /* its timer says the word */
        CHECK_ENDED(&r, &a, cases[i].kind);
        CHECK_EQ(said_times("a.pre_stop"), 1);
        CHECK_EQ(said_times("a.post_stop"), cases[i].kind == JZX_REASON_KILLED ? 0 : 1);
        CHECK_EQ(a.deinits, 1);
        play_close(&r);
    }
}

static void test_a_stop_that_takes_too_long_is_killed_at_its_deadline_R16(void)
{
    static const struct {
        uint32_t given_ms, real_ms;
    } cases[] = {{0, 5000}, {1, 1}, {250, 250}, {60000, 60000}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rig r;
        puppet a;
        play_open(&r, NULL);
        puppet_name(&a, "a");
        jzx_spawn_opts opts = puppet_opts(&a);
        opts.stop_timeout_ms = cases[i].given_ms;
        puppet_spawn_with(r.loop, &a, &opts);
        a.answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
        rig_idle(&r);
        uint64_t begin = jzx_sim_now(r.sim);
        CHECK_OK(jzx_stop(r.loop, a.id));
        said_clear();
        run_ms(&r, cases[i].real_ms + 10);
        CHECK_SAID("a.pre_stop a.deinit a.end(stop_timeout)");
        CHECK_ENDED(&r, &a, JZX_REASON_STOP_TIMEOUT);
        CHECK(a.end_ns >= begin + cases[i].real_ms * MS);
        CHECK(a.end_ns <= begin + (cases[i].real_ms + 3) * MS);
        CHECK_EQ(rig_counters(&r).timers, 0);
        play_close(&r);
    }
}

static void test_brutal_is_killed_at_once_and_infinite_is_waited_for_R16(void)
{
    rig r;
    puppet brutal, patient;
    play_open(&r, NULL);
    puppet_name(&brutal, "brutal");
    puppet_name(&patient, "patient");
    jzx_spawn_opts opts = puppet_opts(&brutal);
    opts.stop_timeout_ms = JZX_SHUTDOWN_BRUTAL;
    puppet_spawn_with(r.loop, &brutal, &opts);
    opts = puppet_opts(&patient);
    opts.stop_timeout_ms = JZX_SHUTDOWN_INFINITE;
    puppet_spawn_with(r.loop, &patient, &opts);
    brutal.answer[JZX_SIGNAL_PRE_STOP] = patient.answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    rig_idle(&r);
    said_clear();
    CHECK_OK(jzx_stop(r.loop, brutal.id));
    rig_idle(&r);
    CHECK_SAID("brutal.deinit brutal.end(killed)");
    CHECK_OK(jzx_stop(r.loop, patient.id));
    run_ms(&r, UINT64_C(24) * 3600 * 1000);
    CHECK_STATE(&r, &patient, JZX_STATE_RUNNING);
    CHECK_OK(jzx_kill(r.loop, patient.id));
    rig_idle(&r);
    CHECK_ENDED(&r, &patient, JZX_REASON_KILLED);
    play_close(&r);
}

/* A chain: each spawns the next one in its init. */
enum { DEPTH = 4 };

static void spawn_next(jzx_context *ctx, puppet *self, uint32_t what)
{
    puppet *next = self->arg;
    if (what == IN_INIT && next != NULL) {
        jzx_spawn_opts opts = puppet_opts(next);
        opts.stop_timeout_ms = (uint32_t)next->number;
        puppet_spawn_with(ctx->loop, next, &opts);
    }
}

static void chain_open(rig *r, puppet chain[DEPTH], uint32_t timeout_ms)
{
    static const char *const names[DEPTH] = {"a", "b", "c", "d"};
    play_open(r, NULL);
    for (int i = 0; i < DEPTH; i++) {
        puppet_name(&chain[i], names[i]);
        chain[i].number = timeout_ms;
        chain[i].during = spawn_next;
        chain[i].arg = i + 1 < DEPTH ? &chain[i + 1] : NULL;
    }
    jzx_spawn_opts opts = puppet_opts(&chain[0]);
    opts.stop_timeout_ms = timeout_ms;
    puppet_spawn_with(r->loop, &chain[0], &opts);
    rig_idle(r);
    CHECK_STATE(r, &chain[DEPTH - 1], JZX_STATE_RUNNING);
    said_clear();
}

static void test_children_are_gone_before_their_parent_cleans_up_R16(void)
{
    rig r;
    puppet chain[DEPTH];
    chain_open(&r, chain, 0);
    CHECK_OK(jzx_stop(r.loop, chain[0].id));
    rig_idle(&r);
    CHECK(said_before("a.pre_stop", "b.pre_stop"));
    CHECK(said_before("b.pre_stop", "c.pre_stop"));
    CHECK(said_before("d.end(shutdown)", "c.post_stop"));
    CHECK(said_before("c.end(shutdown)", "b.post_stop"));
    CHECK(said_before("b.end(shutdown)", "a.post_stop"));
    CHECK_ENDED(&r, &chain[0], JZX_REASON_SHUTDOWN);
    play_close(&r);
}

/* The trap: with equal deadlines the grandparent would kill the parent in the very moment in which
 * the parent would have killed the child that hangs. */
static void test_of_nested_equal_deadlines_only_the_one_that_hangs_is_killed_R16(void)
{
    rig r;
    puppet chain[DEPTH];
    chain_open(&r, chain, 1000);
    chain[DEPTH - 1].answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    uint64_t begin = jzx_sim_now(r.sim);
    CHECK_OK(jzx_stop(r.loop, chain[0].id));
    run_ms(&r, 1100);
    CHECK_ENDED(&r, &chain[DEPTH - 1], JZX_REASON_STOP_TIMEOUT);
    for (int i = 0; i < DEPTH - 1; i++) {
        CHECK_ENDED(&r, &chain[i], JZX_REASON_SHUTDOWN);
        CHECK(chain[i].end_ns < begin + 1000 * MS);
        CHECK_EQ(chain[i].deinits, 1);
    }
    CHECK_EQ(said_times("post_stop"), DEPTH - 1);
    play_close(&r);
}

static void test_a_child_never_has_more_time_than_its_parent_has_left_R16(void)
{
    rig r;
    puppet chain[2];
    play_open(&r, NULL);
    puppet_name(&chain[0], "a");
    puppet_name(&chain[1], "b");
    chain[0].during = spawn_next;
    chain[0].arg = &chain[1];
    chain[1].number = JZX_SHUTDOWN_INFINITE;
    chain[1].answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    jzx_spawn_opts opts = puppet_opts(&chain[0]);
    opts.stop_timeout_ms = 300;
    puppet_spawn_with(r.loop, &chain[0], &opts);
    rig_idle(&r);
    uint64_t begin = jzx_sim_now(r.sim);
    CHECK_OK(jzx_stop(r.loop, chain[0].id));
    run_ms(&r, 400);
    CHECK_ENDED(&r, &chain[1], JZX_REASON_STOP_TIMEOUT);
    CHECK_ENDED(&r, &chain[0], JZX_REASON_SHUTDOWN);
    CHECK(chain[0].end_ns < begin + 300 * MS);
    play_close(&r);
}

static void test_a_kill_takes_the_whole_tree_without_asking_R16(void)
{
    rig r;
    puppet chain[DEPTH];
    chain_open(&r, chain, 0);
    for (int i = 0; i < DEPTH; i++) {
        chain[i].answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    }
    CHECK_OK(jzx_kill(r.loop, chain[1].id));
    rig_idle(&r);
    for (int i = 1; i < DEPTH; i++) {
        CHECK_ENDED(&r, &chain[i], JZX_REASON_KILLED);
        CHECK_EQ(chain[i].deinits, 1);
    }
    CHECK_EQ(said_times("pre_stop") + said_times("post_stop"), 0);
    CHECK(said_before("d.end(killed)", "c.deinit"));
    CHECK(said_before("c.end(killed)", "b.deinit"));
    CHECK(said_before("b.end(killed)", "a<child_failed b killed>"));
    CHECK_STATE(&r, &chain[0], JZX_STATE_RUNNING);
    play_close(&r);
}

static void test_a_parent_that_fails_takes_its_children_along_R16(void)
{
    rig r;
    puppet chain[DEPTH];
    chain_open(&r, chain, 0);
    tell(&r, &chain[0], T_PANIC);
    rig_idle(&r);
    CHECK_ENDED(&r, &chain[0], JZX_REASON_PANIC);
    for (int i = 1; i < DEPTH; i++) {
        CHECK_ENDED(&r, &chain[i], JZX_REASON_SHUTDOWN);
    }
    CHECK_EQ(said_times("a.pre_stop"), 0); /* it failed: only POST_STOP and deinit */
    CHECK(said_before("b.end(shutdown)", "a.post_stop"));
    CHECK(said_before("a.post_stop", "a.deinit"));
    play_close(&r);
}

enum { BROOD = 5 };
static puppet brood[BROOD];

static void spawn_brood(jzx_context *ctx, puppet *self)
{
    static const char *const names[BROOD] = {"c0", "c1", "c2", "c3", "c4"};
    (void)self;
    for (int i = 0; i < BROOD; i++) {
        puppet_name(&brood[i], names[i]);
        jzx_spawn_opts opts = puppet_opts(&brood[i]);
        opts.flags = i == 3 ? JZX_SPAWN_QUIET : 0;
        puppet_spawn_with(ctx->loop, &brood[i], &opts);
    }
}

static void test_children_are_listed_in_the_order_they_were_started_R19(void)
{
    rig r;
    puppet a;
    jzx_actor_id ids[BROOD + 1];
    play_open(&r, NULL);
    puppet_spawn(&r, &a, "a");
    inside(&r, &a, spawn_brood);
    CHECK_EQ(jzx_actor_children(r.loop, a.id, ids, BROOD + 1), BROOD);
    for (int i = 0; i < BROOD; i++) {
        CHECK_EQ(ids[i], brood[i].id);
    }
    CHECK_EQ(jzx_actor_children(r.loop, a.id, ids, 2), BROOD);
    CHECK_EQ(jzx_actor_children(r.loop, JZX_NOBODY, ids, 1), 1);
    CHECK_EQ(ids[0], a.id);
    said_clear();
    tell(&r, &brood[1], T_STOP);
    rig_idle(&r);
    CHECK_EQ(said_times("a<child_ended c1 normal>"), 1);
    tell(&r, &brood[3], T_STOP); /* quiet: a normal end is nobody's news */
    rig_idle(&r);
    CHECK_ENDED(&r, &brood[3], JZX_REASON_NORMAL);
    CHECK_EQ(said_times("a<child_ended c3"), 0);
    tell(&r, &brood[2], T_FAIL);
    rig_idle(&r);
    CHECK_EQ(said_times("a<child_failed c2 failed 7>"), 1);
    CHECK_EQ(jzx_actor_children(r.loop, a.id, ids, BROOD), 2);
    CHECK(ids[0] == brood[0].id && ids[1] == brood[4].id);
    jzx_actor_facts facts;
    REQUIRE_OK(jzx_actor_inspect(r.loop, a.id, &facts));
    CHECK_EQ(facts.children, 2);
    play_close(&r);
}

static void try_everything(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what != JZX_SIGNAL_POST_STOP && what != IN_DEINIT) {
        return;
    }
    puppet *other = self->arg;
    jzx_spawn_opts opts = {.behavior = puppet_behavior};
    jzx_supervisor_spec policy = {0};
    CHECK_EQ(jzx_spawn(ctx->loop, &opts, NULL), JZX_ERR_STOPPING);
    CHECK_EQ(jzx_send_after(ctx->loop, ctx->self, 1, NULL, 0, 1, NULL), JZX_ERR_STOPPING);
    CHECK_EQ(jzx_watch(ctx->loop, other->id, 0, NULL), JZX_ERR_STOPPING);
    CHECK_EQ(jzx_link(ctx->loop, other->id), JZX_ERR_STOPPING);
    CHECK_EQ(jzx_notify_room(ctx->loop, other->id), JZX_ERR_STOPPING);
    CHECK_EQ(jzx_set_child_policy(ctx, &policy), JZX_ERR_STOPPING);
    CHECK_EQ(jzx_dead_letters_subscribe(ctx->loop), JZX_ERR_STOPPING);
    CHECK_EQ(jzx_send_u64(ctx->loop, ctx->self, 0, LATE), JZX_ERR_STOPPING);
    CHECK_OK(jzx_send_u64(ctx->loop, other->id, 0, MORE));
    CHECK_OK(jzx_stop(ctx->loop, ctx->self));
    self->number++;
}

static void test_a_dying_actor_may_send_and_nothing_else_R16(void)
{
    rig r;
    puppet a, other;
    play_open(&r, NULL);
    puppet_spawn(&r, &other, "other");
    puppet_spawn(&r, &a, "a");
    a.arg = &other;
    a.during = try_everything;
    rig_idle(&r);
    tell(&r, &a, T_STOP);
    rig_idle(&r);
    CHECK_EQ(a.number, 2);
    CHECK_EQ(other.handled, 2);
    CHECK_ENDED(&r, &a, JZX_REASON_NORMAL);
    play_close(&r);
}

static void test_hooks_that_fail_on_the_way_out_are_recorded_and_the_way_goes_on_R15(void)
{
    static const uint32_t hooks[] = {JZX_SIGNAL_PRE_STOP, JZX_SIGNAL_POST_STOP, IN_DEINIT};
    for (size_t i = 0; i < 2 * COUNT_OF(hooks); i++) {
        rig r;
        puppet a;
        uint32_t hook = hooks[i / 2];
        bool failed_before = i % 2 == 1;
        if (failed_before && hook == JZX_SIGNAL_PRE_STOP) {
            continue;
        }
        play_open(&r, NULL);
        puppet_spawn(&r, &a, "a");
        a.panics[hook] = true;
        rig_idle(&r);
        said_clear();
        tell(&r, &a, failed_before ? T_FAIL : T_SELF_STOP);
        rig_idle(&r);
        CHECK_ENDED(&r, &a, failed_before ? JZX_REASON_FAILED : JZX_REASON_PANIC);
        CHECK_EQ(a.ended.code, failed_before ? 7 : (int32_t)hook + 100);
        CHECK_EQ(a.deinits, 1);
        CHECK_EQ(said_times("a.post_stop"), 1);
        CHECK_EQ(a.fails, failed_before ? 2 : 1); /* the observer hears of each */
        play_close(&r);
    }
}

static void test_a_drained_stop_that_fails_half_way_ends_with_that_failure_R16(void)
{
    rig r;
    puppet a;
    play_open(&r, NULL);
    puppet_spawn(&r, &a, "a");
    rig_idle(&r);
    tell(&r, &a, WORK);
    tell(&r, &a, T_FAIL);
    tell(&r, &a, MORE);
    CHECK_OK(jzx_stop_drained(r.loop, a.id));
    rig_idle(&r);
    CHECK_ENDED(&r, &a, JZX_REASON_FAILED);
    CHECK_EQ(a.handled, 2);
    CHECK_EQ(a.fails, 1);
    CHECK_DEAD(&r, DEAD(JZX_DEAD_FAILED_ON, T_FAIL), DEAD(JZX_DEAD_STOPPED, MORE));
    play_close(&r);
}

static const jzt_test tests[] = {
    {"death_has_one_order_and_the_parent_hears_last_R16",
     test_death_has_one_order_and_the_parent_hears_last_R16},
    {"every_way_to_end_works_in_every_state_and_ends_once_R16",
     test_every_way_to_end_works_in_every_state_and_ends_once_R16},
    {"a_deferred_stop_finishes_what_is_queued_and_takes_nothing_new_R15",
     test_a_deferred_stop_finishes_what_is_queued_and_takes_nothing_new_R15},
    {"a_stop_that_takes_too_long_is_killed_at_its_deadline_R16",
     test_a_stop_that_takes_too_long_is_killed_at_its_deadline_R16},
    {"brutal_is_killed_at_once_and_infinite_is_waited_for_R16",
     test_brutal_is_killed_at_once_and_infinite_is_waited_for_R16},
    {"children_are_gone_before_their_parent_cleans_up_R16",
     test_children_are_gone_before_their_parent_cleans_up_R16},
    {"of_nested_equal_deadlines_only_the_one_that_hangs_is_killed_R16",
     test_of_nested_equal_deadlines_only_the_one_that_hangs_is_killed_R16},
    {"a_child_never_has_more_time_than_its_parent_has_left_R16",
     test_a_child_never_has_more_time_than_its_parent_has_left_R16},
    {"a_kill_takes_the_whole_tree_without_asking_R16",
     test_a_kill_takes_the_whole_tree_without_asking_R16},
    {"a_parent_that_fails_takes_its_children_along_R16",
     test_a_parent_that_fails_takes_its_children_along_R16},
    {"children_are_listed_in_the_order_they_were_started_R19",
     test_children_are_listed_in_the_order_they_were_started_R19},
    {"a_dying_actor_may_send_and_nothing_else_R16",
     test_a_dying_actor_may_send_and_nothing_else_R16},
    {"hooks_that_fail_on_the_way_out_are_recorded_and_the_way_goes_on_R15",
     test_hooks_that_fail_on_the_way_out_are_recorded_and_the_way_goes_on_R15},
    {"a_drained_stop_that_fails_half_way_ends_with_that_failure_R16",
     test_a_drained_stop_that_fails_half_way_ends_with_that_failure_R16},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
