/* What the observer and the log are told of lives: starts, transitions, failures, restarts, ends.
 */
#include "lifecycle/lifecycle_priv.h"

#include "actor/log.h"
#include "sched/worker_record.h"

static uint32_t incarnation_of(const jzi_actor *actor)
{
    const jzi_life *life = jzi_life_of(actor);
    return life == NULL ? 1 : life->incarnation;
}

void jzi_observer_tell_move(const jzi_worker *worker, const jzi_actor *actor, uint32_t from,
                            uint32_t to)
{
    const jzi_observer *observer = &worker->dispatcher->observer;
    jzx_transition_event event = {
        .id = actor->id,
        .name = jzi_actor_name(actor),
        .time_ns = worker->now_ns,
        .from = from,
        .to = to,
        .incarnation = incarnation_of(actor),
    };
    observer->on.on_transition(observer->ctx, &event);
}

void jzi_observer_tell_plain_end(const jzi_worker *worker, const jzi_actor *actor)
{
    uint32_t from = JZX_STATE_RUNNING;
    bool failed = !jzx_reason_is_normal(worker->reason.kind);
    if (failed && (actor->flags & JZI_ACTOR_FINISH) == 0) {
        jzi_observer_tell_move(worker, actor, from, JZX_STATE_FAILED);
        from = JZX_STATE_FAILED;
    }
    jzi_observer_tell_move(worker, actor, from, JZX_STATE_STOPPING);
    jzi_observer_tell_move(worker, actor, JZX_STATE_STOPPING, JZX_STATE_TERMINATED);
}

void jzi_observer_tell_start(const jzi_worker *worker, const jzi_actor *actor)
{
    const jzi_observer *observer = &worker->dispatcher->observer;
    jzi_log *log = jzi_dispatcher_log(worker->dispatcher);
    if (log != NULL) {
        jzi_log_start(log, worker->now_ns, actor->id, jzi_actor_name(actor));
    }
    if (observer->on.on_actor_start != NULL) {
        observer->on.on_actor_start(observer->ctx, actor->id, jzi_actor_name(actor));
    }
}

void jzi_observer_tell_birth(const jzi_worker *worker, const jzi_actor *actor)
{
    const jzi_observer *observer = &worker->dispatcher->observer;
    if (observer->on.on_actor_spawn != NULL) {
        observer->on.on_actor_spawn(observer->ctx, actor->id, jzi_actor_name(actor));
    }
    if (jzi_actor_state_of(actor) != JZX_STATE_RUNNING) {
        return; /* the actor has something to start */
    }
    if (jzi_dispatcher_sees(worker->dispatcher, JZI_SEES_MOVES)) {
        jzi_observer_tell_move(worker, actor, JZX_STATE_CREATED, JZX_STATE_STARTING);
        jzi_observer_tell_move(worker, actor, JZX_STATE_STARTING, JZX_STATE_RUNNING);
    }
    jzi_observer_tell_start(worker, actor);
}

void jzi_observer_tell_end(const jzi_worker *worker, jzx_actor_id id, const char *name)
{
    const jzi_observer *observer = &worker->dispatcher->observer;
    jzi_log *log = jzi_dispatcher_log(worker->dispatcher);
    if (log != NULL) {
        jzi_log_end(log, worker->now_ns, id, name, &worker->reason);
    }
    if (observer->on.on_actor_stop != NULL) {
        observer->on.on_actor_stop(observer->ctx, id, name, &worker->reason);
    }
}

void jzi_observer_tell_restart(jzi_worker *worker, const jzi_actor *actor)
{
    const jzi_life *life = actor->cold->life;
    const jzi_observer *observer = &worker->dispatcher->observer;
    jzi_log *log = jzi_dispatcher_log(worker->dispatcher);
    life->child_link->restarts++;
    jzi_count_add(&worker->counters.restarts, 1);
    if (jzi_unlikely(worker->recording)) {
        jzi_worker_note(worker, JZI_RING_RESTART, actor->id, jzi_lifecycle_parent(worker, actor), 0,
                        life->incarnation, 0);
    }
    jzx_restart_event event = {
        .id = actor->id,
        .supervisor = jzi_lifecycle_parent(worker, actor),
        .name = jzi_actor_name(actor),
        .cause = &worker->reason,
        .uptime_ns = life->child_link->uptime_ns,
        .attempt = life->child_link->attempt,
        .incarnation = life->incarnation,
        .delay_ms = life->child_link->delay_ms,
    };
    if (log != NULL) {
        jzi_log_restart(log, worker->now_ns, &event);
    }
    if (observer->on.on_restart != NULL) {
        observer->on.on_restart(observer->ctx, &event);
    }
    if (observer->on.on_actor_restart != NULL) {
        observer->on.on_actor_restart(observer->ctx, actor->id, (int)life->child_link->attempt);
    }
}

static void tell_failure(const jzi_worker *worker, const jzi_actor *actor)
{
    const jzi_observer *observer = &worker->dispatcher->observer;
    jzi_log *log = jzi_dispatcher_log(worker->dispatcher);
    jzx_failure_event event = {
        .id = actor->id,
        .parent = jzi_lifecycle_parent(worker, actor),
        .name = jzi_actor_name(actor),
        .reason = &worker->reason,
        .time_ns = worker->now_ns,
        .failed_on = worker->failed_on,
        .incarnation = incarnation_of(actor),
        .state = jzi_actor_state_of(actor),
    };
    if (log != NULL) {
        jzi_log_failure(log, &event, jzi_worker_name(worker, event.failed_on.sender));
    }
    if (observer->on.on_failure != NULL) {
        observer->on.on_failure(observer->ctx, &event);
    }
}

/* An incarnation failed, or a hook did while it ended. */
void jzi_life_note_failure(jzi_worker *worker, jzi_actor *actor)
{
    const jzi_observer *observer = &worker->dispatcher->observer;
    jzi_count_add(&worker->counters.failures, 1);
    worker->failed_on = worker->failed.actor == actor->id ? worker->failed.on : (jzx_failed_on){0};
    if (jzi_unlikely(worker->recording)) {
        jzi_life_keep_failure(worker, actor);
    }
    worker->failed.actor = JZX_NOBODY;
    worker->failed.thrown = JZI_THROWN_NOT;
    if (observer->on.on_failure != NULL || jzi_dispatcher_log(worker->dispatcher) != NULL) {
        tell_failure(worker, actor);
    }
    if (observer->on.on_actor_fail != NULL) {
        observer->on.on_actor_fail(observer->ctx, actor->id, jzi_actor_name(actor),
                                   &worker->reason);
    }
}
