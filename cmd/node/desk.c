/* The desk: clerks that see an order through, and the mailer, which is slow. */
#define _POSIX_C_SOURCE 200809L
#include "node.h"

#include <jzx/breaker.h>
#include <jzx/bus.h>
#include <jzx/registry.h>

#include <time.h>

enum {
    ITEMS = 400,
    PRICE_MS = 250, /* how long a clerk waits for a price */
    CHARGE_MS = 400,
    RECEIPT_US = 1500,
    SLOW_RECEIPT_US = 20000,
    SLOW_NS = 2000000000
};

typedef struct clerk {
    node *n;
    uint64_t seed;
} clerk;

jzx_behavior_result clerk_init(jzx_context *ctx, void *arg)
{
    if (node_state(ctx, arg, sizeof(clerk)) != JZX_BEHAVIOR_OK) {
        return JZX_BEHAVIOR_FAIL;
    }
    clerk *me = ctx->state;
    me->seed = ctx->self;
    jzx_err err = jzx_group_join(ctx->loop, "clerks", ctx->self);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, (int32_t)err, jzx_strerror(err));
}

/* The order ends here, well or not. */
static jzx_behavior_result finish(jzx_context *ctx, uint64_t order, bool paid)
{
    node *n = ((clerk *)ctx->state)->n;
    atomic_fetch_add(paid ? &n->paid : &n->failed, 1);
    /* A mailer without room drops its oldest letters: that is its policy, see tree.c. */
    if (paid &&
        jzx_send_u64(ctx->loop, jzx_whereis(ctx->loop, "mailer"), order, TAG_RECEIPT) != JZX_OK) {
        atomic_fetch_add(&n->no_receipt, 1); /* there is none just now */
    }
    jzx_err err = jzx_bus_publish_u64(n->bus, paid ? n->paid_topic : n->failed_topic, order,
                                      paid ? TAG_PAID : TAG_FAILED);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, (int32_t)err, jzx_strerror(err));
}

static jzx_behavior_result ask(jzx_context *ctx, const char *whom, uint32_t tag, uint64_t value,
                               uint32_t timeout_ms, uint64_t order)
{
    jzx_ask_opts opts = {.u64 = value,
                         .flags = JZX_SEND_VALUE,
                         .tag = tag,
                         .timeout_ms = timeout_ms,
                         .arg = (void *)(uintptr_t)order};
    jzx_err err = jzx_ask(ctx->loop, jzx_whereis(ctx->loop, whom), &opts, NULL);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : finish(ctx, order, false);
}

/* An order: its price from the cache, then its payment from the bank, then done. What the order is
 * rides along in the ask, so a clerk has many at a time and keeps no list of them. */
jzx_behavior_result clerk_work(jzx_context *ctx, const jzx_message *msg)
{
    clerk *me = ctx->state;
    const jzx_reply *reply = jzx_reply_of(ctx);
    if (reply == NULL) {
        if (msg->tag != TAG_ORDER) {
            return JZX_BEHAVIOR_OK;
        }
        uint32_t item = node_chance(&me->seed, ITEMS);
        item = item * node_chance(&me->seed, ITEMS) / ITEMS; /* some are wanted more than others */
        return ask(ctx, "cache", TAG_PRICE, item, PRICE_MS, msg->u64);
    }
    uint64_t order = (uint64_t)(uintptr_t)reply->arg;
    if (jzx_call_failed(msg, NULL)) {
        return finish(ctx, order, false);
    }
    if (reply->tag == TAG_PRICE) {
        return ask(ctx, "pay", TAG_CHARGE, order, CHARGE_MS, order);
    }
    return finish(ctx, order, true);
}

typedef struct mailer {
    node *n;
    uint64_t slow_until; /* on the loop's clock */
    uint64_t sent;
} mailer;

jzx_behavior_result mailer_init(jzx_context *ctx, void *arg)
{
    return node_state(ctx, arg, sizeof(mailer));
}

/* Writes a receipt, and blocks meanwhile: it has a thread of its own. */
jzx_behavior_result mailer_work(jzx_context *ctx, const jzx_message *msg)
{
    mailer *me = ctx->state;
    uint64_t now = jzx_loop_now(ctx->loop);
    if (msg->tag == TROUBLE_SLOW) {
        me->slow_until = now + SLOW_NS;
    } else if (msg->tag == TAG_RECEIPT) {
        struct timespec pause = {.tv_nsec = now < me->slow_until ? SLOW_RECEIPT_US * 1000
                                                                 : RECEIPT_US * 1000};
        nanosleep(&pause, NULL);
        me->sent++;
    }
    return JZX_BEHAVIOR_OK;
}
