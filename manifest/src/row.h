/* A row: a key and its value in a table, with a checksum that takes in the table and the key.
 *
 * A record has a checksum of its own bytes (codec.h), which says nothing of where it lies: a
 * flipped bit in its key makes it another record. So every row has one more, over u16 type | u16
 * length of the key | key, little-endian: in a record it is in the head, and in a row of an index,
 * which is all key, it is the last four bytes of the value and takes in what is before it, too.
 *
 * This checksum can be looked at without the rest of the value. That is what makes an absence
 * provable: the rows on both sides of where a key would be are the rows they say they are, and
 * nothing is between them (tx.c, docs/internals/adr/0024). */
#ifndef MFI_ROW_H
#define MFI_ROW_H

#include <jzx/manifest_record.h>
#include <jzx/types.h>

#include <stdbool.h>

/* Since this version of a record; rows of indexes had nothing until then. Schema 2. */
#define MFI_ROW_VERSION 2u
#define MFI_ROW_SUM_AT 8u /* in a record */
#define MFI_ROW_SUM_BYTES 4u
#define MFI_ROW_INDEX_BYTES 8u /* the longest value of an index, without its checksum */

/* How long values of an index are without their checksum; false: the table has records. */
bool mfi_row_is_index(uint32_t table, uint32_t *out_len);
/* What a value of so many bytes takes with its checksum. */
size_t mfi_row_room(uint32_t table, size_t len);
/* Puts the checksum where it belongs: value has room for it, len is the length without what an
 * index adds. Records of an older version stay as they are. */
void mfi_row_seal(uint32_t table, jzx_mf_span key, uint8_t *value, size_t len);
/* CORRUPT: this row is not one that was stored. What was written before there were checksums is
 * fine; that of a record's own bytes is the decoder's business. */
jzx_err mfi_row_check(uint32_t table, jzx_mf_span key, jzx_mf_span value);
/* Whether it was written before there were checksums. False for what is no row. */
bool mfi_row_is_old(uint32_t table, jzx_mf_span value);

#endif
