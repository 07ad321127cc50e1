/* Goal: the eight states and the way in: every cell of the transition table, what queries say, the
 * order of init and the start signals, every way to fail a start (R14, R15, R17). How actors stop
 * is in life_stop_test.c, what a restart keeps in life_restart_test.c. Method: simulation; actors
 * write a journal. The table is written from the header's diagram and DESIGN R14 to R18, not from
 * the code. */
#include "puppet.h"

enum { WORK = 1, MORE = 2 };

/* One letter per state, in the order of jzx_life_event: start, started, stop, fail, restart,
 * resume, halt, end. A dot is impossible. c created, s starting, R running, p stopping, h stopped,
 * f failed, r restarting, t terminated. */
static const char *const table[JZX_STATES] = {
    [JZX_STATE_CREATED] = "s.p.....",    /* stopped before its first turn: init never runs */
    [JZX_STATE_STARTING] = ".Rpf....",   /* STOP: init said so, or it was asked to meanwhile */
    [JZX_STATE_RUNNING] = "..pf....",    /* a deferred stop stays here */
    [JZX_STATE_STOPPING] = "......ht",   /* no way back: a stop wins over everything */
    [JZX_STATE_STOPPED] = "....r..t",    /* its supervisor starts it again, or ends it */
    [JZX_STATE_FAILED] = "..p.rR..",     /* the parent's decision: stop, restart, resume */
    [JZX_STATE_RESTARTING] = "s.p.....", /* a stop during clean-up or backoff ends it */
    [JZX_STATE_TERMINATED] = "........",
};

static void test_every_cell_of_the_transition_table_R14(void)
{
    static const char letters[] = "csRphfrt";
    for (uint32_t state = 0; state < JZX_STATES; state++) {
        for (uint32_t event = 0; event < JZX_LIFE_EVENTS; event++) {
            const char *at = strchr(letters, table[state][event]);
            int want = table[state][event] == '.' ? -1 : (int)(at - letters);
            int got = jzx_lifecycle_next(state, event);
            if (got != want) {
                fprintf(stderr, "  state %s, event %u: %d, not %d\n", jzx_state_name(state),
                        (unsigned)event, got, want);
            }
            CHECK_EQ(got, want);
        }
    }
}

static void test_states_and_events_that_are_none_lead_nowhere_R14(void)
{
    static const uint32_t odd[] = {JZX_STATES, JZX_STATES + 1, 255, 256, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        for (uint32_t n = 0; n < JZX_STATES; n++) {
            CHECK_EQ(jzx_lifecycle_next(odd[i], n), -1);
            CHECK_EQ(jzx_lifecycle_next(n, odd[i]), -1);
        }
        CHECK(jzx_state_name(odd[i]) != NULL);
        CHECK(jzx_signal_name(odd[i]) != NULL);
    }
    static const char *const names[JZX_STATES] = {"created",    "starting",  "running",
                                                  "stopping",   "stopped",   "failed",
                                                  "restarting", "terminated"};
    for (uint32_t state = 0; state < JZX_STATES; state++) {
        CHECK_STR(jzx_state_name(state), names[state]);
    }
    CHECK_STR(jzx_signal_name(JZX_SIGNAL_PRE_START), "pre_start");
    CHECK_STR(jzx_signal_name(JZX_SIGNAL_CHILD_FAILED), "child_failed");
    CHECK_STR(jzx_signal_name(JZX_SIGNAL_RESTARTED), "restarted");
}

static void test_whoever_lives_can_get_to_terminated_R14(void)
{
    for (uint32_t from = 0; from < JZX_STATES; from++) {
        bool reached[JZX_STATES] = {false};
        reached[from] = true;
        for (int round = 0; round < JZX_STATES; round++) {
            for (uint32_t cell = 0; cell < JZX_STATES * JZX_LIFE_EVENTS; cell++) {
                int next = jzx_lifecycle_next(cell / JZX_LIFE_EVENTS, cell % JZX_LIFE_EVENTS);
                if (reached[cell / JZX_LIFE_EVENTS] && next >= 0) {
                    reached[next] = true;
                }
            }
        }
        CHECK(reached[JZX_STATE_TERMINATED]);
    }
}

/* Two states that follow each other in a history have an event between them. */
static bool one_step(jzx_state from, jzx_state to)
{
    bool found = false;
    for (uint32_t event = 0; event < JZX_LIFE_EVENTS; event++) {
        found |= jzx_lifecycle_next(from, event) == (int)to;
    }
    return found;
}

static void check_history(jzx_loop *loop, jzx_actor_id id)
{
    jzx_state past[JZX_HISTORY_MAX + 1];
    size_t count = jzx_actor_history(loop, id, past, COUNT_OF(past));
    REQUIRE(count >= 1 && count <= JZX_HISTORY_MAX);
    CHECK_EQ(past[count - 1], jzx_actor_state(loop, id));
    for (size_t i = 1; i < count; i++) {
        CHECK(one_step(past[i - 1], past[i]));
    }
}

static void note_state(jzx_context *ctx, puppet *self, uint32_t what)
{
    (void)what;
    say("[%s]", jzx_state_name(jzx_actor_state(ctx->loop, self->id)));
    check_history(ctx->loop, self->id);
}

static void test_the_first_turn_is_init_then_the_start_signals_then_messages_R15(void)
{
    rig r;
    puppet a;
    play_open(&r, NULL);
    puppet_spawn(&r, &a, "a");
    a.during = note_state;
    CHECK_SAID(""); /* nothing of it ran inside jzx_spawn() */
    CHECK_STATE(&r, &a, JZX_STATE_CREATED);
    CHECK_EQ(jzx_actor_incarnation(r.loop, a.id), 1);
    tell(&r, &a, WORK);
    rig_idle(&r);
    CHECK_STATE(&r, &a, JZX_STATE_RUNNING);
    CHECK_SAID("a.init [starting] a.pre_start [starting] a.post_start [starting] a:1");
    tell(&r, &a, T_STOP);
    rig_idle(&r);
    CHECK(said_before("a.pre_stop", "a.post_stop [stopping]"));
    CHECK(said_before("a.post_stop [stopping]", "a.deinit [stopping]"));
    CHECK(said_before("a.deinit", "a.end(normal)"));
    CHECK_ENDED(&r, &a, JZX_REASON_NORMAL);
    CHECK_EQ(jzx_actor_incarnation(r.loop, a.id), 0);
    play_close(&r);
}

static void test_an_actor_with_nothing_to_start_is_running_at_once_R14(void)
{
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, NULL, NULL);
    jzx_state past[JZX_HISTORY_MAX];
    CHECK_EQ(jzx_actor_state(r.loop, s->id), JZX_STATE_RUNNING);
    CHECK_EQ(jzx_actor_incarnation(r.loop, s->id), 1);
    check_history(r.loop, s->id);
    jzx_actor_facts facts;
    REQUIRE_OK(jzx_actor_inspect(r.loop, s->id, &facts));
    CHECK_EQ(facts.state, JZX_STATE_RUNNING);
    CHECK_EQ(facts.incarnation, 1);
    CHECK_OK(jzx_loop_run_until_started(r.loop, s->id)); /* it is already */
    CHECK_OK(jzx_stop(r.loop, s->id));
    rig_idle(&r);
    CHECK_EQ(jzx_actor_state(r.loop, s->id), JZX_STATE_TERMINATED);
    CHECK_EQ(jzx_actor_history(r.loop, s->id, past, COUNT_OF(past)) <= 1, 1);
    CHECK_EQ(jzx_actor_incarnation(r.loop, s->id), 0);
    CHECK_EQ(jzx_actor_children(r.loop, s->id, NULL, 0), 0);
    for (jzx_actor_id never = 0; never < 3; never++) {
        CHECK_EQ(jzx_actor_state(r.loop, never), JZX_STATE_TERMINATED);
        CHECK_EQ(jzx_actor_incarnation(r.loop, never), 0);
    }
    CHECK_EQ(jzx_loop_run_until_started(r.loop, s->id), JZX_ERR_NO_SUCH_ACTOR);
    rig_close(&r);
    puppet_free(s);
}

static void fail_on_even_lives(jzx_context *ctx, puppet *self, uint32_t what)
{
    (void)ctx;
    self->answer[IN_INIT] = what == IN_INIT && self->ups % 2 == 1 && self->number++ % 2 == 0
                                ? JZX_BEHAVIOR_FAIL
                                : JZX_BEHAVIOR_OK;
}

static void spawn_restartable(jzx_context *ctx, puppet *self)
{
    puppet *child = self->arg;
    jzx_supervisor_spec policy = {.intensity = 100};
    jzx_spawn_opts opts = puppet_opts(child);
    REQUIRE_OK(jzx_set_child_policy(ctx, &policy));
    puppet_spawn_with(ctx->loop, child, &opts);
}

static void test_the_last_ten_states_are_remembered_R14(void)
{
    rig r;
    puppet parent, a;
    play_open(&r, NULL);
    puppet_name(&a, "a");
    a.during = fail_on_even_lives;
    puppet_spawn(&r, &parent, "parent");
    parent.arg = &a;
    inside(&r, &parent, spawn_restartable);
    for (uint64_t round = 0; round < 12; round++) {
        jzx_state past[JZX_HISTORY_MAX], few[3];
        size_t count = jzx_actor_history(r.loop, a.id, past, COUNT_OF(past));
        check_history(r.loop, a.id);
        CHECK(round == 0 ? count == 3 : round < 3 || count == JZX_HISTORY_MAX);
        CHECK_EQ(jzx_actor_history(r.loop, a.id, NULL, 0), count);
        CHECK_EQ(jzx_actor_history(r.loop, a.id, few, COUNT_OF(few)), count);
        CHECK_EQ(jzx_actor_incarnation(r.loop, a.id), 1 + a.restarts);
        tell(&r, &a, round % 3 == 0 ? T_PANIC : T_FAIL);
        rig_idle(&r);
        CHECK_STATE(&r, &a, JZX_STATE_RUNNING);
    }
    CHECK(a.restarts > 12); /* failed starts count as well */
    CHECK_EQ(a.ups, a.deinits + 1);
    play_close(&r);
}

static void use_everything(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what != IN_INIT) {
        return;
    }
    puppet *child = self->arg;
    jzx_spawn_opts opts = puppet_opts(child);
    CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, MORE));
    CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 10, NULL, 0, MORE + 1, NULL));
    puppet_spawn_with(ctx->loop, child, &opts);
    CHECK_OK(jzx_watch(ctx->loop, child->id, 0, NULL));
    CHECK(jzx_message_take(ctx) == NULL);
    jzx_counters c;
    jzx_loop_counters(ctx->loop, &c);
    CHECK_EQ(c.in_hand, 0); /* no message is in hand */
}

static void test_init_may_send_spawn_watch_and_arm_timers_R15(void)
{
    rig r;
    puppet a, child;
    play_open(&r, NULL);
    puppet_name(&child, "child");
    puppet_spawn(&r, &a, "a");
    a.arg = &child;
    a.during = use_everything;
    tell(&r, &a, WORK); /* was there first */
    rig_idle(&r);
    CHECK(said_before("a.post_start", "a:1"));
    CHECK(said_before("a:1", "a:2"));
    CHECK(said_before("a.init", "child.init"));
    jzx_actor_id children[2] = {0};
    CHECK_EQ(jzx_actor_children(r.loop, a.id, children, 2), 1);
    CHECK_EQ(children[0], child.id);
    said_clear();
    run_ms(&r, 20);
    CHECK_SAID("a:3");
    tell(&r, &child, T_FAIL);
    rig_idle(&r);
    CHECK_EQ(said_times("a<terminated child failed 7>"), 1);
    CHECK_EQ(said_times("a<child_failed child failed 7>"), 1);
    play_close(&r);
}

static void leave_traces(jzx_context *ctx, puppet *self, uint32_t what)
{
    puppet *other = self->arg;
    if (what == self->number) {
        CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 1, NULL, 0, WORK, NULL));
        CHECK_OK(jzx_watch(ctx->loop, other->id, 0, NULL));
        CHECK_OK(jzx_link(ctx->loop, other->id));
        CHECK_OK(jzx_notify_room(ctx->loop, other->id));
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, WORK));
        CHECK_OK(jzx_send_u64(ctx->loop, other->id, 0, MORE));
    }
}

typedef struct bad_start {
    uint32_t where; /* IN_INIT, PRE_START or POST_START */
    jzx_behavior_result answer;
    bool panics;
} bad_start;

static void spawn_arg(jzx_context *ctx, puppet *self)
{
    puppet *child = self->arg;
    jzx_spawn_opts opts = puppet_opts(child);
    opts.on_signal = puppet_signal;
    puppet_spawn_with(ctx->loop, child, &opts);
    CHECK_OK(jzx_watch(ctx->loop, child->id, 0, NULL));
    CHECK_OK(jzx_send_u64(ctx->loop, child->id, 0, WORK));
}

static void check_bad_start(const bad_start *it)
{
    rig r;
    puppet parent, a, other;
    play_open(&r, NULL);
    puppet_spawn(&r, &parent, "parent");
    puppet_spawn(&r, &other, "other");
    puppet_name(&a, "a");
    a.arg = &other;
    a.during = leave_traces;
    a.number = it->where;
    a.answer[it->where] = it->answer;
    a.panics[it->where] = it->panics;
    parent.arg = &a;
    rig_idle(&r);
    said_clear();
    inside(&r, &parent, spawn_arg);
    CHECK_ENDED(&r, &a, JZX_REASON_START_FAILED);
    CHECK_EQ(a.ended.code, it->panics ? (int32_t)it->where + 100 : 0);
    CHECK_STR(a.ended.text, it->panics ? "as told" : "");
    CHECK_EQ(a.fails, 1);
    CHECK_EQ(a.handled, 0);
    CHECK_EQ(a.ups, it->where == IN_INIT ? 0 : 1);
    CHECK_EQ(a.deinits, a.ups); /* what init built before it failed it releases itself */
    CHECK_EQ(said_times("a.post_stop"), a.ups);
    CHECK_EQ(said_times("a.pre_stop"), 0);
    CHECK_EQ(said_times("parent<child_failed a start_failed"), 1);
    CHECK_EQ(said_times("parent<terminated a start_failed"), 1);
    CHECK_EQ(other.ends, 1); /* it was linked, and a failed start is no normal end */
    CHECK_EQ(other.ended.kind, JZX_REASON_LINKED);
    CHECK_EQ(other.ended.from, a.id);
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_STOPPED] >= 2, 1);
    CHECK_EQ(rig_counters(&r).timers, 0);
    CHECK_EQ(rig_counters(&r).watches, 0);
    play_close(&r);
}

static void test_a_start_that_fails_leaves_no_zombie_and_the_parent_hears_it_R15(void)
{
    static const bad_start cases[] = {
        {IN_INIT, JZX_BEHAVIOR_FAIL, false},
        {IN_INIT, (jzx_behavior_result)77, false},
        {IN_INIT, (jzx_behavior_result)-1, false},
        {IN_INIT, JZX_BEHAVIOR_DEFER, false},
        {IN_INIT, JZX_BEHAVIOR_OK, true},
        {JZX_SIGNAL_PRE_START, JZX_BEHAVIOR_FAIL, false},
        {JZX_SIGNAL_PRE_START, (jzx_behavior_result)77, false},
        {JZX_SIGNAL_PRE_START, JZX_BEHAVIOR_DEFER, false},
        {JZX_SIGNAL_PRE_START, JZX_BEHAVIOR_OK, true},
        {JZX_SIGNAL_POST_START, JZX_BEHAVIOR_FAIL, false},
        {JZX_SIGNAL_POST_START, JZX_BEHAVIOR_OK, true},
    };
    for (size_t i = 0; i < COUNT_OF(cases) && jzt_failures() == 0; i++) {
        check_bad_start(&cases[i]);
        if (jzt_failures() > 0) {
            fprintf(stderr, "  case %zu; the journal: %s\n", i, said);
        }
    }
}

static jzx_behavior_result fail_with_words(jzx_context *ctx, void *arg)
{
    (void)arg;
    return jzx_fail(ctx, -5, "no such table");
}

static void test_a_failed_init_gives_its_code_and_words_R17(void)
{
    rig r;
    puppet a;
    play_open(&r, NULL);
    puppet_name(&a, "a");
    jzx_spawn_opts opts = puppet_opts(&a);
    opts.init = fail_with_words;
    puppet_spawn_with(r.loop, &a, &opts);
    CHECK_EQ(jzx_loop_run_until_started(r.loop, a.id), JZX_ERR_START_FAILED);
    CHECK_ENDED(&r, &a, JZX_REASON_START_FAILED);
    CHECK_EQ(a.ended.code, -5);
    CHECK_STR(a.ended.text, "no such table");
    char text[64];
    CHECK(jzx_reason_format(&a.ended, text, sizeof text) > 0);
    CHECK_STR(text, "start_failed -5: no such table");
    play_close(&r);
}

static void test_an_init_that_says_stop_does_not_start_and_does_not_fail_R15(void)
{
    rig r;
    puppet parent, a;
    play_open(&r, NULL);
    puppet_spawn(&r, &parent, "parent");
    puppet_name(&a, "a");
    a.answer[IN_INIT] = JZX_BEHAVIOR_STOP;
    parent.arg = &a;
    rig_idle(&r);
    said_clear();
    inside(&r, &parent, spawn_arg);
    CHECK_ENDED(&r, &a, JZX_REASON_NORMAL);
    CHECK_EQ(a.fails, 0);
    CHECK_EQ(a.handled + a.ups + a.deinits, 0);
    CHECK_EQ(said_times("a.p"), 0); /* no signal: it never was */
    CHECK_EQ(said_times("parent<child_ended a normal>"), 1);
    CHECK_EQ(said_times("parent<terminated a normal>"), 1);
    CHECK_DEAD(&r, DEAD(JZX_DEAD_STOPPED, WORK));
    play_close(&r);
}

static void test_run_until_started_waits_for_running_and_for_nothing_else_R15(void)
{
    rig r;
    puppet a;
    play_open(&r, NULL);
    puppet_spawn(&r, &a, "a");
    tell(&r, &a, WORK);
    CHECK_OK(jzx_loop_run_until_started(r.loop, a.id));
    CHECK_STATE(&r, &a, JZX_STATE_RUNNING);
    CHECK_EQ(a.ups, 1);
    CHECK_OK(jzx_loop_run_until_started(r.loop, a.id));
    rig_idle(&r);
    CHECK_EQ(a.handled, 1);
    play_close(&r);
}

static void run_until_started_inside(jzx_context *ctx, puppet *self)
{
    (void)self;
    CHECK_EQ(jzx_loop_run_until_started(ctx->loop, ctx->self), JZX_ERR_BUSY);
    CHECK_EQ(jzx_loop_shutdown(ctx->loop, 0, NULL), JZX_ERR_BUSY);
}

static void test_waiting_inside_an_actor_is_refused_R35(void)
{
    rig r;
    puppet a;
    play_open(&r, NULL);
    puppet_spawn(&r, &a, "a");
    inside(&r, &a, run_until_started_inside);
    CHECK_STATE(&r, &a, JZX_STATE_RUNNING);
    play_close(&r);
}

static void test_a_behavior_fails_by_every_word_it_can_say_R17(void)
{
    static const struct {
        uint32_t tag, kind;
        int32_t code;
        const char *text;
    } cases[] = {
        {T_FAIL, JZX_REASON_FAILED, 7, "as told"},  {T_PANIC, JZX_REASON_PANIC, 8, "as told"},
        {T_ODD, JZX_REASON_FAILED, 0, ""},          {T_DEFER, JZX_REASON_FAILED, 0, ""},
        {T_STOP, JZX_REASON_NORMAL, 0, ""},         {T_SELF_STOP, JZX_REASON_SHUTDOWN, 0, ""},
        {T_SELF_DRAIN, JZX_REASON_SHUTDOWN, 0, ""}, {T_SELF_KILL, JZX_REASON_KILLED, 0, ""}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rig r;
        puppet a;
        play_open(&r, NULL);
        puppet_spawn(&r, &a, "a");
        rig_idle(&r);
        said_clear();
        tell(&r, &a, cases[i].tag);
        rig_idle(&r);
        CHECK_ENDED(&r, &a, cases[i].kind);
        CHECK_EQ(a.ended.code, cases[i].code);
        CHECK_STR(a.ended.text, cases[i].text);
        bool normal = jzx_reason_is_normal(cases[i].kind) != 0;
        bool killed = cases[i].kind == JZX_REASON_KILLED;
        CHECK_EQ(said_times("a.pre_stop"), normal ? 1 : 0);
        CHECK_EQ(said_times("a.post_stop"), killed ? 0 : 1);
        CHECK_EQ(a.deinits, 1);
        CHECK(killed || a.fails == (normal ? 0 : 1));
        play_close(&r);
    }
}

static void fail_twice(jzx_context *ctx, puppet *self)
{
    (void)self;
    static const char LONG[] = "a text of more than ninety-five bytes, so that what does not fit "
                               "into a reason is cut off and nothing behind it is touched";
    CHECK_EQ(jzx_fail(ctx, 1, LONG), JZX_BEHAVIOR_FAIL);
    CHECK_EQ(jzx_fail(ctx, 2, NULL), JZX_BEHAVIOR_FAIL); /* the last words count */
}

static void test_words_of_a_failure_that_was_not_returned_are_forgotten_R17(void)
{
    rig r;
    puppet a;
    play_open(&r, NULL);
    puppet_spawn(&r, &a, "a");
    inside(&r, &a, fail_twice);
    CHECK_STATE(&r, &a, JZX_STATE_RUNNING); /* it said so and returned OK */
    CHECK_EQ(a.fails, 0);
    tell(&r, &a, T_ODD);
    rig_idle(&r);
    CHECK_ENDED(&r, &a, JZX_REASON_FAILED);
    CHECK_EQ(a.ended.code, 0); /* not those of an earlier message */
    CHECK_STR(a.ended.text, "");
    play_close(&r);
}

static const jzt_test tests[] = {
    {"every_cell_of_the_transition_table_R14", test_every_cell_of_the_transition_table_R14},
    {"states_and_events_that_are_none_lead_nowhere_R14",
     test_states_and_events_that_are_none_lead_nowhere_R14},
    {"whoever_lives_can_get_to_terminated_R14", test_whoever_lives_can_get_to_terminated_R14},
    {"the_first_turn_is_init_then_the_start_signals_then_messages_R15",
     test_the_first_turn_is_init_then_the_start_signals_then_messages_R15},
    {"an_actor_with_nothing_to_start_is_running_at_once_R14",
     test_an_actor_with_nothing_to_start_is_running_at_once_R14},
    {"the_last_ten_states_are_remembered_R14", test_the_last_ten_states_are_remembered_R14},
    {"init_may_send_spawn_watch_and_arm_timers_R15",
     test_init_may_send_spawn_watch_and_arm_timers_R15},
    {"a_start_that_fails_leaves_no_zombie_and_the_parent_hears_it_R15",
     test_a_start_that_fails_leaves_no_zombie_and_the_parent_hears_it_R15},
    {"a_failed_init_gives_its_code_and_words_R17", test_a_failed_init_gives_its_code_and_words_R17},
    {"an_init_that_says_stop_does_not_start_and_does_not_fail_R15",
     test_an_init_that_says_stop_does_not_start_and_does_not_fail_R15},
    {"run_until_started_waits_for_running_and_for_nothing_else_R15",
     test_run_until_started_waits_for_running_and_for_nothing_else_R15},
    {"waiting_inside_an_actor_is_refused_R35", test_waiting_inside_an_actor_is_refused_R35},
    {"a_behavior_fails_by_every_word_it_can_say_R17",
     test_a_behavior_fails_by_every_word_it_can_say_R17},
    {"words_of_a_failure_that_was_not_returned_are_forgotten_R17",
     test_words_of_a_failure_that_was_not_returned_are_forgotten_R17},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
