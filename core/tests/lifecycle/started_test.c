/* Goal: an observer hears of a start when the actor runs, of every transition that was made and of
 * no other, and a parent that asked for it hears that its child started (R6, R9, R14, R15). Method:
 * simulation; everything goes into one journal that is compared as text. */
#include "family.h"

static void on_start(void *ctx, jzx_actor_id id, const char *name)
{
    (void)ctx;
    (void)id;
    say("%s+", name);
}
static void on_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)ctx;
    (void)id;
    say("%s-(%s)", name, reason_text(reason));
}
static void on_failure(void *ctx, const jzx_failure_event *event)
{
    (void)ctx;
    say("%s!(%s in %s)", event->name, reason_text(event->reason), jzx_state_name(event->state));
}
static const jzx_observer starts_and_ends = {
    .on_actor_start = on_start, .on_actor_stop = on_stop, .on_failure = on_failure};

static uint64_t last_ns;
static void on_transition(void *ctx, const jzx_transition_event *event)
{
    rig *r = ctx;
    bool known = false;
    for (uint32_t e = 0; e < JZX_LIFE_EVENTS; e++) {
        known = known || jzx_lifecycle_next(event->from, e) == (int)event->to;
    }
    CHECK(known);
    CHECK(event->time_ns >= last_ns && event->time_ns <= jzx_loop_now(r->loop));
    last_ns = event->time_ns;
    say("%s%u:%s>%s", event->name, (unsigned)event->incarnation, jzx_state_name(event->from),
        jzx_state_name(event->to));
}
static const jzx_observer moves = {.on_transition = on_transition};

static void test_a_start_is_told_when_the_actor_runs_R15(void)
{
    rig r;
    puppet a;
    play_open(&r, NULL);
    REQUIRE_OK(jzx_loop_set_observer(r.loop, &starts_and_ends, &r));
    puppet_spawn(&r, &a, "a");
    CHECK_SAID(""); /* init has not run */
    rig_idle(&r);
    CHECK_SAID("a.init a.pre_start a.post_start a+");
    tell(&r, &a, T_STOP);
    rig_idle(&r);
    CHECK_SAID("a:stop a.pre_stop a.post_stop a.deinit a-(normal)");
    jzx_spawn_opts plain = {.behavior = puppet_behavior, .name = "plain"};
    REQUIRE_OK(jzx_spawn(r.loop, &plain, NULL));
    CHECK_SAID("plain+"); /* it has nothing to start */
    REQUIRE_OK(jzx_loop_set_observer(r.loop, NULL, NULL));
    play_close(&r);
}

static void test_a_spawn_that_does_not_start_is_told_as_such_R15(void)
{
    static const uint32_t hooks[] = {IN_INIT, JZX_SIGNAL_PRE_START, JZX_SIGNAL_POST_START};
    for (size_t i = 0; i < COUNT_OF(hooks) * 2; i++) {
        rig r;
        puppet a;
        play_open(&r, NULL);
        REQUIRE_OK(jzx_loop_set_observer(r.loop, &starts_and_ends, &r));
        puppet_spawn(&r, &a, "a");
        a.mute = true;
        a.panics[hooks[i / 2]] = i % 2 == 0;
        a.answer[hooks[i / 2]] = JZX_BEHAVIOR_FAIL;
        rig_idle(&r);
        a.up = false;
        char want[100];
        int code = i % 2 == 0 ? (int)hooks[i / 2] + 100 : 0;
        snprintf(want, sizeof want,
                 code == 0 ? "a!(start_failed in starting) a-(start_failed)"
                           : "a!(start_failed %d in starting) a-(start_failed %d)",
                 code, code);
        CHECK_SAID(want);
        a.ups = a.deinits;
        play_close(&r);
    }
}

static void test_a_start_is_told_once_in_all_lives_of_an_actor_R15_R18(void)
{
    rig r;
    family f;
    jzx_supervisor_spec often = {.intensity = 10};
    family_open(&r, &f, NULL, &often, 1, 0);
    f.child[0].mute = true;
    REQUIRE_OK(jzx_loop_set_observer(r.loop, &starts_and_ends, &r));
    tell(&r, &f.child[0], T_FAIL);
    rig_idle(&r);
    CHECK_SAID("a!(failed 7 in running)"); /* on_restart tells the rest */
    CHECK_EQ(jzx_actor_incarnation(r.loop, f.child[0].id), 2);
    REQUIRE_OK(jzx_loop_set_observer(r.loop, NULL, NULL));
    play_close(&r);
}

static void test_every_transition_is_told_when_it_is_made_R14(void)
{
    rig r;
    family f;
    jzx_supervisor_spec often = {.intensity = 10, .backoff_min_ms = 50};
    family_open(&r, &f, NULL, &often, 1, 0);
    puppet *a = &f.child[0];
    a->mute = true;
    f.p.mute = true;
    last_ns = 0;
    REQUIRE_OK(jzx_loop_set_observer(r.loop, &moves, &r));
    tell(&r, a, T_FAIL);
    rig_idle(&r);
    CHECK_SAID("a1:running>failed a1:failed>restarting");
    run_ms(&r, 60);
    CHECK_SAID("a2:restarting>starting a2:starting>running");
    CHECK_OK(jzx_stop(r.loop, f.p.id));
    rig_idle(&r);
    CHECK_SAID("p1:running>stopping a2:running>stopping a2:stopping>terminated "
               "p1:stopping>terminated");
    jzx_actor_id id = JZX_NOBODY;
    for (uint32_t tag = T_FAIL; tag <= T_STOP; tag++) {
        puppet plain = {.name = "x", .mute = true, .up = true};
        jzx_spawn_opts opts = {.behavior = puppet_behavior, .state = &plain};
        REQUIRE_OK(jzx_spawn(r.loop, &opts, &id));
        CHECK_SAID("1:created>starting 1:starting>running");
        REQUIRE_OK(jzx_send_u64(r.loop, id, 0, tag));
        rig_idle(&r);
        CHECK_SAID(tag == T_STOP ? "1:running>stopping 1:stopping>terminated"
                                 : "1:running>failed 1:failed>stopping 1:stopping>terminated");
    }
    REQUIRE_OK(jzx_loop_set_observer(r.loop, NULL, NULL));
    play_close(&r);
}

/* CHILD_STARTED. */

typedef struct child {
    const char *name;
    jzx_actor_id parent;
    uint32_t fails_left;
    bool talks; /* sends to its parent from its hooks and messages */
} child;
enum { T_HELLO = 0x300, T_WORK, T_FALL };

static void talk(const jzx_context *ctx, const child *self, uint32_t tag)
{
    if (self->talks) {
        REQUIRE_OK(jzx_send_u64(ctx->loop, self->parent, 0, tag));
    }
}
static jzx_behavior_result child_init(jzx_context *ctx, void *arg)
{
    child *self = arg;
    ctx->state = arg;
    talk(ctx, self, T_HELLO);
    if (self->fails_left > 0) {
        self->fails_left--;
        return JZX_BEHAVIOR_FAIL;
    }
    return JZX_BEHAVIOR_OK;
}
static jzx_behavior_result child_works(jzx_context *ctx, const jzx_message *msg)
{
    talk(ctx, ctx->state, T_WORK);
    return msg->tag == T_FALL   ? JZX_BEHAVIOR_FAIL
           : msg->tag == T_STOP ? JZX_BEHAVIOR_STOP
                                : JZX_BEHAVIOR_OK;
}

/* A parent whose policy restarts, and that writes down what it hears. */
typedef struct parent {
    child child;
    jzx_spawn_opts opts;
    jzx_actor_id id;
    bool policy;
} parent;
static jzx_behavior_result parent_init(jzx_context *ctx, void *arg)
{
    parent *self = arg;
    ctx->state = self;
    jzx_supervisor_spec often = {.intensity = 10};
    if (self->policy) {
        REQUIRE_OK(jzx_set_child_policy(ctx, &often));
    }
    self->child.parent = ctx->self;
    self->opts.behavior = child_works;
    self->opts.state = &self->child;
    REQUIRE_OK(jzx_spawn(ctx->loop, &self->opts, &self->id));
    REQUIRE_OK(jzx_send_u64(ctx->loop, self->id, 0, T_WORK));
    return JZX_BEHAVIOR_OK;
}
static jzx_behavior_result parent_hears(jzx_context *ctx, const jzx_signal *signal)
{
    const parent *self = ctx->state;
    if (signal->kind >= JZX_SIGNAL_TERMINATED) {
        CHECK_EQ(signal->from, self->id);
        CHECK_EQ(signal->reason->kind <= JZX_REASON_SHUTDOWN,
                 signal->kind != JZX_SIGNAL_CHILD_FAILED);
        say("%s%u", jzx_signal_name(signal->kind), (unsigned)signal->incarnation);
    }
    return JZX_BEHAVIOR_OK;
}
static jzx_behavior_result parent_behavior(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_signal *signal = jzx_message_signal(msg);
    if (signal != NULL) {
        return parent_hears(ctx, signal);
    }
    say("%s", msg->tag == T_HELLO ? "hello" : "work");
    return JZX_BEHAVIOR_OK;
}

static void test_a_parent_that_asked_hears_that_its_child_started_R6_R9(void)
{
    for (uint32_t i = 0; i < 8; i++) {
        rig r;
        jzx_actor_id id = JZX_NOBODY;
        parent p = {.policy = true};
        bool hooks = (i & 1) != 0;
        bool tells = (i & 2) != 0;
        play_open(&r, NULL);
        p.child.talks = true;
        p.opts.init = hooks ? child_init : NULL;
        p.opts.flags = JZX_SPAWN_STATELESS | (tells ? JZX_SPAWN_TELL_START : 0);
        jzx_spawn_opts opts = {.behavior = parent_behavior,
                               .init = parent_init,
                               .on_signal = (i & 4) != 0 ? parent_hears : NULL,
                               .state = &p};
        REQUIRE_OK(jzx_spawn(r.loop, &opts, &id));
        rig_idle(&r);
        CHECK_SAID(hooks   ? (tells ? "hello child_started1 work" : "hello work")
                   : tells ? "child_started1 work"
                           : "work");
        p.child.fails_left = hooks ? 1 : 0; /* its second start fails */
        REQUIRE_OK(jzx_send_u64(r.loop, p.id, 0, T_FALL));
        rig_idle(&r);
        CHECK_SAID(hooks   ? (tells ? "work hello hello child_started3" : "work hello hello")
                   : tells ? "work child_started2"
                           : "work");
        REQUIRE_OK(jzx_send_u64(r.loop, p.id, 0, T_STOP));
        rig_idle(&r);
        CHECK_SAID(hooks ? "work child_ended3" : "work child_ended2");
        play_close(&r);
    }
}

/* The parent is busy while its child starts, falls, starts and ends: one notice of the starts
 * waits, it speaks of the last one, and comes before the end. */
static void test_starts_that_come_too_fast_are_told_by_one_notice_R6_R9(void)
{
    rig r;
    jzx_actor_id id = JZX_NOBODY;
    parent p = {.policy = false};
    play_open(&r, &one_turn);
    p.opts.init = child_init;
    p.opts.flags = JZX_SPAWN_TELL_START;
    jzx_spawn_opts opts = {
        .behavior = parent_behavior, .init = parent_init, .state = &p, .on_signal = parent_hears};
    REQUIRE_OK(jzx_spawn(r.loop, &opts, &id));
    REQUIRE(step_until(&r, id, JZX_STATE_RUNNING));
    REQUIRE_OK(jzx_stop(r.loop, p.id)); /* maybe before it started at all */
    rig_idle(&r);
    CHECK(strcmp(said, "child_ended1") == 0 || strcmp(said, "child_started1 child_ended1") == 0);
    play_close(&r);
}

/* Whatever memory is missing, and however parent and child end, nothing leaks: the rig looks. */
static void test_a_notice_of_a_start_is_never_left_behind_R9(void)
{
    for (uint32_t i = 0; i < 40; i++) {
        rig r;
        jzx_actor_id id = JZX_NOBODY;
        parent p = {.policy = i % 2 == 0};
        play_open(&r, &one_turn);
        p.opts.init = i % 3 == 0 ? NULL : child_init;
        p.opts.flags = JZX_SPAWN_STATELESS | JZX_SPAWN_TELL_START;
        jzx_spawn_opts opts = {.behavior = parent_behavior, .init = parent_init, .state = &p};
        REQUIRE_OK(jzx_spawn(r.loop, &opts, &id));
        for (uint32_t step = 0; step < i / 4; step++) {
            REQUIRE_OK(jzx_loop_step(r.loop, 0));
        }
        if (p.id != JZX_NOBODY) {
            jzx_err err = jzx_send_u64(r.loop, p.id, 0, T_FALL);
            CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR);
        }
        for (uint32_t step = 0; step < i % 5; step++) {
            REQUIRE_OK(jzx_loop_step(r.loop, 0));
        }
        if (i % 4 == 1) {
            CHECK_OK(jzx_kill(r.loop, id));
        } else if (i % 4 == 2) {
            CHECK_OK(jzx_stop(r.loop, id));
        }
        play_close(&r);
    }
}

static void test_a_supervisors_child_cannot_ask_for_it(void)
{
    rig r;
    play_open(&r, NULL);
    jzx_child_spec spec = {
        .id = "a", .behavior = child_works, .flags = JZX_SPAWN_STATELESS | JZX_SPAWN_TELL_START};
    jzx_supervisor_init init = {.children = &spec, .child_count = 1};
    CHECK_EQ(jzx_spawn_supervisor(r.loop, &init, NULL), JZX_ERR_BAD_SPEC);
    play_close(&r);
}

static const jzt_test tests[] = {
    {"a_start_is_told_when_the_actor_runs_R15", test_a_start_is_told_when_the_actor_runs_R15},
    {"a_spawn_that_does_not_start_is_told_as_such_R15",
     test_a_spawn_that_does_not_start_is_told_as_such_R15},
    {"a_start_is_told_once_in_all_lives_of_an_actor_R15_R18",
     test_a_start_is_told_once_in_all_lives_of_an_actor_R15_R18},
    {"every_transition_is_told_when_it_is_made_R14",
     test_every_transition_is_told_when_it_is_made_R14},
    {"a_parent_that_asked_hears_that_its_child_started_R6_R9",
     test_a_parent_that_asked_hears_that_its_child_started_R6_R9},
    {"starts_that_come_too_fast_are_told_by_one_notice_R6_R9",
     test_starts_that_come_too_fast_are_told_by_one_notice_R6_R9},
    {"a_notice_of_a_start_is_never_left_behind_R9",
     test_a_notice_of_a_start_is_never_left_behind_R9},
    {"a_supervisors_child_cannot_ask_for_it", test_a_supervisors_child_cannot_ask_for_it},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
