/* Goal: what burnt the users of other runtimes does not happen here: restart storms, zombies of
 * failed starts, stops that burn the processor, restarts that nobody sees, shutdowns without an
 * end (R15, R16, R18, R22). Method: simulation; the traps of docs/reference/SPEC.md. */
#include "sup_fixture.h"

/* The gaps between the first tries of a child to start, in milliseconds. */
static void check_gaps(const kid *k, size_t from, const uint32_t *gaps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t gap = k->at_ns[from + i + 1] - k->at_ns[from + i];
        CHECK(gap >= gaps[i] * MS); /* never early */
        CHECK(gap < (gaps[i] + 3) * MS);
        if (jzt_failures() > 0) {
            fprintf(stderr, "  gap %zu is %u us\n", i, (unsigned)(gap / US));
        }
    }
}

static void test_a_flapping_child_follows_the_backoff_curve_R18(void)
{
    static const uint32_t curve[] = {100, 200, 400, 800, 1600, 2000, 2000, 2000};
    tree t;
    kid *kids[2];
    jzx_supervisor_spec spec = {
        .intensity = 1000, .backoff_min_ms = 100, .backoff_max_ms = 2000, .backoff_factor = 2.0};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 2);
    kids[0]->plan = "f";
    uint64_t began = jzx_sim_now(t.r.sim);
    kid_end(kids[0], JZX_REASON_FAILED);
    tree_pass(&t, 10000);
    REQUIRE(kids[0]->me.inits > COUNT_OF(curve));
    CHECK(kids[0]->at_ns[1] >= began + 100 * MS);
    CHECK(kids[0]->at_ns[1] < began + 103 * MS);
    check_gaps(kids[0], 1, curve + 1, COUNT_OF(curve) - 1);
    CHECK_EQ(tree_child(&t, "a").attempt, kids[0]->me.inits);
    CHECK(tree_child(&t, "a").delay_ms <= 2000);
    KID_CHECK_LIFE(kids[1], kids[1]->me.id, 1); /* siblings are untouched */
    tree_close(&t);
}

/* It comes up each time and fails soon after: that is flapping too. */
static void test_a_child_that_starts_and_soon_fails_backs_off_as_well_R18(void)
{
    static const uint32_t curve[] = {50, 150, 450, 1000, 1000};
    tree t;
    kid *a = NULL;
    jzx_supervisor_spec spec = {
        .intensity = 1000, .backoff_min_ms = 50, .backoff_max_ms = 1000, .backoff_factor = 3.0};
    tree_open(&t);
    tree_start_kids(&t, &spec, &a, NULL, 1);
    for (size_t i = 0; i < COUNT_OF(curve); i++) {
        kid_end(a, JZX_REASON_FAILED);
        uint64_t down = a->down_ns;
        CHECK_EQ(kid_state_of(a), JZX_STATE_RESTARTING);
        tree_pass(&t, 1010);
        CHECK_EQ(a->me.inits, i + 2);
        CHECK(a->at_ns[i + 1] >= down + (curve[i] - 1) * MS);
        CHECK(a->at_ns[i + 1] < down + (curve[i] + 3) * MS);
    }
    /* After a quiet time, by default the larger of period and maximum, it begins anew. */
    tree_pass(&t, 5100);
    kid_end(a, JZX_REASON_FAILED);
    CHECK_EQ(tree_child(&t, "a").attempt, 1);
    uint64_t down = a->down_ns;
    tree_pass(&t, 60);
    CHECK_EQ(kid_state_of(a), JZX_STATE_RUNNING);
    CHECK(a->at_ns[a->me.inits - 1] >= down + 49 * MS);
    tree_close(&t);
}

static void test_jitter_spreads_the_delays_within_its_part_R18(void)
{
    tree t;
    kid *a = NULL;
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    jzx_supervisor_spec spec = {.intensity = 1000,
                                .backoff_min_ms = 1000,
                                .backoff_max_ms = 4000,
                                .backoff_factor = 1.0,
                                .backoff_jitter = 0.5};
    tree_open(&t);
    tree_start_kids(&t, &spec, &a, NULL, 1);
    a->plan = "f";
    kid_end(a, JZX_REASON_FAILED);
    tree_pass(&t, 60 * 1000);
    REQUIRE(a->me.inits > 20);
    for (size_t i = 2; i < 20; i++) {
        uint64_t gap = a->at_ns[i] - a->at_ns[i - 1];
        CHECK(gap >= 499 * MS);
        CHECK(gap <= 1503 * MS);
        least = gap < least ? gap : least;
        most = gap > most ? gap : most;
    }
    CHECK(most - least > 100 * MS);
    tree_close(&t);
}

/* A storm without any backoff uses up its limit at once and does not go on for ever. */
static void test_a_storm_without_backoff_ends_at_the_limit_R19(void)
{
    tree t;
    kid *kids[2];
    jzx_supervisor_spec spec = {.intensity = 1000, .period_ms = 1000};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 2);
    kids[0]->plan = "f";
    kid_end(kids[0], JZX_REASON_FAILED);
    CHECK_GONE(&t, JZX_REASON_GAVE_UP);
    CHECK_EQ(kids[0]->me.inits, 1 + 1000);
    tree_close(&t);
}

typedef struct neighbour {
    uint64_t handled;
} neighbour;

static jzx_behavior_result neighbour_behavior(jzx_context *ctx, const jzx_message *msg)
{
    neighbour *self = ctx->state;
    self->handled++;
    CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, msg->tag));
    return JZX_BEHAVIOR_OK;
}

/* actor-ts 794: lifecycle work must not starve user messages. */
static void test_a_restart_storm_starves_no_neighbour_R24(void)
{
    tree t;
    kid *a = NULL;
    neighbour self = {0};
    jzx_actor_id id = 0;
    jzx_spawn_opts opts = {.behavior = neighbour_behavior, .state = &self};
    jzx_supervisor_spec spec = {.intensity = JZX_INTENSITY_MAX};
    tree_open(&t);
    tree_start_kids(&t, &spec, &a, NULL, 1);
    REQUIRE_OK(jzx_spawn(t.loop, &opts, &id));
    REQUIRE_OK(jzx_send_u64(t.loop, id, 0, 1));
    a->plan = "f";
    kid_begin_end(a, JZX_REASON_FAILED);
    for (int i = 0; i < 20; i++) {
        REQUIRE_OK(jzx_loop_step(t.loop, 0));
    }
    CHECK(a->me.inits > 20);
    CHECK(a->me.inits < JZX_INTENSITY_MAX);
    CHECK(self.handled > a->me.inits / 4); /* a turn each, and a try takes a few */
    tree_close(&t);
}

/* An init that did a lot before it failed, in one of the ways to fail. */
typedef struct zombie {
    char way;
    jzx_actor_id watched;
    uint32_t inits, others, deinits;
} zombie;

static jzx_behavior_result other_behavior(jzx_context *ctx, const jzx_message *msg)
{
    zombie *z = ctx->state;
    (void)msg;
    z->others++;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result zombie_init(jzx_context *ctx, void *arg)
{
    zombie *z = arg;
    jzx_spawn_opts opts = {.behavior = other_behavior, .state = z, .name = "grandchild"};
    jzx_actor_id id = 0;
    z->inits++;
    CHECK_OK(jzx_spawn(ctx->loop, &opts, &id));
    CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 10, NULL, 0, 1, NULL));
    CHECK_OK(jzx_watch(ctx->loop, z->watched, 0, NULL));
    if (z->way == 'p') {
        jzx_panic(ctx, KID_INIT_CODE, "told not to start");
    }
    return z->way == 'i' ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result zombie_late(jzx_context *ctx, const jzx_signal *signal)
{
    zombie *z = ctx->state;
    uint32_t when = z->way == '1' ? JZX_SIGNAL_PRE_START : JZX_SIGNAL_POST_START;
    return signal->kind == when ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result zombie_late_init(jzx_context *ctx, void *arg)
{
    zombie *z = arg;
    z->inits++;
    ctx->state = z;
    return JZX_BEHAVIOR_OK;
}

static void zombie_deinit(jzx_context *ctx)
{
    zombie *z = ctx->state;
    if (z != NULL) {
        z->deinits++;
    }
}

typedef struct parent {
    jzx_spawn_opts opts;
    jzx_actor_id child;
    words heard;
} parent;

static jzx_behavior_result parent_behavior(jzx_context *ctx, const jzx_message *msg)
{
    parent *p = ctx->state;
    const jzx_signal *signal = jzx_message_signal(msg);
    if (signal == NULL) {
        CHECK_OK(jzx_spawn(ctx->loop, &p->opts, &p->child));
        CHECK_OK(jzx_watch(ctx->loop, p->child, 0, NULL));
        for (int i = 0; i < 5; i++) {
            CHECK_OK(jzx_send_u64(ctx->loop, p->child, 0, 7));
        }
        return JZX_BEHAVIOR_OK;
    }
    char word[64];
    CHECK_EQ(signal->from, p->child);
    snprintf(word, sizeof word, "%s:%s", jzx_signal_name(signal->kind),
             jzx_reason_name(signal->reason->kind));
    words_add(&p->heard, word);
    return JZX_BEHAVIOR_OK;
}

/* actor-ts 914: a crash in the constructor left an actor that neither ran nor ended. */
static void test_a_start_that_fails_leaves_no_zombie_R15(void)
{
    static const char ways[] = {'f', 'p', '1', '2', 'i'};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        tree t;
        tree_open(&t);
        zombie z = {.way = ways[i]};
        bool late = ways[i] == '1' || ways[i] == '2';
        parent p = {.opts = {.behavior = other_behavior,
                             .state = &z,
                             .name = "child",
                             .init = late ? zombie_late_init : zombie_init,
                             .on_signal = late ? zombie_late : NULL,
                             .deinit = zombie_deinit}};
        jzx_spawn_opts opts = {.behavior = parent_behavior, .state = &p, .name = "parent"};
        jzx_spawn_opts plain = {.behavior = other_behavior, .state = &z, .name = "watched"};
        jzx_actor_id id = 0;
        REQUIRE_OK(jzx_spawn(t.loop, &plain, &z.watched));
        REQUIRE_OK(jzx_spawn(t.loop, &opts, &id));
        REQUIRE_OK(jzx_send_u64(t.loop, id, 0, 1));
        tree_pass(&t, 100);
        bool normal = ways[i] == 'i';
        const char *heard = words_take(&p.heard);
        const char *child = normal ? "child_ended:normal" : "child_failed:start_failed";
        const char *watch = normal ? "terminated:normal" : "terminated:start_failed";
        CHECK_EQ(words_count(heard, child), 1);
        CHECK_EQ(words_count(heard, watch), 1);
        CHECK_STR(words_take(&t.fails), normal ? "" : "child:start_failed");
        CHECK_EQ(words_count(t.ends.text, normal ? "child:normal" : "child:start_failed"), 1);
        CHECK_EQ(z.inits, 1); /* nobody asked for another try */
        CHECK_EQ(z.others, 0);
        CHECK_EQ(z.deinits, late ? 1 : 0);
        jzx_counters now = rig_counters(&t.r);
        CHECK_EQ(now.live, 2);
        CHECK_EQ(now.timers, 0);
        CHECK_EQ(now.watches, 0);
        CHECK_EQ(now.dead_by[JZX_DEAD_STOPPED], 5); /* what was sent before it started */
        CHECK_EQ(jzx_actor_state(t.loop, p.child), JZX_STATE_TERMINATED);
        CHECK_EQ(jzx_send_u64(t.loop, p.child, 0, 7), JZX_ERR_NO_SUCH_ACTOR);
        CHECK_EQ(jzx_actor_children(t.loop, id, NULL, 0), 0);
        tree_close(&t);
    }
}

/* Two seconds in which nothing is to be done take next to no ticks, turns and polls. */
static void check_quiet(tree *t)
{
    jzx_counters before = rig_counters(&t->r);
    tree_pass(t, 2000);
    jzx_counters after = rig_counters(&t->r);
    CHECK(after.turns - before.turns <= 2);
    CHECK(after.ticks - before.ticks <= 8);
    CHECK(after.polls - before.polls <= 8);
    CHECK_EQ(after.handled, before.handled);
}

/* actor-ts 915: a stopping actor spun until it was gone. */
static void test_an_actor_that_takes_its_time_to_stop_does_not_spin_R25(void)
{
    tree t;
    kid *kids[3];
    tree_open(&t);
    tree_start_kids(&t, NULL, kids, NULL, 3);
    kids[1]->at_stop = 'd';
    for (int i = 0; i < 100; i++) { /* mail that nobody will read must not keep it awake, either */
        kid_tell(kids[0], KID_NOTE, 0);
    }
    CHECK_OK(jzx_stop(t.loop, t.sup));
    tree_pass(&t, 10);
    CHECK_EQ(jzx_actor_state(t.loop, t.sup), JZX_STATE_STOPPING);
    check_quiet(&t);
    tree_pass(&t, 3100);
    CHECK_GONE(&t, JZX_REASON_SHUTDOWN);
    tree_close(&t);
}

/* Nor does one that backs off, with messages waiting for it. */
static void test_a_child_that_backs_off_does_not_spin_R25(void)
{
    for (uint32_t strategy = JZX_ONE_FOR_ONE; strategy <= JZX_REST_FOR_ONE; strategy++) {
        tree t;
        kid *kids[2];
        jzx_supervisor_spec spec = {
            .strategy = strategy, .backoff_min_ms = 10000, .backoff_max_ms = 10000};
        tree_open(&t);
        tree_start_kids(&t, &spec, kids, NULL, 2);
        kid_end(kids[0], JZX_REASON_FAILED);
        for (int i = 0; i < 100; i++) {
            kid_tell(kids[0], KID_NOTE, 0);
        }
        tree_pass(&t, 10);
        check_quiet(&t);
        CHECK_EQ(kid_state_of(kids[0]), JZX_STATE_RESTARTING);
        tree_pass(&t, 8100);
        CHECK_EQ(kid_state_of(kids[0]), JZX_STATE_RUNNING);
        CHECK_EQ(kids[0]->seen, 100);
        tree_close(&t);
    }
}

typedef struct scribe {
    tree *t;
    uint32_t restarts, shorts;
    jzx_restart_event last;
    jzx_reason cause;
    char name[48];
} scribe;

static void scribe_restart(void *ctx, const jzx_restart_event *event)
{
    scribe *s = ctx;
    s->restarts++;
    s->last = *event;
    s->cause = *event->cause;
    snprintf(s->name, sizeof s->name, "%s", event->name);
}

static void scribe_short(void *ctx, jzx_actor_id id, int attempt)
{
    scribe *s = ctx;
    s->shorts++;
    CHECK_EQ(id, s->t->kids->me.id);
    CHECK_EQ(attempt, s->shorts);
}

/* actor-ts 916: restarts were not logged. */
static void test_every_restart_is_told_with_cause_attempt_and_uptime_R18(void)
{
    tree t;
    kid *a = NULL;
    jzx_supervisor_spec spec = {.intensity = 100, .backoff_min_ms = 100, .backoff_max_ms = 400};
    tree_open(&t);
    tree_start_kids(&t, &spec, &a, NULL, 1);
    scribe s = {.t = &t};
    jzx_observer observer = {.on_restart = scribe_restart, .on_actor_restart = scribe_short};
    REQUIRE_OK(jzx_loop_set_observer(t.loop, &observer, &s));
    static const uint32_t delays[] = {100, 200, 400, 400};
    for (uint32_t i = 0; i < COUNT_OF(delays); i++) {
        bool panics = i % 2 == 1;
        tree_pass(&t, 1000);
        uint64_t up = jzx_sim_now(t.r.sim) - a->at_ns[i];
        kid_end(a, panics ? JZX_REASON_PANIC : JZX_REASON_FAILED);
        CHECK_EQ(s.restarts, i); /* told when the new life begins */
        tree_pass(&t, 500);
        REQUIRE_EQ(s.restarts, i + 1);
        CHECK_EQ(s.last.id, a->me.id);
        CHECK_EQ(s.last.supervisor, t.sup);
        CHECK_STR(s.name, "a");
        CHECK_EQ(s.last.attempt, i + 1);
        CHECK_EQ(s.last.incarnation, i + 2);
        CHECK_EQ(s.last.delay_ms, delays[i]);
        CHECK(s.last.uptime_ns + 1 * MS > up && s.last.uptime_ns < up + 1 * MS);
        CHECK_EQ(s.cause.kind, panics ? JZX_REASON_PANIC : JZX_REASON_FAILED);
        CHECK_EQ(s.cause.code, panics ? KID_PANIC_CODE : KID_FAIL_CODE);
        CHECK_STR(s.cause.text, "as told");
    }
    CHECK_EQ(s.shorts, s.restarts);
    CHECK_EQ(rig_counters(&t.r).restarts, COUNT_OF(delays));
    CHECK_EQ(rig_counters(&t.r).failures, COUNT_OF(delays));
    tree_close(&t);
}

/* actor-ts 920: shutdown had no overall deadline. Ten thousand actors, and one that never stops. */
static void test_a_shutdown_ends_at_its_deadline_and_names_the_culprit_R22(void)
{
    enum { COUNT = 10000 };
    tree t;
    tree_open(&t);
    kid *stubborn = kid_new(&t, "stubborn");
    stubborn->at_stop = 'd';
    jzx_spawn_opts opts = {.behavior = puppet_behavior,
                           .state = stubborn,
                           .init = puppet_init,
                           .deinit = puppet_deinit,
                           .on_signal = puppet_signal,
                           .name = "stubborn",
                           .stop_timeout_ms = JZX_SHUTDOWN_INFINITE};
    puppet_spawn_with(t.loop, &stubborn->me, &opts);
    tree_start_dynamic(&t, NULL, JZX_PERMANENT, 0);
    for (int i = 0; i < COUNT - 2; i++) {
        (void)tree_add_dynamic(&t, NULL);
    }
    tree_idle(&t);
    CHECK_EQ(rig_counters(&t.r).live, COUNT);
    jzx_shutdown_report report;
    uint64_t began = jzx_sim_now(t.r.sim);
    CHECK_EQ(jzx_loop_shutdown(t.loop, 3000, &report), JZX_ERR_TIMED_OUT);
    uint64_t took = jzx_sim_now(t.r.sim) - began;
    CHECK(took >= 2690 * MS && took < 3100 * MS); /* a tenth may be kept back for the killing */
    CHECK(report.duration_ns <= took);
    CHECK(report.duration_ns >= 2690 * MS);
    CHECK_EQ(report.killed, 1);
    CHECK_EQ(report.stopped, COUNT - 1);
    CHECK_EQ(report.in_time, 0);
    REQUIRE_EQ(report.named, 1);
    CHECK_EQ(report.who[0].id, stubborn->me.id);
    CHECK_STR(report.who[0].name, "stubborn");
    CHECK(report.who[0].reason == JZX_REASON_STOP_TIMEOUT ||
          report.who[0].reason == JZX_REASON_KILLED);
    CHECK_EQ(rig_counters(&t.r).live, 0);
    tree_close(&t);
}

/* The deadline binds the deepest child, whatever its own spec and those above it allow. */
static void test_no_infinite_shutdown_outlives_the_systems_deadline_R22(void)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    kid *b = kid_new(&t, "b");
    a->at_stop = 'd';
    jzx_child_spec low[] = {kid_spec(b, JZX_PERMANENT), kid_spec(a, JZX_PERMANENT)};
    low[1].shutdown_ms = JZX_SHUTDOWN_INFINITE;
    jzx_supervisor_init mid = {.children = low, .child_count = 2};
    jzx_child_spec top = {.id = "mid", .supervisor = &mid};
    tree_start(&t, NULL, &top, 1);
    jzx_shutdown_report report;
    uint64_t began = jzx_sim_now(t.r.sim);
    CHECK_EQ(jzx_loop_shutdown(t.loop, 1000, &report), JZX_ERR_TIMED_OUT);
    CHECK(jzx_sim_now(t.r.sim) - began <= 1010 * MS);
    CHECK(report.killed >= 1);
    bool named = false;
    for (uint32_t i = 0; i < report.named; i++) {
        named |= strcmp(report.who[i].name, "a") == 0;
    }
    CHECK(named);
    CHECK_EQ(report.stopped + report.killed, 4);
    CHECK_EQ(rig_counters(&t.r).live, 0);
    tree_close(&t);
}

static void test_a_shutdown_in_time_is_quick_and_the_loop_can_be_used_again_R22(void)
{
    tree t;
    kid *kids[3];
    jzx_shutdown_report report;
    tree_open(&t);
    tree_start_kids(&t, NULL, kids, NULL, 3);
    kids[1]->plan = "f"; /* in the middle of a restart */
    kid_begin_end(kids[1], JZX_REASON_FAILED);
    uint64_t began = jzx_sim_now(t.r.sim);
    CHECK_OK(jzx_loop_shutdown(t.loop, 0, &report));
    CHECK(jzx_sim_now(t.r.sim) - began < 10 * MS);
    CHECK_EQ(report.in_time, 1);
    CHECK_EQ(report.killed, 0);
    CHECK_EQ(report.named, 0);
    CHECK_EQ(report.stopped, 4);
    CHECK_EQ(rig_counters(&t.r).live, 0);
    kid *next = kid_new(&t, "next");
    jzx_child_spec spec = kid_spec(next, JZX_PERMANENT);
    tree_start(&t, NULL, &spec, 1);
    KID_CHECK_LIFE(next, next->me.id, 1);
    tree_close(&t);
}

static const jzt_test tests[] = {
    {"a_flapping_child_follows_the_backoff_curve_R18",
     test_a_flapping_child_follows_the_backoff_curve_R18},
    {"a_child_that_starts_and_soon_fails_backs_off_as_well_R18",
     test_a_child_that_starts_and_soon_fails_backs_off_as_well_R18},
    {"jitter_spreads_the_delays_within_its_part_R18",
     test_jitter_spreads_the_delays_within_its_part_R18},
    {"a_storm_without_backoff_ends_at_the_limit_R19",
     test_a_storm_without_backoff_ends_at_the_limit_R19},
    {"a_restart_storm_starves_no_neighbour_R24", test_a_restart_storm_starves_no_neighbour_R24},
    {"a_start_that_fails_leaves_no_zombie_R15", test_a_start_that_fails_leaves_no_zombie_R15},
    {"an_actor_that_takes_its_time_to_stop_does_not_spin_R25",
     test_an_actor_that_takes_its_time_to_stop_does_not_spin_R25},
    {"a_child_that_backs_off_does_not_spin_R25", test_a_child_that_backs_off_does_not_spin_R25},
    {"every_restart_is_told_with_cause_attempt_and_uptime_R18",
     test_every_restart_is_told_with_cause_attempt_and_uptime_R18},
    {"a_shutdown_ends_at_its_deadline_and_names_the_culprit_R22",
     test_a_shutdown_ends_at_its_deadline_and_names_the_culprit_R22},
    {"no_infinite_shutdown_outlives_the_systems_deadline_R22",
     test_no_infinite_shutdown_outlives_the_systems_deadline_R22},
    {"a_shutdown_in_time_is_quick_and_the_loop_can_be_used_again_R22",
     test_a_shutdown_in_time_is_quick_and_the_loop_can_be_used_again_R22},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
