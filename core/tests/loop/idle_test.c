/* Goal: a loop with nothing to do sleeps in one blocking wait and uses no processor time, and one
 * that is busy without I/O makes no system call per message (R25, R23). Method: this program runs
 * itself as the puppet in a child process, under strace where that is allowed, and counts the
 * calls between two markers. The first test takes five seconds of real time. */
/* program of its own: it runs itself as the puppet. */
/* not on: pinned pool; it counts the system calls of the one thread that runs the loop. Idle pools
 * are in loop/pool_threads.c and loop/system_test.c. */
#define _GNU_SOURCE
#include "puppet.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GO = 1, WINDOW_MS = 5000, MESSAGES = 1000000, BUSY_CALLS_MAX = 64 };

/* Threads of a pool or a pinned loop are woken for the run and parked after it, and for some
 * milliseconds somebody stands by: a few calls for each of them, and none per millisecond. */
static unsigned calls_of_threads(void)
{
    return jzt_on_threads() ? 64 + 64 * jzt_on_pool() : 0;
}

/* A call that nothing else here makes, so that it can be found in a trace. */
static void marker(void)
{
    (void)syscall(SYS_getpgid, 0);
}

static jzx_loop *subject_loop(void)
{
    jzx_loop *loop = NULL;
    if (jzx_loop_create(NULL, &loop) != JZX_OK) {
        exit(2);
    }
    return loop;
}

static jzx_behavior_result stop_on_timer(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    if (msg->kind == JZX_KIND_TIMER) {
        jzx_loop_request_stop(ctx->loop);
    }
    return JZX_BEHAVIOR_OK;
}

/* Many actors, a descriptor, a sender, far timers: everything a program may have, and no work. */
static int be_idle(void)
{
    jzx_loop *loop = subject_loop();
    rig r = {.loop = loop};
    puppet *s = puppet_start(&r, stop_on_timer, NULL);
    jzx_sender *sender = NULL;
    int pair[2];
    for (int i = 0; i < 1000; i++) {
        jzx_spawn_opts opts = {.behavior = puppet_behavior, .state = s};
        jzx_actor_id id;
        REQUIRE_OK(jzx_spawn(loop, &opts, &id));
        REQUIRE_OK(jzx_send_u64(loop, id, 0, GO));
        REQUIRE_OK(jzx_send_after(loop, id, 3600000, NULL, 0, GO, NULL));
    }
    REQUIRE_OK(jzx_sender_open(loop, JZX_SENDER_SHARED, &sender));
    REQUIRE_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    REQUIRE_OK(jzx_watch_fd(loop, pair[0], s->id, JZX_IO_READ, GO, NULL));
    REQUIRE_OK(jzx_loop_run_until_idle(loop));
    (void)after(&r, s, WINDOW_MS, GO);
    jzx_counters before, now;
    struct rusage used_before, used;
    getrusage(RUSAGE_SELF, &used_before);
    jzx_loop_counters(loop, &before);
    marker();
    jzx_err err = jzx_loop_run(loop);
    marker();
    jzx_loop_counters(loop, &now);
    getrusage(RUSAGE_SELF, &used);
    /* One wait, ended by the timer; nobody woke it in between. */
    bool once = now.wakeups - before.wakeups == 1 && now.polls - before.polls == 1 &&
                now.ticks - before.ticks == 1 && now.wakes_sent == 0;
    if (jzt_on_threads()) {
        once = now.wakeups - before.wakeups <= calls_of_threads() &&
               now.polls - before.polls <= calls_of_threads() &&
               now.ticks - before.ticks <= calls_of_threads();
    }
    long cpu_us = (used.ru_utime.tv_sec - used_before.ru_utime.tv_sec) * 1000000 +
                  used.ru_utime.tv_usec - used_before.ru_utime.tv_usec +
                  (used.ru_stime.tv_sec - used_before.ru_stime.tv_sec) * 1000000 +
                  used.ru_stime.tv_usec - used_before.ru_stime.tv_usec;
    if (!once || cpu_us > 20000) {
        fprintf(stderr, "    wakeups %llu, polls %llu, ticks %llu, processor time %ld us\n",
                (unsigned long long)(now.wakeups - before.wakeups),
                (unsigned long long)(now.polls - before.polls),
                (unsigned long long)(now.ticks - before.ticks), cpu_us);
    }
    jzx_sender_release(sender);
    CHECK_OK(jzx_loop_destroy(loop));
    puppet_free(s);
    return err == JZX_OK && once && cpu_us <= 20000 ? 0 : 1;
}

static jzx_behavior_result pass_on(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const puppet *next = self->arg;
    if (msg->u64 == 0) {
        jzx_loop_request_stop(ctx->loop);
        return JZX_BEHAVIOR_OK;
    }
    return jzx_send_u64(ctx->loop, next->id, msg->u64 - 1, GO) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                         : JZX_BEHAVIOR_FAIL;
}

static int be_busy(void)
{
    jzx_loop *loop = subject_loop();
    rig r = {.loop = loop};
    puppet *a = puppet_start(&r, pass_on, NULL);
    puppet *b = puppet_start(&r, pass_on, NULL);
    a->arg = b;
    b->arg = a;
    (void)after(&r, a, 3600000, GO);
    REQUIRE_OK(jzx_send_u64(loop, a->id, MESSAGES, GO));
    marker();
    jzx_err err = jzx_loop_run(loop);
    marker();
    bool all = a->handled + b->handled == MESSAGES + 1;
    CHECK_OK(jzx_loop_destroy(loop));
    puppet_free(a);
    puppet_free(b);
    return err == JZX_OK && all ? 0 : 1;
}

static char self_path[4096];

/* Starts this program as a puppet, traced if a file is named. */
static pid_t start(const char *role, const char *trace)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* it cannot look for leaks while traced */
        if (trace == NULL) {
            execl(self_path, self_path, "--subject", role, (char *)NULL);
        } else {
            execlp("strace", "strace", "-f", "-qq", "-o", trace, self_path, "--subject", role,
                   (char *)NULL);
        }
        _exit(127);
    }
    return child;
}

static int wait_for(pid_t child)
{
    int status = 0;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool can_trace(void)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(null, 2);
        execlp("strace", "strace", "-f", "-qq", "-o", "/dev/null", "true", (char *)NULL);
        _exit(127);
    }
    return wait_for(child) == 0;
}

typedef struct calls {
    unsigned markers;
    unsigned between; /* calls between the markers */
    unsigned waits;   /* of these, those that may block */
    char first[512];
} calls;

/* With -f a call that blocks while another thread runs is written in two lines; the second says
 * "resumed" and is no call of its own. */
static calls count_calls(const char *path)
{
    calls c = {0};
    char line[1024];
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strstr(line, "getpgid(") != NULL) {
            c.markers++;
        } else if (c.markers == 1 && strchr(line, '(') != NULL && strstr(line, "resumed") == NULL) {
            c.between++;
            c.waits += strstr(line, "epoll_") != NULL;
            if (c.between <= 4) {
                strncat(c.first, line, sizeof c.first - strlen(c.first) - 1);
            }
        }
    }
    fclose(file);
    (void)unlink(path);
    return c;
}

static void trace_name(char *out, size_t cap, const char *role)
{
    snprintf(out, cap, "/tmp/jzx_idle_%ld_%s", (long)getpid(), role);
}

static void test_an_idle_loop_makes_one_blocking_wait(void)
{
    bool traced = can_trace();
    char path[128];
    trace_name(path, sizeof path, "idle");
    CHECK_EQ(wait_for(start("idle", traced ? path : NULL)), 0);
    if (!traced) {
        jzt_skip("strace cannot attach here; the counters of the child were checked.");
    }
    calls c = count_calls(path);
    REQUIRE_EQ(c.markers, 2);
    unsigned more = calls_of_threads();
    CHECK(c.waits >= 1 && c.waits <= 1 + more);
    /* The getrusage() calls are outside; so the wait is all there is. */
    CHECK(c.between >= 1 && c.between <= 1 + more);
    if (c.between > 1 + more) {
        fprintf(stderr, "    %s\n", c.first);
    }
}

static void test_a_busy_loop_makes_no_system_call_per_message(void)
{
    if (!can_trace()) {
        jzt_skip("strace cannot attach here.");
    }
    char path[128];
    trace_name(path, sizeof path, "busy");
    CHECK_EQ(wait_for(start("busy", path)), 0);
    calls c = count_calls(path);
    REQUIRE_EQ(c.markers, 2);
    /* In a pool of several the others look every millisecond whether they can help. */
    unsigned most = jzt_on_pool() > 1 ? MESSAGES / 20 : BUSY_CALLS_MAX + calls_of_threads();
    CHECK(c.between <= most);
    if (c.between > most) {
        fprintf(stderr, "    %u calls, such as %s\n", c.between, c.first);
    }
}

static void test_a_send_from_elsewhere_wakes_only_a_sleeper(void)
{
    jzx_loop *loop = NULL;
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    rig r = {.loop = loop};
    puppet *s = puppet_start(&r, NULL, NULL);
    jzx_sender *sender = NULL;
    REQUIRE_OK(jzx_sender_open(loop, JZX_SENDER_SHARED, &sender));
    for (int i = 0; i < 1000; i++) {
        REQUIRE_OK(jzx_send_async_u64(sender, s->id, 0, GO)); /* nobody is asleep */
    }
    CHECK_EQ(rig_counters(&r).wakes_sent, 0);
    CHECK_EQ(rig_counters(&r).async_sent, 1000);
    REQUIRE_OK(jzx_loop_run_until_idle(loop));
    CHECK_EQ(s->handled, 1000);
    CHECK_EQ(rig_counters(&r).async_arrived, 1000);
    /* The workers of a pool wake each other in a run. */
    uint64_t wakes = rig_counters(&r).wakes_sent;
    CHECK(jzt_on_pool() > 1 || wakes == 0);
    CHECK(jzx_loop_fd(loop) >= 0); /* from now on "not inside a step" is asleep */
    for (int i = 0; i < 1000; i++) {
        REQUIRE_OK(jzx_send_async_u64(sender, s->id, 0, GO));
    }
    CHECK_EQ(rig_counters(&r).wakes_sent, wakes + 1); /* of many senders one makes the call */
    REQUIRE_OK(jzx_loop_step(loop, 0));
    CHECK(s->handled > 1000);
    jzx_sender_release(sender);
    CHECK_OK(jzx_loop_destroy(loop));
    puppet_free(s);
}

static const jzt_test tests[] = {
    {"an_idle_loop_makes_one_blocking_wait", test_an_idle_loop_makes_one_blocking_wait},
    {"a_busy_loop_makes_no_system_call_per_message",
     test_a_busy_loop_makes_no_system_call_per_message},
    {"a_send_from_elsewhere_wakes_only_a_sleeper", test_a_send_from_elsewhere_wakes_only_a_sleeper},
};

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--subject") == 0) {
        return strcmp(argv[2], "idle") == 0 ? be_idle() : be_busy();
    }
    ssize_t len = readlink("/proc/self/exe", self_path, sizeof self_path - 1);
    if (len < 0) {
        return 2;
    }
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
