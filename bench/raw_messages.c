/* The floor on one thread: one ring of {to, from, value}, and an indirect call per message.
 *
 * Nothing that carries integers between receivers chosen at run time can do much less. There is no
 * lookup, no bound per receiver, no fairness and no life cycle: that is what the ratio measures. */
#include "bench.h"
#include "raw_ring.h"
#include "sides.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void pass_on(raw_actor *self, raw_actor *from, int64_t value)
{
    (void)from;
    if (value == 0) {
        running = false;
        return;
    }
    post(self->peer, self, value - 1);
}

void bench_raw_pingpong(const bench_run *run, bench_sample *out)
{
    ring_open(1024);
    raw_actor pong = {.behavior = pass_on};
    raw_actor ping = {.behavior = pass_on, .peer = &pong};
    pong.peer = &ping;
    bench_watch watch = bench_start();
    post(&ping, NULL, (int64_t)run->ops * 2);
    run_until_stopped();
    bench_stop(watch, run->ops, out);
}

void bench_raw_ring(const bench_run *run, bench_sample *out)
{
    static raw_actor actors[BENCH_RING_ACTORS];
    ring_open(1024);
    for (uint32_t i = 0; i < BENCH_RING_ACTORS; i++) {
        actors[i].behavior = pass_on;
        actors[i].peer = &actors[(i + 1) % BENCH_RING_ACTORS];
    }
    bench_watch watch = bench_start();
    post(&actors[0], NULL, (int64_t)run->ops);
    run_until_stopped();
    bench_stop(watch, run->ops, out);
}

static int producers_left;

static void count(raw_actor *self, raw_actor *from, int64_t value)
{
    (void)from;
    if (value < 0) {
        producers_left--;
        running = producers_left > 0;
        return;
    }
    self->left += value;
}

static void produce(raw_actor *self, raw_actor *from, int64_t value)
{
    (void)from;
    (void)value;
    for (uint32_t i = 0; i < BENCH_BATCH && self->left > 0; i++) {
        post(self->peer, self, 1);
        self->left--;
    }
    if (self->left > 0) {
        post(self, self, 0);
    } else {
        post(self->peer, self, -1);
    }
}

static void counting(const bench_run *run, int producers, bench_sample *out)
{
    ring_open(4096);
    raw_actor counter = {.behavior = count};
    raw_actor producer[2];
    int64_t share = (int64_t)run->ops / producers;
    producers_left = producers;
    bench_watch watch = bench_start();
    for (int i = 0; i < producers; i++) {
        producer[i] = (raw_actor){.behavior = produce, .peer = &counter, .left = share};
        post(&producer[i], NULL, 0);
    }
    run_until_stopped();
    bench_stop(watch, run->ops, out);
    if (counter.left != share * producers) {
        bench_fail("raw counting lost messages");
    }
}

void bench_raw_counting(const bench_run *run, bench_sample *out)
{
    counting(run, 1, out);
}

void bench_raw_counting2p(const bench_run *run, bench_sample *out)
{
    counting(run, 2, out);
}

static raw_actor *crowd;
static uint32_t crowd_left;

/* A value of 0 or more is a ping and wants an answer; below 0 it is the answer. */
static void big(raw_actor *self, raw_actor *from, int64_t value)
{
    if (value >= 0) {
        post(from, self, -1 - value);
        return;
    }
    if (self->left == 0) {
        crowd_left--;
        running = crowd_left > 0;
        return;
    }
    self->left--;
    post(&crowd[bench_random(&self->random) % BENCH_BIG_ACTORS], self, self->left);
}

void bench_raw_big(const bench_run *run, bench_sample *out)
{
    ring_open(1 << 15);
    crowd = bench_alloc(BENCH_BIG_ACTORS, sizeof *crowd);
    crowd_left = BENCH_BIG_ACTORS;
    for (uint32_t i = 0; i < BENCH_BIG_ACTORS; i++) {
        crowd[i] = (raw_actor){
            .behavior = big, .left = (int64_t)(run->ops / BENCH_BIG_ACTORS), .random = i + 1};
    }
    bench_watch watch = bench_start();
    for (uint32_t i = 0; i < BENCH_BIG_ACTORS; i++) {
        post(&crowd[i], NULL, -1);
    }
    run_until_stopped();
    bench_stop(watch, run->ops, out);
}

static uint64_t born_left;

static void end_at_once(raw_actor *self, raw_actor *from, int64_t value)
{
    (void)from;
    (void)value;
    free(self);
    born_left--;
    running = born_left > 0;
}

/* One cache line each, as a runtime's actor would at least take. */
static raw_actor *raw_spawn(void)
{
    raw_actor *actor = bench_alloc(1, BENCH_CACHE_LINE);
    *actor = (raw_actor){.behavior = end_at_once};
    return actor;
}

void bench_raw_fjcreate(const bench_run *run, bench_sample *out)
{
    uint64_t capacity = 1;
    while (capacity < run->ops) {
        capacity *= 2;
    }
    bench_watch watch = bench_start();
    ring_open(capacity);
    born_left = run->ops;
    for (uint64_t i = 0; i < run->ops; i++) {
        post(raw_spawn(), NULL, (int64_t)i);
    }
    run_until_stopped();
    bench_stop(watch, run->ops, out);
}

static void spawn_batch(raw_actor *self, raw_actor *from, int64_t value)
{
    (void)from;
    (void)value;
    for (uint32_t i = 0; i < BENCH_BATCH && self->left > 0; i++) {
        post(raw_spawn(), self, i);
        self->left--;
    }
    if (self->left > 0) {
        post(self, self, 0);
    }
}

void bench_raw_fjcreate_chunked(const bench_run *run, bench_sample *out)
{
    bench_watch watch = bench_start();
    ring_open(4096);
    born_left = run->ops;
    raw_actor driver = {.behavior = spawn_batch, .left = (int64_t)run->ops};
    post(&driver, NULL, 0);
    run_until_stopped();
    bench_stop(watch, run->ops, out);
}

void bench_raw_idle(const bench_run *run, bench_sample *out)
{
    raw_actor **actors = bench_alloc(run->ops, sizeof *actors);
    memset(actors, 0xFF, run->ops * sizeof *actors); /* its pages count before, not after */
    uint64_t before_kb = bench_status_kb(0, "VmRSS:");
    bench_watch watch = bench_start();
    for (uint64_t i = 0; i < run->ops; i++) {
        actors[i] = raw_spawn();
    }
    bench_stop(watch, run->ops, out);
    uint64_t after_kb = bench_status_kb(0, "VmRSS:");
    out->bytes_per_actor = (double)(after_kb - before_kb) * 1024.0 / (double)run->ops;
}

/* The flood is a backlog of as many messages as a mailbox holds by default, renewed one by one;
 * the neighbour sends to itself and measures how long that takes. One queue for all is what a
 * program without a scheduler has: every message waits for the whole backlog. */
enum { FLOOD_BACKLOG = 1000 };
static int64_t *waits;
static uint64_t wait_count;
static uint64_t wait_max;

static void flood(raw_actor *self, raw_actor *from, int64_t value)
{
    (void)from;
    self->random = (uint32_t)value + 1;
    for (int i = 0; i < 100; i++) {
        bench_random(&self->random);
    }
    post(self, self, value);
}

static void wait_for_self(raw_actor *self, raw_actor *from, int64_t value)
{
    (void)from;
    if (value != 0) {
        waits[wait_count++] = (int64_t)bench_now_ns() - value;
    }
    running = wait_count < wait_max;
    post(self, self, (int64_t)bench_now_ns());
}

void bench_raw_fairness(const bench_run *run, bench_sample *out)
{
    ring_open(2048);
    wait_max = run->ops;
    waits = bench_alloc(run->ops, sizeof *waits);
    raw_actor flooding = {.behavior = flood};
    raw_actor neighbour = {.behavior = wait_for_self};
    bench_watch watch = bench_start();
    for (int i = 0; i < FLOOD_BACKLOG; i++) {
        post(&flooding, NULL, i);
    }
    post(&neighbour, NULL, 0);
    run_until_stopped();
    bench_stop(watch, run->ops, out);
    out->latency = bench_latency_of(waits, wait_count);
}
