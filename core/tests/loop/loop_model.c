/* A loop and the reference model of model.h, driven by the same random operations: a million calls
 * from inside and outside of behaviors, and after each of them both must agree (R4-R8, R10-R13,
 * R16, R17, R21, R26). Runs have consecutive seeds: JZX_SEED=n begins with the run that was
 * reported with that seed. JZX_MODEL_OPS says how many operations there are in all. */
#include "model_ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define OPS_DEFAULT 300000
#else
#define OPS_DEFAULT 1050000
#endif
enum { OPS_PER_RUN = 4000 };

/* The code of the actors. */

static void check_user_message(const m_msg *want, const jzx_message *msg)
{
    uint16_t flags =
        (uint16_t)((want->form == M_VALUE ? JZX_MSG_VALUE : 0) |
                   (want->form == M_COPY ? JZX_MSG_COPY : 0) | (want->urgent ? JZX_MSG_URGENT : 0));
    require((msg->flags & 0xFu) == flags && msg->kind == JZX_KIND_USER, "flags or kind are wrong");
    require(msg->sender == want->sender, "the sender is another one");
    require(msg->len == want->len, "the length is another one");
    require(msg->deadline_ns == want->deadline_ns, "the deadline is another one");
    /* In a pool others may run, and time pass, between the look at the clock and the handling. */
    require(want->deadline_ns == 0 || now() <= want->deadline_ns || m.loose,
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
    require(!a->failing && (!a->stop || a->grace), "an actor went on after its end was decided");
    require(r.in_step, "an actor runs outside of a step");
    if (m.exact) {
        require(r.turn_of == 0 || r.turn_of == a->id, "two actors ran in one turn");
        r.turn_of = a->id;
        require(++r.turn_count <= a->max_msgs, "a turn has more messages than it may");
    }
}

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    turn_begins();
    m_actor *a = m_find(&m, ctx->self);
    enter_turn(ctx, a);
    if (m.wrong != NULL || a == NULL) {
        return JZX_BEHAVIOR_OK;
    }
    a->grace = false;
    m_timer *t = NULL;
    uint64_t missed = 0;
    m_msg want = {.form = M_NULL};
    bool taken = false;
    r.self = a->id;
    a->handled++;
    m.handled++;
    if (msg->kind == JZX_KIND_USER) {
        want = m_pick(&m, a, msg->tag);
        a->holding += want.async;
        check_user_message(&want, msg);
        taken = take(ctx, want.form, want.serial, true);
    } else if (msg->kind == JZX_KIND_TIMER) {
        t = m_timer_find(&m, jzx_timer_current(ctx));
        require(t != NULL && t->owner == a->id, "a timer message came of no timer");
        if (t != NULL && m.wrong == NULL) {
            a->passed_ordinary = a->ordinary.count > 0 ? a->passed_ordinary + 1 : 0;
            a->passed_events = 0;
            missed = m_timer_handle(&m, t, now());
            uint64_t told = jzx_timer_missed(ctx);
            require(told == missed || (m.loose && told < missed),
                    "another count of missed periods");
            missed = told;
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
    m.told_in_hand = JZX_NOBODY;
    m_room_fell(&m, a, false);
    jzx_behavior_result result = decide(ctx, a);
    r.self = 0;
    return result;
}

static void deinit(jzx_context *ctx)
{
    turn_begins();
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
    turn_begins();
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
    if (!r.sending && m.exact) { /* the sender was refused, some time ago */
        m_actor *a = m_find(&m, id);
        require(a != NULL && a->refused_async, "on_mailbox_full was called out of turn");
        if (a != NULL) {
            a->told_full = true;
        }
    }
}

/* A letter that no call announced: the message expired, or its actor is ending. */
static void unannounced_letter(const jzx_dead_letter *letter, m_actor *a, m_msg *out_msg)
{
    turn_begins();
    m.dead_by[letter->reason]++;
    a->dead++;
    if (letter->reason == JZX_DEAD_EXPIRED) {
        *out_msg = m_pick(&m, a, letter->tag);
        require(r.self == 0 && r.in_step, "a message expired before its turn");
        require(out_msg->deadline_ns != 0 && now() > out_msg->deadline_ns,
                "a message expired before its deadline");
        r.turn_of = a->id;
        r.turn_count++;
    } else if (m.loose && (letter->reason == JZX_DEAD_DROPPED_OLDEST ||
                           letter->reason == JZX_DEAD_DROPPED_NEWEST)) {
        /* The oldest one may be out of the lane, and its actor has not seen it yet. */
        bool oldest = letter->reason == JZX_DEAD_DROPPED_OLDEST;
        require(a->policy != JZX_FULL_REJECT && (!oldest || a->policy == JZX_FULL_DROP_OLDEST),
                "a message was dropped against the policy");
        require(m_lane_remove(&a->ordinary, letter->tag, oldest ? 2 : M_LANE, out_msg),
                "another message was dropped than the oldest or the newest");
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
    m_release(&m, a->hook, out_msg->form, out_msg->serial);
    m_room_fell(&m, a, false);
}

static void on_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    (void)ctx;
    step_begins();
    m_actor *a = m_find(&m, letter->target);
    require(letter->seq == ++r.letter_seq, "dead letters are not numbered in order");
    require(letter->tag == msg->tag && letter->sender == msg->sender && letter->len == msg->len &&
                letter->kind == JZX_KIND_USER,
            "a dead letter does not fit its message");
    if (m.wrong != NULL) {
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
    if (m.destroying && a == NULL && m.flight_count > 0) {
        const m_flight *f = &m.flights[0]; /* it was under way when the loop ended */
        require(f->msg.serial == letter->tag && f->to == letter->target &&
                    letter->reason == JZX_DEAD_LOOP_CLOSED,
                "another message was under way");
        m_release(&m, f->hook, f->msg.form, f->msg.serial);
        m.flight_count--;
        memmove(&m.flights[0], &m.flights[1], m.flight_count * sizeof m.flights[0]);
        return;
    }
    require(a != NULL, "a dead letter has no target");
    if (a == NULL) {
        return;
    }
    if (letter->reason == JZX_DEAD_FAILED_ON) { /* it was handed over, and its data is dealt with */
        require(a->failing && a->reason.kind != JZX_REASON_NORMAL, "nobody failed on it");
        m.dead_by[letter->reason]++;
        a->dead++;
        a->handled--;
        m.handled--;
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
    return m_queued(a) > 0 || m_event_waits(&m, a);
}

static void finish_turn(void)
{
    m_actor *a = m_find(&m, r.turn_of);
    if (a == NULL) {
        return;
    }
    a->holding = 0;
    require(!a->stop, "a stopped actor lives on after its turn");
    require(r.turn_blurred || !visible_work(a) || r.turn_count == a->max_msgs,
            "a turn ended early");
    if (m_used(a) < a->cap) {
        a->told_full = a->told_vague = false;
    }
    m_room_fell(&m, a, true);
}

static void step(uint64_t max_ns)
{
    r.in_step = true;
    r.arrived = r.turn_began = false;
    r.turn_of = 0;
    r.turn_count = 0;
    r.turn_blurred = false;
    for (int i = 0; i < M_TIMERS; i++) {
        r.turn_blurred |= m.timers[i].state == M_CANCELLED;
    }
    jzx_err err =
        m.exact || chance(80) ? jzx_loop_step(r.loop, max_ns) : jzx_loop_run_until_idle(r.loop);
    turn_begins();
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
        if (r.turn_of == 0 && r.turn_blurred) { /* a turn of cancelled messages is not seen */
            m.actors[i].told_vague = true;
            r.waited[i] = 0;
        }
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

/* Behaviors do nothing more meanwhile. */
static void run_to_idle(void)
{
    uint32_t ops_max = r.ops_max;
    r.ops_max = 0;
    for (int i = 0; i < 200000 && m.wrong == NULL; i++) {
        jzx_counters c;
        step(0);
        jzx_loop_counters(r.loop, &c);
        if (c.queued == 0 && jzx_loop_deadline(r.loop) != 0 && m.flight_count == 0) {
            check_all();
            check_idle();
            r.ops_max = ops_max;
            return;
        }
    }
    require(false, "the loop does not come to rest");
}

enum { MODE_EXACT = 1, MODE_FIFO = 2, MODE_SWIFT = 4 };

static void open_run(uint64_t seed, uint32_t mode)
{
    jzx_sim_opts sim = {.seed = seed};
    jzx_config config = {.max_msgs_per_actor = 128};
    m = (model){.exact = (mode & MODE_EXACT) != 0};
    r = (run){.fifo = (mode & (MODE_FIFO | MODE_SWIFT)) != 0, .ops_max = OPS_PER_RUN};
    if (jzt_on_pool() > 0) {
        /* Whose turn it is and when a message is where are the pool's choice; and without the
         * exact clock of the simulation its workers would be threads. */
        m.loose = true;
        m.exact = false;
        mode &= ~(uint32_t)MODE_SWIFT;
    }
    r.rng.state = seed;
    sim.flags = r.fifo ? JZX_SIM_FIFO : 0;
    m.cost_ns = 1000;
    if (m.exact) {
        sim.cost_ns = JZX_SIM_NO_COST;
        m.cost_ns = 0;
        config.max_actors_per_tick = 1;
        config.turn_budget_us = config.tick_budget_us = UINT32_MAX;
    }
    REQUIRE_OK(jzx_sim_create(&sim, &r.sim));
    r.env = *jzx_sim_env(r.sim);
    if ((mode & MODE_SWIFT) != 0) { /* as on a real machine: the clock is not read per message */
        r.env.flags &= ~JZX_ENV_EXACT_CLOCK;
        r.env.trace = NULL;
    }
    jzx_kit_opts opts = {.env = &r.env, .config = &config};
    REQUIRE_OK(jzx_kit_open(&opts, &r.kit));
    r.loop = r.kit->loop;
    jzx_config clock_config = {.env = jzx_sim_env(r.sim), .max_actors = 1};
    REQUIRE_OK(jzx_loop_create(&clock_config, &r.clock));
    jzx_observer observer = {.on_actor_spawn = on_start,
                             .on_actor_stop = on_stop,
                             .on_mailbox_full = on_full,
                             .on_dead_letter = on_letter};
    REQUIRE_OK(jzx_loop_set_observer(r.loop, &observer, NULL));
    /* In simulation only a world without chance has senders; and the model must see every turn. */
    if (m.exact && r.fifo) {
        REQUIRE_OK(jzx_sender_open(r.loop, chance(50) ? JZX_SENDER_SINGLE : 0, &r.sender));
    }
}

static void close_run(void)
{
    m.destroying = true;
    (void)jzx_loop_destroy(r.loop);
    r.kit->loop = NULL;
    require(m.flight_count == 0, "a message that was under way is nowhere");
    require(r.sender == NULL || jzx_send_async_u64(r.sender, 1, 1, 1) == JZX_ERR_LOOP_CLOSED,
            "a sender does not know that its loop is gone");
    jzx_sender_release(r.sender);
    (void)jzx_loop_destroy(r.clock);
    for (int i = 0; i < M_ACTORS; i++) {
        require(m.actors[i].id == 0, "an actor survived its loop");
    }
    m_check_payloads(&m, 0);
    const char *wrong = jzx_kit_close(r.kit);
    require(wrong == NULL, wrong);
    require(jzx_sim_open_fds(r.sim) == 0, "a descriptor was left open");
    require(jzx_sim_check(r.sim) == NULL, "a descriptor was misused");
    jzx_sim_destroy(r.sim);
}

/* One run; its seed decides everything, also which way it is driven. */
static void play(uint64_t seed)
{
    open_run(seed, (uint32_t)(seed % 8));
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
        if (m.wrong == NULL && chance(2)) {
            run_to_idle();
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
    for (; ops < ops_max && jzt_failures() == 0; runs++) {
        play(jzt_seed() + runs);
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
