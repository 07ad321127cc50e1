/* How long it takes to open a manifest with many jobs. The file stays from run to run: before each
 * one, a process takes a tenth of the jobs and dies with them. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <jzx/manifest.h>

#include "mfb.h"
#include "ours.h"
#include "sides.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { CLAIM_MAX = 5000 };

/* Says that a file was built whole, so that it can be used again with the same --dir. */
static void mark_built(const mfb_run *run)
{
    FILE *built = fopen(mfb_path(run, "built"), "w");
    if (built == NULL || fclose(built) != 0) {
        bench_fail("cannot write %s", mfb_path(run, "built"));
    }
}

void mfb_ours_recover_prepare(const mfb_run *run, mfb_sample *out)
{
    (void)out;
    if (access(mfb_path(run, "built"), F_OK) == 0) {
        return;
    }
    jzx_mf *mf = mfb_ours_create(run);
    mfb_ours_fill(mf, run, false);
    bench_check(jzx_mf_close(mf, 0), "jzx_mf_close");
    mark_built(run);
}

static void take_leases(jzx_mf *mf, uint64_t wanted)
{
    for (uint64_t have = 0; have < wanted;) {
        jzx_mf_txn *txn = NULL;
        jzx_mf_receipt *receipt = NULL;
        uint64_t left = wanted - have;
        jzx_mf_claim claim = {.max = left < CLAIM_MAX ? (uint32_t)left : CLAIM_MAX};
        bench_check(jzx_mf_begin(mf, &txn), "jzx_mf_begin");
        bench_check(jzx_mf_job_claim(txn, &claim), "jzx_mf_job_claim");
        bench_check(jzx_mf_commit(txn, 0, &receipt), "jzx_mf_commit");
        if (receipt->job_count == 0) {
            bench_fail("only %" PRIu64 " jobs could be claimed", have);
        }
        have += receipt->job_count;
        jzx_mf_receipt_free(receipt);
    }
}

static void arm(const mfb_run *run, mfb_sample *out)
{
    (void)out;
    jzx_mf *mf = mfb_ours_open(run, JZX_MF_NO_VERIFY, NULL);
    if (run->variant == MFB_CRASHED) {
        take_leases(mf, run->records / 10);
        return; /* and the process ends with the manifest open */
    }
    bench_check(jzx_mf_close(mf, 0), "jzx_mf_close");
}

static void recover(const mfb_run *run, uint32_t flags, mfb_sample *out)
{
    mfb_sample ignored;
    jzx_mf_recovery report;
    if (!mfb_apart(arm, run, &ignored)) {
        bench_fail("manifest: no leases could be taken");
    }
    bench_sample cost;
    bench_watch watch = bench_start();
    jzx_mf *mf = mfb_ours_open(run, flags, &report);
    bench_stop(watch, report.jobs, &cost);
    out->ns = cost.wall_ns;
    out->cpu_ns = cost.cpu_ns;
    out->ops = report.jobs;
    snprintf(out->note, sizeof out->note,
             "jobs=%" PRIu64 ";orphans=%" PRIu64 ";clean=%u;cpu_ms=%" PRIu64, report.jobs,
             report.orphans, report.clean, cost.cpu_ns / 1000000u);
    bench_check(jzx_mf_close(mf, 0), "jzx_mf_close");
}

void mfb_ours_recover(const mfb_run *run, mfb_sample *out)
{
    recover(run, 0, out);
}

void mfb_ours_recover_no_verify(const mfb_run *run, mfb_sample *out)
{
    recover(run, JZX_MF_NO_VERIFY, out);
}
