/* Bytes in, lines out. */
#ifndef JZC_LINES_H
#define JZC_LINES_H

#include "text.h"

/* A program answers with at most 4 MiB ahead of its reader; this is more than any line it has. */
#define JZC_LINE_MAX ((size_t)16 << 20)

typedef struct jzc_lines {
    jzc_text in;
    size_t begin; /* of the line that comes next */
    size_t seen;  /* up to here there is no newline behind `begin` */
} jzc_lines;

/* False: no memory, or a line that is too long. */
bool jzc_lines_feed(jzc_lines *lines, const char *bytes, size_t len);
/* The next line without its newline; borrowed until the next feed. False: there is none yet. */
bool jzc_lines_next(jzc_lines *lines, const char **out_line, size_t *out_len);
void jzc_lines_free(jzc_lines *lines);

#endif
