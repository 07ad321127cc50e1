/* Step 3: what happens when a mailbox is full. */
#include "tour.h"

#include <inttypes.h>

enum { ITEM = 1, GO = 2, CAP = 8, ITEMS = 40 };

typedef struct consumer {
    uint64_t count;
    uint64_t out_of_order;
    uint32_t deepest;
} consumer;

typedef struct producer {
    jzx_actor_id consumer;
    uint64_t next;
    unsigned refused;
    unsigned notices;
} producer;

static jzx_behavior_result consume(jzx_context *ctx, const jzx_message *msg)
{
    consumer *me = ctx->state;
    jzx_actor_facts facts;
    if (jzx_actor_inspect(ctx->loop, ctx->self, &facts) != JZX_OK) {
        return JZX_BEHAVIOR_FAIL;
    }
    /* The message in hand has left its slot, but it was waiting just before. */
    me->deepest = facts.ordinary + 1 > me->deepest ? facts.ordinary + 1 : me->deepest;
    me->out_of_order += msg->u64 != me->count;
    me->count++;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result produce(jzx_context *ctx, const jzx_message *msg)
{
    producer *me = ctx->state;
    me->notices += msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_ROOM;
    while (me->next < ITEMS) {
        jzx_err err = jzx_send_u64(ctx->loop, me->consumer, me->next, ITEM);
        if (err == JZX_ERR_MAILBOX_FULL) {
            me->refused++;
            err = jzx_notify_room(ctx->loop, me->consumer);
            return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
        }
        if (err != JZX_OK) {
            return JZX_BEHAVIOR_FAIL;
        }
        me->next++;
    }
    return JZX_BEHAVIOR_STOP;
}

void step_backpressure(tour *t)
{
    consumer slow = {0};
    producer fast = {0};
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts slow_opts = {.behavior = consume, .state = &slow, .mailbox_cap = CAP};
    jzx_spawn_opts fast_opts = {.behavior = produce, .state = &fast};
    tour_say(
        t, "Mailboxes are bounded. A send to a full one is refused at once, the sender keeps the\n"
           "message, and it can ask to be told when there is room again.");
    jzx_loop *loop = tour_loop_open(t);
    if (loop == NULL) {
        return;
    }
    if (tour_ok(t, jzx_spawn(loop, &slow_opts, &fast.consumer), "spawn") &&
        tour_ok(t, jzx_spawn(loop, &fast_opts, &id), "spawn") &&
        tour_ok(t, jzx_send_u64(loop, id, 0, GO), "send") &&
        tour_ok(t, jzx_loop_run_until_idle(loop), "run")) {
        tour_saw(t, fast.refused > 0, "%d messages into a mailbox of %d: refused %u times", ITEMS,
                 CAP, fast.refused);
        tour_saw(t, fast.notices == fast.refused, "room notices that followed: %u", fast.notices);
        tour_saw(t, slow.deepest <= CAP, "never more than %" PRIu32 " waiting", slow.deepest);
        tour_saw(t, slow.count == ITEMS && slow.out_of_order == 0,
                 "all %" PRIu64 " arrived, in order", slow.count);
    }
    tour_loop_close(t, loop);
}
