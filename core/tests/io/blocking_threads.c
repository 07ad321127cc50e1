/* Goal: jobs keep their promises when everything happens at once (R27, R31): loops on several
 * threads, actors of a pool that ask, cancel, fail and end while their jobs run, and jobs that send
 * messages themselves. Method: every argument and result is counted; thread sanitizers watch. */
#define _GNU_SOURCE
#include "check.h"

#include <jzx/all.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RESULT = 1, GO = 2, HELLO = 3, TOKENS = 400, ACTORS = 8, LOOPS = 3 };

typedef struct token {
    _Atomic uint32_t ran;
    _Atomic uint32_t arg_drops;
    _Atomic uint32_t result_drops;
    _Atomic uint32_t seen;
    jzx_job_ref ref;
    uint32_t turns; /* how long it takes */
} token;

/* An actor that asks for all of its jobs, a few at a time, and ends when none is left. */
typedef struct asker {
    token tokens[TOKENS];
    uint32_t asked;
    uint32_t settled; /* seen, or called off */
    uint32_t fails;   /* it is to fail this often on the way */
    uint32_t salt;
    jzx_actor_id id;
} asker;

static void *token_run(void *arg)
{
    token *self = arg;
    for (volatile uint32_t i = 0; i < self->turns; i++) {
    }
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

static uint32_t dice(asker *self, uint32_t bound)
{
    self->salt = self->salt * 1664525u + 1013904223u;
    return (self->salt >> 8) % bound;
}

static void ask_some(jzx_context *ctx, asker *self)
{
    uint32_t count = 1 + dice(self, 20);
    while (count-- > 0 && self->asked < TOKENS) {
        token *t = &self->tokens[self->asked];
        t->turns = dice(self, 2000);
        jzx_blocking_opts opts = {.fn = token_run,
                                  .arg = t,
                                  .tag = RESULT,
                                  .drop_arg = token_drop_arg,
                                  .drop_result = token_drop_result};
        jzx_err err = jzx_run_blocking_with(ctx, &opts, &t->ref);
        if (err == JZX_ERR_QUEUE_FULL) {
            return; /* results are on their way */
        }
        REQUIRE_OK(err);
        self->asked++;
        if (dice(self, 5) == 0) {
            token *any = &self->tokens[dice(self, self->asked)];
            if (jzx_cancel_blocking(ctx, any->ref) == JZX_OK) {
                CHECK_EQ(any->arg_drops, 1);
                self->settled++;
            }
        }
    }
}

static jzx_behavior_result asker_behavior(jzx_context *ctx, const jzx_message *msg)
{
    asker *self = ctx->state;
    if (msg->kind == JZX_KIND_JOB) {
        token *t = msg->data;
        CHECK_EQ(jzx_message_job(msg), t->ref);
        CHECK_EQ(atomic_fetch_add(&t->seen, 1), 0);
        self->settled++;
    }
    ask_some(ctx, self);
    if (self->fails > 0 && self->asked > TOKENS / 2 && dice(self, 10) == 0) {
        self->fails--;
        return JZX_BEHAVIOR_FAIL;
    }
    if (self->settled < self->asked) {
        return JZX_BEHAVIOR_OK; /* something will come */
    }
    if (self->asked == TOKENS) {
        return JZX_BEHAVIOR_STOP;
    }
    CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, GO));
    return JZX_BEHAVIOR_OK;
}

/* What an earlier incarnation asked for is forgotten: the next one goes on behind it. */
static jzx_behavior_result asker_init(jzx_context *ctx, void *arg)
{
    asker *self = ctx->state = arg;
    self->settled = self->asked;
    self->id = ctx->self;
    return jzx_send_u64(ctx->loop, ctx->self, 0, GO) == JZX_OK ? JZX_BEHAVIOR_OK
                                                               : JZX_BEHAVIOR_FAIL;
}

static void check_settled(const asker *self)
{
    for (uint32_t i = 0; i < self->asked; i++) {
        const token *t = &self->tokens[i];
        CHECK_EQ(t->ran + t->arg_drops, 1);
        CHECK_EQ(t->result_drops, t->ran);
        CHECK(t->seen <= t->ran);
    }
}

static asker *askers_new(uint32_t fails)
{
    asker *askers = calloc(ACTORS, sizeof *askers);
    REQUIRE(askers != NULL);
    for (uint32_t i = 0; i < ACTORS; i++) {
        askers[i].salt = (uint32_t)jzt_seed() + i * 77;
        askers[i].fails = fails;
    }
    return askers;
}

/* Transient children: restarted when they fail, gone when they are done; then the loop is done. */
static void spawn_askers(jzx_loop *loop, asker *askers)
{
    static const char *const ids[ACTORS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    jzx_child_spec specs[ACTORS];
    for (uint32_t i = 0; i < ACTORS; i++) {
        specs[i] = (jzx_child_spec){.id = ids[i],
                                    .behavior = asker_behavior,
                                    .init = asker_init,
                                    .arg = &askers[i],
                                    .mode = JZX_TRANSIENT,
                                    .significant = 1};
    }
    jzx_supervisor_spec policy = {.intensity = 1000, .auto_shutdown = JZX_AUTO_ALL_SIGNIFICANT};
    jzx_supervisor_init init = {
        .name = "sup", .spec = &policy, .children = specs, .child_count = ACTORS};
    REQUIRE_OK(jzx_spawn_supervisor(loop, &init, NULL));
}

static void *run_loop(void *arg)
{
    CHECK_OK(jzx_loop_run(arg));
    return NULL;
}

static void all_askers_finish(const jzx_config *config, uint32_t fails)
{
    jzx_loop *loop = NULL;
    asker *askers = askers_new(fails);
    REQUIRE_OK(jzx_loop_create(config, &loop));
    spawn_askers(loop, askers);
    (void)run_loop(loop);
    CHECK_OK(jzx_loop_destroy(loop));
    for (uint32_t i = 0; i < ACTORS; i++) {
        CHECK_EQ(askers[i].asked, TOKENS);
        check_settled(&askers[i]);
    }
    free(askers);
}

static void test_actors_of_a_loop_share_the_threads_R27(void)
{
    all_askers_finish(NULL, 0);
    all_askers_finish(NULL, 3);
}

static void test_actors_of_a_pool_ask_cancel_and_fail_at_once_R31(void)
{
    jzx_config config = {.dispatcher = JZX_DISPATCHER_POOL, .workers = 4};
    all_askers_finish(&config, 0);
    all_askers_finish(&config, 3);
}

static void test_a_pinned_loop_gets_its_results_R31(void)
{
    jzx_config config = {.dispatcher = JZX_DISPATCHER_PINNED};
    all_askers_finish(&config, 2);
}

static void test_loops_on_several_threads_do_not_mix_R27(void)
{
    jzx_loop *loops[LOOPS];
    asker *askers[LOOPS];
    pthread_t threads[LOOPS];
    for (int i = 0; i < LOOPS; i++) {
        askers[i] = askers_new(1);
        REQUIRE_OK(jzx_loop_create(NULL, &loops[i]));
        spawn_askers(loops[i], askers[i]);
        REQUIRE(pthread_create(&threads[i], NULL, run_loop, loops[i]) == 0);
    }
    for (int i = 0; i < LOOPS; i++) {
        (void)pthread_join(threads[i], NULL);
        CHECK_OK(jzx_loop_destroy(loops[i])); /* by another thread than the one that ran it */
        for (int k = 0; k < ACTORS; k++) {
            CHECK_EQ(askers[i][k].asked, TOKENS);
            check_settled(&askers[i][k]);
        }
        free(askers[i]);
    }
}

/* Destroyed in the middle of it, after a random number of steps. */
static void destroyed_early(const jzx_config *config, int steps)
{
    jzx_loop *loop = NULL;
    asker *askers = askers_new(2);
    REQUIRE_OK(jzx_loop_create(config, &loop));
    spawn_askers(loop, askers);
    for (int i = 0; i < steps; i++) {
        REQUIRE_OK(jzx_loop_step(loop, 0));
    }
    CHECK_OK(jzx_loop_destroy(loop));
    for (uint32_t i = 0; i < ACTORS; i++) {
        check_settled(&askers[i]);
    }
    free(askers);
}

static void test_a_loop_may_go_at_any_moment_R16(void)
{
    jzx_config pool = {.dispatcher = JZX_DISPATCHER_POOL, .workers = 3};
    for (int steps = 0; steps < 40; steps += 3) {
        destroyed_early(NULL, steps);
        destroyed_early(&pool, steps);
    }
}

/* A job that talks to its actor while it runs, and one that is stopped from outside. */
typedef struct talker {
    jzx_sender *sender;
    jzx_actor_id id;
    uint32_t hellos;
    uint32_t results;
} talker;

static void *talk(void *arg)
{
    talker *self = arg;
    for (int i = 0; i < 100; i++) {
        CHECK_OK(jzx_send_async_u64(self->sender, self->id, 0, HELLO));
    }
    return NULL;
}

static jzx_behavior_result talker_behavior(jzx_context *ctx, const jzx_message *msg)
{
    talker *self = ctx->state;
    if (msg->tag == GO) {
        REQUIRE_OK(jzx_run_blocking(ctx, talk, self, RESULT));
    }
    self->hellos += msg->tag == HELLO;
    self->results += msg->tag == RESULT;
    return self->hellos == 100 && self->results == 1 ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

static void test_a_job_may_send_messages_R27(void)
{
    jzx_loop *loop = NULL;
    talker self = {0};
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    REQUIRE_OK(jzx_sender_open(loop, 0, &self.sender));
    jzx_spawn_opts opts = {.behavior = talker_behavior, .state = &self};
    REQUIRE_OK(jzx_spawn(loop, &opts, &self.id));
    REQUIRE_OK(jzx_send_u64(loop, self.id, 0, GO));
    (void)run_loop(loop);
    CHECK_EQ(self.hellos, 100);
    CHECK_EQ(self.results, 1);
    jzx_sender_release(self.sender);
    CHECK_OK(jzx_loop_destroy(loop));
}

static const jzt_test tests[] = {
    {"actors_of_a_loop_share_the_threads_R27", test_actors_of_a_loop_share_the_threads_R27},
    {"actors_of_a_pool_ask_cancel_and_fail_at_once_R31",
     test_actors_of_a_pool_ask_cancel_and_fail_at_once_R31},
    {"a_pinned_loop_gets_its_results_R31", test_a_pinned_loop_gets_its_results_R31},
    {"loops_on_several_threads_do_not_mix_R27", test_loops_on_several_threads_do_not_mix_R27},
    {"a_loop_may_go_at_any_moment_R16", test_a_loop_may_go_at_any_moment_R16},
    {"a_job_may_send_messages_R27", test_a_job_may_send_messages_R27},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
