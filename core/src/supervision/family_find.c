/* Which child of a family an actor is. */
#include "supervision/family_priv.h"

jzi_child *jzi_family_find(const jzi_worker *worker, const jzi_family *family, jzx_actor_id id)
{
    const jzi_actor *actor = jzi_worker_is_far(worker, id) ? NULL : jzi_worker_find(worker, id);
    if (actor != NULL) {
        jzi_life *life = jzi_life_of(actor);
        bool here = life != NULL && life->far == NULL && life->bond != NULL;
        jzi_child *child = here ? (jzi_child *)life->bond : NULL;
        return child != NULL && child->family == family ? child : NULL;
    }
    jzi_child *child = id == JZX_NOBODY ? NULL : family->first;
    while (child != NULL && child->id != id) {
        child = child->next;
    }
    return child;
}
