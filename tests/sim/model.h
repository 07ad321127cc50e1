/* The reference model of one loop: what every call answers, which message comes next, who hears
 * what. Plain arrays and loops, nothing shared with the code under test but the public header.
 *
 * A message is known by its serial number, which is also its tag. The model is told of every call
 * before it is made and answers what must come back; it is told of everything that is seen (a
 * message handled, a dead letter, an end) and says whether that was allowed. Where the runtime is
 * free (whose turn it is, when exactly a notice was posted) the model keeps what is certain and what
 * is possible, and complains only when the certain is broken. */
#ifndef JZT_MODEL_H
#define JZT_MODEL_H

#include <jzx/jzx.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { M_ACTORS = 40, M_LANE = 32, M_TIMERS = 256, M_REQUESTS = 256, M_PAYLOADS = 40000 };
enum { M_LETTERS = 4 };
#define M_TICK_NS UINT64_C(1000000)

typedef enum m_form { M_PLAIN, M_NULL, M_DROP, M_VALUE, M_COPY } m_form;

typedef struct m_payload {
    uint8_t must_drop, must_hook; /* what the model expects */
    uint8_t dropped, hooked;      /* what was seen */
} m_payload;

typedef struct m_msg {
    uint32_t serial;
    m_form form;
    bool urgent;
    uint32_t margin;
    size_t len;
    uint64_t deadline_ns;
    jzx_actor_id sender;
    uint64_t stamp;
} m_msg;

typedef struct m_lane {
    m_msg at[M_LANE];
    uint32_t count;
} m_lane;

typedef struct m_actor {
    jzx_actor_id id; /* 0: the place is free */
    jzx_actor_id parent;
    uint32_t cap, low, max_msgs, policy;
    bool hook;      /* has drop_msg */
    bool closed;    /* sends are refused */
    bool stop;      /* ends before the next message */
    bool drain;     /* ends after what was queued at drain_stamp */
    bool failing;   /* the behavior said so: the end is next */
    bool deinit_ran;
    bool told_full; /* on_mailbox_full was called, and no turn has cleared that */
    uint64_t drain_stamp;
    jzx_reason reason; /* as the observer will hear it */
    m_lane ordinary, urgent;
    uint32_t handled, dead;
    uint32_t passed_ordinary; /* others taken while an ordinary message waited */
    uint32_t passed_events;   /* others taken while a timer message waited */
    const void *state;
} m_actor;

typedef enum m_timer_state { M_FREE, M_ARMED, M_QUEUED, M_HANDING, M_CANCELLED } m_timer_state;

typedef struct m_timer {
    m_timer_state state; /* CANCELLED: while queued or in hand; the runtime takes it out later */
    jzx_timer_id id;
    jzx_actor_id owner, sender;
    uint64_t due_ns, tick, seq, stamp;
    bool on_time; /* armed before its tick began, so the tick decides its order */
    uint32_t period_ms, serial;
    bool fixed_delay;
    m_form form;
} m_timer;

/* A request for room. WAITING: not yet posted, for certain. MAYBE: there was room since, so it may
 * have been. POSTED: it is in the waiter's lane, for certain. */
typedef enum m_request_state { M_NONE, M_WAITING, M_MAYBE, M_POSTED } m_request_state;

typedef struct m_request {
    m_request_state state;
    jzx_actor_id waiter, target;
    uint64_t seq;   /* order of asking */
    uint64_t since; /* posted after this stamp */
    uint64_t by;    /* posted before this stamp; 0: unknown */
    bool gone;      /* may say NO_SUCH_ACTOR */
    bool ok;        /* may say OK */
    uint32_t room;  /* exactly that much; 0: unknown */
} m_request;

typedef struct m_letter {
    uint32_t serial, reason;
    jzx_actor_id target;
} m_letter;

typedef struct model {
    bool exact; /* one turn per step and time that stands still unless told to move */
    bool destroying;
    uint64_t cost_ns; /* of a look at the clock */
    m_actor actors[M_ACTORS];
    m_timer timers[M_TIMERS];
    m_request requests[M_REQUESTS];
    m_payload payloads[M_PAYLOADS];
    m_letter letters[M_LETTERS]; /* the next call has to make these */
    uint32_t letter_count;
    uint32_t serials;
    uint64_t stamps;
    uint64_t seqs;
    /* What the counters must say. */
    uint64_t spawned, ended, handled, commands, abandoned;
    uint64_t refused[JZX_REASON_SLOTS], dead_by[JZX_REASON_SLOTS];
    /* Lanes: picks by kind, and ordinary ones taken while the other lane waited. */
    uint64_t urgent_picks, event_picks, urgent_passed, events_passed;
    const char *wrong; /* the first thing that was not allowed */
} model;

static inline void m_require(model *m, bool holds, const char *sentence)
{
    if (!holds && m->wrong == NULL) {
        m->wrong = sentence;
    }
}

static inline m_actor *m_find(model *m, jzx_actor_id id)
{
    for (int i = 0; id != 0 && i < M_ACTORS; i++) {
        if (m->actors[i].id == id) {
            return &m->actors[i];
        }
    }
    return NULL;
}

static inline uint32_t m_used(const m_actor *a)
{
    return a->ordinary.count + a->urgent.count;
}

static inline uint64_t m_tick_of(uint64_t due_ns)
{
    return (due_ns + M_TICK_NS - 1) / M_TICK_NS;
}

/* Payloads (R4): exactly one of drop, drop_msg, the behavior and the caller gets each. */

static inline bool m_has_data(m_form form)
{
    return form == M_PLAIN || form == M_DROP;
}

static inline void m_release(model *m, const m_actor *a, m_form form, uint32_t serial)
{
    if (form == M_DROP) {
        m->payloads[serial].must_drop++;
    } else if (form == M_PLAIN && a->hook) {
        m->payloads[serial].must_hook++;
    } else if (form == M_PLAIN) {
        m->abandoned++;
    }
}

static inline void m_check_payloads(model *m, uint32_t first)
{
    for (uint32_t i = first; i < m->serials; i++) {
        const m_payload *p = &m->payloads[i];
        m_require(m, p->dropped <= p->must_drop, "a payload was dropped that was not the runtime's");
        m_require(m, p->dropped >= p->must_drop, "a payload was not dropped");
        m_require(m, p->hooked == p->must_hook, "drop_msg got a message it should not, or not one");
    }
}

/* Lanes. */

static inline void m_lane_push(model *m, m_lane *lane, m_msg msg)
{
    msg.stamp = ++m->stamps;
    m_require(m, lane->count < M_LANE, "the model's lane is too short");
    if (lane->count < M_LANE) {
        lane->at[lane->count++] = msg;
    }
}

static inline m_msg m_lane_pop(m_lane *lane)
{
    m_msg first = lane->at[0];
    lane->count--;
    memmove(&lane->at[0], &lane->at[1], lane->count * sizeof lane->at[0]);
    return first;
}

static inline jzx_err m_refuse(model *m, jzx_refused_reason reason, jzx_err err)
{
    m->refused[reason]++;
    return err;
}

static inline void m_expect_letter(model *m, m_actor *a, const m_msg *msg, jzx_dead_reason reason)
{
    m->letters[m->letter_count++] =
        (m_letter){.serial = msg->serial, .reason = (uint32_t)reason, .target = a->id};
    m->dead_by[reason]++;
    a->dead++;
    m_release(m, a, msg->form, msg->serial);
}

/* A send of an actor or of the program (R10, R11, R12): the verdict, and what follows from it. */
static inline jzx_err m_send(model *m, jzx_actor_id to, const m_msg *msg)
{
    m_actor *a = m_find(m, to);
    if (a == NULL) {
        return m_refuse(m, JZX_REFUSED_NO_SUCH_ACTOR, JZX_ERR_NO_SUCH_ACTOR);
    }
    if (a->closed || m->destroying) {
        return m_refuse(m, JZX_REFUSED_STOPPING, JZX_ERR_STOPPING);
    }
    uint32_t eighth = a->cap < 8 ? 1 : a->cap / 8;
    uint32_t limit = msg->urgent ? a->cap + eighth : a->cap;
    bool full = m_used(a) + msg->margin >= limit;
    if (full && (msg->urgent || msg->margin > 0 || a->policy == JZX_FULL_REJECT)) {
        return m_refuse(m, JZX_REFUSED_FULL, JZX_ERR_MAILBOX_FULL);
    }
    if (full && (a->policy == JZX_FULL_DROP_NEWEST || a->ordinary.count == 0)) {
        m_expect_letter(m, a, msg, JZX_DEAD_DROPPED_NEWEST);
        return JZX_OK;
    }
    if (full) {
        m_msg oldest = m_lane_pop(&a->ordinary);
        m_expect_letter(m, a, &oldest, JZX_DEAD_DROPPED_OLDEST);
    }
    m_lane_push(m, msg->urgent ? &a->urgent : &a->ordinary, *msg);
    return JZX_OK;
}

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
        m_release(m, m_find(m, t->owner), t->form, t->serial);
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
        m_release(m, m_find(m, t->owner), t->form, t->serial);
        t->state = M_FREE;
    } else {
        uint64_t period_ns = t->period_ms * M_TICK_NS;
        /* A fixed delay begins with a look at the clock after the behavior. */
        t->due_ns = t->fixed_delay ? now_ns + m->cost_ns + period_ns
                                   : t->due_ns + (missed + 1) * period_ns;
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
            m_release(m, a, t->form, t->serial);
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
    *free_place = (m_request){
        .waiter = waiter->id, .target = target, .seq = ++m->seqs, .since = ++m->stamps};
    if (t == NULL || t->closed) {
        free_place->state = M_POSTED;
        free_place->by = ++m->stamps;
        free_place->gone = true;
    } else if (m_used(t) <= t->low && !others) {
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
    if (m_used(t) > t->low) {
        return;
    }
    uint32_t room = m_used(t) < t->cap ? t->cap - m_used(t) : 0;
    for (; turn_over && room > 0; room--) {
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
    m_require(m, (notice->err == JZX_OK) == (notice->room > 0), "a notice has no room, or too much");
    m_require(m, waiter->ordinary.count == 0 || waiter->ordinary.at[0].stamp > found->since,
              "a room notice overtook an older message");
    for (int i = 0; i < M_REQUESTS; i++) {
        const m_request *r = &m->requests[i];
        m_require(m, !(r->state == M_WAITING && r->target == notice->target && r->seq < found->seq),
                  "room was not announced in the order of asking");
        m_require(m, !(r->state == M_POSTED && r->waiter == waiter->id && r->by < found->since),
                  "a room notice overtook an older one");
    }
    found->state = M_NONE;
}

/* Actors. */

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
    m_require(m, m->urgent_passed * 2 <= m->urgent_picks, "urgent messages waited for others");
    m_require(m, m->events_passed * 2 <= m->event_picks, "timer messages waited for others");
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
    m_require(m, a->failing || a->stop || a->drain || m->destroying, "an actor ended for no reason");
    if (a->failing || a->stop || m->destroying) {
        return;
    }
    m_require(m, m_used(a) == 0, "a drained actor ended with messages in its mailbox");
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
            m_release(m, a, t->form, t->serial);
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
    m_require(m, m_used(a) == 0, "an actor ended and its messages are nowhere");
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
