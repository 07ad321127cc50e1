/* The loops of the jzx sides: all with the default configuration, except when instructions are
 * counted. */
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
    /* Under a tool that slows everything down, turns would end by time at a different message in
     * every run; with budgets this long they end by count. */
    jzx_config config = {.turn_budget_us = steady ? 1000000 : 0,
                         .tick_budget_us = steady ? 1000000 : 0};
    jzx_loop *loop = NULL;
    bench_check(jzx_loop_create(&config, &loop), "create");
    return loop;
}
