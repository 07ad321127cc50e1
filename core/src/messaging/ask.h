/* Asks: requests that are answered exactly once.
 *
 * An ask is a slot that two sides share. The asker's side waits for the outcome; the other side has
 * the duty to answer, which travels with the request's message (JZI_MSG_ASK), and can be kept by an
 * actor. The thread that decides the outcome first, by setting DECIDED, delivers it: the replier's,
 * the one that ends the request without a reply, or that of the asker's deadline. The answer's node
 * is part of the slot, so the answer needs no memory (R9). A side that is through clears its bit;
 * the last one frees the slot.
 *
 *   word = generation:32 | slot:24 | DUTY, ASKER, DECIDED, THREAD
 *
 * In a system, and for asks of plain threads, the bits change by atomic operations; on a loop of
 * its own by plain ones (R33). All else of a slot belongs to one side: the node to the thread that
 * decided, until the answer is delivered; the lists to the asker's and the holder's dispatchers. */
#ifndef JZI_ASK_H
#define JZI_ASK_H

#include <jzx/ask.h>

#include "base/list.h"
#include "sched/send.h"
#include "time/alarm.h"

#define JZI_ASK_DUTY ((uint64_t)0x1)    /* the answer is still owed */
#define JZI_ASK_ASKER ((uint64_t)0x2)   /* the asker's side is not through */
#define JZI_ASK_DECIDED ((uint64_t)0x4) /* the outcome is settled, and the asker waits no more */
#define JZI_ASK_THREAD ((uint64_t)0x8)  /* of a plain thread, which alone may look at the rest */

/* A thread that waits. */
typedef struct jzi_ask_waiter {
    pthread_mutex_t lock;
    pthread_cond_t told;
    bool done;
} jzi_ask_waiter;

typedef struct jzi_ask {
    jzi_errand errand; /* its node is the answer */
    _Atomic uint64_t word;
    _Atomic jzx_actor_id holder;    /* the actor that keeps the duty; 0: a message has it */
    _Atomic jzx_actor_id passed_to; /* the actor that the message was passed on to, */
    _Atomic uint32_t passed;        /* if this is the ask's generation */
    jzi_inbox *home;                /* of the asker's dispatcher */
    jzx_actor_id asker;             /* 0: the asker cancelled, or is gone */
    bool shared;                    /* several threads know the ask */
    bool posted;                    /* the answer is in the asker's lane */
    bool lapsed;                    /* the holder failed with the request in hand */
    uint32_t tries;                 /* with JZI_HAND_TRIED: how often the message failed before */
    jzi_ask_waiter *waiter;         /* of a plain thread, and gone when that thread is through */
    struct jzi_ask *next;           /* the asker's; free: the free list */
    struct jzi_ask **pprev;         /* NULL: the ask is on no list */
    struct jzi_ask *owed_next;      /* the holder's */
    struct jzi_ask **owed_pprev;
    jzi_alarm alarm;
    jzx_behavior_fn on_reply;
    uint64_t asked_ns;
    uint64_t deadline_ns; /* 0: none */
    jzx_reply reply;
    unsigned char bytes[JZI_WIDE_BYTES]; /* of a short reply */
} jzi_ask;

/* Installs the operations. */
void jzi_ask_init(jzi_worker *worker);

static inline uint64_t jzi_ask_word(const jzi_ask *ask)
{
    return atomic_load_explicit(&ask->word, memory_order_acquire);
}
/* The ask's number: what messages carry. */
static inline uint32_t jzi_ask_index(const jzi_ask *ask)
{
    return ask->home->base | (uint32_t)(jzi_ask_word(ask) >> 8 & 0xFFFFFFu);
}
/* The number with the generation: what the program has. */
static inline uint64_t jzi_ask_id(const jzi_ask *ask)
{
    return (jzi_ask_word(ask) >> 32 << 32) | jzi_ask_index(ask);
}
/* The slot of an id if the slot still is that ask, and this side of the ask is not through. NULL:
 * this side is through, or there never was such an ask. For the side that calls: only while its bit
 * is set the rest of the slot stays its own. */
jzi_ask *jzi_ask_find(const jzi_worker *worker, uint64_t id, uint64_t side);
/* NULL: there is no such slot. Thread: any. */
static inline jzi_ask *jzi_ask_slot(const jzi_inbox *inbox, uint32_t slot)
{
    return jzi_slots_find(&inbox->asks, slot, sizeof(jzi_ask));
}
/* The slot of a message that carries an ask; the slot exists. */
static inline jzi_ask *jzi_ask_at(const jzi_worker *worker, uint32_t index)
{
    const jzi_inbox *inbox = jzi_likely((index ^ worker->base) >> 24 == 0)
                                 ? worker->inbox
                                 : jzi_directory_inbox(worker->dispatcher->directory, index >> 24);
    return jzi_slots_at(&inbox->asks, index & 0xFFFFFFu, sizeof(jzi_ask));
}
static inline bool jzi_ask_is_wanted(const jzi_ask *ask)
{
    return (jzi_ask_word(ask) & JZI_ASK_DECIDED) == 0;
}

/* A slot for an ask of this dispatcher, or of a thread with this inbox. Both sides have their
 * bits. NULL: no memory. */
bool jzi_ask_refill(jzi_worker *worker);
static inline void jzi_ask_wake(jzi_ask *ask, uint64_t bits)
{
    uint64_t word = (jzi_ask_word(ask) >> 8 << 8) + ((uint64_t)1 << 32);
    word += (uint64_t)(word >> 32 == 0) << 32; /* generations go round, and 0 is no ask */
    ask->pprev = NULL;
    ask->posted = ask->lapsed = false;
    atomic_store_explicit(&ask->holder, JZX_NOBODY, memory_order_relaxed);
    atomic_store_explicit(&ask->word, word | bits | JZI_ASK_DUTY | JZI_ASK_ASKER,
                          memory_order_release);
}
static inline jzi_ask *jzi_ask_take(jzi_worker *worker)
{
    jzi_slots *slots = &worker->inbox->asks;
    if (jzi_unlikely(slots->free_list == NULL) && !jzi_ask_refill(worker)) {
        return NULL;
    }
    jzi_ask *ask = slots->free_list;
    slots->free_list = ask->next;
    ask->waiter = NULL;
    ask->shared = worker->dispatcher->directory != NULL;
    jzi_ask_wake(ask, 0);
    return ask;
}
jzi_ask *jzi_ask_take_for(jzi_inbox *inbox, jzi_ask_waiter *waiter);
/* Sets or clears bits; returns what was there before. */
static inline uint64_t jzi_ask_change(jzi_ask *ask, uint64_t set, uint64_t clear)
{
    if (jzi_likely(!ask->shared)) {
        uint64_t before = atomic_load_explicit(&ask->word, memory_order_relaxed);
        atomic_store_explicit(&ask->word, (before | set) & ~clear, memory_order_relaxed);
        return before;
    }
    /* acq_rel: what one side did to the slot comes before what the next one does. */
    return set != 0 ? atomic_fetch_or_explicit(&ask->word, set, memory_order_acq_rel)
                    : atomic_fetch_and_explicit(&ask->word, ~clear, memory_order_acq_rel);
}
/* True: the outcome was not settled yet, and the caller decides it. */
static inline bool jzi_ask_decide(jzi_ask *ask)
{
    return (jzi_ask_change(ask, JZI_ASK_DECIDED, 0) & JZI_ASK_DECIDED) == 0;
}
/* The slot goes back to the free slots; a thread's to where threads find it. */
void jzi_ask_give(jzi_worker *worker, jzi_inbox *home, jzi_ask *ask);
/* A side is through. worker NULL: of a thread that runs no actors. */
static inline void jzi_ask_leave(jzi_worker *worker, jzi_ask *ask, uint64_t side)
{
    jzi_inbox *home = ask->home; /* the slot may be the next ask's after this */
    uint64_t sides = JZI_ASK_DUTY | JZI_ASK_ASKER;
    if ((jzi_ask_change(ask, 0, side) & sides) == side) {
        jzi_ask_give(worker, home, ask);
    }
}

/* Fills in how the ask ended; the caller decided. `callee` may be NULL, and so may `reason`. */
void jzi_ask_conclude(jzi_worker *worker, jzi_ask *ask, jzx_outcome outcome, jzx_actor_id callee,
                      const jzx_reason *reason);
/* Hands the answer to the asker. The caller decided, filled the answer in, and does not touch the
 * ask any more. */
void jzi_ask_deliver(jzi_worker *worker, jzi_ask *ask);
/* Both, if the outcome is not settled yet; the duty ends in any case. */
void jzi_ask_end(jzi_worker *worker, jzi_ask *ask, jzx_outcome outcome, jzx_actor_id callee,
                 const jzx_reason *reason);
jzx_err jzi_outcome_err(uint32_t outcome);

/* The ask is linked at the asker, with its deadline running. The asker has cold->patterns. */
void jzi_ask_time_is_up(jzi_alarms *alarms, jzi_alarm *alarm);
static inline void jzi_ask_begin(jzi_worker *worker, jzi_actor *asker, jzi_ask *ask)
{
    jzi_ask **list = &asker->cold->patterns->asks;
    ask->asker = asker->id;
    JZI_LIST_PUSH(list, ask);
    if (ask->deadline_ns != 0) {
        jzi_alarm_set_lazily(worker->alarms, &ask->alarm, ask->deadline_ns);
    }
}
/* The answer goes into the lane of the asker, which lives here. */
static inline void jzi_ask_post(jzi_worker *worker, jzi_ask *ask)
{
    jzi_actor *asker = jzi_worker_slot(worker, jzx_id_index(ask->asker));
    jzi_debug_assert(asker->id == ask->asker); /* an actor that ends cancels its asks first */
    ask->posted = true;
    jzi_worker_post_notice(worker, asker, &ask->errand.node);
}
/* Unlinks the ask again: the request was not sent. */
void jzi_ask_undo(jzi_worker *worker, jzi_ask *ask);
/* The asker does not want the answer any more. */
void jzi_ask_cancel(jzi_worker *worker, jzi_ask *ask);

/* The request goes on to another actor than the asker meant: noted for jzi_ask_callee(), before the
 * message goes. */
static inline void jzi_ask_pass(jzi_ask *ask, jzx_actor_id to)
{
    atomic_store_explicit(&ask->passed_to, to, memory_order_relaxed);
    /* release: a reader that sees the generation sees passed_to. */
    atomic_store_explicit(&ask->passed, (uint32_t)(jzi_ask_word(ask) >> 32), memory_order_release);
}
/* The actor that has to answer, or will when the message arrives. Called in the asker's dispatcher,
 * or by the actor that has the duty. */
static inline jzx_actor_id jzi_ask_callee(const jzi_ask *ask)
{
    jzx_actor_id holder = atomic_load_explicit(&ask->holder, memory_order_relaxed);
    bool passed = atomic_load_explicit(&ask->passed, memory_order_acquire) ==
                  (uint32_t)(jzi_ask_word(ask) >> 32);
    return holder != JZX_NOBODY ? holder
           : passed             ? atomic_load_explicit(&ask->passed_to, memory_order_relaxed)
                                : ask->reply.target;
}

/* An actor keeps the duty, and lets it go. The holder has cold->patterns. */
void jzi_ask_hold(jzi_actor *holder, jzi_ask *ask);
void jzi_ask_unhold(jzi_ask *ask);

/* The incarnation is over: its own asks are cancelled, and the askers that it owes an answer are
 * told how it ended. */
void jzi_ask_release(jzi_worker *worker, jzi_actor *actor, bool restarts);
/* The actor goes on after a failure: what it had in hand then is forgotten. */
void jzi_ask_resume(jzi_worker *worker, jzi_actor *actor);

/* Messages that wait at an actor, wherever the actor lives. UINT32_MAX: the actor is gone.
 * Thread: any. */
uint32_t jzi_depth_of(const jzi_inbox *own, const jzi_directory *directory, jzx_actor_id id);

/* Asks of actors and of threads. Errors as jzi_mailbox_check_opts(); *out_flags are those of the
 * request's message. */
jzx_err jzi_ask_check(const jzx_ask_opts *opts, uint32_t *out_flags);
void jzi_ask_fill(jzi_ask *ask, jzx_actor_id to, const jzx_ask_opts *opts, uint64_t now);
/* The request as a send; ask may be NULL. */
jzx_send_opts jzi_ask_request(const jzx_ask_opts *opts, const jzi_ask *ask);
uint32_t jzi_outcome_of(jzx_err err);
static inline void jzi_ask_consume(const jzx_ask_opts *opts)
{
    const jzx_send_opts request = {.data = opts->data, .drop = opts->drop, .flags = opts->flags};
    jzi_send_consume(&request);
}
/* jzx_ask_wait(), and whether the request was sent: else its data is still the caller's. */
jzx_err jzi_ask_wait(struct jzx_sender *sender, jzx_actor_id to, const jzx_ask_opts *opts,
                     jzx_message *msg, bool *out_sent);

#endif
