/* Goal: the ring remembers the newest letters in order, tells a reader what it missed, and reads
 * each letter once (R21).
 * Method: borders of the ring, then a seeded reader against the numbers themselves. */
#include "actor/dead_letter.h"

#include "base/alloc.h"
#include "support/check.h"

#include <stdlib.h>

static jzi_dead_letters letters;

static void *no_memory(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)ptr;
    (void)old_size;
    (void)new_size;
    return NULL;
}

static void start(uint32_t cap)
{
    jzx_allocator alloc = jzi_default_allocator();
    REQUIRE_OK(jzi_dead_letters_init(&letters, &alloc, cap));
}

static void finish(void)
{
    jzx_allocator alloc = jzi_default_allocator();
    jzi_dead_letters_deinit(&letters, &alloc);
    CHECK(letters.ring == NULL && letters.cap == 0);
    jzi_dead_letters_deinit(&letters, &alloc);
}

static void add(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        jzx_dead_letter letter = {.tag = (uint32_t)letters.count + 1, .seq = 99};
        jzi_dead_letters_add(&letters, &letter);
        CHECK_EQ(letter.seq, letters.count);
    }
}

static void test_letters_are_numbered_from_one_and_read_oldest_first_R21(void)
{
    jzx_dead_letter out[4];
    uint64_t cursor = 0, lagged = 9;
    start(4);
    CHECK_EQ(jzi_dead_letters_read(&letters, &cursor, out, 4, &lagged), 0);
    CHECK(cursor == 0 && lagged == 0);
    add(3);
    CHECK_EQ(jzi_dead_letters_read(&letters, &cursor, out, 4, &lagged), 3);
    CHECK(cursor == 3 && lagged == 0);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(out[i].seq, i + 1);
        CHECK_EQ(out[i].tag, i + 1);
    }
    CHECK_EQ(jzi_dead_letters_read(&letters, &cursor, out, 4, NULL), 0);
    finish();
}

static void test_a_full_ring_still_has_its_oldest_letter(void)
{
    jzx_dead_letter out[4];
    uint64_t cursor = 0, lagged = 9;
    start(4);
    add(4);
    CHECK_EQ(jzi_dead_letters_read(&letters, &cursor, out, 4, &lagged), 4);
    CHECK(out[0].seq == 1 && out[3].seq == 4 && lagged == 0);
    finish();
}

static void test_a_reader_that_lags_is_told_how_much_it_missed_R21(void)
{
    jzx_dead_letter out[4];
    uint64_t cursor = 0, lagged = 0;
    start(4);
    add(2);
    CHECK_EQ(jzi_dead_letters_read(&letters, &cursor, out, 1, &lagged), 1);
    CHECK(out[0].seq == 1 && cursor == 1);
    add(8); /* ten in all: 7 to 10 remain */
    CHECK_EQ(jzi_dead_letters_read(&letters, &cursor, out, 2, &lagged), 2);
    CHECK_EQ(lagged, 5);
    CHECK(out[0].seq == 7 && out[1].seq == 8 && cursor == 8);
    CHECK_EQ(jzi_dead_letters_read(&letters, &cursor, out, 4, &lagged), 2);
    CHECK(lagged == 0 && out[0].seq == 9 && out[1].seq == 10);
    finish();
}

static void test_a_ring_of_one_keeps_the_newest(void)
{
    jzx_dead_letter out[2];
    uint64_t cursor = 0, lagged = 0;
    start(1);
    add(3);
    CHECK_EQ(jzi_dead_letters_read(&letters, &cursor, out, 2, &lagged), 1);
    CHECK(out[0].seq == 3 && lagged == 2 && cursor == 3);
    finish();
}

static void test_a_cursor_from_the_future_comes_back_and_reads_nothing_old(void)
{
    jzx_dead_letter out[2];
    uint64_t cursor = UINT64_MAX, lagged = 9;
    start(2);
    add(3);
    CHECK_EQ(jzi_dead_letters_read(&letters, &cursor, out, 2, &lagged), 0);
    CHECK(cursor == 3 && lagged == 0);
    add(1);
    CHECK_EQ(jzi_dead_letters_read(&letters, &cursor, out, 2, &lagged), 1);
    CHECK_EQ(out[0].seq, 4);
    finish();
}

static void test_a_ring_without_memory_is_refused(void)
{
    jzx_allocator none = {no_memory, NULL};
    CHECK_EQ(jzi_dead_letters_init(&letters, &none, 4), JZX_ERR_NO_MEMORY);
}

static void test_random_readers_see_each_number_once_or_as_lag_R21(void)
{
    enum { STEPS = 20000 };
    jzt_rng rng = jzt_rng_seeded();
    jzx_dead_letter out[8];
    uint64_t cursor = 0, accounted = 0;
    start((uint32_t)jzt_rng_below(&rng, 7) + 1);
    for (int step = 0; step < STEPS; step++) {
        add(jzt_rng_below(&rng, 4));
        if (jzt_rng_below(&rng, 2) == 0) {
            uint64_t lagged = 0;
            size_t asked = (size_t)jzt_rng_below(&rng, 9);
            size_t read = jzi_dead_letters_read(&letters, &cursor, out, asked, &lagged);
            REQUIRE(read <= asked);
            accounted += lagged;
            for (size_t i = 0; i < read; i++) {
                REQUIRE_EQ(out[i].seq, ++accounted);
                REQUIRE_EQ(out[i].tag, (uint32_t)out[i].seq);
            }
            REQUIRE_EQ(cursor, accounted);
        }
    }
    finish();
}

static const jzt_test tests[] = {
    {"letters_are_numbered_from_one_and_read_oldest_first_R21",
     test_letters_are_numbered_from_one_and_read_oldest_first_R21},
    {"a_full_ring_still_has_its_oldest_letter", test_a_full_ring_still_has_its_oldest_letter},
    {"a_reader_that_lags_is_told_how_much_it_missed_R21",
     test_a_reader_that_lags_is_told_how_much_it_missed_R21},
    {"a_ring_of_one_keeps_the_newest", test_a_ring_of_one_keeps_the_newest},
    {"a_cursor_from_the_future_comes_back_and_reads_nothing_old",
     test_a_cursor_from_the_future_comes_back_and_reads_nothing_old},
    {"a_ring_without_memory_is_refused", test_a_ring_without_memory_is_refused},
    {"random_readers_see_each_number_once_or_as_lag_R21",
     test_random_readers_see_each_number_once_or_as_lag_R21},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
