/* A lane: messages in order, as a circular list that is held by its tail. One word per lane, and
 * both ends are one step away. NULL is empty. */
#ifndef JZI_LANE_H
#define JZI_LANE_H

#include "actor/node.h"

static inline void jzi_lane_push(jzi_node **tail, jzi_node *node)
{
    jzi_node *last = *tail;
    if (last == NULL) {
        node->next = node;
    } else {
        node->next = last->next;
        last->next = node;
    }
    *tail = node;
}

/* Whether a node arrived before another one, at the same actor. */
static inline bool jzi_node_is_older(const jzi_node *node, const jzi_node *other)
{
    return (int32_t)(node->stamp - other->stamp) < 0;
}

/* Puts a node where it belongs by its arrival. Looks from the front, after a look at the last. */
static inline void jzi_lane_insert(jzi_node **tail, jzi_node *node)
{
    jzi_node *before = *tail;
    if (before == NULL || jzi_node_is_older(before, node)) {
        jzi_lane_push(tail, node);
        return;
    }
    while (jzi_node_is_older(before->next, node)) {
        before = before->next;
    }
    node->next = before->next;
    before->next = node;
}

/* All of another lane, which is not empty, goes in front. */
static inline void jzi_lane_put_before(jzi_node **tail, jzi_node *other)
{
    jzi_node *last = *tail;
    if (last == NULL) {
        *tail = other;
        return;
    }
    jzi_node *first = other->next;
    other->next = last->next;
    last->next = first;
}

static inline jzi_node *jzi_lane_first(jzi_node *tail)
{
    return tail == NULL ? NULL : tail->next;
}

/* The lane must not be empty. */
static inline jzi_node *jzi_lane_pop(jzi_node **tail)
{
    jzi_node *last = *tail;
    jzi_node *first = last->next;
    if (first == last) {
        *tail = NULL;
    } else {
        last->next = first->next;
    }
    return first;
}

static inline uint32_t jzi_lane_count(const jzi_node *tail)
{
    uint32_t count = 0;
    if (tail != NULL) {
        const jzi_node *node = tail;
        do {
            count++;
            node = node->next;
        } while (node != tail);
    }
    return count;
}

#endif
