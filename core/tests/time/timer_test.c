/* Goal: timers as messages (R26): when they come, in which order, how often, what cancel says in
 * every state, and who releases their data. Method: virtual time; where the clock itself is the
 * puppet, a clock of the test's own over the simulated world. */
#include "puppet.h"

#include <jzx/env.h>

static uint64_t drops;

static void count_drop(void *data)
{
    (void)data;
    drops++;
}

typedef struct hit {
    uint64_t at_ns;
    uint64_t due_ns;
    uint64_t missed;
    jzx_timer_id id;
} hit;

typedef struct clock_face {
    hit hits[256];
    size_t count;
    uint64_t stall_ns; /* spent in the first message */
} clock_face;

static jzx_behavior_result note_hit(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    clock_face *face = self->arg;
    if (face->count < COUNT_OF(face->hits)) {
        face->hits[face->count] = (hit){jzx_loop_now(ctx->loop), msg->deadline_ns,
                                        jzx_timer_missed(ctx), jzx_timer_current(ctx)};
    }
    if (face->count++ == 0 && face->stall_ns > 0) {
        spend(ctx->loop, face->stall_ns);
    }
    return JZX_BEHAVIOR_OK;
}

static void test_a_timer_is_never_early_and_not_much_late(void)
{
    static const uint32_t delays[] = {0, 1, 2, 63, 64, 65, 999, 4095, 4096, 86400000, UINT32_MAX};
    rig r = rig_open(NULL);
    clock_face face = {0};
    puppet *s = puppet_start(&r, note_hit, NULL);
    s->arg = &face;
    for (size_t i = 0; i < COUNT_OF(delays); i++) {
        uint64_t armed = jzx_loop_now(r.loop);
        face.count = 0;
        jzx_timer_id id = after(&r, s, delays[i], 1);
        REQUIRE_OK(jzx_kit_run(r.kit, (uint64_t)delays[i] + 5));
        REQUIRE_EQ(face.count, 1);
        uint64_t due = armed + delays[i] * MS;
        CHECK(face.hits[0].at_ns >= due);
        CHECK(face.hits[0].at_ns <= due + 2 * MS);
        CHECK(face.hits[0].due_ns >= due && face.hits[0].due_ns <= due + MS);
        CHECK_EQ(face.hits[0].id, id);
        CHECK_EQ(face.hits[0].missed, 0);
    }
    rig_close(&r);
    puppet_free(s);
}

static void test_the_longest_delay_is_kept_and_a_longer_one_refused(void)
{
    rig r = rig_open(NULL);
    clock_face face = {0};
    puppet *s = puppet_start(&r, note_hit, NULL);
    s->arg = &face;
    jzx_timer_opts opts = {.delay_ms = JZX_TIMER_DELAY_MAX_MS, .tag = 1};
    CHECK_OK(jzx_timer_start(r.loop, s->id, &opts, NULL));
    opts.delay_ms++;
    CHECK_EQ(jzx_timer_start(r.loop, s->id, &opts, NULL), JZX_ERR_TOO_BIG);
    opts = (jzx_timer_opts){.period_ms = (uint64_t)UINT32_MAX + 1, .tag = 1};
    CHECK_EQ(jzx_timer_start(r.loop, s->id, &opts, NULL), JZX_ERR_TOO_BIG);
    uint64_t due = jzx_loop_now(r.loop) + JZX_TIMER_DELAY_MAX_MS * MS;
    REQUIRE_OK(jzx_kit_run(r.kit, JZX_TIMER_DELAY_MAX_MS - 2));
    CHECK_EQ(face.count, 0);
    REQUIRE_OK(jzx_kit_run(r.kit, 5));
    REQUIRE_EQ(face.count, 1);
    CHECK(face.hits[0].at_ns + MS >= due);
    rig_close(&r);
    puppet_free(s);
}

static void test_timers_of_one_millisecond_fire_in_the_order_of_arming(void)
{
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, NULL, NULL);
    static const uint32_t delay[] = {7, 5, 7, 5, 100, 6, 100, 5};
    for (uint32_t i = 0; i < COUNT_OF(delay); i++) {
        (void)after(&r, s, delay[i], i);
    }
    REQUIRE_OK(jzx_kit_settle(r.kit));
    CHECK_LOG(s, 1, 3, 7, 5, 0, 2, 4, 6);
    rig_close(&r);
    puppet_free(s);
}

static void start_periodic(rig *r, const puppet *s, uint32_t mode, jzx_timer_id *out_id)
{
    jzx_timer_opts opts = {.delay_ms = 1000, .period_ms = 1000, .mode = mode, .tag = 1};
    REQUIRE_OK(jzx_timer_start(r->loop, s->id, &opts, out_id));
}

static void test_at_a_fixed_rate_missed_periods_are_counted_not_sent(void)
{
    jzx_sim_opts sim = {.seed = jzt_seed() | 1, .cost_ns = 10 * US};
    rig r = rig_open_with(NULL, &sim);
    clock_face face = {.stall_ns = 10000 * MS};
    puppet *s = puppet_start(&r, note_hit, NULL);
    s->arg = &face;
    start_periodic(&r, s, JZX_TIMER_FIXED_RATE, NULL);
    REQUIRE_OK(jzx_kit_run(r.kit, 14500));
    REQUIRE_EQ(face.count, 5); /* at 1, 11, 12, 13 and 14 seconds */
    CHECK_EQ(face.hits[0].missed, 0);
    CHECK_EQ(face.hits[1].missed, 9);
    CHECK_EQ(face.hits[1].due_ns - face.hits[0].due_ns, 1000 * MS);
    for (size_t i = 2; i < 5; i++) {
        CHECK_EQ(face.hits[i].missed, 0);
        CHECK_EQ(face.hits[i].due_ns - face.hits[0].due_ns, (9 + i) * 1000 * MS);
    }
    rig_close(&r);
    puppet_free(s);
}

static void test_at_a_fixed_delay_the_period_begins_when_the_message_was_handled(void)
{
    jzx_sim_opts sim = {.seed = jzt_seed() | 1, .cost_ns = 10 * US};
    rig r = rig_open_with(NULL, &sim);
    clock_face face = {.stall_ns = 10500 * MS};
    puppet *s = puppet_start(&r, note_hit, NULL);
    s->arg = &face;
    start_periodic(&r, s, JZX_TIMER_FIXED_DELAY, NULL);
    REQUIRE_OK(jzx_kit_run(r.kit, 14000)); /* 1, then 12.5 and 13.5 */
    REQUIRE_EQ(face.count, 3);
    CHECK(face.hits[1].at_ns - face.hits[0].at_ns >= 11500 * MS);
    CHECK(face.hits[2].at_ns - face.hits[1].at_ns >= 1000 * MS);
    CHECK(face.hits[2].at_ns - face.hits[1].at_ns < 1010 * MS);
    CHECK_EQ(face.hits[1].missed, 0);
    rig_close(&r);
    puppet_free(s);
}

static jzx_behavior_result cancel_own(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    jzx_timer_id id = jzx_timer_current(ctx);
    if (msg->kind == JZX_KIND_USER) {
        CHECK_EQ(id, 0);
        CHECK_EQ(jzx_timer_missed(ctx), 0);
        return JZX_BEHAVIOR_OK;
    }
    CHECK_EQ(jzx_cancel_timer(ctx->loop, id), self->number == 0 ? JZX_ERR_ALREADY : JZX_OK);
    CHECK_EQ(jzx_cancel_timer(ctx->loop, id), JZX_ERR_ALREADY);
    return JZX_BEHAVIOR_OK;
}

static void test_cancel_inside_its_own_message(void)
{
    rig r = rig_open(NULL);
    puppet *once = puppet_start(&r, cancel_own, NULL);
    puppet *often = puppet_start(&r, cancel_own, NULL);
    often->number = 1;
    tell(&r, once, 1);
    (void)after(&r, once, 1, 1);
    start_periodic(&r, often, JZX_TIMER_FIXED_RATE, NULL);
    start_periodic(&r, often, JZX_TIMER_FIXED_DELAY, NULL);
    REQUIRE_OK(jzx_kit_run(r.kit, 5000));
    CHECK_EQ(once->handled, 2);
    CHECK_EQ(often->handled, 2);
    CHECK_EQ(rig_counters(&r).timers, 0);
    rig_close(&r);
    puppet_free(once);
    puppet_free(often);
}

typedef struct cancels {
    jzx_timer_id queued, armed, gone;
    jzx_actor_id ended;
} cancels;

static jzx_behavior_result cancel_others(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    cancels *ids = self->arg;
    if (msg->tag == 1) { /* tag 2 is due as well and waits behind this message */
        CHECK_OK(jzx_cancel_timer(ctx->loop, ids->queued));
        CHECK_EQ(jzx_cancel_timer(ctx->loop, ids->queued), JZX_ERR_ALREADY);
        CHECK_OK(jzx_cancel_timer(ctx->loop, ids->armed));
        CHECK_EQ(jzx_cancel_timer(ctx->loop, ids->armed), JZX_ERR_ALREADY);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_timer_id start_dropping(rig *r, const puppet *s, uint64_t ms, uint64_t period)
{
    static int payload;
    jzx_timer_id id = 0;
    jzx_timer_opts opts = {
        .delay_ms = ms, .period_ms = period, .data = &payload, .drop = count_drop, .tag = 2};
    REQUIRE_OK(jzx_timer_start(r->loop, s->id, &opts, &id));
    return id;
}

static void test_cancel_says_the_truth_in_every_state(void)
{
    rig r = rig_open(NULL);
    cancels ids = {0};
    puppet *s = puppet_start(&r, cancel_others, NULL);
    puppet *gone = puppet_start(&r, NULL, NULL);
    s->arg = &ids;
    drops = 0;
    jzx_timer_id first = after(&r, s, 5, 1);
    ids.queued = start_dropping(&r, s, 5, 0);
    ids.armed = start_dropping(&r, s, 500, 0);
    ids.gone = start_dropping(&r, gone, 500, 100);
    CHECK_EQ(rig_counters(&r).timers, 4);
    spend(r.loop, 10 * MS);
    rig_idle(&r);
    CHECK_LOG(s, 1);
    CHECK_EQ(drops, 2);
    CHECK_EQ(rig_counters(&r).revoked, 1);
    CHECK_EQ(jzx_cancel_timer(r.loop, first), JZX_ERR_ALREADY);
    CHECK_OK(jzx_stop(r.loop, gone->id));
    rig_idle(&r);
    CHECK_EQ(jzx_cancel_timer(r.loop, ids.gone), JZX_ERR_ALREADY);
    CHECK_EQ(drops, 3);
    CHECK_EQ(rig_counters(&r).timers, 0);
    /* Slots are used again; old ids stay what they were. */
    jzx_timer_id again = after(&r, s, 1, 3);
    CHECK_EQ(jzx_cancel_timer(r.loop, ids.gone), JZX_ERR_ALREADY);
    CHECK_EQ(jzx_cancel_timer(r.loop, 0), JZX_ERR_NO_SUCH_TIMER);
    CHECK_EQ(jzx_cancel_timer(r.loop, UINT64_MAX), JZX_ERR_NO_SUCH_TIMER);
    CHECK_EQ(jzx_cancel_timer(r.loop, again + ((uint64_t)1 << 32)), JZX_ERR_NO_SUCH_TIMER);
    CHECK_OK(jzx_cancel_timer(r.loop, again));
    rig_close(&r);
    puppet_free(s);
    puppet_free(gone);
}

static void *taken;

static jzx_behavior_result take_on_2(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    if (msg->tag == 2) {
        taken = jzx_message_take(ctx);
    }
    if (msg->tag == 3) {
        jzx_panic(ctx, 1, "with a timer in hand");
    }
    return JZX_BEHAVIOR_OK;
}

static void test_timer_data_is_released_exactly_once(void)
{
    static int payload;
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, NULL, NULL);
    puppet *taker = puppet_start(&r, take_on_2, NULL);
    drops = 0;
    (void)start_dropping(&r, s, 1, 0);
    REQUIRE_OK(jzx_kit_run(r.kit, 3));
    CHECK_EQ(drops, 1); /* after it was handled */
    jzx_timer_id periodic = start_dropping(&r, s, 1, 10);
    REQUIRE_OK(jzx_kit_run(r.kit, 100));
    CHECK_EQ(drops, 1); /* borrowed by every message */
    CHECK_OK(jzx_cancel_timer(r.loop, periodic));
    CHECK_EQ(drops, 2);
    (void)start_dropping(&r, taker, 1, 0);
    REQUIRE_OK(jzx_kit_run(r.kit, 3));
    CHECK_EQ(drops, 2);
    CHECK(taken != NULL);
    (void)start_dropping(&r, taker, 1, 1);
    REQUIRE_OK(jzx_kit_run(r.kit, 3));
    CHECK(taken == NULL); /* a periodic timer keeps its data */
    jzx_timer_opts opts = {.data = &payload, .drop = count_drop, .tag = 3, .period_ms = 1};
    CHECK_OK(jzx_timer_start(r.loop, taker->id, &opts, NULL));
    REQUIRE_OK(jzx_kit_run(r.kit, 3));
    CHECK_EQ(drops, 4); /* the panic ended both periodic ones */
    opts = (jzx_timer_opts){.delay_ms = 9, .data = &payload, .tag = 3};
    CHECK_OK(jzx_timer_start(r.loop, s->id, &opts, NULL)); /* nobody can release this one */
    CHECK_OK(jzx_stop(r.loop, s->id));
    rig_idle(&r);
    CHECK_EQ(rig_counters(&r).abandoned, 1);
    CHECK_EQ(jzx_timer_start(r.loop, s->id, &opts, NULL), JZX_ERR_NO_SUCH_ACTOR);
    rig_close(&r);
    puppet_free(s);
    puppet_free(taker);
}

static void test_values_travel_in_timers(void)
{
    rig r = rig_open(NULL);
    jzx_probe *probe = NULL;
    const jzx_probe_record *record = NULL;
    REQUIRE_OK(jzx_probe_spawn(r.loop, &probe));
    jzx_timer_opts opts = {
        .delay_ms = 2, .u64 = UINT64_MAX - 1, .flags = JZX_TIMER_VALUE, .tag = 4};
    CHECK_OK(jzx_timer_start(r.loop, jzx_probe_id(probe), &opts, NULL));
    REQUIRE_OK(jzx_probe_expect(probe, 4, 10, &record));
    CHECK_EQ(record->u64, UINT64_MAX - 1);
    CHECK_EQ(record->kind, JZX_KIND_TIMER);
    CHECK_EQ(record->sender, JZX_NOBODY);
    jzx_probe_free(probe);
    rig_close(&r);
}

static void test_a_hundred_thousand_timers_fire_once_each(void)
{
    enum { TIMERS = 100000 };
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, NULL, NULL);
    static jzx_timer_id ids[TIMERS];
    jzt_rng rng = jzt_rng_seeded();
    uint64_t cancelled = 0;
    for (size_t i = 0; i < TIMERS; i++) {
        ids[i] = after(&r, s, (uint32_t)jzt_rng_below(&rng, 100000), 1);
    }
    REQUIRE_OK(jzx_kit_run(r.kit, 50000));
    for (size_t i = 0; i < TIMERS; i += 3) {
        jzx_err err = jzx_cancel_timer(r.loop, ids[i]);
        CHECK(err == JZX_OK || err == JZX_ERR_ALREADY);
        cancelled += err == JZX_OK;
    }
    CHECK(jzx_loop_audit(r.loop) == NULL);
    REQUIRE_OK(jzx_kit_settle(r.kit));
    CHECK_EQ(s->handled + cancelled, TIMERS);
    CHECK_EQ(rig_counters(&r).timers, 0);
    rig_close(&r);
    puppet_free(s);
}

/* A clock that the test moves, over a simulated world. */
static const jzx_env *under;
static uint64_t moved_ns;

static uint64_t moved_now(void *ctx)
{
    return under->now_ns(ctx) + moved_ns;
}

typedef struct clock_rig {
    rig r;
    jzx_env env;
} clock_rig;

static void clock_rig_open(clock_rig *c)
{
    jzx_sim_opts opts = {.seed = jzt_seed() | 1};
    REQUIRE_OK(jzx_sim_create(&opts, &c->r.sim));
    under = jzx_sim_env(c->r.sim);
    moved_ns = 0;
    c->env = *under;
    c->env.now_ns = moved_now;
    jzx_config config = {.env = &c->env};
    REQUIRE_OK(jzx_loop_create(&config, &c->r.loop));
}

static void clock_rig_close(clock_rig *c)
{
    const char *wrong = jzx_testkit_check(c->r.loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK_OK(jzx_loop_destroy(c->r.loop));
    jzx_sim_destroy(c->r.sim);
}

static void test_a_clock_that_jumps_ahead_gives_one_message_per_timer(void)
{
    clock_rig c;
    clock_rig_open(&c);
    clock_face face = {0};
    puppet *s = puppet_start(&c.r, note_hit, NULL);
    s->arg = &face;
    start_periodic(&c.r, s, JZX_TIMER_FIXED_RATE, NULL);
    moved_ns = (uint64_t)3600 * 1000 * MS;
    rig_idle(&c.r);
    REQUIRE_EQ(face.count, 1);
    CHECK_EQ(face.hits[0].missed, 3599);
    moved_ns += 1001 * MS;
    rig_idle(&c.r);
    REQUIRE_EQ(face.count, 2);
    CHECK_EQ(face.hits[1].missed, 0);
    CHECK_EQ(face.hits[1].due_ns - face.hits[0].due_ns, 3600000 * MS);
    clock_rig_close(&c);
    puppet_free(s);
}

static void test_no_period_is_lost_when_more_passed_than_can_be_counted(void)
{
    clock_rig c;
    clock_rig_open(&c);
    clock_face face = {0};
    puppet *s = puppet_start(&c.r, note_hit, NULL);
    s->arg = &face;
    uint64_t days_ms = (uint64_t)60 * 86400 * 1000; /* above 2^32 */
    jzx_timer_opts opts = {.delay_ms = 1, .period_ms = 1, .tag = 1};
    REQUIRE_OK(jzx_timer_start(c.r.loop, s->id, &opts, NULL));
    uint64_t before = jzx_loop_now(c.r.loop);
    moved_ns = days_ms * MS;
    rig_idle(&c.r);
    uint64_t passed_ms = (jzx_loop_now(c.r.loop) - before) / MS;
    uint64_t accounted = 0;
    REQUIRE(face.count <= 4);
    for (size_t i = 0; i < face.count; i++) {
        accounted += 1 + face.hits[i].missed;
    }
    CHECK(accounted + 2 >= passed_ms && accounted <= passed_ms + 2);
    clock_rig_close(&c);
    puppet_free(s);
}

static void test_a_clock_that_steps_back_fires_nothing_early_or_twice(void)
{
    clock_rig c;
    clock_rig_open(&c);
    clock_face face = {0};
    puppet *s = puppet_start(&c.r, note_hit, NULL);
    s->arg = &face;
    moved_ns = 10000 * MS;
    (void)after(&c.r, s, 1000, 1);
    moved_ns = 0;
    rig_idle(&c.r);
    (void)after(&c.r, s, 1000, 1); /* counts from the latest time that was seen */
    rig_idle(&c.r);
    CHECK_EQ(face.count, 0);
    moved_ns = 10900 * MS;
    rig_idle(&c.r);
    CHECK_EQ(face.count, 0);
    moved_ns = 11010 * MS;
    rig_idle(&c.r);
    CHECK_EQ(face.count, 2);
    clock_rig_close(&c);
    puppet_free(s);
}

static const jzt_test tests[] = {
    {"a_timer_is_never_early_and_not_much_late", test_a_timer_is_never_early_and_not_much_late},
    {"the_longest_delay_is_kept_and_a_longer_one_refused",
     test_the_longest_delay_is_kept_and_a_longer_one_refused},
    {"timers_of_one_millisecond_fire_in_the_order_of_arming",
     test_timers_of_one_millisecond_fire_in_the_order_of_arming},
    {"at_a_fixed_rate_missed_periods_are_counted_not_sent",
     test_at_a_fixed_rate_missed_periods_are_counted_not_sent},
    {"at_a_fixed_delay_the_period_begins_when_the_message_was_handled",
     test_at_a_fixed_delay_the_period_begins_when_the_message_was_handled},
    {"cancel_inside_its_own_message", test_cancel_inside_its_own_message},
    {"cancel_says_the_truth_in_every_state", test_cancel_says_the_truth_in_every_state},
    {"timer_data_is_released_exactly_once", test_timer_data_is_released_exactly_once},
    {"values_travel_in_timers", test_values_travel_in_timers},
    {"a_hundred_thousand_timers_fire_once_each", test_a_hundred_thousand_timers_fire_once_each},
    {"a_clock_that_jumps_ahead_gives_one_message_per_timer",
     test_a_clock_that_jumps_ahead_gives_one_message_per_timer},
    {"no_period_is_lost_when_more_passed_than_can_be_counted",
     test_no_period_is_lost_when_more_passed_than_can_be_counted},
    {"a_clock_that_steps_back_fires_nothing_early_or_twice",
     test_a_clock_that_steps_back_fires_nothing_early_or_twice},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
