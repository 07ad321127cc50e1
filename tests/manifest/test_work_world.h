/* A real system with a pool of four threads, and the manifest's writer on a thread of its own;
 * handlers wait for the test, which looks at the manifest meanwhile. Waits are for facts, bounded
 * by WAIT_MS. */
#ifndef MFT_WORK_WORLD_H
#define MFT_WORK_WORLD_H

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

static inline void world_open(world *w)
{
    memset(w, 0, sizeof *w);
    w->dir = mft_dir_make();
    jzx_system_config config = {.pool_workers = 4};
    REQUIRE_OK(jzx_system_create(&config, &w->system));
    w->loop = jzx_system_loop(w->system);
    jzx_mf_opts opts = {.system = w->system};
    w->mf = mft_open(&w->dir, &opts);
}

static inline void nap(void)
{
    struct timespec ms = {0, 1000000};
    (void)nanosleep(&ms, NULL);
}

static inline uint64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static inline void step(world *w)
{
    CHECK_OK(jzx_loop_step(w->loop, 1000000));
}

static inline void run_for(world *w, uint64_t ms)
{
    uint64_t end = now_ms() + ms;
    while (now_ms() < end) {
        step(w);
    }
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
    if (w->crew != JZX_NOBODY) {
        CHECK_OK(jzx_stop(w->loop, w->crew));
        CHECK(wait_for(w, is_gone, w->crew));
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

static inline void crew_start(world *w, uint32_t hands, uint32_t lease_ms)
{
    jzx_mf_work work = {.handler = handle,
                        .arg = w,
                        .kind = KIND,
                        .hands = hands,
                        .lease_ms = lease_ms,
                        .dispatcher = "pool"};
    REQUIRE_OK(jzx_mf_crew_spawn(w->loop, w->mf, &work, 1, &w->crew));
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

static inline bool kill_foreman(world *w)
{
    jzx_child_info info;
    return jzx_actor_state(w->loop, w->crew) == JZX_STATE_RUNNING &&
           jzx_supervisor_child(w->loop, w->crew, "foreman", &info) == JZX_OK &&
           info.status == JZX_CHILD_RUNNING && jzx_kill(w->loop, info.actor) == JZX_OK;
}

#endif
