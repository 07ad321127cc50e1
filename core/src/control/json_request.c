/* Reading requests: one pass over a copy of the line, in which texts are unescaped where they are.
 * Values that no request has (objects, arrays of other things than texts) are read and forgotten:
 * a newer client may send them. */
#include "control/json.h"

#include <string.h>

enum { DEPTH_MAX = 4 };

/* Where the reading is. `wrong` is set at the first thing that is wrong; then all readers return
 * false. */
typedef struct reader {
    jzi_request *request;
    char *at;
    char *end; /* a zero stands there */
    const char *wrong;
} reader;

static bool json_request_fail(reader *in, const char *why)
{
    if (in->wrong == NULL) {
        in->wrong = why;
    }
    return false;
}

static void skip_blanks(reader *in)
{
    while (*in->at == ' ' || *in->at == '\t' || *in->at == '\r' || *in->at == '\n') {
        in->at++;
    }
}

static bool json_request_take(reader *in, char c)
{
    skip_blanks(in);
    if (*in->at != c) {
        return false;
    }
    in->at++;
    return true;
}

/* Texts. */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool read_hex(reader *in, uint32_t *out)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(*in->at);
        if (digit < 0) {
            return json_request_fail(in, "After \\u in a text come four hexadecimal digits.");
        }
        value = value << 4 | (uint32_t)digit;
        in->at++;
    }
    *out = value;
    return true;
}

/* After "\u". What it stands for goes to *to, in UTF-8: never longer than it was. */
static bool read_unicode(reader *in, char **to)
{
    uint32_t code = 0;
    if (!read_hex(in, &code)) {
        return false;
    }
    if (code >= 0xD800 && code <= 0xDBFF && in->at[0] == '\\' && in->at[1] == 'u') {
        uint32_t low = 0;
        in->at += 2;
        if (!read_hex(in, &low)) {
            return false;
        }
        code = low >= 0xDC00 && low <= 0xDFFF ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                                              : 0xD800;
    }
    if (code == 0 || (code >= 0xD800 && code <= 0xDFFF)) {
        return json_request_fail(in, "A text has \\u0000 or half a surrogate pair in it.");
    }
    unsigned char *out = (unsigned char *)*to;
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = len; i-- > 1; code >>= 6) {
        out[i] = (unsigned char)(0x80u | (code & 0x3Fu));
    }
    out[0] = (unsigned char)(marks[len] | code);
    *to += len;
    return true;
}

static bool read_escape(reader *in, char **to)
{
    static const char letters[] = "\"\"\\\\//b\bf\fn\nr\rt\t"; /* each followed by what it means */
    char c = *in->at++;
    if (c == 'u') {
        return read_unicode(in, to);
    }
    for (size_t i = 0; i + 1 < sizeof letters; i += 2) {
        if (letters[i] == c) {
            *(*to)++ = letters[i + 1];
            return true;
        }
    }
    in->at--; /* that byte may be the end */
    return json_request_fail(in, "A text has a \\ with a letter after it that means nothing.");
}

static bool read_text(reader *in, const char **out)
{
    if (!json_request_take(in, '"')) {
        return json_request_fail(in, "There is no text where one belongs.");
    }
    char *to = in->at;
    *out = to;
    while (*in->at != '"') {
        if ((unsigned char)*in->at < 0x20) {
            return json_request_fail(in, in->at == in->end
                                             ? "A text does not end."
                                             : "A text has a control character in it.");
        }
        if (*in->at != '\\') {
            *to++ = *in->at++;
            continue;
        }
        in->at++;
        if (!read_escape(in, &to)) {
            return false;
        }
    }
    in->at++;
    *to = '\0';
    return true;
}

/* Numbers: 'n' for a whole one that fits, else 'r', whose value no operation asks for. */
static bool read_number(reader *in, jzi_request_value *value)
{
    const char *first = in->at;
    bool whole = *in->at != '-';
    in->at += !whole;
    const char *digits = in->at;
    uint64_t sum = 0;
    while (*in->at >= '0' && *in->at <= '9') {
        uint64_t digit = (uint64_t)(*in->at++ - '0');
        whole = whole && sum <= (UINT64_MAX - digit) / 10;
        sum = sum * 10 + digit;
    }
    bool good = in->at > digits && !(*digits == '0' && in->at > digits + 1);
    if (*in->at == '.') {
        whole = false;
        const char *after = ++in->at;
        while (*in->at >= '0' && *in->at <= '9') {
            in->at++;
        }
        good = good && in->at > after;
    }
    if (good && (*in->at == 'e' || *in->at == 'E')) {
        whole = false;
        in->at++;
        in->at += *in->at == '+' || *in->at == '-';
        const char *power = in->at;
        while (*in->at >= '0' && *in->at <= '9') {
            in->at++;
        }
        good = in->at > power;
    }
    if (!good) {
        return json_request_fail(in, in->at == first ? "There is no value where one belongs."
                                                     : "A number is not written as JSON has it.");
    }
    value->type = whole ? 'n' : 'r';
    value->number = whole ? sum : 0;
    return true;
}

static bool read_word(reader *in, jzi_request_value *value)
{
    static const struct {
        const char *word;
        char type;
        uint64_t number;
    } words[] = {{"true", 'b', 1}, {"false", 'b', 0}, {"null", '0', 0}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t len = strlen(words[i].word);
        if (strncmp(in->at, words[i].word, len) == 0) {
            in->at += len;
            value->type = words[i].type;
            value->number = words[i].number;
            return true;
        }
    }
    return read_number(in, value);
}

static bool read_value(reader *in, jzi_request_value *value, int depth);

/* After '['. Of texts only: kept. */
static bool read_array(reader *in, jzi_request_value *value, int depth)
{
    jzi_request *request = in->request;
    uint32_t first = request->list_count;
    bool texts = true;
    if (!json_request_take(in, ']')) {
        do {
            jzi_request_value element = {0};
            if (!read_value(in, &element, depth + 1)) {
                return false;
            }
            texts = texts && element.type == 's';
            if (texts && depth == 1) {
                if (request->list_count == JZI_REQUEST_LIST) {
                    return json_request_fail(in, "A list has more than 64 texts.");
                }
                request->list[request->list_count++] = element.text;
            }
        } while (json_request_take(in, ','));
        if (!json_request_take(in, ']')) {
            return json_request_fail(in, "A list does not end with ].");
        }
    }
    value->type = texts && depth == 1 ? '[' : 'x';
    value->first = first;
    value->count = texts ? request->list_count - first : 0;
    return true;
}

/* After '{', inside of a request. */
static bool skip_object(reader *in, jzi_request_value *value, int depth)
{
    value->type = 'x';
    if (json_request_take(in, '}')) {
        return true;
    }
    do {
        const char *name = NULL;
        jzi_request_value member = {0};
        if (!read_text(in, &name)) {
            return false;
        }
        if (!json_request_take(in, ':')) {
            return json_request_fail(in, "After the name of a member there is no colon.");
        }
        if (!read_value(in, &member, depth + 1)) {
            return false;
        }
    } while (json_request_take(in, ','));
    return json_request_take(in, '}') || json_request_fail(in, "An object does not end with }.");
}

/* depth: of what this value is in; the request is 1. */
static bool read_value(reader *in, jzi_request_value *value, int depth)
{
    skip_blanks(in);
    if (*in->at == '"') {
        value->type = 's';
        return read_text(in, &value->text);
    }
    if (*in->at != '[' && *in->at != '{') {
        return read_word(in, value);
    }
    if (depth >= DEPTH_MAX) {
        return json_request_fail(in, "The request is nested more than 4 deep.");
    }
    return *in->at++ == '[' ? read_array(in, value, depth) : skip_object(in, value, depth);
}

static jzi_request_value *json_request_find(const jzi_request *request, const char *name)
{
    for (uint32_t i = 0; i < request->count; i++) {
        if (strcmp(request->values[i].name, name) == 0) {
            return (jzi_request_value *)&request->values[i];
        }
    }
    return NULL;
}

static bool read_member(reader *in)
{
    jzi_request *request = in->request;
    jzi_request_value value = {0};
    if (!read_text(in, &value.name)) {
        return false;
    }
    if (!json_request_take(in, ':')) {
        return json_request_fail(in, "After the name of a member there is no colon.");
    }
    if (!read_value(in, &value, 1)) {
        return false;
    }
    if (json_request_find(request, value.name) != NULL) {
        return json_request_fail(in, "A member is there twice.");
    }
    if (request->count == JZI_REQUEST_MEMBERS) {
        return json_request_fail(in, "The request has more than 32 members.");
    }
    request->values[request->count++] = value;
    if (strcmp(value.name, "id") == 0 && value.type == 'n') {
        request->id = value.number;
    }
    return true;
}

static bool read_object(reader *in)
{
    if (!json_request_take(in, '{')) {
        return json_request_fail(in, "A request is an object: {\"id\":1,\"op\":\"program\"}.");
    }
    if (!json_request_take(in, '}')) {
        do {
            if (!read_member(in)) {
                return false;
            }
        } while (json_request_take(in, ','));
        if (!json_request_take(in, '}')) {
            return json_request_fail(in, "The request does not end with }.");
        }
    }
    skip_blanks(in);
    return in->at == in->end || json_request_fail(in, "Something follows the request on its line.");
}

const char *jzi_request_read(jzi_request *request, const char *line, size_t len)
{
    request->id = 0;
    request->op = request->wrong = NULL;
    request->count = request->list_count = 0;
    if (len > JZI_REQUEST_MAX) {
        return "A request has at most 4,096 bytes.";
    }
    memcpy(request->bytes, line, len);
    request->bytes[len] = '\0';
    reader in = {.request = request, .at = request->bytes, .end = request->bytes + len};
    if (!jzi_json_is_utf8(line, len)) {
        /* The id may be readable even so; what is wrong is said first. */
        in.wrong = "The request is not UTF-8.";
    }
    if (!read_object(&in) || in.wrong != NULL) {
        return in.wrong;
    }
    const jzi_request_value *id = json_request_find(request, "id");
    if (id != NULL && id->type != 'n') {
        return "The id is a whole number.";
    }
    request->op = jzi_request_text(request, "op");
    if (request->op == NULL) {
        return "The request has no op: {\"id\":1,\"op\":\"program\"}.";
    }
    return NULL;
}

/* Members. */

/* One that is there and not null. */
static const jzi_request_value *given(const jzi_request *request, const char *name)
{
    const jzi_request_value *value = json_request_find(request, name);
    return value == NULL || value->type == '0' ? NULL : value;
}

static void is_wrong(jzi_request *request, const char *name)
{
    if (request->wrong == NULL) {
        request->wrong = name;
    }
}

const char *jzi_request_text(jzi_request *request, const char *name)
{
    const jzi_request_value *value = given(request, name);
    if (value != NULL && value->type != 's') {
        is_wrong(request, name);
        return NULL;
    }
    return value == NULL ? NULL : value->text;
}

uint64_t jzi_request_u64(jzi_request *request, const char *name, uint64_t otherwise, uint64_t max)
{
    const jzi_request_value *value = given(request, name);
    if (value == NULL) {
        return otherwise;
    }
    if (value->type != 'n' || value->number > max) {
        is_wrong(request, name);
        return otherwise;
    }
    return value->number;
}

bool jzi_request_bool(jzi_request *request, const char *name, bool otherwise)
{
    const jzi_request_value *value = given(request, name);
    if (value == NULL) {
        return otherwise;
    }
    if (value->type != 'b') {
        is_wrong(request, name);
        return otherwise;
    }
    return value->number != 0;
}

bool jzi_request_has(const jzi_request *request, const char *name)
{
    return given(request, name) != NULL;
}

size_t jzi_request_list(jzi_request *request, const char *name, const char *const **out)
{
    const jzi_request_value *value = given(request, name);
    *out = NULL;
    if (value == NULL) {
        return 0;
    }
    if (value->type == 's') {
        *out = (const char *const *)&value->text;
        return 1;
    }
    if (value->type != '[') {
        is_wrong(request, name);
        return 0;
    }
    *out = request->list + value->first;
    return value->count;
}
