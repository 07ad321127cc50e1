/* Goal: a worker of a router's pool that is killed and restarted stays one of its workers, also if
 * messages come while the kill cannot take effect yet. Method: a worker that is held inside its
 * behavior on another dispatcher is killed, and let go after the router tried to send to it. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

#include <jzx/router.h>

enum { WORK = 1, HOLD, EACH = 40 };

typedef struct hand {
    _Atomic jzx_actor_id id;
    _Atomic uint32_t lives;
    _Atomic uint32_t handled;
    _Atomic bool held;
    _Atomic bool let_go;
} hand;

static hand hands[2];

static jzx_behavior_result hand_init(jzx_context *ctx, void *arg)
{
    hand *me = arg;
    ctx->state = me;
    atomic_store(&me->id, ctx->self);
    atomic_fetch_add(&me->lives, 1);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result hand_work(jzx_context *ctx, const jzx_message *msg)
{
    hand *me = ctx->state;
    if (msg->kind == JZX_KIND_USER && msg->tag == HOLD) {
        atomic_store(&me->held, true);
        while (!atomic_load(&me->let_go)) {
            pause_us(100);
        }
        return JZX_BEHAVIOR_OK;
    }
    atomic_fetch_add(&me->handled, msg->kind == JZX_KIND_USER ? 1 : 0);
    return JZX_BEHAVIOR_OK;
}

static void give_hand(void *arg, uint32_t index, jzx_spawn_opts *worker)
{
    (void)arg;
    worker->state = &hands[index];
}

static uint32_t handled(void)
{
    return atomic_load(&hands[0].handled) + atomic_load(&hands[1].handled);
}

static jzx_actor_id router_start(world *w, uint32_t strategy, uint32_t workers)
{
    static const jzx_spawn_opts worker = {
        .behavior = hand_work, .init = hand_init, .dispatcher = "pool"};
    static const jzx_supervisor_spec lenient = {.intensity = 65536};
    memset(hands, 0, sizeof hands);
    jzx_router_opts opts = {.strategy = strategy,
                            .worker = &worker,
                            .restart = &lenient,
                            .prepare = give_hand,
                            .workers = workers};
    jzx_actor_id router = JZX_NOBODY;
    REQUIRE_OK(jzx_router_spawn(w->loop, &opts, &router));
    for (uint32_t i = 0; i < workers; i++) {
        WAIT(w, atomic_load(&hands[i].lives) == 1);
    }
    return router;
}

static void send_some(const world *w, jzx_actor_id router, uint32_t tag, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        REQUIRE_OK(jzx_send_async_u64(w->sender, router, i, tag));
    }
}

/* Holds one of them, and has it killed while it cannot be. */
static hand *kill_a_held_one(world *w, jzx_actor_id router)
{
    send_some(w, router, HOLD, 1);
    WAIT(w, atomic_load(&hands[0].held) || atomic_load(&hands[1].held));
    hand *one = atomic_load(&hands[0].held) ? &hands[0] : &hands[1];
    REQUIRE_OK(jzx_system_kill(w->system, atomic_load(&one->id)));
    return one;
}

static void test_a_killed_worker_is_given_work_again(void)
{
    world *w = world_open();
    for (uint32_t strategy = 0; strategy <= JZX_ROUTE_LEAST_MAILBOX; strategy++) {
        jzx_actor_id router = router_start(w, strategy, 2);
        hand *killed = kill_a_held_one(w, router);
        send_some(w, router, WORK, EACH);
        for (int i = 0; i < 20; i++) {
            world_step(
                w); /* the router tries; once its pool knows of the kill, also with success */
        }
        atomic_store(&killed->let_go, true);
        WAIT(w, atomic_load(&killed->lives) == 2 && handled() == EACH);
        uint32_t before = atomic_load(&killed->handled);
        for (uint32_t sent = EACH; atomic_load(&killed->handled) == before && sent < 50 * EACH;) {
            send_some(w, router, WORK, 10);
            sent += 10;
            WAIT(w, handled() == sent);
        }
        CHECK(atomic_load(&killed->handled) > before);
        (void)jzx_system_stop(w->system, router);
        world_settle(w);
    }
    world_close(w);
}

/* There is nobody else: what comes meanwhile waits for it. */
static void test_what_comes_while_the_only_worker_is_killed_waits(void)
{
    world *w = world_open();
    jzx_actor_id router = router_start(w, JZX_ROUTE_ROUND_ROBIN, 1);
    hand *killed = kill_a_held_one(w, router);
    send_some(w, router, WORK, EACH);
    for (int i = 0; i < 20; i++) {
        world_step(w); /* the router tries, and tries again */
    }
    CHECK_EQ(handled(), 0);
    atomic_store(&killed->let_go, true);
    WAIT(w, handled() == EACH);
    CHECK_EQ(atomic_load(&killed->lives), 2);
    (void)jzx_system_stop(w->system, router);
    world_settle(w);
    world_close(w);
}

static const jzt_test tests[] = {
    {"a_killed_worker_is_given_work_again", test_a_killed_worker_is_given_work_again},
    {"what_comes_while_the_only_worker_is_killed_waits",
     test_what_comes_while_the_only_worker_is_killed_waits},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
