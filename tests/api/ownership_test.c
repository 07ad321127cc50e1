/* Goal: R4. Whoever ends up with a message releases it exactly once, and nobody does so for a
 * message that was refused. Method: payloads that count their drops go down every path a message
 * can take, through the public API only. Closing the kit asserts conservation (R5) and that no
 * memory is left. */
#include "ownership_kit.h"

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
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
