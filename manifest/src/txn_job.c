/* The operations on jobs; see txn.c. */
#include "mf.h"
#include "op.h"
#include "queue.h"

#include <string.h>

jzx_err jzx_mf_job_enqueue_sized(jzx_mf_txn *txn, const jzx_mf_job_spec *spec, size_t size,
                                 uint64_t *out_id)
{
    jzx_mf_job_spec copy;
    if (spec == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = mfi_adopt(&copy, sizeof copy, spec, size);
    if (err == JZX_OK) {
        err = mfi_job_check(&copy);
    }
    mfi_op *op;
    if (err != JZX_OK || (err = mfi_op_new(txn, MFI_OP_ENQUEUE, &op)) != JZX_OK) {
        return err;
    }
    op->spec = copy;
    jzx_mf_span after = jzx_mf_blob(copy.after, copy.after_count * sizeof *copy.after);
    jzx_mf_span *spans[] = {&op->spec.key, &op->spec.payload, &after};
    err = mfi_keep_spans(txn, spans, sizeof spans / sizeof spans[0]);
    if (err != JZX_OK) {
        return err;
    }
    op->spec.after = after.data;
    op->id = atomic_fetch_add_explicit(&txn->mf->next_job, 1, memory_order_relaxed);
    mfi_op_add(txn, op);
    if (out_id != NULL) {
        *out_id = op->id;
    }
    return JZX_OK;
}

jzx_err jzx_mf_job_claim_sized(jzx_mf_txn *txn, const jzx_mf_claim *claim, size_t size)
{
    jzx_mf_claim copy;
    if (claim == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = mfi_adopt(&copy, sizeof copy, claim, size);
    if (err != JZX_OK) {
        return err;
    }
    bool waits = copy.wait_ms != 0;
    if ((copy.kinds == NULL && copy.kind_count != 0) || (waits && txn != NULL && txn->count != 0)) {
        return JZX_ERR_INVALID_ARG;
    }
    mfi_op *op;
    err = mfi_op_new(txn, MFI_OP_CLAIM, &op);
    if (err != JZX_OK) {
        return err;
    }
    jzx_mf_span kinds = jzx_mf_blob(copy.kinds, copy.kind_count * sizeof *copy.kinds);
    err = mfi_keep_span(txn, &kinds);
    if (err == JZX_OK) {
        op->claim = copy;
        op->claim.kinds = kinds.data;
        op->claim.max = copy.max == 0 ? 1 : copy.max;
        txn->waits = waits;
        mfi_op_add(txn, op);
    }
    return err;
}

/* An operation of the holder of a lease, with one text or blob. */
static jzx_err op_leased(jzx_mf_txn *txn, mfi_op_kind kind, const jzx_mf_lease *lease,
                         jzx_mf_span span, size_t max, mfi_op **out)
{
    if (lease == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (span.len > max) {
        return JZX_ERR_TOO_BIG;
    }
    mfi_op *op;
    jzx_err err = mfi_op_new(txn, kind, &op);
    if (err != JZX_OK) {
        return err;
    }
    memset(&op->run, 0, sizeof op->run);
    op->run.lease = *lease;
    op->run.span = span;
    err = mfi_keep_span(txn, &op->run.span);
    if (err == JZX_OK) {
        mfi_op_add(txn, op);
        *out = op;
    }
    return err;
}

jzx_err jzx_mf_job_heartbeat(jzx_mf_txn *txn, const jzx_mf_lease *lease, uint32_t extend_ms,
                             uint64_t done, uint64_t total, jzx_mf_span text)
{
    mfi_op *op;
    jzx_err err = op_leased(txn, MFI_OP_HEARTBEAT, lease, text, JZX_MF_TEXT_MAX, &op);
    if (err == JZX_OK) {
        op->n = extend_ms;
        op->run.done = done;
        op->run.total = total;
    }
    return err;
}

jzx_err jzx_mf_job_complete(jzx_mf_txn *txn, const jzx_mf_lease *lease, jzx_mf_span result)
{
    mfi_op *op;
    return op_leased(txn, MFI_OP_COMPLETE, lease, result, JZX_MF_PAYLOAD_MAX, &op);
}

jzx_err jzx_mf_job_fail(jzx_mf_txn *txn, const jzx_mf_lease *lease, const jzx_mf_failure *failure)
{
    static const jzx_mf_failure plain = {0};
    failure = failure == NULL ? &plain : failure;
    if ((failure->flags & ~(JZX_MF_FAIL_NOW | JZX_MF_FAIL_FOR_GOOD | JZX_MF_FAIL_UNCOUNTED)) != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    mfi_op *op;
    jzx_err err = op_leased(txn, MFI_OP_FAIL, lease, failure->text, JZX_MF_TEXT_MAX, &op);
    if (err == JZX_OK) {
        op->run.failure = *failure;
        op->run.failure.text = op->run.span;
    }
    return err;
}

jzx_err jzx_mf_job_cancel(jzx_mf_txn *txn, uint64_t job)
{
    return mfi_op_numbers(txn, MFI_OP_CANCEL, job, 0, 0);
}

jzx_err jzx_mf_job_retry(jzx_mf_txn *txn, uint64_t job)
{
    return mfi_op_numbers(txn, MFI_OP_RETRY, job, 0, 0);
}

jzx_err jzx_mf_job_del(jzx_mf_txn *txn, uint64_t job)
{
    return mfi_op_numbers(txn, MFI_OP_JOB_DEL, job, 0, 0);
}

jzx_err jzx_mf_job_prune(jzx_mf_txn *txn, uint32_t max)
{
    return mfi_op_numbers(txn, MFI_OP_PRUNE, 0, 0, max);
}

jzx_err jzx_mf_kind_put_sized(jzx_mf_txn *txn, uint16_t kind, const jzx_mf_kind *record,
                              size_t size)
{
    jzx_mf_kind copy;
    if (record == NULL || kind == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = mfi_adopt(&copy, sizeof copy, record, size);
    if (err == JZX_OK && copy.name.len > JZX_MF_NAME_MAX) {
        err = JZX_ERR_TOO_BIG;
    }
    mfi_op *op;
    if (err != JZX_OK || (err = mfi_op_new(txn, MFI_OP_KIND_PUT, &op)) != JZX_OK) {
        return err;
    }
    op->n = kind;
    op->job_kind = copy;
    err = mfi_keep_span(txn, &op->job_kind.name);
    if (err == JZX_OK) {
        mfi_op_add(txn, op);
    }
    return err;
}

jzx_err jzx_mf_kind_pause(jzx_mf_txn *txn, uint16_t kind, int paused)
{
    return kind == 0 ? JZX_ERR_INVALID_ARG
                     : mfi_op_numbers(txn, MFI_OP_KIND_PAUSE, paused != 0, 0, kind);
}

jzx_err jzx_mf_cron_put_sized(jzx_mf_txn *txn, const jzx_mf_cron *record, size_t size)
{
    jzx_mf_cron copy;
    if (record == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = mfi_adopt(&copy, sizeof copy, record, size);
    if (err == JZX_OK) {
        err = mfi_cron_check(&copy);
    }
    mfi_op *op;
    if (err != JZX_OK || (err = mfi_op_new(txn, MFI_OP_CRON_PUT, &op)) != JZX_OK) {
        return err;
    }
    op->cron = copy;
    jzx_mf_span *spans[] = {&op->cron.name, &op->cron.schedule, &op->cron.key, &op->cron.payload};
    err = mfi_keep_spans(txn, spans, sizeof spans / sizeof spans[0]);
    if (err == JZX_OK) {
        mfi_op_add(txn, op);
    }
    return err;
}

jzx_err jzx_mf_cron_del(jzx_mf_txn *txn, jzx_mf_span name)
{
    mfi_op *op;
    return mfi_op_named(txn, MFI_OP_CRON_DEL, name, JZX_MF_NAME_MAX, &op);
}

jzx_mf_txn *mfi_txn_give_back(jzx_mf *mf, const jzx_mf_receipt *receipt)
{
    jzx_mf_txn *txn = mfi_txn_new(mf);
    const jzx_mf_failure failure = {.flags = JZX_MF_FAIL_NOW | JZX_MF_FAIL_UNCOUNTED};
    for (uint32_t i = 0; txn != NULL && i < receipt->job_count; i++) {
        jzx_mf_lease lease = jzx_mf_lease_of(&receipt->jobs[i]);
        if (jzx_mf_job_fail(txn, &lease, &failure) != JZX_OK) {
            break;
        }
    }
    return txn;
}
