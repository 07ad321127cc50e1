/* CHILD_STARTED: a child that was spawned with JZX_SPAWN_TELL_START is RUNNING, and its parent is
 * told by a notice. The record is made with the child, so the notice cannot fail (R9); the record
 * outlives the child while a notice is on its way, in the parent's lane or in hand.
 *
 *   word = incarnation:32 | SECOND | IN_HAND | QUEUED | CHILD
 *
 * The child's dispatcher writes the incarnation and sets QUEUED, the parent's turns that into
 * IN_HAND and clears it; the side that clears the last of the three bits frees the record. A start
 * that finds a notice waiting is told by that notice. A start that comes while the parent is in
 * such a notice takes the other of two nodes, so that its notice stands where it belongs (R6). */
#include "lifecycle/lifecycle_priv.h"

#include "base/alloc.h"

#define CHILD ((uint64_t)1)   /* the child lives */
#define QUEUED ((uint64_t)2)  /* a notice is under way or in a lane */
#define IN_HAND ((uint64_t)4) /* the parent is in a notice */
#define SECOND ((uint64_t)8)  /* the node that was used last: notices[1] */
#define USERS (CHILD | QUEUED | IN_HAND)

typedef struct notice {
    jzi_node node;
    jzi_started *of;
    bool claimed; /* this notice is the one in hand; the parent's */
} notice;

struct jzi_started {
    notice notices[2];
    _Atomic uint64_t word;
    uint32_t parent; /* index */
};

jzi_started *jzi_started_make(jzi_worker *worker, const jzi_actor *parent)
{
    jzi_started *it = jzi_alloc_zeroed(&worker->alloc, sizeof *it);
    if (it != NULL) {
        it->parent = jzx_id_index(parent->id);
        atomic_init(&it->word, CHILD);
        for (size_t i = 0; i < 2; i++) {
            it->notices[i].of = it;
            it->notices[i].node.ops = JZI_EVENT_STARTED;
        }
    }
    return it;
}

void jzi_started_drop(const jzx_allocator *alloc, jzi_started *it)
{
    if (it != NULL) {
        jzi_free(alloc, it, sizeof *it);
    }
}

/* Clears a user's bit; the last one frees the record. */
static void lifecycle_started_leave(jzi_worker *worker, jzi_started *it, uint64_t bit,
                                    uint64_t flip)
{
    uint64_t word = atomic_load_explicit(&it->word, memory_order_relaxed);
    /* acq_rel: what either side did comes before the freeing. */
    while (!atomic_compare_exchange_weak_explicit(&it->word, &word, (word & ~bit) ^ flip,
                                                  memory_order_acq_rel, memory_order_relaxed)) {
    }
    if ((word & USERS) == bit) {
        jzi_free(&worker->alloc, it, sizeof *it);
    }
}

void jzi_started_leave(jzi_worker *worker, jzi_started *it)
{
    lifecycle_started_leave(worker, it, CHILD, 0);
}

/* The parent is done with the notice; or does not want it, and its node is the next one again. */
static void out_of_lane(jzi_worker *worker, jzi_node *node)
{
    notice *it = jzi_container_of(node, notice, node);
    bool claimed = it->claimed;
    it->claimed = false;
    lifecycle_started_leave(worker, it->of, claimed ? IN_HAND : QUEUED, claimed ? 0 : SECOND);
}

static void arrived(jzi_worker *worker, jzi_node *node)
{
    const jzi_started *it = jzi_container_of(node, notice, node)->of;
    jzi_actor *parent = jzi_worker_slot(worker, it->parent);
    if ((parent->flags & JZI_ACTOR_ENDING) != 0 || worker->dispatcher->destroying) {
        out_of_lane(worker, node);
    } else {
        jzi_worker_post_notice(worker, parent, node);
    }
}

void jzi_started_tell(jzi_worker *worker, const jzi_actor *actor)
{
    jzi_life *life = actor->cold->life;
    jzi_started *it = life->started;
    uint64_t incarnation = (uint64_t)life->incarnation << 32;
    uint64_t word = atomic_load_explicit(&it->word, memory_order_relaxed);
    uint64_t next = 0;
    do {
        uint64_t bits = word & (USERS | SECOND);
        next = incarnation | ((bits & QUEUED) != 0 ? bits : (bits | QUEUED) ^ SECOND);
        /* acq_rel: a node that is used again was left by the parent. */
    } while (!atomic_compare_exchange_weak_explicit(&it->word, &word, next, memory_order_acq_rel,
                                                    memory_order_relaxed));
    if ((word & QUEUED) != 0) {
        return;
    }
    jzi_node *node = &it->notices[(next & SECOND) != 0 ? 1 : 0].node;
    node->msg = (jzx_message){.tag = JZX_TAG_CHILD_STARTED,
                              .kind = JZX_KIND_NOTICE,
                              JZI_MSG_FLAGS(JZX_MSG_BORROWED | JZI_MSG_EVENT),
                              .sender = actor->id};
    if (life->far == NULL) {
        arrived(worker, node);
    } else {
        jzi_far_push_up(life->far, node);
    }
}

static bool lifecycle_started_claim(jzi_worker *worker, jzi_actor *parent, jzi_node *node)
{
    (void)parent;
    notice *now = jzi_container_of(node, notice, node);
    uint64_t word = atomic_load_explicit(&now->of->word, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&now->of->word, &word, (word & ~QUEUED) | IN_HAND,
                                                  memory_order_acq_rel, memory_order_relaxed)) {
    }
    now->claimed = true;
    worker->signal_reason = (jzx_reason){0};
    worker->signal = (jzx_signal){
        .kind = JZX_SIGNAL_CHILD_STARTED,
        .incarnation = (uint32_t)(word >> 32),
        .from = node->msg.sender,
        .reason = &worker->signal_reason,
    };
    node->msg.data = &worker->signal;
    node->msg.len = sizeof worker->signal;
    return true;
}

void jzi_started_init(jzi_worker *worker)
{
    worker->dispatcher->event_ops[JZI_EVENT_STARTED] =
        (jzi_event_ops){.claim = lifecycle_started_claim,
                        .done = out_of_lane,
                        .revoke = out_of_lane,
                        .arrive = arrived};
}
