/* Shared by the sources of sender. */
#ifndef JZI_SENDER_STEPS_H
#define JZI_SENDER_STEPS_H

#include "sched/sender.h"

/* A flag besides JZX_SENDER_*: the sender is a worker's, for its own pool; the worker looks at the
 * inbound list itself when its turn is over. */
#define JZI_SENDER_INSIDE 0x100u
enum { JZI_OUTLETS = 256 };

struct jzx_sender {
    jzi_inbox *inbox;
    _Atomic uint32_t refs;
    /* Shared senders: one thread at a time uses the cache, others go without. */
    _Atomic uint32_t busy;
    uint32_t flags;
    uint32_t hand;         /* JZI_HAND_*, what its messages are marked with */
    _Atomic uint64_t sent; /* counted when a cached node is taken, by the thread with the cache */
    _Atomic uint64_t sent_else; /* the rest: nodes of their own, less sends that were refused */
    jzi_node *cache[2];         /* plain, wide */
    jzx_sender *next;           /* in inbox->senders */
    jzx_sender **pprev;
    jzi_directory *directory;                  /* of a system's sender; else NULL */
    _Atomic(jzx_sender *) others[JZI_OUTLETS]; /* its ways to other dispatchers */
};
#define SENDER_BYTES offsetof(jzx_sender, others) /* of one that needs none */

/* What is said of an inbox that takes nothing in: of a dispatcher that went before its system, only
 * the actor is gone. */
static inline jzx_err jzi_sender_closed(const jzi_inbox *inbox)
{
    return atomic_load_explicit(&inbox->ends_alone, memory_order_relaxed) ? JZX_ERR_NO_SUCH_ACTOR
                                                                          : JZX_ERR_LOOP_CLOSED;
}

/* A sender for a thread or a worker. With a directory: to every dispatcher of its system. */
jzx_err jzi_sender_make(jzi_inbox *inbox, jzi_directory *directory, uint32_t flags,
                        jzx_sender **out_sender);

#endif
