/* Sends, from the public call to the mailbox: on a loop the quick way; in a pool, and to another
 * dispatcher, over the gate as any thread does, unless the pool lock is biased to the worker. */
#include "sched/send.h"

#include "base/alloc.h"

#include <string.h>

static jzx_err send_refuse(jzx_loop *loop, jzx_actor_id to, jzx_err err)
{
    JZI_ENTER(loop, "jzx_send");
    return jzi_worker_refuse(worker, to, err);
}

/* Whether a send leaves the dispatcher, or is one between actors of a pool: the way over the
 * gate. */
static inline bool is_far(const jzx_loop *loop, jzx_actor_id to)
{
    return jzi_loop_worker(loop)->pooled ||
           (jzx_id_index(to) ^ jzi_loop_worker(loop)->base) >> 24 != 0;
}

/* A mailbox whose policy takes everything was full of what the pool has not taken in yet. */
static bool makes_room(jzx_loop *loop, jzx_actor_id to, jzx_err err)
{
    if (jzi_likely(err != JZX_ERR_MAILBOX_FULL) || !jzi_loop_worker(loop)->pooled) {
        return false;
    }
    JZI_ENTER(loop, "jzx_send"); /* which takes it in */
    const jzi_actor *actor = jzi_worker_find(worker, to);
    return actor != NULL && jzi_door_policy(&actor->door) != JZX_FULL_REJECT;
}

/* While no thread runs a pool, what is sent is where it belongs at once, as on a loop. */
static inline void take_in_at_rest(jzx_loop *loop)
{
    const jzi_worker *first = jzi_loop_worker(loop);
    if (first->pooled &&
        atomic_load_explicit(&first->dispatcher->running, memory_order_relaxed) == 0) {
        JZI_ENTER(loop, "jzx_send");
    }
}

/* A worker that owns the bias of its pool's lock sends as one on a loop does. NULL: it does not, or
 * the actor lives elsewhere. */
static inline jzi_worker *bias_owner_of(const jzx_loop *loop, jzx_actor_id to)
{
    jzi_worker *worker = jzi_worker_here;
    if (worker == NULL || !worker->biased || worker->pool_lock_depth > 0 ||
        worker->dispatcher != jzi_loop_worker(loop)->dispatcher ||
        (jzx_id_index(to) ^ jzi_loop_worker(loop)->base) >> 24 != 0) {
        return NULL;
    }
    if (jzi_unlikely(!jzi_bias_lock(worker))) {
        jzi_worker_lock_pool(worker);
    }
    if (jzi_unlikely(jzi_inbox_has_mail(worker->inbox))) {
        jzi_worker_intake(worker); /* what was sent before comes before */
    }
    return worker;
}

static jzx_err send_far(jzx_loop *loop, jzx_actor_id to, uint64_t payload, size_t len, uint32_t tag,
                        uint32_t flags)
{
    jzx_err err = JZX_ERR_RESERVED_TAG;
    jzi_worker *bias_owner = tag < JZX_TAG_SYSTEM_FIRST ? bias_owner_of(loop, to) : NULL;
    if (bias_owner != NULL) {
        err = jzi_mailbox_send_plain(bias_owner, to, payload, len, tag, flags);
        if (jzi_unlikely(bias_owner->dispatcher->deferred != NULL) ||
            !jzi_bias_unlock(bias_owner)) {
            jzi_loop_leave(&bias_owner);
        }
        return jzi_likely(err == JZX_OK) ? JZX_OK : send_refuse(loop, to, err);
    }
    if (tag < JZX_TAG_SYSTEM_FIRST) {
        jzi_worker *worker = jzi_loop_here(loop);
        err = jzi_far_send_plain(worker, to, payload, len, tag, flags);
        if (jzi_unlikely(makes_room(loop, to, err))) {
            err = jzi_far_send_plain(worker, to, payload, len, tag, flags);
        }
    }
    take_in_at_rest(loop);
    return jzi_likely(err == JZX_OK) ? JZX_OK : send_refuse(loop, to, err);
}

jzx_err jzx_send_u64(jzx_loop *loop, jzx_actor_id to, uint64_t value, uint32_t tag)
{
    if (jzi_unlikely(loop == NULL)) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_worker *worker = jzi_loop_worker(loop);
    jzi_worker_check_thread(worker, "jzx_send_u64");
    jzi_actor *actor = NULL;
    jzi_node *node =
        jzi_likely(tag < JZX_TAG_SYSTEM_FIRST) ? jzi_mailbox_quick(worker, to, &actor) : NULL;
    if (jzi_unlikely(node == NULL)) {
        jzx_send_opts opts = {.u64 = value, .tag = tag, .flags = JZX_SEND_VALUE};
        return is_far(loop, to) ? send_far(loop, to, value, 0, tag, JZX_MSG_VALUE)
                                : jzx_send_with(loop, to, &opts);
    }
    jzi_mailbox_fill(&node->msg, value, 0, tag, JZX_MSG_VALUE, worker->ctx.self);
    jzi_mailbox_put(worker, actor, node);
    return JZX_OK;
}

jzx_err jzx_send(jzx_loop *loop, jzx_actor_id to, void *data, size_t len, uint32_t tag)
{
    if (jzi_unlikely(loop == NULL)) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_worker *worker = jzi_loop_worker(loop);
    jzi_worker_check_thread(worker, "jzx_send");
    jzi_actor *actor = NULL;
    jzi_node *node =
        jzi_likely(tag < JZX_TAG_SYSTEM_FIRST) ? jzi_mailbox_quick(worker, to, &actor) : NULL;
    if (jzi_unlikely(node == NULL)) {
        jzx_send_opts opts = {.data = data, .len = len, .tag = tag};
        return is_far(loop, to) ? send_far(loop, to, (uint64_t)(uintptr_t)data, len, tag, 0)
                                : jzx_send_with(loop, to, &opts);
    }
    jzi_mailbox_fill(&node->msg, (uint64_t)(uintptr_t)data, len, tag, 0, worker->ctx.self);
    jzi_mailbox_put(worker, actor, node);
    return JZX_OK;
}

jzx_err jzx_send_copy(jzx_loop *loop, jzx_actor_id to, const void *bytes, size_t len, uint32_t tag)
{
    /* The bytes are only read; the options have one pointer for both ways of sending. */
    jzx_send_opts opts = {.len = len, .tag = tag, .flags = JZX_SEND_COPY};
    memcpy(&opts.data, &bytes, sizeof opts.data);
    return jzx_send_with(loop, to, &opts);
}

jzx_err jzx_send_with_sized(jzx_loop *loop, jzx_actor_id to, const jzx_send_opts *opts,
                            size_t opts_size)
{
    jzx_send_opts known;
    if (loop == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_worker_check_thread(jzi_loop_worker(loop), "jzx_send_with");
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    if (err != JZX_OK) {
        return send_refuse(loop, to, err);
    }
    uint32_t flags = 0;
    err = jzi_mailbox_check_opts(&known, &flags);
    if (err == JZX_OK) {
        jzi_worker *bias_owner = bias_owner_of(loop, to);
        if (bias_owner != NULL) {
            err = jzi_mailbox_send(bias_owner, to, &known, flags);
            jzi_loop_leave(&bias_owner);
        } else {
            err = is_far(loop, to) ? jzi_far_send(jzi_loop_here(loop), to, &known, flags)
                                   : jzi_mailbox_send(jzi_loop_worker(loop), to, &known, flags);
        }
        if (makes_room(loop, to, err)) {
            err = jzi_far_send(jzi_loop_here(loop), to, &known, flags);
        }
        take_in_at_rest(loop);
    }
    if (err == JZX_OK) {
        return JZX_OK;
    }
    jzi_send_consume(&known);
    return send_refuse(loop, to, err);
}

void *jzx_message_take(jzx_context *ctx)
{
    if (ctx == NULL) {
        return NULL;
    }
    jzi_worker *worker = jzi_container_of(ctx, jzi_worker, ctx);
    jzi_node *node = worker->in_hand;
    if (worker->phase != JZI_PHASE_BEHAVIOR || node == NULL) {
        return NULL;
    }
    uint32_t never = JZX_MSG_VALUE | JZX_MSG_COPY | JZX_MSG_BORROWED | JZI_MSG_TAKEN;
    if ((jzi_msg_flags(&node->msg) & never) != 0) {
        return NULL;
    }
    if ((jzi_msg_flags(&node->msg) & JZI_MSG_DROP) != 0) {
        jzi_msg_clear(&node->msg, JZI_MSG_DROP);
        jzi_msg_add(&node->msg, JZI_MSG_TAKEN);
    }
    return node->msg.data;
}
