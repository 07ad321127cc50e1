/* A second opinion on the tables of jobs: a plain walk that knows the rules but not the code of
 * jzx_mf_check(). Every job has its row in the index of its state and in no other; what slots,
 * gates and dependencies name is there and not finished. */
#ifndef CL_FACTS_H
#define CL_FACTS_H

#include "raw.h"

#include <stdbool.h>

typedef struct cl_job {
    uint64_t id;
    uint64_t boot;
    uint32_t attempt;
    uint32_t max_attempts;
    uint32_t after_left;
    uint8_t state;
    uint8_t rows; /* in the index of its state, as the walk finds them */
} cl_job;

/* A row that names a job. */
typedef struct cl_named {
    uint64_t id;
    uint64_t other; /* of a dependency: the parent */
    uint32_t table;
} cl_named;

typedef struct cl_facts {
    cl_job *jobs; /* by id */
    uint32_t job_count, job_cap;
    cl_named *named;
    uint32_t named_count, named_cap;
    uint64_t seq; /* of meta */
    uint64_t boot;
    uint64_t generations[8]; /* of components 0 to 7 */
    uint32_t schema;
    uint64_t old_rows; /* of an earlier schema */
    uint64_t chunks;
    const char *broken; /* a record that does not decode: its table */
    cl_digest digest;
} cl_facts;

void cl_facts_clear(cl_facts *facts);
void cl_facts_free(cl_facts *facts);
/* Takes one row; a cl_row_fn. */
void cl_facts_row(void *facts, const char *table, MDB_val key, MDB_val value);
/* Whether all is as it must be; else a sentence. */
bool cl_facts_check(cl_facts *facts, char *why, size_t size);
const cl_job *cl_facts_job(const cl_facts *facts, uint64_t id);

#endif
