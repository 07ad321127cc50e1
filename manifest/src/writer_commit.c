/* One commit: the batch, what time has to do, and the claims that wait. */
#include "queue.h"
#include "writer.h"

/* After a commit that failed what time does is tried again this much later. */
#define HOLD_MS 1000u

/* What happened to a whole commit. */
typedef enum verdict {
    COMMITTED, /* or there was nothing to commit */
    SPOILED,   /* a request failed half-way: again, with care */
    FAILED,    /* nothing was done, and the file is as before */
    IN_DOUBT
} verdict;

jzx_err mfi_writer_child(mfi_writer *writer, MDB_txn *parent, mfi_step_fn fn, void *arg)
{
    mfi_tx *tx = &writer->tx;
    MDB_txn *child;
    int rc = mdb_txn_begin(mfi_store_env(writer->mf->store), parent, 0, &child);
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    mfi_meta meta = tx->meta;
    uint32_t event_index = tx->event_index;
    uint64_t writes = tx->writes;
    tx->view.txn = child;
    jzx_err err = fn(writer, arg);
    if (err == JZX_OK) {
        err = mfi_err_of(mdb_txn_commit(child));
    } else {
        mdb_txn_abort(child);
    }
    tx->view.txn = parent;
    if (err != JZX_OK) {
        tx->meta = meta;
        tx->event_index = event_index;
        tx->writes = writes;
    }
    return err;
}

static jzx_err apply_step(mfi_writer *writer, void *arg)
{
    jzx_mf_txn *txn = arg;
    jzx_mf_receipt *receipt = txn->receipt;
    return mfi_apply(&writer->tx, txn, receipt, &receipt->failed);
}

/* Whether it can only fail before it writes: every operation checks first. */
static bool is_simple(const jzx_mf_txn *txn)
{
    uint32_t writing = 0;
    for (const mfi_op *op = txn->first; op != NULL && writing < 2; op = op->next) {
        writing += op->kind == MFI_OP_EXPECT || op->kind == MFI_OP_SYNC ? 0 : 1;
    }
    return writing < 2;
}

/* In a child transaction, or straight in the commit's when that will do: four times cheaper. If it
 * then fails in the middle after all (no memory, no room), nothing of this attempt is kept. */
static jzx_err apply(mfi_writer *writer, MDB_txn *parent, jzx_mf_txn *txn)
{
    if (writer->careful || !is_simple(txn)) {
        return mfi_writer_child(writer, parent, apply_step, txn);
    }
    uint64_t writes = writer->tx.writes;
    jzx_err err = apply_step(writer, txn);
    writer->spoiled = writer->spoiled || (err != JZX_OK && writer->tx.writes != writes);
    return err;
}

/* Does one request, or notes why not. */
static void try_request(mfi_writer *writer, MDB_txn *parent, jzx_mf_txn *txn)
{
    jzx_mf_receipt *receipt = txn->receipt;
    mfi_receipt_reset(receipt);
    if (writer->spoiled) {
        return; /* everything is done again */
    }
    bool grows = mfi_txn_grows(txn);
    jzx_err err =
        grows && txn->bytes > writer->room ? JZX_ERR_MAP_FULL : apply(writer, parent, txn);
    if (err != JZX_OK) {
        uint32_t failed = receipt->failed;
        mfi_receipt_reset(receipt);
        receipt->err = err;
        receipt->failed = failed;
    } else if (grows) {
        writer->room -= txn->bytes;
        writer->grew = true;
    }
}

static bool found_nothing(const jzx_mf_txn *txn)
{
    return txn->waits && txn->receipt->err == JZX_OK && txn->receipt->job_count == 0;
}

/* A claim that found nothing and may wait goes on waiting. */
static bool keeps_waiting(const mfi_writer *writer, const jzx_mf_txn *txn)
{
    return found_nothing(txn) && txn->wait_until_ms > writer->tx.lease_ms && !writer->closing;
}

static void try_batch(mfi_writer *writer, MDB_txn *parent)
{
    for (jzx_mf_txn *txn = writer->batch.first; txn != NULL; txn = txn->next) {
        if (txn->waits && txn->wait_until_ms == 0) {
            txn->wait_until_ms = writer->tx.lease_ms + txn->first->claim.wait_ms;
        }
        try_request(writer, parent, txn);
    }
}

/* Claims that wait are tried again, in their order, when something became ready. An asker that is
 * gone must not get a lease. */
static void try_claims(jzx_context *ctx, mfi_writer *writer, MDB_txn *parent)
{
    for (jzx_mf_txn *txn = writer->claims.first; txn != NULL; txn = txn->next) {
        bool wanted = txn->ask == 0 || jzx_request_is_wanted(ctx, txn->ask) != 0;
        if (wanted && writer->tx.news.ready) {
            try_request(writer, parent, txn);
        }
        if (!wanted) {
            txn->wait_until_ms = 0;
        }
    }
    /* Claims of this batch may have come before the job that makes them worth while. */
    for (jzx_mf_txn *txn = writer->batch.first; txn != NULL && writer->tx.news.ready;
         txn = txn->next) {
        if (found_nothing(txn)) {
            try_request(writer, parent, txn);
        }
    }
}

/* What an attempt that came to nothing gave them was never theirs. */
static void reset_claims(mfi_writer *writer)
{
    for (jzx_mf_txn *txn = writer->claims.first; txn != NULL; txn = txn->next) {
        mfi_receipt_reset(txn->receipt);
    }
}

/* How much larger the file may become. What is on its free list counts only when it matters,
 * because it takes a walk to know. */
static uint64_t room_of(mfi_writer *writer, MDB_txn *txn)
{
    uint64_t max = writer->mf->opts.map_max;
    uint64_t used = mfi_writer_used(writer);
    uint64_t reusable = 0;
    if (used + writer->batch.bytes >= max) {
        (void)mfi_store_size(writer->mf->store, txn, &used, &reusable);
    }
    uint64_t live = used - reusable;
    return live < max ? max - live : 0;
}

static int writer_commit_begin(mfi_writer *writer, MDB_txn **out)
{
    int rc = mdb_txn_begin(mfi_store_env(writer->mf->store), NULL, 0, out);
    if (rc != 0) {
        return rc;
    }
    /* Another writer of the file makes everything that this one remembers wrong. */
    if (mdb_txn_id(*out) != writer->last_txn + 1) {
        mdb_txn_abort(*out);
        return MDB_PANIC;
    }
    mfi_tx *tx = &writer->tx;
    tx->view.txn = *out;
    tx->now_ms = mfi_clock_now_ms(&writer->mf->clock);
    tx->lease_ms = mfi_clock_lease_ms(&writer->mf->clock);
    tx->seq = tx->meta.commit_seq + 1;
    tx->event_index = 0;
    tx->writes = 0;
    tx->written = 0;
    tx->news = (mfi_news){0};
    writer->spoiled = false;
    writer->grew = false;
    writer->expired = 0;
    writer->pruned = 0;
    writer->room = room_of(writer, *out);
    return 0;
}

/* What every commit writes. */
static jzx_err writer_commit_finish(mfi_writer *writer)
{
    mfi_tx *tx = &writer->tx;
    jzx_err err = mfi_forget_events(tx, tx->event_index * 2 + 64);
    if (err != JZX_OK) {
        return err;
    }
    /* Ids that were given out to transactions that are still to come are never given out again,
     * also not after a crash. */
    uint64_t given = atomic_load_explicit(&writer->mf->next_job, memory_order_relaxed);
    if (tx->meta.job_ids < given + MFI_JOB_IDS / 2) {
        tx->meta.job_ids = given + MFI_JOB_IDS;
    }
    tx->meta.commit_seq = tx->seq;
    tx->meta.last_ms = tx->now_ms;
    return mfi_meta_store(tx);
}

static void count_commit(mfi_writer *writer, uint64_t ns)
{
    mfi_counts *counts = &writer->mf->counts;
    atomic_fetch_add_explicit(&counts->commits, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts->leases_expired, writer->expired, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts->pruned, writer->pruned, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts->commit_ns, ns, memory_order_relaxed);
    if (ns > atomic_load_explicit(&counts->commit_max_ns, memory_order_relaxed)) {
        atomic_store_explicit(&counts->commit_max_ns, ns, memory_order_relaxed);
    }
    if (writer->batch.count > atomic_load_explicit(&counts->batch_max, memory_order_relaxed)) {
        atomic_store_explicit(&counts->batch_max, writer->batch.count, memory_order_relaxed);
    }
}

/* LMDB knows whether the page that makes a commit was touched: then every later transaction is
 * refused. An error of the disk is never tried again on the same pages (fsync tells only once). */
static verdict judge(mfi_writer *writer, int rc)
{
    if (!mfi_lacks_room(rc) && mfi_err_of(rc) != JZX_ERR_NO_MEMORY) {
        return IN_DOUBT;
    }
    MDB_txn *txn;
    int again = mdb_txn_begin(mfi_store_env(writer->mf->store), NULL, 0, &txn);
    if (again != 0) {
        return IN_DOUBT;
    }
    mdb_txn_abort(txn);
    return FAILED;
}

/* One try. *out_err says why it failed. */
static verdict attempt(jzx_context *ctx, mfi_writer *writer, jzx_err *out_err)
{
    mfi_tx *tx = &writer->tx;
    const mfi_meta meta = tx->meta;
    MDB_txn *txn;
    int rc = writer_commit_begin(writer, &txn);
    if (rc != 0) {
        *out_err = mfi_err_of(rc);
        return *out_err == JZX_ERR_NO_MEMORY ? FAILED : IN_DOUBT;
    }
    reset_claims(writer);
    if (!writer->alone) {
        mfi_writer_time(writer, txn);
    }
    try_batch(writer, txn);
    try_claims(ctx, writer, txn);
    jzx_err err = tx->writes != 0 && !writer->spoiled ? writer_commit_finish(writer) : JZX_OK;
    if (err == JZX_OK && tx->writes != 0 && !writer->spoiled) {
        const mfi_writes writes = {tx->writes, tx->written};
        err = mfi_store_make_room(writer->mf->store, txn, &writes, writer->grew);
    }
    if (err == JZX_OK) {
        mfi_writer_look_ahead(writer);
    }
    if (err != JZX_OK || tx->writes == 0 || writer->spoiled) {
        mdb_txn_abort(txn);
        tx->view.txn = NULL;
        tx->meta = meta;
        *out_err = err;
        return writer->spoiled ? SPOILED : err == JZX_OK ? COMMITTED : FAILED;
    }
    uint64_t start = mfi_clock_monotonic_ns();
    rc = mdb_txn_commit(txn);
    tx->view.txn = NULL;
    if (rc != 0) {
        tx->meta = meta;
        *out_err = mfi_err_of(rc);
        return judge(writer, rc);
    }
    writer->last_txn++;
    atomic_store_explicit(&writer->mf->seq, tx->seq, memory_order_release);
    count_commit(writer, mfi_clock_monotonic_ns() - start);
    return COMMITTED;
}

/* Everything but the answers. */
static verdict try_commit(jzx_context *ctx, mfi_writer *writer, jzx_err *out_err)
{
    writer->careful = false;
    verdict how = attempt(ctx, writer, out_err);
    if (how == SPOILED) {
        writer->careful = true;
        how = attempt(ctx, writer, out_err);
    }
    return how;
}

/* Answers all of a line but the claims that go on waiting. */
static void answer_line(jzx_context *ctx, mfi_writer *writer, mfi_line line)
{
    for (jzx_mf_txn *txn; (txn = mfi_line_pop(&line)) != NULL;) {
        if (keeps_waiting(writer, txn)) {
            mfi_line_push(&writer->claims, txn);
        } else {
            txn->receipt->seq = txn->receipt->err == JZX_OK ? writer->tx.meta.commit_seq : 0;
            mfi_writer_answer(ctx, writer, txn);
        }
    }
}

static void answer_all(jzx_context *ctx, mfi_writer *writer)
{
    mfi_line claims = writer->claims;
    mfi_line batch = writer->batch;
    /* An answer that cannot be delivered begins the next batch. */
    writer->claims = (mfi_line){0};
    writer->batch = (mfi_line){0};
    answer_line(ctx, writer, claims); /* the older ones first */
    answer_line(ctx, writer, batch);
    atomic_store_explicit(&writer->mf->counts.claims_waiting, writer->claims.count,
                          memory_order_relaxed);
}

static void refuse_line(jzx_context *ctx, mfi_writer *writer, mfi_line *line, jzx_err err)
{
    mfi_line all = *line;
    *line = (mfi_line){0};
    for (jzx_mf_txn *txn; (txn = mfi_line_pop(&all)) != NULL;) {
        mfi_writer_refuse(ctx, writer, txn, err);
    }
}

static void stop_for_good(jzx_context *ctx, mfi_writer *writer, jzx_err err)
{
    atomic_store(&writer->mf->err, JZX_ERR_IN_DOUBT);
    writer->due = (mfi_due){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    mfi_writer_alarm(writer, JZX_MF_ALARM_IN_DOUBT, err, 0);
    refuse_line(ctx, writer, &writer->batch, JZX_ERR_IN_DOUBT);
    refuse_line(ctx, writer, &writer->claims, JZX_ERR_IN_DOUBT);
    mfi_writer_end_waits(ctx, writer);
}

static void note_failure(mfi_writer *writer, jzx_err err)
{
    if (writer->batch.count == 0) { /* what time has to do would fail again at once */
        writer->hold_ms = mfi_clock_lease_ms(&writer->mf->clock) + HOLD_MS;
    }
    if (err == JZX_ERR_NO_SPACE) {
        mfi_writer_alarm(writer, JZX_MF_ALARM_DISK_FULL, err, mfi_store_spare(writer->mf->store));
    }
}

static void note_room(mfi_writer *writer)
{
    writer->hold_ms = 0;
    if (writer->grew) {
        writer->alarms &= ~(1u << JZX_MF_ALARM_DISK_FULL);
    }
}

/* A batch that does not fit as a whole may do so in part: each request on its own, and without what
 * time has to do. */
static void one_by_one(jzx_context *ctx, mfi_writer *writer, jzx_err err)
{
    mfi_line all = writer->batch;
    writer->batch = (mfi_line){0};
    writer->alone = true;
    for (jzx_mf_txn *txn; (txn = mfi_line_pop(&all)) != NULL;) {
        mfi_line_push(&writer->batch, txn);
        switch (try_commit(ctx, writer, &err)) {
        case COMMITTED:
            note_room(writer);
            answer_all(ctx, writer);
            break;
        case FAILED:
            refuse_line(ctx, writer, &writer->batch, err);
            break;
        default:
            while ((txn = mfi_line_pop(&all)) != NULL) {
                mfi_line_push(&writer->batch, txn);
            }
            writer->alone = false;
            stop_for_good(ctx, writer, err);
            return;
        }
    }
    writer->alone = false;
}

static void tell_news(jzx_context *ctx, mfi_writer *writer)
{
    if (writer->tx.news.generation) {
        mfi_writer_wake(ctx, writer);
    }
    if (writer->tx.news.event) {
        mfi_writer_pump(ctx, writer);
    }
    mfi_writer_tidy(writer);
}

void mfi_writer_flush(jzx_context *ctx, mfi_writer *writer)
{
    if (atomic_load(&writer->mf->hurry)) {
        refuse_line(ctx, writer, &writer->batch, JZX_ERR_CLOSED);
        return;
    }
    jzx_err err = JZX_OK;
    verdict how = try_commit(ctx, writer, &err);
    writer->look = writer->look || how != COMMITTED;
    if (how == FAILED) {
        note_failure(writer, err);
    }
    if (how == COMMITTED) {
        note_room(writer);
        answer_all(ctx, writer);
        tell_news(ctx, writer);
    } else if (how == IN_DOUBT) {
        stop_for_good(ctx, writer, err);
    } else if (writer->batch.count > 1 || err == JZX_ERR_NO_SPACE) {
        one_by_one(ctx, writer, err);
        tell_news(ctx, writer);
    } else {
        refuse_line(ctx, writer, &writer->batch, err);
    }
}
