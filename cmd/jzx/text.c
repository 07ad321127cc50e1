#include "text.h"

#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

static bool unicode;

void text_init(void)
{
    unicode = setlocale(LC_CTYPE, "") != NULL && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

bool text_unicode(void)
{
    return unicode;
}

void text_use_ascii(void)
{
    unicode = false;
}

/* The character at `at`, which is not its end; *out_len is how many bytes it takes. UINT32_MAX:
 * none, of one byte. Nothing overlong, no surrogates. */
static uint32_t decode(const char *at, size_t *out_len)
{
    const uint8_t *byte = (const uint8_t *)at;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    *out_len = 1;
    if (byte[0] < 0x80) {
        return byte[0];
    }
    size_t len = byte[0] < 0xc2 ? 0 : byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;
    if (len == 0 || byte[0] > 0xf4) {
        return UINT32_MAX;
    }
    uint32_t c = byte[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((byte[i] & 0xc0) != 0x80) {
            return UINT32_MAX;
        }
        c = c << 6 | (byte[i] & 0x3fu);
    }
    if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
        return UINT32_MAX;
    }
    *out_len = len;
    return c;
}

/* Controls of terminals, of line breaks and of the direction of writing. */
static bool is_harmful(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb) || c > 0x10ffff;
}

bool text_is_harmful(const void *at, size_t len, unsigned *out_code)
{
    char one[5] = "";
    size_t taken;
    memcpy(one, at, len < 4 ? len : 4);
    uint32_t c = decode(one, &taken);
    *out_code = c == UINT32_MAX ? *(const uint8_t *)at : c;
    return is_harmful(c);
}

/* How the next character is shown: its bytes, or a '?'. Returns its columns. */
static size_t next_char(const char **text, const char **out_bytes, size_t *out_len)
{
    size_t len;
    uint32_t c = decode(*text, &len);
    *out_bytes = *text;
    *out_len = len;
    *text += len;
    int columns = c < 0x7f ? 1 : unicode ? wcwidth((wchar_t)c) : -1;
    if (is_harmful(c) || columns < 0) {
        *out_bytes = "?";
        *out_len = 1;
        return 1;
    }
    return (size_t)columns;
}

size_t text_width(const char *text)
{
    size_t columns = 0;
    while (*text != '\0') {
        const char *bytes;
        size_t len;
        columns += next_char(&text, &bytes, &len);
    }
    return columns;
}

/* Where to stop so that the ellipsis fits as well. */
static const char *ellipsis(size_t columns, size_t *out_width)
{
    const char *dots = unicode ? "\u2026" : "...";
    *out_width = unicode ? 1 : 3;
    if (*out_width > columns) {
        *out_width = columns;
        return &"..."[3 - columns];
    }
    return dots;
}

size_t text_fit(char *out, size_t size, const char *text, size_t columns)
{
    size_t dots_width;
    const char *dots = ellipsis(columns, &dots_width);
    size_t dots_len = strlen(dots);
    size_t used = 0, width = 0;         /* what is written */
    size_t cut_used = 0, cut_width = 0; /* where the ellipsis would go */
    if (size <= dots_len) {
        if (size > 0) {
            *out = '\0';
        }
        return 0;
    }
    while (*text != '\0') {
        const char *bytes;
        size_t len;
        size_t wide = next_char(&text, &bytes, &len);
        if (used + len >= size || width + wide > columns) {
            memcpy(out + cut_used, dots, dots_len + 1);
            return cut_width + dots_width;
        }
        memcpy(out + used, bytes, len);
        used += len;
        width += wide;
        if (used + dots_len < size && width + dots_width <= columns) {
            cut_used = used;
            cut_width = width;
        }
    }
    out[used] = '\0';
    return width;
}

void text_put(FILE *out, const char *text)
{
    while (*text != '\0') {
        const char *bytes;
        size_t len;
        (void)next_char(&text, &bytes, &len);
        (void)fwrite(bytes, 1, len, out);
    }
}

size_t text_put_part(FILE *out, const char **text, size_t columns)
{
    size_t used = 0;
    while (**text != '\0') {
        const char *rest = *text;
        const char *bytes;
        size_t len;
        size_t wide = next_char(&rest, &bytes, &len);
        if (used > 0 && used + wide > columns) {
            break;
        }
        (void)fwrite(bytes, 1, len, out);
        used += wide;
        *text = rest;
    }
    return used;
}

/* What is harmful but for `keep`, which are characters of ASCII, by `format` and its number. */
static void put_numbered(FILE *out, const char *text, const char *keep, const char *byte_format,
                         const char *format)
{
    while (*text != '\0') {
        size_t len;
        uint32_t c = decode(text, &len);
        bool kept = c < 0x80 && strchr(keep, (int)c) != NULL;
        if (!is_harmful(c) || kept) {
            (void)fwrite(text, 1, len, out);
        } else {
            uint32_t number = c == UINT32_MAX ? *(const uint8_t *)text : c;
            fprintf(out, number < 0x100 ? byte_format : format, (unsigned)number);
        }
        text += len;
    }
}

void text_put_json(FILE *out, const char *json)
{
    put_numbered(out, json, "", "\\u%04x", "\\u%04x");
}

void text_put_metrics(FILE *out, const char *metrics)
{
    put_numbered(out, metrics, "\n\t", "\\\\x%02x", "\\\\u%04x");
}

void text_cell(FILE *out, const char *text, size_t columns)
{
    char cell[1024];
    size_t width = text_fit(cell, sizeof cell, text, columns);
    fputs(cell, out);
    for (; width < columns; width++) {
        fputc(' ', out);
    }
}

size_t text_columns(void)
{
    struct winsize window;
    if (isatty(STDOUT_FILENO) != 1) {
        return TEXT_ALL;
    }
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0) {
        return window.ws_col;
    }
    const char *columns = getenv("COLUMNS");
    if (columns != NULL && atoi(columns) > 0) {
        return (size_t)atoi(columns);
    }
    return 80;
}
