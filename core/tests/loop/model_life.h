/* The model's actors: which message may be next, when an actor may end, what its end means (R6, R8,
 * R16). */
#ifndef JZT_MODEL_LIFE_H
#define JZT_MODEL_LIFE_H

#include "model_events.h"

/* A user message is being handled or expires: it must be the first of its lane. Returns it. */
static inline m_msg m_pick(model *m, m_actor *a, uint32_t serial)
{
    bool urgent = a->urgent.count > 0 && a->urgent.at[0].serial == serial;
    bool ordinary = a->ordinary.count > 0 && a->ordinary.at[0].serial == serial;
    bool event_waits = m->exact && m_event_waits(m, a);
    m_require(m, urgent || ordinary, "a message came that was not the first of its lane");
    if (urgent) {
        m->urgent_picks++;
        a->passed_ordinary = a->ordinary.count > 0 ? a->passed_ordinary + 1 : 0;
        a->passed_events = event_waits ? a->passed_events + 1 : 0;
        return m_lane_pop(&a->urgent);
    }
    if (!ordinary) {
        return (m_msg){.serial = serial};
    }
    a->passed_ordinary = 0;
    a->passed_events = event_waits ? a->passed_events + 1 : 0;
    m->urgent_passed += a->urgent.count > 0;
    m->events_passed += event_waits;
    m_msg msg = m_lane_pop(&a->ordinary);
    for (int i = 0; i < M_REQUESTS; i++) {
        const m_request *r = &m->requests[i];
        m_require(m, !(r->state == M_POSTED && r->waiter == a->id && r->by < msg.stamp),
                  "a message overtook an older room notice");
    }
    /* A round is 32 of the other lane and 16 ordinary ones (R8). */
    if (!m->loose) { /* else they may have come when this one was already out of its lane */
        m_require(m, m->urgent_passed * 2 <= m->urgent_picks, "urgent messages waited for others");
        m_require(m, m->events_passed * 2 <= m->event_picks, "timer messages waited for others");
    }
    return msg;
}

static inline void m_check_starving(model *m, const m_actor *a)
{
    m_require(m, a->passed_ordinary <= 64 + M_REQUESTS, "the ordinary lane starves");
    m_require(m, a->passed_events <= 64 + 16, "the event lane starves");
}

/* May the actor end now, and has everything it must see been seen? */
static inline void m_check_end(model *m, const m_actor *a)
{
    m_require(m, a->failing || a->stop || a->drain || m->destroying,
              "an actor ended for no reason");
    if (a->failing || a->stop || m->destroying) {
        return;
    }
    m_require(m, m_queued(a) == 0 && a->flying == 0,
              "a drained actor ended with messages in its mailbox");
    for (int i = 0; i < M_TIMERS && m->exact; i++) {
        const m_timer *t = &m->timers[i];
        m_require(m, !(t->owner == a->id && t->state == M_QUEUED && t->stamp < a->drain_stamp),
                  "a drained actor ended before a timer message that was queued");
    }
    for (int i = 0; i < M_REQUESTS && m->exact; i++) {
        const m_request *r = &m->requests[i];
        m_require(m, !(r->waiter == a->id && r->state == M_POSTED && r->by < a->drain_stamp),
                  "a drained actor ended before a notice that was queued");
    }
}

/* The end has begun: what the actor waited for will not come. */
static inline void m_end_timers(model *m, const m_actor *a)
{
    for (int i = 0; i < M_TIMERS; i++) {
        m_timer *t = &m->timers[i];
        if (t->state != M_FREE && t->owner == a->id) {
            m_release(m, a->hook, t->form, t->serial);
            t->state = M_FREE;
        }
    }
    for (int i = 0; i < M_REQUESTS; i++) {
        if (m->requests[i].waiter == a->id) {
            m->requests[i].state = M_NONE;
        }
    }
}

/* The actor is gone (R16): its leftovers are dead, who waited for it is told. */
static inline void m_end(model *m, m_actor *a)
{
    m_require(m, m_queued(a) == 0, "an actor ended and its messages are nowhere");
    m_end_timers(m, a);
    for (int i = 0; i < M_REQUESTS; i++) {
        m_request *r = &m->requests[i];
        if (r->target == a->id && (r->state == M_WAITING || r->state == M_MAYBE)) {
            r->since = r->state == M_WAITING ? ++m->stamps : r->since;
            r->state = M_POSTED;
            r->gone = true;
            r->by = ++m->stamps;
        }
    }
    a->id = JZX_NOBODY;
    m->ended++;
}

#endif
