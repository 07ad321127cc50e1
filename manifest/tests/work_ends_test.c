/* Goal: workers that stop, producers that are killed and loops that are kept busy lose no job and
 * run none twice while its lease is alive. Method: work_world.h. */
#include "work_world.h"

static void test_workers_that_stop_tell_their_handlers_and_give_back_uncounted(void)
{
    world w;
    world_open(&w);
    w.script = wait_for_go;
    workers_start(&w, 2, 0);
    uint64_t ids[4];
    for (int i = 0; i < 4; i++) {
        ids[i] = mft_enqueue(
            w.mf, &(jzx_mf_job_spec){.kind = KIND, .unique = JZX_MF_ANY, .max_attempts = 1});
    }
    CHECK(wait_for(&w, has_running, 2));
    CHECK_OK(jzx_stop(w.loop, w.workers));
    CHECK(wait_for(&w, is_gone, w.workers));
    CHECK_EQ(atomic_load(&w.cancelled), 2);
    CHECK_EQ(atomic_load(&w.runs), 2);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(mft_state_of(w.mf, ids[i]), JZX_MF_JOB_READY);
    }
    CHECK_STR(mft_job_of(w.mf, ids[0]).error, "stopped early");
    /* The attempt did not count: there is still the one that it may have. */
    atomic_store(&w.go, true);
    workers_start(&w, 2, 0);
    for (int i = 0; i < 4; i++) {
        CHECK(wait_for(&w, is_done, ids[i]));
    }
    world_close(&w);
}

static jzx_mf_verdict deaf(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)ctx;
    while (!atomic_load(&w->go)) {
        nap();
    }
    return jzx_mf_run_cancelled(run) ? JZX_MF_RUN_DONE : JZX_MF_RUN_DEAD;
}

/* Its lease is kept meanwhile: nobody else may begin before it has returned. */
static void test_a_handler_that_does_not_listen_is_waited_for_and_its_work_counts(void)
{
    world w;
    world_open(&w);
    w.script = deaf;
    workers_start(&w, 1, 200);
    uint64_t id = put_any(&w);
    watch_leases(&w, &id, 1);
    CHECK(wait_for(&w, has_running, 1));
    CHECK_OK(jzx_stop(w.loop, w.workers));
    run_for(&w, 450);
    CHECK_EQ(mft_state_of(w.mf, id), JZX_MF_JOB_ACTIVE);
    CHECK_EQ(mft_job_of(w.mf, id).job.attempt, 1);
    atomic_store(&w.go, true);
    CHECK(wait_for(&w, is_gone, w.workers));
    w.workers = JZX_NOBODY;
    CHECK_EQ(mft_state_of(w.mf, id), JZX_MF_JOB_DONE);
    world_close(&w);
}

static void test_a_producer_that_is_restarted_keeps_the_leases_of_the_jobs_in_hand(void)
{
    world w;
    world_open(&w);
    w.script = wait_for_go;
    workers_start(&w, 2, 200);
    uint64_t ids[2];
    put_many(&w, ids, 2);
    watch_leases(&w, ids, 2);
    CHECK(wait_for(&w, has_running, 2));
    run_for(&w, 20);
    CHECK(kill_producer(&w));
    run_for(&w, 500);
    CHECK_EQ(atomic_load(&w.cancelled), 0);
    atomic_store(&w.go, true);
    for (int i = 0; i < 2; i++) {
        CHECK(wait_for(&w, is_done, ids[i]));
        CHECK_EQ(mft_job_of(w.mf, ids[i]).job.attempt, 1);
    }
    world_close(&w);
}

static jzx_mf_verdict take_a_moment(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)w;
    (void)ctx;
    nap();
    return jzx_mf_run_cancelled(run) ? JZX_MF_RUN_RETRY : JZX_MF_RUN_DONE;
}

static void test_a_producer_killed_at_random_moments_loses_nothing_and_runs_nothing_twice(void)
{
    enum { COUNT = 300 };
    world w;
    world_open(&w);
    w.script = take_a_moment;
    jzt_rng rng = jzt_rng_seeded();
    static uint64_t ids[COUNT];
    put_many(&w, ids, COUNT);
    workers_start(&w, 4, 0);
    uint32_t kills = 0;
    for (uint64_t end = now_ms() + WAIT_MS; atomic_load(&w.runs) < COUNT && now_ms() < end;) {
        step(&w);
        if (kills < 8 && jzt_rng_below(&rng, 20) == 0) {
            kills += kill_producer(&w) ? 1 : 0;
        }
    }
    CHECK(kills > 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(wait_for(&w, is_done, ids[i]));
        CHECK_EQ(atomic_load(&w.runs_of[ids[i] % JOBS_MAX]), 1);
    }
    world_close(&w);
}

static void test_a_shutdown_of_the_whole_system_ends_the_workers_in_order(void)
{
    world w;
    world_open(&w);
    w.script = wait_for_go;
    workers_start(&w, 4, 0);
    uint64_t ids[8];
    put_many(&w, ids, 8);
    CHECK(wait_for(&w, has_running, 4));
    jzx_shutdown_report report;
    CHECK_OK(jzx_stop(w.loop, w.workers));
    CHECK(wait_for(&w, is_gone, w.workers));
    CHECK_OK(jzx_mf_close(w.mf, 0));
    CHECK_OK(jzx_system_shutdown(w.system, 0, &report));
    CHECK_EQ(report.in_time, 1);
    CHECK_OK(jzx_system_destroy(w.system));
    /* What was in hand had gone back: the next boot finds no orphans. */
    jzx_mf_recovery recovery;
    REQUIRE_OK(jzx_mf_open(w.dir.file, NULL, &w.mf, &recovery));
    CHECK_EQ(recovery.orphans, 0);
    CHECK_EQ(recovery.ready, 8);
    CHECK_OK(jzx_mf_close(w.mf, 0));
    mft_dir_remove(&w.dir);
}

/* A plain loop, and a manifest with a thread of its own: two worlds, and the workers between them.
 */
static void test_workers_on_a_plain_loop_serve_a_manifest_on_its_own_thread(void)
{
    enum { COUNT = 50 };
    static world w;
    memset(&w, 0, sizeof w);
    w.dir = mft_dir_make();
    REQUIRE_OK(jzx_loop_create(NULL, &w.loop));
    w.mf = mft_open(&w.dir, NULL);
    uint64_t ids[COUNT];
    put_many(&w, ids, COUNT);
    jzx_mf_work work = {.handler = handle, .arg = &w, .kind = KIND, .concurrency = 3};
    REQUIRE_OK(jzx_mf_workers_spawn(w.loop, w.mf, &work, 1, &w.workers));
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(wait_for(&w, is_done, ids[i]));
    }
    CHECK_EQ(atomic_load(&w.runs), COUNT);
    CHECK_OK(jzx_stop(w.loop, w.workers));
    CHECK(wait_for(&w, is_gone, w.workers));
    CHECK_OK(jzx_mf_close(w.mf, 0));
    CHECK_OK(jzx_loop_destroy(w.loop));
    mft_dir_remove(&w.dir);
}

static void forget(void *arg, const jzx_mf_receipt *receipt)
{
    (void)arg;
    CHECK_EQ(receipt->err, JZX_OK);
}

/* The first job keeps the loop, and with it the producer, until the second one was claimed and its
 * lease ran out. */
static jzx_mf_verdict keep_the_loop(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)ctx;
    const jzx_mf_job *job = jzx_mf_run_job(run);
    mft_job stored = mft_job_of(w->mf, job->id);
    CHECK_EQ(stored.job.state, JZX_MF_JOB_ACTIVE);
    CHECK_EQ(stored.job.attempt, job->attempt);
    if (atomic_load(&w->runs) == 1) {
        jzx_mf_txn *txn = mft_begin(w->mf);
        uint64_t second = 0;
        jzx_mf_job_spec spec = {
            .kind = KIND, .unique = JZX_MF_ANY, .lease_ms = 2000, .backoff_min_ms = 500};
        CHECK_OK(jzx_mf_job_enqueue(txn, &spec, &second));
        CHECK_OK(jzx_mf_commit_async(txn, forget, NULL));
        uint64_t end = now_ms() + WAIT_MS;
        while (mft_state_of(w->mf, second) != JZX_MF_JOB_ACTIVE && now_ms() < end) {
            nap();
        }
        while (mft_state_of(w->mf, second) == JZX_MF_JOB_ACTIVE && now_ms() < end) {
            nap();
        }
        CHECK_EQ(atomic_load(&w->runs), 1);
    }
    return JZX_MF_RUN_DONE;
}

static void test_a_job_that_waited_too_long_for_the_producer_is_not_begun(void)
{
    static world w;
    memset(&w, 0, sizeof w);
    w.dir = mft_dir_make();
    REQUIRE_OK(jzx_loop_create(NULL, &w.loop));
    w.mf = mft_open(&w.dir, NULL);
    w.script = keep_the_loop;
    jzx_mf_work work = {.handler = handle, .arg = &w, .kind = KIND, .concurrency = 2};
    REQUIRE_OK(jzx_mf_workers_spawn(w.loop, w.mf, &work, 1, &w.workers));
    run_for(&w, 20);
    uint64_t first = put_any(&w);
    CHECK(wait_for(&w, is_done, first));
    CHECK(wait_for(&w, has_runs, 2));
    CHECK(wait_for(&w, has_running, 0));
    CHECK_OK(jzx_stop(w.loop, w.workers));
    CHECK(wait_for(&w, is_gone, w.workers));
    CHECK_OK(jzx_mf_close(w.mf, 0));
    CHECK_OK(jzx_loop_destroy(w.loop));
    mft_dir_remove(&w.dir);
}

static const jzt_test tests[] = {
    {"workers_that_stop_tell_their_handlers_and_give_back_uncounted",
     test_workers_that_stop_tell_their_handlers_and_give_back_uncounted},
    {"a_handler_that_does_not_listen_is_waited_for_and_its_work_counts",
     test_a_handler_that_does_not_listen_is_waited_for_and_its_work_counts},
    {"a_producer_that_is_restarted_keeps_the_leases_of_the_jobs_in_hand",
     test_a_producer_that_is_restarted_keeps_the_leases_of_the_jobs_in_hand},
    {"a_producer_killed_at_random_moments_loses_nothing_and_runs_nothing_twice",
     test_a_producer_killed_at_random_moments_loses_nothing_and_runs_nothing_twice},
    {"a_shutdown_of_the_whole_system_ends_the_workers_in_order",
     test_a_shutdown_of_the_whole_system_ends_the_workers_in_order},
    {"workers_on_a_plain_loop_serve_a_manifest_on_its_own_thread",
     test_workers_on_a_plain_loop_serve_a_manifest_on_its_own_thread},
    {"a_job_that_waited_too_long_for_the_producer_is_not_begun",
     test_a_job_that_waited_too_long_for_the_producer_is_not_begun},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
