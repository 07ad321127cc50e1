/* Asks that nobody answered yet, of all dispatchers, and circles among those who wait. */
#include "ask.h"
#include "base/alloc.h"
#include "control_detail_steps.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLOTS_PER_VISIT = 4096, /* so that no dispatcher is kept for long */
    WAITS_PER_VISIT = 1024,
    WAITS_MAX = 524288
};
#define TOUR_NS UINT64_C(150000000)
#define ALL_TOURS_NS UINT64_C(2000000000) /* a client waits for the answer */

typedef struct ask_visit {
    uint64_t now_ns; /* the same for all dispatchers */
    uint64_t min_age_ns;
    uint32_t from; /* slots; on the way back: where to go on */
    bool more;
    uint32_t count;
    jzi_wait waits[WAITS_PER_VISIT];
} ask_visit;

/* Of a slot whose ask is an actor's and not over. While the asker's side has its bit, and we are in
 * its domain, it stays so. */
static void look_at_slot(ask_visit *visit, const jzi_ask *ask)
{
    uint64_t word = jzi_ask_word(ask);
    if ((word & (JZI_ASK_ASKER | JZI_ASK_DECIDED | JZI_ASK_THREAD)) != JZI_ASK_ASKER ||
        ask->asker == JZX_NOBODY) {
        return;
    }
    uint64_t age_ns = visit->now_ns > ask->asked_ns ? visit->now_ns - ask->asked_ns : 0;
    if (age_ns >= visit->min_age_ns) {
        visit->waits[visit->count++] = (jzi_wait){
            .asker = ask->asker,
            .callee = jzi_ask_callee(ask),
            .age_ns = age_ns,
            .endless = ask->deadline_ns == 0,
        };
    }
}

static void visit_asks(jzi_worker *worker, void *payload)
{
    ask_visit *visit = payload;
    uint32_t slot = visit->from;
    uint32_t end = slot + SLOTS_PER_VISIT;
    const jzi_ask *ask = jzi_ask_slot(worker->post, slot);
    while (ask != NULL && slot < end && visit->count < WAITS_PER_VISIT) {
        look_at_slot(visit, ask);
        ask = jzi_ask_slot(worker->post, ++slot);
    }
    visit->from = slot;
    visit->more = ask != NULL;
}

/* How far each dispatcher has been looked at. */
typedef struct ask_tour {
    jzx_control *control;
    jzi_waits *waits;
    uint64_t now_ns;
    uint64_t min_age_ns;
    uint32_t from[JZX_DISPATCHERS_MAX];
    bool is_done[JZX_DISPATCHERS_MAX];
    bool more;
} ask_tour;

static bool prepare(void *ctx, uint32_t dispatcher, void *payload)
{
    const ask_tour *tour = ctx;
    ask_visit *visit = payload;
    visit->now_ns = tour->now_ns;
    visit->min_age_ns = tour->min_age_ns;
    visit->from = tour->from[dispatcher];
    return !tour->is_done[dispatcher];
}

static bool make_room(jzx_control *control, jzi_waits *waits, size_t count)
{
    size_t cap = waits->cap;
    while (cap < waits->count + count) {
        cap = cap == 0 ? WAITS_PER_VISIT : cap * 2;
    }
    if (cap > WAITS_MAX) {
        return false;
    }
    if (cap > waits->cap) {
        jzi_wait *list = jzi_realloc(&control->view.alloc, waits->list,
                                     waits->cap * sizeof *waits->list, cap * sizeof *list);
        if (list == NULL) {
            return false;
        }
        waits->list = list;
        waits->cap = cap;
    }
    return true;
}

static void take(void *ctx, uint32_t dispatcher, const void *payload)
{
    ask_tour *tour = ctx;
    const ask_visit *visit = payload;
    jzi_waits *waits = tour->waits;
    if (visit->count > 0 && !make_room(tour->control, waits, visit->count)) {
        waits->cut = true;
        return;
    }
    if (visit->count > 0) {
        memcpy(waits->list + waits->count, visit->waits, visit->count * sizeof(jzi_wait));
        waits->count += visit->count;
    }
    tour->from[dispatcher] = visit->from;
    tour->is_done[dispatcher] = !visit->more;
    tour->more = tour->more || visit->more;
}

static int by_age(const void *a, const void *b)
{
    const jzi_wait *left = a;
    const jzi_wait *right = b;
    return (left->age_ns < right->age_ns) - (left->age_ns > right->age_ns);
}

void jzi_waits_gather(jzx_control *control, uint64_t now_ns, uint64_t min_age_ns, jzi_waits *out,
                      jzi_silence *silence)
{
    ask_tour state = {
        .control = control, .waits = out, .now_ns = now_ns, .min_age_ns = min_age_ns, .more = true};
    const jzi_tour tour = {.payload_bytes = sizeof(ask_visit),
                           .timeout_ns = TOUR_NS,
                           .run = visit_asks,
                           .prepare = prepare,
                           .take = take,
                           .ctx = &state};
    uint64_t end_ns = jzi_control_now_ns(control) + ALL_TOURS_NS;
    while (state.more && !out->cut) {
        state.more = false;
        out->cut = !jzi_tour_go(control, &tour, silence) || out->cut ||
                   (state.more && jzi_control_now_ns(control) >= end_ns);
    }
    if (out->count > 1) {
        qsort(out->list, out->count, sizeof *out->list, by_age);
    }
}

void jzi_waits_free(jzx_control *control, jzi_waits *waits)
{
    jzi_free(&control->view.alloc, waits->list, waits->cap * sizeof *waits->list);
    *waits = (jzi_waits){0};
}

/* Circles: a walk along who waits for whom, deeper first. Whoever is met again while still on the
 * way closes a circle. Nobody is walked through twice, so of circles that share an actor some are
 * not told; each of their actors who waits in one is in one that is, or meets it. */
typedef struct edge {
    jzx_actor_id from;
    jzx_actor_id to;
    uint8_t state; /* of `from`, at its first edge */
    size_t next;   /* likewise: where its walk goes on */
} edge;
enum { UNSEEN, ON_THE_WAY, SEEN };

static int by_from(const void *a, const void *b)
{
    const edge *left = a;
    const edge *right = b;
    if (left->from != right->from) {
        return left->from < right->from ? -1 : 1;
    }
    return (left->to > right->to) - (left->to < right->to);
}

/* The first edge of an actor; count: it waits for nobody. */
static size_t first_of(const edge *edges, size_t count, jzx_actor_id from)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (edges[middle].from < from) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && edges[low].from == from ? low : count;
}

typedef struct walk {
    edge *edges;
    size_t count;
    jzx_actor_id *path;
    size_t depth;
    size_t left; /* circles that may still be told */
    void (*see)(void *ctx, const jzx_actor_id *ids, size_t count);
    void *ctx;
} walk;

static void tell_circle(walk *it, jzx_actor_id begin)
{
    size_t at = it->depth;
    while (at > 0 && it->path[at - 1] != begin) {
        at--;
    }
    it->see(it->ctx, it->path + at - 1, it->depth - at + 1);
    it->left--;
}

static void enter(walk *it, size_t first)
{
    it->edges[first].state = ON_THE_WAY;
    it->edges[first].next = first;
    it->path[it->depth++] = it->edges[first].from;
}

static void walk_from(walk *it, size_t first)
{
    enter(it, first);
    while (it->depth > 0 && it->left > 0) {
        jzx_actor_id here = it->path[it->depth - 1];
        edge *top = &it->edges[first_of(it->edges, it->count, here)];
        if (top->next == it->count || it->edges[top->next].from != here) {
            top->state = SEEN;
            it->depth--;
            continue;
        }
        jzx_actor_id to = it->edges[top->next++].to;
        size_t next = first_of(it->edges, it->count, to);
        if (next < it->count && it->edges[next].state == ON_THE_WAY) {
            tell_circle(it, to);
        } else if (next < it->count && it->edges[next].state == UNSEEN) {
            enter(it, next);
        }
    }
}

/* Without doubles: one asks another one more than once. */
static size_t make_edges(const jzi_waits *waits, edge *edges)
{
    for (size_t i = 0; i < waits->count; i++) {
        edges[i] = (edge){.from = waits->list[i].asker, .to = waits->list[i].callee};
    }
    qsort(edges, waits->count, sizeof *edges, by_from);
    size_t count = 0;
    for (size_t i = 0; i < waits->count; i++) {
        if (count == 0 || by_from(&edges[count - 1], &edges[i]) != 0) {
            edges[count++] = edges[i];
        }
    }
    return count;
}

void jzi_waits_circles(const jzx_control *control, const jzi_waits *waits, size_t cap,
                       void (*see)(void *ctx, const jzx_actor_id *ids, size_t count), void *ctx)
{
    const jzx_allocator *alloc = &control->view.alloc;
    size_t most = waits->count;
    edge *edges = most == 0 ? NULL : jzi_alloc(alloc, most * sizeof *edges);
    jzx_actor_id *path = most == 0 ? NULL : jzi_alloc(alloc, most * sizeof *path);
    if (edges != NULL && path != NULL) {
        walk it = {.edges = edges,
                   .count = make_edges(waits, edges),
                   .path = path,
                   .left = cap,
                   .see = see,
                   .ctx = ctx};
        for (size_t i = 0; i < it.count && it.left > 0; i++) {
            bool first = i == 0 || edges[i - 1].from != edges[i].from;
            if (first && edges[i].state == UNSEEN) {
                it.depth = 0;
                walk_from(&it, i);
            }
        }
    }
    jzi_free(alloc, edges, most * sizeof *edges);
    jzi_free(alloc, path, most * sizeof *path);
}
