/* Writing answers. Numbers are written without the help of the locale: its decimal point may be a
 * comma. */
#include "control/json.h"

#include "base/alloc.h"
#include "base/array.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_BYTES = 1024 };

void jzi_json_init(jzi_json *json, const jzx_allocator *alloc)
{
    *json = (jzi_json){.alloc = *alloc};
}

void jzi_json_deinit(jzi_json *json)
{
    jzi_free(&json->alloc, json->bytes, json->cap);
    *json = (jzi_json){.alloc = json->alloc};
}

void jzi_json_clear(jzi_json *json)
{
    json->len = 0;
    json->comma = json->failed = false;
}

/* Room for so many bytes more. */
static bool reserve(jzi_json *json, size_t more)
{
    if (json->failed || json->cap - json->len >= more) {
        return !json->failed;
    }
    char *bytes =
        jzi_array_grow(&json->alloc, json->bytes, &json->cap, FIRST_BYTES, json->len + more, 1);
    if (bytes == NULL) {
        json->failed = true;
        return false;
    }
    json->bytes = bytes;
    return true;
}

static void json_put(jzi_json *json, const char *bytes, size_t len)
{
    if (len > 0 && reserve(json, len)) {
        memcpy(json->bytes + json->len, bytes, len);
        json->len += len;
    }
}

static void put_char(jzi_json *json, char c)
{
    json_put(json, &c, 1);
}

void jzi_json_raw(jzi_json *json, const char *bytes, size_t len)
{
    json_put(json, bytes, len);
    json->comma = false; /* a line begins anew */
}

/* Texts. */

/* The length of the UTF-8 sequence at `at`, or 0: it is none. Overlong ones, surrogates and what is
 * beyond U+10FFFF are none. */
static size_t sequence(const unsigned char *at, size_t left)
{
    unsigned char first = at[0];
    size_t len = first < 0x80                     ? 1
                 : first >= 0xC2 && first <= 0xDF ? 2
                 : first >= 0xE0 && first <= 0xEF ? 3
                 : first >= 0xF0 && first <= 0xF4 ? 4
                                                  : 0;
    if (len == 0 || len > left) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        unsigned char min = 0x80;
        unsigned char max = 0xBF;
        if (i == 1) {
            min = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : min;
            max = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : max;
        }
        if (at[i] < min || at[i] > max) {
            return 0;
        }
    }
    return len;
}

bool jzi_json_is_utf8(const char *bytes, size_t len)
{
    size_t at = 0;
    while (at < len) {
        size_t step = sequence((const unsigned char *)bytes + at, len - at);
        if (step == 0) {
            return false;
        }
        at += step;
    }
    return true;
}

static void put_escaped(jzi_json *json, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = strchr("\"\"\\\\\nn\rr\tt", c); /* each followed by its letter */
    if (c != 0 && found != NULL && (c == '"' || c == '\\' || c < 0x20)) {
        char two[2] = {'\\', found[1]};
        json_put(json, two, 2);
        return;
    }
    char six[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 0xFu]};
    json_put(json, six, 6);
}

static void json_put_text(jzi_json *json, const char *text, size_t len)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t plain = 0; /* bytes before `i` that go as they are */
    size_t i = 0;
    put_char(json, '"');
    while (i < len) {
        size_t step = sequence(at + i, len - i);
        if (step > 0 && at[i] >= 0x20 && at[i] != '"' && at[i] != '\\' && at[i] != 0x7F) {
            plain += step;
            i += step;
            continue;
        }
        json_put(json, text + i - plain, plain);
        plain = 0;
        if (step == 0) {
            json_put(json, "\xEF\xBF\xBD", 3);
        } else {
            put_escaped(json, at[i]);
        }
        i++;
    }
    json_put(json, text + i - plain, plain);
    put_char(json, '"');
}

/* What comes before a value: a comma, and the member's name. */
static void json_begin(jzi_json *json, const char *name)
{
    if (json->comma) {
        put_char(json, ',');
    }
    json->comma = true;
    if (name != NULL) {
        put_char(json, '"');
        json_put(json, name, strlen(name));
        json_put(json, "\":", 2);
    }
}

void jzi_json_open(jzi_json *json, const char *name, char bracket)
{
    json_begin(json, name);
    put_char(json, bracket);
    json->comma = false;
}

void jzi_json_close(jzi_json *json, char bracket)
{
    put_char(json, bracket);
    json->comma = true;
}

void jzi_json_text(jzi_json *json, const char *name, const char *text)
{
    if (text == NULL) {
        jzi_json_null(json, name);
        return;
    }
    json_begin(json, name);
    json_put_text(json, text, strlen(text));
}

/* Numbers. */

static void put_u64(jzi_json *json, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    json_put(json, digits + at, sizeof digits - at);
}

void jzi_json_u64(jzi_json *json, const char *name, uint64_t value)
{
    json_begin(json, name);
    put_u64(json, value);
}

void jzi_json_i64(jzi_json *json, const char *name, int64_t value)
{
    json_begin(json, name);
    if (value < 0) {
        put_char(json, '-');
    }
    put_u64(json, value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value);
}

void jzi_json_bool(jzi_json *json, const char *name, bool value)
{
    json_begin(json, name);
    json_put(json, value ? "true" : "false", value ? 4 : 5);
}

void jzi_json_null(jzi_json *json, const char *name)
{
    json_begin(json, name);
    json_put(json, "null", 4);
}

/* Six digits after the point at most; big ones have none. */
void jzi_json_real(jzi_json *json, const char *name, double value)
{
    static const double big = 9e9;
    if (!(value - value == 0)) { /* an infinity, or not a number */
        jzi_json_null(json, name);
        return;
    }
    json_begin(json, name);
    double size = value < 0 ? -value : value;
    if (size >= big) {
        char text[320];
        int len = snprintf(text, sizeof text, "%.0f", value);
        json_put(json, text, (size_t)len);
        return;
    }
    uint64_t millionths = (uint64_t)(size * 1e6 + 0.5);
    if (value < 0 && millionths > 0) {
        put_char(json, '-');
    }
    put_u64(json, millionths / 1000000);
    char digits[7] = {'.'};
    uint64_t rest = millionths % 1000000;
    size_t len = 0;
    for (size_t i = 6; i >= 1; i--, rest /= 10) {
        digits[i] = (char)('0' + rest % 10);
        len = len == 0 && digits[i] != '0' ? i + 1 : len;
    }
    json_put(json, len == 0 ? ".0" : digits, len == 0 ? 2 : len);
}

static void put_hex(jzi_json *json, uint64_t value)
{
    static const char all[] = "0123456789abcdef";
    char digits[18] = {0};
    size_t at = sizeof digits - 1;
    digits[at] = '"';
    do {
        digits[--at] = all[value & 0xFu];
        value >>= 4;
    } while (value > 0);
    digits[--at] = '"';
    json_put(json, digits + at, sizeof digits - at);
}

void jzi_json_actor(jzi_json *json, const char *name, jzx_actor_id id)
{
    if (id == JZX_NOBODY) {
        jzi_json_null(json, name);
        return;
    }
    json_begin(json, name);
    put_hex(json, id);
}

void jzi_json_pointer(jzi_json *json, const char *name, const void *pointer)
{
    json_begin(json, name);
    put_hex(json, (uint64_t)(uintptr_t)pointer);
}
