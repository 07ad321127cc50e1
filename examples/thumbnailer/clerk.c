/* The clerk: looks at the folder when it starts and when it changes, starts the workers, and knows
 * when to stop. */
#include "thumbnailer.h"

#include <jzx/system.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

enum { TAG_SIGNAL = 1, TAG_PATH = 2, TAG_TICK = 3 };

static int is_all_done(clerk *self)
{
    jzx_mf_stats stats;
    return atomic_load(&self->pending) == 0 && jzx_mf_stats_read(self->mf, &stats) == JZX_OK &&
           stats.entries[JZX_MF_TABLE_READY] + stats.entries[JZX_MF_TABLE_SCHEDULED] +
                   stats.entries[JZX_MF_TABLE_BLOCKED] + stats.entries[JZX_MF_TABLE_LEASE] ==
               0;
}

/* An end of the workers that was not asked for is a failure: the manifest takes no more. */
static int are_workers_lost(clerk *self, const jzx_signal *signal)
{
    if (signal == NULL || signal->kind != JZX_SIGNAL_CHILD_FAILED) {
        return 0;
    }
    char text[JZX_REASON_TEXT_MAX + 64];
    (void)jzx_reason_format(signal->reason, text, sizeof text);
    (void)fprintf(stderr, "thumbnailer: the workers failed: %s\n", text);
    self->err = JZX_ERR_CLOSED;
    return 1;
}

static jzx_behavior_result clerk_on_message(jzx_context *ctx, const jzx_message *msg)
{
    clerk *self = ctx->state;
    int stop = msg->tag == TAG_SIGNAL;
    if (msg->kind == JZX_KIND_NOTICE) {
        stop = are_workers_lost(self, jzx_message_signal(msg));
    } else if (msg->tag == TAG_PATH) {
        self->err = scan(self->mf, self->opts, &self->pending);
        stop = self->err != JZX_OK;
    } else if (msg->tag == TAG_TICK) {
        stop = self->opts->once && is_all_done(self);
    }
    if (stop) {
        jzx_system_request_stop(jzx_loop_system(ctx->loop));
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result clerk_init(jzx_context *ctx, void *arg)
{
    clerk *self = arg;
    const options *opts = self->opts;
    jzx_mf_work work = {.handler = thumbnail_make,
                        .arg = (void *)(uintptr_t)opts,
                        .kind = KIND_THUMBNAIL,
                        .concurrency = opts->concurrency,
                        .dispatcher = "pool"};
    jzx_timer_opts tick = {.delay_ms = 20, .period_ms = 20, .tag = TAG_TICK};
    jzx_actor_id workers = JZX_NOBODY;
    ctx->state = self;
    jzx_err err;
    if ((err = jzx_watch_signal(ctx->loop, SIGINT, ctx->self, TAG_SIGNAL, NULL)) != JZX_OK ||
        (err = jzx_watch_signal(ctx->loop, SIGTERM, ctx->self, TAG_SIGNAL, NULL)) != JZX_OK ||
        (err = jzx_watch_path(ctx->loop, opts->source, JZX_PATH_CREATED | JZX_PATH_CHANGED,
                              ctx->self, TAG_PATH, NULL)) != JZX_OK ||
        (err = scan(self->mf, opts, &self->pending)) != JZX_OK ||
        (err = jzx_mf_workers_spawn(ctx->loop, self->mf, &work, 1, &workers)) != JZX_OK ||
        (opts->once && (err = jzx_timer_start(ctx->loop, ctx->self, &tick, NULL)) != JZX_OK)) {
        self->err = err;
        jzx_system_request_stop(jzx_loop_system(ctx->loop));
        return JZX_BEHAVIOR_STOP;
    }
    return JZX_BEHAVIOR_OK;
}

jzx_err clerk_spawn(jzx_loop *loop, clerk *self, jzx_actor_id *out_id)
{
    jzx_spawn_opts opts = {.behavior = clerk_on_message,
                           .init = clerk_init,
                           .state = self,
                           .name = "clerk",
                           .stop_timeout_ms = 10000};
    return jzx_spawn(loop, &opts, out_id);
}
