/* A loop and the reference model of model.h, driven by the same random operations: a million calls
 * from inside and outside of behaviors, and after each of them both must agree (R4-R8, R10-R13, R16,
 * R17, R21, R26). JZX_SEED=n plays the run that was reported with that seed, and only that one.
 * JZX_MODEL_OPS says how many operations there are in all. */
#include "check.h"
#include "model.h"

#include <jzx/testkit.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define OPS_DEFAULT 150000
#else
#define OPS_DEFAULT 1050000
#endif
enum { OPS_PER_RUN = 4000, GRAVES = 32, TIMER_IDS = 48, COPY_MAX = 300 };

typedef struct run {
    jzx_kit *kit;
    jzx_loop *loop;
    jzx_loop *clock; /* an idle loop of the same world: its waits are how time passes */
    uint64_t seed;
    jzt_rng rng;
    bool fifo;
    uint32_t ops, ops_max;
    jzx_actor_id graves[GRAVES]; /* ids of actors that ended */
    uint32_t grave_count;
    jzx_timer_id timer_ids[TIMER_IDS];
    uint32_t timer_id_count;
    /* The step that is running. */
    bool in_step, timers_seen;
    jzx_actor_id turn_of;
    uint32_t turn_count;
    bool turn_blurred; /* cancelled messages may have used up part of the turn */
    jzx_actor_id self; /* whose code runs; 0: nobody's */
    bool in_deinit;
    jzx_actor_id full_of; /* what on_mailbox_full was last called for */
    uint32_t full_calls, starts;
    uint64_t letter_seq;
    uint32_t waited[M_ACTORS]; /* steps since the actor became ready */
    uint32_t checked_payloads;
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
    return jzx_sim_now(r.kit->sim);
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

static void something_happens(void)
{
    if (r.in_step && !r.timers_seen) {
        r.timers_seen = true;
        if (m.exact) {
            m_timers_expire(&m, now());
        }
    }
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
    return random_live();
}

/* Sends. */

static void check_full_call(const m_actor *a, uint32_t calls_before, jzx_err verdict)
{
    uint32_t calls = r.full_calls - calls_before;
    if (verdict != JZX_ERR_MAILBOX_FULL || a == NULL) {
        require(calls == 0, "on_mailbox_full was called for no reason");
    } else if (m.exact) {
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
            return jzx_send(r.loop, to, data, msg->len, tag);
        case M_VALUE:
            return jzx_send_u64(r.loop, to, msg->serial, tag);
        case M_COPY:
            return jzx_send_copy(r.loop, to, bytes, msg->len, tag);
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
    return jzx_send_with(r.loop, to, &opts);
}

static m_msg random_message(void)
{
    static const m_form forms[] = {M_PLAIN, M_PLAIN, M_NULL, M_DROP, M_DROP, M_DROP,
                                   M_VALUE, M_VALUE, M_COPY, M_COPY};
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
        msg.deadline_ns = 1 + now() + below(4) * 700000;
        msg.deadline_ns -= chance(10) ? 2 : 0;
    }
    return msg;
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
    } else {
        expected = m_send(&m, to, &msg);
    }
    if (expected != JZX_OK && consume) {
        m.payloads[msg.serial].must_drop++;
    }
    jzx_err got = call_send(to, &msg, consume, bad_flags, tag);
    require(got == expected, "a send has another verdict than the model's");
    require(m.letter_count == 0, "a send should have made a dead letter");
    m_actor *a = m_find(&m, to);
    check_full_call(a, calls, got);
    if (a != NULL && got == JZX_ERR_MAILBOX_FULL) {
        a->told_full = true;
    }
}

/* Timers. */

static void do_timer_start(void)
{
    uint64_t delay_ms = chance(20) ? 0 : chance(5) ? 5000 : below(12);
    m_timer wanted = {.owner = r.in_deinit ? r.self : random_target(), .sender = r.self};
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
        got = jzx_send_after(r.loop, wanted.owner, (uint32_t)delay_ms, data, len, wanted.serial, &id);
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
    if (!m.exact && t != NULL && t->state == M_ARMED && t->tick <= now() / M_TICK_NS) {
        return; /* it may be queued or not, and the model does not know */
    }
    jzx_err expected = m_timer_cancel(&m, id);
    require(jzx_cancel_timer(r.loop, id) == expected, "cancel has another verdict than the model's");
    r.turn_blurred = true;
}

/* Life. */

static void do_stop(bool drained)
{
    jzx_actor_id id = random_target();
    m_actor *a = m_find(&m, id);
    jzx_err expected = a == NULL ? JZX_ERR_NO_SUCH_ACTOR : JZX_OK;
    jzx_err got = drained ? jzx_stop_drained(r.loop, id) : jzx_stop(r.loop, id);
    require(got == expected, "a stop has another verdict than the model's");
    if (a == NULL || m.destroying || (r.in_deinit && id == r.self)) {
        return;
    }
    m.commands++;
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
                           .mailbox_cap = 1 + (uint32_t)below(16),
                           .max_msgs = chance(20) ? 0 : 1 + (uint32_t)below(20),
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
    } else if (a == NULL) {
        return;
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

static void do_notify_room(void)
{
    jzx_actor_id target = random_target();
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
    require(facts.ordinary == a->ordinary.count && facts.urgent == a->urgent.count,
            "a lane has another length than the model's");
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
    require(c.spawned == m.spawned && c.ended == m.ended && c.live == live, "actors are miscounted");
    require(c.handled + c.in_hand == m.handled, "handled messages are miscounted");
    require(c.commands == m.commands, "stops are miscounted");
    require(c.abandoned >= m.abandoned && c.abandoned <= m.abandoned + vague,
            "abandoned messages are miscounted");
    require(memcmp(c.refused, m.refused, sizeof c.refused) == 0, "refusals are miscounted");
    require(memcmp(c.dead_by, m.dead_by, sizeof c.dead_by) == 0, "dead letters are miscounted");
    const char *wrong = jzx_testkit_check(r.loop);
    require(wrong == NULL, wrong);
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
        do_timer_start();
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

/* The code of the actors. */

static void check_user_message(const m_msg *want, const jzx_message *msg)
{
    uint16_t flags = (uint16_t)((want->form == M_VALUE ? JZX_MSG_VALUE : 0) |
                                (want->form == M_COPY ? JZX_MSG_COPY : 0) |
                                (want->urgent ? JZX_MSG_URGENT : 0));
    require((msg->flags & 0xFu) == flags && msg->kind == JZX_KIND_USER, "flags or kind are wrong");
    require(msg->sender == want->sender, "the sender is another one");
    require(msg->len == want->len, "the length is another one");
    require(msg->deadline_ns == want->deadline_ns, "the deadline is another one");
    require(want->deadline_ns == 0 || now() <= want->deadline_ns,
            "a message was handled after its deadline");
    if (want->form == M_VALUE) {
        require(msg->u64 == want->serial, "the value is another one");
    } else if (m_has_data(want->form)) {
        require(msg->data == &m.payloads[want->serial], "the payload is another one");
    } else if (want->form == M_COPY && msg->len == want->len) {
        for (size_t i = 0; i < want->len; i++) {
            require(((const unsigned char *)msg->data)[i] == copy_byte(want->serial, i),
                    "a copied byte is another one");
        }
    }
}

/* Returns whether the data is now the actor's. */
static bool take(jzx_context *ctx, m_form form, uint32_t serial, bool movable)
{
    if (!chance(30)) {
        return false;
    }
    void *want = movable && m_has_data(form) ? &m.payloads[serial] : NULL;
    require(jzx_message_take(ctx) == want, "take gave another payload");
    if (form == M_DROP && movable) {
        require(jzx_message_take(ctx) == NULL, "a payload could be taken twice");
    }
    return want != NULL;
}

static jzx_behavior_result decide(jzx_context *ctx, m_actor *a)
{
    uint32_t dice = may_go_on() ? (uint32_t)below(200) : 199;
    if (dice < 1) {
        a->reason = (jzx_reason){.kind = JZX_REASON_NORMAL};
    } else if (dice < 2) {
        a->reason = (jzx_reason){.kind = JZX_REASON_FAILED};
    } else if (dice < 3) {
        a->reason = (jzx_reason){.kind = JZX_REASON_PANIC, .code = 42, .text = "as planned"};
    } else {
        return JZX_BEHAVIOR_OK;
    }
    a->failing = a->closed = true;
    r.self = 0;
    if (dice == 2) {
        jzx_panic(ctx, 42, "as planned");
    }
    return dice == 0 ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_FAIL;
}

static void enter_turn(jzx_context *ctx, const m_actor *a)
{
    require(a != NULL, "an actor runs that is not alive");
    if (a == NULL) {
        return;
    }
    require(ctx->loop == r.loop && ctx->state == a->state, "the context is wrong");
    require(!a->failing && !a->stop, "an actor went on after its end was decided");
    require(r.in_step, "an actor runs outside of a step");
    if (m.exact) {
        require(r.turn_of == 0 || r.turn_of == a->id, "two actors ran in one turn");
        r.turn_of = a->id;
        require(++r.turn_count <= a->max_msgs, "a turn has more messages than it may");
    }
}

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    something_happens();
    m_actor *a = m_find(&m, ctx->self);
    enter_turn(ctx, a);
    if (m.wrong != NULL || a == NULL) {
        return JZX_BEHAVIOR_OK;
    }
    m_timer *t = NULL;
    uint64_t missed = 0;
    m_msg want = {.form = M_NULL};
    bool taken = false;
    r.self = a->id;
    a->handled++;
    m.handled++;
    if (msg->kind == JZX_KIND_USER) {
        want = m_pick(&m, a, msg->tag);
        check_user_message(&want, msg);
        taken = take(ctx, want.form, want.serial, true);
    } else if (msg->kind == JZX_KIND_TIMER) {
        t = m_timer_find(&m, jzx_timer_current(ctx));
        require(t != NULL && t->owner == a->id, "a timer message came of no timer");
        if (t != NULL && m.wrong == NULL) {
            a->passed_ordinary = a->ordinary.count > 0 ? a->passed_ordinary + 1 : 0;
            a->passed_events = 0;
            missed = m_timer_handle(&m, t, now());
            require(jzx_timer_missed(ctx) == missed, "another count of missed periods");
            require(msg->deadline_ns == t->due_ns, "a timer says another due time");
            require(msg->tag == t->serial && msg->sender == t->sender, "a timer message is wrong");
            taken = take(ctx, t->form, t->serial, t->period_ms == 0);
        }
    } else {
        require(msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_ROOM, "an unknown message");
        a->passed_events = m.exact && m_event_waits(&m, a) ? a->passed_events + 1 : 0;
        m_room_handle(&m, a, msg->data);
        taken = take(ctx, M_NULL, 0, false);
    }
    for (uint64_t ops = below(3); ops > 0 && may_go_on(); ops--) {
        random_op();
    }
    if (chance(10)) {
        static const char marks[2] = {'x', 'y'};
        a->state = &marks[below(2)];
        ctx->state = (void *)(uintptr_t)a->state;
    }
    if (want.form == M_DROP && !taken) {
        m.payloads[want.serial].must_drop++;
    }
    if (t != NULL) {
        m_timer_done(&m, t, missed, taken, now());
    }
    m_room_fell(&m, a, false);
    jzx_behavior_result result = decide(ctx, a);
    r.self = 0;
    return result;
}

static void deinit(jzx_context *ctx)
{
    something_happens();
    m_actor *a = m_find(&m, ctx->self);
    require(a != NULL && !a->deinit_ran, "deinit ran for nobody, or twice");
    if (m.wrong != NULL || a == NULL) {
        return;
    }
    m_check_end(&m, a);
    require(ctx->state == a->state, "deinit got another state");
    a->deinit_ran = a->closed = true;
    m_end_timers(&m, a);
    r.self = a->id;
    r.in_deinit = true;
    if (m.destroying) {
        a->reason = (jzx_reason){.kind = JZX_REASON_KILLED};
    }
    while (chance(50) && may_go_on()) {
        random_op();
    }
    r.in_deinit = false;
    r.self = 0;
    if (chance(10)) {
        if (a->reason.kind <= JZX_REASON_SHUTDOWN) {
            a->reason = (jzx_reason){.kind = JZX_REASON_PANIC, .code = 7, .text = "in deinit"};
        }
        jzx_panic(ctx, 7, "in deinit");
    }
}

/* What the observer sees. */

static void on_start(void *ctx, jzx_actor_id id, const char *name)
{
    (void)ctx;
    (void)name;
    r.starts++;
    require(m_find(&m, id) == NULL, "a living actor's id was given out again");
}

static void on_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)ctx;
    (void)name;
    something_happens();
    m_actor *a = m_find(&m, id);
    jzx_actor_facts facts;
    require(a != NULL, "an actor ended twice");
    if (m.wrong != NULL || a == NULL) {
        return;
    }
    m_check_end(&m, a);
    require(a->deinit_ran, "an actor ended without deinit");
    if (m.destroying && a->reason.kind <= JZX_REASON_SHUTDOWN) {
        a->reason.kind = JZX_REASON_KILLED;
    }
    require(reason->kind == a->reason.kind && reason->code == a->reason.code &&
                strcmp(reason->text, a->reason.text) == 0,
            "an actor ended for another reason");
    require(jzx_actor_inspect(r.loop, id, &facts) == JZX_ERR_NO_SUCH_ACTOR,
            "an actor that ended can still be found");
    r.graves[r.grave_count++ % GRAVES] = id;
    m_end(&m, a);
}

static void on_full(void *ctx, jzx_actor_id id)
{
    (void)ctx;
    r.full_calls++;
    r.full_of = id;
}

/* A letter that no call announced: the message expired, or its actor is ending. */
static void unannounced_letter(const jzx_dead_letter *letter, m_actor *a, m_msg *out_msg)
{
    something_happens();
    m.dead_by[letter->reason]++;
    a->dead++;
    if (letter->reason == JZX_DEAD_EXPIRED) {
        *out_msg = m_pick(&m, a, letter->tag);
        require(r.self == 0 && r.in_step, "a message expired before its turn");
        require(out_msg->deadline_ns != 0 && now() > out_msg->deadline_ns,
                "a message expired before its deadline");
        r.turn_of = a->id;
        r.turn_count++;
    } else {
        require(letter->reason == (m.destroying ? JZX_DEAD_LOOP_CLOSED : JZX_DEAD_STOPPED),
                "a dead letter has another reason");
        m_check_end(&m, a);
        require(a->deinit_ran, "leftovers were drained before deinit");
        bool urgent = a->urgent.count > 0 && a->urgent.at[0].serial == letter->tag;
        require(urgent || (a->ordinary.count > 0 && a->ordinary.at[0].serial == letter->tag),
                "leftovers were drained out of order");
        if (m.wrong == NULL) {
            *out_msg = m_lane_pop(urgent ? &a->urgent : &a->ordinary);
        }
    }
    m_release(&m, a, out_msg->form, out_msg->serial);
    m_room_fell(&m, a, false);
}

static void on_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    (void)ctx;
    m_actor *a = m_find(&m, letter->target);
    require(a != NULL, "a dead letter has no target");
    require(letter->seq == ++r.letter_seq, "dead letters are not numbered in order");
    require(letter->tag == msg->tag && letter->sender == msg->sender && letter->len == msg->len &&
                letter->kind == JZX_KIND_USER,
            "a dead letter does not fit its message");
    if (m.wrong != NULL || a == NULL) {
        return;
    }
    if (m.letter_count > 0) {
        require(m.letters[0].serial == letter->tag && m.letters[0].reason == letter->reason &&
                    m.letters[0].target == letter->target,
                "another dead letter than the send should make");
        m.letter_count--;
        memmove(&m.letters[0], &m.letters[1], m.letter_count * sizeof m.letters[0]);
        return;
    }
    m_msg want = {0};
    unannounced_letter(letter, a, &want);
    require(letter->sender == want.sender && letter->len == want.len, "a letter has wrong facts");
    m_payload *p = &m.payloads[letter->tag];
    require(p->dropped == 0 && p->hooked == 0, "a payload was released before the hook saw it");
}

/* Running. */

static bool visible_work(const m_actor *a)
{
    return m_used(a) > 0 || m_event_waits(&m, a);
}

static void finish_turn(void)
{
    m_actor *a = m_find(&m, r.turn_of);
    if (a == NULL) {
        return;
    }
    require(!a->stop, "a stopped actor lives on after its turn");
    require(r.turn_blurred || !visible_work(a) || r.turn_count == a->max_msgs,
            "a turn ended early");
    if (m_used(a) < a->cap) {
        a->told_full = false;
    }
    m_room_fell(&m, a, true);
}

static void step(uint64_t max_ns)
{
    r.in_step = true;
    r.timers_seen = false;
    r.turn_of = 0;
    r.turn_count = 0;
    r.turn_blurred = false;
    for (int i = 0; i < M_TIMERS; i++) {
        r.turn_blurred |= m.timers[i].state == M_CANCELLED;
    }
    jzx_err err = m.exact || chance(80) ? jzx_loop_step(r.loop, max_ns)
                                        : jzx_loop_run_until_idle(r.loop);
    something_happens();
    r.in_step = false;
    require(err == JZX_OK, "a step failed");
    if (!m.exact || m.wrong != NULL) {
        return;
    }
    finish_turn();
    for (int i = 0; i < M_ACTORS; i++) {
        const m_actor *a = &m.actors[i];
        bool ready = a->id != 0 && (a->stop || visible_work(a));
        r.waited[i] = ready && a->id != r.turn_of ? r.waited[i] + 1 : 0;
        require(!r.fifo || r.waited[i] <= M_ACTORS + 1, "a ready actor waits for ever");
    }
}

/* Nothing is left that could run: everything asked for has come. */
static void check_idle(void)
{
    for (int i = 0; i < M_ACTORS; i++) {
        const m_actor *a = &m.actors[i];
        require(a->id == 0 || (m_used(a) == 0 && !a->stop && !a->drain),
                "an idle loop has messages left, or an actor that should have ended");
    }
    for (int i = 0; i < M_REQUESTS; i++) {
        require(m.requests[i].state == M_NONE, "an idle loop owes somebody a room notice");
    }
}

static void run_to_idle(void)
{
    r.ops_max = r.ops; /* behaviors do nothing more */
    for (int i = 0; i < 200000 && m.wrong == NULL; i++) {
        jzx_counters c;
        step(0);
        jzx_loop_counters(r.loop, &c);
        if (c.queued == 0 && jzx_loop_deadline(r.loop) != 0) {
            check_all();
            check_idle();
            return;
        }
    }
    require(false, "the loop does not come to rest");
}

static void open_run(uint64_t seed, uint32_t mode)
{
    jzx_sim_opts sim = {.seed = seed};
    jzx_config config = {.max_msgs_per_actor = 128};
    m = (model){.exact = (mode & 1) != 0};
    r = (run){.seed = seed, .fifo = (mode & 2) != 0, .ops_max = OPS_PER_RUN};
    r.rng.state = seed;
    sim.flags = r.fifo ? JZX_SIM_FIFO : 0;
    m.cost_ns = 1000;
    if (m.exact) {
        sim.cost_ns = JZX_SIM_NO_COST;
        m.cost_ns = 0;
        config.max_actors_per_tick = 1;
        config.turn_budget_us = config.tick_budget_us = UINT32_MAX;
    }
    jzx_kit_opts opts = {.sim = &sim, .config = &config};
    REQUIRE_OK(jzx_kit_open(&opts, &r.kit));
    r.loop = r.kit->loop;
    jzx_config clock_config = {.env = jzx_sim_env(r.kit->sim), .max_actors = 1};
    REQUIRE_OK(jzx_loop_create(&clock_config, &r.clock));
    jzx_observer observer = {.on_actor_start = on_start,
                             .on_actor_stop = on_stop,
                             .on_mailbox_full = on_full,
                             .on_dead_letter = on_letter};
    REQUIRE_OK(jzx_loop_set_observer(r.loop, &observer, NULL));
}

static void close_run(void)
{
    m.destroying = true;
    (void)jzx_loop_destroy(r.loop);
    r.kit->loop = NULL;
    (void)jzx_loop_destroy(r.clock);
    for (int i = 0; i < M_ACTORS; i++) {
        require(m.actors[i].id == 0, "an actor survived its loop");
    }
    m_check_payloads(&m, 0);
    const char *wrong = jzx_kit_close(r.kit);
    require(wrong == NULL, wrong);
}

/* One run; its seed decides everything, also which way it is driven. */
static void play(uint64_t seed)
{
    open_run(seed, (uint32_t)(seed & 3));
    for (int i = 0; i < 8; i++) {
        do_spawn();
    }
    while (may_go_on()) {
        for (uint64_t ops = below(6); ops > 0 && may_go_on(); ops--) {
            random_op();
        }
        for (uint64_t steps = below(8); steps > 0 && m.wrong == NULL; steps--) {
            step(chance(20) ? below(3 * M_TICK_NS) : 0);
        }
        if (m.wrong == NULL && chance(20)) {
            check_all();
        }
    }
    if (m.wrong == NULL && chance(70)) {
        run_to_idle();
    }
    uint32_t ops = r.ops;
    close_run();
    if (m.wrong != NULL) {
        fprintf(stderr, "model: %s (JZX_SEED=%" PRIu64 ", operation %" PRIu32 ")\n", m.wrong, seed,
                ops);
    }
    CHECK(m.wrong == NULL);
}

static void the_loop_and_the_model_agree_R4_R5_R6_R8_R10_R11_R12_R13_R16_R21_R26(void)
{
    const char *wish = getenv("JZX_MODEL_OPS");
    uint64_t ops_max = wish == NULL ? OPS_DEFAULT : strtoull(wish, NULL, 10);
    uint64_t ops = 0;
    uint64_t runs = 0;
    if (getenv("JZX_SEED") != NULL) {
        play(jzt_seed());
        return;
    }
    for (; ops < ops_max && jzt_failures() == 0; runs++) {
        play((jzt_seed() & UINT64_C(0xFFFFFFFFFFFF)) + runs + 1);
        ops += r.ops;
    }
    printf("model: %" PRIu64 " operations in %" PRIu64 " runs\n", ops, runs);
}

static const jzt_test tests[] = {
    {"the_loop_and_the_model_agree",
     the_loop_and_the_model_agree_R4_R5_R6_R8_R10_R11_R12_R13_R16_R21_R26},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
