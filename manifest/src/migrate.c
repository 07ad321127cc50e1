#include "migrate.h"

#include "key.h"
#include "row.h"

#include <string.h>

/* Of values in one step: what is rewritten stays in memory until it is committed. */
#define BYTES_MAX ((uint64_t)32 << 20)

/* The cursor that meta has: a table and the last key that was looked at. META itself is written
 * with every commit, so it needs no migration. */
static jzx_err cursor_open(const mfi_meta *meta, jzx_mf_key *at)
{
    if (meta->migrate_table == 0) {
        *at = mfi_key_first(JZX_MF_TABLE_META + 1);
        return JZX_OK;
    }
    *at = mfi_key_name(meta->migrate_table - 1, meta->migrate_key);
    return at->table < JZX_MF_TABLES ? JZX_OK : JZX_ERR_CORRUPT;
}

/* The next record after the cursor, in this table or a later one. NOT_FOUND: none is left. */
static jzx_err cursor_next(const mfi_view *view, jzx_mf_key *at, jzx_mf_span *value)
{
    jzx_err err = JZX_ERR_NOT_FOUND;
    while (at->table < JZX_MF_TABLES) {
        jzx_mf_key from = at->len > 0 ? mfi_key_after(at) : *at;
        err = mfi_seek(view, &from, 0, at, value);
        if (err != JZX_ERR_NOT_FOUND) {
            return err;
        }
        *at = mfi_key_first(at->table + 1);
    }
    return err;
}

/* A row of an index only gets its checksum, which mfi_put() sees to. */
static jzx_err index_renew(mfi_tx *tx, const jzx_mf_key *at, jzx_mf_span value)
{
    uint8_t copy[8] = {0}; /* the map may move */
    if (value.len > sizeof copy) {
        return JZX_ERR_CORRUPT;
    }
    if (value.len > 0) {
        memcpy(copy, value.data, value.len);
    }
    return mfi_put(tx, at, copy, value.len);
}

static jzx_err row_renew(mfi_tx *tx, const jzx_mf_key *at, jzx_mf_span value, uint64_t *count)
{
    uint32_t plain;
    if (!mfi_value_is_old(at->table, value)) {
        return JZX_OK;
    }
    jzx_err err;
    if (mfi_row_is_index(at->table, &plain)) {
        err = index_renew(tx, at, value);
    } else {
        err = mfi_value_renew(at->table, value, &tx->buf);
        if (err == JZX_OK) {
            err = mfi_put(tx, at, tx->buf.bytes, tx->buf.len);
        }
    }
    if (err == JZX_OK) {
        (*count)++;
    }
    return err;
}

static void cursor_store(mfi_meta *meta, const jzx_mf_key *at)
{
    meta->migrate_table = at->table + 1;
    meta->migrate_key = jzx_mf_blob(at->bytes, at->len);
}

static void migration_end(mfi_meta *meta)
{
    meta->schema = MFI_SCHEMA;
    meta->migrate_table = 0;
    meta->migrate_key.len = 0;
}

jzx_err mfi_migrate_step(mfi_tx *tx, jzx_mf_key *at, uint32_t max_rows, bool *out_more,
                         uint64_t *out_count)
{
    if (max_rows == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    if (tx->meta.schema > MFI_SCHEMA) {
        return JZX_ERR_NEWER_SCHEMA;
    }
    if (tx->meta.schema == MFI_SCHEMA) {
        *out_more = false;
        return JZX_OK;
    }
    uint64_t count = 0;
    uint64_t bytes = 0;
    jzx_err err = cursor_open(&tx->meta, at);
    for (uint32_t row = 0; row < max_rows && bytes < BYTES_MAX && err == JZX_OK; row++) {
        jzx_mf_span value;
        err = cursor_next(&tx->view, at, &value);
        if (err == JZX_OK) {
            bytes += value.len;
            err = row_renew(tx, at, value, &count);
        }
    }
    if (err == JZX_OK) {
        cursor_store(&tx->meta, at);
    } else if (err == JZX_ERR_NOT_FOUND) {
        migration_end(&tx->meta);
    } else {
        return err;
    }
    *out_more = err == JZX_OK;
    *out_count += count;
    return JZX_OK;
}
