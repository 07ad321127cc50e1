/* A tracer. */
#include "tracer.h"

#include "answer.h"
#include "json.h"
#include "lines.h"
#include "program.h"
#include "wire.h"

#include <jzx/ask.h>
#include <jzx/loop.h>
#include <jzx/net.h>
#include <jzx/timer.h>

#include <stdlib.h>
#include <string.h>

enum { TAG_NET = 10, TAG_TIME = 11, TRACE_ID = 1, GIVE_UP_MS = 3000 };

typedef struct tracer {
    const jzc_program *program;
    jzx_io_ref conn;
    jzx_request request;   /* 0: not asked yet */
    jzx_timer_id patience; /* until the program begins */
    jzc_lines in;
    jzc_text order;  /* the line that begins it, for when the program has greeted */
    jzc_text events; /* objects with commas between them */
    uint32_t count;
    uint32_t limit;
    uint32_t ms;
    uint64_t began_ns; /* 0: the program did not begin yet */
    uint64_t skipped;
    uint64_t lost;
    bool greeted;
    bool cut; /* there was more than the limit */
} tracer;

/* Transfers the answer. This is the end of the tracer. */
static jzx_behavior_result finish(jzx_context *ctx, const tracer *me, jzc_answer *answer)
{
    if (answer != NULL) {
        jzx_send_opts opts = {.data = answer,
                              .len = sizeof *answer + answer->len,
                              .drop = jzc_answer_drop,
                              .tag = JZC_TAG_ANSWER};
        if (jzx_reply_with(ctx, me->request, &opts) != JZX_OK) {
            jzc_answer_drop(answer);
        }
    }
    return JZX_BEHAVIOR_STOP;
}

static jzx_behavior_result not_reachable(jzx_context *ctx, const tracer *me)
{
    uint64_t lost_ns = me->program->lost_ns;
    jzc_end end = jzc_program_end(me->program);
    return finish(
        ctx, me,
        jzc_answer_gone(jzc_end_text(end), jzc_end_name(end),
                        lost_ns == 0 ? 0 : (jzx_loop_now(ctx->loop) - lost_ns) / 1000000u));
}

static void add_number(jzc_text *out, const char *name, uint64_t value)
{
    jzc_text_str(out, name);
    jzc_text_u64(out, value);
}

static jzx_behavior_result tell(jzx_context *ctx, const tracer *me)
{
    jzc_text out = {0};
    add_number(
        &out, "{\"ok\":true,\"ms\":", (jzx_loop_now(ctx->loop) - me->began_ns) / UINT64_C(1000000));
    add_number(&out, ",\"skipped\":", me->skipped);
    add_number(&out, ",\"lost\":", me->lost);
    jzc_text_str(&out, me->cut ? ",\"cut\":true,\"events\":[" : ",\"cut\":false,\"events\":[");
    jzc_text_add(&out, me->events.bytes, me->events.len);
    jzc_text_str(&out, "]}");
    jzc_answer *answer = out.failed ? NULL : jzc_answer_new(200, out.bytes, out.len);
    jzc_text_free(&out);
    return finish(ctx, me, answer);
}

static jzx_behavior_result begin(jzx_context *ctx, tracer *me, const jzc_trace_order *order)
{
    jzx_net_opts opts = {.tag = TAG_NET, .connect_timeout_ms = 1000};
    me->ms = order->ms;
    me->limit = order->limit;
    me->request = jzx_request_keep(ctx);
    jzc_text_str(&me->order, "{\"id\":1,");
    jzc_text_add(&me->order, order->question, order->question_len);
    jzc_text_str(&me->order, "}\n");
    bool connects =
        me->request != 0 && !me->order.failed &&
        jzx_connect(ctx->loop, me->program->address, ctx->self, &opts, &me->conn) == JZX_OK &&
        jzx_send_after(ctx->loop, ctx->self, GIVE_UP_MS, NULL, 0, TAG_TIME, &me->patience) ==
            JZX_OK;
    return connects ? JZX_BEHAVIOR_OK : not_reachable(ctx, me);
}

/* The first line says whether we are welcome. */
static jzx_behavior_result greeted(jzx_context *ctx, tracer *me, const char *line, size_t len)
{
    const char *text = NULL;
    const char *error = jzc_greeting_error(line, len, &text);
    if (error != NULL) {
        return finish(ctx, me, jzc_answer_error(503, error, text));
    }
    me->greeted = true;
    jzx_err err = jzx_conn_write(ctx->loop, me->conn, me->order.bytes, me->order.len);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : not_reachable(ctx, me);
}

static void add_event(tracer *me, const json_t *event)
{
    char *text = json_dumps(event, JSON_COMPACT);
    size_t len = text == NULL ? 0 : strlen(text);
    if (text == NULL || me->count >= me->limit || me->events.len + len > JZC_TRACE_BYTES_MAX) {
        me->cut = true;
    } else {
        if (me->count > 0) {
            jzc_text_add(&me->events, ",", 1);
        }
        jzc_text_add(&me->events, text, len);
        me->count++;
    }
    free(text);
}

/* {"id":1,"event":{...}} or {"id":1,"skipped":N,"lost":N}, which counts from the beginning. */
static void add_line(tracer *me, const char *line, size_t len)
{
    json_t *object = jzc_json_read(line, len);
    const json_t *event = json_object_get(object, "event");
    if (json_is_object(event)) {
        add_event(me, event);
    }
    (void)jzc_json_number(object, "skipped", &me->skipped);
    (void)jzc_json_number(object, "lost", &me->lost);
    json_decref(object);
}

/* The answer to the request itself: from now on the time counts. */
static jzx_behavior_result begun(jzx_context *ctx, tracer *me, const char *line, size_t len)
{
    uint64_t id = 0;
    jzc_answer *answer = jzc_answer_of_line(line, len, &id);
    if (answer == NULL || id != TRACE_ID) {
        jzc_answer_drop(answer);
        return not_reachable(ctx, me);
    }
    if (answer->status != 200) {
        return finish(ctx, me, answer);
    }
    jzc_answer_drop(answer);
    me->began_ns = jzx_loop_now(ctx->loop);
    (void)jzx_cancel_timer(ctx->loop, me->patience);
    if (jzx_send_after(ctx->loop, ctx->self, me->ms, NULL, 0, TAG_TIME, NULL) != JZX_OK) {
        return tell(ctx, me);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result data(jzx_context *ctx, tracer *me, const jzx_io_event *ev)
{
    const char *line = NULL;
    size_t len = 0;
    if (!jzc_lines_feed(&me->in, ev->data, ev->len)) {
        return not_reachable(ctx, me);
    }
    while (jzc_lines_next(&me->in, &line, &len)) {
        jzx_behavior_result result = JZX_BEHAVIOR_OK;
        if (!me->greeted) {
            result = greeted(ctx, me, line, len);
        } else if (me->began_ns == 0) {
            result = begun(ctx, me, line, len);
        } else {
            add_line(me, line, len);
        }
        if (result != JZX_BEHAVIOR_OK) {
            return result;
        }
    }
    return me->cut ? tell(ctx, me) : JZX_BEHAVIOR_OK;
}

/* The time of the trace is over, or that of a program which does not begin. */
static jzx_behavior_result time_is_up(jzx_context *ctx, const tracer *me)
{
    if (me->began_ns == 0) {
        return finish(ctx, me,
                      jzc_answer_error(504, "NOT_ANSWERING",
                                       "The program did not answer; it may be stopped."));
    }
    return tell(ctx, me);
}

jzx_behavior_result jzc_tracer_init(jzx_context *ctx, void *arg)
{
    tracer *me = calloc(1, sizeof *me);
    if (me == NULL) {
        return jzx_fail(ctx, JZX_ERR_NO_MEMORY, "The console is out of memory.");
    }
    me->program = arg;
    ctx->state = me;
    return JZX_BEHAVIOR_OK;
}

jzx_behavior_result jzc_tracer(jzx_context *ctx, const jzx_message *msg)
{
    tracer *me = ctx->state;
    if (msg->kind == JZX_KIND_TIMER) {
        return time_is_up(ctx, me);
    }
    if (msg->kind == JZX_KIND_USER && msg->tag == JZC_TAG_TRACE && me->request == 0) {
        return begin(ctx, me, msg->data);
    }
    if (msg->kind != JZX_KIND_IO) {
        return JZX_BEHAVIOR_OK;
    }
    const jzx_io_event *ev = msg->data;
    if (ev->what == JZX_IO_DATA) {
        return data(ctx, me, ev);
    }
    if (ev->what == JZX_IO_EOF || ev->what == JZX_IO_CLOSED) {
        /* What was seen until it ended is worth having. */
        return me->began_ns != 0 ? tell(ctx, me) : not_reachable(ctx, me);
    }
    return JZX_BEHAVIOR_OK;
}

void jzc_tracer_deinit(jzx_context *ctx)
{
    tracer *me = ctx->state;
    jzc_lines_free(&me->in);
    jzc_text_free(&me->order);
    jzc_text_free(&me->events);
    free(me);
}
