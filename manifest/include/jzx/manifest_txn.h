/* A write: operations that are done together or not at all.
 *
 * A transaction collects operations in memory; nothing is looked at or written before it is
 * committed. Then the writer does its operations in order, in one LMDB commit with those of others.
 * If one of them is refused, none is done, and only this transaction is affected. The receipt comes
 * after the commit is on disk.
 *
 *     jzx_mf_txn *txn;
 *     if (jzx_mf_begin(mf, &txn) == JZX_OK) {
 *         err = jzx_mf_generation_bump(txn, MY_COMPONENT, 1);
 *         err = jzx_mf_commit(txn, 0, NULL);
 *     }
 *
 * A transaction is used by one thread at a time. An operation that returns an error was not added;
 * the transaction is as before. Errors "at the commit" are found by the writer: jzx_mf_commit()
 * returns them, and the receipt has them. */
#ifndef JZX_MANIFEST_TXN_H
#define JZX_MANIFEST_TXN_H

#include <jzx/actor.h>
#include <jzx/ask.h>
#include <jzx/manifest_record.h>
#include <jzx/manifest_store.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct jzx_mf_txn jzx_mf_txn;
struct jzx_mf_job;

#define JZX_MF_OPS_MAX 65535u

/* Thread: any. Errors: INVALID_ARG, NO_MEMORY, CLOSED (the manifest is being closed), READ_ONLY,
 * FORKED, IN_DOUBT. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_begin(jzx_mf *mf, jzx_mf_txn **out_txn);
/* Forgets it. NULL is fine. Thread: any. */
JZX_API void jzx_mf_abort(jzx_mf_txn *txn);
/* Operations so far. The receipt has one slot for each. */
JZX_API uint32_t jzx_mf_txn_count(const jzx_mf_txn *txn);

/* What one operation gave. */
typedef struct jzx_mf_slot {
    uint64_t id;      /* enqueue: the job, or the one that was there. bump: the new generation */
    uint32_t outcome; /* enqueue: jzx_mf_enqueued. heartbeat: 1: cancel. claim, prune: how many */
    uint32_t reserved;
} jzx_mf_slot;

/* How a commit ended. Owned by the caller that it was given to; released with
 * jzx_mf_receipt_free(). */
typedef struct jzx_mf_receipt {
    int32_t err;     /* JZX_OK, or why nothing was done */
    uint32_t failed; /* with an error: the operation that was refused, or UINT32_MAX */
    uint64_t seq;    /* the commit it is part of; 0 with an error */
    uint64_t now_ms; /* of that commit, on the manifest's clock */
    const jzx_mf_slot *slots;
    uint32_t slot_count;
    uint32_t job_count; /* claimed */
    const struct jzx_mf_job *jobs;
    uint32_t jobs_new; /* enqueues that made a job */
    uint32_t jobs_met; /* enqueues that made none, because one was there: their slots say which */
} jzx_mf_receipt;
JZX_API void jzx_mf_receipt_free(jzx_mf_receipt *receipt);

/* Commits and waits. The transaction is gone in any case. timeout_ms 0: as long as it takes.
 * *out_receipt (NULL: not wanted) is set whenever the writer answered, also with an error. Also
 * returns what its operations say at the commit. Thread: any but inside an actor's code; with
 * jzx_mf_opts.loop not even the thread that is about to run that loop, which cannot be noticed: it
 * would wait for ever, for no thread would be left to write. Errors: MAILBOX_FULL (`queue_cap`
 * requests wait; try later), TIMED_OUT (the writer did not answer in time; whether the commit was
 * or will be done is not known), DEADLOCK (called inside an actor), CLOSED (the manifest is being
 * closed), READ_ONLY, FORKED, CONFLICT (a condition did not hold), IN_DOUBT (the disk failed during
 * the commit, whose outcome is open; jzx_mf_open() will tell), MAP_FULL, NO_SPACE, NO_MEMORY,
 * CORRUPT, INVALID_ARG. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_commit(jzx_mf_txn *txn, uint32_t timeout_ms,
                                            jzx_mf_receipt **out_receipt);
typedef void (*jzx_mf_done_fn)(void *arg, const jzx_mf_receipt *receipt);
/* Commits; `fn` is called exactly once with the receipt, borrowed, on the writer's thread. It does
 * not block and calls nothing that waits for the writer; it may begin and commit_async. On an error
 * of this call fn is not called, and the transaction is gone. Thread: any. Errors: INVALID_ARG,
 * MAILBOX_FULL (`queue_cap` requests wait; try later), CLOSED (the manifest is being closed),
 * READ_ONLY, FORKED, IN_DOUBT, NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_commit_async(jzx_mf_txn *txn, jzx_mf_done_fn fn, void *arg);

/* Commits from an actor, as an ask: exactly one message of kind JZX_KIND_REPLY follows. With `tag`,
 * its data is the jzx_mf_receipt, which the runtime drops after the behavior returned (or
 * jzx_message_take() it and free it); with JZX_TAG_ASK_FAILED the writer did not answer. `arg` is
 * in the jzx_reply. timeout_ms as in jzx_ask(). On an error nothing follows, and the transaction is
 * gone. The manifest must have been opened with the loop or the system of this actor. Thread: loop,
 * inside an actor. Errors: as jzx_ask() but INVALID_ARG and MAILBOX_FULL and TOO_BIG and
 * NEWER_STRUCT, INVALID_ARG (called outside of an actor), MAILBOX_FULL (`queue_cap` requests wait;
 * try later), NOT_SUPPORTED (the actor is not of the loop or system that the manifest was opened
 * with: use jzx_mf_commit_async() and a sender), CLOSED (the manifest is being closed), READ_ONLY,
 * FORKED, IN_DOUBT. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_commit_ask(jzx_loop *loop, jzx_mf_txn *txn, uint32_t tag,
                                                uint32_t timeout_ms, void *arg,
                                                jzx_ask_ref *out_ref);

/* Conditions. The value that a record must have, by the stamp that reading it gave
 * (jzx_mf_stamp()), or JZX_MF_ABSENT; else the commit fails with CONFLICT. A condition looks at
 * what the operations before it made of the record. Thread: any. Errors: INVALID_ARG, NO_MEMORY,
 * TOO_BIG (JZX_MF_OPS_MAX; for every operation). */
#define JZX_MF_ABSENT UINT64_MAX
#define JZX_MF_PRESENT (UINT64_MAX - 1)
/* Errors: INVALID_ARG (an argument is missing, or a number is out of range), NO_MEMORY, TOO_BIG
 * (the transaction has JZX_MF_OPS_MAX operations), CONFLICT (at the commit: the record has another
 * stamp). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_expect(jzx_mf_txn *txn, const jzx_mf_key *key, uint64_t stamp);
/* Does nothing, durably: its receipt comes after everything that was sent before. Errors: as
 * jzx_mf_expect() but CONFLICT. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_sync(jzx_mf_txn *txn);

/* Records. A put replaces all fields. To delete what is not there is fine. Errors: as
 * jzx_mf_expect() but CONFLICT, INVALID_ARG (a required text is missing), TOO_BIG (a text is over
 * its limit), NEWER_STRUCT, NAME_TAKEN (at the commit: another database has the name). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_db_put_sized(jzx_mf_txn *txn, uint64_t db,
                                                  const jzx_mf_db *record, size_t size);
static inline JZX_NODISCARD jzx_err jzx_mf_db_put(jzx_mf_txn *txn, uint64_t db,
                                                  const jzx_mf_db *record)
{
    return jzx_mf_db_put_sized(txn, db, record, sizeof *record);
}
/* Also its log states and chunks. Jobs stay, and a gate that one of them holds, until it ends.
 * Errors: as jzx_mf_sync(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_db_del(jzx_mf_txn *txn, uint64_t db);
/* Errors: as jzx_mf_sync(), NEWER_STRUCT, NOT_FOUND (at the commit: there is no such database). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_wal_put_sized(jzx_mf_txn *txn, uint64_t db, uint16_t shard,
                                                   const jzx_mf_wal *record, size_t size);
static inline JZX_NODISCARD jzx_err jzx_mf_wal_put(jzx_mf_txn *txn, uint64_t db, uint16_t shard,
                                                   const jzx_mf_wal *record)
{
    return jzx_mf_wal_put_sized(txn, db, shard, record, sizeof *record);
}
/* Errors: as jzx_mf_sync(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_wal_del(jzx_mf_txn *txn, uint64_t db, uint16_t shard);
/* Errors: as jzx_mf_wal_put(), INVALID_ARG (a required text is missing), TOO_BIG (a text is over
 * its limit). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_chunk_put_sized(jzx_mf_txn *txn, uint64_t db, uint64_t chunk,
                                                     const jzx_mf_chunk *record, size_t size);
static inline JZX_NODISCARD jzx_err jzx_mf_chunk_put(jzx_mf_txn *txn, uint64_t db, uint64_t chunk,
                                                     const jzx_mf_chunk *record)
{
    return jzx_mf_chunk_put_sized(txn, db, chunk, record, sizeof *record);
}
/* Errors: as jzx_mf_sync(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_chunk_del(jzx_mf_txn *txn, uint64_t db, uint64_t chunk);
/* Errors: as jzx_mf_sync(), INVALID_ARG (a required text is missing), TOO_BIG (a text is over its
 * limit), NEWER_STRUCT. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_material_put_sized(jzx_mf_txn *txn,
                                                        const jzx_mf_material *record, size_t size);
static inline JZX_NODISCARD jzx_err jzx_mf_material_put(jzx_mf_txn *txn,
                                                        const jzx_mf_material *record)
{
    return jzx_mf_material_put_sized(txn, record, sizeof *record);
}
/* Errors: as jzx_mf_sync(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_material_del(jzx_mf_txn *txn, jzx_mf_span id);
/* From one status to another, exactly once. `retries` is added. Errors: as jzx_mf_sync(), CONFLICT
 * (at the commit: the material is not in the status `from`), NOT_FOUND (at the commit: there is no
 * such material). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_material_move(jzx_mf_txn *txn, jzx_mf_span id, uint8_t from,
                                                   uint8_t to, uint32_t retries);
/* Errors: as jzx_mf_sync(), INVALID_ARG (a number is NaN), NEWER_STRUCT. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_metric_merge_sized(jzx_mf_txn *txn, uint64_t scope,
                                                        uint32_t metric, const jzx_mf_metric *delta,
                                                        size_t size);
static inline JZX_NODISCARD jzx_err jzx_mf_metric_merge(jzx_mf_txn *txn, uint64_t scope,
                                                        uint32_t metric, const jzx_mf_metric *delta)
{
    return jzx_mf_metric_merge_sized(txn, scope, metric, delta, sizeof *delta);
}
/* One observation of a value; it is counted in bucket `bucket` (JZX_MF_BUCKETS and up: in none).
 * Errors: as jzx_mf_sync(), INVALID_ARG (the value is NaN). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_metric_add(jzx_mf_txn *txn, uint64_t scope, uint32_t metric,
                                                double value, uint32_t bucket);
/* The new generation is in the slot. Errors: as jzx_mf_sync(), INVALID_ARG (`by` is 0). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_generation_bump(jzx_mf_txn *txn, uint32_t component,
                                                     uint64_t by);

#ifdef __cplusplus
}
#endif
#endif
