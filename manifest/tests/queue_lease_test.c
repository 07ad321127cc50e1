/* Goal: the lease decides who works on a job; late workers, leases that are over and deaths of the
 * process never lead to two who both think it is theirs. Method: one fact per test on a file of its
 * own; after each the invariants are walked. */
#include "queue_lease_kit.h"

static void test_complete_stores_the_result(void)
{
    kit k;
    kit_open(&k);
    uint64_t id = kit_new(&k, &plain);
    jzx_mf_lease lease = kit_claim_lease(&k, id);
    kit_pass(&k, 40);
    CHECK_OK(kit_complete(&k, &lease));
    jzx_mf_job job = kit_job(&k, id);
    CHECK_EQ(job.state, JZX_MF_JOB_DONE);
    CHECK_EQ(job.finished_ms, KIT_START + 40);
    check_text(job.result, "result");
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_UNIQUE), 0);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_LEASE), 0);
    finish(&k);
}

static void check_fenced(kit *k, const jzx_mf_lease *lease)
{
    bool cancel = false;
    CHECK_EQ(kit_complete(k, lease), JZX_ERR_FENCED);
    CHECK_EQ(kit_fail(k, lease, 0), JZX_ERR_FENCED);
    CHECK_EQ(IN_CHILD(k, mfi_job_heartbeat(&k->tx, lease, 0, 0, 0, jzx_mf_text("x"), &cancel)),
             JZX_ERR_FENCED);
}

static void test_a_late_worker_is_fenced(void)
{
    kit k;
    kit_open(&k);
    uint64_t id = kit_new(&k, &plain);
    jzx_mf_lease old = kit_claim_lease(&k, id);
    CHECK_OK(kit_fail(&k, &old, JZX_MF_FAIL_NOW));
    check_fenced(&k, &old); /* queued */
    jzx_mf_lease lease = kit_claim_lease(&k, id);
    CHECK_EQ(lease.attempt, old.attempt + 1);
    check_fenced(&k, &old); /* somebody else's */
    jzx_mf_lease wrong = lease;
    wrong.boot++;
    check_fenced(&k, &wrong);
    CHECK_EQ(kit_state(&k, id), JZX_MF_JOB_ACTIVE);
    CHECK_OK(kit_complete(&k, &lease));
    check_fenced(&k, &lease); /* done */
    CHECK_OK(IN_CHILD(&k, mfi_job_del(&k.tx, id)));
    check_fenced(&k, &lease); /* gone */
    finish(&k);
}

static void test_a_lease_of_an_older_boot_is_void_at_once(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_lease lease = kit_claim_lease(&k, kit_new(&k, &plain));
    k.tx.boot++;
    check_fenced(&k, &lease);
    finish(&k);
}

static void test_a_heartbeat_keeps_the_lease_up_to_the_timeout(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .lease_ms = 100, .timeout_ms = 250};
    uint64_t id = kit_new(&k, &spec);
    jzx_mf_lease lease = kit_claim_lease(&k, id);
    kit_pass(&k, 90);
    CHECK(!beat(&k, &lease, 0));
    CHECK(k.tx.news.schedule);
    CHECK_EQ(kit_job(&k, id).lease_until_ms, KIT_START + 190);
    CHECK_EQ(kit_job(&k, id).progress_done, 3);
    CHECK_EQ(kit_job(&k, id).progress_total, 4);
    kit_pass(&k, 90);
    CHECK_EQ(kit_do(&k, mfi_queue_expire, 10), 0);
    CHECK(!beat(&k, &lease, 1000));
    CHECK_EQ(kit_job(&k, id).lease_until_ms, KIT_START + 250);
    kit_pass(&k, 70);
    CHECK(beat(&k, &lease, 0)); /* its time is up */
    CHECK_EQ(kit_do(&k, mfi_queue_expire, 10), 1);
    check_text(kit_job(&k, id).error, "timed out");
    finish(&k);
}

static void test_progress_text_stays_until_the_next_one(void)
{
    kit k;
    kit_open(&k);
    uint64_t id = kit_new(&k, &plain);
    jzx_mf_lease lease = kit_claim_lease(&k, id);
    bool cancel;
    CHECK_OK(
        IN_CHILD(&k, mfi_job_heartbeat(&k.tx, &lease, 0, 1, 9, jzx_mf_text("scanning"), &cancel)));
    beat(&k, &lease, 0);
    check_text(kit_job(&k, id).progress, "scanning");
    finish(&k);
}

static void test_a_lease_that_is_over_is_taken_back(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .lease_ms = 100, .jitter_percent = JZX_MF_NO_JITTER};
    uint64_t id = kit_new(&k, &spec);
    jzx_mf_lease lease = kit_claim_lease(&k, id);
    kit_pass(&k, 99);
    CHECK_EQ(kit_do(&k, mfi_queue_expire, 10), 0);
    k.tx.now_ms += 100000; /* the wall's clock has no say in it */
    CHECK_EQ(kit_do(&k, mfi_queue_expire, 10), 0);
    kit_pass(&k, 1);
    CHECK_EQ(kit_do(&k, mfi_queue_expire, 10), 1);
    jzx_mf_job job = kit_job(&k, id);
    CHECK_EQ(job.state, JZX_MF_JOB_SCHEDULED);
    CHECK_EQ(job.run_at_ms, k.tx.now_ms + 1000);
    check_text(job.error, "lease expired");
    check_fenced(&k, &lease);
    finish(&k);
}

static void test_time_works_in_portions(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .lease_ms = 100, .unique = JZX_MF_ANY, .delay_ms = 10};
    for (int i = 0; i < 5; i++) {
        kit_new(&k, &spec);
    }
    kit_pass(&k, 10);
    CHECK_EQ(kit_do(&k, mfi_queue_promote, 3), 3);
    CHECK_EQ(kit_do(&k, mfi_queue_promote, 3), 2);
    jzx_mf_claim claim = {.max = 10};
    CHECK_EQ(kit_claim(&k, &claim), 5);
    kit_pass(&k, 100);
    CHECK_EQ(kit_do(&k, mfi_queue_expire, 2), 2);
    CHECK_EQ(kit_do(&k, mfi_queue_expire, 2), 2);
    CHECK_EQ(kit_do(&k, mfi_queue_expire, 2), 1);
    finish(&k);
}

static const jzx_mf_job_spec gated = {.kind = 1, .gate_class = 4, .lease_ms = 100};
static const jzx_mf_job_spec rival = {.kind = 2, .gate_class = 4};

static void test_a_reported_failure_opens_the_gate(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_lease lease = kit_claim_lease(&k, kit_new(&k, &gated));
    uint64_t other = kit_new(&k, &rival);
    CHECK_EQ(kit_claim_one(&k), 0);
    CHECK_OK(kit_fail(&k, &lease, 0));
    CHECK_EQ(kit_claim_one(&k), other);
    finish(&k);
}

static void test_a_lost_lease_keeps_the_gate_closed(void)
{
    kit k;
    kit_open(&k);
    uint64_t id = kit_new(&k, &gated);
    kit_claim_lease(&k, id);
    uint64_t other = kit_new(&k, &rival);
    kit_pass(&k, 100);
    CHECK_EQ(kit_do(&k, mfi_queue_expire, 10), 1);
    CHECK_EQ(kit_gate_holder(&k, 0, 4), id);
    CHECK_EQ(kit_claim_one(&k), 0);
    kit_check(&k);
    kit_pass(&k, 5000);
    CHECK_EQ(kit_do(&k, mfi_queue_promote, 10), 1);
    jzx_mf_lease lease = kit_claim_lease(&k, id); /* it has it, so it may */
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(kit_claim_one(&k), other);
    finish(&k);
}

static void test_a_cancelled_job_gives_back_the_gate_it_kept(void)
{
    kit k;
    kit_open(&k);
    uint64_t id = kit_new(&k, &gated);
    kit_claim_lease(&k, id);
    uint64_t other = kit_new(&k, &rival);
    CHECK_EQ(kit_claim_one(&k), 0);
    kit_pass(&k, 100);
    CHECK_EQ(kit_do(&k, mfi_queue_expire, 10), 1);
    CHECK_OK(IN_CHILD(&k, mfi_job_cancel(&k.tx, id)));
    CHECK_EQ(kit_claim_one(&k), other);
    finish(&k);
}

static void test_orphans_are_ready_at_once_and_keep_their_gate(void)
{
    kit k;
    kit_open(&k);
    uint64_t id = kit_new(&k, &gated);
    jzx_mf_lease old = kit_claim_lease(&k, id);
    uint64_t other = kit_new(&k, &rival);
    mfi_orphans orphans = kit_boot(&k);
    CHECK_EQ(orphans.found, 1);
    CHECK_EQ(orphans.requeued, 1);
    CHECK_EQ(orphans.died, 0);
    jzx_mf_job job = kit_job(&k, id);
    CHECK_EQ(job.state, JZX_MF_JOB_READY);
    check_text(job.error, "the process died");
    CHECK_EQ(kit_gate_holder(&k, 0, 4), id);
    check_fenced(&k, &old);
    jzx_mf_lease lease = kit_claim_lease(&k, id);
    CHECK_EQ(lease.attempt, 2);
    CHECK_EQ(kit_claim_one(&k), 0);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(kit_claim_one(&k), other);
    finish(&k);
}

/* What a job is told of its end is what happened: a close is no death. */
static void test_an_orphan_says_how_its_lease_ended(void)
{
    static const struct {
        const char *text;
        uint64_t boots; /* since the lease */
        bool closed;
    } ends[] = {{"the process died", 1, false},
                {"the manifest was closed", 1, true},
                {"left by an earlier run of the manifest", 2, false},
                {"left by an earlier run of the manifest", 2, true}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        kit k;
        kit_open(&k);
        uint64_t id = kit_new(&k, &plain);
        (void)kit_claim_lease(&k, id);
        k.tx.boot += ends[i].boots;
        mfi_orphans orphans = {.closed = ends[i].closed};
        uint32_t count;
        CHECK_OK(IN_CHILD(&k, mfi_queue_orphans(&k.tx, 10, &orphans, &count)));
        CHECK_EQ(count, 1);
        check_text(kit_job(&k, id).error, ends[i].text);
        finish(&k);
    }
}

static void test_settling_orphans_again_finds_none(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .unique = JZX_MF_ANY};
    for (int i = 0; i < 5; i++) {
        kit_new(&k, &spec);
    }
    jzx_mf_claim claim = {.max = 5};
    CHECK_EQ(kit_claim(&k, &claim), 5);
    k.tx.boot++;
    static const uint32_t portions[] = {2, 2, 1, 0};
    mfi_orphans orphans = {0};
    uint32_t count;
    for (int i = 0; i < 4; i++) {
        CHECK_OK(IN_CHILD(&k, mfi_queue_orphans(&k.tx, 2, &orphans, &count)));
        CHECK_EQ(count, portions[i]);
    }
    CHECK_EQ(orphans.found, 5);
    CHECK_EQ(orphans.requeued, 5);
    CHECK_EQ(kit_claim(&k, &claim), 5);
    CHECK_EQ(IN_CHILD(&k, mfi_job_cancel(&k.tx, 1)), JZX_OK);
    k.tx.writes = 0;
    CHECK_OK(IN_CHILD(&k, mfi_queue_orphans(&k.tx, 2, &orphans, &count)));
    CHECK_EQ(count, 0); /* those of this boot are nobody's orphans */
    CHECK(k.tx.writes == 0);
    finish(&k);
}

static void test_a_job_that_kills_its_process_dies_in_the_end(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .max_attempts = 3, .gate_class = 1};
    uint64_t id = kit_new(&k, &spec);
    for (int i = 0; i < 3; i++) {
        kit_claim_lease(&k, id);
        mfi_orphans orphans = kit_boot(&k);
        CHECK_EQ(orphans.found, 1);
        CHECK_EQ(orphans.died, i == 2);
    }
    CHECK_EQ(kit_state(&k, id), JZX_MF_JOB_DEAD);
    CHECK_EQ(kit_gate_holder(&k, 0, 1), 0);
    finish(&k);
}

/* The same when only the lease ran out: nobody said how far the work came. Once per lease, and in
 * the commit that takes it back. */
static void test_a_repair_job_goes_before_a_job_whose_lease_ran_out(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_kind rules = {.orphan_kind = 9};
    kit_kind(&k, 1, &rules);
    uint64_t id = kit_new(&k, &gated);
    jzx_mf_lease late = kit_claim_lease(&k, id);
    k.tx.meta.job_ids = k.next_id;
    kit_pass(&k, 100);
    CHECK_EQ(kit_do(&k, mfi_queue_expire, 10), 1);
    CHECK_EQ(kit_do(&k, mfi_queue_expire, 10), 0);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_JOB), 2);
    jzx_mf_job job = kit_job(&k, id);
    CHECK_EQ(job.state, JZX_MF_JOB_WAITING);
    check_text(job.error, "lease expired");
    CHECK_EQ(kit_gate_holder(&k, 0, 4), id);
    check_fenced(&k, &late);
    uint64_t repair = k.next_id++;
    jzx_mf_lease lease = kit_claim_lease(&k, repair);
    job = kit_job(&k, repair);
    CHECK_EQ(job.kind, 9);
    CHECK(job.payload.len == 8 && mfi_get_be64(job.payload.data) == id);
    kit_check(&k);
    CHECK_OK(kit_complete(&k, &lease));
    kit_pass(&k, 5000);
    CHECK_EQ(kit_do(&k, mfi_queue_promote, 10), 1);
    lease = kit_claim_lease(&k, id);
    CHECK_EQ(lease.attempt, 2);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_JOB), 2);
    finish(&k);
}

static void test_a_repair_job_goes_before_the_orphan(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_kind rules = {.orphan_kind = 9};
    kit_kind(&k, 1, &rules);
    jzx_mf_job_spec spec = {.kind = 1,
                            .scope = JZX_MF_SCOPE_DB,
                            .db = 6,
                            .key = jzx_mf_text("shard"),
                            .gate_class = 2,
                            .priority = 3};
    uint64_t id = kit_new(&k, &spec);
    kit_claim_lease(&k, id);
    mfi_orphans orphans = kit_boot(&k);
    CHECK_EQ(orphans.requeued, 1);
    CHECK_EQ(orphans.repairs, 1);
    CHECK_EQ(kit_state(&k, id), JZX_MF_JOB_WAITING);
    CHECK_EQ(kit_gate_holder(&k, 6, 2), id);
    uint64_t repair = k.next_id - 1;
    jzx_mf_lease lease = kit_claim_lease(&k, repair);
    jzx_mf_job job = kit_job(&k, repair);
    CHECK_EQ(job.kind, 9);
    CHECK_EQ(job.unique, JZX_MF_ANY);
    CHECK_EQ(job.db, 6);
    check_text(job.key, "shard");
    CHECK(job.payload.len == 8 && mfi_get_be64(job.payload.data) == id);
    CHECK_EQ(kit_claim_one(&k), 0);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(kit_claim_one(&k), id);
    finish(&k);
}

static const jzt_test tests[] = {
    {"complete_stores_the_result", test_complete_stores_the_result},
    {"a_late_worker_is_fenced", test_a_late_worker_is_fenced},
    {"a_lease_of_an_older_boot_is_void_at_once", test_a_lease_of_an_older_boot_is_void_at_once},
    {"a_heartbeat_keeps_the_lease_up_to_the_timeout",
     test_a_heartbeat_keeps_the_lease_up_to_the_timeout},
    {"progress_text_stays_until_the_next_one", test_progress_text_stays_until_the_next_one},
    {"a_lease_that_is_over_is_taken_back", test_a_lease_that_is_over_is_taken_back},
    {"time_works_in_portions", test_time_works_in_portions},
    {"a_reported_failure_opens_the_gate", test_a_reported_failure_opens_the_gate},
    {"a_lost_lease_keeps_the_gate_closed", test_a_lost_lease_keeps_the_gate_closed},
    {"a_cancelled_job_gives_back_the_gate_it_kept",
     test_a_cancelled_job_gives_back_the_gate_it_kept},
    {"orphans_are_ready_at_once_and_keep_their_gate",
     test_orphans_are_ready_at_once_and_keep_their_gate},
    {"settling_orphans_again_finds_none", test_settling_orphans_again_finds_none},
    {"a_job_that_kills_its_process_dies_in_the_end",
     test_a_job_that_kills_its_process_dies_in_the_end},
    {"an_orphan_says_how_its_lease_ended", test_an_orphan_says_how_its_lease_ended},
    {"a_repair_job_goes_before_a_job_whose_lease_ran_out",
     test_a_repair_job_goes_before_a_job_whose_lease_ran_out},
    {"a_repair_job_goes_before_the_orphan", test_a_repair_job_goes_before_the_orphan},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
