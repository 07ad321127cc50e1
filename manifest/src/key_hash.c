/* BLAKE2b with 16 bytes of output and no key (RFC 7693): `b2sum -l 128` shows the same. A
 * cryptographic hash, because ids of materials come from outside (names of files, URLs): with a
 * weaker one an attacker could make two ids with the same hash, and the second could never be
 * stored. */
#include "bytes.h"
#include "key.h"

#include <string.h>

enum { BLOCK = 128, ROUNDS = 12 };

/* Fractions of the square roots of the first eight primes. */
static const uint64_t start[8] = {
    UINT64_C(0x6a09e667f3bcc908), UINT64_C(0xbb67ae8584caa73b), UINT64_C(0x3c6ef372fe94f82b),
    UINT64_C(0xa54ff53a5f1d36f1), UINT64_C(0x510e527fade682d1), UINT64_C(0x9b05688c2b3e6c1f),
    UINT64_C(0x1f83d9abfb41bd6b), UINT64_C(0x5be0cd19137e2179),
};

/* Which word of the block is used where, round by round; rounds 10 and 11 are as 0 and 1. */
static const uint8_t order[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static uint64_t turn(uint64_t v, unsigned by)
{
    return v >> by | v << (64 - by);
}

static void mix(uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d, uint64_t x, uint64_t y)
{
    *a += *b + x;
    *d = turn(*d ^ *a, 32);
    *c += *d;
    *b = turn(*b ^ *c, 24);
    *a += *b + y;
    *d = turn(*d ^ *a, 16);
    *c += *d;
    *b = turn(*b ^ *c, 63);
}

/* `end` is how many bytes there were up to the end of this block. */
static void compress(uint64_t state[8], const uint8_t *block, uint64_t end, int is_last)
{
    uint64_t m[16];
    uint64_t v[16];
    for (int i = 0; i < 16; i++) {
        m[i] = mfi_get_le64(block + i * 8);
        v[i] = i < 8 ? state[i] : start[i - 8];
    }
    v[12] ^= end;
    v[14] = is_last ? ~v[14] : v[14];
    for (int round = 0; round < ROUNDS; round++) {
        const uint8_t *at = order[round % 10];
        for (int i = 0; i < 8; i++) {
            /* Columns first, then diagonals. */
            int lean = i < 4 ? 0 : 1;
            int col = i % 4;
            mix(&v[col], &v[4 + (col + lean) % 4], &v[8 + (col + 2 * lean) % 4],
                &v[12 + (col + 3 * lean) % 4], m[at[2 * i]], m[at[2 * i + 1]]);
        }
    }
    for (int i = 0; i < 8; i++) {
        state[i] ^= v[i] ^ v[i + 8];
    }
}

void mfi_hash(const void *data, size_t len, uint8_t out[MFI_HASH_BYTES])
{
    uint64_t state[8];
    memcpy(state, start, sizeof state);
    state[0] ^= UINT64_C(0x01010000) ^ MFI_HASH_BYTES;
    const uint8_t *at = data;
    uint64_t done = 0;
    for (; len > BLOCK; len -= BLOCK, at += BLOCK) {
        done += BLOCK;
        compress(state, at, done, 0);
    }
    uint8_t last[BLOCK] = {0};
    if (len > 0) {
        memcpy(last, at, len);
    }
    compress(state, last, done + len, 1);
    mfi_put_le64(out, state[0]);
    mfi_put_le64(out + 8, state[1]);
}
