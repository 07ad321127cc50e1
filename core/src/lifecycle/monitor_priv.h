/* Shared by the sources of monitor only. */
#ifndef JZI_MONITOR_STEPS_H
#define JZI_MONITOR_STEPS_H

#include "lifecycle/monitor.h"

#include <jzx/monitor.h>

/* Where the node of a record is. */
enum { JZI_WATCH_IDLE, JZI_WATCH_QUEUED, JZI_WATCH_IN_HAND };

typedef struct jzi_watch {
    jzi_node node;
    jzx_signal signal;       /* the news; `from` is the target. Handed over as a copy */
    jzx_reason reason;       /* of the news */
    jzx_actor_id watcher;    /* 0: the watch is over, and freed when the node is out */
    uint64_t key;            /* in the watcher's tree: the reference; of a link: the target */
    struct jzi_watch *up[2]; /* the tree grows upwards */
    struct jzi_watch *next;  /* in a ring of links and watches. NULL: in none */
    struct jzi_watch *prev;
    struct jzi_watch *pair; /* of a link inside the dispatcher that holds: the other direction */
    bool link;
    bool restarts; /* the watcher asked for RESTARTED too */
    bool far;      /* the target is in another dispatcher: see monitor_far.c */
    bool again;    /* there is news since the node was queued or taken in hand: queue it anew */
    uint8_t place;
} jzi_watch;

/* Fills in a zeroed record. */
void jzi_monitor_prepare(jzi_watch *watch, jzx_actor_id watcher, jzx_actor_id target, bool link);

/* The tree of a watcher and the ring of a target, or, of a link to another dispatcher, of its own
 * end. `joined`: only a link that holds, not an EXIT that is queued. */
void jzi_monitor_tree_add(jzi_watch **root, jzi_watch *watch);
jzi_watch *jzi_monitor_tree_find(jzi_watch *root, bool link, uint64_t key, bool joined);
void jzi_monitor_ring_add(jzi_watch **head, jzi_watch *watch);
void jzi_monitor_ring_remove(jzi_watch **head, jzi_watch *watch);
/* From here on the watcher cannot name the watch. */
void jzi_monitor_leave_watcher(jzi_worker *worker, jzi_watch *watch);

/* News for the watcher, which is in this dispatcher. */
void jzi_monitor_fire(jzi_worker *worker, jzi_watch *watch, jzx_signal_kind kind,
                      uint32_t incarnation, const jzx_reason *reason);
/* A link of this actor broke, and is in its tree only: the actor is told, fails, or neither. */
void jzi_monitor_exit(jzi_worker *worker, jzi_actor *actor, jzi_watch *watch, uint32_t incarnation,
                      const jzx_reason *reason);
/* False: the target failed, or is cleaned up: its id resolves, but there is no incarnation that a
 * link could join. */
bool jzi_monitor_is_linkable(const jzi_actor *target);

/* The same as their namesakes in monitor.h, for a target in the dispatcher of `there`. */
jzx_err jzi_monitor_far_watch(jzi_worker *worker, jzi_actor *actor, jzi_inbox *there,
                              jzx_actor_id target, uint32_t flags, jzx_watch_ref *out_ref);
jzx_err jzi_monitor_far_link(jzi_worker *worker, jzi_actor *actor, jzi_inbox *there,
                             jzx_actor_id target, jzi_linkable_fn make_linkable);
/* In the dispatcher of the watcher: the watch, or the link, is over for the watcher. */
void jzi_monitor_far_retire(jzi_worker *worker, jzi_watch *watch);
/* In the dispatcher of the target: news for a watcher elsewhere. After _ended() the record is out
 * of the ring and no longer the caller's. */
void jzi_monitor_far_restarted(jzi_watch *watch, uint32_t incarnation, const jzx_reason *cause);
void jzi_monitor_far_ended(jzi_watch *watch, uint32_t incarnation, const jzx_reason *reason);
/* The incarnation that has this link is over. */
void jzi_monitor_far_break(jzi_worker *worker, jzi_watch *watch, uint32_t incarnation,
                           const jzx_reason *reason);

#endif
