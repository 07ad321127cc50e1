/* Watches and links as readers outside see them, through the actor's own dispatcher. */
#include "lifecycle/monitor_priv.h"

#include <jzx/types.h>

typedef struct relation_list {
    jzx_actor_id *out;
    size_t cap;
    size_t count;
} relation_list;

/* The watches or links of a tree that still hold. Whether one between two dispatchers still holds
 * is known only in the other dispatcher; here it counts until its end is heard of. */
static void add_tree(relation_list *list, const jzi_watch *watch, bool links)
{
    while (watch != NULL && list->count < list->cap) {
        if (watch->link == links && (watch->far || watch->next != NULL)) {
            list->out[list->count++] = links ? watch->key : watch->signal.from;
        }
        add_tree(list, watch->up[0], links); /* at most 66 deep: one level per bit of a key */
        watch = watch->up[1];
    }
}

static void add_ring(relation_list *list, const jzi_watch *head)
{
    const jzi_watch *watch = head;
    while (watch != NULL && list->count < list->cap) {
        /* Another dispatcher may be taking the watch back. */
        jzx_actor_id watcher = JZI_PEEK(watch->watcher);
        if (!watch->link && watcher != JZX_NOBODY) {
            list->out[list->count++] = watcher;
        }
        watch = watch->next == head ? NULL : watch->next;
    }
}

size_t jzi_monitor_list(const jzi_actor *actor, jzi_relation which, jzx_actor_id *out, size_t cap)
{
    relation_list list = {.out = out, .cap = cap};
    if (actor->cold == NULL) {
        return 0;
    }
    if (which == JZI_RELATION_WATCHERS) {
        add_ring(&list, actor->cold->watchers);
    } else {
        add_tree(&list, actor->cold->watching, which == JZI_RELATION_LINKS);
    }
    return list.count;
}
