/* Goal: which event comes when: the rules of gen_statem (SUPERVISION.md) as jzx/fsm.h numbers them.
 * Method: one machine with a journal, in simulation; each test is a table of a few rows. */
#include "fsm_fixture.h"

static jzx_behavior_result go_b(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_fsm_goto(fsm, B));
    return note(fsm, ctx, event);
}

static jzx_behavior_result postpone(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    lab_of(fsm)->err = jzx_fsm_postpone(fsm);
    return note(fsm, ctx, event);
}

/* Inserts e4 and e5. */
static jzx_behavior_result insert_two(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_fsm_insert(fsm, E4, event->u64 * 10));
    CHECK_OK(jzx_fsm_insert(fsm, E5, event->u64 * 10 + 1));
    return note(fsm, ctx, event);
}

static jzx_behavior_result insert_e6(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_fsm_insert(fsm, E6, event->u64));
    return note(fsm, ctx, event);
}

static jzx_behavior_result zero_timers(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_fsm_set_timer(fsm, ctx, TOCK, 0, 1));
    CHECK_OK(jzx_fsm_set_timer(fsm, ctx, TICK, 0, 2));
    return note(fsm, ctx, event);
}

static int is_big(const jzx_fsm *fsm, const jzx_message *event)
{
    (void)fsm;
    return event->u64 >= 100;
}

static int is_huge(const jzx_fsm *fsm, const jzx_message *event)
{
    (void)fsm;
    return event->u64 >= 1000;
}

static void test_the_first_row_that_fits_is_taken(void)
{
    static const jzx_fsm_row rows[] = {
        JZX_FSM_WHEN(A, E1, is_huge, B, note),  JZX_FSM_WHEN(A, E1, is_big, C, note),
        JZX_FSM_ROW(A, E1, JZX_FSM_KEEP, note), JZX_FSM_ROW(JZX_FSM_ANY, E1, A, note),
        JZX_FSM_ROW(JZX_FSM_ANY, E2, A, NULL),
    };
    rig r;
    lab l;
    LAB_OPEN(&r, &l, rows);
    CHECK_LAB(&l, "+A");
    lab_tell(&r, &l, E1, 5);
    rig_idle(&r);
    CHECK_LAB(&l, "A:e1=5");
    lab_tell(&r, &l, E1, 500);
    rig_idle(&r);
    CHECK_LAB(&l, "A:e1=500 -A +C");
    lab_tell(&r, &l, E1, 500);
    lab_tell(&r, &l, E1, 5000);
    rig_idle(&r);
    CHECK_LAB(&l, "C:e1=500 -C +A A:e1=5000 -A +B");
    lab_tell(&r, &l, E2, 0);
    rig_idle(&r);
    CHECK_LAB(&l, "-B +A");
    CHECK_EQ(l.fsm.changes, 4);
    CHECK_EQ(l.fsm.unhandled, 0);
    rig_close(&r);
}

static void test_any_event_takes_what_was_sent_and_nothing_of_its_own(void)
{
    static const jzx_fsm_row rows[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_KEEP, zero_timers),
        JZX_FSM_ROW(A, JZX_FSM_ANY_EVENT, JZX_FSM_KEEP, note),
    };
    rig r;
    lab l;
    LAB_OPEN(&r, &l, rows);
    lab_tell(&r, &l, E3, 1);
    lab_tell(&r, &l, 4711, 2);
    lab_tell(&r, &l, JZX_FSM_STATE_TIMEOUT, 3); /* sent by somebody: not a timeout */
    lab_tell(&r, &l, 0xFE01FFFE, 5);            /* nor what the machine sends itself */
    lab_tell(&r, &l, E1, 4);
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e3=1 A:other=2 A:state=3 A:other=5 A:e1=4");
    CHECK_EQ(l.fsm.unhandled, 2); /* tick and tock */
    rig_close(&r);
}

static void test_a_state_is_left_and_entered_when_it_changes_and_else_not(void)
{
    static const jzx_fsm_row rows[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(A, E2, A, note),
        JZX_FSM_ROW(A, E3, JZX_FSM_REPEAT, note),
        JZX_FSM_ROW(A, E4, JZX_FSM_KEEP, go_b),
        JZX_FSM_ROW(B, E1, C, NULL), /* no action */
        JZX_FSM_ROW(C, E1, END, note),
    };
    rig r;
    lab l;
    LAB_OPEN(&r, &l, rows);
    lab_tell(&r, &l, E1, 0);
    lab_tell(&r, &l, E2, 0);
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e1=0 A:e2=0");
    CHECK_EQ(l.fsm.changes, 0);
    lab_tell(&r, &l, E3, 0);
    lab_tell(&r, &l, E4, 0);
    lab_tell(&r, &l, E1, 0);
    rig_idle(&r);
    CHECK_LAB(&l, "A:e3=0 -A +A A:e4=0 -A +B -B +C");
    CHECK_EQ(jzx_fsm_state(&l.fsm), C);
    CHECK_STR(jzx_fsm_state_name(&l.fsm), "C");
    jzx_fsm_change was[JZX_FSM_HISTORY_MAX];
    REQUIRE_EQ(jzx_fsm_history(&l.fsm, was, COUNT_OF(was)), 3);
    CHECK(was[0].from == A && was[0].to == A && was[0].tag == E3);
    CHECK(was[1].from == A && was[1].to == B && was[1].tag == E4);
    CHECK(was[2].from == B && was[2].to == C && was[2].tag == E1);
    lab_tell(&r, &l, E1, 1);
    rig_idle(&r);
    CHECK_LAB(&l, "C:e1=1 -C +END");
    CHECK_EQ(jzx_actor_state(r.loop, l.id), JZX_STATE_TERMINATED);
    rig_close(&r);
}

static void test_the_history_keeps_the_last_changes(void)
{
    static const jzx_fsm_row rows[] = {JZX_FSM_ROW(A, JZX_FSM_ANY_EVENT, B, NULL),
                                       JZX_FSM_ROW(B, JZX_FSM_ANY_EVENT, A, NULL)};
    rig r;
    lab l;
    LAB_OPEN(&r, &l, rows);
    for (uint32_t i = 0; i < 11; i++) {
        lab_tell(&r, &l, 100 + i, 0);
    }
    rig_idle(&r);
    jzx_fsm_change was[JZX_FSM_HISTORY_MAX] = {{0}};
    CHECK_EQ(jzx_fsm_history(&l.fsm, NULL, 0), JZX_FSM_HISTORY_MAX);
    CHECK_EQ(jzx_fsm_history(&l.fsm, was, 2), JZX_FSM_HISTORY_MAX);
    CHECK_EQ(was[2].tag, 0);
    CHECK_EQ(jzx_fsm_history(&l.fsm, was, COUNT_OF(was)), JZX_FSM_HISTORY_MAX);
    for (uint32_t i = 0; i < JZX_FSM_HISTORY_MAX; i++) {
        CHECK_EQ(was[i].tag, 103 + i);
        CHECK_EQ(was[i].from, i % 2 == 0 ? B : A);
    }
    CHECK_EQ(l.fsm.changes, 11);
    rig_close(&r);
}

static void test_what_was_postponed_comes_again_oldest_first_after_a_change(void)
{
    static const jzx_fsm_row rows[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_POSTPONE, note),
        JZX_FSM_ROW(A, E2, JZX_FSM_POSTPONE, NULL),
        JZX_FSM_ROW(A, E3, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(A, E4, JZX_FSM_REPEAT, note),
        JZX_FSM_ROW(A, E5, B, note),
        JZX_FSM_ROW(B, E1, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(B, E2, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(B, E3, JZX_FSM_KEEP, note),
    };
    rig r;
    lab l;
    LAB_OPEN(&r, &l, rows);
    static const uint32_t sent[] = {E1, E2, E3, E1, E4, E5, E3};
    for (size_t i = 0; i < COUNT_OF(sent); i++) {
        lab_tell(&r, &l, sent[i], i);
    }
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e1=0 A:e3=2 A:e1=3 A:e4=4 -A +A A:e5=5 -A +B "
                  "B:e1=0 B:e2=1 B:e1=3 B:e3=6");
    rig_close(&r);
}

static void test_what_is_postponed_again_waits_for_the_next_change(void)
{
    static const jzx_fsm_row rows[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_POSTPONE, note),
        JZX_FSM_ROW(B, E1, JZX_FSM_POSTPONE, note),
        JZX_FSM_ROW(C, E1, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(A, E2, B, note),
        JZX_FSM_ROW(B, E3, C, note),
        JZX_FSM_ROW(A, E3, JZX_FSM_POSTPONE, note),
    };
    rig r;
    lab l;
    LAB_OPEN(&r, &l, rows);
    lab_tell(&r, &l, E1, 1);
    lab_tell(&r, &l, E3, 2); /* in B it leads on to C, while 3 still has to come again */
    lab_tell(&r, &l, E1, 3);
    lab_tell(&r, &l, E2, 4);
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e1=1 A:e3=2 A:e1=3 A:e2=4 -A +B "
                  "B:e1=1 B:e3=2 -B +C C:e1=1 C:e1=3");
    rig_close(&r);
}

static void test_an_event_that_changes_the_state_may_be_postponed_too(void)
{
    static const jzx_fsm_row rows[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_POSTPONE, note),
        JZX_FSM_ROW(A, E2, B, postpone),
        JZX_FSM_ROW(B, JZX_FSM_ANY_EVENT, JZX_FSM_KEEP, note),
    };
    rig r;
    lab l;
    LAB_OPEN(&r, &l, rows);
    lab_tell(&r, &l, E1, 1);
    lab_tell(&r, &l, E2, 2);
    lab_tell(&r, &l, E3, 3);
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e1=1 A:e2=2 -A +B B:e1=1 B:e2=2 B:e3=3");
    CHECK_OK(l.err);
    rig_close(&r);
}

static void test_inserted_events_go_first_in_their_order(void)
{
    static const jzx_fsm_row rows[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_KEEP, insert_two),
        JZX_FSM_ROW(A, E4, JZX_FSM_KEEP, insert_e6),
        JZX_FSM_ROW(A, JZX_FSM_ANY_EVENT, JZX_FSM_KEEP, note),
    };
    rig r;
    lab l;
    LAB_OPEN(&r, &l, rows);
    lab_tell(&r, &l, E1, 1);
    lab_tell(&r, &l, E2, 2);
    rig_idle(&r);
    /* What an inserted event inserts comes before what was inserted earlier. */
    CHECK_LAB(&l, "+A A:e1=1 A:e4=10 A:e6=10 A:e5=11 A:e2=2");
    rig_close(&r);
}

static void test_inserted_events_come_before_what_was_postponed(void)
{
    static const jzx_fsm_row rows[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_POSTPONE, note),
        JZX_FSM_ROW(A, E2, B, insert_two),
        JZX_FSM_ROW(B, JZX_FSM_ANY_EVENT, JZX_FSM_KEEP, note),
    };
    rig r;
    lab l;
    LAB_OPEN(&r, &l, rows);
    lab_tell(&r, &l, E1, 1);
    lab_tell(&r, &l, E2, 2);
    lab_tell(&r, &l, E3, 3);
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e1=1 A:e2=2 -A +B B:e4=20 B:e5=21 B:e1=1 B:e3=3");
    rig_close(&r);
}

static void test_an_inserted_event_that_changes_the_state_replays_too(void)
{
    static const jzx_fsm_row rows[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_POSTPONE, insert_two), /* itself is postponed as well */
        JZX_FSM_ROW(A, E4, B, note),
        JZX_FSM_ROW(B, E5, C, note),
        JZX_FSM_ROW(JZX_FSM_ANY, JZX_FSM_ANY_EVENT, JZX_FSM_KEEP, note),
    };
    rig r;
    lab l;
    LAB_OPEN(&r, &l, rows);
    lab_tell(&r, &l, E1, 1);
    lab_tell(&r, &l, E2, 2);
    rig_idle(&r);
    /* e1 was postponed before e4 changed the state, so it comes before e5. */
    CHECK_LAB(&l, "+A A:e1=1 A:e4=10 -A +B B:e1=1 B:e5=11 -B +C C:e2=2");
    rig_close(&r);
}

static void test_zero_timeouts_come_after_the_replay_and_before_new_messages(void)
{
    static const jzx_fsm_row rows[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_POSTPONE, note),
        JZX_FSM_ROW(A, E2, B, zero_timers),
        JZX_FSM_ROW(B, E1, JZX_FSM_KEEP, insert_e6),
        JZX_FSM_ROW(JZX_FSM_ANY, JZX_FSM_ANY_EVENT, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(B, TICK, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(B, TOCK, JZX_FSM_KEEP, note),
    };
    rig r;
    lab l;
    LAB_OPEN(&r, &l, rows);
    lab_tell(&r, &l, E1, 1);
    lab_tell(&r, &l, E1, 2);
    lab_tell(&r, &l, E2, 3);
    lab_tell(&r, &l, E3, 4);
    lab_tell(&r, &l, E3, 5);
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e1=1 A:e1=2 A:e2=3 -A +B "
                  "B:e1=1 B:e6=1 B:e1=2 B:e6=2 B:tock=1 B:tick=2 B:e3=4 B:e3=5");
    rig_close(&r);
}

static jzx_behavior_result zero_and_urgent(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(try_urgent(ctx->loop, ctx->self, E3));
    return zero_timers(fsm, ctx, event);
}

static void test_an_urgent_message_jumps_and_changes_nothing_else(void)
{
    static const jzx_fsm_row rows[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_POSTPONE, note),
        JZX_FSM_ROW(A, E2, B, zero_and_urgent),
        JZX_FSM_ROW(JZX_FSM_ANY, JZX_FSM_ANY_EVENT, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(B, TICK, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(B, TOCK, JZX_FSM_KEEP, note),
    };
    rig r;
    lab l;
    LAB_OPEN(&r, &l, rows);
    lab_tell(&r, &l, E1, 1);
    lab_tell(&r, &l, E1, 2);
    lab_tell(&r, &l, E2, 4);
    lab_tell(&r, &l, E4, 5);
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e1=1 A:e1=2 A:e2=4 -A +B B:e3=3 B:e1=1 B:e1=2 B:tock=1 B:tick=2 B:e4=5");
    rig_close(&r);
}

static void test_zero_timeouts_without_a_replay_come_at_once(void)
{
    static const jzx_fsm_row rows[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_KEEP, insert_e6),
        JZX_FSM_ROW(A, E6, B, zero_timers),
        JZX_FSM_ROW(JZX_FSM_ANY, JZX_FSM_ANY_EVENT, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(B, TOCK, C, note),
        JZX_FSM_ROW(C, TICK, JZX_FSM_KEEP, note), /* a named timer outlives the state */
    };
    rig r;
    lab l;
    LAB_OPEN(&r, &l, rows);
    lab_tell(&r, &l, E1, 1);
    lab_tell(&r, &l, E2, 2);
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e1=1 A:e6=1 -A +B B:tock=1 -B +C C:tick=2 C:e2=2");
    rig_close(&r);
}

/* What is expected to come again expires meanwhile: nobody tells the machine. */
static jzx_behavior_result fail(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    (void)note(fsm, ctx, event);
    return JZX_BEHAVIOR_FAIL;
}

static const jzx_fsm_row expiring[] = {
    JZX_FSM_ROW(A, E1, JZX_FSM_POSTPONE, note),
    JZX_FSM_ROW(A, E2, B, zero_timers),
    JZX_FSM_ROW(B, TICK, JZX_FSM_KEEP, note),
    JZX_FSM_ROW(B, TOCK, JZX_FSM_KEEP, note),
    JZX_FSM_ROW(A, E4, C, zero_timers),
    JZX_FSM_ROW(C, TOCK, JZX_FSM_KEEP, fail),
    JZX_FSM_ROW(JZX_FSM_ANY, JZX_FSM_ANY_EVENT, JZX_FSM_KEEP, note),
};

static void postpone_what_expires(rig *r, lab *l)
{
    LAB_OPEN(r, l, expiring);
    jzx_send_opts opts = {.u64 = 1,
                          .tag = E1,
                          .flags = JZX_SEND_VALUE,
                          .deadline_ns = jzx_loop_now(r->loop) + 5 * MS};
    REQUIRE_OK(jzx_send_with(r->loop, l->id, &opts));
    REQUIRE_OK(jzx_send_with(r->loop, l->id, &opts));
    rig_idle(r);
    REQUIRE_OK(jzx_kit_run(r->kit, 10));
}

static void test_zero_timeouts_come_although_the_whole_replay_expired_R13(void)
{
    for (int more = 0; more < 2; more++) {
        rig r;
        lab l;
        postpone_what_expires(&r, &l);
        lab_tell(&r, &l, E2, 2);
        if (more) {
            lab_tell(&r, &l, E3, 3);
        }
        rig_idle(&r);
        CHECK_LAB(&l, more ? "+A A:e1=1 A:e1=1 A:e2=2 -A +B B:tock=1 B:tick=2 B:e3=3"
                           : "+A A:e1=1 A:e1=1 A:e2=2 -A +B B:tock=1 B:tick=2");
        CHECK_DEAD(&r, DEAD(JZX_DEAD_EXPIRED, E1), DEAD(JZX_DEAD_EXPIRED, E1));
        rig_close(&r);
    }
}

static void test_a_message_is_not_lost_when_what_comes_before_it_fails_R5(void)
{
    rig r;
    lab l;
    postpone_what_expires(&r, &l);
    lab_tell(&r, &l, E4, 2);
    lab_tell(&r, &l, E3, 3);
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e1=1 A:e1=1 A:e4=2 -A +C C:tock=1");
    uint32_t dead[8];
    size_t count = dead_facts(&r, dead, COUNT_OF(dead));
    size_t mine = 0;
    for (size_t i = 0; i < count; i++) {
        mine += (dead[i] & 0xFFFFFFu) == E3;
    }
    CHECK_EQ(mine, 1);
    rig_close(&r);
}

/* An order that only all of the rules together make. */
static jzx_behavior_result everything(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_fsm_set_timer(fsm, ctx, JZX_FSM_STATE_TIMEOUT, 0, 7));
    CHECK_OK(jzx_fsm_set_timer(fsm, ctx, JZX_FSM_EVENT_TIMEOUT, 0, 8));
    CHECK_OK(jzx_fsm_set_timer(fsm, ctx, TICK, 0, 9));
    CHECK_OK(jzx_fsm_insert(fsm, E4, 1));
    CHECK_OK(jzx_fsm_insert(fsm, E5, 2));
    CHECK_OK(jzx_fsm_postpone(fsm));
    CHECK_OK(jzx_fsm_goto(fsm, B));
    return note(fsm, ctx, event);
}

static void test_event_order(void)
{
    static const jzx_fsm_row rows[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_POSTPONE, note),
        JZX_FSM_ROW(A, E2, JZX_FSM_KEEP, everything),
        JZX_FSM_ROW(B, JZX_FSM_ANY_EVENT, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(B, JZX_FSM_STATE_TIMEOUT, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(B, JZX_FSM_EVENT_TIMEOUT, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(B, TICK, JZX_FSM_KEEP, note),
    };
    rig r;
    lab l;
    LAB_OPEN(&r, &l, rows);
    lab_tell(&r, &l, E1, 1);
    lab_tell(&r, &l, E2, 2);
    lab_tell(&r, &l, E3, 3);
    rig_idle(&r);
    /* The event timeout died with e4. */
    CHECK_LAB(&l, "+A A:e1=1 A:e2=2 -A +B B:e4=1 B:e5=2 B:e1=1 B:e2=2 B:state=7 B:tick=9 B:e3=3");
    rig_close(&r);
}

static const jzt_test tests[] = {
    {"the_first_row_that_fits_is_taken", test_the_first_row_that_fits_is_taken},
    {"any_event_takes_what_was_sent_and_nothing_of_its_own",
     test_any_event_takes_what_was_sent_and_nothing_of_its_own},
    {"a_state_is_left_and_entered_when_it_changes_and_else_not",
     test_a_state_is_left_and_entered_when_it_changes_and_else_not},
    {"the_history_keeps_the_last_changes", test_the_history_keeps_the_last_changes},
    {"what_was_postponed_comes_again_oldest_first_after_a_change",
     test_what_was_postponed_comes_again_oldest_first_after_a_change},
    {"what_is_postponed_again_waits_for_the_next_change",
     test_what_is_postponed_again_waits_for_the_next_change},
    {"an_event_that_changes_the_state_may_be_postponed_too",
     test_an_event_that_changes_the_state_may_be_postponed_too},
    {"inserted_events_go_first_in_their_order", test_inserted_events_go_first_in_their_order},
    {"inserted_events_come_before_what_was_postponed",
     test_inserted_events_come_before_what_was_postponed},
    {"an_inserted_event_that_changes_the_state_replays_too",
     test_an_inserted_event_that_changes_the_state_replays_too},
    {"zero_timeouts_come_after_the_replay_and_before_new_messages",
     test_zero_timeouts_come_after_the_replay_and_before_new_messages},
    {"an_urgent_message_jumps_and_changes_nothing_else",
     test_an_urgent_message_jumps_and_changes_nothing_else},
    {"zero_timeouts_without_a_replay_come_at_once",
     test_zero_timeouts_without_a_replay_come_at_once},
    {"zero_timeouts_come_although_the_whole_replay_expired_R13",
     test_zero_timeouts_come_although_the_whole_replay_expired_R13},
    {"a_message_is_not_lost_when_what_comes_before_it_fails_R5",
     test_a_message_is_not_lost_when_what_comes_before_it_fails_R5},
    {"event_order", test_event_order},
};

int main(int argc, char **argv)
{
    return lab_main(argc, argv, tests, COUNT_OF(tests));
}
