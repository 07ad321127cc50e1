/* Delays that grow from attempt to attempt: a pure function. No clock, and randomness is an
 * argument. */
#ifndef JZI_BACKOFF_H
#define JZI_BACKOFF_H

#include <stdint.h>

typedef struct jzi_backoff {
    uint64_t min_ns; /* 0: no delay */
    uint64_t max_ns; /* at least min_ns */
    double factor;   /* at least 1 */
    double jitter;   /* 0 to 1 */
} jzi_backoff;

/* What is wrong with numbers that a user gave, in a sentence (a literal); NULL: nothing. A factor
 * of 0 stands for the default. */
const char *jzi_backoff_wrong(double factor, double jitter);

/* min * factor^(attempt - 1), moved by at most the jitter's part of itself, never above max; 0 if
 * min is 0. attempt counts from 1. random is uniform over all values; 0 draws the shortest
 * delay. */
uint64_t jzi_backoff_delay(const jzi_backoff *backoff, uint32_t attempt, uint32_t random);

#endif
