/* Goal: addresses, connects, refusals and partitions of the simulated world behave as sockets do.
 * Method: its environment on one side, the test's own calls on the other, without a loop. */
/* not on: pinned pool; there is no loop in it. */
#include "check.h"

#include <jzx/net.h>
#include <jzx/testkit.h>

#include <string.h>

static jzx_sim *sim;
static const jzx_env *env;

static void world_open(const jzx_sim_opts *opts)
{
    jzx_sim_opts seeded = opts == NULL ? (jzx_sim_opts){0} : *opts;
    seeded.seed = jzt_seed();
    REQUIRE_OK(jzx_sim_create(&seeded, &sim));
    env = jzx_sim_env(sim);
}

static void world_close(void)
{
    CHECK_STR(jzx_sim_check(sim), NULL);
    jzx_sim_destroy(sim);
}

/* A connection from the environment's side to a listener of the test's. */
static void pair_open(const char *address, int *listener, int *ours, int *theirs)
{
    REQUIRE_OK(jzx_sim_listen(sim, address, listener));
    jzx_err err = env->sock_connect(env->ctx, address, ours);
    CHECK(err == JZX_OK || err == JZX_ERR_AGAIN);
    CHECK_OK(env->sock_connected(env->ctx, *ours));
    REQUIRE_OK(jzx_sim_accept(sim, *listener, theirs));
    CHECK_EQ(jzx_sim_peer(sim, *theirs), *ours);
}

static void test_bad_addresses_are_refused(void)
{
    static const char *const bad[] = {"",
                                      ":80",
                                      "localhost:80",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "127.0.0.1:65536",
                                      "127.0.0.1:080",
                                      "127.0.0.1:8o",
                                      "[::1]",
                                      "::1:80",
                                      "unix:",
                                      "unix:@"};
    world_open(NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int fd = -7;
        CHECK_EQ(env->sock_listen(env->ctx, bad[i], 1, &fd), JZX_ERR_BAD_ADDRESS);
        CHECK_EQ(env->sock_connect(env->ctx, bad[i], &fd), JZX_ERR_BAD_ADDRESS);
        CHECK_EQ(fd, -7);
    }
    world_close();
}

static void test_an_address_has_one_listener_and_port_zero_finds_a_free_one(void)
{
    int a, b, c;
    char first[JZX_ADDRESS_MAX + 1], second[JZX_ADDRESS_MAX + 1];
    world_open(NULL);
    REQUIRE_OK(jzx_sim_listen(sim, "127.0.0.1:80", &a));
    CHECK_EQ(jzx_sim_listen(sim, "127.0.0.1:80", &b), JZX_ERR_ADDRESS_IN_USE);
    jzx_sim_close(sim, a);
    CHECK_OK(jzx_sim_listen(sim, "127.0.0.1:80", &a));
    REQUIRE_OK(env->sock_listen(env->ctx, "[::1]:0", 4, &b));
    REQUIRE_OK(env->sock_listen(env->ctx, "[::1]:0", 4, &c));
    CHECK_OK(env->sock_address(env->ctx, b, 0, first, sizeof first));
    CHECK_OK(env->sock_address(env->ctx, c, 0, second, sizeof second));
    CHECK(strcmp(first, second) != 0);
    CHECK(strncmp(first, "[::1]:", 6) == 0 && strcmp(first, "[::1]:0") != 0);
    CHECK_EQ(env->sock_address(env->ctx, b, 0, first, 3), JZX_ERR_TOO_BIG);
    CHECK_EQ(env->sock_address(env->ctx, b, 1, first, sizeof first), JZX_ERR_CLOSED);
    CHECK_OK(jzx_sim_connect(sim, first, &a));
    env->fd_close(env->ctx, b);
    env->fd_close(env->ctx, c);
    world_close();
}

static void test_tcp_and_unix_connections_carry_bytes_both_ways(void)
{
    static const char *const addresses[] = {"127.0.0.1:80", "[::1]:80", "unix:/run/x", "unix:@x"};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        int listener, ours, theirs;
        size_t n;
        char c, local[JZX_ADDRESS_MAX + 1], peer[JZX_ADDRESS_MAX + 1];
        world_open(NULL);
        pair_open(addresses[i], &listener, &ours, &theirs);
        CHECK_OK(env->fd_write(env->ctx, ours, "a", 1, &n));
        CHECK_OK(jzx_sim_read(sim, theirs, &c, 1, &n));
        CHECK_EQ(c, 'a');
        CHECK_OK(jzx_sim_write(sim, theirs, "b", 1, &n));
        CHECK_OK(env->fd_read(env->ctx, ours, &c, 1, &n));
        CHECK_EQ(c, 'b');
        CHECK_OK(env->sock_address(env->ctx, ours, 1, peer, sizeof peer));
        CHECK_STR(peer, addresses[i]);
        CHECK_OK(env->sock_address(env->ctx, ours, 0, local, sizeof local));
        CHECK_OK(env->sock_address(env->ctx, theirs, 1, peer, sizeof peer));
        CHECK_STR(peer, local);
        env->fd_close(env->ctx, ours);
        world_close();
    }
}

static void test_connects_to_nobody_are_refused(void)
{
    int fd, listener;
    world_open(NULL);
    CHECK_EQ(env->sock_connect(env->ctx, "unix:/none", &fd), JZX_ERR_CONN_REFUSED);
    REQUIRE_EQ(env->sock_connect(env->ctx, "127.0.0.1:81", &fd), JZX_ERR_AGAIN);
    CHECK_EQ(env->sock_connected(env->ctx, fd), JZX_ERR_CONN_REFUSED);
    env->fd_close(env->ctx, fd);
    REQUIRE_OK(jzx_sim_listen(sim, "127.0.0.1:81", &listener));
    CHECK_OK(jzx_sim_refuse(sim, "127.0.0.1:81", 1));
    CHECK_EQ(jzx_sim_connect(sim, "127.0.0.1:81", &fd), JZX_ERR_CONN_REFUSED);
    CHECK_OK(jzx_sim_refuse(sim, "127.0.0.1:81", 0));
    CHECK_OK(jzx_sim_connect(sim, "127.0.0.1:81", &fd));
    CHECK_EQ(jzx_sim_open_fds(sim), 0);
    world_close();
}

static void test_a_listener_on_every_address_is_found_by_port(void)
{
    int listener, fd;
    world_open(NULL);
    REQUIRE_OK(jzx_sim_listen(sim, "0.0.0.0:90", &listener));
    CHECK_OK(jzx_sim_connect(sim, "127.0.0.1:90", &fd));
    CHECK_EQ(jzx_sim_connect(sim, "127.0.0.1:91", &fd), JZX_ERR_CONN_REFUSED);
    CHECK_EQ(jzx_sim_connect(sim, "[::1]:90", &fd), JZX_ERR_CONN_REFUSED);
    world_close();
}

static void test_a_full_backlog_makes_connects_wait(void)
{
    int listener, first, second, accepted;
    world_open(NULL);
    REQUIRE_OK(env->sock_listen(env->ctx, "127.0.0.1:92", 1, &listener));
    REQUIRE_EQ(env->sock_connect(env->ctx, "127.0.0.1:92", &first), JZX_ERR_AGAIN);
    REQUIRE_EQ(env->sock_connect(env->ctx, "127.0.0.1:92", &second), JZX_ERR_AGAIN);
    CHECK_OK(env->sock_connected(env->ctx, first));
    CHECK_EQ(env->sock_connected(env->ctx, second), JZX_ERR_AGAIN);
    CHECK_EQ(jzx_sim_connect(sim, "127.0.0.1:92", &accepted), JZX_ERR_AGAIN);
    REQUIRE_OK(env->sock_accept(env->ctx, listener, &accepted));
    CHECK_OK(env->sock_connected(env->ctx, second));
    env->fd_close(env->ctx, listener);
    CHECK_EQ(env->sock_connected(env->ctx, second), JZX_ERR_CONN_RESET);
    CHECK_EQ(jzx_sim_peer(sim, first), accepted);
    world_close();
}

static void test_a_partition_holds_bytes_and_connects_until_it_is_healed(void)
{
    int listener, ours, theirs, late, more;
    size_t n;
    char bytes[8] = "";
    world_open(NULL);
    pair_open("127.0.0.1:93", &listener, &ours, &theirs);
    CHECK_OK(env->fd_write(env->ctx, ours, "a", 1, &n));
    CHECK_OK(jzx_sim_partition(sim, "127.0.0.1:93", 1));
    CHECK_OK(env->fd_write(env->ctx, ours, "b", 1, &n));
    CHECK_OK(jzx_sim_read(sim, theirs, bytes, sizeof bytes, &n));
    CHECK_EQ(n, 1); /* what had arrived before */
    CHECK_EQ(jzx_sim_read(sim, theirs, bytes, sizeof bytes, &n), JZX_ERR_AGAIN);
    REQUIRE_EQ(env->sock_connect(env->ctx, "127.0.0.1:93", &late), JZX_ERR_AGAIN);
    CHECK_EQ(env->sock_connected(env->ctx, late), JZX_ERR_AGAIN);
    CHECK_EQ(jzx_sim_connect(sim, "127.0.0.1:93", &more), JZX_ERR_TIMED_OUT);
    CHECK_OK(jzx_sim_partition(sim, "127.0.0.1:93", 0));
    CHECK_OK(jzx_sim_read(sim, theirs, bytes, sizeof bytes, &n));
    CHECK_EQ(n, 1);
    CHECK_EQ(bytes[0], 'b');
    CHECK_OK(env->sock_connected(env->ctx, late));
    world_close();
}

static void test_a_peer_behind_a_partition_closes_unnoticed(void)
{
    int listener, ours, theirs;
    size_t n = 5;
    char c;
    world_open(NULL);
    pair_open("unix:/p", &listener, &ours, &theirs);
    CHECK_OK(jzx_sim_partition(sim, "unix:/p", 1));
    jzx_sim_close(sim, theirs);
    CHECK_EQ(env->fd_read(env->ctx, ours, &c, 1, &n), JZX_ERR_AGAIN);
    CHECK_OK(env->fd_write(env->ctx, ours, "x", 1, &n));
    CHECK_OK(jzx_sim_partition(sim, "unix:/p", 0));
    CHECK_EQ(env->fd_write(env->ctx, ours, "x", 1, &n), JZX_ERR_CONN_RESET);
    CHECK_OK(env->fd_read(env->ctx, ours, &c, 1, &n));
    CHECK_EQ(n, 0);
    world_close();
}

static void test_a_reset_reaches_both_ends_and_spares_others(void)
{
    int listener, ours[2], theirs[2];
    size_t n;
    char c;
    world_open(NULL);
    pair_open("127.0.0.1:94", &listener, &ours[0], &theirs[0]);
    CHECK_EQ(env->sock_connect(env->ctx, "127.0.0.1:94", &ours[1]), JZX_ERR_AGAIN);
    REQUIRE_OK(jzx_sim_accept(sim, listener, &theirs[1]));
    CHECK_OK(jzx_sim_write(sim, theirs[0], "x", 1, &n));
    CHECK_OK(jzx_sim_reset_conn(sim, theirs[0]));
    CHECK_EQ(env->fd_read(env->ctx, ours[0], &c, 1, &n), JZX_ERR_CONN_RESET);
    CHECK_EQ(jzx_sim_write(sim, theirs[0], "x", 1, &n), JZX_ERR_CONN_RESET);
    CHECK_OK(env->fd_write(env->ctx, ours[1], "y", 1, &n));
    CHECK_EQ(jzx_sim_reset_address(sim, "127.0.0.1:94"), 1);
    CHECK_EQ(jzx_sim_reset_address(sim, "127.0.0.1:94"), 0);
    CHECK_EQ(env->fd_write(env->ctx, ours[1], "y", 1, &n), JZX_ERR_CONN_RESET);
    world_close();
}

static void test_a_failed_accept_leaves_the_connection_waiting(void)
{
    int listener, client, accepted;
    world_open(NULL);
    REQUIRE_OK(env->sock_listen(env->ctx, "127.0.0.1:95", 8, &listener));
    REQUIRE_OK(jzx_sim_connect(sim, "127.0.0.1:95", &client));
    CHECK_OK(jzx_sim_fail_fd(sim, listener, JZX_ERR_NO_FDS));
    CHECK_EQ(env->sock_accept(env->ctx, listener, &accepted), JZX_ERR_NO_FDS);
    CHECK_OK(env->sock_accept(env->ctx, listener, &accepted));
    CHECK_EQ(env->sock_accept(env->ctx, listener, &accepted), JZX_ERR_AGAIN);
    world_close();
}

static const jzt_test tests[] = {
    {"bad_addresses_are_refused", test_bad_addresses_are_refused},
    {"an_address_has_one_listener_and_port_zero_finds_a_free_one",
     test_an_address_has_one_listener_and_port_zero_finds_a_free_one},
    {"tcp_and_unix_connections_carry_bytes_both_ways",
     test_tcp_and_unix_connections_carry_bytes_both_ways},
    {"connects_to_nobody_are_refused", test_connects_to_nobody_are_refused},
    {"a_listener_on_every_address_is_found_by_port",
     test_a_listener_on_every_address_is_found_by_port},
    {"a_full_backlog_makes_connects_wait", test_a_full_backlog_makes_connects_wait},
    {"a_partition_holds_bytes_and_connects_until_it_is_healed",
     test_a_partition_holds_bytes_and_connects_until_it_is_healed},
    {"a_peer_behind_a_partition_closes_unnoticed", test_a_peer_behind_a_partition_closes_unnoticed},
    {"a_reset_reaches_both_ends_and_spares_others",
     test_a_reset_reaches_both_ends_and_spares_others},
    {"a_failed_accept_leaves_the_connection_waiting",
     test_a_failed_accept_leaves_the_connection_waiting},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
