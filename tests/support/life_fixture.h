/* What the suites on lifecycle and monitors share: actors that write down what happens to them in
 * one journal, answer every hook as the test said, and can be told to run a function of the test
 * inside themselves; and an observer that counts ends, failures and restarts. */
#ifndef JZT_LIFE_FIXTURE_H
#define JZT_LIFE_FIXTURE_H

#include "core_fixture.h"

#include <stdarg.h>

/* What `obey` does for a tag; every other tag is just work. */
enum {
    T_FAIL = 0x100,
    T_PANIC,
    T_STOP,
    T_ODD,
    T_DEFER,
    T_SELF_STOP,
    T_SELF_DRAIN,
    T_SELF_KILL,
    T_CALL
};

enum { IN_INIT = 0, IN_DEINIT = 12, HOOKS = 13, LIVES_MAX = 128, SAID_MAX = 16384 };

typedef struct life life;
struct life {
    const char *name;
    jzx_actor_id id;
    void (*call)(jzx_context *ctx, life *self); /* what T_CALL runs */
    /* Runs inside every hook and notice: `what` is IN_INIT, a signal kind or IN_DEINIT. */
    void (*during)(jzx_context *ctx, life *self, uint32_t what);
    jzx_behavior_result answer[HOOKS]; /* by hook; 0 is OK */
    bool panics[HOOKS];
    bool mute; /* says nothing */
    bool up;   /* between init and deinit */
    void *arg;
    const jzx_message *msg; /* in hand */
    uint64_t inits;
    uint64_t deinits;
    uint64_t handled;
    uint64_t fails; /* as the observer counts them */
    uint64_t ends;
    uint64_t restarts;
    uint64_t end_ns;
    jzx_reason failed; /* the last failure */
    jzx_reason ended;
    jzx_restart_event restart; /* the last; its pointers are gone */
    uint64_t number;
    jzx_watch_ref ref;
};

/* The journal, and the actors that are known by name. Both belong to the test that runs. */
static char said[SAID_MAX];
static size_t said_len;
static life *lives[LIVES_MAX];
static size_t lives_len;
static uint64_t escalations;
static uint32_t escalated_as;
static jzx_actor_id escalated_for;

static inline void said_clear(void)
{
    said_len = 0;
    said[0] = '\0';
}

__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (said_len > 0 && said_len < SAID_MAX - 1) {
        said[said_len++] = ' ';
    }
    int len = vsnprintf(said + said_len, SAID_MAX - said_len, format, args);
    va_end(args);
    size_t room = SAID_MAX - 1 - said_len;
    said_len += (size_t)len < room ? (size_t)len : room;
}

/* The journal since the last look is exactly this. */
#define CHECK_SAID(text)                                                                           \
    do {                                                                                           \
        CHECK_STR(said, text);                                                                     \
        said_clear();                                                                              \
    } while (0)

/* One entry comes before another, and both are there. */
static inline bool said_before(const char *first, const char *second)
{
    const char *a = strstr(said, first);
    const char *b = strstr(said, second);
    return a != NULL && b != NULL && a < b;
}

static inline size_t said_times(const char *text)
{
    size_t times = 0;
    for (const char *at = said; (at = strstr(at, text)) != NULL; at++) {
        times++;
    }
    return times;
}

static inline life *life_of(jzx_actor_id id)
{
    for (size_t i = 0; i < lives_len; i++) {
        if (lives[i]->id == id) {
            return lives[i];
        }
    }
    return NULL;
}

static inline const char *name_of(jzx_actor_id id)
{
    const life *self = life_of(id);
    return self == NULL ? "?" : self->name;
}

/* "panic 8", "shutdown" */
static inline const char *reason_text(const jzx_reason *reason)
{
    static char text[64];
    if (reason->code == 0) {
        snprintf(text, sizeof text, "%s", jzx_reason_name(reason->kind));
    } else {
        snprintf(text, sizeof text, "%s %d", jzx_reason_name(reason->kind), (int)reason->code);
    }
    return text;
}

static inline jzx_behavior_result life_answer(jzx_context *ctx, life *self, uint32_t what)
{
    if (self->during != NULL) {
        self->during(ctx, self, what);
    }
    if (self->panics[what]) {
        jzx_panic(ctx, (int32_t)what + 100, "as told");
    }
    return self->answer[what];
}

static inline jzx_behavior_result life_init(jzx_context *ctx, void *arg)
{
    life *self = arg;
    CHECK(ctx->state == NULL);
    CHECK(!self->up);
    if (!self->mute) {
        say("%s.init", self->name);
    }
    self->id = ctx->self;
    jzx_behavior_result result = life_answer(ctx, self, IN_INIT);
    ctx->state = result == JZX_BEHAVIOR_OK ? self : NULL;
    self->up = result == JZX_BEHAVIOR_OK;
    self->inits += self->up ? 1 : 0;
    return result;
}

static inline void life_deinit(jzx_context *ctx)
{
    life *self = ctx->state;
    CHECK(self->up);
    self->up = false;
    self->deinits++;
    if (!self->mute) {
        say("%s.deinit", self->name);
    }
    (void)life_answer(ctx, self, IN_DEINIT);
}

static inline jzx_behavior_result life_signal(jzx_context *ctx, const jzx_signal *signal)
{
    life *self = ctx->state;
    const char *kind = jzx_signal_name(signal->kind);
    REQUIRE(self != NULL && signal->reason != NULL && signal->kind < IN_DEINIT);
    CHECK(self->up);
    if (self->mute) {
        return life_answer(ctx, self, signal->kind);
    }
    if (signal->kind >= JZX_SIGNAL_TERMINATED) {
        say("%s<%s %s %s>", self->name, kind, name_of(signal->from), reason_text(signal->reason));
    } else if (signal->kind >= JZX_SIGNAL_PRE_RESTART) {
        say("%s.%s(%s)", self->name, kind, reason_text(signal->reason));
    } else {
        CHECK_EQ(signal->from, ctx->self);
        say("%s.%s", self->name, kind);
    }
    return life_answer(ctx, self, signal->kind);
}

static inline jzx_behavior_result obey(jzx_context *ctx, uint32_t tag, life *self)
{
    switch (tag) {
    case T_FAIL:
        return jzx_fail(ctx, 7, "as told");
    case T_PANIC:
        jzx_panic(ctx, 8, "as told");
    case T_STOP:
        return JZX_BEHAVIOR_STOP;
    case T_ODD:
        return (jzx_behavior_result)77;
    case T_DEFER:
        return JZX_BEHAVIOR_DEFER;
    case T_SELF_STOP:
        CHECK_OK(jzx_stop(ctx->loop, ctx->self));
        break;
    case T_SELF_DRAIN:
        CHECK_OK(jzx_stop_drained(ctx->loop, ctx->self));
        break;
    case T_SELF_KILL:
        CHECK_OK(jzx_kill(ctx->loop, ctx->self));
        break;
    case T_CALL:
        self->call(ctx, self);
        break;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static inline jzx_behavior_result life_behavior(jzx_context *ctx, const jzx_message *msg)
{
    life *self = ctx->state;
    CHECK(self->up);
    const jzx_signal *signal = jzx_message_signal(msg);
    if (signal != NULL) { /* only without on_signal */
        return life_signal(ctx, signal);
    }
    self->handled++;
    self->msg = msg;
    if (!self->mute && msg->tag != T_CALL) {
        if (msg->tag >= JZX_TAG_SYSTEM_FIRST) {
            say("%s:room", self->name);
        } else {
            say("%s:%x", self->name, (unsigned)msg->tag);
        }
    }
    return obey(ctx, msg->tag, self);
}

static inline void note_start(void *ctx, jzx_actor_id id, const char *name)
{
    (void)ctx;
    for (size_t i = 0; i < lives_len && life_of(id) == NULL; i++) {
        if (strcmp(lives[i]->name, name) == 0) {
            lives[i]->id = id;
        }
    }
}

static inline void note_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    rig *r = ctx;
    (void)name;
    life *self = life_of(id);
    if (self != NULL) {
        self->ends++;
        self->ended = *reason;
        self->end_ns = r->sim == NULL ? 0 : jzx_sim_now(r->sim);
        if (!self->mute) {
            say("%s.end(%s)", self->name, reason_text(reason));
        }
    }
}

static inline void note_fail(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)ctx;
    (void)name;
    life *self = life_of(id);
    if (self != NULL) {
        self->fails++;
        self->failed = *reason;
    }
}

static inline void note_restart(void *ctx, const jzx_restart_event *event)
{
    (void)ctx;
    life *self = life_of(event->id);
    if (self != NULL) {
        self->restarts++;
        self->restart = *event;
        self->restart.cause = NULL;
        self->restart.name = NULL;
    }
}

static inline void note_escalate(void *ctx, const jzx_escalation_event *event)
{
    (void)ctx;
    escalations++;
    escalated_as = event->reason;
    escalated_for = event->child;
}

/* 0: FIFO turns, so that journals come out the same with every seed. Else this seed says who runs
 * next, for tests that look at invariants only. */
static uint64_t life_seed;

/* The rig must stay where it is: the observer keeps its address. */
static inline void life_open(rig *r, const jzx_config *config)
{
    static const jzx_observer observer = {.on_actor_spawn = note_start,
                                          .on_actor_stop = note_stop,
                                          .on_actor_fail = note_fail,
                                          .on_restart = note_restart,
                                          .on_escalate = note_escalate};
    jzx_sim_opts sim = {.seed = life_seed != 0 ? life_seed : jzt_seed() | 1,
                        .flags = life_seed != 0 ? 0 : JZX_SIM_FIFO};
    *r = rig_open_with(config, &sim);
    lives_len = 0;
    escalations = 0;
    said_clear();
    REQUIRE_OK(jzx_loop_set_observer(r->loop, &observer, r));
}

/* Every life that was begun has ended by then, and every state that was built was released. */
static inline void life_close(rig *r)
{
    rig_close(r);
    for (size_t i = 0; i < lives_len; i++) {
        CHECK(!lives[i]->up);
        CHECK_EQ(lives[i]->inits, lives[i]->deinits);
    }
}

static inline void life_name(life *self, const char *name)
{
    *self = (life){.name = name};
    REQUIRE(lives_len < LIVES_MAX);
    lives[lives_len++] = self;
}

/* All hooks; change what the test needs. */
static inline jzx_spawn_opts life_opts(life *self)
{
    return (jzx_spawn_opts){.behavior = life_behavior,
                            .state = self,
                            .name = self->name,
                            .init = life_init,
                            .deinit = life_deinit,
                            .on_signal = life_signal};
}

static inline void life_spawn_with(jzx_loop *loop, life *self, const jzx_spawn_opts *opts)
{
    REQUIRE_OK(jzx_spawn(loop, opts, &self->id));
}

/* Named, spawned by the root, not yet started. */
static inline void life_spawn(rig *r, life *self, const char *name)
{
    life_name(self, name);
    jzx_spawn_opts opts = life_opts(self);
    life_spawn_with(r->loop, self, &opts);
}

static inline void tell(rig *r, const life *to, uint32_t tag)
{
    REQUIRE_OK(jzx_send_u64(r->loop, to->id, tag, tag));
}

/* Runs a function of the test inside an actor, and whatever follows from it. */
static inline void inside(rig *r, life *self, void (*call)(jzx_context *ctx, life *self))
{
    self->call = call;
    tell(r, self, T_CALL);
    rig_idle(r);
}

static inline void run_ms(rig *r, uint64_t ms)
{
    REQUIRE_OK(jzx_kit_run(r->kit, ms));
    const char *wrong = jzx_testkit_check(r->loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
}

/* One turn of one actor at a time, until the actor is in that state; for loops that were opened
 * with one_turn. */
static const jzx_config one_turn = {.max_actors_per_tick = 1};

static inline bool step_until(rig *r, jzx_actor_id id, jzx_state state)
{
    for (int i = 0; i < 200; i++) {
        if (jzx_actor_state(r->loop, id) == state) {
            return true;
        }
        REQUIRE_OK(jzx_loop_step(r->loop, 0));
    }
    return jzx_actor_state(r->loop, id) == state;
}

static inline bool is_gone(rig *r, const life *self)
{
    return jzx_actor_state(r->loop, self->id) == JZX_STATE_TERMINATED;
}

/* It ended once, for this reason, and its id is gone. */
#define CHECK_ENDED(rig_, self_, kind_)                                                            \
    do {                                                                                           \
        CHECK_EQ((self_)->ends, 1);                                                                \
        CHECK_STR(jzx_reason_name((self_)->ended.kind), jzx_reason_name(kind_));                   \
        CHECK(is_gone((rig_), (self_)));                                                           \
        CHECK_EQ(jzx_send_u64((rig_)->loop, (self_)->id, 0, 1), JZX_ERR_NO_SUCH_ACTOR);            \
    } while (0)

#define CHECK_STATE(rig_, self_, state_)                                                           \
    CHECK_STR(jzx_state_name(jzx_actor_state((rig_)->loop, (self_)->id)), jzx_state_name(state_))

/* A parent p that gives the children a, b, c... it spawns in its init a policy. */
enum { FAMILY_MAX = 6 };
typedef struct family {
    life p;
    life child[FAMILY_MAX];
    jzx_supervisor_spec policy;
    uint32_t flags; /* of the children */
    size_t count;
} family;

static inline void family_begin(jzx_context *ctx, life *self, uint32_t what)
{
    family *f = self->arg;
    if (what != IN_INIT) {
        return;
    }
    REQUIRE_OK(jzx_set_child_policy(ctx, &f->policy));
    for (size_t i = 0; i < f->count; i++) {
        jzx_spawn_opts opts = life_opts(&f->child[i]);
        opts.flags = f->flags;
        life_spawn_with(ctx->loop, &f->child[i], &opts);
    }
}

/* Opened, started and quiet. */
static inline void family_open(rig *r, family *f, const jzx_config *config,
                               const jzx_supervisor_spec *policy, size_t count, uint32_t flags)
{
    static const char *const names[FAMILY_MAX] = {"a", "b", "c", "d", "e", "f"};
    life_open(r, config);
    REQUIRE(count <= FAMILY_MAX);
    f->policy = *policy;
    f->count = count;
    f->flags = flags;
    for (size_t i = 0; i < count; i++) {
        life_name(&f->child[i], names[i]);
    }
    life_name(&f->p, "p");
    f->p.arg = f;
    f->p.during = family_begin;
    jzx_spawn_opts opts = life_opts(&f->p);
    life_spawn_with(r->loop, &f->p, &opts);
    rig_idle(r);
    CHECK_STATE(r, &f->p, JZX_STATE_RUNNING);
    said_clear();
}

#endif
