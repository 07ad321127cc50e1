/* FILE-lock belongs to LMDB, which opens it by its name, follows links and writes: in a directory
 * where others may write too, a link that an attacker planted there would have its target
 * overwritten. So the file is made, or looked at, before LMDB gets to it, and compared afterwards.
 *
 * FILE-lock also gets its blocks here. LMDB maps it, and a store into a hole of a mapped file on a
 * full disk is a SIGBUS. */
#include "store_steps.h"

#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* LMDB has a cache line for each reader, and a few before them. */
#define READER_BYTES 64u
#define HEAD_READERS 16u
#define ROUND_BYTES 4096u

/* The user is us, root, or the owner of the manifest. */
static bool is_trusted(const char *path, uid_t uid)
{
    struct stat st;
    return uid == geteuid() || uid == 0 || (stat(path, &st) == 0 && st.st_uid == uid);
}

jzx_err mfi_refuse_strange(const char *path, const char *name, int fd, struct stat *out,
                           mfi_store_facts *facts)
{
    if (fstat(fd, out) != 0) {
        return mfi_say_errno(facts, name, "cannot be looked at");
    }
    if (!S_ISREG(out->st_mode)) {
        return mfi_say(facts, JZX_ERR_NO_ACCESS, name, "is no regular file: remove it");
    }
    if (out->st_nlink > 1) {
        return mfi_say(facts, JZX_ERR_NO_ACCESS, name,
                       "has other names (hard links), which would be written to: remove it");
    }
    if (!is_trusted(path, out->st_uid)) {
        return mfi_say(facts, JZX_ERR_NO_ACCESS, name, "belongs to another user (%u): remove it",
                       (unsigned)out->st_uid);
    }
    return JZX_OK;
}

jzx_err mfi_say_no_companion(const char *name, mfi_store_facts *facts)
{
    return errno == ELOOP
               ? mfi_say(facts, JZX_ERR_NO_ACCESS, name,
                         "is a symbolic link, whose target would be written to: remove it")
               : mfi_say_errno(facts, name, "cannot be opened");
}

/* A table that another process may have mapped keeps its size. */
static jzx_err give_blocks(const char *name, int fd, uint64_t size, uint32_t readers,
                           mfi_store_facts *facts)
{
    if (size == 0) {
        size = ((uint64_t)readers + HEAD_READERS) * READER_BYTES;
        size = (size + ROUND_BYTES - 1) / ROUND_BYTES * ROUND_BYTES;
    }
    int rc = mfi_allocate(fd, 0, size);
    errno = rc;
    return rc == 0 ? JZX_OK : mfi_say_errno(facts, name, "has no room on its disk");
}

static jzx_err prepare(mfi_store *store, const char *name, mfi_store_facts *facts)
{
    int fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0660);
    if (fd < 0) {
        /* What a reader may not open is LMDB's to judge: it can do without on a read-only disk. */
        bool is_lmdbs = store->readonly && (errno == EROFS || errno == EACCES || errno == EPERM);
        return is_lmdbs ? JZX_OK : mfi_say_no_companion(name, facts);
    }
    struct stat st;
    jzx_err err = mfi_refuse_strange(store->path, name, fd, &st, facts);
    if (err == JZX_OK) {
        err = give_blocks(name, fd, (uint64_t)st.st_size, store->readers_cap, facts);
    }
    /* Before LMDB locks it: a close takes away all locks of a process. */
    (void)close(fd);
    store->lock_dev = st.st_dev;
    store->lock_ino = st.st_ino;
    return err;
}

static jzx_err with_name(mfi_store *store, mfi_store_facts *facts,
                         jzx_err (*fn)(mfi_store *store, const char *name, mfi_store_facts *facts))
{
    char *name = mfi_path_with(store->path, "-lock");
    if (name == NULL) {
        return mfi_say(facts, JZX_ERR_NO_MEMORY, store->path, "no memory for its name");
    }
    jzx_err err = fn(store, name, facts);
    mfi_free(name);
    return err;
}

jzx_err mfi_lock_prepare(mfi_store *store, mfi_store_facts *facts)
{
    store->lock_ino = 0;
    return with_name(store, facts, prepare);
}

static jzx_err store_lock_compare(mfi_store *store, const char *name, mfi_store_facts *facts)
{
    struct stat st;
    bool same =
        lstat(name, &st) == 0 && st.st_ino == store->lock_ino && st.st_dev == store->lock_dev;
    return same || store->lock_ino == 0
               ? JZX_OK
               : mfi_say(facts, JZX_ERR_NO_ACCESS, name, "was replaced while it was opened");
}

jzx_err mfi_lock_compare(mfi_store *store, mfi_store_facts *facts)
{
    return with_name(store, facts, store_lock_compare);
}
