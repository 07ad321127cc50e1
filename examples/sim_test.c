/* Two programs in one simulated world, without a kit: two loops that exchange messages over a
 * network that does not exist, in virtual time. The same seed gives the same run, to the last
 * event, and a digest proves it. Build with libjzx_testkit. Run: ./sim_test */
#include <jzx/jzx.h>
#include <jzx/testkit.h>

#include <stdio.h>
#include <stdlib.h>

enum { IO = 1, TICK = 2 };

static void check(int holds, const char *fact)
{
    if (!holds) {
        fprintf(stderr, "failed: %s\n", fact);
        exit(1);
    }
}

/* Sends a byte every second, and counts what comes back. */
static jzx_behavior_result client(jzx_context *ctx, const jzx_message *msg)
{
    uint64_t *state = ctx->state; /* the connection, and how many echoes came */
    const jzx_io_event *ev = msg->data;
    if (msg->tag == TICK) {
        return jzx_conn_write(ctx->loop, state[0], "x", 1) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                     : JZX_BEHAVIOR_FAIL;
    }
    state[1] += ev->what == JZX_IO_DATA ? ev->len : 0;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result server(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *ev = msg->data;
    if (ev->what == JZX_IO_DATA) {
        return jzx_conn_write(ctx->loop, ev->ref, ev->data, ev->len) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                               : JZX_BEHAVIOR_FAIL;
    }
    return JZX_BEHAVIOR_OK;
}

/* An hour of two loops; returns what the world made of it. */
static uint64_t play(uint64_t seed, uint64_t *out_echoes)
{
    jzx_sim *sim = NULL;
    jzx_loop *loops[2] = {NULL, NULL};
    jzx_actor_id a = JZX_NOBODY, b = JZX_NOBODY;
    uint64_t state[2] = {0, 0};
    jzx_sim_opts world = {.seed = seed, .latency_min_us = 100, .latency_max_us = 90000};
    check(jzx_sim_create(&world, &sim) == JZX_OK && jzx_sim_seed(sim) == seed, "a world");
    jzx_config config = {.env = jzx_sim_env(sim)};
    jzx_spawn_opts serves = {.behavior = server}, asks = {.behavior = client, .state = state};
    jzx_net_opts tagged = {.tag = IO};
    jzx_timer_opts every = {.delay_ms = 1000, .period_ms = 1000, .tag = TICK};
    uint64_t begin = jzx_sim_now(sim);
    check(jzx_loop_create(&config, &loops[0]) == JZX_OK &&
              jzx_loop_create(&config, &loops[1]) == JZX_OK &&
              jzx_spawn(loops[0], &serves, &a) == JZX_OK &&
              jzx_spawn(loops[1], &asks, &b) == JZX_OK &&
              jzx_listen(loops[0], "10.0.0.1:7", a, &tagged, NULL) == JZX_OK &&
              jzx_connect(loops[1], "10.0.0.1:7", b, &tagged, &state[0]) == JZX_OK,
          "both programs start");
    check(jzx_sim_settle_all(sim, loops, 2) == JZX_OK, "they are connected, and nothing is left");
    check(jzx_timer_start(loops[1], b, &every, NULL) == JZX_OK, "the client has a timer");
    check(jzx_sim_run_all(sim, loops, 2, 3600000) == JZX_OK, "an hour");
    check((jzx_sim_now(sim) - begin) / 1000000000 >= 3600, "which passed in the world only");
    check(jzx_sim_open_fds(sim) > 0, "the loops have descriptors");
    check(jzx_loop_destroy(loops[1]) == JZX_OK && jzx_loop_destroy(loops[0]) == JZX_OK, "the end");
    check(jzx_sim_open_fds(sim) == 0 && jzx_sim_check(sim) == NULL, "none is left, none misused");
    if (getenv("TRACE") != NULL) {
        jzx_sim_trace_print(sim, stderr); /* the last events, for somebody who looks for a fault */
    }
    uint64_t digest = jzx_sim_digest(sim);
    *out_echoes = state[1];
    jzx_sim_destroy(sim);
    return digest;
}

int main(void)
{
    uint64_t first = 0, again = 0, other = 0;
    uint64_t a = play(7, &first), b = play(7, &again), c = play(8, &other);
    printf("%u echoes in an hour\n", (unsigned)first);
    printf("the same seed: %s\n", a == b && first == again ? "the same run" : "another run");
    printf("another seed: %s\n", a != c ? "another run" : "the same run");
    return a == b && a != c ? 0 : 1;
}
