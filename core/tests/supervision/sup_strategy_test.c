/* Goal: who is restarted with a child, in which order, and when a supervisor gives up (R18, R19).
 * Method: simulation; the meaning of OTP's one_for_one, one_for_all and rest_for_one cases and
 * their escalations, which docs/reference/SPEC.md lists. */
#include "sup_fixture.h"

#define HOUR_MS (3600 * 1000)

/* The supervisor gave up because of this child: everybody was stopped before it ended. */
static void check_gave_up(tree *t, kid *const *kids, size_t count, const kid *cause)
{
    char word[64];
    CHECK_GONE(t, JZX_REASON_GAVE_UP);
    CHECK_EQ(t->sup_end.from, cause->me.id);
    snprintf(word, sizeof word, "sup:gave_up:%s", cause->id);
    CHECK_STR(words_take(&t->escalations), word);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(kids[i]->me.ups, kids[i]->me.deinits);
        CHECK_EQ(kid_state_of(kids[i]), JZX_STATE_TERMINATED);
    }
    CHECK(strlen(t->ends.text) > strlen("sup:gave_up"));
    CHECK_STR(t->ends.text + strlen(t->ends.text) - strlen(" sup:gave_up"), " sup:gave_up");
}

static void test_restarts_that_are_far_apart_never_reach_the_limit_R19(void)
{
    tree t;
    kid *kids[2];
    jzx_supervisor_spec spec = {.intensity = 1, .period_ms = 1000};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 2);
    jzx_actor_id a = kids[0]->me.id;
    for (uint32_t i = 0; i < 10; i++) {
        kid_end(kids[0], JZX_REASON_FAILED);
        KID_CHECK_LIFE(kids[0], a, 2 + i);
        tree_pass(&t, 2100);
    }
    kid_end(kids[0], JZX_REASON_FAILED);
    kid_end(kids[0], JZX_REASON_FAILED);
    check_gave_up(&t, kids, 2, kids[0]);
    tree_close(&t);
}

/* Windows slide by the millisecond: what is older than the period is forgotten, one by one. */
static void test_the_window_of_the_limit_slides_R19(void)
{
    tree t;
    kid *a = NULL;
    jzx_supervisor_spec spec = {.intensity = 3, .period_ms = 1000};
    tree_open(&t);
    tree_start_kids(&t, &spec, &a, NULL, 1);
    for (uint32_t i = 0; i < 12; i++) { /* one per 340 ms: never four within 1000 */
        kid_end(a, JZX_REASON_FAILED);
        KID_CHECK_LIFE(a, a->me.id, 2 + i);
        tree_pass(&t, 340);
    }
    for (int i = 0; i < 4 && jzx_actor_state(t.loop, t.sup) == JZX_STATE_RUNNING; i++) {
        kid_end(a, JZX_REASON_FAILED);
        tree_pass(&t, 300);
    }
    check_gave_up(&t, &a, 1, a);
    CHECK_EQ(a->me.ups, 1 + 12 + 1); /* two of the twelve were still within the period */
    tree_close(&t);
}

static void test_the_default_limit_is_one_restart_in_five_seconds_R36(void)
{
    tree t;
    kid *a = NULL;
    tree_open(&t);
    tree_start_kids(&t, NULL, &a, NULL, 1);
    kid_end(a, JZX_REASON_FAILED);
    tree_pass(&t, 5100);
    kid_end(a, JZX_REASON_FAILED);
    KID_CHECK_LIFE(a, a->me.id, 3);
    tree_pass(&t, 4900);
    kid_end(a, JZX_REASON_FAILED);
    check_gave_up(&t, &a, 1, a);
    tree_close(&t);
}

static void test_an_intensity_of_never_gives_up_at_the_first_failure_R36(void)
{
    tree t;
    kid *kids[2];
    jzx_supervisor_spec spec = {.intensity = JZX_INTENSITY_NEVER};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 2);
    kid_end(kids[1], JZX_REASON_FAILED);
    check_gave_up(&t, kids, 2, kids[1]);
    CHECK_EQ(kids[1]->me.inits, 1);
    tree_close(&t);
}

static void test_one_for_one_restarts_only_the_child_that_failed_R19(void)
{
    tree t;
    kid *kids[3];
    jzx_supervisor_spec spec = {.intensity = 2, .period_ms = HOUR_MS};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 3);
    jzx_actor_id ids[] = {kids[0]->me.id, kids[1]->me.id, kids[2]->me.id};
    kid_end(kids[0], JZX_REASON_FAILED);
    KID_CHECK_LIFE(kids[0], ids[0], 2);
    KID_CHECK_LIFE(kids[1], ids[1], 1);
    kid_end(kids[1], JZX_REASON_KILLED); /* the budget is shared */
    KID_CHECK_LIFE(kids[0], ids[0], 2);
    KID_CHECK_LIFE(kids[1], ids[1], 2);
    KID_CHECK_LIFE(kids[2], ids[2], 1);
    CHECK_STR(words_take(&t.ends), "");
    (void)words_take(&t.life);
    kid_end(kids[0], JZX_REASON_PANIC);
    check_gave_up(&t, kids, 3, kids[0]);
    CHECK(words_in_order(t.life.text, "-c -b")); /* in reverse start order */
    CHECK(words_in_order(t.ends.text, "c:shutdown b:shutdown sup:gave_up"));
    CHECK(words_in_order(t.ends.text, "a:panic sup:gave_up"));
    tree_close(&t);
}

static void test_one_for_one_gives_up_when_a_restart_keeps_failing_R19(void)
{
    tree t;
    kid *kids[2];
    jzx_supervisor_spec spec = {.intensity = 4, .period_ms = HOUR_MS};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 2);
    kids[0]->plan = "f";
    kid_end(kids[0], JZX_REASON_FAILED);
    check_gave_up(&t, kids, 2, kids[0]);
    CHECK_EQ(kids[0]->me.inits, 1 + 4); /* each failed try costs one */
    CHECK_EQ(kids[1]->me.inits, 1);
    CHECK_STR(words_take(&t.restarts), "a#2 a#3 a#4 a#5");
    CHECK(words_in_order(t.ends.text, "b:shutdown sup:gave_up"));
    CHECK(words_in_order(t.ends.text, "a:start_failed sup:gave_up"));
    tree_close(&t);
}

static void test_one_for_all_restarts_everybody_R19(void)
{
    for (size_t which = 0; which < 3; which++) {
        tree t;
        kid *kids[3];
        jzx_actor_id ids[3];
        jzx_supervisor_spec spec = {
            .strategy = JZX_ONE_FOR_ALL, .intensity = 2, .period_ms = HOUR_MS};
        tree_open(&t);
        tree_start_kids(&t, &spec, kids, NULL, 3);
        (void)words_take(&t.life);
        for (size_t i = 0; i < 3; i++) {
            ids[i] = kids[i]->me.id;
        }
        kid_end(kids[which], JZX_REASON_FAILED);
        static const char *const stops[] = {"-c -b", "-c -a", "-b -a"};
        const char *life = words_take(&t.life);
        CHECK(words_in_order(life, stops[which]));
        CHECK(words_in_order(life, "-a +a +b +c")); /* all are clean before anybody starts */
        CHECK(words_in_order(life, "-b +a"));
        CHECK(words_in_order(life, "-c +a"));
        CHECK_STR(words_take(&t.restarts), "a#2 b#2 c#2");
        CHECK_STR(words_take(&t.ends), "");
        for (size_t i = 0; i < 3; i++) {
            KID_CHECK_LIFE(kids[i], ids[i], 2);
            CHECK_EQ(kids[i]->me.inits, 2);
        }
        /* One event costs one, however many it takes: one more is allowed. */
        kid_end(kids[(which + 1) % 3], JZX_REASON_FAILED);
        for (size_t i = 0; i < 3; i++) {
            KID_CHECK_LIFE(kids[i], ids[i], 3);
        }
        kid_end(kids[which], JZX_REASON_FAILED);
        check_gave_up(&t, kids, 3, kids[which]);
        tree_close(&t);
    }
}

/* Two failures before the supervisor could act on the first are one event: what is taken down
 * with the others has nothing left to be restarted for. */
static void test_one_for_all_two_failures_at_once_restart_everybody_R19(void)
{
    tree t;
    kid *kids[3];
    jzx_supervisor_spec spec = {.strategy = JZX_ONE_FOR_ALL, .intensity = 2, .period_ms = HOUR_MS};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 3);
    kid_begin_end(kids[0], JZX_REASON_FAILED);
    kid_begin_end(kids[2], JZX_REASON_FAILED);
    tree_idle(&t);
    CHECK_EQ(jzx_actor_state(t.loop, t.sup), JZX_STATE_RUNNING);
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(kid_state_of(kids[i]), JZX_STATE_RUNNING);
        CHECK(kids[i]->me.inits >= 2);
        CHECK_EQ(kids[i]->me.inits, kids[i]->me.deinits + 1);
    }
    tree_close(&t);
}

static void test_one_for_all_gives_up_when_a_sibling_cannot_start_again_R19(void)
{
    tree t;
    kid *kids[2];
    jzx_supervisor_spec spec = {.strategy = JZX_ONE_FOR_ALL, .intensity = 4, .period_ms = HOUR_MS};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 2);
    kids[1]->plan = "f";
    kid_end(kids[0], JZX_REASON_FAILED);
    check_gave_up(&t, kids, 2, kids[1]);
    CHECK_EQ(kids[0]->me.inits, 1 + 4);
    CHECK_EQ(kids[1]->me.inits, 1 + 4);
    tree_close(&t);
}

static void test_one_for_all_starts_over_when_a_sibling_fails_to_start_R19(void)
{
    tree t;
    kid *kids[3];
    jzx_supervisor_spec spec = {.strategy = JZX_ONE_FOR_ALL, .intensity = 2, .period_ms = HOUR_MS};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 3);
    jzx_actor_id ids[] = {kids[0]->me.id, kids[1]->me.id, kids[2]->me.id};
    kids[1]->plan = "fo";
    (void)words_take(&t.life);
    kid_end(kids[2], JZX_REASON_FAILED);
    CHECK(words_in_order(words_take(&t.life), "-b -a +a !b -a +a +b +c"));
    CHECK_EQ(kids[0]->me.inits, 3); /* it was up, and was stopped again */
    CHECK_EQ(kids[1]->me.inits, 3);
    CHECK_EQ(kids[2]->me.inits, 2);
    for (size_t i = 0; i < 3; i++) {
        KID_CHECK_LIFE(kids[i], ids[i], kids[i]->me.inits);
    }
    CHECK_STR(words_take(&t.ends), "");
    kid_end(kids[0], JZX_REASON_FAILED); /* event and failed try cost one each */
    check_gave_up(&t, kids, 3, kids[0]);
    tree_close(&t);
}

static void test_rest_for_one_restarts_those_that_started_later_R19(void)
{
    tree t;
    kid *kids[4];
    jzx_actor_id ids[4];
    jzx_supervisor_spec spec = {.strategy = JZX_REST_FOR_ONE, .intensity = 3, .period_ms = HOUR_MS};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 4);
    for (size_t i = 0; i < 4; i++) {
        ids[i] = kids[i]->me.id;
    }
    static const struct {
        size_t which;
        const char *stops;
        const char *starts;
        const char *restarts;
        uint32_t incarnations[4];
    } cases[] = {{1, "-d -c +b", "-b +b +c +d", "b#2 c#2 d#2", {1, 2, 2, 2}},
                 {3, "-d", "-d +d", "d#3", {1, 2, 2, 3}},
                 {0, "-d -c -b +a", "-a +a +b +c +d", "a#2 b#3 c#3 d#4", {2, 3, 3, 4}}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        (void)words_take(&t.life);
        kid_end(kids[cases[i].which], JZX_REASON_FAILED);
        const char *life = words_take(&t.life);
        CHECK(words_in_order(life, cases[i].stops));
        CHECK(words_in_order(life, cases[i].starts));
        CHECK_STR(words_take(&t.restarts), cases[i].restarts);
        for (size_t j = 0; j < 4; j++) {
            KID_CHECK_LIFE(kids[j], ids[j], cases[i].incarnations[j]);
        }
    }
    kid_end(kids[3], JZX_REASON_FAILED);
    check_gave_up(&t, kids, 4, kids[3]);
    tree_close(&t);
}

static void test_rest_for_one_gives_up_when_a_later_child_cannot_start_again_R19(void)
{
    tree t;
    kid *kids[3];
    jzx_supervisor_spec spec = {.strategy = JZX_REST_FOR_ONE, .intensity = 4, .period_ms = HOUR_MS};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 3);
    kids[2]->plan = "f";
    kid_end(kids[1], JZX_REASON_FAILED);
    check_gave_up(&t, kids, 3, kids[2]);
    CHECK_EQ(kids[0]->me.inits, 1);
    CHECK_EQ(kids[1]->me.inits, 2); /* once: what is up stays up */
    CHECK_EQ(kids[2]->me.inits, 1 + 4);
    tree_close(&t);
}

static void test_rest_for_one_tries_again_from_the_child_that_failed_to_start_R19(void)
{
    tree t;
    kid *kids[4];
    jzx_supervisor_spec spec = {.strategy = JZX_REST_FOR_ONE, .intensity = 2, .period_ms = HOUR_MS};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 4);
    jzx_actor_id ids[] = {kids[0]->me.id, kids[1]->me.id, kids[2]->me.id, kids[3]->me.id};
    kids[2]->plan = "fo";
    (void)words_take(&t.life);
    kid_end(kids[1], JZX_REASON_FAILED);
    CHECK(words_in_order(words_take(&t.life), "-d -c +b !c +c +d"));
    CHECK_EQ(kids[0]->me.inits, 1);
    CHECK_EQ(kids[1]->me.inits, 2);
    CHECK_EQ(kids[2]->me.inits, 3);
    CHECK_EQ(kids[3]->me.inits, 2);
    for (size_t i = 0; i < 4; i++) {
        KID_CHECK_LIFE(kids[i], ids[i], kids[i]->me.inits);
    }
    kid_end(kids[3], JZX_REASON_FAILED);
    check_gave_up(&t, kids, 4, kids[3]);
    tree_close(&t);
}

/* A sibling with a slow child of its own is gone with everything below it before anybody starts. */
static void test_a_slow_sibling_is_waited_for_before_anybody_starts_R18(void)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    kid *slow = kid_new(&t, "slow");
    jzx_child_spec slow_spec = kid_spec(slow, JZX_PERMANENT);
    jzx_supervisor_init low = {.children = &slow_spec, .child_count = 1};
    jzx_child_spec specs[] = {kid_spec(a, JZX_PERMANENT), {.id = "b", .supervisor = &low}};
    jzx_supervisor_spec spec = {.strategy = JZX_ONE_FOR_ALL};
    tree_start(&t, &spec, specs, COUNT_OF(specs));
    jzx_actor_id b = tree_child(&t, "b").actor;
    jzx_actor_id old = slow->me.id;
    kid_tell(slow, KID_LINGER, 2000);
    tree_idle(&t);
    kid_end(a, JZX_REASON_FAILED);
    tree_pass(&t, 1900);
    CHECK_EQ(a->me.inits, 1);
    CHECK_EQ(slow->me.deinits, 0);
    CHECK_EQ(tree_status(&t, "a"), JZX_CHILD_RESTARTING);
    CHECK(tree_status(&t, "b") != JZX_CHILD_RUNNING);
    tree_pass(&t, 200);
    KID_CHECK_LIFE(a, a->me.id, 2);
    CHECK_EQ(tree_child(&t, "b").actor, b);
    CHECK_EQ(jzx_actor_incarnation(t.loop, b), 2);
    CHECK(slow->me.id != old);
    KID_CHECK_LIFE(slow, slow->me.id, 1);
    tree_close(&t);
}

static void test_a_normal_end_of_a_transient_child_takes_nobody_along_R19(void)
{
    static const uint32_t modes[] = {JZX_PERMANENT, JZX_TRANSIENT, JZX_PERMANENT};
    for (uint32_t strategy = JZX_ONE_FOR_ALL; strategy <= JZX_REST_FOR_ONE; strategy++) {
        tree t;
        kid *kids[3];
        jzx_supervisor_spec spec = {.strategy = strategy};
        tree_open(&t);
        tree_start_kids(&t, &spec, kids, modes, 3);
        kid_end(kids[1], JZX_REASON_NORMAL);
        KID_CHECK_LIFE(kids[0], kids[0]->me.id, 1);
        KID_CHECK_LIFE(kids[2], kids[2]->me.id, 1);
        CHECK_EQ(tree_status(&t, "b"), JZX_CHILD_DOWN);
        tree_close(&t);
    }
}

static const jzt_test tests[] = {
    {"restarts_that_are_far_apart_never_reach_the_limit_R19",
     test_restarts_that_are_far_apart_never_reach_the_limit_R19},
    {"the_window_of_the_limit_slides_R19", test_the_window_of_the_limit_slides_R19},
    {"the_default_limit_is_one_restart_in_five_seconds_R36",
     test_the_default_limit_is_one_restart_in_five_seconds_R36},
    {"an_intensity_of_never_gives_up_at_the_first_failure_R36",
     test_an_intensity_of_never_gives_up_at_the_first_failure_R36},
    {"one_for_one_restarts_only_the_child_that_failed_R19",
     test_one_for_one_restarts_only_the_child_that_failed_R19},
    {"one_for_one_gives_up_when_a_restart_keeps_failing_R19",
     test_one_for_one_gives_up_when_a_restart_keeps_failing_R19},
    {"one_for_all_restarts_everybody_R19", test_one_for_all_restarts_everybody_R19},
    {"one_for_all_two_failures_at_once_restart_everybody_R19",
     test_one_for_all_two_failures_at_once_restart_everybody_R19},
    {"one_for_all_gives_up_when_a_sibling_cannot_start_again_R19",
     test_one_for_all_gives_up_when_a_sibling_cannot_start_again_R19},
    {"one_for_all_starts_over_when_a_sibling_fails_to_start_R19",
     test_one_for_all_starts_over_when_a_sibling_fails_to_start_R19},
    {"rest_for_one_restarts_those_that_started_later_R19",
     test_rest_for_one_restarts_those_that_started_later_R19},
    {"rest_for_one_gives_up_when_a_later_child_cannot_start_again_R19",
     test_rest_for_one_gives_up_when_a_later_child_cannot_start_again_R19},
    {"rest_for_one_tries_again_from_the_child_that_failed_to_start_R19",
     test_rest_for_one_tries_again_from_the_child_that_failed_to_start_R19},
    {"a_slow_sibling_is_waited_for_before_anybody_starts_R18",
     test_a_slow_sibling_is_waited_for_before_anybody_starts_R18},
    {"a_normal_end_of_a_transient_child_takes_nobody_along_R19",
     test_a_normal_end_of_a_transient_child_takes_nobody_along_R19},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
