/* Circles: a walk from askers to callees, deeper first. An actor that is met again while still on
 * the way closes a circle. No actor is walked through twice, so of circles that share an actor some
 * are not told; each of their actors that waits in one is in one that is, or meets it. */
#include "doctor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CIRCLES_MAX = 16 };
enum { UNSEEN, ON_THE_WAY, SEEN };

typedef struct edge {
    json_t *from; /* borrowed, as `to` */
    json_t *to;
    int state;   /* of `from`, at its first edge */
    size_t next; /* likewise: where its walk goes on */
} edge;

static int compare_ids(const json_t *a, const json_t *b)
{
    return strcmp(json_string_value(a), json_string_value(b));
}

static int by_from(const void *a, const void *b)
{
    const edge *left = a;
    const edge *right = b;
    int order = compare_ids(left->from, right->from);
    return order != 0 ? order : compare_ids(left->to, right->to);
}

typedef struct walk {
    edge *edges;
    size_t count;
    size_t *path; /* first edges of the actors on the way */
    size_t depth;
    size_t most; /* circles */
    json_t *circles;
} walk;

/* The first edge of an actor; count: it waits for nothing. */
static size_t first_of(const walk *it, const json_t *from)
{
    size_t low = 0;
    size_t high = it->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_ids(it->edges[middle].from, from) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < it->count && compare_ids(it->edges[low].from, from) == 0 ? low : it->count;
}

/* From where the circle was entered to the end of the way. */
static void add_circle(walk *it, size_t first)
{
    json_t *circle = json_array();
    size_t at = it->depth;
    while (at > 0 && it->path[at - 1] != first) {
        at--;
    }
    for (at = at == 0 ? 0 : at - 1; at < it->depth; at++) {
        (void)json_array_append(circle, it->edges[it->path[at]].from);
    }
    (void)json_array_append_new(it->circles, circle);
}

static void enter(walk *it, size_t first)
{
    it->edges[first].state = ON_THE_WAY;
    it->edges[first].next = first;
    it->path[it->depth++] = first;
}

static void walk_from(walk *it, size_t first)
{
    it->depth = 0;
    enter(it, first);
    while (it->depth > 0 && json_array_size(it->circles) < it->most) {
        edge *top = &it->edges[it->path[it->depth - 1]];
        if (top->next == it->count || compare_ids(it->edges[top->next].from, top->from) != 0) {
            top->state = SEEN;
            it->depth--;
            continue;
        }
        size_t next = first_of(it, it->edges[top->next++].to);
        if (next < it->count && it->edges[next].state == ON_THE_WAY) {
            add_circle(it, next);
        } else if (next < it->count && it->edges[next].state == UNSEEN) {
            enter(it, next);
        }
    }
}

/* Sorted, each once. What is no pair of ids is left out. */
static size_t make_edges(const json_t *pairs, edge *edges)
{
    size_t count = 0;
    size_t distinct = 0;
    size_t i;
    json_t *pair;
    json_array_foreach(pairs, i, pair)
    {
        json_t *from = json_array_get(pair, 0);
        json_t *to = json_array_get(pair, 1);
        if (json_is_string(from) && json_is_string(to)) {
            edges[count++] = (edge){.from = from, .to = to};
        }
    }
    qsort(edges, count, sizeof *edges, by_from);
    for (i = 0; i < count; i++) {
        if (distinct == 0 || by_from(&edges[distinct - 1], &edges[i]) != 0) {
            edges[distinct++] = edges[i];
        }
    }
    return distinct;
}

json_t *jzd_circles(const json_t *pairs, size_t most)
{
    size_t size = json_array_size(pairs);
    walk it = {.edges = calloc(size + 1, sizeof *it.edges),
               .path = calloc(size + 1, sizeof *it.path),
               .most = most,
               .circles = json_array()};
    if (it.edges == NULL || it.path == NULL || it.circles == NULL) {
        json_decref(it.circles);
        it.circles = NULL;
    } else {
        it.count = make_edges(pairs, it.edges);
        for (size_t i = 0; i < it.count && json_array_size(it.circles) < most; i++) {
            bool first = i == 0 || compare_ids(it.edges[i - 1].from, it.edges[i].from) != 0;
            if (first && it.edges[i].state == UNSEEN) {
                walk_from(&it, i);
            }
        }
    }
    free(it.edges);
    free(it.path);
    return it.circles;
}

void jzd_add_circles(json_t *stuck)
{
    const json_t *waits = json_object_get(stuck, "waits");
    json_t *circles = json_is_array(waits) ? jzd_circles(waits, CIRCLES_MAX) : NULL;
    if (circles != NULL && json_object_set_new(stuck, "cycles", circles) == 0) {
        (void)json_object_del(stuck, "waits");
    }
}
