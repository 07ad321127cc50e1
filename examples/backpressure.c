/* A fast producer and a slow consumer with a small mailbox. When a send is refused the producer
 * keeps the item, asks for a room notice and goes on when it comes: nothing is lost, nothing grows
 * and no actor polls. Run: ./backpressure */
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>

enum { ITEM = 1, GO = 2, CAP = 16, ITEMS = 1000 };

typedef struct producer {
    jzx_actor_id consumer;
    uint64_t next;
    uint64_t refused;
} producer;

typedef struct consumer {
    uint64_t expected;
    uint32_t deepest; /* the most that ever waited */
} consumer;

static jzx_behavior_result produce(jzx_context *ctx, const jzx_message *msg)
{
    producer *me = ctx->state;
    if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_ROOM) {
        const jzx_room_notice *notice = msg->data;
        if (notice->err != JZX_OK) {
            return JZX_BEHAVIOR_FAIL; /* the consumer is gone */
        }
    }
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

static jzx_behavior_result consume(jzx_context *ctx, const jzx_message *msg)
{
    consumer *me = ctx->state;
    jzx_actor_facts facts;
    if (jzx_actor_inspect(ctx->loop, ctx->self, &facts) != JZX_OK || msg->u64 != me->expected) {
        return JZX_BEHAVIOR_FAIL;
    }
    if (facts.ordinary > me->deepest) {
        me->deepest = facts.ordinary;
    }
    me->expected++;
    return me->expected == ITEMS ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

int main(void)
{
    consumer slow = {0};
    producer fast = {0};
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts consumer_opts = {.behavior = consume, .state = &slow, .mailbox_cap = CAP};
    jzx_spawn_opts producer_opts = {.behavior = produce, .state = &fast};
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &consumer_opts, &fast.consumer)) != JZX_OK ||
        (err = jzx_spawn(loop, &producer_opts, &id)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 0, GO)) != JZX_OK || (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "backpressure: %s\n", jzx_strerror(err));
    } else {
        printf("%" PRIu64 " of %d items arrived in order\nat most %d waited: %s\n"
               "the producer had to wait: %s\n",
               slow.expected, ITEMS, CAP, slow.deepest <= CAP ? "yes" : "no",
               fast.refused > 0 ? "yes" : "no");
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK && slow.expected == ITEMS && slow.deepest <= CAP ? 0 : 1;
}
