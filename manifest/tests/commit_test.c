/* Goal: a commit does all of a transaction or nothing, tells how it ended exactly once in each of
 * the three forms, and one request's error is nobody else's. Method: the public API on a real file.
 */
#include "mf.h"
#include "mf_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#define KIND 7u

static void test_a_commit_gives_a_receipt_with_a_slot_for_each_operation(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    jzx_mf_txn *txn = mft_begin(mf);
    uint64_t job = 0;
    CHECK_OK(jzx_mf_generation_bump(txn, 3, 5));
    CHECK_OK(jzx_mf_job_enqueue(txn, &(jzx_mf_job_spec){.kind = KIND}, &job));
    CHECK_OK(jzx_mf_sync(txn));
    CHECK_EQ(jzx_mf_txn_count(txn), 3);
    jzx_mf_receipt *receipt = NULL;
    REQUIRE_OK(jzx_mf_commit(txn, 0, &receipt));
    CHECK_EQ(receipt->err, JZX_OK);
    CHECK_EQ(receipt->slot_count, 3);
    CHECK_EQ(receipt->slots[0].id, 5);
    CHECK_EQ(receipt->slots[1].id, job);
    CHECK_EQ(receipt->slots[1].outcome, JZX_MF_NEW);
    CHECK(receipt->seq > 0);
    CHECK(receipt->now_ms > 0);
    jzx_mf_receipt_free(receipt);
    CHECK_OK(jzx_mf_close(mf, 0));
    mft_dir_remove(&dir);
}

/* Nothing is merged unless it was asked for, and then the receipt says how often and into what. */
static void test_a_receipt_tells_new_jobs_from_those_that_were_met(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    jzx_mf_txn *txn = mft_begin(mf);
    for (int i = 0; i < 1000; i++) {
        CHECK_OK(jzx_mf_job_enqueue(txn, &(jzx_mf_job_spec){.kind = KIND}, NULL));
    }
    uint64_t first = 0;
    jzx_mf_job_spec one = {.kind = KIND + 1, .unique = JZX_MF_EXCLUSIVE};
    CHECK_OK(jzx_mf_job_enqueue(txn, &one, &first));
    CHECK_OK(jzx_mf_job_enqueue(txn, &one, NULL));
    one.flags = JZX_MF_REPLACE;
    CHECK_OK(jzx_mf_job_enqueue(txn, &one, NULL));
    jzx_mf_receipt *receipt = NULL;
    REQUIRE_OK(jzx_mf_commit(txn, 0, &receipt));
    CHECK_EQ(receipt->jobs_new, 1001);
    CHECK_EQ(receipt->jobs_met, 2);
    CHECK_EQ(receipt->slots[1001].outcome, JZX_MF_EXISTS_QUEUED);
    CHECK_EQ(receipt->slots[1001].id, first);
    CHECK_EQ(receipt->slots[1002].outcome, JZX_MF_REPLACED);
    CHECK_EQ(receipt->slots[1002].id, first);
    jzx_mf_receipt_free(receipt);
    jzx_mf_stats stats;
    CHECK_OK(jzx_mf_stats_read(mf, &stats));
    CHECK_EQ(stats.entries[JZX_MF_TABLE_JOB], 1001);
    txn = mft_begin(mf);
    one.unique = 0; /* what is to be replaced has to be said */
    CHECK_EQ(jzx_mf_job_enqueue(txn, &one, NULL), JZX_ERR_INVALID_ARG);
    jzx_mf_abort(txn);
    CHECK_OK(jzx_mf_close(mf, 0));
    mft_dir_remove(&dir);
}

static jzx_err read_generation(jzx_mf_snap *snap, void *arg)
{
    jzx_mf_generation generation;
    jzx_err err = jzx_mf_generation_get(snap, 3, &generation);
    *(uint64_t *)arg = generation.current;
    return err;
}

static uint64_t generation_of_three(jzx_mf *mf)
{
    uint64_t current = UINT64_MAX;
    CHECK_OK(jzx_mf_read(mf, read_generation, &current));
    return current;
}

static void test_a_refused_operation_undoes_those_before_it(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    jzx_mf_txn *txn = mft_begin(mf);
    CHECK_OK(jzx_mf_generation_bump(txn, 3, 1));
    CHECK_OK(jzx_mf_job_cancel(txn, 12345));
    jzx_mf_receipt *receipt = NULL;
    CHECK_EQ(jzx_mf_commit(txn, 0, &receipt), JZX_ERR_NOT_FOUND);
    REQUIRE(receipt != NULL);
    CHECK_EQ(receipt->failed, 1);
    CHECK_EQ(receipt->seq, 0);
    jzx_mf_receipt_free(receipt);
    CHECK_EQ(generation_of_three(mf), 0);
    CHECK_OK(jzx_mf_close(mf, 0));
    mft_dir_remove(&dir);
}

static void test_an_operation_that_is_refused_at_once_was_not_added(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    jzx_mf_txn *txn = mft_begin(mf);
    char long_name[JZX_MF_NAME_MAX + 2];
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    CHECK_EQ(jzx_mf_generation_bump(txn, 1, 0), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_job_enqueue(txn, &(jzx_mf_job_spec){.kind = 0}, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_db_put(txn, 1, &(jzx_mf_db){.name = jzx_mf_text("")}), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_db_put(txn, 1, &(jzx_mf_db){.name = jzx_mf_text(long_name)}), JZX_ERR_TOO_BIG);
    CHECK_EQ(jzx_mf_expect(txn, NULL, 0), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_job_complete(txn, NULL, jzx_mf_text("")), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_cron_put(txn, &(jzx_mf_cron){.name = jzx_mf_text("n"),
                                                 .schedule = jzx_mf_text("99 * * * *"),
                                                 .kind = 1}),
             JZX_ERR_BAD_SPEC);
    jzx_mf_job_spec spec = {.kind = KIND, .payload = {NULL, 5}};
    CHECK_EQ(jzx_mf_job_enqueue(txn, &spec, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_txn_count(txn), 0);
    CHECK_OK(jzx_mf_commit(txn, 0, NULL));
    CHECK_OK(jzx_mf_close(mf, 0));
    mft_dir_remove(&dir);
}

static void test_a_condition_that_does_not_hold_is_a_conflict(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    const jzx_mf_key key = jzx_mf_key_generation(3);
    for (int round = 0; round < 2; round++) {
        jzx_mf_txn *txn = mft_begin(mf);
        CHECK_OK(jzx_mf_expect(txn, &key, JZX_MF_ABSENT));
        CHECK_OK(jzx_mf_generation_bump(txn, 3, 1));
        CHECK_EQ(jzx_mf_commit(txn, 0, NULL), round == 0 ? JZX_OK : JZX_ERR_CONFLICT);
    }
    CHECK_EQ(generation_of_three(mf), 1);
    /* On any record: here an entry of the schedule. */
    const jzx_mf_key cron_key = jzx_mf_key_cron(jzx_mf_text("nightly"));
    const jzx_mf_cron cron = {
        .name = jzx_mf_text("nightly"), .schedule = jzx_mf_text("@daily"), .kind = 1};
    for (int round = 0; round < 2; round++) {
        jzx_mf_txn *txn = mft_begin(mf);
        CHECK_OK(jzx_mf_expect(txn, &cron_key, JZX_MF_ABSENT));
        CHECK_OK(jzx_mf_cron_put(txn, &cron));
        CHECK_EQ(jzx_mf_commit(txn, 0, NULL), round == 0 ? JZX_OK : JZX_ERR_CONFLICT);
    }
    CHECK_OK(jzx_mf_close(mf, 0));
    mft_dir_remove(&dir);
}

typedef struct heard {
    _Atomic int calls;
    _Atomic int err;
} heard;

static void on_done(void *arg, const jzx_mf_receipt *receipt)
{
    heard *what = arg;
    what->err = receipt->err;
    what->calls++;
}

static void test_a_callback_comes_exactly_once(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    heard good = {0, 1};
    heard bad = {0, 0};
    jzx_mf_txn *txn = mft_begin(mf);
    CHECK_OK(jzx_mf_generation_bump(txn, 3, 1));
    CHECK_OK(jzx_mf_commit_async(txn, on_done, &good));
    txn = mft_begin(mf);
    CHECK_OK(jzx_mf_job_cancel(txn, 999));
    CHECK_OK(jzx_mf_commit_async(txn, on_done, &bad));
    CHECK_OK(jzx_mf_close(mf, 0)); /* which drains */
    CHECK_EQ(good.calls, 1);
    CHECK_EQ(good.err, JZX_OK);
    CHECK_EQ(bad.calls, 1);
    CHECK_EQ(bad.err, JZX_ERR_NOT_FOUND);
    mft_dir_remove(&dir);
}

#define CLIENTS 16u
#define ROUNDS 50u

typedef struct client {
    pthread_t thread;
    jzx_mf *mf;
    uint32_t number;
    uint32_t refused;
} client;

/* Every third transaction is refused; the others each bump. */
static void *run_client(void *arg)
{
    client *self = arg;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        jzx_mf_txn *txn = NULL;
        if (jzx_mf_begin(self->mf, &txn) != JZX_OK) {
            return NULL;
        }
        jzx_err err = jzx_mf_generation_bump(txn, 3, 1);
        bool bad = (i + self->number) % 3 == 0;
        if (bad && err == JZX_OK) {
            err = jzx_mf_job_retry(txn, UINT64_MAX);
        }
        CHECK_OK(err);
        err = jzx_mf_commit(txn, 0, NULL);
        CHECK_EQ(err, bad ? JZX_ERR_NOT_FOUND : JZX_OK);
        self->refused += bad ? 1 : 0;
    }
    return NULL;
}

static void test_errors_of_one_request_are_nobody_elses_in_the_same_commit(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    static client clients[CLIENTS];
    uint32_t refused = 0;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        clients[i] = (client){.mf = mf, .number = i};
        REQUIRE_EQ(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]), 0);
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        (void)pthread_join(clients[i].thread, NULL);
        refused += clients[i].refused;
    }
    CHECK_EQ(generation_of_three(mf), CLIENTS * ROUNDS - refused);
    jzx_mf_stats stats;
    CHECK_OK(jzx_mf_stats_read(mf, &stats));
    CHECK_EQ(stats.requests, CLIENTS * ROUNDS);
    CHECK_EQ(stats.refused, refused);
    CHECK(stats.commits <= CLIENTS * ROUNDS - refused);
    CHECK_OK(jzx_mf_close(mf, 0));
    mft_dir_remove(&dir);
}

static void test_a_closing_manifest_does_what_it_accepted(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    heard all = {0, 0};
    for (int i = 0; i < 500; i++) {
        jzx_mf_txn *txn = mft_begin(mf);
        CHECK_OK(jzx_mf_generation_bump(txn, 3, 1));
        CHECK_OK(jzx_mf_commit_async(txn, on_done, &all));
    }
    CHECK_OK(jzx_mf_close(mf, 0));
    CHECK_EQ(all.calls, 500);
    mf = mft_open(&dir, NULL);
    CHECK_EQ(generation_of_three(mf), 500);
    CHECK_OK(jzx_mf_close(mf, 0));
    mft_dir_remove(&dir);
}

/* Keeps the writer busy until whoever closes the manifest has lost patience, as a slow disk would.
 */
typedef struct slow {
    heard heard;
    jzx_mf *mf;
} slow;

static void on_done_slowly(void *arg, const jzx_mf_receipt *receipt)
{
    slow *self = arg;
    on_done(&self->heard, receipt);
    while (!atomic_load(&self->mf->hurry)) {
        (void)sched_yield();
    }
}

static void test_what_is_not_done_in_time_is_told_closed(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    slow busy = {.mf = mf};
    heard rest = {0, 0};
    jzx_mf_txn *txn = mft_begin(mf);
    CHECK_OK(jzx_mf_sync(txn));
    CHECK_OK(jzx_mf_commit_async(txn, on_done_slowly, &busy));
    while (busy.heard.calls == 0) { /* the next one will be another commit */
        (void)sched_yield();
    }
    for (int i = 0; i < 10; i++) {
        txn = mft_begin(mf);
        CHECK_OK(jzx_mf_generation_bump(txn, 3, 1));
        CHECK_OK(jzx_mf_commit_async(txn, on_done, &rest));
    }
    CHECK_EQ(jzx_mf_close(mf, 1), JZX_ERR_TIMED_OUT);
    CHECK_EQ(rest.calls, 10);
    CHECK_EQ(rest.err, JZX_ERR_CLOSED);
    mf = mft_open(&dir, NULL);
    CHECK_EQ(generation_of_three(mf), 0);
    CHECK_OK(jzx_mf_close(mf, 0));
    mft_dir_remove(&dir);
}

/* A callback that keeps the writer where it is until it is let go. */
typedef struct brake {
    _Atomic bool reached;
    _Atomic bool released;
    _Atomic bool left; /* the writer does not look at it any more */
} brake;

static void on_done_brake(void *arg, const jzx_mf_receipt *receipt)
{
    (void)receipt;
    brake *self = arg;
    atomic_store(&self->reached, true);
    while (!atomic_load(&self->released)) {
        (void)sched_yield();
    }
    atomic_store(&self->left, true);
}

static void send_brake(jzx_mf *mf, brake *self)
{
    jzx_mf_txn *txn = mft_begin(mf);
    CHECK_OK(jzx_mf_generation_bump(txn, 3, 1));
    CHECK_OK(jzx_mf_commit_async(txn, on_done_brake, self));
}

static void *claim_and_give_up(void *arg)
{
    jzx_mf_txn *txn = mft_begin(arg);
    CHECK_OK(jzx_mf_job_claim(txn, &(jzx_mf_claim){.max = 4}));
    CHECK_EQ(jzx_mf_commit(txn, 100, NULL), JZX_ERR_TIMED_OUT);
    return NULL;
}

/* The claim was committed, and its asker gave up before it could be told. */
static void claim_for_nobody(jzx_mf *mf)
{
    brake before = {0};
    brake between = {0};
    send_brake(mf, &before);
    while (!atomic_load(&before.reached)) {
        (void)sched_yield();
    }
    send_brake(mf, &between); /* the next commit: this, and after it the claim */
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, claim_and_give_up, mf), 0);
    jzx_mf_stats stats = {0};
    while (stats.queued < 2) {
        REQUIRE_OK(jzx_mf_stats_read(mf, &stats));
        (void)sched_yield();
    }
    atomic_store(&before.released, true);
    REQUIRE_EQ(pthread_join(thread, NULL), 0);
    atomic_store(&between.released, true);
    while (!atomic_load(&before.left) || !atomic_load(&between.left)) {
        (void)sched_yield();
    }
}

/* Their leases last an hour, and each has one attempt: neither is spent on an answer that reached
 * nobody. On a slow machine the asker may give up too early: then there was no claim. */
static void test_jobs_claimed_for_an_asker_that_gave_up_are_given_back(void)
{
    enum { TRIES = 100 };
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    uint32_t attempt = 1;
    for (uint32_t i = 0; i < TRIES && attempt == 1; i++) {
        const jzx_mf_job_spec spec = {.kind = KIND, .lease_ms = 3600000, .max_attempts = 1};
        for (int k = 0; k < 2; k++) {
            (void)mft_enqueue(mf, &spec);
        }
        claim_for_nobody(mf);
        jzx_mf_receipt *receipt = NULL;
        for (int k = 0; k < 2; k++) { /* the first commit gives back, or is the one after */
            jzx_mf_receipt_free(receipt);
            jzx_mf_txn *txn = mft_begin(mf);
            CHECK_OK(jzx_mf_job_claim(txn, &(jzx_mf_claim){.max = 4, .wait_ms = 5000}));
            REQUIRE_OK(jzx_mf_commit(txn, 0, &receipt));
            if (receipt->job_count > 0) {
                break;
            }
        }
        REQUIRE_EQ(receipt->job_count, 2);
        attempt = receipt->jobs[0].attempt;
        jzx_mf_txn *txn = mft_begin(mf);
        for (uint32_t k = 0; k < 2; k++) {
            jzx_mf_lease lease = jzx_mf_lease_of(&receipt->jobs[k]);
            CHECK_OK(jzx_mf_job_complete(txn, &lease, jzx_mf_text("")));
        }
        CHECK_OK(jzx_mf_commit(txn, 0, NULL));
        jzx_mf_receipt_free(receipt);
    }
    CHECK_EQ(attempt, 2);
    CHECK_OK(jzx_mf_close(mf, 0));
    mft_dir_remove(&dir);
}

/* An actor that commits by ask, and tries what only threads may do. */
typedef struct asker {
    jzx_mf *mf;
    jzx_err blocking;
    jzx_err receipt_err;
    uint64_t slot;
    int replies;
} asker;

static jzx_behavior_result asker_behavior(jzx_context *ctx, const jzx_message *msg)
{
    asker *self = ctx->state;
    if (msg->kind == JZX_KIND_REPLY) {
        CHECK_EQ(msg->tag, 77);
        const jzx_mf_receipt *receipt = msg->data;
        self->receipt_err = receipt->err;
        self->slot = receipt->slots[0].id;
        self->replies++;
        return JZX_BEHAVIOR_STOP;
    }
    jzx_mf_txn *txn = mft_begin(self->mf);
    CHECK_OK(jzx_mf_generation_bump(txn, 3, 1));
    self->blocking = jzx_mf_commit(txn, 0, NULL);
    CHECK_EQ(jzx_mf_generation_wait(self->mf, 3, 1, 0, NULL), JZX_ERR_DEADLOCK);
    CHECK_EQ(jzx_mf_close(self->mf, 0), JZX_ERR_DEADLOCK);
    txn = mft_begin(self->mf);
    CHECK_OK(jzx_mf_generation_bump(txn, 3, 4));
    CHECK_OK(jzx_mf_commit_ask(ctx->loop, txn, 77, 0, NULL, NULL));
    return JZX_BEHAVIOR_OK;
}

static void test_an_actor_commits_by_asking_and_may_not_block(void)
{
    mft_dir dir = mft_dir_make();
    jzx_loop *loop = NULL;
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    jzx_mf *mf = mft_open(&dir, &(jzx_mf_opts){.loop = loop});
    asker self = {.mf = mf};
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn(loop, &(jzx_spawn_opts){.behavior = asker_behavior, .state = &self}, &id));
    CHECK_OK(jzx_send_u64(loop, id, 0, 1));
    while (self.replies == 0) {
        REQUIRE_OK(jzx_loop_step(loop, 1000000));
    }
    CHECK_EQ(self.blocking, JZX_ERR_DEADLOCK);
    CHECK_EQ(self.receipt_err, JZX_OK);
    CHECK_EQ(self.slot, 4);
    CHECK_OK(jzx_mf_close(mf, 0));
    CHECK_OK(jzx_loop_destroy(loop));
    mft_dir_remove(&dir);
}

static void test_job_ids_are_known_before_the_commit_and_never_come_again(void)
{
    mft_dir dir = mft_dir_make();
    uint64_t last = 0;
    for (int boot = 0; boot < 3; boot++) {
        jzx_mf *mf = mft_open(&dir, NULL);
        for (int i = 0; i < 20; i++) {
            jzx_mf_txn *txn = mft_begin(mf);
            uint64_t id = 0;
            CHECK_OK(jzx_mf_job_enqueue(txn, &(jzx_mf_job_spec){.kind = KIND, .unique = JZX_MF_ANY},
                                        &id));
            CHECK(id > last);
            last = id;
            if (i % 2 == 0) {
                CHECK_OK(jzx_mf_commit(txn, 0, NULL));
            } else {
                jzx_mf_abort(txn);
            }
        }
        CHECK_OK(jzx_mf_close(mf, 0));
    }
    mft_dir_remove(&dir);
}

static void test_a_job_can_come_after_another_one_of_the_same_transaction(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    jzx_mf_txn *txn = mft_begin(mf);
    uint64_t first = 0;
    CHECK_OK(jzx_mf_job_enqueue(txn, &(jzx_mf_job_spec){.kind = 1}, &first));
    CHECK_OK(jzx_mf_job_enqueue(
        txn, &(jzx_mf_job_spec){.kind = 2, .after = &first, .after_count = 1}, NULL));
    CHECK_OK(jzx_mf_commit(txn, 0, NULL));
    txn = mft_begin(mf);
    CHECK_OK(jzx_mf_job_claim(txn, &(jzx_mf_claim){.max = 10}));
    jzx_mf_receipt *receipt = NULL;
    REQUIRE_OK(jzx_mf_commit(txn, 0, &receipt));
    REQUIRE_EQ(receipt->job_count, 1);
    CHECK_EQ(receipt->jobs[0].id, first);
    jzx_mf_receipt_free(receipt);
    CHECK_OK(jzx_mf_close(mf, 0));
    mft_dir_remove(&dir);
}

int main(int argc, char **argv)
{
    static const jzt_test tests[] = {
        {"a_commit_gives_a_receipt_with_a_slot_for_each_operation",
         test_a_commit_gives_a_receipt_with_a_slot_for_each_operation},
        {"a_receipt_tells_new_jobs_from_those_that_were_met",
         test_a_receipt_tells_new_jobs_from_those_that_were_met},
        {"a_refused_operation_undoes_those_before_it",
         test_a_refused_operation_undoes_those_before_it},
        {"an_operation_that_is_refused_at_once_was_not_added",
         test_an_operation_that_is_refused_at_once_was_not_added},
        {"a_condition_that_does_not_hold_is_a_conflict",
         test_a_condition_that_does_not_hold_is_a_conflict},
        {"a_callback_comes_exactly_once", test_a_callback_comes_exactly_once},
        {"errors_of_one_request_are_nobody_elses_in_the_same_commit",
         test_errors_of_one_request_are_nobody_elses_in_the_same_commit},
        {"a_closing_manifest_does_what_it_accepted", test_a_closing_manifest_does_what_it_accepted},
        {"what_is_not_done_in_time_is_told_closed", test_what_is_not_done_in_time_is_told_closed},
        {"jobs_claimed_for_an_asker_that_gave_up_are_given_back",
         test_jobs_claimed_for_an_asker_that_gave_up_are_given_back},
        {"an_actor_commits_by_asking_and_may_not_block",
         test_an_actor_commits_by_asking_and_may_not_block},
        {"job_ids_are_known_before_the_commit_and_never_come_again",
         test_job_ids_are_known_before_the_commit_and_never_come_again},
        {"a_job_can_come_after_another_one_of_the_same_transaction",
         test_a_job_can_come_after_another_one_of_the_same_transaction},
    };
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
