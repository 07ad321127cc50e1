/* The life of a question, in `state`:
 *
 *   IDLE --ask--> HELD --> ASKED --handler--> LOOKING --handler--> IDLE, the semaphore posted
 *                            |                   |
 *                            +--too late--> IDLE +--not the right thread--> ASKED
 *
 * The handler looks only between ASKED and IDLE, so an asker that found the state IDLE, or made it
 * so, owns the subject again. A signal that arrives later only has the call that it interrupted go
 * on: IDLE --handler--> HELD --handler--> IDLE. */
#define _GNU_SOURCE
#include "os/debug/probe.h"

#include "os/clock.h"
#include "os/debug/resume.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PROBES_MAX = 256, SIGNAL_COUNT = 65, STACK_LEAST = 262144 };
enum { STATE_IDLE, STATE_HELD, STATE_ASKED, STATE_LOOKING };

struct jzi_probe {
    _Atomic uint32_t state;
    _Atomic int32_t tid; /* the thread that is asked */
    atomic_bool stopped;
    bool used;     /* under the lock, as `ready` */
    bool ready;    /* the semaphore exists; it is never destroyed */
    int32_t signo; /* this and what follows: set while no question is asked */
    jzi_probe_sample look;
    void *subject;
    jzi_syscall call; /* what the thread waits in that is asked; under `state` */
    sem_t wake;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static jzi_probe probes[PROBES_MAX];
static uint32_t users[SIGNAL_COUNT];          /* under the lock */
static struct sigaction before[SIGNAL_COUNT]; /* what was there; read by the handler */

int32_t jzi_thread_tid(void)
{
    return (int32_t)syscall(SYS_gettid);
}

int32_t jzi_process_id(void)
{
    return (int32_t)getpid();
}

/* Moves the state on, if it is that. */
static bool step(jzi_probe *probe, uint32_t from, uint32_t to)
{
    /* acquire: what was written before the state is seen. Partner: the release stores. */
    return atomic_compare_exchange_strong_explicit(&probe->state, &from, to, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* Answers a question, if it is to this thread. */
static void probe_answer(jzi_probe *probe, int32_t tid, void *context)
{
    if (atomic_load_explicit(&probe->tid, memory_order_relaxed) != tid) {
        return;
    }
    if (!step(probe, STATE_ASKED, STATE_LOOKING)) {
        if (step(probe, STATE_IDLE, STATE_HELD)) {
            jzi_syscall_resume(&probe->call, context);
            atomic_store_explicit(&probe->state, STATE_IDLE, memory_order_release);
        }
        return;
    }
    bool seen = probe->look(probe->subject, context);
    jzi_syscall_resume(&probe->call, context);
    /* Partner: the acquire loads in jzi_probe_ask() and withdraw(). */
    atomic_store_explicit(&probe->state, seen ? STATE_IDLE : STATE_ASKED, memory_order_release);
    if (seen) {
        (void)sem_post(&probe->wake);
    }
}

static void probe_pass_on(int signo, siginfo_t *info, void *context)
{
    const struct sigaction *old = &before[signo];
    if ((old->sa_flags & SA_SIGINFO) != 0) {
        old->sa_sigaction(signo, info, context);
    } else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
        old->sa_handler(signo);
    }
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    /* A signal of ours carries an address that no other code knows, so a late one is not taken for
     * the program's. */
    if (info->si_code == SI_QUEUE && info->si_value.sival_ptr == probes) {
        int32_t tid = jzi_thread_tid();
        for (int i = 0; i < PROBES_MAX; i++) {
            probe_answer(&probes[i], tid, context);
        }
    } else {
        probe_pass_on(signo, info, context);
    }
    errno = saved_errno;
}

/* Signals of a crash belong to the guard; the first two cannot be caught. */
static bool is_usable(int32_t signo)
{
    static const int others[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE,
                                 SIGILL,  SIGABRT, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (signo == others[i]) {
            return false;
        }
    }
    sigset_t set;
    (void)sigemptyset(&set);
    return signo > 0 && signo < SIGNAL_COUNT && sigaddset(&set, signo) == 0;
}

static void use_signal(int32_t signo)
{
    if (users[signo]++ > 0) {
        return;
    }
    struct sigaction ours = {.sa_sigaction = on_signal,
                             .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    (void)sigemptyset(&ours.sa_mask);
    (void)sigaction(signo, NULL, &before[signo]);
    (void)sigaction(signo, &ours, NULL);
}

static void leave_signal(int32_t signo)
{
    struct sigaction now;
    if (--users[signo] > 0) {
        return;
    }
    /* A handler that was installed over ours stays, and finds nothing to do in ours. */
    (void)sigaction(signo, NULL, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_signal) {
        /* Ignoring it throws away what is still on its way, which the old action may not expect. */
        struct sigaction ignore = {.sa_handler = SIG_IGN};
        (void)sigaction(signo, &ignore, NULL);
        (void)sigaction(signo, &before[signo], NULL);
    }
}

static jzi_probe *take_place(void)
{
    for (int i = 0; i < PROBES_MAX; i++) {
        jzi_probe *probe = &probes[i];
        if (probe->used || (!probe->ready && sem_init(&probe->wake, 0, 0) != 0)) {
            continue;
        }
        probe->ready = probe->used = true;
        return probe;
    }
    return NULL;
}

jzx_err jzi_probe_open(int32_t signo, jzi_probe_sample look, void *subject, jzi_probe **out_probe)
{
    signo = signo == 0 ? SIGURG : signo;
    if (!is_usable(signo)) {
        return JZX_ERR_INVALID_ARG;
    }
    (void)pthread_mutex_lock(&lock);
    jzi_probe *probe = take_place();
    if (probe != NULL) {
        probe->signo = signo;
        probe->look = look;
        probe->subject = subject;
        atomic_store_explicit(&probe->stopped, false, memory_order_relaxed);
        use_signal(signo);
    }
    (void)pthread_mutex_unlock(&lock);
    if (probe == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    *out_probe = probe;
    return JZX_OK;
}

void jzi_probe_close(jzi_probe *probe)
{
    (void)pthread_mutex_lock(&lock);
    leave_signal(probe->signo);
    probe->used = false;
    (void)pthread_mutex_unlock(&lock);
}

/* Waits for a post of the semaphore, by any thread. False: the time is over. */
static bool wait_until(jzi_probe *probe, uint64_t end_ns)
{
    struct timespec end = {.tv_sec = (time_t)(end_ns / 1000000000u),
                           .tv_nsec = (long)(end_ns % 1000000000u)};
    int rc;
    do {
        rc = sem_clockwait(&probe->wake, CLOCK_MONOTONIC, &end);
    } while (rc != 0 && errno == EINTR);
    return rc == 0;
}

static bool is_stopped(const jzi_probe *probe)
{
    return atomic_load_explicit(&probe->stopped, memory_order_acquire);
}

bool jzi_probe_sleep(jzi_probe *probe, uint64_t ns)
{
    uint64_t end = jzi_clock_now_ns(NULL) + ns;
    while (!is_stopped(probe) && wait_until(probe, end)) {
        /* A late answer to an earlier question, or the stop. */
    }
    return is_stopped(probe);
}

/* Takes the question back. True: the question was answered after all. */
static bool withdraw(jzi_probe *probe)
{
    for (;;) {
        uint32_t asked = STATE_ASKED;
        if (atomic_compare_exchange_strong_explicit(&probe->state, &asked, STATE_IDLE,
                                                    memory_order_acquire, memory_order_acquire)) {
            return false;
        }
        if (asked == STATE_IDLE || asked == STATE_HELD) {
            return true;
        }
        (void)wait_until(probe, jzi_clock_now_ns(NULL) + 1000000); /* the handler is looking */
    }
}

jzi_probe_end jzi_probe_ask(jzi_probe *probe, int32_t tid, uint64_t timeout_ns)
{
    uint64_t end = jzi_clock_now_ns(NULL) + timeout_ns;
    while (!step(probe, STATE_IDLE, STATE_HELD)) {
        (void)wait_until(probe, jzi_clock_now_ns(NULL) + 1000000); /* a late signal came */
    }
    jzi_syscall_read(tid, &probe->call);
    atomic_store_explicit(&probe->tid, tid, memory_order_relaxed);
    atomic_store_explicit(&probe->state, STATE_ASKED, memory_order_release);
    siginfo_t info = {.si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = probes;
    if (syscall(SYS_rt_tgsigqueueinfo, info.si_pid, tid, probe->signo, &info) == 0) {
        while (!is_stopped(probe) &&
               atomic_load_explicit(&probe->state, memory_order_acquire) > STATE_HELD &&
               wait_until(probe, end)) {
        }
    }
    bool answered = withdraw(probe);
    if (is_stopped(probe)) {
        return JZI_PROBE_STOPPED;
    }
    return answered ? JZI_PROBE_ANSWERED : JZI_PROBE_SILENT;
}

int32_t jzi_probe_signo(const jzi_probe *probe)
{
    return probe->signo;
}

void jzi_probe_stop(jzi_probe *probe)
{
    atomic_store_explicit(&probe->stopped, true, memory_order_release);
    (void)sem_post(&probe->wake);
}

jzx_err jzi_thread_start(void *(*run)(void *arg), void *arg, const char *name,
                         pthread_t *out_thread)
{
    /* Blocked, a fault of the thread would end the process without its handlers. */
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t all;
    sigset_t saved;
    (void)sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        (void)sigdelset(&all, faults[i]);
    }
    (void)pthread_sigmask(SIG_SETMASK, &all, &saved);
    pthread_attr_t attr;
    int code = pthread_attr_init(&attr);
    if (code == 0) {
        size_t bytes = 0;
        (void)pthread_attr_getstacksize(&attr, &bytes);
        if (bytes < STACK_LEAST) { /* RLIMIT_STACK is low */
            (void)pthread_attr_setstacksize(&attr, STACK_LEAST);
        }
        code = pthread_create(out_thread, &attr, run, arg);
        (void)pthread_attr_destroy(&attr);
    }
    (void)pthread_sigmask(SIG_SETMASK, &saved, NULL);
    if (code != 0) {
        return JZX_ERR_NO_MEMORY;
    }
    (void)pthread_setname_np(*out_thread, name);
    return JZX_OK;
}

void jzi_thread_admit(int32_t signo)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, signo);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void jzi_thread_join(pthread_t thread, int32_t pid)
{
    if (pid == jzi_process_id()) {
        (void)pthread_join(thread, NULL);
    }
}
