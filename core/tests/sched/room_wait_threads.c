/* Goal: threads that run no actors wait for room instead of trying again and again (R12), and no
 * wake-up is lost. Method: a target with little room that is held until the test says so; then a
 * crowd of threads that only ever wait and send; then ends of targets and systems under those who
 * wait. Memory is counted. Runs under TSan. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include <jzx/all.h>

#include <jzx/system.h>
#include <jzx/testkit.h>
#include <string.h>

#include "support/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORK = 1, HOLD = 2, CAP = 4, PATIENCE_MS = 60000 };

static const char *const places[] = {"loop", "pinned", "pool", "desk"};
enum { PLACES = sizeof places / sizeof places[0] };

typedef struct target {
    _Atomic uint64_t handled;
    _Atomic int held;
    _Atomic int release;
} target;

static jzx_behavior_result obey(jzx_context *ctx, const jzx_message *msg)
{
    target *t = ctx->state;
    if (msg->tag == HOLD) {
        atomic_store(&t->held, 1);
        while (atomic_load(&t->release) == 0) {
            (void)usleep(100);
        }
    }
    atomic_fetch_add(&t->handled, 1);
    return JZX_BEHAVIOR_OK;
}

typedef struct world {
    jzx_fault *fault;
    jzx_system *system;
    jzx_sender *sender;
    target keeps;
    pthread_t thread;
} world;

static void *run_it(void *arg)
{
    world *w = arg;
    CHECK_OK(jzx_system_run(w->system));
    return NULL;
}

static void open_world(world *w)
{
    *w = (world){0};
    REQUIRE_OK(jzx_fault_create(NULL, &w->fault));
    jzx_config loop = {.allocator = jzx_fault_allocator(w->fault)};
    jzx_dispatcher_spec desk = {.name = "desk", .kind = JZX_DISPATCHER_PINNED};
    jzx_system_config config = {
        .loop = &loop, .dispatchers = &desk, .dispatcher_count = 1, .pool_workers = 2};
    REQUIRE_OK(jzx_system_create(&config, &w->system));
    REQUIRE_OK(jzx_system_sender(w->system, 0, &w->sender));
    jzx_spawn_opts opts = {.behavior = obey, .state = &w->keeps};
    REQUIRE_OK(jzx_spawn(jzx_system_loop(w->system), &opts, NULL));
    REQUIRE_EQ(pthread_create(&w->thread, NULL, run_it, w), 0);
}

static void stop_world(world *w)
{
    jzx_system_request_stop(w->system);
    pthread_join(w->thread, NULL);
}

static void free_world(world *w)
{
    jzx_sender_release(w->sender);
    CHECK_EQ(jzx_fault_leaked(w->fault, NULL), 0);
    jzx_fault_destroy(w->fault);
}

#define AWAIT(cond)                                                                                \
    do {                                                                                           \
        for (int n_ = 0; !(cond) && n_ < PATIENCE_MS; n_++) {                                      \
            (void)usleep(1000);                                                                    \
        }                                                                                          \
        REQUIRE(cond);                                                                             \
    } while (0)

static jzx_actor_id start(const world *w, target *t, const char *place, uint32_t low_water)
{
    jzx_spawn_opts opts = {.behavior = obey,
                           .state = t,
                           .mailbox_cap = CAP,
                           .low_water = low_water,
                           .dispatcher = place};
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_system_spawn(w->system, &opts, &id));
    return id;
}

/* The actor is in its code, and its mailbox is full. */
static void fill(const world *w, target *t, jzx_actor_id id)
{
    jzx_err err = jzx_send_async_u64(w->sender, id, 0, HOLD);
    REQUIRE_OK(err);
    AWAIT(atomic_load(&t->held) == 1);
    while (err == JZX_OK) {
        err = jzx_send_async_u64(w->sender, id, 0, WORK);
    }
    REQUIRE_EQ(err, JZX_ERR_MAILBOX_FULL);
}

typedef struct waiter {
    world *w;
    jzx_actor_id id;
    uint64_t timeout_ms;
    uint64_t sends; /* to make, each after a wait where the first try is refused */
    _Atomic int began;
    _Atomic int over;
    jzx_err err;
    uint64_t accepted;
    pthread_t thread;
} waiter;

static void *wait_once(void *arg)
{
    waiter *wt = arg;
    atomic_store(&wt->began, 1);
    wt->err = jzx_sender_wait_room(wt->w->sender, wt->id, wt->timeout_ms);
    atomic_store(&wt->over, 1);
    return NULL;
}

static void begin(waiter *wt, world *w, jzx_actor_id id, uint64_t timeout_ms, void *(*fn)(void *))
{
    wt->w = w;
    wt->id = id;
    wt->timeout_ms = timeout_ms;
    REQUIRE_EQ(pthread_create(&wt->thread, NULL, fn, wt), 0);
    AWAIT(atomic_load(&wt->began) == 1);
}

static jzx_err end(waiter *wt)
{
    pthread_join(wt->thread, NULL);
    return wt->err;
}

static void test_a_thread_is_woken_when_there_is_room_R12(void)
{
    world w;
    target targets[PLACES] = {0}; /* the last turn may end after the round */
    open_world(&w);
    for (int i = 0; i < PLACES; i++) {
        target *t = &targets[i];
        jzx_actor_id id = start(&w, t, places[i], JZX_LOW_WATER_EMPTY);
        CHECK_OK(jzx_sender_wait_room(w.sender, id, PATIENCE_MS)); /* there is */
        fill(&w, t, id);
        waiter wt = {0};
        begin(&wt, &w, id, JZX_TIMEOUT_INFINITE, wait_once);
        if (i != 0) { /* who holds "loop" cannot answer that there is none */
            CHECK_EQ(jzx_sender_wait_room(w.sender, id, 20), JZX_ERR_TIMED_OUT);
        }
        CHECK_EQ(atomic_load(&wt.over), 0);
        atomic_store(&t->release, 1);
        CHECK_OK(end(&wt));
        CHECK(atomic_load(&t->handled) > 1); /* not before it fell to the mark */
        REQUIRE_OK(jzx_send_async_u64(w.sender, id, 0, WORK));
        CHECK_OK(jzx_sender_stop(w.sender, id));
    }
    stop_world(&w);
    CHECK_OK(jzx_system_destroy(w.system));
    free_world(&w);
}

/* Each sends as often as it was told to, and never tries again without having waited. */
static void *wait_and_send(void *arg)
{
    waiter *wt = arg;
    atomic_store(&wt->began, 1);
    while (wt->accepted < wt->sends) {
        jzx_err err = jzx_send_async_u64(wt->w->sender, wt->id, 0, WORK);
        if (err == JZX_OK) {
            wt->accepted++;
            continue;
        }
        CHECK_EQ(err, JZX_ERR_MAILBOX_FULL);
        wt->err = jzx_sender_wait_room(wt->w->sender, wt->id, JZX_TIMEOUT_INFINITE);
        CHECK_OK(wt->err);
    }
    return NULL;
}

static void test_a_crowd_that_only_waits_gets_everything_through_R12(void)
{
    enum { CROWD = 6, SENDS = JZT_SANITIZED ? 300 : 3000 };
    world w;
    open_world(&w);
    for (int i = 0; i < PLACES; i++) {
        target t = {0};
        waiter crowd[CROWD] = {0};
        jzx_actor_id id = start(&w, &t, places[i], 0);
        for (int j = 0; j < CROWD; j++) {
            crowd[j].sends = SENDS;
            begin(&crowd[j], &w, id, 0, wait_and_send);
        }
        for (int j = 0; j < CROWD; j++) {
            CHECK_OK(end(&crowd[j]));
        }
        AWAIT(atomic_load(&t.handled) == CROWD * SENDS);
    }
    stop_world(&w);
    CHECK_OK(jzx_system_destroy(w.system));
    free_world(&w);
}

static void *wait_and_give_up(void *arg)
{
    waiter *wt = arg;
    atomic_store(&wt->began, 1);
    for (uint64_t i = 0; i < wt->sends; i++) {
        jzx_err err = jzx_sender_wait_room(wt->w->sender, wt->id, i % 2);
        CHECK(err == JZX_OK || err == JZX_ERR_TIMED_OUT || err == JZX_ERR_NO_SUCH_ACTOR);
        err = jzx_send_async_u64(wt->w->sender, wt->id, 0, WORK);
        wt->accepted += err == JZX_OK;
    }
    return NULL;
}

/* Answers and time-outs cross; nothing is lost or freed twice (memory is counted at the end). */
static void test_time_outs_and_answers_cross_R12(void)
{
    enum { CROWD = 4, WAITS = JZT_SANITIZED ? 200 : 1500 };
    world w;
    open_world(&w);
    for (int i = 0; i < PLACES; i++) {
        target t = {0};
        waiter crowd[CROWD] = {0};
        jzx_actor_id id = start(&w, &t, places[i], JZX_LOW_WATER_EMPTY);
        for (int j = 0; j < CROWD; j++) {
            crowd[j].sends = WAITS;
            begin(&crowd[j], &w, id, 0, wait_and_give_up);
        }
        uint64_t accepted = 0;
        for (int j = 0; j < CROWD; j++) {
            (void)end(&crowd[j]);
            accepted += crowd[j].accepted;
        }
        AWAIT(atomic_load(&t.handled) == accepted);
    }
    stop_world(&w);
    CHECK_OK(jzx_system_destroy(w.system));
    free_world(&w);
}

static void test_who_waits_for_an_actor_that_ends_is_told_R12(void)
{
    world w;
    target targets[PLACES] = {0}; /* the last turn may end after the round */
    open_world(&w);
    for (int i = 0; i < PLACES; i++) {
        target *t = &targets[i];
        jzx_actor_id id = start(&w, t, places[i], JZX_LOW_WATER_EMPTY);
        fill(&w, t, id);
        waiter wt = {0};
        begin(&wt, &w, id, JZX_TIMEOUT_INFINITE, wait_once);
        CHECK_OK(jzx_sender_kill(w.sender, id));
        atomic_store(&t->release, 1);
        CHECK_EQ(end(&wt), JZX_ERR_NO_SUCH_ACTOR);
        CHECK_EQ(jzx_sender_wait_room(w.sender, id, PATIENCE_MS), JZX_ERR_NO_SUCH_ACTOR);
    }
    stop_world(&w);
    CHECK_OK(jzx_system_destroy(w.system));
    free_world(&w);
}

/* Nobody runs "loop" any more: the end of the system answers. */
static void test_who_waits_when_the_system_ends_is_told(void)
{
    enum { CROWD = 4 };
    world w;
    open_world(&w);
    target t = {0};
    jzx_actor_id id = start(&w, &t, "loop", JZX_LOW_WATER_EMPTY);
    AWAIT(jzx_sender_actor_state(w.sender, id) == JZX_STATE_RUNNING);
    stop_world(&w);
    waiter crowd[CROWD] = {0};
    for (int j = 0; j < CROWD; j++) {
        begin(&crowd[j], &w, id, JZX_TIMEOUT_INFINITE, wait_once);
    }
    CHECK_OK(jzx_system_destroy(w.system));
    for (int j = 0; j < CROWD; j++) {
        jzx_err err = end(&crowd[j]);
        CHECK(err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_LOOP_CLOSED);
    }
    free_world(&w);
}

/* What a destroy that says STUCK leaves behind is left on purpose: it has memory of the test's own,
 * so that no leak checker takes it for a leak. Nothing is given back. */
static void *arena_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    enum { ARENA = 1 << 26 };
    static _Alignas(64) unsigned char arena[ARENA];
    static _Atomic size_t used;
    (void)ctx;
    size_t bytes = (new_size + 63) & ~(size_t)63;
    size_t at = new_size == 0 ? 0 : atomic_fetch_add(&used, bytes);
    if (new_size == 0 || at + bytes > ARENA) {
        return NULL;
    }
    if (ptr != NULL) {
        memcpy(arena + at, ptr, old_size < new_size ? old_size : new_size);
    }
    return arena + at;
}

/* R22: the actor does not return, its system goes without it; a thread that waits for it goes on.
 */
static void test_who_waits_for_an_actor_that_is_stuck_is_sent_away_R22(void)
{
    jzx_system *system = NULL;
    world w = {0};
    static target t;
    jzx_config config = {.allocator = {.realloc = arena_realloc}};
    REQUIRE_OK(jzx_system_create(&(jzx_system_config){.loop = &config}, &system));
    w.system = system;
    REQUIRE_OK(jzx_system_sender(system, 0, &w.sender));
    jzx_actor_id id = start(&w, &t, "pinned", JZX_LOW_WATER_EMPTY);
    fill(&w, &t, id);
    waiter wt = {0};
    begin(&wt, &w, id, JZX_TIMEOUT_INFINITE, wait_once);
    CHECK_EQ(jzx_system_destroy(system), JZX_ERR_STUCK);
    CHECK_EQ(end(&wt), JZX_ERR_LOOP_CLOSED);
    CHECK_EQ(jzx_sender_wait_room(w.sender, id, PATIENCE_MS), JZX_ERR_LOOP_CLOSED);
    atomic_store(&t.release, 1);
}

/* Inside an actor, also for one elsewhere: it would keep a dispatcher from running. */
static jzx_behavior_result wait_inside(jzx_context *ctx, const jzx_message *msg)
{
    jzx_sender *sender = ctx->state;
    (void)msg;
    CHECK_EQ(jzx_sender_wait_room(sender, ctx->self, 1), JZX_ERR_DEADLOCK);
    CHECK_EQ(jzx_sender_wait_room(sender, ctx->self, UINT64_MAX), JZX_ERR_DEADLOCK);
    return JZX_BEHAVIOR_STOP;
}

static void test_an_actor_does_not_wait_R12(void)
{
    jzx_loop *loop = NULL;
    jzx_sender *sender = NULL;
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    REQUIRE_OK(jzx_sender_open(loop, 0, &sender));
    jzx_spawn_opts opts = {.behavior = wait_inside, .state = sender};
    REQUIRE_OK(jzx_spawn(loop, &opts, &id));
    REQUIRE_OK(jzx_send_u64(loop, id, 0, WORK));
    REQUIRE_OK(jzx_loop_run_until_idle(loop));
    CHECK_EQ(jzx_actor_state(loop, id), JZX_STATE_TERMINATED);
    jzx_sender_release(sender);
    CHECK_OK(jzx_loop_destroy(loop));
}

static const jzt_test tests[] = {
    {"an_actor_does_not_wait_R12", test_an_actor_does_not_wait_R12},
    {"a_thread_is_woken_when_there_is_room_R12", test_a_thread_is_woken_when_there_is_room_R12},
    {"a_crowd_that_only_waits_gets_everything_through_R12",
     test_a_crowd_that_only_waits_gets_everything_through_R12},
    {"time_outs_and_answers_cross_R12", test_time_outs_and_answers_cross_R12},
    {"who_waits_for_an_actor_that_ends_is_told_R12",
     test_who_waits_for_an_actor_that_ends_is_told_R12},
    {"who_waits_when_the_system_ends_is_told", test_who_waits_when_the_system_ends_is_told},
    {"who_waits_for_an_actor_that_is_stuck_is_sent_away_R22",
     test_who_waits_for_an_actor_that_is_stuck_is_sent_away_R22},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
