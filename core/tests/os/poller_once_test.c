/* Goal: JZX_IO_ONCE means the same on every poller (R28): a descriptor is reported once, is quiet
 * until it is set again, and may be set while another thread waits, which is how the workers of a
 * pool share one (R34). Method: as in poller_test.c; what needs threads runs on the system's
 * pollers only. */
/* not on: pinned pool; there is no loop in it. */
#define _GNU_SOURCE
#include "poller_bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define READ_ONCE (JZX_IO_READ | JZX_IO_ONCE)
#define WRITE_ONCE (JZX_IO_WRITE | JZX_IO_ONCE)
#define PATIENCE (UINT64_C(30000) * MS)

static const poller_fixture fixtures[] = {
    {.name = "epoll", .env = jzx_env_epoll, .pair = system_pair, .system = true},
    {.name = "sim", .env = sim_env, .pair = sim_pair},
};

static void need_system(void)
{
    if (!jzt_current->system) {
        jzt_skip("A simulated world has one thread.");
    }
}

/* Nothing is reported for so long. A wait may end early, but not again and again. */
static void check_quiet(poller_bench *bench, uint64_t for_ns)
{
    enum { EARLY_MAX = 8 };
    jzx_poll_event event;
    uint64_t end = now(bench) + for_ns;
    int waits = 0;
    for (uint64_t at = now(bench); at < end; at = now(bench)) {
        CHECK_EQ(wait_many(bench, end - at, &event, 1), 0);
        waits++;
    }
    CHECK(waits <= EARLY_MAX);
}

static void test_a_descriptor_is_reported_once(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    CHECK_OK(set(&bench, fd[0], 0, READ_ONCE, 7));
    CHECK_EQ(wait_ready(&bench, 0, 7), 0);
    put(&bench, fd[1]);
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 7), JZX_IO_READ);
    check_quiet(&bench, 2 * MS);
    put(&bench, fd[1]); /* news are no reason either */
    check_quiet(&bench, 2 * MS);
    drain(&bench, fd[0]);
    put(&bench, fd[1]);
    check_quiet(&bench, 2 * MS);
    pair_close(&bench, fd);
    bench_close(&bench);
}

static void test_setting_it_again_reports_what_is_ready_already(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    put(&bench, fd[1]);
    CHECK_OK(set(&bench, fd[0], 0, READ_ONCE, 1));
    for (uint64_t cookie = 1; cookie < 20; cookie++) {
        CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, cookie), JZX_IO_READ);
        CHECK_EQ(wait_ready(&bench, 0, cookie), 0);
        CHECK_OK(set(&bench, fd[0], READ_ONCE, READ_ONCE, cookie + 1));
    }
    drain(&bench, fd[0]);
    CHECK_OK(set(&bench, fd[0], READ_ONCE, READ_ONCE, 50));
    check_quiet(&bench, 2 * MS);
    put(&bench, fd[1]);
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 50), JZX_IO_READ);
    CHECK_OK(set(&bench, fd[0], READ_ONCE, WRITE_ONCE, 51));
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 51), JZX_IO_WRITE);
    check_quiet(&bench, 2 * MS);
    pair_close(&bench, fd);
    bench_close(&bench);
}

static void test_a_hangup_is_reported_once(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    CHECK_OK(set(&bench, fd[0], 0, READ_ONCE, 7));
    fd_close(&bench, fd[1]);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 7), JZX_IO_READ | JZX_IO_HANGUP);
        check_quiet(&bench, 2 * MS);
        CHECK_OK(set(&bench, fd[0], READ_ONCE, READ_ONCE, 7));
    }
    CHECK_OK(set(&bench, fd[0], READ_ONCE, 0, 0));
    check_quiet(&bench, MS);
    fd_close(&bench, fd[0]);
    bench_close(&bench);
}

static void test_a_hangup_of_a_quiet_descriptor_waits_until_it_is_set(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    put(&bench, fd[1]);
    CHECK_OK(set(&bench, fd[0], 0, READ_ONCE, 7));
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 7), JZX_IO_READ);
    fd_close(&bench, fd[1]);
    check_quiet(&bench, 2 * MS);
    CHECK_OK(set(&bench, fd[0], READ_ONCE, READ_ONCE, 8));
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 8), JZX_IO_READ | JZX_IO_HANGUP);
    check_quiet(&bench, MS);
    fd_close(&bench, fd[0]);
    bench_close(&bench);
}

static void test_once_alone_hears_of_hangups_only(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    CHECK_OK(set(&bench, fd[0], 0, JZX_IO_ONCE, 7));
    put(&bench, fd[1]);
    check_quiet(&bench, 2 * MS);
    fd_close(&bench, fd[1]);
    CHECK(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 7) & JZX_IO_HANGUP);
    check_quiet(&bench, 2 * MS);
    fd_close(&bench, fd[0]);
    bench_close(&bench);
}

static void test_forgetting_is_final_and_leaves_nothing_quiet_behind(void)
{
    poller_bench bench;
    int fd[2];
    bench_open(&bench);
    pair_open(&bench, fd);
    put(&bench, fd[1]);
    /* Before it was waited for, and after it was reported. */
    for (int turn = 0; turn < 4; turn++) {
        CHECK_OK(set(&bench, fd[0], 0, READ_ONCE, 7));
        if (turn % 2 == 0) {
            CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 7), JZX_IO_READ);
        }
        CHECK_OK(set(&bench, fd[0], READ_ONCE, 0, 0));
        check_quiet(&bench, MS);
    }
    pair_close(&bench, fd);
    bench_close(&bench);
}

static uint32_t ready_of(const jzx_poll_event *event, size_t count, uint64_t cookie)
{
    uint32_t ready = 0;
    for (size_t i = 0; i < count; i++) {
        ready |= event[i].cookie == cookie ? event[i].ready : 0;
    }
    return ready;
}

/* What was watched before the first ONCE stays as it was. */
static void test_both_ways_work_side_by_side(void)
{
    poller_bench bench;
    int a[2];
    int b[2];
    jzx_poll_event event[4];
    bench_open(&bench);
    pair_open(&bench, a);
    pair_open(&bench, b);
    CHECK_OK(set(&bench, a[0], 0, JZX_IO_READ, 1));
    CHECK_EQ(wait_ready(&bench, 0, 1), 0);
    put(&bench, a[1]);
    put(&bench, b[1]);
    CHECK_OK(set(&bench, b[0], 0, READ_ONCE, 2));
    size_t count = wait_many(&bench, JZX_TIMEOUT_INFINITE, event, 4);
    CHECK_EQ(count, 2);
    CHECK_EQ(ready_of(event, count, 1), JZX_IO_READ);
    CHECK_EQ(ready_of(event, count, 2), JZX_IO_READ);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 1), JZX_IO_READ);
    }
    /* Each becomes the other. */
    CHECK_OK(set(&bench, a[0], JZX_IO_READ, READ_ONCE, 3));
    CHECK_OK(set(&bench, b[0], READ_ONCE, JZX_IO_READ, 4));
    count = wait_many(&bench, JZX_TIMEOUT_INFINITE, event, 4);
    CHECK_EQ(ready_of(event, count, 3), JZX_IO_READ);
    CHECK_EQ(ready_of(event, count, 4), JZX_IO_READ);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 4), JZX_IO_READ);
    }
    CHECK_OK(set(&bench, b[0], JZX_IO_READ, 0, 0));
    check_quiet(&bench, MS);
    pair_close(&bench, a);
    pair_close(&bench, b);
    bench_close(&bench);
}

static void test_more_ready_descriptors_than_room_are_each_reported_once(void)
{
    enum { PAIRS = 40, CAP = 7 };
    poller_bench bench;
    int fd[PAIRS][2];
    unsigned seen[PAIRS] = {0};
    jzx_poll_event event[CAP];
    bench_open(&bench);
    for (unsigned i = 0; i < PAIRS; i++) {
        pair_open(&bench, fd[i]);
        put(&bench, fd[i][1]);
        CHECK_OK(set(&bench, fd[i][0], 0, READ_ONCE, i));
    }
    for (unsigned left = PAIRS; left > 0;) {
        size_t count = wait_many(&bench, 0, event, CAP);
        REQUIRE(count > 0 && count <= left);
        for (size_t i = 0; i < count; i++) {
            REQUIRE(event[i].cookie < PAIRS);
            seen[event[i].cookie]++;
        }
        left -= (unsigned)count;
    }
    check_quiet(&bench, 2 * MS);
    for (unsigned i = 0; i < PAIRS; i++) {
        CHECK_EQ(seen[i], 1);
        pair_close(&bench, fd[i]);
    }
    bench_close(&bench);
}

/* Every allocation of the first ONCE fails in turn; what is watched already does not notice. */
static void test_refused_memory_changes_nothing(void)
{
    poller_bench bench;
    int a[2];
    int b[2];
    bench_open(&bench);
    pair_open(&bench, a);
    pair_open(&bench, b);
    put(&bench, a[1]);
    CHECK_OK(set(&bench, a[0], 0, JZX_IO_READ, 1));
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 1), JZX_IO_READ);
    jzx_err err = JZX_ERR_NO_MEMORY;
    for (size_t granted = 0; err == JZX_ERR_NO_MEMORY; granted++) {
        REQUIRE(granted < 16);
        bench.refuse_after = granted;
        err = set(&bench, b[0], 0, READ_ONCE, 2);
        bench.refuse_after = SIZE_MAX;
        CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 1), JZX_IO_READ);
    }
    CHECK_OK(err);
    CHECK_OK(set(&bench, a[0], JZX_IO_READ, 0, 0));
    put(&bench, b[1]);
    CHECK_EQ(wait_ready(&bench, JZX_TIMEOUT_INFINITE, 2), JZX_IO_READ);
    pair_close(&bench, a);
    pair_close(&bench, b);
    bench_close(&bench);
}

/* A thread that waits again and again and counts what was reported for each cookie. */
enum { COOKIES = 16 };

typedef struct waiter {
    poller_bench *bench;
    pthread_t thread;
    atomic_int tid;
    atomic_uint reported[COOKIES];
    atomic_uint ready[COOKIES]; /* what was said last */
    atomic_uint waits;
    atomic_bool stop;
} waiter;

static void *waiter_run(void *arg)
{
    waiter *self = arg;
    poller_bench *bench = self->bench;
    atomic_store(&self->tid, gettid());
    while (!atomic_load(&self->stop)) {
        jzx_poll_event event[4];
        size_t count = 0;
        CHECK_OK(bench->env->poller_wait(bench->env->ctx, bench->poller, JZX_TIMEOUT_INFINITE,
                                         event, COUNT_OF(event), &count));
        for (size_t i = 0; i < count; i++) {
            uint64_t cookie = event[i].cookie % COOKIES;
            CHECK(event[i].cookie < COOKIES);
            atomic_store(&self->ready[cookie], event[i].ready);
            atomic_fetch_add(&self->reported[cookie], 1);
        }
        atomic_fetch_add(&self->waits, 1);
    }
    return NULL;
}

static void waiter_await_sleep(waiter *self)
{
    while (atomic_load(&self->tid) == 0 || !is_asleep(atomic_load(&self->tid))) {
        sched_yield();
    }
}

static void waiter_start(waiter *self, poller_bench *bench)
{
    *self = (waiter){.bench = bench};
    REQUIRE_EQ(pthread_create(&self->thread, NULL, waiter_run, self), 0);
    waiter_await_sleep(self);
}

static void waiter_stop(waiter *self)
{
    atomic_store(&self->stop, true);
    wake(self->bench);
    pthread_join(self->thread, NULL);
}

/* Waits until a cookie was reported that often. */
static void await_reports(waiter *self, unsigned cookie, unsigned times)
{
    uint64_t end = now(self->bench) + PATIENCE;
    while (atomic_load(&self->reported[cookie]) < times) {
        REQUIRE(now(self->bench) < end);
        sched_yield();
    }
    CHECK_EQ(atomic_load(&self->reported[cookie]), times);
}

static void test_what_is_set_during_a_wait_is_reported_by_it(void)
{
    poller_bench bench;
    waiter other;
    int fd[COOKIES][2];
    need_system();
    bench_open(&bench);
    waiter_start(&other, &bench);
    for (unsigned i = 0; i < COOKIES; i++) {
        pair_open(&bench, fd[i]);
        if (i % 2 == 0) {
            put(&bench, fd[i][1]);
        }
        waiter_await_sleep(&other);
        CHECK_OK(set(&bench, fd[i][0], 0, READ_ONCE, i));
        if (i % 2 != 0) {
            put(&bench, fd[i][1]);
        }
        await_reports(&other, i, 1);
        CHECK_EQ(atomic_load(&other.ready[i]), JZX_IO_READ);
    }
    waiter_stop(&other);
    for (unsigned i = 0; i < COOKIES; i++) {
        CHECK_EQ(atomic_load(&other.reported[i]), 1);
        pair_close(&bench, fd[i]);
    }
    bench_close(&bench);
}

/* What was watched the ordinary way before somebody joined in is reported as before. */
static void test_the_first_once_during_a_wait_disturbs_nobody(void)
{
    poller_bench bench;
    waiter other;
    int a[2];
    int b[2];
    need_system();
    bench_open(&bench);
    pair_open(&bench, a);
    pair_open(&bench, b);
    CHECK_OK(set(&bench, a[0], 0, JZX_IO_READ, 1));
    waiter_start(&other, &bench);
    put(&bench, b[1]);
    CHECK_OK(set(&bench, b[0], 0, READ_ONCE, 2));
    await_reports(&other, 2, 1);
    CHECK_EQ(atomic_load(&other.reported[1]), 0);
    CHECK_OK(set(&bench, a[0], JZX_IO_READ, READ_ONCE, 3));
    put(&bench, a[1]);
    await_reports(&other, 3, 1);
    waiter_stop(&other);
    CHECK_EQ(atomic_load(&other.reported[1]), 0);
    CHECK_EQ(atomic_load(&other.reported[2]), 1);
    pair_close(&bench, a);
    pair_close(&bench, b);
    bench_close(&bench);
}

static void test_a_descriptor_forgotten_during_a_wait_is_not_reported(void)
{
    poller_bench bench;
    waiter other;
    int fd[2];
    int next[2];
    need_system();
    bench_open(&bench);
    waiter_start(&other, &bench);
    pair_open(&bench, fd);
    for (unsigned i = 0; i < 100; i++) {
        CHECK_OK(set(&bench, fd[0], 0, READ_ONCE, 1));
        if (i % 2 == 0) {
            waiter_await_sleep(&other);
        }
        CHECK_OK(set(&bench, fd[0], READ_ONCE, 0, 0));
        put(&bench, fd[1]);
        drain(&bench, fd[0]);
    }
    /* Its number is another's now; nothing keeps the old one open. */
    CHECK_OK(set(&bench, fd[0], 0, READ_ONCE, 1));
    waiter_await_sleep(&other);
    CHECK_OK(set(&bench, fd[0], READ_ONCE, 0, 0));
    fd_close(&bench, fd[0]);
    char byte;
    size_t n = 1;
    CHECK_OK(bench.env->fd_read(bench.env->ctx, fd[1], &byte, 1, &n));
    CHECK_EQ(n, 0);
    pair_open(&bench, next);
    CHECK_OK(set(&bench, next[0], 0, READ_ONCE, 2));
    put(&bench, next[1]);
    await_reports(&other, 2, 1);
    waiter_stop(&other);
    CHECK_EQ(atomic_load(&other.reported[1]), 0);
    pair_close(&bench, next);
    fd_close(&bench, fd[1]);
    bench_close(&bench);
}

/* What the workers of a pool do: one waits, the others set their descriptor again when they have
 * read. Every byte is seen, and none is reported twice. */
enum { ROUNDS = 2000, SETTERS = 3 };

typedef struct setter {
    waiter *other;
    pthread_t thread;
    unsigned cookie;
    int fd[2];
} setter;

static void *setter_run(void *arg)
{
    setter *self = arg;
    poller_bench *bench = self->other->bench;
    uint32_t before = 0;
    for (unsigned round = 1; round <= ROUNDS && jzt_failures() == 0; round++) {
        if (round % 3 == 0) {
            put(bench, self->fd[1]);
        }
        CHECK_OK(set(bench, self->fd[0], before, READ_ONCE, self->cookie));
        before = READ_ONCE;
        if (round % 3 != 0) {
            put(bench, self->fd[1]);
        }
        await_reports(self->other, self->cookie, round);
        drain(bench, self->fd[0]);
        if (round % 7 == 0) {
            CHECK_OK(set(bench, self->fd[0], before, 0, 0));
            before = 0;
        }
    }
    return NULL;
}

static void test_several_threads_set_while_one_waits(void)
{
    poller_bench bench;
    waiter other;
    setter threads[SETTERS];
    need_system();
    bench_open(&bench);
    waiter_start(&other, &bench);
    for (unsigned i = 0; i < SETTERS; i++) {
        threads[i] = (setter){.other = &other, .cookie = i};
        pair_open(&bench, threads[i].fd);
    }
    for (unsigned i = 0; i < SETTERS; i++) {
        REQUIRE_EQ(pthread_create(&threads[i].thread, NULL, setter_run, &threads[i]), 0);
    }
    for (unsigned i = 0; i < SETTERS; i++) {
        pthread_join(threads[i].thread, NULL);
    }
    waiter_stop(&other);
    for (unsigned i = 0; i < SETTERS; i++) {
        CHECK_EQ(atomic_load(&other.reported[i]), ROUNDS);
        pair_close(&bench, threads[i].fd);
    }
    bench_close(&bench);
}

/* A driver that changes: each wait is made by another thread while the main one sets. */
static void test_the_thread_that_waits_may_change(void)
{
    poller_bench bench;
    int fd[2];
    need_system();
    bench_open(&bench);
    pair_open(&bench, fd);
    CHECK_OK(set(&bench, fd[0], 0, READ_ONCE, 1));
    for (int i = 0; i < 50; i++) {
        waiter other;
        waiter_start(&other, &bench);
        put(&bench, fd[1]);
        await_reports(&other, 1, 1);
        drain(&bench, fd[0]);
        CHECK_OK(set(&bench, fd[0], READ_ONCE, READ_ONCE, 1));
        waiter_stop(&other);
    }
    pair_close(&bench, fd);
    bench_close(&bench);
}

/* R29: a foreign loop that sleeps on the descriptor misses nothing, and does not spin on what is
 * quiet; whether it asked for the descriptor before the first ONCE or after it. */
static void check_descriptor(bool asked_before)
{
    poller_bench bench;
    int fd[2];
    jzx_poll_event event;
    need_system();
    bench_open(&bench);
    pair_open(&bench, fd);
    int pollable = asked_before ? bench.env->poller_fd(bench.env->ctx, bench.poller) : -1;
    put(&bench, fd[1]);
    CHECK_OK(set(&bench, fd[0], 0, READ_ONCE, 7));
    if (asked_before) {
        CHECK_EQ(bench.env->poller_fd(bench.env->ctx, bench.poller), pollable);
    } else {
        pollable = bench.env->poller_fd(bench.env->ctx, bench.poller);
    }
    for (int i = 0; i < 10; i++) {
        CHECK(is_readable(pollable));
        CHECK_EQ(wait_ready(&bench, 0, 7), JZX_IO_READ);
        CHECK(!is_readable(pollable));
        CHECK_OK(set(&bench, fd[0], READ_ONCE, READ_ONCE, 7));
    }
    CHECK_EQ(wait_ready(&bench, 0, 7), JZX_IO_READ);
    wake(&bench);
    CHECK(is_readable(pollable));
    CHECK_EQ(wait_many(&bench, 0, &event, 1), 0);
    CHECK(!is_readable(pollable));
    pair_close(&bench, fd);
    bench_close(&bench);
}

static void test_the_pollers_descriptor_tells_the_truth(void)
{
    check_descriptor(false);
}

static void test_a_descriptor_handed_out_before_stays_true(void)
{
    check_descriptor(true);
}

static const jzt_test suite[] = {
    {"a_descriptor_is_reported_once", test_a_descriptor_is_reported_once},
    {"setting_it_again_reports_what_is_ready_already",
     test_setting_it_again_reports_what_is_ready_already},
    {"a_hangup_is_reported_once", test_a_hangup_is_reported_once},
    {"a_hangup_of_a_quiet_descriptor_waits_until_it_is_set",
     test_a_hangup_of_a_quiet_descriptor_waits_until_it_is_set},
    {"once_alone_hears_of_hangups_only", test_once_alone_hears_of_hangups_only},
    {"forgetting_is_final_and_leaves_nothing_quiet_behind",
     test_forgetting_is_final_and_leaves_nothing_quiet_behind},
    {"both_ways_work_side_by_side", test_both_ways_work_side_by_side},
    {"more_ready_descriptors_than_room_are_each_reported_once",
     test_more_ready_descriptors_than_room_are_each_reported_once},
    {"refused_memory_changes_nothing", test_refused_memory_changes_nothing},
    {"what_is_set_during_a_wait_is_reported_by_it",
     test_what_is_set_during_a_wait_is_reported_by_it},
    {"the_first_once_during_a_wait_disturbs_nobody",
     test_the_first_once_during_a_wait_disturbs_nobody},
    {"a_descriptor_forgotten_during_a_wait_is_not_reported",
     test_a_descriptor_forgotten_during_a_wait_is_not_reported},
    {"several_threads_set_while_one_waits", test_several_threads_set_while_one_waits},
    {"the_thread_that_waits_may_change", test_the_thread_that_waits_may_change},
    {"the_pollers_descriptor_tells_the_truth", test_the_pollers_descriptor_tells_the_truth},
    {"a_descriptor_handed_out_before_stays_true", test_a_descriptor_handed_out_before_stays_true},
};

int main(int argc, char **argv)
{
    return run_fixtures(fixtures, COUNT_OF(fixtures), suite, COUNT_OF(suite), argc, argv);
}
