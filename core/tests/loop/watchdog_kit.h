/* Behaviors that wait until the watchdog has reported them, and a second loop that is stuck and
 * serves as the clock: its reports say that enough time has passed. */
#ifndef JZT_WATCHDOG_KIT_H
#define JZT_WATCHDOG_KIT_H

#include "support/check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>
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

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void on_stuck(void *ctx, const jzx_stuck_report *report)
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

static inline jzx_behavior_result stage_behavior(jzx_context *ctx, const jzx_message *msg)
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

static inline jzx_behavior_result stage_init(jzx_context *ctx, void *arg)
{
    stage *s = arg;
    ctx->state = s;
    if (s->in_init) {
        stay(s);
    }
    return JZX_BEHAVIOR_OK;
}

static inline void stage_deinit(jzx_context *ctx)
{
    stage *s = ctx->state;
    if (s->in_deinit) {
        stay(s);
    }
}

static inline void stage_open(stage *s, const stage *as)
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

static inline void stage_watch(stage *s, uint32_t limit_ms)
{
    jzx_watchdog_opts opts = {.limit_ms = limit_ms, .on_stuck = on_stuck, .ctx = s};
    REQUIRE_OK(jzx_watchdog_start(s->loop, &opts, &s->dog));
}

static inline void stage_send(stage *s, uint32_t tag)
{
    REQUIRE_OK(jzx_send_u64(s->loop, s->id, 0, tag));
}

static inline void stage_close(stage *s)
{
    jzx_watchdog_stop(s->dog);
    CHECK_OK(jzx_loop_destroy(s->loop));
    sem_destroy(&s->reported);
}

static inline void *run_stage(void *arg)
{
    stage *s = arg;
    CHECK_OK(jzx_loop_run(s->loop));
    return NULL;
}

static inline void stage_start(stage *s)
{
    REQUIRE(pthread_create(&s->thread, NULL, run_stage, s) == 0);
}

/* Time passes: an actor of another loop is stuck until it was reported `count` times. */
static inline void let_limits_pass(uint32_t limit_ms, uint32_t count)
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
static inline bool has_frame_of(const jzx_stuck_report *report, void (*function)(stage *))
{
    for (uint32_t i = 0; i < report->frame_count; i++) {
        uintptr_t from_start = (uintptr_t)report->frames[i] - (uintptr_t)function;
        if (from_start < (JZT_SANITIZED ? 4096 : 1024)) {
            return true;
        }
    }
    return false;
}

static inline void check_report(const stage *s, uint32_t tag, uint32_t kind)
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

/* In a pool each worker has a turn of its own to be stuck in. */
typedef struct mule {
    jzx_actor_id id;
    _Atomic uint32_t reports;
    _Atomic uint32_t handled;
} mule;

#endif
