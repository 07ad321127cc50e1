/* Bytes in, lines out. */
#include "lines.h"

#include <string.h>

bool jzc_lines_feed(jzc_lines *lines, const char *bytes, size_t len)
{
    if (lines->begin > 0) {
        jzc_text_shift(&lines->in, lines->begin);
        lines->seen -= lines->begin;
        lines->begin = 0;
    }
    if (lines->in.len + len > JZC_LINE_MAX) {
        return false;
    }
    jzc_text_add(&lines->in, bytes, len);
    return !lines->in.failed;
}

bool jzc_lines_next(jzc_lines *lines, const char **out_line, size_t *out_len)
{
    const char *bytes = lines->in.bytes;
    if (lines->seen >= lines->in.len) {
        return false;
    }
    const char *newline = memchr(bytes + lines->seen, '\n', lines->in.len - lines->seen);
    if (newline == NULL) {
        lines->seen = lines->in.len;
        return false;
    }
    *out_line = bytes + lines->begin;
    *out_len = (size_t)(newline - *out_line);
    lines->begin = lines->seen = (size_t)(newline - bytes) + 1;
    return true;
}

void jzc_lines_free(jzc_lines *lines)
{
    jzc_text_free(&lines->in);
    *lines = (jzc_lines){0};
}
