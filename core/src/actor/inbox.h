/* The inbox: what a loop shares with the threads that send to it. It is counted and outlives
 * the loop, so a send that races with the loop's end finds a closed door and not freed memory.
 *
 * `inbound` is a list that many push to with a compare-and-swap and the loop takes whole with an
 * exchange: there is no gap in which a pushed message is invisible, and nothing to be fooled by
 * reused addresses because no thread pops a single node. Taken, the list is newest first.
 * `returned` works the same way in the other direction: emptied nodes go back to the senders in
 * chains.
 *
 * `asleep` is set by the loop before it looks at `inbound` for the last time; a sender looks at it
 * after its push. Both sides are sequentially consistent, so at least one of them sees the other:
 * no message waits for a loop that sleeps (R25). */
#ifndef JZI_INBOX_H
#define JZI_INBOX_H

#include <jzx/env.h>

#include "actor/actor_table.h"
#include "actor/observe.h"
#include "base/slots.h"

struct jzx_sender;

enum { JZI_FULL_SLOTS = 16 };
/* The event operations of full_node: JZI_EVENT_FULL in dispatcher.h. */
#define JZI_INBOX_FULL 11u
#define JZI_LIST_END 0xFFFFFFu
#define JZI_INBOUND_CLOSED ((jzi_node *)(uintptr_t)1)
/* A reference that a thread of ours lets go of, counted once more in the upper half: after fork(2)
 * such threads are not there, and it has to be known how many never will. One counter, so that a
 * fork cannot come between the two. */
#define JZI_INBOX_HELPER (UINT64_C(1) << 32 | 1)

typedef struct jzi_inbox {
    jzx_allocator alloc;
    const jzx_env *env;
    int wake_fd;          /* -1: no loop takes in here */
    uint32_t base;        /* the dispatcher's part of its actors' indexes */
    uint32_t default_cap; /* of its actors, for spawns from elsewhere */
    uint32_t default_max_msgs;
    _Atomic bool ends_alone; /* of a dispatcher that goes before its system does */
    _Atomic uint64_t refs; /* the loop and every sender; JZI_INBOX_HELPER: every job on a thread */
    jzi_actor_table table;
    /* Of its actors: an ended one may be kept by a sender longer than the loop. */
    jzi_actor_types types;
    jzi_slots timers; /* of both, slots: a thread may look at one after the loop */
    jzi_slots asks;

    /* Padding keeps what senders write off the lines that the loop works with. Not _Alignas: an
     * allocator promises 16 bytes. */
    unsigned char pad0[64];
    _Atomic(jzi_node *) inbound;
    _Atomic(jzi_node *) taken; /* the loop's: of what it took from there, the rest; oldest first */
    jzi_node *taken_last;
    _Atomic uint32_t commanded; /* slots of actors with orders, by jzi_door.link */
    _Atomic uint32_t nudged;
    _Atomic uint32_t asleep;
    _Atomic uint32_t wakers;  /* threads in jzi_inbox_wake() that may use wake_fd */
    _Atomic uint32_t stop;    /* jzx_loop_request_stop() */
    _Atomic uint32_t watched; /* workers that want to see what is sent, and when */
    /* Refusals of full mailboxes, for the observer, which is called on the dispatcher's own thread:
     * the actors that were full, one of each remainder at a time, and the event that says so. */
    _Atomic uint32_t tells_full; /* the observer wants to know */
    _Atomic uint32_t full_told;  /* the event is under way */
    _Atomic jzx_actor_id full[JZI_FULL_SLOTS];
    jzi_node full_node;

    unsigned char pad1[64];
    _Atomic(jzi_node *) returned[2]; /* plain, wide */
    _Atomic(jzi_node_page *) pages;  /* of nodes that senders made */
    _Atomic uint32_t page_count;
    _Atomic uint64_t sent; /* by senders that are gone */
    _Atomic uint64_t refused[JZX_REASON_SLOTS];
    _Atomic uint64_t wakes;
    _Atomic uint32_t registry_lock; /* guards what follows: open, close, counters and waits only */
    struct jzx_sender *senders;
    struct jzi_room_wait *waits; /* threads that wait for room; see room_wait.c */
} jzi_inbox;

/* Held for a few stores; sends never take it. */
static inline void jzi_inbox_lock_registry(jzi_inbox *inbox)
{
    while (atomic_exchange_explicit(&inbox->registry_lock, 1, memory_order_acquire) != 0) {
    }
}
static inline void jzi_inbox_unlock_registry(jzi_inbox *inbox)
{
    atomic_store_explicit(&inbox->registry_lock, 0, memory_order_release);
}

/* The inboxes of a system by the index of their dispatchers. They stay, and keep the slots
 * that they ever gave out, until the system and all senders and buses of it are gone (R2).
 * Counted. */
typedef struct jzi_directory {
    _Atomic uint32_t refs;
    jzx_allocator alloc;
    _Atomic(jzi_inbox *) inboxes[256];
    _Atomic uint32_t unborn; /* actors on their way to a dispatcher */
} jzi_directory;
static inline void jzi_directory_unborn(jzi_directory *directory, int change)
{
    atomic_fetch_add_explicit(&directory->unborn, (uint32_t)change, memory_order_seq_cst);
}
jzi_directory *jzi_directory_create(const jzx_allocator *alloc);
void jzi_directory_retain(jzi_directory *directory);
void jzi_directory_release(jzi_directory *directory);
/* NULL: there is no such dispatcher. Thread: any. */
static inline jzi_inbox *jzi_directory_inbox(const jzi_directory *directory, uint32_t dispatcher)
{
    /* acquire: pairs with the release that published it. */
    return directory == NULL ? NULL
                             : atomic_load_explicit(&directory->inboxes[dispatcher & 0xFFu],
                                                    memory_order_acquire);
}

/* What can be seen of an actor of another dispatcher: its gate. *out_actor is set if the id
 * resolves; of its other fields only atomic ones may be read. Thread: any. Errors: NO_SUCH_ACTOR,
 * STOPPING. */
jzx_err jzi_directory_lookup(const jzi_directory *directory, jzx_actor_id id, jzi_inbox **out_inbox,
                             const jzi_actor **out_actor);
/* The last states of an actor of this inbox, as of a moment ago; 0: the actor is gone. Thread:
 * any. */
uint32_t jzi_inbox_history(const jzi_inbox *inbox, jzx_actor_id id);
/* Leaves an order (JZI_GATE_*) at an actor's door. Thread: any. Errors: NO_SUCH_ACTOR. */
jzx_err jzi_inbox_order(jzi_inbox *inbox, jzx_actor_id id, uint64_t order);

/* Puts an actor with orders on the list of its dispatcher, and wakes that. Thread: any. */
void jzi_inbox_command(jzi_inbox *inbox, jzi_actor *actor);
/* The slot of the first actor with orders, JZI_NO_SLOT: none. The list is the caller's then; each
 * one's `link` leads to the next, 0xFFFFFF ends it. Thread: loop. */
uint32_t jzi_inbox_take_commands(jzi_inbox *inbox);

/* Makes one with one owner. Errors: NO_MEMORY, and what wake_open reports. */
jzx_err jzi_inbox_create(const jzx_allocator *alloc, const jzx_env *env, uint32_t max_actors,
                         jzi_inbox **out_inbox);
void jzi_inbox_retain(jzi_inbox *inbox);
/* The last owner frees it. Thread: any. */
void jzi_inbox_release(jzi_inbox *inbox);
/* The same two for what a thread of ours lets go of. */
void jzi_inbox_retain_helper(jzi_inbox *inbox);
void jzi_inbox_release_helper(jzi_inbox *inbox);
/* After fork(2), in the child: lets go of all that such threads held. The caller is an owner. */
void jzi_inbox_forget_helpers(jzi_inbox *inbox);

/* Hands a node to the loop. False: the loop is gone and the node is still the caller's.
 * Thread: any. */
bool jzi_inbox_push(jzi_inbox *inbox, jzi_node *node);
/* Ends the loop's sleep if it sleeps. Thread: any. */
void jzi_inbox_wake(jzi_inbox *inbox);

/* After jzi_inbox_close(): its descriptor goes back, for the inbox itself may stay as long as its
 * system. Waits for threads that are about to use the descriptor, unless they were left in the
 * parent. */
void jzi_inbox_shut(jzi_inbox *inbox, bool forked);
/* After jzi_inbox_shut(): a loop takes in again. Errors: what wake_open reports. */
jzx_err jzi_inbox_reopen(jzi_inbox *inbox);

/* Has the loop's next or current sleep end without mail. Thread: any. */
void jzi_inbox_nudge(jzi_inbox *inbox);

/* All that came, oldest first. Thread: loop. */
jzi_node *jzi_inbox_take(jzi_inbox *inbox);
/* Gives the rest of that back: it comes first in the next one. Thread: loop. */
void jzi_inbox_keep(jzi_inbox *inbox, jzi_node *rest);
/* The same, and from now on every push is refused. Thread: loop. */
jzi_node *jzi_inbox_close(jzi_inbox *inbox);
/* Every push is refused, and what came is left where it is: the loop's thread is stuck, or was left
 * in the parent, and what it keeps is not to be touched. Thread: any. */
void jzi_inbox_refuse(jzi_inbox *inbox);

static inline bool jzi_inbox_has_mail(const jzi_inbox *inbox)
{
    return atomic_load_explicit(&inbox->inbound, memory_order_relaxed) != NULL ||
           atomic_load_explicit(&inbox->taken, memory_order_relaxed) != NULL ||
           atomic_load_explicit(&inbox->commanded, memory_order_relaxed) != JZI_LIST_END;
}
/* The same for the last look before a sleep: seq_cst, see above. */
static inline bool jzi_inbox_has_mail_now(const jzi_inbox *inbox)
{
    return atomic_load_explicit(&inbox->inbound, memory_order_seq_cst) != NULL ||
           atomic_load_explicit(&inbox->taken, memory_order_relaxed) != NULL ||
           atomic_load_explicit(&inbox->commanded, memory_order_seq_cst) != JZI_LIST_END;
}

/* A send to this actor was refused because it is full. Needs no memory. Thread: any. */
void jzi_inbox_say_full(jzi_inbox *inbox, jzx_actor_id id);

/* Puts a chain of emptied nodes where senders find it. Thread: loop. */
void jzi_inbox_return(jzi_inbox *inbox, bool wide, jzi_node *first, jzi_node *last);

#endif
