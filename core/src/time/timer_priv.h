/* Shared by the sources of timer, and by no other file. */
#ifndef JZI_TIMER_STEPS_H
#define JZI_TIMER_STEPS_H

#include "base/list.h"
#include "time/timer.h"

/* What a timer is from its options on; all but its word, its owner's list and the wheel. */
static inline void jzi_timer_fill(jzi_worker *worker, jzi_timer *timer, jzx_actor_id target,
                                  const jzx_timer_opts *opts)
{
    bool value = (opts->flags & JZX_TIMER_VALUE) != 0;
    bool periodic = opts->period_ms > 0;
    uint32_t flags = JZI_MSG_EVENT | (value ? JZX_MSG_VALUE : 0) |
                     (periodic ? JZX_MSG_BORROWED : 0) |
                     (opts->drop != NULL && !periodic ? JZI_MSG_DROP : 0);
    timer->owner = target;
    timer->period_ms = (uint32_t)opts->period_ms;
    timer->missed = 0;
    timer->node.ops = JZI_EVENT_TIMER;
    timer->node.msg = (jzx_message){
        .data = opts->data,
        .len = opts->len,
        .tag = opts->tag,
        .kind = JZX_KIND_TIMER,
        JZI_MSG_FLAGS(flags),
        .sender = worker->ctx.self,
        .drop = opts->drop,
    };
    if (value) {
        timer->node.msg.u64 = opts->u64;
    }
    timer->entry.due_ns = jzi_worker_clock(worker) + opts->delay_ms * 1000000u;
}
static inline uint64_t jzi_timer_bits(const jzx_timer_opts *opts)
{
    return (opts->mode == JZX_TIMER_FIXED_DELAY ? JZI_TIMER_FIXED : 0) |
           (opts->period_ms > 0 ? JZI_TIMER_PERIODIC : 0);
}

/* Puts a timer that is ARMED where it belongs. */
static inline void jzi_timer_enter(jzi_timers *timers, jzi_timer *timer, jzi_cold *cold)
{
    JZI_LIST_PUSH(&cold->timers, timer);
    jzi_wheel_add(&timers->wheel, &timer->entry);
    jzi_count_add(&timers->dispatcher->acting->counters.timers, 1);
}

/* The slot is free. In the owner's dispatcher. */
void jzi_timer_free(jzi_timers *timers, jzi_timer *timer);
/* Another dispatcher has cancelled the timer and has its node: everything but the slot goes. */
void jzi_timer_let_go(jzi_timers *timers, jzi_timer *timer);

/* The target, or the timer, is of another dispatcher. The options have been checked. */
jzx_err jzi_timer_start_far(jzi_worker *worker, jzx_actor_id target, const jzx_timer_opts *opts,
                            jzx_timer_id *out_id);
jzx_err jzi_timer_cancel_far(const jzi_worker *worker, jzx_timer_id id);
/* A timer's node has come from another dispatcher: it is to be armed, or was cancelled. */
void jzi_timer_arrived(jzi_worker *worker, jzi_node *node);

#endif
