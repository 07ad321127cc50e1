/* Work that blocks: on threads of its own, its result as a message (R27).
 *
 * A behavior never blocks. What cannot be done otherwise (a library that waits, a name lookup, a
 * long computation, files) is given away as a job: a function that runs on a bounded pool of
 * threads. Its result comes back to the actor that asked, as a message that brings its own storage
 * and so cannot be refused. The threads are made as needed and belong to the system; a loop of
 * jzx_loop_create() has its own few.
 *
 * A job belongs to the incarnation that asked for it. When that one ends or is restarted, jobs that
 * wait are forgotten, and the results of those that run are released instead of delivered. */
#ifndef JZX_BLOCKING_H
#define JZX_BLOCKING_H

#include <jzx/actor.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t jzx_job_ref; /* 0 is none */

/* Runs on a thread of the blocking pool. May block; calls no jzx_ function but jzx_send_async().
 * What it returns becomes msg->data of the result. */
typedef void *(*jzx_blocking_fn)(void *arg);

/* Zero is the default everywhere but in `fn`. */
typedef struct jzx_blocking_opts {
    jzx_blocking_fn fn; /* required */
    void *arg;          /* the job's; after fn ran it is fn's to have released it */
    uint32_t tag;       /* of the result */
    uint32_t reserved;
    /* Releases an argument whose job never ran: cancelled, or forgotten. */
    void (*drop_arg)(void *arg);
    /* Releases a result that is not taken: after the behavior returned, as jzx_message.drop, or
     * when its actor is gone. Without it the result is the behavior's, and one
     * that is not delivered is released by the actor's drop_msg or counted as abandoned. */
    void (*drop_result)(void *result);
} jzx_blocking_opts;

/* Has fn(arg) run on another thread. The result is one message: kind JZX_KIND_JOB, this tag, data
 * as fn returned it, len the job's number (jzx_message_job()). Jobs start in the order of asking;
 * how many run at once is up to the system's config. Thread: loop, inside actor code; not in
 * POST_STOP and deinit. Errors: INVALID_ARG (an argument is NULL, or the call is made outside of an
 * actor), RESERVED_TAG, QUEUE_FULL (`blocking_threads` jobs run and `blocking_queue` jobs wait; try
 * again when a result has come, or shed load), STOPPING (the actor is ending, or the loop is being
 * shut down or destroyed), NO_THREADS (there is no thread yet, and the operating system refused
 * one), NO_MEMORY. On an error arg stays the caller's. */
JZX_API JZX_NODISCARD jzx_err jzx_run_blocking(jzx_context *ctx, jzx_blocking_fn fn, void *arg,
                                               uint32_t tag);
/* The same with everything. out_job may be NULL. Errors: as jzx_run_blocking(), NEWER_STRUCT. */
JZX_API JZX_NODISCARD jzx_err jzx_run_blocking_with_sized(jzx_context *ctx,
                                                          const jzx_blocking_opts *opts,
                                                          size_t opts_size, jzx_job_ref *out_job);
static inline JZX_NODISCARD jzx_err jzx_run_blocking_with(jzx_context *ctx,
                                                          const jzx_blocking_opts *opts,
                                                          jzx_job_ref *out_job)
{
    return jzx_run_blocking_with_sized(ctx, opts, sizeof *opts, out_job);
}

/* On JZX_OK the job has not begun and never will: arg was dropped, and no message comes. Works for
 * file operations too. Thread: loop, inside the actor that asked. Errors: ALREADY (the job runs or
 * ran, and its message comes or came; or it was cancelled before), NO_SUCH_REF (there never was
 * such a job, or it belongs to another actor or to an earlier incarnation), INVALID_ARG (called
 * outside of an actor). */
JZX_API jzx_err jzx_cancel_blocking(jzx_context *ctx, jzx_job_ref job);

/* Which job a message is the result of; 0: it is not one. Thread: any. */
JZX_API jzx_job_ref jzx_message_job(const jzx_message *msg);

/* Files.
 *
 * read(2), write(2) and fsync(2) block on files; these do not. The threads above do them.
 * Buffers are the runtime's and the descriptor is duplicated for the time of the operation: an
 * actor may end or close its file at any moment. Operations on one file may overtake each other:
 * wait for the event before asking for what depends on it. Closing the duplicate releases the
 * process's POSIX record locks on the file (fcntl(2), F_SETLK), as every close(2) does: lock with
 * F_OFD_SETLK. */
typedef enum jzx_file_op {
    JZX_FILE_READ = 1,
    JZX_FILE_WRITE = 2,
    JZX_FILE_SYNC = 3,     /* fsync */
    JZX_FILE_DATASYNC = 4, /* fdatasync */
    JZX_FILE_OPS = 5
} jzx_file_op;
#define JZX_FILE_LEN_MAX ((size_t)1 << 30)
#define JZX_FILE_CURRENT UINT64_MAX /* for offset: the file's own position, which moves */

/* What a message of kind JZX_KIND_FILE points to, borrowed for the call. */
typedef struct jzx_file_event {
    jzx_job_ref job;
    uint64_t offset;  /* as asked for */
    size_t len;       /* as asked for */
    size_t n;         /* bytes done: fewer than len at the end of the file, or when err is set */
    const void *data; /* the bytes read, borrowed for the call; NULL otherwise */
    int32_t err;      /* JZX_OK; IO, BAD_FD, NO_ACCESS, NO_SPACE, NO_MEMORY, INVALID_ARG */
    int32_t os_error; /* errno, for people; 0 without an error */
    int32_t fd;       /* as given */
    uint32_t op;      /* jzx_file_op */
} jzx_file_event;

/* Reads up to len bytes at offset into a buffer of the runtime; goes on after a short read until
 * the end of the file. Thread: as jzx_run_blocking(). Errors: as jzx_run_blocking(), BAD_FD (the
 * descriptor is not open), TOO_BIG (`len` is above JZX_FILE_LEN_MAX), INVALID_ARG (the offset is
 * above INT64_MAX, or on a pipe, which has none), NO_FDS (the descriptor could not be duplicated),
 * NOT_SUPPORTED (the loop is simulated and has no files). */
JZX_API JZX_NODISCARD jzx_err jzx_file_read(jzx_context *ctx, int fd, uint64_t offset, size_t len,
                                            uint32_t tag, jzx_job_ref *out_job);
/* Writes a copy of the bytes; goes on after a short write until all are written. Errors: as
 * jzx_file_read(). */
JZX_API JZX_NODISCARD jzx_err jzx_file_write(jzx_context *ctx, int fd, uint64_t offset,
                                             const void *bytes, size_t len, uint32_t tag,
                                             jzx_job_ref *out_job);
/* op: JZX_FILE_SYNC or JZX_FILE_DATASYNC. Errors: as jzx_file_read() but TOO_BIG, INVALID_ARG (`op`
 * is no sync). */
JZX_API JZX_NODISCARD jzx_err jzx_file_sync(jzx_context *ctx, int fd, jzx_file_op op, uint32_t tag,
                                            jzx_job_ref *out_job);

#ifdef __cplusplus
}
#endif
#endif
