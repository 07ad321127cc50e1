/* Goal: no bytes in a file make a decoder read what is not there; what it takes means the same
 * after being encoded and decoded again; anything can be shown. The first byte picks the table, the
 * second the version, or (255) that the rest is a whole value; else it is a body, and gets the head
 * and the checksum that a writer would have given it. */
#include "bytes.h"
#include "codec.h"
#include "crc.h"
#include "key.h"
#include "row.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 8, KEYED = 12, WHOLE = 255 };

static void require(int fact)
{
    if (!fact) {
        abort();
    }
}

static bool same_span(jzx_mf_span a, jzx_mf_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

#define NO_OLD
#define RECORD(name, type, table, version, older)                                                  \
    static bool same_##name(const type *a, const type *b)                                          \
    {                                                                                              \
        return true
#define FIXED(field, size) &&memcmp(&a->field, &b->field, sizeof a->field) == 0
#define TLV(tag, field, max) &&same_span(a->field, b->field)
#define END(name)                                                                                  \
    ;                                                                                              \
    }
#include "schema.def"

#define NO_OLD
#define RECORD(name, type, table, version, older)                                                  \
    static void trip_##name(jzx_mf_span value)                                                     \
    {                                                                                              \
        type first, second;                                                                        \
        mfi_rest rest, again;                                                                      \
        mfi_buf buf = {0};                                                                         \
        if (mfi_decode_##name(value, &first, &rest) == JZX_OK) {                                   \
            require(mfi_encode_##name(&first, &rest, &buf) == JZX_OK);                             \
            jzx_mf_span back = jzx_mf_blob(buf.bytes, buf.len);                                    \
            require(mfi_decode_##name(back, &second, &again) == JZX_OK);                           \
            require(same_##name(&first, &second));                                                 \
            require(same_span(rest.fixed, again.fixed));                                           \
            require(!mfi_value_is_old(table, back));                                               \
        }                                                                                          \
        mfi_buf_free(&buf);                                                                        \
    }
#include "schema.def"

static void trip(uint32_t table, jzx_mf_span value)
{
    switch (table) {
#define NO_OLD
#define RECORD(name, type, table, version, older)                                                  \
    case table:                                                                                    \
        trip_##name(value);                                                                        \
        break;
#include "schema.def"
    default:
        break;
    }
}

/* Writing twice is writing once: the second time nothing is left to put in order. */
static void settle(uint32_t table, jzx_mf_span value)
{
    mfi_buf once = {0}, twice = {0};
    if (mfi_value_renew(table, value, &once) == JZX_OK) {
        jzx_mf_span first = jzx_mf_blob(once.bytes, once.len);
        require(mfi_value_check(table, value) == JZX_OK);
        require(mfi_value_renew(table, first, &twice) == JZX_OK);
        require(same_span(first, jzx_mf_blob(twice.bytes, twice.len)));
    }
    mfi_buf_free(&once);
    mfi_buf_free(&twice);
}

static void show(uint32_t table, jzx_mf_span key, jzx_mf_span value)
{
    mfi_buf line = {0};
    require(mfi_value_dump(table, key, value, &line) == JZX_OK);
    require(strlen((const char *)line.bytes) == line.len);
    for (size_t i = 0; i < line.len; i++) {
        require(line.bytes[i] >= ' ' && line.bytes[i] < 0x7F);
    }
    mfi_buf_free(&line);
}

/* What follows the head serves as a key, too. */
static void seal_key(uint32_t table, const uint8_t *bytes, size_t len, uint8_t *value, size_t all)
{
    uint32_t plain;
    jzx_mf_span key = jzx_mf_blob(bytes, len < JZX_MF_KEY_BYTES ? len : JZX_MF_KEY_BYTES);
    if (table < JZX_MF_TABLES && !mfi_row_is_index(table, &plain) && all >= KEYED + 2) {
        mfi_row_seal(table, key, value, all);
        require(mfi_row_check(table, key, jzx_mf_blob(value, all)) == JZX_OK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    uint32_t table = data[0] % (JZX_MF_TABLES + 1);
    size_t body = size - 2;
    size_t head = data[1] == WHOLE ? 0 : HEAD;
    /* A block of its own length: the sanitizer sees every read past its end. */
    uint8_t *bytes = malloc(head + body + 1);
    require(bytes != NULL);
    uint8_t *value = bytes + 1; /* not aligned either */
    memcpy(value + head, data + 2, body);
    if (head > 0) {
        mfi_put_le16(value, (uint16_t)(table + 1));
        mfi_put_le16(value + 2, data[1]);
        mfi_put_le32(value + 4, mfi_crc32c(value + head, body));
    }
    if (head > 0 && data[1] >= MFI_ROW_VERSION && body >= KEYED - HEAD) {
        mfi_put_le32(value + 4,
                     mfi_crc32c_more(mfi_crc32c(value, 4), value + KEYED, body - (KEYED - HEAD)));
        seal_key(table, value + KEYED, body - (KEYED - HEAD), value, head + body);
    }
    jzx_mf_span span = jzx_mf_blob(value, head + body);
    trip(table, span);
    settle(table, span);
    (void)mfi_value_stamp(table, span);
    show(table, jzx_mf_blob(value + head, body), span);
    free(bytes);
    return 0;
}
