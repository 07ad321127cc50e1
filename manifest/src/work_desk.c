/* What the producer commits, and what becomes of the desk when the writer answers. The callbacks
 * run on the writer's thread; they need no producer to be there. */
#include "work.h"

#include <jzx/loop.h>

#include <string.h>

#define NS_PER_MS UINT64_C(1000000)
/* How long a claim waits in the writer. One that outlives the workers gives back what it got. */
#define CLAIM_WAIT_MS 20000u
#define LATE_NS (1000 * NS_PER_MS)

/* Errors of the manifest are of three kinds: it takes nothing any more; it may later; or it refused
 * what was asked of it. */

bool mfi_work_is_fatal(int32_t err)
{
    switch (err) {
    case JZX_ERR_CLOSED:
    case JZX_ERR_IN_DOUBT:
    case JZX_ERR_READ_ONLY:
    case JZX_ERR_FORKED:
    case JZX_ERR_CORRUPT:
    case JZX_ERR_LOOP_CLOSED:
    case JZX_ERR_NO_SUCH_ACTOR:
    case JZX_ERR_STOPPING:
        return true;
    default:
        return false;
    }
}

static bool may_pass(int32_t err)
{
    switch (err) {
    case JZX_ERR_MAILBOX_FULL:
    case JZX_ERR_NO_MEMORY:
    case JZX_ERR_NO_SPACE:
    case JZX_ERR_MAP_FULL:
    case JZX_ERR_IO:
    case JZX_ERR_BUSY:
    case JZX_ERR_AGAIN:
    case JZX_ERR_TIMED_OUT:
        return true;
    default:
        return false;
    }
}

static void note_locked(mfi_workers *workers, int32_t err)
{
    if (err == JZX_OK) {
        workers->well = true;
    } else if (mfi_work_is_fatal(err)) {
        workers->fatal = err;
    } else {
        workers->trouble = true;
    }
}

static uint64_t beat_period_ns(const jzx_mf_run *run)
{
    uint64_t third = run->lease_ms * NS_PER_MS / 3;
    return third > NS_PER_MS ? third : NS_PER_MS;
}

/* Claims. */

static void work_desk_forget(void *arg, const jzx_mf_receipt *receipt)
{
    (void)arg;
    (void)receipt;
}

/* Jobs that nobody is there for. What cannot be given back comes back when its lease is over. */
static void work_desk_give_back(mfi_workers *workers, const jzx_mf_job *jobs, uint32_t count)
{
    jzx_mf_txn *txn = NULL;
    if (count == 0 || jzx_mf_begin(workers->mf, &txn) != JZX_OK) {
        return;
    }
    jzx_mf_failure failure = {.text = jzx_mf_text("claimed by workers that have stopped"),
                              .flags = JZX_MF_FAIL_NOW | JZX_MF_FAIL_UNCOUNTED};
    for (uint32_t i = 0; i < count; i++) {
        jzx_mf_lease lease = jzx_mf_lease_of(&jobs[i]);
        if (jzx_mf_job_fail(txn, &lease, &failure) != JZX_OK) {
            jzx_mf_abort(txn);
            return;
        }
    }
    jzx_err lost = jzx_mf_commit_async(txn, work_desk_forget, NULL);
    (void)lost;
}

static mfi_seat *free_seat(mfi_gang *gang)
{
    for (uint32_t i = 0; i < gang->seat_count; i++) {
        mfi_seat *seat = &gang->seats[i];
        if (seat->state == MFI_SEAT_FREE && seat->worker != JZX_NOBODY) {
            return seat;
        }
    }
    return NULL;
}

/* Returns how many of the jobs found a seat. When the supervisor stops, workers are gone or leave
 * soon; what slips in is given back then. */
static uint32_t seat_jobs(mfi_gang *gang, const jzx_mf_job *jobs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        mfi_seat *seat = free_seat(gang);
        jzx_mf_run *run =
            seat == NULL ? NULL : mfi_run_make(gang->workers, &jobs[i], gang->work.lease_ms);
        if (run == NULL) {
            return i;
        }
        /* From now on, not from when the producer sees it. There is a worker, so there is the loop.
         */
        uint64_t now = jzx_loop_now(gang->workers->loop);
        mfi_run_keep(run, now);
        run->next_beat_ns = now + beat_period_ns(run);
        seat->run = run;
        seat->rung = false;
        seat->state = MFI_SEAT_CLAIMED;
    }
    return count;
}

static void claim_ended(mfi_gang *gang, int32_t err, const jzx_mf_job *jobs, uint32_t count)
{
    mfi_workers *workers = gang->workers;
    (void)pthread_mutex_lock(&workers->lock);
    gang->claiming = false;
    note_locked(workers, err);
    uint32_t seated = seat_jobs(gang, jobs, count);
    (void)pthread_mutex_unlock(&workers->lock);
    work_desk_give_back(workers, jobs + seated, count - seated);
}

static void on_claimed(void *arg, const jzx_mf_receipt *receipt)
{
    mfi_gang *gang = arg;
    mfi_workers *workers = gang->workers;
    claim_ended(gang, receipt->err, receipt->jobs, receipt->err == JZX_OK ? receipt->job_count : 0);
    mfi_workers_poke(workers);
    mfi_workers_release(workers);
}

static uint32_t begin_claim(mfi_gang *gang)
{
    uint32_t idle = 0;
    (void)pthread_mutex_lock(&gang->workers->lock);
    for (uint32_t i = 0; i < gang->seat_count && !gang->claiming; i++) {
        const mfi_seat *seat = &gang->seats[i];
        idle += seat->state == MFI_SEAT_FREE && seat->worker != JZX_NOBODY ? 1 : 0;
    }
    gang->claiming = gang->claiming || idle > 0;
    (void)pthread_mutex_unlock(&gang->workers->lock);
    return idle;
}

void mfi_desk_claim(mfi_gang *gang, jzx_actor_id worker)
{
    mfi_workers *workers = gang->workers;
    uint32_t idle = begin_claim(gang);
    if (idle == 0) {
        return;
    }
    jzx_mf_claim claim = {.kinds = &gang->work.kind,
                          .kind_count = 1,
                          .max = idle,
                          .worker = worker,
                          .wait_ms = CLAIM_WAIT_MS,
                          .lease_ms = gang->work.lease_ms};
    jzx_mf_txn *txn = NULL;
    jzx_err err = jzx_mf_begin(workers->mf, &txn);
    if (err == JZX_OK) {
        err = jzx_mf_job_claim(txn, &claim);
        if (err != JZX_OK) {
            jzx_mf_abort(txn);
        }
    }
    if (err == JZX_OK) {
        mfi_workers_retain(workers);
        err = jzx_mf_commit_async(txn, on_claimed, gang);
        if (err != JZX_OK) {
            mfi_workers_release(workers);
        }
    }
    if (err != JZX_OK) {
        claim_ended(gang, err, NULL, 0);
    }
}

/* Reports: how a job ended. */

/* What a report that was not done leads to. True: the job is settled as far as the producer can. */
static bool settle_failed_report(mfi_workers *workers, jzx_mf_run *run, int32_t err,
                                 uint32_t failed)
{
    bool by_itself = failed == UINT32_MAX || failed + 1 == run->ops;
    if (err == JZX_ERR_FENCED && by_itself) {
        return true; /* too late: it is somebody else's */
    }
    if (mfi_work_is_fatal(err)) {
        workers->fatal = err;
        return true;
    }
    if (may_pass(err)) {
        workers->trouble = true;
        if (run->ending.done && run->had_ops) {
            /* Its operations went with the transaction; only running it again brings them back. */
            mfi_run_end_failed(run, err, JZX_MF_FAIL_UNCOUNTED, jzx_strerror(err));
        }
        return false;
    }
    if (!run->ending.done) {
        return true; /* nothing else could be said about it; its lease will end */
    }
    mfi_run_end_failed(run, err, 0, jzx_strerror(err));
    return false;
}

static void report_ended(mfi_seat *seat, int32_t err, uint32_t failed)
{
    mfi_workers *workers = seat->workers;
    (void)pthread_mutex_lock(&workers->lock);
    jzx_mf_run *run = seat->run;
    workers->well = workers->well || err == JZX_OK;
    bool settled = err == JZX_OK || settle_failed_report(workers, run, err, failed);
    seat->state = settled ? MFI_SEAT_FREE : MFI_SEAT_ENDED;
    seat->run = settled ? NULL : run;
    (void)pthread_mutex_unlock(&workers->lock);
    mfi_run_free(settled ? run : NULL);
}

static void on_reported(void *arg, const jzx_mf_receipt *receipt)
{
    mfi_seat *seat = arg;
    mfi_workers *workers = seat->workers;
    report_ended(seat, receipt->err, receipt->failed);
    mfi_workers_poke(workers);
    mfi_workers_release(workers);
}

static jzx_err add_report(jzx_mf_txn *txn, const jzx_mf_run *run)
{
    const mfi_ending *ending = &run->ending;
    if (ending->done) {
        return jzx_mf_job_complete(txn, &run->lease, jzx_mf_blob(run->result, run->result_len));
    }
    jzx_mf_failure failure = {.text = jzx_mf_blob(ending->text, ending->text_len),
                              .delay_ms = ending->delay_ms,
                              .code = ending->code,
                              .flags = ending->flags};
    return jzx_mf_job_fail(txn, &run->lease, &failure);
}

/* The operations of a handler go along if, and only if, it is done. */
static jzx_err build_report(jzx_mf_run *run, jzx_mf_txn **out_txn)
{
    if (!run->ending.done) {
        jzx_mf_abort(run->txn);
        run->txn = NULL;
    }
    jzx_mf_txn *txn = run->txn;
    jzx_err err = txn != NULL ? JZX_OK : jzx_mf_begin(run->workers->mf, &txn);
    if (err != JZX_OK) {
        return err;
    }
    err = add_report(txn, run);
    if (err != JZX_OK) {
        if (txn != run->txn) {
            jzx_mf_abort(txn);
        }
        return err;
    }
    run->txn = NULL;
    run->ops = jzx_mf_txn_count(txn);
    run->had_ops = run->ops > 1;
    *out_txn = txn;
    return JZX_OK;
}

void mfi_desk_report(mfi_seat *seat)
{
    mfi_workers *workers = seat->workers;
    jzx_mf_txn *txn = NULL;
    seat->run->ops = 0;
    seat->run->had_ops = false;
    (void)pthread_mutex_lock(&workers->lock);
    seat->state = MFI_SEAT_TOLD;
    (void)pthread_mutex_unlock(&workers->lock);
    if (atomic_load_explicit(&seat->run->lost, memory_order_relaxed)) {
        report_ended(seat, JZX_ERR_FENCED, UINT32_MAX);
        return;
    }
    jzx_err err = build_report(seat->run, &txn);
    if (err == JZX_OK) {
        mfi_workers_retain(workers);
        err = jzx_mf_commit_async(txn, on_reported, seat);
        if (err != JZX_OK) {
            mfi_workers_release(workers);
        }
    }
    if (err != JZX_OK) {
        report_ended(seat, err, UINT32_MAX);
    }
}

/* Heartbeats. */

static bool is_in_hand(const mfi_seat *seat)
{
    return (seat->state == MFI_SEAT_GIVEN || seat->state == MFI_SEAT_RUNNING ||
            seat->state == MFI_SEAT_ENDED) &&
           !atomic_load_explicit(&seat->run->lost, memory_order_relaxed);
}

/* Everybody hears of the cancels; one that was fenced must not keep the others from being kept. */
static void beat_ended(mfi_workers *workers, const jzx_mf_receipt *receipt)
{
    for (uint32_t i = 0; i < workers->beat_count; i++) {
        jzx_mf_run *run = workers->seats[workers->beats[i].seat].run;
        if (!mfi_run_same(run, &workers->beats[i].lease)) {
            continue;
        }
        if (receipt->err != JZX_OK) {
            run->next_beat_ns = 0;
        }
        if (receipt->err == JZX_ERR_FENCED && receipt->failed == i) {
            mfi_run_lose(run);
        } else if (receipt->err == JZX_OK) {
            mfi_run_keep(run, workers->beat_ns);
        }
        if (receipt->err == JZX_OK && i < receipt->slot_count && receipt->slots[i].outcome == 1) {
            atomic_store_explicit(&run->cancelled, true, memory_order_relaxed);
        }
    }
    if (receipt->err != JZX_ERR_FENCED || receipt->failed >= workers->beat_count) {
        note_locked(workers, receipt->err);
    }
    workers->beating = false;
}

static void on_beaten(void *arg, const jzx_mf_receipt *receipt)
{
    mfi_workers *workers = arg;
    (void)pthread_mutex_lock(&workers->lock);
    beat_ended(workers, receipt);
    (void)pthread_mutex_unlock(&workers->lock);
    mfi_workers_poke(workers);
    mfi_workers_release(workers);
}

/* Adds one heartbeat. The progress is copied under the lock, and the manifest called without. */
static jzx_err add_beat(mfi_workers *workers, jzx_mf_txn *txn, const mfi_beat *beat)
{
    char text[JZX_MF_TEXT_MAX];
    (void)pthread_mutex_lock(&workers->lock);
    const jzx_mf_run *run = workers->seats[beat->seat].run;
    uint64_t done = run->progress_done;
    uint64_t total = run->progress_total;
    size_t len = run->progress_len;
    uint32_t extend_ms = run->lease_ms;
    memcpy(text, run->progress, len);
    (void)pthread_mutex_unlock(&workers->lock);
    return jzx_mf_job_heartbeat(txn, &beat->lease, extend_ms, done, total, jzx_mf_blob(text, len));
}

static void send_beat(mfi_workers *workers)
{
    jzx_mf_txn *txn = NULL;
    jzx_err err = jzx_mf_begin(workers->mf, &txn);
    for (uint32_t i = 0; i < workers->beat_count && err == JZX_OK; i++) {
        err = add_beat(workers, txn, &workers->beats[i]);
        if (err != JZX_OK) {
            jzx_mf_abort(txn);
        }
    }
    if (err == JZX_OK) {
        mfi_workers_retain(workers);
        err = jzx_mf_commit_async(txn, on_beaten, workers);
        if (err != JZX_OK) {
            mfi_workers_release(workers);
        }
    }
    if (err != JZX_OK) {
        jzx_mf_receipt receipt = {.err = err, .failed = UINT32_MAX};
        (void)pthread_mutex_lock(&workers->lock);
        beat_ended(workers, &receipt);
        (void)pthread_mutex_unlock(&workers->lock);
    }
}

static uint64_t next_beat(const mfi_workers *workers)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < workers->seat_count; i++) {
        if (is_in_hand(&workers->seats[i]) && workers->seats[i].run->next_beat_ns < next) {
            next = workers->seats[i].run->next_beat_ns;
        }
    }
    return next;
}

/* Those that are due, and with them those that soon would be: one commit for all. */
static void collect_beats(mfi_workers *workers, uint64_t now_ns)
{
    workers->beat_count = 0;
    workers->beat_ns = now_ns;
    for (uint32_t i = 0; i < workers->seat_count; i++) {
        mfi_seat *seat = &workers->seats[i];
        if (!is_in_hand(seat)) {
            continue;
        }
        uint64_t period = beat_period_ns(seat->run);
        if (seat->run->next_beat_ns <= now_ns + period / 2) {
            seat->run->next_beat_ns = now_ns + period;
            workers->beats[workers->beat_count++] = (mfi_beat){i, seat->run->lease};
        }
    }
    workers->beating = workers->beat_count > 0;
}

uint64_t mfi_desk_beat(mfi_workers *workers, uint64_t now_ns, bool send)
{
    (void)pthread_mutex_lock(&workers->lock);
    bool due = send && !workers->beating && next_beat(workers) <= now_ns;
    if (due) {
        collect_beats(workers, now_ns);
    }
    uint64_t next = next_beat(workers);
    if (workers->beating && next < now_ns + LATE_NS) {
        next = now_ns + LATE_NS; /* its answer brings the next look; this is for when it is lost */
    }
    (void)pthread_mutex_unlock(&workers->lock);
    if (due) {
        send_beat(workers);
    }
    return next;
}
