/* A worker: an actor that runs one job at a time. */
#include "work.h"

#include <jzx/behavior.h>
#include <jzx/lifecycle.h>
#include <jzx/loop.h>

static void set_state(mfi_seat *seat, mfi_seat_state state)
{
    (void)pthread_mutex_lock(&seat->workers->lock);
    seat->state = state;
    (void)pthread_mutex_unlock(&seat->workers->lock);
}

/* A job that lost its lease while it waited for this turn is not begun: somebody else may have it.
 * One that is found by a worker that stops goes back. */
static bool may_begin(jzx_mf_run *run)
{
    return !atomic_load_explicit(&run->lost, memory_order_relaxed) &&
           atomic_load_explicit(&run->workers->open, memory_order_relaxed) &&
           jzx_loop_now(run->workers->loop) <
               atomic_load_explicit(&run->until_ns, memory_order_relaxed);
}

static jzx_mf_run *work_worker_take(mfi_seat *seat)
{
    jzx_mf_run *run = NULL;
    (void)pthread_mutex_lock(&seat->workers->lock);
    if (seat->state == MFI_SEAT_GIVEN) {
        run = seat->run;
        seat->state = MFI_SEAT_RUNNING;
    }
    (void)pthread_mutex_unlock(&seat->workers->lock);
    return run;
}

static void work(jzx_context *ctx, mfi_seat *seat)
{
    jzx_mf_run *run = work_worker_take(seat);
    if (run == NULL) {
        return;
    }
    if (may_begin(run)) {
        const jzx_mf_work *how = &seat->gang->work;
        mfi_run_end(run, (int)how->handler(ctx, run, how->arg));
    } else {
        mfi_run_end_unbegun(run);
    }
    set_state(seat, MFI_SEAT_ENDED);
    mfi_workers_poke(seat->workers);
}

static jzx_behavior_result work_worker_on_message(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->kind == JZX_KIND_USER && msg->tag == MFI_WORK_LOOK) {
        work(ctx, ctx->state);
    } else if (msg->kind == JZX_KIND_USER) {
        jzx_err kept = jzx_discard(ctx);
        (void)kept; /* the rest are answers to what a handler asked and left */
    }
    return JZX_BEHAVIOR_OK;
}

/* A seat that is still RUNNING when its worker ends has a handler that did not return. */
static void explain(mfi_seat *seat, int32_t code, const char *text)
{
    (void)pthread_mutex_lock(&seat->workers->lock);
    if (seat->state == MFI_SEAT_RUNNING && !seat->run->explained) {
        seat->run->explained = true;
        mfi_run_end_failed(seat->run, code, 0, text);
    }
    (void)pthread_mutex_unlock(&seat->workers->lock);
}

static jzx_behavior_result on_signal(jzx_context *ctx, const jzx_signal *signal)
{
    if (signal->kind == JZX_SIGNAL_PRE_RESTART || signal->kind == JZX_SIGNAL_POST_STOP) {
        char text[JZX_REASON_TEXT_MAX + 64];
        (void)jzx_reason_format(signal->reason, text, sizeof text);
        explain(ctx->state, signal->reason->code, text);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result work_worker_on_start(jzx_context *ctx, void *arg)
{
    mfi_seat *seat = arg;
    ctx->state = seat;
    (void)pthread_mutex_lock(&seat->workers->lock);
    seat->worker = ctx->self;
    (void)pthread_mutex_unlock(&seat->workers->lock);
    mfi_workers_poke(seat->workers);
    return JZX_BEHAVIOR_OK;
}

static void on_end(jzx_context *ctx)
{
    mfi_seat *seat = ctx->state;
    explain(seat, 0, "its handler did not return");
    (void)pthread_mutex_lock(&seat->workers->lock);
    seat->worker = JZX_NOBODY;
    if (seat->state == MFI_SEAT_GIVEN) {
        mfi_run_end_unbegun(seat->run);
        seat->state = MFI_SEAT_ENDED;
    } else if (seat->state == MFI_SEAT_RUNNING) {
        seat->state = MFI_SEAT_ENDED;
    }
    (void)pthread_mutex_unlock(&seat->workers->lock);
    mfi_workers_poke(seat->workers);
}

static void release_seat(void *seat)
{
    mfi_workers_release(((mfi_seat *)seat)->workers);
}

void mfi_worker_spec(mfi_seat *seat, jzx_child_spec *spec)
{
    const jzx_mf_work *how = &seat->gang->work;
    *spec = (jzx_child_spec){.behavior = work_worker_on_message,
                             .init = work_worker_on_start,
                             .arg = seat,
                             .drop_arg = release_seat,
                             .deinit = on_end,
                             .on_signal = on_signal,
                             .shutdown_ms = JZX_SHUTDOWN_INFINITE, /* a handler is waited for */
                             .mailbox_cap = 64,
                             .flags = how->flags,
                             .dispatcher = how->dispatcher};
}
