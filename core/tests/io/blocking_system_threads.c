/* Goal: all dispatchers of a system share one blocking pool and its bounds, and a result finds its
 * actor wherever that runs, or is released when actor and dispatcher are gone (R27, R31). Method:
 * actors on a loop, on pinned dispatchers and on a pool, with jobs that wait for the test.
 *
 * not on: pinned pool (a system has dispatchers of its own) */
#define _GNU_SOURCE
#include "check.h"

#include <jzx/all.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RESULT = 1, GO = 2, TOKENS = 200, ACTORS = 9 };

static _Atomic uint32_t now_running;
static _Atomic uint32_t most_running;

typedef struct token {
    sem_t *gate;
    _Atomic uint32_t begun;
    _Atomic uint32_t ran;
    _Atomic uint32_t arg_drops;
    _Atomic uint32_t result_drops;
    _Atomic uint32_t seen;
} token;

static void *token_run(void *arg)
{
    token *self = arg;
    uint32_t now = atomic_fetch_add(&now_running, 1) + 1;
    uint32_t most = atomic_load(&most_running);
    while (now > most && !atomic_compare_exchange_weak(&most_running, &most, now)) {
    }
    atomic_fetch_add(&self->begun, 1);
    while (self->gate != NULL && sem_wait(self->gate) != 0 && errno == EINTR) {
    }
    atomic_fetch_sub(&now_running, 1);
    atomic_fetch_add(&self->ran, 1);
    return self;
}

static void token_drop_arg(void *arg)
{
    atomic_fetch_add(&((token *)arg)->arg_drops, 1);
}

static void token_drop_result(void *result)
{
    atomic_fetch_add(&((token *)result)->result_drops, 1);
}

static jzx_err token_ask(jzx_context *ctx, token *self)
{
    jzx_blocking_opts opts = {.fn = token_run,
                              .arg = self,
                              .tag = RESULT,
                              .drop_arg = token_drop_arg,
                              .drop_result = token_drop_result};
    return jzx_run_blocking_with(ctx, &opts, NULL);
}

static void await(const _Atomic uint32_t *count, uint32_t value)
{
    for (int i = 0; atomic_load(count) < value && i < 100000; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    REQUIRE(atomic_load(count) >= value);
}

typedef struct asker {
    token tokens[TOKENS];
    uint32_t asked;
    uint32_t seen;
    bool quits; /* as soon as its first job runs */
    bool once;  /* asks for nothing after its first turn */
} asker;

static jzx_behavior_result watch_begin(jzx_context *ctx, asker *self)
{
    if (atomic_load(&self->tokens[0].begun) > 0) {
        return JZX_BEHAVIOR_STOP;
    }
    CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, GO));
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result asker_behavior(jzx_context *ctx, const jzx_message *msg)
{
    asker *self = ctx->state;
    if (msg->kind == JZX_KIND_JOB) {
        CHECK_EQ(atomic_fetch_add(&((token *)msg->data)->seen, 1), 0);
        self->seen++;
    }
    if (self->once && self->asked > 0) {
        return JZX_BEHAVIOR_OK;
    }
    if (self->quits && self->asked > 0) {
        return watch_begin(ctx, self);
    }
    for (int i = 0; i < (self->quits ? 1 : 3) && self->asked < TOKENS; i++) {
        jzx_err err = token_ask(ctx, &self->tokens[self->asked]);
        if (err == JZX_ERR_QUEUE_FULL) {
            break;
        }
        CHECK_OK(err);
        self->asked++;
    }
    if (self->quits || (self->seen == self->asked && self->asked < TOKENS)) {
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, GO)); /* all places were taken by others */
    }
    return self->seen == TOKENS ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result asker_init(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return jzx_send_u64(ctx->loop, ctx->self, 0, GO) == JZX_OK ? JZX_BEHAVIOR_OK
                                                               : JZX_BEHAVIOR_FAIL;
}

static jzx_err spawn(jzx_system *system, asker *self, const char *dispatcher)
{
    jzx_spawn_opts opts = {
        .behavior = asker_behavior, .init = asker_init, .state = self, .dispatcher = dispatcher};
    return jzx_system_spawn(system, &opts, NULL);
}

static void check_settled(const token *t)
{
    CHECK_EQ(t->ran + t->arg_drops, 1);
    CHECK_EQ(t->result_drops, t->ran);
    CHECK(t->seen <= t->ran);
}

static void test_all_dispatchers_share_one_pool_R31(void)
{
    static const char *const places[3] = {"loop", "pool", "pinned"};
    asker *askers = calloc(ACTORS, sizeof *askers);
    jzx_system_config config = {.pool_workers = 3, .blocking_threads = 2, .blocking_queue = 20};
    jzx_system *system = NULL;
    atomic_store(&now_running, 0);
    atomic_store(&most_running, 0);
    REQUIRE(askers != NULL);
    REQUIRE_OK(jzx_system_create(&config, &system));
    for (int i = 0; i < ACTORS; i++) {
        REQUIRE_OK(spawn(system, &askers[i], places[i % 3]));
    }
    REQUIRE_OK(jzx_system_run(system));
    CHECK_OK(jzx_system_destroy(system));
    CHECK(atomic_load(&most_running) <= 2);
    for (int i = 0; i < ACTORS; i++) {
        CHECK_EQ(askers[i].asked, TOKENS);
        CHECK_EQ(askers[i].seen, TOKENS);
        for (int k = 0; k < TOKENS; k++) {
            check_settled(&askers[i].tokens[k]);
            CHECK_EQ(askers[i].tokens[k].seen, 1);
        }
    }
    free(askers);
}

/* The dispatcher of a pinned actor goes with it, and the next one may get its place. */
static void test_a_job_may_outlive_its_dispatcher_R31(void)
{
    enum { ROUNDS = 4 };
    asker *askers = calloc(ROUNDS, sizeof *askers);
    jzx_system *system = NULL;
    sem_t gate;
    sem_init(&gate, 0, 0);
    REQUIRE(askers != NULL);
    REQUIRE_OK(jzx_system_create(NULL, &system));
    for (int i = 0; i < ROUNDS; i++) {
        askers[i].quits = true;
        askers[i].tokens[0].gate = &gate;
        REQUIRE_OK(spawn(system, &askers[i], "pinned"));
        REQUIRE_OK(jzx_system_run(system)); /* until it is gone */
        CHECK_EQ(askers[i].tokens[0].begun, 1);
    }
    for (int i = 0; i < ROUNDS; i++) {
        sem_post(&gate);
    }
    for (int i = 0; i < ROUNDS - 1; i++) {
        await(&askers[i].tokens[0].ran, 1);
    }
    CHECK_OK(jzx_system_destroy(system));
    for (int i = 0; i < ROUNDS; i++) {
        check_settled(&askers[i].tokens[0]);
        CHECK_EQ(askers[i].tokens[0].ran, 1);
        CHECK_EQ(askers[i].tokens[0].seen, 0);
    }
    sem_destroy(&gate);
    free(askers);
}

static void *open_later(void *arg)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    for (int i = 0; i < 100; i++) {
        sem_post(arg);
    }
    return NULL;
}

/* With jobs that wait and jobs that run, everywhere. */
static void test_destroy_waits_for_jobs_of_all_dispatchers_R22(void)
{
    static const char *const places[3] = {"loop", "pool", "pinned"};
    asker *askers = calloc(ACTORS, sizeof *askers);
    jzx_system_config config = {.pool_workers = 2, .blocking_threads = 3, .blocking_queue = 100};
    jzx_system *system = NULL;
    sem_t gate;
    pthread_t opener;
    sem_init(&gate, 0, 0);
    atomic_store(&now_running, 0);
    REQUIRE(askers != NULL);
    REQUIRE_OK(jzx_system_create(&config, &system));
    for (int i = 0; i < ACTORS; i++) {
        askers[i].once = true; /* on a busy machine jobs may end before destroy begins */
        for (int k = 0; k < TOKENS; k++) {
            askers[i].tokens[k].gate = &gate;
        }
        REQUIRE_OK(spawn(system, &askers[i], places[i % 3]));
    }
    REQUIRE_OK(jzx_system_run_until_idle(system, 120000));
    await(&now_running, 3);
    REQUIRE(pthread_create(&opener, NULL, open_later, &gate) == 0);
    CHECK_OK(jzx_system_destroy(system));
    (void)pthread_join(opener, NULL);
    for (int i = 0; i < ACTORS; i++) {
        CHECK_EQ(askers[i].asked, 3);
        for (uint32_t k = 0; k < askers[i].asked; k++) {
            check_settled(&askers[i].tokens[k]);
        }
    }
    sem_destroy(&gate);
    free(askers);
}

static const jzt_test tests[] = {
    {"all_dispatchers_share_one_pool_R31", test_all_dispatchers_share_one_pool_R31},
    {"a_job_may_outlive_its_dispatcher_R31", test_a_job_may_outlive_its_dispatcher_R31},
    {"destroy_waits_for_jobs_of_all_dispatchers_R22",
     test_destroy_waits_for_jobs_of_all_dispatchers_R22},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
