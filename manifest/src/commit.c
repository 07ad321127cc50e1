/* Requests on their way to the writer, from threads and from actors. */
#include "mf.h"
#include "op.h"

#include <jzx/manifest_watch.h>

jzx_err mfi_refusal(const jzx_mf *mf)
{
    if (mfi_store_forked(mf->store)) {
        return JZX_ERR_FORKED;
    }
    if (mf->readonly) {
        return JZX_ERR_READ_ONLY;
    }
    jzx_err err = atomic_load_explicit(&mf->err, memory_order_relaxed);
    if (err != JZX_OK) {
        return err;
    }
    return atomic_load_explicit(&mf->closing, memory_order_relaxed) ? JZX_ERR_CLOSED : JZX_OK;
}

/* What a send or an ask says when the writer is gone means that the manifest is closed. */
static jzx_err closed_if_gone(const jzx_mf *mf, jzx_err err)
{
    switch (err) {
    case JZX_ERR_NO_SUCH_ACTOR:
    case JZX_ERR_STOPPING:
    case JZX_ERR_LOOP_CLOSED: {
        jzx_err why = atomic_load_explicit(&mf->err, memory_order_relaxed);
        return why == JZX_OK ? JZX_ERR_CLOSED : why;
    }
    case JZX_ERR_AGAIN: /* the writer had no memory to remember the asker, or it ended */
        return atomic_load(&mf->closing) ? JZX_ERR_CLOSED : JZX_ERR_NO_MEMORY;
    default:
        return err;
    }
}

/* A request that the writer never saw. */
static void request_dropped(void *data)
{
    jzx_mf_txn *txn = data;
    if (txn->fn != NULL) {
        txn->receipt->err = JZX_ERR_CLOSED;
        txn->fn(txn->arg, txn->receipt);
    }
    jzx_mf_abort(txn);
}

static jzx_err send_order(jzx_mf *mf, const jzx_send_opts *opts)
{
    jzx_err err = mf->sender != NULL ? jzx_send_async_with(mf->sender, mf->writer, opts)
                                     : jzx_send_with(mf->loop, mf->writer, opts);
    return closed_if_gone(mf, err);
}

/* Makes a request of a transaction; on an error it is gone. */
static jzx_err prepare(jzx_mf_txn *txn)
{
    jzx_err err = mfi_refusal(txn->mf);
    if (err == JZX_OK) {
        txn->receipt = mfi_receipt_new(txn->count);
        err = txn->receipt == NULL ? JZX_ERR_NO_MEMORY : JZX_OK;
    }
    if (err != JZX_OK) {
        jzx_mf_abort(txn);
    }
    return err;
}

jzx_err jzx_mf_commit_async(jzx_mf_txn *txn, jzx_mf_done_fn fn, void *arg)
{
    if (txn == NULL || fn == NULL) {
        jzx_mf_abort(txn);
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = prepare(txn);
    if (err != JZX_OK) {
        return err;
    }
    txn->fn = fn;
    txn->arg = arg;
    const jzx_send_opts opts = {.data = txn, .drop = request_dropped, .tag = MFI_TAG_REQUEST};
    err = send_order(txn->mf, &opts);
    if (err != JZX_OK) {
        jzx_mf_abort(txn);
    }
    return err;
}

/* Callers that wait when the manifest is closed are told so, and close waits until they have
 * left. */
static void enter(jzx_mf *mf)
{
    (void)pthread_mutex_lock(&mf->lock);
    mf->inside++;
    (void)pthread_mutex_unlock(&mf->lock);
}

static void leave(jzx_mf *mf)
{
    (void)pthread_mutex_lock(&mf->lock);
    if (--mf->inside == 0) {
        (void)pthread_cond_broadcast(&mf->ended_cond);
    }
    (void)pthread_mutex_unlock(&mf->lock);
}

static jzx_err wait_for(jzx_mf *mf, const jzx_ask_opts *opts, jzx_message *msg)
{
    if (mf->sender == NULL) {
        return JZX_ERR_NOT_SUPPORTED;
    }
    jzx_reply reply;
    return closed_if_gone(mf, jzx_ask_wait(mf->sender, mf->writer, opts, &reply, msg));
}

static jzx_err commit_and_wait(jzx_mf *mf, jzx_mf_txn *txn, uint32_t timeout_ms,
                               jzx_mf_receipt **out_receipt)
{
    jzx_err err = prepare(txn);
    if (err != JZX_OK) {
        return err;
    }
    const jzx_ask_opts opts = {
        .data = txn,
        .drop = request_dropped,
        .tag = MFI_TAG_REQUEST,
        .flags = JZX_SEND_CONSUME,
        .timeout_ms = timeout_ms == 0 ? JZX_ASK_NO_TIMEOUT : timeout_ms,
    };
    jzx_message msg;
    err = wait_for(mf, &opts, &msg);
    if (err == JZX_ERR_DEADLOCK || err == JZX_ERR_NOT_SUPPORTED) {
        jzx_mf_abort(txn); /* the request was not sent */
    }
    if (err == JZX_OK) {
        *out_receipt = msg.data;
        err = (*out_receipt)->err;
    }
    return err;
}

jzx_err jzx_mf_commit(jzx_mf_txn *txn, uint32_t timeout_ms, jzx_mf_receipt **out_receipt)
{
    if (txn == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_mf *mf = txn->mf;
    jzx_mf_receipt *receipt = NULL;
    enter(mf);
    jzx_err err = commit_and_wait(mf, txn, timeout_ms, &receipt);
    leave(mf);
    if (out_receipt != NULL && receipt != NULL) {
        *out_receipt = receipt;
    } else {
        jzx_mf_receipt_free(receipt);
    }
    return err;
}

/* Ids of actors mean something within one system only. */
static bool is_reachable(const jzx_mf *mf, jzx_loop *loop)
{
    return mf->system != NULL ? loop != NULL && jzx_loop_system(loop) == mf->system
                              : loop == mf->loop;
}

jzx_err jzx_mf_commit_ask(jzx_loop *loop, jzx_mf_txn *txn, uint32_t tag, uint32_t timeout_ms,
                          void *arg, jzx_ask_ref *out_ref)
{
    if (txn == NULL || tag >= JZX_TAG_SYSTEM_FIRST) {
        jzx_mf_abort(txn);
        return txn == NULL ? JZX_ERR_INVALID_ARG : JZX_ERR_RESERVED_TAG;
    }
    jzx_mf *mf = txn->mf;
    if (!is_reachable(mf, loop)) {
        jzx_mf_abort(txn);
        return JZX_ERR_NOT_SUPPORTED;
    }
    jzx_err err = prepare(txn);
    if (err != JZX_OK) {
        return err;
    }
    txn->tag = tag;
    const jzx_ask_opts opts = {
        .data = txn,
        .drop = request_dropped,
        .tag = MFI_TAG_REQUEST,
        .timeout_ms = timeout_ms,
        .arg = arg,
    };
    err = closed_if_gone(mf, jzx_ask(loop, mf->writer, &opts, out_ref));
    if (err != JZX_OK) {
        jzx_mf_abort(txn);
    }
    return err;
}

jzx_err jzx_mf_generation_wait(jzx_mf *mf, uint32_t component, uint64_t target, uint32_t timeout_ms,
                               uint64_t *out_reached)
{
    if (mf == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    mfi_wait_order order = {target, component, 0};
    const jzx_ask_opts opts = {
        .data = &order,
        .len = sizeof order,
        .tag = MFI_TAG_WAIT,
        .flags = JZX_SEND_COPY,
        .timeout_ms = timeout_ms == 0 ? JZX_ASK_NO_TIMEOUT : timeout_ms,
    };
    jzx_message msg;
    enter(mf);
    jzx_err err = mfi_refusal(mf);
    if (err == JZX_OK) {
        err = wait_for(mf, &opts, &msg);
    }
    leave(mf);
    if (err == JZX_OK && out_reached != NULL) {
        *out_reached = msg.u64;
    }
    return err;
}

jzx_err jzx_mf_generation_ask(jzx_loop *loop, jzx_mf *mf, uint32_t component, uint64_t target,
                              uint32_t tag, uint32_t timeout_ms, void *arg, jzx_ask_ref *out_ref)
{
    jzx_err err = mf == NULL ? JZX_ERR_INVALID_ARG : mfi_refusal(mf);
    if (err != JZX_OK) {
        return err;
    }
    if (tag >= JZX_TAG_SYSTEM_FIRST || !is_reachable(mf, loop)) {
        return tag >= JZX_TAG_SYSTEM_FIRST ? JZX_ERR_RESERVED_TAG : JZX_ERR_NOT_SUPPORTED;
    }
    mfi_wait_order order = {target, component, tag};
    const jzx_ask_opts opts = {
        .data = &order,
        .len = sizeof order,
        .tag = MFI_TAG_WAIT,
        .flags = JZX_SEND_COPY,
        .timeout_ms = timeout_ms,
        .arg = arg,
    };
    return closed_if_gone(mf, jzx_ask(loop, mf->writer, &opts, out_ref));
}

jzx_err jzx_mf_follow(jzx_mf *mf, jzx_actor_id to, uint32_t tag, uint64_t after, uint64_t *out_id)
{
    jzx_err err = mf == NULL || to == JZX_NOBODY ? JZX_ERR_INVALID_ARG : mfi_refusal(mf);
    if (err == JZX_OK && tag >= JZX_TAG_SYSTEM_FIRST) {
        err = JZX_ERR_RESERVED_TAG;
    }
    if (err != JZX_OK) {
        return err;
    }
    mfi_follow_order order = {
        .id = atomic_fetch_add_explicit(&mf->next_follow, 1, memory_order_relaxed) + 1,
        .after = after,
        .to = to,
        .tag = tag,
    };
    const jzx_send_opts opts = {
        .data = &order, .len = sizeof order, .tag = MFI_TAG_FOLLOW, .flags = JZX_SEND_COPY};
    err = send_order(mf, &opts);
    if (err == JZX_OK && out_id != NULL) {
        *out_id = order.id;
    }
    return err;
}

jzx_err jzx_mf_unfollow(jzx_mf *mf, uint64_t id)
{
    jzx_err err = mf == NULL ? JZX_ERR_INVALID_ARG : mfi_refusal(mf);
    const jzx_send_opts opts = {.u64 = id, .tag = MFI_TAG_UNFOLLOW, .flags = JZX_SEND_VALUE};
    return err == JZX_OK ? send_order(mf, &opts) : err;
}
