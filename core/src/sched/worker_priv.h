/* Shared by the sources of worker, and by no other file. */
#ifndef JZI_WORKER_STEPS_H
#define JZI_WORKER_STEPS_H

#include "sched/worker.h"

/* What becomes of a message that its actor failed on. */
typedef enum jzi_fate {
    JZI_FATE_HANDLED, /* an event, or the message was passed on before */
    JZI_FATE_AGAIN,   /* the message waits for the restart */
    JZI_FATE_DEAD,
    JZI_FATE_POISON
} jzi_fate;

/* What would become of the message in `node` if its actor failed on it now. */
jzi_fate jzi_turn_fate(jzi_worker *worker, const jzi_actor *actor, jzi_node *node);
/* The actor just failed on the message, which is not yet counted: remembers it for lifecycle. */
jzi_fate jzi_turn_failed_on(jzi_worker *worker, const jzi_actor *actor, jzi_node *node);
void jzi_turn_put_back(jzi_worker *worker, jzi_actor *actor, jzi_node *node);
void jzi_turn_dead_letter(jzi_worker *worker, jzi_actor *actor, jzi_node *node, jzi_fate fate);

/* A request that was not answered, kept or passed on. */
static inline void jzi_turn_leave_request(jzi_worker *worker, jzi_actor *actor, jzi_node *node,
                                          bool ok)
{
    if (jzi_unlikely((jzi_msg_flags(&node->msg) & JZI_MSG_ASK) != 0)) {
        worker->dispatcher->on_request_left(worker, actor, node, ok);
    }
}

#endif
