/* Read transactions that are used again and again.
 *
 * A slot is taken by one atomic exchange. A thread first tries the slot it had last, then the
 * slots from the first one on, so that there are as few transactions as there were readers at once,
 * and threads that read all the time do not meet. */
#include "store_steps.h"

#include "clock.h"
#include "memory.h"

jzx_err mfi_readers_init(mfi_store *store, uint32_t cap)
{
    store->readers = mfi_alloc_aligned(_Alignof(mfi_reader), cap * sizeof(mfi_reader));
    if (store->readers == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < cap; i++) {
        store->readers[i] = (mfi_reader){.txn = NULL};
    }
    store->readers_cap = cap;
    if (store->clock_ms == NULL) {
        store->clock_ms = mfi_clock_coarse_ms;
    }
    return JZX_OK;
}

void mfi_readers_deinit(mfi_store *store)
{
    for (uint32_t i = 0; i < store->readers_cap; i++) {
        /* Transactions of the parent are not ours to end: their slots are in shared memory. */
        if (store->readers[i].txn != NULL && !mfi_store_forked(store)) {
            mdb_txn_abort(store->readers[i].txn);
        }
    }
    mfi_free(store->readers);
    store->readers = NULL;
    store->readers_cap = 0;
}

/* Acquire: the partner is the release in give_back(). */
static bool store_readers_take(mfi_reader *reader)
{
    return atomic_load_explicit(&reader->busy, memory_order_relaxed) == 0 &&
           atomic_exchange_explicit(&reader->busy, 1, memory_order_acquire) == 0;
}

static void store_readers_give_back(mfi_reader *reader)
{
    atomic_store_explicit(&reader->since_ms, 0, memory_order_relaxed);
    atomic_store_explicit(&reader->busy, 0, memory_order_release);
}

static mfi_reader *take_any(mfi_store *store)
{
    static _Thread_local uint32_t last;
    if (last < store->readers_cap && store_readers_take(&store->readers[last])) {
        return &store->readers[last];
    }
    for (uint32_t i = 0; i < store->readers_cap; i++) {
        if (store_readers_take(&store->readers[i])) {
            last = i;
            return &store->readers[i];
        }
    }
    return NULL;
}

/* LMDB has two roots, and commits write to them in turn. A reader that loses its processor between
 * the number of the last commit and the look at its root finds there, two commits later, a root
 * that is not yet on disk and that the next reader does not see. So a reader that may have been
 * that late begins again. */
static int store_readers_begin(mfi_store *store, mfi_reader *reader)
{
    for (;;) {
        int rc = reader->txn != NULL ? mdb_txn_renew(reader->txn)
                                     : mdb_txn_begin(store->env, NULL, MDB_RDONLY, &reader->txn);
        MDB_envinfo now;
        rc = rc != 0 ? rc : mdb_env_info(store->env, &now);
        if (rc != 0 || now.me_last_txnid <= mdb_txn_id(reader->txn) + 1) {
            return rc;
        }
        mdb_txn_reset(reader->txn);
    }
}

jzx_err mfi_reader_begin(mfi_store *store, mfi_reader **out)
{
    if (mfi_store_forked(store)) {
        return JZX_ERR_FORKED;
    }
    mfi_reader *reader = take_any(store);
    if (reader == NULL) {
        return JZX_ERR_BUSY;
    }
    int rc = store_readers_begin(store, reader);
    if (rc != 0) {
        store_readers_give_back(reader);
        return mfi_err_of(rc);
    }
    atomic_store_explicit(&reader->since_ms, store->clock_ms(store->clock_arg) + 1,
                          memory_order_relaxed);
    *out = reader;
    return JZX_OK;
}

MDB_txn *mfi_reader_txn(mfi_reader *reader)
{
    return reader->txn;
}

void mfi_reader_end(mfi_store *store, mfi_reader *reader)
{
    if (!mfi_store_forked(store)) {
        mdb_txn_reset(reader->txn);
    }
    store_readers_give_back(reader);
}

void mfi_store_readers(mfi_store *store, uint64_t *out_count, uint64_t *out_oldest_ms)
{
    uint64_t now = store->clock_ms(store->clock_arg) + 1;
    uint64_t count = 0;
    uint64_t oldest = now;
    for (uint32_t i = 0; i < store->readers_cap; i++) {
        uint64_t since = atomic_load_explicit(&store->readers[i].since_ms, memory_order_relaxed);
        if (since != 0) {
            count++;
            oldest = since < oldest ? since : oldest;
        }
    }
    *out_count = count;
    *out_oldest_ms = now - oldest;
}

/* LMDB tells its readers as lines of text, after a line of heading. */
static int count_line(const char *line, void *arg)
{
    (void)line;
    (*(uint64_t *)arg)++;
    return 0;
}

uint64_t mfi_store_reader_slots(mfi_store *store)
{
    uint64_t lines = 0;
    if (mfi_store_forked(store) || mdb_reader_list(store->env, count_line, &lines) < 0) {
        return 0;
    }
    return lines == 0 ? 0 : lines - 1;
}

uint32_t mfi_store_reap(mfi_store *store)
{
    int dead = 0;
    if (mfi_store_forked(store) || mdb_reader_check(store->env, &dead) != 0) {
        return 0;
    }
    return (uint32_t)dead;
}
