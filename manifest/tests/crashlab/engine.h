/* Plays a log, puts every crash on and has it judged, in processes that may die of it. */
#ifndef CL_ENGINE_H
#define CL_ENGINE_H

#include "stage.h"

enum { CL_WHY = 320, CL_EXAMPLES = 6 };

/* A crash to be judged: the files are in `dir`. */
typedef struct cl_case {
    const char *dir;
    const char *path; /* of the main file */
    bool there;       /* there is one */
    const cl_state *state;
    uint64_t number;
    uint64_t seed; /* for what the judge does by chance */
    void *arg;
    char *why; /* CL_WHY bytes: a sentence, when it is bad */
} cl_case;
/* true: it is as it must be. */
typedef bool (*cl_judge_fn)(const cl_case *c);

typedef struct cl_plan {
    const cl_log *log;
    cl_rules rules;
    cl_judge_fn judge;
    void *arg;
    const char *main_name;
    const char *base;  /* a directory to make the stages in */
    const char *title; /* for the progress line */
    uint64_t seed;
    uint64_t every;      /* looks at one state of so many, by chance; 0, 1: at all */
    uint64_t states_max; /* 0: no limit */
    uint64_t bad_max;    /* stops after so many; 0: no limit */
    uint32_t workers;
    const char *keep; /* a directory: the main file of bad states is copied to it; NULL: not */
} cl_plan;

typedef struct cl_tally {
    uint64_t states;
    uint64_t bad;
    uint64_t killed; /* of these, died by a signal, or hung */
    uint64_t by_shape[CL_SHAPES];
    uint64_t bad_by_shape[CL_SHAPES];
    char examples[CL_EXAMPLES][CL_WHY];
    uint32_t example_count;
} cl_tally;

void cl_tally_add(cl_tally *to, const cl_tally *from);
/* Adds to the tally. */
void cl_run(const cl_plan *plan, cl_tally *tally);

#endif
