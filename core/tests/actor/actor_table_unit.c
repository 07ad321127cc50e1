/* Goal: an id never means another actor than its own, slots are reused warmest first, and a slot
 * that ran through its generations is never used again (R1, R2).
 * Method: a table driven as lifecycle drives it, at the borders of chunks and of generations. */
#include "actor/actor_table.h"

#include "base/alloc.h"
#include "support/check.h"

#include <stdlib.h>

static size_t blocks;
static size_t budget; /* allocations that still succeed */

static void *counted_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    if (new_size == 0) {
        blocks--;
        free(ptr);
        return NULL;
    }
    if (budget == 0) {
        return NULL;
    }
    budget--;
    blocks++;
    return malloc(new_size);
}

static const jzx_allocator alloc = {counted_realloc, NULL};
static jzi_actor_table table;

static void start(uint32_t max_slots, uint32_t salt)
{
    blocks = 0;
    budget = SIZE_MAX;
    REQUIRE_OK(jzi_actor_table_init(&table, &alloc, max_slots, salt));
}

static void finish(void)
{
    jzi_actor_table_deinit(&table, &alloc);
    CHECK_EQ(blocks, 0);
    CHECK(table.chunks == NULL && table.slabs == NULL);
}

static jzi_actor *spawn(void)
{
    jzi_actor *actor = NULL;
    REQUIRE_OK(jzi_actor_table_take(&table, &alloc, &actor));
    jzi_actor_table_open(actor);
    return actor;
}

static void end(jzi_actor *actor)
{
    atomic_store(&actor->door.gate, (jzi_actor_gate(actor) | JZI_GATE_CLOSED) & ~JZI_GATE_PINS);
    jzi_actor_table_give(&table, actor);
}

static void test_an_empty_table_resolves_nothing(void)
{
    start(8, 0);
    CHECK(jzi_actor_table_slot(&table, 0) == NULL);
    CHECK(jzi_actor_table_slot(&table, UINT32_MAX) == NULL);
    CHECK_EQ(blocks, 1);
    finish();
}

static void test_slots_count_up_and_resolve_to_their_actors_R1(void)
{
    enum { N = 3 * JZI_CHUNK_SLOTS + 1 };
    start(N, 99);
    for (uint32_t i = 0; i < N; i++) {
        const jzi_actor *actor = spawn();
        CHECK_EQ(jzi_actor_slot(actor), i);
        CHECK_EQ(jzx_id_slot(actor->id), i);
        CHECK(jzi_actor_table_slot(&table, i) == actor);
        CHECK(jzi_actor_table_at(&table, i) == actor);
        CHECK(jzi_actor_table_slot(&table, i + 1) == NULL);
        CHECK_EQ((uintptr_t)actor % 64, 0);
    }
    CHECK_EQ(atomic_load(&table.made), N);
    finish();
}

static void test_actors_do_not_move_when_the_table_grows_R2(void)
{
    enum { N = 40 * JZI_CHUNK_SLOTS };
    start(N, 1);
    const jzi_actor *first = spawn();
    for (uint32_t i = 1; i < N; i++) {
        jzi_actor *actor = spawn();
        actor->handled = i;
    }
    CHECK(jzi_actor_table_at(&table, 0) == first);
    for (uint32_t i = 1; i < N; i++) {
        REQUIRE_EQ(jzi_actor_table_at(&table, i)->handled, i);
    }
    finish();
}

static void test_a_taken_slot_does_not_resolve_before_it_is_opened_R2(void)
{
    jzi_actor *actor = NULL;
    start(4, 12345);
    REQUIRE_OK(jzi_actor_table_take(&table, &alloc, &actor));
    CHECK(jzi_gate_is_free(jzi_actor_gate(actor)));
    CHECK(!jzi_gate_is_quiet(jzi_actor_gate(actor), JZX_NOBODY));
    jzi_actor_table_open(actor);
    CHECK(jzi_gate_is_quiet(jzi_actor_gate(actor), actor->id));
    CHECK_EQ(jzi_actor_gate(actor) & JZI_GATE_PINS, JZI_GATE_PIN);
    CHECK_EQ(jzi_actor_used(actor), 0);
    finish();
}

static void test_no_salt_makes_generation_zero_or_uses_many_up_R1(void)
{
    static const uint32_t salts[] = {0, 1, 2, 0x40000000u, 0x7FFFFFFFu, 0xC0000000u, UINT32_MAX};
    for (size_t i = 0; i < sizeof salts / sizeof salts[0]; i++) {
        start(2, salts[i]);
        const jzi_actor *actor = spawn();
        uint32_t generation = jzx_id_generation(actor->id);
        CHECK(generation != 0 && generation < 0x40000000u);
        CHECK_EQ(generation, (salts[i] & 0x3FFFFFFFu) | 1u);
        CHECK(actor->id != JZX_NOBODY);
        finish();
    }
}

static void test_each_tenant_gets_the_next_generation_and_old_ids_stay_dead_R1(void)
{
    start(1, 7);
    jzx_actor_id before = 0;
    for (int i = 0; i < 1000; i++) {
        jzi_actor *actor = spawn();
        jzx_actor_id id = actor->id;
        CHECK(i == 0 || jzx_id_generation(id) == jzx_id_generation(before) + 1);
        CHECK(i == 0 || !jzi_gate_is_quiet(jzi_actor_gate(actor), before));
        end(actor);
        CHECK(!jzi_gate_is_quiet(jzi_actor_gate(actor), id));
        before = id;
    }
    CHECK_EQ(atomic_load(&table.made), 1);
    finish();
}

static void test_the_slot_freed_last_is_used_first(void)
{
    start(8, 0);
    jzi_actor *actors[4];
    for (size_t i = 0; i < 4; i++) {
        actors[i] = spawn();
    }
    end(actors[1]);
    end(actors[3]);
    end(actors[0]);
    CHECK(spawn() == actors[0]);
    CHECK(spawn() == actors[3]);
    CHECK(spawn() == actors[1]);
    CHECK_EQ(jzi_actor_slot(spawn()), 4);
    finish();
}

static void test_a_full_table_refuses_until_a_slot_is_free(void)
{
    enum { MAX = JZI_CHUNK_SLOTS + 3 };
    start(MAX, 0);
    jzi_actor *last = NULL;
    for (uint32_t i = 0; i < MAX; i++) {
        last = spawn();
    }
    jzi_actor *none = NULL;
    CHECK_EQ(jzi_actor_table_take(&table, &alloc, &none), JZX_ERR_MAX_ACTORS);
    CHECK(none == NULL);
    end(last);
    CHECK(spawn() == last);
    CHECK_EQ(jzi_actor_table_take(&table, &alloc, &none), JZX_ERR_MAX_ACTORS);
    finish();
}

static void test_a_slot_retires_after_its_last_generation_R1(void)
{
    start(2, 0);
    jzi_actor *actor = spawn();
    atomic_store(&actor->door.gate, jzi_gate_make(UINT32_MAX - 1) | JZI_GATE_PIN);
    end(actor);
    CHECK_EQ(table.retired, 0);
    CHECK(spawn() == actor);
    jzx_actor_id last = actor->id;
    CHECK_EQ(jzx_id_generation(last), UINT32_MAX);
    CHECK(jzi_gate_is_quiet(jzi_actor_gate(actor), last));
    end(actor);
    CHECK_EQ(table.retired, 1);
    CHECK(!jzi_gate_is_quiet(jzi_actor_gate(actor), last));
    jzi_actor *other = spawn();
    CHECK(other != actor);
    jzi_actor *none = NULL;
    CHECK_EQ(jzi_actor_table_take(&table, &alloc, &none), JZX_ERR_MAX_ACTORS);
    CHECK(jzi_actor_table_slot(&table, 0) == actor); /* still there for late senders to look at */
    finish();
}

static void test_without_memory_nothing_changes_and_later_it_works(void)
{
    blocks = 0;
    budget = 0;
    CHECK_EQ(jzi_actor_table_init(&table, &alloc, 8, 0), JZX_ERR_NO_MEMORY);
    start(8, 0);
    budget = 0;
    jzi_actor *none = NULL;
    CHECK_EQ(jzi_actor_table_take(&table, &alloc, &none), JZX_ERR_NO_MEMORY);
    CHECK(none == NULL);
    CHECK_EQ(atomic_load(&table.made), 0);
    budget = SIZE_MAX;
    CHECK_EQ(jzi_actor_slot(spawn()), 0);
    finish();
}

static void test_memory_of_the_table_is_a_few_blocks_even_when_large(void)
{
    enum { CHUNKS = 16 + 3 * 16 };
    start(CHUNKS * JZI_CHUNK_SLOTS, 0);
    for (uint32_t i = 0; i < CHUNKS * JZI_CHUNK_SLOTS; i++) {
        (void)spawn();
    }
    CHECK_EQ(blocks, 1 + 16 + 3);
    finish();
}

static void test_random_walk_never_gives_an_id_twice_R1(void)
{
    enum { MAX = 2 * JZI_CHUNK_SLOTS, STEPS = 20000 };
    static jzi_actor *alive[MAX];
    static uint32_t newest[MAX];
    uint32_t count = 0;
    jzt_rng rng = jzt_rng_seeded();
    start(MAX, (uint32_t)jzt_rng_next(&rng));
    for (int step = 0; step < STEPS; step++) {
        if (jzt_rng_below(&rng, 2) == 0) {
            if (count == MAX) {
                continue;
            }
            jzi_actor *actor = spawn();
            uint32_t slot = jzi_actor_slot(actor);
            uint32_t generation = jzx_id_generation(actor->id);
            REQUIRE(slot < MAX && generation > newest[slot]);
            newest[slot] = generation;
            alive[count++] = actor;
        } else if (count > 0) {
            uint32_t i = (uint32_t)jzt_rng_below(&rng, count);
            end(alive[i]);
            alive[i] = alive[--count];
        }
    }
    finish();
}

static const jzt_test tests[] = {
    {"an_empty_table_resolves_nothing", test_an_empty_table_resolves_nothing},
    {"slots_count_up_and_resolve_to_their_actors_R1",
     test_slots_count_up_and_resolve_to_their_actors_R1},
    {"actors_do_not_move_when_the_table_grows_R2", test_actors_do_not_move_when_the_table_grows_R2},
    {"a_taken_slot_does_not_resolve_before_it_is_opened_R2",
     test_a_taken_slot_does_not_resolve_before_it_is_opened_R2},
    {"no_salt_makes_generation_zero_or_uses_many_up_R1",
     test_no_salt_makes_generation_zero_or_uses_many_up_R1},
    {"each_tenant_gets_the_next_generation_and_old_ids_stay_dead_R1",
     test_each_tenant_gets_the_next_generation_and_old_ids_stay_dead_R1},
    {"the_slot_freed_last_is_used_first", test_the_slot_freed_last_is_used_first},
    {"a_full_table_refuses_until_a_slot_is_free", test_a_full_table_refuses_until_a_slot_is_free},
    {"a_slot_retires_after_its_last_generation_R1",
     test_a_slot_retires_after_its_last_generation_R1},
    {"without_memory_nothing_changes_and_later_it_works",
     test_without_memory_nothing_changes_and_later_it_works},
    {"memory_of_the_table_is_a_few_blocks_even_when_large",
     test_memory_of_the_table_is_a_few_blocks_even_when_large},
    {"random_walk_never_gives_an_id_twice_R1", test_random_walk_never_gives_an_id_twice_R1},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
