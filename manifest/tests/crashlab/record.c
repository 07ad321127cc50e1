#include "record_steps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

bool cl_name_is_minor(const char *name)
{
    static const char *const ends[] = {"-lock", "-owner"};
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t end = strlen(ends[i]);
        if (len >= end && memcmp(name + len - end, ends[i], end) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- entries */

/* A place for `len` bytes behind a new entry; the entry counts once the tail was moved. */
unsigned char *cl_rec_entry(cl_op op, uint64_t inode, uint64_t off, size_t len, bool dsync)
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

void cl_rec_add(cl_op op, uint64_t inode, uint64_t off, const void *data, size_t len)
{
    if (!rec.log) {
        return;
    }
    unsigned char *to = cl_rec_entry(op, inode, off, len, false);
    if (to && len) {
        memcpy(to, data, len);
    }
}

void cl_rec_add_names(cl_op op, uint64_t inode, const char *one, const char *two)
{
    char names[2 * NAME_MAX + 2];
    int len = snprintf(names, sizeof names, "%s%c%s", one, 0, two);
    cl_rec_add(op, inode, 0, names, (size_t)len + 1);
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
const char *cl_rec_name(int dir_fd, const char *path, char full[PATH_MAX])
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

void cl_rec_file(ino_t inode, const char *name)
{
    if (file_find(inode) >= 0) {
        return;
    }
    if (rec.file_count == FILES_MAX) {
        cl_refuse("too many files");
    }
    rec.files[rec.file_count].inode = inode;
    rec.files[rec.file_count++].minor = cl_name_is_minor(name);
}

cl_target cl_rec_target(int fd)
{
    cl_target t = {.fd = fd};
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

void cl_rec_lock(void)
{
    if (rec.on) {
        (void)pthread_mutex_lock(&rec.lock);
    }
}

void cl_rec_unlock(void)
{
    if (rec.on) {
        int saved = errno;
        (void)pthread_mutex_unlock(&rec.lock);
        errno = saved;
    }
}

void cl_rec_touch(int fd, uint64_t off, uint64_t len)
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
        cl_refuse("no directory to look at");
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
    unsigned char *to = cl_rec_entry(CL_FILE, inode, 0, head + size, false);
    if (!to) {
        return;
    }
    memcpy(to, name, head);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0 || pread(fd, to + head, size, 0) != (ssize_t)size) {
        cl_refuse("cannot read a file that is there already");
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
        cl_rec_file(st.st_ino, d->d_name);
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
    cl_rec_lock();
    cl_rec_add(CL_MARK, which, value, NULL, 0);
    cl_rec_unlock();
}

void cl_note(uint64_t one, uint64_t two)
{
    if (!rec.log) {
        return;
    }
    cl_rec_lock();
    cl_rec_add(CL_NOTE, one, two, NULL, 0);
    cl_rec_unlock();
}

void cl_record_freeze(void)
{
    cl_rec_lock();
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
    cl_rec_lock();
    rec.fault = CL_FAULT_NONE;
    cl_rec_unlock();
}

cl_injected cl_injected_so_far(void)
{
    return rec.injected;
}

/* Whether this call is to fail now. Under the lock. */
cl_fault cl_rec_fault(const cl_target *t, cl_call kind)
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
        in->on_allocate = kind == CALL_ALLOCATE;
        in->was_write = kind == CALL_WRITE;
    }
    return rec.fault;
}

/* What a failing call says; 0: it is done after all. */
int cl_fault_errno(cl_fault fault)
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

bool cl_rec_is_recording(void)
{
    return rec.log != NULL;
}

bool cl_rec_is_watched(void)
{
    return rec.touch != NULL;
}
