/* Receipts: one block of memory, with a copy of every claimed job behind it. */
#include "op.h"

#include "memory.h"

#include <string.h>

/* What a receipt is made of; the public part comes first. */
typedef struct receipt_block {
    jzx_mf_receipt receipt;
    jzx_mf_job *jobs;
    uint32_t job_cap;
    void **texts; /* one allocation per job: its spans, one after the other */
    jzx_mf_slot slots[];
} receipt_block;

jzx_mf_receipt *mfi_receipt_new(uint32_t slots)
{
    receipt_block *block = mfi_alloc_zeroed(1, sizeof *block + slots * sizeof(jzx_mf_slot));
    if (block == NULL) {
        return NULL;
    }
    block->receipt.failed = UINT32_MAX;
    block->receipt.slots = block->slots;
    block->receipt.slot_count = slots;
    return &block->receipt;
}

static void free_jobs(receipt_block *block)
{
    for (uint32_t i = 0; i < block->receipt.job_count; i++) {
        mfi_free(block->texts[i]);
    }
    block->receipt.job_count = 0;
}

void mfi_receipt_reset(jzx_mf_receipt *receipt)
{
    receipt_block *block = (receipt_block *)receipt;
    free_jobs(block);
    memset(block->slots, 0, receipt->slot_count * sizeof block->slots[0]);
    receipt->err = JZX_OK;
    receipt->failed = UINT32_MAX;
    receipt->seq = 0;
    receipt->jobs_new = 0;
    receipt->jobs_met = 0;
    receipt->now_ms = 0;
}

void jzx_mf_receipt_free(jzx_mf_receipt *receipt)
{
    if (receipt == NULL) {
        return;
    }
    receipt_block *block = (receipt_block *)receipt;
    free_jobs(block);
    mfi_free(block->texts);
    mfi_free(block->jobs);
    mfi_free(block);
}

static jzx_err make_room(receipt_block *block)
{
    if (block->receipt.job_count < block->job_cap) {
        return JZX_OK;
    }
    uint32_t cap = block->job_cap == 0 ? 1 : block->job_cap * 2;
    jzx_mf_job *jobs = mfi_realloc(block->jobs, cap * sizeof *jobs);
    if (jobs == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    block->jobs = jobs;
    block->receipt.jobs = jobs;
    void **texts = mfi_realloc(block->texts, cap * sizeof *texts);
    if (texts == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    block->texts = texts;
    block->job_cap = cap;
    return JZX_OK;
}

jzx_err mfi_receipt_add(jzx_mf_receipt *receipt, const jzx_mf_job *job)
{
    receipt_block *block = (receipt_block *)receipt;
    jzx_err err = make_room(block);
    if (err != JZX_OK) {
        return err;
    }
    jzx_mf_job copy = *job;
    jzx_mf_span *spans[] = {&copy.key,   &copy.payload,  &copy.result,
                            &copy.error, &copy.progress, &copy.blocked_on};
    const size_t count = sizeof spans / sizeof spans[0];
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += spans[i]->len;
    }
    uint8_t *text = mfi_alloc(total == 0 ? 1 : total);
    if (text == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    uint8_t *at = text;
    for (size_t i = 0; i < count; i++) {
        if (spans[i]->len != 0) {
            memcpy(at, spans[i]->data, spans[i]->len);
        }
        spans[i]->data = at;
        at += spans[i]->len;
    }
    block->jobs[receipt->job_count] = copy;
    block->texts[receipt->job_count] = text;
    receipt->job_count++;
    return JZX_OK;
}
