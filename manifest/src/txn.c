/* The public side of a transaction: operations are checked, copied and put into its list. */
#include "memory.h"
#include "mf.h"
#include "op.h"
#include "tables.h"

#include <string.h>

/* The first operations of a transaction share its own memory; others get blocks. */
#define FIRST_BYTES 1024u
#define BLOCK_BYTES 4096u

struct mfi_block {
    mfi_block *next;
    size_t used;
    size_t cap;
    max_align_t bytes[];
};

jzx_err mfi_adopt(void *out, size_t known, const void *given, size_t size)
{
    const unsigned char *bytes = given;
    for (size_t i = known; i < size; i++) {
        if (bytes[i] != 0) {
            return JZX_ERR_NEWER_STRUCT;
        }
    }
    size_t shared = size < known ? size : known;
    memcpy(out, given, shared);
    memset((unsigned char *)out + shared, 0, known - shared);
    return JZX_OK;
}

jzx_mf_txn *mfi_txn_new(jzx_mf *mf)
{
    jzx_mf_txn *txn = mfi_alloc(sizeof *txn + sizeof(mfi_block) + FIRST_BYTES);
    if (txn != NULL) {
        memset(txn, 0, sizeof *txn);
        txn->mf = mf;
        txn->blocks = (mfi_block *)txn->space;
        *txn->blocks = (mfi_block){.cap = FIRST_BYTES};
    }
    return txn;
}

jzx_err jzx_mf_begin(jzx_mf *mf, jzx_mf_txn **out_txn)
{
    if (mf == NULL || out_txn == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = mfi_refusal(mf);
    if (err != JZX_OK) {
        return err;
    }
    jzx_mf_txn *txn = mfi_txn_new(mf);
    if (txn == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    *out_txn = txn;
    return JZX_OK;
}

void jzx_mf_abort(jzx_mf_txn *txn)
{
    if (txn == NULL) {
        return;
    }
    mfi_block *own = (mfi_block *)txn->space;
    while (txn->blocks != own) {
        mfi_block *block = txn->blocks;
        txn->blocks = block->next;
        mfi_free(block);
    }
    jzx_mf_receipt_free(txn->receipt);
    mfi_free(txn);
}

uint32_t jzx_mf_txn_count(const jzx_mf_txn *txn)
{
    return txn == NULL ? 0 : txn->count;
}

static void *txn_alloc(jzx_mf_txn *txn, size_t size)
{
    size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    mfi_block *block = txn->blocks;
    if (block->cap - block->used < size) {
        size_t cap = size > BLOCK_BYTES ? size : BLOCK_BYTES;
        mfi_block *more = mfi_alloc(sizeof *more + cap);
        if (more == NULL) {
            return NULL;
        }
        *more = (mfi_block){.next = block, .cap = cap};
        txn->blocks = block = more;
    }
    void *at = (char *)block->bytes + block->used;
    block->used += size;
    txn->bytes += size;
    return at;
}

jzx_err mfi_keep_span(jzx_mf_txn *txn, jzx_mf_span *span)
{
    if (span->len == 0) {
        span->data = NULL;
        return JZX_OK;
    }
    if (span->data == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    void *copy = txn_alloc(txn, span->len);
    if (copy == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    memcpy(copy, span->data, span->len);
    span->data = copy;
    return JZX_OK;
}

jzx_err mfi_keep_spans(jzx_mf_txn *txn, jzx_mf_span *const *spans, size_t count)
{
    jzx_err err = JZX_OK;
    for (size_t i = 0; err == JZX_OK && i < count; i++) {
        err = mfi_keep_span(txn, spans[i]);
    }
    return err;
}

jzx_err mfi_op_new(jzx_mf_txn *txn, mfi_op_kind kind, mfi_op **out)
{
    if (txn == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    /* A claim that waits would keep the others waiting. */
    if (txn->waits) {
        return JZX_ERR_INVALID_ARG;
    }
    if (txn->count == JZX_MF_OPS_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    mfi_op *op = txn_alloc(txn, sizeof *op);
    if (op == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    memset(op, 0, offsetof(mfi_op, key));
    op->kind = kind;
    *out = op;
    return JZX_OK;
}

void mfi_op_add(jzx_mf_txn *txn, mfi_op *op)
{
    if (txn->last == NULL) {
        txn->first = op;
    } else {
        txn->last->next = op;
    }
    txn->last = op;
    txn->count++;
}

jzx_err mfi_op_numbers(jzx_mf_txn *txn, mfi_op_kind kind, uint64_t id, uint64_t id2, uint32_t n)
{
    mfi_op *op;
    jzx_err err = mfi_op_new(txn, kind, &op);
    if (err == JZX_OK) {
        op->id = id;
        op->id2 = id2;
        op->n = n;
        mfi_op_add(txn, op);
    }
    return err;
}

jzx_err jzx_mf_sync(jzx_mf_txn *txn)
{
    return mfi_op_numbers(txn, MFI_OP_SYNC, 0, 0, 0);
}

jzx_err jzx_mf_expect(jzx_mf_txn *txn, const jzx_mf_key *key, uint64_t stamp)
{
    if (key == NULL || key->len == 0 || key->len > JZX_MF_KEY_BYTES ||
        key->table >= JZX_MF_TABLES || key->table == JZX_MF_TABLE_META) {
        return JZX_ERR_INVALID_ARG;
    }
    mfi_op *op;
    jzx_err err = mfi_op_new(txn, MFI_OP_EXPECT, &op);
    if (err == JZX_OK) {
        op->key = *key;
        op->id = stamp;
        mfi_op_add(txn, op);
    }
    return err;
}

jzx_err jzx_mf_db_put_sized(jzx_mf_txn *txn, uint64_t db, const jzx_mf_db *record, size_t size)
{
    jzx_mf_db copy;
    if (record == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = mfi_adopt(&copy, sizeof copy, record, size);
    if (err == JZX_OK) {
        err = mfi_db_check(&copy);
    }
    mfi_op *op;
    if (err != JZX_OK || (err = mfi_op_new(txn, MFI_OP_DB_PUT, &op)) != JZX_OK) {
        return err;
    }
    op->id = db;
    op->db = copy;
    jzx_mf_span *spans[] = {&op->db.name, &op->db.wal_dir, &op->db.chunk_dir, &op->db.key_id};
    err = mfi_keep_spans(txn, spans, sizeof spans / sizeof spans[0]);
    if (err == JZX_OK) {
        mfi_op_add(txn, op);
    }
    return err;
}

jzx_err jzx_mf_db_del(jzx_mf_txn *txn, uint64_t db)
{
    return mfi_op_numbers(txn, MFI_OP_DB_DEL, db, 0, 0);
}

jzx_err jzx_mf_wal_put_sized(jzx_mf_txn *txn, uint64_t db, uint16_t shard, const jzx_mf_wal *record,
                             size_t size)
{
    jzx_mf_wal copy;
    if (record == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = mfi_adopt(&copy, sizeof copy, record, size);
    mfi_op *op;
    if (err != JZX_OK || (err = mfi_op_new(txn, MFI_OP_WAL_PUT, &op)) != JZX_OK) {
        return err;
    }
    op->id = db;
    op->n = shard;
    op->wal = copy;
    mfi_op_add(txn, op);
    return JZX_OK;
}

jzx_err jzx_mf_wal_del(jzx_mf_txn *txn, uint64_t db, uint16_t shard)
{
    return mfi_op_numbers(txn, MFI_OP_WAL_DEL, db, 0, shard);
}

jzx_err jzx_mf_chunk_put_sized(jzx_mf_txn *txn, uint64_t db, uint64_t chunk,
                               const jzx_mf_chunk *record, size_t size)
{
    jzx_mf_chunk copy;
    if (record == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = mfi_adopt(&copy, sizeof copy, record, size);
    if (err == JZX_OK) {
        err = mfi_chunk_check(&copy);
    }
    mfi_op *op;
    if (err != JZX_OK || (err = mfi_op_new(txn, MFI_OP_CHUNK_PUT, &op)) != JZX_OK) {
        return err;
    }
    op->id = db;
    op->id2 = chunk;
    op->chunk = copy;
    jzx_mf_span *spans[] = {&op->chunk.file_name, &op->chunk.object};
    err = mfi_keep_spans(txn, spans, sizeof spans / sizeof spans[0]);
    if (err == JZX_OK) {
        mfi_op_add(txn, op);
    }
    return err;
}

jzx_err jzx_mf_chunk_del(jzx_mf_txn *txn, uint64_t db, uint64_t chunk)
{
    return mfi_op_numbers(txn, MFI_OP_CHUNK_DEL, db, chunk, 0);
}

jzx_err jzx_mf_material_put_sized(jzx_mf_txn *txn, const jzx_mf_material *record, size_t size)
{
    jzx_mf_material copy;
    if (record == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = mfi_adopt(&copy, sizeof copy, record, size);
    if (err == JZX_OK) {
        err = mfi_material_check(&copy);
    }
    mfi_op *op;
    if (err != JZX_OK || (err = mfi_op_new(txn, MFI_OP_MATERIAL_PUT, &op)) != JZX_OK) {
        return err;
    }
    op->material = copy;
    jzx_mf_span *spans[] = {&op->material.id, &op->material.payload, &op->material.error};
    err = mfi_keep_spans(txn, spans, sizeof spans / sizeof spans[0]);
    if (err == JZX_OK) {
        mfi_op_add(txn, op);
    }
    return err;
}

jzx_err mfi_op_named(jzx_mf_txn *txn, mfi_op_kind kind, jzx_mf_span name, size_t max, mfi_op **out)
{
    if (name.len == 0 || name.data == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (name.len > max) {
        return JZX_ERR_TOO_BIG;
    }
    mfi_op *op;
    jzx_err err = mfi_op_new(txn, kind, &op);
    if (err != JZX_OK) {
        return err;
    }
    op->span = name;
    err = mfi_keep_span(txn, &op->span);
    if (err == JZX_OK) {
        mfi_op_add(txn, op);
        *out = op;
    }
    return err;
}

jzx_err jzx_mf_material_del(jzx_mf_txn *txn, jzx_mf_span id)
{
    mfi_op *op;
    return mfi_op_named(txn, MFI_OP_MATERIAL_DEL, id, JZX_MF_OBJECT_MAX, &op);
}

jzx_err jzx_mf_material_move(jzx_mf_txn *txn, jzx_mf_span id, uint8_t from, uint8_t to,
                             uint32_t retries)
{
    mfi_op *op;
    jzx_err err = mfi_op_named(txn, MFI_OP_MATERIAL_MOVE, id, JZX_MF_OBJECT_MAX, &op);
    if (err == JZX_OK) {
        op->from = from;
        op->to = to;
        op->n = retries;
    }
    return err;
}

jzx_err jzx_mf_metric_merge_sized(jzx_mf_txn *txn, uint64_t scope, uint32_t metric,
                                  const jzx_mf_metric *delta, size_t size)
{
    jzx_mf_metric copy;
    if (delta == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = mfi_adopt(&copy, sizeof copy, delta, size);
    if (err == JZX_OK) {
        err = mfi_metric_check(&copy);
    }
    mfi_op *op;
    if (err != JZX_OK || (err = mfi_op_new(txn, MFI_OP_METRIC, &op)) != JZX_OK) {
        return err;
    }
    op->id = scope;
    op->n = metric;
    op->metric = copy;
    mfi_op_add(txn, op);
    return JZX_OK;
}

jzx_err jzx_mf_metric_add(jzx_mf_txn *txn, uint64_t scope, uint32_t metric, double value,
                          uint32_t bucket)
{
    jzx_mf_metric delta = {.sum = value, .min = value, .max = value, .count = 1};
    if (bucket < JZX_MF_BUCKETS) {
        delta.buckets[bucket] = 1;
    }
    return jzx_mf_metric_merge(txn, scope, metric, &delta);
}

jzx_err jzx_mf_generation_bump(jzx_mf_txn *txn, uint32_t component, uint64_t by)
{
    return by == 0 ? JZX_ERR_INVALID_ARG : mfi_op_numbers(txn, MFI_OP_BUMP, 0, by, component);
}
