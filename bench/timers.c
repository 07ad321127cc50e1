/* Timers: a bare wheel, and ours.
 *
 * Both sides arm in batches of 1,000, read the clock for every deadline, fire on whole milliseconds
 * and note at delivery how late it is against the deadline that was asked for. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"
#include "sides.h"

#include <jzx/jzx.h>

#include <stdlib.h>
#include <time.h>

#define NS_PER_MS 1000000u

typedef struct lateness {
    int64_t *ns;
    uint64_t count;
    uint64_t max;
} lateness;

static void lateness_note(lateness *late, uint64_t due_ns)
{
    late->ns[late->count] = (int64_t)(bench_now_ns() - due_ns);
    late->count++;
}

typedef struct wheel_timer wheel_timer;
struct wheel_timer {
    wheel_timer *next;
    wheel_timer **link; /* what points to this one: cancel needs no search */
    uint64_t due_ns;
};

/* More slots than the longest delay has milliseconds: no entry ever goes round twice. */
enum { WHEEL_SLOTS = 4096 };
static wheel_timer *wheel[WHEEL_SLOTS];
static uint64_t wheel_ms;

static wheel_timer *wheel_arm(uint64_t delay_ms)
{
    wheel_timer *timer = bench_alloc(1, sizeof *timer);
    timer->due_ns = bench_now_ns() + delay_ms * NS_PER_MS;
    uint64_t slot = (timer->due_ns + NS_PER_MS - 1) / NS_PER_MS;
    if (slot <= wheel_ms) {
        slot = wheel_ms + 1;
    }
    timer->link = &wheel[slot % WHEEL_SLOTS];
    timer->next = *timer->link;
    if (timer->next != NULL) {
        timer->next->link = &timer->next;
    }
    *timer->link = timer;
    return timer;
}

static void wheel_cancel(wheel_timer *timer)
{
    *timer->link = timer->next;
    if (timer->next != NULL) {
        timer->next->link = timer->link;
    }
    free(timer);
}

static void wheel_expire(lateness *late)
{
    uint64_t now_ms = bench_now_ns() / NS_PER_MS;
    while (wheel_ms < now_ms) {
        wheel_ms++;
        wheel_timer *timer = wheel[wheel_ms % WHEEL_SLOTS];
        wheel[wheel_ms % WHEEL_SLOTS] = NULL;
        while (timer != NULL) {
            wheel_timer *next = timer->next;
            lateness_note(late, timer->due_ns);
            free(timer);
            timer = next;
        }
    }
}

void bench_raw_timers(const bench_run *run, bench_sample *out)
{
    lateness late = {.ns = bench_alloc(run->ops, sizeof(int64_t)), .max = run->ops};
    uint32_t random = 42;
    uint64_t armed = 0;
    bench_watch watch = bench_start();
    wheel_ms = bench_now_ns() / NS_PER_MS;
    while (late.count < late.max) {
        for (uint32_t i = 0; i < BENCH_BATCH && armed < run->ops; i++) {
            wheel_arm(bench_random(&random) % run->timer_ms);
            armed++;
        }
        wheel_expire(&late);
        if (armed == run->ops && late.count < late.max) {
            uint64_t due_ns = (wheel_ms + 1) * NS_PER_MS;
            struct timespec until = {.tv_sec = (time_t)(due_ns / 1000000000u),
                                     .tv_nsec = (long)(due_ns % 1000000000u)};
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        }
    }
    bench_stop(watch, run->ops, out);
    out->latency = bench_latency_of(late.ns, late.count);
    free(late.ns);
}

/* Arms a batch, then cancels it: what a program with timeouts does that rarely expire. */
void bench_raw_timer_cancel(const bench_run *run, bench_sample *out)
{
    static wheel_timer *batch[BENCH_BATCH];
    uint32_t random = 42;
    bench_watch watch = bench_start();
    wheel_ms = bench_now_ns() / NS_PER_MS;
    for (uint64_t done = 0; done < run->ops; done += BENCH_BATCH) {
        for (uint32_t i = 0; i < BENCH_BATCH; i++) {
            batch[i] = wheel_arm(1000 + bench_random(&random) % run->timer_ms);
        }
        for (uint32_t i = 0; i < BENCH_BATCH; i++) {
            wheel_cancel(batch[i]);
        }
    }
    bench_stop(watch, run->ops, out);
}

static jzx_behavior_result take_timer(jzx_context *ctx, const jzx_message *msg)
{
    lateness *late = ctx->state;
    lateness_note(late, msg->u64);
    if (late->count == late->max) {
        jzx_loop_request_stop(ctx->loop);
    }
    return JZX_BEHAVIOR_OK;
}

typedef struct armer {
    jzx_actor_id sink;
    uint64_t left;
    uint32_t timer_ms;
    uint32_t random;
} armer;

static jzx_behavior_result arm_batch(jzx_context *ctx, const jzx_message *msg)
{
    armer *self = ctx->state;
    (void)msg;
    for (uint32_t i = 0; i < BENCH_BATCH && self->left > 0; i++) {
        uint64_t delay_ms = bench_random(&self->random) % self->timer_ms;
        jzx_timer_opts opts = {.delay_ms = delay_ms, .flags = JZX_TIMER_VALUE};
        opts.u64 = bench_now_ns() + delay_ms * NS_PER_MS;
        bench_check(jzx_timer_start(ctx->loop, self->sink, &opts, NULL), "timer");
        self->left--;
    }
    if (self->left > 0) {
        bench_check(jzx_send_u64(ctx->loop, ctx->self, 0, 0), "send");
    }
    return JZX_BEHAVIOR_OK;
}

void bench_jzx_timers(const bench_run *run, bench_sample *out)
{
    lateness late = {.ns = bench_alloc(run->ops, sizeof(int64_t)), .max = run->ops};
    armer arming = {.left = run->ops, .timer_ms = run->timer_ms, .random = 42};
    jzx_actor_id id = JZX_NOBODY;
    bench_watch watch = bench_start();
    jzx_loop *loop = bench_loop_open_with(500, 1000);
    /* A message that arms a thousand timers takes up to a millisecond, in which hundreds fall due.
     * The actor that takes them gets turns of that order, bounded by time and not by number; with
     * the default of 200 us the armer would take four fifths of the time and the rest would pile
     * up. */
    jzx_spawn_opts sink = {.behavior = take_timer, .state = &late, .max_msgs = 4096};
    bench_check(jzx_spawn(loop, &sink, &arming.sink), "spawn");
    jzx_spawn_opts driver = {.behavior = arm_batch, .state = &arming, .max_msgs = 1};
    bench_check(jzx_spawn(loop, &driver, &id), "spawn");
    bench_check(jzx_send_u64(loop, id, 0, 0), "send");
    bench_check(jzx_loop_run(loop), "run");
    bench_stop(watch, run->ops, out);
    bench_check(jzx_loop_destroy(loop), "destroy");
    out->latency = bench_latency_of(late.ns, late.count);
    free(late.ns);
}

void bench_jzx_timer_cancel(const bench_run *run, bench_sample *out)
{
    static jzx_timer_id batch[BENCH_BATCH];
    lateness never = {0};
    uint32_t random = 42;
    jzx_actor_id id = JZX_NOBODY;
    jzx_loop *loop = bench_loop_open();
    jzx_spawn_opts sink = {.behavior = take_timer, .state = &never};
    bench_check(jzx_spawn(loop, &sink, &id), "spawn");
    bench_watch watch = bench_start();
    for (uint64_t done = 0; done < run->ops; done += BENCH_BATCH) {
        for (uint32_t i = 0; i < BENCH_BATCH; i++) {
            uint32_t delay_ms = 1000 + bench_random(&random) % run->timer_ms;
            bench_check(jzx_send_after(loop, id, delay_ms, NULL, 0, 0, &batch[i]), "timer");
        }
        for (uint32_t i = 0; i < BENCH_BATCH; i++) {
            bench_check(jzx_cancel_timer(loop, batch[i]), "cancel");
        }
    }
    bench_stop(watch, run->ops, out);
    bench_check(jzx_loop_destroy(loop), "destroy");
}
