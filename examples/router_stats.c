/* How is the work shared? The same twelve jobs through routers of three strategies, and what each
 * of them says of its workers: who got how many, and who was found full. Run: ./router_stats */
#include <jzx/jzx.h>
#include <jzx/router.h>

#include <inttypes.h>
#include <stdio.h>

enum { JOB = 1, LOOK = 2, JOBS = 12 };

static jzx_behavior_result work(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx, (void)msg;
    return JZX_BEHAVIOR_OK;
}

static uint64_t key_of(void *arg, const jzx_message *msg)
{
    (void)arg;
    return msg->u64 % 3; /* three customers; each has one worker of its own */
}

/* Asks the router, and prints its answer, which is a message like any other. */
static jzx_behavior_result look(jzx_context *ctx, const jzx_message *msg)
{
    jzx_actor_id router = *(const jzx_actor_id *)ctx->state;
    if (msg->tag == LOOK) {
        return jzx_router_get_stats(ctx->loop, router) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                 : JZX_BEHAVIOR_FAIL;
    }
    const jzx_router_stats *stats = msg->data;
    uint64_t most = 0, sum = 0;
    for (uint32_t i = 0; i < stats->workers; i++) {
        const jzx_router_worker *worker = jzx_router_worker_at(stats, i);
        sum += worker->routed;
        most = worker->routed > most ? worker->routed : most;
    }
    printf("%s: %" PRIu64 " jobs to %" PRIu32 " workers; alike: %s\n",
           jzx_router_strategy_name(stats->strategy), sum, stats->workers,
           most * stats->workers == sum ? "yes" : "no");
    return JZX_BEHAVIOR_STOP;
}

static jzx_err try_strategy(jzx_loop *loop, uint32_t strategy)
{
    jzx_spawn_opts worker = {.behavior = work, .flags = JZX_SPAWN_STATELESS};
    jzx_router_opts opts = {.strategy = strategy, .worker = &worker, .workers = 4};
    jzx_actor_id router = JZX_NOBODY, id = JZX_NOBODY;
    opts.key = strategy == JZX_ROUTE_HASH ? key_of : NULL;
    jzx_spawn_opts looks = {.behavior = look, .state = &router};
    jzx_err err = jzx_router_spawn(loop, &opts, &router);
    for (uint64_t i = 0; i < JOBS && err == JZX_OK; i++) {
        err = jzx_send_u64(loop, router, i, JOB);
    }
    if (err != JZX_OK || (err = jzx_loop_run_until_idle(loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &looks, &id)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 0, LOOK)) != JZX_OK) {
        return err;
    }
    return jzx_loop_run_until_idle(loop);
}

int main(void)
{
    jzx_loop *loop = NULL;
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = try_strategy(loop, JZX_ROUTE_ROUND_ROBIN)) != JZX_OK ||
        (err = try_strategy(loop, JZX_ROUTE_HASH)) != JZX_OK ||
        (err = try_strategy(loop, JZX_ROUTE_BROADCAST)) != JZX_OK) {
        fprintf(stderr, "router_stats: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
