/* Goal: debug builds stop misuse at the call that does it, with a sentence (R35, R17).
 * Method: each misuse in a child process; the parent reads its stderr and how it ended. */
#define _GNU_SOURCE
#include <jzx/all.h>

#include "support/check.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs the misuse in a child. True when it aborted and said so. */
static bool aborts_saying(void (*misuse)(void), const char *words)
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        misuse();
        _exit(0);
    }
    close(ends[1]);
    char said[4096] = {0};
    size_t len = 0;
    ssize_t n;
    while (len < sizeof said - 1 && (n = read(ends[0], said + len, sizeof said - 1 - len)) > 0) {
        len += (size_t)n;
    }
    close(ends[0]);
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    /* Sanitizers turn the signal into an exit status of their own. */
    bool aborted = (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) ||
                   (WIFEXITED(status) && WEXITSTATUS(status) != 0);
    return aborted && strstr(said, words) != NULL;
}

typedef struct trespasser {
    jzx_actor_id victim;
} trespasser;

static jzx_loop *shared_loop;

static void *send_without_a_sender(void *arg)
{
    trespasser *self = arg;
    jzx_err err = jzx_send_u64(shared_loop, self->victim, 1, 1);
    return (void *)(intptr_t)err;
}

/* The loop is inside a step while the other thread calls: no race, just the wrong thread. */
static jzx_behavior_result start_thread(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    trespasser self = {.victim = ctx->self};
    pthread_t thread;
    if (pthread_create(&thread, NULL, send_without_a_sender, &self) == 0) {
        pthread_join(thread, NULL);
    }
    return JZX_BEHAVIOR_STOP;
}

static void send_from_a_wrong_thread(void)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = start_thread};
    if (jzx_loop_create(NULL, &shared_loop) == JZX_OK &&
        jzx_spawn(shared_loop, &opts, &id) == JZX_OK &&
        jzx_send_u64(shared_loop, id, 1, 1) == JZX_OK) {
        (void)!jzx_loop_run(shared_loop);
    }
}

static void test_a_send_from_a_wrong_thread_aborts_with_a_sentence_R35(void)
{
    CHECK(aborts_saying(send_from_a_wrong_thread, "use jzx_send_async() there"));
}

static void panic_outside(void)
{
    jzx_panic(NULL, 1, "nobody is running");
}

static void test_a_panic_outside_of_a_behavior_aborts_with_a_sentence_R17(void)
{
    CHECK(aborts_saying(panic_outside, "outside of an actor's code"));
}

static const jzt_test tests[] = {
    {"a_send_from_a_wrong_thread_aborts_with_a_sentence_R35",
     test_a_send_from_a_wrong_thread_aborts_with_a_sentence_R35},
    {"a_panic_outside_of_a_behavior_aborts_with_a_sentence_R17",
     test_a_panic_outside_of_a_behavior_aborts_with_a_sentence_R17},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
