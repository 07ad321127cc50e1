/* Goal: workers without memory, or with a manifest that refuses, lose no job and leak nothing.
 * Method: every allocation of the loop fails in turn, once and from then on; and a manifest whose
 * queue, file or disk is full. */
#include "mf.h"
#include "work_kit.h"

#include <jzx/lifecycle.h>
#include <jzx/observe.h>
#include <jzx/testkit.h>

#include <stdbool.h>

#define KIND 7u
#define NS_PER_MS UINT64_C(1000000)

enum { JOBS = 40 };

typedef struct scene {
    jzx_kit *kit;
    mft_dir dir;
    jzx_mf *mf;
    jzx_actor_id workers;
    uint32_t runs;
    uint32_t acked;
    uint32_t fill;  /* operations that a handler adds */
    jzx_err refuse; /* what the manifest says from the next handler on */
    uint64_t ids[JOBS];
} scene;

static uint64_t wall_ms(void *arg)
{
    const scene *s = arg;
    return UINT64_C(1700000000000) + jzx_sim_now(s->kit->sim) / NS_PER_MS;
}

static jzx_mf_verdict handle(jzx_context *ctx, jzx_mf_run *run, void *arg)
{
    scene *s = arg;
    (void)ctx;
    s->runs++;
    if (s->refuse != JZX_OK) {
        atomic_store(&s->mf->err, s->refuse); /* as the writer does when it takes no more */
    }
    for (uint32_t i = 0; i < s->fill; i++) {
        jzx_mf_txn *txn = jzx_mf_run_txn(run);
        if (txn == NULL || jzx_mf_generation_bump(txn, 1, 1) != JZX_OK) {
            return jzx_mf_run_fail(run, 1, "no memory");
        }
    }
    return JZX_MF_RUN_DONE;
}

static void note_id(void *arg, const jzx_mf_receipt *receipt)
{
    scene *s = arg;
    if (receipt->err == JZX_OK) {
        s->ids[s->acked++] = receipt->slots[0].id;
    }
}

static void put(scene *s)
{
    jzx_mf_txn *txn = NULL;
    if (jzx_mf_begin(s->mf, &txn) != JZX_OK) {
        return;
    }
    jzx_mf_job_spec spec = {.kind = KIND, .unique = JZX_MF_ANY};
    if (jzx_mf_job_enqueue(txn, &spec, NULL) != JZX_OK) {
        jzx_mf_abort(txn);
        return;
    }
    jzx_err refused = jzx_mf_commit_async(txn, note_id, s);
    (void)refused;
}

static void workers_start(scene *s, uint32_t concurrency)
{
    jzx_mf_work work = {.handler = handle, .arg = s, .kind = KIND, .concurrency = concurrency};
    jzx_err err = jzx_mf_workers_spawn(s->kit->loop, s->mf, &work, 1, &s->workers);
    s->workers = err == JZX_OK ? s->workers : JZX_NOBODY;
}

/* Jobs are done, or they are there; one that was done was run. */
static const char *judge(scene *s)
{
    uint32_t done = 0;
    for (uint32_t i = 0; i < s->acked; i++) {
        mft_job job = mft_job_of(s->mf, s->ids[i]);
        if (job.err != JZX_OK) {
            return "a job was lost";
        }
        done += job.job.state == JZX_MF_JOB_DONE ? 1 : 0;
    }
    if (done > s->runs) {
        return "a job was done and not run";
    }
    uint64_t bumps = mft_generation(s->mf);
    return bumps == done * s->fill ? NULL : "operations of a job were done without it, or twice";
}

static const char *scenario(jzx_kit *kit, void *arg)
{
    (void)arg;
    scene s = {.kit = kit, .fill = 1, .dir = mft_dir_make()};
    jzx_mf_opts opts = {.loop = kit->loop, .wall_ms = wall_ms, .wall_arg = &s};
    opts.flags = JZX_MF_NO_RESERVE;
    const char *wrong = NULL;
    if (jzx_mf_open(s.dir.file, &opts, &s.mf, NULL) == JZX_OK) {
        workers_start(&s, 2);
        for (int i = 0; i < 4; i++) {
            put(&s);
        }
        (void)!jzx_kit_run(kit, 90000);
        if (s.workers != JZX_NOBODY) {
            (void)jzx_stop(kit->loop, s.workers);
            (void)!jzx_kit_run(kit, 30000);
        }
        wrong = judge(&s);
        jzx_fault_arm_alloc(kit->fault, 0, 0); /* closing without memory takes its 30 seconds */
        (void)jzx_mf_close(s.mf, 0);
    }
    mft_dir_remove(&s.dir);
    return wrong;
}

static void test_workers_without_memory_lose_no_job_and_leak_nothing(void)
{
    jzx_sim_opts sim = {.seed = 1};
    jzx_kit_opts opts = {.sim = &sim};
    jzx_sweep_report report;
    const char *wrong = jzx_fault_sweep(&opts, scenario, NULL, 4000, &report);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK(report.allocs > 20);
}

static void scene_open(scene *s, uint32_t queue_cap)
{
    *s = (scene){.dir = mft_dir_make()};
    REQUIRE_OK(jzx_kit_open(NULL, &s->kit));
    jzx_mf_opts opts = {
        .loop = s->kit->loop, .wall_ms = wall_ms, .wall_arg = s, .queue_cap = queue_cap};
    s->mf = mft_open(&s->dir, &opts);
}

static void scene_close(scene *s)
{
    CHECK_OK(jzx_stop(s->kit->loop, s->workers));
    CHECK_OK(jzx_kit_run(s->kit, 20000));
    CHECK_EQ(jzx_actor_state(s->kit->loop, s->workers), JZX_STATE_TERMINATED);
    CHECK_OK(jzx_mf_close(s->mf, 0));
    CHECK(jzx_kit_close(s->kit) == NULL);
    mft_dir_remove(&s->dir);
}

/* Twenty workers report at once to a writer that takes two at a time. */
static void run_with_a_full_queue(scene *s, uint32_t fill)
{
    scene_open(s, 2);
    s->fill = fill;
    for (int i = 0; i < JOBS; i++) {
        put(s);
        CHECK_OK(jzx_kit_run(s->kit, 1));
    }
    CHECK_EQ(s->acked, JOBS);
    workers_start(s, 20);
    CHECK_OK(jzx_kit_run(s->kit, 60000));
    CHECK(judge(s) == NULL);
    for (int i = 0; i < JOBS; i++) {
        CHECK_EQ(mft_state_of(s->mf, s->ids[i]), JZX_MF_JOB_DONE);
    }
}

static void test_a_report_that_finds_the_queue_full_is_made_later(void)
{
    scene s;
    run_with_a_full_queue(&s, 0);
    CHECK_EQ(s.runs, JOBS);
    scene_close(&s);
}

/* A transaction that was refused is gone; its operations come again with the next run only. */
static void test_operations_that_find_the_queue_full_are_done_by_another_run(void)
{
    scene s;
    run_with_a_full_queue(&s, 1);
    CHECK(s.runs > JOBS);
    CHECK_EQ(mft_generation(s.mf), JOBS);
    scene_close(&s);
}

static jzx_reason ended;

static jzx_behavior_result boss(jzx_context *ctx, const jzx_message *msg)
{
    scene *s = ctx->state;
    const jzx_signal *signal = jzx_message_signal(msg);
    if (signal != NULL) {
        ended = *signal->reason;
    } else {
        workers_start(s, 2);
    }
    return JZX_BEHAVIOR_OK;
}

static void test_a_manifest_in_doubt_ends_the_workers_with_that_reason(void)
{
    scene s;
    scene_open(&s, 0);
    jzx_actor_id id = JZX_NOBODY;
    ended = (jzx_reason){.kind = 999};
    REQUIRE_OK(jzx_spawn(s.kit->loop, &(jzx_spawn_opts){.behavior = boss, .state = &s}, &id));
    REQUIRE_OK(jzx_send_u64(s.kit->loop, id, 0, 1));
    CHECK_OK(jzx_kit_run(s.kit, 100));
    put(&s);
    CHECK_OK(jzx_kit_run(s.kit, 100));
    CHECK_EQ(s.runs, 1);
    CHECK_EQ(ended.kind, 999);
    s.refuse = JZX_ERR_IN_DOUBT;
    put(&s);
    CHECK_OK(jzx_kit_run(s.kit, 1000));
    CHECK_EQ(s.runs, 2);
    CHECK_EQ(ended.kind, JZX_REASON_ESCALATED);
    CHECK(strncmp(ended.text, "child producer: ", 15) == 0);
    CHECK_EQ(jzx_actor_state(s.kit->loop, s.workers), JZX_STATE_TERMINATED);
    atomic_store(&s.mf->err, JZX_OK);
    CHECK_OK(jzx_mf_close(s.mf, 0));
    CHECK(jzx_kit_close(s.kit) == NULL);
    mft_dir_remove(&s.dir);
}

static uint64_t messages(const scene *s)
{
    jzx_counters counters;
    jzx_loop_counters(s->kit->loop, &counters);
    return counters.handled;
}

static void test_a_manifest_without_space_is_left_alone_and_tried_again_later(void)
{
    scene s;
    scene_open(&s, 0);
    s.refuse = JZX_ERR_NO_SPACE;
    put(&s);
    workers_start(&s, 2);
    CHECK_OK(jzx_kit_run(s.kit, 1000));
    CHECK_EQ(s.runs, 1);
    uint64_t before = messages(&s);
    CHECK_OK(jzx_kit_run(s.kit, 10000));
    CHECK(messages(&s) - before < 100);
    CHECK_EQ(mft_state_of(s.mf, s.ids[0]), JZX_MF_JOB_ACTIVE);
    s.refuse = JZX_OK;
    atomic_store(&s.mf->err, JZX_OK);
    put(&s);
    CHECK_OK(jzx_kit_run(s.kit, 6000));
    CHECK_EQ(mft_state_of(s.mf, s.ids[0]), JZX_MF_JOB_DONE);
    CHECK_EQ(mft_state_of(s.mf, s.ids[1]), JZX_MF_JOB_DONE);
    CHECK_EQ(s.runs, 2);
    scene_close(&s);
}

static const jzt_test tests[] = {
    {"a_manifest_without_space_is_left_alone_and_tried_again_later",
     test_a_manifest_without_space_is_left_alone_and_tried_again_later},
    {"a_report_that_finds_the_queue_full_is_made_later",
     test_a_report_that_finds_the_queue_full_is_made_later},
    {"operations_that_find_the_queue_full_are_done_by_another_run",
     test_operations_that_find_the_queue_full_are_done_by_another_run},
    {"a_manifest_in_doubt_ends_the_workers_with_that_reason",
     test_a_manifest_in_doubt_ends_the_workers_with_that_reason},
    {"workers_without_memory_lose_no_job_and_leak_nothing",
     test_workers_without_memory_lose_no_job_and_leak_nothing},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
