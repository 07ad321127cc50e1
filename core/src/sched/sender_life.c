/* What a thread does besides sending: it looks at actors, stops them, waits. */
#include "sched/sender_priv.h"

#include "sched/room.h"

jzi_inbox *jzi_sender_inbox_of(const jzx_sender *sender, uint64_t id)
{
    jzi_inbox *inbox = sender->inbox;
    return sender->directory == NULL || inbox->base == ((uint32_t)id & 0xFF000000u)
               ? inbox
               : jzi_directory_inbox(sender->directory, jzx_id_dispatcher(id));
}

static bool is_closed(const jzi_inbox *inbox)
{
    return atomic_load_explicit(&inbox->inbound, memory_order_relaxed) == JZI_INBOUND_CLOSED;
}

static jzx_err order(jzx_sender *sender, jzx_actor_id id, uint64_t what)
{
    if (sender == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_inbox *inbox = jzi_sender_inbox_of(sender, id);
    if (inbox == NULL) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    return is_closed(inbox) ? jzi_sender_closed(inbox) : jzi_inbox_order(inbox, id, what);
}

jzx_err jzx_sender_stop(jzx_sender *sender, jzx_actor_id id)
{
    return order(sender, id, JZI_GATE_STOP);
}

jzx_err jzx_sender_stop_drained(jzx_sender *sender, jzx_actor_id id)
{
    return order(sender, id, JZI_GATE_DRAIN);
}

jzx_err jzx_sender_kill(jzx_sender *sender, jzx_actor_id id)
{
    return order(sender, id, JZI_GATE_KILL);
}

jzx_state jzx_sender_actor_state(jzx_sender *sender, jzx_actor_id id)
{
    uint32_t history = sender == NULL ? 0 : jzi_inbox_history(jzi_sender_inbox_of(sender, id), id);
    return history == 0 ? JZX_STATE_TERMINATED : (jzx_state)(history & 7u);
}

jzx_err jzx_sender_wait_room(jzx_sender *sender, jzx_actor_id id, uint64_t timeout_ms)
{
    if (sender == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (jzi_worker_here != NULL) {
        return JZX_ERR_DEADLOCK;
    }
    jzi_inbox *inbox = jzi_sender_inbox_of(sender, id);
    if (inbox == NULL) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    jzx_err err = jzi_room_await(inbox, id, timeout_ms);
    return err == JZX_ERR_LOOP_CLOSED ? jzi_sender_closed(inbox) : err;
}
