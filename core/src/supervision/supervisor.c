/* Supervisors as their callers see them: making one, and asking it for things. All calls only read
 * the children or give an order; what follows happens in the actors' own turns. */
#include "supervision/admin.h"
#include "supervision/children.h"

#include "base/alloc.h"

#include <string.h>

jzx_err jzx_spawn_supervisor_sized(jzx_loop *loop, const jzx_supervisor_init *init,
                                   jzx_supervisor_sizes sizes, jzx_actor_id *out_id)
{
    if (loop == NULL || init == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_spawn_supervisor");
    jzx_err err = jzi_lifecycle_may_spawn(worker);
    if (err != JZX_OK) {
        return err;
    }
    jzi_supervisor_plan *plan = NULL;
    err = jzi_supervisor_plan_make(&worker->alloc, init, &sizes, NULL, 0, &plan);
    if (err != JZX_OK) {
        return err;
    }
    jzx_spawn_opts opts = {.behavior = jzi_admin_behavior,
                           .state = plan,
                           .name = plan->name,
                           .dispatcher = plan->dispatcher[0] == '\0' ? NULL : plan->dispatcher};
    jzi_actor *parent = jzi_worker_self(worker);
    if (jzi_lifecycle_takes(worker, parent, JZX_RESTART_DEFAULT)) {
        err = jzi_children_spawn(worker, parent, &opts, true, out_id);
    } else {
        jzi_birth birth = {.parent = parent, .supervisor = true, .asked = true};
        err = jzi_lifecycle_spawn(worker, &opts, &birth, out_id);
    }
    if (err != JZX_OK) {
        jzi_supervisor_plan_disown(plan);
        jzi_supervisor_plan_release(&worker->alloc, plan);
    }
    return err;
}

jzx_err jzx_set_child_policy_sized(jzx_context *ctx, const jzx_supervisor_spec *spec,
                                   size_t spec_size)
{
    JZI_ENTER(ctx == NULL ? NULL : ctx->loop, "jzx_set_child_policy");
    if (worker == NULL || &worker->ctx != ctx || jzi_worker_self(worker) == NULL ||
        (worker->current->type->flags & JZI_TYPE_SUPERVISOR) != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    if (jzi_lifecycle_may_spawn(worker) != JZX_OK) {
        return JZX_ERR_STOPPING;
    }
    jzi_policy policy;
    if (spec == NULL) {
        return jzi_children_set_policy(worker, worker->current, NULL);
    }
    jzx_supervisor_spec known;
    jzx_err err = jzi_struct_adopt(&known, sizeof known, spec, spec_size);
    const char *why = NULL;
    if (err == JZX_OK) {
        err = jzi_policy_make(&known, &policy, &why);
    }
    if (err != JZX_OK) {
        return err;
    }
    if (policy.strategy == JZX_DYNAMIC || policy.auto_shutdown != JZX_AUTO_NEVER) {
        return JZX_ERR_BAD_SPEC;
    }
    return jzi_children_set_policy(worker, worker->current, &policy);
}

/* Which children a call is for. */
typedef enum need { ANY, STATIC, DYNAMIC } need;

/* The children of a supervisor that may be changed, or looked at. */
static jzx_err find_children(jzi_worker *worker, jzx_actor_id sup, need kind, bool change,
                             jzi_children **out_children)
{
    if (worker == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_actor *actor = jzi_worker_find(worker, sup);
    if (actor == NULL) {
        return jzi_worker_not_here(worker, sup);
    }
    if ((actor->type->flags & JZI_TYPE_SUPERVISOR) == 0) {
        return JZX_ERR_WRONG_SUPERVISOR;
    }
    const jzi_supervisor_plan *plan = actor->cold->life->arg;
    bool dynamic = plan->policy.strategy == JZX_DYNAMIC;
    if ((kind == STATIC && dynamic) || (kind == DYNAMIC && !dynamic)) {
        return JZX_ERR_WRONG_SUPERVISOR;
    }
    jzi_children *children = jzi_children_of(actor);
    uint32_t state = jzi_actor_state_of(actor);
    bool stopping = (actor->flags & JZI_ACTOR_STOPPING) != 0 || worker->dispatcher->destroying ||
                    (children != NULL && children->stopping);
    if (change && stopping) {
        return JZX_ERR_STOPPING;
    }
    if (children == NULL || (change && state != JZX_STATE_RUNNING)) {
        return JZX_ERR_BUSY;
    }
    *out_children = children;
    return JZX_OK;
}

static jzi_child *find_child(const jzi_children *children, const char *child_id)
{
    jzi_child *child = children->first;
    while (child != NULL && (child_id == NULL || strcmp(child->plan->id, child_id) != 0)) {
        child = child->next;
    }
    return child;
}

/* A child of a static supervisor that may be changed, by its id. */
static jzx_err find_to_change(jzi_worker *worker, jzx_actor_id sup, const char *child_id,
                              jzi_child **out_child)
{
    jzi_children *children = NULL;
    jzx_err err = find_children(worker, sup, STATIC, true, &children);
    if (err != JZX_OK || child_id == NULL) {
        return err != JZX_OK ? err : JZX_ERR_INVALID_ARG;
    }
    *out_child = find_child(children, child_id);
    return *out_child == NULL ? JZX_ERR_NO_SUCH_CHILD : JZX_OK;
}

/* What a caller may know of a child. */
static jzx_child_status status_of(const jzi_child *child)
{
    switch ((jzi_child_state)child->state) {
    case JZI_CHILD_ABSENT:
        return child->want == JZI_WANT_AGAIN && !child->children->starting ? JZX_CHILD_RESTARTING
                                                                           : JZX_CHILD_DOWN;
    case JZI_CHILD_STARTING:
        return child->attempt > 0 || (child->want == JZI_WANT_AGAIN && !child->children->starting)
                   ? JZX_CHILD_RESTARTING
                   : JZX_CHILD_STARTING;
    case JZI_CHILD_UP: {
        const jzi_worker *worker = child->children->dispatcher->acting;
        const jzi_actor *actor = jzi_lifecycle_child(worker, child->id);
        if (actor == NULL) {
            return JZX_CHILD_DOWN; /* the news of its end was not heard yet */
        }
        if (jzi_worker_is_far(worker, child->id)) {
            return JZX_CHILD_RUNNING; /* as far as was heard */
        }
        uint32_t state = jzi_actor_state_of(actor);
        return state == JZX_STATE_STOPPING                               ? JZX_CHILD_STOPPING
               : state == JZX_STATE_FAILED || state == JZX_STATE_STOPPED ? JZX_CHILD_RESTARTING
                                                                         : JZX_CHILD_RUNNING;
    }
    case JZI_CHILD_FAILED:
    case JZI_CHILD_CLEANING:
    case JZI_CHILD_DOWN:
        return child->want == JZI_WANT_GONE ? JZX_CHILD_STOPPING : JZX_CHILD_RESTARTING;
    case JZI_CHILD_ENDING:
        return JZX_CHILD_STOPPING;
    }
    return JZX_CHILD_DOWN;
}

/* Why a child cannot be started anew. */
static jzx_err taken(const jzi_child *child)
{
    switch (status_of(child)) {
    case JZX_CHILD_DOWN:
        return child->state == JZI_CHILD_ABSENT ? JZX_ERR_CHILD_PRESENT : JZX_ERR_CHILD_RUNNING;
    case JZX_CHILD_RESTARTING:
        return JZX_ERR_CHILD_RESTARTING;
    default:
        return JZX_ERR_CHILD_RUNNING;
    }
}

/* Adds a child and starts it; the plan is taken over on JZX_OK. */
static jzx_err start_plan(jzi_children *children, jzi_child_plan *plan, jzx_actor_id *out_id)
{
    jzi_child *child = find_child(children, plan->id);
    if (child != NULL) {
        return taken(child);
    }
    jzx_err err = jzi_children_add(children, plan, plan->spec.arg, &child);
    if (err != JZX_OK) {
        return err;
    }
    child->fresh = true;
    err = jzi_children_start(children, child);
    if (err != JZX_OK) {
        plan->refs++; /* the removal gives one back */
        jzi_children_remove(children, child);
    } else if (out_id != NULL) {
        *out_id = child->id;
    }
    return err;
}

jzx_err jzx_supervisor_start_child_sized(jzx_loop *loop, jzx_actor_id sup,
                                         const jzx_child_spec *spec, jzx_supervisor_sizes sizes,
                                         jzx_actor_id *out_id)
{
    JZI_ENTER(loop, "jzx_supervisor_start_child");
    jzi_children *children = NULL;
    jzx_err err = find_children(worker, sup, STATIC, true, &children);
    jzi_child_plan *plan = NULL;
    if (err == JZX_OK) {
        err = spec == NULL ? JZX_ERR_INVALID_ARG
                           : jzi_child_plan_make(&worker->alloc, spec, &sizes, &children->policy,
                                                 NULL, 0, &plan);
    }
    if (err != JZX_OK) {
        return err;
    }
    err = start_plan(children, plan, out_id);
    if (err != JZX_OK) {
        jzi_child_plan_disown(plan); /* nothing was transferred */
        jzi_child_plan_release(&worker->alloc, plan);
    }
    return err;
}

jzx_err jzi_supervisor_start_plan(jzx_loop *loop, jzx_actor_id sup, jzi_child_plan *plan,
                                  jzx_actor_id *out_id)
{
    JZI_ENTER(loop, "jzx_admin_ask");
    jzi_children *children = NULL;
    jzx_err err = find_children(worker, sup, STATIC, true, &children);
    if (err == JZX_OK) {
        err = jzi_child_plan_settle(plan, &children->policy);
    }
    return err != JZX_OK ? err : start_plan(children, plan, out_id);
}

jzx_err jzi_supervisor_restart_now(jzx_loop *loop, jzx_actor_id sup, jzx_actor_id child)
{
    JZI_ENTER(loop, "jzx_admin_ask");
    return jzi_children_restart(worker, sup, child);
}

jzx_err jzx_supervisor_start_dynamic(jzx_loop *loop, jzx_actor_id sup, void *arg,
                                     jzx_actor_id *out_id)
{
    JZI_ENTER(loop, "jzx_supervisor_start_dynamic");
    jzi_children *children = NULL;
    jzx_err err = find_children(worker, sup, DYNAMIC, true, &children);
    if (err != JZX_OK) {
        return err;
    }
    jzi_child_plan *plan = children->plan->children[0];
    jzi_child *child = NULL;
    err = jzi_children_add(children, plan, arg, &child);
    if (err != JZX_OK) {
        return err;
    }
    plan->refs++;
    child->fresh = true;
    err = jzi_children_start(children, child);
    if (err != JZX_OK) {
        child->arg = NULL; /* nothing was transferred */
        jzi_children_remove(children, child);
        return err;
    }
    if (out_id != NULL) {
        *out_id = child->id;
    }
    return JZX_OK;
}

jzx_err jzx_supervisor_terminate_child(jzx_loop *loop, jzx_actor_id sup, const char *child_id)
{
    JZI_ENTER(loop, "jzx_supervisor_terminate_child");
    jzi_child *child = NULL;
    jzx_err err = find_to_change(worker, sup, child_id, &child);
    if (err != JZX_OK) {
        return err;
    }
    jzi_children_end(child->children, child);
    return JZX_OK;
}

jzx_err jzx_supervisor_terminate(jzx_loop *loop, jzx_actor_id sup, jzx_actor_id actor)
{
    JZI_ENTER(loop, "jzx_supervisor_terminate");
    jzi_children *children = NULL;
    jzx_err err = find_children(worker, sup, ANY, true, &children);
    if (err != JZX_OK) {
        return err;
    }
    if (jzi_lifecycle_child(worker, actor) == NULL) {
        return actor == JZX_NOBODY ? JZX_ERR_NO_SUCH_CHILD : JZX_OK;
    }
    jzi_child *child = jzi_children_find(worker, children, actor);
    if (child == NULL) {
        return JZX_ERR_NO_SUCH_CHILD;
    }
    jzi_children_end(children, child);
    return JZX_OK;
}

jzx_err jzx_supervisor_restart_child(jzx_loop *loop, jzx_actor_id sup, const char *child_id,
                                     jzx_actor_id *out_id)
{
    JZI_ENTER(loop, "jzx_supervisor_restart_child");
    jzi_child *child = NULL;
    jzx_err err = find_to_change(worker, sup, child_id, &child);
    if (err != JZX_OK) {
        return err;
    }
    err = taken(child);
    if (err != JZX_ERR_CHILD_PRESENT) {
        return err;
    }
    child->manual = true;
    err = jzi_children_start(child->children, child);
    if (err == JZX_OK && out_id != NULL) {
        *out_id = child->id;
    }
    return err;
}

jzx_err jzx_supervisor_delete_child(jzx_loop *loop, jzx_actor_id sup, const char *child_id)
{
    JZI_ENTER(loop, "jzx_supervisor_delete_child");
    jzi_child *child = NULL;
    jzx_err err = find_to_change(worker, sup, child_id, &child);
    if (err != JZX_OK) {
        return err;
    }
    err = taken(child);
    if (err != JZX_ERR_CHILD_PRESENT) {
        return err;
    }
    jzi_children_remove(child->children, child);
    return JZX_OK;
}

static void fill_info(const jzi_child *child, jzx_child_info *info)
{
    uint64_t now = child->children->dispatcher->acting->now_ns;
    uint64_t due = child->want == JZI_WANT_AGAIN ? child->children->due_ns : child->due_ns;
    jzx_child_status status = status_of(child);
    *info = (jzx_child_info){
        .id = child->plan->id,
        .actor = jzi_lifecycle_child(child->children->dispatcher->acting, child->id) == NULL
                     ? JZX_NOBODY
                     : child->id,
        .status = (uint32_t)status,
        .mode = child->child_link.mode,
        .is_supervisor = child->plan->nested != NULL,
        .restarts = child->child_link.restarts,
        .attempt = child->attempt,
        .delay_ms = status == JZX_CHILD_RESTARTING && due > now
                        ? (uint32_t)((due - now + 999999) / 1000000)
                        : 0,
        .last = child->child_link.reason,
    };
}

size_t jzx_supervisor_children_sized(jzx_loop *loop, jzx_actor_id sup, jzx_child_info *out,
                                     size_t info_size, size_t cap)
{
    JZI_ENTER(loop, "jzx_supervisor_children");
    jzi_children *children = NULL;
    if (find_children(worker, sup, ANY, false, &children) != JZX_OK || (out == NULL && cap > 0)) {
        return 0;
    }
    size_t shared = info_size < sizeof *out ? info_size : sizeof *out;
    size_t count = 0;
    for (const jzi_child *child = children->first; child != NULL; child = child->next, count++) {
        if (count < cap) {
            jzx_child_info info;
            unsigned char *to = (unsigned char *)out + count * info_size;
            fill_info(child, &info);
            memset(to, 0, info_size);
            memcpy(to, &info, shared);
        }
    }
    return count;
}

jzx_err jzx_supervisor_child_sized(jzx_loop *loop, jzx_actor_id sup, const char *child_id,
                                   jzx_child_info *out, size_t info_size)
{
    JZI_ENTER(loop, "jzx_supervisor_child");
    jzi_children *children = NULL;
    jzx_err err = find_children(worker, sup, STATIC, false, &children);
    if (err != JZX_OK || out == NULL || child_id == NULL) {
        return err != JZX_OK ? err : JZX_ERR_INVALID_ARG;
    }
    const jzi_child *child = find_child(children, child_id);
    if (child == NULL) {
        return JZX_ERR_NO_SUCH_CHILD;
    }
    jzx_child_info info;
    fill_info(child, &info);
    memset(out, 0, info_size);
    memcpy(out, &info, info_size < sizeof info ? info_size : sizeof info);
    return JZX_OK;
}

jzx_err jzx_supervisor_count_sized(jzx_loop *loop, jzx_actor_id sup, jzx_child_counts *out,
                                   size_t out_size)
{
    JZI_ENTER(loop, "jzx_supervisor_count");
    jzi_children *children = NULL;
    jzx_err err = find_children(worker, sup, ANY, false, &children);
    if (err != JZX_OK || out == NULL) {
        return err != JZX_OK ? err : JZX_ERR_INVALID_ARG;
    }
    bool dynamic = children->plan->policy.strategy == JZX_DYNAMIC;
    jzx_child_counts counts = {.specs = dynamic ? 1 : children->count,
                               .restarts = children->restarts};
    for (const jzi_child *child = children->first; child != NULL; child = child->next) {
        jzx_child_status status = status_of(child);
        counts.active += status != JZX_CHILD_DOWN && status != JZX_CHILD_RESTARTING;
        counts.restarts += child->child_link.restarts;
        counts.restarting += status == JZX_CHILD_RESTARTING;
        counts.supervisors += child->plan->nested != NULL;
        counts.workers += child->plan->nested == NULL;
    }
    memset(out, 0, out_size);
    memcpy(out, &counts, out_size < sizeof counts ? out_size : sizeof counts);
    return JZX_OK;
}

jzx_err jzx_supervisor_get_spec_sized(jzx_loop *loop, jzx_actor_id sup, const char *child_id,
                                      jzx_child_spec *out, size_t out_size)
{
    JZI_ENTER(loop, "jzx_supervisor_get_spec");
    jzi_children *children = NULL;
    jzx_err err = find_children(worker, sup, ANY, false, &children);
    if (err != JZX_OK || out == NULL) {
        return err != JZX_OK ? err : JZX_ERR_INVALID_ARG;
    }
    const jzi_child_plan *plan = NULL;
    if (children->plan->policy.strategy == JZX_DYNAMIC) {
        plan = children->plan->children[0];
        if (child_id != NULL && strcmp(plan->id, child_id) != 0) {
            return JZX_ERR_NO_SUCH_CHILD;
        }
    } else {
        const jzi_child *child = find_child(children, child_id);
        if (child == NULL) {
            return JZX_ERR_NO_SUCH_CHILD;
        }
        plan = child->plan;
    }
    jzx_child_spec spec = plan->spec;
    if (spec.mailbox_cap == 0) {
        spec.mailbox_cap = worker->default_cap;
    }
    if (spec.low_water == 0) {
        spec.low_water = spec.mailbox_cap / 2;
    }
    if (spec.max_msgs == 0) {
        spec.max_msgs = worker->default_max_msgs;
    }
    memset(out, 0, out_size);
    memcpy(out, &spec, out_size < sizeof spec ? out_size : sizeof spec);
    return JZX_OK;
}

jzx_err jzx_supervisor_reconfigure_sized(jzx_loop *loop, jzx_actor_id sup,
                                         const jzx_supervisor_spec *spec, size_t spec_size)
{
    JZI_ENTER(loop, "jzx_supervisor_reconfigure");
    jzi_children *children = NULL;
    jzx_err err = find_children(worker, sup, ANY, true, &children);
    if (err != JZX_OK || spec == NULL) {
        return err != JZX_OK ? err : JZX_ERR_INVALID_ARG;
    }
    jzx_supervisor_spec known;
    jzi_policy policy;
    const char *why = NULL;
    err = jzi_struct_adopt(&known, sizeof known, spec, spec_size);
    if (err == JZX_OK) {
        err = jzi_policy_make(&known, &policy, &why);
    }
    if (err != JZX_OK) {
        return err;
    }
    bool was_dynamic = children->policy.strategy == JZX_DYNAMIC;
    if (was_dynamic != (policy.strategy == JZX_DYNAMIC) ||
        (was_dynamic && policy.auto_shutdown != JZX_AUTO_NEVER)) {
        return JZX_ERR_BAD_SPEC;
    }
    return jzi_children_change_policy(children, &policy);
}
