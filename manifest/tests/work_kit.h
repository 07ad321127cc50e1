/* What the tests of workers share: a job as a test sees it. */
#ifndef MFT_WORK_KIT_H
#define MFT_WORK_KIT_H

#include "mf_fixture.h"

typedef struct mft_job {
    jzx_err err;
    uint64_t id;
    jzx_mf_job job; /* without its spans */
    char error[JZX_MF_TEXT_MAX + 1];
    char result[256];
    char progress[JZX_MF_TEXT_MAX + 1];
} mft_job;

static inline void mft_copy(char *out, size_t cap, jzx_mf_span span)
{
    size_t len = span.len < cap - 1 ? span.len : cap - 1;
    if (len > 0) {
        memcpy(out, span.data, len);
    }
    out[len] = '\0';
}

static inline jzx_err mft_job_read(jzx_mf_snap *snap, void *arg)
{
    mft_job *out = arg;
    jzx_mf_job job;
    jzx_err err = jzx_mf_job_get(snap, out->id, &job);
    if (err == JZX_OK) {
        out->job = job;
        mft_copy(out->error, sizeof out->error, job.error);
        mft_copy(out->result, sizeof out->result, job.result);
        mft_copy(out->progress, sizeof out->progress, job.progress);
    }
    return err;
}

/* A job as it is now; zeros if it is not there. */
static inline mft_job mft_job_of(jzx_mf *mf, uint64_t id)
{
    mft_job out = {.id = id};
    out.err = jzx_mf_read(mf, mft_job_read, &out);
    return out;
}

static inline uint32_t mft_state_of(jzx_mf *mf, uint64_t id)
{
    return mft_job_of(mf, id).job.state;
}

static inline jzx_err mft_generation_read(jzx_mf_snap *snap, void *arg)
{
    jzx_mf_generation generation;
    jzx_err err = jzx_mf_generation_get(snap, 1, &generation);
    *(uint64_t *)arg = err == JZX_OK ? generation.current : UINT64_MAX;
    return err;
}

/* Of component 1, which handlers bump. */
static inline uint64_t mft_generation(jzx_mf *mf)
{
    uint64_t current = UINT64_MAX;
    CHECK_OK(jzx_mf_read(mf, mft_generation_read, &current));
    return current;
}

/* Gives a job back behind the back of whoever works on it. */
static inline jzx_err mft_steal(jzx_mf_txn *txn, const jzx_mf_job *job)
{
    jzx_mf_lease lease = jzx_mf_lease_of(job);
    jzx_mf_failure failure = {.flags = JZX_MF_FAIL_NOW | JZX_MF_FAIL_UNCOUNTED};
    return jzx_mf_job_fail(txn, &lease, &failure);
}

#endif
