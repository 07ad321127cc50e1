/* Goal: every byte goes through one allocator with honest sizes, and structs of older and newer
 * callers are taken or refused as R36 says.
 * Method: an allocator that writes down what it was asked; structs with every kind of tail. */
#include "base/alloc.h"

#include "support/check.h"

#include <stdlib.h>
#include <string.h>

typedef struct ledger {
    void *ptr;
    size_t old_size, new_size;
    unsigned calls;
    int refuse;
} ledger;

static void *noted_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    ledger *book = ctx;
    book->ptr = ptr;
    book->old_size = old_size;
    book->new_size = new_size;
    book->calls++;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    if (book->refuse) {
        return NULL;
    }
    void *fresh = realloc(ptr, new_size);
    if (fresh != NULL && ptr == NULL) {
        memset(fresh, 0xA5, new_size);
    }
    return fresh;
}

static void test_the_allocator_hears_true_sizes_R36(void)
{
    ledger book = {0};
    jzx_allocator alloc = {noted_realloc, &book};
    void *block = jzi_alloc(&alloc, 24);
    REQUIRE(block != NULL);
    CHECK(book.ptr == NULL && book.old_size == 0 && book.new_size == 24);
    void *grown = jzi_realloc(&alloc, block, 24, 48);
    REQUIRE(grown != NULL);
    CHECK(book.old_size == 24 && book.new_size == 48);
    jzi_free(&alloc, grown, 48);
    CHECK(book.ptr == grown && book.old_size == 48 && book.new_size == 0);
}

static void test_freeing_nothing_does_not_bother_the_allocator(void)
{
    ledger book = {0};
    jzx_allocator alloc = {noted_realloc, &book};
    jzi_free(&alloc, NULL, 100);
    CHECK_EQ(book.calls, 0);
}

static void test_zeroed_memory_is_zero_and_a_refusal_is_null(void)
{
    ledger book = {0};
    jzx_allocator alloc = {noted_realloc, &book};
    unsigned char *block = jzi_alloc_zeroed(&alloc, 64);
    REQUIRE(block != NULL);
    for (size_t i = 0; i < 64; i++) {
        CHECK_EQ(block[i], 0);
    }
    jzi_free(&alloc, block, 64);
    book.refuse = 1;
    CHECK(jzi_alloc_zeroed(&alloc, 64) == NULL);
}

static void test_a_failed_realloc_changes_nothing(void)
{
    ledger book = {0};
    jzx_allocator alloc = {noted_realloc, &book};
    unsigned char *block = jzi_alloc_zeroed(&alloc, 8);
    REQUIRE(block != NULL);
    block[7] = 9;
    book.refuse = 1;
    CHECK(jzi_realloc(&alloc, block, 8, 4096) == NULL);
    CHECK_EQ(block[7], 9);
    jzi_free(&alloc, block, 8);
}

static void test_the_default_allocator_keeps_contents_and_frees(void)
{
    jzx_allocator alloc = jzi_default_allocator();
    unsigned char *block = alloc.realloc(alloc.ctx, NULL, 0, 3);
    REQUIRE(block != NULL);
    memcpy(block, "abc", 3);
    block = alloc.realloc(alloc.ctx, block, 3, 3000);
    REQUIRE(block != NULL);
    CHECK(memcmp(block, "abc", 3) == 0);
    CHECK(alloc.realloc(alloc.ctx, block, 3000, 0) == NULL);
}

enum { KNOWN = 16, LONGER = 24 };

static void test_a_struct_of_the_same_size_is_copied_R36(void)
{
    unsigned char given[KNOWN], out[KNOWN];
    memset(given, 7, sizeof given);
    memset(out, 1, sizeof out);
    CHECK_OK(jzi_struct_adopt(out, KNOWN, given, KNOWN));
    CHECK(memcmp(out, given, KNOWN) == 0);
}

static void test_an_older_struct_is_completed_with_zeros_R36(void)
{
    for (size_t given_size = 0; given_size < KNOWN; given_size++) {
        unsigned char given[KNOWN], out[KNOWN];
        memset(given, 7, sizeof given);
        memset(out, 1, sizeof out);
        CHECK_OK(jzi_struct_adopt(out, KNOWN, given, given_size));
        for (size_t i = 0; i < KNOWN; i++) {
            CHECK_EQ(out[i], i < given_size ? 7 : 0);
        }
    }
}

static void test_a_newer_struct_with_a_zero_tail_is_taken_R36(void)
{
    unsigned char given[LONGER] = {0};
    unsigned char out[KNOWN];
    memset(given, 7, KNOWN);
    memset(out, 1, sizeof out);
    CHECK_OK(jzi_struct_adopt(out, KNOWN, given, LONGER));
    CHECK(memcmp(out, given, KNOWN) == 0);
}

static void test_a_newer_struct_is_refused_for_any_set_byte_and_nothing_is_written_R36(void)
{
    for (size_t at = KNOWN; at < LONGER; at++) {
        unsigned char given[LONGER] = {0};
        unsigned char out[KNOWN], before[KNOWN];
        given[at] = 0x80;
        memset(out, 1, sizeof out);
        memset(before, 1, sizeof before);
        CHECK_EQ(jzi_struct_adopt(out, KNOWN, given, LONGER), JZX_ERR_NEWER_STRUCT);
        CHECK(memcmp(out, before, KNOWN) == 0);
    }
}

static const jzt_test tests[] = {
    {"the_allocator_hears_true_sizes_R36", test_the_allocator_hears_true_sizes_R36},
    {"freeing_nothing_does_not_bother_the_allocator",
     test_freeing_nothing_does_not_bother_the_allocator},
    {"zeroed_memory_is_zero_and_a_refusal_is_null",
     test_zeroed_memory_is_zero_and_a_refusal_is_null},
    {"a_failed_realloc_changes_nothing", test_a_failed_realloc_changes_nothing},
    {"the_default_allocator_keeps_contents_and_frees",
     test_the_default_allocator_keeps_contents_and_frees},
    {"a_struct_of_the_same_size_is_copied_R36", test_a_struct_of_the_same_size_is_copied_R36},
    {"an_older_struct_is_completed_with_zeros_R36",
     test_an_older_struct_is_completed_with_zeros_R36},
    {"a_newer_struct_with_a_zero_tail_is_taken_R36",
     test_a_newer_struct_with_a_zero_tail_is_taken_R36},
    {"a_newer_struct_is_refused_for_any_set_byte_and_nothing_is_written_R36",
     test_a_newer_struct_is_refused_for_any_set_byte_and_nothing_is_written_R36},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
