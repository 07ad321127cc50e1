/* Goal: with router, workers and senders on different threads every message is handled once, keys
 * keep their order, shared data is dropped once and every ask is answered, while workers fail, the
 * pool is resized and the router itself dies. Method: threads that send as fast as they may to
 * routers in all places over workers with little room. Runs under TSan. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

#include <jzx/ask.h>
#include <jzx/router.h>

enum {
    WORK = 1,
    FAIL,
    ECHO,
    SENDERS = 3,
    EACH = JZT_SANITIZED ? 400 : 1500,
    TOTAL = SENDERS * EACH,
    KEYS = 8
};

/* What all workers of a test share. */
typedef struct shop {
    world *w;
    jzx_actor_id router;
    _Atomic uint32_t got[TOTAL];
    _Atomic uint32_t handled;
    _Atomic uint32_t last[SENDERS][KEYS]; /* index of the last message, plus one */
    _Atomic uint32_t disorder;
    _Atomic uint32_t drops;
    _Atomic uint32_t refused;
    _Atomic uint32_t answered;
    _Atomic uint32_t unanswered;
    _Atomic uint32_t done; /* senders that are */
    uint32_t tag;
    bool shared; /* data with a drop instead of values */
    bool ordered;
} shop;

static shop *now_on; /* for drops, which get no context */

static uint64_t value_of(const jzx_message *msg)
{
    return (msg->flags & JZX_MSG_VALUE) != 0 ? msg->u64 : *(const uint64_t *)msg->data;
}

static uint64_t key_of(void *arg, const jzx_message *msg)
{
    (void)arg;
    return value_of(msg) % KEYS;
}

static jzx_behavior_result hand_init(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

static void note_order(shop *f, uint64_t value)
{
    uint32_t sender = (uint32_t)(value / EACH);
    uint32_t at = (uint32_t)(value % EACH) + 1;
    uint32_t before = atomic_exchange(&f->last[sender][value % KEYS], at);
    if (before >= at) {
        atomic_fetch_add(&f->disorder, 1);
    }
}

static jzx_behavior_result hand_behavior(jzx_context *ctx, const jzx_message *msg)
{
    shop *f = ctx->state;
    if (msg->kind != JZX_KIND_USER) {
        return JZX_BEHAVIOR_OK;
    }
    uint64_t value = value_of(msg);
    atomic_fetch_add(&f->got[value], 1);
    if (f->ordered) {
        note_order(f, value);
    }
    if (msg->tag == ECHO) {
        (void)jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, value, ECHO);
    }
    atomic_fetch_add(&f->handled, 1);
    return msg->tag == FAIL && value % 50 == 7 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

static const jzx_spawn_opts hands = {
    .behavior = hand_behavior, .init = hand_init, .mailbox_cap = 8, .dispatcher = "pool"};
static const jzx_supervisor_spec lenient = {.intensity = 65536};

static void count_drop(void *data)
{
    atomic_fetch_add(&now_on->drops, 1);
    free(data);
}

static jzx_err send_one(shop *f, uint64_t value)
{
    if (!f->shared) {
        return jzx_send_async_u64(f->w->sender, f->router, value, f->tag);
    }
    uint64_t *data = malloc(sizeof *data);
    *data = value;
    jzx_send_opts opts = {.data = data, .len = sizeof *data, .tag = f->tag, .drop = count_drop};
    jzx_err err = jzx_send_async_with(f->w->sender, f->router, &opts);
    if (err != JZX_OK) {
        free(data);
    }
    return err;
}

typedef struct job {
    shop *f;
    uint32_t number;
} job;

static void *send_all(void *arg)
{
    const job *j = arg;
    for (uint64_t i = 0; i < EACH; i++) {
        jzx_err err = send_one(j->f, j->number * (uint64_t)EACH + i);
        while (err == JZX_ERR_MAILBOX_FULL) { /* backpressure */
            atomic_fetch_add(&j->f->refused, 1);
            pause_us(20);
            err = send_one(j->f, j->number * (uint64_t)EACH + i);
        }
        CHECK_OK(err);
    }
    atomic_fetch_add(&j->f->done, 1);
    return NULL;
}

static void *ask_all(void *arg)
{
    const job *j = arg;
    for (uint64_t i = 0; i < EACH / 20; i++) {
        uint64_t value = j->number * (uint64_t)EACH + i;
        jzx_ask_opts opts = {.u64 = value, .tag = ECHO, .flags = JZX_SEND_VALUE};
        jzx_reply reply;
        jzx_message msg;
        jzx_err err = jzx_ask_wait(j->f->w->sender, j->f->router, &opts, &reply, &msg);
        if (err == JZX_OK) {
            CHECK_EQ(msg.u64, value);
            jzx_reply_release(j->f->w->sender, &msg);
        }
        atomic_fetch_add(err == JZX_OK ? &j->f->answered : &j->f->unanswered, 1);
    }
    atomic_fetch_add(&j->f->done, 1);
    return NULL;
}

static jzx_router_opts opts_of(shop *f, uint32_t strategy, jzx_spawn_opts *worker)
{
    *worker = hands;
    worker->state = f;
    return (jzx_router_opts){.strategy = strategy,
                             .worker = worker,
                             .restart = &lenient,
                             .workers = 4,
                             .key = key_of,
                             .mailbox_cap = 32};
}

static shop *shop_new(world *w, uint32_t tag)
{
    shop *f = calloc(1, sizeof *f);
    REQUIRE(f != NULL);
    f->w = w;
    f->tag = tag;
    now_on = f;
    return f;
}

static void run(shop *f, void *(*body)(void *))
{
    pthread_t threads[SENDERS];
    job jobs[SENDERS];
    for (uint32_t i = 0; i < SENDERS; i++) {
        jobs[i] = (job){.f = f, .number = i};
        REQUIRE_EQ(pthread_create(&threads[i], NULL, body, &jobs[i]), 0);
    }
    WAIT(f->w, atomic_load(&f->done) == SENDERS);
    for (uint32_t i = 0; i < SENDERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void end_router(shop *f)
{
    world_settle(f->w);
    (void)jzx_system_stop(f->w->system, f->router);
    world_settle(f->w);
}

static void check_once(const shop *f, uint32_t each)
{
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < TOTAL; i++) {
        wrong += atomic_load(&f->got[i]) != each;
    }
    CHECK_EQ(wrong, 0);
}

static void test_every_message_is_handled_once_wherever_the_router_lives(void)
{
    world *w = world_open();
    for (size_t place = 0; place < PLACES; place++) {
        for (uint32_t strategy = 0; strategy <= JZX_ROUTE_LEAST_MAILBOX; strategy++) {
            shop *f = shop_new(w, FAIL);
            jzx_spawn_opts worker;
            jzx_router_opts opts = opts_of(f, strategy, &worker);
            opts.dispatcher = places[place];
            REQUIRE_OK(jzx_router_spawn(w->loop, &opts, &f->router));
            run(f, send_all);
            WAIT(w, atomic_load(&f->handled) == TOTAL);
            check_once(f, 1);
            end_router(f);
            free(f);
        }
    }
    world_close(w);
}

static void test_keys_keep_their_order_across_threads(void)
{
    world *w = world_open();
    for (size_t place = 0; place < PLACES; place++) {
        shop *f = shop_new(w, WORK);
        f->ordered = true;
        jzx_spawn_opts worker;
        jzx_router_opts opts = opts_of(f, JZX_ROUTE_HASH, &worker);
        opts.dispatcher = places[place];
        REQUIRE_OK(jzx_router_spawn(w->loop, &opts, &f->router));
        run(f, send_all);
        WAIT(w, atomic_load(&f->handled) == TOTAL);
        check_once(f, 1);
        CHECK_EQ(atomic_load(&f->disorder), 0);
        end_router(f);
        free(f);
    }
    world_close(w);
}

static void test_one_worker_gets_everything_in_order(void)
{
    world *w = world_open();
    shop *f = shop_new(w, WORK);
    f->ordered = true;
    jzx_spawn_opts worker;
    jzx_router_opts opts = opts_of(f, JZX_ROUTE_ROUND_ROBIN, &worker);
    worker.mailbox_cap = 2;
    opts.workers = 1;
    opts.mailbox_cap = 200; /* more wait than are let in at once */
    opts.dispatcher = "crew";
    REQUIRE_OK(jzx_router_spawn(w->loop, &opts, &f->router));
    run(f, send_all);
    WAIT(w, atomic_load(&f->handled) == TOTAL);
    check_once(f, 1);
    CHECK_EQ(atomic_load(&f->disorder), 0);
    end_router(f);
    free(f);
    world_close(w);
}

static void test_resizing_under_load_loses_nothing(void)
{
    world *w = world_open();
    shop *f = shop_new(w, WORK);
    jzx_spawn_opts worker;
    jzx_router_opts opts = opts_of(f, JZX_ROUTE_ROUND_ROBIN, &worker);
    opts.dispatcher = "desk";
    REQUIRE_OK(jzx_router_spawn(w->loop, &opts, &f->router));
    pthread_t threads[SENDERS];
    job jobs[SENDERS];
    for (uint32_t i = 0; i < SENDERS; i++) {
        jobs[i] = (job){.f = f, .number = i};
        REQUIRE_EQ(pthread_create(&threads[i], NULL, send_all, &jobs[i]), 0);
    }
    jzt_rng rng = jzt_rng_seeded();
    while (atomic_load(&f->done) < SENDERS) {
        (void)!jzx_router_resize(w->loop, f->router, (uint32_t)jzt_rng_below(&rng, 9));
        world_step(w);
    }
    (void)!jzx_router_resize(w->loop, f->router, 2);
    for (uint32_t i = 0; i < SENDERS; i++) {
        pthread_join(threads[i], NULL);
    }
    WAIT(w, atomic_load(&f->handled) == TOTAL);
    check_once(f, 1);
    CHECK_EQ(world_counters(w).dead, 0);
    end_router(f);
    free(f);
    world_close(w);
}

static void test_shared_data_is_read_by_all_and_dropped_once(void)
{
    world *w = world_open();
    shop *f = shop_new(w, WORK);
    f->shared = true;
    jzx_spawn_opts worker;
    jzx_router_opts opts = opts_of(f, JZX_ROUTE_BROADCAST, &worker);
    worker.mailbox_cap = 1023; /* nobody is ever full: everybody gets everything */
    opts.dispatcher = "pinned";
    opts.mailbox_cap = 8;
    REQUIRE_OK(jzx_router_spawn(w->loop, &opts, &f->router));
    run(f, send_all);
    WAIT(w, atomic_load(&f->drops) == TOTAL);
    world_settle(w);
    CHECK(atomic_load(&f->handled) > TOTAL);
    CHECK(atomic_load(&f->handled) <= 4 * TOTAL);
    end_router(f);
    CHECK_EQ(atomic_load(&f->drops), TOTAL);
    free(f);
    world_close(w);
}

static void test_every_ask_is_answered_through_routers_and_gatherers(void)
{
    world *w = world_open();
    static const uint32_t strategies[] = {JZX_ROUTE_ROUND_ROBIN, JZX_ROUTE_GATHER_FIRST};
    for (size_t k = 0; k < COUNT_OF(strategies); k++) {
        shop *f = shop_new(w, ECHO);
        jzx_spawn_opts worker;
        jzx_router_opts opts = opts_of(f, strategies[k], &worker);
        opts.dispatcher = "crew";
        REQUIRE_OK(jzx_router_spawn(w->loop, &opts, &f->router));
        run(f, ask_all);
        CHECK_EQ(atomic_load(&f->answered), SENDERS * (EACH / 20));
        CHECK_EQ(atomic_load(&f->unanswered), 0);
        end_router(f);
        free(f);
    }
    world_close(w);
}

/* The router is killed again and again: nothing is handled twice, nobody waits for ever, and what
 * was not handled is a dead letter (world_settle() adds up). */
static void test_a_router_that_dies_under_load_loses_no_count(void)
{
    world *w = world_open();
    shop *f = shop_new(w, WORK);
    jzx_spawn_opts worker;
    jzx_router_opts opts = opts_of(f, JZX_ROUTE_ROUND_ROBIN, &worker);
    jzx_supervisor_spec spec = {.intensity = 65536};
    jzx_child_spec child = {.id = "router", .mailbox_cap = 32};
    REQUIRE_OK(jzx_router_child(w->loop, &opts, &child));
    jzx_supervisor_init init = {.spec = &spec, .children = &child, .child_count = 1};
    jzx_actor_id sup = 0;
    REQUIRE_OK(jzx_spawn_supervisor(w->loop, &init, &sup));
    REQUIRE_OK(jzx_loop_run_until_started(w->loop, sup));
    jzx_child_info info;
    REQUIRE_OK(jzx_supervisor_child(w->loop, sup, "router", &info));
    f->router = info.actor;
    pthread_t threads[SENDERS];
    job jobs[SENDERS];
    for (uint32_t i = 0; i < SENDERS; i++) {
        jobs[i] = (job){.f = f, .number = i};
        REQUIRE_EQ(pthread_create(&threads[i], NULL, send_all, &jobs[i]), 0);
    }
    uint32_t kills = 0;
    while (atomic_load(&f->done) < SENDERS) {
        for (int i = 0; i < 20 && atomic_load(&f->done) < SENDERS; i++) {
            world_step(w);
        }
        if (jzx_actor_state(w->loop, f->router) == JZX_STATE_RUNNING) { /* else it would end */
            kills += jzx_kill(w->loop, f->router) == JZX_OK;
        }
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        pthread_join(threads[i], NULL);
    }
    world_settle(w);
    uint32_t twice = 0;
    for (uint32_t i = 0; i < TOTAL; i++) {
        twice += atomic_load(&f->got[i]) > 1;
    }
    CHECK_EQ(twice, 0);
    CHECK(kills > 0);
    jzx_counters counters = world_counters(w);
    CHECK_EQ(atomic_load(&f->handled) + counters.dead, TOTAL);
    REQUIRE_OK(jzx_stop(w->loop, sup));
    world_settle(w);
    free(f);
    world_close(w);
}

static const jzt_test tests[] = {
    {"every_message_is_handled_once_wherever_the_router_lives",
     test_every_message_is_handled_once_wherever_the_router_lives},
    {"keys_keep_their_order_across_threads", test_keys_keep_their_order_across_threads},
    {"one_worker_gets_everything_in_order", test_one_worker_gets_everything_in_order},
    {"resizing_under_load_loses_nothing", test_resizing_under_load_loses_nothing},
    {"shared_data_is_read_by_all_and_dropped_once",
     test_shared_data_is_read_by_all_and_dropped_once},
    {"every_ask_is_answered_through_routers_and_gatherers",
     test_every_ask_is_answered_through_routers_and_gatherers},
    {"a_router_that_dies_under_load_loses_no_count",
     test_a_router_that_dies_under_load_loses_no_count},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
