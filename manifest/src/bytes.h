/* Numbers as bytes: big-endian in keys, where memcmp must give their order; little-endian in
 * values. Nothing here asks for alignment. */
#ifndef MFI_BYTES_H
#define MFI_BYTES_H

#include <stdint.h>

static inline void mfi_put_be16(uint8_t *at, uint16_t v)
{
    at[0] = (uint8_t)(v >> 8);
    at[1] = (uint8_t)v;
}
static inline void mfi_put_be32(uint8_t *at, uint32_t v)
{
    mfi_put_be16(at, (uint16_t)(v >> 16));
    mfi_put_be16(at + 2, (uint16_t)v);
}
static inline void mfi_put_be64(uint8_t *at, uint64_t v)
{
    mfi_put_be32(at, (uint32_t)(v >> 32));
    mfi_put_be32(at + 4, (uint32_t)v);
}
static inline uint16_t mfi_get_be16(const uint8_t *at)
{
    return (uint16_t)((uint16_t)at[0] << 8 | at[1]);
}
static inline uint32_t mfi_get_be32(const uint8_t *at)
{
    return (uint32_t)mfi_get_be16(at) << 16 | mfi_get_be16(at + 2);
}
static inline uint64_t mfi_get_be64(const uint8_t *at)
{
    return (uint64_t)mfi_get_be32(at) << 32 | mfi_get_be32(at + 4);
}
static inline void mfi_put_le16(uint8_t *at, uint16_t v)
{
    at[0] = (uint8_t)v;
    at[1] = (uint8_t)(v >> 8);
}
static inline void mfi_put_le32(uint8_t *at, uint32_t v)
{
    mfi_put_le16(at, (uint16_t)v);
    mfi_put_le16(at + 2, (uint16_t)(v >> 16));
}
static inline void mfi_put_le64(uint8_t *at, uint64_t v)
{
    mfi_put_le32(at, (uint32_t)v);
    mfi_put_le32(at + 4, (uint32_t)(v >> 32));
}
static inline uint16_t mfi_get_le16(const uint8_t *at)
{
    return (uint16_t)((uint16_t)at[1] << 8 | at[0]);
}
static inline uint32_t mfi_get_le32(const uint8_t *at)
{
    return (uint32_t)mfi_get_le16(at + 2) << 16 | mfi_get_le16(at);
}
static inline uint64_t mfi_get_le64(const uint8_t *at)
{
    return (uint64_t)mfi_get_le32(at + 4) << 32 | mfi_get_le32(at);
}

#endif
