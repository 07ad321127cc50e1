/* Followers, the actors that are sent events: each has a place in the table of events, and goes on
 * from there when there is something new, or room in its mailbox. */
#include "bytes.h"
#include "key.h"
#include "memory.h"
#include "writer.h"

#include <jzx/manifest_watch.h>

#include <string.h>

/* Events that are sent in one go; then others have their turn. */
#define PUMP_MAX 1024u

static void note_count(mfi_writer *writer)
{
    atomic_store_explicit(&writer->mf->counts.followers, writer->follower_count,
                          memory_order_relaxed);
}

static void pump_later(jzx_context *ctx, mfi_writer *writer)
{
    if (!writer->pumping &&
        jzx_send_with(ctx->loop, ctx->self,
                      &(jzx_send_opts){.tag = MFI_TAG_PUMP, .flags = JZX_SEND_URGENT}) == JZX_OK) {
        writer->pumping = true;
    }
}

void mfi_writer_follow(jzx_context *ctx, mfi_writer *writer, const mfi_follow_order *order)
{
    mfi_follower *more = mfi_array_grow(writer->followers, &writer->follower_cap, 8,
                                        writer->follower_count, sizeof *more);
    if (more == NULL) {
        return;
    }
    writer->followers = more;
    writer->followers[writer->follower_count++] = (mfi_follower){
        .id = order->id, .to = order->to, .seq = order->after + 1, .tag = order->tag};
    note_count(writer);
    mfi_writer_pump(ctx, writer);
}

static void writer_follow_forget(mfi_writer *writer, size_t index)
{
    writer->follower_count--;
    memmove(&writer->followers[index], &writer->followers[index + 1],
            (writer->follower_count - index) * sizeof writer->followers[0]);
    note_count(writer);
}

void mfi_writer_unfollow(mfi_writer *writer, uint64_t id)
{
    for (size_t i = 0; i < writer->follower_count; i++) {
        if (writer->followers[i].id == id) {
            writer_follow_forget(writer, i);
            return;
        }
    }
}

typedef struct pumping {
    jzx_context *ctx;
    mfi_follower *follower;
    uint32_t sent;
} pumping;

static jzx_err send_event(pumping *one, const jzx_mf_event *event)
{
    const jzx_send_opts opts = {.data = (void *)(uintptr_t)event,
                                .len = sizeof *event,
                                .tag = one->follower->tag,
                                .flags = JZX_SEND_COPY};
    return jzx_send_with(one->ctx->loop, one->follower->to, &opts);
}

/* One row of the table of events, to one follower. */
static jzx_err pump_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    pumping *one = arg;
    mfi_event stored;
    if (key.len != 12) {
        return JZX_ERR_CORRUPT;
    }
    jzx_err err = mfi_decode_event(value, &stored, NULL);
    if (err != JZX_OK) {
        return err;
    }
    if (one->sent == PUMP_MAX) {
        return JZX_ERR_AGAIN;
    }
    const uint8_t *bytes = key.data;
    jzx_mf_event event = {
        .seq = mfi_get_be64(bytes), .index = mfi_get_be32(bytes + 8), .change = stored.change};
    event.key.table = stored.table;
    event.key.len =
        (uint32_t)(stored.key.len < JZX_MF_KEY_BYTES ? stored.key.len : JZX_MF_KEY_BYTES);
    memcpy(event.key.bytes, stored.key.data, event.key.len);
    err = send_event(one, &event);
    if (err == JZX_OK) {
        one->follower->seq = event.seq;
        one->follower->index = event.index + 1;
        one->sent++;
    }
    return err;
}

/* What is not kept any more is told as lost, once, before what is. */
static jzx_err tell_lost(pumping *one, const mfi_writer *writer)
{
    mfi_follower *follower = one->follower;
    uint64_t first = writer->tx.meta.event_first;
    if (follower->seq >= first) {
        return JZX_OK;
    }
    const jzx_mf_event lost = {.seq = follower->seq, .change = JZX_MF_LOST};
    jzx_err err = send_event(one, &lost);
    if (err == JZX_OK) {
        follower->seq = first;
        follower->index = 0;
    }
    return err;
}

/* JZX_OK: it has everything. AGAIN: there is more. MAILBOX_FULL: it has no room. Else it is gone.
 */
static jzx_err pump_one(jzx_context *ctx, mfi_writer *writer, mfi_follower *follower,
                        const mfi_view *view)
{
    pumping one = {ctx, follower, 0};
    jzx_err err = tell_lost(&one, writer);
    if (err == JZX_OK) {
        jzx_mf_key from = mfi_key_event(follower->seq, follower->index);
        err = mfi_walk(view, &from, 0, pump_row, &one);
    }
    return err;
}

static void pump_all(jzx_context *ctx, mfi_writer *writer, const mfi_view *view)
{
    for (size_t i = 0; i < writer->follower_count;) {
        mfi_follower *follower = &writer->followers[i];
        jzx_err err = follower->stalled ? JZX_OK : pump_one(ctx, writer, follower, view);
        if (err == JZX_ERR_AGAIN || err == JZX_ERR_NO_MEMORY) {
            pump_later(ctx, writer);
        } else if (err == JZX_ERR_MAILBOX_FULL) {
            follower->stalled = jzx_notify_room(ctx->loop, follower->to) == JZX_OK;
            if (!follower->stalled) {
                pump_later(ctx, writer);
            }
        } else if (err != JZX_OK) {
            writer_follow_forget(writer, i);
            continue;
        }
        i++;
    }
}

void mfi_writer_pump(jzx_context *ctx, mfi_writer *writer)
{
    mfi_reader *reader;
    if (writer->follower_count == 0) {
        return;
    }
    if (mfi_reader_begin(writer->mf->store, &reader) != JZX_OK) {
        pump_later(ctx, writer);
        return;
    }
    const mfi_view view = {writer->mf->store, mfi_reader_txn(reader)};
    pump_all(ctx, writer, &view);
    mfi_reader_end(writer->mf->store, reader);
}

void mfi_writer_room(jzx_context *ctx, mfi_writer *writer, const jzx_room_notice *notice)
{
    for (size_t i = 0; i < writer->follower_count; i++) {
        if (writer->followers[i].to == notice->target) {
            writer->followers[i].stalled = false;
        }
    }
    mfi_writer_pump(ctx, writer);
}
