/* Goal: what the writer does by itself happens when it is due and not before: jobs become ready,
 * leases end, claims wait and give up, finished jobs are forgotten; nothing wakes an idle writer.
 * Method: the writer on a simulated loop, in virtual time; the system's clock is the test's. */
#include "mf_fixture.h"

#include <jzx/testkit.h>

#define KIND 5u
#define SECOND 1000u

typedef struct world {
    mft_dir dir;
    jzx_kit *kit;
    jzx_mf *mf;
    int64_t wall_shift_ms; /* somebody set the system's clock */
} world;

static uint64_t wall_ms(void *arg)
{
    const world *self = arg;
    uint64_t now = 1700000000000u;
    if (self->kit != NULL) {
        now += jzx_loop_now(self->kit->loop) / 1000000u;
    }
    return (uint64_t)((int64_t)now + self->wall_shift_ms);
}

static void world_open_with(world *self, const jzx_mf_opts *given)
{
    self->dir = mft_dir_make();
    REQUIRE_OK(jzx_kit_open(NULL, &self->kit));
    jzx_mf_opts opts = *given;
    opts.loop = self->kit->loop;
    opts.wall_ms = wall_ms;
    opts.wall_arg = self;
    self->mf = mft_open(&self->dir, &opts);
}

static void world_open(world *self)
{
    world_open_with(self, &(jzx_mf_opts){0});
}

static void world_close(world *self)
{
    CHECK_OK(jzx_mf_close(self->mf, 0));
    CHECK(jzx_kit_close(self->kit) == NULL);
    mft_dir_remove(&self->dir);
}

/* What a request came back with. */
typedef struct answer {
    int calls;
    jzx_err err;
    uint32_t jobs;
    uint32_t cancel;
    jzx_mf_lease lease;
    uint32_t attempt;
} answer;

static void on_answer(void *arg, const jzx_mf_receipt *receipt)
{
    answer *what = arg;
    what->calls++;
    what->err = receipt->err;
    what->jobs = receipt->job_count;
    if (receipt->slot_count > 0) {
        what->cancel = receipt->slots[0].outcome;
    }
    if (receipt->job_count > 0) {
        what->lease = jzx_mf_lease_of(&receipt->jobs[0]);
        what->attempt = receipt->jobs[0].attempt;
    }
}

static void run(world *self, uint64_t ms)
{
    REQUIRE_OK(jzx_kit_run(self->kit, ms));
}

static void enqueue(world *self, const jzx_mf_job_spec *spec)
{
    answer what = {0};
    jzx_mf_txn *txn = mft_begin(self->mf);
    CHECK_OK(jzx_mf_job_enqueue(txn, spec, NULL));
    CHECK_OK(jzx_mf_commit_async(txn, on_answer, &what));
    run(self, 0);
    run(self, 1);
    REQUIRE_EQ(what.calls, 1);
    CHECK_OK(what.err);
}

static void send_claim(world *self, uint32_t wait_ms, answer *what)
{
    jzx_mf_txn *txn = mft_begin(self->mf);
    CHECK_OK(jzx_mf_job_claim(txn, &(jzx_mf_claim){.max = 4, .wait_ms = wait_ms}));
    CHECK_OK(jzx_mf_commit_async(txn, on_answer, what));
}

static void claim(world *self, answer *what)
{
    *what = (answer){0};
    send_claim(self, 0, what);
    run(self, 1);
    REQUIRE_EQ(what->calls, 1);
}

static void test_a_scheduled_job_is_given_out_at_its_time_to_a_claim_that_waits(void)
{
    world self = {0};
    world_open(&self);
    enqueue(&self, &(jzx_mf_job_spec){.kind = KIND, .delay_ms = 10 * SECOND});
    answer what = {0};
    send_claim(&self, 60 * SECOND, &what);
    run(&self, 9 * SECOND);
    CHECK_EQ(what.calls, 0);
    run(&self, 2 * SECOND);
    CHECK_EQ(what.calls, 1);
    CHECK_EQ(what.jobs, 1);
    world_close(&self);
}

static void test_a_claim_that_waits_in_vain_is_answered_without_a_job(void)
{
    world self = {0};
    world_open(&self);
    answer what = {0};
    send_claim(&self, 5 * SECOND, &what);
    run(&self, 4 * SECOND);
    CHECK_EQ(what.calls, 0);
    jzx_mf_stats stats;
    CHECK_OK(jzx_mf_stats_read(self.mf, &stats));
    CHECK_EQ(stats.claims_waiting, 1);
    run(&self, 2 * SECOND);
    CHECK_EQ(what.calls, 1);
    CHECK_OK(what.err);
    CHECK_EQ(what.jobs, 0);
    world_close(&self);
}

static void test_a_claim_that_waits_gets_a_job_as_soon_as_there_is_one(void)
{
    world self = {0};
    world_open(&self);
    answer first = {0};
    answer second = {0};
    send_claim(&self, 60 * SECOND, &first);
    send_claim(&self, 60 * SECOND, &second);
    run(&self, SECOND);
    enqueue(&self, &(jzx_mf_job_spec){.kind = KIND});
    CHECK_EQ(first.jobs, 1);
    CHECK_EQ(second.calls, 0);
    world_close(&self);
    CHECK_EQ(second.calls, 1);
    CHECK_EQ(second.err, JZX_ERR_CLOSED);
}

static void test_a_claim_and_the_job_for_it_may_come_in_one_commit(void)
{
    world self = {0};
    world_open(&self);
    answer waiting = {0};
    answer queued = {0};
    send_claim(&self, 60 * SECOND, &waiting);
    jzx_mf_txn *txn = mft_begin(self.mf);
    CHECK_OK(jzx_mf_job_enqueue(txn, &(jzx_mf_job_spec){.kind = KIND}, NULL));
    CHECK_OK(jzx_mf_commit_async(txn, on_answer, &queued));
    run(&self, 10);
    CHECK_EQ(queued.calls, 1);
    CHECK_EQ(waiting.jobs, 1);
    world_close(&self);
}

static void test_a_lease_that_nobody_keeps_alive_ends_and_its_holder_is_fenced(void)
{
    world self = {0};
    world_open(&self);
    enqueue(&self, &(jzx_mf_job_spec){.kind = KIND, .lease_ms = 30 * SECOND});
    answer held;
    claim(&self, &held);
    REQUIRE_EQ(held.jobs, 1);
    run(&self, 29 * SECOND);
    answer none;
    claim(&self, &none);
    CHECK_EQ(none.jobs, 0);
    run(&self, 10 * SECOND); /* the lease, then the backoff */
    answer next;
    claim(&self, &next);
    CHECK_EQ(next.jobs, 1);
    CHECK_EQ(next.attempt, 2);
    answer late = {0};
    jzx_mf_txn *txn = mft_begin(self.mf);
    CHECK_OK(jzx_mf_job_complete(txn, &held.lease, jzx_mf_text("late")));
    CHECK_OK(jzx_mf_commit_async(txn, on_answer, &late));
    run(&self, 1);
    CHECK_EQ(late.err, JZX_ERR_FENCED);
    jzx_mf_stats stats;
    CHECK_OK(jzx_mf_stats_read(self.mf, &stats));
    CHECK_EQ(stats.leases_expired, 1);
    world_close(&self);
}

static void test_heartbeats_keep_a_lease_whatever_the_systems_clock_does(void)
{
    world self = {0};
    world_open(&self);
    enqueue(&self, &(jzx_mf_job_spec){.kind = KIND, .lease_ms = 10 * SECOND});
    answer held;
    claim(&self, &held);
    for (int i = 0; i < 20; i++) {
        self.wall_shift_ms += i % 2 == 0 ? 3600 * 1000 : -7200 * 1000;
        run(&self, 8 * SECOND);
        answer beat = {0};
        jzx_mf_txn *txn = mft_begin(self.mf);
        CHECK_OK(jzx_mf_job_heartbeat(txn, &held.lease, 0, (uint64_t)i, 20, jzx_mf_text("")));
        CHECK_OK(jzx_mf_commit_async(txn, on_answer, &beat));
        run(&self, 1);
        CHECK_OK(beat.err);
        CHECK_EQ(beat.cancel, 0);
    }
    jzx_mf_stats stats;
    CHECK_OK(jzx_mf_stats_read(self.mf, &stats));
    CHECK_EQ(stats.leases_expired, 0);
    world_close(&self);
}

static void test_a_scheduled_job_follows_a_clock_that_is_set_ahead_within_a_minute(void)
{
    world self = {0};
    world_open(&self);
    enqueue(&self, &(jzx_mf_job_spec){.kind = KIND, .delay_ms = 3600 * SECOND});
    self.wall_shift_ms += 3600 * 1000;
    answer what = {0};
    send_claim(&self, 120 * SECOND, &what);
    run(&self, 61 * SECOND);
    CHECK_EQ(what.jobs, 1);
    world_close(&self);
}

static void test_finished_jobs_are_forgotten_when_their_time_is_over(void)
{
    world self = {0};
    world_open_with(&self, &(jzx_mf_opts){.retention = {.done_ms = 60 * SECOND, .prune_max = 2}});
    for (int i = 0; i < 5; i++) {
        enqueue(&self, &(jzx_mf_job_spec){.kind = KIND, .unique = JZX_MF_ANY});
        answer held;
        claim(&self, &held);
        answer done = {0};
        jzx_mf_txn *txn = mft_begin(self.mf);
        CHECK_OK(jzx_mf_job_complete(txn, &held.lease, jzx_mf_text("")));
        CHECK_OK(jzx_mf_commit_async(txn, on_answer, &done));
        run(&self, 1);
        CHECK_OK(done.err);
    }
    jzx_mf_stats stats;
    CHECK_OK(jzx_mf_stats_read(self.mf, &stats));
    CHECK_EQ(stats.entries[JZX_MF_TABLE_JOB], 5);
    run(&self, 130 * SECOND);
    CHECK_OK(jzx_mf_stats_read(self.mf, &stats));
    CHECK_EQ(stats.entries[JZX_MF_TABLE_JOB], 0);
    CHECK_EQ(stats.entries[JZX_MF_TABLE_FINISHED], 0);
    CHECK_EQ(stats.pruned, 5);
    world_close(&self);
}

static void test_a_cron_entry_makes_a_job_each_time_it_is_due(void)
{
    world self = {0};
    world_open(&self);
    answer put = {0};
    jzx_mf_txn *txn = mft_begin(self.mf);
    const jzx_mf_cron cron = {.name = jzx_mf_text("sweep"),
                              .schedule = jzx_mf_text("@every 60s"),
                              .kind = KIND,
                              .unique = JZX_MF_ANY};
    CHECK_OK(jzx_mf_cron_put(txn, &cron));
    CHECK_OK(jzx_mf_commit_async(txn, on_answer, &put));
    run(&self, 301 * SECOND);
    CHECK_OK(put.err);
    jzx_mf_stats stats;
    CHECK_OK(jzx_mf_stats_read(self.mf, &stats));
    CHECK_EQ(stats.entries[JZX_MF_TABLE_READY], 5);
    /* Their ids are nobody else's. */
    for (int i = 0; i < 5000; i++) {
        txn = mft_begin(self.mf);
        CHECK_OK(
            jzx_mf_job_enqueue(txn, &(jzx_mf_job_spec){.kind = 1, .unique = JZX_MF_ANY}, NULL));
        CHECK_OK(jzx_mf_commit_async(txn, on_answer, &put));
        if (i % 500 == 499) {
            run(&self, SECOND);
        }
    }
    CHECK_OK(jzx_mf_stats_read(self.mf, &stats));
    CHECK_EQ(stats.entries[JZX_MF_TABLE_JOB], 5005);
    world_close(&self);
}

/* An actor that asks for a job, waits, and is gone when there is one. */
static jzx_behavior_result fickle_behavior(jzx_context *ctx, const jzx_message *msg)
{
    world *self = ctx->state;
    if (msg->kind == JZX_KIND_USER) {
        jzx_mf_txn *txn = mft_begin(self->mf);
        CHECK_OK(jzx_mf_job_claim(txn, &(jzx_mf_claim){.wait_ms = 3600 * SECOND}));
        CHECK_OK(jzx_mf_commit_ask(ctx->loop, txn, 1, 10 * SECOND, NULL, NULL));
        return JZX_BEHAVIOR_OK;
    }
    return JZX_BEHAVIOR_STOP; /* it timed out */
}

static void test_a_claim_whose_asker_is_gone_takes_no_job(void)
{
    world self = {0};
    world_open(&self);
    jzx_actor_id id = JZX_NOBODY;
    const jzx_spawn_opts spawn = {.behavior = fickle_behavior, .state = &self};
    REQUIRE_OK(jzx_spawn(self.kit->loop, &spawn, &id));
    CHECK_OK(jzx_send_u64(self.kit->loop, id, 0, 1));
    run(&self, 20 * SECOND);
    enqueue(&self, &(jzx_mf_job_spec){.kind = KIND});
    answer what;
    claim(&self, &what);
    CHECK_EQ(what.jobs, 1);
    CHECK_EQ(what.attempt, 1);
    world_close(&self);
}

static void test_leases_of_an_older_boot_are_settled_when_it_is_opened(void)
{
    world self = {0};
    world_open(&self);
    enqueue(&self, &(jzx_mf_job_spec){.kind = KIND, .max_attempts = 2});
    for (uint32_t boot = 1; boot <= 2; boot++) {
        answer held;
        claim(&self, &held);
        REQUIRE_EQ(held.jobs, 1);
        CHECK_EQ(held.attempt, boot);
        CHECK_OK(jzx_mf_close(self.mf, 0));
        jzx_mf_recovery report;
        const jzx_mf_opts opts = {.loop = self.kit->loop, .wall_ms = wall_ms, .wall_arg = &self};
        REQUIRE_OK(jzx_mf_open(self.dir.file, &opts, &self.mf, &report));
        CHECK_EQ(report.boot, boot + 1);
        CHECK_EQ(report.orphans, 1);
        CHECK_EQ(report.requeued, boot == 1 ? 1 : 0);
        CHECK_EQ(report.died, boot == 2 ? 1 : 0);
        CHECK_EQ(report.clean, 1);
    }
    answer none;
    claim(&self, &none);
    CHECK_EQ(none.jobs, 0);
    world_close(&self);
}

static void test_a_writer_with_nothing_due_has_no_timer(void)
{
    world self = {0};
    world_open(&self);
    enqueue(&self, &(jzx_mf_job_spec){.kind = KIND});
    CHECK_OK(jzx_kit_settle(self.kit)); /* which waits for every timer */
    CHECK_EQ(jzx_loop_deadline(self.kit->loop), JZX_TIMEOUT_INFINITE);
    world_close(&self);
}

int main(int argc, char **argv)
{
    static const jzt_test tests[] = {
        {"a_scheduled_job_is_given_out_at_its_time_to_a_claim_that_waits",
         test_a_scheduled_job_is_given_out_at_its_time_to_a_claim_that_waits},
        {"a_claim_that_waits_in_vain_is_answered_without_a_job",
         test_a_claim_that_waits_in_vain_is_answered_without_a_job},
        {"a_claim_that_waits_gets_a_job_as_soon_as_there_is_one",
         test_a_claim_that_waits_gets_a_job_as_soon_as_there_is_one},
        {"a_claim_and_the_job_for_it_may_come_in_one_commit",
         test_a_claim_and_the_job_for_it_may_come_in_one_commit},
        {"a_lease_that_nobody_keeps_alive_ends_and_its_holder_is_fenced",
         test_a_lease_that_nobody_keeps_alive_ends_and_its_holder_is_fenced},
        {"heartbeats_keep_a_lease_whatever_the_systems_clock_does",
         test_heartbeats_keep_a_lease_whatever_the_systems_clock_does},
        {"a_scheduled_job_follows_a_clock_that_is_set_ahead_within_a_minute",
         test_a_scheduled_job_follows_a_clock_that_is_set_ahead_within_a_minute},
        {"finished_jobs_are_forgotten_when_their_time_is_over",
         test_finished_jobs_are_forgotten_when_their_time_is_over},
        {"a_cron_entry_makes_a_job_each_time_it_is_due",
         test_a_cron_entry_makes_a_job_each_time_it_is_due},
        {"a_claim_whose_asker_is_gone_takes_no_job", test_a_claim_whose_asker_is_gone_takes_no_job},
        {"leases_of_an_older_boot_are_settled_when_it_is_opened",
         test_leases_of_an_older_boot_are_settled_when_it_is_opened},
        {"a_writer_with_nothing_due_has_no_timer", test_a_writer_with_nothing_due_has_no_timer},
    };
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
