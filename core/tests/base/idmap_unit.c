/* Goal: the map agrees with a plain table, holds no memory when it was given back, and without
 * memory nothing changes. Method: a seeded random walk over few ids, so that they collide and holes
 * are filled; an allocator that counts and refuses. */
#include "base/idmap.h"
#include "check.h"

#include <stdlib.h>

enum { IDS = 400 };

typedef struct memory {
    size_t held;
    int refuse;
    int calls;
} memory;

static void *memory_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    memory *self = ctx;
    self->calls++;
    if (new_size > 0 && self->refuse) {
        return NULL;
    }
    self->held += new_size - old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

typedef struct record {
    uint64_t id;
    uint64_t value;
    uint64_t copy;
} record;

/* Neighbours, as ids of actors are, and some at the far end. */
static uint64_t id_of(uint32_t i)
{
    return i % 2 == 0 ? i + 1 : UINT64_MAX - i;
}

static void check_all(const jzi_idmap *map, const uint64_t *values)
{
    size_t there = 0, seen = 0;
    for (uint32_t i = 0; i < IDS; i++) {
        const record *at = jzi_idmap_find(map, id_of(i));
        CHECK_EQ(at != NULL, values[i] != 0);
        if (at != NULL) {
            CHECK_EQ(at->id, id_of(i));
            CHECK_EQ(at->value, values[i]);
            CHECK_EQ(at->copy, values[i]);
            there++;
        }
    }
    for (const record *at = NULL; (at = jzi_idmap_next(map, at)) != NULL;) {
        CHECK(jzi_idmap_find(map, at->id) == at);
        seen++;
    }
    CHECK_EQ(seen, there);
    CHECK_EQ(map->count, there);
}

static void test_a_random_walk_agrees_with_a_table(void)
{
    memory mem = {0};
    jzx_allocator alloc = {.realloc = memory_realloc, .ctx = &mem};
    jzi_idmap map = {0};
    static uint64_t values[IDS];
    jzt_rng rng = jzt_rng_seeded();
    for (int step = 0; step < 40000 && jzt_failures() == 0; step++) {
        /* It fills up, and then becomes empty again. */
        uint32_t i = (uint32_t)jzt_rng_below(&rng, IDS);
        if (jzt_rng_below(&rng, 20000) > (uint64_t)step % 20000) {
            record *at = jzi_idmap_add(&map, &alloc, sizeof *at, id_of(i));
            REQUIRE(at != NULL);
            CHECK_EQ(at->value, values[i]); /* 0: new and zeroed */
            values[i] = at->value = at->copy = (uint64_t)step + 1;
        } else {
            CHECK_EQ(jzi_idmap_remove(&map, id_of(i)), values[i] != 0);
            values[i] = 0;
        }
        CHECK(map.count <= map.cap / 4 * 3); /* I1 */
        if (step % 97 == 0) {
            check_all(&map, values);
        }
    }
    check_all(&map, values);
    jzi_idmap_deinit(&map, &alloc);
    CHECK_EQ(mem.held, 0);
    CHECK(map.records == NULL && map.cap == 0 && map.count == 0);
}

static void test_a_zeroed_map_is_empty(void)
{
    memory mem = {0};
    jzx_allocator alloc = {.realloc = memory_realloc, .ctx = &mem};
    jzi_idmap map = {0};
    CHECK(jzi_idmap_find(&map, 1) == NULL);
    CHECK(jzi_idmap_next(&map, NULL) == NULL);
    CHECK(!jzi_idmap_remove(&map, 1));
    jzi_idmap_clear(&map);
    jzi_idmap_deinit(&map, &alloc);
    CHECK_EQ(mem.calls, 0);
}

static void test_clearing_keeps_the_memory(void)
{
    memory mem = {0};
    jzx_allocator alloc = {.realloc = memory_realloc, .ctx = &mem};
    jzi_idmap set = {0};
    for (uint64_t id = 1; id <= 100; id++) {
        REQUIRE(jzi_idmap_add(&set, &alloc, sizeof id, id) != NULL);
    }
    int calls = mem.calls;
    jzi_idmap_clear(&set);
    CHECK_EQ(set.count, 0);
    CHECK(jzi_idmap_find(&set, 1) == NULL);
    for (uint64_t id = 200; id <= 299; id++) {
        REQUIRE(jzi_idmap_add(&set, &alloc, sizeof id, id) != NULL);
    }
    CHECK_EQ(mem.calls, calls);
    jzi_idmap_deinit(&set, &alloc);
    CHECK_EQ(mem.held, 0);
}

static void test_reserved_room_needs_no_memory_and_moves_no_record(void)
{
    enum { COUNT = 1000 };
    memory mem = {0};
    jzx_allocator alloc = {.realloc = memory_realloc, .ctx = &mem};
    jzi_idmap map = {0};
    static record *made[COUNT];
    REQUIRE(jzi_idmap_reserve(&map, &alloc, sizeof(record), COUNT));
    mem.refuse = 1;
    for (uint32_t i = 0; i < COUNT; i++) {
        made[i] = jzi_idmap_add(&map, &alloc, sizeof(record), i + 1);
        REQUIRE(made[i] != NULL);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(jzi_idmap_find(&map, i + 1) == made[i]);
    }
    CHECK(jzi_idmap_reserve(&map, &alloc, sizeof(record), COUNT)); /* it is there already */
    jzi_idmap_deinit(&map, &alloc);
}

static void test_without_memory_nothing_changes(void)
{
    memory mem = {.refuse = 1};
    jzx_allocator alloc = {.realloc = memory_realloc, .ctx = &mem};
    jzi_idmap set = {0};
    uint64_t id = 1;
    CHECK(jzi_idmap_add(&set, &alloc, sizeof id, id) == NULL);
    CHECK_EQ(set.cap, 0);
    mem.refuse = 0;
    for (; id == 1 || set.count < set.cap / 4 * 3; id++) {
        REQUIRE(jzi_idmap_add(&set, &alloc, sizeof id, id) != NULL);
    }
    mem.refuse = 1;
    CHECK(jzi_idmap_add(&set, &alloc, sizeof id, id) == NULL);
    CHECK_EQ(set.count, id - 1);
    for (uint64_t was = 1; was < id; was++) {
        CHECK(jzi_idmap_find(&set, was) != NULL);
        CHECK(jzi_idmap_add(&set, &alloc, sizeof id, was) != NULL); /* needs no room */
    }
    CHECK(jzi_idmap_find(&set, id) == NULL);
    jzi_idmap_deinit(&set, &alloc);
    CHECK_EQ(mem.held, 0);
}

static void test_more_than_can_be_numbered_is_refused(void)
{
    memory mem = {0};
    jzx_allocator alloc = {.realloc = memory_realloc, .ctx = &mem};
    jzi_idmap set = {0};
    CHECK(!jzi_idmap_reserve(&set, &alloc, 8, SIZE_MAX));
    CHECK(!jzi_idmap_reserve(&set, &alloc, 8, (size_t)1 << 31));
    CHECK_EQ(mem.calls, 0);
}

static const jzt_test tests[] = {
    {"a_random_walk_agrees_with_a_table", test_a_random_walk_agrees_with_a_table},
    {"a_zeroed_map_is_empty", test_a_zeroed_map_is_empty},
    {"clearing_keeps_the_memory", test_clearing_keeps_the_memory},
    {"reserved_room_needs_no_memory_and_moves_no_record",
     test_reserved_room_needs_no_memory_and_moves_no_record},
    {"without_memory_nothing_changes", test_without_memory_nothing_changes},
    {"more_than_can_be_numbered_is_refused", test_more_than_can_be_numbered_is_refused},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
