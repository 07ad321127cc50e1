/* Goal: what jzx_supervisor_plan() says is what then happens, and nothing else; children that were
 * down come back with their group; a supervisor that restarts begins with its own specs; stops that
 * are deferred or fail end well (R3, R16, R18, R19). Method: simulation; ask for the plan, let the
 * child fail, and compare the steps with the order in which states are released and built. */
#include "sup_fixture.h"

#define HOUR_MS (3600 * 1000)
enum { STEPS_MAX = 16 };

/* A plan, and what has to be seen if it is true. */
typedef struct foresight {
    words text; /* restart:a stop:c wait:50 start:a */
    words life; /* -a -c +a, as tree.life */
    words gone; /* who ends, as names */
    uint64_t wait_ms;
} foresight;

static void add_named(words *w, const char *sign, const char *name)
{
    char word[96];
    snprintf(word, sizeof word, "%s%s", sign, name);
    words_add(w, word);
}

static void foresee_step(foresight *f, const jzx_plan_step *step)
{
    char word[96];
    if (step->what == JZX_PLAN_WAIT) {
        snprintf(word, sizeof word, "wait:%u", (unsigned)step->delay_ms);
        f->wait_ms += step->delay_ms;
    } else {
        snprintf(word, sizeof word, "%s%s%s", jzx_plan_name(step->what),
                 step->child_id == NULL ? "" : ":", step->child_id == NULL ? "" : step->child_id);
        CHECK_EQ(step->delay_ms, 0);
    }
    words_add(&f->text, word);
    switch (step->what) {
    case JZX_PLAN_END:
        words_add(&f->gone, step->child_id);
        add_named(&f->life, "-", step->child_id);
        break;
    case JZX_PLAN_RESTART:
    case JZX_PLAN_STOP:
        add_named(&f->life, "-", step->child_id);
        break;
    case JZX_PLAN_START:
        add_named(&f->life, "+", step->child_id);
        break;
    default:
        CHECK(step->child_id == NULL);
        CHECK_EQ(step->actor, JZX_NOBODY);
        break;
    }
}

/* The plan for a failure of this actor, which must name the actors that are there now. */
static void foresee(tree *t, jzx_actor_id sup, jzx_actor_id child, foresight *f)
{
    jzx_plan_step steps[STEPS_MAX];
    size_t count = 0;
    memset(f, 0, sizeof *f);
    REQUIRE_OK(jzx_supervisor_plan(t->loop, sup, child, steps, STEPS_MAX, &count));
    REQUIRE(count <= STEPS_MAX);
    for (size_t i = 0; i < count; i++) {
        foresee_step(f, &steps[i]);
        jzx_child_info info = {0};
        if (steps[i].child_id != NULL) { /* those of a dynamic supervisor have no id of their own */
            jzx_err err = jzx_supervisor_child(t->loop, sup, steps[i].child_id, &info);
            CHECK(err == JZX_ERR_WRONG_SUPERVISOR || steps[i].actor == info.actor);
        }
    }
    if (count > 0 && (steps[0].what == JZX_PLAN_GIVE_UP || steps[0].what == JZX_PLAN_ESCALATE)) {
        words_add(&f->gone, "sup");
    }
}

/* "a:shutdown b:failed" without the reasons. */
static void names_only(const char *ends, words *out)
{
    char name[96];
    out->text[0] = '\0';
    for (const char *at = ends; *at != '\0'; at += strspn(at, " ")) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ":"), at);
        words_add(out, name);
        at += strcspn(at, " ");
    }
}

/* Asks what a failure of the child would lead to, lets it fail, and compares. */
static void check_comes_true(int line, tree *t, kid *k, const char *text)
{
    foresight f;
    words gone;
    foresee(t, t->sup, k->me.id, &f);
    jzt_check_str(JZT_CHECK, __FILE__, line, "plan", f.text.text, text);
    (void)words_take(&t->life);
    (void)words_take(&t->ends);
    uint32_t inits = k->me.inits;
    uint64_t before = jzx_sim_now(t->r.sim);
    kid_end(k, JZX_REASON_FAILED);
    if (f.wait_ms > 0) {
        tree_pass(t, f.wait_ms - 1);
        jzt_check_eq(JZT_CHECK, __FILE__, line, "inits", "none yet", k->me.inits, inits);
        tree_pass(t, 10);
        REQUIRE(inits < KID_TIMES);
        int64_t waited = (int64_t)((k->at_ns[inits] - before) / MS);
        jzt_check_eq(JZT_CHECK, __FILE__, line, "waited", "wait", waited, (int64_t)f.wait_ms);
    }
    jzt_check_str(JZT_CHECK, __FILE__, line, "life", words_take(&t->life), f.life.text);
    names_only(words_take(&t->ends), &gone);
    jzt_check_str(JZT_CHECK, __FILE__, line, "ends", gone.text, f.gone.text);
}
#define CHECK_COMES_TRUE(t, k, text) check_comes_true(__LINE__, (t), (k), (text))

static void test_a_plan_is_what_then_happens_R19(void)
{
    enum { P = JZX_PERMANENT, T = JZX_TRANSIENT, Z = JZX_TEMPORARY };
    static const struct {
        uint32_t strategy;
        uint32_t modes[3];
        size_t which;
        const char *plan;
    } cases[] = {
        {JZX_ONE_FOR_ONE, {P, P, P}, 1, "restart:b start:b"},
        {JZX_ONE_FOR_ONE, {P, T, P}, 1, "restart:b start:b"},
        {JZX_ONE_FOR_ONE, {P, Z, P}, 1, "end:b"},
        {JZX_ONE_FOR_ALL, {P, P, P}, 0, "restart:a stop:c stop:b start:a start:b start:c"},
        {JZX_ONE_FOR_ALL, {P, P, P}, 1, "restart:b stop:c stop:a start:a start:b start:c"},
        {JZX_ONE_FOR_ALL, {T, P, T}, 2, "restart:c stop:b stop:a start:a start:b start:c"},
        {JZX_ONE_FOR_ALL, {P, Z, P}, 0, "restart:a stop:c end:b start:a start:c"},
        {JZX_ONE_FOR_ALL, {Z, P, Z}, 1, "restart:b end:c end:a start:b"},
        {JZX_ONE_FOR_ALL, {P, Z, P}, 1, "end:b"},
        {JZX_REST_FOR_ONE, {P, P, P}, 0, "restart:a stop:c stop:b start:a start:b start:c"},
        {JZX_REST_FOR_ONE, {P, T, P}, 1, "restart:b stop:c start:b start:c"},
        {JZX_REST_FOR_ONE, {P, P, P}, 2, "restart:c start:c"},
        {JZX_REST_FOR_ONE, {P, T, Z}, 1, "restart:b end:c start:b"},
        {JZX_REST_FOR_ONE, {P, P, Z}, 2, "end:c"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (uint64_t seed = 1; seed <= 5; seed++) {
            tree t;
            kid *kids[3];
            jzx_supervisor_spec spec = {.strategy = cases[i].strategy};
            tree_open_seeded(&t, jzt_seed() + seed);
            tree_start_kids(&t, &spec, kids, cases[i].modes, 3);
            CHECK_COMES_TRUE(&t, kids[cases[i].which], cases[i].plan);
            CHECK_EQ(jzx_actor_state(t.loop, t.sup), JZX_STATE_RUNNING);
            tree_close(&t);
        }
    }
}

static void test_a_plan_at_the_limit_gives_up_R19(void)
{
    for (uint32_t strategy = JZX_ONE_FOR_ONE; strategy <= JZX_REST_FOR_ONE; strategy++) {
        for (size_t which = 0; which < 3; which++) {
            tree t;
            kid *kids[3];
            jzx_supervisor_spec spec = {.strategy = strategy, .period_ms = HOUR_MS};
            tree_open(&t);
            tree_start_kids(&t, &spec, kids, NULL, 3);
            kid_end(kids[1], JZX_REASON_FAILED); /* the only one that is allowed */
            CHECK_COMES_TRUE(&t, kids[which], "give_up end:c end:b end:a");
            CHECK_GONE(&t, JZX_REASON_GAVE_UP);
            tree_close(&t);
        }
    }
}

/* Limits that end only the child, and a child's own budget. */
static void test_a_plan_knows_both_limits_R19(void)
{
    tree t;
    kid *kids[2];
    jzx_supervisor_spec spec = {.on_limit = JZX_LIMIT_STOP_CHILD, .period_ms = 1000};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 2);
    CHECK_COMES_TRUE(&t, kids[0], "restart:a start:a");
    CHECK_COMES_TRUE(&t, kids[1], "end:b");
    tree_pass(&t, 1100); /* the window slides, and so does the plan */
    CHECK_COMES_TRUE(&t, kids[0], "restart:a start:a");
    tree_close(&t);

    tree_open(&t);
    kids[0] = kid_new(&t, "a");
    kids[1] = kid_new(&t, "b");
    jzx_child_spec specs[] = {kid_spec(kids[0], JZX_PERMANENT), kid_spec(kids[1], JZX_PERMANENT)};
    specs[0].intensity = 1;
    specs[0].period_ms = HOUR_MS;
    spec = (jzx_supervisor_spec){.intensity = 100};
    tree_start(&t, &spec, specs, 2);
    CHECK_COMES_TRUE(&t, kids[0], "restart:a start:a");
    CHECK_COMES_TRUE(&t, kids[1], "restart:b start:b");
    CHECK_COMES_TRUE(&t, kids[1], "restart:b start:b");
    CHECK_COMES_TRUE(&t, kids[0], "give_up end:b end:a");
    tree_close(&t);
}

static void test_a_plan_says_how_long_it_waits_R19(void)
{
    static const char *const one[] = {"restart:b wait:50 start:b", "restart:b wait:100 start:b",
                                      "restart:b wait:150 start:b", "restart:b wait:150 start:b"};
    tree t;
    kid *kids[3];
    jzx_supervisor_spec spec = {
        .intensity = 100, .backoff_min_ms = 50, .backoff_max_ms = 150, .backoff_reset_ms = 10000};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 3);
    for (size_t i = 0; i < COUNT_OF(one); i++) {
        CHECK_COMES_TRUE(&t, kids[1], one[i]);
    }
    CHECK_COMES_TRUE(&t, kids[0], "restart:a wait:50 start:a"); /* each counts its own failures */
    tree_pass(&t, 10001);
    CHECK_COMES_TRUE(&t, kids[1], one[0]); /* it was quiet for long enough */
    tree_close(&t);

    spec.strategy = JZX_REST_FOR_ONE;
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 3);
    CHECK_COMES_TRUE(&t, kids[1], "restart:b stop:c wait:50 start:b start:c");
    CHECK_COMES_TRUE(&t, kids[1], "restart:b stop:c wait:100 start:b start:c");
    tree_close(&t);
}

static void test_a_plan_follows_the_action_R19(void)
{
    static const struct {
        uint32_t action;
        const char *plan;
        jzx_state sup;
    } cases[] = {{JZX_ACTION_RESUME, "", JZX_STATE_RUNNING},
                 {JZX_ACTION_STOP, "end:b", JZX_STATE_RUNNING},
                 {JZX_ACTION_ESCALATE, "escalate end:c end:b end:a", JZX_STATE_TERMINATED}};
    for (uint32_t strategy = JZX_ONE_FOR_ONE; strategy <= JZX_REST_FOR_ONE; strategy++) {
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            tree t;
            kid *kids[3];
            jzx_supervisor_spec spec = {.strategy = strategy, .action = cases[i].action};
            tree_open(&t);
            tree_start_kids(&t, &spec, kids, NULL, 3);
            bool all = strategy == JZX_ONE_FOR_ALL && cases[i].action == JZX_ACTION_STOP;
            CHECK_COMES_TRUE(&t, kids[1], all ? "end:b end:c end:a" : cases[i].plan);
            CHECK_EQ(jzx_actor_state(t.loop, t.sup), cases[i].sup);
            tree_close(&t);
        }
    }
}

static jzx_action decide_to_escalate(void *ctx, const jzx_failure *failure)
{
    (void)failure;
    ++*(unsigned *)ctx;
    return JZX_ACTION_ESCALATE;
}

/* Asked a hundred times, the plan stays the same, and everything is as if it had not been asked. */
static void test_a_plan_changes_nothing_R19(void)
{
    tree t;
    kid *kids[3];
    unsigned asked = 0;
    jzx_supervisor_spec spec = {.strategy = JZX_ONE_FOR_ALL,
                                .backoff_min_ms = 20,
                                .backoff_jitter = 0.5,
                                .decide = decide_to_escalate,
                                .decide_ctx = &asked};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 3);
    (void)words_take(&t.life);
    for (int i = 0; i < 100; i++) {
        foresight f;
        foresee(&t, t.sup, kids[1]->me.id, &f);
        CHECK_STR(f.life.text, "-b -c -a +a +b +c");
        CHECK(f.wait_ms >= 19 && f.wait_ms <= 20); /* the middle of 10 to 30 */
    }
    tree_pass(&t, 1000);
    jzx_child_info b = tree_child(&t, "b");
    CHECK_EQ(asked, 0);
    CHECK_STR(t.life.text, "");
    CHECK_STR(t.fails.text, "");
    CHECK_STR(t.asked.text, "");
    CHECK_EQ(b.restarts + b.attempt + b.delay_ms, 0);
    for (size_t i = 0; i < 3; i++) {
        KID_CHECK_LIFE(kids[i], kids[i]->me.id, 1);
    }
    spec.decide = NULL;
    spec.backoff_jitter = 0;
    REQUIRE_OK(jzx_supervisor_reconfigure(t.loop, t.sup, &spec));
    /* No restart was spent, and the backoff begins at its minimum. */
    CHECK_COMES_TRUE(&t, kids[1], "restart:b stop:c stop:a wait:20 start:a start:b start:c");
    tree_close(&t);
}

static void test_a_plan_that_is_too_long_counts_on_R19(void)
{
    tree t;
    kid *kids[3];
    jzx_supervisor_spec spec = {.strategy = JZX_ONE_FOR_ALL};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 3);
    for (size_t cap = 0; cap <= 7; cap++) {
        jzx_plan_step steps[8];
        size_t count = 0;
        memset(steps, 0xee, sizeof steps);
        REQUIRE_OK(jzx_supervisor_plan(t.loop, t.sup, kids[0]->me.id, cap == 0 ? NULL : steps, cap,
                                       &count));
        CHECK_EQ(count, 6);
        for (size_t i = 0; i < COUNT_OF(steps); i++) {
            CHECK_EQ(steps[i].what <= JZX_PLAN_ESCALATE, i < cap && i < count);
        }
    }
    tree_close(&t);
}

static void test_a_plan_for_a_dynamic_child_R19(void)
{
    tree t;
    jzx_supervisor_spec spec = {.intensity = 1};
    tree_open(&t);
    tree_start_dynamic(&t, &spec, JZX_PERMANENT, 0);
    kid *kids[3];
    for (size_t i = 0; i < 3; i++) {
        kids[i] = tree_add_dynamic(&t, NULL);
    }
    tree_idle(&t);
    jzx_plan_step step;
    size_t count = 0;
    REQUIRE_OK(jzx_supervisor_plan(t.loop, t.sup, kids[1]->me.id, &step, 1, &count));
    CHECK_EQ(step.actor, kids[1]->me.id); /* the ids are all the same: the actor counts */
    CHECK_COMES_TRUE(&t, kids[1], "restart:kid start:kid");
    CHECK_EQ(kids[1]->me.inits, 2);
    CHECK_COMES_TRUE(&t, kids[0], "give_up end:kid end:kid end:kid");
    tree_close(&t);
}

/* A plan ends at its own supervisor; a supervisor is a child like any other in its parent's. */
static void test_a_plan_is_of_one_level_R19(void)
{
    tree t;
    tree_open(&t);
    kid *low[] = {kid_new(&t, "x"), kid_new(&t, "y")};
    kid *last = kid_new(&t, "c");
    jzx_supervisor_spec all = {.strategy = JZX_ONE_FOR_ALL, .intensity = JZX_INTENSITY_NEVER};
    jzx_child_spec below[] = {kid_spec(low[0], JZX_PERMANENT), kid_spec(low[1], JZX_PERMANENT)};
    jzx_supervisor_init inner = {.spec = &all, .children = below, .child_count = 2};
    jzx_child_spec specs[] = {{.id = "b", .supervisor = &inner}, kid_spec(last, JZX_PERMANENT)};
    jzx_supervisor_spec rest = {.strategy = JZX_REST_FOR_ONE};
    foresight f;
    tree_start(&t, &rest, specs, 2);
    jzx_actor_id b = tree_child(&t, "b").actor;
    foresee(&t, t.sup, b, &f);
    CHECK_STR(f.text.text, "restart:b stop:c start:b start:c");
    foresee(&t, b, low[0]->me.id, &f);
    CHECK_STR(f.text.text, "give_up end:y end:x");
    (void)words_take(&t.life);
    kid_end(low[0], JZX_REASON_FAILED); /* b gives up, and both plans come true */
    CHECK_STR(words_take(&t.life), "-y -x -c +x +y +c");
    CHECK_STR(words_take(&t.restarts), "b#2 c#2");
    CHECK_STR(words_take(&t.escalations), "b:gave_up:x");
    tree_close(&t);
}

static void test_a_plan_is_for_own_children_only_R19(void)
{
    tree t;
    tree_open(&t);
    kid *x = kid_new(&t, "x");
    kid *a = kid_new(&t, "a");
    jzx_child_spec below = kid_spec(x, JZX_PERMANENT);
    jzx_supervisor_init inner = {.children = &below, .child_count = 1};
    jzx_child_spec specs[] = {kid_spec(a, JZX_PERMANENT), {.id = "b", .supervisor = &inner}};
    tree_start(&t, NULL, specs, 2);
    jzx_plan_step step = {.what = 99};
    size_t count = 77;
    CHECK_EQ(jzx_supervisor_plan(t.loop, JZX_NOBODY, a->me.id, &step, 1, &count),
             JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_supervisor_plan(t.loop, a->me.id, a->me.id, &step, 1, &count),
             JZX_ERR_WRONG_SUPERVISOR);
    const jzx_actor_id strangers[] = {JZX_NOBODY, t.sup, x->me.id}; /* x is a grandchild */
    for (size_t i = 0; i < COUNT_OF(strangers); i++) {
        CHECK_EQ(jzx_supervisor_plan(t.loop, t.sup, strangers[i], &step, 1, &count),
                 JZX_ERR_NO_SUCH_CHILD);
    }
    jzx_actor_id was = a->me.id;
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "a"));
    tree_idle(&t);
    CHECK_EQ(jzx_supervisor_plan(t.loop, t.sup, was, &step, 1, &count), JZX_ERR_NO_SUCH_CHILD);
    CHECK_EQ(jzx_supervisor_plan(t.loop, t.sup, x->me.id, NULL, 1, &count), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_supervisor_plan(t.loop, t.sup, x->me.id, &step, 1, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(step.what, 99);
    CHECK_EQ(count, 77);
    tree_close(&t);
}

/* As in OTP: what is down but has a spec is started when its group is, as a new actor. */
static void test_who_is_down_starts_with_its_group_R19(void)
{
    for (uint32_t strategy = JZX_ONE_FOR_ALL; strategy <= JZX_REST_FOR_ONE; strategy++) {
        static const uint32_t modes[] = {JZX_PERMANENT, JZX_PERMANENT, JZX_TRANSIENT, JZX_TEMPORARY,
                                         JZX_TEMPORARY};
        tree t;
        kid *kids[5];
        jzx_supervisor_spec spec = {.strategy = strategy};
        tree_open(&t);
        tree_start_kids(&t, &spec, kids, modes, 5);
        jzx_actor_id ids[] = {kids[0]->me.id, kids[1]->me.id, kids[2]->me.id};
        CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "b"));
        kid_end(kids[2], JZX_REASON_NORMAL);
        kid_end(kids[3], JZX_REASON_NORMAL);
        CHECK_EQ(tree_status(&t, "d"), NO_CHILD);
        CHECK_COMES_TRUE(&t, kids[0], "restart:a end:e start:a start:b start:c");
        KID_CHECK_LIFE(kids[0], ids[0], 2);
        for (size_t i = 1; i < 3; i++) {
            CHECK(kids[i]->me.id != ids[i]);
            KID_CHECK_LIFE(kids[i], kids[i]->me.id, 1);
        }
        CHECK_EQ(kids[3]->me.inits, 1); /* temporary: forgotten */
        CHECK_EQ(kids[4]->me.inits, 1);
        CHECK_EQ(tree_status(&t, "e"), NO_CHILD);
        tree_close(&t);
    }
}

/* What is down before the child that failed is not of its group. */
static void test_who_is_down_elsewhere_stays_down_R19(void)
{
    for (uint32_t strategy = JZX_ONE_FOR_ONE; strategy <= JZX_REST_FOR_ONE; strategy++) {
        tree t;
        kid *kids[2];
        jzx_supervisor_spec spec = {.strategy = strategy};
        tree_open(&t);
        tree_start_kids(&t, &spec, kids, NULL, 2);
        CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "a"));
        tree_idle(&t);
        bool all = strategy == JZX_ONE_FOR_ALL;
        CHECK_COMES_TRUE(&t, kids[1], all ? "restart:b start:a start:b" : "restart:b start:b");
        CHECK_EQ(tree_status(&t, "a"), all ? JZX_CHILD_RUNNING : JZX_CHILD_DOWN);
        tree_close(&t);
    }
}

/* The restart of a supervisor begins with what it was made of, not with what became of it. */
static void test_a_restart_forgets_later_changes_R3(void)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    kid *b = kid_new(&t, "b");
    kid *added = kid_new(&t, "x");
    jzx_child_spec below[] = {kid_spec(a, JZX_PERMANENT), kid_spec(b, JZX_PERMANENT)};
    jzx_supervisor_init inner = {.children = below, .child_count = 2};
    jzx_child_spec in = {.id = "in", .supervisor = &inner};
    jzx_supervisor_spec often = {.intensity = 10};
    tree_start(&t, &often, &in, 1);
    jzx_actor_id id = tree_child(&t, "in").actor;
    jzx_child_spec more = kid_spec(added, JZX_PERMANENT);
    more.drop_arg = kid_drop_arg;
    REQUIRE_OK(jzx_supervisor_start_child(t.loop, id, &more, NULL));
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, id, "a"));
    tree_idle(&t);
    CHECK_OK(jzx_supervisor_delete_child(t.loop, id, "a"));
    jzx_supervisor_spec all = {.strategy = JZX_ONE_FOR_ALL, .intensity = 7};
    REQUIRE_OK(jzx_supervisor_reconfigure(t.loop, id, &all));
    foresight f;
    foresee(&t, id, b->me.id, &f);
    CHECK_STR(f.text.text, "restart:b stop:x start:b start:x");

    CHECK_OK(jzx_kill(t.loop, id));
    tree_idle(&t);
    CHECK_EQ(jzx_actor_incarnation(t.loop, id), 2);
    jzx_child_info list[3] = {0};
    REQUIRE_EQ(jzx_supervisor_children(t.loop, id, list, 3), 2);
    CHECK_STR(list[0].id, "a");
    CHECK_STR(list[1].id, "b");
    CHECK_EQ(list[0].status, JZX_CHILD_RUNNING);
    CHECK_EQ(added->drops, 1);
    foresee(&t, id, b->me.id, &f);
    CHECK_STR(f.text.text, "restart:b start:b"); /* one_for_one again, and the default limit */
    kid_end(b, JZX_REASON_FAILED);
    foresee(&t, id, b->me.id, &f);
    CHECK_STR(f.text.text, "give_up end:b end:a");
    tree_close(&t);
}

/* SM16: a stop that is under way does not get lost when the child fails on what is still queued:
 * it has no life to go on with, so its mode decides. */
static void test_no_resume_while_a_stop_is_deferred_R18(void)
{
    for (uint32_t mode = JZX_PERMANENT; mode <= JZX_TEMPORARY; mode++) {
        tree t;
        tree_open(&t);
        kid *a = kid_new(&t, "a");
        jzx_child_spec spec = kid_spec(a, mode);
        spec.shutdown_ms = 500;
        jzx_supervisor_spec resume = {.action = JZX_ACTION_RESUME};
        a->at_stop = 'd';
        tree_start(&t, &resume, &spec, 1);
        jzx_actor_id id = a->me.id;
        kid_tell(a, T_FAIL, 0);
        CHECK_OK(jzx_stop(t.loop, id));
        tree_pass(&t, 100); /* the deadline is not what ends it */
        CHECK_STR(words_take(&t.asked), "a");
        CHECK_EQ(a->me.handled, 1);
        CHECK_EQ(a->me.deinits, 1);
        if (mode == JZX_TEMPORARY) {
            CHECK_EQ(tree_status(&t, "a"), NO_CHILD);
            CHECK_EQ(kid_state_of(a), JZX_STATE_TERMINATED);
        } else {
            KID_CHECK_LIFE(a, id, 2);
        }
        tree_pass(&t, 10000);
        CHECK_EQ(a->me.inits, mode == JZX_TEMPORARY ? 1 : 2);
        tree_close(&t);
    }
}

static jzx_behavior_result fails_in_post_stop(jzx_context *ctx, const jzx_signal *signal)
{
    return signal->kind == JZX_SIGNAL_POST_STOP ? jzx_fail(ctx, KID_STOP_CODE, "told to")
                                                : puppet_signal(ctx, signal);
}

/* SM18: the first stop turned into a failure by its POST_STOP, the second one ends it for good. */
static void test_a_second_stop_ends_a_backoff_R16(void)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    jzx_child_spec child = kid_spec(a, JZX_TRANSIENT);
    child.on_signal = fails_in_post_stop;
    jzx_supervisor_spec spec = {.intensity = 5, .backoff_min_ms = 50};
    tree_start(&t, &spec, &child, 1);
    kid_end(a, JZX_REASON_SHUTDOWN);
    CHECK_EQ(tree_status(&t, "a"), JZX_CHILD_RESTARTING);
    CHECK_EQ(tree_child(&t, "a").last.kind, JZX_REASON_FAILED);
    CHECK_EQ(a->me.deinits, 1);
    kid_end(a, JZX_REASON_SHUTDOWN);
    CHECK_EQ(kid_state_of(a), JZX_STATE_TERMINATED);
    CHECK_EQ(tree_status(&t, "a"), JZX_CHILD_DOWN);
    tree_pass(&t, 1000);
    CHECK_EQ(a->me.inits, 1);
    tree_close(&t);
}

/* A sibling that was asked to stop before the group went down, and is not ready yet, has the time
 * it was given; nobody starts meanwhile, and it is not asked twice. */
static void test_a_group_waits_for_a_deferred_stop_R18(void)
{
    for (uint32_t strategy = JZX_ONE_FOR_ALL; strategy <= JZX_REST_FOR_ONE; strategy++) {
        tree t;
        kid *kids[3];
        jzx_supervisor_spec spec = {.strategy = strategy};
        tree_open(&t);
        tree_start_kids(&t, &spec, kids, NULL, 3);
        jzx_actor_id ids[] = {kids[0]->me.id, kids[1]->me.id, kids[2]->me.id};
        (void)words_take(&t.life);
        kid_tell(kids[1], KID_LINGER, 2000);
        tree_idle(&t);
        CHECK_OK(jzx_stop(t.loop, kids[1]->me.id));
        tree_pass(&t, 500);
        CHECK_EQ(kid_state_of(kids[1]), JZX_STATE_RUNNING);
        kid_end(kids[0], JZX_REASON_FAILED);
        tree_pass(&t, 1400);
        CHECK_STR(t.life.text, "-a -c");
        CHECK_EQ(tree_status(&t, "a"), JZX_CHILD_RESTARTING);
        tree_pass(&t, 200);
        CHECK_STR(words_take(&t.life), "-a -c -b +a +b +c");
        CHECK_EQ(words_count(t.asked.text, "b"), 1);
        for (size_t k = 0; k < 3; k++) {
            KID_CHECK_LIFE(kids[k], ids[k], 2);
        }
        CHECK_STR(t.ends.text, "");
        tree_close(&t);
    }
}

static const jzt_test tests[] = {
    {"a_plan_is_what_then_happens_R19", test_a_plan_is_what_then_happens_R19},
    {"a_plan_at_the_limit_gives_up_R19", test_a_plan_at_the_limit_gives_up_R19},
    {"a_plan_knows_both_limits_R19", test_a_plan_knows_both_limits_R19},
    {"a_plan_says_how_long_it_waits_R19", test_a_plan_says_how_long_it_waits_R19},
    {"a_plan_follows_the_action_R19", test_a_plan_follows_the_action_R19},
    {"a_plan_changes_nothing_R19", test_a_plan_changes_nothing_R19},
    {"a_plan_that_is_too_long_counts_on_R19", test_a_plan_that_is_too_long_counts_on_R19},
    {"a_plan_for_a_dynamic_child_R19", test_a_plan_for_a_dynamic_child_R19},
    {"a_plan_is_of_one_level_R19", test_a_plan_is_of_one_level_R19},
    {"a_plan_is_for_own_children_only_R19", test_a_plan_is_for_own_children_only_R19},
    {"who_is_down_starts_with_its_group_R19", test_who_is_down_starts_with_its_group_R19},
    {"who_is_down_elsewhere_stays_down_R19", test_who_is_down_elsewhere_stays_down_R19},
    {"a_restart_forgets_later_changes_R3", test_a_restart_forgets_later_changes_R3},
    {"no_resume_while_a_stop_is_deferred_R18", test_no_resume_while_a_stop_is_deferred_R18},
    {"a_second_stop_ends_a_backoff_R16", test_a_second_stop_ends_a_backoff_R16},
    {"a_group_waits_for_a_deferred_stop_R18", test_a_group_waits_for_a_deferred_stop_R18},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
