/* Goal: a stash never loses or doubles a message, whatever becomes of its actor: restarts, resumes,
 * every kind of end, every drain policy (R4, R5, R10, R16, R18, R21).
 * Method: simulation; a desk under a parent with a policy, or alone; payloads count their drops and
 * the kit checks conservation. */
#include "desk.h"

static const jzx_supervisor_spec often = {.intensity = 1000};
static const jzx_supervisor_spec slowly = {.intensity = 1000, .backoff_min_ms = 1000};

static void send_parcel(desk *d, form what, uint32_t tag, uint32_t flags)
{
    jzx_send_opts opts = parcel_opts(what, tag, 100);
    opts.flags |= flags;
    REQUIRE_OK(jzx_send_with(d->r.loop, d->a.id, &opts));
}

static void test_a_restart_puts_the_stash_in_front_of_the_mailbox_R18(void)
{
    static const uint32_t ways[] = {T_FAIL, T_PANIC, T_SELF_KILL};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        for (form what = F_VALUE; what < FORMS; what++) {
            desk d;
            desk_start(&d, NULL, NULL, &slowly);
            send_parcel(&d, what, 1, 0);
            send_parcel(&d, what, 2, 0);
            tell(&d.r, &d.a, ways[i]);
            TELL(&d, 3);
            run_ms(&d.r, 100);
            CHECK_STATE(&d.r, &d.a, JZX_STATE_RESTARTING);
            CHECK_EQ(desk_facts(&d).stashed, 0);
            CHECK_EQ(desk_facts(&d).ordinary, 3);
            TELL(&d, 4);
            run_ms(&d.r, 2000);
            TELL_AND_RUN(&d, S_SERVE);
            CHECK_WORK("a~1 a~2 a~1 a~2 a~3 a~4 a:1 a:2 a:3 a:4");
            CHECK_EQ(parcels[1].drops, what == F_DROP ? 1 : 0);
            CHECK_EQ(parcels[2].owned, what == F_BARE ? 1 : 0);
            desk_close(&d);
        }
    }
}

static void test_urgent_ones_go_back_to_their_lane_at_a_restart_R18(void)
{
    desk d;
    desk_start(&d, NULL, NULL, &often);
    send_parcel(&d, F_VALUE, 1, 0);
    send_parcel(&d, F_VALUE, 2, JZX_SEND_URGENT);
    rig_idle(&d.r);
    TELL_AND_RUN(&d, T_FAIL);
    CHECK_WORK("a~2 a~1 a~2 a~1");
    TELL_AND_RUN(&d, T_PANIC, S_SERVE);
    CHECK_WORK("a~2 a~1 a:2 a:1");
    desk_close(&d);
}

/* Sets the first message aside and fails over it, in its first life. */
static jzx_behavior_result stash_and_fail(jzx_context *ctx, const jzx_message *msg)
{
    puppet *self = ctx->state;
    if (desk_is_work(msg) && jzx_actor_incarnation(ctx->loop, ctx->self) == 1) {
        desk_stash(ctx, msg);
        if (self->number == 1) {
            jzx_panic(ctx, 1, NULL);
        }
        return JZX_BEHAVIOR_FAIL;
    }
    return desk_open(ctx, msg);
}

static void test_a_message_that_is_set_aside_and_fails_comes_again_once_R18(void)
{
    for (uint32_t again = 0; again < 2; again++) {
        for (uint64_t panic = 0; panic < 2; panic++) {
            for (form what = F_VALUE; what < FORMS; what++) {
                desk d;
                jzx_spawn_opts opts = {.behavior = stash_and_fail,
                                       .flags = again ? JZX_SPAWN_REDELIVER : 0};
                desk_start(&d, NULL, &opts, &often);
                d.a.number = panic;
                send_parcel(&d, what, 1, 0);
                send_parcel(&d, F_VALUE, 2, 0);
                rig_idle(&d.r);
                CHECK_WORK("a~1 a:1 a:2");
                CHECK_EQ(parcels[1].drops, what == F_DROP ? 1 : 0);
                CHECK_EQ(parcels[1].owned, what == F_BARE ? 1 : 0);
                desk_close(&d);
            }
        }
    }
}

/* Stashes 1 to 3, brings two of them back, and fails over the first in its first life. */
static jzx_behavior_result fail_in_replay(jzx_context *ctx, const jzx_message *msg)
{
    puppet *self = ctx->state;
    bool first = jzx_actor_incarnation(ctx->loop, ctx->self) == 1;
    if (first && msg->tag < 4 && self->number < 3) {
        self->number++;
        desk_stash(ctx, msg);
        return JZX_BEHAVIOR_OK;
    }
    if (first && msg->tag == 1) {
        say("%s:fails", self->name);
        return JZX_BEHAVIOR_FAIL;
    }
    return desk_open(ctx, msg);
}

static void test_a_redelivered_message_keeps_its_place_in_front_of_the_stash_R18(void)
{
    desk d;
    jzx_spawn_opts opts = {.behavior = fail_in_replay, .flags = JZX_SPAWN_REDELIVER};
    desk_start(&d, NULL, &opts, &often);
    TELL_AND_RUN(&d, 1, 2, 3, S_UNSTASH + 2, 5);
    CHECK_WORK("a~1 a~2 a~3 a:fails a:1 a:2 a:3 a:5");
    desk_close(&d);
}

static jzx_behavior_result serve_and_fail(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag == 3 && jzx_actor_incarnation(ctx->loop, ctx->self) == 1) {
        CHECK_OK(jzx_unstash(ctx, JZX_UNSTASH_ALL));
        return JZX_BEHAVIOR_FAIL;
    }
    return jzx_actor_incarnation(ctx->loop, ctx->self) == 1 ? desk_closed(ctx, msg)
                                                            : desk_open(ctx, msg);
}

static void test_a_redelivered_message_comes_behind_older_ones_it_brought_back_R6(void)
{
    desk d;
    jzx_spawn_opts opts = {.behavior = serve_and_fail, .flags = JZX_SPAWN_REDELIVER};
    desk_start(&d, NULL, &opts, &often);
    TELL_AND_RUN(&d, 1, 2, 3, 4);
    CHECK_WORK("a~1 a~2 a:1 a:2 a:3 a:4");
    desk_close(&d);
}

static jzx_action always_resume(void *ctx, const jzx_failure *failure)
{
    (void)ctx;
    (void)failure;
    return JZX_ACTION_RESUME;
}

/* Not the first of its lane, and still the one that failed. */
static void test_a_resumed_actor_does_not_get_it_again_behind_what_it_brought_back_R18(void)
{
    static const jzx_supervisor_spec resume = {.intensity = 10, .decide = always_resume};
    desk d;
    jzx_spawn_opts opts = {.behavior = serve_and_fail, .flags = JZX_SPAWN_REDELIVER};
    desk_start(&d, NULL, &opts, &resume);
    TELL_AND_RUN(&d, 1, 2, 3, 4);
    CHECK_WORK("a~1 a~2 a~1 a~2 a~4");
    desk_close(&d);
}

static void test_the_stash_comes_before_a_younger_message_that_is_redelivered_R18(void)
{
    desk d;
    jzx_spawn_opts opts = {.flags = JZX_SPAWN_REDELIVER};
    const jzx_supervisor_spec limited = {.intensity = 2, .on_limit = JZX_LIMIT_STOP_CHILD};
    desk_start(&d, NULL, &opts, &limited);
    TELL_AND_RUN(&d, 1, 2, T_FAIL); /* which fails every life */
    CHECK_WORK("a~1 a~2 a~1 a~2 a~1 a~2");
    CHECK_ENDED(&d.r, &d.a, JZX_REASON_FAILED);
    CHECK_DEAD(&d.r, DEAD(JZX_DEAD_STOPPED, 1), DEAD(JZX_DEAD_STOPPED, 2),
               DEAD(JZX_DEAD_STOPPED, T_FAIL)); /* it was to come again */
    desk_close(&d);
}

/* What the parent says to failure number n. */
static jzx_action restart_then_resume(void *ctx, const jzx_failure *failure)
{
    uint64_t *failures = ctx;
    (void)failure;
    return ++*failures == 1 ? JZX_ACTION_RESTART : JZX_ACTION_RESUME;
}

static void test_a_resumed_actor_has_its_stash_and_behavior_as_before_R18(void)
{
    desk d;
    uint64_t failures = 1;
    const jzx_supervisor_spec resume = {
        .intensity = 1000, .decide = restart_then_resume, .decide_ctx = &failures};
    desk_start(&d, NULL, NULL, &resume);
    TELL_AND_RUN(&d, 1, 2, S_OPEN, T_FAIL, 3);
    CHECK_WORK("a~1 a~2 a:3");
    CHECK_EQ(desk_facts(&d).stashed, 2);
    TELL_AND_RUN(&d, S_UNSTASH + S_ALL);
    CHECK_WORK("a:1 a:2");
    desk_close(&d);
}

/* Fails over 1, which is redelivered and set aside; brings it back and fails, and is resumed. */
static jzx_behavior_result fail_after_unstash(jzx_context *ctx, const jzx_message *msg)
{
    puppet *self = ctx->state;
    if (msg->tag == 1 && ++self->number <= 2) {
        if (self->number == 1) {
            return JZX_BEHAVIOR_FAIL;
        }
        desk_stash(ctx, msg);
        return JZX_BEHAVIOR_OK;
    }
    if (msg->tag == 2) {
        parcels[2].owned++;
        CHECK_OK(jzx_unstash(ctx, JZX_UNSTASH_ALL));
        return JZX_BEHAVIOR_FAIL;
    }
    return desk_open(ctx, msg);
}

static void test_what_was_redelivered_and_set_aside_is_not_taken_for_the_one_that_failed_R18(void)
{
    desk d;
    uint64_t failures = 0;
    const jzx_supervisor_spec both = {
        .intensity = 1000, .decide = restart_then_resume, .decide_ctx = &failures};
    jzx_spawn_opts opts = {.behavior = fail_after_unstash, .flags = JZX_SPAWN_REDELIVER};
    desk_start(&d, NULL, &opts, &both);
    send_parcel(&d, F_VALUE, 1, 0);
    send_parcel(&d, F_BARE, 2, 0); /* this one cannot be redelivered */
    rig_idle(&d.r);
    CHECK_EQ(failures, 2);
    CHECK_WORK("a~1 a:1");
    desk_close(&d);
}

static void test_with_drop_queue_a_restart_buries_the_stash_too_R18(void)
{
    desk d;
    jzx_spawn_opts opts = {.flags = JZX_SPAWN_DROP_QUEUE};
    desk_start(&d, NULL, &opts, &often);
    send_parcel(&d, F_DROP, 1, 0);
    send_parcel(&d, F_COPY, 2, JZX_SEND_URGENT);
    rig_idle(&d.r);
    TELL_AND_RUN(&d, T_FAIL, 3);
    CHECK_WORK("a~2 a~1");
    CHECK_DEAD(&d.r, DEAD(JZX_DEAD_FAILED_ON, T_FAIL), DEAD(JZX_DEAD_RESTARTED, 2),
               DEAD(JZX_DEAD_RESTARTED, 1), DEAD(JZX_DEAD_RESTARTED, 3));
    CHECK_EQ(parcels[1].drops, 1);
    desk_close(&d);
}

static puppet sibling;

static void begin_both(jzx_context *ctx, puppet *self, uint32_t what)
{
    desk_begin(ctx, self, what);
    if (what == IN_INIT) {
        jzx_spawn_opts opts = puppet_opts(&sibling);
        puppet_spawn_with(ctx->loop, &sibling, &opts);
    }
}

static void test_a_sibling_that_is_taken_down_keeps_its_stash_R18(void)
{
    static const jzx_supervisor_spec all = {.strategy = JZX_ONE_FOR_ALL, .intensity = 10};
    desk d = {.policy = &all};
    play_open(&d.r, NULL);
    puppet_name(&d.a, "a");
    puppet_name(&sibling, "b");
    puppet_name(&d.p, "p");
    d.p.arg = &d;
    d.p.during = begin_both;
    jzx_spawn_opts parent = puppet_opts(&d.p);
    puppet_spawn_with(d.r.loop, &d.p, &parent);
    rig_idle(&d.r);
    TELL_AND_RUN(&d, 1, 2);
    tell(&d.r, &sibling, T_FAIL);
    rig_idle(&d.r);
    CHECK_EQ(d.a.ups, 2);
    TELL_AND_RUN(&d, S_SERVE);
    CHECK_WORK("a~1 a~2 b:fail a~1 a~2 a:1 a:2");
    desk_close(&d);
}

static void end_stop(desk *d)
{
    CHECK_OK(jzx_stop(d->r.loop, d->a.id));
}
static void end_kill(desk *d)
{
    CHECK_OK(jzx_kill(d->r.loop, d->a.id));
}
static void end_drained(desk *d)
{
    CHECK_OK(jzx_stop_drained(d->r.loop, d->a.id));
}
static void end_result(desk *d)
{
    tell(&d->r, &d->a, T_STOP);
}
static void end_fail(desk *d)
{
    tell(&d->r, &d->a, T_PANIC);
}
/* Marks what came back from the stash; sets everything aside in its first life. */
static jzx_behavior_result mark_lives(jzx_context *ctx, const jzx_message *msg)
{
    const puppet *self = ctx->state;
    if (!desk_is_work(msg)) {
        return desk_order(ctx, msg);
    }
    say("%s:%x%s", self->name, (unsigned)msg->tag, jzx_was_stashed(ctx) ? "+" : "");
    if (jzx_actor_incarnation(ctx->loop, ctx->self) == 1) {
        CHECK_OK(jzx_stash(ctx));
    }
    return JZX_BEHAVIOR_OK;
}

/* To the next life they are messages like any other: it set nothing aside. */
static void test_no_message_counts_as_stashed_in_the_next_life_R18(void)
{
    desk d;
    jzx_spawn_opts opts = {.behavior = mark_lives, .max_msgs = 1};
    desk_start(&d, NULL, &opts, &often);
    TELL_AND_RUN(&d, 1, 2, 3);
    TELL(&d, S_UNSTASH + 2);
    REQUIRE_OK(try_urgent(d.r.loop, d.a.id, 4));
    rig_idle(&d.r);
    CHECK_WORK("a:1 a:2 a:3 a:4 a:1+ a:2+");
    TELL_AND_RUN(&d, T_FAIL);
    CHECK_WORK("a:4 a:1 a:2 a:3");
    desk_close(&d);
}

static void (*const ends[])(desk *d) = {end_stop, end_kill, end_drained, end_result, end_fail};

static void fill_stash(desk *d)
{
    send_parcel(d, F_DROP, 1, 0);
    send_parcel(d, F_COPY, 2, 0);
    send_parcel(d, F_VALUE, 3, JZX_SEND_URGENT);
    send_parcel(d, F_DROP, 4, 0);
    rig_idle(&d->r);
    CHECK_WORK("a~3 a~1 a~2 a~4");
}

static void test_at_every_end_the_stash_becomes_dead_letters_in_order_R16(void)
{
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        desk d;
        desk_start(&d, NULL, NULL, NULL);
        fill_stash(&d);
        ends[i](&d);
        rig_idle(&d.r);
        CHECK(is_gone(&d.r, &d.a));
        uint32_t dead[8];
        static const uint32_t want[] = {DEAD(JZX_DEAD_FAILED_ON, T_PANIC),
                                        DEAD(JZX_DEAD_STOPPED, 3), DEAD(JZX_DEAD_STOPPED, 1),
                                        DEAD(JZX_DEAD_STOPPED, 2), DEAD(JZX_DEAD_STOPPED, 4)};
        size_t from = ends[i] == end_fail ? 0 : 1;
        check_tags(__LINE__, dead, dead_facts(&d.r, dead, COUNT_OF(dead)), want + from,
                   COUNT_OF(want) - from);
        CHECK_EQ(parcels[1].drops, 1);
        CHECK_EQ(parcels[4].drops, 1);
        desk_close(&d);
    }
}

static void test_the_stash_dies_before_what_was_queued_after_it_R16(void)
{
    desk d;
    desk_start(&d, NULL, NULL, NULL);
    TELL_AND_RUN(&d, 1, 2);
    TELL(&d, T_STOP, 3, 4);
    rig_idle(&d.r);
    CHECK_DEAD(&d.r, DEAD(JZX_DEAD_STOPPED, 1), DEAD(JZX_DEAD_STOPPED, 2),
               DEAD(JZX_DEAD_STOPPED, 3), DEAD(JZX_DEAD_STOPPED, 4));
    desk_close(&d);
}

static void test_drain_drop_releases_the_stash_silently_R16(void)
{
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        desk d;
        jzx_spawn_opts opts = {.drain = JZX_DRAIN_DROP};
        desk_start(&d, NULL, &opts, NULL);
        fill_stash(&d);
        ends[i](&d);
        rig_idle(&d.r);
        uint32_t none[4];
        CHECK_EQ(dead_facts(&d.r, none, 4), ends[i] == end_fail ? 1 : 0); /* what it failed on */
        CHECK_EQ(rig_counters(&d.r).dead_by[JZX_DEAD_DROPPED], 4);
        CHECK_EQ(parcels[1].drops + parcels[4].drops, 2);
        desk_close(&d);
    }
}

static jzx_behavior_result take_redirected(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    CHECK_EQ(jzx_was_stashed(ctx), 0); /* not by this one */
    (void)self;
    parcel_check(msg);
    return JZX_BEHAVIOR_OK;
}

static void test_drain_redirect_sends_the_stash_on_R16(void)
{
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        desk d;
        /* Who takes it comes first, so that it is there to be named. */
        play_open(&d.r, NULL);
        memset(parcels, 0, sizeof parcels);
        puppet *heir = puppet_start(&d.r, take_redirected, NULL);
        d.opts = (jzx_spawn_opts){.drain = JZX_DRAIN_REDIRECT, .redirect_to = heir->id};
        puppet_name(&d.a, "a");
        desk_spawn(d.r.loop, &d);
        rig_idle(&d.r);
        said_clear();
        fill_stash(&d);
        ends[i](&d);
        rig_idle(&d.r);
        CHECK_LOG(heir, 3, 1, 2, 4);
        CHECK_EQ(rig_counters(&d.r).redirected, 4);
        CHECK_EQ(rig_counters(&d.r).dead, ends[i] == end_fail ? 1 : 0); /* what it failed on */
        CHECK_EQ(parcels[1].drops, 1);
        desk_close(&d);
        puppet_free(heir);
    }
}

static void test_a_drained_stop_does_not_wait_for_the_stash_but_serves_what_comes_back_R6(void)
{
    desk d;
    desk_start(&d, NULL, NULL, NULL);
    TELL_AND_RUN(&d, 1, 2, 3);
    TELL(&d, S_OPEN, S_UNSTASH + 2, 4);
    CHECK_OK(jzx_stop_drained(d.r.loop, d.a.id));
    rig_idle(&d.r);
    CHECK_WORK("a~1 a~2 a~3 a:1 a:2 a:4");
    CHECK_ENDED(&d.r, &d.a, JZX_REASON_SHUTDOWN);
    CHECK_DEAD(&d.r, DEAD(JZX_DEAD_STOPPED, 3));
    desk_close(&d);
}

static void test_a_deferred_stop_can_serve_the_stash_R15(void)
{
    desk d;
    desk_start(&d, NULL, NULL, NULL);
    d.a.answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    TELL_AND_RUN(&d, 1, 2);
    TELL(&d, S_SERVE, T_STOP);
    CHECK_OK(jzx_stop(d.r.loop, d.a.id));
    rig_idle(&d.r);
    CHECK_WORK("a~1 a~2 a:1 a:2");
    CHECK_ENDED(&d.r, &d.a, JZX_REASON_NORMAL);
    CHECK_EQ(rig_counters(&d.r).dead, 0);
    desk_close(&d);
}

static void test_the_end_of_the_loop_buries_the_stash_R16(void)
{
    desk d;
    desk_start(&d, NULL, NULL, NULL);
    fill_stash(&d);
    desk_close(&d); /* which checks that nothing leaks */
    CHECK_EQ(parcels[1].drops, 1);
    CHECK_EQ(parcels[4].drops, 1);
}

static uint32_t dropped_msgs;

static void count_drop_msg(const jzx_message *msg)
{
    CHECK(msg->data == &parcels[msg->tag]);
    dropped_msgs++;
}

static void test_data_without_drop_dies_as_it_does_in_the_mailbox_R4(void)
{
    for (uint32_t hook = 0; hook < 2; hook++) {
        desk d;
        jzx_spawn_opts opts = {.drop_msg = hook ? count_drop_msg : NULL};
        dropped_msgs = 0;
        desk_start(&d, NULL, &opts, NULL);
        send_parcel(&d, F_BARE, 1, 0);
        send_parcel(&d, F_BARE, 2, 0);
        rig_idle(&d.r);
        end_stop(&d);
        rig_idle(&d.r);
        CHECK_EQ(dropped_msgs, hook ? 2 : 0);
        CHECK_EQ(rig_counters(&d.r).abandoned, hook ? 0 : 2);
        desk_close(&d);
    }
}

static void take_three(jzx_context *ctx, puppet *self)
{
    (void)self;
    CHECK_OK(jzx_stash_set_cap(ctx, 3));
}

static void test_the_limit_stays_until_the_actor_ends_R18(void)
{
    desk d;
    desk_start(&d, NULL, NULL, &often);
    inside(&d.r, &d.a, take_three);
    TELL_AND_RUN(&d, T_FAIL, 1, 2, 3, 4);
    CHECK_WORK("a~1 a~2 a~3 a!STASH_FULL");
    desk_close(&d);
}

static void test_a_restart_needs_no_memory_for_the_stash_R9(void)
{
    desk d;
    desk_start(&d, NULL, NULL, &often);
    fill_stash(&d);
    TELL(&d, T_FAIL);
    jzx_fault_arm_alloc(d.r.fault, 1, 1);
    rig_idle(&d.r);
    jzx_fault_arm_alloc(d.r.fault, 0, 0);
    TELL_AND_RUN(&d, S_SERVE);
    CHECK_WORK("a~3 a~1 a~2 a~4 a:3 a:1 a:2 a:4");
    desk_close(&d);
}

static const jzt_test tests[] = {
    {"a_restart_puts_the_stash_in_front_of_the_mailbox_R18",
     test_a_restart_puts_the_stash_in_front_of_the_mailbox_R18},
    {"urgent_ones_go_back_to_their_lane_at_a_restart_R18",
     test_urgent_ones_go_back_to_their_lane_at_a_restart_R18},
    {"a_message_that_is_set_aside_and_fails_comes_again_once_R18",
     test_a_message_that_is_set_aside_and_fails_comes_again_once_R18},
    {"a_redelivered_message_keeps_its_place_in_front_of_the_stash_R18",
     test_a_redelivered_message_keeps_its_place_in_front_of_the_stash_R18},
    {"a_redelivered_message_comes_behind_older_ones_it_brought_back_R6",
     test_a_redelivered_message_comes_behind_older_ones_it_brought_back_R6},
    {"a_resumed_actor_does_not_get_it_again_behind_what_it_brought_back_R18",
     test_a_resumed_actor_does_not_get_it_again_behind_what_it_brought_back_R18},
    {"the_stash_comes_before_a_younger_message_that_is_redelivered_R18",
     test_the_stash_comes_before_a_younger_message_that_is_redelivered_R18},
    {"a_resumed_actor_has_its_stash_and_behavior_as_before_R18",
     test_a_resumed_actor_has_its_stash_and_behavior_as_before_R18},
    {"what_was_redelivered_and_set_aside_is_not_taken_for_the_one_that_failed_R18",
     test_what_was_redelivered_and_set_aside_is_not_taken_for_the_one_that_failed_R18},
    {"with_drop_queue_a_restart_buries_the_stash_too_R18",
     test_with_drop_queue_a_restart_buries_the_stash_too_R18},
    {"a_sibling_that_is_taken_down_keeps_its_stash_R18",
     test_a_sibling_that_is_taken_down_keeps_its_stash_R18},
    {"no_message_counts_as_stashed_in_the_next_life_R18",
     test_no_message_counts_as_stashed_in_the_next_life_R18},
    {"at_every_end_the_stash_becomes_dead_letters_in_order_R16",
     test_at_every_end_the_stash_becomes_dead_letters_in_order_R16},
    {"the_stash_dies_before_what_was_queued_after_it_R16",
     test_the_stash_dies_before_what_was_queued_after_it_R16},
    {"drain_drop_releases_the_stash_silently_R16", test_drain_drop_releases_the_stash_silently_R16},
    {"drain_redirect_sends_the_stash_on_R16", test_drain_redirect_sends_the_stash_on_R16},
    {"a_drained_stop_does_not_wait_for_the_stash_but_serves_what_comes_back_R6",
     test_a_drained_stop_does_not_wait_for_the_stash_but_serves_what_comes_back_R6},
    {"a_deferred_stop_can_serve_the_stash_R15", test_a_deferred_stop_can_serve_the_stash_R15},
    {"the_end_of_the_loop_buries_the_stash_R16", test_the_end_of_the_loop_buries_the_stash_R16},
    {"data_without_drop_dies_as_it_does_in_the_mailbox_R4",
     test_data_without_drop_dies_as_it_does_in_the_mailbox_R4},
    {"the_limit_stays_until_the_actor_ends_R18", test_the_limit_stays_until_the_actor_ends_R18},
    {"a_restart_needs_no_memory_for_the_stash_R9", test_a_restart_needs_no_memory_for_the_stash_R9},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
