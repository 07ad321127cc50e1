/* Offsets and flags of LMDB's pages on machines with words of 64 bits, in the machine's order. */
#ifndef MFI_PAGES_STEPS_H
#define MFI_PAGES_STEPS_H

#include "pages.h"

#include <string.h>

/* A page: u64 number | u16 pad | u16 flags | u16 lower | u16 upper | u16 offsets[]; an overflow run
 * has a u32 count of pages where lower and upper are. */
#define PAGE_HEAD 16u
#define PAGE_BRANCH 0x01u
#define PAGE_LEAF 0x02u
#define PAGE_OVERFLOW 0x04u
#define PAGE_META 0x08u

/* A node: u16 low | u16 high | u16 flags | u16 key length | key | data. In a leaf low and high are
 * the length of the data, in a branch low, high and flags the number of the child. */
#define NODE_HEAD 8u
#define NODE_BIG 0x01u
#define NODE_TABLE 0x02u

/* A tree: u32 pad | u16 flags | u16 depth | u64 branch, leaf, overflow pages, entries, root. */
#define DB_BYTES 48u
#define NO_ROOT UINT64_MAX

/* Meta page 0 and 1 come first. */
#define FIRST_PAGE 2u

static inline uint16_t get16(const uint8_t *at)
{
    uint16_t v;
    memcpy(&v, at, sizeof v);
    return v;
}
static inline uint32_t get32(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}
static inline uint64_t get64(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

/* pages_head.c */
mfi_pages_db mfi_pages_db_at(const uint8_t *at);
/* Reads all of it; IO, or CORRUPT when the file ends before. */
jzx_err mfi_pages_read(int fd, void *buf, size_t len, uint64_t offset);

#endif
