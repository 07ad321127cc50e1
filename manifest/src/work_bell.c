/* The bell: the child of a crew that is started last, and stopped first together with the hands. It
 * opens and closes the crew. Handlers that run when it rings are told to return soon, while the
 * foreman still serves them; the bell is silent when all that they did is reported. */
#include "work.h"

#include <jzx/lifecycle.h>

/* False: there is no foreman that could be waited for. One that has failed, or waits for its
 * restart, is not started again by a crew that stops: it is ended after the bell. */
static bool ask_foreman(jzx_context *ctx, mfi_crew *crew)
{
    jzx_actor_id foreman = atomic_load_explicit(&crew->foreman, memory_order_acquire);
    if (jzx_actor_state(ctx->loop, foreman) != JZX_STATE_RUNNING) {
        return false;
    }
    jzx_ask_opts opts = {.tag = MFI_WORK_CLEAR,
                         .flags = JZX_SEND_VALUE | JZX_SEND_URGENT,
                         .timeout_ms = JZX_ASK_NO_TIMEOUT};
    return jzx_ask(ctx->loop, foreman, &opts, NULL) == JZX_OK;
}

static jzx_behavior_result work_bell_on_message(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_reply *reply = jzx_reply_of(ctx);
    if (reply == NULL) {
        return JZX_BEHAVIOR_OK;
    }
    bool again = msg->tag == JZX_TAG_ASK_FAILED && reply->outcome == JZX_OUTCOME_CALLEE_RESTARTED;
    return again && ask_foreman(ctx, ctx->state) ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_STOP;
}

static jzx_behavior_result on_signal(jzx_context *ctx, const jzx_signal *signal)
{
    mfi_crew *crew = ctx->state;
    if (signal->kind != JZX_SIGNAL_PRE_STOP) {
        return JZX_BEHAVIOR_OK;
    }
    atomic_store_explicit(&crew->open, false, memory_order_relaxed);
    return ask_foreman(ctx, crew) ? JZX_BEHAVIOR_DEFER : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result work_bell_on_start(jzx_context *ctx, void *arg)
{
    mfi_crew *crew = arg;
    ctx->state = crew;
    /* Read by everybody as a hint; the desk's lock orders all that matters. */
    atomic_store_explicit(&crew->open, true, memory_order_relaxed);
    mfi_crew_poke(crew);
    return JZX_BEHAVIOR_OK;
}

void mfi_bell_spec(mfi_crew *crew, jzx_child_spec *spec)
{
    *spec = (jzx_child_spec){.id = "bell",
                             .behavior = work_bell_on_message,
                             .init = work_bell_on_start,
                             .arg = crew,
                             .drop_arg = mfi_crew_drop,
                             .on_signal = on_signal,
                             .shutdown_ms = JZX_SHUTDOWN_INFINITE,
                             .mailbox_cap = 8};
}
