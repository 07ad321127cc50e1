/* Sends from other threads. */
#ifndef JZX_SENDER_H
#define JZX_SENDER_H

#include <jzx/actor.h>
#include <jzx/lifecycle.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A counted handle through which threads outside the loop send. It outlives the loop: afterwards
 * every send answers JZX_ERR_LOOP_CLOSED. */
typedef struct jzx_sender jzx_sender;

/* Any number of threads may share one sender. A thread that sends a lot opens one of its own with
 * JZX_SENDER_SINGLE, a promise to use it from one thread at a time, and saves an atomic per send.
 */
#define JZX_SENDER_SHARED 0x0u
#define JZX_SENDER_SINGLE 0x1u

/* Thread: loop. Errors: INVALID_ARG (an argument is NULL, or a flag is unknown), NO_MEMORY,
 * NOT_SUPPORTED (the loop is simulated: other threads would make the run unrepeatable). */
JZX_API JZX_NODISCARD jzx_err jzx_sender_open(jzx_loop *loop, uint32_t flags,
                                              jzx_sender **out_sender);
/* A new handle to the same loop with flags of its own. Thread: any. Errors: as jzx_sender_open(),
 * LOOP_CLOSED. */
JZX_API JZX_NODISCARD jzx_err jzx_sender_clone(jzx_sender *sender, uint32_t flags,
                                               jzx_sender **out_sender);
/* One more owner of this handle, one less; the last one closes it. NULL is fine. Thread: any. */
JZX_API jzx_sender *jzx_sender_retain(jzx_sender *sender);
JZX_API void jzx_sender_release(jzx_sender *sender);

/* As jzx_send() and its siblings, from any thread, with the same verdicts at once (R11, R33): no
 * lock, and a system call only when the loop sleeps. Messages of one thread to one actor keep their
 * order. msg->sender is 0. Where sends of several threads race, the cap may be exceeded by as many
 * messages as there are threads sending at that instant. A thread that is refused with MAILBOX_FULL
 * waits with jzx_sender_wait_room(), tries again later or sheds load. To an actor with a DROP
 * policy that is so only beyond twice the cap in flight. Thread: any. Errors: as jzx_send_with(),
 * LOOP_CLOSED. */
JZX_API JZX_NODISCARD jzx_err jzx_send_async(jzx_sender *sender, jzx_actor_id to, void *data,
                                             size_t len, uint32_t tag);
JZX_API JZX_NODISCARD jzx_err jzx_send_async_u64(jzx_sender *sender, jzx_actor_id to,
                                                 uint64_t value, uint32_t tag);
JZX_API JZX_NODISCARD jzx_err jzx_send_async_copy(jzx_sender *sender, jzx_actor_id to,
                                                  const void *bytes, size_t len, uint32_t tag);
JZX_API JZX_NODISCARD jzx_err jzx_send_async_with_sized(jzx_sender *sender, jzx_actor_id to,
                                                        const jzx_send_opts *opts,
                                                        size_t opts_size);
static inline JZX_NODISCARD jzx_err jzx_send_async_with(jzx_sender *sender, jzx_actor_id to,
                                                        const jzx_send_opts *opts)
{
    return jzx_send_async_with_sized(sender, to, opts, sizeof *opts);
}

/* As jzx_stop(), jzx_stop_drained() and jzx_kill(), with the same verdicts at once: from here on
 * sends give STOPPING, and a late stop never hits the next actor in the same slot (R2). They need
 * no memory. Thread: any. Errors: NO_SUCH_ACTOR, LOOP_CLOSED. */
JZX_API jzx_err jzx_sender_stop(jzx_sender *sender, jzx_actor_id id);
JZX_API jzx_err jzx_sender_stop_drained(jzx_sender *sender, jzx_actor_id id);
JZX_API jzx_err jzx_sender_kill(jzx_sender *sender, jzx_actor_id id);
/* As jzx_actor_state(), as of a moment ago: TERMINATED when it is gone, and so is its loop.
 * Thread: any. */
JZX_API jzx_state jzx_sender_actor_state(jzx_sender *sender, jzx_actor_id id);
/* As jzx_cancel_timer() (R26). Thread: any. Errors: as jzx_cancel_timer(), ALREADY (the loop is
 * gone, and the timer with it). */
JZX_API jzx_err jzx_sender_cancel_timer(jzx_sender *sender, jzx_timer_id id);

/* Waits until an actor has room (R12): until at or below its low-water mark, at most timeout_ms
 * (JZX_TIMEOUT_INFINITE: as long as it takes). Threads that wait are told in their order, with the
 * actors that asked by jzx_notify_room(); whether a slot is still free when the thread sends is
 * decided by the send. Costs a sender that does not wait nothing. Thread: any but those that run
 * actors. Errors: NO_SUCH_ACTOR (the actor is gone, is stopping, or ended meanwhile), TIMED_OUT,
 * LOOP_CLOSED, NO_MEMORY, DEADLOCK (called on a thread that runs actors). */
JZX_API JZX_NODISCARD jzx_err jzx_sender_wait_room(jzx_sender *sender, jzx_actor_id id,
                                                   uint64_t timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
