/* Goal: circles of actors that wait for each other are found, and what is told of them is true.
 * Method: drawn graphs, and random ones against a slow way to tell whether there is a circle. */
#include "doctor.h"

#include "support/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 8, CIRCLES_MAX = 16 };

/* Edges as pairs of digits: "12 23" is 1 waits for 2, and 2 for 3. */
static json_t *draw(const char *text)
{
    json_t *pairs = json_array();
    for (; *text != '\0'; text += text[2] == ' ' ? 3 : 2) {
        json_array_append_new(pairs, json_pack("[s#,s#]", text, 1, text + 1, 1));
    }
    return pairs;
}

static const char *id_at(const json_t *list, size_t at)
{
    return json_string_value(json_array_get(list, at));
}

static bool waits_for(const json_t *pairs, const char *asker, const char *callee)
{
    size_t i;
    json_t *pair;
    json_array_foreach(pairs, i, pair)
    {
        if (strcmp(id_at(pair, 0), asker) == 0 && strcmp(id_at(pair, 1), callee) == 0) {
            return true;
        }
    }
    return false;
}

/* Each waits for the next one, and the last one for the first; none is there twice. */
static void check_true(const json_t *pairs, const json_t *circles)
{
    size_t i;
    json_t *circle;
    json_array_foreach(circles, i, circle)
    {
        size_t length = json_array_size(circle);
        CHECK(length > 0);
        for (size_t j = 0; j < length; j++) {
            CHECK(waits_for(pairs, id_at(circle, j), id_at(circle, (j + 1) % length)));
            for (size_t k = 0; k < j; k++) {
                CHECK(strcmp(id_at(circle, j), id_at(circle, k)) != 0);
            }
        }
    }
}

static void check_drawn(const char *text, size_t count, size_t first_length)
{
    json_t *pairs = draw(text);
    json_t *circles = jzd_circles(pairs, CIRCLES_MAX);
    check_true(pairs, circles);
    CHECK_EQ(json_array_size(circles), count);
    CHECK_EQ(json_array_size(json_array_get(circles, 0)), first_length);
    json_decref(circles);
    json_decref(pairs);
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
    json_t *pairs = draw("12 21 34 43 56 65");
    json_t *circles = jzd_circles(pairs, 2);
    CHECK_EQ(json_array_size(circles), 2);
    json_decref(circles);
    json_decref(pairs);
}

/* Whether there is one: who waits for none that is left goes, until none does. */
static bool has_circle(const json_t *pairs)
{
    bool gone[NODES] = {0};
    bool any = false;
    for (size_t round = 0; round < NODES; round++) {
        for (int id = 0; id < NODES; id++) {
            bool waits = false;
            size_t i;
            json_t *pair;
            json_array_foreach(pairs, i, pair)
            {
                waits = waits || (*id_at(pair, 0) == '0' + id && !gone[*id_at(pair, 1) - '0']);
            }
            gone[id] = gone[id] || !waits;
        }
    }
    for (size_t id = 0; id < NODES; id++) {
        any = any || !gone[id];
    }
    return any;
}

static void test_a_circle_is_told_exactly_if_there_is_one(void)
{
    jzt_rng rng = jzt_rng_seeded();
    for (int round = 0; round < 20000 && jzt_failures() == 0; round++) {
        char text[64] = "";
        size_t count = jzt_rng_below(&rng, 12);
        for (size_t i = 0; i < count; i++) {
            text[3 * i] = (char)('0' + jzt_rng_below(&rng, NODES));
            text[3 * i + 1] = (char)('0' + jzt_rng_below(&rng, NODES));
            text[3 * i + 2] = i + 1 < count ? ' ' : '\0';
        }
        json_t *pairs = draw(text);
        json_t *circles = jzd_circles(pairs, CIRCLES_MAX);
        check_true(pairs, circles);
        CHECK_EQ(json_array_size(circles) > 0, has_circle(pairs));
        json_decref(circles);
        json_decref(pairs);
    }
}

static void check_added(const char *answer, const char *wanted)
{
    json_t *object = json_loads(answer, 0, NULL);
    REQUIRE(object != NULL);
    jzd_add_circles(object);
    char *text = json_dumps(object, JSON_COMPACT);
    CHECK_STR(text, wanted);
    free(text);
    json_decref(object);
}

static void test_an_answer_gets_circles_for_its_pairs(void)
{
    check_added("{\"a\":1,\"waits\":[[\"1\",\"2\"],[\"2\",\"1\"]]}",
                "{\"a\":1,\"cycles\":[[\"1\",\"2\"]]}");
    check_added("{\"waits\":[]}", "{\"cycles\":[]}");
    /* What is no pair of ids is no edge. */
    check_added("{\"waits\":[1,[],[\"1\"],[\"1\",2],{},[\"3\",\"3\"],null]}",
                "{\"cycles\":[[\"3\"]]}");
    check_added("{\"waits\":7,\"cycles\":[]}", "{\"waits\":7,\"cycles\":[]}");
}

static const jzt_test tests[] = {
    {"circles_are_told_without_those_who_only_wait_for_them",
     test_circles_are_told_without_those_who_only_wait_for_them},
    {"no_more_are_told_than_asked_for", test_no_more_are_told_than_asked_for},
    {"a_circle_is_told_exactly_if_there_is_one", test_a_circle_is_told_exactly_if_there_is_one},
    {"an_answer_gets_circles_for_its_pairs", test_an_answer_gets_circles_for_its_pairs},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
