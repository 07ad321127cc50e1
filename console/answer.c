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

static bool string_is(const jzc_json_member *member, const char *text)
{
    size_t len = strlen(text);
    return member->value_len == len + 2 && memcmp(member->value + 1, text, len) == 0;
}

/* What an error of the program is called in HTTP. */
static unsigned status_of(const jzc_json_member *error)
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
        if (string_is(error, table[i].error)) {
            return table[i].status;
        }
    }
    return 409;
}

/* Reads no further than to what says how it went: answers can be long. */
static unsigned line_status(jzc_json_reader *reader)
{
    jzc_json_member member;
    while (jzc_json_next(reader, &member)) {
        if (jzc_json_is(&member, "ok") && member.value[0] == 't') {
            return 200;
        }
        if (jzc_json_is(&member, "error") && member.kind == JZC_JSON_STRING) {
            return status_of(&member);
        }
    }
    return 502;
}

jzc_answer *jzc_answer_of_line(const char *line, size_t len, uint64_t *out_id)
{
    jzc_json_reader reader = jzc_json_read(line, len);
    jzc_json_member id = {0};
    *out_id = 0;
    if (!jzc_json_next(&reader, &id) || !jzc_json_is(&id, "id") ||
        !jzc_json_u64(id.value, id.value_len, out_id)) {
        return NULL;
    }
    const char *rest = id.value + id.value_len;
    const char *end = line + len;
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
    answer->status = line_status(&reader);
    answer->bytes[0] = '{';
    memcpy(answer->bytes + 1, rest, rest_len);
    answer->bytes[answer->len] = '\0';
    return answer;
}

jzc_answer *jzc_answer_text_of(jzc_answer *answer)
{
    jzc_json_reader reader = jzc_json_read(answer->bytes, answer->len);
    jzc_json_member member;
    jzc_text text = {0};
    while (answer->status == 200 && jzc_json_next(&reader, &member)) {
        if (!jzc_json_is(&member, "text") || member.kind != JZC_JSON_STRING) {
            continue;
        }
        jzc_answer *found = NULL;
        if (jzc_json_unquote(member.value, member.value_len, &text)) {
            found = jzc_answer_new(200, text.bytes, text.len);
        }
        jzc_text_free(&text);
        jzc_answer_drop(answer);
        return found;
    }
    return answer;
}

void jzc_answer_drop(void *answer)
{
    free(answer);
}
