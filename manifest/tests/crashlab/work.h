/* The workload: many threads that do everything the public API can do to a manifest, and write into
 * the log what was acknowledged. */
#ifndef CL_WORK_H
#define CL_WORK_H

#include <stdbool.h>
#include <stdint.h>

/* One life of a process. */
typedef struct cl_work {
    const char *path;
    uint64_t seed;
    uint32_t clients;
    uint32_t requests; /* of all clients together */
    uint32_t life;     /* 0, 1, ...: the clock goes on from life to life */
    bool clean;        /* closes the manifest; else the process is gone in the middle of things */
    bool all_events;
} cl_work;

/* For cl_record_child(). */
void cl_work_run(void *work);

#endif
