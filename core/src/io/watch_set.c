#include "io/watch_set.h"

#include "base/alloc.h"

#define EMPTY INT32_MIN
#define CAP_FIRST 16u

static uint32_t home_of(const jzi_watch_set *set, int32_t key)
{
    uint32_t hash = (uint32_t)key * 0x9E3779B1u;
    return (hash ^ (hash >> 16)) & (set->cap - 1);
}

/* Where the key is, or the empty place where it belongs. The set must have memory. */
static uint32_t watch_set_place_of(const jzi_watch_set *set, int32_t key)
{
    uint32_t at = home_of(set, key);
    while (set->keys[at] != EMPTY && set->keys[at] != key) {
        at = (at + 1) & (set->cap - 1);
    }
    return at;
}

static jzx_err watch_set_grow(jzi_watch_set *set, const jzx_allocator *alloc)
{
    if (set->cap > UINT32_MAX / 4) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_watch_set bigger = {.cap = set->cap == 0 ? CAP_FIRST : set->cap * 2, .count = set->count};
    bigger.keys = jzi_alloc(alloc, bigger.cap * sizeof(int32_t));
    if (bigger.keys == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < bigger.cap; i++) {
        bigger.keys[i] = EMPTY;
    }
    for (uint32_t i = 0; i < set->cap; i++) {
        if (set->keys[i] != EMPTY) {
            bigger.keys[watch_set_place_of(&bigger, set->keys[i])] = set->keys[i];
        }
    }
    jzi_free(alloc, set->keys, set->cap * sizeof(int32_t));
    *set = bigger;
    return JZX_OK;
}

bool jzi_watch_set_has(const jzi_watch_set *set, int32_t key)
{
    return set->cap != 0 && set->keys[watch_set_place_of(set, key)] == key;
}

jzx_err jzi_watch_set_add(jzi_watch_set *set, const jzx_allocator *alloc, int32_t key)
{
    if (jzi_watch_set_has(set, key)) {
        return JZX_ERR_ALREADY;
    }
    if ((set->count + 1) * 2 > set->cap) {
        jzx_err err = watch_set_grow(set, alloc);
        if (err != JZX_OK) {
            return err;
        }
    }
    set->keys[watch_set_place_of(set, key)] = key;
    set->count++;
    return JZX_OK;
}

void jzi_watch_set_remove(jzi_watch_set *set, const jzx_allocator *alloc, int32_t key)
{
    if (!jzi_watch_set_has(set, key)) {
        return;
    }
    set->count--;
    if (set->count == 0) {
        jzi_free(alloc, set->keys, set->cap * sizeof(int32_t));
        *set = (jzi_watch_set){0};
        return;
    }
    uint32_t mask = set->cap - 1;
    uint32_t hole = watch_set_place_of(set, key);
    /* What follows the hole moves up into it unless that would put it before its home (I2). */
    for (uint32_t at = (hole + 1) & mask; set->keys[at] != EMPTY; at = (at + 1) & mask) {
        uint32_t home = home_of(set, set->keys[at]);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            set->keys[hole] = set->keys[at];
            hole = at;
        }
    }
    set->keys[hole] = EMPTY;
}
