/* Subscriptions to dead letters (R21). */
#ifndef JZI_LETTERS_H
#define JZI_LETTERS_H

#include "sched/worker.h"

/* Installs the event operations (JZI_EVENT_LETTERS). */
void jzi_letters_init(jzi_worker *worker);
/* See jzx_dead_letters_subscribe() and _unsubscribe(); `actor` is the one that calls. */
jzx_err jzi_letters_subscribe(jzi_worker *worker, jzi_actor *actor);
void jzi_letters_unsubscribe(jzi_worker *worker, jzi_actor *actor);
/* An incarnation is cleaned up: its subscription is gone. A notice that is queued in its own lane
 * is left to be revoked, which then frees it. */
void jzi_letters_leave(jzi_worker *worker, jzi_actor *actor, bool restarts);

#endif
