/* Goal: sockets do what jzx/env.h and jzx/net.h say (R27), above all where Linux behaves in a way
 * one does not expect. Method: real descriptors in one process; poll(2) waits for conditions,
 * nothing sleeps. */
#define _GNU_SOURCE
#include "os_kit.h"

static void test_a_write_to_a_dead_socket_raises_no_sigpipe(void)
{
    int fd[2];
    size_t n = 77;
    struct sigaction old;
    const struct sigaction fatal = {.sa_handler = SIG_DFL};
    REQUIRE_EQ(sigaction(SIGPIPE, &fatal, &old), 0);
    REQUIRE_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    fd_close(fd[1]);
    CHECK_EQ(env()->fd_write(env()->ctx, fd[0], "x", 1, &n), JZX_ERR_CONN_RESET);
    CHECK_EQ(n, 77);
    fd_close(fd[0]);
    REQUIRE_EQ(sigaction(SIGPIPE, &old, NULL), 0);
}

static void test_a_write_never_blocks_even_on_a_blocking_socket(void)
{
    static char block[65536];
    int fd[2];
    size_t n;
    REQUIRE_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    jzx_err err = JZX_OK;
    while (err == JZX_OK) {
        err = env()->fd_write(env()->ctx, fd[0], block, sizeof(block), &n);
    }
    CHECK_EQ(err, JZX_ERR_AGAIN);
    fd_close(fd[0]);
    fd_close(fd[1]);
}

/* Connects to where listener listens, in both halves, and gives the two ends. */
static void connect_to(int listener, int ends[2])
{
    char address[JZX_ADDRESS_MAX + 1];
    CHECK_OK(env()->sock_address(env()->ctx, listener, 0, address, sizeof(address)));
    ends[0] = -1;
    jzx_err err = env()->sock_connect(env()->ctx, address, &ends[0]);
    REQUIRE(err == JZX_OK || err == JZX_ERR_AGAIN);
    REQUIRE(ends[0] >= 0);
    await(ends[0], POLLOUT);
    CHECK_OK(env()->sock_connected(env()->ctx, ends[0]));
    await(listener, POLLIN);
    REQUIRE_OK(env()->sock_accept(env()->ctx, listener, &ends[1]));
    check_flags(ends[0]);
    check_flags(ends[1]);
}

static void check_conversation(const int ends[2])
{
    char buf[8];
    size_t n = 0;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(env()->fd_write(env()->ctx, ends[i], "ping", 4, &n));
        await(ends[1 - i], POLLIN);
        CHECK_OK(env()->fd_read(env()->ctx, ends[1 - i], buf, sizeof(buf), &n));
        CHECK_EQ(n, 4);
    }
    /* Half-closed: one end reads end of file and can still write. */
    CHECK_OK(env()->sock_shutdown(env()->ctx, ends[0]));
    await(ends[1], POLLIN);
    CHECK_OK(env()->fd_read(env()->ctx, ends[1], buf, sizeof(buf), &n));
    CHECK_EQ(n, 0);
    CHECK_OK(env()->fd_write(env()->ctx, ends[1], "still", 5, &n));
    await(ends[0], POLLIN);
    CHECK_OK(env()->fd_read(env()->ctx, ends[0], buf, sizeof(buf), &n));
    CHECK_EQ(n, 5);
}

static void test_tcp_ends_meet_and_talk(void)
{
    static const char *const addresses[] = {"127.0.0.1:0", "[::1]:0"};
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        int listener = -1;
        int ends[2];
        jzx_err err = env()->sock_listen(env()->ctx, addresses[i], 8, &listener);
        if (i == 1 && err != JZX_OK) {
            break; /* a machine without IPv6 */
        }
        REQUIRE_OK(err);
        check_flags(listener);
        CHECK_EQ(env()->sock_accept(env()->ctx, listener, &ends[1]), JZX_ERR_AGAIN);
        connect_to(listener, ends);
        for (int k = 0; k < 2; k++) {
            int value = 0;
            socklen_t len = sizeof(value);
            CHECK_EQ(getsockopt(ends[k], IPPROTO_TCP, TCP_NODELAY, &value, &len), 0);
            CHECK(value != 0);
        }
        char here[JZX_ADDRESS_MAX + 1];
        char there[JZX_ADDRESS_MAX + 1];
        CHECK_OK(env()->sock_address(env()->ctx, ends[0], 1, there, sizeof(there)));
        CHECK_OK(env()->sock_address(env()->ctx, listener, 0, here, sizeof(here)));
        CHECK_STR(there, here);
        check_conversation(ends);
        fd_close(ends[0]);
        fd_close(ends[1]);
        fd_close(listener);
    }
}

static void test_ipv6_does_not_take_the_ipv4_port(void)
{
    int v6 = -1;
    int v4 = -1;
    char address[JZX_ADDRESS_MAX + 1];
    if (env()->sock_listen(env()->ctx, "[::]:0", 8, &v6) != JZX_OK) {
        jzt_skip("This machine has no IPv6.");
    }
    CHECK_OK(env()->sock_address(env()->ctx, v6, 0, address, sizeof(address)));
    char other[JZX_ADDRESS_MAX + 1];
    snprintf(other, sizeof(other), "0.0.0.0:%s", strrchr(address, ':') + 1);
    CHECK_OK(env()->sock_listen(env()->ctx, other, 8, &v4));
    fd_close(v4);
    fd_close(v6);
    CHECK_EQ(env()->sock_listen(env()->ctx, "[::ffff:127.0.0.1]:0", 8, &v6), JZX_ERR_BAD_ADDRESS);
}

static void test_a_taken_port_and_an_unheard_one_are_told_apart(void)
{
    int first = -1;
    int second = -7;
    char address[JZX_ADDRESS_MAX + 1];
    CHECK_OK(env()->sock_listen(env()->ctx, "127.0.0.1:0", 8, &first));
    CHECK_OK(env()->sock_address(env()->ctx, first, 0, address, sizeof(address)));
    CHECK_EQ(env()->sock_listen(env()->ctx, address, 8, &second), JZX_ERR_ADDRESS_IN_USE);
    CHECK_EQ(second, -7);
    fd_close(first);
    jzx_err err = env()->sock_connect(env()->ctx, address, &second);
    if (err == JZX_ERR_AGAIN) {
        await(second, POLLOUT);
        err = env()->sock_connected(env()->ctx, second);
        fd_close(second);
    }
    CHECK_EQ(err, JZX_ERR_CONN_REFUSED);
    CHECK_EQ(env()->sock_listen(env()->ctx, "nonsense", 8, &second), JZX_ERR_BAD_ADDRESS);
    CHECK_EQ(env()->sock_connect(env()->ctx, NULL, &second), JZX_ERR_INVALID_ARG);
    /* An address of documentation, which no machine has. */
    CHECK_EQ(env()->sock_listen(env()->ctx, "192.0.2.1:0", 8, &second), JZX_ERR_BAD_ADDRESS);
}

static void test_unix_ends_meet_and_talk(void)
{
    scratch s;
    char abstract[JZX_ADDRESS_MAX + 1];
    scratch_open(&s, "sock");
    snprintf(abstract, sizeof(abstract), "unix:@jzx-test-os-%d", (int)getpid());
    const char *addresses[] = {s.address, abstract};
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        int listener = -1;
        int ends[2];
        char text[JZX_ADDRESS_MAX + 1];
        REQUIRE_OK(env()->sock_listen(env()->ctx, addresses[i], 8, &listener));
        connect_to(listener, ends);
        CHECK_OK(env()->sock_address(env()->ctx, ends[0], 1, text, sizeof(text)));
        CHECK_STR(text, addresses[i]);
        CHECK_OK(env()->sock_address(env()->ctx, ends[1], 1, text, sizeof(text)));
        CHECK_STR(text, "unix:");
        check_conversation(ends);
        fd_close(ends[0]);
        fd_close(ends[1]);
        fd_close(listener);
    }
    scratch_close(&s);
}

static void test_a_stale_socket_file_is_replaced(void)
{
    scratch s;
    int listener = -1;
    int ends[2];
    scratch_open(&s, "sock");
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(env()->sock_listen(env()->ctx, s.address, 8, &listener));
        connect_to(listener, ends);
        fd_close(ends[0]);
        fd_close(ends[1]);
        fd_close(listener); /* the file stays, as after a crash */
        CHECK_EQ(access(s.path, F_OK), 0);
    }
    scratch_close(&s);
}

static void test_a_socket_somebody_listens_on_is_not_replaced(void)
{
    scratch s;
    int first = -1;
    int second = -7;
    int ends[2];
    scratch_open(&s, "sock");
    REQUIRE_OK(env()->sock_listen(env()->ctx, s.address, 8, &first));
    CHECK_EQ(env()->sock_listen(env()->ctx, s.address, 8, &second), JZX_ERR_ADDRESS_IN_USE);
    CHECK_EQ(second, -7);
    /* The question itself was a connection; the next one is ours. */
    int asked = -1;
    CHECK_OK(env()->sock_accept(env()->ctx, first, &asked));
    fd_close(asked);
    connect_to(first, ends);
    fd_close(ends[0]);
    fd_close(ends[1]);
    fd_close(first);
    scratch_close(&s);
}

/* Connecting to a regular file is refused just like connecting to a dead socket. */
static void test_a_file_that_is_no_socket_is_never_removed(void)
{
    scratch s;
    struct stat st;
    int fd = -1;
    scratch_open(&s, "precious");
    touch(s.path);
    CHECK_EQ(env()->sock_listen(env()->ctx, s.address, 8, &fd), JZX_ERR_ADDRESS_IN_USE);
    CHECK(lstat(s.path, &st) == 0 && S_ISREG(st.st_mode));
    CHECK_EQ(unlink(s.path), 0);
    REQUIRE_EQ(symlink("/nonexistent", s.path), 0);
    CHECK_EQ(env()->sock_listen(env()->ctx, s.address, 8, &fd), JZX_ERR_ADDRESS_IN_USE);
    CHECK(lstat(s.path, &st) == 0 && S_ISLNK(st.st_mode));
    scratch_close(&s);
}

static void test_a_full_unix_queue_refuses_and_leaves_no_descriptor(void)
{
    enum { TRIES = 16 };
    scratch s;
    int listener = -1;
    int made[TRIES];
    int count = 0;
    jzx_err err = JZX_OK;
    scratch_open(&s, "sock");
    REQUIRE_OK(env()->sock_listen(env()->ctx, s.address, 0, &listener));
    while (count < TRIES && err == JZX_OK) {
        err = env()->sock_connect(env()->ctx, s.address, &made[count]);
        count += err == JZX_OK;
    }
    /* Not JZX_ERR_AGAIN, which would mean that the connection is on its way. */
    CHECK_EQ(err, JZX_ERR_CONN_REFUSED);
    while (count > 0) {
        fd_close(made[--count]);
    }
    fd_close(listener);
    CHECK_EQ(env()->sock_connect(env()->ctx, "unix:/nonexistent/x", &listener), JZX_ERR_NOT_FOUND);
    scratch_close(&s);
}

static const jzt_test tests[] = {
    {"a_write_to_a_dead_socket_raises_no_sigpipe", test_a_write_to_a_dead_socket_raises_no_sigpipe},
    {"a_write_never_blocks_even_on_a_blocking_socket",
     test_a_write_never_blocks_even_on_a_blocking_socket},
    {"tcp_ends_meet_and_talk", test_tcp_ends_meet_and_talk},
    {"ipv6_does_not_take_the_ipv4_port", test_ipv6_does_not_take_the_ipv4_port},
    {"a_taken_port_and_an_unheard_one_are_told_apart",
     test_a_taken_port_and_an_unheard_one_are_told_apart},
    {"unix_ends_meet_and_talk", test_unix_ends_meet_and_talk},
    {"a_stale_socket_file_is_replaced", test_a_stale_socket_file_is_replaced},
    {"a_socket_somebody_listens_on_is_not_replaced",
     test_a_socket_somebody_listens_on_is_not_replaced},
    {"a_file_that_is_no_socket_is_never_removed", test_a_file_that_is_no_socket_is_never_removed},
    {"a_full_unix_queue_refuses_and_leaves_no_descriptor",
     test_a_full_unix_queue_refuses_and_leaves_no_descriptor},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
