/* Goal: the end of a stream reaches everybody, items are released once, and a stage may end early,
 * stay, or be an actor of one's own. Method: pipelines of counting stages in every world. */
#include "flow_kit.h"

/* Items with memory: each is released once, wherever it ends. */
static atomic_int alive; /* `drop` may run on any thread */

static void free_counted(void *data)
{
    atomic_fetch_sub(&alive, 1);
    free(data);
}

static jzx_behavior_result emit_boxes(jzx_flow *flow, uint32_t n)
{
    station *me = flow->state;
    for (uint32_t i = 0; i < n && me->next < me->total; i++) {
        me->next++;
        if (me->next % 2 == 0) {
            CHECK_OK(jzx_flow_emit_copy(flow, &me->next, sizeof me->next));
            continue;
        }
        uint64_t *box = malloc(sizeof *box);
        REQUIRE(box != NULL);
        *box = me->next;
        atomic_fetch_add(&alive, 1);
        CHECK_OK(jzx_flow_emit(flow, box, sizeof *box, free_counted));
    }
    if (me->next == me->total) {
        CHECK_OK(jzx_flow_finish(flow));
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result open_boxes(jzx_flow *flow, const jzx_message *item)
{
    station *me = flow->state;
    uint64_t value = 0;
    REQUIRE_EQ(item->len, sizeof value);
    memcpy(&value, item->data, sizeof value);
    me->seen++;
    me->sum += value;
    me->unordered += value <= me->last ? 1 : 0;
    me->last = value;
    if (value % 5 == 0) {
        uint64_t *mine = jzx_message_take(flow->ctx);
        CHECK((mine == NULL) == (value % 2 == 0)); /* copies cannot be taken */
        if (mine != NULL) {
            free_counted(mine);
        }
    }
    return JZX_BEHAVIOR_OK;
}

static void test_items_with_memory_are_released_once(void)
{
    atomic_store(&alive, 0);
    rig r = rig_open(NULL);
    line l = line_new(501);
    l.source->opts.on_demand = emit_boxes;
    l.stage->opts.on_item = NULL; /* passes everything on */
    l.sink->opts.on_item = open_boxes;
    line_spawn(&r, &l, 6);
    rig_idle(&r);
    CHECK_EQ(l.sink->seen, 501);
    CHECK_EQ(l.sink->sum, sum_to(501));
    CHECK_EQ(l.sink->unordered, 0);
    CHECK_EQ(atomic_load(&alive), 0);
    rig_close(&r);
    line_free(&l);
}

static void test_what_waits_in_a_stage_that_ends_is_released_and_counted(void)
{
    atomic_store(&alive, 0);
    rig r = rig_open(NULL);
    line l = line_new(100);
    l.source->opts.on_demand = emit_boxes;
    l.stage->opts.on_item = NULL;
    l.sink->opts.on_item = open_boxes;
    station_spawn(&r, l.source);
    station_spawn(&r, l.stage);
    jzx_flow_link manual = {.flags = JZX_FLOW_MANUAL};
    l.stage->opts.on_message = ask_when_told;
    l.stage->next = l.source->id;
    REQUIRE_OK(jzx_flow_connect(r.loop, l.source->id, l.stage->id, &manual));
    rig_idle(&r);
    REQUIRE_OK(jzx_send_u64(r.loop, l.stage->id, 30, 1)); /* though nobody asked for them */
    rig_idle(&r);
    CHECK_EQ(l.stage->stats.buffered, 30);
    station_spawn(&r, l.sink);
    join_with(&r, l.stage, l.sink, 4);
    REQUIRE_OK(jzx_stop(r.loop, l.sink->id)); /* before it could connect */
    rig_idle(&r);
    CHECK_EQ(l.stage->stats.buffered, 30);
    REQUIRE_OK(jzx_stop(r.loop, l.stage->id));
    rig_idle(&r);
    CHECK_EQ(l.stage->stats.buffered, 0);
    CHECK_EQ(l.stage->stats.undelivered, 30);
    CHECK_EQ(atomic_load(&alive), 0);
    rig_close(&r);
    line_free(&l);
}

static jzx_behavior_result take_ten(jzx_flow *flow, const jzx_message *item)
{
    station *me = flow->state;
    CHECK_OK(jzx_flow_pass(flow, item));
    if (++me->seen == 10) {
        CHECK_OK(jzx_flow_finish(flow));
    }
    return JZX_BEHAVIOR_OK;
}

static void test_a_stage_may_finish_before_its_producer(void)
{
    rig r = rig_open(NULL);
    line l = line_new(0);
    l.source->opts.on_loss = JZX_FLOW_LOSS_END;
    l.stage->opts.on_item = take_ten;
    line_spawn(&r, &l, 8);
    rig_idle(&r);
    CHECK_EQ(l.sink->seen, 10);
    CHECK_EQ(l.sink->done, 1);
    CHECK_EQ(l.stage->done, 0);
    CHECK_EQ(l.source->losses, 1);
    CHECK_EQ(l.source->lost_reason, JZX_REASON_NORMAL);
    CHECK(station_gone(&r, l.source) && station_gone(&r, l.stage) && station_gone(&r, l.sink));
    /* What it did not want any more is accounted for. */
    CHECK_EQ(l.source->stats.sent, 10 + dead_items(&r));
    rig_close(&r);
    line_free(&l);
}

static void test_a_stage_that_stays_can_be_used_for_the_next_stream(void)
{
    rig r = rig_open(NULL);
    line l = line_new(100);
    l.stage->opts.flags = JZX_FLOW_STAY;
    l.sink->opts.flags = JZX_FLOW_STAY;
    line_spawn(&r, &l, 8);
    rig_idle(&r);
    CHECK_EQ(l.sink->seen, 100);
    CHECK(!station_gone(&r, l.stage) && !station_gone(&r, l.sink));
    station *second = source_new(50);
    station_spawn(&r, second);
    join_with(&r, second, l.stage, 8);
    join_with(&r, l.stage, l.sink, 8);
    rig_idle(&r);
    CHECK_EQ(l.sink->seen, 150);
    CHECK_EQ(l.sink->done, 2);
    rig_close(&r);
    line_free(&l);
    free(second);
}

static void test_a_disconnected_consumer_handles_what_is_on_its_way(void)
{
    rig r = rig_open(NULL);
    station *source = source_new(0);
    station *sink = station_new(JZX_FLOW_SINK);
    station_spawn(&r, source);
    station_spawn(&r, sink);
    join_with(&r, source, sink, 4);
    for (int i = 0; i < 40; i++) {
        REQUIRE_OK(jzx_loop_step(r.loop, 0));
    }
    REQUIRE_OK(jzx_flow_disconnect(r.loop, source->id, sink->id));
    rig_idle(&r);
    CHECK(sink->seen > 0);
    CHECK_EQ(sink->seen, source->next);
    CHECK_EQ(sink->unordered, 0);
    CHECK_EQ(source->losses, 1);
    CHECK_EQ(sink->losses, 0);
    uint64_t before = sink->seen;
    join_with(&r, source, sink, 4);
    for (int i = 0; i < 40; i++) {
        REQUIRE_OK(jzx_loop_step(r.loop, 0));
    }
    CHECK(sink->seen > before);
    rig_close(&r);
    CHECK_EQ(sink->unordered, 0);
    free(source);
    free(sink);
}

/* A consumer whose mailbox is filled by others: the item is kept and comes later. */
static void test_a_full_mailbox_loses_no_item(void)
{
    rig r = rig_open(NULL);
    line l = line_new(300);
    l.stage->opts.mailbox_cap = 8;
    l.sink->opts.mailbox_cap = 8;
    station_spawn(&r, l.source);
    station_spawn(&r, l.stage);
    station_spawn(&r, l.sink);
    join_with(&r, l.source, l.stage, 8);
    join_with(&r, l.stage, l.sink, 8);
    while (!station_gone(&r, l.sink)) {
        while (jzx_send_u64(r.loop, l.stage->id, 0, 1) == JZX_OK) {
        }
        while (jzx_send_u64(r.loop, l.sink->id, 0, 1) == JZX_OK) {
        }
        REQUIRE_OK(jzx_loop_step(r.loop, 0));
    }
    CHECK_EQ(l.sink->seen, 300);
    CHECK_EQ(l.sink->sum, sum_to(300));
    CHECK_EQ(l.sink->unordered, 0);
    rig_idle(&r);
    CHECK(station_gone(&r, l.source));
    rig_close(&r);
    line_free(&l);
}

/* An actor of one's own: a flow beside other work, with an on_signal hook. */
typedef struct own_actor {
    station s; /* first: the flow's callbacks find it */
    jzx_flow *flow;
    uint64_t words; /* messages that were not the flow's */
    uint64_t signals;
} own_actor;

static jzx_behavior_result own_behavior(jzx_context *ctx, const jzx_message *msg)
{
    own_actor *me = ctx->state;
    jzx_behavior_result result = JZX_BEHAVIOR_OK;
    if (jzx_flow_handle(me->flow, ctx, msg, &result)) {
        return result;
    }
    me->words++;
    if (msg->tag == 2) {
        CHECK_OK(jzx_flow_finish(me->flow)); /* outside of the flow's callbacks */
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result own_signal(jzx_context *ctx, const jzx_signal *signal)
{
    own_actor *me = ctx->state;
    jzx_behavior_result result = JZX_BEHAVIOR_OK;
    me->signals += jzx_flow_signal(me->flow, ctx, signal, &result) ? 1 : 0;
    return result;
}

static jzx_behavior_result own_init(jzx_context *ctx, void *arg)
{
    own_actor *me = arg;
    ctx->state = me;
    return jzx_flow_open(ctx, &me->s.opts, &me->flow) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                : JZX_BEHAVIOR_FAIL;
}

static void own_deinit(jzx_context *ctx)
{
    own_actor *me = ctx->state;
    jzx_flow_close(me->flow, ctx);
}

static void test_an_actor_of_ones_own_takes_part(void)
{
    rig r = rig_open(NULL);
    line l = line_new(0);
    station *base = station_new(JZX_FLOW_STAGE);
    own_actor *own = calloc(1, sizeof *own);
    REQUIRE(own != NULL);
    own->s = *base;
    own->s.opts.arg = own;
    own->s.opts.stats = &own->s.stats;
    jzx_spawn_opts spawn = {.behavior = own_behavior,
                            .init = own_init,
                            .deinit = own_deinit,
                            .on_signal = own_signal,
                            .state = own};
    station_spawn(&r, l.source);
    station_spawn(&r, l.sink);
    REQUIRE_OK(jzx_spawn(r.loop, &spawn, &own->s.id));
    join_with(&r, l.source, &own->s, 8);
    join_with(&r, &own->s, l.sink, 8);
    for (int i = 0; i < 60; i++) {
        REQUIRE_OK(jzx_loop_step(r.loop, 0));
    }
    CHECK(l.sink->seen > 0);
    REQUIRE_OK(jzx_send_u64(r.loop, own->s.id, 0, 1));
    REQUIRE_OK(jzx_send_u64(r.loop, own->s.id, 0, 2));
    rig_idle(&r);
    CHECK_EQ(own->words, 2);
    CHECK_EQ(l.sink->done, 1);
    CHECK_EQ(l.sink->seen, own->s.seen);
    CHECK(station_gone(&r, &own->s) && station_gone(&r, l.sink));
    CHECK_EQ(l.source->losses, 1);
    CHECK_EQ(own->s.inits, 1);
    CHECK_EQ(own->s.deinits, 1);
    rig_close(&r);
    line_free(&l);
    free(own);
    free(base);
}

static const jzt_test tests[] = {
    {"items_with_memory_are_released_once", test_items_with_memory_are_released_once},
    {"what_waits_in_a_stage_that_ends_is_released_and_counted",
     test_what_waits_in_a_stage_that_ends_is_released_and_counted},
    {"a_stage_may_finish_before_its_producer", test_a_stage_may_finish_before_its_producer},
    {"a_stage_that_stays_can_be_used_for_the_next_stream",
     test_a_stage_that_stays_can_be_used_for_the_next_stream},
    {"a_disconnected_consumer_handles_what_is_on_its_way",
     test_a_disconnected_consumer_handles_what_is_on_its_way},
    {"a_full_mailbox_loses_no_item", test_a_full_mailbox_loses_no_item},
    {"an_actor_of_ones_own_takes_part", test_an_actor_of_ones_own_takes_part},
};

int main(int argc, char **argv)
{
    return run_worlds(tests, COUNT_OF(tests), argc, argv);
}
