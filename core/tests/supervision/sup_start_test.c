/* Goal: how a supervisor and its children start, decline to start and fail to (R15, R19).
 * Method: simulation; the meaning of OTP's sup_start_* cases, which docs/reference/SPEC.md has. */
#include "sup_fixture.h"

static void test_a_supervisor_starts_its_children_and_stops_clean_R19(void)
{
    tree t;
    kid *kids[2];
    tree_open(&t);
    tree_start_kids(&t, NULL, kids, NULL, 2);
    CHECK_STR(words_take(&t.life), "+a +b");
    CHECK_COUNTS(&t, 2, 2, 0, 2);
    for (size_t i = 0; i < COUNT_OF(kids); i++) {
        jzx_actor_facts facts;
        REQUIRE_OK(jzx_actor_inspect(t.loop, kids[i]->me.id, &facts));
        CHECK_EQ(facts.parent, t.sup);
        CHECK_STR(facts.name, kids[i]->id);
        KID_CHECK_LIFE(kids[i], kids[i]->me.id, 1);
    }
    tree_stop_now(&t);
    CHECK_STR(words_take(&t.life), "-b -a");
    CHECK_STR(words_take(&t.ends), "b:shutdown a:shutdown sup:shutdown");
    CHECK_STR(words_take(&t.fails), "");
    tree_close(&t);
}

static void test_a_supervisor_without_children_starts_too(void)
{
    tree t;
    tree_open(&t);
    tree_start(&t, NULL, NULL, 0);
    CHECK_COUNTS(&t, 0, 0, 0, 0);
    tree_stop_now(&t);
    tree_close(&t);
}

static void test_a_child_starts_when_the_one_before_is_running_R19(void)
{
    tree t;
    kid *kids[3];
    jzx_child_spec specs[3];
    static const char *const ids[] = {"a", "b", "c"};
    tree_open(&t);
    for (size_t i = 0; i < COUNT_OF(kids); i++) {
        kids[i] = kid_new(&t, ids[i]);
        specs[i] = kid_spec(kids[i], JZX_PERMANENT);
    }
    tree_spawn(&t, NULL, specs, COUNT_OF(specs));
    CHECK_STR(words_take(&t.life), ""); /* nobody's code runs inside the call */
    for (int i = 0; i < 100 && jzx_actor_state(t.loop, t.sup) != JZX_STATE_RUNNING; i++) {
        for (size_t later = 1; later < COUNT_OF(kids); later++) {
            CHECK(kids[later]->me.inits == 0 || kid_state_of(kids[later - 1]) == JZX_STATE_RUNNING);
        }
        REQUIRE_OK(jzx_loop_step(t.loop, 0));
    }
    CHECK_EQ(jzx_actor_state(t.loop, t.sup), JZX_STATE_RUNNING);
    for (size_t i = 0; i < COUNT_OF(kids); i++) {
        CHECK_EQ(kid_state_of(kids[i]), JZX_STATE_RUNNING);
    }
    tree_close(&t);
}

static void test_a_supervisor_that_has_not_started_is_busy(void)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    kid *b = kid_new(&t, "b");
    jzx_child_spec spec = kid_spec(a, JZX_PERMANENT);
    jzx_child_spec late = kid_spec(b, JZX_PERMANENT);
    tree_spawn(&t, NULL, &spec, 1);
    CHECK_EQ(jzx_supervisor_start_child(t.loop, t.sup, &late, NULL), JZX_ERR_BUSY);
    CHECK_OK(jzx_loop_run_until_started(t.loop, t.sup));
    CHECK_OK(jzx_supervisor_start_child(t.loop, t.sup, &late, NULL));
    tree_idle(&t);
    CHECK_STR(words_take(&t.life), "+a +b");
    tree_close(&t);
}

/* sup_start_ignore_init, for any actor: there is no code of the program in a supervisor. */
static void test_an_actor_whose_init_says_stop_never_runs_R15(void)
{
    tree t;
    tree_open(&t);
    kid *k = kid_new(&t, "a");
    k->plan = "i";
    jzx_spawn_opts opts = {.behavior = puppet_behavior,
                           .init = puppet_init,
                           .state = k,
                           .deinit = puppet_deinit,
                           .on_signal = puppet_signal,
                           .name = "a"};
    jzx_actor_id id = 0;
    REQUIRE_OK(jzx_spawn(t.loop, &opts, &id));
    CHECK_EQ(jzx_loop_run_until_started(t.loop, id), JZX_ERR_START_FAILED);
    tree_idle(&t);
    CHECK_STR(words_take(&t.life), "~a");
    CHECK_STR(words_take(&t.ends), "a:normal");
    CHECK_STR(words_take(&t.fails), "");
    CHECK_EQ(jzx_actor_state(t.loop, id), JZX_STATE_TERMINATED);
    CHECK_EQ(rig_counters(&t.r).live, 0);
    CHECK_EQ(k->me.handled, 0);
    tree_close(&t);
}

static void test_a_child_that_declines_to_start_is_down_and_keeps_its_spec_R19(void)
{
    for (uint32_t mode = JZX_PERMANENT; mode <= JZX_TRANSIENT; mode++) {
        tree t;
        tree_open(&t);
        kid *a = kid_new(&t, "a");
        kid *b = kid_new(&t, "b");
        jzx_child_spec specs[] = {kid_spec(a, mode), kid_spec(b, JZX_PERMANENT)};
        a->plan = "io";
        tree_start(&t, NULL, specs, COUNT_OF(specs));
        CHECK_STR(words_take(&t.life), "~a +b");
        CHECK_EQ(tree_child(&t, "a").status, JZX_CHILD_DOWN);
        CHECK_EQ(tree_child(&t, "a").actor, 0);
        CHECK_COUNTS(&t, 2, 1, 0, 2);
        CHECK_OK(jzx_supervisor_restart_child(t.loop, t.sup, "a", NULL));
        tree_idle(&t);
        CHECK_STR(words_take(&t.life), "+a");
        CHECK_EQ(tree_child(&t, "a").status, JZX_CHILD_RUNNING);
        CHECK_STR(words_take(&t.fails), "");
        tree_stop_now(&t);
        tree_close(&t);
    }
}

static void test_a_child_that_is_added_and_declines_keeps_its_spec_R19(void)
{
    for (uint32_t mode = JZX_PERMANENT; mode <= JZX_TRANSIENT; mode++) {
        tree t;
        tree_open(&t);
        kid *a = kid_new(&t, "a");
        jzx_child_spec spec = kid_spec(a, mode);
        jzx_actor_id id = 0;
        a->plan = "i";
        tree_start(&t, NULL, NULL, 0);
        CHECK_OK(jzx_supervisor_start_child(t.loop, t.sup, &spec, &id));
        tree_idle(&t);
        CHECK_EQ(tree_status(&t, "a"), JZX_CHILD_DOWN);
        CHECK_EQ(jzx_actor_state(t.loop, id), JZX_STATE_TERMINATED);
        CHECK_EQ(jzx_supervisor_start_child(t.loop, t.sup, &spec, NULL), JZX_ERR_CHILD_PRESENT);
        CHECK_OK(jzx_supervisor_delete_child(t.loop, t.sup, "a"));
        CHECK_EQ(a->me.inits, 1);
        tree_close(&t);
    }
}

static void test_a_temporary_child_that_declines_to_start_is_forgotten_R19(void)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    kid *b = kid_new(&t, "b");
    jzx_child_spec specs[] = {kid_spec(a, JZX_TEMPORARY), kid_spec(b, JZX_TEMPORARY)};
    a->plan = "i";
    tree_start(&t, NULL, specs, COUNT_OF(specs));
    CHECK_STR(words_take(&t.life), "~a +b");
    CHECK_EQ(tree_status(&t, "a"), NO_CHILD);
    CHECK_COUNTS(&t, 1, 1, 0, 1);
    tree_stop_now(&t);
    tree_close(&t);
}

static void test_a_temporary_child_that_is_added_and_declines_is_forgotten_R19(void)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    jzx_child_spec spec = kid_spec(a, JZX_TEMPORARY);
    a->plan = "iio";
    tree_start(&t, NULL, NULL, 0);
    for (int i = 0; i < 3; i++) { /* its id can be used again at once */
        CHECK_OK(jzx_supervisor_start_child(t.loop, t.sup, &spec, NULL));
        tree_idle(&t);
        CHECK_EQ(tree_status(&t, "a"), i < 2 ? NO_CHILD : JZX_CHILD_RUNNING);
    }
    CHECK_STR(words_take(&t.life), "~a ~a +a");
    tree_close(&t);
}

static void declining_dynamic_child_is_forgotten(uint32_t mode)
{
    tree t;
    tree_open(&t);
    tree_start_dynamic(&t, NULL, mode, 0);
    (void)tree_add_dynamic(&t, "i");
    kid *other = tree_add_dynamic(&t, NULL);
    tree_idle(&t);
    CHECK_COUNTS(&t, 1, 1, 0, 1);
    jzx_child_info list[4];
    REQUIRE_EQ(jzx_supervisor_children(t.loop, t.sup, list, COUNT_OF(list)), 1);
    CHECK_EQ(list[0].actor, other->me.id);
    tree_stop_now(&t); /* there is no phantom to wait for */
    CHECK_STR(words_take(&t.ends), "kid:normal kid:shutdown sup:shutdown");
    CHECK_STR(words_take(&t.fails), "");
    tree_close(&t);
}

static void test_a_dynamic_temporary_child_that_declines_is_forgotten_R19(void)
{
    declining_dynamic_child_is_forgotten(JZX_TEMPORARY);
}

static void test_a_dynamic_permanent_child_that_declines_leaves_no_phantom_R19(void)
{
    declining_dynamic_child_is_forgotten(JZX_PERMANENT);
    declining_dynamic_child_is_forgotten(JZX_TRANSIENT);
}

/* The child at `bad` does not start: those before it are stopped in reverse order, those after it
 * never started, and the supervisor ends. */
static void start_fails(const char *plan, size_t bad, const char *life, const char *ends,
                        int32_t code)
{
    static const char *const ids[] = {"a", "b", "c", "d"};
    tree t;
    jzx_child_spec specs[COUNT_OF(ids)];
    kid *kids[COUNT_OF(ids)];
    tree_open(&t);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        kids[i] = kid_new(&t, ids[i]);
        specs[i] = kid_spec(kids[i], JZX_PERMANENT);
    }
    kids[bad]->plan = plan;
    jzx_supervisor_spec spec = {.intensity = 100}; /* a budget for restarts, not for starts */
    tree_spawn(&t, &spec, specs, COUNT_OF(ids));
    CHECK_EQ(jzx_loop_run_until_started(t.loop, t.sup), JZX_ERR_START_FAILED);
    tree_idle(&t);
    CHECK_STR(words_take(&t.life), life);
    const char *got = words_take(&t.ends);
    CHECK(words_in_order(got, ends));
    CHECK_EQ(words_count(got, "sup:start_failed"), 1);
    char word[32];
    snprintf(word, sizeof word, "%s:start_failed", ids[bad]);
    CHECK_EQ(words_count(got, word), 1);
    /* The cause is told where it happened. */
    CHECK(words_in_order(t.fails.text, word));
    CHECK_EQ(kids[bad]->me.inits, 1);
    CHECK_GONE(&t, JZX_REASON_START_FAILED);
    CHECK_EQ(t.sup_end.code, code);
    tree_close(&t);
}

/* sup_start_error_return: what init returns is no result at all. */
static void test_an_init_that_returns_nonsense_is_a_failed_start_R17(void)
{
    start_fails("?", 0, "!a", "sup:start_failed", 0);
}

static void test_a_child_that_cannot_start_undoes_the_start_in_reverse_order_R19(void)
{
    static const char *const plans[] = {"f", "p"};
    for (size_t i = 0; i < COUNT_OF(plans); i++) {
        start_fails(plans[i], 0, "!a", "sup:start_failed", KID_INIT_CODE);
        start_fails(plans[i], 2, "+a +b !c -b -a", "b:shutdown a:shutdown sup:start_failed",
                    KID_INIT_CODE);
        start_fails(plans[i], 3, "+a +b +c !d -c -b -a",
                    "c:shutdown b:shutdown a:shutdown sup:start_failed", KID_INIT_CODE);
    }
}

static void test_a_failed_start_is_told_with_its_code_and_text_R17(void)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    jzx_child_spec spec = kid_spec(a, JZX_TEMPORARY);
    a->plan = "f";
    tree_start(&t, NULL, NULL, 0);
    CHECK_OK(jzx_supervisor_start_child(t.loop, t.sup, &spec, NULL));
    tree_idle(&t);
    CHECK_STR(words_take(&t.fails), "a:start_failed");
    CHECK_EQ(t.last_fail.code, KID_INIT_CODE);
    CHECK_STR(t.last_fail.text, "told not to start");
    tree_close(&t);
}

/* The failure costs the budget nothing, and is nobody else's problem. */
static void test_an_added_child_that_cannot_start_is_forgotten_again_R19(void)
{
    static const char *const plans[] = {"f", "p", "?"};
    for (size_t i = 0; i < 3 * COUNT_OF(plans); i++) {
        tree t;
        kid *other = NULL;
        tree_open(&t);
        tree_start_kids(&t, NULL, &other, NULL, 1);
        jzx_actor_id other_id = other->me.id;
        kid *b = kid_new(&t, "b");
        b->plan = plans[i / 3];
        jzx_child_spec spec = kid_spec(b, (uint32_t)(i % 3));
        spec.drop_arg = kid_drop_arg;
        jzx_actor_id id = 0;
        for (uint32_t tries = 1; tries <= 5; tries++) {
            CHECK_OK(jzx_supervisor_start_child(t.loop, t.sup, &spec, &id));
            tree_idle(&t);
            CHECK_EQ(tree_status(&t, "b"), NO_CHILD);
            CHECK_EQ(b->me.inits, tries);
            CHECK_EQ(b->drops, tries);
            CHECK_EQ(jzx_actor_state(t.loop, id), JZX_STATE_TERMINATED);
        }
        CHECK_COUNTS(&t, 1, 1, 0, 1);
        CHECK_EQ(rig_counters(&t.r).live, 2);
        CHECK_EQ(rig_counters(&t.r).restarts, 0);
        KID_CHECK_LIFE(other, other_id, 1);
        kid_end(other, JZX_REASON_FAILED); /* the one restart that the default allows */
        KID_CHECK_LIFE(other, other_id, 2);
        tree_close(&t);
    }
}

static void test_a_child_that_cannot_be_started_again_keeps_its_spec_R19(void)
{
    for (uint32_t mode = JZX_PERMANENT; mode <= JZX_TRANSIENT; mode++) {
        tree t;
        kid *a = NULL;
        tree_open(&t);
        tree_start_kids(&t, NULL, &a, &mode, 1);
        CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "a"));
        tree_idle(&t);
        a->plan = "fffo";
        for (uint32_t tries = 1; tries <= 3; tries++) { /* more than the budget, which it spares */
            CHECK_OK(jzx_supervisor_restart_child(t.loop, t.sup, "a", NULL));
            tree_idle(&t);
            CHECK_EQ(tree_status(&t, "a"), JZX_CHILD_DOWN);
            CHECK_EQ(tree_child(&t, "a").last.kind, JZX_REASON_START_FAILED);
            CHECK_EQ(a->me.inits, 1 + tries);
        }
        CHECK_COUNTS(&t, 1, 0, 0, 1);
        CHECK_OK(jzx_supervisor_restart_child(t.loop, t.sup, "a", NULL));
        tree_idle(&t);
        CHECK_EQ(tree_status(&t, "a"), JZX_CHILD_RUNNING);
        tree_stop_now(&t);
        tree_close(&t);
    }
}

static void test_a_dynamic_child_that_cannot_start_leaves_nothing_R19(void)
{
    for (uint32_t mode = JZX_PERMANENT; mode <= JZX_TEMPORARY; mode++) {
        tree t;
        tree_open(&t);
        tree_start_dynamic(&t, NULL, mode, 0);
        for (int i = 0; i < 5; i++) {
            kid *k = tree_add_dynamic(&t, "f");
            tree_idle(&t);
            CHECK_EQ(k->me.inits, 1);
            CHECK_EQ(kid_state_of(k), JZX_STATE_TERMINATED);
        }
        CHECK_COUNTS(&t, 1, 0, 0, 0);
        CHECK_EQ(jzx_supervisor_children(t.loop, t.sup, NULL, 0), 0);
        CHECK_EQ(jzx_actor_state(t.loop, t.sup), JZX_STATE_RUNNING);
        CHECK_EQ(rig_counters(&t.r).live, 1);
        tree_stop_now(&t);
        tree_close(&t);
    }
}

static void check_default_spec(const jzx_child_spec *got, const kid *k)
{
    CHECK_STR(got->id, "kid");
    CHECK(got->behavior == puppet_behavior);
    CHECK(got->init == puppet_init);
    CHECK(got->deinit == puppet_deinit);
    CHECK(got->on_signal == puppet_signal);
    CHECK(got->arg == k);
    CHECK(got->supervisor == NULL);
    CHECK_EQ(got->mode, JZX_PERMANENT);
    CHECK_EQ(got->shutdown_ms, 5000);
    CHECK_EQ(got->significant, 0);
    CHECK_EQ(got->stop_group, 0);
    CHECK_EQ(got->flags, 0);
}

static void test_a_short_spec_is_completed_by_defaults_R36(void)
{
    tree t;
    char id[] = "kid";
    tree_open(&t);
    kid *k = kid_new(&t, "kid");
    jzx_child_spec spec = kid_spec(k, 0);
    jzx_supervisor_init nested = {.name = "nested"};
    jzx_child_spec specs[] = {spec, {.id = "nested", .supervisor = &nested}};
    specs[0].id = id;
    tree_start(&t, NULL, specs, COUNT_OF(specs));
    memset(id, 'x', sizeof id - 1); /* everything was copied */
    memset(specs, 0, sizeof specs);
    jzx_child_spec got = {0};
    REQUIRE_OK(jzx_supervisor_get_spec(t.loop, t.sup, "kid", &got));
    check_default_spec(&got, k);
    REQUIRE_OK(jzx_supervisor_get_spec(t.loop, t.sup, "nested", &got));
    CHECK_EQ(got.shutdown_ms, JZX_SHUTDOWN_INFINITE);
    CHECK_EQ(got.mode, JZX_PERMANENT);
    CHECK(got.supervisor == NULL);
    CHECK_EQ(tree_child(&t, "nested").is_supervisor, 1);
    CHECK_EQ(tree_child(&t, "kid").is_supervisor, 0);
    CHECK_EQ(jzx_supervisor_get_spec(t.loop, t.sup, "nobody", &got), JZX_ERR_NO_SUCH_CHILD);
    tree_close(&t);
}

static void test_a_dynamic_supervisor_shows_the_spec_of_its_children_R36(void)
{
    tree t;
    tree_open(&t);
    tree_start_dynamic(&t, NULL, 0, 0);
    jzx_child_spec got = {0};
    REQUIRE_OK(jzx_supervisor_get_spec(t.loop, t.sup, NULL, &got));
    check_default_spec(&got, NULL);
    got = (jzx_child_spec){0};
    REQUIRE_OK(jzx_supervisor_get_spec(t.loop, t.sup, "kid", &got));
    check_default_spec(&got, NULL);
    CHECK_EQ(jzx_supervisor_get_spec(t.loop, t.sup, "nobody", &got), JZX_ERR_NO_SUCH_CHILD);
    tree_close(&t);
}

static void test_a_spec_without_id_or_start_is_refused_and_nothing_starts_R19(void)
{
    tree t;
    tree_open(&t);
    kid *k = kid_new(&t, "a");
    for (int missing = 0; missing < 3; missing++) {
        jzx_child_spec specs[] = {kid_spec(k, 0), kid_spec(k, 0)};
        char why[200] = "?";
        specs[1].id = missing == 0 ? NULL : missing == 1 ? "" : "b";
        specs[1].behavior = missing == 2 ? NULL : puppet_behavior;
        jzx_supervisor_init init = {.name = "sup", .children = specs, .child_count = 2};
        jzx_actor_id id = 12345;
        CHECK_EQ(jzx_supervisor_check(&init, why, sizeof why), JZX_ERR_BAD_SPEC);
        CHECK(strlen(why) > 10);
        CHECK_EQ(jzx_spawn_supervisor(t.loop, &init, &id), JZX_ERR_BAD_SPEC);
        CHECK_EQ(id, 12345);
    }
    tree_idle(&t);
    CHECK_EQ(k->me.inits, 0);
    CHECK_EQ(rig_counters(&t.r).spawned, 0);
    tree_close(&t);
}

static const jzt_test tests[] = {
    {"a_supervisor_starts_its_children_and_stops_clean_R19",
     test_a_supervisor_starts_its_children_and_stops_clean_R19},
    {"a_supervisor_without_children_starts_too", test_a_supervisor_without_children_starts_too},
    {"a_child_starts_when_the_one_before_is_running_R19",
     test_a_child_starts_when_the_one_before_is_running_R19},
    {"a_supervisor_that_has_not_started_is_busy", test_a_supervisor_that_has_not_started_is_busy},
    {"an_actor_whose_init_says_stop_never_runs_R15",
     test_an_actor_whose_init_says_stop_never_runs_R15},
    {"a_child_that_declines_to_start_is_down_and_keeps_its_spec_R19",
     test_a_child_that_declines_to_start_is_down_and_keeps_its_spec_R19},
    {"a_child_that_is_added_and_declines_keeps_its_spec_R19",
     test_a_child_that_is_added_and_declines_keeps_its_spec_R19},
    {"a_temporary_child_that_declines_to_start_is_forgotten_R19",
     test_a_temporary_child_that_declines_to_start_is_forgotten_R19},
    {"a_temporary_child_that_is_added_and_declines_is_forgotten_R19",
     test_a_temporary_child_that_is_added_and_declines_is_forgotten_R19},
    {"a_dynamic_temporary_child_that_declines_is_forgotten_R19",
     test_a_dynamic_temporary_child_that_declines_is_forgotten_R19},
    {"a_dynamic_permanent_child_that_declines_leaves_no_phantom_R19",
     test_a_dynamic_permanent_child_that_declines_leaves_no_phantom_R19},
    {"an_init_that_returns_nonsense_is_a_failed_start_R17",
     test_an_init_that_returns_nonsense_is_a_failed_start_R17},
    {"a_child_that_cannot_start_undoes_the_start_in_reverse_order_R19",
     test_a_child_that_cannot_start_undoes_the_start_in_reverse_order_R19},
    {"a_failed_start_is_told_with_its_code_and_text_R17",
     test_a_failed_start_is_told_with_its_code_and_text_R17},
    {"an_added_child_that_cannot_start_is_forgotten_again_R19",
     test_an_added_child_that_cannot_start_is_forgotten_again_R19},
    {"a_child_that_cannot_be_started_again_keeps_its_spec_R19",
     test_a_child_that_cannot_be_started_again_keeps_its_spec_R19},
    {"a_dynamic_child_that_cannot_start_leaves_nothing_R19",
     test_a_dynamic_child_that_cannot_start_leaves_nothing_R19},
    {"a_short_spec_is_completed_by_defaults_R36", test_a_short_spec_is_completed_by_defaults_R36},
    {"a_dynamic_supervisor_shows_the_spec_of_its_children_R36",
     test_a_dynamic_supervisor_shows_the_spec_of_its_children_R36},
    {"a_spec_without_id_or_start_is_refused_and_nothing_starts_R19",
     test_a_spec_without_id_or_start_is_refused_and_nothing_starts_R19},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
