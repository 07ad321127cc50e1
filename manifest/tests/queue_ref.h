/* The reference of queue_model.c: a plain array of jobs, and what slots, gates, limits and ends
 * mean in it. */
#ifndef JZT_QUEUE_REF_H
#define JZT_QUEUE_REF_H

#include "queue_check.h"

enum { JOBS = 260, KINDS = 3, BACKOFF_MIN = 10, BACKOFF_MAX = 80, LEASE = 100 };
#if JZT_SANITIZED
enum { SEQUENCES = 15, STEPS = 100 };
#else
enum { SEQUENCES = 250, STEPS = 120 };
#endif

typedef struct ref {
    jzx_mf_job job; /* READY stands for BLOCKED too; state 0: there is none */
    bool in_slot;   /* has the QUEUED slot */
    bool gated;     /* has its gate */
    uint32_t payload;
    uint64_t parents[JZX_MF_AFTER_MAX]; /* after_left of them */
} ref;

typedef struct model {
    kit k;
    jzt_rng rng;
    ref refs[JOBS]; /* by id */
    jzx_mf_kind kinds[KINDS + 2];
    uint32_t width; /* of kinds, keys and databases: in narrow sequences jobs meet all the time */
} model;

static uint32_t below(model *m, uint32_t bound)
{
    return (uint32_t)jzt_rng_below(&m->rng, bound);
}

static bool one_in(model *m, uint32_t n)
{
    return below(m, n) == 0;
}

/* The reference: slots, gates, limits. */

static bool same_key(const jzx_mf_job *a, const jzx_mf_job *b)
{
    return a->kind == b->kind && a->scope == b->scope && a->db == b->db &&
           a->key.len == b->key.len &&
           (a->key.len == 0 || memcmp(a->key.data, b->key.data, a->key.len) == 0);
}

static bool is_finished(const ref *r)
{
    return r->job.state >= JZX_MF_JOB_DONE;
}

static ref *queued_holder(model *m, const jzx_mf_job *job)
{
    for (ref *r = m->refs; r < m->refs + JOBS; r++) {
        if (r->in_slot && same_key(&r->job, job)) {
            return r;
        }
    }
    return NULL;
}

static ref *active_holder(model *m, const jzx_mf_job *job)
{
    for (ref *r = m->refs; r < m->refs + JOBS; r++) {
        if (r->job.state == JZX_MF_JOB_ACTIVE && same_key(&r->job, job) &&
            mfi_job_wants_slot(&r->job, MFI_SLOT_ACTIVE)) {
            return r;
        }
    }
    return NULL;
}

static ref *gate_holder(model *m, const jzx_mf_job *job)
{
    for (ref *r = m->refs; r < m->refs + JOBS; r++) {
        if (r->gated && r->job.db == job->db && r->job.gate_class == job->gate_class) {
            return r;
        }
    }
    return NULL;
}

static bool may_run(model *m, ref *candidate)
{
    const jzx_mf_job *job = &candidate->job;
    const jzx_mf_kind *rules = &m->kinds[job->kind];
    uint32_t of_kind = 0;
    uint32_t of_key = 0;
    for (ref *r = m->refs; r < m->refs + JOBS; r++) {
        if (r->job.state == JZX_MF_JOB_ACTIVE && r->job.kind == job->kind) {
            of_kind++;
            of_key += same_key(&r->job, job);
        }
    }
    if (rules->paused || (rules->limit != 0 && of_kind >= rules->limit) ||
        (rules->key_limit != 0 && of_key >= rules->key_limit)) {
        return false;
    }
    if (mfi_job_wants_slot(job, MFI_SLOT_ACTIVE) && active_holder(m, job) != NULL) {
        return false;
    }
    ref *holder = job->gate_class != 0 ? gate_holder(m, job) : NULL;
    return holder == NULL || holder == candidate;
}

static bool is_better(const jzx_mf_job *a, const jzx_mf_job *b)
{
    if (a->priority != b->priority) {
        return a->priority > b->priority;
    }
    return a->run_at_ms != b->run_at_ms ? a->run_at_ms < b->run_at_ms : a->id < b->id;
}

static void set_due(model *m, ref *r)
{
    r->job.state = r->job.run_at_ms > m->k.tx.now_ms ? JZX_MF_JOB_SCHEDULED : JZX_MF_JOB_READY;
}

static void ref_end(model *m, ref *r, uint8_t state);

static void parent_ended(model *m, ref *r, uint64_t parent, bool done)
{
    for (uint32_t i = 0; i < r->job.after_left; i++) {
        if (r->parents[i] != parent) {
            continue;
        }
        r->parents[i] = r->parents[--r->job.after_left];
        if (r->job.state != JZX_MF_JOB_WAITING) {
            return;
        }
        if (!done && r->job.on_parent == JZX_MF_PARENT_CANCELS) {
            ref_end(m, r, JZX_MF_JOB_CANCELLED);
        } else if (r->job.after_left == 0) {
            set_due(m, r);
        }
        return;
    }
}

static void ref_end(model *m, ref *r, uint8_t state)
{
    r->job.state = state;
    r->job.finished_ms = m->k.tx.now_ms;
    r->in_slot = false;
    r->gated = false;
    for (ref *child = m->refs; child < m->refs + JOBS; child++) {
        if (child->job.state != 0) {
            parent_ended(m, child, r->job.id, state == JZX_MF_JOB_DONE);
        }
    }
}

static ref *ref_new(model *m, uint64_t id, const jzx_mf_job_spec *spec)
{
    REQUIRE(id < JOBS);
    ref *r = &m->refs[id];
    REQUIRE_EQ(r->job.state, 0);
    *r = (ref){.job = {.id = id,
                       .db = spec->db,
                       .run_at_ms = spec->delay_ms != 0    ? m->k.tx.now_ms + spec->delay_ms
                                    : spec->run_at_ms != 0 ? spec->run_at_ms
                                                           : m->k.tx.now_ms,
                       .max_attempts = spec->max_attempts != 0 ? spec->max_attempts : 20,
                       .timeout_ms = spec->timeout_ms,
                       .lease_ms = spec->lease_ms != 0 ? spec->lease_ms : 30000,
                       .kind = spec->kind,
                       .gate_class = spec->gate_class,
                       .scope = spec->scope,
                       .unique = spec->unique,
                       .on_retry = spec->on_retry,
                       .on_parent = spec->on_parent,
                       .priority = (uint8_t)spec->priority,
                       .key = spec->key}};
    set_due(m, r);
    r->in_slot = mfi_job_wants_slot(&r->job, MFI_SLOT_QUEUED);
    return r;
}

static void ref_lapse(model *m, ref *r, const mfi_lapse *lapse)
{
    if (r->job.cancel) {
        ref_end(m, r, JZX_MF_JOB_CANCELLED);
        return;
    }
    if (lapse->for_good || r->job.attempt >= r->job.max_attempts) {
        ref_end(m, r, JZX_MF_JOB_DEAD);
        return;
    }
    ref *other = queued_holder(m, &r->job);
    bool wants = mfi_job_wants_slot(&r->job, MFI_SLOT_QUEUED);
    if (wants && other != NULL && r->job.on_retry == JZX_MF_COALESCE) {
        ref_end(m, r, JZX_MF_JOB_SUPERSEDED);
        return;
    }
    if (wants && other != NULL && r->job.on_retry == JZX_MF_KEEP_OLD) {
        ref_end(m, other, JZX_MF_JOB_SUPERSEDED);
        other = NULL;
    }
    r->in_slot = wants && other == NULL;
    r->gated = r->gated && lapse->keep_gate;
    r->job.run_at_ms = lapse->run_at_ms;
    set_due(m, r);
    if (lapse->repair_kind != 0) {
        jzx_mf_job_spec repair = {.kind = lapse->repair_kind,
                                  .scope = r->job.scope,
                                  .db = r->job.db,
                                  .key = r->job.key,
                                  .priority = r->job.priority,
                                  .unique = JZX_MF_ANY};
        r->job.state = JZX_MF_JOB_WAITING;
        r->job.after_left = 1;
        ref *first = ref_new(m, m->k.next_id++, &repair);
        first->job.backoff_min_ms = 1000;
        first->job.backoff_max_ms = 3600000;
        first->job.jitter_percent = 10;
        r->parents[0] = first->job.id;
    }
}

static uint64_t ref_backoff(const ref *r)
{
    if (r->job.jitter_percent != 0) { /* a repair job, which has the defaults */
        return mfi_backoff_ms(&r->job);
    }
    uint64_t backoff = BACKOFF_MIN;
    for (uint32_t i = r->job.spent + 1; i < r->job.attempt && backoff < BACKOFF_MAX; i++) {
        backoff *= 2;
    }
    return backoff < BACKOFF_MAX ? backoff : BACKOFF_MAX;
}

#endif
