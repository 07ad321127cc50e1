/* Entry points for what a behavior does with itself and with the message in hand. */
#include "messaging/behavior.h"
#include "base/alloc.h"
#include "messaging/ask.h"
#include "sched/stash.h"

static jzi_pattern_state *pattern_state_of_current(jzi_worker *worker)
{
    return jzi_worker_pattern_state(worker, worker->current);
}

void jzi_behavior_leave(jzi_worker *worker, jzi_actor *actor, bool restarts)
{
    jzi_pattern_state *patterns = actor->cold->patterns;
    (void)worker;
    (void)restarts;
    if (patterns->first != NULL) {
        actor->behavior = patterns->first;
        patterns->first = NULL;
        patterns->depth = 0;
    }
}

/* From POST_STOP on there is no next message in this life, and the next one begins anew. */
static bool may_become(const jzx_context *ctx)
{
    const jzi_worker *worker = jzi_worker_of_ctx(ctx);
    return worker != NULL && worker->phase != JZI_PHASE_DEINIT;
}

static jzx_err become(jzx_context *ctx, jzx_behavior_fn behavior, bool stacked)
{
    if (!may_become(ctx) || behavior == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(ctx->loop, "jzx_become");
    jzi_pattern_state *patterns = pattern_state_of_current(worker);
    if (patterns == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    if (stacked) {
        if (patterns->depth == JZX_BECOME_MAX) {
            return JZX_ERR_TOO_BIG;
        }
        if (patterns->behaviors == NULL) {
            patterns->behaviors = jzi_alloc(&worker->alloc, JZI_BECOME_BYTES);
        }
        if (patterns->behaviors == NULL) {
            return JZX_ERR_NO_MEMORY;
        }
        patterns->behaviors[patterns->depth++] = worker->current->behavior;
    }
    if (patterns->first == NULL) {
        patterns->first = worker->current->behavior;
    }
    worker->current->behavior = behavior;
    return JZX_OK;
}

jzx_err jzx_become(jzx_context *ctx, jzx_behavior_fn behavior)
{
    return become(ctx, behavior, false);
}

jzx_err jzx_become_stacked(jzx_context *ctx, jzx_behavior_fn behavior)
{
    return become(ctx, behavior, true);
}

jzx_err jzx_unbecome(jzx_context *ctx)
{
    if (!may_become(ctx)) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(ctx->loop, "jzx_unbecome");
    jzi_actor *actor = worker->current;
    jzi_pattern_state *patterns = jzi_pattern_state_of(actor);
    if (patterns == NULL ||
        (patterns->depth == 0 && (patterns->first == NULL || patterns->first == actor->behavior))) {
        return JZX_ERR_ALREADY;
    }
    actor->behavior =
        patterns->depth > 0 ? patterns->behaviors[--patterns->depth] : patterns->first;
    return JZX_OK;
}

jzx_err jzx_stash(jzx_context *ctx)
{
    if (jzi_worker_with_message(ctx) == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(ctx->loop, "jzx_stash");
    jzx_err err = jzi_hand_check(worker);
    return err != JZX_OK ? err : jzi_stash_put(worker, worker->current);
}

jzx_err jzx_unstash(jzx_context *ctx, uint32_t count)
{
    if (jzi_worker_with_message(ctx) == NULL || count == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(ctx->loop, "jzx_unstash");
    const jzi_pattern_state *patterns = jzi_pattern_state_of(worker->current);
    if (patterns == NULL || patterns->stash_count == 0) {
        return JZX_ERR_STASH_EMPTY;
    }
    jzi_stash_return(worker, worker->current,
                     count < patterns->stash_count ? count : patterns->stash_count);
    if (worker->current->urgent != NULL) {
        jzi_worker_schedule(worker, worker->current);
    }
    return JZX_OK;
}

int jzx_was_stashed(const jzx_context *ctx)
{
    const jzi_worker *worker = jzi_worker_with_message(ctx);
    return worker != NULL && (jzi_msg_flags(&worker->in_hand->msg) & JZI_HAND_UNSTASHED) != 0;
}

uint32_t jzx_stash_count(const jzx_context *ctx)
{
    const jzi_worker *worker = jzi_worker_of_ctx(ctx);
    const jzi_pattern_state *patterns =
        worker == NULL ? NULL : jzi_pattern_state_of(worker->current);
    return patterns == NULL ? 0 : patterns->stash_count;
}

jzx_err jzx_stash_set_cap(jzx_context *ctx, uint32_t cap)
{
    if (jzi_worker_of_ctx(ctx) == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(ctx->loop, "jzx_stash_set_cap");
    if (cap > jzi_actor_cap(worker->current)) {
        return JZX_ERR_TOO_BIG;
    }
    jzi_pattern_state *patterns = pattern_state_of_current(worker);
    if (patterns == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    patterns->stash_cap = cap;
    return JZX_OK;
}

/* The message as options, to be sent again. */
static jzx_send_opts opts_of(const jzi_node *node, uint32_t *out_flags)
{
    const jzx_message *msg = &node->msg;
    uint32_t kept = JZX_MSG_VALUE | JZX_MSG_COPY | JZX_MSG_URGENT | JZI_MSG_DROP |
                    JZI_MSG_DEADLINE | JZI_MSG_ASK;
    *out_flags = jzi_msg_flags(msg) & kept;
    bool timed = (*out_flags & (JZI_MSG_DEADLINE | JZI_MSG_ASK)) != 0; /* not if it was answered */
    jzx_send_opts opts = {
        .data = msg->data,
        .len = msg->len,
        .drop = msg->drop,
        .deadline_ns = timed ? msg->deadline_ns : 0,
        .tag = msg->tag,
        .reserved = node->ops,
    };
    if ((jzi_msg_flags(msg) & JZX_MSG_VALUE) != 0) {
        opts.u64 = msg->u64;
    }
    return opts;
}

/* The receiver sees the sender of the message in hand. */
static jzx_err send_as_sender(jzi_worker *worker, jzx_actor_id to, const jzx_send_opts *opts,
                              uint32_t flags)
{
    JZI_PUBLISH(worker->ctx.self, worker->in_hand->msg.sender);
    jzx_err err = jzi_send_inside(worker, to, opts, flags);
    JZI_PUBLISH(worker->ctx.self, worker->current->id);
    return err == JZX_OK ? JZX_OK : jzi_worker_refuse(worker, to, err);
}

static jzx_err send_as(jzx_context *ctx, jzx_actor_id to, const jzx_send_opts *opts)
{
    JZI_ENTER(ctx->loop, "jzx_send_as");
    uint32_t flags = 0;
    jzx_err err = jzi_mailbox_check_opts(opts, &flags);
    return err != JZX_OK ? jzi_worker_refuse(worker, to, err)
                         : send_as_sender(worker, to, opts, flags);
}

jzx_err jzx_send_as_sized(jzx_context *ctx, jzx_actor_id to, const jzx_send_opts *opts,
                          size_t opts_size)
{
    jzx_send_opts known;
    if (jzi_worker_with_message(ctx) == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    if (err == JZX_OK) {
        err = send_as(ctx, to, &known);
        if (err != JZX_OK) {
            jzi_send_consume(&known);
        }
    }
    return err;
}

jzx_err jzx_forward(jzx_context *ctx, jzx_actor_id to)
{
    if (jzi_worker_with_message(ctx) == NULL || to == ctx->self) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(ctx->loop, "jzx_forward");
    jzx_err err = jzi_hand_check(worker);
    if (err != JZX_OK) {
        return err;
    }
    uint32_t flags = 0;
    jzx_send_opts opts = opts_of(worker->in_hand, &flags);
    jzi_ask *it = (flags & JZI_MSG_ASK) == 0 ? NULL : jzi_ask_at(worker, worker->in_hand->ops);
    if (it != NULL) {
        jzi_ask_pass(it, to);
    }
    err = send_as_sender(worker, to, &opts, flags);
    if (err != JZX_OK) {
        if (it != NULL) {
            jzi_ask_pass(it, ctx->self);
        }
        return err;
    }
    uint32_t block = jzi_msg_flags(&worker->in_hand->msg) & JZI_MSG_BLOCK;
    jzi_hand_empty(worker);
    jzi_msg_add(&worker->in_hand->msg,
                block); /* a copy was made of it, and it goes as it would have */
    return JZX_OK;
}

jzx_err jzx_discard(jzx_context *ctx)
{
    if (jzi_worker_with_message(ctx) == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(ctx->loop, "jzx_discard");
    jzx_err err = jzi_hand_check(worker);
    if (err != JZX_OK) {
        return err;
    }
    jzi_node *node = jzi_hand_move(worker);
    if (node == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_worker_dead_letter_unqueued(worker, worker->current, node, JZX_DEAD_DISCARDED);
    return JZX_OK;
}
