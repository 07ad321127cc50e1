/* Goal: a backup has its name only when all of it is on the disk, or it has none. Method: writes,
 * syncs and the rename go through this program, which numbers them. */
/* program of its own: write(), fsync() and rename() are replaced. */
#include "mf_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#if !JZT_SANITIZED
/* Numbers of the last call of each kind, from 1; 0: none. */
static _Atomic uint32_t calls, written, synced, named, dir_synced;
static _Atomic bool recording, sync_fails;
static _Atomic ino_t copy; /* the file that was written last */

static void note(_Atomic uint32_t *what)
{
    atomic_store(what, atomic_fetch_add(&calls, 1) + 1);
}

ssize_t write(int fd, const void *data, size_t len)
{
    struct stat st;
    if (atomic_load(&recording) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        note(&written);
        atomic_store(&copy, st.st_ino);
    }
    return syscall(SYS_write, fd, data, len);
}

static int sync_fd(int fd, long number)
{
    struct stat st;
    if (atomic_load(&recording) && fstat(fd, &st) == 0) {
        if (atomic_load(&sync_fails) && S_ISREG(st.st_mode)) {
            errno = EIO;
            return -1;
        }
        if (S_ISDIR(st.st_mode)) {
            note(&dir_synced);
        } else if (st.st_ino == atomic_load(&copy)) {
            note(&synced);
        }
    }
    return (int)syscall(number, fd);
}

int fsync(int fd)
{
    return sync_fd(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return sync_fd(fd, SYS_fdatasync);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    struct stat st;
    if (atomic_load(&recording) && fstatat(from_fd, from, &st, 0) == 0 &&
        st.st_ino == atomic_load(&copy)) {
        note(&named);
    }
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

typedef struct world {
    mft_dir dir;
    char target[128];
    jzx_mf *mf;
} world;

static void world_open(world *w)
{
    w->dir = mft_dir_make();
    w->mf = mft_open(&w->dir, NULL);
    (void)snprintf(w->target, sizeof w->target, "%s/copy", w->dir.path);
    for (int i = 0; i < 100; i++) {
        (void)mft_enqueue(w->mf, &(jzx_mf_job_spec){.kind = 1});
    }
    calls = written = synced = named = dir_synced = 0;
    atomic_store(&recording, true);
}

static void world_close(world *w)
{
    atomic_store(&recording, false);
    atomic_store(&sync_fails, false);
    CHECK_OK(jzx_mf_close(w->mf, 0));
    mft_dir_remove(&w->dir);
}

static void test_a_backup_is_on_the_disk_before_it_has_its_name(void)
{
    world w;
    world_open(&w);
    CHECK_OK(jzx_mf_backup(w.mf, w.target));
    CHECK(written > 0);
    CHECK(synced > written);
    CHECK(named > synced);
    CHECK(dir_synced > named);
    world_close(&w);
}

static void test_a_backup_that_could_not_be_synced_is_none(void)
{
    world w;
    world_open(&w);
    atomic_store(&sync_fails, true);
    CHECK_EQ(jzx_mf_backup(w.mf, w.target), JZX_ERR_IO);
    CHECK(access(w.target, F_OK) != 0);
    CHECK_EQ(named, 0);
    atomic_store(&sync_fails, false);
    CHECK_OK(jzx_mf_backup(w.mf, w.target));
    world_close(&w);
}
#define SYNC_TEST(name)                                                                            \
    {                                                                                              \
#name, test_##name                                                                         \
    }
#else
static void test_skipped(void)
{
    jzt_skip("the sanitizers have the system calls for themselves");
}
#define SYNC_TEST(name)                                                                            \
    {                                                                                              \
#name, test_skipped                                                                        \
    }
#endif

int main(int argc, char **argv)
{
    static const jzt_test tests[] = {
        SYNC_TEST(a_backup_is_on_the_disk_before_it_has_its_name),
        SYNC_TEST(a_backup_that_could_not_be_synced_is_none),
    };
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
