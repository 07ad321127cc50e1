/* Step 4: timers are messages too. */
#include "tour.h"

#include <inttypes.h>

enum { TICK = 1, NEVER = 2, PERIOD_MS = 10, STALL_MS = 35, TICKS = 6 };

typedef struct metronome {
    unsigned ticks;
    uint64_t missed;
    uint64_t worst_late_ns;
    unsigned early;
    unsigned never;
    jzx_timer_id cancelled;
    jzx_err cancel_err;
} metronome;

/* What a behavior should not do: keep the loop to itself. */
static void stall(jzx_loop *loop, uint64_t ms)
{
    uint64_t until = jzx_loop_now(loop) + ms * 1000000u;
    while (jzx_loop_now(loop) < until) {
    }
}

static jzx_behavior_result tick(jzx_context *ctx, const jzx_message *msg)
{
    metronome *me = ctx->state;
    if (msg->tag == NEVER) {
        me->never++;
        return JZX_BEHAVIOR_OK;
    }
    uint64_t now = jzx_loop_now(ctx->loop);
    me->ticks++;
    me->missed += jzx_timer_missed(ctx);
    me->early += now < msg->deadline_ns;
    if (now > msg->deadline_ns && now - msg->deadline_ns > me->worst_late_ns && me->ticks <= 2) {
        me->worst_late_ns = now - msg->deadline_ns;
    }
    if (me->ticks == 1) {
        me->cancel_err = jzx_cancel_timer(ctx->loop, me->cancelled);
    } else if (me->ticks == 2) {
        stall(ctx->loop, STALL_MS);
    }
    return me->ticks == TICKS ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

void step_timers(tour *t)
{
    metronome state = {0};
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = tick, .state = &state, .name = "metronome"};
    jzx_timer_opts timer = {.delay_ms = PERIOD_MS, .period_ms = PERIOD_MS, .tag = TICK};
    tour_say(t,
             "A timer is a message that comes later, once or every so often. A periodic one never\n"
             "piles up: ticks that could not be handled are counted, not queued.");
    jzx_loop *loop = tour_loop_open(t);
    if (loop == NULL) {
        return;
    }
    if (tour_ok(t, jzx_spawn(loop, &opts, &id), "spawn") &&
        tour_ok(t, jzx_timer_start(loop, id, &timer, NULL), "start a timer") &&
        tour_ok(t, jzx_send_after(loop, id, 30, NULL, 0, NEVER, &state.cancelled), "arm") &&
        tour_ok(t, jzx_loop_run(loop), "run")) {
        tour_saw(t, state.ticks == TICKS && state.early == 0,
                 "%u ticks of %d ms came, none early; the first two %" PRIu64 " us late at most",
                 state.ticks, PERIOD_MS, state.worst_late_ns / 1000);
        tour_saw(t, state.missed >= 2,
                 "the actor kept the loop busy for %d ms: %" PRIu64 " ticks missed, and counted",
                 STALL_MS, state.missed);
        tour_saw(t, state.cancel_err == JZX_OK && state.never == 0,
                 "a timer that was cancelled did not fire");
        tour_saw(t, jzx_cancel_timer(loop, state.cancelled) == JZX_ERR_ALREADY,
                 "cancelling it again says JZX_ERR_ALREADY");
    }
    tour_loop_close(t, loop);
}
