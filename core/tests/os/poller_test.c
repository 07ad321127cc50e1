/* Goal: every poller keeps the contract of jzx/env.h (R28), so that a loop cannot tell them apart.
 * Method: one suite over a table of environments; each test runs on a bench of its own. To put
 * another environment under the contract, add it to `fixtures`. What needs the kernel's own
 * descriptors is in poller_system_test.c. */
/* not on: pinned pool; there is no loop in it. */
#define _GNU_SOURCE
#include "poller_bench.h"

#include <sys/resource.h>

static const poller_fixture fixtures[] = {
    {.name = "epoll", .env = jzx_env_epoll, .pair = system_pair},
    {.name = "sim", .env = sim_env, .pair = sim_pair},
};

static void test_bytes_make_a_descriptor_readable(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 7));
    CHECK_EQ(wait_ready(&bench, 0, 7), 0);
    put(&bench, fd[1]);
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 7), JZX_IO_READ);
    pair_close(&bench, fd);
    bench_close(&bench);
}

static void test_room_makes_a_descriptor_writable(void)
{
    poller_bench bench;
    int fd[2];
    char block[4096] = {0};
    size_t n = 0;
    bench_open(&bench);
    pair_open(&bench, fd);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_WRITE, 7));
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 7), JZX_IO_WRITE);
    jzx_err err = JZX_OK;
    while (err == JZX_OK) {
        err = bench.env->fd_write(bench.env->ctx, fd[0], block, sizeof(block), &n);
    }
    CHECK_EQ(err, JZX_ERR_AGAIN);
    (void)wait_ready(&bench, 0, 7); /* may have been noticed before the buffer was full */
    CHECK_EQ(wait_ready(&bench, 0, 7), 0);
    drain(&bench, fd[1]);
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 7), JZX_IO_WRITE);
    pair_close(&bench, fd);
    bench_close(&bench);
}

static void test_readiness_is_reported_as_long_as_it_lasts(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    put(&bench, fd[1]);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 7));
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(wait_ready(&bench, i % 2 == 0 ? 0 : JZX_TIMEOUT_INFINITE, 7), JZX_IO_READ);
    }
    drain(&bench, fd[0]);
    CHECK_EQ(wait_ready(&bench, 0, 7), 0);
    put(&bench, fd[1]);
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 7), JZX_IO_READ);
    pair_close(&bench, fd);
    bench_close(&bench);
}

static void test_interest_and_cookie_can_change(void)
{
    poller_bench bench;
    int fd[2];
    const uint32_t both = JZX_IO_READ | JZX_IO_WRITE;
    bench_open(&bench);
    pair_open(&bench, fd);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 1));
    CHECK_EQ(wait_ready(&bench, 0, 1), 0);
    CHECK_OK(set(&bench, fd[0], JZX_IO_READ, JZX_IO_WRITE, 2));
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 2), JZX_IO_WRITE);
    put(&bench, fd[1]);
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 2), JZX_IO_WRITE);
    CHECK_OK(set(&bench, fd[0], JZX_IO_WRITE, both, 3));
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 3), both);
    CHECK_OK(set(&bench, fd[0], both, JZX_IO_READ, 4));
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 4), JZX_IO_READ);
    drain(&bench, fd[0]);
    CHECK_EQ(wait_ready(&bench, 0, 4), 0);
    pair_close(&bench, fd);
    bench_close(&bench);
}

static void test_forgetting_is_final(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    /* Forgotten before it was ever waited for, while the poller slept on it, and after a report. */
    for (int turn = 0; turn < 3; turn++) {
        CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 7));
        if (turn == 1) {
            CHECK_EQ(wait_ready(&bench, 0, 7), 0);
        }
        put(&bench, fd[1]);
        if (turn == 2) {
            CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 7), JZX_IO_READ);
        }
        CHECK_OK(set(&bench, fd[0], JZX_IO_READ, 0, 0));
        check_wait_lasts(&bench, 2 * MS);
        drain(&bench, fd[0]);
    }
    pair_close(&bench, fd);
    bench_close(&bench);
}

static void test_forgetting_leaves_nothing_that_ends_a_wait(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 7));
    CHECK_EQ(wait_ready(&bench, 0, 7), 0);
    CHECK_OK(set(&bench, fd[0], JZX_IO_READ, 0, 0));
    check_wait_lasts(&bench, 5 * MS);
    pair_close(&bench, fd);
    bench_close(&bench);
}

static void test_a_closed_descriptor_is_refused(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    fd_close(&bench, fd[0]);
    CHECK_EQ(set(&bench, fd[0], 0, JZX_IO_READ, 7), JZX_ERR_BAD_FD);
    CHECK_EQ(set(&bench, -1, 0, JZX_IO_READ, 7), JZX_ERR_BAD_FD);
    CHECK_EQ(set(&bench, 1 << 30, 0, JZX_IO_READ, 7), JZX_ERR_BAD_FD);
    CHECK_OK(set(&bench, fd[1], 0, JZX_IO_WRITE, 7));
    fd_close(&bench, fd[1]);
    CHECK_EQ(set(&bench, fd[1], JZX_IO_WRITE, JZX_IO_READ, 7), JZX_ERR_BAD_FD);
    bench_close(&bench);
}

static void test_a_closed_peer_is_a_hangup_that_can_be_read(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 7));
    CHECK_EQ(wait_ready(&bench, 0, 7), 0);
    fd_close(&bench, fd[1]);
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 7), JZX_IO_READ | JZX_IO_HANGUP);
    fd_close(&bench, fd[0]);
    bench_close(&bench);
}

static void test_half_closed_is_readable_and_no_hangup(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 7));
    CHECK_EQ(wait_ready(&bench, 0, 7), 0);
    CHECK_OK(bench.env->sock_shutdown(bench.env->ctx, fd[1]));
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 7), JZX_IO_READ);
    pair_close(&bench, fd);
    bench_close(&bench);
}

static void test_a_wait_never_ends_early(void)
{
    static const uint64_t timeouts[] = {1, 1000, 100000, 1500000, 1999999, 20000000};
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    check_wait_lasts(&bench, MS);
    pair_open(&bench, fd);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 7));
    for (size_t i = 0; i < COUNT_OF(timeouts); i++) {
        check_wait_lasts(&bench, timeouts[i]);
    }
    pair_close(&bench, fd);
    bench_close(&bench);
}

static void test_a_wake_ends_the_next_wait_and_no_other(void)
{
    poller_bench bench;
    jzx_poll_event event;
    bench_open(&bench);
    for (int i = 0; i < 20; i++) {
        wake(&bench);
        CHECK_EQ(wait_many(&bench, JZX_TIMEOUT_INFINITE, &event, 1), 0);
        check_wait_lasts(&bench, MS);
    }
    bench_close(&bench);
}

static void test_many_wakes_are_one(void)
{
    poller_bench bench;
    jzx_poll_event event;
    bench_open(&bench);
    check_wait_lasts(&bench, MS);
    for (int i = 0; i < 100; i++) {
        wake(&bench);
    }
    CHECK_EQ(wait_many(&bench, JZX_TIMEOUT_INFINITE, &event, 1), 0);
    check_wait_lasts(&bench, 2 * MS);
    bench_close(&bench);
}

static void test_a_flood_of_wakes_wears_off(void)
{
    poller_bench bench;
    jzx_poll_event event;
    bench_open(&bench);
    check_wait_lasts(&bench, MS);
    for (int i = 0; i < 10000; i++) {
        wake(&bench);
    }
    uint64_t lasted = 0;
    for (int i = 0; i < 32 && lasted < 2 * MS; i++) {
        uint64_t start = now(&bench);
        CHECK_EQ(wait_many(&bench, 2 * MS, &event, 1), 0);
        lasted = now(&bench) - start;
    }
    CHECK(lasted >= 2 * MS);
    wake(&bench);
    CHECK_EQ(wait_many(&bench, JZX_TIMEOUT_INFINITE, &event, 1), 0);
    bench_close(&bench);
}

static void test_a_wake_does_not_hide_an_event(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 7));
    CHECK_EQ(wait_ready(&bench, 0, 7), 0);
    for (int i = 0; i < 10; i++) {
        wake(&bench);
        put(&bench, fd[1]);
        jzx_poll_event event;
        size_t count = wait_many(&bench, JZX_TIMEOUT_INFINITE, &event, 1);
        if (count == 0) {
            count = wait_many(&bench, JZX_TIMEOUT_INFINITE, &event, 1);
        }
        CHECK_EQ(count, 1);
        drain(&bench, fd[0]);
        (void)wait_many(&bench, 0, &event, 1);
    }
    pair_close(&bench, fd);
    bench_close(&bench);
}

static void test_more_ready_descriptors_than_room_take_turns(void)
{
    enum { PAIRS = 40, CAP = 7, ROUNDS = 4 };
    poller_bench bench;
    int fd[PAIRS][2];
    unsigned seen[PAIRS] = {0};
    jzx_poll_event event[CAP];
    bench_open(&bench);
    for (unsigned i = 0; i < PAIRS; i++) {
        pair_open(&bench, fd[i]);
        put(&bench, fd[i][1]);
        CHECK_OK(set(&bench, fd[i][0], 0, JZX_IO_READ, i));
    }
    /* Nobody reads, so all stay ready; in the time of two rounds everybody must have had a turn. */
    for (unsigned wait = 0; wait < ROUNDS * 2 * (PAIRS / CAP + 1); wait++) {
        size_t count = wait_many(&bench, 0, event, CAP);
        CHECK_EQ(count, CAP);
        for (size_t i = 0; i < count; i++) {
            REQUIRE(event[i].cookie < PAIRS);
            seen[event[i].cookie]++;
        }
    }
    for (unsigned i = 0; i < PAIRS; i++) {
        CHECK(seen[i] >= ROUNDS);
        pair_close(&bench, fd[i]);
    }
    bench_close(&bench);
}

static void test_a_thousand_descriptors_are_each_reported(void)
{
    enum { PAIRS = 1000 };
    static int fd[PAIRS][2];
    static unsigned seen[PAIRS];
    static jzx_poll_event event[PAIRS];
    poller_bench bench;
    struct rlimit limit;
    REQUIRE_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_cur < 4096 ? 4096 : limit.rlim_cur;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        jzt_skip("The limit of open files is too low.");
    }
    bench_open(&bench);
    memset(seen, 0, sizeof(seen));
    for (unsigned i = 0; i < PAIRS; i++) {
        pair_open(&bench, fd[i]);
        CHECK_OK(set(&bench, fd[i][0], 0, JZX_IO_READ, i));
    }
    CHECK_EQ(wait_many(&bench, 0, event, PAIRS), 0);
    for (unsigned i = 0; i < PAIRS; i++) {
        put(&bench, fd[i][1]);
    }
    unsigned total = 0;
    while (total < PAIRS) {
        size_t count = wait_many(&bench, JZX_TIMEOUT_INFINITE, event, PAIRS);
        REQUIRE(count > 0);
        for (size_t i = 0; i < count; i++) {
            REQUIRE(event[i].cookie < PAIRS);
            CHECK_EQ(event[i].ready, JZX_IO_READ);
            drain(&bench, fd[event[i].cookie][0]);
            total += seen[event[i].cookie]++ == 0;
        }
    }
    CHECK_EQ(wait_many(&bench, 0, event, PAIRS), 0);
    for (unsigned i = 0; i < PAIRS; i++) {
        CHECK_EQ(seen[i], 1);
        CHECK_OK(set(&bench, fd[i][0], JZX_IO_READ, 0, 0));
        pair_close(&bench, fd[i]);
    }
    check_wait_lasts(&bench, MS);
    bench_close(&bench);
}

/* Every allocation that can fail does so once; nothing leaks and the poller works afterwards. */
static void test_refused_memory_is_an_error_and_nothing_else(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    bench.env->poller_close(bench.env->ctx, bench.poller);
    bench.refuse_after = 0;
    CHECK_EQ(bench_open_poller(&bench), JZX_ERR_NO_MEMORY);
    bench.refuse_after = SIZE_MAX;
    REQUIRE_OK(bench_open_poller(&bench));
    pair_open(&bench, fd);
    jzx_err err = JZX_ERR_NO_MEMORY;
    for (size_t granted = 0; err == JZX_ERR_NO_MEMORY; granted++) {
        REQUIRE(granted < 16);
        bench.refuse_after = granted;
        err = set(&bench, fd[0], 0, JZX_IO_WRITE, 7);
    }
    CHECK_OK(err);
    bench.refuse_after = SIZE_MAX;
    CHECK_EQ(wait_ready(&bench, 0, 7), JZX_IO_WRITE);
    pair_close(&bench, fd);
    bench_close(&bench);
}

static const jzt_test suite[] = {
    {"bytes_make_a_descriptor_readable", test_bytes_make_a_descriptor_readable},
    {"room_makes_a_descriptor_writable", test_room_makes_a_descriptor_writable},
    {"readiness_is_reported_as_long_as_it_lasts", test_readiness_is_reported_as_long_as_it_lasts},
    {"interest_and_cookie_can_change", test_interest_and_cookie_can_change},
    {"forgetting_is_final", test_forgetting_is_final},
    {"forgetting_leaves_nothing_that_ends_a_wait", test_forgetting_leaves_nothing_that_ends_a_wait},
    {"a_closed_descriptor_is_refused", test_a_closed_descriptor_is_refused},
    {"a_closed_peer_is_a_hangup_that_can_be_read", test_a_closed_peer_is_a_hangup_that_can_be_read},
    {"half_closed_is_readable_and_no_hangup", test_half_closed_is_readable_and_no_hangup},
    {"a_wait_never_ends_early", test_a_wait_never_ends_early},
    {"a_wake_ends_the_next_wait_and_no_other", test_a_wake_ends_the_next_wait_and_no_other},
    {"many_wakes_are_one", test_many_wakes_are_one},
    {"a_flood_of_wakes_wears_off", test_a_flood_of_wakes_wears_off},
    {"a_wake_does_not_hide_an_event", test_a_wake_does_not_hide_an_event},
    {"more_ready_descriptors_than_room_take_turns",
     test_more_ready_descriptors_than_room_take_turns},
    {"a_thousand_descriptors_are_each_reported", test_a_thousand_descriptors_are_each_reported},
    {"refused_memory_is_an_error_and_nothing_else",
     test_refused_memory_is_an_error_and_nothing_else},
};

int main(int argc, char **argv)
{
    return run_fixtures(fixtures, COUNT_OF(fixtures), suite, COUNT_OF(suite), argc, argv);
}
