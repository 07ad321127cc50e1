/* As much of JSON as the console reads. */
#include "json.h"

#include <string.h>

/* Nobody who talks to the console nests deeper than this. */
enum { DEPTH_MAX = 64 };

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at)) {
        at++;
    }
    return at;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four digits after \u, or -1. */
static long unicode_unit(const char *at, const char *end)
{
    long value = 0;
    if (end - at < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(at[i]);
        if (digit < 0) {
            return -1;
        }
        value = value * 16 + digit;
    }
    return value;
}

/* Behind the string that begins at `at`, or NULL if it is none. */
static const char *string_end(const char *at, const char *end)
{
    const char *begin = ++at;
    while (at < end && *at != '"') {
        if ((unsigned char)*at < 0x20) {
            return NULL;
        }
        if (*at != '\\') {
            at++;
        } else if (end - at < 2 || strchr("\"\\/bfnrtu", at[1]) == NULL || at[1] == '\0') {
            return NULL;
        } else if (at[1] == 'u') {
            if (unicode_unit(at + 2, end) < 0) {
                return NULL;
            }
            at += 6;
        } else {
            at += 2;
        }
    }
    return at < end && jzc_utf8_ok(begin, (size_t)(at - begin)) ? at + 1 : NULL;
}

/* Behind the object or array that begins at `at`. Brackets are only counted. */
static const char *nested_end(const char *at, const char *end)
{
    unsigned depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = string_end(at, end);
            if (at == NULL) {
                return NULL;
            }
            continue;
        }
        if (*at == '{' || *at == '[') {
            if (++depth > DEPTH_MAX) {
                return NULL;
            }
        } else if ((*at == '}' || *at == ']') && --depth == 0) {
            return at + 1;
        }
        at++;
    }
    return NULL;
}

static const char *digits_end(const char *at, const char *end)
{
    const char *begin = at;
    while (at < end && *at >= '0' && *at <= '9') {
        at++;
    }
    return at > begin ? at : NULL;
}

static const char *number_end(const char *at, const char *end)
{
    at += *at == '-';
    const char *after = digits_end(at, end);
    if (after == NULL || (*at == '0' && after > at + 1)) {
        return NULL;
    }
    at = after;
    if (at < end && *at == '.' && (at = digits_end(at + 1, end)) == NULL) {
        return NULL;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        at = digits_end(at, end);
    }
    return at;
}

static const char *word_end(const char *at, const char *end)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t len = strlen(words[i]);
        if ((size_t)(end - at) >= len && memcmp(at, words[i], len) == 0) {
            return at + len;
        }
    }
    return NULL;
}

static const char *value_end(const char *at, const char *end, jzc_json_kind *out_kind)
{
    if (at >= end) {
        return NULL;
    }
    if (*at == '"') {
        *out_kind = JZC_JSON_STRING;
        return string_end(at, end);
    }
    if (*at == '{' || *at == '[') {
        *out_kind = JZC_JSON_NESTED;
        return nested_end(at, end);
    }
    if (*at == '-' || (*at >= '0' && *at <= '9')) {
        *out_kind = JZC_JSON_NUMBER;
        return number_end(at, end);
    }
    *out_kind = JZC_JSON_WORD;
    return word_end(at, end);
}

static jzc_json_reader read_from(const char *text, size_t len, char bracket)
{
    jzc_json_reader reader = {.at = text, .end = text + len};
    reader.at = skip_blanks(reader.at, reader.end);
    if (reader.at >= reader.end || *reader.at != bracket) {
        reader.bad = true;
    } else {
        reader.at++;
    }
    return reader;
}

jzc_json_reader jzc_json_read(const char *text, size_t len)
{
    return read_from(text, len, '{');
}

jzc_json_reader jzc_json_read_array(const char *text, size_t len)
{
    return read_from(text, len, '[');
}

static bool reader_stop(jzc_json_reader *reader, bool bad)
{
    reader->bad = reader->bad || bad;
    reader->done = true;
    reader->at = reader->end;
    return false;
}

/* The bracket was read: nothing but blanks may follow. */
static bool reader_end(jzc_json_reader *reader)
{
    return reader_stop(reader, skip_blanks(reader->at + 1, reader->end) != reader->end);
}

/* Where the next one begins; NULL: there is none. */
static const char *reader_step(jzc_json_reader *reader, char bracket)
{
    const char *end = reader->end;
    const char *at = skip_blanks(reader->at, end);
    if (reader->done || reader->bad || at >= end) {
        (void)reader_stop(reader, !reader->done);
        return NULL;
    }
    reader->at = at;
    if (*at == bracket) {
        (void)reader_end(reader);
        return NULL;
    }
    if (reader->begun) {
        if (*at != ',') {
            (void)reader_stop(reader, true);
            return NULL;
        }
        at = skip_blanks(at + 1, end);
    }
    reader->begun = true;
    return at;
}

static bool reader_value(jzc_json_reader *reader, const char *at, jzc_json_member *out)
{
    const char *after = value_end(at, reader->end, &out->kind);
    if (after == NULL || after >= reader->end) {
        return reader_stop(reader, true);
    }
    out->value = at;
    out->value_len = (size_t)(after - at);
    reader->at = after;
    return true;
}

bool jzc_json_item(jzc_json_reader *reader, jzc_json_member *out)
{
    const char *at = reader_step(reader, ']');
    *out = (jzc_json_member){0};
    return at != NULL && reader_value(reader, at, out);
}

bool jzc_json_next(jzc_json_reader *reader, jzc_json_member *out)
{
    const char *end = reader->end;
    const char *at = reader_step(reader, '}');
    if (at == NULL) {
        return false;
    }
    const char *after = at < end && *at == '"' ? string_end(at, end) : NULL;
    if (after == NULL) {
        return reader_stop(reader, true);
    }
    out->name = at + 1;
    out->name_len = (size_t)(after - at) - 2;
    at = skip_blanks(after, end);
    if (at >= end || *at != ':') {
        return reader_stop(reader, true);
    }
    return reader_value(reader, skip_blanks(at + 1, end), out);
}

bool jzc_json_is(const jzc_json_member *member, const char *name)
{
    return strlen(name) == member->name_len && memcmp(name, member->name, member->name_len) == 0;
}

bool jzc_json_u64(const char *digits, size_t len, uint64_t *out)
{
    uint64_t value = 0;
    if (len == 0 || len > 20) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        unsigned digit = (unsigned)(digits[i] - '0');
        if (digit > 9 || value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

static void add_utf8(jzc_text *out, unsigned long c)
{
    char bytes[4];
    size_t len = 0;
    if (c < 0x80) {
        bytes[len++] = (char)c;
    } else if (c < 0x800) {
        bytes[len++] = (char)(0xC0 | c >> 6);
        bytes[len++] = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        bytes[len++] = (char)(0xE0 | c >> 12);
        bytes[len++] = (char)(0x80 | (c >> 6 & 0x3F));
        bytes[len++] = (char)(0x80 | (c & 0x3F));
    } else {
        bytes[len++] = (char)(0xF0 | c >> 18);
        bytes[len++] = (char)(0x80 | (c >> 12 & 0x3F));
        bytes[len++] = (char)(0x80 | (c >> 6 & 0x3F));
        bytes[len++] = (char)(0x80 | (c & 0x3F));
    }
    jzc_text_add(out, bytes, len);
}

/* The character at "\uXXXX", and how many bytes it takes; half of a pair stands for U+FFFD. */
static size_t add_unicode(jzc_text *out, const char *at, const char *end)
{
    unsigned long c = (unsigned long)unicode_unit(at + 2, end);
    if (c < 0xD800 || c > 0xDFFF) {
        add_utf8(out, c);
        return 6;
    }
    long low = end - at >= 12 && at[6] == '\\' && at[7] == 'u' ? unicode_unit(at + 8, end) : -1;
    if (c > 0xDBFF || low < 0xDC00 || low > 0xDFFF) {
        add_utf8(out, 0xFFFD);
        return 6;
    }
    add_utf8(out, 0x10000 + ((c - 0xD800) << 10) + ((unsigned long)low - 0xDC00));
    return 12;
}

bool jzc_json_unquote(const char *value, size_t len, jzc_text *out)
{
    static const char named[] = "bfnrt";
    static const char meant[] = "\b\f\n\r\t";
    const char *end = value + len;
    if (len < 2 || *value != '"' || string_end(value, end) != end) {
        return false;
    }
    end--;
    const char *at = value + 1;
    while (at < end) {
        const char *plain = at;
        while (at < end && *at != '\\') {
            at++;
        }
        jzc_text_add(out, plain, (size_t)(at - plain));
        if (at >= end) {
            break;
        }
        const char *found = strchr(named, at[1]);
        if (at[1] == 'u') {
            at += add_unicode(out, at, end);
        } else {
            jzc_text_add(out, found != NULL ? &meant[found - named] : at + 1, 1);
            at += 2;
        }
    }
    return !out->failed;
}

/* How many bytes follow the first one of a character, or -1. */
static int utf8_more(unsigned char first)
{
    if (first < 0x80) {
        return 0;
    }
    if (first >= 0xC2 && first < 0xE0) {
        return 1;
    }
    if (first >= 0xE0 && first < 0xF0) {
        return 2;
    }
    return first >= 0xF0 && first < 0xF5 ? 3 : -1;
}

bool jzc_utf8_ok(const char *bytes, size_t len)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t i = 0;
    while (i < len) {
        int more = utf8_more(at[i]);
        if (more < 0 || len - i <= (size_t)more) {
            return false;
        }
        /* Too long a form, half of a pair, beyond the last character. */
        unsigned char second = more > 0 ? at[i + 1] : 0;
        if ((at[i] == 0xE0 && second < 0xA0) || (at[i] == 0xED && second > 0x9F) ||
            (at[i] == 0xF0 && second < 0x90) || (at[i] == 0xF4 && second > 0x8F)) {
            return false;
        }
        for (int k = 1; k <= more; k++) {
            if ((at[i + (size_t)k] & 0xC0) != 0x80) {
                return false;
            }
        }
        i += (size_t)more + 1;
    }
    return true;
}
