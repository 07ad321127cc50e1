/* Goal: items of a pipeline arrive once, in order, and never more of them than were asked for.
 * Method: pipelines of counting stages in every world. */
#include "flow_kit.h"

static void test_a_pipeline_hands_on_every_item_once_and_in_order(void)
{
    enum { ITEMS = 1000, MAX = 10 };
    rig r = rig_open(NULL);
    line l = line_new(ITEMS);
    line_spawn(&r, &l, MAX);
    rig_idle(&r);
    CHECK_EQ(l.sink->seen, ITEMS);
    CHECK_EQ(l.sink->sum, sum_to(ITEMS));
    CHECK_EQ(l.sink->unordered + l.stage->unordered, 0);
    CHECK_EQ(l.sink->done, 1);
    CHECK_EQ(l.stage->done, 1);
    CHECK(station_gone(&r, l.source) && station_gone(&r, l.stage) && station_gone(&r, l.sink));
    CHECK_EQ(rig_counters(&r).dead, 0);
    CHECK_EQ(l.source->losses + l.stage->losses + l.sink->losses, 0);
    CHECK_EQ(l.sink->stats.unasked + l.stage->stats.unasked, 0);
    CHECK(l.source->most_asked <= MAX);
    CHECK(l.stage->deepest <= MAX && l.sink->deepest <= MAX);
    CHECK_EQ(l.source->stats.sent, ITEMS);
    rig_close(&r);
    line_free(&l);
}

static void test_nothing_is_produced_that_nobody_asked_for(void)
{
    rig r = rig_open(NULL);
    line l = line_new(0);
    station_spawn(&r, l.source);
    station_spawn(&r, l.stage);
    station_spawn(&r, l.sink);
    join_with(&r, l.source, l.stage, 10);
    rig_idle(&r);
    CHECK_EQ(l.source->next, 0); /* the stage has a producer but no consumer */
    REQUIRE_OK(jzx_stop(r.loop, l.source->id));
    rig_idle(&r);
    CHECK_EQ(l.stage->losses, 1);
    rig_close(&r);
    line_free(&l);
}

static void test_a_consumer_asks_again_only_when_few_items_are_left(void)
{
    enum { ITEMS = 1000, MAX = 20, MIN = 4 };
    rig r = rig_open(NULL);
    station *source = source_new(ITEMS);
    station *sink = station_new(JZX_FLOW_SINK);
    station_spawn(&r, source);
    station_spawn(&r, sink);
    jzx_flow_link link = {.max_demand = MAX, .min_demand = MIN};
    REQUIRE_OK(jzx_flow_connect(r.loop, source->id, sink->id, &link));
    rig_idle(&r);
    CHECK_EQ(sink->seen, ITEMS);
    /* Besides the items: demand for MAX - MIN of them at a time, and a few words at both ends. */
    CHECK(rig_counters(&r).accepted <= ITEMS + ITEMS / (MAX - MIN) + 20);
    rig_close(&r);
    free(source);
    free(sink);
}

/* Whoever runs first: a source with little to give waits for all that were connected to it. */
static void test_a_short_stream_ends_for_every_consumer_that_was_connected(void)
{
    for (uint64_t i = 0; i < 100; i++) {
        jzx_sim_opts sim = {.seed = jzt_seed() + i + 1};
        rig r = rig_open_with(NULL, &sim);
        station *source = source_new(1);
        station *sinks[3];
        station_spawn(&r, source);
        for (int k = 0; k < 3; k++) {
            sinks[k] = station_new(JZX_FLOW_SINK);
            station_spawn(&r, sinks[k]);
            join_with(&r, source, sinks[k], 4);
        }
        rig_idle(&r);
        CHECK(station_gone(&r, source));
        CHECK_EQ(sinks[0]->seen + sinks[1]->seen + sinks[2]->seen, 1);
        for (int k = 0; k < 3; k++) {
            CHECK_EQ(sinks[k]->done, 1);
            CHECK_EQ(sinks[k]->losses, 0);
        }
        rig_close(&r);
        for (int k = 0; k < 3; k++) {
            free(sinks[k]);
        }
        free(source);
    }
}

static void test_a_consumer_that_asks_for_n_gets_n(void)
{
    rig r = rig_open(NULL);
    station *source = source_new(0);
    station *sink = station_new(JZX_FLOW_SINK);
    sink->opts.on_message = ask_when_told;
    station_spawn(&r, source);
    station_spawn(&r, sink);
    sink->next = source->id;
    jzx_flow_link link = {.flags = JZX_FLOW_MANUAL};
    REQUIRE_OK(jzx_flow_connect(r.loop, source->id, sink->id, &link));
    rig_idle(&r);
    CHECK_EQ(source->next, 0);
    uint64_t wanted = 0;
    for (uint64_t n = 1; n <= 20; n++) {
        wanted += n;
        REQUIRE_OK(jzx_send_u64(r.loop, sink->id, n, 1));
        rig_idle(&r);
        CHECK_EQ(sink->seen, wanted);
        CHECK_EQ(source->next, wanted);
        CHECK_EQ((int32_t)sink->lost_reason, JZX_OK);
    }
    static const int64_t bad[] = {
        0, -1, INT32_MIN, INT64_MIN, (int64_t)JZX_FLOW_DEMAND_MAX + 1, INT64_MAX};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        REQUIRE_OK(jzx_send_u64(r.loop, sink->id, (uint64_t)bad[i], 1));
        rig_idle(&r);
        CHECK_EQ((int32_t)sink->lost_reason, JZX_ERR_BAD_DEMAND);
        CHECK_EQ(sink->seen, wanted);
    }
    sink->next = sink->id; /* not its producer */
    REQUIRE_OK(jzx_send_u64(r.loop, sink->id, 1, 1));
    rig_idle(&r);
    CHECK_EQ((int32_t)sink->lost_reason, JZX_ERR_NO_SUCH_REF);
    rig_close(&r);
    free(source);
    free(sink);
}

static void test_only_a_manual_link_is_asked_by_hand(void)
{
    rig r = rig_open(NULL);
    station *source = source_new(0);
    station *sink = station_new(JZX_FLOW_SINK);
    sink->opts.on_message = ask_when_told;
    sink->opts.on_item = NULL;
    station_spawn(&r, source);
    sink->opts.kind = JZX_FLOW_STAGE;
    station_spawn(&r, sink);
    sink->next = source->id;
    join_with(&r, source, sink, 4);
    rig_idle(&r);
    REQUIRE_OK(jzx_send_u64(r.loop, sink->id, 1, 1));
    rig_idle(&r);
    CHECK_EQ((int32_t)sink->lost_reason, JZX_ERR_BAD_DEMAND);
    CHECK_EQ(source->next, 0);
    rig_close(&r);
    free(source);
    free(sink);
}

/* A source that has its items later: by a timer, and fewer than asked for. */
static jzx_behavior_result wait_for_timer(jzx_flow *flow, uint32_t n)
{
    station *me = flow->state;
    me->most_asked = n > me->most_asked ? n : me->most_asked;
    if (me->sum == 0) {
        me->sum = 1; /* a timer is armed */
        CHECK_OK(jzx_send_after(flow->ctx->loop, flow->ctx->self, 1, NULL, 0, 1, NULL));
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result emit_on_timer(jzx_flow *flow, const jzx_message *msg)
{
    station *me = flow->state;
    if (msg->kind != JZX_KIND_TIMER) {
        return JZX_BEHAVIOR_OK;
    }
    uint32_t open = jzx_flow_demand(flow);
    for (uint32_t i = 0; i < 3 && me->next < me->total && open > 0; i++, open--) {
        CHECK_OK(jzx_flow_emit_u64(flow, ++me->next));
    }
    CHECK_EQ(jzx_flow_demand(flow), open);
    if (open == 0) {
        CHECK_EQ(jzx_flow_emit_u64(flow, 99), JZX_ERR_BUFFER_FULL);
    }
    if (me->next == me->total) {
        CHECK_OK(jzx_flow_finish(flow));
        CHECK_EQ(jzx_flow_emit_u64(flow, 99), JZX_ERR_CLOSED);
        CHECK_EQ(jzx_flow_demand(flow), 0);
        return JZX_BEHAVIOR_OK;
    }
    CHECK_OK(jzx_send_after(flow->ctx->loop, flow->ctx->self, 1, NULL, 0, 1, NULL));
    return JZX_BEHAVIOR_OK;
}

static void test_a_source_may_give_fewer_and_the_rest_later(void)
{
    rig r = rig_open(NULL);
    station *source = source_new(100);
    station *sink = station_new(JZX_FLOW_SINK);
    source->opts.on_demand = wait_for_timer;
    source->opts.on_message = emit_on_timer;
    station_spawn(&r, source);
    station_spawn(&r, sink);
    join_with(&r, source, sink, 5);
    REQUIRE_OK(jzx_loop_run(r.loop));
    CHECK_EQ(sink->seen, 100);
    CHECK_EQ(sink->sum, sum_to(100));
    CHECK_EQ(sink->done, 1);
    CHECK(source->most_asked <= 5);
    CHECK_EQ(source->stats.undelivered + source->stats.buffered, 0);
    rig_close(&r);
    free(source);
    free(sink);
}

/* 0 to k items out for one in. */
static jzx_behavior_result some_for_one(jzx_flow *flow, const jzx_message *item)
{
    station *me = flow->state;
    me->seen++;
    for (uint64_t i = 0; i < item->u64 % 4; i++) {
        CHECK_OK(jzx_flow_emit_u64(flow, ++me->next));
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result emit_the_count(jzx_flow *flow)
{
    station *me = flow->state;
    CHECK_OK(jzx_flow_emit_u64(flow, me->next + 1));
    return JZX_BEHAVIOR_OK;
}

static void test_a_stage_may_emit_none_or_many_and_one_more_at_the_end(void)
{
    enum { ITEMS = 997, MAX = 7 };
    rig r = rig_open(NULL);
    line l = line_new(ITEMS);
    l.stage->opts.on_item = some_for_one;
    l.stage->opts.on_done = emit_the_count;
    line_spawn(&r, &l, MAX);
    rig_idle(&r);
    CHECK_EQ(l.stage->seen, ITEMS);
    CHECK_EQ(l.sink->seen, l.stage->next + 1);
    CHECK_EQ(l.sink->unordered, 0);
    CHECK_EQ(l.sink->sum, sum_to(l.stage->next + 1));
    CHECK(l.sink->deepest <= MAX);
    rig_close(&r);
    line_free(&l);
}

static void test_several_consumers_share_by_turns(void)
{
    enum { SINKS = 5, ITEMS = 1000 };
    rig r = rig_open(NULL);
    station *source = source_new(ITEMS);
    station *sinks[SINKS];
    station_spawn(&r, source);
    uint64_t seen = 0;
    uint64_t sum = 0;
    for (int i = 0; i < SINKS; i++) {
        sinks[i] = station_new(JZX_FLOW_SINK);
        station_spawn(&r, sinks[i]);
        join_with(&r, source, sinks[i], 4);
    }
    rig_idle(&r);
    for (int i = 0; i < SINKS; i++) {
        seen += sinks[i]->seen;
        sum += sinks[i]->sum;
        CHECK_EQ(sinks[i]->unordered, 0);
        CHECK_EQ(sinks[i]->done, 1);
        /* On threads whoever runs asks, and gets. */
        CHECK(jzt_on_threads() || sinks[i]->seen > ITEMS / SINKS / 2);
        CHECK(sinks[i]->deepest <= 4);
    }
    CHECK_EQ(seen, ITEMS);
    CHECK_EQ(sum, sum_to(ITEMS));
    CHECK(station_gone(&r, source));
    rig_close(&r);
    for (int i = 0; i < SINKS; i++) {
        check_kept(sinks[i]);
        free(sinks[i]);
    }
    free(source);
}

static void test_one_consumer_merges_several_producers_and_waits_for_all_of_them(void)
{
    enum { SOURCES = 4 };
    rig r = rig_open(NULL);
    station *stage = station_new(JZX_FLOW_STAGE);
    station *sink = station_new(JZX_FLOW_SINK);
    station *sources[SOURCES];
    station_spawn(&r, stage);
    station_spawn(&r, sink);
    uint64_t sum = 0;
    uint64_t items = 0;
    for (uint64_t i = 0; i < SOURCES; i++) {
        sources[i] = source_new(10 + 100 * i);
        station_spawn(&r, sources[i]);
        join_with(&r, sources[i], stage, 8);
        sum += sum_to(10 + 100 * i);
        items += 10 + 100 * i;
    }
    join_with(&r, stage, sink, 6);
    rig_idle(&r);
    CHECK_EQ(sink->seen, items);
    CHECK_EQ(sink->sum, sum);
    CHECK_EQ(stage->done, 1);
    CHECK_EQ(sink->done, 1);
    CHECK(sink->deepest <= 6);
    CHECK(stage->deepest <= 8 * SOURCES);
    rig_close(&r);
    for (int i = 0; i < SOURCES; i++) {
        check_kept(sources[i]);
        free(sources[i]);
    }
    check_kept(stage);
    free(stage);
    free(sink);
}

static void test_an_idle_producer_keeps_no_other_waiting(void)
{
    rig r = rig_open(NULL);
    station *idle = source_new(0);
    idle->opts.on_demand = wait_for_timer;
    idle->sum = 1; /* never arms one */
    line l = line_new(500);
    station_spawn(&r, idle);
    station_spawn(&r, l.stage);
    join_with(&r, idle, l.stage, 4);
    station_spawn(&r, l.source);
    station_spawn(&r, l.sink);
    join_with(&r, l.source, l.stage, 4);
    join_with(&r, l.stage, l.sink, 4);
    rig_idle(&r);
    CHECK_EQ(l.sink->seen, 500);
    CHECK_EQ(l.sink->done, 0); /* the other one may still have something */
    rig_close(&r);
    line_free(&l);
    free(idle);
}

static const jzt_test tests[] = {
    {"a_pipeline_hands_on_every_item_once_and_in_order",
     test_a_pipeline_hands_on_every_item_once_and_in_order},
    {"nothing_is_produced_that_nobody_asked_for", test_nothing_is_produced_that_nobody_asked_for},
    {"a_consumer_asks_again_only_when_few_items_are_left",
     test_a_consumer_asks_again_only_when_few_items_are_left},
    {"a_short_stream_ends_for_every_consumer_that_was_connected",
     test_a_short_stream_ends_for_every_consumer_that_was_connected},
    {"a_consumer_that_asks_for_n_gets_n", test_a_consumer_that_asks_for_n_gets_n},
    {"only_a_manual_link_is_asked_by_hand", test_only_a_manual_link_is_asked_by_hand},
    {"a_source_may_give_fewer_and_the_rest_later", test_a_source_may_give_fewer_and_the_rest_later},
    {"a_stage_may_emit_none_or_many_and_one_more_at_the_end",
     test_a_stage_may_emit_none_or_many_and_one_more_at_the_end},
    {"several_consumers_share_by_turns", test_several_consumers_share_by_turns},
    {"one_consumer_merges_several_producers_and_waits_for_all_of_them",
     test_one_consumer_merges_several_producers_and_waits_for_all_of_them},
    {"an_idle_producer_keeps_no_other_waiting", test_an_idle_producer_keeps_no_other_waiting},
};

int main(int argc, char **argv)
{
    return run_worlds(tests, COUNT_OF(tests), argc, argv);
}
