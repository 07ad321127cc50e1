#include "sched/mailbox.h"

#include "base/alloc.h"
#include "sched/worker_record.h"

#include <string.h>

#define SEND_FLAGS (JZX_SEND_URGENT | JZX_SEND_CONSUME | JZX_SEND_COPY | JZX_SEND_VALUE)

jzx_err jzi_mailbox_check_opts(const jzx_send_opts *opts, uint32_t *out_flags)
{
    uint32_t asked = opts->flags;
    bool copy = (asked & JZX_SEND_COPY) != 0;
    bool value = (asked & JZX_SEND_VALUE) != 0;
    bool urgent = (asked & JZX_SEND_URGENT) != 0;
    bool drop = opts->drop != NULL;
    if (opts->tag >= JZX_TAG_SYSTEM_FIRST) {
        return JZX_ERR_RESERVED_TAG;
    }
    if ((asked & ~SEND_FLAGS) != 0 || opts->reserved != 0 || (copy && value) ||
        ((copy || value) && drop) || ((asked & JZX_SEND_CONSUME) != 0 && !drop) ||
        (urgent && opts->margin > 0) || (copy && opts->data == NULL && opts->len > 0)) {
        return JZX_ERR_INVALID_ARG;
    }
    if (copy && opts->len > JZX_COPY_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    *out_flags = (copy ? JZX_MSG_COPY : 0) | (value ? JZX_MSG_VALUE : 0) |
                 (urgent ? JZX_MSG_URGENT : 0) | (drop ? JZI_MSG_DROP : 0) |
                 (opts->deadline_ns != 0 ? JZI_MSG_DEADLINE : 0);
    return JZX_OK;
}

static jzi_node *take_node(jzi_worker *worker, jzi_node_pool *pool)
{
    if (pool->free_nodes == NULL && !jzi_node_pool_grow(pool, &worker->alloc)) {
        return NULL;
    }
    return jzi_node_pool_take(pool);
}

/* A node with the message in it; copies what is to be copied. NULL: no memory. */
static jzi_node *make_node(jzi_worker *worker, const jzx_send_opts *opts, uint32_t flags)
{
    bool copy = (flags & JZX_MSG_COPY) != 0;
    bool wide = copy && opts->len > 0 && opts->len <= JZI_WIDE_BYTES;
    jzi_node *node = take_node(worker, wide ? &worker->store->wide : &worker->store->plain);
    if (node == NULL) {
        return NULL;
    }
    void *data = opts->data;
    if (wide) {
        data = ((jzi_wide_node *)(void *)node)->bytes;
        memcpy(data, opts->data, opts->len);
        flags |= JZI_MSG_WIDE;
    } else if (copy && opts->len > 0) {
        data = jzi_alloc(&worker->alloc, opts->len);
        if (data == NULL) {
            jzi_node_pool_give(&worker->store->plain, node);
            return NULL;
        }
        memcpy(data, opts->data, opts->len);
        flags |= JZI_MSG_BLOCK;
    }
    node->msg = (jzx_message){
        .data = data,
        .len = opts->len,
        .tag = opts->tag,
        .kind = JZX_KIND_USER,
        JZI_MSG_FLAGS(flags),
        .sender = worker->ctx.self,
        .drop = opts->drop,
        .deadline_ns = opts->deadline_ns,
    };
    node->ops = opts->reserved; /* which ask it is, if it is one */
    if ((flags & JZX_MSG_VALUE) != 0) {
        node->msg.u64 = opts->u64;
    }
    return node;
}

/* Room for this message? OK, or MAILBOX_FULL. */
static jzx_err mailbox_admit(const jzi_actor *actor, uint32_t margin, bool urgent)
{
    uint32_t cap = jzi_actor_cap(actor);
    uint64_t limit = urgent ? (uint64_t)cap + jzi_urgent_extra(cap) : cap;
    uint64_t used = (uint64_t)jzi_actor_used(actor) + margin;
    return used < limit ? JZX_OK : JZX_ERR_MAILBOX_FULL;
}

jzx_err jzi_mailbox_send(jzi_worker *worker, jzx_actor_id to, const jzx_send_opts *opts,
                         uint32_t flags)
{
    jzi_actor *actor = NULL;
    jzx_err err = jzi_worker_find_open(worker, to, &actor);
    if (err != JZX_OK) {
        return err;
    }
    bool urgent = (flags & JZX_MSG_URGENT) != 0;
    uint32_t policy = jzi_door_policy(&actor->door);
    bool over = mailbox_admit(actor, opts->margin, urgent) != JZX_OK;
    if (over && (urgent || opts->margin > 0 || policy == JZX_FULL_REJECT)) {
        return JZX_ERR_MAILBOX_FULL;
    }
    jzi_node *node =
        urgent && jzi_worker_cold(worker, actor) == NULL ? NULL : make_node(worker, opts, flags);
    if (node == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    if (over && (policy == JZX_FULL_DROP_NEWEST || !jzi_worker_evict(worker, actor))) {
        jzi_worker_dead_letter_unqueued(worker, actor, node, JZX_DEAD_DROPPED_NEWEST);
        return JZX_OK;
    }
    if (urgent) {
        jzi_lane_push(&actor->urgent, node);
        jzi_worker_accepted_aside(worker, actor, node, JZI_COUNTS_USED);
    } else {
        jzi_mailbox_put(worker, actor, node);
    }
    if (jzi_unlikely(worker->instrumented)) {
        jzi_worker_saw_send(worker, actor, node, JZI_SENT_NOW);
    }
    return JZX_OK;
}

jzx_err jzi_mailbox_send_plain(jzi_worker *worker, jzx_actor_id to, uint64_t payload, size_t len,
                               uint32_t tag, uint32_t flags)
{
    jzi_actor *actor = NULL;
    jzx_err err = jzi_worker_find_open(worker, to, &actor);
    if (jzi_unlikely(err != JZX_OK)) {
        return err;
    }
    jzi_node *node = jzi_actor_used(actor) < jzi_actor_cap(actor)
                         ? jzi_node_pool_take(&worker->store->plain)
                         : NULL;
    if (jzi_unlikely(node == NULL)) { /* full, or no node at hand */
        jzx_send_opts opts = {.len = len, .tag = tag};
        if ((flags & JZX_MSG_VALUE) != 0) {
            opts.u64 = payload;
        } else {
            opts.data = (void *)(uintptr_t)payload;
        }
        return jzi_mailbox_send(worker, to, &opts, flags);
    }
    jzi_mailbox_fill(&node->msg, payload, len, tag, flags, worker->ctx.self);
    jzi_mailbox_put(worker, actor, node);
    if (jzi_unlikely(worker->instrumented)) {
        jzi_worker_saw_send(worker, actor, node, JZI_SENT_NOW);
    }
    return JZX_OK;
}

/* The message was sent on; what it points to went along. */
static void moved_on(jzi_worker *worker, jzi_actor *from, jzi_node *node)
{
    bool foreign = (jzi_msg_flags(&node->msg) & JZI_MSG_FOREIGN) != 0;
    jzi_msg_clear(&node->msg, JZI_MSG_BLOCK);
    jzi_count_add(&worker->counters.left_lane, 1);
    jzi_count_add(&worker->counters.redirected, 1);
    from->cold->redirected++;
    jzi_worker_release_node(worker, node);
    if (foreign) {
        jzi_worker_leave(worker, from, 1);
    }
}

bool jzi_mailbox_redirect(jzi_worker *worker, jzi_actor *from, jzi_node *node, jzx_actor_id to)
{
    jzx_message *msg = &node->msg;
    jzi_actor *actor = NULL;
    bool urgent = (jzi_msg_flags(msg) & JZX_MSG_URGENT) != 0;
    if (worker->dispatcher->pooled || (jzx_id_index(to) ^ worker->base) >> 24 != 0) {
        if (to == from->id || !worker->dispatcher->on_redirect(worker, node, to)) {
            return false;
        }
        moved_on(worker, from, node);
        return true;
    }
    if (to == from->id || jzi_worker_find_open(worker, to, &actor) != JZX_OK ||
        mailbox_admit(actor, 0, urgent) != JZX_OK ||
        (urgent && jzi_worker_cold(worker, actor) == NULL)) {
        return false;
    }
    /* A node of its own: the old one may be a sender's. What it points to moves. */
    bool wide = (jzi_msg_flags(msg) & JZI_MSG_WIDE) != 0;
    jzi_node *copy = take_node(worker, wide ? &worker->store->wide : &worker->store->plain);
    if (copy == NULL) {
        return false;
    }
    copy->msg = *msg;
    copy->ops = node->ops;
    jzi_msg_clear(&copy->msg, JZI_MSG_FOREIGN | JZI_MSG_SOLO | JZI_HANDS);
    if (wide) {
        copy->msg.data = ((jzi_wide_node *)(void *)copy)->bytes;
        memcpy(copy->msg.data, msg->data, msg->len);
    }
    moved_on(worker, from, node);
    if (urgent) {
        jzi_lane_push(&actor->urgent, copy);
        jzi_worker_accepted_aside(worker, actor, copy, JZI_COUNTS_USED);
    } else {
        jzi_mailbox_put(worker, actor, copy);
    }
    return true;
}
