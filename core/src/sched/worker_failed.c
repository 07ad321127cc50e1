/* The message that an actor failed on: it comes again after the restart, or is a dead letter (R18,
 * R21). */
#include "sched/worker_priv.h"

/* How often its actor failed on the message in hand before. */
static uint32_t tries_of(const jzi_worker *worker, const jzi_node *node)
{
    if ((jzi_msg_flags(&node->msg) & JZI_HAND_TRIED) == 0) {
        return 0;
    }
    /* A request that was answered before the failure is none any more. */
    return jzi_worker_correlation(worker) != 0 ? worker->request_tries : node->ops;
}

static void set_tries(jzi_worker *worker, jzi_node *node, uint32_t tries)
{
    jzi_msg_add(&node->msg, JZI_HAND_TRIED);
    *((jzi_msg_flags(&node->msg) & JZI_MSG_ASK) != 0
          ? worker->dispatcher->on_request_tries(worker, node)
          : &node->ops) = tries;
}

/* The message comes again if its data must still be there. */
jzi_fate jzi_turn_fate(jzi_worker *worker, const jzi_actor *actor, jzi_node *node)
{
    uint32_t there = JZX_MSG_VALUE | JZX_MSG_COPY | JZI_MSG_DROP;
    uint32_t flags = jzi_msg_flags(&node->msg);
    if ((flags & (JZI_MSG_EVENT | JZI_HAND_MOVED)) != 0) {
        return JZI_FATE_HANDLED;
    }
    if ((actor->type->flags & JZX_SPAWN_REDELIVER) == 0 || (flags & JZI_MSG_TAKEN) != 0 ||
        (flags & there) == 0) {
        return JZI_FATE_DEAD;
    }
    return tries_of(worker, node) < actor->type->redeliver_max ? JZI_FATE_AGAIN : JZI_FATE_POISON;
}

/* The same for a message that its actor just failed on and that is not yet counted: what lifecycle
 * wants to know of the message is kept before the node is used again. */
jzi_fate jzi_turn_failed_on(jzi_worker *worker, const jzi_actor *actor, jzi_node *node)
{
    /* Words of an earlier message, which then did not fail, are not for this one. */
    if (worker->reason_at != jzi_count_get(&worker->counters.handled)) {
        worker->reason_by = JZX_NOBODY;
    }
    worker->failed.actor = actor->id;
    worker->failed.on = (jzx_failed_on){.correlation = jzi_worker_correlation(worker),
                                        .sender = node->msg.sender,
                                        .tag = node->msg.tag,
                                        .kind = node->msg.kind,
                                        .there = 1};
    return jzi_turn_fate(worker, actor, node);
}

/* A dead letter. What the behavior owned, or took, is not shown: it may be gone. */
void jzi_turn_dead_letter(jzi_worker *worker, jzi_actor *actor, jzi_node *node, jzi_fate fate)
{
    uint32_t ours = JZX_MSG_VALUE | JZX_MSG_COPY | JZI_MSG_DROP;
    JZI_PUBLISH_HOT(worker->in_hand, NULL);
    worker->correlated_by = JZX_NOBODY; /* the next one is not told from it by `handled` */
    if ((jzi_msg_flags(&node->msg) & ours) == 0) {
        node->msg.data = NULL;
    }
    jzi_worker_dead_letter_in_hand(worker, actor, node,
                                   fate == JZI_FATE_POISON ? JZX_DEAD_POISON : JZX_DEAD_FAILED_ON);
}

/* Back to its place in the lane it came from, as if it had never left: that is the front, but for
 * older messages that it brought back from the stash itself. */
void jzi_turn_put_back(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    bool urgent = (jzi_msg_flags(&node->msg) & JZX_MSG_URGENT) != 0;
    set_tries(worker, node, tries_of(worker, node) + 1);
    JZI_PUBLISH_HOT(worker->in_hand, NULL);
    worker->correlated_by = JZX_NOBODY;
    if (!urgent) {
        jzi_worker_reattach(worker);
    }
    /* In case there is no restart after all. Its request, if it was kept, goes its own way. */
    jzi_msg_clear(&node->msg, JZI_HAND_KEPT);
    jzi_msg_add(&node->msg, JZI_HAND_AGAIN);
    jzi_msg_settle(&node->msg);
    jzi_lane_insert(urgent ? &actor->urgent : &actor->user, node);
    if (urgent) {
        actor->flags |= JZI_ACTOR_MIXED;
    }
    if ((jzi_msg_flags(&node->msg) & JZI_MSG_FOREIGN) == 0) {
        jzi_actor_set_counts(actor, jzi_actor_counts(actor) + JZI_COUNTS_USED);
    } else if (worker->pooled) {
        /* relaxed: it is alive, and its own worker says so. */
        atomic_fetch_add_explicit(&actor->door.gate, 1, memory_order_relaxed);
    }
}

/* Takes the message that jzi_turn_put_back() put there out of a lane: the first, or behind older
 * ones. */
static jzi_node *take_again(jzi_node **lane)
{
    jzi_node *before = *lane;
    while (before != NULL && (jzi_msg_flags(&before->next->msg) & JZI_HAND_AGAIN) == 0) {
        before = before->next == *lane ? NULL : before->next;
    }
    if (before == NULL) {
        return NULL;
    }
    jzi_node *node = before->next;
    before->next = node->next;
    if (node == *lane) {
        *lane = node == before ? NULL : before;
    }
    return node;
}

void jzi_worker_forget_redelivery(jzi_worker *worker, jzi_actor *actor)
{
    jzi_node **lanes[] = {&actor->urgent, &actor->user};
    for (size_t i = 0; i < 2; i++) {
        jzi_node *node = take_again(lanes[i]);
        if (node == NULL) {
            continue;
        }
        if ((jzi_msg_flags(&node->msg) & JZI_MSG_FOREIGN) == 0) {
            jzi_actor_unuse(actor);
        } else if (worker->pooled) {
            jzi_worker_leave(worker, actor, 1); /* what jzi_turn_put_back() took */
        }
        jzi_turn_leave_request(worker, actor, node, true);
        jzi_turn_dead_letter(worker, actor, node, JZI_FATE_DEAD);
    }
}
