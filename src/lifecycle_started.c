/* CHILD_STARTED: a child that was spawned with JZX_SPAWN_TELL_START is RUNNING, and its parent is
 * told by a notice. The record is made with the child, so the notice cannot fail (R9); it outlives
 * the child while the notice is on its way, in the parent's lane or in hand.
 *
 *   word = incarnation:32 | QUEUED | CHILD
 *
 * The child's domain writes the incarnation and sets QUEUED, the parent's clears that; whoever
 * clears the last bit frees the record. A start that finds a notice waiting is told by it. */
#include "lifecycle_steps.h"

#include "base/alloc.h"

#define CHILD ((uint64_t)1)  /* the child lives */
#define QUEUED ((uint64_t)2) /* the node is under way, in a lane or in hand */

struct jzi_started {
    jzi_node node;
    _Atomic uint64_t word;
    jzx_actor_id child;
    uint32_t parent; /* index */
    uint32_t told;   /* the incarnation that the notice in hand speaks of; the parent's */
};

jzi_started *jzi_started_make(jzi_worker *worker, const jzi_actor *parent)
{
    jzi_started *it = jzi_alloc_zeroed(&worker->alloc, sizeof *it);
    if (it != NULL) {
        it->parent = jzx_id_index(parent->id);
        atomic_init(&it->word, CHILD);
        it->node.ops = JZI_EVENT_STARTED;
    }
    return it;
}

void jzi_started_drop(const jzx_allocator *alloc, jzi_started *it)
{
    if (it != NULL) {
        jzi_free(alloc, it, sizeof *it);
    }
}

void jzi_started_leave(jzi_worker *worker, jzi_started *it)
{
    /* acq_rel: what either side did comes before the freeing. */
    uint64_t before = atomic_fetch_and_explicit(&it->word, ~CHILD, memory_order_acq_rel);
    if ((before & QUEUED) == 0) {
        jzi_free(&worker->alloc, it, sizeof *it);
    }
}

static void fill(jzi_started *it)
{
    it->node.msg = (jzx_message){.tag = JZX_TAG_CHILD_STARTED,
                                 .kind = JZX_KIND_NOTICE,
                                 JZI_MSG_FLAGS(JZX_MSG_BORROWED | JZI_MSG_EVENT),
                                 .sender = it->child};
}

/* The parent is done with the notice, or does not want it. */
static void out_of_lane(jzi_worker *worker, jzi_started *it, bool seen)
{
    uint64_t word = atomic_load_explicit(&it->word, memory_order_acquire);
    do {
        if (seen && (word & CHILD) != 0 && word >> 32 != it->told) { /* it started once more */
            fill(it);
            jzi_worker_post_notice(worker, jzi_worker_slot(worker, it->parent), &it->node);
            return;
        }
    } while (!atomic_compare_exchange_weak_explicit(&it->word, &word, word & ~QUEUED,
                                                    memory_order_acq_rel, memory_order_acquire));
    if ((word & CHILD) == 0) {
        jzi_free(&worker->alloc, it, sizeof *it);
    }
}

static void arrived(jzi_worker *worker, jzi_node *node)
{
    jzi_started *it = jzi_container_of(node, jzi_started, node);
    jzi_actor *parent = jzi_worker_slot(worker, it->parent);
    if ((parent->flags & JZI_ACTOR_ENDING) != 0 || worker->domain->destroying) {
        out_of_lane(worker, it, false);
    } else {
        jzi_worker_post_notice(worker, parent, node);
    }
}

void jzi_started_tell(jzi_worker *worker, const jzi_actor *actor)
{
    jzi_life *life = actor->ext->life;
    jzi_started *it = life->started;
    uint64_t word = atomic_load_explicit(&it->word, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        &it->word, &word, (uint64_t)life->incarnation << 32 | CHILD | QUEUED, memory_order_acq_rel,
        memory_order_relaxed)) {
    }
    if ((word & QUEUED) != 0) {
        return;
    }
    it->child = actor->id;
    fill(it);
    if (life->far == NULL) {
        arrived(worker, &it->node);
    } else {
        jzi_far_push_up(life->far, &it->node);
    }
}

static bool claim(jzi_worker *worker, jzi_actor *parent, jzi_node *node)
{
    (void)parent;
    jzi_started *it = jzi_container_of(node, jzi_started, node);
    it->told = (uint32_t)(atomic_load_explicit(&it->word, memory_order_acquire) >> 32);
    worker->signal_reason = (jzx_reason){0};
    worker->signal = (jzx_signal){
        .kind = JZX_SIGNAL_CHILD_STARTED,
        .incarnation = it->told,
        .from = it->child,
        .reason = &worker->signal_reason,
    };
    node->msg.data = &worker->signal;
    node->msg.len = sizeof worker->signal;
    return true;
}

static void done(jzi_worker *worker, jzi_node *node)
{
    out_of_lane(worker, jzi_container_of(node, jzi_started, node), true);
}

static void revoked(jzi_worker *worker, jzi_node *node)
{
    out_of_lane(worker, jzi_container_of(node, jzi_started, node), false);
}

void jzi_started_init(jzi_worker *worker)
{
    worker->domain->event_ops[JZI_EVENT_STARTED] =
        (jzi_event_ops){.claim = claim, .done = done, .revoke = revoked, .arrive = arrived};
}
