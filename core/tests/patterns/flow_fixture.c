#define _GNU_SOURCE
#include "flow_fixture.h"

jzx_behavior_result count_up(jzx_flow *flow, uint32_t n)
{
    station *me = flow->state;
    me->most_asked = n > me->most_asked ? n : me->most_asked;
    uint32_t give = n > me->short_by ? n - me->short_by : n;
    for (uint32_t i = 0; i < give && (me->total == 0 || me->next < me->total); i++) {
        CHECK_OK(jzx_flow_emit_u64(flow, ++me->next));
    }
    if (me->total != 0 && me->next == me->total) {
        CHECK_OK(jzx_flow_finish(flow));
    }
    return JZX_BEHAVIOR_OK;
}

static void look(jzx_flow *flow, station *me, const jzx_message *item)
{
    jzx_actor_facts facts;
    CHECK_OK(jzx_actor_inspect(flow->ctx->loop, flow->ctx->self, &facts));
    me->deepest = facts.ordinary > me->deepest ? facts.ordinary : me->deepest;
    me->unordered += item->u64 <= me->last ? 1 : 0;
    me->last = item->u64;
    me->seen++;
    me->sum += item->u64;
    if (me->cost_ns != 0) {
        spend(flow->ctx->loop, me->cost_ns);
    }
}

bool fails_now(station *me, const jzx_message *item)
{
    bool now = me->fail_at != 0 && item->u64 == me->fail_at;
    me->fail_at = now ? 0 : me->fail_at;
    return now;
}

jzx_behavior_result hand_on(jzx_flow *flow, const jzx_message *item)
{
    station *me = flow->state;
    if (fails_now(me, item)) {
        return jzx_fail(flow->ctx, 7, "this one");
    }
    look(flow, me, item);
    CHECK_OK(jzx_flow_pass(flow, item));
    return JZX_BEHAVIOR_OK;
}

jzx_behavior_result take_in(jzx_flow *flow, const jzx_message *item)
{
    station *me = flow->state;
    if (fails_now(me, item)) {
        return jzx_fail(flow->ctx, 7, "this one");
    }
    look(flow, me, item);
    return JZX_BEHAVIOR_OK;
}

jzx_behavior_result note_done(jzx_flow *flow)
{
    station *me = flow->state;
    me->done++;
    return JZX_BEHAVIOR_OK;
}

jzx_behavior_result note_lost(jzx_flow *flow, jzx_actor_id peer, const jzx_reason *reason)
{
    station *me = flow->state;
    CHECK(peer != JZX_NOBODY);
    me->losses++;
    me->lost_reason = reason->kind;
    return JZX_BEHAVIOR_OK;
}

jzx_behavior_result note_init(jzx_flow *flow, void *arg)
{
    station *me = arg;
    flow->state = me;
    me->inits++;
    return JZX_BEHAVIOR_OK;
}

void note_deinit(jzx_flow *flow)
{
    station *me = flow->state;
    me->deinits++;
}

station *station_new(uint32_t kind)
{
    station *s = calloc(1, sizeof *s);
    REQUIRE(s != NULL);
    s->opts = (jzx_flow_opts){.kind = kind,
                              .on_demand = kind == JZX_FLOW_SOURCE ? count_up : NULL,
                              .on_item = kind == JZX_FLOW_SOURCE  ? NULL
                                         : kind == JZX_FLOW_STAGE ? hand_on
                                                                  : take_in,
                              .on_done = kind == JZX_FLOW_SOURCE ? NULL : note_done,
                              .on_lost = note_lost,
                              .init = note_init,
                              .deinit = note_deinit,
                              .arg = s,
                              .stats = &s->stats};
    return s;
}

station *source_new(uint64_t total)
{
    station *s = station_new(JZX_FLOW_SOURCE);
    s->total = total;
    return s;
}

void station_spawn(rig *r, station *s)
{
    REQUIRE_OK(jzx_flow_spawn(r->loop, &s->opts, &s->id));
}

void join_with(rig *r, const station *producer, const station *consumer, uint32_t max)
{
    jzx_flow_link link = {.max_demand = max};
    REQUIRE_OK(jzx_flow_connect(r->loop, producer->id, consumer->id, &link));
}

void check_kept(const station *s)
{
    CHECK_EQ(s->stats.emitted, s->stats.sent + s->stats.buffered + s->stats.undelivered);
    CHECK_EQ(s->inits, s->deinits);
}

bool station_gone(rig *r, const station *s)
{
    return jzx_actor_state(r->loop, s->id) == JZX_STATE_TERMINATED;
}

uint64_t dead_items(rig *r)
{
    jzx_dead_letter letters[64];
    uint64_t cursor = 0;
    uint64_t items = 0;
    size_t count = jzx_dead_letters_read(r->loop, &cursor, letters, COUNT_OF(letters), NULL);
    CHECK(count < COUNT_OF(letters));
    for (size_t i = 0; i < count; i++) {
        items += letters[i].tag == 0xFE020006u ? 1 : 0;
    }
    return items;
}

line line_new(uint64_t total)
{
    return (line){.source = source_new(total),
                  .stage = station_new(JZX_FLOW_STAGE),
                  .sink = station_new(JZX_FLOW_SINK)};
}

void line_spawn(rig *r, line *l, uint32_t max)
{
    station_spawn(r, l->source);
    station_spawn(r, l->stage);
    station_spawn(r, l->sink);
    join_with(r, l->source, l->stage, max);
    join_with(r, l->stage, l->sink, max);
}

void line_free(line *l)
{
    check_kept(l->source);
    check_kept(l->stage);
    check_kept(l->sink);
    free(l->source);
    free(l->stage);
    free(l->sink);
}

uint64_t sum_to(uint64_t n)
{
    return n * (n + 1) / 2;
}
