/* The whole state, as a snapshot shows it, against the model; and what the library chose within
 * bounds is taken over into the model. */
#ifndef MODEL_CHECK_H
#define MODEL_CHECK_H

#include "model_gen.h"

#include <inttypes.h>

/* Everything a snapshot shows of the queue. Its spans live as long as the snapshot. */
typedef struct qc_world {
    jzx_mf_job jobs[QM_JOBS];
    uint32_t job_count;
    qm_gate gates[QM_GATES];
    uint32_t gate_count;
    qm_kind kinds[QM_KINDS];
    jzx_mf_cron crons[QM_CRONS];
    bool cron_there[QM_CRONS];
} qc_world;

/* The first thing that is wrong. */
static struct {
    char text[400];
    bool bad;
} qc_verdict;

#define QC_WANT(cond, ...)                                                                         \
    do {                                                                                           \
        if (!(cond) && !qc_verdict.bad) {                                                          \
            qc_verdict.bad = true;                                                                 \
            (void)snprintf(qc_verdict.text, sizeof qc_verdict.text, __VA_ARGS__);                  \
        }                                                                                          \
    } while (0)

static jzx_err qc_see_job(void *arg, const jzx_mf_job *job)
{
    qc_world *w = arg;
    if (w->job_count == QM_JOBS) {
        return JZX_ERR_TOO_BIG;
    }
    w->jobs[w->job_count++] = *job;
    return JZX_OK;
}

static jzx_err qc_see_gate(void *arg, uint64_t db, uint16_t gate_class, const jzx_mf_gate *gate)
{
    qc_world *w = arg;
    if (w->gate_count == QM_GATES) {
        return JZX_ERR_TOO_BIG;
    }
    w->gates[w->gate_count++] = (qm_gate){
        .db = db, .job = gate->job_id, .attempt = gate->attempt, .gate_class = gate_class};
    return JZX_OK;
}

static jzx_err qc_see_kind(void *arg, uint16_t kind, const jzx_mf_kind *record)
{
    qc_world *w = arg;
    if (kind >= QM_KINDS) {
        return JZX_ERR_TOO_BIG;
    }
    w->kinds[kind] = (qm_kind){.limit = record->limit,
                               .key_limit = record->key_limit,
                               .orphan_kind = record->orphan_kind,
                               .paused = record->paused != 0,
                               .put = true};
    return JZX_OK;
}

static jzx_err qc_see_cron(void *arg, const jzx_mf_cron *record)
{
    qc_world *w = arg;
    uint32_t i = record->name.len == strlen(qo_cron_name(0)) ? 0 : 1;
    w->crons[i] = *record;
    w->cron_there[i] = true;
    return JZX_OK;
}

static jzx_err qc_look(jzx_mf_snap *snap, qc_world *w)
{
    *w = (qc_world){0};
    jzx_err err = jzx_mf_job_each(snap, 0, qc_see_job, w);
    err = err != JZX_OK ? err : jzx_mf_gate_each(snap, qc_see_gate, w);
    err = err != JZX_OK ? err : jzx_mf_kind_each(snap, qc_see_kind, w);
    return err != JZX_OK ? err : jzx_mf_cron_each(snap, qc_see_cron, w);
}

static bool qc_is_number(jzx_mf_span span, uint32_t value)
{
    uint32_t got = 0;
    if (span.len != 0 && span.len != sizeof got) {
        return false;
    }
    if (span.len != 0) {
        memcpy(&got, span.data, sizeof got);
    }
    return got == value;
}

static bool qc_is_text(jzx_mf_span span, const char *text)
{
    return span.len == strlen(text) && memcmp(span.data, text, span.len) == 0;
}

/* A job that the library made by itself gets the name it has there. */
static void qc_name(qm *m, uint64_t unseen, uint64_t id)
{
    for (uint32_t i = 0; i < m->job_count; i++) {
        qm_job *job = &m->jobs[i];
        job->id = job->id == unseen ? id : job->id;
        for (uint32_t k = 0; k < job->parent_count; k++) {
            job->parents[k] = job->parents[k] == unseen ? id : job->parents[k];
        }
    }
    for (uint32_t i = 0; i < QM_GATES; i++) {
        m->gates[i].job = m->gates[i].job == unseen ? id : m->gates[i].job;
    }
}

/* The first such job of this kind that has no name yet: ids grow in the order of making. */
static qm_job *qc_unseen(qm *m, uint16_t kind)
{
    for (uint32_t i = 0; i < m->job_count; i++) {
        if (m->jobs[i].id >= QM_UNSEEN && m->jobs[i].spec.kind == kind) {
            return &m->jobs[i];
        }
    }
    return NULL;
}

static qm_job *qc_match(qm *m, uint64_t id, uint16_t kind)
{
    qm_job *job = qm_find(m, id);
    if (job == NULL && (job = qc_unseen(m, kind)) != NULL) {
        qc_name(m, job->id, id);
    }
    return job;
}

static void qc_run_at(qm_job *want, const jzx_mf_job *got)
{
    QC_WANT(got->run_at_ms >= want->run_at_lo && got->run_at_ms <= want->run_at_hi,
            "job %" PRIu64 ": run_at %" PRIu64 ", not in %" PRIu64 "..%" PRIu64, got->id,
            got->run_at_ms, want->run_at_lo, want->run_at_hi);
    want->run_at_lo = want->run_at_hi = got->run_at_ms;
}

#define QC_SAME(field, value)                                                                      \
    QC_WANT((got->field) == (value), "job %" PRIu64 ": " #field " is %" PRIu64 ", not %" PRIu64,   \
            got->id, (uint64_t)got->field, (uint64_t)(value))

static void qc_place(const qm_job *want, const jzx_mf_job *got)
{
    const qm_spec *s = &want->spec;
    QC_SAME(kind, s->kind);
    QC_SAME(scope, s->scope);
    QC_SAME(db, s->db);
    QC_SAME(gate_class, s->gate_class);
    QC_WANT(got->key.len == (s->key != 0) &&
                (s->key == 0 || *(const char *)got->key.data == s->key),
            "job %" PRIu64 ": another key", got->id);
    if (want->repairs == 0) {
        QC_WANT(qc_is_number(got->payload, s->payload), "job %" PRIu64 ": another payload",
                got->id);
    }
    QC_SAME(unique, s->unique);
    QC_SAME(on_retry, s->on_retry);
    QC_SAME(on_parent, s->on_parent);
    QC_SAME(priority, s->priority);
    QC_SAME(timeout_ms, s->timeout_ms);
}

static void qc_repair(const qm_job *want, const jzx_mf_job *got)
{
    uint8_t orphan[8];
    for (int i = 0; i < 8; i++) {
        orphan[i] = (uint8_t)(want->repairs >> (56 - 8 * i));
    }
    QC_WANT(got->payload.len == 8 && memcmp(got->payload.data, orphan, 8) == 0,
            "job %" PRIu64 ": does not name the orphan %" PRIu64, got->id, want->repairs);
}

static void qc_lease(const qm_job *want, const jzx_mf_job *got)
{
    QC_SAME(boot, want->boot);
    QC_SAME(worker, want->worker);
    QC_SAME(lease_until_ms, want->lease_until_ms);
    QC_SAME(timeout_at_ms, want->timeout_at_ms);
    QC_SAME(progress_done, want->progress);
}

static void qc_job(const qm *m, qm_job *want, const jzx_mf_job *got)
{
    bool is_open = want->run_at_lo != want->run_at_hi;
    qc_run_at(want, got);
    if (is_open && (want->state == JZX_MF_JOB_READY || want->state == JZX_MF_JOB_SCHEDULED)) {
        qm_place(m, want); /* its time is known only now */
    }
    uint8_t state = got->state == JZX_MF_JOB_BLOCKED ? JZX_MF_JOB_READY : got->state;
    QC_WANT(state == want->state, "job %" PRIu64 ": is %s, not %s", got->id,
            jzx_mf_job_state_name(got->state), jzx_mf_job_state_name(want->state));
    qc_place(want, got);
    if (want->repairs != 0) {
        qc_repair(want, got);
    }
    QC_SAME(attempt, want->attempt);
    QC_SAME(max_attempts, want->max_attempts);
    QC_SAME(spent, want->spent);
    QC_SAME(created_ms, want->created_ms);
    QC_SAME(cancel, want->cancel);
    QC_SAME(after_left, want->parent_count);
    if (want->state == JZX_MF_JOB_ACTIVE) {
        qc_lease(want, got);
    }
    if (qm_is_finished(want)) {
        QC_SAME(finished_ms, want->finished_ms);
    }
    if (want->state == JZX_MF_JOB_DONE) {
        QC_WANT(qc_is_number(got->result, want->result), "job %" PRIu64 ": another result",
                got->id);
    }
    if (want->error != NULL) {
        QC_SAME(error_code, want->error_code);
        QC_WANT(qc_is_text(got->error, want->error), "job %" PRIu64 ": its error is '%.*s', not %s",
                got->id, (int)got->error.len, (const char *)got->error.data, want->error);
    }
    QC_WANT((got->state == JZX_MF_JOB_BLOCKED) == (got->blocked_on.len != 0),
            "job %" PRIu64 ": %s, yet blocked_on has %zu bytes", got->id,
            jzx_mf_job_state_name(got->state), got->blocked_on.len);
}

static bool qc_expired(const qm *m, const qm_job *job)
{
    return qm_is_finished(job) && job->finished_ms + QG_RETENTION_MS <= m->now_ms;
}

static void qc_jobs(qm *m, const qc_world *w)
{
    bool there[QM_JOBS] = {false};
    for (uint32_t i = 0; i < w->job_count; i++) {
        qm_job *want = qc_match(m, w->jobs[i].id, w->jobs[i].kind);
        QC_WANT(want != NULL, "job %" PRIu64 " (%s) should not be there", w->jobs[i].id,
                jzx_mf_job_state_name(w->jobs[i].state));
        if (want != NULL) {
            there[want - m->jobs] = true;
            qc_job(m, want, &w->jobs[i]);
        }
    }
    for (uint32_t i = m->job_count; i-- > 0;) {
        qm_job *job = &m->jobs[i];
        if (!there[i]) {
            QC_WANT(qc_expired(m, job), "job %" PRIu64 " (%s) is lost", job->id,
                    jzx_mf_job_state_name(job->state));
            qm_forget(m, job);
        }
    }
}

static void qc_gates(qm *m, const qc_world *w)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < QM_GATES; i++) {
        held += m->gates[i].job != 0;
    }
    QC_WANT(held == w->gate_count, "%u gates are held, not %u", w->gate_count, held);
    for (uint32_t i = 0; i < w->gate_count; i++) {
        const qm_gate *got = &w->gates[i];
        qm_spec at = {.db = got->db, .gate_class = got->gate_class};
        const qm_gate *want = qm_gate_of(m, &at);
        QC_WANT(got->job == want->job && got->attempt == want->attempt,
                "gate (%" PRIu64 ",%u): held by job %" PRIu64 ".%u, not %" PRIu64 ".%u", got->db,
                got->gate_class, got->job, got->attempt, want->job, want->attempt);
    }
}

static void qc_rest(const qm *m, const qc_world *w)
{
    for (uint32_t i = 1; i < QM_KINDS; i++) {
        const qm_kind *a = &m->kinds[i], *b = &w->kinds[i];
        QC_WANT(a->limit == b->limit && a->key_limit == b->key_limit && a->paused == b->paused &&
                    a->orphan_kind == b->orphan_kind,
                "kind %u: another record", i);
    }
    for (uint32_t i = 0; i < QM_CRONS; i++) {
        const qm_cron *cron = &m->crons[i];
        QC_WANT(cron->put == w->cron_there[i], "cron %u: there or not", i);
        QC_WANT(!cron->put || cron->next_ms == w->crons[i].next_ms,
                "cron %u: next %" PRIu64 ", not %" PRIu64, i, w->crons[i].next_ms, cron->next_ms);
    }
}

static void qc_compare(qm *m, const qc_world *w)
{
    qc_jobs(m, w);
    qc_gates(m, w);
    qc_rest(m, w);
}

#endif
