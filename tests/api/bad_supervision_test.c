/* Goal: everything that is wrong with a supervisor, a child, a watch or a moment has its documented
 * error, and nothing is lost, changed or hung by it (R19, R36). Method: a good spec in which one
 * thing is spoiled at a time; the same verdict from check and from spawn; then calls on the wrong
 * kind of actor and at the wrong time, in virtual time. */
#include "refused.h"

#include <jzx/supervisor.h>

#include <math.h>
#include <stdlib.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { FAIL_NOW = 2 };

static jzx_behavior_result start_ok(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

/* The spec that is spoiled. Two children and a nested supervisor. */
typedef struct tree {
    jzx_supervisor_spec spec;
    jzx_child_spec child[2];
    jzx_supervisor_init init;
    jzx_supervisor_spec inner_spec;
    jzx_child_spec inner_child;
    jzx_supervisor_init inner;
} tree;

static void tree_make(tree *t)
{
    *t = (tree){0};
    t->inner_child = (jzx_child_spec){.id = "deep", .behavior = ignore, .init = start_ok};
    t->inner = (jzx_supervisor_init){
        .name = "inner", .spec = &t->inner_spec, .children = &t->inner_child, .child_count = 1};
    t->child[0] = (jzx_child_spec){.id = "one", .behavior = ignore, .init = start_ok};
    t->child[1] = (jzx_child_spec){.id = "two", .supervisor = &t->inner};
    t->init = (jzx_supervisor_init){
        .name = "top", .spec = &t->spec, .children = t->child, .child_count = 2};
}

/* Both ways in say the same, and neither leaves anything behind. */
static void refused_tree(fixture *f, int line, const tree *t, jzx_err want, const char *names)
{
    char why[256] = "unchanged";
    jzx_actor_id id = 77;
    jzx_err checked = jzx_supervisor_check(&t->init, why, sizeof why);
    jzt_check_str(JZT_CHECK, __FILE__, line, "check", jzx_err_name(checked), jzx_err_name(want));
    jzt_check_true(JZT_CHECK, __FILE__, line, "it says why", strlen(why) > 0);
    if (names != NULL && strstr(why, names) == NULL) {
        jzt_check_str(JZT_CHECK, __FILE__, line, "what it says", why, names);
    }
    refused_at(f, __FILE__, line, "spawn_supervisor", jzx_spawn_supervisor(f->loop, &t->init, &id),
               want, NOT_COUNTED);
    jzt_check_eq(JZT_CHECK, __FILE__, line, "id", "unchanged", (intmax_t)id, 77);
}

/* `spoil` changes the good tree `t`; `names` is a word that the sentence must have. */
#define SPOILED(f, spoil, want, names)                                                             \
    do {                                                                                           \
        tree t_;                                                                                   \
        tree_make(&t_);                                                                            \
        tree *t = &t_;                                                                             \
        spoil;                                                                                     \
        refused_tree(f, __LINE__, t, want, names);                                                 \
    } while (0)

static void test_a_good_tree_is_not_refused(void)
{
    fixture f;
    tree t;
    char why[64] = "unchanged";
    jzx_actor_id id = 0;
    fixture_open(&f);
    tree_make(&t);
    CHECK_OK(jzx_supervisor_check(&t.init, why, sizeof why));
    CHECK_STR(why, "");
    CHECK_OK(jzx_supervisor_check(&t.init, NULL, 0));
    REQUIRE_OK(jzx_spawn_supervisor(f.loop, &t.init, &id));
    CHECK_OK(jzx_loop_run_until_started(f.loop, id));
    jzx_child_counts counts;
    CHECK_OK(jzx_supervisor_count(f.loop, id, &counts));
    CHECK_EQ(counts.specs, 2);
    CHECK_EQ(counts.active, 2);
    CHECK_EQ(counts.supervisors, 1);
    fixture_close(&f);
}

static void test_bad_rules_are_refused_before_anything_starts(void)
{
    fixture f;
    fixture_open(&f);
    SPOILED(&f, t->spec.strategy = 4, JZX_ERR_BAD_SPEC, "strategy");
    SPOILED(&f, t->spec.action = JZX_ACTIONS, JZX_ERR_BAD_SPEC, "action");
    SPOILED(&f, t->spec.on_limit = 2, JZX_ERR_BAD_SPEC, "on_limit");
    SPOILED(&f, t->spec.auto_shutdown = 3, JZX_ERR_BAD_SPEC, "auto_shutdown");
    SPOILED(&f, t->spec.intensity = JZX_INTENSITY_MAX + 1, JZX_ERR_TOO_BIG, "intensity");
    SPOILED(&f, t->spec.intensity = JZX_INTENSITY_NEVER - 1, JZX_ERR_TOO_BIG, "intensity");
    SPOILED(&f, t->spec.backoff_factor = 0.5, JZX_ERR_BAD_SPEC, "backoff_factor");
    SPOILED(&f, t->spec.backoff_factor = -2, JZX_ERR_BAD_SPEC, "backoff_factor");
    SPOILED(&f, t->spec.backoff_factor = NAN, JZX_ERR_BAD_SPEC, "backoff_factor");
    SPOILED(&f, t->spec.backoff_jitter = -0.1, JZX_ERR_BAD_SPEC, "backoff_jitter");
    SPOILED(&f, t->spec.backoff_jitter = 1.01, JZX_ERR_BAD_SPEC, "backoff_jitter");
    SPOILED(&f, t->spec.backoff_jitter = NAN, JZX_ERR_BAD_SPEC, "backoff_jitter");
    SPOILED(&f, (t->spec.backoff_min_ms = 20, t->spec.backoff_max_ms = 10), JZX_ERR_BAD_SPEC,
            "backoff");
    SPOILED(&f, t->inner_spec.strategy = 99, JZX_ERR_BAD_SPEC, "strategy"); /* also deep down */
    fixture_close(&f);
}

static void test_bad_children_are_refused_by_name(void)
{
    static char long_id[JZX_CHILD_ID_MAX + 2];
    memset(long_id, 'x', sizeof long_id - 1);
    fixture f;
    fixture_open(&f);
    SPOILED(&f, t->child[0].id = NULL, JZX_ERR_BAD_SPEC, "id");
    SPOILED(&f, t->child[0].id = "", JZX_ERR_BAD_SPEC, "id");
    SPOILED(&f, t->child[0].id = long_id, JZX_ERR_TOO_BIG, "id");
    SPOILED(&f, t->child[1].id = "one", JZX_ERR_DUPLICATE_CHILD, "one");
    SPOILED(&f, t->child[0].behavior = NULL, JZX_ERR_BAD_SPEC, "one");
    SPOILED(&f, t->child[0].supervisor = &t->inner, JZX_ERR_BAD_SPEC, "one");
    SPOILED(&f, t->child[0].init = NULL, JZX_ERR_NOT_RESTARTABLE, "one");
    SPOILED(&f, t->inner_child.init = NULL, JZX_ERR_NOT_RESTARTABLE, "deep");
    SPOILED(&f, t->child[0].mode = 3, JZX_ERR_BAD_SPEC, "one");
    SPOILED(&f, t->child[0].flags = 0x8000, JZX_ERR_BAD_SPEC, "one");
    SPOILED(&f, t->child[0].full_policy = 3, JZX_ERR_BAD_SPEC, "one");
    SPOILED(&f, t->child[0].drain = 3, JZX_ERR_BAD_SPEC, "one");
    SPOILED(&f, t->child[0].drain = JZX_DRAIN_REDIRECT, JZX_ERR_BAD_SPEC, "one");
    SPOILED(&f, t->child[0].redirect_to = 99, JZX_ERR_BAD_SPEC, "one");
    SPOILED(&f, t->child[0].mailbox_cap = JZX_MAILBOX_CAP_MAX + 1, JZX_ERR_TOO_BIG, "one");
    SPOILED(&f, (t->child[0].mailbox_cap = 4, t->child[0].low_water = 5), JZX_ERR_BAD_SPEC, "one");
    SPOILED(&f, t->child[0].intensity = JZX_INTENSITY_MAX + 1, JZX_ERR_TOO_BIG, "one");
    SPOILED(&f, t->child[0].significant = 1, JZX_ERR_BAD_SPEC, "one"); /* permanent */
    SPOILED(&f, (t->child[0].significant = 1, t->child[0].mode = JZX_TRANSIENT), JZX_ERR_BAD_SPEC,
            "one"); /* there is no auto_shutdown */
    SPOILED(&f, t->init.children = NULL, JZX_ERR_BAD_SPEC, NULL);
    fixture_close(&f);
}

static void test_a_dynamic_supervisor_has_exactly_one_spec(void)
{
    fixture f;
    fixture_open(&f);
    SPOILED(&f, t->spec.strategy = JZX_DYNAMIC, JZX_ERR_BAD_SPEC, NULL);
    SPOILED(&f, (t->spec.strategy = JZX_DYNAMIC, t->init.child_count = 0), JZX_ERR_BAD_SPEC, NULL);
    SPOILED(&f,
            (t->spec.strategy = JZX_DYNAMIC, t->init.child_count = 1,
             t->spec.auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT),
            JZX_ERR_BAD_SPEC, NULL);
    fixture_close(&f);
}

static void test_zero_is_the_default_and_never_an_error(void)
{
    fixture f;
    tree t;
    jzx_actor_id id = 0;
    jzx_child_spec full;
    fixture_open(&f);
    tree_make(&t);
    t.init.spec = NULL;
    t.inner.child_count = 0; /* a supervisor without children is one that waits for some */
    t.inner.children = NULL;
    t.inner.name = NULL;
    REQUIRE_OK(jzx_spawn_supervisor(f.loop, &t.init, &id));
    CHECK_OK(jzx_loop_run_until_started(f.loop, id));
    CHECK_OK(jzx_supervisor_get_spec(f.loop, id, "one", &full));
    CHECK_EQ(full.shutdown_ms, 5000);
    CHECK_EQ(full.mailbox_cap > 0, 1);
    CHECK_OK(jzx_supervisor_get_spec(f.loop, id, "two", &full));
    CHECK_EQ(full.shutdown_ms, JZX_SHUTDOWN_INFINITE);
    fixture_close(&f);
}

/* A struct of today with a field of tomorrow behind it. */
#define NEWER(type)                                                                                \
    struct {                                                                                       \
        type known;                                                                                \
        uint64_t tail[2];                                                                          \
    }

static void test_specs_from_a_newer_header_are_refused_only_if_they_ask_for_something(void)
{
    fixture f;
    fixture_open(&f);
    for (uint64_t tail = 0; tail < 2; tail++) {
        jzx_err want = tail != 0 ? JZX_ERR_NEWER_STRUCT : JZX_OK;
        NEWER(jzx_supervisor_spec) spec = {.tail = {0, tail}};
        NEWER(jzx_child_spec)
        child[2] = {
            {.known = {.id = "a", .behavior = ignore, .init = start_ok}},
            {.known = {.id = "b", .behavior = ignore, .init = start_ok}, .tail = {tail, 0}}};
        NEWER(jzx_supervisor_init)
        init = {.known = {.spec = NULL, .children = &child[0].known, .child_count = 2}};
        jzx_supervisor_sizes sizes = {sizeof init, sizeof spec, sizeof child[0]};
        CHECK_EQ(jzx_supervisor_check_sized(&init.known, sizes, NULL, 0), want);
        init.known.child_count = 1;
        CHECK_OK(jzx_supervisor_check_sized(&init.known, sizes, NULL, 0));
        init.known.spec = &spec.known;
        CHECK_EQ(jzx_supervisor_check_sized(&init.known, sizes, NULL, 0), want);
        init.known.spec = NULL;
        init.tail[1] = tail;
        CHECK_EQ(jzx_supervisor_check_sized(&init.known, sizes, NULL, 0), want);
    }
    fixture_close(&f);
}

/* Every call on a supervisor, for one that is none, is gone or is of the other kind. */
static void no_admin(fixture *f, jzx_actor_id sup, jzx_err fixed, jzx_err dynamic, jzx_err both)
{
    jzx_child_spec spec = {.id = "new", .behavior = ignore, .init = start_ok};
    jzx_supervisor_spec rules = {0};
    jzx_child_info info = {.restarts = 77};
    jzx_child_counts counts = {.specs = 77};
    jzx_actor_id id = 77;
    REFUSED(f, jzx_supervisor_start_child(f->loop, sup, &spec, &id), fixed);
    REFUSED(f, jzx_supervisor_terminate_child(f->loop, sup, "one"), fixed);
    REFUSED(f, jzx_supervisor_restart_child(f->loop, sup, "one", &id), fixed);
    REFUSED(f, jzx_supervisor_delete_child(f->loop, sup, "one"), fixed);
    if (dynamic != JZX_OK) {
        REFUSED(f, jzx_supervisor_start_dynamic(f->loop, sup, NULL, &id), dynamic);
    }
    if (both != JZX_OK) {
        REFUSED(f, jzx_supervisor_terminate(f->loop, sup, f->id), both);
        REFUSED(f, jzx_supervisor_child(f->loop, sup, "one", &info), both);
        REFUSED(f, jzx_supervisor_count(f->loop, sup, &counts), both);
        REFUSED(f, jzx_supervisor_reconfigure(f->loop, sup, &rules), both);
        CHECK_EQ(jzx_supervisor_children(f->loop, sup, &info, 1), 0);
        CHECK_EQ(counts.specs, 77);
    }
    CHECK_EQ(id, 77);
    CHECK_EQ(info.restarts, 77);
}

static void test_calls_on_the_wrong_kind_of_actor_are_refused(void)
{
    fixture f;
    jzx_actor_id dynamic = 0, fixed = 0;
    tree t;
    fixture_open(&f);
    no_admin(&f, f.id, JZX_ERR_WRONG_SUPERVISOR, JZX_ERR_WRONG_SUPERVISOR,
             JZX_ERR_WRONG_SUPERVISOR);
    no_admin(&f, f.gone, JZX_ERR_NO_SUCH_ACTOR, JZX_ERR_NO_SUCH_ACTOR, JZX_ERR_NO_SUCH_ACTOR);
    no_admin(&f, JZX_NOBODY, JZX_ERR_NO_SUCH_ACTOR, JZX_ERR_NO_SUCH_ACTOR, JZX_ERR_NO_SUCH_ACTOR);
    tree_make(&t);
    t.spec.strategy = JZX_DYNAMIC;
    t.init.child_count = 1;
    REQUIRE_OK(jzx_spawn_supervisor(f.loop, &t.init, &dynamic));
    tree_make(&t);
    REQUIRE_OK(jzx_spawn_supervisor(f.loop, &t.init, &fixed));
    CHECK_OK(jzx_loop_run_until_started(f.loop, dynamic));
    CHECK_OK(jzx_loop_run_until_started(f.loop, fixed));
    CHECK_OK(jzx_loop_run_until_idle(f.loop));
    fixture_settled(&f);
    no_admin(&f, dynamic, JZX_ERR_WRONG_SUPERVISOR, JZX_OK, JZX_OK);
    REFUSED(&f, jzx_supervisor_start_dynamic(f.loop, fixed, NULL, NULL), JZX_ERR_WRONG_SUPERVISOR);
    REFUSED(&f, jzx_supervisor_terminate(f.loop, fixed, f.id), JZX_ERR_NO_SUCH_CHILD);
    REFUSED(&f, jzx_supervisor_terminate(f.loop, dynamic, f.id), JZX_ERR_NO_SUCH_CHILD);
    CHECK_OK(jzx_supervisor_terminate(f.loop, dynamic, f.gone)); /* gone is what was asked for */
    fixture_close(&f);
}

static void test_children_that_are_not_there_or_there_already_are_refused(void)
{
    fixture f;
    tree t;
    jzx_actor_id sup = 0, id = 77;
    jzx_child_info info;
    jzx_plan_step step;
    size_t steps = 77;
    fixture_open(&f);
    tree_make(&t);
    REQUIRE_OK(jzx_spawn_supervisor(f.loop, &t.init, &sup));
    CHECK_OK(jzx_loop_run_until_started(f.loop, sup));
    CHECK_OK(jzx_loop_run_until_idle(f.loop));
    fixture_settled(&f);
    jzx_err none = JZX_ERR_NO_SUCH_CHILD;
    REFUSED(&f, jzx_supervisor_terminate_child(f.loop, sup, "none"), none);
    REFUSED(&f, jzx_supervisor_terminate_child(f.loop, sup, ""), none);
    REFUSED(&f, jzx_supervisor_terminate_child(f.loop, sup, NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_supervisor_restart_child(f.loop, sup, "none", &id), none);
    REFUSED(&f, jzx_supervisor_delete_child(f.loop, sup, "On"), none);
    REFUSED(&f, jzx_supervisor_child(f.loop, sup, "one ", &info), none);
    REFUSED(&f, jzx_supervisor_plan(f.loop, sup, f.id, &step, 1, &steps), none);
    REFUSED(&f, jzx_supervisor_restart_child(f.loop, sup, "one", &id), JZX_ERR_CHILD_RUNNING);
    REFUSED(&f, jzx_supervisor_delete_child(f.loop, sup, "one"), JZX_ERR_CHILD_RUNNING);
    REFUSED(&f, jzx_supervisor_start_child(f.loop, sup, &t.child[0], &id), JZX_ERR_CHILD_RUNNING);
    t.child[0].init = NULL;
    t.child[0].id = "three";
    REFUSED(&f, jzx_supervisor_start_child(f.loop, sup, &t.child[0], &id), JZX_ERR_NOT_RESTARTABLE);
    REFUSED(&f, jzx_supervisor_start_child(f.loop, sup, NULL, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(id, 77);
    CHECK_EQ(steps, 77);
    CHECK_OK(jzx_supervisor_terminate_child(f.loop, sup, "one"));
    CHECK_OK(jzx_loop_run_until_idle(f.loop));
    CHECK_OK(jzx_supervisor_terminate_child(f.loop, sup, "one")); /* down already */
    fixture_settled(&f);
    t.child[0] = (jzx_child_spec){.id = "one", .behavior = ignore, .init = start_ok};
    REFUSED(&f, jzx_supervisor_start_child(f.loop, sup, &t.child[0], &id), JZX_ERR_CHILD_PRESENT);
    CHECK_OK(jzx_supervisor_delete_child(f.loop, sup, "one"));
    CHECK_OK(jzx_supervisor_start_child(f.loop, sup, &t.child[0], &id));
    fixture_close(&f);
}

/* Children that misbehave in time. */
static uint64_t starts;
static uint64_t fails_from; /* which start fails, and all after it */

static jzx_behavior_result start_for_a_while(jzx_context *ctx, void *arg)
{
    (void)arg;
    ctx->state = NULL;
    starts++;
    return fails_from != 0 && starts >= fails_from ? jzx_fail(ctx, 3, "no more") : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result fail_if_told(jzx_context *ctx, const jzx_message *msg)
{
    return msg->tag == FAIL_NOW ? jzx_fail(ctx, 1, NULL) : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result never_stop(jzx_context *ctx, const struct jzx_signal *signal)
{
    (void)ctx;
    return signal->kind == JZX_SIGNAL_PRE_STOP ? JZX_BEHAVIOR_DEFER : JZX_BEHAVIOR_OK;
}

static jzx_action say_nonsense(void *ctx, const jzx_failure *failure)
{
    (void)failure;
    ++*(uint64_t *)ctx;
    return (jzx_action)0x7FFFFFFF;
}

typedef struct world {
    jzx_kit *kit;
    jzx_loop *loop;
    jzx_actor_id sup;
    jzx_actor_id child;
} world;

static void world_open(world *w, const jzx_supervisor_spec *rules, const jzx_child_spec *child)
{
    *w = (world){0};
    starts = 0;
    jzx_supervisor_init init = {.name = "s", .spec = rules, .children = child, .child_count = 1};
    REQUIRE_OK(jzx_kit_open(NULL, &w->kit));
    w->loop = w->kit->loop;
    REQUIRE_OK(jzx_spawn_supervisor(w->loop, &init, &w->sup));
    REQUIRE_OK(jzx_loop_run_until_started(w->loop, w->sup));
    jzx_child_info info;
    REQUIRE_OK(jzx_supervisor_child(w->loop, w->sup, child->id, &info));
    w->child = info.actor;
}

static uint64_t live(const world *w)
{
    jzx_counters now;
    jzx_loop_counters(w->loop, &now);
    return now.live;
}

static void test_an_init_that_fails_on_the_third_restart_runs_into_the_limit(void)
{
    world w;
    jzx_supervisor_spec rules = {.intensity = 5};
    jzx_child_spec child = {.id = "c", .behavior = fail_if_told, .init = start_for_a_while};
    fails_from = 4;
    world_open(&w, &rules, &child);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(live(&w), 2);
        REQUIRE_OK(jzx_send_u64(w.loop, w.child, 0, FAIL_NOW));
        CHECK_OK(jzx_kit_settle(w.kit));
    }
    CHECK_EQ(live(&w), 0); /* three that worked, two more that failed to start, then it gave up */
    CHECK_EQ(starts, 1 + 5);
    CHECK_STR(jzx_kit_close(w.kit), NULL);
}

static void test_a_child_that_never_stops_is_ended_in_its_time(void)
{
    for (int by_terminate = 0; by_terminate < 2; by_terminate++) {
        world w;
        jzx_child_spec child = {.id = "c",
                                .behavior = fail_if_told,
                                .init = start_for_a_while,
                                .on_signal = never_stop,
                                .shutdown_ms = 700};
        fails_from = 0;
        world_open(&w, NULL, &child);
        uint64_t begin = jzx_sim_now(w.kit->sim);
        CHECK_OK(by_terminate ? jzx_supervisor_terminate_child(w.loop, w.sup, "c")
                              : jzx_stop(w.loop, w.sup));
        CHECK_OK(jzx_kit_run(w.kit, 600));
        CHECK_EQ(live(&w), 2);
        if (!by_terminate) {
            CHECK_EQ(jzx_supervisor_start_child(w.loop, w.sup, &child, NULL), JZX_ERR_STOPPING);
            CHECK_EQ(jzx_supervisor_terminate_child(w.loop, w.sup, "c"), JZX_ERR_STOPPING);
        }
        CHECK_OK(jzx_kit_run(w.kit, 150));
        CHECK_EQ(live(&w), by_terminate);
        CHECK(jzx_sim_now(w.kit->sim) - begin < 800u * 1000000u);
        CHECK_STR(jzx_kit_close(w.kit), NULL);
    }
}

static void test_a_decider_that_returns_nonsense_ends_the_supervisor(void)
{
    world w;
    uint64_t asked = 0;
    jzx_supervisor_spec rules = {.intensity = 5, .decide = say_nonsense, .decide_ctx = &asked};
    jzx_child_spec child = {.id = "c", .behavior = fail_if_told, .init = start_for_a_while};
    fails_from = 0;
    world_open(&w, &rules, &child);
    REQUIRE_OK(jzx_send_u64(w.loop, w.child, 0, FAIL_NOW));
    CHECK_OK(jzx_kit_settle(w.kit));
    CHECK_EQ(asked, 1);
    CHECK_EQ(starts, 1);
    CHECK_EQ(live(&w), 0);
    CHECK_STR(jzx_kit_close(w.kit), NULL);
}

static void test_a_supervisor_that_has_not_started_yet_is_busy(void)
{
    jzx_kit *kit = NULL;
    tree t;
    jzx_actor_id sup = 0;
    tree_make(&t);
    REQUIRE_OK(jzx_kit_open(NULL, &kit));
    REQUIRE_OK(jzx_spawn_supervisor(kit->loop, &t.init, &sup));
    CHECK(jzx_actor_state(kit->loop, sup) != JZX_STATE_RUNNING);
    t.child[0].id = "new";
    CHECK_EQ(jzx_supervisor_start_child(kit->loop, sup, &t.child[0], NULL), JZX_ERR_BUSY);
    CHECK_EQ(jzx_supervisor_terminate_child(kit->loop, sup, "one"), JZX_ERR_BUSY);
    CHECK_OK(jzx_loop_run_until_started(kit->loop, sup));
    CHECK_OK(jzx_supervisor_start_child(kit->loop, sup, &t.child[0], NULL));
    CHECK_OK(jzx_stop(kit->loop, sup));
    CHECK_EQ(jzx_supervisor_delete_child(kit->loop, sup, "one"), JZX_ERR_STOPPING);
    CHECK_OK(jzx_kit_settle(kit));
    CHECK_EQ(jzx_supervisor_delete_child(kit->loop, sup, "one"), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

/* Calls that belong inside an actor. */
static jzx_behavior_result watch_badly(jzx_context *ctx, const jzx_message *msg)
{
    jzx_watch_ref ref = 77;
    jzx_actor_id other = msg->u64;
    jzx_supervisor_spec rules = {.strategy = JZX_DYNAMIC};
    CHECK_EQ(jzx_watch(ctx->loop, ctx->self, 0, &ref), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_watch(ctx->loop, JZX_NOBODY, 0, &ref), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_watch(ctx->loop, other, 0x2, &ref), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_link(ctx->loop, ctx->self), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_link(ctx->loop, JZX_NOBODY), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_unwatch(ctx->loop, 12345), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_set_child_policy(ctx, &rules), JZX_ERR_BAD_SPEC);
    rules = (jzx_supervisor_spec){.auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT};
    CHECK_EQ(jzx_set_child_policy(ctx, &rules), JZX_ERR_BAD_SPEC);
    rules = (jzx_supervisor_spec){.intensity = JZX_INTENSITY_MAX + 1};
    CHECK_EQ(jzx_set_child_policy(ctx, &rules), JZX_ERR_TOO_BIG);
    jzx_spawn_opts opts = {.behavior = ignore, .flags = 0x40000000u};
    CHECK_EQ(jzx_spawn(ctx->loop, &opts, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(ref, 77);
    ctx->state = ctx; /* it came this far */
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result note_arrival(jzx_context *ctx, const jzx_message *msg)
{
    uint64_t *arrived = ctx->state;
    jzx_behavior_result result = watch_badly(ctx, msg);
    *arrived = ctx->state == (void *)ctx ? 1 : 0;
    ctx->state = arrived;
    return result;
}

static void test_watches_links_and_policies_are_refused_where_they_make_no_sense(void)
{
    fixture f;
    jzx_supervisor_spec rules = {0};
    uint64_t arrived = 0;
    jzx_actor_id id = 0;
    fixture_open(&f);
    REFUSED(&f, jzx_watch(f.loop, f.id, 0, NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_watch(NULL, f.id, 0, NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_link(f.loop, f.id), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_unlink(f.loop, f.id), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_trap_exits(NULL, 1), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_set_child_policy(NULL, &rules), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_kill(f.loop, f.gone), JZX_ERR_NO_SUCH_ACTOR);
    REFUSED(&f, jzx_kill(NULL, f.id), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_loop_begin_shutdown(NULL, 0), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_spawn_supervisor(f.loop, NULL, NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_dead_letters_subscribe(f.loop), JZX_ERR_INVALID_ARG);
    jzx_spawn_opts opts = {.behavior = note_arrival, .state = &arrived};
    REQUIRE_OK(jzx_spawn(f.loop, &opts, &id));
    REQUIRE_OK(jzx_send_u64(f.loop, id, f.id, TAG));
    CHECK_OK(jzx_loop_run_until_idle(f.loop));
    CHECK_EQ(arrived, 1);
    fixture_close(&f);
}

static const jzt_test tests[] = {
    {"a_good_tree_is_not_refused", test_a_good_tree_is_not_refused},
    {"bad_rules_are_refused_before_anything_starts",
     test_bad_rules_are_refused_before_anything_starts},
    {"bad_children_are_refused_by_name", test_bad_children_are_refused_by_name},
    {"a_dynamic_supervisor_has_exactly_one_spec", test_a_dynamic_supervisor_has_exactly_one_spec},
    {"zero_is_the_default_and_never_an_error", test_zero_is_the_default_and_never_an_error},
    {"specs_from_a_newer_header_are_refused_only_if_they_ask_for_something",
     test_specs_from_a_newer_header_are_refused_only_if_they_ask_for_something},
    {"calls_on_the_wrong_kind_of_actor_are_refused",
     test_calls_on_the_wrong_kind_of_actor_are_refused},
    {"children_that_are_not_there_or_there_already_are_refused",
     test_children_that_are_not_there_or_there_already_are_refused},
    {"an_init_that_fails_on_the_third_restart_runs_into_the_limit",
     test_an_init_that_fails_on_the_third_restart_runs_into_the_limit},
    {"a_child_that_never_stops_is_ended_in_its_time",
     test_a_child_that_never_stops_is_ended_in_its_time},
    {"a_decider_that_returns_nonsense_ends_the_supervisor",
     test_a_decider_that_returns_nonsense_ends_the_supervisor},
    {"a_supervisor_that_has_not_started_yet_is_busy",
     test_a_supervisor_that_has_not_started_yet_is_busy},
    {"watches_links_and_policies_are_refused_where_they_make_no_sense",
     test_watches_links_and_policies_are_refused_where_they_make_no_sense},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
