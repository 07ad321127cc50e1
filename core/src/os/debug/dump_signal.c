/* A few places that the handler walks through. It finds a place by its signal's number, which is
 * stored last and cleared first, and counts itself in: close() waits for those that are inside, so
 * that a descriptor is not written to after its owner closed it. */
#define _GNU_SOURCE
#include "os/debug/dump_signal.h"

#include "os/thread.h"
#include "os/wakeup.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { PLACES = 32, SIGNAL_COUNT = 65 };

struct jzi_dump_signal {
    _Atomic int32_t signo; /* 0: free */
    _Atomic int wake_fd;
    atomic_bool came;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static jzi_dump_signal places[PLACES];
static uint32_t users[SIGNAL_COUNT];          /* under the lock, as what follows */
static struct sigaction before[SIGNAL_COUNT]; /* what was there */
static _Atomic uint32_t inside;               /* handlers */

static void on_signal(int signo)
{
    (void)atomic_fetch_add(&inside, 1);
    for (int i = 0; i < PLACES; i++) {
        if (atomic_load(&places[i].signo) == signo) {
            atomic_store(&places[i].came, true);
            jzi_wake_signal(NULL, atomic_load(&places[i].wake_fd));
        }
    }
    (void)atomic_fetch_sub(&inside, 1);
}

bool jzi_dump_signal_is_usable(int32_t signo)
{
    static const int others[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE,
                                 SIGILL,  SIGABRT, SIGTRAP, SIGSYS};
    sigset_t set;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (signo == others[i]) {
            return false;
        }
    }
    (void)sigemptyset(&set);
    return signo > 0 && signo < SIGNAL_COUNT && sigaddset(&set, signo) == 0;
}

static void use_signal(int32_t signo)
{
    if (users[signo]++ > 0) {
        return;
    }
    struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART};
    (void)sigemptyset(&ours.sa_mask);
    (void)sigaction(signo, &ours, &before[signo]);
}

/* A handler that was installed over ours stays. */
static void leave_signal(int32_t signo)
{
    struct sigaction now;
    if (--users[signo] > 0) {
        return;
    }
    (void)sigaction(signo, NULL, &now);
    if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == on_signal) {
        (void)sigaction(signo, &before[signo], NULL);
    }
}

jzx_err jzi_dump_signal_open(int32_t signo, int wake_fd, jzi_dump_signal **out_signal)
{
    jzi_dump_signal *place = NULL;
    if (!jzi_dump_signal_is_usable(signo)) {
        return JZX_ERR_INVALID_ARG;
    }
    (void)pthread_mutex_lock(&lock);
    for (int i = 0; i < PLACES && place == NULL; i++) {
        place = atomic_load(&places[i].signo) == 0 ? &places[i] : NULL;
    }
    if (place != NULL) {
        atomic_store(&place->came, false);
        atomic_store(&place->wake_fd, wake_fd);
        atomic_store(&place->signo, signo);
        use_signal(signo);
    }
    (void)pthread_mutex_unlock(&lock);
    *out_signal = place;
    return place == NULL ? JZX_ERR_NO_MEMORY : JZX_OK;
}

bool jzi_dump_signal_take(jzi_dump_signal *signal)
{
    return atomic_load_explicit(&signal->came, memory_order_relaxed) &&
           atomic_exchange(&signal->came, false);
}

void jzi_dump_signal_close(jzi_dump_signal *signal)
{
    (void)pthread_mutex_lock(&lock);
    leave_signal(atomic_load(&signal->signo));
    atomic_store(&signal->signo, 0);
    while (atomic_load(&inside) != 0) {
        jzi_thread_yield();
    }
    (void)pthread_mutex_unlock(&lock);
}
