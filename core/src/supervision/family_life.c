/* A family from its first child to its last: members, news of them, its start and its end. */
#include "supervision/family_priv.h"

#include "base/alloc.h"
#include "base/list.h"

#include <stdio.h>

static jzi_actor *self_of(const jzi_family *family)
{
    jzi_actor *actor = jzi_worker_find(family->dispatcher->acting, family->self);
    jzi_assert(actor != NULL);
    return actor;
}

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

static void link_child(jzi_family *family, jzi_child *child)
{
    child->family = family;
    JZI_QUEUE_APPEND(family, child);
    family->count++;
}

void jzi_family_remove(jzi_family *family, jzi_child *child)
{
    jzi_worker *worker = family->dispatcher->acting;
    jzi_assert(child->state == JZI_CHILD_ABSENT);
    JZI_QUEUE_REMOVE(family, child);
    family->count--;
    family->restarts += child->bond.restarts;
    if (family->cursor == child) {
        family->cursor = family->phase == JZI_GROUP_DOWN ? child->prev : child->next;
    }
    jzi_alarm_clear(worker->alarms, &child->alarm);
    if (child->plan != NULL) {
        bool own_arg = family->policy.strategy == JZX_DYNAMIC;
        if (own_arg && child->plan->spec.drop_arg != NULL && child->arg != NULL &&
            !worker->dispatcher->abandoned) {
            child->plan->spec.drop_arg(child->arg);
        }
        jzi_child_plan_release(&worker->alloc, child->plan);
    }
    free_child(&worker->alloc, child);
}

jzx_err jzi_family_add(jzi_family *family, jzi_child_plan *plan, void *arg, jzi_child **out_child)
{
    jzi_child *child = new_child(&family->dispatcher->acting->alloc, plan->spec.intensity,
                                 (uint64_t)plan->spec.period_ms * 1000000u);
    if (child == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    link_child(family, child);
    child->plan = plan;
    child->backoff = jzi_spec_backoff(&plan->spec);
    child->arg = arg;
    child->bond.mode = plan->spec.mode;
    *out_child = child;
    return JZX_OK;
}

jzx_err jzi_family_start(jzi_family *family, jzi_child *child)
{
    (void)family;
    child->want = JZI_WANT_UP;
    child->due_ns = 0;
    child->forget = false;
    return jzi_family_spawn_child(child);
}

void jzi_family_end(jzi_family *family, jzi_child *child)
{
    (void)family;
    child->want = JZI_WANT_GONE;
    child->ordered = true;
    if (child->state != JZI_CHILD_ABSENT && child->state != JZI_CHILD_ENDING) {
        jzi_family_order_end(child);
    }
}

static jzi_family *new_family(jzi_worker *worker, jzi_actor *parent, const jzi_policy *policy)
{
    jzi_family *family = jzi_alloc_zeroed(&worker->alloc, sizeof *family);
    if (family == NULL) {
        return NULL;
    }
    if (!make_window(&worker->alloc, &family->window, policy->intensity)) {
        jzi_free(&worker->alloc, family, sizeof *family);
        return NULL;
    }
    family->dispatcher = worker->dispatcher;
    family->self = parent->id;
    family->policy = *policy;
    JZI_PUBLISH(parent->ext->life->family, family);
    return family;
}

jzx_err jzi_family_change_policy(jzi_family *family, const jzi_policy *policy)
{
    jzi_window window;
    if (!make_window(&family->dispatcher->acting->alloc, &window, policy->intensity)) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_window_copy(&window, &family->window);
    free_window(&family->dispatcher->acting->alloc, &family->window);
    family->window = window;
    family->policy = *policy;
    return JZX_OK;
}

jzx_err jzi_family_set_policy(jzi_worker *worker, jzi_actor *parent, const jzi_policy *policy)
{
    jzi_family *family = jzi_family_of(parent);
    if (policy == NULL || family != NULL) {
        if (family != NULL) {
            parent->ext->life->adopts = policy != NULL;
        }
        return policy == NULL ? JZX_OK : jzi_family_change_policy(family, policy);
    }
    if (jzi_life_make(worker, parent) == NULL || new_family(worker, parent, policy) == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    parent->ext->life->adopts = true;
    return JZX_OK;
}

/* Of a parent that has none: each child has a limit of its own, and beyond it only that one ends.
 */
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

/* The child that a spawn makes of itself, in no family yet. */
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
    child->bond.mode = modes[opts->restart];
    child->arg = opts->state;
    *out_child = child;
    return JZX_OK;
}

/* It is born, in this dispatcher or another. */
static void join(jzi_worker *worker, jzi_family *family, jzi_child *child, jzx_actor_id id)
{
    const jzi_actor *actor = jzi_worker_find(worker, id); /* NULL: in another dispatcher */
    bool up = actor != NULL && jzi_actor_state_of(actor) == JZX_STATE_RUNNING;
    link_child(family, child);
    child->id = id;
    jzi_child_set_state(child, up ? JZI_CHILD_UP : JZI_CHILD_STARTING);
    child->fresh = !up;
    if (up) {
        JZI_PUBLISH(actor->ext->life->since_ns, jzi_worker_clock(worker) | 1u);
        child->up_ns = worker->now_ns;
    }
}

static void adopt(jzi_worker *worker, jzi_actor *actor)
{
    jzi_child *child = (jzi_child *)actor->ext->life->bond;
    join(worker, worker->dispatcher->root_life->family, child, actor->id);
}

/* The family of a parent that is to supervise a child; NULL: no memory. */
static jzi_family *family_for(jzi_worker *worker, jzi_actor *parent)
{
    if (parent == NULL) {
        return worker->dispatcher->root_life->family;
    }
    if (jzi_family_of(parent) != NULL) {
        return jzi_family_of(parent);
    }
    const jzi_policy none = no_policy();
    return jzi_life_make(worker, parent) == NULL ? NULL : new_family(worker, parent, &none);
}

jzx_err jzi_family_spawn(jzi_worker *worker, jzi_actor *parent, const jzx_spawn_opts *opts,
                         bool supervisor, jzx_actor_id *out_id)
{
    jzx_err err = jzi_lifecycle_may_spawn(worker);
    jzi_family *family = err != JZX_OK ? NULL : family_for(worker, parent);
    if (family == NULL) {
        return err != JZX_OK ? err : JZX_ERR_NO_MEMORY;
    }
    jzi_child *child = NULL;
    err = make_spawned(&worker->alloc, &family->policy, opts, supervisor, &child);
    if (err != JZX_OK) {
        return err;
    }
    jzx_actor_id id = JZX_NOBODY;
    jzi_birth birth = {
        .parent = parent, .bond = &child->bond, .supervisor = supervisor, .asked = true};
    err = jzi_lifecycle_spawn(worker, opts, &birth, &id);
    if (err != JZX_OK) {
        free_child(&worker->alloc, child);
        return err;
    }
    /* What the root spawns elsewhere is adopted there, when it is born. */
    if (parent != NULL || !jzi_worker_is_far(worker, id)) {
        join(worker, family, child, id);
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
    return make_spawned(&clerk->alloc, &clerk->dispatcher->root_life->family->policy, opts, false,
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
    child->up_ns = jzi_worker_clock(child->family->dispatcher->acting);
    child->fresh = child->manual = false;
    /* While a group goes down, a start that was under way before is none of its own. */
    if (child->want == JZI_WANT_AGAIN && child->family->phase != JZI_GROUP_DOWN) {
        child->want = JZI_WANT_UP;
    }
}

static void start_failed(jzi_child *child)
{
    jzi_family *family = child->family;
    jzi_child_set_state(child, JZI_CHILD_DOWN);
    if (family->starting && !family->stopping) {
        const jzx_reason *why = &child->bond.reason;
        family->failed = true;
        family->reason = *why;
        family->reason.from = child->id;
        (void)snprintf(family->reason.text, sizeof family->reason.text, "child %s: %.40s",
                       jzi_child_name(child), why->text);
    } else if ((child->fresh || child->manual) && !family->stopping) {
        child->want = JZI_WANT_GONE;
        jzi_family_order_end(child);
    } else {
        jzi_family_judge(child);
    }
}

/* A significant child that ended by itself may take the supervisor along. */
static void check_auto_shutdown(jzi_family *family)
{
    bool any = family->policy.auto_shutdown == JZX_AUTO_ANY_SIGNIFICANT;
    for (const jzi_child *child = family->first; child != NULL && !any; child = child->next) {
        if (child->plan->spec.significant != 0 && child->state != JZI_CHILD_ABSENT) {
            return;
        }
    }
    jzi_lifecycle_stop(family->dispatcher->acting, self_of(family), false);
}

static void child_ended(jzi_child *child)
{
    jzi_family *family = child->family;
    bool ignored =
        child->state == JZI_CHILD_STARTING && child->bond.reason.kind == JZX_REASON_NORMAL;
    bool by_itself = !child->ordered && child->want != JZI_WANT_AGAIN && !ignored &&
                     !child->fresh && !child->manual;
    bool was_stopped = child->state == JZI_CHILD_DOWN; /* somebody's stop came before our start */
    bool significant = child->plan != NULL && child->plan->spec.significant != 0;
    bool forget = child->forget || child->fresh || child->plan == NULL ||
                  child->bond.mode == JZX_TEMPORARY || family->policy.strategy == JZX_DYNAMIC;
    child->id = JZX_NOBODY;
    jzi_child_set_state(child, JZI_CHILD_ABSENT);
    child->fresh = child->manual = child->ordered = false;
    child->attempt = child->bond.attempt = 0;
    if (child->want == JZI_WANT_AGAIN && (ignored || was_stopped)) {
        child->want = JZI_WANT_UP;
    }
    if (ignored && child->plan != NULL && child->bond.mode != JZX_TEMPORARY &&
        family->policy.strategy != JZX_DYNAMIC) {
        forget = false; /* the spec stays, without an actor */
    }
    if (forget) {
        jzi_family_remove(family, child);
    }
    if (significant && by_itself && !family->stopping && !family->starting &&
        family->policy.auto_shutdown != JZX_AUTO_NEVER) {
        check_auto_shutdown(family);
    }
}

static void hear(jzi_child *child, uint32_t news)
{
    if ((news & JZI_NEWS_STARTED) != 0) {
        child_started(child);
    }
    if ((news & JZI_NEWS_ENDED) != 0) {
        child_ended(child);
        return;
    }
    if ((news & JZI_NEWS_START_FAILED) != 0) {
        start_failed(child);
        return;
    }
    if ((news & JZI_NEWS_FAILED) != 0) {
        jzi_child_set_state(child, JZI_CHILD_FAILED);
        child->due_ns = 0;
        jzi_family_judge(child);
        return;
    }
    if ((news & JZI_NEWS_EXITED) != 0) {
        jzi_child_set_state(child, JZI_CHILD_DOWN);
        child->due_ns = 0;
        jzi_family_judge(child);
        return;
    }
    if ((news & JZI_NEWS_DOWN) != 0 && child->state == JZI_CHILD_CLEANING) {
        jzi_child_set_state(child, JZI_CHILD_DOWN);
        if (child->want == JZI_WANT_UP) {
            jzi_family_start_when_due(child);
        } else if (child->want == JZI_WANT_GONE) {
            jzi_family_order_end(child);
        }
    }
    if ((news & JZI_NEWS_ASKED) != 0) { /* whoever asked was told what could be known there */
        const jzi_family *family = child->family;
        (void)jzi_family_restart(family->dispatcher->acting, family->self, child->id);
    }
    if ((news & JZI_NEWS_DUE) != 0 && child->state == JZI_CHILD_DOWN &&
        child->want == JZI_WANT_UP) {
        jzi_family_start_when_due(child);
    }
}

static void hear_all(jzi_life *life)
{
    while (life->news != NULL) {
        jzi_child *child = (jzi_child *)life->news;
        uint32_t news = child->bond.news;
        life->news = child->bond.next_news;
        child->bond.news = 0;
        hear(child, news);
    }
    jzi_family_step(life->family);
}

static void family_news(jzi_worker *worker, jzi_actor *parent)
{
    (void)worker;
    hear_all(parent->ext->life);
}

/* The root. */

static void answer_call(jzi_worker *worker, jzi_errand *errand)
{
    jzi_root *root = jzi_container_of(errand, jzi_root, call);
    root->called = false;
    if (!worker->dispatcher->destroying) { /* then nothing is decided: only their ends count */
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
    root->family.dispatcher = worker->dispatcher;
    root->family.policy = policy == NULL ? no_policy() : *policy;
    root->life.family = &root->family;
    root->life.deadline_ns = UINT64_MAX;
    root->call.run = answer_call;
    if (!make_window(&worker->alloc, &root->family.window, root->family.policy.intensity)) {
        return JZX_ERR_NO_MEMORY;
    }
    worker->dispatcher->root_life = &root->life;
    worker->dispatcher->root_adopts = policy != NULL;
    return JZX_OK;
}

static void forget_all(jzi_worker *worker, jzi_family *family)
{
    while (family->first != NULL) {
        jzi_child_set_state(family->first, JZI_CHILD_ABSENT);
        jzi_family_remove(family, family->first);
    }
    jzi_alarm_clear(worker->alarms, &family->alarm);
}

void jzi_root_deinit(jzi_worker *worker, jzi_root *root)
{
    root->life.news = NULL;
    forget_all(worker, &root->family);
    free_window(&worker->alloc, &root->family.window);
}

/* The family's own life. */

static bool family_start(jzi_worker *worker, jzi_actor *parent)
{
    jzi_supervisor_plan *plan = parent->ext->life->arg;
    jzi_family *family = new_family(worker, parent, &plan->policy);
    if (family == NULL) {
        jzi_worker_set_reason(worker, JZX_REASON_FAILED, JZX_ERR_NO_MEMORY, "no memory");
        return false;
    }
    family->plan = plan;
    plan->refs++;
    family->starting = true;
    if (plan->policy.strategy != JZX_DYNAMIC) {
        for (uint32_t i = 0; i < plan->child_count; i++) {
            jzi_child *child = NULL;
            jzi_child_plan *one = plan->children[i];
            if (jzi_family_add(family, one, one->spec.arg, &child) != JZX_OK) {
                jzi_worker_set_reason(worker, JZX_REASON_FAILED, JZX_ERR_NO_MEMORY, "no memory");
                return false;
            }
            one->refs++;
            child->want = JZI_WANT_AGAIN;
        }
    }
    family->phase = JZI_GROUP_UP;
    family->cursor = family->first;
    jzi_family_step(family);
    return true;
}

static int family_started(jzi_worker *worker, jzi_actor *parent)
{
    jzi_family *family = parent->ext->life->family;
    if (family->failed) {
        worker->reason = family->reason;
        return -1;
    }
    if (family->phase != JZI_GROUP_NONE) {
        return 0;
    }
    family->starting = false;
    jzi_family_judge_all(family);
    return 1;
}

static void family_stop_all(jzi_worker *worker, jzi_actor *parent, bool kill)
{
    jzi_life *life = parent->ext->life;
    jzi_family *family = life->family;
    family->stopping = true;
    jzi_alarm_clear(worker->alarms, &family->alarm);
    for (jzi_child *child = family->last; child != NULL; child = child->prev) {
        jzi_alarm_clear(worker->alarms, &child->alarm);
        child->want = JZI_WANT_GONE;
        child->ordered = true;
        if (kill && child->state != JZI_CHILD_ABSENT) {
            jzi_child_set_state(child, JZI_CHILD_ENDING);
        }
    }
    family->phase = JZI_GROUP_DOWN;
    family->cursor = family->last;
    if (!kill && family->plan != NULL) {
        jzi_family_step(family);
        return;
    }
    family->cursor = NULL; /* a plain parent may have children from before its policy */
    jzi_lifecycle_finish_children(worker, life, kill);
}

static void family_forget(jzi_worker *worker, jzi_actor *parent)
{
    jzi_life *life = parent->ext->life;
    jzi_family *family = life->family;
    forget_all(worker, family);
    life->news = NULL;
    JZI_PUBLISH(life->family, NULL);
    life->adopts = false;
    if (family->plan != NULL) {
        jzi_supervisor_plan_release(&worker->alloc, family->plan);
    }
    free_window(&worker->alloc, &family->window);
    jzi_free(&worker->alloc, family, sizeof *family);
}

static void family_ended(jzi_worker *worker, jzi_life *life)
{
    jzi_supervisor_plan_release(&worker->alloc, life->arg);
}

void jzi_family_init(jzi_worker *worker)
{
    static const jzi_family_ops ops = {
        .news = family_news,
        .start = family_start,
        .started = family_started,
        .stop_all = family_stop_all,
        .forget = family_forget,
        .ended = family_ended,
        .spawn = jzi_family_spawn,
        .wake_root = wake_root,
        .adopt = adopt,
    };
    worker->dispatcher->family = &ops;
}

/* What comes is released and forgotten. */
jzx_behavior_result jzi_family_behavior(jzx_context *ctx, const jzx_message *msg)
{
    jzi_worker *worker = jzi_container_of(ctx, jzi_worker, ctx);
    if (msg->kind == JZX_KIND_USER && msg->drop == NULL && msg->data != NULL &&
        (msg->flags & (JZX_MSG_VALUE | JZX_MSG_COPY)) == 0) {
        jzi_count_add(&worker->counters.abandoned, 1);
    }
    return JZX_BEHAVIOR_OK;
}
