/* Goal: circles of those who wait for each other are found, and what is told of them is true.
 * Method: drawn graphs, and random ones against a slow way to tell whether there is a circle. */
#include "control_detail_steps.h"

#include "base/alloc.h"
#include "support/check.h"

#include <string.h>

enum { NODES = 8, EDGES_MAX = 40, CIRCLES_MAX = 16 };

typedef struct told {
    size_t count;
    size_t lengths[CIRCLES_MAX];
    jzx_actor_id ids[CIRCLES_MAX][EDGES_MAX];
} told;

static void hear(void *ctx, const jzx_actor_id *ids, size_t count)
{
    told *all = ctx;
    REQUIRE(all->count < CIRCLES_MAX && count <= EDGES_MAX);
    memcpy(all->ids[all->count], ids, count * sizeof *ids);
    all->lengths[all->count++] = count;
}

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

static void find(jzi_wait *list, size_t count, size_t cap, told *out)
{
    jzx_control control = {.view.alloc = jzi_default_allocator()};
    const jzi_waits waits = {.list = list, .count = count, .cap = count};
    *out = (told){0};
    jzi_waits_circles(&control, &waits, cap, hear, out);
}

static bool waits_for(const jzi_wait *list, size_t count, jzx_actor_id asker, jzx_actor_id callee)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].asker == asker && list[i].callee == callee) {
            return true;
        }
    }
    return false;
}

/* Each waits for the next one, and the last one for the first; nobody is there twice. */
static void check_true(const jzi_wait *list, size_t count, const told *all)
{
    for (size_t i = 0; i < all->count; i++) {
        const jzx_actor_id *ids = all->ids[i];
        size_t length = all->lengths[i];
        CHECK(length > 0);
        for (size_t j = 0; j < length; j++) {
            CHECK(waits_for(list, count, ids[j], ids[(j + 1) % length]));
            for (size_t k = 0; k < j; k++) {
                CHECK(ids[j] != ids[k]);
            }
        }
    }
}

static void check_drawn(const char *text, size_t circles, size_t first_length)
{
    jzi_wait list[EDGES_MAX];
    told all;
    size_t count = draw(text, list);
    find(list, count, CIRCLES_MAX, &all);
    check_true(list, count, &all);
    CHECK_EQ(all.count, circles);
    CHECK_EQ(all.lengths[0], first_length);
}

static void test_circles_are_told_without_those_who_only_wait_for_them(void)
{
    check_drawn("", 0, 0);
    check_drawn("12 23 34", 0, 0);
    check_drawn("12 13 24 34", 0, 0); /* two ways, no circle */
    check_drawn("12 21", 1, 2);
    check_drawn("11", 1, 1); /* it asked itself */
    check_drawn("12 23 31", 1, 3);
    check_drawn("12 12 21 21 21", 1, 2); /* more than once */
    check_drawn("12 23 34 42", 1, 3); /* 1 waits for the circle, and is the first one walked from */
    check_drawn("12 21 34 43", 2, 2);
    check_drawn("12 21 13 31", 2, 2); /* both go through 1 */
    check_drawn("52 23 32 14 41 15", 2, 2);
}

static void test_no_more_are_told_than_asked_for(void)
{
    jzi_wait list[EDGES_MAX];
    told all;
    size_t count = draw("12 21 34 43 56 65", list);
    find(list, count, 2, &all);
    CHECK_EQ(all.count, 2);
}

/* Whether there is one: who waits for nobody who is left goes, until nobody does. */
static bool has_circle(const jzi_wait *list, size_t count)
{
    bool gone[NODES] = {0};
    for (size_t round = 0; round < NODES; round++) {
        for (jzx_actor_id id = 0; id < NODES; id++) {
            bool waits = false;
            for (size_t i = 0; i < count; i++) {
                waits = waits || (list[i].asker == id && !gone[list[i].callee]);
            }
            gone[id] = gone[id] || !waits;
        }
    }
    for (size_t id = 0; id < NODES; id++) {
        if (!gone[id]) {
            return true;
        }
    }
    return false;
}

static void test_a_circle_is_told_exactly_if_there_is_one(void)
{
    jzt_rng rng = jzt_rng_seeded();
    for (int round = 0; round < 20000 && jzt_failures() == 0; round++) {
        jzi_wait list[EDGES_MAX];
        told all;
        size_t count = jzt_rng_below(&rng, 12);
        for (size_t i = 0; i < count; i++) {
            list[i] = (jzi_wait){.asker = jzt_rng_below(&rng, NODES),
                                 .callee = jzt_rng_below(&rng, NODES)};
        }
        find(list, count, CIRCLES_MAX, &all);
        check_true(list, count, &all);
        CHECK_EQ(all.count > 0, has_circle(list, count));
    }
}

static const jzt_test tests[] = {
    {"circles_are_told_without_those_who_only_wait_for_them",
     test_circles_are_told_without_those_who_only_wait_for_them},
    {"no_more_are_told_than_asked_for", test_no_more_are_told_than_asked_for},
    {"a_circle_is_told_exactly_if_there_is_one", test_a_circle_is_told_exactly_if_there_is_one},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
