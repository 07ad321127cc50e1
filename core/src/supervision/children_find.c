/* Which of these children an actor is, and what the child is called. */
#include "supervision/children_priv.h"

jzi_child *jzi_children_find(const jzi_worker *worker, const jzi_children *children,
                             jzx_actor_id id)
{
    const jzi_actor *actor = jzi_worker_is_far(worker, id) ? NULL : jzi_worker_find(worker, id);
    if (actor != NULL) {
        jzi_life *life = jzi_life_of(actor);
        bool here = life != NULL && life->far == NULL && life->child_link != NULL;
        jzi_child *child = here ? (jzi_child *)life->child_link : NULL;
        return child != NULL && child->children == children ? child : NULL;
    }
    jzi_child *child = id == JZX_NOBODY ? NULL : children->first;
    while (child != NULL && child->id != id) {
        child = child->next;
    }
    return child;
}

const char *jzi_child_name(const jzi_child *child)
{
    if (child->plan != NULL) {
        return child->plan->id;
    }
    const jzi_actor *actor = jzi_worker_find(child->children->dispatcher->acting, child->id);
    return actor == NULL ? "" : jzi_actor_name(actor);
}
