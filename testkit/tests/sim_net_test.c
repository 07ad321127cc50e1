/* Goal: sockets of actors keep their promises (R27) in a world that cuts, delays, resets and
 * partitions. Method: an echo server and clients in one kit, or two loops in one world. */
#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <stdlib.h>
#include <string.h>

enum { TAG_SERVER = 1, TAG_CLIENT = 2 };

#define ADDRESS "127.0.0.1:7000"

static jzx_behavior_result echo_run(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *event = msg->data;
    if (event->what == JZX_IO_DATA &&
        jzx_conn_write(ctx->loop, event->ref, event->data, event->len) != JZX_OK) {
        return JZX_BEHAVIOR_FAIL;
    }
    if (event->what == JZX_IO_EOF) {
        jzx_conn_shutdown(ctx->loop, event->ref);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_kit *kit_open(const jzx_sim_opts *opts)
{
    jzx_kit *kit;
    jzx_sim_opts seeded = *opts;
    seeded.seed = jzt_seed();
    REQUIRE_OK(jzx_kit_open(&(jzx_kit_opts){.sim = &seeded}, &kit));
    return kit;
}

static void echo_start(jzx_loop *loop)
{
    jzx_actor_id id;
    jzx_io_ref ref;
    jzx_net_opts opts = {.tag = TAG_SERVER, .write_limit = 1 << 20};
    REQUIRE_OK(jzx_spawn(loop, &(jzx_spawn_opts){.behavior = echo_run}, &id));
    REQUIRE_OK(jzx_listen(loop, ADDRESS, id, &opts, &ref));
}

static void test_an_echo_is_exact_over_short_transfers_and_latency(void)
{
    enum { BYTES = 200000 };
    static unsigned char out[BYTES], in[BYTES];
    jzx_kit *kit = kit_open(
        &(jzx_sim_opts){.short_io_permille = 500, .latency_min_us = 10, .latency_max_us = 2000});
    jzt_rng rng = jzt_rng_seeded();
    size_t sent = 0, got = 0;
    int fd;
    for (size_t i = 0; i < BYTES; i++) {
        out[i] = (unsigned char)jzt_rng_next(&rng);
    }
    echo_start(kit->loop);
    REQUIRE_OK(jzx_sim_connect(kit->sim, ADDRESS, &fd));
    for (int step = 0; step < 10000 && got < BYTES; step++) {
        size_t n = 0;
        if (sent < BYTES && jzx_sim_write(kit->sim, fd, out + sent, BYTES - sent, &n) == JZX_OK) {
            sent += n;
        }
        CHECK_OK(jzx_kit_run(kit, 1));
        if (jzx_sim_read(kit->sim, fd, in + got, BYTES - got, &n) == JZX_OK) {
            got += n;
        }
    }
    CHECK_EQ(got, BYTES);
    CHECK(memcmp(in, out, BYTES) == 0);
    CHECK_OK(jzx_sim_shutdown(kit->sim, fd));
    CHECK_OK(jzx_kit_settle(kit));
    size_t n = 1;
    CHECK_OK(jzx_sim_read(kit->sim, fd, in, 1, &n));
    CHECK_EQ(n, 0);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

/* The probe's next event, which must be `what`. */
static const jzx_probe_record *event_expect(jzx_probe *probe, uint32_t what, uint64_t ms)
{
    const jzx_probe_record *record = NULL;
    REQUIRE_OK(jzx_probe_expect(probe, TAG_CLIENT, ms, &record));
    REQUIRE_EQ(record->io.what, what);
    return record;
}

typedef struct client {
    jzx_probe *probe;
    jzx_io_ref conn;
} client;

static client client_start(jzx_loop *loop, uint32_t timeout_ms)
{
    client c;
    jzx_net_opts opts = {.tag = TAG_CLIENT, .connect_timeout_ms = timeout_ms};
    REQUIRE_OK(jzx_probe_spawn(loop, &c.probe));
    REQUIRE_OK(jzx_connect(loop, ADDRESS, jzx_probe_id(c.probe), &opts, &c.conn));
    return c;
}

static void test_a_partition_delays_and_healing_delivers(void)
{
    jzx_kit *kit = kit_open(&(jzx_sim_opts){.latency_min_us = 100, .latency_max_us = 100});
    echo_start(kit->loop);
    client c = client_start(kit->loop, 0);
    event_expect(c.probe, JZX_IO_CONNECTED, 10);
    CHECK_OK(jzx_sim_partition(kit->sim, ADDRESS, 1));
    CHECK_OK(jzx_conn_write(kit->loop, c.conn, "hello", 5));
    CHECK_OK(jzx_probe_expect_none(c.probe, 60000));
    CHECK_OK(jzx_sim_partition(kit->sim, ADDRESS, 0));
    const jzx_probe_record *record = event_expect(c.probe, JZX_IO_DATA, 10);
    CHECK_EQ(record->len, 5);
    CHECK(memcmp(record->bytes, "hello", 5) == 0);
    jzx_probe_free(c.probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static void test_a_connect_into_a_partition_times_out_when_it_said(void)
{
    jzx_kit *kit = kit_open(&(jzx_sim_opts){0});
    echo_start(kit->loop);
    CHECK_OK(jzx_sim_partition(kit->sim, ADDRESS, 1));
    uint64_t before = jzx_sim_now(kit->sim);
    client c = client_start(kit->loop, 2500);
    const jzx_probe_record *record = event_expect(c.probe, JZX_IO_CLOSED, 5000);
    CHECK_EQ(record->io.err, JZX_ERR_TIMED_OUT);
    uint64_t waited = record->time_ns - before;
    CHECK(waited >= UINT64_C(2500000000) && waited < UINT64_C(2503000000));
    jzx_probe_free(c.probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static void test_a_connect_that_is_refused_says_so(void)
{
    jzx_kit *kit = kit_open(&(jzx_sim_opts){0});
    echo_start(kit->loop);
    CHECK_OK(jzx_sim_refuse(kit->sim, ADDRESS, 1));
    client c = client_start(kit->loop, 0);
    CHECK_EQ(event_expect(c.probe, JZX_IO_CLOSED, 10)->io.err, JZX_ERR_CONN_REFUSED);
    CHECK_EQ(jzx_conn_write(kit->loop, c.conn, "x", 1), JZX_ERR_NO_SUCH_REF);
    jzx_probe_free(c.probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static void test_a_reset_closes_the_connection_with_its_error(void)
{
    jzx_kit *kit = kit_open(&(jzx_sim_opts){0});
    echo_start(kit->loop);
    client c = client_start(kit->loop, 0);
    event_expect(c.probe, JZX_IO_CONNECTED, 10);
    CHECK_OK(jzx_kit_settle(kit));
    CHECK_EQ(jzx_sim_reset_address(kit->sim, ADDRESS), 1);
    CHECK_EQ(event_expect(c.probe, JZX_IO_CLOSED, 10)->io.err, JZX_ERR_CONN_RESET);
    CHECK_OK(jzx_probe_expect_none(c.probe, 1000));
    jzx_probe_free(c.probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static void test_a_watched_pipe_tells_when_it_can_be_read(void)
{
    jzx_kit *kit = kit_open(&(jzx_sim_opts){.latency_min_us = 500, .latency_max_us = 500});
    jzx_probe *probe;
    const jzx_probe_record *record = NULL;
    jzx_io_ref ref;
    int fd[2];
    size_t n;
    char c;
    REQUIRE_OK(jzx_sim_pipe(kit->sim, fd));
    REQUIRE_OK(jzx_probe_spawn(kit->loop, &probe));
    REQUIRE_OK(jzx_watch_fd(kit->loop, fd[0], jzx_probe_id(probe), JZX_IO_READ, TAG_CLIENT, &ref));
    CHECK_OK(jzx_probe_expect_none(probe, 1000));
    CHECK_OK(jzx_sim_write(kit->sim, fd[1], "x", 1, &n));
    REQUIRE_OK(jzx_probe_expect(probe, TAG_CLIENT, 1, &record));
    CHECK_EQ(record->io.what, JZX_IO_READ);
    CHECK_EQ(record->io.fd, fd[0]);
    CHECK_OK(jzx_fd_read(kit->loop, fd[0], &c, 1, &n));
    CHECK_EQ(c, 'x');
    CHECK_OK(jzx_kit_settle(kit));
    jzx_probe_forget(probe);
    CHECK_OK(jzx_probe_expect_none(probe, 1000));
    CHECK_OK(jzx_unwatch_fd(kit->loop, ref));
    jzx_probe_free(probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static void test_two_loops_talk_through_one_world(void)
{
    jzx_sim *sim;
    jzx_fault *fault;
    jzx_loop *loops[2];
    jzx_sim_opts opts = {.seed = jzt_seed(), .latency_min_us = 50, .latency_max_us = 300};
    REQUIRE_OK(jzx_sim_create(&opts, &sim));
    REQUIRE_OK(jzx_fault_create(jzx_sim_env(sim), &fault));
    jzx_config config = {.env = jzx_fault_env(fault), .allocator = jzx_fault_allocator(fault)};
    REQUIRE_OK(jzx_loop_create(&config, &loops[0]));
    REQUIRE_OK(jzx_loop_create(&config, &loops[1]));
    echo_start(loops[0]);
    client c = client_start(loops[1], 0);
    CHECK_OK(jzx_conn_write(loops[1], c.conn, "ping", 4)); /* waits for the connection */
    CHECK_OK(jzx_sim_run_all(sim, loops, 2, 20));
    REQUIRE_EQ(jzx_probe_count(c.probe), 2);
    CHECK_EQ(jzx_probe_at(c.probe, 0)->io.what, JZX_IO_CONNECTED);
    CHECK_EQ(jzx_probe_at(c.probe, 1)->io.what, JZX_IO_DATA);
    CHECK(memcmp(jzx_probe_at(c.probe, 1)->bytes, "ping", 4) == 0);
    CHECK_OK(jzx_conn_close(loops[1], c.conn, 0));
    CHECK_OK(jzx_sim_settle_all(sim, loops, 2));
    for (int i = 0; i < 2; i++) {
        CHECK_STR(jzx_testkit_check(loops[i]), NULL);
        CHECK_OK(jzx_loop_destroy(loops[i]));
    }
    jzx_probe_free(c.probe);
    CHECK_EQ(jzx_sim_open_fds(sim), 0);
    CHECK_STR(jzx_sim_check(sim), NULL);
    CHECK_EQ(jzx_fault_leaked(fault, NULL), 0);
    jzx_fault_destroy(fault);
    jzx_sim_destroy(sim);
}

static const jzt_test tests[] = {
    {"an_echo_is_exact_over_short_transfers_and_latency",
     test_an_echo_is_exact_over_short_transfers_and_latency},
    {"a_partition_delays_and_healing_delivers", test_a_partition_delays_and_healing_delivers},
    {"a_connect_into_a_partition_times_out_when_it_said",
     test_a_connect_into_a_partition_times_out_when_it_said},
    {"a_connect_that_is_refused_says_so", test_a_connect_that_is_refused_says_so},
    {"a_reset_closes_the_connection_with_its_error",
     test_a_reset_closes_the_connection_with_its_error},
    {"a_watched_pipe_tells_when_it_can_be_read", test_a_watched_pipe_tells_when_it_can_be_read},
    {"two_loops_talk_through_one_world", test_two_loops_talk_through_one_world},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
