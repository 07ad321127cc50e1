/* Goal: threads that run no actors, and those of other systems, look at actors, stop and kill them,
 * cancel timers and wait for room, with the verdicts that actors get (R2, R11, R12, R16, R26).
 * Method: the same body through a loop's sender, a system's sender and the system itself, with the
 * target on every dispatcher; then races. Runs under TSan. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include <jzx/all.h>
#include <jzx/system.h>
#include <jzx/testkit.h>

#include "support/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORK = 1, TICK = 2, ARM = 3, ARM_EVERY = 4, HOLD = 5, PATIENCE_MS = 60000 };

static const char *const places[] = {"loop", "pinned", "pool", "desk"};
enum { PLACES = sizeof places / sizeof places[0] };

typedef struct target {
    _Atomic uint64_t handled;
    _Atomic uint64_t ticks;
    _Atomic uint64_t ended;
    _Atomic jzx_timer_id timer;
    _Atomic int held;
    _Atomic int release;
} target;

static jzx_behavior_result obey(jzx_context *ctx, const jzx_message *msg)
{
    target *t = ctx->state;
    jzx_timer_id id = 0;
    if (msg->tag == ARM || msg->tag == ARM_EVERY) {
        jzx_timer_opts opts = {.delay_ms = msg->u64, .tag = TICK};
        opts.period_ms = msg->tag == ARM_EVERY ? 1 : 0;
        CHECK_OK(jzx_timer_start(ctx->loop, ctx->self, &opts, &id));
        atomic_store(&t->timer, id);
    } else if (msg->tag == TICK) {
        atomic_fetch_add(&t->ticks, 1);
    } else if (msg->tag == HOLD) {
        atomic_store(&t->held, 1);
        while (atomic_load(&t->release) == 0) {
            (void)usleep(100);
        }
    }
    atomic_fetch_add(&t->handled, 1);
    return JZX_BEHAVIOR_OK;
}

static void count_end(jzx_context *ctx)
{
    target *t = ctx->state;
    atomic_fetch_add(&t->ended, 1);
}

/* A world whose loop runs on a thread of its own, so that the test's thread is a stranger. */
typedef struct world {
    jzx_system *system;
    jzx_loop *loop; /* of the system, or alone */
    jzx_sender *sender;
    jzx_actor_id keeper; /* keeps the run going */
    target keeps;
    pthread_t thread;
} world;

static void *run_it(void *arg)
{
    world *w = arg;
    CHECK_OK(w->system != NULL ? jzx_system_run(w->system) : jzx_loop_run(w->loop));
    return NULL;
}

static void open_world(world *w, bool with_system)
{
    *w = (world){0};
    jzx_dispatcher_spec desk = {.name = "desk", .kind = JZX_DISPATCHER_PINNED};
    jzx_system_config config = {.dispatchers = &desk, .dispatcher_count = 1, .pool_workers = 2};
    if (with_system) {
        REQUIRE_OK(jzx_system_create(&config, &w->system));
        w->loop = jzx_system_loop(w->system);
        REQUIRE_OK(jzx_system_sender(w->system, 0, &w->sender));
    } else {
        REQUIRE_OK(jzx_loop_create(NULL, &w->loop));
        REQUIRE_OK(jzx_sender_open(w->loop, 0, &w->sender));
    }
    jzx_spawn_opts opts = {.behavior = obey, .state = &w->keeps};
    REQUIRE_OK(jzx_spawn(w->loop, &opts, &w->keeper));
}

static void start_world(world *w)
{
    REQUIRE_EQ(pthread_create(&w->thread, NULL, run_it, w), 0);
}

static jzx_actor_id start(const world *w, target *t, const char *place, uint32_t cap)
{
    jzx_spawn_opts opts = {
        .behavior = obey, .state = t, .deinit = count_end, .mailbox_cap = cap, .dispatcher = place};
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(w->system != NULL ? jzx_system_spawn(w->system, &opts, &id)
                                 : jzx_spawn(w->loop, &opts, &id));
    return id;
}

static void close_world(world *w)
{
    if (w->system != NULL) {
        jzx_system_request_stop(w->system);
    } else {
        jzx_loop_request_stop(w->loop);
    }
    pthread_join(w->thread, NULL);
    CHECK_OK(w->system != NULL ? jzx_system_destroy(w->system) : jzx_loop_destroy(w->loop));
    jzx_sender_release(w->sender);
}

#define AWAIT(cond)                                                                                \
    do {                                                                                           \
        for (int n_ = 0; !(cond) && n_ < PATIENCE_MS; n_++) {                                      \
            (void)usleep(1000);                                                                    \
        }                                                                                          \
        REQUIRE(cond);                                                                             \
    } while (0)

static void tell(const world *w, jzx_actor_id id, uint64_t value, uint32_t tag)
{
    REQUIRE_OK(jzx_send_async_u64(w->sender, id, value, tag));
}

/* Which door a call goes through. */
typedef enum way { BY_SENDER, BY_SYSTEM } way;

static jzx_err stop_by(const world *w, way by, jzx_actor_id id)
{
    return by == BY_SENDER ? jzx_sender_stop(w->sender, id) : jzx_system_stop(w->system, id);
}
static jzx_err drain_by(const world *w, way by, jzx_actor_id id)
{
    return by == BY_SENDER ? jzx_sender_stop_drained(w->sender, id)
                           : jzx_system_stop_drained(w->system, id);
}
static jzx_err kill_by(const world *w, way by, jzx_actor_id id)
{
    return by == BY_SENDER ? jzx_sender_kill(w->sender, id) : jzx_system_kill(w->system, id);
}
static jzx_state state_by(const world *w, way by, jzx_actor_id id)
{
    return by == BY_SENDER ? jzx_sender_actor_state(w->sender, id)
                           : jzx_system_actor_state(w->system, id);
}
static jzx_err cancel_by(const world *w, way by, jzx_timer_id id)
{
    return by == BY_SENDER ? jzx_sender_cancel_timer(w->sender, id)
                           : jzx_system_cancel_timer(w->system, id);
}

static void check_ends(const world *w, way by, const char *place)
{
    jzx_err (*const ends[])(const world *, way, jzx_actor_id) = {stop_by, drain_by, kill_by};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        target t = {0};
        jzx_actor_id id = start(w, &t, place, 0);
        tell(w, id, 0, WORK);
        AWAIT(atomic_load(&t.handled) == 1);
        CHECK_EQ(state_by(w, by, id), JZX_STATE_RUNNING);
        tell(w, id, 0, HOLD);
        AWAIT(atomic_load(&t.held) == 1);
        tell(w, id, 0, WORK);
        CHECK_OK(ends[i](w, by, id));
        CHECK_OK(ends[i](w, by, id)); /* again: it is on its way out */
        CHECK_EQ(jzx_send_async_u64(w->sender, id, 0, WORK), JZX_ERR_STOPPING);
        CHECK(state_by(w, by, id) != JZX_STATE_TERMINATED);
        atomic_store(&t.release, 1);
        AWAIT(atomic_load(&t.ended) == 1);
        AWAIT(state_by(w, by, id) == JZX_STATE_TERMINATED);
        CHECK_EQ(ends[i](w, by, id), JZX_ERR_NO_SUCH_ACTOR);
        CHECK_EQ(jzx_send_async_u64(w->sender, id, 0, WORK), JZX_ERR_NO_SUCH_ACTOR);
        /* R6: drained is after what is queued, the others are after the message in hand. */
        CHECK_EQ(atomic_load(&t.handled), ends[i] == drain_by ? 3 : 2);
    }
}

static void check_cancels(const world *w, way by, const char *place)
{
    target t = {0};
    jzx_actor_id id = start(w, &t, place, 0);
    tell(w, id, PATIENCE_MS, ARM);
    AWAIT(atomic_load(&t.timer) != 0);
    jzx_timer_id timer = atomic_load(&t.timer);
    CHECK_OK(cancel_by(w, by, timer));
    CHECK_EQ(cancel_by(w, by, timer), JZX_ERR_ALREADY);
    tell(w, id, 0, ARM);
    AWAIT(atomic_load(&t.ticks) == 1);
    CHECK_EQ(cancel_by(w, by, atomic_load(&t.timer)), JZX_ERR_ALREADY);
    CHECK_EQ(cancel_by(w, by, (timer & 0xFF000000u) | UINT64_C(0xFFFFFF00000000)),
             JZX_ERR_NO_SUCH_TIMER);
    CHECK_EQ(cancel_by(w, by, 0), JZX_ERR_NO_SUCH_TIMER);
    /* A periodic one: not one more message after OK. */
    tell(w, id, 0, ARM_EVERY);
    AWAIT(atomic_load(&t.ticks) > 3);
    CHECK_OK(cancel_by(w, by, atomic_load(&t.timer)));
    tell(w, id, 0, HOLD);
    atomic_store(&t.release, 1);
    AWAIT(atomic_load(&t.held) == 1);
    uint64_t ticks = atomic_load(&t.ticks);
    (void)usleep(5000);
    CHECK_EQ(atomic_load(&t.ticks), ticks);
    /* One that ends with its target. */
    timer = atomic_load(&t.timer);
    tell(w, id, PATIENCE_MS, ARM);
    AWAIT(atomic_load(&t.timer) != timer);
    CHECK_OK(stop_by(w, by, id));
    AWAIT(atomic_load(&t.ended) == 1);
    CHECK_EQ(cancel_by(w, by, atomic_load(&t.timer)), JZX_ERR_ALREADY);
}

static void test_a_thread_ends_looks_at_and_cancels_on_every_dispatcher(void)
{
    world w;
    open_world(&w, true);
    start_world(&w);
    for (way by = BY_SENDER; by <= BY_SYSTEM; by++) {
        for (int i = 0; i < PLACES; i++) {
            check_ends(&w, by, places[i]);
            check_cancels(&w, by, places[i]);
        }
    }
    close_world(&w);
}

/* A loop alone: actors are spawned before it runs. */
static void test_a_thread_ends_looks_at_and_cancels_on_a_loop_alone(void)
{
    world w;
    target stopped = {0};
    target timed = {0};
    open_world(&w, false);
    jzx_actor_id a = start(&w, &stopped, NULL, 0);
    jzx_actor_id b = start(&w, &timed, NULL, 0);
    start_world(&w);
    CHECK_EQ(jzx_sender_actor_state(w.sender, a), JZX_STATE_RUNNING);
    CHECK_OK(jzx_sender_stop(w.sender, a));
    CHECK_EQ(jzx_send_async_u64(w.sender, a, 0, WORK) == JZX_OK, 0);
    AWAIT(atomic_load(&stopped.ended) == 1);
    AWAIT(jzx_sender_actor_state(w.sender, a) == JZX_STATE_TERMINATED);
    CHECK_EQ(jzx_sender_kill(w.sender, a), JZX_ERR_NO_SUCH_ACTOR);
    tell(&w, b, PATIENCE_MS, ARM);
    AWAIT(atomic_load(&timed.timer) != 0);
    CHECK_OK(jzx_sender_cancel_timer(w.sender, atomic_load(&timed.timer)));
    CHECK_EQ(jzx_sender_cancel_timer(w.sender, atomic_load(&timed.timer)), JZX_ERR_ALREADY);
    CHECK_OK(jzx_sender_wait_room(w.sender, b, PATIENCE_MS));
    CHECK_OK(jzx_sender_kill(w.sender, b));
    AWAIT(atomic_load(&timed.ended) == 1);
    jzx_sender *sender = jzx_sender_retain(w.sender);
    close_world(&w);
    CHECK_EQ(jzx_sender_stop(sender, a), JZX_ERR_LOOP_CLOSED);
    CHECK_EQ(jzx_sender_kill(sender, w.keeper), JZX_ERR_LOOP_CLOSED);
    CHECK_EQ(jzx_sender_actor_state(sender, w.keeper), JZX_STATE_TERMINATED);
    CHECK_EQ(jzx_sender_cancel_timer(sender, atomic_load(&timed.timer)), JZX_ERR_ALREADY);
    CHECK_EQ(jzx_sender_wait_room(sender, w.keeper, PATIENCE_MS), JZX_ERR_LOOP_CLOSED);
    jzx_sender_release(sender);
}

static void test_nothing_is_found_without_a_sender_or_an_actor(void)
{
    world w;
    open_world(&w, true);
    CHECK_EQ(jzx_sender_stop(NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_sender_stop_drained(NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_sender_kill(NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_sender_actor_state(NULL, 1), JZX_STATE_TERMINATED);
    CHECK_EQ(jzx_sender_cancel_timer(NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_sender_wait_room(NULL, 1, 0), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_system_stop_drained(NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_system_actor_state(NULL, 1), JZX_STATE_TERMINATED);
    CHECK_EQ(jzx_system_cancel_timer(NULL, 1), JZX_ERR_INVALID_ARG);
    jzx_actor_id nobody = UINT64_C(0x12345678) << 32 | UINT64_C(200) << 24;
    CHECK_EQ(jzx_sender_stop(w.sender, nobody), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_sender_actor_state(w.sender, nobody), JZX_STATE_TERMINATED);
    CHECK_EQ(jzx_sender_cancel_timer(w.sender, nobody), JZX_ERR_NO_SUCH_TIMER);
    CHECK_EQ(jzx_sender_wait_room(w.sender, nobody, 0), JZX_ERR_NO_SUCH_ACTOR);
    /* Nobody runs the loop, so nobody answers. */
    CHECK_EQ(jzx_sender_wait_room(w.sender, w.keeper, 1), JZX_ERR_TIMED_OUT);
    CHECK_EQ(jzx_sender_wait_room(w.sender, w.keeper, 0), JZX_ERR_TIMED_OUT);
    start_world(&w);
    CHECK_EQ(jzx_sender_wait_room(w.sender, nobody - (UINT64_C(200) << 24), PATIENCE_MS),
             JZX_ERR_NO_SUCH_ACTOR);
    close_world(&w);
}

/* R2: threads stop and kill slot after slot; who came next is never hit. */
typedef struct hunt {
    world *w;
    _Atomic jzx_actor_id prey;
    _Atomic bool over;
} hunt;

static void *keep_stopping(void *arg)
{
    hunt *h = arg;
    for (uint64_t i = 0; !atomic_load(&h->over); i++) {
        jzx_actor_id id = atomic_load(&h->prey);
        jzx_err err =
            i % 2 == 0 ? jzx_sender_stop(h->w->sender, id) : jzx_sender_kill(h->w->sender, id);
        CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR);
        (void)jzx_sender_actor_state(h->w->sender, id);
    }
    return NULL;
}

static void test_a_late_stop_never_hits_the_next_tenant_R2(void)
{
    enum { LIVES = JZT_SANITIZED ? 200 : 2000, HUNTERS = 2 };
    world w;
    open_world(&w, true);
    start_world(&w);
    hunt h = {.w = &w};
    pthread_t threads[HUNTERS];
    target *all = calloc(2 * LIVES, sizeof *all);
    for (int i = 0; i < HUNTERS; i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, keep_stopping, &h), 0);
    }
    for (int i = 0; i < LIVES; i++) {
        const char *place = i % 2 == 0 ? "loop" : "pool";
        atomic_store(&h.prey, start(&w, &all[2 * i], place, 0));
        AWAIT(atomic_load(&all[2 * i].ended) == 1);
        /* The next one gets the slot, and is nobody's prey. */
        jzx_actor_id spared = start(&w, &all[2 * i + 1], place, 0);
        tell(&w, spared, 0, WORK);
        AWAIT(atomic_load(&all[2 * i + 1].handled) == 1);
        CHECK_EQ(jzx_sender_actor_state(w.sender, spared), JZX_STATE_RUNNING);
        CHECK_OK(jzx_sender_stop(w.sender, spared));
    }
    atomic_store(&h.over, true);
    for (int i = 0; i < HUNTERS; i++) {
        pthread_join(threads[i], NULL);
    }
    close_world(&w);
    free(all);
}

/* R26: of those who cancel and the one who fires exactly one wins, and says so. */
typedef struct race {
    world *w;
    target *t;
    _Atomic uint64_t seen; /* the timer that was tried last */
    _Atomic bool over;
    uint64_t cancelled;
} race;

static void *keep_cancelling(void *arg)
{
    race *r = arg;
    jzx_timer_id last = 0;
    while (!atomic_load(&r->over)) {
        jzx_timer_id id = atomic_load(&r->t->timer);
        if (id == last) {
            continue;
        }
        last = id;
        jzx_err err = jzx_sender_cancel_timer(r->w->sender, id);
        CHECK(err == JZX_OK || err == JZX_ERR_ALREADY);
        r->cancelled += err == JZX_OK;
    }
    return NULL;
}

static void test_a_cancel_and_the_timer_never_both_win_R26(void)
{
    enum { TIMERS = JZT_SANITIZED ? 300 : 3000, CANCELLERS = 2 };
    for (int alone = 0; alone < 2; alone++) {
        world w;
        target t = {0};
        race races[CANCELLERS];
        pthread_t threads[CANCELLERS];
        open_world(&w, alone == 0);
        jzx_actor_id id = start(&w, &t, alone == 0 ? "pool" : NULL, 0);
        start_world(&w);
        for (int i = 0; i < CANCELLERS; i++) {
            races[i] = (race){.w = &w, .t = &t};
        }
        tell(&w, id, 0, ARM);
        AWAIT(atomic_load(&t.timer) != 0);
        AWAIT(atomic_load(&t.ticks) == 1);
        for (int i = 0; i < CANCELLERS; i++) {
            REQUIRE_EQ(pthread_create(&threads[i], NULL, keep_cancelling, &races[i]), 0);
        }
        for (uint64_t i = 0; i < TIMERS; i++) {
            uint64_t handled = atomic_load(&t.handled);
            tell(&w, id, i % 2, ARM);
            AWAIT(atomic_load(&t.handled) > handled);
        }
        (void)usleep(20000); /* the last ones are due */
        tell(&w, id, 0, HOLD);
        atomic_store(&t.release, 1);
        AWAIT(atomic_load(&t.held) == 1);
        uint64_t cancelled = 0;
        for (int i = 0; i < CANCELLERS; i++) {
            atomic_store(&races[i].over, true);
            pthread_join(threads[i], NULL);
            cancelled += races[i].cancelled;
        }
        AWAIT(atomic_load(&t.ticks) + cancelled == TIMERS + 1);
        close_world(&w);
        CHECK_EQ(atomic_load(&t.ticks) + cancelled, TIMERS + 1);
    }
}

/* Threads of another system's dispatchers. */
typedef struct errand {
    world *there;
    jzx_actor_id id;
    _Atomic int done;
} errand;

static jzx_behavior_result act_abroad(jzx_context *ctx, const jzx_message *msg)
{
    errand *e = ctx->state;
    (void)msg;
    CHECK_EQ(jzx_sender_actor_state(e->there->sender, e->id), JZX_STATE_RUNNING);
    CHECK_EQ(jzx_sender_wait_room(e->there->sender, e->id, 1), JZX_ERR_DEADLOCK);
    CHECK_OK(jzx_system_stop(e->there->system, e->id));
    CHECK_EQ(jzx_send_async_u64(e->there->sender, e->id, 0, WORK) == JZX_OK, 0);
    atomic_store(&e->done, 1);
    return JZX_BEHAVIOR_OK;
}

static void test_actors_of_another_system_stop_actors_here(void)
{
    world here;
    world there;
    open_world(&here, true);
    open_world(&there, true);
    start_world(&here);
    start_world(&there);
    for (int i = 0; i < PLACES; i++) {
        target t = {0};
        errand e = {.there = &there, .id = start(&there, &t, places[(i + 1) % PLACES], 0)};
        tell(&there, e.id, 0, WORK);
        AWAIT(atomic_load(&t.handled) == 1);
        jzx_spawn_opts opts = {.behavior = act_abroad, .state = &e, .dispatcher = places[i]};
        jzx_actor_id id = JZX_NOBODY;
        REQUIRE_OK(jzx_system_spawn(here.system, &opts, &id));
        tell(&here, id, 0, WORK);
        AWAIT(atomic_load(&e.done) == 1 && atomic_load(&t.ended) == 1);
        CHECK_OK(jzx_sender_stop(here.sender, id));
        AWAIT(jzx_sender_actor_state(here.sender, id) == JZX_STATE_TERMINATED);
    }
    close_world(&here);
    close_world(&there);
}

static const jzt_test tests[] = {
    {"a_thread_ends_looks_at_and_cancels_on_every_dispatcher",
     test_a_thread_ends_looks_at_and_cancels_on_every_dispatcher},
    {"a_thread_ends_looks_at_and_cancels_on_a_loop_alone",
     test_a_thread_ends_looks_at_and_cancels_on_a_loop_alone},
    {"nothing_is_found_without_a_sender_or_an_actor",
     test_nothing_is_found_without_a_sender_or_an_actor},
    {"a_late_stop_never_hits_the_next_tenant_R2", test_a_late_stop_never_hits_the_next_tenant_R2},
    {"a_cancel_and_the_timer_never_both_win_R26", test_a_cancel_and_the_timer_never_both_win_R26},
    {"actors_of_another_system_stop_actors_here", test_actors_of_another_system_stop_actors_here},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
