/* Goal: with the shared library, as users have it, a crash inside libjzx, or in what libjzx called
 * back, ends the process; a crash of an actor does not (R17). The static twin of core/tests
 * cannot show that: there the library and the program are one object. Method: each crash in a child
 * process; the parent looks at how it ended. */
#define _GNU_SOURCE
#include <jzx/all.h>

#include "support/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static void *volatile bad_pointer = (void *)(uintptr_t)0x10;

static __attribute__((noinline)) void crash(void)
{
    *(volatile int *)bad_pointer = 1;
}

static jzx_actor_id target;
static bool failed;

static void note_fail(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)ctx;
    (void)id;
    (void)name;
    failed = reason->kind == JZX_REASON_CRASH && strncmp(reason->text, "SIG", 3) == 0;
}

/* In a child: runs the behavior in a guarded actor. Leaves with 0 when it became a failure. */
static void run_guarded(jzx_behavior_fn behavior)
{
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_observer observer = {.on_actor_fail = note_fail};
    jzx_spawn_opts opts = {.behavior = behavior, .flags = JZX_SPAWN_CRASH_GUARD};
    if (jzx_crash_guard_install() != JZX_OK || jzx_loop_create(NULL, &loop) != JZX_OK ||
        jzx_loop_set_observer(loop, &observer, NULL) != JZX_OK ||
        jzx_spawn(loop, &opts, &id) != JZX_OK || jzx_send_u64(loop, id, 0, 1) != JZX_OK ||
        jzx_loop_run_until_idle(loop) != JZX_OK || jzx_loop_destroy(loop) != JZX_OK) {
        _exit(2);
    }
    _exit(failed ? 0 : 3);
}

/* The same on "loop" of a system, each way of running it once. */
static void run_guarded_in_a_system(jzx_behavior_fn behavior)
{
    for (int way = 0; way < 3; way++) {
        jzx_system *system = NULL;
        jzx_actor_id id = JZX_NOBODY;
        jzx_observer observer = {.on_actor_fail = note_fail};
        jzx_spawn_opts opts = {.behavior = behavior, .flags = JZX_SPAWN_CRASH_GUARD};
        failed = false;
        if (jzx_crash_guard_install() != JZX_OK || jzx_system_create(NULL, &system) != JZX_OK ||
            jzx_system_set_observer(system, &observer, NULL, 0) != JZX_OK ||
            jzx_spawn(jzx_system_loop(system), &opts, &id) != JZX_OK ||
            jzx_send_u64(jzx_system_loop(system), id, 0, 1) != JZX_OK ||
            (way == 0 && jzx_system_run(system) != JZX_OK) ||
            (way == 1 && jzx_system_run_until_idle(system, 120000) != JZX_OK) ||
            (way == 2 && jzx_loop_step(jzx_system_loop(system), 0) != JZX_OK) ||
            jzx_system_destroy(system) != JZX_OK) {
            _exit(2);
        }
        if (!failed) {
            _exit(3);
        }
    }
    _exit(0);
}

static int status_of_run(void (*run)(jzx_behavior_fn behavior), jzx_behavior_fn behavior)
{
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
        run(behavior);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    return status;
}

static int status_of(jzx_behavior_fn behavior)
{
    return status_of_run(run_guarded, behavior);
}

/* Sanitizers turn the signal into an exit status of their own. */
static bool dies_of(jzx_behavior_fn behavior, int signo)
{
    int status = status_of(behavior);
    if (WIFSIGNALED(status)) {
        return WTERMSIG(status) == signo || SANITIZED;
    }
    return SANITIZED && WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 3;
}

static jzx_behavior_result crash_yourself(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    crash();
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result abort_yourself(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    abort();
}

static void test_a_crash_of_an_actor_is_its_failure_R17(void)
{
    if (SANITIZED) {
        jzt_skip("Sanitizers have a say in crashes of their own.");
    }
    CHECK_EQ(status_of(crash_yourself), 0);
    CHECK_EQ(status_of(abort_yourself), 0);
}

static void test_a_crash_in_a_system_is_a_failure_as_well_R17(void)
{
    if (SANITIZED) {
        jzt_skip("Sanitizers have a say in crashes of their own.");
    }
    CHECK_EQ(status_of_run(run_guarded_in_a_system, crash_yourself), 0);
    CHECK_EQ(status_of_run(run_guarded_in_a_system, abort_yourself), 0);
}

static jzx_behavior_result give_a_bad_pointer(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    jzx_loop_counters_sized(ctx->loop, bad_pointer, sizeof(jzx_counters));
    return JZX_BEHAVIOR_OK;
}

static void test_a_crash_inside_the_library_ends_the_process_R17(void)
{
    CHECK(dies_of(give_a_bad_pointer, SIGSEGV));
}

static void drop_badly(void *data)
{
    (void)data;
    crash();
}

static jzx_behavior_result ignore_it(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

/* The second message pushes the first one out, whose drop runs inside jzx_send_with(). */
static jzx_behavior_result send_what_drops_badly(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    int data = 0;
    jzx_spawn_opts spawn = {
        .behavior = ignore_it, .mailbox_cap = 1, .full_policy = JZX_FULL_DROP_OLDEST};
    jzx_send_opts opts = {.data = &data, .drop = drop_badly, .tag = 1};
    if (jzx_spawn(ctx->loop, &spawn, &target) != JZX_OK ||
        jzx_send_with(ctx->loop, target, &opts) != JZX_OK ||
        jzx_send_with(ctx->loop, target, &opts) != JZX_OK) {
        _exit(4);
    }
    return JZX_BEHAVIOR_OK;
}

static void test_a_crash_in_what_the_library_called_ends_the_process_R17(void)
{
    CHECK(dies_of(send_what_drops_badly, SIGSEGV));
}

/* The library says that its caller is wrong, and that is the end: not only of one actor. */
static jzx_behavior_result panic_for_somebody_else(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    jzx_panic(NULL, 1, "whose?");
}

static void test_misuse_ends_the_process_even_in_a_guarded_actor_R35(void)
{
    CHECK(dies_of(panic_for_somebody_else, SIGABRT));
}

static const jzt_test tests[] = {
    {"a_crash_of_an_actor_is_its_failure_R17", test_a_crash_of_an_actor_is_its_failure_R17},
    {"a_crash_in_a_system_is_a_failure_as_well_R17",
     test_a_crash_in_a_system_is_a_failure_as_well_R17},
    {"a_crash_inside_the_library_ends_the_process_R17",
     test_a_crash_inside_the_library_ends_the_process_R17},
    {"a_crash_in_what_the_library_called_ends_the_process_R17",
     test_a_crash_in_what_the_library_called_ends_the_process_R17},
    {"misuse_ends_the_process_even_in_a_guarded_actor_R35",
     test_misuse_ends_the_process_even_in_a_guarded_actor_R35},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
