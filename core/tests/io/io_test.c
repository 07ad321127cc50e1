/* Goal: descriptors, signals, children and paths become messages as jzx/io.h says (R27), the same
 * way on every poller and in simulation.
 * Method: one suite over the worlds of io_fixture.h. */
#define _GNU_SOURCE
#include "io_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static void put(bench *b, int fd, const char *text)
{
    size_t n = 0;
    REQUIRE_OK(own_write(b, fd, text, strlen(text), &n));
    REQUIRE_EQ(n, strlen(text));
}

/* Reads what is there. */
static void drain(bench *b, int fd)
{
    char buf[64];
    size_t n = 1;
    while (own_read(b, fd, buf, sizeof buf, &n) == JZX_OK && n > 0) {
    }
}

static void on_ready_drain(jzx_context *ctx, const jzx_io_event *event, ear *self)
{
    (void)self;
    char buf[64];
    size_t n = 1;
    while ((event->what & JZX_IO_READ) != 0 &&
           jzx_fd_read(ctx->loop, event->fd, buf, sizeof buf, &n) == JZX_OK && n > 0) {
    }
}

static void test_a_readable_descriptor_is_told_while_it_is_readable(void)
{
    bench b = bench_open();
    ear *me = ear_new(&b);
    int fd[2];
    jzx_io_ref ref = 0;
    own_pair(&b, fd);
    REQUIRE_OK(jzx_watch_fd(b.loop, fd[0], me->id, JZX_IO_READ, TAG, &ref));
    settle(&b);
    CHECK_STR(me->log, "");
    put(&b, fd[1], "x");
    UNTIL(&b, me->log_len >= 3); /* nobody reads, so it is told again (level-triggered) */
    CHECK_EQ(me->last.ref, ref);
    CHECK_EQ(me->last.fd, fd[0]);
    CHECK_EQ(me->last.what, JZX_IO_READ);
    drain(&b, fd[0]);
    settle(&b); /* one that was queued may still come */
    ear_forget(me);
    settle(&b);
    CHECK_STR(me->log, "");
    CHECK_OK(jzx_unwatch_fd(b.loop, ref));
    own_close(&b, fd[0]);
    own_close(&b, fd[1]);
    bench_close(&b);
    ear_free(me);
}

static void test_interest_can_change_and_zero_pauses(void)
{
    bench b = bench_open();
    ear *me = ear_new(&b);
    int fd[2];
    jzx_io_ref ref = 0;
    own_pair(&b, fd);
    put(&b, fd[1], "x");
    REQUIRE_OK(jzx_watch_fd(b.loop, fd[0], me->id, 0, TAG, &ref));
    settle(&b);
    CHECK_STR(me->log, "");
    REQUIRE_OK(jzx_watch_update(b.loop, ref, JZX_IO_WRITE));
    UNTIL(&b, me->log_len > 0);
    CHECK_EQ(me->last.what, JZX_IO_WRITE);
    REQUIRE_OK(jzx_watch_update(b.loop, ref, 0));
    settle(&b);
    ear_forget(me);
    settle(&b);
    CHECK_STR(me->log, "");
    REQUIRE_OK(jzx_watch_update(b.loop, ref, JZX_IO_READ | JZX_IO_WRITE));
    UNTIL(&b, me->log_len > 0);
    CHECK_EQ(me->last.what, JZX_IO_READ | JZX_IO_WRITE);
    CHECK_EQ(jzx_watch_update(b.loop, ref, 0x100), JZX_ERR_INVALID_ARG);
    CHECK_OK(jzx_unwatch_fd(b.loop, ref));
    own_close(&b, fd[0]);
    own_close(&b, fd[1]);
    bench_close(&b);
    ear_free(me);
}

static void test_a_peer_that_closes_is_a_hangup(void)
{
    bench b = bench_open();
    ear *me = ear_new(&b);
    int fd[2];
    jzx_io_ref ref = 0;
    own_pair(&b, fd);
    REQUIRE_OK(jzx_watch_fd(b.loop, fd[0], me->id, JZX_IO_READ, TAG, &ref));
    own_close(&b, fd[1]);
    UNTIL(&b, me->log_len > 0);
    CHECK((me->last.what & JZX_IO_HANGUP) != 0);
    CHECK((me->last.what & JZX_IO_READ) != 0);
    CHECK_OK(jzx_unwatch_fd(b.loop, ref));
    own_close(&b, fd[0]);
    bench_close(&b);
    ear_free(me);
}

static void test_one_watch_per_descriptor_and_loop(void)
{
    bench b = bench_open();
    ear *me = ear_new(&b);
    int fd[2];
    jzx_io_ref ref = 0;
    jzx_io_ref other = 99;
    own_pair(&b, fd);
    REQUIRE_OK(jzx_watch_fd(b.loop, fd[0], me->id, 0, TAG, &ref));
    CHECK_EQ(jzx_watch_fd(b.loop, fd[0], me->id, JZX_IO_READ, TAG, &other), JZX_ERR_FD_WATCHED);
    CHECK_EQ(other, 99);
    CHECK_OK(jzx_unwatch_fd(b.loop, ref));
    CHECK_EQ(jzx_unwatch_fd(b.loop, ref), JZX_ERR_NO_SUCH_REF);
    REQUIRE_OK(jzx_watch_fd(b.loop, fd[0], me->id, JZX_IO_READ, TAG, &other));
    CHECK(other != ref);
    put(&b, fd[1], "x");
    UNTIL(&b, me->log_len > 0);
    CHECK_EQ(me->last.ref, other);
    CHECK_OK(jzx_unwatch_fd(b.loop, other));
    own_close(&b, fd[0]);
    own_close(&b, fd[1]);
    bench_close(&b);
    ear_free(me);
}

/* The first of two that are ready ends the other one, whose message is queued by then. */
static void on_ready_end_other(jzx_context *ctx, const jzx_io_event *event, ear *self)
{
    const jzx_io_ref *refs = self->arg;
    jzx_io_ref other = event->ref == refs[0] ? refs[1] : refs[0];
    CHECK_OK(jzx_unwatch_fd(ctx->loop, other));
    CHECK_OK(jzx_unwatch_fd(ctx->loop, event->ref));
}

static void test_unwatch_is_final_while_a_message_is_queued(void)
{
    bench b = bench_open();
    ear *me = ear_new(&b);
    jzx_io_ref refs[2];
    int one[2];
    int two[2];
    own_pair(&b, one);
    own_pair(&b, two);
    put(&b, one[1], "x");
    put(&b, two[1], "x");
    me->on = on_ready_end_other;
    me->arg = refs;
    REQUIRE_OK(jzx_watch_fd(b.loop, one[0], me->id, JZX_IO_READ, TAG, &refs[0]));
    REQUIRE_OK(jzx_watch_fd(b.loop, two[0], me->id, JZX_IO_READ, TAG, &refs[1]));
    UNTIL(&b, me->log_len > 0);
    settle(&b);
    CHECK_STR(me->log, "r");
    for (int i = 0; i < 2; i++) {
        own_close(&b, one[i]);
        own_close(&b, two[i]);
    }
    bench_close(&b);
    ear_free(me);
}

static void test_a_reused_number_is_another_watch(void)
{
    if (io_current->env == NULL) {
        jzt_skip("Simulated descriptors are never used twice.");
    }
    bench b = bench_open();
    ear *me = ear_new(&b);
    me->on = on_ready_drain;
    for (int round = 0; round < 50; round++) {
        int fd[2];
        jzx_io_ref ref = 0;
        own_pair(&b, fd);
        put(&b, fd[1], "x");
        REQUIRE_OK(jzx_watch_fd(b.loop, fd[0], me->id, JZX_IO_READ, TAG, &ref));
        if (round % 2 == 0) {
            ear_forget(me);
            UNTIL(&b, me->log_len > 0);
            CHECK_EQ(me->last.ref, ref);
        }
        CHECK_OK(jzx_unwatch_fd(b.loop, ref));
        own_close(&b, fd[0]);
        own_close(&b, fd[1]);
    }
    ear_forget(me);
    settle(&b);
    CHECK_STR(me->log, "");
    bench_close(&b);
    ear_free(me);
}

static void test_an_owner_that_ends_takes_its_watches_along(void)
{
    bench b = bench_open();
    ear *first = ear_new(&b);
    ear *second = ear_new(&b);
    int fd[2];
    jzx_io_ref ref = 0;
    own_pair(&b, fd);
    put(&b, fd[1], "x");
    REQUIRE_OK(jzx_watch_fd(b.loop, fd[0], first->id, JZX_IO_READ, TAG, &ref));
    first->next = JZX_BEHAVIOR_STOP;
    UNTIL(&b, first->log_len > 0);
    settle(&b);
    CHECK_STR(first->log, "r");
    CHECK_EQ(jzx_watch_update(b.loop, ref, JZX_IO_READ), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_watch_fd(b.loop, fd[0], first->id, JZX_IO_READ, TAG, NULL), JZX_ERR_NO_SUCH_ACTOR);
    second->on = on_ready_drain;
    REQUIRE_OK(jzx_watch_fd(b.loop, fd[0], second->id, JZX_IO_READ, TAG, &ref));
    UNTIL(&b, second->log_len > 0);
    CHECK_OK(jzx_unwatch_fd(b.loop, ref));
    own_close(&b, fd[0]);
    own_close(&b, fd[1]);
    bench_close(&b);
    ear_free(first);
    ear_free(second);
}

static void test_many_watches_are_told_apart(void)
{
    enum { PAIRS = 200 };
    bench b = bench_open();
    ear *me = ear_new(&b);
    int fd[PAIRS][2];
    jzx_io_ref refs[PAIRS];
    me->on = on_ready_drain;
    for (int i = 0; i < PAIRS; i++) {
        own_pair(&b, fd[i]);
        REQUIRE_OK(jzx_watch_fd(b.loop, fd[i][0], me->id, JZX_IO_READ, TAG, &refs[i]));
        CHECK_EQ(jzx_watch_fd(b.loop, fd[i][0], me->id, 0, TAG, NULL), JZX_ERR_FD_WATCHED);
    }
    for (int i = 0; i < PAIRS; i += 3) {
        CHECK_OK(jzx_unwatch_fd(b.loop, refs[i]));
    }
    for (int i = 0; i < PAIRS; i++) {
        bool watched = i % 3 != 0;
        ear_forget(me);
        put(&b, fd[i][1], "x");
        if (watched) {
            UNTIL(&b, me->log_len > 0);
            CHECK_EQ(me->last.ref, refs[i]);
            CHECK_EQ(jzx_watch_fd(b.loop, fd[i][0], me->id, 0, TAG, NULL), JZX_ERR_FD_WATCHED);
            CHECK_OK(jzx_unwatch_fd(b.loop, refs[i]));
        } else {
            REQUIRE_OK(jzx_loop_run_until_idle(b.loop));
            CHECK_STR(me->log, "");
        }
        own_close(&b, fd[i][0]);
        own_close(&b, fd[i][1]);
    }
    bench_close(&b);
    ear_free(me);
}

static void test_reads_and_writes_go_through_the_environment(void)
{
    /* Whole reads and writes, because the test looks at single calls. */
    bench b = bench_open_sim(&(jzx_sim_opts){.seed = jzt_seed() | 1});
    ear *me = ear_new(&b);
    int fd[2];
    char buf[16];
    size_t n = 77;
    own_pair(&b, fd);
    CHECK_EQ(jzx_fd_read(b.loop, fd[0], buf, sizeof buf, &n), JZX_ERR_AGAIN);
    CHECK_EQ(n, 77);
    CHECK_OK(jzx_fd_write(b.loop, fd[0], "a", 1, &n));
    CHECK_EQ(n, 1);
    UNTIL(&b, own_read(&b, fd[1], buf, sizeof buf, &n) == JZX_OK);
    CHECK_EQ(buf[0], 'a');
    own_close(&b, fd[1]);
    UNTIL(&b, jzx_fd_read(b.loop, fd[0], buf, sizeof buf, &n) == JZX_OK);
    CHECK_EQ(n, 0); /* end of file */
    CHECK_EQ(jzx_fd_read(b.loop, fd[0], NULL, 1, &n), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_fd_read(b.loop, fd[0], buf, 0, &n), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_fd_write(b.loop, fd[0], buf, 1, NULL), JZX_ERR_INVALID_ARG);
    own_close(&b, fd[0]);
    bench_close(&b);
    ear_free(me);
}

static void raise_signal(bench *b, int signo)
{
    if (b->sim != NULL) {
        REQUIRE_OK(jzx_sim_raise(b->sim, signo));
    } else {
        REQUIRE_EQ(raise(signo), 0);
    }
}

static bool is_blocked(int signo)
{
    sigset_t set;
    REQUIRE_EQ(pthread_sigmask(SIG_SETMASK, NULL, &set), 0);
    return sigismember(&set, signo) == 1;
}

static void test_signals_are_messages_and_the_mask_comes_back(void)
{
    bench b = bench_open();
    ear *me = ear_new(&b);
    jzx_io_ref ref = 0;
    REQUIRE_OK(jzx_watch_signal(b.loop, SIGUSR1, me->id, TAG, &ref));
    CHECK_EQ(jzx_watch_signal(b.loop, SIGUSR1, me->id, TAG, NULL), JZX_ERR_ALREADY);
    for (int i = 1; i <= 3; i++) {
        raise_signal(&b, SIGUSR1);
        UNTIL(&b, me->log_len == (size_t)i);
        CHECK_EQ(me->last.ref, ref);
        CHECK_EQ(me->last.signal, SIGUSR1);
        CHECK_EQ(me->last.pid, b.sim != NULL ? 1 : getpid());
    }
    CHECK_STR(me->log, "SSS");
    raise_signal(&b, SIGUSR1); /* still pending when it is unwatched: must not strike us */
    CHECK_OK(jzx_unwatch_fd(b.loop, ref));
    CHECK(b.sim != NULL || !is_blocked(SIGUSR1));
    settle(&b);
    CHECK_STR(me->log, "SSS");
    REQUIRE_OK(jzx_watch_signal(b.loop, SIGUSR1, me->id, TAG, &ref));
    CHECK_OK(jzx_stop(b.loop, me->id));
    settle(&b);
    CHECK_EQ(jzx_unwatch_fd(b.loop, ref), JZX_ERR_NO_SUCH_REF);
    if (jzt_on_threads()) {
        admit_signal(SIGUSR1); /* it ended on another thread, which leaves our mask alone */
    }
    CHECK(b.sim != NULL || !is_blocked(SIGUSR1));
    bench_close(&b);
    ear_free(me);
}

static void test_bad_signals_are_refused(void)
{
    bench b = bench_open();
    ear *me = ear_new(&b);
    const int bad[] = {0, -1, SIGKILL, SIGSTOP, 65, 1000, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CHECK_EQ(jzx_watch_signal(b.loop, bad[i], me->id, TAG, NULL), JZX_ERR_INVALID_ARG);
    }
    CHECK_EQ(jzx_watch_signal(b.loop, SIGUSR2, JZX_NOBODY, TAG, NULL), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_watch_signal(b.loop, SIGUSR2, me->id, JZX_TAG_SYSTEM_FIRST, NULL),
             JZX_ERR_RESERVED_TAG);
    CHECK(b.sim != NULL || !is_blocked(SIGUSR2));
    /* A refused one left nothing behind that would refuse the next. */
    jzx_io_ref ref = 0;
    CHECK_OK(jzx_watch_signal(b.loop, SIGUSR2, me->id, TAG, &ref));
    CHECK_OK(jzx_unwatch_fd(b.loop, ref));
    bench_close(&b);
    ear_free(me);
}

/* A child that waits to be told how to end. */
static int32_t child_start(bench *b, int *out_pipe)
{
    if (b->sim != NULL) {
        int32_t pid = 0;
        REQUIRE_OK(jzx_sim_child_start(b->sim, &pid));
        return pid;
    }
    int fd[2];
    REQUIRE_EQ(pipe(fd), 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        unsigned char code = 0;
        (void)close(fd[1]);
        _exit(read(fd[0], &code, 1) == 1 ? code : 99);
    }
    (void)close(fd[0]);
    *out_pipe = fd[1];
    return pid;
}

static void child_exit(bench *b, int32_t pid, int pipe_fd, unsigned char code)
{
    if (b->sim != NULL) {
        REQUIRE_OK(jzx_sim_child_exit(b->sim, pid, code, 0));
    } else {
        REQUIRE_EQ(write(pipe_fd, &code, 1), 1);
        (void)close(pipe_fd);
    }
}

static void child_kill(bench *b, int32_t pid, int pipe_fd)
{
    if (b->sim != NULL) {
        REQUIRE_OK(jzx_sim_child_exit(b->sim, pid, 0, SIGKILL));
    } else {
        REQUIRE_EQ(kill(pid, SIGKILL), 0);
        (void)close(pipe_fd);
    }
}

static void on_child_try_ref(jzx_context *ctx, const jzx_io_event *event, ear *self)
{
    (void)self;
    CHECK_EQ(jzx_unwatch_fd(ctx->loop, event->ref), JZX_ERR_NO_SUCH_REF);
}

static void test_the_end_of_a_child_is_one_message(void)
{
    bench b = bench_open();
    ear *me = ear_new(&b);
    int pipe_fd[2] = {-1, -1};
    jzx_io_ref ref = 0;
    me->on = on_child_try_ref;
    int32_t first = child_start(&b, &pipe_fd[0]);
    REQUIRE_OK(jzx_watch_child(b.loop, first, me->id, TAG, &ref));
    settle(&b);
    CHECK_STR(me->log, "");
    child_exit(&b, first, pipe_fd[0], 7);
    UNTIL(&b, me->log_len > 0);
    CHECK_EQ(me->last.what, JZX_IO_CHILD);
    CHECK_EQ(me->last.pid, first);
    CHECK_EQ(me->last.code, 7);
    CHECK_EQ(me->last.signal, 0);
    int32_t second = child_start(&b, &pipe_fd[1]);
    REQUIRE_OK(jzx_watch_child(b.loop, second, me->id, TAG, NULL));
    child_kill(&b, second, pipe_fd[1]);
    UNTIL(&b, me->log_len > 1);
    CHECK_EQ(me->last.pid, second);
    CHECK_EQ(me->last.signal, SIGKILL);
    settle(&b);
    CHECK_STR(me->log, "KK");
    CHECK_EQ(jzx_unwatch_fd(b.loop, ref), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_watch_child(b.loop, first, me->id, TAG, NULL), JZX_ERR_NOT_FOUND);
    CHECK_EQ(jzx_watch_child(b.loop, 0, me->id, TAG, NULL), JZX_ERR_INVALID_ARG);
    bench_close(&b);
    ear_free(me);
}

/* A directory of the test's own, or a name for one where all paths exist. */
static void dir_make(bench *b, char dir[64])
{
    snprintf(dir, 64, "/tmp/jzx-io-XXXXXX");
    REQUIRE(b->sim != NULL || mkdtemp(dir) != NULL);
}

static void file_touch(bench *b, const char *dir, const char *name, uint32_t changes)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (b->sim != NULL) {
        REQUIRE_OK(jzx_sim_path_change(b->sim, dir, changes, name));
    } else if (changes == JZX_PATH_REMOVED) {
        REQUIRE_EQ(unlink(path), 0);
    } else {
        int flags = O_WRONLY | O_CLOEXEC | (changes == JZX_PATH_CREATED ? O_CREAT | O_EXCL : 0);
        int fd = open(path, flags, 0600);
        REQUIRE(fd >= 0);
        REQUIRE(changes == JZX_PATH_CREATED || write(fd, "x", 1) == 1);
        (void)close(fd);
    }
}

static void test_changes_of_a_path_are_merged_by_name(void)
{
    const uint32_t all = JZX_PATH_CHANGED | JZX_PATH_CREATED | JZX_PATH_REMOVED;
    bench b = bench_open();
    ear *me = ear_new(&b);
    jzx_io_ref ref = 0;
    char dir[64];
    dir_make(&b, dir);
    REQUIRE_OK(jzx_watch_path(b.loop, dir, all, me->id, TAG, &ref));
    settle(&b);
    CHECK_STR(me->log, "");
    file_touch(&b, dir, "one", JZX_PATH_CREATED);
    UNTIL(&b, me->log_len > 0);
    CHECK_EQ(me->last.what, JZX_IO_PATH);
    CHECK_EQ(me->last.changes, JZX_PATH_CREATED);
    CHECK_STR(me->name, "one");
    CHECK_EQ(me->last.len, 3);
    ear_forget(me);
    file_touch(&b, dir, "one", JZX_PATH_CHANGED);
    file_touch(&b, dir, "one", JZX_PATH_CHANGED);
    file_touch(&b, dir, "one", JZX_PATH_REMOVED);
    file_touch(&b, dir, "two", JZX_PATH_CREATED);
    file_touch(&b, dir, "two", JZX_PATH_REMOVED);
    UNTIL(&b, me->log_len >= 2);
    settle(&b);
    CHECK_STR(me->log, "PP");
    CHECK_STR(me->name, "two");
    CHECK_EQ(me->last.changes, JZX_PATH_CREATED | JZX_PATH_REMOVED);
    CHECK_OK(jzx_unwatch_fd(b.loop, ref));
    CHECK(b.sim != NULL || rmdir(dir) == 0);
    bench_close(&b);
    ear_free(me);
}

static void test_a_path_that_is_not_there_is_not_found(void)
{
    bench b = bench_open();
    ear *me = ear_new(&b);
    if (b.sim == NULL) {
        CHECK_EQ(jzx_watch_path(b.loop, "/no/such/path", JZX_PATH_CHANGED, me->id, TAG, NULL),
                 JZX_ERR_NOT_FOUND);
    }
    CHECK_EQ(jzx_watch_path(b.loop, NULL, JZX_PATH_CHANGED, me->id, TAG, NULL),
             JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_watch_path(b.loop, "/tmp", 0, me->id, TAG, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_watch_path(b.loop, "/tmp", 0x100, me->id, TAG, NULL), JZX_ERR_INVALID_ARG);
    bench_close(&b);
    ear_free(me);
}

static void test_a_failing_read_is_told_once_and_does_not_spin(void)
{
    bench b = bench_open();
    ear *me = ear_new(&b);
    jzx_io_ref ref = 0;
    REQUIRE_OK(jzx_watch_signal(b.loop, SIGUSR1, me->id, TAG, &ref));
    jzx_fault_arm_call(b.kit->fault, JZX_FAULT_SIGNAL_READ, 1, 0, JZX_ERR_IO);
    raise_signal(&b, SIGUSR1);
    UNTIL(&b, me->log_len >= 2);
    CHECK_STR(me->log, "!S"); /* the signal is not lost */
    jzx_fault_arm_call(b.kit->fault, JZX_FAULT_SIGNAL_READ, 1, 1, JZX_ERR_IO);
    raise_signal(&b, SIGUSR1);
    UNTIL(&b, me->log_len >= 3);
    CHECK_EQ(me->last.what, JZX_IO_ERROR);
    CHECK_EQ(me->last.err, JZX_ERR_IO);
    settle(&b);
    CHECK_STR(me->log, "!S!");
    jzx_fault_arm_call(b.kit->fault, JZX_FAULT_SIGNAL_READ, 0, 0, JZX_OK);
    CHECK_OK(jzx_unwatch_fd(b.loop, ref));
    bench_close(&b);
    ear_free(me);
}

static void test_bad_watches_are_refused(void)
{
    bench b = bench_open();
    ear *me = ear_new(&b);
    int fd[2];
    jzx_io_ref ref = 0;
    own_pair(&b, fd);
    CHECK_EQ(jzx_watch_fd(NULL, fd[0], me->id, JZX_IO_READ, TAG, &ref), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_watch_fd(b.loop, -1, me->id, JZX_IO_READ, TAG, &ref), JZX_ERR_BAD_FD);
    CHECK_EQ(jzx_watch_fd(b.loop, 54321, me->id, JZX_IO_READ, TAG, &ref), JZX_ERR_BAD_FD);
    CHECK_EQ(jzx_watch_fd(b.loop, 54321, me->id, 0, TAG, &ref), JZX_ERR_BAD_FD);
    CHECK_EQ(jzx_watch_fd(b.loop, fd[0], me->id, 0x10, TAG, &ref), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_watch_fd(b.loop, fd[0], 12345, JZX_IO_READ, TAG, &ref), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_watch_fd(b.loop, fd[0], me->id, JZX_IO_READ, JZX_TAG_ROOM, &ref),
             JZX_ERR_RESERVED_TAG);
    CHECK_EQ(ref, 0);
    const jzx_io_ref bad[] = {0, 1, UINT64_MAX, UINT64_C(1) << 32};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CHECK_EQ(jzx_unwatch_fd(b.loop, bad[i]), JZX_ERR_NO_SUCH_REF);
        CHECK_EQ(jzx_watch_update(b.loop, bad[i], JZX_IO_READ), JZX_ERR_NO_SUCH_REF);
    }
    REQUIRE_OK(jzx_watch_signal(b.loop, SIGUSR1, me->id, TAG, &ref));
    CHECK_EQ(jzx_watch_update(b.loop, ref, JZX_IO_READ), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_conn_close(b.loop, ref, 0), JZX_ERR_NO_SUCH_REF);
    CHECK_OK(jzx_unwatch_fd(b.loop, ref));
    REQUIRE_OK(jzx_listen(b.loop, "127.0.0.1:0", me->id, NULL, &ref));
    CHECK_EQ(jzx_unwatch_fd(b.loop, ref), JZX_ERR_NO_SUCH_REF);
    /* What was refused left nothing behind. */
    CHECK_OK(jzx_watch_fd(b.loop, fd[0], me->id, JZX_IO_READ, TAG, NULL));
    CHECK_OK(jzx_stop(b.loop, me->id));
    settle(&b);
    own_close(&b, fd[0]);
    own_close(&b, fd[1]);
    bench_close(&b);
    ear_free(me);
}

static const jzt_test suite[] = {
    {"a_readable_descriptor_is_told_while_it_is_readable",
     test_a_readable_descriptor_is_told_while_it_is_readable},
    {"interest_can_change_and_zero_pauses", test_interest_can_change_and_zero_pauses},
    {"a_peer_that_closes_is_a_hangup", test_a_peer_that_closes_is_a_hangup},
    {"one_watch_per_descriptor_and_loop", test_one_watch_per_descriptor_and_loop},
    {"unwatch_is_final_while_a_message_is_queued", test_unwatch_is_final_while_a_message_is_queued},
    {"a_reused_number_is_another_watch", test_a_reused_number_is_another_watch},
    {"an_owner_that_ends_takes_its_watches_along", test_an_owner_that_ends_takes_its_watches_along},
    {"many_watches_are_told_apart", test_many_watches_are_told_apart},
    {"reads_and_writes_go_through_the_environment",
     test_reads_and_writes_go_through_the_environment},
    {"signals_are_messages_and_the_mask_comes_back",
     test_signals_are_messages_and_the_mask_comes_back},
    {"bad_signals_are_refused", test_bad_signals_are_refused},
    {"the_end_of_a_child_is_one_message", test_the_end_of_a_child_is_one_message},
    {"changes_of_a_path_are_merged_by_name", test_changes_of_a_path_are_merged_by_name},
    {"a_path_that_is_not_there_is_not_found", test_a_path_that_is_not_there_is_not_found},
    {"a_failing_read_is_told_once_and_does_not_spin",
     test_a_failing_read_is_told_once_and_does_not_spin},
    {"bad_watches_are_refused", test_bad_watches_are_refused},
};

int main(int argc, char **argv)
{
    return io_run_worlds(suite, COUNT_OF(suite), argc, argv);
}
