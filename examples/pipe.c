/* A descriptor that is not a socket: an actor copies one pipe into another. It watches for reading,
 * and when the other side is full it watches for writing instead, so it never spins and never
 * blocks. It reads and writes through the loop, so the same code runs in simulation. Run: ./pipe */
#define _GNU_SOURCE /* pipe2() */
#include <jzx/jzx.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { READY = 1, TOTAL = 1000000 };

typedef struct copier {
    int from, to;
    jzx_io_ref in, out;
    char buf[4096];
    size_t len, at; /* what is in it, and how much of that is written */
    uint64_t copied;
    uint32_t waits; /* how often the other side was full */
} copier;

static jzx_err flush(jzx_context *ctx, copier *me)
{
    size_t n = 0;
    jzx_err err = JZX_OK;
    while (me->at < me->len && (err = jzx_fd_write(ctx->loop, me->to, me->buf + me->at,
                                                   me->len - me->at, &n)) == JZX_OK) {
        me->at += n;
        me->copied += n;
    }
    return err;
}

/* Watches what it waits for, and only that. */
static jzx_err wait_for(jzx_context *ctx, copier *me, jzx_io_ref one, jzx_io_ref other)
{
    uint32_t bits = one == me->in ? JZX_IO_READ : JZX_IO_WRITE;
    jzx_err err = jzx_watch_update(ctx->loop, other, 0);
    return err == JZX_OK ? jzx_watch_update(ctx->loop, one, bits) : err;
}

static jzx_behavior_result copy(jzx_context *ctx, const jzx_message *msg)
{
    copier *me = ctx->state;
    size_t n = 0;
    (void)msg;
    jzx_err err = flush(ctx, me);
    while (err == JZX_OK &&
           (err = jzx_fd_read(ctx->loop, me->from, me->buf, sizeof me->buf, &n)) == JZX_OK) {
        if (n == 0) { /* end of file */
            return JZX_BEHAVIOR_STOP;
        }
        me->at = 0;
        me->len = n;
        err = flush(ctx, me);
    }
    int full = me->at < me->len;
    me->waits += full ? 1 : 0;
    err = err != JZX_ERR_AGAIN ? err
          : full               ? wait_for(ctx, me, me->out, me->in)
                               : wait_for(ctx, me, me->in, me->out);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

int main(void)
{
    static char bytes[65536], sink[65536];
    int a[2], b[2];
    copier me = {0};
    jzx_spawn_opts opts = {.behavior = copy, .state = &me};
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err = pipe2(a, O_NONBLOCK | O_CLOEXEC) != 0 || pipe2(b, O_NONBLOCK | O_CLOEXEC) != 0
                      ? JZX_ERR_NO_FDS
                      : jzx_loop_create(NULL, &loop);
    me.from = a[0], me.to = b[1];
    if (err != JZX_OK || (err = jzx_spawn(loop, &opts, &id)) != JZX_OK ||
        (err = jzx_watch_fd(loop, a[0], id, JZX_IO_READ, READY, &me.in)) != JZX_OK ||
        (err = jzx_watch_fd(loop, b[1], id, 0, READY, &me.out)) != JZX_OK) {
        fprintf(stderr, "pipe: %s\n", jzx_strerror(err));
        return 1;
    }
    ssize_t in = 0, out = 0, n = 0;
    for (int turn = 0; err == JZX_OK && out < TOTAL; turn++) {
        size_t left = (size_t)(TOTAL - in) < sizeof bytes ? (size_t)(TOTAL - in) : sizeof bytes;
        in += (n = write(a[1], bytes, left)) > 0 ? n : 0;
        err = jzx_loop_run_until_idle(loop);
        /* A reader that is half as quick as the writer. */
        out += turn % 2 == 1 && (n = read(b[0], sink, sizeof sink)) > 0 ? n : 0;
    }
    (void)close(a[1]);
    err = err == JZX_OK ? jzx_loop_run(loop) : err; /* it ends at the end of the file */
    printf("%" PRIu64 " bytes; it had to wait for room: %s\n", me.copied,
           me.waits > 0 ? "yes" : "no");
    jzx_loop_destroy(loop);
    return err == JZX_OK && me.copied == TOTAL ? 0 : 1;
}
