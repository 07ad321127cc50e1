/* Items through three stages: by flow control, and by actors that send to each other by hand with a
 * window, the least that keeps their mailboxes from overflowing. */
#include "bench.h"
#include "sides.h"

#include <jzx/flow.h>
#include <jzx/jzx.h>

enum { WINDOW = 256, TAG_ITEM = 1, TAG_MORE = 2 };

typedef struct flow_run {
    uint64_t total;
    uint64_t next;
    uint64_t seen;
    jzx_actor_id to;   /* by hand: where items go */
    jzx_actor_id from; /* by hand: the actor that is asked for more */
} flow_run;

static void check_all(const flow_run *run)
{
    if (run->seen != run->total) {
        bench_fail("flow: %llu items are missing", (unsigned long long)(run->total - run->seen));
    }
}

static jzx_behavior_result give(jzx_flow *flow, uint32_t n)
{
    flow_run *run = flow->state;
    for (uint32_t i = 0; i < n && run->next < run->total; i++) {
        bench_check(jzx_flow_emit_u64(flow, ++run->next), "emit");
    }
    if (run->next == run->total) {
        bench_check(jzx_flow_finish(flow), "finish");
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result add_one(jzx_flow *flow, const jzx_message *item)
{
    bench_check(jzx_flow_emit_u64(flow, item->u64 + 1), "emit");
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result count(jzx_flow *flow, const jzx_message *item)
{
    flow_run *run = flow->state;
    (void)item;
    run->seen++;
    return JZX_BEHAVIOR_OK;
}

void bench_jzx_flow(const bench_run *run, bench_sample *out)
{
    static flow_run me;
    me = (flow_run){.total = run->ops};
    static const jzx_flow_opts source = {.kind = JZX_FLOW_SOURCE, .on_demand = give, .arg = &me};
    static const jzx_flow_opts stage = {.on_item = add_one, .arg = &me};
    static const jzx_flow_opts sink = {.kind = JZX_FLOW_SINK, .on_item = count, .arg = &me};
    jzx_flow_link link = {.max_demand = WINDOW};
    jzx_actor_id ids[3];
    jzx_loop *loop = bench_loop_open();
    bench_check(jzx_flow_spawn(loop, &source, &ids[0]), "spawn");
    bench_check(jzx_flow_spawn(loop, &stage, &ids[1]), "spawn");
    bench_check(jzx_flow_spawn(loop, &sink, &ids[2]), "spawn");
    bench_watch watch = bench_start();
    bench_check(jzx_flow_connect(loop, ids[0], ids[1], &link), "connect");
    bench_check(jzx_flow_connect(loop, ids[1], ids[2], &link), "connect");
    bench_check(jzx_loop_run(loop), "run");
    bench_stop(watch, run->ops, out);
    check_all(&me);
    bench_check(jzx_loop_destroy(loop), "destroy");
}

/* By hand: the sink tells the source when half a window was handled. */

static jzx_behavior_result hand_source(jzx_context *ctx, const jzx_message *msg)
{
    flow_run *run = ctx->state;
    for (uint64_t i = 0; i < msg->u64 && run->next < run->total; i++) {
        bench_check(jzx_send_u64(ctx->loop, run->to, ++run->next, TAG_ITEM), "send");
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result hand_stage(jzx_context *ctx, const jzx_message *msg)
{
    const flow_run *run = ctx->state;
    bench_check(jzx_send_u64(ctx->loop, run->to, msg->u64 + 1, TAG_ITEM), "send");
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result hand_sink(jzx_context *ctx, const jzx_message *msg)
{
    flow_run *run = ctx->state;
    (void)msg;
    run->seen++;
    if (run->seen == run->total) {
        jzx_loop_request_stop(ctx->loop);
    } else if (run->seen % (WINDOW / 2) == 0) {
        bench_check(jzx_send_u64(ctx->loop, run->from, WINDOW / 2, TAG_MORE), "send");
    }
    return JZX_BEHAVIOR_OK;
}

void bench_raw_flow(const bench_run *run, bench_sample *out)
{
    flow_run source = {.total = run->ops};
    flow_run stage = {.total = run->ops};
    flow_run sink = {.total = run->ops};
    jzx_spawn_opts spawn[] = {{.behavior = hand_source, .state = &source},
                              {.behavior = hand_stage, .state = &stage},
                              {.behavior = hand_sink, .state = &sink}};
    jzx_actor_id id = JZX_NOBODY;
    jzx_loop *loop = bench_loop_open();
    bench_check(jzx_spawn(loop, &spawn[2], &stage.to), "spawn");
    bench_check(jzx_spawn(loop, &spawn[1], &source.to), "spawn");
    bench_check(jzx_spawn(loop, &spawn[0], &id), "spawn");
    sink.from = id;
    bench_watch watch = bench_start();
    bench_check(jzx_send_u64(loop, id, WINDOW, TAG_MORE), "send");
    bench_check(jzx_loop_run(loop), "run");
    bench_stop(watch, run->ops, out);
    check_all(&sink);
    bench_check(jzx_loop_destroy(loop), "destroy");
}
