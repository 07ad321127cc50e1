/* What a behavior does with itself: becoming another one. */
#ifndef JZI_API_BEHAVIOR_H
#define JZI_API_BEHAVIOR_H

#include "sched/worker.h"

/* An incarnation leaves: the next one begins with what the actor was spawned with. */
void jzi_behavior_leave(jzi_worker *worker, jzi_actor *actor, bool restarts);

#endif
