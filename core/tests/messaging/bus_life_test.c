/* Goal: a subscription ends when it is ended, with its actor and with its incarnation, and leaves
 * nothing behind; what is published is released once, when nobody needs it any more; a bus outlives
 * its loop (R4, R5, R16, R18).
 * Method: simulation; listeners that unsubscribe, fail, restart and end at every step of an event,
 * payloads that count their drops. */
#include "bus_fixture.h"

/* Payloads. */

typedef struct cargo {
    uint64_t value;
    uint32_t *drops;
} cargo;

static void drop_cargo(void *data)
{
    cargo *c = data;
    (*c->drops)++;
    free(c);
}

static cargo *cargo_new(uint64_t value, uint32_t *drops)
{
    cargo *c = malloc(sizeof *c);
    REQUIRE(c != NULL);
    *c = (cargo){value, drops};
    return c;
}

static void ship(hall *h, uint64_t value, uint32_t *drops)
{
    REQUIRE_OK(
        jzx_bus_publish(h->bus, h->t, cargo_new(value, drops), sizeof(cargo), drop_cargo, 1));
}

static void test_data_is_shared_and_dropped_once_when_it_is_overwritten_R4(void)
{
    hall h;
    uint32_t drops = 0;
    hall_open(&h, 2);
    listener *a = listener_start(&h.r, h.bus, NULL);
    listener *b = listener_start(&h.r, h.bus, NULL);
    subscribe(&h.r, a, "t", NULL);
    subscribe(&h.r, b, "*", NULL);
    for (uint64_t i = 0; i < 5; i++) {
        ship(&h, i, &drops);
        rig_idle(&h.r);
        CHECK_EQ(drops, i < 2 ? 0 : i - 1);
    }
    CHECK_EQ(a->count, 5);
    CHECK_EQ(b->count, 5);
    hall_close(&h, (listener *[]){a, b}, 2);
    CHECK_EQ(drops, 5);
}

static void overwrite(jzx_context *ctx, listener *self, const jzx_message *msg)
{
    (void)ctx;
    const cargo *c = msg->data;
    uint64_t value = c->value;
    self->during = NULL;
    uint32_t *drops = c->drops;
    for (uint64_t i = 0; i < 4; i++) {
        CHECK_OK(
            jzx_bus_publish(self->bus, 1, cargo_new(10 + i, drops), sizeof(cargo), drop_cargo, 1));
    }
    CHECK_EQ(c->value, value); /* still there: it is in hand */
    CHECK_EQ(*drops, 2);
}

static void test_an_event_in_hand_stays_when_it_is_overwritten_R4(void)
{
    hall h;
    uint32_t drops = 0;
    hall_open(&h, 2);
    listener *l = listener_start(&h.r, h.bus, NULL);
    subscribe(&h.r, l, "t", NULL);
    l->during = overwrite;
    ship(&h, 1, &drops);
    rig_idle(&h.r);
    CHECK_EQ(drops, 3);
    CHECK_EQ(l->count, 3);
    CHECK_EQ(l->lags, 1);
    CHECK_EQ(l->lag[0].lost, 2);
    hall_close(&h, &l, 1);
    CHECK_EQ(drops, 5);
}

static void test_refused_data_stays_the_callers_unless_it_is_consumed_R4(void)
{
    hall h;
    uint32_t drops = 0;
    hall_open(&h, 2);
    jzx_topic_opts typed = {.flags = JZX_TOPIC_TAG, .tag = 1};
    jzx_topic topic = 0;
    REQUIRE_OK(jzx_bus_topic(h.bus, "typed", &typed, &topic));
    cargo *c = cargo_new(1, &drops);
    CHECK_EQ(jzx_bus_publish(h.bus, 99, c, sizeof *c, drop_cargo, 1), JZX_ERR_NO_SUCH_TOPIC);
    CHECK_EQ(jzx_bus_publish(h.bus, topic, c, sizeof *c, drop_cargo, 2), JZX_ERR_WRONG_TYPE);
    jzx_send_opts opts = {.data = c, .len = sizeof *c, .drop = drop_cargo, .tag = 2};
    CHECK_EQ(jzx_bus_publish_to(h.bus, "typed", &opts), JZX_ERR_WRONG_TYPE);
    CHECK_EQ(drops, 0);
    opts.flags = JZX_SEND_CONSUME;
    CHECK_EQ(jzx_bus_publish_to(h.bus, "typed", &opts), JZX_ERR_WRONG_TYPE);
    CHECK_EQ(drops, 1);
    hall_close(&h, NULL, 0);
}

static void check_copy(jzx_context *ctx, listener *self, const jzx_message *msg)
{
    (void)ctx;
    char want[200];
    memset(want, (int)('a' + self->count % 26), sizeof want);
    CHECK(msg->len <= sizeof want && memcmp(msg->data, want, msg->len) == 0);
    CHECK((uintptr_t)msg->data % 16 == 0);
}

static void test_copies_of_any_length_arrive_whole(void)
{
    hall h;
    hall_open(&h, 0);
    listener *l = listener_start(&h.r, h.bus, NULL);
    l->during = check_copy;
    subscribe(&h.r, l, "t", NULL);
    char bytes[200];
    for (size_t len = 0; len < sizeof bytes; len++) {
        memset(bytes, (int)('a' + (len + 1) % 26), len);
        REQUIRE_OK(jzx_bus_publish_copy(h.bus, h.t, bytes, len, 1));
        memset(bytes, '!', len);
    }
    rig_idle(&h.r);
    CHECK_EQ(l->count, 200);
    hall_close(&h, &l, 1);
}

/* Ends of subscriptions. */

static void test_unsubscribing_is_final_and_leaves_nothing(void)
{
    hall h;
    uint32_t drops = 0;
    hall_open(&h, 2);
    listener *l = listener_start(&h.r, h.bus, NULL);
    subscribe(&h.r, l, "t", NULL); /* what is made once is made */
    listener_call(&h.r, l, do_unsubscribe, NULL);
    size_t bytes = rig_bytes(&h.r);
    subscribe(&h.r, l, "t", NULL);
    uint64_t revoked = rig_counters(&h.r).revoked;
    call leave = {do_unsubscribe, NULL};
    listener_order(&h.r, l, &leave); /* before the event, by its place */
    ship(&h, 1, &drops);
    ship(&h, 2, &drops);
    rig_idle(&h.r);
    CHECK_OK(l->err);
    CHECK_EQ(l->count, 0);
    CHECK(rig_counters(&h.r).revoked - revoked <= 1);
    CHECK_EQ(bus_counts(&h).subscriptions, 0);
    listener_call(&h.r, l, do_unsubscribe, NULL);
    CHECK_EQ(l->err, JZX_ERR_NO_SUCH_REF);
    jzx_sub_counts counts;
    CHECK_EQ(jzx_bus_sub_stats(h.r.loop, l->self->id, l->ref, &counts), JZX_ERR_NO_SUCH_REF);
    shout(&h, h.t, 1, 2);
    CHECK_EQ(drops, 2);
    CHECK(rig_bytes(&h.r) - bytes <= 2 * (size_t)160); /* two events, which have no data */
    hall_close(&h, &l, 1);
}

static void leave_now(jzx_context *ctx, listener *self, const jzx_message *msg)
{
    (void)msg;
    const jzx_event *event = jzx_bus_event_of(ctx);
    CHECK_OK(jzx_bus_unsubscribe(ctx->loop, self->ref));
    CHECK_EQ(jzx_bus_unsubscribe(ctx->loop, self->ref), JZX_ERR_NO_SUCH_REF);
    CHECK(jzx_bus_event_of(ctx) == event);
    CHECK_STR(event->topic_name, "t");
    self->during = NULL;
}

static void leave_and_return(jzx_context *ctx, listener *self, const jzx_message *msg)
{
    leave_now(ctx, self, msg);
    CHECK_OK(jzx_bus_subscribe(ctx->loop, self->bus, "t", NULL, &self->ref));
}

static void test_a_subscription_may_end_or_begin_in_its_own_event(void)
{
    for (int again = 0; again < 2; again++) {
        hall h;
        hall_open(&h, 0);
        listener *l = listener_start(&h.r, h.bus, NULL);
        subscribe(&h.r, l, "t", NULL);
        l->during = again ? leave_and_return : leave_now;
        shout(&h, h.t, 1, 20); /* more than one look at the bus */
        rig_idle(&h.r);
        CHECK_VALUES(l, 0, 1, 1);
        hall_say(&h, h.t, 21, 3);
        CHECK_EQ(l->count, again ? 4 : 1);
        hall_close(&h, &l, 1);
    }
}

/* The program has let go, the last subscription goes while its event is in hand. */
static void test_the_last_subscription_takes_the_bus_with_it(void)
{
    hall h;
    uint32_t drops = 0;
    hall_open(&h, 4);
    listener *l = listener_start(&h.r, h.bus, NULL);
    subscribe(&h.r, l, "t", NULL);
    l->during = leave_now;
    for (uint64_t i = 0; i < 3; i++) {
        ship(&h, i, &drops);
    }
    jzx_bus_release(h.bus);
    CHECK_EQ(drops, 0);
    rig_idle(&h.r);
    CHECK_EQ(l->count, 1);
    CHECK_EQ(drops, 3);
    rig_close(&h.r);
    listener_free(h.speaker);
    listener_free(l);
}

static void test_a_subscription_ends_with_its_actor_R16(void)
{
    for (int how = 0; how < 4; how++) {
        hall h;
        uint32_t drops = 0;
        hall_open(&h, 4);
        listener *l = listener_start(&h.r, h.bus, NULL);
        listener *stays = listener_start(&h.r, h.bus, NULL);
        subscribe(&h.r, l, "t", NULL);
        subscribe(&h.r, l, "*", NULL);
        subscribe(&h.r, stays, "t", NULL);
        if (how == 0) {
            tell(&h.r, l->self, END);
        } else if (how == 1) {
            tell(&h.r, l->self, FAIL);
        }
        for (uint64_t i = 0; i < 3; i++) {
            ship(&h, i, &drops);
        }
        if (how == 2) {
            CHECK_OK(jzx_kill(h.r.loop, l->self->id));
        } else if (how == 3) {
            CHECK_OK(jzx_stop(h.r.loop, l->self->id));
        }
        rig_idle(&h.r);
        CHECK_EQ(l->self->deinits, 1);
        CHECK_EQ(l->count, 0);
        CHECK_EQ(stays->count, 3);
        CHECK_EQ(bus_counts(&h).subscriptions, 1);
        shout(&h, h.t, 1, 4);
        CHECK_EQ(drops, 3);
        rig_idle(&h.r);
        CHECK_EQ(stays->count, 7);
        hall_close(&h, (listener *[]){l, stays}, 2);
    }
}

static void test_a_drained_stop_hands_over_what_was_queued_R6(void)
{
    hall h;
    hall_open(&h, 0);
    listener *l = listener_start(&h.r, h.bus, NULL);
    subscribe(&h.r, l, "t", NULL);
    hall_say(&h, h.t, 1, 1);
    CHECK_OK(jzx_stop_drained(h.r.loop, l->self->id));
    hall_say(&h, h.t, 2, 1);
    CHECK_EQ(l->self->deinits, 1);
    CHECK_VALUES(l, 0, 1, 1);
    hall_close(&h, &l, 1);
}

static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    puppet *self = arg;
    listener *l = self->arg;
    self->id = ctx->self;
    self->number++;
    ctx->state = self;
    CHECK_OK(jzx_bus_subscribe(ctx->loop, l->bus, "t", NULL, &l->ref));
    return JZX_BEHAVIOR_OK;
}

static void fail_now(jzx_context *ctx, listener *self, const jzx_message *msg)
{
    (void)msg;
    self->during = NULL;
    jzx_panic(ctx, 7, "as told");
}

static void test_a_subscription_ends_with_its_incarnation_R18(void)
{
    for (int inside = 0; inside < 2; inside++) {
        hall h;
        uint32_t drops = 0;
        hall_open(&h, 8);
        listener *l = listener_new(h.bus);
        jzx_child_spec child = {.id = "listener",
                                .behavior = puppet_behavior,
                                .init = begin,
                                .arg = l->self,
                                .deinit = puppet_deinit};
        jzx_supervisor_init sup = {.children = &child, .child_count = 1};
        jzx_actor_id id = JZX_NOBODY;
        REQUIRE_OK(jzx_spawn_supervisor(h.r.loop, &sup, &id));
        REQUIRE_OK(jzx_loop_run_until_started(h.r.loop, id));
        jzx_sub_ref first = l->ref;
        if (inside) {
            l->during = fail_now;
        } else {
            tell(&h.r, l->self, FAIL);
        }
        for (uint64_t i = 0; i < 5; i++) {
            ship(&h, i, &drops);
        }
        rig_idle(&h.r);
        CHECK_EQ(l->self->number, 2);
        CHECK(l->ref != first);
        CHECK_EQ(l->count, inside);
        CHECK_EQ(bus_counts(&h).subscriptions, 1);
        hall_say(&h, h.t, 20, 2);
        CHECK_EQ(l->count, inside + 2);
        shout(&h, h.t, 1, 8);
        CHECK_EQ(drops, 5);
        jzx_bus_release(h.bus);
        rig_close(&h.r);
        listener_free(h.speaker);
        listener_free(l);
    }
}

static void stop_then_subscribe(jzx_context *ctx, listener *self, void *arg)
{
    (void)arg;
    CHECK_OK(jzx_stop(ctx->loop, ctx->self));
    CHECK_EQ(jzx_bus_subscribe(ctx->loop, self->bus, "t", NULL, NULL), JZX_ERR_STOPPING);
}

static void subscribe_at_the_end(jzx_context *ctx, puppet *self, uint32_t what)
{
    (void)what; /* a bare puppet has one hook */
    const listener *l = self->arg;
    CHECK_EQ(jzx_bus_subscribe(ctx->loop, l->bus, "t", NULL, NULL), JZX_ERR_STOPPING);
}

static void test_an_actor_that_is_stopping_gets_no_subscription_R16(void)
{
    hall h;
    hall_open(&h, 0);
    listener *l = listener_start(&h.r, h.bus, NULL);
    l->self->during = subscribe_at_the_end;
    listener_call(&h.r, l, stop_then_subscribe, NULL);
    CHECK_EQ(l->self->deinits, 1);
    CHECK_EQ(bus_counts(&h).subscriptions, 0);
    hall_close(&h, &l, 1);
}

static jzx_behavior_result linger(jzx_context *ctx, const struct jzx_signal *signal)
{
    (void)ctx;
    return signal->kind == JZX_SIGNAL_PRE_STOP ? JZX_BEHAVIOR_DEFER : JZX_BEHAVIOR_OK;
}

static void raise_child(jzx_context *ctx, listener *self, void *arg)
{
    (void)arg;
    jzx_spawn_opts opts = {.behavior = puppet_behavior,
                           .on_signal = linger,
                           .stop_timeout_ms = 100,
                           .state = self->self};
    CHECK_OK(jzx_spawn(ctx->loop, &opts, NULL));
}

/* It waits for its child and would hear of what it publishes itself, for ever. */
static void test_a_subscriber_that_is_ending_is_told_no_more_R16(void)
{
    hall h;
    hall_open(&h, 0);
    listener *l = listener_start(&h.r, h.bus, NULL);
    subscribe(&h.r, l, "t", NULL);
    listener_call(&h.r, l, raise_child, NULL);
    CHECK_OK(jzx_stop(h.r.loop, l->self->id));
    REQUIRE_OK(jzx_kit_run(h.r.kit, 10));
    CHECK_EQ(jzx_actor_state(h.r.loop, l->self->id), JZX_STATE_STOPPING);
    run what = {h.t, 1, 3};
    call tell = {do_publish, &what};
    listener_order(&h.r, h.speaker, &tell);
    REQUIRE_OK(jzx_kit_run(h.r.kit, 10));
    shout(&h, h.t, 4, 3);
    REQUIRE_OK(jzx_kit_run(h.r.kit, 200));
    CHECK_EQ(jzx_actor_state(h.r.loop, l->self->id), JZX_STATE_TERMINATED);
    CHECK_EQ(l->count, 0);
    hall_close(&h, &l, 1);
}

static void test_a_loop_may_be_destroyed_with_events_queued_R5(void)
{
    enum { CROWD = 5 };
    hall h;
    uint32_t drops = 0;
    listener *all[CROWD];
    hall_open(&h, 4);
    for (size_t i = 0; i < CROWD; i++) {
        all[i] = listener_start(&h.r, h.bus, NULL);
        subscribe(&h.r, all[i], i % 2 ? "t" : "*", NULL);
    }
    for (uint64_t i = 0; i < 6; i++) {
        ship(&h, i, &drops);
    }
    REQUIRE_OK(jzx_loop_destroy(h.r.loop));
    h.r.kit->loop = NULL;
    CHECK_EQ(bus_counts(&h).subscriptions, 0);
    /* The handle is still good, and says so. */
    CHECK_EQ(jzx_bus_publish_u64(h.bus, h.t, 1, 1), JZX_ERR_LOOP_CLOSED);
    CHECK_EQ(bus_counts(&h).published, 6);
    CHECK_EQ(drops, 2);
    CHECK(jzx_bus_retain(h.bus) == h.bus);
    jzx_bus_release(h.bus);
    CHECK_EQ(drops, 2);
    jzx_bus_release(h.bus);
    CHECK_EQ(drops, 6);
    rig_close(&h.r);
    listener_free(h.speaker);
    for (size_t i = 0; i < CROWD; i++) {
        listener_free(all[i]);
    }
}

static void publish_at_the_end(jzx_context *ctx, puppet *self, uint32_t what)
{
    (void)what; /* a bare puppet has one hook */
    const listener *l = self->arg;
    (void)ctx;
    jzx_err err = jzx_bus_publish_u64(l->bus, 1, 77, 77);
    CHECK(err == JZX_OK || err == JZX_ERR_LOOP_CLOSED);
}

static void test_an_actor_may_publish_its_end(void)
{
    hall h;
    hall_open(&h, 4);
    listener *l = listener_start(&h.r, h.bus, NULL);
    listener *ends = listener_start(&h.r, h.bus, NULL);
    subscribe(&h.r, l, "t", NULL);
    subscribe(&h.r, ends, "t", NULL);
    ends->self->during = publish_at_the_end;
    l->self->during = publish_at_the_end; /* while the loop is destroyed */
    tell(&h.r, ends->self, END);
    rig_idle(&h.r);
    CHECK_VALUES(l, 0, 77, 1);
    CHECK_EQ(ends->count, 0);
    hall_close_bus_last(&h, (listener *[]){l, ends}, 2); /* who publishes has a handle */
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, test_##name                                                                         \
    }
static const jzt_test tests[] = {
    TEST(data_is_shared_and_dropped_once_when_it_is_overwritten_R4),
    TEST(an_event_in_hand_stays_when_it_is_overwritten_R4),
    TEST(refused_data_stays_the_callers_unless_it_is_consumed_R4),
    TEST(copies_of_any_length_arrive_whole),
    TEST(unsubscribing_is_final_and_leaves_nothing),
    TEST(a_subscription_may_end_or_begin_in_its_own_event),
    TEST(the_last_subscription_takes_the_bus_with_it),
    TEST(a_subscription_ends_with_its_actor_R16),
    TEST(a_drained_stop_hands_over_what_was_queued_R6),
    TEST(a_subscription_ends_with_its_incarnation_R18),
    TEST(an_actor_that_is_stopping_gets_no_subscription_R16),
    TEST(a_subscriber_that_is_ending_is_told_no_more_R16),
    TEST(a_loop_may_be_destroyed_with_events_queued_R5),
    TEST(an_actor_may_publish_its_end),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
