/* Operations as data: made at random, done to the model, and asked of the library. */
#ifndef MODEL_OP_H
#define MODEL_OP_H

#include "model_queue_time.h"

#include "support/check.h"

#include <stdio.h>

typedef enum qo_what {
    QO_SYNC,
    QO_ENQUEUE,
    QO_CLAIM,
    QO_HEARTBEAT,
    QO_COMPLETE,
    QO_FAIL,
    QO_CANCEL,
    QO_RETRY,
    QO_DEL,
    QO_PRUNE,
    QO_KIND_PUT,
    QO_KIND_PAUSE,
    QO_CRON_PUT,
    QO_CRON_DEL,
    QO_REFUSE, /* a condition that does not hold */
    QO_WHATS
} qo_what;

static const char *const qo_names[QO_WHATS] = {
    "sync", "enqueue", "claim",    "heartbeat",  "complete", "fail",     "cancel", "retry",
    "del",  "prune",   "kind_put", "kind_pause", "cron_put", "cron_del", "refuse"};

typedef struct qo_op {
    qo_what what;
    uint64_t id; /* enqueue: as the library gave it out */
    qm_spec spec;
    qm_kind kind;
    qm_cron cron;
    jzx_mf_lease lease;
    uint16_t number;         /* of the kind or cron entry */
    uint32_t kinds, max, ms; /* claim: what, how many, lease; heartbeat: extension */
    uint32_t value;          /* worker, progress, result */
    uint32_t flags;
    int32_t code;
    uint64_t delay_ms;
    uint32_t wait_ms; /* claim */
} qo_op;

/* To the model. */
static jzx_err qo_model(qm *m, const qo_op *op, qm_answer *answer)
{
    *answer = (qm_answer){0};
    switch (op->what) {
    case QO_ENQUEUE:
        return qm_enqueue(m, op->id, &op->spec, answer);
    case QO_CLAIM:
        return qm_claim(m, op->kinds, op->max, op->value, op->ms, answer);
    case QO_HEARTBEAT:
        return qm_heartbeat(m, &op->lease, op->ms, op->value, answer);
    case QO_COMPLETE:
        return qm_complete(m, &op->lease, op->value);
    case QO_FAIL:
        return qm_fail(m, &op->lease, op->code, op->flags, op->delay_ms);
    case QO_CANCEL:
        return qm_cancel(m, op->id);
    case QO_RETRY:
        return qm_retry(m, op->id);
    case QO_DEL:
        return qm_del(m, op->id);
    case QO_KIND_PUT:
        m->kinds[op->number] = op->kind;
        return JZX_OK;
    case QO_KIND_PAUSE:
        m->kinds[op->number].put = true;
        m->kinds[op->number].paused = op->flags != 0;
        return JZX_OK;
    case QO_CRON_PUT:
        qm_cron_put(m, op->number, &op->cron);
        return JZX_OK;
    case QO_CRON_DEL:
        m->crons[op->number] = (qm_cron){0};
        return JZX_OK;
    case QO_REFUSE:
        return JZX_ERR_CONFLICT;
    default:
        return JZX_OK;
    }
}

/* To the library. */
static jzx_mf_span qo_number(const uint32_t *value)
{
    return jzx_mf_blob(value, *value == 0 ? 0 : sizeof *value);
}

static jzx_err qo_real_enqueue(jzx_mf_txn *txn, qo_op *op)
{
    const qm_spec *s = &op->spec;
    jzx_mf_job_spec spec = {.kind = s->kind,
                            .gate_class = s->gate_class,
                            .scope = s->scope,
                            .unique = s->unique,
                            .on_retry = s->on_retry,
                            .on_parent = s->on_parent,
                            .db = s->db,
                            .key = jzx_mf_blob(&s->key, s->key != 0),
                            .payload = qo_number(&s->payload),
                            .run_at_ms = s->run_at_ms,
                            .delay_ms = s->delay_ms,
                            .after = s->after,
                            .after_count = s->after_count,
                            .priority = s->priority,
                            .max_attempts = s->max_attempts,
                            .lease_ms = s->lease_ms,
                            .timeout_ms = s->timeout_ms,
                            .backoff_min_ms = s->backoff_min_ms,
                            .backoff_max_ms = s->backoff_max_ms,
                            .jitter_percent = s->jitter_percent,
                            .flags = s->flags};
    return jzx_mf_job_enqueue(txn, &spec, &op->id);
}

static jzx_err qo_real_claim(jzx_mf_txn *txn, const qo_op *op)
{
    uint16_t kinds[QM_KINDS];
    uint32_t count = 0;
    for (uint16_t k = 1; k < QM_KINDS; k++) {
        if ((op->kinds >> k & 1u) != 0) {
            kinds[count++] = k;
        }
    }
    jzx_mf_claim claim = {.kinds = kinds,
                          .kind_count = count,
                          .max = op->max,
                          .worker = op->value,
                          .wait_ms = op->wait_ms,
                          .lease_ms = op->ms};
    return jzx_mf_job_claim(txn, &claim);
}

static const char *qo_cron_name(uint16_t number)
{
    return number == 0 ? "first" : "second";
}

static jzx_err qo_real_cron(jzx_mf_txn *txn, const qo_op *op)
{
    const qm_spec *s = &op->cron.spec;
    char schedule[32];
    (void)snprintf(schedule, sizeof schedule, "@every %us", (unsigned)(op->cron.every_ms / 1000));
    jzx_mf_cron cron = {.name = jzx_mf_text(qo_cron_name(op->number)),
                        .schedule = jzx_mf_text(schedule),
                        .key = jzx_mf_blob(&s->key, s->key != 0),
                        .payload = qo_number(&s->payload),
                        .db = s->db,
                        .max_attempts = s->max_attempts,
                        .priority = s->priority,
                        .kind = s->kind,
                        .gate_class = s->gate_class,
                        .scope = s->scope,
                        .unique = s->unique,
                        .paused = op->cron.paused};
    return jzx_mf_cron_put(txn, &cron);
}

static jzx_err qo_real_kind(jzx_mf_txn *txn, const qo_op *op)
{
    jzx_mf_kind kind = {.limit = op->kind.limit,
                        .key_limit = op->kind.key_limit,
                        .orphan_kind = op->kind.orphan_kind,
                        .paused = op->kind.paused};
    return jzx_mf_kind_put(txn, op->number, &kind);
}

static jzx_err qo_real(jzx_mf_txn *txn, qo_op *op)
{
    jzx_mf_failure failure = {.text = jzx_mf_text("it failed"),
                              .delay_ms = op->delay_ms,
                              .code = op->code,
                              .flags = op->flags};
    jzx_mf_key nowhere = jzx_mf_key_generation(77);
    switch (op->what) {
    case QO_ENQUEUE:
        return qo_real_enqueue(txn, op);
    case QO_CLAIM:
        return qo_real_claim(txn, op);
    case QO_HEARTBEAT:
        return jzx_mf_job_heartbeat(txn, &op->lease, op->ms, op->value, 100, jzx_mf_text(NULL));
    case QO_COMPLETE:
        return jzx_mf_job_complete(txn, &op->lease, qo_number(&op->value));
    case QO_FAIL:
        return jzx_mf_job_fail(txn, &op->lease, &failure);
    case QO_CANCEL:
        return jzx_mf_job_cancel(txn, op->id);
    case QO_RETRY:
        return jzx_mf_job_retry(txn, op->id);
    case QO_DEL:
        return jzx_mf_job_del(txn, op->id);
    case QO_PRUNE:
        return jzx_mf_job_prune(txn, op->max);
    case QO_KIND_PUT:
        return qo_real_kind(txn, op);
    case QO_KIND_PAUSE:
        return jzx_mf_kind_pause(txn, op->number, (int)op->flags);
    case QO_CRON_PUT:
        return qo_real_cron(txn, op);
    case QO_CRON_DEL:
        return jzx_mf_cron_del(txn, jzx_mf_text(qo_cron_name(op->number)));
    case QO_REFUSE:
        return jzx_mf_expect(txn, &nowhere, JZX_MF_PRESENT);
    default:
        return jzx_mf_sync(txn);
    }
}

#endif
