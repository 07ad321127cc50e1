/* Bringing a file of an older schema to this one, some rows per commit.
 *
 * Decoders read old versions as well, so no reader has to wait for the end. How far the migration
 * is stands in the meta record: after a crash it goes on there. */
#ifndef MFI_MIGRATE_H
#define MFI_MIGRATE_H

#include "tx.h"

/* Looks at max_rows rows at most, fewer if they are long, and writes those again that are old;
 * *out_count is raised by how many were. Afterwards tx->meta says how far it got; its migrate_key
 * points into *at, which the caller keeps until meta is stored (it may point there before).
 * *out_more: there is something left to do. At the end meta.schema is MFI_SCHEMA; doing it then
 * changes nothing. Errors: INVALID_ARG (max_rows 0), NEWER_SCHEMA (of the file), CORRUPT,
 * NO_MEMORY, MAP_FULL, IO.
 */
jzx_err mfi_migrate_step(mfi_tx *tx, jzx_mf_key *at, uint32_t max_rows, bool *out_more,
                         uint64_t *out_count);

#endif
