#include "queue_steps.h"

#include <string.h>

#define ATTEMPTS 20u
#define LEASE_MS 30000u
#define BACKOFF_MIN_MS 1000u
#define BACKOFF_MAX_MS 3600000u
#define JITTER_PERCENT 10u

static jzx_err check_span(jzx_mf_span span, size_t most)
{
    if (span.len > most) {
        return JZX_ERR_TOO_BIG;
    }
    return span.data == NULL && span.len > 0 ? JZX_ERR_INVALID_ARG : JZX_OK;
}

/* An enqueue that asks for nothing makes a job. */
static uint8_t policy_of(const jzx_mf_job_spec *spec)
{
    return spec->unique == 0 ? JZX_MF_ANY : spec->unique;
}

static bool numbers_are_fine(const jzx_mf_job_spec *spec)
{
    bool choices = spec->kind != 0 && spec->scope <= JZX_MF_SCOPE_DB &&
                   spec->unique <= JZX_MF_STATELY && spec->on_retry <= JZX_MF_BOTH &&
                   spec->on_parent <= JZX_MF_PARENT_IGNORED &&
                   (spec->flags & ~(JZX_MF_OR_ABORT | JZX_MF_REPLACE)) == 0;
    /* A spec that wants to meet a job has to say which ones are the same. */
    choices = choices && (spec->flags == 0 || spec->unique != 0);
    bool ranges = spec->priority <= UINT8_MAX && spec->after_count <= JZX_MF_AFTER_MAX &&
                  (spec->jitter_percent <= 100 || spec->jitter_percent == JZX_MF_NO_JITTER);
    return choices && ranges && (spec->scope == JZX_MF_SCOPE_DB || spec->db == 0) &&
           (spec->after != NULL || spec->after_count == 0);
}

jzx_err mfi_job_check(const jzx_mf_job_spec *spec)
{
    if (!numbers_are_fine(spec)) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = check_span(spec->key, JZX_MF_KEY_MAX);
    return err == JZX_OK ? check_span(spec->payload, JZX_MF_PAYLOAD_MAX) : err;
}

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

static uint64_t run_at_of(const mfi_tx *tx, const jzx_mf_job_spec *spec)
{
    if (spec->delay_ms != 0) {
        return mfi_sum_ms(tx->now_ms, spec->delay_ms);
    }
    return spec->run_at_ms != 0 ? spec->run_at_ms : tx->now_ms;
}

static jzx_mf_job job_of(const mfi_tx *tx, uint64_t id, const jzx_mf_job_spec *spec)
{
    jzx_mf_job job = {.id = id,
                      .db = spec->db,
                      .created_ms = tx->now_ms,
                      .run_at_ms = run_at_of(tx, spec),
                      .max_attempts = or_default(spec->max_attempts, ATTEMPTS),
                      .lease_ms = or_default(spec->lease_ms, LEASE_MS),
                      .timeout_ms = spec->timeout_ms,
                      .backoff_min_ms = or_default(spec->backoff_min_ms, BACKOFF_MIN_MS),
                      .backoff_max_ms = or_default(spec->backoff_max_ms, BACKOFF_MAX_MS),
                      .jitter_percent = or_default(spec->jitter_percent, JITTER_PERCENT),
                      .flags = spec->flags,
                      .kind = spec->kind,
                      .gate_class = spec->gate_class,
                      .scope = spec->scope,
                      .unique = policy_of(spec),
                      .on_retry = spec->on_retry,
                      .on_parent = spec->on_parent,
                      .priority = (uint8_t)spec->priority,
                      .key = spec->key,
                      .payload = spec->payload};
    if (spec->jitter_percent == JZX_MF_NO_JITTER) {
        job.jitter_percent = 0;
    }
    return job;
}

/* What the jobs that must end first make of a new one. */
typedef struct family {
    uint64_t parents[JZX_MF_AFTER_MAX]; /* that have not ended, each once */
    uint32_t count;
    bool cancelled;
    uint8_t on_parent;
} family;

static bool has_parent(const family *f, uint64_t id)
{
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->parents[i] == id) {
            return true;
        }
    }
    return false;
}

static jzx_err look_at_parent(mfi_tx *tx, mfi_record *rec, void *arg)
{
    (void)tx;
    family *f = arg;
    if (rec->job.state < JZX_MF_JOB_DONE) {
        f->parents[f->count++] = rec->job.id;
    } else if (rec->job.state != JZX_MF_JOB_DONE && f->on_parent == JZX_MF_PARENT_CANCELS) {
        f->cancelled = true;
    }
    return JZX_OK;
}

static jzx_err look_at_family(mfi_tx *tx, const jzx_mf_job_spec *spec, family *f)
{
    f->count = 0;
    f->cancelled = false;
    f->on_parent = spec->on_parent;
    for (uint32_t i = 0; i < spec->after_count; i++) {
        if (has_parent(f, spec->after[i])) {
            continue;
        }
        jzx_err err = mfi_record_with(tx, spec->after[i], look_at_parent, f);
        if (err != JZX_OK) {
            return err;
        }
    }
    return JZX_OK;
}

static jzx_err store_new(mfi_tx *tx, mfi_record *rec, const family *f)
{
    jzx_mf_job *job = &rec->job;
    jzx_err err = JZX_OK;
    if (f->cancelled) { /* too late for it: it is only there to be seen */
        job->state = JZX_MF_JOB_CANCELLED;
        job->finished_ms = tx->now_ms;
        return mfi_record_save(tx, rec);
    }
    for (uint32_t i = 0; err == JZX_OK && i < f->count; i++) {
        jzx_mf_key row = mfi_key_dependency(f->parents[i], job->id);
        err = mfi_put_empty(tx, &row);
    }
    job->after_left = f->count;
    job->state = f->count > 0 ? JZX_MF_JOB_WAITING : mfi_job_due_state(tx, job);
    if (err == JZX_OK && mfi_job_wants_slot(job, MFI_SLOT_QUEUED)) {
        err = mfi_slot_take(tx, job, MFI_SLOT_QUEUED);
    }
    return err == JZX_OK ? mfi_record_save(tx, rec) : err;
}

static jzx_err add_new(mfi_tx *tx, uint64_t id, const jzx_mf_job_spec *spec)
{
    family f;
    jzx_err err = look_at_family(tx, spec, &f);
    if (err != JZX_OK) {
        return err;
    }
    mfi_record rec;
    rec.job = job_of(tx, id, spec);
    rec.rest = (mfi_rest){0};
    rec.row = mfi_key_first(JZX_MF_TABLE_JOB);
    if (tx->meta.job_ids <= id) {
        tx->meta.job_ids = id + 1;
    }
    return store_new(tx, &rec, &f);
}

typedef struct replacing {
    const jzx_mf_job_spec *spec;
    bool done;
} replacing;

static jzx_err replace(mfi_tx *tx, mfi_record *rec, void *arg)
{
    replacing *r = arg;
    jzx_mf_job *job = &rec->job;
    uint8_t was = job->state;
    if (was == JZX_MF_JOB_WAITING) {
        return JZX_OK;
    }
    r->done = true;
    job->payload = r->spec->payload;
    job->run_at_ms = run_at_of(tx, r->spec);
    job->priority = (uint8_t)r->spec->priority;
    job->state = mfi_job_due_state(tx, job);
    job->blocked_on = jzx_mf_blob(NULL, 0);
    jzx_err err = mfi_record_save(tx, rec);
    /* The job may be less urgent now than one that was put aside. */
    return err == JZX_OK && was == JZX_MF_JOB_READY ? mfi_job_pass_on(tx, job) : err;
}

/* There is a job in the way. */
static jzx_err meet(mfi_tx *tx, const jzx_mf_job_spec *spec, jzx_mf_slot *slot)
{
    if ((spec->flags & JZX_MF_REPLACE) && slot->outcome == JZX_MF_EXISTS_QUEUED) {
        replacing r = {spec, false};
        jzx_err err = mfi_record_of_row(tx, slot->id, replace, &r);
        if (err != JZX_OK || r.done) {
            slot->outcome = JZX_MF_REPLACED;
            return err;
        }
    }
    return spec->flags & JZX_MF_OR_ABORT ? JZX_ERR_ALREADY : JZX_OK;
}

/* slot->id 0: no job is in the way. */
static jzx_err find_other(mfi_tx *tx, const jzx_mf_job_spec *spec, jzx_mf_slot *slot)
{
    jzx_mf_job like = {.kind = spec->kind,
                       .scope = spec->scope,
                       .unique = policy_of(spec),
                       .db = spec->db,
                       .key = spec->key};
    jzx_err err = JZX_OK;
    if (mfi_job_wants_slot(&like, MFI_SLOT_QUEUED)) {
        slot->outcome = JZX_MF_EXISTS_QUEUED;
        err = mfi_slot_holder(&tx->view, &like, MFI_SLOT_QUEUED, &slot->id);
    }
    if (err == JZX_OK && slot->id == 0 && like.unique == JZX_MF_EXCLUSIVE) {
        slot->outcome = JZX_MF_EXISTS_ACTIVE;
        err = mfi_slot_holder(&tx->view, &like, MFI_SLOT_ACTIVE, &slot->id);
    }
    return err;
}

jzx_err mfi_job_enqueue(mfi_tx *tx, uint64_t id, const jzx_mf_job_spec *spec, jzx_mf_slot *slot)
{
    if (id == 0) { /* in a slot 0 means no job */
        return JZX_ERR_INVALID_ARG;
    }
    *slot = (jzx_mf_slot){0};
    jzx_err err = find_other(tx, spec, slot);
    if (err != JZX_OK) {
        return err;
    }
    if (slot->id != 0) {
        return meet(tx, spec, slot);
    }
    slot->id = id;
    slot->outcome = JZX_MF_NEW;
    return add_new(tx, id, spec);
}
