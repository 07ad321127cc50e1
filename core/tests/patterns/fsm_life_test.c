/* Goal: a machine inside the life of its actor: how it starts, fails, stops, restarts and resumes
 * (R17, R18), and what its calls refuse. Method: simulation; an observer notes why the actor failed
 * or ended. */
#include "fsm_life_kit.h"

static void test_results_of_actions_are_those_of_behaviors_R17(void)
{
    rig r;
    lab l;
    open_as(&r, &l, 0, NULL);
    lab_tell(&r, &l, E4, 1);
    rig_idle(&r);
    CHECK_LAB(&l, "A:e4=1"); /* it neither leaves A nor enters C */
    CHECK_EQ(ended.kind, JZX_REASON_NORMAL);
    rig_close(&r);
    open_as(&r, &l, 0, NULL);
    lab_tell(&r, &l, E3, 1);
    rig_idle(&r);
    CHECK_LAB(&l, "A:e3=1");
    CHECK_EQ(failed.code, 42);
    rig_close(&r);
    open_as(&r, &l, 0, NULL);
    lab_tell(&r, &l, E5, 1);
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
            lab_tell(&r, &l, E1, 1);
            lab_tell(&r, &l, E1, 2);
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
        lab_tell(&r, &l, E2, 1);
        lab_tell(&r, &l, E2, 2);
        lab_tell(&r, &l, ways[i], 3);
        lab_tell(&r, &l, E1, 4);
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
        lab_tell(&r, &l, E2, 1);
        lab_tell(&r, &l, ways[i], 2);
        lab_tell(&r, &l, E1, 3);
        rig_idle(&r);
        CHECK_LAB(&l, i == 0 ? "+A A:e2=1 A:e3=2 A:e1=3 -A +B B:e2=1"
                             : "+A A:e2=1 A:e5=2 A:e1=3 -A +B B:e2=1");
        CHECK_EQ(l.fsm.unhandled, 0); /* what the failed event inserted is gone */
        CHECK_EQ(l.inits, 1);
        rig_close(&r);
    }
}

static void test_what_waits_when_the_actor_ends_is_a_dead_letter_R16(void)
{
    rig r;
    lab l;
    open_as(&r, &l, 0, NULL);
    lab_tell(&r, &l, E2, 1);
    lab_tell(&r, &l, E4, 2);
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
        lab_tell(&r, &l, E1, way);
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
    lab_tell(&r, &l, E1, 0);
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
    lab_tell(&r, &l, E1, 1);
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
    {"results_of_actions_are_those_of_behaviors_R17",
     test_results_of_actions_are_those_of_behaviors_R17},
    {"states_that_fail_to_be_entered_or_left_fail_the_actor",
     test_states_that_fail_to_be_entered_or_left_fail_the_actor},
    {"a_restarted_machine_begins_anew_and_sees_what_waited_R18",
     test_a_restarted_machine_begins_anew_and_sees_what_waited_R18},
    {"a_resumed_machine_goes_on_where_it_was", test_a_resumed_machine_goes_on_where_it_was},
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
