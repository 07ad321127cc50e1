/* A look at an LMDB file without the manifest: every row of every table, and a digest of them. */
#ifndef CL_RAW_H
#define CL_RAW_H

#include <lmdb.h>
#include <stdint.h>

typedef struct cl_digest {
    uint64_t all;
    uint64_t body; /* without the table that has the clock and the counters */
    uint64_t rows;
} cl_digest;

typedef void (*cl_row_fn)(void *arg, const char *table, MDB_val key, MDB_val value);

/* Adds one row. Tables and rows must come in one order. */
void cl_digest_row(cl_digest *digest, const char *table, const char *counters, MDB_val key,
                   MDB_val value);
/* Walks a file that nobody writes to. `fn` may be NULL. Returns LMDB's or errno's number. */
int cl_raw_walk(const char *path, const char *counters, cl_row_fn fn, void *arg, cl_digest *out);

#endif
