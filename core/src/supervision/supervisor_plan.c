/* What would happen: the steps that a failure of one child leads to, without taking them. */
#include "supervision/children.h"

/* Where steps go; count runs on when there is no room. */
typedef struct steps {
    jzx_plan_step *out;
    size_t cap;
    size_t count;
} steps;

static void supervisor_plan_add(steps *list, jzx_plan_what what, const jzi_child *child,
                                uint32_t delay_ms)
{
    if (list->count < list->cap) {
        list->out[list->count] = (jzx_plan_step){
            .what = (uint32_t)what,
            .delay_ms = delay_ms,
            .actor = child == NULL ? JZX_NOBODY : child->id,
            .child_id = child == NULL ? NULL : child->plan->id,
        };
    }
    list->count++;
}

/* The children that go down with the failed one, the last first, and come back in order. */
static void add_group(steps *list, const jzi_children *children, const jzi_child *failed,
                      uint32_t delay_ms)
{
    const jzi_child *from = children->policy.strategy == JZX_ONE_FOR_ALL ? children->first : failed;
    supervisor_plan_add(list, JZX_PLAN_RESTART, failed, 0);
    for (const jzi_child *child = children->last; child != NULL; child = child->prev) {
        if (child != failed && child->id != JZX_NOBODY) {
            supervisor_plan_add(
                list, child->child_link.mode == JZX_TEMPORARY ? JZX_PLAN_END : JZX_PLAN_STOP, child,
                0);
        }
        if (child == from) {
            break;
        }
    }
    if (delay_ms > 0) {
        supervisor_plan_add(list, JZX_PLAN_WAIT, NULL, delay_ms);
    }
    for (const jzi_child *child = from; child != NULL; child = child->next) {
        if (child->child_link.mode != JZX_TEMPORARY) {
            supervisor_plan_add(list, JZX_PLAN_START, child, 0);
        }
    }
}

static void add_end_of_all(steps *list, const jzi_children *children, jzx_plan_what what)
{
    supervisor_plan_add(list, what, NULL, 0);
    for (const jzi_child *child = children->last; child != NULL; child = child->prev) {
        if (child->id != JZX_NOBODY) {
            supervisor_plan_add(list, JZX_PLAN_END, child, 0);
        }
    }
}

/* Whether the end of this child takes the supervisor along (auto_shutdown). */
static bool ends_all(const jzi_children *children, const jzi_child *child)
{
    if (child->plan->spec.significant == 0 || children->policy.auto_shutdown == JZX_AUTO_NEVER) {
        return false;
    }
    if (children->policy.auto_shutdown == JZX_AUTO_ANY_SIGNIFICANT) {
        return true;
    }
    for (const jzi_child *other = children->first; other != NULL; other = other->next) {
        if (other != child && other->plan->spec.significant != 0 && other->id != JZX_NOBODY) {
            return false;
        }
    }
    return true;
}

static void add_end(steps *list, const jzi_children *children, const jzi_child *child, bool all)
{
    bool with_supervisor = ends_all(children, child);
    supervisor_plan_add(list, JZX_PLAN_END, child, 0);
    for (const jzi_child *it = children->last; it != NULL && (all || with_supervisor);
         it = it->prev) {
        if (it != child && it->id != JZX_NOBODY) {
            supervisor_plan_add(list, JZX_PLAN_END, it, 0);
        }
    }
    if (with_supervisor) {
        supervisor_plan_add(list, JZX_PLAN_END, NULL, 0);
    }
}

static void add_verdict(steps *list, const jzi_children *children, const jzi_child *child,
                        const jzi_verdict *verdict)
{
    uint32_t delay_ms = (uint32_t)(verdict->delay_ns / 1000000u);
    uint32_t strategy = children->policy.strategy;
    switch ((jzi_verdict_kind)verdict->what) {
    case JZI_VERDICT_RESTART:
        if (strategy == JZX_ONE_FOR_ALL || strategy == JZX_REST_FOR_ONE) {
            add_group(list, children, child, delay_ms);
            return;
        }
        supervisor_plan_add(list, JZX_PLAN_RESTART, child, 0);
        if (delay_ms > 0) {
            supervisor_plan_add(list, JZX_PLAN_WAIT, NULL, delay_ms);
        }
        supervisor_plan_add(list, JZX_PLAN_START, child, 0);
        return;
    case JZI_VERDICT_RESUME:
        return; /* no child stops, no child starts */
    case JZI_VERDICT_STOP:
    case JZI_VERDICT_STOP_ALL:
        add_end(list, children, child, verdict->what == JZI_VERDICT_STOP_ALL);
        return;
    case JZI_VERDICT_ESCALATE:
        add_end_of_all(list, children, JZX_PLAN_ESCALATE);
        return;
    case JZI_VERDICT_GIVE_UP:
        add_end_of_all(list, children, JZX_PLAN_GIVE_UP);
        return;
    }
}

jzx_err jzx_supervisor_plan(jzx_loop *loop, jzx_actor_id sup, jzx_actor_id child_actor,
                            jzx_plan_step *out, size_t cap, size_t *out_count)
{
    if (loop == NULL || out_count == NULL || (out == NULL && cap > 0)) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_supervisor_plan");
    const jzi_actor *actor = jzi_worker_find(worker, sup);
    if (actor == NULL) {
        return jzi_worker_not_here(worker, sup);
    }
    if ((actor->type->flags & JZI_TYPE_SUPERVISOR) == 0) {
        return JZX_ERR_WRONG_SUPERVISOR;
    }
    const jzi_children *children = jzi_children_of(actor);
    const jzi_child *child =
        children == NULL ? NULL : jzi_children_find(worker, children, child_actor);
    if (child == NULL) {
        return JZX_ERR_NO_SUCH_CHILD;
    }
    /* The desk of an actor that lives elsewhere is not ours to read (R32): what was heard has to
     * do. */
    const jzi_actor *found =
        jzi_worker_is_far(worker, child_actor) ? NULL : jzi_worker_find(worker, child_actor);
    bool deferred = found != NULL && (found->flags & JZI_ACTOR_DEFERRED) != 0;
    uint64_t now = jzi_worker_clock(worker);
    const jzi_policy policy = jzi_policy_with(&children->policy, &child->backoff);
    jzi_case it = {
        .mode = child->child_link.mode,
        .reason = JZX_REASON_FAILED,
        .action = deferred && children->policy.action == JZX_ACTION_RESUME
                      ? JZX_ACTION_RESTART /* a child that is stopping cannot go on */
                      : children->policy.action,
        .attempt = child->attempt,
        .up_since_ns = found != NULL ? found->cold->life->since_ns : child->up_ns,
        .own = child->limited ? &child->own : NULL,
        .own_period_ns = child->own_period_ns,
        .random = UINT32_MAX / 2, /* the middle of the jitter */
    };
    jzi_verdict verdict = jzi_policy_decide(&policy, &children->window, &it, now);
    steps list = {.out = out, .cap = cap};
    add_verdict(&list, children, child, &verdict);
    *out_count = list.count;
    return JZX_OK;
}
