/* Slots of timers (R26). They stay where they are once they were made (base/slots.h), so an id can
 * be checked against its slot at any time: in a system by any thread, and also when the dispatcher
 * is gone and another one took its index.
 *
 *   word = generation:32 | slot:24 | far:1, periodic:1, fixed delay:1, state:3
 *
 * The word is all of a timer that another thread looks at without owning it. In a system two
 * threads may want to change the word at the same time; then it goes from state to state by
 * compare-and-swap, and the thread that wins does what the new state asks for:
 *
 *   COMING     armed by another dispatcher; the node is on its way to the owner's
 *   ARMED      in the wheel, or about to be; the node is idle
 *   QUEUED     due: the node waits in the owner's lane
 *   HANDING    the behavior is looking at it
 *   CANCELLED  nothing is delivered any more. The timer is freed when the node is back:
 *              after COMING              by the node's arrival
 *              after QUEUED and HANDING  when the node is out of its lane or was handled
 *              after ARMED               at once by the own dispatcher's cancel; another
 *                                        dispatcher's cancel sends the node home, and its arrival
 *                                        frees the timer
 *
 * Checked by tests/models/timer.pml. */
#ifndef JZI_TIMER_TABLE_H
#define JZI_TIMER_TABLE_H

#include "actor/node.h"
#include "base/assert.h"
#include "base/slots.h"
#include "time/timer_wheel.h"

typedef enum jzi_timer_state {
    JZI_TIMER_FREE,
    JZI_TIMER_ARMED,
    JZI_TIMER_QUEUED,
    JZI_TIMER_HANDING,
    JZI_TIMER_CANCELLED,
    JZI_TIMER_COMING
} jzi_timer_state;

#define JZI_TIMER_STATE ((uint64_t)0x7)
#define JZI_TIMER_FIXED ((uint64_t)0x8) /* the next period begins when the message was handled */
#define JZI_TIMER_PERIODIC ((uint64_t)0x10)
#define JZI_TIMER_FAR ((uint64_t)0x20) /* a slot of the list for other dispatchers */

/* 128 bytes: what the wheel touches, then the message. */
typedef struct jzi_timer {
    jzi_wheel_entry entry;
    struct jzi_timer *next; /* in the owner's list; free: in the free list */
    struct jzi_timer **pprev;
    jzx_actor_id owner; /* 0: the owner ended, and took everything but the slot along */
    _Atomic uint64_t word;
    uint32_t period_ms;
    uint32_t missed;
    jzi_node node;
} jzi_timer;
_Static_assert(sizeof(jzi_timer) == 128, "a timer is two cache lines");

/* A slot that no timer had. By the dispatcher; with the lock if the slots are shared. NULL: no
 * memory, or there are too many. */
static inline jzi_timer *jzi_timer_slot_make(jzi_slots *slots, const jzx_allocator *alloc,
                                             uint64_t bits)
{
    uint32_t slot = 0;
    jzi_timer *timer = jzi_slots_make(slots, alloc, sizeof *timer, &slot);
    if (jzi_likely(timer != NULL)) {
        timer->entry.pprev = NULL;
        atomic_init(&timer->word, (uint64_t)slot << 8 | bits);
        jzi_slots_publish(slots, slot);
    }
    return timer;
}
/* A slot of the other dispatchers' list, or a new one: for the dispatcher, when its own list is
 * empty. */
jzi_timer *jzi_timer_slot_take_shared(jzi_slots *slots, const jzx_allocator *alloc);
/* A slot for another dispatcher. Thread: any. */
jzi_timer *jzi_timer_slot_take_far(jzi_slots *slots, const jzx_allocator *alloc);
/* Gives one with JZI_TIMER_FAR back. Thread: any. */
void jzi_timer_slot_give_far(jzi_slots *slots, jzi_timer *timer);

/* A slot for the dispatcher. */
static inline jzi_timer *jzi_timer_slot_take(jzi_slots *slots, const jzx_allocator *alloc)
{
    jzi_timer *timer = slots->free_list;
    if (jzi_likely(timer != NULL)) {
        slots->free_list = timer->next;
        return timer;
    }
    return jzi_unlikely(slots->shared) ? jzi_timer_slot_take_shared(slots, alloc)
                                       : jzi_timer_slot_make(slots, alloc, 0);
}

/* NULL: there is no such slot. */
static inline jzi_timer *jzi_timer_slot_find(const jzi_slots *slots, uint32_t slot)
{
    return jzi_slots_find(slots, slot, sizeof(jzi_timer));
}

static inline uint64_t jzi_timer_word(const jzi_timer *timer)
{
    return atomic_load_explicit(&timer->word, memory_order_acquire);
}
static inline jzi_timer_state jzi_timer_state_of(uint64_t word)
{
    return (jzi_timer_state)(word & JZI_TIMER_STATE);
}
/* By the thread that has the timer to itself. */
static inline void jzi_timer_set_word(jzi_timer *timer, uint64_t word)
{
    atomic_store_explicit(&timer->word, word, memory_order_release);
}
static inline void jzi_timer_set_state(jzi_timer *timer, jzi_timer_state state)
{
    jzi_timer_set_word(timer, (jzi_timer_word(timer) & ~JZI_TIMER_STATE) | (uint64_t)state);
}
/* From a state that was seen in `word` to another; false: another thread was first. */
static inline bool jzi_timer_swap(jzi_timer *timer, bool shared, uint64_t word, jzi_timer_state to)
{
    uint64_t next = (word & ~JZI_TIMER_STATE) | (uint64_t)to;
    if (jzi_likely(!shared)) {
        jzi_timer_set_word(timer, next);
        return true;
    }
    /* acq_rel: with the state goes the right to the node. */
    return atomic_compare_exchange_strong_explicit(&timer->word, &word, next, memory_order_acq_rel,
                                                   memory_order_relaxed);
}
/* False: the timer is not in that state, or no longer. */
static inline bool jzi_timer_move(jzi_timer *timer, bool shared, jzi_timer_state from,
                                  jzi_timer_state to)
{
    uint64_t word = jzi_timer_word(timer);
    return jzi_timer_state_of(word) == from && jzi_timer_swap(timer, shared, word, to);
}

/* The word of a free slot's next timer. */
static inline uint64_t jzi_timer_next_word(const jzi_timer *timer, uint64_t bits)
{
    uint64_t kept =
        jzi_timer_word(timer) & ~(JZI_TIMER_STATE | JZI_TIMER_FIXED | JZI_TIMER_PERIODIC);
    return (kept + ((uint64_t)1 << 32)) | bits;
}

/* The id has the dispatcher where an actor's has it: generation:32 | dispatcher:8 | slot:24. */
static inline jzx_timer_id jzi_timer_id(const jzi_timer *timer)
{
    uint64_t word = jzi_timer_word(timer);
    return (word >> 32 << 32) | (timer->owner & 0xFF000000u) | (word >> 8 & 0xFFFFFFu);
}

/* A cancel by an id of this generation: claims the timer if it still can be, and says in *out_was
 * what it was doing. Errors: ALREADY, NO_SUCH_TIMER. */
static inline jzx_err jzi_timer_claim_cancel(jzi_timer *timer, bool shared, uint32_t generation,
                                             jzi_timer_state *out_was)
{
    for (;;) {
        uint64_t word = jzi_timer_word(timer);
        uint32_t current = (uint32_t)(word >> 32);
        if (jzi_unlikely(generation != current || generation == 0)) {
            return generation == 0 || generation > current ? JZX_ERR_NO_SUCH_TIMER
                                                           : JZX_ERR_ALREADY;
        }
        uint32_t live = 1u << JZI_TIMER_COMING | 1u << JZI_TIMER_ARMED | 1u << JZI_TIMER_QUEUED;
        *out_was = jzi_timer_state_of(word);
        if ((live >> *out_was & 1u) == 0 &&
            (*out_was != JZI_TIMER_HANDING || (word & JZI_TIMER_PERIODIC) == 0)) {
            return JZX_ERR_ALREADY;
        }
        if (jzi_timer_swap(timer, shared, word, JZI_TIMER_CANCELLED)) {
            return JZX_OK;
        }
    }
}

#endif
