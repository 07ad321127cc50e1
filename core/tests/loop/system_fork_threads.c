/* Goal: a forked child forgets a system (R29): jzx_system_abandon() ends, whatever the threads of
 * the parent were doing; no code of the program runs; nothing of the parent's is touched. Method:
 * fork at rest, inside an actor and under load; the child counts what is left and says so by its
 * exit code; an alarm ends one that hangs. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include <jzx/all.h>
#include <jzx/blocking.h>
#include <jzx/control.h>
#include <jzx/system.h>
#include <jzx/testkit.h>

#include "support/check.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GO = 1, FORK = 2, JOB = 3, HOLD = 4, CHILD_SECONDS = 60, PATIENCE_MS = 60000 };
/* How a child ends; 0: all is well. */
enum { CODE_RAN = 1, LEFT_MEMORY = 2, LEFT_FDS = 3, NOT_REFUSED = 4, WROTE = 5 };

static const char *const places[] = {"loop", "pinned", "pool", "desk"};
enum { PLACES = sizeof places / sizeof places[0] };

/* Descriptors of a loop: what their links in /proc say. */
static size_t count_loop_fds(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char path[300];
        char to[64] = "";
        (void)snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t len = readlink(path, to, sizeof to - 1);
        count += len > 0 && (strstr(to, "[eventpoll]") != NULL || strstr(to, "[eventfd]") != NULL ||
                             strstr(to, "socket:") != NULL);
    }
    closedir(dir);
    return count;
}

/* The state of a thread: the letter behind the last parenthesis of its stat. 'X': it is gone. */
static char state_of(const char *tid)
{
    char path[300];
    char text[512] = "";
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/stat", tid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return 'X';
    }
    size_t len = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    const char *end = len > 0 ? strrchr(text, ')') : NULL;
    return end != NULL && end[1] == ' ' ? end[2] : 'X';
}

/* Waits until every other thread of the process sleeps, in its poller or where it was told to stay.
 */
static void others_sleep(void)
{
    char self[32];
    (void)snprintf(self, sizeof self, "%ld", (long)gettid());
    for (bool busy = true; busy;) {
        busy = false;
        DIR *dir = opendir("/proc/self/task");
        for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
            char state = entry->d_name[0] == '.' || strcmp(entry->d_name, self) == 0
                             ? 'X'
                             : state_of(entry->d_name);
            busy = busy || (state != 'S' && state != 'X');
        }
        closedir(dir);
    }
}

typedef struct stage {
    jzx_system *system;
    jzx_loop *loop;
    jzx_sender *sender;
    jzx_fault *fault;
    jzx_actor_id ids[PLACES];
    _Atomic uint64_t handled;
    _Atomic uint64_t ended;
    _Atomic bool over;
    _Atomic bool held;
    size_t fds; /* of loops, before */
} stage;

static void check_child(pid_t pid)
{
    int status = 0;
    REQUIRE_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), 0);
}

/* In the child. */
_Noreturn static void abandon(stage *s, bool freed)
{
    uint64_t ended = atomic_load(&s->ended);
    alarm(CHILD_SECONDS);
    jzx_system_abandon(s->system);
    int code = 0;
    if (atomic_load(&s->ended) != ended) {
        code = CODE_RAN;
    } else if (jzx_send_async_u64(s->sender, s->ids[0], 0, GO) == JZX_OK && freed) {
        code = NOT_REFUSED;
    } else if (count_loop_fds() != s->fds) {
        code = LEFT_FDS;
    }
    if (freed) {
        jzx_sender_release(s->sender);
        code = code == 0 && jzx_fault_leaked(s->fault, NULL) != 0 ? LEFT_MEMORY : code;
    }
    _exit(code);
}

/* A thread is at rest once it is in its poller; the system only knows that it is idle, and /proc
 * that it sleeps. The child finds out, so another one is made until it finds the system at rest. */
static void fork_at_rest(stage *s)
{
    fflush(NULL);
    for (int tries = 0;; tries++) {
        others_sleep();
        pid_t pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) {
            abandon(s, true);
        }
        int status = 0;
        REQUIRE_EQ(waitpid(pid, &status, 0), pid);
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (code != LEFT_MEMORY && code != NOT_REFUSED) {
            CHECK_EQ(code, 0);
            return;
        }
        REQUIRE(tries < 1000); /* never at rest: it is not, then */
    }
}

static jzx_behavior_result obey(jzx_context *ctx, const jzx_message *msg)
{
    stage *s = ctx->state;
    atomic_fetch_add(&s->handled, 1);
    if (msg->tag == FORK) {
        fork_at_rest(s);
    }
    while (msg->tag == HOLD && !atomic_load(&s->over)) {
        atomic_store(&s->held, true);
        (void)usleep(1000);
    }
    return JZX_BEHAVIOR_OK;
}

static void count_end(jzx_context *ctx)
{
    stage *s = ctx->state;
    atomic_fetch_add(&s->ended, 1);
}

/* On every dispatcher an actor, and one that is a child of another dispatcher's. */
static jzx_behavior_result have_child(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    jzx_spawn_opts opts = {
        .behavior = obey, .state = arg, .deinit = count_end, .dispatcher = "pool"};
    return jzx_spawn(ctx->loop, &opts, NULL) == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

static void open_stage(stage *s, bool counted)
{
    s->fds = count_loop_fds();
    jzx_config config = {0};
    if (counted) {
        REQUIRE_OK(jzx_fault_create(NULL, &s->fault));
        config.allocator = jzx_fault_allocator(s->fault);
    }
    jzx_dispatcher_spec desk = {.name = "desk", .kind = JZX_DISPATCHER_PINNED};
    jzx_system_config sc = {
        .loop = &config, .dispatchers = &desk, .dispatcher_count = 1, .pool_workers = 2};
    REQUIRE_OK(jzx_system_create(&sc, &s->system));
    s->loop = jzx_system_loop(s->system);
    REQUIRE_OK(jzx_system_sender(s->system, 0, &s->sender));
    for (int i = 0; i < PLACES; i++) {
        jzx_spawn_opts opts = {.behavior = obey,
                               .state = s,
                               .init = have_child,
                               .deinit = count_end,
                               .dispatcher = places[i]};
        REQUIRE_OK(jzx_system_spawn(s->system, &opts, &s->ids[i]));
    }
    REQUIRE_OK(jzx_system_run_until_idle(s->system, PATIENCE_MS));
}

/* The parent goes on: all of its actors answer and end. */
static void close_stage(stage *s)
{
    for (int i = 0; i < PLACES; i++) {
        uint64_t before = atomic_load(&s->handled);
        REQUIRE_OK(jzx_send_async_u64(s->sender, s->ids[i], 0, GO));
        while (atomic_load(&s->handled) == before) {
            REQUIRE_OK(jzx_loop_step(s->loop, 1000000));
        }
    }
    CHECK_OK(jzx_system_shutdown(s->system, PATIENCE_MS, NULL));
    CHECK_EQ(atomic_load(&s->ended), 2 * PLACES);
    CHECK_OK(jzx_system_destroy(s->system));
    jzx_sender_release(s->sender);
    if (s->fault != NULL) {
        CHECK_EQ(jzx_fault_leaked(s->fault, NULL), 0);
        jzx_fault_destroy(s->fault);
    }
    CHECK_EQ(count_loop_fds(), s->fds);
}

static void test_a_child_abandons_a_system_at_rest_R29(void)
{
    stage s = {0};
    open_stage(&s, true);
    for (int i = 0; i < PLACES; i++) {
        REQUIRE_OK(jzx_send_async_u64(s.sender, s.ids[i], 0, GO));
    }
    REQUIRE_OK(jzx_system_run_until_idle(s.system, PATIENCE_MS));
    REQUIRE_OK(jzx_send_u64(s.loop, s.ids[0], 0, GO)); /* one is under way */
    fork_at_rest(&s);
    close_stage(&s);
}

static void test_a_child_forked_inside_an_actor_abandons_the_system_R29(void)
{
    stage s = {0};
    open_stage(&s, true);
    REQUIRE_OK(jzx_send_u64(s.loop, s.ids[0], 0, FORK));
    REQUIRE_OK(jzx_system_run_until_idle(s.system, PATIENCE_MS));
    close_stage(&s);
}

/* The numbers of descriptors that were closed are used again: a thread that slept on one of them is
 * not to be woken any more. */
_Noreturn static void send_after_abandon(stage *s)
{
    enum { FILES = 64 };
    int files[FILES];
    int code = 0;
    alarm(CHILD_SECONDS);
    jzx_system_abandon(s->system);
    for (int i = 0; i < FILES; i++) {
        files[i] = memfd_create("mine", 0);
    }
    for (int i = 0; i < PLACES; i++) {
        jzx_err err = jzx_send_async_u64(s->sender, s->ids[i], 0, GO);
        code = code == 0 && err != JZX_ERR_LOOP_CLOSED && err != JZX_ERR_NO_SUCH_ACTOR ? NOT_REFUSED
                                                                                       : code;
    }
    for (int i = 0; i < FILES; i++) {
        struct stat st;
        code = fstat(files[i], &st) != 0 || st.st_size != 0 ? WROTE : code;
    }
    _exit(code);
}

static void test_a_child_that_leaves_memory_behind_writes_to_no_closed_descriptor_R29(void)
{
    stage s = {0};
    open_stage(&s, false);
    REQUIRE_OK(jzx_send_async_u64(s.sender, s.ids[3], 0, HOLD));
    while (!atomic_load(&s.held)) {
        (void)usleep(1000);
    }
    others_sleep();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        send_after_abandon(&s);
    }
    check_child(pid);
    atomic_store(&s.over, true);
    close_stage(&s);
}

/* In its own process it is a mistake, and changes nothing. */
static void test_a_system_is_not_abandoned_where_it_was_made(void)
{
    stage s = {0};
    open_stage(&s, true);
    jzx_system_abandon(s.system);
    jzx_system_abandon(NULL);
    close_stage(&s);
}

/* The threads it would wait for are the parent's: it says so at once and does nothing. */
static void test_a_system_is_not_destroyed_in_a_forked_child_R29(void)
{
    stage s = {0};
    open_stage(&s, true);
    fflush(NULL);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        uint64_t ended = atomic_load(&s.ended);
        int refused = jzx_system_destroy(s.system) == JZX_ERR_FORKED;
        jzx_system_abandon(s.system);
        _exit(!refused ? NOT_REFUSED : atomic_load(&s.ended) != ended ? CODE_RAN : 0);
    }
    check_child(pid);
    close_stage(&s);
}

/* Threads that are in the middle of everything: sends, spawns, stops, looks. */
static void *make_noise(void *arg)
{
    stage *s = arg;
    for (uint64_t i = 0; !atomic_load(&s->over); i++) {
        jzx_spawn_opts opts = {.behavior = obey, .state = s, .dispatcher = places[i % PLACES]};
        jzx_actor_id id = JZX_NOBODY;
        jzx_counters counters;
        jzx_err err = jzx_send_async_u64(s->sender, s->ids[i % PLACES], 0, GO);
        CHECK(err == JZX_OK || err == JZX_ERR_MAILBOX_FULL);
        if (i % 16 == 0 && jzx_system_spawn(s->system, &opts, &id) == JZX_OK) {
            (void)jzx_system_stop(s->system, id);
        }
        jzx_system_counters(s->system, &counters);
    }
    return NULL;
}

static void test_a_child_abandons_a_system_under_load_R29(void)
{
    enum { NOISY = 2, FORKS = JZT_SANITIZED ? 20 : 100 };
    stage s = {0};
    pthread_t threads[NOISY];
    open_stage(&s, false);
    for (int i = 0; i < NOISY; i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, make_noise, &s), 0);
    }
    fflush(NULL);
    for (int i = 0; i < FORKS; i++) {
        REQUIRE_OK(jzx_loop_step(s.loop, 100000));
        pid_t pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) {
            alarm(CHILD_SECONDS);
            jzx_system_abandon(s.system);
            _exit(0);
        }
        check_child(pid);
    }
    atomic_store(&s.over, true);
    for (int i = 0; i < NOISY; i++) {
        pthread_join(threads[i], NULL);
    }
    REQUIRE_OK(jzx_system_run_until_idle(s.system, PATIENCE_MS));
    close_stage(&s);
}

/* Other parts with threads of their own: blocking work that runs, and the control plane. */
static _Atomic uint32_t begun;
static _Atomic uint32_t go_on;

static void *take_long(void *arg)
{
    atomic_store(&begun, 1);
    while (atomic_load(&go_on) == 0) {
        (void)usleep(1000);
    }
    return arg;
}

static jzx_behavior_result give_work(jzx_context *ctx, const jzx_message *msg)
{
    stage *s = ctx->state;
    if (msg->tag == GO) {
        CHECK_OK(jzx_run_blocking(ctx, take_long, NULL, JOB));
    } else {
        atomic_fetch_add(&s->handled, 1);
    }
    return JZX_BEHAVIOR_OK;
}

static void test_a_child_leaves_blocking_work_and_control_to_the_parent_R29(void)
{
    stage s = {0};
    jzx_control *control = NULL;
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/jzx-fork-%d.sock", (int)getpid());
    open_stage(&s, false);
    jzx_control_opts opts = {.path = path};
    REQUIRE_OK(jzx_control_start(s.loop, &opts, &control));
    jzx_spawn_opts worker = {.behavior = give_work, .state = &s};
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn(s.loop, &worker, &id));
    REQUIRE_OK(jzx_send_u64(s.loop, id, 0, GO));
    while (atomic_load(&begun) == 0) {
        REQUIRE_OK(jzx_loop_step(s.loop, 1000000));
    }
    fflush(NULL);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        s.fds++; /* the control's wake-up stays: a handler for its dump signal may be installed */
        abandon(&s, false);
    }
    check_child(pid);
    CHECK_EQ(access(path, F_OK), 0); /* the parent's socket is still there */
    uint64_t before = atomic_load(&s.handled);
    atomic_store(&go_on, 1);
    while (atomic_load(&s.handled) == before) {
        REQUIRE_OK(jzx_loop_step(s.loop, 1000000));
    }
    jzx_control_stop(control);
    close_stage(&s);
}

static const jzt_test tests[] = {
    {"a_child_abandons_a_system_at_rest_R29", test_a_child_abandons_a_system_at_rest_R29},
    {"a_child_forked_inside_an_actor_abandons_the_system_R29",
     test_a_child_forked_inside_an_actor_abandons_the_system_R29},
    {"a_child_that_leaves_memory_behind_writes_to_no_closed_descriptor_R29",
     test_a_child_that_leaves_memory_behind_writes_to_no_closed_descriptor_R29},
    {"a_system_is_not_abandoned_where_it_was_made",
     test_a_system_is_not_abandoned_where_it_was_made},
    {"a_system_is_not_destroyed_in_a_forked_child_R29",
     test_a_system_is_not_destroyed_in_a_forked_child_R29},
    {"a_child_abandons_a_system_under_load_R29", test_a_child_abandons_a_system_under_load_R29},
    {"a_child_leaves_blocking_work_and_control_to_the_parent_R29",
     test_a_child_leaves_blocking_work_and_control_to_the_parent_R29},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
