/* Steps 1 and 2: sending, receiving, ending; order and the urgent lane. */
#include "tour.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { GREET = 1, LEAVE = 2, BALL = 3, SERVE = 4, NUMBER = 5, ROUNDS = 500000, SEEN_MAX = 8 };

typedef struct greeter {
    char heard[32];
    bool left;
} greeter;

static jzx_behavior_result greet(jzx_context *ctx, const jzx_message *msg)
{
    greeter *me = ctx->state;
    if (msg->tag == LEAVE) {
        me->left = true;
        return JZX_BEHAVIOR_STOP;
    }
    snprintf(me->heard, sizeof me->heard, "%s", (const char *)msg->data);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result play(jzx_context *ctx, const jzx_message *msg)
{
    jzx_actor_id *opponent = ctx->state;
    jzx_err err = JZX_OK;
    if (msg->tag == SERVE) {
        err = jzx_send_u64(ctx->loop, *opponent, 1, BALL);
    } else if (msg->u64 < 2 * (uint64_t)ROUNDS) {
        err = jzx_send_u64(ctx->loop, msg->sender, msg->u64 + 1, BALL);
    } else {
        err = jzx_stop(ctx->loop, msg->sender);
        return err == JZX_OK ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_FAIL;
    }
    return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

static void ping_pong(tour *t, jzx_loop *loop)
{
    jzx_actor_id pong = JZX_NOBODY, ping = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = play, .state = &pong};
    if (!tour_ok(t, jzx_spawn(loop, &opts, &pong), "spawn") ||
        !tour_ok(t, jzx_spawn(loop, &opts, &ping), "spawn") ||
        !tour_ok(t, jzx_send_u64(loop, ping, 0, SERVE), "serve")) {
        return;
    }
    jzx_counters before, after;
    jzx_loop_counters(loop, &before);
    uint64_t start = jzx_loop_now(loop);
    if (!tour_ok(t, jzx_loop_run(loop), "run")) {
        return;
    }
    uint64_t took = jzx_loop_now(loop) - start;
    jzx_loop_counters(loop, &after);
    uint64_t handled = after.handled - before.handled;
    tour_saw(t, handled == 2 * (uint64_t)ROUNDS + 1,
             "two actors sent a ball back and forth %s times: %.1f ns per message",
             tour_count(handled), (double)took / (double)(handled > 0 ? handled : 1));
}

void step_messages(tour *t)
{
    greeter state = {0};
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = greet, .state = &state, .name = "greeter"};
    tour_say(
        t, "An actor is a function and a pointer to its state. It handles one message at a time,\n"
           "and a loop on one thread runs as many actors as you like.");
    jzx_loop *loop = tour_loop_open(t);
    if (loop == NULL) {
        return;
    }
    if (tour_ok(t, jzx_spawn(loop, &opts, &id), "spawn") &&
        tour_ok(t, jzx_send_copy(loop, id, "world", sizeof "world", GREET), "send") &&
        tour_ok(t, jzx_send_u64(loop, id, 0, LEAVE), "send")) {
        tour_saw(t, state.heard[0] == '\0', "two messages are queued; nothing has run yet");
        tour_ok(t, jzx_loop_run(loop), "run");
        tour_saw(t, strcmp(state.heard, "world") == 0, "the actor heard \"%s\"", state.heard);
        tour_saw(t, state.left, "it ended when told to, and the loop returned: no actor was left");
        tour_saw(t, jzx_send_u64(loop, id, 0, GREET) == JZX_ERR_NO_SUCH_ACTOR,
                 "its id answers JZX_ERR_NO_SUCH_ACTOR from now on, and is never used again");
        ping_pong(t, loop);
    }
    tour_loop_close(t, loop);
}

typedef struct listener {
    uint64_t seen[SEEN_MAX];
    unsigned count;
} listener;

static jzx_behavior_result listen_in(jzx_context *ctx, const jzx_message *msg)
{
    listener *me = ctx->state;
    if (me->count < SEEN_MAX) {
        me->seen[me->count++] = msg->u64;
    }
    return JZX_BEHAVIOR_OK;
}

void step_order(tour *t)
{
    static const uint64_t expected[] = {99, 1, 2, 3, 4, 5};
    listener state = {0};
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = listen_in, .state = &state, .name = "listener"};
    jzx_send_opts urgent = {.u64 = 99, .flags = JZX_SEND_VALUE | JZX_SEND_URGENT, .tag = NUMBER};
    tour_say(t, "What one actor sends to another arrives in the order it was sent. Only urgent\n"
                "messages, timers and I/O may go ahead.");
    jzx_loop *loop = tour_loop_open(t);
    if (loop == NULL) {
        return;
    }
    bool sent = tour_ok(t, jzx_spawn(loop, &opts, &id), "spawn");
    for (uint64_t i = 1; sent && i <= 5; i++) {
        sent = tour_ok(t, jzx_send_u64(loop, id, i, NUMBER), "send");
    }
    if (sent && tour_ok(t, jzx_send_with(loop, id, &urgent), "send urgently") &&
        tour_ok(t, jzx_loop_run_until_idle(loop), "run")) {
        char text[128] = "";
        for (unsigned i = 0; i < state.count; i++) {
            size_t used = strlen(text);
            snprintf(text + used, sizeof text - used, " %" PRIu64, state.seen[i]);
        }
        tour_saw(t, state.count == 6 && memcmp(state.seen, expected, sizeof expected) == 0,
                 "sent 1 2 3 4 5 and an urgent 99; handled:%s", text);
    }
    tour_loop_close(t, loop);
}
