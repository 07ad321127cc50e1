/* Reading from a snapshot: one record, or many in the order of their keys. */
#include "bytes.h"
#include "key.h"
#include "snap.h"

#include <jzx/manifest_watch.h>

#include <stddef.h>
#include <string.h>

uint64_t jzx_mf_snap_seq(const jzx_mf_snap *snap)
{
    mfi_meta meta;
    return snap != NULL && mfi_meta_load(&snap->view, &meta) == JZX_OK ? meta.commit_seq : 0;
}

jzx_err jzx_mf_stamp(jzx_mf_snap *snap, const jzx_mf_key *key, uint64_t *out_stamp)
{
    if (snap == NULL || key == NULL || out_stamp == NULL || key->table >= JZX_MF_TABLES ||
        key->len == 0 || key->len > JZX_MF_KEY_BYTES) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_mf_span value;
    jzx_err err = mfi_get(&snap->view, key, &value);
    if (err == JZX_OK) {
        err = mfi_value_check(key->table, value);
    }
    if (err == JZX_OK) {
        *out_stamp = mfi_value_stamp(key->table, value);
    }
    return err;
}

/* ---- One record. */

static jzx_err record_get(jzx_mf_snap *snap, const jzx_mf_key *key, void *out, size_t size)
{
    if (snap == NULL || out == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_mf_span value;
    jzx_err err = mfi_get(&snap->view, key, &value);
    return err == JZX_OK ? mfi_value_read(key->table, value, out, size) : err;
}

jzx_err jzx_mf_db_get_sized(jzx_mf_snap *snap, uint64_t db, jzx_mf_db *out, size_t size)
{
    jzx_mf_key key = jzx_mf_key_db(db);
    return record_get(snap, &key, out, size);
}

jzx_err jzx_mf_db_find(jzx_mf_snap *snap, jzx_mf_span name, uint64_t *out_db)
{
    if (snap == NULL || out_db == NULL || name.data == NULL || name.len == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    if (name.len > JZX_MF_NAME_MAX) {
        return JZX_ERR_NOT_FOUND;
    }
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_DB_NAME, name);
    return mfi_get_id(&snap->view, &key, out_db);
}

jzx_err jzx_mf_wal_get_sized(jzx_mf_snap *snap, uint64_t db, uint16_t shard, jzx_mf_wal *out,
                             size_t size)
{
    jzx_mf_key key = jzx_mf_key_wal(db, shard);
    return record_get(snap, &key, out, size);
}

jzx_err jzx_mf_chunk_get_sized(jzx_mf_snap *snap, uint64_t db, uint64_t chunk, jzx_mf_chunk *out,
                               size_t size)
{
    jzx_mf_key key = jzx_mf_key_chunk(db, chunk);
    return record_get(snap, &key, out, size);
}

jzx_err jzx_mf_material_get_sized(jzx_mf_snap *snap, jzx_mf_span id, jzx_mf_material *out,
                                  size_t size)
{
    if (out == NULL || id.data == NULL || id.len == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_mf_key key = jzx_mf_key_material(id);
    jzx_mf_material record;
    jzx_err err = record_get(snap, &key, &record, sizeof record);
    if (err != JZX_OK) {
        return err;
    }
    /* Another id with the same hash is another material. */
    if (record.id.len != id.len || memcmp(record.id.data, id.data, id.len) != 0) {
        return JZX_ERR_NOT_FOUND;
    }
    return record_get(snap, &key, out, size);
}

jzx_err jzx_mf_metric_get_sized(jzx_mf_snap *snap, uint64_t scope, uint32_t metric,
                                jzx_mf_metric *out, size_t size)
{
    jzx_mf_key key = jzx_mf_key_metric(scope, metric);
    return record_get(snap, &key, out, size);
}

jzx_err jzx_mf_generation_get(jzx_mf_snap *snap, uint32_t component, jzx_mf_generation *out)
{
    jzx_mf_key key = jzx_mf_key_generation(component);
    jzx_err err = record_get(snap, &key, out, sizeof *out);
    if (err == JZX_ERR_NOT_FOUND) {
        *out = (jzx_mf_generation){0};
        return JZX_OK;
    }
    return err;
}

jzx_err jzx_mf_gate_get(jzx_mf_snap *snap, uint64_t db, uint16_t gate_class, jzx_mf_gate *out)
{
    jzx_mf_key key = jzx_mf_key_gate(db, gate_class);
    return record_get(snap, &key, out, sizeof *out);
}

jzx_err jzx_mf_job_get_sized(jzx_mf_snap *snap, uint64_t job, jzx_mf_job *out, size_t size)
{
    jzx_mf_key key = jzx_mf_key_job(job);
    jzx_err err = record_get(snap, &key, out, size);
    if (err == JZX_OK && size >= sizeof out->id) {
        out->id = job; /* the first field; it is not in the record */
    }
    if (err == JZX_OK && size > offsetof(jzx_mf_job, unique)) {
        out->unique = mfi_stored_policy(out->unique);
    }
    return err;
}

jzx_err jzx_mf_kind_get_sized(jzx_mf_snap *snap, uint16_t kind, jzx_mf_kind *out, size_t size)
{
    jzx_mf_key key = jzx_mf_key_kind(kind);
    return record_get(snap, &key, out, size);
}

/* ---- Many records. */

typedef union each_fn {
    jzx_mf_db_fn db;
    jzx_mf_wal_fn wal;
    jzx_mf_chunk_fn chunk;
    jzx_mf_material_fn material;
    jzx_mf_job_fn job;
    jzx_mf_metric_fn metric;
    jzx_mf_generation_fn generation;
    jzx_mf_gate_fn gate;
    jzx_mf_kind_fn kind;
    jzx_mf_cron_fn cron;
    jzx_mf_line_fn line;
    jzx_mf_event_fn event;
} each_fn;

typedef struct each {
    jzx_mf_snap *snap;
    each_fn fn;
    void *arg;
    uint64_t before_ms; /* materials */
    bool is_past;       /* likewise: the rest is younger */
    uint32_t table;     /* dumps */
    mfi_buf line;       /* likewise */
} each;

/* A record and its key, which must be as long as those of its table are. */
static jzx_err row_read(uint32_t table, jzx_mf_span key, size_t key_len, jzx_mf_span value,
                        void *out, size_t size)
{
    return key.len == key_len ? mfi_value_read(table, value, out, size) : JZX_ERR_CORRUPT;
}

static uint64_t be64_at(jzx_mf_span key, size_t at)
{
    return mfi_get_be64((const uint8_t *)key.data + at);
}

static uint16_t be16_at(jzx_mf_span key, size_t at)
{
    return mfi_get_be16((const uint8_t *)key.data + at);
}

static uint32_t be32_at(jzx_mf_span key, size_t at)
{
    return mfi_get_be32((const uint8_t *)key.data + at);
}

static jzx_err walk(each *e, const jzx_mf_key *from, uint32_t prefix_len, mfi_row_fn row)
{
    return mfi_walk(&e->snap->view, from, prefix_len, row, e);
}

static jzx_err walk_table(each *e, uint32_t table, mfi_row_fn row)
{
    jzx_mf_key from = mfi_key_first(table);
    return walk(e, &from, 0, row);
}

static jzx_err db_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    const each *e = arg;
    jzx_mf_db record;
    jzx_err err = row_read(JZX_MF_TABLE_DB, key, 8, value, &record, sizeof record);
    return err == JZX_OK ? e->fn.db(e->arg, be64_at(key, 0), &record) : err;
}

jzx_err jzx_mf_db_each(jzx_mf_snap *snap, jzx_mf_db_fn fn, void *arg)
{
    each e = {.snap = snap, .fn.db = fn, .arg = arg};
    return snap != NULL && fn != NULL ? walk_table(&e, JZX_MF_TABLE_DB, db_row)
                                      : JZX_ERR_INVALID_ARG;
}

static jzx_err wal_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    const each *e = arg;
    jzx_mf_wal record;
    jzx_err err = row_read(JZX_MF_TABLE_WAL, key, 10, value, &record, sizeof record);
    return err == JZX_OK ? e->fn.wal(e->arg, be16_at(key, 8), &record) : err;
}

jzx_err jzx_mf_wal_each(jzx_mf_snap *snap, uint64_t db, jzx_mf_wal_fn fn, void *arg)
{
    each e = {.snap = snap, .fn.wal = fn, .arg = arg};
    jzx_mf_key from = jzx_mf_key_wal(db, 0);
    return snap != NULL && fn != NULL ? walk(&e, &from, 8, wal_row) : JZX_ERR_INVALID_ARG;
}

static jzx_err chunk_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    const each *e = arg;
    jzx_mf_chunk record;
    jzx_err err = row_read(JZX_MF_TABLE_CHUNK, key, 16, value, &record, sizeof record);
    return err == JZX_OK ? e->fn.chunk(e->arg, be64_at(key, 8), &record) : err;
}

jzx_err jzx_mf_chunk_each(jzx_mf_snap *snap, uint64_t db, uint64_t from_chunk, jzx_mf_chunk_fn fn,
                          void *arg)
{
    each e = {.snap = snap, .fn.chunk = fn, .arg = arg};
    jzx_mf_key from = jzx_mf_key_chunk(db, from_chunk);
    return snap != NULL && fn != NULL ? walk(&e, &from, 8, chunk_row) : JZX_ERR_INVALID_ARG;
}

/* A row of the index; the record it names must be there and say the same. */
static jzx_err material_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    each *e = arg;
    (void)value;
    if (key.len != 9 + MFI_HASH_BYTES) {
        return JZX_ERR_CORRUPT;
    }
    e->is_past = be64_at(key, 1) > e->before_ms;
    if (e->is_past) {
        return JZX_ERR_NOT_FOUND; /* ends the walk */
    }
    jzx_mf_key at = mfi_key_first(JZX_MF_TABLE_MATERIAL);
    at.len = MFI_HASH_BYTES;
    memcpy(at.bytes, (const uint8_t *)key.data + 9, MFI_HASH_BYTES);
    jzx_mf_material record;
    jzx_err err = record_get(e->snap, &at, &record, sizeof record);
    if (err != JZX_OK) {
        return err == JZX_ERR_NOT_FOUND ? JZX_ERR_CORRUPT : err;
    }
    jzx_mf_key row = mfi_key_material_status(record.status, record.updated_ms, &at);
    if (memcmp(row.bytes, key.data, key.len) != 0) {
        return JZX_ERR_CORRUPT;
    }
    return e->fn.material(e->arg, &record);
}

jzx_err jzx_mf_material_each(jzx_mf_snap *snap, uint8_t status, uint64_t before_ms,
                             jzx_mf_material_fn fn, void *arg)
{
    if (snap == NULL || fn == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    each e = {.snap = snap, .fn.material = fn, .arg = arg, .before_ms = before_ms};
    jzx_mf_key from = mfi_key_first(JZX_MF_TABLE_MATERIAL_STATUS);
    from.bytes[0] = status;
    from.len = 1;
    jzx_err err = walk(&e, &from, 1, material_row);
    return e.is_past ? JZX_OK : err;
}

static jzx_err job_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    const each *e = arg;
    jzx_mf_job record;
    jzx_err err = row_read(JZX_MF_TABLE_JOB, key, 8, value, &record, sizeof record);
    if (err != JZX_OK) {
        return err;
    }
    record.id = be64_at(key, 0);
    record.unique = mfi_stored_policy(record.unique);
    return e->fn.job(e->arg, &record);
}

jzx_err jzx_mf_job_each(jzx_mf_snap *snap, uint64_t from_id, jzx_mf_job_fn fn, void *arg)
{
    each e = {.snap = snap, .fn.job = fn, .arg = arg};
    jzx_mf_key from = jzx_mf_key_job(from_id);
    return snap != NULL && fn != NULL ? walk(&e, &from, 0, job_row) : JZX_ERR_INVALID_ARG;
}

static jzx_err metric_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    const each *e = arg;
    jzx_mf_metric record;
    jzx_err err = row_read(JZX_MF_TABLE_METRIC, key, 12, value, &record, sizeof record);
    return err == JZX_OK ? e->fn.metric(e->arg, be64_at(key, 0), be32_at(key, 8), &record) : err;
}

jzx_err jzx_mf_metric_each(jzx_mf_snap *snap, jzx_mf_metric_fn fn, void *arg)
{
    each e = {.snap = snap, .fn.metric = fn, .arg = arg};
    return snap != NULL && fn != NULL ? walk_table(&e, JZX_MF_TABLE_METRIC, metric_row)
                                      : JZX_ERR_INVALID_ARG;
}

static jzx_err generation_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    const each *e = arg;
    jzx_mf_generation record;
    jzx_err err = row_read(JZX_MF_TABLE_GENERATION, key, 4, value, &record, sizeof record);
    return err == JZX_OK ? e->fn.generation(e->arg, be32_at(key, 0), &record) : err;
}

jzx_err jzx_mf_generation_each(jzx_mf_snap *snap, jzx_mf_generation_fn fn, void *arg)
{
    each e = {.snap = snap, .fn.generation = fn, .arg = arg};
    return snap != NULL && fn != NULL ? walk_table(&e, JZX_MF_TABLE_GENERATION, generation_row)
                                      : JZX_ERR_INVALID_ARG;
}

static jzx_err gate_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    const each *e = arg;
    jzx_mf_gate record;
    jzx_err err = row_read(JZX_MF_TABLE_GATE, key, 10, value, &record, sizeof record);
    return err == JZX_OK ? e->fn.gate(e->arg, be64_at(key, 0), be16_at(key, 8), &record) : err;
}

jzx_err jzx_mf_gate_each(jzx_mf_snap *snap, jzx_mf_gate_fn fn, void *arg)
{
    each e = {.snap = snap, .fn.gate = fn, .arg = arg};
    return snap != NULL && fn != NULL ? walk_table(&e, JZX_MF_TABLE_GATE, gate_row)
                                      : JZX_ERR_INVALID_ARG;
}

static jzx_err kind_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    const each *e = arg;
    jzx_mf_kind record;
    jzx_err err = row_read(JZX_MF_TABLE_KIND, key, 2, value, &record, sizeof record);
    return err == JZX_OK ? e->fn.kind(e->arg, be16_at(key, 0), &record) : err;
}

jzx_err jzx_mf_kind_each(jzx_mf_snap *snap, jzx_mf_kind_fn fn, void *arg)
{
    each e = {.snap = snap, .fn.kind = fn, .arg = arg};
    return snap != NULL && fn != NULL ? walk_table(&e, JZX_MF_TABLE_KIND, kind_row)
                                      : JZX_ERR_INVALID_ARG;
}

static jzx_err cron_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    const each *e = arg;
    jzx_mf_cron record;
    jzx_err err = row_read(JZX_MF_TABLE_CRON, key, key.len, value, &record, sizeof record);
    return err == JZX_OK ? e->fn.cron(e->arg, &record) : err;
}

jzx_err jzx_mf_cron_each(jzx_mf_snap *snap, jzx_mf_cron_fn fn, void *arg)
{
    each e = {.snap = snap, .fn.cron = fn, .arg = arg};
    return snap != NULL && fn != NULL ? walk_table(&e, JZX_MF_TABLE_CRON, cron_row)
                                      : JZX_ERR_INVALID_ARG;
}

static jzx_err line_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    each *e = arg;
    jzx_err err = mfi_value_dump(e->table, key, value, &e->line);
    return err == JZX_OK ? e->fn.line(e->arg, (const char *)e->line.bytes, e->line.len) : err;
}

jzx_err jzx_mf_dump(jzx_mf_snap *snap, uint32_t table, jzx_mf_line_fn fn, void *arg)
{
    if (snap == NULL || fn == NULL || table >= JZX_MF_TABLES) {
        return JZX_ERR_INVALID_ARG;
    }
    each e = {.snap = snap, .fn.line = fn, .arg = arg, .table = table};
    jzx_err err = mfi_walk_raw(&snap->view, table, line_row, &e);
    mfi_buf_free(&e.line);
    return err;
}

/* ---- Events. */

static jzx_err event_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    const each *e = arg;
    mfi_event record;
    jzx_err err = row_read(JZX_MF_TABLE_EVENT, key, 12, value, &record, sizeof record);
    if (err != JZX_OK) {
        return err;
    }
    jzx_mf_event event = {.seq = be64_at(key, 0),
                          .index = be32_at(key, 8),
                          .change = record.change,
                          .key = mfi_key_name(record.table, record.key)};
    return e->fn.event(e->arg, &event);
}

jzx_err jzx_mf_event_each(jzx_mf_snap *snap, uint64_t after, jzx_mf_event_fn fn, void *arg)
{
    if (snap == NULL || fn == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (after == UINT64_MAX) {
        return JZX_OK; /* nothing comes after it */
    }
    jzx_mf_key key = mfi_key_meta();
    mfi_meta meta;
    jzx_err err = record_get(snap, &key, &meta, sizeof meta);
    if (err != JZX_OK) {
        return err;
    }
    uint64_t from = after + 1;
    if (from < meta.event_first) {
        /* A commit whose events are kept in part is lost as a whole. */
        jzx_mf_event lost = {.seq = from, .change = JZX_MF_LOST};
        err = fn(arg, &lost);
        from = meta.event_first;
    }
    each e = {.snap = snap, .fn.event = fn, .arg = arg};
    key = mfi_key_event(from, 0);
    return err == JZX_OK ? walk(&e, &key, 0, event_row) : err;
}
