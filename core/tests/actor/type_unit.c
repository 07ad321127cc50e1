/* Goal: actors with the same options share one type; a type without users costs at most one block.
 * Method: an allocator that counts blocks; a seeded walk with a counter per type. */
#include "actor/type.h"

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
    static const jzi_actor_type wanted[] = {
        {.low_water = 512, .max_msgs = 128},
        {.low_water = 512, .max_msgs = 128, .deinit = deinit_a},
        {.low_water = 512, .max_msgs = 128, .drop_msg = drop_a},
        {.low_water = 512, .max_msgs = 128, .deinit = deinit_a, .drop_msg = drop_a},
        {.low_water = 511, .max_msgs = 128},
        {.low_water = 512, .max_msgs = 127},
    };
    enum { N = sizeof wanted / sizeof wanted[0] };
    jzi_actor_types types = {0};
    jzi_actor_type *made[N];
    start();
    for (size_t i = 0; i < N; i++) {
        made[i] = jzi_actor_type_intern(&types, &alloc, &wanted[i]);
        REQUIRE(made[i] != NULL);
        for (size_t j = 0; j < i; j++) {
            CHECK(made[i] != made[j]);
        }
    }
    CHECK_EQ(blocks, N);
    for (size_t i = 0; i < N; i++) {
        CHECK(jzi_actor_type_intern(&types, &alloc, &wanted[i]) == made[i]);
        CHECK_EQ(made[i]->users, 2);
        CHECK(made[i]->deinit == wanted[i].deinit && made[i]->drop_msg == wanted[i].drop_msg);
        CHECK(made[i]->low_water == wanted[i].low_water && made[i]->max_msgs == wanted[i].max_msgs);
    }
    CHECK_EQ(blocks, N);
    jzi_actor_types_deinit(&types, &alloc);
    CHECK_EQ(blocks, 0);
}

static void test_what_the_wanted_one_says_of_users_does_not_matter(void)
{
    jzi_actor_types types = {0};
    jzi_actor_type wanted = {.low_water = 1, .max_msgs = 2, .users = 77};
    start();
    const jzi_actor_type *type = jzi_actor_type_intern(&types, &alloc, &wanted);
    REQUIRE(type != NULL);
    CHECK_EQ(type->users, 1);
    jzi_actor_types_deinit(&types, &alloc);
}

static void test_the_last_kind_stays_for_the_next_spawn_and_goes_when_another_follows(void)
{
    jzi_actor_types types = {0};
    const jzi_actor_type a = {.low_water = 1, .max_msgs = 1};
    const jzi_actor_type b = {.low_water = 2, .max_msgs = 1};
    start();
    jzi_actor_type *first = jzi_actor_type_intern(&types, &alloc, &a);
    jzi_actor_type_release(&types, &alloc, first);
    CHECK_EQ(blocks, 1);
    CHECK(jzi_actor_type_intern(&types, &alloc, &a) == first);
    CHECK_EQ(first->users, 1);
    jzi_actor_type_release(&types, &alloc, first);
    jzi_actor_type *second = jzi_actor_type_intern(&types, &alloc, &b);
    CHECK_EQ(blocks, 1);
    CHECK_EQ(second->users, 1);
    jzi_actor_types_deinit(&types, &alloc);
    CHECK_EQ(blocks, 0);
}

static void test_a_kind_that_is_not_the_last_goes_with_its_last_user(void)
{
    jzi_actor_types types = {0};
    const jzi_actor_type a = {.low_water = 1, .max_msgs = 1};
    const jzi_actor_type b = {.low_water = 2, .max_msgs = 1};
    start();
    jzi_actor_type *first = jzi_actor_type_intern(&types, &alloc, &a);
    (void)jzi_actor_type_intern(&types, &alloc, &a);
    (void)jzi_actor_type_intern(&types, &alloc, &b);
    jzi_actor_type_release(&types, &alloc, first);
    CHECK_EQ(blocks, 2);
    jzi_actor_type_release(&types, &alloc, first);
    CHECK_EQ(blocks, 1);
    jzi_actor_types_deinit(&types, &alloc);
}

static void test_without_memory_nothing_changes_and_known_kinds_still_work(void)
{
    jzi_actor_types types = {0};
    const jzi_actor_type a = {.low_water = 1, .max_msgs = 1};
    const jzi_actor_type b = {.low_water = 2, .max_msgs = 1};
    start();
    jzi_actor_type *first = jzi_actor_type_intern(&types, &alloc, &a);
    refuse = true;
    CHECK(jzi_actor_type_intern(&types, &alloc, &b) == NULL);
    CHECK(types.last == first);
    CHECK(jzi_actor_type_intern(&types, &alloc, &a) == first);
    CHECK_EQ(first->users, 2);
    jzi_actor_types_deinit(&types, &alloc);
    CHECK_EQ(blocks, 0);
}

static void test_random_walk_keeps_the_users_of_every_kind(void)
{
    enum { KINDS = 100, STEPS = 20000 };
    static uint64_t users[KINDS];
    static jzi_actor_type *made[KINDS];
    jzi_actor_types types = {0};
    jzt_rng rng = jzt_rng_seeded();
    start();
    for (int step = 0; step < STEPS; step++) {
        size_t i = (size_t)jzt_rng_below(&rng, KINDS);
        if (jzt_rng_below(&rng, 2) == 0) {
            jzi_actor_type wanted = {.low_water = (uint32_t)i / 4, .max_msgs = (uint32_t)i % 4};
            jzi_actor_type *type = jzi_actor_type_intern(&types, &alloc, &wanted);
            REQUIRE(type != NULL && (users[i] == 0 || type == made[i]));
            made[i] = type;
            users[i]++;
        } else if (users[i] > 0) {
            users[i]--;
            jzi_actor_type_release(&types, &alloc, made[i]);
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
    jzi_actor_types_deinit(&types, &alloc);
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
