#include "tx.h"

#include "bytes.h"
#include "key.h"

#include <jzx/manifest_watch.h>

#include <string.h>

static MDB_val val_of(const void *data, size_t len)
{
    MDB_val val = {len, (void *)(uintptr_t)data};
    return val;
}

static MDB_val key_val(const jzx_mf_key *key)
{
    return val_of(key->bytes, key->len);
}

static MDB_dbi dbi_of(const mfi_view *view, const jzx_mf_key *key)
{
    return mfi_store_dbi(view->store, key->table);
}

jzx_err mfi_get(const mfi_view *view, const jzx_mf_key *key, jzx_mf_span *out)
{
    MDB_val at = key_val(key);
    MDB_val value;
    int rc = mdb_get(view->txn, dbi_of(view, key), &at, &value);
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    *out = jzx_mf_blob(value.mv_data, value.mv_size);
    return JZX_OK;
}

bool mfi_has(const mfi_view *view, const jzx_mf_key *key)
{
    jzx_mf_span ignored;
    return mfi_get(view, key, &ignored) == JZX_OK;
}

jzx_err mfi_get_id(const mfi_view *view, const jzx_mf_key *key, uint64_t *out)
{
    jzx_mf_span value;
    jzx_err err = mfi_get(view, key, &value);
    if (err != JZX_OK) {
        return err;
    }
    if (value.len != 8) {
        return JZX_ERR_CORRUPT;
    }
    *out = mfi_get_be64(value.data);
    return JZX_OK;
}

jzx_err mfi_put(mfi_tx *tx, const jzx_mf_key *key, const void *value, size_t len)
{
    MDB_val at = key_val(key);
    MDB_val what = val_of(value, len);
    tx->writes++;
    tx->written += len;
    return mfi_err_of(mdb_put(tx->view.txn, dbi_of(&tx->view, key), &at, &what, 0));
}

jzx_err mfi_put_id(mfi_tx *tx, const jzx_mf_key *key, uint64_t id)
{
    uint8_t bytes[8];
    mfi_put_be64(bytes, id);
    return mfi_put(tx, key, bytes, sizeof bytes);
}

jzx_err mfi_put_empty(mfi_tx *tx, const jzx_mf_key *key)
{
    return mfi_put(tx, key, "", 0);
}

jzx_err mfi_del(mfi_tx *tx, const jzx_mf_key *key)
{
    MDB_val at = key_val(key);
    tx->writes++;
    return mfi_err_of(mdb_del(tx->view.txn, dbi_of(&tx->view, key), &at, NULL));
}

static bool begins_with(const MDB_val *row, const jzx_mf_key *from, uint32_t prefix_len)
{
    return row->mv_size >= prefix_len && memcmp(row->mv_data, from->bytes, prefix_len) == 0;
}

jzx_err mfi_seek(const mfi_view *view, const jzx_mf_key *from, uint32_t prefix_len, jzx_mf_key *key,
                 jzx_mf_span *value)
{
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(view->txn, dbi_of(view, from), &cursor);
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    MDB_val at = key_val(from);
    MDB_val what;
    rc = mdb_cursor_get(cursor, &at, &what, from->len == 0 ? MDB_FIRST : MDB_SET_RANGE);
    jzx_err err = mfi_err_of(rc);
    if (err == JZX_OK && !begins_with(&at, from, prefix_len)) {
        err = JZX_ERR_NOT_FOUND;
    }
    if (err == JZX_OK && at.mv_size > JZX_MF_KEY_BYTES) {
        err = JZX_ERR_CORRUPT;
    }
    if (err == JZX_OK) {
        uint32_t table = from->table; /* key and from may be the same */
        memcpy(key->bytes, at.mv_data, at.mv_size);
        key->len = (uint32_t)at.mv_size;
        key->table = table;
        if (value != NULL) {
            *value = jzx_mf_blob(what.mv_data, what.mv_size);
        }
    }
    mdb_cursor_close(cursor);
    return err;
}

jzx_mf_key mfi_key_after(const jzx_mf_key *key)
{
    jzx_mf_key next = *key;
    if (next.len < JZX_MF_KEY_BYTES) {
        next.bytes[next.len++] = 0;
        return next;
    }
    /* Only names could be that long, and they are not: add one to the number instead. */
    for (uint32_t i = next.len; i-- > 0 && ++next.bytes[i] == 0;) {
    }
    return next;
}

jzx_err mfi_walk(const mfi_view *view, const jzx_mf_key *from, uint32_t prefix_len, mfi_row_fn fn,
                 void *arg)
{
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(view->txn, dbi_of(view, from), &cursor);
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    MDB_val at = key_val(from);
    MDB_val what;
    rc = mdb_cursor_get(cursor, &at, &what, from->len == 0 ? MDB_FIRST : MDB_SET_RANGE);
    jzx_err err = JZX_OK;
    while (rc == 0 && err == JZX_OK && begins_with(&at, from, prefix_len)) {
        err = fn(arg, jzx_mf_blob(at.mv_data, at.mv_size), jzx_mf_blob(what.mv_data, what.mv_size));
        rc = mdb_cursor_get(cursor, &at, &what, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    if (err != JZX_OK) {
        return err;
    }
    return rc == 0 || rc == MDB_NOTFOUND ? JZX_OK : mfi_err_of(rc);
}

uint64_t mfi_entries(const mfi_view *view, uint32_t table)
{
    MDB_stat stat;
    return mdb_stat(view->txn, mfi_store_dbi(view->store, table), &stat) == 0 ? stat.ms_entries : 0;
}

/* Jobs, logs and metrics change all the time; who does not ask for them does not pay for them. */
static bool is_told(const mfi_tx *tx, uint32_t table)
{
    switch (table) {
    case JZX_MF_TABLE_DB:
    case JZX_MF_TABLE_CHUNK:
    case JZX_MF_TABLE_MATERIAL:
    case JZX_MF_TABLE_GENERATION:
        return true;
    case JZX_MF_TABLE_WAL:
    case JZX_MF_TABLE_JOB:
    case JZX_MF_TABLE_METRIC:
    case JZX_MF_TABLE_KIND:
    case JZX_MF_TABLE_CRON:
    case JZX_MF_TABLE_GATE:
        return tx->all_events;
    default:
        return false;
    }
}

jzx_err mfi_tell(mfi_tx *tx, const jzx_mf_key *key, uint32_t change)
{
    if (!is_told(tx, key->table)) {
        return JZX_OK;
    }
    mfi_event event = {jzx_mf_blob(key->bytes, key->len), key->table, change};
    jzx_err err = mfi_encode_event(&event, NULL, &tx->buf);
    if (err != JZX_OK) {
        return err;
    }
    jzx_mf_key at = mfi_key_event(tx->seq, tx->event_index);
    err = mfi_put(tx, &at, tx->buf.bytes, tx->buf.len);
    if (err == JZX_OK) {
        tx->event_index++;
        tx->news.event = true;
    }
    return err;
}

/* A commit whose events are only partly there counts as forgotten. */
static void note_first_event(mfi_tx *tx)
{
    jzx_mf_key first = mfi_key_first(JZX_MF_TABLE_EVENT);
    if (mfi_seek(&tx->view, &first, 0, &first, NULL) != JZX_OK || first.len != 12) {
        tx->meta.event_first = tx->seq + 1;
        return;
    }
    uint64_t seq = mfi_get_be64(first.bytes);
    tx->meta.event_first = mfi_get_be32(first.bytes + 8) == 0 ? seq : seq + 1;
}

jzx_err mfi_forget_events(mfi_tx *tx, uint32_t max)
{
    uint64_t there = mfi_entries(&tx->view, JZX_MF_TABLE_EVENT);
    if (there <= tx->events_kept) {
        return JZX_OK;
    }
    uint64_t excess = there - tx->events_kept;
    jzx_err err = JZX_OK;
    for (uint64_t i = 0; err == JZX_OK && i < excess && i < max; i++) {
        jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_EVENT);
        err = mfi_seek(&tx->view, &key, 0, &key, NULL);
        if (err == JZX_OK) {
            err = mfi_del(tx, &key);
        }
    }
    if (err == JZX_OK) {
        note_first_event(tx);
    }
    return err;
}

jzx_err mfi_meta_load(const mfi_view *view, mfi_meta *out)
{
    jzx_mf_key key = mfi_key_meta();
    jzx_mf_span value;
    jzx_err err = mfi_get(view, &key, &value);
    return err != JZX_OK ? err : mfi_decode_meta(value, out, NULL);
}

jzx_err mfi_meta_store(mfi_tx *tx)
{
    jzx_mf_key key = mfi_key_meta();
    jzx_mf_span value;
    mfi_rest rest = {{NULL, 0}, {NULL, 0}};
    mfi_meta old;
    if (mfi_get(&tx->view, &key, &value) == JZX_OK) {
        jzx_err err = mfi_decode_meta(value, &old, &rest);
        if (err != JZX_OK) {
            return err;
        }
    }
    jzx_err err = mfi_encode_meta(&tx->meta, &rest, &tx->buf);
    return err != JZX_OK ? err : mfi_put(tx, &key, tx->buf.bytes, tx->buf.len);
}

uint64_t mfi_new_job(mfi_tx *tx)
{
    return tx->next_job == NULL ? tx->meta.job_ids++
                                : atomic_fetch_add_explicit(tx->next_job, 1, memory_order_relaxed);
}
