/* Where dumps go: a file that is added to and never grows without end, or a descriptor. */
#ifndef JZI_OS_DUMP_FILE_H
#define JZI_OS_DUMP_FILE_H

#include <jzx/types.h>

#include <stdbool.h>

/* A file that is this long when it is opened becomes PATH.old first. */
#define JZI_DUMP_FILE_MAX (16u * 1024 * 1024)

/* The path as it means the same file when the program has gone to another directory. False: it is
 * too long. */
enum { JZI_DUMP_PATH_SIZE = 4096 };
bool jzi_dump_file_settle(const char *path, char out[JZI_DUMP_PATH_SIZE]);

/* Opens the file to add to it, with permissions for this user only if it is made; "-" is standard
 * error. Never waits: a pipe without a reader is refused, and so is a symbolic link. Errors: IO,
 * with errno. */
jzx_err jzi_dump_file_open(const char *path, int *out_fd);
void jzi_dump_file_close(int fd); /* standard error stays open */

/* All of it. A descriptor that takes nothing is waited for no longer than so many milliseconds at a
 * time, whether it blocks or not: a pipe that is not read does not hold the writer up.
 * JZI_DUMP_BLOCKS: one that blocks may do so. Errors: IO, with errno. */
enum { JZI_DUMP_BLOCKS = -1, JZI_DUMP_PATIENCE_MS = 5000 };
jzx_err jzi_dump_write(int fd, const char *bytes, size_t len, int32_t patience_ms);

/* "2026-11-16 16:50:11 UTC" */
enum { JZI_DATE_SIZE = 32 };
void jzi_date_format(char out[JZI_DATE_SIZE]);

#endif
