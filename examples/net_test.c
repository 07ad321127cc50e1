/* A test of a server and of a client against a network that misbehaves on request: partitions,
 * resets, refusals and errors, all at the moment the test chooses. The test itself plays the other
 * side. Build with libjzx_testkit. Run: ./net_test */
#include <jzx/jzx.h>
#include <jzx/testkit.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HERE "10.0.0.1:80"
#define THERE "10.0.0.2:90"

static void check(int holds, const char *fact)
{
    if (!holds) {
        fprintf(stderr, "failed: %s\n", fact);
        exit(1);
    }
    printf("ok: %s\n", fact);
}

/* The program under test. */
static jzx_behavior_result echo(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *ev = msg->data;
    if (ev->what == JZX_IO_DATA) { /* a client that has left is none of our failures */
        (void)!jzx_conn_write(ctx->loop, ev->ref, ev->data, ev->len);
    } else if (ev->what == JZX_IO_EOF) {
        (void)jzx_conn_shutdown(ctx->loop, ev->ref);
    }
    return JZX_BEHAVIOR_OK;
}

static void test_server(jzx_kit *kit)
{
    int fd = -1, other = -1;
    char buf[16] = "";
    size_t n = 0;
    check(jzx_sim_connect(kit->sim, HERE, &fd) == JZX_OK &&
              jzx_sim_write(kit->sim, fd, "hello", 5, &n) == JZX_OK && jzx_kit_run(kit, 100) == 0 &&
              jzx_sim_read(kit->sim, fd, buf, sizeof buf, &n) == JZX_OK && n == 5 &&
              memcmp(buf, "hello", 5) == 0,
          "a client is answered");
    check(jzx_sim_partition(kit->sim, HERE, 1) == JZX_OK &&
              jzx_sim_write(kit->sim, fd, "cut", 3, &n) == JZX_OK && jzx_kit_run(kit, 100) == 0 &&
              jzx_sim_read(kit->sim, fd, buf, sizeof buf, &n) == JZX_ERR_AGAIN,
          "nothing gets through a partition");
    check(jzx_sim_partition(kit->sim, HERE, 0) == JZX_OK && jzx_kit_run(kit, 100) == 0 &&
              jzx_sim_read(kit->sim, fd, buf, sizeof buf, &n) == JZX_OK && n == 3,
          "and everything arrives when it is over");
    check(jzx_sim_shutdown(kit->sim, fd) == JZX_OK && jzx_kit_run(kit, 100) == 0 &&
              jzx_sim_read(kit->sim, fd, buf, sizeof buf, &n) == JZX_OK && n == 0,
          "an end is answered by an end");
    jzx_sim_close(kit->sim, fd);
    check(jzx_sim_connect(kit->sim, HERE, &fd) == JZX_OK && jzx_kit_run(kit, 100) == 0 &&
              jzx_sim_fail_fd(kit->sim, jzx_sim_peer(kit->sim, fd), JZX_ERR_IO) == JZX_OK &&
              jzx_sim_write(kit->sim, fd, "x", 1, &n) == JZX_OK && jzx_kit_run(kit, 100) == 0 &&
              jzx_sim_connect(kit->sim, HERE, &other) == JZX_OK,
          "a read error costs one connection, not the server");
    check(jzx_kit_run(kit, 100) == 0 && jzx_sim_reset_address(kit->sim, HERE) >= 1,
          "and neither does a reset of all of them");
}

static void test_client(jzx_kit *kit, jzx_probe *probe)
{
    int listener = -1, fd = -1;
    const jzx_probe_record *got = NULL;
    jzx_actor_id id = jzx_probe_id(probe);
    check(jzx_sim_listen(kit->sim, THERE, &listener) == JZX_OK &&
              jzx_connect(kit->loop, THERE, id, NULL, NULL) == JZX_OK &&
              jzx_probe_expect(probe, 0, 1000, &got) == JZX_OK &&
              got->io.what == JZX_IO_CONNECTED && jzx_sim_accept(kit->sim, listener, &fd) == JZX_OK,
          "a client connects to the test");
    check(jzx_sim_reset_conn(kit->sim, fd) == JZX_OK &&
              jzx_probe_expect(probe, 0, 1000, &got) == JZX_OK && got->io.what == JZX_IO_CLOSED &&
              got->io.err == JZX_ERR_CONN_RESET,
          "and hears of a reset");
    check(jzx_sim_refuse(kit->sim, THERE, 1) == JZX_OK &&
              jzx_connect(kit->loop, THERE, id, NULL, NULL) == JZX_OK &&
              jzx_probe_expect(probe, 0, 1000, &got) == JZX_OK &&
              got->io.err == JZX_ERR_CONN_REFUSED,
          "and of a refusal");
}

int main(void)
{
    jzx_kit *kit = NULL;
    jzx_probe *probe = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_kit_opts opts = {.sim = &(jzx_sim_opts){.seed = 1}};
    check(jzx_kit_open(&opts, &kit) == JZX_OK && jzx_probe_spawn(kit->loop, &probe) == JZX_OK &&
              jzx_spawn(kit->loop, &(jzx_spawn_opts){.behavior = echo}, &id) == JZX_OK &&
              jzx_listen(kit->loop, HERE, id, NULL, NULL) == JZX_OK,
          "a server in a simulated world");
    test_server(kit);
    test_client(kit, probe);
    jzx_probe_free(probe);
    return jzx_kit_close(kit) == NULL ? 0 : 1;
}
