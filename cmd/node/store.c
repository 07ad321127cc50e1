/* The store: a database that blocks on a thread of its own, a cache before it, and the audit. */
#define _POSIX_C_SOURCE 200809L
#include "node.h"

#include <jzx/bus.h>
#include <jzx/registry.h>

#include <time.h>

enum {
    KEPT = 200, /* prices in the cache; an item has one place */
    READ_US = 700,
    SLOW_READ_US = 60000,
    SLOW_NS = 2000000000,
    DATABASE_MS = 1000
};

typedef struct database {
    node *n;
    uint64_t slow_until;
    uint64_t reads;
} database;

jzx_behavior_result database_init(jzx_context *ctx, void *arg)
{
    return node_state(ctx, arg, sizeof(database));
}

jzx_behavior_result database_work(jzx_context *ctx, const jzx_message *msg)
{
    database *me = ctx->state;
    uint64_t now = jzx_loop_now(ctx->loop);
    if (msg->tag == TROUBLE_SLOW) {
        me->slow_until = now + SLOW_NS;
    } else if (msg->tag == TROUBLE_FAIL) {
        return jzx_fail(ctx, 5, "the disk has a bad block");
    } else if (msg->tag == TAG_PRICE && jzx_is_ask(ctx)) {
        struct timespec pause = {.tv_nsec =
                                     now < me->slow_until ? SLOW_READ_US * 1000 : READ_US * 1000};
        nanosleep(&pause, NULL);
        me->reads++;
        uint64_t price = 100 + msg->u64 * 7 % 900;
        (void)jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, msg->u64 << 32 | price, TAG_PRICE);
    }
    return JZX_BEHAVIOR_OK;
}

/* Prices by item. A place holds one of the items that share it. */
typedef struct cache {
    node *n;
    uint64_t hits;
    uint64_t misses;
    uint64_t price[KEPT]; /* item in the upper half, price in the lower; 0: none */
} cache;

jzx_behavior_result cache_init(jzx_context *ctx, void *arg)
{
    return node_state(ctx, arg, sizeof(cache));
}

/* Who asked is kept in the ask of the database, and answered when that is. */
static jzx_behavior_result cache_miss(jzx_context *ctx, uint64_t item)
{
    jzx_request request = jzx_request_keep(ctx);
    jzx_ask_opts opts = {.u64 = item,
                         .flags = JZX_SEND_VALUE,
                         .tag = TAG_PRICE,
                         .timeout_ms = DATABASE_MS,
                         .arg = (void *)(uintptr_t)request};
    if (jzx_ask(ctx->loop, jzx_whereis(ctx->loop, "database"), &opts, NULL) != JZX_OK) {
        (void)jzx_request_drop(ctx, request);
    }
    return JZX_BEHAVIOR_OK;
}

/* The database has answered, or not. */
static jzx_behavior_result cache_fill(jzx_context *ctx, const jzx_message *msg,
                                      const jzx_reply *reply)
{
    cache *me = ctx->state;
    jzx_request request = (jzx_request)(uintptr_t)reply->arg;
    if (reply->outcome != JZX_OUTCOME_REPLIED) {
        (void)jzx_request_drop(ctx, request);
        return JZX_BEHAVIOR_OK;
    }
    me->price[(msg->u64 >> 32) % KEPT] = msg->u64;
    (void)jzx_reply_u64(ctx, request, msg->u64, TAG_PRICE);
    return JZX_BEHAVIOR_OK;
}

jzx_behavior_result cache_work(jzx_context *ctx, const jzx_message *msg)
{
    cache *me = ctx->state;
    const jzx_reply *reply = jzx_reply_of(ctx);
    if (reply != NULL) {
        return cache_fill(ctx, msg, reply);
    }
    if (msg->tag == TROUBLE_FAIL) {
        return jzx_fail(ctx, 9, "two prices for one item");
    }
    if (msg->tag != TAG_PRICE || !jzx_is_ask(ctx)) {
        return JZX_BEHAVIOR_OK;
    }
    uint64_t known = me->price[msg->u64 % KEPT];
    if (known >> 32 != msg->u64 || known == 0) {
        me->misses++;
        return cache_miss(ctx, msg->u64);
    }
    me->hits++;
    (void)jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, known, TAG_PRICE);
    return JZX_BEHAVIOR_OK;
}

/* Counts what became of the orders. It hears of them by the bus, at its own pace. */
typedef struct audit {
    node *n;
    uint64_t paid;
    uint64_t failed;
    uint64_t missed;
} audit;

jzx_behavior_result audit_init(jzx_context *ctx, void *arg)
{
    if (node_state(ctx, arg, sizeof(audit)) != JZX_BEHAVIOR_OK) {
        return JZX_BEHAVIOR_FAIL;
    }
    audit *me = ctx->state;
    jzx_sub_ref ref;
    jzx_err err = jzx_bus_subscribe(ctx->loop, me->n->bus, "orders/*", NULL, &ref);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, (int32_t)err, jzx_strerror(err));
}

jzx_behavior_result audit_work(jzx_context *ctx, const jzx_message *msg)
{
    audit *me = ctx->state;
    if (msg->kind == JZX_KIND_EVENT) {
        me->paid += msg->tag == TAG_PAID;
        me->failed += msg->tag == TAG_FAILED;
    } else if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_LAGGED) {
        const jzx_lag_notice *lag = msg->data;
        me->missed += lag->lost;
    }
    return JZX_BEHAVIOR_OK;
}
