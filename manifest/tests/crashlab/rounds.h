/* The manifest under crashes: recorded lives, all their crashes, and mutants of them. */
#ifndef CL_ROUNDS_H
#define CL_ROUNDS_H

#include "engine.h"

typedef struct cl_lab {
    const char *base; /* a directory for everything */
    cl_log *log;
    uint64_t seed;
    uint32_t workers;
    uint64_t states;  /* at least so many */
    const char *keep; /* a directory for the files of bad states; NULL: none */
} cl_lab;

/* Round after round until there were enough states. */
void cl_rounds(const cl_lab *lab, cl_tally *tally);
/* A round again, from its log as `keep` got it. */
void cl_rounds_replay(const cl_lab *lab, const char *path, cl_tally *tally);
/* The migration of an old file, begun and interrupted. */
void cl_rounds_migrations(const cl_lab *lab, cl_tally *tally);
/* Every mutant over a round of its own. Returns how many were caught, of *out_total. */
uint32_t cl_rounds_mutants(const cl_lab *lab, uint32_t *out_total);

#endif
