#include "sched/stash.h"

#include "base/alloc.h"

#include <string.h>

jzi_node *jzi_hand_move(jzi_worker *worker)
{
    const jzi_node *from = worker->in_hand;
    bool wide = (jzi_msg_flags(&from->msg) & JZI_MSG_WIDE) != 0;
    jzi_node_pool *pool = wide ? &worker->store->wide : &worker->store->plain;
    if (pool->free_nodes == NULL && !jzi_node_pool_grow(pool, &worker->alloc)) {
        return NULL;
    }
    jzi_node *node = jzi_node_pool_take(pool);
    node->msg = from->msg;
    /* JZI_HANDS: the message may have been put back to be redelivered; that is over. */
    jzi_msg_clear(&node->msg, JZI_MSG_FOREIGN | JZI_MSG_SOLO | JZI_HANDS);
    jzi_msg_settle(&node->msg);
    node->stamp = from->stamp;
    node->ops = from->ops;
    if ((jzi_msg_flags(&node->msg) & (JZI_HAND_TRIED | JZI_MSG_ASK)) == JZI_HAND_TRIED &&
        jzi_worker_correlation(worker) != 0) {
        node->ops = worker->request_tries; /* a request that was answered or kept */
    }
    if (wide) { /* what the behavior looks at stays where it is */
        node->msg.data = ((jzi_wide_node *)(void *)node)->bytes;
        memcpy(node->msg.data, from->msg.data, from->msg.len);
    }
    jzi_hand_empty(worker);
    return node;
}

void jzi_hand_empty(jzi_worker *worker)
{
    jzx_message *msg = &worker->in_hand->msg;
    uint32_t moved = JZI_MSG_DROP | JZI_MSG_BLOCK | JZI_MSG_ASK;
    jzi_msg_clear(msg, moved);
    jzi_msg_add(msg, JZI_MSG_TAKEN | JZI_HAND_MOVED);
}

/* In front of everything in the lane but what came back before, still waits there and is older. */
static void put_back(jzi_node **lane, jzi_node *back)
{
    jzi_node *front = NULL;
    while (back != NULL) {
        bool waits =
            *lane != NULL && jzi_node_is_older(jzi_lane_first(*lane), jzi_lane_first(back));
        jzi_lane_push(&front, jzi_lane_pop(waits ? lane : &back));
    }
    jzi_lane_put_before(lane, front);
}

/* The whole cap is as much as the mailbox takes, which may be some more than that. */
static uint32_t limit_of(const jzi_actor *actor, const jzi_pattern_state *patterns)
{
    uint32_t cap = jzi_actor_cap(actor);
    if (patterns->stash_cap == cap) {
        return UINT32_MAX;
    }
    return patterns->stash_cap != 0 ? patterns->stash_cap : cap / 2 + (cap & 1u);
}

jzx_err jzi_stash_put(jzi_worker *worker, jzi_actor *actor)
{
    jzi_pattern_state *patterns = jzi_worker_pattern_state(worker, actor);
    if (patterns == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    if (patterns->stash_count >= limit_of(actor, patterns)) {
        return JZX_ERR_STASH_FULL;
    }
    /* A sender may have taken the slot of the message in hand by now. Then there is one message
     * more than the cap for a while, and never two: nothing else gets in before one is handled. */
    jzi_node *node = jzi_hand_move(worker);
    if (node == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    /* Urgent messages overtake others, and are set aside in the order of that; they go back in the
     * order of their arrival. */
    jzi_lane_insert(&patterns->stash, node);
    patterns->stash_count++;
    jzi_actor_set_counts(actor, jzi_actor_counts(actor) + JZI_COUNTS_ACCEPTED + JZI_COUNTS_USED);
    jzi_count_add(&worker->counters.accepted, 1);
    return JZX_OK;
}

void jzi_stash_return(jzi_worker *worker, jzi_actor *actor, uint32_t count)
{
    jzi_pattern_state *patterns = actor->cold->patterns;
    jzi_node *user = NULL;
    jzi_node *urgent = NULL;
    if (worker->current == actor) {
        jzi_worker_reattach(worker);
    }
    for (; count > 0; count--) {
        jzi_node *node = jzi_lane_pop(&patterns->stash);
        jzi_msg_add(&node->msg, JZI_HAND_UNSTASHED);
        jzi_lane_push((jzi_msg_flags(&node->msg) & JZX_MSG_URGENT) != 0 ? &urgent : &user, node);
        patterns->stash_count--;
    }
    if (urgent != NULL) {
        actor->flags |= JZI_ACTOR_MIXED;
        put_back(&actor->urgent, urgent);
    }
    if (user != NULL) {
        put_back(&actor->user, user);
    }
}

/* What waits in a lane came to the next life by itself. */
static void forget_marks(jzi_node *tail)
{
    jzi_node *node = tail;
    while (node != NULL) {
        jzi_msg_clear(&node->msg, JZI_HAND_UNSTASHED);
        node = node->next == tail ? NULL : node->next;
    }
}

void jzi_stash_leave(jzi_worker *worker, jzi_actor *actor, bool restarts)
{
    (void)restarts;
    jzi_stash_return(worker, actor, actor->cold->patterns->stash_count);
    forget_marks(actor->user);
    forget_marks(actor->urgent);
}
