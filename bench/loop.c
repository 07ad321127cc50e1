/* The loops of the jzx sides: with the default configuration, except where a side says why not and
 * when instructions are counted. */
#include "bench.h"
#include "sides.h"

#include <jzx/jzx.h>
#include <jzx/system.h>

static bool steady;

void bench_loop_set_steady(void)
{
    steady = true;
}

/* Under a tool that slows everything down, turns would end by time at a different message in every
 * run; with budgets this long they end by count. */
static jzx_config config_of(uint32_t turn_budget_us, uint32_t tick_budget_us)
{
    return (jzx_config){.turn_budget_us = steady ? 1000000 : turn_budget_us,
                        .tick_budget_us = steady ? 1000000 : tick_budget_us};
}

jzx_loop *bench_loop_open(void)
{
    return bench_loop_open_with(0, 0);
}

jzx_loop *bench_loop_open_with(uint32_t turn_budget_us, uint32_t tick_budget_us)
{
    jzx_config config = config_of(turn_budget_us, tick_budget_us);
    jzx_loop *loop = NULL;
    bench_check(jzx_loop_create(&config, &loop), "create");
    return loop;
}

bench_stage bench_stage_loop(void)
{
    return (bench_stage){.loop = bench_loop_open()};
}

bench_stage bench_stage_pool(void)
{
    jzx_config config = config_of(0, 0);
    bench_stage stage = {0};
    config.dispatcher = JZX_DISPATCHER_POOL;
    config.workers = 2;
    bench_check(jzx_loop_create(&config, &stage.loop), "create");
    return stage;
}

/* A pinned loop sleeps as soon as it has nothing to do unless it is told to look around first, as
 * the workers of a pool do. */
bench_stage bench_stage_pinned(void)
{
    enum { SPIN_US = 20 };
    const uint32_t cpus[2] = {0, 1 % bench_cpu_count()};
    const jzx_config config = config_of(0, 0);
    const jzx_dispatcher_spec two[2] = {{.name = "one",
                                         .kind = JZX_DISPATCHER_PINNED,
                                         .cpus = &cpus[0],
                                         .cpu_count = 1,
                                         .idle_spin_us = SPIN_US},
                                        {.name = "two",
                                         .kind = JZX_DISPATCHER_PINNED,
                                         .cpus = &cpus[1],
                                         .cpu_count = 1,
                                         .idle_spin_us = SPIN_US}};
    const jzx_system_config parts = {.loop = &config, .dispatchers = two, .dispatcher_count = 2};
    bench_stage stage = {.one = "one", .two = "two"};
    bench_check(jzx_system_create(&parts, &stage.system), "create");
    stage.loop = jzx_system_loop(stage.system);
    return stage;
}

void bench_stage_run(const bench_stage *stage)
{
    bench_check(stage->system != NULL ? jzx_system_run(stage->system) : jzx_loop_run(stage->loop),
                "run");
}

void bench_stage_end(jzx_loop *loop)
{
    jzx_system *system = jzx_loop_system(loop);
    if (system != NULL) {
        jzx_system_request_stop(system);
    } else {
        jzx_loop_request_stop(loop);
    }
}

void bench_stage_close(const bench_stage *stage)
{
    bench_check(stage->system != NULL ? jzx_system_destroy(stage->system)
                                      : jzx_loop_destroy(stage->loop),
                "destroy");
}
