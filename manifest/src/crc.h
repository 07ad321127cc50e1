/* CRC-32C (Castagnoli): of every record, and of every row's key. The machine's instruction where it
 * has one. */
#ifndef MFI_CRC_H
#define MFI_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t mfi_crc32c(const void *data, size_t len);
/* Of what `crc` is of, followed by this. */
uint32_t mfi_crc32c_more(uint32_t crc, const void *data, size_t len);
/* The same without the instruction. */
uint32_t mfi_crc32c_table(const void *data, size_t len);

#endif
