/* What time does, and when it will next; and what is looked at after a commit now and then. */
#include "queue.h"
#include "writer.h"

#define NEVER UINT64_MAX
/* Rows per commit: the rest comes with the next one, at once. */
#define ROWS_MAX 1024u
/* The system's clock may jump: what is due by it is looked at this often, if there is any. */
#define LOOK_MS 60000u
/* Readers and snapshots are looked at after a commit, this often at most. */
#define TIDY_MS 5000u

typedef jzx_err (*time_fn)(mfi_tx *tx, uint32_t max, uint32_t *out_count);
typedef struct time_work {
    time_fn fn;
    uint32_t max;
    uint32_t count;
} time_work;

bool mfi_writer_is_due(const mfi_writer *writer)
{
    const mfi_due *due = &writer->due;
    if (atomic_load_explicit(&writer->mf->err, memory_order_relaxed) != JZX_OK) {
        return false;
    }
    uint64_t lease_ms = mfi_clock_lease_ms(&writer->mf->clock);
    if (lease_ms < writer->hold_ms) {
        return false;
    }
    uint64_t now_ms = mfi_clock_now_ms(&writer->mf->clock);
    return due->lease_ms <= lease_ms || due->claim_ms <= lease_ms || due->scheduled_ms <= now_ms ||
           due->cron_ms <= now_ms || due->prune_ms <= now_ms;
}

static jzx_err time_step(mfi_writer *writer, void *arg)
{
    time_work *work = arg;
    return work->fn(&writer->tx, work->max, &work->count);
}

/* What one kind of work does; an error leaves it for the next time. */
static uint32_t work(mfi_writer *writer, MDB_txn *parent, time_fn fn, uint32_t max)
{
    time_work one = {fn, max, 0};
    return mfi_writer_child(writer, parent, time_step, &one) == JZX_OK ? one.count : 0;
}

void mfi_writer_time(mfi_writer *writer, MDB_txn *parent)
{
    mfi_tx *tx = &writer->tx;
    const mfi_due *due = &writer->due;
    writer->look = writer->look || mfi_writer_is_due(writer);
    if (due->lease_ms <= tx->lease_ms) {
        writer->expired = work(writer, parent, mfi_queue_expire, ROWS_MAX);
    }
    if (due->cron_ms <= tx->now_ms) {
        (void)work(writer, parent, mfi_queue_fire, ROWS_MAX);
    }
    if (due->scheduled_ms <= tx->now_ms) {
        (void)work(writer, parent, mfi_queue_promote, ROWS_MAX);
    }
    if (due->prune_ms <= tx->now_ms) {
        writer->pruned = work(writer, parent, mfi_queue_prune, tx->retention.prune_max);
    }
}

static jzx_err look(const mfi_view *view, mfi_writer *writer)
{
    mfi_due *due = &writer->due;
    return mfi_queue_next(view, &writer->tx.retention, &due->scheduled_ms, &due->lease_ms,
                          &due->cron_ms, &due->prune_ms);
}

/* Inside a transaction of the writer's, or with one of its own. An error means: look again soon. */
void mfi_writer_look_ahead(mfi_writer *writer)
{
    jzx_err err;
    if (writer->tx.view.txn != NULL) {
        if (!writer->tx.news.schedule && !writer->look) {
            return;
        }
        err = look(&writer->tx.view, writer);
    } else {
        mfi_reader *reader;
        err = mfi_reader_begin(writer->mf->store, &reader);
        if (err == JZX_OK) {
            const mfi_view view = {writer->mf->store, mfi_reader_txn(reader)};
            err = look(&view, writer);
            mfi_reader_end(writer->mf->store, reader);
        }
    }
    writer->look = err != JZX_OK;
    if (err != JZX_OK) {
        writer->due.lease_ms = mfi_clock_lease_ms(&writer->mf->clock) + LOOK_MS;
    }
}

static void note_claims(mfi_writer *writer)
{
    writer->due.claim_ms = NEVER;
    for (const jzx_mf_txn *txn = writer->claims.first; txn != NULL; txn = txn->next) {
        if (txn->wait_until_ms < writer->due.claim_ms) {
            writer->due.claim_ms = txn->wait_until_ms;
        }
    }
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The timer's next time on the lease clock, which is that of the loop. */
static uint64_t next_ms(const mfi_writer *writer)
{
    const mfi_due *due = &writer->due;
    uint64_t lease = sooner(due->lease_ms, due->claim_ms);
    uint64_t stored = sooner(due->scheduled_ms, sooner(due->cron_ms, due->prune_ms));
    if (stored == NEVER) {
        return lease;
    }
    uint64_t now_ms = mfi_clock_now_ms(&writer->mf->clock);
    uint64_t in_ms = stored > now_ms ? sooner(stored - now_ms, LOOK_MS) : 0;
    return sooner(lease, mfi_clock_lease_ms(&writer->mf->clock) + in_ms);
}

jzx_err mfi_writer_arm(jzx_context *ctx, mfi_writer *writer)
{
    note_claims(writer);
    uint64_t at_ms = next_ms(writer);
    at_ms = at_ms < writer->hold_ms ? writer->hold_ms : at_ms;
    if (writer->stopping) {
        at_ms = sooner(at_ms, mfi_clock_lease_ms(&writer->mf->clock) + 1);
    }
    if (at_ms == writer->timer_ms) {
        return JZX_OK;
    }
    if (writer->timer_ms != NEVER) {
        (void)jzx_cancel_timer(ctx->loop, writer->timer);
        writer->timer_ms = NEVER;
    }
    if (at_ms == NEVER) {
        return JZX_OK;
    }
    uint64_t lease_ms = mfi_clock_lease_ms(&writer->mf->clock);
    const jzx_timer_opts opts = {.delay_ms = at_ms > lease_ms ? at_ms - lease_ms : 0,
                                 .tag = MFI_TAG_TICK};
    jzx_err err = jzx_timer_start(ctx->loop, ctx->self, &opts, &writer->timer);
    /* An actor that is ending gets no timer and needs none. */
    if (err == JZX_OK) {
        writer->timer_ms = at_ms;
    }
    return err == JZX_ERR_STOPPING ? JZX_OK : err;
}

void mfi_writer_alarm(mfi_writer *writer, uint32_t kind, jzx_err err, uint64_t value)
{
    uint32_t bit = 1u << kind;
    if ((writer->alarms & bit) != 0) {
        return;
    }
    writer->alarms |= bit;
    if (writer->mf->opts.on_alarm != NULL) {
        const jzx_mf_alarm alarm = {kind, err, value};
        writer->mf->opts.on_alarm(writer->mf->opts.alarm_arg, &alarm);
    }
}

uint64_t mfi_writer_used(mfi_writer *writer)
{
    MDB_envinfo info = {0};
    (void)mdb_env_info(mfi_store_env(writer->mf->store), &info);
    return ((uint64_t)info.me_last_pgno + 1) * writer->tx.meta.page_size;
}

static void look_at_size(mfi_writer *writer)
{
    uint64_t used = mfi_writer_used(writer);
    uint64_t max = writer->mf->opts.map_max;
    if (used >= max / 100 * 95) {
        mfi_writer_alarm(writer, JZX_MF_ALARM_MAP_95, JZX_OK, used);
    }
    if (used >= max / 100 * 80) {
        mfi_writer_alarm(writer, JZX_MF_ALARM_MAP_80, JZX_OK, used);
    }
}

/* An alarm that may come again once its cause was gone. */
static void toggle(mfi_writer *writer, uint32_t kind, bool on, uint64_t value)
{
    if (on) {
        mfi_writer_alarm(writer, kind, JZX_OK, value);
    } else {
        writer->alarms &= ~(1u << kind);
    }
}

void mfi_writer_tidy(mfi_writer *writer)
{
    look_at_size(writer);
    uint64_t lease_ms = writer->tx.lease_ms;
    if (lease_ms - writer->tidied_ms < TIDY_MS) {
        return;
    }
    writer->tidied_ms = lease_ms;
    jzx_mf *mf = writer->mf;
    uint32_t reaped = mfi_store_reap(mf->store);
    atomic_fetch_add_explicit(&mf->counts.readers_reaped, reaped, memory_order_relaxed);
    uint64_t count;
    uint64_t oldest_ms;
    mfi_store_readers(mf->store, &count, &oldest_ms);
    toggle(writer, JZX_MF_ALARM_OLD_SNAPSHOT, oldest_ms >= mf->opts.snapshot_alarm_ms, oldest_ms);
    uint64_t behind_ms = mfi_clock_behind_ms(&mf->clock);
    toggle(writer, JZX_MF_ALARM_CLOCK_BACK, behind_ms != 0, behind_ms);
}
