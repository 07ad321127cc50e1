/* Every write and every sync of a short life fails once, in each way: the documented outcome, and
 * nothing else. */
#ifndef CL_INJECT_H
#define CL_INJECT_H

#include <stdint.h>

/* Uses a directory below `base`. Returns how many outcomes were wrong, of *out_runs; prints them.
 */
uint64_t cl_inject_all(const char *base, uint64_t *out_runs);

#endif
