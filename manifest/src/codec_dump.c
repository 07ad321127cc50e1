/* Rows as lines of text, for people. */
#include "bytes.h"
#include "codec.h"
#include "row.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { BLOB_SHOWN = 32, BROKEN_SHOWN = 256 };

typedef struct line {
    mfi_buf *out;
    bool failed; /* no memory */
} line;

static void put_bytes(line *l, const char *text, size_t len)
{
    if (l->failed || !mfi_buf_reserve(l->out, l->out->len + len + 1)) {
        l->failed = true;
        return;
    }
    memcpy(l->out->bytes + l->out->len, text, len);
    l->out->len += len;
    l->out->bytes[l->out->len] = 0;
}

__attribute__((format(printf, 2, 3))) static void put(line *l, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len > 0) {
        put_bytes(l, text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
    }
}

static void put_hex(line *l, jzx_mf_span span, size_t shown_max)
{
    const uint8_t *at = span.data;
    size_t shown = span.len < shown_max ? span.len : shown_max;
    for (size_t i = 0; i < shown; i++) {
        put(l, "%02x", at[i]);
    }
    if (shown < span.len) {
        put(l, "...(%zu bytes)", span.len);
    }
}

/* Only what a terminal shows as it is; the rest escaped. */
static void put_text(line *l, jzx_mf_span span)
{
    const uint8_t *at = span.data;
    put(l, "\"");
    for (size_t i = 0; i < span.len; i++) {
        bool plain = at[i] >= ' ' && at[i] < 0x7F && at[i] != '"' && at[i] != '\\';
        put(l, plain ? "%c" : "\\x%02x", at[i]);
    }
    put(l, "\"");
}

/* ---- Keys: what they are made of, part by part. b, h, w, q: numbers of 1, 2, 4, 8 bytes; i: an
 * inverted byte; j: a job's state; s: a text after its length in a byte; t: text, x: hex to the
 * end; r: a resource. */
static const char *const shapes[JZX_MF_TABLES] = {
    [JZX_MF_TABLE_META] = "key:t",
    [JZX_MF_TABLE_DB] = "db:q",
    [JZX_MF_TABLE_DB_NAME] = "name:t",
    [JZX_MF_TABLE_WAL] = "db:q shard:h",
    [JZX_MF_TABLE_CHUNK] = "db:q chunk:q",
    [JZX_MF_TABLE_JOB] = "id:q",
    [JZX_MF_TABLE_UNIQUE] = "scope:b db:q kind:h slot:b key:t",
    [JZX_MF_TABLE_READY] = "kind:h priority:i run_at:q id:q",
    [JZX_MF_TABLE_SCHEDULED] = "run_at:q id:q",
    [JZX_MF_TABLE_LEASE] = "until:q id:q",
    [JZX_MF_TABLE_ACTIVE] = "kind:h scope:b db:q key:s id:q",
    [JZX_MF_TABLE_BLOCKED] = "resource:r priority:i run_at:q id:q",
    [JZX_MF_TABLE_FINISHED] = "state:j finished:q id:q",
    [JZX_MF_TABLE_DEPENDENCY] = "parent:q child:q",
    [JZX_MF_TABLE_GATE] = "db:q class:h",
    [JZX_MF_TABLE_KIND] = "kind:h",
    [JZX_MF_TABLE_CRON] = "name:t",
    [JZX_MF_TABLE_METRIC] = "scope:q metric:w",
    [JZX_MF_TABLE_GENERATION] = "component:w",
    [JZX_MF_TABLE_MATERIAL] = "hash:x",
    [JZX_MF_TABLE_MATERIAL_STATUS] = "status:b since:q hash:x",
    [JZX_MF_TABLE_EVENT] = "seq:q index:w",
};

static const char *resource_shape(char letter)
{
    switch (letter) {
    case 'u':
        return shapes[JZX_MF_TABLE_UNIQUE];
    case 'k':
        return "kind:h scope:b db:q key:s";
    case 'g':
        return "db:q class:h kind:h";
    default:
        return "bytes:x";
    }
}

/* Cuts `len` bytes off the front; fewer when there are fewer. */
static jzx_mf_span cut(jzx_mf_span *left, size_t len)
{
    size_t fits = len < left->len ? len : left->len;
    jzx_mf_span head = jzx_mf_blob(left->data, fits);
    if (fits == 0) {
        return head;
    }
    *left = jzx_mf_blob((const uint8_t *)left->data + fits, left->len - fits);
    return head;
}

static size_t width_of(char kind, jzx_mf_span left)
{
    switch (kind) {
    case 'b':
    case 'i':
    case 'j':
        return 1;
    case 'h':
        return 2;
    case 'w':
        return 4;
    case 'q':
        return 8;
    case 's':
    case 'r':
        return left.len > 0 ? 1 + (size_t) * (const uint8_t *)left.data : 1;
    default:
        return left.len;
    }
}

static void put_part(line *l, char kind, jzx_mf_span part)
{
    const uint8_t *at = part.data;
    switch (kind) {
    case 'b':
        put(l, "%u", at[0]);
        break;
    case 'i':
        put(l, "%u", at[0] ^ 0xFFu);
        break;
    case 'j':
        put(l, "%s", jzx_mf_job_state_name(at[0]));
        break;
    case 'h':
        put(l, "%u", mfi_get_be16(at));
        break;
    case 'w':
        put(l, "%" PRIu32, mfi_get_be32(at));
        break;
    case 'q':
        put(l, "%" PRIu64, mfi_get_be64(at));
        break;
    case 's':
        put_text(l, jzx_mf_blob(at + 1, part.len - 1));
        break;
    case 't':
        put_text(l, part);
        break;
    default:
        put_hex(l, part, BLOB_SHOWN);
        break;
    }
}

/* Parts that are cut short, and what is left over, are shown as hex after a "?". */
static void put_shape(line *l, const char *shape, jzx_mf_span key);

static void put_resource(line *l, jzx_mf_span part)
{
    cut(&part, 1);
    jzx_mf_span letter = cut(&part, 1);
    char what = letter.len == 1 ? *(const char *)letter.data : '?';
    put(l, "%c{", what >= ' ' && what < 0x7F ? what : '?');
    put_shape(l, resource_shape(what), part);
    put(l, " }");
}

static void put_shape(line *l, const char *shape, jzx_mf_span key)
{
    const char *at = shape;
    while (*at != 0) {
        size_t name = strcspn(at, ":");
        char kind = at[name + 1];
        size_t width = width_of(kind, key);
        if (width > key.len) {
            break;
        }
        put(l, " %.*s=", (int)name, at);
        jzx_mf_span part = cut(&key, width);
        if (kind == 'r') {
            put_resource(l, part);
        } else {
            put_part(l, kind, part);
        }
        at += name + 2;
        at += *at == ' ';
    }
    if (key.len > 0 || *at != 0) {
        put(l, " ?=");
        put_hex(l, key, JZX_MF_KEY_BYTES);
    }
}

static void put_key(line *l, uint32_t table, jzx_mf_span key)
{
    put(l, "%s", jzx_mf_table_name(table));
    put_shape(l, table < JZX_MF_TABLES ? shapes[table] : "bytes:x", key);
}

/* ---- Records: all fixed fields, and the spans that are not empty. */

static void put_u64s(line *l, const uint64_t *v, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(l, "%s%" PRIu64, i == 0 ? "" : ",", v[i]);
    }
}

#define RECORD(name, type, table, version, older)                                                  \
    static void put_##name(line *l, const type *r)                                                 \
    {
#define NO_OLD
#define NUMBER(field, format, cast) put(l, " " #field "=" format, (cast)r->field);
#define U8(field) NUMBER(field, "%u", unsigned)
#define U16(field) NUMBER(field, "%u", unsigned)
#define U32(field) NUMBER(field, "%u", unsigned)
#define I32(field) NUMBER(field, "%d", int)
#define U64(field) NUMBER(field, "%" PRIu64, uint64_t)
#define F64(field) NUMBER(field, "%.17g", double)
#define BYTES(field, n)                                                                            \
    put(l, " " #field "=");                                                                        \
    put_hex(l, jzx_mf_blob(r->field, n), n);
#define U64S(field, n)                                                                             \
    put(l, " " #field "=");                                                                        \
    put_u64s(l, r->field, n);
#define TEXT(tag, field, max)                                                                      \
    if (r->field.len > 0) {                                                                        \
        put(l, " " #field "=");                                                                    \
        put_text(l, r->field);                                                                     \
    }
#define BLOB(tag, field, max)                                                                      \
    if (r->field.len > 0) {                                                                        \
        put(l, " " #field "=");                                                                    \
        put_hex(l, r->field, BLOB_SHOWN);                                                          \
    }
#define END(name) }
#include "schema.def"
#undef NUMBER

/* Events say what they are about. */
static void put_subject(line *l, const mfi_event *event)
{
    put(l, " of ");
    put_key(l, event->table, event->key);
}

static jzx_err put_record(line *l, uint32_t table, jzx_mf_span value)
{
    jzx_err err = JZX_OK;
    switch (table) {
#define NO_OLD
#define RECORD(name, type, table, version, older)                                                  \
    case table: {                                                                                  \
        type record;                                                                               \
        err = mfi_decode_##name(value, &record, NULL);                                             \
        if (err == JZX_OK) {                                                                       \
            put_##name(l, &record);                                                                \
        }                                                                                          \
        break;                                                                                     \
    }
#include "schema.def"
    default:
        err = mfi_value_check(table, value);
        if (err == JZX_OK && value.len >= 8) {
            put(l, " -> %" PRIu64, mfi_get_be64(value.data));
        }
        break;
    }
    return err;
}

jzx_err mfi_value_dump(uint32_t table, jzx_mf_span key, jzx_mf_span value, mfi_buf *out)
{
    line l = {.out = out};
    out->len = 0;
    put_key(&l, table, key);
    jzx_err err = mfi_row_check(table, key, value);
    if (err == JZX_OK) {
        err = put_record(&l, table, value);
    }
    mfi_event event;
    if (err != JZX_OK) {
        put(&l, " !%s ", jzx_err_name(err));
        put_hex(&l, value, BROKEN_SHOWN);
    } else if (table == JZX_MF_TABLE_EVENT && mfi_decode_event(value, &event, NULL) == JZX_OK) {
        put_subject(&l, &event);
    }
    return l.failed ? JZX_ERR_NO_MEMORY : JZX_OK;
}
