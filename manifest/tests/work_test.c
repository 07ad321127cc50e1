/* Goal: workers run each job as its handler says, and every way in which a run can end is in the
 * manifest afterwards. Method: all of it on one simulated loop; time is virtual, and a handler that
 * "takes long" is one that looks at the clock often, which costs a millisecond a time. */
#include "work_one.h"

static jzx_mf_verdict done_with_result(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)w;
    (void)ctx;
    const jzx_mf_job *job = jzx_mf_run_job(run);
    CHECK_EQ(job->payload.len, 5);
    CHECK(memcmp(job->payload.data, "hello", 5) == 0);
    CHECK_EQ(job->key.len, 3);
    CHECK_EQ(job->attempt, 1);
    CHECK_EQ(jzx_mf_run_cancelled(run), 0);
    CHECK_OK(jzx_mf_run_result(run, "first", 5));
    CHECK_OK(jzx_mf_run_result(run, "world", 5));
    CHECK_OK(jzx_mf_generation_bump(jzx_mf_run_txn(run), 1, 1));
    CHECK(jzx_mf_run_txn(run) == jzx_mf_run_txn(run));
    return JZX_MF_RUN_DONE;
}

static void test_what_is_done_is_stored_with_its_result_and_its_operations(void)
{
    world w;
    world_open(&w);
    w.script = done_with_result;
    workers_start(&w, 1);
    uint64_t id =
        put(&w, &(jzx_mf_job_spec){
                    .kind = KIND, .key = jzx_mf_text("key"), .payload = jzx_mf_text("hello")});
    run_ms(&w, 100);
    mft_job job = mft_job_of(w.mf, id);
    CHECK_EQ(job.job.state, JZX_MF_JOB_DONE);
    CHECK_STR(job.result, "world");
    CHECK_EQ(job.job.attempt, 1);
    CHECK(job.job.worker != 0);
    CHECK_EQ(mft_generation(w.mf), 1);
    CHECK_EQ(w.runs, 1);
    world_close(&w);
}

static void test_jobs_that_were_there_before_the_workers_are_run(void)
{
    world w;
    world_open(&w);
    uint64_t first = put_any(&w);
    uint64_t second = put_any(&w);
    uint64_t other = put(&w, &(jzx_mf_job_spec){.kind = OTHER_KIND});
    workers_start(&w, 1);
    run_ms(&w, 100);
    CHECK_EQ(mft_state_of(w.mf, first), JZX_MF_JOB_DONE);
    CHECK_EQ(mft_state_of(w.mf, second), JZX_MF_JOB_DONE);
    CHECK_EQ(mft_state_of(w.mf, other), JZX_MF_JOB_READY);
    CHECK_EQ(w.order[0], first);
    CHECK_EQ(w.order[1], second);
    world_close(&w);
}

static jzx_mf_verdict fail_first(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)ctx;
    CHECK_OK(jzx_mf_generation_bump(jzx_mf_run_txn(run), 1, 1));
    return w->runs == 1 ? jzx_mf_run_fail(run, 42, "the disk is full") : JZX_MF_RUN_DONE;
}

static void test_a_retry_waits_for_its_backoff_and_does_nothing_of_its_transaction(void)
{
    world w;
    world_open(&w);
    w.script = fail_first;
    workers_start(&w, 1);
    uint64_t id = put_any(&w);
    run_ms(&w, 500);
    mft_job job = mft_job_of(w.mf, id);
    CHECK_EQ(job.job.state, JZX_MF_JOB_SCHEDULED);
    CHECK_EQ(job.job.error_code, 42);
    CHECK_STR(job.error, "the disk is full");
    CHECK_EQ(mft_generation(w.mf), 0);
    run_ms(&w, 1000);
    job = mft_job_of(w.mf, id);
    CHECK_EQ(job.job.state, JZX_MF_JOB_DONE);
    CHECK_EQ(job.job.attempt, 2);
    CHECK_EQ(mft_generation(w.mf), 1);
    world_close(&w);
}

static jzx_mf_verdict dead(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)w;
    (void)ctx;
    (void)jzx_mf_run_fail(run, 5, "not a picture");
    return JZX_MF_RUN_DEAD;
}

static void test_dead_is_for_good(void)
{
    world w;
    world_open(&w);
    w.script = dead;
    workers_start(&w, 1);
    uint64_t id = put_any(&w);
    run_ms(&w, 5000);
    mft_job job = mft_job_of(w.mf, id);
    CHECK_EQ(job.job.state, JZX_MF_JOB_DEAD);
    CHECK_EQ(job.job.error_code, 5);
    CHECK_STR(job.error, "not a picture");
    CHECK_EQ(w.runs, 1);
    world_close(&w);
}

static jzx_mf_verdict snooze_twice(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)ctx;
    return w->runs <= 2 ? jzx_mf_run_snooze(run, 10000) : JZX_MF_RUN_DONE;
}

static void test_a_snooze_comes_again_when_it_said_and_does_not_count(void)
{
    world w;
    world_open(&w);
    w.script = snooze_twice;
    workers_start(&w, 1);
    uint64_t id = put(&w, &(jzx_mf_job_spec){.kind = KIND, .max_attempts = 1});
    run_ms(&w, 9000);
    CHECK_EQ(w.runs, 1);
    CHECK_EQ(mft_state_of(w.mf, id), JZX_MF_JOB_SCHEDULED);
    run_ms(&w, 2000);
    CHECK_EQ(w.runs, 2);
    run_ms(&w, 10000);
    CHECK_EQ(w.runs, 3);
    CHECK_EQ(mft_state_of(w.mf, id), JZX_MF_JOB_DONE);
    world_close(&w);
}

static jzx_mf_verdict panic_first(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    CHECK_OK(jzx_mf_generation_bump(jzx_mf_run_txn(run), 1, 1));
    (void)jzx_mf_run_fail(run, 1, "not this text");
    if (w->runs == 1) {
        jzx_panic(ctx, 9, "lost my head");
    }
    return JZX_MF_RUN_DONE;
}

static void test_a_panic_fails_the_job_with_its_text_and_the_worker_goes_on(void)
{
    world w;
    world_open(&w);
    w.script = panic_first;
    workers_start(&w, 1);
    uint64_t id = put_any(&w);
    uint64_t next = put_any(&w);
    run_ms(&w, 100);
    mft_job job = mft_job_of(w.mf, id);
    CHECK_EQ(job.job.state, JZX_MF_JOB_SCHEDULED);
    CHECK_STR(job.error, "panic 9: lost my head");
    CHECK_EQ(job.job.error_code, 9);
    CHECK_EQ(mft_state_of(w.mf, next), JZX_MF_JOB_DONE);
    run_ms(&w, 1500);
    CHECK_EQ(mft_state_of(w.mf, id), JZX_MF_JOB_DONE);
    CHECK_EQ(mft_generation(w.mf), 2);
    world_close(&w);
}

static jzx_mf_verdict crash_first(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)ctx;
    (void)run;
    if (w->runs == 1) {
        abort();
    }
    return JZX_MF_RUN_DONE;
}

static void test_a_crash_of_a_guarded_handler_fails_its_job(void)
{
    if (jzx_crash_guard_install() != JZX_OK) {
        jzt_skip("There is no crash guard here.");
    }
    world w;
    world_open(&w);
    w.script = crash_first;
    jzx_mf_work work = {.handler = handle, .arg = &w, .kind = KIND, .flags = JZX_SPAWN_CRASH_GUARD};
    REQUIRE_OK(jzx_mf_workers_spawn(w.kit->loop, w.mf, &work, 1, &w.workers));
    uint64_t id = put_any(&w);
    run_ms(&w, 100);
    mft_job job = mft_job_of(w.mf, id);
    CHECK_EQ(job.job.state, JZX_MF_JOB_SCHEDULED);
    CHECK_EQ(job.job.error_code, SIGABRT);
    CHECK(strncmp(job.error, "crash 6: SIGABRT", 16) == 0);
    run_ms(&w, 2000);
    CHECK_EQ(mft_state_of(w.mf, id), JZX_MF_JOB_DONE);
    world_close(&w);
    jzx_crash_guard_remove();
}

static jzx_mf_verdict always_panic(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)w;
    (void)run;
    jzx_panic(ctx, 1, "poison");
}

static void test_a_job_that_always_panics_dies_and_the_workers_live(void)
{
    world w;
    world_open(&w);
    w.script = always_panic;
    workers_start(&w, 2);
    uint64_t ids[50];
    for (int i = 0; i < 50; i++) {
        ids[i] = put(&w, &(jzx_mf_job_spec){.kind = KIND, .unique = JZX_MF_ANY, .max_attempts = 3});
    }
    run_ms(&w, 60000);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(mft_state_of(w.mf, ids[i]), JZX_MF_JOB_DEAD);
    }
    CHECK_EQ(w.runs, 150);
    CHECK_EQ(jzx_actor_state(w.kit->loop, w.workers), JZX_STATE_RUNNING);
    world_close(&w);
}

static jzx_mf_verdict nonsense(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)ctx;
    (void)run;
    return w->runs == 1 ? (jzx_mf_verdict)77 : JZX_MF_RUN_DONE;
}

static void test_what_is_no_verdict_is_a_failure(void)
{
    world w;
    world_open(&w);
    w.script = nonsense;
    workers_start(&w, 1);
    uint64_t id = put_any(&w);
    run_ms(&w, 100);
    CHECK_STR(mft_job_of(w.mf, id).error, "its handler returned 77, which is no verdict");
    run_ms(&w, 2000);
    CHECK_EQ(mft_state_of(w.mf, id), JZX_MF_JOB_DONE);
    world_close(&w);
}

static jzx_mf_verdict expect_wrong(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)ctx;
    jzx_mf_txn *txn = jzx_mf_run_txn(run);
    CHECK_OK(jzx_mf_generation_bump(txn, 1, 1));
    if (w->runs == 1) {
        jzx_mf_key key = jzx_mf_key_db(123);
        CHECK_OK(jzx_mf_expect(txn, &key, JZX_MF_PRESENT));
    }
    return JZX_MF_RUN_DONE;
}

static void test_operations_that_are_refused_make_the_job_fail(void)
{
    world w;
    world_open(&w);
    w.script = expect_wrong;
    workers_start(&w, 1);
    uint64_t id = put_any(&w);
    run_ms(&w, 100);
    mft_job job = mft_job_of(w.mf, id);
    CHECK_EQ(job.job.state, JZX_MF_JOB_SCHEDULED);
    CHECK_EQ(job.job.error_code, JZX_ERR_CONFLICT);
    CHECK_STR(job.error, jzx_strerror(JZX_ERR_CONFLICT));
    CHECK_EQ(mft_generation(w.mf), 0);
    run_ms(&w, 2000);
    CHECK_EQ(mft_state_of(w.mf, id), JZX_MF_JOB_DONE);
    CHECK_EQ(mft_generation(w.mf), 1);
    world_close(&w);
}

static jzx_mf_verdict say_too_much(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)w;
    (void)ctx;
    static char much[JZX_MF_PAYLOAD_MAX + 1];
    memset(much, 'x', sizeof much - 1);
    CHECK_EQ(jzx_mf_run_result(run, much, sizeof much), JZX_ERR_TOO_BIG);
    CHECK_EQ(jzx_mf_run_result(run, NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_OK(jzx_mf_run_result(run, NULL, 0));
    jzx_mf_run_progress(run, 1, 2, much);
    return jzx_mf_run_fail(run, 0, much);
}

static void test_texts_are_cut_and_results_that_are_too_big_refused(void)
{
    world w;
    world_open(&w);
    w.script = say_too_much;
    workers_start(&w, 1);
    uint64_t id = put_any(&w);
    run_ms(&w, 100);
    mft_job job = mft_job_of(w.mf, id);
    CHECK_EQ(job.job.state, JZX_MF_JOB_SCHEDULED);
    CHECK_EQ(strlen(job.error), JZX_MF_TEXT_MAX);
    world_close(&w);
}

static void forget(void *arg, const jzx_mf_receipt *receipt)
{
    (void)arg;
    CHECK_EQ(receipt->err, JZX_OK);
}

static jzx_mf_verdict steal_own_lease(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)ctx;
    CHECK_OK(jzx_mf_generation_bump(jzx_mf_run_txn(run), 1, 1));
    if (w->runs == 1) {
        jzx_mf_txn *txn = mft_begin(w->mf);
        CHECK_OK(mft_steal(txn, jzx_mf_run_job(run)));
        CHECK_OK(jzx_mf_commit_async(txn, forget, NULL));
    }
    return JZX_MF_RUN_DONE;
}

static void test_a_late_worker_is_fenced_and_changes_nothing(void)
{
    world w;
    world_open(&w);
    w.script = steal_own_lease;
    workers_start(&w, 2);
    uint64_t id = put_any(&w);
    run_ms(&w, 1000);
    mft_job job = mft_job_of(w.mf, id);
    CHECK_EQ(job.job.state, JZX_MF_JOB_DONE);
    CHECK_EQ(job.job.attempt, 2);
    CHECK_EQ(mft_generation(w.mf), 1);
    CHECK_EQ(w.runs, 2);
    world_close(&w);
}

static jzx_mf_verdict until_cancelled(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    if (w->runs > 1) {
        return JZX_MF_RUN_DONE;
    }
    uint64_t start = jzx_loop_now(ctx->loop);
    while (!jzx_mf_run_cancelled(run)) {
    }
    uint64_t took_ms = (jzx_loop_now(ctx->loop) - start) / NS_PER_MS;
    CHECK(took_ms >= 2900 && took_ms <= 3100);
    w->saw_cancel = true;
    return JZX_MF_RUN_DONE;
}

/* On one loop nobody can keep the lease while the handler runs: it must see so by itself. */
static void test_a_handler_sees_by_the_clock_that_its_lease_is_over(void)
{
    world w;
    world_open(&w);
    w.script = until_cancelled;
    workers_start(&w, 1);
    uint64_t id = put(&w, &(jzx_mf_job_spec){.kind = KIND, .lease_ms = 3000});
    run_ms(&w, 10000);
    CHECK(w.saw_cancel);
    mft_job job = mft_job_of(w.mf, id);
    CHECK_EQ(job.job.state, JZX_MF_JOB_DONE);
    CHECK_EQ(job.job.attempt, 2);
    world_close(&w);
}

static jzx_mf_verdict take_five_seconds_at_first(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    CHECK_EQ(jzx_mf_run_cancelled(run), 0);
    uint64_t end = jzx_loop_now(ctx->loop) + (w->runs == 1 ? 5000 * NS_PER_MS : 0);
    while (jzx_loop_now(ctx->loop) < end) {
    }
    return JZX_MF_RUN_DONE;
}

/* The second job waits for its worker while the first handler keeps the loop. */
static void test_a_job_whose_lease_is_over_is_not_begun(void)
{
    world w;
    world_open(&w);
    w.script = take_five_seconds_at_first;
    jzx_mf_job_spec spec = {.kind = KIND, .unique = JZX_MF_ANY, .lease_ms = 3000};
    uint64_t ids[2] = {put(&w, &spec), put(&w, &spec)};
    workers_start(&w, 2);
    run_ms(&w, 30000);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(mft_state_of(w.mf, ids[i]), JZX_MF_JOB_DONE);
    }
    CHECK_EQ(w.runs, 3); /* the first one was too late, and ran again */
    world_close(&w);
}

static void test_a_handler_sees_that_its_time_is_up(void)
{
    world w;
    world_open(&w);
    w.script = until_cancelled;
    workers_start(&w, 1);
    uint64_t id = put(&w, &(jzx_mf_job_spec){.kind = KIND, .lease_ms = 60000, .timeout_ms = 3000});
    run_ms(&w, 10000);
    CHECK(w.saw_cancel);
    CHECK_EQ(mft_job_of(w.mf, id).job.attempt, 2);
    world_close(&w);
}

static const jzt_test tests[] = {
    {"what_is_done_is_stored_with_its_result_and_its_operations",
     test_what_is_done_is_stored_with_its_result_and_its_operations},
    {"jobs_that_were_there_before_the_workers_are_run",
     test_jobs_that_were_there_before_the_workers_are_run},
    {"a_retry_waits_for_its_backoff_and_does_nothing_of_its_transaction",
     test_a_retry_waits_for_its_backoff_and_does_nothing_of_its_transaction},
    {"dead_is_for_good", test_dead_is_for_good},
    {"a_snooze_comes_again_when_it_said_and_does_not_count",
     test_a_snooze_comes_again_when_it_said_and_does_not_count},
    {"a_panic_fails_the_job_with_its_text_and_the_worker_goes_on",
     test_a_panic_fails_the_job_with_its_text_and_the_worker_goes_on},
    {"a_crash_of_a_guarded_handler_fails_its_job", test_a_crash_of_a_guarded_handler_fails_its_job},
    {"a_job_that_always_panics_dies_and_the_workers_live",
     test_a_job_that_always_panics_dies_and_the_workers_live},
    {"what_is_no_verdict_is_a_failure", test_what_is_no_verdict_is_a_failure},
    {"operations_that_are_refused_make_the_job_fail",
     test_operations_that_are_refused_make_the_job_fail},
    {"texts_are_cut_and_results_that_are_too_big_refused",
     test_texts_are_cut_and_results_that_are_too_big_refused},
    {"a_late_worker_is_fenced_and_changes_nothing",
     test_a_late_worker_is_fenced_and_changes_nothing},
    {"a_handler_sees_by_the_clock_that_its_lease_is_over",
     test_a_handler_sees_by_the_clock_that_its_lease_is_over},
    {"a_job_whose_lease_is_over_is_not_begun", test_a_job_whose_lease_is_over_is_not_begun},
    {"a_handler_sees_that_its_time_is_up", test_a_handler_sees_that_its_time_is_up},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
