/* A one-shot timer, a periodic one that is cancelled after five ticks, and one that is cancelled
 * before it fires. Timers arrive as ordinary messages of kind TIMER. Run: ./timers */
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>

enum { TICK = 1, ALARM = 2, NEVER = 3 };

typedef struct clockwork {
    jzx_timer_id never;
    uint64_t periods; /* ticks that came, and ticks that a busy machine made us miss */
    int alarms;
} clockwork;

static jzx_behavior_result on_timer(jzx_context *ctx, const jzx_message *msg)
{
    clockwork *me = ctx->state;
    switch (msg->tag) {
    case TICK:
        me->periods += 1 + jzx_timer_missed(ctx);
        if (me->periods < 5) {
            return JZX_BEHAVIOR_OK;
        }
        printf("five periods have passed\n");
        /* Cancelling the timer in hand is fine: OK means that no further message comes. */
        if (jzx_cancel_timer(ctx->loop, jzx_timer_current(ctx)) != JZX_OK ||
            jzx_cancel_timer(ctx->loop, me->never) != JZX_OK) {
            return JZX_BEHAVIOR_FAIL;
        }
        return JZX_BEHAVIOR_OK;
    case ALARM:
        me->alarms++;
        printf("alarm: %s\n", (const char *)msg->data);
        return JZX_BEHAVIOR_STOP;
    default:
        printf("a cancelled timer fired\n");
        return JZX_BEHAVIOR_FAIL;
    }
}

int main(void)
{
    static char text[] = "time to go"; /* outlives the timer, so it need not be freed */
    clockwork work = {0};
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = on_timer, .state = &work};
    jzx_timer_opts tick = {.delay_ms = 10, .period_ms = 10, .tag = TICK};
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &opts, &id)) != JZX_OK ||
        (err = jzx_timer_start(loop, id, &tick, NULL)) != JZX_OK ||
        (err = jzx_send_after(loop, id, 30000, NULL, 0, NEVER, &work.never)) != JZX_OK ||
        (err = jzx_send_after(loop, id, 300, text, sizeof text, ALARM, NULL)) != JZX_OK ||
        (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "timers: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK && work.alarms == 1 && work.periods >= 5 ? 0 : 1;
}
