/* Goal: bad input to systems, dispatchers and pools gets the documented error and changes nothing
 * else (R35, R36). Method: the headers' lists, item by item; around every bad call threads,
 * descriptors, memory, dispatchers and counters are compared. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

#include <unistd.h>

enum { TAG = 1 };

static jzx_behavior_result ignore(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static const jzx_spawn_opts plain = {.behavior = ignore};

/* A creation that must fail: nothing is left, and *out is unchanged. */
typedef struct attempt {
    jzx_fault *fault;
    jzx_config config;
    jzx_system_config sc;
    jzx_dispatcher_spec specs[300];
    size_t threads, fds;
} attempt;

static attempt *attempt_new(void)
{
    static attempt a;
    memset(&a, 0, sizeof a);
    REQUIRE_OK(jzx_fault_create(NULL, &a.fault));
    a.config.allocator = jzx_fault_allocator(a.fault);
    a.sc.loop = &a.config;
    a.sc.dispatchers = a.specs;
    a.threads = count_threads();
    a.fds = count_fds();
    return &a;
}

static void attempt_end(attempt *a)
{
    WAIT_STILL(count_threads() == a->threads);
    CHECK_EQ(count_fds(), a->fds);
    CHECK_EQ(jzx_fault_leaked(a->fault, NULL), 0);
    jzx_fault_destroy(a->fault);
}

static void refused_at(int line, attempt *a, jzx_err want)
{
    jzx_system *out = (jzx_system *)(uintptr_t)0x77;
    jzx_err got = jzx_system_create(&a->sc, &out);
    jzt_check_str(JZT_CHECK, __FILE__, line, "jzx_system_create()", jzx_err_name(got),
                  jzx_err_name(want));
    if (got == JZX_OK) {
        CHECK_OK(jzx_system_destroy(out));
        return;
    }
    jzt_check_true(JZT_CHECK, __FILE__, line, "the system is unchanged",
                   out == (jzx_system *)(uintptr_t)0x77);
    attempt_end(a);
}

/* One spec, or one field of the config, is bad. */
#define REFUSED_SPEC(want, ...)                                                                    \
    do {                                                                                           \
        attempt *a_ = attempt_new();                                                               \
        jzx_dispatcher_spec good_ = {.name = "good", .kind = JZX_DISPATCHER_PINNED};               \
        jzx_dispatcher_spec bad_ = {__VA_ARGS__};                                                  \
        a_->specs[0] = good_;                                                                      \
        a_->specs[1] = bad_;                                                                       \
        a_->sc.dispatcher_count = 2;                                                               \
        refused_at(__LINE__, a_, want);                                                            \
    } while (0)

static void test_bad_dispatchers_are_refused(void)
{
    static const uint32_t cpus[] = {100000};
    enum { PINNED = JZX_DISPATCHER_PINNED, POOL = JZX_DISPATCHER_POOL };
    REFUSED_SPEC(JZX_ERR_INVALID_ARG, .kind = PINNED);
    REFUSED_SPEC(JZX_ERR_INVALID_ARG, .name = "", .kind = PINNED);
    REFUSED_SPEC(JZX_ERR_INVALID_ARG, .name = "good", .kind = PINNED);
    REFUSED_SPEC(JZX_ERR_INVALID_ARG, .name = "loop", .kind = PINNED);
    REFUSED_SPEC(JZX_ERR_INVALID_ARG, .name = "pool", .kind = POOL, .workers = 2);
    REFUSED_SPEC(JZX_ERR_INVALID_ARG, .name = "pinned", .kind = PINNED);
    REFUSED_SPEC(JZX_ERR_INVALID_ARG, .name = "a", .kind = JZX_DISPATCHER_LOOP);
    REFUSED_SPEC(JZX_ERR_INVALID_ARG, .name = "a", .kind = 3);
    REFUSED_SPEC(JZX_ERR_INVALID_ARG, .name = "a", .kind = UINT32_MAX);
    REFUSED_SPEC(JZX_ERR_INVALID_ARG, .name = "a", .kind = POOL); /* no workers */
    REFUSED_SPEC(JZX_ERR_INVALID_ARG, .name = "a", .kind = PINNED, .workers = 2);
    REFUSED_SPEC(JZX_ERR_INVALID_ARG, .name = "a", .kind = POOL, .workers = 1, .cpus = cpus,
                 .cpu_count = 1);
    REFUSED_SPEC(JZX_ERR_INVALID_ARG, .name = "a", .kind = POOL, .workers = 1, .cpu_count = 1);
    REFUSED_SPEC(JZX_ERR_TOO_BIG, .name = "a", .kind = POOL, .workers = JZX_WORKERS_MAX + 1);
    REFUSED_SPEC(JZX_ERR_TOO_BIG, .name = "a", .kind = POOL, .workers = UINT32_MAX - 1);
    REFUSED_SPEC(JZX_ERR_TOO_BIG, .name = "12345678901234567890123456789012", .kind = PINNED);
}

static void test_bad_system_configs_are_refused(void)
{
    attempt *a = attempt_new();
    a->sc.pool_workers = JZX_WORKERS_MAX + 1;
    refused_at(__LINE__, a, JZX_ERR_TOO_BIG);
    a = attempt_new();
    a->sc.blocking_threads = 257;
    refused_at(__LINE__, a, JZX_ERR_TOO_BIG);
    a = attempt_new();
    a->sc.dispatchers = NULL;
    a->sc.dispatcher_count = 1;
    refused_at(__LINE__, a, JZX_ERR_INVALID_ARG);
    a = attempt_new();
    a->config.default_mailbox_cap = JZX_MAILBOX_CAP_MAX + 1; /* as jzx_loop_create() */
    refused_at(__LINE__, a, JZX_ERR_TOO_BIG);
    a = attempt_new();
    static char names[300][8];
    for (uint32_t i = 0; i < 300; i++) {
        snprintf(names[i], sizeof names[i], "d%u", i);
        a->specs[i] = (jzx_dispatcher_spec){.name = names[i], .kind = JZX_DISPATCHER_PINNED};
    }
    a->sc.dispatcher_count = JZX_DISPATCHERS_MAX; /* and "loop" is one more */
    refused_at(__LINE__, a, JZX_ERR_MAX_DISPATCHERS);
    CHECK_EQ(jzx_system_create(NULL, NULL), JZX_ERR_INVALID_ARG);
}

/* R36: a tail that a newer program filled in is refused, one that it left zero is not. */
static void test_newer_structs_are_refused_unless_their_tail_is_zero(void)
{
    struct {
        jzx_dispatcher_spec spec;
        uint64_t tail;
    } spec = {.spec = {.name = "a", .kind = JZX_DISPATCHER_PINNED}};
    struct {
        jzx_system_config config;
        uint64_t tail;
    } sc = {.config = {.dispatchers = &spec.spec, .dispatcher_count = 1}};
    struct {
        jzx_config config;
        uint64_t tail;
    } config = {{.max_actors = 100}, 0};
    sc.config.loop = &config.config;
    for (int which = 0; which < 4; which++) {
        jzx_system *system = NULL;
        sc.tail = which == 1;
        config.tail = which == 2;
        spec.tail = which == 3;
        jzx_err err =
            jzx_system_create_sized(&sc.config, sizeof sc, sizeof config, sizeof spec, &system);
        CHECK_EQ(err, which == 0 ? JZX_OK : JZX_ERR_NEWER_STRUCT);
        CHECK_EQ(system != NULL, which == 0);
        CHECK_OK(jzx_system_destroy(system));
    }
    world *w = world_open();
    struct {
        jzx_observer observer;
        uint64_t tail;
    } observer = {.tail = 1};
    struct {
        jzx_spawn_opts opts;
        uint64_t tail;
    } opts = {.opts = plain, .tail = 1};
    CHECK_EQ(jzx_system_set_observer_sized(w->system, &observer.observer, sizeof observer, NULL, 0),
             JZX_ERR_NEWER_STRUCT);
    CHECK_EQ(jzx_system_spawn_sized(w->system, &opts.opts, sizeof opts, NULL),
             JZX_ERR_NEWER_STRUCT);
    opts.tail = 0;
    CHECK_OK(jzx_system_spawn_sized(w->system, &opts.opts, sizeof opts, NULL));
    jzx_counters c = {.accepted = 7};
    jzx_system_counters_sized(w->system, &c, 0);
    CHECK_EQ(c.accepted, 7);
    jzx_shutdown_report report = {.stopped = 7};
    CHECK_OK(jzx_system_shutdown_sized(w->system, 1000, &report, 0));
    CHECK_EQ(report.stopped, 7);
    world_close(w);
}

static void test_null_arguments_do_no_harm(void)
{
    world *w = world_open();
    jzx_sender *sender = NULL;
    jzx_counters c = {.accepted = 7};
    jzx_counters before = world_counters(w);
    CHECK_EQ(jzx_system_run(NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_system_run_until_idle(NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_system_shutdown(NULL, 1, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_system_spawn(NULL, &plain, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_system_spawn_sized(w->system, NULL, sizeof plain, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_system_spawn(w->system, &(jzx_spawn_opts){0}, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_system_stop(NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_system_kill(NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_system_sender(NULL, 0, &sender), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_system_sender(w->system, 0, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_system_sender(w->system, 0x80, &sender), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_system_set_observer(NULL, NULL, NULL, 0), JZX_ERR_INVALID_ARG);
    CHECK(sender == NULL);
    CHECK_OK(jzx_system_destroy(NULL));
    jzx_system_request_stop(NULL);
    jzx_system_counters(NULL, &c);
    CHECK_EQ(jzx_system_dispatchers(NULL, NULL, 0), 0);
    CHECK(jzx_system_loop(NULL) == NULL);
    CHECK(jzx_system_dispatcher(NULL, "loop") == NULL);
    CHECK(jzx_system_dispatcher(w->system, NULL) == NULL);
    CHECK(jzx_loop_system(NULL) == NULL);
    CHECK_STR(jzx_loop_name(NULL), "");
    CHECK_EQ(jzx_system_stop(w->system, JZX_NOBODY), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_system_kill(w->system, UINT64_MAX), JZX_ERR_NO_SUCH_ACTOR);
    jzx_counters now = world_counters(w);
    CHECK_EQ(now.spawned, before.spawned);
    CHECK_EQ(now.live, before.live);
    world_close(w);
}

/* Bad spawns, from main, from a thread's point of view, and from an actor in every place. */
static const struct {
    jzx_spawn_opts opts;
    jzx_err want;
} bad_spawns[] = {
    {{.behavior = ignore, .dispatcher = "nobody"}, JZX_ERR_NO_SUCH_DISPATCHER},
    {{.behavior = ignore, .dispatcher = ""}, JZX_ERR_NO_SUCH_DISPATCHER},
    {{.behavior = ignore, .dispatcher = "Loop"}, JZX_ERR_NO_SUCH_DISPATCHER},
    {{.behavior = ignore, .dispatcher = "pool2"}, JZX_ERR_NO_SUCH_DISPATCHER},
    {{.behavior = ignore,
      .dispatcher = "a name that is much longer than any name of a dispatcher can ever be"},
     JZX_ERR_NO_SUCH_DISPATCHER},
    {{.dispatcher = "pool"}, JZX_ERR_INVALID_ARG},
    {{.dispatcher = "pinned"}, JZX_ERR_INVALID_ARG},
    {{.behavior = ignore, .flags = 0x8000, .dispatcher = "pinned"}, JZX_ERR_INVALID_ARG},
    {{.behavior = ignore, .supervisor = 12345, .dispatcher = "crew"}, JZX_ERR_INVALID_ARG},
    {{.behavior = ignore, .full_policy = 9, .dispatcher = "desk"}, JZX_ERR_INVALID_ARG},
    {{.behavior = ignore, .mailbox_cap = UINT32_MAX, .dispatcher = "pool"}, JZX_ERR_TOO_BIG},
    {{.behavior = ignore, .mailbox_cap = 4, .low_water = 5, .dispatcher = "crew"},
     JZX_ERR_INVALID_ARG}};

static void try_bad_spawns(jzx_context *ctx, puppet *self, void *arg)
{
    jzx_system *system = arg;
    (void)self;
    for (size_t i = 0; i < COUNT_OF(bad_spawns); i++) {
        jzx_actor_id id = 77;
        CHECK_EQ(jzx_spawn(ctx->loop, &bad_spawns[i].opts, &id), bad_spawns[i].want);
        CHECK_EQ(jzx_system_spawn(system, &bad_spawns[i].opts, &id), bad_spawns[i].want);
        CHECK_EQ(id, 77);
    }
}

static void test_bad_spawns_are_refused_everywhere(void)
{
    world *w = world_open();
    for (size_t at = 0; at < PLACES; at++) {
        (void)puppet_up(puppet_at(w, places[at], places[at]));
    }
    world_settle(w);
    jzx_counters before = world_counters(w);
    size_t dispatchers = jzx_system_dispatchers(w->system, NULL, 0);
    size_t threads = count_threads();
    for (size_t at = 0; at < PLACES; at++) {
        puppet_call(cast_find(&w->cast, places[at]), try_bad_spawns, w->system);
    }
    jzx_context outside = {.loop = w->loop};
    try_bad_spawns(&outside, NULL, w->system);
    world_settle(w);
    jzx_counters now = world_counters(w);
    CHECK_EQ(now.spawned, before.spawned);
    CHECK_EQ(now.live, before.live);
    CHECK_EQ(jzx_system_dispatchers(w->system, NULL, 0), dispatchers);
    CHECK_EQ(count_threads(), threads);
    world_close(w);
}

/* A loop without a system has no other dispatchers. */
static void test_a_plain_loop_knows_no_dispatchers(void)
{
    jzx_loop *loop = NULL;
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    static const char *const names[] = {"pool", "pinned", "nobody", ""};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        jzx_actor_id id = 77;
        jzx_spawn_opts opts = {.behavior = ignore, .dispatcher = names[i]};
        CHECK_EQ(jzx_spawn(loop, &opts, &id), JZX_ERR_NO_SUCH_DISPATCHER);
        CHECK_EQ(id, 77);
    }
    jzx_counters c;
    jzx_loop_counters(loop, &c);
    CHECK_EQ(c.spawned, 0);
    CHECK_OK(jzx_loop_destroy(loop));
}

static void test_bad_pools_of_one_loop_are_refused(void)
{
    static const uint32_t cpus[] = {100000};
    static const struct {
        jzx_config config;
        jzx_err want;
    } table[] = {
        {{.dispatcher = JZX_DISPATCHER_POOL}, JZX_ERR_INVALID_ARG},
        {{.dispatcher = JZX_DISPATCHER_POOL, .workers = 65}, JZX_ERR_TOO_BIG},
        {{.dispatcher = 3, .workers = 1}, JZX_ERR_INVALID_ARG},
        {{.dispatcher = JZX_DISPATCHER_PINNED, .workers = 2}, JZX_ERR_INVALID_ARG},
        {{.dispatcher = JZX_DISPATCHER_POOL, .workers = 1, .cpus = cpus, .cpu_count = 1},
         JZX_ERR_INVALID_ARG},
        {{.dispatcher = JZX_DISPATCHER_POOL, .workers = 1, .cpu_count = 1}, JZX_ERR_INVALID_ARG}};
    size_t fds = count_fds();
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        jzx_loop *loop = NULL;
        CHECK_STR(jzx_err_name(jzx_loop_create(&table[i].config, &loop)),
                  jzx_err_name(table[i].want));
        CHECK(loop == NULL);
    }
    CHECK_EQ(count_fds(), fds);
    jzx_loop *loop = NULL;
    jzx_config good = {.dispatcher = JZX_DISPATCHER_POOL, .workers = JZX_WORKERS_PER_CPU};
    CHECK_OK(jzx_loop_create(&good, &loop));
    CHECK_OK(jzx_loop_destroy(loop));
}

/* The wrong moment: inside of actors the system can neither run nor go (R35). */
static void try_to_run(jzx_context *ctx, puppet *self, void *arg)
{
    jzx_system *system = arg;
    jzx_shutdown_report report;
    (void)self;
    (void)ctx;
    CHECK_EQ(jzx_system_run(system), JZX_ERR_BUSY);
    CHECK_EQ(jzx_system_run_until_idle(system, 1), JZX_ERR_BUSY);
    CHECK_EQ(jzx_system_shutdown(system, 1, &report), JZX_ERR_BUSY);
    CHECK_EQ(jzx_system_destroy(system), JZX_ERR_BUSY);
}

static void test_inside_an_actor_the_system_is_busy(void)
{
    world *w = world_open();
    puppet *a = puppet_up(puppet_at(w, "a", "loop"));
    puppet *b = puppet_up(puppet_at(w, "b", "pool"));
    puppet_call(a, try_to_run, w->system);
    CHECK_OK(jzx_send_u64(w->loop, atomic_load(&b->id), 1, TAG)); /* all is as before */
    WAIT(w, puppet_saw(b, TAG) == 1);
    world_close(w);
}

/* Looking at an actor, a supervisor's calls, and I/O for somebody else: at home only. */
static void look_elsewhere(jzx_context *ctx, puppet *self, void *arg)
{
    jzx_actor_id id = atomic_load(&((puppet *)arg)->id);
    jzx_actor_facts facts = {.handled = 7};
    jzx_child_info info;
    jzx_child_counts counts;
    jzx_child_spec spec = {.id = "x", .behavior = ignore, .mode = JZX_TEMPORARY};
    jzx_actor_id child = 0;
    (void)self;
    CHECK_EQ(jzx_actor_incarnation(ctx->loop, id), 0);
    CHECK_EQ(jzx_actor_parent(ctx->loop, id), JZX_NOBODY);
    CHECK_EQ(jzx_actor_children(ctx->loop, id, &child, 1), 0);
    CHECK_EQ(jzx_actor_inspect(ctx->loop, id, &facts), JZX_ERR_WRONG_DISPATCHER);
    CHECK_EQ(facts.handled, 7);
    CHECK_EQ(jzx_supervisor_child(ctx->loop, id, "x", &info), JZX_ERR_WRONG_DISPATCHER);
    CHECK_EQ(jzx_supervisor_count(ctx->loop, id, &counts), JZX_ERR_WRONG_DISPATCHER);
    CHECK_EQ(jzx_supervisor_start_child(ctx->loop, id, &spec, NULL), JZX_ERR_WRONG_DISPATCHER);
    CHECK_EQ(jzx_supervisor_start_dynamic(ctx->loop, id, NULL, NULL), JZX_ERR_WRONG_DISPATCHER);
    CHECK_EQ(jzx_supervisor_terminate_child(ctx->loop, id, "x"), JZX_ERR_WRONG_DISPATCHER);
    CHECK_EQ(jzx_supervisor_restart_child(ctx->loop, id, "x", NULL), JZX_ERR_WRONG_DISPATCHER);
    CHECK_EQ(jzx_supervisor_delete_child(ctx->loop, id, "x"), JZX_ERR_WRONG_DISPATCHER);
    CHECK_EQ(jzx_supervisor_children(ctx->loop, id, &info, 1), 0);
    int fds[2];
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(jzx_watch_fd(ctx->loop, fds[0], id, JZX_IO_READ, TAG, NULL), JZX_ERR_WRONG_DISPATCHER);
    close(fds[0]);
    close(fds[1]);
    CHECK_EQ(jzx_listen(ctx->loop, "127.0.0.1:0", id, NULL, NULL), JZX_ERR_WRONG_DISPATCHER);
    CHECK_EQ(jzx_connect(ctx->loop, "127.0.0.1:1", id, NULL, NULL), JZX_ERR_WRONG_DISPATCHER);
}

static void give_elsewhere(jzx_context *ctx, puppet *self, void *arg)
{
    jzx_actor_id id = atomic_load(&((puppet *)arg)->id);
    jzx_io_ref listener = 0, conn = 0;
    char address[JZX_ADDRESS_MAX + 1];
    (void)self;
    CHECK_OK(jzx_listen(ctx->loop, "127.0.0.1:0", ctx->self, NULL, &listener));
    CHECK_OK(jzx_net_address(ctx->loop, listener, 0, address, sizeof address));
    CHECK_OK(jzx_connect(ctx->loop, address, ctx->self, NULL, &conn));
    CHECK_EQ(jzx_conn_give(ctx->loop, conn, id, TAG), JZX_ERR_WRONG_DISPATCHER);
    CHECK_OK(jzx_conn_close(ctx->loop, conn, 1)); /* it is still ours */
    CHECK_OK(jzx_listener_close(ctx->loop, listener));
}

static void test_looking_at_actors_elsewhere_is_refused(void)
{
    world *w = world_open();
    for (size_t from = 0; from < PLACES; from++) {
        for (size_t to = 0; to < PLACES; to++) {
            puppet *a = puppet_up(puppet_at(w, "a", places[from]));
            puppet *b = puppet_up(puppet_at(w, "b", places[to]));
            if (from != to || from == AT_PINNED) {
                puppet_call(a, look_elsewhere, b);
                puppet_call(a, give_elsewhere, b);
            }
            REQUIRE_OK(jzx_stop(w->loop, atomic_load(&a->id)));
            REQUIRE_OK(jzx_stop(w->loop, atomic_load(&b->id)));
            WAIT(w, atomic_load(&a->ends) == 1 && atomic_load(&b->ends) == 1);
        }
    }
    CHECK_EQ(world_counters(w).refs, 0);
    world_close(w);
}

/* The other dispatchers run by themselves: nobody else runs, steps or ends them. */
static void test_dispatchers_of_a_system_are_not_run_by_hand(void)
{
    world *w = world_open();
    (void)puppet_up(puppet_at(w, "a", "pool"));
    for (size_t at = AT_POOL; at < PLACES; at++) {
        jzx_loop *loop = jzx_system_dispatcher(w->system, places[at]);
        jzx_shutdown_report report;
        REQUIRE(loop != NULL);
        CHECK_EQ(jzx_loop_run(loop), JZX_ERR_BUSY);
        CHECK_EQ(jzx_loop_step(loop, 0), JZX_ERR_BUSY);
        CHECK_EQ(jzx_loop_run_until_idle(loop), JZX_ERR_BUSY);
        CHECK_EQ(jzx_loop_shutdown(loop, 1, &report), JZX_ERR_BUSY);
        CHECK_EQ(jzx_loop_destroy(loop), JZX_ERR_BUSY);
    }
    CHECK_EQ(world_counters(w).live, 1);
    world_close(w);
}

/* Limits of the config hold for each dispatcher on its own. */
static void test_a_full_dispatcher_refuses_and_the_others_do_not(void)
{
    jzx_config config = {.max_actors = 3};
    world *w = world_open_with(&config, true);
    for (size_t at = 0; at < PLACES; at++) {
        jzx_spawn_opts opts = {.behavior = ignore, .dispatcher = places[at]};
        jzx_actor_id id = 77;
        for (int i = 0; i < 3; i++) {
            CHECK_OK(jzx_spawn(w->loop, &opts, NULL));
        }
        if (at != AT_PINNED) {
            CHECK_EQ(jzx_spawn(w->loop, &opts, &id), JZX_ERR_MAX_ACTORS);
            CHECK_EQ(jzx_system_spawn(w->system, &opts, &id), JZX_ERR_MAX_ACTORS);
            CHECK_EQ(id, 77);
        }
    }
    world_settle(w);
    CHECK_EQ(world_counters(w).live, 3 * PLACES);
    world_close(w);
}

/* Without memory a system is not made, and nothing is left of it. */
static void test_creation_fails_at_every_allocation_without_a_trace(void)
{
    for (uint64_t n = 1;; n++) {
        attempt *a = attempt_new();
        a->specs[0] = (jzx_dispatcher_spec){.name = "desk", .kind = JZX_DISPATCHER_PINNED};
        a->specs[1] =
            (jzx_dispatcher_spec){.name = "crew", .kind = JZX_DISPATCHER_POOL, .workers = 2};
        a->sc.dispatcher_count = 2;
        jzx_system *system = NULL;
        jzx_fault_arm_alloc(a->fault, n, 1);
        jzx_err err = jzx_system_create(&a->sc, &system);
        jzx_fault_arm_alloc(a->fault, 0, 0);
        if (err == JZX_OK) {
            CHECK_OK(jzx_system_destroy(system));
            attempt_end(a);
            CHECK(n > 5);
            return;
        }
        CHECK_EQ(err, JZX_ERR_NO_MEMORY);
        CHECK(system == NULL);
        attempt_end(a);
        REQUIRE(n < 10000);
    }
}

/* Threads of the default size no longer fit anywhere. */
static void make_threads_huge(bool huge)
{
    static pthread_attr_t normal;
    static bool known;
    pthread_attr_t attr;
    if (!known) {
        REQUIRE_EQ(pthread_getattr_default_np(&normal), 0);
        known = true;
    }
    REQUIRE_EQ(pthread_getattr_default_np(&attr), 0);
    size_t size = 0;
    REQUIRE_EQ(pthread_attr_getstacksize(&normal, &size), 0);
    REQUIRE_EQ(pthread_attr_setstacksize(&attr, huge ? (size_t)1 << 46 : size), 0);
    REQUIRE_EQ(pthread_setattr_default_np(&attr), 0);
    pthread_attr_destroy(&attr);
}

static void test_without_threads_a_call_says_so_and_leaves_nothing(void)
{
#if JZT_SANITIZED
    jzt_skip("Sanitizers make threads in a way of their own.");
#endif
    world *w = world_open();
    attempt *a = attempt_new();
    a->specs[0] = (jzx_dispatcher_spec){.name = "desk", .kind = JZX_DISPATCHER_PINNED};
    a->sc.dispatcher_count = 1;
    size_t dispatchers = jzx_system_dispatchers(w->system, NULL, 0);
    jzx_actor_id id = 77;
    jzx_spawn_opts opts = {.behavior = ignore, .dispatcher = "pinned"};
    make_threads_huge(true);
    jzx_system *system = NULL;
    jzx_err create = jzx_system_create(&a->sc, &system);
    jzx_err pinned = jzx_spawn(w->loop, &opts, &id);
    opts.dispatcher = "pool";
    jzx_err pool = jzx_system_spawn(w->system, &opts, &id);
    opts.dispatcher = "crew";
    jzx_err crew = jzx_spawn(w->loop, &opts, NULL);
    make_threads_huge(false);
    CHECK_EQ(create, JZX_ERR_NO_THREADS);
    CHECK_EQ(pinned, JZX_ERR_NO_THREADS);
    CHECK_EQ(pool, JZX_ERR_NO_THREADS);
    CHECK_OK(crew); /* its threads are there */
    CHECK(system == NULL);
    CHECK_EQ(id, 77);
    CHECK_EQ(jzx_system_dispatchers(w->system, NULL, 0), dispatchers);
    CHECK_EQ(jzx_fault_leaked(a->fault, NULL), 0);
    jzx_fault_destroy(a->fault);
    opts.dispatcher = "pool"; /* and now it works */
    CHECK_OK(jzx_spawn(w->loop, &opts, NULL));
    opts.dispatcher = "pinned";
    CHECK_OK(jzx_spawn(w->loop, &opts, NULL));
    world_close(w);
}

static const jzt_test tests[] = {
    {"bad_dispatchers_are_refused", test_bad_dispatchers_are_refused},
    {"bad_system_configs_are_refused", test_bad_system_configs_are_refused},
    {"newer_structs_are_refused_unless_their_tail_is_zero",
     test_newer_structs_are_refused_unless_their_tail_is_zero},
    {"null_arguments_do_no_harm", test_null_arguments_do_no_harm},
    {"bad_spawns_are_refused_everywhere", test_bad_spawns_are_refused_everywhere},
    {"a_plain_loop_knows_no_dispatchers", test_a_plain_loop_knows_no_dispatchers},
    {"bad_pools_of_one_loop_are_refused", test_bad_pools_of_one_loop_are_refused},
    {"inside_an_actor_the_system_is_busy", test_inside_an_actor_the_system_is_busy},
    {"looking_at_actors_elsewhere_is_refused", test_looking_at_actors_elsewhere_is_refused},
    {"dispatchers_of_a_system_are_not_run_by_hand",
     test_dispatchers_of_a_system_are_not_run_by_hand},
    {"a_full_dispatcher_refuses_and_the_others_do_not",
     test_a_full_dispatcher_refuses_and_the_others_do_not},
    {"without_threads_a_call_says_so_and_leaves_nothing",
     test_without_threads_a_call_says_so_and_leaves_nothing},
    {"creation_fails_at_every_allocation_without_a_trace",
     test_creation_fails_at_every_allocation_without_a_trace},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
