/* Goal: a disk that is full for a while costs the requests of that while, and nothing else: nobody
 * is given what was never written, and everything works when there is room again. Method: LMDB's
 * writes go through this program, which refuses them while it is told to. */
#include "mf_fixture.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/uio.h>

#if JZT_SANITIZED
static void test_a_claim_that_waits_gets_nothing_of_a_commit_that_failed(void)
{
    jzt_skip("the sanitizers have the system calls for themselves");
}
static void test_the_reserve_lets_one_more_commit_through(void)
{
    jzt_skip("the sanitizers have the system calls for themselves");
}
#else
#include <dlfcn.h>

static _Atomic bool is_full;
static _Atomic uint32_t refusals;

static bool refuses(void)
{
    if (atomic_load(&is_full)) {
        atomic_fetch_add(&refusals, 1);
        errno = ENOSPC;
        return true;
    }
    return false;
}

typedef ssize_t (*pwrite_fn)(int fd, const void *buf, size_t count, off_t offset);
typedef ssize_t (*writev_fn)(int fd, const struct iovec *parts, int count);

ssize_t pwrite(int fd, const void *buf, size_t count, off_t offset)
{
    static pwrite_fn next;
    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "pwrite");
    }
    return refuses() ? -1 : next(fd, buf, count, offset);
}

ssize_t pwrite64(int fd, const void *buf, size_t count, off_t offset)
{
    return pwrite(fd, buf, count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    static writev_fn next;
    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "writev");
    }
    return refuses() ? -1 : next(fd, parts, count);
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

static jzx_err enqueue(jzx_mf *mf)
{
    jzx_mf_txn *txn = mft_begin(mf);
    CHECK_OK(jzx_mf_job_enqueue(txn, &(jzx_mf_job_spec){.kind = 1}, NULL));
    return jzx_mf_commit(txn, 0, NULL);
}

static void test_a_claim_that_waits_gets_nothing_of_a_commit_that_failed(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, &(jzx_mf_opts){.flags = JZX_MF_NO_RESERVE});
    answer claimed = {0};
    jzx_mf_txn *txn = mft_begin(mf);
    CHECK_OK(jzx_mf_job_claim(txn, &(jzx_mf_claim){.wait_ms = 60000}));
    CHECK_OK(jzx_mf_commit_async(txn, on_answer, &claimed));
    CHECK_OK(bump(mf));
    atomic_store(&is_full, true);
    CHECK_EQ(enqueue(mf), JZX_ERR_NO_SPACE);
    CHECK(atomic_load(&refusals) > 0);
    atomic_store(&is_full, false);
    CHECK_OK(bump(mf));
    CHECK_EQ(claimed.calls, 0);
    CHECK_OK(enqueue(mf));
    CHECK_OK(bump(mf));
    CHECK_EQ(claimed.calls, 1);
    CHECK_EQ(claimed.jobs, 1);
    CHECK_EQ(claimed.attempt, 1);
    CHECK_OK(jzx_mf_close(mf, 0));
    CHECK_OK(jzx_mf_check(dir.file, NULL, NULL, NULL));
    mft_dir_remove(&dir);
}

static void on_alarm(void *arg, const jzx_mf_alarm *alarm)
{
    if (alarm->kind == JZX_MF_ALARM_DISK_FULL) {
        atomic_store(&is_full, false); /* the reserve's space is there now */
        ++*(_Atomic uint32_t *)arg;
    }
}

static void test_the_reserve_lets_one_more_commit_through(void)
{
    mft_dir dir = mft_dir_make();
    _Atomic uint32_t alarms = 0;
    jzx_mf *mf = mft_open(&dir, &(jzx_mf_opts){.on_alarm = on_alarm, .alarm_arg = &alarms});
    char reserve[128];
    (void)snprintf(reserve, sizeof reserve, "%s-reserve", dir.file);
    CHECK_EQ(access(reserve, F_OK), 0);
    atomic_store(&is_full, true);
    CHECK_OK(enqueue(mf));
    CHECK_EQ(alarms, 1); /* and as soon as there is room it is made again */
    CHECK_OK(bump(mf));
    CHECK_OK(jzx_mf_close(mf, 0));
    CHECK_OK(jzx_mf_check(dir.file, NULL, NULL, NULL));
    mft_dir_remove(&dir);
}
#endif

int main(int argc, char **argv)
{
    static const jzt_test tests[] = {
        {"a_claim_that_waits_gets_nothing_of_a_commit_that_failed",
         test_a_claim_that_waits_gets_nothing_of_a_commit_that_failed},
        {"the_reserve_lets_one_more_commit_through", test_the_reserve_lets_one_more_commit_through},
    };
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
