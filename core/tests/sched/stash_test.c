/* Goal: what is set aside keeps everything it came with, comes back ahead of all other work in the
 * order in which it arrived, and counts against the mailbox's cap all the time (R4-R8, R10, R13).
 * Method: simulation; a desk that is closed sets work aside and serves it when it opens; the kit
 * checks conservation after every step. */
#include "desk.h"

static void test_what_was_set_aside_comes_first_and_in_order_R6(void)
{
    static const uint32_t turns[] = {0, 1, 2, 3, 5, 17};
    for (size_t i = 0; i < COUNT_OF(turns); i++) {
        desk d;
        jzx_spawn_opts opts = {.max_msgs = turns[i]};
        desk_start(&d, NULL, &opts, NULL);
        TELL_AND_RUN(&d, 1, 2, 3, S_SERVE, 4, 5);
        CHECK_SAID("a~1 a~2 a~3 a:1 a:2 a:3 a:4 a:5");
        CHECK_EQ(desk_facts(&d).stashed, 0);
        desk_close(&d);
    }
}

static void test_a_part_of_the_stash_can_come_back_R6(void)
{
    desk d;
    desk_start(&d, NULL, NULL, NULL);
    TELL_AND_RUN(&d, 1, 2, 3, S_OPEN, S_UNSTASH + 2, 4);
    CHECK_SAID("a~1 a~2 a~3 a:1 a:2 a:4");
    CHECK_EQ(desk_facts(&d).stashed, 1);
    TELL_AND_RUN(&d, 5, S_UNSTASH + 200, 6);
    CHECK_SAID("a:5 a:3 a:6");
    desk_close(&d);
}

/* The second part belongs behind the first one, which has not been handled yet. */
static void test_parts_that_come_back_one_after_the_other_keep_their_order_R6(void)
{
    desk d;
    desk_start(&d, NULL, NULL, NULL);
    TELL_AND_RUN(&d, 1, 2, 3, S_OPEN, S_TWICE, 4);
    CHECK_SAID("a~1 a~2 a~3 a:1 a:2 a:4");
    TELL_AND_RUN(&d, S_UNSTASH + 1);
    CHECK_SAID("a:3");
    desk_close(&d);
}

static void test_a_message_can_be_set_aside_again_and_again_R6(void)
{
    desk d;
    desk_start(&d, NULL, NULL, NULL);
    TELL_AND_RUN(&d, 1, 2, 3);
    CHECK_SAID("a~1 a~2 a~3");
    TELL_AND_RUN(&d, 4, S_UNSTASH + S_ALL, S_UNSTASH + 2, 5);
    CHECK_SAID("a~4 a~1 a~2 a~3 a~4 a~1 a~2 a~5");
    TELL_AND_RUN(&d, S_SERVE);
    CHECK_SAID("a:1 a:2 a:3 a:4 a:5");
    desk_close(&d);
}

static void test_the_message_in_hand_can_go_and_come_back_in_one_call_R6(void)
{
    desk d;
    desk_start(&d, NULL, NULL, NULL);
    TELL_AND_RUN(&d, 1, 2, S_BOTH, 3);
    CHECK_SAID("a~1 a~2 a:1 a:2 a:both a:3");
    desk_close(&d);
}

static void test_all_kinds_of_payload_survive_the_stash_R4(void)
{
    static const size_t lengths[] = {0, 1, 63, 64, 65, 1000, COPY_MAX};
    for (form what = F_VALUE; what < FORMS; what++) {
        for (size_t i = 0; i < COUNT_OF(lengths); i++) {
            desk d;
            desk_start(&d, NULL, NULL, NULL);
            for (uint32_t tag = 1; tag <= 3; tag++) {
                jzx_send_opts opts = parcel_opts(what, tag, lengths[i]);
                REQUIRE_OK(jzx_send_with(d.r.loop, d.a.id, &opts));
            }
            rig_idle(&d.r);
            CHECK_SAID("a~1 a~2 a~3");
            CHECK_EQ(parcels[1].drops, 0);
            CHECK_EQ(desk_facts(&d).stashed, 3);
            TELL_AND_RUN(&d, S_SERVE);
            CHECK_SAID("a:1 a:2 a:3");
            CHECK_EQ(parcels[1].drops, what == F_DROP ? 1 : 0);
            CHECK_EQ(parcels[3].owned, what == F_BARE ? 1 : 0);
            CHECK_EQ(rig_counters(&d.r).dead, 0);
            desk_close(&d);
        }
    }
}

static void set_urgent(desk *d, uint32_t tag)
{
    REQUIRE_OK(try_urgent(d->r.loop, d->a.id, tag));
}

/* With turns of one message the actor has to be given another turn for what came back. */
static void test_urgent_messages_go_back_to_the_urgent_lane_R8(void)
{
    static const uint32_t turns[] = {0, 1, 2};
    for (size_t i = 0; i < COUNT_OF(turns); i++) {
        desk d;
        jzx_spawn_opts opts = {.max_msgs = turns[i]};
        desk_start(&d, NULL, &opts, NULL);
        TELL(&d, 1);
        set_urgent(&d, 2);
        TELL(&d, 3);
        set_urgent(&d, 4);
        rig_idle(&d.r);
        CHECK_SAID("a~2 a~4 a~1 a~3");
        TELL(&d, S_SERVE);
        rig_idle(&d.r);
        CHECK_SAID("a:2 a:4 a:1 a:3");
        desk_close(&d);
    }
}

static void test_an_urgent_message_alone_in_the_stash_is_not_forgotten_R8(void)
{
    desk d;
    jzx_spawn_opts opts = {.max_msgs = 1};
    desk_start(&d, NULL, &opts, NULL);
    set_urgent(&d, 1);
    rig_idle(&d.r);
    TELL_AND_RUN(&d, S_SERVE);
    CHECK_SAID("a~1 a:1");
    desk_close(&d);
}

static void test_a_partial_unstash_takes_the_oldest_of_both_lanes_R8(void)
{
    desk d;
    desk_start(&d, NULL, NULL, NULL);
    TELL(&d, 1, 2);
    set_urgent(&d, 3);
    rig_idle(&d.r);
    CHECK_SAID("a~3 a~1 a~2");
    TELL_AND_RUN(&d, S_OPEN, S_UNSTASH + 2);
    CHECK_SAID("a:1 a:2");
    TELL_AND_RUN(&d, S_UNSTASH + 1);
    CHECK_SAID("a:3");
    desk_close(&d);
}

static void test_a_deadline_goes_on_in_the_stash_R13(void)
{
    desk d;
    desk_start(&d, NULL, NULL, NULL);
    for (uint32_t tag = 1; tag <= 3; tag++) {
        jzx_send_opts opts = parcel_opts(F_DROP, tag, 1);
        opts.deadline_ns = tag == 2 ? 0 : jzx_loop_now(d.r.loop) + tag * 100 * MS;
        REQUIRE_OK(jzx_send_with(d.r.loop, d.a.id, &opts));
    }
    run_ms(&d.r, 200); /* past the first one's; the third has 300 */
    CHECK_EQ(rig_counters(&d.r).dead, 0);
    TELL_AND_RUN(&d, S_SERVE);
    CHECK_SAID("a~1 a~2 a~3 a:2 a:3");
    CHECK_DEAD(&d.r, DEAD(JZX_DEAD_EXPIRED, 1));
    for (uint32_t tag = 1; tag <= 3; tag++) {
        CHECK_EQ(parcels[tag].drops, 1);
    }
    desk_close(&d);
}

static void use_hand_once(jzx_context *ctx, puppet *self)
{
    CHECK_OK(jzx_stash(ctx));
    CHECK_EQ(jzx_stash(ctx), JZX_ERR_ALREADY);
    CHECK_EQ(jzx_discard(ctx), JZX_ERR_ALREADY);
    CHECK_EQ(jzx_forward(ctx, JZX_NOBODY), JZX_ERR_ALREADY);
    CHECK(jzx_message_take(ctx) == NULL);
    CHECK_EQ(jzx_stash_count(ctx), 1);
    self->call = NULL;
}

static jzx_behavior_result hand_once(jzx_context *ctx, const jzx_message *msg)
{
    puppet *self = ctx->state;
    if (self->call != NULL) {
        use_hand_once(ctx, self);
        return JZX_BEHAVIOR_OK;
    }
    if (msg->drop != NULL) {
        CHECK(jzx_message_take(ctx) == msg->data); /* it can again be taken when it is back */
        CHECK_EQ(jzx_stash(ctx), JZX_ERR_ALREADY);
        CHECK_EQ(jzx_discard(ctx), JZX_ERR_ALREADY);
        CHECK_EQ(jzx_forward(ctx, JZX_NOBODY), JZX_ERR_ALREADY);
    }
    return desk_open(ctx, msg);
}

static void test_a_message_can_be_moved_once_per_delivery_R4(void)
{
    for (form what = F_VALUE; what < FORMS; what++) {
        desk d;
        jzx_spawn_opts opts = {.behavior = hand_once};
        desk_start(&d, NULL, &opts, NULL);
        d.a.call = use_hand_once;
        jzx_send_opts send = parcel_opts(what, 1, 80);
        REQUIRE_OK(jzx_send_with(d.r.loop, d.a.id, &send));
        rig_idle(&d.r);
        TELL_AND_RUN(&d, S_UNSTASH + S_ALL);
        CHECK_SAID("a:1");
        CHECK_EQ(parcels[1].drops, 0); /* taken */
        CHECK_EQ(parcels[1].owned, what == F_BARE ? 1 : 0);
        desk_close(&d);
    }
}

static void test_unstash_says_when_there_is_nothing(void)
{
    desk d;
    desk_start(&d, NULL, NULL, NULL);
    TELL_AND_RUN(&d, S_UNSTASH + S_ALL, S_UNSTASH + 0);
    CHECK_SAID("a!STASH_EMPTY a!INVALID_ARG");
    TELL_AND_RUN(&d, 1, S_SERVE, S_UNSTASH + 1);
    CHECK_SAID("a~1 a:1 a!STASH_EMPTY");
    CHECK_EQ(rig_counters(&d.r).dead, 0);
    desk_close(&d);
}

/* By the mailbox's cap, and by what jzx_stash_set_cap() was given: -1 for not called. */
static const struct {
    uint32_t cap;
    int own;
    uint32_t limit;
} limits[] = {{1, -1, 1}, {2, -1, 1}, {5, -1, 3}, {8, -1, 4}, {1024, -1, 512},
              {8, 1, 1},  {8, 8, 8},  {1, 1, 1},  {8, 3, 3},  {8, 0, 4}};

static void choose_cap(jzx_context *ctx, puppet *self)
{
    size_t i = (size_t)self->number;
    if (limits[i].own >= 0) {
        CHECK_OK(jzx_stash_set_cap(ctx, (uint32_t)limits[i].own));
    }
    CHECK_EQ(jzx_stash_set_cap(ctx, limits[i].cap + 1), JZX_ERR_TOO_BIG); /* and nothing changed */
}

static void test_the_stash_has_a_limit_of_its_own_R10(void)
{
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        desk d;
        jzx_spawn_opts opts = {.mailbox_cap = limits[i].cap};
        desk_start(&d, NULL, &opts, NULL);
        d.a.number = i;
        inside(&d.r, &d.a, choose_cap);
        uint32_t limit = limits[i].limit;
        for (uint32_t n = 0; n < limit; n++) {
            tell(&d.r, &d.a, 1);
            rig_idle(&d.r);
        }
        CHECK_EQ(desk_facts(&d).stashed, limit);
        CHECK_EQ(desk_facts(&d).queued, limit);
        said_clear();
        if (limit < limits[i].cap) {
            tell(&d.r, &d.a, 1); /* stays in hand, and is then handled as it is */
            rig_idle(&d.r);
            CHECK_SAID("a!STASH_FULL");
        } else { /* the whole mailbox is set aside */
            CHECK_EQ(jzx_send_u64(d.r.loop, d.a.id, 1, 1), JZX_ERR_MAILBOX_FULL);
        }
        CHECK_EQ(desk_facts(&d).stashed, limit);
        set_urgent(&d, S_SERVE);
        rig_idle(&d.r);
        CHECK_EQ(said_times("a:1"), limit);
        CHECK_EQ(rig_counters(&d.r).dead, 0);
        desk_close(&d);
    }
}

static void lower_cap(jzx_context *ctx, puppet *self)
{
    (void)self;
    CHECK_OK(jzx_stash_set_cap(ctx, 1));
    CHECK_EQ(jzx_stash_count(ctx), 3);
}

static void test_a_lower_limit_leaves_what_is_there_R10(void)
{
    desk d;
    desk_start(&d, NULL, NULL, NULL);
    TELL_AND_RUN(&d, 1, 2, 3);
    inside(&d.r, &d.a, lower_cap);
    TELL_AND_RUN(&d, 4, S_SERVE);
    CHECK_SAID("a~1 a~2 a~3 a!STASH_FULL a:1 a:2 a:3");
    desk_close(&d);
}

/* Fills the slot that the message in hand left, before it is set aside. */
static jzx_behavior_result lose_slot(jzx_context *ctx, const jzx_message *msg)
{
    puppet *self = ctx->state;
    if (msg->tag == 1 && !jzx_was_stashed(ctx)) {
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 2, 2));
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 3, 3));
        CHECK_EQ(jzx_send_u64(ctx->loop, ctx->self, 3, 3), JZX_ERR_MAILBOX_FULL);
        CHECK_OK(jzx_stash(ctx)); /* what was accepted is never refused later */
        jzx_actor_facts facts;
        CHECK_OK(jzx_actor_inspect(ctx->loop, ctx->self, &facts));
        CHECK_EQ(facts.queued, 3); /* one beyond the cap, and no more */
        CHECK_EQ(jzx_send_u64(ctx->loop, ctx->self, 3, 3), JZX_ERR_MAILBOX_FULL);
    } else {
        say("%s:%x", self->name, (unsigned)msg->tag);
        if (msg->tag == 3) {
            CHECK_OK(jzx_unstash(ctx, 1));
        } else if (msg->tag == 2) { /* again as many as the cap */
            CHECK_EQ(jzx_send_u64(ctx->loop, ctx->self, 3, 3), JZX_ERR_MAILBOX_FULL);
        }
    }
    return JZX_BEHAVIOR_OK;
}

static void test_a_message_in_hand_can_wait_though_its_slot_was_taken_R10(void)
{
    desk d;
    jzx_spawn_opts opts = {.behavior = lose_slot, .mailbox_cap = 2};
    desk_start(&d, NULL, &opts, NULL);
    jzx_send_opts send = parcel_opts(F_DROP, 1, 8);
    REQUIRE_OK(jzx_send_with(d.r.loop, d.a.id, &send));
    rig_idle(&d.r);
    CHECK_SAID("a:2 a:3 a:1");
    CHECK_EQ(parcels[1].drops, 1);
    desk_close(&d);
}

/* Has its slot taken while a message is in hand, then sets everything aside. */
static jzx_behavior_result keep_all(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag == 1 && !jzx_was_stashed(ctx)) {
        CHECK_OK(jzx_stash_set_cap(ctx, 2));
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 2, 2));
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 3, 3));
    }
    return desk_closed(ctx, msg);
}

static void test_with_the_whole_cap_all_that_is_accepted_can_wait_R10(void)
{
    desk d;
    jzx_spawn_opts opts = {.behavior = keep_all, .mailbox_cap = 2};
    desk_start(&d, NULL, &opts, NULL);
    TELL_AND_RUN(&d, 1);
    CHECK_SAID("a~1 a~2 a~3");
    CHECK_EQ(jzx_send_u64(d.r.loop, d.a.id, 4, 4), JZX_ERR_MAILBOX_FULL);
    REQUIRE_OK(jzx_kill(d.r.loop, d.a.id));
    rig_idle(&d.r);
    CHECK_DEAD(&d.r, DEAD(JZX_DEAD_STOPPED, 1), DEAD(JZX_DEAD_STOPPED, 2),
               DEAD(JZX_DEAD_STOPPED, 3));
    desk_close(&d);
}

static void take_whole_cap(jzx_context *ctx, puppet *self)
{
    (void)self;
    CHECK_OK(jzx_stash_set_cap(ctx, 8));
}

/* Urgent messages have an eighth of their own; in the stash as in the mailbox. Ordinary ones do
 * not, and so the first of them finds its slot used. */
static void test_an_urgent_message_keeps_its_slot_beyond_the_cap_R10(void)
{
    desk d;
    jzx_spawn_opts opts = {.mailbox_cap = 8};
    desk_start(&d, NULL, &opts, NULL);
    inside(&d.r, &d.a, take_whole_cap);
    TELL(&d, 1, 2, 3, 4, 5, 6, 7, 8);
    set_urgent(&d, 9);
    CHECK_EQ(try_urgent(d.r.loop, d.a.id, 10), JZX_ERR_MAILBOX_FULL);
    rig_idle(&d.r);
    CHECK_SAID("a~9 a~1 a~2 a~3 a~4 a~5 a~6 a~7 a~8");
    CHECK_EQ(desk_facts(&d).stashed, 9);
    CHECK_EQ(try_urgent(d.r.loop, d.a.id, 10), JZX_ERR_MAILBOX_FULL);
    REQUIRE_OK(jzx_stop(d.r.loop, d.a.id));
    rig_idle(&d.r);
    CHECK_EQ(rig_counters(&d.r).dead, 9);
    desk_close(&d);
}

/* A stash counts, so nobody is told of room that is not there. */
static jzx_behavior_result ask_for_room(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (msg->tag == 1) {
        CHECK_OK(jzx_notify_room(ctx->loop, self->number));
    } else if (msg->tag == JZX_TAG_ROOM) {
        const jzx_room_notice *notice = msg->data;
        CHECK_EQ(notice->err, JZX_OK);
        say("room%u", notice->room);
    }
    return JZX_BEHAVIOR_OK;
}

static void test_room_is_told_of_when_the_stash_was_served_R12(void)
{
    desk d;
    jzx_spawn_opts opts = {.mailbox_cap = 4, .low_water = 1};
    desk_start(&d, NULL, &opts, NULL);
    puppet *s = puppet_start(&d.r, ask_for_room, NULL);
    s->number = d.a.id;
    TELL_AND_RUN(&d, 1, 2);
    tell(&d.r, s, 1);
    rig_idle(&d.r);
    CHECK_SAID("a~1 a~2"); /* two of four, and low water is one */
    TELL_AND_RUN(&d, S_SERVE);
    CHECK_EQ(said_times("room"), 1);
    CHECK_EQ(said_times("a:"), 2);
    desk_close(&d);
    puppet_free(s);
}

static void test_drop_oldest_takes_what_waits_before_what_was_set_aside_R11(void)
{
    desk d;
    jzx_spawn_opts opts = {.mailbox_cap = 4, .full_policy = JZX_FULL_DROP_OLDEST};
    desk_start(&d, NULL, &opts, NULL);
    TELL_AND_RUN(&d, 1, 2);
    TELL(&d, 3, 4, 5, 6);
    CHECK_EQ(desk_facts(&d).queued, 4);
    CHECK_DEAD(&d.r, DEAD(JZX_DEAD_DROPPED_OLDEST, 3), DEAD(JZX_DEAD_DROPPED_OLDEST, 4));
    set_urgent(&d, S_SERVE);
    rig_idle(&d.r);
    CHECK_SAID("a~1 a~2 a:1 a:2 a:5 a:6");
    desk_close(&d);
}

static void take_it_all(jzx_context *ctx, puppet *self)
{
    (void)self;
    CHECK_OK(jzx_stash_set_cap(ctx, 2));
}

static void test_with_all_set_aside_a_drop_policy_loses_the_newcomer_R11(void)
{
    for (uint32_t policy = JZX_FULL_DROP_NEWEST; policy <= JZX_FULL_DROP_OLDEST; policy++) {
        desk d;
        jzx_spawn_opts opts = {.mailbox_cap = 2, .full_policy = policy};
        desk_start(&d, NULL, &opts, NULL);
        inside(&d.r, &d.a, take_it_all);
        TELL_AND_RUN(&d, 1, 2);
        TELL_AND_RUN(&d, 3);
        CHECK_DEAD(&d.r, DEAD(JZX_DEAD_DROPPED_NEWEST, 3));
        CHECK_EQ(desk_facts(&d).stashed, 2);
        set_urgent(&d, S_SERVE);
        rig_idle(&d.r);
        CHECK_SAID("a~1 a~2 a:1 a:2");
        desk_close(&d);
    }
}

static void test_what_came_back_is_the_oldest_for_drop_oldest_R11(void)
{
    desk d;
    jzx_spawn_opts opts = {.mailbox_cap = 4, .full_policy = JZX_FULL_DROP_OLDEST, .max_msgs = 1};
    jzx_config config = {.max_actors_per_tick = 1};
    desk_start(&d, &config, &opts, NULL);
    TELL_AND_RUN(&d, 1, 2);
    TELL(&d, 3, 4);
    set_urgent(&d, S_SERVE);
    REQUIRE_OK(jzx_loop_step(d.r.loop, 0));
    CHECK_EQ(desk_facts(&d).ordinary, 4);
    TELL_AND_RUN(&d, 5);
    CHECK_SAID("a~1 a~2 a:2 a:3 a:4 a:5");
    CHECK_DEAD(&d.r, DEAD(JZX_DEAD_DROPPED_OLDEST, 1));
    desk_close(&d);
}

static jzx_behavior_result mark_replayed(jzx_context *ctx, const jzx_message *msg)
{
    const puppet *self = ctx->state;
    if (desk_is_work(msg)) {
        say("%s:%x%s", self->name, (unsigned)msg->tag, jzx_was_stashed(ctx) ? "+" : "");
        if (msg->tag <= 2 && ++parcels[msg->tag].owned <= 2) {
            CHECK_OK(jzx_stash(ctx));
        }
        return JZX_BEHAVIOR_OK;
    }
    CHECK_EQ(jzx_was_stashed(ctx), 0);
    return desk_order(ctx, msg);
}

static void test_a_message_that_came_back_can_be_told_from_others(void)
{
    desk d;
    jzx_spawn_opts opts = {.behavior = mark_replayed};
    desk_start(&d, NULL, &opts, NULL);
    CHECK_EQ(jzx_was_stashed(NULL), 0);
    TELL_AND_RUN(&d, 1, 2, 3, S_UNSTASH + S_ALL, 4, S_UNSTASH + S_ALL, 5);
    CHECK_SAID("a:1 a:2 a:3 a:1+ a:2+ a:4 a:1+ a:2+ a:5");
    desk_close(&d);
}

static void test_the_counters_say_what_was_handled_twice_R5(void)
{
    desk d;
    desk_start(&d, NULL, NULL, NULL);
    jzx_counters before = rig_counters(&d.r);
    TELL_AND_RUN(&d, 1, 2, 3);
    jzx_counters now = rig_counters(&d.r);
    CHECK_EQ(now.accepted - before.accepted, 6);
    CHECK_EQ(now.handled - before.handled, 3);
    CHECK_EQ(now.queued, 3);
    TELL_AND_RUN(&d, S_SERVE);
    now = rig_counters(&d.r);
    CHECK_EQ(now.accepted - before.accepted, 7);
    CHECK_EQ(now.handled - before.handled, 7);
    CHECK_EQ(now.queued, 0);
    desk_close(&d);
}

static const jzt_test tests[] = {
    {"what_was_set_aside_comes_first_and_in_order_R6",
     test_what_was_set_aside_comes_first_and_in_order_R6},
    {"a_part_of_the_stash_can_come_back_R6", test_a_part_of_the_stash_can_come_back_R6},
    {"parts_that_come_back_one_after_the_other_keep_their_order_R6",
     test_parts_that_come_back_one_after_the_other_keep_their_order_R6},
    {"a_message_can_be_set_aside_again_and_again_R6",
     test_a_message_can_be_set_aside_again_and_again_R6},
    {"the_message_in_hand_can_go_and_come_back_in_one_call_R6",
     test_the_message_in_hand_can_go_and_come_back_in_one_call_R6},
    {"all_kinds_of_payload_survive_the_stash_R4", test_all_kinds_of_payload_survive_the_stash_R4},
    {"urgent_messages_go_back_to_the_urgent_lane_R8",
     test_urgent_messages_go_back_to_the_urgent_lane_R8},
    {"an_urgent_message_alone_in_the_stash_is_not_forgotten_R8",
     test_an_urgent_message_alone_in_the_stash_is_not_forgotten_R8},
    {"a_partial_unstash_takes_the_oldest_of_both_lanes_R8",
     test_a_partial_unstash_takes_the_oldest_of_both_lanes_R8},
    {"a_deadline_goes_on_in_the_stash_R13", test_a_deadline_goes_on_in_the_stash_R13},
    {"a_message_can_be_moved_once_per_delivery_R4",
     test_a_message_can_be_moved_once_per_delivery_R4},
    {"unstash_says_when_there_is_nothing", test_unstash_says_when_there_is_nothing},
    {"the_stash_has_a_limit_of_its_own_R10", test_the_stash_has_a_limit_of_its_own_R10},
    {"a_lower_limit_leaves_what_is_there_R10", test_a_lower_limit_leaves_what_is_there_R10},
    {"a_message_in_hand_can_wait_though_its_slot_was_taken_R10",
     test_a_message_in_hand_can_wait_though_its_slot_was_taken_R10},
    {"with_the_whole_cap_all_that_is_accepted_can_wait_R10",
     test_with_the_whole_cap_all_that_is_accepted_can_wait_R10},
    {"an_urgent_message_keeps_its_slot_beyond_the_cap_R10",
     test_an_urgent_message_keeps_its_slot_beyond_the_cap_R10},
    {"room_is_told_of_when_the_stash_was_served_R12",
     test_room_is_told_of_when_the_stash_was_served_R12},
    {"drop_oldest_takes_what_waits_before_what_was_set_aside_R11",
     test_drop_oldest_takes_what_waits_before_what_was_set_aside_R11},
    {"with_all_set_aside_a_drop_policy_loses_the_newcomer_R11",
     test_with_all_set_aside_a_drop_policy_loses_the_newcomer_R11},
    {"what_came_back_is_the_oldest_for_drop_oldest_R11",
     test_what_came_back_is_the_oldest_for_drop_oldest_R11},
    {"a_message_that_came_back_can_be_told_from_others",
     test_a_message_that_came_back_can_be_told_from_others},
    {"the_counters_say_what_was_handled_twice_R5", test_the_counters_say_what_was_handled_twice_R5},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
