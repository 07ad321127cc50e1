/* Goal: a snapshot gives back what the tables hold, in order, and says so when it cannot. Method: a
 * file with a few records of every kind; every getter and every walk of the public API. */
#include "check.h"
#include "key.h"
#include "mf_tx.h"
#include "tables.h"

#include <jzx/manifest_watch.h>

#include <stddef.h>
#include <string.h>

static void put_raw(mfi_tx *tx, const jzx_mf_key *key)
{
    REQUIRE_OK(mfi_put(tx, key, tx->buf.bytes, tx->buf.len));
}

static void put_job(mfi_tx *tx, uint64_t id, const jzx_mf_job *record)
{
    jzx_mf_key key = jzx_mf_key_job(id);
    REQUIRE_OK(mfi_encode_job(record, NULL, &tx->buf));
    put_raw(tx, &key);
}

static void put_kind(mfi_tx *tx, uint16_t kind, const jzx_mf_kind *record)
{
    jzx_mf_key key = jzx_mf_key_kind(kind);
    REQUIRE_OK(mfi_encode_kind(record, NULL, &tx->buf));
    put_raw(tx, &key);
}

static void put_cron(mfi_tx *tx, const char *name)
{
    jzx_mf_cron record = {.name = jzx_mf_text(name), .schedule = jzx_mf_text("@hourly"), .kind = 1};
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_CRON, record.name);
    REQUIRE_OK(mfi_encode_cron(&record, NULL, &tx->buf));
    put_raw(tx, &key);
}

static void put_gate(mfi_tx *tx, uint64_t db, uint16_t gate_class, uint64_t job)
{
    jzx_mf_gate record = {.job_id = job, .attempt = 2};
    jzx_mf_key key = jzx_mf_key_gate(db, gate_class);
    REQUIRE_OK(mfi_encode_gate(&record, NULL, &tx->buf));
    put_raw(tx, &key);
}

/* Numbers on both sides of a byte's end. */
static const uint64_t numbers[] = {1, 255, 256, 65536};
enum { NUMBERS = 4 };

static void fill(mfi_tx *tx)
{
    static const char *const names[] = {"one", "two", "three", "four"};
    for (int i = 0; i < NUMBERS; i++) {
        uint64_t n = numbers[i];
        jzx_mf_db db = {.name = jzx_mf_text(names[i]), .retention_ms = n};
        REQUIRE_OK(mfi_db_put(tx, n, &db));
        jzx_mf_material material = {.id = jzx_mf_text(names[i]), .status = 3};
        REQUIRE_OK(mfi_material_put(tx, &material));
        tx->now_ms += 10;
        jzx_mf_metric metric = {.sum = 1, .min = 1, .max = 1, .count = n};
        REQUIRE_OK(mfi_metric_merge(tx, n, 7, &metric));
        uint64_t now;
        REQUIRE_OK(mfi_generation_bump(tx, (uint32_t)n, n, &now));
        jzx_mf_job job = {.kind = 5, .payload = jzx_mf_text(names[i]), .state = 3};
        put_job(tx, n, &job);
        jzx_mf_kind kind = {.limit = (uint32_t)n, .name = jzx_mf_text(names[i])};
        put_kind(tx, (uint16_t)(n % 65535), &kind);
        put_cron(tx, names[i]);
        put_gate(tx, n, 9, n);
    }
    for (int i = 0; i < NUMBERS; i++) {
        jzx_mf_wal wal = {.last_applied_lsn = numbers[i]};
        jzx_mf_chunk chunk = {.file_name = jzx_mf_text(names[i]), .size_bytes = numbers[i]};
        for (uint64_t db = 255; db <= 256; db++) {
            REQUIRE_OK(mfi_wal_put(tx, db, (uint16_t)(numbers[i] % 65535), &wal));
            REQUIRE_OK(mfi_chunk_put(tx, db, numbers[i], &chunk));
        }
    }
}

static jzx_mf_snap snap_of(const mfi_tx *tx)
{
    jzx_mf_snap snap = {.view = tx->view};
    return snap;
}

static bool is_text(jzx_mf_span span, const char *text)
{
    return span.len == strlen(text) && memcmp(span.data, text, span.len) == 0;
}

/* ---- One record. */

static void test_records_are_found_by_their_keys(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    fill(tx);
    jzx_mf_snap snap = snap_of(tx);
    jzx_mf_db db;
    jzx_mf_wal wal;
    jzx_mf_chunk chunk;
    jzx_mf_material material;
    jzx_mf_metric metric;
    jzx_mf_generation generation;
    jzx_mf_gate gate;
    jzx_mf_job job;
    jzx_mf_kind kind;
    uint64_t id = 0;
    CHECK_EQ(jzx_mf_snap_seq(&snap), tx->seq - 1);
    REQUIRE_OK(mfi_meta_store(tx));
    CHECK_EQ(jzx_mf_snap_seq(&snap), tx->seq);
    CHECK_EQ(jzx_mf_snap_seq(NULL), 0);
    CHECK_OK(jzx_mf_db_get(&snap, 256, &db));
    CHECK(is_text(db.name, "three") && db.retention_ms == 256);
    CHECK_OK(jzx_mf_db_find(&snap, jzx_mf_text("two"), &id));
    CHECK_EQ(id, 255);
    CHECK_OK(jzx_mf_wal_get(&snap, 255, 256, &wal));
    CHECK_EQ(wal.last_applied_lsn, 256);
    CHECK_OK(jzx_mf_chunk_get(&snap, 256, 65536, &chunk));
    CHECK(is_text(chunk.file_name, "four") && chunk.size_bytes == 65536);
    CHECK_OK(jzx_mf_material_get(&snap, jzx_mf_text("one"), &material));
    CHECK(is_text(material.id, "one") && material.status == 3);
    CHECK_OK(jzx_mf_metric_get(&snap, 65536, 7, &metric));
    CHECK(metric.count == 65536 && metric.min == 1);
    CHECK_OK(jzx_mf_generation_get(&snap, 255, &generation));
    CHECK_EQ(generation.current, 255);
    CHECK_OK(jzx_mf_generation_get(&snap, 99, &generation)); /* never bumped */
    CHECK(generation.current == 0 && generation.updated_ms == 0);
    CHECK_OK(jzx_mf_gate_get(&snap, 1, 9, &gate));
    CHECK(gate.job_id == 1 && gate.attempt == 2);
    CHECK_OK(jzx_mf_job_get(&snap, 65536, &job));
    CHECK(job.id == 65536 && job.kind == 5 && is_text(job.payload, "four"));
    CHECK_OK(jzx_mf_kind_get(&snap, 255, &kind));
    CHECK(is_text(kind.name, "two") && kind.limit == 255);
    mft_tx_remove(&t);
}

static void test_what_is_not_there_is_not_found_and_nothing_is_written(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    jzx_mf_snap snap = snap_of(tx);
    union {
        uint8_t bytes[512];
        uint64_t id;
        jzx_mf_db db;
        jzx_mf_wal wal;
        jzx_mf_chunk chunk;
        jzx_mf_material material;
        jzx_mf_metric metric;
        jzx_mf_gate gate;
        jzx_mf_job job;
        jzx_mf_kind kind;
    } out;
    static char huge[200];
    memset(huge, 'x', sizeof huge);
    memset(&out, 0xAB, sizeof out);
    jzx_mf_key key = jzx_mf_key_db(1);
    CHECK_EQ(jzx_mf_db_get(&snap, 1, &out.db), JZX_ERR_NOT_FOUND);
    CHECK_EQ(jzx_mf_db_find(&snap, jzx_mf_text("x"), &out.id), JZX_ERR_NOT_FOUND);
    CHECK_EQ(jzx_mf_db_find(&snap, jzx_mf_blob(huge, sizeof huge), &out.id), JZX_ERR_NOT_FOUND);
    CHECK_EQ(jzx_mf_wal_get(&snap, 1, 1, &out.wal), JZX_ERR_NOT_FOUND);
    CHECK_EQ(jzx_mf_chunk_get(&snap, 1, 1, &out.chunk), JZX_ERR_NOT_FOUND);
    CHECK_EQ(jzx_mf_material_get(&snap, jzx_mf_text("x"), &out.material), JZX_ERR_NOT_FOUND);
    CHECK_EQ(jzx_mf_metric_get(&snap, 1, 1, &out.metric), JZX_ERR_NOT_FOUND);
    CHECK_EQ(jzx_mf_gate_get(&snap, 1, 1, &out.gate), JZX_ERR_NOT_FOUND);
    CHECK_EQ(jzx_mf_job_get(&snap, 1, &out.job), JZX_ERR_NOT_FOUND);
    CHECK_EQ(jzx_mf_kind_get(&snap, 1, &out.kind), JZX_ERR_NOT_FOUND);
    CHECK_EQ(jzx_mf_stamp(&snap, &key, &out.id), JZX_ERR_NOT_FOUND);
    for (size_t i = 0; i < sizeof out; i++) {
        CHECK_EQ(out.bytes[i], 0xAB);
    }
    mft_tx_remove(&t);
}

static void test_missing_arguments_are_refused(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    jzx_mf_snap snap = snap_of(tx);
    jzx_mf_db db;
    jzx_mf_material material;
    jzx_mf_key key = jzx_mf_key_db(1);
    uint64_t number;
    CHECK_EQ(jzx_mf_db_get(NULL, 1, &db), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_db_get(&snap, 1, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_generation_get(&snap, 1, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_job_get(&snap, 1, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_db_find(&snap, jzx_mf_text(""), &number), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_db_find(&snap, jzx_mf_text("x"), NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_material_get(&snap, jzx_mf_text(NULL), &material), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_material_get(NULL, jzx_mf_text("x"), &material), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_stamp(&snap, NULL, &number), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_stamp(&snap, &key, NULL), JZX_ERR_INVALID_ARG);
    key.table = JZX_MF_TABLES;
    CHECK_EQ(jzx_mf_stamp(&snap, &key, &number), JZX_ERR_INVALID_ARG);
    key = mfi_key_first(JZX_MF_TABLE_DB);
    CHECK_EQ(jzx_mf_stamp(&snap, &key, &number), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_db_each(&snap, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_wal_each(&snap, 1, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_chunk_each(&snap, 1, 1, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_material_each(&snap, 1, 1, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_job_each(&snap, 1, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_metric_each(&snap, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_generation_each(&snap, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_gate_each(&snap, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_kind_each(&snap, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_cron_each(&snap, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_dump(&snap, 0, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_dump(&snap, JZX_MF_TABLES, mft_add_line, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_event_each(&snap, 0, NULL, NULL), JZX_ERR_INVALID_ARG);
    mft_tx_remove(&t);
}

/* R36: a caller may have been compiled with a shorter struct, or with a longer one. */
static void test_callers_get_as_much_of_a_struct_as_they_know(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    fill(tx);
    jzx_mf_snap snap = snap_of(tx);
    union {
        jzx_mf_job job;
        uint8_t bytes[sizeof(jzx_mf_job) + 64];
    } out;
    jzx_mf_job whole;
    CHECK_OK(jzx_mf_job_get(&snap, 256, &whole));
    for (size_t size = 0; size <= sizeof out; size++) {
        memset(&out, 0xAB, sizeof out);
        CHECK_OK(jzx_mf_job_get_sized(&snap, 256, &out.job, size));
        size_t known = size < sizeof whole ? size : sizeof whole;
        /* Of a first field that is cut nothing can be told. */
        CHECK(size < sizeof whole.id || memcmp(&out, &whole, known) == 0);
        for (size_t i = known; i < sizeof out; i++) {
            CHECK_EQ(out.bytes[i], i < size ? 0 : 0xAB);
        }
    }
    mft_tx_remove(&t);
}

static void test_a_record_with_a_flipped_bit_is_corrupt(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    fill(tx);
    jzx_mf_key key = jzx_mf_key_wal(255, 255);
    jzx_mf_span value;
    uint8_t bytes[512];
    REQUIRE_OK(mfi_get(&tx->view, &key, &value));
    memcpy(bytes, value.data, value.len);
    bytes[20] ^= 4;
    REQUIRE_OK(mfi_put(tx, &key, bytes, value.len));
    jzx_mf_snap snap = snap_of(tx);
    jzx_mf_wal wal;
    CHECK_EQ(jzx_mf_wal_get(&snap, 255, 255, &wal), JZX_ERR_CORRUPT);
    CHECK_OK(jzx_mf_wal_get(&snap, 255, 256, &wal));
    mft_tx_remove(&t);
}

/* ---- Walks. Each notes the numbers it sees and may end early. */

typedef struct notes {
    uint64_t seen[64];
    size_t count;
    size_t stop_at; /* 0: never */
} notes;

static jzx_err note(notes *n, uint64_t number)
{
    REQUIRE(n->count < 64);
    n->seen[n->count++] = number;
    return n->count == n->stop_at ? JZX_ERR_AGAIN : JZX_OK;
}

static jzx_err note_db(void *arg, uint64_t db, const jzx_mf_db *record)
{
    CHECK_EQ(record->retention_ms, db);
    return note(arg, db);
}
static jzx_err note_wal(void *arg, uint16_t shard, const jzx_mf_wal *record)
{
    CHECK_EQ(record->last_applied_lsn % 65535, shard);
    return note(arg, shard);
}
static jzx_err note_chunk(void *arg, uint64_t chunk, const jzx_mf_chunk *record)
{
    CHECK_EQ(record->size_bytes, chunk);
    return note(arg, chunk);
}
static jzx_err note_material(void *arg, const jzx_mf_material *record)
{
    CHECK_EQ(record->status, 3);
    return note(arg, record->updated_ms);
}
static jzx_err note_job(void *arg, const jzx_mf_job *job)
{
    CHECK_EQ(job->kind, 5);
    return note(arg, job->id);
}
static jzx_err note_metric(void *arg, uint64_t scope, uint32_t metric, const jzx_mf_metric *record)
{
    CHECK(metric == 7 && record->count == scope);
    return note(arg, scope);
}
static jzx_err note_generation(void *arg, uint32_t component, const jzx_mf_generation *record)
{
    CHECK_EQ(record->current, component);
    return note(arg, component);
}
static jzx_err note_gate(void *arg, uint64_t db, uint16_t gate_class, const jzx_mf_gate *record)
{
    CHECK(gate_class == 9 && record->job_id == db);
    return note(arg, db);
}
static jzx_err note_kind(void *arg, uint16_t kind, const jzx_mf_kind *record)
{
    CHECK_EQ(record->limit % 65535, kind);
    return note(arg, record->limit);
}
static jzx_err note_cron(void *arg, const jzx_mf_cron *record)
{
    return note(arg, record->name.len);
}

static void check_notes(const notes *n, const uint64_t *want, size_t count)
{
    CHECK_EQ(n->count, count);
    for (size_t i = 0; i < count && i < n->count; i++) {
        CHECK_EQ(n->seen[i], want[i]);
    }
}

static jzx_err walk_nth(jzx_mf_snap *snap, int nth, notes *n)
{
    switch (nth) {
    case 0:
        return jzx_mf_db_each(snap, note_db, n);
    case 1:
        return jzx_mf_chunk_each(snap, 255, 0, note_chunk, n);
    case 2:
        return jzx_mf_job_each(snap, 0, note_job, n);
    case 3:
        return jzx_mf_metric_each(snap, note_metric, n);
    case 4:
        return jzx_mf_generation_each(snap, note_generation, n);
    default:
        return jzx_mf_gate_each(snap, note_gate, n);
    }
}

static void test_walks_go_in_the_order_of_the_numbers_and_end_when_told(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    fill(tx);
    jzx_mf_snap snap = snap_of(tx);
    for (int nth = 0; nth < 6; nth++) {
        notes all = {0}, two = {.stop_at = 2};
        CHECK_OK(walk_nth(&snap, nth, &all));
        check_notes(&all, numbers, NUMBERS);
        CHECK_EQ(walk_nth(&snap, nth, &two), JZX_ERR_AGAIN);
        check_notes(&two, numbers, 2);
    }
    /* 65536 as a number of 16 bits is 1 here, as is 1 itself: three shards, three kinds. */
    static const uint64_t shards[] = {1, 255, 256};
    static const uint64_t kinds[] = {65536, 255, 256};
    static const uint64_t crons[] = {4, 3, 5, 3}; /* four one three two */
    notes n = {0};
    CHECK_OK(jzx_mf_wal_each(&snap, 255, note_wal, &n));
    check_notes(&n, shards, 3);
    n = (notes){0};
    CHECK_OK(jzx_mf_kind_each(&snap, note_kind, &n));
    check_notes(&n, kinds, 3);
    n = (notes){0};
    CHECK_OK(jzx_mf_cron_each(&snap, note_cron, &n));
    check_notes(&n, crons, 4);
    n = (notes){0};
    CHECK_OK(jzx_mf_chunk_each(&snap, 256, 256, note_chunk, &n));
    check_notes(&n, numbers + 2, 2);
    n = (notes){0};
    CHECK_OK(jzx_mf_job_each(&snap, 257, note_job, &n));
    check_notes(&n, numbers + 3, 1);
    n = (notes){0};
    CHECK_OK(jzx_mf_wal_each(&snap, 254, note_wal, &n));
    CHECK_EQ(n.count, 0);
    mft_tx_remove(&t);
}

static void test_what_is_stuck_comes_oldest_first(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    uint64_t first = tx->now_ms;
    fill(tx);
    jzx_mf_snap snap = snap_of(tx);
    const uint64_t times[] = {first, first + 10, first + 20, first + 30};
    notes n = {0};
    CHECK_OK(jzx_mf_material_each(&snap, 3, UINT64_MAX, note_material, &n));
    check_notes(&n, times, 4);
    n = (notes){0};
    CHECK_OK(jzx_mf_material_each(&snap, 3, first + 10, note_material, &n));
    check_notes(&n, times, 2);
    n = (notes){0};
    CHECK_OK(jzx_mf_material_each(&snap, 3, first - 1, note_material, &n));
    CHECK_EQ(n.count, 0);
    CHECK_OK(jzx_mf_material_each(&snap, 2, UINT64_MAX, note_material, &n));
    CHECK_OK(jzx_mf_material_each(&snap, 4, UINT64_MAX, note_material, &n));
    CHECK_EQ(n.count, 0);
    n.stop_at = 1;
    CHECK_EQ(jzx_mf_material_each(&snap, 3, first + 10, note_material, &n), JZX_ERR_AGAIN);
    mft_tx_remove(&t);
}

static void test_rows_that_name_nothing_are_corrupt(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    jzx_mf_snap snap = snap_of(tx);
    notes n = {0};
    jzx_mf_key material = jzx_mf_key_material(jzx_mf_text("gone"));
    jzx_mf_key row = mfi_key_material_status(3, 1, &material);
    REQUIRE_OK(mfi_put_empty(tx, &row));
    CHECK_EQ(jzx_mf_material_each(&snap, 3, 5, note_material, &n), JZX_ERR_CORRUPT);
    jzx_mf_material record = {.id = jzx_mf_text("gone"), .status = 4, .updated_ms = 1};
    REQUIRE_OK(mfi_encode_material(&record, NULL, &tx->buf)); /* says something else */
    put_raw(tx, &material);
    CHECK_EQ(jzx_mf_material_each(&snap, 3, 5, note_material, &n), JZX_ERR_CORRUPT);
    jzx_mf_key key = jzx_mf_key_db(1);
    key.len = 7; /* a good record under a bad key */
    jzx_mf_db db = {.name = jzx_mf_text("x")};
    REQUIRE_OK(mfi_encode_db(&db, NULL, &tx->buf));
    put_raw(tx, &key);
    CHECK_EQ(jzx_mf_db_each(&snap, note_db, &n), JZX_ERR_CORRUPT);
    CHECK_EQ(n.count, 0);
    mft_tx_remove(&t);
}

static void test_every_table_can_be_shown(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    fill(tx);
    jzx_mf_snap snap = snap_of(tx);
    for (uint32_t table = 0; table < JZX_MF_TABLES; table++) {
        mft_text text = {0};
        CHECK_OK(jzx_mf_dump(&snap, table, mft_add_line, &text));
        size_t lines = 0;
        for (size_t i = 0; i < text.len; i++) {
            lines += text.bytes[i] == '\n';
        }
        CHECK_EQ(lines, mfi_entries(&tx->view, table));
        free(text.bytes);
    }
    char *names = mft_dump_table(&tx->view, JZX_MF_TABLE_DB_NAME);
    CHECK_STR(names, "db_name\ndb_name name=\"four\" -> 65536\ndb_name name=\"one\" -> 1\n"
                     "db_name name=\"three\" -> 256\ndb_name name=\"two\" -> 255\n");
    free(names);
    mft_tx_remove(&t);
}

/* ---- Events. */

static jzx_err note_event(void *arg, const jzx_mf_event *event)
{
    return note(arg, event->seq * 100 + event->change * 10 + event->index);
}

static jzx_err check_key(void *arg, const jzx_mf_event *event)
{
    jzx_mf_key want = jzx_mf_key_generation((uint32_t)(event->seq % 2));
    CHECK_EQ(event->key.table, JZX_MF_TABLE_GENERATION);
    CHECK(event->key.len == want.len && memcmp(event->key.bytes, want.bytes, want.len) == 0);
    (*(int *)arg)++;
    return JZX_OK;
}

static void test_events_come_in_order_after_a_commit(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    uint64_t now, first = tx->seq;
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(mfi_generation_bump(tx, (uint32_t)(tx->seq % 2), 1, &now));
        REQUIRE_OK(mfi_generation_bump(tx, (uint32_t)(tx->seq % 2), 1, &now));
        mft_tx_commit(&t);
        tx = mft_tx_begin(&t);
    }
    jzx_mf_snap snap = snap_of(tx);
    const uint64_t want[] = {first * 100 + 10,       first * 100 + 11,
                             (first + 1) * 100 + 10, (first + 1) * 100 + 11,
                             (first + 2) * 100 + 10, (first + 2) * 100 + 11};
    notes n = {0};
    CHECK_OK(jzx_mf_event_each(&snap, 0, note_event, &n));
    check_notes(&n, want, 6);
    n = (notes){0};
    CHECK_OK(jzx_mf_event_each(&snap, first, note_event, &n));
    check_notes(&n, want + 2, 4);
    n = (notes){.stop_at = 3};
    CHECK_EQ(jzx_mf_event_each(&snap, 0, note_event, &n), JZX_ERR_AGAIN);
    check_notes(&n, want, 3);
    n = (notes){0};
    CHECK_OK(jzx_mf_event_each(&snap, first + 2, note_event, &n));
    CHECK_OK(jzx_mf_event_each(&snap, UINT64_MAX, note_event, &n));
    CHECK_EQ(n.count, 0);
    int count = 0;
    CHECK_OK(jzx_mf_event_each(&snap, 0, check_key, &count));
    CHECK_EQ(count, 6);
    mft_tx_remove(&t);
}

static void test_events_that_are_not_kept_are_told_as_lost_first(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    uint64_t now, first = tx->seq;
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(mfi_generation_bump(tx, 1, 1, &now));
        REQUIRE_OK(mfi_generation_bump(tx, 1, 1, &now));
        mft_tx_commit(&t);
        tx = mft_tx_begin(&t);
    }
    tx->events_kept = 3; /* half of the second commit's are left */
    REQUIRE_OK(mfi_forget_events(tx, 100));
    mft_tx_commit(&t);
    tx = mft_tx_begin(&t);
    jzx_mf_snap snap = snap_of(tx);
    const uint64_t want[] = {first * 100 + 30, (first + 2) * 100 + 10, (first + 2) * 100 + 11};
    notes n = {0};
    CHECK_OK(jzx_mf_event_each(&snap, first - 1, note_event, &n));
    check_notes(&n, want, 3);
    n = (notes){0};
    CHECK_OK(jzx_mf_event_each(&snap, first + 1, note_event, &n)); /* has seen all that is lost */
    check_notes(&n, want + 1, 2);
    n = (notes){.stop_at = 1};
    CHECK_EQ(jzx_mf_event_each(&snap, first - 1, note_event, &n), JZX_ERR_AGAIN);
    check_notes(&n, want, 1);
    mft_tx_remove(&t);
}

#define T(name)                                                                                    \
    {                                                                                              \
#name, test_##name                                                                         \
    }
static const jzt_test tests[] = {
    T(records_are_found_by_their_keys),
    T(what_is_not_there_is_not_found_and_nothing_is_written),
    T(missing_arguments_are_refused),
    T(callers_get_as_much_of_a_struct_as_they_know),
    T(a_record_with_a_flipped_bit_is_corrupt),
    T(walks_go_in_the_order_of_the_numbers_and_end_when_told),
    T(what_is_stuck_comes_oldest_first),
    T(rows_that_name_nothing_are_corrupt),
    T(every_table_can_be_shown),
    T(events_come_in_order_after_a_commit),
    T(events_that_are_not_kept_are_told_as_lost_first),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
