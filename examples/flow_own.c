/* A flow inside an actor that also does other things: a shop makes parcels when orders come, and
 * a van asks for them by hand. Both offer messages to their flow first. Run: ./flow_own */
#include <jzx/flow.h>
#include <jzx/jzx.h>

#include <stdio.h>

enum { ORDER = 1, LOAD = 2 };

typedef struct party {
    jzx_flow *flow;
    const jzx_flow_opts *opts;
    jzx_actor_id shop;
    uint64_t orders, sent;
} party;

static jzx_behavior_result deliver(party *me)
{
    /* What was asked for and not sent yet: the rest has to wait. */
    jzx_err err = JZX_OK;
    while (me->sent < me->orders && jzx_flow_demand(me->flow) > 0 && err == JZX_OK) {
        err = jzx_flow_emit_u64(me->flow, ++me->sent);
    }
    return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result asked(jzx_flow *flow, uint32_t n)
{
    printf("shop: the van wants %u\n", (unsigned)n);
    return deliver(flow->state);
}

static jzx_behavior_result loaded(jzx_flow *flow, const jzx_message *item)
{
    (void)flow;
    printf("van: parcel %u\n", (unsigned)item->u64);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result open_flow(jzx_context *ctx, void *arg)
{
    party *me = ctx->state = arg;
    jzx_err err = jzx_flow_open(ctx, me->opts, &me->flow);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static void close_flow(jzx_context *ctx)
{
    jzx_flow_close(((party *)ctx->state)->flow, ctx);
}

static jzx_behavior_result on_signal(jzx_context *ctx, const jzx_signal *signal)
{
    jzx_behavior_result result = JZX_BEHAVIOR_OK; /* ends and restarts of the other side */
    (void)jzx_flow_signal(((party *)ctx->state)->flow, ctx, signal, &result);
    return result;
}

static jzx_behavior_result on_message(jzx_context *ctx, const jzx_message *msg)
{
    party *me = ctx->state;
    jzx_behavior_result result = JZX_BEHAVIOR_OK;
    if (jzx_flow_handle(me->flow, ctx, msg, &result)) {
        return result;
    }
    if (msg->tag == ORDER) {
        printf("shop: order %u\n", (unsigned)++me->orders);
        return deliver(me);
    }
    jzx_err err = jzx_flow_ask(me->flow, me->shop, (int64_t)msg->u64);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

int main(void)
{
    party shop = {0}, van = {0};
    jzx_flow_opts gives = {.kind = JZX_FLOW_SOURCE, .on_demand = asked, .arg = &shop};
    jzx_flow_opts takes = {.kind = JZX_FLOW_SINK, .on_item = loaded, .arg = &van};
    jzx_spawn_opts opts = {
        .behavior = on_message, .init = open_flow, .deinit = close_flow, .on_signal = on_signal};
    jzx_flow_link by_hand = {.flags = JZX_FLOW_MANUAL};
    jzx_actor_id id = JZX_NOBODY;
    jzx_loop *loop = NULL;
    jzx_err err = jzx_loop_create(NULL, &loop);
    shop.opts = &gives, van.opts = &takes, opts.state = &shop;
    err = err == JZX_OK ? jzx_spawn(loop, &opts, &van.shop) : err;
    opts.state = &van;
    if (err != JZX_OK || (err = jzx_spawn(loop, &opts, &id)) != JZX_OK ||
        (err = jzx_flow_connect(loop, van.shop, id, &by_hand)) != JZX_OK ||
        (err = jzx_send_u64(loop, van.shop, 0, ORDER)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 2, LOAD)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK ||
        (err = jzx_send_u64(loop, van.shop, 0, ORDER)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK) {
        fprintf(stderr, "flow_own: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
