/* The producer: hands out jobs, keeps their leases alive, reports how they ended. All it knows is
 * on the desk, so that the next one goes on where this one failed. */
#include "work.h"

#include <jzx/ask.h>
#include <jzx/loop.h>

#define NS_PER_MS UINT64_C(1000000)
/* When the manifest refuses what may work later: how long to wait, doubling. */
#define BACKOFF_MIN_MS 50u
#define BACKOFF_MAX_MS 5000u
/* A word from a worker or from the writer can be lost when there is no memory for it; then the desk
 * is looked at so much later. */
#define IDLE_NS (20000 * NS_PER_MS)
#define GRACE_NS (5000 * NS_PER_MS)

/* News from the writer: whether it is there at all, and whether to leave it alone for a while. */
static int32_t read_news(mfi_workers *workers, uint64_t now)
{
    (void)pthread_mutex_lock(&workers->lock);
    int32_t fatal = workers->fatal;
    bool trouble = workers->trouble;
    bool well = workers->well;
    workers->trouble = workers->well = false;
    (void)pthread_mutex_unlock(&workers->lock);
    if (well) {
        workers->backoff_ms = 0;
    }
    if (trouble) {
        uint32_t next = workers->backoff_ms == 0 ? BACKOFF_MIN_MS : workers->backoff_ms * 2;
        workers->backoff_ms = next < BACKOFF_MAX_MS ? next : BACKOFF_MAX_MS;
        workers->not_before_ns = now + workers->backoff_ms * NS_PER_MS;
    }
    return fatal;
}

/* A job that was claimed goes to its worker. Returns the worker if it must be told. */
static jzx_actor_id give(mfi_seat *seat)
{
    (void)pthread_mutex_lock(&seat->workers->lock);
    if (seat->state == MFI_SEAT_CLAIMED) {
        seat->state = MFI_SEAT_GIVEN;
        if (seat->worker == JZX_NOBODY) {
            mfi_run_end_unbegun(seat->run);
            seat->state = MFI_SEAT_ENDED;
        }
    }
    bool ring = seat->state == MFI_SEAT_GIVEN && !seat->rung;
    jzx_actor_id worker = ring ? seat->worker : JZX_NOBODY;
    (void)pthread_mutex_unlock(&seat->workers->lock);
    return worker;
}

static void hand_out(jzx_context *ctx, mfi_workers *workers)
{
    jzx_send_opts look = {.tag = MFI_WORK_LOOK, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
    for (uint32_t i = 0; i < workers->seat_count; i++) {
        mfi_seat *seat = &workers->seats[i];
        jzx_actor_id worker = give(seat);
        if (worker != JZX_NOBODY) {
            /* A worker that cannot be told is ending, which settles the seat, or there is no
             * memory: then the next look tries again. */
            seat->rung = jzx_send_with(ctx->loop, worker, &look) == JZX_OK;
        }
    }
}

static mfi_seat_state state_of(mfi_seat *seat)
{
    (void)pthread_mutex_lock(&seat->workers->lock);
    mfi_seat_state state = (mfi_seat_state)seat->state;
    (void)pthread_mutex_unlock(&seat->workers->lock);
    return state;
}

static bool is_open(mfi_workers *workers)
{
    return atomic_load_explicit(&workers->open, memory_order_relaxed);
}

static void ask_the_writer(jzx_context *ctx, mfi_workers *workers)
{
    for (uint32_t i = 0; i < workers->seat_count; i++) {
        if (state_of(&workers->seats[i]) == MFI_SEAT_ENDED) {
            mfi_desk_report(&workers->seats[i]);
        }
    }
    for (uint32_t i = 0; i < workers->gang_count && is_open(workers); i++) {
        mfi_desk_claim(&workers->gangs[i], ctx->self);
    }
}

static uint32_t count_seats(mfi_workers *workers, mfi_seat_state state)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < workers->seat_count; i++) {
        count += state_of(&workers->seats[i]) == state ? 1 : 0;
    }
    return count;
}

/* The bell waits to hear that the desk is clear. Handlers may take their time; when the last one
 * has returned, the writer has GRACE_NS to take the reports. What it did not take then is left to
 * its leases. */
static void answer_bell(jzx_context *ctx, mfi_workers *workers, uint64_t now)
{
    if (workers->bell == 0) {
        return;
    }
    if (count_seats(workers, MFI_SEAT_GIVEN) + count_seats(workers, MFI_SEAT_RUNNING) > 0) {
        return;
    }
    if (workers->give_up_ns == 0) {
        workers->give_up_ns = now + GRACE_NS;
    }
    if (count_seats(workers, MFI_SEAT_FREE) == workers->seat_count || now >= workers->give_up_ns) {
        (void)jzx_reply_u64(ctx, workers->bell, 0, MFI_WORK_CLEAR);
        workers->bell = 0;
    }
}

/* The next look, if nobody asks for one before. */
static jzx_err arm(jzx_context *ctx, mfi_workers *workers, uint64_t now, uint64_t due)
{
    if (workers->timer != 0 && workers->wake_ns > now && workers->wake_ns <= due) {
        return JZX_OK;
    }
    if (workers->timer != 0) {
        (void)jzx_cancel_timer(ctx->loop, workers->timer);
        workers->timer = 0;
    }
    jzx_timer_opts opts = {.delay_ms = due <= now ? 0 : (due - now + NS_PER_MS - 1) / NS_PER_MS,
                           .tag = MFI_WORK_WAKE,
                           .flags = JZX_TIMER_VALUE};
    workers->wake_ns = due;
    return jzx_timer_start(ctx->loop, ctx->self, &opts, &workers->timer);
}

static uint64_t next_look(mfi_workers *workers, uint64_t now)
{
    uint64_t next = mfi_desk_beat(workers, now, now >= workers->not_before_ns);
    if (workers->not_before_ns > now) {
        return workers->not_before_ns;
    }
    if (count_seats(workers, MFI_SEAT_ENDED) > 0) {
        return now; /* a report that could not be made as it was, and is another one now */
    }
    if (workers->bell != 0 && workers->give_up_ns != 0 && workers->give_up_ns < next) {
        next = workers->give_up_ns;
    }
    return next < now + IDLE_NS ? next : now + IDLE_NS;
}

static jzx_behavior_result look(jzx_context *ctx, mfi_workers *workers)
{
    uint64_t now = jzx_loop_now(ctx->loop);
    /* Before the desk is read: what changes later pokes again. Partner: mfi_workers_poke(). */
    (void)atomic_exchange_explicit(&workers->poked, false, memory_order_acq_rel);
    int32_t fatal = read_news(workers, now);
    hand_out(ctx, workers);
    if (fatal == 0 && now >= workers->not_before_ns) {
        ask_the_writer(ctx, workers);
        fatal = read_news(workers, now);
    }
    if (fatal != 0) {
        atomic_store_explicit(&workers->open, false, memory_order_relaxed);
        return jzx_fail(ctx, fatal, jzx_strerror(fatal));
    }
    answer_bell(ctx, workers, now);
    jzx_err err = arm(ctx, workers, now, next_look(workers, now));
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result work_producer_on_message(jzx_context *ctx, const jzx_message *msg)
{
    mfi_workers *workers = ctx->state;
    if (msg->kind == JZX_KIND_TIMER) {
        workers->timer = 0;
    } else if (msg->tag == MFI_WORK_CLEAR && jzx_is_ask(ctx)) {
        workers->bell = jzx_request_keep(ctx);
        workers->give_up_ns = 0;
    }
    return look(ctx, workers);
}

static jzx_behavior_result work_producer_on_start(jzx_context *ctx, void *arg)
{
    mfi_workers *workers = arg;
    ctx->state = workers;
    workers->timer = 0;
    workers->not_before_ns = 0;
    workers->backoff_ms = 0;
    workers->bell = 0;
    atomic_store_explicit(&workers->producer, ctx->self, memory_order_release);
    return look(ctx, workers);
}

static void on_end(jzx_context *ctx)
{
    mfi_workers *workers = ctx->state;
    atomic_store_explicit(&workers->producer, JZX_NOBODY, memory_order_release);
}

void mfi_producer_spec(mfi_workers *workers, jzx_child_spec *spec)
{
    /* What the manifest refuses for good is no matter of restarts: see decide() in work.c. And
     * without a producer there are no workers. */
    *spec = (jzx_child_spec){.id = MFI_WORK_PRODUCER,
                             .behavior = work_producer_on_message,
                             .init = work_producer_on_start,
                             .arg = workers,
                             .drop_arg = mfi_workers_drop,
                             .deinit = on_end,
                             .mode = JZX_TRANSIENT,
                             .significant = 1,
                             .mailbox_cap = 64,
                             .intensity = 10,
                             .period_ms = 60000};
}
