/* Senders from their first owner to their last, and what a pool does with its own at rest. */
#include "sched/sender_priv.h"

#include "base/alloc.h"
#include "base/list.h"
#include "sched/entry.h"

enum { SENDER_PAGES_KEPT = 64 };

static size_t sender_bytes(const jzi_directory *directory)
{
    return directory == NULL ? SENDER_BYTES : sizeof(jzx_sender);
}

jzx_err jzi_sender_open_all(jzi_inbox *inbox, jzi_directory *directory, uint32_t flags,
                            jzx_sender **out_sender)
{
    if (out_sender == NULL || (flags & ~JZX_SENDER_SINGLE) != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    if (inbox->env->pick != NULL) {
        return JZX_ERR_NOT_SUPPORTED; /* other threads would make a simulation unrepeatable */
    }
    return jzi_sender_make(inbox, directory, flags, out_sender);
}

jzx_err jzi_sender_open(jzi_inbox *inbox, uint32_t flags, jzx_sender **out_sender)
{
    return jzi_sender_open_all(inbox, NULL, flags, out_sender);
}

jzx_err jzi_sender_make(jzi_inbox *inbox, jzi_directory *directory, uint32_t flags,
                        jzx_sender **out_sender)
{
    jzx_sender *sender = jzi_alloc_zeroed(&inbox->alloc, sender_bytes(directory));
    if (sender == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    sender->inbox = inbox;
    sender->flags = flags;
    sender->hand = (flags & JZI_SENDER_INSIDE) != 0 ? JZI_HAND_INSIDE : 0;
    sender->directory = directory;
    if (directory != NULL) {
        jzi_directory_retain(directory);
    }
    atomic_init(&sender->refs, 1);
    jzi_inbox_retain(inbox);
    jzi_inbox_lock_registry(inbox);
    JZI_LIST_PUSH(&inbox->senders, sender);
    jzi_inbox_unlock_registry(inbox);
    *out_sender = sender;
    return JZX_OK;
}

jzx_err jzx_sender_clone(jzx_sender *sender, uint32_t flags, jzx_sender **out_sender)
{
    if (sender == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (atomic_load_explicit(&sender->inbox->inbound, memory_order_relaxed) == JZI_INBOUND_CLOSED) {
        return JZX_ERR_LOOP_CLOSED;
    }
    return jzi_sender_open_all(sender->inbox, sender->directory, flags, out_sender);
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
    if ((sender->flags & JZI_SENDER_INSIDE) != 0) {
        return 0; /* not from another thread */
    }
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
    jzi_inbox *inbox = sender->inbox;
    for (int wide = 0; wide < 2; wide++) {
        if (sender->cache[wide] != NULL) {
            jzi_inbox_return(inbox, wide != 0, sender->cache[wide], chain_end(sender->cache[wide]));
        }
    }
    jzi_inbox_lock_registry(inbox);
    JZI_LIST_REMOVE(sender);
    atomic_fetch_add_explicit(&inbox->sent, sent_by(sender), memory_order_relaxed);
    jzi_inbox_unlock_registry(inbox);
    jzi_directory *directory = sender->directory;
    for (uint32_t i = 0; directory != NULL && i < JZI_OUTLETS; i++) {
        jzx_sender_release(atomic_load_explicit(&sender->others[i], memory_order_relaxed));
    }
    jzi_free(&inbox->alloc, sender, sender_bytes(directory));
    if (directory != NULL) {
        jzi_directory_release(directory);
    }
    jzi_inbox_release(inbox);
}

uint64_t jzi_senders_sent(jzi_inbox *inbox)
{
    jzi_inbox_lock_registry(inbox);
    uint64_t sent = atomic_load_explicit(&inbox->sent, memory_order_relaxed);
    for (const jzx_sender *sender = inbox->senders; sender != NULL; sender = sender->next) {
        sent += sent_by(sender);
    }
    jzi_inbox_unlock_registry(inbox);
    return sent;
}

/* Collects what senders inside the pool keep. False: a thread outside has a sender too. */
static bool collect(jzi_inbox *inbox)
{
    bool alone = true;
    jzi_inbox_lock_registry(inbox);
    for (jzx_sender *sender = inbox->senders; sender != NULL && alone; sender = sender->next) {
        alone = (sender->flags & JZI_SENDER_INSIDE) != 0;
    }
    for (jzx_sender *sender = inbox->senders; sender != NULL && alone; sender = sender->next) {
        for (int wide = 0; wide < 2; wide++) {
            if (sender->cache[wide] != NULL) {
                jzi_inbox_return(inbox, wide != 0, sender->cache[wide],
                                 chain_end(sender->cache[wide]));
                sender->cache[wide] = NULL;
            }
        }
    }
    jzi_inbox_unlock_registry(inbox);
    return alone;
}

void jzi_far_trim(jzi_dispatcher *dispatcher)
{
    jzi_inbox *inbox = dispatcher->workers[0]->inbox;
    if (atomic_load_explicit(&inbox->page_count, memory_order_relaxed) <= SENDER_PAGES_KEPT) {
        return;
    }
    for (uint32_t i = 0; i < dispatcher->worker_count; i++) {
        jzi_worker_flush_returns(dispatcher->workers[i]);
    }
    if (!collect(inbox)) {
        return;
    }
    uint64_t missing = 0;
    jzi_node_page *page = atomic_load_explicit(&inbox->pages, memory_order_relaxed);
    for (const jzi_node_page *each = page; each != NULL; each = each->next) {
        missing += each->count;
    }
    for (int wide = 0; wide < 2; wide++) {
        const jzi_node *node = atomic_load_explicit(&inbox->returned[wide], memory_order_relaxed);
        for (; node != NULL; node = node->next) {
            missing--;
        }
    }
    if (missing != 0) {
        return; /* an actor that waits to be restarted has messages */
    }
    for (int wide = 0; wide < 2; wide++) {
        atomic_store_explicit(&inbox->returned[wide], NULL, memory_order_relaxed);
    }
    atomic_store_explicit(&inbox->pages, NULL, memory_order_relaxed);
    atomic_store_explicit(&inbox->page_count, 0, memory_order_relaxed);
    while (page != NULL) {
        jzi_node_page *next = page->next;
        jzi_free(&inbox->alloc, page, page->bytes);
        page = next;
    }
}

jzx_err jzi_far_command(const jzi_directory *directory, jzx_actor_id id, uint64_t order)
{
    jzi_inbox *inbox = jzi_directory_inbox(directory, jzx_id_dispatcher(id));
    return inbox == NULL ? JZX_ERR_NO_SUCH_ACTOR : jzi_inbox_order(inbox, id, order);
}

void jzi_far_close(jzi_worker *worker)
{
    for (uint32_t i = 0; worker->outlets != NULL && i < JZI_OUTLETS; i++) {
        jzx_sender_release(worker->outlets[i]);
    }
    jzi_free(&worker->alloc, worker->outlets,
             worker->outlets == NULL ? 0 : JZI_OUTLETS * sizeof(jzx_sender *));
    worker->outlets = NULL;
}

jzx_err jzx_sender_open(jzx_loop *loop, uint32_t flags, jzx_sender **out_sender)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_sender_open");
    jzx_err err = jzi_sender_open(worker->inbox, flags, out_sender);
    if (err == JZX_OK) {
        worker->dispatcher->shared = true;
        if (!worker->inbox->timers.shared) { /* a sender cancels timers as well */
            worker->inbox->timers.shared = true;
        }
    }
    return err;
}
