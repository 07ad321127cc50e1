/* Goal: a system stops in one way (R22): in reverse order, under one deadline, with a report that
 * says who had to be killed and what was lost; and the loop can be used again. Method: simulation
 * in virtual time, up to 10,000 actors. */
#include "family.h"

enum { WORK = 1 };

static const jzx_config in_order = {.root_stop = JZX_ROOT_STOP_IN_ORDER};

static void test_a_loop_with_nobody_in_it_is_down_at_once_R22(void)
{
    rig r;
    jzx_shutdown_report report;
    play_open(&r, NULL);
    memset(&report, 0xAA, sizeof report);
    CHECK_OK(jzx_loop_shutdown(r.loop, 0, &report));
    CHECK_EQ(report.stopped, 0);
    CHECK_EQ(report.killed, 0);
    CHECK_EQ(report.dead, 0);
    CHECK_EQ(report.in_time, 1);
    CHECK_EQ(report.named, 0);
    CHECK(report.duration_ns < MS);
    CHECK_OK(jzx_loop_shutdown(r.loop, 0, NULL));
    play_close(&r);
}

static void test_in_order_the_roots_children_stop_one_after_the_other_the_last_first_R22(void)
{
    rig r;
    puppet a, b, c;
    jzx_shutdown_report report;
    play_open(&r, &in_order);
    puppet_spawn(&r, &a, "a");
    puppet_spawn(&r, &b, "b");
    puppet_spawn(&r, &c, "c");
    rig_idle(&r);
    tell(&r, &b, WORK);
    said_clear();
    CHECK_OK(jzx_loop_shutdown(r.loop, 0, &report));
    CHECK_SAID("b:1 c.pre_stop c.post_stop c.deinit c.end(shutdown) "
               "b.pre_stop b.post_stop b.deinit b.end(shutdown) "
               "a.pre_stop a.post_stop a.deinit a.end(shutdown)");
    CHECK_EQ(report.stopped, 3);
    CHECK_EQ(report.in_time, 1);
    CHECK_EQ(report.dead, 0);
    CHECK_EQ(rig_counters(&r).live, 0);
    CHECK(jzx_loop_done(r.loop) != 0);
    play_close(&r);
}

static void defer_for_a_while(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what == JZX_SIGNAL_PRE_STOP) {
        CHECK_OK(
            jzx_send_after(ctx->loop, ctx->self, (uint32_t)self->number, NULL, 0, T_STOP, NULL));
    }
}

static void spawn_reluctant(rig *r, puppet *self, const char *name, uint64_t ms,
                            uint32_t timeout_ms)
{
    puppet_name(self, name);
    jzx_spawn_opts opts = puppet_opts(self);
    opts.stop_timeout_ms = timeout_ms;
    self->answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    self->number = ms;
    self->during = ms == 0 ? NULL : defer_for_a_while;
    puppet_spawn_with(r->loop, self, &opts);
}

static void test_an_actor_that_needs_a_while_gets_it_R22(void)
{
    rig r;
    puppet a, b;
    jzx_shutdown_report report;
    play_open(&r, &in_order);
    spawn_reluctant(&r, &a, "a", 400, 0);
    spawn_reluctant(&r, &b, "b", 300, 0);
    rig_idle(&r);
    CHECK_OK(jzx_loop_shutdown(r.loop, 2000, &report));
    CHECK_ENDED(&r, &a, JZX_REASON_NORMAL); /* it said STOP itself */
    CHECK_EQ(report.stopped, 2);
    CHECK_EQ(report.in_time, 1);
    CHECK(report.duration_ns >= 700 * MS && report.duration_ns < 720 * MS);
    play_close(&r);
}

/* Unless an order is asked for: nobody waits for anybody, and it takes as long as the slowest. */
static void test_the_roots_children_stop_together_R22(void)
{
    rig r;
    puppet a, b, c;
    jzx_shutdown_report report;
    play_open(&r, NULL);
    spawn_reluctant(&r, &a, "a", 400, 0);
    spawn_reluctant(&r, &b, "b", 300, 0);
    puppet_spawn(&r, &c, "c");
    rig_idle(&r);
    uint64_t begin = jzx_sim_now(r.sim);
    CHECK_OK(jzx_loop_shutdown(r.loop, 2000, &report));
    CHECK_ENDED(&r, &a, JZX_REASON_NORMAL);
    CHECK_ENDED(&r, &b, JZX_REASON_NORMAL);
    CHECK_ENDED(&r, &c, JZX_REASON_SHUTDOWN);
    CHECK(c.end_ns - begin < 10 * MS);
    CHECK(b.end_ns - begin >= 300 * MS && b.end_ns - begin < 310 * MS);
    CHECK_EQ(report.stopped, 3);
    CHECK_EQ(report.in_time, 1);
    CHECK(report.duration_ns >= 400 * MS && report.duration_ns < 420 * MS);
    play_close(&r);
}

/* Two that use up their time use up the same time; the others are not late for it. */
static void test_deadlines_of_the_roots_children_run_together_R22(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        rig r;
        puppet a, b, c;
        jzx_shutdown_report report;
        play_open(&r, i == 0 ? NULL : &in_order);
        spawn_reluctant(&r, &a, "a", 0, 300);
        spawn_reluctant(&r, &b, "b", 0, 200);
        spawn_reluctant(&r, &c, "c", 100, 0);
        rig_idle(&r);
        CHECK_EQ(jzx_loop_shutdown(r.loop, 5000, &report), JZX_ERR_TIMED_OUT);
        CHECK_EQ(report.killed, 2);
        CHECK_EQ(report.stopped, 1);
        uint64_t want = i == 0 ? 300 : 600;
        CHECK(report.duration_ns >= want * MS && report.duration_ns < (want + 20) * MS);
        play_close(&r);
    }
}

static void test_past_the_deadline_whoever_is_left_is_killed_and_named_R22(void)
{
    rig r;
    puppet a, b, c;
    jzx_shutdown_report report;
    play_open(&r, &in_order);
    puppet_spawn(&r, &a, "a");
    spawn_reluctant(&r, &b, "b", 0, JZX_SHUTDOWN_INFINITE);
    puppet_spawn(&r, &c, "c");
    rig_idle(&r);
    tell(&r, &a, WORK);
    uint64_t begin = jzx_sim_now(r.sim);
    CHECK_EQ(jzx_loop_shutdown(r.loop, 1000, &report), JZX_ERR_TIMED_OUT);
    CHECK_ENDED(&r, &c, JZX_REASON_SHUTDOWN);
    CHECK_EQ(a.ends + b.ends, 2);
    CHECK_EQ(b.deinits, 1);
    CHECK_EQ(a.handled, 1);
    CHECK(b.end_ns <= begin + 1005 * MS);
    CHECK_EQ(report.in_time, 0);
    CHECK_EQ(report.stopped + report.killed, 3);
    CHECK(report.killed >= 1);
    CHECK_EQ(report.named, report.killed);
    bool found = false;
    for (uint32_t i = 0; i < report.named; i++) {
        if (report.who[i].id == b.id) {
            found = true;
            CHECK_STR(report.who[i].name, "b");
            CHECK(report.who[i].reason == JZX_REASON_STOP_TIMEOUT ||
                  report.who[i].reason == JZX_REASON_KILLED);
        }
    }
    CHECK(found);
    /* The root's children have nine tenths of the time, so that the whole is in time. */
    CHECK(report.duration_ns >= 890 * MS && report.duration_ns <= 1005 * MS);
    play_close(&r);
}

static void test_one_that_runs_out_of_its_own_time_does_not_cost_the_others_theirs_R22(void)
{
    rig r;
    puppet a, b;
    jzx_shutdown_report report;
    play_open(&r, NULL);
    puppet_spawn(&r, &a, "a");
    spawn_reluctant(&r, &b, "b", 0, 200);
    rig_idle(&r);
    CHECK_EQ(jzx_loop_shutdown(r.loop, 10000, &report), JZX_ERR_TIMED_OUT);
    CHECK_ENDED(&r, &b, JZX_REASON_STOP_TIMEOUT);
    CHECK_ENDED(&r, &a, JZX_REASON_SHUTDOWN);
    CHECK_EQ(report.stopped, 1);
    CHECK_EQ(report.killed, 1);
    CHECK_EQ(report.who[0].id, b.id);
    CHECK_EQ(report.who[0].reason, JZX_REASON_STOP_TIMEOUT);
    CHECK(report.duration_ns < 300 * MS);
    play_close(&r);
}

static void test_the_default_deadline_is_thirty_seconds_and_infinite_has_none_R22(void)
{
    rig r;
    puppet a;
    jzx_shutdown_report report;
    play_open(&r, NULL);
    spawn_reluctant(&r, &a, "a", 0, JZX_SHUTDOWN_INFINITE);
    rig_idle(&r);
    CHECK_EQ(jzx_loop_shutdown(r.loop, 0, &report), JZX_ERR_TIMED_OUT);
    CHECK(report.duration_ns >= 26990 * MS && report.duration_ns <= 30010 * MS);
    play_close(&r);
    play_open(&r, NULL);
    spawn_reluctant(&r, &a, "a", 3600 * 1000, JZX_SHUTDOWN_INFINITE);
    rig_idle(&r);
    CHECK_OK(jzx_loop_shutdown(r.loop, JZX_SHUTDOWN_INFINITE, &report));
    CHECK_EQ(report.in_time, 1);
    CHECK_ENDED(&r, &a, JZX_REASON_NORMAL);
    play_close(&r);
}

/* A tree of 10,000 under 100 parents. */
enum { PARENTS = 100, EACH = 99 };
static puppet nobody;
static puppet stuck;
static uint64_t born;

static jzx_behavior_result tree_init(jzx_context *ctx, void *arg)
{
    jzx_spawn_opts opts = puppet_opts(&nobody);
    opts.init = NULL;
    opts.on_signal = NULL;
    opts.deinit = NULL;
    ctx->state = arg;
    for (int i = 0; i < EACH; i++) {
        bool hangs = born++ == PARENTS * EACH / 2;
        if (hangs) {
            jzx_spawn_opts hang = puppet_opts(&stuck);
            hang.stop_timeout_ms = JZX_SHUTDOWN_INFINITE;
            puppet_spawn_with(ctx->loop, &stuck, &hang);
            continue;
        }
        REQUIRE_OK(jzx_spawn(ctx->loop, &opts, NULL));
    }
    return JZX_BEHAVIOR_OK;
}

static void test_ten_thousand_actors_and_one_that_never_stops_end_at_the_deadline_R22(void)
{
    rig r;
    jzx_shutdown_report report;
    play_open(&r, NULL);
    puppet_name(&stuck, "stuck");
    stuck.answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    born = 0;
    nobody = (puppet){.name = "", .mute = true, .up = true};
    for (int i = 0; i < PARENTS; i++) {
        jzx_spawn_opts opts = puppet_opts(&nobody);
        opts.init = tree_init;
        opts.on_signal = NULL;
        opts.deinit = NULL;
        opts.stop_timeout_ms = JZX_SHUTDOWN_INFINITE;
        REQUIRE_OK(jzx_spawn(r.loop, &opts, NULL));
    }
    rig_idle(&r);
    CHECK_EQ(rig_counters(&r).live, PARENTS * (EACH + 1));
    CHECK_EQ(jzx_loop_shutdown(r.loop, 2000, &report), JZX_ERR_TIMED_OUT);
    CHECK_EQ(rig_counters(&r).live, 0);
    CHECK_EQ(report.stopped + report.killed, PARENTS * (EACH + 1));
    CHECK(report.killed >= 1);
    CHECK_EQ(report.in_time, 0);
    CHECK(report.named >= 1 && report.named <= JZX_SHUTDOWN_NAMES);
    CHECK_EQ(report.who[0].id, stuck.id); /* the culprit comes first */
    CHECK_STR(report.who[0].name, "stuck");
    CHECK(report.duration_ns <= 2100 * MS);
    CHECK_EQ(stuck.ends, 1);
    CHECK_EQ(stuck.deinits, 1);
    play_close(&r);
}

static void test_the_report_counts_what_nobody_handled_R22(void)
{
    rig r = rig_open_fifo(NULL);
    static int payload;
    jzx_shutdown_report report;
    jzx_spawn_opts opts = {.max_msgs = 1};
    puppet *s = puppet_start(&r, NULL, &opts);
    for (int i = 0; i < 5; i++) {
        REQUIRE_OK(jzx_send(r.loop, s->id, &payload, sizeof payload, WORK));
    }
    CHECK_OK(jzx_loop_shutdown(r.loop, 0, &report));
    CHECK_EQ(report.dead + s->handled, 5);
    CHECK_EQ(report.abandoned, report.dead); /* no drop, no drop_msg */
    CHECK(report.dead >= 4);
    CHECK_EQ(report.stopped, 1);
    rig_close(&r);
    puppet_free(s);
}

static void begin_inside(jzx_context *ctx, puppet *self)
{
    CHECK_OK(jzx_loop_begin_shutdown(ctx->loop, 1000));
    CHECK_OK(jzx_loop_begin_shutdown(ctx->loop, 1000)); /* again is fine */
    puppet *child = self->arg;
    jzx_spawn_opts late = puppet_opts(child);
    CHECK_OK(puppet_try_spawn(ctx->loop, child, &late)); /* for itself, until it stops */
}

static void test_an_actor_may_begin_it_and_run_returns_when_nobody_is_left_R22(void)
{
    rig r;
    puppet a, b, child;
    jzx_shutdown_report report;
    play_open(&r, &in_order);
    puppet_name(&child, "child");
    puppet_spawn(&r, &a, "a");
    puppet_spawn(&r, &b, "b");
    rig_idle(&r);
    a.arg = &child;
    a.call = begin_inside;
    tell(&r, &a, T_CALL);
    CHECK_OK(jzx_loop_run(r.loop));
    CHECK_EQ(rig_counters(&r).live, 0);
    CHECK_ENDED(&r, &a, JZX_REASON_SHUTDOWN);
    CHECK_ENDED(&r, &b, JZX_REASON_SHUTDOWN);
    CHECK_EQ(child.ends, 1);
    jzx_loop_shutdown_report(r.loop, &report);
    CHECK_EQ(report.stopped, 3);
    CHECK_EQ(report.in_time, 1);
    play_close(&r);
}

static void test_while_it_goes_on_nobody_new_comes_in_R22(void)
{
    rig r;
    puppet a;
    jzx_shutdown_report report;
    jzx_actor_id id = 77;
    play_open(&r, NULL);
    spawn_reluctant(&r, &a, "a", 500, 0);
    rig_idle(&r);
    CHECK_OK(jzx_loop_begin_shutdown(r.loop, 2000));
    jzx_spawn_opts opts = {.behavior = puppet_behavior};
    CHECK_EQ(jzx_spawn(r.loop, &opts, &id), JZX_ERR_STOPPING);
    CHECK_EQ(id, 77);
    run_ms(&r, 100);
    CHECK_EQ(jzx_spawn(r.loop, &opts, &id), JZX_ERR_STOPPING);
    jzx_loop_shutdown_report(r.loop, &report); /* so far */
    CHECK_EQ(report.stopped, 0);
    CHECK_OK(jzx_loop_run(r.loop));
    jzx_loop_shutdown_report(r.loop, &report);
    CHECK_EQ(report.stopped, 1);
    play_close(&r);
}

static void test_afterwards_the_loop_can_be_used_again_R22(void)
{
    rig r;
    puppet a;
    play_open(&r, NULL);
    for (int round = 0; round < 3; round++) {
        puppet_spawn(&r, &a, "a");
        tell(&r, &a, WORK);
        rig_idle(&r);
        CHECK_EQ(a.handled, 1);
        jzx_shutdown_report report;
        CHECK_OK(jzx_loop_shutdown(r.loop, 0, &report));
        CHECK_EQ(report.stopped, 1); /* of this one, not of all */
        CHECK_ENDED(&r, &a, JZX_REASON_SHUTDOWN);
    }
    play_close(&r);
}

static void test_a_second_call_can_only_shorten_the_time_R22(void)
{
    static const struct {
        uint32_t second_ms, ends_ms;
    } cases[] = {{300, 400}, {60000, 1000}, {0, 1000}, {JZX_SHUTDOWN_INFINITE, 1000}, {1, 101}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rig r;
        puppet a;
        play_open(&r, NULL);
        spawn_reluctant(&r, &a, "a", 0, JZX_SHUTDOWN_INFINITE);
        rig_idle(&r);
        uint64_t begin = jzx_sim_now(r.sim);
        CHECK_OK(jzx_loop_begin_shutdown(r.loop, 1000));
        run_ms(&r, 100);
        CHECK_OK(jzx_loop_begin_shutdown(r.loop, cases[i].second_ms));
        CHECK_OK(jzx_loop_run(r.loop));
        CHECK(a.end_ns >= begin + (cases[i].ends_ms - 10) * MS * 9 / 10);
        CHECK(a.end_ns <= begin + (cases[i].ends_ms + 10) * MS);
        play_close(&r);
    }
}

static void test_nobody_is_restarted_any_more_R22(void)
{
    rig r;
    family f;
    jzx_supervisor_spec policy = {.intensity = 100, .backoff_min_ms = 100};
    family_open(&r, &f, NULL, &policy, 3, 0);
    tell(&r, &f.child[0], T_FAIL);
    run_ms(&r, 10);
    CHECK_STATE(&r, &f.child[0], JZX_STATE_RESTARTING);
    f.child[1].panics[JZX_SIGNAL_PRE_STOP] = true;
    CHECK_OK(jzx_loop_shutdown(r.loop, 0, NULL));
    CHECK_EQ(rig_counters(&r).live, 0);
    CHECK_EQ(f.child[0].restarts + f.child[1].restarts + f.child[2].restarts, 0);
    CHECK_EQ(f.child[1].ended.kind, JZX_REASON_PANIC);
    f.child[1].panics[JZX_SIGNAL_PRE_STOP] = false;
    play_close(&r);
}

static void spawn_in_pre_stop(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what == JZX_SIGNAL_PRE_STOP) {
        puppet *child = self->arg;
        jzx_spawn_opts opts = puppet_opts(child);
        jzx_err err = puppet_try_spawn(ctx->loop, child, &opts);
        CHECK(err == JZX_OK || err == JZX_ERR_STOPPING);
        self->number = err == JZX_OK;
    }
}

static void test_a_child_born_in_the_last_moment_does_not_keep_the_system_up_R22(void)
{
    rig r;
    puppet a, child;
    play_open(&r, NULL);
    puppet_name(&child, "child");
    puppet_spawn(&r, &a, "a");
    a.arg = &child;
    a.during = spawn_in_pre_stop;
    rig_idle(&r);
    CHECK_OK(jzx_loop_shutdown(r.loop, 1000, NULL));
    CHECK_EQ(child.ends, a.number);
    CHECK_EQ(rig_counters(&r).live, 0);
    play_close(&r);
}

static const jzt_test tests[] = {
    {"a_loop_with_nobody_in_it_is_down_at_once_R22",
     test_a_loop_with_nobody_in_it_is_down_at_once_R22},
    {"in_order_the_roots_children_stop_one_after_the_other_the_last_first_R22",
     test_in_order_the_roots_children_stop_one_after_the_other_the_last_first_R22},
    {"an_actor_that_needs_a_while_gets_it_R22", test_an_actor_that_needs_a_while_gets_it_R22},
    {"the_roots_children_stop_together_R22", test_the_roots_children_stop_together_R22},
    {"deadlines_of_the_roots_children_run_together_R22",
     test_deadlines_of_the_roots_children_run_together_R22},
    {"past_the_deadline_whoever_is_left_is_killed_and_named_R22",
     test_past_the_deadline_whoever_is_left_is_killed_and_named_R22},
    {"one_that_runs_out_of_its_own_time_does_not_cost_the_others_theirs_R22",
     test_one_that_runs_out_of_its_own_time_does_not_cost_the_others_theirs_R22},
    {"the_default_deadline_is_thirty_seconds_and_infinite_has_none_R22",
     test_the_default_deadline_is_thirty_seconds_and_infinite_has_none_R22},
    {"ten_thousand_actors_and_one_that_never_stops_end_at_the_deadline_R22",
     test_ten_thousand_actors_and_one_that_never_stops_end_at_the_deadline_R22},
    {"the_report_counts_what_nobody_handled_R22", test_the_report_counts_what_nobody_handled_R22},
    {"an_actor_may_begin_it_and_run_returns_when_nobody_is_left_R22",
     test_an_actor_may_begin_it_and_run_returns_when_nobody_is_left_R22},
    {"while_it_goes_on_nobody_new_comes_in_R22", test_while_it_goes_on_nobody_new_comes_in_R22},
    {"afterwards_the_loop_can_be_used_again_R22", test_afterwards_the_loop_can_be_used_again_R22},
    {"a_second_call_can_only_shorten_the_time_R22",
     test_a_second_call_can_only_shorten_the_time_R22},
    {"nobody_is_restarted_any_more_R22", test_nobody_is_restarted_any_more_R22},
    {"a_child_born_in_the_last_moment_does_not_keep_the_system_up_R22",
     test_a_child_born_in_the_last_moment_does_not_keep_the_system_up_R22},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
