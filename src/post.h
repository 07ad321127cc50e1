/* The post office: what a loop shares with the threads that send to it. It is counted and outlives
 * the loop, so a send that races with the loop's end finds a closed door and not freed memory.
 *
 * `inbound` is a list that many push to with a compare-and-swap and the loop takes whole with an
 * exchange: there is no gap in which a pushed message is invisible, and nothing to be fooled by
 * reused addresses because nobody pops a single one. Taken, it is newest first. `returned` works
 * the same way in the other direction: emptied nodes go back to the senders in chains.
 *
 * `asleep` is set by the loop before it looks at `inbound` for the last time; a sender looks at it
 * after its push. Both sides are sequentially consistent, so at least one of them sees the other:
 * no message waits for a loop that sleeps (R25). */
#ifndef JZI_POST_H
#define JZI_POST_H

#include <jzx/env.h>

#include "actor_table.h"
#include "observe.h"

struct jzx_sender;

#define JZI_INBOUND_CLOSED ((jzi_node *)(uintptr_t)1)

typedef struct jzi_post {
    jzx_allocator alloc;
    const jzx_env *env;
    int wake_fd;
    _Atomic uint32_t refs; /* the loop and every sender */
    jzi_actor_table table;

    /* Padding keeps what senders write off the lines that the loop works with. Not _Alignas: an
     * allocator promises 16 bytes. */
    unsigned char pad0[64];
    _Atomic(jzi_node *) inbound;
    _Atomic uint32_t asleep;
    _Atomic uint32_t stop; /* jzx_loop_request_stop() */

    unsigned char pad1[64];
    _Atomic(jzi_node *) returned[2]; /* plain, wide */
    _Atomic(jzi_node_page *) pages;  /* of nodes that senders made */
    _Atomic uint64_t sent;           /* by senders that are gone */
    _Atomic uint64_t refused[JZX_REASON_SLOTS];
    _Atomic uint64_t wakes;
    _Atomic uint32_t registry_lock; /* guards `senders`: open, close and counters only */
    struct jzx_sender *senders;
} jzi_post;

/* Makes one with one owner. Errors: NO_MEMORY, and what wake_open reports. */
jzx_err jzi_post_create(const jzx_allocator *alloc, const jzx_env *env, uint32_t max_actors,
                        jzi_post **out_post);
void jzi_post_retain(jzi_post *post);
/* The last owner frees it. Thread: any. */
void jzi_post_release(jzi_post *post);

/* Hands a node to the loop. False: the loop is gone and the node is still the caller's.
 * Thread: any. */
bool jzi_post_push(jzi_post *post, jzi_node *node);
/* Ends the loop's sleep if it sleeps. Thread: any. */
void jzi_post_wake(jzi_post *post);

/* All that came, oldest first. Thread: loop. */
jzi_node *jzi_post_take(jzi_post *post);
/* The same, and from now on every push is refused. Thread: loop. */
jzi_node *jzi_post_close(jzi_post *post);

static inline bool jzi_post_has_mail(const jzi_post *post)
{
    return atomic_load_explicit(&post->inbound, memory_order_relaxed) != NULL;
}

/* Puts a chain of emptied nodes where senders find it. Thread: loop. */
void jzi_post_return(jzi_post *post, bool wide, jzi_node *first, jzi_node *last);

#endif
