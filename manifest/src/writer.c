#include "writer.h"

#include "memory.h"

#include <jzx/lifecycle.h>
#include <jzx/observe.h>

/* Requests in one commit at most; more would only make the first ones wait. */
#define BATCH_MAX 4096u

void mfi_line_push(mfi_line *line, jzx_mf_txn *txn)
{
    txn->next = NULL;
    if (line->last == NULL) {
        line->first = txn;
    } else {
        line->last->next = txn;
    }
    line->last = txn;
    line->count++;
    line->bytes += txn->bytes;
}

jzx_mf_txn *mfi_line_pop(mfi_line *line)
{
    jzx_mf_txn *txn = line->first;
    if (txn != NULL) {
        line->first = txn->next;
        line->last = line->first == NULL ? NULL : line->last;
        line->count--;
        line->bytes -= txn->bytes;
    }
    return txn;
}

static void take_request(jzx_context *ctx, mfi_writer *writer)
{
    bool asked = jzx_is_ask(ctx) != 0;
    jzx_request ask = asked ? jzx_request_keep(ctx) : 0;
    jzx_mf_txn *txn = jzx_message_take(ctx);
    if (asked && ask == 0) {
        /* No memory to remember the asker: it is told FORGOTTEN, nothing is done. */
        jzx_mf_abort(txn);
        return;
    }
    txn->ask = ask;
    atomic_fetch_add_explicit(&writer->mf->counts.requests, 1, memory_order_relaxed);
    jzx_err err = atomic_load_explicit(&writer->mf->err, memory_order_relaxed);
    if (err != JZX_OK) {
        mfi_writer_refuse(ctx, writer, txn, err);
        return;
    }
    mfi_line_push(&writer->batch, txn);
}

/* A full mailbox brings another message, and with it another try. */
static bool send_self(jzx_context *ctx, uint32_t tag, bool *sent)
{
    if (!*sent) {
        *sent = jzx_send_u64(ctx->loop, ctx->self, 0, tag) == JZX_OK;
    }
    return *sent || jzx_mailbox_depth(ctx->loop, ctx->self) > 1;
}

static bool is_full(const mfi_writer *writer)
{
    return writer->batch.count >= BATCH_MAX || writer->batch.bytes >= writer->mf->opts.batch_bytes;
}

/* Whether to commit now; else a FLUSH will come. */
static bool is_time_to_commit(jzx_context *ctx, mfi_writer *writer, uint32_t tag)
{
    if (writer->batch.count == 0) {
        return mfi_writer_is_due(writer);
    }
    if (tag == MFI_TAG_FLUSH || tag == MFI_TAG_LAST || writer->stopping || is_full(writer)) {
        return true;
    }
    return !send_self(ctx, MFI_TAG_FLUSH, &writer->flush_sent);
}

static void handle(jzx_context *ctx, mfi_writer *writer, const jzx_message *msg)
{
    if (msg->kind == JZX_KIND_NOTICE) {
        if (msg->tag == JZX_TAG_ROOM) {
            mfi_writer_room(ctx, writer, msg->data);
        }
        return;
    }
    switch (msg->tag) {
    case MFI_TAG_REQUEST:
        take_request(ctx, writer);
        break;
    case MFI_TAG_WAIT:
        mfi_writer_wait(ctx, writer, msg->data);
        break;
    case MFI_TAG_FOLLOW:
        mfi_writer_follow(ctx, writer, msg->data);
        break;
    case MFI_TAG_UNFOLLOW:
        mfi_writer_unfollow(writer, msg->u64);
        break;
    case MFI_TAG_PUMP:
        writer->pumping = false;
        mfi_writer_pump(ctx, writer);
        break;
    case MFI_TAG_TICK:
        writer->timer_ms = UINT64_MAX;
        writer->look = true;
        break;
    case MFI_TAG_CLOSE:
        writer->closing = true;
        break;
    case MFI_TAG_FLUSH:
        writer->flush_sent = false;
        break;
    case MFI_TAG_LAST:
        writer->last_sent = false;
        break;
    default:
        break;
    }
}

/* Whether everything that was accepted is done. Within a turn the mailbox counts what the turn
 * took; a turn that was only the timer's sees it empty. */
static bool is_finished(jzx_context *ctx, mfi_writer *writer, uint32_t tag)
{
    if (!writer->closing || writer->batch.count != 0) {
        return false;
    }
    if (writer->stopping) {
        return tag == MFI_TAG_TICK && jzx_mailbox_depth(ctx->loop, ctx->self) == 0;
    }
    if (tag == MFI_TAG_LAST) {
        return true;
    }
    return !send_self(ctx, MFI_TAG_LAST, &writer->last_sent);
}

static jzx_behavior_result writer_behavior(jzx_context *ctx, const jzx_message *msg)
{
    mfi_writer *writer = ctx->state;
    uint32_t tag = msg->kind == JZX_KIND_NOTICE ? 0 : msg->tag;
    handle(ctx, writer, msg);
    if (is_time_to_commit(ctx, writer, tag)) {
        mfi_writer_flush(ctx, writer);
    }
    /* What an answer that could not be delivered gives back. */
    if (writer->batch.count != 0 && !send_self(ctx, MFI_TAG_FLUSH, &writer->flush_sent)) {
        mfi_writer_flush(ctx, writer);
    }
    if (is_finished(ctx, writer, tag)) {
        writer->finished = true;
        return JZX_BEHAVIOR_STOP;
    }
    jzx_err err = mfi_writer_arm(ctx, writer);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, "the manifest's timer");
}

/* The loop is being shut down: what was accepted is done first. */
static jzx_behavior_result writer_signal(jzx_context *ctx, const jzx_signal *signal)
{
    mfi_writer *writer = ctx->state;
    if (signal->kind != JZX_SIGNAL_PRE_STOP || writer->finished) {
        return JZX_BEHAVIOR_OK;
    }
    atomic_store(&writer->mf->closing, true);
    writer->closing = true;
    writer->stopping = true;
    if (writer->batch.count != 0) {
        mfi_writer_flush(ctx, writer);
    }
    if (jzx_mailbox_depth(ctx->loop, ctx->self) == 0) {
        return JZX_BEHAVIOR_OK;
    }
    return mfi_writer_arm(ctx, writer) == JZX_OK ? JZX_BEHAVIOR_DEFER : JZX_BEHAVIOR_OK;
}

/* The last commit says that the file was closed properly. */
static void say_clean(mfi_writer *writer)
{
    mfi_tx *tx = &writer->tx;
    MDB_txn *txn;
    if (mdb_txn_begin(mfi_store_env(writer->mf->store), NULL, 0, &txn) != 0) {
        return;
    }
    tx->view.txn = txn;
    tx->meta.clean = 1;
    tx->meta.last_ms = mfi_clock_now_ms(&writer->mf->clock);
    const mfi_writes writes = {1, 0};
    if (mfi_meta_store(tx) == JZX_OK &&
        mfi_store_make_room(writer->mf->store, txn, &writes, false) == JZX_OK) {
        (void)mdb_txn_commit(txn);
    } else {
        mdb_txn_abort(txn);
    }
}

static void refuse_all(jzx_context *ctx, mfi_writer *writer, mfi_line *line)
{
    for (jzx_mf_txn *txn; (txn = mfi_line_pop(line)) != NULL;) {
        mfi_writer_refuse(ctx, writer, txn, JZX_ERR_CLOSED);
    }
}

static void writer_deinit(jzx_context *ctx)
{
    mfi_writer *writer = ctx->state;
    jzx_mf *mf = writer->mf;
    atomic_store(&mf->closing, true);
    refuse_all(ctx, writer, &writer->batch);
    refuse_all(ctx, writer, &writer->claims);
    mfi_writer_end_waits(ctx, writer);
    if (atomic_load(&mf->err) == JZX_OK) {
        say_clean(writer);
    }
    mfi_free(writer->followers);
    mfi_buf_free(&writer->tx.buf);
    mfi_free(writer);
    (void)pthread_mutex_lock(&mf->lock);
    mf->ended = true;
    (void)pthread_cond_broadcast(&mf->ended_cond);
    (void)pthread_mutex_unlock(&mf->lock);
}

static jzx_behavior_result writer_init(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    mfi_writer *writer = arg;
    mfi_writer_look_ahead(writer);
    if (mfi_writer_is_due(writer)) {
        mfi_writer_flush(ctx, writer);
    }
    jzx_err err = mfi_writer_arm(ctx, writer);
    if (err == JZX_OK) {
        return JZX_BEHAVIOR_OK;
    }
    writer_deinit(ctx); /* which the runtime does not call after a start that failed */
    return jzx_fail(ctx, err, "the manifest's timer");
}

void mfi_writer_spec(jzx_mf *mf, mfi_writer *writer, jzx_spawn_opts *out)
{
    *out = (jzx_spawn_opts){
        .behavior = writer_behavior,
        .init = writer_init,
        .deinit = writer_deinit,
        .on_signal = writer_signal,
        .state = writer,
        .name = "manifest",
        .mailbox_cap = mf->opts.queue_cap,
        .max_msgs = BATCH_MAX,
        .stop_timeout_ms = JZX_SHUTDOWN_INFINITE,
    };
}
