/* Numbers that look random: for jitter, for samples, for a choice among equals. Not for secrets.
 * The state is the caller's, so a run with the same seed draws the same numbers (R30). */
#ifndef JZI_RANDOM_H
#define JZI_RANDOM_H

#include <stdint.h>

/* The next number, uniform over all values; any state is a good one, 0 too. This is splitmix64 of
 * Steele, Lea and Flood: it goes through all 64-bit states once. */
static inline uint32_t jzi_random_next(uint64_t *state)
{
    uint64_t mixed = *state += UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((mixed ^ (mixed >> 31)) >> 32);
}

/* One of 0 to limit - 1; 0 if the limit is 0. By a product instead of a remainder: no division, and
 * no number is more likely than another by more than limit / 2^32. */
static inline uint32_t jzi_random_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)(((uint64_t)jzi_random_next(state) * limit) >> 32);
}

#endif
