/* Actors that come and go, and actors that only exist. */
#include "bench.h"
#include "sides.h"

#include <jzx/jzx.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct nursery {
    uint64_t to_spawn;
    uint64_t to_end;
} nursery;

static jzx_behavior_result end_at_once(jzx_context *ctx, const jzx_message *msg)
{
    nursery *all = ctx->state;
    (void)msg;
    all->to_end--;
    if (all->to_end == 0) {
        jzx_loop_request_stop(ctx->loop);
    }
    return JZX_BEHAVIOR_STOP;
}

/* Quiet: raw sends no message either when an actor ends. */
static jzx_spawn_opts opts_of(nursery *all)
{
    return (jzx_spawn_opts){.behavior = end_at_once, .state = all, .flags = JZX_SPAWN_QUIET};
}

static void spawn_and_send(jzx_loop *loop, nursery *all, const jzx_spawn_opts *opts)
{
    jzx_actor_id id = JZX_NOBODY;
    bench_check(jzx_spawn(loop, opts, &id), "spawn");
    bench_check(jzx_send_u64(loop, id, all->to_spawn, 0), "send");
    all->to_spawn--;
}

void bench_jzx_fjcreate(const bench_run *run, bench_sample *out)
{
    nursery all = {.to_spawn = run->ops, .to_end = run->ops};
    bench_watch watch = bench_start();
    jzx_loop *loop = bench_loop_open();
    jzx_spawn_opts opts = opts_of(&all);
    while (all.to_spawn > 0) {
        spawn_and_send(loop, &all, &opts);
    }
    bench_check(jzx_loop_run(loop), "run");
    bench_stop(watch, run->ops, out);
    bench_check(jzx_loop_destroy(loop), "destroy");
}

static jzx_behavior_result spawn_batch(jzx_context *ctx, const jzx_message *msg)
{
    nursery *all = ctx->state;
    (void)msg;
    jzx_spawn_opts opts = opts_of(all);
    for (uint32_t i = 0; i < BENCH_BATCH && all->to_spawn > 0; i++) {
        spawn_and_send(ctx->loop, all, &opts);
    }
    if (all->to_spawn > 0) {
        bench_check(jzx_send_u64(ctx->loop, ctx->self, 0, 0), "send");
    }
    return JZX_BEHAVIOR_OK;
}

void bench_jzx_fjcreate_chunked(const bench_run *run, bench_sample *out)
{
    nursery all = {.to_spawn = run->ops, .to_end = run->ops};
    jzx_actor_id driver = JZX_NOBODY;
    bench_watch watch = bench_start();
    jzx_loop *loop = bench_loop_open();
    /* One batch per turn, so that no more than a batch is ever alive. */
    jzx_spawn_opts opts = {.behavior = spawn_batch, .state = &all, .max_msgs = 1};
    bench_check(jzx_spawn(loop, &opts, &driver), "spawn");
    bench_check(jzx_send_u64(loop, driver, 0, 0), "send");
    bench_check(jzx_loop_run(loop), "run");
    bench_stop(watch, run->ops, out);
    bench_check(jzx_loop_destroy(loop), "destroy");
}

static jzx_behavior_result do_nothing(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static double bytes_each(uint64_t before_kb, uint64_t count)
{
    return (double)(bench_status_kb(0, "VmRSS:") - before_kb) * 1024.0 / (double)count;
}

void bench_jzx_idle(const bench_run *run, bench_sample *out)
{
    jzx_actor_id *ids = bench_alloc(run->ops, sizeof *ids);
    memset(ids, 0xFF, run->ops * sizeof *ids); /* its pages count before, not after */
    jzx_loop *loop = bench_loop_open();
    uint64_t before_kb = bench_status_kb(0, "VmRSS:");
    bench_watch watch = bench_start();
    for (uint64_t i = 0; i < run->ops; i++) {
        jzx_spawn_opts opts = {.behavior = do_nothing};
        bench_check(jzx_spawn(loop, &opts, &ids[i]), "spawn");
    }
    bench_check(jzx_loop_run_until_idle(loop), "run");
    bench_stop(watch, run->ops, out);
    out->bytes_per_actor = bytes_each(before_kb, run->ops);

    /* What is left when each has handled a message and is idle again. */
    for (uint64_t i = 0; i < run->ops; i++) {
        bench_check(jzx_send_u64(loop, ids[i], i, 0), "send");
        if (i % BENCH_BATCH == BENCH_BATCH - 1) {
            bench_check(jzx_loop_run_until_idle(loop), "run");
        }
    }
    bench_check(jzx_loop_run_until_idle(loop), "run");
    snprintf(out->note, sizeof out->note, "bytes_after_use=%.1f", bytes_each(before_kb, run->ops));
    bench_check(jzx_loop_destroy(loop), "destroy");
    free(ids);
}
