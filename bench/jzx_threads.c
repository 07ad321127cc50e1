/* Messages of plain threads, which run no actors, to a loop. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"
#include "sides.h"

#include <jzx/jzx.h>

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TAG_ADD = 1, TAG_END = 2, PATIENCE = 64 };

typedef struct counter {
    uint64_t sum;
} counter;

static jzx_behavior_result count(jzx_context *ctx, const jzx_message *msg)
{
    counter *self = ctx->state;
    if (msg->tag == TAG_ADD) {
        self->sum += msg->u64;
        return JZX_BEHAVIOR_OK;
    }
    jzx_loop_request_stop(ctx->loop);
    return JZX_BEHAVIOR_OK;
}

typedef struct producer {
    jzx_sender *sender;
    jzx_actor_id target;
    uint64_t count;
} producer;

/* A full mailbox is tried again; the loop is given the CPU now and then, since with more threads
 * than CPUs it may be waiting for ours. */
static void send_patiently(const producer *self, uint64_t value, uint32_t tag)
{
    for (uint32_t tries = 0;; tries++) {
        jzx_err err = jzx_send_async_u64(self->sender, self->target, value, tag);
        if (err == JZX_OK) {
            return;
        }
        if (err != JZX_ERR_MAILBOX_FULL) {
            bench_check(err, "send");
        }
        if (tries < PATIENCE) {
            bench_relax();
        } else {
            sched_yield();
        }
    }
}

static void *produce(void *arg)
{
    const producer *self = arg;
    bench_pin(1 % bench_cpu_count());
    for (uint64_t i = 0; i < self->count; i++) {
        send_patiently(self, 1, TAG_ADD);
    }
    send_patiently(self, 0, TAG_END);
    return NULL;
}

void bench_jzx_sender_2t(const bench_run *run, bench_sample *out)
{
    counter total = {0};
    producer other = {.count = run->ops};
    pthread_t thread;
    jzx_loop *loop = bench_loop_open();
    jzx_spawn_opts opts = {.behavior = count, .state = &total};
    bench_check(jzx_spawn(loop, &opts, &other.target), "spawn");
    bench_check(jzx_sender_open(loop, JZX_SENDER_SINGLE, &other.sender), "sender");
    bench_pin(0);
    bench_watch watch = bench_start();
    pthread_create(&thread, NULL, produce, &other);
    bench_check(jzx_loop_run(loop), "run");
    bench_stop(watch, run->ops, out);
    jzx_counters counters;
    jzx_loop_counters(loop, &counters);
    snprintf(out->note, sizeof out->note, "wakes=%" PRIu64 ";full=%" PRIu64, counters.wakes_sent,
             counters.refused[JZX_REFUSED_FULL]);
    pthread_join(thread, NULL);
    jzx_sender_release(other.sender);
    bench_check(jzx_loop_destroy(loop), "destroy");
    if (total.sum != run->ops) {
        bench_fail("a sender lost messages");
    }
}

/* A foreign send and its delivery without a second thread: nothing has to travel between caches,
 * and the count of instructions is the same in every run. */
void bench_jzx_async(const bench_run *run, bench_sample *out)
{
    counter total = {0};
    jzx_actor_id target = JZX_NOBODY;
    jzx_sender *sender = NULL;
    jzx_loop *loop = bench_loop_open();
    jzx_spawn_opts opts = {.behavior = count, .state = &total};
    bench_check(jzx_spawn(loop, &opts, &target), "spawn");
    bench_check(jzx_sender_open(loop, JZX_SENDER_SINGLE, &sender), "sender");
    bench_watch watch = bench_start();
    for (uint64_t done = 0; done < run->ops; done += BENCH_BATCH) {
        for (uint32_t i = 0; i < BENCH_BATCH; i++) {
            bench_check(jzx_send_async_u64(sender, target, 1, TAG_ADD), "send");
        }
        bench_check(jzx_loop_run_until_idle(loop), "run");
    }
    bench_stop(watch, run->ops, out);
    jzx_sender_release(sender);
    bench_check(jzx_loop_destroy(loop), "destroy");
    if (total.sum < run->ops) {
        bench_fail("async lost messages");
    }
}

typedef struct sleeper {
    jzx_loop *loop;
    int64_t *latencies;
    uint64_t max;
    _Atomic uint64_t woken;
} sleeper;

static jzx_behavior_result note_wake(jzx_context *ctx, const jzx_message *msg)
{
    sleeper *self = ctx->state;
    uint64_t woken = atomic_load_explicit(&self->woken, memory_order_relaxed);
    self->latencies[woken] = (int64_t)(bench_now_ns() - msg->u64);
    atomic_store_explicit(&self->woken, woken + 1, memory_order_release);
    if (woken + 1 == self->max) {
        jzx_loop_request_stop(ctx->loop);
    }
    return JZX_BEHAVIOR_OK;
}

static void *sleep_in_loop(void *arg)
{
    const sleeper *self = arg;
    bench_pin(0);
    bench_check(jzx_loop_run(self->loop), "run");
    return NULL;
}

void bench_jzx_wake(const bench_run *run, bench_sample *out)
{
    sleeper other = {.latencies = bench_alloc(run->ops, sizeof(int64_t)), .max = run->ops};
    const struct timespec pause = {.tv_nsec = 100000}; /* time enough to fall asleep */
    jzx_actor_id target = JZX_NOBODY;
    jzx_sender *sender = NULL;
    pthread_t thread;
    other.loop = bench_loop_open();
    jzx_spawn_opts opts = {.behavior = note_wake, .state = &other};
    bench_check(jzx_spawn(other.loop, &opts, &target), "spawn");
    bench_check(jzx_sender_open(other.loop, JZX_SENDER_SINGLE, &sender), "sender");
    bench_pin(1 % bench_cpu_count());
    pthread_create(&thread, NULL, sleep_in_loop, &other);
    bench_watch watch = bench_start();
    for (uint64_t i = 0; i < run->ops; i++) {
        nanosleep(&pause, NULL);
        bench_check(jzx_send_async_u64(sender, target, bench_now_ns(), TAG_ADD), "send");
        while (atomic_load_explicit(&other.woken, memory_order_acquire) != i + 1) {
            sched_yield();
        }
    }
    bench_stop(watch, run->ops, out);
    pthread_join(thread, NULL);
    jzx_sender_release(sender);
    bench_check(jzx_loop_destroy(other.loop), "destroy");
    out->latency = bench_latency_of(other.latencies, run->ops);
    free(other.latencies);
}
