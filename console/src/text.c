/* A text that grows. */
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MIN = 256 };

static bool text_grow(jzc_text *text, size_t more)
{
    if (text->failed || more > SIZE_MAX / 4 - text->len) {
        text->failed = true;
        return false;
    }
    size_t wanted = text->len + more + 1;
    if (wanted <= text->cap) {
        return true;
    }
    size_t cap = text->cap < TEXT_MIN ? TEXT_MIN : text->cap * 2;
    cap = cap < wanted ? wanted : cap;
    char *bytes = realloc(text->bytes, cap);
    if (bytes == NULL) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->cap = cap;
    return true;
}

void jzc_text_add(jzc_text *text, const char *bytes, size_t len)
{
    if (text_grow(text, len)) {
        if (len > 0) {
            memcpy(text->bytes + text->len, bytes, len);
        }
        text->len += len;
        text->bytes[text->len] = '\0';
    }
}

void jzc_text_str(jzc_text *text, const char *string)
{
    jzc_text_add(text, string, strlen(string));
}

void jzc_text_u64(jzc_text *text, uint64_t value)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    jzc_text_add(text, digits, (size_t)len);
}

void jzc_text_quote(jzc_text *text, const char *bytes, size_t len)
{
    jzc_text_add(text, "\"", 1);
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        char escape[8];
        if (byte == '"' || byte == '\\') {
            escape[0] = '\\';
            escape[1] = (char)byte;
            jzc_text_add(text, escape, 2);
        } else if (byte < 0x20 || byte == 0x7F) {
            (void)snprintf(escape, sizeof escape, "\\u%04x", byte);
            jzc_text_add(text, escape, 6);
        } else {
            jzc_text_add(text, bytes + i, 1);
        }
    }
    jzc_text_add(text, "\"", 1);
}

void jzc_text_shift(jzc_text *text, size_t len)
{
    text->len -= len;
    memmove(text->bytes, text->bytes + len, text->len);
    text->bytes[text->len] = '\0';
}

void jzc_text_free(jzc_text *text)
{
    free(text->bytes);
    *text = (jzc_text){0};
}
