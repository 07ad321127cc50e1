#include "actor/type.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <stdbool.h>
#include <string.h>

_Static_assert(offsetof(jzi_actor_type, users) == 5 * sizeof(void *) + 6 * sizeof(uint32_t),
               "no padding among what is compared");

/* By words, without a call: every spawn compares. */
static inline bool same(const jzi_actor_type *a, const jzi_actor_type *b)
{
    enum { WORDS = offsetof(jzi_actor_type, users) / sizeof(uint64_t) };
    uint64_t mine[WORDS], theirs[WORDS], differ = 0;
    memcpy(mine, a, sizeof mine);
    memcpy(theirs, b, sizeof theirs);
    for (size_t i = 0; i < WORDS; i++) {
        differ |= mine[i] ^ theirs[i];
    }
    return differ == 0;
}

/* By the numbers only: addresses differ from run to run, and so would the order of a bucket. */
static jzi_actor_type **bucket(jzi_actor_types *types, const jzi_actor_type *type)
{
    uint32_t hash = (type->low_water ^ type->max_msgs * 2654435761u) * 2654435761u;
    return &types->buckets[hash >> 27];
}

jzi_actor_type *jzi_actor_type_intern(jzi_actor_types *types, const jzx_allocator *alloc,
                                      const jzi_actor_type *wanted)
{
    if (types->last != NULL && same(types->last, wanted)) {
        types->last->users++;
        return types->last;
    }
    jzi_actor_type **head = bucket(types, wanted);
    jzi_actor_type *type = *head;
    while (type != NULL && !same(type, wanted)) {
        type = type->next;
    }
    if (type == NULL) {
        type = jzi_alloc(alloc, sizeof *type);
        if (type == NULL) {
            return NULL;
        }
        *type = *wanted;
        type->users = 0;
        type->next = *head;
        *head = type;
    }
    jzi_actor_type *before = types->last;
    type->users++;
    types->last = type;
    if (before != NULL && before->users == 0) {
        before->users = 1;
        jzi_actor_type_release(types, alloc, before);
    }
    return type;
}

jzi_actor_type *jzi_actor_type_make_own(const jzx_allocator *alloc, const jzi_actor_type *wanted)
{
    jzi_actor_type *type = jzi_alloc(alloc, sizeof *type);
    if (type != NULL) {
        *type = *wanted;
        type->flags |= JZI_TYPE_OWN;
        type->users = 1;
        type->next = NULL;
    }
    return type;
}

void jzi_actor_type_free_own(const jzx_allocator *alloc, jzi_actor_type *type)
{
    jzi_free(alloc, type, type == NULL ? 0 : sizeof *type);
}

void jzi_actor_type_release(jzi_actor_types *types, const jzx_allocator *alloc,
                            jzi_actor_type *type)
{
    if ((type->flags & JZI_TYPE_OWN) != 0) {
        jzi_actor_type_free_own(alloc, type);
        return;
    }
    jzi_assert(type->users > 0);
    type->users--;
    if (type->users > 0 || type == types->last) {
        return;
    }
    jzi_actor_type **link = bucket(types, type);
    while (*link != type) {
        link = &(*link)->next;
    }
    *link = type->next;
    jzi_free(alloc, type, sizeof *type);
}

void jzi_actor_type_keep_plain(jzi_actor_types *types, const jzx_allocator *alloc,
                               jzi_actor_type *type, uint32_t cap, uint32_t flags)
{
    if (types->plain != NULL) {
        jzi_actor_type_release(types, alloc, types->plain);
    }
    type->users++;
    types->plain = type;
    types->plain_cap = cap;
    types->plain_flags = flags;
}

void jzi_actor_types_deinit(jzi_actor_types *types, const jzx_allocator *alloc)
{
    for (size_t i = 0; i < sizeof types->buckets / sizeof types->buckets[0]; i++) {
        while (types->buckets[i] != NULL) {
            jzi_actor_type *type = types->buckets[i];
            types->buckets[i] = type->next;
            jzi_free(alloc, type, sizeof *type);
        }
    }
    *types = (jzi_actor_types){0};
}
