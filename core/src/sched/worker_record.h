/* What a worker records for tools that look from outside: events in its ring, probes, and the times
 * of turns, waits and asks. worker_record.c; nothing here is called while nothing is recorded. */
#ifndef JZI_WORKER_RECORD_H
#define JZI_WORKER_RECORD_H

#include "sched/worker.h"

/* Once per tick: what the board wants to have recorded. */
void jzi_worker_see_board(jzi_worker *worker, uint32_t wanted);
static inline void jzi_worker_look_at_board(jzi_worker *worker)
{
    const jzi_board *board = worker->dispatcher->board;
    uint32_t wanted = atomic_load_explicit(&board->wanted, memory_order_relaxed);
    if (jzi_unlikely((wanted | worker->probed) != worker->wanted)) {
        jzi_worker_see_board(worker, wanted | worker->probed);
    }
}
/* While worker->timing, once per tick: whether times are taken in it. */
void jzi_worker_pace_times(jzi_worker *worker);
void jzi_worker_unthrottle(jzi_worker *worker);     /* goes on recording when it is time to */
void jzi_worker_look_at_probes(jzi_worker *worker); /* now and then: is a tracer attached? */
/* A rare event, if worker->recording; of spawns, ends and timers, recording_often. Also a probe. */
void jzi_worker_note(jzi_worker *worker, jzi_event_what what, jzx_actor_id actor, jzx_actor_id peer,
                     uint32_t tag, uint32_t detail, uint64_t value);
void jzi_worker_slept(jzi_worker *worker, uint64_t from_ns, uint64_t timeout_ns);
/* These if worker->instrumented; at the end of an ask if worker->timing. */
void jzi_worker_turn_begins(jzi_worker *worker);
void jzi_worker_turn_ended(jzi_worker *worker);
void jzi_worker_handing_over(jzi_worker *worker, const jzi_actor *actor, const jzi_node *node);
void jzi_worker_handled(jzi_worker *worker, const jzi_actor *actor, const jzi_node *node,
                        uint32_t result);
/* `sent_ns`: when a message from another thread was sent; 0: not known. */
#define JZI_SENT_NOW UINT64_MAX
void jzi_worker_saw_send(jzi_worker *worker, const jzi_actor *actor, const jzi_node *node,
                         uint64_t sent_ns);
void jzi_worker_ask_took(jzi_worker *worker, uint64_t asked_ns);

#endif
