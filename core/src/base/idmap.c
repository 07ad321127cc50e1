#include "base/idmap.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

#include <string.h>

enum { CAP_FIRST = 16 };
#define CAP_MAX (UINT32_C(1) << 30)

static uint64_t *record_at(const jzi_idmap *map, uint32_t place)
{
    return (uint64_t *)(void *)(map->records + (size_t)place * map->bytes);
}

static uint32_t home_of(const jzi_idmap *map, uint64_t id)
{
    return (uint32_t)jzi_hash_mix(id) & (map->cap - 1);
}

/* Where the id is, or the free place where it belongs. The map has memory. */
static uint32_t idmap_place_of(const jzi_idmap *map, uint64_t id)
{
    uint32_t place = home_of(map, id);
    while (*record_at(map, place) != 0 && *record_at(map, place) != id) {
        place = (place + 1) & (map->cap - 1);
    }
    return place;
}

static size_t bytes_of(const jzi_idmap *map)
{
    return (size_t)map->cap * map->bytes;
}

void jzi_idmap_deinit(jzi_idmap *map, const jzx_allocator *alloc)
{
    jzi_free(alloc, map->records, bytes_of(map));
    *map = (jzi_idmap){0};
}

void jzi_idmap_clear(jzi_idmap *map)
{
    if (map->count > 0) {
        memset(map->records, 0, bytes_of(map));
        map->count = 0;
    }
}

static bool idmap_grow(jzi_idmap *map, const jzx_allocator *alloc, uint32_t bytes, uint32_t cap)
{
    jzi_assert(bytes >= sizeof(uint64_t) && bytes % sizeof(uint64_t) == 0);
    jzi_idmap bigger = {.bytes = bytes, .cap = cap, .count = map->count};
    bigger.records = jzi_alloc_zeroed(alloc, bytes_of(&bigger));
    if (bigger.records == NULL) {
        return false;
    }
    for (const uint64_t *at = NULL; (at = jzi_idmap_next(map, at)) != NULL;) {
        memcpy(record_at(&bigger, idmap_place_of(&bigger, *at)), at, bytes);
    }
    jzi_free(alloc, map->records, bytes_of(map));
    *map = bigger;
    return true;
}

bool jzi_idmap_reserve(jzi_idmap *map, const jzx_allocator *alloc, uint32_t bytes, size_t count)
{
    if (count > CAP_MAX / 4 * 3) {
        return false;
    }
    uint32_t cap = map->cap == 0 ? CAP_FIRST : map->cap;
    while (count > cap / 4 * 3) {
        cap *= 2;
    }
    return cap == map->cap || idmap_grow(map, alloc, bytes, cap);
}

void *jzi_idmap_add(jzi_idmap *map, const jzx_allocator *alloc, uint32_t bytes, uint64_t id)
{
    jzi_assert(id != 0);
    uint64_t *record = jzi_idmap_find(map, id);
    if (record != NULL) {
        return record;
    }
    if (!jzi_idmap_reserve(map, alloc, bytes, (size_t)map->count + 1)) {
        return NULL;
    }
    jzi_assert(bytes == map->bytes);
    record = record_at(map, idmap_place_of(map, id));
    *record = id;
    map->count++;
    return record;
}

void *jzi_idmap_find(const jzi_idmap *map, uint64_t id)
{
    if (map->count == 0 || id == 0) {
        return NULL;
    }
    uint64_t *record = record_at(map, idmap_place_of(map, id));
    return *record == 0 ? NULL : record;
}

bool jzi_idmap_remove(jzi_idmap *map, uint64_t id)
{
    if (jzi_idmap_find(map, id) == NULL) {
        return false;
    }
    uint32_t mask = map->cap - 1;
    uint32_t hole = idmap_place_of(map, id);
    /* What follows the hole moves up into it, unless that would put it before its home (I2). */
    for (uint32_t at = (hole + 1) & mask; *record_at(map, at) != 0; at = (at + 1) & mask) {
        uint32_t home = home_of(map, *record_at(map, at));
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            memcpy(record_at(map, hole), record_at(map, at), map->bytes);
            hole = at;
        }
    }
    memset(record_at(map, hole), 0, map->bytes);
    map->count--;
    return true;
}

void *jzi_idmap_next(const jzi_idmap *map, const void *record)
{
    size_t place = record == NULL
                       ? 0
                       : (size_t)((const unsigned char *)record - map->records) / map->bytes + 1;
    for (; place < map->cap; place++) {
        uint64_t *at = record_at(map, (uint32_t)place);
        if (*at != 0) {
            return at;
        }
    }
    return NULL;
}
