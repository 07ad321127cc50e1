/* Goal: the lock of a pool (R33, R34, ADR 0018). It is not held while what a message held is dropped;
 * it can be had from its bias owner at any time, also by timers and other threads, and nothing is
 * lost on the way; a bias owner that does not return holds up no other worker. Method: pools of 1, 2
 * and 4 workers; drops and behaviors that wait for another actor's call into the library. Runs under
 * TSan. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

enum { GO = 1, WORK = 2, TICK = 3, END = 4 };

static const uint32_t sizes[] = {1, 2, 4};

static jzx_loop *pool_open(uint32_t workers)
{
    jzx_loop *loop = NULL;
    jzx_config config = {.dispatcher = JZX_DISPATCHER_POOL, .workers = workers};
    REQUIRE_OK(jzx_loop_create(&config, &loop));
    return loop;
}

static void pool_close(jzx_loop *loop)
{
    const char *wrong = jzx_testkit_check(loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    jzx_counters c;
    jzx_loop_counters(loop, &c);
    CHECK_EQ(c.accepted, c.handled + c.dead + c.redirected + c.revoked + c.queued);
    CHECK_OK(jzx_loop_destroy(loop));
}

static jzx_actor_id spawn(jzx_loop *loop, jzx_behavior_fn behavior, void *state)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = behavior, .state = state, .mailbox_cap = 4096};
    CHECK_OK(jzx_spawn(loop, &opts, &id));
    return id;
}

static jzx_behavior_result nothing(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

/* Drops. */

static _Atomic uint32_t drops, waits, spawned;

/* Waits until an actor of the same pool got something from the library that needs the pool lock. */
static void slow_drop(void *data)
{
    (void)data;
    atomic_fetch_add(&waits, 1);
    uint64_t end = now_ns() + 60000 * MS;
    while (atomic_load(&spawned) == 0 && now_ns() < end) {
        pause_us(100);
    }
    CHECK(atomic_load(&spawned) > 0);
    atomic_fetch_add(&drops, 1);
}

static jzx_behavior_result spawn_meanwhile(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    while (atomic_load(&waits) == 0) {
        pause_us(100);
    }
    (void)spawn(ctx->loop, nothing, NULL);
    atomic_store(&spawned, 1);
    return JZX_BEHAVIOR_OK;
}

static void test_what_a_message_held_is_dropped_without_the_pool_lock_R33(void)
{
    enum { BY_STOP, BY_KILL, HANDLED, WAYS };
    for (size_t way = 0; way < WAYS; way++) {
        jzx_loop *loop = pool_open(2);
        static int payload;
        atomic_store(&drops, 0);
        atomic_store(&waits, 0);
        atomic_store(&spawned, 0);
        jzx_actor_id last = spawn(loop, nothing, NULL);
        jzx_actor_id helper = spawn(loop, spawn_meanwhile, NULL);
        jzx_send_opts held = {.data = &payload, .len = 1, .tag = WORK, .drop = slow_drop};
        REQUIRE_OK(jzx_send_u64(loop, helper, 0, GO));
        REQUIRE_OK(jzx_send_with(loop, last, &held));
        if (way != HANDLED) {
            REQUIRE_OK((way == BY_STOP ? jzx_stop : jzx_kill)(loop, last));
        }
        REQUIRE_OK(jzx_loop_run_until_idle(loop));
        CHECK_EQ(atomic_load(&drops), 1); /* and all is done when the pool says it is idle */
        pool_close(loop);
    }
}

/* The bias owner and the others. */

enum { ROUNDS = JZT_TSAN ? 20000 : 200000 };

typedef struct game {
    jzx_actor_id other;
    _Atomic uint32_t busy;
    uint64_t ticks, words;
    _Atomic uint64_t hits;
} game;

/* Two that play as fast as they can: their worker owns the bias. */
static jzx_behavior_result play(jzx_context *ctx, const jzx_message *msg)
{
    game *self = ctx->state;
    CHECK_EQ(atomic_exchange(&self->busy, 1), 0);
    if (msg->kind == JZX_KIND_TIMER) {
        self->ticks++;
    } else if (msg->tag == WORK) {
        self->words++;
    } else if (msg->tag == GO) {
        atomic_fetch_add(&self->hits, 1);
        if (msg->u64 > 0) {
            CHECK_OK(jzx_send_u64(ctx->loop, self->other, msg->u64 - 1, GO));
        } else {
            jzx_loop_request_stop(ctx->loop);
        }
    }
    atomic_store(&self->busy, 0);
    return JZX_BEHAVIOR_OK;
}

typedef struct caller {
    jzx_sender *sender;
    const jzx_actor_id *ids;
    uint64_t accepted;
} caller;

/* Another thread that sends now and then. */
static void *call_often(void *arg)
{
    caller *c = arg;
    for (int i = 0; i < 300; i++) {
        jzx_err err = jzx_send_async_u64(c->sender, c->ids[i % 2], 0, WORK);
        CHECK(err == JZX_OK || err == JZX_ERR_MAILBOX_FULL);
        c->accepted += err == JZX_OK;
        pause_us(50);
    }
    return NULL;
}

static void test_a_bias_owner_and_workers_that_want_the_lock_lose_nothing_R5(void)
{
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        jzx_loop *loop = pool_open(sizes[s]);
        static game games[2];
        memset(games, 0, sizeof games);
        jzx_actor_id ids[2];
        for (int i = 0; i < 2; i++) {
            ids[i] = spawn(loop, play, &games[i]);
        }
        games[0].other = ids[1];
        games[1].other = ids[0];
        jzx_timer_opts often = {.period_ms = 1, .tag = TICK};
        REQUIRE_OK(jzx_timer_start(loop, ids[0], &often, NULL));
        caller c = {.ids = ids};
        REQUIRE_OK(jzx_sender_open(loop, JZX_SENDER_SINGLE, &c.sender));
        pthread_t thread;
        REQUIRE_EQ(pthread_create(&thread, NULL, call_often, &c), 0);
        REQUIRE_OK(jzx_send_u64(loop, ids[0], ROUNDS, GO));
        REQUIRE_OK(jzx_loop_run(loop));
        pthread_join(thread, NULL);
        for (int i = 0; i < 2; i++) {
            REQUIRE_OK(jzx_stop_drained(loop, ids[i]));
        }
        REQUIRE_OK(jzx_loop_run(loop));
        CHECK_EQ(atomic_load(&games[0].hits) + atomic_load(&games[1].hits), ROUNDS + 1);
        CHECK_EQ(games[0].words + games[1].words, c.accepted);
        CHECK(games[0].ticks > 0);
        jzx_sender_release(c.sender);
        pool_close(loop);
    }
}

static _Atomic uint32_t came;

static jzx_behavior_result note_it(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    atomic_fetch_add(&came, 1);
    return JZX_BEHAVIOR_OK;
}

/* It sent as a bias owner does, and does not return: everything is in its own ring. */
static jzx_behavior_result send_and_stay(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_actor_id *others = ctx->state;
    if (msg->tag == WORK) {
        return JZX_BEHAVIOR_OK;
    }
    for (int i = 0; i < 50; i++) {
        CHECK_OK(jzx_send_u64(ctx->loop, others[i], 0, WORK));
    }
    uint64_t end = now_ns() + 60000 * MS;
    while (atomic_load(&came) < 50 && now_ns() < end) {
        pause_us(100);
    }
    CHECK_EQ(atomic_load(&came), 50);
    (void)spawn(ctx->loop, nothing, NULL); /* it is back, and has to ask for the lock */
    CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, WORK));
    return JZX_BEHAVIOR_OK;
}

static void test_a_bias_owner_that_does_not_return_loses_the_bias_R34(void)
{
    for (size_t s = 1; s < COUNT_OF(sizes); s++) {
        jzx_loop *loop = pool_open(sizes[s]);
        jzx_actor_id others[50];
        atomic_store(&came, 0);
        for (int i = 0; i < 50; i++) {
            others[i] = spawn(loop, note_it, NULL);
        }
        jzx_actor_id it = spawn(loop, send_and_stay, others);
        for (int i = 0; i < 100; i++) { /* its worker comes to own the bias */
            REQUIRE_OK(jzx_send_u64(loop, it, 0, WORK));
        }
        REQUIRE_OK(jzx_send_u64(loop, it, 0, GO));
        REQUIRE_OK(jzx_loop_run_until_idle(loop));
        CHECK_EQ(atomic_load(&came), 50);
        pool_close(loop);
    }
}

static const jzt_test tests[] = {
    {"what_a_message_held_is_dropped_without_the_pool_lock_R33",
     test_what_a_message_held_is_dropped_without_the_pool_lock_R33},
    {"a_bias_owner_and_workers_that_want_the_lock_lose_nothing_R5",
     test_a_bias_owner_and_workers_that_want_the_lock_lose_nothing_R5},
    {"a_bias_owner_that_does_not_return_loses_the_bias_R34",
     test_a_bias_owner_that_does_not_return_loses_the_bias_R34},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
