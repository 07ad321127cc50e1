/* What the parts of the queue share: a job in memory, what it holds, and how it ends.
 *
 * BLOCKED and READY are one thing to the outside: a job that may run as soon as what it wants is
 * free. A claim that finds it taken puts the job aside, under the name of what is taken, so that
 * the next claim does not look at it again. Two rules bring it back:
 *   - freeing something wakes the best job that was put aside for it, of each kind;
 *   - a READY job that goes away without taking what it wanted wakes the next one in its place
 *     (mfi_job_pass_on), since it may have been woken for exactly that.
 * So the best jobs that something is free for are never aside. */
#ifndef MFI_QUEUE_STEPS_H
#define MFI_QUEUE_STEPS_H

#include "key.h"
#include "queue.h"

/* queue_record.c: a job in memory with the bytes that its spans point to. */
typedef struct mfi_record {
    jzx_mf_job job;
    mfi_rest rest;  /* what this library does not know stays in the record */
    jzx_mf_key row; /* its row in the index of its state, as it is stored; len 0: none */
    uint8_t *bytes; /* the value as it was loaded; `small` or owned */
    uint8_t small[512];
} mfi_record;

/* Works on a loaded job; it may save it or not. */
typedef jzx_err (*mfi_record_fn)(mfi_tx *tx, mfi_record *rec, void *arg);
/* NOT_FOUND: there is no such job. Else what fn says. */
jzx_err mfi_record_with(mfi_tx *tx, uint64_t id, mfi_record_fn fn, void *arg);
/* The job that a row of an index or of the slots names: CORRUPT when there is none. */
jzx_err mfi_record_of_row(mfi_tx *tx, uint64_t id, mfi_record_fn fn, void *arg);
/* Writes the record; its row in the indexes follows its state. The only way a job changes. */
jzx_err mfi_record_save(mfi_tx *tx, mfi_record *rec);
/* Deletes the record and its row. */
jzx_err mfi_record_drop(mfi_tx *tx, mfi_record *rec);
bool mfi_job_is_queued(const jzx_mf_job *job);
/* SCHEDULED or READY, as its time is. */
uint8_t mfi_job_due_state(const mfi_tx *tx, const jzx_mf_job *job);
/* A row that must be there: NOT_FOUND is CORRUPT. */
jzx_err mfi_row_del(mfi_tx *tx, const jzx_mf_key *key);
uint64_t mfi_sum_ms(uint64_t a, uint64_t b); /* stays at UINT64_MAX */

/* queue_slots.c: what a job holds besides its lease. */
bool mfi_job_wants_slot(const jzx_mf_job *job, uint8_t slot);
/* *out_id 0: no job has the slot. */
jzx_err mfi_slot_holder(const mfi_view *view, const jzx_mf_job *job, uint8_t slot,
                        uint64_t *out_id);
jzx_err mfi_slot_take(mfi_tx *tx, const jzx_mf_job *job, uint8_t slot);
/* If the job has it. */
jzx_err mfi_slot_free(mfi_tx *tx, const jzx_mf_job *job, uint8_t slot, bool *out_freed);
/* Takes all that an active job has. */
jzx_err mfi_job_take(mfi_tx *tx, const jzx_mf_job *job, const jzx_mf_kind *rules);
/* Gives back what an active job has, but for its gate, and wakes others. */
jzx_err mfi_job_release(mfi_tx *tx, const jzx_mf_job *job);
/* If the job has it. */
jzx_err mfi_gate_release(mfi_tx *tx, const jzx_mf_job *job);

/* queue_blocked.c: jobs that were put aside. */
/* If something that the job wants is taken: puts it aside. */
jzx_err mfi_job_block(mfi_tx *tx, mfi_record *rec, const jzx_mf_kind *rules, bool *out_blocked);
/* How many rows that begin so there may still be. */
jzx_err mfi_active_room(const mfi_view *view, const jzx_mf_key *prefix, uint32_t limit,
                        uint32_t *out_room);
jzx_err mfi_slot_offer(mfi_tx *tx, const jzx_mf_job *job);      /* the ACTIVE slot is free */
jzx_err mfi_key_limit_offer(mfi_tx *tx, const jzx_mf_job *job); /* one less with its key */
jzx_err mfi_gate_offer(mfi_tx *tx, const jzx_mf_job *job);      /* the gate is free */
jzx_err mfi_job_pass_on(mfi_tx *tx, const jzx_mf_job *job);
/* The limit per key of a kind is larger, or gone. */
jzx_err mfi_kind_offer(mfi_tx *tx, uint16_t kind, uint32_t key_limit);

/* queue_finish.c: ways out of the queue and back into it. */
/* Ends a job that is not finished, frees what it has, and settles those that come after it. */
jzx_err mfi_job_end(mfi_tx *tx, mfi_record *rec, uint8_t state);
/* An active job did not succeed: DEAD, or queued again as it asks for. */
typedef struct mfi_lapse {
    jzx_mf_span text;
    uint64_t run_at_ms;
    int32_t code;
    uint16_t repair_kind; /* not 0: a job of this kind goes first */
    bool for_good;
    bool keep_gate;
} mfi_lapse;
jzx_err mfi_job_lapse(mfi_tx *tx, mfi_record *rec, const mfi_lapse *lapse);
uint64_t mfi_backoff_ms(const jzx_mf_job *job);
/* Starts or cancels those that come after a job that has ended. */
jzx_err mfi_job_settle(mfi_tx *tx, uint64_t parent, bool done);
/* Deletes a finished job. */
jzx_err mfi_job_forget(mfi_tx *tx, mfi_record *rec);

/* queue_kind.c. Zeros for a kind without a record; without its name. */
jzx_err mfi_kind_rules(const mfi_view *view, uint16_t kind, jzx_mf_kind *out);

/* queue_cron.c. When the next entry is due; UINT64_MAX: never. */
jzx_err mfi_cron_next(const mfi_view *view, uint64_t *out_ms);

#endif
