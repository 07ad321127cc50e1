/* Watches and links: telling other actors that an actor ended (R20). */
#ifndef JZI_MONITOR_H
#define JZI_MONITOR_H

#include "sched/worker.h"

/* Installs the event operations (JZI_EVENT_WATCH). */
void jzi_monitor_init(jzi_worker *worker);

/* Gives an actor of this dispatcher what it needs to be linked: a place where an exit is
 * remembered, so that the exit takes no memory when it comes (R9). False: no memory. */
typedef bool (*jzi_linkable_fn)(jzi_worker *worker, jzi_actor *actor);

/* See jzx_watch(), jzx_unwatch(), jzx_link() and jzx_unlink(); `actor` is the actor that calls, and
 * was checked not to be ending. A link needs two incarnations: an actor that failed or is cleaned
 * up cannot be linked to (NOPROC), and makes no links itself (STOPPING). counters.watches counts a
 * link once, and a watch until its TERMINATED is handed over.
 *
 * Between dispatchers the target's end of a watch or link is made by an errand. The outcome of that
 * reaches the actor as news: an error that is returned comes from its own dispatcher. */
jzx_err jzi_monitor_watch(jzi_worker *worker, jzi_actor *actor, jzx_actor_id target, uint32_t flags,
                          jzx_watch_ref *out_ref);
jzx_err jzi_monitor_unwatch(jzi_worker *worker, jzi_actor *actor, jzx_watch_ref ref);
jzx_err jzi_monitor_link(jzi_worker *worker, jzi_actor *actor, jzx_actor_id target,
                         jzi_linkable_fn make_linkable);
/* True: the target's end had come already and the actor, which is in its code meanwhile, was about
 * to fail for it. The caller has to take that back; then the next function. */
bool jzi_monitor_unlink(jzi_worker *worker, jzi_actor *actor, jzx_actor_id target);
/* Has the actor fail for another link that broke, if there is one. */
void jzi_monitor_exit_again(jzi_worker *worker, jzi_actor *actor);

/* An incarnation ended or failed: its links are gone, and the peers are told: by an EXIT notice, or
 * by worker->dispatcher->on_link_exit() for a peer that does not trap, unless the reason is NORMAL.
 * on_link_exit() gets what the peer fails with, a LINKED that names the actor and has its code and
 * text. */
void jzi_monitor_break_links(jzi_worker *worker, jzi_actor *actor, uint32_t incarnation,
                             const jzx_reason *reason);
/* An incarnation is cleaned up: the watches it placed are gone. Notices of them that are queued in
 * its own lanes are left to be revoked, which then frees them: forget first, then empty the lanes.
 * Links must be broken by now; one that a hook made since is broken for worker->reason. */
void jzi_monitor_forget(jzi_worker *worker, jzi_actor *actor);
/* A new incarnation is RUNNING: watchers that asked for it get RESTARTED. A RESTARTED that still
 * waits is changed to say the latest, and gives way to a TERMINATED. */
void jzi_monitor_restarted(jzi_worker *worker, jzi_actor *actor, uint32_t incarnation,
                           const jzx_reason *cause);
/* The actor is gone (its id no longer resolves; `watchers` was its cold part's list): TERMINATED
 * goes to every watcher. Needs no memory (R9). */
void jzi_monitor_ended(jzi_worker *worker, struct jzi_watch *watchers, jzx_actor_id id,
                       uint32_t incarnation, const jzx_reason *reason);

/* The targets of an actor of this dispatcher, its watchers, or the actors it is linked to: the
 * first `cap`, in no order. Returns how many were written. */
typedef enum jzi_relation {
    JZI_RELATION_WATCHING,
    JZI_RELATION_WATCHERS,
    JZI_RELATION_LINKS
} jzi_relation;
size_t jzi_monitor_list(const jzi_actor *actor, jzi_relation which, jzx_actor_id *out, size_t cap);

#endif
