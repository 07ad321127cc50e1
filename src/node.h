/* A node carries one message. Nodes come from their worker's pool, wait in a lane, and go back: no
 * allocation per message, and an idle actor holds none (R10).
 *
 * Two sizes: plain nodes of 64 bytes, and wide ones of 128 whose second half holds a copied
 * payload. Events bring a node of their own, embedded in what caused them, so they cannot be
 * refused (R8). */
#ifndef JZI_NODE_H
#define JZI_NODE_H

#include <jzx/types.h>

#include <stdbool.h>

typedef struct jzi_node {
    struct jzi_node *next;
    jzx_message msg;
    uint32_t stamp; /* arrival number at its actor; on the way from another thread: the slot */
    uint32_t ops;   /* events: index into the event operations; asks: which */
} jzi_node;
_Static_assert(sizeof(jzi_node) == 64, "a node is one cache line");

#define JZI_WIDE_BYTES 64u
typedef struct jzi_wide_node {
    jzi_node node;
    unsigned char bytes[JZI_WIDE_BYTES];
} jzi_wide_node;

/* Private bits of jzx_message.flags. A message with none of them needs no work after its behavior
 * returned, which is one test on the hot path. */
#define JZI_MSG_ASK 0x0010u      /* somebody waits for the answer: ops is the index of the ask */
#define JZI_MSG_CORPSE 0x0020u   /* not a message: an actor that ended, see lifecycle_far.c */
#define JZI_MSG_ERRAND 0x0040u   /* not a message: see jzi_errand in worker.h */
#define JZI_MSG_SOLO 0x0080u     /* the node is an allocation of its own */
#define JZI_MSG_FOREIGN 0x0100u  /* the node is a sender's and holds a reservation on the gate */
#define JZI_MSG_WIDE 0x0200u     /* the node is a jzi_wide_node */
#define JZI_MSG_BLOCK 0x0400u    /* data is an allocated copy of len bytes */
#define JZI_MSG_EVENT 0x0800u    /* the node belongs to an event */
#define JZI_MSG_DEADLINE 0x1000u /* deadline_ns counts */
#define JZI_MSG_DROP 0x2000u     /* drop is set and data was not taken */
#define JZI_MSG_DOOMED 0x4000u   /* from another thread, over the cap: dead-letter at intake */
#define JZI_MSG_TAKEN 0x8000u    /* data was moved to the actor */
#define JZI_MSG_SPECIAL 0xFF90u
/* Bits of jzx_message.reserved, which the program does not look at. */
#define JZI_HAND_AGAIN 0x1u     /* failed, and waits to be redelivered */
#define JZI_HAND_INSIDE 0x2u    /* on the inbound list: from the same pool */
#define JZI_HAND_KEPT 0x4u      /* in hand: its ask was kept */
#define JZI_HAND_UNSTASHED 0x8u /* came back from the stash */
#define JZI_HAND_WATCHED 0x10u  /* on the inbound list: somebody wants to see it arrive, */
#define JZI_HAND_TIMED 0x20u    /* and deadline_ns is when it was sent */

#ifndef JZI_STRESS
#define JZI_STRESS 0
#endif

/* Shrunk by the stress build so that growth and trimming happen all the time. */
#if JZI_STRESS
#define JZI_PAGE_NODES 8u
#define JZI_POOL_KEEP 2u
#else
#define JZI_PAGE_NODES 1024u /* 64 KiB of plain nodes */
#define JZI_POOL_KEEP 16u    /* pages kept for the next burst */
#endif

typedef struct jzi_node_page {
    struct jzi_node_page *next;
    size_t bytes;
    uint32_t count;
    uint32_t node_bytes;
} jzi_node_page;

/* Invariants:
 *   I1  Every node of `pages` is on `free_nodes`, in a lane, or in a behavior's hands.
 *   I2  free_nodes holds nodes of one size only.
 *   I3  A free plain node has neither drop nor deadline, so that plain sends need not clear them.
 */
typedef struct jzi_node_pool {
    jzi_node *free_nodes;
    jzi_node_page *pages;
    uint32_t page_count;
    uint32_t node_bytes;
} jzi_node_pool;

static inline void jzi_node_pool_init(jzi_node_pool *pool, uint32_t node_bytes)
{
    *pool = (jzi_node_pool){.node_bytes = node_bytes};
}
void jzi_node_pool_deinit(jzi_node_pool *pool, const jzx_allocator *alloc);

/* Adds a page; false when there is no memory. */
bool jzi_node_pool_grow(jzi_node_pool *pool, const jzx_allocator *alloc);

/* Gives pages back down to JZI_POOL_KEEP. Only while every node is free. */
void jzi_node_pool_trim(jzi_node_pool *pool, const jzx_allocator *alloc);

/* How many nodes are free, by walking. */
uint64_t jzi_node_pool_count_free(const jzi_node_pool *pool);
uint64_t jzi_node_pool_count_all(const jzi_node_pool *pool);
/* Whether I3 holds, by walking. */
bool jzi_node_pool_is_clean(const jzi_node_pool *pool);

/* NULL when the pool is empty: grow it. */
static inline jzi_node *jzi_node_pool_take(jzi_node_pool *pool)
{
    jzi_node *node = pool->free_nodes;
    if (node != NULL) {
        pool->free_nodes = node->next;
    }
    return node;
}

static inline void jzi_node_pool_give(jzi_node_pool *pool, jzi_node *node)
{
    node->next = pool->free_nodes;
    pool->free_nodes = node;
}

#endif
