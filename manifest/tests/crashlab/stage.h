/* A directory in which crashes are put on, one after the other.
 *
 * The main file is changed from state to state, not written anew: what differs from the durable
 * bytes is kept as a set of pages, by this module for what it writes and by the recorder's watch
 * for what the judged code writes, and put back before the next state. */
#ifndef CL_STAGE_H
#define CL_STAGE_H

#include "states.h"

#include <limits.h>

typedef struct cl_stage {
    char dir[PATH_MAX / 2];
    char path[PATH_MAX]; /* of the main file */
    char main_name[CL_NAME_MAX];
    int fd;               /* of the main file; -1: there is none */
    uint32_t inode;       /* whose bytes it has, */
    uint64_t version;     /* as they were at this version of the disk; 0: unknown */
    unsigned char *dirty; /* a byte for each page that may differ */
    uint64_t dirty_cap;
    uint64_t dirty_end; /* no page from here on */
} cl_stage;

/* `dir` is created. */
void cl_stage_init(cl_stage *stage, const char *dir, const char *main_name);
/* Removes the directory with everything in it. */
void cl_stage_deinit(cl_stage *stage);
/* Puts a crash on. Returns whether the main file is there. */
bool cl_stage_set(cl_stage *stage, const cl_state *state);

/* Copies a file. */
void cl_file_copy(const char *from, const char *to);
/* Removes all files of a directory but `keep` (may be NULL). */
void cl_dir_clear(const char *dir, const char *keep);

#endif
