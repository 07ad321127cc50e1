/* Lines for people that may be longer than the terminal is wide. They are put together of pieces:
 * one that does not fit goes to the next line, indented, and one that is longer than a line is
 * broken. Nothing is left out. Where stdout is no terminal a line stays a line, however long. */
#ifndef JZX_CMD_WRAP_H
#define JZX_CMD_WRAP_H

#include "ui.h"

typedef struct wrap {
    FILE *out;
    size_t columns; /* of the terminal; TEXT_ALL: as many as it takes */
    size_t indent;  /* of lines after the first */
    size_t column;
    bool fresh; /* nothing stands on this line yet */
} wrap;

void wrap_begin(wrap *w, FILE *out, size_t indent);
/* One piece, after a blank if something stands before it. Harmless for terminals. */
void wrap_put(wrap *w, ui_colour colour, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A piece that takes at least so many columns, and blanks for the rest. */
void wrap_cell(wrap *w, ui_colour colour, size_t columns, const char *text);
/* The words of a text, each a piece. */
void wrap_words(wrap *w, ui_colour colour, const char *text);
/* "WORD worker-1 (100000003)", or the id alone, as one piece. */
void wrap_actor(wrap *w, ui_colour colour, const char *word, const char *name, const char *id);
void wrap_end(wrap *w);

#endif
