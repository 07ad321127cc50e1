/* What calls need that send on behalf of an actor. */
#ifndef JZI_SEND_H
#define JZI_SEND_H

#include "sched/entry.h"
#include "sched/mailbox.h"
#include "sched/sender.h"

/* A send of a call that entered the loop already: in a pool it has the pool lock, so that inside of
 * it no other way is needed. The caller checked the options; a refusal is not counted. */
static inline jzx_err jzi_send_inside(jzi_worker *worker, jzx_actor_id to,
                                      const jzx_send_opts *opts, uint32_t flags)
{
    return jzi_unlikely(jzi_worker_is_far(worker, to)) ? jzi_far_send(worker, to, opts, flags)
                                                       : jzi_mailbox_send(worker, to, opts, flags);
}

/* What JZX_SEND_CONSUME asks for when a send was refused. Without the pool lock: `drop` is user
 * code. */
static inline void jzi_send_consume(const jzx_send_opts *opts)
{
    if ((opts->flags & JZX_SEND_CONSUME) != 0 && opts->drop != NULL && opts->data != NULL) {
        opts->drop(opts->data);
    }
}

#endif
