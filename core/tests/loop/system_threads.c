/* Goal: threads that run no actors may spawn, stop, kill and send (R2, R5, R16, R31), and a late
 * order never hits the next tenant of a slot. Method: several plain threads at once against one
 * system; every verdict and every end is counted. Runs under TSan. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

#include <sched.h>

enum { WORK = 1, FINISH = 2, THREADS = 4 };

/* What all threads of a test do, each with its number, while the test's own thread runs "loop". */
typedef struct squad {
    world *w;
    void (*run)(struct squad *s, unsigned number);
    _Atomic unsigned started;
    _Atomic unsigned done;
    pthread_t threads[THREADS];
} squad;

static void *squad_thread(void *arg)
{
    squad *s = arg;
    s->run(s, atomic_fetch_add(&s->started, 1));
    atomic_fetch_add(&s->done, 1);
    return NULL;
}

static void squad_run(world *w, void (*run)(squad *s, unsigned number))
{
    static squad s;
    memset(&s, 0, sizeof s);
    s.w = w;
    s.run = run;
    for (size_t i = 0; i < THREADS; i++) {
        REQUIRE_EQ(pthread_create(&s.threads[i], NULL, squad_thread, &s), 0);
    }
    WAIT(w, atomic_load(&s.done) == THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(s.threads[i], NULL);
    }
}

/* A light actor: counts what it gets, ends when told, and says to all how it began and ended. */
typedef struct light {
    _Atomic uint64_t inits, deinits, handled, orphans;
} light;
static light lights;

static jzx_behavior_result light_init(jzx_context *ctx, void *arg)
{
    light *l = arg;
    atomic_fetch_add(&l->inits, 1);
    if (jzx_actor_parent(ctx->loop, ctx->self) == JZX_NOBODY) {
        atomic_fetch_add(&l->orphans, 1);
    }
    ctx->state = l;
    return JZX_BEHAVIOR_OK;
}

static void light_deinit(jzx_context *ctx)
{
    light *l = ctx->state;
    atomic_fetch_add(&l->deinits, 1);
}

static jzx_behavior_result light_behavior(jzx_context *ctx, const jzx_message *msg)
{
    light *l = ctx->state;
    atomic_fetch_add(&l->handled, 1);
    return msg->tag == FINISH ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

static jzx_spawn_opts light_opts(const char *place)
{
    return (jzx_spawn_opts){.behavior = light_behavior,
                            .init = light_init,
                            .deinit = light_deinit,
                            .state = &lights,
                            .dispatcher = place};
}

static void reset_lights(void)
{
    memset(&lights, 0, sizeof lights);
}

enum { SPAWNS = 300 };

static void spawn_many(squad *s, unsigned number)
{
    /* With "pinned" seldom: threads are dear. */
    for (unsigned i = 0; i < SPAWNS; i++) {
        size_t at = i % 60 == 7 ? AT_PINNED : (i + number) % PLACES;
        at = at == AT_PINNED && i % 60 != 7 ? AT_POOL : at;
        jzx_spawn_opts opts = light_opts(places[at]);
        jzx_actor_id id = 0;
        jzx_err err = jzx_system_spawn(s->w->system, &opts, &id);
        CHECK_OK(err);
        if (err != JZX_OK) {
            continue;
        }
        CHECK_OK(jzx_send_async_u64(s->w->sender, id, i, WORK));
        switch (i % 3) {
        case 0:
            CHECK_OK(jzx_send_async_u64(s->w->sender, id, i, FINISH));
            break;
        case 1:
            CHECK_OK(jzx_system_stop(s->w->system, id));
            break;
        default:
            CHECK_OK(jzx_system_kill(s->w->system, id));
            break;
        }
        jzx_err late = jzx_system_stop(s->w->system, id);
        CHECK(late == JZX_OK || late == JZX_ERR_NO_SUCH_ACTOR);
    }
}

static void test_threads_spawn_send_stop_and_kill_R31(void)
{
    world *w = world_open();
    reset_lights();
    squad_run(w, spawn_many);
    WAIT(w, world_counters(w).ended == THREADS * SPAWNS);
    jzx_counters c = world_counters(w);
    CHECK_EQ(c.spawned, THREADS * SPAWNS);
    CHECK_EQ(c.ended, THREADS * SPAWNS);
    CHECK_EQ(atomic_load(&w->cast.starts), THREADS * SPAWNS);
    CHECK_EQ(atomic_load(&w->cast.ends), THREADS * SPAWNS);
    CHECK_EQ(atomic_load(&lights.inits), atomic_load(&lights.deinits));
    CHECK_EQ(atomic_load(&lights.orphans),
             atomic_load(&lights.inits)); /* the root's, all of them */
    CHECK_EQ(atomic_load(&lights.handled), c.handled);
    world_close(w);
}

/* R2: half of the actors are victims whose ids the threads stop and kill for ever, also long after
 * they ended; the others live in the same slots and must die of nothing but FINISH. */
enum { VICTIMS = 16, TENANTS = 1500 };
static _Atomic jzx_actor_id victims[VICTIMS];
static _Atomic int hunting;
static _Atomic uint64_t shots;

static void hunt(squad *s, unsigned number)
{
    uint64_t n = number;
    while (atomic_load(&hunting)) {
        jzx_actor_id id = atomic_load(&victims[n++ % VICTIMS]);
        jzx_err err = n % 3 == 0 ? jzx_system_kill(s->w->system, id)
                      : n % 3 == 1
                          ? jzx_system_stop(s->w->system, id)
                          : jzx_send_async_u64(s->w->sender, id, 1, FINISH); /* ends it, too */
        CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING);
        atomic_fetch_add(&shots, err == JZX_OK ? 1 : 0);
        sched_yield();
    }
}

static _Atomic uint64_t tenants_hurt;

static void tenant_stopped(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)ctx;
    (void)id;
    if (strcmp(name, "tenant") == 0 && reason->kind != JZX_REASON_NORMAL) {
        atomic_fetch_add(&tenants_hurt, 1);
    }
}

static void live_and_let_die(world *w, size_t at)
{
    static squad s;
    memset(&s, 0, sizeof s);
    s.w = w;
    s.run = hunt;
    for (size_t i = 0; i < VICTIMS; i++) {
        atomic_store(&victims[i], JZX_NOBODY);
    }
    atomic_store(&hunting, 1);
    for (size_t i = 0; i < 2; i++) {
        REQUIRE_EQ(pthread_create(&s.threads[i], NULL, squad_thread, &s), 0);
    }
    jzx_spawn_opts opts = light_opts(places[at]);
    for (unsigned i = 0; i < TENANTS; i++) {
        jzx_actor_id victim = 0, tenant = 0;
        opts.name = NULL;
        REQUIRE_OK(jzx_spawn(w->loop, &opts, &victim));
        jzx_actor_id old = atomic_exchange(&victims[i % VICTIMS], victim);
        opts.name = "tenant";
        REQUIRE_OK(jzx_spawn(w->loop, &opts, &tenant));
        REQUIRE_OK(jzx_send_u64(w->loop, tenant, 1, WORK));
        REQUIRE_OK(jzx_send_u64(w->loop, tenant, 1, FINISH));
        (void)jzx_stop(w->loop, old); /* whoever was not hunted down */
        if (i % 8 == 0) {
            REQUIRE_OK(jzx_loop_step(w->loop, 0));
        }
        if (i % 64 == 0) {
            WAIT(w, world_counters(w).live < 64);
        }
    }
    WAIT(w, atomic_load(&shots) > 0); /* if not before, then the last victims */
    for (size_t i = 0; i < VICTIMS; i++) {
        (void)jzx_stop(w->loop, atomic_load(&victims[i]));
    }
    WAIT(w, world_counters(w).ended == 2 * TENANTS);
    atomic_store(&hunting, 0);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(s.threads[i], NULL);
    }
}

static void test_a_late_order_never_hits_the_next_tenant_R2(void)
{
    static const size_t homes[] = {AT_LOOP, AT_POOL, AT_DESK};
    static const jzx_observer observer = {.on_actor_stop = tenant_stopped};
    for (size_t i = 0; i < COUNT_OF(homes); i++) {
        size_t threads = count_threads();
        world *w = world_open();
        REQUIRE_OK(jzx_system_set_observer(w->system, &observer, NULL, 0));
        reset_lights();
        atomic_store(&shots, 0);
        atomic_store(&tenants_hurt, 0);
        live_and_let_die(w, homes[i]);
        CHECK_EQ(atomic_load(&tenants_hurt), 0);
        jzx_counters c = world_counters(w);
        CHECK_EQ(c.spawned, 2 * TENANTS);
        CHECK_EQ(c.ended, 2 * TENANTS);
        CHECK_EQ(atomic_load(&lights.inits), atomic_load(&lights.deinits));
        world_close(w);
        WAIT_STILL(count_threads() == threads);
    }
}

/* Stops, kills and sends of many threads at one actor: it ends once. */
static puppet *one;
static _Atomic uint64_t taken;

static void all_at_one(squad *s, unsigned number)
{
    jzx_actor_id id = atomic_load(&one->id);
    for (int i = 0; i < 50; i++) {
        jzx_err err = jzx_send_async_u64(s->w->sender, id, 1, WORK);
        CHECK(err == JZX_OK || err == JZX_ERR_STOPPING || err == JZX_ERR_NO_SUCH_ACTOR);
        atomic_fetch_add(&taken, err == JZX_OK ? 1 : 0);
        err = (number + (unsigned)i) % 10 == 0  ? jzx_system_kill(s->w->system, id)
              : (number + (unsigned)i) % 5 == 0 ? jzx_system_stop(s->w->system, id)
                                                : JZX_OK;
        CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR);
    }
}

static void test_one_that_everybody_stops_ends_once_R16(void)
{
    world *w = world_open();
    for (size_t round = 0; round < 40; round++) {
        one = puppet_up(puppet_at(w, "one", places[round % PLACES]));
        atomic_store(&taken, 0);
        uint64_t dead = world_counters(w).dead;
        squad_run(w, all_at_one);
        WAIT(w, atomic_load(&one->ends) == 1);
        world_settle(w);
        CHECK_EQ(atomic_load(&one->ends), 1);
        CHECK_EQ(atomic_load(&one->deinits), 1);
        uint32_t reason = puppet_reason(one).kind;
        CHECK(reason == JZX_REASON_KILLED || reason == JZX_REASON_SHUTDOWN);
        CHECK_EQ(atomic_load(&one->handled) + world_counters(w).dead - dead, atomic_load(&taken));
    }
    world_close(w);
}

/* A full mailbox keeps neither a stop nor a kill of a thread out (R9). */
static void test_a_thread_ends_who_is_full_R9(void)
{
    world *w = world_open();
    for (size_t round = 0; round < 2 * PLACES; round++) {
        puppet *a = puppet_at(w, "full", places[round % PLACES]);
        a->opts.mailbox_cap = 4;
        (void)puppet_up(a);
        jzx_actor_id id = atomic_load(&a->id);
        puppet_hold(a);
        while (jzx_send_async_u64(w->sender, id, 1, WORK) == JZX_OK) {
        }
        CHECK_EQ(jzx_send_async_u64(w->sender, id, 1, WORK), JZX_ERR_MAILBOX_FULL);
        bool kill = round >= PLACES;
        CHECK_OK(kill ? jzx_system_kill(w->system, id) : jzx_system_stop(w->system, id));
        CHECK_EQ(jzx_send_async_u64(w->sender, id, 1, WORK), JZX_ERR_STOPPING);
        puppet_release(a);
        CHECK_PUPPET_ENDED(a, kill ? JZX_REASON_KILLED : JZX_REASON_SHUTDOWN);
        CHECK_EQ(puppet_saw(a, WORK), 0);
        CHECK_EQ(jzx_system_stop(w->system, id), JZX_ERR_NO_SUCH_ACTOR);
        CHECK_EQ(jzx_system_kill(w->system, id), JZX_ERR_NO_SUCH_ACTOR);
    }
    world_close(w);
}

/* Observers: without `serialize` on any thread, with it on the thread of "loop" and in order. */
static pthread_t main_thread;
static _Atomic uint64_t seen_starts, seen_stops, elsewhere;
static jzx_actor_id last_started;
static uint64_t out_of_order;

static void see_start(void *ctx, jzx_actor_id id, const char *name)
{
    (void)ctx;
    atomic_fetch_add(&seen_starts, 1);
    atomic_fetch_add(&elsewhere, pthread_equal(pthread_self(), main_thread) ? 0 : 1);
    CHECK(strcmp(name, "seen") == 0);
    last_started = id;
}

static void see_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)ctx;
    atomic_fetch_add(&seen_stops, 1);
    atomic_fetch_add(&elsewhere, pthread_equal(pthread_self(), main_thread) ? 0 : 1);
    CHECK(strcmp(name, "seen") == 0);
    CHECK_EQ(reason->kind, JZX_REASON_NORMAL);
    out_of_order += id == last_started ? 0 : 1; /* one at a time: start, stop, start, stop */
}

static void test_a_serialized_observer_hears_all_on_one_thread_in_order_R31(void)
{
    static const jzx_observer observer = {.on_actor_start = see_start, .on_actor_stop = see_stop};
    world *w = world_open();
    main_thread = pthread_self();
    atomic_store(&seen_starts, 0);
    atomic_store(&seen_stops, 0);
    atomic_store(&elsewhere, 0);
    out_of_order = 0;
    REQUIRE_OK(jzx_system_set_observer(w->system, &observer, NULL, 1));
    reset_lights();
    for (uint64_t i = 0; i < 100; i++) {
        char name[] = "seen"; /* is gone when the callback comes: everything is copied */
        jzx_spawn_opts opts = light_opts(places[i % PLACES]);
        jzx_actor_id id = 0;
        opts.name = name;
        REQUIRE_OK(jzx_system_spawn(w->system, &opts, &id));
        REQUIRE_OK(jzx_send_async_u64(w->sender, id, 1, FINISH));
        memset(name, '?', sizeof name - 1);
        WAIT(w, atomic_load(&seen_stops) == i + 1);
    }
    CHECK_EQ(atomic_load(&seen_starts), 100);
    CHECK_EQ(atomic_load(&elsewhere), 0);
    CHECK_EQ(out_of_order, 0);
    CHECK_OK(jzx_system_set_observer(w->system, NULL, NULL, 0));
    jzx_spawn_opts opts = light_opts("pool");
    REQUIRE_OK(jzx_spawn(w->loop, &opts, NULL));
    world_settle(w);
    CHECK_EQ(atomic_load(&seen_starts), 100);
    REQUIRE_OK(jzx_system_set_observer(w->system, &cast_observer, &w->cast, 0));
    atomic_store(&w->cast.starts, 1); /* the one above, whose end is seen */
    world_close(w);
}

/* R21: dead letters of all dispatchers are in one ring, and a subscriber anywhere hears of them. */
static void subscribe(jzx_context *ctx, puppet *self, void *arg)
{
    (void)self;
    (void)arg;
    CHECK_OK(jzx_dead_letters_subscribe(ctx->loop));
}

static void read_letters(jzx_context *ctx, puppet *self, void *arg)
{
    uint64_t *count = arg;
    uint64_t cursor = 0, lagged = 0;
    jzx_dead_letter letters[64];
    (void)self;
    *count = jzx_dead_letters_read(ctx->loop, &cursor, letters, COUNT_OF(letters), &lagged);
    CHECK_EQ(lagged, 0);
    for (uint64_t i = 0; i < *count && i < COUNT_OF(letters); i++) {
        CHECK_EQ(letters[i].seq, i + 1);
        CHECK_EQ(letters[i].tag, WORK);
        CHECK_EQ(letters[i].reason, JZX_DEAD_STOPPED);
        CHECK_EQ(jzx_id_dispatcher(letters[i].target), letters[i].len); /* as this test sent them */
    }
}

static void test_dead_letters_of_all_dispatchers_are_in_one_ring_R21(void)
{
    world *w = world_open();
    puppet *readers[PLACES];
    for (size_t at = 0; at < PLACES; at++) {
        char name[64];
        snprintf(name, sizeof name, "reader%zu", at);
        readers[at] = puppet_up(puppet_at(w, name, places[at]));
        puppet_call(readers[at], subscribe, NULL);
    }
    for (uint64_t at = 0; at < PLACES; at++) {
        puppet *a = puppet_up(puppet_at(w, places[at], places[at]));
        jzx_actor_id id = atomic_load(&a->id);
        puppet_hold(a);
        for (int i = 0; i < 3; i++) { /* no data: nothing to release; len says where it died */
            REQUIRE_OK(jzx_send_async(w->sender, id, NULL, jzx_id_dispatcher(id), WORK));
        }
        REQUIRE_OK(jzx_kill(w->loop, id));
        puppet_release(a);
        WAIT(w, atomic_load(&a->ends) == 1);
        world_settle(w);
        for (size_t k = 0; k < PLACES; k++) {
            static uint64_t count;
            sight e = {0};
            puppet_call(readers[k], read_letters, &count);
            CHECK_EQ(count, 3 * (at + 1));
            CHECK(puppet_count(readers[k], 0, JZX_TAG_DEAD_LETTERS, &e) >= 1);
        }
    }
    CHECK_EQ(atomic_load(&w->cast.letters), 3 * PLACES);
    world_close(w);
}

static const jzt_test tests[] = {
    {"threads_spawn_send_stop_and_kill_R31", test_threads_spawn_send_stop_and_kill_R31},
    {"a_late_order_never_hits_the_next_tenant_R2", test_a_late_order_never_hits_the_next_tenant_R2},
    {"one_that_everybody_stops_ends_once_R16", test_one_that_everybody_stops_ends_once_R16},
    {"a_thread_ends_who_is_full_R9", test_a_thread_ends_who_is_full_R9},
    {"a_serialized_observer_hears_all_on_one_thread_in_order_R31",
     test_a_serialized_observer_hears_all_on_one_thread_in_order_R31},
    {"dead_letters_of_all_dispatchers_are_in_one_ring_R21",
     test_dead_letters_of_all_dispatchers_are_in_one_ring_R21},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
