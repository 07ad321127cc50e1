/* Goal: a sound file has no problems, and every way in which one row can be wrong is named.
 * Method: one file with jobs in all states, made by the queue itself. Each damage is done to one
 * row inside a write transaction, looked at from there, and rolled back. */
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

static void begin(void)
{
    REQUIRE_EQ(mdb_txn_begin(mfi_store_env(store), NULL, 0, &tx.view.txn), 0);
    tx.view.store = store;
    REQUIRE_OK(mfi_meta_load(&tx.view, &tx.meta));
    tx.seq = tx.meta.commit_seq + 1;
    tx.event_index = 0;
}

static void commit(void)
{
    tx.meta.commit_seq = tx.seq;
    tx.meta.last_ms = tx.now_ms;
    REQUIRE_OK(mfi_meta_store(&tx));
    REQUIRE_EQ(mdb_txn_commit(tx.view.txn), 0);
}

static void open_store(void)
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

static void close_store(void)
{
    mfi_buf_free(&tx.buf);
    mfi_store_close(store);
    mft_dir_remove(&dir);
}

static uint64_t enqueue(jzx_mf_job_spec spec)
{
    jzx_mf_slot slot = {0};
    uint64_t id = tx.meta.job_ids++;
    REQUIRE_OK(mfi_job_enqueue(&tx, id, &spec, &slot));
    REQUIRE_EQ(slot.outcome, JZX_MF_NEW);
    return id;
}

static jzx_err keep_lease(void *arg, const jzx_mf_job *job)
{
    *(jzx_mf_lease *)arg = jzx_mf_lease_of(job);
    return JZX_OK;
}

/* Claims the best job of a kind; 0: there is none. */
static uint64_t claim(uint16_t kind, jzx_mf_lease *out)
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

static void build_tables(void)
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

static void build_queued(void)
{
    jzx_mf_job_spec spec = {.kind = KIND, .key = jzx_mf_text("a")};
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

static void build_contended(void)
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

static void build_finished(void)
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

static void build(void)
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

static int hear(void *arg, const char *problem, uint64_t done, uint64_t total)
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

static jzx_err look(jzx_mf_check_report *report)
{
    unsigned end_after = said.end_after;
    said = (sayings){.end_after = end_after};
    *report = (jzx_mf_check_report){0};
    return mfi_check_view(&tx.view, hear, &said, report);
}

static void expect_said(const char *what, const char *text)
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

/* ---- Damages: each to one row. */

static void del(jzx_mf_key key)
{
    REQUIRE_OK(mfi_del(&tx, &key));
}

static void put_empty(jzx_mf_key key)
{
    REQUIRE_OK(mfi_put_empty(&tx, &key));
}

static jzx_mf_job get_job(uint64_t id)
{
    jzx_mf_key key = jzx_mf_key_job(id);
    jzx_mf_span value;
    jzx_mf_job job;
    REQUIRE_OK(mfi_get(&tx.view, &key, &value));
    REQUIRE_OK(mfi_decode_job(value, &job, NULL));
    job.id = id;
    return job;
}

static void put_job(const jzx_mf_job *job)
{
    jzx_mf_key key = jzx_mf_key_job(job->id);
    REQUIRE_OK(mfi_encode_job(job, NULL, &tx.buf));
    REQUIRE_OK(mfi_put(&tx, &key, tx.buf.bytes, tx.buf.len));
}

/* Flips one bit of a value. */
static void flip(jzx_mf_key key, size_t at)
{
    jzx_mf_span value;
    uint8_t bytes[4096];
    REQUIRE_OK(mfi_get(&tx.view, &key, &value));
    REQUIRE(value.len <= sizeof bytes && at < value.len);
    memcpy(bytes, value.data, value.len);
    bytes[at] ^= 0x10;
    REQUIRE_OK(mfi_put(&tx, &key, bytes, value.len));
}

static void put_raw(uint32_t table, const void *key, size_t key_len, const void *value, size_t len)
{
    jzx_mf_key at = mfi_key_first(table);
    memcpy(at.bytes, key, key_len);
    at.len = (uint32_t)key_len;
    REQUIRE_OK(mfi_put(&tx, &at, value, len));
}

/* Index rows of each state, taken away. */
static void lose_ready(void)
{
    jzx_mf_job job = get_job(ids.ready);
    del(mfi_key_ready(&job));
}
static void lose_scheduled(void)
{
    jzx_mf_job job = get_job(ids.scheduled);
    del(mfi_key_scheduled(job.run_at_ms, job.id));
}
static void lose_blocked(void)
{
    jzx_mf_job job = get_job(ids.blocked_gate);
    del(mfi_key_blocked(job.blocked_on, &job));
}
static void lose_lease(void)
{
    jzx_mf_job job = get_job(ids.active);
    del(mfi_key_lease(job.lease_until_ms, job.id));
}
static void lose_finished(void)
{
    jzx_mf_job job = get_job(ids.dead);
    del(mfi_key_finished(job.state, job.finished_ms, job.id));
}
static void lose_active(void)
{
    jzx_mf_job job = get_job(ids.limited);
    del(mfi_key_active(&job));
}
static void lose_queued_slot(void)
{
    jzx_mf_job job = get_job(ids.ready);
    del(mfi_key_unique(&job, MFI_SLOT_QUEUED));
}
static void lose_active_slot(void)
{
    jzx_mf_job job = get_job(ids.active);
    del(mfi_key_unique(&job, MFI_SLOT_ACTIVE));
}
static void lose_gate(void)
{
    del(jzx_mf_key_gate(300, GATE));
}
static void lose_dependency(void)
{
    del(mfi_key_dependency(ids.scheduled, ids.waiting));
}
static void lose_job(void)
{
    del(jzx_mf_key_job(ids.ready));
}

/* Rows that should not be there, or say something else. */
static void extra_ready(void)
{
    jzx_mf_job job = get_job(ids.done);
    put_empty(mfi_key_ready(&job));
}
static void wrong_priority(void)
{
    jzx_mf_job job = get_job(ids.ready);
    job.priority = 77;
    put_empty(mfi_key_ready(&job));
}
static void extra_scheduled(void)
{
    put_empty(mfi_key_scheduled(5, 999999));
}
static void extra_lease(void)
{
    put_empty(mfi_key_lease(5, ids.ready));
}
static void extra_blocked(void)
{
    jzx_mf_job job = get_job(ids.ready);
    mfi_resource resource = mfi_resource_unique(&job);
    put_empty(mfi_key_blocked(jzx_mf_blob(resource.bytes, resource.len), &job));
}
static void foreign_resource(void)
{
    jzx_mf_job job = get_job(ids.blocked_slot);
    jzx_mf_job other = get_job(ids.blocked_gate);
    mfi_resource resource = mfi_resource_gate(&other);
    del(mfi_key_blocked(job.blocked_on, &job));
    job.blocked_on = jzx_mf_blob(resource.bytes, resource.len);
    put_empty(mfi_key_blocked(job.blocked_on, &job));
    put_job(&job);
}
static void extra_finished(void)
{
    put_empty(mfi_key_finished(JZX_MF_JOB_DONE, 5, ids.dead));
}
static void extra_active(void)
{
    jzx_mf_job job = get_job(ids.active);
    put_empty(mfi_key_active(&job));
}
static void queued_in_active(void)
{
    jzx_mf_job job = get_job(ids.blocked_limit);
    put_empty(mfi_key_active(&job));
}
static void slot_of_nobody(void)
{
    jzx_mf_job job = get_job(ids.ready);
    job.key = jzx_mf_text("zzz");
    jzx_mf_key key = mfi_key_unique(&job, MFI_SLOT_QUEUED);
    REQUIRE_OK(mfi_put_id(&tx, &key, 999999));
}
static void slot_of_another(void)
{
    jzx_mf_job job = get_job(ids.ready);
    jzx_mf_key key = mfi_key_unique(&job, MFI_SLOT_QUEUED);
    REQUIRE_OK(mfi_put_id(&tx, &key, ids.scheduled));
}
static void slot_of_finished(void)
{
    jzx_mf_job job = get_job(ids.dead);
    jzx_mf_key key = mfi_key_unique(&job, MFI_SLOT_QUEUED);
    REQUIRE_OK(mfi_put_id(&tx, &key, ids.dead));
}
static void active_slot_of_queued(void)
{
    jzx_mf_job job = get_job(ids.ready);
    jzx_mf_key key = mfi_key_unique(&job, MFI_SLOT_ACTIVE);
    REQUIRE_OK(mfi_put_id(&tx, &key, ids.ready));
}
static void put_gate(uint64_t db, uint16_t class, uint64_t job, uint32_t attempt)
{
    jzx_mf_gate gate = {.job_id = job, .since_ms = 5, .attempt = attempt};
    jzx_mf_key key = jzx_mf_key_gate(db, class);
    REQUIRE_OK(mfi_encode_gate(&gate, NULL, &tx.buf));
    REQUIRE_OK(mfi_put(&tx, &key, tx.buf.bytes, tx.buf.len));
}
static void gate_of_finished(void)
{
    jzx_mf_job job = get_job(ids.dead);
    job.db = 2;
    job.gate_class = 1;
    put_job(&job);
    put_gate(2, 1, ids.dead, 1);
}
static void gate_of_nobody(void)
{
    put_gate(2, 1, 999999, 1);
}
static void gate_of_another(void)
{
    put_gate(2, 1, ids.ready, 0);
}
static void gate_taken(void)
{
    put_gate(300, GATE, ids.blocked_gate, 0);
}
static void gate_of_old_attempt(void)
{
    put_gate(300, GATE, ids.gated, 0);
}
static void gate_of_future_attempt(void)
{
    put_gate(300, GATE, ids.gated, 9);
}
static void extra_dependency(void)
{
    put_empty(mfi_key_dependency(ids.ready, ids.scheduled));
}
static void finished_parent(void)
{
    put_empty(mfi_key_dependency(ids.done, ids.waiting));
}
static void dependency_on_nobody(void)
{
    put_empty(mfi_key_dependency(999999, ids.waiting));
}

/* Jobs with a field that cannot be. */
static void waits_for_nobody(void)
{
    jzx_mf_job job = get_job(ids.waiting);
    job.after_left = 0;
    put_job(&job);
}
static void ready_but_waits(void)
{
    jzx_mf_job job = get_job(ids.ready);
    job.after_left = 1;
    put_job(&job);
}
static void state_unknown(void)
{
    jzx_mf_job job = get_job(ids.ready);
    job.state = 200;
    put_job(&job);
}
static void state_changed(void)
{
    jzx_mf_job job = get_job(ids.ready);
    job.state = JZX_MF_JOB_WAITING;
    put_job(&job);
}
static void kind_zero(void)
{
    jzx_mf_job job = get_job(ids.done);
    job.kind = 0;
    put_job(&job);
}
static void no_attempts_left(void)
{
    jzx_mf_job job = get_job(ids.ready);
    job.attempt = job.max_attempts;
    job.boot = 1;
    put_job(&job);
}
static void active_without_attempt(void)
{
    jzx_mf_job job = get_job(ids.active);
    job.attempt = 0;
    put_job(&job);
}
static void future_boot(void)
{
    jzx_mf_job job = get_job(ids.done);
    job.boot = 50;
    put_job(&job);
}
static void future_id(void)
{
    jzx_mf_job job = get_job(ids.done);
    job.id = 5000000;
    put_job(&job);
    put_empty(mfi_key_finished(job.state, job.finished_ms, job.id));
}

/* The plain tables. */
static void lose_name(void)
{
    del(mfi_key_name(JZX_MF_TABLE_DB_NAME, jzx_mf_text("first")));
}
static void name_of_nobody(void)
{
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_DB_NAME, jzx_mf_text("third"));
    REQUIRE_OK(mfi_put_id(&tx, &key, 77));
}
static void name_swapped(void)
{
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_DB_NAME, jzx_mf_text("first"));
    REQUIRE_OK(mfi_put_id(&tx, &key, 2));
}
static void second_name(void)
{
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_DB_NAME, jzx_mf_text("third"));
    REQUIRE_OK(mfi_put_id(&tx, &key, 2));
}
static void lose_db(void)
{
    del(jzx_mf_key_db(300));
}
static void lose_status(void)
{
    jzx_mf_key material = jzx_mf_key_material(jzx_mf_text("m1"));
    del(mfi_key_material_status(1, START_MS, &material));
}
static void extra_status(void)
{
    jzx_mf_key material = jzx_mf_key_material(jzx_mf_text("m1"));
    put_empty(mfi_key_material_status(2, START_MS, &material));
}
static void status_of_nobody(void)
{
    jzx_mf_key material = jzx_mf_key_material(jzx_mf_text("other"));
    put_empty(mfi_key_material_status(2, START_MS, &material));
}
static void material_moved(void)
{
    jzx_mf_key from = jzx_mf_key_material(jzx_mf_text("m1"));
    jzx_mf_key to = jzx_mf_key_material(jzx_mf_text("other"));
    jzx_mf_span value;
    uint8_t bytes[512];
    REQUIRE_OK(mfi_get(&tx.view, &from, &value));
    memcpy(bytes, value.data, value.len);
    REQUIRE_OK(mfi_put(&tx, &to, bytes, value.len));
}
static void cron_renamed(void)
{
    jzx_mf_cron cron = {.name = jzx_mf_text("x"), .schedule = jzx_mf_text("@hourly"), .kind = KIND};
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_CRON, jzx_mf_text("nightly"));
    REQUIRE_OK(mfi_encode_cron(&cron, NULL, &tx.buf));
    REQUIRE_OK(mfi_put(&tx, &key, tx.buf.bytes, tx.buf.len));
}
static void cron_nonsense(void)
{
    jzx_mf_cron cron = {
        .name = jzx_mf_text("nightly"), .schedule = jzx_mf_text("whenever"), .kind = KIND};
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_CRON, jzx_mf_text("nightly"));
    REQUIRE_OK(mfi_encode_cron(&cron, NULL, &tx.buf));
    REQUIRE_OK(mfi_put(&tx, &key, tx.buf.bytes, tx.buf.len));
}
static void metric_reversed(void)
{
    jzx_mf_metric metric = {.sum = 1, .min = 5, .max = 1, .count = 2};
    jzx_mf_key key = jzx_mf_key_metric(300, 1);
    REQUIRE_OK(mfi_encode_metric(&metric, NULL, &tx.buf));
    REQUIRE_OK(mfi_put(&tx, &key, tx.buf.bytes, tx.buf.len));
}
static void put_event(uint64_t seq, uint32_t index, uint32_t table)
{
    jzx_mf_key about = jzx_mf_key_db(300);
    mfi_event event = {jzx_mf_blob(about.bytes, about.len), table, JZX_MF_PUT};
    jzx_mf_key key = mfi_key_event(seq, index);
    REQUIRE_OK(mfi_encode_event(&event, NULL, &tx.buf));
    REQUIRE_OK(mfi_put(&tx, &key, tx.buf.bytes, tx.buf.len));
}
static void future_event(void)
{
    put_event(900, 0, JZX_MF_TABLE_DB);
}
static void event_gap(void)
{
    put_event(tx.meta.commit_seq, 500, JZX_MF_TABLE_DB);
}
static void event_of_nothing(void)
{
    put_event(tx.meta.commit_seq, 0, 99);
}
static void put_meta(void)
{
    jzx_mf_key key = mfi_key_meta();
    REQUIRE_OK(mfi_encode_meta(&tx.meta, NULL, &tx.buf));
    REQUIRE_OK(mfi_put(&tx, &key, tx.buf.bytes, tx.buf.len));
}
static void ids_lowered(void)
{
    tx.meta.job_ids = 3;
    put_meta();
}
static void foreign_order(void)
{
    tx.meta.byte_order = 0x04030201;
    put_meta();
}
static void foreign_page_size(void)
{
    tx.meta.page_size = 512;
    put_meta();
}
static void events_from_the_future(void)
{
    tx.meta.event_first = tx.meta.commit_seq + 2;
    put_meta();
}
static void migration_of_nothing(void)
{
    tx.meta.migrate_table = 99;
    put_meta();
}

/* Values and keys that are not what was written. */
static void flip_job(void)
{
    flip(jzx_mf_key_job(ids.done), 20);
}
static void flip_db(void)
{
    flip(jzx_mf_key_db(300), 12);
}
static void long_index_value(void)
{
    jzx_mf_job job = get_job(ids.ready);
    jzx_mf_key key = mfi_key_ready(&job);
    REQUIRE_OK(mfi_put(&tx, &key, "x", 1));
}
static void short_slot_value(void)
{
    jzx_mf_job job = get_job(ids.ready);
    jzx_mf_key key = mfi_key_unique(&job, MFI_SLOT_QUEUED);
    REQUIRE_OK(mfi_put(&tx, &key, "1234", 4));
}
static void short_job_key(void)
{
    put_raw(JZX_MF_TABLE_JOB, "abc", 3, "x", 1);
}
static void short_dependency_key(void)
{
    put_raw(JZX_MF_TABLE_DEPENDENCY, "ab", 2, "", 0);
}
static void third_slot(void)
{
    uint8_t key[12] = {0};
    key[11] = 2;
    put_raw(JZX_MF_TABLE_UNIQUE, key, sizeof key, "12345678", 8);
}
static void wrong_key_length(void)
{
    uint8_t key[20] = {0};
    key[11] = 9;
    put_raw(JZX_MF_TABLE_ACTIVE, key, sizeof key, "", 0);
}
static void second_meta(void)
{
    put_raw(JZX_MF_TABLE_META, "n", 1, "x", 1);
}
static void flip_meta(void)
{
    flip(mfi_key_meta(), 14);
}
static void lose_meta(void)
{
    del(mfi_key_meta());
}

static const struct {
    const char *name;
    void (*damage)(void);
    const char *said;
} damages[] = {
    {"lose_ready", lose_ready, "is ready but has no row in ready"},
    {"lose_scheduled", lose_scheduled, "is scheduled but has no row in scheduled"},
    {"lose_blocked", lose_blocked, "is blocked but has no row in blocked"},
    {"lose_lease", lose_lease, "is active but has no row in lease"},
    {"lose_finished", lose_finished, "is dead but has no row in finished"},
    {"lose_active", lose_active, "has a limit, but it has no row in active"},
    {"lose_queued_slot", lose_queued_slot, "is ready but nobody has its queued slot"},
    {"lose_active_slot", lose_active_slot, "is active but nobody has its active slot"},
    {"lose_gate", lose_gate, "is active but does not hold its gate (class 7)"},
    {"lose_dependency", lose_dependency, "waits for 2 jobs but 1 rows in dependency name it"},
    {"lose_job", lose_job, "the ready row (kind 1, priority 0, time "},
    {"extra_ready", extra_ready, ", which is done"},
    {"wrong_priority", wrong_priority, "priority 77"},
    {"extra_scheduled", extra_scheduled,
     "the scheduled row (time 5, job 999999) names job 999999, which is not there"},
    {"extra_lease", extra_lease, "the lease row (until 5, job "},
    {"extra_blocked", extra_blocked, "the blocked row (resource "},
    {"foreign_resource", foreign_resource, "is blocked on something that is not its own"},
    {"extra_finished", extra_finished, "the finished row (state done, time 5, job "},
    {"extra_active", extra_active, "is there but kind 1 has no limit"},
    {"queued_in_active", queued_in_active, "the active row (kind 2, global, key \"k\", job "},
    {"slot_of_nobody", slot_of_nobody,
     "the queued slot (global, kind 1, key \"zzz\") names job 999999, which is not there"},
    {"slot_of_another", slot_of_another, "which has another scope, kind or key"},
    {"slot_of_finished", slot_of_finished, "which is dead"},
    {"active_slot_of_queued", active_slot_of_queued, "the active slot (global, kind 1"},
    {"gate_of_finished", gate_of_finished, "which is dead"},
    {"gate_of_nobody", gate_of_nobody,
     "the gate (database 2, class 1) names job 999999, which is not there"},
    {"gate_of_another", gate_of_another, "which has another gate"},
    {"gate_taken", gate_taken, "is active but its gate (class 7) is held by job "},
    {"gate_of_old_attempt", gate_of_old_attempt,
     "is in attempt 1 but holds its gate for attempt 0"},
    {"gate_of_future_attempt", gate_of_future_attempt, "is held for attempt 9 of job "},
    {"extra_dependency", extra_dependency, "waits for nobody"},
    {"finished_parent", finished_parent, "is left though job "},
    {"dependency_on_nobody", dependency_on_nobody, "names job 999999, which is not there"},
    {"waits_for_nobody", waits_for_nobody, "is waiting for no other job"},
    {"ready_but_waits", ready_but_waits, "is ready but 1 jobs must end first"},
    {"state_unknown", state_unknown, "is in state 200, which there is not"},
    {"state_changed", state_changed, ", which is waiting"},
    {"kind_zero", kind_zero, "has a kind, scope, policy or key that cannot be"},
    {"no_attempts_left", no_attempts_left, "is ready but has used up 20 of 20 attempts"},
    {"active_without_attempt", active_without_attempt, "is active in attempt 0 of 20"},
    {"future_boot", future_boot, "was claimed in boot 50, but the last one is 1"},
    {"future_id", future_id, "job 5000000 is not below the next id"},
    {"lose_name", lose_name, "database 300 has no row in db_name: the name \"first\" is missing"},
    {"name_of_nobody", name_of_nobody,
     "the name \"third\" leads to database 77, which is not there"},
    {"name_swapped", name_swapped, "is that of database 300 but leads to database 2"},
    {"second_name", second_name, "leads to database 2, which has another name"},
    {"lose_db", lose_db, "the chunk (database 300, chunk 12) belongs to database 300"},
    {"lose_db", lose_db, "the log (database 300, shard 1) belongs to database 300"},
    {"lose_status", lose_status, "is in status 1 but has no such row in material_status"},
    {"extra_status", extra_status, "is not what its material says (status 1"},
    {"status_of_nobody", status_of_nobody, "names a material that is not there"},
    {"material_moved", material_moved, "has an id with another hash"},
    {"cron_renamed", cron_renamed, "the cron entry \"nightly\" has another name"},
    {"cron_nonsense", cron_nonsense, "has a schedule that cannot be understood"},
    {"metric_reversed", metric_reversed, "has numbers that cannot come from merging"},
    {"future_event", future_event, "the event (commit 900, index 0) is outside"},
    {"event_gap", event_gap, "index 500) comes where index"},
    {"event_of_nothing", event_of_nothing, "tells of something that cannot be"},
    {"ids_lowered", ids_lowered, "is not below the next id, 3"},
    {"foreign_order", foreign_order, "has byte order 04030201"},
    {"foreign_page_size", foreign_page_size, "has page size 512"},
    {"events_from_the_future", events_from_the_future, "keeps events from commit"},
    {"migration_of_nothing", migration_of_nothing, "tells of a migration of table 98"},
    {"flip_job", flip_job, " has a damaged value"},
    {"flip_db", flip_db, "database 300 has a damaged value"},
    {"long_index_value", long_index_value, "has a damaged value"},
    {"short_slot_value", short_slot_value, "has a damaged value"},
    {"short_job_key", short_job_key, "the row 616263 of job has a key of the wrong form"},
    {"short_dependency_key", short_dependency_key,
     "the row 6162 of dependency has a key of the wrong form"},
    {"third_slot", third_slot, "of unique has a key of the wrong form"},
    {"wrong_key_length", wrong_key_length, "of active has a key of the wrong form"},
    {"second_meta", second_meta, "the row 6e of meta has a key of the wrong form"},
    {"flip_meta", flip_meta, "the meta record has a damaged value"},
    {"lose_meta", lose_meta, "the meta record is missing"},
};

static void test_a_sound_file_has_no_problems(void)
{
    build();
    begin();
    jzx_mf_check_report report;
    CHECK_OK(look(&report));
    CHECK_EQ(report.problems, 0);
    CHECK_EQ(said.count, 0);
    if (said.count > 0) {
        printf("    said: %s\n", said.text[0]);
    }
    CHECK(said.notices >= 1);
    CHECK_EQ(report.entries[JZX_MF_TABLE_JOB], 12);
    CHECK_EQ(report.entries[JZX_MF_TABLE_DB], 2);
    uint64_t sum = 0;
    for (int i = 0; i < JZX_MF_TABLES; i++) {
        sum += report.entries[i];
    }
    CHECK_EQ(report.records, sum);
    CHECK_OK(mfi_check_view(&tx.view, NULL, NULL, &report));
    mdb_txn_abort(tx.view.txn);
    close_store();
}

static void test_a_new_file_has_no_problems(void)
{
    open_store();
    begin();
    jzx_mf_check_report report;
    CHECK_OK(look(&report));
    CHECK_EQ(said.count, 0);
    mdb_txn_abort(tx.view.txn);
    close_store();
}

static void test_every_damage_is_named(void)
{
    build();
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        begin();
        damages[i].damage();
        jzx_mf_check_report report;
        CHECK_EQ(look(&report), JZX_ERR_CORRUPT);
        CHECK_EQ(report.problems, said.count);
        expect_said(damages[i].name, damages[i].said);
        mdb_txn_abort(tx.view.txn);
    }
    begin();
    jzx_mf_check_report report;
    CHECK_OK(look(&report)); /* all of it was rolled back */
    mdb_txn_abort(tx.view.txn);
    close_store();
}

static void test_whoever_had_enough_is_told_no_more(void)
{
    build();
    begin();
    lose_ready();
    lose_lease();
    lose_finished();
    jzx_mf_check_report report;
    said.end_after = 1;
    CHECK_EQ(look(&report), JZX_ERR_CORRUPT);
    CHECK_EQ(said.count + said.notices, 1);
    said.end_after = 0;
    CHECK_EQ(look(&report), JZX_ERR_CORRUPT);
    CHECK(said.count >= 3);
    mdb_txn_abort(tx.view.txn);
    close_store();
}

static void test_many_problems_are_counted_but_not_all_told(void)
{
    open_store();
    begin();
    enum { WRONG = 3 * MFI_CHECK_TOLD_MAX };
    for (uint64_t id = 1; id <= WRONG; id++) {
        put_empty(mfi_key_scheduled(5, id));
    }
    jzx_mf_check_report report;
    CHECK_EQ(look(&report), JZX_ERR_CORRUPT);
    CHECK_EQ(report.problems, WRONG);
    CHECK_EQ(said.count, MFI_CHECK_TOLD_MAX + 1);
    mdb_txn_abort(tx.view.txn);
    close_store();
}

static void test_a_newer_file_is_not_judged(void)
{
    open_store();
    begin();
    tx.meta.schema = MFI_SCHEMA + 1;
    put_meta();
    jzx_mf_check_report report;
    CHECK_EQ(look(&report), JZX_ERR_NEWER_SCHEMA);
    CHECK_EQ(said.count, 0);
    mdb_txn_abort(tx.view.txn);
    close_store();
}

static void test_progress_is_told_on_the_way(void)
{
    open_store();
    begin();
    for (uint32_t i = 0; i < 20000; i++) {
        uint64_t now;
        REQUIRE_OK(mfi_generation_bump(&tx, i, 1, &now));
        tx.event_index = 0; /* one event is enough */
    }
    jzx_mf_check_report report;
    tx.meta.commit_seq = tx.seq;
    put_meta();
    CHECK_OK(look(&report));
    CHECK(said.notices >= 5);
    said.end_after = 1;
    CHECK_OK(look(&report));
    CHECK(report.records < 10000);
    said.end_after = 0;
    mdb_txn_abort(tx.view.txn);
    close_store();
}

static void test_events_that_are_partly_forgotten_are_no_problem(void)
{
    open_store();
    tx.events_kept = 5;
    for (int i = 0; i < 4; i++) {
        begin();
        for (uint32_t component = 0; component < 3; component++) {
            uint64_t now;
            REQUIRE_OK(mfi_generation_bump(&tx, component, 1, &now));
        }
        REQUIRE_OK(mfi_forget_events(&tx, 100));
        commit();
        begin();
        jzx_mf_check_report report;
        CHECK_OK(look(&report));
        mdb_txn_abort(tx.view.txn);
    }
    begin();
    CHECK_EQ(mfi_entries(&tx.view, JZX_MF_TABLE_EVENT), 5);
    del(mfi_key_event(tx.meta.commit_seq, 1));
    jzx_mf_check_report report;
    CHECK_EQ(look(&report), JZX_ERR_CORRUPT);
    expect_said("a gap", "comes where index 1 is missing");
    mdb_txn_abort(tx.view.txn);
    close_store();
}

/* ---- A random walk over everything that the queue and the tables do. */

enum { LEASES = 64 };
static jzx_mf_lease leases[LEASES];
static uint32_t lease_count;

static jzx_err note_lease(void *arg, const jzx_mf_job *job)
{
    (void)arg;
    leases[lease_count++ % LEASES] = jzx_mf_lease_of(job);
    return JZX_OK;
}

static void walk_enqueue(jzt_rng *rng)
{
    static const char *const keys[] = {"", "a", "b", "a longer key that is not like the others"};
    uint64_t after[2];
    jzx_mf_job_spec spec = {.kind = (uint16_t)(1 + jzt_rng_below(rng, 3)),
                            .gate_class = (uint16_t)jzt_rng_below(rng, 3),
                            .scope = (uint8_t)jzt_rng_below(rng, 2),
                            .unique = (uint8_t)jzt_rng_below(rng, 5),
                            .on_retry = (uint8_t)jzt_rng_below(rng, 3),
                            .on_parent = (uint8_t)jzt_rng_below(rng, 2),
                            .key = jzx_mf_text(keys[jzt_rng_below(rng, 4)]),
                            .delay_ms = jzt_rng_below(rng, 3) == 0 ? 500 : 0,
                            .priority = (uint32_t)jzt_rng_below(rng, 3),
                            .max_attempts = 1 + (uint32_t)jzt_rng_below(rng, 3),
                            .lease_ms = 1000,
                            .backoff_min_ms = 200,
                            .flags = jzt_rng_below(rng, 4) == 0 ? JZX_MF_REPLACE : 0};
    spec.db = spec.scope == JZX_MF_SCOPE_DB ? 1 + jzt_rng_below(rng, 2) : 0;
    if (jzt_rng_below(rng, 3) == 0) {
        spec.after = after;
        spec.after_count = 1 + (uint32_t)jzt_rng_below(rng, 2);
        after[0] = 1 + jzt_rng_below(rng, tx.meta.job_ids);
        after[1] = 1 + jzt_rng_below(rng, tx.meta.job_ids);
    }
    jzx_mf_slot slot = {0};
    uint64_t id = tx.meta.job_ids;
    jzx_err err = mfi_job_enqueue(&tx, id, &spec, &slot);
    if (err == JZX_OK) {
        tx.meta.job_ids++;
    } else {
        CHECK_EQ(err, JZX_ERR_NOT_FOUND);
    }
}

static void walk_lease(jzt_rng *rng)
{
    const jzx_mf_lease *lease = &leases[jzt_rng_below(rng, LEASES)];
    jzx_err err = JZX_OK;
    bool cancel;
    jzx_mf_failure failure = {.text = jzx_mf_text("no"), .flags = (uint32_t)jzt_rng_below(rng, 8)};
    switch (jzt_rng_below(rng, 3)) {
    case 0:
        err = mfi_job_complete(&tx, lease, jzx_mf_text("yes"));
        break;
    case 1:
        err = mfi_job_fail(&tx, lease, &failure);
        break;
    default:
        err = mfi_job_heartbeat(&tx, lease, 0, 1, 2, jzx_mf_text("half"), &cancel);
        break;
    }
    CHECK(err == JZX_OK || err == JZX_ERR_FENCED);
}

static void walk_control(jzt_rng *rng)
{
    uint64_t id = 1 + jzt_rng_below(rng, tx.meta.job_ids);
    uint16_t number = (uint16_t)(1 + jzt_rng_below(rng, 3));
    jzx_mf_kind kind = {.limit = (uint32_t)jzt_rng_below(rng, 3),
                        .key_limit = (uint32_t)jzt_rng_below(rng, 3)};
    switch (jzt_rng_below(rng, 6)) {
    case 0:
        (void)mfi_job_cancel(&tx, id);
        break;
    case 1:
        (void)mfi_job_retry(&tx, id);
        break;
    case 2:
        (void)mfi_job_del(&tx, id);
        break;
    case 3:
        CHECK_OK(mfi_kind_put(&tx, number, &kind));
        break;
    case 4:
        CHECK_OK(mfi_kind_pause(&tx, number, jzt_rng_below(rng, 4) == 0));
        break;
    default:
        CHECK_OK(mfi_db_del(&tx, 1 + jzt_rng_below(rng, 2)));
        break;
    }
}

static void walk_time(jzt_rng *rng)
{
    uint32_t count;
    mfi_orphans orphans = {0};
    uint64_t ms = jzt_rng_below(rng, 400);
    tx.now_ms += ms;
    tx.lease_ms += ms;
    CHECK_OK(mfi_queue_promote(&tx, 100, &count));
    CHECK_OK(mfi_queue_expire(&tx, 100, &count));
    CHECK_OK(mfi_queue_prune(&tx, 2, &count));
    if (jzt_rng_below(rng, 40) == 0) {
        tx.boot = ++tx.meta.boot;
        CHECK_OK(mfi_queue_orphans(&tx, 1000, &orphans, &count));
    }
}

static void walk_step(jzt_rng *rng)
{
    jzx_mf_claim wanted = {.max = 2};
    uint32_t count = 0;
    switch (jzt_rng_below(rng, 8)) {
    case 0:
    case 1:
    case 2:
        walk_enqueue(rng);
        break;
    case 3:
        CHECK_OK(mfi_job_claim(&tx, &wanted, note_lease, NULL, &count));
        break;
    case 4:
    case 5:
        walk_lease(rng);
        break;
    case 6:
        walk_control(rng);
        break;
    default:
        walk_time(rng);
        break;
    }
}

static void test_whatever_the_queue_does_is_sound(void)
{
    jzt_rng rng = jzt_rng_seeded();
    open_store();
    begin();
    tx.retention.done_ms = tx.retention.dead_ms = tx.retention.cancelled_ms = 5000;
    tx.meta.boot = tx.boot;
    memset(leases, 0, sizeof leases);
    for (int step = 0; step < 3000 && jzt_failures() == 0; step++) {
        walk_step(&rng);
        if (step % 5 == 0) {
            tx.meta.commit_seq = tx.seq;
            put_meta();
            jzx_mf_check_report report;
            CHECK_OK(look(&report));
            if (said.count > 0) {
                printf("    step %d: %s\n", step, said.text[0]);
            }
        }
    }
    mdb_txn_abort(tx.view.txn);
    close_store();
}

/* ---- The whole call. */

static void test_check_of_a_file_by_its_path(void)
{
    build();
    jzx_mf_check_report report;
    said = (sayings){0};
    CHECK_EQ(jzx_mf_check(dir.file, hear, &said, &report), JZX_ERR_ALREADY); /* we have it open */
    mfi_store_close(store);
    said = (sayings){0};
    CHECK_OK(jzx_mf_check(dir.file, hear, &said, &report));
    CHECK_EQ(report.entries[JZX_MF_TABLE_JOB], 12);
    CHECK(report.pages > 2);
    CHECK_EQ(said.count, 0);
    CHECK_OK(jzx_mf_check(dir.file, NULL, NULL, NULL));
    CHECK_EQ(jzx_mf_check(NULL, NULL, NULL, NULL), JZX_ERR_INVALID_ARG);

    mfi_store_opts opts = {.must_exist = true, .map_max = 64 << 20, .readers_max = 16};
    mfi_store_facts facts;
    REQUIRE_OK(mfi_store_open(dir.file, &opts, &store, &facts));
    begin();
    lose_lease();
    commit();
    mfi_store_close(store);
    said = (sayings){0};
    CHECK_EQ(jzx_mf_check(dir.file, hear, &said, &report), JZX_ERR_CORRUPT);
    CHECK_EQ(report.problems, 1);
    expect_said("lose_lease", "is active but has no row in lease");
    REQUIRE_OK(mfi_store_open(dir.file, &opts, &store, &facts));
    close_store();
}

/* Pages that are overwritten are told of, whichever they are, and never crash. */
static void test_check_of_damaged_pages(void)
{
    build();
    mfi_store_close(store);
    FILE *file = fopen(dir.file, "r+b");
    REQUIRE(file != NULL);
    REQUIRE_EQ(fseek(file, 0, SEEK_END), 0);
    int pages = (int)(ftell(file) / 4096);
    unsigned found = 0;
    for (int page = 2; page < pages; page++) {
        uint8_t saved[4096];
        uint8_t noise[4096];
        memset(noise, 0xa5, sizeof noise);
        REQUIRE_EQ(fseek(file, page * 4096L, SEEK_SET), 0);
        REQUIRE_EQ(fread(saved, 1, sizeof saved, file), sizeof saved);
        REQUIRE_EQ(fseek(file, page * 4096L, SEEK_SET), 0);
        REQUIRE_EQ(fwrite(noise, 1, sizeof noise, file), sizeof noise);
        REQUIRE_EQ(fflush(file), 0);
        jzx_mf_check_report report;
        said = (sayings){0};
        jzx_err err = jzx_mf_check(dir.file, hear, &said, &report);
        CHECK(err == JZX_OK || err == JZX_ERR_CORRUPT); /* some pages are free */
        CHECK_EQ(err == JZX_OK, said.count == 0);
        CHECK_EQ(report.problems, said.count);
        found += err == JZX_ERR_CORRUPT;
        REQUIRE_EQ(fseek(file, page * 4096L, SEEK_SET), 0);
        REQUIRE_EQ(fwrite(saved, 1, sizeof saved, file), sizeof saved);
        REQUIRE_EQ(fflush(file), 0);
    }
    CHECK(found >= 10);
    fclose(file);
    CHECK_OK(jzx_mf_check(dir.file, NULL, NULL, NULL));
    mfi_store_opts opts = {.must_exist = true, .map_max = 64 << 20, .readers_max = 16};
    mfi_store_facts facts;
    REQUIRE_OK(mfi_store_open(dir.file, &opts, &store, &facts));
    close_store();
}

static void test_check_of_what_is_no_manifest(void)
{
    open_store();
    char other[128];
    snprintf(other, sizeof other, "%s/other", dir.path);
    jzx_mf_check_report report;
    CHECK_EQ(jzx_mf_check(other, NULL, NULL, &report), JZX_ERR_NOT_FOUND);
    FILE *file = fopen(other, "wb");
    REQUIRE(file != NULL);
    fputs("this is no manifest", file);
    fclose(file);
    jzx_err err = jzx_mf_check(other, NULL, NULL, &report);
    CHECK(err == JZX_ERR_NOT_A_MANIFEST || err == JZX_ERR_CORRUPT);
    close_store();
}

static const jzt_test tests[] = {
    {"a_new_file_has_no_problems", test_a_new_file_has_no_problems},
    {"a_sound_file_has_no_problems", test_a_sound_file_has_no_problems},
    {"every_damage_is_named", test_every_damage_is_named},
    {"whoever_had_enough_is_told_no_more", test_whoever_had_enough_is_told_no_more},
    {"many_problems_are_counted_but_not_all_told", test_many_problems_are_counted_but_not_all_told},
    {"a_newer_file_is_not_judged", test_a_newer_file_is_not_judged},
    {"progress_is_told_on_the_way", test_progress_is_told_on_the_way},
    {"events_that_are_partly_forgotten_are_no_problem",
     test_events_that_are_partly_forgotten_are_no_problem},
    {"whatever_the_queue_does_is_sound", test_whatever_the_queue_does_is_sound},
    {"check_of_a_file_by_its_path", test_check_of_a_file_by_its_path},
    {"check_of_damaged_pages", test_check_of_damaged_pages},
    {"check_of_what_is_no_manifest", test_check_of_what_is_no_manifest},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
