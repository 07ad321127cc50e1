/* A write before it is done: a list of operations in memory, and how its outcome is told.
 *
 * A transaction of the public API is this struct; once committed it is a request, which belongs to
 * the writer until it was answered. */
#ifndef MFI_OP_H
#define MFI_OP_H

#include "tx.h"

#include <jzx/ask.h>
#include <jzx/manifest_job.h>
#include <jzx/manifest_txn.h>

#include <stdbool.h>

typedef enum mfi_op_kind {
    MFI_OP_SYNC,
    MFI_OP_EXPECT,
    MFI_OP_DB_PUT,
    MFI_OP_DB_DEL,
    MFI_OP_WAL_PUT,
    MFI_OP_WAL_DEL,
    MFI_OP_CHUNK_PUT,
    MFI_OP_CHUNK_DEL,
    MFI_OP_MATERIAL_PUT,
    MFI_OP_MATERIAL_DEL,
    MFI_OP_MATERIAL_MOVE,
    MFI_OP_METRIC,
    MFI_OP_BUMP,
    MFI_OP_ENQUEUE,
    MFI_OP_CLAIM,
    MFI_OP_HEARTBEAT,
    MFI_OP_COMPLETE,
    MFI_OP_FAIL,
    MFI_OP_CANCEL,
    MFI_OP_RETRY,
    MFI_OP_JOB_DEL,
    MFI_OP_PRUNE,
    MFI_OP_KIND_PUT,
    MFI_OP_KIND_PAUSE,
    MFI_OP_CRON_PUT,
    MFI_OP_CRON_DEL,
    MFI_OPS
} mfi_op_kind;

/* Its texts, blobs and arrays were copied into the transaction. */
typedef struct mfi_op {
    struct mfi_op *next;
    mfi_op_kind kind;
    uint64_t id;  /* db, job, scope of a metric, stamp */
    uint64_t id2; /* chunk, steps of a bump */
    uint32_t n;   /* shard, kind, metric, component, maximum, retries */
    uint8_t from; /* of a move */
    uint8_t to;
    union {
        jzx_mf_key key;
        jzx_mf_db db;
        jzx_mf_wal wal;
        jzx_mf_chunk chunk;
        jzx_mf_material material;
        jzx_mf_metric metric;
        jzx_mf_job_spec spec;
        jzx_mf_claim claim;
        jzx_mf_kind job_kind;
        jzx_mf_cron cron;
        jzx_mf_span span; /* name or id */
        struct {
            jzx_mf_lease lease;
            jzx_mf_failure failure;
            jzx_mf_span span; /* result or text */
            uint64_t done;
            uint64_t total;
        } run;
    };
} mfi_op;

typedef struct mfi_block mfi_block;

/* How the outcome is told: by the callback, to the ask, or (an order of the writer's own) not. */
struct jzx_mf_txn {
    jzx_mf *mf;
    mfi_op *first;
    mfi_op *last;
    uint32_t count;
    bool waits; /* a claim that may wait */
    size_t bytes;
    mfi_block *blocks;
    /* Of the request: */
    struct jzx_mf_txn *next; /* in the writer's batch, or among the claims that wait */
    jzx_mf_done_fn fn;
    void *arg;
    jzx_request ask; /* 0: none */
    uint32_t tag;
    uint64_t wait_until_ms;  /* on the lease clock */
    jzx_mf_receipt *receipt; /* what it will be answered */
    max_align_t space[];
};

/* The receipt, made before the commit and completed after it. NULL: no memory. */
jzx_mf_receipt *mfi_receipt_new(uint32_t slots);
/* As it was when it was new, for another try or for an error: no jobs, empty slots. */
void mfi_receipt_reset(jzx_mf_receipt *receipt);
/* A copy of a claimed job into a receipt. NO_MEMORY. */
jzx_err mfi_receipt_add(jzx_mf_receipt *receipt, const jzx_mf_job *job);

/* Whether it adds records: what only ends, moves or deletes is done even in a full file. */
bool mfi_txn_grows(const jzx_mf_txn *txn);

/* Does all operations of a request, in order. On an error *out_failed is the operation; what was
 * written must be rolled back by the caller. */
jzx_err mfi_apply(mfi_tx *tx, const jzx_mf_txn *txn, jzx_mf_receipt *receipt, uint32_t *out_failed);

/* A request of the writer's own: gives back the jobs of a receipt that could not be delivered.
 * NULL: no memory; then their leases run out. */
jzx_mf_txn *mfi_txn_give_back(jzx_mf *mf, const jzx_mf_receipt *receipt);

/* How operations are made. A new one is not in the list yet: mfi_op_add() puts it there when it is
 * complete, so that a failure on the way only wastes memory. */
jzx_mf_txn *mfi_txn_new(jzx_mf *mf);
jzx_err mfi_op_new(jzx_mf_txn *txn, mfi_op_kind kind, mfi_op **out);
void mfi_op_add(jzx_mf_txn *txn, mfi_op *op);
/* An operation that is nothing but numbers. */
jzx_err mfi_op_numbers(jzx_mf_txn *txn, mfi_op_kind kind, uint64_t id, uint64_t id2, uint32_t n);
/* An operation on something that is found by a text of 1 to max bytes. */
jzx_err mfi_op_named(jzx_mf_txn *txn, mfi_op_kind kind, jzx_mf_span name, size_t max, mfi_op **out);
/* Copies what spans point to into the transaction; an empty one stays. */
jzx_err mfi_keep_span(jzx_mf_txn *txn, jzx_mf_span *span);
jzx_err mfi_keep_spans(jzx_mf_txn *txn, jzx_mf_span *const *spans, size_t count);

/* R36: as jzi_struct_adopt() of the core. */
jzx_err mfi_adopt(void *out, size_t known, const void *given, size_t size);

#endif
