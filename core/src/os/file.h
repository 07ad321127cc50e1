/* File operations that go on until all is done, the end of the file or an error, on the thread that
 * calls. */
#ifndef JZI_OS_FILE_H
#define JZI_OS_FILE_H

#include <jzx/types.h>

#include <stdbool.h>

/* The values are those of jzx_file_op, which lies above. */
enum { JZI_FILE_READ = 1, JZI_FILE_WRITE = 2, JZI_FILE_SYNC = 3, JZI_FILE_DATASYNC = 4 };
#define JZI_FILE_CURRENT UINT64_MAX

typedef struct jzi_file {
    int32_t fd; /* a duplicate; -1: closed */
    uint32_t op;
    uint64_t offset; /* where it began; JZI_FILE_CURRENT: the file's own position */
    unsigned char *bytes;
    size_t len;
    size_t done;
    int32_t os_error; /* errno; 0: none */
} jzi_file;

/* Fills in file->fd with a duplicate of fd; the rest is filled in already. Errors: BAD_FD, NO_FDS,
 * INVALID_ARG (an offset where there are none). Thread: any. */
jzx_err jzi_file_open(jzi_file *file, int fd);
/* Once or more often. Thread: any. */
void jzi_file_close(jzi_file *file);

/* All of it, on this thread. */
void jzi_file_run(jzi_file *file);

/* What comes after one call to the kernel. */
typedef enum jzi_file_next {
    JZI_FILE_OVER,
    JZI_FILE_MORE, /* the rest of it, or the same once more */
    JZI_FILE_WAIT  /* the same once more when the descriptor is ready: it does not block */
} jzi_file_next;
/* `result` is what the call did: a count, or a negative errno. */
jzi_file_next jzi_file_step(jzi_file *file, int64_t result);

/* What os_error means to a user; 0 is JZX_OK. */
jzx_err jzi_file_error(int code);

#endif
