/* What only several threads can show: actors that come and go on a pool and on another dispatcher,
 * a worker that does not come back, and jobs for blocking threads. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"
#include "sides.h"

#include <jzx/blocking.h>
#include <jzx/jzx.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { TAG_GO = 1, TAG_SLEEP = 2, TAG_DONE = 3 };

static jzx_actor_id spawn_at(const bench_stage *stage, jzx_behavior_fn behavior, void *state)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {
        .behavior = behavior, .state = state, .max_msgs = 1, .dispatcher = stage->one};
    bench_check(jzx_spawn(stage->loop, &opts, &id), "spawn");
    return id;
}

/* The actors of a batch, or all of them, are counted down as they end: the last one asks for the
 * next batch, or ends the run. */
typedef struct nursery {
    jzx_actor_id driver;
    uint64_t to_spawn; /* the driver's */
    bool chunked;      /* wait for a batch before the next one */
    _Alignas(BENCH_CACHE_LINE) _Atomic uint64_t left;
} nursery;

static jzx_behavior_result end_at_once(jzx_context *ctx, const jzx_message *msg)
{
    nursery *all = ctx->state;
    (void)msg;
    if (atomic_fetch_sub_explicit(&all->left, 1, memory_order_acq_rel) == 1) {
        bench_check(jzx_send_u64(ctx->loop, all->driver, 0, TAG_DONE), "send");
    }
    return JZX_BEHAVIOR_STOP;
}

static jzx_behavior_result spawn_batch(jzx_context *ctx, const jzx_message *msg)
{
    nursery *all = ctx->state;
    if (all->to_spawn == 0) {
        if (msg->tag == TAG_DONE) {
            bench_stage_end(ctx->loop);
        }
        return JZX_BEHAVIOR_OK;
    }
    jzx_spawn_opts opts = {.behavior = end_at_once, .state = all, .flags = JZX_SPAWN_QUIET};
    uint64_t batch = all->to_spawn < BENCH_BATCH ? all->to_spawn : BENCH_BATCH;
    if (all->chunked) {
        atomic_store_explicit(&all->left, batch, memory_order_relaxed);
    }
    all->to_spawn -= batch;
    for (uint64_t i = 0; i < batch; i++) {
        jzx_actor_id id = JZX_NOBODY;
        bench_check(jzx_spawn(ctx->loop, &opts, &id), "spawn");
        bench_check(jzx_send_u64(ctx->loop, id, i, TAG_GO), "send");
    }
    if (!all->chunked) {
        bench_check(jzx_send_u64(ctx->loop, ctx->self, 0, TAG_GO), "send");
    }
    return JZX_BEHAVIOR_OK;
}

static void fjcreate(const bench_run *run, bool chunked, bench_sample *out)
{
    nursery all = {.to_spawn = run->ops, .chunked = chunked};
    atomic_store_explicit(&all.left, run->ops, memory_order_relaxed);
    bench_watch watch = bench_start();
    bench_stage stage = bench_stage_pool();
    all.driver = spawn_at(&stage, spawn_batch, &all);
    bench_check(jzx_send_u64(stage.loop, all.driver, 0, TAG_GO), "send");
    bench_stage_run(&stage);
    bench_stop(watch, run->ops, out);
    bench_stage_close(&stage);
}

void bench_jzx_fjcreate_2t(const bench_run *run, bench_sample *out)
{
    fjcreate(run, false, out);
}

void bench_jzx_fjcreate_chunked_2t(const bench_run *run, bench_sample *out)
{
    fjcreate(run, true, out);
}

/* A parent here, its children there; it is told of each end. */
typedef struct parent {
    uint64_t to_spawn;
    uint64_t alive;
    const char *there;
} parent;

static jzx_behavior_result end_far(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_STOP;
}

static jzx_behavior_result spawn_far(jzx_context *ctx, const jzx_message *msg)
{
    parent *self = ctx->state;
    if (msg->tag == JZX_TAG_CHILD_ENDED) {
        self->alive--;
    }
    if (self->alive > 0) {
        return JZX_BEHAVIOR_OK;
    }
    if (self->to_spawn == 0) {
        bench_stage_end(ctx->loop);
        return JZX_BEHAVIOR_OK;
    }
    jzx_spawn_opts opts = {.behavior = end_far, .dispatcher = self->there};
    for (uint32_t i = 0; i < BENCH_BATCH && self->to_spawn > 0; i++) {
        jzx_actor_id id = JZX_NOBODY;
        bench_check(jzx_spawn(ctx->loop, &opts, &id), "spawn");
        bench_check(jzx_send_u64(ctx->loop, id, i, TAG_GO), "send");
        self->alive++;
        self->to_spawn--;
    }
    return JZX_BEHAVIOR_OK;
}

void bench_jzx_spawn_far(const bench_run *run, bench_sample *out)
{
    bench_stage stage = bench_stage_pinned();
    parent here = {.to_spawn = run->ops, .there = stage.two};
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = spawn_far, .state = &here, .dispatcher = stage.one};
    bench_check(jzx_spawn(stage.loop, &opts, &id), "spawn");
    bench_watch watch = bench_start();
    bench_check(jzx_send_u64(stage.loop, id, 0, TAG_GO), "send");
    bench_stage_run(&stage);
    bench_stop(watch, run->ops, out);
    bench_stage_close(&stage);
}

/* One actor sends the first half of the messages, so that they wait where it runs, and sleeps in
 * its behavior. A thread sends the other half while it sleeps. */
typedef struct ward {
    const bench_run *run;
    jzx_actor_id *ids;
    jzx_sender *sender;
    int64_t *waits;
    _Atomic uint64_t waits_count;
    _Atomic uint32_t open; /* the sleep, and the other messages: the run ends after both */
} ward;

static void one_done(ward *all, jzx_loop *loop)
{
    if (atomic_fetch_sub_explicit(&all->open, 1, memory_order_acq_rel) == 1) {
        bench_stage_end(loop);
    }
}

static jzx_behavior_result note_wait(jzx_context *ctx, const jzx_message *msg)
{
    ward *all = ctx->state;
    int64_t wait = (int64_t)(bench_now_ns() - msg->u64);
    uint64_t at = atomic_fetch_add_explicit(&all->waits_count, 1, memory_order_relaxed);
    all->waits[at] = wait;
    if (at + 1 == all->run->ops) {
        one_done(all, ctx->loop);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result sleep_here(jzx_context *ctx, const jzx_message *msg)
{
    ward *all = ctx->state;
    const struct timespec nap = {.tv_sec = all->run->timer_ms / 1000,
                                 .tv_nsec = (long)(all->run->timer_ms % 1000) * 1000000};
    (void)msg;
    for (uint64_t i = 0; i < all->run->ops / 2; i++) {
        bench_check(jzx_send_u64(ctx->loop, all->ids[i], bench_now_ns(), TAG_GO), "send");
    }
    nanosleep(&nap, NULL);
    one_done(all, ctx->loop);
    return JZX_BEHAVIOR_OK;
}

static void *send_meanwhile(void *arg)
{
    const ward *all = arg;
    uint64_t first = all->run->ops / 2;
    uint64_t later = all->run->ops - first;
    const struct timespec pause = {.tv_nsec =
                                       (long)all->run->timer_ms * 1000000 / (long)(later + 1)};
    for (uint64_t i = first; i < all->run->ops; i++) {
        nanosleep(&pause, NULL);
        bench_check(jzx_send_async_u64(all->sender, all->ids[i], bench_now_ns(), TAG_GO), "send");
    }
    return NULL;
}

void bench_jzx_rescue(const bench_run *run, bench_sample *out)
{
    ward all = {.run = run,
                .ids = bench_alloc(run->ops, sizeof(jzx_actor_id)),
                .waits = bench_alloc(run->ops, sizeof(int64_t))};
    pthread_t thread;
    atomic_store_explicit(&all.open, 2, memory_order_relaxed);
    bench_stage stage = bench_stage_pool();
    for (uint64_t i = 0; i < run->ops; i++) {
        all.ids[i] = spawn_at(&stage, note_wait, &all);
    }
    bench_check(jzx_sender_open(stage.loop, JZX_SENDER_SINGLE, &all.sender), "sender");
    jzx_actor_id sleeper = spawn_at(&stage, sleep_here, &all);
    bench_check(jzx_send_u64(stage.loop, sleeper, 0, TAG_SLEEP), "send");
    bench_watch watch = bench_start();
    pthread_create(&thread, NULL, send_meanwhile, &all);
    bench_stage_run(&stage);
    bench_stop(watch, run->ops, out);
    pthread_join(thread, NULL);
    jzx_sender_release(all.sender);
    bench_stage_close(&stage);
    out->latency = bench_latency_of(all.waits, run->ops);
    free(all.waits);
    free(all.ids);
}

static void *empty_job(void *arg)
{
    return arg;
}

/* One job at a time: what one round trip costs, not how many fit into a second. */
static jzx_behavior_result ask_again(jzx_context *ctx, const jzx_message *msg)
{
    uint64_t *left = ctx->state;
    (void)msg;
    if (*left == 0) {
        bench_stage_end(ctx->loop);
        return JZX_BEHAVIOR_OK;
    }
    (*left)--;
    bench_check(jzx_run_blocking(ctx, empty_job, NULL, TAG_DONE), "job");
    return JZX_BEHAVIOR_OK;
}

void bench_jzx_blocking(const bench_run *run, bench_sample *out)
{
    uint64_t left = run->ops;
    bench_stage stage = bench_stage_loop();
    jzx_actor_id id = spawn_at(&stage, ask_again, &left);
    bench_watch watch = bench_start();
    bench_check(jzx_send_u64(stage.loop, id, 0, TAG_GO), "send");
    bench_stage_run(&stage);
    bench_stop(watch, run->ops, out);
    bench_stage_close(&stage);
}
