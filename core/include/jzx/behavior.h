/* What a behavior can do with itself and with the message in hand: become another one, set the
 * message aside, pass it on. All of it is free for actors that do not use it. */
#ifndef JZX_BEHAVIOR_H
#define JZX_BEHAVIOR_H

#include <jzx/actor.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From the next message on the actor runs `behavior`; its state, mailbox and id stay. A restart
 * goes back to what it was spawned with (R18). Thread: loop, inside an actor's code. Errors:
 * INVALID_ARG (called outside of an actor, in JZX_SIGNAL_POST_STOP or in `deinit`, or `behavior` is
 * NULL), NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_become(jzx_context *ctx, jzx_behavior_fn behavior);
/* The same, and remembers the present one for jzx_unbecome(). Also: TOO_BIG, when JZX_BECOME_MAX
 * are remembered. */
#define JZX_BECOME_MAX 64
/* Errors: as jzx_become(), TOO_BIG (JZX_BECOME_MAX behaviors are remembered). */
JZX_API JZX_NODISCARD jzx_err jzx_become_stacked(jzx_context *ctx, jzx_behavior_fn behavior);
/* Back to the one remembered last; with none, to what the actor was spawned with. Errors:
 * INVALID_ARG (called outside of an actor, in JZX_SIGNAL_POST_STOP or in `deinit`), ALREADY (the
 * actor runs the behavior that it was spawned with). */
JZX_API jzx_err jzx_unbecome(jzx_context *ctx);

/* Sets the message in hand aside, whole: data, sender, deadline, and the duty to answer if it is an
 * ask. When the behavior has returned it is neither handled nor released but waits in the stash. It
 * keeps its slot of the mailbox (R10), so the stash has a limit of its own: half of the mailbox's
 * cap unless jzx_stash_set_cap() was called. jzx_message_take() gives NULL afterwards.
 *
 * What waits in the stash when the actor restarts goes back to the front of the mailbox; when it
 * ends, the way of its drain policy. An error leaves the message in hand. Thread: loop, inside a
 * behavior. Errors: STASH_FULL, ALREADY (the message was set aside, passed on, discarded or taken
 * before), NOT_SUPPORTED (the message in hand was not sent: it is a timer, I/O, a notice, a reply,
 * a job's result or a bus event), INVALID_ARG (called outside of an actor, or without a message in
 * hand: in `init`, `deinit` and the signals of the actor's own life), NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_stash(jzx_context *ctx);
/* Puts the oldest `count` messages of the stash back to the front of the mailbox, where they come
 * in the order in which they arrived, ahead of everything that was not stashed. UINT32_MAX: all. A
 * count beyond what is there means all of it. Errors: STASH_EMPTY, INVALID_ARG (outside, 0). */
#define JZX_UNSTASH_ALL UINT32_MAX
/* Errors: STASH_EMPTY, INVALID_ARG (called outside of an actor or without a message in hand, or
 * `count` is 0). */
JZX_API jzx_err jzx_unstash(jzx_context *ctx, uint32_t count);
/* 1: the message in hand came back from the stash. Thread: loop, inside a behavior. */
JZX_API int jzx_was_stashed(const jzx_context *ctx);
/* Messages in the stash. 0 outside of an actor. */
JZX_API uint32_t jzx_stash_count(const jzx_context *ctx);
/* How many may be there, 1 to the mailbox's cap; 0: half of that. What is there stays. The whole
 * cap means all that the mailbox took: then an actor that set everything aside gets only urgent
 * messages, events and notices. It stays until the actor ends. Errors: INVALID_ARG (called outside
 * of an actor), TOO_BIG (`cap` is above the mailbox's cap), NO_MEMORY. */
JZX_API jzx_err jzx_stash_set_cap(jzx_context *ctx, uint32_t cap);

/* Passes the message in hand on to another actor as it is: the receiver sees the original sender,
 * tag, data, deadline, and an asker waits for the receiver's answer from now on. It counts as
 * handled here and as accepted there. On success the data is no longer the caller's; on an error
 * the message stays in hand. Thread: loop, inside a behavior. Errors: as jzx_send(), as jzx_stash()
 * but STASH_FULL, INVALID_ARG (`to` is the actor itself: use jzx_stash()). */
JZX_API JZX_NODISCARD jzx_err jzx_forward(jzx_context *ctx, jzx_actor_id to);

/* Sends another message in the name of the sender of the one in hand: its receiver sees that
 * sender. For actors that stand in between and pass on something else, or the same to several.
 * Errors: as jzx_send_with(), INVALID_ARG (called outside of an actor, or without a message in
 * hand). Thread: loop, inside a behavior. */
JZX_API JZX_NODISCARD jzx_err jzx_send_as_sized(jzx_context *ctx, jzx_actor_id to,
                                                const jzx_send_opts *opts, size_t opts_size);
static inline JZX_NODISCARD jzx_err jzx_send_as(jzx_context *ctx, jzx_actor_id to,
                                                const jzx_send_opts *opts)
{
    return jzx_send_as_sized(ctx, to, opts, sizeof *opts);
}

/* Makes a dead letter of the message in hand, with reason JZX_DEAD_DISCARDED, at once: for what an
 * actor does not understand. Its data is released as that of any dead letter; an asker is told that
 * its ask was forgotten. An error leaves the message in hand. Thread: loop, inside a behavior.
 * Errors: as jzx_stash() but STASH_FULL. */
JZX_API JZX_NODISCARD jzx_err jzx_discard(jzx_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
