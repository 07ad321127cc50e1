/* Flows: many items in, one batch out. */
#include "patterns/flow_priv.h"

#include <string.h>

/* A batch as it travels. A flow_block knows its allocator, because it may be dropped anywhere. */
typedef struct flow_block {
    jzx_flow_batch pub; /* first: what the receiver sees */
    jzx_allocator alloc;
    size_t cap;
    jzx_message items[];
} flow_block;

static void free_item(const flow_block *block, const jzx_message *item)
{
    if ((item->flags & JZX_MSG_VALUE) != 0 || item->data == NULL) {
        return;
    }
    if ((item->flags & JZX_MSG_COPY) != 0) {
        jzi_free(&block->alloc, item->len > 0 ? item->data : NULL, item->len);
    } else if (item->drop != NULL) {
        item->drop(item->data);
    }
}

/* The `drop` of a batch. */
static void drop_block(void *data)
{
    flow_block *block = data;
    for (size_t i = 0; i < block->pub.count; i++) {
        free_item(block, &block->items[i]);
    }
    jzx_allocator alloc = block->alloc;
    jzi_free(&alloc, block, sizeof *block + block->cap * sizeof block->items[0]);
}

/* Begins a batch, and its time. */
static jzx_err flow_batch_begin(jzi_flow *flow)
{
    size_t cap = flow->opts->batch_max;
    flow_block *block = jzi_alloc(&flow->alloc, sizeof *block + cap * sizeof block->items[0]);
    if (block == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    *block = (flow_block){.pub = {.items = block->items}, .alloc = flow->alloc, .cap = cap};
    jzx_timer_opts opts = {
        .delay_ms = flow->opts->batch_ms, .tag = FLOW_TAG(FLOW_FLUSH), .flags = JZX_TIMER_VALUE};
    jzx_err err = opts.delay_ms == 0 ? JZX_OK
                                     : jzx_timer_start(flow_loop(flow), flow->pub.ctx->self, &opts,
                                                       &flow->flush_timer);
    if (err != JZX_OK) {
        drop_block(block);
        return err;
    }
    flow->batch = block;
    return JZX_OK;
}

jzx_err jzi_flow_batch_add(jzi_flow *flow, const jzx_message *item)
{
    jzx_err err = flow->batch == NULL ? flow_batch_begin(flow) : JZX_OK;
    if (err != JZX_OK) {
        return err;
    }
    flow_block *block = flow->batch;
    jzx_message kept = *item;
    if ((item->flags & JZX_MSG_COPY) != 0 && item->len > 0) {
        kept.data = jzi_alloc(&block->alloc, item->len);
        if (kept.data == NULL) {
            return JZX_ERR_NO_MEMORY;
        }
        memcpy(kept.data, item->data, item->len);
    } else if ((item->flags & JZX_MSG_VALUE) == 0) {
        (void)jzx_message_take(flow->pub.ctx);
    }
    block->items[block->pub.count++] = kept;
    return block->pub.count == block->cap ? jzi_flow_batch_flush(flow) : JZX_OK;
}

jzx_err jzi_flow_batch_flush(jzi_flow *flow)
{
    if (flow->batch == NULL) {
        return JZX_OK;
    }
    jzx_message item = {.data = flow->batch, .len = sizeof(jzx_flow_batch), .drop = drop_block};
    jzx_err err = jzi_flow_out_put(flow, &item);
    if (err == JZX_OK) {
        flow->batch = NULL;
        if (flow->flush_timer != 0) {
            (void)jzx_cancel_timer(flow_loop(flow), flow->flush_timer);
            flow->flush_timer = 0;
        }
    }
    return err;
}

uint64_t jzi_flow_batch_count(const jzi_flow *flow)
{
    return flow->batch == NULL ? 0 : flow->batch->pub.count;
}

void jzi_flow_batch_discard(jzi_flow *flow)
{
    if (flow->batch != NULL) {
        flow_count(&flow->stats->emitted, 1);
        flow_count(&flow->stats->undelivered, 1);
        drop_block(flow->batch);
        flow->batch = NULL;
    }
}
