#include "actor/inbox.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "os/thread.h"

jzx_err jzi_inbox_create(const jzx_allocator *alloc, const jzx_env *env, uint32_t max_actors,
                         jzi_inbox **out_inbox)
{
    jzi_inbox *inbox = jzi_alloc_zeroed(alloc, sizeof *inbox);
    if (inbox == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    inbox->alloc = *alloc;
    inbox->env = env;
    atomic_init(&inbox->refs, 1);
    atomic_init(&inbox->commanded, JZI_LIST_END);
    uint32_t salt = 0;
    jzx_err err = env->entropy(env->ctx, &salt, sizeof salt);
    if (err != JZX_OK) {
        goto fail;
    }
    err = env->wake_open(env->ctx, &inbox->wake_fd);
    if (err != JZX_OK) {
        goto fail;
    }
    err = jzi_actor_table_init(&inbox->table, alloc, max_actors, salt);
    if (err != JZX_OK) {
        env->fd_close(env->ctx, inbox->wake_fd);
        goto fail;
    }
    jzi_slots_init(&inbox->timers);
    jzi_slots_init(&inbox->asks);
    jzi_msg_add(&inbox->full_node.msg, JZI_MSG_EVENT);
    inbox->full_node.ops = JZI_INBOX_FULL;
    *out_inbox = inbox;
    return JZX_OK;
fail:
    jzi_free(alloc, inbox, sizeof *inbox);
    return err;
}

void jzi_inbox_retain(jzi_inbox *inbox)
{
    atomic_fetch_add_explicit(&inbox->refs, 1, memory_order_relaxed);
}

void jzi_inbox_retain_helper(jzi_inbox *inbox)
{
    atomic_fetch_add_explicit(&inbox->refs, JZI_INBOX_HELPER, memory_order_relaxed);
}

/* Also the types of actors whose slots could not be given back any more. */
static void free_types(jzi_inbox *inbox, const jzx_allocator *alloc)
{
    uint32_t made = atomic_load_explicit(&inbox->table.made, memory_order_relaxed);
    for (uint32_t slot = 0; slot < made; slot++) {
        jzi_actor_type *type = jzi_actor_table_at(&inbox->table, slot)->type;
        if (type != NULL && (type->flags & JZI_TYPE_OWN) != 0) {
            jzi_actor_type_free_own(alloc, type);
        }
    }
    jzi_actor_types_deinit(&inbox->types, alloc);
}

static void inbox_let_go(jzi_inbox *inbox, uint64_t ref)
{
    /* acq_rel: what every owner did comes before the freeing. */
    if (atomic_fetch_sub_explicit(&inbox->refs, ref, memory_order_acq_rel) != ref) {
        return;
    }
    jzx_allocator alloc = inbox->alloc;
    if (inbox->wake_fd >= 0) {
        inbox->env->fd_close(inbox->env->ctx, inbox->wake_fd);
    }
    free_types(inbox, &alloc);
    jzi_actor_table_deinit(&inbox->table, &alloc);
    jzi_slots_deinit(&inbox->timers, &alloc);
    jzi_slots_deinit(&inbox->asks, &alloc);
    jzi_node_page *page = atomic_load_explicit(&inbox->pages, memory_order_relaxed);
    while (page != NULL) {
        jzi_node_page *next = page->next;
        jzi_free(&alloc, page, page->bytes);
        page = next;
    }
    jzi_free(&alloc, inbox, sizeof *inbox);
}

void jzi_inbox_release(jzi_inbox *inbox)
{
    inbox_let_go(inbox, 1);
}

void jzi_inbox_release_helper(jzi_inbox *inbox)
{
    inbox_let_go(inbox, JZI_INBOX_HELPER);
}

void jzi_inbox_forget_helpers(jzi_inbox *inbox)
{
    uint64_t refs = atomic_load_explicit(&inbox->refs, memory_order_relaxed);
    uint64_t others = (refs & UINT32_MAX) - (refs >> 32);
    jzi_assert(others > 0);
    atomic_store_explicit(&inbox->refs, others, memory_order_relaxed);
}

bool jzi_inbox_push(jzi_inbox *inbox, jzi_node *node)
{
    jzi_node *head = atomic_load_explicit(&inbox->inbound, memory_order_relaxed);
    do {
        if (head == JZI_INBOUND_CLOSED) {
            return false;
        }
        node->next = head;
        /* seq_cst: before the look at `asleep` in jzi_inbox_wake(), for every thread. */
    } while (!atomic_compare_exchange_weak_explicit(&inbox->inbound, &head, node,
                                                    memory_order_seq_cst, memory_order_relaxed));
    return true;
}

void jzi_inbox_wake(jzi_inbox *inbox)
{
    if (atomic_load_explicit(&inbox->asleep, memory_order_seq_cst) == 0) {
        return;
    }
    /* seq_cst, then the exchange: pairs with jzi_inbox_shut(), which first takes `asleep` away and
     * then waits for the threads that `wakers` counts. So no thread writes to a descriptor that
     * was closed. */
    atomic_fetch_add_explicit(&inbox->wakers, 1, memory_order_seq_cst);
    /* Of several senders one makes the call. */
    if (atomic_exchange_explicit(&inbox->asleep, 0, memory_order_seq_cst) != 0) {
        atomic_fetch_add_explicit(&inbox->wakes, 1, memory_order_relaxed);
        inbox->env->wake_signal(inbox->env->ctx, inbox->wake_fd);
    }
    atomic_fetch_sub_explicit(&inbox->wakers, 1, memory_order_release);
}

void jzi_inbox_shut(jzi_inbox *inbox, bool forked)
{
    atomic_store_explicit(&inbox->asleep, 0, memory_order_seq_cst);
    while (!forked && atomic_load_explicit(&inbox->wakers, memory_order_seq_cst) != 0) {
        jzi_thread_pause(1000); /* for one write(2) of another thread */
    }
    inbox->env->fd_close(inbox->env->ctx, inbox->wake_fd);
    inbox->wake_fd = -1;
}

static jzi_node *take_and_leave(jzi_inbox *inbox, jzi_node *leave)
{
    /* acquire: pairs with the push, so the messages are readable. */
    jzi_node *newest = atomic_exchange_explicit(&inbox->inbound, leave, memory_order_acquire);
    if (newest == JZI_INBOUND_CLOSED) {
        return NULL;
    }
    jzi_node *last = newest;
    jzi_node *oldest = NULL;
    while (newest != NULL) {
        jzi_node *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    jzi_node *kept = atomic_load_explicit(&inbox->taken, memory_order_relaxed);
    if (jzi_unlikely(kept != NULL)) {
        inbox->taken_last->next = oldest;
        oldest = kept;
        atomic_store_explicit(&inbox->taken, NULL, memory_order_relaxed);
    }
    if (last != NULL) {
        inbox->taken_last = last;
    }
    return oldest;
}

void jzi_inbox_keep(jzi_inbox *inbox, jzi_node *rest)
{
    atomic_store_explicit(&inbox->taken, rest, memory_order_relaxed);
}

jzi_node *jzi_inbox_take(jzi_inbox *inbox)
{
    return take_and_leave(inbox, NULL);
}

jzi_node *jzi_inbox_close(jzi_inbox *inbox)
{
    return take_and_leave(inbox, JZI_INBOUND_CLOSED);
}

void jzi_inbox_refuse(jzi_inbox *inbox)
{
    (void)atomic_exchange_explicit(&inbox->inbound, JZI_INBOUND_CLOSED, memory_order_acq_rel);
}

void jzi_inbox_return(jzi_inbox *inbox, bool wide, jzi_node *first, jzi_node *last)
{
    jzi_node *head = atomic_load_explicit(&inbox->returned[wide], memory_order_relaxed);
    do {
        last->next = head;
        /* release: pairs with the sender's exchange, which then writes to these nodes. */
    } while (!atomic_compare_exchange_weak_explicit(&inbox->returned[wide], &head, first,
                                                    memory_order_release, memory_order_relaxed));
}

void jzi_inbox_command(jzi_inbox *inbox, jzi_actor *actor)
{
    uint32_t policy = jzi_door_policy(&actor->door);
    uint32_t head = atomic_load_explicit(&inbox->commanded, memory_order_relaxed);
    do {
        atomic_store_explicit(&actor->door.link, policy | head << 8, memory_order_relaxed);
        /* seq_cst: before the look at `asleep` in jzi_inbox_wake(), for every thread. */
    } while (!atomic_compare_exchange_weak_explicit(&inbox->commanded, &head, jzi_actor_slot(actor),
                                                    memory_order_seq_cst, memory_order_relaxed));
    jzi_inbox_wake(inbox);
}

uint32_t jzi_inbox_take_commands(jzi_inbox *inbox)
{
    if (atomic_load_explicit(&inbox->commanded, memory_order_relaxed) == JZI_LIST_END) {
        return JZI_LIST_END;
    }
    /* acquire: pairs with the push, so the links are readable. */
    return atomic_exchange_explicit(&inbox->commanded, JZI_LIST_END, memory_order_acquire);
}

jzi_directory *jzi_directory_create(const jzx_allocator *alloc)
{
    jzi_directory *directory = jzi_alloc_zeroed(alloc, sizeof *directory);
    if (directory != NULL) {
        directory->alloc = *alloc;
        atomic_init(&directory->refs, 1);
    }
    return directory;
}

jzx_err jzi_inbox_order(jzi_inbox *inbox, jzx_actor_id id, uint64_t order)
{
    jzi_actor *actor = jzi_actor_table_slot(&inbox->table, jzx_id_index(id) ^ inbox->base);
    bool first = false;
    if (actor == NULL || !jzi_door_order(&actor->door, id, order, &first)) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    if (first) {
        jzi_inbox_command(inbox, actor);
    }
    return JZX_OK;
}

static jzx_err inbox_look(const jzi_inbox *inbox, jzx_actor_id id, const jzi_actor **out_actor)
{
    const jzi_actor *actor =
        inbox == NULL ? NULL : jzi_actor_table_slot(&inbox->table, jzx_id_index(id) ^ inbox->base);
    if (actor == NULL) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    uint64_t gate = atomic_load_explicit(&actor->door.gate, memory_order_acquire);
    if (jzi_gate_generation(gate) != jzx_id_generation(id) || (gate & JZI_GATE_PINS) == 0) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    *out_actor = actor;
    return (gate & (JZI_GATE_CLOSED | JZI_GATE_ORDERS)) != 0 ? JZX_ERR_STOPPING : JZX_OK;
}

jzx_err jzi_directory_lookup(const jzi_directory *directory, jzx_actor_id id, jzi_inbox **out_inbox,
                             const jzi_actor **out_actor)
{
    *out_inbox = jzi_directory_inbox(directory, jzx_id_dispatcher(id));
    return inbox_look(*out_inbox, id, out_actor);
}

uint32_t jzi_inbox_history(const jzi_inbox *inbox, jzx_actor_id id)
{
    const jzi_actor *actor = NULL;
    if (inbox_look(inbox, id, &actor) == JZX_ERR_NO_SUCH_ACTOR) {
        return 0;
    }
    /* acquire, then a second look: it is not the next tenant's. */
    uint32_t history = atomic_load_explicit(&actor->history, memory_order_acquire);
    bool gone =
        history == JZI_HISTORY_ZOMBIE || inbox_look(inbox, id, &actor) == JZX_ERR_NO_SUCH_ACTOR;
    return gone ? 0 : history;
}

void jzi_directory_retain(jzi_directory *directory)
{
    atomic_fetch_add_explicit(&directory->refs, 1, memory_order_relaxed);
}

void jzi_directory_release(jzi_directory *directory)
{
    /* acq_rel: what every owner did comes before the freeing. */
    if (atomic_fetch_sub_explicit(&directory->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; i < 256; i++) {
        jzi_inbox *inbox = atomic_load_explicit(&directory->inboxes[i], memory_order_relaxed);
        if (inbox != NULL) {
            jzi_inbox_release(inbox);
        }
    }
    jzx_allocator alloc = directory->alloc;
    jzi_free(&alloc, directory, sizeof *directory);
}

jzx_err jzi_inbox_reopen(jzi_inbox *inbox)
{
    jzx_err err = inbox->env->wake_open(inbox->env->ctx, &inbox->wake_fd);
    if (err != JZX_OK) {
        inbox->wake_fd = -1;
        return err;
    }
    atomic_store_explicit(&inbox->stop, 0, memory_order_relaxed);
    atomic_store_explicit(&inbox->asleep, 0, memory_order_relaxed);
    atomic_store_explicit(&inbox->watched, 0, memory_order_relaxed);
    /* release: a sender that pushes now finds a loop that takes it in. */
    atomic_store_explicit(&inbox->inbound, NULL, memory_order_release);
    return JZX_OK;
}

void jzi_inbox_nudge(jzi_inbox *inbox)
{
    atomic_store_explicit(&inbox->nudged, 1, memory_order_seq_cst);
    jzi_inbox_wake(inbox);
}

void jzi_inbox_say_full(jzi_inbox *inbox, jzx_actor_id id)
{
    jzx_actor_id nobody = JZX_NOBODY;
    if (atomic_load_explicit(&inbox->tells_full, memory_order_relaxed) == 0 ||
        !atomic_compare_exchange_strong_explicit(&inbox->full[jzx_id_slot(id) % JZI_FULL_SLOTS],
                                                 &nobody, id, memory_order_seq_cst,
                                                 memory_order_relaxed)) {
        return; /* the id waits there already; or another id does, and the next refusal tells */
    }
    /* seq_cst: the dispatcher clears this before it looks at the ids. */
    if (atomic_exchange_explicit(&inbox->full_told, 1, memory_order_seq_cst) != 0) {
        return;
    }
    if (jzi_inbox_push(inbox, &inbox->full_node)) {
        jzi_inbox_wake(inbox);
    } else {
        atomic_store_explicit(&inbox->full_told, 0, memory_order_seq_cst);
    }
}
