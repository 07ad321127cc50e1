#include "actor/kind.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <stdbool.h>
#include <string.h>

_Static_assert(offsetof(jzi_kind, users) == 5 * sizeof(void *) + 6 * sizeof(uint32_t),
               "no padding among what is compared");

/* By words, without a call: every spawn compares. */
static inline bool same(const jzi_kind *a, const jzi_kind *b)
{
    enum { WORDS = offsetof(jzi_kind, users) / sizeof(uint64_t) };
    uint64_t mine[WORDS], theirs[WORDS], differ = 0;
    memcpy(mine, a, sizeof mine);
    memcpy(theirs, b, sizeof theirs);
    for (size_t i = 0; i < WORDS; i++) {
        differ |= mine[i] ^ theirs[i];
    }
    return differ == 0;
}

/* By the numbers only: addresses differ from run to run, and so would the order of a bucket. */
static jzi_kind **bucket(jzi_kinds *kinds, const jzi_kind *kind)
{
    uint32_t hash = (kind->low_water ^ kind->max_msgs * 2654435761u) * 2654435761u;
    return &kinds->buckets[hash >> 27];
}

jzi_kind *jzi_kind_intern(jzi_kinds *kinds, const jzx_allocator *alloc, const jzi_kind *wanted)
{
    if (kinds->last != NULL && same(kinds->last, wanted)) {
        kinds->last->users++;
        return kinds->last;
    }
    jzi_kind **head = bucket(kinds, wanted);
    jzi_kind *kind = *head;
    while (kind != NULL && !same(kind, wanted)) {
        kind = kind->next;
    }
    if (kind == NULL) {
        kind = jzi_alloc(alloc, sizeof *kind);
        if (kind == NULL) {
            return NULL;
        }
        *kind = *wanted;
        kind->users = 0;
        kind->next = *head;
        *head = kind;
    }
    jzi_kind *before = kinds->last;
    kind->users++;
    kinds->last = kind;
    if (before != NULL && before->users == 0) {
        before->users = 1;
        jzi_kind_release(kinds, alloc, before);
    }
    return kind;
}

jzi_kind *jzi_kind_make_own(const jzx_allocator *alloc, const jzi_kind *wanted)
{
    jzi_kind *kind = jzi_alloc(alloc, sizeof *kind);
    if (kind != NULL) {
        *kind = *wanted;
        kind->flags |= JZI_KIND_OWN;
        kind->users = 1;
        kind->next = NULL;
    }
    return kind;
}

void jzi_kind_free_own(const jzx_allocator *alloc, jzi_kind *kind)
{
    jzi_free(alloc, kind, kind == NULL ? 0 : sizeof *kind);
}

void jzi_kind_release(jzi_kinds *kinds, const jzx_allocator *alloc, jzi_kind *kind)
{
    if ((kind->flags & JZI_KIND_OWN) != 0) {
        jzi_kind_free_own(alloc, kind);
        return;
    }
    jzi_assert(kind->users > 0);
    kind->users--;
    if (kind->users > 0 || kind == kinds->last) {
        return;
    }
    jzi_kind **link = bucket(kinds, kind);
    while (*link != kind) {
        link = &(*link)->next;
    }
    *link = kind->next;
    jzi_free(alloc, kind, sizeof *kind);
}

void jzi_kind_keep_plain(jzi_kinds *kinds, const jzx_allocator *alloc, jzi_kind *kind, uint32_t cap,
                         uint32_t flags)
{
    if (kinds->plain != NULL) {
        jzi_kind_release(kinds, alloc, kinds->plain);
    }
    kind->users++;
    kinds->plain = kind;
    kinds->plain_cap = cap;
    kinds->plain_flags = flags;
}

void jzi_kinds_deinit(jzi_kinds *kinds, const jzx_allocator *alloc)
{
    for (size_t i = 0; i < sizeof kinds->buckets / sizeof kinds->buckets[0]; i++) {
        while (kinds->buckets[i] != NULL) {
            jzi_kind *kind = kinds->buckets[i];
            kinds->buckets[i] = kind->next;
            jzi_free(alloc, kind, sizeof *kind);
        }
    }
    *kinds = (jzi_kinds){0};
}
