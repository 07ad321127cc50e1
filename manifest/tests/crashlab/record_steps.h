/* What the recorder's calls share: which files are meant, the log, and what is to fail. */
#ifndef CL_RECORD_STEPS_H
#define CL_RECORD_STEPS_H

#include "record.h"

#include <limits.h>

typedef struct cl_target {
    bool ours;  /* a file of our directory */
    bool dir;   /* the directory itself */
    bool minor; /* a companion */
    bool dsync;
    uint64_t inode;
    int fd;
} cl_target;

typedef enum cl_call { CALL_WRITE, CALL_TRUNCATE, CALL_ALLOCATE, CALL_SYNC } cl_call;

/* Around a call and its entry: the log's order is that of the effects. Nothing while nobody looks.
 */
void cl_rec_lock(void);
void cl_rec_unlock(void); /* leaves errno alone */

/* What a descriptor stands for. */
cl_target cl_rec_target(int fd);
/* The name below our directory of what openat() and the like were given, or NULL. */
const char *cl_rec_name(int dir_fd, const char *path, char full[PATH_MAX]);
/* A file of our directory, from now on. */
void cl_rec_file(ino_t inode, const char *name);

bool cl_rec_is_recording(void);
/* An entry with room for its data, or NULL: the log is full. */
unsigned char *cl_rec_entry(cl_op op, uint64_t inode, uint64_t off, size_t len, bool dsync);
/* The same with the data; nothing without a recording. */
void cl_rec_add(cl_op op, uint64_t inode, uint64_t off, const void *data, size_t len);
void cl_rec_add_names(cl_op op, uint64_t inode, const char *one, const char *two);

/* Whether somebody watches, and tells them of a write; len UINT64_MAX: the size changed. */
bool cl_rec_is_watched(void);
void cl_rec_touch(int fd, uint64_t off, uint64_t len);

/* Whether this call is to fail now, and what it says then; 0: it is done after all. */
cl_fault cl_rec_fault(const cl_target *t, cl_call kind);
int cl_fault_errno(cl_fault fault);

#endif
