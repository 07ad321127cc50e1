/* Entry points for watches, links and subscriptions to dead letters: thin checks over monitor and
 * letters. */
#include <jzx/dead_letter.h>
#include <jzx/monitor.h>

#include "letters.h"
#include "loop.h"
#include "monitor.h"

/* The worker whose actor is calling, or NULL outside of actors. */
static jzi_worker *inside(jzx_loop *loop, const char *call)
{
    if (loop == NULL) {
        return NULL;
    }
    jzi_worker *worker = &loop->worker;
    jzi_worker_check_thread(worker, call);
    bool running = worker->current != NULL && worker->ctx.self != JZX_NOBODY &&
                   worker->phase != JZI_PHASE_NONE;
    return running ? worker : NULL;
}

/* Whether the running actor may no longer be given anything new. */
static bool is_stopping(const jzi_worker *worker)
{
    uint32_t flags = worker->current->flags;
    return ((flags & JZI_ACTOR_STOPPING) != 0 && (flags & JZI_ACTOR_DEFERRED) == 0) ||
           worker->phase == JZI_PHASE_DEINIT || worker->destroying;
}

jzx_err jzx_watch(jzx_loop *loop, jzx_actor_id target, uint32_t flags, jzx_watch_ref *out_ref)
{
    jzi_worker *worker = inside(loop, "jzx_watch");
    if (worker == NULL || (flags & ~JZX_WATCH_RESTARTS) != 0 || target == JZX_NOBODY ||
        target == worker->ctx.self) {
        return JZX_ERR_INVALID_ARG;
    }
    if (is_stopping(worker)) {
        return JZX_ERR_STOPPING;
    }
    return jzi_monitor_watch(worker, worker->current, target, flags, out_ref);
}

jzx_err jzx_unwatch(jzx_loop *loop, jzx_watch_ref ref)
{
    jzi_worker *worker = inside(loop, "jzx_unwatch");
    if (worker == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    return jzi_monitor_unwatch(worker, worker->current, ref);
}

jzx_err jzx_link(jzx_loop *loop, jzx_actor_id target)
{
    jzi_worker *worker = inside(loop, "jzx_link");
    if (worker == NULL || target == JZX_NOBODY || target == worker->ctx.self) {
        return JZX_ERR_INVALID_ARG;
    }
    if (is_stopping(worker)) {
        return JZX_ERR_STOPPING;
    }
    /* What a broken link does to either side needs a place to be remembered, and no memory (R9). */
    jzi_actor *peer = jzi_worker_find(worker, target);
    if (jzi_life_make(worker, worker->current) == NULL ||
        (peer != NULL && jzi_life_make(worker, peer) == NULL)) {
        return JZX_ERR_NO_MEMORY;
    }
    return jzi_monitor_link(worker, worker->current, target);
}

jzx_err jzx_unlink(jzx_loop *loop, jzx_actor_id target)
{
    jzi_worker *worker = inside(loop, "jzx_unlink");
    if (worker == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_monitor_unlink(worker, worker->current, target);
    return JZX_OK;
}

jzx_err jzx_dead_letters_subscribe(jzx_loop *loop)
{
    jzi_worker *worker = inside(loop, "jzx_dead_letters_subscribe");
    if (worker == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (is_stopping(worker)) {
        return JZX_ERR_STOPPING;
    }
    return jzi_letters_subscribe(worker, worker->current);
}

jzx_err jzx_dead_letters_unsubscribe(jzx_loop *loop)
{
    jzi_worker *worker = inside(loop, "jzx_dead_letters_unsubscribe");
    if (worker == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_letters_unsubscribe(worker, worker->current);
    return JZX_OK;
}
