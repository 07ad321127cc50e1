/* Goal: whoever waits for a generation hears of it once it is durable, in time or not at all;
 * whoever follows the events gets each of them once, in order, however slow it is and whenever it
 * began. Method: the public API; actors on a loop that the test steps, threads where blocking is
 * the point. */
#include "mf_fixture.h"

#include <pthread.h>
#include <stdbool.h>

#define COMPONENT 9u
#define TAG 40u

static void bump(jzx_mf *mf, uint32_t component, uint64_t by)
{
    jzx_mf_txn *txn = mft_begin(mf);
    CHECK_OK(jzx_mf_generation_bump(txn, component, by));
    CHECK_OK(jzx_mf_commit(txn, 0, NULL));
}

static void test_a_generation_that_is_reached_already_is_told_at_once(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    bump(mf, COMPONENT, 3);
    uint64_t reached = 0;
    CHECK_OK(jzx_mf_generation_wait(mf, COMPONENT, 2, 0, &reached));
    CHECK_EQ(reached, 3);
    CHECK_OK(jzx_mf_generation_wait(mf, COMPONENT + 1, 0, 0, &reached));
    CHECK_EQ(reached, 0);
    CHECK_OK(jzx_mf_close(mf, 0));
    mft_dir_remove(&dir);
}

static void test_a_generation_that_is_not_reached_in_time_is_not_told(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    bump(mf, COMPONENT + 1, 100);
    uint64_t reached = 77;
    CHECK_EQ(jzx_mf_generation_wait(mf, COMPONENT, 1, 20, &reached), JZX_ERR_TIMED_OUT);
    CHECK_EQ(reached, 77);
    CHECK_OK(jzx_mf_close(mf, 0));
    mft_dir_remove(&dir);
}

typedef struct waiter {
    pthread_t thread;
    jzx_mf *mf;
    uint64_t target;
    uint64_t reached;
    jzx_err err;
} waiter;

static void *run_waiter(void *arg)
{
    waiter *self = arg;
    self->err = jzx_mf_generation_wait(self->mf, COMPONENT, self->target, 0, &self->reached);
    return NULL;
}

static void await_waiters(jzx_mf *mf, uint64_t count)
{
    jzx_mf_stats stats = {0};
    while (stats.waiters != count) {
        REQUIRE_OK(jzx_mf_stats_read(mf, &stats));
    }
}

static void test_waiters_wake_with_the_commit_that_reaches_their_target(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    waiter waiters[40];
    for (uint32_t i = 0; i < 40; i++) {
        waiters[i] = (waiter){.mf = mf, .target = i + 1};
        REQUIRE_EQ(pthread_create(&waiters[i].thread, NULL, run_waiter, &waiters[i]), 0);
    }
    await_waiters(mf, 40);
    bump(mf, COMPONENT, 30);
    for (uint32_t i = 0; i < 30; i++) {
        (void)pthread_join(waiters[i].thread, NULL);
        CHECK_OK(waiters[i].err);
        CHECK_EQ(waiters[i].reached, 30);
    }
    await_waiters(mf, 10);
    /* A manifest that is closed tells the rest so. */
    CHECK_OK(jzx_mf_close(mf, 0));
    for (uint32_t i = 30; i < 40; i++) {
        (void)pthread_join(waiters[i].thread, NULL);
        CHECK_EQ(waiters[i].err, JZX_ERR_CLOSED);
    }
    mft_dir_remove(&dir);
}

/* An actor that remembers the events it was sent. */
typedef struct follower {
    jzx_mf *mf;
    uint64_t seqs[4096];
    uint32_t indexes[4096];
    uint32_t changes[4096];
    uint32_t tables[4096];
    uint32_t count;
} follower;

static jzx_behavior_result follower_behavior(jzx_context *ctx, const jzx_message *msg)
{
    follower *self = ctx->state;
    if (msg->tag == TAG && self->count < 4096) {
        const jzx_mf_event *event = msg->data;
        CHECK_EQ(msg->len, sizeof *event);
        self->seqs[self->count] = event->seq;
        self->indexes[self->count] = event->index;
        self->changes[self->count] = event->change;
        self->tables[self->count] = event->key.table;
        self->count++;
    }
    return JZX_BEHAVIOR_OK;
}

/* A manifest on a loop of the test's, and commits that are waited for by stepping it. */
typedef struct stage_of_test {
    mft_dir dir;
    jzx_loop *loop;
    jzx_mf *mf;
    follower *follower;
    jzx_actor_id id;
    int done;
} stage_of_test;

static void stage_open(stage_of_test *stage, const jzx_mf_opts *opts, uint32_t mailbox_cap)
{
    jzx_mf_opts with_loop = *opts;
    REQUIRE_OK(jzx_loop_create(NULL, &stage->loop));
    with_loop.loop = stage->loop;
    stage->mf = mft_open(&stage->dir, &with_loop);
    stage->follower = calloc(1, sizeof *stage->follower);
    REQUIRE(stage->follower != NULL);
    const jzx_spawn_opts spawn = {.behavior = follower_behavior,
                                  .state = stage->follower,
                                  .mailbox_cap = mailbox_cap,
                                  .max_msgs = 1};
    REQUIRE_OK(jzx_spawn(stage->loop, &spawn, &stage->id));
}

static void stage_close(stage_of_test *stage)
{
    CHECK_OK(jzx_mf_close(stage->mf, 0));
    CHECK_OK(jzx_loop_destroy(stage->loop));
    free(stage->follower);
}

static void on_done(void *arg, const jzx_mf_receipt *receipt)
{
    CHECK_OK(receipt->err);
    ((stage_of_test *)arg)->done++;
}

static void stage_bump(stage_of_test *stage, uint32_t times)
{
    jzx_mf_txn *txn = mft_begin(stage->mf);
    for (uint32_t i = 0; i < times; i++) {
        CHECK_OK(jzx_mf_generation_bump(txn, COMPONENT, 1));
    }
    int before = stage->done;
    CHECK_OK(jzx_mf_commit_async(txn, on_done, stage));
    while (stage->done == before) {
        REQUIRE_OK(jzx_loop_step(stage->loop, 0));
    }
}

static void stage_run(stage_of_test *stage)
{
    REQUIRE_OK(jzx_loop_run_until_idle(stage->loop));
}

static void check_in_order(const follower *self, uint32_t from, uint32_t count)
{
    for (uint32_t i = from + 1; i < count; i++) {
        bool later =
            self->seqs[i] > self->seqs[i - 1] ||
            (self->seqs[i] == self->seqs[i - 1] && self->indexes[i] == self->indexes[i - 1] + 1);
        CHECK(later);
    }
}

static void test_a_follower_gets_what_was_before_and_what_comes(void)
{
    stage_of_test stage = {.dir = mft_dir_make()};
    stage_open(&stage, &(jzx_mf_opts){0}, 64);
    stage_bump(&stage, 3);
    CHECK_OK(jzx_mf_follow(stage.mf, stage.id, TAG, 0, NULL));
    stage_run(&stage);
    CHECK_EQ(stage.follower->count, 3);
    stage_bump(&stage, 2);
    stage_run(&stage);
    CHECK_EQ(stage.follower->count, 5);
    CHECK_EQ(stage.follower->tables[4], JZX_MF_TABLE_GENERATION);
    CHECK_EQ(stage.follower->changes[4], JZX_MF_PUT);
    check_in_order(stage.follower, 0, 5);
    uint64_t last = stage.follower->seqs[4];
    stage_close(&stage);

    /* The next program goes on where this one ended. */
    stage_open(&stage, &(jzx_mf_opts){0}, 64);
    CHECK_OK(jzx_mf_follow(stage.mf, stage.id, TAG, last, NULL));
    stage_bump(&stage, 1);
    stage_run(&stage);
    CHECK_EQ(stage.follower->count, 1);
    CHECK(stage.follower->seqs[0] > last);
    stage_close(&stage);
    mft_dir_remove(&stage.dir);
}

static void test_a_slow_follower_loses_nothing(void)
{
    stage_of_test stage = {.dir = mft_dir_make()};
    stage_open(&stage, &(jzx_mf_opts){0}, 4);
    CHECK_OK(jzx_mf_follow(stage.mf, stage.id, TAG, 0, NULL));
    for (uint32_t i = 0; i < 100; i++) {
        stage_bump(&stage, 30);
    }
    stage_run(&stage);
    CHECK_EQ(stage.follower->count, 3000);
    check_in_order(stage.follower, 0, 3000);
    stage_close(&stage);
    mft_dir_remove(&stage.dir);
}

static void test_what_is_not_kept_any_more_is_told_as_lost(void)
{
    stage_of_test stage = {.dir = mft_dir_make()};
    stage_open(&stage, &(jzx_mf_opts){.events_kept = 50}, 64);
    for (uint32_t i = 0; i < 40; i++) {
        stage_bump(&stage, 10);
    }
    CHECK_OK(jzx_mf_follow(stage.mf, stage.id, TAG, 0, NULL));
    stage_run(&stage);
    const follower *self = stage.follower;
    REQUIRE(self->count > 1);
    CHECK_EQ(self->changes[0], JZX_MF_LOST);
    CHECK(self->count >= 41 && self->count <= 1 + 50);
    CHECK_EQ(self->changes[1], JZX_MF_PUT);
    CHECK_EQ(self->indexes[1], 0);
    check_in_order(self, 1, self->count);
    stage_close(&stage);
    mft_dir_remove(&stage.dir);
}

static void test_a_follower_that_ends_or_had_enough_is_forgotten(void)
{
    stage_of_test stage = {.dir = mft_dir_make()};
    stage_open(&stage, &(jzx_mf_opts){0}, 64);
    uint64_t one = 0;
    CHECK_OK(jzx_mf_follow(stage.mf, stage.id, TAG, 0, &one));
    stage_run(&stage);
    jzx_mf_stats stats;
    CHECK_OK(jzx_mf_stats_read(stage.mf, &stats));
    CHECK_EQ(stats.followers, 1);
    CHECK_OK(jzx_mf_unfollow(stage.mf, one));
    stage_bump(&stage, 1);
    stage_run(&stage);
    CHECK_EQ(stage.follower->count, 0);
    CHECK_OK(jzx_mf_follow(stage.mf, stage.id, TAG, 0, &one));
    CHECK_OK(jzx_stop(stage.loop, stage.id));
    stage_run(&stage);
    stage_bump(&stage, 1);
    stage_run(&stage);
    CHECK_OK(jzx_mf_stats_read(stage.mf, &stats));
    CHECK_EQ(stats.followers, 0);
    CHECK_EQ(jzx_mf_follow(stage.mf, JZX_NOBODY, TAG, 0, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_follow(stage.mf, stage.id, JZX_TAG_ROOM, 0, NULL), JZX_ERR_RESERVED_TAG);
    stage_close(&stage);
    mft_dir_remove(&stage.dir);
}

int main(int argc, char **argv)
{
    static const jzt_test tests[] = {
        {"a_generation_that_is_reached_already_is_told_at_once",
         test_a_generation_that_is_reached_already_is_told_at_once},
        {"a_generation_that_is_not_reached_in_time_is_not_told",
         test_a_generation_that_is_not_reached_in_time_is_not_told},
        {"waiters_wake_with_the_commit_that_reaches_their_target",
         test_waiters_wake_with_the_commit_that_reaches_their_target},
        {"a_follower_gets_what_was_before_and_what_comes",
         test_a_follower_gets_what_was_before_and_what_comes},
        {"a_slow_follower_loses_nothing", test_a_slow_follower_loses_nothing},
        {"what_is_not_kept_any_more_is_told_as_lost",
         test_what_is_not_kept_any_more_is_told_as_lost},
        {"a_follower_that_ends_or_had_enough_is_forgotten",
         test_a_follower_that_ends_or_had_enough_is_forgotten},
    };
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
