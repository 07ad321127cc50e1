/* What goes back to a browser. */
#include "answer.h"

#include "json.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

jzc_answer *jzc_answer_new(unsigned status, const char *bytes, size_t len)
{
    jzc_answer *answer = malloc(sizeof *answer + len + 1);
    if (answer == NULL) {
        return NULL;
    }
    answer->len = len;
    answer->held = NULL;
    answer->status = status;
    if (len > 0) {
        memcpy(answer->bytes, bytes, len);
    }
    answer->bytes[len] = '\0';
    return answer;
}

static jzc_answer *answer_of_text(unsigned status, jzc_text *text)
{
    jzc_answer *answer = text->failed ? NULL : jzc_answer_new(status, text->bytes, text->len);
    jzc_text_free(text);
    return answer;
}

static void add_error(jzc_text *out, const char *error, const char *text)
{
    jzc_text_str(out, "{\"ok\":false,\"error\":");
    jzc_text_quote(out, error, strlen(error));
    jzc_text_str(out, ",\"text\":");
    jzc_text_quote(out, text, strlen(text));
}

jzc_answer *jzc_answer_error(unsigned status, const char *error, const char *text)
{
    jzc_text out = {0};
    add_error(&out, error, text);
    jzc_text_str(&out, "}");
    return answer_of_text(status, &out);
}

jzc_answer *jzc_answer_gone(const char *text, const char *end, uint64_t since_ms)
{
    jzc_text out = {0};
    add_error(&out, "NOT_REACHABLE", text);
    jzc_text_str(&out, ",\"since_ms\":");
    jzc_text_u64(&out, since_ms);
    jzc_text_str(&out, ",\"end\":");
    if (end == NULL) {
        jzc_text_str(&out, "null");
    } else {
        jzc_text_quote(&out, end, strlen(end));
    }
    jzc_text_str(&out, "}");
    return answer_of_text(503, &out);
}

/* What an error of the program is called in HTTP. */
static unsigned status_of(const char *error)
{
    static const struct {
        const char *error;
        unsigned status;
    } table[] = {
        {"BAD_REQUEST", 400}, {"TOO_LONG", 414},     {"UNKNOWN_OP", 501}, {"NO_SUCH_ACTOR", 404},
        {"AMBIGUOUS", 409},   {"NOT_ALLOWED", 403},  {"BUSY", 503},       {"NOT_ANSWERING", 504},
        {"NO_MEMORY", 503},   {"MAILBOX_FULL", 409},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(error, table[i].error) == 0) {
            return table[i].status;
        }
    }
    return 409;
}

static bool begins_with(const char *text, size_t len, const char *prefix)
{
    size_t prefix_len = strlen(prefix);
    return len >= prefix_len && memcmp(text, prefix, prefix_len) == 0;
}

/* What went well says so at once, and can be long: it is not parsed. */
static unsigned line_status(const char *line, size_t len, const char *rest, size_t rest_len)
{
    if (begins_with(rest, rest_len, "\"ok\":true")) {
        return 200;
    }
    json_t *object = jzc_json_read(line, len);
    const char *error = json_string_value(json_object_get(object, "error"));
    unsigned status = 502;
    if (json_is_true(json_object_get(object, "ok"))) {
        status = 200;
    } else if (error != NULL) {
        status = status_of(error);
    }
    json_decref(object);
    return status;
}

jzc_answer *jzc_answer_of_line(const char *line, size_t len, uint64_t *out_id)
{
    static const char head[] = "{\"id\":";
    const char *end = line + len;
    *out_id = 0;
    if (!begins_with(line, len, head)) {
        return NULL;
    }
    const char *id = line + sizeof head - 1;
    const char *rest = id;
    while (rest < end && *rest >= '0' && *rest <= '9') {
        rest++;
    }
    if (!jzc_digits_u64(id, (size_t)(rest - id), out_id)) {
        return NULL;
    }
    while (rest < end && (*rest == ',' || *rest == ' ')) {
        rest++;
    }
    /* The rest, with the bracket that was before the id. */
    size_t rest_len = (size_t)(end - rest);
    jzc_answer *answer = malloc(sizeof *answer + rest_len + 2);
    if (answer == NULL) {
        return NULL;
    }
    answer->len = rest_len + 1;
    answer->held = NULL;
    answer->status = line_status(line, len, rest, rest_len);
    answer->bytes[0] = '{';
    memcpy(answer->bytes + 1, rest, rest_len);
    answer->bytes[answer->len] = '\0';
    return answer;
}

jzc_answer *jzc_answer_text_of(jzc_answer *answer)
{
    json_t *object = answer->status == 200 ? jzc_json_read(answer->bytes, answer->len) : NULL;
    const json_t *text = json_object_get(object, "text");
    if (json_is_string(text)) {
        jzc_answer_drop(answer);
        answer = jzc_answer_new(200, json_string_value(text), json_string_length(text));
    }
    json_decref(object);
    return answer;
}

void jzc_answer_drop(void *answer)
{
    free(answer);
}
