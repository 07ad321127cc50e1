/* The router's own life: its workers, the messages that come and those that wait. */
#include "router_steps.h"

#include <jzx/ask.h>
#include <jzx/behavior.h>
#include <jzx/lifecycle.h>
#include <jzx/loop.h>
#include <jzx/monitor.h>
#include <jzx/observe.h>
#include <jzx/timer.h>

#include "base/alloc.h"
#include "base/assert.h"

/* Messages let out of the stash at once; so many may have to be set aside again. */
enum { REPLAY_BATCH = 32, REPLAY_CHECK_MS = 1 };

/* Tags of 0xFE03.... are orders. This one only wakes the router: for its first turn, and as a timer
 * to look whether what was let out of the stash expired on the way. */
#define TAG_ORDERS 0xFE03u
#define TAG_WAKE 0xFE030000u

static bool waits_for_owner(const jzi_router *r)
{
    const jzx_router_opts *opts = &r->plan->opts;
    return opts->strategy == JZX_ROUTE_HASH && opts->overflow == JZX_OVERFLOW_WAIT;
}

/* Workers come and go. */

static void forget_worker(jzi_router *r, uint32_t at)
{
    jzi_routes_remove(&r->routes, at);
    r->stats.left++;
    r->changed = true;
}

static jzx_err add_worker(jzi_router *r, uint32_t at, const jzi_route *route)
{
    jzx_err err = jzi_routes_insert(&r->routes, &r->plan->alloc, at, route);
    if (err == JZX_OK) {
        r->stats.joined++;
        r->changed = true;
    }
    return err;
}

static jzx_err start_worker(jzx_context *ctx, jzi_router *r)
{
    const jzx_router_opts *opts = &r->plan->opts;
    uint32_t index = jzi_routes_gap(&r->routes);
    jzi_route route = {.place = jzi_route_mix(index + 1u), .index = index};
    jzx_err err = add_worker(r, index, &route);
    if (err != JZX_OK) {
        return err;
    }
    jzx_spawn_opts worker = *opts->worker;
    if (opts->prepare != NULL) {
        opts->prepare(opts->prepare_arg, index, &worker);
        worker.flags &= ~JZX_SPAWN_QUIET;
    }
    if (worker.drain == JZX_DRAIN_REDIRECT && worker.redirect_to == JZX_NOBODY) {
        worker.redirect_to = ctx->self;
    }
    err = jzx_spawn(ctx->loop, &worker, &r->routes.at[index].id);
    if (err != JZX_OK) {
        forget_worker(r, index);
    }
    return err;
}

/* As many workers as are wanted, or as can be. */
static jzx_err resize(jzx_context *ctx, jzi_router *r)
{
    while (r->routes.count > r->wanted) {
        uint32_t last = r->routes.count - 1;
        (void)jzx_stop_drained(ctx->loop, r->routes.at[last].id);
        forget_worker(r, last);
    }
    jzx_err err = JZX_OK;
    while (r->routes.count < r->wanted && err == JZX_OK) {
        err = start_worker(ctx, r);
    }
    return err;
}

static jzx_err start_pool(jzx_context *ctx, jzi_router *r)
{
    r->wanted = r->plan->opts.workers;
    jzx_err err = jzx_set_child_policy(ctx, r->plan->opts.restart);
    return err != JZX_OK ? err : resize(ctx, r);
}

static jzx_err start_list(jzx_context *ctx, jzi_router *r)
{
    const jzx_router_opts *opts = &r->plan->opts;
    jzx_err err = JZX_OK;
    for (uint32_t i = 0; i < opts->list_count && err == JZX_OK; i++) {
        jzi_route route = {
            .id = opts->list[i], .place = jzi_route_mix(i + 1u), .index = i};
        err = add_worker(r, i, &route);
        if (err == JZX_OK) {
            err = jzx_watch(ctx->loop, route.id, 0, NULL);
        }
    }
    return err;
}

static jzx_err start(jzx_context *ctx, jzi_router *r)
{
    jzx_actor_facts facts;
    jzx_err err = jzx_actor_inspect(ctx->loop, ctx->self, &facts);
    if (err == JZX_OK) {
        err = jzx_stash_set_cap(ctx, facts.mailbox_cap);
    }
    if (err != JZX_OK) {
        return err;
    }
    uint64_t seed = r->plan->opts.seed;
    r->routes.random = seed != 0 ? seed : jzi_route_mix(ctx->self + facts.incarnation);
    r->started = true;
    return r->plan->opts.worker != NULL ? start_pool(ctx, r)
           : r->plan->opts.list != NULL ? start_list(ctx, r)
                                        : JZX_ERR_NOT_SUPPORTED;
}

/* Full workers. */

bool jzi_router_refused(jzx_context *ctx, jzi_router *r, uint32_t at, jzx_err err)
{
    jzi_route *route = &r->routes.at[at];
    if (err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING) {
        forget_worker(r, at);
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

/* Those who were full when there was no memory to ask them to tell of room: try them again. */
static void forgive(jzi_router *r)
{
    for (uint32_t i = 0; i < r->routes.count; i++) {
        if (r->routes.at[i].full && !r->routes.at[i].asked) {
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
    }
    for (uint32_t i = 0; i < r->routes.count; i++) {
        r->routes.at[i].waiting = 0;
    }
    r->stashed = 0;
    r->mortal = false;
}

/* If all that was let out expires, no message tells. false: no memory. */
static bool arm_check(jzx_context *ctx, jzi_router *r)
{
    r->armed = r->armed || jzx_send_after(ctx->loop, ctx->self, REPLAY_CHECK_MS, NULL, 0, TAG_WAKE,
                                          NULL) == JZX_OK;
    return r->armed;
}

static void on_check(jzx_context *ctx, jzi_router *r)
{
    r->armed = false;
    if (r->replay > 0 &&
        (jzx_mailbox_depth(ctx->loop, ctx->self) <= r->stashed || !arm_check(ctx, r))) {
        r->replay = 0;
    }
}

/* Lets some out if there is somebody who may take them, or nobody who would tell. */
static void replay_some(jzx_context *ctx, jzi_router *r)
{
    const jzi_routes *routes = &r->routes;
    bool nobody = routes->count == 0 ? r->plan->opts.on_empty != JZX_EMPTY_DISCARD
                                     : routes->open == 0 && routes->asked > 0;
    if (r->replay > 0 || nobody) {
        return;
    }
    if (r->stashed <= REPLAY_BATCH || (r->mortal && !arm_check(ctx, r))) {
        replay_all(ctx, r);
        return;
    }
    (void)jzx_unstash(ctx, REPLAY_BATCH);
    r->stashed -= REPLAY_BATCH;
    r->replay = REPLAY_BATCH;
    r->stuck = false;
}

/* After everything that may have made room. */
static void let_in(jzx_context *ctx, jzi_router *r)
{
    bool changed = r->changed;
    r->changed = false;
    if (jzi_likely(r->stashed == 0)) {
        return;
    }
    if (!waits_for_owner(r)) {
        replay_some(ctx, r);
    } else if (changed && r->routes.count > 0) {
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
static void discard(jzx_context *ctx, jzi_router *r, const jzx_message *msg, jzx_err why)
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
        discard(ctx, r, msg, err);
        return;
    }
    r->stashed++;
    r->mortal = r->mortal || msg->deadline_ns != 0;
    r->stats.waited++;
    if (owner != JZI_ROUTE_NONE) {
        r->routes.at[owner].waiting++;
    }
}

/* Nobody can have the message now. It waits if there is somebody to tell when that changes. */
static void wait(jzx_context *ctx, jzi_router *r, const jzx_message *msg, uint32_t owner)
{
    if (r->routes.count == 0) {
        r->stats.no_worker++;
        if (r->plan->opts.on_empty == JZX_EMPTY_DISCARD) {
            discard(ctx, r, msg, JZX_ERR_NO_WORKERS);
        } else {
            set_aside(ctx, r, msg, JZI_ROUTE_NONE);
        }
        return;
    }
    bool told = owner == JZI_ROUTE_NONE ? r->routes.asked > 0 : r->routes.at[owner].asked;
    if (told) {
        set_aside(ctx, r, msg, owner);
        return;
    }
    forgive(r);
    discard(ctx, r, msg, JZX_ERR_NO_MEMORY);
}

/* Messages that come. */

static uint32_t depth_of(void *loop, jzx_actor_id id)
{
    return jzx_mailbox_depth(loop, id);
}

static uint32_t choose(jzx_context *ctx, jzi_router *r, const jzx_message *msg)
{
    const jzx_router_opts *opts = &r->plan->opts;
    switch (opts->strategy) {
    case JZX_ROUTE_RANDOM:
        return jzi_pick_random(&r->routes);
    case JZX_ROUTE_LEAST_MAILBOX:
        return jzi_pick_least(&r->routes, depth_of, ctx->loop);
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

/* A worker that is full for others may have room for an urgent message: its owner, or anyone. */
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

/* One worker gets the message in hand. MAILBOX_FULL: *out_owner is whom it has to wait for, if that
 * is a certain one. */
static jzx_err pass_on(jzx_context *ctx, jzi_router *r, const jzx_message *msg, uint32_t *out_owner)
{
    for (;;) { /* each round closes a worker or takes one out */
        uint32_t at = choose(ctx, r, msg);
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
        return pass_on(ctx, r, msg, out_owner);
    }
}

/* Whether a message has to wait because older ones do. */
static bool is_behind(const jzx_context *ctx, jzi_router *r, const jzx_message *msg)
{
    if (r->replay > 0) {
        if (jzx_was_stashed(ctx)) {
            r->replay--;
            return r->stuck && !is_urgent(msg);
        }
        r->replay = is_urgent(msg) ? r->replay : 0; /* the rest of them expired */
    }
    return r->stashed > 0 && !is_urgent(msg) && !waits_for_owner(r);
}

static void route(jzx_context *ctx, jzi_router *r, const jzx_message *msg)
{
    if (is_behind(ctx, r, msg)) {
        set_aside(ctx, r, msg, JZI_ROUTE_NONE);
        return;
    }
    uint32_t owner = JZI_ROUTE_NONE;
    jzx_err err = hand_out(ctx, r, msg, &owner);
    if (err == JZX_ERR_MAILBOX_FULL) {
        r->stuck = true;
        wait(ctx, r, msg, owner);
    } else if (err != JZX_OK) {
        discard(ctx, r, msg, err);
    }
}

/* Orders and news. */

static void tell_stats(jzx_context *ctx, jzi_router *r, const jzx_message *msg)
{
    uint32_t count = r->routes.count;
    size_t size = sizeof(jzx_router_stats) + count * sizeof(jzx_router_worker);
    jzx_router_stats *out = jzi_alloc_zeroed(&r->plan->alloc, size);
    if (out == NULL) {
        return; /* who asked is told FORGOTTEN */
    }
    *out = r->stats;
    out->waiting = r->stashed;
    out->workers = count;
    out->wanted = r->plan->opts.worker != NULL ? r->wanted : count;
    out->full = count - r->routes.open;
    out->strategy = r->plan->opts.strategy;
    out->stats_size = sizeof(jzx_router_stats);
    out->worker_size = sizeof(jzx_router_worker);
    jzx_router_worker *worker = (jzx_router_worker *)(void *)(out + 1);
    for (uint32_t i = 0; i < count; i++) {
        const jzi_route *route = &r->routes.at[i];
        worker[i] = (jzx_router_worker){.id = route->id,
                                        .routed = route->routed,
                                        .refused = route->refused,
                                        .index = route->index,
                                        .full = route->full};
    }
    jzx_send_opts opts = {
        .data = out, .len = size, .tag = JZX_TAG_ROUTER_STATS, .flags = JZX_SEND_COPY};
    jzx_err err = JZX_OK;
    if (jzx_is_ask(ctx)) {
        err = jzx_reply_with(ctx, JZX_REQUEST_IN_HAND, &opts);
    } else if (msg->sender != JZX_NOBODY) {
        err = jzx_send_with(ctx->loop, msg->sender, &opts);
    }
    (void)err; /* nobody to tell */
    jzi_free(&r->plan->alloc, out, size);
}

static void on_order(jzx_context *ctx, jzi_router *r, const jzx_message *msg)
{
    if (msg->tag == JZX_TAG_ROUTER_STATS) {
        tell_stats(ctx, r, msg);
    } else if (msg->tag == JZX_TAG_ROUTER_RESIZE) {
        if (r->plan->opts.worker != NULL && (msg->flags & JZX_MSG_VALUE) != 0 &&
            msg->u64 <= JZX_ROUTER_WORKERS_MAX) {
            r->wanted = (uint32_t)msg->u64;
            (void)resize(ctx, r);
        }
        (void)jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, r->routes.count, JZX_TAG_ROUTER_RESIZE);
    }
}

static void on_room(jzx_context *ctx, jzi_router *r, jzx_actor_id target)
{
    uint32_t at = jzi_routes_find(&r->routes, target);
    if (at == JZI_ROUTE_NONE) {
        return;
    }
    jzi_routes_set_asked(&r->routes, at, false);
    jzi_routes_set_full(&r->routes, at, false);
    forgive(r);
    if (r->routes.at[at].waiting > 0) {
        replay_all(ctx, r);
    }
}

static void on_news(jzx_context *ctx, jzi_router *r, const jzx_message *msg)
{
    const jzx_signal *signal = jzx_message_signal(msg);
    if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_ROOM) {
        on_room(ctx, r, ((const jzx_room_notice *)msg->data)->target);
    } else if (signal != NULL && signal->kind != JZX_SIGNAL_EXIT) {
        uint32_t at = jzi_routes_find(&r->routes, signal->from);
        if (at != JZI_ROUTE_NONE) {
            forget_worker(r, at);
        }
    } else if (msg->kind == JZX_KIND_TIMER && msg->tag == TAG_WAKE) {
        on_check(ctx, r);
    } else if (msg->kind == JZX_KIND_TIMER) {
        r->stats.discarded++;
        jzi_router_release(r, msg);
    }
}

static jzx_behavior_result on_message(jzx_context *ctx, const jzx_message *msg)
{
    jzi_router *r = ctx->state;
    if (jzi_unlikely(!r->started)) {
        jzx_err err = start(ctx, r);
        if (err != JZX_OK) {
            return jzx_fail(ctx, err, "the router's workers could not be started");
        }
    }
    if (msg->kind != JZX_KIND_USER) {
        on_news(ctx, r, msg);
    } else if (msg->tag >> 16 == TAG_ORDERS) {
        on_order(ctx, r, msg);
    } else {
        route(ctx, r, msg);
    }
    let_in(ctx, r);
    if (r->routes.count == 0 && r->stats.left > 0 && r->plan->opts.on_empty == JZX_EMPTY_FAIL) {
        return jzx_fail(ctx, JZX_ERR_NO_WORKERS, "the router's last worker ended");
    }
    return JZX_BEHAVIOR_OK;
}

/* Making one. */

static jzi_router *make(const jzi_router_plan *plan)
{
    jzi_router *r = jzi_alloc_zeroed(&plan->alloc, sizeof *r);
    if (r != NULL) {
        r->plan = plan;
    }
    return r;
}

static void destroy(jzi_router *r)
{
    jzx_allocator alloc = r->plan->alloc;
    jzi_router_plan *owned = r->owned;
    jzi_router_gather_forget(r);
    jzi_routes_deinit(&r->routes, &alloc);
    jzi_free(&alloc, r, sizeof *r);
    if (owned != NULL) {
        jzi_router_plan_release(owned);
    }
}

static void on_end(jzx_context *ctx)
{
    destroy(ctx->state);
}

static jzx_behavior_result on_start(jzx_context *ctx, void *plan)
{
    jzi_router *r = make(plan);
    jzx_err err = r == NULL ? JZX_ERR_NO_MEMORY : start(ctx, r);
    if (err != JZX_OK) {
        if (r != NULL) {
            destroy(r);
        }
        return jzx_fail(ctx, err, "the router's workers could not be started");
    }
    ctx->state = r;
    return JZX_BEHAVIOR_OK;
}

/* Its first turn comes without a message from anybody else. */
static jzx_err wake(jzx_loop *loop, jzx_actor_id router)
{
    jzx_send_opts opts = {.tag = TAG_WAKE, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
    return jzx_send_with(loop, router, &opts);
}

jzx_err jzx_router_spawn_sized(jzx_loop *loop, const jzx_router_opts *opts, jzx_router_sizes sizes,
                               jzx_actor_id *out_id)
{
    jzi_router_plan *plan = NULL;
    jzx_err err = jzi_router_plan_make(loop, opts, &sizes, &plan);
    if (err != JZX_OK) {
        return err;
    }
    jzi_router *r = make(plan);
    if (r == NULL) {
        jzi_router_plan_release(plan);
        return JZX_ERR_NO_MEMORY;
    }
    r->owned = plan;
    jzx_spawn_opts spawn = {.behavior = on_message,
                            .state = r,
                            .deinit = on_end,
                            .drop_msg = plan->opts.drop_msg,
                            .name = plan->opts.name,
                            .mailbox_cap = plan->opts.mailbox_cap,
                            .low_water = plan->opts.low_water,
                            .stop_timeout_ms = plan->opts.stop_timeout_ms,
                            .flags = plan->opts.flags,
                            .dispatcher = plan->opts.dispatcher};
    jzx_actor_id id = JZX_NOBODY;
    err = jzx_spawn(loop, &spawn, &id);
    if (err != JZX_OK) {
        destroy(r);
        return err;
    }
    err = wake(loop, id);
    if (err != JZX_OK) {
        (void)jzx_kill(loop, id);
    } else if (out_id != NULL) {
        *out_id = id;
    }
    return err;
}

jzx_err jzx_router_child_sized(jzx_loop *loop, const jzx_router_opts *opts, jzx_router_sizes sizes,
                               jzx_child_spec *spec)
{
    if (spec == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_router_plan *plan = NULL;
    jzx_err err = jzi_router_plan_make(loop, opts, &sizes, &plan);
    if (err != JZX_OK) {
        return err;
    }
    spec->behavior = on_message;
    spec->init = on_start;
    spec->deinit = on_end;
    spec->arg = plan;
    spec->drop_arg = jzi_router_plan_release;
    spec->drop_msg = plan->opts.drop_msg;
    return JZX_OK;
}

jzx_err jzx_router_resize(jzx_loop *loop, jzx_actor_id router, uint32_t workers)
{
    if (workers > JZX_ROUTER_WORKERS_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    jzx_send_opts opts = {.u64 = workers,
                          .tag = JZX_TAG_ROUTER_RESIZE,
                          .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
    return jzx_send_with(loop, router, &opts);
}

jzx_err jzx_router_get_stats(jzx_loop *loop, jzx_actor_id router)
{
    jzx_send_opts opts = {.tag = JZX_TAG_ROUTER_STATS, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
    return jzx_send_with(loop, router, &opts);
}

const char *jzx_router_strategy_name(uint32_t strategy)
{
    static const char *const names[] = {"round robin", "random",    "least mailbox",
                                        "hash",        "broadcast", "gather first"};
    return strategy <= JZX_ROUTE_GATHER_FIRST ? names[strategy] : "unknown";
}
