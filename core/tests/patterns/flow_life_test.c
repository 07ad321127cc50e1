/* Goal: deaths and restarts of any stage, at any step, lose nothing in silence: what was not
 * handled is with the runtime (a dead letter), in a buffer, or counted (R5, R18, R20). Method:
 * pipelines below supervisors and without, in which a stage fails or is killed at every item. */
#include "flow_fixture.h"

enum { ITEMS = 60, MAX = 8 };

/* A line below a supervisor. */
typedef struct family {
    rig r;
    line l;
    jzx_actor_id sup;
} family;

static jzx_actor_id child_id(family *f, const char *id)
{
    jzx_child_info info;
    REQUIRE_OK(jzx_supervisor_child(f->r.loop, f->sup, id, &info));
    return info.actor;
}

static family family_open(uint32_t strategy, uint32_t spawn_flags)
{
    family f = {.r = rig_open(NULL), .l = line_new(ITEMS)};
    jzx_supervisor_spec spec = {.strategy = strategy, .intensity = 100};
    jzx_child_spec children[3];
    f.l.source->opts.spawn_flags = spawn_flags;
    f.l.stage->opts.spawn_flags = spawn_flags;
    f.l.sink->opts.spawn_flags = spawn_flags;
    REQUIRE_OK(jzx_flow_child(&f.l.source->opts, "source", &children[0]));
    REQUIRE_OK(jzx_flow_child(&f.l.stage->opts, "stage", &children[1]));
    REQUIRE_OK(jzx_flow_child(&f.l.sink->opts, "sink", &children[2]));
    jzx_supervisor_init init = {.spec = &spec, .children = children, .child_count = 3};
    REQUIRE_OK(jzx_spawn_supervisor(f.r.loop, &init, &f.sup));
    REQUIRE_OK(jzx_loop_run_until_started(f.r.loop, f.sup));
    f.l.source->id = child_id(&f, "source");
    f.l.stage->id = child_id(&f, "stage");
    f.l.sink->id = child_id(&f, "sink");
    join_with(&f.r, f.l.source, f.l.stage, MAX);
    join_with(&f.r, f.l.stage, f.l.sink, MAX);
    return f;
}

static void family_close(family *f)
{
    REQUIRE_OK(jzx_stop(f->r.loop, f->sup));
    rig_idle(&f->r);
    rig_close(&f->r);
    line_free(&f->l);
}

/* The stream went on to its end, and only `lost` items are missing. */
static void family_check(family *f, uint64_t lost)
{
    rig_idle(&f->r);
    CHECK_EQ(f->l.sink->seen, ITEMS - lost);
    CHECK_EQ(f->l.sink->unordered, 0);
    CHECK_EQ(f->l.sink->done, 1);
    CHECK(station_gone(&f->r, f->l.source));
    CHECK(station_gone(&f->r, f->l.stage));
    CHECK(station_gone(&f->r, f->l.sink));
    CHECK_EQ(f->l.stage->stats.undelivered, 0);
}

static void test_a_stage_that_fails_loses_the_item_in_hand_and_no_other(void)
{
    for (uint64_t at = 1; at <= ITEMS; at += JZT_TSAN ? 19 : 7) {
        family f = family_open(JZX_ONE_FOR_ONE, 0);
        f.l.stage->fail_at = at;
        family_check(&f, 1);
        CHECK_EQ(f.l.sink->sum, sum_to(ITEMS) - at);
        CHECK_EQ(f.l.stage->inits, 2);
        CHECK_EQ(dead_items(&f.r), 1); /* the one in hand */
        family_close(&f);
    }
}

static void test_with_redelivery_it_loses_none(void)
{
    for (uint64_t at = 1; at <= ITEMS; at += JZT_TSAN ? 19 : 7) {
        family f = family_open(JZX_ONE_FOR_ONE, JZX_SPAWN_REDELIVER);
        f.l.stage->fail_at = at;
        f.l.sink->fail_at = ITEMS - at + 1;
        family_check(&f, 0);
        CHECK_EQ(f.l.sink->sum, sum_to(ITEMS));
        family_close(&f);
    }
}

static void test_a_sink_that_fails_goes_on_with_the_next_item(void)
{
    for (uint64_t at = 1; at <= ITEMS; at += JZT_TSAN ? 19 : 7) {
        family f = family_open(JZX_ONE_FOR_ONE, 0);
        f.l.sink->fail_at = at;
        family_check(&f, 1);
        CHECK_EQ(f.l.sink->sum, sum_to(ITEMS) - at);
        family_close(&f);
    }
}

static jzx_behavior_result count_and_fail(jzx_flow *flow, uint32_t n)
{
    station *me = flow->state;
    if (me->fail_at != 0 && me->next >= me->fail_at) {
        me->fail_at = 0;
        jzx_panic(flow->ctx, 3, "source");
    }
    return count_up(flow, n);
}

static void test_a_source_that_fails_is_asked_again(void)
{
    for (uint64_t at = 1; at < ITEMS - MAX; at += JZT_TSAN ? 19 : 7) {
        family f = family_open(JZX_ONE_FOR_ONE, 0);
        f.l.source->opts.on_demand = count_and_fail;
        f.l.source->fail_at = at;
        family_check(&f, 0);
        CHECK_EQ(f.l.source->inits, 2);
        family_close(&f);
    }
}

static void test_all_of_them_restarted_at_once_connect_again(void)
{
    static const uint32_t strategies[] = {JZX_ONE_FOR_ALL, JZX_REST_FOR_ONE};
    for (size_t s = 0; s < COUNT_OF(strategies); s++) {
        for (uint64_t at = 1; at <= ITEMS; at += JZT_TSAN ? 19 : 7) {
            family f = family_open(strategies[s], 0);
            f.l.stage->fail_at = at;
            family_check(&f, 1);
            CHECK_EQ(f.l.source->inits, strategies[s] == JZX_ONE_FOR_ALL ? 2 : 1);
            CHECK_EQ(f.l.sink->inits, 2);
            CHECK_EQ(dead_items(&f.r), 1); /* the one in hand */
            family_close(&f);
        }
    }
}

/* Kills one child after each number of ticks; the supervisor takes it for a failure. */
static void test_a_kill_at_any_moment_is_survived(void)
{
    for (int steps = 0; steps < 30; steps += JZT_TSAN ? 5 : 1) {
        for (int who = 0; who < 3; who++) {
            family f = family_open(JZX_ONE_FOR_ONE, 0);
            const station *victims[] = {f.l.source, f.l.stage, f.l.sink};
            for (int i = 0; i < steps; i++) {
                REQUIRE_OK(jzx_loop_step(f.r.loop, 0));
            }
            bool was_alive = !station_gone(&f.r, victims[who]);
            if (was_alive) {
                REQUIRE_OK(jzx_kill(f.r.loop, victims[who]->id));
            }
            family_check(&f, 0);
            CHECK_EQ(f.l.sink->sum, sum_to(ITEMS));
            family_close(&f);
        }
    }
}

static void test_a_queue_that_is_dropped_at_a_restart_is_dead_letters(void)
{
    family f = family_open(JZX_ONE_FOR_ONE, JZX_SPAWN_DROP_QUEUE);
    f.l.sink->fail_at = ITEMS / 2;
    rig_idle(&f.r);
    CHECK_EQ(f.l.sink->done, 1);
    CHECK_EQ(f.l.sink->unordered, 0);
    CHECK_EQ(f.l.sink->seen + dead_items(&f.r), ITEMS);
    CHECK(station_gone(&f.r, f.l.sink) && station_gone(&f.r, f.l.source));
    family_close(&f);
}

static jzx_behavior_result fail_first_done(jzx_flow *flow)
{
    station *me = flow->state;
    return me->done++ == 0 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

static void test_an_end_that_fails_is_told_again(void)
{
    family f = family_open(JZX_ONE_FOR_ONE, 0);
    f.l.stage->opts.on_done = fail_first_done;
    family_check(&f, 0);
    CHECK_EQ(f.l.stage->done, 2);
    family_close(&f);
}

/* Without a supervisor: gone is gone. */

static void test_when_a_consumer_dies_the_others_take_the_rest(void)
{
    for (int steps = 0; steps < 25; steps += JZT_TSAN ? 4 : 1) {
        rig r = rig_open(NULL);
        station *source = source_new(500);
        station *sinks[3];
        station_spawn(&r, source);
        for (int i = 0; i < 3; i++) {
            sinks[i] = station_new(JZX_FLOW_SINK);
            station_spawn(&r, sinks[i]);
            join_with(&r, source, sinks[i], MAX);
        }
        for (int i = 0; i < steps; i++) {
            REQUIRE_OK(jzx_loop_step(r.loop, 0));
        }
        bool kill = !station_gone(&r, sinks[1]);
        if (kill) {
            REQUIRE_OK(jzx_kill(r.loop, sinks[1]->id));
        }
        rig_idle(&r);
        CHECK_EQ(sinks[0]->seen + sinks[1]->seen + sinks[2]->seen + dead_items(&r), 500);
        CHECK_EQ(source->stats.sent, 500);
        CHECK(station_gone(&r, source));
        rig_close(&r);
        check_kept(source);
        for (int i = 0; i < 3; i++) {
            free(sinks[i]);
        }
        free(source);
    }
}

static void test_what_a_dead_consumer_did_not_ask_for_waits_for_the_next(void)
{
    rig r = rig_open(NULL);
    line l = line_new(ITEMS);
    l.sink->opts.flags = 0;
    station_spawn(&r, l.source);
    station_spawn(&r, l.sink);
    join_with(&r, l.source, l.sink, MAX);
    l.sink->fail_at = 5;
    rig_idle(&r);
    CHECK(station_gone(&r, l.sink));
    CHECK_EQ(l.source->losses, 1);
    CHECK_EQ(l.source->lost_reason, JZX_REASON_FAILED);
    CHECK(!station_gone(&r, l.source));
    station_spawn(&r, l.stage);
    station *second = station_new(JZX_FLOW_SINK);
    station_spawn(&r, second);
    join_with(&r, l.source, l.stage, MAX);
    join_with(&r, l.stage, second, MAX);
    rig_idle(&r);
    CHECK_EQ(second->done, 1);
    CHECK_EQ(second->last, ITEMS);
    CHECK_EQ(l.sink->seen + dead_items(&r) + second->seen, ITEMS);
    rig_close(&r);
    line_free(&l);
    free(second);
}

static void test_a_lost_producer_is_waited_for_counts_as_done_or_is_a_failure(void)
{
    for (uint32_t policy = JZX_FLOW_LOSS_WAIT; policy <= JZX_FLOW_LOSS_FAIL; policy++) {
        rig r = rig_open(NULL);
        line l = line_new(0);
        l.source->opts.on_demand = count_and_fail;
        l.source->fail_at = 20;
        l.stage->opts.on_loss = policy;
        l.sink->opts.on_loss = policy;
        line_spawn(&r, &l, MAX);
        rig_idle(&r);
        CHECK_EQ(l.stage->losses, 1);
        CHECK_EQ(l.stage->lost_reason, JZX_REASON_PANIC);
        CHECK_EQ(station_gone(&r, l.stage), policy != JZX_FLOW_LOSS_WAIT);
        CHECK_EQ(station_gone(&r, l.sink), policy != JZX_FLOW_LOSS_WAIT);
        CHECK_EQ(l.stage->done, policy == JZX_FLOW_LOSS_END ? 1 : 0);
        CHECK_EQ(l.sink->done, policy == JZX_FLOW_LOSS_END ? 1 : 0);
        CHECK_EQ(l.sink->losses, policy == JZX_FLOW_LOSS_FAIL ? 1 : 0);
        /* What waited in the failed sink's mailbox is dead; nothing else is missing. */
        if (policy == JZX_FLOW_LOSS_WAIT) {
            CHECK_EQ(l.sink->seen, l.source->next);
            station *second = source_new(10);
            station_spawn(&r, second);
            join_with(&r, second, l.stage, MAX);
            rig_idle(&r);
            CHECK_EQ(l.sink->seen, l.source->next + 10);
            CHECK_EQ(l.sink->done, 1);
            free(second);
        }
        rig_close(&r);
        line_free(&l);
    }
}

/* A source that defers its stop, closed to all sends, and only then gives what it was asked for:
 * the demand that follows is refused, and then the source is gone. */
typedef struct leaver {
    station s;
    jzx_flow *flow;
} leaver;

static jzx_behavior_result give_nothing(jzx_flow *flow, uint32_t n)
{
    (void)flow;
    (void)n;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result leaver_behavior(jzx_context *ctx, const jzx_message *msg)
{
    leaver *me = ctx->state;
    jzx_behavior_result result = JZX_BEHAVIOR_OK;
    (void)jzx_flow_handle(me->flow, ctx, msg, &result);
    return msg->kind == JZX_KIND_TIMER ? JZX_BEHAVIOR_STOP : result;
}

static jzx_behavior_result leaver_signal(jzx_context *ctx, const jzx_signal *signal)
{
    leaver *me = ctx->state;
    jzx_behavior_result result = JZX_BEHAVIOR_OK;
    if (jzx_flow_signal(me->flow, ctx, signal, &result) || signal->kind != JZX_SIGNAL_PRE_STOP) {
        return result;
    }
    CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 5, NULL, 0, 1, NULL));
    for (uint32_t left = jzx_flow_demand(me->flow); left > 0; left--) {
        CHECK_OK(jzx_flow_emit_u64(me->flow, ++me->s.next));
    }
    return JZX_BEHAVIOR_DEFER;
}

static jzx_behavior_result leaver_init(jzx_context *ctx, void *arg)
{
    leaver *me = arg;
    ctx->state = me;
    return jzx_flow_open(ctx, &me->s.opts, &me->flow) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                : JZX_BEHAVIOR_FAIL;
}

static void leaver_deinit(jzx_context *ctx)
{
    leaver *me = ctx->state;
    jzx_flow_close(me->flow, ctx);
}

static void test_a_producer_that_refuses_demand_and_ends_keeps_nobody_alive(void)
{
    rig r = rig_open(NULL);
    line l = line_new(0);
    leaver *source = calloc(1, sizeof *source);
    REQUIRE(source != NULL);
    source->s = *l.source;
    source->s.opts.arg = source;
    source->s.opts.stats = &source->s.stats;
    source->s.opts.on_demand = give_nothing;
    l.stage->opts.on_loss = JZX_FLOW_LOSS_END;
    jzx_spawn_opts spawn = {.behavior = leaver_behavior,
                            .init = leaver_init,
                            .deinit = leaver_deinit,
                            .on_signal = leaver_signal,
                            .state = source};
    REQUIRE_OK(jzx_spawn(r.loop, &spawn, &source->s.id));
    station_spawn(&r, l.stage);
    station_spawn(&r, l.sink);
    join_with(&r, &source->s, l.stage, MAX);
    join_with(&r, l.stage, l.sink, MAX);
    rig_idle(&r);
    CHECK_EQ(source->s.stats.asked, MAX);
    REQUIRE_OK(jzx_stop(r.loop, source->s.id));
    REQUIRE_OK(jzx_kit_run(r.kit, 50));
    CHECK(rig_counters(&r).refused[JZX_REFUSED_STOPPING] > 0); /* it was as it should be */
    CHECK_EQ(l.sink->seen, MAX);
    CHECK_EQ(l.stage->losses, 1);
    CHECK_EQ(l.sink->done, 1);
    CHECK(station_gone(&r, l.stage) && station_gone(&r, l.sink));
    rig_close(&r);
    line_free(&l);
    free(source);
}

static void test_who_is_gone_cannot_be_connected(void)
{
    rig r = rig_open(NULL);
    station *sink = station_new(JZX_FLOW_SINK);
    station *source = source_new(10);
    station_spawn(&r, source);
    station_spawn(&r, sink);
    REQUIRE_OK(jzx_kill(r.loop, sink->id)); /* before init */
    rig_idle(&r);
    CHECK_EQ(sink->inits, 0);
    CHECK_EQ(sink->deinits, 0);
    CHECK_EQ(jzx_flow_connect(r.loop, source->id, sink->id, NULL), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_flow_connect(r.loop, sink->id, source->id, NULL), JZX_ERR_NO_SUCH_ACTOR);
    rig_close(&r);
    free(sink);
    free(source);
}

static void test_a_loop_that_is_destroyed_under_way_leaks_nothing(void)
{
    for (int steps = 0; steps < 40; steps += 3) {
        rig r = rig_open(NULL);
        line l = line_new(0);
        line_spawn(&r, &l, MAX);
        for (int i = 0; i < steps; i++) {
            REQUIRE_OK(jzx_loop_step(r.loop, 0));
        }
        rig_close(&r);
        line_free(&l);
    }
}

static const jzt_test tests[] = {
    {"a_stage_that_fails_loses_the_item_in_hand_and_no_other_R18",
     test_a_stage_that_fails_loses_the_item_in_hand_and_no_other},
    {"with_redelivery_it_loses_none_R18", test_with_redelivery_it_loses_none},
    {"a_sink_that_fails_goes_on_with_the_next_item_R18",
     test_a_sink_that_fails_goes_on_with_the_next_item},
    {"a_source_that_fails_is_asked_again_R18", test_a_source_that_fails_is_asked_again},
    {"all_of_them_restarted_at_once_connect_again_R18",
     test_all_of_them_restarted_at_once_connect_again},
    {"a_kill_at_any_moment_is_survived_R18", test_a_kill_at_any_moment_is_survived},
    {"a_queue_that_is_dropped_at_a_restart_is_dead_letters_R18",
     test_a_queue_that_is_dropped_at_a_restart_is_dead_letters},
    {"an_end_that_fails_is_told_again", test_an_end_that_fails_is_told_again},
    {"when_a_consumer_dies_the_others_take_the_rest_R20",
     test_when_a_consumer_dies_the_others_take_the_rest},
    {"what_a_dead_consumer_did_not_ask_for_waits_for_the_next",
     test_what_a_dead_consumer_did_not_ask_for_waits_for_the_next},
    {"a_lost_producer_is_waited_for_counts_as_done_or_is_a_failure",
     test_a_lost_producer_is_waited_for_counts_as_done_or_is_a_failure},
    {"a_producer_that_refuses_demand_and_ends_keeps_nobody_alive",
     test_a_producer_that_refuses_demand_and_ends_keeps_nobody_alive},
    {"who_is_gone_cannot_be_connected", test_who_is_gone_cannot_be_connected},
    {"a_loop_that_is_destroyed_under_way_leaks_nothing",
     test_a_loop_that_is_destroyed_under_way_leaks_nothing},
};

int main(int argc, char **argv)
{
    return run_worlds(tests, COUNT_OF(tests), argc, argv);
}
