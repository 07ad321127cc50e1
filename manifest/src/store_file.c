/* Files and directories as the store needs them: names without links, file systems that can be
 * trusted, and files that appear whole or not at all. */
#include "store_steps.h"

#include "memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TEMP_MARK ".tmp-"
#define LOCK_SUFFIX "-lock"

jzx_err mfi_say(mfi_store_facts *facts, jzx_err err, const char *path, const char *format, ...)
{
    enum { PATH_SHOWN = 100 };
    size_t len = strlen(path);
    bool whole = len <= PATH_SHOWN;
    int used = snprintf(facts->text, sizeof facts->text, "%s%s: ", whole ? "" : "...",
                        whole ? path : path + len - PATH_SHOWN);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(facts->text + used, sizeof facts->text - (size_t)used, format, args);
    va_end(args);
    return err;
}

jzx_err mfi_say_errno(mfi_store_facts *facts, const char *path, const char *what)
{
    int why = errno;
    char buf[96];
    /* The GNU form: the text is where it says, which need not be the buffer. */
    const char *text = strerror_r(why, buf, sizeof buf);
    return mfi_say(facts, mfi_err_of(why), path, "%s: %s", what, text);
}

char *mfi_path_with(const char *path, const char *suffix)
{
    size_t len = strlen(path) + strlen(suffix) + 1;
    char *out = mfi_alloc(len);
    if (out != NULL) {
        (void)snprintf(out, len, "%s%s", path, suffix);
    }
    return out;
}

/* The directory of a path, to be freed. */
static char *dir_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return mfi_copy_text(".", 1);
    }
    return slash == path ? mfi_copy_text("/", 1) : mfi_copy_text(path, (size_t)(slash - path));
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* A name that is not there yet: its directory without links, and the name. */
static jzx_err canonical_new(const char *path, char **out, mfi_store_facts *facts)
{
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) { /* else it came just now */
        return mfi_say(facts, JZX_ERR_NOT_FOUND, path, "is a link to a file that is not there");
    }
    const char *base = base_of(path);
    if (*base == '\0') {
        return mfi_say(facts, JZX_ERR_INVALID_ARG, path, "is the name of a directory");
    }
    char *dir = dir_of(path);
    char *real = dir == NULL ? NULL : realpath(dir, NULL);
    jzx_err err = JZX_OK;
    if (dir == NULL) {
        err = mfi_say(facts, JZX_ERR_NO_MEMORY, path, "no memory for its name");
    } else if (real == NULL) {
        err = mfi_say_errno(facts, dir, "the directory cannot be used");
    } else {
        size_t len = strlen(real) + strlen(base) + 2;
        *out = mfi_alloc(len);
        if (*out == NULL) {
            err = mfi_say(facts, JZX_ERR_NO_MEMORY, path, "no memory for its name");
        } else {
            (void)snprintf(*out, len, "%s/%s", strcmp(real, "/") == 0 ? "" : real, base);
        }
    }
    mfi_free(real);
    mfi_free(dir);
    return err;
}

jzx_err mfi_path_canonical(const char *path, char **out, mfi_store_facts *facts)
{
    char *real = realpath(path, NULL);
    if (real != NULL) {
        *out = real;
        return JZX_OK;
    }
    return errno == ENOENT ? canonical_new(path, out, facts)
                           : mfi_say_errno(facts, path, "cannot be reached");
}

/* FUSE is not among them: it may be anything, also a local disk. */
const char *mfi_remote_fs(uint64_t f_type)
{
    static const struct {
        uint32_t type;
        const char *name;
    } remote[] = {
        {0x6969, "NFS"},          {0x517B, "SMB"},        {0xFE534D42, "SMB"},
        {0xFF534D42, "CIFS"},     {0x564C, "NCP"},        {0x5346414F, "AFS"},
        {0x6B414653, "AFS"},      {0x73757245, "Coda"},   {0x00C36400, "Ceph"},
        {0x01021997, "9p"},       {0x7461636F, "OCFS2"},  {0x01161970, "GFS2"},
        {0x0BD00BD0, "Lustre"},   {0x47504653, "GPFS"},   {0x19830326, "BeeGFS"},
        {0x20030528, "OrangeFS"}, {0x786F4256, "vboxsf"}, {0xBACBACBC, "vmhgfs"},
    };
    for (size_t i = 0; i < sizeof remote / sizeof remote[0]; i++) {
        /* The kernel's number has 32 bits; a long may have extended its sign. */
        if (remote[i].type == (uint32_t)f_type) {
            return remote[i].name;
        }
    }
    return NULL;
}

jzx_err mfi_refuse_remote(const char *path, mfi_store_facts *facts)
{
    char *dir = dir_of(path);
    if (dir == NULL) {
        return mfi_say(facts, JZX_ERR_NO_MEMORY, path, "no memory for its name");
    }
    struct statfs fs;
    jzx_err err = JZX_OK;
    if (statfs(dir, &fs) != 0) {
        err = mfi_say_errno(facts, dir, "the directory cannot be used");
    } else {
        const char *name = mfi_remote_fs((uint64_t)fs.f_type);
        if (name != NULL) {
            err = mfi_say(facts, JZX_ERR_REMOTE_FS, path,
                          "lies on a network file system (%s), where locks and maps cannot be "
                          "relied upon: use a local disk",
                          name);
        }
    }
    mfi_free(dir);
    return err;
}

jzx_err mfi_sync_dir(const char *path)
{
    char *dir = dir_of(path);
    if (dir == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mfi_free(dir);
    if (fd < 0) {
        return mfi_err_of(errno);
    }
    jzx_err err = fsync(fd) == 0 ? JZX_OK : mfi_err_of(errno);
    (void)close(fd);
    return err;
}

/* Removes the lock file that LMDB made for a temporary file. */
static void unlink_lock(int dir_fd, const char *name)
{
    char *lock = mfi_path_with(name, LOCK_SUFFIX);
    if (lock != NULL) {
        (void)unlinkat(dir_fd, lock, 0);
        mfi_free(lock);
    }
}

/* Between its creation and its lock a temporary file looks left behind, and another process may
 * remove it. */
static bool still_there(const mfi_temp *temp)
{
    struct stat by_fd;
    struct stat by_name;
    return fstat(temp->fd, &by_fd) == 0 && stat(temp->path, &by_name) == 0 &&
           by_fd.st_ino == by_name.st_ino && by_fd.st_dev == by_name.st_dev;
}

jzx_err mfi_temp_make(const char *path, mfi_temp *out, mfi_store_facts *facts)
{
    enum { TRIES = 1000 };
    static atomic_uint numbers;
    mfi_temp temp = {NULL, -1};
    for (unsigned i = 0; i < TRIES; i++) {
        char suffix[48];
        (void)snprintf(suffix, sizeof suffix, TEMP_MARK "%ld.%u", (long)getpid(),
                       atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed));
        temp.path = mfi_path_with(path, suffix);
        if (temp.path == NULL) {
            return mfi_say(facts, JZX_ERR_NO_MEMORY, path, "no memory for its name");
        }
        temp.fd = open(temp.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0660);
        if (temp.fd >= 0 && flock(temp.fd, LOCK_EX | LOCK_NB) == 0 && still_there(&temp)) {
            *out = temp;
            return JZX_OK;
        }
        int why = errno;
        if (temp.fd >= 0) {
            (void)close(temp.fd);
        }
        mfi_free(temp.path);
        errno = why;
        if (temp.fd < 0 && why != EEXIST) {
            return mfi_say_errno(facts, path, "no file can be created beside it");
        }
    }
    return mfi_say(facts, JZX_ERR_IO, path, "has %d temporary files beside it: remove them", TRIES);
}

/* Some file systems know no rename that refuses; a second name can only be made if it is free. */
static int rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return -1;
    }
    return link(from, to) == 0 ? unlink(from) : -1;
}

jzx_err mfi_temp_publish(mfi_temp *temp, const char *path, mfi_store_facts *facts)
{
    if (fsync(temp->fd) != 0) {
        return mfi_say_errno(facts, path, "cannot be written to the disk");
    }
    if (rename_new(temp->path, path) != 0) {
        return errno == EEXIST ? mfi_say(facts, JZX_ERR_ALREADY, path, "is there already")
                               : mfi_say_errno(facts, path, "cannot be given its name");
    }
    jzx_err err = mfi_sync_dir(path);
    return err == JZX_OK ? JZX_OK
                         : mfi_say(facts, err, path, "its directory cannot be written to the disk");
}

void mfi_temp_drop(mfi_temp *temp)
{
    (void)unlinkat(AT_FDCWD, temp->path, 0);
    unlink_lock(AT_FDCWD, temp->path);
    (void)close(temp->fd);
    mfi_free(temp->path);
    *temp = (mfi_temp){NULL, -1};
}

/* "NAME.tmp-123.4", perhaps with "-lock" at its end. */
static bool is_temp_of(const char *name, const char *base)
{
    size_t len = strlen(base);
    if (strncmp(name, base, len) != 0 || strncmp(name + len, TEMP_MARK, strlen(TEMP_MARK)) != 0) {
        return false;
    }
    const char *digits = name + len + strlen(TEMP_MARK);
    const char *rest = digits + strspn(digits, "0123456789.");
    return rest != digits && (*rest == '\0' || strcmp(rest, LOCK_SUFFIX) == 0);
}

static bool is_lock(const char *name)
{
    return strcmp(name + strlen(name) - strlen(LOCK_SUFFIX), LOCK_SUFFIX) == 0;
}

/* A lock file goes when the file is gone that it belonged to. */
static void clean_lock(int dir_fd, char *name)
{
    char *suffix = strrchr(name, '-');
    *suffix = '\0';
    if (faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) {
        unlink_lock(dir_fd, name);
    }
}

static void clean_temp(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        (void)unlinkat(dir_fd, name, 0);
        unlink_lock(dir_fd, name);
    }
    (void)close(fd);
}

void mfi_temps_clean(const char *path)
{
    char *dir = dir_of(path);
    DIR *list = dir == NULL ? NULL : opendir(dir);
    mfi_free(dir);
    if (list == NULL) {
        return;
    }
    for (struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
        if (!is_temp_of(entry->d_name, base_of(path))) {
            continue;
        }
        if (is_lock(entry->d_name)) {
            clean_lock(dirfd(list), entry->d_name);
        } else {
            clean_temp(dirfd(list), entry->d_name);
        }
    }
    (void)closedir(list);
}
