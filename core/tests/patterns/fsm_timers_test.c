/* Goal: when timeouts of a machine come, what ends them, and that one which was cancelled or
 * replaced is never taken for another. Method: one machine with a journal, in virtual time. */
#include "fsm_fixture.h"

#include <jzx/timer.h>

/* Sets the timer that the test chose, for event->u64 milliseconds. */
static uint32_t chosen;

static jzx_behavior_result set(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    lab_of(fsm)->err = jzx_fsm_set_timer(fsm, ctx, chosen, (uint32_t)event->u64, event->u64);
    return note(fsm, ctx, event);
}

static jzx_behavior_result cancel(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    lab_of(fsm)->err = jzx_fsm_cancel_timer(fsm, ctx, chosen);
    return note(fsm, ctx, event);
}

static jzx_behavior_result update(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    lab_of(fsm)->err = jzx_fsm_update_timer(fsm, ctx, chosen, event->u64);
    return note(fsm, ctx, event);
}

/* e1 sets, e2 cancels, e3 updates, e4 goes from A to B and back, e5 stays, e6 repeats. */
static const jzx_fsm_row rows[] = {
    JZX_FSM_ROW(JZX_FSM_ANY, E1, JZX_FSM_KEEP, set),
    JZX_FSM_ROW(JZX_FSM_ANY, E2, JZX_FSM_KEEP, cancel),
    JZX_FSM_ROW(JZX_FSM_ANY, E3, JZX_FSM_KEEP, update),
    JZX_FSM_ROW(A, E4, B, note),
    JZX_FSM_ROW(B, E4, A, note),
    JZX_FSM_ROW(JZX_FSM_ANY, E5, JZX_FSM_KEEP, note),
    JZX_FSM_ROW(JZX_FSM_ANY, E6, JZX_FSM_REPEAT, note),
    JZX_FSM_ROW(JZX_FSM_ANY, JZX_FSM_STATE_TIMEOUT, JZX_FSM_KEEP, note),
    JZX_FSM_ROW(JZX_FSM_ANY, JZX_FSM_EVENT_TIMEOUT, JZX_FSM_KEEP, note),
    JZX_FSM_ROW(JZX_FSM_ANY, TICK, JZX_FSM_KEEP, note),
    JZX_FSM_ROW(JZX_FSM_ANY, TOCK, JZX_FSM_KEEP, note),
};

static void open_with(rig *r, lab *l, uint32_t timer)
{
    chosen = timer;
    LAB_OPEN(r, l, rows);
    CHECK_LAB(l, "+A");
}

/* Sets 100 ms, lets half of it pass, sends `tag`, and goes on well past the deadline. */
static void play(rig *r, lab *l, uint32_t tag)
{
    lab_tell(r, l, E1, 100);
    run_ms(r, 50);
    lab_tell(r, l, tag, 1);
    run_ms(r, 45);
    lab_say(l, "|");
    run_ms(r, 100);
}

static void test_a_timeout_comes_when_it_is_due(void)
{
    static const uint32_t timers[] = {JZX_FSM_STATE_TIMEOUT, JZX_FSM_EVENT_TIMEOUT, TICK, TOCK};
    static const char *const want[] = {"A:e1=100 | A:state=100", "A:e1=100 | A:event=100",
                                       "A:e1=100 | A:tick=100", "A:e1=100 | A:tock=100"};
    for (size_t i = 0; i < COUNT_OF(timers); i++) {
        rig r;
        lab l;
        open_with(&r, &l, timers[i]);
        lab_tell(&r, &l, E1, 100);
        run_ms(&r, 99);
        lab_say(&l, "|");
        run_ms(&r, 200);
        CHECK_LAB(&l, want[i]);
        rig_close(&r);
    }
}

static void test_a_state_timeout_dies_with_the_state_and_not_before(void)
{
    rig r;
    lab l;
    open_with(&r, &l, JZX_FSM_STATE_TIMEOUT);
    play(&r, &l, E5);
    CHECK_LAB(&l, "A:e1=100 A:e5=1 | A:state=100");
    play(&r, &l, E6); /* to repeat a state is not to change it */
    CHECK_LAB(&l, "A:e1=100 A:e6=1 -A +A | A:state=100");
    play(&r, &l, E4);
    CHECK_LAB(&l, "A:e1=100 A:e4=1 -A +B |");
    rig_close(&r);
}

static void test_an_event_timeout_dies_with_any_event(void)
{
    rig r;
    lab l;
    open_with(&r, &l, JZX_FSM_EVENT_TIMEOUT);
    play(&r, &l, E5);
    CHECK_LAB(&l, "A:e1=100 A:e5=1 |");
    play(&r, &l, 4711); /* even one that has no row */
    CHECK_LAB(&l, "A:e1=100 |");
    CHECK_EQ(l.fsm.unhandled, 1);
    rig_close(&r);
}

static void test_a_named_timer_outlives_events_and_states(void)
{
    rig r;
    lab l;
    open_with(&r, &l, TICK);
    play(&r, &l, E5);
    CHECK_LAB(&l, "A:e1=100 A:e5=1 | A:tick=100");
    play(&r, &l, E4);
    CHECK_LAB(&l, "A:e1=100 A:e4=1 -A +B | B:tick=100");
    play(&r, &l, E6);
    CHECK_LAB(&l, "B:e1=100 B:e6=1 -B +B | B:tick=100");
    rig_close(&r);
}

static void test_a_timer_that_is_cancelled_never_comes(void)
{
    static const uint32_t timers[] = {JZX_FSM_STATE_TIMEOUT, TICK};
    for (size_t i = 0; i < COUNT_OF(timers); i++) {
        rig r;
        lab l;
        open_with(&r, &l, timers[i]);
        play(&r, &l, E2);
        CHECK_LAB(&l, "A:e1=100 A:e2=1 |");
        CHECK_OK(l.err);
        lab_tell(&r, &l, E2, 1);
        rig_idle(&r);
        CHECK_EQ(l.err, JZX_ERR_ALREADY);
        rig_close(&r);
    }
}

static void test_a_timer_that_is_set_again_comes_once_at_its_new_time(void)
{
    rig r;
    lab l;
    open_with(&r, &l, TICK);
    lab_tell(&r, &l, E1, 100);
    run_ms(&r, 50);
    lab_tell(&r, &l, E1, 101);
    run_ms(&r, 90);
    lab_say(&l, "|");
    run_ms(&r, 200);
    CHECK_LAB(&l, "A:e1=100 A:e1=101 | A:tick=101");
    lab_tell(&r, &l, E1, 100);
    lab_tell(&r, &l, E1, 0); /* now, instead */
    run_ms(&r, 200);
    CHECK_LAB(&l, "A:e1=100 A:e1=0 A:tick=0");
    rig_close(&r);
}

static void test_an_update_changes_the_value_and_not_the_deadline(void)
{
    static const uint32_t timers[] = {JZX_FSM_STATE_TIMEOUT, TICK};
    static const char *const want[] = {"A:e1=100 A:e3=1 | A:state=1", "A:e1=100 A:e3=1 | A:tick=1"};
    for (size_t i = 0; i < COUNT_OF(timers); i++) {
        rig r;
        lab l;
        open_with(&r, &l, timers[i]);
        play(&r, &l, E3);
        CHECK_LAB(&l, want[i]);
        rig_close(&r);
    }
}

static void test_an_update_of_a_timer_that_does_not_run_comes_at_once(void)
{
    rig r;
    lab l;
    open_with(&r, &l, TICK);
    lab_tell(&r, &l, E3, 5);
    lab_tell(&r, &l, E5, 6);
    rig_idle(&r);
    CHECK_LAB(&l, "A:e3=5 A:tick=5 A:e5=6");
    rig_close(&r);
}

static jzx_behavior_result set_and_go(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_fsm_set_timer(fsm, ctx, JZX_FSM_STATE_TIMEOUT, 30, 2));
    return note(fsm, ctx, event);
}

static jzx_behavior_result enter_c(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_fsm_set_timer(fsm, ctx, JZX_FSM_STATE_TIMEOUT, 70, 3));
    return lab_enter(fsm, ctx, event);
}

static void test_the_timeout_of_a_state_begins_when_it_is_entered(void)
{
    static const jzx_fsm_state_spec states[STATES] = {
        {"A", lab_enter, lab_exit, 50, 0},
        {"B", lab_enter, lab_exit, 100, 0},
        {"C", enter_c, lab_exit, 100, 0},
        {"END", lab_enter, NULL, 0, JZX_FSM_FINAL},
    };
    static const jzx_fsm_row moves[] = {
        JZX_FSM_ROW(JZX_FSM_ANY, JZX_FSM_STATE_TIMEOUT, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(A, E1, B, note),
        JZX_FSM_ROW(A, E2, B, set_and_go),
        JZX_FSM_ROW(B, E3, A, note),
        JZX_FSM_ROW(B, E4, C, note),
        JZX_FSM_ROW(C, E5, JZX_FSM_REPEAT, note),
        JZX_FSM_ROW(C, E6, END, note),
    };
    rig r = rig_open_fifo(NULL);
    lab l;
    lab_make(&l, moves, COUNT_OF(moves));
    l.spec.states = states;
    lab_spawn(&r, &l, NULL);
    run_ms(&r, 48);
    CHECK_LAB(&l, "+A");
    run_ms(&r, 10);
    CHECK_LAB(&l, "A:state=0");
    run_ms(&r, 500); /* once per stay */
    lab_tell(&r, &l, E1, 1);
    run_ms(&r, 98);
    CHECK_LAB(&l, "A:e1=1 -A +B");
    run_ms(&r, 4);
    CHECK_LAB(&l, "B:state=0");
    lab_tell(&r, &l, E3, 1);
    lab_tell(&r, &l, E2, 1);
    run_ms(&r, 28);
    CHECK_LAB(&l, "B:e3=1 -B +A A:e2=1 -A +B");
    run_ms(&r, 200); /* what the action set, instead of the spec's */
    CHECK_LAB(&l, "B:state=2");
    lab_tell(&r, &l, E4, 1);
    run_ms(&r, 60);
    lab_tell(&r, &l, E5, 1);
    run_ms(&r, 60);
    CHECK_LAB(&l, "B:e4=1 -B +C C:e5=1 -C +C");
    run_ms(&r, 200); /* what on_enter set, anew since the repeat */
    CHECK_LAB(&l, "C:state=3");
    lab_tell(&r, &l, E6, 1);
    run_ms(&r, 200);
    CHECK_LAB(&l, "C:e6=1 -C +END");
    rig_close(&r);
}

/* Both timers fire in one millisecond; the one handled first cancels or replaces the other, whose
 * message may be in the mailbox already. */
static jzx_behavior_result both(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_fsm_set_timer(fsm, ctx, TICK, 10, 1));
    CHECK_OK(jzx_fsm_set_timer(fsm, ctx, TOCK, 10, 2));
    return note(fsm, ctx, event);
}

static jzx_behavior_result stall(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    spend(ctx->loop, 20 * MS);
    return note(fsm, ctx, event);
}

static jzx_behavior_result cancel_tock(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_fsm_cancel_timer(fsm, ctx, TOCK));
    return note(fsm, ctx, event);
}

static jzx_behavior_result replace_tock(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_fsm_set_timer(fsm, ctx, TOCK, 50, 3));
    return note(fsm, ctx, event);
}

static void test_a_fired_timer_that_is_cancelled_or_replaced_is_no_event(void)
{
    static const jzx_fsm_row pairs[] = {
        JZX_FSM_ROW(JZX_FSM_ANY, E1, JZX_FSM_KEEP, both),
        JZX_FSM_ROW(JZX_FSM_ANY, E2, JZX_FSM_KEEP, stall),
        JZX_FSM_ROW(A, TICK, B, cancel_tock),
        JZX_FSM_ROW(B, TICK, C, replace_tock),
        JZX_FSM_ROW(JZX_FSM_ANY, TOCK, JZX_FSM_KEEP, note),
    };
    jzx_sim_opts sim = {.seed = jzt_seed() | 1, .flags = JZX_SIM_FIFO, .cost_ns = 10 * US};
    rig r = rig_open_with(NULL, &sim);
    lab l;
    lab_make(&l, pairs, COUNT_OF(pairs));
    lab_spawn(&r, &l, NULL);
    for (int i = 0; i < 2; i++) {
        lab_tell(&r, &l, E1, 0);
        lab_tell(&r, &l, E2, 0);
        run_ms(&r, 60);
        lab_say(&l, "|");
        run_ms(&r, 60);
    }
    CHECK_LAB(&l, "+A A:e1=0 A:e2=0 A:tick=1 -A +B | "
                  "B:e1=0 B:e2=0 B:tick=1 -B +C | C:tock=3");
    CHECK_EQ(l.fsm.unhandled, 0);
    rig_close(&r);
}

static void test_a_timer_of_somebody_else_is_not_taken_for_ours(void)
{
    rig r;
    lab l;
    open_with(&r, &l, TICK);
    jzx_timer_opts opts = {.delay_ms = 10, .u64 = 66, .tag = TICK, .flags = JZX_TIMER_VALUE};
    REQUIRE_OK(jzx_timer_start(r.loop, l.id, &opts, NULL));
    lab_tell(&r, &l, E1, 20);
    run_ms(&r, 15);
    CHECK_LAB(&l, "A:e1=20");
    run_ms(&r, 15);
    CHECK_LAB(&l, "A:tick=20");
    opts.tag = E5; /* with a tag of the list it is an event */
    REQUIRE_OK(jzx_timer_start(r.loop, l.id, &opts, NULL));
    run_ms(&r, 15);
    CHECK_LAB(&l, "A:e5=66");
    rig_close(&r);
}

static jzx_behavior_result many_zeros(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_fsm_set_timer(fsm, ctx, TICK, 0, 1));
    CHECK_OK(jzx_fsm_set_timer(fsm, ctx, JZX_FSM_EVENT_TIMEOUT, 0, 2));
    CHECK_OK(jzx_fsm_set_timer(fsm, ctx, JZX_FSM_STATE_TIMEOUT, 0, 3));
    CHECK_OK(jzx_fsm_set_timer(fsm, ctx, TOCK, 0, 4));
    CHECK_OK(jzx_fsm_set_timer(fsm, ctx, TICK, 0, 5)); /* set again: last */
    CHECK_OK(jzx_fsm_update_timer(fsm, ctx, TOCK, 6)); /* updated: where it was */
    if (event->u64 == 1) {
        CHECK_OK(jzx_fsm_cancel_timer(fsm, ctx, JZX_FSM_STATE_TIMEOUT));
    }
    return note(fsm, ctx, event);
}

static void test_zero_timeouts_come_in_the_order_they_were_set(void)
{
    static const jzx_fsm_row zeros[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_KEEP, many_zeros),
        JZX_FSM_ROW(A, TOCK, B, note), /* and the state timeout, if it had to come, would die */
        JZX_FSM_ROW(B, E1, JZX_FSM_KEEP, many_zeros),
        JZX_FSM_ROW(JZX_FSM_ANY, TICK, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(JZX_FSM_ANY, TOCK, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(JZX_FSM_ANY, JZX_FSM_EVENT_TIMEOUT, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(JZX_FSM_ANY, JZX_FSM_STATE_TIMEOUT, JZX_FSM_KEEP, note),
    };
    rig r;
    lab l;
    LAB_OPEN(&r, &l, zeros);
    lab_tell(&r, &l, E1, 0);
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e1=0 A:event=2 A:state=3 A:tock=6 -A +B B:tick=5");
    lab_tell(&r, &l, E1, 1);
    rig_idle(&r);
    CHECK_LAB(&l, "B:e1=1 B:event=2 B:tock=6 B:tick=5");
    rig_close(&r);
}

/* A behavior of the user's own that sets timers around the machine. */
static jzx_behavior_result around(jzx_context *ctx, const jzx_message *msg)
{
    lab *l = ctx->state;
    if (msg->tag == 99) {
        l->err = jzx_fsm_set_timer(&l->fsm, ctx, TICK, 0, 9);
        return JZX_BEHAVIOR_OK;
    }
    return jzx_fsm_handle(&l->fsm, ctx, msg);
}

static void test_a_zero_timeout_set_from_outside_of_the_machine_comes_too(void)
{
    rig r = rig_open_fifo(NULL);
    lab l;
    chosen = TICK;
    lab_make(&l, rows, COUNT_OF(rows));
    jzx_spawn_opts opts = {.behavior = around, .init = lab_init, .state = &l};
    REQUIRE_OK(jzx_spawn(r.loop, &opts, &l.id));
    lab_tell(&r, &l, 99, 0);
    run_ms(&r, 5);
    CHECK_LAB(&l, "+A A:tick=9");
    CHECK_OK(l.err);
    rig_close(&r);
}

static void test_timers_that_are_not_there_are_refused(void)
{
    static const uint32_t wrong[] = {0, E1, JZX_FSM_TIMER(TIMERS), JZX_FSM_ANY_EVENT, UINT32_MAX};
    rig r;
    lab l;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        open_with(&r, &l, wrong[i]);
        for (uint32_t tag = E1; tag <= E3; tag++) {
            l.err = JZX_OK;
            lab_tell(&r, &l, tag, 10);
            rig_idle(&r);
            CHECK_EQ(l.err, JZX_ERR_INVALID_ARG);
        }
        run_ms(&r, 20);
        CHECK_LAB(&l, "A:e1=10 A:e2=10 A:e3=10");
        CHECK_EQ(jzx_fsm_set_timer(NULL, NULL, TICK, 1, 1), JZX_ERR_INVALID_ARG);
        CHECK_EQ(jzx_fsm_set_timer(&l.fsm, NULL, TICK, 1, 1), JZX_ERR_INVALID_ARG);
        rig_close(&r);
    }
}

static const jzt_test tests[] = {
    {"a_timeout_comes_when_it_is_due", test_a_timeout_comes_when_it_is_due},
    {"a_state_timeout_dies_with_the_state_and_not_before",
     test_a_state_timeout_dies_with_the_state_and_not_before},
    {"an_event_timeout_dies_with_any_event", test_an_event_timeout_dies_with_any_event},
    {"a_named_timer_outlives_events_and_states", test_a_named_timer_outlives_events_and_states},
    {"a_timer_that_is_cancelled_never_comes", test_a_timer_that_is_cancelled_never_comes},
    {"a_timer_that_is_set_again_comes_once_at_its_new_time",
     test_a_timer_that_is_set_again_comes_once_at_its_new_time},
    {"an_update_changes_the_value_and_not_the_deadline",
     test_an_update_changes_the_value_and_not_the_deadline},
    {"an_update_of_a_timer_that_does_not_run_comes_at_once",
     test_an_update_of_a_timer_that_does_not_run_comes_at_once},
    {"the_timeout_of_a_state_begins_when_it_is_entered",
     test_the_timeout_of_a_state_begins_when_it_is_entered},
    {"a_fired_timer_that_is_cancelled_or_replaced_is_no_event",
     test_a_fired_timer_that_is_cancelled_or_replaced_is_no_event},
    {"a_timer_of_somebody_else_is_not_taken_for_ours",
     test_a_timer_of_somebody_else_is_not_taken_for_ours},
    {"zero_timeouts_come_in_the_order_they_were_set",
     test_zero_timeouts_come_in_the_order_they_were_set},
    {"a_zero_timeout_set_from_outside_of_the_machine_comes_too",
     test_a_zero_timeout_set_from_outside_of_the_machine_comes_too},
    {"timers_that_are_not_there_are_refused", test_timers_that_are_not_there_are_refused},
};

int main(int argc, char **argv)
{
    return lab_main(argc, argv, tests, COUNT_OF(tests));
}
