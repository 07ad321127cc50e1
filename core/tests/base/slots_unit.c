/* Goal: slots are numbered without gaps, stay where they are, and are found by any number that was
 * made and by no other. Method: the table alone, with an allocator that counts. */
#include "base/slots.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { SLOT = 48, FIRST = 1 << JZI_SLOTS_SHIFT };

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

/* A slot with its number in it; NULL: there is none. */
static unsigned char *make(jzi_slots *slots, uint32_t *out_number)
{
    unsigned char *slot = jzi_slots_make(slots, &counting, SLOT, out_number);
    if (slot != NULL) {
        CHECK(jzi_slots_find(slots, *out_number, SLOT) == NULL); /* not yet */
        memset(slot, 0xAA, SLOT);
        memcpy(slot, out_number, sizeof *out_number);
        jzi_slots_publish(slots, *out_number);
    }
    return slot;
}

static void test_slots_are_numbered_without_gaps_and_stay(void)
{
    enum { CHUNKS = 6, COUNT = FIRST * ((1 << CHUNKS) - 1) };
    static unsigned char *made[COUNT];
    jzi_slots slots = {.made = 0};
    jzi_slots_init(&slots);
    CHECK(jzi_slots_find(&slots, 0, SLOT) == NULL);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t number = UINT32_MAX;
        made[i] = make(&slots, &number);
        REQUIRE(made[i] != NULL);
        CHECK_EQ(number, i);
        CHECK(jzi_slots_find(&slots, i + 1, SLOT) == NULL);
        CHECK(jzi_slots_find(&slots, 0xFFFFFF, SLOT) == NULL);
    }
    CHECK_EQ(slots.chunk_count, CHUNKS);
    CHECK_EQ(bytes_out, (size_t)COUNT * SLOT);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t number = 0;
        CHECK(jzi_slots_find(&slots, i, SLOT) == made[i]);
        CHECK(jzi_slots_at(&slots, i, SLOT) == made[i]);
        memcpy(&number, made[i], sizeof number);
        CHECK_EQ(number, i); /* nobody else was given these bytes */
    }
    jzi_slots_deinit(&slots, &counting);
    CHECK_EQ(bytes_out, 0);
}

static void test_without_memory_nothing_changes(void)
{
    jzi_slots slots = {.made = 0};
    uint32_t number = 7;
    jzi_slots_init(&slots);
    refuse = true;
    CHECK(make(&slots, &number) == NULL);
    refuse = false;
    CHECK_EQ(number, 7);
    CHECK_EQ(slots.chunk_count, 0);
    REQUIRE(make(&slots, &number) != NULL);
    CHECK_EQ(number, 0);
    for (uint32_t i = 1; i < FIRST; i++) {
        REQUIRE(make(&slots, &number) != NULL);
    }
    refuse = true; /* the first chunk is full */
    CHECK(make(&slots, &number) == NULL);
    CHECK_EQ(number, FIRST - 1);
    refuse = false;
    REQUIRE(make(&slots, &number) != NULL);
    CHECK_EQ(number, FIRST);
    jzi_slots_deinit(&slots, &counting);
    CHECK_EQ(bytes_out, 0);
}

static void test_all_chunks_together_are_what_24_bits_can_number(void)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < JZI_SLOTS_CHUNKS; i++) {
        count += (uint64_t)FIRST << i;
    }
    CHECK(count <= 1u << 24);
    CHECK(count + ((uint64_t)FIRST << JZI_SLOTS_CHUNKS) > 1u << 24);
    jzi_slots slots = {.chunk_count = JZI_SLOTS_CHUNKS};
    uint32_t number = 0;
    jzi_slots_init(&slots);
    CHECK(make(&slots, &number) == NULL);
    slots.chunk_count = 0;
    jzi_slots_deinit(&slots, &counting);
}

static const jzt_test tests[] = {
    {"slots_are_numbered_without_gaps_and_stay", test_slots_are_numbered_without_gaps_and_stay},
    {"without_memory_nothing_changes", test_without_memory_nothing_changes},
    {"all_chunks_together_are_what_24_bits_can_number",
     test_all_chunks_together_are_what_24_bits_can_number},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
