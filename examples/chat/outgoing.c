/* What goes to the client waits in a buffer of limited size; what finds no room there is not
 * written but counted, and the client is told when it reads again. */
#include "session.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static void pace(jzx_context *ctx)
{
    const session *me = ctx->state;
    (void)jzx_conn_pause(ctx->loop, me->conn, me->waiting || me->missed > 0);
}

/* 0: there is no room; JZX_IO_DRAINED follows. If the client is gone, JZX_IO_CLOSED does. */
static int try_write(jzx_context *ctx, const char *line, size_t len)
{
    const session *me = ctx->state;
    jzx_err err = jzx_conn_write(ctx->loop, me->conn, line, len);
    if (err == JZX_ERR_NO_MEMORY) {
        jzx_panic(ctx, err, "no memory to write to the client");
    }
    return err != JZX_ERR_BUFFER_FULL;
}

void session_write(jzx_context *ctx, const char *line, size_t len)
{
    session *me = ctx->state;
    if ((me->missed > 0 || !try_write(ctx, line, len)) && me->missed++ == 0) {
        pace(ctx);
    }
}

void session_tell(jzx_context *ctx, const char *format, ...)
{
    char line[TOLD_LONGEST];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    session_write(ctx, line, len < TOLD_LONGEST ? (size_t)len : TOLD_LONGEST - 1);
}

void session_tell_missed(jzx_context *ctx)
{
    session *me = ctx->state;
    char line[64];
    int len = snprintf(line, sizeof line, "* you missed %" PRIu64 " lines\n", me->missed);
    if (me->missed > 0 && try_write(ctx, line, (size_t)len)) {
        me->missed = 0;
        pace(ctx);
    }
}

void session_wait(jzx_context *ctx, int waiting)
{
    ((session *)ctx->state)->waiting = waiting;
    pace(ctx);
}
