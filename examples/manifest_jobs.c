/* A worker by hand, without those of jzx/manifest_work.h: it claims, keeps its lease, fails, tries
 * again and prunes. The clock is the example's, so days pass in a blink. Run: ./manifest_jobs */
#define _POSIX_C_SOURCE 200809L /* mkdtemp() */
#include <jzx/manifest.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KIND = 1, DAY_MS = 24 * 3600 * 1000 };
enum { CLAIM, BEAT, FAIL, DONE, DELETE, PRUNE, CRON, NO_CRON, ENQUEUE };

static _Atomic uint64_t now_ms = 1000000000000;
static jzx_mf_lease lease; /* of the last claim */
static uint64_t job;       /* of the last enqueue */

static uint64_t read_clock(void *arg)
{
    (void)arg;
    return now_ms;
}

static jzx_err add(jzx_mf_txn *txn, int what)
{
    jzx_mf_claim claim = {.max = 1};
    jzx_mf_failure failure = {
        .text = jzx_mf_text("the disk is full"), .delay_ms = 1000, .code = 28};
    jzx_mf_cron nightly = {
        .name = jzx_mf_text("nightly"), .schedule = jzx_mf_text("0 3 * * *"), .kind = KIND};
    switch (what) {
    case ENQUEUE:
        return jzx_mf_job_enqueue(txn, &(jzx_mf_job_spec){.kind = KIND}, &job);
    case CLAIM:
        return jzx_mf_job_claim(txn, &claim);
    case BEAT: /* another lease from now on, and how far it is */
        return jzx_mf_job_heartbeat(txn, &lease, 0, 1, 2, jzx_mf_text("half"));
    case FAIL:
        return jzx_mf_job_fail(txn, &lease, &failure);
    case DONE:
        return jzx_mf_job_complete(txn, &lease, jzx_mf_text("fine"));
    case DELETE:
        return jzx_mf_job_del(txn, job);
    case PRUNE:
        return jzx_mf_job_prune(txn, 0);
    case CRON:
        return jzx_mf_cron_put(txn, &nightly);
    default:
        return jzx_mf_cron_del(txn, nightly.name);
    }
}

/* Commits it and says how it ended; a claim fills in the lease. */
static void run(jzx_mf *mf, int what, const char *name)
{
    jzx_mf_txn *txn = NULL;
    jzx_mf_receipt *receipt = NULL;
    jzx_err err = jzx_mf_begin(mf, &txn);
    if (err != JZX_OK || (err = add(txn, what)) != JZX_OK) {
        jzx_mf_abort(txn);
    } else {
        err = jzx_mf_commit(txn, 0, &receipt);
    }
    printf("%s: %s", name, jzx_err_name(err));
    if (err == JZX_OK && what == CLAIM) {
        printf(", %u job", (unsigned)receipt->job_count);
        if (receipt->job_count == 1) {
            lease = jzx_mf_lease_of(receipt->jobs);
            printf(", attempt %u", (unsigned)receipt->jobs->attempt);
        }
    }
    jzx_mf_receipt_free(receipt);
    printf("\n");
}

int main(void)
{
    static const struct {
        int what;
        uint64_t passes_ms; /* before it */
        const char *name;
    } day[] = {{ENQUEUE, 0, "enqueue"},     {CLAIM, 0, "claim"},
               {BEAT, 10000, "heartbeat"},  {FAIL, 10000, "fail"},
               {CLAIM, 0, "too early"},     {CLAIM, 2000, "after its delay"},
               {DONE, 0, "done"},           {DONE, 0, "done twice"},
               {DELETE, 0, "forget it"},    {CRON, 0, "every night"},
               {CLAIM, DAY_MS, "next day"}, {DONE, 0, "done"},
               {NO_CRON, 0, "never again"}, {PRUNE, 2ull * DAY_MS, "prune"}};
    char dir[] = "/tmp/jzx-XXXXXX";
    jzx_mf *mf = NULL;
    jzx_mf_opts opts = {.wall_ms = read_clock};
    if (mkdtemp(dir) == NULL || chdir(dir) != 0 || jzx_mf_open("q", &opts, &mf, NULL) != JZX_OK) {
        return 1;
    }
    for (size_t i = 0; i < sizeof day / sizeof day[0]; i++) {
        now_ms += day[i].passes_ms;
        run(mf, day[i].what, day[i].name);
    }
    (void)(jzx_mf_close(mf, 0) + remove("q") + remove("q-lock") + remove("q-owner"));
    return rmdir(dir) == 0 ? 0 : 1;
}
