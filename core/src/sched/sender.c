/* Sends from other threads: a reservation on the target's gate, then a push on the loop's inbound
 * list. Two atomic read-modify-writes without contention, one more through a shared sender. */
#include "sched/sender_priv.h"

#include "base/alloc.h"
#include "sched/mailbox.h"

#include <string.h>

enum { SENDER_PAGE_NODES = 64, LINE = 64 };

/* A page of nodes for the cache. The inbox keeps the page until it closes. */
static jzi_node *make_nodes(jzi_inbox *inbox, bool wide)
{
    size_t node_bytes = wide ? sizeof(jzi_wide_node) : sizeof(jzi_node);
    size_t bytes = sizeof(jzi_node_page) + LINE + SENDER_PAGE_NODES * node_bytes;
    jzi_node_page *page = jzi_alloc(&inbox->alloc, bytes);
    if (page == NULL) {
        return NULL;
    }
    *page = (jzi_node_page){
        .bytes = bytes, .count = SENDER_PAGE_NODES, .node_bytes = (uint32_t)node_bytes};
    jzi_node_page *head = atomic_load_explicit(&inbox->pages, memory_order_relaxed);
    do {
        page->next = head;
        /* release: the last owner, which frees the pages, reads what is in them. */
    } while (!atomic_compare_exchange_weak_explicit(&inbox->pages, &head, page,
                                                    memory_order_release, memory_order_relaxed));
    atomic_fetch_add_explicit(&inbox->page_count, 1, memory_order_relaxed);
    uintptr_t first = ((uintptr_t)(page + 1) + LINE - 1) & ~(uintptr_t)(LINE - 1);
    jzi_node *chain = NULL;
    for (size_t i = SENDER_PAGE_NODES; i-- > 0;) {
        jzi_node *node = (jzi_node *)(first + i * node_bytes);
        node->next = chain;
        chain = node;
    }
    return chain;
}

static jzi_node *take_cached(jzx_sender *sender, bool wide)
{
    jzi_node *node = sender->cache[wide];
    if (node == NULL) {
        /* acquire: pairs with jzi_inbox_return(), after which the nodes are ours. */
        node = atomic_exchange_explicit(&sender->inbox->returned[wide], NULL, memory_order_acquire);
    }
    if (node == NULL) {
        node = make_nodes(sender->inbox, wide);
    }
    if (node != NULL) {
        sender->cache[wide] = node->next;
        jzi_count_add(&sender->sent, 1);
    }
    return node;
}

/* A node, and in *out_flags what it is. NULL: no memory. */
static inline __attribute__((always_inline)) jzi_node *take_node(jzx_sender *sender, bool wide,
                                                                 uint32_t *out_flags)
{
    *out_flags = JZI_MSG_FOREIGN | sender->hand | (wide ? JZI_MSG_WIDE : 0);
    if ((sender->flags & JZX_SENDER_SINGLE) != 0) {
        return take_cached(sender, wide);
    }
    if (atomic_exchange_explicit(&sender->busy, 1, memory_order_acquire) == 0) {
        jzi_node *node = take_cached(sender, wide);
        atomic_store_explicit(&sender->busy, 0, memory_order_release);
        return node;
    }
    *out_flags |= JZI_MSG_SOLO;
    jzi_node *node = jzi_alloc(&sender->inbox->alloc, sizeof(jzi_wide_node));
    if (node != NULL) {
        atomic_fetch_add_explicit(&sender->sent_else, 1, memory_order_relaxed);
    }
    return node;
}

/* A node that was taken and not sent. */
static void give_node(jzx_sender *sender, jzi_node *node, uint32_t flags)
{
    atomic_fetch_sub_explicit(&sender->sent_else, 1, memory_order_relaxed);
    if ((flags & JZI_MSG_BLOCK) != 0) {
        jzi_free(&sender->inbox->alloc, node->msg.data, node->msg.len);
    }
    if ((flags & JZI_MSG_SOLO) != 0) {
        jzi_free(&sender->inbox->alloc, node, sizeof(jzi_wide_node));
        return;
    }
    jzi_inbox_return(sender->inbox, (flags & JZI_MSG_WIDE) != 0, node, node);
}

/* A node with the message in it, copied if need be. NULL: no memory. */
static jzi_node *make_node(jzx_sender *sender, const jzx_send_opts *opts, uint32_t flags)
{
    bool copy = (flags & JZX_MSG_COPY) != 0 && opts->len > 0;
    bool wide = copy && opts->len <= JZI_WIDE_BYTES;
    uint32_t node_flags = 0;
    jzi_node *node = take_node(sender, wide, &node_flags);
    if (node == NULL) {
        return NULL;
    }
    flags |= node_flags;
    void *data = opts->data;
    if (copy) {
        data = wide ? (void *)((jzi_wide_node *)(void *)node)->bytes
                    : jzi_alloc(&sender->inbox->alloc, opts->len);
        if (data == NULL) {
            give_node(sender, node, flags);
            return NULL;
        }
        memcpy(data, opts->data, opts->len);
        flags |= wide ? 0 : JZI_MSG_BLOCK;
    }
    node->msg = (jzx_message){
        .data = data,
        .len = opts->len,
        .tag = opts->tag,
        .kind = JZX_KIND_USER,
        JZI_MSG_FLAGS(flags),
        .drop = opts->drop,
        .deadline_ns = opts->deadline_ns,
    };
    node->ops = opts->reserved; /* which ask it is, if it is one */
    if ((flags & JZX_MSG_VALUE) != 0) {
        node->msg.u64 = opts->u64;
    }
    return node;
}

/* The sender to the dispatcher of an id, which is not this one's. Errors: NO_SUCH_ACTOR,
 * NO_MEMORY. */
static __attribute__((noinline)) jzx_err route_far(jzx_sender *sender, jzx_actor_id to,
                                                   jzx_sender **out_sender)
{
    uint32_t dispatcher = jzx_id_dispatcher(to);
    jzx_sender *other = atomic_load_explicit(&sender->others[dispatcher], memory_order_acquire);
    if (other == NULL) {
        jzi_inbox *inbox = jzi_directory_inbox(sender->directory, dispatcher);
        if (inbox == NULL) {
            return JZX_ERR_NO_SUCH_ACTOR;
        }
        jzx_err err = jzi_sender_make(inbox, NULL, sender->flags, &other);
        if (err != JZX_OK) {
            return err;
        }
        jzx_sender *before = NULL;
        if (!atomic_compare_exchange_strong_explicit(&sender->others[dispatcher], &before, other,
                                                     memory_order_acq_rel, memory_order_acquire)) {
            jzx_sender_release(other);
            other = before;
        }
    }
    *out_sender = other;
    return JZX_OK;
}

static inline jzx_err route(jzx_sender *sender, jzx_actor_id to, jzx_sender **out_sender)
{
    *out_sender = sender;
    return jzi_likely(sender->directory == NULL ||
                      sender->inbox->base >> 24 == jzx_id_dispatcher(to))
               ? JZX_OK
               : route_far(sender, to, out_sender);
}

static jzx_err verdict_of(jzi_entry entry)
{
    switch (entry) {
    case JZI_ENTRY_GONE:
        return JZX_ERR_NO_SUCH_ACTOR;
    case JZI_ENTRY_CLOSED:
        return JZX_ERR_STOPPING;
    case JZI_ENTRY_FULL:
        return JZX_ERR_MAILBOX_FULL;
    case JZI_ENTRY_OK:
    case JZI_ENTRY_OVER:
        break;
    }
    return JZX_OK;
}

/* The actor in the id's slot, which may be a later tenant. Errors: LOOP_CLOSED, NO_SUCH_ACTOR. */
static jzx_err find_target(const jzi_inbox *inbox, jzx_actor_id to, jzi_actor **out_actor)
{
    if (jzi_unlikely(atomic_load_explicit(&inbox->inbound, memory_order_relaxed) ==
                     JZI_INBOUND_CLOSED)) {
        return jzi_sender_closed(inbox);
    }
    *out_actor = jzi_actor_table_slot(&inbox->table, jzx_id_index(to) ^ inbox->base);
    return *out_actor == NULL ? JZX_ERR_NO_SUCH_ACTOR : JZX_OK;
}

/* Gives back what was reserved at a dispatcher that is gone. The slot is left for the next one on
 * this inbox, if there is one. */
static void leave_closed(jzi_inbox *inbox, jzi_actor *actor)
{
    if (jzi_door_leave(&actor->door, 1)) {
        jzi_inbox_command(inbox, actor);
    }
}

/* A message with a deadline has no place for when it was sent. */
static __attribute__((noinline)) void mark_watched(const jzi_inbox *inbox, jzi_node *node)
{
    jzi_msg_add(&node->msg, JZI_HAND_WATCHED);
    if ((jzi_msg_flags(&node->msg) & JZI_MSG_DEADLINE) == 0) {
        jzi_msg_add(&node->msg, JZI_HAND_TIMED);
        node->msg.deadline_ns = inbox->env->now_ns(inbox->env->ctx);
    }
}

/* Notes when a message was sent, while an observer wants to know. */
static inline void sender_mark(const jzx_sender *sender, jzi_node *node)
{
    if (jzi_unlikely(atomic_load_explicit(&sender->inbox->watched, memory_order_relaxed) != 0)) {
        mark_watched(sender->inbox, node);
    }
}

/* Reserves, pushes, wakes. The node was made before: after the reservation nothing but the loop's
 * end can go wrong, so no slot is ever left for this thread to give back. */
static jzx_err deliver(jzx_sender *sender, jzx_actor_id to, jzi_actor *actor, jzi_node *node,
                       uint32_t margin)
{
    jzi_inbox *inbox = sender->inbox;
    uint32_t policy = jzi_door_policy(&actor->door);
    jzi_entry entry = jzi_door_enter(&actor->door, to, jzi_actor_own_used(actor), policy, margin,
                                     (jzi_msg_flags(&node->msg) & JZX_MSG_URGENT) != 0);
    jzx_err err = verdict_of(entry);
    if (jzi_unlikely(err != JZX_OK)) {
        give_node(sender, node, jzi_msg_flags(&node->msg));
        return err;
    }
    if (entry == JZI_ENTRY_OVER) {
        jzi_msg_add(&node->msg, JZI_MSG_DOOMED);
    }
    node->stamp = jzx_id_slot(to);
    sender_mark(sender, node);
    if (jzi_unlikely(!jzi_inbox_push(inbox, node))) {
        leave_closed(inbox, actor);
        give_node(sender, node, jzi_msg_flags(&node->msg));
        return jzi_sender_closed(inbox);
    }
    if ((sender->flags & JZI_SENDER_INSIDE) == 0) {
        jzi_inbox_wake(inbox);
    }
    return JZX_OK;
}

static jzx_err send_checked(jzx_sender *sender, jzx_actor_id to, const jzx_send_opts *opts,
                            uint32_t flags, jzx_actor_id from)
{
    jzi_actor *actor = NULL;
    jzx_err err = find_target(sender->inbox, to, &actor);
    if (err != JZX_OK) {
        return err;
    }
    jzi_node *node = make_node(sender, opts, flags);
    if (node == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    node->msg.sender = from;
    return deliver(sender, to, actor, node, opts->margin);
}

static jzx_err send_routed(jzx_sender *sender, jzx_actor_id to, const jzx_send_opts *opts,
                           uint32_t flags)
{
    jzx_sender *way = NULL;
    jzx_err err = route(sender, to, &way);
    return err != JZX_OK ? err : send_checked(way, to, opts, flags, JZX_NOBODY);
}

static jzx_err send(jzx_sender *sender, jzx_actor_id to, const jzx_send_opts *opts)
{
    uint32_t flags = 0;
    jzx_err err = jzi_mailbox_check_opts(opts, &flags);
    return err != JZX_OK ? err : send_routed(sender, to, opts, flags);
}

static jzx_err sender_refuse(jzx_sender *sender, jzx_actor_id to, jzx_err err)
{
    jzx_sender *way = NULL;
    if (err == JZX_ERR_MAILBOX_FULL && route(sender, to, &way) == JZX_OK) {
        jzi_inbox_say_full(way->inbox, to);
    }
    atomic_fetch_add_explicit(&sender->inbox->refused[jzi_refused_reason(err)], 1,
                              memory_order_relaxed);
    return err;
}

jzx_err jzi_sender_send(jzx_sender *sender, jzx_actor_id to, const jzx_send_opts *opts,
                        uint32_t flags)
{
    jzx_err err = send_routed(sender, to, opts, flags);
    return err == JZX_OK ? JZX_OK : sender_refuse(sender, to, err);
}

jzi_inbox *jzi_sender_inbox(const jzx_sender *sender)
{
    return sender->inbox;
}

const jzi_directory *jzi_sender_directory(const jzx_sender *sender)
{
    return sender->directory;
}

/* No options to look at, nothing to copy. */
static inline jzx_err send_quick(jzx_sender *sender, jzx_actor_id to, uint64_t payload, size_t len,
                                 uint32_t tag, uint32_t flags, jzx_actor_id from)
{
    jzi_actor *actor = NULL;
    jzx_err err = find_target(sender->inbox, to, &actor);
    if (jzi_unlikely(err != JZX_OK)) {
        return err;
    }
    uint32_t node_flags = 0;
    jzi_node *node = take_node(sender, false, &node_flags);
    if (node == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_mailbox_fill(&node->msg, payload, len, tag, flags | node_flags, from);
    node->msg.drop = NULL;
    node->msg.deadline_ns = 0;
    return deliver(sender, to, actor, node, 0);
}

/* The short forms. */
static jzx_err send_plain(jzx_sender *sender, jzx_actor_id to, uint64_t payload, size_t len,
                          uint32_t tag, uint32_t flags)
{
    if (sender == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (tag >= JZX_TAG_SYSTEM_FIRST) {
        return sender_refuse(sender, to, JZX_ERR_RESERVED_TAG);
    }
    jzx_sender *way = NULL;
    jzx_err err = route(sender, to, &way);
    if (err == JZX_OK) {
        err = send_quick(way, to, payload, len, tag, flags, JZX_NOBODY);
    }
    return jzi_likely(err == JZX_OK) ? JZX_OK : sender_refuse(sender, to, err);
}

/* The sender of a worker to a dispatcher, made at its first use. NULL: no memory. */
static __attribute__((noinline)) jzx_sender *make_outlet(jzi_worker *worker, jzi_inbox *inbox,
                                                         uint32_t dispatcher)
{
    if (worker->outlets == NULL) {
        worker->outlets = jzi_alloc_zeroed(&worker->alloc, JZI_OUTLETS * sizeof(jzx_sender *));
        if (worker->outlets == NULL) {
            return NULL;
        }
    }
    uint32_t flags = JZX_SENDER_SINGLE | (inbox == worker->inbox ? JZI_SENDER_INSIDE : 0);
    (void)jzi_sender_make(inbox, NULL, flags, &worker->outlets[dispatcher]);
    return worker->outlets[dispatcher];
}

/* Errors: NO_SUCH_ACTOR, NO_MEMORY. */
static inline jzx_err outlet(jzi_worker *worker, jzx_actor_id to, jzx_sender **out_sender)
{
    uint32_t dispatcher = jzx_id_dispatcher(to);
    if (jzi_likely(worker->outlets != NULL && worker->outlets[dispatcher] != NULL)) {
        *out_sender = worker->outlets[dispatcher];
        return JZX_OK;
    }
    jzi_inbox *inbox = worker->base == dispatcher << 24
                           ? worker->inbox
                           : jzi_directory_inbox(worker->dispatcher->directory, dispatcher);
    if (inbox == NULL) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    *out_sender = make_outlet(worker, inbox, dispatcher);
    return *out_sender == NULL ? JZX_ERR_NO_MEMORY : JZX_OK;
}

jzx_err jzi_far_send_plain(jzi_worker *worker, jzx_actor_id to, uint64_t payload, size_t len,
                           uint32_t tag, uint32_t flags)
{
    jzx_sender *sender = NULL;
    jzx_err err = outlet(worker, to, &sender);
    return jzi_unlikely(err != JZX_OK)
               ? err
               : send_quick(sender, to, payload, len, tag, flags, worker->ctx.self);
}

jzx_err jzi_far_send(jzi_worker *worker, jzx_actor_id to, const jzx_send_opts *opts, uint32_t flags)
{
    jzx_sender *sender = NULL;
    jzx_err err = outlet(worker, to, &sender);
    return err != JZX_OK ? err : send_checked(sender, to, opts, flags, worker->ctx.self);
}

bool jzi_far_redirect(jzi_worker *worker, const jzi_node *from, jzx_actor_id to)
{
    const jzx_message *msg = &from->msg;
    jzx_sender *sender = NULL;
    jzi_actor *actor = NULL;
    if (outlet(worker, to, &sender) != JZX_OK || find_target(sender->inbox, to, &actor) != JZX_OK) {
        return false;
    }
    bool wide = (jzi_msg_flags(msg) & JZI_MSG_WIDE) != 0;
    uint32_t node_flags = 0;
    jzi_node *node = take_node(sender, wide, &node_flags);
    if (node == NULL) {
        return false;
    }
    node->msg = *msg;
    uint32_t stays = ~(JZI_MSG_FOREIGN | JZI_MSG_SOLO | JZI_MSG_WIDE | JZI_HANDS);
    jzi_msg_set(&node->msg, (jzi_msg_flags(msg) & stays) | node_flags);
    if (wide) {
        node->msg.data = ((jzi_wide_node *)(void *)node)->bytes;
        memcpy(node->msg.data, msg->data, msg->len);
    }
    /* A refusal frees the copy, and it is still the old message's. */
    uint32_t block = jzi_msg_flags(&node->msg) & JZI_MSG_BLOCK;
    jzi_msg_clear(&node->msg, JZI_MSG_BLOCK);
    jzi_entry entry = jzi_door_enter(&actor->door, to, jzi_actor_own_used(actor), JZX_FULL_REJECT,
                                     0, (jzi_msg_flags(msg) & JZX_MSG_URGENT) != 0);
    if (entry != JZI_ENTRY_OK) {
        give_node(sender, node, jzi_msg_flags(&node->msg));
        return false;
    }
    jzi_msg_add(&node->msg, block);
    node->stamp = jzx_id_slot(to);
    node->ops = from->ops;
    sender_mark(sender, node);
    if (!jzi_inbox_push(sender->inbox, node)) {
        leave_closed(sender->inbox, actor);
        jzi_msg_clear(&node->msg, JZI_MSG_BLOCK);
        give_node(sender, node, jzi_msg_flags(&node->msg));
        return false;
    }
    jzi_inbox_wake(sender->inbox);
    return true;
}

jzx_err jzx_send_async_with_sized(jzx_sender *sender, jzx_actor_id to, const jzx_send_opts *opts,
                                  size_t opts_size)
{
    jzx_send_opts known;
    if (sender == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    if (err == JZX_OK) {
        err = send(sender, to, &known);
        if (err == JZX_OK) {
            return JZX_OK;
        }
        if ((known.flags & JZX_SEND_CONSUME) != 0 && known.drop != NULL && known.data != NULL) {
            known.drop(known.data);
        }
    }
    return sender_refuse(sender, to, err);
}

jzx_err jzx_send_async(jzx_sender *sender, jzx_actor_id to, void *data, size_t len, uint32_t tag)
{
    return send_plain(sender, to, (uint64_t)(uintptr_t)data, len, tag, 0);
}

jzx_err jzx_send_async_u64(jzx_sender *sender, jzx_actor_id to, uint64_t value, uint32_t tag)
{
    return send_plain(sender, to, value, 0, tag, JZX_MSG_VALUE);
}

jzx_err jzx_send_async_copy(jzx_sender *sender, jzx_actor_id to, const void *bytes, size_t len,
                            uint32_t tag)
{
    jzx_send_opts opts = {.len = len, .tag = tag, .flags = JZX_SEND_COPY};
    memcpy(&opts.data, &bytes, sizeof opts.data);
    return jzx_send_async_with(sender, to, &opts);
}
