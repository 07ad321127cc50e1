/* Goal: how a supervisor stops its children and itself: in time or by force, whatever they do
 * meanwhile (R16, R18). Method: simulation; the meaning of OTP's sup_stop_* cases, which
 * docs/reference/SPEC.md lists. */
#include "sup_fixture.h"

/* Starts kids a, b, c with these shutdown times. */
static void start_three(tree *t, kid **kids, const uint32_t *shutdown_ms)
{
    static const char *const ids[] = {"a", "b", "c"};
    jzx_child_spec specs[3];
    tree_open(t);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        kids[i] = kid_new(t, ids[i]);
        specs[i] = kid_spec(kids[i], JZX_PERMANENT);
        specs[i].shutdown_ms = shutdown_ms[i];
    }
    tree_start(t, NULL, specs, COUNT_OF(specs));
    (void)words_take(&t->life);
}

static void test_an_infinite_shutdown_waits_for_the_child_R16(void)
{
    static const uint32_t times[] = {0, JZX_SHUTDOWN_INFINITE, 0};
    tree t;
    kid *kids[3];
    start_three(&t, kids, times);
    kid_tell(kids[1], KID_LINGER, 3600 * 1000);
    tree_idle(&t);
    CHECK_OK(jzx_stop(t.loop, t.sup));
    tree_pass(&t, 3599 * 1000);
    CHECK_STR(words_take(&t.ends), "c:shutdown");
    CHECK_EQ(kid_state_of(kids[0]), JZX_STATE_RUNNING); /* its turn comes after b's */
    CHECK_EQ(jzx_actor_state(t.loop, t.sup), JZX_STATE_STOPPING);
    CHECK_EQ(kids[1]->me.deinits, 0);
    tree_pass(&t, 2 * 1000);
    CHECK_STR(words_take(&t.ends), "b:shutdown a:shutdown sup:shutdown");
    CHECK_STR(words_take(&t.life), "-c -b -a");
    CHECK_GONE(&t, JZX_REASON_SHUTDOWN);
    tree_close(&t);
}

static void test_a_child_that_takes_too_long_is_killed_and_the_others_are_not_R16(void)
{
    static const uint32_t times[] = {0, 1000, 0};
    tree t;
    kid *kids[3];
    start_three(&t, kids, times);
    kids[1]->at_stop = 'd';
    CHECK_OK(jzx_stop(t.loop, t.sup));
    tree_pass(&t, 990);
    CHECK_STR(words_take(&t.ends), "c:shutdown");
    CHECK_EQ(kids[1]->me.deinits, 0);
    tree_pass(&t, 20);
    CHECK_STR(words_take(&t.ends), "b:stop_timeout a:shutdown sup:shutdown");
    CHECK_STR(words_take(&t.life), "-c -b -a"); /* also the killed one releases its state */
    CHECK_GONE(&t, JZX_REASON_SHUTDOWN);
    tree_close(&t);
}

static void test_the_default_shutdown_of_a_worker_is_five_seconds_R16(void)
{
    static const uint32_t times[] = {0, 0, 0};
    tree t;
    kid *kids[3];
    start_three(&t, kids, times);
    kids[2]->at_stop = 'd';
    CHECK_OK(jzx_stop(t.loop, t.sup));
    tree_pass(&t, 4990);
    CHECK_STR(words_take(&t.ends), "");
    tree_pass(&t, 20);
    CHECK_STR(words_take(&t.ends), "c:stop_timeout b:shutdown a:shutdown sup:shutdown");
    tree_close(&t);
}

static void test_dynamic_children_that_take_too_long_are_killed_R16(void)
{
    tree t;
    tree_open(&t);
    tree_start_dynamic(&t, NULL, JZX_PERMANENT, 1000);
    for (int i = 0; i < 6; i++) {
        tree_add_dynamic(&t, NULL)->at_stop = i % 2 == 0 ? 'd' : 0;
    }
    tree_idle(&t);
    CHECK_OK(jzx_stop(t.loop, t.sup));
    tree_pass(&t, 990);
    CHECK_STR(words_take(&t.ends), "kid:shutdown kid:shutdown kid:shutdown");
    tree_pass(&t, 20);
    CHECK_STR(words_take(&t.ends),
              "kid:stop_timeout kid:stop_timeout kid:stop_timeout sup:shutdown");
    CHECK_GONE(&t, JZX_REASON_SHUTDOWN);
    tree_close(&t);
}

static void test_a_brutal_shutdown_kills_without_asking_R16(void)
{
    static const uint32_t times[] = {0, JZX_SHUTDOWN_BRUTAL, 0};
    tree t;
    kid *kids[3];
    start_three(&t, kids, times);
    kids[1]->at_stop = 'd';
    tree_stop_now(&t);
    CHECK_STR(words_take(&t.asked), "c a");
    CHECK_STR(words_take(&t.ends), "c:shutdown b:killed a:shutdown sup:shutdown");
    CHECK_STR(words_take(&t.life), "-c -b -a");
    tree_close(&t);
}

static void test_a_brutal_shutdown_kills_all_dynamic_children_R16(void)
{
    enum { COUNT = 10 };
    tree t;
    kid *kids[COUNT];
    tree_open(&t);
    tree_start_dynamic(&t, NULL, JZX_PERMANENT, JZX_SHUTDOWN_BRUTAL);
    for (int i = 0; i < COUNT; i++) {
        kids[i] = tree_add_dynamic(&t, NULL);
        kids[i]->at_stop = 'd';
    }
    tree_idle(&t);
    tree_stop_now(&t);
    CHECK_EQ(words_count(words_take(&t.ends), "kid:killed"), COUNT);
    CHECK_STR(words_take(&t.asked), "");
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(kids[i]->me.deinits, 1);
    }
    tree_close(&t);
}

/* Every reason with every mode. A stop wins over a restart, so nobody starts any more. */
static void children_end_while_the_supervisor_stops(uint32_t strategy, bool stop_first)
{
    static const uint32_t reasons[] = {JZX_REASON_NORMAL, JZX_REASON_FAILED, JZX_REASON_PANIC,
                                       JZX_REASON_KILLED};
    enum { COUNT = 12 };
    tree t;
    kid *kids[COUNT];
    jzx_child_spec specs[COUNT];
    static const char *const ids[COUNT] = {"a", "b", "c", "d", "e", "f",
                                           "g", "h", "i", "j", "k", "l"};
    tree_open(&t);
    for (size_t i = 0; i < COUNT; i++) {
        kids[i] = kid_new(&t, ids[i]);
        specs[i] = kid_spec(kids[i], (uint32_t)(i % 3));
    }
    jzx_supervisor_spec spec = {.strategy = strategy, .intensity = 1000};
    tree_start(&t, &spec, specs, COUNT);
    if (stop_first) { /* those that end do so while others are being stopped */
        kid_tell(kids[COUNT - 1], KID_LINGER, 100);
        tree_idle(&t);
        CHECK_OK(jzx_stop(t.loop, t.sup));
        tree_pass(&t, 50);
    }
    for (size_t i = 0; i < COUNT - (stop_first ? 1 : 0); i++) {
        kid_begin_end(kids[i], reasons[i / 3]);
    }
    if (!stop_first) {
        CHECK_OK(jzx_stop(t.loop, t.sup));
    }
    tree_pass(&t, 1000);
    CHECK_GONE(&t, JZX_REASON_SHUTDOWN);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(kids[i]->me.inits, 1);
        CHECK_EQ(kids[i]->me.deinits, 1);
    }
    CHECK_STR(words_take(&t.restarts), "");
    CHECK_STR(words_take(&t.escalations), "");
    tree_close(&t);
}

static void test_children_that_end_by_themselves_while_their_supervisor_stops_R18(void)
{
    for (uint32_t strategy = JZX_ONE_FOR_ONE; strategy <= JZX_REST_FOR_ONE; strategy++) {
        children_end_while_the_supervisor_stops(strategy, false);
        children_end_while_the_supervisor_stops(strategy, true);
    }
}

static void test_dynamic_children_may_end_for_reasons_of_their_own_when_stopped_R15(void)
{
    static const char ways[] = {0, 'f', 'p', 'k'};
    static const char *const ends[] = {"kid:shutdown", "kid:failed", "kid:panic", "kid:killed"};
    tree t;
    tree_open(&t);
    tree_start_dynamic(&t, NULL, JZX_PERMANENT, 0);
    for (size_t i = 0; i < 3 * COUNT_OF(ways); i++) {
        tree_add_dynamic(&t, NULL)->at_stop = ways[i / 3];
    }
    tree_idle(&t);
    tree_stop_now(&t);
    const char *got = words_take(&t.ends);
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        CHECK_EQ(words_count(got, ends[i]), 3);
    }
    CHECK(words_in_order(got, "kid:shutdown sup:shutdown"));
    CHECK_STR(words_take(&t.restarts), "");
    tree_close(&t);
}

/* sup_stop_manual: the supervisor is stopped from outside of the tree, children by their specs. */
static void test_a_stop_from_anybody_stops_the_tree_by_its_specs_R16(void)
{
    static const uint32_t times[] = {JZX_SHUTDOWN_INFINITE, JZX_SHUTDOWN_BRUTAL, 200};
    tree t;
    kid *kids[3];
    start_three(&t, kids, times);
    kids[2]->at_stop = 'd';
    kid_tell(kids[0], KID_LINGER, 10000);
    tree_idle(&t);
    CHECK_OK(jzx_stop(t.loop, t.sup));
    CHECK_OK(jzx_stop(t.loop, t.sup)); /* again is fine */
    tree_pass(&t, 9000);
    CHECK_OK(jzx_stop(t.loop, t.sup));
    CHECK_STR(words_take(&t.ends), "c:stop_timeout b:killed");
    tree_pass(&t, 2000);
    CHECK_STR(words_take(&t.ends), "a:shutdown sup:shutdown");
    CHECK_EQ(jzx_stop(t.loop, t.sup), JZX_ERR_NO_SUCH_ACTOR);
    tree_close(&t);
}

enum { BEGIN_IT = 100, GIVE_IT_UP };

typedef struct impatient {
    jzx_actor_id target;
    jzx_watch_ref ref;
    uint32_t timeouts;
    uint32_t terminated;
} impatient;

/* Stops the target, watches it, and loses its patience after 100 ms. */
static jzx_behavior_result impatient_behavior(jzx_context *ctx, const jzx_message *msg)
{
    impatient *self = ctx->state;
    if (msg->tag == BEGIN_IT) {
        CHECK_OK(jzx_watch(ctx->loop, self->target, 0, &self->ref));
        CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 100, NULL, 0, GIVE_IT_UP, NULL));
        CHECK_OK(jzx_stop(ctx->loop, self->target));
    } else if (msg->tag == GIVE_IT_UP) {
        self->timeouts++;
        CHECK_OK(jzx_unwatch(ctx->loop, self->ref));
    } else if (msg->tag == JZX_TAG_TERMINATED) {
        self->terminated++;
    }
    return JZX_BEHAVIOR_OK;
}

static void test_a_stop_goes_on_when_whoever_asked_does_not_wait_R16(void)
{
    static const uint32_t times[] = {0, 0, 0};
    tree t;
    kid *kids[3];
    start_three(&t, kids, times);
    kid_tell(kids[2], KID_LINGER, 1000);
    tree_idle(&t);
    impatient self = {.target = t.sup};
    jzx_spawn_opts opts = {.behavior = impatient_behavior, .state = &self, .name = "caller"};
    jzx_actor_id caller = 0;
    REQUIRE_OK(jzx_spawn(t.loop, &opts, &caller));
    REQUIRE_OK(jzx_send_u64(t.loop, caller, 0, BEGIN_IT));
    tree_pass(&t, 500);
    CHECK_EQ(self.timeouts, 1);
    CHECK_EQ(jzx_actor_state(t.loop, t.sup), JZX_STATE_STOPPING);
    CHECK_OK(jzx_stop(t.loop, caller));
    tree_pass(&t, 1000);
    CHECK_STR(words_take(&t.ends), "caller:shutdown c:shutdown b:shutdown a:shutdown sup:shutdown");
    CHECK_EQ(self.terminated, 0);
    CHECK_GONE(&t, JZX_REASON_SHUTDOWN);
    tree_close(&t);
}

/* While it stops it still answers, and starts nothing new. */
static void test_a_stopping_supervisor_refuses_new_children_R16(void)
{
    static const uint32_t times[] = {0, 0, 0};
    tree t;
    kid *kids[3];
    start_three(&t, kids, times);
    kid *late = kid_new(&t, "late");
    jzx_child_spec spec = kid_spec(late, JZX_PERMANENT);
    kid_tell(kids[2], KID_LINGER, 1000);
    tree_idle(&t);
    CHECK_OK(jzx_stop(t.loop, t.sup));
    tree_pass(&t, 10);
    CHECK_EQ(jzx_supervisor_start_child(t.loop, t.sup, &spec, NULL), JZX_ERR_STOPPING);
    CHECK_EQ(jzx_supervisor_restart_child(t.loop, t.sup, "a", NULL), JZX_ERR_STOPPING);
    CHECK_EQ(jzx_send_u64(t.loop, t.sup, 0, 1), JZX_ERR_STOPPING);
    tree_pass(&t, 1000);
    CHECK_EQ(late->me.inits, 0);
    CHECK_GONE(&t, JZX_REASON_SHUTDOWN);
    tree_close(&t);
}

static void test_killing_a_supervisor_kills_its_children_first_R16(void)
{
    static const uint32_t times[] = {0, JZX_SHUTDOWN_INFINITE, 0};
    tree t;
    kid *kids[3];
    start_three(&t, kids, times);
    kids[1]->at_stop = 'd';
    CHECK_OK(jzx_kill(t.loop, t.sup));
    tree_idle(&t);
    const char *got = words_take(&t.ends);
    CHECK(words_in_order(got, "a:killed sup:killed"));
    CHECK(words_in_order(got, "b:killed sup:killed"));
    CHECK(words_in_order(got, "c:killed sup:killed"));
    CHECK_STR(words_take(&t.asked), "");
    CHECK_GONE(&t, JZX_REASON_KILLED);
    tree_close(&t);
}

/* Children of one stop group take their time together, not one after the other. */
static void test_a_stop_group_stops_at_the_same_time_R16(void)
{
    static const char *const ids[] = {"a", "b", "c", "d"};
    tree t;
    kid *kids[4];
    jzx_child_spec specs[4];
    tree_open(&t);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        kids[i] = kid_new(&t, ids[i]);
        specs[i] = kid_spec(kids[i], JZX_PERMANENT);
        specs[i].stop_group = i == 0 ? 0 : 5;
    }
    tree_start(&t, NULL, specs, COUNT_OF(specs));
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        kid_tell(kids[i], KID_LINGER, 1000);
    }
    tree_idle(&t);
    CHECK_OK(jzx_stop(t.loop, t.sup));
    tree_pass(&t, 10);
    const char *asked = words_take(&t.asked);
    CHECK_EQ(words_count(asked, "b") + words_count(asked, "c") + words_count(asked, "d"), 3);
    CHECK_EQ(words_count(asked, "a"), 0);
    tree_pass(&t, 1000);
    CHECK_EQ(kids[3]->me.deinits + kids[2]->me.deinits + kids[1]->me.deinits, 3);
    CHECK_GONE(&t, JZX_REASON_SHUTDOWN); /* a's work was over when it was asked */
    tree_close(&t);
}

static const jzt_test tests[] = {
    {"an_infinite_shutdown_waits_for_the_child_R16",
     test_an_infinite_shutdown_waits_for_the_child_R16},
    {"a_child_that_takes_too_long_is_killed_and_the_others_are_not_R16",
     test_a_child_that_takes_too_long_is_killed_and_the_others_are_not_R16},
    {"the_default_shutdown_of_a_worker_is_five_seconds_R16",
     test_the_default_shutdown_of_a_worker_is_five_seconds_R16},
    {"dynamic_children_that_take_too_long_are_killed_R16",
     test_dynamic_children_that_take_too_long_are_killed_R16},
    {"a_brutal_shutdown_kills_without_asking_R16", test_a_brutal_shutdown_kills_without_asking_R16},
    {"a_brutal_shutdown_kills_all_dynamic_children_R16",
     test_a_brutal_shutdown_kills_all_dynamic_children_R16},
    {"children_that_end_by_themselves_while_their_supervisor_stops_R18",
     test_children_that_end_by_themselves_while_their_supervisor_stops_R18},
    {"dynamic_children_may_end_for_reasons_of_their_own_when_stopped_R15",
     test_dynamic_children_may_end_for_reasons_of_their_own_when_stopped_R15},
    {"a_stop_from_anybody_stops_the_tree_by_its_specs_R16",
     test_a_stop_from_anybody_stops_the_tree_by_its_specs_R16},
    {"a_stop_goes_on_when_whoever_asked_does_not_wait_R16",
     test_a_stop_goes_on_when_whoever_asked_does_not_wait_R16},
    {"a_stopping_supervisor_refuses_new_children_R16",
     test_a_stopping_supervisor_refuses_new_children_R16},
    {"killing_a_supervisor_kills_its_children_first_R16",
     test_killing_a_supervisor_kills_its_children_first_R16},
    {"a_stop_group_stops_at_the_same_time_R16", test_a_stop_group_stops_at_the_same_time_R16},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
