/* Goal: "spawn it and restart it" is one call (R18, R19): jzx_spawn_opts.restart, for children of
 * the root and of any actor; and jzx_config.root_policy does it for all of the root's children.
 * Method: simulation; kids of the supervisor suites, without a supervisor. */
#include "sup_fixture.h"

static void root_open(tree *t, const jzx_supervisor_spec *policy)
{
    jzx_sim_opts sim = {.seed = jzt_seed() | 1};
    jzx_config config = {.root_policy = policy};
    memset(t, 0, sizeof *t);
    t->r = rig_open_with(&config, &sim);
    t->loop = t->r.loop;
    REQUIRE_OK(jzx_loop_set_observer(t->loop, &tree_observer, t));
}

static jzx_spawn_opts kid_opts(kid *k, uint32_t restart)
{
    return (jzx_spawn_opts){.behavior = puppet_behavior,
                            .state = k,
                            .init = puppet_init,
                            .deinit = puppet_deinit,
                            .on_signal = puppet_signal,
                            .name = k->id,
                            .restart = restart};
}

static kid *spawn_kid(tree *t, const char *id, uint32_t restart)
{
    kid *k = kid_new(t, id);
    jzx_spawn_opts opts = kid_opts(k, restart);
    puppet_spawn_with(t->loop, &k->me, &opts);
    tree_idle(t);
    return k;
}

/* Every way to end, for every kind of restart. A stop ends it for good. */
static void test_each_kind_is_restarted_after_what_it_says_R18(void)
{
    static const struct {
        uint32_t restart, reason;
        bool again;
    } rows[] = {
        {JZX_RESTART_DEFAULT, JZX_REASON_FAILED, false},
        {JZX_RESTART_NEVER, JZX_REASON_FAILED, false},
        {JZX_RESTART_TRANSIENT, JZX_REASON_FAILED, true},
        {JZX_RESTART_TRANSIENT, JZX_REASON_PANIC, true},
        {JZX_RESTART_TRANSIENT, JZX_REASON_KILLED, true},
        {JZX_RESTART_TRANSIENT, JZX_REASON_NORMAL, false},
        {JZX_RESTART_TRANSIENT, JZX_REASON_SHUTDOWN, false},
        {JZX_RESTART_PERMANENT, JZX_REASON_FAILED, true},
        {JZX_RESTART_PERMANENT, JZX_REASON_PANIC, true},
        {JZX_RESTART_PERMANENT, JZX_REASON_KILLED, true},
        {JZX_RESTART_PERMANENT, JZX_REASON_NORMAL, true},
        {JZX_RESTART_PERMANENT, JZX_REASON_SHUTDOWN, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        tree t;
        root_open(&t, NULL);
        kid *k = spawn_kid(&t, "k", rows[i].restart);
        jzx_actor_id id = k->me.id;
        kid_end(k, rows[i].reason);
        if (rows[i].again) {
            KID_CHECK_LIFE(k, id, 2);
        } else {
            CHECK_EQ(jzx_actor_state(t.loop, id), JZX_STATE_TERMINATED);
            CHECK_EQ(k->me.inits, 1);
        }
        CHECK_EQ(jzx_loop_done(t.loop), !rows[i].again);
        tree_close(&t);
    }
}

/* Its own budget: 1 in 5 s unless it says otherwise. Beyond it, it ends, and nobody else. */
static void test_it_has_a_budget_of_its_own_R19(void)
{
    static const struct {
        uint32_t intensity, period_ms, lives;
    } rows[] = {{0, 0, 2}, {3, 0, 4}, {JZX_INTENSITY_NEVER, 0, 1}, {10, 500, 11}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        tree t;
        root_open(&t, NULL);
        kid *other = spawn_kid(&t, "other", JZX_RESTART_TRANSIENT);
        kid *k = kid_new(&t, "k");
        jzx_spawn_opts opts = kid_opts(k, JZX_RESTART_TRANSIENT);
        opts.restart_intensity = rows[i].intensity;
        opts.restart_period_ms = rows[i].period_ms;
        puppet_spawn_with(t.loop, &k->me, &opts);
        tree_idle(&t);
        for (uint32_t life = 1; life <= rows[i].lives; life++) {
            KID_CHECK_LIFE(k, k->me.id, life);
            kid_end(k, JZX_REASON_FAILED);
        }
        CHECK_EQ(kid_state_of(k), JZX_STATE_TERMINATED);
        CHECK_STR(words_take(&t.escalations), ""); /* nobody gave up */
        KID_CHECK_LIFE(other, other->me.id, 1);
        tree_close(&t);
    }
}

static void test_a_window_that_passed_counts_no_more_R19(void)
{
    tree t;
    root_open(&t, NULL);
    kid *k = spawn_kid(&t, "k", JZX_RESTART_TRANSIENT);
    for (uint32_t life = 2; life < 6; life++) {
        kid_end(k, JZX_REASON_FAILED);
        KID_CHECK_LIFE(k, k->me.id, life);
        tree_pass(&t, 5001);
    }
    tree_close(&t);
}

static void test_it_backs_off_and_a_stop_wins_R18(void)
{
    tree t;
    root_open(&t, NULL);
    kid *k = kid_new(&t, "k");
    jzx_spawn_opts opts = kid_opts(k, JZX_RESTART_TRANSIENT);
    opts.restart_intensity = 100;
    opts.backoff_min_ms = 50;
    opts.backoff_max_ms = 100;
    k->plan = "offo";
    puppet_spawn_with(t.loop, &k->me, &opts);
    tree_idle(&t);
    kid_end(k, JZX_REASON_FAILED);
    CHECK_EQ(kid_state_of(k), JZX_STATE_RESTARTING);
    kid_tell(k, KID_NOTE, 0); /* waits for the next life */
    CHECK_EQ(jzx_loop_done(t.loop), 0);
    tree_pass(&t, 300);
    REQUIRE_EQ(k->me.inits, 4);
    CHECK((k->at_ns[2] - k->at_ns[1]) / MS >= 100 && (k->at_ns[2] - k->at_ns[1]) / MS <= 102);
    CHECK_EQ(k->me.handled, 2);
    kid_end(k, JZX_REASON_FAILED);
    CHECK_OK(jzx_stop(t.loop, k->me.id));
    tree_pass(&t, 1000);
    CHECK_EQ(k->me.inits, 4);
    CHECK_EQ(kid_state_of(k), JZX_STATE_TERMINATED);
    CHECK(jzx_loop_done(t.loop));
    tree_close(&t);
}

static void test_a_first_start_that_fails_is_its_end_R15(void)
{
    tree t;
    root_open(&t, NULL);
    kid *k = kid_new(&t, "k");
    k->plan = "fo";
    jzx_spawn_opts opts = kid_opts(k, JZX_RESTART_PERMANENT);
    puppet_spawn_with(t.loop, &k->me, &opts);
    tree_pass(&t, 1000);
    CHECK_EQ(k->me.inits, 1);
    CHECK_EQ(kid_state_of(k), JZX_STATE_TERMINATED);
    CHECK_STR(words_take(&t.ends), "k:start_failed");
    tree_close(&t);
}

static void test_what_cannot_be_is_refused_R18(void)
{
    tree t;
    root_open(&t, NULL);
    kid *k = kid_new(&t, "k");
    const jzx_spawn_opts good = kid_opts(k, JZX_RESTART_TRANSIENT);
    static const struct {
        uint32_t restart, intensity, period, min, max;
        jzx_err err;
    } rows[] = {
        {4, 0, 0, 0, 0, JZX_ERR_INVALID_ARG},
        {JZX_RESTART_TRANSIENT, JZX_INTENSITY_MAX + 1, 0, 0, 0, JZX_ERR_TOO_BIG},
        {JZX_RESTART_TRANSIENT, 0, 0, 2, 1, JZX_ERR_INVALID_ARG},
        {JZX_RESTART_DEFAULT, 3, 0, 0, 0, JZX_ERR_INVALID_ARG}, /* it is not restarted */
        {JZX_RESTART_DEFAULT, 0, 3, 0, 0, JZX_ERR_INVALID_ARG},
        {JZX_RESTART_DEFAULT, 0, 0, 3, 0, JZX_ERR_INVALID_ARG},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        jzx_spawn_opts opts = good;
        opts.restart = rows[i].restart;
        opts.restart_intensity = rows[i].intensity;
        opts.restart_period_ms = rows[i].period;
        opts.backoff_min_ms = rows[i].min;
        opts.backoff_max_ms = rows[i].max;
        CHECK_EQ(jzx_spawn(t.loop, &opts, NULL), rows[i].err);
    }
    jzx_spawn_opts opts = good;
    opts.init = NULL;
    CHECK_EQ(jzx_spawn(t.loop, &opts, NULL), JZX_ERR_NOT_RESTARTABLE);
    CHECK_EQ(rig_counters(&t.r).live, 0);
    tree_close(&t);
}

/* Without init, with STATELESS: the state stays. */
static jzx_behavior_result count_and_fail(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    ++*(unsigned *)ctx->state;
    return JZX_BEHAVIOR_FAIL;
}

static void test_a_stateless_one_needs_no_init_R18(void)
{
    tree t;
    unsigned count = 0;
    jzx_actor_id id = JZX_NOBODY;
    root_open(&t, NULL);
    jzx_spawn_opts opts = {.behavior = count_and_fail,
                           .state = &count,
                           .flags = JZX_SPAWN_STATELESS,
                           .restart = JZX_RESTART_TRANSIENT,
                           .restart_intensity = 2};
    REQUIRE_OK(jzx_spawn(t.loop, &opts, &id));
    for (unsigned i = 1; i <= 3; i++) {
        REQUIRE_OK(jzx_send_u64(t.loop, id, 0, 1));
        tree_idle(&t);
        CHECK_EQ(count, i);
        CHECK_EQ(jzx_actor_incarnation(t.loop, id), i < 3 ? i + 1 : 0);
    }
    tree_close(&t);
}

/* Inside an actor without a policy: the same, and the parent hears when it is over. */
typedef struct parent {
    tree *t;
    kid *k;
    jzx_spawn_opts opts;
    jzx_err err;
    uint32_t failed, ended;
} parent;

static jzx_behavior_result parent_behavior(jzx_context *ctx, const jzx_message *msg)
{
    parent *p = ctx->state;
    const jzx_signal *signal = jzx_message_signal(msg);
    if (signal != NULL) {
        p->failed += signal->kind == JZX_SIGNAL_CHILD_FAILED;
        p->ended += signal->kind == JZX_SIGNAL_CHILD_ENDED;
    } else {
        p->err = puppet_try_spawn(ctx->loop, &p->k->me, &p->opts);
    }
    return JZX_BEHAVIOR_OK;
}

static void test_any_actor_can_have_a_child_restarted_R19(void)
{
    tree t;
    root_open(&t, NULL);
    kid *k = kid_new(&t, "k");
    parent p = {.t = &t, .k = k, .opts = kid_opts(k, JZX_RESTART_PERMANENT)};
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = parent_behavior, .state = &p, .name = "p"};
    REQUIRE_OK(jzx_spawn(t.loop, &opts, &id));
    REQUIRE_OK(jzx_send_u64(t.loop, id, 0, 1));
    tree_idle(&t);
    REQUIRE_OK(p.err);
    CHECK_EQ(jzx_actor_parent(t.loop, k->me.id), id);
    kid_end(k, JZX_REASON_NORMAL);
    KID_CHECK_LIFE(k, k->me.id, 2);
    CHECK_EQ(p.failed + p.ended, 0);
    kid_end(k, JZX_REASON_FAILED); /* one too many: it ends, the parent does not */
    CHECK_EQ(kid_state_of(k), JZX_STATE_TERMINATED);
    CHECK_EQ(p.failed, 1);
    CHECK_EQ(jzx_actor_state(t.loop, id), JZX_STATE_RUNNING);
    /* One that was not asked to be restarted is not, also beside one that was. */
    p.opts.restart = JZX_RESTART_DEFAULT;
    REQUIRE_OK(jzx_send_u64(t.loop, id, 0, 1));
    tree_idle(&t);
    kid_end(k, JZX_REASON_FAILED);
    CHECK_EQ(p.failed, 2);
    CHECK_OK(jzx_stop(t.loop, id));
    tree_idle(&t);
    CHECK(jzx_loop_done(t.loop));
    tree_close(&t);
}

/* The root's policy. */

static void test_a_root_with_a_policy_restarts_all_of_its_children_R19(void)
{
    const jzx_supervisor_spec policy = {.intensity = 3};
    tree t;
    root_open(&t, &policy);
    kid *a = spawn_kid(&t, "a", JZX_RESTART_DEFAULT);
    kid *b = spawn_kid(&t, "b", JZX_RESTART_DEFAULT);
    kid *c = spawn_kid(&t, "c", JZX_RESTART_NEVER);
    kid_end(a, JZX_REASON_FAILED);
    kid_end(b, JZX_REASON_PANIC);
    kid_end(c, JZX_REASON_FAILED);
    KID_CHECK_LIFE(a, a->me.id, 2);
    KID_CHECK_LIFE(b, b->me.id, 2);
    CHECK_EQ(kid_state_of(c), JZX_STATE_TERMINATED);
    kid_end(a, JZX_REASON_FAILED);
    KID_CHECK_LIFE(a, a->me.id, 3);
    (void)words_take(&t.ends);
    kid_end(a, JZX_REASON_FAILED); /* the budget is the root's: one too many */
    CHECK_STR(words_take(&t.ends), "a:failed");
    CHECK_STR(words_take(&t.escalations), "root:gave_up:a");
    KID_CHECK_LIFE(b, b->me.id, 2);
    kid_end(b, JZX_REASON_NORMAL); /* transient */
    CHECK(jzx_loop_done(t.loop));
    tree_close(&t);
}

static void test_a_roots_strategy_takes_its_children_along_R19(void)
{
    const jzx_supervisor_spec policy = {.strategy = JZX_ONE_FOR_ALL, .backoff_min_ms = 20};
    tree t;
    root_open(&t, &policy);
    kid *k[3] = {spawn_kid(&t, "a", 0), spawn_kid(&t, "b", 0), spawn_kid(&t, "c", 0)};
    (void)words_take(&t.life);
    kid_end(k[1], JZX_REASON_FAILED);
    CHECK_STR(words_take(&t.life), "-b -c -a");
    tree_pass(&t, 30);
    CHECK_STR(words_take(&t.life), "+a +b +c");
    kid_end(k[0], JZX_REASON_FAILED); /* gives up: nobody is above, so all end */
    CHECK_STR(words_take(&t.life), "-a -c -b");
    CHECK(jzx_loop_done(t.loop));
    tree_close(&t);
}

/* A child that started in the very tick in which a sibling failed goes along like all others,
 * whichever of the two the parent hears of first: nobody lives a life that began before the
 * failure. In a pool a sibling may not have started by then; then it starts once. */
static void test_a_sibling_that_has_just_started_is_taken_along_R19(void)
{
    const jzx_supervisor_spec policy = {.strategy = JZX_ONE_FOR_ALL, .backoff_min_ms = 20};
    for (size_t failing = 0; failing < 3; failing++) {
        static const char *const ids[] = {"a", "b", "c"};
        tree t;
        root_open(&t, &policy);
        kid *k[3];
        for (size_t i = 0; i < 3; i++) {
            k[i] = kid_new(&t, ids[i]);
            jzx_spawn_opts opts = kid_opts(k[i], JZX_RESTART_DEFAULT);
            puppet_spawn_with(t.loop, &k[i]->me, &opts);
        }
        kid_tell(k[failing], T_FAIL, 0);
        tree_idle(&t);
        tree_pass(&t, 30);
        const char *told = words_take(&t.life);
        const char *failed = strchr(told, '-');
        REQUIRE(failed != NULL);
        for (size_t i = 0; i < 3; i++) {
            const char start[] = {'+', ids[i][0], '\0'};
            CHECK(strstr(failed, start) != NULL);
            jzx_actor_facts facts;
            REQUIRE_OK(jzx_actor_inspect(t.loop, k[i]->me.id, &facts));
            uint32_t starts = 0;
            for (const char *at = told; (at = strstr(at, start)) != NULL; at++) {
                starts++;
            }
            CHECK_EQ(facts.incarnation, starts);
        }
        tree_close(&t);
    }
}

/* A supervisor that gave up is restarted by the root, with new children. */
static void test_a_root_with_a_policy_restarts_supervisors_R19(void)
{
    const jzx_supervisor_spec policy = {.intensity = 1};
    const jzx_supervisor_spec never = {.intensity = JZX_INTENSITY_NEVER};
    tree t;
    root_open(&t, &policy);
    kid *a = kid_new(&t, "a");
    jzx_child_spec child = kid_spec(a, JZX_PERMANENT);
    tree_start(&t, &never, &child, 1);
    jzx_actor_id sup = t.sup, old = a->me.id;
    kid_end(a, JZX_REASON_FAILED);
    CHECK_EQ(jzx_actor_state(t.loop, sup), JZX_STATE_RUNNING);
    CHECK_EQ(jzx_actor_incarnation(t.loop, sup), 2);
    CHECK(a->me.id != old);
    kid_end(a, JZX_REASON_FAILED);
    CHECK_EQ(jzx_actor_state(t.loop, sup), JZX_STATE_TERMINATED);
    CHECK(jzx_loop_done(t.loop));
    tree_close(&t);
}

static void test_bad_policies_of_the_root_are_refused_R19(void)
{
    static const struct {
        jzx_supervisor_spec policy;
        size_t size;
        uint32_t stop;
        jzx_err err;
    } rows[] = {
        {{.strategy = JZX_DYNAMIC}, 0, 0, JZX_ERR_BAD_SPEC},
        {{.auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT}, 0, 0, JZX_ERR_BAD_SPEC},
        {{.backoff_factor = 0.5}, 0, 0, JZX_ERR_BAD_SPEC},
        {{.intensity = JZX_INTENSITY_MAX + 1}, 0, 0, JZX_ERR_TOO_BIG},
        {{0}, 0, 2, JZX_ERR_INVALID_ARG},
        {{0}, sizeof(jzx_supervisor_spec), 1, JZX_OK},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        jzx_config config = {.root_policy = &rows[i].policy,
                             .root_policy_size = rows[i].size,
                             .root_stop = rows[i].stop};
        jzx_system_config sc = {.loop = &config};
        jzx_loop *loop = NULL;
        jzx_system *system = NULL;
        CHECK_EQ(jzx_loop_create(&config, &loop), rows[i].err);
        CHECK_EQ(jzx_system_create(&sc, &system), rows[i].err);
        CHECK_OK(jzx_loop_destroy(loop));
        CHECK_OK(jzx_system_destroy(system));
    }
}

/* R22: a shutdown ends what backs off, runs and restarts, and the loop can be used again. */
static void test_a_shutdown_ends_what_the_root_restarts_R22(void)
{
    const jzx_supervisor_spec policy = {
        .intensity = 100, .backoff_min_ms = 500, .strategy = JZX_REST_FOR_ONE};
    for (uint32_t round = 0; round < 2; round++) {
        tree t;
        root_open(&t, round == 0 ? NULL : &policy);
        for (uint32_t again = 0; again < 2; again++) {
            kid *k[3];
            static const char *const ids[] = {"a", "b", "c"};
            for (size_t i = 0; i < 3; i++) {
                k[i] = kid_new(&t, ids[i]);
                jzx_spawn_opts opts = kid_opts(k[i], JZX_RESTART_TRANSIENT);
                opts.backoff_min_ms = 500;
                puppet_spawn_with(t.loop, &k[i]->me, &opts);
            }
            tree_idle(&t);
            kid_end(k[1], JZX_REASON_FAILED);
            jzx_shutdown_report report;
            CHECK_OK(jzx_loop_shutdown(t.loop, 1000, &report));
            CHECK_EQ(report.stopped, 3);
            CHECK(report.duration_ns < 100 * MS);
            tree_pass(&t, 2000);
            CHECK_EQ(k[1]->me.inits, 1);
            CHECK_EQ(rig_counters(&t.r).live, 0);
        }
        tree_close(&t);
    }
}

/* Destroyed at any moment: nothing is left behind (tree_close() looks). */
static void test_a_destroyed_root_leaves_nothing_R4(void)
{
    tree t;
    root_open(&t, NULL);
    kid *a = spawn_kid(&t, "a", JZX_RESTART_PERMANENT);
    kid *b = kid_new(&t, "b");
    jzx_spawn_opts opts = kid_opts(b, JZX_RESTART_TRANSIENT);
    opts.backoff_min_ms = 1000;
    puppet_spawn_with(t.loop, &b->me, &opts);
    tree_idle(&t);
    kid_end(b, JZX_REASON_FAILED);
    kid_tell(a, T_FAIL, 0);
    tree_close(&t);
}

static const jzt_test tests[] = {
    {"each_kind_is_restarted_after_what_it_says_R18",
     test_each_kind_is_restarted_after_what_it_says_R18},
    {"it_has_a_budget_of_its_own_R19", test_it_has_a_budget_of_its_own_R19},
    {"a_window_that_passed_counts_no_more_R19", test_a_window_that_passed_counts_no_more_R19},
    {"it_backs_off_and_a_stop_wins_R18", test_it_backs_off_and_a_stop_wins_R18},
    {"a_first_start_that_fails_is_its_end_R15", test_a_first_start_that_fails_is_its_end_R15},
    {"what_cannot_be_is_refused_R18", test_what_cannot_be_is_refused_R18},
    {"a_stateless_one_needs_no_init_R18", test_a_stateless_one_needs_no_init_R18},
    {"any_actor_can_have_a_child_restarted_R19", test_any_actor_can_have_a_child_restarted_R19},
    {"a_root_with_a_policy_restarts_all_of_its_children_R19",
     test_a_root_with_a_policy_restarts_all_of_its_children_R19},
    {"a_roots_strategy_takes_its_children_along_R19",
     test_a_roots_strategy_takes_its_children_along_R19},
    {"a_sibling_that_has_just_started_is_taken_along_R19",
     test_a_sibling_that_has_just_started_is_taken_along_R19},
    {"a_root_with_a_policy_restarts_supervisors_R19",
     test_a_root_with_a_policy_restarts_supervisors_R19},
    {"bad_policies_of_the_root_are_refused_R19", test_bad_policies_of_the_root_are_refused_R19},
    {"a_shutdown_ends_what_the_root_restarts_R22", test_a_shutdown_ends_what_the_root_restarts_R22},
    {"a_destroyed_root_leaves_nothing_R4", test_a_destroyed_root_leaves_nothing_R4},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
