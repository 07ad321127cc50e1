/* The stash: messages that a behavior set aside (R10, R18). They wait in a lane of their own, in
 * the order in which they arrived, and count in own_used like those that wait in the mailbox. */
#ifndef JZI_STASH_H
#define JZI_STASH_H

#include "sched/worker.h"

/* Whether the message in hand can be moved elsewhere. Errors: NOT_SUPPORTED, ALREADY. */
static inline jzx_err jzi_hand_check(const jzi_worker *worker)
{
    uint32_t flags = jzi_msg_flags(&worker->in_hand->msg);
    return (flags & JZI_MSG_EVENT) != 0   ? JZX_ERR_NOT_SUPPORTED
           : (flags & JZI_MSG_TAKEN) != 0 ? JZX_ERR_ALREADY
                                          : JZX_OK;
}
/* A node of our own with the message in hand, which is empty from now on: what it pointed to, and
 * the duty to answer, went along. NULL: no memory, and nothing changed. */
jzi_node *jzi_hand_move(jzi_worker *worker);
/* The same without the node: the caller moved it, or refers to what it points to. */
void jzi_hand_empty(jzi_worker *worker);

/* See jzx_stash(). The message in hand can be moved. */
jzx_err jzi_stash_put(jzi_worker *worker, jzi_actor *actor);
/* Puts the oldest ones back in front of their lanes; there are as many. The caller sees to it that
 * the actor gets a turn. */
void jzi_stash_return(jzi_worker *worker, jzi_actor *actor, uint32_t count);
/* An incarnation leaves: all of it goes back, and nothing counts as unstashed any more. */
void jzi_stash_leave(jzi_worker *worker, jzi_actor *actor, bool restarts);

#endif
