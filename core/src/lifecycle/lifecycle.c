/* Starting, stopping, failing, restarting: the procedures and their steps (R14, R15, R16, R18). */
#include "lifecycle/lifecycle_priv.h"
#include "lifecycle/monitor.h"
#include "sched/worker_record.h"

void jzi_life_move(jzi_worker *worker, jzi_actor *actor, jzx_life_event event)
{
    uint32_t from = jzi_actor_state_of(actor);
    int state = jzx_lifecycle_next(from, (uint32_t)event);
    jzi_assert(state >= 0);
    jzi_actor_set_history(actor, jzi_history_add(jzi_actor_history(actor), (uint32_t)state));
    actor->flags = (actor->flags & ~(7u << JZI_ACTOR_STATE_SHIFT)) | (uint32_t)state
                                                                         << JZI_ACTOR_STATE_SHIFT;
    if (jzi_unlikely(jzi_dispatcher_sees(worker->dispatcher, JZI_SEES_MOVES))) {
        jzi_observer_tell_move(worker, actor, from, (uint32_t)state);
    }
}

void jzi_lifecycle_wake(jzi_worker *worker, jzi_actor *actor)
{
    if ((actor->flags & JZI_ACTOR_LIFE) != 0) {
        return;
    }
    actor->flags |= JZI_ACTOR_LIFE;
    if ((actor->flags & JZI_ACTOR_FROZEN) == 0) {
        jzi_worker_schedule(worker, actor);
    } else if (actor != worker->current) {
        jzi_worker_enqueue(worker, actor);
    }
}

/* Back to the scheduler: the current actor goes into the ring if there is more to do. */
void jzi_life_settle(jzi_worker *worker)
{
    jzi_actor *actor = worker->current;
    worker->current = NULL;
    JZI_PUBLISH_HOT(worker->ctx.self, JZX_NOBODY);
    JZI_PUBLISH_HOT(worker->phase, JZI_PHASE_NONE);
    if (actor == NULL) {
        return; /* the actor ended */
    }
    jzi_life *life = jzi_life_of(actor);
    if (life != NULL && jzi_actor_step_of(actor) != JZI_STEP_NONE) {
        life->reason = worker->reason;
        life->failed_on = jzi_failed_on_of(worker);
    }
    if ((actor->flags & JZI_ACTOR_FROZEN) != 0) {
        if ((actor->flags & JZI_ACTOR_LIFE) != 0) {
            jzi_worker_enqueue(worker, actor);
        }
        return;
    }
    bool aside = actor->events != NULL || actor->urgent != NULL || actor->notices != NULL ||
                 (actor->flags & (JZI_ACTOR_LIFE | JZI_ACTOR_DRAIN)) != 0;
    actor->flags = aside ? actor->flags | JZI_ACTOR_QUEUED : actor->flags & ~JZI_ACTOR_QUEUED;
    if (aside || actor->user != NULL) {
        jzi_worker_enqueue(worker, actor);
    }
}

/* Hooks. What they return, or FAIL if they panic, is in worker->hook_result at the next step. */
static void before_hook(jzi_worker *worker, jzi_actor *actor, jzi_phase phase)
{
    worker->hook_result = JZX_BEHAVIOR_FAIL;
    JZI_PUBLISH_HOT(worker->phase, (uint32_t)phase);
    JZI_PUBLISH_HOT(worker->in_hand, NULL);
    worker->ctx.state = actor->state;
    JZI_PUBLISH_HOT(worker->ctx.self, actor->id);
    worker->reason_by = JZX_NOBODY;
    if (jzi_unlikely(worker->pooled)) {
        /* Both flags say that this worker will look at the actor, so no other worker queues it
         * meanwhile. Commands have bits of their own, and finish_run() looks for those. */
        actor->flags |= JZI_ACTOR_LIFE | JZI_ACTOR_QUEUED;
    }
    jzi_user_code_begins(worker);
}

static void after_hook(jzi_worker *worker, jzi_actor *actor, jzx_behavior_result result)
{
    jzi_user_code_ends(worker);
    actor->flags &= jzi_unlikely(worker->pooled) ? ~JZI_ACTOR_LIFE : ~0u;
    actor->state = worker->ctx.state;
    JZI_PUBLISH_HOT(worker->ctx.self, JZX_NOBODY);
    bool leaving = worker->phase == JZI_PHASE_LEAVE || worker->phase == JZI_PHASE_DEINIT;
    JZI_PUBLISH_HOT(worker->phase, JZI_PHASE_NONE);
    worker->hook_result = (uint32_t)result;
    bool failed = result == JZX_BEHAVIOR_FAIL || (uint32_t)result > JZX_BEHAVIOR_DEFER;
    if (failed && worker->reason_by != actor->id &&
        (!leaving || worker->reason.kind <= JZX_REASON_SHUTDOWN)) {
        jzi_worker_set_reason(worker, JZX_REASON_FAILED, 0, NULL);
    }
}

/* A start signal that returns STOP wants what jzx_stop() on itself would: start, then stop. */
static void signal_self(jzi_worker *worker, jzi_actor *actor, jzx_signal_kind kind, jzi_phase phase)
{
    worker->hook_result = JZX_BEHAVIOR_OK;
    if (actor->type->on_signal == NULL || worker->dispatcher->abandoned) {
        return;
    }
    worker->signal = (jzx_signal){
        .kind = (uint32_t)kind,
        .incarnation = actor->cold->life->incarnation,
        .from = actor->id,
        .reason = &worker->reason,
    };
    before_hook(worker, actor, phase);
    after_hook(worker, actor, actor->type->on_signal(&worker->ctx, &worker->signal));
    if (phase == JZI_PHASE_START && worker->hook_result == JZX_BEHAVIOR_STOP) {
        worker->hook_result = JZX_BEHAVIOR_OK;
        jzi_lifecycle_stop(worker, actor, false);
    }
}

static bool hook_failed(const jzi_worker *worker)
{
    return worker->hook_result == JZX_BEHAVIOR_FAIL || worker->hook_result > JZX_BEHAVIOR_DEFER;
}

/* Children first; then the rest of the clean-up follows in advance(). */
void jzi_life_clean_up(jzi_worker *worker, jzi_actor *actor, jzi_after after)
{
    jzi_life *life = jzi_life_of(actor);
    actor->flags |= JZI_ACTOR_ENDING;
    actor->flags &= ~(JZI_ACTOR_DEFERRED | JZI_ACTOR_DRAIN);
    if (after == JZI_AFTER_END) {
        jzi_life_close_gate(worker, actor);
    }
    jzi_life_set_step(actor, JZI_STEP_CHILDREN_END);
    if (life != NULL) {
        life->after = (uint32_t)after;
        jzi_life_freeze(actor);
        if (life->child_count > 0) {
            jzi_life_arm_deadline(worker, actor);
            jzi_life_stop_children(worker, actor, (actor->flags & JZI_ACTOR_KILLED) != 0);
        }
    }
    jzi_life_advance(worker, actor);
}

/* The actor ends, for worker->reason; or, if its supervisor wants it to run again, it is cleaned up
 * and the supervisor is asked. */
void jzi_life_end(jzi_worker *worker, jzi_actor *actor)
{
    if (jzi_life_end_at_once(worker, actor)) {
        return;
    }
    jzi_life *life = jzi_life_of(actor);
    const jzi_child_link *child_link = life == NULL ? NULL : life->child_link;
    bool again = child_link != NULL && (actor->flags & JZI_ACTOR_FINISH) == 0 &&
                 jzi_policy_wants(child_link->mode, worker->reason.kind);
    jzi_life_move(worker, actor, JZX_LIFE_STOP);
    jzi_life_clean_up(worker, actor, again ? JZI_AFTER_EXIT : JZI_AFTER_END);
}

void jzi_life_end_for_good(jzi_worker *worker, jzi_actor *actor)
{
    if (jzi_life_end_at_once(worker, actor)) {
        return;
    }
    actor->flags |= JZI_ACTOR_FINISH;
    jzi_life_move(worker, actor, JZX_LIFE_STOP);
    jzi_life_clean_up(worker, actor, JZI_AFTER_END);
}

/* A stop in good order: PRE_STOP, which may ask for time, then the end. */
void jzi_life_leave(jzi_worker *worker, jzi_actor *actor)
{
    if (actor->type->on_signal == NULL || (actor->flags & JZI_ACTOR_DEFERRED) != 0) {
        jzi_life_end(worker, actor);
        return;
    }
    jzi_life_freeze(actor);
    jzi_life_set_step(actor, JZI_STEP_PRE_STOPPED);
    signal_self(worker, actor, JZX_SIGNAL_PRE_STOP, JZI_PHASE_LEAVE);
    jzi_life_advance(worker, actor);
}

/* PRE_STOP returned. */
static void pre_stopped(jzi_worker *worker, jzi_actor *actor)
{
    jzi_life *life = actor->cold->life;
    if ((actor->flags & JZI_ACTOR_KILL) != 0) {
        actor->flags = (actor->flags & ~JZI_ACTOR_KILL) | JZI_ACTOR_KILLED;
        jzi_worker_set_reason(worker, JZX_REASON_KILLED, 0, NULL);
        jzi_life_end(worker, actor);
        return;
    }
    if (worker->hook_result != JZX_BEHAVIOR_DEFER) {
        if (hook_failed(worker)) {
            jzi_life_note_failure(worker, actor);
        }
        jzi_life_end(worker, actor);
        return;
    }
    life->reason = worker->reason;
    jzi_life_close_gate(worker, actor);
    jzi_life_set_step(actor, JZI_STEP_NONE);
    actor->flags |= JZI_ACTOR_DEFERRED;
    actor->flags &= ~JZI_ACTOR_FROZEN;
    jzi_life_set_deadline(worker, actor, actor->type->stop_timeout_ms, UINT64_MAX);
    jzi_life_arm_deadline(worker, actor);
}

/* R18: clean up to be started again. */
void jzi_life_begin_restart(jzi_worker *worker, jzi_actor *actor, jzi_after after)
{
    jzi_worker_redeliver(actor);
    actor->cold->life->after = (uint32_t)after;
    jzi_life_freeze(actor);
    jzi_life_set_step(actor, JZI_STEP_PRE_RESTARTED);
    worker->hook_result = JZX_BEHAVIOR_OK;
    if ((actor->flags & JZI_ACTOR_KILLED) == 0) {
        signal_self(worker, actor, JZX_SIGNAL_PRE_RESTART, JZI_PHASE_LEAVE);
    }
    jzi_life_advance(worker, actor);
}

static uint32_t incarnation_of(const jzi_actor *actor)
{
    const jzi_life *life = jzi_life_of(actor);
    return life == NULL ? 1 : life->incarnation;
}

/* The incarnation failed, for worker->reason. */
void jzi_life_fail(jzi_worker *worker, jzi_actor *actor)
{
    jzi_life *life = jzi_life_of(actor);
    jzi_life_note_failure(worker, actor);
    if ((actor->flags & JZI_ACTOR_ENDING) != 0) {
        jzi_life_advance(worker, actor);
        return;
    }
    if (actor->cold != NULL) {
        jzi_monitor_break_links(worker, actor, incarnation_of(actor), &worker->reason);
    }
    actor->flags &= ~JZI_ACTOR_LINKED;
    if (actor->cold != NULL || actor->type->deinit != NULL) {
        jzi_life_move(worker, actor, JZX_LIFE_FAIL);
    }
    if (life == NULL || life->child_link == NULL || (actor->flags & JZI_ACTOR_FINISH) != 0) {
        jzi_life_end_for_good(worker, actor);
        return;
    }
    if ((actor->flags & (JZI_ACTOR_DEFERRED | JZI_ACTOR_KILLED)) == JZI_ACTOR_DEFERRED) {
        jzi_life_end(worker, actor); /* an actor that was stopping cannot be resumed */
        return;
    }
    jzi_life_freeze(actor);
    jzi_life_set_step(actor, JZI_STEP_FAILED);
    actor->flags &= ~(JZI_ACTOR_DEFERRED | JZI_ACTOR_RESTART | JZI_ACTOR_START | JZI_ACTOR_RESUME);
    if ((actor->flags & JZI_ACTOR_DRAIN) != 0) {
        actor->flags &= ~JZI_ACTOR_DRAIN; /* there is nothing to wait for any more */
        actor->flags |= JZI_ACTOR_STOP;
    }
    jzi_parent_tell(worker, actor, JZI_CHILD_EVENT_FAILED);
}

void jzi_life_fail_start(jzi_worker *worker, jzi_actor *actor)
{
    jzi_life *life = actor->cold->life;
    worker->reason.kind = JZX_REASON_START_FAILED;
    jzi_life_note_failure(worker, actor);
    jzi_monitor_break_links(worker, actor, incarnation_of(actor), &worker->reason);
    jzi_life_move(worker, actor, JZX_LIFE_FAIL);
    if (life->child_link == NULL || (actor->flags & JZI_ACTOR_FINISH) != 0) {
        jzi_life_end_for_good(worker, actor);
        return;
    }
    jzi_life_move(worker, actor, JZX_LIFE_RESTART);
    jzi_life_clean_up(worker, actor, JZI_AFTER_RETRY);
}

static void drop_queue(jzi_worker *worker, jzi_actor *actor, jzi_node **lane)
{
    while (*lane != NULL) {
        jzi_node *node = jzi_lane_pop(lane);
        if ((jzi_msg_flags(&node->msg) & JZI_MSG_FOREIGN) == 0) {
            jzi_actor_unuse(actor);
        }
        jzi_worker_dead_letter(worker, actor, node, JZX_DEAD_RESTARTED);
    }
}

/* The first start, or a restart of an actor that is clean. */
void jzi_life_start(jzi_worker *worker, jzi_actor *actor)
{
    jzi_life *life = actor->cold->life;
    actor->flags &= ~(JZI_ACTOR_START | JZI_ACTOR_RESTART);
    if (jzi_actor_state_of(actor) != JZX_STATE_CREATED) {
        if (jzi_actor_state_of(actor) == JZX_STATE_STOPPED) {
            jzi_life_move(worker, actor, JZX_LIFE_RESTART);
        }
        JZI_PUBLISH_SUM(life->incarnation, 1u);
        jzi_observer_tell_restart(worker, actor);
        actor->flags &= ~(JZI_ACTOR_ENDING | JZI_ACTOR_KILLED | JZI_ACTOR_LATE | JZI_ACTOR_LINKED |
                          JZI_ACTOR_TRAP);
        if ((actor->type->flags & JZX_SPAWN_TRAP_EXITS) != 0) {
            actor->flags |= JZI_ACTOR_TRAP;
        }
    }
    JZI_PUBLISH_HOT(life->since_ns, 0);
    life->bare = true;
    jzi_life_move(worker, actor, JZX_LIFE_START);
    jzi_life_set_step(actor, JZI_STEP_INITED);
    bool builds = actor->type->init != NULL || (actor->type->flags & JZI_TYPE_SUPERVISOR) != 0;
    actor->state = builds ? NULL : life->arg;
    worker->hook_result = JZX_BEHAVIOR_OK;
    if (actor->type->init != NULL) {
        before_hook(worker, actor, JZI_PHASE_START);
        after_hook(worker, actor, actor->type->init(&worker->ctx, life->arg));
    }
    jzi_life_advance(worker, actor);
}

/* init returned. True: PRE_START follows. */
static bool inited(jzi_worker *worker, jzi_actor *actor)
{
    if (worker->hook_result == JZX_BEHAVIOR_STOP) {
        jzi_worker_set_reason(worker, JZX_REASON_NORMAL, 0, NULL);
        actor->flags |= JZI_ACTOR_KILLED; /* the actor never was: no signals */
        jzi_life_end_for_good(worker, actor);
        return false;
    }
    if (worker->hook_result != JZX_BEHAVIOR_OK) {
        jzi_life_fail_start(worker, actor);
        return false;
    }
    actor->cold->life->bare = false;
    return true;
}

/* The turn that failed did not look for senders that wait for room, and may be the last turn. */
void jzi_life_tell_room(jzi_worker *worker, jzi_actor *actor)
{
    if ((actor->flags & JZI_ACTOR_WAITERS) != 0 &&
        jzi_actor_used(actor) <= actor->type->low_water) {
        worker->dispatcher->on_room(worker, actor);
    }
}

static void running(jzi_worker *worker, jzi_actor *actor)
{
    jzi_life *life = actor->cold->life;
    jzi_life_move(worker, actor, JZX_LIFE_STARTED);
    jzi_life_set_step(actor, JZI_STEP_NONE);
    actor->flags &= ~(JZI_ACTOR_FROZEN | JZI_ACTOR_START | JZI_ACTOR_RESTART | JZI_ACTOR_RESUME);
    JZI_PUBLISH_HOT(life->since_ns, worker->now_ns | 1u);
    if (jzi_unlikely(worker->recording)) {
        jzi_worker_note(worker, JZI_RING_START, actor->id, JZX_NOBODY, 0, life->incarnation, 0);
    }
    if (!life->began) {
        life->began = true;
        jzi_observer_tell_start(worker, actor);
    }
    jzi_life_tell_room(worker, actor);
    jzi_parent_tell(worker, actor, JZI_CHILD_EVENT_STARTED);
    if (life->started != NULL) {
        jzi_started_tell(worker, actor);
    }
    if (life->incarnation > 1) {
        jzi_monitor_restarted(worker, actor, life->incarnation, &worker->reason);
    }
}

/* Notices still arrive while an actor waits for its children to end (H9). */
static void hand_over_notices(jzi_worker *worker, jzi_actor *actor)
{
    const jzi_life *life = jzi_life_of(actor);
    if (life == NULL || life->after != JZI_AFTER_END || life->since_ns == 0 ||
        worker->reason.kind > JZX_REASON_SHUTDOWN || (actor->flags & JZI_ACTOR_KILLED) != 0 ||
        worker->dispatcher->destroying) {
        return;
    }
    while (actor->notices != NULL && worker->reason.kind <= JZX_REASON_SHUTDOWN) {
        jzx_behavior_result result =
            jzi_worker_hand_over(worker, actor, jzi_lane_pop(&actor->notices));
        JZI_PUBLISH_HOT(worker->ctx.self, JZX_NOBODY);
        if (result > JZX_BEHAVIOR_STOP) {
            if (worker->reason_by != actor->id) {
                jzi_worker_set_reason(worker, JZX_REASON_FAILED, 0, NULL);
            }
            jzi_life_note_failure(worker, actor);
        }
    }
}

/* Clean: what next? */
static void cleaned(jzi_worker *worker, jzi_actor *actor)
{
    jzi_life *life = jzi_life_of(actor);
    jzi_after after = life == NULL ? JZI_AFTER_END : (jzi_after)life->after;
    jzi_relations_release(worker, actor, after != JZI_AFTER_END);
    if (after == JZI_AFTER_END && life != NULL && life->child_link != NULL &&
        (actor->flags & JZI_ACTOR_FINISH) == 0 &&
        jzi_policy_wants(life->child_link->mode, worker->reason.kind)) {
        after = JZI_AFTER_EXIT; /* a hook failed on the way: now its supervisor has a say */
        life->after = (uint32_t)after;
    }
    if (after == JZI_AFTER_END) {
        jzi_life_move(worker, actor, JZX_LIFE_END);
        jzi_life_finish(worker, actor);
        return;
    }
    jzi_life_set_step(actor, JZI_STEP_DOWN);
    actor->flags &= ~(JZI_ACTOR_HALT | JZI_ACTOR_RESTART); /* these orders are obeyed now */
    jzi_life_open_gate(worker, actor);
    if ((actor->type->flags & JZX_SPAWN_DROP_QUEUE) != 0) {
        drop_queue(worker, actor, &actor->urgent);
        drop_queue(worker, actor, &actor->user);
    }
    if (jzi_actor_state_of(actor) == JZX_STATE_STOPPING) {
        jzi_life_move(worker, actor, JZX_LIFE_HALT);
    }
    if (after == JZI_AFTER_AGAIN) {
        jzi_life_start(worker, actor);
        return;
    }
    jzi_parent_tell(worker, actor,
                    after == JZI_AFTER_EXIT    ? JZI_CHILD_EVENT_EXITED
                    : after == JZI_AFTER_RETRY ? JZI_CHILD_EVENT_START_FAILED
                                               : JZI_CHILD_EVENT_DOWN);
}

/* Goes on with the clean-up once the children are gone. */
static void advance_clean_up(jzi_worker *worker, jzi_actor *actor)
{
    const jzi_life *life = jzi_life_of(actor);
    bool signals = life != NULL && !life->bare && (actor->flags & JZI_ACTOR_KILLED) == 0;
    if (jzi_actor_step_of(actor) == JZI_STEP_CHILDREN_END) {
        hand_over_notices(worker, actor);
        if (life != NULL && life->child_count > 0) {
            return;
        }
        jzi_incarnation_release(worker, actor);
        jzi_life_set_step(actor, JZI_STEP_POST_STOPPED);
        worker->hook_result = JZX_BEHAVIOR_OK;
        if (signals) {
            signal_self(worker, actor, JZX_SIGNAL_POST_STOP, JZI_PHASE_DEINIT);
        }
    }
    if (jzi_actor_step_of(actor) == JZI_STEP_POST_STOPPED) {
        if (hook_failed(worker)) {
            jzi_life_note_failure(worker, actor);
        }
        jzi_life_set_step(actor, JZI_STEP_DEINITED);
        worker->hook_result = JZX_BEHAVIOR_OK;
        if (actor->type->deinit != NULL && !worker->dispatcher->abandoned &&
            (life == NULL || !life->bare)) {
            before_hook(worker, actor, JZI_PHASE_DEINIT);
            actor->type->deinit(&worker->ctx);
            after_hook(worker, actor, JZX_BEHAVIOR_OK);
        }
    }
    if (hook_failed(worker)) {
        jzi_life_note_failure(worker, actor);
    }
    cleaned(worker, actor);
}

/* Goes on where the last hook returned or panicked, as far as possible. */
void jzi_life_advance(jzi_worker *worker, jzi_actor *actor)
{
    switch ((jzi_step)jzi_actor_step_of(actor)) {
    case JZI_STEP_INITED:
        if (!inited(worker, actor)) {
            return;
        }
        jzi_life_set_step(actor, JZI_STEP_PRE_STARTED);
        signal_self(worker, actor, JZX_SIGNAL_PRE_START, JZI_PHASE_START);
        /* fall through */
    case JZI_STEP_PRE_STARTED:
        if (worker->hook_result != JZX_BEHAVIOR_OK ||
            ((actor->type->flags & JZI_TYPE_SUPERVISOR) != 0 &&
             !worker->dispatcher->children->start(worker, actor))) {
            jzi_life_fail_start(worker, actor);
            return;
        }
        jzi_life_set_step(actor, JZI_STEP_CHILDREN_START);
        /* fall through */
    case JZI_STEP_CHILDREN_START:
        if ((actor->type->flags & JZI_TYPE_SUPERVISOR) != 0) {
            int up = worker->dispatcher->children->started(worker, actor);
            if (up < 0) {
                jzi_life_fail_start(worker, actor);
            }
            if (up <= 0) {
                return;
            }
        }
        jzi_life_set_step(actor, JZI_STEP_POST_STARTED);
        signal_self(worker, actor, JZX_SIGNAL_POST_START, JZI_PHASE_START);
        /* fall through */
    case JZI_STEP_POST_STARTED:
        if (worker->hook_result != JZX_BEHAVIOR_OK) {
            jzi_life_fail_start(worker, actor);
            return;
        }
        jzi_life_set_step(actor, JZI_STEP_POST_RESTARTED);
        if (actor->cold->life->incarnation > 1) {
            signal_self(worker, actor, JZX_SIGNAL_POST_RESTART, JZI_PHASE_START);
        }
        /* fall through */
    case JZI_STEP_POST_RESTARTED:
        if (worker->hook_result != JZX_BEHAVIOR_OK) {
            jzi_life_fail_start(worker, actor);
            return;
        }
        running(worker, actor);
        return;
    case JZI_STEP_PRE_STOPPED:
        pre_stopped(worker, actor);
        return;
    case JZI_STEP_PRE_RESTARTED:
        if (hook_failed(worker)) {
            jzi_life_note_failure(worker, actor);
        }
        jzi_life_clean_up(worker, actor, (jzi_after)actor->cold->life->after);
        return;
    case JZI_STEP_CHILDREN_END:
    case JZI_STEP_POST_STOPPED:
    case JZI_STEP_DEINITED:
        advance_clean_up(worker, actor);
        return;
    case JZI_STEP_NONE:
    case JZI_STEP_FAILED:
    case JZI_STEP_DOWN:
        return;
    }
}
