/* Hashes of numbers and texts. No address goes in, so they are the same in every run (R30). */
#ifndef JZI_HASH_H
#define JZI_HASH_H

#include <stdint.h>

/* Every bit of the result depends on every bit of the number; different numbers stay different. */
static inline uint64_t jzi_hash_mix(uint64_t number)
{
    number ^= number >> 32;
    number *= UINT64_C(0xD6E8FEB86659FD93);
    number ^= number >> 32;
    number *= UINT64_C(0xD6E8FEB86659FD93);
    return number ^ (number >> 32);
}

/* Of a text that ends with a zero byte: FNV-1a, and mixed, because tables take the low bits. */
static inline uint64_t jzi_hash_text(const char *text)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    }
    return jzi_hash_mix(hash);
}

#endif
