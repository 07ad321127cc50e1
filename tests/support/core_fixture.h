/* What the contract suites of the core share: the worlds they run in, a rig per test that checks
 * conservation, leaks and descriptors when it is closed, and an actor that keeps a log and does
 * what the test gave it to do. */
#ifndef JZT_CORE_FIXTURE_H
#define JZT_CORE_FIXTURE_H

#include "check.h"

#include <jzx/jzx.h>
#include <jzx/testkit.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

typedef struct core_world {
    const char *name;
    const jzx_env *(*env)(void); /* NULL: simulated */
} core_world;

static const core_world worlds[] = {
    {"sim", NULL},
    {"epoll", jzx_env_epoll},
};
/* The world whose tests run now; the runner's tests take no argument. */
static const core_world *current = &worlds[0];

typedef struct rig {
    jzx_kit *kit;
    jzx_loop *loop;
    jzx_sim *sim;     /* NULL on a real environment */
    jzx_fault *fault; /* all of the loop's memory goes through it */
} rig;

static inline rig rig_open_with(const jzx_config *config, const jzx_sim_opts *sim)
{
    rig r = {0};
    jzx_kit_opts opts = {
        .config = config, .sim = sim, .env = current->env == NULL ? NULL : current->env()};
    REQUIRE_OK(jzx_kit_open(&opts, &r.kit));
    r.loop = r.kit->loop;
    r.sim = r.kit->sim;
    r.fault = r.kit->fault;
    return r;
}

/* The seed decides who runs next. */
static inline rig rig_open(const jzx_config *config)
{
    jzx_sim_opts sim = {.seed = jzt_seed() | 1};
    return rig_open_with(config, &sim);
}

/* Actors take turns in the order in which they became ready, as on a real loop. */
static inline rig rig_open_fifo(const jzx_config *config)
{
    jzx_sim_opts sim = {.seed = jzt_seed() | 1, .flags = JZX_SIM_FIFO};
    return rig_open_with(config, &sim);
}

static inline void rig_close(rig *r)
{
    const char *wrong = jzx_kit_close(r->kit);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    *r = (rig){0};
}

static inline void rig_idle(rig *r)
{
    REQUIRE_OK(jzx_loop_run_until_idle(r->loop));
    const char *wrong = jzx_testkit_check(r->loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
}

static inline jzx_counters rig_counters(rig *r)
{
    jzx_counters now;
    jzx_loop_counters(r->loop, &now);
    return now;
}

static inline size_t rig_bytes(const rig *r)
{
    size_t bytes = 0;
    (void)jzx_fault_leaked(r->fault, &bytes);
    return bytes;
}

/* Lets virtual time pass inside a behavior: looking at the clock costs some. */
static inline void spend(jzx_loop *loop, uint64_t ns)
{
    uint64_t end = jzx_loop_now(loop) + ns;
    while (jzx_loop_now(loop) < end) {
    }
}

/* An actor that logs the tags it sees and then does what the test said. */
typedef struct subject subject;
typedef jzx_behavior_result (*subject_fn)(jzx_context *ctx, const jzx_message *msg, subject *self);

enum { LOG_MAX = 4096 };

struct subject {
    jzx_actor_id id;
    subject_fn on;
    void (*on_end)(jzx_context *ctx, subject *self);
    void *arg;
    uint64_t number; /* for the test's own counting */
    uint64_t handled;
    uint64_t deinits;
    size_t log_len;
    uint32_t log[LOG_MAX];
};

static inline jzx_behavior_result subject_behavior(jzx_context *ctx, const jzx_message *msg)
{
    subject *self = ctx->state;
    if (jzx_message_signal(msg) != NULL) {
        return JZX_BEHAVIOR_OK; /* news of children has tests of its own */
    }
    self->handled++;
    if (self->log_len < LOG_MAX) {
        self->log[self->log_len++] = msg->tag;
    }
    return self->on == NULL ? JZX_BEHAVIOR_OK : self->on(ctx, msg, self);
}

static inline void subject_deinit(jzx_context *ctx)
{
    subject *self = ctx->state;
    self->deinits++;
    if (self->on_end != NULL) {
        self->on_end(ctx, self);
    }
}

/* Zeroed, not spawned; the caller frees it. */
static inline subject *subject_new(subject_fn on)
{
    subject *self = calloc(1, sizeof *self);
    REQUIRE(self != NULL);
    self->on = on;
    return self;
}

/* The options say everything but the behavior, the state and the deinit. */
static inline void subject_spawn(rig *r, subject *self, const jzx_spawn_opts *given)
{
    jzx_spawn_opts opts = given == NULL ? (jzx_spawn_opts){0} : *given;
    opts.behavior = subject_behavior;
    opts.state = self;
    opts.deinit = subject_deinit;
    REQUIRE_OK(jzx_spawn(r->loop, &opts, &self->id));
}

static inline subject *subject_start(rig *r, subject_fn on, const jzx_spawn_opts *opts)
{
    subject *self = subject_new(on);
    subject_spawn(r, self, opts);
    return self;
}

static inline void send_tag(rig *r, const subject *to, uint32_t tag)
{
    REQUIRE_OK(jzx_send_u64(r->loop, to->id, tag, tag));
}

static inline jzx_err try_urgent(jzx_loop *loop, jzx_actor_id to, uint32_t tag)
{
    jzx_send_opts opts = {.u64 = tag, .tag = tag, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
    return jzx_send_with(loop, to, &opts);
}

static inline jzx_timer_id after(rig *r, const subject *to, uint32_t ms, uint32_t tag)
{
    jzx_timer_id id = 0;
    REQUIRE_OK(jzx_send_after(r->loop, to->id, ms, NULL, 0, tag, &id));
    return id;
}

static inline void check_tags(int line, const uint32_t *got, size_t got_len, const uint32_t *want,
                              size_t want_len)
{
    size_t same = 0;
    while (same < got_len && same < want_len && got[same] == want[same]) {
        same++;
    }
    if (same < got_len || same < want_len) {
        fprintf(stderr, "  line %d: differs at %zu; got", line, same);
        for (size_t i = 0; i < got_len && i < 40; i++) {
            fprintf(stderr, " %x", (unsigned)got[i]);
        }
        fprintf(stderr, "; want");
        for (size_t i = 0; i < want_len && i < 40; i++) {
            fprintf(stderr, " %x", (unsigned)want[i]);
        }
        fprintf(stderr, "\n");
    }
    jzt_check_eq(JZT_CHECK, __FILE__, line, "messages as expected", "all", (intmax_t)same,
                 (intmax_t)(got_len > want_len ? got_len : want_len));
}

/* The subject saw exactly these tags, in this order. */
#define CHECK_LOG(subject_, ...)                                                                   \
    do {                                                                                           \
        static const uint32_t want_[] = {__VA_ARGS__};                                             \
        check_tags(__LINE__, (subject_)->log, (subject_)->log_len, want_, COUNT_OF(want_));        \
    } while (0)

/* What the dead letters say, as reason << 24 | tag. */
static inline size_t dead_facts(rig *r, uint32_t *out, size_t cap)
{
    jzx_dead_letter letters[64];
    uint64_t cursor = 0;
    uint64_t lagged = 0;
    size_t count = jzx_dead_letters_read(r->loop, &cursor, letters, COUNT_OF(letters), &lagged);
    CHECK_EQ(lagged, 0);
    for (size_t i = 0; i < count && i < cap; i++) {
        out[i] = (uint32_t)letters[i].reason << 24 | letters[i].tag;
    }
    return count < cap ? count : cap;
}

#define DEAD(reason, tag) ((uint32_t)(reason) << 24 | (tag))
#define CHECK_DEAD(rig_, ...)                                                                      \
    do {                                                                                           \
        static const uint32_t want_[] = {__VA_ARGS__};                                             \
        uint32_t got_[64];                                                                         \
        size_t len_ = dead_facts((rig_), got_, COUNT_OF(got_));                                    \
        check_tags(__LINE__, got_, len_, want_, COUNT_OF(want_));                                  \
    } while (0)

enum { TESTS_MAX = 64, NAME_SIZE = 128, ARGS_MAX = 32 };

/* Runs the suite in one world; names on the command line may carry the world's name or not. */
static inline int run_world(const core_world *world, const jzt_test *suite, size_t count, int argc,
                            char **argv)
{
    static char names[TESTS_MAX][NAME_SIZE];
    jzt_test tests[TESTS_MAX];
    char *args[ARGS_MAX];
    int args_len = 0;
    REQUIRE(count <= TESTS_MAX);
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], NAME_SIZE, "%s/%s", world->name, suite[i].name);
        tests[i] = (jzt_test){.name = names[i], .run = suite[i].run};
    }
    for (int i = 0; i < argc && args_len < ARGS_MAX; i++) {
        bool mine = i == 0 || strncmp(argv[i], world->name, strlen(world->name)) == 0;
        if (mine) {
            args[args_len++] = argv[i];
        }
    }
    if (argc > 1 && args_len == 1) {
        return 77;
    }
    current = world;
    return jzt_main(args_len, args, tests, count);
}

/* Runs it in every world. 77 only when all were skipped. */
static inline int run_worlds(const jzt_test *suite, size_t count, int argc, char **argv)
{
    int result = 77;
    for (size_t i = 0; i < COUNT_OF(worlds); i++) {
        int one = run_world(&worlds[i], suite, count, argc, argv);
        if (one == 1 || one == 2) {
            result = one;
        } else if (one == 0 && result == 77) {
            result = 0;
        }
    }
    return result;
}

#endif
