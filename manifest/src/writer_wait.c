/* Askers that wait for a generation.
 *
 * Askers are kept in one array and looked at after every commit that bumped something: a thousand
 * of them cost a few microseconds beside a commit of hundreds. How long each is prepared to wait is
 * known to its ask, which tells it; one that gave up is noticed here when room is needed. */
#include "memory.h"
#include "tables.h"
#include "writer.h"

/* The generation that is durable now. */
static jzx_err current_of(const mfi_view *view, uint32_t component, uint64_t *out)
{
    jzx_mf_key key = jzx_mf_key_generation(component);
    jzx_mf_span value;
    jzx_err err = mfi_get(view, &key, &value);
    if (err == JZX_ERR_NOT_FOUND) {
        *out = 0;
        return JZX_OK;
    }
    jzx_mf_generation record;
    if (err == JZX_OK && (err = mfi_decode_generation(value, &record, NULL)) == JZX_OK) {
        *out = record.current;
    }
    return err;
}

static void note_count(mfi_writer *writer)
{
    atomic_store_explicit(&writer->mf->counts.waiters, writer->wait_count, memory_order_relaxed);
}

static void drop_unwanted(jzx_context *ctx, mfi_writer *writer)
{
    size_t kept = 0;
    for (size_t i = 0; i < writer->wait_count; i++) {
        if (jzx_request_is_wanted(ctx, writer->waits[i].ask) != 0) {
            writer->waits[kept++] = writer->waits[i];
        } else {
            (void)jzx_request_drop(ctx, writer->waits[i].ask);
        }
    }
    writer->wait_count = kept;
}

static jzx_err make_room(jzx_context *ctx, mfi_writer *writer)
{
    if (writer->wait_count < writer->wait_cap) {
        return JZX_OK;
    }
    drop_unwanted(ctx, writer);
    if (writer->wait_count <= writer->wait_cap / 2 && writer->wait_cap != 0) {
        return JZX_OK;
    }
    mfi_wait *waits =
        mfi_array_grow(writer->waits, &writer->wait_cap, 16, writer->wait_cap, sizeof *waits);
    if (waits == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    writer->waits = waits;
    return JZX_OK;
}

void mfi_writer_wait(jzx_context *ctx, mfi_writer *writer, const mfi_wait_order *order)
{
    uint64_t current = 0;
    mfi_reader *reader;
    jzx_err err = mfi_reader_begin(writer->mf->store, &reader);
    if (err == JZX_OK) {
        const mfi_view view = {writer->mf->store, mfi_reader_txn(reader)};
        err = current_of(&view, order->component, &current);
        mfi_reader_end(writer->mf->store, reader);
    }
    if (err == JZX_OK && current >= order->target) {
        (void)jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, current, order->tag);
        return;
    }
    if (err == JZX_OK && !writer->closing && make_room(ctx, writer) == JZX_OK) {
        jzx_request ask = jzx_request_keep(ctx);
        if (ask != 0) {
            writer->waits[writer->wait_count++] =
                (mfi_wait){order->target, ask, order->component, order->tag};
        }
    }
    /* An ask that is not kept is told FORGOTTEN: the caller makes CLOSED or AGAIN of it. */
    note_count(writer);
}

void mfi_writer_wake(jzx_context *ctx, mfi_writer *writer)
{
    mfi_reader *reader;
    if (writer->wait_count == 0 || mfi_reader_begin(writer->mf->store, &reader) != JZX_OK) {
        return;
    }
    const mfi_view view = {writer->mf->store, mfi_reader_txn(reader)};
    size_t kept = 0;
    uint32_t component = 0;
    uint64_t current = 0;
    bool known = false;
    for (size_t i = 0; i < writer->wait_count; i++) {
        const mfi_wait wait = writer->waits[i];
        if (!known || wait.component != component) {
            component = wait.component;
            known = current_of(&view, component, &current) == JZX_OK;
        }
        if (known && current >= wait.target) {
            (void)jzx_reply_u64(ctx, wait.ask, current, wait.tag);
        } else {
            writer->waits[kept++] = wait;
        }
    }
    writer->wait_count = kept;
    mfi_reader_end(writer->mf->store, reader);
    note_count(writer);
}

void mfi_writer_end_waits(jzx_context *ctx, mfi_writer *writer)
{
    for (size_t i = 0; i < writer->wait_count; i++) {
        (void)jzx_request_drop(ctx, writer->waits[i].ask);
    }
    mfi_free(writer->waits);
    writer->waits = NULL;
    writer->wait_count = 0;
    writer->wait_cap = 0;
    note_count(writer);
}
