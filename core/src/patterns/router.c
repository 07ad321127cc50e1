/* The router's own life: its workers, the messages that come and those that wait. */
#include "patterns/router_priv.h"

#include <jzx/ask.h>
#include <jzx/behavior.h>
#include <jzx/lifecycle.h>
#include <jzx/loop.h>
#include <jzx/monitor.h>
#include <jzx/observe.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

/* Tags of 0xFE03.... are orders. */
#define TAG_ORDERS 0xFE03u

/* Workers come and go. */

void jzi_router_forget(jzi_router *r, uint32_t at)
{
    jzi_routes_remove(&r->routes, at);
    r->stats.left++;
    r->changed = true;
}

jzx_err jzi_router_add(jzi_router *r, uint32_t at, const jzi_route *route)
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
    jzi_route route = {.place = jzi_hash_mix(index + 1u), .index = index};
    jzx_err err = jzi_router_add(r, index, &route);
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
        jzi_router_forget(r, index);
    }
    return err;
}

/* As many workers as are wanted, or as can be. */
static jzx_err resize(jzx_context *ctx, jzi_router *r)
{
    while (r->routes.count > r->wanted) {
        uint32_t last = r->routes.count - 1;
        (void)jzx_stop_drained(ctx->loop, r->routes.at[last].id);
        jzi_router_forget(r, last);
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
        jzi_route route = {.id = opts->list[i], .place = jzi_hash_mix(i + 1u), .index = i};
        err = jzi_router_add(r, i, &route);
        if (err == JZX_OK) {
            err = jzx_watch(ctx->loop, route.id, 0, NULL);
        }
    }
    return err;
}

static jzx_err router_start(jzx_context *ctx, jzi_router *r)
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
    r->routes.random = seed != 0 ? seed : jzi_hash_mix(ctx->self + facts.incarnation);
    r->started = true;
    return r->plan->opts.worker != NULL ? start_pool(ctx, r)
           : r->plan->opts.list != NULL ? start_list(ctx, r)
                                        : jzi_router_start_group(ctx, r);
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

static void on_news(jzx_context *ctx, jzi_router *r, const jzx_message *msg)
{
    const jzx_signal *signal = jzx_message_signal(msg);
    if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_ROOM) {
        jzi_router_on_room(ctx, r, ((const jzx_room_notice *)msg->data)->target);
    } else if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_GROUP) {
        jzi_router_read_group(ctx, r);
    } else if (signal != NULL && signal->kind != JZX_SIGNAL_EXIT) {
        uint32_t at = jzi_routes_find(&r->routes, signal->from);
        if (at != JZI_ROUTE_NONE) {
            jzi_router_forget(r, at);
        }
    } else if (msg->kind == JZX_KIND_TIMER && msg->tag == JZI_ROUTER_WAKE) {
        jzi_router_on_check(ctx, r);
    } else if (msg->kind == JZX_KIND_TIMER) {
        r->stats.discarded++;
        jzi_router_release(r, msg);
    }
}

static jzx_behavior_result on_message(jzx_context *ctx, const jzx_message *msg)
{
    jzi_router *r = ctx->state;
    if (jzi_unlikely(!r->started)) {
        jzx_err err = router_start(ctx, r);
        if (err != JZX_OK) {
            return jzx_fail(ctx, err, "the router's workers could not be started");
        }
    }
    if (jzi_unlikely(r->stale)) {
        jzi_router_read_group(ctx, r);
    }
    if (msg->kind != JZX_KIND_USER) {
        on_news(ctx, r, msg);
    } else if (msg->tag >> 16 == TAG_ORDERS) {
        on_order(ctx, r, msg);
    } else {
        jzi_router_route(ctx, r, msg);
    }
    jzi_router_let_in(ctx, r);
    if (r->routes.count == 0 && r->stats.left > 0 && r->plan->opts.on_empty == JZX_EMPTY_FAIL) {
        return jzx_fail(ctx, JZX_ERR_NO_WORKERS, "the router's last worker ended");
    }
    return JZX_BEHAVIOR_OK;
}

/* Making one. */

static jzi_router *router_make(const jzi_router_plan *plan)
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
    jzi_router_close_group(r);
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
    jzi_router *r = router_make(plan);
    jzx_err err = r == NULL ? JZX_ERR_NO_MEMORY : router_start(ctx, r);
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
    jzx_send_opts opts = {.tag = JZI_ROUTER_WAKE, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
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
    jzi_router *r = router_make(plan);
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
    jzx_send_opts opts = {
        .u64 = workers, .tag = JZX_TAG_ROUTER_RESIZE, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
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
