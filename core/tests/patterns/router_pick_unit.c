/* Goal: each choice is what its name says, passes over full workers, and a hash moves as few keys
 * as can be. Method: tables of workers without any actor; every table size up to 32, seeded keys.
 */
#include "check.h"

#include "base/alloc.h"
#include "patterns/router_pick.h"

#include "base/hash.h"

#include <string.h>

enum { WORKERS_MAX = 32, KEYS = 4000 };

static jzi_routes table(uint32_t count)
{
    jzi_routes routes = {.random = jzt_seed()};
    jzx_allocator alloc = jzi_default_allocator();
    for (uint32_t i = 0; i < count; i++) {
        jzi_route route = {.id = 100 + i, .place = jzi_hash_mix(i + 1), .index = i};
        REQUIRE_OK(jzi_routes_insert(&routes, &alloc, i, &route));
    }
    return routes;
}

static void drop(jzi_routes *routes)
{
    jzx_allocator alloc = jzi_default_allocator();
    jzi_routes_deinit(routes, &alloc);
}

/* I1 and I2 of the table. */
static void check_table(const jzi_routes *routes)
{
    uint32_t open = 0, asked = 0;
    for (uint32_t i = 0; i < routes->count; i++) {
        open += !routes->at[i].full;
        asked += routes->at[i].asked;
    }
    CHECK_EQ(routes->open, open);
    CHECK_EQ(routes->asked, asked);
    CHECK(routes->next < routes->count || (routes->next == 0 && routes->count == 0));
}

static void test_round_robin_takes_turns(void)
{
    jzi_routes routes = table(3);
    for (uint32_t i = 0; i < 9; i++) {
        CHECK_EQ(jzi_pick_round_robin(&routes), i % 3);
    }
    drop(&routes);
}

static void test_round_robin_passes_over_the_full_and_comes_back_to_them(void)
{
    jzi_routes routes = table(4);
    jzi_routes_set_full(&routes, 1, true);
    jzi_routes_set_full(&routes, 2, true);
    static const uint32_t want[] = {0, 3, 0, 3};
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQ(jzi_pick_round_robin(&routes), want[i]);
    }
    jzi_routes_set_full(&routes, 1, false);
    CHECK_EQ(jzi_pick_round_robin(&routes), 0);
    CHECK_EQ(jzi_pick_round_robin(&routes), 1);
    CHECK_EQ(jzi_pick_round_robin(&routes), 3);
    drop(&routes);
}

static void test_round_robin_keeps_its_turn_when_workers_come_and_go(void)
{
    jzi_routes routes = table(4);
    CHECK_EQ(jzi_pick_round_robin(&routes), 0);
    CHECK_EQ(jzi_pick_round_robin(&routes), 1);
    jzi_routes_remove(&routes, 0); /* 1 2 3 are left, and it is 2's turn */
    CHECK_EQ(routes.at[jzi_pick_round_robin(&routes)].index, 2);
    jzx_allocator alloc = jzi_default_allocator();
    jzi_route back = {.id = 7, .index = 0};
    REQUIRE_OK(jzi_routes_insert(&routes, &alloc, jzi_routes_gap(&routes), &back));
    CHECK_EQ(routes.at[jzi_pick_round_robin(&routes)].index, 3);
    CHECK_EQ(routes.at[jzi_pick_round_robin(&routes)].index, 0);
    jzi_routes_remove(&routes, 3); /* the last one */
    check_table(&routes);
    drop(&routes);
}

static uint32_t no_depth(void *arg, jzx_actor_id id)
{
    (void)arg;
    (void)id;
    return 0;
}

static uint32_t pick_by(jzi_routes *routes, uint32_t strategy, uint64_t key)
{
    switch (strategy) {
    case 0:
        return jzi_pick_round_robin(routes);
    case 1:
        return jzi_pick_random(routes);
    case 2:
        return jzi_pick_least(routes, no_depth, NULL);
    default:
        return jzi_pick_hash(routes, key);
    }
}

static void test_nobody_is_picked_from_none_or_from_full_ones(void)
{
    for (uint32_t strategy = 0; strategy < 4; strategy++) {
        jzi_routes none = {0};
        CHECK_EQ(pick_by(&none, strategy, 1), JZI_ROUTE_NONE);
        jzi_routes routes = table(3);
        for (uint32_t i = 0; i < 3; i++) {
            jzi_routes_set_full(&routes, i, true);
        }
        CHECK_EQ(pick_by(&routes, strategy, 1), JZI_ROUTE_NONE);
        drop(&routes);
    }
    jzi_routes none = {0};
    CHECK_EQ(jzi_pick_owner(&none, 1), JZI_ROUTE_NONE);
}

static void test_no_choice_ever_picks_a_full_worker(void)
{
    jzt_rng rng = jzt_rng_seeded();
    for (uint32_t step = 0; step < 4000; step++) {
        uint32_t count = 1 + (uint32_t)jzt_rng_below(&rng, WORKERS_MAX);
        jzi_routes routes = table(count);
        for (uint32_t i = 0; i < count; i++) {
            jzi_routes_set_full(&routes, i, jzt_rng_below(&rng, 3) > 0);
        }
        for (uint32_t strategy = 0; strategy < 4; strategy++) {
            uint32_t at = pick_by(&routes, strategy, jzt_rng_next(&rng));
            CHECK(routes.open == 0 ? at == JZI_ROUTE_NONE : at < count && !routes.at[at].full);
        }
        check_table(&routes);
        drop(&routes);
    }
}

static void test_random_is_even_and_follows_its_seed(void)
{
    jzi_routes routes = table(7), again = table(7);
    uint32_t hits[7] = {0};
    jzi_routes_set_full(&routes, 3, true);
    jzi_routes_set_full(&again, 3, true);
    for (uint32_t i = 0; i < 6000; i++) {
        uint32_t at = jzi_pick_random(&routes);
        CHECK_EQ(jzi_pick_random(&again), at);
        hits[at]++;
    }
    for (uint32_t i = 0; i < 7; i++) {
        CHECK(i == 3 ? hits[i] == 0 : hits[i] > 800 && hits[i] < 1200); /* 7 deviations off */
    }
    drop(&routes);
    drop(&again);
}

static uint32_t depth_in(void *arg, jzx_actor_id id)
{
    const uint32_t *depths = arg;
    return depths[id - 100];
}

static void test_least_takes_the_emptiest_and_turns_among_equals(void)
{
    jzi_routes routes = table(5);
    uint32_t depths[5] = {4, 2, 7, 2, 9};
    CHECK_EQ(jzi_pick_least(&routes, depth_in, depths), 1);
    CHECK_EQ(jzi_pick_least(&routes, depth_in, depths), 3);
    CHECK_EQ(jzi_pick_least(&routes, depth_in, depths), 1);
    jzi_routes_set_full(&routes, 1, true);
    jzi_routes_set_full(&routes, 3, true);
    CHECK_EQ(jzi_pick_least(&routes, depth_in, depths), 0);
    memset(depths, 0, sizeof depths);
    jzi_routes_set_full(&routes, 1, false);
    jzi_routes_set_full(&routes, 3, false);
    for (uint32_t i = 0; i < 10; i++) { /* an idle pool is used evenly */
        CHECK_EQ(jzi_pick_least(&routes, depth_in, depths), (i + 1) % 5);
    }
    depths[0] = depths[1] = depths[2] = depths[3] = depths[4] = UINT32_MAX; /* all are gone */
    CHECK(jzi_pick_least(&routes, depth_in, depths) < 5);
    drop(&routes);
}

static void test_hash_gives_a_key_to_the_same_worker_always(void)
{
    jzi_routes routes = table(9), other = table(9);
    for (uint64_t key = 0; key < KEYS; key++) {
        uint32_t at = jzi_pick_hash(&routes, key);
        CHECK_EQ(jzi_pick_hash(&routes, key), at);
        CHECK_EQ(jzi_pick_hash(&other, key), at);
        CHECK_EQ(jzi_pick_owner(&routes, key), at);
    }
    drop(&routes);
    drop(&other);
}

/* Minimal movement: from n to n + 1 workers only keys of the new one move, and about 1 in n + 1. */
static void test_hash_moves_keys_only_to_the_worker_that_came(void)
{
    for (uint32_t n = 1; n < WORKERS_MAX; n++) {
        jzi_routes before = table(n), after = table(n + 1);
        uint32_t moved = 0, between_old = 0;
        for (uint64_t key = 0; key < KEYS; key++) {
            uint32_t was = jzi_pick_hash(&before, key);
            uint32_t is = jzi_pick_hash(&after, key);
            moved += was != is;
            between_old += was != is && is != n;
        }
        CHECK_EQ(between_old, 0);
        uint32_t fair = KEYS / (n + 1);
        CHECK(moved > fair / 2 && moved < fair + fair / 2 + 20);
        drop(&before);
        drop(&after);
    }
}

static void test_hash_moves_only_the_keys_of_the_worker_that_left(void)
{
    for (uint32_t gone = 0; gone < 10; gone++) {
        jzi_routes before = table(10), after = table(10);
        jzi_routes_remove(&after, gone);
        uint32_t others = 0;
        for (uint64_t key = 0; key < KEYS; key++) {
            const jzi_route *was = &before.at[jzi_pick_hash(&before, key)];
            const jzi_route *is = &after.at[jzi_pick_hash(&after, key)];
            others += was->index != gone && was->index != is->index;
        }
        CHECK_EQ(others, 0);
        drop(&before);
        drop(&after);
    }
}

static void test_hash_spreads_evenly_also_over_small_and_striding_keys(void)
{
    static const uint64_t strides[] = {1, 2, 8, 4096, UINT64_C(1) << 32, UINT64_C(1) << 52};
    for (size_t s = 0; s < sizeof strides / sizeof strides[0]; s++) {
        jzi_routes routes = table(8);
        uint32_t hits[8] = {0};
        for (uint64_t i = 0; i < KEYS; i++) {
            hits[jzi_pick_hash(&routes, i * strides[s])]++;
        }
        for (uint32_t i = 0; i < 8; i++) {
            CHECK(hits[i] > KEYS / 8 * 3 / 4 && hits[i] < KEYS / 8 * 5 / 4);
        }
        drop(&routes);
    }
}

static void test_hash_overflow_goes_to_the_heir_of_each_key(void)
{
    jzi_routes full = table(6), without = table(6);
    jzi_routes_set_full(&full, 2, true);
    jzi_routes_remove(&without, 2);
    for (uint64_t key = 0; key < KEYS; key++) {
        CHECK_EQ(full.at[jzi_pick_hash(&full, key)].index,
                 without.at[jzi_pick_hash(&without, key)].index);
    }
    drop(&full);
    drop(&without);
}

static void test_the_lowest_free_index_is_given_out(void)
{
    jzi_routes routes = table(5);
    CHECK_EQ(jzi_routes_gap(&routes), 5);
    jzi_routes_remove(&routes, 3);
    jzi_routes_remove(&routes, 1);
    CHECK_EQ(jzi_routes_gap(&routes), 1);
    CHECK_EQ(jzi_routes_find(&routes, 104), 2);
    CHECK_EQ(jzi_routes_find(&routes, 103), JZI_ROUTE_NONE);
    drop(&routes);
}

static const jzt_test tests[] = {
    {"round_robin_takes_turns", test_round_robin_takes_turns},
    {"round_robin_passes_over_the_full_and_comes_back_to_them",
     test_round_robin_passes_over_the_full_and_comes_back_to_them},
    {"round_robin_keeps_its_turn_when_workers_come_and_go",
     test_round_robin_keeps_its_turn_when_workers_come_and_go},
    {"nobody_is_picked_from_none_or_from_full_ones",
     test_nobody_is_picked_from_none_or_from_full_ones},
    {"no_choice_ever_picks_a_full_worker", test_no_choice_ever_picks_a_full_worker},
    {"random_is_even_and_follows_its_seed", test_random_is_even_and_follows_its_seed},
    {"least_takes_the_emptiest_and_turns_among_equals",
     test_least_takes_the_emptiest_and_turns_among_equals},
    {"hash_gives_a_key_to_the_same_worker_always", test_hash_gives_a_key_to_the_same_worker_always},
    {"hash_moves_keys_only_to_the_worker_that_came",
     test_hash_moves_keys_only_to_the_worker_that_came},
    {"hash_moves_only_the_keys_of_the_worker_that_left",
     test_hash_moves_only_the_keys_of_the_worker_that_left},
    {"hash_spreads_evenly_also_over_small_and_striding_keys",
     test_hash_spreads_evenly_also_over_small_and_striding_keys},
    {"hash_overflow_goes_to_the_heir_of_each_key", test_hash_overflow_goes_to_the_heir_of_each_key},
    {"the_lowest_free_index_is_given_out", test_the_lowest_free_index_is_given_out},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
