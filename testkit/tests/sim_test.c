/* Goal: the simulated world keeps the contract of jzx/env.h, and its time jumps and never sleeps.
 * Method: its environment is called directly, as a loop would, without a loop. */
/* not on: pinned pool; there is no loop in it. */
#include "check.h"

#include <jzx/testkit.h>

#include <signal.h>
#include <string.h>

static const jzx_allocator *plain_allocator(void)
{
    static jzx_fault *fault;
    static jzx_allocator allocator;
    if (fault == NULL) {
        REQUIRE_OK(jzx_fault_create(NULL, &fault));
        allocator = jzx_fault_allocator(fault);
    }
    return &allocator;
}

typedef struct world {
    jzx_sim *sim;
    const jzx_env *env;
    int wake;
    void *poller;
} world;

static world world_open(const jzx_sim_opts *opts)
{
    world w = {0};
    jzx_sim_opts seeded = opts == NULL ? (jzx_sim_opts){0} : *opts;
    seeded.seed = seeded.seed == 0 ? jzt_seed() : seeded.seed;
    REQUIRE_OK(jzx_sim_create(&seeded, &w.sim));
    w.env = jzx_sim_env(w.sim);
    REQUIRE_OK(w.env->wake_open(w.env->ctx, &w.wake));
    REQUIRE_OK(w.env->poller_open(w.env->ctx, plain_allocator(), w.wake, &w.poller));
    return w;
}

static void world_close(world *w)
{
    w->env->poller_close(w->env->ctx, w->poller);
    w->env->fd_close(w->env->ctx, w->wake);
    CHECK_STR(jzx_sim_check(w->sim), NULL);
    CHECK_EQ(jzx_sim_open_fds(w->sim), 0);
    jzx_sim_destroy(w->sim);
}

static jzx_err world_watch(world *w, int fd, uint32_t interest, uint64_t cookie)
{
    return w->env->poller_set(w->env->ctx, w->poller, fd, 0, interest, cookie);
}

static void world_forget(world *w, int fd, uint32_t interest)
{
    CHECK_OK(w->env->poller_set(w->env->ctx, w->poller, fd, interest, 0, 0));
}

/* What the one event of a wait is ready for; 0 without an event. */
static uint32_t world_wait(world *w, uint64_t timeout_ns)
{
    jzx_poll_event event = {0};
    size_t count = 0;
    CHECK_OK(w->env->poller_wait(w->env->ctx, w->poller, timeout_ns, &event, 1, &count));
    return count == 0 ? 0 : event.ready;
}

static size_t world_read(world *w, int fd, void *buf, size_t len)
{
    size_t n = 0;
    return w->env->fd_read(w->env->ctx, fd, buf, len, &n) == JZX_OK ? n : 0;
}

static void test_waits_end_exactly_at_their_timeout_in_virtual_time(void)
{
    world w = world_open(NULL);
    uint64_t before = jzx_sim_now(w.sim);
    CHECK_EQ(world_wait(&w, 36000 * UINT64_C(1000000000)), 0);
    CHECK_EQ(jzx_sim_now(w.sim) - before, 36000 * UINT64_C(1000000000));
    CHECK_EQ(world_wait(&w, 0), 0);
    CHECK_EQ(jzx_sim_now(w.sim) - before, 36000 * UINT64_C(1000000000));
    world_close(&w);
}

static void test_a_wait_without_limit_in_an_idle_world_is_an_error(void)
{
    world w = world_open(NULL);
    jzx_poll_event event;
    size_t count = 7;
    CHECK_EQ(w.env->poller_wait(w.env->ctx, w.poller, JZX_TIMEOUT_INFINITE, &event, 1, &count),
             JZX_ERR_TIMED_OUT);
    CHECK_EQ(count, 7);
    world_close(&w);
}

static void test_a_wake_ends_one_wait_and_is_not_reported(void)
{
    world w = world_open(NULL);
    uint64_t before = jzx_sim_now(w.sim);
    w.env->wake_signal(w.env->ctx, w.wake);
    CHECK_EQ(world_wait(&w, 1000), 0);
    CHECK_EQ(jzx_sim_now(w.sim), before);
    CHECK_EQ(world_wait(&w, 1000), 0);
    CHECK_EQ(jzx_sim_now(w.sim), before + 1000);
    world_close(&w);
}

static void test_reading_the_clock_costs_time_unless_told_otherwise(void)
{
    world w = world_open(&(jzx_sim_opts){.cost_ns = 5});
    uint64_t first = w.env->now_ns(w.env->ctx);
    CHECK_EQ(w.env->now_ns(w.env->ctx), first + 5);
    CHECK_EQ(jzx_sim_now(w.sim), first + 5);
    world_close(&w);
    w = world_open(&(jzx_sim_opts){.cost_ns = JZX_SIM_NO_COST});
    first = w.env->now_ns(w.env->ctx);
    CHECK_EQ(w.env->now_ns(w.env->ctx), first);
    world_close(&w);
}

static void test_streams_keep_bytes_in_order_and_are_bounded(void)
{
    enum { ROOM = 65536 };
    static unsigned char out[ROOM + 100], in[ROOM];
    world w = world_open(NULL);
    int fd[2];
    size_t n = 0;
    for (size_t i = 0; i < sizeof out; i++) {
        out[i] = (unsigned char)(i * 31 + i / 256);
    }
    REQUIRE_OK(jzx_sim_pipe(w.sim, fd));
    CHECK_EQ(w.env->fd_read(w.env->ctx, fd[1], in, 1, &n), JZX_ERR_AGAIN);
    CHECK_OK(w.env->fd_write(w.env->ctx, fd[0], out, sizeof out, &n));
    CHECK_EQ(n, ROOM);
    CHECK_EQ(w.env->fd_write(w.env->ctx, fd[0], out, 1, &n), JZX_ERR_AGAIN);
    CHECK_OK(world_watch(&w, fd[0], JZX_IO_WRITE, 1));
    CHECK_EQ(world_wait(&w, 10), 0);
    CHECK_EQ(world_read(&w, fd[1], in, 1000), 1000);
    CHECK_EQ(world_wait(&w, 10), JZX_IO_WRITE);
    CHECK_EQ(world_read(&w, fd[1], in + 1000, sizeof in), ROOM - 1000);
    CHECK(memcmp(in, out, ROOM) == 0);
    world_forget(&w, fd[0], JZX_IO_WRITE);
    world_close(&w);
}

static void test_latency_delays_bytes_and_a_wait_jumps_to_their_arrival(void)
{
    world w = world_open(&(jzx_sim_opts){.latency_min_us = 300, .latency_max_us = 300});
    int fd[2];
    size_t n;
    char c;
    REQUIRE_OK(jzx_sim_pipe(w.sim, fd));
    CHECK_OK(world_watch(&w, fd[1], JZX_IO_READ, 9));
    uint64_t before = jzx_sim_now(w.sim);
    CHECK_OK(jzx_sim_write(w.sim, fd[0], "x", 1, &n));
    CHECK_EQ(jzx_sim_read(w.sim, fd[1], &c, 1, &n), JZX_ERR_AGAIN);
    CHECK_EQ(world_wait(&w, 200000), 0);
    CHECK_EQ(world_wait(&w, JZX_TIMEOUT_INFINITE), JZX_IO_READ);
    CHECK_EQ(jzx_sim_now(w.sim) - before, 300000);
    CHECK_EQ(world_read(&w, fd[1], &c, 1), 1);
    world_forget(&w, fd[1], JZX_IO_READ);
    world_close(&w);
}

static void test_varying_latency_never_reorders_a_stream(void)
{
    enum { BYTES = 500 };
    world w = world_open(&(jzx_sim_opts){.latency_min_us = 1, .latency_max_us = 900});
    int fd[2];
    size_t n;
    unsigned got = 0;
    REQUIRE_OK(jzx_sim_pipe(w.sim, fd));
    CHECK_OK(world_watch(&w, fd[1], JZX_IO_READ, 9));
    for (unsigned i = 0; i < BYTES; i++) {
        unsigned char byte = (unsigned char)i;
        CHECK_OK(jzx_sim_write(w.sim, fd[0], &byte, 1, &n));
        CHECK_EQ(n, 1);
        w.env->now_ns(w.env->ctx);
    }
    while (got < BYTES && world_wait(&w, JZX_TIMEOUT_INFINITE) == JZX_IO_READ) {
        unsigned char bytes[64];
        n = world_read(&w, fd[1], bytes, sizeof bytes);
        for (size_t i = 0; i < n; i++) {
            CHECK_EQ(bytes[i], (unsigned char)got);
            got++;
        }
    }
    CHECK_EQ(got, BYTES);
    world_forget(&w, fd[1], JZX_IO_READ);
    world_close(&w);
}

static void test_short_transfers_lose_nothing(void)
{
    enum { BYTES = 20000 };
    static unsigned char out[BYTES], in[BYTES];
    world w = world_open(&(jzx_sim_opts){.short_io_permille = 900});
    int fd[2];
    size_t sent = 0, got = 0, shorts = 0;
    for (size_t i = 0; i < BYTES; i++) {
        out[i] = (unsigned char)(i * 7);
    }
    REQUIRE_OK(jzx_sim_pipe(w.sim, fd));
    for (int step = 0; got < BYTES && step < 100000; step++) {
        size_t n = 0, ask = BYTES - sent < 100 ? BYTES - sent : 100;
        if (w.env->fd_write(w.env->ctx, fd[0], out + sent, ask, &n) == JZX_OK) {
            sent += n;
        }
        shorts += n < ask;
        got += world_read(&w, fd[1], in + got, BYTES - got);
    }
    CHECK_EQ(got, BYTES);
    CHECK(shorts > 10);
    CHECK(memcmp(in, out, BYTES) == 0);
    world_close(&w);
}

static void test_a_closed_stream_ends_after_its_bytes_and_refuses_writes(void)
{
    world w = world_open(NULL);
    int fd[2];
    size_t n = 9;
    char c;
    REQUIRE_OK(jzx_sim_pipe(w.sim, fd));
    CHECK_OK(world_watch(&w, fd[0], JZX_IO_READ, 1));
    CHECK_OK(jzx_sim_write(w.sim, fd[1], "x", 1, &n));
    jzx_sim_close(w.sim, fd[1]);
    CHECK_EQ(jzx_sim_peer(w.sim, fd[0]), -1);
    CHECK_EQ(world_wait(&w, 0), JZX_IO_READ | JZX_IO_HANGUP);
    CHECK_EQ(world_read(&w, fd[0], &c, 1), 1);
    CHECK_OK(w.env->fd_read(w.env->ctx, fd[0], &c, 1, &n));
    CHECK_EQ(n, 0);
    CHECK_EQ(w.env->fd_write(w.env->ctx, fd[0], "y", 1, &n), JZX_ERR_CONN_RESET);
    CHECK_EQ(jzx_sim_read(w.sim, fd[1], &c, 1, &n), JZX_ERR_BAD_FD);
    world_forget(&w, fd[0], JZX_IO_READ);
    world_close(&w);
}

static void test_a_half_closed_stream_still_carries_the_other_direction(void)
{
    world w = world_open(NULL);
    int fd[2];
    size_t n = 9;
    char c = 0;
    REQUIRE_OK(jzx_sim_pipe(w.sim, fd));
    CHECK_OK(w.env->sock_shutdown(w.env->ctx, fd[0]));
    CHECK_OK(jzx_sim_read(w.sim, fd[1], &c, 1, &n));
    CHECK_EQ(n, 0);
    CHECK_OK(jzx_sim_write(w.sim, fd[1], "z", 1, &n));
    CHECK_EQ(world_read(&w, fd[0], &c, 1), 1);
    CHECK_EQ(c, 'z');
    CHECK_EQ(w.env->fd_write(w.env->ctx, fd[0], "y", 1, &n), JZX_ERR_CONN_RESET);
    world_close(&w);
}

static void test_a_failure_is_reported_as_readiness_and_happens_once(void)
{
    world w = world_open(NULL);
    int fd[2];
    size_t n;
    char c;
    REQUIRE_OK(jzx_sim_pipe(w.sim, fd));
    CHECK_OK(world_watch(&w, fd[0], JZX_IO_READ, 1));
    CHECK_OK(jzx_sim_fail_fd(w.sim, fd[0], JZX_ERR_IO));
    CHECK_EQ(world_wait(&w, 10), JZX_IO_READ | JZX_IO_ERROR);
    CHECK_EQ(w.env->fd_read(w.env->ctx, fd[0], &c, 1, &n), JZX_ERR_IO);
    CHECK_EQ(w.env->fd_read(w.env->ctx, fd[0], &c, 1, &n), JZX_ERR_AGAIN);
    CHECK_EQ(jzx_sim_fail_fd(w.sim, 3, JZX_ERR_IO), JZX_ERR_BAD_FD);
    world_forget(&w, fd[0], JZX_IO_READ);
    world_close(&w);
}

static void test_forgotten_and_unknown_descriptors_are_not_reported(void)
{
    world w = world_open(NULL);
    int fd[2];
    REQUIRE_OK(jzx_sim_pipe(w.sim, fd));
    CHECK_EQ(world_watch(&w, 0, JZX_IO_READ, 1), JZX_ERR_BAD_FD);
    CHECK_OK(world_watch(&w, fd[0], JZX_IO_WRITE, 1));
    CHECK_EQ(world_wait(&w, 5), JZX_IO_WRITE);
    world_forget(&w, fd[0], JZX_IO_WRITE);
    CHECK_EQ(world_wait(&w, 5), 0);
    world_close(&w);
}

static void test_all_ready_descriptors_get_their_turn(void)
{
    enum { PIPES = 8 };
    for (uint32_t flags = 0; flags <= JZX_SIM_FIFO; flags++) {
        world w = world_open(&(jzx_sim_opts){.flags = flags});
        int fd[PIPES][2];
        unsigned seen[PIPES] = {0};
        for (unsigned i = 0; i < PIPES; i++) {
            REQUIRE_OK(jzx_sim_pipe(w.sim, fd[i]));
            CHECK_OK(world_watch(&w, fd[i][0], JZX_IO_WRITE, i));
        }
        for (unsigned round = 0; round < 100 * PIPES; round++) {
            jzx_poll_event event;
            size_t count = 0;
            CHECK_OK(w.env->poller_wait(w.env->ctx, w.poller, 0, &event, 1, &count));
            REQUIRE_EQ(count, 1);
            seen[event.cookie]++;
        }
        for (unsigned i = 0; i < PIPES; i++) {
            CHECK(seen[i] > 20);
            world_forget(&w, fd[i][0], JZX_IO_WRITE);
        }
        world_close(&w);
    }
}

static void test_misuse_of_descriptors_by_a_loop_is_told(void)
{
    world w = world_open(NULL);
    int listener;
    REQUIRE_OK(w.env->sock_listen(w.env->ctx, "unix:/a", 1, &listener));
    CHECK_EQ(jzx_sim_open_fds(w.sim), 2);
    w.env->fd_close(w.env->ctx, listener);
    CHECK_STR(jzx_sim_check(w.sim), NULL);
    w.env->fd_close(w.env->ctx, listener);
    CHECK(jzx_sim_check(w.sim) != NULL);
    w.env->poller_close(w.env->ctx, w.poller);
    jzx_sim_destroy(w.sim);
}

static void test_signals_merge_until_they_are_read(void)
{
    world w = world_open(NULL);
    int fd = -1;
    int32_t pid = 0;
    CHECK_EQ(jzx_sim_raise(w.sim, SIGTERM), JZX_ERR_NOT_FOUND);
    CHECK_EQ(w.env->signal_open(w.env->ctx, SIGKILL, &fd), JZX_ERR_INVALID_ARG);
    REQUIRE_OK(w.env->signal_open(w.env->ctx, SIGTERM, &fd));
    CHECK_OK(world_watch(&w, fd, JZX_IO_READ, 1));
    CHECK_EQ(world_wait(&w, 5), 0);
    CHECK_EQ(w.env->signal_read(w.env->ctx, fd, &pid), JZX_ERR_AGAIN);
    CHECK_OK(jzx_sim_raise(w.sim, SIGTERM));
    CHECK_OK(jzx_sim_raise(w.sim, SIGTERM));
    CHECK_EQ(world_wait(&w, 5), JZX_IO_READ);
    CHECK_OK(w.env->signal_read(w.env->ctx, fd, &pid));
    CHECK_EQ(pid, 1);
    CHECK_EQ(w.env->signal_read(w.env->ctx, fd, &pid), JZX_ERR_AGAIN);
    world_forget(&w, fd, JZX_IO_READ);
    w.env->signal_close(w.env->ctx, fd, SIGTERM);
    world_close(&w);
}

static void test_a_child_ends_once_and_is_reaped(void)
{
    world w = world_open(NULL);
    int fd = -1;
    int32_t pid = 0, code = 0, signo = 0;
    CHECK_EQ(w.env->child_open(w.env->ctx, 1, &fd), JZX_ERR_NOT_FOUND);
    REQUIRE_OK(jzx_sim_child_start(w.sim, &pid));
    REQUIRE_OK(w.env->child_open(w.env->ctx, pid, &fd));
    CHECK_EQ(w.env->child_read(w.env->ctx, fd, &code, &signo), JZX_ERR_AGAIN);
    CHECK_OK(jzx_sim_child_exit(w.sim, pid, 3, 0));
    CHECK_EQ(jzx_sim_child_exit(w.sim, pid, 4, 0), JZX_ERR_ALREADY);
    CHECK_OK(world_watch(&w, fd, JZX_IO_READ, 1));
    CHECK_EQ(world_wait(&w, 5), JZX_IO_READ);
    CHECK_OK(w.env->child_read(w.env->ctx, fd, &code, &signo));
    CHECK_EQ(code, 3);
    CHECK_EQ(jzx_sim_child_exit(w.sim, pid, 4, 0), JZX_ERR_NOT_FOUND);
    world_forget(&w, fd, JZX_IO_READ);
    w.env->fd_close(w.env->ctx, fd);
    world_close(&w);
}

static void test_path_changes_queue_and_overflow_into_lost(void)
{
    world w = world_open(NULL);
    int fd = -1;
    uint32_t changes = 0;
    char name[32];
    unsigned read = 0;
    REQUIRE_OK(w.env->path_open(w.env->ctx, "/tmp/x", JZX_PATH_CREATED, &fd));
    CHECK_EQ(jzx_sim_path_change(w.sim, "/tmp/x", JZX_PATH_REMOVED, "a"), JZX_ERR_NOT_FOUND);
    CHECK_EQ(jzx_sim_path_change(w.sim, "/tmp/y", JZX_PATH_CREATED, "a"), JZX_ERR_NOT_FOUND);
    CHECK_OK(jzx_sim_path_change(w.sim, "/tmp/x", JZX_PATH_CREATED, "a"));
    CHECK_OK(w.env->path_read(w.env->ctx, fd, &changes, name, sizeof name));
    CHECK_EQ(changes, JZX_PATH_CREATED);
    CHECK_STR(name, "a");
    CHECK_EQ(w.env->path_read(w.env->ctx, fd, &changes, name, sizeof name), JZX_ERR_AGAIN);
    for (int i = 0; i < 1000; i++) {
        CHECK_OK(jzx_sim_path_change(w.sim, "/tmp/x", JZX_PATH_CREATED, "b"));
    }
    while (w.env->path_read(w.env->ctx, fd, &changes, name, sizeof name) == JZX_OK) {
        read++;
    }
    CHECK_EQ(read, 256);
    CHECK_EQ(changes, JZX_PATH_LOST);
    w.env->fd_close(w.env->ctx, fd);
    world_close(&w);
}

static void test_entropy_is_a_function_of_the_seed(void)
{
    unsigned char bytes[3][16];
    const uint64_t seeds[3] = {42, 42, 43};
    for (int i = 0; i < 3; i++) {
        world w = world_open(&(jzx_sim_opts){.seed = seeds[i]});
        CHECK_EQ(jzx_sim_seed(w.sim), seeds[i]);
        CHECK_OK(w.env->entropy(w.env->ctx, bytes[i], sizeof bytes[i]));
        world_close(&w);
    }
    CHECK(memcmp(bytes[0], bytes[1], sizeof bytes[0]) == 0);
    CHECK(memcmp(bytes[0], bytes[2], sizeof bytes[0]) != 0);
}

static void test_bad_options_are_refused_and_change_nothing(void)
{
    jzx_sim *sim = NULL;
    CHECK_EQ(jzx_sim_create(NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_sim_create(&(jzx_sim_opts){.flags = 8}, &sim), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_sim_create(&(jzx_sim_opts){.short_io_permille = 1001}, &sim), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_sim_create(&(jzx_sim_opts){.latency_min_us = 2, .latency_max_us = 1}, &sim),
             JZX_ERR_INVALID_ARG);
    struct {
        jzx_sim_opts known;
        uint64_t unknown;
    } newer = {.unknown = 1};
    CHECK_EQ(jzx_sim_create_sized(&newer.known, sizeof newer, &sim), JZX_ERR_NEWER_STRUCT);
    newer.unknown = 0;
    CHECK(sim == NULL);
    CHECK_OK(jzx_sim_create_sized(&newer.known, sizeof newer, &sim));
    jzx_sim_destroy(sim);
    jzx_sim_destroy(NULL);
}

static const jzt_test tests[] = {
    {"waits_end_exactly_at_their_timeout_in_virtual_time",
     test_waits_end_exactly_at_their_timeout_in_virtual_time},
    {"a_wait_without_limit_in_an_idle_world_is_an_error",
     test_a_wait_without_limit_in_an_idle_world_is_an_error},
    {"a_wake_ends_one_wait_and_is_not_reported", test_a_wake_ends_one_wait_and_is_not_reported},
    {"reading_the_clock_costs_time_unless_told_otherwise",
     test_reading_the_clock_costs_time_unless_told_otherwise},
    {"streams_keep_bytes_in_order_and_are_bounded",
     test_streams_keep_bytes_in_order_and_are_bounded},
    {"latency_delays_bytes_and_a_wait_jumps_to_their_arrival",
     test_latency_delays_bytes_and_a_wait_jumps_to_their_arrival},
    {"varying_latency_never_reorders_a_stream", test_varying_latency_never_reorders_a_stream},
    {"short_transfers_lose_nothing", test_short_transfers_lose_nothing},
    {"a_closed_stream_ends_after_its_bytes_and_refuses_writes",
     test_a_closed_stream_ends_after_its_bytes_and_refuses_writes},
    {"a_half_closed_stream_still_carries_the_other_direction",
     test_a_half_closed_stream_still_carries_the_other_direction},
    {"a_failure_is_reported_as_readiness_and_happens_once",
     test_a_failure_is_reported_as_readiness_and_happens_once},
    {"forgotten_and_unknown_descriptors_are_not_reported",
     test_forgotten_and_unknown_descriptors_are_not_reported},
    {"all_ready_descriptors_get_their_turn", test_all_ready_descriptors_get_their_turn},
    {"misuse_of_descriptors_by_a_loop_is_told", test_misuse_of_descriptors_by_a_loop_is_told},
    {"signals_merge_until_they_are_read", test_signals_merge_until_they_are_read},
    {"a_child_ends_once_and_is_reaped", test_a_child_ends_once_and_is_reaped},
    {"path_changes_queue_and_overflow_into_lost", test_path_changes_queue_and_overflow_into_lost},
    {"entropy_is_a_function_of_the_seed", test_entropy_is_a_function_of_the_seed},
    {"bad_options_are_refused_and_change_nothing", test_bad_options_are_refused_and_change_nothing},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
