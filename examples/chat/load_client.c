/* One client: goes into a room, says its lines, listens, and reports. */
#include "lines.h"
#include "load.h"

#include <jzx/protocol.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct client {
    const identity *who;
    const load_plan *plan;
    jzx_io_ref conn;
    lines in;
    ear *ear;
    uint32_t said;    /* lines of ours */
    uint64_t missed;  /* when a saboteur looked last */
    uint32_t crashes; /* that a saboteur asked for: of the room, then of its session */
    enum { JOINING, READY, SPEAKING, CONTENT, LEAVING } state;
} client;

static void must(jzx_context *ctx, jzx_err err)
{
    if (err != JZX_OK) {
        jzx_panic(ctx, err, jzx_strerror(err));
    }
}

static void say(jzx_context *ctx, const char *text)
{
    const client *me = ctx->state;
    must(ctx, jzx_conn_write(ctx->loop, me->conn, text, strlen(text)));
}

static jzx_behavior_result client_open(jzx_context *ctx, void *arg)
{
    const identity *who = arg;
    client *me = ctx->state = calloc(1, sizeof *me);
    char hello[64];
    if (me == NULL || (me->ear = ear_open(who)) == NULL) {
        free(me);
        return jzx_fail(ctx, JZX_ERR_NO_MEMORY, jzx_strerror(JZX_ERR_NO_MEMORY));
    }
    me->who = who;
    me->plan = who->plan;
    (void)snprintf(hello, sizeof hello, "/nick %c%" PRIu32 "\n/join r%" PRIu32 "\n",
                   "cws"[who->part], who -> number, who -> number % me -> plan -> rooms);
    must(ctx, jzx_connect(ctx->loop, me->plan->address, ctx->self, NULL, &me->conn));
    say(ctx, hello);
    return JZX_BEHAVIOR_OK;
}

static void client_close(jzx_context *ctx)
{
    client *me = ctx->state;
    lines_free(&me->in);
    free(me->ear);
    free(me);
}

static void speak(jzx_context *ctx)
{
    client *me = ctx->state;
    char line[LINE_CAP];
    while (me->said < me->plan->lines && me->said < me->ear->own + me->plan->window) {
        line_make(line, me->plan->bytes, me->said++, jzx_loop_now(ctx->loop));
        say(ctx, line);
    }
}

/* Crashes the room, and when that is back its own session. */
static void sabotage(jzx_context *ctx)
{
    client *me = ctx->state;
    double share = ear_share(me->ear);
    if (me->crashes == 0 && share > 0.33) {
        me->crashes = 1;
        me->missed = me->ear->report.missed;
        say(ctx, "/crash room\nstill there?\n");
    } else if (me->crashes == 1 && me->ear->back && share > 0.66) {
        me->crashes = 2;
        say(ctx, "/crash\n");
    } else if (me->crashes == 1 && me->ear->report.missed > me->missed) {
        me->missed = me->ear->report.missed;
        say(ctx, "still there?\n"); /* it may have missed itself */
    }
}

/* After each line, what comes next. */
static void act(jzx_context *ctx)
{
    client *me = ctx->state;
    if (me->state == JOINING && me->ear->inside) {
        me->state = READY;
        must(ctx, jzx_conn_pause(ctx->loop, me->conn, me->who->part == SLOW));
        must(ctx, judge_send_ready(ctx->loop, me->who->judge));
    } else if (me->who->part == SABOTEUR) {
        sabotage(ctx);
    } else if (me->state == SPEAKING && me->who->part == SPEAKER) {
        speak(ctx);
    }
    if (me->state == SPEAKING && ear_knows_all(me->ear)) {
        me->state = CONTENT;
        must(ctx, judge_send_content(ctx->loop, me->who->judge));
    }
}

static jzx_behavior_result client_on_begin(jzx_context *ctx, const jzx_message *msg, phase next)
{
    client *me = ctx->state;
    (void)msg;
    switch (next) {
    case SPEAK:
        me->state = SPEAKING;
        act(ctx);
        break;
    case READ:
        must(ctx, jzx_conn_pause(ctx->loop, me->conn, 0));
        break;
    case FINISH:
        me->state = LEAVING;
        say(ctx, "/quit\n");
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static void hear(jzx_context *ctx, const jzx_io_event *ev)
{
    client *me = ctx->state;
    char *line;
    size_t len;
    must(ctx, lines_add(&me->in, ev->data, ev->len) ? JZX_OK : JZX_ERR_NO_MEMORY);
    while ((line = lines_take(&me->in, LINE_CAP, &len)) != NULL) {
        ear_hear(me->ear, line, jzx_loop_now(ctx->loop));
        act(ctx);
    }
}

/* The end of the connection is the end of the story: until then a line might come twice. */
static jzx_behavior_result client_on_other(jzx_context *ctx, const jzx_message *msg)
{
    client *me = ctx->state;
    const jzx_io_event *ev = msg->data;
    if (ev->what == JZX_IO_DATA) {
        hear(ctx, ev);
    } else if (ev->what == JZX_IO_EOF || ev->what == JZX_IO_CLOSED) {
        me->ear->report.broken = me->state != LEAVING && me->crashes < 2;
        must(ctx, judge_send_report(ctx->loop, me->who->judge, ear_close(me->ear)));
        return JZX_BEHAVIOR_STOP;
    }
    return JZX_BEHAVIOR_OK;
}
JZX_PROTOCOL_DISPATCH(client_run, client, CLIENT_MESSAGES, client_on, client_on_other);

jzx_spawn_opts client_opts(identity *who)
{
    return (jzx_spawn_opts){.behavior = client_run,
                            .init = client_open,
                            .state = who,
                            .deinit = client_close,
                            .name = "client",
                            .flags = JZX_SPAWN_QUIET};
}
