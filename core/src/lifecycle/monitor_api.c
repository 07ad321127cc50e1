/* Entry points for watches, links and subscriptions to dead letters: thin checks over monitor and
 * letters. */
#include <jzx/dead_letter.h>
#include <jzx/monitor.h>

#include "lifecycle/lifecycle.h"
#include "lifecycle/monitor.h"
#include "sched/letters.h"

/* Whether an actor is calling. */
static bool is_inside(const jzi_worker *worker)
{
    return worker != NULL && worker->current != NULL && worker->ctx.self != JZX_NOBODY &&
           worker->phase != JZI_PHASE_NONE;
}

/* Whether the running actor may no longer be given anything new. */
static bool is_stopping(const jzi_worker *worker)
{
    uint32_t flags = worker->current->flags;
    return ((flags & JZI_ACTOR_STOPPING) != 0 && (flags & JZI_ACTOR_DEFERRED) == 0) ||
           worker->phase == JZI_PHASE_DEINIT || worker->dispatcher->destroying;
}

static jzx_err watch(jzi_worker *worker, jzx_actor_id target, uint32_t flags,
                     jzx_watch_ref *out_ref)
{
    if (!is_inside(worker) || (flags & ~JZX_WATCH_RESTARTS) != 0 || target == JZX_NOBODY ||
        target == worker->ctx.self) {
        return JZX_ERR_INVALID_ARG;
    }
    if (is_stopping(worker)) {
        return JZX_ERR_STOPPING;
    }
    return jzi_monitor_watch(worker, worker->current, target, flags, out_ref);
}

jzx_err jzx_watch(jzx_loop *loop, jzx_actor_id target, uint32_t flags, jzx_watch_ref *out_ref)
{
    if (loop != NULL && jzi_loop_is_plain(loop, "jzx_watch")) {
        return watch(jzi_loop_worker(loop), target, flags, out_ref);
    }
    JZI_ENTER(loop, "jzx_watch");
    return watch(worker, target, flags, out_ref);
}

jzx_err jzx_unwatch(jzx_loop *loop, jzx_watch_ref ref)
{
    if (loop != NULL && jzi_loop_is_plain(loop, "jzx_unwatch") &&
        is_inside(jzi_loop_worker(loop))) {
        return jzi_monitor_unwatch(jzi_loop_worker(loop), jzi_loop_worker(loop)->current, ref);
    }
    JZI_ENTER(loop, "jzx_unwatch");
    if (!is_inside(worker)) {
        return JZX_ERR_INVALID_ARG;
    }
    return jzi_monitor_unwatch(worker, worker->current, ref);
}

/* What a broken link does to either side is remembered in its life. */
static bool make_linkable(jzi_worker *worker, jzi_actor *actor)
{
    return jzi_life_make(worker, actor) != NULL;
}

jzx_err jzx_link(jzx_loop *loop, jzx_actor_id target)
{
    JZI_ENTER(loop, "jzx_link");
    if (!is_inside(worker) || target == JZX_NOBODY || target == worker->ctx.self) {
        return JZX_ERR_INVALID_ARG;
    }
    if (is_stopping(worker)) {
        return JZX_ERR_STOPPING;
    }
    return jzi_monitor_link(worker, worker->current, target, make_linkable);
}

jzx_err jzx_unlink(jzx_loop *loop, jzx_actor_id target)
{
    JZI_ENTER(loop, "jzx_unlink");
    if (!is_inside(worker)) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_actor *actor = worker->current;
    const jzi_life *life = jzi_life_of(actor);
    if (jzi_monitor_unlink(worker, actor, target) && (actor->flags & JZI_ACTOR_LINKED) != 0 &&
        life->linked.kind == JZX_REASON_LINKED && life->linked.from == target) {
        actor->flags &= ~JZI_ACTOR_LINKED;
        jzi_monitor_exit_again(worker, actor);
    }
    return JZX_OK;
}

jzx_err jzx_dead_letters_subscribe(jzx_loop *loop)
{
    JZI_ENTER(loop, "jzx_dead_letters_subscribe");
    if (!is_inside(worker)) {
        return JZX_ERR_INVALID_ARG;
    }
    if (is_stopping(worker)) {
        return JZX_ERR_STOPPING;
    }
    return jzi_letters_subscribe(worker, worker->current);
}

jzx_err jzx_dead_letters_unsubscribe(jzx_loop *loop)
{
    JZI_ENTER(loop, "jzx_dead_letters_unsubscribe");
    if (!is_inside(worker)) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_letters_unsubscribe(worker, worker->current);
    return JZX_OK;
}
