/* What must hold whatever the model says: a ledger of what the library told, and laws about it.
 *
 *   L1  At most one active job per gate, and the gate names it.
 *   L2  No job is lost: what was acknowledged is there until it was seen finished.
 *   L3  No job has two lease holders: it is claimed only when the lease before was given back, has
 *       run out on the lease clock, or is of an older boot.
 *   L4  Fencing: only the last lease that was given out for a job is ever accepted.
 *   L5  The attempt is the number of claims.
 *   L6  One active job per (scope, db, kind, key) where its policy says so. */
#ifndef MODEL_LAW_H
#define MODEL_LAW_H

#include "model_check.h"

typedef struct ql_entry {
    uint64_t id;
    uint32_t claims;
    bool finished; /* was seen so */
    bool held;     /* by the lease */
    jzx_mf_lease lease;
    uint64_t until_ms;
} ql_entry;

static struct {
    ql_entry entries[QM_JOBS * 2];
    uint32_t count;
} ql_book;

static ql_entry *ql_find(uint64_t id)
{
    for (uint32_t i = 0; i < ql_book.count; i++) {
        if (ql_book.entries[i].id == id) {
            return &ql_book.entries[i];
        }
    }
    return NULL;
}

static ql_entry *ql_open(uint64_t id)
{
    ql_entry *entry = ql_find(id);
    if (entry == NULL) {
        entry = &ql_book.entries[ql_book.count++];
        *entry = (ql_entry){.id = id};
    }
    return entry;
}

static void ql_enqueued(uint64_t id)
{
    QC_WANT(ql_find(id) == NULL, "law: id %" PRIu64 " was used twice", id);
    (void)ql_open(id);
}

static void ql_claimed(const jzx_mf_job *job, uint64_t boot, uint64_t lease_now_ms)
{
    ql_entry *entry = ql_open(job->id);
    entry->claims++;
    QC_WANT(job->attempt == entry->claims, "law: job %" PRIu64 ": attempt %u, but %u claims",
            job->id, job->attempt, entry->claims);
    QC_WANT(job->boot == boot, "law: job %" PRIu64 ": a lease of boot %" PRIu64, job->id,
            job->boot);
    QC_WANT(!entry->held || entry->lease.boot < boot || entry->until_ms <= lease_now_ms,
            "law: job %" PRIu64 " has two holders: attempt %u had it until %" PRIu64, job->id,
            entry->lease.attempt, entry->until_ms);
    entry->held = true;
    entry->finished = false;
    entry->lease = jzx_mf_lease_of(job);
    entry->until_ms = job->lease_until_ms;
}

/* A heartbeat, an end or a failure that the library took. */
static void ql_accepted(const jzx_mf_lease *lease, uint64_t boot, bool gives_back)
{
    ql_entry *entry = ql_find(lease->job_id);
    QC_WANT(entry != NULL && entry->held && lease->attempt == entry->lease.attempt &&
                lease->boot == entry->lease.boot && lease->boot == boot,
            "law: job %" PRIu64 ": attempt %u of boot %" PRIu64 " should have been fenced",
            lease->job_id, lease->attempt, lease->boot);
    if (entry != NULL && gives_back) {
        entry->held = false;
    }
}

static void ql_forgotten(uint64_t id)
{
    ql_open(id)->finished = true;
}

static void ql_two_active(const jzx_mf_job *a, const jzx_mf_job *b)
{
    QC_WANT(a->gate_class == 0 || a->gate_class != b->gate_class || a->db != b->db,
            "law: jobs %" PRIu64 " and %" PRIu64 " are behind one gate", a->id, b->id);
    bool same = a->scope == b->scope && a->db == b->db && a->kind == b->kind &&
                a->key.len == b->key.len &&
                (a->key.len == 0 || memcmp(a->key.data, b->key.data, a->key.len) == 0);
    bool alone = a->unique != JZX_MF_SHORT && a->unique != JZX_MF_ANY &&
                 b->unique != JZX_MF_SHORT && b->unique != JZX_MF_ANY;
    QC_WANT(!same || !alone, "law: jobs %" PRIu64 " and %" PRIu64 " are active with one key", a->id,
            b->id);
}

static void ql_active(const qc_world *w, const jzx_mf_job *job)
{
    for (const jzx_mf_job *other = w->jobs; other < job; other++) {
        if (other->state == JZX_MF_JOB_ACTIVE) {
            ql_two_active(other, job);
        }
    }
    bool named = job->gate_class == 0;
    for (uint32_t i = 0; i < w->gate_count; i++) {
        const qm_gate *gate = &w->gates[i];
        named = named || (gate->db == job->db && gate->gate_class == job->gate_class &&
                          gate->job == job->id && gate->attempt == job->attempt);
    }
    QC_WANT(named, "law: job %" PRIu64 " is active, and its gate does not name it", job->id);
    ql_entry *entry = ql_find(job->id);
    if (entry != NULL && entry->held && entry->lease.attempt == job->attempt) {
        entry->until_ms = job->lease_until_ms;
    }
}

static void ql_world(const qc_world *w)
{
    for (uint32_t i = 0; i < w->job_count; i++) {
        const jzx_mf_job *job = &w->jobs[i];
        ql_entry *entry = ql_open(job->id);
        QC_WANT(job->attempt == entry->claims, "law: job %" PRIu64 ": attempt %u, but %u claims",
                job->id, job->attempt, entry->claims);
        entry->finished = job->state >= JZX_MF_JOB_DONE;
        if (job->state == JZX_MF_JOB_ACTIVE) {
            ql_active(w, job);
        }
    }
    for (uint32_t i = 0; i < ql_book.count; i++) {
        const ql_entry *entry = &ql_book.entries[i];
        bool there = false;
        for (uint32_t k = 0; k < w->job_count && !there; k++) {
            there = w->jobs[k].id == entry->id;
        }
        QC_WANT(there || entry->finished, "law: job %" PRIu64 " is lost", entry->id);
    }
}

#endif
