/* What a router costs per message: the same batches straight to the workers, through the shortest
 * router anybody would write by hand, and through routers with each strategy. */
#include "bench.h"
#include "sides.h"

#include <jzx/behavior.h>
#include <jzx/jzx.h>
#include <jzx/router.h>

enum { TAG_GO = 1, TAG_WORK = 2, WORKERS = 4, BATCH = 500 };

typedef struct crew {
    jzx_actor_id workers[WORKERS];
    jzx_actor_id target; /* whom the producer sends to; JZX_NOBODY: the workers in turn */
    jzx_actor_id producer;
    uint64_t next;
    uint64_t handled;
    uint64_t ops;
} crew;

static jzx_behavior_result work_start(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

/* Whoever handles the last one of a batch asks for the next. */
static jzx_behavior_result work(jzx_context *ctx, const jzx_message *msg)
{
    crew *c = ctx->state;
    (void)msg;
    c->handled++;
    if (c->handled == c->ops) {
        jzx_loop_request_stop(ctx->loop);
    } else if (c->handled % BATCH == 0) {
        bench_check(jzx_send_u64(ctx->loop, c->producer, 0, TAG_GO), "send");
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result produce(jzx_context *ctx, const jzx_message *msg)
{
    crew *c = ctx->state;
    (void)msg;
    for (uint64_t i = 0; i < BATCH; i++) {
        jzx_actor_id to = c->target != JZX_NOBODY ? c->target : c->workers[c->next++ % WORKERS];
        bench_check(jzx_send_u64(ctx->loop, to, i, TAG_WORK), "send");
    }
    return JZX_BEHAVIOR_OK;
}

/* No full workers, no deaths, no second strategy. */
static jzx_behavior_result hand_written(jzx_context *ctx, const jzx_message *msg)
{
    crew *c = ctx->state;
    (void)msg;
    bench_check(jzx_forward(ctx, c->workers[c->next++ % WORKERS]), "forward");
    return JZX_BEHAVIOR_OK;
}

static jzx_actor_id spawn(jzx_loop *loop, jzx_behavior_fn behavior, crew *c)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = behavior, .state = c};
    bench_check(jzx_spawn(loop, &opts, &id), "spawn");
    return id;
}

static void run_crew(jzx_loop *loop, crew *c, const bench_run *run, bench_sample *out)
{
    c->ops = run->ops - run->ops % BATCH;
    c->producer = spawn(loop, produce, c);
    bench_check(jzx_loop_run_until_idle(loop), "run");
    bench_watch watch = bench_start();
    bench_check(jzx_send_u64(loop, c->producer, 0, TAG_GO), "send");
    bench_check(jzx_loop_run(loop), "run");
    bench_stop(watch, c->ops, out);
    bench_check(jzx_loop_destroy(loop), "destroy");
}

static jzx_loop *open_workers(crew *c)
{
    jzx_loop *loop = bench_loop_open();
    for (int i = 0; i < WORKERS; i++) {
        c->workers[i] = spawn(loop, work, c);
    }
    return loop;
}

void bench_raw_router_direct(const bench_run *run, bench_sample *out)
{
    crew c = {0};
    jzx_loop *loop = open_workers(&c);
    run_crew(loop, &c, run, out);
}

void bench_raw_router(const bench_run *run, bench_sample *out)
{
    crew c = {0};
    jzx_loop *loop = open_workers(&c);
    c.target = spawn(loop, hand_written, &c);
    run_crew(loop, &c, run, out);
}

static uint64_t key_of(void *arg, const jzx_message *msg)
{
    (void)arg;
    return msg->u64;
}

static void routed(uint32_t strategy, const bench_run *run, bench_sample *out)
{
    crew c = {0};
    jzx_loop *loop = bench_loop_open();
    jzx_spawn_opts worker = {.behavior = work, .init = work_start, .state = &c};
    jzx_router_opts opts = {
        .strategy = strategy, .worker = &worker, .workers = WORKERS, .key = key_of};
    bench_check(jzx_router_spawn(loop, &opts, &c.target), "router");
    run_crew(loop, &c, run, out);
}

void bench_jzx_router(const bench_run *run, bench_sample *out)
{
    routed(JZX_ROUTE_ROUND_ROBIN, run, out);
}

void bench_jzx_router_least(const bench_run *run, bench_sample *out)
{
    routed(JZX_ROUTE_LEAST_MAILBOX, run, out);
}

void bench_jzx_router_hash(const bench_run *run, bench_sample *out)
{
    routed(JZX_ROUTE_HASH, run, out);
}
