/* Goal: a failure leads to another attempt or an end; what is cancelled or dead may be tried again.
 * Method: one fact per test on a file of its own; after each the invariants are walked. */
#include "queue_lease_kit.h"

static void test_a_failure_is_remembered_and_tried_again_after_its_backoff(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .jitter_percent = JZX_MF_NO_JITTER, .backoff_max_ms = 3000};
    uint64_t id = kit_new(&k, &spec);
    static const uint64_t delays[] = {1000, 2000, 3000, 3000};
    for (int i = 0; i < 4; i++) {
        jzx_mf_lease lease = kit_claim_lease(&k, id);
        CHECK_OK(kit_fail(&k, &lease, 0));
        jzx_mf_job job = kit_job(&k, id);
        CHECK_EQ(job.state, JZX_MF_JOB_SCHEDULED);
        CHECK_EQ(job.run_at_ms, k.tx.now_ms + delays[i]);
        CHECK_EQ(job.error_code, -7);
        CHECK_EQ(job.error_ms, k.tx.now_ms);
        check_text(job.error, "broken");
        kit_pass(&k, delays[i] - 1);
        CHECK_EQ(kit_do(&k, mfi_queue_promote, 10), 0);
        kit_pass(&k, 1);
        CHECK_EQ(kit_do(&k, mfi_queue_promote, 10), 1);
    }
    finish(&k);
}

static void test_backoff_has_its_jitter_and_is_always_the_same(void)
{
    jzx_mf_job job = {.backoff_min_ms = 1000, .backoff_max_ms = 60000, .jitter_percent = 10};
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    for (job.id = 1; job.id < 500; job.id++) {
        job.attempt = 3;
        uint64_t delay = mfi_backoff_ms(&job);
        CHECK_EQ(delay, mfi_backoff_ms(&job));
        CHECK(delay >= 3600 && delay <= 4400);
        low = delay < low ? delay : low;
        high = delay > high ? delay : high;
    }
    CHECK(low < 3640 && high > 4360); /* all of it is used */
    job = (jzx_mf_job){.id = 1,
                       .attempt = UINT32_MAX - 1,
                       .backoff_min_ms = UINT32_MAX,
                       .backoff_max_ms = UINT32_MAX,
                       .jitter_percent = 100};
    CHECK(mfi_backoff_ms(&job) <= 2ull * UINT32_MAX);
    job.backoff_min_ms = 1;
    CHECK(mfi_backoff_ms(&job) <= 2ull * UINT32_MAX);
    job.backoff_min_ms = 500;
    job.backoff_max_ms = 100;
    job.jitter_percent = 0;
    CHECK_EQ(mfi_backoff_ms(&job), 100);
}

static void test_backoff_grows_with_the_attempts_that_count_in_this_life(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .jitter_percent = JZX_MF_NO_JITTER, .max_attempts = 2};
    uint64_t id = kit_new(&k, &spec);
    for (int i = 0; i < 5; i++) {
        jzx_mf_lease snooze = kit_claim_lease(&k, id);
        CHECK_OK(kit_fail(&k, &snooze, JZX_MF_FAIL_UNCOUNTED));
        CHECK_EQ(kit_job(&k, id).run_at_ms, k.tx.now_ms + 1000);
        kit_pass(&k, 1000);
        CHECK_EQ(kit_do(&k, mfi_queue_promote, 1), 1);
    }
    for (int life = 0; life < 3; life++) {
        jzx_mf_lease lease = kit_claim_lease(&k, id);
        CHECK_OK(kit_fail(&k, &lease, 0));
        CHECK_EQ(kit_job(&k, id).run_at_ms, k.tx.now_ms + 1000);
        kit_pass(&k, 1000);
        CHECK_EQ(kit_do(&k, mfi_queue_promote, 1), 1);
        lease = kit_claim_lease(&k, id);
        CHECK_OK(kit_fail(&k, &lease, 0));
        CHECK_OK(IN_CHILD(&k, mfi_job_retry(&k.tx, id)));
    }
    finish(&k);
}

static void test_a_failure_may_choose_its_delay(void)
{
    kit k;
    kit_open(&k);
    uint64_t id = kit_new(&k, &plain);
    jzx_mf_lease lease = kit_claim_lease(&k, id);
    jzx_mf_failure failure = {.delay_ms = 12345};
    CHECK_OK(IN_CHILD(&k, mfi_job_fail(&k.tx, &lease, &failure)));
    CHECK_EQ(kit_job(&k, id).run_at_ms, KIT_START + 12345);
    kit_pass(&k, 12345);
    CHECK_EQ(kit_do(&k, mfi_queue_promote, 1), 1);
    lease = kit_claim_lease(&k, id);
    failure.flags = JZX_MF_FAIL_NOW;
    CHECK_OK(IN_CHILD(&k, mfi_job_fail(&k.tx, &lease, &failure)));
    CHECK_EQ(kit_state(&k, id), JZX_MF_JOB_READY);
    lease = kit_claim_lease(&k, id);
    failure = (jzx_mf_failure){.delay_ms = UINT64_MAX};
    CHECK_OK(IN_CHILD(&k, mfi_job_fail(&k.tx, &lease, &failure)));
    CHECK_EQ(kit_job(&k, id).run_at_ms == UINT64_MAX, 1);
    finish(&k);
}

static void test_a_job_dies_when_its_attempts_are_used_up(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .max_attempts = 2};
    uint64_t id = kit_new(&k, &spec);
    jzx_mf_lease lease = kit_claim_lease(&k, id);
    CHECK_OK(kit_fail(&k, &lease, JZX_MF_FAIL_NOW));
    lease = kit_claim_lease(&k, id);
    CHECK_OK(kit_fail(&k, &lease, JZX_MF_FAIL_NOW));
    CHECK_EQ(kit_state(&k, id), JZX_MF_JOB_DEAD);
    finish(&k);
}

static void test_without_a_limit_it_is_tried_for_ever(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .max_attempts = JZX_MF_NO_LIMIT};
    uint64_t id = kit_new(&k, &spec);
    for (int i = 0; i < 100; i++) {
        jzx_mf_lease lease = kit_claim_lease(&k, id);
        CHECK_OK(kit_fail(&k, &lease, JZX_MF_FAIL_NOW | (i % 2 ? JZX_MF_FAIL_UNCOUNTED : 0)));
    }
    CHECK_EQ(kit_job(&k, id).max_attempts, JZX_MF_NO_LIMIT);
    finish(&k);
}

static void test_for_good_is_dead_at_once(void)
{
    kit k;
    kit_open(&k);
    uint64_t id = kit_new(&k, &plain);
    jzx_mf_lease lease = kit_claim_lease(&k, id);
    CHECK_OK(kit_fail(&k, &lease, JZX_MF_FAIL_FOR_GOOD | JZX_MF_FAIL_UNCOUNTED));
    CHECK_EQ(kit_state(&k, id), JZX_MF_JOB_DEAD);
    finish(&k);
}

static void test_an_attempt_that_does_not_count_is_given_back(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .max_attempts = 2};
    uint64_t id = kit_new(&k, &spec);
    uint32_t attempt = 0;
    for (int i = 0; i < 10; i++) {
        jzx_mf_lease lease = kit_claim_lease(&k, id);
        CHECK_EQ(lease.attempt, ++attempt); /* no two leases are the same */
        CHECK_OK(kit_fail(&k, &lease, JZX_MF_FAIL_NOW | JZX_MF_FAIL_UNCOUNTED));
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(kit_state(&k, id), JZX_MF_JOB_READY);
        jzx_mf_lease lease = kit_claim_lease(&k, id);
        CHECK_OK(kit_fail(&k, &lease, JZX_MF_FAIL_NOW));
    }
    CHECK_EQ(kit_state(&k, id), JZX_MF_JOB_DEAD);
    finish(&k);
}

/* A job runs, another one takes its place in the queue, then the first one fails. */
static void collide(kit *k, uint8_t on_retry, uint64_t *first, uint64_t *second)
{
    jzx_mf_job_spec spec = {.kind = 1, .unique = JZX_MF_STATELY, .on_retry = on_retry};
    *first = kit_new(k, &spec);
    jzx_mf_lease lease = kit_claim_lease(k, *first);
    *second = kit_new(k, &spec);
    CHECK_EQ(kit_claim_one(k), 0); /* so it is BLOCKED */
    CHECK_OK(kit_fail(k, &lease, JZX_MF_FAIL_NOW));
}

static void test_coalesce_keeps_the_queued_one(void)
{
    kit k;
    kit_open(&k);
    uint64_t first, second;
    collide(&k, JZX_MF_COALESCE, &first, &second);
    CHECK_EQ(kit_state(&k, first), JZX_MF_JOB_SUPERSEDED);
    CHECK_EQ(kit_claim_one(&k), second);
    finish(&k);
}

static void test_keep_old_keeps_the_one_that_ran(void)
{
    kit k;
    kit_open(&k);
    uint64_t first, second;
    collide(&k, JZX_MF_KEEP_OLD, &first, &second);
    CHECK_EQ(kit_state(&k, second), JZX_MF_JOB_SUPERSEDED);
    jzx_mf_slot slot;
    CHECK_OK(kit_enqueue(&k, &plain, &slot));
    CHECK_EQ(slot.id, first);
    CHECK_EQ(kit_claim_one(&k), first);
    finish(&k);
}

static void test_both_keeps_both(void)
{
    kit k;
    kit_open(&k);
    uint64_t first, second;
    collide(&k, JZX_MF_BOTH, &first, &second);
    CHECK_EQ(kit_state(&k, first), JZX_MF_JOB_READY);
    CHECK_EQ(kit_state(&k, second), JZX_MF_JOB_READY);
    jzx_mf_lease lease = kit_claim_lease(&k, first);
    CHECK_EQ(kit_claim_one(&k), 0);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(kit_claim_one(&k), second);
    finish(&k);
}

static void test_a_queued_job_is_cancelled_at_once(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec later = {.kind = 2, .delay_ms = 100};
    uint64_t ready = kit_new(&k, &plain);
    uint64_t scheduled = kit_new(&k, &later);
    CHECK_OK(IN_CHILD(&k, mfi_job_cancel(&k.tx, ready)));
    CHECK_OK(IN_CHILD(&k, mfi_job_cancel(&k.tx, scheduled)));
    CHECK_EQ(kit_state(&k, ready), JZX_MF_JOB_CANCELLED);
    CHECK_EQ(kit_state(&k, scheduled), JZX_MF_JOB_CANCELLED);
    CHECK_EQ(kit_claim_one(&k), 0);
    CHECK_EQ(IN_CHILD(&k, mfi_job_cancel(&k.tx, ready)), JZX_ERR_WRONG_STATE);
    CHECK_EQ(IN_CHILD(&k, mfi_job_cancel(&k.tx, 99)), JZX_ERR_NOT_FOUND);
    kit_new(&k, &plain); /* its place is free */
    finish(&k);
}

static void test_the_worker_of_an_active_job_hears_of_the_cancel(void)
{
    kit k;
    kit_open(&k);
    uint64_t id = kit_new(&k, &plain);
    jzx_mf_lease lease = kit_claim_lease(&k, id);
    CHECK(!beat(&k, &lease, 0));
    CHECK_OK(IN_CHILD(&k, mfi_job_cancel(&k.tx, id)));
    CHECK_OK(IN_CHILD(&k, mfi_job_cancel(&k.tx, id))); /* twice is once */
    CHECK_EQ(kit_state(&k, id), JZX_MF_JOB_ACTIVE);
    CHECK(beat(&k, &lease, 0));
    CHECK_OK(kit_fail(&k, &lease, JZX_MF_FAIL_NOW));
    CHECK_EQ(kit_state(&k, id), JZX_MF_JOB_CANCELLED); /* not tried again */
    finish(&k);
}

static void test_a_cancelled_job_may_still_complete(void)
{
    kit k;
    kit_open(&k);
    uint64_t id = kit_new(&k, &plain);
    jzx_mf_lease lease = kit_claim_lease(&k, id);
    CHECK_OK(IN_CHILD(&k, mfi_job_cancel(&k.tx, id)));
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(kit_state(&k, id), JZX_MF_JOB_DONE);
    finish(&k);
}

static void test_a_cancelled_job_does_not_outlive_its_process(void)
{
    kit k;
    kit_open(&k);
    uint64_t id = kit_new(&k, &plain);
    kit_claim_lease(&k, id);
    CHECK_OK(IN_CHILD(&k, mfi_job_cancel(&k.tx, id)));
    mfi_orphans orphans = kit_boot(&k);
    CHECK_EQ(orphans.found, 1);
    CHECK_EQ(orphans.requeued, 0);
    CHECK_EQ(kit_state(&k, id), JZX_MF_JOB_CANCELLED);
    finish(&k);
}

static void test_every_life_has_the_attempts_of_the_spec(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .max_attempts = 3};
    uint64_t id = kit_new(&k, &spec);
    uint32_t attempt = 0;
    for (int life = 0; life < 4; life++) {
        for (int i = 0; i < 3; i++) {
            jzx_mf_lease lease = kit_claim_lease(&k, id);
            CHECK_EQ(lease.attempt, ++attempt);
            CHECK_OK(kit_fail(&k, &lease, JZX_MF_FAIL_NOW));
        }
        CHECK_EQ(kit_state(&k, id), JZX_MF_JOB_DEAD);
        CHECK_OK(IN_CHILD(&k, mfi_job_retry(&k.tx, id)));
        CHECK_EQ(kit_job(&k, id).finished_ms, 0);
    }
    finish(&k);
}

static void test_retry_is_for_the_dead_and_the_cancelled(void)
{
    kit k;
    kit_open(&k);
    uint64_t id = kit_new(&k, &plain);
    CHECK_EQ(IN_CHILD(&k, mfi_job_retry(&k.tx, id)), JZX_ERR_WRONG_STATE);
    CHECK_EQ(IN_CHILD(&k, mfi_job_retry(&k.tx, 99)), JZX_ERR_NOT_FOUND);
    CHECK_OK(IN_CHILD(&k, mfi_job_cancel(&k.tx, id)));
    uint64_t second = kit_new(&k, &plain);
    CHECK_EQ(IN_CHILD(&k, mfi_job_retry(&k.tx, id)), JZX_ERR_ALREADY);
    jzx_mf_lease lease = kit_claim_lease(&k, second);
    CHECK_OK(IN_CHILD(&k, mfi_job_retry(&k.tx, id)));
    CHECK_EQ(kit_state(&k, id), JZX_MF_JOB_READY);
    CHECK_EQ(kit_job(&k, id).cancel, 0);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(IN_CHILD(&k, mfi_job_retry(&k.tx, second)), JZX_ERR_WRONG_STATE);
    finish(&k);
}

static void test_an_exclusive_job_is_not_retried_beside_an_active_one(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .unique = JZX_MF_EXCLUSIVE};
    uint64_t id = kit_new(&k, &spec);
    CHECK_OK(IN_CHILD(&k, mfi_job_cancel(&k.tx, id)));
    kit_claim_lease(&k, kit_new(&k, &spec));
    CHECK_EQ(IN_CHILD(&k, mfi_job_retry(&k.tx, id)), JZX_ERR_ALREADY);
    finish(&k);
}

/* Wherever in an operation the file turns out to be full: nothing of it is left. */
static void test_a_full_file_refuses_and_leaves_everything_as_it_was(void)
{
    enum { MAP = 1 << 20 };
    static uint8_t much[20000];
    kit k;
    kit_open_sized(&k, MAP);
    jzx_mf_job_spec spec = {.kind = 1, .unique = JZX_MF_SINGLETON, .payload = {much, sizeof much}};
    jzx_mf_slot slot;
    jzx_err err;
    while ((err = kit_enqueue(&k, &spec, &slot)) == JZX_OK) {
    }
    CHECK_EQ(err, JZX_ERR_MAP_FULL);
    uint64_t jobs = mfi_entries(&k.tx.view, JZX_MF_TABLE_JOB);
    REQUIRE(jobs > 3);
    /* A claim that puts all others aside needs more room than there is: it fails as a whole. */
    jzx_mf_claim claim = {.max = 100};
    uint32_t count = 0;
    k.claimed_count = 0;
    err = IN_CHILD(&k, mfi_job_claim(&k.tx, &claim, kit_add_claimed, &k, &count));
    CHECK(err == JZX_OK || err == JZX_ERR_MAP_FULL);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_JOB), jobs);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_READY), err == JZX_OK ? 0 : jobs);
    kit_check(&k);
    kit_close(&k);
}

static const jzt_test tests[] = {
    {"a_failure_is_remembered_and_tried_again_after_its_backoff",
     test_a_failure_is_remembered_and_tried_again_after_its_backoff},
    {"backoff_has_its_jitter_and_is_always_the_same",
     test_backoff_has_its_jitter_and_is_always_the_same},
    {"backoff_grows_with_the_attempts_that_count_in_this_life",
     test_backoff_grows_with_the_attempts_that_count_in_this_life},
    {"a_failure_may_choose_its_delay", test_a_failure_may_choose_its_delay},
    {"a_job_dies_when_its_attempts_are_used_up", test_a_job_dies_when_its_attempts_are_used_up},
    {"without_a_limit_it_is_tried_for_ever", test_without_a_limit_it_is_tried_for_ever},
    {"for_good_is_dead_at_once", test_for_good_is_dead_at_once},
    {"an_attempt_that_does_not_count_is_given_back",
     test_an_attempt_that_does_not_count_is_given_back},
    {"coalesce_keeps_the_queued_one", test_coalesce_keeps_the_queued_one},
    {"keep_old_keeps_the_one_that_ran", test_keep_old_keeps_the_one_that_ran},
    {"both_keeps_both", test_both_keeps_both},
    {"a_queued_job_is_cancelled_at_once", test_a_queued_job_is_cancelled_at_once},
    {"the_worker_of_an_active_job_hears_of_the_cancel",
     test_the_worker_of_an_active_job_hears_of_the_cancel},
    {"a_cancelled_job_may_still_complete", test_a_cancelled_job_may_still_complete},
    {"a_cancelled_job_does_not_outlive_its_process",
     test_a_cancelled_job_does_not_outlive_its_process},
    {"every_life_has_the_attempts_of_the_spec", test_every_life_has_the_attempts_of_the_spec},
    {"retry_is_for_the_dead_and_the_cancelled", test_retry_is_for_the_dead_and_the_cancelled},
    {"an_exclusive_job_is_not_retried_beside_an_active_one",
     test_an_exclusive_job_is_not_retried_beside_an_active_one},
    {"a_full_file_refuses_and_leaves_everything_as_it_was",
     test_a_full_file_refuses_and_leaves_everything_as_it_was},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
