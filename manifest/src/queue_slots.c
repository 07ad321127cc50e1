#include "queue_steps.h"

#include <jzx/manifest_watch.h>

bool mfi_job_wants_slot(const jzx_mf_job *job, uint8_t slot)
{
    switch (job->unique) {
    case JZX_MF_STATELY:
    case JZX_MF_EXCLUSIVE:
        return true;
    case JZX_MF_SHORT:
        return slot == MFI_SLOT_QUEUED;
    case JZX_MF_SINGLETON:
        return slot == MFI_SLOT_ACTIVE;
    default:
        return false;
    }
}

jzx_err mfi_slot_holder(const mfi_view *view, const jzx_mf_job *job, uint8_t slot, uint64_t *out_id)
{
    jzx_mf_key key = mfi_key_unique(job, slot);
    jzx_err err = mfi_get_id_seldom(view, &key, out_id);
    if (err == JZX_ERR_NOT_FOUND) {
        *out_id = 0;
        return JZX_OK;
    }
    return err;
}

jzx_err mfi_slot_take(mfi_tx *tx, const jzx_mf_job *job, uint8_t slot)
{
    jzx_mf_key key = mfi_key_unique(job, slot);
    return mfi_put_id(tx, &key, job->id);
}

jzx_err mfi_slot_free(mfi_tx *tx, const jzx_mf_job *job, uint8_t slot, bool *out_freed)
{
    *out_freed = false;
    if (!mfi_job_wants_slot(job, slot)) {
        return JZX_OK;
    }
    /* The slot of a job that ran may be the next one's by now: that one keeps it. */
    jzx_mf_key key = mfi_key_unique(job, slot);
    jzx_err err = mfi_del_id(tx, &key, job->id);
    *out_freed = err == JZX_OK;
    return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
}

/* NOT_FOUND: no job has the gate. */
static jzx_err gate_get(const mfi_view *view, const jzx_mf_key *key, jzx_mf_gate *out)
{
    jzx_mf_span value;
    jzx_err err = mfi_get_seldom(view, key, &value);
    return err == JZX_OK ? mfi_decode_gate(value, out, NULL) : err;
}

/* No other job has the gate. After a crash or a lost lease this job may still have it: then
 * since_ms stays. */
static jzx_err gate_take(mfi_tx *tx, const jzx_mf_job *job)
{
    jzx_mf_key key = jzx_mf_key_gate(job->db, job->gate_class);
    jzx_mf_gate gate = {0};
    jzx_err err = gate_get(&tx->view, &key, &gate);
    if (err == JZX_ERR_NOT_FOUND) {
        gate.since_ms = tx->now_ms;
    } else if (err != JZX_OK) {
        return err;
    }
    gate.job_id = job->id;
    gate.attempt = job->attempt;
    err = mfi_encode_gate(&gate, NULL, &tx->buf);
    if (err == JZX_OK) {
        err = mfi_put(tx, &key, tx->buf.bytes, tx->buf.len);
    }
    return err == JZX_OK ? mfi_tell(tx, &key, JZX_MF_PUT) : err;
}

jzx_err mfi_gate_release(mfi_tx *tx, const jzx_mf_job *job)
{
    if (job->gate_class == 0) {
        return JZX_OK;
    }
    jzx_mf_key key = jzx_mf_key_gate(job->db, job->gate_class);
    jzx_mf_gate gate;
    jzx_err err = gate_get(&tx->view, &key, &gate);
    if (err == JZX_ERR_NOT_FOUND || (err == JZX_OK && gate.job_id != job->id)) {
        return JZX_OK;
    }
    if (err == JZX_OK) {
        err = mfi_del(tx, &key);
    }
    if (err == JZX_OK) {
        err = mfi_tell(tx, &key, JZX_MF_DEL);
    }
    return err == JZX_OK ? mfi_gate_offer(tx, job) : err;
}

jzx_err mfi_job_take(mfi_tx *tx, const jzx_mf_job *job, const jzx_mf_kind *rules)
{
    bool freed;
    jzx_err err = mfi_slot_free(tx, job, MFI_SLOT_QUEUED, &freed);
    if (err == JZX_OK && mfi_job_wants_slot(job, MFI_SLOT_ACTIVE)) {
        err = mfi_slot_take(tx, job, MFI_SLOT_ACTIVE);
    }
    if (err == JZX_OK && (rules->limit != 0 || rules->key_limit != 0)) {
        jzx_mf_key active = mfi_key_active(job);
        err = mfi_put_empty(tx, &active);
    }
    return err == JZX_OK && job->gate_class != 0 ? gate_take(tx, job) : err;
}

/* Its row among the active ones, which it has if its kind has a limit. */
static jzx_err active_free(mfi_tx *tx, const jzx_mf_job *job)
{
    jzx_mf_key active = mfi_key_active(job);
    jzx_err err = mfi_del(tx, &active);
    if (err != JZX_OK) {
        return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
    }
    tx->news.ready = true; /* its kind may have been at its limit */
    return mfi_key_limit_offer(tx, job);
}

jzx_err mfi_job_release(mfi_tx *tx, const jzx_mf_job *job)
{
    bool freed;
    jzx_err err = mfi_slot_free(tx, job, MFI_SLOT_ACTIVE, &freed);
    if (err == JZX_OK && freed) {
        err = mfi_slot_offer(tx, job);
    }
    return err == JZX_OK ? active_free(tx, job) : err;
}
