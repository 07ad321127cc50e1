/* The random operations of the model test: each is made on the loop and on the model, and both must
 * agree about it. */
#ifndef JZT_MODEL_OPS_H
#define JZT_MODEL_OPS_H

#include <jzx/testkit.h>

#include "check.h"
#include "model_life.h"

enum { GRAVES = 32, TIMER_IDS = 48, COPY_MAX = 300 };

typedef struct run {
    jzx_sim *sim;
    jzx_env env; /* the world's, in some runs without what makes the runtime take the careful way */
    jzx_kit *kit;
    jzx_loop *loop;
    jzx_sender *sender; /* where the world allows it */
    uint64_t async_sent;
    jzx_loop *clock; /* an idle loop of the same world: its waits are how time passes */
    jzt_rng rng;
    bool fifo;
    uint32_t ops, ops_max;
    jzx_actor_id graves[GRAVES]; /* ids of actors that ended */
    uint32_t grave_count;
    jzx_timer_id timer_ids[TIMER_IDS];
    uint32_t timer_id_count;
    /* The step that is running. */
    bool in_step, arrived, turn_began;
    jzx_actor_id turn_of;
    uint32_t turn_count;
    bool turn_blurred; /* cancelled messages may have used up part of the turn */
    jzx_actor_id self; /* whose code runs; 0: nobody's */
    bool in_deinit;
    bool sending;
    jzx_actor_id full_of; /* what on_mailbox_full was last called for */
    uint32_t full_calls, starts;
    uint64_t letter_seq;
    uint32_t waited[M_ACTORS]; /* steps since the actor became ready */
} run;

static model m;
static run r;

static uint64_t below(uint64_t bound)
{
    return jzt_rng_below(&r.rng, bound);
}
static bool chance(uint32_t percent)
{
    return below(100) < percent;
}
static uint64_t now(void)
{
    return jzx_sim_now(r.sim);
}
static void require(bool holds, const char *sentence)
{
    m_require(&m, holds, sentence);
}

/* Payloads are known by their address. */
static void drop_payload(void *data)
{
    ((m_payload *)data)->dropped++;
}
static void drop_msg(const jzx_message *msg)
{
    require(msg->data == &m.payloads[msg->tag], "drop_msg got another payload than was sent");
    ((m_payload *)msg->data)->hooked++;
}
static unsigned char copy_byte(uint32_t serial, size_t i)
{
    return (unsigned char)(serial * 7 + i * 13 + 1);
}

/* Between the beginning of a step and its first turn messages arrive and timers fire. */
static void step_begins(void)
{
    if (!r.in_step || r.turn_began || !m.exact) {
        return;
    }
    if (!r.arrived) {
        r.arrived = true;
        m_arrive(&m);
    }
    m_timers_expire(&m, now());
}
static void turn_begins(void)
{
    step_begins();
    r.turn_began = true;
}

static jzx_actor_id random_live(void)
{
    uint32_t first = (uint32_t)below(M_ACTORS);
    for (uint32_t i = 0; i < M_ACTORS; i++) {
        jzx_actor_id id = m.actors[(first + i) % M_ACTORS].id;
        if (id != 0) {
            return id;
        }
    }
    return 0;
}

static jzx_actor_id random_target(void)
{
    uint32_t dice = (uint32_t)below(100);
    if (dice < 4 && r.grave_count > 0) {
        return r.graves[below(r.grave_count < GRAVES ? r.grave_count : GRAVES)];
    }
    if (dice < 7) {
        jzx_actor_id forged = jzt_rng_next(&r.rng);
        forged = chance(50) ? random_live() ^ (forged & UINT64_C(0xFFFF00FF)) : forged;
        return m_find(&m, forged) == NULL ? forged : 0;
    }
    if (dice < 20 && r.self != 0) {
        return r.self;
    }
    if (dice < 45) { /* everybody wants the same one: it is full, and many wait for room */
        for (int i = 0; i < M_ACTORS; i++) {
            if (m.actors[i].id != 0) {
                return m.actors[i].id;
            }
        }
    }
    return random_live();
}

/* Sends. */

static void check_full_call(const m_actor *a, uint32_t calls_before, jzx_err verdict)
{
    uint32_t calls = r.full_calls - calls_before;
    if (verdict != JZX_ERR_MAILBOX_FULL || a == NULL) {
        require(calls == 0, "on_mailbox_full was called for no reason");
    } else if (m.exact && !a->told_vague) {
        require(calls == (a->told_full ? 0u : 1u),
                "on_mailbox_full was not called once per run of refusals");
        require(calls == 0 || r.full_of == a->id, "on_mailbox_full named another actor");
    }
}

static jzx_err call_send(jzx_actor_id to, const m_msg *msg, bool consume, uint32_t extra_flags,
                         uint32_t tag)
{
    unsigned char bytes[COPY_MAX];
    void *data = m_has_data(msg->form) ? &m.payloads[msg->serial] : NULL;
    bool simple = !msg->urgent && msg->margin == 0 && msg->deadline_ns == 0 && extra_flags == 0;
    for (size_t i = 0; msg->form == M_COPY && i < msg->len; i++) {
        bytes[i] = copy_byte(msg->serial, i);
    }
    if (simple && chance(60)) {
        switch (msg->form) {
        case M_PLAIN:
        case M_NULL:
            return msg->async ? jzx_send_async(r.sender, to, data, msg->len, tag)
                              : jzx_send(r.loop, to, data, msg->len, tag);
        case M_VALUE:
            return msg->async ? jzx_send_async_u64(r.sender, to, msg->serial, tag)
                              : jzx_send_u64(r.loop, to, msg->serial, tag);
        case M_COPY:
            return msg->async ? jzx_send_async_copy(r.sender, to, bytes, msg->len, tag)
                              : jzx_send_copy(r.loop, to, bytes, msg->len, tag);
        case M_DROP:
            break;
        }
    }
    jzx_send_opts opts = {
        .data = msg->form == M_COPY ? bytes : data,
        .len = msg->len,
        .drop = msg->form == M_DROP ? drop_payload : NULL,
        .deadline_ns = msg->deadline_ns,
        .tag = tag,
        .flags = (msg->urgent ? JZX_SEND_URGENT : 0) | (consume ? JZX_SEND_CONSUME : 0) |
                 (msg->form == M_COPY ? JZX_SEND_COPY : 0) |
                 (msg->form == M_VALUE ? JZX_SEND_VALUE : 0) | extra_flags,
        .margin = msg->margin,
    };
    if (msg->form == M_VALUE) {
        opts.u64 = msg->serial;
    }
    return msg->async ? jzx_send_async_with(r.sender, to, &opts) : jzx_send_with(r.loop, to, &opts);
}

static m_msg random_message(void)
{
    static const m_form forms[] = {M_PLAIN, M_PLAIN, M_NULL,  M_DROP, M_DROP,
                                   M_DROP,  M_VALUE, M_VALUE, M_COPY, M_COPY};
    m_msg msg = {.serial = m.serials++, .form = forms[below(10)], .sender = r.self};
    if (msg.form == M_COPY) {
        msg.len = below(3) == 0 ? below(COPY_MAX) : below(66);
    } else if (m_has_data(msg.form)) {
        msg.len = sizeof(m_payload);
    }
    if (chance(15)) {
        msg.urgent = true;
    } else if (chance(15)) {
        msg.margin = (uint32_t)below(6);
    }
    if (chance(15)) {
        msg.deadline_ns = now() + below(4) * 700000;
        msg.deadline_ns -= chance(10) ? 1 : 0;
    }
    if (r.sender != NULL && m.flight_count < M_FLIGHTS - 1 && chance(25)) {
        msg.async = true;
        msg.sender = JZX_NOBODY;
    }
    return msg;
}

/* On a pool the answer tells what became of it. The message is in its lane before the call: it may
 * be dropped again in it. */
static void follow_send(jzx_actor_id to, const m_msg *msg, bool consume)
{
    m_actor *a = m_find(&m, to);
    bool open = a != NULL && !a->closed && !m.destroying;
    m_lane *lane = !open ? NULL : msg->urgent ? &a->urgent : &a->ordinary;
    uint32_t used = open ? m_used(a) : 0;
    uint32_t calls = r.full_calls;
    m_msg gone;
    if (lane != NULL) {
        m_lane_push(&m, lane, *msg);
    }
    jzx_err got = call_send(to, msg, consume, 0, msg->serial);
    if (got != JZX_OK) {
        require(lane == NULL || m_lane_remove(lane, msg->serial, M_LANE, &gone),
                "a message was refused that had been accepted");
        if (consume) {
            m.payloads[msg->serial].must_drop++;
        }
        m.refused[got == JZX_ERR_NO_SUCH_ACTOR ? JZX_REFUSED_NO_SUCH_ACTOR
                  : got == JZX_ERR_STOPPING    ? JZX_REFUSED_STOPPING
                                               : JZX_REFUSED_FULL]++;
    }
    if (open && got == JZX_OK && m_used(a) <= used) {
        /* What was under way was taken in first, and some of it dropped. */
        used = m_used(a) > 0 ? m_used(a) - 1 : 0;
    }
    m_check_verdict(&m, a, msg, used, got);
    check_full_call(a, calls, got);
}

static void do_send(void)
{
    jzx_actor_id to = random_target();
    m_msg msg = random_message();
    bool consume = msg.form == M_DROP && chance(40);
    uint32_t calls = r.full_calls;
    uint32_t tag = msg.serial;
    uint32_t bad_flags = 0;
    jzx_err expected;
    if (chance(2)) {
        tag = JZX_TAG_SYSTEM_FIRST + (uint32_t)below(4);
        expected = m_refuse(&m, JZX_REFUSED_INVALID, JZX_ERR_RESERVED_TAG);
    } else if (chance(2)) {
        bad_flags = msg.form == M_DROP ? JZX_SEND_COPY : 0x100u;
        expected = m_refuse(&m, JZX_REFUSED_INVALID, JZX_ERR_INVALID_ARG);
    } else if (m.loose) {
        follow_send(to, &msg, consume);
        return;
    } else {
        expected = msg.async ? m_send_async(&m, to, &msg) : m_send(&m, to, &msg);
    }
    if (expected != JZX_OK && consume) {
        m.payloads[msg.serial].must_drop++;
    }
    r.sending = true;
    jzx_err got = call_send(to, &msg, consume, bad_flags, tag);
    r.sending = false;
    r.async_sent += msg.async && got == JZX_OK;
    require(got == expected, "a send has another verdict than the model's");
    require(m.letter_count == 0, "a send should have made a dead letter");
    m_actor *a = m_find(&m, to);
    check_full_call(msg.async ? NULL : a, calls, got);
    if (a != NULL && msg.async && got == JZX_ERR_MAILBOX_FULL) {
        a->refused_async = true;
    }
    if (a != NULL && !msg.async && got == JZX_ERR_MAILBOX_FULL) {
        a->told_full = true;
        a->told_vague = false;
    }
}

/* Timers. */

static void do_timer_start(jzx_actor_id owner)
{
    uint64_t delay_ms = chance(30) ? 0 : chance(5) ? 5000 : below(12);
    m_timer wanted = {.owner = owner, .sender = r.self};
    wanted.serial = m.serials++;
    wanted.form = (m_form)below(4); /* no copies */
    wanted.period_ms = chance(40) ? 1 + (uint32_t)below(6) : 0;
    wanted.fixed_delay = chance(50);
    wanted.due_ns = now() + m.cost_ns + delay_ms * M_TICK_NS;
    m_timer *t;
    jzx_err expected = m_timer_start(&m, &wanted, now(), &t);
    void *data = m_has_data(wanted.form) ? &m.payloads[wanted.serial] : NULL;
    size_t len = data == NULL ? 0 : sizeof(m_payload);
    jzx_timer_id id = 0;
    jzx_err got;
    if (wanted.period_ms == 0 && (wanted.form == M_PLAIN || wanted.form == M_NULL) && chance(50)) {
        got =
            jzx_send_after(r.loop, wanted.owner, (uint32_t)delay_ms, data, len, wanted.serial, &id);
    } else {
        jzx_timer_opts opts = {.delay_ms = delay_ms,
                               .period_ms = wanted.period_ms,
                               .data = data,
                               .len = len,
                               .drop = wanted.form == M_DROP ? drop_payload : NULL,
                               .tag = wanted.serial,
                               .mode = wanted.fixed_delay ? JZX_TIMER_FIXED_DELAY
                                                          : JZX_TIMER_FIXED_RATE,
                               .flags = wanted.form == M_VALUE ? JZX_TIMER_VALUE : 0};
        if (wanted.form == M_VALUE) {
            opts.u64 = wanted.serial;
        }
        got = jzx_timer_start(r.loop, wanted.owner, &opts, &id);
    }
    require(got == expected, "arming a timer has another verdict than the model's");
    if (t != NULL) {
        t->id = id;
        r.timer_ids[r.timer_id_count++ % TIMER_IDS] = id;
    }
}

static void do_timers_start(void)
{
    jzx_actor_id owner = r.in_deinit ? r.self : random_target();
    for (uint64_t count = chance(20) ? 4 : 1; count > 0; count--) {
        do_timer_start(owner);
    }
}

static void do_timer_cancel(void)
{
    if (chance(3)) {
        require(jzx_cancel_timer(r.loop, jzt_rng_next(&r.rng) | UINT64_C(0xF0000000)) ==
                    JZX_ERR_NO_SUCH_TIMER,
                "a timer that never was could be cancelled");
        return;
    }
    if (r.timer_id_count == 0) {
        return;
    }
    jzx_timer_id id =
        r.timer_ids[below(r.timer_id_count < TIMER_IDS ? r.timer_id_count : TIMER_IDS)];
    const m_timer *t = m_timer_find(&m, id);
    const m_actor *owner = t == NULL ? NULL : m_find(&m, t->owner);
    if (m.loose && owner != NULL && owner->closed) {
        return; /* it may be about to end, without its timers, or not */
    }
    if (!m.exact && t != NULL && t->state == M_ARMED && t->tick <= now() / M_TICK_NS) {
        return; /* it may be queued or not, and the model does not know */
    }
    jzx_err expected = m_timer_cancel(&m, id);
    require(jzx_cancel_timer(r.loop, id) == expected,
            "cancel has another verdict than the model's");
    r.turn_blurred = true;
}

/* Life. */

/* Whether another worker of a pool has a message for it in hand. */
static bool is_in_other_hands(const m_actor *a)
{
    jzx_actor_facts facts;
    return m.loose && a->id != r.self && jzx_actor_inspect(r.loop, a->id, &facts) == JZX_OK &&
           facts.in_hand != 0;
}

static void do_stop(bool drained)
{
    jzx_actor_id id = random_target();
    m_actor *a = m_find(&m, id);
    jzx_err expected = a == NULL ? JZX_ERR_NO_SUCH_ACTOR : JZX_OK;
    jzx_counters before, after;
    jzx_loop_counters(r.loop, &before);
    jzx_err got = drained ? jzx_stop_drained(r.loop, id) : jzx_stop(r.loop, id);
    require(got == expected, "a stop has another verdict than the model's");
    if (a == NULL || m.destroying || (r.in_deinit && id == r.self)) {
        return;
    }
    jzx_loop_counters(r.loop, &after);
    bool ending = m.loose && a->closed && after.commands == before.commands;
    m.commands += ending ? 0 : 1; /* another worker is about to end it */
    a->grace |= !drained && is_in_other_hands(a);
    a->closed = true;
    if (!drained) {
        a->stop = true;
    } else if (!a->drain) {
        a->drain = true;
        a->drain_stamp = ++m.stamps;
    }
}

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg);
static void deinit(jzx_context *ctx);

static void do_spawn(void)
{
    static const char mark = 'm';
    jzx_actor_id id = 0;
    m_actor *a = NULL;
    for (int i = 0; i < M_ACTORS; i++) {
        a = m.actors[i].id == 0 ? &m.actors[i] : a;
    }
    const m_actor *parent = m_find(&m, r.self);
    jzx_spawn_opts opts = {.behavior = behave,
                           .state = (void *)(uintptr_t)&mark,
                           .deinit = chance(50) ? deinit : NULL,
                           .drop_msg = chance(50) ? drop_msg : NULL,
                           .name = chance(30) ? "somebody" : NULL,
                           .supervisor = chance(30) ? r.self : 0,
                           .mailbox_cap = chance(30) ? 1 : 1 + (uint32_t)below(16),
                           .max_msgs = chance(20) ? 0 : 1 + (uint32_t)below(chance(40) ? 2 : 20),
                           .full_policy = (uint32_t)below(3)};
    opts.low_water = chance(30)   ? 0
                     : chance(30) ? JZX_LOW_WATER_EMPTY
                                  : 1 + (uint32_t)below(opts.mailbox_cap);
    jzx_err expected = JZX_OK;
    if (chance(4)) {
        opts.low_water = opts.mailbox_cap + 1;
        expected = JZX_ERR_INVALID_ARG;
    } else if (chance(2)) {
        opts.mailbox_cap = JZX_MAILBOX_CAP_MAX + 1;
        expected = JZX_ERR_TOO_BIG;
    } else if (r.in_deinit || m.destroying || (parent != NULL && parent->closed)) {
        expected = JZX_ERR_STOPPING;
    } else if (a == NULL || r.self != 0) {
        return; /* this model knows no families: sup_model.h does */
    }
    uint32_t starts = r.starts;
    jzx_err got = jzx_spawn(r.loop, &opts, &id);
    require(got == expected, "a spawn has another verdict than the model's");
    require(r.starts - starts == (got == JZX_OK ? 1u : 0u), "on_actor_start was not called once");
    if (got != JZX_OK || a == NULL) {
        return;
    }
    require(m_find(&m, id) == NULL && id != 0, "an id was given out twice");
    *a = (m_actor){.id = id,
                   .parent = r.self,
                   .cap = opts.mailbox_cap,
                   .low = opts.low_water == 0                     ? opts.mailbox_cap / 2
                          : opts.low_water == JZX_LOW_WATER_EMPTY ? 0
                                                                  : opts.low_water,
                   .max_msgs = opts.max_msgs == 0 ? 128 : opts.max_msgs,
                   .policy = opts.full_policy,
                   .hook = opts.drop_msg != NULL,
                   .deinit_ran = opts.deinit == NULL,
                   .reason.kind = JZX_REASON_SHUTDOWN,
                   .state = &mark};
    if (a->low >= a->cap) {
        a->low = a->cap - 1; /* a full mailbox has no room, whatever its mark */
    }
    r.waited[a - m.actors] = 0;
    m.spawned++;
}

/* The living actor with the smallest mailbox: many wait for room there. */
static jzx_actor_id tightest(void)
{
    const m_actor *found = NULL;
    for (int i = 0; i < M_ACTORS; i++) {
        const m_actor *a = &m.actors[i];
        if (a->id != 0 && (found == NULL || a->cap < found->cap)) {
            found = a;
        }
    }
    return found == NULL ? 0 : found->id;
}

static void do_notify_room(void)
{
    jzx_actor_id target = chance(50) ? tightest() : random_target();
    const m_actor *a = m_find(&m, r.self);
    uint32_t pending = 0;
    for (int i = 0; i < M_REQUESTS; i++) {
        pending += m.requests[i].state != M_NONE;
    }
    if (a == NULL) {
        require(jzx_notify_room(r.loop, target) == JZX_ERR_INVALID_ARG,
                "room was asked for from outside");
    } else if (pending < M_REQUESTS - 8 && !m_room_uncertain(&m, r.self, target)) {
        jzx_err expected = r.in_deinit ? JZX_ERR_STOPPING : m_notify_room(&m, a, target);
        require(jzx_notify_room(r.loop, target) == expected,
                "asking for room has another verdict than the model's");
    }
}

static void do_advance(uint64_t ns)
{
    require(jzx_loop_step(r.clock, ns) == JZX_OK, "the clock does not advance");
}

/* What the runtime says of an actor and what the model knows. */
static void check_actor(m_actor *a)
{
    jzx_actor_facts facts;
    require(jzx_actor_inspect(r.loop, a->id, &facts) == JZX_OK, "a live actor cannot be inspected");
    if (m.loose && facts.in_hand != 0 && a->id != r.self) { /* of whatever lane it may be */
        uint64_t queued = facts.ordinary + facts.urgent;
        require(queued == m_queued(a) || queued + 1 == m_queued(a),
                "lanes have another length than the model's");
        facts.in_hand = 0;
    } else {
        require(facts.ordinary == a->ordinary.count && facts.urgent == a->urgent.count,
                "a lane has another length than the model's");
    }
    require(facts.handled + facts.in_hand == a->handled, "another count of handled messages");
    require(facts.dead == a->dead, "another count of dead messages");
    require(facts.stopping == a->closed, "stopping, or not, unlike the model");
    require(facts.mailbox_cap == a->cap && facts.parent == a->parent, "facts are wrong");
    m_timers_sync(&m, a, facts.events == 0 && r.self == 0);
    m_check_starving(&m, a);
}

static void check_all(void)
{
    jzx_counters c;
    uint64_t live = 0;
    uint64_t vague = 0;
    for (int i = 0; i < M_ACTORS; i++) {
        if (m.actors[i].id != 0) {
            live++;
            check_actor(&m.actors[i]);
        }
    }
    for (int i = 0; i < M_TIMERS; i++) {
        vague += m.timers[i].state == M_CANCELLED;
    }
    jzx_loop_counters(r.loop, &c);
    require(c.spawned == m.spawned && c.ended == m.ended && c.live == live,
            "actors are miscounted");
    uint64_t in_hand = m.loose ? r.self != 0 && !r.in_deinit : c.in_hand;
    require(in_hand <= c.in_hand && c.handled + in_hand == m.handled,
            "handled messages are miscounted");
    require(c.async_sent == r.async_sent && c.async_arrived == r.async_sent - m.flight_count,
            "asynchronous sends are miscounted");
    require(c.commands == m.commands, "stops are miscounted");
    /* In a step of a pool another worker may be about to end an actor: what it owned is released,
     * and its deinit, where the model hears of that, has not begun. */
    bool settled = !m.loose || !r.in_step;
    require(!settled || (c.abandoned >= m.abandoned && c.abandoned <= m.abandoned + vague),
            "abandoned messages are miscounted");
    require(memcmp(c.refused, m.refused, sizeof c.refused) == 0, "refusals are miscounted");
    require(memcmp(c.dead_by, m.dead_by, sizeof c.dead_by) == 0, "dead letters are miscounted");
    const char *wrong = jzx_testkit_check(r.loop);
    require(wrong == NULL, wrong);
    if (!settled) {
        return;
    }
    /* Now and then all of them, else what is recent. */
    m_check_payloads(&m, chance(1) || m.serials < 600 ? 0 : m.serials - 600);
}

static void random_op(void)
{
    uint32_t dice = (uint32_t)below(1000);
    r.ops++;
    if (dice < 560) {
        do_send();
    } else if (dice < 660) {
        do_timers_start();
    } else if (dice < 740) {
        do_timer_cancel();
    } else if (dice < 840) {
        do_notify_room();
    } else if (dice < 890) {
        do_spawn();
    } else if (dice < 910) {
        do_stop(false);
    } else if (dice < 940) {
        do_stop(true);
    } else if (dice < 970) {
        do_advance(below(10) == 0 ? below(20 * M_TICK_NS) : below(2 * M_TICK_NS));
    } else if (!r.in_deinit) {
        check_all();
    }
}

static bool may_go_on(void)
{
    return r.ops < r.ops_max && m.wrong == NULL && m.serials < M_PAYLOADS - 64;
}

#endif
