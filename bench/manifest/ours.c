/* The manifest's side, through its public API. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "ours.h"

#include <jzx/manifest.h>

#include "mfb.h"
#include "sides.h"

#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PER_TXN = 10000 };

typedef struct ours {
    jzx_mf *mf;
    const mfb_run *run;
} ours;

jzx_mf *mfb_ours_open(const mfb_run *run, uint32_t flags, jzx_mf_recovery *report)
{
    jzx_mf *mf = NULL;
    jzx_mf_opts opts = {.flags = flags};
    jzx_mf_recovery own;
    jzx_mf_recovery *facts = report != NULL ? report : &own;
    jzx_err err = jzx_mf_open(mfb_path(run, "ours.mf"), &opts, &mf, facts);
    if (err != JZX_OK) {
        bench_fail("jzx_mf_open: %s: %s", jzx_strerror(err), facts->text);
    }
    return mf;
}

static void add_job(jzx_mf_txn *txn, const uint8_t key[MFB_KEY_BYTES])
{
    static const uint8_t payload[MFB_PAYLOAD_BYTES] = {1};
    jzx_mf_job_spec spec = {.kind = MFB_KIND,
                            .unique = JZX_MF_STATELY,
                            .key = jzx_mf_blob(key, MFB_KEY_BYTES),
                            .payload = jzx_mf_blob(payload, sizeof payload)};
    bench_check(jzx_mf_job_enqueue(txn, &spec, NULL), "jzx_mf_job_enqueue");
}

static void add_chunk(jzx_mf_txn *txn, uint64_t chunk)
{
    jzx_mf_chunk record = {.file_name = jzx_mf_text("0000000000000001.chunk"),
                           .generation = 1,
                           .size_bytes = 1048576,
                           .wal_begin = 10,
                           .wal_end = 20};
    bench_check(jzx_mf_chunk_put(txn, 1, chunk, &record), "jzx_mf_chunk_put");
}

static jzx_mf_txn *begin(jzx_mf *mf)
{
    jzx_mf_txn *txn = NULL;
    bench_check(jzx_mf_begin(mf, &txn), "jzx_mf_begin");
    return txn;
}

void mfb_ours_fill(jzx_mf *mf, const mfb_run *run, bool chunks)
{
    uint8_t key[MFB_KEY_BYTES];
    for (uint64_t i = 0; i < run->records;) {
        jzx_mf_txn *txn = begin(mf);
        for (uint64_t end = i + PER_TXN; i < end && i < run->records; i++) {
            mfb_key(run, 1000, i, key);
            add_job(txn, key);
            if (chunks) {
                add_chunk(txn, i + 1);
            }
        }
        bench_check(jzx_mf_commit(txn, 0, NULL), "jzx_mf_commit");
    }
}

static void same_size(MDB_txn *txn, const char *tree, size_t key_len, size_t value_len)
{
    MDB_dbi dbi;
    MDB_cursor *cursor;
    MDB_val key, value;
    if (mdb_dbi_open(txn, tree, 0, &dbi) != 0 || mdb_cursor_open(txn, dbi, &cursor) != 0 ||
        mdb_cursor_get(cursor, &key, &value, MDB_FIRST) != 0) {
        bench_fail("the manifest has no records in %s", tree);
    }
    if (key.mv_size != key_len || value.mv_size != value_len) {
        bench_fail("in %s the manifest has keys of %zu and values of %zu bytes, the raw side has "
                   "%zu and %zu: mfb.h is out of date",
                   tree, key.mv_size, value.mv_size, key_len, value_len);
    }
    mdb_cursor_close(cursor);
}

/* Both sides store as much, or the comparison is not one. */
static void check_sizes(const mfb_run *run)
{
    MDB_env *env;
    MDB_txn *txn;
    if (mdb_env_create(&env) != 0 || mdb_env_set_maxdbs(env, 64) != 0 ||
        mdb_env_open(env, mfb_path(run, "ours.mf"), MDB_NOSUBDIR | MDB_RDONLY | MDB_NOTLS, 0) !=
            0 ||
        mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) != 0) {
        bench_fail("the manifest's file cannot be opened with LMDB");
    }
    same_size(txn, "job", 8, MFB_JOB_BYTES);
    same_size(txn, "unique", MFB_UNIQUE_KEY_BYTES, 8 + MFB_SUM_BYTES);
    same_size(txn, "ready", MFB_READY_KEY_BYTES, MFB_SUM_BYTES);
    same_size(txn, "meta", 1, MFB_META_BYTES);
    same_size(txn, "chunk", 16, MFB_CHUNK_BYTES);
    mdb_txn_abort(txn);
    mdb_env_close(env);
}

jzx_mf *mfb_ours_create(const mfb_run *run)
{
    static const char *const files[] = {"ours.mf", "ours.mf-lock", "ours.mf-owner",
                                        "ours.mf-reserve"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        unlink(mfb_path(run, files[i]));
    }
    return mfb_ours_open(run, 0, NULL);
}

void mfb_ours_prepare(const mfb_run *run, mfb_sample *out)
{
    (void)out;
    jzx_mf *mf = mfb_ours_create(run);
    jzx_mf_txn *txn = begin(mf);
    jzx_mf_db db = {.name = jzx_mf_text("bench")};
    bench_check(jzx_mf_db_put(txn, 1, &db), "jzx_mf_db_put");
    bench_check(jzx_mf_commit(txn, 0, NULL), "jzx_mf_commit");
    mfb_ours_fill(mf, run, true);
    bench_check(jzx_mf_close(mf, 0), "jzx_mf_close");
    check_sizes(run);
}

static bool enqueue_one(void *arg, uint32_t client, uint64_t n)
{
    ours *self = arg;
    uint8_t key[MFB_KEY_BYTES];
    jzx_mf_receipt *receipt = NULL;
    mfb_key(self->run, client, n, key);
    jzx_mf_txn *txn = begin(self->mf);
    add_job(txn, key);
    bench_check(jzx_mf_commit(txn, 0, &receipt), "jzx_mf_commit");
    if (receipt->slots[0].outcome != JZX_MF_NEW) {
        bench_fail("manifest: a key came twice");
    }
    jzx_mf_receipt_free(receipt);
    return true;
}

static bool cycle_one(void *arg, uint32_t client, uint64_t n)
{
    ours *self = arg;
    jzx_mf_receipt *receipt = NULL;
    static const uint16_t kinds[] = {MFB_KIND};
    jzx_mf_claim claim = {.kinds = kinds, .kind_count = 1, .worker = client};
    (void)n;
    jzx_mf_txn *txn = begin(self->mf);
    bench_check(jzx_mf_job_claim(txn, &claim), "jzx_mf_job_claim");
    bench_check(jzx_mf_commit(txn, 0, &receipt), "jzx_mf_commit");
    if (receipt->job_count == 0) {
        jzx_mf_receipt_free(receipt);
        return false;
    }
    jzx_mf_lease lease = jzx_mf_lease_of(&receipt->jobs[0]);
    jzx_mf_receipt_free(receipt);
    txn = begin(self->mf);
    bench_check(jzx_mf_job_complete(txn, &lease, jzx_mf_text(NULL)), "jzx_mf_job_complete");
    bench_check(jzx_mf_commit(txn, 0, NULL), "jzx_mf_commit");
    return true;
}

static void clients_run(const mfb_run *run, bool refill, mfb_op_fn op, mfb_sample *out)
{
    jzx_mf_stats before, after;
    ours self = {.mf = mfb_ours_open(run, 0, NULL), .run = run};
    if (refill) {
        mfb_ours_fill(self.mf, run, false);
    }
    bench_check(jzx_mf_stats_read(self.mf, &before), "jzx_mf_stats_read");
    mfb_clients_run(run, op, &self, out);
    bench_check(jzx_mf_stats_read(self.mf, &after), "jzx_mf_stats_read");
    uint64_t commits = after.commits - before.commits;
    snprintf(out->note, sizeof out->note, "per_commit=%.1f",
             (double)out->ops / (double)(commits > 0 ? commits : 1));
    bench_check(jzx_mf_close(self.mf, 0), "jzx_mf_close");
}

void mfb_ours_enqueue(const mfb_run *run, mfb_sample *out)
{
    clients_run(run, false, enqueue_one, out);
}

void mfb_ours_cycle(const mfb_run *run, mfb_sample *out)
{
    clients_run(run, true, cycle_one, out);
}

typedef struct look {
    uint64_t id;
    uint64_t seen;
} look;

static jzx_err read_job(jzx_mf_snap *snap, void *arg)
{
    look *want = arg;
    jzx_mf_job job;
    jzx_err err = jzx_mf_job_get(snap, want->id, &job);
    want->seen = err == JZX_OK ? job.created_ms + ((const uint8_t *)job.payload.data)[0] : 0;
    return err;
}

static jzx_err read_chunk(jzx_mf_snap *snap, void *arg)
{
    look *want = arg;
    jzx_mf_chunk chunk;
    jzx_err err = jzx_mf_chunk_get(snap, 1, want->id, &chunk);
    want->seen = err == JZX_OK ? chunk.wal_end : 0;
    return err;
}

static uint64_t read_one(void *arg, uint64_t id)
{
    ours *self = arg;
    look want = {.id = id};
    jzx_mf_read_fn fn = self->run->variant == MFB_READ_CHUNK ? read_chunk : read_job;
    bench_check(jzx_mf_read(self->mf, fn, &want), "jzx_mf_read");
    return want.seen;
}

void mfb_ours_read(const mfb_run *run, mfb_sample *out)
{
    ours self = {.mf = mfb_ours_open(run, 0, NULL), .run = run};
    mfb_read_run(run, read_one, &self, out);
    bench_check(jzx_mf_close(self.mf, 0), "jzx_mf_close");
}
