/* A real system with a pool of four threads, and the manifest's writer on a thread of its own;
 * handlers wait for the test, which looks at the manifest meanwhile. Waits are for facts, bounded
 * by WAIT_MS.
 *
 * The clock of leases and heartbeats is the test's: step() moves it on by a millisecond, but not
 * while the lease of a job that the test watches has not been kept for half its length. So however
 * late threads and disks are, nothing runs out that the producer keeps; and where it does not, time
 * stands still and the wait for what should happen is in vain. Between steps it creeps on, since
 * somebody may wait for it to pass. */
#ifndef MFT_WORK_WORLD_H
#define MFT_WORK_WORLD_H

#include "work_kit.h"

#include <jzx/env.h>
#include <jzx/lifecycle.h>
#include <jzx/supervisor.h>
#include <jzx/system.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum { KIND = 7, OTHER_KIND = 8, WAIT_MS = 120000, JOBS_MAX = 4096, WATCHED_MAX = 4, CREEP = 256 };

typedef struct world {
    mft_dir dir;
    jzx_system *system;
    jzx_loop *loop;
    jzx_mf *mf;
    jzx_actor_id workers;
    jzx_mf_verdict (*script)(struct world *w, jzx_context *ctx, jzx_mf_run *run);
    atomic_uint runs;
    atomic_uint running;
    atomic_uint running_max;
    atomic_uint cancelled;
    atomic_uint key_clash;
    atomic_bool go; /* handlers that wait may return */
    atomic_uint runs_of[JOBS_MAX];
    atomic_uint in_key[16];
    uint32_t lease_ms;
    uint64_t seen_kept;
    uint64_t watched[WATCHED_MAX]; /* jobs whose leases are to be kept; 0: none */
} world;

static inline uint64_t real_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline uint64_t now_ms(void)
{
    return real_ns() / 1000000;
}

/* The test's clock. */
static atomic_uint_fast64_t world_ahead_ns;

static inline uint64_t world_now_ns(void *ctx)
{
    (void)ctx;
    return real_ns() / CREEP + atomic_load(&world_ahead_ns);
}

static inline uint64_t world_ms(void)
{
    return world_now_ns(NULL) / 1000000;
}

/* So that the manifest's clock shows what the test's does. */
static inline uint64_t world_wall_ms(void *arg)
{
    (void)arg;
    return world_ms();
}

static inline void world_open(world *w)
{
    static jzx_env env;
    memset(w, 0, sizeof *w);
    w->dir = mft_dir_make();
    env = *jzx_env_epoll();
    env.now_ns = world_now_ns;
    jzx_config loop = {.env = &env};
    jzx_system_config config = {.loop = &loop, .pool_workers = 4};
    REQUIRE_OK(jzx_system_create(&config, &w->system));
    w->loop = jzx_system_loop(w->system);
    jzx_mf_opts opts = {.system = w->system, .wall_ms = world_wall_ms};
    w->mf = mft_open(&w->dir, &opts);
}

static inline void nap(void)
{
    struct timespec ms = {0, 1000000};
    (void)nanosleep(&ms, NULL);
}

/* Without its clock moving, but for what it creeps. */
static inline void step_still(world *w)
{
    CHECK_OK(jzx_loop_step(w->loop, 1000000));
}

/* When the lease of a job was granted or kept. */
static inline uint64_t kept_at(world *w, uint64_t id)
{
    mft_job job = mft_job_of(w->mf, id);
    return job.job.state == JZX_MF_JOB_ACTIVE ? job.job.lease_until_ms - w->lease_ms : UINT64_MAX;
}

static inline void step(world *w)
{
    step_still(w);
    for (uint32_t i = 0; i < WATCHED_MAX && w->watched[i] != 0; i++) {
        uint64_t kept = kept_at(w, w->watched[i]);
        if (kept != UINT64_MAX && kept + w->lease_ms / 2 <= world_ms()) {
            return;
        }
    }
    atomic_fetch_add(&world_ahead_ns, 1000000);
}

static inline void watch_leases(world *w, const uint64_t *ids, uint32_t count)
{
    for (uint32_t i = 0; i < WATCHED_MAX; i++) {
        w->watched[i] = i < count ? ids[i] : 0;
    }
}

/* On the test's clock. */
static inline void run_for(world *w, uint64_t ms)
{
    uint64_t until = world_ms() + ms;
    uint64_t end = now_ms() + WAIT_MS;
    while (world_ms() < until && now_ms() < end) {
        step(w);
    }
    CHECK(world_ms() >= until);
}

typedef bool (*fact_fn)(world *w, uint64_t arg);

static inline bool wait_for(world *w, fact_fn fact, uint64_t arg)
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

/* The same while no time passes. */
static inline bool wait_still_for(world *w, fact_fn fact, uint64_t arg)
{
    uint64_t end = now_ms() + WAIT_MS;
    while (!fact(w, arg) && now_ms() < end) {
        step_still(w);
    }
    return fact(w, arg);
}

static inline bool is_gone(world *w, uint64_t id)
{
    return jzx_actor_state(w->loop, id) == JZX_STATE_TERMINATED;
}

static inline bool is_done(world *w, uint64_t id)
{
    return mft_state_of(w->mf, id) == JZX_MF_JOB_DONE;
}

static inline bool has_runs(world *w, uint64_t count)
{
    return atomic_load(&w->runs) >= count;
}

static inline bool has_running(world *w, uint64_t count)
{
    return atomic_load(&w->running) == count;
}

static inline bool has_cancelled(world *w, uint64_t count)
{
    return atomic_load(&w->cancelled) >= count;
}

static inline void world_close(world *w)
{
    atomic_store(&w->go, true);
    watch_leases(w, NULL, 0);
    if (w->workers != JZX_NOBODY) {
        CHECK_OK(jzx_stop(w->loop, w->workers));
        CHECK(wait_for(w, is_gone, w->workers));
    }
    CHECK_OK(jzx_mf_close(w->mf, 0));
    CHECK_OK(jzx_system_destroy(w->system));
    mft_dir_remove(&w->dir);
}

static inline jzx_mf_verdict handle(jzx_context *ctx, jzx_mf_run *run, void *arg)
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

static inline void workers_start(world *w, uint32_t concurrency, uint32_t lease_ms)
{
    jzx_mf_work work = {.handler = handle,
                        .arg = w,
                        .kind = KIND,
                        .concurrency = concurrency,
                        .lease_ms = lease_ms,
                        .dispatcher = "pool"};
    w->lease_ms = lease_ms;
    REQUIRE_OK(jzx_mf_workers_spawn(w->loop, w->mf, &work, 1, &w->workers));
}

static inline uint64_t put_any(world *w)
{
    return mft_enqueue(w->mf, &(jzx_mf_job_spec){.kind = KIND, .unique = JZX_MF_ANY});
}

static inline void put_many(world *w, uint64_t *ids, uint32_t count)
{
    jzx_mf_txn *txn = mft_begin(w->mf);
    for (uint32_t i = 0; i < count; i++) {
        jzx_mf_job_spec spec = {.kind = KIND, .unique = JZX_MF_ANY};
        REQUIRE_OK(jzx_mf_job_enqueue(txn, &spec, &ids[i]));
    }
    REQUIRE_OK(jzx_mf_commit(txn, 0, NULL));
}

/* Waits until the test lets it go, or it is cancelled. */
static inline jzx_mf_verdict wait_for_go(world *w, jzx_context *ctx, jzx_mf_run *run)
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

static inline bool kill_producer(world *w)
{
    jzx_child_info info;
    return jzx_actor_state(w->loop, w->workers) == JZX_STATE_RUNNING &&
           jzx_supervisor_child(w->loop, w->workers, "producer", &info) == JZX_OK &&
           info.status == JZX_CHILD_RUNNING && jzx_kill(w->loop, info.actor) == JZX_OK;
}

#endif
