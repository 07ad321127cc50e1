/* What the library answered against what the model says to the same request. */
#ifndef JZT_MODEL_ANSWERS_H
#define JZT_MODEL_ANSWERS_H

#include "model_real.h"

#if JZT_SANITIZED
#define SEEDS_DEFAULT 500
#else
#define SEEDS_DEFAULT 5000
#endif

_Static_assert((QM_KINDS - 1 + QR_OPS - 1) / QR_OPS < QR_REQUESTS, "room for calm_down()");

enum { STEPS_MIN = 25, STEPS_SPAN = 25, DRAIN_ROUNDS = 400 };

static qm M;
static uint64_t seed_now;
static uint32_t step_now;
static bool tracing;

/* What all runs together have seen: a test that visits nothing proves nothing. */
static struct {
    uint64_t ops[QO_WHATS], refused[QO_WHATS];
    uint64_t jobs, claims, fenced, orphans, requeued, died, repairs, crashes, in_between, closes;
    uint64_t served, gave_up; /* claims that waited */
    uint64_t outcomes[4], states[JZX_MF_JOB_SUPERSEDED + 1], expired, fired;
} totals;

static void must_be_well(void)
{
    if (qc_verdict.bad) {
        (void)fprintf(stderr, "seed %" PRIu64 ", step %u: %s\n", seed_now, step_now,
                      qc_verdict.text);
        (void)fprintf(stderr, "JZX_SEED=%" PRIu64 " JZX_MODEL_SEEDS=1 JZX_MODEL_TRACE=1\n",
                      seed_now);
    }
    REQUIRE(!qc_verdict.bad);
}

static void trace_op(const qo_op *op)
{
    const qm_spec *s = &op->spec;
    (void)fprintf(stderr, "  %s", qo_names[op->what]);
    if (op->what == QO_ENQUEUE) {
        (void)fprintf(stderr,
                      " %" PRIu64 " kind %u scope %u db %" PRIu64 " key %c gate %u unique %u/%u/%u"
                      " prio %u max %u lease %u timeout %u delay %" PRIu64 " at %" PRIu64
                      " flags %u after",
                      op->id, s->kind, s->scope, s->db, s->key != 0 ? s->key : '-', s->gate_class,
                      s->unique, s->on_retry, s->on_parent, s->priority, s->max_attempts,
                      s->lease_ms, s->timeout_ms, s->delay_ms, s->run_at_ms, s->flags);
        for (uint32_t i = 0; i < s->after_count; i++) {
            (void)fprintf(stderr, " %" PRIu64, s->after[i]);
        }
    } else if (op->what == QO_CLAIM) {
        (void)fprintf(stderr, " kinds %x max %u lease %u", op->kinds, op->max, op->ms);
    } else if (op->what >= QO_HEARTBEAT && op->what <= QO_FAIL) {
        (void)fprintf(stderr, " %" PRIu64 ".%u.%" PRIu64 " ms %u flags %u", op->lease.job_id,
                      op->lease.attempt, op->lease.boot, op->ms, op->flags);
    } else if (op->what == QO_KIND_PUT || op->what == QO_KIND_PAUSE) {
        (void)fprintf(stderr, " %u limit %u key_limit %u orphan %u paused %u/%u", op->number,
                      op->kind.limit, op->kind.key_limit, op->kind.orphan_kind, op->kind.paused,
                      op->flags);
    } else {
        (void)fprintf(stderr, " %" PRIu64, op->id);
    }
    (void)fprintf(stderr, "\n");
}

static void trace_request(const qr_request *request)
{
    if (!tracing) {
        return;
    }
    (void)fprintf(stderr, "step %u now %" PRIu64 " lease %" PRIu64 ": %s (%u), seq %" PRIu64 "\n",
                  step_now, request->now_ms, M.lease_now_ms, jzx_err_name(request->err),
                  request->failed, request->seq);
    for (uint32_t i = 0; i < request->op_count; i++) {
        trace_op(&request->ops[i]);
    }
    for (uint32_t i = 0; i < request->job_count; i++) {
        (void)fprintf(stderr, "    claimed %" PRIu64 ".%u\n", request->jobs[i].id,
                      request->jobs[i].attempt);
    }
}

/* The manifest's clock: never back, at its own pace at least, and not behind the system's by more
 * than what counts as a jump. */
static void pass_time(uint64_t now_ms)
{
    uint64_t lease_ms = qr_lease_ms();
    QC_WANT(now_ms >= M.now_ms && now_ms - M.now_ms >= lease_ms - M.lease_now_ms,
            "the clock went from %" PRIu64 " to %" PRIu64 " in %" PRIu64 " ms", M.now_ms, now_ms,
            lease_ms - M.lease_now_ms);
    QC_WANT(now_ms + 1000 >= qr_wall_ms(NULL), "the clock says %" PRIu64 ", the system %" PRIu64,
            now_ms, qr_wall_ms(NULL));
    uint32_t before = M.job_count;
    qm_time(&M, now_ms, lease_ms);
    totals.fired += M.job_count - before;
}

static void check_claimed(const qr_request *request, const qm_answer *answer, uint32_t *first)
{
    for (uint32_t i = 0; i < answer->claimed && *first < request->job_count; i++, (*first)++) {
        const jzx_mf_job *got = &request->jobs[*first];
        qm_job *want = qm_find(&M, answer->ids[i]);
        if (want != NULL && want->id >= QM_UNSEEN) {
            qc_name(&M, want->id, got->id);
            want->run_at_lo = want->run_at_hi = got->run_at_ms;
        }
        uint64_t expected = want == NULL ? 0 : want->id;
        QC_WANT(got->id == expected, "claim gave job %" PRIu64 ", not %" PRIu64 " (%u of %u)",
                got->id, expected, i, answer->claimed);
        QC_WANT(want == NULL || got->attempt == want->attempt,
                "claim of job %" PRIu64 ": attempt %u", got->id, got->attempt);
        ql_claimed(got, M.boot, M.lease_now_ms);
        qg_take_hand(jzx_mf_lease_of(got));
    }
}

static void check_slot(const qo_op *op, const jzx_mf_slot *slot, const qm_answer *answer)
{
    if (op->what == QO_ENQUEUE) {
        QC_WANT(slot->id == answer->id && slot->outcome == answer->outcome,
                "enqueue gave %" PRIu64 " (outcome %u), not %" PRIu64 " (%u)", slot->id,
                slot->outcome, answer->id, answer->outcome);
        totals.outcomes[answer->outcome & 3u]++;
        if (answer->outcome == JZX_MF_NEW) {
            ql_enqueued(slot->id);
        }
    } else if (op->what == QO_CLAIM || op->what == QO_HEARTBEAT) {
        QC_WANT(slot->outcome == answer->outcome, "%s: outcome %u, not %u", qo_names[op->what],
                slot->outcome, answer->outcome);
    }
    if (op->what == QO_HEARTBEAT || op->what == QO_COMPLETE || op->what == QO_FAIL) {
        ql_accepted(&op->lease, M.boot, op->what != QO_HEARTBEAT);
    } else if (op->what == QO_DEL) {
        ql_forgotten(op->id);
    }
}

/* What the model says to a request against what the library said. */
static void check_request(const qr_request *request)
{
    static qm before; /* a refused request leaves no trace */
    before = M;
    qm_answer answers[QR_OPS];
    jzx_err err = JZX_OK;
    uint32_t failed = UINT32_MAX;
    for (uint32_t i = 0; i < request->op_count && err == JZX_OK; i++) {
        totals.ops[request->ops[i].what]++;
        err = qo_model(&M, &request->ops[i], &answers[i]);
        failed = err == JZX_OK ? failed : i;
    }
    QC_WANT(request->answers == 1, "%u answers to a request", request->answers);
    QC_WANT(request->err == err && request->failed == failed, "receipt: %s at %d, not %s at %d",
            jzx_err_name(request->err), (int)request->failed, jzx_err_name(err), (int)failed);
    if (err != JZX_OK) {
        M = before;
        totals.refused[request->ops[failed].what]++;
        totals.fenced += err == JZX_ERR_FENCED;
        return;
    }
    uint32_t first = 0;
    for (uint32_t i = 0; i < request->op_count && !qc_verdict.bad; i++) {
        check_claimed(request, &answers[i], &first);
        check_slot(&request->ops[i], &request->slots[i], &answers[i]);
    }
    QC_WANT(first == request->job_count, "%u jobs were claimed, not %u", request->job_count, first);
    totals.claims += first;
}

static jzx_err compare_step(jzx_mf_snap *snap, void *arg)
{
    static qc_world world;
    (void)arg;
    jzx_err err = qc_look(snap, &world);
    if (err == JZX_OK) {
        qc_compare(&M, &world);
        ql_world(&world);
    }
    return err;
}

static void compare(void)
{
    REQUIRE_OK(jzx_mf_read(qr.mf, compare_step, NULL));
    must_be_well();
}

/* A claim that may wait, at its turn: it is served, or it waits. */
static void check_waiting_claim(qr_request *request)
{
    const qo_op *op = &request->ops[0];
    if (qm_best(&M, op->kinds) != NULL) {
        check_request(request);
    } else {
        qr_wait(request, M.lease_now_ms + op->wait_ms);
    }
}

static void check_one(qr_request *request)
{
    trace_request(request);
    if (request->ops[0].wait_ms != 0) {
        check_waiting_claim(request);
    } else {
        check_request(request);
    }
}

/* Whether the commit of a request is in the file. */
static bool was_done(const qr_request *request, uint64_t last_seq)
{
    return request->answers == 1 && request->err == JZX_OK && request->seq <= last_seq;
}

/* At the end of a commit: those that wait are served in their order, or their time is up. After a
 * crash only what is in the file counts. */
static void serve_waiting(uint64_t last_seq)
{
    for (uint32_t i = 0; i < qr.waiting_count && !qc_verdict.bad;) {
        qr_request *request = qr.waiting[i];
        bool served = qm_best(&M, request->ops[0].kinds) != NULL;
        if (last_seq != UINT64_MAX && !was_done(request, last_seq)) {
            i++;
        } else if (served || request->wait_until_ms <= M.lease_now_ms) {
            trace_request(request);
            check_request(request);
            totals.served += served;
            totals.gave_up += !served;
            qr_end_wait(i);
        } else {
            i++;
        }
    }
}

/* Whether a request was not in this commit: it has one of its own, or it is a claim that found
 * nothing, which needs none, because those that waited had taken all. */
static bool is_later(const qr_request *request, uint64_t commit)
{
    bool empty = request->job_count == 0 && request->ops[0].what == QO_CLAIM &&
                 qm_best(&M, request->ops[0].kinds) != NULL;
    return request->seq > commit || request->answers == 0 || empty;
}

static void check_requests(void)
{
    uint64_t commit = 0;
    QC_WANT(qr.order_count == qr.request_count, "%u requests were sent of %u", qr.order_count,
            qr.request_count);
    for (uint32_t i = 0; i < qr.order_count; i++) {
        qr_request *request = qr.order[i];
        if (commit != 0 && is_later(request, commit)) {
            serve_waiting(UINT64_MAX);
        }
        commit = request->seq != 0 ? request->seq : commit;
        if (request->answers > 0) {
            pass_time(request->now_ms);
        }
        check_one(request);
        must_be_well();
    }
    serve_waiting(UINT64_MAX);
    for (uint32_t i = 0; i < qr.waiting_count; i++) {
        QC_WANT(qr.waiting[i]->answers == 0 || qr.mf == NULL,
                "a claim that should wait was answered");
    }
    must_be_well();
}

#endif
