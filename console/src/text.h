/* A text that grows: what is built to be sent. Out of memory it turns `failed` and takes no more,
 * so that one look at the end is enough. */
#ifndef JZC_TEXT_H
#define JZC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct jzc_text {
    char *bytes; /* owned; ended by a 0 that len does not count; NULL: nothing yet */
    size_t len;
    size_t cap;
    bool failed;
} jzc_text;

void jzc_text_add(jzc_text *text, const char *bytes, size_t len);
void jzc_text_str(jzc_text *text, const char *string);
void jzc_text_u64(jzc_text *text, uint64_t value);
/* As a string of JSON, with its quotes. The bytes must be UTF-8. */
void jzc_text_quote(jzc_text *text, const char *bytes, size_t len);
/* Takes the first bytes away. */
void jzc_text_shift(jzc_text *text, size_t len);
/* Leaves a zeroed text behind, which is one that can be used. */
void jzc_text_free(jzc_text *text);

#endif
