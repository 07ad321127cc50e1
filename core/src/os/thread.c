#define _GNU_SOURCE
#include "os/thread.h"

#include <sched.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)

uint32_t jzi_cpu_count(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return 1;
    }
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : (uint32_t)count;
}

bool jzi_cpu_usable(uint32_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    return cpu < CPU_SETSIZE && sched_getaffinity(0, sizeof set, &set) == 0 &&
           CPU_ISSET(cpu, &set) != 0;
}

void jzi_thread_bind(uint32_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu < CPU_SETSIZE) {
        CPU_SET(cpu, &set);
        (void)sched_setaffinity(0, sizeof set, &set);
    }
}

void jzi_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attr);
    (void)pthread_condattr_destroy(&attr);
}

void jzi_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t ns)
{
    if (ns == UINT64_MAX) {
        (void)pthread_cond_wait(cond, mutex);
        return;
    }
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t sum = (uint64_t)until.tv_nsec + ns % NS_PER_S;
    until.tv_sec += (time_t)(ns / NS_PER_S + sum / NS_PER_S);
    until.tv_nsec = (long)(sum % NS_PER_S);
    (void)pthread_cond_timedwait(cond, mutex, &until);
}

void jzi_mutex_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attr;
    (void)pthread_mutexattr_init(&attr);
    (void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
    (void)pthread_mutex_init(mutex, &attr);
    (void)pthread_mutexattr_destroy(&attr);
}

void jzi_thread_yield(void)
{
    (void)sched_yield();
}

void jzi_thread_pause(uint64_t ns)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never;
    jzi_cond_init(&never);
    (void)pthread_mutex_lock(&mutex);
    jzi_cond_wait(&never, &mutex, ns);
    (void)pthread_mutex_unlock(&mutex);
    (void)pthread_cond_destroy(&never);
}

void jzi_mutex_init_recursive(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attr;
    (void)pthread_mutexattr_init(&attr);
    (void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(mutex, &attr);
    (void)pthread_mutexattr_destroy(&attr);
}
