/* The reference model of one loop: what every call answers, which message comes next, who hears
 * what. Plain arrays and loops, nothing shared with the code under test but the public header.
 *
 * A message is known by its serial number, which is also its tag. The model is told of every call
 * before it is made and answers what must come back; it is told of everything that is seen (a
 * message handled, a dead letter, an end) and says whether that was allowed. Where the runtime is
 * free (whose turn it is, when exactly a notice was posted) the model keeps what is certain and
 * what is possible, and complains only when the certain is broken. */
#ifndef JZT_MODEL_H
#define JZT_MODEL_H

#include <jzx/all.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { M_ACTORS = 40, M_LANE = 40, M_TIMERS = 256, M_REQUESTS = 256, M_PAYLOADS = 40000 };
enum { M_FLIGHTS = 128, M_LETTERS = M_FLIGHTS + 4 };
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
    bool async; /* from another thread, or as if */
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
    bool hook;    /* has drop_msg */
    bool closed;  /* sends are refused */
    bool stop;    /* ends before the next message */
    bool drain;   /* ends after what was queued at drain_stamp */
    bool failing; /* the behavior said so: the end is next */
    bool deinit_ran;
    bool grace; /* loose: it was stopped with a message in hand that it had not yet looked at */
    bool refused_async; /* a send of another thread found it full */
    bool told_full;     /* on_mailbox_full was called, and no turn has cleared that */
    bool told_vague;    /* or one may have */
    uint64_t drain_stamp;
    jzx_reason reason; /* as the observer will hear it */
    m_lane ordinary, urgent;
    uint32_t flying;  /* sent by jzx_send_async(), not yet in a lane */
    uint32_t holding; /* of these, handled in this turn: they keep their slots until its end */
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

/* An asynchronous message on its way. Its target may end before it arrives. */
typedef struct m_flight {
    m_msg msg;
    jzx_actor_id to;
    bool hook; /* the target has drop_msg */
    bool over; /* accepted beyond the cap, by the target's policy */
} m_flight;

typedef struct model {
    bool exact; /* one turn per step and time that stands still unless told to move */
    /* On a pool, where a message may be on its way to its actor or already out of its lane when
     * somebody else runs. Then the runtime's answers are taken, within their bounds, and a lane of
     * the model holds what is under way as well. */
    bool loose;
    bool destroying;
    uint64_t cost_ns; /* of a look at the clock */
    m_actor actors[M_ACTORS];
    m_timer timers[M_TIMERS];
    m_request requests[M_REQUESTS];
    m_payload payloads[M_PAYLOADS];
    m_letter letters[M_LETTERS]; /* the next call has to make these */
    uint32_t letter_count;
    jzx_actor_id told_in_hand; /* whose room the notice that is being handled announces */
    m_flight flights[M_FLIGHTS];
    uint32_t flight_count;
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

static inline uint32_t m_queued(const m_actor *a)
{
    return a->ordinary.count + a->urgent.count;
}

/* What the cap counts. */
static inline uint32_t m_used(const m_actor *a)
{
    return m_queued(a) + a->flying + a->holding;
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

static inline void m_release(model *m, bool hook, m_form form, uint32_t serial)
{
    if (form == M_DROP) {
        m->payloads[serial].must_drop++;
    } else if (form == M_PLAIN && hook) {
        m->payloads[serial].must_hook++;
    } else if (form == M_PLAIN) {
        m->abandoned++;
    }
}

static inline void m_check_payloads(model *m, uint32_t first)
{
    for (uint32_t i = first; i < m->serials; i++) {
        const m_payload *p = &m->payloads[i];
        m_require(m, p->dropped <= p->must_drop,
                  "a payload was dropped that was not the runtime's");
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
    m_release(m, a->hook, msg->form, msg->serial);
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

/* Takes a message out of a lane, if it is among the first `among`. */
static inline bool m_lane_remove(m_lane *lane, uint32_t serial, uint32_t among, m_msg *out_msg)
{
    for (uint32_t i = 0; i < lane->count && i < among; i++) {
        if (lane->at[i].serial == serial) {
            *out_msg = lane->at[i];
            lane->count--;
            memmove(&lane->at[i], &lane->at[i + 1], (lane->count - i) * sizeof lane->at[0]);
            return true;
        }
    }
    return false;
}

/* Loose: what a send may answer. `used` is what the model knew before it; the one in hand that its
 * actor has not seen yet takes no room any more. */
static inline void m_check_verdict(model *m, const m_actor *a, const m_msg *msg, uint32_t used,
                                   jzx_err got)
{
    if (a == NULL || a->closed || m->destroying) {
        m_require(m, got == (a == NULL ? JZX_ERR_NO_SUCH_ACTOR : JZX_ERR_STOPPING),
                  "a send has another verdict than the model's");
        return;
    }
    uint32_t eighth = a->cap < 8 ? 1 : a->cap / 8;
    uint32_t limit = msg->urgent ? a->cap + eighth : a->cap;
    bool strict = msg->urgent || msg->margin > 0 || a->policy == JZX_FULL_REJECT;
    m_require(m, got == JZX_OK || got == JZX_ERR_MAILBOX_FULL,
              "a send has another verdict than the model's");
    m_require(m, got != JZX_OK || !strict || used + msg->margin < limit + 1,
              "a send was accepted by a full mailbox");
    m_require(m, got == JZX_OK || m_used(a) + msg->margin >= (strict ? limit : 2 * a->cap),
              "a send was refused by a mailbox with room");
}

/* The same from another thread (R11, R33): the verdict comes at once, the message at the next step.
 * Beyond the cap a policy that takes everything takes twice the cap. */
static inline jzx_err m_send_async(model *m, jzx_actor_id to, const m_msg *msg)
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
    if (full && (msg->urgent || msg->margin > 0 || a->policy == JZX_FULL_REJECT ||
                 m_used(a) >= 2 * a->cap)) {
        return m_refuse(m, JZX_REFUSED_FULL, JZX_ERR_MAILBOX_FULL);
    }
    m->flights[m->flight_count++] =
        (m_flight){.msg = *msg, .to = to, .hook = a->hook, .over = full};
    a->flying++;
    return JZX_OK;
}

/* A step has begun: what was under way arrives. */
static inline void m_arrive(model *m)
{
    for (uint32_t i = 0; i < m->flight_count; i++) {
        const m_flight *f = &m->flights[i];
        m_actor *a = m_find(m, f->to);
        if (a == NULL) {
            m->letters[m->letter_count++] =
                (m_letter){.serial = f->msg.serial, .reason = JZX_DEAD_STOPPED, .target = f->to};
            m->dead_by[JZX_DEAD_STOPPED]++;
            m_release(m, f->hook, f->msg.form, f->msg.serial);
            continue;
        }
        bool over = f->over && m_used(a) > a->cap;
        a->flying--;
        if (over && (a->policy == JZX_FULL_DROP_NEWEST || a->ordinary.count == 0)) {
            m_expect_letter(m, a, &f->msg, JZX_DEAD_DROPPED_NEWEST);
            continue;
        }
        if (over) {
            m_msg oldest = m_lane_pop(&a->ordinary);
            m_expect_letter(m, a, &oldest, JZX_DEAD_DROPPED_OLDEST);
        }
        m_lane_push(m, f->msg.urgent ? &a->urgent : &a->ordinary, f->msg);
    }
    m->flight_count = 0;
}

#endif
