/* Records as bytes (docs/guide/MANIFEST.md has the format).
 *
 *   u16 type | u16 version | u32 crc32c | u32 crc32c of the key | u16 fixed length | fixed fields
 *   | TLVs
 *
 * all little-endian. The first checksum is of everything but the two, and looked at by the
 * decoders; the second (row.h) is put there by the code that stores the record, and looked at by
 * the code that finds it (tx.h). A TLV is u16 tag | u32 length | bytes. schema.def is the one place
 * that says which fields there are; from it come encoder, decoder, dump, the fuzzer's round trip
 * and the golden vectors. Fields are only ever appended. A reader takes shorter fixed parts (what
 * is missing is 0) and longer ones, and keeps what it does not know for the next rewrite: the
 * rest. */
#ifndef MFI_CODEC_H
#define MFI_CODEC_H

#include <jzx/manifest_job.h>
#include <jzx/manifest_record.h>

#include <stdbool.h>
#include <stdio.h>

/* Facts about the file itself: the record of table meta. */
typedef struct mfi_meta {
    uint64_t created_ms;
    uint64_t boot;
    uint64_t commit_seq;
    uint64_t job_ids;     /* all ids below were given out, or may have been */
    uint64_t last_ms;     /* the manifest's clock at the last commit */
    uint64_t event_first; /* seq of the oldest event that is kept */
    uint32_t schema;
    uint32_t page_size;
    uint32_t byte_order;    /* 0x01020304 as this machine stores it */
    uint32_t clean;         /* 1: closed properly since the last boot */
    uint32_t migrate_table; /* a migration goes on here: table + 1, 0: none */
    uint32_t reserved;
    jzx_mf_span migrate_key; /* everything up to it is done */
} mfi_meta;
#define MFI_SCHEMA 2u
#define MFI_SCHEMA_KEYED 2u /* since this one every row has a checksum of its key (row.h) */

/* An event as stored; its key has seq and index. */
typedef struct mfi_event {
    jzx_mf_span key;
    uint32_t table;
    uint32_t change;
} mfi_event;

/* What schema 0 had instead; see schema.def. */
typedef struct mfi_chunk_v0 {
    jzx_mf_span file_name;
    uint64_t generation;
    uint64_t size_bytes;
    uint64_t wal_begin;
    uint32_t wal_count;
    uint8_t compression;
    uint8_t encrypted;
} mfi_chunk_v0;
typedef struct mfi_generation_v0 {
    uint32_t current;
} mfi_generation_v0;

/* What a decoder did not know. Borrowed like the value it came from. */
typedef struct mfi_rest {
    jzx_mf_span fixed; /* the end of a longer fixed part */
    jzx_mf_span tlvs;  /* all TLVs; the encoder takes the unknown ones */
} mfi_rest;

/* Where a record is encoded: grows as needed, used again and again. */
typedef struct mfi_buf {
    uint8_t *bytes;
    size_t len;
    size_t cap;
} mfi_buf;
void mfi_buf_free(mfi_buf *buf);
/* Makes room for so many bytes in all. False: no memory. */
bool mfi_buf_reserve(mfi_buf *buf, size_t cap);

/* Encoders: NO_MEMORY, TOO_BIG (a text over its limit). keep may be NULL.
 * Decoders: CORRUPT (lengths, type, crc), NEWER_SCHEMA (a version this library does not know).
 * Spans of *out point into the value. rest may be NULL. */
/* NOLINTBEGIN(bugprone-macro-parentheses): the macro pastes types. */
#define MFI_CODEC(name, type)                                                                      \
    jzx_err mfi_encode_##name(const type *record, const mfi_rest *keep, mfi_buf *out);             \
    jzx_err mfi_decode_##name(jzx_mf_span value, type *out, mfi_rest *rest);
MFI_CODEC(meta, mfi_meta)
MFI_CODEC(db, jzx_mf_db)
MFI_CODEC(wal, jzx_mf_wal)
MFI_CODEC(chunk, jzx_mf_chunk)
MFI_CODEC(job, jzx_mf_job) /* without id, which is its key: the caller sets it */
MFI_CODEC(gate, jzx_mf_gate)
MFI_CODEC(kind, jzx_mf_kind)
MFI_CODEC(cron, jzx_mf_cron)
MFI_CODEC(metric, jzx_mf_metric)
MFI_CODEC(generation, jzx_mf_generation)
MFI_CODEC(material, jzx_mf_material)
MFI_CODEC(event, mfi_event)
#undef MFI_CODEC
/* NOLINTEND(bugprone-macro-parentheses) */
/* Old versions: decoders give the new record instead. Only tests write them. */
jzx_err mfi_encode_chunk_v0(const mfi_chunk_v0 *record, const mfi_rest *keep, mfi_buf *out);
jzx_err mfi_encode_generation_v0(const mfi_generation_v0 *record, const mfi_rest *keep,
                                 mfi_buf *out);

/* Whether a record has an older version than this library writes, or a row of an index has no
 * checksum yet. False for what is neither. */
bool mfi_value_is_old(uint32_t table, jzx_mf_span value);
/* Decodes a record of this table into its struct, of which the caller knows `size` bytes: what it
 * does not know is left out, what only it knows is 0. */
jzx_err mfi_value_read(uint32_t table, jzx_mf_span value, void *out, size_t size);
/* Only what a record of this table has beyond what is known, for rewriting it. Decodes it. */
jzx_err mfi_value_rest(uint32_t table, jzx_mf_span value, mfi_rest *out);
/* The record once more, in today's version; what is not known is kept. Errors of both ways. */
jzx_err mfi_value_renew(uint32_t table, jzx_mf_span value, mfi_buf *out);
/* crc32c of the body, as the header of a value has it: a stamp for conditions. For values without a
 * header (unique, db_name): crc32c of the value without the row's checksum. */
uint32_t mfi_value_stamp(uint32_t table, jzx_mf_span value);
/* Whether a value of this table is well-formed: decodes it. Tables without records: their length.
 */
jzx_err mfi_value_check(uint32_t table, jzx_mf_span value);
/* One line "table key field=value ..." for people, into a growing buffer, 0-terminated. A value
 * that does not decode is shown as hex with the reason. NO_MEMORY. */
jzx_err mfi_value_dump(uint32_t table, jzx_mf_span key, jzx_mf_span value, mfi_buf *out);

#endif
