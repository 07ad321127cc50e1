/* jzx manifest FILE jobs retry, cancel, pause, resume: what writes. */
#include "manifest.h"
#include "record.h"

#include <jzx/manifest_job.h>
#include <jzx/manifest_txn.h>

#include <string.h>

enum { COMMIT_TIMEOUT_MS = 30000 };

typedef jzx_err (*job_op)(jzx_mf_txn *txn, uint64_t job);

/* One job, one transaction: one that is refused does not keep the others from being done. */
static jzx_err change_job(jzx_mf *mf, job_op op, uint64_t id)
{
    jzx_mf_txn *txn;
    jzx_err err = jzx_mf_begin(mf, &txn);
    if (err != JZX_OK) {
        return err;
    }
    err = op(txn, id);
    if (err != JZX_OK) {
        jzx_mf_abort(txn);
        return err;
    }
    return jzx_mf_commit(txn, COMMIT_TIMEOUT_MS, NULL);
}

static jzx_err change_kind(jzx_mf *mf, uint16_t kind, int paused)
{
    jzx_mf_txn *txn;
    jzx_err err = jzx_mf_begin(mf, &txn);
    if (err != JZX_OK) {
        return err;
    }
    err = jzx_mf_kind_pause(txn, kind, paused);
    if (err != JZX_OK) {
        jzx_mf_abort(txn);
        return err;
    }
    return jzx_mf_commit(txn, COMMIT_TIMEOUT_MS, NULL);
}

static const char *why(jzx_err err)
{
    switch (err) {
    case JZX_ERR_NOT_FOUND:
        return "there is no such job: it never was, or it was pruned";
    case JZX_ERR_WRONG_STATE:
        return "it is in a state in which that is not possible";
    case JZX_ERR_ALREADY:
        return "its place in the queue is taken by another job with its key";
    default:
        return jzx_strerror(err);
    }
}

/* The ids are read first, so that a slip changes nothing. */
static int check_ids(const call *c)
{
    for (int i = 0; i < c->operand_count; i++) {
        uint64_t id;
        int status = word_u64(c, "an id", c->operands[i], &id);
        if (status != EXIT_FINE) {
            return status;
        }
    }
    return EXIT_FINE;
}

static void tell_job(const call *c, uint64_t id, const char *done, jzx_err err)
{
    if (c->json) {
        ui_record r = ui_begin(stdout, true);
        ui_u64(&r, "id", id);
        ui_bool(&r, "ok", err == JZX_OK);
        if (err != JZX_OK) {
            ui_string(&r, "error", jzx_err_name(err));
            ui_string(&r, "text", why(err));
        }
        ui_end(&r);
    } else if (err == JZX_OK) {
        printf("job %llu: %s\n", (unsigned long long)id, done);
    }
    if (err != JZX_OK) {
        (void)ui_fail("job %llu: %s", (unsigned long long)id, why(err));
    }
}

static int change_jobs(const call *c, job_op op, const char *done)
{
    int status = check_ids(c);
    if (status != EXIT_FINE) {
        return status;
    }
    jzx_mf *mf = file_open_writing(c, &status);
    if (mf == NULL) {
        return status;
    }
    for (int i = 0; i < c->operand_count; i++) {
        uint64_t id = 0;
        (void)word_u64(c, "an id", c->operands[i], &id);
        jzx_err err = change_job(mf, op, id);
        tell_job(c, id, done, err);
        status = err == JZX_OK ? status : EXIT_FAILED;
    }
    file_close(mf);
    return status;
}

int cmd_jobs_retry(const call *c)
{
    return change_jobs(c, jzx_mf_job_retry, "queued again");
}

int cmd_jobs_cancel(const call *c)
{
    return change_jobs(c, jzx_mf_job_cancel, "cancelled, or asked to stop");
}

static int change_paused(const call *c, bool paused)
{
    int status = EXIT_FAILED;
    jzx_mf *mf = file_open_writing(c, &status);
    if (mf == NULL) {
        return status;
    }
    uint16_t kind = 0;
    status = word_kind(c, mf, c->operands[0], &kind);
    if (status == EXIT_FINE) {
        jzx_err err = change_kind(mf, kind, paused);
        if (err != JZX_OK) {
            status = ui_error(err, "Kind %u cannot be %s", kind, paused ? "paused" : "resumed");
        } else if (c->json) {
            ui_record r = ui_begin(stdout, true);
            ui_u64(&r, "kind", kind);
            ui_bool(&r, "paused", paused);
            ui_end(&r);
        } else {
            printf("kind %u: %s\n", kind, paused ? "paused" : "resumed");
        }
    }
    file_close(mf);
    return status;
}

int cmd_jobs_pause(const call *c)
{
    return change_paused(c, true);
}

int cmd_jobs_resume(const call *c)
{
    return change_paused(c, false);
}
