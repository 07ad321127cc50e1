/* Goal: an actor that does not return is reported, with who, what and where, while it lasts;
 * everything else is not (R22). Method: behaviors that wait until the watchdog has reported them,
 * so that no test depends on how fast the machine is. To show that something is not reported, a
 * second loop that is stuck serves as the clock: its reports say that enough time has passed. */
#define _GNU_SOURCE
#include <jzx/jzx.h>
#include <jzx/testkit.h>

#include "support/check.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

enum { STUCK = 1, QUIT = 2, LATE = 3, AGAIN = 4, LIMIT_MS = 20, REPORTS_MAX = 8 };

/* A loop with one actor, its watchdog, and what was reported. */
typedef struct stage {
    jzx_loop *loop;
    jzx_actor_id id;
    jzx_watchdog *dog;
    jzx_sender *sender; /* used by on_stuck if it is set */
    uint32_t wanted;    /* the actor waits for this many reports */
    bool spins;
    bool blocks_signal;
    bool in_init;
    bool in_deinit;
    bool quits; /* after one stuck message */
    uint32_t handled;
    uint32_t late;
    _Atomic uint64_t start_ns; /* when stay() was entered */
    _Atomic uint32_t reports;
    sem_t reported;
    jzx_stuck_report report[REPORTS_MAX];
    pthread_t thread;
} stage;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void on_stuck(void *ctx, const jzx_stuck_report *report)
{
    stage *s = ctx;
    /* It never says more than is true. */
    CHECK(report->duration_ns <= now_ns() - atomic_load(&s->start_ns));
    uint32_t n = atomic_load(&s->reports);
    if (n < REPORTS_MAX) {
        s->report[n] = *report;
    }
    if (s->sender != NULL && n == 0) {
        CHECK_OK(jzx_send_async_u64(s->sender, s->id, 0, LATE));
    }
    atomic_store(&s->reports, n + 1);
    sem_post(&s->reported);
}

/* Stays here until it was reported often enough. */
static __attribute__((noinline)) void stay(stage *s)
{
    atomic_store(&s->start_ns, now_ns());
    while (s->spins && atomic_load(&s->reports) < s->wanted) {
    }
    while (atomic_load(&s->reports) < s->wanted) {
        (void)sem_wait(&s->reported); /* EINTR is how it is reported */
    }
}

static jzx_behavior_result stage_behavior(jzx_context *ctx, const jzx_message *msg)
{
    stage *s = ctx->state;
    sigset_t set;
    s->handled++;
    s->late += msg->tag == LATE;
    if (msg->tag == STUCK) {
        sigemptyset(&set);
        sigaddset(&set, SIGURG);
        if (s->blocks_signal) {
            pthread_sigmask(SIG_BLOCK, &set, NULL);
        }
        stay(s);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    }
    if (msg->tag == AGAIN) {
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, AGAIN));
    }
    return msg->tag == QUIT || (msg->tag == STUCK && s->quits) ? JZX_BEHAVIOR_STOP
                                                               : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result stage_init(jzx_context *ctx, void *arg)
{
    stage *s = arg;
    ctx->state = s;
    if (s->in_init) {
        stay(s);
    }
    return JZX_BEHAVIOR_OK;
}

static void stage_deinit(jzx_context *ctx)
{
    stage *s = ctx->state;
    if (s->in_deinit) {
        stay(s);
    }
}

static void stage_open(stage *s, const stage *as)
{
    *s = *as;
    sem_init(&s->reported, 0, 0);
    REQUIRE_OK(jzx_loop_create(NULL, &s->loop));
    jzx_spawn_opts opts = {.behavior = stage_behavior,
                           .init = stage_init,
                           .deinit = stage_deinit,
                           .state = s,
                           .name = "mule"};
    REQUIRE_OK(jzx_spawn(s->loop, &opts, &s->id));
}

static void stage_watch(stage *s, uint32_t limit_ms)
{
    jzx_watchdog_opts opts = {.limit_ms = limit_ms, .on_stuck = on_stuck, .ctx = s};
    REQUIRE_OK(jzx_watchdog_start(s->loop, &opts, &s->dog));
}

static void stage_send(stage *s, uint32_t tag)
{
    REQUIRE_OK(jzx_send_u64(s->loop, s->id, 0, tag));
}

static void stage_close(stage *s)
{
    jzx_watchdog_stop(s->dog);
    CHECK_OK(jzx_loop_destroy(s->loop));
    sem_destroy(&s->reported);
}

static void *run_stage(void *arg)
{
    stage *s = arg;
    CHECK_OK(jzx_loop_run(s->loop));
    return NULL;
}

static void stage_start(stage *s)
{
    REQUIRE(pthread_create(&s->thread, NULL, run_stage, s) == 0);
}

/* Time passes: an actor of another loop is stuck until it was reported `count` times. */
static void let_limits_pass(uint32_t limit_ms, uint32_t count)
{
    static stage clock;
    stage_open(&clock, &(stage){.wanted = count, .quits = true});
    stage_watch(&clock, limit_ms);
    stage_send(&clock, STUCK);
    REQUIRE_OK(jzx_loop_run(clock.loop));
    stage_close(&clock);
}

/* One of the frames lies in the function. It is short, and its end is not known; sanitizers make it
 * longer. */
static bool has_frame_of(const jzx_stuck_report *report, void (*function)(stage *))
{
    for (uint32_t i = 0; i < report->frame_count; i++) {
        uintptr_t from_start = (uintptr_t)report->frames[i] - (uintptr_t)function;
        if (from_start < (JZT_SANITIZED ? 4096 : 1024)) {
            return true;
        }
    }
    return false;
}

static void check_report(const stage *s, uint32_t tag, uint32_t kind)
{
    const jzx_stuck_report *first = &s->report[0];
    CHECK(first->actor == s->id);
    CHECK_STR(first->name, "mule");
    CHECK_EQ(first->tag, tag);
    CHECK_EQ(first->kind, kind);
    CHECK_EQ(first->reports, 1);
    CHECK(first->duration_ns >= LIMIT_MS * UINT64_C(1000000));
    CHECK(has_frame_of(first, stay));
}

static stage s;

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

static void test_it_can_be_stopped_while_an_actor_is_stuck_R22(void)
{
    stage_open(&s, &(stage){.wanted = 3, .quits = true});
    stage_watch(&s, LIMIT_MS);
    stage_send(&s, STUCK);
    stage_start(&s);
    while (atomic_load(&s.reports) < 1) {
        sched_yield();
    }
    jzx_watchdog_stop(s.dog);
    s.dog = NULL;
    uint32_t then = atomic_load(&s.reports);
    let_limits_pass(LIMIT_MS, 2);
    CHECK_EQ(atomic_load(&s.reports), then);
    atomic_store(&s.reports, 3);
    sem_post(&s.reported);
    REQUIRE(pthread_join(s.thread, NULL) == 0);
    stage_close(&s);
}

/* A watchdog that one actor starts sees what that actor does next. */
static jzx_behavior_result start_it_yourself(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    stage *self = ctx->state;
    jzx_watchdog_opts opts = {.limit_ms = LIMIT_MS, .on_stuck = on_stuck, .ctx = self};
    CHECK_OK(jzx_watchdog_start(ctx->loop, &opts, &self->dog));
    stay(self);
    return JZX_BEHAVIOR_STOP;
}

static void test_it_can_be_started_inside_of_an_actor_R22(void)
{
    s = (stage){.wanted = 1};
    sem_init(&s.reported, 0, 0);
    REQUIRE_OK(jzx_loop_create(NULL, &s.loop));
    jzx_spawn_opts opts = {.behavior = start_it_yourself, .state = &s, .name = "mule"};
    REQUIRE_OK(jzx_spawn(s.loop, &opts, &s.id));
    stage_send(&s, STUCK);
    stage_start(&s);
    REQUIRE(pthread_join(s.thread, NULL) == 0);
    check_report(&s, STUCK, JZX_KIND_USER);
    stage_close(&s);
}

static void test_bad_options_are_refused_R36(void)
{
    stage_open(&s, &(stage){0});
    jzx_watchdog *dog = NULL;
    jzx_watchdog_opts opts = {.on_stuck = on_stuck, .ctx = &s};
    CHECK_EQ(jzx_watchdog_start(NULL, &opts, &dog), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_watchdog_start(s.loop, &opts, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_watchdog_start_sized(s.loop, NULL, sizeof opts, &dog), JZX_ERR_INVALID_ARG);
    static const int bad[] = {-1, SIGKILL, SIGSTOP, SIGSEGV, SIGABRT, 32, 33, 65, 1000};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        opts.signo = bad[i];
        CHECK_EQ(jzx_watchdog_start(s.loop, &opts, &dog), JZX_ERR_INVALID_ARG);
    }
    opts = (jzx_watchdog_opts){.limit_ms = 1};
    CHECK_EQ(jzx_watchdog_start(s.loop, &opts, &dog), JZX_ERR_INVALID_ARG);
    struct {
        jzx_watchdog_opts opts;
        uint64_t newer;
    } longer = {{.on_stuck = on_stuck}, 1};
    CHECK_EQ(jzx_watchdog_start_sized(s.loop, &longer.opts, sizeof longer, &dog),
             JZX_ERR_NEWER_STRUCT);
    CHECK(dog == NULL);
    jzx_watchdog_stop(NULL);

    stage_watch(&s, 0);
    opts = (jzx_watchdog_opts){.on_stuck = on_stuck};
    CHECK_EQ(jzx_watchdog_start(s.loop, &opts, &dog), JZX_ERR_ALREADY);
    jzx_watchdog_stop(s.dog);
    stage_watch(&s, 0);
    stage_close(&s);
}

static void test_a_simulated_loop_has_no_watchdog_R30(void)
{
    jzx_kit *kit = NULL;
    jzx_watchdog *dog = NULL;
    jzx_sim_opts sim = {.seed = 1};
    jzx_kit_opts kit_opts = {.sim = &sim};
    REQUIRE_OK(jzx_kit_open(&kit_opts, &kit));
    jzx_watchdog_opts opts = {.on_stuck = on_stuck};
    CHECK_EQ(jzx_watchdog_start(kit->loop, &opts, &dog), JZX_ERR_NOT_SUPPORTED);
    CHECK(dog == NULL);
    CHECK(jzx_kit_close(kit) == NULL);
}

/* Goal: no error leaves anything behind. Method: the nth allocation fails. */
static void test_without_memory_there_is_no_watchdog_R36(void)
{
    jzx_kit *kit = NULL;
    jzx_watchdog *dog = NULL;
    jzx_kit_opts kit_opts = {.env = jzx_env_epoll()};
    REQUIRE_OK(jzx_kit_open(&kit_opts, &kit));
    jzx_watchdog_opts opts = {.on_stuck = on_stuck};
    jzx_fault_arm_alloc(kit->fault, 1, 0);
    CHECK_EQ(jzx_watchdog_start(kit->loop, &opts, &dog), JZX_ERR_NO_MEMORY);
    CHECK(dog == NULL);
    CHECK_OK(jzx_watchdog_start(kit->loop, &opts, &dog));
    jzx_watchdog_stop(dog);
    CHECK(jzx_kit_close(kit) == NULL);
}

static volatile sig_atomic_t urgent;

static void count_urgent(int signo)
{
    (void)signo;
    urgent++;
}

/* Two watchdogs share the signal; a handler of the program keeps what is not theirs. */
static void test_the_signal_of_a_program_stays_its_own_R29(void)
{
    static stage other;
    struct sigaction mine = {.sa_handler = count_urgent};
    struct sigaction before;
    struct sigaction now;
    sigemptyset(&mine.sa_mask);
    sigaction(SIGURG, &mine, &before);
    urgent = 0;
    stage_open(&s, &(stage){.wanted = 1});
    stage_open(&other, &(stage){0});
    stage_watch(&s, LIMIT_MS);
    stage_watch(&other, LIMIT_MS);
    jzx_watchdog_stop(other.dog);
    other.dog = NULL;
    stage_send(&s, STUCK);
    REQUIRE_OK(jzx_loop_run_until_idle(s.loop));
    check_report(&s, STUCK, JZX_KIND_USER);
    CHECK_EQ(urgent, 0);
    raise(SIGURG);
    CHECK_EQ(urgent, 1);
    sigaction(SIGURG, NULL, &now);
    CHECK(now.sa_handler != count_urgent);
    stage_close(&s);
    stage_close(&other);
    sigaction(SIGURG, NULL, &now);
    CHECK(now.sa_handler == count_urgent);
    sigaction(SIGURG, &before, NULL);
}

/* The thread stays behind in the parent; stopping must not wait for it. */
static void test_a_child_of_fork_can_stop_it_R29(void)
{
    stage_open(&s, &(stage){0});
    stage_watch(&s, LIMIT_MS);
    fflush(NULL);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        alarm(600); /* instead of waiting for ever */
        jzx_watchdog_stop(s.dog);
        jzx_loop_abandon(s.loop);
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    stage_close(&s);
}

/* In a pool each worker has a turn of its own to be stuck in. */
typedef struct mule {
    jzx_actor_id id;
    _Atomic uint32_t reports;
    _Atomic uint32_t handled;
} mule;
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
    {"it_can_be_stopped_while_an_actor_is_stuck_R22",
     test_it_can_be_stopped_while_an_actor_is_stuck_R22},
    {"it_can_be_started_inside_of_an_actor_R22", test_it_can_be_started_inside_of_an_actor_R22},
    {"bad_options_are_refused_R36", test_bad_options_are_refused_R36},
    {"a_simulated_loop_has_no_watchdog_R30", test_a_simulated_loop_has_no_watchdog_R30},
    {"without_memory_there_is_no_watchdog_R36", test_without_memory_there_is_no_watchdog_R36},
    {"the_signal_of_a_program_stays_its_own_R29", test_the_signal_of_a_program_stays_its_own_R29},
    {"a_child_of_fork_can_stop_it_R29", test_a_child_of_fork_can_stop_it_R29},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
