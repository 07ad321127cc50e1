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

/* What a message is, in one word: the low byte is jzx_message.flags, which the program sees; the
 * rest is jzx_message.reserved, which is ours. A message with none of JZI_MSG_SPECIAL needs no work
 * after its behavior returned, which is one test on the hot path. */
#define JZI_MSG_ASK 0x00100u      /* an asker waits for the answer: ops is the index of the ask */
#define JZI_MSG_ZOMBIE 0x00200u   /* not a message: an actor that ended, see lifecycle_far.c */
#define JZI_MSG_ERRAND 0x00400u   /* not a message: see jzi_errand in worker.h */
#define JZI_MSG_SOLO 0x00800u     /* the node is an allocation of its own */
#define JZI_MSG_FOREIGN 0x01000u  /* the node is a sender's and holds a reservation on the gate */
#define JZI_MSG_WIDE 0x02000u     /* the node is a jzi_wide_node */
#define JZI_MSG_BLOCK 0x04000u    /* data is an allocated copy of len bytes */
#define JZI_MSG_EVENT 0x08000u    /* the node belongs to an event */
#define JZI_MSG_DEADLINE 0x10000u /* deadline_ns counts */
#define JZI_MSG_DROP 0x20000u     /* drop is set and data was not taken */
#define JZI_MSG_DOOMED 0x40000u   /* from another thread, over the cap: dead-letter at intake */
#define JZI_MSG_TAKEN 0x80000u    /* data was moved to the actor */
#define JZI_MSG_SPECIAL 0xFF900u
/* In a lane or in hand. */
#define JZI_HAND_AGAIN 0x100000u     /* failed, and waits to be redelivered */
#define JZI_HAND_KEPT 0x200000u      /* in hand: its ask was kept */
#define JZI_HAND_UNSTASHED 0x400000u /* came back from the stash */
/* On the inbound list, where none of those three can be. */
#define JZI_HAND_INSIDE 0x100000u  /* from the same pool */
#define JZI_HAND_WATCHED 0x200000u /* an observer wants to see it arrive, */
#define JZI_HAND_TIMED 0x400000u   /* and deadline_ns is when it was sent */
#define JZI_HANDS 0x700000u
#define JZI_MSG_TEXT_LOST 0x800000u /* of a zombie: there was no memory for the reason's text */
#define JZI_HAND_TRIED 0x800000u    /* failed before: how often is in ops, of an ask in its slot */
#define JZI_HAND_MOVED 0x40000u /* in hand, where none is doomed: stashed, passed on, discarded */

static inline uint32_t jzi_msg_flags(const jzx_message *msg)
{
    return msg->flags | (uint32_t)msg->reserved << 8;
}
/* The private flags alone: half the loads, for the hot path. */
static inline uint32_t jzi_msg_private(const jzx_message *msg)
{
    return (uint32_t)msg->reserved << 8;
}
/* None of JZI_MSG_SPECIAL; spelled out, because it is the test on the hot path. */
static inline bool jzi_msg_is_plain(const jzx_message *msg)
{
    return (msg->reserved & (JZI_MSG_SPECIAL >> 8)) == 0;
}
static inline void jzi_msg_set(jzx_message *msg, uint32_t flags)
{
    msg->flags = (uint8_t)flags;
    msg->reserved = (uint16_t)(flags >> 8);
}
/* These two for private flags only. */
static inline void jzi_msg_add(jzx_message *msg, uint32_t flags)
{
    msg->reserved |= (uint16_t)(flags >> 8);
}
static inline void jzi_msg_clear(jzx_message *msg, uint32_t flags)
{
    msg->reserved &= (uint16_t) ~(flags >> 8);
}
/* A message in hand may have lost its duty to answer, and with it what made it special, but not the
 * deadline that came with it. Before it goes into a lane again: see I3. */
static inline void jzi_msg_settle(jzx_message *msg)
{
    if (jzi_msg_is_plain(msg)) {
        msg->drop = NULL;
        msg->deadline_ns = 0;
    }
}
/* The same as jzi_msg_set() among the initializers of a message. */
#define JZI_MSG_FLAGS(flags_) .flags = (uint8_t)(flags_), .reserved = (uint16_t)((flags_) >> 8)

/* Whether a notice's data is a jzx_signal. */
static inline bool jzi_tag_is_signal(uint32_t tag)
{
    return (tag >= JZX_TAG_TERMINATED && tag <= JZX_TAG_RESTARTED) || tag == JZX_TAG_CHILD_STARTED;
}

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
 *   I3  A free plain node has neither drop nor deadline, so that plain sends need not clear them;
 *       nor has a message in a lane without JZI_MSG_SPECIAL, whose node goes back as it is.
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
