/* The job queue as a plain table: what each operation must answer and leave behind.
 *
 * No indexes, no slots stored apart, no order but that of ids: everything is found by looking at
 * all jobs. READY and BLOCKED are one state here (READY): whether a job is blocked is asked when it
 * is claimed, so a wake-up that the library loses shows as a claim that misses a job.
 *
 * What the library decides by itself within bounds (jitter, the id of a job that a schedule makes)
 * is open here until it was seen; see model_check.h. */
#ifndef MODEL_QUEUE_H
#define MODEL_QUEUE_H

#include <jzx/manifest.h>

#include <stdbool.h>
#include <string.h>

enum { QM_JOBS = 192, QM_AFTER = 3, QM_KINDS = 6, QM_GATES = 16, QM_CRONS = 2, QM_CLAIMED = 8 };

/* Ids of jobs that the library made by itself, until they are seen. */
#define QM_UNSEEN (UINT64_MAX - 1000)

/* What a spec says, with small values that are easily compared. */
typedef struct qm_spec {
    uint16_t kind, gate_class;
    uint8_t scope, unique, on_retry, on_parent;
    uint64_t db;
    char key;         /* 0: none */
    uint32_t payload; /* 4 bytes; 0: none */
    uint64_t run_at_ms, delay_ms;
    uint64_t after[QM_AFTER];
    uint32_t after_count;
    uint32_t priority, max_attempts, lease_ms, timeout_ms, backoff_min_ms, backoff_max_ms;
    uint32_t jitter_percent, flags;
} qm_spec;

typedef struct qm_job {
    uint64_t id;
    qm_spec spec;
    uint8_t state;
    bool cancel;
    bool queued_slot, active_slot; /* is named there */
    uint32_t attempt, max_attempts;
    uint32_t spent; /* of both: in earlier lives, or uncounted */
    uint64_t run_at_lo, run_at_hi;
    uint64_t created_ms, finished_ms;
    uint64_t boot, worker, lease_until_ms, timeout_at_ms;
    uint64_t parents[QM_AFTER]; /* that have not ended */
    uint32_t parent_count;
    uint64_t repairs; /* not 0: made for this job, whose lease lapsed */
    uint32_t progress, result;
    int32_t error_code;
    const char *error; /* NULL: none */
} qm_job;

typedef struct qm_kind {
    uint32_t limit, key_limit;
    uint16_t orphan_kind;
    bool paused, put;
} qm_kind;

typedef struct qm_gate {
    uint64_t db, job; /* job 0: nobody */
    uint32_t attempt;
    uint16_t gate_class;
} qm_gate;

typedef struct qm_cron {
    bool put, paused;
    qm_spec spec; /* of its jobs */
    uint64_t every_ms;
    uint64_t next_ms;
} qm_cron;

typedef struct qm {
    uint64_t now_ms, lease_now_ms, boot;
    uint64_t unseen; /* jobs so far that the library made by itself */
    qm_job jobs[QM_JOBS];
    uint32_t job_count;
    qm_kind kinds[QM_KINDS]; /* by number; 0 is not used */
    qm_gate gates[QM_GATES];
    qm_cron crons[QM_CRONS];
} qm;

static qm_job *qm_find(qm *m, uint64_t id)
{
    for (uint32_t i = 0; i < m->job_count; i++) {
        if (m->jobs[i].id == id) {
            return &m->jobs[i];
        }
    }
    return NULL;
}

static bool qm_is_finished(const qm_job *job)
{
    return job->state >= JZX_MF_JOB_DONE;
}

static bool qm_wants_queued(const qm_job *job)
{
    uint8_t u = job->spec.unique;
    return u == JZX_MF_STATELY || u == JZX_MF_SHORT || u == JZX_MF_EXCLUSIVE;
}

static bool qm_wants_active(const qm_job *job)
{
    uint8_t u = job->spec.unique;
    return u == JZX_MF_STATELY || u == JZX_MF_SINGLETON || u == JZX_MF_EXCLUSIVE;
}

static bool qm_same(const qm_spec *a, const qm_spec *b)
{
    return a->scope == b->scope && a->db == b->db && a->kind == b->kind && a->key == b->key;
}

/* Who is named in a slot of (scope, db, kind, key). */
static qm_job *qm_in_queued(qm *m, const qm_spec *spec)
{
    for (uint32_t i = 0; i < m->job_count; i++) {
        if (m->jobs[i].queued_slot && qm_same(&m->jobs[i].spec, spec)) {
            return &m->jobs[i];
        }
    }
    return NULL;
}

static qm_job *qm_in_active(qm *m, const qm_spec *spec)
{
    for (uint32_t i = 0; i < m->job_count; i++) {
        if (m->jobs[i].active_slot && qm_same(&m->jobs[i].spec, spec)) {
            return &m->jobs[i];
        }
    }
    return NULL;
}

static qm_gate *qm_gate_of(qm *m, const qm_spec *spec)
{
    qm_gate *unused = NULL;
    for (uint32_t i = 0; i < QM_GATES; i++) {
        qm_gate *gate = &m->gates[i];
        if (gate->job != 0 && gate->db == spec->db && gate->gate_class == spec->gate_class) {
            return gate;
        }
        unused = gate->job == 0 ? gate : unused;
    }
    *unused = (qm_gate){.db = spec->db, .gate_class = spec->gate_class};
    return unused;
}

static void qm_leave_gate(qm *m, const qm_job *job)
{
    for (uint32_t i = 0; i < QM_GATES; i++) {
        if (m->gates[i].job == job->id) {
            m->gates[i].job = 0;
        }
    }
}

/* Its time has come, or has not. */
static void qm_place(const qm *m, qm_job *job)
{
    job->state = job->run_at_lo > m->now_ms ? JZX_MF_JOB_SCHEDULED : JZX_MF_JOB_READY;
}

static void qm_finish(qm *m, qm_job *job, uint8_t state);

/* What the end of a job means to one that comes after it. */
static void qm_parent_ended(qm *m, qm_job *child, const qm_job *parent)
{
    for (uint32_t i = 0; i < child->parent_count; i++) {
        if (child->parents[i] != parent->id) {
            continue;
        }
        child->parents[i] = child->parents[--child->parent_count];
        if (child->state != JZX_MF_JOB_WAITING) {
            return; /* it ended before those it waited for; a retry waits for the rest of them */
        }
        if (parent->state != JZX_MF_JOB_DONE && child->spec.on_parent == JZX_MF_PARENT_CANCELS) {
            qm_finish(m, child, JZX_MF_JOB_CANCELLED);
        } else if (child->parent_count == 0) {
            qm_place(m, child);
        }
        return;
    }
}

static void qm_finish(qm *m, qm_job *job, uint8_t state)
{
    job->state = state;
    job->finished_ms = m->now_ms;
    job->queued_slot = job->active_slot = false;
    qm_leave_gate(m, job);
    for (uint32_t i = 0; i < m->job_count; i++) {
        qm_parent_ended(m, &m->jobs[i], job);
    }
}

static qm_job *qm_add(qm *m, uint64_t id, const qm_spec *spec)
{
    qm_job *job = &m->jobs[m->job_count++];
    *job = (qm_job){.id = id, .spec = *spec, .created_ms = m->now_ms};
    job->spec.unique = spec->unique == 0 ? JZX_MF_ANY : spec->unique;
    job->max_attempts = spec->max_attempts == 0 ? 20 : spec->max_attempts;
    job->run_at_lo = spec->delay_ms != 0    ? m->now_ms + spec->delay_ms
                     : spec->run_at_ms != 0 ? spec->run_at_ms
                                            : m->now_ms;
    job->run_at_hi = job->run_at_lo;
    job->queued_slot = qm_wants_queued(job);
    return job;
}

typedef struct qm_answer {
    jzx_err err;
    uint64_t id;
    uint32_t outcome;
    uint32_t claimed;
    uint64_t ids[QM_CLAIMED];
} qm_answer;

static jzx_err qm_enqueue_replace(qm *m, qm_job *there, const qm_spec *spec, qm_answer *answer)
{
    answer->id = there->id;
    answer->outcome = JZX_MF_EXISTS_QUEUED;
    if ((spec->flags & JZX_MF_OR_ABORT) != 0) {
        return JZX_ERR_ALREADY;
    }
    if ((spec->flags & JZX_MF_REPLACE) != 0 && there->state != JZX_MF_JOB_WAITING) {
        qm_job fresh = {.spec = *spec};
        there->spec.payload = fresh.spec.payload;
        there->spec.priority = spec->priority;
        there->run_at_lo = there->run_at_hi = spec->delay_ms != 0    ? m->now_ms + spec->delay_ms
                                              : spec->run_at_ms != 0 ? spec->run_at_ms
                                                                     : m->now_ms;
        qm_place(m, there);
        answer->outcome = JZX_MF_REPLACED;
    }
    return JZX_OK;
}

static jzx_err qm_enqueue(qm *m, uint64_t id, const qm_spec *spec, qm_answer *answer)
{
    qm_job probe = {.spec = *spec};
    qm_job *there = qm_wants_queued(&probe) ? qm_in_queued(m, spec) : NULL;
    if (there != NULL) {
        return qm_enqueue_replace(m, there, spec, answer);
    }
    there = spec->unique == JZX_MF_EXCLUSIVE ? qm_in_active(m, spec) : NULL;
    if (there != NULL) {
        answer->id = there->id;
        answer->outcome = JZX_MF_EXISTS_ACTIVE;
        return (spec->flags & JZX_MF_OR_ABORT) != 0 ? JZX_ERR_ALREADY : JZX_OK;
    }
    for (uint32_t i = 0; i < spec->after_count; i++) {
        if (qm_find(m, spec->after[i]) == NULL) {
            return JZX_ERR_NOT_FOUND;
        }
    }
    qm_job *job = qm_add(m, id, spec);
    answer->id = id;
    answer->outcome = JZX_MF_NEW;
    bool cancelled = false;
    for (uint32_t i = 0; i < spec->after_count; i++) {
        qm_job *parent = qm_find(m, spec->after[i]);
        if (!qm_is_finished(parent)) {
            bool twice = false;
            for (uint32_t k = 0; k < job->parent_count; k++) {
                twice = twice || job->parents[k] == parent->id;
            }
            if (!twice) {
                job->parents[job->parent_count++] = parent->id;
            }
        } else if (parent->state != JZX_MF_JOB_DONE && spec->on_parent == JZX_MF_PARENT_CANCELS) {
            cancelled = true;
        }
    }
    if (cancelled) {
        job->parent_count = 0;
        qm_finish(m, job, JZX_MF_JOB_CANCELLED);
    } else if (job->parent_count > 0) {
        job->state = JZX_MF_JOB_WAITING;
    } else {
        qm_place(m, job);
    }
    return JZX_OK;
}

/* Claims. */

static uint32_t qm_active_of_kind(const qm *m, uint16_t kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->job_count; i++) {
        count += m->jobs[i].state == JZX_MF_JOB_ACTIVE && m->jobs[i].spec.kind == kind;
    }
    return count;
}

static uint32_t qm_active_with_key(const qm *m, const qm_spec *spec)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->job_count; i++) {
        count += m->jobs[i].state == JZX_MF_JOB_ACTIVE && qm_same(&m->jobs[i].spec, spec);
    }
    return count;
}

static bool qm_kind_open(const qm *m, uint16_t kind)
{
    const qm_kind *k = &m->kinds[kind];
    return !k->paused && (k->limit == 0 || qm_active_of_kind(m, kind) < k->limit);
}

static bool qm_may_run(qm *m, const qm_job *job)
{
    if (job->state != JZX_MF_JOB_READY || !qm_kind_open(m, job->spec.kind)) {
        return false;
    }
    if (qm_wants_active(job) && qm_in_active(m, &job->spec) != NULL) {
        return false;
    }
    uint32_t key_limit = m->kinds[job->spec.kind].key_limit;
    if (key_limit != 0 && qm_active_with_key(m, &job->spec) >= key_limit) {
        return false;
    }
    uint64_t holder = job->spec.gate_class == 0 ? 0 : qm_gate_of(m, &job->spec)->job;
    return holder == 0 || holder == job->id;
}

static bool qm_before(const qm_job *a, const qm_job *b)
{
    if (a->spec.priority != b->spec.priority) {
        return a->spec.priority > b->spec.priority;
    }
    return a->run_at_lo != b->run_at_lo ? a->run_at_lo < b->run_at_lo : a->id < b->id;
}

/* kinds: a bit per kind; 0: all. */
static qm_job *qm_best(qm *m, uint32_t kinds)
{
    qm_job *best = NULL;
    for (uint32_t i = 0; i < m->job_count; i++) {
        qm_job *job = &m->jobs[i];
        bool asked = kinds == 0 || (kinds >> job->spec.kind & 1u) != 0;
        if (asked && qm_may_run(m, job) && (best == NULL || qm_before(job, best))) {
            best = job;
        }
    }
    return best;
}

static void qm_start(qm *m, qm_job *job, uint64_t worker, uint32_t lease_ms)
{
    job->state = JZX_MF_JOB_ACTIVE;
    job->attempt++;
    job->boot = m->boot;
    job->worker = worker;
    job->queued_slot = false;
    job->active_slot = qm_wants_active(job);
    job->timeout_at_ms = job->spec.timeout_ms == 0 ? 0 : m->lease_now_ms + job->spec.timeout_ms;
    uint32_t lease = lease_ms != 0 ? lease_ms : job->spec.lease_ms;
    job->lease_until_ms = m->lease_now_ms + (lease != 0 ? lease : 30000);
    if (job->timeout_at_ms != 0 && job->timeout_at_ms < job->lease_until_ms) {
        job->lease_until_ms = job->timeout_at_ms;
    }
    if (job->spec.gate_class != 0) {
        qm_gate *gate = qm_gate_of(m, &job->spec);
        gate->job = job->id;
        gate->attempt = job->attempt;
    }
}

static jzx_err qm_claim(qm *m, uint32_t kinds, uint32_t max, uint64_t worker, uint32_t lease_ms,
                        qm_answer *answer)
{
    qm_job *job;
    while (answer->claimed < max && (job = qm_best(m, kinds)) != NULL) {
        qm_start(m, job, worker, lease_ms);
        answer->ids[answer->claimed++] = job->id;
    }
    answer->outcome = answer->claimed;
    return JZX_OK;
}

/* Leases. */

static qm_job *qm_holder(qm *m, const jzx_mf_lease *lease)
{
    qm_job *job = qm_find(m, lease->job_id);
    bool holds = job != NULL && job->state == JZX_MF_JOB_ACTIVE && job->attempt == lease->attempt &&
                 job->boot == lease->boot;
    return holds ? job : NULL;
}

static jzx_err qm_heartbeat(qm *m, const jzx_mf_lease *lease, uint32_t extend_ms, uint32_t progress,
                            qm_answer *answer)
{
    qm_job *job = qm_holder(m, lease);
    if (job == NULL) {
        return JZX_ERR_FENCED;
    }
    uint32_t extend = extend_ms != 0            ? extend_ms
                      : job->spec.lease_ms != 0 ? job->spec.lease_ms
                                                : 30000;
    job->lease_until_ms = m->lease_now_ms + extend;
    if (job->timeout_at_ms != 0 && job->timeout_at_ms < job->lease_until_ms) {
        job->lease_until_ms = job->timeout_at_ms;
    }
    job->progress = progress;
    answer->outcome =
        job->cancel || (job->timeout_at_ms != 0 && job->timeout_at_ms <= m->lease_now_ms);
    return JZX_OK;
}

static jzx_err qm_complete(qm *m, const jzx_mf_lease *lease, uint32_t result)
{
    qm_job *job = qm_holder(m, lease);
    if (job == NULL) {
        return JZX_ERR_FENCED;
    }
    job->result = result;
    qm_finish(m, job, JZX_MF_JOB_DONE);
    return JZX_OK;
}

/* A time that is not known better. */
typedef struct qm_range {
    uint64_t lo, hi;
} qm_range;

/* From ACTIVE to the queue; its place there may be taken. */
static void qm_requeue(qm *m, qm_job *job, qm_range run_at)
{
    job->active_slot = false;
    qm_job *there = qm_wants_queued(job) ? qm_in_queued(m, &job->spec) : NULL;
    if (there != NULL && job->spec.on_retry == JZX_MF_COALESCE) {
        qm_finish(m, job, JZX_MF_JOB_SUPERSEDED);
        return;
    }
    if (there != NULL && job->spec.on_retry == JZX_MF_KEEP_OLD) {
        qm_finish(m, there, JZX_MF_JOB_SUPERSEDED);
        there = NULL;
    }
    job->queued_slot = qm_wants_queued(job) && there == NULL;
    job->run_at_lo = run_at.lo;
    job->run_at_hi = run_at.hi;
    qm_place(m, job);
}

static qm_range qm_backoff(const qm *m, const qm_job *job)
{
    uint64_t least = job->spec.backoff_min_ms == 0 ? 1000 : job->spec.backoff_min_ms;
    uint64_t most = job->spec.backoff_max_ms == 0 ? 3600000 : job->spec.backoff_max_ms;
    uint64_t wait = least;
    for (uint32_t i = 1; i < job->attempt - job->spent && wait < most; i++) {
        wait *= 2;
    }
    wait = wait < most ? wait : most;
    uint64_t percent = job->spec.jitter_percent == JZX_MF_NO_JITTER ? 0
                       : job->spec.jitter_percent == 0              ? 10
                                                                    : job->spec.jitter_percent;
    uint64_t jitter = wait * percent / 100;
    return (qm_range){m->now_ms + wait - jitter, m->now_ms + wait + jitter};
}

/* Ends an attempt that did not succeed; true: there will be another. */
static bool qm_fails(qm *m, qm_job *job, uint32_t flags)
{
    if ((flags & JZX_MF_FAIL_UNCOUNTED) != 0) {
        job->max_attempts += job->max_attempts != JZX_MF_NO_LIMIT ? 1 : 0;
        job->spent++;
    }
    if (job->cancel) {
        qm_finish(m, job, JZX_MF_JOB_CANCELLED);
        return false;
    }
    if ((flags & JZX_MF_FAIL_FOR_GOOD) != 0 || job->attempt >= job->max_attempts) {
        qm_finish(m, job, JZX_MF_JOB_DEAD);
        return false;
    }
    return true;
}

static jzx_err qm_fail(qm *m, const jzx_mf_lease *lease, int32_t code, uint32_t flags,
                       uint64_t delay_ms)
{
    qm_job *job = qm_holder(m, lease);
    if (job == NULL) {
        return JZX_ERR_FENCED;
    }
    job->error_code = code;
    job->error = "it failed";
    if (!qm_fails(m, job, flags)) {
        return JZX_OK;
    }
    qm_leave_gate(m, job);
    qm_range run_at = qm_backoff(m, job);
    if ((flags & JZX_MF_FAIL_NOW) != 0) {
        run_at = (qm_range){m->now_ms, m->now_ms};
    } else if (delay_ms != 0) {
        run_at = (qm_range){m->now_ms + delay_ms, m->now_ms + delay_ms};
    }
    qm_requeue(m, job, run_at);
    return JZX_OK;
}

#endif
