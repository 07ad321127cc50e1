/* Timers: table, wheel, and the life of a timer (R26). */
#ifndef JZI_TIMER_H
#define JZI_TIMER_H

#include <jzx/timer.h>

#include "sched/worker.h"
#include "time/timer_table.h"
#include "time/timer_wheel.h"

typedef struct jzi_timers {
    jzi_dispatcher *dispatcher;
    jzi_slots *slots; /* the inbox's; shared: other dispatchers arm and cancel here */
    jzi_wheel wheel;
} jzi_timers;

/* Installs the event operations. worker->now_ns must have been read. */
void jzi_timers_init(jzi_timers *timers, jzi_worker *worker);
/* Every owner must have ended. The slots stay, with the inbox. */
void jzi_timers_deinit(jzi_timers *timers);

/* See jzx_timer_start(). The options are checked by this call. */
jzx_err jzi_timer_start(jzi_timers *timers, jzx_actor_id target, const jzx_timer_opts *opts,
                        jzx_timer_id *out_id);
jzx_err jzi_timer_cancel(jzi_timers *timers, jzx_timer_id id);
/* A cancel by another thread; the timers of this inbox are shared. Thread: any. Errors: ALREADY,
 * NO_SUCH_TIMER. */
jzx_err jzi_timer_cancel_at(jzi_inbox *inbox, jzx_timer_id id);
/* Queues the messages of all that is due. */
void jzi_timers_expire(jzi_timers *timers, uint64_t now_ns);
/* Ends everything an actor owns whose incarnation is over. */
void jzi_timers_leave(jzi_worker *worker, jzi_actor *actor, bool restarts);

#endif
