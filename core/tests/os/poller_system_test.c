/* Goal: the system's pollers keep the contract (R28, R29) also where threads, signals, fork and
 * other loops come in, and whatever the kernel's descriptors can be. Method: as in poller_test.c,
 * with the kernel's own means: poll(2), fcntl(2), /proc. */
/* not on: pinned pool; there is no loop in it. */
#define _GNU_SOURCE
#include "poller_bench.h"

#include "os/poller.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static const poller_fixture fixtures[] = {
    {.name = "epoll", .env = jzx_env_epoll, .pair = system_pair},
};

static void test_a_number_that_is_used_again_has_its_new_cookie_only(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    for (uint64_t cookie = 1; cookie < 200; cookie++) {
        int next[2];
        CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, cookie));
        if (cookie % 3 == 0) {
            CHECK_EQ(wait_ready(&bench, 0, cookie), 0);
        }
        put(&bench, fd[1]);
        if (cookie % 2 == 0) {
            CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, cookie), JZX_IO_READ);
        }
        CHECK_OK(set(&bench, fd[0], JZX_IO_READ, 0, 0));
        /* The same two numbers, but other files behind them. */
        pair_open(&bench, next);
        REQUIRE_EQ(dup2(next[0], fd[0]), fd[0]);
        REQUIRE_EQ(dup2(next[1], fd[1]), fd[1]);
        pair_close(&bench, next);
    }
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 1000));
    CHECK_EQ(wait_ready(&bench, 0, 1000), 0);
    put(&bench, fd[1]);
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 1000), JZX_IO_READ);
    pair_close(&bench, fd);
    bench_close(&bench);
}

static void test_a_number_closed_without_being_forgotten_starts_anew(void)
{
    poller_bench bench;
    int fd[2];
    int next[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    pair_open(&bench, next);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 1));
    CHECK_EQ(wait_ready(&bench, 0, 1), 0);
    REQUIRE_EQ(dup2(next[0], fd[0]), fd[0]);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 2));
    put(&bench, next[1]);
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 2), JZX_IO_READ);
    pair_close(&bench, fd);
    pair_close(&bench, next);
    bench_close(&bench);
}

static void test_what_is_always_ready_is_refused(void)
{
    static const char *const paths[] = {"/proc/self/exe", "/", "/dev/null"};
    poller_bench bench;
    bench_open(&bench);
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
        REQUIRE(fd >= 0);
        CHECK_EQ(set(&bench, fd, 0, JZX_IO_READ, 7), JZX_ERR_BAD_FD);
        fd_close(&bench, fd);
    }
    bench_close(&bench);
}

static void test_the_cookie_of_the_wake_descriptor_is_refused(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    CHECK_EQ(set(&bench, fd[0], 0, JZX_IO_READ, JZI_POLLER_WAKE_COOKIE), JZX_ERR_INVALID_ARG);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_WRITE, JZI_POLLER_WAKE_COOKIE - 1));
    CHECK_EQ(wait_ready(&bench, 0, JZI_POLLER_WAKE_COOKIE - 1), JZX_IO_WRITE);
    pair_close(&bench, fd);
    bench_close(&bench);
}

static void test_a_pipe_without_writer_is_a_hangup_that_can_be_read(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    REQUIRE_EQ(pipe2(fd, O_NONBLOCK | O_CLOEXEC), 0);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 7));
    CHECK_EQ(wait_ready(&bench, 0, 7), 0);
    fd_close(&bench, fd[1]);
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 7), JZX_IO_READ | JZX_IO_HANGUP);
    CHECK_OK(set(&bench, fd[0], JZX_IO_READ, 0, 0));
    fd_close(&bench, fd[0]);

    REQUIRE_EQ(pipe2(fd, O_NONBLOCK | O_CLOEXEC), 0);
    CHECK_OK(set(&bench, fd[1], 0, JZX_IO_WRITE, 8));
    fd_close(&bench, fd[0]);
    CHECK(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 8) & JZX_IO_ERROR);
    fd_close(&bench, fd[1]);
    bench_close(&bench);
}

typedef struct waker {
    poller_bench *bench;
    atomic_uint asked;
    atomic_uint stop;
} waker;

static void *waker_run(void *arg)
{
    waker *self = arg;
    unsigned done = 0;
    while (!atomic_load(&self->stop)) {
        if (atomic_load(&self->asked) != done) {
            done++;
            wake(self->bench);
        } else {
            sched_yield();
        }
    }
    return NULL;
}

static void test_a_wake_from_another_thread_ends_a_wait(void)
{
    poller_bench bench;
    pthread_t thread;
    bench_open(&bench);
    waker other = {.bench = &bench};
    REQUIRE_EQ(pthread_create(&thread, NULL, waker_run, &other), 0);
    for (int i = 0; i < 500; i++) {
        jzx_poll_event event;
        atomic_fetch_add(&other.asked, 1);
        CHECK_EQ(wait_many(&bench, JZX_TIMEOUT_INFINITE, &event, 1), 0);
    }
    atomic_store(&other.stop, 1);
    pthread_join(thread, NULL);
    bench_close(&bench);
}

/* R29: a foreign loop that sleeps on the descriptor misses nothing and does not spin. */
static void test_the_pollers_descriptor_tells_the_truth(void)
{
    poller_bench bench;
    int fd[2];
    jzx_poll_event event;
    bench_open(&bench);
    pair_open(&bench, fd);
    put(&bench, fd[1]);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 7));
    int pollable = bench.env->poller_fd(bench.env->ctx, bench.poller);
    REQUIRE(pollable >= 0);
    for (int i = 0; i < 10; i++) {
        CHECK(is_readable(pollable)); /* as long as nobody reads */
        CHECK_EQ(wait_ready(&bench, 0, 7), JZX_IO_READ);
    }
    drain(&bench, fd[0]);
    for (int i = 0; i < 2 && is_readable(pollable); i++) {
        (void)wait_many(&bench, 0, &event, 1);
    }
    CHECK(!is_readable(pollable));
    put(&bench, fd[1]);
    CHECK(is_readable(pollable));
    CHECK_OK(set(&bench, fd[0], JZX_IO_READ, 0, 0));
    CHECK_EQ(wait_many(&bench, 0, &event, 1), 0);
    CHECK(!is_readable(pollable));
    wake(&bench);
    CHECK(is_readable(pollable));
    CHECK_EQ(wait_many(&bench, 0, &event, 1), 0);
    CHECK(!is_readable(pollable));
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 8)); /* is ready, and no wait comes in between */
    CHECK(is_readable(pollable));
    pair_close(&bench, fd);
    bench_close(&bench);
}

static void test_a_wake_during_poll_makes_the_descriptor_readable(void)
{
    poller_bench bench;
    pthread_t thread;
    jzx_poll_event event;
    bench_open(&bench);
    waker other = {.bench = &bench};
    int pollable = bench.env->poller_fd(bench.env->ctx, bench.poller);
    REQUIRE_EQ(pthread_create(&thread, NULL, waker_run, &other), 0);
    for (int i = 0; i < 200; i++) {
        struct pollfd pfd = {.fd = pollable, .events = POLLIN};
        atomic_fetch_add(&other.asked, 1);
        CHECK_EQ(poll(&pfd, 1, -1), 1);
        CHECK_EQ(wait_many(&bench, 0, &event, 1), 0);
    }
    atomic_store(&other.stop, 1);
    pthread_join(thread, NULL);
    bench_close(&bench);
}

static volatile sig_atomic_t signals_handled;

static void on_signal(int signo)
{
    (void)signo;
    signals_handled++;
}

typedef struct interrupter {
    poller_bench *bench;
    pthread_t sleeper;
    pid_t sleeper_tid;
    atomic_bool returned; /* the wait is over */
    atomic_bool missed;   /* the signal came and the wait went on */
} interrupter;

/* One signal to a thread that sleeps. A thread that still or again sleeps after it has missed it.
 */
static void *interrupter_run(void *arg)
{
    enum { SURE = 200 };
    interrupter *self = arg;
    while (!is_asleep(self->sleeper_tid)) {
        sched_yield();
    }
    pthread_kill(self->sleeper, SIGUSR1);
    for (int asleep = 0; !atomic_load(&self->returned) && asleep < SURE;) {
        asleep = is_asleep(self->sleeper_tid) ? asleep + 1 : 0;
        sched_yield();
    }
    if (!atomic_load(&self->returned)) {
        atomic_store(&self->missed, true);
        wake(self->bench);
    }
    return NULL;
}

static void test_a_signal_handler_ends_a_wait(void)
{
    poller_bench bench;
    int fd[2];
    jzx_poll_event event;
    struct sigaction old;
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    uint32_t before = 0;
    bench_open(&bench);
    pair_open(&bench, fd);
    REQUIRE_EQ(sigaction(SIGUSR1, &action, &old), 0);
    for (int i = 0; i < 8; i++) {
        interrupter other = {.bench = &bench, .sleeper = pthread_self(), .sleeper_tid = gettid()};
        pthread_t thread;
        /* With something to submit in the same call and without, timed and not. */
        if (i % 4 < 2) {
            CHECK_OK(set(&bench, fd[0], before, JZX_IO_READ, 7));
            before = JZX_IO_READ;
        }
        uint64_t timeout = i % 2 == 0 ? JZX_TIMEOUT_INFINITE : UINT64_C(60000) * MS;
        signals_handled = 0;
        REQUIRE_EQ(pthread_create(&thread, NULL, interrupter_run, &other), 0);
        CHECK_EQ(wait_many(&bench, timeout, &event, 1), 0);
        atomic_store(&other.returned, true);
        pthread_join(thread, NULL);
        CHECK_EQ(signals_handled, 1);
        CHECK(!atomic_load(&other.missed));
    }
    REQUIRE_EQ(sigaction(SIGUSR1, &old, NULL), 0);
    pair_close(&bench, fd);
    bench_close(&bench);
}

typedef struct fd_set_of_process {
    bool open[4096];
} fd_set_of_process;

static void list_open_fds(fd_set_of_process *out)
{
    memset(out, 0, sizeof(*out));
    DIR *dir = opendir("/proc/self/fd");
    REQUIRE(dir != NULL);
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(dir) && fd < 4096) {
            out->open[fd] = true;
        }
    }
    closedir(dir);
}

/* R29: no descriptor survives exec, and closing gives all of them back. */
static void test_every_descriptor_is_close_on_exec_and_given_back(void)
{
    static fd_set_of_process before;
    static fd_set_of_process after;
    poller_bench bench;
    list_open_fds(&before);
    bench_open(&bench);
    list_open_fds(&after);
    int opened = 0;
    for (int fd = 0; fd < 4096; fd++) {
        if (after.open[fd] && !before.open[fd]) {
            opened++;
            CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        }
    }
    CHECK_EQ(opened, 2);
    bench_close(&bench);
    list_open_fds(&after);
    CHECK_EQ(memcmp(&before, &after, sizeof(before)), 0);
}

static void test_a_forgotten_descriptor_is_not_kept_open(void)
{
    poller_bench bench;
    int fd[2];
    char byte;
    size_t n = 1;
    bench_open(&bench);
    pair_open(&bench, fd);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 7));
    CHECK_EQ(wait_ready(&bench, 0, 7), 0);
    CHECK_OK(set(&bench, fd[0], JZX_IO_READ, 0, 0));
    fd_close(&bench, fd[0]);
    CHECK_OK(bench.env->fd_read(bench.env->ctx, fd[1], &byte, 1, &n));
    CHECK_EQ(n, 0);
    fd_close(&bench, fd[1]);

    /* A port is free again at once, also when the whole poller goes. */
    char address[128];
    int listener = -1;
    CHECK_OK(bench.env->sock_listen(bench.env->ctx, "127.0.0.1:0", 8, &listener));
    CHECK_OK(bench.env->sock_address(bench.env->ctx, listener, 0, address, sizeof(address)));
    for (int i = 0; i < 20; i++) {
        CHECK_OK(set(&bench, listener, 0, JZX_IO_READ, 8));
        CHECK_EQ(wait_ready(&bench, 0, 8), 0);
        CHECK_OK(set(&bench, listener, JZX_IO_READ, 0, 0));
        fd_close(&bench, listener);
        REQUIRE_OK(bench.env->sock_listen(bench.env->ctx, address, 8, &listener));
    }
    CHECK_OK(set(&bench, listener, 0, JZX_IO_READ, 8));
    CHECK_EQ(wait_ready(&bench, 0, 8), 0);
    bench_close(&bench);
    fd_close(&bench, listener);
    CHECK_OK(bench.env->sock_listen(bench.env->ctx, address, 8, &listener));
    fd_close(&bench, listener);
}

typedef struct mover {
    poller_bench *bench;
    uint64_t timeout_ns;
    size_t count; /* of the wait */
} mover;

static void *mover_run(void *arg)
{
    mover *self = arg;
    jzx_poll_event event;
    const jzx_env *env = self->bench->env;
    CHECK_OK(
        env->poller_wait(env->ctx, self->bench->poller, self->timeout_ns, &event, 1, &self->count));
    return NULL;
}

/* One wait on a thread that then ends. */
static size_t wait_elsewhere(poller_bench *bench, uint64_t timeout_ns)
{
    pthread_t thread;
    mover other = {.bench = bench, .timeout_ns = timeout_ns};
    REQUIRE_EQ(pthread_create(&thread, NULL, mover_run, &other), 0);
    pthread_join(thread, NULL);
    return other.count;
}

static void test_a_poller_survives_the_thread_it_was_used_on(void)
{
    enum { LONG_MS = 5000 };
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 7));
    for (int i = 0; i < 20; i++) {
        const uint64_t patience = UINT64_C(1) * LONG_MS * MS;
        CHECK_EQ(wait_elsewhere(&bench, 0), 0);
        put(&bench, fd[1]);
        CHECK_EQ(wait_ready(&bench, patience, 7), JZX_IO_READ);
        drain(&bench, fd[0]);
        (void)wait_elsewhere(&bench, 0);
        CHECK_EQ(wait_elsewhere(&bench, MS), 0);
        /* The next thread often has the identity of the one that ended. */
        put(&bench, fd[1]);
        CHECK_EQ(wait_elsewhere(&bench, patience), 1);
        drain(&bench, fd[0]);
        (void)wait_elsewhere(&bench, 0);
        wake(&bench);
        uint64_t start = now(&bench);
        CHECK_EQ(wait_elsewhere(&bench, patience), 0);
        CHECK(now(&bench) - start < patience);
    }
    pair_close(&bench, fd);
    bench_close(&bench);
}

/* R29: a forked child can drop its copy without the parent noticing. */
static void test_a_child_that_closes_its_copy_leaves_the_parents_alone(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_READ, 7));
    CHECK_EQ(wait_ready(&bench, 0, 7), 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        bench.env->poller_close(bench.env->ctx, bench.poller);
        _exit(0);
    }
    int status = -1;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    put(&bench, fd[1]);
    CHECK_EQ(wait_ready(&bench, UINT64_C(5000) * MS, 7), JZX_IO_READ);
    pair_close(&bench, fd);
    bench_close(&bench);
}

enum { WALK_PAIRS = 24 };

typedef struct walk {
    poller_bench bench;
    int fd[WALK_PAIRS][2];
    uint32_t interest[WALK_PAIRS]; /* what the model says is watched */
    uint64_t cookie[WALK_PAIRS];
    uint64_t next_cookie;
} walk;

static void walk_set(walk *self, size_t i, uint32_t interest)
{
    uint64_t cookie = ++self->next_cookie;
    CHECK_OK(set(&self->bench, self->fd[i][0], self->interest[i], interest, cookie));
    self->interest[i] = interest;
    self->cookie[i] = cookie;
}

static void walk_reopen(walk *self, size_t i)
{
    if (self->interest[i] != 0) {
        walk_set(self, i, 0);
    }
    pair_close(&self->bench, self->fd[i]);
    pair_open(&self->bench, self->fd[i]); /* most often the same numbers again */
}

/* Waits until everything that poll(2) calls ready was reported. Events are right if their cookie is
 * alive; one that is no longer ready may come once, for pollers notice before they report. */
static void walk_settle(walk *self)
{
    bool missing[WALK_PAIRS];
    struct pollfd pfd[WALK_PAIRS];
    for (size_t i = 0; i < WALK_PAIRS; i++) {
        uint32_t interest = self->interest[i];
        pfd[i] = (struct pollfd){.fd = interest != 0 ? self->fd[i][0] : -1};
        pfd[i].events = (short)(((interest & JZX_IO_READ) != 0 ? POLLIN : 0) |
                                ((interest & JZX_IO_WRITE) != 0 ? POLLOUT : 0));
    }
    REQUIRE(poll(pfd, WALK_PAIRS, 0) >= 0);
    for (size_t i = 0; i < WALK_PAIRS; i++) {
        missing[i] = pfd[i].revents != 0;
    }
    for (int turn = 0; turn < 16; turn++) {
        jzx_poll_event event[5];
        size_t count = wait_many(&self->bench, 0, event, COUNT_OF(event));
        for (size_t k = 0; k < count; k++) {
            size_t i = 0;
            while (i < WALK_PAIRS &&
                   (self->interest[i] == 0 || self->cookie[i] != event[k].cookie)) {
                i++;
            }
            REQUIRE(i < WALK_PAIRS);
            missing[i] = false;
        }
    }
    for (size_t i = 0; i < WALK_PAIRS; i++) {
        CHECK(!missing[i]);
    }
}

static void test_random_walk_agrees_with_poll(void)
{
    enum { STEPS = 20000 };
    static walk model;
    jzt_rng rng = jzt_rng_seeded();
    memset(&model, 0, sizeof(model));
    bench_open(&model.bench);
    for (size_t i = 0; i < WALK_PAIRS; i++) {
        pair_open(&model.bench, model.fd[i]);
    }
    for (int step = 0; step < STEPS && jzt_failures() == 0; step++) {
        size_t i = (size_t)jzt_rng_below(&rng, WALK_PAIRS);
        char byte = 'x';
        size_t n;
        const jzx_env *env = model.bench.env;
        switch (jzt_rng_below(&rng, 10)) {
        case 0:
        case 1:
        case 2:
            walk_set(&model, i, (uint32_t)jzt_rng_below(&rng, 4));
            break;
        case 3:
            walk_reopen(&model, i);
            break;
        case 4:
        case 5:
            (void)env->fd_write(env->ctx, model.fd[i][1], &byte, 1, &n);
            break;
        case 6:
        case 7:
            drain(&model.bench, model.fd[i][0]);
            break;
        case 8:
            wake(&model.bench);
            break;
        default:
            walk_settle(&model);
            break;
        }
    }
    for (size_t i = 0; i < WALK_PAIRS; i++) {
        pair_close(&model.bench, model.fd[i]);
    }
    bench_close(&model.bench);
}

static const jzt_test suite[] = {
    {"a_number_that_is_used_again_has_its_new_cookie_only",
     test_a_number_that_is_used_again_has_its_new_cookie_only},
    {"a_number_closed_without_being_forgotten_starts_anew",
     test_a_number_closed_without_being_forgotten_starts_anew},
    {"what_is_always_ready_is_refused", test_what_is_always_ready_is_refused},
    {"the_cookie_of_the_wake_descriptor_is_refused",
     test_the_cookie_of_the_wake_descriptor_is_refused},
    {"a_pipe_without_writer_is_a_hangup_that_can_be_read",
     test_a_pipe_without_writer_is_a_hangup_that_can_be_read},
    {"a_wake_from_another_thread_ends_a_wait", test_a_wake_from_another_thread_ends_a_wait},
    {"the_pollers_descriptor_tells_the_truth", test_the_pollers_descriptor_tells_the_truth},
    {"a_wake_during_poll_makes_the_descriptor_readable",
     test_a_wake_during_poll_makes_the_descriptor_readable},
    {"a_signal_handler_ends_a_wait", test_a_signal_handler_ends_a_wait},
    {"every_descriptor_is_close_on_exec_and_given_back",
     test_every_descriptor_is_close_on_exec_and_given_back},
    {"a_forgotten_descriptor_is_not_kept_open", test_a_forgotten_descriptor_is_not_kept_open},
    {"a_poller_survives_the_thread_it_was_used_on",
     test_a_poller_survives_the_thread_it_was_used_on},
    {"a_child_that_closes_its_copy_leaves_the_parents_alone",
     test_a_child_that_closes_its_copy_leaves_the_parents_alone},
    {"random_walk_agrees_with_poll", test_random_walk_agrees_with_poll},
};

int main(int argc, char **argv)
{
    return run_fixtures(fixtures, COUNT_OF(fixtures), suite, COUNT_OF(suite), argc, argv);
}
