/* The job queue: work that must run once, and survives everything.
 *
 *                 +------------- fail, lease over, crash: backoff ------------+
 *                 v                                                           |
 *   enqueue -> WAITING -> SCHEDULED -> READY <-> BLOCKED       claim          |
 *              (others     (its time)    |       (slot, gate,   |             |
 *               first)                   |        key limit)    |             |
 *                                        +------------------> ACTIVE ---------+
 *                                                               |
 *                 CANCELLED, SUPERSEDED, DEAD (no attempts left) | DONE
 *
 * A claim gives a lease: the right to work on a job until a time, which heartbeats move. The lease
 * is a fencing token; a worker that comes too late is told FENCED and changes nothing. The attempt
 * is counted when a job is claimed, durably, so a job that kills its process does not run for ever.
 *
 * A job is done at least once and, as far as the manifest can see, at most once per lease: make the
 * work's own effect idempotent, or put it into the transaction that completes the job. */
#ifndef JZX_MANIFEST_JOB_H
#define JZX_MANIFEST_JOB_H

#include <jzx/manifest_record.h>
#include <jzx/manifest_store.h>
#include <jzx/manifest_txn.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum jzx_mf_job_state {
    JZX_MF_JOB_WAITING = 1,   /* for the jobs it comes after */
    JZX_MF_JOB_SCHEDULED = 2, /* for its time: run_at, or backoff */
    JZX_MF_JOB_READY = 3,
    JZX_MF_JOB_BLOCKED = 4, /* by an active job with its key, by a gate, or by a limit per key */
    JZX_MF_JOB_ACTIVE = 5,
    JZX_MF_JOB_DONE = 6,
    JZX_MF_JOB_DEAD = 7, /* jzx_mf_job_retry() gives it another life */
    JZX_MF_JOB_CANCELLED = 8,
    JZX_MF_JOB_SUPERSEDED = 9 /* a retry found a newer one queued; see jzx_mf_on_retry */
} jzx_mf_job_state;
/* "ready", "dead", ... Never NULL. Thread: any. */
JZX_API const char *jzx_mf_job_state_name(uint32_t state);

/* How many jobs with the same (scope, db, kind, key) there may be. Queued: WAITING, SCHEDULED,
 * READY or BLOCKED. 0 is the default: in a job's spec ANY, every enqueue makes a job; in a schedule
 * STATELY, so that times do not pile up while no worker runs. */
typedef enum jzx_mf_unique {
    JZX_MF_SHORT = 1,     /* one queued, any number active */
    JZX_MF_SINGLETON = 2, /* any number queued, one active */
    JZX_MF_EXCLUSIVE = 3, /* one, queued or active */
    JZX_MF_ANY = 4,       /* no rule */
    JZX_MF_STATELY = 5    /* one queued and one active */
} jzx_mf_unique;

/* What happens when a job must go back to the queue and its place there is taken. */
typedef enum jzx_mf_on_retry {
    JZX_MF_COALESCE = 0, /* it is SUPERSEDED, the queued one stays */
    JZX_MF_KEEP_OLD = 1, /* the queued one is SUPERSEDED, it goes back */
    JZX_MF_BOTH = 2      /* both stay */
} jzx_mf_on_retry;

/* What happens to a job when one that it comes after ends otherwise than DONE. */
typedef enum jzx_mf_on_parent {
    JZX_MF_PARENT_CANCELS = 0, /* it is CANCELLED, and so on down */
    JZX_MF_PARENT_IGNORED = 1  /* an end is an end */
} jzx_mf_on_parent;

#define JZX_MF_SCOPE_GLOBAL 0u
#define JZX_MF_SCOPE_DB 1u
#define JZX_MF_NO_LIMIT UINT32_MAX
#define JZX_MF_AFTER_MAX 64u

/* Bits of jzx_mf_job_spec.flags. Both need a policy in `unique`: without one no job is met. */
#define JZX_MF_OR_ABORT 0x1u /* a job that is there already refuses the transaction: ALREADY */
#define JZX_MF_REPLACE 0x2u  /* a queued one gets this payload, time and priority: a debounce */

/* A job to be. Zero is the default everywhere but in `kind`. */
typedef struct jzx_mf_job_spec {
    uint16_t kind;       /* required: 1 to 65,535 */
    uint16_t gate_class; /* not 0: while active it holds the gate (db, gate_class), which excludes
                            all others with the same */
    uint8_t scope;       /* JZX_MF_SCOPE_*; GLOBAL: db is 0 */
    uint8_t unique;      /* jzx_mf_unique; 0: ANY. Jobs are merged only if this asks for it */
    uint8_t on_retry;    /* jzx_mf_on_retry */
    uint8_t on_parent;   /* jzx_mf_on_parent */
    uint64_t db;
    jzx_mf_span key;       /* shard or partition: jobs with other keys run side by side */
    jzx_mf_span payload;   /* at most JZX_MF_PAYLOAD_MAX */
    uint64_t run_at_ms;    /* not before; 0: now */
    uint64_t delay_ms;     /* instead of run_at_ms: from the commit on */
    const uint64_t *after; /* ids of jobs that must end first */
    uint32_t after_count;
    uint32_t priority;       /* 0 to 255; larger first */
    uint32_t max_attempts;   /* 20; JZX_MF_NO_LIMIT */
    uint32_t lease_ms;       /* 30,000: without a heartbeat that long it is taken back */
    uint32_t timeout_ms;     /* of one run, heartbeats or not; 0: none */
    uint32_t backoff_min_ms; /* 1,000; doubles with every attempt */
    uint32_t backoff_max_ms; /* 3,600,000 */
    uint32_t jitter_percent; /* 0: 10; of the backoff, either way; JZX_MF_NO_JITTER */
    uint32_t flags;
} jzx_mf_job_spec;
#define JZX_MF_NO_JITTER UINT32_MAX

/* The right to work on a job; a fencing token. Frozen. */
typedef struct jzx_mf_lease {
    uint64_t job_id;
    uint64_t boot;
    uint32_t attempt;
    uint32_t reserved;
} jzx_mf_lease;

/* A job as it is stored. */
typedef struct jzx_mf_job {
    uint64_t id;
    uint64_t db;
    uint64_t created_ms;
    uint64_t run_at_ms;
    uint64_t started_ms; /* of the last attempt */
    uint64_t finished_ms;
    uint64_t boot;           /* of the last lease */
    uint64_t lease_until_ms; /* on the lease clock: comparable within one boot only */
    uint64_t timeout_at_ms;  /* likewise */
    uint64_t worker;         /* the worker that claimed it: jzx_mf_claim.worker */
    uint64_t progress_done;
    uint64_t progress_total;
    uint64_t error_ms;
    uint32_t attempt; /* claims so far */
    uint32_t max_attempts;
    uint32_t lease_ms;
    uint32_t timeout_ms;
    uint32_t backoff_min_ms;
    uint32_t backoff_max_ms;
    uint32_t jitter_percent;
    uint32_t after_left; /* jobs that must still end first */
    int32_t error_code;
    uint32_t flags; /* of the spec */
    uint32_t spent; /* of `attempt` and max_attempts: earlier lives and what did not count */
    uint16_t kind;
    uint16_t gate_class;
    uint8_t state; /* jzx_mf_job_state */
    uint8_t scope;
    uint8_t unique; /* never 0 */
    uint8_t on_retry;
    uint8_t on_parent;
    uint8_t priority;
    uint8_t cancel; /* 1: asked to stop; its worker learns of it by the next heartbeat */
    uint8_t reserved;
    jzx_mf_span key;
    jzx_mf_span payload;
    jzx_mf_span result;
    jzx_mf_span error;      /* text of the last failure */
    jzx_mf_span progress;   /* text of the last heartbeat */
    jzx_mf_span blocked_on; /* while BLOCKED: what it waits for, as the library writes it */
} jzx_mf_job;

static inline jzx_mf_lease jzx_mf_lease_of(const jzx_mf_job *job)
{
    jzx_mf_lease lease = {job->id, job->boot, job->attempt, 0};
    return lease;
}

/* What an enqueue came to. The receipt counts both: jobs_new and jobs_met. */
typedef enum jzx_mf_enqueued {
    JZX_MF_NEW = 0,
    JZX_MF_EXISTS_QUEUED = 1, /* no new job: slot.id is the one that is there */
    JZX_MF_EXISTS_ACTIVE = 2, /* likewise */
    JZX_MF_REPLACED = 3       /* likewise, with the new payload, time and priority */
} jzx_mf_enqueued;

/* Operations of a transaction, as in jzx/manifest_txn.h. Thread: any, one at a time.
 *
 * Puts a job into the queue. *out_id (may be NULL) is the id it will have if slot.outcome is NEW,
 * to be used at once in `after` of others in this transaction; ids are never used twice. A
 * DB-scoped job needs no db record. Errors: INVALID_ARG (an argument is missing, the kind is 0, or
 * a number is out of range), TOO_BIG (a text or payload is over its limit, or the transaction has
 * JZX_MF_OPS_MAX operations), NEWER_STRUCT, NO_MEMORY, ALREADY (at the commit: JZX_MF_OR_ABORT, and
 * the job is there), NOT_FOUND (at the commit: a job in `after` never was, or was pruned). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_job_enqueue_sized(jzx_mf_txn *txn, const jzx_mf_job_spec *spec,
                                                       size_t size, uint64_t *out_id);
static inline JZX_NODISCARD jzx_err jzx_mf_job_enqueue(jzx_mf_txn *txn, const jzx_mf_job_spec *spec,
                                                       uint64_t *out_id)
{
    return jzx_mf_job_enqueue_sized(txn, spec, sizeof *spec, out_id);
}

/* Zero is the default everywhere. */
typedef struct jzx_mf_claim {
    const uint16_t *kinds; /* borrowed for the call */
    uint32_t kind_count;   /* 0: all kinds */
    uint32_t max;          /* jobs at most; 1 */
    uint64_t worker;       /* remembered in the job, for people */
    uint32_t wait_ms;      /* how long to wait for the first one; 0: not at all. Only as the one
                              operation of its transaction */
    uint32_t lease_ms;     /* 0: what each job says */
} jzx_mf_claim;
/* Claims the best jobs: priority, then time, then id. receipt->jobs has them. Errors: as
 * jzx_mf_job_enqueue() but ALREADY and NOT_FOUND. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_job_claim_sized(jzx_mf_txn *txn, const jzx_mf_claim *claim,
                                                     size_t size);
static inline JZX_NODISCARD jzx_err jzx_mf_job_claim(jzx_mf_txn *txn, const jzx_mf_claim *claim)
{
    return jzx_mf_job_claim_sized(txn, claim, sizeof *claim);
}

/* Keeps a lease for another lease_ms (extend_ms 0) from now, but not beyond the job's timeout;
 * tells how far the work is (total 0: not known; an empty text leaves the last one). slot.outcome
 * 1: the job was cancelled, or its time is up. Errors: as jzx_mf_job_prune(), TOO_BIG (the text is
 * over its limit), FENCED (at the commit: the lease is not valid any more). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_job_heartbeat(jzx_mf_txn *txn, const jzx_mf_lease *lease,
                                                   uint32_t extend_ms, uint64_t done,
                                                   uint64_t total, jzx_mf_span text);
/* The job is DONE. Errors: as jzx_mf_job_heartbeat(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_job_complete(jzx_mf_txn *txn, const jzx_mf_lease *lease,
                                                  jzx_mf_span result);
/* Back to the queue after its backoff, or DEAD when its attempts are used up. */
#define JZX_MF_FAIL_NOW 0x1u       /* without backoff */
#define JZX_MF_FAIL_FOR_GOOD 0x2u  /* DEAD, whatever is left */
#define JZX_MF_FAIL_UNCOUNTED 0x4u /* this attempt does not count: a snooze */
/* Frozen. */
typedef struct jzx_mf_failure {
    jzx_mf_span text;
    uint64_t delay_ms; /* instead of the backoff; 0: the backoff */
    int32_t code;
    uint32_t flags; /* JZX_MF_FAIL_* */
} jzx_mf_failure;
/* Ends an attempt that failed. Errors: as jzx_mf_job_heartbeat(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_job_fail(jzx_mf_txn *txn, const jzx_mf_lease *lease,
                                              const jzx_mf_failure *failure);
/* A queued job is CANCELLED at once; of an active one its worker is told by its next heartbeat, and
 * however it ends then, it is not tried again. Errors: as jzx_mf_job_prune(), NOT_FOUND (at the
 * commit: there is no such job; it never was, or it was pruned), WRONG_STATE (at the commit: the
 * job is finished). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_job_cancel(jzx_mf_txn *txn, uint64_t job);
/* A DEAD or CANCELLED job is queued again with a fresh count of attempts. Errors: as
 * jzx_mf_job_cancel() but WRONG_STATE, WRONG_STATE (at the commit: the job is neither dead nor
 * cancelled), ALREADY (at the commit: the job's place in the queue is taken). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_job_retry(jzx_mf_txn *txn, uint64_t job);
/* Forgets a finished job. Errors: as jzx_mf_job_cancel() but WRONG_STATE, WRONG_STATE (at the
 * commit: the job is not finished). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_job_del(jzx_mf_txn *txn, uint64_t job);
/* Forgets finished jobs that are older than the retention says, `max` at most (0: prune_max). The
 * writer does so by itself. Errors: INVALID_ARG, TOO_BIG (the transaction has JZX_MF_OPS_MAX
 * operations), NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_job_prune(jzx_mf_txn *txn, uint32_t max);

/* What holds for all jobs of a kind. Durable. */
typedef struct jzx_mf_kind {
    jzx_mf_span name;     /* for people */
    uint32_t limit;       /* active at once; 0: no limit */
    uint32_t key_limit;   /* active at once with the same (scope, db, key); 0: no limit */
    uint16_t orphan_kind; /* not 0: when the lease of such a job ends unheard (the process died or
                             closed, the time was up), a job of this kind goes before it, made in
                             the same commit: its payload is that job's id, 8 bytes big-endian */
    uint8_t paused;       /* nothing is claimed */
    uint8_t reserved[5];
} jzx_mf_kind;
/* Errors: as jzx_mf_job_claim(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_kind_put_sized(jzx_mf_txn *txn, uint16_t kind,
                                                    const jzx_mf_kind *record, size_t size);
static inline JZX_NODISCARD jzx_err jzx_mf_kind_put(jzx_mf_txn *txn, uint16_t kind,
                                                    const jzx_mf_kind *record)
{
    return jzx_mf_kind_put_sized(txn, kind, record, sizeof *record);
}
/* Changes `paused` only. Errors: as jzx_mf_job_claim() but NEWER_STRUCT. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_kind_pause(jzx_mf_txn *txn, uint16_t kind, int paused);

/* A job that comes again and again. */
typedef struct jzx_mf_cron {
    jzx_mf_span name; /* required; what it is found by */
    jzx_mf_span
        schedule; /* required: "minute hour day month weekday" in UTC, "@hourly", "@every 90s" */
    jzx_mf_span key;
    jzx_mf_span payload;
    uint64_t db;
    uint64_t next_ms; /* set by the library */
    uint64_t last_ms; /* likewise; 0: never so far */
    uint32_t max_attempts;
    uint32_t priority;
    uint16_t kind; /* required */
    uint16_t gate_class;
    uint8_t scope;
    uint8_t unique; /* jzx_mf_unique; 0: STATELY */
    uint8_t paused;
    uint8_t reserved;
} jzx_mf_cron;
/* Replaces the entry with this name. Times that were missed while the program did not run are made
 * up for by one job. Errors: as jzx_mf_job_claim(), BAD_SPEC (the schedule cannot be
 * understood). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_cron_put_sized(jzx_mf_txn *txn, const jzx_mf_cron *record,
                                                    size_t size);
static inline JZX_NODISCARD jzx_err jzx_mf_cron_put(jzx_mf_txn *txn, const jzx_mf_cron *record)
{
    return jzx_mf_cron_put_sized(txn, record, sizeof *record);
}
/* Errors: as jzx_mf_job_prune(), TOO_BIG (the name is over its limit). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_cron_del(jzx_mf_txn *txn, jzx_mf_span name);

#ifdef __cplusplus
}
#endif
#endif
