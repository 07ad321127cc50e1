/* What the loop needs to know of its senders. */
#ifndef JZI_SENDER_H
#define JZI_SENDER_H

#include <jzx/sender.h>

#include "sched/worker.h"

/* A sender for a thread of the program; see jzx_sender_open(). Thread: any. */
jzx_err jzi_sender_open(jzi_inbox *inbox, uint32_t flags, jzx_sender **out_sender);

/* Sends of a worker to an actor of another dispatcher, or of its own pool: as from any other
 * thread, but with a sender. The caller checked the options; a refusal is not counted here. Thread:
 * the worker's, with or without the pool lock. Errors as jzx_send_with(). */
jzx_err jzi_far_send(jzi_worker *worker, jzx_actor_id to, const jzx_send_opts *opts,
                     uint32_t flags);
jzx_err jzi_far_send_plain(jzi_worker *worker, jzx_actor_id to, uint64_t payload, size_t len,
                           uint32_t tag, uint32_t flags);
/* Sends an accepted message on, as jzi_mailbox_redirect(). False: the message is refused there. */
bool jzi_far_redirect(jzi_worker *worker, const jzi_node *from, jzx_actor_id to);
/* Memory of a burst inside a pool goes back (R10), if no thread outside of it sends. Every worker
 * rests, and nothing is queued. */
void jzi_far_trim(jzi_dispatcher *dispatcher);
/* jzx_stop() and jzx_kill() from any thread. Errors: NO_SUCH_ACTOR. */
jzx_err jzi_far_command(const jzi_directory *directory, jzx_actor_id id, uint64_t order);
/* A sender to every dispatcher of a system. */
jzx_err jzi_sender_open_all(jzi_inbox *inbox, jzi_directory *directory, uint32_t flags,
                            jzx_sender **out_sender);
/* Closes the worker's senders. */
void jzi_far_close(jzi_worker *worker);

/* A send of a thread with flags of our own; a refusal is counted. Errors as
 * jzx_send_async_with(). */
jzx_err jzi_sender_send(jzx_sender *sender, jzx_actor_id to, const jzx_send_opts *opts,
                        uint32_t flags);
jzi_inbox *jzi_sender_inbox(const jzx_sender *sender);
/* The inbox of an id, which may be of another dispatcher; NULL: there is none. */
jzi_inbox *jzi_sender_inbox_of(const jzx_sender *sender, uint64_t id);
const jzi_directory *jzi_sender_directory(const jzx_sender *sender);

/* Messages that other threads were told are accepted. Thread: any. */
uint64_t jzi_senders_sent(jzi_inbox *inbox);

#endif
