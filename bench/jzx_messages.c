/* Messages between actors of one loop, of a pool, and of two pinned loops. */
#include "bench.h"
#include "sides.h"

#include <jzx/jzx.h>

#include <stdatomic.h>
#include <stdlib.h>

enum { TAG_GO = 1, TAG_ADD = 2, TAG_END = 3, TAG_PING = 4, TAG_PONG = 5 };

static jzx_actor_id spawn(jzx_loop *loop, jzx_behavior_fn behavior, void *state)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = behavior, .state = state};
    bench_check(jzx_spawn(loop, &opts, &id), "spawn");
    return id;
}

static void send_value(jzx_loop *loop, jzx_actor_id to, uint64_t value, uint32_t tag)
{
    bench_check(jzx_send_u64(loop, to, value, tag), "send");
}

static void run_and_destroy(jzx_loop *loop, bench_watch watch, uint64_t ops, bench_sample *out)
{
    bench_check(jzx_loop_run(loop), "run");
    bench_stop(watch, ops, out);
    bench_check(jzx_loop_destroy(loop), "destroy");
}

static void run_and_close(const bench_stage *stage, bench_watch watch, uint64_t ops,
                          bench_sample *out)
{
    bench_stage_run(stage);
    bench_stop(watch, ops, out);
    bench_stage_close(stage);
}

typedef struct hop {
    jzx_actor_id next;
} hop;

/* The value counts down on its way; the actor that gets the zero ends the run. */
static jzx_behavior_result pass_on(jzx_context *ctx, const jzx_message *msg)
{
    const hop *self = ctx->state;
    if (msg->u64 == 0) {
        jzx_loop_request_stop(ctx->loop);
        return JZX_BEHAVIOR_OK;
    }
    send_value(ctx->loop, self->next, msg->u64 - 1, TAG_GO);
    return JZX_BEHAVIOR_OK;
}

void bench_jzx_pingpong(const bench_run *run, bench_sample *out)
{
    hop ping;
    hop pong;
    jzx_loop *loop = bench_loop_open();
    pong.next = spawn(loop, pass_on, &ping);
    ping.next = spawn(loop, pass_on, &pong);
    bench_watch watch = bench_start();
    send_value(loop, pong.next, run->ops * 2, TAG_GO);
    run_and_destroy(loop, watch, run->ops, out);
}

/* The same between two threads. Values at which the clock is looked at are even, and those reach
 * the same one of the two each time. */
typedef struct timed_hop {
    hop hop;
    uint64_t stop_at_ns;
    uint64_t left;
} timed_hop;

static jzx_behavior_result pass_on_in_time(jzx_context *ctx, const jzx_message *msg)
{
    timed_hop *self = ctx->state;
    bool late = msg->u64 % 2048 == 0 && bench_now_ns() > self->stop_at_ns;
    if (msg->u64 == 0 || late) {
        self->left = msg->u64;
        bench_stage_end(ctx->loop);
        return JZX_BEHAVIOR_OK;
    }
    send_value(ctx->loop, self->hop.next, msg->u64 - 1, TAG_GO);
    return JZX_BEHAVIOR_OK;
}

static void pingpong_2t(bench_stage stage, const bench_run *run, bench_sample *out)
{
    timed_hop players[2] = {0};
    jzx_actor_id ids[2];
    jzx_spawn_opts opts = {.behavior = pass_on_in_time, .dispatcher = stage.one};
    for (int i = 0; i < 2; i++) {
        opts.state = &players[i];
        bench_check(jzx_spawn(stage.loop, &opts, &ids[i]), "spawn");
        opts.dispatcher = stage.two;
    }
    bench_watch watch = bench_start();
    for (int i = 0; i < 2; i++) {
        players[i].hop.next = ids[1 - i];
        players[i].stop_at_ns = watch.wall_ns + BENCH_PINGPONG_LIMIT_NS;
    }
    send_value(stage.loop, ids[0], run->ops * 2, TAG_GO);
    bench_stage_run(&stage);
    bench_stop(watch, run->ops - players[0].left / 2, out);
    bench_stage_close(&stage);
}

void bench_jzx_pingpong_2t(const bench_run *run, bench_sample *out)
{
    pingpong_2t(bench_stage_pool(), run, out);
}

void bench_jzx_pingpong_pinned(const bench_run *run, bench_sample *out)
{
    pingpong_2t(bench_stage_pinned(), run, out);
}

static void ring(bench_stage stage, const bench_run *run, bench_sample *out)
{
    static hop hops[BENCH_RING_ACTORS];
    jzx_actor_id first = spawn(stage.loop, pass_on, &hops[0]);
    for (uint32_t i = 1; i < BENCH_RING_ACTORS; i++) {
        hops[i - 1].next = spawn(stage.loop, pass_on, &hops[i]);
    }
    hops[BENCH_RING_ACTORS - 1].next = first;
    bench_watch watch = bench_start();
    send_value(stage.loop, first, run->ops, TAG_GO);
    run_and_close(&stage, watch, run->ops, out);
}

void bench_jzx_ring(const bench_run *run, bench_sample *out)
{
    ring(bench_stage_loop(), run, out);
}

void bench_jzx_ring_2t(const bench_run *run, bench_sample *out)
{
    ring(bench_stage_pool(), run, out);
}

/* Each on cache lines of its own: they may run on different threads. */
typedef struct counter {
    _Alignas(BENCH_CACHE_LINE) uint64_t sum;
    uint32_t producers_left;
} counter;

typedef struct producer {
    _Alignas(BENCH_CACHE_LINE) jzx_actor_id counter;
    uint64_t left; /* the last one says that this producer has ended */
} producer;

static jzx_behavior_result count(jzx_context *ctx, const jzx_message *msg)
{
    counter *self = ctx->state;
    if (msg->tag == TAG_ADD) {
        self->sum += msg->u64;
        return JZX_BEHAVIOR_OK;
    }
    self->producers_left--;
    if (self->producers_left == 0) {
        bench_stage_end(ctx->loop);
    }
    return JZX_BEHAVIOR_OK;
}

/* Woken by its own message after a full batch, and by a room notice after a full mailbox. */
static jzx_behavior_result produce(jzx_context *ctx, const jzx_message *msg)
{
    producer *self = ctx->state;
    (void)msg;
    for (uint32_t i = 0; i < BENCH_BATCH && self->left > 0; i++) {
        jzx_err err = jzx_send_u64(ctx->loop, self->counter, 1, self->left > 1 ? TAG_ADD : TAG_END);
        if (err == JZX_ERR_MAILBOX_FULL) {
            bench_check(jzx_notify_room(ctx->loop, self->counter), "notify");
            return JZX_BEHAVIOR_OK;
        }
        bench_check(err, "send");
        self->left--;
    }
    if (self->left > 0) {
        send_value(ctx->loop, ctx->self, 0, TAG_GO);
    }
    return JZX_BEHAVIOR_OK;
}

static void counting(bench_stage stage, const bench_run *run, uint32_t producers, bench_sample *out)
{
    counter total = {.producers_left = producers};
    producer each[2];
    bench_watch watch = bench_start();
    jzx_actor_id target = JZX_NOBODY;
    jzx_spawn_opts counts = {.behavior = count, .state = &total, .dispatcher = stage.one};
    bench_check(jzx_spawn(stage.loop, &counts, &target), "spawn");
    for (uint32_t i = 0; i < producers; i++) {
        each[i] = (producer){.counter = target, .left = run->ops / producers + 1};
        /* A batch is a turn: the counter gets its own before the next one. */
        jzx_spawn_opts opts = {
            .behavior = produce, .state = &each[i], .max_msgs = 1, .dispatcher = stage.two};
        jzx_actor_id id = JZX_NOBODY;
        bench_check(jzx_spawn(stage.loop, &opts, &id), "spawn");
        send_value(stage.loop, id, 0, TAG_GO);
    }
    run_and_close(&stage, watch, run->ops, out);
    if (total.sum != run->ops / producers * producers) {
        bench_fail("counting lost messages");
    }
}

void bench_jzx_counting(const bench_run *run, bench_sample *out)
{
    counting(bench_stage_loop(), run, 1, out);
}

void bench_jzx_counting2p(const bench_run *run, bench_sample *out)
{
    counting(bench_stage_loop(), run, 2, out);
}

void bench_jzx_counting_2t(const bench_run *run, bench_sample *out)
{
    counting(bench_stage_pool(), run, 1, out);
}

void bench_jzx_counting_pinned(const bench_run *run, bench_sample *out)
{
    counting(bench_stage_pinned(), run, 1, out);
}

void bench_jzx_counting2p_2t(const bench_run *run, bench_sample *out)
{
    counting(bench_stage_pool(), run, 2, out);
}

typedef struct crowd {
    jzx_actor_id ids[BENCH_BIG_ACTORS];
    _Atomic uint32_t left;
} crowd;

typedef struct member {
    crowd *all;
    uint64_t pings_left;
    uint32_t random;
} member;

static jzx_behavior_result big(jzx_context *ctx, const jzx_message *msg)
{
    member *self = ctx->state;
    if (msg->tag == TAG_PING) {
        send_value(ctx->loop, msg->sender, msg->u64, TAG_PONG);
        return JZX_BEHAVIOR_OK;
    }
    if (self->pings_left == 0) {
        if (atomic_fetch_sub_explicit(&self->all->left, 1, memory_order_relaxed) == 1) {
            jzx_loop_request_stop(ctx->loop);
        }
        return JZX_BEHAVIOR_OK;
    }
    self->pings_left--;
    send_value(ctx->loop, self->all->ids[bench_random(&self->random) % BENCH_BIG_ACTORS],
               self->pings_left, TAG_PING);
    return JZX_BEHAVIOR_OK;
}

static void run_big(bench_stage stage, const bench_run *run, bench_sample *out)
{
    static crowd all;
    static member members[BENCH_BIG_ACTORS];
    atomic_store_explicit(&all.left, BENCH_BIG_ACTORS, memory_order_relaxed);
    for (uint32_t i = 0; i < BENCH_BIG_ACTORS; i++) {
        members[i] =
            (member){.all = &all, .pings_left = run->ops / BENCH_BIG_ACTORS, .random = i + 1};
        all.ids[i] = spawn(stage.loop, big, &members[i]);
    }
    bench_watch watch = bench_start();
    for (uint32_t i = 0; i < BENCH_BIG_ACTORS; i++) {
        send_value(stage.loop, all.ids[i], 0, TAG_PONG);
    }
    run_and_close(&stage, watch, run->ops, out);
}

void bench_jzx_big(const bench_run *run, bench_sample *out)
{
    run_big(bench_stage_loop(), run, out);
}

void bench_jzx_big_2t(const bench_run *run, bench_sample *out)
{
    run_big(bench_stage_pool(), run, out);
}

/* As the raw side: a backlog that renews itself, and a neighbour that sends to itself. */
enum { FLOOD_BACKLOG = 1000 };

typedef struct waiter {
    int64_t *waits;
    uint64_t count;
    uint64_t max;
} waiter;

static jzx_behavior_result flood(jzx_context *ctx, const jzx_message *msg)
{
    uint32_t *random = ctx->state;
    *random = (uint32_t)msg->u64 + 1;
    for (int i = 0; i < 100; i++) {
        bench_random(random);
    }
    send_value(ctx->loop, ctx->self, msg->u64, TAG_GO);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result wait_for_self(jzx_context *ctx, const jzx_message *msg)
{
    waiter *self = ctx->state;
    if (msg->u64 != 0) {
        self->waits[self->count] = (int64_t)bench_now_ns() - (int64_t)msg->u64;
        self->count++;
    }
    if (self->count == self->max) {
        jzx_loop_request_stop(ctx->loop);
        return JZX_BEHAVIOR_OK;
    }
    send_value(ctx->loop, ctx->self, bench_now_ns(), TAG_GO);
    return JZX_BEHAVIOR_OK;
}

void bench_jzx_fairness(const bench_run *run, bench_sample *out)
{
    uint32_t random = 1;
    waiter neighbour = {.waits = bench_alloc(run->ops, sizeof(int64_t)), .max = run->ops};
    jzx_loop *loop = bench_loop_open();
    jzx_actor_id flooding = spawn(loop, flood, &random);
    /* One message per turn, else the neighbour would answer itself without waiting. */
    jzx_spawn_opts opts = {.behavior = wait_for_self, .state = &neighbour, .max_msgs = 1};
    jzx_actor_id waiting = JZX_NOBODY;
    bench_check(jzx_spawn(loop, &opts, &waiting), "spawn");
    bench_watch watch = bench_start();
    for (uint64_t i = 0; i < FLOOD_BACKLOG; i++) {
        send_value(loop, flooding, i, TAG_GO);
    }
    send_value(loop, waiting, 0, TAG_GO);
    run_and_destroy(loop, watch, run->ops, out);
    out->latency = bench_latency_of(neighbour.waits, neighbour.count);
    free(neighbour.waits);
}
