/* Goal: actors with the same options share one kind; a kind without users costs at most one block.
 * Method: an allocator that counts blocks; a seeded walk with a counter per kind. */
#include "actor/kind.h"

#include "support/check.h"

#include <stdbool.h>
#include <stdlib.h>

static size_t blocks;
static bool refuse;

static void *counted_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    if (new_size == 0) {
        blocks--;
        free(ptr);
        return NULL;
    }
    if (refuse) {
        return NULL;
    }
    blocks++;
    return malloc(new_size);
}

static const jzx_allocator alloc = {counted_realloc, NULL};

static void deinit_a(jzx_context *ctx)
{
    (void)ctx;
}

static void drop_a(const jzx_message *msg)
{
    (void)msg;
}

static void start(void)
{
    blocks = 0;
    refuse = false;
}

static void test_equal_options_share_a_kind_and_any_difference_makes_another(void)
{
    static const jzi_kind wanted[] = {
        {.low_water = 512, .max_msgs = 128},
        {.low_water = 512, .max_msgs = 128, .deinit = deinit_a},
        {.low_water = 512, .max_msgs = 128, .drop_msg = drop_a},
        {.low_water = 512, .max_msgs = 128, .deinit = deinit_a, .drop_msg = drop_a},
        {.low_water = 511, .max_msgs = 128},
        {.low_water = 512, .max_msgs = 127},
    };
    enum { N = sizeof wanted / sizeof wanted[0] };
    jzi_kinds kinds = {0};
    jzi_kind *made[N];
    start();
    for (size_t i = 0; i < N; i++) {
        made[i] = jzi_kind_intern(&kinds, &alloc, &wanted[i]);
        REQUIRE(made[i] != NULL);
        for (size_t j = 0; j < i; j++) {
            CHECK(made[i] != made[j]);
        }
    }
    CHECK_EQ(blocks, N);
    for (size_t i = 0; i < N; i++) {
        CHECK(jzi_kind_intern(&kinds, &alloc, &wanted[i]) == made[i]);
        CHECK_EQ(made[i]->users, 2);
        CHECK(made[i]->deinit == wanted[i].deinit && made[i]->drop_msg == wanted[i].drop_msg);
        CHECK(made[i]->low_water == wanted[i].low_water && made[i]->max_msgs == wanted[i].max_msgs);
    }
    CHECK_EQ(blocks, N);
    jzi_kinds_deinit(&kinds, &alloc);
    CHECK_EQ(blocks, 0);
}

static void test_what_the_wanted_one_says_of_users_does_not_matter(void)
{
    jzi_kinds kinds = {0};
    jzi_kind wanted = {.low_water = 1, .max_msgs = 2, .users = 77};
    start();
    const jzi_kind *kind = jzi_kind_intern(&kinds, &alloc, &wanted);
    REQUIRE(kind != NULL);
    CHECK_EQ(kind->users, 1);
    jzi_kinds_deinit(&kinds, &alloc);
}

static void test_the_last_kind_stays_for_the_next_spawn_and_goes_when_another_follows(void)
{
    jzi_kinds kinds = {0};
    const jzi_kind a = {.low_water = 1, .max_msgs = 1};
    const jzi_kind b = {.low_water = 2, .max_msgs = 1};
    start();
    jzi_kind *first = jzi_kind_intern(&kinds, &alloc, &a);
    jzi_kind_release(&kinds, &alloc, first);
    CHECK_EQ(blocks, 1);
    CHECK(jzi_kind_intern(&kinds, &alloc, &a) == first);
    CHECK_EQ(first->users, 1);
    jzi_kind_release(&kinds, &alloc, first);
    jzi_kind *second = jzi_kind_intern(&kinds, &alloc, &b);
    CHECK_EQ(blocks, 1);
    CHECK_EQ(second->users, 1);
    jzi_kinds_deinit(&kinds, &alloc);
    CHECK_EQ(blocks, 0);
}

static void test_a_kind_that_is_not_the_last_goes_with_its_last_user(void)
{
    jzi_kinds kinds = {0};
    const jzi_kind a = {.low_water = 1, .max_msgs = 1};
    const jzi_kind b = {.low_water = 2, .max_msgs = 1};
    start();
    jzi_kind *first = jzi_kind_intern(&kinds, &alloc, &a);
    (void)jzi_kind_intern(&kinds, &alloc, &a);
    (void)jzi_kind_intern(&kinds, &alloc, &b);
    jzi_kind_release(&kinds, &alloc, first);
    CHECK_EQ(blocks, 2);
    jzi_kind_release(&kinds, &alloc, first);
    CHECK_EQ(blocks, 1);
    jzi_kinds_deinit(&kinds, &alloc);
}

static void test_without_memory_nothing_changes_and_known_kinds_still_work(void)
{
    jzi_kinds kinds = {0};
    const jzi_kind a = {.low_water = 1, .max_msgs = 1};
    const jzi_kind b = {.low_water = 2, .max_msgs = 1};
    start();
    jzi_kind *first = jzi_kind_intern(&kinds, &alloc, &a);
    refuse = true;
    CHECK(jzi_kind_intern(&kinds, &alloc, &b) == NULL);
    CHECK(kinds.last == first);
    CHECK(jzi_kind_intern(&kinds, &alloc, &a) == first);
    CHECK_EQ(first->users, 2);
    jzi_kinds_deinit(&kinds, &alloc);
    CHECK_EQ(blocks, 0);
}

static void test_random_walk_keeps_the_users_of_every_kind(void)
{
    enum { KINDS = 100, STEPS = 20000 };
    static uint64_t users[KINDS];
    static jzi_kind *made[KINDS];
    jzi_kinds kinds = {0};
    jzt_rng rng = jzt_rng_seeded();
    start();
    for (int step = 0; step < STEPS; step++) {
        size_t i = (size_t)jzt_rng_below(&rng, KINDS);
        if (jzt_rng_below(&rng, 2) == 0) {
            jzi_kind wanted = {.low_water = (uint32_t)i / 4, .max_msgs = (uint32_t)i % 4};
            jzi_kind *kind = jzi_kind_intern(&kinds, &alloc, &wanted);
            REQUIRE(kind != NULL && (users[i] == 0 || kind == made[i]));
            made[i] = kind;
            users[i]++;
        } else if (users[i] > 0) {
            users[i]--;
            jzi_kind_release(&kinds, &alloc, made[i]);
        }
        size_t in_use = 0;
        for (size_t k = 0; k < KINDS; k++) {
            in_use += users[k] > 0;
        }
        REQUIRE(blocks == in_use || blocks == in_use + 1);
    }
    for (size_t i = 0; i < KINDS; i++) {
        if (users[i] > 0) {
            CHECK_EQ(made[i]->users, users[i]);
        }
    }
    jzi_kinds_deinit(&kinds, &alloc);
    CHECK_EQ(blocks, 0);
}

static const jzt_test tests[] = {
    {"equal_options_share_a_kind_and_any_difference_makes_another",
     test_equal_options_share_a_kind_and_any_difference_makes_another},
    {"what_the_wanted_one_says_of_users_does_not_matter",
     test_what_the_wanted_one_says_of_users_does_not_matter},
    {"the_last_kind_stays_for_the_next_spawn_and_goes_when_another_follows",
     test_the_last_kind_stays_for_the_next_spawn_and_goes_when_another_follows},
    {"a_kind_that_is_not_the_last_goes_with_its_last_user",
     test_a_kind_that_is_not_the_last_goes_with_its_last_user},
    {"without_memory_nothing_changes_and_known_kinds_still_work",
     test_without_memory_nothing_changes_and_known_kinds_still_work},
    {"random_walk_keeps_the_users_of_every_kind", test_random_walk_keeps_the_users_of_every_kind},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
