/* Timers: table, wheel, and the life of a timer (R26). */
#ifndef JZI_TIMER_H
#define JZI_TIMER_H

#include <jzx/timer.h>

#include "timer_wheel.h"
#include "worker.h"

typedef enum jzi_timer_state {
    JZI_TIMER_FREE,
    JZI_TIMER_ARMED,    /* in the wheel */
    JZI_TIMER_QUEUED,   /* fired: its node waits in the owner's lane */
    JZI_TIMER_HANDING,  /* the behavior is looking at it */
    JZI_TIMER_CANCELLED /* while queued or handing: free it when the node is out */
} jzi_timer_state;

/* 128 bytes: what the wheel touches, then the message. Type-stable, so that an id can be checked
 * against the generation at any time. */
typedef struct jzi_timer {
    jzi_wheel_entry entry;
    struct jzi_timer *next; /* in the owner's list; free: in the free list */
    struct jzi_timer **pprev;
    jzx_actor_id owner;
    uint32_t generation;
    uint32_t slot_state; /* slot:24 | fixed_delay:1 | state:3 */
    uint32_t period_ms;
    uint32_t missed;
    jzi_node node;
} jzi_timer;
_Static_assert(sizeof(jzi_timer) == 128, "a timer is two cache lines");

typedef struct jzi_timers {
    jzi_worker *worker;
    jzi_timer **chunks; /* owned, chunk_cap entries */
    uint32_t chunk_cap;
    uint32_t chunk_count;
    uint32_t made;
    jzi_timer *free_list;
    jzi_wheel wheel;
} jzi_timers;

/* Installs the event operations. worker->now_ns must have been read. */
void jzi_timers_init(jzi_timers *timers, jzi_worker *worker);
/* Every owner must have ended. */
void jzi_timers_deinit(jzi_timers *timers);

/* See jzx_timer_start(). The options are checked by this call. */
jzx_err jzi_timer_start(jzi_timers *timers, jzx_actor_id target, const jzx_timer_opts *opts,
                        jzx_timer_id *out_id);
jzx_err jzi_timer_cancel(jzi_timers *timers, jzx_timer_id id);
/* Queues the messages of all that is due. */
void jzi_timers_expire(jzi_timers *timers, uint64_t now_ns);
/* Ends everything an ending actor owns. */
void jzi_timers_release_all(jzi_timers *timers, jzi_actor *actor);

static inline jzx_timer_id jzi_timer_id(const jzi_timer *timer)
{
    return (uint64_t)timer->generation << 32 | (timer->slot_state >> 8);
}

#endif
