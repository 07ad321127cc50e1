/* The plain table of model_queue.h, as it is administered and as time passes over it. */
#ifndef JZT_MODEL_QUEUE_TIME_H
#define JZT_MODEL_QUEUE_TIME_H

#include "model_queue.h"

/* Administration. */

static jzx_err qm_cancel(qm *m, uint64_t id)
{
    qm_job *job = qm_find(m, id);
    if (job == NULL) {
        return JZX_ERR_NOT_FOUND;
    }
    if (qm_is_finished(job)) {
        return JZX_ERR_WRONG_STATE;
    }
    if (job->state == JZX_MF_JOB_ACTIVE) {
        job->cancel = true;
    } else {
        qm_finish(m, job, JZX_MF_JOB_CANCELLED);
    }
    return JZX_OK;
}

static jzx_err qm_retry(qm *m, uint64_t id)
{
    qm_job *job = qm_find(m, id);
    if (job == NULL) {
        return JZX_ERR_NOT_FOUND;
    }
    if (job->state != JZX_MF_JOB_DEAD && job->state != JZX_MF_JOB_CANCELLED) {
        return JZX_ERR_WRONG_STATE;
    }
    if ((qm_wants_queued(job) && qm_in_queued(m, &job->spec) != NULL) ||
        (job->spec.unique == JZX_MF_EXCLUSIVE && qm_in_active(m, &job->spec) != NULL)) {
        return JZX_ERR_ALREADY;
    }
    job->cancel = false;
    job->finished_ms = 0;
    job->queued_slot = qm_wants_queued(job);
    job->run_at_lo = job->run_at_hi = m->now_ms;
    job->spent = job->attempt;
    if (job->max_attempts != JZX_MF_NO_LIMIT) {
        job->max_attempts =
            job->attempt + (job->spec.max_attempts == 0 ? 20 : job->spec.max_attempts);
    }
    if (job->parent_count > 0) {
        job->state = JZX_MF_JOB_WAITING;
    } else {
        qm_place(m, job);
    }
    return JZX_OK;
}

static void qm_forget(qm *m, qm_job *job)
{
    uint32_t index = (uint32_t)(job - m->jobs);
    m->job_count--;
    memmove(job, job + 1, (m->job_count - index) * sizeof *job);
}

static jzx_err qm_del(qm *m, uint64_t id)
{
    qm_job *job = qm_find(m, id);
    if (job == NULL) {
        return JZX_ERR_NOT_FOUND;
    }
    if (!qm_is_finished(job)) {
        return JZX_ERR_WRONG_STATE;
    }
    qm_forget(m, job);
    return JZX_OK;
}

/* Time. */

/* Nobody said how it ended: a job of the kind that its kind names goes first. */
static bool qm_repair(qm *m, qm_job *job)
{
    uint16_t repair = m->kinds[job->spec.kind].orphan_kind;
    if (repair == 0) {
        return false;
    }
    qm_spec spec = {.kind = repair,
                    .unique = JZX_MF_ANY,
                    .scope = job->spec.scope,
                    .db = job->spec.db,
                    .key = job->spec.key,
                    .priority = job->spec.priority};
    uint64_t orphan = job->id;
    qm_job *first = qm_add(m, QM_UNSEEN + m->unseen++, &spec);
    first->repairs = orphan;
    qm_place(m, first);
    job->state = JZX_MF_JOB_WAITING;
    job->parents[0] = first->id;
    job->parent_count = 1;
    return true;
}

static void qm_expire_one(qm *m, qm_job *job)
{
    bool timed_out = job->timeout_at_ms != 0 && job->timeout_at_ms <= m->lease_now_ms;
    job->error = timed_out ? "timed out" : "lease expired";
    job->error_code = 0;
    if (!qm_fails(m, job, 0)) {
        return;
    }
    qm_requeue(m, job, qm_backoff(m, job)); /* with its gate */
    if (!qm_is_finished(job)) {
        (void)qm_repair(m, job);
    }
}

/* The active job whose lease ends first, if it is over. */
static qm_job *qm_next_expired(qm *m)
{
    qm_job *first = NULL;
    for (uint32_t i = 0; i < m->job_count; i++) {
        qm_job *job = &m->jobs[i];
        if (job->state == JZX_MF_JOB_ACTIVE && job->lease_until_ms <= m->lease_now_ms &&
            (first == NULL || job->lease_until_ms < first->lease_until_ms ||
             (job->lease_until_ms == first->lease_until_ms && job->id < first->id))) {
            first = job;
        }
    }
    return first;
}

static void qm_fire(qm *m, qm_cron *cron)
{
    qm_answer answer = {0};
    uint64_t id = QM_UNSEEN + m->unseen++;
    (void)qm_enqueue(m, id, &cron->spec, &answer);
    cron->next_ms += cron->every_ms;
    if (cron->next_ms <= m->now_ms) {
        cron->next_ms = m->now_ms + cron->every_ms; /* one for all that were missed */
    }
}

/* A put again with the same schedule goes on as it was. */
static void qm_cron_put(qm *m, uint32_t number, const qm_cron *cron)
{
    qm_cron *entry = &m->crons[number];
    bool goes_on = entry->put && !entry->paused && entry->every_ms == cron->every_ms;
    uint64_t next_ms = goes_on ? entry->next_ms : m->now_ms + cron->every_ms;
    *entry = *cron;
    entry->spec.unique = cron->spec.unique == 0 ? JZX_MF_STATELY : cron->spec.unique;
    entry->next_ms = next_ms;
}

/* Everything that is due at this time, in the order in which the writer does it. */
static void qm_time(qm *m, uint64_t now_ms, uint64_t lease_now_ms)
{
    m->now_ms = now_ms;
    m->lease_now_ms = lease_now_ms;
    qm_job *job;
    while ((job = qm_next_expired(m)) != NULL) {
        qm_expire_one(m, job);
    }
    for (uint32_t i = 0; i < QM_CRONS; i++) {
        qm_cron *cron = &m->crons[i];
        if (cron->put && !cron->paused && cron->next_ms <= now_ms) {
            qm_fire(m, cron);
        }
    }
    for (uint32_t i = 0; i < m->job_count; i++) {
        if (m->jobs[i].state == JZX_MF_JOB_SCHEDULED) {
            qm_place(m, &m->jobs[i]);
        }
    }
}

typedef struct qm_recovery {
    bool crashed;
    uint64_t orphans, requeued, died, repairs;
} qm_recovery;

/* A process died with it, or closed while it was in hand. */
static void qm_orphan(qm *m, qm_job *job, qm_recovery *report)
{
    report->orphans++;
    job->error = report->crashed ? "the process died" : "the manifest was closed";
    job->error_code = 0;
    if (!qm_fails(m, job, 0)) {
        report->died += job->state == JZX_MF_JOB_DEAD;
        return;
    }
    qm_requeue(m, job, (qm_range){m->now_ms, m->now_ms});
    if (qm_is_finished(job)) {
        return;
    }
    report->requeued++;
    report->repairs += qm_repair(m, job);
}

/* The file was opened again. Leases are settled in the order in which they would have ended. */
static void qm_reopen(qm *m, uint64_t now_ms, qm_recovery *report)
{
    m->boot++;
    m->now_ms = m->lease_now_ms = now_ms;
    for (;;) {
        qm_job *first = NULL;
        for (uint32_t i = 0; i < m->job_count; i++) {
            qm_job *job = &m->jobs[i];
            if (job->state == JZX_MF_JOB_ACTIVE &&
                (first == NULL || job->lease_until_ms < first->lease_until_ms ||
                 (job->lease_until_ms == first->lease_until_ms && job->id < first->id))) {
                first = job;
            }
        }
        if (first == NULL) {
            break;
        }
        qm_orphan(m, first, report);
    }
    qm_time(m, now_ms, now_ms);
}

#endif
