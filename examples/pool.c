/* Counts primes on all CPUs. The collector runs on "loop", its helpers on "pool", as many at once
 * as there are CPUs. Nobody takes a lock: each helper has its own numbers, and results are
 * messages. They arrive in any order, so the collector keeps them by part. Run: ./pool */
#include <jzx/jzx.h>
#include <jzx/system.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PART = 1, RESULT = 2, PARTS = 8, UP_TO = 800000 };

typedef struct part {
    uint32_t number;
    uint32_t from;
    uint32_t to;
    uint32_t primes;
} part;

static uint32_t is_prime(uint32_t n)
{
    for (uint32_t i = 2; i * i <= n; i++) {
        if (n % i == 0) {
            return 0;
        }
    }
    return n > 1;
}

/* Works for milliseconds without a pause: on "loop" everybody else would wait for it. */
static jzx_behavior_result helper(jzx_context *ctx, const jzx_message *msg)
{
    part work;
    memcpy(&work, msg->data, sizeof work);
    for (uint32_t n = work.from; n < work.to; n++) {
        work.primes += is_prime(n);
    }
    jzx_err err = jzx_send_copy(ctx->loop, msg->sender, &work, sizeof work, RESULT);
    return err == JZX_OK ? JZX_BEHAVIOR_STOP : jzx_fail(ctx, err, jzx_strerror(err));
}

typedef struct tally {
    uint32_t primes[PARTS];
    uint32_t arrived;
} tally;

/* The helpers are the collector's children, wherever they run: they end before it does. */
static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    jzx_spawn_opts opts = {
        .behavior = helper, .name = "helper", .dispatcher = "pool", .flags = JZX_SPAWN_QUIET};
    ctx->state = arg;
    for (uint32_t i = 0; i < PARTS; i++) {
        part work = {.number = i, .from = UP_TO / PARTS * i, .to = UP_TO / PARTS * (i + 1)};
        jzx_actor_id id = JZX_NOBODY;
        jzx_err err;
        if ((err = jzx_spawn(ctx->loop, &opts, &id)) != JZX_OK ||
            (err = jzx_send_copy(ctx->loop, id, &work, sizeof work, PART)) != JZX_OK) {
            return jzx_fail(ctx, err, jzx_strerror(err));
        }
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result collect(jzx_context *ctx, const jzx_message *msg)
{
    tally *me = ctx->state;
    part work;
    if (msg->tag != RESULT) {
        return jzx_fail(ctx, 1, "a helper failed"); /* CHILD_FAILED */
    }
    memcpy(&work, msg->data, sizeof work);
    me->primes[work.number] = work.primes;
    return ++me->arrived == PARTS ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

int main(void)
{
    tally sum = {0};
    uint32_t primes = 0;
    jzx_system *system = NULL;
    jzx_spawn_opts opts = {.behavior = collect, .init = begin, .state = &sum, .name = "collector"};
    jzx_err err;
    if ((err = jzx_system_create(NULL, &system)) != JZX_OK ||
        (err = jzx_spawn(jzx_system_loop(system), &opts, NULL)) != JZX_OK ||
        (err = jzx_system_run(system)) != JZX_OK) {
        fprintf(stderr, "pool: %s\n", jzx_strerror(err));
    }
    jzx_system_destroy(system);
    for (uint32_t i = 0; i < PARTS; i++) {
        printf("part %" PRIu32 ": %" PRIu32 "\n", i, sum.primes[i]);
        primes += sum.primes[i];
    }
    printf("%" PRIu32 " primes below %d, from %" PRIu32 " parts\n", primes, UP_TO, sum.arrived);
    return err == JZX_OK && sum.arrived == PARTS ? 0 : 1;
}
