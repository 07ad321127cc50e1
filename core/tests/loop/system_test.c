/* Goal: a system is made, runs and goes without a trace; its dispatchers have names, indexes and
 * threads that come and go as the header says; run, idle and stop requests know of everybody (R1,
 * R2, R22, R25, R31). Method: real threads; tasks and descriptors are counted in /proc, memory by
 * the test kit's allocator. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

#include <dirent.h>

#include <signal.h>
#include <unistd.h>

/* Threads cost a lot under TSan. */
enum { WORK = 1, DONE = 2, SYSTEMS = JZT_TSAN ? 200 : 1000 };

static _Atomic uint64_t drops;

static void count_drop(void *data)
{
    free(data);
    atomic_fetch_add(&drops, 1);
}

static jzx_err send_block(jzx_sender *sender, jzx_actor_id to)
{
    jzx_send_opts opts = {.data = malloc(24), .len = 24, .drop = count_drop, .tag = WORK};
    memset(opts.data, 7, 24);
    jzx_err err = jzx_send_async_with(sender, to, &opts);
    if (err != JZX_OK) {
        free(opts.data);
    }
    return err;
}

static jzx_behavior_result ignore(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static void test_a_thousand_systems_come_and_go_R31(void)
{
    size_t threads = count_threads();
    jzx_fault *fault = NULL;
    REQUIRE_OK(jzx_fault_create(NULL, &fault));
    size_t fds = count_fds();
    jzx_config config = {.allocator = jzx_fault_allocator(fault)};
    jzx_dispatcher_spec specs[] = {{.name = "desk", .kind = JZX_DISPATCHER_PINNED},
                                   {.name = "crew", .kind = JZX_DISPATCHER_POOL, .workers = 2}};
    jzx_system_config sc = {
        .loop = &config, .dispatchers = specs, .dispatcher_count = 2, .pool_workers = 2};
    for (int round = 0; round < SYSTEMS && jzt_failures() == 0; round++) {
        jzx_system *system = NULL;
        REQUIRE_OK(jzx_system_create(round % 3 == 0 ? NULL : &sc, &system));
        size_t homes = round % 3 == 0 ? AT_DESK : PLACES; /* without a config there is no desk */
        for (size_t i = 0; round % 8 == 1 && i < homes; i++) {
            jzx_actor_id id = 0;
            jzx_spawn_opts opts = {.behavior = ignore, .dispatcher = places[i]};
            REQUIRE_OK(jzx_spawn(jzx_system_loop(system), &opts, &id));
            REQUIRE_OK(jzx_send_u64(jzx_system_loop(system), id, 1, WORK));
        }
        CHECK_OK(jzx_system_destroy(system)); /* in the middle of it all */
    }
    WAIT_STILL(count_threads() == threads);
    CHECK_EQ(count_fds(), fds);
    CHECK_EQ(jzx_fault_leaked(fault, NULL), 0);
    CHECK_STR(jzx_fault_check(fault), NULL);
    jzx_fault_destroy(fault);
    CHECK_OK(jzx_system_destroy(NULL));
}

static void *release_later(void *arg)
{
    pause_us(50000);
    puppet_release(arg);
    return NULL;
}

/* R16, R4: who is in its code finishes the message, all others are dropped once. */
static void test_destroy_waits_for_code_and_drops_what_is_queued_R16(void)
{
    for (size_t at = AT_PINNED; at < PLACES; at++) {
        world *w = world_open();
        puppet *a = puppet_up(puppet_at(w, "a", places[at]));
        jzx_actor_id id = atomic_load(&a->id);
        atomic_store(&drops, 0);
        puppet_hold(a);
        for (int i = 0; i < 10; i++) {
            CHECK_OK(send_block(w->sender, id));
        }
        pthread_t thread;
        REQUIRE_EQ(pthread_create(&thread, NULL, release_later, a), 0);
        CHECK_OK(jzx_system_destroy(w->system));
        CHECK_EQ(atomic_load(&a->held), 0);
        CHECK_EQ(atomic_load(&a->deinits), 1);
        CHECK_EQ(atomic_load(&drops), 10);
        CHECK_EQ(puppet_reason(a).kind, JZX_REASON_KILLED);
        CHECK_EQ(send_block(w->sender, id), JZX_ERR_LOOP_CLOSED);
        pthread_join(thread, NULL);
        jzx_sender_release(w->sender);
        WAIT_STILL(count_threads() == w->threads);
        CHECK_EQ(count_fds(), w->fds);
        CHECK_EQ(jzx_fault_leaked(w->fault, NULL), 0);
        jzx_fault_destroy(w->fault);
        cast_close(&w->cast);
        free(w);
    }
}

static const jzx_dispatcher_info *info_of(const jzx_dispatcher_info *all, size_t count,
                                          const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i].name, name) == 0) {
            return &all[i];
        }
    }
    static const jzx_dispatcher_info nothing;
    CHECK_STR(name, "the name of a dispatcher");
    return &nothing;
}

static size_t dispatchers_now(world *w)
{
    return jzx_system_dispatchers(w->system, NULL, 0);
}

static void test_names_kinds_and_numbers_of_dispatchers_R31(void)
{
    world *w = world_open();
    CHECK(jzx_system_dispatcher(w->system, "loop") == w->loop);
    CHECK(jzx_system_dispatcher(w->system, "pool") == NULL); /* not yet */
    CHECK(jzx_system_dispatcher(w->system, "nobody") == NULL);
    CHECK(jzx_system_dispatcher(w->system, "des") == NULL);
    CHECK(jzx_system_dispatcher(w->system, "pinned") == NULL); /* each is somebody's own */
    CHECK_EQ(dispatchers_now(w), 3);
    for (size_t at = 0; at < PLACES; at++) {
        (void)puppet_up(puppet_at(w, places[at], places[at]));
    }
    CHECK_EQ(dispatchers_now(w), 5);
    jzx_dispatcher_info all[8] = {0};
    size_t count = jzx_system_dispatchers(w->system, all, COUNT_OF(all));
    CHECK_EQ(count, 5);
    static const uint32_t kinds[PLACES] = {JZX_DISPATCHER_LOOP, JZX_DISPATCHER_PINNED,
                                           JZX_DISPATCHER_POOL, JZX_DISPATCHER_PINNED,
                                           JZX_DISPATCHER_POOL};
    static const uint32_t workers[PLACES] = {1, 1, POOL_WORKERS, 1, CREW_WORKERS};
    for (size_t at = 0; at < PLACES; at++) {
        const jzx_dispatcher_info *info = info_of(all, count, places[at]);
        puppet *a = cast_find(&w->cast, places[at]);
        CHECK_EQ(info->kind, kinds[at]);
        CHECK_EQ(info->workers, workers[at]);
        CHECK_EQ(info->live, 1);
        CHECK_EQ(info->index, jzx_id_dispatcher(atomic_load(&a->id)));
        CHECK(info->asleep <= info->workers);
        if (at != AT_PINNED) {
            jzx_loop *loop = jzx_system_dispatcher(w->system, places[at]);
            REQUIRE(loop != NULL);
            CHECK_STR(jzx_loop_name(loop), places[at]);
            CHECK(jzx_loop_system(loop) == w->system);
        }
    }
    jzx_dispatcher_info one = {0};
    CHECK_EQ(jzx_system_dispatchers(w->system, &one, 1), 5);
    world_close(w);
}

static void note_loop(jzx_context *ctx, puppet *self, void *arg)
{
    jzx_loop **out = arg;
    CHECK_EQ(ctx->self, atomic_load(&self->id));
    CHECK(jzx_loop_system(ctx->loop) == self->w->system);
    CHECK_EQ(jzx_actor_parent(ctx->loop, ctx->self), JZX_NOBODY);
    CHECK_EQ(jzx_actor_state(ctx->loop, ctx->self), JZX_STATE_RUNNING);
    CHECK_EQ(jzx_actor_incarnation(ctx->loop, ctx->self), 1);
    const char *wrong = jzx_loop_audit(ctx->loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    *out = ctx->loop;
}

/* R1: an id says where its actor is; R31: the loop in ctx names the dispatcher and is stable. */
static void test_an_id_names_its_dispatcher_and_ctx_the_same_R1(void)
{
    world *w = world_open();
    static jzx_loop *loops[2 * PLACES];
    puppet *all[2 * PLACES];
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        char name[64];
        snprintf(name, sizeof name, "a%zu", i);
        all[i] = puppet_up(puppet_at(w, name, places[i % PLACES]));
        puppet_call(all[i], note_loop, &loops[i]);
    }
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        static jzx_loop *again;
        puppet_call(all[i], note_loop, &again);
        CHECK(again == loops[i]);
        for (size_t k = 0; k < i; k++) {
            bool same = i % PLACES == k % PLACES && i % PLACES != AT_PINNED;
            CHECK_EQ(jzx_id_dispatcher(atomic_load(&all[i]->id)) ==
                         jzx_id_dispatcher(atomic_load(&all[k]->id)),
                     same);
            CHECK_EQ(loops[i] == loops[k], same);
        }
    }
    jzx_loop *plain = NULL;
    REQUIRE_OK(jzx_loop_create(NULL, &plain));
    CHECK(jzx_loop_system(plain) == NULL);
    CHECK_STR(jzx_loop_name(plain), "loop");
    CHECK_OK(jzx_loop_destroy(plain));
    world_close(w);
}

/* R2, R31: a pinned actor's thread and index go with it, and its id never means another one. */
static void test_a_pinned_actor_takes_its_thread_and_index_with_it_R2(void)
{
    enum { ROUNDS = JZT_TSAN ? 60 : 300 };
    world *w = world_open();
    size_t threads = count_threads();
    size_t before = dispatchers_now(w);
    static jzx_actor_id ids[ROUNDS];
    uint32_t reused = 0;
    for (size_t i = 0; i < ROUNDS; i++) {
        puppet *a = puppet_up(puppet_at(w, "a", "pinned"));
        ids[i] = atomic_load(&a->id);
        CHECK_EQ(dispatchers_now(w), before + 1);
        for (size_t k = 0; k < i; k++) {
            CHECK(ids[k] != ids[i]);
            if (jzx_id_index(ids[k]) == jzx_id_index(ids[i])) {
                reused++;
                CHECK_EQ(jzx_send_u64(w->loop, ids[k], 1, WORK), JZX_ERR_NO_SUCH_ACTOR);
                CHECK_EQ(jzx_send_async_u64(w->sender, ids[k], 1, WORK), JZX_ERR_NO_SUCH_ACTOR);
                CHECK_EQ(jzx_system_stop(w->system, ids[k]), JZX_ERR_NO_SUCH_ACTOR);
                CHECK_EQ(jzx_system_kill(w->system, ids[k]), JZX_ERR_NO_SUCH_ACTOR);
                CHECK_EQ(jzx_kill(w->loop, ids[k]), JZX_ERR_NO_SUCH_ACTOR);
                break;
            }
        }
        REQUIRE_OK(jzx_send_u64(w->loop, ids[i], 1, WORK));
        WAIT(w, puppet_saw(a, WORK) == 1); /* it is unharmed */
        REQUIRE_OK(jzx_stop(w->loop, ids[i]));
        CHECK_PUPPET_ENDED(a, JZX_REASON_SHUTDOWN);
        WAIT(w, dispatchers_now(w) == before);
    }
    CHECK(reused > 0);
    WAIT(w, count_threads() == threads);
    CHECK_EQ(world_counters(w).handled, ROUNDS); /* those of dispatchers that are gone count too */
    CHECK_EQ(world_counters(w).spawned, ROUNDS);
    CHECK_EQ(world_counters(w).ended, ROUNDS);
    world_close(w);
}

static void test_beyond_255_dispatchers_a_spawn_is_refused_and_nothing_else_R1(void)
{
    world *w = world_open();
    size_t room = JZX_DISPATCHERS_MAX - dispatchers_now(w);
    puppet *all[JZX_DISPATCHERS_MAX];
    char name[64];
    for (size_t i = 0; i < room; i++) {
        snprintf(name, sizeof name, "p%zu", i);
        all[i] = puppet_at(w, name, "pinned");
        REQUIRE_OK(puppet_spawn_at(w->loop, all[i]));
    }
    for (size_t i = 0; i < room; i++) {
        WAIT(w, puppet_is_up(all[i]));
    }
    puppet *late = puppet_at(w, "late", "pinned");
    jzx_counters before = world_counters(w);
    size_t threads = count_threads();
    jzx_actor_id id = 77;
    jzx_spawn_opts opts = puppet_opts(late);
    CHECK_EQ(jzx_spawn(w->loop, &opts, &id), JZX_ERR_MAX_DISPATCHERS);
    CHECK_EQ(jzx_system_spawn(w->system, &opts, &id), JZX_ERR_MAX_DISPATCHERS);
    opts.dispatcher = "pool"; /* it would have been made now */
    CHECK_EQ(jzx_spawn(w->loop, &opts, &id), JZX_ERR_MAX_DISPATCHERS);
    CHECK_EQ(id, 77);
    CHECK_EQ(dispatchers_now(w), JZX_DISPATCHERS_MAX);
    CHECK_EQ(count_threads(), threads);
    CHECK_EQ(world_counters(w).live, before.live);
    CHECK_EQ(world_counters(w).spawned, before.spawned);
    for (size_t i = 0; i < room; i++) {
        CHECK_OK(jzx_send_u64(w->loop, atomic_load(&all[i]->id), i, WORK));
    }
    for (size_t i = 0; i < room; i++) {
        WAIT(w, puppet_saw(all[i], WORK) == 1);
    }
    puppet *crew = puppet_up(puppet_at(w, "one more", "crew"));
    CHECK(puppet_is_up(crew));
    REQUIRE_OK(jzx_stop(w->loop, atomic_load(&all[7]->id)));
    WAIT(w, dispatchers_now(w) == JZX_DISPATCHERS_MAX - 1);
    (void)puppet_up(late);
    world_close(w);
}

static void arm_end(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what != IN_INIT) {
        return;
    }
    uint32_t ms = (uint32_t)atomic_load(&self->number);
    CHECK_OK(jzx_send_after(ctx->loop, ctx->self, ms, NULL, 0, T_STOP, NULL));
}

static void test_run_returns_when_nobody_is_left_on_any_dispatcher_R31(void)
{
    world *w = world_open();
    CHECK_OK(jzx_system_run(w->system)); /* nobody at all */
    for (size_t last = 0; last < PLACES; last++) {
        puppet *all[PLACES];
        for (size_t at = 0; at < PLACES; at++) {
            all[at] = puppet_at(w, places[at], places[at]);
            all[at]->during = arm_end;
            atomic_store(&all[at]->number, at == last ? 60 : 5 * at);
            REQUIRE_OK(puppet_spawn_at(w->loop, all[at]));
        }
        CHECK_OK(jzx_system_run(w->system));
        for (size_t at = 0; at < PLACES; at++) {
            CHECK_EQ(atomic_load(&all[at]->ends), 1);
            CHECK_EQ(atomic_load(&all[at]->deinits), 1);
        }
        CHECK_EQ(world_counters(w).live, 0);
    }
    world_close(w);
}

static world *interrupted;

static void on_usr1(int signo)
{
    (void)signo;
    jzx_system_request_stop(interrupted->system);
}

static void *stop_the_run(void *arg)
{
    const int *by_signal = arg;
    pause_us(20000);
    if (*by_signal) {
        raise(SIGUSR1);
    } else {
        jzx_system_request_stop(interrupted->system);
    }
    return NULL;
}

static void test_a_stop_request_ends_run_and_the_others_run_on_R31(void)
{
    world *w = world_open();
    puppet *pool = puppet_up(puppet_at(w, "pool", "pool"));
    puppet *desk = puppet_up(puppet_at(w, "desk", "desk"));
    interrupted = w;
    signal(SIGUSR1, on_usr1);
    jzx_system_request_stop(w->system); /* before: the next run is the one that returns */
    CHECK_OK(jzx_system_run(w->system));
    for (int by_signal = 0; by_signal < 2; by_signal++) {
        pthread_t thread;
        REQUIRE_EQ(pthread_create(&thread, NULL, stop_the_run, &by_signal), 0);
        CHECK_OK(jzx_system_run(w->system));
        pthread_join(thread, NULL);
    }
    signal(SIGUSR1, SIG_DFL);
    CHECK_EQ(world_counters(w).live, 2);
    REQUIRE_OK(jzx_send_async_u64(w->sender, atomic_load(&pool->id), 1, WORK));
    REQUIRE_OK(jzx_send_async_u64(w->sender, atomic_load(&desk->id), 1, WORK));
    WAIT_STILL(puppet_saw(pool, WORK) == 1 && puppet_saw(desk, WORK) == 1);
    world_close(w);
}

static puppet *ring[PLACES];

static jzx_behavior_result pass_on(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const puppet *next = self->arg;
    if (msg->tag == WORK && msg->u64 > 0) {
        CHECK_OK(jzx_send_u64(ctx->loop, atomic_load(&next->id), msg->u64 - 1, WORK));
    }
    return JZX_BEHAVIOR_OK;
}

/* Idle is when nothing is queued and nobody is in its code, on any dispatcher. */
static void test_run_until_idle_waits_for_everybody_R31(void)
{
    enum { HOPS = 1000 };
    world *w = world_open();
    for (size_t at = 0; at < PLACES; at++) {
        ring[at] = puppet_at(w, places[at], places[at]);
        ring[at]->on = pass_on;
        (void)puppet_up(ring[at]);
    }
    for (size_t at = 0; at < PLACES; at++) {
        ring[at]->arg = ring[(at + 1) % PLACES];
    }
    for (int round = 1; round <= 5; round++) {
        REQUIRE_OK(jzx_send_u64(w->loop, atomic_load(&ring[0]->id), HOPS, WORK));
        CHECK_OK(jzx_system_run_until_idle(w->system, WAIT_LIMIT_MS));
        uint64_t handled = 0;
        for (size_t at = 0; at < PLACES; at++) {
            handled += atomic_load(&ring[at]->worked);
        }
        CHECK_EQ(handled, (uint64_t)round * (HOPS + 1));
    }
    REQUIRE_OK(jzx_send_after(w->loop, atomic_load(&ring[0]->id), 3600000, NULL, 0, DONE, NULL));
    CHECK_OK(jzx_system_run_until_idle(w->system, WAIT_LIMIT_MS)); /* a far timer is no work */
    for (size_t at = AT_PINNED; at < PLACES; at++) {
        puppet_hold(ring[at]);
        uint64_t begin = now_ns();
        CHECK_EQ(jzx_system_run_until_idle(w->system, 50), JZX_ERR_TIMED_OUT);
        CHECK(now_ns() - begin >= 49 * MS);
        puppet_release(ring[at]);
        CHECK_OK(jzx_system_run_until_idle(w->system, WAIT_LIMIT_MS));
    }
    world_close(w);
}

/* Sum of voluntary switches of all tasks but those with the given ids. */
static uint64_t switches_of_others(pid_t not_this)
{
    uint64_t sum = 0;
    DIR *dir = opendir("/proc/self/task");
    CHECK(dir != NULL);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char path[320], line[256];
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == not_this) {
            continue;
        }
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = fopen(path, "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            unsigned long long n = 0;
            if (sscanf(line, "voluntary_ctxt_switches: %llu", &n) == 1) {
                sum += n;
            }
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    closedir(dir);
    return sum;
}

typedef struct idle_look {
    world *w;
    uint64_t switches;
    uint64_t wakeups;
} idle_look;

static uint64_t wakeups_now(world *w)
{
    jzx_dispatcher_info all[8];
    size_t count = jzx_system_dispatchers(w->system, all, COUNT_OF(all));
    uint64_t sum = 0;
    for (size_t i = 0; i < count && i < COUNT_OF(all); i++) {
        sum += all[i].wakeups;
    }
    return sum;
}

static void *look_at_idle(void *arg)
{
    idle_look *look = arg;
    pid_t self = gettid();
    pause_us(300000); /* what runs out when it is quiet has run out */
    uint64_t switches = switches_of_others(self);
    uint64_t wakeups = wakeups_now(look->w);
    pause_us(300000);
    look->switches = switches_of_others(self) - switches;
    look->wakeups = wakeups_now(look->w) - wakeups;
    jzx_system_request_stop(look->w->system);
    return NULL;
}

/* R25: with nothing to do no thread of the system moves. */
static void test_idle_threads_do_not_wake_up_R25(void)
{
#if JZT_TSAN
    jzt_skip("TSan has a thread of its own that wakes up.");
#endif
    world *w = world_open();
    for (size_t at = 0; at < PLACES; at++) {
        puppet *a = puppet_up(puppet_at(w, places[at], places[at]));
        jzx_actor_id id = atomic_load(&a->id);
        REQUIRE_OK(jzx_send_u64(w->loop, id, 1, WORK));
        REQUIRE_OK(jzx_send_after(w->loop, id, 3600000, NULL, 0, WORK, NULL));
    }
    world_settle(w);
    static idle_look look;
    look = (idle_look){.w = w};
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, look_at_idle, &look), 0);
    CHECK_OK(jzx_system_run(w->system));
    pthread_join(thread, NULL);
    CHECK_EQ(look.switches, 0);
    CHECK_EQ(look.wakeups, 0);
    world_close(w);
}

static const jzt_test tests[] = {
    {"a_thousand_systems_come_and_go_R31", test_a_thousand_systems_come_and_go_R31},
    {"destroy_waits_for_code_and_drops_what_is_queued_R16",
     test_destroy_waits_for_code_and_drops_what_is_queued_R16},
    {"names_kinds_and_numbers_of_dispatchers_R31", test_names_kinds_and_numbers_of_dispatchers_R31},
    {"an_id_names_its_dispatcher_and_ctx_the_same_R1",
     test_an_id_names_its_dispatcher_and_ctx_the_same_R1},
    {"a_pinned_actor_takes_its_thread_and_index_with_it_R2",
     test_a_pinned_actor_takes_its_thread_and_index_with_it_R2},
    {"beyond_255_dispatchers_a_spawn_is_refused_and_nothing_else_R1",
     test_beyond_255_dispatchers_a_spawn_is_refused_and_nothing_else_R1},
    {"run_returns_when_nobody_is_left_on_any_dispatcher_R31",
     test_run_returns_when_nobody_is_left_on_any_dispatcher_R31},
    {"a_stop_request_ends_run_and_the_others_run_on_R31",
     test_a_stop_request_ends_run_and_the_others_run_on_R31},
    {"run_until_idle_waits_for_everybody_R31", test_run_until_idle_waits_for_everybody_R31},
    {"idle_threads_do_not_wake_up_R25", test_idle_threads_do_not_wake_up_R25},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
