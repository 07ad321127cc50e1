/* Goal: a subscriber to dead letters hears of none after it unsubscribed, ended or restarted (R5,
 * R16, R18, R21). Method: simulation; letters_kit.h. */
#include "letters_kit.h"

static void test_only_an_actor_subscribes_R21(void)
{
    desk d;
    desk_open(&d, NULL);
    CHECK_EQ(jzx_dead_letters_subscribe(NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_dead_letters_unsubscribe(NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_dead_letters_subscribe(d.r.loop), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_dead_letters_unsubscribe(d.r.loop), JZX_ERR_INVALID_ARG);
    desk_close(&d, NULL, 0);
}

static jzx_behavior_result stop_then_subscribe(jzx_context *ctx, const jzx_message *msg,
                                               puppet *self)
{
    (void)msg;
    (void)self;
    CHECK_OK(jzx_stop(ctx->loop, ctx->self));
    CHECK_EQ(jzx_dead_letters_subscribe(ctx->loop), JZX_ERR_STOPPING);
    CHECK_OK(jzx_dead_letters_unsubscribe(ctx->loop));
    return JZX_BEHAVIOR_OK;
}

static void test_an_actor_that_is_stopping_gets_no_subscription_R16(void)
{
    desk d;
    desk_open(&d, NULL);
    puppet *s = puppet_start(&d.r, stop_then_subscribe, NULL);
    tell(&d.r, s, WORK);
    rig_idle(&d.r);
    CHECK_EQ(s->deinits, 1);
    desk_close(&d, NULL, 0);
    puppet_free(s);
}

/* Its own leftovers are letters; they are news for others, not for itself. */
static void test_a_subscription_ends_with_its_actor_R16(void)
{
    desk d;
    reader rd[2];
    desk_open(&d, NULL);
    reader_start(&d, &rd[0], NULL);
    reader_start(&d, &rd[1], NULL);
    uint64_t revoked = rig_counters(&d.r).revoked;
    tell(&d.r, rd[0].self, END);
    make_letters(d.r.loop, d.box, 1); /* a notice that nobody will see */
    tell(&d.r, rd[0].self, WORK);
    tell(&d.r, rd[0].self, WORK);
    rig_idle(&d.r);
    CHECK_EQ(rd[0].self->deinits, 1);
    CHECK_EQ(rd[0].notices, 0);
    CHECK_EQ(rig_counters(&d.r).revoked, revoked + 1);
    CHECK_EQ(rd[1].told, 3);
    CHECK_EQ(rd[1].read, 3);
    make_letters(d.r.loop, d.box, 1);
    rig_idle(&d.r);
    CHECK_EQ(rd[1].told, 4);
    desk_close(&d, rd, 2);
}

static jzx_behavior_result linger(jzx_context *ctx, const struct jzx_signal *signal)
{
    (void)ctx;
    return signal->kind == JZX_SIGNAL_PRE_STOP ? JZX_BEHAVIOR_DEFER : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result raise_child(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (msg->tag == WORK) {
        jzx_spawn_opts opts = {
            .behavior = puppet_behavior, .on_signal = linger, .stop_timeout_ms = 100};
        opts.state = self;
        REQUIRE_OK(jzx_spawn(ctx->loop, &opts, NULL));
    }
    return reader_on(ctx, msg, self);
}

/* While it waits for its children its code still runs for notices; an answer that makes a letter
 * must not keep it there. */
static void test_a_subscriber_that_is_ending_is_told_no_more_R16(void)
{
    desk d;
    reader rd;
    desk_open(&d, NULL);
    reader_start(&d, &rd, NULL);
    rd.self->on = raise_child;
    tell(&d.r, rd.self, WORK);
    rig_idle(&d.r);
    CHECK_OK(jzx_stop(d.r.loop, rd.self->id));
    REQUIRE_OK(jzx_kit_run(d.r.kit, 10));
    CHECK_EQ(jzx_actor_state(d.r.loop, rd.self->id), JZX_STATE_STOPPING);
    rd.makes = 1;
    make_letters(d.r.loop, d.box, 1);
    REQUIRE_OK(jzx_kit_run(d.r.kit, 200));
    CHECK_EQ(jzx_actor_state(d.r.loop, rd.self->id), JZX_STATE_TERMINATED);
    CHECK_EQ(rd.notices, 0);
    desk_close(&d, &rd, 1);
}

static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    puppet *self = arg;
    self->id = ctx->self;
    self->number++;
    ctx->state = self;
    return JZX_BEHAVIOR_OK;
}

static void test_a_subscription_ends_with_its_incarnation_R18(void)
{
    desk d;
    reader rd;
    desk_open(&d, NULL);
    reader_new(&d, &rd);
    jzx_child_spec child = {.id = "reader",
                            .behavior = puppet_behavior,
                            .init = begin,
                            .arg = rd.self,
                            .deinit = puppet_deinit};
    jzx_supervisor_init sup = {.children = &child, .child_count = 1};
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn_supervisor(d.r.loop, &sup, &id));
    REQUIRE_OK(jzx_loop_run_until_started(d.r.loop, id));
    tell(&d.r, rd.self, SUBSCRIBE);
    rig_idle(&d.r);
    CHECK_OK(rd.err);
    tell(&d.r, rd.self, FAIL);
    make_letters(d.r.loop, d.box, 1); /* queued when it fails */
    tell(&d.r, rd.self, WORK);        /* kept */
    rig_idle(&d.r);
    CHECK_EQ(rd.self->number, 2);
    make_letters(d.r.loop, d.box, 1);
    rig_idle(&d.r);
    CHECK_EQ(rd.notices, 0);
    CHECK_LOG(rd.self, SUBSCRIBE, FAIL, WORK);
    tell(&d.r, rd.self, SUBSCRIBE);
    rig_idle(&d.r);
    make_letters(d.r.loop, d.box, 1);
    rig_idle(&d.r);
    CHECK_EQ(rd.notices, 1);
    CHECK_EQ(rd.told, 4); /* what it failed on, and three of the test */
    desk_close(&d, &rd, 1);
}

static void test_a_loop_may_be_destroyed_with_notices_queued_R5(void)
{
    desk d;
    reader rd[3];
    desk_open(&d, NULL);
    for (size_t i = 0; i < COUNT_OF(rd); i++) {
        reader_start(&d, &rd[i], NULL);
    }
    make_letters(d.r.loop, d.box, 2);
    for (size_t i = 0; i < COUNT_OF(rd); i++) {
        tell(&d.r, rd[i].self, WORK); /* letters of the destruction itself */
    }
    desk_close(&d, rd, COUNT_OF(rd));
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, test_##name                                                                         \
    }
static const jzt_test tests[] = {
    TEST(only_an_actor_subscribes_R21),
    TEST(an_actor_that_is_stopping_gets_no_subscription_R16),
    TEST(a_subscription_ends_with_its_actor_R16),
    TEST(a_subscriber_that_is_ending_is_told_no_more_R16),
    TEST(a_subscription_ends_with_its_incarnation_R18),
    TEST(a_loop_may_be_destroyed_with_notices_queued_R5),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
