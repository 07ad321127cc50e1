#include "bytes.h"
#include "queue_steps.h"

/* Everything but what it means for the jobs after it. */
static jzx_err end_alone(mfi_tx *tx, mfi_record *rec, uint8_t state)
{
    jzx_mf_job *job = &rec->job;
    uint8_t was = job->state;
    job->state = state;
    job->finished_ms = tx->now_ms;
    job->lease_until_ms = 0;
    job->timeout_at_ms = 0;
    job->blocked_on = jzx_mf_blob(NULL, 0);
    jzx_err err = mfi_record_save(tx, rec);
    if (err == JZX_OK && was == JZX_MF_JOB_ACTIVE) {
        err = mfi_job_release(tx, job);
    } else if (err == JZX_OK) {
        bool freed;
        err = mfi_slot_free(tx, job, MFI_SLOT_QUEUED, &freed);
    }
    if (err == JZX_OK) {
        err = mfi_gate_release(tx, job);
    }
    return err == JZX_OK && was == JZX_MF_JOB_READY ? mfi_job_pass_on(tx, job) : err;
}

jzx_err mfi_job_end(mfi_tx *tx, mfi_record *rec, uint8_t state)
{
    jzx_err err = end_alone(tx, rec, state);
    return err == JZX_OK ? mfi_job_settle(tx, rec->job.id, state == JZX_MF_JOB_DONE) : err;
}

/* The job of this row of the dependencies; the row is gone afterwards. */
static jzx_err take_dependency(mfi_tx *tx, uint64_t parent, uint64_t *out_child)
{
    jzx_mf_key from = mfi_key_dependency(parent, 0);
    jzx_mf_key row;
    jzx_err err = mfi_seek(&tx->view, &from, 8, &row, NULL);
    if (err != JZX_OK) {
        return err;
    }
    *out_child = mfi_key_tail_id(row.bytes, row.len);
    return mfi_del(tx, &row);
}

static jzx_err one_less(mfi_tx *tx, mfi_record *rec, void *arg)
{
    (void)arg;
    if (rec->job.after_left == 0) {
        return JZX_ERR_CORRUPT;
    }
    rec->job.after_left--;
    return mfi_record_save(tx, rec);
}

/* Jobs that come after `child` come after `parent` now: a cascade of any depth needs no memory, and
 * every dependency is looked at twice at most. */
static jzx_err adopt(mfi_tx *tx, uint64_t parent, uint64_t child)
{
    uint64_t grandchild;
    jzx_err err;
    while ((err = take_dependency(tx, child, &grandchild)) == JZX_OK) {
        jzx_mf_key row = mfi_key_dependency(parent, grandchild);
        err = mfi_find(&tx->view, &row);
        if (err == JZX_OK) {
            err = mfi_record_of_row(tx, grandchild, one_less, NULL);
        } else if (err == JZX_ERR_NOT_FOUND) {
            err = mfi_put_empty(tx, &row);
        }
        if (err != JZX_OK) {
            return err;
        }
    }
    return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
}

typedef struct settling {
    uint64_t parent;
    bool done;
} settling;

static jzx_err settle_child(mfi_tx *tx, mfi_record *rec, void *arg)
{
    const settling *s = arg;
    jzx_mf_job *job = &rec->job;
    if (job->state != JZX_MF_JOB_WAITING) { /* the job ended before those it waited for */
        return one_less(tx, rec, NULL);
    }
    if (!s->done && job->on_parent == JZX_MF_PARENT_CANCELS) {
        job->after_left--;
        jzx_err err = end_alone(tx, rec, JZX_MF_JOB_CANCELLED);
        return err == JZX_OK ? adopt(tx, s->parent, job->id) : err;
    }
    if (job->after_left == 1) {
        job->state = mfi_job_due_state(tx, job);
    }
    return one_less(tx, rec, NULL);
}

jzx_err mfi_job_settle(mfi_tx *tx, uint64_t parent, bool done)
{
    settling s = {parent, done};
    uint64_t child;
    jzx_err err;
    while ((err = take_dependency(tx, parent, &child)) == JZX_OK) {
        err = mfi_record_of_row(tx, child, settle_child, &s);
        if (err != JZX_OK) {
            return err;
        }
    }
    return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
}

/* Bits that look random but are the same every time: a test, and a replay, see the same delays. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

uint64_t mfi_backoff_ms(const jzx_mf_job *job)
{
    uint64_t backoff = job->backoff_min_ms;
    uint32_t counted = job->attempt - job->spent; /* in this life, without snoozes */
    for (uint32_t i = 1; i < counted && backoff < job->backoff_max_ms; i++) {
        backoff *= 2;
    }
    if (backoff > job->backoff_max_ms) {
        backoff = job->backoff_max_ms;
    }
    uint64_t spread = backoff * job->jitter_percent / 100;
    return backoff - spread + mix(job->id << 20 ^ job->attempt) % (2 * spread + 1);
}

static jzx_err supersede(mfi_tx *tx, mfi_record *rec, void *arg)
{
    (void)arg;
    return mfi_job_end(tx, rec, JZX_MF_JOB_SUPERSEDED);
}

/* A place in the queue for an active job. When another job has it, on_retry decides; *out_ended: in
 * favour of the other. */
static jzx_err take_place(mfi_tx *tx, mfi_record *rec, bool *out_ended)
{
    *out_ended = false;
    if (!mfi_job_wants_slot(&rec->job, MFI_SLOT_QUEUED)) {
        return JZX_OK;
    }
    uint64_t other;
    jzx_err err = mfi_slot_holder(&tx->view, &rec->job, MFI_SLOT_QUEUED, &other);
    if (err == JZX_OK && other != 0) {
        switch (rec->job.on_retry) {
        case JZX_MF_COALESCE:
            *out_ended = true;
            return mfi_job_end(tx, rec, JZX_MF_JOB_SUPERSEDED);
        case JZX_MF_KEEP_OLD:
            err = mfi_record_of_row(tx, other, supersede, NULL);
            break;
        default:
            return JZX_OK;
        }
    }
    return err == JZX_OK ? mfi_slot_take(tx, &rec->job, MFI_SLOT_QUEUED) : err;
}

/* What a process that died left half done is looked at by another job first. */
static jzx_err enqueue_repair(mfi_tx *tx, mfi_record *rec, uint16_t kind)
{
    jzx_mf_job *job = &rec->job;
    uint8_t orphan[8];
    mfi_put_be64(orphan, job->id);
    jzx_mf_job_spec spec = {.kind = kind,
                            .scope = job->scope,
                            .db = job->db,
                            .key = job->key,
                            .unique = JZX_MF_ANY,
                            .priority = job->priority,
                            .payload = jzx_mf_blob(orphan, sizeof orphan)};
    jzx_mf_slot slot;
    jzx_err err = mfi_job_enqueue(tx, mfi_new_job(tx), &spec, &slot);
    if (err != JZX_OK) {
        return err;
    }
    job->state = JZX_MF_JOB_WAITING;
    job->after_left = 1;
    jzx_mf_key row = mfi_key_dependency(slot.id, job->id);
    return mfi_put_empty(tx, &row);
}

static jzx_err go_back(mfi_tx *tx, mfi_record *rec, const mfi_lapse *lapse)
{
    jzx_mf_job *job = &rec->job;
    job->run_at_ms = lapse->run_at_ms;
    job->state = mfi_job_due_state(tx, job);
    job->lease_until_ms = 0;
    job->timeout_at_ms = 0;
    jzx_err err = JZX_OK;
    if (lapse->repair_kind != 0) {
        err = enqueue_repair(tx, rec, lapse->repair_kind);
    }
    if (err == JZX_OK) {
        err = mfi_record_save(tx, rec);
    }
    if (err == JZX_OK) {
        err = mfi_job_release(tx, job);
    }
    return err == JZX_OK && !lapse->keep_gate ? mfi_gate_release(tx, job) : err;
}

jzx_err mfi_job_lapse(mfi_tx *tx, mfi_record *rec, const mfi_lapse *lapse)
{
    jzx_mf_job *job = &rec->job;
    job->error = lapse->text;
    job->error_code = lapse->code;
    job->error_ms = tx->now_ms;
    if (job->cancel) {
        return mfi_job_end(tx, rec, JZX_MF_JOB_CANCELLED);
    }
    bool used_up = job->max_attempts != JZX_MF_NO_LIMIT && job->attempt >= job->max_attempts;
    if (lapse->for_good || used_up) {
        return mfi_job_end(tx, rec, JZX_MF_JOB_DEAD);
    }
    bool ended;
    jzx_err err = take_place(tx, rec, &ended);
    return err != JZX_OK || ended ? err : go_back(tx, rec, lapse);
}

typedef struct parents {
    jzx_mf_key row;
    uint64_t child;
} parents;

/* AGAIN: found one. */
static jzx_err find_parent(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    (void)value;
    parents *p = arg;
    if (key.len != 16 || mfi_key_tail_id(key.data, key.len) != p->child) {
        return JZX_OK;
    }
    p->row = mfi_key_dependency(mfi_get_be64(key.data), p->child);
    return JZX_ERR_AGAIN;
}

/* A job that ended while it waited still has dependency rows. These are by parent, so this looks at
 * all; few jobs outlive their retention before those they wait for have ended. */
jzx_err mfi_job_forget(mfi_tx *tx, mfi_record *rec)
{
    parents p = {mfi_key_first(JZX_MF_TABLE_DEPENDENCY), rec->job.id};
    for (; rec->job.after_left > 0; rec->job.after_left--) {
        jzx_err err = mfi_walk(&tx->view, &p.row, 0, find_parent, &p);
        if (err == JZX_OK) {
            return JZX_ERR_CORRUPT; /* fewer rows than after_left says */
        }
        if (err == JZX_ERR_AGAIN) {
            err = mfi_del(tx, &p.row);
        }
        if (err != JZX_OK) {
            return err;
        }
    }
    return mfi_record_drop(tx, rec);
}
