/* Goal: a disk that is full for a while costs the requests of that while, and nothing else. Each is
 * refused with NO_SPACE, never with IN_DOUBT; what ends or deletes goes on; nobody is given what
 * was never written; everything works when there is room again. Method: the calls that take blocks
 * go through this program, which has only so many. A write where no blocks are is what must not
 * happen: it is counted, and on a full disk done by half, as real file systems do. */
/* program of its own: fallocate(), pwrite() and writev() are replaced. */
#include "mf_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { CLIENTS = 24, RUNS = 10, BIG = 200000 };

#if !JZT_SANITIZED
static _Atomic int full_errno; /* 0: there is room */
static _Atomic uint32_t refusals;
static _Atomic uint32_t unsure; /* writes behind what was allocated */
static _Atomic ino_t watched;

int fallocate(int fd, int mode, off_t offset, off_t len)
{
    struct stat st;
    int why = atomic_load(&full_errno);
    if (why != 0 && fstat(fd, &st) == 0 && offset + len > st.st_size) {
        atomic_fetch_add(&refusals, 1);
        errno = why;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, len);
}

/* How many of these bytes have a place. */
static size_t placed(int fd, off_t at, size_t count)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || st.st_ino != atomic_load(&watched) ||
        at + (off_t)count <= st.st_size) {
        return count;
    }
    atomic_fetch_add(&unsure, 1);
    if (atomic_load(&full_errno) == 0) {
        return count;
    }
    return at < st.st_size ? (size_t)(st.st_size - at) : 0;
}

static ssize_t no_place(void)
{
    errno = atomic_load(&full_errno);
    return -1;
}

ssize_t pwrite(int fd, const void *buf, size_t count, off_t offset)
{
    size_t some = placed(fd, offset, count);
    return some == 0 && count > 0 ? no_place() : syscall(SYS_pwrite64, fd, buf, some, offset);
}

ssize_t pwrite64(int fd, const void *buf, size_t count, off_t offset)
{
    return pwrite(fd, buf, count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        total += parts[i].iov_len;
    }
    off_t at = lseek(fd, 0, SEEK_CUR);
    size_t some = at < 0 ? total : placed(fd, at, total);
    if (some == 0 && total > 0) {
        return no_place();
    }
    return some < total ? syscall(SYS_write, fd, parts[0].iov_base,
                                  some < parts[0].iov_len ? some : parts[0].iov_len)
                        : syscall(SYS_writev, fd, parts, count);
}

static void disk_becomes(int why)
{
    atomic_store(&full_errno, why);
}

static void watch(const mft_dir *dir)
{
    struct stat st;
    REQUIRE_EQ(stat(dir->file, &st), 0);
    atomic_store(&watched, st.st_ino);
    atomic_store(&unsure, 0);
    atomic_store(&refusals, 0);
}

typedef struct answer {
    _Atomic int calls;
    uint32_t jobs;
    uint32_t attempt;
} answer;

static void on_answer(void *arg, const jzx_mf_receipt *receipt)
{
    answer *what = arg;
    what->jobs = receipt->job_count;
    what->attempt = receipt->job_count > 0 ? receipt->jobs[0].attempt : 0;
    what->calls++;
}

static jzx_err bump(jzx_mf *mf)
{
    jzx_mf_txn *txn = mft_begin(mf);
    CHECK_OK(jzx_mf_generation_bump(txn, 1, 1));
    return jzx_mf_commit(txn, 0, NULL);
}

static jzx_err enqueue_bytes(jzx_mf *mf, uint16_t kind, size_t bytes)
{
    static uint8_t payload[BIG];
    jzx_mf_txn *txn = mft_begin(mf);
    jzx_mf_job_spec spec = {.kind = kind, .payload = jzx_mf_blob(payload, bytes)};
    CHECK_OK(jzx_mf_job_enqueue(txn, &spec, NULL));
    return jzx_mf_commit(txn, 0, NULL);
}

/* Big jobs until one is refused; how many were not. */
static uint64_t fill(jzx_mf *mf, uint16_t kind, size_t bytes)
{
    enum { MOST = 5000 };
    uint64_t count = 0;
    jzx_err err = JZX_OK;
    while (err == JZX_OK && count < MOST) {
        err = enqueue_bytes(mf, kind, bytes);
        count += err == JZX_OK;
    }
    CHECK_EQ(err, JZX_ERR_NO_SPACE);
    return count;
}

static jzx_mf_receipt *claim_one(jzx_mf *mf, uint16_t kind)
{
    jzx_mf_txn *txn = mft_begin(mf);
    jzx_mf_receipt *receipt = NULL;
    CHECK_OK(jzx_mf_job_claim(txn, &(jzx_mf_claim){.kinds = &kind, .kind_count = 1}));
    REQUIRE_OK(jzx_mf_commit(txn, 0, &receipt));
    return receipt;
}

/* Claims a job, completes it and deletes it: none of this adds a record. */
static bool work_off(jzx_mf *mf, uint16_t kind)
{
    jzx_mf_receipt *receipt = claim_one(mf, kind);
    bool found = receipt->job_count == 1;
    if (found) {
        jzx_mf_lease lease = jzx_mf_lease_of(&receipt->jobs[0]);
        jzx_mf_txn *txn = mft_begin(mf);
        CHECK_OK(jzx_mf_job_complete(txn, &lease, jzx_mf_text("")));
        CHECK_OK(jzx_mf_job_del(txn, lease.job_id));
        CHECK_OK(jzx_mf_commit(txn, 0, NULL));
    }
    jzx_mf_receipt_free(receipt);
    return found;
}

static uint64_t jobs_of(jzx_mf *mf)
{
    jzx_mf_stats stats;
    REQUIRE_OK(jzx_mf_stats_read(mf, &stats));
    CHECK_EQ(stats.err, JZX_OK);
    return stats.entries[JZX_MF_TABLE_JOB];
}

static void end(const mft_dir *dir, jzx_mf *mf, uint64_t jobs)
{
    CHECK_OK(jzx_mf_close(mf, 0));
    CHECK_OK(jzx_mf_check(dir->file, NULL, NULL, NULL));
    mf = mft_open(dir, NULL);
    CHECK_EQ(jobs_of(mf), jobs);
    CHECK_OK(jzx_mf_close(mf, 0));
    CHECK_EQ(atomic_load(&unsure), 0);
    mft_dir_remove(dir);
}

static void full_and_not(int why, size_t bytes)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, &(jzx_mf_opts){.reserve_bytes = 1 << 20});
    watch(&dir);
    uint64_t jobs = 0;
    for (; jobs < 40; jobs++) {
        CHECK_OK(enqueue_bytes(mf, 1, bytes));
    }
    disk_becomes(why);
    jobs += fill(mf, 2, bytes);
    CHECK(atomic_load(&refusals) > 0);
    CHECK_EQ(jobs_of(mf), jobs);
    for (int i = 0; i < 40; i++) {
        CHECK(work_off(mf, 1));
        jobs--;
    }
    disk_becomes(0);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(enqueue_bytes(mf, 3, bytes));
        jobs++;
    }
    end(&dir, mf, jobs);
}

static void test_a_full_disk_is_a_refusal_per_request(void)
{
    for (size_t run = 0; run < RUNS; run++) {
        full_and_not(ENOSPC, 20 + run * 977);
    }
}

static void test_so_is_a_quota_that_is_used_up(void)
{
    for (size_t run = 0; run < RUNS; run++) {
        full_and_not(EDQUOT, 500 + run * 2111);
    }
}

static void test_a_claim_that_waits_gets_nothing_of_a_commit_that_failed(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, &(jzx_mf_opts){.flags = JZX_MF_NO_RESERVE});
    watch(&dir);
    answer claimed = {0};
    static const uint16_t kind = 2;
    jzx_mf_txn *txn = mft_begin(mf);
    CHECK_OK(
        jzx_mf_job_claim(txn, &(jzx_mf_claim){.kinds = &kind, .kind_count = 1, .wait_ms = 60000}));
    CHECK_OK(jzx_mf_commit_async(txn, on_answer, &claimed));
    CHECK_OK(bump(mf));
    disk_becomes(ENOSPC);
    uint64_t jobs = fill(mf, 1, 1000);
    CHECK_EQ(enqueue_bytes(mf, kind, BIG), JZX_ERR_NO_SPACE);
    disk_becomes(0);
    CHECK_OK(bump(mf));
    CHECK_EQ(claimed.calls, 0);
    CHECK_OK(enqueue_bytes(mf, kind, BIG));
    CHECK_OK(bump(mf));
    CHECK_EQ(claimed.calls, 1);
    CHECK_EQ(claimed.jobs, 1);
    CHECK_EQ(claimed.attempt, 1);
    end(&dir, mf, jobs + 1);
}

typedef struct alarms {
    _Atomic uint32_t count;
    _Atomic uint64_t value;
} alarms;

static void on_alarm(void *arg, const jzx_mf_alarm *alarm)
{
    alarms *told = arg;
    if (alarm->kind == JZX_MF_ALARM_DISK_FULL) {
        told->count++;
        told->value = alarm->value;
    }
}

static void test_it_is_told_once_each_time(void)
{
    enum { RESERVE = 2 << 20 };
    mft_dir dir = mft_dir_make();
    alarms told = {0};
    jzx_mf *mf = mft_open(
        &dir, &(jzx_mf_opts){.reserve_bytes = RESERVE, .on_alarm = on_alarm, .alarm_arg = &told});
    watch(&dir);
    uint64_t jobs = 0;
    for (uint32_t i = 1; i <= 3; i++) {
        disk_becomes(ENOSPC);
        jobs += fill(mf, 1, BIG);
        CHECK_EQ(enqueue_bytes(mf, 1, BIG), JZX_ERR_NO_SPACE);
        CHECK_EQ(told.count, i);
        CHECK(told.value >= RESERVE / 2); /* what is left for what ends */
        disk_becomes(0);
        CHECK_OK(enqueue_bytes(mf, 1, BIG));
        jobs++;
    }
    end(&dir, mf, jobs);
}

/* A crowd whose batch does not fit: some of it may, one by one, and each hears of its own. */
typedef struct client {
    jzx_mf *mf;
    pthread_t thread;
    uint64_t first;
    jzx_err errs[8];
} client;

static uint64_t material_number(const client *c, size_t i)
{
    return c->first + i;
}

static void *client_run(void *arg)
{
    static uint8_t payload[BIG];
    client *c = arg;
    for (size_t i = 0; i < sizeof c->errs / sizeof c->errs[0]; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "%llu", (unsigned long long)material_number(c, i));
        jzx_mf_material record = {.id = jzx_mf_text(id), .payload = jzx_mf_blob(payload, BIG)};
        jzx_mf_txn *txn = mft_begin(c->mf);
        CHECK_OK(jzx_mf_material_put(txn, &record));
        c->errs[i] = jzx_mf_commit(txn, 0, NULL);
    }
    return NULL;
}

static jzx_err count_told(jzx_mf_snap *snap, void *arg)
{
    const client *clients = arg;
    uint32_t wrong = 0;
    for (uint32_t n = 0; n < CLIENTS; n++) {
        for (size_t i = 0; i < sizeof clients[n].errs / sizeof clients[n].errs[0]; i++) {
            char id[32];
            (void)snprintf(id, sizeof id, "%llu",
                           (unsigned long long)material_number(&clients[n], i));
            jzx_mf_material record;
            bool there = jzx_mf_material_get(snap, jzx_mf_text(id), &record) == JZX_OK;
            wrong += there != (clients[n].errs[i] == JZX_OK);
        }
    }
    CHECK_EQ(wrong, 0);
    return JZX_OK;
}

static void test_who_does_not_fit_is_not_told_ok(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    watch(&dir);
    static client clients[CLIENTS];
    CHECK_OK(bump(mf));
    disk_becomes(ENOSPC);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        clients[i] = (client){.mf = mf, .first = i * 1000u};
        REQUIRE_EQ(pthread_create(&clients[i].thread, NULL, client_run, &clients[i]), 0);
    }
    uint32_t refused = 0;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        REQUIRE_EQ(pthread_join(clients[i].thread, NULL), 0);
        for (size_t k = 0; k < sizeof clients[i].errs / sizeof clients[i].errs[0]; k++) {
            refused += clients[i].errs[k] != JZX_OK;
            CHECK(clients[i].errs[k] == JZX_OK || clients[i].errs[k] == JZX_ERR_NO_SPACE);
        }
    }
    CHECK(refused > 0);
    CHECK_OK(jzx_mf_read(mf, count_told, clients));
    disk_becomes(0);
    CHECK_OK(bump(mf));
    CHECK_OK(jzx_mf_close(mf, 0));
    mf = mft_open(&dir, NULL);
    CHECK_OK(jzx_mf_read(mf, count_told, clients));
    end(&dir, mf, 0);
}

/* Leases that run out on a full disk are taken back all the same, and need no request for it. */
static void test_time_goes_on_when_the_disk_is_full(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    watch(&dir);
    jzx_mf_txn *txn = mft_begin(mf);
    CHECK_OK(jzx_mf_job_enqueue(
        txn, &(jzx_mf_job_spec){.kind = 9, .lease_ms = 1, .backoff_min_ms = 1}, NULL));
    CHECK_OK(jzx_mf_commit(txn, 0, NULL));
    disk_becomes(ENOSPC);
    uint64_t jobs = 1 + fill(mf, 1, BIG);
    jzx_mf_receipt_free(claim_one(mf, 9));
    jzx_mf_stats stats = {0};
    while (stats.leases_expired == 0) {
        CHECK_EQ(enqueue_bytes(mf, 1, BIG), JZX_ERR_NO_SPACE);
        REQUIRE_OK(jzx_mf_stats_read(mf, &stats));
    }
    disk_becomes(0);
    end(&dir, mf, jobs);
}

static void test_a_disk_without_room_for_a_new_file_creates_none(void)
{
    mft_dir dir = mft_dir_make();
    disk_becomes(EDQUOT);
    jzx_mf *mf = NULL;
    jzx_mf_recovery report;
    CHECK_EQ(jzx_mf_open(dir.file, NULL, &mf, &report), JZX_ERR_NO_SPACE);
    CHECK(access(dir.file, F_OK) != 0);
    disk_becomes(0);
    REQUIRE_OK(jzx_mf_open(dir.file, NULL, &mf, &report));
    end(&dir, mf, 0);
}
#define FULL_TEST(name)                                                                            \
    {                                                                                              \
#name, test_##name                                                                         \
    }
#else
static void test_skipped(void)
{
    jzt_skip("the sanitizers have the system calls for themselves");
}
#define FULL_TEST(name)                                                                            \
    {                                                                                              \
#name, test_skipped                                                                        \
    }
#endif

int main(int argc, char **argv)
{
    static const jzt_test tests[] = {
        FULL_TEST(a_full_disk_is_a_refusal_per_request),
        FULL_TEST(so_is_a_quota_that_is_used_up),
        FULL_TEST(a_claim_that_waits_gets_nothing_of_a_commit_that_failed),
        FULL_TEST(it_is_told_once_each_time),
        FULL_TEST(who_does_not_fit_is_not_told_ok),
        FULL_TEST(time_goes_on_when_the_disk_is_full),
        FULL_TEST(a_disk_without_room_for_a_new_file_creates_none),
    };
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
