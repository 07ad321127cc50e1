/* The records of a small store: how far its log got, what it measured, materials that go through
 * stages, what holds for a kind of jobs; and how all of it is deleted. Run: ./manifest_records */
#define _POSIX_C_SOURCE 200809L /* mkdtemp() */
#include <jzx/manifest.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STORE = 1, SHARD = 0, CHUNK = 1, LATENCY = 1, MERGE = 7, GATE = 1 };
#define APPLE jzx_mf_text("apple")

/* From one stage to the next exactly once: the second time it is not there any more. */
static jzx_err cut(jzx_mf_txn *txn)
{
    return jzx_mf_material_move(txn, APPLE, JZX_MF_MATERIAL_DISCOVERED, JZX_MF_MATERIAL_CUTTING, 0);
}

static jzx_err write_day(jzx_mf_txn *txn)
{
    jzx_mf_db db = {.name = jzx_mf_text("store")};
    jzx_mf_wal wal = {.last_applied_lsn = 4711};
    jzx_mf_chunk file = {.file_name = jzx_mf_text("chunk-1")};
    jzx_mf_material apple = {.id = APPLE, .status = JZX_MF_MATERIAL_DISCOVERED};
    jzx_mf_kind merge = {.name = jzx_mf_text("merge"), .limit = 2};
    jzx_mf_metric more = {.sum = 30, .min = 10, .max = 20, .count = 2};
    jzx_mf_claim claim = {.max = 1};
    jzx_mf_job_spec job = {
        .kind = MERGE, .scope = JZX_MF_SCOPE_DB, .db = STORE, .gate_class = GATE};
    jzx_err err;
    if ((err = jzx_mf_db_put(txn, STORE, &db)) != JZX_OK ||
        (err = jzx_mf_wal_put(txn, STORE, SHARD, &wal)) != JZX_OK ||
        (err = jzx_mf_chunk_put(txn, STORE, CHUNK, &file)) != JZX_OK ||
        (err = jzx_mf_material_put(txn, &apple)) != JZX_OK ||
        (err = jzx_mf_kind_put(txn, MERGE, &merge)) != JZX_OK ||
        (err = jzx_mf_metric_add(txn, STORE, LATENCY, 6, 0)) != JZX_OK ||
        (err = jzx_mf_metric_merge(txn, STORE, LATENCY, &more)) != JZX_OK ||
        (err = jzx_mf_job_enqueue(txn, &job, NULL)) != JZX_OK ||
        (err = jzx_mf_job_claim(txn, &claim)) != JZX_OK) { /* it holds the gate now */
        return err;
    }
    return cut(txn);
}

static jzx_err delete_day(jzx_mf_txn *txn)
{
    jzx_err err;
    return (err = jzx_mf_wal_del(txn, STORE, SHARD)) != JZX_OK     ? err
           : (err = jzx_mf_chunk_del(txn, STORE, CHUNK)) != JZX_OK ? err
           : (err = jzx_mf_material_del(txn, APPLE)) != JZX_OK     ? err
           : (err = jzx_mf_db_del(txn, STORE)) != JZX_OK           ? err
                                                                   : jzx_mf_sync(txn);
}

static jzx_err commit(jzx_mf *mf, jzx_err (*fill)(jzx_mf_txn *txn))
{
    jzx_mf_txn *txn = NULL;
    jzx_err err = jzx_mf_begin(mf, &txn);
    if (err == JZX_OK && (err = fill(txn)) == JZX_OK) {
        return jzx_mf_commit(txn, 0, NULL);
    }
    jzx_mf_abort(txn);
    return err;
}

static jzx_err show(jzx_mf_snap *snap, void *arg)
{
    jzx_mf_wal wal;
    jzx_mf_metric metric;
    jzx_mf_gate gate;
    jzx_mf_kind kind;
    jzx_err err;
    (void)arg;
    if ((err = jzx_mf_wal_get(snap, STORE, SHARD, &wal)) != JZX_OK ||
        (err = jzx_mf_metric_get(snap, STORE, LATENCY, &metric)) != JZX_OK ||
        (err = jzx_mf_gate_get(snap, STORE, GATE, &gate)) != JZX_OK ||
        (err = jzx_mf_kind_get(snap, MERGE, &kind)) != JZX_OK) {
        return err;
    }
    printf("log at %u; %u measured, %.0f to %.0f; job %u has the gate; %u of a kind at once\n",
           (unsigned)wal.last_applied_lsn, (unsigned)metric.count, metric.min, metric.max,
           (unsigned)gate.job_id, (unsigned)kind.limit);
    return JZX_OK;
}

int main(void)
{
    char dir[] = "/tmp/jzx-XXXXXX";
    jzx_mf *mf = NULL;
    if (mkdtemp(dir) == NULL || chdir(dir) != 0 || jzx_mf_open("s", NULL, &mf, NULL) != JZX_OK) {
        return 1;
    }
    jzx_err err = commit(mf, write_day);
    err = err == JZX_OK ? jzx_mf_read(mf, show, NULL) : err;
    printf("the same move again: %s\n", jzx_err_name(commit(mf, cut)));
    printf("deleted: %s\n", jzx_err_name(commit(mf, delete_day)));
    printf("and read: %s\n", jzx_err_name(jzx_mf_read(mf, show, NULL)));
    (void)(jzx_mf_close(mf, 0) + remove("s") + remove("s-lock") + remove("s-owner"));
    return rmdir(dir) == 0 && err == JZX_OK ? 0 : 1;
}
