/* Members of an answer, which may be missing, null or of another type than the protocol says: then
 * it is as if they were 0, false or empty. Everything takes NULL for the object. */
#ifndef JZX_CMD_FIELD_H
#define JZX_CMD_FIELD_H

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

/* "": none. Borrowed from the object. Print it by text.h: it may hold anything but a 0. */
static inline const char *field_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text == NULL ? "" : text;
}

static inline bool field_has(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return value != NULL && !json_is_null(value);
}

static inline double field_real(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

/* Negative numbers are 0: nothing that the protocol counts is one. */
static inline uint64_t field_u64(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (json_is_integer(value)) {
        json_int_t number = json_integer_value(value);
        return number < 0 ? 0 : (uint64_t)number;
    }
    double number = json_number_value(value);
    return number > 0.0 && number < 9e18 ? (uint64_t)number : 0;
}

static inline int64_t field_i64(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static inline bool field_bool(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

/* Borrowed; NULL, which json_array_foreach() takes for an empty one: it is no array. */
static inline json_t *field_list(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    return json_is_array(value) ? value : NULL;
}

static inline json_t *field_object(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    return json_is_object(value) ? value : NULL;
}

#endif
