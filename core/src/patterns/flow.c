/* Flows: what each message leads to. The two sides of a link are in flow_in.c and flow_out.c; what
 * callers see is in flow_stage.c. Stands on the public API, as any actor does. */
#include "patterns/flow_priv.h"

#include <jzx/behavior.h>

#include <string.h>

/* What the two sides need. */

jzx_err jzi_flow_wait_room(jzi_flow *flow, jzx_actor_id target)
{
    jzx_err err = jzx_notify_room(flow_loop(flow), target);
    return err == JZX_OK ? JZX_ERR_AGAIN : err;
}

jzx_err jzi_flow_tell(jzi_flow *flow, jzx_actor_id to, uint32_t tag, uint64_t value)
{
    jzx_err err = jzx_send_u64(flow_loop(flow), to, value, FLOW_TAG(tag));
    return err == JZX_ERR_MAILBOX_FULL ? jzi_flow_wait_room(flow, to) : err;
}

jzx_err jzi_flow_tell_wish(jzi_flow *flow, jzx_actor_id to, uint32_t tag, const flow_wish *wish)
{
    jzx_err err = jzx_send_copy(flow_loop(flow), to, wish, sizeof *wish, FLOW_TAG(tag));
    return err == JZX_ERR_MAILBOX_FULL ? jzi_flow_wait_room(flow, to) : err;
}

jzx_err jzi_flow_announce(jzi_flow *flow)
{
    if (!flow->unready) {
        return JZX_OK;
    }
    jzx_err err =
        jzx_send_u64(flow_loop(flow), flow->pub.ctx->self, flow->incarnation, FLOW_TAG(FLOW_READY));
    flow->unready = err == JZX_ERR_MAILBOX_FULL; /* then there are messages, and we try again */
    return flow->unready ? JZX_OK : err;
}

/* One message. */

/* STOPPING: we are, and nothing begins any more. */
static jzx_behavior_result failed(jzi_flow *flow, jzx_err err)
{
    return err == JZX_OK || err == JZX_ERR_STOPPING
               ? JZX_BEHAVIOR_OK
               : jzx_fail(flow->pub.ctx, err, jzx_strerror(err));
}

void jzi_flow_begin_finish(jzi_flow *flow)
{
    flow->finishing = true;
    flow->stirred = true;
    jzi_flow_in_leave_all(flow);
}

/* An actor that the flow was connected to is gone. */
static jzx_behavior_result lost(jzi_flow *flow, jzx_actor_id peer, const jzx_reason *reason)
{
    jzx_behavior_result result = flow->opts->on_lost == NULL
                                     ? JZX_BEHAVIOR_OK
                                     : flow->opts->on_lost(&flow->pub, peer, reason);
    if (result == JZX_BEHAVIOR_OK && flow->opts->on_loss == JZX_FLOW_LOSS_FAIL) {
        return jzx_fail(flow->pub.ctx, reason->code, "flow: lost an actor it was connected to");
    }
    return result;
}

/* A consumer is gone, or wants no more: with the last one the rest may be pointless. */
static void check_consumers(jzi_flow *flow, bool was_lost)
{
    if (was_lost && flow->out_count == 0 && flow->opts->on_loss == JZX_FLOW_LOSS_END) {
        jzi_flow_batch_discard(flow);
        jzi_flow_out_drop_rest(flow);
        jzi_flow_begin_finish(flow);
    }
}

static bool ended(jzi_flow *flow, const jzx_signal *news, jzx_behavior_result *out_result)
{
    bool was_lost = false;
    if (jzi_flow_out_ended(flow, news->ref, &was_lost)) {
        check_consumers(flow, was_lost);
    } else if (!jzi_flow_in_ended(flow, news, flow->opts->on_loss == JZX_FLOW_LOSS_END,
                                  &was_lost)) {
        return false;
    }
    if (was_lost) {
        *out_result = lost(flow, news->from, news->reason);
    }
    return true;
}

/* News of another actor's life. False: of none that the flow is connected to. */
static bool take_signal(jzi_flow *flow, const jzx_signal *news, jzx_behavior_result *out_result)
{
    switch (news->kind) {
    case JZX_SIGNAL_TERMINATED:
        return ended(flow, news, out_result);
    case JZX_SIGNAL_RESTARTED:
        return jzi_flow_in_restarted(flow, news->ref) || jzi_flow_out_restarted(flow, news);
    default:
        return false;
    }
}

static bool take_room(jzi_flow *flow, const jzx_room_notice *notice)
{
    bool in = jzi_flow_in_room(flow, notice->target);
    bool out = jzi_flow_out_room(flow, notice->target);
    return in || out;
}

/* A consumer wants no more; with `goodbye`, because it knows that there is no more: perhaps from an
 * earlier life of ours. */
static jzx_behavior_result take_cancel(jzi_flow *flow, jzx_actor_id consumer, bool goodbye)
{
    bool was_lost = false;
    bool known = jzi_flow_out_cancel(flow, consumer, &was_lost);
    flow_count(&flow->stats->ignored, known || goodbye ? 0 : 1);
    if (goodbye) {
        flow->was_done |= known || flow->incarnation > 1;
        return JZX_BEHAVIOR_OK;
    }
    check_consumers(flow, was_lost);
    static const jzx_reason by_its_wish = {.kind = JZX_REASON_NORMAL};
    return !was_lost || flow->opts->on_lost == NULL
               ? JZX_BEHAVIOR_OK
               : flow->opts->on_lost(&flow->pub, consumer, &by_its_wish);
}

static jzx_behavior_result take_item(jzi_flow *flow, const jzx_message *msg)
{
    if (flow->finishing || flow->opts->kind == JZX_FLOW_SOURCE) {
        flow_count(&flow->stats->unwanted, 1);
        return failed(flow, jzx_discard(flow->pub.ctx));
    }
    flow->stirred = jzi_flow_in_arrived(flow, msg->sender) || flow->unready;
    jzi_flow_rate_take(flow);
    if (flow->opts->batch_max != 0) {
        return failed(flow, jzi_flow_batch_add(flow, msg));
    }
    if (flow->opts->on_item == NULL) {
        return failed(flow, jzx_flow_pass(&flow->pub, msg));
    }
    return flow->opts->on_item(&flow->pub, msg);
}

/* The wish that a message carries; NULL: it is not what it says. */
static const flow_wish *wish_of(const jzi_flow *flow, const jzx_message *msg)
{
    const flow_wish *wish = msg->data;
    bool whole = (msg->flags & JZX_MSG_COPY) != 0 && msg->len == sizeof *wish;
    return whole && jzi_flow_check_link(&wish->link) == JZX_OK && wish->peer != flow->pub.ctx->self
               ? wish
               : NULL;
}

static jzx_err take_wish(jzi_flow *flow, const jzx_message *msg, uint32_t what)
{
    const flow_wish *wish = wish_of(flow, msg);
    if (wish == NULL || (what != FLOW_SUBSCRIBE && wish->peer == JZX_NOBODY)) {
        flow_count(&flow->stats->ignored, 1);
        return JZX_OK;
    }
    return what == FLOW_CONNECT  ? jzi_flow_in_connect(flow, wish, msg->sender)
           : what == FLOW_EXPECT ? jzi_flow_out_expect(flow, wish, msg->sender)
                                 : jzi_flow_out_subscribe(flow, msg->sender, wish);
}

/* A message that needs no memory and no callback. False: it belongs to no connection, or makes no
 * sense. */
static bool take_word(jzi_flow *flow, const jzx_message *msg, uint32_t what)
{
    if ((msg->flags & JZX_MSG_VALUE) == 0) {
        return false;
    }
    bool own = msg->sender == flow->pub.ctx->self;
    switch (what) {
    case FLOW_DISCONNECT:
        jzi_flow_in_disconnect(flow, msg->u64);
        return true;
    case FLOW_HELLO:
        return jzi_flow_in_hello(flow, msg->sender, msg->u64);
    case FLOW_DEMAND:
        return jzi_flow_out_demand(flow, msg->sender, msg->u64);
    case FLOW_READY:
        flow->recovering &= !own || msg->u64 != flow->incarnation; /* not that of an earlier life */
        return own;
    case FLOW_TICK:
        flow->bucket.timer = 0;
        flow->bucket.ticked = true;
        return own;
    default:
        return own;
    }
}

/* A message of the protocol. */
static jzx_behavior_result flow_take(jzi_flow *flow, const jzx_message *msg)
{
    uint32_t what = msg->tag - JZX_TAG_PATTERN_FIRST;
    bool is_timer = what == FLOW_TICK || what == FLOW_FLUSH;
    if (is_timer != (msg->kind == JZX_KIND_TIMER) || (!is_timer && msg->kind != JZX_KIND_USER)) {
        flow_count(&flow->stats->ignored, 1);
        return JZX_BEHAVIOR_OK;
    }
    switch (what) {
    case FLOW_ITEM:
        return take_item(flow, msg);
    case FLOW_CONNECT:
    case FLOW_EXPECT:
    case FLOW_SUBSCRIBE:
        return failed(flow, take_wish(flow, msg, what));
    case FLOW_WILL:
        return failed(flow, jzi_flow_inherit(flow, msg));
    case FLOW_DONE:
        return failed(flow, jzi_flow_in_done(flow, msg->sender));
    case FLOW_CANCEL:
        return take_cancel(flow, msg->sender, msg->u64 == 1);
    case FLOW_FLUSH:
        flow->flush_timer = 0;
        return failed(flow, jzi_flow_batch_flush(flow));
    default:
        flow_count(&flow->stats->ignored, take_word(flow, msg, what) ? 0 : 1);
        return JZX_BEHAVIOR_OK;
    }
}

/* After each message: whatever has become possible. */

static jzx_behavior_result end_of_input(jzi_flow *flow)
{
    jzx_behavior_result result = failed(flow, jzi_flow_batch_flush(flow));
    if (result == JZX_BEHAVIOR_OK && flow->opts->on_done != NULL) {
        result = flow->opts->on_done(&flow->pub);
    }
    if (result == JZX_BEHAVIOR_OK) {
        jzi_flow_begin_finish(flow);
    }
    return result;
}

/* Whether there is anything left to wait for upstream. */
static jzx_behavior_result check_input(jzi_flow *flow)
{
    if (flow->finishing || flow->recovering) {
        return JZX_BEHAVIOR_OK;
    }
    if (jzi_flow_in_all_done(flow)) {
        return end_of_input(flow);
    }
    /* What an earlier life had finished is finished: producers that have not heard of it will. */
    jzi_flow_in_farewell(flow, flow->was_done);
    flow->finishing = flow->was_done;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result produce(jzi_flow *flow)
{
    jzx_behavior_result result = JZX_BEHAVIOR_OK;
    while (result == JZX_BEHAVIOR_OK && !flow->finishing) {
        uint64_t open = jzi_flow_out_open(flow);
        uint64_t grant = 0;
        if (open > flow->asked) {
            result = failed(flow, jzi_flow_rate_limit(flow, open - flow->asked, &grant));
        }
        if (grant == 0) {
            break;
        }
        flow->asked += grant;
        result = flow->opts->on_demand(&flow->pub, jzx_flow_demand(&flow->pub));
    }
    return result;
}

/* Done with the stream: the actor ends, or is as new. */
static jzx_behavior_result stream_over(jzi_flow *flow)
{
    jzi_flow_in_farewell(flow, false);
    jzx_behavior_result result = failed(flow, jzi_flow_in_pump(flow, false));
    if (result != JZX_BEHAVIOR_OK || flow->in_count > 0) {
        return result; /* not before every producer was told */
    }
    flow->asked = 0; /* a source's: what it still owed */
    flow->some_done = false;
    flow->was_done = false;
    flow->finishing = false;
    return (flow->opts->flags & JZX_FLOW_STAY) != 0 ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_STOP;
}

static jzx_behavior_result pump(jzi_flow *flow)
{
    jzx_behavior_result result = failed(flow, jzi_flow_announce(flow));
    if (result == JZX_BEHAVIOR_OK) {
        result = check_input(flow);
    }
    if (result == JZX_BEHAVIOR_OK) {
        result = failed(flow, jzi_flow_out_pump(flow));
    }
    if (result == JZX_BEHAVIOR_OK && flow->opts->kind == JZX_FLOW_SOURCE) {
        result = produce(flow);
        if (result == JZX_BEHAVIOR_OK && flow->finishing) {
            result = failed(flow, jzi_flow_out_pump(flow));
        }
    }
    if (result == JZX_BEHAVIOR_OK) {
        result = failed(flow, jzi_flow_in_pump(flow, false));
    }
    if (result == JZX_BEHAVIOR_OK && flow->finishing && !flow->recovering && flow->count == 0 &&
        flow->out_count == 0) {
        result = stream_over(flow);
    }
    return result;
}

void jzi_flow_publish(jzi_flow *flow)
{
    jzx_flow_stats *stats = flow->stats;
    if (stats == &flow->own) {
        return; /* the program does not look */
    }
    __atomic_store_n(&stats->buffered, flow->count, __ATOMIC_RELAXED);
    __atomic_store_n(&stats->credit, flow->credit, __ATOMIC_RELAXED);
    __atomic_store_n(&stats->asked, flow->asked, __ATOMIC_RELAXED);
    __atomic_store_n(&stats->batched, jzi_flow_batch_count(flow), __ATOMIC_RELAXED);
}

static void flow_enter(jzi_flow *flow, jzx_context *ctx)
{
    flow->pub.ctx = ctx;
    flow->inside = true;
    flow->stirred = true;
}

static jzx_behavior_result flow_settle(jzi_flow *flow, jzx_behavior_result result)
{
    if (result == JZX_BEHAVIOR_OK) {
        result = flow->stirred ? pump(flow) : result;
    } else if (result != JZX_BEHAVIOR_STOP) {
        (void)jzi_flow_in_pump(flow, true); /* its parent may let it go on: then more must come */
    }
    jzi_flow_publish(flow);
    flow->inside = false;
    return result;
}

/* False: the message is not the flow's. */
static bool take_any(jzi_flow *flow, const jzx_message *msg, jzx_behavior_result *out_result)
{
    if ((msg->tag & 0xFFFF0000u) == FLOW_TAG(FLOW_TAGS)) {
        *out_result = flow_take(flow, msg);
        return true;
    }
    if (msg->kind != JZX_KIND_NOTICE) {
        return false;
    }
    if (msg->tag == JZX_TAG_ROOM) {
        return take_room(flow, msg->data);
    }
    const jzx_signal *news = jzx_message_signal(msg);
    return news != NULL && take_signal(flow, news, out_result);
}

int jzx_flow_handle(jzx_flow *pub, jzx_context *ctx, const jzx_message *msg,
                    jzx_behavior_result *out_result)
{
    if (pub == NULL || ctx == NULL || msg == NULL || out_result == NULL) {
        return 0;
    }
    jzi_flow *flow = flow_of(pub);
    jzx_behavior_result result = JZX_BEHAVIOR_OK;
    flow_enter(flow, ctx);
    if (!take_any(flow, msg, &result)) {
        flow->inside = false;
        return 0;
    }
    *out_result = flow_settle(flow, result);
    return 1;
}

int jzx_flow_signal(jzx_flow *pub, jzx_context *ctx, const jzx_signal *signal,
                    jzx_behavior_result *out_result)
{
    if (pub == NULL || ctx == NULL || signal == NULL || out_result == NULL) {
        return 0;
    }
    jzi_flow *flow = flow_of(pub);
    jzx_behavior_result result = JZX_BEHAVIOR_OK;
    flow_enter(flow, ctx);
    if (!take_signal(flow, signal, &result)) {
        flow->inside = false;
        return 0;
    }
    *out_result = flow_settle(flow, result);
    return 1;
}

jzx_behavior_result jzi_flow_behavior(jzx_context *ctx, const jzx_message *msg)
{
    jzi_flow *flow = ctx->state;
    jzx_behavior_result result = JZX_BEHAVIOR_OK;
    flow_enter(flow, ctx);
    if (!take_any(flow, msg, &result) && flow->opts->on_message != NULL) {
        result = flow->opts->on_message(&flow->pub, msg);
    }
    return flow_settle(flow, result);
}
