/* Goal: the set agrees with a plain table, and an empty one holds no memory.
 * Method: a seeded random walk over few keys, so that they collide and holes are filled. */
#include "check.h"

#include "io/watch_set.h"

#include <stdlib.h>

enum { KEYS = 400 };

typedef struct memory {
    size_t held;
    int refuse;
} memory;

static void *memory_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    memory *self = ctx;
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

/* Signals are small negative numbers, descriptors small or, in simulation, above a million. */
static int32_t key_of(uint32_t i)
{
    return i % 2 == 0 ? (int32_t)i - 64 : 1000000 + (int32_t)i;
}

static void test_a_random_walk_agrees_with_a_table(void)
{
    memory mem = {0};
    jzx_allocator alloc = {.realloc = memory_realloc, .ctx = &mem};
    jzi_watch_set set = {0};
    static int there[KEYS];
    uint32_t count = 0;
    jzt_rng rng = jzt_rng_seeded();
    for (int step = 0; step < 200000 && jzt_failures() == 0; step++) {
        uint32_t i = (uint32_t)jzt_rng_below(&rng, KEYS);
        /* Long phases of growing and of shrinking. */
        int grow = jzt_rng_below(&rng, 100) < (step / 5000 % 2 == 0 ? 80u : 10u);
        mem.refuse = jzt_rng_below(&rng, 10) == 0;
        if (grow) {
            jzx_err err = jzi_watch_set_add(&set, &alloc, key_of(i));
            CHECK(err == JZX_OK || err == (there[i] ? JZX_ERR_ALREADY : JZX_ERR_NO_MEMORY));
            CHECK(err != JZX_ERR_NO_MEMORY || mem.refuse);
            count += err == JZX_OK;
            there[i] |= err == JZX_OK;
        } else {
            jzi_watch_set_remove(&set, &alloc, key_of(i));
            count -= there[i] != 0;
            there[i] = 0;
        }
        uint32_t other = (uint32_t)jzt_rng_below(&rng, KEYS);
        CHECK_EQ(jzi_watch_set_has(&set, key_of(other)), there[other]);
        CHECK_EQ(set.count, count);
        CHECK_EQ(mem.held, set.cap * sizeof(int32_t));
        CHECK(count > 0 || mem.held == 0);
    }
    mem.refuse = 1; /* giving back needs no memory */
    for (uint32_t i = 0; i < KEYS; i++) {
        CHECK_EQ(jzi_watch_set_has(&set, key_of(i)), there[i]);
        jzi_watch_set_remove(&set, &alloc, key_of(i));
    }
    CHECK_EQ(mem.held, 0);
}

static const jzt_test tests[] = {
    {"a_random_walk_agrees_with_a_table", test_a_random_walk_agrees_with_a_table},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
