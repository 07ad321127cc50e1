/* Tables of a file in memory, below the writer. */
#ifndef JZT_TABLES_KIT_H
#define JZT_TABLES_KIT_H

#include "bytes.h"
#include "check.h"
#include "crc.h"
#include "key.h"
#include "mf_tx.h"
#include "tables.h"

#include <jzx/manifest_txn.h>
#include <jzx/manifest_watch.h>
#include <math.h>
#include <string.h>

static inline jzx_mf_db db_named(const char *name)
{
    jzx_mf_db record = {.name = jzx_mf_text(name)};
    return record;
}

static inline uint64_t db_by_name(const mfi_tx *tx, const char *name)
{
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_DB_NAME, jzx_mf_text(name));
    uint64_t db = 0;
    return mfi_get_id(&tx->view, &key, &db) == JZX_OK ? db : 0;
}

/* What was refused must not be seen in any table. */
#define CHECK_REFUSED(tx, call, error)                                                             \
    do {                                                                                           \
        char *before_it = mft_dump(&(tx)->view);                                                   \
        CHECK_EQ((call), (error));                                                                 \
        char *after_it = mft_dump(&(tx)->view);                                                    \
        CHECK_STR(after_it, before_it);                                                            \
        free(before_it);                                                                           \
        free(after_it);                                                                            \
    } while (0)

/* ---- Materials. */

static inline void check_material_index(const mfi_tx *tx, const char *id, uint8_t status,
                                        uint64_t updated)
{
    jzx_mf_key key = jzx_mf_key_material(jzx_mf_text(id));
    jzx_mf_key row = mfi_key_material_status(status, updated, &key);
    CHECK_OK(mfi_find(&tx->view, &row));
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_MATERIAL_STATUS),
             mfi_entries(&tx->view, JZX_MF_TABLE_MATERIAL));
}

static inline jzx_mf_material material_stored(const mfi_tx *tx, const char *id)
{
    jzx_mf_key key = jzx_mf_key_material(jzx_mf_text(id));
    jzx_mf_span value;
    jzx_mf_material record = {0};
    REQUIRE_OK(mfi_get(&tx->view, &key, &value));
    REQUIRE_OK(mfi_decode_material(value, &record, NULL));
    return record;
}

#endif
