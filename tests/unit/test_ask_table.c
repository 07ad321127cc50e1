/* Goal: slots of asks are numbered without gaps, stay where they are, and an old number never means
 * a later ask. Method: the table alone, with an allocator that counts; a slot at the end of its
 * generations. */
#include "ask.h"
#include "check.h"

#include <stdlib.h>

enum { SLOT = 48, FIRST = 1 << JZI_ASK_FIRST_SHIFT };

static size_t bytes_out;
static bool refuse;

static void *count_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    if (refuse && new_size > 0) {
        return NULL;
    }
    bytes_out += new_size - old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

static const jzx_allocator counting = {.realloc = count_realloc};

/* As jzi_ask_refill() does: the chunk is published when its slots are filled in. */
static bool grow(jzi_ask_table *table, uint32_t *out_first, uint32_t *out_count)
{
    uint32_t chunk = table->chunk_count;
    unsigned char *slots = jzi_ask_table_grow(table, &counting, out_first, out_count);
    if (slots == NULL) {
        return false;
    }
    CHECK(jzi_ask_table_find(table, *out_first) == NULL); /* not yet */
    atomic_store_explicit(&table->chunks[chunk], slots, memory_order_release);
    return true;
}

static void test_slots_are_numbered_without_gaps(void)
{
    enum { CHUNKS = 6 };
    jzi_ask_table table = {.slot_bytes = SLOT};
    jzi_ask_table_init(&table);
    CHECK(jzi_ask_table_find(&table, 0) == NULL);
    uint32_t expected = 0;
    const unsigned char *firsts[CHUNKS];
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
        uint32_t first = 0;
        uint32_t count = 0;
        REQUIRE(grow(&table, &first, &count));
        CHECK_EQ(first, expected);
        CHECK_EQ(count, (uint32_t)FIRST << chunk);
        firsts[chunk] = (const unsigned char *)jzi_ask_table_find(&table, first);
        REQUIRE(firsts[chunk] != NULL);
        for (uint32_t i = 0; i < count; i++) {
            CHECK((const unsigned char *)jzi_ask_table_find(&table, first + i) ==
                  firsts[chunk] + (size_t)i * SLOT);
        }
        for (size_t i = 0; i < (size_t)count * SLOT; i++) {
            CHECK(firsts[chunk][i] == 0);
        }
        expected += count;
        CHECK(jzi_ask_table_find(&table, expected) == NULL);
        CHECK(jzi_ask_table_find(&table, 0xFFFFFF) == NULL);
    }
    /* They stayed where they were. */
    CHECK((const unsigned char *)jzi_ask_table_find(&table, 0) == firsts[0]);
    CHECK((const unsigned char *)jzi_ask_table_find(&table, FIRST) == firsts[1]);
    CHECK_EQ(bytes_out, (size_t)expected * SLOT);
    jzi_ask_table_deinit(&table, &counting);
    CHECK_EQ(bytes_out, 0);
}

static void test_without_memory_nothing_changes(void)
{
    jzi_ask_table table = {.slot_bytes = SLOT};
    uint32_t first = 7;
    uint32_t count = 7;
    jzi_ask_table_init(&table);
    refuse = true;
    CHECK(!grow(&table, &first, &count));
    refuse = false;
    CHECK_EQ(first, 7);
    CHECK_EQ(count, 7);
    CHECK_EQ(table.chunk_count, 0);
    REQUIRE(grow(&table, &first, &count));
    CHECK_EQ(first, 0);
    jzi_ask_table_deinit(&table, &counting);
    CHECK_EQ(bytes_out, 0);
}

static void test_all_chunks_together_are_what_24_bits_can_number(void)
{
    uint64_t slots = 0;
    for (uint32_t i = 0; i < JZI_ASK_CHUNKS; i++) {
        slots += (uint64_t)FIRST << i;
    }
    CHECK(slots <= 1u << 24);
    CHECK(slots + ((uint64_t)FIRST << JZI_ASK_CHUNKS) > 1u << 24);
    jzi_ask_table table = {.slot_bytes = SLOT, .chunk_count = JZI_ASK_CHUNKS};
    uint32_t first = 0;
    uint32_t count = 0;
    jzi_ask_table_init(&table);
    CHECK(jzi_ask_table_grow(&table, &counting, &first, &count) == NULL);
    table.chunk_count = 0;
    jzi_ask_table_deinit(&table, &counting);
}

/* An id is never 0, and its generation is not either: 0 is "the one in hand". */
static void test_generations_go_round_without_zero(void)
{
    static jzi_ask ask;
    static jzi_post home;
    ask.home = &home;
    for (uint32_t slot = 0; slot <= 0xFFFFFF; slot += 0x7FFFFF) {
        atomic_store(&ask.word, UINT64_C(0xFFFFFFFE) << 32 | (uint64_t)slot << 8);
        uint64_t before = 0;
        for (int i = 0; i < 4; i++) {
            jzi_ask_wake(&ask, 0);
            uint64_t id = jzi_ask_id(&ask);
            CHECK(id >> 32 != 0);
            CHECK(id != before);
            CHECK_EQ(id & 0xFFFFFF, slot);
            CHECK_EQ(jzi_ask_index(&ask), slot);
            CHECK_EQ(jzi_ask_word(&ask) & 0xFF, JZI_ASK_DUTY | JZI_ASK_ASKER);
            before = id;
        }
    }
}

static void test_the_bits_of_both_sides_are_told_apart(void)
{
    static jzi_ask ask;
    static jzi_post home;
    for (int shared = 0; shared < 2; shared++) {
        ask.home = &home;
        ask.shared = shared != 0;
        atomic_store(&ask.word, (uint64_t)5 << 8);
        jzi_ask_wake(&ask, 0);
        CHECK(jzi_ask_is_wanted(&ask));
        CHECK(jzi_ask_decide(&ask));
        CHECK(!jzi_ask_decide(&ask)); /* only one says how it ends */
        CHECK(!jzi_ask_is_wanted(&ask));
        uint64_t before = jzi_ask_change(&ask, 0, JZI_ASK_DUTY);
        CHECK_EQ(before & 0xFF, JZI_ASK_DUTY | JZI_ASK_ASKER | JZI_ASK_DECIDED);
        CHECK_EQ(jzi_ask_word(&ask) & 0xFF, JZI_ASK_ASKER | JZI_ASK_DECIDED);
        CHECK_EQ(jzi_ask_index(&ask), 5);
        jzi_ask_wake(&ask, 0);
        CHECK(jzi_ask_is_wanted(&ask));
    }
}

static const jzt_test tests[] = {
    {"slots_are_numbered_without_gaps", test_slots_are_numbered_without_gaps},
    {"without_memory_nothing_changes", test_without_memory_nothing_changes},
    {"all_chunks_together_are_what_24_bits_can_number",
     test_all_chunks_together_are_what_24_bits_can_number},
    {"generations_go_round_without_zero", test_generations_go_round_without_zero},
    {"the_bits_of_both_sides_are_told_apart", test_the_bits_of_both_sides_are_told_apart},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
