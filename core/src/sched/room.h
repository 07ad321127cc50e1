/* Room notices: backpressure as a message (R12). A request is a record with its own node, in two
 * lists: its waiter's (which ends it) and, while it waits, its target's (which answers it). */
#ifndef JZI_ROOM_H
#define JZI_ROOM_H

#include "sched/worker.h"

/* Installs the event operations and worker->dispatcher->on_room. */
void jzi_room_init(jzi_worker *worker);

/* See jzx_notify_room(); the waiter is an open actor. Errors: NO_MEMORY. */
jzx_err jzi_room_request(jzi_worker *worker, jzi_actor *waiter, jzx_actor_id target);

/* See jzx_sender_wait_room(). The inbox stays while this goes on. Thread: any that runs no actors.
 * Errors: NO_SUCH_ACTOR, TIMED_OUT, LOOP_CLOSED, NO_MEMORY. */
jzx_err jzi_room_await(jzi_inbox *inbox, jzx_actor_id target, uint64_t timeout_ms);
/* The inbox was closed, and what was in it is lost with a dispatcher that is stuck: threads that
 * wait are sent away. Thread: any. */
void jzi_room_send_away(jzi_inbox *inbox);

/* The actor ends: its own requests go, waiters for room in its mailbox hear NO_SUCH_ACTOR. */
void jzi_room_leave(jzi_worker *worker, jzi_actor *actor, bool restarts);
void jzi_room_target_ended(jzi_worker *worker, jzi_actor *actor);

#endif
