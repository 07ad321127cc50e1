/* Goal: bad input is refused with a documented error and nothing changes; messages that only look
 * like the protocol's are ignored and counted (R7). Method: tables of bad input, and a stranger
 * that forges every message of the protocol. */
#include "flow_fixture.h"

static jzx_behavior_result no_item(jzx_flow *flow, const jzx_message *item)
{
    (void)flow;
    (void)item;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result no_demand(jzx_flow *flow, uint32_t n)
{
    (void)flow;
    (void)n;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result no_done(jzx_flow *flow)
{
    (void)flow;
    return JZX_BEHAVIOR_OK;
}

typedef struct bad_opts {
    jzx_flow_opts opts;
    jzx_err err;
} bad_opts;

static const bad_opts bad[] = {
    {{.kind = 3, .on_item = no_item}, JZX_ERR_INVALID_ARG},
    {{.kind = JZX_FLOW_SOURCE}, JZX_ERR_INVALID_ARG},
    {{.kind = JZX_FLOW_SINK}, JZX_ERR_INVALID_ARG},
    {{.kind = JZX_FLOW_SOURCE, .on_demand = no_demand, .on_item = no_item}, JZX_ERR_INVALID_ARG},
    {{.kind = JZX_FLOW_SOURCE, .on_demand = no_demand, .on_done = no_done}, JZX_ERR_INVALID_ARG},
    {{.kind = JZX_FLOW_SOURCE, .on_demand = no_demand, .batch_max = 2}, JZX_ERR_INVALID_ARG},
    {{.kind = JZX_FLOW_SINK, .on_item = no_item, .on_demand = no_demand}, JZX_ERR_INVALID_ARG},
    {{.kind = JZX_FLOW_SINK, .on_item = no_item, .batch_max = 2}, JZX_ERR_INVALID_ARG},
    {{.on_demand = no_demand}, JZX_ERR_INVALID_ARG},
    {{.on_item = no_item, .batch_max = 2}, JZX_ERR_INVALID_ARG},
    {{.batch_ms = 5}, JZX_ERR_INVALID_ARG},
    {{.flags = 2}, JZX_ERR_INVALID_ARG},
    {{.on_loss = 3}, JZX_ERR_INVALID_ARG},
    {{.rate_burst = 1}, JZX_ERR_INVALID_ARG},
    {{.rate_period_ms = 1}, JZX_ERR_INVALID_ARG},
    {{.rate = JZX_FLOW_RATE_MAX + 1}, JZX_ERR_TOO_BIG},
    {{.rate = 1, .rate_burst = JZX_FLOW_RATE_MAX + 1}, JZX_ERR_TOO_BIG},
    {{.rate = 1, .rate_period_ms = JZX_FLOW_RATE_PERIOD_MAX_MS + 1}, JZX_ERR_TOO_BIG},
    {{.batch_max = JZX_FLOW_BATCH_MAX + 1}, JZX_ERR_TOO_BIG},
    {{.on_item = no_item, .mailbox_cap = UINT32_MAX}, JZX_ERR_TOO_BIG},
    {{.on_item = no_item, .spawn_flags = 0x80000000u}, JZX_ERR_INVALID_ARG},
};

static void test_bad_options_make_nothing(void)
{
    rig r = rig_open(NULL);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        jzx_actor_id id = 77;
        jzx_child_spec spec = {.id = "as it was"};
        CHECK_EQ(jzx_flow_spawn(r.loop, &bad[i].opts, &id), bad[i].err);
        CHECK_EQ(id, 77);
        bool of_spawn = bad[i].opts.mailbox_cap != 0 || bad[i].opts.spawn_flags != 0;
        if (!of_spawn) {
            CHECK_EQ(jzx_flow_child(&bad[i].opts, "x", &spec), bad[i].err);
            CHECK_STR(spec.id, "as it was");
        }
    }
    struct {
        jzx_flow_opts opts;
        uint64_t more;
    } newer = {.more = 0};
    jzx_actor_id id = 0;
    CHECK_OK(jzx_flow_spawn_sized(r.loop, &newer.opts, sizeof newer, &id));
    newer.more = 1;
    CHECK_EQ(jzx_flow_spawn_sized(r.loop, &newer.opts, sizeof newer, &id), JZX_ERR_NEWER_STRUCT);
    CHECK_EQ(jzx_flow_spawn_sized(r.loop, &newer.opts, 8, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_spawn(NULL, &newer.opts, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_spawn(r.loop, NULL, &id), JZX_ERR_INVALID_ARG);
    rig_idle(&r);
    CHECK_EQ(rig_counters(&r).spawned, 1);
    rig_close(&r);
}

static void test_bad_demand_connects_nobody(void)
{
    rig r = rig_open(NULL);
    line l = line_new(10);
    l.sink->opts.mailbox_cap = 16;
    station_spawn(&r, l.source);
    station_spawn(&r, l.sink);
    rig_idle(&r);
    uint64_t accepted = rig_counters(&r).accepted;
    static const jzx_flow_link links[] = {
        {.max_demand = (uint32_t)-1},
        {.max_demand = (uint32_t)INT32_MIN},
        {.max_demand = JZX_FLOW_DEMAND_MAX + 1},
        {.max_demand = 17}, /* does not fit the mailbox */
        {.max_demand = 8, .min_demand = 8},
        {.max_demand = 8, .min_demand = (uint32_t)-1},
        {.min_demand = (uint32_t)-1},
    };
    for (size_t i = 0; i < COUNT_OF(links); i++) {
        CHECK_EQ(jzx_flow_connect(r.loop, l.source->id, l.sink->id, &links[i]), JZX_ERR_BAD_DEMAND);
    }
    jzx_flow_link flags = {.flags = 2};
    CHECK_EQ(jzx_flow_connect(r.loop, l.source->id, l.sink->id, &flags), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_connect(r.loop, l.sink->id, l.sink->id, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_connect(r.loop, JZX_NOBODY, l.sink->id, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_connect(r.loop, l.source->id, JZX_NOBODY, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_connect(NULL, l.source->id, l.sink->id, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_connect(r.loop, l.source->id ^ ((uint64_t)1 << 40), l.sink->id, NULL),
             JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_flow_disconnect(r.loop, l.source->id, l.sink->id ^ ((uint64_t)1 << 40)),
             JZX_ERR_NO_SUCH_ACTOR);
    rig_idle(&r);
    CHECK_EQ(rig_counters(&r).accepted, accepted);
    CHECK_EQ(l.source->next, 0);
    /* A source takes from nobody and a sink gives to nobody: ignored, and counted. */
    CHECK_OK(jzx_flow_connect(r.loop, l.sink->id, l.source->id, NULL));
    rig_idle(&r);
    CHECK_EQ(l.source->stats.ignored, 1);
    join_with(&r, l.source, l.sink, 16);
    join_with(&r, l.source, l.sink, 4); /* changes nothing */
    rig_idle(&r);
    CHECK_EQ(l.sink->seen, 10);
    CHECK_EQ(l.sink->sum, sum_to(10));
    rig_close(&r);
    line_free(&l);
}

/* The protocol's tags, which no program should know. */
enum {
    T_CONNECT = 1,
    T_DISCONNECT,
    T_SUBSCRIBE,
    T_HELLO,
    T_DEMAND,
    T_ITEM,
    T_DONE,
    T_CANCEL,
    T_POKE,
    T_EXPECT,
    T_WILL,
    T_READY,
    T_TICK,
    T_FLUSH,
    T_END
};
#define TAG(t) (0xFE020000u + (uint32_t)(t))

static void test_demand_of_a_stranger_is_ignored_and_counted(void)
{
    rig r = rig_open(NULL);
    line l = line_new(0);
    l.source->opts.on_demand = no_demand;
    station_spawn(&r, l.source);
    jzx_probe *stranger = NULL;
    REQUIRE_OK(jzx_probe_spawn(r.loop, &stranger));
    static const uint64_t demands[] = {1, 1000, 0, (uint64_t)-1, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(demands); i++) {
        jzx_send_opts send = {.u64 = demands[i], .tag = TAG(T_DEMAND), .flags = JZX_SEND_VALUE};
        CHECK_OK(jzx_probe_send(stranger, l.source->id, &send));
        CHECK_OK(jzx_send_with(r.loop, l.source->id, &send)); /* of nobody at all */
    }
    rig_idle(&r);
    CHECK_EQ(l.source->stats.ignored, 2 * COUNT_OF(demands));
    CHECK_EQ(l.source->stats.credit, 0);
    CHECK_EQ(jzx_probe_count(stranger), 0);
    jzx_probe_free(stranger);
    rig_idle(&r);
    rig_close(&r);
    line_free(&l);
}

/* A consumer that asks properly, then badly. */
static void test_bad_demand_of_a_consumer_is_ignored_and_its_good_demand_honoured(void)
{
    rig r = rig_open(NULL);
    station *source = source_new(0);
    station_spawn(&r, source);
    jzx_probe *consumer = NULL;
    REQUIRE_OK(jzx_probe_spawn(r.loop, &consumer));
    struct {
        uint64_t producer, cookie;
        jzx_flow_link link;
    } wish = {.cookie = 42};
    jzx_send_opts hello = {
        .data = &wish, .len = sizeof wish, .tag = TAG(T_SUBSCRIBE), .flags = JZX_SEND_COPY};
    REQUIRE_OK(jzx_probe_send(consumer, source->id, &hello));
    const jzx_probe_record *answer = NULL;
    REQUIRE_OK(jzx_probe_expect(consumer, TAG(T_HELLO), 10, &answer));
    CHECK_EQ(answer->u64, 42);
    static const uint64_t demands[] = {0, (uint64_t)-1, UINT32_MAX, JZX_FLOW_DEMAND_MAX + 1ull};
    jzx_send_opts ask = {.tag = TAG(T_DEMAND), .flags = JZX_SEND_VALUE};
    for (size_t i = 0; i < COUNT_OF(demands); i++) {
        ask.u64 = demands[i];
        REQUIRE_OK(jzx_probe_send(consumer, source->id, &ask));
    }
    CHECK_OK(jzx_probe_expect_none(consumer, 10));
    CHECK_EQ(source->stats.ignored, COUNT_OF(demands));
    ask.u64 = 3;
    REQUIRE_OK(jzx_probe_send(consumer, source->id, &ask));
    for (uint64_t i = 1; i <= 3; i++) {
        REQUIRE_OK(jzx_probe_expect(consumer, TAG(T_ITEM), 10, &answer));
        CHECK_EQ(answer->u64, i);
    }
    CHECK_OK(jzx_probe_expect_none(consumer, 10));
    CHECK_EQ(source->next, 3);
    jzx_probe_free(consumer);
    rig_idle(&r);
    rig_close(&r);
    free(source);
}

/* An answer to a subscription that is not the present one, as after restarts. */
static void test_demand_waits_for_the_answer_to_the_present_subscription(void)
{
    rig r = rig_open(NULL);
    station *sink = station_new(JZX_FLOW_SINK);
    jzx_probe *producer = NULL;
    station_spawn(&r, sink);
    REQUIRE_OK(jzx_probe_spawn(r.loop, &producer));
    jzx_flow_link link = {.max_demand = 8};
    REQUIRE_OK(jzx_flow_connect(r.loop, jzx_probe_id(producer), sink->id, &link));
    const jzx_probe_record *wish = NULL;
    REQUIRE_OK(jzx_probe_expect(producer, TAG(T_SUBSCRIBE), 10, &wish));
    uint64_t cookie = 0;
    memcpy(&cookie, wish->bytes + 8, sizeof cookie);
    jzx_probe_forget(producer);
    jzx_send_opts hello = {.u64 = cookie - 1, .tag = TAG(T_HELLO), .flags = JZX_SEND_VALUE};
    REQUIRE_OK(jzx_probe_send(producer, sink->id, &hello));
    CHECK_OK(jzx_probe_expect_none(producer, 10));
    CHECK_EQ(sink->stats.ignored, 1);
    hello.u64 = cookie;
    REQUIRE_OK(jzx_probe_send(producer, sink->id, &hello));
    REQUIRE_OK(jzx_probe_expect(producer, TAG(T_DEMAND), 10, &wish));
    CHECK_EQ(wish->u64, 8);
    jzx_probe_free(producer);
    rig_idle(&r);
    rig_close(&r);
    free(sink);
}

/* Every tag, by a stranger and by nobody, with a value, with bytes of every length, with nothing.
 */
static void test_forged_messages_of_every_kind_do_no_harm(void)
{
    rig r = rig_open(NULL);
    line l = line_new(400);
    line_spawn(&r, &l, 8);
    jzx_probe *stranger = NULL;
    REQUIRE_OK(jzx_probe_spawn(r.loop, &stranger));
    jzt_rng rng = jzt_rng_seeded();
    station *targets[] = {l.source, l.stage, l.sink};
    for (int i = 0; i < 600; i++) {
        unsigned char bytes[48];
        for (size_t b = 0; b < sizeof bytes; b++) {
            bytes[b] = (unsigned char)jzt_rng_below(&rng, 3);
        }
        uint32_t tag = (uint32_t)jzt_rng_below(&rng, T_END + 2);
        /* Not these: a stranger may connect actors, and items and an end are not its to send. */
        if (tag == T_CONNECT || tag == T_ITEM || tag == T_SUBSCRIBE) {
            tag = T_DEMAND;
        }
        jzx_send_opts send = {.tag = TAG(tag)};
        if (jzt_rng_below(&rng, 2) == 0) {
            send.u64 = jzt_rng_next(&rng) >> jzt_rng_below(&rng, 64);
            send.flags = JZX_SEND_VALUE;
        } else {
            send.data = bytes;
            send.len = (size_t)jzt_rng_below(&rng, sizeof bytes + 1);
            send.flags = JZX_SEND_COPY;
        }
        jzx_actor_id to = targets[jzt_rng_below(&rng, 3)]->id;
        jzx_err err = jzt_rng_below(&rng, 2) == 0 ? jzx_probe_send(stranger, to, &send)
                                                  : jzx_send_with(r.loop, to, &send);
        CHECK(err == JZX_OK || station_gone(&r, targets[0]) || station_gone(&r, l.sink));
    }
    jzx_probe_free(stranger);
    rig_idle(&r);
    CHECK_EQ(l.sink->seen, 400);
    CHECK_EQ(l.sink->sum, sum_to(400));
    CHECK_EQ(l.sink->unordered, 0);
    CHECK_EQ(l.sink->done, 1);
    rig_close(&r);
    line_free(&l);
}

static void test_half_a_wish_is_ignored(void)
{
    rig r = rig_open(NULL);
    line l = line_new(0);
    station_spawn(&r, l.stage);
    unsigned char bytes[80] = {0};
    uint64_t sent = 0;
    for (size_t len = 0; len < sizeof bytes; len++) {
        for (uint32_t tag = T_CONNECT; tag <= T_SUBSCRIBE; tag += T_SUBSCRIBE - T_CONNECT) {
            CHECK_OK(jzx_send_copy(r.loop, l.stage->id, bytes, len, TAG(tag)));
            CHECK_OK(jzx_send_u64(r.loop, l.stage->id, 1, TAG(tag)));
            sent += 2;
            rig_idle(&r);
        }
    }
    CHECK_EQ(l.stage->stats.ignored, sent); /* also the whole one: it names nobody */
    rig_close(&r);
    line_free(&l);
}

static void test_calls_outside_of_an_actor_are_refused(void)
{
    CHECK_EQ(jzx_flow_emit(NULL, NULL, 0, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_emit_u64(NULL, 0), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_emit_copy(NULL, NULL, 0), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_pass(NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_finish(NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_ask(NULL, 1, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_demand(NULL), 0);
    jzx_flow *flow = NULL;
    jzx_flow_opts opts = {0};
    CHECK_EQ(jzx_flow_open(NULL, &opts, &flow), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_handle(NULL, NULL, NULL, NULL), 0);
    CHECK_EQ(jzx_flow_signal(NULL, NULL, NULL, NULL), 0);
    jzx_flow_close(NULL, NULL);
    jzx_flow_stats_read(NULL, NULL);
}

static jzx_behavior_result emit_from_sink(jzx_flow *flow, const jzx_message *item)
{
    CHECK_EQ(jzx_flow_emit_u64(flow, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_pass(flow, item), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_emit_copy(flow, NULL, 8), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_flow_demand(flow), 0);
    return JZX_BEHAVIOR_OK;
}

static void test_a_sink_emits_nothing(void)
{
    rig r = rig_open(NULL);
    line l = line_new(5);
    l.sink->opts.on_item = emit_from_sink;
    line_spawn(&r, &l, 8);
    rig_idle(&r);
    CHECK_EQ(l.sink->stats.received, 5);
    CHECK_EQ(l.sink->stats.emitted, 0);
    rig_close(&r);
    line_free(&l);
}

static jzx_behavior_result count_up_or_fail(jzx_flow *flow, uint32_t n)
{
    station *me = flow->state;
    for (uint32_t i = 0; i < n && me->next < me->total; i++) {
        if (jzx_flow_emit_u64(flow, me->next + 1) != JZX_OK) {
            return JZX_BEHAVIOR_FAIL;
        }
        me->next++;
    }
    return me->next == me->total && jzx_flow_finish(flow) != JZX_OK ? JZX_BEHAVIOR_FAIL
                                                                    : JZX_BEHAVIOR_OK;
}

/* Every allocation fails once: what happens is a failure or a refusal, and nothing leaks. */
static const char *sweep_scenario(jzx_kit *kit, void *arg)
{
    (void)arg;
    line l = line_new(40);
    l.source->opts.on_demand = count_up_or_fail;
    l.stage->opts.on_item = NULL;
    l.stage->opts.batch_max = 3;
    l.stage->opts.batch_ms = 5;
    l.sink->opts.on_item = no_item;
    l.sink->opts.rate = 1000;
    l.sink->opts.rate_burst = 4;
    station *all[] = {l.source, l.stage, l.sink};
    bool up = true;
    for (int i = 0; i < 3; i++) {
        up = jzx_flow_spawn(kit->loop, &all[i]->opts, &all[i]->id) == JZX_OK && up;
    }
    jzx_flow_link link = {.max_demand = 8};
    up = up && jzx_flow_connect(kit->loop, l.source->id, l.stage->id, &link) == JZX_OK;
    up = up && jzx_flow_connect(kit->loop, l.stage->id, l.sink->id, &link) == JZX_OK;
    const char *wrong = jzx_kit_settle(kit) == JZX_ERR_BUSY ? "it is inside itself" : NULL;
    for (int i = 0; i < 3; i++) {
        const jzx_flow_stats *s = &all[i]->stats;
        wrong = s->emitted == s->sent + s->buffered + s->undelivered ? wrong : "an item is missing";
    }
    (void)jzx_loop_destroy(kit->loop);
    kit->loop = NULL;
    for (int i = 0; i < 3; i++) {
        wrong = all[i]->inits == all[i]->deinits ? wrong : "a state was not released";
        free(all[i]);
    }
    return wrong;
}

static void test_every_allocation_may_fail(void)
{
    jzx_sim_opts sim = {.seed = 7};
    jzx_kit_opts opts = {.sim = &sim};
    jzx_sweep_report report = {0};
    const char *wrong = jzx_fault_sweep(&opts, sweep_scenario, NULL, 5000, &report);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK(report.allocs > 20);
}

static const jzt_test tests[] = {
    {"bad_options_make_nothing", test_bad_options_make_nothing},
    {"bad_demand_connects_nobody", test_bad_demand_connects_nobody},
    {"demand_of_a_stranger_is_ignored_and_counted",
     test_demand_of_a_stranger_is_ignored_and_counted},
    {"bad_demand_of_a_consumer_is_ignored_and_its_good_demand_honoured",
     test_bad_demand_of_a_consumer_is_ignored_and_its_good_demand_honoured},
    {"demand_waits_for_the_answer_to_the_present_subscription",
     test_demand_waits_for_the_answer_to_the_present_subscription},
    {"forged_messages_of_every_kind_do_no_harm_R7", test_forged_messages_of_every_kind_do_no_harm},
    {"half_a_wish_is_ignored", test_half_a_wish_is_ignored},
    {"calls_outside_of_an_actor_are_refused", test_calls_outside_of_an_actor_are_refused},
    {"a_sink_emits_nothing", test_a_sink_emits_nothing},
    {"every_allocation_may_fail", test_every_allocation_may_fail},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
