/* What the console reads with jansson: lines of the program, and bodies of browsers. An answer is
 * passed on as the program wrote it, and parsed only where the console needs something of it. */
#ifndef JZC_JSON_H
#define JZC_JSON_H

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An object, for json_decref(). NULL: the text is something else, or there is no memory. */
json_t *jzc_json_read(const char *text, size_t len);
/* A member that is a whole number from 0; false, and *out as it was, otherwise. */
bool jzc_json_number(const json_t *object, const char *name, uint64_t *out);

/* Digits only, and in range. */
bool jzc_digits_u64(const char *digits, size_t len, uint64_t *out);
bool jzc_utf8_ok(const char *bytes, size_t len);

#endif
