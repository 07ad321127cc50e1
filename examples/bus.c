/* A shop publishes an order once: the till takes the large ones, the journal every topic of the shop.
 * Both are told when they were too slow, the till by a function of its own. Run: ./bus */
#include <jzx/bus.h>
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>

enum { NEW = 1, PAID = 2, KEEP = 4 };

typedef struct order {
    uint32_t number, cents;
} order;

static int is_large(void *arg, const jzx_message *msg) /* asked before the till hears of it */
{
    (void)arg;
    return ((const order *)msg->data)->cents >= 1000;
}

static jzx_behavior_result till(jzx_context *ctx, const jzx_message *msg)
{
    const order *o = msg->data; /* shared by all subscribers: only to be looked at */
    printf("till: event %" PRIu64 " is order %" PRIu32 "\n", jzx_bus_event_of(ctx)->seq, o->number);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result recount(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    printf("till: missed %" PRIu64 " orders\n", ((const jzx_lag_notice *)msg->data)->lost);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result journal(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag == JZX_TAG_LAGGED) {
        printf("journal: a gap of %" PRIu64 "\n", ((const jzx_lag_notice *)msg->data)->lost);
    } else {
        printf("journal: %s\n", jzx_bus_event_of(ctx)->topic_name);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result open_till(jzx_context *ctx, void *bus)
{
    jzx_sub_opts large = {.filter = is_large, .resync = recount};
    jzx_err err = jzx_bus_subscribe(ctx->loop, bus, "shop/orders", &large, NULL);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result open_journal(jzx_context *ctx, void *bus)
{
    jzx_err err = jzx_bus_subscribe(ctx->loop, bus, "shop/*", NULL, NULL);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

/* Any thread may do this. */
static jzx_err take_orders(jzx_bus *bus, jzx_topic topic, uint32_t first, uint32_t count)
{
    jzx_err err = JZX_OK;
    for (uint32_t i = first; i < first + count && err == JZX_OK; i++) {
        order o = {.number = i, .cents = i * 400};
        err = jzx_bus_publish_copy(bus, topic, &o, sizeof o, NEW);
    }
    return err;
}

int main(void)
{
    jzx_bus *bus = NULL;
    jzx_topic orders = 0, payments = 0;
    jzx_bus_opts few = {.keep = KEEP};
    jzx_loop *loop = NULL;
    jzx_config patient = {.turn_budget_us = 1000000, .tick_budget_us = 1000000}; /* one order */
    jzx_topic_opts typed = {.flags = JZX_TOPIC_TAG | JZX_TOPIC_LEN, .tag = NEW, .len = 8};
    if (jzx_loop_create(&patient, &loop) != JZX_OK || jzx_bus_create(loop, &few, &bus) != JZX_OK) {
        return 1;
    }
    jzx_spawn_opts counts = {.behavior = till, .init = open_till, .state = bus};
    jzx_spawn_opts writes = {.behavior = journal, .init = open_journal, .state = bus};
    jzx_err err;
    if ((err = jzx_bus_topic(bus, "shop/orders", &typed, &orders)) != JZX_OK ||
        (err = jzx_bus_topic(bus, "shop/payments", NULL, &payments)) != JZX_OK ||
        (err = jzx_spawn(loop, &counts, NULL)) != JZX_OK ||
        (err = jzx_spawn(loop, &writes, NULL)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK || /* both subscribe */
        (err = take_orders(bus, orders, 1, 3)) != JZX_OK ||
        (err = jzx_bus_publish_u64(bus, payments, 3, PAID)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK ||
        (err = take_orders(bus, orders, 4, 7)) != JZX_OK || /* more than is kept */
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK) {
        fprintf(stderr, "bus: %s\n", jzx_strerror(err));
    }
    printf("no order: %s\n", jzx_err_name(jzx_bus_publish_u64(bus, orders, 1, PAID)));
    printf("no topic: %s\n", jzx_err_name(jzx_bus_publish_u64(bus, 99, 1, PAID)));
    jzx_loop_destroy(loop);
    jzx_bus_release(bus); /* the bus outlives the loop */
    return err == JZX_OK ? 0 : 1;
}
