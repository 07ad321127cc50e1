/* One job in the hands of its handler. */
#include "work.h"

#include "memory.h"

#include <jzx/loop.h>

#include <stdio.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)

/* Making and forgetting. */

static void copy_span(jzx_mf_span *span, unsigned char **at)
{
    if (span->len > 0) {
        memcpy(*at, span->data, span->len);
    }
    span->data = *at;
    *at += span->len;
}

jzx_mf_run *mfi_run_make(mfi_workers *workers, const jzx_mf_job *job, uint32_t lease_ms)
{
    size_t bytes = job->key.len + job->payload.len + job->result.len + job->error.len +
                   job->progress.len + job->blocked_on.len;
    jzx_mf_run *run = mfi_alloc_zeroed(1, sizeof *run + bytes);
    if (run == NULL) {
        return NULL;
    }
    run->workers = workers;
    run->job = *job;
    run->lease = jzx_mf_lease_of(job);
    run->lease_ms = lease_ms != 0 ? lease_ms : job->lease_ms;
    run->progress_done = job->progress_done;
    run->progress_total = job->progress_total;
    unsigned char *at = run->bytes;
    copy_span(&run->job.key, &at);
    copy_span(&run->job.payload, &at);
    copy_span(&run->job.result, &at);
    copy_span(&run->job.error, &at);
    copy_span(&run->job.progress, &at);
    copy_span(&run->job.blocked_on, &at);
    return run;
}

void mfi_run_free(jzx_mf_run *run)
{
    if (run != NULL) {
        jzx_mf_abort(run->txn);
        mfi_free(run->result);
        mfi_free(run);
    }
}

/* Leases. The producer may be late or gone, so a handler sees by the clock alone that it lost its
 * right to go on. */

void mfi_run_keep(jzx_mf_run *run, uint64_t from_ns)
{
    if (run->timeout_ns == 0) {
        run->timeout_ns =
            run->job.timeout_ms == 0 ? UINT64_MAX : from_ns + run->job.timeout_ms * NS_PER_MS;
    }
    uint64_t until = from_ns + run->lease_ms * NS_PER_MS;
    until = until < run->timeout_ns ? until : run->timeout_ns;
    /* Read by jzx_mf_run_cancelled(); nothing else hangs on it. */
    atomic_store_explicit(&run->until_ns, until, memory_order_relaxed);
}

void mfi_run_lose(jzx_mf_run *run)
{
    atomic_store_explicit(&run->lost, true, memory_order_relaxed);
    atomic_store_explicit(&run->cancelled, true, memory_order_relaxed);
}

bool mfi_run_same(const jzx_mf_run *run, const jzx_mf_lease *lease)
{
    return run != NULL && run->lease.job_id == lease->job_id &&
           run->lease.attempt == lease->attempt && run->lease.boot == lease->boot;
}

/* How it ended. */

static uint16_t copy_text(char out[JZX_MF_TEXT_MAX], const char *text)
{
    size_t len = text == NULL ? 0 : strnlen(text, JZX_MF_TEXT_MAX);
    if (len > 0) {
        memcpy(out, text, len);
    }
    return (uint16_t)len;
}

void mfi_run_end_failed(jzx_mf_run *run, int32_t code, uint32_t flags, const char *text)
{
    mfi_ending *ending = &run->ending;
    ending->done = false;
    ending->delay_ms = 0;
    ending->code = code;
    ending->flags = flags;
    ending->text_len = copy_text(ending->text, text);
}

void mfi_run_end_unbegun(jzx_mf_run *run)
{
    mfi_run_end_failed(run, 0, JZX_MF_FAIL_NOW | JZX_MF_FAIL_UNCOUNTED,
                       "given back before it was begun");
}

void mfi_run_end(jzx_mf_run *run, int verdict)
{
    mfi_ending *ending = &run->ending;
    ending->done = verdict == JZX_MF_RUN_DONE;
    ending->flags = 0;
    if (verdict == JZX_MF_RUN_DEAD) {
        ending->flags = JZX_MF_FAIL_FOR_GOOD;
    } else if (verdict == JZX_MF_RUN_SNOOZE) {
        ending->flags = JZX_MF_FAIL_UNCOUNTED;
    } else if (!atomic_load_explicit(&run->workers->open, memory_order_relaxed)) {
        /* It was asked to return soon, and that is no failure of its own. */
        ending->flags = JZX_MF_FAIL_NOW | JZX_MF_FAIL_UNCOUNTED;
    }
    if (verdict != JZX_MF_RUN_SNOOZE) {
        ending->delay_ms = 0;
    }
    if (verdict < JZX_MF_RUN_DONE || verdict > JZX_MF_RUN_SNOOZE) {
        char text[64];
        (void)snprintf(text, sizeof text, "its handler returned %d, which is no verdict", verdict);
        mfi_run_end_failed(run, 0, 0, text);
    }
}

/* What a handler may call. */

const jzx_mf_job *jzx_mf_run_job(const jzx_mf_run *run)
{
    return run == NULL ? NULL : &run->job;
}

int jzx_mf_run_cancelled(jzx_mf_run *run)
{
    if (run == NULL) {
        return 0;
    }
    return atomic_load_explicit(&run->cancelled, memory_order_relaxed) ||
           !atomic_load_explicit(&run->workers->open, memory_order_relaxed) ||
           jzx_loop_now(run->workers->loop) >=
               atomic_load_explicit(&run->until_ns, memory_order_relaxed);
}

void jzx_mf_run_progress(jzx_mf_run *run, uint64_t done, uint64_t total, const char *text)
{
    if (run == NULL) {
        return;
    }
    /* A text that faults must not do so with the lock held. */
    char copy[JZX_MF_TEXT_MAX];
    uint16_t len = copy_text(copy, text);
    (void)pthread_mutex_lock(&run->workers->lock);
    run->progress_done = done;
    run->progress_total = total;
    if (len > 0) {
        memcpy(run->progress, copy, len);
        run->progress_len = len;
    }
    (void)pthread_mutex_unlock(&run->workers->lock);
}

jzx_err jzx_mf_run_result(jzx_mf_run *run, const void *bytes, size_t len)
{
    if (run == NULL || (bytes == NULL && len > 0)) {
        return JZX_ERR_INVALID_ARG;
    }
    if (len > JZX_MF_PAYLOAD_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    void *copy = mfi_alloc(len > 0 ? len : 1);
    if (copy == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    if (len > 0) {
        memcpy(copy, bytes, len);
    }
    mfi_free(run->result);
    run->result = copy;
    run->result_len = len;
    return JZX_OK;
}

jzx_mf_verdict jzx_mf_run_fail(jzx_mf_run *run, int32_t code, const char *text)
{
    if (run != NULL) {
        run->ending.code = code;
        run->ending.text_len = copy_text(run->ending.text, text);
    }
    return JZX_MF_RUN_RETRY;
}

jzx_mf_verdict jzx_mf_run_snooze(jzx_mf_run *run, uint64_t delay_ms)
{
    if (run != NULL) {
        run->ending.delay_ms = delay_ms;
    }
    return JZX_MF_RUN_SNOOZE;
}

jzx_mf_txn *jzx_mf_run_txn(jzx_mf_run *run)
{
    if (run == NULL) {
        return NULL;
    }
    if (run->txn == NULL && jzx_mf_begin(run->workers->mf, &run->txn) != JZX_OK) {
        run->txn = NULL;
    }
    return run->txn;
}
