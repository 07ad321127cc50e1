/* As much of JSON as the console reads: the members of one object, without building anything. What
 * browsers send is checked to the last byte; what the program answers is passed on as it is. */
#ifndef JZC_JSON_H
#define JZC_JSON_H

#include "text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum jzc_json_kind {
    JZC_JSON_STRING,
    JZC_JSON_NUMBER,
    JZC_JSON_WORD,  /* true, false, null */
    JZC_JSON_NESTED /* an object or an array; what is inside is not looked at */
} jzc_json_kind;

/* Borrowed from the text that is read. */
typedef struct jzc_json_member {
    const char *name; /* without its quotes; escapes are not resolved */
    size_t name_len;
    const char *value; /* as it is written, a string with its quotes */
    size_t value_len;
    jzc_json_kind kind;
} jzc_json_member;

/* Goes through the members of an object. */
typedef struct jzc_json_reader {
    const char *at;
    const char *end;
    bool begun;
    bool done;
    bool bad; /* this is no object, or something comes after it */
} jzc_json_reader;

jzc_json_reader jzc_json_read(const char *text, size_t len);
/* False after the last member, and when the text is bad. */
bool jzc_json_next(jzc_json_reader *reader, jzc_json_member *out);
bool jzc_json_is(const jzc_json_member *member, const char *name);
/* The same for the items of an array, which have no names. */
jzc_json_reader jzc_json_read_array(const char *text, size_t len);
bool jzc_json_item(jzc_json_reader *reader, jzc_json_member *out);

/* Digits only, and in range. */
bool jzc_json_u64(const char *digits, size_t len, uint64_t *out);
/* Adds what a string of JSON, given with its quotes, stands for. False: it is none. */
bool jzc_json_unquote(const char *value, size_t len, jzc_text *out);
bool jzc_utf8_ok(const char *bytes, size_t len);

#endif
