/* Which worker gets a message: the workers a router knows, and the choice among them. Pure: no
 * actor, no clock; the same table, state and message give the same choice (R30). */
#ifndef JZI_ROUTER_PICK_H
#define JZI_ROUTER_PICK_H

#include <jzx/types.h>

#include <stdbool.h>

/* One worker. */
typedef struct jzi_route {
    jzx_actor_id id;
    uint64_t place;   /* where the worker stands for the hash: of its index, or of its id */
    uint64_t routed;  /* messages that the worker was given */
    uint64_t refused; /* how often the worker was found full */
    uint32_t index;   /* in a pool or list, for good; the table is in this order */
    uint32_t waiting; /* messages that wait for this one and no other */
    bool full;        /* the worker refused a message and has not told of room since */
    bool asked;       /* the worker will tell of room */
    bool kept;        /* for code that compares the table with another list */
} jzi_route;

/* Invariants:
 *   I1  `open` of the routes are not full, `asked` of them are asked.
 *   I2  next < count, or both are 0. */
typedef struct jzi_routes {
    jzi_route *at; /* owned, cap entries */
    uint32_t count;
    size_t cap;
    uint32_t open;
    uint32_t asked;
    uint32_t next;   /* whose turn it is */
    uint64_t random; /* state of the generator */
} jzi_routes;

#define JZI_ROUTE_NONE UINT32_MAX

/* Adds a worker before the position `at`. Errors: NO_MEMORY. */
jzx_err jzi_routes_insert(jzi_routes *routes, const jzx_allocator *alloc, uint32_t at,
                          const jzi_route *route);
void jzi_routes_remove(jzi_routes *routes, uint32_t at);
void jzi_routes_deinit(jzi_routes *routes, const jzx_allocator *alloc);
/* The position of a worker, or JZI_ROUTE_NONE. */
uint32_t jzi_routes_find(const jzi_routes *routes, jzx_actor_id id);
/* The lowest index that no worker has: it belongs at this position. */
uint32_t jzi_routes_gap(const jzi_routes *routes);
void jzi_routes_set_full(jzi_routes *routes, uint32_t at, bool full);
void jzi_routes_set_asked(jzi_routes *routes, uint32_t at, bool asked);

/* The choices. All of them pass over workers that are full, and give JZI_ROUTE_NONE if all are. */
uint32_t jzi_pick_round_robin(jzi_routes *routes);
uint32_t jzi_pick_random(jzi_routes *routes);
/* The one with the fewest messages, by `depth`; among equals, whose turn it is. */
typedef uint32_t (*jzi_depth_fn)(void *arg, jzx_actor_id id);
uint32_t jzi_pick_least(jzi_routes *routes, jzi_depth_fn depth, void *arg);
/* The owner of a key: the worker that scores highest for it. A worker more takes over only the keys
 * for which it scores highest; one less gives up its own; nothing moves between the others. */
uint32_t jzi_pick_hash(const jzi_routes *routes, uint64_t key);
/* The owner, full or not. JZI_ROUTE_NONE: there is no worker at all. */
uint32_t jzi_pick_owner(const jzi_routes *routes, uint64_t key);

#endif
