/* Time and entropy. The signatures are those of jzx_env; ctx is not used. */
#ifndef JZI_OS_CLOCK_H
#define JZI_OS_CLOCK_H

#include <jzx/types.h>

/* CLOCK_MONOTONIC: it never steps back and does not count the time a machine sleeps.
 * Thread: any. */
uint64_t jzi_clock_now_ns(void *ctx);

/* The same clock, a few milliseconds behind at most, for a quarter of the price. Thread: any. */
uint64_t jzi_clock_coarse_ns(void);

/* Fills buf with unpredictable bytes. Thread: any. */
jzx_err jzi_entropy_fill(void *ctx, void *buf, size_t len);

#endif
