/* Goal: an actor that does not return is reported, with who, what and where, while it lasts;
 * everything else is not (R22). Method: watchdog_kit.h, so that no test depends on how fast the
 * machine is. */
#define _GNU_SOURCE
#include "watchdog_kit.h"

#if defined(__SANITIZE_THREAD__)
#define TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN 1
#endif
#endif
#ifndef TSAN
#define TSAN 0
#endif

static void test_an_actor_that_waits_for_ever_is_reported_again_and_again_R22(void)
{
    enum { REPORTS = 4 };
    stage_open(&s, &(stage){.wanted = REPORTS});
    REQUIRE_OK(jzx_sender_open(s.loop, 0, &s.sender));
    stage_watch(&s, LIMIT_MS);
    stage_send(&s, STUCK);
    stage_send(&s, AGAIN + 1);
    REQUIRE_OK(jzx_loop_run_until_idle(s.loop));
    check_report(&s, STUCK, JZX_KIND_USER);
    for (uint32_t i = 1; i < REPORTS; i++) {
        CHECK_EQ(s.report[i].reports, i + 1);
        /* At one, two, four, eight times the limit. */
        CHECK(s.report[i].duration_ns >= (LIMIT_MS * UINT64_C(1000000)) << i);
        CHECK(s.report[i].duration_ns > s.report[i - 1].duration_ns);
    }
    /* It goes on as if nothing had happened, and what on_stuck sent has arrived. */
    CHECK_EQ(s.handled, 3);
    CHECK_EQ(s.late, 1);
    jzx_sender_release(s.sender);
    stage_close(&s);
}

static void test_an_actor_that_spins_is_reported_R22(void)
{
    if (TSAN) {
        jzt_skip("TSan delivers signals at calls only, and this code makes none.");
    }
    stage_open(&s, &(stage){.wanted = 1, .spins = true});
    stage_watch(&s, LIMIT_MS);
    stage_send(&s, STUCK);
    REQUIRE_OK(jzx_loop_run_until_idle(s.loop));
    check_report(&s, STUCK, JZX_KIND_USER);
    stage_close(&s);
}

static void test_a_hook_that_does_not_return_is_reported_R22(void)
{
    stage_open(&s, &(stage){.wanted = 1, .in_init = true});
    stage_watch(&s, LIMIT_MS);
    REQUIRE_OK(jzx_loop_run_until_idle(s.loop));
    check_report(&s, 0, JZX_STUCK_HOOK);
    stage_close(&s);

    stage_open(&s, &(stage){.wanted = 1, .in_deinit = true});
    stage_watch(&s, LIMIT_MS);
    REQUIRE_OK(jzx_loop_run_until_idle(s.loop));
    REQUIRE_OK(jzx_stop(s.loop, s.id));
    REQUIRE_OK(jzx_loop_run_until_idle(s.loop));
    check_report(&s, 0, JZX_STUCK_HOOK);
    stage_close(&s);
}

/* The thread that started the watchdog is not the one that runs the loop. */
static void test_a_loop_on_another_thread_is_watched_there_R22(void)
{
    stage_open(&s, &(stage){.wanted = 2, .quits = true});
    stage_watch(&s, LIMIT_MS);
    stage_send(&s, STUCK);
    stage_start(&s);
    REQUIRE(pthread_join(s.thread, NULL) == 0);
    check_report(&s, STUCK, JZX_KIND_USER);
    stage_close(&s);
}

static void test_a_second_stuck_message_is_reported_anew_R22(void)
{
    stage_open(&s, &(stage){.wanted = 2});
    stage_watch(&s, LIMIT_MS);
    stage_send(&s, STUCK);
    REQUIRE_OK(jzx_loop_run_until_idle(s.loop));
    s.wanted = 4;
    stage_send(&s, STUCK);
    REQUIRE_OK(jzx_loop_run_until_idle(s.loop));
    CHECK_EQ(s.report[1].reports, 2);
    CHECK_EQ(s.report[2].reports, 1);
    CHECK_EQ(s.report[3].reports, 2);
    stage_close(&s);
}

static void test_a_thread_that_cannot_be_interrupted_is_reported_without_details_R22(void)
{
    stage_open(&s, &(stage){.wanted = 1, .blocks_signal = true});
    stage_watch(&s, LIMIT_MS);
    stage_send(&s, STUCK);
    REQUIRE_OK(jzx_loop_run_until_idle(s.loop));
    CHECK(s.report[0].actor == JZX_NOBODY);
    CHECK_EQ(s.report[0].kind, JZX_STUCK_HOOK);
    CHECK_EQ(s.report[0].frame_count, 0);
    CHECK_EQ(s.report[0].reports, 1);
    CHECK_STR(s.report[0].name, "");
    stage_close(&s);
}

static uint64_t ticks_of(stage *idle)
{
    jzx_counters counters;
    jzx_loop_counters(idle->loop, &counters);
    return counters.ticks;
}

/* R25: not a single wake-up comes from being watched. */
static void test_a_loop_that_sleeps_is_neither_reported_nor_woken_R25(void)
{
    stage_open(&s, &(stage){0});
    REQUIRE_OK(jzx_sender_open(s.loop, 0, &s.sender));
    stage_watch(&s, LIMIT_MS);
    stage_start(&s);
    while (ticks_of(&s) < 2) { /* the actor's start; then it sleeps */
        sched_yield();
    }
    let_limits_pass(LIMIT_MS, 1);
    uint64_t before = ticks_of(&s);
    let_limits_pass(LIMIT_MS, 3);
    CHECK_EQ(ticks_of(&s), before);
    CHECK_EQ(atomic_load(&s.reports), 0);
    REQUIRE_OK(jzx_send_async_u64(s.sender, s.id, 0, QUIT));
    REQUIRE(pthread_join(s.thread, NULL) == 0);
    jzx_sender_release(s.sender);
    stage_close(&s);
}

static void *let_time_pass(void *arg)
{
    (void)arg;
    let_limits_pass(LIMIT_MS, 2);
    return NULL;
}

static void take_long(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)ctx;
    (void)id;
    (void)name;
    (void)reason;
    pthread_t thread;
    if (pthread_create(&thread, NULL, let_time_pass, NULL) == 0) {
        pthread_join(thread, NULL);
    }
}

/* The actor is gone by then; nobody could be named. */
static void test_an_observer_that_takes_long_is_no_stuck_actor_R22(void)
{
    jzx_observer observer = {.on_actor_stop = take_long};
    stage_open(&s, &(stage){0});
    REQUIRE_OK(jzx_loop_set_observer(s.loop, &observer, NULL));
    stage_watch(&s, LIMIT_MS);
    stage_send(&s, QUIT);
    REQUIRE_OK(jzx_loop_run(s.loop));
    CHECK_EQ(atomic_load(&s.reports), 0);
    stage_close(&s);
}

static void test_a_loop_that_nobody_runs_is_not_reported_R22(void)
{
    stage_open(&s, &(stage){0});
    stage_watch(&s, LIMIT_MS);
    stage_send(&s, STUCK);
    let_limits_pass(LIMIT_MS, 2);
    CHECK_EQ(atomic_load(&s.reports), 0);
    stage_close(&s);
}

/* The limit is long, because a machine may leave a thread waiting for a while. */
static void test_a_loop_that_has_much_to_do_is_not_reported_R22(void)
{
    enum { LONG_MS = 250 };
    stage_open(&s, &(stage){0});
    REQUIRE_OK(jzx_sender_open(s.loop, 0, &s.sender));
    stage_watch(&s, LONG_MS);
    stage_send(&s, AGAIN);
    stage_start(&s);
    let_limits_pass(LONG_MS, 2);
    CHECK_EQ(atomic_load(&s.reports), 0);
    REQUIRE_OK(jzx_send_async_u64(s.sender, s.id, 0, QUIT));
    REQUIRE(pthread_join(s.thread, NULL) == 0);
    CHECK(s.handled > 2);
    jzx_sender_release(s.sender);
    stage_close(&s);
}

enum { MULES = 3, BUSY = 0 }; /* the first one is never stuck */
static mule mules[MULES];

static void on_mule(void *ctx, const jzx_stuck_report *report)
{
    (void)ctx;
    for (size_t i = 0; i < MULES; i++) {
        if (mules[i].id == report->actor) {
            CHECK_EQ(report->reports, atomic_fetch_add(&mules[i].reports, 1) + 1);
        }
    }
}

static bool is_over(void)
{
    bool over = true;
    for (size_t i = BUSY + 1; i < MULES; i++) {
        over &= atomic_load(&mules[i].reports) >= 2;
    }
    return over;
}

static jzx_behavior_result be_a_mule(jzx_context *ctx, const jzx_message *msg)
{
    mule *self = ctx->state;
    atomic_fetch_add(&self->handled, 1);
    if (self == &mules[BUSY]) {
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, msg->tag));
        return is_over() ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
    }
    while (!is_over()) {
        (void)usleep(1000);
    }
    return JZX_BEHAVIOR_STOP;
}

static void test_every_stuck_worker_of_a_pool_is_reported_R22_R34(void)
{
    jzx_loop *loop = NULL;
    jzx_watchdog *dog = NULL;
    jzx_config config = {.dispatcher = JZX_DISPATCHER_POOL, .workers = MULES};
    REQUIRE_OK(jzx_loop_create(&config, &loop));
    for (size_t i = 0; i < MULES; i++) {
        jzx_spawn_opts opts = {.behavior = be_a_mule, .state = &mules[i]};
        mules[i] = (mule){0};
        REQUIRE_OK(jzx_spawn(loop, &opts, &mules[i].id));
        REQUIRE_OK(jzx_send_u64(loop, mules[i].id, 0, STUCK));
    }
    jzx_watchdog_opts opts = {.limit_ms = LIMIT_MS, .on_stuck = on_mule};
    REQUIRE_OK(jzx_watchdog_start(loop, &opts, &dog));
    CHECK_OK(jzx_loop_run(loop));
    CHECK(atomic_load(&mules[BUSY].handled) > 1);
    CHECK_EQ(atomic_load(&mules[BUSY].reports), 0);
    jzx_watchdog_stop(dog);
    CHECK_OK(jzx_loop_destroy(loop));
}

static const jzt_test tests[] = {
    {"every_stuck_worker_of_a_pool_is_reported_R22_R34",
     test_every_stuck_worker_of_a_pool_is_reported_R22_R34},
    {"an_actor_that_waits_for_ever_is_reported_again_and_again_R22",
     test_an_actor_that_waits_for_ever_is_reported_again_and_again_R22},
    {"an_actor_that_spins_is_reported_R22", test_an_actor_that_spins_is_reported_R22},
    {"a_hook_that_does_not_return_is_reported_R22",
     test_a_hook_that_does_not_return_is_reported_R22},
    {"a_loop_on_another_thread_is_watched_there_R22",
     test_a_loop_on_another_thread_is_watched_there_R22},
    {"a_second_stuck_message_is_reported_anew_R22",
     test_a_second_stuck_message_is_reported_anew_R22},
    {"a_thread_that_cannot_be_interrupted_is_reported_without_details_R22",
     test_a_thread_that_cannot_be_interrupted_is_reported_without_details_R22},
    {"a_loop_that_sleeps_is_neither_reported_nor_woken_R25",
     test_a_loop_that_sleeps_is_neither_reported_nor_woken_R25},
    {"an_observer_that_takes_long_is_no_stuck_actor_R22",
     test_an_observer_that_takes_long_is_no_stuck_actor_R22},
    {"a_loop_that_nobody_runs_is_not_reported_R22",
     test_a_loop_that_nobody_runs_is_not_reported_R22},
    {"a_loop_that_has_much_to_do_is_not_reported_R22",
     test_a_loop_that_has_much_to_do_is_not_reported_R22},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
