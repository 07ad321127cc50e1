/* A wire to the program. */
#include "wire.h"

#include "answer.h"
#include "json.h"
#include "lines.h"
#include "program.h"

#include <jzx/ask.h>
#include <jzx/loop.h>
#include <jzx/net.h>
#include <jzx/timer.h>

#include <stdlib.h>
#include <string.h>

enum {
    TAG_NET = 10,
    TAG_LOOK = 11,
    WAITING_MAX = 64,
    LOOK_MS = 1000,
    BACKOFF_MIN_MS = 100,
    BACKOFF_MAX_MS = 1000,
};
static const uint64_t ms_ns = 1000000;
static const uint64_t idle_ns = 10000000000;   /* no question: hang up */
static const uint64_t silent_ns = 10000000000; /* the program does not answer: hang up */

typedef struct waiting {
    uint64_t id;
    uint64_t asked_ns;
    jzx_request request;
} waiting;

/* W1  conn is 0 exactly while `waiting` is empty and no question came in the last 10 s, or the
 *     program cannot be reached. */
typedef struct wire {
    jzc_program *program; /* borrowed; other wires have it too */
    jzx_io_ref conn;
    bool greeted;
    jzc_lines in;
    jzc_text out; /* wait for the greeting: a refused client must not have written */
    waiting waiting[WAITING_MAX]; /* a ring: answers come in the order of the questions */
    unsigned first;
    unsigned count;
    uint64_t next_id;
    uint64_t used_ns; /* when it was asked last */
    uint64_t retry_ns;
    uint32_t backoff_ms;
    jzx_timer_id look;
} wire;

static const char no_memory[] = "The console is out of memory; try again.";

/* Transfers the answer; NULL stands for having no memory, and leaves the asker to its timeout. */
static void reply(jzx_context *ctx, jzx_request request, jzc_answer *answer)
{
    if (answer == NULL) {
        (void)jzx_request_drop(ctx, request);
        return;
    }
    jzx_send_opts opts = {.data = answer,
                          .len = sizeof *answer + answer->len,
                          .drop = jzc_answer_drop,
                          .tag = JZC_TAG_ANSWER};
    if (jzx_reply_with(ctx, request, &opts) != JZX_OK) {
        jzc_answer_drop(answer); /* the asker does not wait any more */
    }
}

static jzc_answer *not_reachable(const wire *me, uint64_t now)
{
    uint64_t lost_ns = me->program->lost_ns;
    jzc_end end = jzc_program_end(me->program);
    return jzc_answer_gone(jzc_end_text(end), jzc_end_name(end),
                           lost_ns == 0 ? 0 : (now - lost_ns) / ms_ns);
}

/* Ends the connection and answers all that wait. An error is that of the program's greeting. */
static void wire_lose(jzx_context *ctx, wire *me, const char *error, const char *text)
{
    uint64_t now = jzx_loop_now(ctx->loop);
    if (me->conn != 0) {
        (void)jzx_conn_close(ctx->loop, me->conn, 1);
    }
    me->conn = 0;
    jzc_lines_free(&me->in);
    jzc_text_free(&me->out);
    if (error == NULL) { /* one that refuses us is there */
        jzc_program_lost(me->program, now);
    }
    me->retry_ns = now + me->backoff_ms * ms_ns;
    me->backoff_ms = me->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : me->backoff_ms * 2;
    while (me->count > 0) {
        reply(ctx, me->waiting[me->first].request,
              error != NULL ? jzc_answer_error(503, error, text) : not_reachable(me, now));
        me->first = (me->first + 1) % WAITING_MAX;
        me->count--;
    }
}

static void wire_hang_up(jzx_context *ctx, wire *me)
{
    (void)jzx_conn_close(ctx->loop, me->conn, 1);
    me->conn = 0;
    jzc_lines_free(&me->in);
}

/* False: it cannot be reached just now. */
static bool wire_connect(jzx_context *ctx, wire *me)
{
    jzx_net_opts opts = {.tag = TAG_NET, .connect_timeout_ms = 1000};
    uint64_t now = jzx_loop_now(ctx->loop);
    if (now < me->retry_ns) {
        return false;
    }
    me->greeted = false;
    if (jzx_connect(ctx->loop, me->program->address, ctx->self, &opts, &me->conn) != JZX_OK) {
        me->conn = 0;
        wire_lose(ctx, me, NULL, NULL);
        return false;
    }
    if (me->look == 0 &&
        jzx_send_after(ctx->loop, ctx->self, LOOK_MS, NULL, 0, TAG_LOOK, &me->look) != JZX_OK) {
        me->look = 0; /* the wire looks again after the next question */
    }
    return true;
}

/* Writes what is in `out`. False: there is no room for it. Where the connection failed already, a
 * message that says so is on its way, and its handler answers. */
static bool wire_flush(jzx_context *ctx, wire *me)
{
    jzx_err err = JZX_OK;
    if (me->out.len > 0) {
        err = jzx_conn_write(ctx->loop, me->conn, me->out.bytes, me->out.len);
    }
    jzc_text_free(&me->out);
    return err == JZX_OK || err == JZX_ERR_CLOSED;
}

static bool wire_write(jzx_context *ctx, wire *me, uint64_t id, const char *question, size_t len)
{
    size_t before = me->out.len;
    jzc_text_str(&me->out, "{\"id\":");
    jzc_text_u64(&me->out, id);
    jzc_text_str(&me->out, ",");
    jzc_text_add(&me->out, question, len);
    jzc_text_str(&me->out, "}\n");
    if (me->out.failed) {
        me->out.len = before;
        me->out.failed = false;
        return false;
    }
    return !me->greeted || wire_flush(ctx, me);
}

static void wire_ask(jzx_context *ctx, wire *me, const char *question, size_t len)
{
    me->used_ns = jzx_loop_now(ctx->loop);
    if (me->conn == 0 && !wire_connect(ctx, me)) {
        reply(ctx, JZX_REQUEST_IN_HAND, not_reachable(me, me->used_ns));
        return;
    }
    if (me->count == WAITING_MAX) {
        reply(ctx, JZX_REQUEST_IN_HAND,
              jzc_answer_error(503, "BUSY", "Too many questions wait for the program's answers."));
        return;
    }
    jzx_request request = jzx_request_keep(ctx);
    if (request == 0 || !wire_write(ctx, me, me->next_id, question, len)) {
        reply(ctx, request == 0 ? JZX_REQUEST_IN_HAND : request,
              jzc_answer_error(503, "NO_MEMORY", no_memory));
        return;
    }
    me->waiting[(me->first + me->count) % WAITING_MAX] =
        (waiting){.id = me->next_id, .asked_ns = me->used_ns, .request = request};
    me->count++;
    me->next_id++;
}

const char *jzc_greeting_error(const char *line, size_t len, const char **out_text)
{
    json_t *object = jzc_json_read(line, len);
    const char *error = json_string_value(json_object_get(object, "error"));
    uint64_t version = 0;
    (void)jzc_json_number(object, "protocol", &version);
    bool busy = error != NULL && strcmp(error, "BUSY") == 0;
    json_decref(object);
    if (busy) {
        *out_text = "The program has as many control clients as it takes: close other consoles or "
                    "`jzx` commands.";
        return "BUSY";
    }
    if (version != 1) {
        *out_text = "What answers there does not speak version 1 of the control protocol.";
        return "NOT_A_PROGRAM";
    }
    return NULL;
}

uint64_t jzc_greeting_pid(const char *line, size_t len)
{
    json_t *object = jzc_json_read(line, len);
    uint64_t pid = 0;
    (void)jzc_json_number(object, "pid", &pid);
    json_decref(object);
    return pid;
}

/* False: the connection is over. */
static bool wire_line(jzx_context *ctx, wire *me, const char *line, size_t len)
{
    const char *text = NULL;
    if (!me->greeted) {
        const char *error = jzc_greeting_error(line, len, &text);
        if (error != NULL) {
            wire_lose(ctx, me, error, text);
            return false;
        }
        me->greeted = true;
        jzc_program_met(me->program, jzc_greeting_pid(line, len));
        me->backoff_ms = BACKOFF_MIN_MS;
        if (!wire_flush(ctx, me)) {
            wire_lose(ctx, me, "NO_MEMORY", no_memory);
            return false;
        }
        return true;
    }
    uint64_t id = 0;
    jzc_answer *answer = jzc_answer_of_line(line, len, &id);
    if (me->count == 0 || id != me->waiting[me->first].id) {
        jzc_answer_drop(answer);
        wire_lose(ctx, me, NULL, NULL); /* we do not understand each other: begin anew */
        return false;
    }
    reply(ctx, me->waiting[me->first].request, answer);
    me->first = (me->first + 1) % WAITING_MAX;
    me->count--;
    return true;
}

static void wire_data(jzx_context *ctx, wire *me, const jzx_io_event *ev)
{
    const char *line = NULL;
    size_t len = 0;
    if (!jzc_lines_feed(&me->in, ev->data, ev->len)) {
        wire_lose(ctx, me, NULL, NULL);
        return;
    }
    while (jzc_lines_next(&me->in, &line, &len)) {
        if (!wire_line(ctx, me, line, len)) {
            return;
        }
    }
}

/* Once per second while there is a connection. */
static void wire_look(jzx_context *ctx, wire *me)
{
    uint64_t now = jzx_loop_now(ctx->loop);
    me->look = 0;
    if (me->conn == 0) {
        return;
    }
    if (me->count > 0 && now - me->waiting[me->first].asked_ns > silent_ns) {
        wire_lose(ctx, me, NULL, NULL);
    } else if (me->count == 0 && now - me->used_ns > idle_ns) {
        wire_hang_up(ctx, me);
    } else if (jzx_send_after(ctx->loop, ctx->self, LOOK_MS, NULL, 0, TAG_LOOK, &me->look) !=
               JZX_OK) {
        me->look = 0;
    }
}

jzx_behavior_result jzc_wire_init(jzx_context *ctx, void *arg)
{
    wire *me = calloc(1, sizeof *me);
    if (me == NULL) {
        return jzx_fail(ctx, JZX_ERR_NO_MEMORY, no_memory);
    }
    me->program = arg;
    me->next_id = 1;
    me->backoff_ms = BACKOFF_MIN_MS;
    ctx->state = me;
    return JZX_BEHAVIOR_OK;
}

jzx_behavior_result jzc_wire(jzx_context *ctx, const jzx_message *msg)
{
    wire *me = ctx->state;
    if (msg->kind == JZX_KIND_TIMER) {
        wire_look(ctx, me);
    } else if (msg->kind == JZX_KIND_USER && msg->tag == JZC_TAG_QUESTION && jzx_is_ask(ctx)) {
        wire_ask(ctx, me, msg->data, msg->len);
    } else if (msg->kind == JZX_KIND_IO) {
        const jzx_io_event *ev = msg->data;
        if (ev->ref != me->conn) {
            return JZX_BEHAVIOR_OK;
        }
        if (ev->what == JZX_IO_DATA) {
            wire_data(ctx, me, ev);
        } else if (ev->what == JZX_IO_EOF) {
            wire_lose(ctx, me, NULL, NULL);
        } else if (ev->what == JZX_IO_CLOSED) {
            me->conn = 0;
            wire_lose(ctx, me, NULL, NULL);
        }
    }
    return JZX_BEHAVIOR_OK;
}

void jzc_wire_deinit(jzx_context *ctx)
{
    wire *me = ctx->state;
    jzc_lines_free(&me->in);
    jzc_text_free(&me->out);
    free(me);
}
