/* Every call to the world of a program that uses everything fails in turn, once and for good, with
 * what is plausible for it and with less plausible errors too: the program hears a documented
 * error or an event, nothing leaks, nothing is lost (R4, R5, R27).
 *
 * not on: pinned pool1 (16 s each; pools of 2 and 4 do all that they do) */
#define _GNU_SOURCE
#include "scenario.h"

/* A sweep that visited nothing proves nothing. */
enum { CALLS_AT_LEAST = 60 };

static void sweep_everything(sc_world_kind world, int forever)
{
    sc_fault fault = {.calls = true, .call = JZX_FAULT_ANY, .forever = forever, .err = JZX_OK};
    uint64_t visited = sc_sweep(world, fault);
    CHECK(visited >= CALLS_AT_LEAST);
    printf("%" PRIu64 " calls ", visited);
}

static void no_call_is_missed_in_the_simulated_world(void)
{
    sweep_everything(SC_SIM, 0);
}
static void no_call_is_missed_on_epoll(void)
{
    sweep_everything(SC_EPOLL, 0);
}
static void a_world_that_stays_broken_does_no_harm_in_simulation(void)
{
    sweep_everything(SC_SIM, 1);
}
static void a_world_that_stays_broken_does_no_harm_on_epoll(void)
{
    sweep_everything(SC_EPOLL, 1);
}

/* Kinds of calls with the errors that their real counterparts can give. */
static const struct {
    jzx_fault_call call;
    jzx_err errs[3];
} kinds[] = {
    {JZX_FAULT_ENTROPY, {JZX_ERR_IO}},
    {JZX_FAULT_WAKE_OPEN, {JZX_ERR_NO_FDS, JZX_ERR_NO_MEMORY}},
    {JZX_FAULT_POLLER_OPEN, {JZX_ERR_NO_FDS, JZX_ERR_NO_MEMORY}},
    {JZX_FAULT_POLLER_SET, {JZX_ERR_NO_MEMORY, JZX_ERR_BAD_FD, JZX_ERR_NO_FDS}},
    {JZX_FAULT_POLLER_WAIT, {JZX_ERR_IO, JZX_ERR_NO_MEMORY}},
    {JZX_FAULT_FD_READ, {JZX_ERR_CONN_RESET, JZX_ERR_IO, JZX_ERR_AGAIN}},
    {JZX_FAULT_FD_WRITE, {JZX_ERR_CONN_RESET, JZX_ERR_CLOSED, JZX_ERR_AGAIN}},
    {JZX_FAULT_SOCK_LISTEN, {JZX_ERR_ADDRESS_IN_USE, JZX_ERR_NO_FDS, JZX_ERR_NO_ACCESS}},
    {JZX_FAULT_SOCK_ACCEPT, {JZX_ERR_NO_FDS, JZX_ERR_NO_MEMORY, JZX_ERR_CONN_RESET}},
    {JZX_FAULT_SOCK_CONNECT, {JZX_ERR_CONN_REFUSED, JZX_ERR_NO_FDS, JZX_ERR_UNREACHABLE}},
    {JZX_FAULT_SOCK_CONNECTED, {JZX_ERR_CONN_REFUSED, JZX_ERR_TIMED_OUT}},
    {JZX_FAULT_SOCK_SHUTDOWN, {JZX_ERR_CONN_RESET, JZX_ERR_CLOSED}},
    {JZX_FAULT_SOCK_ADDRESS, {JZX_ERR_IO}},
    {JZX_FAULT_SIGNAL_OPEN, {JZX_ERR_NO_FDS, JZX_ERR_NO_MEMORY}},
    {JZX_FAULT_SIGNAL_READ, {JZX_ERR_AGAIN, JZX_ERR_IO}},
    {JZX_FAULT_CHILD_OPEN, {JZX_ERR_NO_FDS, JZX_ERR_NOT_FOUND}},
    {JZX_FAULT_CHILD_READ, {JZX_ERR_AGAIN, JZX_ERR_IO, JZX_ERR_NOT_FOUND}},
    {JZX_FAULT_PATH_OPEN, {JZX_ERR_NO_FDS, JZX_ERR_NOT_FOUND, JZX_ERR_NO_ACCESS}},
    {JZX_FAULT_PATH_READ, {JZX_ERR_AGAIN, JZX_ERR_IO}},
};

static void sweep_kinds(sc_world_kind world)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (int e = 0; e < 3 && kinds[i].errs[e] != JZX_OK; e++) {
            for (int forever = 0; forever < 2; forever++) {
                sc_fault fault = {.calls = true,
                                  .call = kinds[i].call,
                                  .forever = forever,
                                  .err = kinds[i].errs[e]};
                /* The scenario makes each kind of call; sims connect at once. */
                uint64_t visited = sc_sweep(world, fault);
                if (visited == 0) {
                    fprintf(stderr, "%s: ", jzx_fault_call_name((uint32_t)kinds[i].call));
                }
                CHECK(visited > 0 || kinds[i].call == JZX_FAULT_SOCK_CONNECTED);
            }
        }
    }
}

static void each_kind_of_call_may_fail_in_its_own_ways_in_simulation(void)
{
    sweep_kinds(SC_SIM);
}
static void each_kind_of_call_may_fail_in_its_own_ways_on_epoll(void)
{
    sweep_kinds(SC_EPOLL);
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
static const jzt_test tests[] = {
    TEST(no_call_is_missed_in_the_simulated_world),
    TEST(no_call_is_missed_on_epoll),
    TEST(a_world_that_stays_broken_does_no_harm_in_simulation),
    TEST(a_world_that_stays_broken_does_no_harm_on_epoll),
    TEST(each_kind_of_call_may_fail_in_its_own_ways_in_simulation),
    TEST(each_kind_of_call_may_fail_in_its_own_ways_on_epoll),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
