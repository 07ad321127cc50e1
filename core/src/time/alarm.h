/* Alarms: deadlines of the library itself, which call a function instead of sending a message. */
#ifndef JZI_ALARM_H
#define JZI_ALARM_H

#include "base/list.h"
#include "sched/worker.h"
#include "time/timer_wheel.h"

typedef struct jzi_alarms jzi_alarms;

/* Zeroed is unarmed. */
typedef struct jzi_alarm {
    jzi_wheel_entry entry;
    void (*fire)(jzi_alarms *alarms, struct jzi_alarm *alarm);
    struct jzi_alarm *next; /* among those that are due and not yet fired, or fresh */
    struct jzi_alarm **pprev;
} jzi_alarm;

struct jzi_alarms {
    jzi_dispatcher *dispatcher;
    jzi_wheel wheel;
    jzi_alarm *due;   /* due and not yet fired */
    jzi_alarm *fresh; /* not yet in the wheel */
};

/* The wheel starts at worker->now_ns. */
void jzi_alarms_init(jzi_alarms *alarms, jzi_worker *worker);

/* Arms an alarm in `delay_ns` from the clock's reading now; an armed one is moved. */
void jzi_alarm_set(jzi_alarms *alarms, jzi_alarm *alarm, uint64_t delay_ns);
void jzi_alarm_clear(jzi_alarms *alarms, jzi_alarm *alarm);
/* Arms an alarm that is not armed, for alarms that are mostly cleared before the tick is over:
 * jzi_alarms_settle() puts it into the wheel, and is called before each look at the wheel. */
static inline void jzi_alarm_set_lazily(jzi_alarms *alarms, jzi_alarm *alarm, uint64_t due_ns)
{
    alarm->entry.due_ns = due_ns;
    JZI_LIST_PUSH(&alarms->fresh, alarm);
}
void jzi_alarms_settle(jzi_alarms *alarms);
/* Fires those that are due. */
void jzi_alarms_expire(jzi_alarms *alarms, uint64_t now_ns);

#endif
