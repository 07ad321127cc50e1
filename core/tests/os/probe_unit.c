/* A thread that is asked what it does answers, and does not notice it: what it waits in goes on. */
#define _GNU_SOURCE
#include "check.h"

#include "os/clock.h"
#include "os/debug/probe.h"
#include "os/debug/resume.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define PATIENCE_NS (10000 * MS)

/* A thread that waits in one call. */
typedef struct sleeper {
    int (*wait)(void);
    _Atomic int32_t tid;
    atomic_bool returned;
    int result;
    int error;
    uint64_t took_ns;
} sleeper;

static int pipe_ends[2];
static sem_t gate;

static void *sleeper_main(void *arg)
{
    sleeper *s = arg;
    uint64_t start = jzi_clock_now_ns(NULL);
    atomic_store(&s->tid, jzi_thread_tid());
    errno = 0;
    s->result = s->wait();
    s->error = errno;
    s->took_ns = jzi_clock_now_ns(NULL) - start;
    atomic_store(&s->returned, true);
    return NULL;
}

static bool look(void *subject, const void *context)
{
    (void)context;
    ++*(int *)subject;
    return true;
}

static void await_wait(const sleeper *s)
{
    jzi_syscall call = {.waits = false};
    uint64_t end = jzi_clock_now_ns(NULL) + PATIENCE_NS;
    while (!call.waits && !atomic_load(&s->returned) && jzi_clock_now_ns(NULL) < end) {
        if (atomic_load(&s->tid) != 0) {
            jzi_syscall_read(atomic_load(&s->tid), &call);
        }
    }
}

/* Looks three times while it waits; then `release` ends the wait. Without that the wait ends by
 * itself, which on a busy machine may be earlier. */
static void look_at(sleeper *s, void (*release)(void))
{
    pthread_t thread;
    jzi_probe *probe = NULL;
    int looks = 0;
    CHECK_EQ(jzi_probe_open(0, look, &looks, &probe), JZX_OK);
    CHECK_EQ(pthread_create(&thread, NULL, sleeper_main, s), 0);
    for (int i = 0; i < 3; i++) {
        await_wait(s);
        jzi_probe_end end = jzi_probe_ask(probe, atomic_load(&s->tid), PATIENCE_NS);
        CHECK(end == JZI_PROBE_ANSWERED || (release == NULL && atomic_load(&s->returned)));
    }
    if (release != NULL) {
        await_wait(s);
        CHECK_EQ(looks, 3);
        CHECK(!atomic_load(&s->returned));
        release();
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    jzi_probe_close(probe);
}

static int sleep_with_rest(void)
{
    struct timespec time = {0, 200 * 1000000L};
    struct timespec rest = {77, 0};
    return nanosleep(&time, &rest);
}
static int sleep_without_rest(void)
{
    return usleep(200000);
}
static int sleep_until(void)
{
    struct timespec end;
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += 200 * 1000000L;
    end.tv_sec += end.tv_nsec / 1000000000L;
    end.tv_nsec %= 1000000000L;
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
}
static int poll_for_a_while(void)
{
    struct pollfd p = {.fd = pipe_ends[0], .events = POLLIN};
    return poll(&p, 1, 200);
}
static int select_for_a_while(void)
{
    struct timeval time = {0, 200000};
    return select(0, NULL, NULL, NULL, &time);
}

/* A look is a signal. ThreadSanitizer hands signals over when the call that they came in is over,
 * so a thread that sleeps cannot be looked at there. */
static void need_prompt_signals(void)
{
    if (JZT_TSAN) {
        jzt_skip("Under ThreadSanitizer no signal arrives inside of a call.");
    }
}

/* Goal: waits with a time end when it is over: not before, and not never. */
static void test_a_sleep_that_is_looked_at_takes_its_time(void)
{
    need_prompt_signals();
    static int (*const waits[])(void) = {sleep_with_rest, sleep_without_rest, sleep_until,
                                         poll_for_a_while, select_for_a_while};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        sleeper s = {.wait = waits[i]};
        look_at(&s, NULL);
        CHECK_EQ(s.result, 0);
        CHECK_EQ(s.error, 0);
        CHECK(s.took_ns >= 199 * MS);
    }
}

static int read_for_ever(void)
{
    char byte;
    return (int)read(pipe_ends[0], &byte, 1);
}
static int poll_for_ever(void)
{
    struct pollfd p = {.fd = pipe_ends[0], .events = POLLIN};
    int result = poll(&p, 1, -1);
    return result == 1 ? read_for_ever() : result;
}
static int epoll_for_ever(void)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    int result = epoll_ctl(fd, EPOLL_CTL_ADD, pipe_ends[0], &event);
    result = result == 0 ? epoll_wait(fd, &event, 1, -1) : result;
    (void)close(fd);
    return result == 1 ? read_for_ever() : result;
}
static void write_a_byte(void)
{
    CHECK_EQ(write(pipe_ends[1], "x", 1), 1);
}

static void test_a_wait_for_a_descriptor_goes_on_after_a_look(void)
{
    need_prompt_signals();
    static int (*const waits[])(void) = {poll_for_ever, epoll_for_ever, read_for_ever};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        sleeper s = {.wait = waits[i]};
        look_at(&s, write_a_byte);
        CHECK_EQ(s.result, 1);
    }
}

static int wait_for_gate(void)
{
    struct timespec end;
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += 60;
    return sem_clockwait(&gate, CLOCK_MONOTONIC, &end);
}
static void open_gate(void)
{
    CHECK_EQ(sem_post(&gate), 0);
}

static void test_a_wait_for_a_semaphore_goes_on_after_a_look(void)
{
    need_prompt_signals();
    CHECK_EQ(sem_init(&gate, 0, 0), 0);
    sleeper s = {.wait = wait_for_gate};
    look_at(&s, open_gate);
    CHECK_EQ(s.result, 0);
    CHECK_EQ(sem_destroy(&gate), 0);
}

static _Atomic int usr1_count;
static pthread_t usr1_target;
static void on_usr1(int number)
{
    (void)number;
    atomic_fetch_add(&usr1_count, 1);
}
static int sleep_for_ever(void)
{
    struct timespec time = {600, 0};
    usr1_target = pthread_self();
    return nanosleep(&time, NULL);
}
static void send_usr1(void)
{
    CHECK_EQ(pthread_kill(usr1_target, SIGUSR1), 0);
}

/* Goal: only our looks are unnoticed: a signal of the program's own ends its sleep. */
static void test_a_signal_of_the_program_still_interrupts(void)
{
    need_prompt_signals();
    struct sigaction action = {.sa_handler = on_usr1};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    sleeper s = {.wait = sleep_for_ever};
    look_at(&s, send_usr1);
    CHECK_EQ(s.result, -1);
    CHECK_EQ(s.error, EINTR);
    CHECK_EQ(atomic_load(&usr1_count), 1);
}

static const jzt_test tests[] = {
    {"a_sleep_that_is_looked_at_takes_its_time", test_a_sleep_that_is_looked_at_takes_its_time},
    {"a_wait_for_a_descriptor_goes_on_after_a_look",
     test_a_wait_for_a_descriptor_goes_on_after_a_look},
    {"a_wait_for_a_semaphore_goes_on_after_a_look",
     test_a_wait_for_a_semaphore_goes_on_after_a_look},
    {"a_signal_of_the_program_still_interrupts", test_a_signal_of_the_program_still_interrupts},
};

int main(int argc, char **argv)
{
#if !defined(__x86_64__)
    (void)puts("skipped: calls are resumed on x86-64 only");
    return 77;
#endif
    return pipe(pipe_ends) == 0 ? jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]) : 1;
}
