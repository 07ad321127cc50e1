/* Texts of others, made harmless for terminals and measured in columns. */
#ifndef JZX_CMD_TEXT_H
#define JZX_CMD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TEXT_ALL ((size_t)-1) /* as many columns as it takes */

/* Reads the locale; once, first. */
void text_init(void);
/* Whether the locale has Unicode; if not, other characters than ASCII become '?'. */
bool text_unicode(void);
/* --ascii: as if it had not. */
void text_use_ascii(void);

/* Copies what fits into `columns` and `size`, with a 0, and returns how many columns that takes.
 * Control characters and what changes the direction of writing become '?'; what is cut ends with an
 * ellipsis. */
size_t text_fit(char *out, size_t size, const char *text, size_t columns);

/* Whether terminals would obey the character at `at`, or it is none; *out_code is its number. At
 * least `len` bytes are there. */
bool text_is_harmful(const void *at, size_t len, unsigned *out_code);

/* How many columns the whole takes, as text_fit() would write it. */
size_t text_width(const char *text);

/* Writes the text, harmless, of any length. */
void text_put(FILE *out, const char *text);
/* The same up to so many columns, but at least one character; returns the columns and moves *text
 * to what is left. */
size_t text_put_part(FILE *out, const char **text, size_t columns);

/* Text that other programs read as well: what would be harmful is written by its number, in a way
 * that the reader takes for part of a string, and everything else as it is. */
void text_put_json(FILE *out, const char *json);
/* Lines of Prometheus' format, whose strings know no numbers: there it is "\\x1b" or "\\u202e", the
 * text of a backslash and what follows. */
void text_put_metrics(FILE *out, const char *metrics);
/* Into a cell of that many columns: cut and padded with blanks. */
void text_cell(FILE *out, const char *text, size_t columns);

/* The columns of the terminal that stdout is; TEXT_ALL: it is none. */
size_t text_columns(void);

#endif
