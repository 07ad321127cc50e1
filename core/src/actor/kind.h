/* What actors spawned with the same options share. Interned, so that an idle actor pays one pointer
 * for all of its hooks and limits. */
#ifndef JZI_KIND_H
#define JZI_KIND_H

#include <jzx/actor.h>

#define JZI_KIND_SUPERVISOR 0x80000000u /* flags besides JZX_SPAWN_* */
#define JZI_KIND_OWN 0x40000000u        /* not interned: of one actor, made by another domain */

typedef struct jzi_kind {
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
    uint64_t users; /* actors of this kind; the members above are compared as bytes */
    struct jzi_kind *next;
} jzi_kind;

typedef struct jzi_kinds {
    jzi_kind *buckets[32];
    jzi_kind *last; /* spawns come in runs */
    /* The kind of actors that set nothing but a cap and flags, kept by a user of its own: most
     * spawns ask for it, and two numbers say so. */
    jzi_kind *plain;
    uint32_t plain_cap;
    uint32_t plain_flags;
} jzi_kinds;

/* Finds or makes the kind with these contents and counts one user more. NULL: no memory. */
jzi_kind *jzi_kind_intern(jzi_kinds *kinds, const jzx_allocator *alloc, const jzi_kind *wanted);
/* Remembers it as the plain one for this cap and these flags. */
void jzi_kind_keep_plain(jzi_kinds *kinds, const jzx_allocator *alloc, jzi_kind *kind, uint32_t cap,
                         uint32_t flags);
/* The plain one, with one user more, or NULL if another is remembered. */
static inline jzi_kind *jzi_kind_plain(jzi_kinds *kinds, uint32_t cap, uint32_t flags)
{
    jzi_kind *kind = kinds->plain;
    if (kind == NULL || kinds->plain_cap != cap || kinds->plain_flags != flags) {
        return NULL;
    }
    kind->users++;
    return kind;
}
/* A kind of one actor, and its end if the actor never was. NULL: no memory. Thread: any. */
jzi_kind *jzi_kind_make_own(const jzx_allocator *alloc, const jzi_kind *wanted);
void jzi_kind_free_own(const jzx_allocator *alloc, jzi_kind *kind);
/* One user less. A kind without users goes, unless it is the last one used. */
void jzi_kind_release(jzi_kinds *kinds, const jzx_allocator *alloc, jzi_kind *kind);
void jzi_kinds_deinit(jzi_kinds *kinds, const jzx_allocator *alloc);

#endif
