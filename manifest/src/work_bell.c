/* The bell: the child that is started last, and stopped first together with the workers. It
 * opens and closes the desk. Handlers that run when it rings are told to return soon, while the
 * producer still serves them; the bell is silent when all that they did is reported. */
#include "work.h"

#include <jzx/lifecycle.h>

/* False: there is no producer that could be waited for. One that has failed, or waits for its
 * restart, is not started again by a supervisor that stops: it is ended after the bell. */
static bool ask_producer(jzx_context *ctx, mfi_workers *workers)
{
    jzx_actor_id producer = atomic_load_explicit(&workers->producer, memory_order_acquire);
    if (jzx_actor_state(ctx->loop, producer) != JZX_STATE_RUNNING) {
        return false;
    }
    jzx_ask_opts opts = {.tag = MFI_WORK_CLEAR,
                         .flags = JZX_SEND_VALUE | JZX_SEND_URGENT,
                         .timeout_ms = JZX_ASK_NO_TIMEOUT};
    return jzx_ask(ctx->loop, producer, &opts, NULL) == JZX_OK;
}

static jzx_behavior_result work_bell_on_message(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_reply *reply = jzx_reply_of(ctx);
    if (reply == NULL) {
        return JZX_BEHAVIOR_OK;
    }
    bool again = msg->tag == JZX_TAG_ASK_FAILED && reply->outcome == JZX_OUTCOME_CALLEE_RESTARTED;
    return again && ask_producer(ctx, ctx->state) ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_STOP;
}

static jzx_behavior_result on_signal(jzx_context *ctx, const jzx_signal *signal)
{
    mfi_workers *workers = ctx->state;
    if (signal->kind != JZX_SIGNAL_PRE_STOP) {
        return JZX_BEHAVIOR_OK;
    }
    atomic_store_explicit(&workers->open, false, memory_order_relaxed);
    return ask_producer(ctx, workers) ? JZX_BEHAVIOR_DEFER : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result work_bell_on_start(jzx_context *ctx, void *arg)
{
    mfi_workers *workers = arg;
    ctx->state = workers;
    /* Read by everybody as a hint; the desk's lock orders all that matters. */
    atomic_store_explicit(&workers->open, true, memory_order_relaxed);
    mfi_workers_poke(workers);
    return JZX_BEHAVIOR_OK;
}

void mfi_bell_spec(mfi_workers *workers, jzx_child_spec *spec)
{
    *spec = (jzx_child_spec){.id = "bell",
                             .behavior = work_bell_on_message,
                             .init = work_bell_on_start,
                             .arg = workers,
                             .drop_arg = mfi_workers_drop,
                             .on_signal = on_signal,
                             .shutdown_ms = JZX_SHUTDOWN_INFINITE,
                             .mailbox_cap = 8};
}
