/* Entry points for asks and their answers. */
#include "api_steps.h"
#include "ask.h"
#include "base/alloc.h"
#include "stash.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_TIMEOUT_MS = 5000, NS_PER_MS = 1000000 };

const char *jzx_outcome_name(uint32_t outcome)
{
    static const char *const names[] = {
        "replied",       "timed out",    "expired",   "callee died", "callee restarted",
        "no such actor", "mailbox full", "cancelled", "forgotten",   "refused"};
    return outcome < sizeof names / sizeof names[0] ? names[outcome] : "unknown";
}

int jzx_reply_format(const jzx_reply *reply, char *buf, size_t cap)
{
    if (reply == NULL) {
        return snprintf(buf, cap, "no ask");
    }
    char reason[160] = "";
    if (reply->outcome == JZX_OUTCOME_CALLEE_DIED ||
        reply->outcome == JZX_OUTCOME_CALLEE_RESTARTED) {
        (void)jzx_reason_format(&reply->reason, reason, sizeof reason);
    }
    char name[JZX_NAME_MAX + 4] = "";
    if (reply->target_name[0] != '\0') {
        (void)snprintf(name, sizeof name, "'%s' ", reply->target_name);
    }
    return snprintf(buf, cap, "ask %s(%llx) tag %u: %s%s%s%s after %.1f ms, %u queued", name,
                    (unsigned long long)reply->target, (unsigned)reply->tag,
                    jzx_outcome_name(reply->outcome), reason[0] == '\0' ? "" : " (", reason,
                    reason[0] == '\0' ? "" : ")", (double)reply->age_ns / NS_PER_MS,
                    (unsigned)reply->queue_depth);
}

jzx_send_opts jzi_ask_request(const jzx_ask_opts *opts, const jzi_ask *ask)
{
    jzx_send_opts request = {
        .data = opts->data,
        .len = opts->len,
        .drop = opts->drop,
        .deadline_ns = ask == NULL ? 0 : ask->deadline_ns,
        .tag = opts->tag,
        .flags = opts->flags,
        .reserved = ask == NULL ? 0 : jzi_ask_index(ask),
    };
    if ((opts->flags & JZX_SEND_VALUE) != 0) {
        request.u64 = opts->u64;
    }
    return request;
}

jzx_err jzi_ask_check(const jzx_ask_opts *opts, uint32_t *out_flags)
{
    const jzx_send_opts request = jzi_ask_request(opts, NULL);
    jzx_err err =
        opts->reserved != 0 ? JZX_ERR_INVALID_ARG : jzi_mailbox_check_opts(&request, out_flags);
    *out_flags |= JZI_MSG_ASK;
    if (opts->timeout_ms != JZX_ASK_NO_TIMEOUT) {
        *out_flags |= JZI_MSG_DEADLINE;
    }
    return err;
}

void jzi_ask_fill(jzi_ask *ask, jzx_actor_id to, const jzx_ask_opts *opts, uint64_t now)
{
    uint32_t ms = opts->timeout_ms == 0 ? DEFAULT_TIMEOUT_MS : opts->timeout_ms;
    ask->asked_ns = now;
    ask->deadline_ns = ms == JZX_ASK_NO_TIMEOUT ? 0 : now + (uint64_t)ms * NS_PER_MS;
    ask->on_reply = opts->on_reply;
    ask->reply.ask = jzi_ask_id(ask);
    ask->reply.arg = opts->arg;
    ask->reply.target = to;
    ask->reply.tag = opts->tag;
}

uint32_t jzi_outcome_of(jzx_err err)
{
    return err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING ? JZX_OUTCOME_NO_SUCH_ACTOR
           : err == JZX_ERR_MAILBOX_FULL                           ? JZX_OUTCOME_MAILBOX_FULL
           : err == JZX_ERR_LOOP_CLOSED                            ? JZX_OUTCOME_CANCELLED
                                                                   : JZX_OUTCOME_REFUSED;
}

/* The request was refused. */
static void describe(jzi_worker *worker, jzx_actor_id to, const jzx_ask_opts *opts, jzx_err err)
{
    if (opts->failure == NULL) {
        return;
    }
    uint32_t depth = jzi_depth_of(worker->post, worker->domain->directory, to);
    *opts->failure = (jzx_reply){
        .arg = opts->arg,
        .target = to,
        .callee = to,
        .outcome = jzi_outcome_of(err),
        .tag = opts->tag,
        .queue_depth = depth == UINT32_MAX ? 0 : depth,
        .err = err,
    };
    const jzi_actor *actor = jzi_worker_is_far(worker, to) ? NULL : jzi_worker_find(worker, to);
    if (actor != NULL) {
        memcpy(opts->failure->target_name, jzi_actor_name(actor),
               strlen(jzi_actor_name(actor)) + 1);
    }
}

static jzx_err ask(jzi_worker *worker, jzx_actor_id to, const jzx_ask_opts *opts,
                   jzx_ask_ref *out_ref)
{
    uint32_t flags = 0;
    jzi_actor *asker = NULL;
    jzx_err err = jzi_ask_check(opts, &flags);
    if (err == JZX_OK) {
        err = jzi_worker_find_owner(worker, worker->ctx.self, &asker);
    }
    if (err != JZX_OK) {
        return err;
    }
    jzi_ask *it = jzi_worker_extra(worker, asker) == NULL ? NULL : jzi_ask_take(worker);
    if (it == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_ask_fill(it, to, opts, jzi_worker_clock(worker));
    jzi_ask_begin(worker, asker, it);
    const jzx_send_opts request = jzi_ask_request(opts, it);
    jzx_ask_ref ref = it->reply.ask;
    err = jzi_send_inside(worker, to, &request, flags);
    if (err != JZX_OK) {
        jzi_ask_undo(worker, it);
        describe(worker, to, opts, err);
        return err;
    }
    jzi_count_add(&worker->counters.asks, 1);
    if (out_ref != NULL) {
        *out_ref = ref;
    }
    return JZX_OK;
}

static jzx_err enter_and_ask(jzx_loop *loop, jzx_actor_id to, const jzx_ask_opts *opts,
                             jzx_ask_ref *out_ref)
{
    JZI_ENTER(loop, "jzx_ask");
    jzx_err err = worker->current == NULL || worker->ctx.self == JZX_NOBODY
                      ? JZX_ERR_INVALID_ARG
                      : ask(worker, to, opts, out_ref);
    return jzi_likely(err == JZX_OK) ? JZX_OK : jzi_worker_refuse(worker, to, err);
}

jzx_err jzx_ask_sized(jzx_loop *loop, jzx_actor_id to, const jzx_ask_opts *opts, size_t opts_size,
                      jzx_ask_ref *out_ref)
{
    jzx_ask_opts known;
    if (loop == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    err = enter_and_ask(loop, to, &known, out_ref);
    if (jzi_unlikely(err != JZX_OK)) {
        jzi_ask_consume(&known);
    }
    return err;
}

jzx_err jzx_ask_cancel(jzx_loop *loop, jzx_ask_ref ref)
{
    JZI_ENTER(loop, "jzx_ask_cancel");
    if (worker == NULL || worker->ctx.self == JZX_NOBODY) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_ask *it = jzi_worker_is_far(worker, ref) ? NULL : jzi_ask_find(worker, ref);
    if (it == NULL || it->waiter != NULL || it->asker != worker->ctx.self || it->pprev == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    jzi_ask_cancel(worker, it);
    return JZX_OK;
}

const jzx_reply *jzx_reply_of(const jzx_context *ctx)
{
    const jzi_worker *worker = jzi_worker_with_message(ctx);
    if (worker == NULL || worker->in_hand->msg.kind != JZX_KIND_REPLY) {
        return NULL;
    }
    return &jzi_container_of(worker->in_hand, const jzi_ask, errand.node)->reply;
}

/* The request that a call is about, and whether the message in hand still has it. NULL: there is
 * none, or it is not this actor's. */
static jzi_ask *find_request(const jzi_worker *worker, jzx_request request, bool *out_in_hand)
{
    *out_in_hand = false;
    if (request != JZX_REQUEST_IN_HAND) {
        jzi_ask *it = jzi_ask_find(worker, request);
        return it == NULL ||
                       atomic_load_explicit(&it->holder, memory_order_relaxed) != worker->ctx.self
                   ? NULL
                   : it;
    }
    const jzi_node *node = worker->in_hand;
    if (worker->phase != JZI_PHASE_BEHAVIOR || node == NULL ||
        (node->msg.flags & JZI_MSG_EVENT) != 0) {
        return NULL;
    }
    *out_in_hand = (node->msg.flags & JZI_MSG_ASK) != 0;
    if (!*out_in_hand && (node->msg.reserved & JZI_HAND_KEPT) == 0) {
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
        worker->in_hand->msg.flags &= (uint16_t)~JZI_MSG_ASK;
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
    if (it == NULL || (in_hand && jzi_worker_extra(worker, worker->current) == NULL)) {
        return 0;
    }
    if (in_hand) {
        take_duty(worker, it, true);
        jzi_ask_hold(worker->current, it);
        worker->in_hand->msg.reserved |= JZI_HAND_KEPT;
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
        .flags = (uint16_t)(flags | JZI_MSG_EVENT),
        .sender = worker->ctx.self,
        .drop = opts->drop,
    };
    if ((flags & JZX_MSG_VALUE) != 0) {
        it->errand.node.msg.u64 = opts->u64;
    }
    jzx_reply *reply = &it->reply;
    reply->outcome = JZX_OUTCOME_REPLIED;
    reply->err = JZX_OK;
    reply->callee = worker->ctx.self;
    reply->queue_depth = jzi_actor_used(worker->current);
    reply->age_ns = worker->now_ns > it->asked_ns ? worker->now_ns - it->asked_ns : 0;
    reply->reason.kind = JZX_REASON_NORMAL;
    reply->reason.text[0] = reply->target_name[0] = '\0';
}

static jzx_err answer(jzx_context *ctx, jzx_request request, const jzx_send_opts *opts)
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
    err = answer(ctx, request, &known);
    if (jzi_unlikely(err != JZX_OK)) {
        jzi_send_consume(&known);
    }
    return err;
}

jzx_err jzx_reply_data(jzx_context *ctx, jzx_request request, void *data, size_t len, uint32_t tag)
{
    const jzx_send_opts opts = {.data = data, .len = len, .tag = tag};
    return jzx_reply_with(ctx, request, &opts);
}

jzx_err jzx_reply_u64(jzx_context *ctx, jzx_request request, uint64_t value, uint32_t tag)
{
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
    err = jzi_send_inside(worker, to, opts, flags | JZI_MSG_ASK);
    if (err == JZX_OK) {
        return JZX_OK;
    }
    if (in_hand) {
        worker->in_hand->msg.flags |= JZI_MSG_ASK;
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

uint32_t jzx_mailbox_depth(jzx_loop *loop, jzx_actor_id id)
{
    return loop == NULL ? UINT32_MAX : jzi_depth_of(loop->post, loop->domain.directory, id);
}
