/* Goal: a timer may be armed for an actor of another dispatcher and cancelled from anywhere, and
 * whatever races with whatever, OK means never delivered, every block is dropped once, and the
 * numbers add up (R4, R5, R26). Method: hands in all places arm and cancel at random while their
 * targets fail, restart and die; and the single cases that a storm meets too rarely. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

enum { GO = 1, TICK, BREAK, LONG_MS = 3600000 };

/* Storm. */
enum { HANDS = 2 * PLACES, FLIES = 16, DEEDS_PER_GO = 8, RECORDS = JZT_SANITIZED ? 6000 : 20000 };

typedef struct record {
    _Atomic jzx_timer_id id;
    _Atomic uint32_t delivered;
    _Atomic uint32_t dropped;
    _Atomic uint32_t cancelled; /* how many were told OK */
    _Atomic uint32_t already;   /* or ALREADY */
    _Atomic bool periodic;
    _Atomic bool lasts; /* longer than the test */
    _Atomic bool refused;
} record;

static record records[RECORDS];
static _Atomic uint32_t taken;
static _Atomic jzx_actor_id beings[HANDS + FLIES];
static bool calm; /* nobody fails or dies */

typedef struct hand {
    jzt_rng rng;
    size_t number;
} hand;
static hand hands[HANDS];

static void drop_record(void *data)
{
    atomic_fetch_add(&((record *)data)->dropped, 1);
}

static void arm_one(jzx_context *ctx, hand *self)
{
    uint32_t index = atomic_fetch_add(&taken, 1);
    jzx_actor_id target = atomic_load(&beings[jzt_rng_below(&self->rng, HANDS + FLIES)]);
    if (index >= RECORDS) {
        return;
    }
    record *r = &records[index];
    r->periodic = jzt_rng_below(&self->rng, 4) == 0;
    jzx_timer_opts opts = {.delay_ms = jzt_rng_below(&self->rng, 3),
                           .period_ms = r->periodic ? 1 + jzt_rng_below(&self->rng, 2) : 0,
                           .data = r,
                           .len = sizeof *r,
                           .drop = drop_record,
                           .tag = TICK,
                           .mode = (uint32_t)jzt_rng_below(&self->rng, 2)};
    r->lasts = jzt_rng_below(&self->rng, 8) == 0;
    if (r->lasts) {
        opts.delay_ms = LONG_MS;
    }
    jzx_timer_id id = 0;
    jzx_err err = jzx_timer_start(ctx->loop, target, &opts, &id);
    if (err == JZX_OK) {
        CHECK(id != 0);
        CHECK_EQ(jzx_id_dispatcher(id), jzx_id_dispatcher(target));
        atomic_store(&r->id, id);
    } else {
        CHECK(err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING);
        r->refused = true;
    }
}

static void cancel_record(jzx_loop *loop, record *r)
{
    jzx_timer_id id = atomic_load(&r->id);
    if (id == 0) {
        return;
    }
    jzx_err err = jzx_cancel_timer(loop, id);
    if (err == JZX_OK) {
        CHECK_EQ(atomic_fetch_add(&r->cancelled, 1), 0);
    } else {
        CHECK_EQ(err, JZX_ERR_ALREADY);
        atomic_fetch_add(&r->already, 1);
    }
}

static void cancel_one(jzx_context *ctx, hand *self)
{
    uint32_t count = atomic_load(&taken) < RECORDS ? atomic_load(&taken) : RECORDS;
    if (count == 0) {
        return;
    }
    /* Most of the time a young one: the old are over. */
    uint64_t back = jzt_rng_below(&self->rng, jzt_rng_below(&self->rng, 4) == 0 ? count : 40);
    cancel_record(ctx->loop, &records[back < count ? count - 1 - back : 0]);
}

static jzx_behavior_result fly(jzx_context *ctx, const jzx_message *msg);

static void end_one(jzx_context *ctx, hand *self)
{
    size_t who = jzt_rng_below(&self->rng, HANDS + FLIES);
    jzx_actor_id id = atomic_load(&beings[who]);
    if (calm || id == 0) {
        return;
    }
    /* The hands only fail: one that is killed while it waits to be restarted ends for good. */
    uint64_t way = who < HANDS ? 0 : jzt_rng_below(&self->rng, 3);
    jzx_err err = way == 0   ? jzx_send_u64(ctx->loop, id, 0, BREAK)
                  : way == 1 ? jzx_kill(ctx->loop, id)
                             : jzx_stop(ctx->loop, id);
    CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING ||
          err == JZX_ERR_MAILBOX_FULL);
}

/* In the place of a dead one. */
static void spawn_fly(jzx_context *ctx, hand *self)
{
    size_t place = jzt_rng_below(&self->rng, PLACES);
    if (place == AT_PINNED && jzt_rng_below(&self->rng, 4) != 0) {
        place = AT_POOL;
    }
    jzx_spawn_opts opts = {.behavior = fly, .dispatcher = places[place], .flags = JZX_SPAWN_QUIET};
    size_t who = HANDS + jzt_rng_below(&self->rng, FLIES);
    jzx_actor_id old = atomic_load(&beings[who]);
    jzx_actor_id id = 0;
    if (jzx_actor_state(ctx->loop, old) == JZX_STATE_TERMINATED &&
        jzx_spawn(ctx->loop, &opts, &id) == JZX_OK &&
        !atomic_compare_exchange_strong(&beings[who], &old, id)) {
        CHECK_OK(jzx_kill(ctx->loop, id)); /* somebody else was as quick; nobody knows this one */
    }
}

static void tick(const jzx_message *msg)
{
    record *r = msg->data;
    CHECK_EQ(msg->kind, JZX_KIND_TIMER);
    CHECK_EQ(atomic_load(&r->dropped), 0);
    uint32_t before = atomic_fetch_add(&r->delivered, 1);
    CHECK(r->periodic || before == 0);
}

static jzx_behavior_result fly(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    if (msg->tag == TICK) {
        tick(msg);
    }
    return msg->tag == BREAK ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result hand_behavior(jzx_context *ctx, const jzx_message *msg)
{
    hand *self = ctx->state;
    if (msg->tag == TICK) {
        tick(msg);
    }
    for (int i = 0; msg->tag == GO && i < DEEDS_PER_GO; i++) {
        uint64_t deed = jzt_rng_below(&self->rng, 100);
        if (deed < 45) {
            arm_one(ctx, self);
        } else if (deed < 94) {
            cancel_one(ctx, self);
        } else if (deed < 97) {
            end_one(ctx, self);
        } else {
            spawn_fly(ctx, self);
        }
    }
    return msg->tag == BREAK ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result hand_init(jzx_context *ctx, void *arg)
{
    hand *self = arg;
    ctx->state = self;
    atomic_store(&beings[self->number], ctx->self);
    return JZX_BEHAVIOR_OK;
}

/* The hands come back however they end. */
static jzx_actor_id start_hands(world *w)
{
    static char names[HANDS][8];
    jzx_child_spec children[HANDS];
    jzt_rng rng = jzt_rng_seeded();
    for (size_t i = 0; i < HANDS; i++) {
        hands[i] = (hand){.rng = {.state = jzt_rng_next(&rng)}, .number = i};
        snprintf(names[i], sizeof names[i], "h%zu", i);
        children[i] = (jzx_child_spec){.id = names[i],
                                       .behavior = hand_behavior,
                                       .init = hand_init,
                                       .arg = &hands[i],
                                       .mode = JZX_PERMANENT,
                                       .dispatcher = places[i % PLACES]};
    }
    jzx_supervisor_spec spec = {.strategy = JZX_ONE_FOR_ONE, .intensity = JZX_INTENSITY_MAX};
    jzx_supervisor_init init = {
        .name = "sup", .spec = &spec, .children = children, .child_count = HANDS};
    jzx_actor_id sup = 0;
    REQUIRE_OK(jzx_spawn_supervisor(w->loop, &init, &sup));
    for (size_t i = 0; i < HANDS; i++) {
        WAIT(w, atomic_load(&beings[i]) != 0);
    }
    return sup;
}

static void check_record(const record *r)
{
    CHECK_EQ(atomic_load(&r->dropped), r->refused ? 0 : 1);
    CHECK(!r->refused || atomic_load(&r->delivered) == 0);
    if (!r->periodic) {
        CHECK(atomic_load(&r->cancelled) == 0 || atomic_load(&r->delivered) == 0);
        /* Of the target's end it may be told as well. */
        CHECK(!calm || atomic_load(&r->already) == 0 ||
              atomic_load(&r->cancelled) + atomic_load(&r->delivered) == 1);
    }
}

static void storm(bool quiet)
{
    calm = quiet;
    memset(records, 0, sizeof records);
    memset(beings, 0, sizeof beings);
    atomic_store(&taken, 0);
    world *w = world_open();
    jzx_actor_id sup = start_hands(w);
    while (atomic_load(&taken) < RECORDS) {
        for (size_t i = 0; i < HANDS; i++) {
            jzx_err err = jzx_send_async_u64(w->sender, atomic_load(&beings[i]), 0, GO);
            REQUIRE(err == JZX_OK || err == JZX_ERR_MAILBOX_FULL);
        }
        REQUIRE_OK(jzx_loop_step(w->loop, 0));
        pause_us(100); /* so that timers come due between the deeds */
    }
    uint64_t cancelled = 0, delivered = 0;
    for (size_t i = 0; calm && i < RECORDS; i++) { /* the rest comes, or is cancelled as well */
        if (records[i].periodic || i % 2 == 0) {
            cancel_record(w->loop, &records[i]);
        }
    }
    for (size_t i = 0; calm && i < RECORDS; i++) {
        const record *r = &records[i];
        WAIT(w, r->periodic || r->lasts || r->refused ||
                    atomic_load(&r->cancelled) + atomic_load(&r->delivered) == 1);
    }
    /* TIMED_OUT: somebody whom a hand has killed ends only now. */
    jzx_err err = jzx_system_shutdown(w->system, 20000, NULL);
    CHECK(err == JZX_OK || (err == JZX_ERR_TIMED_OUT && !calm));
    CHECK_EQ(jzx_actor_state(w->loop, sup), JZX_STATE_TERMINATED);
    world_settle(w);
    for (size_t i = 0; i < RECORDS && jzt_failures() < 20; i++) {
        check_record(&records[i]);
        cancelled += atomic_load(&records[i].cancelled);
        delivered += atomic_load(&records[i].delivered);
    }
    CHECK_EQ(world_counters(w).timers, 0);
    CHECK(cancelled > RECORDS / 50 && delivered > RECORDS / 50); /* it was a storm */
    world_close(w);
}

static void test_a_storm_of_timers_loses_and_doubles_nothing_R26(void)
{
    storm(true);
}

static void test_timers_survive_targets_that_fail_restart_and_die_R26(void)
{
    storm(false);
}

/* The single cases. */
static _Atomic uint64_t drops, hook_drops;

static void count_drop(void *data)
{
    free(data);
    atomic_fetch_add(&drops, 1);
}

static void count_hook(const jzx_message *msg)
{
    free(msg->data);
    atomic_fetch_add(&hook_drops, 1);
}

typedef struct order {
    jzx_actor_id target;
    jzx_timer_opts opts;
    jzx_timer_id id;
    jzx_err err;
    uint64_t count; /* how often */
} order;

static void arm(jzx_context *ctx, puppet *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_timer_start(ctx->loop, o->target, &o->opts, &o->id);
}

static void cancel(jzx_context *ctx, puppet *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_cancel_timer(ctx->loop, o->id);
}

/* On an error the data is still the caller's. */
static void verdicts(world *w, size_t from, size_t to)
{
    atomic_store(&drops, 0);
    atomic_store(&hook_drops, 0);
    puppet *a = puppet_up(puppet_at(w, "a", places[from]));
    puppet *b = puppet_at(w, "b", places[to]);
    b->answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    (void)puppet_up(b);
    void *data = malloc(8);
    order o = {.target = atomic_load(&b->id),
               .opts = {.delay_ms = 1, .data = data, .len = 8, .drop = count_drop, .tag = TICK}};
    if (jzx_id_dispatcher(o.target) != jzx_id_dispatcher(atomic_load(&a->id))) {
        CHECK_OK(jzx_stop(w->loop, o.target));
        WAIT(w, puppet_signals(b, JZX_SIGNAL_PRE_STOP) == 1);
        puppet_call(a, arm, &o); /* at home it may have a last timer; from elsewhere it is closed */
        CHECK_EQ(o.err, JZX_ERR_STOPPING);
    }
    puppet_kill(b);
    puppet_call(a, arm, &o);
    CHECK_EQ(o.err, JZX_ERR_NO_SUCH_ACTOR);
    o.target = atomic_load(&a->id) ^ UINT64_C(0xC0000000); /* a dispatcher that never was */
    puppet_call(a, arm, &o);
    CHECK_EQ(o.err, JZX_ERR_NO_SUCH_ACTOR);
    o.opts.tag = JZX_TAG_SYSTEM_FIRST;
    puppet_call(a, arm, &o);
    CHECK_EQ(o.err, JZX_ERR_RESERVED_TAG);
    o.id = (uint64_t)1 << 32 | 0xC0000000u;
    puppet_call(a, cancel, &o);
    CHECK_EQ(o.err, JZX_ERR_NO_SUCH_TIMER);
    world_settle(w);
    CHECK_EQ(atomic_load(&drops), 0);
    free(data);
    puppet_kill(a);
}

static void test_verdicts_come_at_once_and_leave_the_data_R26(void)
{
    for_all_pairs(verdicts);
}

/* Without `drop` the target's own hook releases what never came. */
static void hooks(world *w, size_t from, size_t to)
{
    atomic_store(&drops, 0);
    atomic_store(&hook_drops, 0);
    puppet *a = puppet_up(puppet_at(w, "a", places[from]));
    puppet *b = puppet_at(w, "b", places[to]);
    b->opts.drop_msg = count_hook;
    (void)puppet_up(b);
    order o = {.target = atomic_load(&b->id)};
    for (uint64_t i = 0; i < 4; i++) {
        o.opts = (jzx_timer_opts){.delay_ms = LONG_MS,
                                  .period_ms = i % 2 == 0 ? 0 : LONG_MS,
                                  .data = malloc(8),
                                  .len = 8,
                                  .tag = TICK};
        puppet_call(a, arm, &o);
        CHECK_OK(o.err);
        if (i < 2) {
            puppet_call(a, cancel, &o);
            CHECK_OK(o.err);
        }
        world_settle(w);
        CHECK_EQ(atomic_load(&hook_drops), i < 2 ? i + 1 : 2);
        CHECK_EQ(world_counters(w).timers, i < 2 ? 0 : i - 1);
    }
    puppet_kill(b);
    world_settle(w);
    CHECK_EQ(atomic_load(&hook_drops), 4);
    CHECK_EQ(world_counters(w).abandoned, 0);
    CHECK_EQ(world_counters(w).timers, 0);
    puppet_kill(a);
}

static void test_the_targets_hook_releases_what_never_came_R4(void)
{
    for_all_pairs(hooks);
}

/* What is queued already can still be cancelled; what is in hand only if it would come again. */
static void cancel_late(world *w, size_t from, size_t to)
{
    atomic_store(&drops, 0);
    atomic_store(&hook_drops, 0);
    puppet *a = puppet_up(puppet_at(w, "a", places[from]));
    puppet *b = puppet_up(puppet_at(w, "b", places[to]));
    bool one_thread = puppet_on_loop(b) || (from == to && from == AT_DESK);
    for (int periodic = 0; periodic < 2 && !one_thread; periodic++) {
        order o = {.target = atomic_load(&b->id),
                   .opts = {.delay_ms = 1,
                            .period_ms = periodic ? 1 : 0,
                            .data = malloc(8),
                            .len = 8,
                            .drop = count_drop,
                            .tag = TICK}};
        size_t seen = puppet_saw(b, TICK);
        puppet_hold(b);
        puppet_call(a, arm, &o);
        CHECK_OK(o.err);
        pause_us(5000); /* due, and in b's lane: nothing tells */
        puppet_call(a, cancel, &o);
        CHECK_OK(o.err);
        puppet_release(b);
        world_settle(w);
        CHECK_EQ(puppet_saw(b, TICK), seen);
        CHECK_EQ(atomic_load(&drops), periodic + 1);
        puppet_call(b, cancel, &o);
        CHECK_EQ(o.err, JZX_ERR_ALREADY);
    }
    puppet_kill(a);
    puppet_kill(b);
}

static void test_a_queued_message_can_still_be_cancelled_R26(void)
{
    for_all_pairs(cancel_late);
}

/* The ids of a dispatcher that is gone do not name timers of the one that took its index. */
static void test_ids_outlive_their_dispatcher_R2(void)
{
    world *w = world_open();
    puppet *a = puppet_up(puppet_at(w, "a", "pool"));
    jzx_timer_id old[20];
    uint32_t index = 0;
    for (size_t round = 0; round < COUNT_OF(old); round++) {
        puppet *b = puppet_up(puppet_at(w, "b", "pinned"));
        order o = {.target = atomic_load(&b->id), .opts = {.delay_ms = LONG_MS, .tag = TICK}};
        CHECK(round == 0 || jzx_id_dispatcher(o.target) == index); /* it is used again */
        index = jzx_id_dispatcher(o.target);
        puppet_call(a, arm, &o);
        CHECK_OK(o.err);
        puppet_call(b, arm, &o);
        CHECK_OK(o.err);
        old[round] = o.id;
        for (size_t i = 0; i < round; i++) {
            o.id = old[i];
            puppet_call(i % 2 == 0 ? a : b, cancel, &o);
            CHECK_EQ(o.err, JZX_ERR_ALREADY);
        }
        world_settle(w);
        CHECK_EQ(world_counters(w).timers, 2);
        puppet_kill(b);
        world_settle(w);
        CHECK_EQ(world_counters(w).timers, 0);
        o.id = old[round];
        puppet_call(a, cancel, &o);
        CHECK_EQ(o.err, JZX_ERR_ALREADY);
    }
    puppet_kill(a);
    world_close(w);
}

static const jzt_test tests[] = {
    {"a_storm_of_timers_loses_and_doubles_nothing_R26",
     test_a_storm_of_timers_loses_and_doubles_nothing_R26},
    {"timers_survive_targets_that_fail_restart_and_die_R26",
     test_timers_survive_targets_that_fail_restart_and_die_R26},
    {"verdicts_come_at_once_and_leave_the_data_R26",
     test_verdicts_come_at_once_and_leave_the_data_R26},
    {"the_targets_hook_releases_what_never_came_R4",
     test_the_targets_hook_releases_what_never_came_R4},
    {"a_queued_message_can_still_be_cancelled_R26",
     test_a_queued_message_can_still_be_cancelled_R26},
    {"ids_outlive_their_dispatcher_R2", test_ids_outlive_their_dispatcher_R2},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
