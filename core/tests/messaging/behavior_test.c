/* Goal: an actor runs what it became, goes back the way it came, and starts every life as it was
 * spawned (R15, R17, R18); calls from where there is nothing to do with are refused and change
 * nothing. Method: simulation; behaviors that sign what they handle. */
#include "desk.h"

enum { T_A = 0x10, T_B, T_C, PUSH_A, PUSH_B, PUSH_C, BACK, NONE, WORK };

static jzx_behavior_result be_a(jzx_context *ctx, const jzx_message *msg);
static jzx_behavior_result be_b(jzx_context *ctx, const jzx_message *msg);
static jzx_behavior_result be_c(jzx_context *ctx, const jzx_message *msg);

/* Does what the tag says and signs with who it is. */
static jzx_behavior_result act(jzx_context *ctx, const jzx_message *msg, const char *who)
{
    static const jzx_behavior_fn all[] = {be_a, be_b, be_c};
    puppet *self = ctx->state;
    jzx_err err = JZX_OK;
    if (msg->kind == JZX_KIND_TIMER || msg->kind == JZX_KIND_NOTICE) {
        say("%s.%s", who, msg->kind == JZX_KIND_TIMER ? "timer" : "notice");
        return JZX_BEHAVIOR_OK;
    }
    if (msg->tag >= T_FAIL) {
        return puppet_obey(ctx, msg->tag, self);
    }
    say("%s:%x", who, (unsigned)msg->tag);
    if (msg->tag >= T_A && msg->tag <= T_C) {
        err = jzx_become(ctx, all[msg->tag - T_A]);
    } else if (msg->tag >= PUSH_A && msg->tag <= PUSH_C) {
        err = jzx_become_stacked(ctx, all[msg->tag - PUSH_A]);
    } else if (msg->tag == BACK) {
        err = jzx_unbecome(ctx);
    } else if (msg->tag == NONE) {
        CHECK_EQ(jzx_become(ctx, NULL), JZX_ERR_INVALID_ARG);
        CHECK_EQ(jzx_become_stacked(ctx, NULL), JZX_ERR_INVALID_ARG);
    }
    if (err != JZX_OK) {
        say_error(self, err);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result be_a(jzx_context *ctx, const jzx_message *msg)
{
    return act(ctx, msg, "A");
}
static jzx_behavior_result be_b(jzx_context *ctx, const jzx_message *msg)
{
    return act(ctx, msg, "B");
}
static jzx_behavior_result be_c(jzx_context *ctx, const jzx_message *msg)
{
    return act(ctx, msg, "C");
}

static const jzx_spawn_opts as_a = {.behavior = be_a};
static const jzx_supervisor_spec often = {.intensity = 1000};

/* Who handled WORK after these messages: "A", "B"... */
#define CHECK_WHO(desk_, text, ...)                                                                \
    do {                                                                                           \
        TELL_AND_RUN(desk_, __VA_ARGS__);                                                          \
        said_clear();                                                                              \
        TELL_AND_RUN(desk_, WORK);                                                                 \
        CHECK_SAID(text ":18");                                                                    \
    } while (0)

static void test_from_the_next_message_on_it_runs_what_it_became(void)
{
    static const uint32_t turns[] = {0, 1, 2};
    for (size_t i = 0; i < COUNT_OF(turns); i++) {
        desk d;
        jzx_spawn_opts opts = {.behavior = be_a, .max_msgs = turns[i]};
        desk_start(&d, NULL, &opts, NULL);
        jzx_actor_id id = d.a.id;
        TELL_AND_RUN(&d, WORK, T_B, WORK, T_C, WORK, T_A, WORK);
        CHECK_SAID("A:18 A:11 B:18 B:12 C:18 C:10 A:18");
        CHECK_EQ(d.a.id, id);
        CHECK_EQ(d.a.ups, 1);
        desk_close(&d);
    }
}

static void test_urgent_messages_timers_and_notices_reach_the_new_one_too(void)
{
    desk d;
    desk_start(&d, NULL, &as_a, NULL);
    TELL_AND_RUN(&d, T_B);
    said_clear();
    REQUIRE_OK(try_urgent(d.r.loop, d.a.id, WORK));
    REQUIRE_OK(jzx_send_after(d.r.loop, d.a.id, 5, NULL, 0, WORK, NULL));
    run_ms(&d.r, 10);
    CHECK_SAID("B:18 B.timer");
    desk_close(&d);
}

static void test_unbecome_goes_back_one_by_one_and_then_to_the_first(void)
{
    desk d;
    desk_start(&d, NULL, &as_a, NULL);
    CHECK_WHO(&d, "B", PUSH_B);
    CHECK_WHO(&d, "C", PUSH_C);
    CHECK_WHO(&d, "C", PUSH_C);
    CHECK_WHO(&d, "C", BACK);
    CHECK_WHO(&d, "B", BACK);
    CHECK_WHO(&d, "A", BACK);
    TELL_AND_RUN(&d, BACK);
    CHECK_SAID("A:16 a!ALREADY");
    desk_close(&d);
}

static void test_become_replaces_the_top_of_the_stack(void)
{
    desk d;
    desk_start(&d, NULL, &as_a, NULL);
    CHECK_WHO(&d, "C", PUSH_B, T_C);
    CHECK_WHO(&d, "A", BACK);
    /* Without a stack there is only the way to the first one. */
    CHECK_WHO(&d, "C", T_B, T_C);
    CHECK_WHO(&d, "A", BACK);
    /* What the stack remembers is what it was then, be it the first one again. */
    CHECK_WHO(&d, "A", T_B, PUSH_A);
    CHECK_WHO(&d, "B", BACK);
    CHECK_WHO(&d, "A", BACK);
    desk_close(&d);
}

static void test_unbecome_says_when_there_is_nothing_to_go_back_to(void)
{
    desk d;
    desk_start(&d, NULL, &as_a, NULL);
    TELL_AND_RUN(&d, BACK, T_A, BACK, T_B, BACK, BACK);
    CHECK_SAID("A:16 a!ALREADY A:10 A:16 a!ALREADY A:11 B:16 A:16 a!ALREADY");
    desk_close(&d);
}

static void test_nothing_is_no_behavior(void)
{
    desk d;
    desk_start(&d, NULL, &as_a, NULL);
    CHECK_WHO(&d, "A", NONE);
    CHECK_WHO(&d, "B", PUSH_B, NONE);
    CHECK_WHO(&d, "A", BACK);
    desk_close(&d);
}

static void test_the_stack_has_a_bound(void)
{
    desk d;
    desk_start(&d, NULL, &as_a, NULL);
    for (int i = 0; i < JZX_BECOME_MAX; i++) {
        tell(&d.r, &d.a, i % 2 == 0 ? PUSH_B : PUSH_C);
    }
    rig_idle(&d.r);
    CHECK_EQ(said_times("!"), 0);
    said_clear();
    TELL_AND_RUN(&d, PUSH_B, WORK, T_A, WORK);
    CHECK_SAID("C:14 a!TOO_BIG C:18 C:10 A:18");
    for (int i = 0; i < JZX_BECOME_MAX; i++) {
        tell(&d.r, &d.a, BACK);
    }
    rig_idle(&d.r);
    CHECK_EQ(said_times("!"), 0);
    said_clear();
    TELL_AND_RUN(&d, WORK, BACK);
    CHECK_SAID("A:18 A:16 a!ALREADY");
    desk_close(&d);
}

static void become_b_at(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what == self->number) {
        CHECK_EQ(jzx_unbecome(ctx), JZX_ERR_ALREADY);
        CHECK_OK(jzx_become_stacked(ctx, be_c));
        CHECK_OK(jzx_become(ctx, be_b));
    }
}

static void test_become_in_init_and_start_signals_is_for_this_life_R15(void)
{
    static const uint32_t moments[] = {IN_INIT, JZX_SIGNAL_PRE_START, JZX_SIGNAL_POST_START};
    for (size_t i = 0; i < COUNT_OF(moments); i++) {
        desk d = {.policy = &often, .opts = as_a};
        play_open(&d.r, NULL);
        puppet_name(&d.a, "a");
        puppet_name(&d.p, "p");
        d.a.during = become_b_at;
        d.a.number = moments[i];
        d.p.arg = &d;
        d.p.during = desk_begin;
        jzx_spawn_opts parent = puppet_opts(&d.p);
        puppet_spawn_with(d.r.loop, &d.p, &parent);
        rig_idle(&d.r);
        CHECK_WHO(&d, "B", WORK);
        CHECK_WHO(&d, "B", T_FAIL); /* the next life does the same, from the start */
        CHECK_WHO(&d, "A", BACK);
        d.a.during = NULL;
        CHECK_WHO(&d, "A", T_PANIC);
        desk_close(&d);
    }
}

static void test_every_life_begins_with_what_it_was_spawned_with_R18(void)
{
    static const uint32_t ways[] = {T_FAIL, T_PANIC, T_SELF_KILL};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        desk d;
        desk_start(&d, NULL, &as_a, &often);
        TELL(&d, T_B, PUSH_C, PUSH_B);
        tell(&d.r, &d.a, ways[i]);
        rig_idle(&d.r);
        CHECK_EQ(d.a.ups, 2);
        said_clear();
        TELL_AND_RUN(&d, WORK, BACK);
        CHECK_SAID("A:18 A:16 a!ALREADY"); /* the stack went too */
        CHECK_WHO(&d, "B", T_C, PUSH_B);
        CHECK_WHO(&d, "C", BACK);
        desk_close(&d);
    }
}

static void become_and_panic(jzx_context *ctx, puppet *self)
{
    (void)self;
    CHECK_OK(jzx_become_stacked(ctx, be_b));
    CHECK_OK(jzx_become(ctx, be_c));
    jzx_panic(ctx, 1, NULL);
}

static void test_a_panic_after_become_restarts_with_the_first_R17(void)
{
    desk d;
    desk_start(&d, NULL, &as_a, &often);
    inside(&d.r, &d.a, become_and_panic);
    CHECK_EQ(d.a.restarts, 1);
    CHECK_WHO(&d, "A", WORK);
    desk_close(&d);
}

static void test_a_resumed_actor_is_what_it_became_R18(void)
{
    static const jzx_supervisor_spec resume = {.intensity = 10, .action = JZX_ACTION_RESUME};
    desk d;
    desk_start(&d, NULL, &as_a, &resume);
    inside(&d.r, &d.a, become_and_panic);
    CHECK_EQ(d.a.ups, 1);
    CHECK_WHO(&d, "C", WORK);
    CHECK_WHO(&d, "A", BACK);
    desk_close(&d);
}

/* In the last hooks of a life nothing is left to become; before that it is gone with the life. */
static void become_while_leaving(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what == JZX_SIGNAL_PRE_RESTART || what == JZX_SIGNAL_PRE_STOP) {
        CHECK_OK(jzx_become(ctx, be_b));
        self->number++;
    } else if (what == JZX_SIGNAL_POST_STOP || what == IN_DEINIT) {
        CHECK_EQ(jzx_become(ctx, be_b), JZX_ERR_INVALID_ARG);
        CHECK_EQ(jzx_become_stacked(ctx, be_b), JZX_ERR_INVALID_ARG);
        CHECK_EQ(jzx_unbecome(ctx), JZX_ERR_INVALID_ARG);
        self->number++;
    }
}

static void test_the_last_hooks_of_a_life_change_nothing_for_the_next_R18(void)
{
    desk d;
    desk_start(&d, NULL, &as_a, &often);
    d.a.during = become_while_leaving;
    CHECK_WHO(&d, "A", T_FAIL);
    CHECK_EQ(d.a.number, 3);
    CHECK_OK(jzx_stop(d.r.loop, d.a.id));
    rig_idle(&d.r);
    CHECK_EQ(d.a.number, 6);
    desk_close(&d);
}

static void test_a_deferred_stop_can_become_something_else_R15(void)
{
    desk d;
    desk_start(&d, NULL, &as_a, NULL);
    d.a.during = become_while_leaving;
    d.a.answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    TELL(&d, WORK, T_STOP);
    CHECK_OK(jzx_stop(d.r.loop, d.a.id));
    rig_idle(&d.r);
    CHECK_EQ(said_times("B:18"), 1);
    CHECK_EQ(d.a.ends, 1);
    desk_close(&d);
}

static void become_without_memory(jzx_context *ctx, puppet *self)
{
    rig *r = self->arg;
    jzx_fault_arm_alloc(r->fault, 1, 1);
    CHECK_EQ(jzx_become(ctx, be_b), JZX_ERR_NO_MEMORY);
    CHECK_EQ(jzx_become_stacked(ctx, be_b), JZX_ERR_NO_MEMORY);
    CHECK_EQ(jzx_stash_set_cap(ctx, 1), JZX_ERR_NO_MEMORY);
    CHECK_EQ(jzx_stash(ctx), JZX_ERR_NO_MEMORY);
    jzx_fault_arm_alloc(r->fault, 0, 0);
    CHECK_OK(jzx_become(ctx, be_a)); /* what is needed for the first use is there now */
    jzx_fault_arm_alloc(r->fault, 1, 1);
    CHECK_OK(jzx_become(ctx, be_b));
    CHECK_EQ(jzx_become_stacked(ctx, be_c), JZX_ERR_NO_MEMORY);
    jzx_fault_arm_alloc(r->fault, 0, 0);
}

static void test_without_memory_it_stays_what_it_is(void)
{
    desk d;
    desk_start(&d, NULL, &as_a, NULL);
    d.a.arg = &d.r;
    inside(&d.r, &d.a, become_without_memory);
    CHECK_WHO(&d, "B", WORK);
    CHECK_WHO(&d, "A", BACK);
    desk_close(&d);
}

/* Everything that needs a message in hand, where there is none. */
static void check_no_message(jzx_context *ctx)
{
    CHECK_EQ(jzx_stash(ctx), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_unstash(ctx, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_forward(ctx, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_discard(ctx), JZX_ERR_INVALID_ARG);
}

static void check_outside(jzx_context *ctx)
{
    check_no_message(ctx);
    CHECK_EQ(jzx_become(ctx, be_a), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_become_stacked(ctx, be_a), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_unbecome(ctx), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_stash_set_cap(ctx, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_stash_count(ctx), 0);
}

static void in_every_hook(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what != IN_INIT && what != IN_DEINIT && what >= JZX_SIGNAL_TERMINATED) {
        return;
    }
    check_no_message(ctx);
    CHECK_OK(jzx_stash_set_cap(ctx, 2));
    CHECK_EQ(jzx_stash_count(ctx), what == JZX_SIGNAL_PRE_RESTART ? 1 : 0);
    self->number |= UINT64_C(1) << what;
}

static jzx_context *kept_ctx;

static void keep_ctx(jzx_context *ctx, puppet *self)
{
    (void)self;
    kept_ctx = ctx;
}

static void test_calls_from_elsewhere_are_refused(void)
{
    check_outside(NULL);
    desk d;
    desk_start(&d, NULL, NULL, &often);
    inside(&d.r, &d.a, keep_ctx);
    check_outside(kept_ctx);
    d.a.during = in_every_hook;
    TELL_AND_RUN(&d, 1, T_FAIL);
    CHECK_EQ(d.a.number, 1u << IN_INIT | 1u << IN_DEINIT | 1u << JZX_SIGNAL_PRE_START |
                             1u << JZX_SIGNAL_POST_START | 1u << JZX_SIGNAL_POST_STOP |
                             1u << JZX_SIGNAL_PRE_RESTART | 1u << JZX_SIGNAL_POST_RESTART);
    TELL_AND_RUN(&d, S_SERVE);
    CHECK_WORK("a~1 a~1 a:1");
    d.a.during = NULL;
    desk_close(&d);
}

/* Whatever the runtime itself hands over can neither wait nor go elsewhere. */
static jzx_behavior_result refuse_to_move(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const jzx_actor_id *other = self->arg;
    if (msg->kind == JZX_KIND_USER) {
        if (msg->tag == 1) {
            CHECK_OK(jzx_notify_room(ctx->loop, *other));
            CHECK_OK(jzx_dead_letters_subscribe(ctx->loop));
        }
        return JZX_BEHAVIOR_OK;
    }
    CHECK_EQ(jzx_stash(ctx), JZX_ERR_NOT_SUPPORTED);
    CHECK_EQ(jzx_forward(ctx, *other), JZX_ERR_NOT_SUPPORTED);
    CHECK_EQ(jzx_discard(ctx), JZX_ERR_NOT_SUPPORTED);
    CHECK_EQ(jzx_unstash(ctx, 1), JZX_ERR_STASH_EMPTY);
    self->number |= UINT64_C(1) << msg->kind;
    return JZX_BEHAVIOR_OK;
}

static void test_only_what_was_sent_can_be_moved(void)
{
    rig r = rig_open_fifo(NULL);
    int fds[2];
    jzx_io_ref watch = 0;
    puppet *other = puppet_start(&r, NULL, NULL);
    puppet *s = puppet_start(&r, refuse_to_move, NULL);
    s->arg = &other->id;
    tell(&r, s, 1);
    (void)after(&r, s, 1, 2);
    jzx_timer_opts tick = {.delay_ms = 1, .period_ms = 1, .tag = 3};
    jzx_timer_id timer = 0;
    REQUIRE_OK(jzx_timer_start(r.loop, s->id, &tick, &timer));
    REQUIRE_OK(jzx_sim_pipe(r.sim, fds));
    REQUIRE_OK(jzx_watch_fd(r.loop, fds[0], s->id, JZX_IO_WRITE, 4, &watch));
    REQUIRE_OK(jzx_kit_run(r.kit, 5));
    CHECK_EQ(s->number, 1u << JZX_KIND_TIMER | 1u << JZX_KIND_IO | 1u << JZX_KIND_NOTICE);
    CHECK_OK(jzx_unwatch_fd(r.loop, watch));
    CHECK_OK(jzx_cancel_timer(r.loop, timer));
    CHECK_EQ(other->handled, 0);
    CHECK_EQ(rig_counters(&r).dead, 0);
    rig_close(&r);
    puppet_free(s);
    puppet_free(other);
}

/* From a notice that on_signal gets there is a message in hand, if none that could wait. */
static void serve_at_notice(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what == JZX_SIGNAL_TERMINATED) {
        CHECK_EQ(jzx_stash(ctx), JZX_ERR_NOT_SUPPORTED);
        CHECK_EQ(jzx_stash_count(ctx), 2);
        CHECK_OK(jzx_become(ctx, desk_open));
        CHECK_OK(jzx_unstash(ctx, JZX_UNSTASH_ALL));
        self->number++;
    }
}

static void watch_other(jzx_context *ctx, puppet *self)
{
    CHECK_OK(jzx_watch(ctx->loop, *(jzx_actor_id *)self->arg, 0, NULL));
}

static void test_a_notice_can_bring_the_stash_back_R15(void)
{
    static const uint32_t turns[] = {0, 1};
    for (size_t i = 0; i < COUNT_OF(turns); i++) {
        desk d;
        jzx_spawn_opts opts = {.max_msgs = turns[i]};
        desk_start(&d, NULL, &opts, NULL);
        puppet *other = puppet_start(&d.r, NULL, NULL);
        d.a.arg = &other->id;
        d.a.during = serve_at_notice;
        inside(&d.r, &d.a, watch_other);
        REQUIRE_OK(try_urgent(d.r.loop, d.a.id, 1));
        TELL_AND_RUN(&d, 2);
        CHECK_OK(jzx_stop(d.r.loop, other->id));
        rig_idle(&d.r);
        CHECK_WORK("a~1 a~2 a:1 a:2");
        CHECK_EQ(d.a.number, 1);
        desk_close(&d);
        puppet_free(other);
    }
}

static const jzt_test tests[] = {
    {"from_the_next_message_on_it_runs_what_it_became",
     test_from_the_next_message_on_it_runs_what_it_became},
    {"urgent_messages_timers_and_notices_reach_the_new_one_too",
     test_urgent_messages_timers_and_notices_reach_the_new_one_too},
    {"unbecome_goes_back_one_by_one_and_then_to_the_first",
     test_unbecome_goes_back_one_by_one_and_then_to_the_first},
    {"become_replaces_the_top_of_the_stack", test_become_replaces_the_top_of_the_stack},
    {"unbecome_says_when_there_is_nothing_to_go_back_to",
     test_unbecome_says_when_there_is_nothing_to_go_back_to},
    {"nothing_is_no_behavior", test_nothing_is_no_behavior},
    {"the_stack_has_a_bound", test_the_stack_has_a_bound},
    {"become_in_init_and_start_signals_is_for_this_life_R15",
     test_become_in_init_and_start_signals_is_for_this_life_R15},
    {"every_life_begins_with_what_it_was_spawned_with_R18",
     test_every_life_begins_with_what_it_was_spawned_with_R18},
    {"a_panic_after_become_restarts_with_the_first_R17",
     test_a_panic_after_become_restarts_with_the_first_R17},
    {"a_resumed_actor_is_what_it_became_R18", test_a_resumed_actor_is_what_it_became_R18},
    {"the_last_hooks_of_a_life_change_nothing_for_the_next_R18",
     test_the_last_hooks_of_a_life_change_nothing_for_the_next_R18},
    {"a_deferred_stop_can_become_something_else_R15",
     test_a_deferred_stop_can_become_something_else_R15},
    {"without_memory_it_stays_what_it_is", test_without_memory_it_stays_what_it_is},
    {"calls_from_elsewhere_are_refused", test_calls_from_elsewhere_are_refused},
    {"only_what_was_sent_can_be_moved", test_only_what_was_sent_can_be_moved},
    {"a_notice_can_bring_the_stash_back_R15", test_a_notice_can_bring_the_stash_back_R15},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
