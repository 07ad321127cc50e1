/* What the supervisor suites share: a simulated world with a supervisor in it, children that do
 * what the test tells them, and an observer that writes everything down as words.
 *
 * A `kid` stands for one child spec and outlives its actor: it counts what happened in all of its
 * lives. Each life has a small state of its own on the heap, so that a state that was not built
 * anew, or not released, shows. */
#ifndef JZT_SUP_FIXTURE_H
#define JZT_SUP_FIXTURE_H

#include "core_fixture.h"

enum { WORDS_SIZE = 4096, KID_TIMES = 32 };

/* Words with blanks between them. What does not fit is left out, and the test will notice. */
typedef struct words {
    char text[WORDS_SIZE];
    char taken[WORDS_SIZE];
} words;

static inline void words_add(words *w, const char *word)
{
    size_t len = strlen(w->text);
    snprintf(w->text + len, sizeof w->text - len, "%s%s", len == 0 ? "" : " ", word);
}

/* Everything since the last look. */
static inline const char *words_take(words *w)
{
    memcpy(w->taken, w->text, sizeof w->text);
    w->text[0] = '\0';
    return w->taken;
}

/* Whether these words come in this order, with others between them or not. */
static inline bool words_in_order(const char *text, const char *wanted)
{
    const char *at = text;
    for (const char *word = wanted; *word != '\0'; word += strspn(word, " ")) {
        size_t len = strcspn(word, " ");
        while (*at != '\0' && !(strcspn(at, " ") == len && strncmp(at, word, len) == 0)) {
            at += strcspn(at, " ");
            at += strspn(at, " ");
        }
        if (*at == '\0') {
            fprintf(stderr, "  not in this order: \"%s\" in \"%s\"\n", wanted, text);
            return false;
        }
        at += len;
        at += strspn(at, " ");
        word += len;
    }
    return true;
}

/* How often a word is there. */
static inline unsigned words_count(const char *text, const char *word)
{
    unsigned count = 0;
    size_t len = strlen(word);
    for (const char *at = text; *at != '\0'; at += strspn(at, " ")) {
        size_t here = strcspn(at, " ");
        count += here == len && strncmp(at, word, len) == 0;
        at += here;
    }
    return count;
}

typedef struct kid kid;

typedef struct tree {
    rig r;
    jzx_loop *loop;
    jzx_actor_id sup;
    kid *kids;
    words life;           /* +a started, !a failed to, ~a declined to, -a released its state */
    words asked;          /* a: it got PRE_STOP */
    words ends;           /* a:shutdown: it is gone, and why */
    words fails;          /* a:failed: an incarnation failed */
    words restarts;       /* a#2: its second incarnation begins */
    words escalations;    /* sup:gave_up:a: a supervisor failed because of a child */
    jzx_reason sup_end;   /* how `sup` ended */
    jzx_reason cause;     /* of the first escalation: the child's */
    jzx_reason last_fail; /* the latest failure of anybody */
} tree;

/* The letters of `plan`, one for each coming start; the last one stays in force. */
#define KID_STARTS 'o'
#define KID_FAILS 'f'
#define KID_PANICS 'p'
#define KID_DECLINES 'i'
#define KID_ODD '?' /* returns what is no result */

struct kid {
    const char *id;
    tree *t;
    kid *next;
    /* What it does. */
    const char *plan; /* of its init; NULL: starts */
    char at_stop; /* of PRE_STOP: 0 agrees, d defers for ever, f fails, p panics, k kills itself */
    void (*on_init)(jzx_context *ctx, kid *k);
    void (*on_deinit)(jzx_context *ctx, kid *k);
    void *arg; /* for these two */
    /* What happened. */
    jzx_actor_id actor; /* of the latest start */
    uint32_t inits;     /* starts that were tried */
    uint32_t ups;       /* of these, that succeeded */
    uint32_t deinits;
    uint32_t handled;
    uint32_t seen;             /* messages of its present life */
    uint32_t drops;            /* kid_drop_arg() */
    uint64_t at_ns[KID_TIMES]; /* when the first tries were */
    uint64_t down_ns;          /* when it was last released */
};

typedef struct kid_state {
    kid *k;
    uint32_t seen;
    bool lingers;  /* has work until a timer comes */
    bool deferred; /* and was asked to stop meanwhile */
} kid_state;

enum {
    KID_NOTE = 1, /* do nothing but count */
    KID_END,      /* return STOP */
    KID_FAIL,
    KID_PANIC,
    KID_LINGER, /* be busy for u64 ms: a stop is deferred until then */
    KID_FINISH
};

enum { KID_FAIL_CODE = 7, KID_PANIC_CODE = 8, KID_INIT_CODE = 9, KID_STOP_CODE = 10 };

static inline void kid_note(kid *k, words *w, char sign)
{
    char word[64];
    snprintf(word, sizeof word, "%c%s", sign, k->id);
    words_add(w, word);
}

static inline jzx_behavior_result kid_init(jzx_context *ctx, void *arg)
{
    kid *k = arg;
    char plan = k->plan == NULL ? KID_STARTS : k->plan[0];
    if (k->plan != NULL && k->plan[1] != '\0') {
        k->plan++;
    }
    if (k->inits < KID_TIMES) {
        k->at_ns[k->inits] = jzx_loop_now(ctx->loop);
    }
    k->inits++;
    k->actor = ctx->self;
    CHECK(ctx->state == NULL);
    kid_note(k, &k->t->life, plan == KID_STARTS ? '+' : plan == KID_DECLINES ? '~' : '!');
    switch (plan) {
    case KID_FAILS:
        return jzx_fail(ctx, KID_INIT_CODE, "told not to start");
    case KID_PANICS:
        jzx_panic(ctx, KID_INIT_CODE, "told not to start");
    case KID_DECLINES:
        return JZX_BEHAVIOR_STOP;
    case KID_ODD:
        return (jzx_behavior_result)77;
    default:
        break;
    }
    kid_state *state = calloc(1, sizeof *state);
    CHECK(state != NULL);
    *state = (kid_state){.k = k};
    ctx->state = state;
    k->ups++;
    k->seen = 0;
    if (k->on_init != NULL) {
        k->on_init(ctx, k);
    }
    return JZX_BEHAVIOR_OK;
}

static inline void kid_deinit(jzx_context *ctx)
{
    kid_state *state = ctx->state;
    if (state == NULL) {
        return; /* it declined to start */
    }
    kid *k = state->k;
    k->deinits++;
    k->down_ns = jzx_loop_now(ctx->loop);
    kid_note(k, &k->t->life, '-');
    if (k->on_deinit != NULL) {
        k->on_deinit(ctx, k);
    }
    free(state);
    ctx->state = NULL;
}

static inline jzx_behavior_result kid_pre_stop(jzx_context *ctx, kid_state *state)
{
    words_add(&state->k->t->asked, state->k->id);
    if (state->lingers) {
        state->deferred = true;
        return JZX_BEHAVIOR_DEFER;
    }
    switch (state->k->at_stop) {
    case 'd':
        return JZX_BEHAVIOR_DEFER;
    case 'f':
        return jzx_fail(ctx, KID_STOP_CODE, "told to fail at the end");
    case 'p':
        jzx_panic(ctx, KID_STOP_CODE, "told to panic at the end");
    case 'k':
        CHECK_OK(jzx_kill(ctx->loop, ctx->self));
        return JZX_BEHAVIOR_OK;
    default:
        return JZX_BEHAVIOR_OK;
    }
}

static inline jzx_behavior_result kid_signal(jzx_context *ctx, const jzx_signal *signal)
{
    return signal->kind == JZX_SIGNAL_PRE_STOP ? kid_pre_stop(ctx, ctx->state) : JZX_BEHAVIOR_OK;
}

static inline jzx_behavior_result kid_behavior(jzx_context *ctx, const jzx_message *msg)
{
    kid_state *state = ctx->state;
    state->k->handled++;
    state->k->seen = ++state->seen;
    switch (msg->tag) {
    case KID_END:
        return JZX_BEHAVIOR_STOP;
    case KID_FAIL:
        return jzx_fail(ctx, KID_FAIL_CODE, "told to fail");
    case KID_PANIC:
        jzx_panic(ctx, KID_PANIC_CODE, "told to panic");
    case KID_LINGER:
        state->lingers = true;
        CHECK_OK(
            jzx_send_after(ctx->loop, ctx->self, (uint32_t)msg->u64, NULL, 0, KID_FINISH, NULL));
        return JZX_BEHAVIOR_OK;
    case KID_FINISH:
        state->lingers = false;
        if (state->deferred) {
            CHECK_OK(jzx_stop(ctx->loop, ctx->self));
        }
        return JZX_BEHAVIOR_OK;
    default:
        return JZX_BEHAVIOR_OK;
    }
}

static inline void kid_drop_arg(void *arg)
{
    ((kid *)arg)->drops++;
}

static inline void tree_on_stop(void *ctx, jzx_actor_id id, const char *name,
                                const jzx_reason *reason)
{
    tree *t = ctx;
    char word[96];
    snprintf(word, sizeof word, "%s:%s", name, jzx_reason_name(reason->kind));
    words_add(&t->ends, word);
    if (id == t->sup) {
        t->sup_end = *reason;
    }
}

static inline void tree_on_fail(void *ctx, jzx_actor_id id, const char *name,
                                const jzx_reason *reason)
{
    tree *t = ctx;
    char word[96];
    (void)id;
    snprintf(word, sizeof word, "%s:%s", name, jzx_reason_name(reason->kind));
    words_add(&t->fails, word);
    t->last_fail = *reason;
}

static inline void tree_on_restart(void *ctx, const jzx_restart_event *event)
{
    tree *t = ctx;
    char word[96];
    snprintf(word, sizeof word, "%s#%u", event->name, (unsigned)event->incarnation);
    words_add(&t->restarts, word);
}

static inline void tree_on_escalate(void *ctx, const jzx_escalation_event *event)
{
    tree *t = ctx;
    char word[160];
    if (t->escalations.text[0] == '\0') {
        t->cause = *event->cause;
    }
    snprintf(word, sizeof word, "%s:%s:%s", event->supervisor_name, jzx_reason_name(event->reason),
             event->child_name);
    words_add(&t->escalations, word);
}

static const jzx_observer tree_observer = {.on_actor_stop = tree_on_stop,
                                           .on_actor_fail = tree_on_fail,
                                           .on_restart = tree_on_restart,
                                           .on_escalate = tree_on_escalate};

/* The tree stays where it is: the observer writes into it. The seed decides who runs next. */
static inline void tree_open_seeded(tree *t, uint64_t seed)
{
    jzx_sim_opts sim = {.seed = seed};
    memset(t, 0, sizeof *t);
    t->r = rig_open_with(NULL, &sim);
    t->loop = t->r.loop;
    REQUIRE_OK(jzx_loop_set_observer(t->loop, &tree_observer, t));
}

static inline void tree_open(tree *t)
{
    tree_open_seeded(t, jzt_seed() | 1);
}

/* Destroys what is left, and checks that every state that was built has been released. */
static inline void tree_close(tree *t)
{
    rig_close(&t->r);
    while (t->kids != NULL) {
        kid *k = t->kids;
        CHECK_EQ(k->ups, k->deinits);
        t->kids = k->next;
        free(k);
    }
}

static inline kid *kid_new(tree *t, const char *id)
{
    kid *k = calloc(1, sizeof *k);
    REQUIRE(k != NULL);
    *k = (kid){.id = id, .t = t, .next = t->kids};
    t->kids = k;
    return k;
}

static inline jzx_child_spec kid_spec(kid *k, uint32_t mode)
{
    return (jzx_child_spec){.id = k->id,
                            .behavior = kid_behavior,
                            .init = kid_init,
                            .arg = k,
                            .deinit = kid_deinit,
                            .on_signal = kid_signal,
                            .mode = mode};
}

/* Until nothing is ready; hardly any time passes. */
static inline void tree_idle(tree *t)
{
    rig_idle(&t->r);
}

static inline void tree_pass(tree *t, uint64_t ms)
{
    REQUIRE_OK(jzx_kit_run(t->r.kit, ms));
    const char *wrong = jzx_testkit_check(t->loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
}

static inline uint64_t tree_ms(const tree *t)
{
    return jzx_sim_now(t->r.sim) / MS;
}

/* Makes the supervisor "sup" without waiting for it. */
static inline void tree_spawn(tree *t, const jzx_supervisor_spec *spec,
                              const jzx_child_spec *children, size_t count)
{
    jzx_supervisor_init init = {
        .name = "sup", .spec = spec, .children = children, .child_count = count};
    REQUIRE_OK(jzx_spawn_supervisor(t->loop, &init, &t->sup));
}

/* And runs until it and its children are up. */
static inline void tree_start(tree *t, const jzx_supervisor_spec *spec,
                              const jzx_child_spec *children, size_t count)
{
    tree_spawn(t, spec, children, count);
    REQUIRE_OK(jzx_loop_run_until_started(t->loop, t->sup));
    REQUIRE_EQ(jzx_actor_state(t->loop, t->sup), JZX_STATE_RUNNING);
}

/* Children a, b, c, ... of one mode, made and started. */
static inline void tree_start_kids(tree *t, const jzx_supervisor_spec *spec, kid **kids,
                                   const uint32_t *modes, size_t count)
{
    static const char *const ids[] = {"a", "b", "c", "d", "e", "f"};
    jzx_child_spec specs[COUNT_OF(ids)];
    REQUIRE(count <= COUNT_OF(ids));
    for (size_t i = 0; i < count; i++) {
        kids[i] = kid_new(t, ids[i]);
        specs[i] = kid_spec(kids[i], modes == NULL ? JZX_PERMANENT : modes[i]);
    }
    tree_start(t, spec, specs, count);
}

/* A dynamic supervisor whose children are kids; none yet. The first kid only lends its id. */
static inline void tree_start_dynamic(tree *t, const jzx_supervisor_spec *given, uint32_t mode,
                                      uint32_t shutdown_ms)
{
    jzx_supervisor_spec spec = given == NULL ? (jzx_supervisor_spec){0} : *given;
    jzx_child_spec child = kid_spec(&(kid){.id = "kid"}, mode);
    spec.strategy = JZX_DYNAMIC;
    child.arg = NULL;
    child.shutdown_ms = shutdown_ms;
    tree_start(t, &spec, &child, 1);
}

static inline kid *tree_add_dynamic(tree *t, const char *plan)
{
    kid *k = kid_new(t, "kid");
    k->plan = plan;
    REQUIRE_OK(jzx_supervisor_start_dynamic(t->loop, t->sup, k, &k->actor));
    return k;
}

static inline void kid_tell(const kid *k, uint32_t tag, uint64_t value)
{
    REQUIRE_OK(jzx_send_u64(k->t->loop, k->actor, value, tag));
}

/* Begins an end of the child that is not its supervisor's doing. */
static inline void kid_begin_end(const kid *k, uint32_t reason)
{
    switch (reason) {
    case JZX_REASON_NORMAL:
        kid_tell(k, KID_END, 0);
        break;
    case JZX_REASON_SHUTDOWN:
        CHECK_OK(jzx_stop(k->t->loop, k->actor));
        break;
    case JZX_REASON_KILLED:
        CHECK_OK(jzx_kill(k->t->loop, k->actor));
        break;
    case JZX_REASON_PANIC:
        kid_tell(k, KID_PANIC, 0);
        break;
    default:
        kid_tell(k, KID_FAIL, 0);
        break;
    }
}

static inline void kid_end(kid *k, uint32_t reason)
{
    kid_begin_end(k, reason);
    tree_idle(k->t);
}

static inline jzx_state kid_state_of(const kid *k)
{
    return jzx_actor_state(k->t->loop, k->actor);
}

static inline uint32_t kid_incarnation(const kid *k)
{
    return jzx_actor_incarnation(k->t->loop, k->actor);
}

/* It runs, in this incarnation of the id it always had, and nothing is left of its former lives. */
static inline void kid_check_life(int line, kid *k, jzx_actor_id id, uint32_t incarnation)
{
    jzt_check_eq(JZT_CHECK, k->id, line, "actor", "the id it had", (intmax_t)k->actor,
                 (intmax_t)id);
    jzt_check_eq(JZT_CHECK, k->id, line, "state", "RUNNING", kid_state_of(k), JZX_STATE_RUNNING);
    jzt_check_eq(JZT_CHECK, k->id, line, "incarnation", "as expected", kid_incarnation(k),
                 incarnation);
    if (kid_state_of(k) != JZX_STATE_RUNNING) {
        return;
    }
    uint32_t seen = k->seen;
    uint32_t handled = k->handled;
    kid_tell(k, KID_NOTE, 0);
    tree_idle(k->t);
    jzt_check_eq(JZT_CHECK, k->id, line, "handled", "one more", k->handled, handled + 1);
    jzt_check_eq(JZT_CHECK, k->id, line, "seen in this life", "one more", k->seen, seen + 1);
}
#define KID_CHECK_LIFE(k, id, incarnation) kid_check_life(__LINE__, (k), (id), (incarnation))

#define NO_CHILD UINT32_MAX

/* jzx_child_status of a child of `sup`, or NO_CHILD. */
static inline uint32_t tree_status(const tree *t, const char *id)
{
    jzx_child_info info = {0};
    jzx_err err = jzx_supervisor_child(t->loop, t->sup, id, &info);
    if (err == JZX_ERR_NO_SUCH_CHILD) {
        return NO_CHILD;
    }
    CHECK_OK(err);
    return info.status;
}

static inline jzx_child_info tree_child(const tree *t, const char *id)
{
    jzx_child_info info = {0};
    REQUIRE_OK(jzx_supervisor_child(t->loop, t->sup, id, &info));
    return info;
}

static inline void tree_check_counts(int line, const tree *t, uint32_t specs, uint32_t active,
                                     uint32_t supervisors, uint32_t workers)
{
    jzx_child_counts got = {0};
    jzt_check_ok(JZT_REQUIRE, __FILE__, line, "jzx_supervisor_count()",
                 jzx_supervisor_count(t->loop, t->sup, &got));
    jzt_check_eq(JZT_CHECK, "counts", line, "specs", "as expected", got.specs, specs);
    jzt_check_eq(JZT_CHECK, "counts", line, "active", "as expected", got.active, active);
    jzt_check_eq(JZT_CHECK, "counts", line, "supervisors", "as expected", got.supervisors,
                 supervisors);
    jzt_check_eq(JZT_CHECK, "counts", line, "workers", "as expected", got.workers, workers);
}
#define CHECK_COUNTS(t, specs, active, supervisors, workers)                                       \
    tree_check_counts(__LINE__, (t), (specs), (active), (supervisors), (workers))

/* The supervisor is gone for this reason, and with it everybody. */
static inline void tree_check_gone(int line, tree *t, uint32_t reason)
{
    jzt_check_eq(JZT_CHECK, "sup", line, "state", "TERMINATED", jzx_actor_state(t->loop, t->sup),
                 JZX_STATE_TERMINATED);
    jzt_check_str(JZT_CHECK, "sup", line, "reason", jzx_reason_name(t->sup_end.kind),
                  jzx_reason_name(reason));
    jzt_check_eq(JZT_CHECK, "sup", line, "live actors", "none", (intmax_t)rig_counters(&t->r).live,
                 0);
}
#define CHECK_GONE(t, reason) tree_check_gone(__LINE__, (t), (reason))

/* Stops the supervisor at once, within no more time than it needs when nobody is slow. */
static inline void tree_stop_now(tree *t)
{
    CHECK_OK(jzx_stop(t->loop, t->sup));
    tree_idle(t);
    CHECK_GONE(t, JZX_REASON_SHUTDOWN);
}

#endif
