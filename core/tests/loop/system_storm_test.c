/* Goal: under everything at once, on all dispatchers, every promise is kept to the letter (R4, R5,
 * R16, R18, R20, R26): each watch brings one TERMINATED or was taken back, no notice follows an
 * unwatch, every payload is released once and by its own destructor, every state built is released,
 * and the numbers add up. Method: one tamer in each place, and plain threads beside them, draw
 * deeds from their own seeded generators and do them to animals in all places, which take, keep,
 * pass on and answer what they get, fail with it in hand, restart, have children and die. Runs
 * under TSan. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "storm_animals.h"

static jzx_actor_id draw_any(uint64_t number)
{
    return atomic_load(&animals[number % ANIMALS]);
}

static jzx_actor_id draw_animal(tamer *t)
{
    return draw_any(jzt_rng_next(&t->rng) >> 8);
}

static jzx_send_opts draw_cargo(jzt_rng *rng, uint32_t *out_kind)
{
    cargo *c = cargo_new((cargo_kind)jzt_rng_below(rng, CARGO_KINDS));
    *out_kind = c->kind;
    return (jzx_send_opts){.data = c,
                           .len = CARGO_BYTES,
                           .drop = cargo_drop_of(c),
                           .tag = FEED,
                           .flags = (c->kind != CARGO_OWNED ? JZX_SEND_CONSUME : 0) |
                                    (jzt_rng_below(rng, 8) == 0 ? JZX_SEND_URGENT : 0)};
}

static void deed_send(jzx_context *ctx, tamer *t)
{
    uint32_t kind = 0;
    jzx_send_opts opts = draw_cargo(&t->rng, &kind);
    opts.deadline_ns =
        jzt_rng_below(&t->rng, 6) == 0 ? jzx_loop_now(ctx->loop) + jzt_rng_below(&t->rng, MS) : 0;
    jzx_err err = jzx_send_with(ctx->loop, draw_animal(t), &opts);
    CHECK(is_usual(err));
    if (err != JZX_OK && kind == CARGO_OWNED) {
        cargo_release(opts.data, CARGO_OWNED); /* an error leaves it with the sender */
    }
}

/* A copy: the cargo stays here. */
static void deed_copy(jzx_context *ctx, tamer *t)
{
    char bytes[100] = {0};
    size_t len = jzt_rng_below(&t->rng, sizeof bytes);
    CHECK(is_usual(jzx_send_copy(ctx->loop, draw_animal(t), bytes, len, FEED)));
}

static void deed_ask(jzx_context *ctx, tamer *t)
{
    uint32_t kind = 0;
    jzx_send_opts load = draw_cargo(&t->rng, &kind);
    jzx_ask_opts opts = {.data = load.data,
                         .len = load.len,
                         .drop = load.drop,
                         .tag = FEED,
                         .flags = load.flags,
                         .timeout_ms = (uint32_t)jzt_rng_below(&t->rng, 20) + 1};
    jzx_err err = jzx_ask(ctx->loop, draw_animal(t), &opts, NULL);
    CHECK(is_usual(err));
    t->asked += err == JZX_OK;
    if (err != JZX_OK && kind == CARGO_OWNED) {
        cargo_release(load.data, CARGO_OWNED);
    }
}

static void deed_watch(jzx_context *ctx, tamer *t)
{
    jzx_actor_id id = draw_animal(t);
    if (id != 0 && t->ref_count < REFS) {
        CHECK_OK(jzx_watch(ctx->loop, id, (uint32_t)jzt_rng_below(&t->rng, 2),
                           &t->refs[t->ref_count++]));
        t->placed++;
    }
}

/* What was not handed over yet can be taken back, whatever became of the target. */
static void deed_unwatch(jzx_context *ctx, tamer *t)
{
    if (t->ref_count > 0) {
        size_t i = jzt_rng_below(&t->rng, t->ref_count);
        CHECK_OK(jzx_unwatch(ctx->loop, t->refs[i]));
        t->refs[i] = t->refs[--t->ref_count];
        t->taken_back++;
    }
}

static void deed_timer(jzx_context *ctx, tamer *t)
{
    jzx_timer_opts opts = {.delay_ms = jzt_rng_below(&t->rng, 4),
                           .period_ms = jzt_rng_below(&t->rng, 6) == 0 ? 2 : 0,
                           .data = cargo_new(CARGO_RED),
                           .len = CARGO_BYTES,
                           .drop = cargo_drop_red,
                           .tag = FEED};
    jzx_timer_id id = 0;
    jzx_err err = jzx_timer_start(ctx->loop, draw_animal(t), &opts, &id);
    CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING);
    if (err != JZX_OK) {
        cargo_drop_red(opts.data);
    } else if (t->timer_count < REFS) {
        t->timers[t->timer_count++] = id;
    }
}

static void deed_cancel(jzx_context *ctx, tamer *t)
{
    if (t->timer_count > 0) {
        size_t i = jzt_rng_below(&t->rng, t->timer_count);
        jzx_err err = jzx_cancel_timer(ctx->loop, t->timers[i]);
        CHECK(err == JZX_OK || err == JZX_ERR_ALREADY);
        t->timers[i] = t->timers[--t->timer_count];
    }
}

static void deed_end(jzx_context *ctx, tamer *t)
{
    jzx_actor_id id = draw_animal(t);
    uint64_t how = jzt_rng_below(&t->rng, 5);
    jzx_err err = how == 0   ? jzx_stop(ctx->loop, id)
                  : how == 1 ? jzx_stop_drained(ctx->loop, id)
                  : how == 2 ? jzx_kill(ctx->loop, id)
                             : jzx_send_u64(ctx->loop, id, jzt_rng_next(&t->rng), LAST);
    CHECK(is_usual(err));
}

static void deed_spawn(jzx_context *ctx, tamer *t)
{
    uint64_t number = jzt_rng_next(&t->rng);
    size_t at = number % PLACES;
    if (at == AT_PINNED && atomic_load(&pinned_now) >= PINNED_MAX) {
        at = AT_POOL;
    }
    jzx_actor_id id = 0;
    jzx_spawn_opts opts = animal_opts(places[at], number);
    CHECK_OK(jzx_spawn(ctx->loop, &opts, &id));
    atomic_fetch_add(&born, 1);
    atomic_store(&animals[number / 8 % ANIMALS], id);
}

static void deed_other(jzx_context *ctx, tamer *t)
{
    jzx_actor_id id = draw_animal(t);
    if (id == 0) {
        return;
    }
    switch (jzt_rng_below(&t->rng, 4)) {
    case 0:
        CHECK_OK(jzx_link(ctx->loop, id));
        break;
    case 1:
        CHECK_OK(jzx_unlink(ctx->loop, id));
        break;
    case 2:
        CHECK_OK(jzx_notify_room(ctx->loop, id));
        break;
    default: {
        jzx_err err = jzx_send_u64(ctx->loop, id, jzt_rng_next(&t->rng), BREED);
        CHECK(err != JZX_ERR_NO_MEMORY && err != JZX_ERR_INVALID_ARG);
        break;
    }
    }
}

static void do_deed(jzx_context *ctx, tamer *t)
{
    static void (*const deeds[])(jzx_context *, tamer *) = {
        deed_send,  deed_send,   deed_send,  deed_copy,    deed_ask,
        deed_ask,   deed_watch,  deed_watch, deed_unwatch, deed_timer,
        deed_timer, deed_cancel, deed_end,   deed_spawn,   deed_other};
    deeds[jzt_rng_below(&t->rng, COUNT_OF(deeds))](ctx, t);
}

static jzx_behavior_result tamer_init(jzx_context *ctx, void *arg)
{
    static const jzx_supervisor_spec policy = {.intensity = JZX_INTENSITY_MAX, .period_ms = 1};
    tamer *t = arg;
    ctx->state = t;
    if (t->strict) {
        CHECK_OK(jzx_set_child_policy(ctx, &policy));
    }
    return JZX_BEHAVIOR_OK;
}

/* A stop is no failure, so nobody is restarted for it; but one that was late is. */
static void clear_children(jzx_context *ctx)
{
    size_t count = jzx_actor_children(ctx->loop, ctx->self, NULL, 0);
    jzx_actor_id *all = calloc(count + 1, sizeof *all);
    count = jzx_actor_children(ctx->loop, ctx->self, all, count);
    for (size_t i = 0; i < count; i++) {
        jzx_err err = jzx_stop(ctx->loop, all[i]);
        CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR);
    }
    free(all);
}

static void tally(jzx_context *ctx, tamer *t)
{
    CHECK_EQ(t->ref_count, 0); /* all whom it watched are gone, and it heard of each */
    CHECK_EQ(t->placed, t->heard + t->taken_back);
    CHECK_EQ(t->asked, t->answered);
    CHECK(t->heard > 0 && t->taken_back > 0 && t->exits > 0);
    CHECK_EQ(jzx_actor_children(ctx->loop, ctx->self, NULL, 0), 0);
    const char *wrong = jzx_loop_audit(ctx->loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
}

static jzx_behavior_result tamer_behavior(jzx_context *ctx, const jzx_message *msg)
{
    tamer *t = ctx->state;
    CHECK_EQ(atomic_exchange(&t->busy, 1), 0);
    check_plain(msg);
    if (msg->kind == JZX_KIND_REPLY) { /* its cargo, if it brings some, is dropped after this */
        t->answered++;
        (void)(jzx_reply_of(ctx)->outcome == JZX_OUTCOME_REPLIED ? cargo_check(msg) : NULL);
    } else if (msg->kind == JZX_KIND_USER && msg->tag == GO && t->deeds > 0) {
        for (int i = 0; i < 8 && t->deeds > 0; i++, t->deeds--) {
            do_deed(ctx, t);
        }
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, GO));
    } else if (msg->kind == JZX_KIND_USER && msg->tag != WORK) {
        if (msg->tag == CLEAR) {
            clear_children(ctx);
        } else if (msg->tag == TALLY) {
            tally(ctx, t);
        }
        atomic_store(&t->finished, 1);
    }
    atomic_store(&t->busy, 0);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result tamer_signal(jzx_context *ctx, const jzx_signal *signal)
{
    tamer *t = ctx->state;
    CHECK_EQ(atomic_exchange(&t->busy, 1), 0);
    if (signal->kind == JZX_SIGNAL_TERMINATED || signal->kind == JZX_SIGNAL_RESTARTED) {
        size_t i = 0;
        while (i < t->ref_count && t->refs[i] != signal->ref) {
            i++;
        }
        CHECK(i < t->ref_count); /* of a watch that is neither over nor taken back */
        if (signal->kind == JZX_SIGNAL_TERMINATED && i < t->ref_count) {
            t->refs[i] = t->refs[--t->ref_count];
            t->heard++;
        }
    }
    t->exits += signal->kind == JZX_SIGNAL_EXIT ? 1 : 0;
    atomic_store(&t->busy, 0);
    return JZX_BEHAVIOR_OK;
}

static void tamers_start(world *w, uint64_t round)
{
    memset(tamers, 0, sizeof tamers);
    for (size_t at = 0; at < PLACES; at++) {
        tamers[at].rng = jzt_rng_seeded();
        tamers[at].rng.state += round * 1000003u + at; /* everybody has deeds of his own */
        tamers[at].strict = at % 2 == 1;
        tamers[at].deeds = DEEDS;
        jzx_actor_id id = 0;
        jzx_spawn_opts opts = {.behavior = tamer_behavior,
                               .init = tamer_init,
                               .on_signal = tamer_signal,
                               .state = &tamers[at],
                               .name = "tamer",
                               .mailbox_cap = 65536,
                               .flags = JZX_SPAWN_TRAP_EXITS,
                               .dispatcher = places[at]};
        REQUIRE_OK(jzx_spawn(w->loop, &opts, &id));
        atomic_store(&tamers[at].id, id);
        REQUIRE_OK(jzx_send_u64(w->loop, id, 0, GO));
    }
}

static void tamers_wait(world *w)
{
    for (size_t at = 0; at < PLACES; at++) {
        WAIT(w, atomic_load(&tamers[at].finished));
        atomic_store(&tamers[at].finished, 0);
    }
}

static void tamers_tell(world *w, uint32_t tag)
{
    for (size_t at = 0; at < PLACES; at++) {
        REQUIRE_OK(jzx_send_u64(w->loop, atomic_load(&tamers[at].id), 0, tag));
    }
    tamers_wait(w);
}

/* A plain thread that feeds animals until the tamers are done. */
typedef struct feeder {
    pthread_t thread;
    jzx_sender *sender;
    jzt_rng rng;
    _Atomic int *over;
} feeder;

static void *feed(void *arg)
{
    feeder *self = arg;
    while (!atomic_load(self->over)) {
        uint32_t kind = 0;
        jzx_send_opts opts = draw_cargo(&self->rng, &kind);
        jzx_actor_id to = draw_any(jzt_rng_next(&self->rng) >> 8);
        jzx_err err = jzx_send_async_with(self->sender, to, &opts);
        CHECK(is_usual(err));
        if (err != JZX_OK && kind == CARGO_OWNED) {
            cargo_release(opts.data, CARGO_OWNED);
        }
        pause_us(jzt_rng_below(&self->rng, 64));
    }
    return NULL;
}

static void feeders_start(world *w, feeder *feeders, _Atomic int *over, uint64_t round)
{
    for (uint64_t i = 0; i < FEEDERS; i++) {
        feeders[i] = (feeder){.rng = jzt_rng_seeded(), .over = over};
        feeders[i].rng.state += round * 7919u + i;
        REQUIRE_OK(jzx_system_sender(w->system, 0, &feeders[i].sender));
        REQUIRE_EQ(pthread_create(&feeders[i].thread, NULL, feed, &feeders[i]), 0);
    }
}

static void feeders_end(feeder *feeders)
{
    for (size_t i = 0; i < FEEDERS; i++) {
        pthread_join(feeders[i].thread, NULL);
        jzx_sender_release(feeders[i].sender);
    }
}

/* An animal whose own children did not stop in time ended by STOP_TIMEOUT, which is a failure: a
 * strict tamer has it again, and has to stop it once more. */
static void clear_all(world *w)
{
    uint64_t end = now_ns() + WAIT_LIMIT_MS * MS;
    do {
        tamers_tell(w, CLEAR);
        jzx_err err = jzx_system_run_until_idle(w->system, 100);
        CHECK(err == JZX_OK || err == JZX_ERR_TIMED_OUT);
    } while (world_counters(w).live != PLACES && now_ns() < end);
    REQUIRE_EQ(world_counters(w).live, PLACES);
}

static void storm(uint64_t round)
{
    world *w = world_open();
    feeder feeders[FEEDERS];
    static _Atomic int over;
    memset(animals, 0, sizeof animals);
    born = built = released = pinned_now = 0;
    cargo_reset();
    atomic_store(&over, 0);
    tamers_start(w, round);
    feeders_start(w, feeders, &over, round);
    tamers_wait(w);
    atomic_store(&over, 1);
    feeders_end(feeders);
    clear_all(w);
    world_settle(w);
    tamers_tell(w, TALLY);
    CHECK_EQ(world_counters(w).timers, 0);
    CHECK_EQ(world_counters(w).spawned, PLACES + atomic_load(&born));
    CHECK_OK(jzx_system_shutdown(w->system, WAIT_LIMIT_MS, NULL));
    CHECK_EQ(world_counters(w).watches, 0);
    CHECK_EQ(atomic_load(&built), atomic_load(&released));
    CHECK_EQ(cargo_lost(), 0);
    CHECK_EQ(atomic_load(&cargo_double), 0);
    CHECK_EQ(atomic_load(&cargo_wrong), 0);
    CHECK_EQ(world_counters(w).abandoned, 0);
    cargo_total += atomic_load(&cargo_made);
    CHECK(atomic_load(&built) > atomic_load(&born) / 2);
    world_close(w);
}

/* One storm, or as many as fit into JZX_STORM_SECONDS (make storm). */
static void test_a_storm_keeps_every_promise_R5(void)
{
    REQUIRE_OK(jzx_crash_guard_install());
    const char *wish = getenv("JZX_STORM_SECONDS");
    uint64_t end = now_ns() + (wish == NULL ? 0 : strtoull(wish, NULL, 10)) * 1000 * MS;
    uint64_t round = 0;
    do {
        storm(round++);
    } while (now_ns() < end && jzt_failures() == 0);
    if (wish != NULL) {
        printf("%llu storms, %llu payloads ", (unsigned long long)round,
               (unsigned long long)cargo_total);
    }
    jzx_crash_guard_remove();
}

static const jzt_test tests[] = {
    {"a_storm_keeps_every_promise_R5", test_a_storm_keeps_every_promise_R5},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
