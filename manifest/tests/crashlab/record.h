/* The recorder: what a program does to the files of one directory, in the order in which it
 * happened, with the data.
 *
 * It is linked into the program and defines write(), fsync(), rename() and their kin, so that the
 * program, the manifest and liblmdb all call it instead of libc. Linked or preloaded comes to the
 * same for the callers, but linked it works after a plain fork(), and one process can record, the
 * next be made to fail, and the next only be watched. Writes through a mapping and through stdio
 * are not seen; the driver compares the replayed bytes with the real file at the end, so a write
 * that was missed is noticed. */
#ifndef CL_RECORD_H
#define CL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef enum cl_op {
    CL_FILE = 1, /* was there before the recording; durable. Data: name, 0, bytes */
    CL_CREATE,   /* data: name */
    CL_WRITE,    /* data: bytes at off; `dsync`: durable when it returned, its own range only */
    CL_TRUNC,    /* to `off` bytes: shorter, or longer with zeros */
    CL_RENAME,   /* data: old name, 0, new name */
    CL_LINK,     /* data: new name */
    CL_UNLINK,   /* data: name */
    CL_SYNC,     /* of one file */
    CL_DIRSYNC,
    CL_MARK, /* inode: which register; off: its value */
    CL_NOTE  /* inode and off: two numbers of the workload */
} cl_op;

typedef struct cl_entry {
    uint32_t op;
    uint32_t len; /* of the data behind it */
    uint32_t dsync;
    uint32_t reserved;
    uint64_t inode;
    uint64_t off;
} cl_entry;

/* In memory that parent and children share. */
typedef struct cl_log {
    uint64_t cap;
    uint64_t tail;
    uint64_t full; /* 1: something did not fit */
    uint64_t reserved;
    unsigned char bytes[];
} cl_log;

/* Says what cannot be done, and aborts. */
_Noreturn void cl_refuse(const char *what);

cl_log *cl_log_create(size_t cap);
void cl_log_clear(cl_log *log);
/* To a file and back, with the seed of its crashes. false: it is not one of them. */
void cl_log_save(const cl_log *log, const char *path, uint64_t seed);
bool cl_log_load(cl_log *log, const char *path, uint64_t *out_seed);
/* The entry at *at, which is moved on; NULL at the end. */
const cl_entry *cl_log_next(const cl_log *log, uint64_t *at);
static inline const unsigned char *cl_entry_data(const cl_entry *entry)
{
    return (const unsigned char *)(entry + 1);
}

/* Records everything below `dir` from now on, in this process. */
void cl_record(cl_log *log, const char *dir);
void cl_record_stop(void);
/* Writes "register `which` is at least `value`" into the log; nothing without a recording. */
void cl_mark(uint32_t which, uint64_t value);
/* Writes a pair of numbers into the log, for whoever reads it. */
void cl_note(uint64_t one, uint64_t two);
/* Nothing happens to the files any more: the next call on one of them waits for ever. */
void cl_record_freeze(void);

/* Calls `fn` for every write to one file, by this process. NULL: stops. */
typedef void (*cl_touch_fn)(void *arg, uint64_t off, uint64_t len);
void cl_watch(dev_t device, ino_t inode, cl_touch_fn fn, void *arg);

typedef enum cl_fault {
    CL_FAULT_NONE = 0,
    CL_FAULT_EIO,      /* nothing was written, nothing was synced */
    CL_FAULT_EIO_LATE, /* it was, but the answer is EIO all the same */
    CL_FAULT_ENOSPC,
    CL_FAULT_SHORT, /* half of a write; other calls work */
    CL_FAULT_EINTR,
    CL_FAULTS
} cl_fault;
/* Makes the k-th (from 1) write, truncation, allocation or sync below `dir` fail once, or with
 * `lasting` every one from there on. */
void cl_inject(const char *dir, cl_fault fault, uint64_t k, bool lasting);
void cl_inject_stop(void);

typedef struct cl_injected {
    uint64_t calls; /* that could have failed */
    uint32_t fired;
    bool on_sync;     /* the first that failed was a sync, */
    bool on_dsync;    /* a write on an O_DSYNC descriptor, */
    bool on_minor;    /* or of one of the companion files */
    bool on_allocate; /* more room for a file: nothing of it is in use */
    bool was_write;   /* else a truncation or an allocation */
} cl_injected;
cl_injected cl_injected_so_far(void);

/* FILE-lock, FILE-owner: whatever a crash leaves of them must do. */
bool cl_name_is_minor(const char *name);

#endif
