/* Shared by the sources of registry only.
 *
 *   names   by text --> jzi_name ----- id, in the list of all and in its holder's list
 *                                 \--- waits, while it has no holder
 *   groups  by text --> jzi_group ---- members, watches
 *   holders by id   --> jzi_holder --- names and memberships of one actor
 *
 * Invariants, when the lock is free:
 *   I1  A name is had (id, in both lists, no waits) or waited for (no id, in neither list).
 *   I2  A group has a member or a watch; a holder has a name or a membership.
 *   I3  Every holder is an actor that is alive, born or about to be, and the names and groups of
 *       its cold->patterns are the first ones of the holder's lists. */
#ifndef JZI_REGISTRY_STEPS_H
#define JZI_REGISTRY_STEPS_H

#include "base/list.h"
#include "messaging/registry.h"
#include "time/alarm.h"

/* Lists in the order of their making. */
typedef struct jzi_listed {
    struct jzi_listed *next;
    struct jzi_listed *prev;
} jzi_listed;
typedef struct jzi_list {
    jzi_listed *first;
    jzi_listed *last;
} jzi_list;

static inline void jzi_list_append(jzi_list *list, jzi_listed *at)
{
    JZI_QUEUE_APPEND(list, at);
}
static inline void jzi_list_remove(jzi_list *list, jzi_listed *at)
{
    JZI_QUEUE_REMOVE(list, at);
    at->next = at->prev = NULL;
}

/* A hash table of records that are linked into it. The table needs memory only to become faster, so
 * adding to it cannot fail. Its order means nothing. */
typedef struct jzi_indexed {
    struct jzi_indexed *next;
    uint64_t hash;
} jzi_indexed;
enum { JZI_INDEX_FIRST = JZI_STRESS ? 1 : 8 };
typedef struct jzi_index {
    jzi_indexed **buckets; /* `first`, until there is more */
    uint32_t mask;
    uint32_t count;
    jzi_indexed *first[JZI_INDEX_FIRST];
} jzi_index;

static inline jzi_indexed *jzi_index_chain(const jzi_index *index, uint64_t hash)
{
    return index->buckets[hash & index->mask];
}
void jzi_index_add(jzi_index *index, const jzx_allocator *alloc, jzi_indexed *record,
                   uint64_t hash);
void jzi_index_remove(jzi_index *index, jzi_indexed *record);
/* What was checked; to has room for JZX_NAME_MAX bytes and is zeroed. */
void jzi_text_copy(char *to, const char *text);

struct jzi_registry {
    jzx_allocator alloc;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* for threads that wait: a name was registered, or `closed` */
    uint32_t blocked;       /* how many threads wait */
    bool closed;
    bool abandoned; /* after fork(2): a thread of the parent may hold the lock */
    uint64_t last_ref;
    jzi_index names;
    jzi_index groups;
    jzi_index holders;
    jzi_list all_names; /* that have holders */
    jzi_list all_groups;
    uint32_t name_count;
    uint32_t group_count;
    _Atomic uint64_t group_changes; /* changed under the lock; the version of the latest change */
};

struct jzi_name {
    jzi_indexed by_text;
    jzi_listed in_all;
    jzi_listed in_holder;
    jzi_list waits;
    jzx_actor_id id;
    char text[JZX_NAME_MAX + 1];
};

typedef struct jzi_holder {
    jzi_indexed by_id;
    jzx_actor_id id;
    jzi_list names;
    jzi_list members;
    uint32_t name_count;
    uint32_t member_count;
} jzi_holder;

typedef struct jzi_group {
    jzi_indexed by_text;
    jzi_listed in_all;
    jzi_list members;
    jzi_list watches;
    uint32_t member_count;
    uint32_t watch_count;
    uint64_t version;
    uint64_t joined; /* ever */
    uint64_t left;
    char text[JZX_NAME_MAX + 1];
} jzi_group;

typedef struct jzi_member {
    jzi_listed in_group;
    jzi_listed in_holder;
    jzi_group *group;
    jzx_actor_id id;
} jzi_member;

static inline jzi_registry *jzi_registry_of(const jzi_worker *worker)
{
    return worker->dispatcher->registry;
}
static inline void jzi_registry_lock(jzi_registry *registry)
{
    if (!registry->abandoned) {
        (void)pthread_mutex_lock(&registry->lock);
    }
}
static inline void jzi_registry_unlock(jzi_registry *registry)
{
    if (!registry->abandoned) {
        (void)pthread_mutex_unlock(&registry->lock);
    }
}

/* All that follows: with the lock. */

/* NULL: the name has neither a holder nor waits. */
jzi_name *jzi_name_lookup(const jzi_registry *registry, const char *text);
/* A name without a holder, made if need be. NULL: no memory. */
jzi_name *jzi_name_make(jzi_registry *registry, const char *text);
/* Frees the name if it has neither a holder nor waits. */
void jzi_name_drop_unused(jzi_registry *registry, jzi_name *name);

/* NULL: the actor has nothing here. */
jzi_holder *jzi_holder_lookup(const jzi_registry *registry, jzx_actor_id id);
jzi_holder *jzi_holder_make(jzi_registry *registry, jzx_actor_id id);
/* Keeps I3, and frees a holder that has nothing left. */
void jzi_holder_settle(jzi_registry *registry, jzi_holder *holder, jzi_actor *actor);

jzi_group *jzi_group_lookup(const jzi_registry *registry, const char *text);
jzi_group *jzi_group_make(jzi_registry *registry, const char *text);
void jzi_group_drop_unused(jzi_registry *registry, jzi_group *group);
/* The holder leaves all its groups. */
void jzi_group_release(jzi_worker *worker, jzi_holder *holder);

/* The name has a holder now: the actors that wait for the name are told. */
void jzi_waits_tell(jzi_worker *worker, jzi_name *name);
/* The group changed: its watchers are told, unless their notice waits already. */
void jzi_watches_tell(jzi_worker *worker, jzi_group *group);
/* Installs JZI_EVENT_NAME. */
void jzi_waits_init(jzi_worker *worker);

/* The caller's array of structs of `size` bytes each. */
void jzi_option_copy_out(void *out, size_t size, size_t index, const void *info, size_t info_size);

#endif
