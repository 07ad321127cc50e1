/* Goal: a lane is a queue: nothing is lost, repeated or reordered.
 * Method: facts for the shortest lanes, then a seeded walk against counters. */
#include "actor/lane.h"

#include "support/check.h"

static void test_an_empty_lane_has_no_first_and_no_length(void)
{
    CHECK(jzi_lane_first(NULL) == NULL);
    CHECK_EQ(jzi_lane_count(NULL), 0);
}

static void test_a_single_node_is_first_and_last(void)
{
    jzi_node node = {0};
    jzi_node *tail = NULL;
    jzi_lane_push(&tail, &node);
    CHECK(tail == &node && node.next == &node);
    CHECK(jzi_lane_first(tail) == &node);
    CHECK_EQ(jzi_lane_count(tail), 1);
    CHECK(jzi_lane_pop(&tail) == &node);
    CHECK(tail == NULL);
}

static void test_nodes_come_out_in_the_order_they_went_in_R6(void)
{
    enum { N = 5 };
    jzi_node nodes[N] = {0};
    jzi_node *tail = NULL;
    for (size_t i = 0; i < N; i++) {
        jzi_lane_push(&tail, &nodes[i]);
        CHECK(tail == &nodes[i]);
        CHECK(jzi_lane_first(tail) == &nodes[0]);
        CHECK_EQ(jzi_lane_count(tail), i + 1);
    }
    for (size_t i = 0; i < N; i++) {
        CHECK(jzi_lane_first(tail) == &nodes[i]);
        CHECK(jzi_lane_pop(&tail) == &nodes[i]);
        CHECK_EQ(jzi_lane_count(tail), N - 1 - i);
    }
    CHECK(tail == NULL);
}

static void test_random_walk_is_fifo(void)
{
    enum { SLOTS = 32, STEPS = 20000 };
    static jzi_node nodes[SLOTS];
    jzt_rng rng = jzt_rng_seeded();
    jzi_node *tail = NULL;
    uint32_t pushed = 0, popped = 0;
    for (int step = 0; step < STEPS || popped < pushed; step++) {
        bool full = pushed - popped == SLOTS;
        bool push = step < STEPS && !full && jzt_rng_below(&rng, 2) == 0;
        if (push) {
            jzi_node *node = &nodes[pushed % SLOTS];
            node->stamp = pushed++;
            jzi_lane_push(&tail, node);
        } else if (pushed != popped) {
            REQUIRE_EQ(jzi_lane_pop(&tail)->stamp, popped);
            popped++;
        }
        REQUIRE_EQ(jzi_lane_count(tail), pushed - popped);
    }
    CHECK(tail == NULL);
}

static const jzt_test tests[] = {
    {"an_empty_lane_has_no_first_and_no_length", test_an_empty_lane_has_no_first_and_no_length},
    {"a_single_node_is_first_and_last", test_a_single_node_is_first_and_last},
    {"nodes_come_out_in_the_order_they_went_in_R6",
     test_nodes_come_out_in_the_order_they_went_in_R6},
    {"random_walk_is_fifo", test_random_walk_is_fifo},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
