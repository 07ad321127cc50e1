/* Goal: a rate is never exceeded and, with items at hand, always reached; a batch goes out when it
 * is full, old enough or the last. Method: virtual time, where both are exact. */
#include "flow_fixture.h"

/* A station that notes when each item went through it: the limited one, because a limit is kept
 * where it is; on the way to others items may get nearer to each other. */
typedef struct stamps {
    station s;
    uint64_t count;
    uint64_t at_ns[2048];
} stamps;

static void stamp(jzx_flow *flow)
{
    stamps *me = flow->state;
    REQUIRE(me->count < COUNT_OF(me->at_ns));
    me->at_ns[me->count++] = jzx_loop_now(flow->ctx->loop);
}

static jzx_behavior_result stamp_and_give(jzx_flow *flow, uint32_t n)
{
    stamps *me = flow->state;
    uint64_t left = me->s.total - me->s.next;
    for (uint64_t i = 0; i < n && i < left; i++) {
        stamp(flow);
    }
    return count_up(flow, n);
}

static jzx_behavior_result stamp_and_pass(jzx_flow *flow, const jzx_message *item)
{
    stamp(flow);
    return hand_on(flow, item);
}

static jzx_behavior_result stamp_and_take(jzx_flow *flow, const jzx_message *item)
{
    stamp(flow);
    return take_in(flow, item);
}

static stamps *stamps_new(uint32_t kind, uint64_t total)
{
    stamps *s = calloc(1, sizeof *s);
    station *base = station_new(kind);
    REQUIRE(s != NULL);
    s->s = *base;
    free(base);
    s->s.total = total;
    s->s.opts.arg = s;
    s->s.opts.stats = &s->s.stats;
    s->s.opts.on_demand = kind == JZX_FLOW_SOURCE ? stamp_and_give : NULL;
    s->s.opts.on_item = kind == JZX_FLOW_SOURCE  ? NULL
                        : kind == JZX_FLOW_STAGE ? stamp_and_pass
                                                 : stamp_and_take;
    return s;
}

/* No window of any length sees more than the bucket holds and what flows in meanwhile, and in the
 * two milliseconds that a late timer may be made up for. */
static void check_bucket(const stamps *s, uint64_t rate, uint64_t period_ns, uint64_t burst)
{
    for (uint64_t i = 0; i < s->count; i++) {
        for (uint64_t j = i + burst; j < s->count; j++) {
            uint64_t window = s->at_ns[j] - s->at_ns[i] + 2 * MS;
            if ((j - i + 1 - burst) * period_ns > window * rate) {
                CHECK_EQ(j, i);
                return;
            }
        }
    }
}

typedef struct rate_case {
    uint32_t rate, period_ms, burst, items;
} rate_case;

static const rate_case cases[] = {
    {10, 1000, 1, 60}, {10, 1000, 0, 60}, {3, 1000, 3, 40},   {1000, 1000, 5, 500},
    {7, 100, 2, 150},  {1, 60000, 1, 10}, {500, 10, 50, 900}, {1, 1, 1, 200},
};

/* Source, stage and sink, one of which carries the limit. */
static void play(const rate_case *c, uint32_t limited)
{
    static const uint32_t kinds[] = {JZX_FLOW_SOURCE, JZX_FLOW_STAGE, JZX_FLOW_SINK};
    rig r = rig_open(NULL);
    stamps *all[3];
    for (int i = 0; i < 3; i++) {
        all[i] = stamps_new(kinds[i], c->items);
        if (kinds[i] == limited) {
            all[i]->s.opts.rate = c->rate;
            all[i]->s.opts.rate_period_ms = c->period_ms;
            all[i]->s.opts.rate_burst = c->burst;
        }
        station_spawn(&r, &all[i]->s);
    }
    uint64_t begin = jzx_sim_now(r.sim);
    join_with(&r, &all[0]->s, &all[1]->s, 64);
    join_with(&r, &all[1]->s, &all[2]->s, 64);
    REQUIRE_OK(jzx_kit_settle(r.kit));
    CHECK_EQ(all[2]->s.seen, c->items);
    CHECK_EQ(all[2]->s.sum, sum_to(c->items));
    const stamps *at = limited == JZX_FLOW_SOURCE  ? all[0]
                       : limited == JZX_FLOW_STAGE ? all[1]
                                                   : all[2];
    uint64_t burst = c->burst == 0 ? c->rate : c->burst;
    uint64_t period_ns = c->period_ms * MS;
    REQUIRE_EQ(at->count, c->items);
    check_bucket(at, c->rate, period_ns, burst);
    /* The last one was due then; a millisecond of a timer and the cost of the way may be added. */
    uint64_t due = begin + (c->items - burst) * period_ns / c->rate;
    uint64_t last = at->at_ns[c->items - 1];
    CHECK(last + 2 * MS >= due);
    CHECK(last <= due + 3 * MS + c->items * 20 * US);
    rig_close(&r);
    for (int i = 0; i < 3; i++) {
        check_kept(&all[i]->s);
        free(all[i]);
    }
}

static void test_a_rate_is_kept_and_reached_wherever_the_limit_is(void)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        play(&cases[i], JZX_FLOW_SOURCE);
        play(&cases[i], JZX_FLOW_STAGE);
        play(&cases[i], JZX_FLOW_SINK);
    }
}

static void test_while_there_are_tokens_no_timer_runs(void)
{
    rig r = rig_open(NULL);
    line l = line_new(100);
    l.stage->opts.rate = 1000;
    line_spawn(&r, &l, 8);
    uint64_t begin = jzx_sim_now(r.sim);
    rig_idle(&r); /* does not wait for timers */
    CHECK_EQ(l.sink->seen, 100);
    CHECK(jzx_sim_now(r.sim) - begin < 10 * MS);
    CHECK_EQ(rig_counters(&r).timers, 0);
    rig_close(&r);
    line_free(&l);
}

static void test_a_limited_stage_that_nobody_asks_has_no_timer(void)
{
    rig r = rig_open(NULL);
    line l = line_new(0);
    l.stage->opts.rate = 1;
    l.stage->opts.rate_burst = 2;
    line_spawn(&r, &l, 8);
    rig_idle(&r);
    CHECK_EQ(l.sink->seen, 2);
    CHECK_EQ(rig_counters(&r).timers, 1); /* for the next one */
    REQUIRE_OK(jzx_stop(r.loop, l.sink->id));
    REQUIRE_OK(jzx_kit_run(r.kit, 10000));
    CHECK_EQ(rig_counters(&r).timers, 0);
    CHECK(l.stage->stats.emitted <= 3);
    rig_close(&r);
    line_free(&l);
}

static void test_after_a_long_rest_no_more_than_the_burst_comes_at_once(void)
{
    rig r = rig_open(NULL);
    line l = line_new(0);
    l.stage->opts.rate = 1000; /* two more would flow in while a timer is late */
    l.stage->opts.rate_burst = 5;
    station_spawn(&r, l.source);
    station_spawn(&r, l.stage);
    station_spawn(&r, l.sink);
    REQUIRE_OK(jzx_kit_run(r.kit, 1000));
    join_with(&r, l.source, l.stage, 64);
    join_with(&r, l.stage, l.sink, 64);
    rig_idle(&r);
    CHECK_EQ(l.sink->seen, 5);
    rig_close(&r);
    line_free(&l);
}

/* Batches. */

typedef struct packer {
    station s;
    uint64_t sizes[512];
    uint64_t at_ns[512];
    uint64_t batches;
} packer;

static jzx_behavior_result unpack(jzx_flow *flow, const jzx_message *item)
{
    packer *me = flow->state;
    const jzx_flow_batch *batch = item->data;
    REQUIRE_EQ(item->len, sizeof *batch);
    REQUIRE(me->batches < COUNT_OF(me->sizes));
    me->at_ns[me->batches] = jzx_loop_now(flow->ctx->loop);
    me->sizes[me->batches++] = batch->count;
    for (size_t i = 0; i < batch->count; i++) {
        uint64_t value = 0;
        if ((batch->items[i].flags & JZX_MSG_VALUE) != 0) {
            value = batch->items[i].u64;
        } else {
            CHECK_EQ(batch->items[i].len, sizeof value);
            memcpy(&value, batch->items[i].data, sizeof value);
        }
        me->s.unordered += value <= me->s.last ? 1 : 0;
        me->s.last = value;
        me->s.seen++;
        me->s.sum += value;
    }
    return JZX_BEHAVIOR_OK;
}

static packer *packer_new(void)
{
    packer *p = calloc(1, sizeof *p);
    station *base = station_new(JZX_FLOW_SINK);
    REQUIRE(p != NULL);
    p->s = *base;
    free(base);
    p->s.opts.arg = p;
    p->s.opts.stats = &p->s.stats;
    p->s.opts.on_item = unpack;
    return p;
}

/* Values, copies and boxes by turns. */
static jzx_behavior_result emit_mixed(jzx_flow *flow, uint32_t n)
{
    station *me = flow->state;
    for (uint32_t i = 0; i < n && me->next < me->total; i++) {
        me->next++;
        if (me->next % 3 == 0) {
            CHECK_OK(jzx_flow_emit_u64(flow, me->next));
        } else if (me->next % 3 == 1) {
            CHECK_OK(jzx_flow_emit_copy(flow, &me->next, sizeof me->next));
        } else {
            uint64_t *box = malloc(sizeof *box);
            REQUIRE(box != NULL);
            *box = me->next;
            CHECK_OK(jzx_flow_emit(flow, box, sizeof *box, free));
        }
    }
    if (me->next == me->total) {
        CHECK_OK(jzx_flow_finish(flow));
    }
    return JZX_BEHAVIOR_OK;
}

static void test_batches_are_full_and_the_last_one_is_the_rest(void)
{
    rig r = rig_open(NULL);
    line l = line_new(103);
    packer *sink = packer_new();
    l.source->opts.on_demand = emit_mixed;
    l.stage->opts.on_item = NULL;
    l.stage->opts.batch_max = 10;
    station_spawn(&r, l.source);
    station_spawn(&r, l.stage);
    station_spawn(&r, &sink->s);
    join_with(&r, l.source, l.stage, 16);
    join_with(&r, l.stage, &sink->s, 2);
    rig_idle(&r);
    CHECK_EQ(sink->batches, 11);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(sink->sizes[i], 10);
    }
    CHECK_EQ(sink->sizes[10], 3);
    CHECK_EQ(sink->s.seen, 103);
    CHECK_EQ(sink->s.sum, sum_to(103));
    CHECK_EQ(sink->s.unordered, 0);
    CHECK_EQ(l.stage->stats.emitted, 11);
    CHECK_EQ(sink->s.done, 1);
    rig_close(&r);
    line_free(&l);
    free(sink);
}

static void test_a_batch_goes_out_when_it_is_old_enough(void)
{
    rig r = rig_open(NULL);
    line l = line_new(25);
    packer *sink = packer_new();
    l.source->opts.rate = 1; /* an item every 10 ms, one at once */
    l.source->opts.rate_period_ms = 10;
    l.stage->opts.on_item = NULL;
    l.stage->opts.batch_max = 100;
    l.stage->opts.batch_ms = 45;
    station_spawn(&r, l.source);
    station_spawn(&r, l.stage);
    station_spawn(&r, &sink->s);
    join_with(&r, l.source, l.stage, 100);
    join_with(&r, l.stage, &sink->s, 2);
    uint64_t begin = jzx_sim_now(r.sim);
    REQUIRE_OK(jzx_kit_settle(r.kit));
    CHECK_EQ(sink->s.seen, 25);
    CHECK_EQ(sink->batches, 5);
    for (uint64_t i = 0; i < 4; i++) {
        CHECK_EQ(sink->sizes[i], 5);
        uint64_t at = sink->at_ns[i] - begin;
        CHECK(at >= (45 + 50 * i) * MS && at <= (45 + 50 * i) * MS + 10 * MS);
    }
    CHECK_EQ(rig_counters(&r).timers, 0);
    rig_close(&r);
    line_free(&l);
    free(sink);
}

static void test_a_full_batch_takes_its_time_with_it(void)
{
    rig r = rig_open(NULL);
    line l = line_new(12);
    packer *sink = packer_new();
    l.source->opts.rate = 1; /* an item every 20 ms: three are there after 40 */
    l.source->opts.rate_period_ms = 20;
    l.stage->opts.on_item = NULL;
    l.stage->opts.batch_max = 3;
    l.stage->opts.batch_ms = 70; /* of the first batch this would be up within the second */
    station_spawn(&r, l.source);
    station_spawn(&r, l.stage);
    station_spawn(&r, &sink->s);
    join_with(&r, l.source, l.stage, 8);
    join_with(&r, l.stage, &sink->s, 8);
    REQUIRE_OK(jzx_kit_settle(r.kit));
    CHECK_EQ(sink->batches, 4);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(sink->sizes[i], 3);
    }
    rig_close(&r);
    line_free(&l);
    free(sink);
}

static jzx_behavior_result keep_some(jzx_flow *flow, const jzx_message *item)
{
    station *me = flow->state;
    jzx_flow_batch *batch = item->data;
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->items[i].drop != NULL) { /* a box: ours from now on */
            me->sum += *(uint64_t *)batch->items[i].data;
            batch->items[i].drop(batch->items[i].data);
            batch->items[i].data = NULL;
        }
        me->seen++;
    }
    return JZX_BEHAVIOR_OK;
}

static void test_items_can_be_taken_out_of_a_batch(void)
{
    rig r = rig_open(NULL);
    line l = line_new(50);
    l.source->opts.on_demand = emit_mixed;
    l.stage->opts.on_item = NULL;
    l.stage->opts.batch_max = 7;
    l.sink->opts.on_item = keep_some;
    line_spawn(&r, &l, 8);
    rig_idle(&r);
    CHECK_EQ(l.sink->seen, 50);
    rig_close(&r); /* finds what leaked or was freed twice, with a sanitizer's help */
    line_free(&l);
}

static void test_a_batcher_that_ends_releases_its_items_and_counts_the_batch(void)
{
    rig r = rig_open(NULL);
    line l = line_new(7);
    l.source->opts.on_demand = emit_mixed;
    l.source->total = 1000; /* asked for 5 at a time, it has 4 */
    l.source->short_by = 0;
    l.stage->opts.on_item = NULL;
    l.stage->opts.batch_max = 5;
    l.sink->opts.on_item = keep_some;
    l.source->opts.rate = 7;
    l.source->opts.rate_period_ms = 3600000;
    line_spawn(&r, &l, 4);
    rig_idle(&r);
    CHECK_EQ(l.stage->stats.batched, 2);
    CHECK_EQ(l.sink->seen, 5);
    REQUIRE_OK(jzx_stop(r.loop, l.stage->id));
    rig_idle(&r);
    CHECK_EQ(l.stage->stats.batched, 0);
    CHECK_EQ(l.stage->stats.undelivered, 1);
    rig_close(&r);
    line_free(&l);
}

static const jzt_test tests[] = {
    {"a_rate_is_kept_and_reached_wherever_the_limit_is",
     test_a_rate_is_kept_and_reached_wherever_the_limit_is},
    {"while_there_are_tokens_no_timer_runs", test_while_there_are_tokens_no_timer_runs},
    {"a_limited_stage_that_nobody_asks_has_no_timer",
     test_a_limited_stage_that_nobody_asks_has_no_timer},
    {"after_a_long_rest_no_more_than_the_burst_comes_at_once",
     test_after_a_long_rest_no_more_than_the_burst_comes_at_once},
    {"a_full_batch_takes_its_time_with_it", test_a_full_batch_takes_its_time_with_it},
    {"batches_are_full_and_the_last_one_is_the_rest",
     test_batches_are_full_and_the_last_one_is_the_rest},
    {"a_batch_goes_out_when_it_is_old_enough", test_a_batch_goes_out_when_it_is_old_enough},
    {"items_can_be_taken_out_of_a_batch", test_items_can_be_taken_out_of_a_batch},
    {"a_batcher_that_ends_releases_its_items_and_counts_the_batch",
     test_a_batcher_that_ends_releases_its_items_and_counts_the_batch},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
