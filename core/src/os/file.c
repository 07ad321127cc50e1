#define _GNU_SOURCE
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

static bool moves_bytes(const jzi_file *file)
{
    return file->op == JZI_FILE_READ || file->op == JZI_FILE_WRITE;
}

jzx_err jzi_file_open(jzi_file *file, int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
        return errno == EMFILE ? JZX_ERR_NO_FDS : JZX_ERR_BAD_FD;
    }
    /* pread(2) would fail on a pipe, and only then. */
    if (moves_bytes(file) && file->offset != JZI_FILE_CURRENT && lseek(copy, 0, SEEK_CUR) < 0 &&
        errno == ESPIPE) {
        (void)close(copy);
        return JZX_ERR_INVALID_ARG;
    }
    file->fd = copy;
    return JZX_OK;
}

void jzi_file_close(jzi_file *file)
{
    int fd = file->fd;
    file->fd = -1; /* first: a child that is forked here must not take it for open */
    if (fd >= 0) {
        (void)close(fd);
    }
}

jzx_err jzi_file_error(int code)
{
    switch (code) {
    case 0:
        return JZX_OK;
    case ENOSPC:
    case EDQUOT:
        return JZX_ERR_NO_SPACE;
    case EBADF:
        return JZX_ERR_BAD_FD;
    case EACCES:
    case EPERM:
        return JZX_ERR_NO_ACCESS;
    case ENOMEM:
        return JZX_ERR_NO_MEMORY;
    case EINVAL:
    case EISDIR:
    case ESPIPE:
        return JZX_ERR_INVALID_ARG;
    default:
        return JZX_ERR_IO;
    }
}

jzi_file_next jzi_file_step(jzi_file *file, int64_t result)
{
    if (result == -EINTR) {
        return JZI_FILE_MORE;
    }
    if (result == -EAGAIN) {
        return JZI_FILE_WAIT;
    }
    if (result < 0) {
        file->os_error = (int32_t)-result;
        return JZI_FILE_OVER;
    }
    if (!moves_bytes(file)) {
        return JZI_FILE_OVER;
    }
    file->done += (size_t)result;
    if (file->done == file->len) {
        return JZI_FILE_OVER;
    }
    if (result == 0) {
        /* The end of the file. A device that takes no bytes and says nothing is broken. */
        file->os_error = file->op == JZI_FILE_WRITE ? EIO : 0;
        return JZI_FILE_OVER;
    }
    return JZI_FILE_MORE;
}

static int64_t call_kernel(const jzi_file *file)
{
    unsigned char *at = file->bytes + file->done;
    size_t left = file->len - file->done;
    bool current = file->offset == JZI_FILE_CURRENT;
    int64_t offset = (int64_t)(file->offset + file->done);
    int64_t n = -1;
    switch (file->op) {
    case JZI_FILE_READ:
        n = current ? read(file->fd, at, left) : pread(file->fd, at, left, offset);
        break;
    case JZI_FILE_WRITE:
        n = current ? write(file->fd, at, left) : pwrite(file->fd, at, left, offset);
        break;
    case JZI_FILE_SYNC:
        n = fsync(file->fd);
        break;
    default:
        n = fdatasync(file->fd);
        break;
    }
    return n < 0 ? -(int64_t)errno : n;
}

void jzi_file_run(jzi_file *file)
{
    for (;;) {
        jzi_file_next next = jzi_file_step(file, call_kernel(file));
        if (next == JZI_FILE_OVER) {
            return;
        }
        if (next == JZI_FILE_WAIT) {
            struct pollfd ready = {.fd = file->fd,
                                   .events = file->op == JZI_FILE_READ ? POLLIN : POLLOUT};
            (void)poll(&ready, 1, -1);
        }
    }
}
