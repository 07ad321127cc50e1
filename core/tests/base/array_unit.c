/* Goal: an array grows by doubling, keeps its items, and refuses what no memory can hold. Method:
 * the numbers at both ends, and an allocator that refuses. */
#include "base/array.h"
#include "check.h"

#include <stdbool.h>
#include <stdlib.h>

static bool refuse;
static int calls;

static void *test_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    calls++;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return refuse ? NULL : realloc(ptr, new_size);
}

static const jzx_allocator alloc = {.realloc = test_realloc};

static void test_a_capacity_is_doubled_until_it_is_enough(void)
{
    static const struct {
        size_t cap, first, need, size, want;
    } rows[] = {
        {0, 4, 1, 8, 4},
        {0, 4, 4, 8, 4},
        {0, 4, 5, 8, 8},
        {4, 9, 5, 8, 8},
        {6, 4, 100, 8, 192},
        {8, 4, 8, 8, 8},
        {8, 4, 1, 8, 8},
        {0, 1, SIZE_MAX / 16 + 1, 8, SIZE_MAX / 16 + 1}, /* half of all memory: a number at least */
        {0, 1, SIZE_MAX / 8, 8, 0},                      /* 2^61 items of 8 bytes are too many */
        {0, 1, SIZE_MAX, 1, 0},
        {SIZE_MAX / 2 + 1, 1, SIZE_MAX / 2 + 2, 1, 0},
        {0, SIZE_MAX / 8, 1, 16, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_EQ(jzi_array_cap(rows[i].cap, rows[i].first, rows[i].need, rows[i].size),
                 rows[i].want);
    }
}

static void test_an_array_keeps_its_items(void)
{
    uint32_t *items = NULL;
    size_t cap = 0;
    calls = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        items = jzi_array_grow(&alloc, items, &cap, 4, i + 1u, sizeof *items);
        REQUIRE(items != NULL);
        CHECK(cap > i);
        items[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++) {
        CHECK_EQ(items[i], i);
    }
    CHECK_EQ(cap, 1024);
    CHECK_EQ(calls, 9); /* 4, 8, ... 1024 */
    free(items);
}

static void test_without_memory_nothing_changes(void)
{
    uint32_t *items = NULL;
    size_t cap = 0;
    refuse = true;
    CHECK(jzi_array_grow(&alloc, NULL, &cap, 4, 1, sizeof *items) == NULL);
    CHECK_EQ(cap, 0);
    refuse = false;
    items = jzi_array_grow(&alloc, NULL, &cap, 4, 1, sizeof *items);
    REQUIRE(items != NULL);
    refuse = true;
    CHECK(jzi_array_grow(&alloc, items, &cap, 4, 5, sizeof *items) == NULL);
    CHECK_EQ(cap, 4);
    CHECK(jzi_array_grow(&alloc, items, &cap, 4, 4, sizeof *items) == items); /* is enough */
    calls = 0;
    CHECK(jzi_array_grow(&alloc, items, &cap, 4, SIZE_MAX, sizeof *items) == NULL);
    CHECK_EQ(calls, 0); /* the product would be a small number */
    refuse = false;
    free(items);
}

static const jzt_test tests[] = {
    {"a_capacity_is_doubled_until_it_is_enough", test_a_capacity_is_doubled_until_it_is_enough},
    {"an_array_keeps_its_items", test_an_array_keeps_its_items},
    {"without_memory_nothing_changes", test_without_memory_nothing_changes},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
