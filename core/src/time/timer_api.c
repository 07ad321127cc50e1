/* Entry points for timers. */
#include "time/timer.h"

#include "base/alloc.h"
#include "sched/entry.h"
#include "sched/sender.h"

jzx_err jzx_send_after(jzx_loop *loop, jzx_actor_id target, uint32_t ms, void *data, size_t len,
                       uint32_t tag, jzx_timer_id *out_id)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_timer_opts opts = {.delay_ms = ms, .data = data, .len = len, .tag = tag};
    if (jzi_loop_is_plain(loop, "jzx_send_after")) {
        return jzi_timer_start(jzi_loop_worker(loop)->timers, target, &opts, out_id);
    }
    JZI_ENTER(loop, "jzx_send_after");
    return jzi_timer_start(jzi_loop_worker(loop)->timers, target, &opts, out_id);
}

jzx_err jzx_timer_start_sized(jzx_loop *loop, jzx_actor_id target, const jzx_timer_opts *opts,
                              size_t opts_size, jzx_timer_id *out_id)
{
    jzx_timer_opts known;
    if (loop == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_timer_start");
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    return err != JZX_OK ? err
                         : jzi_timer_start(jzi_loop_worker(loop)->timers, target, &known, out_id);
}

jzx_err jzx_cancel_timer(jzx_loop *loop, jzx_timer_id id)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (jzi_loop_is_plain(loop, "jzx_cancel_timer")) {
        return jzi_timer_cancel(jzi_loop_worker(loop)->timers, id);
    }
    JZI_ENTER(loop, "jzx_cancel_timer");
    return jzi_timer_cancel(jzi_loop_worker(loop)->timers, id);
}

/* The timer whose message is in hand, or NULL. */
static const jzi_timer *current_timer(const jzx_context *ctx)
{
    if (ctx == NULL) {
        return NULL;
    }
    const jzi_worker *worker = jzi_container_of(ctx, const jzi_worker, ctx);
    const jzi_node *node = worker->in_hand;
    if (worker->phase != JZI_PHASE_BEHAVIOR || node == NULL || node->msg.kind != JZX_KIND_TIMER) {
        return NULL;
    }
    return jzi_container_of(node, const jzi_timer, node);
}

jzx_timer_id jzx_timer_current(const jzx_context *ctx)
{
    const jzi_timer *timer = current_timer(ctx);
    return timer == NULL ? 0 : jzi_timer_id(timer);
}

uint64_t jzx_timer_missed(const jzx_context *ctx)
{
    const jzi_timer *timer = current_timer(ctx);
    return timer == NULL ? 0 : timer->missed;
}

jzx_err jzx_sender_cancel_timer(jzx_sender *sender, jzx_timer_id id)
{
    return sender == NULL ? JZX_ERR_INVALID_ARG
                          : jzi_timer_cancel_at(jzi_sender_inbox_of(sender, id), id);
}
