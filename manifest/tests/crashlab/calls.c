/* The calls that are recorded, in place of libc's. */
#include "record_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int64_t failed(int error)
{
    errno = error;
    return -1;
}

/* ---- writes */

static size_t iov_total(const struct iovec *iov, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        total += iov[i].iov_len;
    }
    return total;
}

static void record_write(const cl_target *t, uint64_t off, const struct iovec *iov, int count,
                         size_t done)
{
    if (!t->ours || !cl_rec_is_recording()) {
        return;
    }
    unsigned char *to = cl_rec_entry(CL_WRITE, t->inode, off, done, t->dsync);
    for (int i = 0; to && i < count && done; i++) {
        size_t part = iov[i].iov_len < done ? iov[i].iov_len : done;
        memcpy(to, iov[i].iov_base, part);
        to += part;
        done -= part;
    }
}

/* Half of the bytes, from the first buffer on. */
static int64_t write_short(int fd, const struct iovec *iov, size_t total, int64_t off)
{
    size_t half = total / 2 < iov[0].iov_len ? total / 2 : iov[0].iov_len;
    if (half == 0) {
        return failed(ENOSPC);
    }
    return off < 0 ? syscall(SYS_write, fd, iov[0].iov_base, half)
                   : syscall(SYS_pwrite64, fd, iov[0].iov_base, half, off);
}

/* All ways to write: at `off`, or where the descriptor stands (-1). */
static int64_t write_all(int fd, const struct iovec *iov, int count, int64_t off)
{
    cl_rec_lock();
    cl_target t = cl_rec_target(fd);
    int64_t at = off;
    if (off < 0 && (t.ours || cl_rec_is_watched())) {
        at = (fcntl(fd, F_GETFL) & O_APPEND) ? lseek(fd, 0, SEEK_END) : lseek(fd, 0, SEEK_CUR);
    }
    cl_fault fault = cl_rec_fault(&t, CALL_WRITE);
    int64_t done;
    if (cl_fault_errno(fault)) {
        done = failed(cl_fault_errno(fault));
    } else if (fault == CL_FAULT_SHORT) {
        done = write_short(fd, iov, iov_total(iov, count), off);
    } else if (off < 0) {
        done = syscall(SYS_writev, fd, iov, count);
    } else {
        done = syscall(SYS_pwritev, fd, iov, count, off, 0);
    }
    if (done > 0) {
        record_write(&t, (uint64_t)at, iov, count, (size_t)done);
        cl_rec_touch(fd, (uint64_t)at, (uint64_t)done);
    }
    cl_rec_unlock();
    return fault == CL_FAULT_EIO_LATE ? failed(EIO) : done;
}

/* The buffers are only read, which struct iovec cannot say. */
static struct iovec one_buffer(const void *data, size_t len)
{
    struct iovec iov = {.iov_len = len};
    memcpy(&iov.iov_base, &data, sizeof data);
    return iov;
}

ssize_t write(int fd, const void *data, size_t len)
{
    struct iovec iov = one_buffer(data, len);
    return write_all(fd, &iov, 1, -1);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t off)
{
    struct iovec iov = one_buffer(data, len);
    return write_all(fd, &iov, 1, off);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t off)
{
    return pwrite(fd, data, len, off);
}

ssize_t writev(int fd, const struct iovec *iov, int count)
{
    return write_all(fd, iov, count, -1);
}

ssize_t pwritev(int fd, const struct iovec *iov, int count, off_t off)
{
    return write_all(fd, iov, count, off);
}

ssize_t pwritev64(int fd, const struct iovec *iov, int count, off64_t off)
{
    return write_all(fd, iov, count, off);
}

ssize_t pwritev2(int fd, const struct iovec *iov, int count, off_t off, int flags)
{
    if (flags) {
        cl_refuse("pwritev2() with flags is not recorded");
    }
    return write_all(fd, iov, count, off);
}

/* ---- sizes */

/* `kind`: an allocation only makes a file longer. */
static int resize(int fd, uint64_t size, cl_call kind)
{
    cl_rec_lock();
    cl_target t = cl_rec_target(fd);
    struct stat st;
    bool grows = fstat(fd, &st) == 0 && size > (uint64_t)st.st_size;
    cl_fault fault = cl_rec_fault(&t, kind);
    int64_t rc;
    if (cl_fault_errno(fault)) {
        rc = failed(cl_fault_errno(fault));
    } else if (kind == CALL_TRUNCATE) {
        rc = syscall(SYS_ftruncate, fd, size);
    } else {
        rc = syscall(SYS_fallocate, fd, 0, (off_t)0, size);
    }
    if (rc == 0 && (grows || kind == CALL_TRUNCATE)) {
        if (t.ours) {
            cl_rec_add(CL_TRUNC, t.inode, size, NULL, 0);
        }
        cl_rec_touch(fd, grows ? (uint64_t)st.st_size : size, UINT64_MAX);
    }
    cl_rec_unlock();
    return (int)(fault == CL_FAULT_EIO_LATE ? failed(EIO) : rc);
}

int ftruncate(int fd, off_t size)
{
    return resize(fd, (uint64_t)size, CALL_TRUNCATE);
}

int ftruncate64(int fd, off64_t size)
{
    return ftruncate(fd, size);
}

int fallocate(int fd, int mode, off_t off, off_t len)
{
    if (mode == 0) {
        return resize(fd, (uint64_t)(off + len), CALL_ALLOCATE);
    }
    if (cl_rec_target(fd).ours) {
        cl_refuse("fallocate() with a mode is not recorded");
    }
    return (int)syscall(SYS_fallocate, fd, mode, off, len);
}

int fallocate64(int fd, int mode, off64_t off, off64_t len)
{
    return fallocate(fd, mode, off, len);
}

int posix_fallocate(int fd, off_t off, off_t len)
{
    int saved = errno;
    int rc = fallocate(fd, 0, off, len) == 0 ? 0 : errno;
    errno = saved;
    return rc;
}

int posix_fallocate64(int fd, off64_t off, off64_t len)
{
    return posix_fallocate(fd, off, len);
}

/* ---- syncs */

static int sync_fd(int fd, int64_t number)
{
    cl_rec_lock();
    cl_target t = cl_rec_target(fd);
    cl_fault fault = cl_rec_fault(&t, CALL_SYNC);
    int64_t rc = cl_fault_errno(fault) ? failed(cl_fault_errno(fault)) : syscall(number, fd);
    if (rc == 0 && (t.ours || t.dir)) {
        cl_rec_add(t.dir ? CL_DIRSYNC : CL_SYNC, t.inode, 0, NULL, 0);
    }
    cl_rec_unlock();
    return (int)(fault == CL_FAULT_EIO_LATE ? failed(EIO) : rc);
}

int fsync(int fd)
{
    return sync_fd(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return sync_fd(fd, SYS_fdatasync);
}

/* It promises nothing after a crash, so it counts as nothing. */
int sync_file_range(int fd, off64_t off, off64_t len, unsigned flags)
{
    return (int)syscall(SYS_sync_file_range, fd, off, len, flags);
}

int msync(void *addr, size_t len, int flags)
{
    if (cl_rec_is_recording()) {
        cl_refuse("msync(): writes through a mapping are not recorded");
    }
    return (int)syscall(SYS_msync, addr, len, flags);
}

/* ---- names */

static int open_at(int dir_fd, const char *path, int flags, mode_t mode)
{
    cl_rec_lock();
    char full[PATH_MAX];
    const char *name = cl_rec_name(dir_fd, path, full);
    struct stat before;
    bool was_there = name && fstatat(dir_fd, path, &before, 0) == 0;
    int fd = (int)syscall(SYS_openat, dir_fd, path, flags, mode);
    struct stat st;
    if (fd >= 0 && name && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        cl_rec_file(st.st_ino, name);
        if (!was_there) {
            cl_rec_add(CL_CREATE, st.st_ino, 0, name, strlen(name) + 1);
        } else if ((flags & O_TRUNC) && before.st_size > 0) {
            cl_rec_add(CL_TRUNC, st.st_ino, 0, NULL, 0);
        }
    }
    cl_rec_unlock();
    return fd;
}

static mode_t mode_of(int flags, va_list args)
{
    bool creates = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
    return creates ? va_arg(args, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int dir_fd, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    return open_at(dir_fd, path, flags, mode);
}

int openat64(int dir_fd, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    return open_at(dir_fd, path, flags, mode);
}

int creat(const char *path, mode_t mode)
{
    return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* Names from a counter do as well as random ones: the directory is ours alone. */
int mkostemp(char *path, int flags)
{
    static unsigned counter;
    size_t len = strlen(path);
    for (unsigned tries = 0; len >= 6 && tries < 10000; tries++) {
        char end[7];
        (void)snprintf(end, sizeof end, "%06u", __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED));
        memcpy(path + len - 6, end, 6);
        int fd = open(path, flags | O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return (int)failed(len < 6 ? EINVAL : EEXIST);
}

int mkstemp(char *path)
{
    return mkostemp(path, 0);
}

static uint64_t inode_at(int dir_fd, const char *path)
{
    struct stat st;
    return fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_ino : 0;
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    cl_rec_lock();
    char from_full[PATH_MAX], to_full[PATH_MAX];
    const char *old_name = cl_rec_name(from_fd, from, from_full);
    const char *new_name = cl_rec_name(to_fd, to, to_full);
    uint64_t inode = old_name ? inode_at(from_fd, from) : 0;
    int rc = (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
    if (rc == 0 && old_name && new_name) {
        cl_rec_add_names(CL_RENAME, inode, old_name, new_name);
    }
    cl_rec_unlock();
    return rc;
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    return renameat2(from_fd, from, to_fd, to, 0);
}

int rename(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    cl_rec_lock();
    char full[PATH_MAX];
    const char *name = cl_rec_name(to_fd, to, full);
    int rc = (int)syscall(SYS_linkat, from_fd, from, to_fd, to, flags);
    if (rc == 0 && name) {
        uint64_t inode = inode_at(to_fd, to);
        cl_rec_file((ino_t)inode, name);
        cl_rec_add(CL_LINK, inode, 0, name, strlen(name) + 1);
    }
    cl_rec_unlock();
    return rc;
}

int link(const char *from, const char *to)
{
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlinkat(int dir_fd, const char *path, int flags)
{
    cl_rec_lock();
    char full[PATH_MAX];
    const char *name = cl_rec_name(dir_fd, path, full);
    uint64_t inode = name ? inode_at(dir_fd, path) : 0;
    int rc = (int)syscall(SYS_unlinkat, dir_fd, path, flags);
    if (rc == 0 && name) {
        cl_rec_add(CL_UNLINK, inode, 0, name, strlen(name) + 1);
    }
    cl_rec_unlock();
    return rc;
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}
