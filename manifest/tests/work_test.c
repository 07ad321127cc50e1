/* Goal: a crew runs each job as its handler says, and every way in which a run can end is in the
 * manifest afterwards. Method: all of it on one simulated loop; time is virtual, and a handler that
 * "takes long" is one that looks at the clock often, which costs a millisecond a time. */
#include "work_kit.h"

#include <jzx/guard.h>
#include <jzx/lifecycle.h>
#include <jzx/monitor.h>
#include <jzx/supervisor.h>
#include <jzx/testkit.h>

#include <signal.h>
#include <stdbool.h>

#define KIND 7u
#define OTHER_KIND 8u
#define NS_PER_MS UINT64_C(1000000)

typedef struct world {
    jzx_kit *kit;
    mft_dir dir;
    jzx_mf *mf;
    jzx_actor_id crew;
    /* How handlers behave, and what they saw. */
    jzx_mf_verdict (*script)(struct world *w, jzx_context *ctx, jzx_mf_run *run);
    uint32_t runs;
    uint32_t runs_of[4096]; /* by job id */
    uint16_t kind_seen;
    bool saw_cancel;
    uint64_t order[64];
} world;

static uint64_t wall_ms(void *arg)
{
    const world *w = arg;
    return UINT64_C(1700000000000) + jzx_sim_now(w->kit->sim) / NS_PER_MS;
}

static void world_open(world *w)
{
    *w = (world){.dir = mft_dir_make()};
    jzx_sim_opts sim = {.cost_ns = NS_PER_MS / 10};
    jzx_kit_opts kit = {.sim = &sim};
    REQUIRE_OK(jzx_kit_open(&kit, &w->kit));
    jzx_mf_opts opts = {.loop = w->kit->loop, .wall_ms = wall_ms, .wall_arg = w};
    w->mf = mft_open(&w->dir, &opts);
}

static void run_ms(world *w, uint64_t ms)
{
    CHECK_OK(jzx_kit_run(w->kit, ms));
}

static void crew_stop(world *w)
{
    if (w->crew != JZX_NOBODY) {
        CHECK_OK(jzx_stop(w->kit->loop, w->crew));
        run_ms(w, 20000);
        CHECK_EQ(jzx_actor_state(w->kit->loop, w->crew), JZX_STATE_TERMINATED);
        w->crew = JZX_NOBODY;
    }
}

static void world_close(world *w)
{
    crew_stop(w);
    CHECK_OK(jzx_mf_close(w->mf, 0));
    CHECK(jzx_kit_close(w->kit) == NULL);
    mft_dir_remove(&w->dir);
}

static jzx_mf_verdict handle(jzx_context *ctx, jzx_mf_run *run, void *arg)
{
    world *w = arg;
    const jzx_mf_job *job = jzx_mf_run_job(run);
    w->order[w->runs % 64] = job->id;
    w->runs++;
    w->runs_of[job->id % 4096]++;
    w->kind_seen = job->kind;
    return w->script == NULL ? JZX_MF_RUN_DONE : w->script(w, ctx, run);
}

static void crew_start(world *w, uint32_t hands)
{
    jzx_mf_work work = {.handler = handle, .arg = w, .kind = KIND, .hands = hands};
    REQUIRE_OK(jzx_mf_crew_spawn(w->kit->loop, w->mf, &work, 1, &w->crew));
}

static void note_receipt(void *arg, const jzx_mf_receipt *receipt)
{
    CHECK_EQ(receipt->err, JZX_OK);
    uint64_t *id = arg;
    *id = receipt->slot_count > 0 ? receipt->slots[0].id : 0;
}

static void commit(world *w, jzx_mf_txn *txn, uint64_t *out_id)
{
    REQUIRE_OK(jzx_mf_commit_async(txn, note_receipt, out_id));
    run_ms(w, 5);
}

static uint64_t put(world *w, const jzx_mf_job_spec *spec)
{
    uint64_t id = 0;
    jzx_mf_txn *txn = mft_begin(w->mf);
    REQUIRE_OK(jzx_mf_job_enqueue(txn, spec, NULL));
    commit(w, txn, &id);
    return id;
}

static uint64_t put_any(world *w)
{
    return put(w, &(jzx_mf_job_spec){
                      .kind = KIND, .unique = JZX_MF_ANY, .jitter_percent = JZX_MF_NO_JITTER});
}

/* Verdicts. */

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
    crew_start(&w, 1);
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

static void test_jobs_that_were_there_before_the_crew_are_run(void)
{
    world w;
    world_open(&w);
    uint64_t first = put_any(&w);
    uint64_t second = put_any(&w);
    uint64_t other = put(&w, &(jzx_mf_job_spec){.kind = OTHER_KIND});
    crew_start(&w, 1);
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
    crew_start(&w, 1);
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
    crew_start(&w, 1);
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
    crew_start(&w, 1);
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

static void test_a_panic_fails_the_job_with_its_text_and_the_hand_goes_on(void)
{
    world w;
    world_open(&w);
    w.script = panic_first;
    crew_start(&w, 1);
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
    REQUIRE_OK(jzx_mf_crew_spawn(w.kit->loop, w.mf, &work, 1, &w.crew));
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

static void test_a_job_that_always_panics_dies_and_the_crew_lives(void)
{
    world w;
    world_open(&w);
    w.script = always_panic;
    crew_start(&w, 2);
    uint64_t ids[50];
    for (int i = 0; i < 50; i++) {
        ids[i] = put(&w, &(jzx_mf_job_spec){.kind = KIND, .unique = JZX_MF_ANY, .max_attempts = 3});
    }
    run_ms(&w, 60000);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(mft_state_of(w.mf, ids[i]), JZX_MF_JOB_DEAD);
    }
    CHECK_EQ(w.runs, 150);
    CHECK_EQ(jzx_actor_state(w.kit->loop, w.crew), JZX_STATE_RUNNING);
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
    crew_start(&w, 1);
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
    crew_start(&w, 1);
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
    crew_start(&w, 1);
    uint64_t id = put_any(&w);
    run_ms(&w, 100);
    mft_job job = mft_job_of(w.mf, id);
    CHECK_EQ(job.job.state, JZX_MF_JOB_SCHEDULED);
    CHECK_EQ(strlen(job.error), JZX_MF_TEXT_MAX);
    world_close(&w);
}

/* Leases. */

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

static void test_a_late_hand_is_fenced_and_changes_nothing(void)
{
    world w;
    world_open(&w);
    w.script = steal_own_lease;
    crew_start(&w, 2);
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
    crew_start(&w, 1);
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

/* The second job waits for its hand while the first handler keeps the loop. */
static void test_a_job_whose_lease_is_over_is_not_begun(void)
{
    world w;
    world_open(&w);
    w.script = take_five_seconds_at_first;
    jzx_mf_job_spec spec = {.kind = KIND, .unique = JZX_MF_ANY, .lease_ms = 3000};
    uint64_t ids[2] = {put(&w, &spec), put(&w, &spec)};
    crew_start(&w, 2);
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
    crew_start(&w, 1);
    uint64_t id = put(&w, &(jzx_mf_job_spec){.kind = KIND, .lease_ms = 60000, .timeout_ms = 3000});
    run_ms(&w, 10000);
    CHECK(w.saw_cancel);
    CHECK_EQ(mft_job_of(w.mf, id).job.attempt, 2);
    world_close(&w);
}

/* Kinds and hands. */

static void test_two_kinds_have_hands_of_their_own(void)
{
    world w;
    world_open(&w);
    world other = {.kit = w.kit};
    jzx_mf_work works[] = {
        {.handler = handle, .arg = &w, .kind = KIND, .hands = 2},
        {.handler = handle, .arg = &other, .kind = OTHER_KIND, .hands = 1},
    };
    REQUIRE_OK(jzx_mf_crew_spawn(w.kit->loop, w.mf, works, 2, &w.crew));
    for (int i = 0; i < 10; i++) {
        (void)put_any(&w);
        (void)put(&w, &(jzx_mf_job_spec){.kind = OTHER_KIND, .unique = JZX_MF_ANY});
    }
    run_ms(&w, 1000);
    CHECK_EQ(w.runs, 10);
    CHECK_EQ(w.kind_seen, KIND);
    CHECK_EQ(other.runs, 10);
    CHECK_EQ(other.kind_seen, OTHER_KIND);
    jzx_child_counts counts;
    REQUIRE_OK(jzx_supervisor_count(w.kit->loop, w.crew, &counts));
    CHECK_EQ(counts.active, 5); /* foreman, three hands, bell */
    world_close(&w);
}

static void test_what_makes_no_crew_is_refused(void)
{
    world w;
    world_open(&w);
    jzx_actor_id id = 77;
    jzx_loop *loop = w.kit->loop;
    jzx_mf_work good = {.handler = handle, .arg = &w, .kind = KIND};
    jzx_mf_work none = {.kind = KIND};
    jzx_mf_work zero = {.handler = handle};
    jzx_mf_work flags = {.handler = handle, .kind = KIND, .flags = JZX_SPAWN_STATELESS};
    jzx_mf_work many = {.handler = handle, .kind = KIND, .hands = 5000};
    jzx_mf_work where = {.handler = handle, .kind = KIND, .dispatcher = "nowhere"};
    jzx_mf_work twice[2] = {good, good};
    CHECK_EQ(jzx_mf_crew_spawn(NULL, w.mf, &good, 1, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_crew_spawn(loop, NULL, &good, 1, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_crew_spawn(loop, w.mf, NULL, 1, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_crew_spawn(loop, w.mf, &good, 0, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_crew_spawn(loop, w.mf, &none, 1, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_crew_spawn(loop, w.mf, &zero, 1, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_crew_spawn(loop, w.mf, &flags, 1, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_crew_spawn(loop, w.mf, twice, 2, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_crew_spawn(loop, w.mf, &many, 1, &id), JZX_ERR_TOO_BIG);
    CHECK(jzx_mf_crew_spawn(loop, w.mf, &where, 1, &id) != JZX_OK || id != 77);
    struct {
        jzx_mf_work work;
        uint64_t more;
    } newer = {good, 1};
    CHECK_EQ(jzx_mf_crew_spawn_sized(loop, w.mf, &newer.work, sizeof newer, 1, &id),
             JZX_ERR_NEWER_STRUCT);
    newer.more = 0;
    REQUIRE_OK(jzx_mf_crew_spawn_sized(loop, w.mf, &newer.work, sizeof newer, 1, &w.crew));
    uint64_t job = put_any(&w);
    run_ms(&w, 100);
    CHECK_EQ(mft_state_of(w.mf, job), JZX_MF_JOB_DONE);
    world_close(&w);
}

/* Ends. */

static void test_a_stopped_crew_takes_no_more_and_its_last_claim_gives_back(void)
{
    world w;
    world_open(&w);
    crew_start(&w, 2);
    run_ms(&w, 100);
    CHECK_OK(jzx_stop(w.kit->loop, w.crew));
    run_ms(&w, 100);
    CHECK_EQ(jzx_actor_state(w.kit->loop, w.crew), JZX_STATE_TERMINATED);
    w.crew = JZX_NOBODY;
    uint64_t id = put(&w, &(jzx_mf_job_spec){.kind = KIND, .max_attempts = 1});
    run_ms(&w, 1000);
    CHECK_EQ(w.runs, 0);
    CHECK_EQ(mft_state_of(w.mf, id), JZX_MF_JOB_READY);
    crew_start(&w, 1);
    run_ms(&w, 1000);
    CHECK_EQ(w.runs, 1);
    CHECK_EQ(mft_state_of(w.mf, id), JZX_MF_JOB_DONE);
    world_close(&w);
}

static jzx_mf_verdict stop_crew_and_fail(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    if (w->runs == 1) {
        CHECK_OK(jzx_stop(ctx->loop, w->crew));
        return jzx_mf_run_fail(run, 3, "was told to go");
    }
    return JZX_MF_RUN_DONE;
}

/* The bell may ring a moment after the handler returned: then the failure is an ordinary one. */
static void test_jobs_of_a_crew_that_stops_are_reported_before_it_is_gone(void)
{
    world w;
    world_open(&w);
    w.script = stop_crew_and_fail;
    uint64_t ids[20];
    for (int i = 0; i < 20; i++) {
        ids[i] = put_any(&w);
    }
    crew_start(&w, 4);
    run_ms(&w, 100);
    CHECK_EQ(jzx_actor_state(w.kit->loop, w.crew), JZX_STATE_TERMINATED);
    uint32_t done = 0;
    for (int i = 0; i < 20; i++) {
        mft_job job = mft_job_of(w.mf, ids[i]);
        CHECK(job.job.state != JZX_MF_JOB_ACTIVE);
        CHECK(job.job.state == JZX_MF_JOB_DONE || job.job.state == JZX_MF_JOB_READY ||
              job.job.state == JZX_MF_JOB_SCHEDULED);
        done += job.job.state == JZX_MF_JOB_DONE;
    }
    CHECK_EQ(done + 1, w.runs);
    crew_start(&w, 4);
    run_ms(&w, 5000);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(mft_state_of(w.mf, ids[i]), JZX_MF_JOB_DONE);
    }
    CHECK_EQ(w.runs, 21);
    world_close(&w);
}

/* True: it runs, and was killed. One that waits for its restart would be gone for good. */
static bool kill_child(world *w, const char *name)
{
    if (jzx_actor_state(w->kit->loop, w->crew) != JZX_STATE_RUNNING) {
        return false;
    }
    jzx_child_info info;
    REQUIRE_OK(jzx_supervisor_child(w->kit->loop, w->crew, name, &info));
    return info.status == JZX_CHILD_RUNNING && jzx_kill(w->kit->loop, info.actor) == JZX_OK;
}

enum { MANY = 200 };

/* Kills a child now and then while many jobs are run. All must be done once, and in much less time
 * than a lease takes to run out. */
static void kill_while_working(const char *name, uint32_t kills_max)
{
    world w;
    world_open(&w);
    jzt_rng rng = jzt_rng_seeded();
    uint64_t ids[MANY];
    jzx_mf_txn *txn = mft_begin(w.mf);
    for (int i = 0; i < MANY; i++) {
        jzx_mf_job_spec spec = {.kind = KIND, .unique = JZX_MF_ANY};
        REQUIRE_OK(jzx_mf_job_enqueue(txn, &spec, &ids[i]));
    }
    uint64_t first = 0;
    commit(&w, txn, &first);
    crew_start(&w, 3);
    uint32_t kills = 0;
    for (int round = 0; round < 4000 && w.runs < MANY; round++) {
        REQUIRE_OK(jzx_loop_step(w.kit->loop, 1000));
        if (kills < kills_max && jzt_rng_below(&rng, 8) == 0) {
            kills += kill_child(&w, name) ? 1 : 0;
        }
    }
    run_ms(&w, 1000);
    CHECK(kills >= 5);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(mft_state_of(w.mf, ids[i]), JZX_MF_JOB_DONE);
        CHECK_EQ(w.runs_of[ids[i] % 4096], 1);
    }
    world_close(&w);
}

static void test_a_foreman_that_is_killed_at_any_moment_loses_nothing(void)
{
    kill_while_working("foreman", 8);
}

static void test_hands_that_are_killed_lose_nothing(void)
{
    kill_while_working("hand 2", 100);
}

/* The runtime ends an actor that is killed while it waits for its restart. */
static void test_a_crew_without_a_foreman_ends(void)
{
    for (int twice = 0; twice <= 1; twice++) {
        world w;
        world_open(&w);
        crew_start(&w, 2);
        run_ms(&w, 10);
        jzx_child_info info;
        REQUIRE_OK(jzx_supervisor_child(w.kit->loop, w.crew, "foreman", &info));
        if (twice) {
            CHECK_OK(jzx_kill(w.kit->loop, info.actor));
            for (int i = 0; i < 4 && jzx_actor_state(w.kit->loop, info.actor) == JZX_STATE_RUNNING;
                 i++) {
                CHECK_OK(jzx_loop_step(w.kit->loop, 0));
            }
            (void)jzx_kill(w.kit->loop, info.actor);
        } else {
            CHECK_OK(jzx_stop(w.kit->loop, info.actor));
        }
        run_ms(&w, 1000);
        jzx_state state = jzx_actor_state(w.kit->loop, w.crew);
        CHECK(twice || state == JZX_STATE_TERMINATED);
        uint64_t job = put_any(&w);
        run_ms(&w, 1000);
        /* Either it was quick enough and goes on, or there is no crew at all. */
        CHECK_EQ(mft_state_of(w.mf, job),
                 state == JZX_STATE_RUNNING ? JZX_MF_JOB_DONE : JZX_MF_JOB_READY);
        w.crew = state == JZX_STATE_RUNNING ? w.crew : JZX_NOBODY;
        world_close(&w);
    }
}

static void test_a_crew_that_is_killed_leaves_its_jobs_to_their_leases(void)
{
    world w;
    world_open(&w);
    uint64_t ids[40];
    for (int i = 0; i < 40; i++) {
        ids[i] = put(&w, &(jzx_mf_job_spec){.kind = KIND, .unique = JZX_MF_ANY, .lease_ms = 2000});
    }
    crew_start(&w, 4);
    while (w.runs < 7) {
        REQUIRE_OK(jzx_loop_step(w.kit->loop, 1000));
    }
    CHECK_OK(jzx_kill(w.kit->loop, w.crew));
    run_ms(&w, 10);
    CHECK_EQ(jzx_actor_state(w.kit->loop, w.crew), JZX_STATE_TERMINATED);
    crew_start(&w, 4);
    run_ms(&w, 30000);
    for (int i = 0; i < 40; i++) {
        CHECK_EQ(mft_state_of(w.mf, ids[i]), JZX_MF_JOB_DONE);
    }
    world_close(&w);
}

static void test_a_manifest_that_is_closed_ends_the_crew(void)
{
    world w;
    world_open(&w);
    crew_start(&w, 2);
    run_ms(&w, 100);
    CHECK_OK(jzx_mf_close(w.mf, 0));
    run_ms(&w, 1000);
    CHECK_EQ(jzx_actor_state(w.kit->loop, w.crew), JZX_STATE_TERMINATED);
    CHECK(jzx_kit_close(w.kit) == NULL);
    mft_dir_remove(&w.dir);
}

static void test_a_foreman_that_is_killed_too_often_ends_the_crew(void)
{
    world w;
    world_open(&w);
    crew_start(&w, 2);
    for (int i = 0; i < 11; i++) {
        run_ms(&w, 10);
        CHECK_EQ(jzx_actor_state(w.kit->loop, w.crew), JZX_STATE_RUNNING);
        CHECK(kill_child(&w, "foreman"));
    }
    run_ms(&w, 1000);
    CHECK_EQ(jzx_actor_state(w.kit->loop, w.crew), JZX_STATE_TERMINATED);
    w.crew = JZX_NOBODY;
    world_close(&w);
}

static const jzt_test tests[] = {
    {"what_is_done_is_stored_with_its_result_and_its_operations",
     test_what_is_done_is_stored_with_its_result_and_its_operations},
    {"jobs_that_were_there_before_the_crew_are_run",
     test_jobs_that_were_there_before_the_crew_are_run},
    {"a_retry_waits_for_its_backoff_and_does_nothing_of_its_transaction",
     test_a_retry_waits_for_its_backoff_and_does_nothing_of_its_transaction},
    {"dead_is_for_good", test_dead_is_for_good},
    {"a_snooze_comes_again_when_it_said_and_does_not_count",
     test_a_snooze_comes_again_when_it_said_and_does_not_count},
    {"a_panic_fails_the_job_with_its_text_and_the_hand_goes_on",
     test_a_panic_fails_the_job_with_its_text_and_the_hand_goes_on},
    {"a_crash_of_a_guarded_handler_fails_its_job", test_a_crash_of_a_guarded_handler_fails_its_job},
    {"a_job_that_always_panics_dies_and_the_crew_lives",
     test_a_job_that_always_panics_dies_and_the_crew_lives},
    {"what_is_no_verdict_is_a_failure", test_what_is_no_verdict_is_a_failure},
    {"operations_that_are_refused_make_the_job_fail",
     test_operations_that_are_refused_make_the_job_fail},
    {"texts_are_cut_and_results_that_are_too_big_refused",
     test_texts_are_cut_and_results_that_are_too_big_refused},
    {"a_late_hand_is_fenced_and_changes_nothing", test_a_late_hand_is_fenced_and_changes_nothing},
    {"a_handler_sees_by_the_clock_that_its_lease_is_over",
     test_a_handler_sees_by_the_clock_that_its_lease_is_over},
    {"a_job_whose_lease_is_over_is_not_begun", test_a_job_whose_lease_is_over_is_not_begun},
    {"a_handler_sees_that_its_time_is_up", test_a_handler_sees_that_its_time_is_up},
    {"two_kinds_have_hands_of_their_own", test_two_kinds_have_hands_of_their_own},
    {"what_makes_no_crew_is_refused", test_what_makes_no_crew_is_refused},
    {"a_stopped_crew_takes_no_more_and_its_last_claim_gives_back",
     test_a_stopped_crew_takes_no_more_and_its_last_claim_gives_back},
    {"jobs_of_a_crew_that_stops_are_reported_before_it_is_gone",
     test_jobs_of_a_crew_that_stops_are_reported_before_it_is_gone},
    {"a_foreman_that_is_killed_at_any_moment_loses_nothing",
     test_a_foreman_that_is_killed_at_any_moment_loses_nothing},
    {"a_foreman_that_is_killed_too_often_ends_the_crew",
     test_a_foreman_that_is_killed_too_often_ends_the_crew},
    {"hands_that_are_killed_lose_nothing", test_hands_that_are_killed_lose_nothing},
    {"a_crew_without_a_foreman_ends", test_a_crew_without_a_foreman_ends},
    {"a_crew_that_is_killed_leaves_its_jobs_to_their_leases",
     test_a_crew_that_is_killed_leaves_its_jobs_to_their_leases},
    {"a_manifest_that_is_closed_ends_the_crew", test_a_manifest_that_is_closed_ends_the_crew},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
