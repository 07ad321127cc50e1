/* Goal: any actor can be a parent with a policy (R19): every action, scope, limit and backoff by
 * jzx_set_child_policy(), a decider that says anything at all, and what belongs to the parent's
 * incarnation. Method: simulation in virtual time; a parent p with children a, b, c that fail when
 * told. The same engine under supervisors is tested elsewhere. */
#include "family.h"

enum { WORK = 1, MORE = 2 };

static void test_with_action_stop_the_child_ends_and_the_parent_hears_why_R19(void)
{
    rig r;
    family f;
    jzx_supervisor_spec policy = {.action = JZX_ACTION_STOP};
    family_open(&r, &f, NULL, &policy, 2, 0);
    tell(&r, &f.child[0], T_PANIC);
    rig_idle(&r);
    CHECK_ENDED(&r, &f.child[0], JZX_REASON_PANIC);
    CHECK_SAID("a:panic a.post_stop a.deinit a.end(panic 8) p<child_failed a panic 8>");
    CHECK_STATE(&r, &f.child[1], JZX_STATE_RUNNING);
    CHECK_EQ(f.child[0].restarts, 0);
    play_close(&r);
}

static void test_every_action_leads_where_it_says_R19(void)
{
    static const struct {
        uint32_t action;
        bool p_lives, a_lives;
        uint32_t incarnation;
        uint64_t ups;
    } cases[] = {
        {JZX_ACTION_RESTART, true, true, 2, 2},
        {JZX_ACTION_RESUME, true, true, 1, 1},
        {JZX_ACTION_STOP, true, false, 0, 1},
        {JZX_ACTION_ESCALATE, false, false, 0, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rig r;
        family f;
        jzx_supervisor_spec policy = {.action = cases[i].action};
        family_open(&r, &f, NULL, &policy, 2, 0);
        puppet *a = &f.child[0];
        tell(&r, a, T_FAIL);
        tell(&r, a, WORK);
        rig_idle(&r);
        CHECK_EQ(is_gone(&r, a), !cases[i].a_lives);
        CHECK_EQ(is_gone(&r, &f.p), !cases[i].p_lives);
        CHECK_EQ(is_gone(&r, &f.child[1]), !cases[i].p_lives); /* goes with its parent only */
        CHECK_EQ(jzx_actor_incarnation(r.loop, a->id), cases[i].incarnation);
        CHECK_EQ(a->ups, cases[i].ups);
        CHECK_EQ(a->handled, cases[i].a_lives ? 2 : 1);
        CHECK_EQ(a->fails, 1);
        CHECK_EQ(the_cast.escalations, cases[i].action == JZX_ACTION_ESCALATE ? 1 : 0);
        play_close(&r);
    }
}

static void test_an_escalation_names_the_child_and_goes_up_once_R19(void)
{
    rig r;
    family f;
    jzx_supervisor_spec policy = {.action = JZX_ACTION_ESCALATE};
    family_open(&r, &f, NULL, &policy, 2, 0);
    tell(&r, &f.child[0], T_FAIL);
    rig_idle(&r);
    CHECK_ENDED(&r, &f.p, JZX_REASON_ESCALATED);
    CHECK_EQ(f.p.ended.from, f.child[0].id);
    CHECK_EQ(f.p.fails, 1);
    CHECK_ENDED(&r, &f.child[0], JZX_REASON_FAILED);
    CHECK_ENDED(&r, &f.child[1], JZX_REASON_SHUTDOWN);
    CHECK_EQ(the_cast.escalations, 1);
    CHECK_EQ(the_cast.escalated_as, JZX_REASON_ESCALATED);
    CHECK_EQ(the_cast.escalated_for, f.child[0].id);
    CHECK_EQ(rig_counters(&r).escalations, 1);
    CHECK_EQ(said_times("p.pre_stop"), 0);
    CHECK_EQ(said_times("p.post_stop"), 1);
    play_close(&r);
}

static void test_a_resumed_child_keeps_its_state_timers_and_next_message_R18(void)
{
    rig r;
    family f;
    jzx_supervisor_spec policy = {.action = JZX_ACTION_RESUME, .intensity = JZX_INTENSITY_NEVER};
    family_open(&r, &f, NULL, &policy, 1, 0);
    puppet *a = &f.child[0];
    REQUIRE_OK(jzx_send_after(r.loop, a->id, 50, NULL, 0, MORE, NULL));
    for (int i = 0; i < 20; i++) { /* resuming costs nothing */
        tell(&r, a, i % 2 == 0 ? T_FAIL : T_PANIC);
        tell(&r, a, WORK);
    }
    rig_idle(&r);
    CHECK_STATE(&r, a, JZX_STATE_RUNNING);
    CHECK_EQ(a->handled, 40);
    CHECK_EQ(a->fails, 20);
    CHECK_EQ(a->ups, 1);
    CHECK_EQ(a->restarts, 0);
    CHECK_EQ(said_times("a."), 0); /* not one hook ran */
    run_ms(&r, 100);
    CHECK_EQ(said_times("a:2"), 1);
    play_close(&r);
}

static void fail_second_start(jzx_context *ctx, puppet *self, uint32_t what)
{
    (void)ctx;
    self->answer[IN_INIT] =
        what == IN_INIT && self->number++ == 0 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

static void test_what_cannot_be_resumed_is_restarted_R18(void)
{
    rig r;
    family f;
    jzx_supervisor_spec policy = {.action = JZX_ACTION_RESUME, .intensity = 10};
    family_open(&r, &f, NULL, &policy, 1, 0);
    puppet *a = &f.child[0];
    CHECK_OK(jzx_kill(r.loop, a->id)); /* its state is released already */
    rig_idle(&r);
    CHECK_STATE(&r, a, JZX_STATE_RUNNING);
    CHECK_EQ(jzx_actor_incarnation(r.loop, a->id), 2);
    CHECK_EQ(a->ups, 2);
    CHECK_EQ(said_times("a.post_stop"), 0);
    CHECK_EQ(said_times("a.post_restart(killed)"), 1);
    a->during = fail_second_start; /* there is no state to go on with */
    CHECK_OK(jzx_kill(r.loop, a->id));
    rig_idle(&r);
    CHECK_STATE(&r, a, JZX_STATE_RUNNING);
    CHECK_EQ(jzx_actor_incarnation(r.loop, a->id), 4);
    play_close(&r);
}

static void test_one_for_one_leaves_the_others_alone_R19(void)
{
    rig r;
    family f;
    jzx_supervisor_spec policy = {.strategy = JZX_ONE_FOR_ONE};
    family_open(&r, &f, NULL, &policy, 4, 0);
    tell(&r, &f.child[1], T_FAIL);
    rig_idle(&r);
    CHECK_SAID("b:fail b.pre_restart(failed 7) b.post_stop b.deinit b.init b.pre_start "
               "b.post_start b.post_restart(failed 7)");
    play_close(&r);
}

static void test_the_strategy_says_who_goes_along_and_in_which_order_R19(void)
{
    for (uint32_t all = 0; all < 2; all++) {
        rig r;
        family f;
        jzx_supervisor_spec policy = {.strategy = all ? JZX_ONE_FOR_ALL : JZX_REST_FOR_ONE};
        family_open(&r, &f, NULL, &policy, 4, 0);
        jzx_actor_id before[4];
        for (int n = 0; n < 4; n++) {
            before[n] = f.child[n].id;
        }
        tell(&r, &f.child[1], T_FAIL);
        rig_idle(&r);
        CHECK(said_before("d.deinit", "c.deinit")); /* stopped in reverse, each before the next */
        CHECK(said_before("c.deinit", "b.init"));
        CHECK(said_before("b.post_start", "c.init")); /* started in order, likewise */
        CHECK(said_before("c.post_start", "d.init"));
        CHECK_EQ(said_times("a.deinit"), all);
        CHECK(!all || said_before("c.deinit", "a.deinit"));
        CHECK(!all || said_before("a.post_start", "b.init"));
        CHECK_EQ(said_times(".end("), 0); /* nobody ended: ids and watches survive */
        CHECK_EQ(said_times("p<"), 0);
        for (int n = 0; n < 4; n++) {
            CHECK_EQ(f.child[n].id, before[n]);
            CHECK_STATE(&r, &f.child[n], JZX_STATE_RUNNING);
            CHECK_EQ(jzx_actor_incarnation(r.loop, before[n]), all || n > 0 ? 2 : 1);
            CHECK_EQ(f.child[n].restart.attempt, n == 1 ? 1 : 0); /* siblings did not fail */
        }
        play_close(&r);
    }
}

static void test_siblings_wait_in_stopped_with_open_mailboxes_R18(void)
{
    rig r;
    family f;
    jzx_supervisor_spec policy = {.strategy = JZX_ONE_FOR_ALL, .backoff_min_ms = 500};
    family_open(&r, &f, NULL, &policy, 3, 0);
    tell(&r, &f.child[2], WORK);
    tell(&r, &f.child[1], T_FAIL);
    run_ms(&r, 100);
    CHECK_STATE(&r, &f.child[0], JZX_STATE_STOPPED);
    CHECK_STATE(&r, &f.child[1], JZX_STATE_RESTARTING);
    CHECK_STATE(&r, &f.child[2], JZX_STATE_STOPPED);
    for (int i = 0; i < 3; i++) {
        CHECK(!f.child[i].up);
        tell(&r, &f.child[i], MORE);
    }
    said_clear();
    run_ms(&r, 350);
    CHECK_SAID("");
    run_ms(&r, 100);
    for (int i = 0; i < 3; i++) {
        CHECK_STATE(&r, &f.child[i], JZX_STATE_RUNNING);
        CHECK_EQ(f.child[i].ups, 2);
    }
    CHECK_EQ(said_times(":2"), 3);
    play_close(&r);
}

static void test_so_many_restarts_within_the_window_pass_and_the_next_gives_up_R19(void)
{
    static const struct {
        uint32_t intensity;
        uint64_t allowed;
    } cases[] = {{0, 1}, {1, 1}, {2, 2}, {17, 17}, {300, 300}, {JZX_INTENSITY_NEVER, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rig r;
        family f;
        jzx_supervisor_spec policy = {.intensity = cases[i].intensity, .period_ms = 3600000};
        family_open(&r, &f, NULL, &policy, 2, 0);
        puppet *a = &f.child[0];
        for (uint64_t n = 0; n < cases[i].allowed; n++) {
            puppet *who = &f.child[n % 2]; /* one budget for all of them */
            tell(&r, who, T_FAIL);
            rig_idle(&r);
            CHECK_STATE(&r, who, JZX_STATE_RUNNING);
            said_clear();
        }
        tell(&r, a, T_FAIL);
        rig_idle(&r);
        CHECK_ENDED(&r, &f.p, JZX_REASON_GAVE_UP);
        CHECK_EQ(f.p.ended.from, a->id);
        CHECK_ENDED(&r, a, JZX_REASON_FAILED);
        CHECK_ENDED(&r, &f.child[1], JZX_REASON_SHUTDOWN);
        CHECK_EQ(a->restarts + f.child[1].restarts, cases[i].allowed);
        CHECK_EQ(the_cast.escalations, 1);
        CHECK_EQ(the_cast.escalated_as, JZX_REASON_GAVE_UP);
        play_close(&r);
    }
}

static void test_the_window_slides_R19(void)
{
    rig r;
    family f;
    jzx_supervisor_spec policy = {.intensity = 2, .period_ms = 1000};
    family_open(&r, &f, NULL, &policy, 1, 0);
    puppet *a = &f.child[0];
    for (int i = 0; i < 50; i++) { /* never more than two in any second */
        tell(&r, a, T_FAIL);
        run_ms(&r, 505);
        REQUIRE(!is_gone(&r, a));
    }
    run_ms(&r, 1400);
    tell(&r, a, T_FAIL); /* three within 900 ms, wherever a tumbling window might end */
    run_ms(&r, 400);
    tell(&r, a, T_FAIL);
    run_ms(&r, 500);
    CHECK_STATE(&r, a, JZX_STATE_RUNNING);
    tell(&r, a, T_FAIL);
    rig_idle(&r);
    CHECK_ENDED(&r, &f.p, JZX_REASON_GAVE_UP);
    play_close(&r);
}

static void test_one_event_costs_one_however_many_it_takes_along_R19(void)
{
    rig r;
    family f;
    jzx_supervisor_spec policy = {.strategy = JZX_ONE_FOR_ALL, .intensity = 3};
    family_open(&r, &f, NULL, &policy, 5, 0);
    for (int i = 0; i < 3; i++) {
        tell(&r, &f.child[i], T_FAIL);
        rig_idle(&r);
        CHECK_STATE(&r, &f.p, JZX_STATE_RUNNING);
        CHECK_EQ(f.child[4].restarts, (uint64_t)i + 1);
    }
    tell(&r, &f.child[0], T_FAIL);
    rig_idle(&r);
    CHECK_ENDED(&r, &f.p, JZX_REASON_GAVE_UP);
    play_close(&r);
}

static void test_beyond_the_limit_only_the_child_may_end_R19(void)
{
    rig r;
    family f;
    jzx_supervisor_spec policy = {.intensity = 1, .on_limit = JZX_LIMIT_STOP_CHILD};
    family_open(&r, &f, NULL, &policy, 2, 0);
    tell(&r, &f.child[0], T_FAIL);
    rig_idle(&r);
    tell(&r, &f.child[0], T_FAIL);
    rig_idle(&r);
    CHECK_ENDED(&r, &f.child[0], JZX_REASON_FAILED);
    CHECK_STATE(&r, &f.p, JZX_STATE_RUNNING);
    CHECK_STATE(&r, &f.child[1], JZX_STATE_RUNNING);
    CHECK_EQ(said_times("p<child_failed a failed 7>"), 1);
    CHECK_EQ(the_cast.escalations, 0);
    play_close(&r);
}

static void test_delays_grow_from_min_to_max_and_start_over_after_a_quiet_time_R19(void)
{
    static const uint32_t want[] = {100, 200, 400, 800, 1000, 1000};
    rig r;
    family f;
    jzx_supervisor_spec policy = {
        .intensity = 1000, .backoff_min_ms = 100, .backoff_max_ms = 1000, .backoff_reset_ms = 3000};
    family_open(&r, &f, NULL, &policy, 1, 0);
    puppet *a = &f.child[0];
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT_OF(want); i++) {
            uint64_t begin = jzx_sim_now(r.sim);
            tell(&r, a, T_FAIL);
            run_ms(&r, want[i] - 10);
            CHECK_STATE(&r, a, JZX_STATE_RESTARTING);
            run_ms(&r, 15);
            CHECK_STATE(&r, a, JZX_STATE_RUNNING);
            CHECK_EQ(a->restart.delay_ms, want[i]);
            CHECK_EQ(a->restart.attempt, i + 1);
            CHECK(jzx_sim_now(r.sim) - begin >= want[i] * MS);
        }
        run_ms(&r, 3100);
    }
    play_close(&r);
}

static void test_jitter_stays_within_its_part_and_comes_from_the_seed_R30(void)
{
    uint32_t delays[2][20];
    uint64_t distinct = 0;
    for (int run = 0; run < 2; run++) {
        rig r;
        family f;
        jzx_supervisor_spec policy = {.intensity = 1000,
                                      .backoff_min_ms = 1000,
                                      .backoff_factor = 1.0,
                                      .backoff_jitter = 0.5};
        family_open(&r, &f, NULL, &policy, 1, 0);
        for (int i = 0; i < 20; i++) {
            tell(&r, &f.child[0], T_FAIL);
            run_ms(&r, 1600);
            delays[run][i] = f.child[0].restart.delay_ms;
            CHECK(delays[run][i] >= 500 && delays[run][i] <= 1500);
            distinct += i > 0 && delays[run][i] != delays[run][i - 1] ? 1 : 0;
        }
        CHECK_EQ(f.child[0].restarts, 20);
        play_close(&r);
    }
    CHECK(distinct > 20); /* it does vary */
    CHECK(memcmp(delays[0], delays[1], sizeof delays[0]) == 0);
}

/* Deciders. */
typedef struct verdict {
    uint32_t say;
    uint64_t asked;
    jzx_failure last;
    jzx_reason reason;
    char child_id[16];
} verdict;

static jzx_action decide(void *ctx, const jzx_failure *failure)
{
    verdict *v = ctx;
    v->asked++;
    v->last = *failure;
    v->reason = *failure->reason;
    snprintf(v->child_id, sizeof v->child_id, "%s", failure->child_id);
    return (jzx_action)v->say;
}

static void test_a_decider_sees_the_failure_and_its_word_counts_R19(void)
{
    rig r;
    family f;
    verdict v = {.say = JZX_ACTION_RESTART};
    jzx_supervisor_spec policy = {
        .action = JZX_ACTION_ESCALATE, .intensity = 10, .decide = decide, .decide_ctx = &v};
    family_open(&r, &f, NULL, &policy, 2, 0);
    puppet *b = &f.child[1];
    run_ms(&r, 250);
    for (uint32_t i = 1; i <= 3; i++) {
        tell(&r, b, T_PANIC);
        rig_idle(&r);
        CHECK_EQ(v.asked, i);
        CHECK_EQ(v.last.supervisor, f.p.id);
        CHECK_EQ(v.last.child, b->id);
        CHECK_STR(v.child_id, "b"); /* a plain parent's child: its name */
        CHECK_EQ(v.reason.kind, JZX_REASON_PANIC);
        CHECK_EQ(v.reason.code, 8);
        CHECK_EQ(v.last.attempt, i);
        CHECK_EQ(v.last.incarnation, i);
        CHECK(i > 1 ? v.last.uptime_ns < 10 * MS
                    : v.last.uptime_ns >= 250 * MS && v.last.uptime_ns < 300 * MS);
    }
    run_ms(&r, 31000); /* longer than the default of backoff_reset_ms: it starts over */
    tell(&r, b, T_FAIL);
    rig_idle(&r);
    CHECK_EQ(v.last.attempt, 1);
    CHECK_EQ(b->restart.attempt, 1);
    v.say = JZX_ACTION_STOP;
    tell(&r, b, T_FAIL);
    rig_idle(&r);
    CHECK_ENDED(&r, b, JZX_REASON_FAILED);
    tell(&r, &f.child[0], T_STOP); /* a normal end is no failure: nobody is asked */
    rig_idle(&r);
    CHECK_EQ(v.asked, 5);
    CHECK_STATE(&r, &f.p, JZX_STATE_RUNNING);
    play_close(&r);
}

static void test_a_decider_that_talks_nonsense_escalates_R19(void)
{
    static const uint32_t nonsense[] = {JZX_ACTIONS, 77, 256, 0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(nonsense); i++) {
        rig r;
        family f;
        verdict v = {.say = nonsense[i]};
        jzx_supervisor_spec policy = {.intensity = 10, .decide = decide, .decide_ctx = &v};
        family_open(&r, &f, NULL, &policy, 2, 0);
        tell(&r, &f.child[0], T_FAIL);
        rig_idle(&r);
        CHECK_EQ(v.asked, 1);
        CHECK_ENDED(&r, &f.p, JZX_REASON_ESCALATED);
        CHECK_ENDED(&r, &f.child[0], JZX_REASON_FAILED);
        play_close(&r);
    }
}

/* Policies come and go. */
static puppet stray[3];

static void spawn_stray(jzx_context *ctx, const jzx_supervisor_spec *policy, int i)
{
    jzx_spawn_opts opts = puppet_opts(&stray[i]);
    REQUIRE_OK(jzx_set_child_policy(ctx, policy));
    puppet_spawn_with(ctx->loop, &stray[i], &opts);
}

static void spawn_under_three_policies(jzx_context *ctx, puppet *self)
{
    (void)self;
    static const jzx_supervisor_spec restart = {.intensity = 5};
    static const jzx_supervisor_spec resume = {.action = JZX_ACTION_RESUME};
    spawn_stray(ctx, &restart, 0);
    spawn_stray(ctx, &resume, 1);
    spawn_stray(ctx, NULL, 2);
}

static void set_restart(jzx_context *ctx, puppet *self)
{
    (void)self;
    static const jzx_supervisor_spec restart = {.intensity = 5};
    REQUIRE_OK(jzx_set_child_policy(ctx, &restart));
}

static void fail_all_strays(rig *r)
{
    said_clear();
    for (int i = 0; i < 3; i++) {
        if (!is_gone(r, &stray[i])) {
            tell(r, &stray[i], T_FAIL);
        }
    }
    rig_idle(r);
}

static void test_a_policy_holds_for_all_that_were_spawned_under_one_R19(void)
{
    static const char *const names[] = {"x", "y", "z"};
    rig r;
    puppet p;
    play_open(&r, NULL);
    for (int i = 0; i < 3; i++) {
        puppet_name(&stray[i], names[i]);
    }
    puppet_spawn(&r, &p, "p");
    inside(&r, &p, spawn_under_three_policies);
    fail_all_strays(&r); /* the last rules are RESUME; z was spawned when there were none */
    for (int i = 0; i < 2; i++) {
        CHECK_STATE(&r, &stray[i], JZX_STATE_RUNNING);
        CHECK_EQ(stray[i].ups, 1);
    }
    CHECK_ENDED(&r, &stray[2], JZX_REASON_FAILED);
    CHECK_EQ(said_times("p<child_failed"), 1);
    inside(&r, &p, set_restart);
    fail_all_strays(&r);
    CHECK_EQ(stray[0].restarts, 1);
    CHECK_EQ(stray[1].restarts, 1);
    CHECK_EQ(said_times("p<child_failed"), 0);
    play_close(&r);
}

static void set_policy_once(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what == IN_INIT && self->number++ == 0) {
        jzx_supervisor_spec policy = {.intensity = 5};
        REQUIRE_OK(jzx_set_child_policy(ctx, &policy));
    }
    if (what == JZX_SIGNAL_POST_START) {
        jzx_spawn_opts opts = puppet_opts(self->arg);
        puppet_spawn_with(ctx->loop, self->arg, &opts);
    }
}

static void test_a_policy_belongs_to_the_incarnation_that_set_it_R18(void)
{
    rig r;
    family f;
    puppet g;
    jzx_supervisor_spec policy = {.intensity = 5};
    family_open(&r, &f, NULL, &policy, 1, 0);
    puppet_name(&g, "g");
    puppet *a = &f.child[0];
    a->arg = &g;
    a->during = set_policy_once;
    tell(&r, a, T_FAIL); /* its second life sets a policy, its third does not */
    rig_idle(&r);
    tell(&r, &g, T_FAIL);
    rig_idle(&r);
    CHECK_EQ(g.restarts, 1);
    tell(&r, a, T_FAIL);
    rig_idle(&r);
    said_clear();
    g.ends = 0;
    tell(&r, &g, T_FAIL);
    rig_idle(&r);
    CHECK_ENDED(&r, &g, JZX_REASON_FAILED);
    CHECK_EQ(said_times("a<child_failed g failed 7>"), 1);
    play_close(&r);
}

static const jzt_test tests[] = {
    {"with_action_stop_the_child_ends_and_the_parent_hears_why_R19",
     test_with_action_stop_the_child_ends_and_the_parent_hears_why_R19},
    {"every_action_leads_where_it_says_R19", test_every_action_leads_where_it_says_R19},
    {"an_escalation_names_the_child_and_goes_up_once_R19",
     test_an_escalation_names_the_child_and_goes_up_once_R19},
    {"a_resumed_child_keeps_its_state_timers_and_next_message_R18",
     test_a_resumed_child_keeps_its_state_timers_and_next_message_R18},
    {"what_cannot_be_resumed_is_restarted_R18", test_what_cannot_be_resumed_is_restarted_R18},
    {"one_for_one_leaves_the_others_alone_R19", test_one_for_one_leaves_the_others_alone_R19},
    {"the_strategy_says_who_goes_along_and_in_which_order_R19",
     test_the_strategy_says_who_goes_along_and_in_which_order_R19},
    {"siblings_wait_in_stopped_with_open_mailboxes_R18",
     test_siblings_wait_in_stopped_with_open_mailboxes_R18},
    {"so_many_restarts_within_the_window_pass_and_the_next_gives_up_R19",
     test_so_many_restarts_within_the_window_pass_and_the_next_gives_up_R19},
    {"the_window_slides_R19", test_the_window_slides_R19},
    {"one_event_costs_one_however_many_it_takes_along_R19",
     test_one_event_costs_one_however_many_it_takes_along_R19},
    {"beyond_the_limit_only_the_child_may_end_R19",
     test_beyond_the_limit_only_the_child_may_end_R19},
    {"delays_grow_from_min_to_max_and_start_over_after_a_quiet_time_R19",
     test_delays_grow_from_min_to_max_and_start_over_after_a_quiet_time_R19},
    {"jitter_stays_within_its_part_and_comes_from_the_seed_R30",
     test_jitter_stays_within_its_part_and_comes_from_the_seed_R30},
    {"a_decider_sees_the_failure_and_its_word_counts_R19",
     test_a_decider_sees_the_failure_and_its_word_counts_R19},
    {"a_decider_that_talks_nonsense_escalates_R19",
     test_a_decider_that_talks_nonsense_escalates_R19},
    {"a_policy_holds_for_all_that_were_spawned_under_one_R19",
     test_a_policy_holds_for_all_that_were_spawned_under_one_R19},
    {"a_policy_belongs_to_the_incarnation_that_set_it_R18",
     test_a_policy_belongs_to_the_incarnation_that_set_it_R18},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
