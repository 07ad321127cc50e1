#include "queue_steps.h"

/* The way of a worker: claimed jobs are kept, completed or failed by the holder of their lease. */
typedef struct leased {
    const jzx_mf_lease *lease;
    mfi_record_fn fn;
    void *arg;
} leased;

static jzx_err if_leased(mfi_tx *tx, mfi_record *rec, void *arg)
{
    const leased *l = arg;
    const jzx_mf_job *job = &rec->job;
    /* A lease of an older boot is void, whether or not it has been settled yet. */
    if (job->state != JZX_MF_JOB_ACTIVE || job->attempt != l->lease->attempt ||
        job->boot != l->lease->boot || job->boot != tx->boot) {
        return JZX_ERR_FENCED;
    }
    return l->fn(tx, rec, l->arg);
}

static jzx_err with_lease(mfi_tx *tx, const jzx_mf_lease *lease, mfi_record_fn fn, void *arg)
{
    leased l = {lease, fn, arg};
    jzx_err err = mfi_record_with(tx, lease->job_id, if_leased, &l);
    return err == JZX_ERR_NOT_FOUND ? JZX_ERR_FENCED : err;
}

typedef struct beat {
    uint32_t extend_ms;
    uint64_t done;
    uint64_t total;
    jzx_mf_span text;
    bool *out_cancel;
} beat;

static jzx_err heartbeat(mfi_tx *tx, mfi_record *rec, void *arg)
{
    const beat *b = arg;
    jzx_mf_job *job = &rec->job;
    job->lease_until_ms =
        mfi_sum_ms(tx->lease_ms, b->extend_ms != 0 ? b->extend_ms : job->lease_ms);
    if (job->timeout_at_ms != 0 && job->lease_until_ms > job->timeout_at_ms) {
        job->lease_until_ms = job->timeout_at_ms;
    }
    job->progress_done = b->done;
    job->progress_total = b->total;
    if (b->text.len > 0) {
        job->progress = b->text;
    }
    *b->out_cancel =
        job->cancel != 0 || (job->timeout_at_ms != 0 && job->timeout_at_ms <= tx->lease_ms);
    return mfi_record_save(tx, rec);
}

jzx_err mfi_job_heartbeat(mfi_tx *tx, const jzx_mf_lease *lease, uint32_t extend_ms, uint64_t done,
                          uint64_t total, jzx_mf_span text, bool *out_cancel)
{
    beat b = {extend_ms, done, total, text, out_cancel};
    return with_lease(tx, lease, heartbeat, &b);
}

static jzx_err complete(mfi_tx *tx, mfi_record *rec, void *arg)
{
    rec->job.result = *(const jzx_mf_span *)arg;
    return mfi_job_end(tx, rec, JZX_MF_JOB_DONE);
}

jzx_err mfi_job_complete(mfi_tx *tx, const jzx_mf_lease *lease, jzx_mf_span result)
{
    return with_lease(tx, lease, complete, &result);
}

static uint64_t delay_of(const jzx_mf_job *job, const jzx_mf_failure *failure)
{
    if (failure->flags & JZX_MF_FAIL_NOW) {
        return 0;
    }
    return failure->delay_ms != 0 ? failure->delay_ms : mfi_backoff_ms(job);
}

static jzx_err fail(mfi_tx *tx, mfi_record *rec, void *arg)
{
    const jzx_mf_failure *failure = arg;
    jzx_mf_job *job = &rec->job;
    /* The attempt stays counted, since no two leases may be the same; it gets one more. */
    if (failure->flags & JZX_MF_FAIL_UNCOUNTED) {
        job->max_attempts += job->max_attempts < JZX_MF_NO_LIMIT - 1 ? 1 : 0;
        job->spent++;
    }
    mfi_lapse lapse = {.text = failure->text,
                       .code = failure->code,
                       .run_at_ms = mfi_sum_ms(tx->now_ms, delay_of(job, failure)),
                       .for_good = (failure->flags & JZX_MF_FAIL_FOR_GOOD) != 0};
    return mfi_job_lapse(tx, rec, &lapse);
}

jzx_err mfi_job_fail(mfi_tx *tx, const jzx_mf_lease *lease, const jzx_mf_failure *failure)
{
    jzx_mf_failure copy = *failure;
    return with_lease(tx, lease, fail, &copy);
}
