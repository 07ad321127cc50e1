#include "row.h"

#include "bytes.h"
#include "crc.h"

#include <string.h>

enum { RECORD_OLD_HEAD = 10, RECORD_HEAD = 14 };

bool mfi_row_is_index(uint32_t table, uint32_t *out_len)
{
    switch (table) {
    case JZX_MF_TABLE_DB_NAME:
    case JZX_MF_TABLE_UNIQUE:
        *out_len = 8;
        return true;
    case JZX_MF_TABLE_READY:
    case JZX_MF_TABLE_SCHEDULED:
    case JZX_MF_TABLE_LEASE:
    case JZX_MF_TABLE_ACTIVE:
    case JZX_MF_TABLE_BLOCKED:
    case JZX_MF_TABLE_FINISHED:
    case JZX_MF_TABLE_DEPENDENCY:
    case JZX_MF_TABLE_MATERIAL_STATUS:
        *out_len = 0;
        return true;
    default:
        return false;
    }
}

size_t mfi_row_room(uint32_t table, size_t len)
{
    uint32_t plain;
    return mfi_row_is_index(table, &plain) ? len + MFI_ROW_SUM_BYTES : len;
}

/* Over the key, and what of the value belongs to it. */
static uint32_t sum_of(uint32_t table, jzx_mf_span key, const uint8_t *value, size_t len)
{
    uint8_t bytes[4 + JZX_MF_KEY_BYTES];
    mfi_put_le16(bytes, (uint16_t)(table + 1));
    mfi_put_le16(bytes + 2, (uint16_t)key.len);
    memcpy(bytes + 4, key.data, key.len);
    uint32_t sum = mfi_crc32c(bytes, 4 + key.len);
    return len > 0 ? mfi_crc32c_more(sum, value, len) : sum;
}

static bool is_keyed_record(jzx_mf_span value)
{
    return mfi_get_le16((const uint8_t *)value.data + 2) >= MFI_ROW_VERSION;
}

void mfi_row_seal(uint32_t table, jzx_mf_span key, uint8_t *value, size_t len)
{
    uint32_t plain;
    if (mfi_row_is_index(table, &plain)) {
        mfi_put_le32(value + len, sum_of(table, key, value, len));
    } else if (len >= RECORD_HEAD && is_keyed_record(jzx_mf_blob(value, len))) {
        mfi_put_le32(value + MFI_ROW_SUM_AT, sum_of(table, key, NULL, 0));
    }
}

static bool is_sum(const uint8_t *at, uint32_t sum)
{
    return mfi_get_le32(at) == sum;
}

jzx_err mfi_row_check(uint32_t table, jzx_mf_span key, jzx_mf_span value)
{
    const uint8_t *at = value.data;
    uint32_t plain;
    bool fine;
    if (key.len > JZX_MF_KEY_BYTES) {
        return JZX_ERR_CORRUPT;
    }
    if (mfi_row_is_index(table, &plain)) {
        fine = value.len == plain || (value.len == plain + MFI_ROW_SUM_BYTES &&
                                      is_sum(at + plain, sum_of(table, key, at, plain)));
    } else if (value.len < RECORD_OLD_HEAD) {
        fine = false;
    } else {
        fine =
            !is_keyed_record(value) ||
            (value.len >= RECORD_HEAD && is_sum(at + MFI_ROW_SUM_AT, sum_of(table, key, NULL, 0)));
    }
    return fine ? JZX_OK : JZX_ERR_CORRUPT;
}

bool mfi_row_is_old(uint32_t table, jzx_mf_span value)
{
    uint32_t plain;
    if (mfi_row_is_index(table, &plain)) {
        return value.len == plain;
    }
    return value.len >= RECORD_OLD_HEAD && !is_keyed_record(value);
}
