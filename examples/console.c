/* A program with a console of its own, by one call: two workers under a supervisor count, one of
 * them fails now and then, and a browser shows it. Nobody else is served than this machine.
 * Run: ./console, open what it prints, and stop it with Ctrl-C. */
#include <jzx/console.h>
#include <jzx/control.h>
#include <jzx/jzx.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct counter {
    uint32_t count;
    uint32_t fails_at; /* 0: never */
} counter;

static jzx_behavior_result counter_init(jzx_context *ctx, void *arg)
{
    counter *me = calloc(1, sizeof *me);
    jzx_timer_opts tick = {.delay_ms = 50, .period_ms = 50};
    if (me == NULL || jzx_timer_start(ctx->loop, ctx->self, &tick, NULL) != JZX_OK) {
        free(me);
        return jzx_fail(ctx, JZX_ERR_NO_MEMORY, "no memory");
    }
    me->fails_at = *(const uint32_t *)arg;
    ctx->state = me;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result counter_run(jzx_context *ctx, const jzx_message *msg)
{
    counter *me = ctx->state;
    (void)msg;
    me->count++;
    return me->count == me->fails_at ? jzx_fail(ctx, 1, "I cannot count any further")
                                     : JZX_BEHAVIOR_OK;
}

static void counter_deinit(jzx_context *ctx)
{
    free(ctx->state);
}

static jzx_behavior_result on_interrupt(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    jzx_loop_begin_shutdown(ctx->loop, 1000);
    return JZX_BEHAVIOR_OK;
}

int main(void)
{
    static uint32_t never = 0;
    static uint32_t sometimes = 40;
    jzx_supervisor_spec spec = {.intensity = 1000, .backoff_min_ms = 100};
    jzx_child_spec children[] = {{.id = "steady",
                                  .behavior = counter_run,
                                  .init = counter_init,
                                  .arg = &never,
                                  .deinit = counter_deinit},
                                 {.id = "moody",
                                  .behavior = counter_run,
                                  .init = counter_init,
                                  .arg = &sometimes,
                                  .deinit = counter_deinit}};
    jzx_supervisor_init counters = {
        .name = "counters", .spec = &spec, .children = children, .child_count = 2};
    jzx_spawn_opts interrupts = {.behavior = on_interrupt, .name = "interrupts"};
    jzx_control_opts look = {.name = "counters", .allow = JZX_CONTROL_RESTART | JZX_CONTROL_SEND};
    jzx_console_opts page = {0}; /* any free port of 127.0.0.1, a token that is made up */
    jzx_control *control = NULL;
    jzx_console *console = NULL;
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if ((err = jzx_loop_create(NULL, &loop)) == JZX_OK &&
        (err = jzx_spawn(loop, &interrupts, &id)) == JZX_OK &&
        (err = jzx_watch_signal(loop, SIGINT, id, 0, NULL)) == JZX_OK &&
        (err = jzx_spawn_supervisor(loop, &counters, NULL)) == JZX_OK &&
        (err = jzx_control_start(loop, &look, &control)) == JZX_OK &&
        (err = jzx_console_start(control, &page, &console)) == JZX_OK) { /* the one call */
        printf("console: %s\n", jzx_console_url(console));
        err = jzx_loop_run(loop);
    }
    jzx_console_stop(console);
    jzx_control_stop(control);
    jzx_loop_destroy(loop);
    if (err != JZX_OK) {
        fprintf(stderr, "console: %s\n", jzx_strerror(err));
        return 1;
    }
    puts("stopped");
    return 0;
}
