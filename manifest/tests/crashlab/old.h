/* A manifest of schema 0, as an earlier library left it. */
#ifndef CL_OLD_H
#define CL_OLD_H

#include <stdbool.h>
#include <stdint.h>

enum { CL_OLD_DB = 7000 };

typedef struct cl_old {
    const char *path;
    uint32_t rows;    /* old records */
    bool interrupted; /* its migration was begun: half of them are new already */
} cl_old;

/* Makes it in a process of its own, since it opens and closes the manifest. */
void cl_old_make(const cl_old *old);

#endif
