/* From an operation to what it does: the one place that knows all of them. */
#include "op.h"
#include "queue.h"
#include "tables.h"

static jzx_err add_claimed(void *arg, const jzx_mf_job *job)
{
    return mfi_receipt_add(arg, job);
}

static jzx_err enqueue(mfi_tx *tx, const mfi_op *op, jzx_mf_receipt *receipt, jzx_mf_slot *slot)
{
    jzx_err err = mfi_job_enqueue(tx, op->id, &op->spec, slot);
    if (err == JZX_OK && slot->outcome == JZX_MF_NEW) {
        receipt->jobs_new++;
    } else if (err == JZX_OK) {
        receipt->jobs_met++;
    }
    return err;
}

static jzx_err apply_job(mfi_tx *tx, const mfi_op *op, jzx_mf_receipt *receipt, jzx_mf_slot *slot)
{
    bool cancel = false;
    jzx_err err;
    switch (op->kind) {
    case MFI_OP_ENQUEUE:
        return enqueue(tx, op, receipt, slot);
    case MFI_OP_CLAIM:
        return mfi_job_claim(tx, &op->claim, add_claimed, receipt, &slot->outcome);
    case MFI_OP_HEARTBEAT:
        err = mfi_job_heartbeat(tx, &op->run.lease, op->n, op->run.done, op->run.total,
                                op->run.span, &cancel);
        slot->outcome = cancel;
        return err;
    case MFI_OP_COMPLETE:
        return mfi_job_complete(tx, &op->run.lease, op->run.span);
    case MFI_OP_FAIL:
        return mfi_job_fail(tx, &op->run.lease, &op->run.failure);
    case MFI_OP_CANCEL:
        return mfi_job_cancel(tx, op->id);
    case MFI_OP_RETRY:
        return mfi_job_retry(tx, op->id);
    case MFI_OP_JOB_DEL:
        return mfi_job_del(tx, op->id);
    case MFI_OP_PRUNE:
        return mfi_queue_prune(tx, op->n == 0 ? tx->retention.prune_max : op->n, &slot->outcome);
    case MFI_OP_KIND_PUT:
        return mfi_kind_put(tx, (uint16_t)op->n, &op->job_kind);
    case MFI_OP_KIND_PAUSE:
        return mfi_kind_pause(tx, (uint16_t)op->n, op->id != 0);
    case MFI_OP_CRON_PUT:
        return mfi_cron_put(tx, &op->cron);
    case MFI_OP_CRON_DEL:
        return mfi_cron_del(tx, op->span);
    default:
        return JZX_ERR_INVALID_ARG;
    }
}

static jzx_err apply_one(mfi_tx *tx, const mfi_op *op, jzx_mf_receipt *receipt, jzx_mf_slot *slot)
{
    switch (op->kind) {
    case MFI_OP_SYNC:
        return JZX_OK;
    case MFI_OP_EXPECT:
        return mfi_expect(tx, &op->key, op->id);
    case MFI_OP_DB_PUT:
        return mfi_db_put(tx, op->id, &op->db);
    case MFI_OP_DB_DEL:
        return mfi_db_del(tx, op->id);
    case MFI_OP_WAL_PUT:
        return mfi_wal_put(tx, op->id, (uint16_t)op->n, &op->wal);
    case MFI_OP_WAL_DEL:
        return mfi_wal_del(tx, op->id, (uint16_t)op->n);
    case MFI_OP_CHUNK_PUT:
        return mfi_chunk_put(tx, op->id, op->id2, &op->chunk);
    case MFI_OP_CHUNK_DEL:
        return mfi_chunk_del(tx, op->id, op->id2);
    case MFI_OP_MATERIAL_PUT:
        return mfi_material_put(tx, &op->material);
    case MFI_OP_MATERIAL_DEL:
        return mfi_material_del(tx, op->span);
    case MFI_OP_MATERIAL_MOVE:
        return mfi_material_move(tx, op->span, op->from, op->to, op->n);
    case MFI_OP_METRIC:
        return mfi_metric_merge(tx, op->id, op->n, &op->metric);
    case MFI_OP_BUMP:
        return mfi_generation_bump(tx, op->n, op->id2, &slot->id);
    default:
        return apply_job(tx, op, receipt, slot);
    }
}

jzx_err mfi_apply(mfi_tx *tx, const jzx_mf_txn *txn, jzx_mf_receipt *receipt, uint32_t *out_failed)
{
    /* The receipt is ours until it is sent to the asker. */
    jzx_mf_slot *slot = (jzx_mf_slot *)(uintptr_t)receipt->slots;
    uint32_t index = 0;
    for (const mfi_op *op = txn->first; op != NULL; op = op->next) {
        jzx_err err = apply_one(tx, op, receipt, slot);
        if (err != JZX_OK) {
            *out_failed = index;
            return err;
        }
        slot++;
        index++;
    }
    return JZX_OK;
}

bool mfi_txn_grows(const jzx_mf_txn *txn)
{
    for (const mfi_op *op = txn->first; op != NULL; op = op->next) {
        switch (op->kind) {
        case MFI_OP_DB_PUT:
        case MFI_OP_WAL_PUT:
        case MFI_OP_CHUNK_PUT:
        case MFI_OP_MATERIAL_PUT:
        case MFI_OP_METRIC:
        case MFI_OP_ENQUEUE:
        case MFI_OP_KIND_PUT:
        case MFI_OP_CRON_PUT:
            return true;
        default:
            break;
        }
    }
    return false;
}
