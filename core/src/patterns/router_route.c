/* Messages that come to a router, and those that wait in it. */
#include "patterns/router_priv.h"

#include <jzx/behavior.h>
#include <jzx/observe.h>
#include <jzx/timer.h>

#include "base/assert.h"

/* Messages let out of the stash at once; so many may have to be set aside again. */
enum { REPLAY_BATCH = 32, REPLAY_CHECK_MS = 1 };

static bool waits_for_owner(const jzi_router *r)
{
    const jzx_router_opts *opts = &r->plan->opts;
    return opts->strategy == JZX_ROUTE_HASH && opts->overflow == JZX_OVERFLOW_WAIT;
}

/* If all that was let out expires, no message tells. false: no memory. */
static bool arm_check(jzx_context *ctx, jzi_router *r)
{
    r->armed = r->armed || jzx_send_after(ctx->loop, ctx->self, REPLAY_CHECK_MS, NULL, 0,
                                          JZI_ROUTER_WAKE, NULL) == JZX_OK;
    return r->armed;
}

/* Full workers. */

/* A worker of ours that is killed may be back in a moment, with the same id; if not, we hear of its
 * end. Until then it is passed over, and tried again soon. */
static void suspect(jzx_context *ctx, jzi_router *r, uint32_t at)
{
    jzi_routes_set_full(&r->routes, at, true);
    jzi_routes_set_asked(&r->routes, at, false);
    r->doubt = arm_check(ctx, r);
}

bool jzi_router_refused(jzx_context *ctx, jzi_router *r, uint32_t at, jzx_err err)
{
    jzi_route *route = &r->routes.at[at];
    if (err == JZX_ERR_STOPPING && r->plan->opts.worker != NULL) {
        suspect(ctx, r, at);
        return true;
    }
    if (err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING) {
        jzi_router_forget(r, at);
        return true;
    }
    if (err != JZX_ERR_MAILBOX_FULL) {
        return false;
    }
    route->refused++;
    r->stats.skipped++;
    jzi_routes_set_full(&r->routes, at, true);
    bool told = jzx_notify_room(ctx->loop, route->id) == JZX_OK;
    jzi_routes_set_asked(&r->routes, at, told);
    return true;
}

/* Workers that were full when there was no memory to ask them to tell of room, or that were being
 * killed: tries them again, unless messages wait for them, which are first. */
static void forgive(jzi_router *r)
{
    if (jzi_likely(r->routes.count - r->routes.open == r->routes.asked)) {
        return;
    }
    for (uint32_t i = 0; i < r->routes.count; i++) {
        if (r->routes.at[i].full && !r->routes.at[i].asked && r->routes.at[i].waiting == 0) {
            jzi_routes_set_full(&r->routes, i, false);
        }
    }
}

/* Messages that wait. */

static void replay_all(jzx_context *ctx, jzi_router *r)
{
    jzi_assert(r->replay == 0);
    if (r->stashed > 0) {
        (void)jzx_unstash(ctx, JZX_UNSTASH_ALL);
        r->returned = true;
    }
    for (uint32_t i = 0; i < r->routes.count; i++) {
        r->routes.at[i].waiting = 0;
    }
    r->stashed = 0;
    r->mortal = false;
}

void jzi_router_on_check(jzx_context *ctx, jzi_router *r)
{
    r->armed = false;
    r->changed = r->changed || r->doubt;
    r->doubt = false;
    if (r->replay > 0 &&
        (jzx_mailbox_depth(ctx->loop, ctx->self) <= r->stashed || !arm_check(ctx, r))) {
        r->replay = 0;
    }
}

/* Lets some messages out if a worker may take them, or if none would tell of room. */
static void replay_some(jzx_context *ctx, jzi_router *r)
{
    bool later = r->routes.open == 0 && r->routes.asked > 0;
    if (r->replay > 0 || later) {
        return;
    }
    if (r->stashed <= REPLAY_BATCH || r->returned || (r->mortal && !arm_check(ctx, r))) {
        replay_all(ctx, r);
        return;
    }
    (void)jzx_unstash(ctx, REPLAY_BATCH);
    r->stashed -= REPLAY_BATCH;
    r->replay = REPLAY_BATCH;
    r->stuck = false;
}

void jzi_router_let_in(jzx_context *ctx, jzi_router *r)
{
    bool changed = r->changed;
    r->changed = false;
    bool nobody = r->routes.count == 0 && r->plan->opts.on_empty != JZX_EMPTY_DISCARD;
    if (jzi_likely(r->stashed == 0) || nobody) {
        return;
    }
    if (!waits_for_owner(r)) {
        replay_some(ctx, r);
    } else if (changed) {
        replay_all(ctx, r);
    }
}

void jzi_router_on_room(jzx_context *ctx, jzi_router *r, jzx_actor_id target)
{
    uint32_t at = jzi_routes_find(&r->routes, target);
    if (at == JZI_ROUTE_NONE) {
        return;
    }
    jzi_routes_set_asked(&r->routes, at, false);
    jzi_routes_set_full(&r->routes, at, false);
    if (r->routes.at[at].waiting > 0) {
        replay_all(ctx, r);
    }
}

static bool is_urgent(const jzx_message *msg)
{
    return (msg->flags & JZX_MSG_URGENT) != 0;
}

void jzi_router_release(const jzi_router *r, const jzx_message *msg)
{
    uint32_t others = JZX_MSG_VALUE | JZX_MSG_COPY | JZX_MSG_BORROWED;
    if ((msg->flags & others) == 0 && msg->data != NULL && msg->drop == NULL &&
        r->plan->opts.drop_msg != NULL) {
        r->plan->opts.drop_msg(msg);
    }
}

/* The message in hand becomes a dead letter. Without memory even for that it ends here. */
static void router_route_discard(jzx_context *ctx, jzi_router *r, const jzx_message *msg,
                                 jzx_err why)
{
    r->stats.discarded++;
    r->stats.lost += why == JZX_ERR_NO_MEMORY ? 1 : 0;
    if (jzx_discard(ctx) != JZX_OK) {
        jzi_router_release(r, msg);
    }
}

static void set_aside(jzx_context *ctx, jzi_router *r, const jzx_message *msg, uint32_t owner)
{
    jzx_err err = jzx_stash(ctx);
    if (err != JZX_OK) {
        router_route_discard(ctx, r, msg, err);
        return;
    }
    r->stashed++;
    r->mortal = r->mortal || msg->deadline_ns != 0;
    r->stats.waited++;
    if (owner != JZI_ROUTE_NONE) {
        r->routes.at[owner].waiting++;
    }
}

/* No worker can have the message now. The message waits if a worker tells when that changes. */
static void wait(jzx_context *ctx, jzi_router *r, const jzx_message *msg, uint32_t owner)
{
    if (r->routes.count == 0) {
        r->stats.no_worker++;
        if (r->plan->opts.on_empty == JZX_EMPTY_DISCARD) {
            router_route_discard(ctx, r, msg, JZX_ERR_NO_WORKERS);
        } else {
            set_aside(ctx, r, msg, JZI_ROUTE_NONE);
        }
        return;
    }
    bool told = owner == JZI_ROUTE_NONE ? r->routes.asked > 0 : r->routes.at[owner].asked;
    if (told || r->doubt) {
        set_aside(ctx, r, msg, owner);
        return;
    }
    router_route_discard(ctx, r, msg, JZX_ERR_NO_MEMORY);
}

/* Messages that come. */

static uint32_t router_route_depth_of(void *loop, jzx_actor_id id)
{
    return jzx_mailbox_depth(loop, id);
}

static uint32_t router_route_choose(jzx_context *ctx, jzi_router *r, const jzx_message *msg)
{
    const jzx_router_opts *opts = &r->plan->opts;
    switch (opts->strategy) {
    case JZX_ROUTE_RANDOM:
        return jzi_pick_random(&r->routes);
    case JZX_ROUTE_LEAST_MAILBOX:
        return jzi_pick_least(&r->routes, router_route_depth_of, ctx->loop);
    case JZX_ROUTE_HASH:
        return opts->overflow == JZX_OVERFLOW_WAIT
                   ? jzi_pick_owner(&r->routes, opts->key(opts->key_arg, msg))
                   : jzi_pick_hash(&r->routes, opts->key(opts->key_arg, msg));
    default:
        return jzi_pick_round_robin(&r->routes);
    }
}

static void count_routed(jzi_router *r, uint32_t at)
{
    r->routes.at[at].routed++;
    r->stats.routed++;
}

/* A worker that is full for others may have room for an urgent message: its owner, or any worker.
 */
static bool squeeze_in(jzx_context *ctx, jzi_router *r, uint32_t owner)
{
    for (uint32_t at = 0; at < r->routes.count; at++) {
        bool asked_for = owner == JZI_ROUTE_NONE || owner == at;
        if (asked_for && jzx_forward(ctx, r->routes.at[at].id) == JZX_OK) {
            count_routed(r, at);
            return true;
        }
    }
    return false;
}

/* One worker gets the message in hand. MAILBOX_FULL: *out_owner is the worker that the message has
 * to wait for, if that is a certain one. */
static jzx_err router_route_pass_on(jzx_context *ctx, jzi_router *r, const jzx_message *msg,
                                    uint32_t *out_owner)
{
    for (;;) { /* each round closes a worker or takes one out */
        uint32_t at = router_route_choose(ctx, r, msg);
        if (at == JZI_ROUTE_NONE || r->routes.at[at].full) {
            *out_owner = at;
            return is_urgent(msg) && squeeze_in(ctx, r, at) ? JZX_OK : JZX_ERR_MAILBOX_FULL;
        }
        jzx_err err = jzx_forward(ctx, r->routes.at[at].id);
        if (jzi_likely(err == JZX_OK)) {
            count_routed(r, at);
            return JZX_OK;
        }
        if (!jzi_router_refused(ctx, r, at, err)) {
            return err;
        }
    }
}

static jzx_err hand_out(jzx_context *ctx, jzi_router *r, const jzx_message *msg,
                        uint32_t *out_owner)
{
    switch (r->plan->opts.strategy) {
    case JZX_ROUTE_BROADCAST:
        return jzi_router_broadcast(ctx, r, msg);
    case JZX_ROUTE_GATHER_FIRST:
        return jzi_router_gather(ctx, r, msg);
    default:
        return router_route_pass_on(ctx, r, msg, out_owner);
    }
}

/* Whether a message has to wait because older ones do. */
static bool is_behind(const jzx_context *ctx, jzi_router *r, const jzx_message *msg)
{
    if (r->replay > 0 && jzx_was_stashed(ctx)) {
        r->replay--;
        return r->stuck && !is_urgent(msg);
    }
    if ((r->replay > 0 || r->returned) && !is_urgent(msg) && !jzx_was_stashed(ctx)) {
        r->replay = 0; /* the rest of them expired */
        r->returned = false;
    }
    return r->stashed > 0 && !is_urgent(msg) && !waits_for_owner(r);
}

void jzi_router_route(jzx_context *ctx, jzi_router *r, const jzx_message *msg)
{
    if (is_behind(ctx, r, msg)) {
        set_aside(ctx, r, msg, JZI_ROUTE_NONE);
        return;
    }
    forgive(r); /* not before: one that only waits must not make it look as if there were room */
    uint32_t owner = JZI_ROUTE_NONE;
    jzx_err err = hand_out(ctx, r, msg, &owner);
    if (err == JZX_ERR_MAILBOX_FULL) {
        r->stuck = true;
        wait(ctx, r, msg, owner);
    } else if (err != JZX_OK) {
        router_route_discard(ctx, r, msg, err);
    }
}
