/* Space that is sure before LMDB is asked to write.
 *
 *   0          pages of the last commit   pages of this one    margin       reserve
 *   +--------------------------------------+--------------------+------------+-----------+ - -
 *   |                                      |                    |            |           |
 *   +--------------------------------------+--------------------+------------+-----------+ - -
 *                                     last_pgno             next page      need        want
 *
 * A disk that is found full by LMDB's own writes leaves half of a write behind, which LMDB calls an
 * error of the disk, and no writer can go on after one. So the file is always allocated further
 * than any page that a commit can touch, and a full disk shows when it is made longer: before a
 * commit, where it can still be refused, and the same request done later. Allocated blocks are
 * written over without new ones (ext4, XFS, tmpfs); a file system that copies on write promises
 * less.
 *
 * What adds records leaves the reserve alone. What ends or deletes may use it up: pages that it
 * frees are used again two commits later, so a little of it lasts long. */
#include "store_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define STEP_LEAST ((uint64_t)1 << 20)
#define STEP_MOST ((uint64_t)64 << 20)
/* The file becomes longer by this part of itself at a time. */
#define STEP_PART 16u
/* Pages that one write makes at most in a tree of sane depth: all on the way down copied, all
 * split, and the same for the table of tables. Longer values come on top. */
#define PAGES_PER_WRITE 16u

/* What LMDB adds while it commits is its free list: 8 bytes for each page that was ever used, and
 * the pages on the way to them. LMDB may write the list three times until it is as long as it
 * says. */
static uint64_t margin_pages(uint64_t next_page)
{
    return 64 + next_page / 128;
}

/* The first words of LMDB's transaction: parent, child, the next page that was never used, the
 * number of the transaction. These words stand so in all of 0.9; whether they do here is found out
 * when the file is opened, and if not, what a commit may need is counted instead. */
typedef struct txn_words {
    size_t parent;
    size_t child;
    size_t next_page;
    size_t id;
} txn_words;

static txn_words look_into(const MDB_txn *txn)
{
    txn_words words;
    memcpy(&words, (const void *)txn, sizeof words);
    return words;
}

static uint64_t last_page(mfi_store *store)
{
    MDB_envinfo info = {0};
    (void)mdb_env_info(store->env, &info);
    return info.me_last_pgno;
}

void mfi_space_learn(mfi_store *store, const MDB_txn *fresh)
{
    txn_words words = look_into(fresh);
    store->sees_pages = words.parent == 0 && words.child == 0 &&
                        words.next_page == last_page(store) + 1 &&
                        words.id == mdb_txn_id((MDB_txn *)(uintptr_t)fresh);
}

static uint64_t next_page(mfi_store *store, MDB_txn *txn, const mfi_writes *writes)
{
    uint64_t used = last_page(store) + 1;
    if (txn == NULL) {
        return used;
    }
    txn_words words = look_into(txn);
    if (store->sees_pages && words.id == mdb_txn_id(txn) && words.next_page >= used) {
        return words.next_page;
    }
    return used + writes->count * PAGES_PER_WRITE + writes->bytes / store->page_bytes * 2;
}

/* Where there is no fallocate(), zeros do. Only behind the end: before it are pages. */
static int write_zeros(int fd, uint64_t from, uint64_t to)
{
    static const char zeros[1 << 16];
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return errno;
    }
    uint64_t was = (uint64_t)st.st_size;
    for (uint64_t at = from > was ? from : was; at < to;) {
        size_t part = to - at < sizeof zeros ? (size_t)(to - at) : sizeof zeros;
        ssize_t done = pwrite(fd, zeros, part, (off_t)at);
        if (done < 0 && errno != EINTR) {
            int why = errno;
            (void)!ftruncate(fd, (off_t)was);
            return why;
        }
        at += done > 0 ? (uint64_t)done : 0;
    }
    return 0;
}

int mfi_allocate(int fd, uint64_t from, uint64_t to)
{
    int rc;
    do {
        rc = fallocate(fd, 0, (off_t)from, (off_t)(to - from)) == 0 ? 0 : errno;
    } while (rc == EINTR);
    return rc == EOPNOTSUPP || rc == ENOSYS ? write_zeros(fd, from, to) : rc;
}

/* As far as `want` at least. A step more only where the disk has plenty: an allocation that fails
 * may have taken what was left. */
static uint64_t target_of(const mfi_store *store, int fd, uint64_t want)
{
    uint64_t step = want / STEP_PART;
    step = step < STEP_LEAST ? STEP_LEAST : step > STEP_MOST ? STEP_MOST : step;
    uint64_t target = (want + step) / STEP_LEAST * STEP_LEAST;
    target = target > store->map_bytes ? store->map_bytes : target;
    struct statvfs fs;
    uint64_t more = target - store->sure_bytes;
    bool plenty = fstatvfs(fd, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize / 4 > more;
    return plenty && target > want ? target : want;
}

jzx_err mfi_store_make_room(mfi_store *store, MDB_txn *txn, const mfi_writes *writes, bool grows)
{
    uint64_t next = next_page(store, txn, writes);
    uint64_t need = (next + margin_pages(next)) * store->page_bytes;
    uint64_t want = need + (grows ? store->reserve_bytes : 0);
    want = want > store->map_bytes ? store->map_bytes : want; /* LMDB goes no further */
    if (want <= store->sure_bytes) {
        return JZX_OK;
    }
    int fd;
    int rc = mdb_env_get_fd(store->env, &fd);
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    uint64_t target = target_of(store, fd, want);
    rc = mfi_allocate(fd, store->sure_bytes, target);
    if (rc != 0 && target > want) {
        target = want;
        rc = mfi_allocate(fd, store->sure_bytes, target);
    }
    if (rc == 0) {
        store->sure_bytes = target;
    }
    return mfi_err_of(rc);
}

uint64_t mfi_store_spare(mfi_store *store)
{
    uint64_t used = (last_page(store) + 1) * store->page_bytes;
    return store->sure_bytes > used ? store->sure_bytes - used : 0;
}

/* All of the file, which may have holes from an earlier version, and the reserve. A disk too full
 * for this is full enough to be told with the first request. */
void mfi_space_begin(mfi_store *store)
{
    int fd;
    struct stat st;
    MDB_stat stat;
    store->page_bytes = mdb_env_stat(store->env, &stat) == 0 ? stat.ms_psize : 4096;
    if (mdb_env_get_fd(store->env, &fd) == 0 && fstat(fd, &st) == 0 &&
        mfi_allocate(fd, 0, (uint64_t)st.st_size) == 0) {
        store->sure_bytes = (uint64_t)st.st_size;
    }
    const mfi_writes none = {0, 0};
    (void)mfi_store_make_room(store, NULL, &none, true);
}
