/* Routers: actors that pass every message on to one of several workers, or to all of them.
 *
 * Senders need only the router's id. A worker sees the message as it was sent: sender, deadline,
 * ownership and the duty to answer an ask go along, so the worker answers what the router was
 * asked. The workers are a pool that the router starts, restarts and can resize; or the members of
 * a group (jzx/registry.h); or a fixed list.
 *
 *                          +--> worker 0
 *     senders --> router --+--> worker 1     a full one is passed over
 *                          +--> worker 2
 *
 * A worker that is full is passed over until it tells of room (R12). If all are, messages wait in
 * the router in their order; its own mailbox fills, and senders get MAILBOX_FULL: backpressure. A
 * router that waits costs nothing. docs/guide/patterns/router.md says more. */
#ifndef JZX_ROUTER_H
#define JZX_ROUTER_H

#include <jzx/actor.h>
#include <jzx/supervisor.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum jzx_router_strategy {
    JZX_ROUTE_ROUND_ROBIN = 0,   /* one after the other */
    JZX_ROUTE_RANDOM = 1,        /* any of them, by `seed` */
    JZX_ROUTE_LEAST_MAILBOX = 2, /* the one with the fewest messages waiting; looks at all */
    JZX_ROUTE_HASH = 3,          /* the owner of key(message); looks at all */
    JZX_ROUTE_BROADCAST = 4,     /* all of them; see below */
    JZX_ROUTE_GATHER_FIRST = 5   /* an ask goes to all of them, and the first reply counts */
} jzx_router_strategy;
/* "round robin", "random", ... Never NULL. Thread: any. */
JZX_API const char *jzx_router_strategy_name(uint32_t strategy);

/* JZX_ROUTE_HASH: what happens when the owner of a key is full. */
typedef enum jzx_router_overflow {
    JZX_OVERFLOW_WAIT = 0, /* its messages wait, in order; those of other owners go on */
    JZX_OVERFLOW_NEXT = 1  /* the next worker for this key takes over meanwhile */
} jzx_router_overflow;

/* What happens to a message when there is no worker at all. */
typedef enum jzx_router_empty {
    JZX_EMPTY_DEFAULT = 0, /* WAIT; a list, which cannot grow: FAIL */
    JZX_EMPTY_WAIT = 1,    /* it waits for the first worker */
    JZX_EMPTY_DISCARD = 2, /* it becomes a dead letter; an asker hears FORGOTTEN */
    JZX_EMPTY_FAIL = 3     /* the router fails with code NO_WORKERS as soon as the last one left */
} jzx_router_empty;

#define JZX_ROUTER_WORKERS_MAX 4096u

/* Zero is the default everywhere; one of `worker`, `group` and `list` is required. Everything is
 * copied, but for what `worker` and the void pointers point to in turn. */
typedef struct jzx_router_opts {
    uint32_t strategy; /* jzx_router_strategy */
    uint32_t on_empty; /* jzx_router_empty */

    /* A pool: `workers` children of the router, made from these options. `dispatcher` may place
     * them elsewhere. They are restarted by `restart` as transient children, with the same id; one
     * that ends for good leaves the pool. With JZX_DRAIN_REDIRECT and no redirect_to, what it had
     * not handled goes back to the router. JZX_SPAWN_QUIET is not for them. */
    const jzx_spawn_opts *worker;
    const jzx_supervisor_spec *restart; /* as jzx_set_child_policy() takes it; NULL: all defaults */
    /* Changes the options for the worker with this index (0, 1, ...; the lowest that is free), such
     * as name, state or dispatcher. Calls no jzx_ function. NULL: all are alike. */
    void (*prepare)(void *prepare_arg, uint32_t index, jzx_spawn_opts *worker);
    void *prepare_arg; /* borrowed until the router ended */
    uint32_t workers;  /* 0: 4; at most JZX_ROUTER_WORKERS_MAX */

    uint32_t list_count;      /* at most JZX_ROUTER_WORKERS_MAX */
    const jzx_actor_id *list; /* different actors; those that end leave the router */
    const char *group;        /* its members, from now on; at most JZX_NAME_MAX bytes */

    /* JZX_ROUTE_HASH, required: the key that decides which worker gets a message. Messages with the
     * same key get to the same worker, in order, while the workers are the same. Calls no jzx_
     * function. */
    uint64_t (*key)(void *key_arg, const jzx_message *msg);
    void *key_arg;     /* borrowed until the router ended */
    uint32_t overflow; /* jzx_router_overflow */
    uint32_t fanout;   /* JZX_ROUTE_GATHER_FIRST: how many are asked; 0: all */
    uint64_t seed;     /* JZX_ROUTE_RANDOM; 0: from the router's id */

    /* Releases data without `drop` that no worker gets; as in jzx_spawn_opts. */
    void (*drop_msg)(const jzx_message *msg);
    const char *name; /* these as in jzx_spawn_opts; not for jzx_router_child() */
    const char *dispatcher;
    uint32_t mailbox_cap; /* as many may wait in the router */
    uint32_t low_water;
    uint32_t stop_timeout_ms;
    uint32_t flags; /* JZX_SPAWN_* */
} jzx_router_opts;

/* Structs that grow: the sizes the caller was compiled with. */
typedef struct jzx_router_sizes {
    size_t opts;
    size_t worker;
    size_t restart;
} jzx_router_sizes;

/* Makes a router. Its parent is the running actor, else the root. Its id works at once; the workers
 * start in its first turn, and if that fails the router does. Thread: loop. Errors: as
 * jzx_router_child(), NOT_RESTARTABLE (the parent restarts its children: use jzx_router_child()
 * with a supervisor), as jzx_spawn() but NOT_RESTARTABLE and INVALID_ARG and TOO_BIG. */
JZX_API JZX_NODISCARD jzx_err jzx_router_spawn_sized(jzx_loop *loop, const jzx_router_opts *opts,
                                                     jzx_router_sizes sizes, jzx_actor_id *out_id);
static inline JZX_NODISCARD jzx_err jzx_router_spawn(jzx_loop *loop, const jzx_router_opts *opts,
                                                     jzx_actor_id *out_id)
{
    jzx_router_sizes sizes = {sizeof(jzx_router_opts), sizeof(jzx_spawn_opts),
                              sizeof(jzx_supervisor_spec)};
    return jzx_router_spawn_sized(loop, opts, sizes, out_id);
}

/* For supervisors: fills in behavior, init, deinit, arg, drop_arg and drop_msg of a spec whose id
 * and other fields are the caller's. A router that is restarted starts a new pool; what waited in
 * it is kept. arg is a copy of opts, and the caller's until a call takes the spec: a spec that is
 * not used after all is released by spec->drop_arg(spec->arg), before the loop is destroyed.
 * Thread: loop. Errors: INVALID_ARG (no workers, or two kinds of them; a strategy or choice is
 * unknown; a hash without `key`; a list with JZX_NOBODY or with an actor twice), TOO_BIG (there are
 * more than JZX_ROUTER_WORKERS_MAX workers, or a name is too long), BAD_SPEC (`restart` is not what
 * jzx_set_child_policy() takes), NOT_RESTARTABLE (a worker has neither `init` nor
 * JZX_SPAWN_STATELESS), NEWER_STRUCT, NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_router_child_sized(jzx_loop *loop, const jzx_router_opts *opts,
                                                     jzx_router_sizes sizes, jzx_child_spec *spec);
static inline JZX_NODISCARD jzx_err jzx_router_child(jzx_loop *loop, const jzx_router_opts *opts,
                                                     jzx_child_spec *spec)
{
    jzx_router_sizes sizes = {sizeof(jzx_router_opts), sizeof(jzx_spawn_opts),
                              sizeof(jzx_supervisor_spec)};
    return jzx_router_child_sized(loop, opts, sizes, spec);
}

/* Broadcast. Each worker that is not full gets the message; only if all are it waits. Values and
 * copies are copied. Data with `drop` is shared: all workers get the same msg->len bytes to read,
 * and the last one to release them drops the original. What cannot be shared becomes a dead letter:
 * data without `drop` or without a length. So does an ask, which is FORGOTTEN: ask a
 * JZX_ROUTE_GATHER_FIRST router, which shares by the same rules and takes asks only. Workers see
 * the original sender of a broadcast; of a gathered ask they see the router.
 *
 * Messages of kind TIMER cannot be passed on by any router; they are dropped and counted. */

/* Orders: messages to a router with these tags, urgent or not, as asks or not. */

/* u64: how many workers the pool should have. New ones start; those too many, from the highest
 * index down, get no more messages, handle what they have and stop (jzx_stop_drained(): within
 * their stop_timeout_ms). 0 stops all. An ask is answered, with this tag, by the number of workers
 * there are now: fewer than asked for if some could not be started; unchanged if it is no pool. */
#define JZX_TAG_ROUTER_RESIZE 0xFE030001u
/* Sends that order, urgently. Thread: loop. Errors: TOO_BIG (`workers` is above
 * JZX_ROUTER_WORKERS_MAX), as jzx_send() but RESERVED_TAG. */
JZX_API JZX_NODISCARD jzx_err jzx_router_resize(jzx_loop *loop, jzx_actor_id router,
                                                uint32_t workers);

/* What a router did. The answer to JZX_TAG_ROUTER_STATS, with the same tag: a reply to an ask, else
 * a message to the sender. `workers` entries follow; see jzx_router_worker_at(). */
#define JZX_TAG_ROUTER_STATS 0xFE030002u
typedef struct jzx_router_stats {
    uint64_t routed;      /* messages passed on; of a broadcast: copies */
    uint64_t waited;      /* messages that had to wait, each time counted */
    uint64_t skipped;     /* how often a worker was found full; of a broadcast: copies not made */
    uint64_t no_worker;   /* messages that found no worker at all */
    uint64_t discarded;   /* messages that no worker gets: not to be shared, no worker, timers */
    uint64_t lost;        /* of these, how many for want of memory */
    uint64_t joined;      /* workers that came, since the router started */
    uint64_t left;        /* and went; a restart is neither */
    uint32_t waiting;     /* messages that wait now */
    uint32_t workers;     /* now */
    uint32_t wanted;      /* a pool: asked for; else as workers */
    uint32_t full;        /* workers that are full now */
    uint32_t strategy;    /* jzx_router_strategy */
    uint32_t stats_size;  /* of this struct, in the router's version */
    uint32_t worker_size; /* of each entry behind it */
    uint32_t reserved;
} jzx_router_stats;
typedef struct jzx_router_worker {
    jzx_actor_id id;
    uint64_t routed;
    uint64_t refused; /* how often it was found full */
    uint32_t index;   /* of a pool or list; else 0 */
    uint32_t full;    /* 1: it is passed over until it tells of room */
} jzx_router_worker;
/* The entry of one worker, 0 to stats->workers - 1, in the data of such an answer. */
static inline const jzx_router_worker *jzx_router_worker_at(const jzx_router_stats *stats,
                                                            uint32_t at)
{
    const char *first = (const char *)stats + stats->stats_size;
    return (const jzx_router_worker *)(const void *)(first + (size_t)at * stats->worker_size);
}
/* Asks for it, urgently: the answer comes as a message to the running actor; outside of actors
 * there is none. Thread: loop. Errors: as jzx_send() but RESERVED_TAG. */
JZX_API JZX_NODISCARD jzx_err jzx_router_get_stats(jzx_loop *loop, jzx_actor_id router);

/* What a JZX_ROUTE_GATHER_FIRST router replies when no worker replied: the data is this struct. */
#define JZX_TAG_ROUTER_FAILED 0xFE030003u
typedef struct jzx_router_failure {
    int32_t err;      /* jzx_err of the worker that failed last */
    uint32_t outcome; /* jzx_outcome of it */
    uint32_t asked;   /* how many workers were asked */
    uint32_t reserved;
} jzx_router_failure;

#ifdef __cplusplus
}
#endif
#endif
