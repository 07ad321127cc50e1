/* Children from the first to the last: the list, their events, the start and the end of all. */
#include "supervision/children_priv.h"

#include "base/alloc.h"
#include "base/list.h"

#include <stdio.h>

/* Members. */

static bool make_window(const jzx_allocator *alloc, jzi_window *window, uint32_t intensity)
{
    *window = (jzi_window){.cap = intensity};
    if (intensity == 0) {
        return true;
    }
    window->stamps = jzi_alloc(alloc, intensity * sizeof *window->stamps);
    return window->stamps != NULL;
}

static void free_window(const jzx_allocator *alloc, jzi_window *window)
{
    jzi_free(alloc, window->stamps, window->stamps == NULL ? 0 : window->cap * sizeof(uint64_t));
    *window = (jzi_window){0};
}

/* A child with a budget of its own, unless intensity is 0. */
static jzi_child *new_child(const jzx_allocator *alloc, uint32_t intensity, uint64_t period_ns)
{
    jzi_child *child = jzi_alloc_zeroed(alloc, sizeof *child);
    if (child == NULL) {
        return NULL;
    }
    if (!make_window(alloc, &child->own, intensity == JZX_INTENSITY_NEVER ? 0 : intensity)) {
        jzi_free(alloc, child, sizeof *child);
        return NULL;
    }
    child->limited = intensity != 0;
    child->own_period_ns = period_ns;
    return child;
}

static void free_child(const jzx_allocator *alloc, jzi_child *child)
{
    free_window(alloc, &child->own);
    jzi_free(alloc, child, sizeof *child);
}

static void link_child(jzi_children *children, jzi_child *child)
{
    child->children = children;
    JZI_QUEUE_APPEND(children, child);
    children->count++;
}

void jzi_children_remove(jzi_children *children, jzi_child *child)
{
    jzi_worker *worker = children->dispatcher->acting;
    jzi_assert(child->state == JZI_CHILD_ABSENT);
    JZI_QUEUE_REMOVE(children, child);
    children->count--;
    children->restarts += child->child_link.restarts;
    if (children->cursor == child) {
        children->cursor = children->phase == JZI_GROUP_DOWN ? child->prev : child->next;
    }
    jzi_alarm_clear(worker->alarms, &child->alarm);
    if (child->plan != NULL) {
        bool own_arg = children->policy.strategy == JZX_DYNAMIC;
        if (own_arg && child->plan->spec.drop_arg != NULL && child->arg != NULL &&
            !worker->dispatcher->abandoned) {
            child->plan->spec.drop_arg(child->arg);
        }
        jzi_child_plan_release(&worker->alloc, child->plan);
    }
    free_child(&worker->alloc, child);
}

jzx_err jzi_children_add(jzi_children *children, jzi_child_plan *plan, void *arg,
                         jzi_child **out_child)
{
    jzi_child *child = new_child(&children->dispatcher->acting->alloc, plan->spec.intensity,
                                 (uint64_t)plan->spec.period_ms * 1000000u);
    if (child == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    link_child(children, child);
    child->plan = plan;
    child->backoff = jzi_spec_backoff(&plan->spec);
    child->arg = arg;
    child->child_link.mode = plan->spec.mode;
    *out_child = child;
    return JZX_OK;
}

jzx_err jzi_children_start(jzi_children *children, jzi_child *child)
{
    (void)children;
    child->want = JZI_WANT_UP;
    child->due_ns = 0;
    child->forget = false;
    return jzi_child_spawn(child);
}

void jzi_children_end(jzi_children *children, jzi_child *child)
{
    (void)children;
    child->want = JZI_WANT_GONE;
    child->ordered = true;
    if (child->state != JZI_CHILD_ABSENT && child->state != JZI_CHILD_ENDING) {
        jzi_child_order_end(child);
    }
}

static jzi_children *new_children(jzi_worker *worker, jzi_actor *parent, const jzi_policy *policy)
{
    jzi_children *children = jzi_alloc_zeroed(&worker->alloc, sizeof *children);
    if (children == NULL) {
        return NULL;
    }
    if (!make_window(&worker->alloc, &children->window, policy->intensity)) {
        jzi_free(&worker->alloc, children, sizeof *children);
        return NULL;
    }
    children->dispatcher = worker->dispatcher;
    children->self = parent->id;
    children->policy = *policy;
    JZI_PUBLISH(parent->cold->life->children, children);
    return children;
}

jzx_err jzi_children_change_policy(jzi_children *children, const jzi_policy *policy)
{
    jzi_window window;
    if (!make_window(&children->dispatcher->acting->alloc, &window, policy->intensity)) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_window_copy(&window, &children->window);
    free_window(&children->dispatcher->acting->alloc, &children->window);
    children->window = window;
    children->policy = *policy;
    return JZX_OK;
}

jzx_err jzi_children_set_policy(jzi_worker *worker, jzi_actor *parent, const jzi_policy *policy)
{
    jzi_children *children = jzi_children_of(parent);
    if (policy == NULL || children != NULL) {
        if (children != NULL) {
            parent->cold->life->adopts = policy != NULL;
        }
        return policy == NULL ? JZX_OK : jzi_children_change_policy(children, policy);
    }
    if (jzi_life_make(worker, parent) == NULL || new_children(worker, parent, policy) == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    parent->cold->life->adopts = true;
    return JZX_OK;
}

/* For a parent without a policy: each child has its own limit, beyond it only that child ends. */
static jzi_policy no_policy(void)
{
    jzi_policy policy;
    const char *why = NULL;
    jzx_supervisor_spec spec = {.on_limit = JZX_LIMIT_STOP_CHILD, .intensity = JZX_INTENSITY_NEVER};
    jzx_err err = jzi_policy_make(&spec, &policy, &why);
    jzi_assert(err == JZX_OK);
    policy.unlimited = true;
    return policy;
}

/* The record of a child that is being spawned, not yet in the list of a parent. */
static jzx_err make_spawned(const jzx_allocator *alloc, const jzi_policy *policy,
                            const jzx_spawn_opts *opts, bool supervisor, jzi_child **out_child)
{
    static const uint32_t modes[] = {JZX_TRANSIENT, JZX_TRANSIENT, JZI_MODE_SERVICE};
    bool asked = opts->restart != JZX_RESTART_DEFAULT;
    bool restarts = asked || policy->action == JZX_ACTION_RESTART || policy->decide != NULL;
    if (opts->restart > JZX_RESTART_PERMANENT) {
        return JZX_ERR_INVALID_ARG;
    }
    if (restarts && !supervisor && opts->init == NULL && (opts->flags & JZX_SPAWN_STATELESS) == 0) {
        return JZX_ERR_NOT_RESTARTABLE;
    }
    if (opts->restart_intensity > JZX_INTENSITY_MAX &&
        opts->restart_intensity != JZX_INTENSITY_NEVER) {
        return JZX_ERR_TOO_BIG;
    }
    uint32_t intensity =
        opts->restart_intensity == 0 && policy->unlimited ? 1 : opts->restart_intensity;
    uint64_t period_ns = opts->restart_period_ms == 0 ? policy->period_ns
                                                      : opts->restart_period_ms * UINT64_C(1000000);
    jzi_child *child = new_child(alloc, intensity, period_ns);
    if (child == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    child->backoff =
        (jzi_child_backoff){.min_ms = opts->backoff_min_ms, .max_ms = opts->backoff_max_ms};
    child->child_link.mode = modes[opts->restart];
    child->arg = opts->state;
    *out_child = child;
    return JZX_OK;
}

/* The child is born, in this dispatcher or another. */
static void children_life_join(jzi_worker *worker, jzi_children *children, jzi_child *child,
                               jzx_actor_id id)
{
    const jzi_actor *actor = jzi_worker_find(worker, id); /* NULL: in another dispatcher */
    bool up = actor != NULL && jzi_actor_state_of(actor) == JZX_STATE_RUNNING;
    link_child(children, child);
    child->id = id;
    jzi_child_set_state(child, up ? JZI_CHILD_UP : JZI_CHILD_STARTING);
    child->fresh = !up;
    if (up) {
        JZI_PUBLISH(actor->cold->life->since_ns, jzi_worker_clock(worker) | 1u);
        child->up_ns = worker->now_ns;
    }
}

static void children_life_adopt(jzi_worker *worker, jzi_actor *actor)
{
    jzi_child *child = (jzi_child *)actor->cold->life->child_link;
    children_life_join(worker, worker->dispatcher->root_life->children, child, actor->id);
}

/* The children of a parent that is to supervise a child; NULL: no memory. */
static jzi_children *children_for(jzi_worker *worker, jzi_actor *parent)
{
    if (parent == NULL) {
        return worker->dispatcher->root_life->children;
    }
    if (jzi_children_of(parent) != NULL) {
        return jzi_children_of(parent);
    }
    const jzi_policy none = no_policy();
    return jzi_life_make(worker, parent) == NULL ? NULL : new_children(worker, parent, &none);
}

jzx_err jzi_children_spawn(jzi_worker *worker, jzi_actor *parent, const jzx_spawn_opts *opts,
                           bool supervisor, jzx_actor_id *out_id)
{
    jzx_err err = jzi_lifecycle_may_spawn(worker);
    jzi_children *children = err != JZX_OK ? NULL : children_for(worker, parent);
    if (children == NULL) {
        return err != JZX_OK ? err : JZX_ERR_NO_MEMORY;
    }
    jzi_child *child = NULL;
    err = make_spawned(&worker->alloc, &children->policy, opts, supervisor, &child);
    if (err != JZX_OK) {
        return err;
    }
    jzx_actor_id id = JZX_NOBODY;
    jzi_birth birth = {.parent = parent,
                       .child_link = &child->child_link,
                       .supervisor = supervisor,
                       .asked = true};
    err = jzi_lifecycle_spawn(worker, opts, &birth, &id);
    if (err != JZX_OK) {
        free_child(&worker->alloc, child);
        return err;
    }
    /* What the root spawns elsewhere is adopted there, when it is born. */
    if (parent != NULL || !jzi_worker_is_far(worker, id)) {
        children_life_join(worker, children, child, id);
    }
    if (out_id != NULL) {
        *out_id = id;
    }
    return JZX_OK;
}

jzx_err jzi_root_child_make(const jzi_worker *clerk, const jzx_spawn_opts *opts,
                            jzi_child **out_child)
{
    /* The policy of a root never changes: it may be read from here. */
    return make_spawned(&clerk->alloc, &clerk->dispatcher->root_life->children->policy, opts, false,
                        out_child);
}

void jzi_root_child_drop(const jzi_worker *clerk, jzi_child *child)
{
    if (child != NULL) {
        free_child(&clerk->alloc, child);
    }
}

/* News. */

static void child_started(jzi_child *child)
{
    if (child->state != JZI_CHILD_STARTING) {
        return; /* other orders are under way */
    }
    jzi_child_set_state(child, JZI_CHILD_UP);
    child->up_ns = jzi_worker_clock(child->children->dispatcher->acting);
    child->fresh = child->manual = false;
    /* While a group goes down, a start that was under way before is none of its own. */
    if (child->want == JZI_WANT_AGAIN && child->children->phase != JZI_GROUP_DOWN) {
        child->want = JZI_WANT_UP;
    }
}

static void start_failed(jzi_child *child)
{
    jzi_children *children = child->children;
    jzi_child_set_state(child, JZI_CHILD_DOWN);
    if (children->starting && !children->stopping) {
        const jzx_reason *why = &child->child_link.reason;
        children->failed = true;
        children->reason = *why;
        children->reason.from = child->id;
        (void)snprintf(children->reason.text, sizeof children->reason.text, "child %s: %.40s",
                       jzi_child_name(child), why->text);
    } else if ((child->fresh || child->manual) && !children->stopping) {
        child->want = JZI_WANT_GONE;
        jzi_child_order_end(child);
    } else {
        jzi_child_judge(child);
    }
}

/* A significant child that ended by itself may take the supervisor along. */
static void check_auto_shutdown(jzi_children *children)
{
    bool any = children->policy.auto_shutdown == JZX_AUTO_ANY_SIGNIFICANT;
    for (const jzi_child *child = children->first; child != NULL && !any; child = child->next) {
        if (child->plan->spec.significant != 0 && child->state != JZI_CHILD_ABSENT) {
            return;
        }
    }
    jzi_lifecycle_stop(children->dispatcher->acting, jzi_children_self(children), false);
}

static void child_ended(jzi_child *child)
{
    jzi_children *children = child->children;
    bool ignored =
        child->state == JZI_CHILD_STARTING && child->child_link.reason.kind == JZX_REASON_NORMAL;
    bool by_itself = !child->ordered && child->want != JZI_WANT_AGAIN && !ignored &&
                     !child->fresh && !child->manual;
    bool was_stopped = child->state == JZI_CHILD_DOWN; /* a caller's stop came before our start */
    bool significant = child->plan != NULL && child->plan->spec.significant != 0;
    bool forget = child->forget || child->fresh || child->plan == NULL ||
                  child->child_link.mode == JZX_TEMPORARY ||
                  children->policy.strategy == JZX_DYNAMIC;
    child->id = JZX_NOBODY;
    jzi_child_set_state(child, JZI_CHILD_ABSENT);
    child->fresh = child->manual = child->ordered = false;
    child->attempt = child->child_link.attempt = 0;
    if (child->want == JZI_WANT_AGAIN && (ignored || was_stopped)) {
        child->want = JZI_WANT_UP;
    }
    if (ignored && child->plan != NULL && child->child_link.mode != JZX_TEMPORARY &&
        children->policy.strategy != JZX_DYNAMIC) {
        forget = false; /* the spec stays, without an actor */
    }
    if (forget) {
        jzi_children_remove(children, child);
    }
    if (significant && by_itself && !children->stopping && !children->starting &&
        children->policy.auto_shutdown != JZX_AUTO_NEVER) {
        check_auto_shutdown(children);
    }
}

static void children_life_hear(jzi_child *child, uint32_t events)
{
    if ((events & JZI_CHILD_EVENT_STARTED) != 0) {
        child_started(child);
    }
    if ((events & JZI_CHILD_EVENT_ENDED) != 0) {
        child_ended(child);
        return;
    }
    if ((events & JZI_CHILD_EVENT_START_FAILED) != 0) {
        start_failed(child);
        return;
    }
    if ((events & JZI_CHILD_EVENT_FAILED) != 0) {
        jzi_child_set_state(child, JZI_CHILD_FAILED);
        child->due_ns = 0;
        jzi_child_judge(child);
        return;
    }
    if ((events & JZI_CHILD_EVENT_EXITED) != 0) {
        jzi_child_set_state(child, JZI_CHILD_DOWN);
        child->due_ns = 0;
        jzi_child_judge(child);
        return;
    }
    if ((events & JZI_CHILD_EVENT_DOWN) != 0 && child->state == JZI_CHILD_CLEANING) {
        jzi_child_set_state(child, JZI_CHILD_DOWN);
        if (child->want == JZI_WANT_UP) {
            jzi_child_start_when_due(child);
        } else if (child->want == JZI_WANT_GONE) {
            jzi_child_order_end(child);
        }
    }
    if ((events & JZI_CHILD_EVENT_ASKED) != 0) {
        /* The caller was told what could be known there. */
        const jzi_children *children = child->children;
        (void)jzi_children_restart(children->dispatcher->acting, children->self, child->id);
    }
    if ((events & JZI_CHILD_EVENT_DUE) != 0 && child->state == JZI_CHILD_DOWN &&
        child->want == JZI_WANT_UP) {
        jzi_child_start_when_due(child);
    }
}

static void hear_all(jzi_life *life)
{
    while (life->events != NULL) {
        jzi_child *child = (jzi_child *)life->events;
        uint32_t events = child->child_link.events;
        life->events = child->child_link.next_event;
        child->child_link.events = 0;
        children_life_hear(child, events);
    }
    jzi_children_step(life->children);
}

static void children_events(jzi_worker *worker, jzi_actor *parent)
{
    (void)worker;
    hear_all(parent->cold->life);
}

/* The root. */

static void answer_call(jzi_worker *worker, jzi_errand *errand)
{
    jzi_root *root = jzi_container_of(errand, jzi_root, call);
    root->called = false;
    if (!worker->dispatcher->destroying) { /* else nothing is decided: only the ends count */
        hear_all(&root->life);
    }
}

static void wake_root(jzi_worker *worker)
{
    jzi_root *root = jzi_container_of(worker->dispatcher->root_life, jzi_root, life);
    if (!root->called && !worker->dispatcher->destroying) {
        root->called = true;
        root->called = jzi_errand_post(worker->inbox, &root->call);
    }
}

jzx_err jzi_root_init(jzi_worker *worker, jzi_root *root, const jzi_policy *policy)
{
    root->children.dispatcher = worker->dispatcher;
    root->children.policy = policy == NULL ? no_policy() : *policy;
    root->life.children = &root->children;
    root->life.deadline_ns = UINT64_MAX;
    root->call.run = answer_call;
    if (!make_window(&worker->alloc, &root->children.window, root->children.policy.intensity)) {
        return JZX_ERR_NO_MEMORY;
    }
    worker->dispatcher->root_life = &root->life;
    worker->dispatcher->root_adopts = policy != NULL;
    return JZX_OK;
}

static void forget_all(jzi_worker *worker, jzi_children *children)
{
    while (children->first != NULL) {
        jzi_child_set_state(children->first, JZI_CHILD_ABSENT);
        jzi_children_remove(children, children->first);
    }
    jzi_alarm_clear(worker->alarms, &children->alarm);
}

void jzi_root_deinit(jzi_worker *worker, jzi_root *root)
{
    root->life.events = NULL;
    forget_all(worker, &root->children);
    free_window(&worker->alloc, &root->children.window);
}

/* The children's own life. */

static bool children_start(jzi_worker *worker, jzi_actor *parent)
{
    jzi_supervisor_plan *plan = parent->cold->life->arg;
    jzi_children *children = new_children(worker, parent, &plan->policy);
    if (children == NULL) {
        jzi_worker_set_reason(worker, JZX_REASON_FAILED, JZX_ERR_NO_MEMORY, "no memory");
        return false;
    }
    children->plan = plan;
    plan->refs++;
    children->starting = true;
    if (plan->policy.strategy != JZX_DYNAMIC) {
        for (uint32_t i = 0; i < plan->child_count; i++) {
            jzi_child *child = NULL;
            jzi_child_plan *one = plan->children[i];
            if (jzi_children_add(children, one, one->spec.arg, &child) != JZX_OK) {
                jzi_worker_set_reason(worker, JZX_REASON_FAILED, JZX_ERR_NO_MEMORY, "no memory");
                return false;
            }
            one->refs++;
            child->want = JZI_WANT_AGAIN;
        }
    }
    children->phase = JZI_GROUP_UP;
    children->cursor = children->first;
    jzi_children_step(children);
    return true;
}

static int children_started(jzi_worker *worker, jzi_actor *parent)
{
    jzi_children *children = parent->cold->life->children;
    if (children->failed) {
        worker->reason = children->reason;
        return -1;
    }
    if (children->phase != JZI_GROUP_NONE) {
        return 0;
    }
    children->starting = false;
    jzi_children_judge_all(children);
    return 1;
}

static void children_stop_all(jzi_worker *worker, jzi_actor *parent, bool kill)
{
    jzi_life *life = parent->cold->life;
    jzi_children *children = life->children;
    children->stopping = true;
    jzi_alarm_clear(worker->alarms, &children->alarm);
    for (jzi_child *child = children->last; child != NULL; child = child->prev) {
        jzi_alarm_clear(worker->alarms, &child->alarm);
        child->want = JZI_WANT_GONE;
        child->ordered = true;
        if (kill && child->state != JZI_CHILD_ABSENT) {
            jzi_child_set_state(child, JZI_CHILD_ENDING);
        }
    }
    children->phase = JZI_GROUP_DOWN;
    children->cursor = children->last;
    if (!kill && children->plan != NULL) {
        jzi_children_step(children);
        return;
    }
    children->cursor = NULL; /* a plain parent may have children from before its policy */
    jzi_lifecycle_finish_children(worker, life, kill);
}

static void children_forget(jzi_worker *worker, jzi_actor *parent)
{
    jzi_life *life = parent->cold->life;
    jzi_children *children = life->children;
    forget_all(worker, children);
    life->events = NULL;
    JZI_PUBLISH(life->children, NULL);
    life->adopts = false;
    if (children->plan != NULL) {
        jzi_supervisor_plan_release(&worker->alloc, children->plan);
    }
    free_window(&worker->alloc, &children->window);
    jzi_free(&worker->alloc, children, sizeof *children);
}

static void children_ended(jzi_worker *worker, jzi_life *life)
{
    jzi_supervisor_plan_release(&worker->alloc, life->arg);
}

void jzi_children_init(jzi_worker *worker)
{
    static const jzi_children_ops ops = {
        .events = children_events,
        .start = children_start,
        .started = children_started,
        .stop_all = children_stop_all,
        .forget = children_forget,
        .ended = children_ended,
        .spawn = jzi_children_spawn,
        .wake_root = wake_root,
        .adopt = children_life_adopt,
    };
    worker->dispatcher->children = &ops;
}

/* What comes is released and forgotten. */
jzx_behavior_result jzi_children_behavior(jzx_context *ctx, const jzx_message *msg)
{
    jzi_worker *worker = jzi_container_of(ctx, jzi_worker, ctx);
    if (msg->kind == JZX_KIND_USER && msg->drop == NULL && msg->data != NULL &&
        (msg->flags & (JZX_MSG_VALUE | JZX_MSG_COPY)) == 0) {
        jzi_count_add(&worker->counters.abandoned, 1);
    }
    return JZX_BEHAVIOR_OK;
}
