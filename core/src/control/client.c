/* One client of the control: bytes to lines, lines to answers, answers to bytes. While answers wait
 * nothing more is read, so a client that does not read is not served, and one that never does is
 * hung up on. */
#include "control/server.h"

#include "base/alloc.h"
#include "os/debug/probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ANSWER_UP_TO = 65536, KEEP_BYTES = 262144, ANSWERS_AT_A_TIME = 16 };

static const struct {
    const char *name;
    jzi_op run;
} operations[] = {
    {"program", jzi_op_program},   {"actors", jzi_op_actors},   {"actor", jzi_op_actor},
    {"failures", jzi_op_failures}, {"dead", jzi_op_dead},       {"stuck", jzi_op_stuck},
    {"facts", jzi_op_facts},       {"trace", jzi_op_trace},     {"record", jzi_op_record},
    {"dump", jzi_op_dump},         {"metrics", jzi_op_metrics}, {"stop", jzi_op_stop},
    {"kill", jzi_op_kill},         {"restart", jzi_op_restart}, {"send", jzi_op_send},
};

static jzi_server *server_of(const jzi_connection *connection)
{
    return connection->client.control->server;
}

static size_t waiting(const jzi_connection *connection)
{
    return connection->client.out.len - connection->written;
}

size_t jzi_client_waiting(const jzi_client *client)
{
    return waiting((const jzi_connection *)client);
}

/* Refusals. */

bool jzi_refuse(jzi_client *client, const char *error, const char *format, ...)
{
    va_list args;
    client->error = error;
    va_start(args, format);
    (void)vsnprintf(client->error_text, sizeof client->error_text, format, args);
    va_end(args);
    return false;
}

bool jzi_refuse_err(jzi_client *client, jzx_err err)
{
    static const char prefix[] = "JZX_ERR_";
    const char *name = jzx_err_name(err);
    if (strncmp(name, prefix, sizeof prefix - 1) == 0) {
        name += sizeof prefix - 1;
    }
    return jzi_refuse(client, name, "%s", jzx_strerror(err));
}

/* The end of a line. Without memory for it the client would wait for ever: it is hung up on. */
static void end_line(jzi_connection *connection)
{
    jzi_json *out = &connection->client.out;
    jzi_json_close(out, '}');
    jzi_json_raw(out, "\n", 1);
    connection->gone = connection->gone || out->failed;
}

static void write_refusal(jzi_connection *connection, uint64_t id)
{
    jzi_json *out = &connection->client.out;
    jzi_json_open(out, NULL, '{');
    jzi_json_u64(out, "id", id);
    jzi_json_bool(out, "ok", false);
    jzi_json_text(out, "error", connection->client.error);
    jzi_json_text(out, "text", connection->client.error_text);
    end_line(connection);
}

/* Answers. */

static void end_stream(jzi_client *client)
{
    if (client->stream.pump != NULL) {
        client->stream.end(client);
        client->stream = (jzi_trace_stream){0};
    }
}

static bool op_end(jzi_client *client, jzi_request *request)
{
    (void)request;
    if (client->stream.pump == NULL) {
        return jzi_refuse(client, "BAD_REQUEST", "There is nothing to end: no trace is under way.");
    }
    end_stream(client); /* its last lines come before the answer */
    return true;
}

static jzi_op find_operation(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        if (strcmp(operations[i].name, name) == 0) {
            return operations[i].run;
        }
    }
    return NULL;
}

/* Runs an operation between the head and the foot of its answer. False: refused, and nothing of it
 * is in the text. */
static bool try(jzi_client *client, jzi_request *request, jzi_op run)
{
    jzi_json *out = &client->out;
    size_t mark = out->len;
    bool streamed = client->stream.pump != NULL;
    jzi_json_open(out, NULL, '{');
    jzi_json_u64(out, "id", request->id);
    jzi_json_bool(out, "ok", true);
    client->error = NULL;
    bool good = run(client, request);
    if (good && request->wrong != NULL) {
        good = jzi_refuse(client, "BAD_REQUEST", "%.60s: not of the right type, or out of range.",
                          request->wrong);
    }
    if (good && out->failed) {
        good = jzi_refuse_err(client, JZX_ERR_NO_MEMORY);
    }
    if (good) {
        return true;
    }
    if (!streamed && client->stream.pump != NULL) {
        char text[sizeof client->error_text];
        const char *error = client->error;
        memcpy(text, client->error_text, sizeof text);
        end_stream(client);
        client->error = error;
        memcpy(client->error_text, text, sizeof text);
    }
    out->len = mark;
    out->failed = out->comma = false;
    return false;
}

static void client_answer(jzi_connection *connection, const char *line, size_t len)
{
    jzi_client *client = &connection->client;
    jzi_request *request = &server_of(connection)->request;
    const char *wrong = jzi_request_read(request, line, len);
    bool good = false;
    if (wrong != NULL) {
        (void)jzi_refuse(client, "BAD_REQUEST", "%s", wrong);
    } else if (strcmp(request->op, "end") == 0) {
        good = op_end(client, request);
        if (good) {
            jzi_json_open(&client->out, NULL, '{');
            jzi_json_u64(&client->out, "id", request->id);
            jzi_json_bool(&client->out, "ok", true);
        }
    } else {
        jzi_op run = find_operation(request->op);
        good = run != NULL
                   ? try(client, request, run)
                   : jzi_refuse(client, "UNKNOWN_OP", "There is no operation %.60s.", request->op);
    }
    if (good) {
        end_line(connection);
    } else {
        write_refusal(connection, request->id);
    }
}

/* Lines. */

static const char *line_end(const jzi_connection *connection)
{
    return memchr(connection->in, '\n', connection->in_len);
}

static bool may_answer(const jzi_connection *connection)
{
    return !connection->leaving && !connection->gone && waiting(connection) < ANSWER_UP_TO &&
           !jzi_control_is_over(connection->client.control);
}

bool jzi_connection_has_line(const jzi_connection *connection)
{
    return may_answer(connection) &&
           (line_end(connection) != NULL || connection->in_len == sizeof connection->in);
}

static void answer_lines(jzi_connection *connection)
{
    for (int i = 0; i < ANSWERS_AT_A_TIME && may_answer(connection); i++) {
        const char *end = line_end(connection);
        if (end == NULL) {
            if (connection->in_len == sizeof connection->in) {
                (void)jzi_refuse(&connection->client, "TOO_LONG", "A request has at most %d bytes.",
                                 (int)JZI_REQUEST_MAX);
                write_refusal(connection, 0);
                connection->leaving = true;
            }
            return;
        }
        size_t len = (size_t)(end - connection->in);
        client_answer(connection, connection->in, len);
        connection->in_len -= len + 1;
        memmove(connection->in, end + 1, connection->in_len);
    }
}

/* Bytes. */

bool jzi_connection_wants_read(const jzi_connection *connection)
{
    return may_answer(connection) && !connection->ended &&
           connection->in_len < sizeof connection->in;
}

bool jzi_connection_wants_write(const jzi_connection *connection)
{
    return waiting(connection) > 0;
}

static void read_some(jzi_connection *connection)
{
    size_t len = 0;
    jzx_err err = jzi_control_read(connection->fd, connection->in + connection->in_len,
                                   sizeof connection->in - connection->in_len, &len);
    if (err == JZX_OK) {
        connection->in_len += len;
        connection->ended = len == 0;
    } else if (err != JZX_ERR_AGAIN) {
        connection->gone = true;
    }
}

/* Gives memory of long answers back. */
static void tidy_up(jzi_connection *connection)
{
    jzi_json *out = &connection->client.out;
    if (waiting(connection) == 0) {
        connection->written = 0;
        if (out->cap > KEEP_BYTES) {
            jzi_json_deinit(out);
        } else {
            jzi_json_clear(out);
        }
    } else if (connection->written > ANSWER_UP_TO && connection->written > out->len / 2) {
        out->len -= connection->written;
        memmove(out->bytes, out->bytes + connection->written, out->len);
        connection->written = 0;
    }
}

static void write_some(jzi_connection *connection, uint64_t now_ns)
{
    while (waiting(connection) > 0 && !connection->gone) {
        size_t len = 0;
        jzx_err err =
            jzi_control_write(connection->fd, connection->client.out.bytes + connection->written,
                              waiting(connection), &len);
        if (err != JZX_OK) {
            connection->gone = err != JZX_ERR_AGAIN;
            break;
        }
        connection->written += len;
        connection->progress_ns = now_ns;
    }
    tidy_up(connection);
}

void jzi_connection_serve(jzi_connection *connection, bool readable, bool writable, uint64_t now_ns)
{
    if (writable && waiting(connection) == 0 && !jzi_connection_wants_read(connection)) {
        connection->gone = true; /* nothing was asked for: the other side is gone */
    }
    if (readable && jzi_connection_wants_read(connection)) {
        read_some(connection);
    }
    answer_lines(connection);
    if (waiting(connection) == 0) {
        connection->progress_ns = now_ns;
    }
    write_some(connection, now_ns);
    bool idle = waiting(connection) == 0;
    connection->gone = connection->gone || (idle && connection->leaving) ||
                       (idle && connection->ended && connection->client.stream.pump == NULL &&
                        line_end(connection) == NULL) ||
                       (!idle && now_ns - connection->progress_ns >
                                     atomic_load_explicit(&server_of(connection)->patience_ns,
                                                          memory_order_relaxed));
}

/* Coming and going. */

void jzi_write_allow(jzi_json *out, uint32_t allow)
{
    static const char *const names[] = {"stop", "kill", "restart", "send"};
    jzi_json_open(out, "allow", '[');
    for (uint32_t i = 0; i < 4; i++) {
        if ((allow & 1u << i) != 0) {
            jzi_json_text(out, NULL, names[i]);
        }
    }
    jzi_json_close(out, ']');
}

static void greet(jzi_connection *connection)
{
    const jzx_control *control = connection->client.control;
    jzi_json *out = &connection->client.out;
    jzi_json_open(out, NULL, '{');
    jzi_json_text(out, "jzx", jzx_version());
    jzi_json_u64(out, "protocol", 1);
    jzi_json_i64(out, "pid", jzi_process_id());
    jzi_json_text(out, "name", control->name);
    jzi_json_u64(out, "uptime_ms", (jzi_control_now_ns(control) - control->started_ns) / 1000000u);
    jzi_write_allow(out, control->opts.allow);
    end_line(connection);
}

jzi_connection *jzi_connection_create(jzi_server *server, int fd)
{
    const jzx_allocator *alloc = jzi_server_alloc(server);
    jzi_connection *connection = jzi_alloc_zeroed(alloc, sizeof *connection);
    if (connection == NULL) {
        return NULL;
    }
    connection->client.control = server->control;
    connection->fd = fd;
    connection->progress_ns = jzi_control_now_ns(server->control);
    jzi_json_init(&connection->client.out, alloc);
    greet(connection);
    return connection;
}

void jzi_connection_destroy(jzi_connection *connection)
{
    const jzx_allocator *alloc = jzi_server_alloc(server_of(connection));
    end_stream(&connection->client);
    jzi_control_hang_up(connection->fd);
    jzi_json_deinit(&connection->client.out);
    jzi_seen_list_deinit(alloc, &connection->base);
    jzi_seen_list_deinit(alloc, &connection->last);
    jzi_samples_deinit(alloc, &connection->before);
    jzi_samples_deinit(alloc, &connection->now);
    jzi_free(alloc, connection->busy, connection->busy == NULL ? 0 : 2 * sizeof *connection->busy);
    jzi_free(alloc, connection, sizeof *connection);
}
