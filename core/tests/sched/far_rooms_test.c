/* Goal: who waits for room in a mailbox of another dispatcher is told once, in the order of asking,
 * never of a slot that somebody else was promised, and always in the end, whoever dies meanwhile
 * (R9, R12). Method: waiters in all places around small mailboxes; each sends one message per
 * notice, so a refusal means a broken promise. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

enum { SENT = 1, FILL, GO, NOTE };

typedef struct pair {
    world *w;
    puppet *a;
    puppet *b;
    jzx_actor_id target;
    jzx_err err;
} pair;

static void ask(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    (void)self;
    p->err = jzx_notify_room(ctx->loop, p->target);
}

static puppet *small(world *w, const char *name, const char *place, uint32_t cap)
{
    puppet *b = puppet_at(w, name, place);
    b->opts.mailbox_cap = cap;
    b->opts.low_water = JZX_LOW_WATER_EMPTY;
    return puppet_up(b);
}

/* Whether a puppet in one place can be called while another one is held in its code. */
static bool apart(size_t a, size_t b)
{
    return a != AT_LOOP && b != AT_LOOP && (a != b || a == AT_POOL || a == AT_PINNED);
}

/* One slot, many waiters: they are served in the order in which they asked. */
enum { QUEUE = 10 };

static jzx_behavior_result send_when_told(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_ROOM) {
        CHECK_OK(jzx_send_u64(ctx->loop, msg->sender, (uint64_t)(self->name[1] - '0'), SENT));
    }
    return JZX_BEHAVIOR_OK;
}

static void test_waiters_of_all_places_are_told_in_their_order_R12(void)
{
    world *w = world_open();
    for (size_t to = AT_PINNED; to < PLACES; to++) {
        puppet *b = small(w, "b", places[to], 1);
        puppet *all[QUEUE];
        for (size_t i = 0; i < QUEUE; i++) {
            char name[8];
            snprintf(name, sizeof name, "w%zu", i);
            size_t place = (to + i) % PLACES;
            all[i] = puppet_at(w, name, places[place == to ? (size_t)AT_LOOP : place]);
            all[i]->on = send_when_told;
            (void)puppet_up(all[i]);
        }
        puppet_hold(b);
        pair p = {.w = w, .target = atomic_load(&b->id)};
        REQUIRE_OK(jzx_send_async_u64(w->sender, p.target, 0, FILL));
        for (size_t i = 0; i < QUEUE; i++) {
            puppet_call(all[i], ask, &p);
            CHECK_OK(p.err);
        }
        puppet_release(b);
        WAIT(w, puppet_saw(b, SENT) == QUEUE);
        world_settle(w);
        size_t next = 0;
        for (size_t i = 0; i < puppet_log_len(b); i++) {
            sight e = puppet_sight(b, i);
            if (e.signal == 0 && e.tag == SENT) {
                CHECK_EQ(e.u64, next);
                next++;
            }
        }
        for (size_t i = 0; i < QUEUE; i++) {
            CHECK_EQ(puppet_saw(all[i], JZX_TAG_ROOM), 1);
            puppet_kill(all[i]);
        }
        puppet_kill(b);
    }
    CHECK_EQ(world_counters(w).refused[JZX_REFUSED_FULL], 0);
    world_close(w);
}

/* A slot stays promised until the notice was handled, and is free again when its waiter died. This
 * one asks and stays in its code, with the notice in its mailbox. */
static void ask_and_stay(jzx_context *ctx, puppet *self, void *arg)
{
    ask(ctx, self, arg);
    atomic_store(&self->call_done, 1);
    puppet_stay(self);
}

static void promised_while_held(world *w, size_t from, size_t to)
{
    if (!apart(from, to) || from == to) {
        return;
    }
    for (int dies = 0; dies < 2; dies++) {
        puppet *b = small(w, "b", places[to], 1);
        puppet *first = puppet_up(puppet_at(w, "first", places[from]));
        puppet *second = puppet_up(puppet_at(w, "second", places[AT_LOOP]));
        pair p = {.w = w, .target = atomic_load(&b->id)};
        atomic_store(&first->released, 0);
        puppet_call(first, ask_and_stay, &p);
        /* A message to b and back is behind the question. */
        CHECK_OK(jzx_send_u64(w->loop, p.target, 0, NOTE));
        WAIT(w, puppet_saw(b, NOTE) == 1);
        puppet_call(second, ask, &p);
        for (int i = 0; i < 20; i++) {
            world_step(w);
        }
        CHECK_EQ(puppet_saw(second, JZX_TAG_ROOM), 0);
        if (dies) {
            (void)jzx_system_kill(w->system, atomic_load(&first->id));
        }
        puppet_release(first);
        WAIT(w, puppet_saw(second, JZX_TAG_ROOM) == 1);
        world_settle(w);
        CHECK_EQ(puppet_saw(first, JZX_TAG_ROOM), dies ? 0 : 1);
        puppet_kill(first);
        puppet_kill(second);
        puppet_kill(b);
    }
}

static void test_a_slot_stays_promised_until_its_notice_is_out_R12(void)
{
    for_all_pairs(promised_while_held);
}

/* A waiter that is restarted has asked for nothing: what it waited for goes to the next. */
static void fail_soon(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    ask(ctx, self, p);
    CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, T_FAIL));
}

static void spawn_first(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    jzx_supervisor_spec spec = {.intensity = 100};
    jzx_child_spec child = {.id = p->a->name,
                            .behavior = puppet_behavior,
                            .init = puppet_init,
                            .arg = p->a,
                            .deinit = puppet_deinit,
                            .on_signal = puppet_signal,
                            .mode = JZX_PERMANENT,
                            .dispatcher = p->a->place};
    jzx_supervisor_init init = {.name = "sup", .spec = &spec, .children = &child, .child_count = 1};
    (void)self;
    CHECK_OK(jzx_spawn_supervisor(ctx->loop, &init, NULL));
}

static void restarted(world *w, size_t from, size_t to)
{
    if (!apart(from, to)) {
        return;
    }
    puppet *boss = puppet_up(puppet_at(w, "boss", places[from]));
    puppet *b = small(w, "b", places[to], 1);
    puppet *second = puppet_up(puppet_at(w, "second", places[(from + 1) % PLACES]));
    pair p = {.w = w, .a = puppet_at(w, "first", places[from]), .target = atomic_load(&b->id)};
    puppet_call(boss, spawn_first, &p);
    WAIT(w, puppet_signals(p.a, JZX_SIGNAL_POST_START) == 1);
    puppet_hold(b);
    REQUIRE_OK(jzx_send_async_u64(w->sender, p.target, 0, FILL));
    puppet_call(p.a, fail_soon, &p);
    WAIT(w, puppet_signals(p.a, JZX_SIGNAL_POST_RESTART) == 1);
    if (apart((from + 1) % PLACES, to)) {
        puppet_call(second, ask, &p);
    }
    puppet_release(b);
    WAIT(w, !apart((from + 1) % PLACES, to) || puppet_saw(second, JZX_TAG_ROOM) == 1);
    world_settle(w);
    CHECK_EQ(puppet_saw(p.a, JZX_TAG_ROOM), 0);
    puppet_call(p.a, ask, &p); /* its next life may ask as well */
    WAIT(w, puppet_saw(p.a, JZX_TAG_ROOM) == 1);
    puppet_kill(boss);
    WAIT(w, atomic_load(&p.a->ends) == 1);
    puppet_kill(second);
    puppet_kill(b);
}

static void test_a_restart_withdraws_what_was_asked_for_R18(void)
{
    for_all_pairs(restarted);
}

/* Storm: everybody waits for everybody, some fail, some die. */
enum { CROWD = 4 * PLACES, ASKS = JZT_SANITIZED ? 4000 : 20000 };

typedef struct member {
    jzt_rng rng;
    size_t number;
    jzx_actor_id waits_for[CROWD]; /* by the number of the target; 0: for nobody */
    uint64_t told;
    _Atomic bool done; /* it will ask for nothing more */
} member;

static member members[CROWD];
static _Atomic jzx_actor_id crowd[CROWD];
static _Atomic uint64_t asks, deaths;
static _Atomic bool deadly, over;

static void ask_somebody(jzx_context *ctx, member *self)
{
    size_t who = jzt_rng_below(&self->rng, CROWD);
    jzx_actor_id target = atomic_load(&crowd[who]);
    if (self->waits_for[who] != 0) {
        return; /* its notice may be in our mailbox already: asked again, there would be two */
    }
    jzx_err err = jzx_notify_room(ctx->loop, target);
    CHECK(err == JZX_OK || (err == JZX_ERR_STOPPING && atomic_load(&deadly))); /* killed itself */
    self->waits_for[who] = err == JZX_OK ? target : 0;
    atomic_fetch_add(&asks, 1);
}

static void be_told(jzx_context *ctx, member *self, const jzx_room_notice *notice)
{
    size_t who = 0;
    while (who < CROWD && self->waits_for[who] != notice->target) {
        who++;
    }
    CHECK(who < CROWD); /* it has asked, and was not told yet */
    self->waits_for[who % CROWD] = 0;
    self->told++;
    CHECK(notice->err == JZX_OK ? notice->room > 0 : notice->err == JZX_ERR_NO_SUCH_ACTOR);
    if (notice->err == JZX_OK && jzt_rng_below(&self->rng, 4) != 0) {
        jzx_err err = jzx_send_u64(ctx->loop, notice->target, 0, SENT);
        CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING);
    }
}

static jzx_behavior_result crowd_behavior(jzx_context *ctx, const jzx_message *msg)
{
    member *self = ctx->state;
    if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_ROOM) {
        be_told(ctx, self, msg->data);
        return JZX_BEHAVIOR_OK;
    }
    if (msg->tag != GO) {
        return JZX_BEHAVIOR_OK;
    }
    if (atomic_load(&over)) {
        CHECK_OK(jzx_cancel_timer(ctx->loop, jzx_timer_current(ctx)));
        atomic_store(&self->done, true);
        return JZX_BEHAVIOR_OK;
    }
    for (int i = 0; i < 4; i++) {
        ask_somebody(ctx, self);
    }
    if (atomic_load(&deadly) && jzt_rng_below(&self->rng, 40) == 0) {
        atomic_fetch_add(&deaths, 1);
        return JZX_BEHAVIOR_FAIL;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result crowd_init(jzx_context *ctx, void *arg)
{
    member *self = arg;
    memset(self->waits_for, 0, sizeof self->waits_for);
    ctx->state = self;
    /* Timers need no room that somebody was promised. */
    jzx_timer_opts go = {.period_ms = 1, .tag = GO, .flags = JZX_TIMER_VALUE};
    jzx_err err = jzx_timer_start(ctx->loop, ctx->self, &go, NULL);
    CHECK(err == JZX_OK || err == JZX_ERR_STOPPING); /* in a pool somebody may stop it by now */
    return JZX_BEHAVIOR_OK;
}

static void spawn_member(world *w, size_t i)
{
    jzx_spawn_opts opts = {.behavior = crowd_behavior,
                           .init = crowd_init,
                           .state = &members[i],
                           .mailbox_cap = 2,
                           .low_water = JZX_LOW_WATER_EMPTY,
                           .dispatcher = places[i % PLACES]};
    jzx_actor_id id = 0;
    REQUIRE_OK(jzx_spawn(w->loop, &opts, &id));
    atomic_store(&crowd[i], id);
}

/* Kills, and puts others in the place of those who are gone. */
static void stir(world *w, jzt_rng *rng)
{
    size_t i = jzt_rng_below(rng, CROWD);
    jzx_actor_id id = atomic_load(&crowd[i]);
    if (jzx_actor_state(w->loop, id) == JZX_STATE_TERMINATED) {
        spawn_member(w, i);
    } else if (jzt_rng_below(rng, 8) == 0) {
        (void)jzx_system_kill(w->system, id);
    }
}

static bool is_done(world *w, size_t i)
{
    return atomic_load(&members[i].done) ||
           jzx_actor_state(w->loop, atomic_load(&crowd[i])) == JZX_STATE_TERMINATED;
}

static void storm(bool kill)
{
    world *w = world_open();
    jzt_rng rng = jzt_rng_seeded();
    atomic_store(&deadly, kill);
    atomic_store(&over, false);
    atomic_store(&asks, 0);
    atomic_store(&deaths, 0);
    memset(crowd, 0, sizeof crowd);
    for (size_t i = 0; i < CROWD; i++) {
        members[i] = (member){.rng = {.state = jzt_rng_next(&rng)}, .number = i};
        spawn_member(w, i);
    }
    uint64_t end = now_ns() + WAIT_LIMIT_MS * MS;
    while (atomic_load(&asks) < ASKS && now_ns() < end) {
        REQUIRE_OK(jzx_loop_step(w->loop, MS / 4));
        if (kill) {
            stir(w, &rng);
        }
    }
    CHECK(atomic_load(&asks) >= ASKS);
    CHECK(!kill || atomic_load(&deaths) > 0);
    atomic_store(&over, true);
    for (size_t i = 0; i < CROWD; i++) {
        WAIT(w, is_done(w, i));
    }
    world_settle(w);
    uint64_t told = 0;
    for (size_t i = 0; i < CROWD; i++) { /* nobody is left in a queue */
        bool alive = jzx_actor_state(w->loop, atomic_load(&crowd[i])) == JZX_STATE_RUNNING;
        for (size_t j = 0; j < CROWD && alive; j++) {
            CHECK_EQ(members[i].waits_for[j], 0);
        }
        told += members[i].told;
    }
    CHECK(told > ASKS / 4);
    CHECK_EQ(world_counters(w).refused[JZX_REFUSED_FULL], 0);
    world_close(w);
}

static void test_a_storm_of_waiters_is_served_R12(void)
{
    storm(false);
}

static void test_waiters_and_targets_may_die_at_any_time_R9(void)
{
    storm(true);
}

static const jzt_test tests[] = {
    {"waiters_of_all_places_are_told_in_their_order_R12",
     test_waiters_of_all_places_are_told_in_their_order_R12},
    {"a_slot_stays_promised_until_its_notice_is_out_R12",
     test_a_slot_stays_promised_until_its_notice_is_out_R12},
    {"a_restart_withdraws_what_was_asked_for_R18", test_a_restart_withdraws_what_was_asked_for_R18},
    {"a_storm_of_waiters_is_served_R12", test_a_storm_of_waiters_is_served_R12},
    {"waiters_and_targets_may_die_at_any_time_R9", test_waiters_and_targets_may_die_at_any_time_R9},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
