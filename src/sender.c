/* Sends from other threads: a reservation on the target's gate, then a push on the loop's inbound
 * list. Two atomic read-modify-writes when nobody contends, one more through a shared sender. */
#include "sender.h"

#include "base/alloc.h"
#include "loop.h"
#include "mailbox.h"

#include <string.h>

enum { SENDER_PAGE_NODES = 64, LINE = 64 };

struct jzx_sender {
    jzi_post *post;
    _Atomic uint32_t refs;
    _Atomic uint32_t
        busy; /* shared senders: one thread at a time uses the cache, others go without */
    uint32_t flags;
    _Atomic uint64_t sent; /* counted when a cached node is taken, by whoever holds the cache */
    _Atomic uint64_t sent_else; /* the rest: nodes of their own, less sends that were refused */
    jzi_node *cache[2];         /* plain, wide */
    jzx_sender *next;           /* in post->senders */
    jzx_sender *prev;
};

/* Opening, closing and counting are rare; a spin lock keeps the list of senders simple. Sends never
 * take it. */
static void lock_registry(jzi_post *post)
{
    while (atomic_exchange_explicit(&post->registry_lock, 1, memory_order_acquire) != 0) {
    }
}

static void unlock_registry(jzi_post *post)
{
    atomic_store_explicit(&post->registry_lock, 0, memory_order_release);
}

static jzx_err open_on(jzi_post *post, uint32_t flags, jzx_sender **out_sender)
{
    if (out_sender == NULL || (flags & ~JZX_SENDER_SINGLE) != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    if (post->env->pick != NULL) {
        return JZX_ERR_NOT_SUPPORTED; /* other threads would make a simulation unrepeatable */
    }
    jzx_sender *sender = jzi_alloc_zeroed(&post->alloc, sizeof *sender);
    if (sender == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    sender->post = post;
    sender->flags = flags;
    atomic_init(&sender->refs, 1);
    jzi_post_retain(post);
    lock_registry(post);
    sender->next = post->senders;
    if (sender->next != NULL) {
        sender->next->prev = sender;
    }
    post->senders = sender;
    unlock_registry(post);
    *out_sender = sender;
    return JZX_OK;
}

jzx_err jzx_sender_open(jzx_loop *loop, uint32_t flags, jzx_sender **out_sender)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_worker_check_thread(&loop->worker, "jzx_sender_open");
    jzx_err err = open_on(loop->post, flags, out_sender);
    if (err == JZX_OK) {
        loop->worker.shared = true;
    }
    return err;
}

jzx_err jzx_sender_clone(jzx_sender *sender, uint32_t flags, jzx_sender **out_sender)
{
    if (sender == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (atomic_load_explicit(&sender->post->inbound, memory_order_relaxed) == JZI_INBOUND_CLOSED) {
        return JZX_ERR_LOOP_CLOSED;
    }
    return open_on(sender->post, flags, out_sender);
}

jzx_sender *jzx_sender_retain(jzx_sender *sender)
{
    if (sender != NULL) {
        atomic_fetch_add_explicit(&sender->refs, 1, memory_order_relaxed);
    }
    return sender;
}

static uint64_t sent_by(const jzx_sender *sender)
{
    return atomic_load_explicit(&sender->sent, memory_order_relaxed) +
           atomic_load_explicit(&sender->sent_else, memory_order_relaxed);
}

static jzi_node *chain_end(jzi_node *node)
{
    while (node->next != NULL) {
        node = node->next;
    }
    return node;
}

void jzx_sender_release(jzx_sender *sender)
{
    /* acq_rel: the last owner sees what the others left in the cache. */
    if (sender == NULL || atomic_fetch_sub_explicit(&sender->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    jzi_post *post = sender->post;
    for (int wide = 0; wide < 2; wide++) {
        if (sender->cache[wide] != NULL) {
            jzi_post_return(post, wide != 0, sender->cache[wide], chain_end(sender->cache[wide]));
        }
    }
    lock_registry(post);
    if (sender->prev == NULL) {
        post->senders = sender->next;
    } else {
        sender->prev->next = sender->next;
    }
    if (sender->next != NULL) {
        sender->next->prev = sender->prev;
    }
    atomic_fetch_add_explicit(&post->sent, sent_by(sender), memory_order_relaxed);
    unlock_registry(post);
    jzi_free(&post->alloc, sender, sizeof *sender);
    jzi_post_release(post);
}

uint64_t jzi_senders_sent(jzi_post *post)
{
    lock_registry(post);
    uint64_t sent = atomic_load_explicit(&post->sent, memory_order_relaxed);
    for (const jzx_sender *sender = post->senders; sender != NULL; sender = sender->next) {
        sent += sent_by(sender);
    }
    unlock_registry(post);
    return sent;
}

/* A page of nodes for the cache. The post office keeps the page until it closes. */
static jzi_node *make_nodes(jzi_post *post, bool wide)
{
    size_t node_bytes = wide ? sizeof(jzi_wide_node) : sizeof(jzi_node);
    size_t bytes = sizeof(jzi_node_page) + LINE + SENDER_PAGE_NODES * node_bytes;
    jzi_node_page *page = jzi_alloc(&post->alloc, bytes);
    if (page == NULL) {
        return NULL;
    }
    *page = (jzi_node_page){
        .bytes = bytes, .count = SENDER_PAGE_NODES, .node_bytes = (uint32_t)node_bytes};
    jzi_node_page *head = atomic_load_explicit(&post->pages, memory_order_relaxed);
    do {
        page->next = head;
        /* release: the last owner, who frees the pages, reads what is in them. */
    } while (!atomic_compare_exchange_weak_explicit(&post->pages, &head, page, memory_order_release,
                                                    memory_order_relaxed));
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
        /* acquire: pairs with jzi_post_return(), after which the nodes are ours. */
        node = atomic_exchange_explicit(&sender->post->returned[wide], NULL, memory_order_acquire);
    }
    if (node == NULL) {
        node = make_nodes(sender->post, wide);
    }
    if (node != NULL) {
        sender->cache[wide] = node->next;
        jzi_count_add(&sender->sent, 1);
    }
    return node;
}

/* A node, and in *out_flags what it is. NULL: no memory. */
static jzi_node *take_node(jzx_sender *sender, bool wide, uint32_t *out_flags)
{
    *out_flags = JZI_MSG_FOREIGN | (wide ? JZI_MSG_WIDE : 0);
    if ((sender->flags & JZX_SENDER_SINGLE) != 0) {
        return take_cached(sender, wide);
    }
    if (atomic_exchange_explicit(&sender->busy, 1, memory_order_acquire) == 0) {
        jzi_node *node = take_cached(sender, wide);
        atomic_store_explicit(&sender->busy, 0, memory_order_release);
        return node;
    }
    *out_flags |= JZI_MSG_SOLO;
    jzi_node *node = jzi_alloc(&sender->post->alloc, sizeof(jzi_wide_node));
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
        jzi_free(&sender->post->alloc, node->msg.data, node->msg.len);
    }
    if ((flags & JZI_MSG_SOLO) != 0) {
        jzi_free(&sender->post->alloc, node, sizeof(jzi_wide_node));
        return;
    }
    jzi_post_return(sender->post, (flags & JZI_MSG_WIDE) != 0, node, node);
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
                    : jzi_alloc(&sender->post->alloc, opts->len);
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
        .flags = (uint16_t)flags,
        .drop = opts->drop,
        .deadline_ns = opts->deadline_ns,
    };
    if ((flags & JZX_MSG_VALUE) != 0) {
        node->msg.u64 = opts->u64;
    }
    return node;
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

/* The actor in the id's slot, whoever that is by now. Errors: LOOP_CLOSED, NO_SUCH_ACTOR. */
static jzx_err find_target(const jzi_post *post, jzx_actor_id to, jzi_actor **out_actor)
{
    if (atomic_load_explicit(&post->inbound, memory_order_relaxed) == JZI_INBOUND_CLOSED) {
        return JZX_ERR_LOOP_CLOSED;
    }
    *out_actor = jzi_actor_table_slot(&post->table, jzx_id_index(to));
    return *out_actor == NULL ? JZX_ERR_NO_SUCH_ACTOR : JZX_OK;
}

/* Reserves, pushes, wakes. The node was made before: after the reservation nothing but the loop's
 * end can go wrong, so no slot is ever left for this thread to give back. */
static jzx_err deliver(jzx_sender *sender, jzx_actor_id to, jzi_actor *actor, jzi_node *node,
                       uint32_t margin)
{
    jzi_post *post = sender->post;
    uint32_t policy = atomic_load_explicit(&actor->door.full_policy, memory_order_relaxed);
    jzi_entry entry = jzi_door_enter(&actor->door, to, jzi_actor_own_used(actor), policy, margin,
                                     (node->msg.flags & JZX_MSG_URGENT) != 0);
    jzx_err err = verdict_of(entry);
    if (jzi_unlikely(err != JZX_OK)) {
        give_node(sender, node, node->msg.flags);
        return err;
    }
    if (entry == JZI_ENTRY_OVER) {
        node->msg.flags |= JZI_MSG_DOOMED;
    }
    node->stamp = jzx_id_slot(to);
    if (jzi_unlikely(!jzi_post_push(post, node))) {
        (void)jzi_door_leave(&actor->door, 1); /* nobody gives slots out any more */
        give_node(sender, node, node->msg.flags);
        return JZX_ERR_LOOP_CLOSED;
    }
    jzi_post_wake(post);
    return JZX_OK;
}

static jzx_err send(jzx_sender *sender, jzx_actor_id to, const jzx_send_opts *opts)
{
    jzi_actor *actor = NULL;
    uint32_t flags = 0;
    jzx_err err = jzi_mailbox_check_opts(opts, &flags);
    if (err == JZX_OK) {
        err = find_target(sender->post, to, &actor);
    }
    if (err != JZX_OK) {
        return err;
    }
    jzi_node *node = make_node(sender, opts, flags);
    return node == NULL ? JZX_ERR_NO_MEMORY : deliver(sender, to, actor, node, opts->margin);
}

static jzx_err refuse(jzx_sender *sender, jzx_err err)
{
    atomic_fetch_add_explicit(&sender->post->refused[jzi_refused_reason(err)], 1,
                              memory_order_relaxed);
    return err;
}

/* The short forms: no options to look at, nothing to copy. */
static jzx_err send_plain(jzx_sender *sender, jzx_actor_id to, uint64_t payload, size_t len,
                          uint32_t tag, uint32_t flags)
{
    jzi_actor *actor = NULL;
    if (sender == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (tag >= JZX_TAG_SYSTEM_FIRST) {
        return refuse(sender, JZX_ERR_RESERVED_TAG);
    }
    jzx_err err = find_target(sender->post, to, &actor);
    if (err == JZX_OK) {
        uint32_t node_flags = 0;
        jzi_node *node = take_node(sender, false, &node_flags);
        if (node == NULL) {
            return refuse(sender, JZX_ERR_NO_MEMORY);
        }
        jzi_mailbox_fill(&node->msg, payload, len, tag, flags | node_flags, JZX_NOBODY);
        node->msg.drop = NULL;
        node->msg.deadline_ns = 0;
        err = deliver(sender, to, actor, node, 0);
    }
    return jzi_likely(err == JZX_OK) ? JZX_OK : refuse(sender, err);
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
    return refuse(sender, err);
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
