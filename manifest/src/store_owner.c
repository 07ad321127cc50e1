/* Which process may open a file: one for writing, and none twice.
 *
 * LMDB loses its locks when a process opens a file a second time and closes it, so that a list of
 * what is open is kept per process. FILE-owner is locked with flock(), which ends with the process;
 * the number in it is for people. A forked child inherits the lock along with the descriptor, and
 * would keep it when its parent died: it closes the descriptor at once. */
#include "store_steps.h"

#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t claims_lock = PTHREAD_MUTEX_INITIALIZER;
static mfi_claim *claims;

static void before_fork(void)
{
    (void)pthread_mutex_lock(&claims_lock);
}

static void after_fork_parent(void)
{
    (void)pthread_mutex_unlock(&claims_lock);
}

static void after_fork_child(void)
{
    for (mfi_claim *claim = claims; claim != NULL; claim = claim->next) {
        atomic_store_explicit(&claim->forked, true, memory_order_relaxed);
        if (claim->owner_fd >= 0) {
            (void)close(claim->owner_fd);
            claim->owner_fd = -1;
        }
    }
    claims = NULL;
    (void)pthread_mutex_unlock(&claims_lock);
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static bool same_file(const mfi_claim *a, const mfi_claim *b)
{
    bool known = a->ino != 0 && b->ino != 0;
    return (known && a->ino == b->ino && a->dev == b->dev) || strcmp(a->path, b->path) == 0;
}

/* With the lock held. */
static bool is_open(const mfi_claim *claim)
{
    for (const mfi_claim *other = claims; other != NULL; other = other->next) {
        if (other != claim && same_file(other, claim)) {
            return true;
        }
    }
    return false;
}

static jzx_err say_already(mfi_store_facts *facts, const char *path)
{
    return mfi_say(facts, JZX_ERR_ALREADY, path,
                   "this process has it open already: use that handle");
}

jzx_err mfi_claim_begin(mfi_claim *claim, const char *path, mfi_store_facts *facts)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    *claim = (mfi_claim){.path = path, .owner_fd = -1};
    (void)pthread_mutex_lock(&claims_lock);
    bool free_to_take = !is_open(claim);
    if (free_to_take) {
        claim->next = claims;
        claims = claim;
    }
    (void)pthread_mutex_unlock(&claims_lock);
    return free_to_take ? JZX_OK : say_already(facts, path);
}

jzx_err mfi_claim_file(mfi_claim *claim, dev_t dev, ino_t ino, mfi_store_facts *facts)
{
    (void)pthread_mutex_lock(&claims_lock);
    claim->dev = dev;
    claim->ino = ino;
    bool taken = is_open(claim);
    (void)pthread_mutex_unlock(&claims_lock);
    return taken ? say_already(facts, claim->path) : JZX_OK;
}

static jzx_err say_owned(mfi_store_facts *facts, const char *path, int fd)
{
    char text[24] = {0};
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    long pid = got > 0 ? strtol(text, NULL, 10) : 0;
    if (pid <= 0) {
        return mfi_say(facts, JZX_ERR_OWNED, path, "another process owns it");
    }
    (void)mfi_say(facts, JZX_ERR_OWNED, path,
                  "process %ld owns it: one process at a time may write; read-only works beside it",
                  pid);
    return JZX_ERR_OWNED;
}

/* Opens FILE-owner and locks it: AGAIN when the file was removed in between. */
static jzx_err lock_owner(const char *name, const char *path, int *out_fd, mfi_store_facts *facts)
{
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0660);
    if (fd < 0) {
        return mfi_say_no_companion(name, facts);
    }
    struct stat by_fd;
    struct stat by_name;
    jzx_err err = mfi_refuse_strange(path, name, fd, &by_fd, facts);
    if (err != JZX_OK) {
        (void)close(fd);
        return err;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        err = errno == EWOULDBLOCK ? say_owned(facts, path, fd)
                                   : mfi_say_errno(facts, name, "cannot be locked");
    } else if (fstat(fd, &by_fd) != 0 || stat(name, &by_name) != 0 ||
               by_fd.st_ino != by_name.st_ino) {
        err = JZX_ERR_AGAIN;
    }
    if (err == JZX_OK) {
        *out_fd = fd;
    } else {
        (void)close(fd);
    }
    return err;
}

/* The pid helps people only: a disk that is full must not keep the owner from opening. */
static void write_pid(int fd)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)len, 0) != len) {
        (void)!ftruncate(fd, 0);
    }
}

jzx_err mfi_claim_own(mfi_claim *claim, mfi_store_facts *facts)
{
    enum { TRIES = 100 };
    char *name = mfi_path_with(claim->path, "-owner");
    if (name == NULL) {
        return mfi_say(facts, JZX_ERR_NO_MEMORY, claim->path, "no memory for its name");
    }
    int fd = -1;
    jzx_err err = JZX_ERR_AGAIN;
    /* A fork in between would give the child a lock that it does not know of. */
    (void)pthread_mutex_lock(&claims_lock);
    for (int i = 0; err == JZX_ERR_AGAIN && i < TRIES; i++) {
        err = lock_owner(name, claim->path, &fd, facts);
    }
    claim->owner_fd = fd;
    (void)pthread_mutex_unlock(&claims_lock);
    if (err == JZX_ERR_AGAIN) {
        err = mfi_say(facts, JZX_ERR_IO, name, "another process keeps removing it");
    }
    if (err == JZX_OK) {
        write_pid(fd);
    }
    mfi_free(name);
    return err;
}

static void remove_owner(const char *path)
{
    char *name = mfi_path_with(path, "-owner");
    if (name != NULL) {
        (void)unlink(name);
        mfi_free(name);
    }
}

void mfi_claim_end(mfi_claim *claim, bool undo)
{
    (void)pthread_mutex_lock(&claims_lock);
    mfi_claim **at = &claims;
    while (*at != NULL && *at != claim) {
        at = &(*at)->next;
    }
    if (*at != NULL) { /* a forked child has an empty list */
        *at = claim->next;
    }
    (void)pthread_mutex_unlock(&claims_lock);
    if (claim->owner_fd < 0) {
        return;
    }
    if (undo) {
        remove_owner(claim->path);
    } else {
        (void)!ftruncate(claim->owner_fd, 0);
    }
    (void)close(claim->owner_fd);
    claim->owner_fd = -1;
}
