/* What actors spawned with the same options share. Interned, so that an idle actor pays one pointer
 * for all of its hooks and limits. */
#ifndef JZI_TYPE_H
#define JZI_TYPE_H

#include <jzx/actor.h>

#define JZI_TYPE_SUPERVISOR 0x80000000u /* flags besides JZX_SPAWN_* */
#define JZI_TYPE_OWN 0x40000000u        /* not interned: of one actor, made by another dispatcher */

typedef struct jzi_actor_type {
    jzx_behavior_result (*init)(jzx_context *ctx, void *arg);
    jzx_behavior_result (*on_signal)(jzx_context *ctx, const struct jzx_signal *signal);
    void (*deinit)(jzx_context *ctx);
    void (*drop_msg)(const jzx_message *msg);
    jzx_actor_id redirect_to;
    uint32_t low_water;
    uint32_t max_msgs;
    uint32_t stop_timeout_ms; /* JZX_SHUTDOWN_* too */
    uint32_t drain;           /* jzx_drain_policy */
    uint32_t flags;
    uint32_t redeliver_max;
    uint64_t users; /* actors of this type; the members above are compared as bytes */
    struct jzi_actor_type *next;
} jzi_actor_type;

typedef struct jzi_actor_types {
    jzi_actor_type *buckets[32];
    jzi_actor_type *last; /* spawns come in runs */
    /* The type of actors that set nothing but a cap and flags, kept by a user of its own: most
     * spawns ask for it, and two numbers say so. */
    jzi_actor_type *plain;
    uint32_t plain_cap;
    uint32_t plain_flags;
} jzi_actor_types;

/* Finds or makes the type with these contents and counts one user more. NULL: no memory. */
jzi_actor_type *jzi_actor_type_intern(jzi_actor_types *types, const jzx_allocator *alloc,
                                      const jzi_actor_type *wanted);
/* Remembers it as the plain one for this cap and these flags. */
void jzi_actor_type_keep_plain(jzi_actor_types *types, const jzx_allocator *alloc,
                               jzi_actor_type *type, uint32_t cap, uint32_t flags);
/* The plain one, with one user more, or NULL if another is remembered. */
static inline jzi_actor_type *jzi_actor_type_plain(jzi_actor_types *types, uint32_t cap,
                                                   uint32_t flags)
{
    jzi_actor_type *type = types->plain;
    if (type == NULL || types->plain_cap != cap || types->plain_flags != flags) {
        return NULL;
    }
    type->users++;
    return type;
}
/* A type of one actor, and its end if the actor never was. NULL: no memory. Thread: any. */
jzi_actor_type *jzi_actor_type_make_own(const jzx_allocator *alloc, const jzi_actor_type *wanted);
void jzi_actor_type_free_own(const jzx_allocator *alloc, jzi_actor_type *type);
/* One user less. A type without users goes, unless it is the last one used. */
void jzi_actor_type_release(jzi_actor_types *types, const jzx_allocator *alloc,
                            jzi_actor_type *type);
void jzi_actor_types_deinit(jzi_actor_types *types, const jzx_allocator *alloc);

#endif
