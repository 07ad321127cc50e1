/* Goal: whatever allocation fails, in the manifest, in LMDB or in the runtime below it: every call
 * answers with an error or does its work, what was acknowledged is there, and the file is sound.
 * Method: malloc() and its kin are this program's; the nth call from the armed moment on fails,
 * once or for a while, for n = 1, 2, 3 ... until a run was not touched. */
/* program of its own: malloc() and its kin are replaced. */
#include "mf_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#if JZT_SANITIZED
static void test_every_allocation_may_fail(void)
{
    jzt_skip("the sanitizers have malloc() for themselves");
}
#else
/* glibc's own, which these stand before. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *ptr, size_t size);

static _Atomic int64_t left = INT64_MAX; /* calls until one fails */
static _Atomic int64_t in_a_row;         /* that fail then */
static _Atomic uint64_t failures;

static bool fails_now(void)
{
    int64_t now = atomic_fetch_sub_explicit(&left, 1, memory_order_relaxed);
    bool fails = now <= 0 && now > -atomic_load_explicit(&in_a_row, memory_order_relaxed);
    if (fails) {
        atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed);
        errno = ENOMEM;
    }
    return fails;
}

void *malloc(size_t size)
{
    return fails_now() ? NULL : __libc_malloc(size);
}
void *calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __libc_calloc(count, size);
}
void *realloc(void *ptr, size_t size)
{
    return fails_now() ? NULL : __libc_realloc(ptr, size);
}

static void arm(int64_t nth, int64_t count)
{
    atomic_store(&failures, 0);
    atomic_store(&in_a_row, count);
    atomic_store(&left, nth - 1);
}

static uint64_t disarm(void)
{
    atomic_store(&left, INT64_MAX);
    return atomic_load(&failures);
}

static bool is_expected(jzx_err err)
{
    return err == JZX_OK || err == JZX_ERR_NO_MEMORY || err == JZX_ERR_CLOSED ||
           err == JZX_ERR_NO_THREADS || err == JZX_ERR_NO_FDS || err == JZX_ERR_IN_DOUBT;
}

/* What the scenario knows to be durable. */
typedef struct facts {
    uint64_t generation;
    uint64_t job;
    bool done;
} facts;

static jzx_err commit(jzx_mf_txn *txn, jzx_err err, jzx_mf_receipt **out)
{
    if (err != JZX_OK) {
        jzx_mf_abort(txn);
        return err;
    }
    return jzx_mf_commit(txn, 0, out);
}

static jzx_err bump(jzx_mf *mf, facts *known)
{
    jzx_mf_txn *txn;
    jzx_err err = jzx_mf_begin(mf, &txn);
    if (err != JZX_OK) {
        return err;
    }
    err = commit(txn, jzx_mf_generation_bump(txn, 1, 1), NULL);
    known->generation += err == JZX_OK ? 1 : 0;
    return err;
}

static jzx_err enqueue(jzx_mf *mf, facts *known)
{
    static const char payload[5000];
    jzx_mf_txn *txn;
    jzx_err err = jzx_mf_begin(mf, &txn);
    if (err != JZX_OK) {
        return err;
    }
    uint64_t job = 0;
    const jzx_mf_job_spec spec = {.kind = 1, .payload = {payload, sizeof payload}};
    err = commit(txn, jzx_mf_job_enqueue(txn, &spec, &job), NULL);
    known->job = err == JZX_OK ? job : known->job;
    return err;
}

static jzx_err work(jzx_mf *mf, facts *known)
{
    jzx_mf_txn *txn;
    jzx_mf_receipt *receipt = NULL;
    jzx_err err = jzx_mf_begin(mf, &txn);
    if (err != JZX_OK) {
        return err;
    }
    err = commit(txn, jzx_mf_job_claim(txn, &(jzx_mf_claim){.max = 2}), &receipt);
    if (err == JZX_OK && receipt->job_count > 0) {
        jzx_mf_lease lease = jzx_mf_lease_of(&receipt->jobs[0]);
        err = jzx_mf_begin(mf, &txn);
        if (err == JZX_OK) {
            err = commit(txn, jzx_mf_job_complete(txn, &lease, jzx_mf_text("ok")), NULL);
            known->done = known->done || err == JZX_OK;
        }
    }
    jzx_mf_receipt_free(receipt);
    return err;
}

static jzx_err look(jzx_mf_snap *snap, void *arg)
{
    facts *seen = arg;
    jzx_mf_generation generation;
    jzx_err err = jzx_mf_generation_get(snap, 1, &generation);
    if (err != JZX_OK) {
        return err;
    }
    seen->generation = generation.current;
    jzx_mf_job job;
    if (seen->job != 0) {
        err = jzx_mf_job_get(snap, seen->job, &job);
        seen->done = err == JZX_OK && job.state == JZX_MF_JOB_DONE;
    }
    return err;
}

static void play(const mft_dir *dir, facts *known)
{
    jzx_mf *mf = NULL;
    jzx_mf_recovery report;
    jzx_err err = jzx_mf_open(dir->file, NULL, &mf, &report);
    CHECK(is_expected(err));
    if (err != JZX_OK) {
        return;
    }
    CHECK(is_expected(bump(mf, known)));
    CHECK(is_expected(enqueue(mf, known)));
    CHECK(is_expected(work(mf, known)));
    facts seen = {.job = 0};
    CHECK(is_expected(jzx_mf_read(mf, look, &seen)));
    CHECK(is_expected(jzx_mf_close(mf, 0)));
}

static void check_durable(const mft_dir *dir, const facts *expected)
{
    jzx_mf *mf = mft_open(dir, NULL);
    facts seen = {.job = expected->job};
    REQUIRE_OK(jzx_mf_read(mf, look, &seen));
    CHECK(seen.generation >= expected->generation);
    CHECK(!expected->done || seen.done);
    CHECK_OK(jzx_mf_close(mf, 0));
    CHECK_OK(jzx_mf_check(dir->file, NULL, NULL, NULL));
}

static void sweep(int64_t in_row)
{
    uint64_t touched = 0;
    uint64_t hits = 1;
    for (int64_t n = 1; hits != 0 && n < 5000 && jzt_failures() == 0; n++) {
        mft_dir dir = mft_dir_make();
        facts known = {0};
        arm(n, in_row);
        play(&dir, &known);
        hits = disarm();
        touched += hits != 0 ? 1 : 0;
        check_durable(&dir, &known);
        mft_dir_remove(&dir);
        if (jzt_failures() != 0) {
            (void)fprintf(stderr, "allocation %lld, %lld in a row\n", (long long)n,
                          (long long)in_row);
        }
    }
    CHECK(touched > 50);
}

static void test_every_allocation_may_fail(void)
{
    sweep(1);
    sweep(4);
}
#endif

int main(int argc, char **argv)
{
    static const jzt_test tests[] = {
        {"every_allocation_may_fail", test_every_allocation_may_fail},
    };
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
