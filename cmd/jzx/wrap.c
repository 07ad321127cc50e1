#include "wrap.h"

#include "text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void wrap_begin(wrap *w, FILE *out, size_t indent)
{
    size_t columns = text_columns();
    /* In a very narrow terminal there is no room to indent. */
    *w = (wrap){.out = out,
                .columns = columns,
                .indent = columns == TEXT_ALL || indent + 20 <= columns ? indent : 0,
                .fresh = true};
}

static void next_line(wrap *w)
{
    fprintf(w->out, "\n%*s", (int)w->indent, "");
    w->column = w->indent;
    w->fresh = true;
}

static size_t left(const wrap *w)
{
    return w->columns == TEXT_ALL ? TEXT_ALL : w->columns > w->column ? w->columns - w->column : 0;
}

static void put_piece(wrap *w, ui_colour colour, const char *text)
{
    if (*text == '\0') {
        return;
    }
    size_t gap = w->fresh ? 0 : 1;
    size_t width = text_width(text);
    if (gap > 0 && (left(w) < gap || width > left(w) - gap)) {
        next_line(w);
        gap = 0;
        text += strspn(text, " "); /* the blanks kept the text apart from what was before it */
    }
    fprintf(w->out, "%*s%s", (int)gap, "", colour == UI_PLAIN ? "" : ui_colour_on(colour));
    w->column += gap;
    for (;;) {
        w->column += text_put_part(w->out, &text, left(w));
        w->fresh = false;
        if (*text == '\0') {
            break;
        }
        next_line(w);
    }
    fputs(colour == UI_PLAIN ? "" : ui_colour_on(UI_PLAIN), w->out);
}

void wrap_put(wrap *w, ui_colour colour, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len >= 0) {
        put_piece(w, colour, text);
        free(text);
    }
}

void wrap_cell(wrap *w, ui_colour colour, size_t columns, const char *text)
{
    size_t width = text_width(text);
    put_piece(w, colour, *text == '\0' && columns > 0 ? " " : text);
    width = *text == '\0' ? 1 : width;
    /* Blanks at the end of a line would be none. */
    for (; width < columns && left(w) > 0; width++) {
        fputc(' ', w->out);
        w->column++;
    }
}

void wrap_words(wrap *w, ui_colour colour, const char *text)
{
    while (*text != '\0') {
        text += strspn(text, " ");
        size_t len = strcspn(text, " ");
        if (len > 0) {
            wrap_put(w, colour, "%.*s", (int)len, text);
        }
        text += len;
    }
}

void wrap_actor(wrap *w, ui_colour colour, const char *word, const char *name, const char *id)
{
    const char *blank = *word == '\0' ? "" : " ";
    if (*name == '\0') {
        wrap_put(w, colour, "%s%s%s", word, blank, *id == '\0' ? "?" : id);
    } else {
        wrap_put(w, colour, "%s%s%s (%s)", word, blank, name, id);
    }
}

void wrap_end(wrap *w)
{
    fputc('\n', w->out);
    w->column = 0;
    w->fresh = true;
}
