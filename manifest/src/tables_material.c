/* Materials and the index by status: (status, updated) of every record, and nothing else. */
#include "key.h"
#include "tables.h"

#include <jzx/manifest_watch.h>

#include <string.h>

typedef struct material_now {
    bool is_there;
    jzx_mf_material record;
    mfi_rest rest;
} material_now;

/* CONFLICT: the record there has another id with the same hash. */
static jzx_err material_look(const mfi_view *view, const jzx_mf_key *key, jzx_mf_span id,
                             material_now *out)
{
    *out = (material_now){0};
    jzx_mf_span value;
    jzx_err err = mfi_get(view, key, &value);
    if (err != JZX_OK) {
        return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
    }
    err = mfi_decode_material(value, &out->record, &out->rest);
    if (err != JZX_OK) {
        return err;
    }
    out->is_there = true;
    jzx_mf_span there = out->record.id;
    bool same = there.len == id.len && memcmp(there.data, id.data, id.len) == 0;
    return same ? JZX_OK : JZX_ERR_CONFLICT;
}

static jzx_mf_key row_of(const jzx_mf_key *key, const jzx_mf_material *record)
{
    return mfi_key_material_status(record->status, record->updated_ms, key);
}

/* Stores a record in the place of what is there. */
static jzx_err material_store(mfi_tx *tx, const jzx_mf_key *key, const material_now *now,
                              const jzx_mf_material *record)
{
    jzx_mf_key before = row_of(key, &now->record);
    jzx_mf_key after = row_of(key, record);
    bool was_there = now->is_there;
    if (was_there && mfi_find(&tx->view, &before) != JZX_OK) {
        return JZX_ERR_CORRUPT;
    }
    /* From the first write on, what *now and *record point to may have moved. */
    jzx_err err = mfi_encode_material(record, &now->rest, &tx->buf);
    if (err == JZX_OK) {
        err = mfi_put(tx, key, tx->buf.bytes, tx->buf.len);
    }
    if (err == JZX_OK && was_there) {
        err = mfi_del(tx, &before);
    }
    if (err == JZX_OK) {
        err = mfi_put_empty(tx, &after);
    }
    return err == JZX_OK ? mfi_tell(tx, key, JZX_MF_PUT) : err;
}

jzx_err mfi_material_put(mfi_tx *tx, const jzx_mf_material *record)
{
    jzx_err err = mfi_material_check(record);
    if (err != JZX_OK) {
        return err;
    }
    jzx_mf_key key = jzx_mf_key_material(record->id);
    material_now now;
    err = material_look(&tx->view, &key, record->id, &now);
    if (err != JZX_OK) {
        return err;
    }
    jzx_mf_material stored = *record;
    stored.created_ms = record->created_ms != 0 ? record->created_ms : tx->now_ms;
    stored.updated_ms = tx->now_ms;
    return material_store(tx, &key, &now, &stored);
}

jzx_err mfi_material_move(mfi_tx *tx, jzx_mf_span id, uint8_t from, uint8_t to, uint32_t retries)
{
    jzx_mf_key key = jzx_mf_key_material(id);
    material_now now;
    jzx_err err = material_look(&tx->view, &key, id, &now);
    if (err == JZX_ERR_CONFLICT || (err == JZX_OK && !now.is_there)) {
        return JZX_ERR_NOT_FOUND;
    }
    if (err != JZX_OK) {
        return err;
    }
    if (now.record.status != from) {
        return JZX_ERR_CONFLICT;
    }
    jzx_mf_material stored = now.record;
    stored.status = to;
    stored.updated_ms = tx->now_ms;
    stored.retries = retries > UINT32_MAX - stored.retries ? UINT32_MAX : stored.retries + retries;
    return material_store(tx, &key, &now, &stored);
}

jzx_err mfi_material_del(mfi_tx *tx, jzx_mf_span id)
{
    jzx_mf_key key = jzx_mf_key_material(id);
    material_now now;
    jzx_err err = material_look(&tx->view, &key, id, &now);
    if (err == JZX_ERR_CONFLICT || (err == JZX_OK && !now.is_there)) {
        return JZX_OK;
    }
    if (err != JZX_OK) {
        return err;
    }
    jzx_mf_key row = row_of(&key, &now.record);
    err = mfi_del(tx, &row);
    if (err != JZX_OK) {
        return err == JZX_ERR_NOT_FOUND ? JZX_ERR_CORRUPT : err;
    }
    err = mfi_del(tx, &key);
    return err == JZX_OK ? mfi_tell(tx, &key, JZX_MF_DEL) : err;
}
