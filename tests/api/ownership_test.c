/* Goal: R4. Whoever ends up with a message releases it exactly once, and nobody does so for a
 * message that was refused. Method: payloads that count their drops go down every path a message
 * can take, through the public API only. Closing the kit asserts conservation (R5) and that no
 * memory is left. */
#include "check.h"

#include <jzx/jzx.h>
#include <jzx/testkit.h>

#include <stdlib.h>
#include <string.h>

enum { KEEP = 1, STOP = 2, FAIL = 3, PANIC = 4, TAKE = 5, TAKE_AND_PANIC = 6, CANCEL = 7 };

typedef struct payload {
    int drops;
} payload;

static void payload_drop(void *data)
{
    ((payload *)data)->drops++;
}

/* What the actor under test, its hooks and the observer saw. */
typedef struct witness {
    jzx_kit *kit;
    jzx_actor_id id;
    jzx_timer_id timer;
    int handled;
    int dropped_early; /* payloads that were gone while the behavior or the hook looked at them */
    int takes;         /* jzx_message_take() that gave the message's data */
    int takes_again;   /* second ones that gave anything */
    int hooked;        /* drop_msg calls */
    int dead;
    uint8_t dead_reason; /* of the last one */
} witness;

/* drop_msg gets no context, by design: it may run on any thread. Tests run one after the other. */
static witness *current;

static int was_dropped(const jzx_message *msg)
{
    const payload *p = msg->data;
    return msg->drop == payload_drop && p != NULL && p->drops != 0;
}

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    witness *w = ctx->state;
    w->handled++;
    w->dropped_early += was_dropped(msg);
    if (msg->tag == TAKE || msg->tag == TAKE_AND_PANIC) {
        w->takes += jzx_message_take(ctx) == msg->data;
        w->takes_again += jzx_message_take(ctx) != NULL && msg->drop != NULL;
    }
    switch (msg->tag) {
    case CANCEL:
        return jzx_cancel_timer(ctx->loop, w->timer) == JZX_OK ? JZX_BEHAVIOR_OK
                                                               : JZX_BEHAVIOR_FAIL;
    case STOP:
        return JZX_BEHAVIOR_STOP;
    case FAIL:
        return JZX_BEHAVIOR_FAIL;
    case PANIC:
    case TAKE_AND_PANIC:
        jzx_panic(ctx, 7, "on purpose");
    default:
        return JZX_BEHAVIOR_OK;
    }
}

static void count_hooked(const jzx_message *msg)
{
    current->hooked++;
    if (msg->data != NULL) {
        ((payload *)msg->data)->drops++;
    }
}

static void on_dead_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    witness *w = ctx;
    w->dead++;
    w->dead_reason = letter->reason;
    w->dropped_early += was_dropped(msg);
}

/* An actor in a kit of its own. The rest of `opts` is the test's. */
static void witness_open(witness *w, jzx_spawn_opts opts, const jzx_env *env)
{
    static const jzx_observer observer = {.on_dead_letter = on_dead_letter};
    *w = (witness){0};
    current = w;
    REQUIRE_OK(jzx_kit_open(&(jzx_kit_opts){.env = env}, &w->kit));
    REQUIRE_OK(jzx_loop_set_observer(w->kit->loop, &observer, w));
    opts.behavior = behave;
    opts.state = w;
    REQUIRE_OK(jzx_spawn(w->kit->loop, &opts, &w->id));
}

static void witness_close(witness *w)
{
    CHECK_EQ(w->dropped_early, 0);
    CHECK_STR(jzx_kit_close(w->kit), NULL);
    current = NULL;
}

static jzx_err send_payload(witness *w, payload *p, uint32_t tag, uint32_t flags)
{
    jzx_send_opts opts = {
        .data = p, .len = sizeof *p, .drop = payload_drop, .tag = tag, .flags = flags};
    return jzx_send_with(w->kit->loop, w->id, &opts);
}

static jzx_counters counters(const witness *w)
{
    jzx_counters c;
    jzx_loop_counters(w->kit->loop, &c);
    return c;
}

static void test_handled_message_is_dropped_once_however_the_behavior_ends(void)
{
    static const uint32_t tags[] = {KEEP, STOP, FAIL, PANIC};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        witness w;
        payload p = {0};
        witness_open(&w, (jzx_spawn_opts){0}, NULL);
        REQUIRE_OK(send_payload(&w, &p, tags[i], 0));
        CHECK_EQ(p.drops, 0);
        CHECK_OK(jzx_kit_settle(w.kit));
        CHECK_EQ(w.handled, 1);
        CHECK_EQ(w.dead, tags[i] == FAIL || tags[i] == PANIC ? 1 : 0); /* what it failed on */
        CHECK_EQ(p.drops, 1);
        witness_close(&w);
        CHECK_EQ(p.drops, 1);
    }
}

static void test_taken_message_is_the_actors_to_drop(void)
{
    static const uint32_t tags[] = {TAKE, TAKE_AND_PANIC};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        witness w;
        payload p = {0};
        witness_open(&w, (jzx_spawn_opts){0}, NULL);
        REQUIRE_OK(send_payload(&w, &p, tags[i], 0));
        CHECK_OK(jzx_kit_settle(w.kit));
        CHECK_EQ(w.takes, 1);
        CHECK_EQ(w.takes_again, 0);
        witness_close(&w);
        CHECK_EQ(p.drops, 0);
        payload_drop(&p);
        CHECK_EQ(p.drops, 1);
    }
}

static void test_take_gives_data_without_drop_and_nothing_for_values_and_copies(void)
{
    witness w;
    payload p = {0};
    witness_open(&w, (jzx_spawn_opts){0}, NULL);
    REQUIRE_OK(jzx_send(w.kit->loop, w.id, &p, sizeof p, TAKE));
    CHECK_OK(jzx_kit_settle(w.kit));
    CHECK_EQ(w.takes, 1);
    REQUIRE_OK(jzx_send_u64(w.kit->loop, w.id, 5, TAKE));
    REQUIRE_OK(jzx_send_copy(w.kit->loop, w.id, &p, sizeof p, TAKE));
    CHECK_OK(jzx_kit_settle(w.kit));
    CHECK_EQ(w.handled, 3);
    CHECK_EQ(w.takes, 1);
    CHECK(jzx_message_take(NULL) == NULL);
    CHECK_EQ(counters(&w).abandoned, 0);
    witness_close(&w);
    CHECK_EQ(p.drops, 0);
}

static void test_message_behind_the_end_of_its_actor_is_dropped_once(void)
{
    static const uint32_t ends[] = {STOP, FAIL, PANIC};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        witness w;
        payload p = {0};
        witness_open(&w, (jzx_spawn_opts){0}, NULL);
        REQUIRE_OK(jzx_send_u64(w.kit->loop, w.id, 0, ends[i]));
        REQUIRE_OK(send_payload(&w, &p, KEEP, 0));
        CHECK_OK(jzx_kit_settle(w.kit));
        CHECK_EQ(w.handled, 1);
        CHECK_EQ(w.dead, ends[i] == STOP ? 1 : 2); /* with what it failed on */
        CHECK_EQ(w.dead_reason, JZX_DEAD_STOPPED);
        CHECK_EQ(p.drops, 1);
        CHECK_EQ(counters(&w).dead_by[JZX_DEAD_STOPPED], 1);
        witness_close(&w);
        CHECK_EQ(p.drops, 1);
    }
}

static void test_stop_drops_the_queue_and_stop_drained_handles_it(void)
{
    for (int drained = 0; drained < 2; drained++) {
        witness w;
        payload p[3] = {{0}};
        witness_open(&w, (jzx_spawn_opts){0}, NULL);
        for (int i = 0; i < 3; i++) {
            REQUIRE_OK(send_payload(&w, &p[i], KEEP, i == 2 ? JZX_SEND_URGENT : 0));
        }
        CHECK_OK(drained ? jzx_stop_drained(w.kit->loop, w.id) : jzx_stop(w.kit->loop, w.id));
        CHECK_OK(jzx_kit_settle(w.kit));
        CHECK_EQ(w.handled, drained ? 3 : 0);
        CHECK_EQ(w.dead, drained ? 0 : 3);
        witness_close(&w);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(p[i].drops, 1);
        }
    }
}

static void test_expired_message_is_dropped_once_and_not_handled(void)
{
    witness w;
    payload late = {0}, in_time = {0};
    witness_open(&w, (jzx_spawn_opts){0}, NULL);
    uint64_t now = jzx_loop_now(w.kit->loop);
    jzx_send_opts opts = {.data = &late, .drop = payload_drop, .tag = KEEP, .deadline_ns = now};
    REQUIRE_OK(jzx_send_with(w.kit->loop, w.id, &opts)); /* R13: accepted, then dead */
    opts.data = &in_time;
    opts.deadline_ns = now + UINT64_C(3600000000000);
    REQUIRE_OK(jzx_send_with(w.kit->loop, w.id, &opts));
    CHECK_OK(jzx_kit_run(w.kit, 5));
    CHECK_EQ(w.handled, 1);
    CHECK_EQ(w.dead, 1);
    CHECK_EQ(w.dead_reason, JZX_DEAD_EXPIRED);
    CHECK_EQ(late.drops, 1);
    CHECK_EQ(in_time.drops, 1);
    witness_close(&w);
}

static void test_full_mailbox_drops_by_policy_once(void)
{
    static const struct {
        uint32_t policy;
        uint8_t reason;
        int victim;
    } cases[] = {{JZX_FULL_DROP_NEWEST, JZX_DEAD_DROPPED_NEWEST, 2},
                 {JZX_FULL_DROP_OLDEST, JZX_DEAD_DROPPED_OLDEST, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        witness w;
        payload p[3] = {{0}};
        witness_open(&w, (jzx_spawn_opts){.mailbox_cap = 2, .full_policy = cases[c].policy}, NULL);
        for (int i = 0; i < 3; i++) {
            REQUIRE_OK(send_payload(&w, &p[i], KEEP, 0)); /* R11: both policies accept */
        }
        CHECK_EQ(w.dead, 1);
        CHECK_EQ(w.dead_reason, cases[c].reason);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(p[i].drops, i == cases[c].victim);
        }
        CHECK_OK(jzx_kit_settle(w.kit));
        CHECK_EQ(w.handled, 2);
        witness_close(&w);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(p[i].drops, 1);
        }
    }
}

/* Brings about each refusal in turn; `tag` and `flags` may themselves be what is refused. */
static void refusals_visit(uint32_t flags, int drops_per_refusal)
{
    witness w;
    payload p = {0};
    int refusals = 0;
    witness_open(&w, (jzx_spawn_opts){.mailbox_cap = 1}, NULL);
    REQUIRE_OK(jzx_send_u64(w.kit->loop, w.id, 0, KEEP));

    CHECK_EQ(send_payload(&w, &p, KEEP, flags), JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(p.drops, ++refusals * drops_per_refusal);
    CHECK_EQ(send_payload(&w, &p, JZX_TAG_SYSTEM_FIRST, flags), JZX_ERR_RESERVED_TAG);
    CHECK_EQ(p.drops, ++refusals * drops_per_refusal);
    CHECK_EQ(send_payload(&w, &p, KEEP, flags | 0x8000u), JZX_ERR_INVALID_ARG);
    CHECK_EQ(p.drops, ++refusals * drops_per_refusal);
    CHECK_OK(jzx_stop(w.kit->loop, w.id));
    CHECK_EQ(send_payload(&w, &p, KEEP, flags), JZX_ERR_STOPPING);
    CHECK_EQ(p.drops, ++refusals * drops_per_refusal);
    CHECK_OK(jzx_kit_settle(w.kit));
    CHECK_EQ(send_payload(&w, &p, KEEP, flags), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(p.drops, ++refusals * drops_per_refusal);

    CHECK_EQ(w.dead, 1); /* the value that was queued: refusals make no dead letters (R21) */
    CHECK_EQ(w.handled, 0);
    witness_close(&w);
    CHECK_EQ(p.drops, refusals * drops_per_refusal);
}

static void test_refused_message_stays_with_the_caller(void)
{
    refusals_visit(0, 0);
}

static void test_consume_drops_a_refused_message_once(void)
{
    refusals_visit(JZX_SEND_CONSUME, 1);
}

static void test_consume_does_nothing_when_nothing_was_understood(void)
{
    witness w;
    payload p = {0};
    witness_open(&w, (jzx_spawn_opts){0}, NULL);
    struct {
        jzx_send_opts opts;
        uint64_t tail;
    } newer = {.opts = {.data = &p, .drop = payload_drop, .flags = JZX_SEND_CONSUME}, .tail = 1};
    CHECK_EQ(jzx_send_with_sized(w.kit->loop, w.id, &newer.opts, sizeof newer),
             JZX_ERR_NEWER_STRUCT);
    CHECK_EQ(jzx_send_with(NULL, w.id, &newer.opts), JZX_ERR_INVALID_ARG);
    CHECK_EQ(p.drops, 0);
    witness_close(&w);
}

static void test_destroy_drops_what_is_queued_once(void)
{
    witness w;
    payload queued[4] = {{0}}, armed = {0};
    witness_open(&w, (jzx_spawn_opts){0}, NULL);
    for (int i = 0; i < 4; i++) {
        REQUIRE_OK(send_payload(&w, &queued[i], KEEP, i % 2 == 0 ? JZX_SEND_URGENT : 0));
    }
    jzx_timer_opts timer = {.delay_ms = 1000, .data = &armed, .drop = payload_drop, .tag = KEEP};
    REQUIRE_OK(jzx_timer_start(w.kit->loop, w.id, &timer, NULL));
    CHECK_OK(jzx_loop_destroy(w.kit->loop));
    w.kit->loop = NULL;
    CHECK_EQ(w.handled, 0);
    CHECK_EQ(w.dead, 4);
    CHECK_EQ(w.dead_reason, JZX_DEAD_LOOP_CLOSED);
    witness_close(&w);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(queued[i].drops, 1);
    }
    CHECK_EQ(armed.drops, 1);
}

static void test_undelivered_data_without_drop_goes_to_drop_msg_once(void)
{
    witness w;
    payload handled = {0}, queued = {0};
    witness_open(&w, (jzx_spawn_opts){.drop_msg = count_hooked}, NULL);
    REQUIRE_OK(jzx_send(w.kit->loop, w.id, &handled, sizeof handled, KEEP));
    CHECK_OK(jzx_kit_settle(w.kit));
    CHECK_EQ(w.hooked, 0); /* it was the behavior's */
    REQUIRE_OK(jzx_send(w.kit->loop, w.id, &queued, sizeof queued, KEEP));
    CHECK_OK(jzx_stop(w.kit->loop, w.id));
    CHECK_OK(jzx_kit_settle(w.kit));
    CHECK_EQ(w.hooked, 1);
    CHECK_EQ(queued.drops, 1);
    CHECK_EQ(handled.drops, 0);
    CHECK_EQ(counters(&w).abandoned, 0);
    witness_close(&w);
}

static void test_undelivered_data_without_drop_and_hook_is_counted_as_abandoned(void)
{
    witness w;
    payload p = {0};
    witness_open(&w, (jzx_spawn_opts){0}, NULL);
    REQUIRE_OK(jzx_send(w.kit->loop, w.id, &p, sizeof p, KEEP));
    CHECK_OK(jzx_stop(w.kit->loop, w.id));
    CHECK_OK(jzx_kit_settle(w.kit));
    CHECK_EQ(counters(&w).abandoned, 1);
    witness_close(&w);
    CHECK_EQ(p.drops, 0);
}

static void test_values_copies_and_empty_messages_need_no_release(void)
{
    witness w;
    payload p = {0};
    witness_open(&w, (jzx_spawn_opts){.drop_msg = count_hooked}, NULL);
    REQUIRE_OK(jzx_send_u64(w.kit->loop, w.id, 1, KEEP));
    REQUIRE_OK(jzx_send_copy(w.kit->loop, w.id, &p, sizeof p, KEEP));
    REQUIRE_OK(jzx_send(w.kit->loop, w.id, NULL, 0, KEEP));
    jzx_send_opts empty = {.drop = payload_drop, .tag = KEEP};
    REQUIRE_OK(jzx_send_with(w.kit->loop, w.id, &empty)); /* drop(NULL) would crash */
    CHECK_OK(jzx_stop(w.kit->loop, w.id));
    CHECK_OK(jzx_kit_settle(w.kit));
    CHECK_EQ(w.dead, 4);
    CHECK_EQ(w.hooked, 0);
    CHECK_EQ(counters(&w).abandoned, 0);
    witness_close(&w);
    CHECK_EQ(p.drops, 0);
}

static void test_a_copy_is_the_receivers_and_the_original_stays_the_callers(void)
{
    witness w;
    char text[200];
    memset(text, 'x', sizeof text);
    witness_open(&w, (jzx_spawn_opts){0}, NULL);
    jzx_probe *probe = NULL;
    const jzx_probe_record *got = NULL;
    REQUIRE_OK(jzx_probe_spawn(w.kit->loop, &probe));
    REQUIRE_OK(jzx_send_copy(w.kit->loop, jzx_probe_id(probe), text, sizeof text, KEEP));
    memset(text, 'y', sizeof text);
    REQUIRE_OK(jzx_probe_expect(probe, KEEP, 10, &got));
    CHECK_EQ(got->len, sizeof text);
    CHECK_EQ(got->bytes[0], 'x');
    CHECK_EQ(got->bytes[JZX_PROBE_BYTES - 1], 'x');
    CHECK((got->flags & JZX_MSG_COPY) != 0);
    jzx_probe_free(probe);
    witness_close(&w);
}

static void test_timer_data_is_dropped_once_whatever_becomes_of_the_timer(void)
{
    enum { FIRED, CANCELLED, TARGET_ENDED, TAKEN, PERIODIC, WAYS };
    for (int way = 0; way < WAYS; way++) {
        witness w;
        payload p = {0};
        jzx_timer_id timer = 0;
        witness_open(&w, (jzx_spawn_opts){0}, NULL);
        jzx_timer_opts opts = {.delay_ms = 10,
                               .period_ms = way == PERIODIC ? 10 : 0,
                               .data = &p,
                               .drop = payload_drop,
                               .tag = way == TAKEN || way == PERIODIC ? TAKE : KEEP};
        REQUIRE_OK(jzx_timer_start(w.kit->loop, w.id, &opts, &timer));
        if (way == CANCELLED) {
            CHECK_OK(jzx_cancel_timer(w.kit->loop, timer));
            CHECK_EQ(p.drops, 1);
        } else if (way == TARGET_ENDED) {
            CHECK_OK(jzx_stop(w.kit->loop, w.id));
        }
        CHECK_OK(jzx_kit_run(w.kit, 55));
        if (way == PERIODIC) {
            CHECK_EQ(w.handled, 5);
            CHECK_EQ(w.takes, 0); /* it belongs to the timer, not to one of its messages */
            CHECK_EQ(p.drops, 0);
            CHECK_OK(jzx_cancel_timer(w.kit->loop, timer));
        }
        CHECK_EQ(w.handled, way == FIRED || way == TAKEN ? 1 : way == PERIODIC ? 5 : 0);
        CHECK_EQ(w.dead, 0); /* a timer that never delivers makes no dead letter */
        witness_close(&w);
        CHECK_EQ(p.drops, way == TAKEN ? 0 : 1);
    }
}

static void test_timer_cancelled_while_its_message_is_queued_drops_once(void)
{
    witness w;
    payload p = {0};
    witness_open(&w, (jzx_spawn_opts){0}, NULL);
    /* Both are due in one millisecond and fire in this order (R26): the first message finds the
     * second one queued behind it. */
    jzx_timer_opts opts = {.delay_ms = 10, .data = &p, .drop = payload_drop, .tag = KEEP};
    REQUIRE_OK(jzx_send_after(w.kit->loop, w.id, 10, NULL, 0, CANCEL, NULL));
    REQUIRE_OK(jzx_timer_start(w.kit->loop, w.id, &opts, &w.timer));
    CHECK_OK(jzx_kit_run(w.kit, 50));
    CHECK_EQ(w.handled, 1);
    CHECK_EQ(p.drops, 1);
    CHECK_EQ(counters(&w).live, 1); /* the cancel gave OK */
    CHECK_EQ(counters(&w).revoked, 1);
    CHECK_EQ(w.dead, 0);
    witness_close(&w);
    CHECK_EQ(p.drops, 1);
}

static void test_cancelled_timer_without_drop_goes_to_drop_msg(void)
{
    witness w;
    payload p = {0};
    jzx_timer_id timer = 0;
    witness_open(&w, (jzx_spawn_opts){.drop_msg = count_hooked}, NULL);
    REQUIRE_OK(jzx_send_after(w.kit->loop, w.id, 10, &p, sizeof p, KEEP, &timer));
    CHECK_OK(jzx_cancel_timer(w.kit->loop, timer));
    CHECK_EQ(w.hooked, 1);
    CHECK_EQ(p.drops, 1);
    CHECK_EQ(counters(&w).abandoned, 0);
    witness_close(&w);
    CHECK_EQ(w.hooked, 1);
}

static jzx_err send_async(jzx_sender *sender, jzx_actor_id to, payload *p, uint32_t flags)
{
    jzx_send_opts opts = {.data = p, .drop = payload_drop, .tag = KEEP, .flags = flags};
    return jzx_send_async_with(sender, to, &opts);
}

static void test_async_message_is_dropped_once_also_across_destroy(void)
{
    witness w;
    payload handled = {0}, dead = {0}, refused = {0}, in_flight = {0}, after = {0}, eaten = {0};
    jzx_actor_id other = JZX_NOBODY;
    jzx_sender *sender = NULL;
    witness_open(&w, (jzx_spawn_opts){0}, jzx_env_epoll());
    REQUIRE_OK(jzx_spawn(w.kit->loop, &(jzx_spawn_opts){.behavior = behave, .state = &w}, &other));
    REQUIRE_OK(jzx_sender_open(w.kit->loop, JZX_SENDER_SHARED, &sender));

    REQUIRE_OK(send_async(sender, w.id, &handled, 0));
    CHECK_OK(jzx_loop_run_until_idle(w.kit->loop));
    CHECK_EQ(handled.drops, 1);
    REQUIRE_OK(send_async(sender, w.id, &dead, 0));
    CHECK_OK(jzx_stop(w.kit->loop, w.id));
    CHECK_EQ(send_async(sender, w.id, &refused, 0), JZX_ERR_STOPPING);
    CHECK_OK(jzx_loop_run_until_idle(w.kit->loop));
    CHECK_EQ(dead.drops, 1);
    CHECK_EQ(send_async(sender, w.id, &refused, 0), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(refused.drops, 0);

    REQUIRE_OK(send_async(sender, other, &in_flight, 0));
    CHECK_OK(jzx_loop_destroy(w.kit->loop));
    w.kit->loop = NULL;
    CHECK_EQ(in_flight.drops, 1);
    CHECK_EQ(send_async(sender, other, &after, 0), JZX_ERR_LOOP_CLOSED);
    CHECK_EQ(after.drops, 0);
    CHECK_EQ(send_async(sender, other, &eaten, JZX_SEND_CONSUME), JZX_ERR_LOOP_CLOSED);
    CHECK_EQ(eaten.drops, 1);
    jzx_sender_release(sender);
    CHECK_EQ(w.handled, 1);
    CHECK_EQ(w.dead, 2);
    witness_close(&w);
}

/* What each way of sending makes of the data, as the behavior sees it. */
typedef struct owners {
    uint32_t seen[8];
    uint32_t count;
} owners;

static jzx_behavior_result note_owner(jzx_context *ctx, const jzx_message *msg)
{
    owners *o = ctx->state;
    jzx_owner owner = jzx_message_owner(msg);
    CHECK_EQ(o->count, msg->tag);
    o->seen[o->count++] = owner;
    /* What can be moved is the runtime's, or the actor's already: now it is released here. */
    void *moved = jzx_message_take(ctx);
    CHECK_EQ(moved != NULL, owner == JZX_OWNER_RUNTIME || owner == JZX_OWNER_ACTOR);
    free(moved);
    return JZX_BEHAVIOR_OK;
}

static void test_a_message_says_whose_its_data_is_R4(void)
{
    static const uint32_t expected[] = {JZX_OWNER_NOBODY,  JZX_OWNER_NOBODY, JZX_OWNER_BORROWED,
                                        JZX_OWNER_RUNTIME, JZX_OWNER_ACTOR,  JZX_OWNER_BORROWED};
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_timer_id timer = 0;
    owners o = {0};
    jzx_spawn_opts opts = {.behavior = note_owner, .state = &o};
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    REQUIRE_OK(jzx_spawn(loop, &opts, &id));
    REQUIRE_OK(jzx_send_u64(loop, id, 42, 0));
    REQUIRE_OK(jzx_send(loop, id, NULL, 0, 1));
    REQUIRE_OK(jzx_send_copy(loop, id, "copy", 4, 2));
    jzx_send_opts dropped = {.data = malloc(1), .len = 1, .drop = free, .tag = 3};
    REQUIRE_OK(jzx_send_with(loop, id, &dropped));
    REQUIRE_OK(jzx_send(loop, id, malloc(1), 1, 4));
    REQUIRE_OK(jzx_loop_run_until_idle(loop));
    jzx_timer_opts periodic = {.period_ms = 60000, .data = &o, .len = 1, .tag = 5};
    REQUIRE_OK(jzx_timer_start(loop, id, &periodic, &timer));
    while (o.count < 6) {
        REQUIRE_OK(jzx_loop_step(loop, 1000000));
    }
    for (uint32_t i = 0; i < 6; i++) {
        CHECK_EQ(o.seen[i], expected[i]);
    }
    CHECK_EQ(jzx_message_owner(NULL), JZX_OWNER_NOBODY);
    CHECK_OK(jzx_cancel_timer(loop, timer));
    CHECK_OK(jzx_loop_destroy(loop));
}

static const jzt_test tests[] = {
    {"a_message_says_whose_its_data_is_R4", test_a_message_says_whose_its_data_is_R4},
    {"handled_message_is_dropped_once_however_the_behavior_ends",
     test_handled_message_is_dropped_once_however_the_behavior_ends},
    {"taken_message_is_the_actors_to_drop", test_taken_message_is_the_actors_to_drop},
    {"take_gives_data_without_drop_and_nothing_for_values_and_copies",
     test_take_gives_data_without_drop_and_nothing_for_values_and_copies},
    {"message_behind_the_end_of_its_actor_is_dropped_once",
     test_message_behind_the_end_of_its_actor_is_dropped_once},
    {"stop_drops_the_queue_and_stop_drained_handles_it",
     test_stop_drops_the_queue_and_stop_drained_handles_it},
    {"expired_message_is_dropped_once_and_not_handled",
     test_expired_message_is_dropped_once_and_not_handled},
    {"full_mailbox_drops_by_policy_once", test_full_mailbox_drops_by_policy_once},
    {"refused_message_stays_with_the_caller", test_refused_message_stays_with_the_caller},
    {"consume_drops_a_refused_message_once", test_consume_drops_a_refused_message_once},
    {"consume_does_nothing_when_nothing_was_understood",
     test_consume_does_nothing_when_nothing_was_understood},
    {"destroy_drops_what_is_queued_once", test_destroy_drops_what_is_queued_once},
    {"undelivered_data_without_drop_goes_to_drop_msg_once",
     test_undelivered_data_without_drop_goes_to_drop_msg_once},
    {"undelivered_data_without_drop_and_hook_is_counted_as_abandoned",
     test_undelivered_data_without_drop_and_hook_is_counted_as_abandoned},
    {"values_copies_and_empty_messages_need_no_release",
     test_values_copies_and_empty_messages_need_no_release},
    {"a_copy_is_the_receivers_and_the_original_stays_the_callers",
     test_a_copy_is_the_receivers_and_the_original_stays_the_callers},
    {"timer_data_is_dropped_once_whatever_becomes_of_the_timer",
     test_timer_data_is_dropped_once_whatever_becomes_of_the_timer},
    {"timer_cancelled_while_its_message_is_queued_drops_once",
     test_timer_cancelled_while_its_message_is_queued_drops_once},
    {"cancelled_timer_without_drop_goes_to_drop_msg",
     test_cancelled_timer_without_drop_goes_to_drop_msg},
    {"async_message_is_dropped_once_also_across_destroy",
     test_async_message_is_dropped_once_also_across_destroy},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
