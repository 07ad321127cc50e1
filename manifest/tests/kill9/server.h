/* The victim: a process with a manifest and 64 clients. */
#ifndef KILL9_SERVER_H
#define KILL9_SERVER_H

#include <stdint.h>

#define KILL9_CLIENTS 64u
#define KILL9_KEEP_DONE_MS 1500u /* then finished jobs are pruned */
#define KILL9_MAX_ATTEMPTS 4u

/* Ways in which the victim lies, so that the judge is seen to notice. */
typedef enum mutant {
    MUTANT_NONE = 0,
    MUTANT_EARLY_ACK = 1,   /* facts are written before the commit */
    MUTANT_TWO_HOLDERS = 2, /* a lease is used by two clients */
    MUTANT_LOST_JOB = 3,    /* somebody takes an acknowledged job away (the driver does) */
    MUTANTS = 4
} mutant;

typedef struct server_opts {
    const char *file;
    const char *dir; /* of the ledgers */
    uint64_t seed;
    uint32_t round; /* part of every ticket */
    uint32_t mutant;
    int ready_fd; /* a byte is written to it when the manifest is open */
} server_opts;

/* Returns only when the manifest cannot be opened. */
int server_run(const server_opts *opts);

#endif
