#include "tables.h"

#include "key.h"

#include <jzx/manifest_txn.h>
#include <jzx/manifest_watch.h>

#include <math.h>
#include <string.h>

/* ---- What a caller can be told at once. */

static jzx_err span_check(jzx_mf_span span, size_t max, bool required)
{
    if ((span.len > 0 && span.data == NULL) || (required && span.len == 0)) {
        return JZX_ERR_INVALID_ARG;
    }
    return span.len <= max ? JZX_OK : JZX_ERR_TOO_BIG;
}

static jzx_err first_of(const jzx_err *errs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (errs[i] != JZX_OK) {
            return errs[i];
        }
    }
    return JZX_OK;
}

jzx_err mfi_db_check(const jzx_mf_db *record)
{
    jzx_err errs[] = {
        span_check(record->name, JZX_MF_NAME_MAX, true),
        span_check(record->wal_dir, JZX_MF_PATH_MAX, false),
        span_check(record->chunk_dir, JZX_MF_PATH_MAX, false),
        span_check(record->key_id, JZX_MF_OBJECT_MAX, false),
    };
    return first_of(errs, sizeof errs / sizeof errs[0]);
}

jzx_err mfi_chunk_check(const jzx_mf_chunk *record)
{
    jzx_err errs[] = {
        span_check(record->file_name, JZX_MF_FILE_MAX, true),
        span_check(record->object, JZX_MF_OBJECT_MAX, false),
        record->wal_begin <= record->wal_end ? JZX_OK : JZX_ERR_INVALID_ARG,
    };
    return first_of(errs, sizeof errs / sizeof errs[0]);
}

jzx_err mfi_material_check(const jzx_mf_material *record)
{
    jzx_err errs[] = {
        span_check(record->id, JZX_MF_OBJECT_MAX, true),
        span_check(record->payload, JZX_MF_PAYLOAD_MAX, false),
        span_check(record->error, JZX_MF_TEXT_MAX, false),
    };
    return first_of(errs, sizeof errs / sizeof errs[0]);
}

jzx_err mfi_metric_check(const jzx_mf_metric *delta)
{
    bool is_nan = isnan(delta->sum) || isnan(delta->min) || isnan(delta->max);
    bool is_turned = delta->count > 0 && delta->min > delta->max;
    return is_nan || is_turned ? JZX_ERR_INVALID_ARG : JZX_OK;
}

/* ---- What all tables do. */

/* What the record under a key has beyond what is known; nothing when there is none. */
static jzx_err rest_of(const mfi_view *view, const jzx_mf_key *key, mfi_rest *rest)
{
    *rest = (mfi_rest){0};
    jzx_mf_span value;
    jzx_err err = mfi_get(view, key, &value);
    if (err == JZX_ERR_NOT_FOUND) {
        return JZX_OK;
    }
    return err == JZX_OK ? mfi_value_rest(key->table, value, rest) : err;
}

/* Stores what was encoded into the buffer. */
static jzx_err put_and_tell(mfi_tx *tx, const jzx_mf_key *key)
{
    jzx_err err = mfi_put(tx, key, tx->buf.bytes, tx->buf.len);
    return err == JZX_OK ? mfi_tell(tx, key, JZX_MF_PUT) : err;
}

static jzx_err del_and_tell(mfi_tx *tx, const jzx_mf_key *key)
{
    jzx_err err = mfi_del(tx, key);
    return err == JZX_OK ? mfi_tell(tx, key, JZX_MF_DEL) : err;
}

/* What is not there is deleted already. */
static jzx_err del_if_there(mfi_tx *tx, const jzx_mf_key *key)
{
    jzx_err err = del_and_tell(tx, key);
    return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
}

/* ---- Databases. */

/* A database as it is stored, and whether it is. */
typedef struct db_now {
    bool is_there;
    jzx_mf_key name; /* its row in db_name */
    mfi_rest rest;
} db_now;

static jzx_err db_look(const mfi_view *view, uint64_t db, const jzx_mf_key *key, db_now *out)
{
    *out = (db_now){0};
    jzx_mf_span value;
    jzx_err err = mfi_get(view, key, &value);
    if (err != JZX_OK) {
        return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
    }
    jzx_mf_db record;
    err = mfi_decode_db(value, &record, &out->rest);
    if (err != JZX_OK) {
        return err;
    }
    uint64_t owner;
    out->is_there = true;
    out->name = mfi_key_name(JZX_MF_TABLE_DB_NAME, record.name);
    err = mfi_get_id(view, &out->name, &owner);
    if (err == JZX_ERR_NOT_FOUND || (err == JZX_OK && owner != db)) {
        return JZX_ERR_CORRUPT;
    }
    return err;
}

/* NAME_TAKEN when the name is another database's. */
static jzx_err name_check(const mfi_view *view, const jzx_mf_key *name, uint64_t db)
{
    uint64_t owner;
    jzx_err err = mfi_get_id(view, name, &owner);
    if (err == JZX_OK && owner != db) {
        return JZX_ERR_NAME_TAKEN;
    }
    return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
}

static bool same_key(const jzx_mf_key *a, const jzx_mf_key *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

jzx_err mfi_db_put(mfi_tx *tx, uint64_t db, const jzx_mf_db *record)
{
    jzx_err err = mfi_db_check(record);
    if (err != JZX_OK) {
        return err;
    }
    jzx_mf_key key = jzx_mf_key_db(db);
    jzx_mf_key name = mfi_key_name(JZX_MF_TABLE_DB_NAME, record->name);
    db_now now;
    err = name_check(&tx->view, &name, db);
    if (err == JZX_OK) {
        err = db_look(&tx->view, db, &key, &now);
    }
    if (err != JZX_OK) {
        return err;
    }
    jzx_mf_db stored = *record;
    stored.created_ms = record->created_ms != 0 ? record->created_ms : tx->now_ms;
    err = mfi_encode_db(&stored, &now.rest, &tx->buf);
    if (err == JZX_OK) {
        err = put_and_tell(tx, &key);
    }
    if (err == JZX_OK && now.is_there && !same_key(&now.name, &name)) {
        err = mfi_del(tx, &now.name);
    }
    return err == JZX_OK ? mfi_put_id(tx, &name, db) : err;
}

/* All rows that begin with the database's number. */
static jzx_err del_all(mfi_tx *tx, jzx_mf_key prefix)
{
    jzx_mf_key key;
    jzx_err err;
    while ((err = mfi_seek(&tx->view, &prefix, prefix.len, &key, NULL)) == JZX_OK) {
        err = del_and_tell(tx, &key);
        if (err != JZX_OK) {
            return err;
        }
    }
    return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
}

/* Whether the job a gate names still has a claim to it. */
static jzx_err gate_is_held(const mfi_view *view, jzx_mf_span value, bool *out)
{
    jzx_mf_gate gate;
    jzx_mf_job job;
    *out = false;
    jzx_err err = mfi_decode_gate(value, &gate, NULL);
    if (err != JZX_OK) {
        return err;
    }
    jzx_mf_key key = jzx_mf_key_job(gate.job_id);
    err = mfi_get(view, &key, &value);
    if (err != JZX_OK) {
        return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
    }
    err = mfi_decode_job(value, &job, NULL);
    *out = err == JZX_OK && job.state < JZX_MF_JOB_DONE;
    return err;
}

/* A gate outlives its database while a job holds it: what it excludes must not begin beside that
 * job. The gate goes when the job ends. */
static jzx_err del_gates(mfi_tx *tx, jzx_mf_key from)
{
    uint32_t prefix_len = from.len;
    jzx_mf_key key;
    jzx_mf_span value;
    jzx_err err;
    while ((err = mfi_seek(&tx->view, &from, prefix_len, &key, &value)) == JZX_OK) {
        bool held;
        err = gate_is_held(&tx->view, value, &held);
        if (err == JZX_OK && !held) {
            err = del_and_tell(tx, &key);
        }
        if (err != JZX_OK) {
            return err;
        }
        from = mfi_key_after(&key);
    }
    return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
}

static jzx_mf_key rows_of_db(uint32_t table, uint64_t db)
{
    jzx_mf_key key = jzx_mf_key_db(db);
    key.table = table;
    return key;
}

jzx_err mfi_db_del(mfi_tx *tx, uint64_t db)
{
    jzx_mf_key key = jzx_mf_key_db(db);
    db_now now;
    jzx_err err = db_look(&tx->view, db, &key, &now);
    if (err != JZX_OK || !now.is_there) {
        return err;
    }
    err = mfi_del(tx, &now.name);
    if (err == JZX_OK) {
        err = del_all(tx, rows_of_db(JZX_MF_TABLE_WAL, db));
    }
    if (err == JZX_OK) {
        err = del_all(tx, rows_of_db(JZX_MF_TABLE_CHUNK, db));
    }
    if (err == JZX_OK) {
        err = del_gates(tx, rows_of_db(JZX_MF_TABLE_GATE, db));
    }
    return err == JZX_OK ? del_and_tell(tx, &key) : err;
}

/* ---- Logs and chunks: they belong to a database. */

/* NOT_FOUND without the database; else what a record under this key has beyond what is known. */
static jzx_err part_look(const mfi_view *view, uint64_t db, const jzx_mf_key *key, mfi_rest *rest)
{
    jzx_mf_key owner = jzx_mf_key_db(db);
    jzx_mf_span ignored;
    jzx_err err = mfi_get(view, &owner, &ignored);
    return err == JZX_OK ? rest_of(view, key, rest) : err;
}

jzx_err mfi_wal_put(mfi_tx *tx, uint64_t db, uint16_t shard, const jzx_mf_wal *record)
{
    jzx_mf_key key = jzx_mf_key_wal(db, shard);
    mfi_rest rest;
    jzx_err err = part_look(&tx->view, db, &key, &rest);
    if (err == JZX_OK) {
        err = mfi_encode_wal(record, &rest, &tx->buf);
    }
    return err == JZX_OK ? put_and_tell(tx, &key) : err;
}

jzx_err mfi_wal_del(mfi_tx *tx, uint64_t db, uint16_t shard)
{
    jzx_mf_key key = jzx_mf_key_wal(db, shard);
    return del_if_there(tx, &key);
}

jzx_err mfi_chunk_put(mfi_tx *tx, uint64_t db, uint64_t chunk, const jzx_mf_chunk *record)
{
    jzx_mf_key key = jzx_mf_key_chunk(db, chunk);
    mfi_rest rest;
    jzx_err err = mfi_chunk_check(record);
    if (err == JZX_OK) {
        err = part_look(&tx->view, db, &key, &rest);
    }
    if (err == JZX_OK) {
        err = mfi_encode_chunk(record, &rest, &tx->buf);
    }
    return err == JZX_OK ? put_and_tell(tx, &key) : err;
}

jzx_err mfi_chunk_del(mfi_tx *tx, uint64_t db, uint64_t chunk)
{
    jzx_mf_key key = jzx_mf_key_chunk(db, chunk);
    return del_if_there(tx, &key);
}

/* ---- Metrics and generations. */

static uint64_t sum_or_max(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void metric_add(jzx_mf_metric *to, const jzx_mf_metric *delta)
{
    to->sum += delta->sum;
    to->min = fmin(to->min, delta->min);
    to->max = fmax(to->max, delta->max);
    to->count = sum_or_max(to->count, delta->count);
    for (size_t i = 0; i < JZX_MF_BUCKETS; i++) {
        to->buckets[i] = sum_or_max(to->buckets[i], delta->buckets[i]);
    }
}

jzx_err mfi_metric_merge(mfi_tx *tx, uint64_t scope, uint32_t metric, const jzx_mf_metric *delta)
{
    jzx_err err = mfi_metric_check(delta);
    if (err != JZX_OK || delta->count == 0) {
        return err;
    }
    jzx_mf_key key = jzx_mf_key_metric(scope, metric);
    jzx_mf_metric record = {.min = (double)INFINITY, .max = -(double)INFINITY};
    mfi_rest rest = {0};
    jzx_mf_span value;
    err = mfi_get(&tx->view, &key, &value);
    if (err == JZX_OK) {
        err = mfi_decode_metric(value, &record, &rest);
    } else if (err == JZX_ERR_NOT_FOUND) {
        err = JZX_OK;
    }
    if (err != JZX_OK) {
        return err;
    }
    metric_add(&record, delta);
    if (isnan(record.sum)) {
        return JZX_ERR_INVALID_ARG; /* infinity and minus infinity met */
    }
    record.updated_ms = tx->now_ms;
    err = mfi_encode_metric(&record, &rest, &tx->buf);
    return err == JZX_OK ? put_and_tell(tx, &key) : err;
}

jzx_err mfi_generation_bump(mfi_tx *tx, uint32_t component, uint64_t by, uint64_t *out_now)
{
    jzx_mf_key key = jzx_mf_key_generation(component);
    jzx_mf_generation record = {0};
    mfi_rest rest = {0};
    jzx_mf_span value;
    jzx_err err = mfi_get(&tx->view, &key, &value);
    if (err == JZX_OK) {
        err = mfi_decode_generation(value, &record, &rest);
    } else if (err == JZX_ERR_NOT_FOUND) {
        err = JZX_OK;
    }
    if (err != JZX_OK) {
        return err;
    }
    if (by == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    if (by > UINT64_MAX - record.current) {
        return JZX_ERR_TOO_BIG;
    }
    record.current += by;
    record.updated_ms = tx->now_ms;
    err = mfi_encode_generation(&record, &rest, &tx->buf);
    if (err == JZX_OK) {
        err = put_and_tell(tx, &key);
    }
    if (err == JZX_OK) {
        tx->news.generation = true;
        *out_now = record.current;
    }
    return err;
}

/* ---- Conditions. */

jzx_err mfi_expect(mfi_tx *tx, const jzx_mf_key *key, uint64_t stamp)
{
    if (key->table >= JZX_MF_TABLES || key->len == 0 || key->len > JZX_MF_KEY_BYTES) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_mf_span value;
    jzx_err err = mfi_get(&tx->view, key, &value);
    if (err == JZX_ERR_NOT_FOUND) {
        return stamp == JZX_MF_ABSENT ? JZX_OK : JZX_ERR_CONFLICT;
    }
    if (err == JZX_OK) {
        err = mfi_value_check(key->table, value); /* a damaged one is no other one */
    }
    if (err != JZX_OK) {
        return err;
    }
    bool holds = stamp == JZX_MF_PRESENT || stamp == mfi_value_stamp(key->table, value);
    return holds ? JZX_OK : JZX_ERR_CONFLICT;
}
