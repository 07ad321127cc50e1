/* The loops of the jzx sides: with the default configuration, except where a side says why not and
 * when instructions are counted. */
#include "bench.h"
#include "sides.h"

#include <jzx/jzx.h>

static bool steady;

void bench_loop_set_steady(void)
{
    steady = true;
}

jzx_loop *bench_loop_open(void)
{
    return bench_loop_open_with(0, 0);
}

jzx_loop *bench_loop_open_with(uint32_t turn_budget_us, uint32_t tick_budget_us)
{
    /* Under a tool that slows everything down, turns would end by time at a different message in
     * every run; with budgets this long they end by count. */
    jzx_config config = {.turn_budget_us = steady ? 1000000 : turn_budget_us,
                         .tick_budget_us = steady ? 1000000 : tick_budget_us};
    jzx_loop *loop = NULL;
    bench_check(jzx_loop_create(&config, &loop), "create");
    return loop;
}
