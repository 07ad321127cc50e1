/* The foreman: hands out jobs, keeps their leases alive, reports how they ended. All it knows is on
 * the desk, so that the next one goes on where this one failed. */
#include "work.h"

#include <jzx/ask.h>
#include <jzx/loop.h>

#define NS_PER_MS UINT64_C(1000000)
/* When the manifest refuses what may work later: how long to wait, doubling. */
#define BACKOFF_MIN_MS 50u
#define BACKOFF_MAX_MS 5000u
/* A word from a hand or from the writer can be lost when there is no memory for it; then the desk
 * is looked at so much later. */
#define IDLE_NS (20000 * NS_PER_MS)
#define GRACE_NS (5000 * NS_PER_MS)

/* News from the writer: whether it is there at all, and whether to leave it alone for a while. */
static int32_t read_news(mfi_crew *crew, uint64_t now)
{
    (void)pthread_mutex_lock(&crew->lock);
    int32_t fatal = crew->fatal;
    bool trouble = crew->trouble;
    bool well = crew->well;
    crew->trouble = crew->well = false;
    (void)pthread_mutex_unlock(&crew->lock);
    if (well) {
        crew->backoff_ms = 0;
    }
    if (trouble) {
        uint32_t next = crew->backoff_ms == 0 ? BACKOFF_MIN_MS : crew->backoff_ms * 2;
        crew->backoff_ms = next < BACKOFF_MAX_MS ? next : BACKOFF_MAX_MS;
        crew->not_before_ns = now + crew->backoff_ms * NS_PER_MS;
    }
    return fatal;
}

/* A job that was claimed goes to its hand. Returns the hand if it must be told. */
static jzx_actor_id give(mfi_seat *seat)
{
    (void)pthread_mutex_lock(&seat->crew->lock);
    if (seat->state == MFI_SEAT_CLAIMED) {
        seat->state = MFI_SEAT_GIVEN;
        if (seat->hand == JZX_NOBODY) {
            mfi_run_end_unbegun(seat->run);
            seat->state = MFI_SEAT_ENDED;
        }
    }
    bool ring = seat->state == MFI_SEAT_GIVEN && !seat->rung;
    jzx_actor_id hand = ring ? seat->hand : JZX_NOBODY;
    (void)pthread_mutex_unlock(&seat->crew->lock);
    return hand;
}

static void hand_out(jzx_context *ctx, mfi_crew *crew)
{
    jzx_send_opts look = {.tag = MFI_WORK_LOOK, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
    for (uint32_t i = 0; i < crew->seat_count; i++) {
        mfi_seat *seat = &crew->seats[i];
        jzx_actor_id hand = give(seat);
        if (hand != JZX_NOBODY) {
            /* A hand that cannot be told is ending, which settles the seat, or there is no memory:
             * then the next look tries again. */
            seat->rung = jzx_send_with(ctx->loop, hand, &look) == JZX_OK;
        }
    }
}

static mfi_seat_state state_of(mfi_seat *seat)
{
    (void)pthread_mutex_lock(&seat->crew->lock);
    mfi_seat_state state = (mfi_seat_state)seat->state;
    (void)pthread_mutex_unlock(&seat->crew->lock);
    return state;
}

static bool is_open(mfi_crew *crew)
{
    return atomic_load_explicit(&crew->open, memory_order_relaxed);
}

static void ask_the_writer(jzx_context *ctx, mfi_crew *crew)
{
    for (uint32_t i = 0; i < crew->seat_count; i++) {
        if (state_of(&crew->seats[i]) == MFI_SEAT_ENDED) {
            mfi_desk_report(&crew->seats[i]);
        }
    }
    for (uint32_t i = 0; i < crew->gang_count && is_open(crew); i++) {
        mfi_desk_claim(&crew->gangs[i], ctx->self);
    }
}

static uint32_t count_seats(mfi_crew *crew, mfi_seat_state state)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < crew->seat_count; i++) {
        count += state_of(&crew->seats[i]) == state ? 1 : 0;
    }
    return count;
}

/* The bell waits to hear that the desk is clear. Handlers may take their time; when the last one
 * has returned, the writer has GRACE_NS to take the reports. What it did not take then is left to
 * its leases. */
static void answer_bell(jzx_context *ctx, mfi_crew *crew, uint64_t now)
{
    if (crew->bell == 0) {
        return;
    }
    if (count_seats(crew, MFI_SEAT_GIVEN) + count_seats(crew, MFI_SEAT_RUNNING) > 0) {
        return;
    }
    if (crew->give_up_ns == 0) {
        crew->give_up_ns = now + GRACE_NS;
    }
    if (count_seats(crew, MFI_SEAT_FREE) == crew->seat_count || now >= crew->give_up_ns) {
        (void)jzx_reply_u64(ctx, crew->bell, 0, MFI_WORK_CLEAR);
        crew->bell = 0;
    }
}

/* The next look, if nobody asks for one before. */
static jzx_err arm(jzx_context *ctx, mfi_crew *crew, uint64_t now, uint64_t due)
{
    if (crew->timer != 0 && crew->wake_ns > now && crew->wake_ns <= due) {
        return JZX_OK;
    }
    if (crew->timer != 0) {
        (void)jzx_cancel_timer(ctx->loop, crew->timer);
        crew->timer = 0;
    }
    jzx_timer_opts opts = {.delay_ms = due <= now ? 0 : (due - now + NS_PER_MS - 1) / NS_PER_MS,
                           .tag = MFI_WORK_WAKE,
                           .flags = JZX_TIMER_VALUE};
    crew->wake_ns = due;
    return jzx_timer_start(ctx->loop, ctx->self, &opts, &crew->timer);
}

static uint64_t next_look(mfi_crew *crew, uint64_t now)
{
    uint64_t next = mfi_desk_beat(crew, now, now >= crew->not_before_ns);
    if (crew->not_before_ns > now) {
        return crew->not_before_ns;
    }
    if (count_seats(crew, MFI_SEAT_ENDED) > 0) {
        return now; /* a report that could not be made as it was, and is another one now */
    }
    if (crew->bell != 0 && crew->give_up_ns != 0 && crew->give_up_ns < next) {
        next = crew->give_up_ns;
    }
    return next < now + IDLE_NS ? next : now + IDLE_NS;
}

static jzx_behavior_result look(jzx_context *ctx, mfi_crew *crew)
{
    uint64_t now = jzx_loop_now(ctx->loop);
    /* Before the desk is read: what changes later pokes again. Partner: mfi_crew_poke(). */
    (void)atomic_exchange_explicit(&crew->poked, false, memory_order_acq_rel);
    int32_t fatal = read_news(crew, now);
    hand_out(ctx, crew);
    if (fatal == 0 && now >= crew->not_before_ns) {
        ask_the_writer(ctx, crew);
        fatal = read_news(crew, now);
    }
    if (fatal != 0) {
        atomic_store_explicit(&crew->open, false, memory_order_relaxed);
        return jzx_fail(ctx, fatal, jzx_strerror(fatal));
    }
    answer_bell(ctx, crew, now);
    jzx_err err = arm(ctx, crew, now, next_look(crew, now));
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result work_foreman_on_message(jzx_context *ctx, const jzx_message *msg)
{
    mfi_crew *crew = ctx->state;
    if (msg->kind == JZX_KIND_TIMER) {
        crew->timer = 0;
    } else if (msg->tag == MFI_WORK_CLEAR && jzx_is_ask(ctx)) {
        crew->bell = jzx_request_keep(ctx);
        crew->give_up_ns = 0;
    }
    return look(ctx, crew);
}

static jzx_behavior_result work_foreman_on_start(jzx_context *ctx, void *arg)
{
    mfi_crew *crew = arg;
    ctx->state = crew;
    crew->timer = 0;
    crew->not_before_ns = 0;
    crew->backoff_ms = 0;
    crew->bell = 0;
    atomic_store_explicit(&crew->foreman, ctx->self, memory_order_release);
    return look(ctx, crew);
}

static void on_end(jzx_context *ctx)
{
    mfi_crew *crew = ctx->state;
    atomic_store_explicit(&crew->foreman, JZX_NOBODY, memory_order_release);
}

void mfi_foreman_spec(mfi_crew *crew, jzx_child_spec *spec)
{
    /* What the manifest refuses for good is no matter of restarts: see decide() of the crew. And
     * without a foreman there is no crew. */
    *spec = (jzx_child_spec){.id = MFI_WORK_FOREMAN,
                             .behavior = work_foreman_on_message,
                             .init = work_foreman_on_start,
                             .arg = crew,
                             .drop_arg = mfi_crew_drop,
                             .deinit = on_end,
                             .mode = JZX_TRANSIENT,
                             .significant = 1,
                             .mailbox_cap = 64,
                             .intensity = 10,
                             .period_ms = 60000};
}
