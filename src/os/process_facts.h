/* What the kernel knows of this process: for `jzx` and for metrics. */
#ifndef JZI_OS_PROCESS_FACTS_H
#define JZI_OS_PROCESS_FACTS_H

#include <stdint.h>

typedef struct jzi_process_facts {
    uint64_t rss_bytes; /* of memory that is resident */
    uint64_t cpu_ns;    /* user and system, of all threads */
    uint64_t threads;
    uint64_t open_fds;
    uint64_t max_fds; /* its soft limit; UINT64_MAX: none */
} jzi_process_facts;

/* What cannot be known is 0. Reads /proc; without a free descriptor, only some of it. Thread: any.
 */
void jzi_process_look(jzi_process_facts *out);

/* The processor time that a thread of this process has used; 0: there is no such thread. */
uint64_t jzi_thread_cpu_ns(int32_t tid);

#endif
