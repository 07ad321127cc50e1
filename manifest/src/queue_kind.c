#include "queue_steps.h"

#include <jzx/manifest_watch.h>

static jzx_err kind_get(const mfi_view *view, uint16_t kind, jzx_mf_kind *out, mfi_rest *rest)
{
    jzx_mf_key key = jzx_mf_key_kind(kind);
    jzx_mf_span value;
    jzx_err err = mfi_get_seldom(view, &key, &value);
    if (err == JZX_ERR_NOT_FOUND) {
        *out = (jzx_mf_kind){0};
        *rest = (mfi_rest){0};
        return JZX_OK;
    }
    return err == JZX_OK ? mfi_decode_kind(value, out, rest) : err;
}

jzx_err mfi_kind_rules(const mfi_view *view, uint16_t kind, jzx_mf_kind *out)
{
    mfi_rest ignored;
    jzx_err err = kind_get(view, kind, out, &ignored);
    out->name = jzx_mf_blob(NULL, 0); /* the name is in the map, which the next write may move */
    return err;
}

static jzx_err kind_store(mfi_tx *tx, uint16_t kind, const jzx_mf_kind *record,
                          const mfi_rest *rest)
{
    jzx_err err = mfi_encode_kind(record, rest, &tx->buf);
    jzx_mf_key key = jzx_mf_key_kind(kind);
    if (err == JZX_OK) {
        err = mfi_put(tx, &key, tx->buf.bytes, tx->buf.len);
    }
    return err == JZX_OK ? mfi_tell(tx, &key, JZX_MF_PUT) : err;
}

static bool is_limited(const jzx_mf_kind *rules)
{
    return rules->limit != 0 || rules->key_limit != 0;
}

static jzx_err add_active(mfi_tx *tx, mfi_record *rec, void *arg)
{
    if (rec->job.kind != *(const uint16_t *)arg) {
        return JZX_OK;
    }
    jzx_mf_key row = mfi_key_active(&rec->job);
    return mfi_put_empty(tx, &row);
}

/* Jobs that run already count too. */
static jzx_err active_fill(mfi_tx *tx, uint16_t kind)
{
    jzx_mf_key at = mfi_key_first(JZX_MF_TABLE_LEASE);
    jzx_err err;
    while ((err = mfi_seek(&tx->view, &at, 0, &at, NULL)) == JZX_OK) {
        err = mfi_record_of_row(tx, mfi_key_tail_id(at.bytes, at.len), add_active, &kind);
        if (err != JZX_OK) {
            return err;
        }
        at = mfi_key_after(&at);
    }
    return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
}

static jzx_err active_clear(mfi_tx *tx, uint16_t kind)
{
    jzx_mf_key from = mfi_key_active_kind(kind);
    jzx_mf_key row;
    jzx_err err;
    while ((err = mfi_seek(&tx->view, &from, from.len, &row, NULL)) == JZX_OK) {
        err = mfi_del(tx, &row);
        if (err != JZX_OK) {
            return err;
        }
    }
    return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
}

static bool is_more(uint32_t limit, uint32_t than)
{
    return than != 0 && (limit == 0 || limit > than);
}

jzx_err mfi_kind_put(mfi_tx *tx, uint16_t kind, const jzx_mf_kind *record)
{
    if (kind == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_mf_kind was;
    jzx_err err = mfi_kind_rules(&tx->view, kind, &was);
    if (err == JZX_OK) {
        err = kind_store(tx, kind, record, NULL);
    }
    if (err == JZX_OK && is_limited(record) != is_limited(&was)) {
        err = is_limited(record) ? active_fill(tx, kind) : active_clear(tx, kind);
    }
    if (err == JZX_OK && is_more(record->key_limit, was.key_limit)) {
        err = mfi_kind_offer(tx, kind, record->key_limit);
    }
    if (err == JZX_OK) {
        tx->news.ready |= (was.paused && !record->paused) || is_more(record->limit, was.limit);
    }
    return err;
}

jzx_err mfi_kind_pause(mfi_tx *tx, uint16_t kind, bool paused)
{
    if (kind == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_mf_kind record;
    mfi_rest rest;
    jzx_err err = kind_get(&tx->view, kind, &record, &rest);
    if (err != JZX_OK) {
        return err;
    }
    tx->news.ready |= record.paused && !paused;
    record.paused = paused;
    return kind_store(tx, kind, &record, &rest);
}
