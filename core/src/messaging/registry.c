#include "messaging/registry_priv.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "os/thread.h"

#include <string.h>

/* The index. */

static void registry_put(jzi_index *index, jzi_indexed *record)
{
    jzi_indexed **bucket = &index->buckets[record->hash & index->mask];
    record->next = *bucket;
    *bucket = record;
}

static void registry_grow(jzi_index *index, const jzx_allocator *alloc)
{
    uint32_t old_cap = index->mask + 1;
    jzi_indexed **old = index->buckets;
    jzi_indexed **buckets = jzi_alloc_zeroed(alloc, 2 * (size_t)old_cap * sizeof *buckets);
    if (buckets == NULL) {
        return; /* the chains become longer */
    }
    index->buckets = buckets;
    index->mask = 2 * old_cap - 1;
    for (uint32_t i = 0; i < old_cap; i++) {
        while (old[i] != NULL) {
            jzi_indexed *record = old[i];
            old[i] = record->next;
            registry_put(index, record);
        }
    }
    if (old != index->first) {
        jzi_free(alloc, old, old_cap * sizeof *old);
    }
}

static void index_init(jzi_index *index)
{
    index->buckets = index->first;
    index->mask = JZI_INDEX_FIRST - 1;
}

static void index_deinit(jzi_index *index, const jzx_allocator *alloc)
{
    jzi_assert(index->count == 0);
    if (index->buckets != index->first) {
        jzi_free(alloc, index->buckets, ((size_t)index->mask + 1) * sizeof *index->buckets);
    }
}

void jzi_index_add(jzi_index *index, const jzx_allocator *alloc, jzi_indexed *record, uint64_t hash)
{
    if (index->count > index->mask) {
        registry_grow(index, alloc);
    }
    record->hash = hash;
    registry_put(index, record);
    index->count++;
}

void jzi_index_remove(jzi_index *index, jzi_indexed *record)
{
    jzi_indexed **at = &index->buckets[record->hash & index->mask];
    while (*at != record) {
        at = &(*at)->next;
    }
    *at = record->next;
    index->count--;
}

void jzi_text_copy(char *to, const char *text)
{
    memcpy(to, text, strlen(text));
}

void jzi_option_copy_out(void *out, size_t size, size_t index, const void *info, size_t info_size)
{
    unsigned char *to = (unsigned char *)out + index * size;
    memset(to, 0, size);
    memcpy(to, info, size < info_size ? size : info_size);
}

/* The life of a registry. */

jzi_registry *jzi_registry_create(const jzx_allocator *alloc)
{
    jzi_registry *registry = jzi_alloc_zeroed(alloc, sizeof *registry);
    if (registry == NULL) {
        return NULL;
    }
    registry->alloc = *alloc;
    jzi_mutex_init(&registry->lock);
    jzi_cond_init(&registry->changed);
    index_init(&registry->names);
    index_init(&registry->groups);
    index_init(&registry->holders);
    return registry;
}

void jzi_registry_close(jzi_registry *registry)
{
    if (registry->abandoned) {
        return;
    }
    jzi_registry_lock(registry);
    registry->closed = true;
    (void)pthread_cond_broadcast(&registry->changed);
    while (registry->blocked > 0) {
        jzi_cond_wait(&registry->changed, &registry->lock, UINT64_MAX);
    }
    jzi_registry_unlock(registry);
}

void jzi_registry_abandon(jzi_registry *registry)
{
    registry->abandoned = true;
}

bool jzi_registry_is_free(jzi_registry *registry)
{
    if (pthread_mutex_trylock(&registry->lock) != 0) {
        return false;
    }
    (void)pthread_mutex_unlock(&registry->lock);
    return true;
}

void jzi_registry_destroy(jzi_registry *registry)
{
    if (registry == NULL) {
        return;
    }
    jzx_allocator alloc = registry->alloc;
    index_deinit(&registry->names, &alloc);
    index_deinit(&registry->groups, &alloc);
    index_deinit(&registry->holders, &alloc);
    if (!registry->abandoned) {
        (void)pthread_cond_destroy(&registry->changed);
        (void)pthread_mutex_destroy(&registry->lock);
    }
    jzi_free(&alloc, registry, sizeof *registry);
}

/* Holders. */

jzi_holder *jzi_holder_lookup(const jzi_registry *registry, jzx_actor_id id)
{
    for (jzi_indexed *at = jzi_index_chain(&registry->holders, jzi_hash_mix(id)); at != NULL;
         at = at->next) {
        jzi_holder *holder = jzi_container_of(at, jzi_holder, by_id);
        if (holder->id == id) {
            return holder;
        }
    }
    return NULL;
}

jzi_holder *jzi_holder_make(jzi_registry *registry, jzx_actor_id id)
{
    jzi_holder *holder = jzi_holder_lookup(registry, id);
    if (holder == NULL) {
        holder = jzi_alloc_zeroed(&registry->alloc, sizeof *holder);
        if (holder != NULL) {
            holder->id = id;
            jzi_index_add(&registry->holders, &registry->alloc, &holder->by_id, jzi_hash_mix(id));
        }
    }
    return holder;
}

void jzi_holder_settle(jzi_registry *registry, jzi_holder *holder, jzi_actor *actor)
{
    jzi_listed *name = holder->names.first;
    jzi_listed *member = holder->members.first;
    jzi_pattern_state *patterns = actor->cold->patterns;
    patterns->names = name == NULL ? NULL : jzi_container_of(name, jzi_name, in_holder);
    patterns->groups = member == NULL ? NULL : jzi_container_of(member, jzi_member, in_holder);
    if (name == NULL && member == NULL) {
        jzi_index_remove(&registry->holders, &holder->by_id);
        jzi_free(&registry->alloc, holder, sizeof *holder);
    }
}

/* Names. */

jzx_err jzi_name_check(const char *text)
{
    if (text == NULL || text[0] == '\0') {
        return JZX_ERR_INVALID_ARG;
    }
    return memchr(text, '\0', JZX_NAME_MAX + 1) == NULL ? JZX_ERR_TOO_BIG : JZX_OK;
}

jzi_name *jzi_name_lookup(const jzi_registry *registry, const char *text)
{
    uint64_t hash = jzi_hash_text(text);
    for (jzi_indexed *at = jzi_index_chain(&registry->names, hash); at != NULL; at = at->next) {
        jzi_name *name = jzi_container_of(at, jzi_name, by_text);
        if (at->hash == hash && strcmp(name->text, text) == 0) {
            return name;
        }
    }
    return NULL;
}

jzi_name *jzi_name_make(jzi_registry *registry, const char *text)
{
    jzi_name *name = jzi_name_lookup(registry, text);
    if (name == NULL) {
        name = jzi_alloc_zeroed(&registry->alloc, sizeof *name);
        if (name != NULL) {
            jzi_text_copy(name->text, text);
            jzi_index_add(&registry->names, &registry->alloc, &name->by_text, jzi_hash_text(text));
        }
    }
    return name;
}

void jzi_name_drop_unused(jzi_registry *registry, jzi_name *name)
{
    if (name->id == JZX_NOBODY && name->waits.first == NULL) {
        jzi_index_remove(&registry->names, &name->by_text);
        jzi_free(&registry->alloc, name, sizeof *name);
    }
}

/* Gives a name to an actor. *out_name is NULL if the name is the actor's already. */
static jzx_err registry_take(jzi_registry *registry, jzi_actor *actor, jzx_actor_id id,
                             const char *text, jzi_name **out_name)
{
    jzi_name *name = jzi_name_lookup(registry, text);
    *out_name = NULL;
    if (name != NULL && name->id != JZX_NOBODY) {
        return name->id == id ? JZX_OK : JZX_ERR_NAME_TAKEN;
    }
    jzi_holder *holder = jzi_holder_make(registry, id);
    name = holder == NULL ? NULL : jzi_name_make(registry, text);
    if (name != NULL) {
        name->id = id;
        jzi_list_append(&registry->all_names, &name->in_all);
        jzi_list_append(&holder->names, &name->in_holder);
        registry->name_count++;
        holder->name_count++;
        *out_name = name;
    }
    if (holder != NULL) {
        jzi_holder_settle(registry, holder, actor);
    }
    return name == NULL ? JZX_ERR_NO_MEMORY : JZX_OK;
}

/* The name has no holder any more. */
static void untake(jzi_registry *registry, jzi_holder *holder, jzi_name *name)
{
    name->id = JZX_NOBODY;
    jzi_list_remove(&registry->all_names, &name->in_all);
    jzi_list_remove(&holder->names, &name->in_holder);
    registry->name_count--;
    holder->name_count--;
    jzi_name_drop_unused(registry, name);
}

/* The actors and threads that wait for the name hear that it has a holder. */
static void announce(jzi_worker *worker, jzi_name *name)
{
    jzi_registry *registry = jzi_registry_of(worker);
    jzi_waits_tell(worker, name);
    if (registry->blocked > 0) {
        (void)pthread_cond_broadcast(&registry->changed);
    }
}

jzx_err jzi_name_register(jzi_worker *worker, jzi_actor *actor, const char *text)
{
    jzi_registry *registry = jzi_registry_of(worker);
    if (jzi_worker_pattern_state(worker, actor) == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_name *name = NULL;
    jzi_registry_lock(registry);
    jzx_err err = registry_take(registry, actor, actor->id, text, &name);
    if (name != NULL) {
        announce(worker, name);
    }
    jzi_registry_unlock(registry);
    return err;
}

jzx_err jzi_name_reserve(jzi_worker *clerk, jzi_actor *actor, jzx_actor_id id, const char *text,
                         jzi_name **out_name)
{
    jzi_registry *registry = jzi_registry_of(clerk);
    if (jzi_worker_pattern_state(clerk, actor) == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_registry_lock(registry);
    jzx_err err = registry_take(registry, actor, id, text, out_name);
    if (err != JZX_OK) {
        jzi_registry_unlock(registry);
    }
    return err;
}

void jzi_name_confirm(jzi_worker *clerk, jzi_name *name)
{
    announce(clerk, name);
    jzi_registry_unlock(jzi_registry_of(clerk));
}

void jzi_name_withdraw(jzi_worker *clerk, jzi_actor *actor, jzi_name *name)
{
    jzi_registry *registry = jzi_registry_of(clerk);
    jzi_holder *holder = jzi_holder_lookup(registry, name->id);
    untake(registry, holder, name);
    jzi_holder_settle(registry, holder, actor);
    jzi_registry_unlock(registry);
}

/* An actor of this dispatcher that has something here, and so is alive: its slot is enough, also
 * while its birth waits for memory. */
static jzi_actor *actor_of(const jzi_worker *worker, jzx_actor_id id)
{
    return jzi_worker_slot(worker, jzx_id_slot(id));
}

jzx_err jzi_name_unregister(jzi_worker *worker, const char *text)
{
    jzi_registry *registry = jzi_registry_of(worker);
    jzi_registry_lock(registry);
    jzi_name *name = jzi_name_lookup(registry, text);
    jzx_actor_id id = name == NULL ? JZX_NOBODY : name->id;
    jzx_err err = id == JZX_NOBODY                ? JZX_ERR_NO_SUCH_NAME
                  : jzi_worker_is_far(worker, id) ? JZX_ERR_WRONG_DISPATCHER
                                                  : JZX_OK;
    if (err == JZX_OK) {
        jzi_holder *holder = jzi_holder_lookup(registry, id);
        untake(registry, holder, name);
        jzi_holder_settle(registry, holder, actor_of(worker, id));
    }
    jzi_registry_unlock(registry);
    return err;
}

jzx_actor_id jzi_name_find(jzi_registry *registry, const char *text)
{
    jzi_registry_lock(registry);
    const jzi_name *name = jzi_name_lookup(registry, text);
    jzx_actor_id id = name == NULL ? JZX_NOBODY : name->id;
    jzi_registry_unlock(registry);
    return id;
}

static void name_out(const jzi_name *name, jzx_name_info *out, size_t info_size, size_t index)
{
    jzx_name_info info = {.id = name->id};
    jzi_text_copy(info.name, name->text);
    jzi_option_copy_out(out, info_size, index, &info, sizeof info);
}

size_t jzi_names_of(jzi_registry *registry, jzx_actor_id id, jzx_name_info *out, size_t info_size,
                    size_t cap)
{
    jzi_registry_lock(registry);
    const jzi_holder *holder = jzi_holder_lookup(registry, id);
    size_t count = holder == NULL ? 0 : holder->name_count;
    jzi_listed *at = holder == NULL ? NULL : holder->names.first;
    for (size_t i = 0; i < cap && at != NULL; i++, at = at->next) {
        name_out(jzi_container_of(at, jzi_name, in_holder), out, info_size, i);
    }
    jzi_registry_unlock(registry);
    return count;
}

size_t jzi_names_all(jzi_registry *registry, jzx_name_info *out, size_t info_size, size_t cap)
{
    jzi_registry_lock(registry);
    size_t count = registry->name_count;
    jzi_listed *at = registry->all_names.first;
    for (size_t i = 0; i < cap && at != NULL; i++, at = at->next) {
        name_out(jzi_container_of(at, jzi_name, in_all), out, info_size, i);
    }
    jzi_registry_unlock(registry);
    return count;
}

/* The actor's id resolves no more, and no watcher was told: needs no memory, and cannot fail. */
void jzi_registry_release(jzi_worker *worker, jzi_actor *actor, jzx_actor_id id)
{
    const jzi_pattern_state *patterns = actor->cold->patterns;
    if (patterns->names == NULL && patterns->groups == NULL) {
        return;
    }
    jzi_registry *registry = jzi_registry_of(worker);
    jzi_registry_lock(registry);
    jzi_holder *holder = jzi_holder_lookup(registry, id);
    while (holder->names.first != NULL) {
        untake(registry, holder, jzi_container_of(holder->names.first, jzi_name, in_holder));
    }
    jzi_group_release(worker, holder);
    jzi_holder_settle(registry, holder, actor);
    jzi_registry_unlock(registry);
}

void jzi_registry_init(jzi_worker *worker)
{
    jzi_waits_init(worker);
}
