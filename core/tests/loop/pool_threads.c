/* Goal: a pool is a dispatcher like any other, on several threads (R5, R17, R24, R31, R34): an
 * actor runs on one worker at a time, all workers get work, nothing is lost, failures stay with
 * their actor. Method: loops of jzx_loop_create() as pools of 1, 2 and 4 workers; every actor has a
 * flag that says that somebody is inside it. Runs under TSan. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

#include <sched.h>

enum { WORK = 1, BAD = 2, END = 3 };

static const uint32_t sizes[] = {1, 2, 4};

typedef struct pool {
    jzx_loop *loop;
    jzx_fault *fault;
    size_t threads;
} pool;

static pool pool_open(uint32_t workers, bool watch_memory)
{
    pool p = {.threads = count_threads()};
    jzx_config config = {.dispatcher = JZX_DISPATCHER_POOL, .workers = workers};
    if (watch_memory) {
        REQUIRE_OK(jzx_fault_create(NULL, &p.fault));
        config.allocator = jzx_fault_allocator(p.fault);
    }
    REQUIRE_OK(jzx_loop_create(&config, &p.loop));
    return p;
}

static jzx_counters pool_counters(const pool *p)
{
    jzx_counters c;
    jzx_loop_counters(p->loop, &c);
    return c;
}

static void pool_idle(const pool *p)
{
    REQUIRE_OK(jzx_loop_run_until_idle(p->loop));
    const char *wrong = jzx_testkit_check(p->loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    jzx_counters c = pool_counters(p);
    CHECK_EQ(c.queued, 0);
    CHECK_EQ(c.in_hand, 0);
    CHECK_EQ(c.accepted, c.handled + c.dead + c.redirected + c.revoked);
}

static void pool_close(pool *p)
{
    REQUIRE_OK(jzx_loop_destroy(p->loop));
    WAIT_STILL(count_threads() == p->threads);
    if (p->fault != NULL) {
        CHECK_EQ(jzx_fault_leaked(p->fault, NULL), 0);
        CHECK_STR(jzx_fault_check(p->fault), NULL);
        jzx_fault_destroy(p->fault);
    }
}

/* Actors that pass tokens on; all of them share this. */
enum { ACTORS = JZT_TSAN ? 2000 : 10000, HOPS = 100 };

typedef struct runner {
    _Atomic int busy;
    uint32_t index;
    uint64_t handled; /* plain on purpose: only whoever runs the actor touches it */
    uint64_t bytes;
} runner;
static runner runners[ACTORS];
static jzx_actor_id ids[ACTORS];

static void enter(runner *r)
{
    CHECK_EQ(atomic_exchange_explicit(&r->busy, 1, memory_order_relaxed), 0);
}

static jzx_behavior_result leave(runner *r, jzx_behavior_result result)
{
    atomic_store_explicit(&r->busy, 0, memory_order_relaxed);
    return result;
}

static jzx_behavior_result pass_on(jzx_context *ctx, const jzx_message *msg)
{
    runner *r = ctx->state;
    enter(r);
    r->handled++;
    uint64_t left = msg->flags & JZX_MSG_VALUE ? msg->u64 : msg->len;
    r->bytes += left;
    if (left > 1) {
        jzx_actor_id next = ids[(r->index * 7919u + left) % ACTORS];
        static const char filler[HOPS];
        jzx_err err = left % 2 == 0 ? jzx_send_u64(ctx->loop, next, left - 1, WORK)
                                    : jzx_send_copy(ctx->loop, next, filler, left - 1, WORK);
        CHECK_OK(err);
    }
    return leave(r, JZX_BEHAVIOR_OK);
}

static void test_a_million_messages_among_ten_thousand_are_conserved_R5(void)
{
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        pool p = pool_open(sizes[s], false);
        memset(runners, 0, sizeof runners);
        for (uint32_t i = 0; i < ACTORS; i++) {
            runners[i].index = i;
            jzx_spawn_opts opts = {.behavior = pass_on, .state = &runners[i]};
            REQUIRE_OK(jzx_spawn(p.loop, &opts, &ids[i]));
        }
        for (uint32_t i = 0; i < ACTORS; i++) {
            REQUIRE_OK(jzx_send_u64(p.loop, ids[i], HOPS, WORK));
        }
        pool_idle(&p);
        uint64_t handled = 0, bytes = 0;
        for (uint32_t i = 0; i < ACTORS; i++) {
            handled += runners[i].handled;
            bytes += runners[i].bytes;
        }
        CHECK_EQ(handled, (uint64_t)ACTORS * HOPS);
        CHECK_EQ(bytes, (uint64_t)ACTORS * HOPS * (HOPS + 1) / 2);
        CHECK_EQ(pool_counters(&p).handled, handled);
        CHECK_EQ(pool_counters(&p).dead, 0);
        CHECK_EQ(pool_counters(&p).live, ACTORS);
        pool_close(&p);
    }
}

/* As many actors as there are workers wait for each other inside their behaviors. */
static _Atomic uint32_t arrived;
static uint32_t expected;

static jzx_behavior_result wait_for_all(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    atomic_fetch_add(&arrived, 1);
    uint64_t end = now_ns() + 60000 * MS;
    while (atomic_load(&arrived) < expected && now_ns() < end) {
        pause_us(100);
    }
    CHECK_EQ(atomic_load(&arrived), expected);
    return JZX_BEHAVIOR_OK;
}

static void test_all_workers_run_actors_at_the_same_time_R31(void)
{
    static const uint32_t many[] = {1, 2, 4, 16};
    for (size_t s = 0; s < COUNT_OF(many); s++) {
        for (int timed = 0; timed < 2; timed++) { /* woken by main, and by timers */
            pool p = pool_open(many[s], true);
            expected = many[s];
            atomic_store(&arrived, 0);
            for (uint32_t i = 0; i < many[s]; i++) {
                jzx_actor_id id = 0;
                jzx_spawn_opts opts = {.behavior = wait_for_all};
                REQUIRE_OK(jzx_spawn(p.loop, &opts, &id));
                REQUIRE_OK(timed ? jzx_send_after(p.loop, id, 5, NULL, 0, WORK, NULL)
                                 : jzx_send_u64(p.loop, id, 1, WORK));
            }
            uint64_t end = now_ns() + 120000 * MS;
            while (atomic_load(&arrived) < expected && now_ns() < end) {
                pool_idle(&p);
            }
            CHECK_EQ(atomic_load(&arrived), expected);
            pool_close(&p);
        }
    }
}

/* The caller is behind all others, and its pool has timers that come all the time. What the pool
 * begins between the moment it is idle and the caller's return would be left half done. */
static _Atomic bool spinning;

static void *spin(void *arg)
{
    (void)arg;
    while (atomic_load_explicit(&spinning, memory_order_relaxed)) {
    }
    return NULL;
}

static jzx_behavior_result take_time(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    pause_us(2000);
    return JZX_BEHAVIOR_OK;
}

static void test_a_pool_that_is_idle_begins_nothing_before_the_next_run_R31(void)
{
    enum { TIMERS = 16, SPINNERS = 2, ROUNDS = 40 };
    pthread_t spinners[SPINNERS];
    pool p = pool_open(4, false);
    for (uint32_t i = 0; i < TIMERS; i++) {
        jzx_actor_id id = 0;
        REQUIRE_OK(jzx_spawn(p.loop, &(jzx_spawn_opts){.behavior = take_time}, &id));
        jzx_timer_opts often = {.delay_ms = 15, .period_ms = 15, .tag = WORK};
        REQUIRE_OK(jzx_timer_start(p.loop, id, &often, NULL));
    }
    pool_idle(&p); /* starts the workers, which would inherit what follows */
    struct sched_param none = {0};
    REQUIRE_EQ(sched_setscheduler(0, SCHED_IDLE, &none), 0);
    atomic_store(&spinning, true);
    for (uint32_t i = 0; i < SPINNERS; i++) {
        REQUIRE_EQ(pthread_create(&spinners[i], NULL, spin, NULL), 0);
        REQUIRE_EQ(pthread_setschedparam(spinners[i], SCHED_OTHER, &none), 0);
    }
    while (pool_counters(&p).handled < ROUNDS * TIMERS) {
        pool_idle(&p);
    }
    atomic_store(&spinning, false);
    REQUIRE_EQ(sched_setscheduler(0, SCHED_OTHER, &none), 0);
    for (uint32_t i = 0; i < SPINNERS; i++) {
        REQUIRE_EQ(pthread_join(spinners[i], NULL), 0);
    }
    pool_close(&p);
}

/* Threads outside, all at one pool, and actors that answer nobody: order per thread (R6). */
enum { STREAMS = 3, STREAM = 4000 };
typedef struct reader {
    _Atomic int busy;
    uint64_t next[STREAMS];
    uint64_t handled;
} reader;

static jzx_behavior_result read_streams(jzx_context *ctx, const jzx_message *msg)
{
    reader *r = ctx->state;
    CHECK_EQ(atomic_exchange(&r->busy, 1), 0);
    CHECK_EQ(msg->u64, r->next[msg->tag]);
    r->next[msg->tag] = msg->u64 + 1;
    r->handled++;
    atomic_store(&r->busy, 0);
    return JZX_BEHAVIOR_OK;
}

typedef struct streamer {
    jzx_sender *sender;
    jzx_actor_id to[2];
    uint32_t number;
    _Atomic unsigned *done;
} streamer;

static void *stream(void *arg)
{
    streamer *s = arg;
    for (uint64_t i = 0; i < STREAM; i++) {
        for (size_t k = 0; k < 2; k++) {
            while (jzx_send_async_u64(s->sender, s->to[k], i, s->number) != JZX_OK) {
                pause_us(50);
            }
        }
    }
    atomic_fetch_add(s->done, 1);
    return NULL;
}

static void test_threads_keep_their_order_into_a_pool_R6(void)
{
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        pool p = pool_open(sizes[s], true);
        static reader readers[2];
        static streamer all[STREAMS];
        static _Atomic unsigned done;
        memset(readers, 0, sizeof readers);
        atomic_store(&done, 0);
        jzx_sender *sender = NULL;
        REQUIRE_OK(jzx_sender_open(p.loop, JZX_SENDER_SHARED, &sender));
        jzx_actor_id to[2];
        for (size_t k = 0; k < 2; k++) {
            jzx_spawn_opts opts = {.behavior = read_streams, .state = &readers[k]};
            REQUIRE_OK(jzx_spawn(p.loop, &opts, &to[k]));
        }
        pthread_t threads[STREAMS];
        for (uint32_t i = 0; i < STREAMS; i++) {
            all[i] = (streamer){.sender = sender, .to = {to[0], to[1]}, .number = i, .done = &done};
            REQUIRE_EQ(pthread_create(&threads[i], NULL, stream, &all[i]), 0);
        }
        while (atomic_load(&done) < STREAMS) {
            REQUIRE_OK(jzx_loop_run_until_idle(p.loop));
        }
        for (uint32_t i = 0; i < STREAMS; i++) {
            pthread_join(threads[i], NULL);
        }
        pool_idle(&p);
        CHECK_EQ(readers[0].handled, STREAMS * STREAM);
        CHECK_EQ(readers[1].handled, STREAMS * STREAM);
        jzx_sender_release(sender);
        pool_close(&p);
    }
}

/* Panics on several workers at once: each has a jump buffer of its own. */
enum { FRAGILE = 60, BLOWS = 40 };
typedef struct fragile {
    _Atomic int busy;
    uint64_t inits, deinits, handled;
    jzx_actor_id id;
} fragile;
static fragile fragiles[FRAGILE];
static _Atomic uint64_t failures[JZX_REASON_SLOTS];

static jzx_behavior_result fragile_init(jzx_context *ctx, void *arg)
{
    fragile *f = arg;
    f->inits++;
    ctx->state = f;
    return JZX_BEHAVIOR_OK;
}

static void fragile_deinit(jzx_context *ctx)
{
    fragile *f = ctx->state;
    CHECK_EQ(atomic_load(&f->busy), 0);
    f->deinits++;
}

static volatile int depth_sink;

static __attribute__((noinline)) void panic_from_deep(jzx_context *ctx, fragile *f, int depth)
{
    volatile char room[512];
    room[0] = (char)depth;
    if (depth_sink < 0) {
        return; /* never; the compiler must not know */
    }
    if (depth == 0) {
        atomic_store(&f->busy, 0);
        jzx_panic(ctx, 8, "from deep");
    }
    panic_from_deep(ctx, f, depth - 1);
    depth_sink = room[0];
}

static jzx_behavior_result fragile_behavior(jzx_context *ctx, const jzx_message *msg)
{
    fragile *f = ctx->state;
    CHECK_EQ(atomic_exchange(&f->busy, 1), 0);
    f->handled++;
    if (msg->tag == BAD && msg->u64 % 2 == 0) {
        panic_from_deep(ctx, f, 20);
    }
    atomic_store(&f->busy, 0);
    return msg->tag == BAD ? jzx_fail(ctx, 7, "flat") : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result parent_init(jzx_context *ctx, void *arg)
{
    static const jzx_supervisor_spec policy = {.intensity = JZX_INTENSITY_MAX, .period_ms = 1};
    ctx->state = arg;
    CHECK_OK(jzx_set_child_policy(ctx, &policy));
    for (size_t i = 0; i < FRAGILE; i++) {
        jzx_spawn_opts opts = {.behavior = fragile_behavior,
                               .init = fragile_init,
                               .deinit = fragile_deinit,
                               .state = &fragiles[i]};
        CHECK_OK(jzx_spawn(ctx->loop, &opts, &fragiles[i].id));
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result parent_behavior(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    CHECK(jzx_message_signal(msg) == NULL); /* no child ends */
    return JZX_BEHAVIOR_OK;
}

static void see_failure(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)ctx;
    (void)id;
    (void)name;
    CHECK_EQ(reason->code, reason->kind == JZX_REASON_PANIC ? 8 : 7);
    CHECK_STR(reason->text, reason->kind == JZX_REASON_PANIC ? "from deep" : "flat");
    atomic_fetch_add(&failures[reason->kind], 1);
}

static void test_panics_on_all_workers_restart_their_own_actors_R17(void)
{
    static const jzx_observer observer = {.on_actor_fail = see_failure};
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        pool p = pool_open(sizes[s], true);
        memset(fragiles, 0, sizeof fragiles);
        memset(failures, 0, sizeof failures);
        REQUIRE_OK(jzx_loop_set_observer(p.loop, &observer, NULL));
        jzx_spawn_opts opts = {.behavior = parent_behavior, .init = parent_init};
        REQUIRE_OK(jzx_spawn(p.loop, &opts, NULL));
        pool_idle(&p);
        for (uint64_t blow = 0; blow < BLOWS; blow++) {
            for (size_t i = 0; i < FRAGILE; i++) {
                REQUIRE_OK(jzx_send_u64(p.loop, fragiles[i].id, blow, WORK));
                REQUIRE_OK(jzx_send_u64(p.loop, fragiles[i].id, blow + i, BAD));
            }
        }
        pool_idle(&p);
        for (size_t i = 0; i < FRAGILE; i++) {
            CHECK_EQ(fragiles[i].handled, 2 * BLOWS);
            CHECK_EQ(fragiles[i].inits, BLOWS + 1);
            CHECK_EQ(fragiles[i].deinits, BLOWS);
        }
        CHECK_EQ(atomic_load(&failures[JZX_REASON_PANIC]), FRAGILE * BLOWS / 2);
        CHECK_EQ(atomic_load(&failures[JZX_REASON_FAILED]), FRAGILE * BLOWS / 2);
        CHECK_EQ(pool_counters(&p).failures, FRAGILE * BLOWS);
        CHECK_EQ(pool_counters(&p).restarts, FRAGILE * BLOWS);
        pool_close(&p);
    }
}

/* The crash guard works on the threads of a pool. */
static jzx_behavior_result crash_or_count(jzx_context *ctx, const jzx_message *msg)
{
    _Atomic uint64_t *count = ctx->state;
    if (msg->tag == BAD) {
        abort();
    }
    atomic_fetch_add(count, 1);
    return JZX_BEHAVIOR_OK;
}

static _Atomic uint64_t crashes;

static void see_crash(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)ctx;
    (void)id;
    (void)name;
    atomic_fetch_add(&crashes, reason->kind == JZX_REASON_CRASH ? 1 : 0);
}

static void test_a_crash_on_a_worker_is_its_actors_failure_R17(void)
{
    static const jzx_observer observer = {.on_actor_fail = see_crash};
    jzx_err err = jzx_crash_guard_install();
    if (err == JZX_ERR_NOT_SUPPORTED) {
        jzt_skip("There is no crash guard here.");
    }
    REQUIRE_OK(err);
    pool p = pool_open(4, true);
    static _Atomic uint64_t count;
    atomic_store(&count, 0);
    atomic_store(&crashes, 0);
    REQUIRE_OK(jzx_loop_set_observer(p.loop, &observer, NULL));
    for (int i = 0; i < 40; i++) {
        jzx_actor_id id = 0;
        jzx_spawn_opts opts = {
            .behavior = crash_or_count, .state = &count, .flags = JZX_SPAWN_CRASH_GUARD};
        REQUIRE_OK(jzx_spawn(p.loop, &opts, &id));
        REQUIRE_OK(jzx_send_u64(p.loop, id, 1, WORK));
        REQUIRE_OK(jzx_send_u64(p.loop, id, 1, i % 2 == 0 ? BAD : WORK));
    }
    pool_idle(&p);
    CHECK_EQ(atomic_load(&crashes), 20);
    CHECK_EQ(atomic_load(&count), 60);
    CHECK_EQ(pool_counters(&p).live, 20);
    pool_close(&p);
    jzx_crash_guard_remove();
}

/* R24: an actor that never runs out of messages leaves the others their turn. */
static _Atomic int flooding;

static jzx_behavior_result flood(jzx_context *ctx, const jzx_message *msg)
{
    if (atomic_load(&flooding)) {
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, msg->u64 + 1, WORK));
    }
    return JZX_BEHAVIOR_OK;
}

static _Atomic uint64_t quiet_ones;

static jzx_behavior_result count_quiet(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    if (atomic_fetch_add(&quiet_ones, 1) + 1 == 1000) {
        atomic_store(&flooding, 0);
    }
    return JZX_BEHAVIOR_OK;
}

static void test_floods_starve_nobody_R24(void)
{
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        pool p = pool_open(sizes[s], true);
        atomic_store(&flooding, 1);
        atomic_store(&quiet_ones, 0);
        for (int i = 0; i < 8; i++) {
            jzx_actor_id id = 0;
            jzx_spawn_opts opts = {.behavior = flood};
            REQUIRE_OK(jzx_spawn(p.loop, &opts, &id));
            REQUIRE_OK(jzx_send_u64(p.loop, id, 0, WORK));
        }
        for (int i = 0; i < 1000; i++) {
            jzx_actor_id id = 0;
            jzx_spawn_opts opts = {.behavior = count_quiet};
            REQUIRE_OK(jzx_spawn(p.loop, &opts, &id));
            REQUIRE_OK(i % 2 == 0 ? jzx_send_u64(p.loop, id, 0, WORK)
                                  : jzx_send_after(p.loop, id, 3, NULL, 0, WORK, NULL));
        }
        uint64_t begin = now_ns();
        pool_idle(&p); /* for ever, if somebody starves */
        CHECK(now_ns() - begin < 10000 * MS);
        CHECK_EQ(atomic_load(&quiet_ones), 1000);
        pool_close(&p);
    }
}

static const jzt_test tests[] = {
    {"a_million_messages_among_ten_thousand_are_conserved_R5",
     test_a_million_messages_among_ten_thousand_are_conserved_R5},
    {"all_workers_run_actors_at_the_same_time_R31",
     test_all_workers_run_actors_at_the_same_time_R31},
    {"a_pool_that_is_idle_begins_nothing_before_the_next_run_R31",
     test_a_pool_that_is_idle_begins_nothing_before_the_next_run_R31},
    {"threads_keep_their_order_into_a_pool_R6", test_threads_keep_their_order_into_a_pool_R6},
    {"panics_on_all_workers_restart_their_own_actors_R17",
     test_panics_on_all_workers_restart_their_own_actors_R17},
    {"a_crash_on_a_worker_is_its_actors_failure_R17",
     test_a_crash_on_a_worker_is_its_actors_failure_R17},
    {"floods_starve_nobody_R24", test_floods_starve_nobody_R24},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
