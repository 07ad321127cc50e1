/* What the parts of the demonstration node share: a shop that takes orders, with faults on purpose.
 *
 *   gates -> clerks -> cache -> database     a price for each order
 *                   -> pay -> bank           a payment, through a circuit breaker
 *                   -> mailer                a receipt
 *                   -> the bus               orders/paid, orders/failed: audit, shipping
 *
 * Read tree.c first: it has all actors and which supervises which. Each actor finds the others by
 * name. */
#ifndef NODE_H
#define NODE_H

#include <jzx/ask.h>
#include <jzx/breaker.h>
#include <jzx/bus.h>
#include <jzx/control.h>
#include <jzx/fsm.h>
#include <jzx/jzx.h>
#include <jzx/registry.h>
#include <jzx/router.h>
#include <jzx/system.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Tags. Those of trouble are sent by the gremlin, and may be sent by `jzx send`. */
enum {
    TAG_TICK = 1,
    TAG_ORDER,  /* u64: the order's number */
    TAG_PRICE,  /* an ask; u64: the item. The reply is its price */
    TAG_CHARGE, /* an ask; u64: the order's number */
    TAG_ANSWER, /* of the bank to itself; u64: the request to answer */
    TAG_RECEIPT,
    TAG_PAID,
    TAG_FAILED,
    TAG_LOAD,
    TAG_EGG, /* an ask that is never answered */

    TROUBLE_FAIL = 101, /* returns FAIL */
    TROUBLE_PANIC = 102,
    TROUBLE_CRASH = 103, /* a write to address 16; the bank has the crash guard on */
    TROUBLE_SLOW = 104,  /* everything takes longer for a few seconds */
    TROUBLE_LOOP = 109   /* for (;;) until the node stops */
};

typedef struct node_options {
    uint32_t load;    /* per cent of the usual number of orders */
    uint32_t faults;  /* per minute */
    uint32_t seconds; /* then the node stops by itself; 0: never */
    uint16_t port;    /* of the console; 0: any that is free */
    bool console;
    bool stuck;
} node_options;

typedef struct node {
    node_options options;
    jzx_system *system;
    jzx_bus *bus; /* with the topics orders/paid, orders/failed and shop/load */
    jzx_topic paid_topic;
    jzx_topic failed_topic;
    jzx_topic load_topic;
    bool terminal; /* standard output is one: show a line that changes */
    /* Written by several dispatchers. */
    _Atomic uint32_t level; /* orders per second at this hour */
    _Atomic uint32_t hour;
    _Atomic uint64_t orders;
    _Atomic uint64_t paid;
    _Atomic uint64_t failed;
    _Atomic uint64_t turned_away; /* the clerks had no room */
    _Atomic uint64_t no_receipt;
    _Atomic bool stopping; /* ends the loop of the looper */
} node;

/* Starts all actors. */
jzx_err node_start_tree(node *n);

/* A small generator: what looks like chance is the same in every run of an actor. */
static inline uint32_t node_chance(uint64_t *seed, uint32_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % below;
}
/* A periodic TAG_TICK for the running actor. */
jzx_behavior_result node_tick_every(jzx_context *ctx, uint32_t ms);
/* What most actors here start with: zeroed memory that begins with `node *`. deinit frees it. */
jzx_behavior_result node_state(jzx_context *ctx, node *n, size_t size);
void node_free_state(jzx_context *ctx);

/* front.c */
jzx_behavior_result wave_init(jzx_context *ctx, void *arg);
jzx_behavior_result wave_work(jzx_context *ctx, const jzx_message *msg);
jzx_behavior_result gate_init(jzx_context *ctx, void *arg);
jzx_behavior_result gate_work(jzx_context *ctx, const jzx_message *msg);
/* desk.c */
jzx_behavior_result clerk_init(jzx_context *ctx, void *arg);
jzx_behavior_result clerk_work(jzx_context *ctx, const jzx_message *msg);
jzx_behavior_result mailer_init(jzx_context *ctx, void *arg);
jzx_behavior_result mailer_work(jzx_context *ctx, const jzx_message *msg);
/* store.c */
jzx_behavior_result database_init(jzx_context *ctx, void *arg);
jzx_behavior_result database_work(jzx_context *ctx, const jzx_message *msg);
jzx_behavior_result cache_init(jzx_context *ctx, void *arg);
jzx_behavior_result cache_work(jzx_context *ctx, const jzx_message *msg);
jzx_behavior_result audit_init(jzx_context *ctx, void *arg);
jzx_behavior_result audit_work(jzx_context *ctx, const jzx_message *msg);
/* payment.c */
jzx_behavior_result bank_init(jzx_context *ctx, void *arg);
jzx_behavior_result bank_work(jzx_context *ctx, const jzx_message *msg);
jzx_actor_id bank_find(jzx_context *ctx, void *arg);
/* shipping.c */
jzx_behavior_result shipping_init(jzx_context *ctx, void *arg);
jzx_behavior_result shipping_work(jzx_context *ctx, const jzx_message *msg);
jzx_behavior_result parcel_init(jzx_context *ctx, void *arg);
/* trouble.c */
jzx_behavior_result gremlin_init(jzx_context *ctx, void *arg);
jzx_behavior_result gremlin_work(jzx_context *ctx, const jzx_message *msg);
jzx_behavior_result looper_init(jzx_context *ctx, void *arg);
jzx_behavior_result looper_work(jzx_context *ctx, const jzx_message *msg);
jzx_behavior_result hen_init(jzx_context *ctx, void *arg);
jzx_behavior_result egg_init(jzx_context *ctx, void *arg);
jzx_behavior_result brood(jzx_context *ctx, const jzx_message *msg);
/* meter.c */
jzx_behavior_result meter_init(jzx_context *ctx, void *arg);
jzx_behavior_result meter_work(jzx_context *ctx, const jzx_message *msg);
/* How the run went, and whether every message is accounted for. Returns the exit status. */
int meter_sum_up(node *n, jzx_err err, const jzx_shutdown_report *report);

#endif
