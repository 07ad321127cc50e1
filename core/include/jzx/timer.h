/* Timers: messages that come later (R26).
 *
 * The target owns the timer: it is gone when the target ends. Arming reads the clock anew and due
 * times are rounded up to the next millisecond, so nothing fires early. Timers of one millisecond
 * fire in the order of arming. In a system the target may live on any dispatcher, and any actor may
 * cancel, with the same answers; `drop` then runs where the target lives. */
#ifndef JZX_TIMER_H
#define JZX_TIMER_H

#include <jzx/actor.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum jzx_timer_mode {
    JZX_TIMER_FIXED_RATE = 0, /* due times are start + n * period; what was missed is counted */
    JZX_TIMER_FIXED_DELAY = 1 /* the next period begins when the message was handled */
} jzx_timer_mode;

#define JZX_TIMER_VALUE 0x1u /* u64 holds the payload, flag JZX_MSG_VALUE */

#define JZX_TIMER_DELAY_MAX_MS ((uint64_t)1 << 36) /* two thousand years */

typedef struct jzx_timer_opts {
    uint64_t delay_ms;  /* until the first message; 0: as soon as the loop looks */
    uint64_t period_ms; /* 0: one message only; at most 4,294,967,295 */
    union {
        void *data;   /* one message: as in jzx_send_with(). Periodic: borrowed by every message, */
        uint64_t u64; /* and dropped once when the timer ends */
    };
    size_t len;
    void (*drop)(void *data);
    uint32_t tag;
    uint32_t mode;  /* jzx_timer_mode */
    uint32_t flags; /* JZX_TIMER_* */
    uint32_t reserved;
} jzx_timer_opts;

/* Sends data to target in `ms` milliseconds, kind TIMER. On JZX_OK data is transferred; if the
 * timer never delivers (cancel, end of the target) it is released: drop, else the target's
 * drop_msg, else counted as abandoned. A timer that finds its target on another dispatcher gone has
 * no drop_msg to ask for: give it a `drop`. out_id may be NULL. Thread: loop. Errors:
 * NO_SUCH_ACTOR, STOPPING, NO_MEMORY (the allocator has no memory left, or 16,777,216 timers
 * exist), RESERVED_TAG, INVALID_ARG. */
JZX_API JZX_NODISCARD jzx_err jzx_send_after(jzx_loop *loop, jzx_actor_id target, uint32_t ms,
                                             void *data, size_t len, uint32_t tag,
                                             jzx_timer_id *out_id);

/* The full form. Errors: as jzx_send_after(), INVALID_ARG (an argument is NULL, a mode or flag is
 * unknown, or JZX_TIMER_VALUE is set with `drop`), NEWER_STRUCT, TOO_BIG (`delay_ms` or `period_ms`
 * is above its maximum). Thread: loop. */
JZX_API JZX_NODISCARD jzx_err jzx_timer_start_sized(jzx_loop *loop, jzx_actor_id target,
                                                    const jzx_timer_opts *opts, size_t opts_size,
                                                    jzx_timer_id *out_id);
static inline JZX_NODISCARD jzx_err jzx_timer_start(jzx_loop *loop, jzx_actor_id target,
                                                    const jzx_timer_opts *opts,
                                                    jzx_timer_id *out_id)
{
    return jzx_timer_start_sized(loop, target, opts, sizeof *opts, out_id);
}

/* After JZX_OK no message of this timer is delivered (again), also when a periodic timer is
 * cancelled inside its own message. Thread: loop. Errors: ALREADY (the timer's message was
 * delivered or is being handled, the timer was cancelled before, or it ended with its target),
 * NO_SUCH_TIMER (the id was never given out). */
JZX_API jzx_err jzx_cancel_timer(jzx_loop *loop, jzx_timer_id id);

/* Of the timer message in hand: its timer, and how many periods passed without a message of their
 * own since the last one. 0 when the message is no timer's. Thread: loop, inside a behavior. */
JZX_API jzx_timer_id jzx_timer_current(const jzx_context *ctx);
JZX_API uint64_t jzx_timer_missed(const jzx_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
