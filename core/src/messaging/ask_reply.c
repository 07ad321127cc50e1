/* Entry points for those who answer. */
#include "base/alloc.h"
#include "messaging/ask.h"
#include "sched/worker_record.h"

#include <string.h>

/* The request that a call is about, and whether the message in hand still has it. NULL: there is
 * none, or it is not this actor's. */
static jzi_ask *find_request(const jzi_worker *worker, jzx_request request, bool *out_in_hand)
{
    *out_in_hand = false;
    if (request != JZX_REQUEST_IN_HAND) {
        jzi_ask *it = jzi_ask_find(worker, request, JZI_ASK_DUTY);
        return it == NULL ||
                       atomic_load_explicit(&it->holder, memory_order_relaxed) != worker->ctx.self
                   ? NULL
                   : it;
    }
    const jzi_node *node = worker->in_hand;
    if (worker->phase != JZI_PHASE_BEHAVIOR || node == NULL ||
        (jzi_msg_flags(&node->msg) & JZI_MSG_EVENT) != 0) {
        return NULL;
    }
    *out_in_hand = (jzi_msg_flags(&node->msg) & JZI_MSG_ASK) != 0;
    if (!*out_in_hand && (jzi_msg_flags(&node->msg) & JZI_HAND_KEPT) == 0) {
        return NULL;
    }
    jzi_ask *it = jzi_ask_at(worker, node->ops);
    bool kept = atomic_load_explicit(&it->holder, memory_order_relaxed) == worker->ctx.self;
    return *out_in_hand || kept ? it : NULL;
}

/* The duty is nobody's for the moment: it leaves the message or the list. */
static void take_duty(jzi_worker *worker, jzi_ask *it, bool in_hand)
{
    if (in_hand) {
        jzi_msg_clear(&worker->in_hand->msg, JZI_MSG_ASK);
    } else {
        jzi_ask_unhold(it);
    }
}

int jzx_is_ask(const jzx_context *ctx)
{
    const jzi_worker *worker = jzi_worker_with_message(ctx);
    bool in_hand = false;
    return worker != NULL && find_request(worker, JZX_REQUEST_IN_HAND, &in_hand) != NULL;
}

jzx_request jzx_request_keep(jzx_context *ctx)
{
    if (jzi_worker_with_message(ctx) == NULL) {
        return 0;
    }
    JZI_ENTER(ctx->loop, "jzx_request_keep");
    bool in_hand = false;
    jzi_ask *it = find_request(worker, JZX_REQUEST_IN_HAND, &in_hand);
    if (it == NULL || (in_hand && jzi_worker_pattern_state(worker, worker->current) == NULL)) {
        return 0;
    }
    if (in_hand) {
        take_duty(worker, it, true);
        jzi_ask_hold(worker->current, it);
        jzi_msg_add(&worker->in_hand->msg, JZI_HAND_KEPT);
    }
    return jzi_ask_id(it);
}

int jzx_request_is_wanted(jzx_context *ctx, jzx_request request)
{
    const jzi_worker *worker = jzi_worker_of_ctx(ctx);
    bool in_hand = false;
    const jzi_ask *it = worker == NULL ? NULL : find_request(worker, request, &in_hand);
    return it != NULL && jzi_ask_is_wanted(it);
}

uint64_t jzx_request_deadline(jzx_context *ctx, jzx_request request)
{
    const jzi_worker *worker = jzi_worker_of_ctx(ctx);
    bool in_hand = false;
    const jzi_ask *it = worker == NULL ? NULL : find_request(worker, request, &in_hand);
    return it == NULL ? 0 : it->deadline_ns;
}

uint64_t jzx_correlation(const jzx_context *ctx)
{
    const jzi_worker *worker = jzi_worker_with_message(ctx);
    return worker == NULL ? 0 : jzi_worker_correlation(worker);
}

uint64_t jzx_request_correlation(jzx_context *ctx, jzx_request request)
{
    const jzi_worker *worker = jzi_worker_of_ctx(ctx);
    bool in_hand = false;
    const jzi_ask *it = worker == NULL ? NULL : find_request(worker, request, &in_hand);
    return it == NULL ? 0 : it->reply.correlation;
}

jzx_err jzx_request_drop(jzx_context *ctx, jzx_request request)
{
    if (jzi_worker_of_ctx(ctx) == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(ctx->loop, "jzx_request_drop");
    bool in_hand = false;
    jzi_ask *it = find_request(worker, request, &in_hand);
    if (it == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    take_duty(worker, it, in_hand);
    jzi_ask_end(worker, it, JZX_OUTCOME_FORGOTTEN, worker->ctx.self, NULL);
    return JZX_OK;
}

/* What a copied reply points to. False: no memory. */
static bool copy_payload(jzi_worker *worker, jzi_ask *it, const jzx_send_opts *opts,
                         void **out_data, uint32_t *flags)
{
    *out_data = opts->data;
    if ((*flags & JZX_MSG_COPY) == 0 || opts->len == 0) {
        return true;
    }
    if (opts->len > sizeof it->bytes || it->waiter != NULL) {
        *out_data = jzi_alloc(&worker->alloc, opts->len);
        *flags |= JZI_MSG_BLOCK;
        if (*out_data == NULL) {
            return false;
        }
        memcpy(*out_data, opts->data, opts->len);
    }
    return true;
}

/* How it ended, and what it was like. */
static inline void note_reply(jzi_worker *worker, jzi_ask *it)
{
    jzx_reply *reply = &it->reply;
    reply->outcome = JZX_OUTCOME_REPLIED;
    reply->err = JZX_OK;
    reply->callee = worker->ctx.self;
    reply->queue_depth = jzi_actor_used(worker->current);
    reply->age_ns = worker->now_ns > it->asked_ns ? worker->now_ns - it->asked_ns : 0;
    reply->reason.kind = JZX_REASON_NORMAL;
    reply->reason.code = 0;
    reply->reason.from = JZX_NOBODY;
    reply->reason.text[0] = reply->target_name[0] = '\0';
    if (jzi_unlikely(worker->timing)) {
        jzi_worker_ask_took(worker, it->asked_ns);
    }
}

static void fill_answer(jzi_worker *worker, jzi_ask *it, const jzx_send_opts *opts, void *data,
                        uint32_t flags)
{
    if ((flags & (JZX_MSG_COPY | JZI_MSG_BLOCK)) == JZX_MSG_COPY && opts->len > 0) {
        memcpy(it->bytes, data, opts->len); /* only now: before, they could be somebody else's */
        data = it->bytes;
    }
    it->errand.node.msg = (jzx_message){
        .data = data,
        .len = opts->len,
        .tag = opts->tag,
        .kind = JZX_KIND_REPLY,
        JZI_MSG_FLAGS(flags | JZI_MSG_EVENT),
        .sender = worker->ctx.self,
        .drop = opts->drop,
    };
    if ((flags & JZX_MSG_VALUE) != 0) {
        it->errand.node.msg.u64 = opts->u64;
    }
    note_reply(worker, it);
}

static jzx_err ask_reply_answer(jzx_context *ctx, jzx_request request, const jzx_send_opts *opts)
{
    JZI_ENTER(ctx->loop, "jzx_reply");
    uint32_t flags = 0;
    bool in_hand = false;
    jzx_err err =
        opts->deadline_ns != 0 || opts->margin != 0 || (opts->flags & JZX_SEND_URGENT) != 0
            ? JZX_ERR_INVALID_ARG
            : jzi_mailbox_check_opts(opts, &flags);
    if (err != JZX_OK) {
        return err;
    }
    jzi_ask *it = find_request(worker, request, &in_hand);
    if (it == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    void *data = NULL;
    if (!copy_payload(worker, it, opts, &data, &flags)) {
        return JZX_ERR_NO_MEMORY;
    }
    take_duty(worker, it, in_hand);
    if (!jzi_ask_decide(it)) {
        jzi_ask_leave(worker, it, JZI_ASK_DUTY);
        if ((flags & JZI_MSG_BLOCK) != 0) {
            jzi_free(&worker->alloc, data, opts->len);
        }
        jzi_count_add(&worker->counters.late_replies, 1);
        return JZX_ERR_NOT_WANTED;
    }
    fill_answer(worker, it, opts, data, flags);
    jzi_ask_leave(worker, it, JZI_ASK_DUTY);
    jzi_ask_deliver(worker, it);
    jzi_count_add(&worker->counters.replies, 1);
    return JZX_OK;
}

jzx_err jzx_reply_with_sized(jzx_context *ctx, jzx_request request, const jzx_send_opts *opts,
                             size_t opts_size)
{
    jzx_send_opts known;
    if (jzi_worker_of_ctx(ctx) == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    err = ask_reply_answer(ctx, request, &known);
    if (jzi_unlikely(err != JZX_OK)) {
        jzi_send_consume(&known);
    }
    return err;
}

/* A value for an ask that is in hand, and was made on this loop by an actor that still waits: then
 * nobody else knows it. The long way does the same. */
static inline bool reply_quickly(jzx_context *ctx, uint64_t value, uint32_t tag)
{
    jzi_worker *worker = jzi_container_of(ctx, jzi_worker, ctx);
    jzi_node *request = worker->in_hand;
    if (jzi_unlikely(worker->pooled || worker->phase != JZI_PHASE_BEHAVIOR || request == NULL ||
                     worker->dropping || (jzi_msg_flags(&request->msg) & JZI_MSG_ASK) == 0 ||
                     tag >= JZX_TAG_SYSTEM_FIRST)) {
        return false;
    }
    jzi_ask *it = jzi_ask_at(worker, request->ops);
    uint64_t word = jzi_ask_word(it);
    if (jzi_unlikely(it->shared || (word & JZI_ASK_DECIDED) != 0)) {
        return false;
    }
    jzi_node *answer = &it->errand.node;
    jzi_msg_clear(&request->msg, JZI_MSG_ASK);
    atomic_store_explicit(&it->word, (word | JZI_ASK_DECIDED) & ~JZI_ASK_DUTY,
                          memory_order_relaxed);
    jzi_mailbox_fill(&answer->msg, value, 0, tag, JZX_MSG_VALUE | JZI_MSG_EVENT, ctx->self);
    answer->msg.kind = JZX_KIND_REPLY;
    answer->msg.drop = NULL;
    answer->msg.deadline_ns = 0;
    note_reply(worker, it);
    jzi_ask_post(worker, it);
    jzi_count_add(&worker->counters.replies, 1);
    return true;
}

jzx_err jzx_reply_u64(jzx_context *ctx, jzx_request request, uint64_t value, uint32_t tag)
{
    if (jzi_likely(ctx != NULL && request == JZX_REQUEST_IN_HAND) &&
        reply_quickly(ctx, value, tag)) {
        return JZX_OK;
    }
    const jzx_send_opts opts = {.u64 = value, .tag = tag, .flags = JZX_SEND_VALUE};
    return jzx_reply_with(ctx, request, &opts);
}

jzx_err jzx_reply_copy(jzx_context *ctx, jzx_request request, const void *bytes, size_t len,
                       uint32_t tag)
{
    jzx_send_opts opts = {.len = len, .tag = tag, .flags = JZX_SEND_COPY};
    memcpy(&opts.data, &bytes, sizeof opts.data);
    return jzx_reply_with(ctx, request, &opts);
}

static jzx_err delegate(jzx_context *ctx, jzx_request request, jzx_actor_id to, jzx_send_opts *opts)
{
    JZI_ENTER(ctx->loop, "jzx_delegate");
    uint32_t flags = 0;
    bool in_hand = false;
    jzx_err err = jzi_mailbox_check_opts(opts, &flags);
    if (err != JZX_OK) {
        return err;
    }
    jzi_ask *it = find_request(worker, request, &in_hand);
    if (it == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    if (!jzi_ask_is_wanted(it)) {
        return JZX_ERR_NOT_WANTED;
    }
    if (opts->deadline_ns == 0 && it->deadline_ns != 0) {
        opts->deadline_ns = it->deadline_ns;
        flags |= JZI_MSG_DEADLINE;
    }
    opts->reserved = jzi_ask_index(it);
    /* Before it is sent: the receiver may be at work on it before the send returns. */
    take_duty(worker, it, in_hand);
    jzi_ask_pass(it, to);
    err = jzi_send_inside(worker, to, opts, flags | JZI_MSG_ASK);
    if (err == JZX_OK) {
        return JZX_OK;
    }
    jzi_ask_pass(it, worker->ctx.self);
    if (in_hand) {
        jzi_msg_add(&worker->in_hand->msg, JZI_MSG_ASK);
    } else {
        jzi_ask_hold(worker->current, it);
    }
    return jzi_worker_refuse(worker, to, err);
}

jzx_err jzx_delegate_sized(jzx_context *ctx, jzx_request request, jzx_actor_id to,
                           const jzx_send_opts *opts, size_t opts_size)
{
    jzx_send_opts known;
    if (jzi_worker_of_ctx(ctx) == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    err = delegate(ctx, request, to, &known);
    if (err != JZX_OK) {
        jzi_send_consume(&known);
    }
    return err;
}
