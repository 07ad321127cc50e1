#include "record.h"

#include "text.h"

#include <jzx/manifest_job.h>

#include <math.h>
#include <string.h>

ui_colour ui_state_colour(uint32_t job_state)
{
    switch (job_state) {
    case JZX_MF_JOB_READY:
        return UI_GREEN;
    case JZX_MF_JOB_ACTIVE:
        return UI_CYAN;
    case JZX_MF_JOB_BLOCKED:
        return UI_YELLOW;
    case JZX_MF_JOB_DEAD:
        return UI_RED;
    case JZX_MF_JOB_DONE:
    case JZX_MF_JOB_CANCELLED:
    case JZX_MF_JOB_SUPERSEDED:
        return UI_DIM;
    default:
        return UI_PLAIN;
    }
}

/* The length of the UTF-8 sequence at `at`, 0: it is none. Nothing overlong, no surrogates. */
static size_t utf8_len(const uint8_t *at, size_t left)
{
    size_t len = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    if (len == 0 || len > left || at[0] > 0xf4) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool wrong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
                 (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f);
    return wrong ? 0 : len;
}

static bool is_utf8(jzx_mf_span span)
{
    const uint8_t *at = span.data;
    for (size_t i = 0; i < span.len;) {
        size_t len = utf8_len(at + i, span.len - i);
        if (len == 0) {
            return false;
        }
        i += len;
    }
    return true;
}

/* What could do things to a terminal. */
static bool is_control(const uint8_t *at, size_t len)
{
    unsigned code;
    return text_is_harmful(at, len, &code);
}

/* One character, made harmless: at most 4 bytes and a 0. Returns how many bytes it stands for. */
static size_t plain_char(const uint8_t *at, size_t left, char out[5])
{
    size_t len = utf8_len(at, left);
    if (len == 0 || is_control(at, len)) {
        (void)snprintf(out, 5, "\\x%02x", at[0]);
        return 1;
    }
    memcpy(out, at, len);
    out[len] = '\0';
    return len;
}

ui_text ui_span(jzx_mf_span span, size_t columns)
{
    ui_text out = {""};
    const uint8_t *at = span.data;
    size_t used = 0;
    size_t shown = 0;
    for (size_t i = 0; i < span.len; shown++) {
        if (used > sizeof out.text - 8 || shown >= columns) {
            memcpy(out.text + used, "...", 4);
            return out;
        }
        i += plain_char(at + i, span.len - i, out.text + used);
        used += strlen(out.text + used);
    }
    return out;
}

ui_record ui_begin(FILE *out, bool json)
{
    ui_record record = {.out = out, .json = json};
    if (json) {
        fputc('{', out);
    }
    return record;
}

void ui_end(ui_record *record)
{
    if (record->json) {
        fputs("}\n", record->out);
    }
}

/* Of text that is UTF-8. What terminals obey is written by its number. */
static void json_text(FILE *out, const uint8_t *at, size_t len)
{
    fputc('"', out);
    for (size_t i = 0, bytes; i < len; i += bytes) {
        unsigned code = 0;
        bytes = utf8_len(at + i, len - i);
        bytes = bytes == 0 ? 1 : bytes;
        if (text_is_harmful(at + i, bytes, &code)) {
            fprintf(out, "\\u%04x", code);
        } else {
            fputs(at[i] == '"' || at[i] == '\\' ? "\\" : "", out);
            (void)fwrite(at + i, 1, bytes, out);
        }
    }
    fputc('"', out);
}

/* Names are ours, and need no escapes. */
static void json_name(ui_record *record, const char *name)
{
    if (record->comma) {
        fputc(',', record->out);
    }
    record->comma = true;
    if (name != NULL) {
        fprintf(record->out, "\"%s\":", name);
    }
}

void ui_open(ui_record *record, const char *name, char bracket)
{
    if (record->json) {
        json_name(record, name);
        fputc(bracket, record->out);
        record->comma = false;
    }
}

void ui_close(ui_record *record, char bracket)
{
    if (record->json) {
        fputc(bracket, record->out);
        record->comma = true;
    }
}

/* "created_ms" is "created" for people, "error_code" is "error code". */
static void label_of(ui_record *record, const char *name)
{
    char label[32];
    size_t len = strlen(name);
    if (len > 3 && strcmp(name + len - 3, "_ms") == 0) {
        len -= 3;
    } else if (len > 6 && strcmp(name + len - 6, "_bytes") == 0) {
        len -= 6;
    }
    len = len < sizeof label ? len : sizeof label - 1;
    for (size_t i = 0; i < len; i++) {
        label[i] = name[i] == '_' ? ' ' : name[i];
    }
    label[len] = '\0';
    fprintf(record->out, "%-16s ", label);
}

static void line(ui_record *record, const char *name, const char *value)
{
    label_of(record, name);
    fprintf(record->out, "%s\n", value);
}

/* People see the beginning of what is long. */
static void blob_line(ui_record *record, const char *name, jzx_mf_span value)
{
    const uint8_t *at = value.data;
    size_t end = value.len < 1024 ? value.len : 1024;
    char plain[5];
    label_of(record, name);
    for (size_t i = 0; i < end;) {
        i += plain_char(at + i, value.len - i, plain);
        fputs(plain, record->out);
    }
    if (end < value.len) {
        fprintf(record->out, "... (%zu bytes)", value.len);
    }
    fputc('\n', record->out);
}

void ui_u64(ui_record *record, const char *name, uint64_t value)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    if (record->json) {
        json_name(record, name);
        fputs(digits, record->out);
    } else {
        line(record, name, digits);
    }
}

void ui_some(ui_record *record, const char *name, uint64_t value)
{
    if (record->json || value != 0) {
        ui_u64(record, name, value);
    }
}

void ui_i64(ui_record *record, const char *name, int64_t value)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%lld", (long long)value);
    if (record->json) {
        json_name(record, name);
        fputs(digits, record->out);
    } else {
        line(record, name, digits);
    }
}

void ui_double(ui_record *record, const char *name, double value)
{
    if (!record->json) {
        return;
    }
    json_name(record, name);
    if (isfinite(value)) {
        fprintf(record->out, "%.17g", value);
    } else {
        fputs("null", record->out);
    }
}

void ui_bool(ui_record *record, const char *name, bool value)
{
    if (record->json) {
        json_name(record, name);
        fputs(value ? "true" : "false", record->out);
    } else {
        line(record, name, value ? "yes" : "no");
    }
}

void ui_string(ui_record *record, const char *name, const char *value)
{
    ui_blob(record, name, jzx_mf_text(value));
}

static void put_hex(FILE *out, jzx_mf_span span)
{
    const uint8_t *at = span.data;
    for (size_t i = 0; i < span.len; i++) {
        fprintf(out, "%02x", at[i]);
    }
}

void ui_hex(ui_record *record, const char *name, jzx_mf_span value)
{
    if (record->json) {
        json_name(record, name);
        fputc('"', record->out);
        put_hex(record->out, value);
        fputc('"', record->out);
    }
}

/* Strings of JSON cannot hold any bytes; those that are no UTF-8 are told in hex. */
void ui_blob(ui_record *record, const char *name, jzx_mf_span value)
{
    if (!record->json) {
        if (value.len > 0) {
            blob_line(record, name, value);
        }
        return;
    }
    json_name(record, name);
    if (is_utf8(value)) {
        json_text(record->out, value.data, value.len);
    } else {
        fputs("{\"hex\":\"", record->out);
        put_hex(record->out, value);
        fputs("\"}", record->out);
    }
}

void ui_when(ui_record *record, const char *name, uint64_t ms)
{
    if (record->json) {
        ui_u64(record, name, ms);
    } else if (ms != 0) {
        line(record, name, ui_time(ms).text);
    }
}

void ui_span_ms(ui_record *record, const char *name, uint64_t ms)
{
    if (record->json) {
        ui_u64(record, name, ms);
    } else if (ms != 0) {
        line(record, name, ui_duration(ms).text);
    }
}

void ui_size(ui_record *record, const char *name, uint64_t bytes)
{
    if (record->json) {
        ui_u64(record, name, bytes);
    } else {
        line(record, name, ui_bytes(bytes).text);
    }
}
