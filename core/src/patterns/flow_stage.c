/* Flows: making stages and links, and what callbacks call. */
#include "patterns/flow_priv.h"

#include <jzx/observe.h>

#include <string.h>

static jzx_err check_kind(const jzx_flow_opts *opts)
{
    bool demand = opts->on_demand != NULL;
    bool item = opts->on_item != NULL;
    bool batch = opts->batch_max != 0;
    switch (opts->kind) {
    case JZX_FLOW_STAGE:
        return demand || (batch && item) ? JZX_ERR_INVALID_ARG : JZX_OK;
    case JZX_FLOW_SOURCE:
        return !demand || item || batch || opts->on_done != NULL ? JZX_ERR_INVALID_ARG : JZX_OK;
    case JZX_FLOW_SINK:
        return demand || !item || batch ? JZX_ERR_INVALID_ARG : JZX_OK;
    default:
        return JZX_ERR_INVALID_ARG;
    }
}

/* The struct is read again at every restart, where its size is not known any more. So far there is
 * only one: when it grows, old sizes will get an init of their own. */
static jzx_err flow_stage_check_opts(const jzx_flow_opts *opts, size_t opts_size)
{
    if (opts == NULL || opts_size < sizeof *opts) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_flow_opts known;
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    if (err == JZX_OK) {
        err = check_kind(opts);
    }
    if (err == JZX_OK &&
        ((opts->flags & ~JZX_FLOW_STAY) != 0 || opts->on_loss > JZX_FLOW_LOSS_FAIL ||
         (opts->batch_ms != 0 && opts->batch_max == 0))) {
        err = JZX_ERR_INVALID_ARG;
    }
    if (err == JZX_OK && opts->batch_max > JZX_FLOW_BATCH_MAX) {
        err = JZX_ERR_TOO_BIG;
    }
    return err == JZX_OK ? jzi_flow_rate_check(opts) : err;
}

jzx_err jzi_flow_check_link(const jzx_flow_link *link)
{
    if ((link->flags & ~JZX_FLOW_MANUAL) != 0 || link->reserved != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    bool too_much =
        link->max_demand > JZX_FLOW_DEMAND_MAX || link->min_demand > JZX_FLOW_DEMAND_MAX;
    bool upside_down = link->max_demand != 0 && link->min_demand >= link->max_demand;
    return too_much || upside_down ? JZX_ERR_BAD_DEMAND : JZX_OK;
}

/* Stages. */

static jzx_err open_flow(jzi_flow *flow, jzx_context *ctx, const jzx_flow_opts *opts)
{
    jzx_actor_facts facts;
    jzx_err err = jzx_actor_inspect(ctx->loop, ctx->self, &facts);
    if (err != JZX_OK) {
        return err;
    }
    flow->pub.ctx = ctx;
    flow->pub.state = opts->init == NULL ? opts->arg : NULL;
    flow->opts = opts;
    flow->stats = opts->stats == NULL ? &flow->own : opts->stats;
    flow->cap = facts.mailbox_cap;
    flow->incarnation = facts.incarnation;
    flow->recovering = facts.incarnation > 1;
    jzi_flow_rate_open(flow);
    flow->unready = flow->recovering;
    err = jzi_flow_announce(flow);
    if (err != JZX_OK) {
        return err;
    }
    if (opts->init != NULL) {
        flow->inside = true;
        bool started = opts->init(&flow->pub, opts->arg) == JZX_BEHAVIOR_OK;
        flow->inside = false;
        return started ? JZX_OK : JZX_ERR_START_FAILED;
    }
    return JZX_OK;
}

static void flow_stage_release(jzi_flow *flow)
{
    jzx_allocator alloc = flow->alloc;
    jzi_flow_batch_discard(flow);
    jzi_flow_out_drop_rest(flow);
    jzi_free(&alloc, flow->ring, flow->ring_cap * sizeof *flow->ring);
    jzi_free(&alloc, flow->ins, flow->in_cap * sizeof *flow->ins);
    jzi_free(&alloc, flow->outs, flow->out_cap * sizeof *flow->outs);
    jzi_free(&alloc, flow, sizeof *flow);
}

jzx_err jzx_flow_open_sized(jzx_context *ctx, const jzx_flow_opts *opts, size_t opts_size,
                            jzx_flow **out_flow)
{
    jzx_err err = ctx == NULL || out_flow == NULL ? JZX_ERR_INVALID_ARG
                                                  : flow_stage_check_opts(opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    jzx_allocator alloc = jzx_loop_allocator(ctx->loop);
    jzi_flow *flow = jzi_alloc_zeroed(&alloc, sizeof *flow);
    if (flow == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    flow->alloc = alloc;
    err = open_flow(flow, ctx, opts);
    if (err != JZX_OK) {
        flow_stage_release(flow);
        return err;
    }
    *out_flow = &flow->pub;
    return JZX_OK;
}

void jzx_flow_close(jzx_flow *pub, jzx_context *ctx)
{
    if (pub == NULL || ctx == NULL) {
        return;
    }
    jzi_flow *flow = flow_of(pub);
    flow->pub.ctx = ctx;
    flow->inside = true;
    if (flow->opts->deinit != NULL) {
        flow->opts->deinit(pub);
    }
    jzi_flow_bequeath(flow);
    jzi_flow_batch_discard(flow);
    jzi_flow_out_drop_rest(flow);
    flow->credit = 0;
    flow->asked = 0;
    jzi_flow_publish(flow);
    flow_stage_release(flow);
}

static jzx_behavior_result stage_init(jzx_context *ctx, void *arg)
{
    jzx_flow *flow = NULL;
    jzx_err err = jzx_flow_open(ctx, arg, &flow);
    ctx->state = flow;
    switch (err) {
    case JZX_OK:
        return JZX_BEHAVIOR_OK;
    case JZX_ERR_START_FAILED:
        return JZX_BEHAVIOR_FAIL; /* the user's init may have said why */
    default:
        return jzx_fail(ctx, err, jzx_strerror(err));
    }
}

static void stage_deinit(jzx_context *ctx)
{
    jzx_flow_close(ctx->state, ctx);
}

jzx_err jzx_flow_spawn_sized(jzx_loop *loop, const jzx_flow_opts *opts, size_t opts_size,
                             jzx_actor_id *out_id)
{
    jzx_err err = loop == NULL ? JZX_ERR_INVALID_ARG : flow_stage_check_opts(opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    jzx_spawn_opts spawn = {.behavior = jzi_flow_behavior,
                            .state = (void *)(uintptr_t)opts, /* only ever read */
                            .init = stage_init,
                            .deinit = stage_deinit,
                            .name = opts->name,
                            .mailbox_cap = opts->mailbox_cap,
                            .flags = opts->spawn_flags,
                            .dispatcher = opts->dispatcher};
    return jzx_spawn(loop, &spawn, out_id);
}

jzx_err jzx_flow_child_sized(const jzx_flow_opts *opts, size_t opts_size, const char *id,
                             jzx_child_spec *out_spec, size_t spec_size)
{
    jzx_err err = id == NULL || out_spec == NULL ? JZX_ERR_INVALID_ARG
                                                 : flow_stage_check_opts(opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    jzx_child_spec spec = {.id = id,
                           .behavior = jzi_flow_behavior,
                           .init = stage_init,
                           .arg = (void *)(uintptr_t)opts,
                           .deinit = stage_deinit,
                           .mode = JZX_TRANSIENT,
                           .mailbox_cap = opts->mailbox_cap,
                           .flags = opts->spawn_flags,
                           .dispatcher = opts->dispatcher};
    memset(out_spec, 0, spec_size);
    memcpy(out_spec, &spec, spec_size < sizeof spec ? spec_size : sizeof spec);
    return JZX_OK;
}

/* Links. */

/* Whether the consumer's mailbox, as far as it can be seen from here, holds what is asked for. */
static bool fits(jzx_loop *loop, jzx_actor_id consumer, uint32_t max_demand)
{
    jzx_actor_facts facts;
    return jzx_actor_inspect(loop, consumer, &facts) != JZX_OK || max_demand <= facts.mailbox_cap;
}

jzx_err jzx_flow_connect_sized(jzx_loop *loop, jzx_actor_id producer, jzx_actor_id consumer,
                               const jzx_flow_link *link, size_t link_size)
{
    flow_wish wish = {.peer = producer};
    jzx_err err =
        loop == NULL || producer == JZX_NOBODY || consumer == JZX_NOBODY || producer == consumer
            ? JZX_ERR_INVALID_ARG
            : JZX_OK;
    if (err == JZX_OK && link != NULL) {
        err = jzi_struct_adopt(&wish.link, sizeof wish.link, link, link_size);
    }
    if (err == JZX_OK) {
        err = jzi_flow_check_link(&wish.link);
    }
    if (err != JZX_OK) {
        return err;
    }
    if (jzx_actor_state(loop, producer) == JZX_STATE_TERMINATED) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    if (!fits(loop, consumer, wish.link.max_demand)) {
        return JZX_ERR_BAD_DEMAND;
    }
    err = jzx_send_copy(loop, consumer, &wish, sizeof wish, FLOW_TAG(FLOW_CONNECT));
    if (err != JZX_OK) {
        return err;
    }
    /* So that a producer with little to give does not end before the consumer has come. If the
     * producer cannot be told, the link is made all the same. */
    wish.peer = consumer;
    err = jzx_send_copy(loop, producer, &wish, sizeof wish, FLOW_TAG(FLOW_EXPECT));
    (void)err;
    return JZX_OK;
}

jzx_err jzx_flow_disconnect(jzx_loop *loop, jzx_actor_id producer, jzx_actor_id consumer)
{
    return jzx_send_u64(loop, consumer, producer, FLOW_TAG(FLOW_DISCONNECT));
}

/* For callbacks. */

static jzx_err emit(jzx_flow *pub, const jzx_message *item)
{
    if (pub == NULL || pub->ctx == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_flow *flow = flow_of(pub);
    bool source = flow->opts->kind == JZX_FLOW_SOURCE;
    if (flow->opts->kind == JZX_FLOW_SINK) {
        return JZX_ERR_INVALID_ARG;
    }
    if (flow->finishing) {
        return JZX_ERR_CLOSED;
    }
    if (source && flow->asked == 0) {
        return JZX_ERR_BUFFER_FULL;
    }
    jzx_err err = jzi_flow_out_put(flow, item);
    if (err == JZX_OK && source) {
        flow->asked--;
        jzi_flow_rate_take(flow);
    }
    if (!flow->inside) {
        jzi_flow_publish(flow);
    }
    return err;
}

jzx_err jzx_flow_emit(jzx_flow *flow, void *data, size_t len, void (*drop)(void *data))
{
    jzx_message item = {.data = data, .len = len, .drop = drop};
    return emit(flow, &item);
}

jzx_err jzx_flow_emit_u64(jzx_flow *flow, uint64_t value)
{
    jzx_message item = {.u64 = value, .flags = JZX_MSG_VALUE};
    return emit(flow, &item);
}

jzx_err jzx_flow_emit_copy(jzx_flow *flow, const void *bytes, size_t len)
{
    if (bytes == NULL && len > 0) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_message item = {.data = (void *)(uintptr_t)bytes, .len = len, .flags = JZX_MSG_COPY};
    return len > JZX_COPY_MAX ? JZX_ERR_TOO_BIG : emit(flow, &item);
}

jzx_err jzx_flow_pass(jzx_flow *flow, const jzx_message *item)
{
    jzx_err err = item == NULL ? JZX_ERR_INVALID_ARG : emit(flow, item);
    if (err == JZX_OK && (item->flags & (JZX_MSG_VALUE | JZX_MSG_COPY)) == 0) {
        (void)jzx_message_take(flow->ctx); /* the data is the receiver's; do not release it */
    }
    return err;
}

uint32_t jzx_flow_demand(const jzx_flow *pub)
{
    const jzi_flow *flow = (const jzi_flow *)pub;
    if (flow == NULL || flow->opts->kind != JZX_FLOW_SOURCE || flow->finishing) {
        return 0;
    }
    return flow->asked < UINT32_MAX ? (uint32_t)flow->asked : UINT32_MAX;
}

/* Outside of jzx_flow_handle() nothing looks at everything: a message to the actor itself does. */
static jzx_err look_again(jzi_flow *flow)
{
    if (flow->inside) {
        return JZX_OK;
    }
    jzx_err err = jzi_flow_tell(flow, flow->pub.ctx->self, FLOW_POKE, 0);
    return err == JZX_ERR_AGAIN ? JZX_OK : err;
}

jzx_err jzx_flow_finish(jzx_flow *pub)
{
    if (pub == NULL || pub->ctx == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_flow *flow = flow_of(pub);
    jzx_err err = flow->finishing ? JZX_OK : look_again(flow);
    if (err == JZX_OK && !flow->finishing) {
        jzi_flow_begin_finish(flow);
    }
    return err;
}

jzx_err jzx_flow_ask(jzx_flow *pub, jzx_actor_id producer, int64_t n)
{
    if (pub == NULL || pub->ctx == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_flow *flow = flow_of(pub);
    jzx_err err = jzi_flow_in_ask(flow, producer, n);
    return err == JZX_OK ? look_again(flow) : err;
}

void jzx_flow_stats_read_sized(const jzx_flow_stats *stats, jzx_flow_stats *out, size_t out_size)
{
    if (stats == NULL || out == NULL) {
        return;
    }
    jzx_flow_stats now;
    const uint64_t *from = (const uint64_t *)stats;
    uint64_t *to = (uint64_t *)&now;
    for (size_t i = 0; i < sizeof now / sizeof *to; i++) {
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    }
    memset(out, 0, out_size);
    memcpy(out, &now, out_size < sizeof now ? out_size : sizeof now);
}
