/* Timers between dispatchers (R26). The target's dispatcher keeps the timer, so a timer for an
 * actor elsewhere is made in that dispatcher's table and sent there by its own node; until it
 * arrives it is COMING. A cancel by another dispatcher changes the word and, if the timer was in
 * the wheel, sends its node home: only there it is taken out and freed. Nothing of this needs
 * memory once the timer has a slot, and nothing waits for the other dispatcher. */
#include "time/timer_priv.h"

static bool send_node(jzi_inbox *inbox, jzi_timer *timer)
{
    if (!jzi_inbox_push(inbox, &timer->node)) {
        return false;
    }
    jzi_inbox_wake(inbox);
    return true;
}

jzx_err jzi_timer_start_far(jzi_worker *worker, jzx_actor_id target, const jzx_timer_opts *opts,
                            jzx_timer_id *out_id)
{
    jzi_inbox *inbox = NULL;
    const jzi_actor *actor = NULL;
    jzx_err err = jzi_directory_lookup(worker->dispatcher->directory, target, &inbox, &actor);
    if (err != JZX_OK) {
        return err;
    }
    jzi_timer *timer = jzi_timer_slot_take_far(&inbox->timers, &worker->alloc);
    if (timer == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_timer_fill(worker, timer, target, opts);
    timer->pprev = NULL;
    jzi_timer_set_word(timer, jzi_timer_next_word(timer, jzi_timer_bits(opts) | JZI_TIMER_COMING));
    jzx_timer_id id = jzi_timer_id(timer);
    if (!send_node(inbox, timer)) {
        jzi_timer_set_state(timer, JZI_TIMER_FREE);
        if (id >> 32 != UINT32_MAX) {
            jzi_timer_slot_give_far(&inbox->timers, timer);
        }
        return JZX_ERR_NO_SUCH_ACTOR; /* the target ended, and its dispatcher went with it */
    }
    if (out_id != NULL) {
        *out_id = id;
    }
    return JZX_OK;
}

jzx_err jzi_timer_cancel_far(const jzi_worker *worker, jzx_timer_id id)
{
    return jzi_timer_cancel_at(
        jzi_worker_is_far(worker, id)
            ? jzi_directory_inbox(worker->dispatcher->directory, (uint32_t)id >> 24)
            : NULL,
        id);
}

jzx_err jzi_timer_cancel_at(jzi_inbox *inbox, jzx_timer_id id)
{
    jzi_timer *timer =
        inbox == NULL ? NULL : jzi_timer_slot_find(&inbox->timers, (uint32_t)id ^ inbox->base);
    if (timer == NULL) {
        return JZX_ERR_NO_SUCH_TIMER;
    }
    jzi_timer_state was;
    jzx_err err = jzi_timer_claim_cancel(timer, true, (uint32_t)(id >> 32), &was);
    if (err == JZX_OK && was == JZI_TIMER_ARMED) {
        /* Refused: the dispatcher is gone, and the timer was let go with its owner. Its slot is not
         * used again. */
        (void)send_node(inbox, timer);
    }
    return err;
}

/* True: the timer is armed, or comes again. */
static bool take_in(jzi_worker *worker, jzi_timer *timer)
{
    jzi_actor *owner = NULL;
    if (jzi_worker_find_owner(worker, timer->owner, &owner) != JZX_OK) {
        return false;
    }
    jzi_cold *cold = jzi_worker_cold(worker, owner);
    if (cold == NULL) {
        return send_node(worker->inbox, timer); /* no memory now: in the next tick, then */
    }
    if (!jzi_timer_move(timer, true, JZI_TIMER_COMING, JZI_TIMER_ARMED)) {
        return false;
    }
    jzi_timer_enter(worker->timers, timer, cold);
    return true;
}

void jzi_timer_arrived(jzi_worker *worker, jzi_node *node)
{
    jzi_timer *timer = jzi_container_of(node, jzi_timer, node);
    bool coming = jzi_timer_state_of(jzi_timer_word(timer)) == JZI_TIMER_COMING;
    if (coming && take_in(worker, timer)) {
        return;
    }
    jzi_timer_let_go(worker->timers, timer);
    jzi_timer_free(worker->timers, timer);
}
