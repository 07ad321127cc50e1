/* Commands: how a caller asks for the end of an actor, how a parent directs its children, and what
 * the actor does about a command when its turn comes. Commands are bits, so they need no memory,
 * cannot fail, and merge; a kill is obeyed before a stop, a stop before a restart (R6, R9, R18). */
#include "lifecycle/lifecycle_priv.h"
#include "sched/worker_record.h"

#define ORDERS (JZI_ACTOR_RESTART | JZI_ACTOR_HALT | JZI_ACTOR_START | JZI_ACTOR_RESUME)

void jzi_lifecycle_stop(jzi_worker *worker, jzi_actor *actor, bool drained)
{
    uint32_t timeout_ms = actor->type->stop_timeout_ms;
    const jzi_life *life = jzi_life_of(actor);
    if ((actor->flags & JZI_ACTOR_ENDING) != 0 && (life == NULL || life->after == JZI_AFTER_END)) {
        return; /* the end is on its way */
    }
    if (timeout_ms == JZX_SHUTDOWN_BRUTAL) {
        jzi_lifecycle_kill(worker, actor);
        return;
    }
    jzi_count_add(&worker->counters.commands, 1);
    if (jzi_unlikely(worker->recording_often)) {
        jzi_worker_note(worker, JZI_RING_STOP, actor->id, worker->ctx.self, 0, drained, 0);
    }
    jzi_life_close_gate(worker, actor);
    jzi_step step = (jzi_step)jzi_actor_step_of(actor);
    bool deferred = (actor->flags & JZI_ACTOR_DEFERRED) != 0;
    if (deferred && worker->ctx.self != actor->id) {
        return; /* the actor knows, and has asked for time */
    }
    if ((actor->flags & JZI_ACTOR_ENDING) == 0) {
        jzi_life_set_deadline(worker, actor, timeout_ms, UINT64_MAX);
    }
    /* In a pool the actor may be in its start hooks at this moment: it drains when it is up. */
    bool starting = step >= JZI_STEP_INITED && step <= JZI_STEP_POST_RESTARTED &&
                    step != JZI_STEP_CHILDREN_START &&
                    (worker->taking_in || worker->current != actor);
    if (drained && (step == JZI_STEP_NONE || starting)) {
        if ((actor->flags & JZI_ACTOR_DRAIN) == 0) {
            actor->drain_stamp = jzi_actor_accepted(actor);
        }
        actor->flags |= JZI_ACTOR_DRAIN;
        if (life != NULL) {
            jzi_life_arm_deadline(worker, actor);
        }
        if ((actor->flags & JZI_ACTOR_FROZEN) == 0) {
            jzi_worker_schedule(worker, actor);
        }
        return;
    }
    actor->flags |= JZI_ACTOR_STOP;
    jzi_lifecycle_wake(worker, actor);
}

void jzi_lifecycle_kill(jzi_worker *worker, jzi_actor *actor)
{
    const jzi_life *life = jzi_life_of(actor);
    jzi_count_add(&worker->counters.commands, 1);
    if (jzi_unlikely(worker->recording_often)) {
        jzi_worker_note(worker, JZI_RING_KILL, actor->id, worker->ctx.self, 0, 0, 0);
    }
    if (life == NULL || life->child_link == NULL) {
        jzi_life_close_gate(worker, actor);
    }
    actor->flags |= JZI_ACTOR_KILL;
    jzi_lifecycle_wake(worker, actor);
}

void jzi_lifecycle_obey(jzi_worker *worker, jzi_actor *actor, uint64_t orders)
{
    if (worker->dispatcher->destroying) {
        return;
    }
    if ((orders & (JZI_GATE_STOP | JZI_GATE_DRAIN)) != 0) {
        jzi_lifecycle_stop(worker, actor, (orders & JZI_GATE_STOP) == 0);
    }
    if ((orders & JZI_GATE_KILL) != 0) {
        const jzi_life *life = jzi_life_of(actor);
        jzi_lifecycle_kill(worker, actor);
        if (orders == JZI_GATE_KILL && life != NULL && life->child_link != NULL) {
            jzi_life_open_gate(worker, actor); /* the parent may want the actor again */
        }
    }
}

void jzi_lifecycle_finish(jzi_worker *worker, jzi_actor *actor, uint32_t timeout_ms,
                          uint64_t parent_deadline_ns)
{
    jzi_count_add(&worker->counters.commands, 1);
    if (jzi_unlikely(jzi_worker_is_far(worker, actor->id))) {
        jzi_far_order(worker, actor, true, 0, timeout_ms, parent_deadline_ns);
        return;
    }
    jzi_life_close_gate(worker, actor);
    actor->flags |= JZI_ACTOR_FINISH;
    if (timeout_ms == JZX_SHUTDOWN_BRUTAL) {
        actor->flags |= JZI_ACTOR_KILL;
    } else {
        jzi_life_set_deadline(worker, actor, timeout_ms, parent_deadline_ns);
        if ((actor->flags & JZI_ACTOR_DEFERRED) == 0) {
            actor->flags |= JZI_ACTOR_STOP;
        }
    }
    jzi_lifecycle_wake(worker, actor);
}

void jzi_lifecycle_order(jzi_worker *worker, jzi_actor *actor, uint32_t commands,
                         uint32_t timeout_ms, uint64_t parent_deadline_ns)
{
    jzi_count_add(&worker->counters.commands, 1);
    if (jzi_unlikely(jzi_worker_is_far(worker, actor->id))) {
        jzi_far_order(worker, actor, false, commands, timeout_ms, parent_deadline_ns);
        return;
    }
    /* The last word counts. */
    if ((commands & JZI_ACTOR_START) != 0) {
        actor->flags &= ~JZI_ACTOR_HALT;
    } else if ((commands & JZI_ACTOR_HALT) != 0) {
        actor->flags &= ~JZI_ACTOR_START;
    }
    actor->flags |= commands & ORDERS;
    if ((commands & JZI_ACTOR_HALT) != 0 && timeout_ms == JZX_SHUTDOWN_BRUTAL) {
        actor->flags |= JZI_ACTOR_KILLED;
    } else if ((commands & (JZI_ACTOR_HALT | JZI_ACTOR_RESTART)) != 0) {
        jzi_life_set_deadline(worker, actor, timeout_ms, parent_deadline_ns);
    }
    jzi_lifecycle_wake(worker, actor);
}

void jzi_lifecycle_fail_with(jzi_worker *worker, jzi_actor *actor, const jzx_reason *reason)
{
    if ((actor->flags & JZI_ACTOR_LINKED) == 0) { /* the first failure is the reason */
        actor->cold->life->linked = *reason;
        actor->flags |= JZI_ACTOR_LINKED;
    }
    jzi_lifecycle_wake(worker, actor);
}

/* An actor that is RUNNING, or not yet started. */
static void obey_running(jzi_worker *worker, jzi_actor *actor)
{
    uint32_t flags = actor->flags;
    bool created = jzi_actor_state_of(actor) == JZX_STATE_CREATED;
    if ((flags & JZI_ACTOR_KILL) != 0 || (created && (flags & JZI_ACTOR_STOP) != 0)) {
        bool kill = (flags & JZI_ACTOR_KILL) != 0;
        actor->flags &= ~(JZI_ACTOR_KILL | JZI_ACTOR_START);
        actor->flags |= JZI_ACTOR_KILLED;
        jzi_worker_set_reason(worker, kill ? JZX_REASON_KILLED : JZX_REASON_SHUTDOWN, 0, NULL);
        if (created || (flags & JZI_ACTOR_FINISH) != 0) {
            actor->flags &= ~JZI_ACTOR_STOP;
            jzi_life_end_for_good(worker, actor);
        } else {
            jzi_life_fail(worker, actor); /* and a stop, if there is one, wins over the restart */
        }
    } else if ((flags & JZI_ACTOR_LINKED) != 0 && !created) {
        actor->flags &= ~JZI_ACTOR_LINKED;
        worker->reason = actor->cold->life->linked;
        jzi_life_fail(worker, actor);
    } else if ((flags & JZI_ACTOR_LATE) != 0 && (flags & JZI_ACTOR_DEFERRED) != 0) {
        actor->flags &= ~(JZI_ACTOR_LATE | JZI_ACTOR_STOP);
        actor->flags |= JZI_ACTOR_KILLED;
        jzi_worker_set_reason(worker, JZX_REASON_STOP_TIMEOUT, 0, "deferred its stop for too long");
        jzi_life_note_failure(worker, actor);
        jzi_life_end(worker, actor);
    } else if ((flags & JZI_ACTOR_LATE) != 0 && (flags & JZI_ACTOR_DRAIN) != 0) {
        actor->flags &= ~(JZI_ACTOR_LATE | JZI_ACTOR_DRAIN);
        actor->flags |= JZI_ACTOR_KILLED;
        jzi_worker_set_reason(worker, JZX_REASON_STOP_TIMEOUT, 0, "did not drain in time");
        jzi_life_note_failure(worker, actor);
        jzi_life_end(worker, actor);
    } else if ((flags & JZI_ACTOR_STOP) != 0) {
        actor->flags &= ~JZI_ACTOR_STOP;
        jzi_worker_set_reason(worker, JZX_REASON_SHUTDOWN, 0, NULL);
        jzi_life_leave(worker, actor);
    } else if ((flags & JZI_ACTOR_HALT) != 0) {
        actor->flags &= ~(JZI_ACTOR_HALT | JZI_ACTOR_START);
        if ((flags & JZI_ACTOR_DEFERRED) != 0) {
            return; /* the actor is stopping already, in its own time, and says when it is done */
        }
        if (created) {
            jzi_life_set_step(actor, JZI_STEP_DOWN);
            jzi_parent_tell(worker, actor, JZI_CHILD_EVENT_DOWN);
            return;
        }
        jzi_worker_set_reason(worker, JZX_REASON_SHUTDOWN, 0, NULL);
        jzi_life_move(worker, actor, JZX_LIFE_STOP);
        jzi_life_begin_restart(worker, actor, JZI_AFTER_DOWN);
    } else if (created && (flags & JZI_ACTOR_START) != 0) {
        jzi_life_start(worker, actor);
    }
}

/* A supervisor that is starting its children. */
static void obey_starting(jzi_worker *worker, jzi_actor *actor)
{
    uint32_t flags = actor->flags;
    if ((flags & (JZI_ACTOR_KILL | JZI_ACTOR_STOP | JZI_ACTOR_HALT)) == 0) {
        worker->hook_result = JZX_BEHAVIOR_OK;
        jzi_life_advance(worker, actor);
        return;
    }
    bool kill = (flags & JZI_ACTOR_KILL) != 0;
    bool halt = (flags & (JZI_ACTOR_KILL | JZI_ACTOR_STOP)) == 0;
    actor->flags &= ~(JZI_ACTOR_KILL | JZI_ACTOR_STOP | JZI_ACTOR_HALT | JZI_ACTOR_START);
    actor->flags |= kill ? JZI_ACTOR_KILLED : 0;
    jzi_worker_set_reason(worker, kill ? JZX_REASON_KILLED : JZX_REASON_SHUTDOWN, 0, NULL);
    jzi_life_move(worker, actor, JZX_LIFE_STOP);
    jzi_life_clean_up(worker, actor, halt ? JZI_AFTER_DOWN : JZI_AFTER_END);
}

/* An actor that failed and waits for a decision. A stop ends the actor, and the failure stays the
 * reason. */
static void obey_failed(jzi_worker *worker, jzi_actor *actor)
{
    uint32_t flags = actor->flags;
    if ((flags & (JZI_ACTOR_KILL | JZI_ACTOR_STOP)) != 0) {
        actor->flags &= ~(JZI_ACTOR_KILL | JZI_ACTOR_STOP | ORDERS);
        actor->flags |= (flags & JZI_ACTOR_KILL) != 0 ? JZI_ACTOR_KILLED : 0;
        jzi_life_end_for_good(worker, actor);
    } else if ((flags & (JZI_ACTOR_RESTART | JZI_ACTOR_HALT)) != 0) {
        bool again = (flags & (JZI_ACTOR_START | JZI_ACTOR_HALT)) == JZI_ACTOR_START;
        actor->flags &= ~ORDERS;
        jzi_life_move(worker, actor, JZX_LIFE_RESTART);
        jzi_life_begin_restart(worker, actor, again ? JZI_AFTER_AGAIN : JZI_AFTER_DOWN);
    } else if ((flags & JZI_ACTOR_RESUME) != 0) {
        jzi_worker_forget_redelivery(worker, actor);
        jzi_features_resume(worker, actor);
        actor->flags &= ~(JZI_ACTOR_RESUME | JZI_ACTOR_FROZEN);
        jzi_life_move(worker, actor, JZX_LIFE_RESUME);
        jzi_life_set_step(actor, JZI_STEP_NONE);
        jzi_life_tell_room(worker, actor);
    }
}

/* An actor that waits for its children to end. */
static void obey_children(jzi_worker *worker, jzi_actor *actor)
{
    uint32_t flags = actor->flags;
    jzi_life *life = actor->cold->life;
    actor->flags &= ~(JZI_ACTOR_KILL | JZI_ACTOR_STOP | JZI_ACTOR_HALT | JZI_ACTOR_LATE);
    bool stop = (flags & (JZI_ACTOR_KILL | JZI_ACTOR_STOP)) != 0;
    if (stop && ((flags & JZI_ACTOR_FINISH) != 0 || life->after != JZI_AFTER_EXIT)) {
        life->after = JZI_AFTER_END; /* a stop wins over a restart */
        actor->flags |= JZI_ACTOR_FINISH;
        jzi_life_close_gate(worker, actor);
        actor->flags &= ~ORDERS;
        if (jzi_actor_state_of(actor) == JZX_STATE_RESTARTING) {
            jzi_life_move(worker, actor, JZX_LIFE_STOP);
        }
    }
    if ((flags & JZI_ACTOR_HALT) != 0 && life->after != JZI_AFTER_END) {
        life->after = JZI_AFTER_DOWN;
    }
    if ((flags & (JZI_ACTOR_KILL | JZI_ACTOR_LATE)) != 0 &&
        (actor->flags & JZI_ACTOR_KILLED) == 0) {
        actor->flags |= JZI_ACTOR_KILLED;
        if (worker->reason.kind <= JZX_REASON_SHUTDOWN) {
            bool late = (flags & JZI_ACTOR_LATE) != 0;
            jzi_worker_set_reason(worker, late ? JZX_REASON_STOP_TIMEOUT : JZX_REASON_KILLED, 0,
                                  late ? "its children did not stop in time" : NULL);
        }
        if (life->child_count > 0) {
            jzi_life_stop_children(worker, actor, true);
        }
    }
    jzi_life_advance(worker, actor);
}

/* An actor that is clean. */
static void obey_down(jzi_worker *worker, jzi_actor *actor)
{
    uint32_t flags = actor->flags;
    if ((flags & (JZI_ACTOR_KILL | JZI_ACTOR_STOP)) != 0) {
        bool kill = (flags & JZI_ACTOR_KILL) != 0;
        if (worker->reason.kind <= JZX_REASON_SHUTDOWN) { /* else its failure is the reason */
            jzi_worker_set_reason(worker, kill ? JZX_REASON_KILLED : JZX_REASON_SHUTDOWN, 0, NULL);
        }
        jzi_life_close_gate(worker, actor);
        if (jzi_actor_state_of(actor) != JZX_STATE_STOPPED) {
            jzi_life_move(worker, actor, JZX_LIFE_STOP);
        }
        jzi_life_move(worker, actor, JZX_LIFE_END);
        jzi_incarnation_release(worker, actor); /* what a stop just armed */
        jzi_life_finish(worker, actor);
    } else if ((flags & JZI_ACTOR_HALT) != 0) {
        actor->flags &= ~(JZI_ACTOR_HALT | JZI_ACTOR_START); /* the start was taken back */
        jzi_parent_tell(worker, actor, JZI_CHILD_EVENT_DOWN);
    } else if ((flags & JZI_ACTOR_START) != 0) {
        jzi_life_start(worker, actor);
    }
}

static void obey(jzi_worker *worker, jzi_actor *actor)
{
    jzi_step step = (jzi_step)jzi_actor_step_of(actor);
    jzi_life *life = jzi_life_of(actor);
    actor->flags &= ~JZI_ACTOR_LIFE;
    if (life != NULL && step != JZI_STEP_NONE) {
        worker->reason = life->reason;
        worker->failed_on = life->failed_on;
    }
    /* While the actor is FAILED nothing runs, not even what it does for its children; and once the
     * actor is to stop itself, no child is restarted any more. */
    const uint32_t orders = JZI_ACTOR_STOP | JZI_ACTOR_KILL | JZI_ACTOR_LINKED | JZI_ACTOR_HALT;
    bool last_orders =
        (step == JZI_STEP_NONE || step == JZI_STEP_CHILDREN_START) && (actor->flags & orders) != 0;
    /* While destroying nothing is decided: only the ends of children count. */
    bool destroying = worker->dispatcher->destroying;
    if ((actor->flags & JZI_ACTOR_CHILD_EVENTS) != 0 &&
        (destroying || (step != JZI_STEP_FAILED && !last_orders))) {
        actor->flags &= ~JZI_ACTOR_CHILD_EVENTS;
        if (!destroying && life->children != NULL) {
            worker->dispatcher->children->events(worker, actor);
        }
        actor->flags &= ~JZI_ACTOR_LIFE;
    }
    switch (step) {
    case JZI_STEP_NONE:
        obey_running(worker, actor);
        break;
    case JZI_STEP_CHILDREN_START:
        obey_starting(worker, actor);
        break;
    case JZI_STEP_FAILED:
        obey_failed(worker, actor);
        break;
    case JZI_STEP_CHILDREN_END:
        obey_children(worker, actor);
        break;
    case JZI_STEP_DOWN:
        obey_down(worker, actor);
        break;
    default:
        /* Every other step is left within the call that entered it, if that call returns. */
        jzi_assert(worker->dispatcher->abandoned);
        worker->hook_result = JZX_BEHAVIOR_FAIL;
        jzi_life_advance(worker, actor);
    }
}

/* What an actor would do something about in its next turn. */
static uint32_t obeyed(const jzi_actor *actor)
{
    const uint32_t end = JZI_ACTOR_KILL | JZI_ACTOR_STOP;
    switch ((jzi_step)jzi_actor_step_of(actor)) {
    case JZI_STEP_NONE:
        if (jzi_actor_state_of(actor) == JZX_STATE_CREATED) {
            return end | JZI_ACTOR_HALT | JZI_ACTOR_START;
        }
        return end | JZI_ACTOR_LINKED | JZI_ACTOR_CHILD_EVENTS | JZI_ACTOR_HALT |
               ((actor->flags & (JZI_ACTOR_DEFERRED | JZI_ACTOR_DRAIN)) != 0 ? JZI_ACTOR_LATE : 0);
    case JZI_STEP_CHILDREN_START:
        return end | JZI_ACTOR_HALT | JZI_ACTOR_CHILD_EVENTS;
    case JZI_STEP_FAILED:
        return end | JZI_ACTOR_HALT | JZI_ACTOR_RESTART | JZI_ACTOR_RESUME;
    case JZI_STEP_CHILDREN_END:
        return end | JZI_ACTOR_HALT | JZI_ACTOR_LATE | JZI_ACTOR_CHILD_EVENTS;
    case JZI_STEP_DOWN:
        return end | JZI_ACTOR_HALT | JZI_ACTOR_START;
    default:
        return 0;
    }
}

/* What was commanded while the actor was worked on waits for its next turn. */
static void finish_run(jzi_worker *worker)
{
    jzi_actor *actor = worker->current;
    if (actor != NULL && (actor->flags & obeyed(actor)) != 0) {
        actor->flags |= JZI_ACTOR_LIFE;
    }
    jzi_life_settle(worker);
}

void jzi_lifecycle_run(jzi_worker *worker, jzi_actor *actor)
{
    if (worker->outcome == JZI_OUTCOME_STOP && jzi_life_end_at_once(worker, actor)) {
        return; /* most ends are that simple */
    }
    worker->current = actor;
    actor->flags |= jzi_unlikely(worker->pooled) ? JZI_ACTOR_QUEUED : 0;
    if (worker->outcome == JZI_OUTCOME_LIFE) {
        obey(worker, actor);
    } else if (worker->outcome == JZI_OUTCOME_FAIL) {
        jzi_life_fail(worker, actor);
    } else {
        jzi_life_leave(worker, actor);
    }
    finish_run(worker);
}

void jzi_lifecycle_panicked(jzi_worker *worker)
{
    if (jzi_unlikely(worker->pooled)) {
        while (worker->pool_lock_depth > 0) { /* a crash inside of a call, not a panic */
            jzi_worker_unlock_pool(worker);
        }
        if (worker->phase == JZI_PHASE_BEHAVIOR) {
            jzi_worker_drop_in_hand(worker);
        }
        jzi_user_code_ends(worker);
        worker->current->flags &= ~JZI_ACTOR_LIFE;
    }
    if (worker->phase == JZI_PHASE_BEHAVIOR) {
        jzi_lifecycle_run(worker, jzi_worker_panicked(worker));
        return;
    }
    jzi_actor *actor = worker->current;
    actor->state = worker->ctx.state;
    JZI_PUBLISH_HOT(worker->ctx.self, JZX_NOBODY);
    JZI_PUBLISH_HOT(worker->phase, JZI_PHASE_NONE);
    worker->hook_result = JZX_BEHAVIOR_FAIL;
    jzi_life_advance(worker, actor);
    finish_run(worker);
}

void jzi_lifecycle_kill_all(jzi_worker *worker)
{
    uint32_t made = atomic_load_explicit(&worker->table->made, memory_order_relaxed);
    for (uint32_t slot = made; slot-- > 0;) {
        jzi_actor *actor = jzi_actor_table_at(worker->table, slot);
        if ((jzi_actor_gate(actor) & JZI_GATE_PINS) == JZI_GATE_PIN) { /* the unborn follow */
            jzi_life_close_gate(worker, actor);
            actor->flags |= JZI_ACTOR_KILL | JZI_ACTOR_FINISH;
            jzi_lifecycle_wake(worker, actor);
        }
    }
}
