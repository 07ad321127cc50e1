/* JSON as the control plane needs it: answers are written member by member, requests are read as
 * one flat object. Nothing else of JSON is here. */
#ifndef JZI_JSON_H
#define JZI_JSON_H

#include <jzx/types.h>

#include <stdbool.h>

/* A text that grows. When there is no memory it remembers that and takes no more. */
typedef struct jzi_json {
    jzx_allocator alloc;
    char *bytes;
    size_t len;
    size_t cap;
    bool comma;  /* a member or element came before */
    bool failed; /* no memory: what is there is not whole */
} jzi_json;
void jzi_json_init(jzi_json *json, const jzx_allocator *alloc);
void jzi_json_deinit(jzi_json *json);
void jzi_json_clear(jzi_json *json); /* keeps the memory */

/* Members; `name` NULL: an element of an array. */
void jzi_json_open(jzi_json *json, const char *name, char bracket);     /* '{' or '[' */
void jzi_json_close(jzi_json *json, char bracket);                      /* '}' or ']' */
void jzi_json_text(jzi_json *json, const char *name, const char *text); /* NULL: null. Any bytes:
    what is not UTF-8 becomes U+FFFD */
void jzi_json_u64(jzi_json *json, const char *name, uint64_t value);
void jzi_json_i64(jzi_json *json, const char *name, int64_t value);
void jzi_json_bool(jzi_json *json, const char *name, bool value);
void jzi_json_real(jzi_json *json, const char *name, double value); /* not finite: null */
void jzi_json_null(jzi_json *json, const char *name);
void jzi_json_actor(jzi_json *json, const char *name, jzx_actor_id id);       /* JZX_NOBODY: null */
void jzi_json_pointer(jzi_json *json, const char *name, const void *pointer); /* hexadecimal */
/* Bytes as they are: the end of a line. */
void jzi_json_raw(jzi_json *json, const char *bytes, size_t len);
bool jzi_json_is_utf8(const char *bytes, size_t len);

enum { JZI_REQUEST_MAX = 4096, JZI_REQUEST_MEMBERS = 32, JZI_REQUEST_LIST = 64 };

/* A value of a request. Texts are unescaped in place, and end with a zero. */
typedef struct jzi_request_value {
    const char *name;
    char type; /* 's' text, 'n' whole number, 'r' other number, 'b' bool, '0' null, '[' texts */
    const char *text;
    uint64_t number; /* of 'n', 'b' */
    uint32_t first;  /* of '[': its texts in `list` */
    uint32_t count;
} jzi_request_value;

typedef struct jzi_request {
    uint64_t id;
    const char *op;
    const char *wrong; /* the first member that had another type than was asked for, or was out of
                          its range; NULL: none */
    uint32_t count;
    uint32_t list_count;
    jzi_request_value values[JZI_REQUEST_MEMBERS];
    const char *list[JZI_REQUEST_LIST];
    char bytes[JZI_REQUEST_MAX + 1];
} jzi_request;

/* Reads one line, without its newline. NULL, or a sentence that says what is wrong; then id is what
 * could be read of it, or 0. */
const char *jzi_request_read(jzi_request *request, const char *line, size_t len);
/* A member's value, or what it is when it is not there (also null). Of another type: `wrong` is
 * set, and the default returned. */
const char *jzi_request_text(jzi_request *request, const char *name); /* default NULL */
uint64_t jzi_request_u64(jzi_request *request, const char *name, uint64_t otherwise, uint64_t max);
bool jzi_request_bool(jzi_request *request, const char *name, bool otherwise);
bool jzi_request_has(const jzi_request *request, const char *name);
/* An array of texts, or one text. Returns how many there are. */
size_t jzi_request_list(jzi_request *request, const char *name, const char *const **out);

#endif
