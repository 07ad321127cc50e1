/* Access to the tables inside one LMDB transaction.
 *
 * A view reads; a tx is a view that also writes, with the clock and the counters of the commit it
 * belongs to. Everything that changes tables takes a tx and knows nothing of actors. */
#ifndef MFI_TX_H
#define MFI_TX_H

#include "codec.h"
#include "store.h"

#include <jzx/manifest_job.h>

#include <stdatomic.h>
#include <stdbool.h>

/* A place to read from. A snapshot of the public API is one. */
typedef struct mfi_view {
    mfi_store *store;
    MDB_txn *txn;
} mfi_view;

/* What the commit did that others wait for; the writer looks at it afterwards. Only ever set, so
 * that an operation that was rolled back costs a look in vain. */
typedef struct mfi_news {
    bool ready;      /* something may be claimed */
    bool schedule;   /* the next due time, lease end or cron time may have changed */
    bool generation; /* a generation was bumped */
    bool event;      /* there are events */
} mfi_news;

typedef struct mfi_tx {
    mfi_view view;
    uint64_t now_ms;   /* the manifest's clock */
    uint64_t lease_ms; /* the lease clock: starts where now_ms did at this boot, never jumps */
    uint64_t boot;
    uint64_t seq;         /* of this commit */
    uint32_t event_index; /* next one within the commit */
    uint64_t writes;      /* in this transaction so far, */
    uint64_t written;     /* and bytes of their values */
    bool all_events;
    _Atomic uint64_t *next_job; /* ids come from here; NULL: from meta */
    mfi_meta meta;              /* as it will be stored; job_ids and event_first may be raised */
    jzx_mf_key migrate_at;      /* what meta.migrate_key points to */
    jzx_mf_retention retention; /* without zeros */
    uint32_t events_kept;
    mfi_news news;
    mfi_buf buf; /* for encoding */
} mfi_tx;

/* Every function here looks at the checksum of the rows it touches (row.h), also of those on both
 * sides of a row that is not there: CORRUPT instead of a wrong answer.
 *
 * NOT_FOUND, or *out points into the map, until the next write of this transaction. */
jzx_err mfi_get(const mfi_view *view, const jzx_mf_key *key, jzx_mf_span *out);
/* The same, for a row that is mostly not there: one search, where mfi_get() makes a second one to
 * prove it. For a row that is there it is dearer. */
jzx_err mfi_get_seldom(const mfi_view *view, const jzx_mf_key *key, jzx_mf_span *out);
/* Only whether it is there: OK, NOT_FOUND, CORRUPT. */
jzx_err mfi_find(const mfi_view *view, const jzx_mf_key *key);
/* Seals the row: the record gets its checksum, in place; that of an index is not changed. CORRUPT
 * may come after it was written: nothing of the transaction must be kept then. */
jzx_err mfi_put(mfi_tx *tx, const jzx_mf_key *key, void *value, size_t len);
/* A row of an index. */
jzx_err mfi_put_id(mfi_tx *tx, const jzx_mf_key *key, uint64_t id); /* be64 */
jzx_err mfi_put_empty(mfi_tx *tx, const jzx_mf_key *key);
/* NOT_FOUND is an error here: indexes that miss a row are corrupt, and the caller says so. */
jzx_err mfi_del(mfi_tx *tx, const jzx_mf_key *key);
/* Only the row that has this id. NOT_FOUND: there is none, or it has another. */
jzx_err mfi_del_id(mfi_tx *tx, const jzx_mf_key *key, uint64_t id);
/* NOT_FOUND, CORRUPT (not 8 bytes). */
jzx_err mfi_get_id(const mfi_view *view, const jzx_mf_key *key, uint64_t *out);
jzx_err mfi_get_id_seldom(const mfi_view *view, const jzx_mf_key *key, uint64_t *out);

/* The first row at or after `from`: copies its key; *value points into the map. NOT_FOUND at the
 * end of the table. `prefix`: NOT_FOUND also when the row does not begin with prefix_len bytes of
 * `from`. */
jzx_err mfi_seek(const mfi_view *view, const jzx_mf_key *from, uint32_t prefix_len, jzx_mf_key *key,
                 jzx_mf_span *value);
/* The smallest key after this one, for going on. */
jzx_mf_key mfi_key_after(const jzx_mf_key *key);

/* Walks a table from a key on; the callback must not write. Ends with what it returned. */
typedef jzx_err (*mfi_row_fn)(void *arg, jzx_mf_span key, jzx_mf_span value);
jzx_err mfi_walk(const mfi_view *view, const jzx_mf_key *from, uint32_t prefix_len, mfi_row_fn fn,
                 void *arg);
/* Walks a whole table and checks nothing: for callers that tell what is wrong with it. */
jzx_err mfi_walk_raw(const mfi_view *view, uint32_t table, mfi_row_fn fn, void *arg);
uint64_t mfi_entries(const mfi_view *view, uint32_t table);

/* Says that a record changed: an event, if its table is one of those that are told. */
jzx_err mfi_tell(mfi_tx *tx, const jzx_mf_key *key, uint32_t change);
/* Forgets the oldest events beyond events_kept, `max` at most. */
jzx_err mfi_forget_events(mfi_tx *tx, uint32_t max);

/* An id for a job that no request asked for: cron, repair. */
uint64_t mfi_new_job(mfi_tx *tx);

/* The policy of a stored job: 0 was STATELY once, before it was the default for ANY. */
static inline uint8_t mfi_stored_policy(uint8_t unique)
{
    return unique == 0 ? JZX_MF_STATELY : unique;
}

/* The record of the file itself. */
jzx_err mfi_meta_load(const mfi_view *view, mfi_meta *out);
jzx_err mfi_meta_store(mfi_tx *tx);

#endif
