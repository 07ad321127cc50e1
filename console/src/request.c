/* The HTTP side: what libmicrohttpd calls for each request. */
#include "http.h"

#include "guard.h"
#include "json.h"
#include "page.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEADERS_MS = 10000, BODY_MS = 10000, READ_MS = 30000 };

/* The headers that the guard wants to see. */
static enum MHD_Result note_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    jzc_guard_request *seen = cls;
    (void)kind;
    value = value == NULL ? "" : value;
    if (strcasecmp(name, "Host") == 0) {
        seen->host = value;
        seen->host_count++;
    } else if (strcasecmp(name, "Origin") == 0) {
        seen->origin = seen->origin == NULL ? value : ""; /* two are none of ours */
    } else if (strcasecmp(name, "Sec-Fetch-Site") == 0) {
        seen->site = value;
    } else if (strcasecmp(name, "X-Jzx-Token") == 0) {
        seen->token_header = value;
    } else if (strcasecmp(name, "Authorization") == 0) {
        seen->authorization = value;
    }
    return MHD_YES;
}

static jzc_refusal request_guard(const jzc_http *http, const jzc_request *request,
                                 const char *method, bool is_page)
{
    jzc_guard_request seen = {
        .acts = strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0,
        .open = is_page || (request->route != NULL && request->route->kind == JZC_ROUTE_HEALTH),
        .token_query =
            MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, "token"),
    };
    (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, note_header, &seen);
    jzc_refusal refusal = jzc_guard_check(&http->setup->place, http->setup->token, &seen);
    bool right_method = request->route != NULL && request->route->kind == JZC_ROUTE_ACT
                            ? strcmp(method, "POST") == 0
                            : !seen.acts;
    /* That a path is unknown, or a method is not for it, needs no token to be told on loopback. */
    bool about_token = refusal.status != 0 && strcmp(refusal.error, "BAD_TOKEN") == 0;
    if (refusal.status != 0 && !(about_token && http->setup->place.loopback && !right_method)) {
        return refusal;
    }
    if (request->route == NULL && !is_page) {
        return (jzc_refusal){
            404, "NOT_FOUND",
            "There is nothing at this path; docs/reference/CONSOLE.md lists what there is."};
    }
    if (!right_method) {
        return (jzc_refusal){405, "BAD_METHOD",
                             "This path is not for that method: actions are POST, the rest is GET "
                             "or HEAD."};
    }
    return (jzc_refusal){0};
}

static enum MHD_Result request_answer(jzc_http *http, jzc_request *request)
{
    if (request->cell == NULL) {
        return MHD_NO; /* no memory for an answer: the connection is closed */
    }
    jzc_client_allow(http, request->client, READ_MS);
    return MHD_queue_response(request->connection, request->cell->status, request->cell->response);
}

static enum MHD_Result request_refuse(jzc_http *http, jzc_request *request, jzc_refusal refusal)
{
    request->cell = jzc_cell_error(http, refusal.status, refusal.error, refusal.text);
    if (refusal.status == 405 && request->cell != NULL) {
        bool acts = request->route != NULL && request->route->kind == JZC_ROUTE_ACT;
        (void)MHD_add_response_header(request->cell->response, "Allow",
                                      acts ? "POST" : "GET, HEAD");
    }
    return request_answer(http, request);
}

/* A body that says how long it is need not be read to be too long. */
static bool body_is_too_big(struct MHD_Connection *connection)
{
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    uint64_t bytes = 0;
    return length != NULL &&
           (!jzc_digits_u64(length, strlen(length), &bytes) || bytes > JZC_BODY_MAX);
}

typedef struct framing {
    unsigned told; /* headers that say where the body ends */
    bool unknown;  /* one of them in a way that we do not know */
} framing;

static enum MHD_Result note_framing(void *cls, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    framing *f = cls;
    (void)kind;
    if (strcasecmp(name, "Content-Length") == 0) {
        f->told++;
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        f->told++;
        f->unknown = value == NULL || strcasecmp(value, "chunked") != 0;
    }
    return MHD_YES;
}

/* Told in two ways, a proxy before us may see another end of the body, and begin of the next
 * request, than we do. */
static bool framing_is_clear(struct MHD_Connection *connection)
{
    framing f = {0};
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, note_framing, &f);
    return f.told <= 1 && !f.unknown;
}

static const jzc_refusal unclear = {
    400, "BAD_REQUEST",
    "Where the body ends has to be told once: by a Content-Length, or by Transfer-Encoding: "
    "chunked."};
static const jzc_refusal too_big = {413, "TOO_BIG", "A body has at most 4,096 bytes."};

/* The headers are there. */
static enum MHD_Result request_begin(jzc_http *http, struct MHD_Connection *connection,
                                     const char *url, const char *method, void **out_request)
{
    jzc_request *request = calloc(1, sizeof *request);
    if (request == NULL) {
        return MHD_NO;
    }
    *out_request = request;
    request->connection = connection;
    request->client = jzc_client_of(connection);
    request->route = jzc_route_find(url);
    if (request->client != NULL) {
        request->client->active = true;
    }
    jzc_client_allow(http, request->client, BODY_MS);
    bool is_page = jzc_page_find(url) != NULL;
    jzc_refusal refusal = request_guard(http, request, method, is_page);
    if (refusal.status == 0 && !framing_is_clear(connection)) {
        refusal = unclear;
    } else if (refusal.status == 0 && body_is_too_big(connection)) {
        refusal = too_big;
    }
    if (refusal.status != 0) {
        return request_refuse(http, request, refusal);
    }
    if (request->client != NULL) {
        request->client->receiving = true;
    }
    return MHD_YES;
}

static void request_body(jzc_request *request, const char *upload, size_t *upload_size)
{
    if (request->body.len + *upload_size > JZC_BODY_MAX) {
        request->too_big = true; /* what still comes is thrown away */
    } else {
        jzc_text_add(&request->body, upload, *upload_size);
    }
    *upload_size = 0;
}

typedef struct query {
    jzc_asked *asked;
    jzc_refusal refusal;
} query;

static enum MHD_Result note_argument(void *cls, enum MHD_ValueKind kind, const char *name,
                                     size_t name_len, const char *value, size_t value_len)
{
    query *q = cls;
    (void)kind;
    if (name_len == 5 && memcmp(name, "token", 5) == 0) {
        return MHD_YES; /* the guard's */
    }
    if (q->asked->route->kind == JZC_ROUTE_ACT) {
        q->refusal = (jzc_refusal){400, "BAD_REQUEST", "An action has no query, but a body."};
        return MHD_NO;
    }
    q->refusal = jzc_asked_query(q->asked, name, name_len, value == NULL ? "" : value,
                                 value == NULL ? 0 : value_len);
    return q->refusal.status == 0 ? MHD_YES : MHD_NO;
}

/* Everything has arrived. */
static enum MHD_Result request_run(jzc_http *http, jzc_request *request, const char *url)
{
    jzc_asked asked = {.route = request->route};
    query q = {.asked = &asked};
    if (request->client != NULL) {
        request->client->receiving = false;
    }
    if (request->route == NULL) {
        request->cell = jzc_cell_of_page(url);
        return request_answer(http, request);
    }
    if (request->route->kind == JZC_ROUTE_HEALTH) {
        request->cell =
            jzc_cell_of_answer(http, jzc_answer_new(200, "{\"ok\":true}", 11), "application/json");
        return request_answer(http, request);
    }
    if (request->too_big || request->body.failed) {
        return request_refuse(http, request, too_big);
    }
    (void)MHD_get_connection_values_n(request->connection, MHD_GET_ARGUMENT_KIND, note_argument,
                                      &q);
    if (q.refusal.status == 0 && request->route->kind == JZC_ROUTE_ACT) {
        q.refusal = jzc_asked_body(&asked, request->body.bytes, request->body.len);
    }
    if (q.refusal.status == 0) {
        jzc_client_allow(http, request->client, JZC_TRACE_MS_MAX + HEADERS_MS);
        jzc_question_put(http, request, &asked);
    }
    jzc_asked_free(&asked);
    if (q.refusal.status != 0) {
        return request_refuse(http, request, q.refusal);
    }
    /* Suspended, it is called again when there is an answer. */
    return request->question != NULL ? MHD_YES : request_answer(http, request);
}

enum MHD_Result jzc_request_handle(void *cls, struct MHD_Connection *connection, const char *url,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_size, void **out_request)
{
    jzc_http *http = cls;
    jzc_request *request = *out_request;
    (void)version;
    if (request == NULL) {
        return request_begin(http, connection, url, method, out_request);
    }
    if (*upload_size > 0) {
        request_body(request, upload, upload_size);
        return MHD_YES;
    }
    return request->settled ? request_answer(http, request) : request_run(http, request, url);
}

void jzc_request_completed(void *cls, struct MHD_Connection *connection, void **out_request,
                           enum MHD_RequestTerminationCode code)
{
    jzc_http *http = cls;
    jzc_request *request = *out_request;
    (void)connection;
    (void)code;
    if (request == NULL) {
        return;
    }
    *out_request = NULL;
    if (request->client != NULL) {
        request->client->active = request->client->receiving = false;
    }
    jzc_client_allow(http, request->client, HEADERS_MS);
    jzc_question_forget(request);
    jzc_cell_give(request->cell);
    jzc_text_free(&request->body);
    free(request);
}
