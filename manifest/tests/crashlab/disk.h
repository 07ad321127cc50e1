/* A disk as a crash sees it: what is surely there, and what may be.
 *
 * The log is played onto it entry by entry. A write is pending, split at page borders, until a sync
 * of its file; a name is pending until a sync of the directory. A crash leaves what is durable and
 * any subset of what is pending: that is all a power failure is allowed to do here. */
#ifndef CL_DISK_H
#define CL_DISK_H

#include "record.h"

enum {
    CL_PAGE = 4096,
    CL_NAME_MAX = 128,
    CL_INODES_MAX = 256,
    CL_NAMES_MAX = 256,
    CL_REGISTERS = 32,
    CL_ITEMS_MAX = 1 << 20
};

typedef struct cl_inode {
    uint64_t inode;
    unsigned char *bytes; /* durable */
    uint64_t len;
    uint64_t cap;
    bool minor;
} cl_inode;

typedef struct cl_name {
    char name[CL_NAME_MAX];
    uint32_t inode; /* index */
} cl_name;

/* Something that a crash may or may not leave. */
typedef struct cl_item {
    cl_op
        op; /* CL_WRITE, CL_TRUNC; or of the directory: CL_CREATE, CL_RENAME, CL_LINK, CL_UNLINK */
    uint32_t inode; /* index */
    uint32_t len;
    bool minor;
    uint64_t off;
    const unsigned char *data; /* in the log; names of a directory operation */
} cl_item;

/* Mistakes that a program could have made, as a change of how its log is read. */
typedef struct cl_rules {
    bool no_data_sync; /* fsync() and fdatasync() of files do nothing */
    bool no_meta_sync; /* O_DSYNC does nothing */
    bool no_dir_sync;
    bool early_marks; /* acknowledged before the commit */
    bool instant;     /* everything is durable at once: for looking at what a run wrote */
} cl_rules;

typedef struct cl_disk {
    cl_rules rules;
    cl_inode inodes[CL_INODES_MAX];
    uint32_t inode_count;
    cl_name names[CL_NAMES_MAX]; /* durable */
    uint32_t name_count;
    cl_item *items; /* pending, in order */
    uint32_t item_count;
    uint64_t registers[CL_REGISTERS]; /* the largest value of each mark so far */
    uint64_t version;                 /* grows whenever something becomes durable */
} cl_disk;

void cl_disk_init(cl_disk *disk, cl_rules rules);
void cl_disk_deinit(cl_disk *disk);
/* Everything an entry does but for its sync. */
void cl_disk_begin(cl_disk *disk, const cl_entry *entry);
/* Its sync, if it has one. */
void cl_disk_end(cl_disk *disk, const cl_entry *entry);
/* Whether a crash between the two is worth a look. */
bool cl_entry_syncs(const cl_entry *entry);

/* The names with the chosen ones of the pending operations on top. Returns how many. */
uint32_t cl_disk_names(const cl_disk *disk, const unsigned char *chosen, cl_name *out);
uint32_t cl_disk_find(const cl_name *names, uint32_t count, const char *name); /* or UINT32_MAX */
static inline bool cl_item_is_name(const cl_item *item)
{
    return item->op != CL_WRITE && item->op != CL_TRUNC;
}

#endif
