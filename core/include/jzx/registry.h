/* Names and groups: how actors find each other without being handed ids.
 *
 * A name means one actor at most; a group is a set of actors. Both belong to an actor's identity:
 * they are kept while it fails and restarts, and are free again when it is gone, before its
 * watchers hear of its end (R16, R18). So an actor that learns that "db" ended can take the name
 * "db" at once, and jzx_whereis() finds an actor that is being restarted.
 *
 * A program has one table for all dispatchers of a system, or one per loop of its own. Looking
 * things up takes a short lock and works from every thread, through the handle of any dispatcher,
 * as long as the system lives. Names and groups are given and taken on the dispatcher of the actor
 * that has them.
 *
 * Names are made of 1 to JZX_NAME_MAX bytes; so are those of groups, which do not collide with
 * them. Where a function takes one, NULL and "" give INVALID_ARG and a longer one TOO_BIG. */
#ifndef JZX_REGISTRY_H
#define JZX_REGISTRY_H

#include <jzx/actor.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gives an actor a name. An actor may have several; one that it has already is OK. A spawn with
 * JZX_SPAWN_REGISTER does this for opts.name before the actor's code runs, or fails with NAME_TAKEN
 * and makes no actor; for a child of a supervisor that is a failed start. Thread: loop. Errors:
 * INVALID_ARG (the name is NULL or empty), TOO_BIG (the name has more than JZX_NAME_MAX bytes),
 * NAME_TAKEN, NO_SUCH_ACTOR, WRONG_DISPATCHER (the actor lives on another dispatcher), STOPPING
 * (the actor is ending), NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_register(jzx_loop *loop, const char *name, jzx_actor_id id);
/* Takes a name back; its actor lives on. Thread: loop. Errors: INVALID_ARG (the name is NULL or
 * empty), TOO_BIG (the name has more than JZX_NAME_MAX bytes), NO_SUCH_NAME (no actor has the
 * name), WRONG_DISPATCHER (the actor that has the name lives on another dispatcher). */
JZX_API jzx_err jzx_unregister(jzx_loop *loop, const char *name);
/* The actor that has the name, or JZX_NOBODY. The actor may be ending, or be gone when you use the
 * id: as with every id, the send says so. Thread: any. */
JZX_API jzx_actor_id jzx_whereis(jzx_loop *loop, const char *name);

/* One registered name. */
typedef struct jzx_name_info {
    jzx_actor_id id;
    char name[JZX_NAME_MAX + 1];
} jzx_name_info;

/* The names of an actor, and all there are: the first `cap` of them, in the order of registering.
 * Returns how many there are, which may be more than cap. out may be NULL if cap is 0.
 * Thread: any. */
JZX_API size_t jzx_names_of_sized(jzx_loop *loop, jzx_actor_id id, jzx_name_info *out,
                                  size_t info_size, size_t cap);
static inline size_t jzx_names_of(jzx_loop *loop, jzx_actor_id id, jzx_name_info *out, size_t cap)
{
    return jzx_names_of_sized(loop, id, out, sizeof(jzx_name_info), cap);
}
JZX_API size_t jzx_registered_sized(jzx_loop *loop, jzx_name_info *out, size_t info_size,
                                    size_t cap);
static inline size_t jzx_registered(jzx_loop *loop, jzx_name_info *out, size_t cap)
{
    return jzx_registered_sized(loop, out, sizeof(jzx_name_info), cap);
}

/* One jzx_await_name(); 0 is none. */
typedef uint64_t jzx_name_ref;

/* What a notice of kind NOTICE with the tag JZX_TAG_NAME points to. */
typedef struct jzx_name_notice {
    jzx_name_ref ref;
    jzx_actor_id id; /* the actor that got the name; JZX_NOBODY: none did in time */
    int32_t err;     /* JZX_OK, or JZX_ERR_TIMED_OUT */
    uint32_t reserved;
    char name[JZX_NAME_MAX + 1];
} jzx_name_notice;

/* Asks for one notice to the running actor as soon as an actor has the name: at once if one has.
 * After timeout_ms without one the notice says TIMED_OUT; 0: the answer comes at once either way;
 * JZX_TIMEOUT_INFINITE: it waits. The notice needs no room and cannot be lost (R8, R9). Requests
 * stack, are told in the order of asking, and are gone when the actor ends or restarts. Thread:
 * loop, inside an actor. Errors: INVALID_ARG (the name is NULL or empty, or the call is made
 * outside of an actor), TOO_BIG (the name has more than JZX_NAME_MAX bytes), STOPPING (the actor is
 * ending), NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_await_name(jzx_loop *loop, const char *name, uint64_t timeout_ms,
                                             jzx_name_ref *out_ref);
/* Final when it returns: the notice is not handed over any more, also if it was queued already.
 * Thread: loop, inside the actor that waits. Errors: INVALID_ARG (called outside of an actor),
 * NO_SUCH_REF (not a request of this incarnation, or its notice was handed over). */
JZX_API jzx_err jzx_await_cancel(jzx_loop *loop, jzx_name_ref ref);

/* The same for a thread that runs no actor: waits until it finds an actor with the name, at most
 * timeout_ms of real time (JZX_TIMEOUT_INFINITE: for ever), and sets *out_id. The thread that has
 * to run the loop so that the actor registers must not be the one that waits. Thread: any but one
 * inside an actor's code: DEADLOCK there, and in a simulated world, where no actor could run
 * meanwhile. Errors: INVALID_ARG, TOO_BIG, TIMED_OUT, DEADLOCK, LOOP_CLOSED (the loop or system is
 * being destroyed, which waits until this call has returned). */
JZX_API JZX_NODISCARD jzx_err jzx_await_name_blocking(jzx_loop *loop, const char *name,
                                                      uint64_t timeout_ms, jzx_actor_id *out_id);

/* Groups. A group exists while it has members or watchers; no call makes or ends it. */

/* Puts an actor into a group; OK also if it is in it: once is enough. Thread: loop. Errors: as
 * jzx_register() but NAME_TAKEN. */
JZX_API JZX_NODISCARD jzx_err jzx_group_join(jzx_loop *loop, const char *group, jzx_actor_id id);
/* Takes it out. Thread: loop. Errors: as jzx_register() but NAME_TAKEN and STOPPING and NO_MEMORY,
 * NO_SUCH_GROUP. */
JZX_API jzx_err jzx_group_leave(jzx_loop *loop, const char *group, jzx_actor_id id);
/* The first `cap` members in the order of joining. Returns how many there are, which may be more.
 * out may be NULL if cap is 0. Thread: any. */
JZX_API size_t jzx_group_members(jzx_loop *loop, const char *group, jzx_actor_id *out, size_t cap);
/* How many members there are; 0 also if there is no such group. Thread: any. */
JZX_API size_t jzx_group_count(jzx_loop *loop, const char *group);
/* A number that changes with every change of the group: while it is the same, so are the members.
 * It never comes back, not even when the group ends and begins anew. 0: there is no such group, or
 * it has had no member yet. With a NULL group: one that changes with every change of any group, and
 * takes one load and no lock. Thread: any. */
JZX_API uint64_t jzx_group_version(jzx_loop *loop, const char *group);

/* One group. */
typedef struct jzx_group_info {
    uint64_t version; /* see jzx_group_version() */
    uint32_t members;
    uint32_t watchers;
    char group[JZX_NAME_MAX + 1];
} jzx_group_info;

/* The groups an actor is in, in the order of joining, and all there are, the oldest first. As
 * jzx_registered(). Thread: any. */
JZX_API size_t jzx_groups_of_sized(jzx_loop *loop, jzx_actor_id id, jzx_group_info *out,
                                   size_t info_size, size_t cap);
static inline size_t jzx_groups_of(jzx_loop *loop, jzx_actor_id id, jzx_group_info *out, size_t cap)
{
    return jzx_groups_of_sized(loop, id, out, sizeof(jzx_group_info), cap);
}
JZX_API size_t jzx_group_list_sized(jzx_loop *loop, jzx_group_info *out, size_t info_size,
                                    size_t cap);
static inline size_t jzx_group_list(jzx_loop *loop, jzx_group_info *out, size_t cap)
{
    return jzx_group_list_sized(loop, out, sizeof(jzx_group_info), cap);
}

/* One jzx_group_watch(); 0 is none. */
typedef uint64_t jzx_group_ref;

/* What a notice of kind NOTICE with the tag JZX_TAG_GROUP points to: the group as it is when the
 * notice is handed over, and what happened since the last one, or since the watch was placed. */
typedef struct jzx_group_notice {
    jzx_group_ref ref;
    uint64_t version; /* see jzx_group_version() */
    uint64_t joined;  /* how often actors joined */
    uint64_t left;    /* how often actors left, or ended */
    uint64_t members; /* now; jzx_group_members() lists them */
    char group[JZX_NAME_MAX + 1];
} jzx_group_notice;

/* Watches a group for the running actor, which gets one notice at once and one whenever the group
 * changed since the last. Changes are merged: at most one notice waits, whatever happens, and none
 * is missed. It may watch a group that is empty or does not exist yet. Watches stack, and are gone
 * when the actor ends or restarts. Thread: loop, inside an actor. Errors: as jzx_await_name(). */
JZX_API JZX_NODISCARD jzx_err jzx_group_watch(jzx_loop *loop, const char *group,
                                              jzx_group_ref *out_ref);
/* Final when it returns. Thread: loop, inside the actor that watches. Errors: INVALID_ARG (called
 * outside of an actor), NO_SUCH_REF (not a watch of this incarnation). */
JZX_API jzx_err jzx_group_unwatch(jzx_loop *loop, jzx_group_ref ref);

#ifdef __cplusplus
}
#endif
#endif
