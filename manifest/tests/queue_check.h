/* The invariants of the queue (queue.h), by a walk over everything. */
#ifndef TEST_QUEUE_CHECK_H
#define TEST_QUEUE_CHECK_H

#include "audit.h"
#include "queue_kit.h"

typedef struct tally {
    kit *k;
    uint64_t rows[JZX_MF_TABLES]; /* that the jobs account for */
} tally;

static bool tally_has(tally *t, const jzx_mf_key *key)
{
    t->rows[key->table]++;
    return mfi_find(&t->k->tx.view, key) == JZX_OK;
}

static bool tally_is_limited(tally *t, uint16_t kind)
{
    jzx_mf_kind rules;
    CHECK_OK(mfi_kind_rules(&t->k->tx.view, kind, &rules));
    return rules.limit != 0 || rules.key_limit != 0;
}

/* Q1: the row that the state says. */
static void tally_row(tally *t, const jzx_mf_job *job)
{
    jzx_mf_key key;
    switch (job->state) {
    case JZX_MF_JOB_WAITING:
        CHECK(job->after_left > 0);
        return;
    case JZX_MF_JOB_SCHEDULED:
        key = mfi_key_scheduled(job->run_at_ms, job->id);
        break;
    case JZX_MF_JOB_READY:
        key = mfi_key_ready(job);
        break;
    case JZX_MF_JOB_BLOCKED:
        key = mfi_key_blocked(job->blocked_on, job);
        break;
    case JZX_MF_JOB_ACTIVE:
        key = mfi_key_lease(job->lease_until_ms, job->id);
        break;
    default:
        CHECK(job->state >= JZX_MF_JOB_DONE && job->state <= JZX_MF_JOB_SUPERSEDED);
        key = mfi_key_finished(job->state, job->finished_ms, job->id);
        break;
    }
    CHECK(tally_has(t, &key));
    CHECK((job->blocked_on.len > 0) == (job->state == JZX_MF_JOB_BLOCKED));
    CHECK(job->after_left == 0 || job->state >= JZX_MF_JOB_DONE);
}

/* Q2: the slots that it must have. */
static void tally_slots(tally *t, const jzx_mf_job *job)
{
    uint8_t slot = job->state == JZX_MF_JOB_ACTIVE ? MFI_SLOT_ACTIVE : MFI_SLOT_QUEUED;
    uint64_t holder = 0;
    CHECK_OK(mfi_slot_holder(&t->k->tx.view, job, slot, &holder));
    if (holder == job->id) {
        CHECK(job->state < JZX_MF_JOB_DONE);
        CHECK(mfi_job_wants_slot(job, slot));
        t->rows[JZX_MF_TABLE_UNIQUE]++;
        return;
    }
    bool may_do_without =
        job->state >= JZX_MF_JOB_DONE || !mfi_job_wants_slot(job, slot) ||
        (slot == MFI_SLOT_QUEUED && job->on_retry == JZX_MF_BOTH && job->attempt > 0);
    CHECK(may_do_without);
}

static jzx_err tally_child(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    (void)value;
    uint64_t *wanted = arg; /* the id, and how many there were */
    wanted[1] += mfi_key_tail_id(key.data, key.len) == wanted[0];
    return JZX_OK;
}

static jzx_err tally_job(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    tally *t = arg;
    jzx_mf_job job;
    CHECK_OK(mfi_decode_job(value, &job, NULL));
    job.id = mfi_get_be64(key.data);
    CHECK(job.id < t->k->tx.meta.job_ids);
    tally_row(t, &job);
    tally_slots(t, &job);
    if (job.state < JZX_MF_JOB_ACTIVE) {
        CHECK(job.attempt < job.max_attempts);
    }
    if (job.gate_class != 0 && kit_gate_holder(t->k, job.db, job.gate_class) == job.id) {
        CHECK(job.state < JZX_MF_JOB_DONE); /* Q3 */
        t->rows[JZX_MF_TABLE_GATE]++;
    } else {
        CHECK(job.state != JZX_MF_JOB_ACTIVE || job.gate_class == 0);
    }
    if (job.state == JZX_MF_JOB_ACTIVE && tally_is_limited(t, job.kind)) { /* Q4 */
        jzx_mf_key active = mfi_key_active(&job);
        CHECK(tally_has(t, &active));
    }
    uint64_t parents[2] = {job.id, 0}; /* Q5 */
    jzx_mf_key from = mfi_key_first(JZX_MF_TABLE_DEPENDENCY);
    CHECK_OK(mfi_walk(&t->k->tx.view, &from, 0, tally_child, parents));
    CHECK_EQ(parents[1], job.after_left);
    t->rows[JZX_MF_TABLE_DEPENDENCY] += parents[1];
    return JZX_OK;
}

static jzx_err tally_parent(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    (void)value;
    uint32_t state = kit_state(arg, mfi_get_be64(key.data));
    CHECK(state > 0 && state < JZX_MF_JOB_DONE);
    return JZX_OK;
}

static inline void kit_check(kit *k)
{
    static const uint32_t tables[] = {
        JZX_MF_TABLE_UNIQUE,   JZX_MF_TABLE_READY,      JZX_MF_TABLE_SCHEDULED,
        JZX_MF_TABLE_LEASE,    JZX_MF_TABLE_ACTIVE,     JZX_MF_TABLE_BLOCKED,
        JZX_MF_TABLE_FINISHED, JZX_MF_TABLE_DEPENDENCY, JZX_MF_TABLE_GATE};
    tally t = {.k = k};
    jzx_mf_key from = mfi_key_first(JZX_MF_TABLE_JOB);
    CHECK_OK(mfi_walk(&k->tx.view, &from, 0, tally_job, &t));
    from = mfi_key_first(JZX_MF_TABLE_DEPENDENCY);
    CHECK_OK(mfi_walk(&k->tx.view, &from, 0, tally_parent, k));
    /* There is no row beyond those that jobs account for. */
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        CHECK_EQ(mfi_entries(&k->tx.view, tables[i]), t.rows[tables[i]]);
    }
}

static inline int kit_problem(void *arg, const char *problem, uint64_t done, uint64_t total)
{
    (void)arg;
    (void)done;
    (void)total;
    if (problem != NULL) {
        printf("%s\n", problem);
    }
    return 0;
}

/* What `jzx check` says about the same rows. */
static inline void kit_audit(kit *k)
{
    mfi_meta meta = k->tx.meta;
    REQUIRE_OK(mfi_meta_load(&k->tx.view, &k->tx.meta));
    k->tx.meta.boot = k->tx.boot;
    k->tx.meta.job_ids = meta.job_ids;
    k->tx.meta.commit_seq = k->tx.seq;
    REQUIRE_OK(mfi_meta_store(&k->tx));
    jzx_mf_check_report report = {0};
    CHECK_OK(mfi_check_view(&k->tx.view, kit_problem, NULL, &report));
}

#endif
