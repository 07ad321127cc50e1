/* Goal: a machine inside the life of its actor: how it starts, fails, stops, restarts and resumes
 * (R17, R18), what becomes of events that nobody wants and of their data (R4, R5), and what its
 * calls refuse. Method: simulation; an observer notes why the actor failed or ended. */
#include "fsm_fixture.h"

#include <jzx/ask.h>

static jzx_reason failed;
static jzx_reason ended;
static uint64_t restarts;

static void on_fail(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)ctx, (void)id, (void)name;
    failed = *reason;
}
static void on_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)ctx, (void)id, (void)name;
    ended = *reason;
}
static void on_restart(void *ctx, jzx_actor_id id, int attempt)
{
    (void)ctx, (void)id, (void)attempt;
    restarts++;
}

static const jzx_observer observer = {
    .on_actor_fail = on_fail, .on_actor_stop = on_stop, .on_actor_restart = on_restart};

static void open_rig(rig *r)
{
    static const jzx_reason never = {.kind = UINT32_MAX};
    *r = rig_open_fifo(NULL);
    failed = never;
    ended = never;
    restarts = 0;
    REQUIRE_OK(jzx_loop_set_observer(r->loop, &observer, NULL));
}

static jzx_behavior_result stop(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    (void)note(fsm, ctx, event);
    return JZX_BEHAVIOR_STOP;
}

static jzx_behavior_result fail(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_fsm_insert(fsm, E6, 0)); /* nothing of it may be left */
    (void)note(fsm, ctx, event);
    return jzx_fail(ctx, 42, "as told");
}

static jzx_behavior_result panic(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_fsm_insert(fsm, E6, 0));
    (void)note(fsm, ctx, event);
    jzx_panic(ctx, 43, "as told");
}

/* e1 goes on to B, e2 waits until then, e3 fails, e4 stops, e5 panics. */
static const jzx_fsm_row rows[] = {
    JZX_FSM_ROW(A, E1, B, note),
    JZX_FSM_ROW(A, E2, JZX_FSM_POSTPONE, note),
    JZX_FSM_ROW(B, E2, JZX_FSM_KEEP, note),
    JZX_FSM_ROW(JZX_FSM_ANY, E3, C, fail),
    JZX_FSM_ROW(JZX_FSM_ANY, E4, C, stop),
    JZX_FSM_ROW(JZX_FSM_ANY, E5, C, panic),
};

static void open_as(rig *r, lab *l, uint32_t unhandled, const jzx_spawn_opts *opts)
{
    open_rig(r);
    lab_make(l, rows, COUNT_OF(rows));
    l->spec.unhandled = unhandled;
    lab_spawn(r, l, opts);
    rig_idle(r);
    CHECK_LAB(l, "+A");
}

static void test_an_event_without_a_row_is_ignored_and_counted(void)
{
    rig r;
    lab l;
    open_as(&r, &l, JZX_FSM_IGNORE, NULL);
    tell(&r, &l, E6, 1);
    tell(&r, &l, 4711, 2);
    tell(&r, &l, E1, 3);
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
    tell(&r, &l, E6, 1);
    rig_idle(&r);
    CHECK_EQ(failed.kind, JZX_REASON_FAILED);
    CHECK_EQ(failed.code, JZX_ERR_NO_TRANSITION);
    CHECK_STR(failed.text, "lab: no transition for 'e6' in 'A'");
    rig_close(&r);
    open_as(&r, &l, JZX_FSM_FAIL, NULL);
    tell(&r, &l, 0xABC, 1);
    rig_idle(&r);
    CHECK_STR(failed.text, "lab: no transition for 'tag 0xabc' in 'A'");
    rig_close(&r);
}

static void test_an_event_without_a_row_becomes_a_dead_letter(void)
{
    rig r;
    lab l;
    open_as(&r, &l, JZX_FSM_DEAD_LETTER, NULL);
    tell(&r, &l, E6, 1);
    tell(&r, &l, 0xABC, 1);
    tell(&r, &l, E1, 3);
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
            tell(&r, &l, tag, 7);
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
        tell(&r, &l, E2, i);
    }
    rig_idle(&r);
    CHECK_EQ(l.fsm.refused, 2);
    CHECK_DEAD(&r, DEAD(JZX_DEAD_DISCARDED, E2), DEAD(JZX_DEAD_DISCARDED, E2));
    tell(&r, &l, E1, 5);
    rig_idle(&r);
    CHECK_LAB(&l, "A:e2=1 A:e2=2 A:e2=3 A:e2=4 A:e1=5 -A +B B:e2=1 B:e2=2");
    rig_close(&r);
    open_as(&r, &l, JZX_FSM_FAIL, &small);
    for (uint64_t i = 1; i <= 4; i++) {
        tell(&r, &l, E2, i);
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
    tell(&r, &l, E1, 0);
    rig_idle(&r);
    CHECK_EQ(l.err, JZX_ERR_NOT_SUPPORTED);
    CHECK_LAB(&l, "+A A:e1=0 A:e2=0");
    rig_close(&r);
    for (uint32_t unhandled = JZX_FSM_IGNORE; unhandled <= JZX_FSM_FAIL; unhandled++) {
        open_rig(&r);
        lab_make(&l, tabled, COUNT_OF(tabled));
        l.spec.unhandled = unhandled;
        lab_spawn(&r, &l, NULL);
        tell(&r, &l, E1, 0);
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

static void test_results_of_actions_are_those_of_behaviors_R17(void)
{
    rig r;
    lab l;
    open_as(&r, &l, 0, NULL);
    tell(&r, &l, E4, 1);
    rig_idle(&r);
    CHECK_LAB(&l, "A:e4=1"); /* it neither leaves A nor enters C */
    CHECK_EQ(ended.kind, JZX_REASON_NORMAL);
    rig_close(&r);
    open_as(&r, &l, 0, NULL);
    tell(&r, &l, E3, 1);
    rig_idle(&r);
    CHECK_LAB(&l, "A:e3=1");
    CHECK_EQ(failed.code, 42);
    rig_close(&r);
    open_as(&r, &l, 0, NULL);
    tell(&r, &l, E5, 1);
    rig_idle(&r);
    CHECK_EQ(failed.kind, JZX_REASON_PANIC);
    rig_close(&r);
}

static void test_states_that_fail_to_be_entered_or_left_fail_the_actor(void)
{
    static const jzx_fsm_row there_and_back[] = {
        JZX_FSM_ROW(A, E1, C, note),
        JZX_FSM_ROW(C, E1, A, note),
    };
    static const jzx_behavior_result answers[] = {JZX_BEHAVIOR_STOP, JZX_BEHAVIOR_FAIL};
    for (int leave = 0; leave < 2; leave++) {
        for (size_t i = 0; i < COUNT_OF(answers); i++) {
            rig r;
            lab l;
            open_rig(&r);
            lab_make(&l, there_and_back, COUNT_OF(there_and_back));
            *(leave ? &l.in_exit : &l.in_enter) = answers[i];
            lab_spawn(&r, &l, NULL);
            tell(&r, &l, E1, 1);
            tell(&r, &l, E1, 2);
            rig_idle(&r);
            CHECK_LAB(&l, leave ? "+A A:e1=1 -A +C C:e1=2 -C" : "+A A:e1=1 -A +C");
            CHECK_EQ(ended.kind, i == 0 ? JZX_REASON_NORMAL : JZX_REASON_FAILED);
            rig_close(&r);
        }
    }
}

/* The actor under a supervisor that restarts or resumes it. */
static void open_child(rig *r, lab *l, jzx_action action)
{
    open_rig(r);
    lab_make(l, rows, COUNT_OF(rows));
    jzx_child_spec child = {.id = "lab", .behavior = jzx_fsm_behavior, .init = lab_init, .arg = l};
    jzx_supervisor_spec spec = {.intensity = 10, .action = (uint32_t)action};
    jzx_supervisor_init init = {.spec = &spec, .children = &child, .child_count = 1};
    jzx_actor_id sup = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn_supervisor(r->loop, &init, &sup));
    rig_idle(r);
    REQUIRE_EQ(jzx_actor_children(r->loop, sup, &l->id, 1), 1);
}

static void test_a_restarted_machine_begins_anew_and_sees_what_waited_R18(void)
{
    static const uint32_t ways[] = {E3, E5};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        rig r;
        lab l;
        open_child(&r, &l, JZX_ACTION_RESTART);
        tell(&r, &l, E2, 1);
        tell(&r, &l, E2, 2);
        tell(&r, &l, ways[i], 3);
        tell(&r, &l, E1, 4);
        rig_idle(&r);
        CHECK_LAB(&l, i == 0 ? "+A A:e2=1 A:e2=2 A:e3=3 "
                               "+A A:e2=1 A:e2=2 A:e1=4 -A +B B:e2=1 B:e2=2"
                             : "+A A:e2=1 A:e2=2 A:e5=3 "
                               "+A A:e2=1 A:e2=2 A:e1=4 -A +B B:e2=1 B:e2=2");
        CHECK_EQ(l.inits, 2);
        CHECK_EQ(restarts, 1);
        CHECK_EQ(l.fsm.changes, 1);
        rig_close(&r);
    }
}

static void test_a_resumed_machine_goes_on_where_it_was(void)
{
    static const uint32_t ways[] = {E3, E5};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        rig r;
        lab l;
        open_child(&r, &l, JZX_ACTION_RESUME);
        tell(&r, &l, E2, 1);
        tell(&r, &l, ways[i], 2);
        tell(&r, &l, E1, 3);
        rig_idle(&r);
        CHECK_LAB(&l, i == 0 ? "+A A:e2=1 A:e3=2 A:e1=3 -A +B B:e2=1"
                             : "+A A:e2=1 A:e5=2 A:e1=3 -A +B B:e2=1");
        CHECK_EQ(l.fsm.unhandled, 0); /* what the failed event inserted is gone */
        CHECK_EQ(l.inits, 1);
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
    tell(&r, &l, E1, 1);
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e2=20 A:e1=1 -A +B B:e2=20");
    CHECK_EQ(me.outcome, JZX_OUTCOME_REPLIED);
    CHECK_EQ(me.answer, 21);
    rig_close(&r);
    ask_machine(&r, &l, &me, E2);
    REQUIRE_OK(jzx_kit_run(r.kit, 200));
    tell(&r, &l, E1, 1);
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e2=20 A:e1=1 -A +B");
    CHECK(me.outcome == JZX_OUTCOME_TIMED_OUT || me.outcome == JZX_OUTCOME_EXPIRED);
    rig_close(&r);
    ask_machine(&r, &l, &me, E6); /* no row: the asker need not wait */
    CHECK_EQ(me.outcome, JZX_OUTCOME_FORGOTTEN);
    rig_close(&r);
}

static void test_what_waits_when_the_actor_ends_is_a_dead_letter_R16(void)
{
    rig r;
    lab l;
    open_as(&r, &l, 0, NULL);
    tell(&r, &l, E2, 1);
    tell(&r, &l, E4, 2);
    rig_idle(&r);
    CHECK_EQ(rig_counters(&r).dead, 1);
    rig_close(&r);
}

static jzx_behavior_result again(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    lab_of(fsm)->once++;
    return event->u64 == 0 ? (jzx_behavior_result)jzx_fsm_insert(fsm, E2, 0)
                           : (jzx_behavior_result)jzx_fsm_set_timer(fsm, ctx, TICK, 0, 1);
}

static void test_a_machine_that_keeps_itself_busy_fails(void)
{
    static const jzx_fsm_row loops[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_KEEP, again),
        JZX_FSM_ROW(A, E2, JZX_FSM_KEEP, again),
        JZX_FSM_ROW(A, TICK, JZX_FSM_KEEP, again),
    };
    for (uint64_t way = 0; way < 2; way++) {
        rig r;
        lab l;
        open_rig(&r);
        lab_make(&l, loops, COUNT_OF(loops));
        lab_spawn(&r, &l, NULL);
        tell(&r, &l, E1, way);
        rig_idle(&r);
        CHECK_EQ(l.once, JZX_FSM_CHAIN_MAX + 1);
        CHECK_EQ(failed.code, JZX_ERR_TOO_BIG);
        CHECK_STR(failed.text, "lab: 1000 events in 'A' without a message in between");
        rig_close(&r);
    }
}

static jzx_behavior_result try_all(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_EQ(jzx_fsm_goto(fsm, STATES), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_fsm_goto(fsm, JZX_FSM_ANY), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_fsm_goto(fsm, JZX_FSM_POSTPONE), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_fsm_insert(fsm, 4711, 0), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_fsm_insert(fsm, TICK, 0), JZX_ERR_INVALID_ARG);
    for (uint64_t i = 0; i < JZX_FSM_INSERT_MAX; i++) {
        CHECK_OK(jzx_fsm_insert(fsm, E2, i));
    }
    CHECK_EQ(jzx_fsm_insert(fsm, E2, 9), JZX_ERR_QUEUE_FULL);
    return note(fsm, ctx, event);
}

static void check_outside(jzx_fsm *fsm)
{
    CHECK_EQ(jzx_fsm_goto(fsm, B), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_fsm_postpone(fsm), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_fsm_insert(fsm, E2, 0), JZX_ERR_INVALID_ARG);
}

static jzx_behavior_result enter_trying(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    (void)ctx;
    CHECK(event == NULL);
    CHECK_EQ(jzx_fsm_goto(fsm, B), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_fsm_postpone(fsm), JZX_ERR_INVALID_ARG);
    CHECK_OK(jzx_fsm_insert(fsm, E3, 8)); /* this is fine */
    return JZX_BEHAVIOR_OK;
}

static void test_calls_at_the_wrong_moment_are_refused(void)
{
    static const jzx_fsm_state_spec states[] = {{"A", enter_trying, NULL, 0, 0}};
    static const jzx_fsm_row only[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_KEEP, try_all),
        JZX_FSM_ROW(A, E2, JZX_FSM_KEEP, note),
        JZX_FSM_ROW(A, E3, JZX_FSM_KEEP, note),
    };
    rig r;
    lab l;
    open_rig(&r);
    lab_make(&l, only, COUNT_OF(only));
    l.spec.states = states;
    l.spec.state_count = 1;
    l.spec.index_len = lab_indexed ? JZX_FSM_INDEX_LEN(1, EVENTS, TIMERS) : 0;
    lab_spawn(&r, &l, NULL);
    rig_idle(&r);
    CHECK_LAB(&l, "A:e3=8");
    tell(&r, &l, E1, 0);
    rig_idle(&r);
    CHECK_LAB(&l, "A:e1=0 A:e2=0 A:e2=1 A:e2=2 A:e2=3 A:e2=4 A:e2=5 A:e2=6 A:e2=7");
    check_outside(&l.fsm);
    check_outside(NULL);
    CHECK_EQ(jzx_fsm_state(NULL), 0);
    CHECK_STR(jzx_fsm_state_name(NULL), "");
    CHECK_EQ(jzx_fsm_history(NULL, NULL, 0), 0);
    rig_close(&r);
}

static void test_a_machine_without_init_starts_with_its_first_message(void)
{
    rig r;
    lab l;
    open_rig(&r);
    lab_make(&l, rows, COUNT_OF(rows));
    REQUIRE_OK(jzx_fsm_init(&l.fsm, &l.spec, &l));
    jzx_spawn_opts opts = {.behavior = jzx_fsm_behavior, .state = &l};
    REQUIRE_OK(jzx_spawn(r.loop, &opts, &l.id));
    rig_idle(&r);
    CHECK_LAB(&l, "");
    tell(&r, &l, E1, 1);
    rig_idle(&r);
    CHECK_LAB(&l, "+A A:e1=1 -A +B");
    rig_close(&r);
}

static void test_a_machine_that_was_never_made_fails_its_actor(void)
{
    static jzx_fsm blank;
    void *states[] = {NULL, &blank};
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        rig r;
        open_rig(&r);
        jzx_actor_id id = JZX_NOBODY;
        jzx_spawn_opts opts = {.behavior = jzx_fsm_behavior, .state = states[i]};
        REQUIRE_OK(jzx_spawn(r.loop, &opts, &id));
        REQUIRE_OK(jzx_send_u64(r.loop, id, 1, E1));
        rig_idle(&r);
        CHECK_EQ(failed.code, JZX_ERR_INVALID_ARG);
        rig_close(&r);
    }
}

/* Everything that takes memory: timers, postponing, and an actor that is restarted for want of it.
 */
static jzx_behavior_result use_memory(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    jzx_err err = jzx_fsm_set_timer(fsm, ctx, TICK, 5, event->u64);
    bool runs = (fsm->armed >> 2 & 1u) != 0;
    return err == JZX_OK || (err == JZX_ERR_NO_MEMORY && !runs) ? JZX_BEHAVIOR_OK
                                                                : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result sweep_init(jzx_context *ctx, void *arg)
{
    lab *l = arg;
    ctx->state = l;
    l->inits++;
    if (jzx_fsm_init(&l->fsm, &l->spec, l) != JZX_OK) {
        return JZX_BEHAVIOR_FAIL;
    }
    return jzx_fsm_start(&l->fsm, ctx);
}

static const char *short_of_memory(jzx_kit *kit, void *arg)
{
    static const jzx_fsm_state_spec states[STATES] = {
        {"A", NULL, NULL, 20, 0},
        {"B", NULL, NULL, 0, 0},
        {"C", NULL, NULL, 0, JZX_FSM_BY_GOTO},
        {"END", NULL, NULL, 0, JZX_FSM_FINAL},
    };
    static const jzx_fsm_row busy[] = {
        JZX_FSM_ROW(A, E1, JZX_FSM_KEEP, use_memory),
        JZX_FSM_ROW(A, E2, JZX_FSM_POSTPONE, NULL),
        JZX_FSM_ROW(A, JZX_FSM_STATE_TIMEOUT, B, NULL),
        JZX_FSM_ROW(B, E2, JZX_FSM_KEEP, NULL),
        JZX_FSM_ROW(B, E3, END, NULL),
        JZX_FSM_ROW(A, TICK, JZX_FSM_KEEP, NULL),
    };
    lab *l = arg;
    lab_make(l, busy, COUNT_OF(busy));
    l->spec.states = states;
    jzx_spawn_opts opts = {.behavior = jzx_fsm_behavior, .init = sweep_init, .state = l};
    if (jzx_spawn(kit->loop, &opts, &l->id) != JZX_OK) {
        return NULL;
    }
    uint32_t sent = 0;
    for (uint32_t tag = E1; tag <= E2; tag++) {
        sent += jzx_send_u64(kit->loop, l->id, 1, tag) == JZX_OK;
    }
    jzx_err err = jzx_kit_run(kit, 30);
    if (err == JZX_OK && sent == 2 && jzx_send_u64(kit->loop, l->id, 1, E3) == JZX_OK) {
        err = jzx_kit_run(kit, 30);
        bool gone = jzx_actor_state(kit->loop, l->id) == JZX_STATE_TERMINATED;
        if (err == JZX_OK && !gone && jzx_fsm_state(&l->fsm) != END) {
            return "The machine is stuck.";
        }
    }
    return NULL;
}

static void test_no_allocation_that_fails_does_harm(void)
{
    lab l;
    jzx_sweep_report report = {0};
    jzx_sim_opts sim = {.seed = jzt_seed() | 1};
    jzx_kit_opts opts = {.sim = &sim};
    const char *wrong = jzx_fault_sweep(&opts, short_of_memory, &l, 500, &report);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK(report.allocs > 5);
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
    {"results_of_actions_are_those_of_behaviors_R17",
     test_results_of_actions_are_those_of_behaviors_R17},
    {"states_that_fail_to_be_entered_or_left_fail_the_actor",
     test_states_that_fail_to_be_entered_or_left_fail_the_actor},
    {"a_restarted_machine_begins_anew_and_sees_what_waited_R18",
     test_a_restarted_machine_begins_anew_and_sees_what_waited_R18},
    {"a_resumed_machine_goes_on_where_it_was", test_a_resumed_machine_goes_on_where_it_was},
    {"an_ask_that_is_postponed_is_answered_later_or_expires",
     test_an_ask_that_is_postponed_is_answered_later_or_expires},
    {"what_waits_when_the_actor_ends_is_a_dead_letter_R16",
     test_what_waits_when_the_actor_ends_is_a_dead_letter_R16},
    {"a_machine_that_keeps_itself_busy_fails", test_a_machine_that_keeps_itself_busy_fails},
    {"calls_at_the_wrong_moment_are_refused", test_calls_at_the_wrong_moment_are_refused},
    {"a_machine_without_init_starts_with_its_first_message",
     test_a_machine_without_init_starts_with_its_first_message},
    {"a_machine_that_was_never_made_fails_its_actor",
     test_a_machine_that_was_never_made_fails_its_actor},
    {"no_allocation_that_fails_does_harm", test_no_allocation_that_fails_does_harm},
};

int main(int argc, char **argv)
{
    return lab_main(argc, argv, tests, COUNT_OF(tests));
}
