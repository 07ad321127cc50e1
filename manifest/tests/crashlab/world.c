#include "world.h"

#include "snap.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAP_MAX = 256 << 20 };

static jzx_kit *kit;

static uint64_t long_ago(void *arg)
{
    (void)arg;
    return 0; /* then the manifest goes on where its last commit was */
}

static jzx_kit *the_kit(void)
{
    if (!kit) {
        jzx_sim_opts sim = {.seed = 1, .cost_ns = JZX_SIM_NO_COST};
        jzx_kit_opts opts = {.sim = &sim};
        if (jzx_kit_open(&opts, &kit) != JZX_OK) {
            fprintf(stderr, "crashlab: no loop\n");
            abort();
        }
    }
    return kit;
}

jzx_err cl_world_open(const char *path, uint32_t flags, jzx_mf **out, jzx_mf_recovery *report)
{
    jzx_mf_opts opts = {.loop = the_kit()->loop,
                        .map_max = MAP_MAX,
                        .reserve_bytes = 64 << 10,
                        .readers_max = 32,
                        .flags = flags,
                        .wall_ms = long_ago};
    jzx_err err = jzx_mf_open(path, &opts, out, report);
    if (err == JZX_OK && !(flags & JZX_MF_READONLY)) {
        cl_world_settle();
    }
    return err;
}

jzx_err cl_world_close(jzx_mf *mf)
{
    return jzx_mf_close(mf, 0);
}

void cl_world_settle(void)
{
    if (jzx_loop_run_until_idle(the_kit()->loop) != JZX_OK) {
        fprintf(stderr, "crashlab: the loop does not come to rest\n");
        abort();
    }
}

typedef struct answer {
    bool came;
    jzx_err err;
    uint64_t seq;
    uint64_t id;
} answer;

static void answered(void *arg, const jzx_mf_receipt *receipt)
{
    answer *a = arg;
    a->came = true;
    a->err = receipt->err;
    a->seq = receipt->seq;
    a->id = receipt->slot_count && receipt->err == JZX_OK ? receipt->slots[0].id : 0;
}

jzx_err cl_world_commit(jzx_mf_txn *txn, uint64_t *out_seq, uint64_t *out_id)
{
    answer a = {.came = false};
    jzx_err err = jzx_mf_commit_async(txn, answered, &a);
    if (err != JZX_OK) {
        return err;
    }
    cl_world_settle();
    if (!a.came) {
        fprintf(stderr, "crashlab: a request was not answered\n");
        abort();
    }
    if (out_seq) {
        *out_seq = a.seq;
    }
    if (out_id) {
        *out_id = a.id;
    }
    return a.err;
}

/* ---- from inside a snapshot */

/* LMDB keeps the tables in the order of their names. */
static int by_name(const void *a, const void *b)
{
    return strcmp(jzx_mf_table_name(*(const uint32_t *)a), jzx_mf_table_name(*(const uint32_t *)b));
}

typedef struct scan {
    const char *table;
    cl_row_fn fn;
    void *arg;
} scan;

static jzx_err scan_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    scan *s = arg;
    MDB_val k = {.mv_size = key.len}, v = {.mv_size = value.len};
    memcpy(&k.mv_data, &key.data, sizeof key.data);
    memcpy(&v.mv_data, &value.data, sizeof value.data);
    s->fn(s->arg, s->table, k, v);
    return JZX_OK;
}

static jzx_err scan_all(jzx_mf_snap *snap, void *arg)
{
    uint32_t tables[JZX_MF_TABLES];
    for (uint32_t i = 0; i < JZX_MF_TABLES; i++) {
        tables[i] = i;
    }
    qsort(tables, JZX_MF_TABLES, sizeof tables[0], by_name);
    scan *s = arg;
    jzx_err err = JZX_OK;
    for (uint32_t i = 0; err == JZX_OK && i < JZX_MF_TABLES; i++) {
        s->table = jzx_mf_table_name(tables[i]);
        jzx_mf_key from = {.table = tables[i]};
        err = mfi_walk(&snap->view, &from, 0, scan_row, s);
    }
    return err;
}

jzx_err cl_world_rows(jzx_mf *mf, cl_row_fn fn, void *arg)
{
    scan s = {NULL, fn, arg};
    return jzx_mf_read(mf, scan_all, &s);
}

typedef struct digesting {
    cl_digest digest;
    uint64_t seq;
} digesting;

static void digest_row(void *arg, const char *table, MDB_val key, MDB_val value)
{
    cl_digest_row(arg, table, CL_COUNTERS, key, value);
}

static jzx_err digest_all(jzx_mf_snap *snap, void *arg)
{
    digesting *d = arg;
    d->seq = jzx_mf_snap_seq(snap);
    scan s = {NULL, digest_row, &d->digest};
    return scan_all(snap, &s);
}

jzx_err cl_world_digest(jzx_mf *mf, cl_digest *out, uint64_t *out_seq)
{
    digesting d = {.seq = 0};
    jzx_err err = jzx_mf_read(mf, digest_all, &d);
    *out = d.digest;
    if (out_seq) {
        *out_seq = d.seq;
    }
    return err;
}
