/* Spawn it and restart it, in one call: no supervisor, no policy. The poller fails on what it does
 * not understand, and the root starts it again, with a fresh state and the same id. Beyond its
 * budget it ends, and so does the program. Run: ./respawn */
#include <jzx/jzx.h>

#include <stdio.h>
#include <stdlib.h>

enum { READ = 1 };

static jzx_behavior_result poller_start(jzx_context *ctx, void *arg)
{
    int *lives = arg;
    int *reads = calloc(1, sizeof *reads);
    printf("life %d begins\n", ++*lives);
    ctx->state = reads;
    return reads == NULL ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

static void poller_end(jzx_context *ctx)
{
    free(ctx->state);
}

static jzx_behavior_result poller(jzx_context *ctx, const jzx_message *msg)
{
    int *reads = ctx->state;
    if (msg->u64 == 13) {
        return jzx_fail(ctx, 13, "unlucky");
    }
    printf("  read %d of this life: %d\n", ++*reads, (int)msg->u64);
    return JZX_BEHAVIOR_OK;
}

int main(void)
{
    static const uint64_t values[] = {1, 13, 2, 3, 13, 4, 13, 5};
    int lives = 0;
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = poller,
                           .init = poller_start,
                           .deinit = poller_end,
                           .state = &lives,
                           .restart = JZX_RESTART_TRANSIENT,
                           .restart_intensity = 2};
    jzx_err err = jzx_loop_create(NULL, &loop);
    if (err == JZX_OK) {
        err = jzx_spawn(loop, &opts, &id);
    }
    for (size_t i = 0; err == JZX_OK && i < sizeof values / sizeof values[0]; i++) {
        err = jzx_send_u64(loop, id, values[i], READ);
    }
    if (err == JZX_OK) {
        err = jzx_loop_run(loop); /* returns when no actor is left */
    }
    printf("%s after %d lives\n", err == JZX_OK ? "done" : jzx_strerror(err), lives);
    (void)jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
