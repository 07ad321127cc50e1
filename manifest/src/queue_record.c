#include "queue_steps.h"

#include "memory.h"

#include <jzx/manifest_watch.h>

#include <string.h>

uint64_t mfi_sum_ms(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

bool mfi_job_is_queued(const jzx_mf_job *job)
{
    return job->state >= JZX_MF_JOB_WAITING && job->state <= JZX_MF_JOB_BLOCKED;
}

uint8_t mfi_job_due_state(const mfi_tx *tx, const jzx_mf_job *job)
{
    return job->run_at_ms > tx->now_ms ? JZX_MF_JOB_SCHEDULED : JZX_MF_JOB_READY;
}

jzx_err mfi_row_del(mfi_tx *tx, const jzx_mf_key *key)
{
    jzx_err err = mfi_del(tx, key);
    return err == JZX_ERR_NOT_FOUND ? JZX_ERR_CORRUPT : err;
}

/* Where a job of this state is found: invariant Q1. */
static jzx_mf_key row_of(const jzx_mf_job *job)
{
    switch (job->state) {
    case JZX_MF_JOB_SCHEDULED:
        return mfi_key_scheduled(job->run_at_ms, job->id);
    case JZX_MF_JOB_READY:
        return mfi_key_ready(job);
    case JZX_MF_JOB_BLOCKED:
        return mfi_key_blocked(job->blocked_on, job);
    case JZX_MF_JOB_ACTIVE:
        return mfi_key_lease(job->lease_until_ms, job->id);
    case JZX_MF_JOB_DONE:
    case JZX_MF_JOB_DEAD:
    case JZX_MF_JOB_CANCELLED:
    case JZX_MF_JOB_SUPERSEDED:
        return mfi_key_finished(job->state, job->finished_ms, job->id);
    default:
        return mfi_key_first(JZX_MF_TABLE_JOB); /* WAITING: none */
    }
}

static jzx_err record_load(const mfi_view *view, uint64_t id, mfi_record *rec)
{
    jzx_mf_key key = jzx_mf_key_job(id);
    jzx_mf_span value;
    jzx_err err = mfi_get(view, &key, &value);
    if (err != JZX_OK) {
        return err;
    }
    /* The next write may move what the map shows. */
    rec->bytes = value.len <= sizeof rec->small ? rec->small : mfi_alloc(value.len);
    if (rec->bytes == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    if (value.len > 0) {
        memcpy(rec->bytes, value.data, value.len);
    }
    err = mfi_decode_job(jzx_mf_blob(rec->bytes, value.len), &rec->job, &rec->rest);
    if (err == JZX_OK) {
        rec->job.id = id;
        rec->job.unique = mfi_stored_policy(rec->job.unique);
        rec->row = row_of(&rec->job);
    }
    return err;
}

static jzx_err record_with(mfi_tx *tx, uint64_t id, jzx_err missing, mfi_record_fn fn, void *arg)
{
    mfi_record rec;
    rec.bytes = rec.small;
    jzx_err err = record_load(&tx->view, id, &rec);
    if (err == JZX_OK) {
        err = fn(tx, &rec, arg);
    } else if (err == JZX_ERR_NOT_FOUND) {
        err = missing;
    }
    if (rec.bytes != rec.small) {
        mfi_free(rec.bytes);
    }
    return err;
}

jzx_err mfi_record_with(mfi_tx *tx, uint64_t id, mfi_record_fn fn, void *arg)
{
    return record_with(tx, id, JZX_ERR_NOT_FOUND, fn, arg);
}

jzx_err mfi_record_of_row(mfi_tx *tx, uint64_t id, mfi_record_fn fn, void *arg)
{
    return record_with(tx, id, JZX_ERR_CORRUPT, fn, arg);
}

static bool is_timed(const jzx_mf_key *row)
{
    return row->table == JZX_MF_TABLE_SCHEDULED || row->table == JZX_MF_TABLE_LEASE ||
           row->table == JZX_MF_TABLE_FINISHED;
}

static jzx_err move_row(mfi_tx *tx, mfi_record *rec)
{
    jzx_mf_key row = row_of(&rec->job);
    if (row.table == rec->row.table && row.len == rec->row.len &&
        memcmp(row.bytes, rec->row.bytes, row.len) == 0) {
        return JZX_OK;
    }
    jzx_err err = rec->row.len == 0 ? JZX_OK : mfi_row_del(tx, &rec->row);
    if (err == JZX_OK && row.len > 0) {
        err = mfi_put_empty(tx, &row);
    }
    tx->news.ready |= row.table == JZX_MF_TABLE_READY;
    tx->news.schedule |= is_timed(&row) || is_timed(&rec->row);
    rec->row = row;
    return err;
}

jzx_err mfi_record_save(mfi_tx *tx, mfi_record *rec)
{
    /* First, since it is what can be refused. */
    jzx_err err = mfi_encode_job(&rec->job, &rec->rest, &tx->buf);
    if (err == JZX_OK) {
        err = move_row(tx, rec);
    }
    jzx_mf_key key = jzx_mf_key_job(rec->job.id);
    if (err == JZX_OK) {
        err = mfi_put(tx, &key, tx->buf.bytes, tx->buf.len);
    }
    return err == JZX_OK ? mfi_tell(tx, &key, JZX_MF_PUT) : err;
}

jzx_err mfi_record_drop(mfi_tx *tx, mfi_record *rec)
{
    jzx_err err = rec->row.len == 0 ? JZX_OK : mfi_row_del(tx, &rec->row);
    jzx_mf_key key = jzx_mf_key_job(rec->job.id);
    if (err == JZX_OK) {
        err = mfi_row_del(tx, &key);
    }
    tx->news.schedule = true;
    return err == JZX_OK ? mfi_tell(tx, &key, JZX_MF_DEL) : err;
}
