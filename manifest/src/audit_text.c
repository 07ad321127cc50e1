#include "audit_steps.h"
#include "bytes.h"
#include "key.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The lengths of keys; what varies has room for the longest name or job key. */
static const struct {
    uint8_t min, max;
} forms[JZX_MF_TABLES] = {
    [JZX_MF_TABLE_META] = {1, 1},
    [JZX_MF_TABLE_DB] = {8, 8},
    [JZX_MF_TABLE_DB_NAME] = {1, JZX_MF_NAME_MAX},
    [JZX_MF_TABLE_WAL] = {10, 10},
    [JZX_MF_TABLE_CHUNK] = {16, 16},
    [JZX_MF_TABLE_JOB] = {8, 8},
    [JZX_MF_TABLE_UNIQUE] = {12, 12 + JZX_MF_KEY_MAX},
    [JZX_MF_TABLE_READY] = {19, 19},
    [JZX_MF_TABLE_SCHEDULED] = {16, 16},
    [JZX_MF_TABLE_LEASE] = {16, 16},
    [JZX_MF_TABLE_ACTIVE] = {20, 20 + JZX_MF_KEY_MAX},
    [JZX_MF_TABLE_BLOCKED] = {19, JZX_MF_KEY_BYTES},
    [JZX_MF_TABLE_FINISHED] = {17, 17},
    [JZX_MF_TABLE_DEPENDENCY] = {16, 16},
    [JZX_MF_TABLE_GATE] = {10, 10},
    [JZX_MF_TABLE_KIND] = {2, 2},
    [JZX_MF_TABLE_CRON] = {1, JZX_MF_NAME_MAX},
    [JZX_MF_TABLE_METRIC] = {12, 12},
    [JZX_MF_TABLE_GENERATION] = {4, 4},
    [JZX_MF_TABLE_MATERIAL] = {16, 16},
    [JZX_MF_TABLE_MATERIAL_STATUS] = {25, 25},
    [JZX_MF_TABLE_EVENT] = {12, 12},
};

bool mfi_check_key_form(uint32_t table, jzx_mf_span key)
{
    const uint8_t *at = key.data;
    if (key.len < forms[table].min || key.len > forms[table].max) {
        return false;
    }
    switch (table) {
    case JZX_MF_TABLE_META:
        return at[0] == 'm';
    case JZX_MF_TABLE_UNIQUE:
        return at[0] <= JZX_MF_SCOPE_DB && at[11] <= MFI_SLOT_ACTIVE;
    case JZX_MF_TABLE_ACTIVE:
        return at[2] <= JZX_MF_SCOPE_DB && at[11] == key.len - 20;
    case JZX_MF_TABLE_KIND:
        return mfi_get_be16(at) != 0;
    default:
        return true;
    }
}

bool mfi_check_key_is(const jzx_mf_key *key, jzx_mf_span bytes)
{
    return key->len == bytes.len && memcmp(key->bytes, bytes.data, bytes.len) == 0;
}

/* A text that is written piece by piece and cut off at its end. */
typedef struct writing {
    char *text;
    size_t cap, len;
} writing;

static void add(writing *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(writing *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(to->text + to->len, to->cap - to->len, format, args);
    va_end(args);
    if (len > 0) {
        to->len += (size_t)len;
    }
    if (to->len >= to->cap) {
        to->len = to->cap - 1;
    }
}

static void add_hex(writing *to, const uint8_t *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        add(to, "%02x", at[i]);
    }
}

/* Keys of jobs may be numbers as bytes, names may be anything. */
static void add_quoted(writing *to, const uint8_t *at, size_t len)
{
    add(to, "\"");
    for (size_t i = 0; i < len; i++) {
        bool plain = at[i] >= 0x20 && at[i] < 0x7f && at[i] != '"' && at[i] != '\\';
        if (plain) {
            add(to, "%c", at[i]);
        } else {
            add(to, "\\x%02x", at[i]);
        }
    }
    add(to, "\"");
}

static unsigned long long u64_at(const uint8_t *at)
{
    return (unsigned long long)mfi_get_be64(at);
}

static void add_scope(writing *to, uint8_t scope, const uint8_t *db)
{
    if (scope == JZX_MF_SCOPE_GLOBAL) {
        add(to, "global");
    } else {
        add(to, "database %llu", u64_at(db));
    }
}

static void add_job_index(writing *to, uint32_t table, const uint8_t *at, size_t len)
{
    unsigned long long id = u64_at(at + len - 8);
    switch (table) {
    case JZX_MF_TABLE_READY:
        add(to, "the ready row (kind %u, priority %u, time %llu, job %llu)", mfi_get_be16(at),
            255u - at[2], u64_at(at + 3), id);
        return;
    case JZX_MF_TABLE_SCHEDULED:
        add(to, "the scheduled row (time %llu, job %llu)", u64_at(at), id);
        return;
    case JZX_MF_TABLE_LEASE:
        add(to, "the lease row (until %llu, job %llu)", u64_at(at), id);
        return;
    case JZX_MF_TABLE_ACTIVE:
        add(to, "the active row (kind %u, ", mfi_get_be16(at));
        add_scope(to, at[2], at + 3);
        add(to, ", key ");
        add_quoted(to, at + 12, len - 20);
        add(to, ", job %llu)", id);
        return;
    case JZX_MF_TABLE_BLOCKED:
        add(to, "the blocked row (resource ");
        add_hex(to, at, len - 17);
        add(to, ", priority %u, time %llu, job %llu)", 255u - at[len - 17], u64_at(at + len - 16),
            id);
        return;
    default:
        add(to, "the finished row (state %s, time %llu, job %llu)", jzx_mf_job_state_name(at[0]),
            u64_at(at + 1), id);
        return;
    }
}

static void add_unique(writing *to, const uint8_t *at, size_t len)
{
    add(to, "the %s slot (", at[11] == MFI_SLOT_QUEUED ? "queued" : "active");
    add_scope(to, at[0], at + 1);
    add(to, ", kind %u, key ", mfi_get_be16(at + 9));
    add_quoted(to, at + 12, len - 12);
    add(to, ")");
}

static void add_named(writing *to, const char *what, const uint8_t *at, size_t len)
{
    add(to, "%s ", what);
    add_quoted(to, at, len);
}

static void add_material_status(writing *to, const uint8_t *at)
{
    add(to, "the material_status row (status %u, time %llu, material ", at[0], u64_at(at + 1));
    add_hex(to, at + 9, 16);
    add(to, ")");
}

static void add_key(writing *to, uint32_t table, const uint8_t *at, size_t len)
{
    switch (table) {
    case JZX_MF_TABLE_META:
        add(to, "the meta record");
        return;
    case JZX_MF_TABLE_DB:
        add(to, "database %llu", u64_at(at));
        return;
    case JZX_MF_TABLE_DB_NAME:
        add_named(to, "the name", at, len);
        return;
    case JZX_MF_TABLE_WAL:
        add(to, "the log (database %llu, shard %u)", u64_at(at), mfi_get_be16(at + 8));
        return;
    case JZX_MF_TABLE_CHUNK:
        add(to, "the chunk (database %llu, chunk %llu)", u64_at(at), u64_at(at + 8));
        return;
    case JZX_MF_TABLE_JOB:
        add(to, "job %llu", u64_at(at));
        return;
    case JZX_MF_TABLE_UNIQUE:
        add_unique(to, at, len);
        return;
    case JZX_MF_TABLE_DEPENDENCY:
        add(to, "the dependency (job %llu after job %llu)", u64_at(at + 8), u64_at(at));
        return;
    case JZX_MF_TABLE_GATE:
        add(to, "the gate (database %llu, class %u)", u64_at(at), mfi_get_be16(at + 8));
        return;
    case JZX_MF_TABLE_KIND:
        add(to, "kind %u", mfi_get_be16(at));
        return;
    case JZX_MF_TABLE_CRON:
        add_named(to, "the cron entry", at, len);
        return;
    case JZX_MF_TABLE_METRIC:
        add(to, "the metric (scope %llu, metric %u)", u64_at(at), mfi_get_be32(at + 8));
        return;
    case JZX_MF_TABLE_GENERATION:
        add(to, "the generation of component %u", mfi_get_be32(at));
        return;
    case JZX_MF_TABLE_MATERIAL:
        add(to, "material ");
        add_hex(to, at, len);
        return;
    case JZX_MF_TABLE_MATERIAL_STATUS:
        add_material_status(to, at);
        return;
    case JZX_MF_TABLE_EVENT:
        add(to, "the event (commit %llu, index %u)", u64_at(at), mfi_get_be32(at + 8));
        return;
    default:
        add_job_index(to, table, at, len);
        return;
    }
}

mfi_key_text mfi_check_key_text(uint32_t table, jzx_mf_span key)
{
    mfi_key_text out = {.text = ""};
    writing to = {out.text, sizeof out.text, 0};
    if (mfi_check_key_form(table, key)) {
        add_key(&to, table, key.data, key.len);
    } else {
        add(&to, "the row ");
        add_hex(&to, key.data, key.len < 128 ? key.len : 128);
        add(&to, " of %s", jzx_mf_table_name(table));
    }
    return out;
}

void mfi_check_problem(mfi_check *check, const char *format, ...)
{
    check->problems++;
    check->report->problems++;
    if (check->ended || check->fn == NULL || check->problems > MFI_CHECK_TOLD_MAX + 1) {
        return;
    }
    char sentence[1536];
    if (check->problems <= MFI_CHECK_TOLD_MAX) {
        va_list args;
        va_start(args, format);
        vsnprintf(sentence, sizeof sentence, format, args);
        va_end(args);
    } else {
        snprintf(sentence, sizeof sentence, "there are more problems, which are only counted");
    }
    check->ended = check->fn(check->arg, sentence, check->done, check->total) != 0;
}
