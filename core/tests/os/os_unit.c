/* Goal: what lies behind jzx_env besides the pollers does what jzx/env.h and jzx/io.h say (R27,
 * R29): the clock, entropy, pipes, signals, children and paths, above all where Linux behaves in a
 * way one does not expect. Method: real descriptors in one process; poll(2) waits for conditions,
 * nothing sleeps. */
#define _GNU_SOURCE
#include "os_kit.h"

static void test_the_environment_is_complete_and_constant(void)
{
    const jzx_env *one = jzx_env_epoll();
    CHECK(one == jzx_env_epoll());
    CHECK_EQ(one->size, sizeof(jzx_env));
    CHECK(one->now_ns && one->entropy && one->wake_open && one->wake_signal);
    CHECK(one->poller_open && one->poller_close && one->poller_set && one->poller_wait);
    CHECK(one->poller_fd && one->fd_read && one->fd_write && one->fd_close);
    CHECK(one->sock_listen && one->sock_accept && one->sock_connect && one->sock_connected);
    CHECK(one->sock_shutdown && one->sock_address);
    CHECK(one->signal_open && one->signal_read && one->signal_close);
    CHECK(one->child_open && one->child_read && one->path_open && one->path_read);
    CHECK(one->pick == NULL && one->trace == NULL && one->flags == 0);
}

static void test_no_errno_is_a_success(void)
{
    for (int code = 0; code < 200; code++) {
        CHECK(jzi_err_from_errno(code) < JZX_OK);
    }
    CHECK_EQ(jzi_err_from_errno(EAGAIN), JZX_ERR_AGAIN);
    CHECK_EQ(jzi_err_from_errno(EPIPE), JZX_ERR_CONN_RESET);
    CHECK_EQ(jzi_err_from_errno(EMFILE), JZX_ERR_NO_FDS);
    CHECK_EQ(jzi_err_from_errno(-1), JZX_ERR_IO);
}

static void test_the_clock_never_steps_back(void)
{
    uint64_t last = env()->now_ns(env()->ctx);
    CHECK(last > 0);
    for (int i = 0; i < 10000; i++) {
        uint64_t next = env()->now_ns(env()->ctx);
        CHECK(next >= last);
        last = next;
    }
}

static void test_entropy_fills_all_of_the_buffer(void)
{
    enum { SIZE = 1000 };
    unsigned char touched[SIZE] = {0};
    unsigned char buf[SIZE + 1];
    /* A byte that is 0 eight times in a row is one that was not written. */
    for (int turn = 0; turn < 8; turn++) {
        memset(buf, 0, sizeof(buf));
        CHECK_OK(env()->entropy(env()->ctx, buf, SIZE));
        for (int i = 0; i < SIZE; i++) {
            touched[i] |= buf[i];
        }
        CHECK_EQ(buf[SIZE], 0);
    }
    for (int i = 0; i < SIZE; i++) {
        CHECK(touched[i] != 0);
    }
    CHECK_OK(env()->entropy(env()->ctx, buf, 0));
}

static void test_a_wake_leaves_errno_alone(void)
{
    int fd = -1;
    CHECK_OK(env()->wake_open(env()->ctx, &fd));
    check_flags(fd);
    errno = 1234;
    env()->wake_signal(env()->ctx, fd);
    CHECK_EQ(errno, 1234);
    await(fd, POLLIN);
    env()->wake_signal(env()->ctx, -1);
    CHECK_EQ(errno, 1234);
    fd_close(fd);
}

static void test_reads_and_writes_work_on_pipes(void)
{
    int fd[2];
    char buf[16];
    size_t n = 0;
    REQUIRE_EQ(pipe2(fd, O_NONBLOCK | O_CLOEXEC), 0);
    CHECK_EQ(env()->fd_read(env()->ctx, fd[0], buf, sizeof(buf), &n), JZX_ERR_AGAIN);
    CHECK_OK(env()->fd_write(env()->ctx, fd[1], "hello", 5, &n));
    CHECK_EQ(n, 5);
    CHECK_OK(env()->fd_read(env()->ctx, fd[0], buf, sizeof(buf), &n));
    CHECK_EQ(n, 5);
    CHECK_EQ(memcmp(buf, "hello", 5), 0);
    CHECK_EQ(env()->fd_read(env()->ctx, fd[0], buf, 0, &n), JZX_ERR_INVALID_ARG);
    fd_close(fd[1]);
    CHECK_OK(env()->fd_read(env()->ctx, fd[0], buf, sizeof(buf), &n));
    CHECK_EQ(n, 0);
    fd_close(fd[0]);
    CHECK_EQ(env()->fd_read(env()->ctx, fd[0], buf, sizeof(buf), &n), JZX_ERR_BAD_FD);
    CHECK_EQ(env()->fd_write(env()->ctx, fd[1], buf, 1, &n), JZX_ERR_BAD_FD);
}

static bool is_blocked(int signo)
{
    sigset_t mask;
    REQUIRE_EQ(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
    return sigismember(&mask, signo) == 1;
}

static void test_a_signal_can_be_read_and_the_mask_comes_back(void)
{
    for (int blocked_before = 0; blocked_before < 2; blocked_before++) {
        int fd = -1;
        int32_t sender = 0;
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        REQUIRE_EQ(pthread_sigmask(blocked_before ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL), 0);
        REQUIRE_OK(env()->signal_open(env()->ctx, SIGUSR1, &fd));
        check_flags(fd);
        CHECK(is_blocked(SIGUSR1));
        CHECK_EQ(env()->signal_read(env()->ctx, fd, &sender), JZX_ERR_AGAIN);
        REQUIRE_EQ(kill(getpid(), SIGUSR1), 0);
        await(fd, POLLIN);
        CHECK_OK(env()->signal_read(env()->ctx, fd, &sender));
        CHECK_EQ(sender, getpid());
        CHECK_EQ(env()->signal_read(env()->ctx, fd, &sender), JZX_ERR_AGAIN);
        env()->signal_close(env()->ctx, fd, SIGUSR1);
        CHECK_EQ(is_blocked(SIGUSR1), blocked_before);
        REQUIRE_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
    }
}

static void test_signals_that_cannot_be_watched_are_refused(void)
{
    static const int bad[] = {0, -1, SIGKILL, SIGSTOP, 32, 33, 65, 1000};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        int fd = -7;
        CHECK_EQ(env()->signal_open(env()->ctx, bad[i], &fd), JZX_ERR_INVALID_ARG);
        CHECK_EQ(fd, -7);
    }
}

/* A child that ends, with a code or by a signal, as soon as its pipe is closed. */
static pid_t spawn_child(int code, int signo, int *out_release)
{
    int fd[2];
    REQUIRE_EQ(pipe2(fd, O_CLOEXEC), 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        char byte;
        close(fd[1]);
        (void)!read(fd[0], &byte, 1);
        if (signo != 0) {
            (void)raise(signo);
        }
        _exit(code);
    }
    close(fd[0]);
    *out_release = fd[1];
    return pid;
}

static void test_a_childs_end_is_read_once_and_reaps_it(void)
{
    static const struct {
        int code;
        int signo;
    } ends[] = {{0, 0}, {42, 0}, {0, SIGKILL}, {0, SIGUSR2}};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        int fd = -1;
        int release = -1;
        int32_t code = -1;
        int32_t signo = -1;
        pid_t pid = spawn_child(ends[i].code, ends[i].signo, &release);
        REQUIRE_OK(env()->child_open(env()->ctx, pid, &fd));
        CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        CHECK_EQ(env()->child_read(env()->ctx, fd, &code, &signo), JZX_ERR_AGAIN);
        close(release);
        await(fd, POLLIN);
        CHECK_OK(env()->child_read(env()->ctx, fd, &code, &signo));
        CHECK_EQ(code, ends[i].code);
        CHECK_EQ(signo, ends[i].signo);
        CHECK(waitpid(pid, NULL, WNOHANG) == -1 && errno == ECHILD);
        CHECK_EQ(env()->child_read(env()->ctx, fd, &code, &signo), JZX_ERR_NOT_FOUND);
        fd_close(fd);
    }
}

static void test_a_child_that_ended_before_it_was_opened_is_still_read(void)
{
    int fd = -1;
    int release = -1;
    int32_t code = -1;
    int32_t signo = -1;
    siginfo_t info;
    pid_t pid = spawn_child(3, 0, &release);
    close(release);
    REQUIRE_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    REQUIRE_OK(env()->child_open(env()->ctx, pid, &fd));
    await(fd, POLLIN);
    CHECK_OK(env()->child_read(env()->ctx, fd, &code, &signo));
    CHECK_EQ(code, 3);
    fd_close(fd);
}

static void test_what_is_no_child_of_ours_is_not_found(void)
{
    int fd = -7;
    CHECK_EQ(env()->child_open(env()->ctx, getppid(), &fd), JZX_ERR_NOT_FOUND);
    CHECK_EQ(env()->child_open(env()->ctx, getpid(), &fd), JZX_ERR_NOT_FOUND);
    CHECK_EQ(env()->child_open(env()->ctx, INT32_MAX, &fd), JZX_ERR_NOT_FOUND);
    CHECK_EQ(env()->child_open(env()->ctx, 0, &fd), JZX_ERR_INVALID_ARG);
    CHECK_EQ(env()->child_open(env()->ctx, -1, &fd), JZX_ERR_INVALID_ARG);
    CHECK_EQ(fd, -7);
}

enum { ALL_CHANGES = JZX_PATH_CHANGED | JZX_PATH_CREATED | JZX_PATH_REMOVED };

static void check_change(int fd, uint32_t expected, const char *expected_name)
{
    uint32_t changes = 0;
    char name[256] = "?";
    CHECK_OK(env()->path_read(env()->ctx, fd, &changes, name, sizeof(name)));
    CHECK_EQ(changes, expected);
    CHECK_STR(name, expected_name);
}

static void check_no_change(int fd)
{
    uint32_t changes = 0;
    char name[256];
    CHECK_EQ(env()->path_read(env()->ctx, fd, &changes, name, sizeof(name)), JZX_ERR_AGAIN);
}

static void test_changes_in_a_directory_come_one_by_one_with_their_names(void)
{
    scratch s;
    int fd = -1;
    char other[128];
    char longest[256];
    char path[400];
    scratch_open(&s, "a");
    snprintf(other, sizeof(other), "%s/a-name-of-more-than-sixteen", s.dir);
    memset(longest, 'n', 255);
    longest[255] = '\0';
    snprintf(path, sizeof(path), "%s/%s", s.dir, longest);
    REQUIRE_OK(env()->path_open(env()->ctx, s.dir, ALL_CHANGES, &fd));
    check_flags(fd);
    check_no_change(fd);
    touch(s.path);
    touch(path);
    REQUIRE_EQ(chmod(s.path, 0400), 0);
    REQUIRE_EQ(rename(s.path, other), 0);
    REQUIRE_EQ(unlink(other), 0);
    REQUIRE_EQ(unlink(path), 0);
    await(fd, POLLIN);
    check_change(fd, JZX_PATH_CREATED, "a");
    check_change(fd, JZX_PATH_CREATED, longest);
    check_change(fd, JZX_PATH_CHANGED, "a");
    check_change(fd, JZX_PATH_REMOVED, "a");
    check_change(fd, JZX_PATH_CREATED, "a-name-of-more-than-sixteen");
    check_change(fd, JZX_PATH_REMOVED, "a-name-of-more-than-sixteen");
    check_change(fd, JZX_PATH_REMOVED, longest);
    check_no_change(fd);
    fd_close(fd);
    scratch_close(&s);
}

static void test_names_of_every_length_are_read_whole(void)
{
    scratch s;
    int fd = -1;
    scratch_open(&s, "x");
    REQUIRE_OK(env()->path_open(env()->ctx, s.dir, JZX_PATH_CREATED, &fd));
    for (size_t len = 1; len <= 255; len++) {
        char name[256];
        char path[400];
        memset(name, 'a' + (char)(len % 26), len);
        name[len] = '\0';
        snprintf(path, sizeof(path), "%s/%s", s.dir, name);
        touch(path);
        REQUIRE_EQ(unlink(path), 0);
    }
    for (size_t len = 1; len <= 255; len++) {
        char name[256];
        memset(name, 'a' + (char)(len % 26), len);
        name[len] = '\0';
        check_change(fd, JZX_PATH_CREATED, name);
    }
    check_no_change(fd);
    fd_close(fd);
    scratch_close(&s);
}

static void test_a_name_that_does_not_fit_is_left_out_and_said_so(void)
{
    scratch s;
    int fd = -1;
    uint32_t changes = 0;
    char name[4] = "?";
    scratch_open(&s, "four");
    REQUIRE_OK(env()->path_open(env()->ctx, s.dir, JZX_PATH_CREATED, &fd));
    touch(s.path);
    CHECK_OK(env()->path_read(env()->ctx, fd, &changes, name, sizeof(name)));
    CHECK_EQ(changes, JZX_PATH_CREATED | JZX_PATH_LOST);
    CHECK_STR(name, "");
    CHECK_EQ(env()->path_read(env()->ctx, fd, &changes, name, 0), JZX_ERR_INVALID_ARG);
    fd_close(fd);
    scratch_close(&s);
}

static void test_the_end_of_a_watched_file_is_told_even_unasked(void)
{
    scratch s;
    int fd = -1;
    scratch_open(&s, "file");
    touch(s.path);
    REQUIRE_OK(env()->path_open(env()->ctx, s.path, JZX_PATH_CREATED, &fd));
    REQUIRE_EQ(unlink(s.path), 0);
    check_change(fd, JZX_PATH_REMOVED, "");
    check_no_change(fd);
    fd_close(fd);
    scratch_close(&s);
}

static void test_only_what_was_asked_for_is_told(void)
{
    scratch s;
    int fd = -1;
    scratch_open(&s, "file");
    REQUIRE_OK(env()->path_open(env()->ctx, s.dir, JZX_PATH_REMOVED, &fd));
    touch(s.path);
    REQUIRE_EQ(chmod(s.path, 0400), 0);
    check_no_change(fd);
    REQUIRE_EQ(unlink(s.path), 0);
    check_change(fd, JZX_PATH_REMOVED, "file");
    fd_close(fd);
    scratch_close(&s);
}

static void test_bad_paths_and_changes_are_refused(void)
{
    int fd = -7;
    CHECK_EQ(env()->path_open(env()->ctx, "/nonexistent", ALL_CHANGES, &fd), JZX_ERR_NOT_FOUND);
    CHECK_EQ(env()->path_open(env()->ctx, "", ALL_CHANGES, &fd), JZX_ERR_NOT_FOUND);
    CHECK_EQ(env()->path_open(env()->ctx, NULL, ALL_CHANGES, &fd), JZX_ERR_INVALID_ARG);
    CHECK_EQ(env()->path_open(env()->ctx, "/", 0, &fd), JZX_ERR_INVALID_ARG);
    CHECK_EQ(env()->path_open(env()->ctx, "/", JZX_PATH_LOST, &fd), JZX_ERR_INVALID_ARG);
    CHECK_EQ(env()->path_open(env()->ctx, "/", 0x10, &fd), JZX_ERR_INVALID_ARG);
    CHECK_EQ(fd, -7);
}

static const jzt_test tests[] = {
    {"the_environment_is_complete_and_constant", test_the_environment_is_complete_and_constant},
    {"no_errno_is_a_success", test_no_errno_is_a_success},
    {"the_clock_never_steps_back", test_the_clock_never_steps_back},
    {"entropy_fills_all_of_the_buffer", test_entropy_fills_all_of_the_buffer},
    {"a_wake_leaves_errno_alone", test_a_wake_leaves_errno_alone},
    {"reads_and_writes_work_on_pipes", test_reads_and_writes_work_on_pipes},
    {"a_signal_can_be_read_and_the_mask_comes_back",
     test_a_signal_can_be_read_and_the_mask_comes_back},
    {"signals_that_cannot_be_watched_are_refused", test_signals_that_cannot_be_watched_are_refused},
    {"a_childs_end_is_read_once_and_reaps_it", test_a_childs_end_is_read_once_and_reaps_it},
    {"a_child_that_ended_before_it_was_opened_is_still_read",
     test_a_child_that_ended_before_it_was_opened_is_still_read},
    {"what_is_no_child_of_ours_is_not_found", test_what_is_no_child_of_ours_is_not_found},
    {"changes_in_a_directory_come_one_by_one_with_their_names",
     test_changes_in_a_directory_come_one_by_one_with_their_names},
    {"names_of_every_length_are_read_whole", test_names_of_every_length_are_read_whole},
    {"a_name_that_does_not_fit_is_left_out_and_said_so",
     test_a_name_that_does_not_fit_is_left_out_and_said_so},
    {"the_end_of_a_watched_file_is_told_even_unasked",
     test_the_end_of_a_watched_file_is_told_even_unasked},
    {"only_what_was_asked_for_is_told", test_only_what_was_asked_for_is_told},
    {"bad_paths_and_changes_are_refused", test_bad_paths_and_changes_are_refused},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
