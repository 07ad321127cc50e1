/* What the sources of the router share. All of it stands on the public API. */
#ifndef JZI_ROUTER_STEPS_H
#define JZI_ROUTER_STEPS_H

#include <jzx/router.h>
#include <jzx/system.h>

#include "patterns/router_pick.h"

/* A router's options, checked and owned: every incarnation is made from it. */
typedef struct jzi_router_plan {
    jzx_allocator alloc;
    size_t size;          /* of all of this, with the list */
    jzx_router_opts opts; /* its pointers lead to what follows */
    jzx_spawn_opts worker;
    jzx_supervisor_spec restart;
    char name[JZX_NAME_MAX + 1];
    char dispatcher[JZX_DISPATCHER_NAME_MAX + 1];
    char group[JZX_NAME_MAX + 1];
    char worker_name[JZX_NAME_MAX + 1];
    char worker_dispatcher[JZX_DISPATCHER_NAME_MAX + 1];
    jzx_actor_id list[];
} jzi_router_plan;

jzx_err jzi_router_plan_make(jzx_loop *loop, const jzx_router_opts *opts,
                             const jzx_router_sizes *sizes, jzi_router_plan **out_plan);
void jzi_router_plan_release(void *plan);

struct jzi_gather;

/* One incarnation.
 *
 * Messages that wait are in the stash. What was let out of the stash comes first in the mailbox;
 * everything else in there is younger than everything in the stash. Two ways of letting out keep
 * that so:
 *   - all of it, at any time;
 *   - the oldest few: then nothing more until these `replay` messages came, and if one of them has
 *     to wait again so do those behind it (`stuck`). A message that never was in the stash says
 *     that the rest of them expired on the way, and so does, if nothing comes at all, a timer. To
 *     be told apart, they must not meet others that were let out before (`returned`).
 * Invariant: while messages are in the stash, replay > 0, or a worker was asked to tell of room, or
 * one is in doubt and the timer armed, or there is no worker at all. So nothing waits for ever
 * while there is room. */
typedef struct jzi_router {
    const jzi_router_plan *plan;
    jzi_router_plan *owned; /* the plan, if it goes with this incarnation */
    jzi_routes routes;
    uint32_t wanted;
    uint32_t stashed; /* messages in the stash */
    uint32_t replay;  /* messages that were let out one by one and are to come */
    bool mortal;      /* some of those in the stash, now or lately, may expire */
    bool armed;       /* the timer is */
    bool doubt;       /* a worker is ending, or being restarted: the check sees which */
    bool stuck;
    bool returned; /* the mailbox may begin with messages that all were let out at once */
    bool changed;  /* the table is another one than when the messages were set aside */
    bool started;
    jzx_router_stats stats;
    struct jzi_gather *gathers;
    jzx_actor_id *members; /* owned, of a group: room to read them */
    size_t members_cap;
    bool stale; /* there was no memory to read them all */
} jzi_router;

/* Workers come and go. add: as jzi_routes_insert(). */
jzx_err jzi_router_add(jzi_router *r, uint32_t at, const jzi_route *route);
void jzi_router_forget(jzi_router *r, uint32_t at);

/* A router over a group: from its first notice on it has the members. */
jzx_err jzi_router_start_group(jzx_context *ctx, jzi_router *r);
void jzi_router_read_group(jzx_context *ctx, jzi_router *r);
void jzi_router_close_group(jzi_router *r);

/* What becomes of the message in hand: a worker gets it, it waits, or it is a dead letter. */
void jzi_router_route(jzx_context *ctx, jzi_router *r, const jzx_message *msg);
/* After everything that may have made room: lets messages in that wait. */
void jzi_router_let_in(jzx_context *ctx, jzi_router *r);
void jzi_router_on_room(jzx_context *ctx, jzi_router *r, jzx_actor_id target);
/* Only wakes the router: for its first turn, and as a timer that looks whether what was let out of
 * the stash expired on the way. */
#define JZI_ROUTER_WAKE 0xFE030000u
void jzi_router_on_check(jzx_context *ctx, jzi_router *r);

/* After a send to the worker `at` gave this error: marks it full and asks it to tell of room, or
 * takes it out. false: neither; there is no memory. */
bool jzi_router_refused(jzx_context *ctx, jzi_router *r, uint32_t at, jzx_err err);
/* Every worker that is not full gets the message in hand. Errors: MAILBOX_FULL (all are, or there
 * is none), NOT_SUPPORTED (the message cannot be shared), NO_MEMORY; then the message stays in
 * hand. */
jzx_err jzi_router_broadcast(jzx_context *ctx, jzi_router *r, const jzx_message *msg);
/* The same for an ask, to `fanout` of them: the first reply is the asker's. */
jzx_err jzi_router_gather(jzx_context *ctx, jzi_router *r, const jzx_message *msg);
/* Forgets the asks under way; the runtime tells the askers. */
void jzi_router_gather_forget(jzi_router *r);
/* No actor gets the data in hand: releases what has no `drop`. */
void jzi_router_release(const jzi_router *r, const jzx_message *msg);

/* Data with a `drop` that several messages refer to. */
typedef struct jzi_shared jzi_shared;
/* Options for sending the message in hand to several: a value, a copy, or shared data. *out_shared
 * is NULL if it is not the latter. NOT_SUPPORTED: it cannot be shared. NO_MEMORY. */
jzx_err jzi_dispatcher_share(const jzi_router *r, const jzx_message *msg, jzx_send_opts *out_opts,
                             jzi_shared **out_shared);
/* Around every send: one reference more, and back if it was refused. NULL is fine. */
void jzi_shared_lend(jzi_shared *shared);
void jzi_shared_unlend(jzi_shared *shared);
/* All sends are done. If one succeeded the data is taken from the message in hand, and the last
 * reader drops it; else the message is as it was. */
void jzi_shared_close(jzx_context *ctx, jzi_shared *shared, bool sent);

#endif
