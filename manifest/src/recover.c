#include "recover.h"

#include "audit.h"
#include "migrate.h"
#include "queue.h"

#include <stdio.h>
#include <string.h>

/* Rows per commit: a crash repeats at most these. Fewer would write the same pages again and again:
 * leases are spread over all of them. */
#define ROWS_MAX 65536u

static jzx_err recover_begin(mfi_writer *writer)
{
    mfi_tx *tx = &writer->tx;
    int rc = mdb_txn_begin(mfi_store_env(writer->mf->store), NULL, 0, &tx->view.txn);
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    tx->now_ms = mfi_clock_now_ms(&writer->mf->clock);
    tx->lease_ms = mfi_clock_lease_ms(&writer->mf->clock);
    tx->seq = tx->meta.commit_seq + 1;
    tx->event_index = 0;
    tx->writes = 0;
    tx->written = 0;
    return JZX_OK;
}

static jzx_err recover_finish(mfi_writer *writer, jzx_err err)
{
    mfi_tx *tx = &writer->tx;
    tx->meta.commit_seq = tx->seq;
    tx->meta.last_ms = tx->now_ms;
    if (err == JZX_OK) {
        err = mfi_meta_store(tx);
    }
    if (err == JZX_OK) {
        const mfi_writes writes = {tx->writes, tx->written};
        err = mfi_store_make_room(writer->mf->store, tx->view.txn, &writes, false);
    }
    size_t id = mdb_txn_id(tx->view.txn);
    if (err != JZX_OK) {
        mdb_txn_abort(tx->view.txn);
    } else {
        err = mfi_err_of(mdb_txn_commit(tx->view.txn));
        writer->last_txn = id;
    }
    tx->view.txn = NULL;
    return err;
}

/* One bounded part of what is left to do. */
static jzx_err settle_part(mfi_writer *writer, jzx_mf_recovery *report, mfi_orphans *orphans,
                           bool *out_more)
{
    mfi_tx *tx = &writer->tx;
    bool more = false;
    jzx_err err = mfi_migrate_step(tx, &tx->migrate_at, ROWS_MAX, &more, &report->migrated);
    if (err != JZX_OK || more) {
        *out_more = more;
        return err;
    }
    uint32_t count = 0;
    err = mfi_queue_orphans(tx, ROWS_MAX, orphans, &count);
    *out_more = count == ROWS_MAX;
    return err;
}

void mfi_describe(const mfi_view *view, jzx_mf_recovery *report)
{
    report->databases = mfi_entries(view, JZX_MF_TABLE_DB);
    report->shards = mfi_entries(view, JZX_MF_TABLE_WAL);
    report->chunks = mfi_entries(view, JZX_MF_TABLE_CHUNK);
    report->jobs = mfi_entries(view, JZX_MF_TABLE_JOB);
    report->ready = mfi_entries(view, JZX_MF_TABLE_READY);
    report->scheduled = mfi_entries(view, JZX_MF_TABLE_SCHEDULED);
    report->blocked = mfi_entries(view, JZX_MF_TABLE_BLOCKED);
    report->finished = mfi_entries(view, JZX_MF_TABLE_FINISHED);
    report->gates_held = mfi_entries(view, JZX_MF_TABLE_GATE);
}

/* Where a migration was interrupted: the key points into the map, and the map moves on. */
static void keep_cursor(mfi_tx *tx)
{
    jzx_mf_span *key = &tx->meta.migrate_key;
    key->len = key->len > JZX_MF_KEY_BYTES ? 0 : key->len;
    if (key->len != 0) {
        memcpy(tx->migrate_at.bytes, key->data, key->len);
    }
    key->data = tx->migrate_at.bytes;
}

static jzx_err load(mfi_writer *writer, jzx_mf_recovery *report)
{
    jzx_mf *mf = writer->mf;
    mfi_tx *tx = &writer->tx;
    mfi_reader *reader;
    jzx_err err = mfi_reader_begin(mf->store, &reader);
    if (err != JZX_OK) {
        return err;
    }
    const mfi_view view = {mf->store, mfi_reader_txn(reader)};
    err = mfi_meta_load(&view, &tx->meta);
    if (err == JZX_OK) {
        keep_cursor(tx);
    }
    mfi_reader_end(mf->store, reader);
    if (err != JZX_OK) {
        return err;
    }
    report->commit_seq = tx->meta.commit_seq;
    report->clean = tx->meta.clean;
    mfi_clock_init(&mf->clock, &mf->opts, mf->loop, tx->meta.last_ms, &report->clock_back_ms);
    tx->view.store = mf->store;
    tx->retention = mf->opts.retention;
    tx->events_kept = mf->opts.events_kept;
    tx->all_events = (mf->opts.flags & JZX_MF_ALL_EVENTS) != 0;
    return JZX_OK;
}

typedef struct finding {
    const char *path;
    jzx_mf_recovery *report;
} finding;

static int keep_problem(void *arg, const char *problem, uint64_t done, uint64_t total)
{
    const finding *found = arg;
    (void)done;
    (void)total;
    if (problem == NULL) {
        return 0;
    }
    (void)snprintf(found->report->text, sizeof found->report->text,
                   "%.100s: damaged, and so not brought to schema %u: %.110s", found->path,
                   MFI_SCHEMA, problem);
    return 1;
}

/* Before the keys of an older file get checksums they are looked at: a checksum would make a
 * damaged one look right for ever. */
static jzx_err check_unkeyed(mfi_writer *writer, jzx_mf_recovery *report)
{
    jzx_mf *mf = writer->mf;
    if (writer->tx.meta.schema >= MFI_SCHEMA_KEYED || (mf->opts.flags & JZX_MF_NO_VERIFY) != 0) {
        return JZX_OK;
    }
    mfi_reader *reader;
    jzx_err err = mfi_reader_begin(mf->store, &reader);
    if (err != JZX_OK) {
        return err;
    }
    const mfi_view view = {mf->store, mfi_reader_txn(reader)};
    finding first = {mfi_store_path(mf->store), report};
    jzx_mf_check_report found = {0};
    err = mfi_check_view(&view, keep_problem, &first, &found);
    mfi_reader_end(mf->store, reader);
    return err;
}

jzx_err mfi_recover(mfi_writer *writer, jzx_mf_recovery *report)
{
    jzx_mf *mf = writer->mf;
    mfi_tx *tx = &writer->tx;
    mfi_orphans orphans = {0};
    jzx_err err = load(writer, report);
    if (err == JZX_OK) {
        err = check_unkeyed(writer, report);
    }
    if (err != JZX_OK) {
        return err;
    }
    mf->boot = tx->boot = ++tx->meta.boot;
    orphans.closed = tx->meta.clean != 0;
    tx->meta.clean = 0;
    tx->next_job = &mf->next_job;
    atomic_store(&mf->next_job, tx->meta.job_ids);
    for (bool more = true; err == JZX_OK && more;) {
        more = false;
        err = recover_begin(writer);
        if (err != JZX_OK) {
            return err;
        }
        err = settle_part(writer, report, &orphans, &more);
        tx->meta.job_ids = atomic_load(&mf->next_job) + MFI_JOB_IDS;
        mfi_describe(&tx->view, report);
        err = recover_finish(writer, err);
    }
    atomic_store(&mf->seq, tx->meta.commit_seq);
    report->boot = tx->boot;
    report->orphans = orphans.found;
    report->requeued = orphans.requeued;
    report->died = orphans.died;
    report->repairs = orphans.repairs;
    return err;
}
