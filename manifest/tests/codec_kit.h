/* Records with random fields, made from schema.def. */
#ifndef JZT_CODEC_KIT_H
#define JZT_CODEC_KIT_H

#include "bytes.h"
#include "check.h"
#include "codec.h"
#include "crc.h"
#include "key.h"
#include "row.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 14, OLD_HEAD = 10, ROUNDS = 300 };

/* ---- Records with random fields. Texts live in a pool. */

static uint8_t pool[2u << 20];

static inline jzx_mf_span draw_span(jzt_rng *rng, size_t max)
{
    size_t len = (size_t)jzt_rng_below(rng, (max < 300 ? max : 300) + 1);
    len = jzt_rng_below(rng, 4) == 0 ? 0 : len;
    return jzx_mf_blob(pool + jzt_rng_below(rng, 1000), len);
}

static inline double draw_f64(jzt_rng *rng)
{
    uint64_t bits = jzt_rng_next(rng);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline void draw_bytes(jzt_rng *rng, void *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        ((uint8_t *)at)[i] = (uint8_t)jzt_rng_next(rng);
    }
}

static inline bool same_span(jzx_mf_span a, jzx_mf_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* A field's value comes from its name, so that fields that change places are seen in golden/. */
static inline jzt_rng *of_field(uint64_t base, const char *name)
{
    static jzt_rng rng;
    rng.state = base;
    for (; *name != 0; name++) {
        rng.state = (rng.state ^ (uint8_t)*name) * UINT64_C(0x100000001B3);
    }
    return &rng;
}

#define RECORD(name, type, table, version, older)                                                  \
    static void draw_##name(jzt_rng *rng, type *r)                                                 \
    {                                                                                              \
        uint64_t base = jzt_rng_next(rng);                                                         \
        memset(r, 0, sizeof *r);
#define DRAW(field) jzt_rng_next(of_field(base, #field))
#define U8(field) r->field = (uint8_t)DRAW(field);
#define U16(field) r->field = (uint16_t)DRAW(field);
#define U32(field) r->field = (uint32_t)DRAW(field);
#define I32(field) r->field = (int32_t)DRAW(field);
#define U64(field) r->field = DRAW(field);
#define F64(field) r->field = draw_f64(of_field(base, #field));
#define BYTES(field, n) draw_bytes(of_field(base, #field), r->field, n);
#define U64S(field, n) draw_bytes(of_field(base, #field), r->field, (n)*8);
#define TLV(tag, field, max) r->field = draw_span(of_field(base, #field), max);
#define END(name) }
#include "schema.def"
#undef DRAW

#define NO_OLD
#define RECORD(name, type, table, version, older)                                                  \
    static bool same_##name(const type *a, const type *b)                                          \
    {                                                                                              \
        return true
#define SAME(field) &&memcmp(&a->field, &b->field, sizeof a->field) == 0
#define FIXED(field, size) SAME(field)
#define TLV(tag, field, max) &&same_span(a->field, b->field)
#define END(name)                                                                                  \
    ;                                                                                              \
    }
#include "schema.def"
#undef SAME

/* ---- What is done with every kind of record. */

typedef struct sample {
    const char *name;
    uint32_t table;
    uint32_t version;
    jzx_err (*make)(jzt_rng *rng, const mfi_rest *keep, mfi_buf *out);
    void (*trip)(jzt_rng *rng);
} sample;

#define RECORD(name, type, table, version, older)                                                  \
    static inline jzx_err make_##name(jzt_rng *rng, const mfi_rest *keep, mfi_buf *out)            \
    {                                                                                              \
        type record;                                                                               \
        draw_##name(rng, &record);                                                                 \
        return mfi_encode_##name(&record, keep, out);                                              \
    }
#include "schema.def"

/* There and back from a block of its own size that begins anywhere, so that ASan sees every read
 * past its end and UBSan every read that asks for alignment. */
#define NO_OLD
#define RECORD(name, type, table, version, older)                                                  \
    static void trip_##name(jzt_rng *rng)                                                          \
    {                                                                                              \
        type record, back;                                                                         \
        mfi_rest rest;                                                                             \
        mfi_buf bytes = {0}, again = {0};                                                          \
        draw_##name(rng, &record);                                                                 \
        REQUIRE_OK(mfi_encode_##name(&record, NULL, &bytes));                                      \
        size_t shift = (size_t)jzt_rng_below(rng, 8);                                              \
        uint8_t *block = malloc(bytes.len + shift);                                                \
        REQUIRE(block != NULL);                                                                    \
        memcpy(block + shift, bytes.bytes, bytes.len);                                             \
        REQUIRE_OK(mfi_decode_##name(jzx_mf_blob(block + shift, bytes.len), &back, &rest));        \
        CHECK(same_##name(&record, &back));                                                        \
        CHECK_EQ(rest.fixed.len, 0);                                                               \
        CHECK_OK(mfi_encode_##name(&back, &rest, &again));                                         \
        CHECK(bytes.len == again.len && memcmp(bytes.bytes, again.bytes, bytes.len) == 0);         \
        free(block);                                                                               \
        mfi_buf_free(&bytes);                                                                      \
        mfi_buf_free(&again);                                                                      \
    }
#include "schema.def"

static const sample samples[] = {
#define NO_OLD
#define RECORD(name, type, table, version, older) {#name, table, version, make_##name, trip_##name},
#include "schema.def"
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static inline jzx_mf_span span_of(const mfi_buf *buf)
{
    return jzx_mf_blob(buf->bytes, buf->len);
}

/* After a change of the body: the checksum that a real writer would have put there. */
static inline uint32_t sum_of(const mfi_buf *buf)
{
    return mfi_crc32c_more(mfi_crc32c(buf->bytes, 4), buf->bytes + 12, buf->len - 12);
}

static inline void stamp(mfi_buf *buf)
{
    mfi_put_le32(buf->bytes + 4, sum_of(buf));
}

static inline size_t fixed_of(const mfi_buf *buf)
{
    return mfi_get_le16(buf->bytes + HEAD - 2);
}

static inline void insert(mfi_buf *buf, size_t at, const void *bytes, size_t len)
{
    REQUIRE(mfi_buf_reserve(buf, buf->len + len));
    memmove(buf->bytes + at + len, buf->bytes + at, buf->len - at);
    memcpy(buf->bytes + at, bytes, len);
    buf->len += len;
}

/* The same bytes in a block of their own. */
static inline jzx_err check_copy(uint32_t table, const uint8_t *bytes, size_t len)
{
    uint8_t *block = malloc(len > 0 ? len : 1);
    REQUIRE(block != NULL);
    memcpy(block, bytes, len);
    jzx_err err = mfi_value_check(table, jzx_mf_blob(block, len));
    free(block);
    return err;
}

/* ---- The format itself: bytes that must never change. */

typedef struct vector {
    const char *name;
    uint32_t table, version;
    jzx_err (*make)(jzt_rng *rng, const mfi_rest *keep, mfi_buf *out);
} vector;

#endif
