#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FILES_MAX = 4096 };

/* One process has at most one recording, one watch and one injection. */
static struct {
    pthread_mutex_t lock; /* over a call and its entry: the log's order is that of the effects */
    cl_log *log;
    char dir[PATH_MAX];
    size_t dir_len;
    dev_t device;
    ino_t dir_inode;
    struct {
        ino_t inode;
        bool minor;
    } files[FILES_MAX];
    unsigned file_count;
    bool on; /* recording or injecting: the directory is looked at */

    cl_touch_fn touch;
    void *touch_arg;
    dev_t touch_device;
    ino_t touch_inode;

    cl_fault fault;
    uint64_t fault_at;
    bool fault_lasting;
    cl_injected injected;
} rec = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Noreturn void refuse(const char *what)
{
    fprintf(stderr, "crashlab: %s\n", what);
    abort();
}

bool cl_name_is_minor(const char *name)
{
    static const char *const ends[] = {"-lock", "-owner", "-reserve"};
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t end = strlen(ends[i]);
        if (len >= end && memcmp(name + len - end, ends[i], end) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- the log */

cl_log *cl_log_create(size_t cap)
{
    void *mem = mmap(NULL, sizeof(cl_log) + cap, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mem == MAP_FAILED) {
        refuse("no memory for the log");
    }
    cl_log *log = mem;
    log->cap = cap;
    return log;
}

void cl_log_clear(cl_log *log)
{
    log->tail = 0;
    log->full = 0;
}

static const char log_magic[8] = "crashlg1";

void cl_log_save(const cl_log *log, const char *path, uint64_t seed)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(log_magic, sizeof log_magic, 1, file) != 1 ||
        fwrite(&seed, sizeof seed, 1, file) != 1 ||
        fwrite(log->bytes, 1, log->tail, file) != log->tail || fclose(file) != 0) {
        refuse("cannot write the log");
    }
}

bool cl_log_load(cl_log *log, const char *path, uint64_t *out_seed)
{
    FILE *file = fopen(path, "rb");
    char magic[sizeof log_magic];
    cl_log_clear(log);
    bool good = file && fread(magic, sizeof magic, 1, file) == 1 &&
                memcmp(magic, log_magic, sizeof magic) == 0 &&
                fread(out_seed, sizeof *out_seed, 1, file) == 1;
    if (good) {
        log->tail = fread(log->bytes, 1, log->cap, file);
    }
    if (file) {
        (void)fclose(file);
    }
    return good;
}

const cl_entry *cl_log_next(const cl_log *log, uint64_t *at)
{
    if (*at >= log->tail) {
        return NULL;
    }
    const cl_entry *entry = (const cl_entry *)(const void *)(log->bytes + *at);
    *at += sizeof *entry + ((entry->len + 7u) & ~7u);
    return entry;
}

/* A place for `len` bytes behind a new entry; the entry counts once the tail was moved. */
static unsigned char *entry_begin(cl_op op, uint64_t inode, uint64_t off, size_t len, bool dsync)
{
    cl_log *log = rec.log;
    size_t need = sizeof(cl_entry) + ((len + 7) & ~(size_t)7);
    if (log->full || log->cap - log->tail < need) {
        log->full = 1;
        return NULL;
    }
    cl_entry *entry = (cl_entry *)(void *)(log->bytes + log->tail);
    *entry = (cl_entry){(uint32_t)op, (uint32_t)len, dsync, 0, inode, off};
    log->tail += need;
    return (unsigned char *)(entry + 1);
}

static void entry_add(cl_op op, uint64_t inode, uint64_t off, const void *data, size_t len)
{
    if (!rec.log) {
        return;
    }
    unsigned char *to = entry_begin(op, inode, off, len, false);
    if (to && len) {
        memcpy(to, data, len);
    }
}

static void entry_add_names(cl_op op, uint64_t inode, const char *one, const char *two)
{
    char names[2 * NAME_MAX + 2];
    int len = snprintf(names, sizeof names, "%s%c%s", one, 0, two);
    entry_add(op, inode, 0, names, (size_t)len + 1);
}

/* ---- which files are meant */

/* The part behind the directory, or NULL when it is not directly in it. */
static const char *name_below(const char *path)
{
    if (strncmp(path, rec.dir, rec.dir_len) != 0 || path[rec.dir_len] != '/') {
        return NULL;
    }
    const char *name = path + rec.dir_len + 1;
    return *name && !strchr(name, '/') ? name : NULL;
}

/* The name below our directory of what openat() and the like were given. */
static const char *name_at(int dir_fd, const char *path, char full[PATH_MAX])
{
    if (!rec.on) {
        return NULL;
    }
    if (path[0] == '/') {
        return name_below(path);
    }
    char base[PATH_MAX];
    ssize_t len = -1;
    if (dir_fd == AT_FDCWD) {
        len = getcwd(base, sizeof base) ? (ssize_t)strlen(base) : -1;
    } else {
        char link[64];
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", dir_fd);
        len = readlink(link, base, sizeof base - 1);
    }
    if (len < 0) {
        return NULL;
    }
    base[len] = 0;
    if (snprintf(full, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) {
        return NULL;
    }
    return name_below(full);
}

static int file_find(ino_t inode)
{
    for (unsigned i = 0; i < rec.file_count; i++) {
        if (rec.files[i].inode == inode) {
            return (int)i;
        }
    }
    return -1;
}

static void file_add(ino_t inode, const char *name)
{
    if (file_find(inode) >= 0) {
        return;
    }
    if (rec.file_count == FILES_MAX) {
        refuse("too many files");
    }
    rec.files[rec.file_count].inode = inode;
    rec.files[rec.file_count++].minor = cl_name_is_minor(name);
}

typedef struct target {
    bool ours;  /* a file of our directory */
    bool dir;   /* the directory itself */
    bool minor; /* a companion */
    bool dsync;
    uint64_t inode;
    int fd;
} target;

static target target_of(int fd)
{
    target t = {.fd = fd};
    struct stat st;
    if (!rec.on || fstat(fd, &st) != 0 || st.st_dev != rec.device) {
        return t;
    }
    t.inode = st.st_ino;
    t.dir = st.st_ino == rec.dir_inode;
    int file = t.dir ? -1 : file_find(st.st_ino);
    t.ours = file >= 0;
    t.minor = t.ours && rec.files[file].minor;
    t.dsync = t.ours && (fcntl(fd, F_GETFL) & O_DSYNC) != 0;
    return t;
}

static void lock(void)
{
    if (rec.on) {
        (void)pthread_mutex_lock(&rec.lock);
    }
}

static void unlock(void)
{
    if (rec.on) {
        int saved = errno;
        (void)pthread_mutex_unlock(&rec.lock);
        errno = saved;
    }
}

static void touch(int fd, uint64_t off, uint64_t len)
{
    struct stat st;
    if (rec.touch && fstat(fd, &st) == 0 && st.st_ino == rec.touch_inode &&
        st.st_dev == rec.touch_device) {
        rec.touch(rec.touch_arg, off, len);
    }
}

/* ---- switching it on and off */

static void look_at(const char *dir)
{
    struct stat st;
    if (!realpath(dir, rec.dir) || stat(rec.dir, &st) != 0) {
        refuse("no directory to look at");
    }
    rec.dir_len = strlen(rec.dir);
    rec.device = st.st_dev;
    rec.dir_inode = st.st_ino;
    rec.file_count = 0;
}

/* A file that was there before the first process is durable as it is. */
static void record_old_bytes(const char *path, const char *name, uint64_t inode, size_t size)
{
    size_t head = strlen(name) + 1;
    unsigned char *to = entry_begin(CL_FILE, inode, 0, head + size, false);
    if (!to) {
        return;
    }
    memcpy(to, name, head);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0 || pread(fd, to + head, size, 0) != (ssize_t)size) {
        refuse("cannot read a file that is there already");
    }
    (void)close(fd);
}

static void look_at_old_files(bool record)
{
    DIR *dir = opendir(rec.dir);
    for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir)) {
        char path[PATH_MAX + NAME_MAX + 2];
        (void)snprintf(path, sizeof path, "%s/%s", rec.dir, d->d_name);
        struct stat st;
        if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) {
            continue;
        }
        file_add(st.st_ino, d->d_name);
        if (record) {
            record_old_bytes(path, d->d_name, st.st_ino, (size_t)st.st_size);
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
}

void cl_record(cl_log *log, const char *dir)
{
    look_at(dir);
    rec.log = log;
    look_at_old_files(log->tail == 0);
    rec.on = true;
}

void cl_record_stop(void)
{
    rec.on = false;
    rec.log = NULL;
}

void cl_mark(uint32_t which, uint64_t value)
{
    if (!rec.log) {
        return;
    }
    lock();
    entry_add(CL_MARK, which, value, NULL, 0);
    unlock();
}

void cl_note(uint64_t one, uint64_t two)
{
    if (!rec.log) {
        return;
    }
    lock();
    entry_add(CL_NOTE, one, two, NULL, 0);
    unlock();
}

void cl_record_freeze(void)
{
    lock();
}

void cl_watch(dev_t device, ino_t inode, cl_touch_fn fn, void *arg)
{
    rec.touch = fn;
    rec.touch_arg = arg;
    rec.touch_device = device;
    rec.touch_inode = inode;
}

void cl_inject(const char *dir, cl_fault fault, uint64_t k, bool lasting)
{
    look_at(dir);
    look_at_old_files(false);
    rec.fault = fault;
    rec.fault_at = k;
    rec.fault_lasting = lasting;
    memset(&rec.injected, 0, sizeof rec.injected);
    rec.on = true;
}

void cl_inject_stop(void)
{
    lock();
    rec.fault = CL_FAULT_NONE;
    unlock();
}

cl_injected cl_injected_so_far(void)
{
    return rec.injected;
}

typedef enum call_kind { CALL_WRITE, CALL_TRUNCATE, CALL_ALLOCATE, CALL_SYNC } call_kind;

/* Whether this call is to fail now. Under the lock. */
static cl_fault fault_for(const target *t, call_kind kind)
{
    if (rec.fault == CL_FAULT_NONE || (!t->ours && !t->dir)) {
        return CL_FAULT_NONE;
    }
    cl_injected *in = &rec.injected;
    in->calls++;
    if (rec.fault_lasting ? in->calls < rec.fault_at : in->calls != rec.fault_at) {
        return CL_FAULT_NONE;
    }
    if (rec.fault == CL_FAULT_SHORT && kind != CALL_WRITE) {
        return CL_FAULT_NONE;
    }
    if (rec.fault == CL_FAULT_EINTR && kind == CALL_TRUNCATE) {
        return CL_FAULT_NONE; /* on a local file nothing interrupts it, and LMDB counts on that */
    }
    if (in->fired++ == 0) {
        in->on_sync = kind == CALL_SYNC;
        in->on_dsync = kind == CALL_WRITE && t->dsync;
        in->on_minor = t->minor;
        in->was_write = kind == CALL_WRITE;
    }
    return rec.fault;
}

/* What a failing call says; 0: it is done after all. */
static int fault_errno(cl_fault fault)
{
    switch (fault) {
    case CL_FAULT_EIO:
        return EIO;
    case CL_FAULT_ENOSPC:
        return ENOSPC;
    case CL_FAULT_EINTR:
        return EINTR;
    default:
        return 0;
    }
}

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

static void record_write(const target *t, uint64_t off, const struct iovec *iov, int count,
                         size_t done)
{
    if (!t->ours || !rec.log) {
        return;
    }
    unsigned char *to = entry_begin(CL_WRITE, t->inode, off, done, t->dsync);
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
    lock();
    target t = target_of(fd);
    int64_t at = off;
    if (off < 0 && (t.ours || rec.touch)) {
        at = (fcntl(fd, F_GETFL) & O_APPEND) ? lseek(fd, 0, SEEK_END) : lseek(fd, 0, SEEK_CUR);
    }
    cl_fault fault = fault_for(&t, CALL_WRITE);
    int64_t done;
    if (fault_errno(fault)) {
        done = failed(fault_errno(fault));
    } else if (fault == CL_FAULT_SHORT) {
        done = write_short(fd, iov, iov_total(iov, count), off);
    } else if (off < 0) {
        done = syscall(SYS_writev, fd, iov, count);
    } else {
        done = syscall(SYS_pwritev, fd, iov, count, off, 0);
    }
    if (done > 0) {
        record_write(&t, (uint64_t)at, iov, count, (size_t)done);
        touch(fd, (uint64_t)at, (uint64_t)done);
    }
    unlock();
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
        refuse("pwritev2() with flags is not recorded");
    }
    return write_all(fd, iov, count, off);
}

/* ---- sizes */

/* `kind`: an allocation only makes a file longer. */
static int resize(int fd, uint64_t size, call_kind kind)
{
    lock();
    target t = target_of(fd);
    struct stat st;
    bool grows = fstat(fd, &st) == 0 && size > (uint64_t)st.st_size;
    cl_fault fault = fault_for(&t, kind);
    int64_t rc;
    if (fault_errno(fault)) {
        rc = failed(fault_errno(fault));
    } else if (kind == CALL_TRUNCATE) {
        rc = syscall(SYS_ftruncate, fd, size);
    } else {
        rc = syscall(SYS_fallocate, fd, 0, (off_t)0, size);
    }
    if (rc == 0 && (grows || kind == CALL_TRUNCATE)) {
        if (t.ours) {
            entry_add(CL_TRUNC, t.inode, size, NULL, 0);
        }
        touch(fd, grows ? (uint64_t)st.st_size : size, UINT64_MAX);
    }
    unlock();
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
    if (target_of(fd).ours) {
        refuse("fallocate() with a mode is not recorded");
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
    lock();
    target t = target_of(fd);
    cl_fault fault = fault_for(&t, CALL_SYNC);
    int64_t rc = fault_errno(fault) ? failed(fault_errno(fault)) : syscall(number, fd);
    if (rc == 0 && (t.ours || t.dir)) {
        entry_add(t.dir ? CL_DIRSYNC : CL_SYNC, t.inode, 0, NULL, 0);
    }
    unlock();
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
    if (rec.log) {
        refuse("msync(): writes through a mapping are not recorded");
    }
    return (int)syscall(SYS_msync, addr, len, flags);
}

/* ---- names */

static int open_at(int dir_fd, const char *path, int flags, mode_t mode)
{
    lock();
    char full[PATH_MAX];
    const char *name = name_at(dir_fd, path, full);
    struct stat before;
    bool was_there = name && fstatat(dir_fd, path, &before, 0) == 0;
    int fd = (int)syscall(SYS_openat, dir_fd, path, flags, mode);
    struct stat st;
    if (fd >= 0 && name && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        file_add(st.st_ino, name);
        if (!was_there) {
            entry_add(CL_CREATE, st.st_ino, 0, name, strlen(name) + 1);
        } else if ((flags & O_TRUNC) && before.st_size > 0) {
            entry_add(CL_TRUNC, st.st_ino, 0, NULL, 0);
        }
    }
    unlock();
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
    lock();
    char from_full[PATH_MAX], to_full[PATH_MAX];
    const char *old_name = name_at(from_fd, from, from_full);
    const char *new_name = name_at(to_fd, to, to_full);
    uint64_t inode = old_name ? inode_at(from_fd, from) : 0;
    int rc = (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
    if (rc == 0 && old_name && new_name) {
        entry_add_names(CL_RENAME, inode, old_name, new_name);
    }
    unlock();
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
    lock();
    char full[PATH_MAX];
    const char *name = name_at(to_fd, to, full);
    int rc = (int)syscall(SYS_linkat, from_fd, from, to_fd, to, flags);
    if (rc == 0 && name) {
        uint64_t inode = inode_at(to_fd, to);
        file_add((ino_t)inode, name);
        entry_add(CL_LINK, inode, 0, name, strlen(name) + 1);
    }
    unlock();
    return rc;
}

int link(const char *from, const char *to)
{
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlinkat(int dir_fd, const char *path, int flags)
{
    lock();
    char full[PATH_MAX];
    const char *name = name_at(dir_fd, path, full);
    uint64_t inode = name ? inode_at(dir_fd, path) : 0;
    int rc = (int)syscall(SYS_unlinkat, dir_fd, path, flags);
    if (rc == 0 && name) {
        entry_add(CL_UNLINK, inode, 0, name, strlen(name) + 1);
    }
    unlock();
    return rc;
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}
