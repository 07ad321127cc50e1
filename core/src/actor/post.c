#include "actor/post.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "os/thread.h"

jzx_err jzi_post_create(const jzx_allocator *alloc, const jzx_env *env, uint32_t max_actors,
                        jzi_post **out_post)
{
    jzi_post *post = jzi_alloc_zeroed(alloc, sizeof *post);
    if (post == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    post->alloc = *alloc;
    post->env = env;
    atomic_init(&post->refs, 1);
    atomic_init(&post->commanded, JZI_LIST_END);
    uint32_t salt = 0;
    jzx_err err = env->entropy(env->ctx, &salt, sizeof salt);
    if (err != JZX_OK) {
        goto fail;
    }
    err = env->wake_open(env->ctx, &post->wake_fd);
    if (err != JZX_OK) {
        goto fail;
    }
    err = jzi_actor_table_init(&post->table, alloc, max_actors, salt);
    if (err != JZX_OK) {
        env->fd_close(env->ctx, post->wake_fd);
        goto fail;
    }
    jzi_slots_init(&post->timers);
    jzi_slots_init(&post->asks);
    jzi_msg_add(&post->full_node.msg, JZI_MSG_EVENT);
    post->full_node.ops = JZI_POST_FULL;
    *out_post = post;
    return JZX_OK;
fail:
    jzi_free(alloc, post, sizeof *post);
    return err;
}

void jzi_post_retain(jzi_post *post)
{
    atomic_fetch_add_explicit(&post->refs, 1, memory_order_relaxed);
}

void jzi_post_retain_helper(jzi_post *post)
{
    atomic_fetch_add_explicit(&post->refs, JZI_POST_HELPER, memory_order_relaxed);
}

/* Those of actors whose slots nobody could give back any more, too. */
static void free_kinds(jzi_post *post, const jzx_allocator *alloc)
{
    uint32_t made = atomic_load_explicit(&post->table.made, memory_order_relaxed);
    for (uint32_t slot = 0; slot < made; slot++) {
        jzi_kind *kind = jzi_actor_table_at(&post->table, slot)->kind;
        if (kind != NULL && (kind->flags & JZI_KIND_OWN) != 0) {
            jzi_kind_free_own(alloc, kind);
        }
    }
    jzi_kinds_deinit(&post->kinds, alloc);
}

static void let_go(jzi_post *post, uint64_t ref)
{
    /* acq_rel: what every owner did comes before the freeing. */
    if (atomic_fetch_sub_explicit(&post->refs, ref, memory_order_acq_rel) != ref) {
        return;
    }
    jzx_allocator alloc = post->alloc;
    if (post->wake_fd >= 0) {
        post->env->fd_close(post->env->ctx, post->wake_fd);
    }
    free_kinds(post, &alloc);
    jzi_actor_table_deinit(&post->table, &alloc);
    jzi_slots_deinit(&post->timers, &alloc);
    jzi_slots_deinit(&post->asks, &alloc);
    jzi_node_page *page = atomic_load_explicit(&post->pages, memory_order_relaxed);
    while (page != NULL) {
        jzi_node_page *next = page->next;
        jzi_free(&alloc, page, page->bytes);
        page = next;
    }
    jzi_free(&alloc, post, sizeof *post);
}

void jzi_post_release(jzi_post *post)
{
    let_go(post, 1);
}

void jzi_post_release_helper(jzi_post *post)
{
    let_go(post, JZI_POST_HELPER);
}

void jzi_post_forget_helpers(jzi_post *post)
{
    uint64_t refs = atomic_load_explicit(&post->refs, memory_order_relaxed);
    uint64_t others = (refs & UINT32_MAX) - (refs >> 32);
    jzi_assert(others > 0);
    atomic_store_explicit(&post->refs, others, memory_order_relaxed);
}

bool jzi_post_push(jzi_post *post, jzi_node *node)
{
    jzi_node *head = atomic_load_explicit(&post->inbound, memory_order_relaxed);
    do {
        if (head == JZI_INBOUND_CLOSED) {
            return false;
        }
        node->next = head;
        /* seq_cst: before the look at `asleep` in jzi_post_wake(), for everybody. */
    } while (!atomic_compare_exchange_weak_explicit(&post->inbound, &head, node,
                                                    memory_order_seq_cst, memory_order_relaxed));
    return true;
}

void jzi_post_wake(jzi_post *post)
{
    if (atomic_load_explicit(&post->asleep, memory_order_seq_cst) == 0) {
        return;
    }
    /* seq_cst, then the exchange: pairs with jzi_post_shut(), which first takes `asleep` away and
     * then waits for those it sees here. So nobody writes to a descriptor that was closed. */
    atomic_fetch_add_explicit(&post->wakers, 1, memory_order_seq_cst);
    /* Of several senders one makes the call. */
    if (atomic_exchange_explicit(&post->asleep, 0, memory_order_seq_cst) != 0) {
        atomic_fetch_add_explicit(&post->wakes, 1, memory_order_relaxed);
        post->env->wake_signal(post->env->ctx, post->wake_fd);
    }
    atomic_fetch_sub_explicit(&post->wakers, 1, memory_order_release);
}

void jzi_post_shut(jzi_post *post, bool forked)
{
    atomic_store_explicit(&post->asleep, 0, memory_order_seq_cst);
    while (!forked && atomic_load_explicit(&post->wakers, memory_order_seq_cst) != 0) {
        jzi_thread_pause(1000); /* for one write(2) of another thread */
    }
    post->env->fd_close(post->env->ctx, post->wake_fd);
    post->wake_fd = -1;
}

static jzi_node *take_and_leave(jzi_post *post, jzi_node *leave)
{
    /* acquire: pairs with the push, so the messages are readable. */
    jzi_node *newest = atomic_exchange_explicit(&post->inbound, leave, memory_order_acquire);
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
    jzi_node *kept = atomic_load_explicit(&post->taken, memory_order_relaxed);
    if (jzi_unlikely(kept != NULL)) {
        post->taken_last->next = oldest;
        oldest = kept;
        atomic_store_explicit(&post->taken, NULL, memory_order_relaxed);
    }
    if (last != NULL) {
        post->taken_last = last;
    }
    return oldest;
}

void jzi_post_keep(jzi_post *post, jzi_node *rest)
{
    atomic_store_explicit(&post->taken, rest, memory_order_relaxed);
}

jzi_node *jzi_post_take(jzi_post *post)
{
    return take_and_leave(post, NULL);
}

jzi_node *jzi_post_close(jzi_post *post)
{
    return take_and_leave(post, JZI_INBOUND_CLOSED);
}

void jzi_post_refuse(jzi_post *post)
{
    (void)atomic_exchange_explicit(&post->inbound, JZI_INBOUND_CLOSED, memory_order_acq_rel);
}

void jzi_post_return(jzi_post *post, bool wide, jzi_node *first, jzi_node *last)
{
    jzi_node *head = atomic_load_explicit(&post->returned[wide], memory_order_relaxed);
    do {
        last->next = head;
        /* release: pairs with the sender's exchange, which then writes to these nodes. */
    } while (!atomic_compare_exchange_weak_explicit(&post->returned[wide], &head, first,
                                                    memory_order_release, memory_order_relaxed));
}

void jzi_post_command(jzi_post *post, jzi_actor *actor)
{
    uint32_t policy = jzi_door_policy(&actor->door);
    uint32_t head = atomic_load_explicit(&post->commanded, memory_order_relaxed);
    do {
        atomic_store_explicit(&actor->door.link, policy | head << 8, memory_order_relaxed);
        /* seq_cst: before the look at `asleep` in jzi_post_wake(), for everybody. */
    } while (!atomic_compare_exchange_weak_explicit(&post->commanded, &head, jzi_actor_slot(actor),
                                                    memory_order_seq_cst, memory_order_relaxed));
    jzi_post_wake(post);
}

uint32_t jzi_post_take_commands(jzi_post *post)
{
    if (atomic_load_explicit(&post->commanded, memory_order_relaxed) == JZI_LIST_END) {
        return JZI_LIST_END;
    }
    /* acquire: pairs with the push, so the links are readable. */
    return atomic_exchange_explicit(&post->commanded, JZI_LIST_END, memory_order_acquire);
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

jzx_err jzi_post_order(jzi_post *post, jzx_actor_id id, uint64_t order)
{
    jzi_actor *actor = jzi_actor_table_slot(&post->table, jzx_id_index(id) ^ post->base);
    bool first = false;
    if (actor == NULL || !jzi_door_order(&actor->door, id, order, &first)) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    if (first) {
        jzi_post_command(post, actor);
    }
    return JZX_OK;
}

static jzx_err look(const jzi_post *post, jzx_actor_id id, const jzi_actor **out_actor)
{
    const jzi_actor *actor =
        post == NULL ? NULL : jzi_actor_table_slot(&post->table, jzx_id_index(id) ^ post->base);
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

jzx_err jzi_directory_look(const jzi_directory *directory, jzx_actor_id id, jzi_post **out_post,
                           const jzi_actor **out_actor)
{
    *out_post = jzi_directory_post(directory, jzx_id_dispatcher(id));
    return look(*out_post, id, out_actor);
}

uint32_t jzi_post_history(const jzi_post *post, jzx_actor_id id)
{
    const jzi_actor *actor = NULL;
    if (look(post, id, &actor) == JZX_ERR_NO_SUCH_ACTOR) {
        return 0;
    }
    /* acquire, then a second look: it is not the next tenant's. */
    uint32_t history = atomic_load_explicit(&actor->history, memory_order_acquire);
    bool gone = history == JZI_HISTORY_CORPSE || look(post, id, &actor) == JZX_ERR_NO_SUCH_ACTOR;
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
        jzi_post *post = atomic_load_explicit(&directory->posts[i], memory_order_relaxed);
        if (post != NULL) {
            jzi_post_release(post);
        }
    }
    jzx_allocator alloc = directory->alloc;
    jzi_free(&alloc, directory, sizeof *directory);
}

jzx_err jzi_post_reopen(jzi_post *post)
{
    jzx_err err = post->env->wake_open(post->env->ctx, &post->wake_fd);
    if (err != JZX_OK) {
        post->wake_fd = -1;
        return err;
    }
    atomic_store_explicit(&post->stop, 0, memory_order_relaxed);
    atomic_store_explicit(&post->asleep, 0, memory_order_relaxed);
    atomic_store_explicit(&post->watched, 0, memory_order_relaxed);
    /* release: whoever pushes now finds a loop that takes it in. */
    atomic_store_explicit(&post->inbound, NULL, memory_order_release);
    return JZX_OK;
}

void jzi_post_nudge(jzi_post *post)
{
    atomic_store_explicit(&post->nudged, 1, memory_order_seq_cst);
    jzi_post_wake(post);
}

void jzi_post_say_full(jzi_post *post, jzx_actor_id id)
{
    jzx_actor_id nobody = JZX_NOBODY;
    if (atomic_load_explicit(&post->tells_full, memory_order_relaxed) == 0 ||
        !atomic_compare_exchange_strong_explicit(&post->full[jzx_id_slot(id) % JZI_FULL_SLOTS],
                                                 &nobody, id, memory_order_seq_cst,
                                                 memory_order_relaxed)) {
        return; /* it waits there already; or another one does, and this one's next refusal tells */
    }
    /* seq_cst: the dispatcher clears this before it looks at the ids. */
    if (atomic_exchange_explicit(&post->full_told, 1, memory_order_seq_cst) != 0) {
        return;
    }
    if (jzi_post_push(post, &post->full_node)) {
        jzi_post_wake(post);
    } else {
        atomic_store_explicit(&post->full_told, 0, memory_order_seq_cst);
    }
}
