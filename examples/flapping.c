/* A child that flaps: it loses its database, and for a while every new start fails. The pauses
 * between the starts grow, up to a limit; a sibling works on meanwhile. After a quiet period the
 * next failure begins at the shortest pause again. Run: ./flapping */
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>

enum { LOST = 1, BEAT = 2 };

typedef struct world {
    int connects; /* so far */
    int clock_starts;
    uint64_t beats;
} world;

/* Connects 2 to 5 find the database down. */
static jzx_behavior_result store_start(jzx_context *ctx, void *arg)
{
    world *w = ctx->state = arg;
    if (++w->connects >= 2 && w->connects <= 5) {
        return jzx_fail(ctx, 111, "the database is down");
    }
    printf("store connected\n");
    jzx_err err = jzx_send_after(ctx->loop, ctx->self, 300, NULL, 0, LOST, NULL);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result store(jzx_context *ctx, const jzx_message *msg)
{
    const world *w = ctx->state;
    if (msg->tag == LOST && w->connects < 7) {
        return jzx_fail(ctx, 104, "the connection was lost");
    }
    (void)jzx_loop_begin_shutdown(ctx->loop, 1000);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result clock_start(jzx_context *ctx, void *arg)
{
    world *w = ctx->state = arg;
    jzx_timer_opts every = {.delay_ms = 5, .period_ms = 5, .tag = BEAT};
    w->clock_starts++;
    jzx_err err = jzx_timer_start(ctx->loop, ctx->self, &every, NULL);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result clock_beat(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    ((world *)ctx->state)->beats += 1 + jzx_timer_missed(ctx);
    return JZX_BEHAVIOR_OK;
}

static void on_restart(void *ctx, const jzx_restart_event *event)
{
    char cause[JZX_REASON_TEXT_MAX + 32];
    (void)jzx_reason_format(event->cause, cause, sizeof cause);
    fprintf(ctx, "  %s: %s; attempt %" PRIu32 " after %" PRIu32 " ms\n", event->name, cause,
            event->attempt, event->delay_ms);
}

int main(void)
{
    world w = {0};
    jzx_observer observer = {.on_restart = on_restart};
    jzx_supervisor_spec spec = {.intensity = 10,
                                .period_ms = 10000,
                                .backoff_min_ms = 10, /* then 20, 40, 80: the factor is 2 */
                                .backoff_max_ms = 100,
                                .backoff_reset_ms = 200};
    jzx_child_spec children[] = {
        {.id = "clock", .behavior = clock_beat, .init = clock_start, .arg = &w},
        {.id = "store", .behavior = store, .init = store_start, .arg = &w}};
    jzx_supervisor_init init = {
        .name = "app", .spec = &spec, .children = children, .child_count = 2};
    jzx_loop *loop = NULL;
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_loop_set_observer(loop, &observer, stdout)) != JZX_OK ||
        (err = jzx_spawn_supervisor(loop, &init, NULL)) != JZX_OK ||
        (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "flapping: %s\n", jzx_strerror(err));
    }
    printf("clock was started once: %s, and beat all the time: %s\n",
           w.clock_starts == 1 ? "yes" : "no", w.beats >= 100 ? "yes" : "no");
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
