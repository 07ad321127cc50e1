/* Goal: a loop of jzx_loop_create() may be a pool or pinned, and is run, stepped, stopped, shut
 * down and destroyed as any loop (R22, R29, R31, R35): its threads run actors only while somebody
 * runs it, and a step runs on the caller's thread. Method: pools of 1, 2 and 4 workers and a pinned
 * loop; actors that note the thread they run on. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

enum { WORK = 1, END = 2, HALT = 3 };

static const struct {
    const char *name;
    uint32_t kind, workers;
} shapes[] = {{"pinned", JZX_DISPATCHER_PINNED, 0},
              {"pool of 1", JZX_DISPATCHER_POOL, 1},
              {"pool of 2", JZX_DISPATCHER_POOL, 2},
              {"pool of 4", JZX_DISPATCHER_POOL, 4}};

typedef struct ring {
    jzx_loop *loop;
    jzx_fault *fault;
    size_t threads, fds;
    bool pool;
} ring;

static ring ring_open(size_t shape)
{
    ring r = {.threads = count_threads(), .fds = count_fds()};
    r.pool = shapes[shape].kind == JZX_DISPATCHER_POOL;
    REQUIRE_OK(jzx_fault_create(NULL, &r.fault));
    jzx_config config = {.allocator = jzx_fault_allocator(r.fault),
                         .dispatcher = shapes[shape].kind,
                         .workers = shapes[shape].workers};
    REQUIRE_OK(jzx_loop_create(&config, &r.loop));
    return r;
}

static void ring_close(ring *r)
{
    REQUIRE_OK(jzx_loop_destroy(r->loop));
    WAIT_STILL(count_threads() == r->threads);
    CHECK_EQ(count_fds(), r->fds);
    CHECK_EQ(jzx_fault_leaked(r->fault, NULL), 0);
    CHECK_STR(jzx_fault_check(r->fault), NULL);
    jzx_fault_destroy(r->fault);
}

static jzx_counters ring_counters(const ring *r)
{
    jzx_counters c;
    jzx_loop_counters(r->loop, &c);
    return c;
}

static void for_all_shapes(void (*body)(ring *r))
{
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        unsigned failures_before = jzt_failures();
        ring r = ring_open(i);
        body(&r);
        ring_close(&r);
        if (jzt_failures() != failures_before) {
            printf("    (%s)\n", shapes[i].name);
        }
    }
}

/* Two that play ball until they are told to end; they note the threads they run on. */
typedef struct player {
    _Atomic int busy;
    _Atomic jzx_actor_id other;
    _Atomic uint64_t handled;
    _Atomic uint64_t on_caller; /* of these, on the thread that made the test */
    _Atomic uint64_t deinits;
    jzx_actor_id id;
} player;

static pthread_t caller;
static player players[2];

static jzx_behavior_result play(jzx_context *ctx, const jzx_message *msg)
{
    player *p = ctx->state;
    CHECK_EQ(atomic_exchange(&p->busy, 1), 0);
    atomic_fetch_add(&p->handled, 1);
    atomic_fetch_add(&p->on_caller, pthread_equal(pthread_self(), caller) ? 1 : 0);
    if (msg->tag == WORK && msg->u64 > 0) {
        jzx_err err = jzx_send_u64(ctx->loop, atomic_load(&p->other), msg->u64 - 1, WORK);
        CHECK(err == JZX_OK || err == JZX_ERR_STOPPING || err == JZX_ERR_NO_SUCH_ACTOR);
    }
    if (msg->tag == HALT) {
        jzx_loop_request_stop(ctx->loop);
    }
    atomic_store(&p->busy, 0);
    return msg->tag == END ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

static void play_deinit(jzx_context *ctx)
{
    player *p = ctx->state;
    CHECK_EQ(atomic_exchange(&p->busy, 1), 0);
    atomic_fetch_add(&p->deinits, 1);
    atomic_store(&p->busy, 0);
}

static void open_game(ring *r, uint64_t balls)
{
    caller = pthread_self();
    memset(players, 0, sizeof players);
    for (size_t i = 0; i < 2; i++) {
        jzx_spawn_opts opts = {.behavior = play, .state = &players[i], .deinit = play_deinit};
        REQUIRE_OK(jzx_spawn(r->loop, &opts, &players[i].id));
    }
    atomic_store(&players[0].other, players[1].id);
    atomic_store(&players[1].other, players[0].id);
    REQUIRE_OK(jzx_send_u64(r->loop, players[0].id, balls, WORK));
}

static uint64_t handled_by_both(void)
{
    return atomic_load(&players[0].handled) + atomic_load(&players[1].handled);
}

static void runs_until_nobody_is_left(ring *r)
{
    open_game(r, 20000);
    for (size_t i = 0; i < 2; i++) {
        REQUIRE_OK(jzx_send_after(r->loop, players[i].id, 30, NULL, 0, END, NULL));
    }
    CHECK_OK(jzx_loop_run(r->loop));
    CHECK_EQ(ring_counters(r).live, 0);
    CHECK_EQ(atomic_load(&players[0].deinits) + atomic_load(&players[1].deinits), 2);
    CHECK_EQ(jzx_loop_done(r->loop), 1);
    CHECK_OK(jzx_loop_run(r->loop)); /* nobody is there */
}

static void test_run_returns_when_nobody_is_left_R31(void)
{
    for_all_shapes(runs_until_nobody_is_left);
}

/* When the players have got a little further. */
static void *stop_later(void *arg)
{
    ring *r = arg;
    uint64_t goal = handled_by_both() + 100, end = now_ns() + 5000 * MS;
    while (handled_by_both() < goal && now_ns() < end) {
        pause_us(200);
    }
    jzx_loop_request_stop(r->loop);
    return NULL;
}

/* Between runs nobody runs: not one message is handled, however much there is to do. */
static void stands_still(ring *r)
{
    open_game(r, UINT64_MAX);
    for (int round = 0; round < 6; round++) {
        uint64_t before = handled_by_both();
        pause_us(5000);
        CHECK_EQ(handled_by_both(), before);
        pthread_t thread;
        if (round % 2 == 0) {
            REQUIRE_EQ(pthread_create(&thread, NULL, stop_later, r), 0);
        } else { /* by an actor */
            REQUIRE_OK(jzx_send_after(r->loop, players[0].id, 10, NULL, 0, HALT, NULL));
        }
        CHECK_OK(jzx_loop_run(r->loop));
        uint64_t after = handled_by_both();
        CHECK(after > before);
        CHECK_EQ(atomic_load(&players[0].busy) + atomic_load(&players[1].busy), 0);
        pause_us(5000);
        CHECK_EQ(handled_by_both(), after);
        /* "Thread: loop" calls work meanwhile. */
        CHECK_EQ(jzx_actor_state(r->loop, players[0].id), JZX_STATE_RUNNING);
        const char *wrong = jzx_loop_audit(r->loop);
        CHECK_STR(wrong == NULL ? "" : wrong, "");
        CHECK_OK(jzx_send_u64(r->loop, players[0].id, 0, WORK));
        if (round % 2 == 0) {
            pthread_join(thread, NULL);
        }
    }
}

static void test_between_runs_nobody_runs_R31(void)
{
    for_all_shapes(stands_still);
}

static void steps_on_the_caller(ring *r)
{
    open_game(r, UINT64_MAX);
    uint64_t before = 0;
    for (int i = 0; i < 50; i++) {
        CHECK_OK(jzx_loop_step(r->loop, 0));
        CHECK(handled_by_both() > before); /* a bounded part of it */
        before = handled_by_both();
    }
    if (r->pool) {
        CHECK_EQ(atomic_load(&players[0].on_caller) + atomic_load(&players[1].on_caller), before);
    }
    REQUIRE_OK(jzx_send_u64(r->loop, players[0].id, 0, END));
    REQUIRE_OK(jzx_send_u64(r->loop, players[1].id, 0, END));
    for (int i = 0; i < 1000 && !jzx_loop_done(r->loop); i++) {
        CHECK_OK(jzx_loop_step(r->loop, MS));
    }
    CHECK_EQ(jzx_loop_done(r->loop), 1);
    uint64_t begin = now_ns();
    CHECK_OK(jzx_loop_step(r->loop, 20 * MS)); /* waits, since there is nothing to do */
    CHECK(now_ns() - begin >= 19 * MS);
}

static void test_a_step_runs_on_the_callers_thread_R29(void)
{
    for_all_shapes(steps_on_the_caller);
}

static void idles(ring *r)
{
    open_game(r, 30000);
    REQUIRE_OK(jzx_send_after(r->loop, players[0].id, 3600000, NULL, 0, END, NULL));
    CHECK_OK(jzx_loop_run_until_idle(r->loop));
    CHECK_EQ(handled_by_both(), 30001);
    const char *wrong = jzx_testkit_check(r->loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    for (int i = 0; i < 200; i++) { /* many short runs */
        REQUIRE_OK(jzx_send_u64(r->loop, players[0].id, 3, WORK));
        CHECK_OK(jzx_loop_run_until_idle(r->loop));
        CHECK_EQ(handled_by_both(), 30001 + 4 * ((uint64_t)i + 1));
    }
    if (!r->pool) {
        CHECK_EQ(atomic_load(&players[0].on_caller), 0); /* a thread of its own */
    }
}

static void test_run_until_idle_runs_everything_that_is_ready_R31(void)
{
    for_all_shapes(idles);
}

static void shuts_down(ring *r)
{
    for (int round = 0; round < 3; round++) {
        open_game(r, UINT64_MAX);
        jzx_shutdown_report report;
        CHECK_OK(jzx_loop_shutdown(r->loop, WAIT_LIMIT_MS, &report));
        CHECK_EQ(report.stopped, 2);
        CHECK_EQ(report.killed, 0);
        CHECK_EQ(ring_counters(r).live, 0);
        CHECK_EQ(atomic_load(&players[0].deinits) + atomic_load(&players[1].deinits), 2);
        CHECK_EQ(jzx_send_u64(r->loop, players[0].id, 0, WORK), JZX_ERR_NO_SUCH_ACTOR);
    }
    jzx_counters c = ring_counters(r);
    CHECK_EQ(c.accepted, c.handled + c.dead + c.redirected + c.revoked);
}

static void test_a_pool_is_shut_down_and_used_again_R22(void)
{
    for_all_shapes(shuts_down);
}

static void is_destroyed_alive(ring *r)
{
    open_game(r, UINT64_MAX);
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, stop_later, r), 0);
    CHECK_OK(jzx_loop_run(r->loop));
    pthread_join(thread, NULL);
} /* and the ring destroys it, with balls in the air */

static void test_a_pool_is_destroyed_in_the_middle_of_it_R5(void)
{
    for_all_shapes(is_destroyed_alive);
    CHECK_EQ(atomic_load(&players[0].deinits) + atomic_load(&players[1].deinits), 2);
}

static void test_pools_come_and_go_R31(void)
{
    for (int i = 0; i < 200; i++) {
        ring r = ring_open((size_t)i % COUNT_OF(shapes));
        if (i % 3 != 0) {
            open_game(&r, 10);
            CHECK_OK(jzx_loop_run_until_idle(r.loop));
            CHECK_EQ(handled_by_both(), 11);
        }
        ring_close(&r);
    }
}

/* R35: inside an actor the loop can neither be run nor destroyed, on any worker. */
static _Atomic uint64_t refusals;

static jzx_behavior_result misuse(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    jzx_shutdown_report report;
    refusals += jzx_loop_run(ctx->loop) == JZX_ERR_BUSY;
    refusals += jzx_loop_step(ctx->loop, 0) == JZX_ERR_BUSY;
    refusals += jzx_loop_run_until_idle(ctx->loop) == JZX_ERR_BUSY;
    refusals += jzx_loop_run_until_started(ctx->loop, ctx->self) == JZX_ERR_BUSY;
    refusals += jzx_loop_shutdown(ctx->loop, 1, &report) == JZX_ERR_BUSY;
    refusals += jzx_loop_destroy(ctx->loop) == JZX_ERR_BUSY;
    return JZX_BEHAVIOR_STOP;
}

static void refuses_misuse(ring *r)
{
    atomic_store(&refusals, 0);
    for (int i = 0; i < 10; i++) {
        jzx_actor_id id = 0;
        jzx_spawn_opts opts = {.behavior = misuse};
        REQUIRE_OK(jzx_spawn(r->loop, &opts, &id));
        REQUIRE_OK(jzx_send_u64(r->loop, id, 1, WORK));
    }
    CHECK_OK(jzx_loop_run(r->loop));
    CHECK_EQ(atomic_load(&refusals), 60);
}

static void test_inside_an_actor_the_loop_is_busy_R35(void)
{
    for_all_shapes(refuses_misuse);
}

/* The environment chooses for programs that did not, and only for them. */
static void test_the_environment_chooses_a_dispatcher_R31(void)
{
    static const struct {
        const char *value;
        uint32_t config_kind, workers;
        bool own_thread;
    } table[] = {{"pinned", JZX_DISPATCHER_LOOP, 0, true},
                 {"pool:2", JZX_DISPATCHER_LOOP, 0, false},
                 {"pool:2", JZX_DISPATCHER_PINNED, 0, true}};
    const char *old = getenv("JZX_DISPATCHER");
    char keep[64];
    snprintf(keep, sizeof keep, "%s", old == NULL ? "" : old);
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        setenv("JZX_DISPATCHER", table[i].value, 1);
        jzx_config config = {.dispatcher = table[i].config_kind, .workers = table[i].workers};
        ring r = {0};
        REQUIRE_OK(jzx_loop_create(&config, &r.loop));
        open_game(&r, 1000);
        CHECK_OK(jzx_loop_run_until_idle(r.loop));
        CHECK_EQ(handled_by_both(), 1001);
        if (table[i].own_thread) {
            CHECK_EQ(atomic_load(&players[0].on_caller), 0);
        }
        CHECK_OK(jzx_loop_destroy(r.loop));
        jzx_system *system = NULL; /* a system's "loop" is one, whatever the environment says */
        jzx_dispatcher_info info = {.kind = 77};
        REQUIRE_OK(jzx_system_create(NULL, &system));
        CHECK_EQ(jzx_system_dispatchers(system, &info, 1), 1);
        CHECK_EQ(info.kind, JZX_DISPATCHER_LOOP);
        CHECK_OK(jzx_system_destroy(system));
    }
    if (keep[0] == '\0') {
        unsetenv("JZX_DISPATCHER");
    } else {
        setenv("JZX_DISPATCHER", keep, 1);
    }
}

/* A sender reaches a pool that runs, one that does not run yet, and one that is gone. */
static void *send_few(void *arg)
{
    jzx_sender *sender = arg;
    for (int i = 0; i < 100; i++) {
        CHECK_OK(jzx_send_async_u64(sender, players[i % 2].id, 0, WORK));
        pause_us(i % 10 == 0 ? 200 : 0);
    }
    CHECK_OK(jzx_send_async_u64(sender, players[0].id, 0, END));
    CHECK_OK(jzx_send_async_u64(sender, players[1].id, 0, END));
    return NULL;
}

static void is_woken_by_threads(ring *r)
{
    jzx_sender *sender = NULL;
    REQUIRE_OK(jzx_sender_open(r->loop, JZX_SENDER_SHARED, &sender));
    open_game(r, 0);
    CHECK_OK(jzx_send_async_u64(sender, players[1].id, 0, WORK));
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, send_few, sender), 0);
    CHECK_OK(jzx_loop_run(r->loop));
    pthread_join(thread, NULL);
    CHECK_EQ(handled_by_both(), 104);
    CHECK_EQ(ring_counters(r).live, 0);
    jzx_sender_release(sender);
}

static void test_threads_wake_a_sleeping_pool_R25(void)
{
    for_all_shapes(is_woken_by_threads);
}

static const jzt_test tests[] = {
    {"run_returns_when_nobody_is_left_R31", test_run_returns_when_nobody_is_left_R31},
    {"between_runs_nobody_runs_R31", test_between_runs_nobody_runs_R31},
    {"a_step_runs_on_the_callers_thread_R29", test_a_step_runs_on_the_callers_thread_R29},
    {"run_until_idle_runs_everything_that_is_ready_R31",
     test_run_until_idle_runs_everything_that_is_ready_R31},
    {"a_pool_is_shut_down_and_used_again_R22", test_a_pool_is_shut_down_and_used_again_R22},
    {"a_pool_is_destroyed_in_the_middle_of_it_R5", test_a_pool_is_destroyed_in_the_middle_of_it_R5},
    {"pools_come_and_go_R31", test_pools_come_and_go_R31},
    {"inside_an_actor_the_loop_is_busy_R35", test_inside_an_actor_the_loop_is_busy_R35},
    {"the_environment_chooses_a_dispatcher_R31", test_the_environment_chooses_a_dispatcher_R31},
    {"threads_wake_a_sleeping_pool_R25", test_threads_wake_a_sleeping_pool_R25},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
