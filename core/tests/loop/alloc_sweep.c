/* Every allocation of a program that uses everything fails in turn, once and for good: documented
 * errors only, nothing leaks, nothing is lost, everything is released exactly once (R4, R5, R9). */
#define _GNU_SOURCE
#include "scenario.h"

/* A sweep that visited nothing proves nothing. */
enum { ALLOCATIONS_AT_LEAST = 40 };

static void sweep(sc_world_kind world, int forever)
{
    uint64_t visited = sc_sweep(world, (sc_fault){.forever = forever});
    CHECK(visited >= ALLOCATIONS_AT_LEAST);
    printf("%" PRIu64 " allocations ", visited);
}

static void no_allocation_is_missed_in_the_simulated_world(void)
{
    sweep(SC_SIM, 0);
}
static void no_allocation_is_missed_on_epoll(void)
{
    sweep(SC_EPOLL, 0);
}
static void memory_that_is_gone_for_good_does_no_harm_in_the_simulated_world(void)
{
    sweep(SC_SIM, 1);
}
static void memory_that_is_gone_for_good_does_no_harm_on_epoll(void)
{
    sweep(SC_EPOLL, 1);
}

static void the_scenario_does_what_it_is_meant_to(void)
{
    for (int world = SC_SIM; world <= SC_EPOLL; world++) {
        CHECK(!sc_once((sc_world_kind)world, &(sc_fault){.n = 0}));
        CHECK(sc.letters > 5);
        CHECK(!sc.asked);
        CHECK_EQ(sc.echoed, 2 * (SC_BIG + 10));
    }
}

static const jzt_test tests[] = {
    {"the_scenario_does_what_it_is_meant_to", the_scenario_does_what_it_is_meant_to},
    {"no_allocation_is_missed_in_the_simulated_world",
     no_allocation_is_missed_in_the_simulated_world},
    {"no_allocation_is_missed_on_epoll", no_allocation_is_missed_on_epoll},
    {"memory_that_is_gone_for_good_does_no_harm_in_the_simulated_world",
     memory_that_is_gone_for_good_does_no_harm_in_the_simulated_world},
    {"memory_that_is_gone_for_good_does_no_harm_on_epoll",
     memory_that_is_gone_for_good_does_no_harm_on_epoll},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
