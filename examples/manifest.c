/* A manifest in one sitting: a record and a job are stored in one commit, the job is worked on, and
 * its end is committed together with what it found. Whatever returned JZX_OK is on disk.
 * Run: ./manifest */
#define _POSIX_C_SOURCE 200809L /* mkdtemp() */
#include <jzx/manifest.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SHOP = 1, KIND_COUNT = 1, STOCK = 1 };

static jzx_err set_up(jzx_mf *mf, uint64_t *out_job)
{
    jzx_mf_txn *txn;
    jzx_mf_db shop = {.name = jzx_mf_text("shop")};
    jzx_mf_job_spec job = {
        .kind = KIND_COUNT, .scope = JZX_MF_SCOPE_DB, .db = SHOP, .payload = jzx_mf_text("apples")};
    jzx_err err = jzx_mf_begin(mf, &txn);
    if (err != JZX_OK) {
        return err;
    }
    if ((err = jzx_mf_db_put(txn, SHOP, &shop)) != JZX_OK ||
        (err = jzx_mf_job_enqueue(txn, &job, out_job)) != JZX_OK) {
        jzx_mf_abort(txn);
        return err;
    }
    return jzx_mf_commit(txn, 0, NULL);
}

/* If the lease is over, another worker may have the job: FENCED, and the stock is not touched. */
static jzx_err finish(jzx_mf *mf, jzx_mf_lease lease)
{
    jzx_mf_txn *txn;
    jzx_err err = jzx_mf_begin(mf, &txn);
    if (err != JZX_OK) {
        return err;
    }
    if ((err = jzx_mf_job_complete(txn, &lease, jzx_mf_text("7 of them"))) != JZX_OK ||
        (err = jzx_mf_generation_bump(txn, STOCK, 1)) != JZX_OK) {
        jzx_mf_abort(txn);
        return err;
    }
    return jzx_mf_commit(txn, 0, NULL);
}

static jzx_err work(jzx_mf *mf)
{
    jzx_mf_txn *txn;
    jzx_mf_receipt *receipt = NULL;
    jzx_mf_claim claim = {.wait_ms = 1000};
    jzx_err err = jzx_mf_begin(mf, &txn);
    if (err == JZX_OK && (err = jzx_mf_job_claim(txn, &claim)) != JZX_OK) {
        jzx_mf_abort(txn);
    } else if (err == JZX_OK) {
        err = jzx_mf_commit(txn, 0, &receipt);
    }
    if (err == JZX_OK && receipt->job_count == 1) {
        const jzx_mf_job *job = receipt->jobs;
        printf("counting %.*s, attempt %" PRIu32 "\n", (int)job->payload.len,
               (const char *)job->payload.data, job->attempt);
        err = finish(mf, jzx_mf_lease_of(job));
    }
    jzx_mf_receipt_free(receipt);
    return err;
}

/* All of this sees one and the same commit. */
static jzx_err show(jzx_mf_snap *snap, void *arg)
{
    jzx_mf_generation stock;
    jzx_mf_job job;
    jzx_err err = jzx_mf_generation_get(snap, STOCK, &stock);
    if (err == JZX_OK && (err = jzx_mf_job_get(snap, *(uint64_t *)arg, &job)) == JZX_OK) {
        printf("stock is at generation %" PRIu64 "; the job is %s: %.*s\n", stock.current,
               jzx_mf_job_state_name(job.state), (int)job.result.len,
               (const char *)job.result.data);
    }
    return err;
}

int main(void)
{
    char dir[] = "/tmp/jzx-XXXXXX";
    uint64_t job;
    jzx_mf *mf = NULL;
    jzx_mf_recovery report = {0};
    jzx_err err = JZX_ERR_NO_ACCESS;
    if (mkdtemp(dir) != NULL && chdir(dir) == 0 &&
        (err = jzx_mf_open("shop", NULL, &mf, &report)) == JZX_OK &&
        (err = set_up(mf, &job)) == JZX_OK && (err = work(mf)) == JZX_OK) {
        err = jzx_mf_read(mf, show, &job);
    }
    if (jzx_mf_close(mf, 0) != JZX_OK || err != JZX_OK) {
        fprintf(stderr, "manifest: %s. %s\n", jzx_strerror(err), report.text);
    }
    (void)(remove("shop") + remove("shop-lock") + remove("shop-owner"));
    return rmdir(dir) == 0 && err == JZX_OK ? 0 : 1;
}
