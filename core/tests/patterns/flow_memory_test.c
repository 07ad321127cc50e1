/* Goal: a pipeline of three stages with a slow middle keeps constant memory, however many items go
 * through it. Method: simulation with a counting allocator that is looked at while items flow:
 * after a short beginning it never shows a byte more. Virtual time makes the middle slow.
 *
 * not on: pool2 pool4 (workers of a pool collect message nodes, whoever sends: see SPEC, R10) */
#include "flow_fixture.h"

enum { MAX = 64, LOOK_EVERY = 256 };

typedef struct watch {
    station s;
    rig *r;
    uint64_t warm; /* items after which memory is taken for settled */
    size_t warm_bytes;
    size_t most_bytes;
} watch;

static jzx_behavior_result take_and_weigh(jzx_flow *flow, const jzx_message *item)
{
    watch *me = flow->state;
    (void)item;
    if (++me->s.seen % LOOK_EVERY == 0) {
        size_t bytes = rig_bytes(me->r);
        size_t *most = me->s.seen <= me->warm ? &me->warm_bytes : &me->most_bytes;
        *most = bytes > *most ? bytes : *most;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result slow_copy(jzx_flow *flow, const jzx_message *item)
{
    station *me = flow->state;
    spend(flow->ctx->loop, me->cost_ns);
    CHECK_OK(jzx_flow_emit_copy(flow, item->data, item->len));
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result give_bytes(jzx_flow *flow, uint32_t n)
{
    station *me = flow->state;
    unsigned char bytes[100] = {0};
    for (uint32_t i = 0; i < n && me->next < me->total; i++) {
        me->next++;
        CHECK_OK(jzx_flow_emit_copy(flow, bytes, sizeof bytes));
    }
    if (me->next == me->total) {
        CHECK_OK(jzx_flow_finish(flow));
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result slow_pass(jzx_flow *flow, const jzx_message *item)
{
    station *me = flow->state;
    spend(flow->ctx->loop, me->cost_ns);
    CHECK_OK(jzx_flow_pass(flow, item));
    return JZX_BEHAVIOR_OK;
}

static void play(uint64_t items, bool bytes)
{
    rig r = rig_open(NULL);
    line l = line_new(items);
    watch *sink = calloc(1, sizeof *sink);
    REQUIRE(sink != NULL);
    sink->s = *l.sink;
    sink->s.opts.arg = sink;
    sink->s.opts.stats = &sink->s.stats;
    sink->s.opts.on_item = take_and_weigh;
    sink->r = &r;
    sink->warm = 20000;
    l.source->opts.on_demand = bytes ? give_bytes : count_up;
    l.stage->opts.on_item = bytes ? slow_copy : slow_pass;
    l.stage->cost_ns = 5000; /* five times what a message costs */
    station_spawn(&r, l.source);
    station_spawn(&r, l.stage);
    station_spawn(&r, &sink->s);
    join_with(&r, l.source, l.stage, MAX);
    join_with(&r, l.stage, &sink->s, MAX);
    REQUIRE_OK(jzx_loop_run(r.loop));
    CHECK_EQ(sink->s.seen, items);
    CHECK(sink->warm_bytes > 0);
    CHECK(sink->most_bytes > 0);
    CHECK(sink->most_bytes <= sink->warm_bytes);
    CHECK_EQ(l.stage->stats.emitted, items);
    rig_close(&r);
    line_free(&l);
    free(sink);
}

static void test_a_million_items_through_a_slow_middle_take_no_more_memory_than_the_first(void)
{
    play(JZT_SANITIZED ? 100000 : 1000000, false);
}

static void test_nor_do_items_with_memory_of_their_own(void)
{
    play(JZT_SANITIZED ? 50000 : 200000, true);
}

static const jzt_test tests[] = {
    {"a_million_items_through_a_slow_middle_take_no_more_memory_than_the_first",
     test_a_million_items_through_a_slow_middle_take_no_more_memory_than_the_first},
    {"nor_do_items_with_memory_of_their_own", test_nor_do_items_with_memory_of_their_own},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
