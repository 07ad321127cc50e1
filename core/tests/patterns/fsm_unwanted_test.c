/* Goal: what becomes of events that no row wants, and of their data (R4, R5). Method: simulation;
 * an observer notes why the actor failed or ended. */
#include "fsm_life_kit.h"

static void test_an_event_without_a_row_is_ignored_and_counted(void)
{
    rig r;
    lab l;
    open_as(&r, &l, JZX_FSM_IGNORE, NULL);
    lab_tell(&r, &l, E6, 1);
    lab_tell(&r, &l, 4711, 2);
    lab_tell(&r, &l, E1, 3);
    rig_idle(&r);
    CHECK_LAB(&l, "A:e1=3 -A +B");
    CHECK_EQ(l.fsm.unhandled, 2);
    CHECK_EQ(rig_counters(&r).dead, 0);
    rig_close(&r);
}

static void test_an_event_without_a_row_fails_the_actor_with_both_names(void)
{
    rig r;
    lab l;
    open_as(&r, &l, JZX_FSM_FAIL, NULL);
    lab_tell(&r, &l, E6, 1);
    rig_idle(&r);
    CHECK_EQ(failed.kind, JZX_REASON_FAILED);
    CHECK_EQ(failed.code, JZX_ERR_NO_TRANSITION);
    CHECK_STR(failed.text, "lab: no transition for 'e6' in 'A'");
    rig_close(&r);
    open_as(&r, &l, JZX_FSM_FAIL, NULL);
    lab_tell(&r, &l, 0xABC, 1);
    rig_idle(&r);
    CHECK_STR(failed.text, "lab: no transition for 'tag 0xabc' in 'A'");
    rig_close(&r);
}

static void test_an_event_without_a_row_becomes_a_dead_letter(void)
{
    rig r;
    lab l;
    open_as(&r, &l, JZX_FSM_DEAD_LETTER, NULL);
    lab_tell(&r, &l, E6, 1);
    lab_tell(&r, &l, 0xABC, 1);
    lab_tell(&r, &l, E1, 3);
    rig_idle(&r);
    CHECK_LAB(&l, "A:e1=3 -A +B");
    CHECK_EQ(l.fsm.unhandled, 2);
    CHECK_DEAD(&r, DEAD(JZX_DEAD_DISCARDED, E6), DEAD(JZX_DEAD_DISCARDED, 0xABC));
    rig_close(&r);
}

static uint64_t drops;
static uint64_t drop_msgs;

static void count_drop(void *data)
{
    drops++;
    free(data);
}
static void count_drop_msg(const jzx_message *msg)
{
    drop_msgs++;
    free(msg->data);
}

static void send_data(rig *r, const lab *l, uint32_t tag, void (*drop)(void *))
{
    jzx_send_opts opts = {.data = malloc(16), .len = 16, .tag = tag, .drop = drop};
    REQUIRE(opts.data != NULL);
    REQUIRE_OK(jzx_send_with(r->loop, l->id, &opts));
}

static void test_data_that_no_action_sees_is_released_R4(void)
{
    static const jzx_spawn_opts opts = {.drop_msg = count_drop_msg};
    static const jzx_fsm_row silent[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_KEEP, NULL),
        JZX_FSM_ROW(A, E2, JZX_FSM_POSTPONE, NULL),
        JZX_FSM_ROW(A, E3, B, NULL),
        JZX_FSM_ROW(B, E2, JZX_FSM_KEEP, NULL),
    };
    for (uint32_t unhandled = JZX_FSM_IGNORE; unhandled <= JZX_FSM_DEAD_LETTER; unhandled += 2) {
        rig r;
        lab l;
        drops = drop_msgs = 0;
        open_rig(&r);
        lab_make(&l, silent, COUNT_OF(silent));
        l.spec.unhandled = unhandled;
        lab_spawn(&r, &l, &opts);
        for (uint32_t tag = E1; tag <= E4; tag++) { /* a row, a wait, a change, none */
            send_data(&r, &l, tag, NULL);
            send_data(&r, &l, tag, count_drop);
            REQUIRE_OK(jzx_send_copy(r.loop, l.id, "copy", 5, tag));
            lab_tell(&r, &l, tag, 7);
        }
        rig_idle(&r);
        CHECK_EQ(drops, 4);
        CHECK_EQ(drop_msgs, 4);
        CHECK_EQ(rig_counters(&r).abandoned, 0);
        CHECK_EQ(jzx_fsm_state(&l.fsm), B);
        rig_close(&r);
    }
}

static void test_what_finds_no_room_to_wait_is_never_lost_silently(void)
{
    static const jzx_spawn_opts small = {.mailbox_cap = 4};
    rig r;
    lab l;
    open_as(&r, &l, JZX_FSM_IGNORE, &small);
    for (uint64_t i = 1; i <= 4; i++) {
        lab_tell(&r, &l, E2, i);
    }
    rig_idle(&r);
    CHECK_EQ(l.fsm.refused, 2);
    CHECK_DEAD(&r, DEAD(JZX_DEAD_DISCARDED, E2), DEAD(JZX_DEAD_DISCARDED, E2));
    lab_tell(&r, &l, E1, 5);
    rig_idle(&r);
    CHECK_LAB(&l, "A:e2=1 A:e2=2 A:e2=3 A:e2=4 A:e1=5 -A +B B:e2=1 B:e2=2");
    rig_close(&r);
    open_as(&r, &l, JZX_FSM_FAIL, &small);
    for (uint64_t i = 1; i <= 4; i++) {
        lab_tell(&r, &l, E2, i);
    }
    rig_idle(&r);
    CHECK_EQ(failed.code, JZX_ERR_STASH_FULL);
    CHECK_STR(failed.text, "lab: cannot postpone 'e2' in 'A'");
    rig_close(&r);
}

static jzx_behavior_result insert_then_try(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    if (event->tag == E1) {
        CHECK_OK(jzx_fsm_insert(fsm, E2, 0));
    } else {
        lab_of(fsm)->err = jzx_fsm_postpone(fsm);
    }
    return note(fsm, ctx, event);
}

static void test_only_messages_can_be_postponed(void)
{
    static const jzx_fsm_row inner[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_KEEP, insert_then_try),
        JZX_FSM_ROW(A, E2, JZX_FSM_KEEP, insert_then_try),
        JZX_FSM_ROW(A, E3, B, insert_then_try),
    };
    static const jzx_fsm_row tabled[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_KEEP, insert_then_try),
        JZX_FSM_ROW(A, E2, JZX_FSM_POSTPONE, note),
    };
    rig r;
    lab l;
    open_rig(&r);
    lab_make(&l, inner, COUNT_OF(inner));
    lab_spawn(&r, &l, NULL);
    lab_tell(&r, &l, E1, 0);
    rig_idle(&r);
    CHECK_EQ(l.err, JZX_ERR_NOT_SUPPORTED);
    CHECK_LAB(&l, "+A A:e1=0 A:e2=0");
    rig_close(&r);
    for (uint32_t unhandled = JZX_FSM_IGNORE; unhandled <= JZX_FSM_FAIL; unhandled++) {
        open_rig(&r);
        lab_make(&l, tabled, COUNT_OF(tabled));
        l.spec.unhandled = unhandled;
        lab_spawn(&r, &l, NULL);
        lab_tell(&r, &l, E1, 0);
        rig_idle(&r);
        CHECK_EQ(l.fsm.refused, 1);
        /* The message in hand is e1, not e2: it is not discarded, and dead only if it failed. */
        bool fails = unhandled == JZX_FSM_FAIL;
        jzx_counters counters = rig_counters(&r);
        CHECK_EQ(counters.dead, fails ? 1 : 0);
        CHECK_EQ(counters.dead_by[JZX_DEAD_FAILED_ON], fails ? 1 : 0);
        CHECK_EQ(failed.kind, fails ? JZX_REASON_FAILED : UINT32_MAX);
        rig_close(&r);
    }
}

/* Asks the machine, and keeps how that ended. */
typedef struct asker {
    const lab *whom;
    uint32_t tag;
    uint32_t outcome;
    uint64_t answer;
} asker;

static jzx_behavior_result ask(jzx_context *ctx, const jzx_message *msg)
{
    asker *me = ctx->state;
    const jzx_reply *reply = jzx_reply_of(ctx);
    if (reply != NULL) {
        me->outcome = reply->outcome;
        me->answer = reply->outcome == JZX_OUTCOME_REPLIED ? msg->u64 : 0;
        return JZX_BEHAVIOR_OK;
    }
    jzx_ask_opts opts = {.u64 = 20, .tag = me->tag, .flags = JZX_SEND_VALUE, .timeout_ms = 100};
    CHECK_OK(jzx_ask(ctx->loop, me->whom->id, &opts, NULL));
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result answer(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, event->u64 + 1, 0));
    return note(fsm, ctx, event);
}

/* An asker whose request the machine got. */
static void ask_machine(rig *r, lab *l, asker *me, uint32_t tag)
{
    static const jzx_fsm_row answering[] = {
        JZX_FSM_ROW(A, E1, B, note),
        JZX_FSM_ROW(A, E2, JZX_FSM_POSTPONE, note),
        JZX_FSM_ROW(B, E2, JZX_FSM_KEEP, answer),
    };
    jzx_actor_id id = JZX_NOBODY;
    open_rig(r);
    lab_make(l, answering, COUNT_OF(answering));
    l->spec.unhandled = JZX_FSM_DEAD_LETTER;
    lab_spawn(r, l, NULL);
    *me = (asker){.whom = l, .tag = tag, .outcome = UINT32_MAX};
    jzx_spawn_opts opts = {.behavior = ask, .state = me};
    REQUIRE_OK(jzx_spawn(r->loop, &opts, &id));
    REQUIRE_OK(jzx_send_u64(r->loop, id, 0, 1));
    rig_idle(r);
}

static void test_an_ask_that_is_postponed_is_answered_later_or_expires(void)
{
    rig r;
    lab l;
    asker me;
    ask_machine(&r, &l, &me, E2);
    CHECK_EQ(me.outcome, UINT32_MAX);
    lab_tell(&r, &l, E1, 1);
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e2=20 A:e1=1 -A +B B:e2=20");
    CHECK_EQ(me.outcome, JZX_OUTCOME_REPLIED);
    CHECK_EQ(me.answer, 21);
    rig_close(&r);
    ask_machine(&r, &l, &me, E2);
    REQUIRE_OK(jzx_kit_run(r.kit, 200));
    lab_tell(&r, &l, E1, 1);
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e2=20 A:e1=1 -A +B");
    CHECK(me.outcome == JZX_OUTCOME_TIMED_OUT || me.outcome == JZX_OUTCOME_EXPIRED);
    rig_close(&r);
    ask_machine(&r, &l, &me, E6); /* no row: the asker need not wait */
    CHECK_EQ(me.outcome, JZX_OUTCOME_FORGOTTEN);
    rig_close(&r);
}

static const jzt_test tests[] = {
    {"an_event_without_a_row_is_ignored_and_counted",
     test_an_event_without_a_row_is_ignored_and_counted},
    {"an_event_without_a_row_fails_the_actor_with_both_names",
     test_an_event_without_a_row_fails_the_actor_with_both_names},
    {"an_event_without_a_row_becomes_a_dead_letter",
     test_an_event_without_a_row_becomes_a_dead_letter},
    {"data_that_no_action_sees_is_released_R4", test_data_that_no_action_sees_is_released_R4},
    {"what_finds_no_room_to_wait_is_never_lost_silently",
     test_what_finds_no_room_to_wait_is_never_lost_silently},
    {"only_messages_can_be_postponed", test_only_messages_can_be_postponed},
    {"an_ask_that_is_postponed_is_answered_later_or_expires",
     test_an_ask_that_is_postponed_is_answered_later_or_expires},
};

int main(int argc, char **argv)
{
    return lab_main(argc, argv, tests, COUNT_OF(tests));
}
