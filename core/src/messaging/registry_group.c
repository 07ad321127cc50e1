/* Groups: sets of actors, with a version for each change. */
#include "messaging/registry_priv.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <string.h>

jzi_group *jzi_group_lookup(const jzi_registry *registry, const char *text)
{
    uint64_t hash = jzi_hash_text(text);
    for (jzi_indexed *at = jzi_index_chain(&registry->groups, hash); at != NULL; at = at->next) {
        jzi_group *group = jzi_container_of(at, jzi_group, by_text);
        if (at->hash == hash && strcmp(group->text, text) == 0) {
            return group;
        }
    }
    return NULL;
}

jzi_group *jzi_group_make(jzi_registry *registry, const char *text)
{
    jzi_group *group = jzi_group_lookup(registry, text);
    if (group == NULL) {
        group = jzi_alloc_zeroed(&registry->alloc, sizeof *group);
        if (group != NULL) {
            jzi_text_copy(group->text, text);
            jzi_index_add(&registry->groups, &registry->alloc, &group->by_text,
                          jzi_hash_text(text));
            jzi_list_append(&registry->all_groups, &group->in_all);
            registry->group_count++;
        }
    }
    return group;
}

void jzi_group_drop_unused(jzi_registry *registry, jzi_group *group)
{
    if (group->member_count == 0 && group->watch_count == 0) {
        jzi_index_remove(&registry->groups, &group->by_text);
        jzi_list_remove(&registry->all_groups, &group->in_all);
        registry->group_count--;
        jzi_free(&registry->alloc, group, sizeof *group);
    }
}

/* Versions come from one count for all groups, so that a group that begins anew has new ones. */
static void changed(jzi_worker *worker, jzi_group *group)
{
    jzi_registry *registry = jzi_registry_of(worker);
    /* release: a reader that sees the number and then takes the lock sees the change. Written with
     * the lock. */
    group->version = atomic_load_explicit(&registry->group_changes, memory_order_relaxed) + 1;
    atomic_store_explicit(&registry->group_changes, group->version, memory_order_release);
    jzi_watches_tell(worker, group);
}

static jzi_member *find_member(const jzi_holder *holder, const jzi_group *group)
{
    for (jzi_listed *at = holder->members.first; at != NULL; at = at->next) {
        jzi_member *member = jzi_container_of(at, jzi_member, in_holder);
        if (member->group == group) {
            return member;
        }
    }
    return NULL;
}

static jzx_err add_member(jzi_worker *worker, jzi_holder *holder, jzi_group *group)
{
    if (find_member(holder, group) != NULL) {
        return JZX_OK;
    }
    jzi_member *member = jzi_alloc_zeroed(&jzi_registry_of(worker)->alloc, sizeof *member);
    if (member == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    member->group = group;
    member->id = holder->id;
    jzi_list_append(&group->members, &member->in_group);
    jzi_list_append(&holder->members, &member->in_holder);
    group->member_count++;
    holder->member_count++;
    group->joined++;
    changed(worker, group);
    return JZX_OK;
}

static void remove_member(jzi_worker *worker, jzi_holder *holder, jzi_member *member)
{
    jzi_registry *registry = jzi_registry_of(worker);
    jzi_group *group = member->group;
    jzi_list_remove(&group->members, &member->in_group);
    jzi_list_remove(&holder->members, &member->in_holder);
    group->member_count--;
    holder->member_count--;
    group->left++;
    jzi_free(&registry->alloc, member, sizeof *member);
    changed(worker, group);
    jzi_group_drop_unused(registry, group);
}

jzx_err jzi_group_join(jzi_worker *worker, jzi_actor *actor, const char *text)
{
    jzi_registry *registry = jzi_registry_of(worker);
    if (jzi_worker_pattern_state(worker, actor) == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_registry_lock(registry);
    jzx_err err = JZX_ERR_NO_MEMORY;
    jzi_holder *holder = jzi_holder_make(registry, actor->id);
    jzi_group *group = holder == NULL ? NULL : jzi_group_make(registry, text);
    if (group != NULL) {
        err = add_member(worker, holder, group);
        jzi_group_drop_unused(registry, group);
    }
    if (holder != NULL) {
        jzi_holder_settle(registry, holder, actor);
    }
    jzi_registry_unlock(registry);
    return err;
}

jzx_err jzi_group_leave(jzi_worker *worker, jzi_actor *actor, const char *text)
{
    jzi_registry *registry = jzi_registry_of(worker);
    jzi_registry_lock(registry);
    const jzi_group *group = jzi_group_lookup(registry, text);
    jzi_holder *holder = group == NULL ? NULL : jzi_holder_lookup(registry, actor->id);
    jzi_member *member = holder == NULL ? NULL : find_member(holder, group);
    if (member != NULL) {
        remove_member(worker, holder, member);
        jzi_holder_settle(registry, holder, actor);
    }
    jzi_registry_unlock(registry);
    return member == NULL ? JZX_ERR_NO_SUCH_GROUP : JZX_OK;
}

void jzi_group_release(jzi_worker *worker, jzi_holder *holder)
{
    while (holder->members.first != NULL) {
        remove_member(worker, holder,
                      jzi_container_of(holder->members.first, jzi_member, in_holder));
    }
}

size_t jzi_group_members(jzi_registry *registry, const char *text, jzx_actor_id *out, size_t cap)
{
    jzi_registry_lock(registry);
    const jzi_group *group = jzi_group_lookup(registry, text);
    size_t count = group == NULL ? 0 : group->member_count;
    jzi_listed *at = group == NULL ? NULL : group->members.first;
    for (size_t i = 0; i < cap && at != NULL; i++, at = at->next) {
        out[i] = jzi_container_of(at, jzi_member, in_group)->id;
    }
    jzi_registry_unlock(registry);
    return count;
}

uint64_t jzi_group_version(jzi_registry *registry, const char *text)
{
    if (text == NULL) {
        return atomic_load_explicit(&registry->group_changes, memory_order_acquire);
    }
    jzi_registry_lock(registry);
    const jzi_group *group = jzi_group_lookup(registry, text);
    uint64_t version = group == NULL ? 0 : group->version;
    jzi_registry_unlock(registry);
    return version;
}

static void group_out(const jzi_group *group, jzx_group_info *out, size_t info_size, size_t index)
{
    jzx_group_info info = {
        .version = group->version, .members = group->member_count, .watchers = group->watch_count};
    jzi_text_copy(info.group, group->text);
    jzi_option_copy_out(out, info_size, index, &info, sizeof info);
}

size_t jzi_groups_of(jzi_registry *registry, jzx_actor_id id, jzx_group_info *out, size_t info_size,
                     size_t cap)
{
    jzi_registry_lock(registry);
    const jzi_holder *holder = jzi_holder_lookup(registry, id);
    size_t count = holder == NULL ? 0 : holder->member_count;
    jzi_listed *at = holder == NULL ? NULL : holder->members.first;
    for (size_t i = 0; i < cap && at != NULL; i++, at = at->next) {
        group_out(jzi_container_of(at, jzi_member, in_holder)->group, out, info_size, i);
    }
    jzi_registry_unlock(registry);
    return count;
}

size_t jzi_groups_all(jzi_registry *registry, jzx_group_info *out, size_t info_size, size_t cap)
{
    jzi_registry_lock(registry);
    size_t count = registry->group_count;
    jzi_listed *at = registry->all_groups.first;
    for (size_t i = 0; i < cap && at != NULL; i++, at = at->next) {
        group_out(jzi_container_of(at, jzi_group, in_all), out, info_size, i);
    }
    jzi_registry_unlock(registry);
    return count;
}
