/* Numbers of this process that are for metrics only. */
#ifndef JZI_OS_DESCRIPTORS_H
#define JZI_OS_DESCRIPTORS_H

#include <stdint.h>

/* How many descriptors are open, and how many may be; 0: not known, as without a free one to look.
 * Takes longer the more there are. Thread: any. */
void jzi_descriptors_count(uint64_t *out_open, uint64_t *out_max);

/* The processor time that a thread of this process has used; 0: there is no such thread. */
uint64_t jzi_thread_cpu_ns(int32_t tid);

#endif
