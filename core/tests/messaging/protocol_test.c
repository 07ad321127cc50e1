/* Goal: typed messages go through mailboxes as the table says, whoever sends them and however they
 * end: handled, taken, refused, dead, or not as declared (R4, R5, R7). Method: two protocols in one
 * actor that keeps a ledger; every cheque counts its own end, so that none is lost or freed twice.
 */
#define JZX_PROTOCOL_CHECKS 0
#include "puppet.h"

#include <jzx/protocol.h>

#include <stdatomic.h>

typedef struct deposit {
    uint64_t cents;
    char from[200]; /* larger than what a mailbox node holds */
} deposit;

typedef struct cheque {
    _Atomic uint32_t *dropped;
    uint64_t cents;
} cheque;

typedef struct money {
    uint32_t cents;
} money;

static void cheque_free(cheque *c)
{
    atomic_fetch_add(c->dropped, 1);
    free(c);
}

#define BANK_MESSAGES(M, P)                                                                        \
    M(P, deposit, deposit, copy)                                                                   \
    M(P, cheque, cheque, owned(cheque_free))                                                       \
    M(P, fee, money, value)                                                                        \
    M(P, note, char, array)                                                                        \
    M(P, close, void, none)
JZX_PROTOCOL(bank, 0x1000, BANK_MESSAGES);

#define DOOR_MESSAGES(M, P)                                                                        \
    M(P, open, uint64_t, value)                                                                    \
    M(P, close, void, none)
JZX_PROTOCOL(door, 0x2000, DOOR_MESSAGES);
JZX_PROTOCOLS_DISJOINT(bank, door);

/* The actor under test. */
typedef struct teller {
    jzx_actor_id id;
    uint64_t cents;
    uint64_t opened;
    size_t notes;
    char last[16];
    cheque *kept;
    bool keep;
    bool fail;
    uint32_t closed;
    uint32_t doors_closed;
    uint32_t other;
    uint32_t refused;
    jzx_actor_id sender;
    uint8_t kind;
} teller;

static jzx_behavior_result teller_done(jzx_context *ctx, const jzx_message *msg)
{
    teller *me = ctx->state;
    me->sender = msg->sender;
    me->kind = msg->kind;
    return me->fail ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}
static jzx_behavior_result teller_other(jzx_context *ctx, const jzx_message *msg)
{
    teller *me = ctx->state;
    me->other++;
    me->refused += bank_check(msg) != JZX_OK || door_check(msg) != JZX_OK;
    uint32_t not_mine = JZX_MSG_VALUE | JZX_MSG_COPY | JZX_MSG_BORROWED;
    if (msg->drop == NULL && (msg->flags & not_mine) == 0) {
        free(msg->data);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result door_on_open(jzx_context *ctx, const jzx_message *msg, uint64_t payload)
{
    ((teller *)ctx->state)->opened += payload;
    return teller_done(ctx, msg);
}
static jzx_behavior_result door_on_close(jzx_context *ctx, const jzx_message *msg)
{
    ((teller *)ctx->state)->doors_closed++;
    return teller_done(ctx, msg);
}
JZX_PROTOCOL_DISPATCH(teller_door, door, DOOR_MESSAGES, door_on, teller_other);

static jzx_behavior_result bank_on_deposit(jzx_context *ctx, const jzx_message *msg,
                                           const deposit *payload)
{
    teller *me = ctx->state;
    me->cents += payload->cents;
    memcpy(me->last, payload->from, sizeof me->last);
    return teller_done(ctx, msg);
}
static jzx_behavior_result bank_on_cheque(jzx_context *ctx, const jzx_message *msg, cheque *payload)
{
    teller *me = ctx->state;
    me->cents += payload->cents;
    if (me->keep) {
        me->kept = bank_take_cheque(ctx);
    }
    return teller_done(ctx, msg);
}
static jzx_behavior_result bank_on_fee(jzx_context *ctx, const jzx_message *msg, money payload)
{
    ((teller *)ctx->state)->cents += payload.cents;
    return teller_done(ctx, msg);
}
static jzx_behavior_result bank_on_note(jzx_context *ctx, const jzx_message *msg,
                                        const char *payload, size_t count)
{
    teller *me = ctx->state;
    me->notes += count;
    memset(me->last, 0, sizeof me->last);
    memcpy(me->last, payload, count < sizeof me->last ? count : sizeof me->last - 1);
    return teller_done(ctx, msg);
}
static jzx_behavior_result bank_on_close(jzx_context *ctx, const jzx_message *msg)
{
    ((teller *)ctx->state)->closed++;
    return teller_done(ctx, msg);
}
JZX_PROTOCOL_DISPATCH(teller_run, bank, BANK_MESSAGES, bank_on, teller_door);

static void teller_spawn(rig *r, teller *self, uint32_t cap)
{
    jzx_spawn_opts opts = {
        .behavior = teller_run, .state = self, .name = "teller", .mailbox_cap = cap};
    REQUIRE_OK(jzx_spawn(r->loop, &opts, &self->id));
}

static cheque *cheque_new(_Atomic uint32_t *dropped, uint64_t cents)
{
    cheque *c = malloc(sizeof *c);
    REQUIRE(c != NULL);
    *c = (cheque){.dropped = dropped, .cents = cents};
    return c;
}

static void test_each_way_arrives_as_it_was_sent(void)
{
    rig r = rig_open_fifo(NULL);
    teller t = {0};
    _Atomic uint32_t dropped = 0;
    deposit d = {.cents = 1, .from = "somebody"};
    teller_spawn(&r, &t, 0);
    REQUIRE_OK(bank_send_deposit(r.loop, t.id, &d));
    d.cents = 1000000; /* what travels is a copy */
    REQUIRE_OK(bank_send_cheque(r.loop, t.id, cheque_new(&dropped, 10)));
    REQUIRE_OK(bank_send_fee(r.loop, t.id, (money){100}));
    rig_idle(&r);
    CHECK_EQ(t.cents, 111);
    CHECK_STR(t.last, "somebody");
    CHECK_EQ(dropped, 1);
    REQUIRE_OK(bank_send_note(r.loop, t.id, "hello", 5));
    REQUIRE_OK(bank_send_note(r.loop, t.id, NULL, 0));
    REQUIRE_OK(bank_send_note(r.loop, t.id, "bye", 3));
    REQUIRE_OK(bank_send_close(r.loop, t.id));
    rig_idle(&r);
    CHECK_EQ(t.notes, 8);
    CHECK_STR(t.last, "bye");
    CHECK_EQ(t.closed, 1);
    CHECK_EQ(t.sender, JZX_NOBODY);
    CHECK_EQ(t.other, 0);
    rig_close(&r);
}

static void test_two_protocols_share_an_actor(void)
{
    rig r = rig_open(NULL);
    teller t = {0};
    teller_spawn(&r, &t, 0);
    REQUIRE_OK(bank_send_close(r.loop, t.id));
    REQUIRE_OK(door_send_open(r.loop, t.id, 7));
    REQUIRE_OK(door_send_close(r.loop, t.id));
    REQUIRE_OK(door_send_close(r.loop, t.id));
    REQUIRE_OK(jzx_send_u64(r.loop, t.id, 1, 5));
    rig_idle(&r);
    CHECK_EQ(t.closed, 1);
    CHECK_EQ(t.opened, 7);
    CHECK_EQ(t.doors_closed, 2);
    CHECK_EQ(t.other, 1);
    CHECK_EQ(t.refused, 0);
    rig_close(&r);
}

/* An actor that sends as soon as it is poked. */
static jzx_behavior_result send_from_inside(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)msg;
    const teller *t = self->arg;
    CHECK_OK(bank_send_close(ctx->loop, t->id));
    return JZX_BEHAVIOR_OK;
}

static void test_the_sender_is_the_running_actor(void)
{
    rig r = rig_open(NULL);
    teller t = {0};
    puppet *from = puppet_start(&r, send_from_inside, NULL);
    from->arg = &t;
    teller_spawn(&r, &t, 0);
    tell(&r, from, 1);
    rig_idle(&r);
    CHECK_EQ(t.sender, from->id);
    rig_close(&r);
    puppet_free(from);
}

static void test_what_a_handler_takes_is_the_actors(void)
{
    rig r = rig_open(NULL);
    teller t = {.keep = true};
    _Atomic uint32_t dropped = 0;
    teller_spawn(&r, &t, 0);
    REQUIRE_OK(bank_send_cheque(r.loop, t.id, cheque_new(&dropped, 10)));
    rig_idle(&r);
    CHECK_EQ(dropped, 0);
    REQUIRE(t.kept != NULL);
    CHECK_EQ(t.kept->cents, 10);
    cheque_free(t.kept);
    rig_close(&r);
    CHECK_EQ(dropped, 1);
}

static void test_what_a_handler_fails_on_is_dropped_once(void)
{
    rig r = rig_open(NULL);
    teller t = {.fail = true};
    _Atomic uint32_t dropped = 0;
    teller_spawn(&r, &t, 0);
    REQUIRE_OK(bank_send_cheque(r.loop, t.id, cheque_new(&dropped, 1)));
    REQUIRE_OK(bank_send_cheque(r.loop, t.id, cheque_new(&dropped, 1)));
    rig_idle(&r);
    CHECK_EQ(dropped, 2); /* one in hand, one dead */
    rig_close(&r);
    CHECK_EQ(dropped, 2);
}

static void test_a_refused_send_leaves_the_payload_with_the_sender(void)
{
    rig r = rig_open(NULL);
    teller t = {0};
    _Atomic uint32_t dropped = 0;
    teller_spawn(&r, &t, 1);
    REQUIRE_OK(bank_send_close(r.loop, t.id));
    cheque *mine = cheque_new(&dropped, 1);
    CHECK_EQ(bank_send_cheque(r.loop, t.id, mine), JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(bank_send_cheque(r.loop, JZX_NOBODY, mine), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(dropped, 0);
    /* The options take what the send can do. */
    jzx_send_opts opts = bank_opts_cheque(mine);
    opts.flags |= JZX_SEND_CONSUME;
    CHECK_EQ(jzx_send_with(r.loop, t.id, &opts), JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(dropped, 1);
    deposit d = {.cents = 1};
    CHECK_EQ(bank_send_deposit(r.loop, t.id, &d), JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(bank_send_fee(r.loop, t.id, (money){1}), JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(bank_send_note(r.loop, t.id, "x", 1), JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(bank_send_close(r.loop, t.id), JZX_ERR_MAILBOX_FULL);
    rig_close(&r);
    CHECK_EQ(dropped, 1);
}

static void test_no_payload_where_there_should_be_one_is_refused(void)
{
    rig r = rig_open(NULL);
    teller t = {0};
    teller_spawn(&r, &t, 0);
    CHECK_EQ(bank_send_deposit(r.loop, t.id, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(bank_send_cheque(r.loop, t.id, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(bank_send_note(r.loop, t.id, NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(bank_send_note(r.loop, t.id, "x", SIZE_MAX), JZX_ERR_TOO_BIG);
    jzx_send_opts opts = bank_opts_deposit(NULL);
    CHECK_EQ(jzx_send_with(r.loop, t.id, &opts), JZX_ERR_INVALID_ARG);
    opts = bank_opts_cheque(NULL);
    CHECK_EQ(jzx_send_with(r.loop, t.id, &opts), JZX_ERR_INVALID_ARG);
    CHECK_EQ(bank_send_close(NULL, t.id), JZX_ERR_INVALID_ARG);
    rig_idle(&r);
    CHECK_EQ(t.cents + t.notes + t.other, 0);
    rig_close(&r);
}

static void test_options_carry_deadlines_and_urgency(void)
{
    rig r = rig_open(NULL);
    teller t = {0};
    _Atomic uint32_t dropped = 0;
    teller_spawn(&r, &t, 0);
    jzx_send_opts opts = bank_opts_cheque(cheque_new(&dropped, 10));
    opts.deadline_ns = 1; /* long ago */
    REQUIRE_OK(jzx_send_with(r.loop, t.id, &opts));
    opts = bank_opts_fee((money){100});
    opts.flags |= JZX_SEND_URGENT;
    REQUIRE_OK(jzx_send_with(r.loop, t.id, &opts));
    rig_idle(&r);
    CHECK_EQ(t.cents, 100);
    CHECK_EQ(dropped, 1);
    CHECK_DEAD(&r, DEAD(JZX_DEAD_EXPIRED, 0x1001));
    rig_close(&r);
}

static void test_timers_with_a_tag_of_the_protocol_reach_its_handlers(void)
{
    rig r = rig_open(NULL);
    teller t = {0};
    _Atomic uint32_t dropped = 0;
    cheque *c = cheque_new(&dropped, 10);
    teller_spawn(&r, &t, 0);
    jzx_timer_opts fee = {.delay_ms = 1, .u64 = 5, .tag = bank_tag_fee, .flags = JZX_TIMER_VALUE};
    jzx_timer_opts cash = {.delay_ms = 1,
                           .data = c,
                           .len = sizeof *c,
                           .drop = bank_drop_cheque,
                           .tag = bank_tag_cheque};
    REQUIRE_OK(jzx_send_after(r.loop, t.id, 1, NULL, 0, bank_tag_close, NULL));
    REQUIRE_OK(jzx_timer_start(r.loop, t.id, &fee, NULL));
    REQUIRE_OK(jzx_timer_start(r.loop, t.id, &cash, NULL));
    REQUIRE_OK(jzx_kit_run(r.kit, 5));
    CHECK_EQ(t.closed, 1);
    CHECK_EQ(t.cents, 15);
    CHECK_EQ(t.kind, JZX_KIND_TIMER);
    CHECK_EQ(t.other, 0);
    rig_close(&r);
    CHECK_EQ(dropped, 1);
}

static void test_a_periodic_timer_lends_copies_but_hands_nothing_over(void)
{
    rig r = rig_open(NULL);
    teller t = {0};
    _Atomic uint32_t dropped = 0;
    deposit d = {.cents = 1};
    cheque *c = cheque_new(&dropped, 10);
    jzx_timer_id lent = 0;
    jzx_timer_id handed = 0;
    teller_spawn(&r, &t, 0);
    jzx_timer_opts lend = {
        .delay_ms = 1, .period_ms = 1, .data = &d, .len = sizeof d, .tag = bank_tag_deposit};
    jzx_timer_opts hand = {.delay_ms = 1,
                           .period_ms = 1,
                           .data = c,
                           .len = sizeof *c,
                           .drop = bank_drop_cheque,
                           .tag = bank_tag_cheque};
    REQUIRE_OK(jzx_timer_start(r.loop, t.id, &lend, &lent));
    REQUIRE_OK(jzx_timer_start(r.loop, t.id, &hand, &handed));
    REQUIRE_OK(jzx_kit_run(r.kit, 20));
    CHECK(t.cents > 0);
    CHECK(t.refused > 0);
    CHECK_EQ(t.refused, t.other);
    CHECK_EQ(dropped, 0);
    CHECK_OK(jzx_cancel_timer(r.loop, lent));
    CHECK_OK(jzx_cancel_timer(r.loop, handed));
    rig_close(&r);
    CHECK_EQ(dropped, 1);
}

static void test_what_is_not_as_declared_is_refused_and_can_be_counted(void)
{
    rig r = rig_open_fifo(NULL);
    teller t = {0};
    teller_spawn(&r, &t, 0);
    REQUIRE_OK(jzx_send_copy(r.loop, t.id, "short", 5, bank_tag_deposit));
    REQUIRE_OK(jzx_send_u64(r.loop, t.id, 7, bank_tag_deposit));
    /* Without drop this would be nobody's to release. */
    REQUIRE_OK(
        jzx_send(r.loop, t.id, calloc(1, sizeof(deposit)), sizeof(deposit), bank_tag_deposit));
    REQUIRE_OK(jzx_send(r.loop, t.id, calloc(1, sizeof(cheque)), sizeof(cheque), bank_tag_cheque));
    REQUIRE_OK(jzx_send_u64(r.loop, t.id, UINT64_C(1) << 40, bank_tag_fee));
    REQUIRE_OK(jzx_send_u64(r.loop, t.id, 1, door_tag_close));
    rig_idle(&r);
    CHECK_EQ(t.refused, 6);
    CHECK_EQ(t.other, 6);
    CHECK_EQ(t.cents + t.closed, 0);
    /* And what was meant to be sent by hand is taken. */
    REQUIRE_OK(jzx_send_u64(r.loop, t.id, 9, bank_tag_fee));
    REQUIRE_OK(jzx_send(r.loop, t.id, NULL, 0, bank_tag_close));
    rig_idle(&r);
    CHECK_EQ(t.cents, 9);
    CHECK_EQ(t.closed, 1);
    CHECK_EQ(t.refused, 6);
    rig_close(&r);
}

static void test_what_dies_is_dropped(void)
{
    rig r = rig_open(NULL);
    teller t = {0};
    _Atomic uint32_t dropped = 0;
    teller_spawn(&r, &t, 0);
    REQUIRE_OK(bank_send_cheque(r.loop, t.id, cheque_new(&dropped, 1)));
    REQUIRE_OK(jzx_stop(r.loop, t.id));
    rig_idle(&r);
    CHECK_EQ(dropped, 1);
    cheque *mine = cheque_new(&dropped, 1);
    CHECK_EQ(bank_send_cheque(r.loop, t.id, mine), JZX_ERR_NO_SUCH_ACTOR);
    cheque_free(mine);
    rig_close(&r);
    CHECK_EQ(dropped, 2);
}

static void test_a_dead_letters_tag_has_a_name(void)
{
    rig r = rig_open(NULL);
    teller t = {0};
    jzx_dead_letter letter;
    uint64_t cursor = 0;
    teller_spawn(&r, &t, 0);
    REQUIRE_OK(door_send_open(r.loop, t.id, 1));
    REQUIRE_OK(jzx_stop(r.loop, t.id));
    rig_idle(&r);
    REQUIRE_EQ(jzx_dead_letters_read(r.loop, &cursor, &letter, 1, NULL), 1);
    CHECK(bank_name(letter.tag) == NULL);
    CHECK_STR(door_name(letter.tag), "door.open");
    rig_close(&r);
}

/* Other threads are not simulated, so these run on a real loop. */
static void test_other_threads_send_the_same_messages(void)
{
    rig_current = &rig_worlds[1];
    rig r = rig_open(NULL);
    rig_current = &rig_worlds[0];
    teller t = {0};
    _Atomic uint32_t dropped = 0;
    deposit d = {.cents = 1, .from = "far away"};
    jzx_sender *sender = NULL;
    teller_spawn(&r, &t, 0);
    REQUIRE_OK(jzx_sender_open(r.loop, 0, &sender));
    REQUIRE_OK(bank_send_async_deposit(sender, t.id, &d));
    rig_idle(&r);
    CHECK_STR(t.last, "far away");
    REQUIRE_OK(bank_send_async_cheque(sender, t.id, cheque_new(&dropped, 10)));
    REQUIRE_OK(bank_send_async_fee(sender, t.id, (money){100}));
    REQUIRE_OK(bank_send_async_note(sender, t.id, "note", 4));
    REQUIRE_OK(bank_send_async_close(sender, t.id));
    CHECK_EQ(bank_send_async_cheque(sender, t.id, NULL), JZX_ERR_INVALID_ARG);
    rig_idle(&r);
    CHECK_EQ(t.cents, 111);
    CHECK_EQ(t.notes, 4);
    CHECK_EQ(t.closed, 1);
    CHECK_EQ(dropped, 1);
    cheque *mine = cheque_new(&dropped, 1);
    CHECK_EQ(bank_send_async_cheque(sender, JZX_NOBODY, mine), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(dropped, 1);
    cheque_free(mine);
    jzx_sender_release(sender);
    rig_close(&r);
}

/* Sends one random message; returns what the teller should add to its cents. */
static uint64_t send_random(rig *r, jzt_rng *rng, jzx_actor_id to, _Atomic uint32_t *dropped,
                            uint32_t *made)
{
    uint32_t cents = (uint32_t)jzt_rng_below(rng, 1000);
    deposit d = {.cents = cents};
    cheque *c = NULL;
    jzx_err err = JZX_OK;
    switch (jzt_rng_below(rng, 4)) {
    case 0:
        err = bank_send_deposit(r->loop, to, &d);
        break;
    case 1:
        c = cheque_new(dropped, cents);
        ++*made;
        err = bank_send_cheque(r->loop, to, c);
        if (err != JZX_OK) {
            cheque_free(c);
        }
        break;
    case 2:
        err = bank_send_fee(r->loop, to, (money){cents});
        break;
    default:
        cents = 0;
        err = jzx_send_copy(r->loop, to, "wrong", 5, bank_tag_fee);
        break;
    }
    CHECK(err == JZX_OK || err == JZX_ERR_MAILBOX_FULL);
    return err == JZX_OK ? cents : 0;
}

static void test_random_traffic_adds_up(void)
{
    enum { ROUNDS = 200, BURST = 40, CAP = 16 };
    jzt_rng rng = jzt_rng_seeded();
    rig r = rig_open(NULL);
    teller tellers[3] = {0};
    uint64_t want[3] = {0};
    uint32_t made = 0;
    _Atomic uint32_t dropped = 0;
    for (int i = 0; i < 3; i++) {
        teller_spawn(&r, &tellers[i], CAP);
    }
    for (int round = 0; round < ROUNDS && jzt_failures() == 0; round++) {
        for (uint64_t n = jzt_rng_below(&rng, BURST); n > 0; n--) {
            size_t who = (size_t)jzt_rng_below(&rng, 3);
            want[who] += send_random(&r, &rng, tellers[who].id, &dropped, &made);
        }
        rig_idle(&r);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(tellers[i].cents, want[i]);
        CHECK_EQ(tellers[i].refused, tellers[i].other);
    }
    CHECK(made > 0);
    CHECK_EQ(dropped, made);
    rig_close(&r);
}

/* Sends everything once and shrugs off errors; cheques must end exactly once all the same. */
static const char *scenario(jzx_kit *kit, void *arg)
{
    (void)arg;
    teller t = {0};
    _Atomic uint32_t dropped = 0;
    uint32_t made = 0;
    deposit d = {.cents = 1};
    jzx_spawn_opts opts = {.behavior = teller_run, .state = &t};
    if (jzx_spawn(kit->loop, &opts, &t.id) != JZX_OK) {
        return NULL;
    }
    uint64_t want = bank_send_deposit(kit->loop, t.id, &d) == JZX_OK ? 1 : 0;
    for (int i = 0; i < 3; i++) {
        cheque *c = cheque_new(&dropped, 10);
        made++;
        if (bank_send_cheque(kit->loop, t.id, c) == JZX_OK) {
            want += 10;
        } else {
            cheque_free(c);
        }
        want += bank_send_fee(kit->loop, t.id, (money){100}) == JZX_OK ? 100 : 0;
    }
    if (jzx_kit_settle(kit) != JZX_OK) {
        return NULL;
    }
    (void)jzx_stop(kit->loop, t.id);
    if (jzx_kit_settle(kit) != JZX_OK) {
        return NULL;
    }
    if (dropped != made) {
        return "a cheque was lost";
    }
    return t.cents == want ? NULL : "the sum is not what was accepted";
}

static void test_no_memory_loses_nothing(void)
{
    jzx_sim_opts sim = {.seed = 1};
    jzx_kit_opts opts = {.sim = &sim};
    jzx_sweep_report report = {0};
    const char *wrong = jzx_fault_sweep(&opts, scenario, NULL, 1000, &report);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK(report.allocs > 3);
}

static const jzt_test tests[] = {
    {"each_way_arrives_as_it_was_sent", test_each_way_arrives_as_it_was_sent},
    {"two_protocols_share_an_actor", test_two_protocols_share_an_actor},
    {"the_sender_is_the_running_actor", test_the_sender_is_the_running_actor},
    {"what_a_handler_takes_is_the_actors", test_what_a_handler_takes_is_the_actors},
    {"what_a_handler_fails_on_is_dropped_once", test_what_a_handler_fails_on_is_dropped_once},
    {"a_refused_send_leaves_the_payload_with_the_sender",
     test_a_refused_send_leaves_the_payload_with_the_sender},
    {"no_payload_where_there_should_be_one_is_refused",
     test_no_payload_where_there_should_be_one_is_refused},
    {"options_carry_deadlines_and_urgency", test_options_carry_deadlines_and_urgency},
    {"timers_with_a_tag_of_the_protocol_reach_its_handlers",
     test_timers_with_a_tag_of_the_protocol_reach_its_handlers},
    {"a_periodic_timer_lends_copies_but_hands_nothing_over",
     test_a_periodic_timer_lends_copies_but_hands_nothing_over},
    {"what_is_not_as_declared_is_refused_and_can_be_counted",
     test_what_is_not_as_declared_is_refused_and_can_be_counted},
    {"what_dies_is_dropped", test_what_dies_is_dropped},
    {"a_dead_letters_tag_has_a_name", test_a_dead_letters_tag_has_a_name},
    {"other_threads_send_the_same_messages", test_other_threads_send_the_same_messages},
    {"random_traffic_adds_up", test_random_traffic_adds_up},
    {"no_memory_loses_nothing", test_no_memory_loses_nothing},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
