/* Goal: every failing allocation and every failing call to the world, in a scenario that uses all
 * of them, leaves no leak, no lost message (R5) and a clear error. Method: sweeps over an echo
 * between actors with timers, notices, signals, children and paths. */
#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <signal.h>
#include <stdlib.h>

enum { TAG_GO = 1, TAG_SERVER = 2, TAG_CLIENT = 3, TAG_EVENT = 4, TAG_TICK = 5 };

#define ADDRESS "127.0.0.1:7000"

typedef struct play {
    jzx_actor_id small; /* a mailbox of two */
    unsigned rooms;
    unsigned drops;
} play;

static jzx_behavior_result server_run(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *event = msg->data;
    if (msg->kind != JZX_KIND_IO) {
        return JZX_BEHAVIOR_OK;
    }
    if (event->what == JZX_IO_DATA) {
        (void)!jzx_conn_write(ctx->loop, event->ref, event->data, event->len);
    } else if (event->what == JZX_IO_EOF) {
        jzx_conn_close(ctx->loop, event->ref, 0);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result client_run(jzx_context *ctx, const jzx_message *msg)
{
    static const char text[100000] = "more than a socket takes at once";
    play *p = ctx->state;
    if (msg->kind == JZX_KIND_NOTICE) {
        p->rooms++;
        return JZX_BEHAVIOR_OK;
    }
    if (msg->kind != JZX_KIND_IO) {
        return jzx_notify_room(ctx->loop, p->small) == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
    }
    const jzx_io_event *event = msg->data;
    if (event->what == JZX_IO_CONNECTED) {
        (void)!jzx_conn_write(ctx->loop, event->ref, text, sizeof text);
        jzx_conn_shutdown(ctx->loop, event->ref);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result slow_run(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result panic_run(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    jzx_panic(ctx, 7, "on purpose");
}

static void send_owned(jzx_loop *loop, jzx_actor_id to)
{
    void *data = malloc(3);
    REQUIRE(data != NULL);
    jzx_send_opts opts = {
        .data = data, .len = 3, .drop = free, .flags = JZX_SEND_CONSUME, .tag = TAG_GO};
    (void)!jzx_send_with(loop, to, &opts);
}

static jzx_actor_id spawn(jzx_loop *loop, jzx_behavior_fn behavior, play *p, uint32_t cap)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = behavior, .state = p, .mailbox_cap = cap, .name = "actor"};
    (void)!jzx_spawn(loop, &opts, &id);
    return id;
}

static void messages(jzx_loop *loop, play *p)
{
    jzx_actor_id failing = spawn(loop, panic_run, p, 0);
    p->small = spawn(loop, slow_run, p, 2);
    for (uint32_t i = 0; i < 4; i++) {
        static const char big[300];
        send_owned(loop, p->small);
        send_owned(loop, failing);
        (void)!jzx_send_copy(loop, failing, big, sizeof big, TAG_GO);
        (void)!jzx_send_after(loop, p->small, i * 7, NULL, 0, TAG_TICK, NULL);
    }
    (void)!jzx_timer_start(loop, p->small,
                           &(jzx_timer_opts){.delay_ms = 1, .period_ms = 9, .tag = TAG_TICK}, NULL);
}

static void sockets(jzx_loop *loop, play *p)
{
    jzx_io_ref ref;
    jzx_actor_id server = spawn(loop, server_run, p, 0);
    jzx_actor_id client = spawn(loop, client_run, p, 0);
    (void)!jzx_send_u64(loop, client, 0, TAG_GO);
    (void)!jzx_listen(loop, ADDRESS, server, &(jzx_net_opts){.tag = TAG_SERVER}, &ref);
    (void)!jzx_listen(loop, "unix:/a", server, &(jzx_net_opts){.tag = TAG_SERVER}, &ref);
    (void)!jzx_connect(loop, ADDRESS, client, &(jzx_net_opts){.tag = TAG_CLIENT}, &ref);
    (void)!jzx_connect(loop, "unix:/a", client, &(jzx_net_opts){.tag = TAG_CLIENT}, &ref);
}

static void events(jzx_kit *kit, play *p)
{
    jzx_io_ref ref;
    int32_t pid;
    int pair[2];
    size_t n;
    jzx_actor_id id = spawn(kit->loop, slow_run, p, 0);
    REQUIRE_OK(jzx_sim_child_start(kit->sim, &pid));
    REQUIRE_OK(jzx_sim_pipe(kit->sim, pair));
    (void)!jzx_watch_signal(kit->loop, SIGHUP, id, TAG_EVENT, &ref);
    (void)!jzx_watch_child(kit->loop, pid, id, TAG_EVENT, &ref);
    (void)!jzx_watch_path(kit->loop, "/srv", JZX_PATH_CREATED, id, TAG_EVENT, &ref);
    if (jzx_watch_fd(kit->loop, pair[0], id, JZX_IO_READ, TAG_EVENT, &ref) == JZX_OK) {
        REQUIRE_OK(jzx_sim_write(kit->sim, pair[1], "x", 1, &n));
        (void)!jzx_kit_run(kit, 1);
        jzx_unwatch_fd(kit->loop, ref);
    }
    jzx_sim_raise(kit->sim, SIGHUP);
    jzx_sim_child_exit(kit->sim, pid, 1, 0);
    jzx_sim_path_change(kit->sim, "/srv", JZX_PATH_CREATED, "new");
}

static const char *scenario(jzx_kit *kit, void *arg)
{
    play p = {0};
    const char *wrong = NULL;
    (void)arg;
    messages(kit->loop, &p);
    sockets(kit->loop, &p);
    events(kit, &p);
    for (int i = 0; i < 6 && wrong == NULL; i++) {
        (void)!jzx_kit_run(kit, 15);
        wrong = jzx_testkit_check(kit->loop);
    }
    return wrong;
}

static void sweep_with(const jzx_sim_opts *sim)
{
    jzx_sweep_report report = {0};
    jzx_sim_opts seeded = *sim;
    seeded.seed = jzt_seed();
    CHECK_STR(jzx_fault_sweep(&(jzx_kit_opts){.sim = &seeded}, scenario, NULL, 20000, &report),
              NULL);
    CHECK(report.allocs > 10 && report.allocs_forever > 10);
    CHECK(report.calls > 50 && report.calls_forever > 50);
}

static void test_every_failure_is_survived_without_loss(void)
{
    sweep_with(&(jzx_sim_opts){.flags = JZX_SIM_FIFO});
}

static void test_every_failure_is_survived_in_a_slow_and_choppy_world(void)
{
    sweep_with(
        &(jzx_sim_opts){.short_io_permille = 200, .latency_min_us = 10, .latency_max_us = 3000});
}

static const jzt_test tests[] = {
    {"every_failure_is_survived_without_loss", test_every_failure_is_survived_without_loss},
    {"every_failure_is_survived_in_a_slow_and_choppy_world",
     test_every_failure_is_survived_in_a_slow_and_choppy_world},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
