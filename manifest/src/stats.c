/* A moment's numbers of a manifest. */
#include "mf.h"
#include "snap.h"

#include <jzx/manifest_read.h>
#include <jzx/observe.h>

#include <string.h>

static uint64_t count_of(const _Atomic uint64_t *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

static void read_counts(const jzx_mf *mf, jzx_mf_stats *out)
{
    const mfi_counts *counts = &mf->counts;
    out->commits = count_of(&counts->commits);
    out->requests = count_of(&counts->requests);
    out->refused = count_of(&counts->refused);
    out->batch_max = count_of(&counts->batch_max);
    out->commit_ns = count_of(&counts->commit_ns);
    out->commit_max_ns = count_of(&counts->commit_max_ns);
    out->waiters = count_of(&counts->waiters);
    out->claims_waiting = count_of(&counts->claims_waiting);
    out->followers = count_of(&counts->followers);
    out->leases_expired = count_of(&counts->leases_expired);
    out->pruned = count_of(&counts->pruned);
    out->readers_reaped = count_of(&counts->readers_reaped);
}

static jzx_err read_file(jzx_mf_snap *snap, void *arg)
{
    jzx_mf_stats *out = arg;
    mfi_meta meta;
    jzx_err err = mfi_meta_load(&snap->view, &meta);
    if (err != JZX_OK) {
        return err;
    }
    out->commit_seq = meta.commit_seq;
    out->boot = meta.boot;
    out->now_ms = meta.last_ms;
    for (uint32_t table = 0; table < JZX_MF_TABLES; table++) {
        out->entries[table] = mfi_entries(&snap->view, table);
    }
    return mfi_store_size(snap->view.store, snap->view.txn, &out->file_bytes, &out->free_bytes);
}

jzx_err jzx_mf_stats_read_sized(jzx_mf *mf, jzx_mf_stats *out, size_t out_size)
{
    if (mf == NULL || out == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_mf_stats stats = {0};
    jzx_err err = jzx_mf_read(mf, read_file, &stats);
    /* A file in doubt may not even be readable; its numbers are missing then. */
    if (err != JZX_OK && err != JZX_ERR_IN_DOUBT) {
        return err;
    }
    read_counts(mf, &stats);
    stats.map_max = mf->opts.map_max;
    stats.err = atomic_load_explicit(&mf->err, memory_order_relaxed);
    mfi_store_readers(mf->store, &stats.snapshots, &stats.oldest_snapshot_ms);
    stats.readers = mfi_store_reader_slots(mf->store);
    if (!mf->readonly) {
        stats.now_ms = mfi_clock_now_ms(&mf->clock);
        uint32_t depth = jzx_mailbox_depth(mf->loop, mf->writer);
        stats.queued = depth == UINT32_MAX ? 0 : depth;
    }
    memset(out, 0, out_size);
    memcpy(out, &stats, out_size < sizeof stats ? out_size : sizeof stats);
    return JZX_OK;
}
