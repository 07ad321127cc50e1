/* Goal: handlers that block on threads of a pool are kept, cancelled, fenced, limited and stopped
 * as the manifest says, and each job is done once. Method: a real system with a pool of four, the
 * manifest's writer on a thread of its own; handlers wait for the test, which looks at the manifest
 * meanwhile. Waits are for facts, bounded by WAIT_MS; leases are short where one must run out. */
#include "test_work_kit.h"

#include <jzx/lifecycle.h>
#include <jzx/supervisor.h>
#include <jzx/system.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum { KIND = 7, OTHER_KIND = 8, WAIT_MS = 20000, JOBS_MAX = 4096 };

typedef struct world {
    mft_dir dir;
    jzx_system *system;
    jzx_loop *loop;
    jzx_mf *mf;
    jzx_actor_id crew;
    jzx_mf_verdict (*script)(struct world *w, jzx_context *ctx, jzx_mf_run *run);
    atomic_uint runs;
    atomic_uint running;
    atomic_uint running_max;
    atomic_uint cancelled;
    atomic_uint key_clash;
    atomic_bool go; /* handlers that wait may return */
    atomic_uint runs_of[JOBS_MAX];
    atomic_uint in_key[16];
} world;

static void world_open(world *w)
{
    memset(w, 0, sizeof *w);
    w->dir = mft_dir_make();
    jzx_system_config config = {.pool_workers = 4};
    REQUIRE_OK(jzx_system_create(&config, &w->system));
    w->loop = jzx_system_loop(w->system);
    jzx_mf_opts opts = {.system = w->system};
    w->mf = mft_open(&w->dir, &opts);
}

static void nap(void)
{
    struct timespec ms = {0, 1000000};
    (void)nanosleep(&ms, NULL);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void step(world *w)
{
    CHECK_OK(jzx_loop_step(w->loop, 1000000));
}

static void run_for(world *w, uint64_t ms)
{
    uint64_t end = now_ms() + ms;
    while (now_ms() < end) {
        step(w);
    }
}

typedef bool (*fact_fn)(world *w, uint64_t arg);

static bool wait_for(world *w, fact_fn fact, uint64_t arg)
{
    uint64_t end = now_ms() + WAIT_MS;
    while (!fact(w, arg)) {
        if (now_ms() > end) {
            return false;
        }
        step(w);
    }
    return true;
}

static bool is_gone(world *w, uint64_t id)
{
    return jzx_actor_state(w->loop, id) == JZX_STATE_TERMINATED;
}

static bool is_done(world *w, uint64_t id)
{
    return mft_state_of(w->mf, id) == JZX_MF_JOB_DONE;
}

static bool has_runs(world *w, uint64_t count)
{
    return atomic_load(&w->runs) >= count;
}

static bool has_running(world *w, uint64_t count)
{
    return atomic_load(&w->running) == count;
}

static bool has_cancelled(world *w, uint64_t count)
{
    return atomic_load(&w->cancelled) >= count;
}

static void world_close(world *w)
{
    atomic_store(&w->go, true);
    if (w->crew != JZX_NOBODY) {
        CHECK_OK(jzx_stop(w->loop, w->crew));
        CHECK(wait_for(w, is_gone, w->crew));
    }
    CHECK_OK(jzx_mf_close(w->mf, 0));
    CHECK_OK(jzx_system_destroy(w->system));
    mft_dir_remove(&w->dir);
}

static jzx_mf_verdict handle(jzx_context *ctx, jzx_mf_run *run, void *arg)
{
    world *w = arg;
    uint32_t running = atomic_fetch_add(&w->running, 1) + 1;
    uint32_t max = atomic_load(&w->running_max);
    while (running > max && !atomic_compare_exchange_weak(&w->running_max, &max, running)) {
    }
    atomic_fetch_add(&w->runs, 1);
    atomic_fetch_add(&w->runs_of[jzx_mf_run_job(run)->id % JOBS_MAX], 1);
    jzx_mf_verdict verdict = w->script == NULL ? JZX_MF_RUN_DONE : w->script(w, ctx, run);
    atomic_fetch_sub(&w->running, 1);
    return verdict;
}

static void crew_start(world *w, uint32_t hands, uint32_t lease_ms)
{
    jzx_mf_work work = {.handler = handle,
                        .arg = w,
                        .kind = KIND,
                        .hands = hands,
                        .lease_ms = lease_ms,
                        .dispatcher = "pool"};
    REQUIRE_OK(jzx_mf_crew_spawn(w->loop, w->mf, &work, 1, &w->crew));
}

static uint64_t put_any(world *w)
{
    return mft_enqueue(w->mf, &(jzx_mf_job_spec){.kind = KIND, .unique = JZX_MF_ANY});
}

static void put_many(world *w, uint64_t *ids, uint32_t count)
{
    jzx_mf_txn *txn = mft_begin(w->mf);
    for (uint32_t i = 0; i < count; i++) {
        jzx_mf_job_spec spec = {.kind = KIND, .unique = JZX_MF_ANY};
        REQUIRE_OK(jzx_mf_job_enqueue(txn, &spec, &ids[i]));
    }
    REQUIRE_OK(jzx_mf_commit(txn, 0, NULL));
}

/* Waits until the test lets it go, or it is cancelled. */
static jzx_mf_verdict wait_for_go(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)ctx;
    for (uint64_t end = now_ms() + WAIT_MS; now_ms() < end && !atomic_load(&w->go); nap()) {
        if (jzx_mf_run_cancelled(run)) {
            atomic_fetch_add(&w->cancelled, 1);
            return jzx_mf_run_fail(run, 1, "stopped early");
        }
    }
    return JZX_MF_RUN_DONE;
}

static jzx_mf_verdict bump(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    (void)w;
    (void)ctx;
    CHECK_OK(jzx_mf_generation_bump(jzx_mf_run_txn(run), 1, 1));
    return JZX_MF_RUN_DONE;
}

static void test_a_thousand_jobs_over_four_hands_are_each_done_once(void)
{
    enum { COUNT = JZT_SANITIZED ? 300 : 1000 };
    world w;
    world_open(&w);
    w.script = bump;
    static uint64_t ids[COUNT];
    put_many(&w, ids, COUNT);
    crew_start(&w, 4, 0);
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
    crew_start(&w, 2, 200);
    uint64_t first = put_any(&w);
    uint64_t second = put_any(&w);
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
    crew_start(&w, 2, 200);
    uint64_t id = put_any(&w);
    uint64_t other = put_any(&w);
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
    crew_start(&w, 1, 200);
    uint64_t id = put_any(&w);
    CHECK(wait_for(&w, has_progress, id));
    mft_job job = mft_job_of(w.mf, id);
    CHECK_EQ(job.job.state, JZX_MF_JOB_ACTIVE);
    CHECK_EQ(job.job.progress_total, 10);
    CHECK_STR(job.progress, "began");
    world_close(&w);
}

/* The first job is taken away from its hand. That hand must hear of it by a heartbeat, which must
 * not keep the second one's from being done; and the first one runs again elsewhere. */
static void test_one_that_is_fenced_does_not_spoil_the_heartbeats_of_others(void)
{
    world w;
    world_open(&w);
    w.script = wait_for_go;
    crew_start(&w, 3, 200);
    uint64_t first = put_any(&w);
    uint64_t second = put_any(&w);
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

/* Each round of heartbeats finds one that is fenced; the fourth is kept all the same. */
static void test_several_that_are_fenced_do_not_cost_another_one_its_lease(void)
{
    world w;
    world_open(&w);
    w.script = wait_for_go;
    crew_start(&w, 4, 600);
    uint64_t ids[4];
    put_many(&w, ids, 4);
    CHECK(wait_for(&w, has_running, 4));
    jzx_mf_txn *txn = mft_begin(w.mf);
    CHECK_OK(jzx_mf_kind_pause(txn, KIND, 1));
    for (int i = 0; i < 3; i++) {
        mft_job stolen = mft_job_of(w.mf, ids[i]);
        CHECK_OK(mft_steal(txn, &stolen.job));
    }
    CHECK_OK(jzx_mf_commit(txn, 0, NULL));
    uint64_t begin = now_ms();
    CHECK(wait_for(&w, has_cancelled, 3));
    CHECK(JZT_SANITIZED || now_ms() - begin < 500); /* by the first heartbeat, not one by each */
    run_for(&w, 500);
    CHECK_EQ(atomic_load(&w.cancelled), 3);
    CHECK_EQ(mft_state_of(w.mf, ids[3]), JZX_MF_JOB_ACTIVE);
    world_close(&w);
}

static bool all_hands_busy(world *w, uint64_t arg)
{
    const world *other = (const world *)(uintptr_t)arg;
    return atomic_load(&w->running) == 3 && atomic_load(&other->running) == 1;
}

static void test_each_kind_has_as_many_jobs_at_once_as_hands(void)
{
    static world other;
    world w;
    world_open(&w);
    memset(&other, 0, sizeof other);
    w.script = other.script = wait_for_go;
    jzx_mf_work works[] = {
        {.handler = handle, .arg = &w, .kind = KIND, .hands = 3, .dispatcher = "pool"},
        {.handler = handle, .arg = &other, .kind = OTHER_KIND, .dispatcher = "pinned"},
    };
    REQUIRE_OK(jzx_mf_crew_spawn(w.loop, w.mf, works, 2, &w.crew));
    uint64_t ids[8];
    for (int i = 0; i < 8; i++) {
        ids[i] = mft_enqueue(
            w.mf, &(jzx_mf_job_spec){.kind = i < 6 ? KIND : OTHER_KIND, .unique = JZX_MF_ANY});
    }
    CHECK(wait_for(&w, all_hands_busy, (uint64_t)(uintptr_t)&other));
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
    crew_start(&w, 4, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(wait_for(&w, is_done, ids[i]));
    }
    CHECK_EQ(atomic_load(&w.key_clash), 0);
    CHECK(atomic_load(&w.running_max) <= 3);
    CHECK_EQ(atomic_load(&w.runs), COUNT);
    world_close(&w);
}

/* Stopping. */

static void test_a_crew_that_stops_tells_its_handlers_and_gives_back_uncounted(void)
{
    world w;
    world_open(&w);
    w.script = wait_for_go;
    crew_start(&w, 2, 0);
    uint64_t ids[4];
    for (int i = 0; i < 4; i++) {
        ids[i] = mft_enqueue(
            w.mf, &(jzx_mf_job_spec){.kind = KIND, .unique = JZX_MF_ANY, .max_attempts = 1});
    }
    CHECK(wait_for(&w, has_running, 2));
    CHECK_OK(jzx_stop(w.loop, w.crew));
    CHECK(wait_for(&w, is_gone, w.crew));
    CHECK_EQ(atomic_load(&w.cancelled), 2);
    CHECK_EQ(atomic_load(&w.runs), 2);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(mft_state_of(w.mf, ids[i]), JZX_MF_JOB_READY);
    }
    CHECK_STR(mft_job_of(w.mf, ids[0]).error, "stopped early");
    /* The attempt did not count: there is still the one that it may have. */
    atomic_store(&w.go, true);
    crew_start(&w, 2, 0);
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
    crew_start(&w, 1, 200);
    uint64_t id = put_any(&w);
    CHECK(wait_for(&w, has_running, 1));
    CHECK_OK(jzx_stop(w.loop, w.crew));
    run_for(&w, 450);
    CHECK_EQ(mft_state_of(w.mf, id), JZX_MF_JOB_ACTIVE);
    CHECK_EQ(mft_job_of(w.mf, id).job.attempt, 1);
    atomic_store(&w.go, true);
    CHECK(wait_for(&w, is_gone, w.crew));
    w.crew = JZX_NOBODY;
    CHECK_EQ(mft_state_of(w.mf, id), JZX_MF_JOB_DONE);
    world_close(&w);
}

static bool kill_foreman(world *w)
{
    jzx_child_info info;
    return jzx_actor_state(w->loop, w->crew) == JZX_STATE_RUNNING &&
           jzx_supervisor_child(w->loop, w->crew, "foreman", &info) == JZX_OK &&
           info.status == JZX_CHILD_RUNNING && jzx_kill(w->loop, info.actor) == JZX_OK;
}

static void test_a_foreman_that_is_restarted_keeps_the_leases_of_the_jobs_in_hand(void)
{
    world w;
    world_open(&w);
    w.script = wait_for_go;
    crew_start(&w, 2, 200);
    uint64_t ids[2];
    put_many(&w, ids, 2);
    CHECK(wait_for(&w, has_running, 2));
    run_for(&w, 20);
    CHECK(kill_foreman(&w));
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

static void test_a_foreman_killed_at_random_moments_loses_nothing_and_runs_nothing_twice(void)
{
    enum { COUNT = 300 };
    world w;
    world_open(&w);
    w.script = take_a_moment;
    jzt_rng rng = jzt_rng_seeded();
    static uint64_t ids[COUNT];
    put_many(&w, ids, COUNT);
    crew_start(&w, 4, 0);
    uint32_t kills = 0;
    for (uint64_t end = now_ms() + WAIT_MS; atomic_load(&w.runs) < COUNT && now_ms() < end;) {
        step(&w);
        if (kills < 8 && jzt_rng_below(&rng, 20) == 0) {
            kills += kill_foreman(&w) ? 1 : 0;
        }
    }
    CHECK(kills > 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(wait_for(&w, is_done, ids[i]));
        CHECK_EQ(atomic_load(&w.runs_of[ids[i] % JOBS_MAX]), 1);
    }
    world_close(&w);
}

static void test_a_shutdown_of_the_whole_system_ends_the_crew_in_order(void)
{
    world w;
    world_open(&w);
    w.script = wait_for_go;
    crew_start(&w, 4, 0);
    uint64_t ids[8];
    put_many(&w, ids, 8);
    CHECK(wait_for(&w, has_running, 4));
    jzx_shutdown_report report;
    CHECK_OK(jzx_stop(w.loop, w.crew));
    CHECK(wait_for(&w, is_gone, w.crew));
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

/* A plain loop, and a manifest with a thread of its own: two worlds, and the crew between them. */
static void test_a_crew_on_a_plain_loop_serves_a_manifest_on_its_own_thread(void)
{
    enum { COUNT = 50 };
    static world w;
    memset(&w, 0, sizeof w);
    w.dir = mft_dir_make();
    REQUIRE_OK(jzx_loop_create(NULL, &w.loop));
    w.mf = mft_open(&w.dir, NULL);
    uint64_t ids[COUNT];
    put_many(&w, ids, COUNT);
    jzx_mf_work work = {.handler = handle, .arg = &w, .kind = KIND, .hands = 3};
    REQUIRE_OK(jzx_mf_crew_spawn(w.loop, w.mf, &work, 1, &w.crew));
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(wait_for(&w, is_done, ids[i]));
    }
    CHECK_EQ(atomic_load(&w.runs), COUNT);
    CHECK_OK(jzx_stop(w.loop, w.crew));
    CHECK(wait_for(&w, is_gone, w.crew));
    CHECK_OK(jzx_mf_close(w.mf, 0));
    CHECK_OK(jzx_loop_destroy(w.loop));
    mft_dir_remove(&w.dir);
}

static const jzt_test tests[] = {
    {"a_thousand_jobs_over_four_hands_are_each_done_once",
     test_a_thousand_jobs_over_four_hands_are_each_done_once},
    {"a_lease_is_kept_as_long_as_the_handler_takes",
     test_a_lease_is_kept_as_long_as_the_handler_takes},
    {"a_cancel_reaches_the_handler_and_the_job_is_not_tried_again",
     test_a_cancel_reaches_the_handler_and_the_job_is_not_tried_again},
    {"progress_is_seen_in_the_job_while_it_runs", test_progress_is_seen_in_the_job_while_it_runs},
    {"one_that_is_fenced_does_not_spoil_the_heartbeats_of_others",
     test_one_that_is_fenced_does_not_spoil_the_heartbeats_of_others},
    {"several_that_are_fenced_do_not_cost_another_one_its_lease",
     test_several_that_are_fenced_do_not_cost_another_one_its_lease},
    {"a_foreman_that_is_restarted_keeps_the_leases_of_the_jobs_in_hand",
     test_a_foreman_that_is_restarted_keeps_the_leases_of_the_jobs_in_hand},
    {"each_kind_has_as_many_jobs_at_once_as_hands",
     test_each_kind_has_as_many_jobs_at_once_as_hands},
    {"jobs_with_the_same_key_run_one_after_the_other",
     test_jobs_with_the_same_key_run_one_after_the_other},
    {"a_crew_that_stops_tells_its_handlers_and_gives_back_uncounted",
     test_a_crew_that_stops_tells_its_handlers_and_gives_back_uncounted},
    {"a_handler_that_does_not_listen_is_waited_for_and_its_work_counts",
     test_a_handler_that_does_not_listen_is_waited_for_and_its_work_counts},
    {"a_foreman_killed_at_random_moments_loses_nothing_and_runs_nothing_twice",
     test_a_foreman_killed_at_random_moments_loses_nothing_and_runs_nothing_twice},
    {"a_shutdown_of_the_whole_system_ends_the_crew_in_order",
     test_a_shutdown_of_the_whole_system_ends_the_crew_in_order},
    {"a_crew_on_a_plain_loop_serves_a_manifest_on_its_own_thread",
     test_a_crew_on_a_plain_loop_serves_a_manifest_on_its_own_thread},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
