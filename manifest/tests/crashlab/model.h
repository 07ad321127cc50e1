/* What a recorded run wrote, commit by commit: which states of the tables there ever were.
 *
 * The log is played with everything durable at once; after each write of LMDB's meta page the whole
 * file is read, by LMDB alone. What a crash leaves must be one of these. */
#ifndef CL_MODEL_H
#define CL_MODEL_H

#include "raw.h"
#include "record.h"

typedef struct cl_commit {
    cl_digest digest;
    uint64_t seq; /* as the subject counts */
} cl_commit;

typedef struct cl_model {
    cl_commit *commits;
    uint32_t count;
    uint32_t cap;
} cl_model;

/* How to find the number of a commit in its tables. */
typedef struct cl_reader {
    const char *main_name;
    const char *counters; /* the table that every commit changes */
    /* Called for every row; *seq is 0 before the first. */
    void (*row)(void *seq, const char *table, MDB_val key, MDB_val value);
} cl_reader;

/* Reads the log, using the directory `scratch`. Compares what it has at the end with the real file
 * (NULL: does not). false, with a sentence, when the log is not what happened. */
bool cl_model_build(cl_model *model, const cl_log *log, const cl_reader *reader,
                    const char *scratch, const char *real, char why[256]);
void cl_model_free(cl_model *model);
/* The last commit with this digest, or NULL. */
const cl_commit *cl_model_find(const cl_model *model, const cl_digest *digest);

#endif
