/* Goal: as disk_full_test.c, on file systems that are really full: tmpfs, and ext4 on a loop
 * device. Method: a small one is mounted where nobody else sees it, and filled up but for a little;
 * needs root. */
#include "mf_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

enum { RUNS = 10, FS_BYTES = 24 << 20, BIG = 60000 };

typedef struct place {
    mft_dir dir;     /* where it is mounted */
    char image[128]; /* of ext4; beside it */
    char hog[128];   /* the file that takes the rest */
} place;

static bool run_command(const char *command)
{
    int status = system(command);
    return status == 0;
}

static const char *mount_ext4(place *p)
{
    char command[512];
    (void)snprintf(p->image, sizeof p->image, "%s.image", p->dir.path);
    (void)snprintf(command, sizeof command,
                   "truncate -s %d %s && mkfs.ext4 -q -F -O ^has_journal %s >/dev/null 2>&1",
                   FS_BYTES, p->image, p->image);
    if (!run_command(command)) {
        return "mkfs.ext4 is not there";
    }
    (void)snprintf(command, sizeof command, "mount -o loop %s %s 2>/dev/null", p->image,
                   p->dir.path);
    return run_command(command) ? NULL : "there is no loop device";
}

/* In a mount namespace of this process; NULL, or why not. */
static const char *place_make(place *p, bool ext4)
{
    *p = (place){.dir = mft_dir_make()};
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        return "only root may mount";
    }
    if (ext4) {
        return mount_ext4(p);
    }
    char size[32];
    (void)snprintf(size, sizeof size, "size=%d", FS_BYTES);
    return mount("jzx", p->dir.path, "tmpfs", 0, size) == 0 ? NULL : "tmpfs cannot be mounted";
}

static void place_drop(place *p)
{
    (void)umount2(p->dir.path, MNT_DETACH);
    if (p->image[0] != '\0') {
        (void)unlink(p->image);
    }
    mft_dir_remove(&p->dir);
}

/* Takes all space but this much. */
static void fill_up(place *p, uint64_t left)
{
    (void)snprintf(p->hog, sizeof p->hog, "%s/hog", p->dir.path);
    int fd = open(p->hog, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    struct statvfs fs;
    off_t at = 0;
    for (off_t part = 1 << 20; part >= 4096;) {
        REQUIRE_EQ(fstatvfs(fd, &fs), 0);
        /* What root may take counts too: the manifest is root's here. */
        bool fits = (uint64_t)fs.f_bfree * fs.f_frsize >= left + (uint64_t)part;
        if (fits && posix_fallocate(fd, at, part) == 0) {
            at += part;
        } else {
            part /= 4;
        }
    }
    (void)close(fd);
}

static jzx_err enqueue_bytes(jzx_mf *mf, uint16_t kind, size_t bytes)
{
    static uint8_t payload[BIG];
    jzx_mf_txn *txn = mft_begin(mf);
    jzx_mf_job_spec spec = {.kind = kind, .payload = jzx_mf_blob(payload, bytes)};
    CHECK_OK(jzx_mf_job_enqueue(txn, &spec, NULL));
    return jzx_mf_commit(txn, 0, NULL);
}

static void work_off(jzx_mf *mf, uint16_t kind)
{
    jzx_mf_txn *txn = mft_begin(mf);
    jzx_mf_receipt *receipt = NULL;
    CHECK_OK(jzx_mf_job_claim(txn, &(jzx_mf_claim){.kinds = &kind, .kind_count = 1}));
    REQUIRE_OK(jzx_mf_commit(txn, 0, &receipt));
    REQUIRE_EQ(receipt->job_count, 1);
    jzx_mf_lease lease = jzx_mf_lease_of(&receipt->jobs[0]);
    jzx_mf_receipt_free(receipt);
    txn = mft_begin(mf);
    CHECK_OK(jzx_mf_job_complete(txn, &lease, jzx_mf_text("")));
    CHECK_OK(jzx_mf_commit(txn, 0, NULL));
}

static uint64_t jobs_of(jzx_mf *mf)
{
    jzx_mf_stats stats;
    REQUIRE_OK(jzx_mf_stats_read(mf, &stats));
    CHECK_EQ(stats.err, JZX_OK);
    return stats.entries[JZX_MF_TABLE_JOB];
}

static void one_run(place *p, uint32_t run)
{
    enum { SOME = 20, MOST = 100000 };
    size_t bytes = 50 + run * 5003;
    jzx_mf *mf = mft_open(&p->dir, &(jzx_mf_opts){.reserve_bytes = 1 << 20});
    uint64_t jobs = 0;
    for (; jobs < SOME; jobs++) {
        CHECK_OK(enqueue_bytes(mf, 1, bytes));
    }
    fill_up(p, run * 37000);
    jzx_err err = JZX_OK;
    for (; err == JZX_OK && jobs < MOST; jobs += err == JZX_OK) {
        err = enqueue_bytes(mf, 2, bytes);
    }
    CHECK_EQ(err, JZX_ERR_NO_SPACE);
    for (uint32_t i = 0; i < SOME; i++) {
        work_off(mf, 1);
        CHECK_EQ(enqueue_bytes(mf, 2, BIG), JZX_ERR_NO_SPACE);
    }
    CHECK_EQ(unlink(p->hog), 0);
    CHECK_OK(enqueue_bytes(mf, 2, bytes)); /* by itself, as soon as there is room */
    CHECK_EQ(jobs_of(mf), ++jobs);
    CHECK_OK(jzx_mf_close(mf, 0));
    CHECK_OK(jzx_mf_check(p->dir.file, NULL, NULL, NULL));
    mf = mft_open(&p->dir, NULL);
    CHECK_EQ(jobs_of(mf), jobs);
    CHECK_OK(jzx_mf_close(mf, 0));
    CHECK_EQ(unlink(p->dir.file), 0);
}

/* In a child: its mounts go with it. */
static void all_runs(bool ext4)
{
    int fds[2];
    REQUIRE_EQ(pipe(fds), 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        place p;
        const char *why = place_make(&p, ext4);
        for (uint32_t run = 0; why == NULL && run < RUNS; run++) {
            one_run(&p, run);
        }
        place_drop(&p);
        if (why != NULL && write(fds[1], why, strlen(why)) < 0) {
            _exit(2);
        }
        _exit(jzt_failures() == 0 ? 0 : 1);
    }
    (void)close(fds[1]);
    static char why[128];
    ssize_t got = read(fds[0], why, sizeof why - 1);
    (void)close(fds[0]);
    int status;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK_EQ(status, 0);
    if (got > 0) {
        jzt_skip(why);
    }
}

static void test_a_full_tmpfs_is_a_refusal_per_request(void)
{
    all_runs(false);
}

static void test_a_full_ext4_is_a_refusal_per_request(void)
{
    all_runs(true);
}

int main(int argc, char **argv)
{
    static const jzt_test tests[] = {
        {"a_full_tmpfs_is_a_refusal_per_request", test_a_full_tmpfs_is_a_refusal_per_request},
        {"a_full_ext4_is_a_refusal_per_request", test_a_full_ext4_is_a_refusal_per_request},
    };
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
