/* The harness tried on LMDB alone: a workload whose right answer is known, and known mistakes. */
#ifndef CL_PLAIN_H
#define CL_PLAIN_H

#include "engine.h"

#include <stdbool.h>

/* Runs 1 + `commits` commits in `dir`. `in_place`: the file is created under its name, as LMDB does
 * by itself; else as a temporary file that is synced and renamed. */
void cl_plain_work(const char *dir, uint64_t seed, uint32_t commits, bool in_place);

/* Everything about it: records, plays, and adds up. Returns how many of its mutants were caught, of
 * *out_mutants; *out_bad are states that were bad without a mutation. */
uint32_t cl_plain_all(const char *base, cl_log *log, uint64_t seed, uint32_t workers,
                      uint64_t *out_states, uint64_t *out_bad, uint32_t *out_mutants);

#endif
