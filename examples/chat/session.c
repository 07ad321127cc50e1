/* A session: one actor for one client. What the client says is done by commands.c; what is said in
 * its room goes to the client. Nothing in here grows without bound: a client that does not read
 * misses lines and is told how many; one that says more than its room can take is not read from. */
#include "session.h"

#include <jzx/bus.h>
#include <jzx/protocol.h>
#include <jzx/registry.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static jzx_behavior_result session_open(jzx_context *ctx, void *arg)
{
    session *me = ctx->state = calloc(1, sizeof *me);
    if (me == NULL) {
        return result_of(ctx, JZX_ERR_NO_MEMORY);
    }
    me->all = arg;
    /* Nobody can choose a nick with a dot, and nobody else has our slot while we live. */
    (void)snprintf(me->nick.text, sizeof me->nick.text, "@guest.%" PRIu32, jzx_id_slot(ctx->self));
    jzx_err err = jzx_register(ctx->loop, me->nick.text, ctx->self);
    if (err != JZX_OK) {
        free(me);
    }
    return result_of(ctx, err);
}

/* All else takes care of itself: the connection is flushed and closed, nick, group and subscription
 * are given up, and whoever watches the group is told. */
static void session_close(jzx_context *ctx)
{
    session *me = ctx->state;
    lines_free(&me->in);
    free(me);
}

jzx_behavior_result session_go_on(jzx_context *ctx)
{
    session *me = ctx->state;
    char *line;
    size_t len;
    while (!me->waiting && (line = lines_take(&me->in, LINE_LONGEST, &len)) != NULL) {
        said what = session_does(ctx, line, len);
        if (what == SAY_NO_MORE) {
            return JZX_BEHAVIOR_STOP;
        }
        if (what == SAY_AGAIN) {
            lines_put_back(&me->in, line, len);
        }
    }
    return me->ended && !me->waiting ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

/* Of its connection it hears from the listener, or by what the client says at once. */
static void meet(jzx_context *ctx, jzx_io_ref conn)
{
    session *me = ctx->state;
    if (me->conn == 0) {
        me->conn = conn;
        session_tell(ctx, "* welcome, %s; /help says what you can do\n", me->nick.text + 1);
    }
}

static jzx_behavior_result session_on_serve(jzx_context *ctx, const jzx_message *msg,
                                            jzx_io_ref conn)
{
    (void)msg;
    meet(ctx, conn);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result session_on_heard(jzx_context *ctx, const jzx_message *msg,
                                            const char *line, size_t len)
{
    (void)msg;
    session_write(ctx, line, len);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result on_io(jzx_context *ctx, const jzx_io_event *ev)
{
    session *me = ctx->state;
    meet(ctx, ev->ref);
    if (ev->what == JZX_IO_DATA && !lines_add(&me->in, ev->data, ev->len)) {
        return result_of(ctx, JZX_ERR_NO_MEMORY);
    }
    if (ev->what == JZX_IO_CLOSED) {
        return JZX_BEHAVIOR_STOP;
    }
    if (ev->what == JZX_IO_DRAINED) {
        session_tell_missed(ctx);
    }
    me->ended |= ev->what == JZX_IO_EOF;
    return session_go_on(ctx);
}

static jzx_behavior_result session_on_other(jzx_context *ctx, const jzx_message *msg)
{
    session *me = ctx->state;
    if (msg->kind == JZX_KIND_IO) {
        return on_io(ctx, msg->data);
    }
    if (msg->tag == JZX_TAG_LAGGED) { /* the room was too fast for us */
        me->missed += ((const jzx_lag_notice *)msg->data)->lost;
        session_tell_missed(ctx);
    } else if (msg->tag == JZX_TAG_ROOM) { /* the room has room for what waits */
        session_wait(ctx, 0);
        return session_go_on(ctx);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result session_on_signal(jzx_context *ctx, const jzx_signal *signal)
{
    const session *me = ctx->state;
    if (signal->kind == JZX_SIGNAL_PRE_STOP && signal->reason->kind == JZX_REASON_SHUTDOWN) {
        session_tell(ctx, "* the server is closed; good-bye\n");
    } else if (signal->kind == JZX_SIGNAL_TERMINATED) {
        session_tell(ctx, "* %s is closed\n", me->room_name.text);
        session_leave(ctx);
    }
    return JZX_BEHAVIOR_OK;
}

JZX_PROTOCOL_DISPATCH(session_run, session, SESSION_MESSAGES, session_on, session_on_other);

jzx_child_spec session_spec(void)
{
    return (jzx_child_spec){.id = "session",
                            .behavior = session_run,
                            .init = session_open,
                            .deinit = session_close,
                            .on_signal = session_on_signal,
                            .mode = JZX_TEMPORARY};
}
