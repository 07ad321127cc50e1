#include "supervision/children_priv.h"

#include "actor/log.h"
#include "base/alloc.h"
#include "base/random.h"
#include "sched/worker_record.h"

#include <stdio.h>

jzi_actor *jzi_children_self(const jzi_children *children)
{
    jzi_actor *actor = jzi_worker_find(children->dispatcher->acting, children->self);
    jzi_assert(actor != NULL);
    return actor;
}

jzi_life *jzi_children_life(const jzi_children *children)
{
    return children->self == JZX_NOBODY ? children->dispatcher->root_life
                                        : jzi_children_self(children)->cold->life;
}

void jzi_children_wake(jzi_children *children)
{
    jzi_worker *worker = children->dispatcher->acting;
    if (children->self == JZX_NOBODY) {
        worker->dispatcher->children->wake_root(worker);
        return;
    }
    jzi_actor *self = jzi_children_self(children);
    self->flags |= JZI_ACTOR_CHILD_EVENTS;
    jzi_lifecycle_wake(worker, self);
}

/* NULL: the child's actor is gone already, stopped where it lives, and only the news of its end is
 * still to be heard. Then there is no actor to give an order to. */
static jzi_actor *actor_of(const jzi_child *child)
{
    return jzi_lifecycle_child(child->children->dispatcher->acting, child->id);
}

static uint32_t shutdown_ms(const jzi_child *child, const jzi_actor *actor)
{
    return child->plan != NULL ? child->plan->spec.shutdown_ms : actor->type->stop_timeout_ms;
}

bool jzi_children_in_order(const jzi_children *children)
{
    return children->plan != NULL && children->policy.strategy != JZX_DYNAMIC;
}

void jzi_child_set_state(jzi_child *child, jzi_child_state state)
{
    bool was = child->state == JZI_CHILD_CLEANING || child->state == JZI_CHILD_ENDING;
    bool is = state == JZI_CHILD_CLEANING || state == JZI_CHILD_ENDING;
    child->state = (uint32_t)state;
    child->children->going += (uint32_t)is - (uint32_t)was;
}

/* Orders. */

void jzi_child_order_end(jzi_child *child)
{
    bool idle = child->state == JZI_CHILD_FAILED || child->state == JZI_CHILD_DOWN;
    jzi_child_set_state(child, JZI_CHILD_ENDING);
    jzi_alarm_clear(child->children->dispatcher->acting->alarms, &child->alarm);
    jzi_actor *actor = actor_of(child);
    if (actor == NULL) {
        return;
    }
    uint32_t timeout_ms = shutdown_ms(child, actor);
    if (idle && timeout_ms == JZX_SHUTDOWN_BRUTAL) {
        timeout_ms = 5000; /* the child failed: there is nothing to be brutal about */
    }
    jzi_lifecycle_finish(child->children->dispatcher->acting, actor, timeout_ms,
                         jzi_children_life(child->children)->deadline_ns);
}

static void order_clean(jzi_child *child, uint32_t command)
{
    bool again = (command & JZI_ACTOR_START) != 0;
    jzi_child_set_state(child, again ? JZI_CHILD_STARTING : JZI_CHILD_CLEANING);
    jzi_actor *actor = actor_of(child);
    if (actor != NULL) {
        jzi_lifecycle_order(child->children->dispatcher->acting, actor, command,
                            shutdown_ms(child, actor),
                            jzi_children_life(child->children)->deadline_ns);
    }
}

static void order_simply(jzi_child *child, uint32_t command)
{
    jzi_actor *actor = actor_of(child);
    if (actor != NULL) {
        jzi_lifecycle_order(child->children->dispatcher->acting, actor, command, 0, UINT64_MAX);
    }
}

static void order_start(jzi_child *child)
{
    jzi_child_set_state(child, JZI_CHILD_STARTING);
    order_simply(child, JZI_ACTOR_START);
}

/* The parent's turn is asked for by news of the child, here that the child's time has come. */
static void due(jzi_alarms *alarms, jzi_alarm *alarm)
{
    jzi_child *child = jzi_container_of(alarm, jzi_child, alarm);
    (void)alarms;
    jzi_child_event_add(jzi_children_life(child->children), &child->child_link,
                        JZI_CHILD_EVENT_DUE);
    jzi_children_wake(child->children);
}

static void group_due(jzi_alarms *alarms, jzi_alarm *alarm)
{
    jzi_children *children = jzi_container_of(alarm, jzi_children, alarm);
    (void)alarms;
    children->due_ns = 0;
    jzi_children_wake(children);
}

/* Starts a child by itself: now, or when its backoff is over. */
void jzi_child_start_when_due(jzi_child *child)
{
    jzi_worker *worker = child->children->dispatcher->acting;
    uint64_t now = jzi_worker_clock(worker);
    if (child->due_ns > now) {
        child->alarm.fire = due;
        jzi_alarm_set(worker->alarms, &child->alarm, child->due_ns - now);
        return;
    }
    order_start(child);
}

/* The spawn of a child whose actor is gone, or never was. */
jzx_err jzi_child_spawn(jzi_child *child)
{
    jzi_worker *worker = child->children->dispatcher->acting;
    const jzx_child_spec *spec = &child->plan->spec;
    bool nested = child->plan->nested != NULL;
    jzx_spawn_opts opts = {
        .behavior = nested ? jzi_children_self(child->children)->behavior : spec->behavior,
        .state = nested ? child->plan->nested : child->arg,
        .deinit = spec->deinit,
        .drop_msg = spec->drop_msg,
        .name = child->plan->id,
        .mailbox_cap = spec->mailbox_cap,
        .low_water = spec->low_water,
        .max_msgs = spec->max_msgs,
        .full_policy = spec->full_policy,
        .init = spec->init,
        .on_signal = spec->on_signal,
        .redirect_to = spec->redirect_to,
        .drain = spec->drain,
        .stop_timeout_ms = spec->shutdown_ms,
        .flags = spec->flags,
        .dispatcher = spec->dispatcher,
        .redeliver_max = spec->redeliver_max,
    };
    jzi_actor *parent = jzi_children_self(child->children);
    jzi_birth birth = {.parent = parent, .child_link = &child->child_link, .supervisor = nested};
    child->child_link.events = 0;
    child->child_link.mode = spec->mode;
    jzx_err err = jzi_lifecycle_spawn(worker, &opts, &birth, &child->id);
    if (err != JZX_OK) {
        return err;
    }
    if (nested) {
        child->plan->nested->refs++; /* the actor's own, until its end */
    }
    /* A child in another dispatcher says when it is up. */
    jzi_actor *actor = jzi_worker_find(worker, child->id);
    bool up = actor != NULL && jzi_actor_state_of(actor) == JZX_STATE_RUNNING;
    jzi_child_set_state(child, up ? JZI_CHILD_UP : JZI_CHILD_STARTING);
    child->ordered = false;
    if (up) {
        JZI_PUBLISH(actor->cold->life->since_ns, jzi_worker_clock(worker));
        child->up_ns = worker->now_ns;
        child->fresh = child->manual = false;
        if (child->want == JZI_WANT_AGAIN) {
            child->want = JZI_WANT_UP;
        }
    }
    return JZX_OK;
}

/* Groups. */

static uint32_t stop_group(const jzi_child *child)
{
    return child->plan == NULL ? 0 : child->plan->spec.stop_group;
}

static bool has_to_go(const jzi_child *child)
{
    switch ((jzi_child_state)child->state) {
    case JZI_CHILD_STARTING:
    case JZI_CHILD_UP:
    case JZI_CHILD_FAILED:
        return child->want != JZI_WANT_UP;
    case JZI_CHILD_DOWN:
        return child->want == JZI_WANT_GONE;
    default:
        return false;
    }
}

/* Takes down the children that are to go: the last first and one after the other, but the children
 * of one stop group together. True: all of them are down. */
static bool take_down(jzi_children *children)
{
    bool parallel = !jzi_children_in_order(children) && children->stopping;
    for (; children->cursor != NULL; children->cursor = children->cursor->prev) {
        jzi_child *child = children->cursor;
        if (!has_to_go(child)) {
            continue;
        }
        uint32_t own = stop_group(child);
        if (children->going > 0 && !parallel && (own == 0 || own != children->going_as)) {
            return false;
        }
        children->going_as = own;
        if (child->want == JZI_WANT_GONE) {
            child->ordered = true;
            jzi_child_order_end(child);
        } else {
            order_clean(child, JZI_ACTOR_HALT);
        }
    }
    return children->going == 0;
}

static void decide(jzi_child *child);

/* The spawn of a child failed: that is a failed start. */
static void spawn_failed(jzi_child *child, jzx_err err)
{
    jzi_children *children = child->children;
    jzx_reason reason = {.kind = JZX_REASON_START_FAILED, .code = err};
    (void)snprintf(reason.text, sizeof reason.text, "%s", jzx_err_name(err));
    child->child_link.reason = reason;
    if (children->starting) {
        children->failed = true;
        children->reason = reason;
    } else {
        decide(child);
    }
}

/* Starts the group in order, one after the other. True: all are up. */
static bool start_next(jzi_children *children)
{
    for (; children->cursor != NULL; children->cursor = children->cursor->next) {
        jzi_child *child = children->cursor;
        if (child->want == JZI_WANT_AGAIN && child->state == JZI_CHILD_DOWN) {
            order_start(child);
        } else if (child->want == JZI_WANT_AGAIN && child->state == JZI_CHILD_ABSENT) {
            jzx_err err = jzi_child_spawn(child);
            if (err != JZX_OK) {
                spawn_failed(child, err);
                return false;
            }
        }
        if (child->state == JZI_CHILD_STARTING && child->want == JZI_WANT_AGAIN) {
            return false;
        }
    }
    return true;
}

void jzi_children_step(jzi_children *children)
{
    jzi_worker *worker = children->dispatcher->acting;
    if (children->over && !children->stopping) {
        return;
    }
    if (children->phase == JZI_GROUP_DOWN) {
        if (!take_down(children) || children->stopping) {
            return;
        }
        children->phase = JZI_GROUP_WAIT;
    }
    if (children->phase == JZI_GROUP_WAIT) {
        uint64_t now = jzi_worker_clock(worker);
        if (children->due_ns > now) {
            children->alarm.fire = group_due;
            jzi_alarm_set(worker->alarms, &children->alarm, children->due_ns - now);
            return;
        }
        children->phase = JZI_GROUP_UP;
        children->cursor = children->first;
    }
    if (children->phase == JZI_GROUP_UP && !children->failed && start_next(children) &&
        children->phase == JZI_GROUP_UP) {
        children->phase = JZI_GROUP_NONE;
        if (!children->starting) {
            jzi_children_judge_all(children);
        }
    }
}

/* The children that go down with a child that failed. */
static void begin_group(jzi_child *child, uint64_t delay_ns)
{
    jzi_children *children = child->children;
    uint64_t due_ns = jzi_worker_clock(children->dispatcher->acting) + delay_ns;
    if (children->phase == JZI_GROUP_NONE || due_ns > children->due_ns) {
        children->due_ns = due_ns;
    }
    children->phase = JZI_GROUP_DOWN;
    children->cursor = children->last;
    jzi_child *from = children->policy.strategy == JZX_ONE_FOR_ALL ? children->first : child;
    for (jzi_child *it = from; it != NULL; it = it->next) {
        bool temporary = it->child_link.mode == JZX_TEMPORARY;
        it->want = temporary ? JZI_WANT_GONE : JZI_WANT_AGAIN;
        if (it != child) {
            /* This child does not restart because of itself. */
            it->child_link.attempt = it->child_link.delay_ms = 0;
            jzi_alarm_clear(children->dispatcher->acting->alarms, &it->alarm);
        }
        if (children->plan == NULL && it->state == JZI_CHILD_ABSENT) {
            it->want = JZI_WANT_UP;
        }
    }
    if (child->state == JZI_CHILD_FAILED) {
        order_clean(child, JZI_ACTOR_RESTART);
    }
    jzi_children_step(children);
}

/* A failure that ends all children: the failed one first, then the others, the last first. */
static void begin_end_of_all(jzi_child *child)
{
    jzi_children *children = child->children;
    for (jzi_child *it = children->first; it != NULL; it = it->next) {
        it->want = JZI_WANT_GONE;
        jzi_alarm_clear(children->dispatcher->acting->alarms, &it->alarm);
    }
    children->phase = JZI_GROUP_DOWN;
    children->due_ns = 0;
    children->cursor = children->last;
    if (child->state != JZI_CHILD_ABSENT) {
        jzi_child_order_end(child); /* counts as an end by itself: `ordered` is not set */
    }
    jzi_children_step(children);
}

/* Decisions. */

/* Jitter is a courtesy, not a secret; the entropy is asked for when it is first needed. */
static uint32_t next_random(jzi_children *children)
{
    const jzx_env *env = children->dispatcher->acting->env;
    if (children->random == 0 &&
        env->entropy(env->ctx, &children->random, sizeof children->random) != JZX_OK) {
        children->random = children->self;
    }
    return jzi_random_next(&children->random);
}

/* The parent fails because of a child; the root cannot, so the child ends. */
static void escalate(jzi_child *child, jzx_reason_kind kind)
{
    jzi_children *children = child->children;
    jzi_worker *worker = children->dispatcher->acting;
    bool root = children->self == JZX_NOBODY;
    jzi_actor *self = root ? NULL : jzi_children_self(children);
    const jzx_reason *cause = &child->child_link.reason;
    char detail[JZX_REASON_TEXT_MAX + 1];
    (void)jzx_reason_format(cause, detail, sizeof detail);
    jzx_reason reason = {.kind = (uint32_t)kind, .code = cause->code, .from = child->id};
    (void)snprintf(reason.text, sizeof reason.text, "child %s: %.36s", jzi_child_name(child),
                   detail);
    children->over = !root;
    jzi_count_add(&worker->counters.escalations, 1);
    if (jzi_unlikely(worker->recording)) {
        jzi_worker_note(worker, JZI_RING_ESCALATE, children->self, child->id, 0, (uint32_t)kind, 0);
    }
    const jzx_observer *on = &worker->dispatcher->observer.on;
    if (on->on_supervisor_escalate != NULL) {
        on->on_supervisor_escalate(worker->dispatcher->observer.ctx, children->self);
    }
    struct jzi_log *log = jzi_dispatcher_log(worker->dispatcher);
    if (on->on_escalate != NULL || log != NULL) {
        jzx_escalation_event event = {
            .supervisor = children->self,
            .child = child->id,
            .supervisor_name = root ? "root" : jzi_actor_name(self),
            .child_name = jzi_child_name(child),
            .cause = cause,
            .reason = (uint32_t)kind,
            .restarts =
                jzi_window_within(&children->window, worker->now_ns, children->policy.period_ns),
        };
        if (log != NULL) {
            jzi_log_escalation(log, worker->now_ns, &event);
        }
        if (on->on_escalate != NULL) {
            on->on_escalate(worker->dispatcher->observer.ctx, &event);
        }
    }
    if (!root) {
        jzi_lifecycle_fail_with(worker, self, &reason);
    } else if (children->policy.strategy == JZX_ONE_FOR_ALL) {
        begin_end_of_all(child);
    } else {
        child->want = JZI_WANT_GONE;
        jzi_child_order_end(child);
    }
}

/* What was cleaned up cannot go on. */
static uint32_t resumable(const jzi_child *child, uint32_t action)
{
    return action == JZX_ACTION_RESUME && child->state != JZI_CHILD_FAILED ? JZX_ACTION_RESTART
                                                                           : action;
}

static uint32_t chosen_action(jzi_child *child, uint32_t attempt)
{
    const jzi_policy *policy = &child->children->policy;
    if (policy->decide == NULL || jzx_reason_is_normal(child->child_link.reason.kind)) {
        return resumable(child, policy->action);
    }
    const jzi_actor *actor = jzi_worker_find(child->children->dispatcher->acting, child->id);
    jzx_failure failure = {
        .supervisor = child->children->self,
        .child = child->id,
        .child_id = jzi_child_name(child),
        .reason = &child->child_link.reason,
        .uptime_ns = child->child_link.uptime_ns,
        .attempt = attempt,
        .incarnation =
            actor == NULL ? child->child_link.restarts + 1 : actor->cold->life->incarnation,
        .failed_on = child->child_link.failed_on,
    };
    uint32_t action = (uint32_t)policy->decide(policy->decide_ctx, &failure);
    return resumable(child, action);
}

static void restart(jzi_child *child, uint64_t delay_ns)
{
    jzi_children *children = child->children;
    child->want = JZI_WANT_UP;
    if (children->policy.strategy == JZX_ONE_FOR_ALL ||
        children->policy.strategy == JZX_REST_FOR_ONE) {
        begin_group(child, delay_ns);
        return;
    }
    child->due_ns = delay_ns == 0 ? 0 : jzi_worker_clock(children->dispatcher->acting) + delay_ns;
    if (child->state == JZI_CHILD_FAILED) {
        order_clean(child, JZI_ACTOR_RESTART | (delay_ns == 0 ? JZI_ACTOR_START : 0));
    } else if (child->state == JZI_CHILD_ABSENT) {
        child->want = JZI_WANT_AGAIN; /* the spawn failed: as a group of its own */
        children->phase = JZI_GROUP_WAIT;
        children->due_ns = child->due_ns;
        /* The next look at the child comes by news: a lack of memory does not keep us here. */
        jzi_children_wake(children);
    } else {
        jzi_child_start_when_due(child);
    }
}

jzx_err jzi_children_restart(jzi_worker *worker, jzx_actor_id parent, jzx_actor_id child_id)
{
    const jzi_actor *self = jzi_worker_find(worker, parent);
    jzi_children *children = parent == JZX_NOBODY ? worker->dispatcher->root_life->children
                             : self == NULL       ? NULL
                                                  : jzi_children_of(self);
    if (children == NULL) {
        return self == NULL ? JZX_ERR_NO_SUCH_ACTOR : JZX_ERR_WRONG_SUPERVISOR;
    }
    jzi_child *child = jzi_children_find(worker, children, child_id);
    const jzi_actor *actor = child == NULL ? NULL : actor_of(child);
    if (actor == NULL) {
        return child == NULL ? JZX_ERR_WRONG_SUPERVISOR : JZX_ERR_NO_SUCH_ACTOR;
    }
    if (children->stopping || children->over || worker->dispatcher->destroying) {
        return JZX_ERR_STOPPING;
    }
    if (!jzi_children_can_restart(child->child_link.mode, actor)) {
        return JZX_ERR_NOT_RESTARTABLE;
    }
    if (children->starting || children->phase != JZI_GROUP_NONE || child->state != JZI_CHILD_UP ||
        child->want != JZI_WANT_UP || child->child_link.events != 0) {
        return JZX_ERR_CHILD_RESTARTING;
    }
    child->due_ns = 0;
    child->child_link.attempt = child->child_link.delay_ms = 0;
    order_clean(child, JZI_ACTOR_HALT); /* once down the child is started, as it is wanted up */
    return JZX_OK;
}

/* What follows a failure, a failed start, or an end that the child's mode does not accept. */
static void decide(jzi_child *child)
{
    jzi_children *children = child->children;
    if (children->over) {
        return; /* what becomes of the child is no longer ours to say */
    }
    uint64_t now = jzi_worker_clock(children->dispatcher->acting);
    const jzi_child_backoff *own = &child->backoff;
    bool merge =
        (own->min_ms | own->max_ms | own->reset_ms) != 0 || own->factor != 0 || own->jitter != 0;
    jzi_policy merged;
    const jzi_policy *policy = &children->policy;
    if (merge) {
        merged = jzi_policy_with(policy, own);
        policy = &merged;
    }
    bool was_up = child->child_link.reason.kind != JZX_REASON_START_FAILED;
    jzi_case it = {
        .mode = child->child_link.mode,
        .reason = child->child_link.reason.kind,
        .attempt = child->attempt,
        .up_since_ns = was_up ? now - child->child_link.uptime_ns : 0,
        .own = child->limited ? &child->own : NULL,
        .own_period_ns = child->own_period_ns,
        .random = policy->backoff.jitter > 0 ? next_random(children) : 0,
    };
    /* The attempt starts over after a quiet time, whatever the decider says. */
    jzi_verdict verdict = jzi_policy_decide(policy, &children->window, &it, now);
    it.action = chosen_action(child, verdict.attempt);
    verdict = jzi_policy_decide(policy, &children->window, &it, now);
    switch ((jzi_verdict_kind)verdict.what) {
    case JZI_VERDICT_RESTART:
        jzi_window_add(&children->window, now);
        if (it.own != NULL) {
            jzi_window_add(&child->own, now);
        }
        child->attempt = child->child_link.attempt = verdict.attempt;
        child->caused++;
        child->caused_late = verdict.delay_ns > 0;
        child->caused_ns = now;
        child->child_link.delay_ms = (uint32_t)(verdict.delay_ns / 1000000u);
        restart(child, verdict.delay_ns);
        break;
    case JZI_VERDICT_RESUME:
        jzi_child_set_state(child, JZI_CHILD_UP);
        order_simply(child, JZI_ACTOR_RESUME);
        break;
    case JZI_VERDICT_STOP:
        if (verdict.over) {
            jzi_log_limit(jzi_dispatcher_log(children->dispatcher), now, child->id,
                          jzi_child_name(child), &child->child_link.reason);
        }
        child->want = JZI_WANT_GONE;
        if (child->state != JZI_CHILD_ABSENT) {
            jzi_child_order_end(child);
        }
        break;
    case JZI_VERDICT_STOP_ALL:
        begin_end_of_all(child);
        break;
    case JZI_VERDICT_ESCALATE:
        escalate(child, JZX_REASON_ESCALATED);
        break;
    case JZI_VERDICT_GIVE_UP:
        escalate(child, JZX_REASON_GAVE_UP);
        break;
    }
}

/* A child failed, could not start, or ended by itself and is clean. */
void jzi_child_judge(jzi_child *child)
{
    jzi_children *children = child->children;
    if (children->stopping || child->want == JZI_WANT_GONE) {
        jzi_child_order_end(child);
    } else if (child->want == JZI_WANT_AGAIN && child->state == JZI_CHILD_FAILED) {
        order_clean(child, JZI_ACTOR_HALT); /* the child was to go down anyway: costs nothing */
    } else if (child->want == JZI_WANT_AGAIN &&
               child->child_link.reason.kind != JZX_REASON_START_FAILED) {
        jzi_children_step(children);
    } else if (!children->starting) {
        decide(child);
    }
}

/* Failures that had to wait until the supervisor, or a group, was up. */
void jzi_children_judge_all(jzi_children *children)
{
    for (jzi_child *child = children->first; child != NULL; child = child->next) {
        bool exited =
            child->state == JZI_CHILD_DOWN && child->want == JZI_WANT_UP && child->due_ns == 0;
        if (child->state == JZI_CHILD_FAILED || exited) {
            decide(child);
        }
    }
}
