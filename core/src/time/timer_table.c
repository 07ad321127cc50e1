#include "time/timer_table.h"

static jzi_timer *pop_far(jzi_slots *slots)
{
    jzi_timer *timer = slots->far_list;
    if (timer != NULL) {
        slots->far_list = timer->next;
    }
    return timer;
}

static jzi_timer *take_locked(jzi_slots *slots, const jzx_allocator *alloc, uint64_t bits)
{
    (void)pthread_mutex_lock(&slots->lock);
    jzi_timer *timer = pop_far(slots);
    if (timer == NULL) {
        timer = jzi_timer_slot_make(slots, alloc, bits);
    }
    (void)pthread_mutex_unlock(&slots->lock);
    return timer;
}

jzi_timer *jzi_timer_slot_take_shared(jzi_slots *slots, const jzx_allocator *alloc)
{
    return take_locked(slots, alloc, 0);
}

jzi_timer *jzi_timer_slot_take_far(jzi_slots *slots, const jzx_allocator *alloc)
{
    return take_locked(slots, alloc, JZI_TIMER_FAR);
}

void jzi_timer_slot_give_far(jzi_slots *slots, jzi_timer *timer)
{
    (void)pthread_mutex_lock(&slots->lock);
    timer->next = slots->far_list;
    slots->far_list = timer;
    (void)pthread_mutex_unlock(&slots->lock);
}
