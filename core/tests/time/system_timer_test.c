/* Goal: timers on actors elsewhere are never early, come once, and cancel says the truth from any
 * place (R26); room notices cross dispatchers, in order and without false promises (R12). Method:
 * puppets in every place; races between firing and cancelling are played many times. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

enum { WORK = 1, TICK = 2, FILL = 3, SENT = 4 };

static _Atomic uint64_t drops;

static void count_drop(void *data)
{
    free(data);
    atomic_fetch_add(&drops, 1);
}

/* a arms timers on b; anybody cancels them. */
typedef struct pair {
    world *w;
    puppet *a;
    puppet *b;
    jzx_timer_id timer;
    uint64_t armed_ns;
    jzx_timer_opts opts;
    jzx_err err;
} pair;

static pair *pair_open(world *w, size_t a, size_t b)
{
    static pair p;
    p = (pair){.w = w};
    p.a = puppet_up(puppet_at(w, "a", places[a]));
    p.b = puppet_up(puppet_at(w, "b", places[b]));
    atomic_store(&drops, 0);
    return &p;
}

static void pair_close(pair *p)
{
    (void)jzx_system_stop(p->w->system, atomic_load(&p->a->id));
    (void)jzx_system_stop(p->w->system, atomic_load(&p->b->id));
    WAIT(p->w, atomic_load(&p->a->ends) == 1 && atomic_load(&p->b->ends) == 1);
    world_settle(p->w);
    CHECK_EQ(world_counters(p->w).timers, 0);
}

static void arm(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    (void)self;
    p->armed_ns = jzx_loop_now(ctx->loop);
    CHECK_OK(jzx_timer_start(ctx->loop, atomic_load(&p->b->id), &p->opts, &p->timer));
    CHECK(p->timer != 0);
}

static void cancel(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    (void)self;
    p->err = jzx_cancel_timer(ctx->loop, p->timer);
}

static void arm_hundred(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    (void)self;
    p->armed_ns = jzx_loop_now(ctx->loop);
    for (uint64_t i = 0; i < 100; i++) {
        jzx_timer_opts opts = {.delay_ms = 10, .u64 = i, .tag = TICK, .flags = JZX_TIMER_VALUE};
        CHECK_OK(jzx_timer_start(ctx->loop, atomic_load(&p->b->id), &opts, &p->timer));
    }
}

static void never_early(world *w, size_t from, size_t to)
{
    pair *p = pair_open(w, from, to);
    puppet_log_clear(p->b);
    puppet_call(p->a, arm_hundred, p);
    WAIT(w, puppet_saw(p->b, TICK) == 100);
    for (size_t i = 0; i < 100; i++) {
        sight e = puppet_sight(p->b, i);
        CHECK_EQ(e.u64, i); /* in the order of arming */
        CHECK_EQ(e.kind, JZX_KIND_TIMER);
        CHECK_EQ(e.sender, atomic_load(&p->a->id));
        CHECK(e.at_ns >= p->armed_ns + 10 * MS);
    }
    puppet_call(p->a, cancel, p);
    CHECK_EQ(p->err, JZX_ERR_ALREADY);
    pair_close(p);
}

static void test_timers_elsewhere_are_never_early_and_in_order_R26(void)
{
    for_all_pairs(never_early);
}

/* Cancelled by the one who armed it, by its target and by a third one. */
static void cancelled(world *w, size_t from, size_t to)
{
    pair *p = pair_open(w, from, to);
    puppet *third = puppet_up(puppet_at(w, "third", places[(from + to + 1) % PLACES]));
    puppet *who[] = {p->a, p->b, third};
    for (size_t i = 0; i < COUNT_OF(who); i++) {
        for (int periodic = 0; periodic < 2; periodic++) {
            atomic_store(&drops, 0);
            p->opts = (jzx_timer_opts){.delay_ms = 3600000,
                                       .period_ms = periodic ? 3600000 : 0,
                                       .data = malloc(8),
                                       .len = 8,
                                       .drop = count_drop,
                                       .tag = TICK};
            puppet_call(p->a, arm, p);
            puppet_call(who[i], cancel, p);
            CHECK_OK(p->err);
            puppet_call(who[i], cancel, p);
            CHECK_EQ(p->err, JZX_ERR_ALREADY);
            world_settle(w);
            CHECK_EQ(atomic_load(&drops), 1);
            CHECK_EQ(world_counters(w).timers, 0);
        }
    }
    p->timer = UINT64_C(0x7FFFFFFFFFFFFF01);
    puppet_call(p->a, cancel, p);
    CHECK(p->err == JZX_ERR_NO_SUCH_TIMER || p->err == JZX_ERR_ALREADY);
    CHECK_EQ(puppet_saw(p->b, TICK), 0);
    CHECK_OK(jzx_stop(w->loop, atomic_load(&third->id)));
    WAIT(w, atomic_load(&third->ends) == 1);
    pair_close(p);
}

static void test_anybody_may_cancel_a_timer_from_anywhere_R26(void)
{
    for_all_pairs(cancelled);
}

/* The timer fires while it is cancelled: OK means never, ALREADY means once. */
static void arm_and_cancel(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    uint64_t delay = p->opts.delay_ms;
    arm(ctx, self, p);
    uint64_t end = now_ns() + delay * MS + (now_ns() % 1000) * 1500;
    while (now_ns() < end) {
    }
    cancel(ctx, self, p);
}

static void cancel_races(world *w, size_t from, size_t to)
{
    pair *p = pair_open(w, from, to);
    uint64_t came = 0;
    for (uint64_t round = 1; round <= 12; round++) {
        p->opts = (jzx_timer_opts){
            .delay_ms = round % 3, .data = malloc(8), .len = 8, .drop = count_drop, .tag = TICK};
        puppet_call(p->a, arm_and_cancel, p);
        CHECK(p->err == JZX_OK || p->err == JZX_ERR_ALREADY);
        came += p->err == JZX_ERR_ALREADY ? 1 : 0;
        world_settle(w);
        CHECK_EQ(puppet_saw(p->b, TICK), came);
        CHECK_EQ(atomic_load(&drops), round);
    }
    pair_close(p);
}

static void test_a_cancel_that_meets_the_timer_tells_the_truth_R26(void)
{
    for_all_pairs(cancel_races);
}

static void periodic(world *w, size_t from, size_t to)
{
    pair *p = pair_open(w, from, to);
    for (uint32_t mode = JZX_TIMER_FIXED_RATE; mode <= JZX_TIMER_FIXED_DELAY; mode++) {
        p->opts = (jzx_timer_opts){.delay_ms = 2,
                                   .period_ms = 2,
                                   .data = malloc(8),
                                   .len = 8,
                                   .drop = count_drop,
                                   .tag = TICK,
                                   .mode = mode};
        puppet_log_clear(p->b);
        atomic_store(&drops, 0);
        puppet_call(p->a, arm, p);
        WAIT(w, puppet_saw(p->b, TICK) >= 5);
        puppet_call(p->a, cancel, p);
        CHECK_OK(p->err);
        size_t then = puppet_saw(p->b, TICK);
        world_settle(w);
        size_t later = puppet_saw(p->b, TICK);
        CHECK(later <= then + 1); /* one may have been in hand */
        pause_us(10000);
        world_settle(w);
        CHECK_EQ(puppet_saw(p->b, TICK), later);
        CHECK_EQ(atomic_load(&drops), 1);
    }
    pair_close(p);
}

static void test_a_periodic_timer_elsewhere_comes_until_it_is_cancelled_R26(void)
{
    for_all_pairs(periodic);
}

/* The target owns the timer: it is gone, and released, when the target ends. */
static void target_ends(world *w, size_t from, size_t to)
{
    pair *p = pair_open(w, from, to);
    for (uint64_t i = 0; i < 20; i++) {
        p->opts = (jzx_timer_opts){.delay_ms = i % 4 == 0 ? 1 : 3600000,
                                   .period_ms = i % 2 == 0 ? 0 : 1000,
                                   .data = malloc(8),
                                   .len = 8,
                                   .drop = count_drop,
                                   .tag = TICK};
        puppet_call(p->a, arm, p);
    }
    CHECK_OK(jzx_kill(w->loop, atomic_load(&p->b->id)));
    WAIT(w, atomic_load(&p->b->ends) == 1);
    world_settle(w);
    CHECK_EQ(atomic_load(&drops), 20);
    CHECK_EQ(world_counters(w).timers, 0);
    puppet_call(p->a, cancel, p);
    CHECK_EQ(p->err, JZX_ERR_ALREADY);
    pair_close(p);
}

static void test_timers_go_with_their_target_R26(void)
{
    for_all_pairs(target_ends);
}

/* Room. Tests that need a target which is full and stays so have it in its behavior; "loop" stands
 * still instead. A waiter on the target's own thread could not even ask then. */
static bool can_stay_full(const pair *p)
{
    return !puppet_on_loop(p->b) && !share_thread(p->a, p->b);
}

static void ask_room(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    (void)self;
    CHECK_OK(jzx_notify_room(ctx->loop, atomic_load(&p->b->id)));
}

static pair *pair_open_small(world *w, size_t a, size_t b, uint32_t cap, uint32_t low)
{
    static pair p;
    p = (pair){.w = w};
    p.a = puppet_up(puppet_at(w, "a", places[a]));
    p.b = puppet_at(w, "b", places[b]);
    p.b->opts.mailbox_cap = cap;
    p.b->opts.low_water = low;
    (void)puppet_up(p.b);
    return &p;
}

static void fill_b(pair *p)
{
    puppet_hold(p->b);
    while (jzx_send_async_u64(p->w->sender, atomic_load(&p->b->id), 1, FILL) == JZX_OK) {
    }
}

static void room_is_told(world *w, size_t from, size_t to)
{
    pair *p = pair_open_small(w, from, to, 8, 2);
    sight e = {0};
    puppet_call(p->a, ask_room, p); /* there is room: at once */
    WAIT(w, puppet_count(p->a, 0, JZX_TAG_ROOM, &e) == 1);
    CHECK_EQ(e.err, JZX_OK);
    CHECK_EQ(e.sender, atomic_load(&p->b->id));
    CHECK_EQ(e.u64, 8);
    world_settle(w);
    if (can_stay_full(p)) {
        fill_b(p);
        puppet_call(p->a, ask_room, p);
        puppet_call(p->a, ask_room, p); /* one request */
        CHECK_EQ(puppet_saw(p->a, JZX_TAG_ROOM), 1);
        puppet_release(p->b);
        WAIT(w, puppet_saw(p->a, JZX_TAG_ROOM) >= 2);
        world_settle(w);
        CHECK_EQ(puppet_count(p->a, 0, JZX_TAG_ROOM, &e), 2);
        CHECK_EQ(e.err, JZX_OK);
        CHECK(e.u64 >= 6 && e.u64 <= 8); /* at its low-water mark or below */
        CHECK_EQ(puppet_saw(p->b, FILL), 8);
    }
    pair_close(p);
}

static void test_room_elsewhere_is_told_once_R12(void)
{
    for_all_pairs(room_is_told);
}

static void the_dead_have_no_room(world *w, size_t from, size_t to)
{
    pair *p = pair_open_small(w, from, to, 8, 2);
    sight e = {0};
    bool waits = can_stay_full(p);
    if (waits) {
        fill_b(p);
        puppet_call(p->a, ask_room, p);
        CHECK_OK(jzx_kill(w->loop, atomic_load(&p->b->id)));
        puppet_release(p->b);
    } else {
        CHECK_OK(jzx_kill(w->loop, atomic_load(&p->b->id)));
    }
    WAIT(w, atomic_load(&p->b->ends) == 1);
    if (!waits) {
        puppet_call(p->a, ask_room, p); /* it is gone already: a notice too */
    }
    WAIT(w, puppet_count(p->a, 0, JZX_TAG_ROOM, &e) == 1);
    CHECK_EQ(e.err, JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(e.sender, atomic_load(&p->b->id));
    puppet_call(p->a, ask_room, p);
    WAIT(w, puppet_count(p->a, 0, JZX_TAG_ROOM, &e) == 2);
    CHECK_EQ(e.err, JZX_ERR_NO_SUCH_ACTOR);
    pair_close(p);
}

static void test_a_target_that_dies_answers_its_waiters_R12(void)
{
    for_all_pairs(the_dead_have_no_room);
}

/* A waiter that dies leaves nothing behind, and nobody waits for ever because of it. */
static void waiters_die(world *w, size_t from, size_t to)
{
    pair *p = pair_open_small(w, from, to, 2, 0);
    puppet *other = puppet_up(puppet_at(w, "other", places[from]));
    if (can_stay_full(p)) {
        fill_b(p);
    }
    puppet_call(p->a, ask_room, p);
    static pair second;
    second = *p;
    puppet_call(other, ask_room, &second);
    CHECK_OK(jzx_system_kill(w->system, atomic_load(&p->a->id)));
    puppet_release(p->b);
    WAIT(w, puppet_saw(other, JZX_TAG_ROOM) == 1);
    CHECK_OK(jzx_stop(w->loop, atomic_load(&other->id)));
    WAIT(w, atomic_load(&other->ends) == 1);
    pair_close(p);
}

static void test_a_waiter_that_dies_swallows_nobodys_turn_R12(void)
{
    for_all_pairs(waiters_die);
}

/* Waiters in all places send one message each when they are told. No promise is broken, and all are
 * served. */
enum { WAITERS = 50 };

static jzx_behavior_result send_when_told(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_ROOM) {
        CHECK_OK(jzx_send_u64(ctx->loop, atomic_load(&((puppet *)self->arg)->id), 1, SENT));
    }
    return JZX_BEHAVIOR_OK;
}

static void test_as_many_waiters_as_slots_are_told_R12(void)
{
    for (size_t to = 0; to < PLACES; to++) {
        world *w = world_open();
        puppet *b = puppet_at(w, "b", places[to]);
        b->opts.mailbox_cap = 4;
        b->opts.low_water = JZX_LOW_WATER_EMPTY;
        (void)puppet_up(b);
        puppet *all[WAITERS];
        static pair p;
        p = (pair){.w = w, .b = b};
        for (size_t i = 0; i < WAITERS; i++) {
            char name[64];
            snprintf(name, sizeof name, "w%zu", i);
            all[i] = puppet_at(w, name, i % 10 == 1 ? "pinned" : places[i % 5 == 1 ? 2 : i % 5]);
            all[i]->on = send_when_told;
            all[i]->arg = b;
            (void)puppet_up(all[i]);
        }
        world_settle(w);
        puppet_hold(b);
        for (uint64_t i = 0; i < 4; i++) {
            REQUIRE_OK(jzx_send_async_u64(w->sender, atomic_load(&b->id), i, FILL));
        }
        size_t waiting = 0;
        for (size_t i = 0; i < WAITERS; i++) {
            if (!share_thread(all[i], b)) {
                puppet_call(all[i], ask_room, &p);
                waiting++;
            }
        }
        puppet_release(b);
        WAIT(w, puppet_saw(b, SENT) == waiting);
        world_settle(w);
        CHECK_EQ(world_counters(w).refused[JZX_REFUSED_FULL], 0);
        world_close(w);
    }
}

static const jzt_test tests[] = {
    {"timers_elsewhere_are_never_early_and_in_order_R26",
     test_timers_elsewhere_are_never_early_and_in_order_R26},
    {"anybody_may_cancel_a_timer_from_anywhere_R26",
     test_anybody_may_cancel_a_timer_from_anywhere_R26},
    {"a_cancel_that_meets_the_timer_tells_the_truth_R26",
     test_a_cancel_that_meets_the_timer_tells_the_truth_R26},
    {"a_periodic_timer_elsewhere_comes_until_it_is_cancelled_R26",
     test_a_periodic_timer_elsewhere_comes_until_it_is_cancelled_R26},
    {"timers_go_with_their_target_R26", test_timers_go_with_their_target_R26},
    {"room_elsewhere_is_told_once_R12", test_room_elsewhere_is_told_once_R12},
    {"a_target_that_dies_answers_its_waiters_R12", test_a_target_that_dies_answers_its_waiters_R12},
    {"a_waiter_that_dies_swallows_nobodys_turn_R12",
     test_a_waiter_that_dies_swallows_nobodys_turn_R12},
    {"as_many_waiters_as_slots_are_told_R12", test_as_many_waiters_as_slots_are_told_R12},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
