/* A Jazz loop inside a libuv program: a uv_poll on jzx_loop_fd(), a uv_timer for the next deadline
 * and a uv_prepare that asks for that deadline before every wait. Build with -luv as well.
 * Run: ./embed_uv */
#define _POSIX_C_SOURCE 200809L
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>
#include <uv.h>

enum { BEAT = 1, ANSWER = 2, BEATS = 3 };

typedef struct app {
    jzx_loop *jazz;
    jzx_actor_id actor;
    uv_poll_t poll;
    uv_timer_t deadline;
    uv_prepare_t prepare;
    uv_timer_t heart; /* the host's own business: a beat every 20 ms */
    uint64_t beats, answers;
    int failed;
} app;

static jzx_behavior_result beat(jzx_context *ctx, const jzx_message *msg)
{
    app *me = ctx->state;
    if (msg->tag == BEAT) {
        printf("actor: beat %" PRIu64 "\n", msg->u64);
        jzx_err err = jzx_send_after(ctx->loop, ctx->self, 5, NULL, 0, ANSWER, NULL);
        return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
    }
    printf("actor: answer %" PRIu64 "\n", ++me->answers);
    return me->answers == BEATS ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

static void step(app *me)
{
    me->failed |= jzx_loop_step(me->jazz, 0) != JZX_OK;
    if (me->failed || jzx_loop_done(me->jazz)) {
        uv_stop(me->prepare.loop);
    }
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    step(poll->data);
}

static void on_deadline(uv_timer_t *timer)
{
    step(timer->data);
}

/* Runs right before libuv waits, whatever ran before it: the one place to set the alarm. */
static void before_wait(uv_prepare_t *prepare)
{
    app *me = prepare->data;
    int ms = jzx_loop_timeout_ms(me->jazz);
    uv_timer_stop(&me->deadline);
    if (ms >= 0) {
        uv_timer_start(&me->deadline, on_deadline, (uint64_t)ms, 0);
    }
}

static void on_heart(uv_timer_t *timer)
{
    app *me = timer->data;
    int due = me->beats < BEATS && me->beats == me->answers; /* one at a time */
    if (due && jzx_send_u64(me->jazz, me->actor, ++me->beats, BEAT) != JZX_OK) {
        me->failed = 1;
    }
}

int main(void)
{
    app me = {0};
    uv_loop_t *uv = uv_default_loop();
    jzx_spawn_opts opts = {.behavior = beat, .state = &me};
    if (jzx_loop_create(NULL, &me.jazz) != JZX_OK ||
        jzx_spawn(me.jazz, &opts, &me.actor) != JZX_OK ||
        uv_poll_init(uv, &me.poll, jzx_loop_fd(me.jazz)) != 0) {
        fprintf(stderr, "embed_uv: cannot start\n");
        jzx_loop_destroy(me.jazz);
        return 1;
    }
    uv_timer_init(uv, &me.deadline);
    uv_timer_init(uv, &me.heart);
    uv_prepare_init(uv, &me.prepare);
    me.poll.data = me.deadline.data = me.prepare.data = me.heart.data = &me;
    uv_poll_start(&me.poll, UV_READABLE, on_ready);
    uv_prepare_start(&me.prepare, before_wait);
    uv_timer_start(&me.heart, on_heart, 20, 20);
    uv_run(uv, UV_RUN_DEFAULT);
    uv_poll_stop(&me.poll); /* before the loop closes its descriptor */
    jzx_loop_destroy(me.jazz);
    return me.failed || me.answers != BEATS;
}
