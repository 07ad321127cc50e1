/* Goal: a pool gives every node once, lines them up on cache lines, grows in pages and gives the
 * pages of a burst back (R10).
 * Method: an allocator that counts what is out and can refuse; nodes are filled with rubbish. */
#include "actor/node.h"

#include "support/check.h"

#include <stdlib.h>
#include <string.h>

typedef struct book {
    size_t blocks, bytes;
    bool refuse;
} book;

/* Hands out 16 bytes past a line, the worst that the contract of an allocator allows. */
static void *stingy_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    enum { LINE = 64, SHIFT = 16 };
    book *kept = ctx;
    if (new_size == 0) {
        kept->blocks--;
        kept->bytes -= old_size;
        free((unsigned char *)ptr - SHIFT);
        return NULL;
    }
    if (kept->refuse || ptr != NULL) {
        return NULL;
    }
    size_t rounded = (new_size + SHIFT + LINE - 1) / LINE * LINE;
    unsigned char *block = aligned_alloc(LINE, rounded);
    if (block == NULL) {
        return NULL;
    }
    memset(block, 0xA5, rounded);
    kept->blocks++;
    kept->bytes += new_size;
    return block + SHIFT;
}

static book kept;
static const jzx_allocator alloc = {stingy_realloc, &kept};

static void start(jzi_node_pool *pool, uint32_t node_bytes)
{
    kept = (book){0};
    jzi_node_pool_init(pool, node_bytes);
}

static jzi_node *take_all(jzi_node_pool *pool)
{
    jzi_node *chain = NULL;
    jzi_node *node;
    while ((node = jzi_node_pool_take(pool)) != NULL) {
        memset(node, 0xEE, pool->node_bytes);
        node->next = chain;
        chain = node;
    }
    return chain;
}

static void give_all(jzi_node_pool *pool, jzi_node *chain)
{
    while (chain != NULL) {
        jzi_node *next = chain->next;
        jzi_node_pool_give(pool, chain);
        chain = next;
    }
}

static uint64_t length(const jzi_node *chain)
{
    uint64_t count = 0;
    for (; chain != NULL; chain = chain->next) {
        count++;
    }
    return count;
}

static void test_an_empty_pool_holds_no_memory_and_gives_null_R10(void)
{
    jzi_node_pool pool;
    start(&pool, sizeof(jzi_node));
    CHECK(jzi_node_pool_take(&pool) == NULL);
    CHECK_EQ(jzi_node_pool_count_all(&pool), 0);
    CHECK_EQ(kept.blocks, 0);
    jzi_node_pool_deinit(&pool, &alloc);
}

static void test_a_page_brings_its_nodes_each_on_its_own_line(void)
{
    static const uint32_t sizes[] = {sizeof(jzi_node), sizeof(jzi_wide_node)};
    for (size_t i = 0; i < 2; i++) {
        jzi_node_pool pool;
        start(&pool, sizes[i]);
        REQUIRE(jzi_node_pool_grow(&pool, &alloc));
        CHECK_EQ(jzi_node_pool_count_free(&pool), JZI_PAGE_NODES);
        CHECK_EQ(jzi_node_pool_count_all(&pool), JZI_PAGE_NODES);
        const jzi_node *first = jzi_node_pool_take(&pool);
        const jzi_node *second = jzi_node_pool_take(&pool);
        CHECK_EQ((uintptr_t)first % 64, 0);
        CHECK_EQ((uintptr_t)second - (uintptr_t)first, sizes[i]);
        jzi_node_pool_deinit(&pool, &alloc);
        CHECK_EQ(kept.blocks, 0);
        CHECK_EQ(kept.bytes, 0);
    }
}

static void test_every_node_is_given_once_and_its_memory_is_its_own(void)
{
    jzi_node_pool pool;
    start(&pool, sizeof(jzi_wide_node));
    REQUIRE(jzi_node_pool_grow(&pool, &alloc) && jzi_node_pool_grow(&pool, &alloc));
    uint64_t all = jzi_node_pool_count_all(&pool);
    uint32_t number = 0;
    jzi_node *chain = take_all(&pool);
    CHECK_EQ(length(chain), all);
    CHECK_EQ(jzi_node_pool_count_free(&pool), 0);
    for (jzi_node *node = chain; node != NULL; node = node->next) {
        node->stamp = number++;
    }
    number = 0;
    for (jzi_node *node = chain; node != NULL; node = node->next) {
        CHECK_EQ(node->stamp, number++);
        CHECK_EQ(((jzi_wide_node *)(void *)node)->bytes[JZI_WIDE_BYTES - 1], 0xEE);
    }
    give_all(&pool, chain);
    CHECK_EQ(jzi_node_pool_count_free(&pool), all);
    jzi_node_pool_deinit(&pool, &alloc);
}

static void test_the_node_given_last_is_taken_first(void)
{
    jzi_node_pool pool;
    start(&pool, sizeof(jzi_node));
    REQUIRE(jzi_node_pool_grow(&pool, &alloc));
    jzi_node *a = jzi_node_pool_take(&pool);
    jzi_node *b = jzi_node_pool_take(&pool);
    jzi_node_pool_give(&pool, b);
    jzi_node_pool_give(&pool, a);
    CHECK(jzi_node_pool_take(&pool) == a);
    CHECK(jzi_node_pool_take(&pool) == b);
    jzi_node_pool_deinit(&pool, &alloc);
}

static void test_a_refused_page_changes_nothing(void)
{
    jzi_node_pool pool;
    start(&pool, sizeof(jzi_node));
    REQUIRE(jzi_node_pool_grow(&pool, &alloc));
    kept.refuse = true;
    CHECK(!jzi_node_pool_grow(&pool, &alloc));
    CHECK_EQ(pool.page_count, 1);
    CHECK_EQ(jzi_node_pool_count_free(&pool), JZI_PAGE_NODES);
    jzi_node_pool_deinit(&pool, &alloc);
}

static void test_trimming_gives_the_burst_back_and_keeps_the_rest_usable_R10(void)
{
    jzi_node_pool pool;
    start(&pool, sizeof(jzi_node));
    for (uint32_t i = 0; i < JZI_POOL_KEEP + 3; i++) {
        REQUIRE(jzi_node_pool_grow(&pool, &alloc));
    }
    uint64_t burst = jzi_node_pool_count_all(&pool);
    CHECK(burst > (uint64_t)(JZI_POOL_KEEP + 3) * JZI_PAGE_NODES); /* later pages are bigger */
    give_all(&pool, take_all(&pool));
    jzi_node_pool_trim(&pool, &alloc);
    CHECK_EQ(kept.blocks, JZI_POOL_KEEP);
    CHECK_EQ(jzi_node_pool_count_all(&pool), (uint64_t)JZI_POOL_KEEP * JZI_PAGE_NODES);
    CHECK_EQ(jzi_node_pool_count_free(&pool), jzi_node_pool_count_all(&pool));
    jzi_node *chain = take_all(&pool);
    CHECK_EQ(length(chain), (uint64_t)JZI_POOL_KEEP * JZI_PAGE_NODES);
    give_all(&pool, chain);
    jzi_node_pool_deinit(&pool, &alloc);
    CHECK_EQ(kept.bytes, 0);
}

static void test_trimming_a_small_pool_leaves_it_alone_even_with_nodes_out(void)
{
    jzi_node_pool pool;
    start(&pool, sizeof(jzi_node));
    for (uint32_t i = 0; i < JZI_POOL_KEEP; i++) {
        REQUIRE(jzi_node_pool_grow(&pool, &alloc));
    }
    jzi_node *out = jzi_node_pool_take(&pool);
    uint64_t before = jzi_node_pool_count_free(&pool);
    jzi_node_pool_trim(&pool, &alloc);
    CHECK_EQ(jzi_node_pool_count_free(&pool), before);
    CHECK_EQ(kept.blocks, JZI_POOL_KEEP);
    jzi_node_pool_give(&pool, out);
    jzi_node_pool_deinit(&pool, &alloc);
}

static void test_deinit_leaves_a_pool_that_can_be_used_again(void)
{
    jzi_node_pool pool;
    start(&pool, sizeof(jzi_wide_node));
    REQUIRE(jzi_node_pool_grow(&pool, &alloc));
    jzi_node_pool_deinit(&pool, &alloc);
    CHECK(jzi_node_pool_take(&pool) == NULL);
    jzi_node_pool_deinit(&pool, &alloc);
    REQUIRE(jzi_node_pool_grow(&pool, &alloc));
    CHECK_EQ(pool.node_bytes, sizeof(jzi_wide_node));
    CHECK_EQ(jzi_node_pool_count_free(&pool), JZI_PAGE_NODES);
    jzi_node_pool_deinit(&pool, &alloc);
    CHECK_EQ(kept.blocks, 0);
}

static void check_plain_fields(const jzi_node_pool *pool)
{
    for (const jzi_node *node = pool->free_nodes; node != NULL; node = node->next) {
        REQUIRE(node->msg.drop == NULL && node->msg.deadline_ns == 0);
    }
}

/* I3: the plain way of sending does not write these two. */
static void test_free_nodes_have_neither_drop_nor_deadline_after_growth_and_trimming(void)
{
    jzi_node_pool pool;
    start(&pool, sizeof(jzi_node));
    REQUIRE(jzi_node_pool_grow(&pool, &alloc));
    check_plain_fields(&pool);
    for (uint32_t i = 0; i < JZI_POOL_KEEP; i++) {
        REQUIRE(jzi_node_pool_grow(&pool, &alloc));
    }
    give_all(&pool, take_all(&pool)); /* full of rubbish now */
    jzi_node_pool_trim(&pool, &alloc);
    check_plain_fields(&pool);
    jzi_node_pool_deinit(&pool, &alloc);
}

static void test_the_private_flags_are_the_special_ones_and_no_public_one_is(void)
{
    const uint32_t parts = JZI_MSG_SOLO | JZI_MSG_FOREIGN | JZI_MSG_WIDE | JZI_MSG_BLOCK |
                           JZI_MSG_EVENT | JZI_MSG_DEADLINE | JZI_MSG_DROP | JZI_MSG_DOOMED |
                           JZI_MSG_TAKEN | JZI_MSG_ASK;
    CHECK_EQ(parts, JZI_MSG_SPECIAL);
    CHECK_EQ(JZI_MSG_SPECIAL & (JZX_MSG_VALUE | JZX_MSG_COPY | JZX_MSG_URGENT | JZX_MSG_BORROWED),
             0);
}

static const jzt_test tests[] = {
    {"an_empty_pool_holds_no_memory_and_gives_null_R10",
     test_an_empty_pool_holds_no_memory_and_gives_null_R10},
    {"a_page_brings_its_nodes_each_on_its_own_line",
     test_a_page_brings_its_nodes_each_on_its_own_line},
    {"every_node_is_given_once_and_its_memory_is_its_own",
     test_every_node_is_given_once_and_its_memory_is_its_own},
    {"the_node_given_last_is_taken_first", test_the_node_given_last_is_taken_first},
    {"a_refused_page_changes_nothing", test_a_refused_page_changes_nothing},
    {"trimming_gives_the_burst_back_and_keeps_the_rest_usable_R10",
     test_trimming_gives_the_burst_back_and_keeps_the_rest_usable_R10},
    {"trimming_a_small_pool_leaves_it_alone_even_with_nodes_out",
     test_trimming_a_small_pool_leaves_it_alone_even_with_nodes_out},
    {"deinit_leaves_a_pool_that_can_be_used_again",
     test_deinit_leaves_a_pool_that_can_be_used_again},
    {"free_nodes_have_neither_drop_nor_deadline_after_growth_and_trimming",
     test_free_nodes_have_neither_drop_nor_deadline_after_growth_and_trimming},
    {"the_private_flags_are_the_special_ones_and_no_public_one_is",
     test_the_private_flags_are_the_special_ones_and_no_public_one_is},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
