/* What actors spawned with the same options share. Interned, so that an idle actor pays one pointer
 * for all of its hooks and limits. */
#ifndef JZI_KIND_H
#define JZI_KIND_H

#include <jzx/actor.h>

typedef struct jzi_kind {
    void (*deinit)(jzx_context *ctx);
    void (*drop_msg)(const jzx_message *msg);
    uint32_t low_water;
    uint32_t max_msgs;
    uint64_t users; /* actors of this kind */
    struct jzi_kind *next;
} jzi_kind;

typedef struct jzi_kinds {
    jzi_kind *buckets[32];
    jzi_kind *last; /* spawns come in runs */
} jzi_kinds;

/* Finds or makes the kind with these contents and counts one user more. NULL: no memory. */
jzi_kind *jzi_kind_intern(jzi_kinds *kinds, const jzx_allocator *alloc, const jzi_kind *wanted);
/* One user less. A kind without users goes, unless it is the last one used. */
void jzi_kind_release(jzi_kinds *kinds, const jzx_allocator *alloc, jzi_kind *kind);
void jzi_kinds_deinit(jzi_kinds *kinds, const jzx_allocator *alloc);

#endif
