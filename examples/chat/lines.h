/* Bytes in, lines out. What is not a whole line yet, or cannot be handled yet, waits in here. */
#ifndef CHAT_LINES_H
#define CHAT_LINES_H

#include <stddef.h>

/* Zero is empty. */
typedef struct lines {
    char *bytes;
    size_t len;
    size_t at;    /* where the next line begins */
    int skipping; /* the end of a line that was too long has not come yet */
} lines;

/* 0: no memory, and nothing was added. */
int lines_add(lines *in, const char *bytes, size_t len);
/* The next line, with a zero instead of its newline; NULL: there is no whole one. One that is
 * longer than `longest` comes cut, with *len above that. Borrowed until the next lines_ call. */
char *lines_take(lines *in, size_t longest, size_t *len);
/* Puts back the line that was taken last: it comes again. */
void lines_put_back(lines *in, char *line, size_t len);
void lines_free(lines *in);

#endif
