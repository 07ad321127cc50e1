/* Goal: a loop as a guest: embedding by descriptor and deadline (R29), fork, exec, descriptors,
 * which poller it takes, and what its config allows. Method: the real pollers, poll(2) as the host,
 * child processes where something is broken on purpose. */
#define _GNU_SOURCE
#include "puppet.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GO = 1, FDS = 1024 };

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    REQUIRE(poll(&p, 1, 0) >= 0);
    return (p.revents & POLLIN) != 0;
}

static void step(rig *r)
{
    REQUIRE_OK(jzx_loop_step(r->loop, 0));
}

static void needs_system(void)
{
    if (rig_current->env == NULL) {
        jzt_skip("This is about the real system.");
    }
}

static jzx_behavior_result read_some(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const jzx_io_event *event = msg->data;
    if (msg->kind == JZX_KIND_IO && event->what == JZX_IO_READ && self->number == 0) {
        char buf[8];
        size_t n;
        jzx_err err = jzx_fd_read(ctx->loop, event->fd, buf, sizeof buf, &n);
        CHECK(err == JZX_OK || err == JZX_ERR_AGAIN); /* readiness is a hint */
    }
    return JZX_BEHAVIOR_OK;
}

static void test_the_descriptor_is_readable_for_mail_and_io_only(void)
{
    rig r = rig_open(NULL);
    int fd = jzx_loop_fd(r.loop);
    if (r.sim != NULL) {
        CHECK_EQ(fd, -1);
        CHECK_EQ(jzx_loop_fd(NULL), -1);
        rig_close(&r);
        return;
    }
    REQUIRE(fd >= 0);
    puppet *s = puppet_start(&r, read_some, NULL);
    jzx_sender *sender = NULL;
    int pair[2];
    REQUIRE_OK(jzx_sender_open(r.loop, JZX_SENDER_SHARED, &sender));
    REQUIRE_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    CHECK(!readable(fd));
    step(&r);
    CHECK(!readable(fd));
    CHECK_EQ(jzx_loop_timeout_ms(r.loop), -1);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(jzx_send_async_u64(sender, s->id, 0, GO));
        CHECK_OK(jzx_send_async_u64(sender, s->id, 0, GO));
        CHECK(readable(fd));
        CHECK_EQ(jzx_loop_timeout_ms(r.loop), 0);
        step(&r);
        CHECK_EQ(s->handled, 2 * (uint64_t)i + 2);
        CHECK(!readable(fd));
        CHECK_EQ(jzx_loop_timeout_ms(r.loop), -1);
    }
    REQUIRE_OK(jzx_watch_fd(r.loop, pair[0], s->id, JZX_IO_READ, GO, NULL));
    step(&r);
    CHECK(!readable(fd));
    REQUIRE_EQ(write(pair[1], "x", 1), 1);
    CHECK(readable(fd));
    step(&r);
    CHECK_EQ(s->handled, 7);
    CHECK(!readable(fd));
    s->number = 1; /* leaves the byte where it is: level-triggered */
    REQUIRE_EQ(write(pair[1], "x", 1), 1);
    for (uint64_t before = s->handled, i = 1; i <= 3; i++) {
        CHECK(readable(fd));
        step(&r);
        CHECK_EQ(s->handled, before + i);
    }
    jzx_sender_release(sender);
    rig_close(&r);
    close(pair[0]);
    close(pair[1]);
    puppet_free(s);
}

static void test_left_over_work_makes_the_descriptor_readable(void)
{
    jzx_config config = {.max_actors_per_tick = 1};
    needs_system();
    rig r = rig_open(&config);
    int fd = jzx_loop_fd(r.loop);
    puppet *a = puppet_start(&r, NULL, NULL);
    puppet *b = puppet_start(&r, NULL, NULL);
    tell(&r, a, GO);
    tell(&r, b, GO);
    CHECK_EQ(jzx_loop_timeout_ms(r.loop), 0); /* after calls outside of a step: ask */
    CHECK_EQ(jzx_loop_deadline(r.loop), 0);
    step(&r);
    CHECK_EQ(a->handled + b->handled, 1);
    CHECK(readable(fd));
    step(&r);
    CHECK_EQ(a->handled + b->handled, 2);
    CHECK(!readable(fd));
    jzx_loop_request_stop(r.loop);
    CHECK(readable(fd));
    step(&r);
    CHECK(!readable(fd));
    rig_close(&r);
    puppet_free(a);
    puppet_free(b);
}

static void test_the_timeout_is_the_deadline_rounded_up(void)
{
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, NULL, NULL);
    CHECK_EQ(jzx_loop_deadline(r.loop), JZX_TIMEOUT_INFINITE);
    CHECK_EQ(jzx_loop_timeout_ms(r.loop), -1);
    uint64_t before = jzx_loop_now(r.loop);
    jzx_timer_id id = after(&r, s, 1000, GO);
    uint64_t deadline = jzx_loop_deadline(r.loop);
    CHECK(deadline >= before + 1000 * MS);
    CHECK(deadline <= jzx_loop_now(r.loop) + 1001 * MS);
    uint64_t now = jzx_loop_now(r.loop);
    int timeout = jzx_loop_timeout_ms(r.loop);
    uint64_t later = jzx_loop_now(r.loop);
    CHECK((uint64_t)timeout * MS + later >= deadline); /* never too early */
    CHECK((uint64_t)timeout * MS + now < deadline + MS);
    (void)after(&r, s, 5, GO); /* an earlier one counts */
    CHECK(jzx_loop_timeout_ms(r.loop) <= 6);
    CHECK_OK(jzx_cancel_timer(r.loop, id));
    REQUIRE_OK(jzx_kit_run(r.kit, 8));
    CHECK_EQ(s->handled, 1);
    CHECK_EQ(jzx_loop_timeout_ms(r.loop), -1);
    jzx_timer_opts far = {.delay_ms = JZX_TIMER_DELAY_MAX_MS, .tag = GO};
    REQUIRE_OK(jzx_timer_start(r.loop, s->id, &far, NULL));
    CHECK_EQ(jzx_loop_timeout_ms(r.loop), INT_MAX);
    rig_close(&r);
    puppet_free(s);
}

enum { THREADS = 3, SENDS = 3000 };

typedef struct producer {
    jzx_sender *sender;
    jzx_actor_id to;
} producer;

static void *produce(void *arg)
{
    producer *p = arg;
    for (int i = 0; i < SENDS; i++) {
        while (jzx_send_async_u64(p->sender, p->to, 0, GO) == JZX_ERR_MAILBOX_FULL) {
            sched_yield();
        }
    }
    jzx_sender_release(p->sender);
    return NULL;
}

static jzx_behavior_result stop_at_the_end(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)ctx;
    (void)msg;
    return self->handled == THREADS * SENDS ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

/* The host waits for ever where it may: a lost wake-up would hang it, and the test would time out.
 */
static void test_a_host_loop_misses_nothing(void)
{
    needs_system();
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, stop_at_the_end, NULL);
    producer p[THREADS];
    pthread_t threads[THREADS];
    struct pollfd host = {.fd = jzx_loop_fd(r.loop), .events = POLLIN};
    for (int i = 0; i < THREADS; i++) {
        p[i].to = s->id;
        REQUIRE_OK(jzx_sender_open(r.loop, JZX_SENDER_SINGLE, &p[i].sender));
        REQUIRE(pthread_create(&threads[i], NULL, produce, &p[i]) == 0);
    }
    while (!jzx_loop_done(r.loop)) {
        REQUIRE(poll(&host, 1, jzx_loop_timeout_ms(r.loop)) >= 0);
        step(&r);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(s->handled, THREADS * SENDS);
    rig_close(&r);
    puppet_free(s);
}

static void *ask_to_stop(void *arg)
{
    jzx_loop_request_stop(arg);
    return NULL;
}

static void test_a_stop_from_another_thread_ends_the_wait(void)
{
    needs_system();
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, NULL, NULL);
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, ask_to_stop, r.loop) == 0);
        CHECK_OK(jzx_loop_run(r.loop));
        pthread_join(thread, NULL);
    }
    rig_close(&r);
    puppet_free(s);
}

static int wait_for(pid_t child)
{
    int status = 0;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void test_a_child_that_abandons_the_loop_leaves_the_parents_alone(void)
{
    needs_system();
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, read_some, NULL);
    int pair[2];
    jzx_sender *sender = NULL;
    jzx_io_ref ref, sig;
    REQUIRE_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    REQUIRE_OK(jzx_watch_fd(r.loop, pair[0], s->id, JZX_IO_READ, 2, &ref));
    REQUIRE_OK(jzx_watch_signal(r.loop, SIGUSR2, s->id, 4, &sig));
    REQUIRE_OK(jzx_sender_open(r.loop, JZX_SENDER_SHARED, &sender));
    (void)after(&r, s, 1, 3);
    tell(&r, s, GO);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        jzx_loop_abandon(r.loop);
        _exit(s->deinits == 0 && s->handled == 0 ? 0 : 1); /* no actor code ran */
    }
    CHECK_EQ(wait_for(child), 0);
    REQUIRE_EQ(write(pair[1], "x", 1), 1);
    CHECK_OK(jzx_send_async_u64(sender, s->id, 0, 5));
    REQUIRE_EQ(kill(getpid(), SIGUSR2), 0);
    for (int i = 0; i < 1000 && s->handled < 5; i++) {
        REQUIRE_OK(jzx_loop_step(r.loop, 5 * MS));
    }
    uint32_t seen = 0;
    for (size_t i = 0; i < s->log_len; i++) {
        seen |= 1u << s->log[i].tag;
    }
    CHECK_EQ(seen, 0x3E); /* message, descriptor, timer, signal and thread */
    jzx_sender_release(sender);
    rig_close(&r);
    close(pair[0]);
    close(pair[1]);
    puppet_free(s);
}

static size_t list_fds(bool *open_fds)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    REQUIRE(dir != NULL);
    memset(open_fds, 0, FDS * sizeof *open_fds);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(dir) && fd < FDS) {
            open_fds[fd] = true;
            count++;
        }
    }
    closedir(dir);
    return count;
}

static void test_every_descriptor_is_close_on_exec_and_closed_in_the_end(void)
{
    static bool before[FDS], during[FDS];
    needs_system();
    size_t count = list_fds(before);
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, NULL, NULL);
    jzx_io_ref listener;
    char address[JZX_ADDRESS_MAX + 1];
    REQUIRE_OK(jzx_listen(r.loop, "127.0.0.1:0", s->id, NULL, &listener));
    REQUIRE_OK(jzx_net_address(r.loop, listener, 0, address, sizeof address));
    REQUIRE_OK(jzx_connect(r.loop, address, s->id, NULL, NULL));
    REQUIRE_OK(jzx_watch_signal(r.loop, SIGUSR1, s->id, GO, NULL));
    REQUIRE_OK(jzx_watch_path(r.loop, "/", JZX_PATH_CREATED, s->id, GO, NULL));
    REQUIRE_OK(jzx_kit_run(r.kit, 20));
    CHECK(list_fds(during) >= count + 7); /* poller, wake-up, listener, both ends, signal, path */
    for (int fd = 0; fd < FDS; fd++) {
        if (during[fd] && !before[fd]) {
            CHECK_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        }
    }
    rig_close(&r);
    CHECK_EQ(list_fds(during), count);
    puppet_free(s);
}

static void test_a_loop_says_which_poller_it_has_R28(void)
{
    jzx_loop *loop = NULL;
    rig custom = rig_open(NULL);
    CHECK_STR(jzx_loop_poller_name(custom.loop), "custom");
    rig_close(&custom);
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    CHECK_STR(jzx_loop_poller_name(loop), "epoll");
    CHECK_OK(jzx_loop_destroy(loop));
    CHECK_STR(jzx_loop_poller_name(NULL), "");
}

/* There was one, and JZX_POLLER asked for it. */
static void test_a_wish_for_the_io_uring_poller_is_refused_R28(void)
{
    static const struct {
        const char *wish;
        jzx_err err;
    } cases[] = {{"uring", JZX_ERR_NOT_SUPPORTED}, {"epoll", JZX_OK}, {"", JZX_OK}};
    jzx_config given = {.env = jzx_env_epoll()};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        jzx_loop *loop = NULL;
        setenv("JZX_POLLER", cases[i].wish, 1);
        CHECK_EQ(jzx_loop_create(NULL, &loop), cases[i].err);
        CHECK_EQ(loop == NULL, cases[i].err != JZX_OK);
        CHECK_OK(jzx_loop_destroy(loop));
        REQUIRE_OK(jzx_loop_create(&given, &loop)); /* the program chose by itself */
        CHECK_OK(jzx_loop_destroy(loop));
    }
    unsetenv("JZX_POLLER");
}

static int create_without_descriptors(void)
{
    static bool fds[FDS];
    size_t before = list_fds(fds);
    for (rlim_t spare = 0; spare < 2; spare++) {
        struct rlimit limit = {.rlim_cur = 0, .rlim_max = FDS};
        int probe = dup(0);
        close(probe);
        limit.rlim_cur = (rlim_t)probe + spare;
        jzx_loop *loop = NULL;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            return 77;
        }
        if (jzx_loop_create(NULL, &loop) != JZX_ERR_NO_FDS || loop != NULL) {
            return 3;
        }
        limit.rlim_cur = FDS;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    return list_fds(fds) == before ? 0 : 4;
}

static void test_without_descriptors_create_fails_and_leaves_nothing(void)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        _exit(create_without_descriptors());
    }
    CHECK_EQ(wait_for(child), 0);
}

static void test_a_config_is_checked(void)
{
    const jzx_config bad[] = {{.max_actors = 16777216},
                              {.default_mailbox_cap = JZX_MAILBOX_CAP_MAX + 1},
                              {.dead_letter_ring = 1048577},
                              {.root_stop = JZX_ROOT_STOP_IN_ORDER + 1}};
    jzx_loop *loop = NULL;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CHECK_EQ(jzx_loop_create(&bad[i], &loop), i == 3 ? JZX_ERR_INVALID_ARG : JZX_ERR_TOO_BIG);
        CHECK(loop == NULL);
    }
    struct {
        jzx_config known;
        uint64_t later;
    } newer = {.later = 0};
    CHECK_OK(jzx_loop_create_sized(&newer.known, sizeof newer, &loop));
    CHECK_OK(jzx_loop_destroy(loop));
    loop = NULL;
    newer.later = 1;
    CHECK_EQ(jzx_loop_create_sized(&newer.known, sizeof newer, &loop), JZX_ERR_NEWER_STRUCT);
    CHECK_EQ(jzx_loop_create(NULL, NULL), JZX_ERR_INVALID_ARG);
    jzx_config most = {.max_actors = 16777215,
                       .default_mailbox_cap = JZX_MAILBOX_CAP_MAX,
                       .max_msgs_per_actor = UINT32_MAX,
                       .max_actors_per_tick = UINT32_MAX,
                       .turn_budget_us = UINT32_MAX,
                       .tick_budget_us = UINT32_MAX,
                       .dead_letter_ring = 1048576};
    puppet s = {.bare = true, .mute = true};
    jzx_spawn_opts opts = {.behavior = puppet_behavior, .state = &s};
    REQUIRE_OK(jzx_loop_create(&most, &loop));
    puppet_spawn_with(loop, &s, &opts);
    CHECK_OK(jzx_send_u64(loop, s.id, 0, GO));
    CHECK_OK(jzx_loop_run_until_idle(loop));
    CHECK_EQ(s.handled, 1);
    CHECK_OK(jzx_loop_destroy(loop));
}

static const jzt_test tests[] = {
    {"the_descriptor_is_readable_for_mail_and_io_only",
     test_the_descriptor_is_readable_for_mail_and_io_only},
    {"left_over_work_makes_the_descriptor_readable",
     test_left_over_work_makes_the_descriptor_readable},
    {"the_timeout_is_the_deadline_rounded_up", test_the_timeout_is_the_deadline_rounded_up},
    {"a_host_loop_misses_nothing", test_a_host_loop_misses_nothing},
    {"a_stop_from_another_thread_ends_the_wait", test_a_stop_from_another_thread_ends_the_wait},
    {"a_child_that_abandons_the_loop_leaves_the_parents_alone",
     test_a_child_that_abandons_the_loop_leaves_the_parents_alone},
    {"every_descriptor_is_close_on_exec_and_closed_in_the_end",
     test_every_descriptor_is_close_on_exec_and_closed_in_the_end},
    {"a_loop_says_which_poller_it_has_R28", test_a_loop_says_which_poller_it_has_R28},
    {"a_wish_for_the_io_uring_poller_is_refused_R28",
     test_a_wish_for_the_io_uring_poller_is_refused_R28},
    {"without_descriptors_create_fails_and_leaves_nothing",
     test_without_descriptors_create_fails_and_leaves_nothing},
    {"a_config_is_checked", test_a_config_is_checked},
};

int main(int argc, char **argv)
{
    return run_worlds(tests, COUNT_OF(tests), argc, argv);
}
