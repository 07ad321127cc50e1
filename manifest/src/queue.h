/* The job queue: what each operation does to the tables of jobs, and what time does to them.
 *
 * Invariants (audit_job.c and audit_after.c check them):
 *   Q1  A job has a row in exactly the index its state says: WAITING none (its parents' dependency
 *       rows), SCHEDULED scheduled, READY ready, BLOCKED blocked, ACTIVE lease, the rest finished.
 *   Q2  The unique rows of (scope, db, kind, key): QUEUED names a job that is WAITING, SCHEDULED,
 *       READY or BLOCKED, ACTIVE one that is ACTIVE; jobs whose policy asks for a slot and that
 *       have it are named there. A row is deleted only by the job it names.
 *   Q3  A gate names a job that is not finished.
 *   Q4  active has a row for every ACTIVE job whose kind has a limit, and for no other job.
 *   Q5  after_left is the number of dependency rows that name the job as child.
 *   Q6  attempt grows by one with each claim, and (id, attempt, boot) is never given out twice. */
#ifndef MFI_QUEUE_H
#define MFI_QUEUE_H

#include "tx.h"

/* INVALID_ARG, TOO_BIG: what a caller can be told before anything is sent. */
jzx_err mfi_job_check(const jzx_mf_job_spec *spec);
jzx_err mfi_cron_check(const jzx_mf_cron *record);

jzx_err mfi_job_enqueue(mfi_tx *tx, uint64_t id, const jzx_mf_job_spec *spec, jzx_mf_slot *slot);
/* Calls `add` for every job that was claimed; its spans are borrowed for the call. */
typedef jzx_err (*mfi_claimed_fn)(void *arg, const jzx_mf_job *job);
jzx_err mfi_job_claim(mfi_tx *tx, const jzx_mf_claim *claim, mfi_claimed_fn add, void *arg,
                      uint32_t *out_count);
jzx_err mfi_job_heartbeat(mfi_tx *tx, const jzx_mf_lease *lease, uint32_t extend_ms, uint64_t done,
                          uint64_t total, jzx_mf_span text, bool *out_cancel);
jzx_err mfi_job_complete(mfi_tx *tx, const jzx_mf_lease *lease, jzx_mf_span result);
jzx_err mfi_job_fail(mfi_tx *tx, const jzx_mf_lease *lease, const jzx_mf_failure *failure);
jzx_err mfi_job_cancel(mfi_tx *tx, uint64_t id);
jzx_err mfi_job_retry(mfi_tx *tx, uint64_t id);
jzx_err mfi_job_del(mfi_tx *tx, uint64_t id);
jzx_err mfi_kind_put(mfi_tx *tx, uint16_t kind, const jzx_mf_kind *record);
jzx_err mfi_kind_pause(mfi_tx *tx, uint16_t kind, bool paused);
jzx_err mfi_cron_put(mfi_tx *tx, const jzx_mf_cron *record);
jzx_err mfi_cron_del(mfi_tx *tx, jzx_mf_span name);

/* What time does; each at most `max` rows per call, *out_count tells how many. */
jzx_err mfi_queue_promote(mfi_tx *tx, uint32_t max, uint32_t *out_count); /* SCHEDULED -> READY */
jzx_err mfi_queue_expire(mfi_tx *tx, uint32_t max, uint32_t *out_count);  /* leases that are over */
jzx_err mfi_queue_fire(mfi_tx *tx, uint32_t max,
                       uint32_t *out_count); /* cron; takes ids from meta */
jzx_err mfi_queue_prune(mfi_tx *tx, uint32_t max, uint32_t *out_count);
/* Leases of older boots: attempt counted already, gate kept, READY at once or DEAD. *out is added
 * to; `closed` says beforehand whether the boot before this one ended with a proper close. */
typedef struct mfi_orphans {
    uint64_t found, requeued, died, repairs;
    bool closed;
} mfi_orphans;
jzx_err mfi_queue_orphans(mfi_tx *tx, uint32_t max, mfi_orphans *out, uint32_t *out_count);

/* When the next of these has something to do; UINT64_MAX: never. *out_lease_ms is on the lease
 * clock, the others on the manifest's. */
jzx_err mfi_queue_next(const mfi_view *view, const jzx_mf_retention *retention,
                       uint64_t *out_scheduled_ms, uint64_t *out_lease_ms, uint64_t *out_cron_ms,
                       uint64_t *out_prune_ms);

#endif
