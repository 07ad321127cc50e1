/* A system of several dispatchers in simulation: its threads become turns that the seed gives, so a
 * race is played again and again until it is found, and then for ever. Single loops of the same
 * world are run one by one. Build with libjzx_testkit. Run: ./sim_system_test */
#include <jzx/jzx.h>
#include <jzx/system.h>
#include <jzx/testkit.h>

#include <stdio.h>
#include <stdlib.h>

enum { ADD = 1, SEEDS = 20, WORKERS = 3 };

static void check(int holds, const char *fact)
{
    if (!holds) {
        fprintf(stderr, "failed: %s\n", fact);
        exit(1);
    }
}

/* In which order three actors of three dispatchers reach the one that counts. */
typedef struct tally {
    uint64_t order; /* a digit for each that came */
    jzx_actor_id id;
} tally;

static jzx_behavior_result count(jzx_context *ctx, const jzx_message *msg)
{
    tally *me = ctx->state;
    me->order = me->order * 10 + msg->u64;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result report(jzx_context *ctx, const jzx_message *msg)
{
    const tally *to = ctx->state;
    return jzx_send_u64(ctx->loop, to->id, msg->u64, ADD) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                    : JZX_BEHAVIOR_FAIL;
}

static uint64_t play(uint64_t seed)
{
    static const char *const places[WORKERS] = {"loop", "pool", "pinned"};
    jzx_sim *sim = NULL;
    jzx_system *system = NULL;
    tally t = {0};
    jzx_spawn_opts counts = {.behavior = count, .state = &t};
    jzx_spawn_opts reports = {.behavior = report, .state = &t};
    check(jzx_sim_create(&(jzx_sim_opts){.seed = seed}, &sim) == JZX_OK, "a world");
    jzx_config config = {.env = jzx_sim_env(sim)};
    jzx_system_config all = {.loop = &config};
    check(jzx_system_create(&all, &system) == JZX_OK, "a system without threads");
    check(jzx_system_spawn(system, &counts, &t.id) == JZX_OK, "the tally");
    for (uint64_t i = 0; i < WORKERS; i++) {
        jzx_actor_id id = JZX_NOBODY;
        reports.dispatcher = places[i];
        check(jzx_system_spawn(system, &reports, &id) == JZX_OK &&
                  jzx_send_u64(jzx_system_loop(system), id, i + 1, ADD) == JZX_OK,
              "a reporter");
    }
    check(jzx_sim_settle_system(sim, system) == JZX_OK, "all dispatchers came to rest");
    check(jzx_sim_run_system(sim, system, 1000) == JZX_OK, "and another second");
    check(jzx_testkit_check(jzx_system_loop(system)) == NULL, "nothing was lost");
    check(jzx_system_destroy(system) == JZX_OK, "the end");
    jzx_sim_destroy(sim);
    return t.order;
}

/* One loop of a world by itself: for a time, or until nothing is left to do. */
static void play_one_loop(void)
{
    jzx_sim *sim = NULL;
    jzx_loop *loop = NULL;
    tally t = {0};
    jzx_spawn_opts counts = {.behavior = count, .state = &t};
    jzx_timer_opts later = {.delay_ms = 5000, .tag = ADD, .u64 = 4, .flags = JZX_TIMER_VALUE};
    check(jzx_sim_create(&(jzx_sim_opts){.seed = 1}, &sim) == JZX_OK, "a world");
    jzx_config config = {.env = jzx_sim_env(sim)};
    check(jzx_loop_create(&config, &loop) == JZX_OK && jzx_spawn(loop, &counts, &t.id) == JZX_OK &&
              jzx_timer_start(loop, t.id, &later, NULL) == JZX_OK &&
              jzx_sim_run(sim, loop, 4999) == JZX_OK && t.order == 0,
          "nothing comes early");
    check(jzx_sim_settle(sim, loop) == JZX_OK && t.order == 4, "and then it comes");
    check(jzx_loop_destroy(loop) == JZX_OK, "the end");
    jzx_sim_destroy(sim);
}

int main(void)
{
    int orders[1000] = {0}, different = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t order = play(seed);
        check(order == play(seed), "a seed plays the same race");
        different += orders[order % 1000]++ == 0 ? 1 : 0;
    }
    play_one_loop();
    printf("three actors raced in more than one order: %s\n", different > 1 ? "yes" : "no");
    return different > 1 ? 0 : 1;
}
