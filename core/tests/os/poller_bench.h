/* The bench that the poller suites run on: an environment, one of its pollers, its wake descriptor
 * and an allocator that counts. */
#ifndef JZT_POLLER_BENCH_H
#define JZT_POLLER_BENCH_H

#include "check.h"

#include <jzx/env.h>
#include <jzx/testkit.h>
#include <jzx/types.h>

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS 1000000u
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

typedef struct poller_fixture {
    const char *name;
    const jzx_env *(*env)(void);
    /* Makes two connected stream descriptors, both non-blocking; closed with env->fd_close. */
    jzx_err (*pair)(const jzx_env *env, int fd[2]);
    /* Descriptors are the kernel's: tests may use threads, signals, poll(2) and fcntl(2) on them.
     */
    bool system;
} poller_fixture;

typedef struct poller_bench {
    const poller_fixture *fixture;
    const jzx_env *env;
    jzx_allocator alloc;
    size_t allocated;    /* bytes alive */
    size_t refuse_after; /* allocations still granted; SIZE_MAX grants all */
    void *poller;
    int wake_fd;
} poller_bench;

/* The fixture whose tests run now; the runner's tests take no argument. */
static const poller_fixture *jzt_current;

static inline void *counting_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    poller_bench *bench = ctx;
    if (new_size > 0) {
        if (bench->refuse_after == 0) {
            return NULL;
        }
        bench->refuse_after -= bench->refuse_after != SIZE_MAX;
    }
    bench->allocated = bench->allocated - old_size + new_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

static inline void bench_prepare(poller_bench *bench)
{
    *bench = (poller_bench){
        .fixture = jzt_current, .env = jzt_current->env(), .refuse_after = SIZE_MAX, .wake_fd = -1};
    bench->alloc = (jzx_allocator){.realloc = counting_realloc, .ctx = bench};
    REQUIRE_OK(bench->env->wake_open(bench->env->ctx, &bench->wake_fd));
}

static inline jzx_err bench_open_poller(poller_bench *bench)
{
    const jzx_env *env = bench->env;
    return env->poller_open(env->ctx, &bench->alloc, bench->wake_fd, &bench->poller);
}

static inline void bench_open(poller_bench *bench)
{
    bench_prepare(bench);
    REQUIRE_OK(bench_open_poller(bench));
}

static inline void bench_close(poller_bench *bench)
{
    bench->env->poller_close(bench->env->ctx, bench->poller);
    bench->env->fd_close(bench->env->ctx, bench->wake_fd);
    CHECK_EQ(bench->allocated, 0);
}

static inline void pair_open(poller_bench *bench, int fd[2])
{
    REQUIRE_OK(bench->fixture->pair(bench->env, fd));
}

static inline void fd_close(poller_bench *bench, int fd)
{
    bench->env->fd_close(bench->env->ctx, fd);
}

static inline void pair_close(poller_bench *bench, const int fd[2])
{
    fd_close(bench, fd[0]);
    fd_close(bench, fd[1]);
}

static inline jzx_err set(poller_bench *bench, int fd, uint32_t before, uint32_t interest,
                          uint64_t cookie)
{
    return bench->env->poller_set(bench->env->ctx, bench->poller, fd, before, interest, cookie);
}

static inline size_t wait_many(poller_bench *bench, uint64_t timeout_ns, jzx_poll_event *out,
                               size_t cap)
{
    size_t count = SIZE_MAX;
    REQUIRE_OK(
        bench->env->poller_wait(bench->env->ctx, bench->poller, timeout_ns, out, cap, &count));
    REQUIRE(count <= cap);
    return count;
}

/* Waits for one event and returns what it says; 0 when there is none. */
static inline uint32_t wait_ready(poller_bench *bench, uint64_t timeout_ns, uint64_t cookie)
{
    jzx_poll_event event[8];
    size_t count = wait_many(bench, timeout_ns, event, COUNT_OF(event));
    if (count == 0) {
        return 0;
    }
    CHECK_EQ(count, 1);
    CHECK_EQ(event[0].cookie, cookie);
    return event[0].ready;
}

static inline void put(poller_bench *bench, int fd)
{
    size_t n = 0;
    REQUIRE_OK(bench->env->fd_write(bench->env->ctx, fd, "x", 1, &n));
    REQUIRE_EQ(n, 1);
}

static inline void drain(poller_bench *bench, int fd)
{
    char buf[4096];
    size_t n = 1;
    jzx_err err = JZX_OK;
    while (err == JZX_OK && n > 0) {
        err = bench->env->fd_read(bench->env->ctx, fd, buf, sizeof(buf), &n);
    }
}

static inline void wake(poller_bench *bench)
{
    bench->env->wake_signal(bench->env->ctx, bench->wake_fd);
}

static inline uint64_t now(poller_bench *bench)
{
    return bench->env->now_ns(bench->env->ctx);
}

/* No event and no wake: the wait must last as long as it was told to. */
static inline void check_wait_lasts(poller_bench *bench, uint64_t timeout_ns)
{
    jzx_poll_event event;
    uint64_t start = now(bench);
    CHECK_EQ(wait_many(bench, timeout_ns, &event, 1), 0);
    CHECK(now(bench) - start >= timeout_ns);
}

static inline jzx_err system_pair(const jzx_env *env, int fd[2])
{
    (void)env;
    int rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd);
    return rc == 0 ? JZX_OK : JZX_ERR_NO_FDS;
}

/* Whether a thread of this process sleeps in the kernel. */
static inline bool is_asleep(pid_t tid)
{
    char path[64];
    char text[256] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    close(fd);
    const char *end_of_name = n > 0 ? strrchr(text, ')') : NULL;
    return end_of_name != NULL && end_of_name[1] == ' ' && end_of_name[2] == 'S';
}

static inline bool is_readable(int fd)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLIN) != 0;
}

/* One simulated world for the whole program; it costs nothing to look at its clock. */
static jzx_sim *world;

static inline const jzx_env *sim_env(void)
{
    jzx_sim_opts opts = {.seed = jzt_seed(), .cost_ns = JZX_SIM_NO_COST};
    if (world == NULL && jzx_sim_create(&opts, &world) != JZX_OK) {
        return NULL;
    }
    return jzx_sim_env(world);
}

static inline jzx_err sim_pair(const jzx_env *env, int fd[2])
{
    (void)env;
    return jzx_sim_pipe(world, fd);
}

/* Runs the suite on one fixture, under names like "epoll/forgetting_is_final". Of the names on the
 * command line it passes on those that are its own. */
static inline int run_fixture(const poller_fixture *fixture, const jzt_test *suite, size_t size,
                              int argc, char **argv)
{
    enum { NAME_SIZE = 96, ARGS_MAX = 64, TESTS_MAX = 64 };
    static char names[TESTS_MAX][NAME_SIZE];
    static jzt_test tests[TESTS_MAX];
    if (size > TESTS_MAX) {
        return 2;
    }
    char *args[ARGS_MAX + 1] = {argv[0]};
    int count = 1;
    size_t prefix = strlen(fixture->name);
    for (int i = 1; i < argc && count < ARGS_MAX; i++) {
        if (strncmp(argv[i], fixture->name, prefix) == 0 && argv[i][prefix] == '/') {
            args[count++] = argv[i];
        }
    }
    if (argc > 1 && count == 1) {
        return 77;
    }
    for (size_t i = 0; i < size; i++) {
        snprintf(names[i], NAME_SIZE, "%s/%s", fixture->name, suite[i].name);
        tests[i] = (jzt_test){.name = names[i], .run = suite[i].run};
    }
    jzt_current = fixture;
    return jzt_main(count, args, tests, size);
}

/* Runs the suite on every fixture. 77 when nothing ran, else the worst result. */
static inline int run_fixtures(const poller_fixture *fixtures, size_t count, const jzt_test *suite,
                               size_t size, int argc, char **argv)
{
    int result = 77;
    for (size_t i = 0; i < count; i++) {
        int one = run_fixture(&fixtures[i], suite, size, argc, argv);
        if (one == 1 || one == 2) {
            result = one;
        } else if (one == 0 && result == 77) {
            result = 0;
        }
    }
    return result;
}

#endif
