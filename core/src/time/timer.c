#include "time/timer_priv.h"

#include "base/alloc.h"
#include "base/list.h"
#include "sched/worker_record.h"

void jzi_timer_free(jzi_timers *timers, jzi_timer *timer)
{
    uint64_t word = jzi_timer_word(timer) & ~JZI_TIMER_STATE;
    jzi_debug_assert(timer->entry.pprev == NULL);
    jzi_timer_set_word(timer, word);
    if (jzi_unlikely(word >> 32 == UINT32_MAX)) {
        return; /* retired: its ids are used up */
    }
    if (jzi_unlikely((word & JZI_TIMER_FAR) != 0)) {
        jzi_timer_slot_give_far(timers->slots, timer);
        return;
    }
    timer->next = timers->slots->free_list;
    timers->slots->free_list = timer;
}

/* Releases data that reached no behavior; the owner may be gone. */
static void release_data(jzi_worker *worker, jzi_timer *timer)
{
    jzx_message *msg = &timer->node.msg;
    if ((msg->flags & JZX_MSG_VALUE) != 0 || msg->data == NULL) {
        return;
    }
    const jzi_actor *owner = jzi_worker_find(worker, timer->owner);
    if (jzi_likely(owner != NULL || msg->drop != NULL)) {
        jzi_worker_release_data(worker, owner, msg);
    } else {
        jzi_count_add(&worker->counters.abandoned, 1);
    }
}

/* The last step of every timer. `handed` says whether a one-shot message reached its behavior,
 * which then owned the data. */
static void end_timer(jzi_timers *timers, jzi_timer *timer, bool handed)
{
    jzi_worker *worker = timers->dispatcher->acting;
    if (!handed || timer->period_ms > 0) {
        release_data(worker, timer);
    }
    JZI_LIST_REMOVE(timer);
    jzi_timer_free(timers, timer);
    jzi_count_sub(&worker->counters.timers, 1);
}

void jzi_timer_let_go(jzi_timers *timers, jzi_timer *timer)
{
    jzi_worker *worker = timers->dispatcher->acting;
    if (timer->owner == JZX_NOBODY) {
        return;
    }
    jzi_wheel_remove(&timers->wheel, &timer->entry);
    release_data(worker, timer);
    timer->owner = JZX_NOBODY;
    if (timer->pprev != NULL) {
        JZI_LIST_REMOVE(timer);
        jzi_count_sub(&worker->counters.timers, 1);
    }
}

static bool claim_timer(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    (void)actor;
    jzi_timer *timer = jzi_container_of(node, jzi_timer, node);
    uint64_t word = jzi_timer_word(timer);
    if (jzi_timer_state_of(word) == JZI_TIMER_CANCELLED ||
        !jzi_timer_swap(timer, worker->timers->slots->shared, word, JZI_TIMER_HANDING)) {
        return false;
    }
    node->msg.deadline_ns = timer->entry.due_ns;
    if (timer->period_ms > 0 && (word & JZI_TIMER_FIXED) == 0) {
        uint64_t late_ns = jzi_worker_clock(worker) - timer->entry.due_ns;
        uint64_t missed = late_ns / ((uint64_t)timer->period_ms * 1000000u);
        timer->missed = missed > UINT32_MAX ? UINT32_MAX : (uint32_t)missed;
    }
    return true;
}

/* A periodic timer goes on, unless it was cancelled meanwhile. */
static __attribute__((noinline)) void arm_again(jzi_worker *worker, jzi_timer *timer)
{
    jzi_timers *timers = worker->timers;
    uint64_t period_ns = (uint64_t)timer->period_ms * 1000000u;
    if ((jzi_timer_word(timer) & JZI_TIMER_FIXED) != 0) {
        timer->entry.due_ns = jzi_worker_clock(worker) + period_ns;
    } else {
        timer->entry.due_ns += ((uint64_t)timer->missed + 1) * period_ns;
    }
    timer->missed = 0;
    if (jzi_timer_move(timer, timers->slots->shared, JZI_TIMER_HANDING, JZI_TIMER_ARMED)) {
        jzi_wheel_add(&timers->wheel, &timer->entry);
    } else {
        end_timer(timers, timer, true);
    }
}

static void timer_done(jzi_worker *worker, jzi_node *node)
{
    jzi_timer *timer = jzi_container_of(node, jzi_timer, node);
    if (timer->period_ms == 0) {
        end_timer(worker->timers, timer, true);
    } else {
        arm_again(worker, timer);
    }
}

static void timer_revoked(jzi_worker *worker, jzi_node *node)
{
    end_timer(worker->timers, jzi_container_of(node, jzi_timer, node), false);
}

void jzi_timers_init(jzi_timers *timers, jzi_worker *worker)
{
    timers->dispatcher = worker->dispatcher;
    timers->slots = &worker->inbox->timers;
    worker->timers = timers;
    worker->dispatcher->event_ops[JZI_EVENT_TIMER] = (jzi_event_ops){.claim = claim_timer,
                                                                     .done = timer_done,
                                                                     .revoke = timer_revoked,
                                                                     .arrive = jzi_timer_arrived};
    jzi_wheel_init(&timers->wheel, worker->now_ns);
}

void jzi_timers_deinit(jzi_timers *timers)
{
    jzi_assert(jzi_wheel_next_ns(&timers->wheel) == UINT64_MAX);
}

static jzx_err timer_check_opts(const jzx_timer_opts *opts)
{
    if (opts->tag >= JZX_TAG_SYSTEM_FIRST) {
        return JZX_ERR_RESERVED_TAG;
    }
    if ((opts->flags & ~JZX_TIMER_VALUE) != 0 || opts->mode > JZX_TIMER_FIXED_DELAY ||
        opts->reserved != 0 || ((opts->flags & JZX_TIMER_VALUE) != 0 && opts->drop != NULL)) {
        return JZX_ERR_INVALID_ARG;
    }
    if (opts->delay_ms > JZX_TIMER_DELAY_MAX_MS || opts->period_ms > UINT32_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    return JZX_OK;
}

jzx_err jzi_timer_start(jzi_timers *timers, jzx_actor_id target, const jzx_timer_opts *opts,
                        jzx_timer_id *out_id)
{
    jzi_worker *worker = timers->dispatcher->acting;
    jzx_err err = timer_check_opts(opts);
    if (err != JZX_OK) {
        return err;
    }
    jzi_actor *actor = NULL;
    err = jzi_worker_find_owner(worker, target, &actor);
    if (err != JZX_OK) {
        return err == JZX_ERR_NO_SUCH_ACTOR && jzi_worker_is_far(worker, target)
                   ? jzi_timer_start_far(worker, target, opts, out_id)
                   : err;
    }
    jzi_cold *cold = jzi_worker_cold(worker, actor);
    jzi_timer *timer = cold == NULL ? NULL : jzi_timer_slot_take(timers->slots, &worker->alloc);
    if (timer == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_timer_fill(worker, timer, target, opts);
    jzi_timer_set_word(timer, jzi_timer_next_word(timer, jzi_timer_bits(opts) | JZI_TIMER_ARMED));
    jzi_timer_enter(timers, timer, cold);
    if (out_id != NULL) {
        *out_id = jzi_timer_id(timer);
    }
    return JZX_OK;
}

jzx_err jzi_timer_cancel(jzi_timers *timers, jzx_timer_id id)
{
    const jzi_worker *worker = timers->dispatcher->acting;
    jzi_timer *timer = jzi_timer_slot_find(timers->slots, (uint32_t)id ^ worker->base);
    if (timer == NULL) {
        return jzi_timer_cancel_far(worker, id);
    }
    jzi_timer_state was;
    jzx_err err = jzi_timer_claim_cancel(timer, timers->slots->shared, (uint32_t)(id >> 32), &was);
    if (err == JZX_OK && was == JZI_TIMER_ARMED) {
        jzi_wheel_remove(&timers->wheel, &timer->entry);
        end_timer(timers, timer, false);
    }
    return err; /* else the timer goes when its node is out of its lane, or comes home */
}

void jzi_timers_expire(jzi_timers *timers, uint64_t now_ns)
{
    const bool shared = timers->slots->shared;
    jzi_wheel_entry *entry = jzi_wheel_take(&timers->wheel, now_ns);
    while (entry != NULL) {
        jzi_wheel_entry *next = entry->next;
        if (next != NULL) {
            __builtin_prefetch(next);
            __builtin_prefetch((const char *)next + 64);
        }
        entry->pprev = NULL;
        jzi_timer *timer = jzi_container_of(entry, jzi_timer, entry);
        if (jzi_likely(jzi_timer_move(timer, shared, JZI_TIMER_ARMED, JZI_TIMER_QUEUED))) {
            jzi_actor *owner =
                jzi_actor_table_at(timers->dispatcher->acting->table, jzx_id_slot(timer->owner));
            if (jzi_unlikely(timers->dispatcher->acting->recording_often)) {
                jzi_worker_note(timers->dispatcher->acting, JZI_RING_TIMER, timer->owner,
                                JZX_NOBODY, timer->node.msg.tag, 0, 0);
            }
            jzi_worker_post_event(timers->dispatcher->acting, owner, &timer->node);
        } else {
            jzi_timer_let_go(timers, timer);
        }
        entry = next;
    }
}

void jzi_timers_leave(jzi_worker *worker, jzi_actor *actor, bool restarts)
{
    jzi_timers *timers = worker->timers;
    jzi_timer *timer = actor->cold->timers;
    (void)restarts;
    while (timer != NULL) {
        jzi_timer *next = timer->next;
        if (jzi_timer_move(timer, timers->slots->shared, JZI_TIMER_ARMED, JZI_TIMER_CANCELLED)) {
            jzi_wheel_remove(&timers->wheel, &timer->entry);
            end_timer(timers, timer, false);
        } else if (timer->entry.pprev != NULL) { /* another dispatcher's cancel was first */
            jzi_timer_let_go(timers, timer);
        } else {
            /* The timer's message is about to be revoked. */
            jzi_timer_set_state(timer, JZI_TIMER_CANCELLED);
        }
        timer = next;
    }
}
