/* Who is there, and who supervises whom.
 *
 *   shop             one for one
 *   |- store         rest for one: what comes later needs what comes before
 *   |  |- database   on a thread of its own, since it blocks
 *   |  |- cache
 *   |  `- audit
 *   |- payment       one for one, with backoff
 *   |  |- bank       fails, panics, crashes
 *   |  `- pay        a circuit breaker before it
 *   |- desk
 *   |  |- mailer     slow, and drops its oldest letters when it has no room
 *   |  |- clerks     a router with six clerks on a pool
 *   |  |- parcels    dynamic: one state machine per parcel
 *   |  `- shipping
 *   |- front
 *   |  |- wave       the hour of the day
 *   |  `- gate-1..4
 *   |- meter
 *   `- trouble       gremlin, looper; with --stuck: hen and egg */
#include "node.h"

#include <jzx/breaker.h>
#include <jzx/fsm.h>
#include <jzx/router.h>
#include <jzx/system.h>

#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

jzx_behavior_result node_tick_every(jzx_context *ctx, uint32_t ms)
{
    jzx_timer_opts tick = {.delay_ms = ms, .period_ms = ms, .tag = TAG_TICK};
    jzx_err err = jzx_timer_start(ctx->loop, ctx->self, &tick, NULL);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, (int32_t)err, jzx_strerror(err));
}

jzx_behavior_result node_state(jzx_context *ctx, node *n, size_t size)
{
    node **state = calloc(1, size);
    if (state == NULL) {
        return jzx_fail(ctx, (int32_t)JZX_ERR_NO_MEMORY, jzx_strerror(JZX_ERR_NO_MEMORY));
    }
    *state = n;
    ctx->state = state;
    return JZX_BEHAVIOR_OK;
}

void node_free_state(jzx_context *ctx)
{
    free(ctx->state);
    ctx->state = NULL;
}

/* A child as most are here: its id is its registered name. */
static jzx_child_spec child(node *n, const char *id, jzx_behavior_fn work,
                            jzx_behavior_result (*init)(jzx_context *ctx, void *arg))
{
    return (jzx_child_spec){.id = id,
                            .behavior = work,
                            .init = init,
                            .arg = n,
                            .deinit = node_free_state,
                            .shutdown_ms = 1000,
                            .flags = JZX_SPAWN_REGISTER};
}

static jzx_child_spec branch(const char *id, const jzx_supervisor_init *init)
{
    return (jzx_child_spec){.id = id, .supervisor = init, .shutdown_ms = JZX_SHUTDOWN_INFINITE};
}

static void name_clerk(void *arg, uint32_t index, jzx_spawn_opts *worker)
{
    static const char *const names[] = {"clerk-1", "clerk-2", "clerk-3",
                                        "clerk-4", "clerk-5", "clerk-6"};
    (void)arg;
    worker->name = names[index % COUNT(names)];
}

static jzx_err make_clerks(node *n, jzx_loop *loop, jzx_child_spec *out)
{
    jzx_spawn_opts clerk = {.behavior = clerk_work,
                            .init = clerk_init,
                            .state = n,
                            .deinit = node_free_state,
                            .mailbox_cap = 256,
                            .dispatcher = "desks"};
    jzx_supervisor_spec again = {.intensity = 20, .period_ms = 10000};
    jzx_router_opts router = {.strategy = JZX_ROUTE_LEAST_MAILBOX,
                              .worker = &clerk,
                              .restart = &again,
                              .prepare = name_clerk,
                              .workers = 6};
    *out = (jzx_child_spec){.id = "clerks", .flags = JZX_SPAWN_REGISTER};
    return jzx_router_child(loop, &router, out);
}

/* Half of the last twenty calls failed: nobody is let through for a second, then one. */
static jzx_err make_pay(jzx_loop *loop, jzx_child_spec *out)
{
    jzx_breaker_opts breaker = {
        .find = bank_find, .timeout_ms = 300, .open_ms = 1000, .open_max_ms = 4000};
    *out = (jzx_child_spec){.id = "pay", .flags = JZX_SPAWN_REGISTER};
    return jzx_breaker_child(loop, &breaker, out);
}

/* NOLINTNEXTLINE(readability-function-size): the tree as one table, top to bottom. */
static jzx_err start(node *n, jzx_loop *loop, const jzx_child_spec *clerks,
                     const jzx_child_spec *pay)
{
    jzx_child_spec store_children[] = {child(n, "database", database_work, database_init),
                                       child(n, "cache", cache_work, cache_init),
                                       child(n, "audit", audit_work, audit_init)};
    store_children[0].dispatcher = "disk";
    jzx_child_spec payment_children[] = {child(n, "bank", bank_work, bank_init), *pay};
    payment_children[0].flags |= JZX_SPAWN_CRASH_GUARD;
    jzx_child_spec parcel = {.id = "parcel",
                             .behavior = jzx_fsm_behavior,
                             .init = parcel_init,
                             .deinit = node_free_state,
                             .mode = JZX_TRANSIENT,
                             .shutdown_ms = 1000};
    jzx_child_spec desk_children[] = {
        child(n, "mailer", mailer_work, mailer_init),
        *clerks,
        {.id = "parcels", .flags = JZX_SPAWN_REGISTER, .shutdown_ms = JZX_SHUTDOWN_INFINITE},
        child(n, "shipping", shipping_work, shipping_init)};
    desk_children[0].dispatcher = "post";
    desk_children[0].mailbox_cap = 64;
    desk_children[0].full_policy = JZX_FULL_DROP_OLDEST;
    jzx_child_spec front_children[] = {
        child(n, "wave", wave_work, wave_init), child(n, "gate-1", gate_work, gate_init),
        child(n, "gate-2", gate_work, gate_init), child(n, "gate-3", gate_work, gate_init),
        child(n, "gate-4", gate_work, gate_init)};
    jzx_child_spec trouble_children[] = {child(n, "gremlin", gremlin_work, gremlin_init),
                                         child(n, "looper", looper_work, looper_init),
                                         child(n, "egg", brood, egg_init),
                                         child(n, "hen", brood, hen_init)};
    trouble_children[1].dispatcher = "attic";
    size_t troubles = n->options.stuck ? COUNT(trouble_children) : 2;

    /* The faults come on purpose: limits are wide, and backoff is short. */
    jzx_supervisor_spec calm = {.intensity = 60, .period_ms = 60000};
    jzx_supervisor_spec rest = calm, backing = calm, many = {.strategy = JZX_DYNAMIC};
    rest.strategy = JZX_REST_FOR_ONE;
    backing.backoff_min_ms = 100;
    backing.backoff_max_ms = 500;
    backing.backoff_jitter = 0.2;
    many.intensity = 60;
    many.period_ms = 10000;
    many.backoff_min_ms = 50;
    many.backoff_max_ms = 100;
    jzx_supervisor_init parcels = {
        .name = "parcels", .spec = &many, .children = &parcel, .child_count = 1};
    desk_children[2].supervisor = &parcels;
    jzx_supervisor_init store = {.name = "store",
                                 .spec = &rest,
                                 .children = store_children,
                                 .child_count = COUNT(store_children)};
    jzx_supervisor_init payment = {.name = "payment",
                                   .spec = &backing,
                                   .children = payment_children,
                                   .child_count = COUNT(payment_children)};
    jzx_supervisor_init desk = {.name = "desk",
                                .spec = &calm,
                                .children = desk_children,
                                .child_count = COUNT(desk_children)};
    jzx_supervisor_init front = {.name = "front",
                                 .spec = &calm,
                                 .children = front_children,
                                 .child_count = COUNT(front_children)};
    jzx_supervisor_init trouble = {
        .name = "trouble", .spec = &calm, .children = trouble_children, .child_count = troubles};
    jzx_child_spec branches[] = {branch("store", &store),
                                 branch("payment", &payment),
                                 branch("desk", &desk),
                                 branch("front", &front),
                                 child(n, "meter", meter_work, meter_init),
                                 branch("trouble", &trouble)};
    jzx_supervisor_init shop = {
        .name = "shop", .spec = &calm, .children = branches, .child_count = COUNT(branches)};
    char why[256];
    if (jzx_supervisor_check(&shop, why, sizeof why) != JZX_OK) {
        fprintf(stderr, "jzx-node: %s\n", why);
    }
    jzx_actor_id id;
    return jzx_spawn_supervisor(loop, &shop, &id);
}

jzx_err node_start_tree(node *n)
{
    jzx_loop *loop = jzx_system_loop(n->system);
    jzx_child_spec clerks = {0};
    jzx_child_spec pay = {0};
    jzx_err err = make_clerks(n, loop, &clerks);
    if (err == JZX_OK && (err = make_pay(loop, &pay)) == JZX_OK &&
        (err = start(n, loop, &clerks, &pay)) == JZX_OK) {
        return JZX_OK;
    }
    /* Specs that nobody took are ours. */
    if (clerks.drop_arg != NULL) {
        clerks.drop_arg(clerks.arg);
    }
    if (pay.drop_arg != NULL) {
        pay.drop_arg(pay.arg);
    }
    return err;
}
