#include "tx.h"

#include "bytes.h"
#include "key.h"
#include "row.h"

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

static jzx_mf_span span_of(const MDB_val *val)
{
    return jzx_mf_blob(val->mv_data, val->mv_size);
}

/* ---- What is found was stored, and what is not found is not there (docs/internals/adr/0024). */

static int tx_compare(const MDB_val *a, const MDB_val *b)
{
    size_t shorter = a->mv_size < b->mv_size ? a->mv_size : b->mv_size;
    int order = memcmp(a->mv_data, b->mv_data, shorter);
    return order != 0 ? order : a->mv_size < b->mv_size ? -1 : a->mv_size > b->mv_size;
}

static jzx_err row_check(uint32_t table, const MDB_val *key, const MDB_val *value)
{
    return mfi_row_check(table, span_of(key), span_of(value));
}

/* The first row at or after `from`: its key and value, or NOT_FOUND. Both it and the row before it
 * are looked at: their checksums hold, and they are on their sides of `from`. Then nothing can be
 * between them, wherever a damaged key would have sent the search.
 *
 * The cursor is new: one that has been used looks at the page where it is first, and a damaged key
 * there could keep it from searching. Afterwards the row is *out_step away from where it is. */
static jzx_err cursor_place(MDB_cursor *cursor, const jzx_mf_key *from, MDB_val *key,
                            MDB_val *value, MDB_cursor_op *out_step)
{
    *out_step = MDB_GET_CURRENT;
    MDB_val wanted = key_val(from);
    *key = wanted;
    int rc = mdb_cursor_get(cursor, key, value, from->len == 0 ? MDB_FIRST : MDB_SET_RANGE);
    bool is_end = rc == MDB_NOTFOUND;
    if (rc != 0 && !is_end) {
        return mfi_err_of(rc);
    }
    int order = is_end ? 1 : tx_compare(key, &wanted);
    if (order < 0 || (!is_end && row_check(from->table, key, value) != JZX_OK)) {
        return JZX_ERR_CORRUPT;
    }
    if (from->len == 0 || order == 0) {
        return is_end ? JZX_ERR_NOT_FOUND : JZX_OK; /* nothing can be before it */
    }
    MDB_val before;
    MDB_val its_value;
    rc = mdb_cursor_get(cursor, &before, &its_value, is_end ? MDB_LAST : MDB_PREV);
    if (rc != 0 && rc != MDB_NOTFOUND) {
        return mfi_err_of(rc);
    }
    if (rc == 0 && (tx_compare(&before, &wanted) >= 0 ||
                    row_check(from->table, &before, &its_value) != JZX_OK)) {
        return JZX_ERR_CORRUPT;
    }
    *out_step = rc == 0 ? MDB_NEXT : MDB_FIRST;
    return is_end ? JZX_ERR_NOT_FOUND : JZX_OK;
}

/* This row, which a new cursor is on then. NOT_FOUND is proved. */
static jzx_err cursor_find(MDB_cursor *cursor, const jzx_mf_key *key, MDB_val *value)
{
    MDB_val wanted = key_val(key);
    MDB_val at;
    MDB_cursor_op ignored;
    jzx_err err = cursor_place(cursor, key, &at, value, &ignored);
    return err == JZX_OK && tx_compare(&at, &wanted) != 0 ? JZX_ERR_NOT_FOUND : err;
}

jzx_err mfi_get_seldom(const mfi_view *view, const jzx_mf_key *key, jzx_mf_span *out)
{
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(view->txn, dbi_of(view, key), &cursor);
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    MDB_val value;
    jzx_err err = cursor_find(cursor, key, &value);
    if (err == JZX_OK) {
        *out = span_of(&value);
    }
    mdb_cursor_close(cursor);
    return err;
}

jzx_err mfi_get(const mfi_view *view, const jzx_mf_key *key, jzx_mf_span *out)
{
    MDB_val at = key_val(key);
    MDB_val value;
    int rc = mdb_get(view->txn, dbi_of(view, key), &at, &value);
    if (rc == MDB_NOTFOUND) {
        /* Not there if there is proof. If it is there after all, a damaged key misled one of the
         * two searches. */
        jzx_err err = mfi_get_seldom(view, key, out);
        return err == JZX_OK ? JZX_ERR_CORRUPT : err;
    }
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    *out = span_of(&value);
    return row_check(key->table, &at, &value);
}

jzx_err mfi_find(const mfi_view *view, const jzx_mf_key *key)
{
    jzx_mf_span ignored;
    return mfi_get(view, key, &ignored);
}

static jzx_err tx_id_of(jzx_mf_span value, uint64_t *out)
{
    if (value.len < 8) {
        return JZX_ERR_CORRUPT;
    }
    *out = mfi_get_be64(value.data);
    return JZX_OK;
}

jzx_err mfi_get_id(const mfi_view *view, const jzx_mf_key *key, uint64_t *out)
{
    jzx_mf_span value = {NULL, 0};
    jzx_err err = mfi_get(view, key, &value);
    return err == JZX_OK ? tx_id_of(value, out) : err;
}

jzx_err mfi_get_id_seldom(const mfi_view *view, const jzx_mf_key *key, uint64_t *out)
{
    jzx_mf_span value = {NULL, 0};
    jzx_err err = mfi_get_seldom(view, key, &value);
    return err == JZX_OK ? tx_id_of(value, out) : err;
}

/* Whether the row that the cursor is on lies between two rows with true keys, in their order.
 * The cursor is somewhere else afterwards. */
static jzx_err check_beside(MDB_cursor *cursor, const jzx_mf_key *key)
{
    MDB_val own = key_val(key);
    MDB_val at;
    MDB_val value;
    int rc = mdb_cursor_get(cursor, &at, &value, MDB_NEXT);
    if (rc == 0) {
        if (tx_compare(&at, &own) <= 0 || row_check(key->table, &at, &value) != JZX_OK) {
            return JZX_ERR_CORRUPT;
        }
        rc = mdb_cursor_get(cursor, &at, &value, MDB_PREV);
    }
    if (rc == 0 || rc == MDB_NOTFOUND) { /* the cursor is on its row (again) */
        rc = mdb_cursor_get(cursor, &at, &value, MDB_PREV);
    }
    if (rc == 0) {
        return tx_compare(&at, &own) < 0 ? row_check(key->table, &at, &value) : JZX_ERR_CORRUPT;
    }
    return rc == MDB_NOTFOUND ? JZX_OK : mfi_err_of(rc);
}

/* A new row goes where it belongs, between two rows with true keys: among damaged keys the next
 * search would not find it. That is looked at when it is there, which spares a search; CORRUPT
 * counts as a write then, and nothing of it is kept. One that is there already is replaced where
 * it was found: exactly MDB_CURRENT, which alone does not search again. */
static jzx_err put_sealed(mfi_tx *tx, const jzx_mf_key *key, MDB_val value)
{
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(tx->view.txn, dbi_of(&tx->view, key), &cursor);
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    MDB_val at = key_val(key);
    MDB_val there = value;
    rc = mdb_cursor_put(cursor, &at, &there, MDB_NOOVERWRITE);
    jzx_err err = mfi_err_of(rc);
    if (rc == 0) {
        err = check_beside(cursor, key);
    } else if (rc == MDB_KEYEXIST) {
        err = row_check(key->table, &at, &there);
        rc = err == JZX_OK ? mdb_cursor_put(cursor, &at, &value, MDB_CURRENT) : rc;
        err = err == JZX_OK ? mfi_err_of(rc) : err;
    }
    if (rc != MDB_KEYEXIST) {
        tx->writes++;
        tx->written += value.mv_size;
    }
    mdb_cursor_close(cursor);
    return err;
}

static jzx_err put_index(mfi_tx *tx, const jzx_mf_key *key, const void *value, size_t len)
{
    uint8_t row[MFI_ROW_INDEX_BYTES + MFI_ROW_SUM_BYTES];
    if (len > MFI_ROW_INDEX_BYTES) {
        return JZX_ERR_CORRUPT;
    }
    memcpy(row, value, len);
    mfi_row_seal(key->table, jzx_mf_blob(key->bytes, key->len), row, len);
    return put_sealed(tx, key, val_of(row, mfi_row_room(key->table, len)));
}

jzx_err mfi_put(mfi_tx *tx, const jzx_mf_key *key, void *value, size_t len)
{
    uint32_t ignored;
    if (mfi_row_is_index(key->table, &ignored)) {
        return put_index(tx, key, value, len);
    }
    mfi_row_seal(key->table, jzx_mf_blob(key->bytes, key->len), value, len);
    return put_sealed(tx, key, val_of(value, len));
}

jzx_err mfi_put_id(mfi_tx *tx, const jzx_mf_key *key, uint64_t id)
{
    uint8_t bytes[8];
    mfi_put_be64(bytes, id);
    return put_index(tx, key, bytes, sizeof bytes);
}

jzx_err mfi_put_empty(mfi_tx *tx, const jzx_mf_key *key)
{
    return put_index(tx, key, "", 0);
}

/* The row, not another one that a damaged key makes look like it; with `id`, only if it has it. */
static jzx_err del_row(mfi_tx *tx, const jzx_mf_key *key, const uint64_t *id)
{
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(tx->view.txn, dbi_of(&tx->view, key), &cursor);
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    MDB_val value;
    uint64_t has;
    jzx_err err = cursor_find(cursor, key, &value);
    if (err == JZX_OK && id != NULL) {
        err = tx_id_of(span_of(&value), &has);
        err = err == JZX_OK && has != *id ? JZX_ERR_NOT_FOUND : err;
    }
    if (err == JZX_OK) {
        tx->writes++;
        err = mfi_err_of(mdb_cursor_del(cursor, 0));
    }
    mdb_cursor_close(cursor);
    return err;
}

jzx_err mfi_del(mfi_tx *tx, const jzx_mf_key *key)
{
    return del_row(tx, key, NULL);
}

jzx_err mfi_del_id(mfi_tx *tx, const jzx_mf_key *key, uint64_t id)
{
    return del_row(tx, key, &id);
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
    MDB_val at;
    MDB_val what;
    MDB_cursor_op ignored;
    jzx_err err = cursor_place(cursor, from, &at, &what, &ignored);
    if (err == JZX_OK && !begins_with(&at, from, prefix_len)) {
        err = JZX_ERR_NOT_FOUND;
    }
    if (err == JZX_OK) {
        uint32_t table = from->table; /* key and from may be the same */
        memcpy(key->bytes, at.mv_data, at.mv_size);
        key->len = (uint32_t)at.mv_size;
        key->table = table;
        if (value != NULL) {
            *value = span_of(&what);
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

/* The row after this one. NOT_FOUND at the end of the table. */
static jzx_err cursor_next(MDB_cursor *cursor, uint32_t table, MDB_val *key, MDB_val *value)
{
    MDB_val before = *key;
    int rc = mdb_cursor_get(cursor, key, value, MDB_NEXT);
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    return tx_compare(&before, key) < 0 ? row_check(table, key, value) : JZX_ERR_CORRUPT;
}

/* The row that ends it, because it has another prefix, is one that was looked at, too. */
jzx_err mfi_walk(const mfi_view *view, const jzx_mf_key *from, uint32_t prefix_len, mfi_row_fn fn,
                 void *arg)
{
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(view->txn, dbi_of(view, from), &cursor);
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    MDB_val at;
    MDB_val what;
    MDB_cursor_op step;
    jzx_err found = cursor_place(cursor, from, &at, &what, &step);
    if (found == JZX_OK && mdb_cursor_get(cursor, &at, &what, step) != 0) {
        found = JZX_ERR_CORRUPT;
    }
    jzx_err err = JZX_OK;
    while (found == JZX_OK && err == JZX_OK && begins_with(&at, from, prefix_len)) {
        err = fn(arg, span_of(&at), span_of(&what));
        if (err == JZX_OK) {
            found = cursor_next(cursor, from->table, &at, &what);
        }
    }
    mdb_cursor_close(cursor);
    return err != JZX_OK || found == JZX_ERR_NOT_FOUND ? err : found;
}

jzx_err mfi_walk_raw(const mfi_view *view, uint32_t table, mfi_row_fn fn, void *arg)
{
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(view->txn, mfi_store_dbi(view->store, table), &cursor);
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    MDB_val at;
    MDB_val what;
    jzx_err err = JZX_OK;
    while (err == JZX_OK && (rc = mdb_cursor_get(cursor, &at, &what, MDB_NEXT)) == 0) {
        err = fn(arg, span_of(&at), span_of(&what));
    }
    mdb_cursor_close(cursor);
    return err != JZX_OK || rc == MDB_NOTFOUND ? err : mfi_err_of(rc);
}

uint64_t mfi_entries(const mfi_view *view, uint32_t table)
{
    MDB_stat stat;
    return mdb_stat(view->txn, mfi_store_dbi(view->store, table), &stat) == 0 ? stat.ms_entries : 0;
}

/* Jobs, logs and metrics change all the time; a manifest that does not ask for them does not pay
 * for them. */
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
static jzx_err note_first_event(mfi_tx *tx)
{
    jzx_mf_key first = mfi_key_first(JZX_MF_TABLE_EVENT);
    jzx_err err = mfi_seek(&tx->view, &first, 0, &first, NULL);
    if (err == JZX_ERR_NOT_FOUND) {
        tx->meta.event_first = tx->seq + 1;
        return JZX_OK;
    }
    if (err != JZX_OK || first.len != 12) {
        return err != JZX_OK ? err : JZX_ERR_CORRUPT;
    }
    uint64_t seq = mfi_get_be64(first.bytes);
    tx->meta.event_first = mfi_get_be32(first.bytes + 8) == 0 ? seq : seq + 1;
    return JZX_OK;
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
    return err == JZX_OK ? note_first_event(tx) : err;
}

jzx_err mfi_meta_load(const mfi_view *view, mfi_meta *out)
{
    jzx_mf_key key = mfi_key_meta();
    jzx_mf_span value = {NULL, 0};
    jzx_err err = mfi_get(view, &key, &value);
    return err != JZX_OK ? err : mfi_decode_meta(value, out, NULL);
}

jzx_err mfi_meta_store(mfi_tx *tx)
{
    jzx_mf_key key = mfi_key_meta();
    jzx_mf_span value = {NULL, 0};
    mfi_rest rest = {{NULL, 0}, {NULL, 0}};
    mfi_meta old;
    jzx_err err = mfi_get(&tx->view, &key, &value);
    if (err == JZX_OK) {
        err = mfi_decode_meta(value, &old, &rest);
    }
    if (err != JZX_OK && err != JZX_ERR_NOT_FOUND) {
        return err;
    }
    err = mfi_encode_meta(&tx->meta, &rest, &tx->buf);
    return err != JZX_OK ? err : mfi_put(tx, &key, tx->buf.bytes, tx->buf.len);
}

uint64_t mfi_new_job(mfi_tx *tx)
{
    return tx->next_job == NULL ? tx->meta.job_ids++
                                : atomic_fetch_add_explicit(tx->next_job, 1, memory_order_relaxed);
}
