/* Threads and the CPUs they run on. */
#ifndef JZI_OS_THREAD_H
#define JZI_OS_THREAD_H

#include <jzx/types.h>

#include <pthread.h>
#include <stdbool.h>

/* In a loop that waits for another CPU. */
static inline void jzi_cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Lets others run on this CPU. */
void jzi_thread_yield(void);
/* Has the calling thread wait. */
void jzi_thread_pause(uint64_t ns);

/* How many CPUs this process may use; at least 1. */
uint32_t jzi_cpu_count(void);
/* Whether a CPU with this number exists and may be used. */
bool jzi_cpu_usable(uint32_t cpu);
/* Has the calling thread run on this CPU only. */
void jzi_thread_bind(uint32_t cpu);

/* A condition whose timeouts are on the monotonic clock. */
void jzi_cond_init(pthread_cond_t *cond);
/* Waits at most ns (UINT64_MAX: for ever). The mutex is held before and after. */
void jzi_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t ns);
/* A mutex that is tried for a moment before its owner is waited for. */
void jzi_mutex_init(pthread_mutex_t *mutex);
/* A mutex that its owner may take again. */
void jzi_mutex_init_recursive(pthread_mutex_t *mutex);

#endif
