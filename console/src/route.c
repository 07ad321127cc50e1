/* What can be asked at which path. */
#include "route.h"

#include "json.h"

#include <doctor.h>

#include <string.h>

static const jzc_route routes[] = {
    {"/api/program", "program", JZC_ROUTE_ASK, false, {{NULL, JZC_PARAM_NONE}}},
    {"/api/actors",
     "actors",
     JZC_ROUTE_ASK,
     false,
     {{"sort", JZC_PARAM_TEXT},
      {"limit", JZC_PARAM_NUMBER},
      {"offset", JZC_PARAM_NUMBER},
      {"reverse", JZC_PARAM_SWITCH},
      {"filter", JZC_PARAM_TEXT},
      {"state", JZC_PARAM_TEXT},
      {"dispatcher", JZC_PARAM_TEXT},
      {"under", JZC_PARAM_TEXT},
      {"depth", JZC_PARAM_NUMBER}}},
    {"/api/actor", "actor", JZC_ROUTE_ASK, true, {{"actor", JZC_PARAM_TEXT}}},
    {"/api/failures",
     "failures",
     JZC_ROUTE_ASK,
     false,
     {{"limit", JZC_PARAM_NUMBER}, {"actor", JZC_PARAM_TEXT}}},
    {"/api/dead",
     "dead",
     JZC_ROUTE_ASK,
     false,
     {{"after", JZC_PARAM_NUMBER}, {"limit", JZC_PARAM_NUMBER}}},
    {"/api/stuck", "stuck", JZC_ROUTE_STUCK, true, {{"limit_ms", JZC_PARAM_NUMBER}}},
    {"/api/doctor", "facts", JZC_ROUTE_DOCTOR, true, {{NULL, JZC_PARAM_NONE}}},
    {"/api/record",
     "record",
     JZC_ROUTE_ASK,
     true,
     {{"limit", JZC_PARAM_NUMBER}, {"text", JZC_PARAM_SWITCH}}},
    {"/api/trace",
     "trace",
     JZC_ROUTE_TRACE,
     true,
     {{"actors", JZC_PARAM_LIST},
      {"under", JZC_PARAM_TEXT},
      {"tag", JZC_PARAM_NUMBER},
      {"rate", JZC_PARAM_NUMBER},
      {"sends", JZC_PARAM_SWITCH},
      {"ms", JZC_PARAM_OURS},
      {"limit", JZC_PARAM_OURS}}},
    {"/api/history", "history", JZC_ROUTE_HISTORY, false, {{"after", JZC_PARAM_NUMBER}}},
    {"/api/farewell", "farewell", JZC_ROUTE_FAREWELL, false, {{NULL, JZC_PARAM_NONE}}},
    {"/metrics", "metrics", JZC_ROUTE_METRICS, true, {{NULL, JZC_PARAM_NONE}}},
    {"/healthz", NULL, JZC_ROUTE_HEALTH, false, {{NULL, JZC_PARAM_NONE}}},
    {"/api/stop", "stop", JZC_ROUTE_ACT, true, {{"actor", JZC_PARAM_TEXT}}},
    {"/api/kill", "kill", JZC_ROUTE_ACT, true, {{"actor", JZC_PARAM_TEXT}}},
    {"/api/restart", "restart", JZC_ROUTE_ACT, true, {{"actor", JZC_PARAM_TEXT}}},
    {"/api/send",
     "send",
     JZC_ROUTE_ACT,
     true,
     {{"actor", JZC_PARAM_TEXT},
      {"tag", JZC_PARAM_NUMBER},
      {"u64", JZC_PARAM_NUMBER},
      {"text", JZC_PARAM_TEXT}}},
};

const jzc_route *jzc_route_find(const char *path)
{
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (strcmp(routes[i].path, path) == 0) {
            return &routes[i];
        }
    }
    return NULL;
}

static jzc_refusal bad(const char *text)
{
    return (jzc_refusal){400, "BAD_REQUEST", text};
}

static int param_find(const jzc_route *route, const char *name, size_t len)
{
    for (int i = 0; i < JZC_PARAMS_MAX && route->params[i].kind != JZC_PARAM_NONE; i++) {
        const char *mine = route->params[i].name;
        if (strlen(mine) == len && memcmp(mine, name, len) == 0) {
            return i;
        }
    }
    return -1;
}

/* "a,b" as "a","b", behind what is there already. */
static void list_add(jzc_text *out, const char *value, size_t len)
{
    const char *end = value + len;
    while (value < end) {
        const char *comma = memchr(value, ',', (size_t)(end - value));
        const char *stop = comma == NULL ? end : comma;
        if (stop > value) {
            if (out->len > 0) {
                jzc_text_add(out, ",", 1);
            }
            jzc_text_quote(out, value, (size_t)(stop - value));
        }
        value = stop + 1;
    }
}

/* NULL: it is neither. */
static const char *switch_word(const char *value, size_t len)
{
    if ((len == 1 && *value == '1') || (len == 4 && memcmp(value, "true", 4) == 0)) {
        return "true";
    }
    if ((len == 1 && *value == '0') || (len == 5 && memcmp(value, "false", 5) == 0)) {
        return "false";
    }
    return NULL;
}

jzc_refusal jzc_asked_query(jzc_asked *asked, const char *name, size_t name_len, const char *value,
                            size_t value_len)
{
    int at = param_find(asked->route, name, name_len);
    if (at < 0) {
        return bad(
            "The query has a member that this path does not know; docs/reference/CONSOLE.md lists "
            "them.");
    }
    jzc_text *out = &asked->values[at];
    jzc_param_kind kind = asked->route->params[at].kind;
    if (out->len > 0 && kind != JZC_PARAM_LIST) {
        return bad("A member of the query is given twice.");
    }
    if (!jzc_utf8_ok(value, value_len)) {
        return bad("A member of the query is not UTF-8.");
    }
    uint64_t number = 0;
    if (kind == JZC_PARAM_NUMBER || kind == JZC_PARAM_OURS) {
        if (!jzc_digits_u64(value, value_len, &number)) {
            return bad("A member of the query has to be a number and is none.");
        }
        asked->ours[at] = number;
        jzc_text_u64(out, number);
    } else if (kind == JZC_PARAM_SWITCH) {
        const char *word = switch_word(value, value_len);
        if (word == NULL) {
            return bad("A member of the query has to be true or false (or 1 or 0).");
        }
        jzc_text_str(out, word);
    } else if (kind == JZC_PARAM_LIST) {
        list_add(out, value, value_len);
    } else {
        jzc_text_quote(out, value, value_len);
    }
    return (jzc_refusal){0};
}

static jzc_refusal asked_member(jzc_asked *asked, const char *name, const json_t *value)
{
    int at = param_find(asked->route, name, strlen(name));
    if (at < 0) {
        return bad(
            "The body has a member that this action does not know; docs/reference/CONSOLE.md lists "
            "them.");
    }
    jzc_text *out = &asked->values[at];
    if (asked->route->params[at].kind == JZC_PARAM_NUMBER) {
        if (!json_is_integer(value) || json_integer_value(value) < 0) {
            return bad("`tag` and `u64` are whole numbers from 0.");
        }
        jzc_text_u64(out, (uint64_t)json_integer_value(value));
    } else if (!json_is_string(value)) {
        return bad("`actor` and `text` are strings.");
    } else {
        jzc_text_quote(out, json_string_value(value), json_string_length(value));
    }
    return (jzc_refusal){0};
}

jzc_refusal jzc_asked_body(jzc_asked *asked, const char *body, size_t len)
{
    json_t *object = jzc_json_read(body, len);
    if (object == NULL) {
        return bad("The body has to be one object of JSON, such as {\"actor\":\"worker-1\"}, with "
                   "each member once.");
    }
    jzc_refusal refusal = {0};
    for (void *at = json_object_iter(object); at != NULL && refusal.status == 0;
         at = json_object_iter_next(object, at)) {
        refusal = asked_member(asked, json_object_iter_key(at), json_object_iter_value(at));
    }
    json_decref(object);
    if (refusal.status == 0 && asked->values[0].len == 0) {
        return bad("The body has to name an actor, as in {\"actor\":\"worker-1\"}.");
    }
    return refusal;
}

uint64_t jzc_asked_ours(const jzc_asked *asked, const char *name, uint64_t fallback)
{
    int at = param_find(asked->route, name, strlen(name));
    return at < 0 || asked->values[at].len == 0 ? fallback : asked->ours[at];
}

jzc_refusal jzc_asked_question(const jzc_asked *asked, jzc_text *out)
{
    if (asked->route->kind == JZC_ROUTE_DOCTOR) {
        jzc_text_str(out, JZD_QUESTION);
    } else {
        jzc_text_str(out, "\"op\":\"");
        jzc_text_str(out, asked->route->op);
        jzc_text_str(out, "\"");
    }
    for (int i = 0; i < JZC_PARAMS_MAX && asked->route->params[i].kind != JZC_PARAM_NONE; i++) {
        const jzc_param *param = &asked->route->params[i];
        const jzc_text *value = &asked->values[i];
        out->failed = out->failed || value->failed;
        if (value->len == 0 || param->kind == JZC_PARAM_OURS) {
            continue;
        }
        bool list = param->kind == JZC_PARAM_LIST;
        jzc_text_str(out, ",\"");
        jzc_text_str(out, param->name);
        jzc_text_str(out, list ? "\":[" : "\":");
        jzc_text_add(out, value->bytes, value->len);
        jzc_text_str(out, list ? "]" : "");
    }
    if (out->failed) {
        return (jzc_refusal){503, "NO_MEMORY", "The console is out of memory; try again."};
    }
    if (out->len > JZC_QUESTION_MAX) {
        return (jzc_refusal){414, "TOO_LONG", "A question has at most 4,000 bytes."};
    }
    return (jzc_refusal){0};
}

void jzc_asked_free(jzc_asked *asked)
{
    for (int i = 0; i < JZC_PARAMS_MAX; i++) {
        jzc_text_free(&asked->values[i]);
    }
}
