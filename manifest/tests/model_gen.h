/* What happens next: random operations with few values each, so that they meet. */
#ifndef MODEL_GEN_H
#define MODEL_GEN_H

#include "model_op.h"

enum { QG_LEASES = 48, QG_REPAIR_KIND = 5, QG_RETENTION_MS = 4000 };

static jzt_rng qg_rng;
/* Few places, so that jobs stand in each other's way, and people who cancel those that wait. */
static bool qg_crowded;

/* Leases that were given out, also those that are over: a late worker may come back with any. */
static struct {
    jzx_mf_lease leases[QG_LEASES];
    uint32_t count, next;
} qg_hands;

static uint32_t qg_below(uint32_t bound)
{
    return (uint32_t)jzt_rng_below(&qg_rng, bound);
}

static bool qg_chance(uint32_t percent)
{
    return qg_below(100) < percent;
}

static uint32_t qg_any(const uint32_t *values, uint32_t count)
{
    return values[qg_below(count)];
}
#define QG_ANY(...)                                                                                \
    qg_any((const uint32_t[]){__VA_ARGS__},                                                        \
           (uint32_t)(sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)))

static void qg_take_hand(jzx_mf_lease lease)
{
    qg_hands.leases[qg_hands.next] = lease;
    qg_hands.next = (qg_hands.next + 1) % QG_LEASES;
    qg_hands.count += qg_hands.count < QG_LEASES;
}

/* Kinds 1 to 3 are for everybody, each with a policy it prefers; 4 is of schedules, 5 repairs. */
static void qg_place(qm_spec *spec)
{
    if (qg_crowded && qg_chance(85)) {
        spec->kind = (uint16_t)(1 + qg_below(2));
        spec->gate_class = (uint16_t)QG_ANY(0, 1, 1);
        spec->unique =
            (uint8_t)QG_ANY(JZX_MF_SINGLETON, JZX_MF_SINGLETON, JZX_MF_ANY, JZX_MF_STATELY);
        return;
    }
    spec->kind = (uint16_t)(1 + qg_below(3));
    spec->scope = qg_chance(60) ? JZX_MF_SCOPE_DB : JZX_MF_SCOPE_GLOBAL;
    spec->db = spec->scope == JZX_MF_SCOPE_DB ? 1 + qg_below(2) : 0;
    spec->key = (char)QG_ANY(0, 0, 'a');
    spec->gate_class = (uint16_t)(qg_chance(35) ? 1 + qg_below(2) : 0);
    static const uint8_t preferred[] = {JZX_MF_STATELY, JZX_MF_SHORT, JZX_MF_SINGLETON};
    spec->unique = (uint8_t)(qg_chance(70) ? preferred[spec->kind - 1u] : qg_below(6));
    if (qg_chance(25)) {
        spec->unique = (uint8_t)QG_ANY(0, JZX_MF_ANY);
    }
}

/* Whether a finished job may be gone at any moment, or is just not there. */
static bool qg_may_be_pruned(const qm *m, const qm_job *job)
{
    return qm_is_finished(job) && job->finished_ms + QG_RETENTION_MS / 2 <= m->now_ms;
}

/* A job that is surely there (state 0: in any), or rarely one that surely is not. */
static uint64_t qg_job(const qm *m, uint32_t state)
{
    uint64_t found = 1u << 30;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < m->job_count; i++) {
        const qm_job *job = &m->jobs[i];
        bool fits = state == 0 || job->state == state;
        if (fits && job->id < QM_UNSEEN && !qg_may_be_pruned(m, job) && qg_below(++seen) == 0) {
            found = job->id;
        }
    }
    return qg_chance(3) ? 1u << 30 : found;
}

static void qg_enqueue(const qm *m, qo_op *op)
{
    qm_spec *s = &op->spec;
    op->what = QO_ENQUEUE;
    qg_place(s);
    s->on_retry = (uint8_t)qg_below(3);
    s->on_parent = (uint8_t)qg_below(2);
    s->payload = qg_chance(60) ? 1 + qg_below(1000) : 0;
    if (qg_chance(30)) {
        s->delay_ms = QG_ANY(1, 20, 50, 150, 700);
    } else if (qg_chance(15)) {
        s->run_at_ms = m->now_ms - 30 + qg_below(100);
    }
    s->after_count = qg_chance(20) && m->job_count > 0 ? 1 + qg_below(QM_AFTER) : 0;
    for (uint32_t i = 0; i < s->after_count; i++) {
        s->after[i] = qg_job(m, 0);
    }
    s->priority = QG_ANY(0, 0, 1, 255);
    s->max_attempts = QG_ANY(0, 1, 2, 3, JZX_MF_NO_LIMIT);
    s->lease_ms = QG_ANY(0, 20, 60, 200);
    s->timeout_ms = QG_ANY(0, 0, 40, 150);
    s->backoff_min_ms = QG_ANY(0, 10, 40, 40);
    s->backoff_max_ms = QG_ANY(0, 100, 100);
    s->jitter_percent = QG_ANY(0, 50, JZX_MF_NO_JITTER, JZX_MF_NO_JITTER);
    s->flags = qg_crowded && qg_chance(50) ? JZX_MF_REPLACE
                                           : QG_ANY(0, 0, 0, JZX_MF_OR_ABORT, JZX_MF_REPLACE);
    s->flags = s->unique == 0 ? 0 : s->flags;
}

static void qg_claim(qo_op *op)
{
    op->what = QO_CLAIM;
    op->kinds = qg_chance(50) ? 0 : QG_ANY(2, 4, 6, 8, 14, 48, 62);
    op->max = 1 + qg_below(qg_chance(80) ? 3 : QM_CLAIMED);
    op->value = 1 + qg_below(3);
    op->ms = QG_ANY(0, 0, 30, 100);
}

/* A lease that holds, if there is one. */
static jzx_mf_lease qg_lease(const qm *m)
{
    jzx_mf_lease lease = qg_hands.leases[qg_below(qg_hands.count)];
    uint32_t seen = 0;
    for (uint32_t i = 0; i < m->job_count; i++) {
        const qm_job *job = &m->jobs[i];
        if (job->state == JZX_MF_JOB_ACTIVE && job->id < QM_UNSEEN && qg_below(++seen) == 0) {
            lease = (jzx_mf_lease){job->id, job->boot, job->attempt, 0};
        }
    }
    return lease;
}

/* What a worker does with a lease it has, or had. */
static void qg_work(const qm *m, qo_op *op)
{
    op->lease = qg_chance(70) ? qg_lease(m) : qg_hands.leases[qg_below(qg_hands.count)];
    if (qg_chance(4)) {
        op->lease.attempt += qg_chance(50) ? 1 : UINT32_MAX;
    } else if (qg_chance(2)) {
        op->lease.boot += qg_chance(50) ? 1 : UINT64_MAX;
    }
    op->value = 1 + qg_below(100);
    uint32_t dice = qg_below(100);
    if (dice < 35) {
        op->what = QO_HEARTBEAT;
        op->ms = QG_ANY(0, 10, 80);
    } else if (dice < 70) {
        op->what = QO_COMPLETE;
    } else {
        op->what = QO_FAIL;
        op->code = -5;
        op->flags = QG_ANY(0, 0, 0, JZX_MF_FAIL_NOW, JZX_MF_FAIL_FOR_GOOD, JZX_MF_FAIL_UNCOUNTED);
        op->delay_ms = QG_ANY(0, 0, 0, 25);
    }
}

static void qg_kind(qo_op *op)
{
    op->number = (uint16_t)(1 + qg_below(QM_KINDS - 1));
    if (qg_chance(40)) {
        op->what = QO_KIND_PAUSE;
        op->flags = qg_chance(40);
        return;
    }
    op->what = QO_KIND_PUT;
    op->kind = (qm_kind){.put = true, .limit = QG_ANY(0, 0, 1, 2), .key_limit = QG_ANY(0, 1, 2)};
    op->kind.orphan_kind = (uint16_t)QG_ANY(0, QG_REPAIR_KIND);
    op->kind.paused = qg_chance(10);
}

static void qg_cron(qo_op *op)
{
    op->number = (uint16_t)qg_below(QM_CRONS);
    if (qg_chance(20)) {
        op->what = QO_CRON_DEL;
        return;
    }
    op->what = QO_CRON_PUT;
    op->cron = (qm_cron){.put = true, .paused = qg_chance(15), .every_ms = QG_ANY(1000, 2000)};
    qm_spec *s = &op->cron.spec;
    qg_place(s);
    s->kind = qg_chance(80) ? 4 : s->kind;
    s->payload = 2000u + op->number;
    s->priority = QG_ANY(0, 1);
    s->max_attempts = QG_ANY(0, 1, 2);
}

static void qg_admin(const qm *m, qo_op *op)
{
    uint32_t dice = qg_below(100);
    op->id = qg_job(m, 0);
    if (dice < 40) {
        op->what = QO_CANCEL;
        op->id = qg_crowded && qg_chance(80) ? qg_job(m, JZX_MF_JOB_READY) : op->id;
    } else if (dice < 75) {
        op->what = QO_RETRY;
        op->id = qg_chance(85) ? qg_job(m, QG_ANY(JZX_MF_JOB_DEAD, JZX_MF_JOB_CANCELLED)) : op->id;
    } else if (dice < 90) {
        op->what = QO_DEL;
    } else {
        op->what = QO_PRUNE;
        op->max = QG_ANY(0, 1, 3);
    }
}

static void qg_op(const qm *m, qo_op *op)
{
    *op = (qo_op){0};
    uint32_t dice = qg_below(100);
    if (dice < 34 && m->job_count < QM_JOBS / 2) {
        qg_enqueue(m, op);
    } else if (dice < 56) {
        qg_claim(op);
    } else if (dice < 80) {
        op->what = QO_SYNC;
        if (qg_hands.count > 0) {
            qg_work(m, op);
        }
    } else if (dice < 89) {
        qg_admin(m, op);
    } else if (dice < 95) {
        qg_kind(op);
    } else if (dice < 98) {
        qg_cron(op);
    } else {
        op->what = QO_REFUSE;
    }
}

#endif
