#include "patterns/router_pick.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/random.h"

#include <string.h>

jzx_err jzi_routes_insert(jzi_routes *routes, const jzx_allocator *alloc, uint32_t at,
                          const jzi_route *route)
{
    jzi_assert(at <= routes->count && !route->full && !route->asked);
    jzi_route *more =
        jzi_array_grow(alloc, routes->at, &routes->cap, 4, routes->count + 1u, sizeof *more);
    if (more == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    routes->at = more;
    memmove(&routes->at[at + 1], &routes->at[at], (routes->count - at) * sizeof(jzi_route));
    routes->at[at] = *route;
    routes->count++;
    routes->open++;
    if (at < routes->next) {
        routes->next++; /* still the same one's turn */
    }
    return JZX_OK;
}

void jzi_routes_remove(jzi_routes *routes, uint32_t at)
{
    jzi_assert(at < routes->count);
    jzi_routes_set_full(routes, at, true); /* neither open nor asked any more */
    jzi_routes_set_asked(routes, at, false);
    routes->count--;
    memmove(&routes->at[at], &routes->at[at + 1], (routes->count - at) * sizeof(jzi_route));
    if (at < routes->next) {
        routes->next--;
    }
    if (routes->next >= routes->count) {
        routes->next = 0;
    }
}

void jzi_routes_deinit(jzi_routes *routes, const jzx_allocator *alloc)
{
    jzi_free(alloc, routes->at, routes->cap * sizeof(jzi_route));
    *routes = (jzi_routes){0};
}

uint32_t jzi_routes_find(const jzi_routes *routes, jzx_actor_id id)
{
    for (uint32_t i = 0; i < routes->count; i++) {
        if (routes->at[i].id == id) {
            return i;
        }
    }
    return JZI_ROUTE_NONE;
}

uint32_t jzi_routes_gap(const jzi_routes *routes)
{
    uint32_t i = 0;
    while (i < routes->count && routes->at[i].index == i) {
        i++;
    }
    return i;
}

void jzi_routes_set_full(jzi_routes *routes, uint32_t at, bool full)
{
    jzi_route *route = &routes->at[at];
    if (route->full != full) {
        routes->open += full ? UINT32_MAX : 1u;
        route->full = full;
    }
}

void jzi_routes_set_asked(jzi_routes *routes, uint32_t at, bool asked)
{
    jzi_route *route = &routes->at[at];
    if (route->asked != asked) {
        routes->asked += asked ? 1u : UINT32_MAX;
        route->asked = asked;
    }
}

static uint32_t after(const jzi_routes *routes, uint32_t at)
{
    return at + 1 < routes->count ? at + 1 : 0;
}

uint32_t jzi_pick_round_robin(jzi_routes *routes)
{
    if (routes->open == 0) {
        return JZI_ROUTE_NONE;
    }
    uint32_t at = routes->next;
    while (routes->at[at].full) {
        at = after(routes, at);
    }
    routes->next = after(routes, at);
    return at;
}

uint32_t jzi_pick_random(jzi_routes *routes)
{
    if (routes->open == 0) {
        return JZI_ROUTE_NONE;
    }
    uint32_t rank = jzi_random_below(&routes->random, routes->open);
    if (routes->open == routes->count) {
        return rank;
    }
    uint32_t at = 0; /* the rank-th of those that are not full */
    while (routes->at[at].full || rank > 0) {
        rank -= routes->at[at].full ? 0 : 1;
        at++;
    }
    return at;
}

uint32_t jzi_pick_least(jzi_routes *routes, jzi_depth_fn depth, void *arg)
{
    uint32_t best = JZI_ROUTE_NONE;
    uint32_t least = UINT32_MAX;
    uint32_t at = routes->next;
    for (uint32_t i = 0; i < routes->count && least > 0; i++, at = after(routes, at)) {
        if (routes->at[at].full) {
            continue;
        }
        uint32_t waiting = depth(arg, routes->at[at].id);
        if (best == JZI_ROUTE_NONE || waiting < least) {
            best = at;
            least = waiting;
        }
    }
    if (best != JZI_ROUTE_NONE) {
        routes->next = after(routes, best);
    }
    return best;
}

static uint32_t highest(const jzi_routes *routes, uint64_t key, bool full_too)
{
    uint32_t best = JZI_ROUTE_NONE;
    uint64_t top = 0;
    uint64_t spread = jzi_hash_mix(key + UINT64_C(0x9e3779b97f4a7c15));
    for (uint32_t i = 0; i < routes->count; i++) {
        const jzi_route *route = &routes->at[i];
        uint64_t score = jzi_hash_mix(spread ^ route->place);
        /* Without a branch: nothing could foresee it. */
        bool better = (bool)((full_too | !route->full) & (score >= top));
        best = better ? i : best;
        top = better ? score : top;
    }
    return best;
}

uint32_t jzi_pick_hash(const jzi_routes *routes, uint64_t key)
{
    return highest(routes, key, false);
}

uint32_t jzi_pick_owner(const jzi_routes *routes, uint64_t key)
{
    return highest(routes, key, true);
}
