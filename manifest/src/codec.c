#include "codec.h"

#include "bytes.h"
#include "crc.h"
#include "memory.h"
#include "row.h"

#include <string.h>

/* Up to version 1 there was no checksum of the key in the head. */
enum { HEAD = 14, OLD_HEAD = 10, TLV_HEAD = 6, BUF_MIN = 512 };

static inline size_t head_of(uint32_t version)
{
    return version >= MFI_ROW_VERSION ? HEAD : OLD_HEAD;
}

/* Of everything but the two checksums: not even a type or a version can change unseen. Old records
 * have it of what follows it. */
static inline uint32_t body_sum(const uint8_t *bytes, size_t len, size_t head)
{
    return head == HEAD ? mfi_crc32c_more(mfi_crc32c(bytes, 4), bytes + HEAD - 2, len - (HEAD - 2))
                        : mfi_crc32c(bytes + 8, len - 8);
}

/* A value whose head was looked at. */
typedef struct parts {
    uint32_t version;
    jzx_mf_span fixed;
    jzx_mf_span tlvs;
} parts;

void mfi_buf_free(mfi_buf *buf)
{
    mfi_free(buf->bytes);
    *buf = (mfi_buf){0};
}

bool mfi_buf_reserve(mfi_buf *buf, size_t cap)
{
    if (cap <= buf->cap) {
        return true;
    }
    size_t larger = cap < BUF_MIN ? BUF_MIN : cap + cap / 2;
    uint8_t *bytes = mfi_realloc(buf->bytes, larger);
    if (bytes == NULL) {
        return false;
    }
    buf->bytes = bytes;
    buf->cap = larger;
    return true;
}

/* What it stands on, and the bytes of the next one. False at the end, where `left` is empty, and
 * where the lengths do not add up, where it is not. */
static inline bool tlv_next(jzx_mf_span *left, uint32_t *tag, jzx_mf_span *bytes)
{
    if (left->len < TLV_HEAD) {
        return false;
    }
    const uint8_t *at = left->data;
    size_t len = mfi_get_le32(at + 2);
    if (len > left->len - TLV_HEAD) {
        return false;
    }
    *tag = mfi_get_le16(at);
    *bytes = jzx_mf_blob(at + TLV_HEAD, len);
    *left = jzx_mf_blob(at + TLV_HEAD + len, left->len - TLV_HEAD - len);
    return true;
}

/* ---- Encoding. */

/* NOLINTBEGIN(bugprone-macro-parentheses): the macros of the schema paste types and members. */

typedef bool (*knows_fn)(uint32_t tag);

#define RECORD(name, type, table, version, older) enum { fixed_##name = 0
#define FIXED(field, size) +(size)
#define END(name)                                                                                  \
    }                                                                                              \
    ;
#include "schema.def"

#define RECORD(name, type, table, version, older)                                                  \
    static bool knows_##name(uint32_t tag)                                                         \
    {                                                                                              \
        switch (tag) {
#define TLV(tag, field, max)                                                                       \
    _Static_assert(tag >= 1 && tag <= 31, "tags are bits of `seen`");                              \
    case tag:                                                                                      \
        return true;
#define END(name)                                                                                  \
    default:                                                                                       \
        return false;                                                                              \
        }                                                                                          \
        }
#include "schema.def"

/* Adds what a span will take; false when it is too long. */
static inline bool tlv_count(jzx_mf_span span, size_t max, size_t *size)
{
    *size += span.len > 0 ? TLV_HEAD + span.len : 0;
    return span.len <= max;
}

static inline uint8_t *tlv_put(uint8_t *at, uint16_t tag, jzx_mf_span span)
{
    if (span.len == 0) {
        return at;
    }
    mfi_put_le16(at, tag);
    mfi_put_le32(at + 2, (uint32_t)span.len);
    memcpy(at + TLV_HEAD, span.data, span.len);
    return at + TLV_HEAD + span.len;
}

/* The TLVs that a rewrite must keep: copied to `at`, or only counted when it is NULL. */
static size_t tlvs_kept(jzx_mf_span left, knows_fn knows, uint8_t *at)
{
    size_t size = 0;
    uint32_t tag;
    jzx_mf_span bytes;
    while (tlv_next(&left, &tag, &bytes)) {
        if (knows(tag)) {
            continue;
        }
        size_t len = TLV_HEAD + bytes.len;
        if (at != NULL) {
            memcpy(at + size, (const uint8_t *)bytes.data - TLV_HEAD, len);
        }
        size += len;
    }
    return size;
}

typedef struct writing {
    mfi_buf *out;
    const mfi_rest *keep;
    knows_fn knows;
    size_t head;
    uint8_t *tlvs;
} writing;

static inline jzx_err value_begin(writing *w, size_t fixed, size_t tlvs)
{
    static const mfi_rest nothing;
    if (w->keep == NULL) {
        w->keep = &nothing;
    }
    size_t wide = fixed + w->keep->fixed.len;
    if (wide > UINT16_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    size_t size = w->head + wide + tlvs + tlvs_kept(w->keep->tlvs, w->knows, NULL);
    if (!mfi_buf_reserve(w->out, size)) {
        return JZX_ERR_NO_MEMORY;
    }
    uint8_t *bytes = w->out->bytes;
    mfi_put_le16(bytes + w->head - 2, (uint16_t)wide);
    if (w->keep->fixed.len > 0) {
        memcpy(bytes + w->head + fixed, w->keep->fixed.data, w->keep->fixed.len);
    }
    w->tlvs = bytes + w->head + wide;
    w->out->len = size;
    return JZX_OK;
}

static inline void value_end(const writing *w, uint8_t *tlvs, uint16_t type, uint16_t version)
{
    (void)tlvs_kept(w->keep->tlvs, w->knows, tlvs);
    uint8_t *bytes = w->out->bytes;
    mfi_put_le16(bytes, type);
    mfi_put_le16(bytes + 2, version);
    mfi_put_le32(bytes + 4, body_sum(bytes, w->out->len, w->head));
    if (w->head == HEAD) {
        mfi_put_le32(bytes + MFI_ROW_SUM_AT, 0); /* the code that stores it knows the key */
    }
}

static inline void put_f64(uint8_t *at, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    mfi_put_le64(at, bits);
}

static inline void put_u64s(uint8_t *at, const uint64_t *v, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        mfi_put_le64(at + i * 8, v[i]);
    }
}

#define RECORD(name, type, table, version, older)                                                  \
    static inline bool count_##name(const type *r, size_t *size)                                   \
    {                                                                                              \
        (void)r;                                                                                   \
        (void)size;                                                                                \
        return true
#define TLV(tag, field, max) &&tlv_count(r->field, max, size)
#define END(name)                                                                                  \
    ;                                                                                              \
    }
#include "schema.def"

/* Fixed fields go to `at`, TLVs to `tlv`; the end of each function is the same for all. */
#define RECORD(name, type, table, version, older)                                                  \
    jzx_err mfi_encode_##name(const type *r, const mfi_rest *keep, mfi_buf *out)                   \
    {                                                                                              \
        enum { NUMBER = (table) + 1, VERSION = (version) };                                        \
        size_t size = 0;                                                                           \
        if (!count_##name(r, &size)) {                                                             \
            return JZX_ERR_TOO_BIG;                                                                \
        }                                                                                          \
        writing w = {out, keep, knows_##name, head_of(VERSION), NULL};                             \
        jzx_err err = value_begin(&w, fixed_##name, size);                                         \
        if (err != JZX_OK) {                                                                       \
            return err;                                                                            \
        }                                                                                          \
        uint8_t *at = out->bytes + w.head;                                                         \
        uint8_t *tlv = w.tlvs;
#define PUT(size, statement)                                                                       \
    statement;                                                                                     \
    at += (size);
#define U8(field) PUT(1, *at = r->field)
#define U16(field) PUT(2, mfi_put_le16(at, r->field))
#define U32(field) PUT(4, mfi_put_le32(at, r->field))
#define I32(field) PUT(4, mfi_put_le32(at, (uint32_t)r->field))
#define U64(field) PUT(8, mfi_put_le64(at, r->field))
#define F64(field) PUT(8, put_f64(at, r->field))
#define BYTES(field, n) PUT((n), memcpy(at, r->field, (n)))
#define U64S(field, n) PUT((n)*8, put_u64s(at, r->field, (n)))
#define TLV(tag, field, max) tlv = tlv_put(tlv, tag, r->field);
#define END(name)                                                                                  \
    value_end(&w, tlv, NUMBER, VERSION);                                                           \
    return JZX_OK;                                                                                 \
    }
#include "schema.def"
#undef PUT

/* ---- Decoding. */

static inline jzx_err value_open(jzx_mf_span value, uint32_t type, uint32_t newest, parts *out)
{
    const uint8_t *bytes = value.data;
    if (value.len < OLD_HEAD || mfi_get_le16(bytes) != type) {
        return JZX_ERR_CORRUPT;
    }
    out->version = mfi_get_le16(bytes + 2);
    size_t head = head_of(out->version);
    if (value.len < head) {
        return JZX_ERR_CORRUPT;
    }
    size_t fixed = mfi_get_le16(bytes + head - 2);
    if (fixed > value.len - head || mfi_get_le32(bytes + 4) != body_sum(bytes, value.len, head)) {
        return JZX_ERR_CORRUPT;
    }
    out->fixed = jzx_mf_blob(bytes + head, fixed);
    out->tlvs = jzx_mf_blob(bytes + head + fixed, value.len - head - fixed);
    return out->version > newest ? JZX_ERR_NEWER_SCHEMA : JZX_OK;
}

static inline void rest_tell(const parts *p, size_t known, mfi_rest *rest)
{
    if (rest == NULL) {
        return;
    }
    size_t had = p->fixed.len < known ? p->fixed.len : known;
    rest->fixed = jzx_mf_blob((const uint8_t *)p->fixed.data + had, p->fixed.len - had);
    rest->tlvs = p->tlvs;
}

static inline bool tlv_take(jzx_mf_span *field, uint32_t *seen, uint32_t tag, jzx_mf_span bytes,
                            size_t max)
{
    bool twice = (*seen >> tag & 1) != 0;
    *seen |= UINT32_C(1) << tag;
    *field = bytes;
    return !twice && bytes.len <= max;
}

static inline double get_f64(const uint8_t *at)
{
    uint64_t bits = mfi_get_le64(at);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline void get_u64s(const uint8_t *at, uint64_t *v, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        v[i] = mfi_get_le64(at + i * 8);
    }
}

/* Whether a fixed part ends between two fields. */
#define RECORD(name, type, table, version, older)                                                  \
    static bool is_whole_##name(size_t len)                                                        \
    {                                                                                              \
        size_t at = 0;
#define FIXED(field, size)                                                                         \
    if (len == at) {                                                                               \
        return true;                                                                               \
    }                                                                                              \
    at += (size);
#define END(name)                                                                                  \
    return len >= at;                                                                              \
    }
#include "schema.def"

#define RECORD(name, type, table, version, older)                                                  \
    static inline bool tlvs_##name(jzx_mf_span left, type *r)                                      \
    {                                                                                              \
        uint32_t seen = 0;                                                                         \
        uint32_t tag;                                                                              \
        jzx_mf_span bytes;                                                                         \
        bool fine = true;                                                                          \
        (void)r;                                                                                   \
        (void)seen;                                                                                \
        while (fine && tlv_next(&left, &tag, &bytes)) {                                            \
            switch (tag) {
#define TLV(tag, field, max)                                                                       \
    case tag:                                                                                      \
        fine = tlv_take(&r->field, &seen, tag, bytes, max);                                        \
        break;
#define END(name)                                                                                  \
    default:                                                                                       \
        break;                                                                                     \
        }                                                                                          \
        }                                                                                          \
        return fine && left.len == 0;                                                              \
        }
#include "schema.def"

/* A short fixed part is read from a copy that ends in zeros. */
#define RECORD(name, type, table, version, older)                                                  \
    static inline jzx_err decode_##name(const parts *p, type *out, mfi_rest *rest)                 \
    {                                                                                              \
        type record = {0};                                                                         \
        type *r = &record;                                                                         \
        uint8_t padded[fixed_##name];                                                              \
        const uint8_t *at = p->fixed.data;                                                         \
        if (p->fixed.len < sizeof padded) {                                                        \
            if (!is_whole_##name(p->fixed.len)) {                                                  \
                return JZX_ERR_CORRUPT;                                                            \
            }                                                                                      \
            memset(padded, 0, sizeof padded);                                                      \
            memcpy(padded, at, p->fixed.len);                                                      \
            at = padded;                                                                           \
        }
#define GET(size, statement)                                                                       \
    statement;                                                                                     \
    at += (size);
#define U8(field) GET(1, r->field = *at)
#define U16(field) GET(2, r->field = mfi_get_le16(at))
#define U32(field) GET(4, r->field = mfi_get_le32(at))
#define I32(field) GET(4, r->field = (int32_t)mfi_get_le32(at))
#define U64(field) GET(8, r->field = mfi_get_le64(at))
#define F64(field) GET(8, r->field = get_f64(at))
#define BYTES(field, n) GET((n), memcpy(r->field, at, (n)))
#define U64S(field, n) GET((n)*8, get_u64s(at, r->field, (n)))
#define END(name)                                                                                  \
    if (!tlvs_##name(p->tlvs, r)) {                                                                \
        return JZX_ERR_CORRUPT;                                                                    \
    }                                                                                              \
    *out = record;                                                                                 \
    rest_tell(p, fixed_##name, rest);                                                              \
    return JZX_OK;                                                                                 \
    }
#include "schema.def"
#undef GET

/* ---- Older versions are closed: no field is appended to them any more. Version 1 had the fields
 * of version 2 and another head, so only those before it need a function. */

#define no_older(p, out, rest) JZX_ERR_CORRUPT

static jzx_err older_chunk(const parts *p, jzx_mf_chunk *out, mfi_rest *rest)
{
    mfi_chunk_v0 old;
    if (p->fixed.len > fixed_chunk_v0 || decode_chunk_v0(p, &old, rest) != JZX_OK ||
        old.wal_count > UINT64_MAX - old.wal_begin) {
        return JZX_ERR_CORRUPT;
    }
    *out = (jzx_mf_chunk){.file_name = old.file_name,
                          .generation = old.generation,
                          .size_bytes = old.size_bytes,
                          .wal_begin = old.wal_begin,
                          .wal_end = old.wal_begin + old.wal_count,
                          .compression = old.compression,
                          .encrypted = old.encrypted,
                          .residency = JZX_MF_LOCAL};
    return JZX_OK;
}

static jzx_err older_generation(const parts *p, jzx_mf_generation *out, mfi_rest *rest)
{
    mfi_generation_v0 old;
    if (p->fixed.len > fixed_generation_v0 || decode_generation_v0(p, &old, rest) != JZX_OK) {
        return JZX_ERR_CORRUPT;
    }
    *out = (jzx_mf_generation){.current = old.current};
    return JZX_OK;
}

#define NO_OLD
#define RECORD(name, type, table, version_now, older)                                              \
    jzx_err mfi_decode_##name(jzx_mf_span value, type *out, mfi_rest *rest)                        \
    {                                                                                              \
        parts p;                                                                                   \
        jzx_err err = value_open(value, (table) + 1, version_now, &p);                             \
        if (err != JZX_OK) {                                                                       \
            return err;                                                                            \
        }                                                                                          \
        return p.version == 0 ? older(&p, out, rest) : decode_##name(&p, out, rest);               \
    }
#include "schema.def"

/* ---- Any table. */

uint32_t mfi_value_stamp(uint32_t table, jzx_mf_span value)
{
    switch (table) {
#define NO_OLD
#define RECORD(name, type, table, version, older) case table:
#include "schema.def"
        if (value.len >= OLD_HEAD) {
            return mfi_get_le32((const uint8_t *)value.data + 4);
        }
        break;
    default:
        break;
    }
    uint32_t plain = 0;
    bool sealed = mfi_row_is_index(table, &plain) && value.len == plain + MFI_ROW_SUM_BYTES;
    return mfi_crc32c(value.data, sealed ? plain : value.len);
}

static inline void give(void *out, size_t size, const void *record, size_t known)
{
    memcpy(out, record, size < known ? size : known);
    if (size > known) {
        memset((uint8_t *)out + known, 0, size - known);
    }
}

/* A caller that knows the whole struct, which is the rule, gets it without another copy. */
jzx_err mfi_value_read(uint32_t table, jzx_mf_span value, void *out, size_t size)
{
    switch (table) {
#define NO_OLD
#define RECORD(name, type, table, version, older)                                                  \
    case table: {                                                                                  \
        type record;                                                                               \
        if (size == sizeof record) {                                                               \
            return mfi_decode_##name(value, out, NULL);                                            \
        }                                                                                          \
        jzx_err err = mfi_decode_##name(value, &record, NULL);                                     \
        if (err == JZX_OK) {                                                                       \
            give(out, size, &record, sizeof record);                                               \
        }                                                                                          \
        return err;                                                                                \
    }
#include "schema.def"
    default:
        return JZX_ERR_INVALID_ARG;
    }
}

jzx_err mfi_value_rest(uint32_t table, jzx_mf_span value, mfi_rest *out)
{
    switch (table) {
#define NO_OLD
#define RECORD(name, type, table, version, older)                                                  \
    case table: {                                                                                  \
        type record;                                                                               \
        return mfi_decode_##name(value, &record, out);                                             \
    }
#include "schema.def"
    default:
        return JZX_ERR_INVALID_ARG;
    }
}

jzx_err mfi_value_check(uint32_t table, jzx_mf_span value)
{
    uint32_t plain;
    if (mfi_row_is_index(table, &plain)) {
        bool fits = value.len == plain || value.len == plain + MFI_ROW_SUM_BYTES;
        return fits ? JZX_OK : JZX_ERR_CORRUPT;
    }
    return mfi_value_rest(table, value, NULL);
}

bool mfi_value_is_old(uint32_t table, jzx_mf_span value)
{
    uint32_t plain;
    if (mfi_row_is_index(table, &plain)) {
        return mfi_row_is_old(table, value);
    }
    if (value.len < OLD_HEAD) {
        return false;
    }
    uint32_t version = mfi_get_le16((const uint8_t *)value.data + 2);
    switch (table) {
#define NO_OLD
#define RECORD(name, type, table, newest, older)                                                   \
    case table:                                                                                    \
        return version < (newest);
#include "schema.def"
    default:
        return false;
    }
}

jzx_err mfi_value_renew(uint32_t table, jzx_mf_span value, mfi_buf *out)
{
    mfi_rest rest;
    jzx_err err;
    switch (table) {
#define NO_OLD
#define RECORD(name, type, table, version, older)                                                  \
    case table: {                                                                                  \
        type record;                                                                               \
        err = mfi_decode_##name(value, &record, &rest);                                            \
        return err == JZX_OK ? mfi_encode_##name(&record, &rest, out) : err;                       \
    }
#include "schema.def"
    default:
        return JZX_ERR_INVALID_ARG;
    }
}

/* NOLINTEND(bugprone-macro-parentheses) */
