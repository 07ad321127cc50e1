/* jzx_restart(): the parent of an actor restarts it because a caller asked. The request goes where
 * the actor lives, and from there, as news, to its parent.
 *
 *   caller --errand--> the actor's dispatcher --news--> its parent's dispatcher:
 *                                                       jzi_children_restart() */
#include "supervision/children.h"

#include "base/alloc.h"

/* In the actor's own dispatcher. A parent elsewhere decides when it hears of the request. */
static jzx_err restart_here(jzi_worker *worker, jzi_actor *actor)
{
    const jzi_life *life = jzi_life_of(actor);
    if (life == NULL || life->child_link == NULL) {
        return JZX_ERR_WRONG_SUPERVISOR;
    }
    if ((actor->flags & (JZI_ACTOR_STOP | JZI_ACTOR_DRAIN)) != 0 ||
        worker->dispatcher->destroying) {
        return JZX_ERR_STOPPING; /* a stop wins */
    }
    if (life->far == NULL) {
        return jzi_children_restart(worker, jzi_lifecycle_parent(worker, actor), actor->id);
    }
    if (!jzi_children_can_restart(life->child_link->mode, actor)) {
        return JZX_ERR_NOT_RESTARTABLE;
    }
    if (jzi_actor_state_of(actor) != JZX_STATE_RUNNING) {
        return JZX_ERR_CHILD_RESTARTING;
    }
    jzi_lifecycle_ask_restart(worker, actor);
    return JZX_OK;
}

typedef struct restart_call {
    jzi_errand errand;
    jzx_allocator alloc;
    jzx_actor_id id;
} restart_call;

static void supervisor_restart_arrive(jzi_worker *worker, jzi_errand *errand)
{
    restart_call *call = jzi_container_of(errand, restart_call, errand);
    jzi_actor *actor = jzi_worker_find(worker, call->id);
    if (actor != NULL) {
        (void)restart_here(worker, actor);
    }
    jzx_allocator alloc = call->alloc;
    jzi_free(&alloc, call, sizeof *call);
}

jzx_err jzi_restart_far(const jzi_directory *directory, const jzx_allocator *alloc, jzx_actor_id id)
{
    jzi_inbox *inbox = NULL;
    const jzi_actor *actor = NULL;
    jzx_err err = jzi_directory_lookup(directory, id, &inbox, &actor);
    if (err != JZX_OK) {
        return err;
    }
    restart_call *call = jzi_alloc_zeroed(alloc, sizeof *call);
    if (call == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    call->errand.run = supervisor_restart_arrive;
    call->alloc = *alloc;
    call->id = id;
    if (!jzi_errand_post(inbox, &call->errand)) {
        jzi_free(alloc, call, sizeof *call);
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    return JZX_OK;
}

jzx_err jzx_restart(jzx_loop *loop, jzx_actor_id id)
{
    JZI_ENTER(loop, "jzx_restart");
    if (worker == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (jzi_worker_is_far(worker, id)) {
        return jzi_restart_far(worker->dispatcher->directory, &worker->alloc, id);
    }
    jzi_actor *actor = jzi_worker_find(worker, id);
    return actor == NULL ? JZX_ERR_NO_SUCH_ACTOR : restart_here(worker, actor);
}
