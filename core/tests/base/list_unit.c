/* Goal: a list and a queue hold exactly what was put in and not taken out, in order, and every
 * object leaves from any place without a search. Method: small cases, then a seeded walk against an
 * array. */
#include "base/list.h"
#include "check.h"

#include <stdbool.h>
#include <string.h>

typedef struct item {
    struct item *next, **pprev;
    struct item *other_next, **other_pprev;
} item;

/* The length; checks I1 on the way. */
static size_t length(item *const *head)
{
    size_t count = 0;
    for (item *const *at = head; *at != NULL; at = &(*at)->next) {
        CHECK((*at)->pprev == at);
        count++;
    }
    return count;
}

static void test_the_newest_is_first(void)
{
    item items[3] = {{0}}, *head = NULL;
    for (int i = 0; i < 3; i++) {
        JZI_LIST_PUSH(&head, &items[i]);
    }
    CHECK(head == &items[2] && head->next == &items[1] && head->next->next == &items[0]);
    CHECK(items[0].next == NULL);
    CHECK_EQ(length(&head), 3);
}

static void test_an_item_leaves_from_the_front_the_middle_and_the_end(void)
{
    for (int out = 0; out < 3; out++) {
        item items[3] = {{0}}, *head = NULL;
        for (int i = 0; i < 3; i++) {
            JZI_LIST_PUSH(&head, &items[i]);
        }
        JZI_LIST_REMOVE(&items[out]);
        CHECK(items[out].pprev == NULL); /* I2 */
        CHECK_EQ(length(&head), 2);
        for (item *at = head; at != NULL; at = at->next) {
            CHECK(at != &items[out]);
        }
        JZI_LIST_PUSH(&head, &items[out]); /* and may come again */
        CHECK(head == &items[out]);
        CHECK_EQ(length(&head), 3);
    }
}

static void test_a_list_of_one_is_empty_again(void)
{
    item one = {0}, *head = NULL;
    JZI_LIST_PUSH(&head, &one);
    JZI_LIST_REMOVE(&one);
    CHECK(head == NULL);
}

static void test_pushing_at_the_end_keeps_the_order(void)
{
    item items[4] = {{0}}, *head = NULL, **tail = &head;
    for (int i = 0; i < 4; i++) {
        JZI_LIST_PUSH(tail, &items[i]);
        tail = &items[i].next;
    }
    CHECK_EQ(length(&head), 4);
    int i = 0;
    for (const item *at = head; at != NULL; at = at->next) {
        CHECK(at == &items[i++]);
    }
}

static void test_an_item_is_in_two_lists_at_once(void)
{
    item items[2] = {{0}}, *head = NULL, *other = NULL;
    for (int i = 0; i < 2; i++) {
        JZI_LIST_PUSH(&head, &items[i]);
        JZI_LINKS_PUSH(&other, &items[i], other_next, other_pprev);
    }
    JZI_LIST_REMOVE(&items[1]);
    CHECK(head == &items[0] && other == &items[1] && other->other_next == &items[0]);
    JZI_LINKS_REMOVE(&items[0], other_next, other_pprev);
    CHECK(head == &items[0] && other == &items[1] && other->other_next == NULL);
    CHECK(items[0].other_pprev == NULL);
}

typedef struct entry {
    struct entry *next, *prev;
    bool in;
} entry;
typedef struct queue {
    entry *first, *last;
} queue;

static void test_a_random_walk_of_a_queue_agrees_with_an_array(void)
{
    enum { ENTRIES = 8, STEPS = 20000 };
    entry entries[ENTRIES] = {{0}};
    entry *order[ENTRIES];
    size_t count = 0;
    queue q = {0};
    jzt_rng rng = jzt_rng_seeded();
    for (int step = 0; step < STEPS && jzt_failures() == 0; step++) {
        entry *e = &entries[jzt_rng_below(&rng, ENTRIES)];
        if (e->in) {
            JZI_QUEUE_REMOVE(&q, e);
            size_t at = 0;
            while (order[at] != e) {
                at++;
            }
            memmove(&order[at], &order[at + 1], (--count - at) * sizeof order[0]);
        } else {
            JZI_QUEUE_APPEND(&q, e);
            order[count++] = e;
        }
        e->in = !e->in;
        size_t there = 0;
        const entry *before = NULL;
        for (const entry *at = q.first; at != NULL; before = at, at = at->next, there++) {
            REQUIRE(there < count);
            CHECK(at == order[there] && at->prev == before);
        }
        CHECK_EQ(there, count);
        CHECK(q.last == before);
    }
}

static const jzt_test tests[] = {
    {"the_newest_is_first", test_the_newest_is_first},
    {"an_item_leaves_from_the_front_the_middle_and_the_end",
     test_an_item_leaves_from_the_front_the_middle_and_the_end},
    {"a_list_of_one_is_empty_again", test_a_list_of_one_is_empty_again},
    {"pushing_at_the_end_keeps_the_order", test_pushing_at_the_end_keeps_the_order},
    {"an_item_is_in_two_lists_at_once", test_an_item_is_in_two_lists_at_once},
    {"a_random_walk_of_a_queue_agrees_with_an_array",
     test_a_random_walk_of_a_queue_agrees_with_an_array},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
