/* Admission: what may go into a mailbox, and what happens when it is full (R8, R10, R11). */
#ifndef JZI_MAILBOX_H
#define JZI_MAILBOX_H

#include "sched/worker.h"

#include <string.h>

/* Checks a full-form send. *out_flags gets the message's flags. Errors: INVALID_ARG, TOO_BIG,
 * RESERVED_TAG. Also for sends from other threads. */
jzx_err jzi_mailbox_check_opts(const jzx_send_opts *opts, uint32_t *out_flags);

/* Sends in full: every option, every policy. Ownership as in jzx_send_with(), without CONSUME. */
jzx_err jzi_mailbox_send(jzi_worker *worker, jzx_actor_id to, const jzx_send_opts *opts,
                         uint32_t flags);

/* Sends a message on that was accepted by `from` and has left its lane; the sender stays. False:
 * the other actor does not take it, or there is no memory; then nothing changed. `from` has a cold
 * part. */
bool jzi_mailbox_redirect(jzi_worker *worker, jzi_actor *from, jzi_node *node, jzx_actor_id to);

/* The same for the short forms; flags: JZX_MSG_VALUE or 0. */
jzx_err jzi_mailbox_send_plain(jzi_worker *worker, jzx_actor_id to, uint64_t payload, size_t len,
                               uint32_t tag, uint32_t flags);

/* The quick way for the common case: an open actor, room in its ordinary lane, a node at hand. NULL
 * when it is not that simple: take the full way. */
static inline jzi_node *jzi_mailbox_quick(jzi_worker *worker, jzx_actor_id to,
                                          jzi_actor **out_actor)
{
    uint32_t slot = jzx_id_index(to) ^ worker->base;
    if (jzi_unlikely(slot >= worker->quick_slots)) {
        return NULL;
    }
    jzi_actor *actor = jzi_worker_slot(worker, slot);
    if (jzi_unlikely(!jzi_gate_is_quiet(jzi_actor_gate(actor), to) ||
                     jzi_actor_own_used(actor) >= jzi_actor_cap(actor))) {
        return NULL;
    }
    *out_actor = actor;
    return jzi_node_pool_take(&worker->plain);
}

/* Fills in a node fresh from the plain pool, without storing anything twice: such nodes have no
 * drop and no deadline. */
static inline void jzi_mailbox_fill(jzx_message *msg, uint64_t payload, size_t len, uint32_t tag,
                                    uint32_t flags, jzx_actor_id sender)
{
    const struct {
        uint32_t tag;
        uint8_t kind, flags;
        uint16_t reserved;
    } meta = {.tag = tag, .kind = JZX_KIND_USER, JZI_MSG_FLAGS(flags)};
    _Static_assert(sizeof meta == 8 &&
                       offsetof(jzx_message, sender) - offsetof(jzx_message, tag) == sizeof meta,
                   "the words between len and sender");
    msg->u64 = payload;
    msg->len = len;
    memcpy(&msg->tag, &meta, sizeof meta);
    msg->sender = sender;
}

/* Completes the quick way; the caller filled in node->msg. */
static inline void jzi_mailbox_put(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    jzi_worker_accepted_ordinary(worker, actor, node, JZI_COUNTS_USED);
}

#endif
