/* What a thread does besides sending: it looks at actors, stops them, waits. */
#include "sched/sender_priv.h"

#include "sched/room.h"

jzi_post *jzi_sender_post_of(const jzx_sender *sender, uint64_t id)
{
    jzi_post *post = sender->post;
    return sender->directory == NULL || post->base == ((uint32_t)id & 0xFF000000u)
               ? post
               : jzi_directory_post(sender->directory, jzx_id_dispatcher(id));
}

static bool is_closed(const jzi_post *post)
{
    return atomic_load_explicit(&post->inbound, memory_order_relaxed) == JZI_INBOUND_CLOSED;
}

static jzx_err order(jzx_sender *sender, jzx_actor_id id, uint64_t what)
{
    if (sender == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_post *post = jzi_sender_post_of(sender, id);
    if (post == NULL) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    return is_closed(post) ? jzi_sender_closed(post) : jzi_post_order(post, id, what);
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
    uint32_t history = sender == NULL ? 0 : jzi_post_history(jzi_sender_post_of(sender, id), id);
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
    jzi_post *post = jzi_sender_post_of(sender, id);
    if (post == NULL) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    jzx_err err = jzi_room_await(post, id, timeout_ms);
    return err == JZX_ERR_LOOP_CLOSED ? jzi_sender_closed(post) : err;
}
