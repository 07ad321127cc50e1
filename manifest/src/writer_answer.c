/* How a request hears of its outcome: exactly once. */
#include "writer.h"

static void free_receipt(void *receipt)
{
    jzx_mf_receipt_free(receipt);
}

/* Jobs that were claimed for an asker that is gone must not wait for their leases to run out. */
static void writer_answer_give_back(mfi_writer *writer, const jzx_mf_receipt *receipt)
{
    if (receipt->job_count == 0) {
        return;
    }
    jzx_mf_txn *txn = mfi_txn_give_back(writer->mf, receipt);
    if (txn == NULL) {
        return;
    }
    txn->receipt = mfi_receipt_new(txn->count);
    if (txn->receipt == NULL) {
        jzx_mf_abort(txn);
        return;
    }
    mfi_line_push(&writer->batch, txn);
}

void mfi_writer_answer(jzx_context *ctx, mfi_writer *writer, jzx_mf_txn *txn)
{
    jzx_mf_receipt *receipt = txn->receipt;
    receipt->now_ms = writer->tx.now_ms;
    if (receipt->err != JZX_OK) {
        atomic_fetch_add_explicit(&writer->mf->counts.refused, 1, memory_order_relaxed);
    }
    if (txn->fn != NULL) {
        txn->fn(txn->arg, receipt);
    } else if (txn->ask != 0) {
        const jzx_send_opts reply = {
            .data = receipt, .len = sizeof *receipt, .drop = free_receipt, .tag = txn->tag};
        if (jzx_reply_with(ctx, txn->ask, &reply) == JZX_OK) {
            txn->receipt = NULL;
        } else {
            writer_answer_give_back(writer, receipt);
        }
    }
    jzx_mf_abort(txn);
}

void mfi_writer_refuse(jzx_context *ctx, mfi_writer *writer, jzx_mf_txn *txn, jzx_err err)
{
    mfi_receipt_reset(txn->receipt);
    txn->receipt->err = err;
    mfi_writer_answer(ctx, writer, txn);
}
