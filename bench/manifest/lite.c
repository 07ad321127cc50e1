/* SQLite for the same job: one table with a unique and a ready index, WAL, synchronous=FULL; many
 * clients share one connection through group commit, as they do on the raw side. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "group.h"
#include "mfb.h"
#include "sides.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The states are the manifest's: 3 ready, 5 active, 6 done. */
static const char schema[] =
    "CREATE TABLE jobs(id INTEGER PRIMARY KEY, kind INTEGER, state INTEGER, priority INTEGER,"
    " created INTEGER, run_at INTEGER, started INTEGER, finished INTEGER, attempt INTEGER,"
    " max_attempts INTEGER, lease_until INTEGER, boot INTEGER, worker INTEGER, key BLOB,"
    " payload BLOB, result BLOB);"
    "CREATE UNIQUE INDEX jobs_queued ON jobs(kind, key) WHERE state <= 4;"
    "CREATE INDEX jobs_ready ON jobs(kind, priority DESC, run_at, id) WHERE state = 3;"
    "CREATE INDEX jobs_leased ON jobs(lease_until) WHERE state = 5;"
    "CREATE TABLE chunks(db INTEGER, chunk INTEGER, file_name TEXT, generation INTEGER,"
    " size INTEGER, wal_begin INTEGER, wal_end INTEGER, PRIMARY KEY(db, chunk)) WITHOUT ROWID;";

enum { ENQUEUE, CLAIM, COMPLETE, READ_JOB, READ_CHUNK, BEGIN, COMMIT, PUT_CHUNK, STATEMENTS };
static const char *const texts[STATEMENTS] = {
    "INSERT INTO jobs(kind, state, priority, created, run_at, attempt, max_attempts, key, payload)"
    " VALUES(7, 3, 0, ?1, ?1, 0, 20, ?2, ?3)",
    "UPDATE jobs SET state = 5, attempt = attempt + 1, boot = 1, worker = 1, started = ?1,"
    " lease_until = ?1 + 30000 WHERE id = (SELECT id FROM jobs WHERE state = 3 AND kind = 7"
    " ORDER BY priority DESC, run_at, id LIMIT 1) RETURNING id, attempt, payload",
    "UPDATE jobs SET state = 6, finished = ?1, lease_until = NULL WHERE id = ?2 AND attempt = ?3"
    " AND state = 5",
    "SELECT kind, state, priority, created, run_at, started, finished, attempt, max_attempts,"
    " lease_until, boot, worker, key, payload FROM jobs WHERE id = ?1",
    "SELECT file_name, generation, size, wal_begin, wal_end FROM chunks WHERE db = 1 AND chunk ="
    " ?1",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "INSERT INTO chunks VALUES(1, ?1, '0000000000000001.chunk', 1, 1048576, 10, 20)",
};

typedef struct lite {
    sqlite3 *db;
    sqlite3_stmt *prepared[STATEMENTS];
    mfb_group group;
    const mfb_run *run;
    mfb_request *requests;
} lite;

static void check(const lite *self, int rc, const char *what)
{
    if (rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW) {
        bench_fail("sqlite %s: %s", what, sqlite3_errmsg(self->db));
    }
}

static void run_text(const lite *self, const char *text)
{
    check(self, sqlite3_exec(self->db, text, NULL, NULL, NULL), text);
}

static void lite_open(lite *self, const mfb_run *run)
{
    *self = (lite){.run = run};
    check(self, sqlite3_open(mfb_path(run, "lite.db"), &self->db), "open");
    run_text(self, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL");
}

static void prepare_all(lite *self)
{
    for (int i = 0; i < STATEMENTS; i++) {
        check(self, sqlite3_prepare_v2(self->db, texts[i], -1, &self->prepared[i], NULL), texts[i]);
    }
}

static void lite_close(lite *self)
{
    for (int i = 0; i < STATEMENTS; i++) {
        sqlite3_finalize(self->prepared[i]);
    }
    sqlite3_close(self->db);
}

static void step(lite *self, int which)
{
    check(self, sqlite3_step(self->prepared[which]), texts[which]);
    sqlite3_reset(self->prepared[which]);
}

static void enqueue(lite *self, const void *key)
{
    static const uint8_t payload[MFB_PAYLOAD_BYTES] = {1};
    sqlite3_stmt *stmt = self->prepared[ENQUEUE];
    sqlite3_bind_int64(stmt, 1, (int64_t)(bench_now_ns() / 1000000u));
    sqlite3_bind_blob(stmt, 2, key, MFB_KEY_BYTES, SQLITE_STATIC);
    sqlite3_bind_blob(stmt, 3, payload, sizeof payload, SQLITE_STATIC);
    step(self, ENQUEUE);
}

static void claim(lite *self, mfb_request *request)
{
    sqlite3_stmt *stmt = self->prepared[CLAIM];
    sqlite3_bind_int64(stmt, 1, (int64_t)(bench_now_ns() / 1000000u));
    int rc = sqlite3_step(stmt);
    check(self, rc, "claim");
    request->found = rc == SQLITE_ROW;
    if (request->found) {
        request->id = (uint64_t)sqlite3_column_int64(stmt, 0);
        request->attempt = (uint32_t)sqlite3_column_int(stmt, 1);
    }
    sqlite3_reset(stmt);
}

static void complete(lite *self, const mfb_request *request)
{
    sqlite3_stmt *stmt = self->prepared[COMPLETE];
    sqlite3_bind_int64(stmt, 1, (int64_t)(bench_now_ns() / 1000000u));
    sqlite3_bind_int64(stmt, 2, (int64_t)request->id);
    sqlite3_bind_int64(stmt, 3, request->attempt);
    step(self, COMPLETE);
}

static void begin(void *arg)
{
    step(arg, BEGIN);
}

static void apply(void *arg, mfb_request *request)
{
    if (request->what == ENQUEUE) {
        enqueue(arg, request->key);
    } else if (request->what == CLAIM) {
        claim(arg, request);
    } else {
        complete(arg, request);
    }
}

static void commit(void *arg)
{
    step(arg, COMMIT);
}

static void fill(lite *self, uint64_t records, bool chunks)
{
    uint8_t key[MFB_KEY_BYTES];
    begin(self);
    for (uint64_t i = 0; i < records; i++) {
        mfb_key(self->run, 1000, i, key);
        enqueue(self, key);
        if (chunks) {
            sqlite3_bind_int64(self->prepared[PUT_CHUNK], 1, (int64_t)i + 1);
            step(self, PUT_CHUNK);
        }
    }
    commit(self);
}

static void create(lite *self, const mfb_run *run)
{
    unlink(mfb_path(run, "lite.db"));
    unlink(mfb_path(run, "lite.db-wal"));
    unlink(mfb_path(run, "lite.db-shm"));
    lite_open(self, run);
    run_text(self, schema);
    prepare_all(self);
}

void mfb_lite_prepare(const mfb_run *run, mfb_sample *out)
{
    lite self;
    (void)out;
    create(&self, run);
    fill(&self, run->records, true);
    lite_close(&self);
}

static void do_one(lite *self, mfb_request *request, uint32_t what)
{
    request->what = what;
    if (self->run->clients == 1) {
        begin(self);
        apply(self, request);
        commit(self);
    } else {
        mfb_group_do(&self->group, request);
    }
}

static bool enqueue_one(void *arg, uint32_t client, uint64_t n)
{
    lite *self = arg;
    uint8_t key[MFB_KEY_BYTES];
    mfb_key(self->run, client, n, key);
    self->requests[client].key = key;
    do_one(self, &self->requests[client], ENQUEUE);
    return true;
}

static bool cycle_one(void *arg, uint32_t client, uint64_t n)
{
    lite *self = arg;
    mfb_request *request = &self->requests[client];
    (void)n;
    do_one(self, request, CLAIM);
    if (!request->found) {
        return false;
    }
    do_one(self, request, COMPLETE);
    return true;
}

static void clients_run(const mfb_run *run, bool refill, mfb_op_fn op, mfb_sample *out)
{
    lite self;
    lite_open(&self, run);
    prepare_all(&self);
    if (refill) {
        fill(&self, run->records, false);
    }
    self.requests = calloc(run->clients, sizeof *self.requests);
    for (uint32_t i = 0; i < run->clients; i++) {
        sem_init(&self.requests[i].done, 0, 0);
    }
    mfb_engine engine = {begin, apply, commit, &self};
    if (run->clients > 1) {
        mfb_group_start(&self.group, &engine);
    }
    mfb_clients_run(run, op, &self, out);
    if (run->clients > 1) {
        mfb_group_stop(&self.group);
        snprintf(out->note, sizeof out->note, "per_commit=%.1f",
                 (double)out->ops / (double)self.group.commits);
    }
    lite_close(&self);
    free(self.requests);
}

void mfb_lite_enqueue(const mfb_run *run, mfb_sample *out)
{
    clients_run(run, false, enqueue_one, out);
}

void mfb_lite_cycle(const mfb_run *run, mfb_sample *out)
{
    clients_run(run, true, cycle_one, out);
}

static uint64_t read_one(void *arg, uint64_t id)
{
    lite *self = arg;
    bool chunk = self->run->variant == MFB_READ_CHUNK;
    sqlite3_stmt *stmt = self->prepared[chunk ? READ_CHUNK : READ_JOB];
    sqlite3_bind_int64(stmt, 1, (int64_t)id);
    if (sqlite3_step(stmt) != SQLITE_ROW) {
        bench_fail("sqlite: record %llu is not there", (unsigned long long)id);
    }
    uint64_t seen = 0;
    for (int i = 0; i < (chunk ? 5 : 12); i++) {
        seen += (uint64_t)sqlite3_column_int64(stmt, i);
    }
    if (!chunk) {
        seen += ((const uint8_t *)sqlite3_column_blob(stmt, 13))[0];
    }
    sqlite3_reset(stmt);
    return seen;
}

void mfb_lite_read(const mfb_run *run, mfb_sample *out)
{
    lite self;
    lite_open(&self, run);
    prepare_all(&self);
    mfb_read_run(run, read_one, &self, out);
    lite_close(&self);
}

void mfb_lite_recover_prepare(const mfb_run *run, mfb_sample *out)
{
    lite self;
    (void)out;
    if (access(mfb_path(run, "built"), F_OK) == 0) {
        return;
    }
    create(&self, run);
    fill(&self, run->records, false);
    lite_close(&self);
    FILE *built = fopen(mfb_path(run, "built"), "w");
    if (built != NULL) {
        fclose(built);
    }
}

/* A tenth of the jobs is leased by a process that then dies. */
static void arm(const mfb_run *run, mfb_sample *out)
{
    lite self;
    (void)out;
    lite_open(&self, run);
    if (run->variant == MFB_CRASHED) {
        run_text(&self, "UPDATE jobs SET state = 5, attempt = attempt + 1, boot = 1,"
                        " lease_until = 30000 WHERE id % 10 = 0");
        return;
    }
    lite_close(&self);
}

void mfb_lite_recover(const mfb_run *run, mfb_sample *out)
{
    lite self;
    mfb_sample ignored;
    if (!mfb_apart(arm, run, &ignored)) {
        bench_fail("sqlite: no leases could be taken");
    }
    bench_sample cost;
    bench_watch watch = bench_start();
    lite_open(&self, run);
    run_text(&self, "UPDATE jobs SET state = 3, lease_until = NULL WHERE state = 5");
    bench_stop(watch, run->records, &cost);
    out->ns = cost.wall_ns;
    out->cpu_ns = cost.cpu_ns;
    out->ops = run->records;
    snprintf(out->note, sizeof out->note, "orphans=%d;cpu_ms=%llu", sqlite3_changes(self.db),
             (unsigned long long)(cost.cpu_ns / 1000000u));
    lite_close(&self);
}
