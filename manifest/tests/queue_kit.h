/* A queue on a real LMDB file, without a writer: operations run in child transactions of one big
 * one, which is thrown away at the end; time and boots are numbers. */
#ifndef TEST_QUEUE_KIT_H
#define TEST_QUEUE_KIT_H

#include "bytes.h"
#include "check.h"
#include "queue_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIT_START 1000000u
#define KIT_CLAIMED 64u

typedef struct kit {
    char dir[64];
    char path[96];
    mfi_store *store;
    MDB_txn *root;
    MDB_txn *child;
    mfi_tx tx;
    uint64_t next_id;
    jzx_mf_job claimed[KIT_CLAIMED]; /* of the last claim, without spans */
    uint32_t claimed_count;
} kit;

static void kit_txn(kit *k)
{
    REQUIRE_EQ(mdb_txn_begin(mfi_store_env(k->store), NULL, 0, &k->root), 0);
    k->tx.view.txn = k->root;
}

static inline void kit_open_sized(kit *k, uint64_t map_max)
{
    memset(k, 0, sizeof *k);
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(k->dir, sizeof k->dir, "%s/jzx_queue_XXXXXX", base);
    REQUIRE(mkdtemp(k->dir) != NULL);
    snprintf(k->path, sizeof k->path, "%s/manifest", k->dir);
    mfi_store_opts opts = {.map_max = map_max, .readers_max = 8, .now_ms = KIT_START};
    mfi_store_facts facts;
    REQUIRE_OK(mfi_store_open(k->path, &opts, &k->store, &facts));
    k->tx.view.store = k->store;
    k->tx.now_ms = KIT_START;
    k->tx.lease_ms = KIT_START;
    k->tx.boot = 1;
    k->tx.meta.job_ids = 1;
    k->tx.retention = (jzx_mf_retention){
        .done_ms = 1000, .dead_ms = 5000, .cancelled_ms = 2000, .prune_max = 256};
    k->next_id = 1;
    kit_txn(k);
}

static inline void kit_open(kit *k)
{
    kit_open_sized(k, 1u << 30);
}

/* Everything as at the start, in the same file. */
static inline void kit_reset(kit *k)
{
    mdb_txn_abort(k->root);
    kit_txn(k);
    k->tx.now_ms = KIT_START;
    k->tx.lease_ms = KIT_START;
    k->tx.boot = 1;
    k->tx.meta.job_ids = 1;
    k->tx.event_index = 0;
    k->next_id = 1;
}

static inline void kit_close(kit *k)
{
    static const char *const ends[] = {"", "-lock", "-owner"};
    mdb_txn_abort(k->root);
    mfi_store_close(k->store);
    mfi_buf_free(&k->tx.buf);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char file[128];
        snprintf(file, sizeof file, "%s%s", k->path, ends[i]);
        unlink(file);
    }
    CHECK_EQ(rmdir(k->dir), 0);
}

static inline void kit_begin(kit *k)
{
    REQUIRE_EQ(mdb_txn_begin(mfi_store_env(k->store), k->root, 0, &k->child), 0);
    k->tx.view.txn = k->child;
    k->tx.news = (mfi_news){0};
    k->tx.writes = 0;
}

/* What was refused wrote nothing: the writer counts on it. What failed otherwise is undone. */
static inline jzx_err kit_end(kit *k, jzx_err err)
{
    if (err == JZX_OK) {
        REQUIRE_EQ(mdb_txn_commit(k->child), 0);
    } else {
        mdb_txn_abort(k->child);
        CHECK(err == JZX_ERR_MAP_FULL || k->tx.writes == 0);
    }
    k->tx.view.txn = k->root;
    return err;
}
#define IN_CHILD(k, call) (kit_begin(k), kit_end(k, call))

static inline jzx_err kit_enqueue(kit *k, const jzx_mf_job_spec *spec, jzx_mf_slot *slot)
{
    REQUIRE_OK(mfi_job_check(spec));
    uint64_t id = k->next_id;
    k->next_id++;
    return IN_CHILD(k, mfi_job_enqueue(&k->tx, id, spec, slot));
}

static inline jzx_err kit_add_claimed(void *arg, const jzx_mf_job *job)
{
    kit *k = arg;
    REQUIRE(k->claimed_count < KIT_CLAIMED);
    k->claimed[k->claimed_count++] = *job;
    return JZX_OK;
}

static inline uint32_t kit_claim(kit *k, const jzx_mf_claim *claim)
{
    uint32_t count = 0;
    k->claimed_count = 0;
    CHECK_OK(IN_CHILD(k, mfi_job_claim(&k->tx, claim, kit_add_claimed, k, &count)));
    CHECK_EQ(count, k->claimed_count);
    return count;
}

/* A job that must be new; its id. */
static inline uint64_t kit_new(kit *k, const jzx_mf_job_spec *spec)
{
    jzx_mf_slot slot;
    REQUIRE_OK(kit_enqueue(k, spec, &slot));
    CHECK_EQ(slot.outcome, JZX_MF_NEW);
    return slot.id;
}

/* One job of any kind; 0: none. */
static inline uint64_t kit_claim_one(kit *k)
{
    jzx_mf_claim claim = {0};
    return kit_claim(k, &claim) == 1 ? k->claimed[0].id : 0;
}

/* The lease of the last claim. */
static inline jzx_mf_lease kit_lease(kit *k)
{
    REQUIRE(k->claimed_count > 0);
    return jzx_mf_lease_of(&k->claimed[0]);
}

static inline jzx_mf_lease kit_claim_lease(kit *k, uint64_t id)
{
    CHECK_EQ(kit_claim_one(k), id);
    return kit_lease(k);
}

static inline jzx_err kit_complete(kit *k, const jzx_mf_lease *lease)
{
    return IN_CHILD(k, mfi_job_complete(&k->tx, lease, jzx_mf_text("result")));
}

static inline jzx_err kit_fail(kit *k, const jzx_mf_lease *lease, uint32_t flags)
{
    jzx_mf_failure failure = {.text = jzx_mf_text("broken"), .code = -7, .flags = flags};
    return IN_CHILD(k, mfi_job_fail(&k->tx, lease, &failure));
}

static inline uint32_t kit_do(kit *k, jzx_err (*fn)(mfi_tx *, uint32_t, uint32_t *), uint32_t max)
{
    uint32_t count = 0;
    CHECK_OK(IN_CHILD(k, fn(&k->tx, max, &count)));
    return count;
}

static inline void kit_kind(kit *k, uint16_t kind, const jzx_mf_kind *rules)
{
    CHECK_OK(IN_CHILD(k, mfi_kind_put(&k->tx, kind, rules)));
}

/* A new process, which settles what the old one left. */
static inline mfi_orphans kit_boot(kit *k)
{
    mfi_orphans orphans = {0};
    uint32_t count;
    k->tx.boot++;
    k->tx.lease_ms = k->tx.now_ms;
    k->tx.meta.job_ids = k->next_id;
    CHECK_OK(IN_CHILD(k, mfi_queue_orphans(&k->tx, 1000, &orphans, &count)));
    CHECK_EQ(count, orphans.found);
    k->next_id = k->tx.meta.job_ids;
    return orphans;
}

static inline void kit_pass(kit *k, uint64_t ms)
{
    k->tx.now_ms += ms;
    k->tx.lease_ms += ms;
}

/* The record as it is now; its spans are valid until the next write. */
static inline jzx_mf_job kit_job(kit *k, uint64_t id)
{
    jzx_mf_job job = {0};
    jzx_mf_key key = jzx_mf_key_job(id);
    jzx_mf_span value;
    if (mfi_get(&k->tx.view, &key, &value) == JZX_OK) {
        REQUIRE_OK(mfi_decode_job(value, &job, NULL));
        job.id = id;
    }
    return job;
}

static inline uint32_t kit_state(kit *k, uint64_t id)
{
    return kit_job(k, id).state;
}

static inline uint64_t kit_gate_holder(kit *k, uint64_t db, uint16_t gate_class)
{
    jzx_mf_key key = jzx_mf_key_gate(db, gate_class);
    jzx_mf_span value;
    jzx_mf_gate gate = {0};
    if (mfi_get(&k->tx.view, &key, &value) == JZX_OK) {
        REQUIRE_OK(mfi_decode_gate(value, &gate, NULL));
    }
    return gate.job_id;
}

#endif
