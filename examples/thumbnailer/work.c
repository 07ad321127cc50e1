/* The handler: one job, one thumbnail. It runs on a thread of the pool and may take its time.
 *
 * It may run twice for one picture, when the process dies between the rename and the commit. Both
 * times it makes the same file, so that does no harm. That the thumbnail is made is recorded in the
 * transaction that completes the job: the manifest never says so without, and never twice. */
#include "thumbnailer.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

int stamp_of(const char *path, char *out, size_t cap)
{
    struct stat facts;
    if (stat(path, &facts) != 0) {
        return -1;
    }
    (void)snprintf(out, cap, "%lld bytes, %lld.%09ld", (long long)facts.st_size,
                   (long long)facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
    return 0;
}

/* Returns 0 if it was cancelled meanwhile. */
static int pause_a_little(jzx_mf_run *run, uint32_t ms)
{
    const struct timespec step = {.tv_nsec = 1000000};
    for (uint32_t i = 0; i < ms; i++) {
        if (jzx_mf_run_cancelled(run)) {
            return 0;
        }
        (void)nanosleep(&step, NULL);
    }
    return 1;
}

static jzx_mf_verdict bad(jzx_mf_run *run, const char *wrong)
{
    (void)jzx_mf_run_fail(run, 1, wrong);
    return JZX_MF_RUN_DEAD; /* trying again would not help */
}

static jzx_mf_verdict record(jzx_mf_run *run, const char *name, const char *stamp,
                             const picture *made)
{
    char size[32];
    (void)snprintf(size, sizeof size, "%ux%u", made->width, made->height);
    jzx_mf_material material = {
        .id = jzx_mf_text(name), .payload = jzx_mf_text(stamp), .status = STATUS_MADE};
    jzx_mf_txn *txn = jzx_mf_run_txn(run);
    if (txn == NULL || jzx_mf_material_put(txn, &material) != JZX_OK ||
        jzx_mf_run_result(run, size, strlen(size)) != JZX_OK) {
        return jzx_mf_run_fail(run, 2, "there is no memory");
    }
    return JZX_MF_RUN_DONE;
}

jzx_mf_verdict thumbnail_make(jzx_context *ctx, jzx_mf_run *run, void *arg)
{
    (void)ctx;
    const options *opts = arg;
    const jzx_mf_job *job = jzx_mf_run_job(run);
    char name[NAME_MAX + 1];
    char path[PATH_SIZE];
    char stamp[96], after[96];
    (void)snprintf(name, sizeof name, "%.*s", (int)job->payload.len,
                   (const char *)job->payload.data);
    (void)snprintf(path, sizeof path, "%s/%s", opts->source, name);
    if (stamp_of(path, stamp, sizeof stamp) != 0) {
        return bad(run, "it is not there any more");
    }
    picture whole;
    const char *wrong = picture_read(path, &whole);
    if (stamp_of(path, after, sizeof after) == 0 && strcmp(stamp, after) != 0) {
        if (wrong == NULL) {
            picture_free(&whole);
        }
        return jzx_mf_run_snooze(run, 100); /* it is still being written, and that is no failure */
    }
    if (wrong != NULL) {
        return bad(run, wrong);
    }
    jzx_mf_run_progress(run, 1, 3, "read");
    picture small;
    wrong = picture_shrink(&whole, opts->size, &small);
    picture_free(&whole);
    if (wrong != NULL) {
        return jzx_mf_run_fail(run, 2, wrong);
    }
    jzx_mf_run_progress(run, 2, 3, "shrunk");
    jzx_mf_verdict verdict = jzx_mf_run_fail(run, 3, "stopped in the middle");
    if (pause_a_little(run, opts->slow_ms)) {
        int failed = picture_write(&small, opts->target, name);
        verdict = failed == 0 ? record(run, name, stamp, &small)
                              : jzx_mf_run_fail(run, failed, strerror(failed));
    }
    picture_free(&small);
    return verdict;
}
