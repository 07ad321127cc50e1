/* Goal: of who waits for whom, the pairs that form circles are all told, and chains are not.
 * Method: drawn graphs, and random ones against a slow way to tell which pairs lie between circles.
 */
#include "control/detail.h"

#include "base/alloc.h"
#include "support/check.h"

#include <string.h>

enum { NODES = 8, EDGES_MAX = 40, LONG = 1000 };

/* Edges as pairs of digits: "12 23" is 1 waits for 2, and 2 for 3. */
static size_t draw(const char *text, jzi_wait *waits)
{
    size_t count = 0;
    for (; *text != '\0'; text += text[2] == ' ' ? 3 : 2) {
        waits[count++] = (jzi_wait){.asker = (jzx_actor_id)(text[0] - '0'),
                                    .callee = (jzx_actor_id)(text[1] - '0')};
    }
    return count;
}

static size_t find(jzi_wait *list, size_t count, jzi_pair *out)
{
    jzx_control control = {.view.alloc = jzi_default_allocator()};
    jzi_waits waits = {.list = list, .count = count, .cap = count};
    jzi_pair *pairs = NULL;
    size_t found = jzi_waits_pairs(&control, &waits, &pairs);
    CHECK(!waits.cut);
    REQUIRE(found <= count);
    if (found > 0) {
        memcpy(out, pairs, found * sizeof *out);
    }
    jzi_free(&control.view.alloc, pairs, count * sizeof *pairs);
    return found;
}

static void check_drawn(const char *text, const char *wanted)
{
    jzi_wait list[EDGES_MAX];
    jzi_pair pairs[EDGES_MAX];
    char told[3 * EDGES_MAX + 1] = "";
    size_t found = find(list, draw(text, list), pairs);
    for (size_t i = 0; i < found; i++) {
        told[3 * i] = (char)('0' + pairs[i].asker);
        told[3 * i + 1] = (char)('0' + pairs[i].callee);
        told[3 * i + 2] = i + 1 < found ? ' ' : '\0';
    }
    CHECK_STR(told, wanted);
}

static void test_pairs_of_circles_are_told_and_chains_are_not(void)
{
    check_drawn("", "");
    check_drawn("12 23 34", "");
    check_drawn("12 13 24 34", ""); /* two ways, no circle */
    check_drawn("12 21", "12 21");
    check_drawn("11", "11"); /* it asked itself */
    check_drawn("31 12 23", "12 23 31");
    check_drawn("12 12 21 21 21", "12 21"); /* each once */
    check_drawn("12 23 34 42", "23 34 42"); /* 1 waits for the circle */
    check_drawn("12 21 25 56", "12 21");    /* the circle waits for 5 too */
    check_drawn("12 21 25 56 65", "12 21 25 56 65");
}

/* A chain that is longer than what is cut off of it. */
static void test_a_circle_is_told_also_beside_a_long_chain(void)
{
    static jzi_wait list[LONG + 2];
    static jzi_pair pairs[LONG + 2];
    for (size_t i = 0; i < LONG; i++) {
        list[i] = (jzi_wait){.asker = i + 10, .callee = i + 11};
    }
    list[LONG] = (jzi_wait){.asker = 1, .callee = 2};
    list[LONG + 1] = (jzi_wait){.asker = 2, .callee = 1};
    size_t found = find(list, LONG + 2, pairs);
    REQUIRE(found >= 2 && found < LONG);
    CHECK_EQ(pairs[0].asker, 1);
    CHECK_EQ(pairs[1].asker, 2);
}

/* Whether one can get from here to there. */
static bool leads(const jzi_wait *list, size_t count, jzx_actor_id from, jzx_actor_id to)
{
    bool met[NODES] = {0};
    met[from] = true;
    for (size_t round = 0; round < NODES; round++) {
        for (size_t i = 0; i < count; i++) {
            met[list[i].callee] = met[list[i].callee] || met[list[i].asker];
        }
    }
    return met[to];
}

static void test_no_pair_of_a_circle_is_left_out(void)
{
    jzt_rng rng = jzt_rng_seeded();
    for (int round = 0; round < 20000 && jzt_failures() == 0; round++) {
        jzi_wait list[EDGES_MAX];
        jzi_pair pairs[EDGES_MAX];
        size_t count = jzt_rng_below(&rng, 12);
        bool any = false;
        for (size_t i = 0; i < count; i++) {
            list[i] = (jzi_wait){.asker = jzt_rng_below(&rng, NODES),
                                 .callee = jzt_rng_below(&rng, NODES)};
        }
        size_t found = find(list, count, pairs);
        for (size_t i = 0; i < count; i++) {
            bool told = false;
            bool circle = leads(list, count, list[i].callee, list[i].asker);
            for (size_t j = 0; j < found; j++) {
                told =
                    told || (pairs[j].asker == list[i].asker && pairs[j].callee == list[i].callee);
            }
            CHECK(told || !circle);
            any = any || circle;
        }
        CHECK_EQ(found > 0, any); /* no circle, no pairs: chains are short here */
    }
}

static const jzt_test tests[] = {
    {"pairs_of_circles_are_told_and_chains_are_not",
     test_pairs_of_circles_are_told_and_chains_are_not},
    {"a_circle_is_told_also_beside_a_long_chain", test_a_circle_is_told_also_beside_a_long_chain},
    {"no_pair_of_a_circle_is_left_out", test_no_pair_of_a_circle_is_left_out},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
