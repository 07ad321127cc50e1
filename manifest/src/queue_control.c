#include "queue_steps.h"

/* What people do to jobs: cancel, retry, delete. */

static jzx_err cancel(mfi_tx *tx, mfi_record *rec, void *arg)
{
    (void)arg;
    if (mfi_job_is_queued(&rec->job)) {
        return mfi_job_end(tx, rec, JZX_MF_JOB_CANCELLED);
    }
    if (rec->job.state != JZX_MF_JOB_ACTIVE) {
        return JZX_ERR_WRONG_STATE;
    }
    rec->job.cancel = 1;
    return mfi_record_save(tx, rec);
}

jzx_err mfi_job_cancel(mfi_tx *tx, uint64_t id)
{
    return mfi_record_with(tx, id, cancel, NULL);
}

/* ALREADY: another job has its place. */
static jzx_err take_free_place(mfi_tx *tx, const jzx_mf_job *job)
{
    if (!mfi_job_wants_slot(job, MFI_SLOT_QUEUED)) {
        return JZX_OK;
    }
    uint64_t queued;
    uint64_t active = 0;
    jzx_err err = mfi_slot_holder(&tx->view, job, MFI_SLOT_QUEUED, &queued);
    if (err == JZX_OK && job->unique == JZX_MF_EXCLUSIVE) {
        err = mfi_slot_holder(&tx->view, job, MFI_SLOT_ACTIVE, &active);
    }
    if (err != JZX_OK) {
        return err;
    }
    return queued != 0 || active != 0 ? JZX_ERR_ALREADY : mfi_slot_take(tx, job, MFI_SLOT_QUEUED);
}

/* As many attempts as the spec said. The count itself goes on, since no two leases may be the same;
 * the limit moves instead. */
static void renew_attempts(jzx_mf_job *job)
{
    uint32_t budget = job->max_attempts - job->spent;
    job->spent = job->attempt;
    if (job->max_attempts != JZX_MF_NO_LIMIT) {
        job->max_attempts =
            budget < JZX_MF_NO_LIMIT - job->attempt ? job->attempt + budget : JZX_MF_NO_LIMIT;
    }
}

static jzx_err retry(mfi_tx *tx, mfi_record *rec, void *arg)
{
    (void)arg;
    jzx_mf_job *job = &rec->job;
    if (job->state != JZX_MF_JOB_DEAD && job->state != JZX_MF_JOB_CANCELLED) {
        return JZX_ERR_WRONG_STATE;
    }
    jzx_err err = take_free_place(tx, job);
    if (err != JZX_OK) {
        return err;
    }
    renew_attempts(job);
    job->cancel = 0;
    job->finished_ms = 0;
    job->run_at_ms = tx->now_ms;
    job->state = job->after_left > 0 ? JZX_MF_JOB_WAITING : JZX_MF_JOB_READY;
    return mfi_record_save(tx, rec);
}

jzx_err mfi_job_retry(mfi_tx *tx, uint64_t id)
{
    return mfi_record_with(tx, id, retry, NULL);
}

static jzx_err queue_control_forget(mfi_tx *tx, mfi_record *rec, void *arg)
{
    (void)arg;
    if (rec->job.state < JZX_MF_JOB_DONE) {
        return JZX_ERR_WRONG_STATE;
    }
    return mfi_job_forget(tx, rec);
}

jzx_err mfi_job_del(mfi_tx *tx, uint64_t id)
{
    return mfi_record_with(tx, id, queue_control_forget, NULL);
}
