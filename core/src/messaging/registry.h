/* Names and groups: one locked table for a system, or for a loop of its own (RUNTIME.md H20). The
 * lock is held for a few steps and never around user code; a thread that takes it may have the pool
 * lock, and not the other way round.
 *
 * What an actor has in the table is found by its id, so that any thread may ask. What is in the
 * actor's cold->patterns (names, groups, waits) belongs to its own dispatcher. */
#ifndef JZI_REGISTRY_H
#define JZI_REGISTRY_H

#include <jzx/registry.h>

#include "sched/worker.h"

typedef struct jzi_registry jzi_registry;
typedef struct jzi_name jzi_name;

/* NULL: no memory. */
jzi_registry *jzi_registry_create(const jzx_allocator *alloc);
/* Threads that wait for a name are sent away, and gone when this returns. */
void jzi_registry_close(jzi_registry *registry);
/* After fork(2): other threads that used the registry are not here. */
void jzi_registry_abandon(jzi_registry *registry);
/* Whether the lock was free at the fork. */
bool jzi_registry_is_free(jzi_registry *registry);
/* When no actor is alive any more. NULL is fine. */
void jzi_registry_destroy(jzi_registry *registry);
/* Installs the operations. */
void jzi_registry_init(jzi_worker *worker);
/* An incarnation leaves: its waits for names and its watches of groups end. */
void jzi_registry_leave(jzi_worker *worker, jzi_actor *actor, bool restarts);
/* The actor is gone, and no watcher was told yet: its names and its places in groups are free. */
void jzi_registry_release(jzi_worker *worker, jzi_actor *actor, jzx_actor_id id);

/* Of a name or a group. Errors: INVALID_ARG, TOO_BIG. */
jzx_err jzi_name_check(const char *text);

/* Names; see jzx/registry.h. The actor is one of the worker's dispatcher, texts were checked. */
jzx_err jzi_name_register(jzi_worker *worker, jzi_actor *actor, const char *text);
jzx_err jzi_name_unregister(jzi_worker *worker, const char *text);
jzx_actor_id jzi_name_find(jzi_registry *registry, const char *text);
size_t jzi_names_of(jzi_registry *registry, jzx_actor_id id, jzx_name_info *out, size_t info_size,
                    size_t cap);
size_t jzi_names_all(jzi_registry *registry, jzx_name_info *out, size_t info_size, size_t cap);

/* For a spawn, of an actor that is not yet known: reserves the name for `id`. On JZX_OK the table
 * is locked until the caller has made the actor known, and confirms; or could not, and withdraws.
 * So no thread finds an id here that does not resolve yet, or whose birth is not yet under way.
 * `clerk` may be a worker without an inbox. Errors: NAME_TAKEN, NO_MEMORY. */
jzx_err jzi_name_reserve(jzi_worker *clerk, jzi_actor *actor, jzx_actor_id id, const char *text,
                         jzi_name **out_name);
void jzi_name_confirm(jzi_worker *clerk, jzi_name *name);
void jzi_name_withdraw(jzi_worker *clerk, jzi_actor *actor, jzi_name *name);

/* Waiting. */
jzx_err jzi_name_await(jzi_worker *worker, jzi_actor *actor, const char *text, uint64_t timeout_ms,
                       uint64_t *out_ref);
jzx_err jzi_name_await_thread(jzi_registry *registry, const jzx_env *env, const char *text,
                              uint64_t timeout_ms, jzx_actor_id *out_id);
jzx_err jzi_group_watch(jzi_worker *worker, jzi_actor *actor, const char *text, uint64_t *out_ref);
/* Ends a wait or a watch. Errors: NO_SUCH_REF. */
jzx_err jzi_wait_end(jzi_worker *worker, jzi_actor *actor, uint64_t ref, bool group);

/* Groups. */
jzx_err jzi_group_join(jzi_worker *worker, jzi_actor *actor, const char *text);
jzx_err jzi_group_leave(jzi_worker *worker, jzi_actor *actor, const char *text);
size_t jzi_group_members(jzi_registry *registry, const char *text, jzx_actor_id *out, size_t cap);
/* text NULL: of all. */
uint64_t jzi_group_version(jzi_registry *registry, const char *text);
size_t jzi_groups_of(jzi_registry *registry, jzx_actor_id id, jzx_group_info *out, size_t info_size,
                     size_t cap);
size_t jzi_groups_all(jzi_registry *registry, jzx_group_info *out, size_t info_size, size_t cap);

#endif
