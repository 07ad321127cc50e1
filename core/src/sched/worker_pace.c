/* How long a turn may take, and which actors are found to be slow (R23, R24). */
#include "sched/worker_record.h"

bool jzi_worker_look_at_clock(jzi_worker *worker, jzi_actor *actor)
{
    uint64_t before = worker->now_ns;
    uint64_t now = jzi_worker_clock(worker);
    uint64_t passed = now - before;
    bool known = worker->timed_turn == worker->ring_head || worker->timed_one;
    worker->timed_turn = worker->ring_head;
    worker->timed_one = !known && passed > worker->turn_budget_ns;
    if (jzi_unlikely(worker->timed_one)) { /* an actor was slow, and maybe not this one */
        JZI_PUBLISH(worker->turn_start_ns, now);
        worker->stride = worker->stride > 1 ? worker->stride / 2 : 1;
        worker->until_clock = 1;
        return now >= worker->tick_end_ns;
    }
    if (passed > worker->turn_budget_ns / 2) {
        worker->stride = worker->stride > 1 ? worker->stride / 2 : 1;
    } else if (passed < worker->turn_budget_ns / 4 && worker->stride < worker->max_stride) {
        worker->stride *= 2;
    }
    /* Such an actor could hold the loop for a whole stride of messages: from now on look after
     * each of them, until it is quick again. */
    if (passed > worker->turn_budget_ns) {
        if (jzi_unlikely(worker->recording) && passed > 8 * worker->turn_budget_ns) {
            jzi_worker_note(worker, JZI_RING_OVERRUN, actor->id, JZX_NOBODY, 0, 0, passed);
        }
        actor->flags |= JZI_ACTOR_SLOW;
    } else {
        actor->flags &= ~JZI_ACTOR_SLOW;
    }
    worker->until_clock = (actor->flags & JZI_ACTOR_SLOW) != 0 ? 1 : worker->stride;
    worker->timed_one = worker->until_clock == 1;
    return now >= worker->tick_end_ns || now - worker->turn_start_ns >= worker->turn_budget_ns;
}

uint32_t jzi_worker_begin_instrumented(const jzi_worker *worker, const jzi_actor *actor,
                                       uint32_t *until_clock)
{
    if (worker->max_stride == 1 || (actor->flags & JZI_ACTOR_SLOW) != 0) {
        *until_clock = 1;
    }
    uint32_t max = actor->type->max_msgs;
    return max < JZI_FIRST_LEG ? max : JZI_FIRST_LEG;
}

uint32_t jzi_worker_next_leg(jzi_worker *worker, jzi_actor *actor, uint32_t *until_clock)
{
    uint32_t max = actor->type->max_msgs;
    if (max <= JZI_FIRST_LEG || worker->turn_number == worker->ring_head) {
        return 0;
    }
    worker->turn_number = worker->ring_head;
    bool over = jzi_worker_look_at_clock(worker, actor);
    *until_clock = worker->until_clock;
    return over ? 0 : max - JZI_FIRST_LEG;
}
