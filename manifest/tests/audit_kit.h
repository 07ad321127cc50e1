/* What the tests of the audit share: one file with jobs in all states, made by the queue itself,
 * and an ear for what the audit says of it. */
#ifndef MFT_AUDIT_KIT_H
#define MFT_AUDIT_KIT_H

#include "audit.h"
#include "bytes.h"
#include "key.h"
#include "mf_fixture.h"
#include "queue.h"
#include "tables.h"

#include <jzx/manifest_watch.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t START_MS = 1000000;
enum { KIND = 1, LIMITED = 2, GATED = 3, PLAIN = 4, GATE = 7 };

static mft_dir dir;
static mfi_store *store;
static mfi_tx tx;

/* ---- The file. */

static inline void begin(void)
{
    REQUIRE_EQ(mdb_txn_begin(mfi_store_env(store), NULL, 0, &tx.view.txn), 0);
    tx.view.store = store;
    REQUIRE_OK(mfi_meta_load(&tx.view, &tx.meta));
    tx.seq = tx.meta.commit_seq + 1;
    tx.event_index = 0;
}

static inline void commit(void)
{
    tx.meta.commit_seq = tx.seq;
    tx.meta.last_ms = tx.now_ms;
    REQUIRE_OK(mfi_meta_store(&tx));
    REQUIRE_EQ(mdb_txn_commit(tx.view.txn), 0);
}

static inline void open_store(void)
{
    dir = mft_dir_make();
    mfi_store_opts opts = {.map_max = 64 << 20, .readers_max = 16, .now_ms = START_MS};
    mfi_store_facts facts;
    store = NULL;
    REQUIRE_OK(mfi_store_open(dir.file, &opts, &store, &facts));
    tx = (mfi_tx){.now_ms = START_MS, .lease_ms = START_MS, .boot = 1, .events_kept = 1000};
    tx.retention = (jzx_mf_retention){
        .done_ms = 1000000, .dead_ms = 1000000, .cancelled_ms = 1000000, .prune_max = 100};
}

static inline void close_store(void)
{
    mfi_buf_free(&tx.buf);
    mfi_store_close(store);
    mft_dir_remove(&dir);
}

static inline uint64_t enqueue(jzx_mf_job_spec spec)
{
    jzx_mf_slot slot = {0};
    uint64_t id = tx.meta.job_ids++;
    REQUIRE_OK(mfi_job_enqueue(&tx, id, &spec, &slot));
    REQUIRE_EQ(slot.outcome, JZX_MF_NEW);
    return id;
}

static inline jzx_err keep_lease(void *arg, const jzx_mf_job *job)
{
    *(jzx_mf_lease *)arg = jzx_mf_lease_of(job);
    return JZX_OK;
}

/* Claims the best job of a kind; 0: there is none. */
static inline uint64_t claim(uint16_t kind, jzx_mf_lease *out)
{
    jzx_mf_lease lease = {0};
    jzx_mf_claim wanted = {.kinds = &kind, .kind_count = 1, .max = 1};
    uint32_t count = 0;
    REQUIRE_OK(mfi_job_claim(&tx, &wanted, keep_lease, &lease, &count));
    if (out != NULL) {
        *out = lease;
    }
    return count == 0 ? 0 : lease.job_id;
}

/* Who is what in the file that all damages are done to. */
static struct {
    uint64_t active, blocked_slot, ready, scheduled, waiting, parent;
    uint64_t limited, blocked_limit, gated, blocked_gate;
    uint64_t done, dead, cancelled;
} ids;

static inline void build_tables(void)
{
    jzx_mf_db db = {.name = jzx_mf_text("first"), .wal_shards = 2};
    REQUIRE_OK(mfi_db_put(&tx, 300, &db));
    db.name = jzx_mf_text("second");
    REQUIRE_OK(mfi_db_put(&tx, 2, &db));
    jzx_mf_wal wal = {.last_applied_lsn = 5};
    REQUIRE_OK(mfi_wal_put(&tx, 300, 1, &wal));
    jzx_mf_chunk chunk = {.file_name = jzx_mf_text("c1"), .wal_end = 9};
    REQUIRE_OK(mfi_chunk_put(&tx, 300, 12, &chunk));
    jzx_mf_material material = {.id = jzx_mf_text("m1"), .status = 1};
    REQUIRE_OK(mfi_material_put(&tx, &material));
    jzx_mf_metric delta = {.sum = 3, .min = 1, .max = 2, .count = 2};
    REQUIRE_OK(mfi_metric_merge(&tx, 300, 1, &delta));
    uint64_t now = 0;
    REQUIRE_OK(mfi_generation_bump(&tx, 9, 3, &now));
    jzx_mf_cron cron = {
        .name = jzx_mf_text("nightly"), .schedule = jzx_mf_text("0 3 * * *"), .kind = KIND};
    REQUIRE_OK(mfi_cron_put(&tx, &cron));
    jzx_mf_kind kind = {.name = jzx_mf_text("limited"), .limit = 5, .key_limit = 1};
    REQUIRE_OK(mfi_kind_put(&tx, LIMITED, &kind));
}

static inline void build_queued(void)
{
    jzx_mf_job_spec spec = {.kind = KIND, .unique = JZX_MF_STATELY, .key = jzx_mf_text("a")};
    ids.active = enqueue(spec);
    REQUIRE_EQ(claim(KIND, NULL), ids.active);
    ids.blocked_slot = enqueue(spec);
    REQUIRE_EQ(claim(KIND, NULL), 0);
    spec.key = jzx_mf_text("b");
    ids.ready = enqueue(spec);
    spec.key = jzx_mf_text("c");
    spec.delay_ms = 60000;
    ids.scheduled = enqueue(spec);
    ids.parent = ids.ready;
    uint64_t parents[] = {ids.ready, ids.scheduled};
    ids.waiting = enqueue((jzx_mf_job_spec){.kind = PLAIN, .after = parents, .after_count = 2});
}

static inline void build_contended(void)
{
    jzx_mf_job_spec spec = {.kind = LIMITED, .unique = JZX_MF_ANY, .key = jzx_mf_text("k")};
    ids.limited = enqueue(spec);
    REQUIRE_EQ(claim(LIMITED, NULL), ids.limited);
    ids.blocked_limit = enqueue(spec);
    REQUIRE_EQ(claim(LIMITED, NULL), 0);
    spec = (jzx_mf_job_spec){.kind = GATED,
                             .scope = JZX_MF_SCOPE_DB,
                             .db = 300,
                             .gate_class = GATE,
                             .unique = JZX_MF_ANY};
    ids.gated = enqueue(spec);
    REQUIRE_EQ(claim(GATED, NULL), ids.gated);
    ids.blocked_gate = enqueue(spec);
    REQUIRE_EQ(claim(GATED, NULL), 0);
}

static inline void build_finished(void)
{
    jzx_mf_job_spec spec = {.kind = PLAIN, .unique = JZX_MF_ANY};
    jzx_mf_lease lease;
    ids.done = enqueue(spec);
    REQUIRE_EQ(claim(PLAIN, &lease), ids.done);
    REQUIRE_OK(mfi_job_complete(&tx, &lease, jzx_mf_text("fine")));
    ids.dead = enqueue(spec);
    REQUIRE_EQ(claim(PLAIN, &lease), ids.dead);
    jzx_mf_failure failure = {.text = jzx_mf_text("no"), .flags = JZX_MF_FAIL_FOR_GOOD};
    REQUIRE_OK(mfi_job_fail(&tx, &lease, &failure));
    ids.cancelled = enqueue(spec);
    REQUIRE_OK(mfi_job_cancel(&tx, ids.cancelled));
}

static inline void build(void)
{
    open_store();
    begin();
    tx.meta.boot = tx.boot;
    tx.meta.job_ids = 1000;
    build_tables();
    build_queued();
    build_contended();
    build_finished();
    commit();
}

/* ---- Looking. */

typedef struct sayings {
    char text[64][512];
    unsigned count;
    unsigned notices;
    unsigned end_after; /* sentences or notices; 0: never */
} sayings;
static sayings said;

static inline int hear(void *arg, const char *problem, uint64_t done, uint64_t total)
{
    sayings *s = arg;
    CHECK(done <= total);
    if (problem == NULL) {
        s->notices++;
    } else if (s->count < 64) {
        snprintf(s->text[s->count++], sizeof s->text[0], "%s", problem);
    } else {
        s->count++;
    }
    return s->end_after != 0 && s->count + s->notices >= s->end_after;
}

static inline jzx_err look(jzx_mf_check_report *report)
{
    unsigned end_after = said.end_after;
    said = (sayings){.end_after = end_after};
    *report = (jzx_mf_check_report){0};
    return mfi_check_view(&tx.view, hear, &said, report);
}

static inline void expect_said(const char *what, const char *text)
{
    for (unsigned i = 0; i < said.count && i < 64; i++) {
        if (strstr(said.text[i], text) != NULL) {
            return;
        }
    }
    CHECK_STR(what, "named");
    printf("    wanted: %s\n", text);
    for (unsigned i = 0; i < said.count && i < 64; i++) {
        printf("    said:   %s\n", said.text[i]);
    }
}

static inline void del(jzx_mf_key key)
{
    REQUIRE_OK(mfi_del(&tx, &key));
}

static inline void put_empty(jzx_mf_key key)
{
    REQUIRE_OK(mfi_put_empty(&tx, &key));
}

static inline jzx_mf_job get_job(uint64_t id)
{
    jzx_mf_key key = jzx_mf_key_job(id);
    jzx_mf_span value;
    jzx_mf_job job;
    REQUIRE_OK(mfi_get(&tx.view, &key, &value));
    REQUIRE_OK(mfi_decode_job(value, &job, NULL));
    job.id = id;
    return job;
}

static inline void put_job(const jzx_mf_job *job)
{
    jzx_mf_key key = jzx_mf_key_job(job->id);
    REQUIRE_OK(mfi_encode_job(job, NULL, &tx.buf));
    REQUIRE_OK(mfi_put(&tx, &key, tx.buf.bytes, tx.buf.len));
}

static inline void put_meta(void)
{
    jzx_mf_key key = mfi_key_meta();
    REQUIRE_OK(mfi_encode_meta(&tx.meta, NULL, &tx.buf));
    REQUIRE_OK(mfi_put(&tx, &key, tx.buf.bytes, tx.buf.len));
}
static inline void ids_lowered(void)
{
    tx.meta.job_ids = 3;
    put_meta();
}
static inline void foreign_order(void)
{
    tx.meta.byte_order = 0x04030201;
    put_meta();
}
static inline void foreign_page_size(void)
{
    tx.meta.page_size = 512;
    put_meta();
}
static inline void events_from_the_future(void)
{
    tx.meta.event_first = tx.meta.commit_seq + 2;
    put_meta();
}
static inline void migration_of_nothing(void)
{
    tx.meta.migrate_table = 99;
    put_meta();
}

/* A damage that both tests do. */
static inline void lose_lease(void)
{
    jzx_mf_job job = get_job(ids.active);
    del(mfi_key_lease(job.lease_until_ms, job.id));
}

#endif
