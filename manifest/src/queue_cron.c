#include "cron.h"
#include "memory.h"
#include "queue_steps.h"

#include <jzx/manifest_watch.h>

#include <string.h>

static jzx_mf_job_spec spec_of(const jzx_mf_cron *record)
{
    jzx_mf_job_spec spec = {.kind = record->kind,
                            .gate_class = record->gate_class,
                            .scope = record->scope,
                            .unique = record->unique == 0 ? JZX_MF_STATELY : record->unique,
                            .db = record->db,
                            .key = record->key,
                            .payload = record->payload,
                            .priority = record->priority,
                            .max_attempts = record->max_attempts};
    return spec;
}

jzx_err mfi_cron_check(const jzx_mf_cron *record)
{
    if (record->name.len == 0 || record->name.data == NULL || record->schedule.data == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (record->name.len > JZX_MF_NAME_MAX || record->schedule.len > JZX_MF_TEXT_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    jzx_mf_job_spec spec = spec_of(record);
    jzx_err err = mfi_job_check(&spec);
    mfi_schedule schedule;
    return err == JZX_OK ? mfi_schedule_parse(record->schedule, &schedule) : err;
}

static bool same_text(jzx_mf_span a, jzx_mf_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static jzx_err cron_store(mfi_tx *tx, const jzx_mf_cron *record, const mfi_rest *rest)
{
    jzx_err err = mfi_encode_cron(record, rest, &tx->buf);
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_CRON, record->name);
    if (err == JZX_OK) {
        err = mfi_put(tx, &key, tx->buf.bytes, tx->buf.len);
    }
    tx->news.schedule = true;
    return err == JZX_OK ? mfi_tell(tx, &key, JZX_MF_PUT) : err;
}

/* Programs put their entries at every start; a time that was missed until then must not be lost by
 * that, so an entry whose schedule stays keeps its next time. */
static jzx_err keep_times(const mfi_view *view, jzx_mf_cron *record)
{
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_CRON, record->name);
    jzx_mf_span value;
    jzx_err err = mfi_get(view, &key, &value);
    if (err != JZX_OK) {
        return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
    }
    jzx_mf_cron was;
    err = mfi_decode_cron(value, &was, NULL);
    if (err != JZX_OK) {
        return err;
    }
    record->last_ms = was.last_ms;
    if (!was.paused && same_text(was.schedule, record->schedule)) {
        record->next_ms = was.next_ms;
    }
    return JZX_OK;
}

jzx_err mfi_cron_put(mfi_tx *tx, const jzx_mf_cron *record)
{
    jzx_err err = mfi_cron_check(record);
    if (err != JZX_OK) {
        return err;
    }
    mfi_schedule schedule;
    err = mfi_schedule_parse(record->schedule, &schedule);
    if (err != JZX_OK) {
        return err;
    }
    jzx_mf_cron copy = *record;
    copy.last_ms = 0;
    copy.next_ms = mfi_schedule_next(&schedule, tx->now_ms);
    err = keep_times(&tx->view, &copy);
    return err == JZX_OK ? cron_store(tx, &copy, NULL) : err;
}

jzx_err mfi_cron_del(mfi_tx *tx, jzx_mf_span name)
{
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_CRON, name);
    jzx_err err = mfi_del(tx, &key);
    if (err == JZX_ERR_NOT_FOUND) {
        return JZX_OK;
    }
    tx->news.schedule = true;
    return err == JZX_OK ? mfi_tell(tx, &key, JZX_MF_DEL) : err;
}

/* From the time it was due, so that "@every" does not drift; but once for all that were missed. */
static jzx_err next_time(const jzx_mf_cron *record, uint64_t now_ms, uint64_t *out)
{
    mfi_schedule schedule;
    jzx_err err = mfi_schedule_parse(record->schedule, &schedule);
    if (err != JZX_OK) {
        return JZX_ERR_CORRUPT; /* the schedule was parsed when it was put */
    }
    *out = mfi_schedule_next(&schedule, record->next_ms);
    if (*out <= now_ms) {
        *out = mfi_schedule_next(&schedule, now_ms);
    }
    return JZX_OK;
}

static jzx_err fire(mfi_tx *tx, jzx_mf_cron *record, const mfi_rest *rest)
{
    uint64_t next;
    jzx_err err = next_time(record, tx->now_ms, &next);
    if (err != JZX_OK) {
        return err;
    }
    jzx_mf_job_spec spec = spec_of(record);
    jzx_mf_slot slot; /* when the last one is queued still, that one is the one */
    err = mfi_job_enqueue(tx, mfi_new_job(tx), &spec, &slot);
    if (err != JZX_OK) {
        return err;
    }
    record->last_ms = tx->now_ms;
    record->next_ms = next;
    return cron_store(tx, record, rest);
}

/* AGAIN: it is not due. */
static jzx_err fire_if_due(mfi_tx *tx, jzx_mf_span value)
{
    jzx_mf_cron record;
    mfi_rest rest;
    jzx_err err = mfi_decode_cron(value, &record, &rest);
    if (err != JZX_OK) {
        return err;
    }
    if (record.paused || record.next_ms > tx->now_ms) {
        return JZX_ERR_AGAIN;
    }
    /* The next write may move what the map shows. */
    uint8_t *copy = mfi_alloc(value.len);
    if (copy == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    memcpy(copy, value.data, value.len);
    err = mfi_decode_cron(jzx_mf_blob(copy, value.len), &record, &rest);
    if (err == JZX_OK) {
        err = fire(tx, &record, &rest);
    }
    mfi_free(copy);
    return err;
}

jzx_err mfi_queue_fire(mfi_tx *tx, uint32_t max, uint32_t *out_count)
{
    *out_count = 0;
    jzx_mf_key at = mfi_key_first(JZX_MF_TABLE_CRON);
    jzx_mf_span value;
    jzx_err err = JZX_OK;
    while (err == JZX_OK && *out_count < max) {
        err = mfi_seek(&tx->view, &at, 0, &at, &value);
        if (err != JZX_OK) {
            break;
        }
        at = mfi_key_after(&at);
        err = fire_if_due(tx, value);
        *out_count += err == JZX_OK;
        err = err == JZX_ERR_AGAIN ? JZX_OK : err;
    }
    return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
}

static jzx_err earlier(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    (void)key;
    uint64_t *next = arg;
    jzx_mf_cron record;
    jzx_err err = mfi_decode_cron(value, &record, NULL);
    if (err == JZX_OK && !record.paused && record.next_ms < *next) {
        *next = record.next_ms;
    }
    return err;
}

jzx_err mfi_cron_next(const mfi_view *view, uint64_t *out_ms)
{
    *out_ms = UINT64_MAX;
    jzx_mf_key from = mfi_key_first(JZX_MF_TABLE_CRON);
    return mfi_walk(view, &from, 0, earlier, out_ms);
}
