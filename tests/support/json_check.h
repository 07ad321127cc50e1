/* Whether a text is one value of JSON, in UTF-8: written without a look at the library's own, so
 * that the two do not share a mistake. */
#ifndef JZT_JSON_CHECK_H
#define JZT_JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct jzt_json_at {
    const unsigned char *at;
    const unsigned char *end;
} jzt_json_at;

static inline int jzt_json_next(const jzt_json_at *in)
{
    return in->at < in->end ? *in->at : -1;
}

static inline bool jzt_json_word(jzt_json_at *in, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(in->end - in->at) < len || memcmp(in->at, word, len) != 0) {
        return false;
    }
    in->at += len;
    return true;
}

static inline bool jzt_json_text(jzt_json_at *in)
{
    in->at++;
    for (int c = jzt_json_next(in); c != '"'; c = jzt_json_next(in)) {
        int more = 0;
        if (c < 0x20) {
            return false; /* also the end */
        }
        in->at++;
        if (c == '\\') {
            int letter = jzt_json_next(in);
            if (letter < 0 || strchr("\"\\/bfnrtu", letter) == NULL) {
                return false;
            }
            in->at++;
            for (int i = 0; letter == 'u' && i < 4; i++, in->at++) {
                int digit = jzt_json_next(in);
                if (digit < 0 || strchr("0123456789abcdefABCDEF", digit) == NULL) {
                    return false;
                }
            }
        } else if (c >= 0xF0) {
            more = 3;
        } else if (c >= 0xE0) {
            more = 2;
        } else if (c >= 0xC2) {
            more = 1;
        } else if (c >= 0x80) {
            return false;
        }
        for (; more > 0; more--, in->at++) {
            if ((jzt_json_next(in) & 0xC0) != 0x80) {
                return false;
            }
        }
    }
    in->at++;
    return true;
}

static inline bool jzt_json_digits(jzt_json_at *in)
{
    const unsigned char *first = in->at;
    while (jzt_json_next(in) >= '0' && jzt_json_next(in) <= '9') {
        in->at++;
    }
    return in->at > first;
}

static inline bool jzt_json_number(jzt_json_at *in)
{
    in->at += jzt_json_next(in) == '-';
    bool zero = jzt_json_next(in) == '0';
    const unsigned char *first = in->at;
    if (!jzt_json_digits(in) || (zero && in->at - first > 1)) {
        return false;
    }
    if (jzt_json_next(in) == '.') {
        in->at++;
        return jzt_json_digits(in);
    }
    return true;
}

static inline bool jzt_json_value(jzt_json_at *in, int depth)
{
    int c = jzt_json_next(in);
    if (c == '"') {
        return jzt_json_text(in);
    }
    if (c != '{' && c != '[') {
        return jzt_json_word(in, "true") || jzt_json_word(in, "false") ||
               jzt_json_word(in, "null") || jzt_json_number(in);
    }
    int close = c == '{' ? '}' : ']';
    in->at++;
    if (jzt_json_next(in) == close) {
        in->at++;
        return true;
    }
    for (;; in->at++) {
        if (depth == 0 ||
            (c == '{' && (jzt_json_next(in) != '"' || !jzt_json_text(in) ||
                          jzt_json_next(in) != ':' || in->at++ == NULL)) ||
            !jzt_json_value(in, depth - 1)) {
            return false;
        }
        if (jzt_json_next(in) == close) {
            in->at++;
            return true;
        }
        if (jzt_json_next(in) != ',') {
            return false;
        }
    }
}

/* An object without blanks, as the control writes its lines. */
static inline bool jzt_json_is_line(const char *line, size_t len)
{
    jzt_json_at in = {.at = (const unsigned char *)line, .end = (const unsigned char *)line + len};
    return jzt_json_next(&in) == '{' && jzt_json_value(&in, 16) && in.at == in.end;
}

#endif
