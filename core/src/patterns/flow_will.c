/* Flows: what a life leaves to the next one. A stage that ends may be about to be restarted; only
 * its mailbox survives that (R18). So the stage writes down its connections, in a message to
 * itself; if this is the end for good, the message is refused. */
#include "patterns/flow_priv.h"

typedef struct flow_bequest {
    /* FLOW_CONNECT  a producer
     * FLOW_DONE     a producer that is done; with JZX_NOBODY as its peer: that one was
     * FLOW_EXPECT   a consumer
     * FLOW_CANCEL   consumers know that the stream is over */
    uint64_t what;
    jzx_actor_id from; /* whose wish it was */
    flow_wish wish;
} flow_bequest;

static size_t write_will(const jzi_flow *flow, flow_bequest *will)
{
    size_t count = 0;
    for (uint32_t i = 0; i < flow->in_count; i++) {
        const flow_in *in = &flow->ins[i];
        if (in->state == IN_ASKED || in->state == IN_ON) {
            will[count++] = (flow_bequest){
                .what = FLOW_CONNECT,
                .from = in->state == IN_ASKED && in->invited ? in->producer : flow->pub.ctx->self,
                .wish = {.peer = in->producer, .link = in->link}};
        } else if (in->state == IN_DONE || in->say == SAY_GOODBYE) { /* it still is to be told */
            will[count++] = (flow_bequest){.what = FLOW_DONE, .wish = {.peer = in->producer}};
        }
    }
    for (uint32_t i = 0; i < flow->out_count; i++) {
        const flow_out *out = &flow->outs[i];
        will[count++] =
            (flow_bequest){.what = FLOW_EXPECT, .wish = {.peer = out->consumer, .link = out->link}};
    }
    /* Of producers that are done and were let go the next life would not hear. */
    if (flow->some_done && flow->missing == 0) {
        will[count++] = (flow_bequest){.what = FLOW_DONE, .wish = {.peer = JZX_NOBODY}};
    }
    if (flow->was_done) {
        will[count++] = (flow_bequest){.what = FLOW_CANCEL};
    }
    return count;
}

/* One message, so that it needs one slot: behind what is in the mailbox, or if that is full, past
 * it. Should even that be refused, those we were connected to will call when we are restarted. */
static jzx_err flow_will_leave(jzi_flow *flow, void *will, size_t len)
{
    jzx_send_opts opts = {
        .data = will, .len = len, .tag = FLOW_TAG(FLOW_WILL), .flags = JZX_SEND_COPY};
    jzx_err err = jzx_send_with(flow_loop(flow), flow->pub.ctx->self, &opts);
    if (err == JZX_ERR_MAILBOX_FULL) {
        opts.flags |= JZX_SEND_URGENT;
        err = jzx_send_with(flow_loop(flow), flow->pub.ctx->self, &opts);
    }
    return err;
}

void jzi_flow_bequeath(jzi_flow *flow)
{
    size_t most = (size_t)flow->in_count + flow->out_count + 2;
    flow_bequest *will = jzi_alloc(&flow->alloc, most * sizeof *will);
    if (will == NULL) {
        return;
    }
    size_t count = write_will(flow, will);
    jzx_err err = count == 0 ? JZX_OK : flow_will_leave(flow, will, count * sizeof *will);
    (void)err; /* refused: there is no next life, or others will call */
    jzi_free(&flow->alloc, will, most * sizeof *will);
}

static jzx_err take_over(jzi_flow *flow, const flow_bequest *bequest)
{
    switch (bequest->what) {
    case FLOW_CONNECT:
        return jzi_flow_in_connect(flow, &bequest->wish, bequest->from);
    case FLOW_DONE:
        if (bequest->wish.peer == JZX_NOBODY) {
            flow->some_done = true;
            return JZX_OK;
        }
        return jzi_flow_in_done(flow, bequest->wish.peer);
    case FLOW_EXPECT:
        return jzi_flow_out_expect(flow, &bequest->wish, bequest->from);
    default:
        flow->was_done = true;
        return JZX_OK;
    }
}

jzx_err jzi_flow_inherit(jzi_flow *flow, const jzx_message *msg)
{
    const flow_bequest *will = msg->data;
    bool whole = (msg->flags & JZX_MSG_COPY) != 0 && msg->len % sizeof *will == 0;
    if (msg->sender != flow->pub.ctx->self || !whole) {
        flow_count(&flow->stats->ignored, 1);
        return JZX_OK;
    }
    jzx_err err = JZX_OK;
    for (size_t i = 0; i < msg->len / sizeof *will && err == JZX_OK; i++) {
        err = take_over(flow, &will[i]);
    }
    return err;
}
