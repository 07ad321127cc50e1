/* LMDB as one would use it by hand for the same job: four trees (job, unique, ready, counter), keys
 * and values as large as the manifest's, default flags. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "group.h"
#include "mfb.h"
#include "sides.h"

#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JOB, UNIQUE, READY, COUNTER, CHUNK, TREES };

typedef struct raw {
    MDB_env *env;
    MDB_dbi trees[TREES];
    MDB_txn *txn;
    uint64_t next_id;
    bool child;      /* a transaction per request inside that of the batch */
    mfb_group group; /* with more than one client */
    const mfb_run *run;
    mfb_request *requests; /* one per client */
} raw;

static void check(int rc, const char *what)
{
    if (rc != 0) {
        bench_fail("raw %s: %s", what, mdb_strerror(rc));
    }
}

static void put_be64(uint8_t *out, uint64_t value)
{
    value = __builtin_bswap64(value);
    memcpy(out, &value, sizeof value);
}

static void raw_open(raw *self, const mfb_run *run)
{
    static const char *const names[TREES] = {"job", "unique", "ready", "counter", "chunk"};
    *self = (raw){.run = run, .next_id = 1};
    check(mdb_env_create(&self->env), "env_create");
    check(mdb_env_set_mapsize(self->env, (size_t)16 << 30), "set_mapsize");
    check(mdb_env_set_maxdbs(self->env, TREES), "set_maxdbs");
    check(mdb_env_open(self->env, mfb_path(run, "raw.mdb"), MDB_NOSUBDIR | MDB_NOTLS, 0600),
          "env_open");
    check(mdb_txn_begin(self->env, NULL, 0, &self->txn), "txn_begin");
    for (int i = 0; i < TREES; i++) {
        check(mdb_dbi_open(self->txn, names[i], MDB_CREATE, &self->trees[i]), "dbi_open");
    }
    MDB_stat stat;
    check(mdb_stat(self->txn, self->trees[JOB], &stat), "stat");
    self->next_id = stat.ms_entries + 1;
    check(mdb_txn_commit(self->txn), "txn_commit");
}

static void put(MDB_txn *txn, MDB_dbi tree, void *key, size_t key_len, void *value, size_t len)
{
    MDB_val k = {key_len, key}, v = {len, value};
    check(mdb_put(txn, tree, &k, &v, 0), "put");
}

static void enqueue(raw *self, MDB_txn *txn, const uint8_t *unique)
{
    uint8_t id[8], job[MFB_JOB_BYTES], meta[MFB_META_BYTES];
    uint8_t slot[MFB_UNIQUE_KEY_BYTES], ready[MFB_READY_KEY_BYTES];
    uint8_t holder[sizeof id + MFB_SUM_BYTES] = {0}, sum[MFB_SUM_BYTES] = {0};
    MDB_val key = {sizeof slot, slot}, there;
    memset(slot, 1, sizeof slot - MFB_KEY_BYTES);
    memcpy(slot + sizeof slot - MFB_KEY_BYTES, unique, MFB_KEY_BYTES);
    if (mdb_get(txn, self->trees[UNIQUE], &key, &there) != MDB_NOTFOUND) {
        bench_fail("raw: a key came twice");
    }
    put_be64(id, self->next_id);
    memset(job, 5, sizeof job);
    memcpy(job, unique, MFB_KEY_BYTES);
    memset(ready, 0, sizeof ready);
    put_be64(ready + 3, bench_now_ns() / 1000000u);
    memcpy(ready + sizeof ready - sizeof id, id, sizeof id);
    memset(meta, 3, sizeof meta);
    memcpy(meta, id, sizeof id);
    memcpy(holder, id, sizeof id);
    self->next_id++;
    put(txn, self->trees[COUNTER], "m", 1, meta, sizeof meta);
    put(txn, self->trees[JOB], id, sizeof id, job, sizeof job);
    put(txn, self->trees[UNIQUE], slot, sizeof slot, holder, sizeof holder);
    put(txn, self->trees[READY], ready, sizeof ready, sum, sizeof sum);
}

static void begin(void *arg)
{
    raw *self = arg;
    check(mdb_txn_begin(self->env, NULL, 0, &self->txn), "txn_begin");
}

static void apply(void *arg, mfb_request *request)
{
    raw *self = arg;
    MDB_txn *txn = self->txn;
    if (self->child) {
        check(mdb_txn_begin(self->env, self->txn, 0, &txn), "child begin");
    }
    enqueue(self, txn, request->key);
    if (self->child) {
        check(mdb_txn_commit(txn), "child commit");
    }
}

static void commit(void *arg)
{
    raw *self = arg;
    check(mdb_txn_commit(self->txn), "txn_commit");
}

void mfb_raw_prepare(const mfb_run *run, mfb_sample *out)
{
    raw self;
    uint8_t key[MFB_KEY_BYTES], chunk_key[16], chunk[MFB_CHUNK_BYTES];
    (void)out;
    unlink(mfb_path(run, "raw.mdb"));
    unlink(mfb_path(run, "raw.mdb-lock"));
    raw_open(&self, run);
    memset(chunk, 9, sizeof chunk);
    for (uint64_t i = 0; i < run->records;) {
        begin(&self);
        for (uint64_t end = i + 10000; i < end && i < run->records; i++) {
            mfb_key(run, 0, i, key);
            enqueue(&self, self.txn, key);
            put_be64(chunk_key, 1);
            put_be64(chunk_key + 8, i + 1);
            put(self.txn, self.trees[CHUNK], chunk_key, sizeof chunk_key, chunk, sizeof chunk);
        }
        commit(&self);
    }
    mdb_env_close(self.env);
}

static bool enqueue_one(void *arg, uint32_t client, uint64_t n)
{
    raw *self = arg;
    uint8_t key[MFB_KEY_BYTES];
    mfb_key(self->run, client, n, key);
    mfb_request *request = &self->requests[client];
    request->key = key;
    if (self->run->clients == 1) {
        begin(self);
        apply(self, request);
        commit(self);
    } else {
        mfb_group_do(&self->group, request);
    }
    return true;
}

static void enqueue_run(const mfb_run *run, bool child, mfb_sample *out)
{
    raw self;
    raw_open(&self, run);
    self.child = child;
    self.requests = calloc(run->clients, sizeof *self.requests);
    for (uint32_t i = 0; i < run->clients; i++) {
        sem_init(&self.requests[i].done, 0, 0);
    }
    mfb_engine engine = {begin, apply, commit, &self};
    if (run->clients > 1) {
        mfb_group_start(&self.group, &engine);
    }
    mfb_clients_run(run, enqueue_one, &self, out);
    if (run->clients > 1) {
        mfb_group_stop(&self.group);
        snprintf(out->note, sizeof out->note, "per_commit=%.1f",
                 (double)out->ops / (double)self.group.commits);
    }
    mdb_env_close(self.env);
    free(self.requests);
}

void mfb_raw_enqueue(const mfb_run *run, mfb_sample *out)
{
    enqueue_run(run, false, out);
}

void mfb_raw_enqueue_child(const mfb_run *run, mfb_sample *out)
{
    enqueue_run(run, true, out);
}

static uint64_t read_one(void *arg, uint64_t id)
{
    raw *self = arg;
    uint8_t key[16];
    bool chunk = self->run->variant == MFB_READ_CHUNK;
    put_be64(key, chunk ? 1 : id);
    put_be64(key + 8, id);
    MDB_val k = {chunk ? 16 : 8, key}, value;
    check(mdb_txn_renew(self->txn), "renew");
    check(mdb_get(self->txn, self->trees[chunk ? CHUNK : JOB], &k, &value), "get");
    uint64_t seen = ((const uint8_t *)value.mv_data)[value.mv_size - 1];
    mdb_txn_reset(self->txn);
    return seen;
}

void mfb_raw_read(const mfb_run *run, mfb_sample *out)
{
    raw self;
    raw_open(&self, run);
    check(mdb_txn_begin(self.env, NULL, MDB_RDONLY, &self.txn), "txn_begin");
    mdb_txn_reset(self.txn);
    mfb_read_run(run, read_one, &self, out);
    mdb_txn_abort(self.txn);
    mdb_env_close(self.env);
}
