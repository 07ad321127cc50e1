#include "json.h"

json_t *jzc_json_read(const char *text, size_t len)
{
    json_t *value = json_loadb(text, len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(value)) {
        json_decref(value);
        return NULL;
    }
    return value;
}

bool jzc_json_number(const json_t *object, const char *name, uint64_t *out)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *out = (uint64_t)json_integer_value(value);
    return true;
}

bool jzc_digits_u64(const char *digits, size_t len, uint64_t *out)
{
    uint64_t value = 0;
    if (len == 0 || len > 20) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        unsigned digit = (unsigned)(digits[i] - '0');
        if (digit > 9 || value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

bool jzc_utf8_ok(const char *bytes, size_t len)
{
    json_t *string = json_stringn(bytes, len); /* refuses what is not UTF-8 */
    json_decref(string);
    return string != NULL;
}
