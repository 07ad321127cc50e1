/* Links: actors that fail together. A reader and a writer share one file, so neither is of use
 * alone: they are linked, and when the writer fails the reader goes down with it. The guardian is
 * linked to the reader too, but traps exits: it hears of the end as a signal, and lives. Run:
 * ./links */
#include <jzx/jzx.h>
#include <jzx/log.h>

#include <stdio.h>

enum { WRITE = 1, PART = 2 };

typedef struct office {
    jzx_actor_id reader, writer, clerk;
} office;

static jzx_behavior_result fail_on_write(jzx_context *ctx, const jzx_message *msg)
{
    return msg->tag == WRITE ? jzx_fail(ctx, 28, "the disk is full") : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result work(jzx_context *ctx, const jzx_message *msg)
{
    const office *o = ctx->state;
    /* The clerk parts from the writer before anything happens: a link can be taken back. */
    return msg->tag == PART && jzx_unlink(ctx->loop, o->writer) != JZX_OK ? JZX_BEHAVIOR_FAIL
                                                                          : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result hire(jzx_context *ctx, void *arg)
{
    const office *o = ctx->state = arg;
    jzx_err err = jzx_link(ctx->loop, o->writer);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result guard(jzx_context *ctx, void *arg)
{
    const office *o = ctx->state = arg;
    jzx_err err = jzx_trap_exits(ctx, 1);
    err = err == JZX_OK ? jzx_link(ctx->loop, o->reader) : err;
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result hear(jzx_context *ctx, const jzx_signal *signal)
{
    const office *o = ctx->state;
    char why[JZX_REASON_TEXT_MAX + 64];
    if (signal->kind != JZX_SIGNAL_EXIT) {
        return JZX_BEHAVIOR_OK;
    }
    (void)jzx_reason_format(signal->reason, why, sizeof why);
    printf("guardian: %s of %s: %s\n", jzx_signal_name(signal->kind),
           signal->from == o->reader ? "the reader" : "somebody", why);
    return JZX_BEHAVIOR_STOP;
}

static jzx_behavior_result no_messages(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx, (void)msg;
    return JZX_BEHAVIOR_OK;
}

static const char *state_of(jzx_loop *loop, jzx_actor_id id)
{
    return jzx_state_name(jzx_actor_state(loop, id));
}

int main(void)
{
    office o = {0};
    jzx_actor_id guardian = JZX_NOBODY;
    jzx_spawn_opts writes = {.behavior = fail_on_write, .name = "writer"};
    jzx_spawn_opts reads = {.behavior = work, .init = hire, .state = &o, .name = "reader"};
    jzx_spawn_opts files = {.behavior = work, .init = hire, .state = &o, .name = "clerk"};
    jzx_spawn_opts guards = {
        .behavior = no_messages, .init = guard, .on_signal = hear, .state = &o, .name = "guardian"};
    jzx_loop *loop = NULL;
    jzx_err err;
    /* With JZX_LOG_ERROR the failures are said on standard error, too. */
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_log_to_stderr(loop, JZX_LOG_ERROR)) != JZX_OK ||
        (err = jzx_spawn(loop, &writes, &o.writer)) != JZX_OK ||
        (err = jzx_spawn(loop, &reads, &o.reader)) != JZX_OK ||
        (err = jzx_spawn(loop, &files, &o.clerk)) != JZX_OK ||
        (err = jzx_spawn(loop, &guards, &guardian)) != JZX_OK ||
        (err = jzx_send_u64(loop, o.clerk, 0, PART)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK ||
        (err = jzx_send_u64(loop, o.writer, 0, WRITE)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK) {
        fprintf(stderr, "links: %s\n", jzx_strerror(err));
    }
    printf("writer: %s, reader: %s, clerk: %s\n", state_of(loop, o.writer),
           state_of(loop, o.reader), state_of(loop, o.clerk));
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
