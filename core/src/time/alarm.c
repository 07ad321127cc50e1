#include "time/alarm.h"

void jzi_alarms_init(jzi_alarms *alarms, jzi_worker *worker)
{
    alarms->dispatcher = worker->dispatcher;
    worker->alarms = alarms;
    jzi_wheel_init(&alarms->wheel, worker->now_ns);
}

static void alarm_unlink(jzi_alarm *alarm)
{
    if (alarm->pprev != NULL) {
        JZI_LIST_REMOVE(alarm);
    }
}

void jzi_alarm_clear(jzi_alarms *alarms, jzi_alarm *alarm)
{
    if (alarm->pprev != NULL) {
        alarm_unlink(alarm);
    } else {
        jzi_wheel_remove(&alarms->wheel, &alarm->entry);
    }
}

void jzi_alarms_settle(jzi_alarms *alarms)
{
    while (jzi_unlikely(alarms->fresh != NULL)) {
        jzi_alarm *alarm = alarms->fresh;
        alarm_unlink(alarm);
        jzi_wheel_add(&alarms->wheel, &alarm->entry);
    }
}

void jzi_alarm_set(jzi_alarms *alarms, jzi_alarm *alarm, uint64_t delay_ns)
{
    jzi_alarm_clear(alarms, alarm);
    alarm->entry.due_ns = jzi_worker_clock(alarms->dispatcher->acting) + delay_ns;
    jzi_wheel_add(&alarms->wheel, &alarm->entry);
}

void jzi_alarms_expire(jzi_alarms *alarms, uint64_t now_ns)
{
    jzi_alarms_settle(alarms);
    /* Into a list of our own first: firing one alarm may clear another that is due as well. */
    jzi_alarm **tail = &alarms->due;
    jzi_wheel_entry *entry = jzi_wheel_expire(&alarms->wheel, now_ns);
    for (; entry != NULL; entry = entry->next) {
        jzi_alarm *alarm = jzi_container_of(entry, jzi_alarm, entry);
        JZI_LIST_PUSH(tail, alarm);
        tail = &alarm->next;
    }
    while (alarms->due != NULL) {
        jzi_alarm *alarm = alarms->due;
        alarm_unlink(alarm);
        alarm->fire(alarms, alarm);
    }
}
