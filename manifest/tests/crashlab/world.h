/* The manifest as the harness uses it: on a loop of its own in a world where time stands still, so
 * that whatever a judge or a fault does is the same every time and needs no thread; and what it can
 * be told of a file from inside a snapshot. */
#ifndef CL_WORLD_H
#define CL_WORLD_H

#include "raw.h"

#include <jzx/manifest.h>

#include <stdbool.h>

#define CL_MAIN "manifest"
#define CL_COUNTERS "meta"

/* Registers of the log. */
enum {
    CL_MARK_SEQ = 1,        /* a commit was acknowledged */
    CL_MARK_OPENED = 2,     /* jzx_mf_open() returned */
    CL_MARK_JOB_ID = 3,     /* was given out */
    CL_MARK_GENERATION = 8, /* and up: of component 0, 1, ... */
    CL_COMPONENTS = 4
};

/* Opens `path` with the loop of this process. The clock does not move and stands where the file's
 * last commit was. */
jzx_err cl_world_open(const char *path, uint32_t flags, jzx_mf **out, jzx_mf_recovery *report);
jzx_err cl_world_close(jzx_mf *mf);
/* Commits and runs the loop until it was answered. The first slot's id is in *out_id (may be NULL).
 */
jzx_err cl_world_commit(jzx_mf_txn *txn, uint64_t *out_seq, uint64_t *out_id);
/* Has the writer do what it has to do by itself. */
void cl_world_settle(void);

/* The digest of all tables that a snapshot sees; as cl_raw_walk() would give. */
jzx_err cl_world_digest(jzx_mf *mf, cl_digest *out, uint64_t *out_seq);
/* Calls `fn` for every row of every table that a snapshot sees. */
jzx_err cl_world_rows(jzx_mf *mf, cl_row_fn fn, void *arg);

#endif
