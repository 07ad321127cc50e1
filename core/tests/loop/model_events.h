/* The model's timers (R26) and room notices (R12): what comes by itself. */
#ifndef JZT_MODEL_EVENTS_H
#define JZT_MODEL_EVENTS_H

#include "model.h"

/* Timers (R26). */

static inline jzx_err m_timer_start(model *m, const m_timer *wanted, uint64_t now_ns,
                                    m_timer **out_timer)
{
    const m_actor *a = m_find(m, wanted->owner);
    *out_timer = NULL;
    if (a == NULL || a->closed || m->destroying) {
        return a == NULL ? JZX_ERR_NO_SUCH_ACTOR : JZX_ERR_STOPPING;
    }
    for (int i = 0; i < M_TIMERS; i++) {
        m_timer *t = &m->timers[i];
        if (t->state == M_FREE) {
            *t = *wanted;
            t->state = M_ARMED;
            t->seq = ++m->seqs;
            t->tick = m_tick_of(t->due_ns);
            t->on_time = t->tick > now_ns / M_TICK_NS;
            *out_timer = t;
            return JZX_OK;
        }
    }
    m_require(m, false, "the model has too few timers");
    return JZX_OK;
}

static inline m_timer *m_timer_find(model *m, jzx_timer_id id)
{
    for (int i = 0; i < M_TIMERS; i++) {
        if (m->timers[i].state != M_FREE && m->timers[i].id == id) {
            return &m->timers[i];
        }
    }
    return NULL;
}

/* Without exact knowledge, not for a timer that is due and may be queued or not. */
static inline jzx_err m_timer_cancel(model *m, jzx_timer_id id)
{
    m_timer *t = m_timer_find(m, id);
    if (t == NULL || t->state == M_CANCELLED || (t->state == M_HANDING && t->period_ms == 0)) {
        return JZX_ERR_ALREADY;
    }
    if (t->state == M_ARMED) {
        m_release(m, m_find(m, t->owner)->hook, t->form, t->serial);
        t->state = M_FREE;
    } else {
        t->state = M_CANCELLED; /* released when its place in the lane comes */
    }
    return JZX_OK;
}

/* A step has begun: what is due is in its owner's lane, in the order of the due times. */
static inline void m_timers_expire(model *m, uint64_t now_ns)
{
    for (int i = 0; i < M_TIMERS; i++) {
        m_timer *t = &m->timers[i];
        if (t->state == M_ARMED && t->tick <= now_ns / M_TICK_NS) {
            t->state = M_QUEUED;
            t->stamp = ++m->stamps;
        }
    }
}

static inline bool m_event_waits(const model *m, const m_actor *a)
{
    for (int i = 0; i < M_TIMERS; i++) {
        if (m->timers[i].state == M_QUEUED && m->timers[i].owner == a->id) {
            return true;
        }
    }
    return false;
}

/* Must p come before q, both of one owner? */
static inline bool m_timer_before(const m_timer *p, const m_timer *q)
{
    bool earlier = p->tick < q->tick || (p->tick == q->tick && p->seq < q->seq);
    return earlier && (p->seq < q->seq || p->on_time);
}

/* Its message is being handled. Returns how many periods it must say were missed. */
static inline uint64_t m_timer_handle(model *m, m_timer *t, uint64_t now_ns)
{
    m_require(m, t->state == M_QUEUED || (!m->exact && t->state == M_ARMED),
              "a timer message came that was cancelled or not due");
    m_require(m, now_ns >= t->due_ns, "a timer fired early");
    for (int i = 0; i < M_TIMERS; i++) {
        const m_timer *p = &m->timers[i];
        if (p != t && p->owner == t->owner && (p->state == M_QUEUED || p->state == M_ARMED)) {
            m_require(m, !m_timer_before(p, t), "timers fired out of order");
        }
    }
    t->state = M_HANDING;
    m->event_picks++;
    if (t->period_ms == 0 || t->fixed_delay) {
        return 0;
    }
    return (now_ns - t->due_ns) / (t->period_ms * M_TICK_NS);
}

/* Its behavior is through; `taken` says that it took a one-shot timer's data. */
static inline void m_timer_done(model *m, m_timer *t, uint64_t missed, bool taken, uint64_t now_ns)
{
    if (t->period_ms == 0 && t->form == M_DROP && !taken) {
        m->payloads[t->serial].must_drop++;
    }
    if (t->period_ms == 0) {
        t->state = M_FREE;
    } else if (t->state == M_CANCELLED) {
        m_release(m, m_find(m, t->owner)->hook, t->form, t->serial);
        t->state = M_FREE;
    } else {
        uint64_t period_ns = t->period_ms * M_TICK_NS;
        /* A fixed delay begins with a look at the clock after the behavior. */
        t->due_ns =
            t->fixed_delay ? now_ns + m->cost_ns + period_ns : t->due_ns + (missed + 1) * period_ns;
        t->tick = m_tick_of(t->due_ns);
        t->seq = ++m->seqs;
        t->on_time = t->tick > now_ns / M_TICK_NS;
        t->state = M_ARMED;
    }
}

/* Cancelled messages leave the lane unseen, but their payload shows it; or nothing is queued. */
static inline void m_timers_sync(model *m, const m_actor *a, bool nothing_queued)
{
    for (int i = 0; i < M_TIMERS; i++) {
        m_timer *t = &m->timers[i];
        const m_payload *p = &m->payloads[t->serial];
        if (t->owner == a->id && t->state == M_CANCELLED &&
            (nothing_queued || p->dropped > p->must_drop || p->hooked > p->must_hook)) {
            m_release(m, a->hook, t->form, t->serial);
            t->state = M_FREE;
        }
    }
}

/* Room (R12). */

static inline bool m_room_uncertain(model *m, jzx_actor_id waiter, jzx_actor_id target)
{
    for (int i = 0; i < M_REQUESTS; i++) {
        const m_request *r = &m->requests[i];
        if (r->state == M_MAYBE && r->waiter == waiter && r->target == target) {
            return true;
        }
    }
    return false;
}

/* Slots that are free and not promised to somebody whose notice is still under way. */
static inline uint32_t m_room_spare(const model *m, const m_actor *t)
{
    uint32_t told = m->told_in_hand == t->id;
    for (int i = 0; i < M_REQUESTS; i++) {
        const m_request *r = &m->requests[i];
        told += r->target == t->id && r->state == M_POSTED && r->ok;
    }
    return t->cap > m_used(t) + told ? t->cap - m_used(t) - told : 0;
}

static inline jzx_err m_notify_room(model *m, const m_actor *waiter, jzx_actor_id target)
{
    m_actor *t = m_find(m, target);
    m_request *free_place = NULL;
    bool others = false;
    if (waiter->closed) {
        return JZX_ERR_STOPPING;
    }
    for (int i = 0; i < M_REQUESTS; i++) {
        m_request *r = &m->requests[i];
        if (r->state == M_NONE) {
            free_place = r;
        } else if (r->target == target && r->state != M_POSTED) {
            others = true;
            if (r->waiter == waiter->id) {
                return JZX_OK; /* one request at a time */
            }
        }
    }
    m_require(m, free_place != NULL, "the model has too few requests");
    if (free_place == NULL) {
        return JZX_OK;
    }
    *free_place =
        (m_request){.waiter = waiter->id, .target = target, .seq = ++m->seqs, .since = ++m->stamps};
    if (t == NULL || t->closed) {
        free_place->state = M_POSTED;
        free_place->by = ++m->stamps;
        free_place->gone = true;
    } else if (m->loose) { /* the message in the hands of the target may have made room */
        free_place->ok = m_used(t) <= t->low + 1;
        free_place->state = free_place->ok ? M_MAYBE : M_WAITING;
    } else if (m_used(t) <= t->low && !others && m_room_spare(m, t) > 0) {
        free_place->state = M_POSTED;
        free_place->by = ++m->stamps;
        free_place->ok = true;
        free_place->room = t->cap - m_used(t);
    } else {
        free_place->state = m_used(t) <= t->low ? M_MAYBE : M_WAITING;
        free_place->ok = m_used(t) <= t->low;
    }
    return JZX_OK;
}

static inline m_request *m_room_first(model *m, jzx_actor_id target, bool maybe_too)
{
    m_request *first = NULL;
    for (int i = 0; i < M_REQUESTS; i++) {
        m_request *r = &m->requests[i];
        if (r->target == target && (r->state == M_WAITING || (maybe_too && r->state == M_MAYBE)) &&
            (first == NULL || r->seq < first->seq)) {
            first = r;
        }
    }
    return first;
}

/* The target fell to its mark, or to below: as many waiters as slots are told at the end of its
 * turn, others may be told soon after. `turn_over`: the turn is known to have ended. */
static inline void m_room_fell(model *m, const m_actor *t, bool turn_over)
{
    if (m_used(t) > t->low + (m->loose ? 1 : 0)) {
        return;
    }
    for (uint32_t spare = m_room_spare(m, t); turn_over && spare > 0; spare--) {
        m_request *r = m_room_first(m, t->id, true);
        if (r == NULL) {
            return;
        }
        r->since = r->state == M_WAITING ? ++m->stamps : r->since;
        r->state = M_POSTED;
        r->ok = true;
        r->by = ++m->stamps;
    }
    for (m_request *r = m_room_first(m, t->id, false); r != NULL;
         r = m_room_first(m, t->id, false)) {
        r->state = M_MAYBE;
        r->ok = true;
        r->since = ++m->stamps;
    }
}

static inline void m_room_handle(model *m, const m_actor *waiter, const jzx_room_notice *notice)
{
    m_request *found = NULL;
    for (int i = 0; i < M_REQUESTS; i++) {
        m_request *r = &m->requests[i];
        if (r->state != M_NONE && r->waiter == waiter->id && r->target == notice->target &&
            (found == NULL || r->seq < found->seq)) {
            found = r;
        }
    }
    m_require(m, found != NULL, "a room notice came that nobody asked for");
    if (found == NULL) {
        return;
    }
    m_require(m, found->state != M_WAITING, "a room notice came before there was room");
    m_require(m, notice->err == JZX_OK ? found->ok : found->gone, "a room notice has a wrong err");
    m_require(m, notice->err == JZX_OK || notice->err == JZX_ERR_NO_SUCH_ACTOR,
              "a room notice has an unknown err");
    m_require(m, found->room == 0 || notice->room == found->room, "a notice has a wrong room");
    m_require(m, (notice->err == JZX_OK) == (notice->room > 0),
              "a notice has no room, or too much");
    m_require(m, waiter->ordinary.count == 0 || waiter->ordinary.at[0].stamp > found->since,
              "a room notice overtook an older message");
    for (int i = 0; i < M_REQUESTS; i++) {
        const m_request *r = &m->requests[i];
        m_require(m,
                  !(notice->err == JZX_OK && r->state == M_WAITING && r->target == notice->target &&
                    r->seq < found->seq),
                  "room was not announced in the order of asking");
        m_require(m, !(r->state == M_POSTED && r->waiter == waiter->id && r->by < found->since),
                  "a room notice overtook an older one");
    }
    /* Whoever was told for certain and has not acted yet was promised a slot of its own. */
    const m_actor *t = m_find(m, notice->target);
    uint32_t told = 0;
    for (int i = 0; i < M_REQUESTS; i++) {
        const m_request *r = &m->requests[i];
        told += r->target == notice->target && r->ok && (r->state == M_POSTED || r == found);
    }
    m_require(m, notice->err != JZX_OK || t == NULL || told <= t->cap,
              "more waiters were told than there are slots");
    found->state = M_NONE;
    m->told_in_hand = notice->err == JZX_OK ? notice->target : JZX_NOBODY;
}

#endif
