#include "bytes.h"
#include "queue_steps.h"

/* What time does to the queue. Every index of a time begins with it, so its first row says when
 * there is something to do. */

/* Calls fn for the jobs of an index whose time has come, first ones first; fn must take them out of
 * it. `skip`: how many bytes come before the time, which stay the same. */
static jzx_err each_due(mfi_tx *tx, const jzx_mf_key *from, uint32_t skip, uint64_t now_ms,
                        uint32_t max, mfi_record_fn fn, uint32_t *out_count)
{
    *out_count = 0;
    while (*out_count < max) {
        jzx_mf_key row;
        jzx_err err = mfi_seek(&tx->view, from, skip, &row, NULL);
        if (err == JZX_ERR_NOT_FOUND ||
            (err == JZX_OK && mfi_get_be64(row.bytes + skip) > now_ms)) {
            return JZX_OK;
        }
        if (err == JZX_OK) {
            err = mfi_record_of_row(tx, mfi_key_tail_id(row.bytes, row.len), fn, NULL);
        }
        if (err != JZX_OK) {
            return err;
        }
        ++*out_count;
    }
    return JZX_OK;
}

static jzx_err promote(mfi_tx *tx, mfi_record *rec, void *arg)
{
    (void)arg;
    rec->job.state = JZX_MF_JOB_READY;
    return mfi_record_save(tx, rec);
}

jzx_err mfi_queue_promote(mfi_tx *tx, uint32_t max, uint32_t *out_count)
{
    jzx_mf_key from = mfi_key_first(JZX_MF_TABLE_SCHEDULED);
    return each_due(tx, &from, 0, tx->now_ms, max, promote, out_count);
}

/* A lease ended without a word of its holder: what was left half done is looked at first, by a job
 * of the kind that its kind names. The holder may still be at work, so the gate stays closed to all
 * but the next attempt. */
static jzx_err lapse_unheard(mfi_tx *tx, mfi_record *rec, const char *text, uint64_t run_at_ms)
{
    jzx_mf_kind rules;
    jzx_err err = mfi_kind_rules(&tx->view, rec->job.kind, &rules);
    if (err != JZX_OK) {
        return err;
    }
    mfi_lapse lapse = {.text = jzx_mf_text(text),
                       .run_at_ms = run_at_ms,
                       .repair_kind = rules.orphan_kind,
                       .keep_gate = true};
    return mfi_job_lapse(tx, rec, &lapse);
}

static jzx_err expire(mfi_tx *tx, mfi_record *rec, void *arg)
{
    (void)arg;
    const jzx_mf_job *job = &rec->job;
    bool timed_out = job->timeout_at_ms != 0 && job->timeout_at_ms <= tx->lease_ms;
    return lapse_unheard(tx, rec, timed_out ? "timed out" : "lease expired",
                         mfi_sum_ms(tx->now_ms, mfi_backoff_ms(job)));
}

jzx_err mfi_queue_expire(mfi_tx *tx, uint32_t max, uint32_t *out_count)
{
    jzx_mf_key from = mfi_key_first(JZX_MF_TABLE_LEASE);
    return each_due(tx, &from, 0, tx->lease_ms, max, expire, out_count);
}

/* How the boot of an orphan's lease ended. Only that of the last one is known: leases of one before
 * are left by a recovery that was itself interrupted. */
static const char *how_it_ended(const mfi_tx *tx, const jzx_mf_job *job, const mfi_orphans *orphans)
{
    if (job->boot + 1 != tx->boot) {
        return "left by an earlier run of the manifest";
    }
    return orphans->closed ? "the manifest was closed" : "the process died";
}

static jzx_err settle_orphan(mfi_tx *tx, mfi_record *rec, void *arg)
{
    mfi_orphans *out = arg;
    jzx_mf_job *job = &rec->job;
    if (job->boot == tx->boot) {
        return JZX_OK;
    }
    jzx_err err = lapse_unheard(tx, rec, how_it_ended(tx, job, out), tx->now_ms);
    out->found++;
    out->requeued += mfi_job_is_queued(job);
    out->died += job->state == JZX_MF_JOB_DEAD;
    out->repairs += job->state == JZX_MF_JOB_WAITING;
    return err;
}

jzx_err mfi_queue_orphans(mfi_tx *tx, uint32_t max, mfi_orphans *out, uint32_t *out_count)
{
    uint64_t before = out->found;
    jzx_mf_key at = mfi_key_first(JZX_MF_TABLE_LEASE);
    jzx_err err = JZX_OK;
    while (err == JZX_OK && out->found - before < max) {
        err = mfi_seek(&tx->view, &at, 0, &at, NULL);
        if (err == JZX_OK) {
            err = mfi_record_of_row(tx, mfi_key_tail_id(at.bytes, at.len), settle_orphan, out);
            at = mfi_key_after(&at);
        }
    }
    *out_count = (uint32_t)(out->found - before);
    return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
}

/* How long jobs that ended so are kept. */
static uint64_t kept_ms(const jzx_mf_retention *retention, uint8_t state)
{
    switch (state) {
    case JZX_MF_JOB_DONE:
        return retention->done_ms;
    case JZX_MF_JOB_DEAD:
        return retention->dead_ms;
    default:
        return retention->cancelled_ms;
    }
}

static jzx_err prune(mfi_tx *tx, mfi_record *rec, void *arg)
{
    (void)arg;
    return mfi_job_forget(tx, rec);
}

jzx_err mfi_queue_prune(mfi_tx *tx, uint32_t max, uint32_t *out_count)
{
    uint32_t total = 0;
    jzx_err err = JZX_OK;
    for (uint8_t state = JZX_MF_JOB_DONE; err == JZX_OK && state <= JZX_MF_JOB_SUPERSEDED;
         state++) {
        uint64_t kept = kept_ms(&tx->retention, state);
        if (kept == JZX_MF_KEEP_FOREVER || kept > tx->now_ms) {
            continue;
        }
        jzx_mf_key from = mfi_key_finished(state, 0, 0);
        uint32_t count;
        err = each_due(tx, &from, 1, tx->now_ms - kept, max - total, prune, &count);
        total += count;
    }
    *out_count = total;
    return err;
}

/* The time that the first row at `from` begins with; UINT64_MAX: there is none. */
static jzx_err first_time(const mfi_view *view, const jzx_mf_key *from, uint32_t skip,
                          uint64_t *out_ms)
{
    jzx_mf_key row;
    jzx_err err = mfi_seek(view, from, skip, &row, NULL);
    *out_ms = err == JZX_OK ? mfi_get_be64(row.bytes + skip) : UINT64_MAX;
    return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
}

static jzx_err next_prune(const mfi_view *view, const jzx_mf_retention *retention, uint64_t *out_ms)
{
    *out_ms = UINT64_MAX;
    for (uint32_t state = JZX_MF_JOB_DONE; state <= JZX_MF_JOB_SUPERSEDED; state++) {
        jzx_mf_key from = mfi_key_finished((uint8_t)state, 0, 0);
        uint64_t first;
        jzx_err err = first_time(view, &from, 1, &first);
        if (err != JZX_OK) {
            return err;
        }
        uint64_t due = mfi_sum_ms(first, kept_ms(retention, (uint8_t)state));
        *out_ms = due < *out_ms ? due : *out_ms;
    }
    return JZX_OK;
}

jzx_err mfi_queue_next(const mfi_view *view, const jzx_mf_retention *retention,
                       uint64_t *out_scheduled_ms, uint64_t *out_lease_ms, uint64_t *out_cron_ms,
                       uint64_t *out_prune_ms)
{
    jzx_mf_key scheduled = mfi_key_first(JZX_MF_TABLE_SCHEDULED);
    jzx_err err = first_time(view, &scheduled, 0, out_scheduled_ms);
    jzx_mf_key lease = mfi_key_first(JZX_MF_TABLE_LEASE);
    if (err == JZX_OK) {
        err = first_time(view, &lease, 0, out_lease_ms);
    }
    if (err == JZX_OK) {
        err = mfi_cron_next(view, out_cron_ms);
    }
    return err == JZX_OK ? next_prune(view, retention, out_prune_ms) : err;
}
