/* What the plain tables do when they are written. One function per operation; each checks first and
 * writes then. Errors as in jzx/manifest_txn.h, and MAP_FULL, NO_MEMORY, CORRUPT, IO. */
#ifndef MFI_TABLES_H
#define MFI_TABLES_H

#include "tx.h"

jzx_err mfi_db_put(mfi_tx *tx, uint64_t db, const jzx_mf_db *record);
jzx_err mfi_db_del(mfi_tx *tx, uint64_t db);
jzx_err mfi_wal_put(mfi_tx *tx, uint64_t db, uint16_t shard, const jzx_mf_wal *record);
jzx_err mfi_wal_del(mfi_tx *tx, uint64_t db, uint16_t shard);
jzx_err mfi_chunk_put(mfi_tx *tx, uint64_t db, uint64_t chunk, const jzx_mf_chunk *record);
jzx_err mfi_chunk_del(mfi_tx *tx, uint64_t db, uint64_t chunk);
jzx_err mfi_material_put(mfi_tx *tx, const jzx_mf_material *record);
jzx_err mfi_material_del(mfi_tx *tx, jzx_mf_span id);
jzx_err mfi_material_move(mfi_tx *tx, jzx_mf_span id, uint8_t from, uint8_t to, uint32_t retries);
jzx_err mfi_metric_merge(mfi_tx *tx, uint64_t scope, uint32_t metric, const jzx_mf_metric *delta);
jzx_err mfi_generation_bump(mfi_tx *tx, uint32_t component, uint64_t by, uint64_t *out_now);
/* CONFLICT when the record is not what the stamp says. */
jzx_err mfi_expect(mfi_tx *tx, const jzx_mf_key *key, uint64_t stamp);

/* What a caller can be told before anything is sent: INVALID_ARG, TOO_BIG. */
jzx_err mfi_db_check(const jzx_mf_db *record);
jzx_err mfi_chunk_check(const jzx_mf_chunk *record);
jzx_err mfi_material_check(const jzx_mf_material *record);
jzx_err mfi_metric_check(const jzx_mf_metric *delta);

#endif
