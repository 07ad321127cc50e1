/* Goal: handlers that block on threads of a pool are kept, cancelled, fenced and limited as the
 * manifest says, and each job is done once. Method: work_world.h, whose clock decides which
 * leases run out. */
#include "work_world.h"

static jzx_mf_verdict bump(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)w;
    (void)ctx;
    CHECK_OK(jzx_mf_generation_bump(jzx_mf_run_txn(run), 1, 1));
    return JZX_MF_RUN_DONE;
}

static void test_a_thousand_jobs_over_four_workers_are_each_done_once(void)
{
    enum { COUNT = JZT_SANITIZED ? 300 : 1000 };
    world w;
    world_open(&w);
    w.script = bump;
    static uint64_t ids[COUNT];
    put_many(&w, ids, COUNT);
    workers_start(&w, 4, 0);
    CHECK(wait_for(&w, has_runs, COUNT));
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(wait_for(&w, is_done, ids[i]));
        CHECK_EQ(atomic_load(&w.runs_of[ids[i] % JOBS_MAX]), 1);
    }
    CHECK_EQ(atomic_load(&w.runs), COUNT);
    CHECK_EQ(mft_generation(w.mf), COUNT);
    world_close(&w);
}

static void test_a_lease_is_kept_as_long_as_the_handler_takes(void)
{
    world w;
    world_open(&w);
    w.script = wait_for_go;
    workers_start(&w, 2, 200);
    uint64_t first = put_any(&w);
    uint64_t second = put_any(&w);
    watch_leases(&w, (uint64_t[]){first, second}, 2);
    CHECK(wait_for(&w, has_running, 2));
    run_for(&w, 500);
    CHECK_EQ(mft_job_of(w.mf, first).job.attempt, 1);
    CHECK_EQ(mft_state_of(w.mf, second), JZX_MF_JOB_ACTIVE);
    atomic_store(&w.go, true);
    CHECK(wait_for(&w, is_done, first));
    CHECK(wait_for(&w, is_done, second));
    CHECK_EQ(atomic_load(&w.runs), 2);
    CHECK_EQ(atomic_load(&w.cancelled), 0);
    world_close(&w);
}

static bool is_cancelled(world *w, uint64_t id)
{
    return mft_state_of(w->mf, id) == JZX_MF_JOB_CANCELLED;
}

static void test_a_cancel_reaches_the_handler_and_the_job_is_not_tried_again(void)
{
    world w;
    world_open(&w);
    w.script = wait_for_go;
    workers_start(&w, 2, 200);
    uint64_t id = put_any(&w);
    uint64_t other = put_any(&w);
    watch_leases(&w, (uint64_t[]){id, other}, 2);
    CHECK(wait_for(&w, has_running, 2));
    jzx_mf_txn *txn = mft_begin(w.mf);
    CHECK_OK(jzx_mf_job_cancel(txn, id));
    CHECK_OK(jzx_mf_commit(txn, 0, NULL));
    CHECK(wait_for(&w, has_cancelled, 1));
    CHECK(wait_for(&w, is_cancelled, id));
    CHECK_EQ(mft_state_of(w.mf, other), JZX_MF_JOB_ACTIVE);
    CHECK_EQ(atomic_load(&w.runs), 2);
    world_close(&w);
}

static jzx_mf_verdict tell_progress(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    jzx_mf_run_progress(run, 1, 10, "began");
    jzx_mf_run_progress(run, 3, 10, NULL);
    return wait_for_go(w, ctx, run);
}

static bool has_progress(world *w, uint64_t id)
{
    return mft_job_of(w->mf, id).job.progress_done == 3;
}

static void test_progress_is_seen_in_the_job_while_it_runs(void)
{
    world w;
    world_open(&w);
    w.script = tell_progress;
    workers_start(&w, 1, 200);
    uint64_t id = put_any(&w);
    watch_leases(&w, &id, 1);
    CHECK(wait_for(&w, has_progress, id));
    mft_job job = mft_job_of(w.mf, id);
    CHECK_EQ(job.job.state, JZX_MF_JOB_ACTIVE);
    CHECK_EQ(job.job.progress_total, 10);
    CHECK_STR(job.progress, "began");
    world_close(&w);
}

/* The first job is taken away from its worker. That worker must hear of it by a heartbeat, which
 * must not keep the second one's from being done; and the first one runs again elsewhere. */
static void test_one_that_is_fenced_does_not_spoil_the_heartbeats_of_others(void)
{
    world w;
    world_open(&w);
    w.script = wait_for_go;
    workers_start(&w, 3, 200);
    uint64_t first = put_any(&w);
    uint64_t second = put_any(&w);
    watch_leases(&w, (uint64_t[]){first, second}, 2);
    CHECK(wait_for(&w, has_running, 2));
    mft_job stolen = mft_job_of(w.mf, first);
    jzx_mf_txn *txn = mft_begin(w.mf);
    CHECK_OK(mft_steal(txn, &stolen.job));
    CHECK_OK(jzx_mf_commit(txn, 0, NULL));
    CHECK(wait_for(&w, has_cancelled, 1));
    CHECK(wait_for(&w, has_runs, 3));
    run_for(&w, 450);
    CHECK_EQ(atomic_load(&w.cancelled), 1);
    CHECK_EQ(mft_job_of(w.mf, second).job.attempt, 1);
    CHECK_EQ(mft_job_of(w.mf, first).job.attempt, 2);
    atomic_store(&w.go, true);
    CHECK(wait_for(&w, is_done, first));
    CHECK(wait_for(&w, is_done, second));
    CHECK_EQ(atomic_load(&w.runs), 3);
    CHECK_STR(mft_job_of(w.mf, first).error, "");
    world_close(&w);
}

static bool is_kept_again(world *w, uint64_t id)
{
    return kept_at(w, id) > w->seen_kept;
}

/* Each round of heartbeats finds one that is fenced; the fourth is kept all the same, and by then
 * all three know: no further time passes. */
static void test_several_that_are_fenced_do_not_cost_another_one_its_lease(void)
{
    world w;
    world_open(&w);
    w.script = wait_for_go;
    workers_start(&w, 4, 600);
    uint64_t ids[4];
    put_many(&w, ids, 4);
    watch_leases(&w, ids, 4);
    CHECK(wait_for(&w, has_running, 4));
    jzx_mf_txn *txn = mft_begin(w.mf);
    CHECK_OK(jzx_mf_kind_pause(txn, KIND, 1));
    for (int i = 0; i < 3; i++) {
        mft_job stolen = mft_job_of(w.mf, ids[i]);
        CHECK_OK(mft_steal(txn, &stolen.job));
    }
    CHECK_OK(jzx_mf_commit(txn, 0, NULL));
    w.seen_kept = kept_at(&w, ids[3]);
    CHECK(wait_for(&w, is_kept_again, ids[3]));
    CHECK(wait_still_for(&w, has_cancelled, 3)); /* by the first heartbeat, not one by each */
    run_for(&w, 500);
    CHECK_EQ(atomic_load(&w.cancelled), 3);
    CHECK_EQ(mft_state_of(w.mf, ids[3]), JZX_MF_JOB_ACTIVE);
    world_close(&w);
}

static bool all_workers_busy(world *w, uint64_t arg)
{
    const world *other = (const world *)(uintptr_t)arg;
    return atomic_load(&w->running) == 3 && atomic_load(&other->running) == 1;
}

static void test_each_kind_has_as_many_jobs_at_once_as_workers(void)
{
    static world other;
    world w;
    world_open(&w);
    memset(&other, 0, sizeof other);
    w.script = other.script = wait_for_go;
    jzx_mf_work works[] = {
        {.handler = handle, .arg = &w, .kind = KIND, .concurrency = 3, .dispatcher = "pool"},
        {.handler = handle, .arg = &other, .kind = OTHER_KIND, .dispatcher = "pinned"},
    };
    REQUIRE_OK(jzx_mf_workers_spawn(w.loop, w.mf, works, 2, &w.workers));
    uint64_t ids[8];
    for (int i = 0; i < 8; i++) {
        ids[i] = mft_enqueue(
            w.mf, &(jzx_mf_job_spec){.kind = i < 6 ? KIND : OTHER_KIND, .unique = JZX_MF_ANY});
    }
    CHECK(wait_for(&w, all_workers_busy, (uint64_t)(uintptr_t)&other));
    run_for(&w, 50);
    CHECK_EQ(atomic_load(&w.running), 3);
    CHECK_EQ(atomic_load(&other.running), 1);
    atomic_store(&w.go, true);
    atomic_store(&other.go, true);
    for (int i = 0; i < 8; i++) {
        CHECK(wait_for(&w, is_done, ids[i]));
    }
    CHECK_EQ(atomic_load(&w.running_max), 3);
    CHECK_EQ(atomic_load(&other.running_max), 1);
    world_close(&w);
}

static jzx_mf_verdict alone_with_its_key(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)ctx;
    const jzx_mf_job *job = jzx_mf_run_job(run);
    uint32_t key = *(const unsigned char *)job->key.data % 16u;
    if (atomic_fetch_add(&w->in_key[key], 1) != 0) {
        atomic_fetch_add(&w->key_clash, 1);
    }
    nap();
    atomic_fetch_sub(&w->in_key[key], 1);
    return JZX_MF_RUN_DONE;
}

static void test_jobs_with_the_same_key_run_one_after_the_other(void)
{
    enum { COUNT = 60 };
    world w;
    world_open(&w);
    w.script = alone_with_its_key;
    jzx_mf_txn *txn = mft_begin(w.mf);
    CHECK_OK(jzx_mf_kind_put(txn, KIND, &(jzx_mf_kind){.key_limit = 1}));
    uint64_t ids[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        char key = (char)('a' + i % 3);
        jzx_mf_job_spec spec = {
            .kind = KIND, .unique = JZX_MF_ANY, .key = jzx_mf_blob(&key, sizeof key)};
        REQUIRE_OK(jzx_mf_job_enqueue(txn, &spec, &ids[i]));
    }
    REQUIRE_OK(jzx_mf_commit(txn, 0, NULL));
    workers_start(&w, 4, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(wait_for(&w, is_done, ids[i]));
    }
    CHECK_EQ(atomic_load(&w.key_clash), 0);
    CHECK(atomic_load(&w.running_max) <= 3);
    CHECK_EQ(atomic_load(&w.runs), COUNT);
    world_close(&w);
}

static const jzt_test tests[] = {
    {"a_thousand_jobs_over_four_workers_are_each_done_once",
     test_a_thousand_jobs_over_four_workers_are_each_done_once},
    {"a_lease_is_kept_as_long_as_the_handler_takes",
     test_a_lease_is_kept_as_long_as_the_handler_takes},
    {"a_cancel_reaches_the_handler_and_the_job_is_not_tried_again",
     test_a_cancel_reaches_the_handler_and_the_job_is_not_tried_again},
    {"progress_is_seen_in_the_job_while_it_runs", test_progress_is_seen_in_the_job_while_it_runs},
    {"one_that_is_fenced_does_not_spoil_the_heartbeats_of_others",
     test_one_that_is_fenced_does_not_spoil_the_heartbeats_of_others},
    {"several_that_are_fenced_do_not_cost_another_one_its_lease",
     test_several_that_are_fenced_do_not_cost_another_one_its_lease},
    {"each_kind_has_as_many_jobs_at_once_as_workers",
     test_each_kind_has_as_many_jobs_at_once_as_workers},
    {"jobs_with_the_same_key_run_one_after_the_other",
     test_jobs_with_the_same_key_run_one_after_the_other},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
