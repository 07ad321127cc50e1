/* A dispatcher is what the workers of one dispatcher share: its lists, its observer, and how the
 * layers above are told of what happens in it. */
#ifndef JZI_DISPATCHER_H
#define JZI_DISPATCHER_H

#include "actor/dead_letter.h"
#include "actor/inbox.h"

#include <pthread.h>

typedef struct jzi_worker jzi_worker;

/* What the owner of an event node does with it. The index of the table is in node->ops. */
typedef struct jzi_event_ops {
    /* The node is about to be handed to the behavior: fill in node->msg. False: the event was
     * cancelled while it waited; it is counted as revoked, and `revoke` follows. */
    bool (*claim)(jzi_worker *worker, jzi_actor *actor, jzi_node *node);
    /* The behavior returned, failed or panicked: the node is free to be used again. */
    void (*done)(jzi_worker *worker, jzi_node *node);
    /* The node left its lane without being handed over: the same, and no message was seen. */
    void (*revoke)(jzi_worker *worker, jzi_node *node);
    /* The node came from another dispatcher, as an errand does. NULL: that never happens. */
    void (*arrive)(jzi_worker *worker, jzi_node *node);
} jzi_event_ops;

enum {
    JZI_EVENT_ROOM,
    JZI_EVENT_TIMER,
    JZI_EVENT_SOURCE,
    JZI_EVENT_CHILD,
    JZI_EVENT_WATCH,
    JZI_EVENT_LETTERS,
    JZI_EVENT_JOB,
    JZI_EVENT_ASK,
    JZI_EVENT_BUS,
    JZI_EVENT_NAME,
    JZI_EVENT_STARTED,
    JZI_EVENT_FULL,
    JZI_EVENT_KINDS
};
_Static_assert((unsigned)JZI_EVENT_FULL == JZI_INBOX_FULL, "inbox.h knows it by its number");

/* Something that a dispatcher does for another thread, in its own time: pushed on its inbound list
 * as a message is, and run there as part of the intake. Errands and messages of one thread keep
 * their order. The record belongs to its maker and is free again when `run` is called. */
typedef struct jzi_errand {
    jzi_node node;
    void (*run)(jzi_worker *worker, struct jzi_errand *errand);
} jzi_errand;

/* Has another dispatcher run the errand. False: that dispatcher is gone, and nothing happened.
 * Thread: any. */
bool jzi_errand_post(jzi_inbox *inbox, jzi_errand *errand);

struct jzi_children_ops;

/* Births and ends are to be told, to the observer or to the log; transitions, to the observer. */
#define JZI_SEES_LIFE 0x1u
#define JZI_SEES_LOG 0x2u
#define JZI_SEES_MOVES 0x4u

/* What the workers of one dispatcher share. Inside a dispatcher everything is done directly;
 * between two dispatchers everything is a node on the other one's inbound list. With several
 * workers, a thread that touches the dispatcher, a desk or a list of actors holds the pool lock,
 * and user code runs without that lock. */
typedef struct jzi_dispatcher {
    struct jzi_board *board;         /* of the system, or the loop's own */
    jzi_worker *acting;              /* has the pool lock; of a loop: its worker */
    struct jzi_directory *directory; /* of the system; NULL: there is only this dispatcher */
    bool pooled;                     /* several workers, and a pool lock */
    bool threads;                    /* these are threads; otherwise they are simulated on one */
    pthread_mutex_t pool_lock;
    jzi_worker *bias_owner; /* of the pool lock, while that is free; NULL: none */
    jzi_worker **workers;   /* all of them: a pool's own list, or `only` */
    jzi_worker *only;
    uint32_t worker_count;
    _Atomic uint32_t running; /* a pool's workers are at work: no other thread may touch this */
    uint64_t now_ns;          /* of a pool: the latest reading of them all */
    /* Simulation: user code of a worker is about to run; others may get ahead of it. */
    void (*on_pool_unlocked)(jzi_worker *worker);
    /* A worker has more than one actor ready: another one could help. */
    void (*on_more)(jzi_worker *worker);
    bool destroying;     /* sends and spawns are refused */
    bool abandoned;      /* after fork: no user code, and the poller is told nothing */
    bool shared;         /* a sender exists or existed: gates change under our hands */
    bool shutting_down;  /* the root takes no new children */
    uint32_t root_first; /* actors without a parent, in the order of spawning; slots */
    uint32_t root_last;
    struct jzi_life *root_life; /* the root's child events and children */
    bool root_adopts;           /* the root has a policy for all of its children */
    bool root_in_order;         /* a shutdown stops them one after the other */
    uint64_t watch_seq;         /* the last jzx_watch_ref */
    jzi_dead_letters dead_letters;
    jzi_observer observer; /* set by jzi_dispatcher_observe() */
    /* JZI_SEES_*. relaxed: what it says becomes true soon. */
    _Atomic uint32_t sees;
    /* Set once, by any thread, and there until the end. release and acquire: what it leads to. */
    _Atomic(struct jzi_log *) log;
    /* In a pool: code of the user's that is due and must not run with the pool lock. Errands, and
     * messages that were dead-lettered and whose data is to be dropped; a lane. */
    jzi_node *deferred;
    jzi_event_ops event_ops[JZI_EVENT_KINDS];
    void (*on_room)(jzi_worker *worker, jzi_actor *actor); /* WAITERS is set and there is room */
    void (*on_link_exit)(jzi_worker *worker, jzi_actor *peer, const jzx_reason *reason);
    void (*on_dead_letter)(jzi_worker *worker); /* set while an actor subscribes */
    /* Set during a shutdown; worker->reason says why it ended. */
    void (*on_actor_ended)(jzi_worker *worker, jzx_actor_id id, const char *name, bool root);
    struct jzi_feed *feeds; /* subscriptions to dead letters */
    struct {
        jzi_errand errand;
        jzi_inbox *inbox; /* ours */
    } letter_call;        /* another dispatcher of the system made a letter; see letters.c */
    uint32_t away;        /* zombies and watches of ours that other dispatchers still have */
    /* A zombie came from another dispatcher. */
    void (*on_zombie)(jzi_worker *worker, jzi_node *node);
    /* The dispatcher of this name. Errors: NO_SUCH_DISPATCHER, MAX_DISPATCHERS, NO_THREADS, ... */
    jzx_err (*on_find)(struct jzi_dispatcher *dispatcher, const char *name, jzi_inbox **out_inbox);
    /* A step of this dispatcher is over: of jzx_loop_step(), or in a simulated system. */
    void (*on_stepped)(struct jzi_dispatcher *dispatcher);
    /* A spawn there failed after all. */
    void (*on_unused)(struct jzi_dispatcher *dispatcher, const jzi_inbox *inbox);
    void *system;
    /* In a system: nothing is ready here, and the dispatcher is about to wait. */
    void (*on_rest)(struct jzi_dispatcher *dispatcher);
    _Atomic uint32_t resting; /* so, until something comes */
    /* Another thread left orders (JZI_GATE_*) at an actor's door; with JZI_GATE_CLOSED if that was
     * closed before, which it is now. */
    void (*on_orders)(jzi_worker *worker, jzi_actor *actor, uint64_t orders);
    /* A message is sent on to another dispatcher, or inside a pool. False: refused there. */
    bool (*on_redirect)(jzi_worker *worker, const jzi_node *node, jzx_actor_id to);
    struct jzi_jobs *jobs;   /* blocking work; made at its first use, or the system's */
    struct jzi_job *orphans; /* jobs that run and whose actor is gone */
    /* A request (JZI_MSG_ASK) was handled and not answered; died; is about to be handed over: why
     * not, or JZX_DEAD_REASONS. */
    void (*on_request_left)(jzi_worker *worker, jzi_actor *actor, jzi_node *node, bool ok);
    void (*on_request_died)(jzi_worker *worker, jzi_actor *actor, jzi_node *node,
                            jzx_dead_reason reason);
    uint32_t *(*on_request_tries)(jzi_worker *worker, const jzi_node *node); /* to be counted */
    uint64_t (*on_request_correlation)(jzi_worker *worker, const jzi_node *node);
    jzx_dead_reason (*judge_request)(jzi_worker *worker, const jzi_node *node);
    struct jzi_registry *registry;      /* names and groups; of a system: of all of it */
    const struct jzi_feature *features; /* what is done about a life that is over; lifecycle.h */
    const struct jzi_children_ops *children; /* installed by jzi_children_init() */
} jzi_dispatcher;

static inline bool jzi_dispatcher_sees(const jzi_dispatcher *dispatcher, uint32_t what)
{
    return (atomic_load_explicit(&dispatcher->sees, memory_order_relaxed) & what) != 0;
}
static inline struct jzi_log *jzi_dispatcher_log(const jzi_dispatcher *dispatcher)
{
    return atomic_load_explicit(&dispatcher->log, memory_order_acquire);
}
/* Gives the dispatcher with this inbox another observer. By its owner, or before it runs. */
void jzi_dispatcher_observe(jzi_dispatcher *dispatcher, jzi_inbox *inbox,
                            const jzi_observer *observer);
/* Gives the dispatcher a log, which it keeps. Thread: any. */
static inline void jzi_dispatcher_set_log(jzi_dispatcher *dispatcher, struct jzi_log *log)
{
    if (log != NULL) {
        atomic_store_explicit(&dispatcher->log, log, memory_order_release);
        atomic_fetch_or_explicit(&dispatcher->sees, JZI_SEES_LOG, memory_order_relaxed);
    }
}

#endif
