/* Workers on one simulated loop. */
#ifndef JZT_WORK_ONE_H
#define JZT_WORK_ONE_H

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
    jzx_actor_id workers;
    /* How handlers behave, and what they saw. */
    jzx_mf_verdict (*script)(struct world *w, jzx_context *ctx, jzx_mf_run *run);
    uint32_t runs;
    uint32_t runs_of[4096]; /* by job id */
    uint16_t kind_seen;
    bool saw_cancel;
    uint64_t order[64];
} world;

static inline uint64_t wall_ms(void *arg)
{
    const world *w = arg;
    return UINT64_C(1700000000000) + jzx_sim_now(w->kit->sim) / NS_PER_MS;
}

static inline void world_open(world *w)
{
    *w = (world){.dir = mft_dir_make()};
    jzx_sim_opts sim = {.cost_ns = NS_PER_MS / 10};
    jzx_kit_opts kit = {.sim = &sim};
    REQUIRE_OK(jzx_kit_open(&kit, &w->kit));
    jzx_mf_opts opts = {.loop = w->kit->loop, .wall_ms = wall_ms, .wall_arg = w};
    w->mf = mft_open(&w->dir, &opts);
}

static inline void run_ms(world *w, uint64_t ms)
{
    CHECK_OK(jzx_kit_run(w->kit, ms));
}

static inline void workers_stop(world *w)
{
    if (w->workers != JZX_NOBODY) {
        CHECK_OK(jzx_stop(w->kit->loop, w->workers));
        run_ms(w, 20000);
        CHECK_EQ(jzx_actor_state(w->kit->loop, w->workers), JZX_STATE_TERMINATED);
        w->workers = JZX_NOBODY;
    }
}

static inline void world_close(world *w)
{
    workers_stop(w);
    CHECK_OK(jzx_mf_close(w->mf, 0));
    CHECK(jzx_kit_close(w->kit) == NULL);
    mft_dir_remove(&w->dir);
}

static inline jzx_mf_verdict handle(jzx_context *ctx, jzx_mf_run *run, void *arg)
{
    world *w = arg;
    const jzx_mf_job *job = jzx_mf_run_job(run);
    w->order[w->runs % 64] = job->id;
    w->runs++;
    w->runs_of[job->id % 4096]++;
    w->kind_seen = job->kind;
    return w->script == NULL ? JZX_MF_RUN_DONE : w->script(w, ctx, run);
}

static inline void workers_start(world *w, uint32_t concurrency)
{
    jzx_mf_work work = {.handler = handle, .arg = w, .kind = KIND, .concurrency = concurrency};
    REQUIRE_OK(jzx_mf_workers_spawn(w->kit->loop, w->mf, &work, 1, &w->workers));
}

static inline void note_receipt(void *arg, const jzx_mf_receipt *receipt)
{
    CHECK_EQ(receipt->err, JZX_OK);
    uint64_t *id = arg;
    *id = receipt->slot_count > 0 ? receipt->slots[0].id : 0;
}

static inline void commit(world *w, jzx_mf_txn *txn, uint64_t *out_id)
{
    REQUIRE_OK(jzx_mf_commit_async(txn, note_receipt, out_id));
    run_ms(w, 5);
}

static inline uint64_t put(world *w, const jzx_mf_job_spec *spec)
{
    uint64_t id = 0;
    jzx_mf_txn *txn = mft_begin(w->mf);
    REQUIRE_OK(jzx_mf_job_enqueue(txn, spec, NULL));
    commit(w, txn, &id);
    return id;
}

static inline uint64_t put_any(world *w)
{
    return put(w, &(jzx_mf_job_spec){
                      .kind = KIND, .unique = JZX_MF_ANY, .jitter_percent = JZX_MF_NO_JITTER});
}

#endif
