/* Shared by the sources of api. */
#ifndef JZI_API_STEPS_H
#define JZI_API_STEPS_H

#include <jzx/ask.h>

#include "entry.h"
#include "mailbox.h"
#include "sender.h"

/* A send of a call that entered the loop already: in a pool it has the floor, so that inside of it
 * no other way is needed. The caller checked the options; a refusal is not counted. */
static inline jzx_err jzi_send_inside(jzi_worker *worker, jzx_actor_id to,
                                      const jzx_send_opts *opts, uint32_t flags)
{
    return jzi_unlikely(jzi_worker_is_far(worker, to)) ? jzi_far_send(worker, to, opts, flags)
                                                       : jzi_mailbox_send(worker, to, opts, flags);
}

/* What JZX_SEND_CONSUME asks for when a send was refused. Without the floor: it is user code. */
static inline void jzi_send_consume(const jzx_send_opts *opts)
{
    if ((opts->flags & JZX_SEND_CONSUME) != 0 && opts->drop != NULL && opts->data != NULL) {
        opts->drop(opts->data);
    }
}

/* Asks, whoever makes them. Errors as jzi_mailbox_check_opts(); *out_flags are those of the
 * request's message. */
struct jzi_ask;
jzx_err jzi_ask_check(const jzx_ask_opts *opts, uint32_t *out_flags);
void jzi_ask_fill(struct jzi_ask *ask, jzx_actor_id to, const jzx_ask_opts *opts, uint64_t now);
/* The request as a send; ask may be NULL. */
jzx_send_opts jzi_ask_request(const jzx_ask_opts *opts, const struct jzi_ask *ask);
uint32_t jzi_outcome_of(jzx_err err);
static inline void jzi_ask_consume(const jzx_ask_opts *opts)
{
    const jzx_send_opts request = {.data = opts->data, .drop = opts->drop, .flags = opts->flags};
    jzi_send_consume(&request);
}

#endif
