/* Entry points for names and groups: thin checks over registry. Any thread may look: that takes
 * the table's own lock and no pool lock. */
#include "messaging/registry.h"
#include "sched/entry.h"

static jzi_registry *registry_of(const jzx_loop *loop)
{
    return jzi_loop_worker(loop)->dispatcher->registry;
}

/* The running actor, if it may be given something new. Errors: INVALID_ARG, STOPPING. */
static jzx_err find_self(const jzi_worker *worker, jzi_actor **out_actor)
{
    if (jzi_worker_self(worker) == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (worker->phase == JZI_PHASE_DEINIT) {
        return JZX_ERR_STOPPING;
    }
    return jzi_worker_find_owner(worker, worker->ctx.self, out_actor);
}

/* An actor of this dispatcher that is to be given a name or a group. */
static jzx_err find_open(const jzi_worker *worker, jzx_actor_id id, jzi_actor **out_actor)
{
    jzx_err err = jzi_worker_find_open(worker, id, out_actor);
    return err == JZX_ERR_NO_SUCH_ACTOR ? jzi_worker_not_here(worker, id) : err;
}

/* Names. */

jzx_err jzx_register(jzx_loop *loop, const char *name, jzx_actor_id id)
{
    JZI_ENTER(loop, "jzx_register");
    jzi_actor *actor = NULL;
    jzx_err err = worker == NULL ? JZX_ERR_INVALID_ARG : jzi_name_check(name);
    if (err == JZX_OK) {
        err = find_open(worker, id, &actor);
    }
    return err != JZX_OK ? err : jzi_name_register(worker, actor, name);
}

jzx_err jzx_unregister(jzx_loop *loop, const char *name)
{
    JZI_ENTER(loop, "jzx_unregister");
    jzx_err err = worker == NULL ? JZX_ERR_INVALID_ARG : jzi_name_check(name);
    return err != JZX_OK ? err : jzi_name_unregister(worker, name);
}

jzx_actor_id jzx_whereis(jzx_loop *loop, const char *name)
{
    return loop == NULL || jzi_name_check(name) != JZX_OK ? JZX_NOBODY
                                                          : jzi_name_find(registry_of(loop), name);
}

size_t jzx_names_of_sized(jzx_loop *loop, jzx_actor_id id, jzx_name_info *out, size_t info_size,
                          size_t cap)
{
    return loop == NULL
               ? 0
               : jzi_names_of(registry_of(loop), id, out, info_size, out == NULL ? 0 : cap);
}

size_t jzx_registered_sized(jzx_loop *loop, jzx_name_info *out, size_t info_size, size_t cap)
{
    return loop == NULL ? 0
                        : jzi_names_all(registry_of(loop), out, info_size, out == NULL ? 0 : cap);
}

jzx_err jzx_await_name(jzx_loop *loop, const char *name, uint64_t timeout_ms, jzx_name_ref *out_ref)
{
    JZI_ENTER(loop, "jzx_await_name");
    jzi_actor *actor = NULL;
    jzx_err err = worker == NULL ? JZX_ERR_INVALID_ARG : jzi_name_check(name);
    if (err == JZX_OK) {
        err = find_self(worker, &actor);
    }
    return err != JZX_OK ? err : jzi_name_await(worker, actor, name, timeout_ms, out_ref);
}

/* A request or a watch of the running actor, which may be ending. */
static jzx_err end_wait(jzi_worker *worker, uint64_t ref, bool group)
{
    jzi_actor *actor = worker == NULL ? NULL : jzi_worker_self(worker);
    return actor == NULL ? JZX_ERR_INVALID_ARG : jzi_wait_end(worker, actor, ref, group);
}

jzx_err jzx_await_cancel(jzx_loop *loop, jzx_name_ref ref)
{
    JZI_ENTER(loop, "jzx_await_cancel");
    return end_wait(worker, ref, false);
}

jzx_err jzx_await_name_blocking(jzx_loop *loop, const char *name, uint64_t timeout_ms,
                                jzx_actor_id *out_id)
{
    jzx_err err = loop == NULL || out_id == NULL ? JZX_ERR_INVALID_ARG : jzi_name_check(name);
    if (err != JZX_OK) {
        return err;
    }
    if (jzi_worker_here != NULL) {
        return JZX_ERR_DEADLOCK;
    }
    return jzi_name_await_thread(registry_of(loop), jzi_loop_worker(loop)->env, name, timeout_ms,
                                 out_id);
}

/* Groups. */

jzx_err jzx_group_join(jzx_loop *loop, const char *group, jzx_actor_id id)
{
    JZI_ENTER(loop, "jzx_group_join");
    jzi_actor *actor = NULL;
    jzx_err err = worker == NULL ? JZX_ERR_INVALID_ARG : jzi_name_check(group);
    if (err == JZX_OK) {
        err = find_open(worker, id, &actor);
    }
    return err != JZX_OK ? err : jzi_group_join(worker, actor, group);
}

jzx_err jzx_group_leave(jzx_loop *loop, const char *group, jzx_actor_id id)
{
    JZI_ENTER(loop, "jzx_group_leave");
    jzx_err err = worker == NULL ? JZX_ERR_INVALID_ARG : jzi_name_check(group);
    if (err != JZX_OK) {
        return err;
    }
    jzi_actor *actor = jzi_worker_find(worker, id);
    return actor == NULL ? jzi_worker_not_here(worker, id) : jzi_group_leave(worker, actor, group);
}

size_t jzx_group_members(jzx_loop *loop, const char *group, jzx_actor_id *out, size_t cap)
{
    if (loop == NULL || jzi_name_check(group) != JZX_OK) {
        return 0;
    }
    return jzi_group_members(registry_of(loop), group, out, out == NULL ? 0 : cap);
}

size_t jzx_group_count(jzx_loop *loop, const char *group)
{
    return jzx_group_members(loop, group, NULL, 0);
}

uint64_t jzx_group_version(jzx_loop *loop, const char *group)
{
    if (loop == NULL || (group != NULL && jzi_name_check(group) != JZX_OK)) {
        return 0;
    }
    return jzi_group_version(registry_of(loop), group);
}

size_t jzx_groups_of_sized(jzx_loop *loop, jzx_actor_id id, jzx_group_info *out, size_t info_size,
                           size_t cap)
{
    return loop == NULL
               ? 0
               : jzi_groups_of(registry_of(loop), id, out, info_size, out == NULL ? 0 : cap);
}

size_t jzx_group_list_sized(jzx_loop *loop, jzx_group_info *out, size_t info_size, size_t cap)
{
    return loop == NULL ? 0
                        : jzi_groups_all(registry_of(loop), out, info_size, out == NULL ? 0 : cap);
}

jzx_err jzx_group_watch(jzx_loop *loop, const char *group, jzx_group_ref *out_ref)
{
    JZI_ENTER(loop, "jzx_group_watch");
    jzi_actor *actor = NULL;
    jzx_err err = worker == NULL ? JZX_ERR_INVALID_ARG : jzi_name_check(group);
    if (err == JZX_OK) {
        err = find_self(worker, &actor);
    }
    return err != JZX_OK ? err : jzi_group_watch(worker, actor, group, out_ref);
}

jzx_err jzx_group_unwatch(jzx_loop *loop, jzx_group_ref ref)
{
    JZI_ENTER(loop, "jzx_group_unwatch");
    return end_wait(worker, ref, true);
}
