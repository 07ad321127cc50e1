/* Flows, the producer's side: which consumer asked for how much, which one's turn it is, and what
 * waits. */
#include "patterns/flow_priv.h"

#include "base/array.h"

#include <string.h>

static flow_out *flow_out_find(const jzi_flow *flow, jzx_actor_id consumer)
{
    for (uint32_t i = 0; i < flow->out_count; i++) {
        if (flow->outs[i].consumer == consumer) {
            return &flow->outs[i];
        }
    }
    return NULL;
}

static flow_out *find_watched(const jzi_flow *flow, jzx_watch_ref watch)
{
    for (uint32_t i = 0; i < flow->out_count; i++) {
        if (flow->outs[i].watch == watch) {
            return &flow->outs[i];
        }
    }
    return NULL;
}

static void forget_credit(jzi_flow *flow, flow_out *out)
{
    flow->credit -= out->credit;
    out->credit = 0;
}

static void remove_out(jzi_flow *flow, flow_out *out)
{
    forget_credit(flow, out);
    if (out->watch != 0) {
        (void)jzx_unwatch(flow_loop(flow), out->watch);
    }
    flow_out *last = &flow->outs[--flow->out_count];
    memmove(out, out + 1, (size_t)(last - out) * sizeof *out);
}

/* The record of a consumer, a new one if need be. */
static jzx_err find_or_add(jzi_flow *flow, jzx_actor_id consumer, flow_out **out_out)
{
    *out_out = flow_out_find(flow, consumer);
    if (*out_out != NULL) {
        return JZX_OK;
    }
    jzx_watch_ref watch = 0;
    jzx_err err = jzx_watch(flow_loop(flow), consumer, JZX_WATCH_RESTARTS, &watch);
    if (err != JZX_OK) {
        return err;
    }
    flow_out *outs = jzi_array_grow(&flow->alloc, flow->outs, &flow->out_cap, 1,
                                    flow->out_count + 1u, sizeof *outs);
    if (outs == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    flow->outs = outs;
    *out_out = &outs[flow->out_count++];
    **out_out = (flow_out){.consumer = consumer, .watch = watch};
    return JZX_OK;
}

jzx_err jzi_flow_out_subscribe(jzi_flow *flow, jzx_actor_id consumer, const flow_wish *wish)
{
    if (consumer == JZX_NOBODY || consumer == flow->pub.ctx->self ||
        flow->opts->kind == JZX_FLOW_SINK) {
        flow_count(&flow->stats->ignored, 1);
        return JZX_OK;
    }
    flow_out *out = NULL;
    jzx_err err = find_or_add(flow, consumer, &out);
    if (err != JZX_OK) {
        return err;
    }
    forget_credit(flow, out);
    out->cookie = wish->cookie;
    out->link = wish->link;
    out->say = SAY_HELLO;
    out->on = true;
    out->told = false;
    flow->unsaid = true;
    return JZX_OK;
}

jzx_err jzi_flow_out_expect(jzi_flow *flow, const flow_wish *wish, jzx_actor_id sender)
{
    if (flow->opts->kind == JZX_FLOW_SINK) {
        flow_count(&flow->stats->ignored, 1);
        return JZX_OK;
    }
    flow_out *out = NULL;
    jzx_err err = find_or_add(flow, wish->peer, &out);
    if (err == JZX_OK && !out->on && sender == flow->pub.ctx->self) {
        out->link = wish->link;
        out->say = SAY_CONNECT; /* else the actor that connected us has told it, too */
        flow->unsaid = true;
    }
    return err;
}

bool jzi_flow_out_demand(jzi_flow *flow, jzx_actor_id consumer, uint64_t n)
{
    flow_out *out = flow_out_find(flow, consumer);
    if (out == NULL || !out->on || n == 0 || n > JZX_FLOW_DEMAND_MAX - out->credit) {
        return false;
    }
    out->credit += (uint32_t)n;
    flow->credit += n;
    return true;
}

bool jzi_flow_out_cancel(jzi_flow *flow, jzx_actor_id consumer, bool *out_lost)
{
    flow_out *out = flow_out_find(flow, consumer);
    if (out != NULL) {
        *out_lost = !out->told;
        remove_out(flow, out);
    }
    return out != NULL;
}

bool jzi_flow_out_restarted(jzi_flow *flow, const jzx_signal *news)
{
    flow_out *out = find_watched(flow, news->ref);
    if (out == NULL) {
        return false;
    }
    if (out->cookie >> 32 < news->incarnation) { /* not yet subscribed in this life */
        forget_credit(flow, out);
        out->on = false;
        out->told = false;
        out->waits = false;
        out->say = SAY_CONNECT;
        flow->unsaid = true;
    }
    return true;
}

bool jzi_flow_out_ended(jzi_flow *flow, jzx_watch_ref watch, bool *out_lost)
{
    flow_out *out = find_watched(flow, watch);
    if (out != NULL) {
        *out_lost = !out->told && !flow->was_done;
        out->watch = 0; /* its notice was handed over */
        remove_out(flow, out);
    }
    return out != NULL;
}

bool jzi_flow_out_room(jzi_flow *flow, jzx_actor_id consumer)
{
    flow_out *out = flow_out_find(flow, consumer);
    if (out == NULL || !out->waits) {
        return false;
    }
    out->waits = false;
    flow->unsaid = true;
    return true;
}

/* What is to be done about a consumer that did not take a message. JZX_OK: leave it out for now. */
static jzx_err refused(jzi_flow *flow, flow_out *out, jzx_err err)
{
    switch (err) {
    case JZX_ERR_MAILBOX_FULL: /* others send to it as well: its demand was meant to fit */
        err = jzi_flow_wait_room(flow, out->consumer);
        out->waits = err == JZX_ERR_AGAIN;
        return out->waits ? JZX_OK : err;
    case JZX_ERR_AGAIN:
        out->waits = true;
        return JZX_OK;
    case JZX_ERR_NO_SUCH_ACTOR:
    case JZX_ERR_STOPPING: /* news of its end or its restart is on the way */
        forget_credit(flow, out);
        out->on = false;
        out->say = 0;
        return JZX_OK;
    default:
        return err;
    }
}

/* The next one that asked for an item and has room for it, by turns. */
static flow_out *flow_out_choose(jzi_flow *flow)
{
    if (flow->credit == 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < flow->out_count; i++) {
        if (flow->turn >= flow->out_count) {
            flow->turn = 0;
        }
        flow_out *out = &flow->outs[flow->turn++];
        if (out->credit > 0 && !out->waits) {
            return out;
        }
    }
    return NULL;
}

static jzx_err send_item(jzi_flow *flow, jzx_actor_id to, const jzx_message *item)
{
    if ((item->flags & JZX_MSG_VALUE) != 0) {
        return jzx_send_u64(flow_loop(flow), to, item->u64, FLOW_TAG(FLOW_ITEM));
    }
    jzx_send_opts opts = {.data = item->data,
                          .len = item->len,
                          .drop = item->drop,
                          .tag = FLOW_TAG(FLOW_ITEM),
                          .flags = (item->flags & JZX_MSG_COPY) != 0 ? JZX_SEND_COPY : 0};
    return jzx_send_with(flow_loop(flow), to, &opts);
}

/* JZX_ERR_AGAIN: no consumer takes the item now. */
static jzx_err hand_over(jzi_flow *flow, const jzx_message *item)
{
    for (flow_out *out = flow_out_choose(flow); out != NULL; out = flow_out_choose(flow)) {
        jzx_err err = send_item(flow, out->consumer, item);
        if (err == JZX_OK) {
            out->credit--;
            flow->credit--;
            flow_count(&flow->stats->sent, 1);
            return JZX_OK;
        }
        err = refused(flow, out, err);
        if (err != JZX_OK) {
            return err;
        }
    }
    return JZX_ERR_AGAIN;
}

static jzx_err widen(jzi_flow *flow)
{
    size_t cap = jzi_array_cap(flow->ring_cap, 16, flow->ring_cap + 1, sizeof(jzx_message));
    jzx_message *ring = cap == 0 ? NULL : jzi_alloc(&flow->alloc, cap * sizeof *ring);
    if (ring == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < flow->count; i++) {
        ring[i] = flow->ring[(flow->head + i) & (flow->ring_cap - 1)];
    }
    jzi_free(&flow->alloc, flow->ring, flow->ring_cap * sizeof *ring);
    flow->ring = ring;
    flow->ring_cap = cap;
    flow->head = 0;
    return JZX_OK;
}

static jzx_err keep(jzi_flow *flow, jzx_message item)
{
    if (flow->count == flow->ring_cap && widen(flow) != JZX_OK) {
        return JZX_ERR_NO_MEMORY;
    }
    if ((item.flags & JZX_MSG_COPY) != 0 && item.len > 0) {
        void *copy = item.len > JZX_COPY_MAX ? NULL : jzi_alloc(&flow->alloc, item.len);
        if (copy == NULL) {
            return item.len > JZX_COPY_MAX ? JZX_ERR_TOO_BIG : JZX_ERR_NO_MEMORY;
        }
        memcpy(copy, item.data, item.len);
        item.data = copy;
    }
    flow->ring[(flow->head + flow->count++) & (flow->ring_cap - 1)] = item;
    return JZX_OK;
}

jzx_err jzi_flow_out_put(jzi_flow *flow, const jzx_message *item)
{
    jzx_err err = flow->count > 0 ? JZX_ERR_AGAIN : hand_over(flow, item);
    if (err == JZX_ERR_AGAIN) {
        err = keep(flow, *item);
    }
    if (err == JZX_OK) {
        flow_count(&flow->stats->emitted, 1);
    }
    return err;
}

/* The oldest leaves the ring; it was handed over unless it is `undelivered`. */
static void pop(jzi_flow *flow, bool undelivered)
{
    jzx_message *item = &flow->ring[flow->head];
    if ((item->flags & JZX_MSG_COPY) != 0) {
        jzi_free(&flow->alloc, item->len > 0 ? item->data : NULL, item->len);
    } else if (undelivered && (item->flags & JZX_MSG_VALUE) == 0 && item->drop != NULL &&
               item->data != NULL) {
        item->drop(item->data);
    }
    flow_count(&flow->stats->undelivered, undelivered ? 1 : 0);
    flow->head = (flow->head + 1) & (flow->ring_cap - 1);
    flow->count--;
}

void jzi_flow_out_drop_rest(jzi_flow *flow)
{
    while (flow->count > 0) {
        pop(flow, true);
    }
}

static jzx_err flow_out_say(jzi_flow *flow, flow_out *out)
{
    jzx_err err;
    if (out->say == SAY_HELLO) {
        err = jzi_flow_tell(flow, out->consumer, FLOW_HELLO, out->cookie);
    } else {
        flow_wish wish = {.peer = flow->pub.ctx->self, .link = out->link};
        err = jzi_flow_tell_wish(flow, out->consumer, FLOW_CONNECT, &wish);
    }
    if (err == JZX_OK) {
        out->say = 0;
        return JZX_OK;
    }
    return refused(flow, out, err);
}

static jzx_err tell_done(jzi_flow *flow, flow_out *out)
{
    jzx_err err = jzi_flow_tell(flow, out->consumer, FLOW_DONE, 0);
    out->told = err == JZX_OK;
    return out->told ? JZX_OK : refused(flow, out, err);
}

jzx_err jzi_flow_out_pump(jzi_flow *flow)
{
    jzx_err err = JZX_OK;
    while (err == JZX_OK && flow->count > 0) {
        err = hand_over(flow, &flow->ring[flow->head]);
        if (err == JZX_OK) {
            pop(flow, false);
        }
    }
    err = err == JZX_ERR_AGAIN ? JZX_OK : err;
    bool over = flow->finishing && flow->count == 0;
    if (!flow->unsaid && !over) {
        return err;
    }
    flow->unsaid = false;
    for (uint32_t i = 0; i < flow->out_count && err == JZX_OK; i++) {
        flow_out *out = &flow->outs[i];
        if (out->say != 0 && !out->waits) {
            err = flow_out_say(flow, out);
        }
        if (err == JZX_OK && over && out->on && out->say == 0 && !out->waits && !out->told) {
            err = tell_done(flow, out);
        }
    }
    return err;
}
