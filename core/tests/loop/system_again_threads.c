/* Goal: a system can be used again and again: what ended leaves no descriptor behind, and a stop
 * that was asked for ends one run, not two (R2, R22, R29, R31). Method: real threads; descriptors
 * are counted in /proc/self/fd. Runs under TSan. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include <jzx/all.h>
#include <jzx/system.h>
#include <jzx/testkit.h>

#include "support/check.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { GO = 1, END = 2, STOP_RUN = 3, PATIENCE_MS = 60000 };

static size_t count_fds(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    REQUIRE(dir != NULL);
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

typedef struct counts {
    _Atomic uint64_t handled;
    _Atomic uint64_t ended;
} counts;

static jzx_behavior_result obey(jzx_context *ctx, const jzx_message *msg)
{
    counts *c = ctx->state;
    atomic_fetch_add(&c->handled, 1);
    if (msg->tag == STOP_RUN) {
        jzx_system_request_stop(jzx_loop_system(ctx->loop));
    }
    return msg->tag == END ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

static void count_end(jzx_context *ctx)
{
    counts *c = ctx->state;
    atomic_fetch_add(&c->ended, 1);
}

static jzx_system *new_system(void)
{
    jzx_system *system = NULL;
    REQUIRE_OK(jzx_system_create(NULL, &system));
    return system;
}

static jzx_actor_id start(jzx_system *system, counts *c, const char *where)
{
    jzx_spawn_opts opts = {.behavior = obey, .state = c, .deinit = count_end, .dispatcher = where};
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_system_spawn(system, &opts, &id));
    return id;
}

static void tell(jzx_system *system, jzx_actor_id id, uint32_t tag)
{
    REQUIRE_OK(jzx_send_u64(jzx_system_loop(system), id, 0, tag));
}

/* Runs until nobody is left, and the threads of those who were are gone as well. */
static void run_out(jzx_system *system)
{
    REQUIRE_OK(jzx_system_run(system));
    while (jzx_system_dispatchers(system, NULL, 0) > 1) {
        REQUIRE_OK(jzx_loop_step(jzx_system_loop(system), 1000000));
    }
}

/* R2: the slots of an ended dispatcher stay, its descriptors do not. */
static void test_pinned_actors_that_ended_keep_no_descriptor(void)
{
    enum { AT_ONCE = 100 };
    jzx_system *system = new_system();
    size_t before = count_fds();
    counts c = {0};
    jzx_actor_id ids[AT_ONCE];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < AT_ONCE; i++) {
            ids[i] = start(system, &c, "pinned");
        }
        CHECK(count_fds() >= before + AT_ONCE);
        for (int i = 0; i < AT_ONCE; i++) {
            tell(system, ids[i], END);
        }
        run_out(system);
        CHECK_EQ(count_fds(), before);
    }
    CHECK_EQ(atomic_load(&c.ended), 3 * AT_ONCE);
    CHECK_OK(jzx_system_destroy(system));
}

static void test_two_thousand_pinned_actors_one_after_the_other_keep_no_descriptor(void)
{
    enum { LIVES = JZT_SANITIZED ? 200 : 2000 };
    jzx_system *system = new_system();
    size_t before = count_fds();
    size_t most = 0;
    counts c = {0};
    for (int i = 0; i < LIVES; i++) {
        tell(system, start(system, &c, "pinned"), END);
        run_out(system);
        size_t now = count_fds();
        most = now > most ? now : most;
    }
    CHECK_EQ(atomic_load(&c.ended), LIVES);
    CHECK_EQ(most, before);
    CHECK_OK(jzx_system_destroy(system));
}

/* A sender outlives its loop; it keeps no descriptor of it. */
static void test_a_sender_keeps_no_descriptor_of_a_loop_that_is_gone(void)
{
    size_t before = count_fds();
    jzx_loop *loop = NULL;
    jzx_sender *sender = NULL;
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    REQUIRE_OK(jzx_sender_open(loop, 0, &sender));
    CHECK_OK(jzx_loop_destroy(loop));
    CHECK_EQ(count_fds(), before);
    CHECK_EQ(jzx_send_async_u64(sender, 1, 0, GO), JZX_ERR_LOOP_CLOSED);
    jzx_sender_release(sender);
}

/* Threads that wake dispatchers while those go: nobody writes to a descriptor that was closed,
 * which by then may be a file of the program's; TSan sees who does. */
typedef struct waker {
    jzx_sender *sender;
    _Atomic jzx_actor_id to;
    _Atomic bool over;
} waker;

static void *keep_waking(void *arg)
{
    waker *w = arg;
    while (!atomic_load(&w->over)) {
        jzx_err err = jzx_send_async_u64(w->sender, atomic_load(&w->to), 0, GO);
        CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING ||
              err == JZX_ERR_MAILBOX_FULL);
    }
    return NULL;
}

static void test_sends_to_pinned_actors_that_come_and_go_R2(void)
{
    enum { LIVES = JZT_SANITIZED ? 100 : 1000, WAKERS = 3 };
    jzx_system *system = new_system();
    counts c = {0};
    waker w = {0};
    pthread_t threads[WAKERS];
    REQUIRE_OK(jzx_system_sender(system, JZX_SENDER_SHARED, &w.sender));
    atomic_store(&w.to, start(system, &c, "pinned"));
    for (int i = 0; i < WAKERS; i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, keep_waking, &w), 0);
    }
    for (int i = 0; i < LIVES; i++) {
        REQUIRE_OK(jzx_system_stop(system, atomic_load(&w.to)));
        REQUIRE_OK(jzx_loop_step(jzx_system_loop(system), 1000000));
        atomic_store(&w.to, start(system, &c, "pinned"));
    }
    atomic_store(&w.over, true);
    for (int i = 0; i < WAKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_OK(jzx_system_destroy(system));
    CHECK_EQ(atomic_load(&c.ended), LIVES + 1);
    jzx_sender_release(w.sender);
}

/* Stops. */

static void test_a_stop_request_ends_one_run(void)
{
    jzx_system *system = new_system();
    counts c = {0};
    jzx_actor_id id = start(system, &c, "loop");
    for (uint64_t i = 0; i < 3; i++) {
        tell(system, id, GO);
        tell(system, id, STOP_RUN);
        tell(system, id, STOP_RUN); /* two requests during a run are one */
        CHECK_OK(jzx_system_run(system));
        CHECK_EQ(atomic_load(&c.handled), 3 * (i + 1));
    }
    CHECK_OK(jzx_system_destroy(system));
}

/* R22: who asked for a stop got it when all were shut down. */
static void test_a_stop_request_before_a_shutdown_does_not_end_the_next_run(void)
{
    jzx_system *system = new_system();
    counts c = {0};
    (void)start(system, &c, "loop");
    jzx_system_request_stop(system);
    CHECK_OK(jzx_system_shutdown(system, 0, NULL));
    CHECK_EQ(atomic_load(&c.ended), 1);
    tell(system, start(system, &c, "loop"), END);
    CHECK_OK(jzx_system_run(system));
    CHECK_EQ(atomic_load(&c.ended), 2);
    CHECK_OK(jzx_system_destroy(system));
}

static void test_a_stop_request_before_a_shutdown_of_a_loop_does_not_end_the_next_run(void)
{
    jzx_loop *loop = NULL;
    counts c = {0};
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = obey, .state = &c, .deinit = count_end};
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    REQUIRE_OK(jzx_spawn(loop, &opts, NULL));
    jzx_loop_request_stop(loop);
    CHECK_OK(jzx_loop_shutdown(loop, 0, NULL));
    CHECK_EQ(jzx_loop_done(loop), 1); /* nobody is left */
    REQUIRE_OK(jzx_spawn(loop, &opts, &id));
    CHECK_EQ(jzx_loop_done(loop), 0);
    REQUIRE_OK(jzx_send_u64(loop, id, 0, END));
    CHECK_OK(jzx_loop_run(loop));
    CHECK_EQ(atomic_load(&c.ended), 2);
    CHECK_OK(jzx_loop_destroy(loop));
}

/* R25: a shutdown with a stop pending waits, as any other does, instead of going round. */
static jzx_behavior_result leave_late(jzx_context *ctx, const jzx_signal *signal)
{
    if (signal->kind != JZX_SIGNAL_PRE_STOP) {
        return JZX_BEHAVIOR_OK;
    }
    jzx_system_request_stop(jzx_loop_system(ctx->loop));
    REQUIRE_OK(jzx_send_after(ctx->loop, ctx->self, 50, NULL, 0, END, NULL));
    return JZX_BEHAVIOR_DEFER;
}

static void test_a_shutdown_with_a_stop_pending_waits_without_work_R25(void)
{
    jzx_system *system = new_system();
    counts c = {0};
    jzx_spawn_opts opts = {
        .behavior = obey, .state = &c, .deinit = count_end, .on_signal = leave_late};
    REQUIRE_OK(jzx_system_spawn(system, &opts, NULL));
    REQUIRE_OK(jzx_system_run_until_idle(system, PATIENCE_MS)); /* it is RUNNING */
    CHECK_OK(jzx_system_shutdown(system, PATIENCE_MS, NULL));
    jzx_counters counters;
    jzx_system_counters(system, &counters);
    CHECK(counters.ticks < 100);
    tell(system, start(system, &c, "loop"), END);
    CHECK_OK(jzx_system_run(system));
    CHECK_EQ(atomic_load(&c.ended), 2);
    CHECK_OK(jzx_system_destroy(system));
}

static const jzt_test tests[] = {
    {"pinned_actors_that_ended_keep_no_descriptor",
     test_pinned_actors_that_ended_keep_no_descriptor},
    {"two_thousand_pinned_actors_one_after_the_other_keep_no_descriptor",
     test_two_thousand_pinned_actors_one_after_the_other_keep_no_descriptor},
    {"a_sender_keeps_no_descriptor_of_a_loop_that_is_gone",
     test_a_sender_keeps_no_descriptor_of_a_loop_that_is_gone},
    {"sends_to_pinned_actors_that_come_and_go_R2", test_sends_to_pinned_actors_that_come_and_go_R2},
    {"a_stop_request_ends_one_run", test_a_stop_request_ends_one_run},
    {"a_stop_request_before_a_shutdown_does_not_end_the_next_run",
     test_a_stop_request_before_a_shutdown_does_not_end_the_next_run},
    {"a_stop_request_before_a_shutdown_of_a_loop_does_not_end_the_next_run",
     test_a_stop_request_before_a_shutdown_of_a_loop_does_not_end_the_next_run},
    {"a_shutdown_with_a_stop_pending_waits_without_work_R25",
     test_a_shutdown_with_a_stop_pending_waits_without_work_R25},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
