/* Goal: threads that send to an actor which fails, restarts, stops and ends all the time lose
 * nothing, and never reach the wrong one (R2, R4, R5, R18, R33). Method: real threads against one
 * loop; every payload counts its own drop, every verdict is counted, and in the end what was
 * accepted is what was handled or died. Runs under TSan. */
#define _GNU_SOURCE
#include <jzx/all.h>

#include "support/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { THREADS = 4, SENDS = 8000, TARGETS = 3, CAP = 64, MS = 1000000 };

static _Atomic uint64_t drops;
static _Atomic jzx_actor_id targets[TARGETS];
static _Atomic uint32_t threads_done;

static void count_drop(void *data)
{
    free(data);
    atomic_fetch_add(&drops, 1);
}

typedef struct job {
    pthread_t thread;
    jzx_sender *sender;
    uint64_t number;
    uint64_t wanted; /* sends that must be accepted; 0: go on until nobody is there any more */
    uint64_t accepted;
    uint64_t blocks; /* of these, with a drop */
    uint64_t refused[64];
} job;

/* Every other message is a block with a drop, the rest are values. */
static jzx_err send_one(job *j, uint64_t i)
{
    jzx_actor_id to = atomic_load(&targets[(i + j->number) % TARGETS]);
    if (i % 2 == 0) {
        return jzx_send_async_u64(j->sender, to, i, 1);
    }
    uint64_t *data = malloc(sizeof *data);
    *data = i;
    jzx_send_opts opts = {.data = data,
                          .len = sizeof *data,
                          .drop = count_drop,
                          .tag = 1,
                          .flags = i % 64 == 1 ? JZX_SEND_URGENT : 0};
    jzx_err err = jzx_send_async_with(j->sender, to, &opts);
    if (err != JZX_OK) {
        free(data);
    }
    j->blocks += err == JZX_OK ? 1 : 0;
    return err;
}

static void *send_many(void *arg)
{
    job *j = arg;
    uint64_t misses = 0;
    for (uint64_t i = 0; j->wanted == 0 ? misses < 1000 : j->accepted < j->wanted;) {
        jzx_err err = send_one(j, i);
        if (err == JZX_OK) {
            j->accepted++;
            i++;
            continue;
        }
        j->refused[-err]++;
        misses += err == JZX_ERR_NO_SUCH_ACTOR ? 1 : 0;
        if (j->refused[-err] % 16 == 0) {
            sched_yield();
        }
        if (err != JZX_ERR_MAILBOX_FULL) {
            i++; /* perhaps the next target is better off */
        }
    }
    jzx_sender_release(j->sender);
    atomic_fetch_add(&threads_done, 1);
    return NULL;
}

/* The target: counts, and ends its life every so many messages in a way of its own. */
typedef struct target {
    uint64_t handled;
    uint64_t lives;
    uint64_t next_end;
    uint32_t way;
    int up;
} target;

static target state[TARGETS];

static jzx_behavior_result target_init(jzx_context *ctx, void *arg)
{
    target *self = arg;
    CHECK_EQ(self->up, 0);
    self->up = 1;
    self->lives++;
    self->next_end = self->handled + 40 + self->lives % 7;
    ctx->state = self;
    return JZX_BEHAVIOR_OK;
}

static void target_deinit(jzx_context *ctx)
{
    target *self = ctx->state;
    CHECK_EQ(self->up, 1);
    self->up = 0;
}

enum { WAY_FAIL = 0x1, WAY_PANIC = 0x2, WAY_STOP = 0x4, WAY_SELF_STOP = 0x8, WAY_DRAIN = 0x10 };

static jzx_behavior_result target_behavior(jzx_context *ctx, const jzx_message *msg)
{
    target *self = ctx->state;
    (void)msg;
    CHECK_EQ(self->up, 1);
    self->handled++;
    if (self->handled < self->next_end) {
        return JZX_BEHAVIOR_OK;
    }
    self->next_end = UINT64_MAX;
    uint32_t way = 1u << self->lives % 5;
    while ((self->way & way) == 0) { /* the next one that this test allows */
        way = way == WAY_DRAIN ? WAY_FAIL : way << 1;
    }
    switch (way) {
    case WAY_PANIC:
        jzx_panic(ctx, 1, "as planned");
    case WAY_STOP:
        return JZX_BEHAVIOR_STOP;
    case WAY_SELF_STOP:
        CHECK_OK(jzx_stop(ctx->loop, ctx->self));
        return JZX_BEHAVIOR_OK;
    case WAY_DRAIN:
        CHECK_OK(jzx_stop_drained(ctx->loop, ctx->self));
        return JZX_BEHAVIOR_OK;
    default:
        return JZX_BEHAVIOR_FAIL;
    }
}

/* The parent: with a policy it leaves restarts to the runtime, without one it spawns anew. */
typedef struct parent {
    jzx_supervisor_spec policy;
    bool has_policy;
    uint32_t flags;
    uint32_t drain;
    jzx_actor_id heir;
    uint32_t way;
} parent;

static void spawn_target(jzx_context *ctx, const parent *self, int i)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = target_behavior,
                           .init = target_init,
                           .deinit = target_deinit,
                           .state = &state[i],
                           .mailbox_cap = CAP,
                           .flags = self->flags,
                           .drain = self->drain,
                           .redirect_to = self->heir};
    jzx_err err = jzx_spawn(ctx->loop, &opts, &id);
    if (err == JZX_ERR_STOPPING) {
        return; /* the parent itself is on its way out */
    }
    REQUIRE(err == JZX_OK);
    atomic_store(&targets[i], id);
}

static jzx_behavior_result parent_init(jzx_context *ctx, void *arg)
{
    parent *self = arg;
    ctx->state = self;
    if (self->has_policy) {
        REQUIRE(jzx_set_child_policy(ctx, &self->policy) == JZX_OK);
    }
    for (int i = 0; i < TARGETS; i++) {
        state[i] = (target){.way = self->way};
        spawn_target(ctx, self, i);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result parent_signal(jzx_context *ctx, const jzx_signal *signal)
{
    const parent *self = ctx->state;
    if (signal->kind == JZX_SIGNAL_CHILD_ENDED || signal->kind == JZX_SIGNAL_CHILD_FAILED) {
        for (int i = 0; i < TARGETS; i++) {
            if (atomic_load(&targets[i]) == signal->from) {
                spawn_target(ctx, self, i);
            }
        }
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result parent_behavior(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static jzx_loop *open_loop(parent *p, jzx_actor_id *out_parent)
{
    jzx_loop *loop = NULL;
    REQUIRE(jzx_loop_create(NULL, &loop) == JZX_OK);
    jzx_spawn_opts opts = {.behavior = parent_behavior,
                           .init = parent_init,
                           .on_signal = parent_signal,
                           .state = p,
                           .name = "parent"};
    atomic_store(&drops, 0);
    atomic_store(&threads_done, 0);
    REQUIRE(jzx_spawn(loop, &opts, out_parent) == JZX_OK);
    REQUIRE(jzx_loop_run_until_started(loop, *out_parent) == JZX_OK);
    return loop;
}

static void start_threads(jzx_loop *loop, job jobs[THREADS], uint64_t wanted)
{
    for (uint64_t t = 0; t < THREADS; t++) {
        jobs[t] = (job){.number = t, .wanted = wanted};
        uint32_t flags = t % 2 == 0 ? JZX_SENDER_SINGLE : JZX_SENDER_SHARED;
        REQUIRE(jzx_sender_open(loop, flags, &jobs[t].sender) == JZX_OK);
        REQUIRE(pthread_create(&jobs[t].thread, NULL, send_many, &jobs[t]) == 0);
    }
}

static job join_threads(job jobs[THREADS])
{
    job sum = {0};
    for (int t = 0; t < THREADS; t++) {
        pthread_join(jobs[t].thread, NULL);
        sum.accepted += jobs[t].accepted;
        sum.blocks += jobs[t].blocks;
        for (int i = 0; i < 64; i++) {
            sum.refused[i] += jobs[t].refused[i];
        }
    }
    return sum;
}

static jzx_counters counters(jzx_loop *loop)
{
    jzx_counters now;
    jzx_loop_counters(loop, &now);
    return now;
}

static void check_conserved(const jzx_counters *c)
{
    CHECK_EQ(c->accepted,
             c->handled + c->dead + c->redirected + c->revoked + c->queued + c->in_hand);
    CHECK_EQ(c->async_sent, c->async_arrived);
}

/* Until all threads are done and what they sent was seen by somebody. */
static void run_to_the_end(jzx_loop *loop)
{
    while (atomic_load(&threads_done) < THREADS) {
        REQUIRE(jzx_loop_step(loop, MS) == JZX_OK);
    }
    for (int i = 0; i < 100000 && counters(loop).queued > 0; i++) {
        REQUIRE(jzx_loop_step(loop, MS) == JZX_OK); /* somebody may still be backing off */
    }
    REQUIRE(jzx_loop_run_until_idle(loop) == JZX_OK);
    const char *wrong = jzx_loop_audit(loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    jzx_counters c = counters(loop);
    check_conserved(&c);
    CHECK_EQ(c.queued, 0);
}

static uint64_t handled_by_all(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < TARGETS; i++) {
        sum += state[i].handled;
    }
    return sum;
}

static uint64_t lives_of_all(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < TARGETS; i++) {
        sum += state[i].lives;
    }
    return sum;
}

/* By then every block was dropped once, whatever became of its receiver (R4). */
static void destroy(jzx_loop *loop, uint64_t blocks)
{
    CHECK_OK(jzx_loop_destroy(loop));
    CHECK_EQ(atomic_load(&drops), blocks);
    for (int i = 0; i < TARGETS; i++) {
        CHECK_EQ(state[i].up, 0);
    }
}

/* Under a policy ids survive: no thread is ever told that nobody is there, and since a restart
 * keeps the queue, everything that was accepted is handled. */
/* Dead letters that no behavior saw: a message that its receiver failed on was handed over. */
static uint64_t dead_unseen(jzx_loop *loop)
{
    jzx_counters c = counters(loop);
    return c.dead - c.dead_by[JZX_DEAD_FAILED_ON];
}

static void restart_under_fire(uint32_t strategy, uint32_t backoff_ms)
{
    parent p = {.policy = {.strategy = strategy,
                           .intensity = JZX_INTENSITY_MAX,
                           .period_ms = 1,
                           .backoff_min_ms = backoff_ms,
                           .backoff_factor = 1.0},
                .has_policy = true,
                .way = WAY_FAIL | WAY_PANIC};
    jzx_actor_id id = 0;
    job jobs[THREADS];
    jzx_loop *loop = open_loop(&p, &id);
    start_threads(loop, jobs, backoff_ms == 0 ? SENDS : SENDS / 8);
    run_to_the_end(loop);
    job sum = join_threads(jobs);
    CHECK_EQ(sum.refused[-JZX_ERR_NO_SUCH_ACTOR], 0);
    CHECK_EQ(sum.refused[-JZX_ERR_STOPPING], 0);
    CHECK_EQ(handled_by_all(), sum.accepted);
    CHECK_EQ(dead_unseen(loop), 0);
    CHECK(counters(loop).restarts > 10);
    CHECK_EQ(counters(loop).spawned, 1 + TARGETS);
    CHECK_EQ(lives_of_all(), TARGETS + counters(loop).restarts);
    destroy(loop, sum.blocks);
}

static void test_threads_never_notice_that_their_target_restarts_R18(void)
{
    restart_under_fire(JZX_ONE_FOR_ONE, 0);
}

static void test_threads_fill_the_mailbox_of_one_that_backs_off_R18(void)
{
    restart_under_fire(JZX_ONE_FOR_ONE, 1);
}

static void test_siblings_restart_together_under_fire_R18(void)
{
    restart_under_fire(JZX_ONE_FOR_ALL, 0);
    restart_under_fire(JZX_REST_FOR_ONE, 0);
}

static void test_with_drop_queue_what_was_not_handled_is_dead_R18(void)
{
    parent p = {.policy = {.intensity = JZX_INTENSITY_MAX, .period_ms = 1},
                .has_policy = true,
                .flags = JZX_SPAWN_DROP_QUEUE,
                .way = WAY_FAIL};
    jzx_actor_id id = 0;
    job jobs[THREADS];
    jzx_loop *loop = open_loop(&p, &id);
    start_threads(loop, jobs, SENDS);
    run_to_the_end(loop);
    job sum = join_threads(jobs);
    CHECK_EQ(handled_by_all() + dead_unseen(loop), sum.accepted);
    CHECK_EQ(counters(loop).dead_by[JZX_DEAD_RESTARTED], dead_unseen(loop));
    destroy(loop, sum.blocks);
}

/* Without a policy every end is final, and the parent spawns a new target into the warm slot. */
static void end_under_fire(uint32_t drain, uint32_t way)
{
    parent p = {.drain = drain, .way = way};
    jzx_actor_id id = 0;
    job jobs[THREADS];
    target heir = {.next_end = UINT64_MAX, .up = 1};
    jzx_loop *loop = NULL;
    if (drain == JZX_DRAIN_REDIRECT) {
        p.drain = JZX_DRAIN_DEAD_LETTERS; /* until there is an heir */
    }
    loop = open_loop(&p, &id);
    if (drain == JZX_DRAIN_REDIRECT) {
        jzx_spawn_opts opts = {.behavior = target_behavior, .state = &heir, .mailbox_cap = CAP};
        REQUIRE(jzx_spawn(loop, &opts, &p.heir) == JZX_OK);
        p.drain = drain;
    }
    start_threads(loop, jobs, SENDS);
    run_to_the_end(loop);
    job sum = join_threads(jobs);
    jzx_counters c = counters(loop);
    CHECK_EQ(handled_by_all() + heir.handled + dead_unseen(loop), sum.accepted);
    CHECK_EQ(c.redirected == 0 || drain == JZX_DRAIN_REDIRECT, 1);
    CHECK(drain == JZX_DRAIN_DROP || c.dead_by[JZX_DEAD_DROPPED] == 0);
    CHECK(c.ended > 10);
    CHECK_EQ(lives_of_all(), c.spawned - 1 - (drain == JZX_DRAIN_REDIRECT ? 1 : 0));
    destroy(loop, sum.blocks);
}

static void test_targets_that_end_and_are_replaced_lose_nothing_R5(void)
{
    end_under_fire(JZX_DRAIN_DEAD_LETTERS,
                   WAY_FAIL | WAY_PANIC | WAY_STOP | WAY_SELF_STOP | WAY_DRAIN);
    end_under_fire(JZX_DRAIN_DROP, WAY_STOP | WAY_SELF_STOP);
}

static void test_an_heir_gets_what_threads_sent_to_the_dead_R16(void)
{
    end_under_fire(JZX_DRAIN_REDIRECT, WAY_STOP | WAY_SELF_STOP | WAY_FAIL);
}

static void test_a_shutdown_under_fire_ends_and_loses_nothing_R22(void)
{
    for (int round = 0; round < 10; round++) {
        parent p = {.policy = {.intensity = JZX_INTENSITY_MAX, .period_ms = 1},
                    .has_policy = true,
                    .way = WAY_FAIL | WAY_PANIC};
        jzx_actor_id id = 0;
        job jobs[THREADS];
        jzx_loop *loop = open_loop(&p, &id);
        start_threads(loop, jobs, 0);
        for (int i = 0; i < 20 * round; i++) {
            REQUIRE(jzx_loop_step(loop, MS) == JZX_OK);
        }
        jzx_shutdown_report report;
        CHECK_OK(jzx_loop_shutdown(loop, JZX_SHUTDOWN_INFINITE, &report));
        CHECK_EQ(report.stopped, 1 + TARGETS);
        CHECK_EQ(counters(loop).live, 0);
        job sum = join_threads(jobs);
        CHECK_OK(jzx_loop_run_until_idle(loop));
        jzx_counters c = counters(loop);
        check_conserved(&c);
        CHECK_EQ(handled_by_all() + dead_unseen(loop), sum.accepted);
        destroy(loop, sum.blocks);
    }
}

static void test_a_loop_destroyed_in_the_middle_of_restarts_loses_nothing_R5(void)
{
    for (int round = 0; round < 10; round++) {
        parent p = {.policy = {.intensity = JZX_INTENSITY_MAX,
                               .period_ms = 1,
                               .backoff_min_ms = round % 2 == 0 ? 0 : 1},
                    .has_policy = true,
                    .way = WAY_FAIL};
        jzx_actor_id id = 0;
        job jobs[THREADS];
        jzx_loop *loop = open_loop(&p, &id);
        start_threads(loop, jobs, 200);
        while (atomic_load(&threads_done) < THREADS) {
            REQUIRE(jzx_loop_step(loop, MS) == JZX_OK);
        }
        job sum = join_threads(jobs);
        destroy(loop, sum.blocks); /* with whatever is queued, failed or backing off */
    }
}

static const jzt_test tests[] = {
    {"threads_never_notice_that_their_target_restarts_R18",
     test_threads_never_notice_that_their_target_restarts_R18},
    {"threads_fill_the_mailbox_of_one_that_backs_off_R18",
     test_threads_fill_the_mailbox_of_one_that_backs_off_R18},
    {"siblings_restart_together_under_fire_R18", test_siblings_restart_together_under_fire_R18},
    {"with_drop_queue_what_was_not_handled_is_dead_R18",
     test_with_drop_queue_what_was_not_handled_is_dead_R18},
    {"targets_that_end_and_are_replaced_lose_nothing_R5",
     test_targets_that_end_and_are_replaced_lose_nothing_R5},
    {"an_heir_gets_what_threads_sent_to_the_dead_R16",
     test_an_heir_gets_what_threads_sent_to_the_dead_R16},
    {"a_shutdown_under_fire_ends_and_loses_nothing_R22",
     test_a_shutdown_under_fire_ends_and_loses_nothing_R22},
    {"a_loop_destroyed_in_the_middle_of_restarts_loses_nothing_R5",
     test_a_loop_destroyed_in_the_middle_of_restarts_loses_nothing_R5},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
