/* The queue: Q1 to Q6 of queue.h. */
#include "audit_steps.h"
#include "bytes.h"
#include "key.h"

#include <string.h>

static bool is_queued(const jzx_mf_job *job)
{
    return job->state >= JZX_MF_JOB_WAITING && job->state <= JZX_MF_JOB_BLOCKED;
}

static bool is_finished(const jzx_mf_job *job)
{
    return job->state >= JZX_MF_JOB_DONE && job->state <= JZX_MF_JOB_SUPERSEDED;
}

/* For sentences. */
static unsigned long long audit_job_id_of(const jzx_mf_job *job)
{
    return (unsigned long long)job->id;
}

static const char *state_of(const jzx_mf_job *job)
{
    return jzx_mf_job_state_name(job->state);
}

static jzx_err get_job(const mfi_check *check, uint64_t id, jzx_mf_job *out)
{
    jzx_mf_key key = jzx_mf_key_job(id);
    jzx_mf_span value;
    jzx_err err = mfi_get(check->view, &key, &value);
    if (err == JZX_OK) {
        err = mfi_decode_job(value, out, NULL);
    }
    if (err == JZX_OK) {
        out->id = id;
    }
    return err;
}

/* The job that a row names; false: it is not there, which is told of, or does not decode, which is
 * told of elsewhere. */
static bool named_job(mfi_check *check, uint32_t table, jzx_mf_span key, uint64_t id,
                      jzx_mf_job *out)
{
    jzx_err err = get_job(check, id, out);
    if (err == JZX_ERR_NOT_FOUND) {
        mfi_check_problem(check, "%s names job %llu, which is not there",
                          mfi_check_key_text(table, key).text, (unsigned long long)id);
    }
    return err == JZX_OK;
}

/* The row of the index that a job's state asks for (Q1); false: none. */
static bool index_key(const jzx_mf_job *job, jzx_mf_key *out)
{
    switch (job->state) {
    case JZX_MF_JOB_SCHEDULED:
        *out = mfi_key_scheduled(job->run_at_ms, job->id);
        return true;
    case JZX_MF_JOB_READY:
        *out = mfi_key_ready(job);
        return true;
    case JZX_MF_JOB_BLOCKED:
        *out = mfi_key_blocked(job->blocked_on, job);
        return true;
    case JZX_MF_JOB_ACTIVE:
        *out = mfi_key_lease(job->lease_until_ms, job->id);
        return true;
    case JZX_MF_JOB_WAITING:
        return false;
    default:
        *out = mfi_key_finished(job->state, job->finished_ms, job->id);
        return true;
    }
}

static bool has_limit(const mfi_check *check, uint16_t number)
{
    jzx_mf_key key = jzx_mf_key_kind(number);
    jzx_mf_span value;
    jzx_mf_kind kind;
    return mfi_get(check->view, &key, &value) == JZX_OK &&
           mfi_decode_kind(value, &kind, NULL) == JZX_OK &&
           (kind.limit != 0 || kind.key_limit != 0);
}

/* Whether its policy gives the job a slot while it is queued, or while it is active. A retry that
 * found the place taken may go on without one (JZX_MF_BOTH). */
static bool wants_slot(const jzx_mf_job *job, uint8_t slot)
{
    if (slot == MFI_SLOT_ACTIVE) {
        return job->unique == JZX_MF_STATELY || job->unique == JZX_MF_SINGLETON ||
               job->unique == JZX_MF_EXCLUSIVE;
    }
    if (job->on_retry == JZX_MF_BOTH && job->attempt > 0) {
        return false;
    }
    return job->unique == JZX_MF_STATELY || job->unique == JZX_MF_SHORT ||
           job->unique == JZX_MF_EXCLUSIVE;
}

static void check_slot(mfi_check *check, const jzx_mf_job *job, uint8_t slot)
{
    jzx_mf_key key = mfi_key_unique(job, slot);
    uint64_t holder = 0;
    jzx_err err = mfi_get_id(check->view, &key, &holder);
    const char *name = slot == MFI_SLOT_QUEUED ? "queued" : "active";
    if (err == JZX_ERR_NOT_FOUND) {
        mfi_check_problem(check, "job %llu is %s but nobody has its %s slot in unique",
                          audit_job_id_of(job), state_of(job), name);
    } else if (err == JZX_OK && holder != job->id) {
        mfi_check_problem(check, "job %llu is %s but job %llu has its %s slot in unique",
                          audit_job_id_of(job), state_of(job), (unsigned long long)holder, name);
    }
}

static void check_held_gate(mfi_check *check, const jzx_mf_job *job)
{
    jzx_mf_key key = jzx_mf_key_gate(job->db, job->gate_class);
    jzx_mf_span value;
    jzx_mf_gate gate;
    if (mfi_get(check->view, &key, &value) != JZX_OK) {
        mfi_check_problem(check, "job %llu is active but does not hold its gate (class %u)",
                          audit_job_id_of(job), job->gate_class);
        return;
    }
    if (mfi_decode_gate(value, &gate, NULL) != JZX_OK) {
        return;
    }
    if (gate.job_id != job->id) {
        mfi_check_problem(check, "job %llu is active but its gate (class %u) is held by job %llu",
                          audit_job_id_of(job), job->gate_class, (unsigned long long)gate.job_id);
    } else if (gate.attempt != job->attempt) {
        mfi_check_problem(check, "job %llu is in attempt %u but holds its gate for attempt %u",
                          audit_job_id_of(job), job->attempt, gate.attempt);
    }
}

static void check_active(mfi_check *check, const jzx_mf_job *job)
{
    if (wants_slot(job, MFI_SLOT_ACTIVE)) {
        check_slot(check, job, MFI_SLOT_ACTIVE);
    }
    if (job->gate_class != 0) {
        check_held_gate(check, job);
    }
    jzx_mf_key row = mfi_key_active(job);
    if (has_limit(check, job->kind) && mfi_find(check->view, &row) == JZX_ERR_NOT_FOUND) {
        mfi_check_problem(check,
                          "job %llu is active and kind %u has a limit, but it has no row in "
                          "active",
                          audit_job_id_of(job), job->kind);
    }
    if (job->attempt == 0 || job->attempt > job->max_attempts) {
        mfi_check_problem(check, "job %llu is active in attempt %u of %u", audit_job_id_of(job),
                          job->attempt, job->max_attempts);
    }
}

static void check_queued(mfi_check *check, const jzx_mf_job *job)
{
    if (wants_slot(job, MFI_SLOT_QUEUED)) {
        check_slot(check, job, MFI_SLOT_QUEUED);
    }
    if (job->attempt >= job->max_attempts) {
        mfi_check_problem(check, "job %llu is %s but has used up %u of %u attempts",
                          audit_job_id_of(job), state_of(job), job->attempt, job->max_attempts);
    }
    bool waiting = job->state == JZX_MF_JOB_WAITING;
    if (waiting && job->after_left == 0) {
        mfi_check_problem(check, "job %llu is waiting for no other job", audit_job_id_of(job));
    } else if (!waiting && job->after_left != 0) {
        mfi_check_problem(check, "job %llu is %s but %u jobs must end first", audit_job_id_of(job),
                          state_of(job), job->after_left);
    }
}

static bool same_resource(jzx_mf_span a, const mfi_resource *b)
{
    return a.len == b->len && memcmp(a.data, b->bytes, a.len) == 0;
}

static void check_blocked_on(mfi_check *check, const jzx_mf_job *job)
{
    mfi_resource slot = mfi_resource_unique(job);
    mfi_resource limit = mfi_resource_key_limit(job);
    mfi_resource gate = mfi_resource_gate(job);
    if (!same_resource(job->blocked_on, &slot) && !same_resource(job->blocked_on, &limit) &&
        !(job->gate_class != 0 && same_resource(job->blocked_on, &gate))) {
        mfi_check_problem(check, "job %llu is blocked on something that is not its own",
                          audit_job_id_of(job));
    }
}

/* Numbers that have no meaning make everything else about a job meaningless. */
static bool check_job_numbers(mfi_check *check, const jzx_mf_job *job)
{
    if (!is_queued(job) && !is_finished(job) && job->state != JZX_MF_JOB_ACTIVE) {
        mfi_check_problem(check, "job %llu is in state %u, which there is not",
                          audit_job_id_of(job), job->state);
        return false;
    }
    if (job->kind == 0 || job->scope > JZX_MF_SCOPE_DB || job->unique > JZX_MF_STATELY ||
        job->on_retry > JZX_MF_BOTH || job->on_parent > JZX_MF_PARENT_IGNORED ||
        job->key.len > JZX_MF_KEY_MAX || job->blocked_on.len > sizeof((mfi_resource){0}.bytes)) {
        mfi_check_problem(check, "job %llu has a kind, scope, policy or key that cannot be",
                          audit_job_id_of(job));
        return false;
    }
    return true;
}

/* Q6: nothing was given out that the counters do not know of. */
static void check_counters(mfi_check *check, const jzx_mf_job *job)
{
    if (job->id == 0 || job->id >= check->meta.job_ids) {
        mfi_check_problem(check, "job %llu is not below the next id, %llu", audit_job_id_of(job),
                          (unsigned long long)check->meta.job_ids);
    }
    if (job->boot > check->meta.boot || (job->attempt > 0 && job->boot == 0)) {
        mfi_check_problem(check, "job %llu was claimed in boot %llu, but the last one is %llu",
                          audit_job_id_of(job), (unsigned long long)job->boot,
                          (unsigned long long)check->meta.boot);
    }
}

void mfi_check_job(mfi_check *check, jzx_mf_span key, jzx_mf_span value)
{
    jzx_mf_job job;
    if (mfi_decode_job(value, &job, NULL) != JZX_OK) {
        return;
    }
    job.id = mfi_get_be64(key.data);
    job.unique = mfi_stored_policy(job.unique);
    check_counters(check, &job);
    if (!check_job_numbers(check, &job)) {
        return;
    }
    jzx_mf_key row;
    if (index_key(&job, &row) && mfi_find(check->view, &row) == JZX_ERR_NOT_FOUND) {
        mfi_check_problem(check, "job %llu is %s but has no row in %s", audit_job_id_of(&job),
                          state_of(&job), jzx_mf_table_name(row.table));
    }
    if (job.state == JZX_MF_JOB_BLOCKED) {
        check_blocked_on(check, &job);
    }
    if (is_queued(&job)) {
        check_queued(check, &job);
    } else if (job.state == JZX_MF_JOB_ACTIVE) {
        check_active(check, &job);
    }
}

void mfi_check_unique(mfi_check *check, jzx_mf_span key, jzx_mf_span value)
{
    jzx_mf_job job;
    if (!named_job(check, JZX_MF_TABLE_UNIQUE, key, mfi_get_be64(value.data), &job)) {
        return;
    }
    uint8_t slot = ((const uint8_t *)key.data)[11];
    jzx_mf_key expected = mfi_key_unique(&job, slot);
    bool in_place = slot == MFI_SLOT_QUEUED ? is_queued(&job) : job.state == JZX_MF_JOB_ACTIVE;
    if (!mfi_check_key_is(&expected, key)) {
        mfi_check_problem(check, "%s names job %llu, which has another scope, kind or key",
                          mfi_check_key_text(JZX_MF_TABLE_UNIQUE, key).text, audit_job_id_of(&job));
    } else if (!in_place) {
        mfi_check_problem(check, "%s names job %llu, which is %s",
                          mfi_check_key_text(JZX_MF_TABLE_UNIQUE, key).text, audit_job_id_of(&job),
                          state_of(&job));
    }
}

void mfi_check_index(mfi_check *check, uint32_t table, jzx_mf_span key)
{
    jzx_mf_job job;
    if (!named_job(check, table, key, mfi_key_tail_id(key.data, key.len), &job)) {
        return;
    }
    jzx_mf_key expected = {.table = JZX_MF_TABLES};
    if (table != JZX_MF_TABLE_ACTIVE) {
        (void)index_key(&job, &expected);
    } else if (job.state == JZX_MF_JOB_ACTIVE) {
        expected = mfi_key_active(&job);
    }
    if (expected.table != table) {
        mfi_check_problem(check, "%s names job %llu, which is %s",
                          mfi_check_key_text(table, key).text, audit_job_id_of(&job),
                          state_of(&job));
    } else if (!mfi_check_key_is(&expected, key)) {
        mfi_check_problem(check, "%s is not where job %llu belongs",
                          mfi_check_key_text(table, key).text, audit_job_id_of(&job));
    } else if (table == JZX_MF_TABLE_ACTIVE && !has_limit(check, job.kind)) {
        mfi_check_problem(check, "%s is there but kind %u has no limit",
                          mfi_check_key_text(table, key).text, job.kind);
    }
}

void mfi_check_dependency(mfi_check *check, jzx_mf_span key, jzx_mf_span value)
{
    (void)value;
    jzx_mf_job parent;
    jzx_mf_job child;
    mfi_key_text text = mfi_check_key_text(JZX_MF_TABLE_DEPENDENCY, key);
    if (named_job(check, JZX_MF_TABLE_DEPENDENCY, key, mfi_get_be64(key.data), &parent) &&
        is_finished(&parent)) {
        mfi_check_problem(check, "%s is left though job %llu is %s", text.text,
                          audit_job_id_of(&parent), state_of(&parent));
    }
    if (named_job(check, JZX_MF_TABLE_DEPENDENCY, key, mfi_key_tail_id(key.data, key.len),
                  &child) &&
        child.after_left == 0) {
        mfi_check_problem(check, "%s is there but job %llu waits for nobody", text.text,
                          audit_job_id_of(&child));
    }
}

void mfi_check_gate(mfi_check *check, jzx_mf_span key, jzx_mf_span value)
{
    jzx_mf_gate gate;
    jzx_mf_job job;
    if (mfi_decode_gate(value, &gate, NULL) != JZX_OK ||
        !named_job(check, JZX_MF_TABLE_GATE, key, gate.job_id, &job)) {
        return;
    }
    mfi_key_text text = mfi_check_key_text(JZX_MF_TABLE_GATE, key);
    jzx_mf_key expected = jzx_mf_key_gate(job.db, job.gate_class);
    if (!mfi_check_key_is(&expected, key)) {
        mfi_check_problem(check, "%s is held by job %llu, which has another gate", text.text,
                          audit_job_id_of(&job));
    } else if (is_finished(&job)) {
        mfi_check_problem(check, "%s is held by job %llu, which is %s", text.text,
                          audit_job_id_of(&job), state_of(&job));
    } else if (gate.attempt > job.attempt) {
        mfi_check_problem(check, "%s is held for attempt %u of job %llu, which had %u", text.text,
                          gate.attempt, audit_job_id_of(&job), job.attempt);
    }
}
