/* Goal: every subscriber gets what is published under its topics, in order and once; whoever falls
 * behind is told how much it missed and goes on with the oldest that is kept; nothing of a
 * subscriber's keeps a publisher waiting (section 7, R6, R8, R9).
 * Method: simulation; listeners that write down what they get, publications from inside an actor
 * and from outside, small rings. */
#include "bus_fixture.h"

static void test_a_subscriber_gets_what_is_published_under_its_topic(void)
{
    hall h;
    hall_open(&h, 0);
    listener *l = listener_start(&h.r, h.bus, NULL);
    jzx_topic other = topic_of(h.bus, "other");
    hall_say(&h, h.t, 1, 3); /* before it subscribed */
    subscribe(&h.r, l, "t", NULL);
    hall_say(&h, h.t, 10, 5);
    hall_say(&h, other, 100, 5);
    shout(&h, h.t, 15, 5);
    rig_idle(&h.r);
    CHECK_VALUES(l, 0, 10, 10);
    CHECK_EQ(l->events[0].seq, 4);
    CHECK_EQ(l->events[0].sender, h.speaker->self->id);
    CHECK_EQ(l->events[9].seq, 18);
    CHECK_EQ(l->events[9].sender, JZX_NOBODY);
    CHECK_EQ(l->events[9].topic, h.t);
    CHECK_EQ(l->events[9].sub, l->ref);
    jzx_sub_counts c = sub_counts(&h, l);
    CHECK_EQ(c.published, 10);
    CHECK_EQ(c.delivered, 10);
    jzx_bus_counts b = bus_counts(&h);
    CHECK_EQ(b.published, 18);
    CHECK_EQ(b.delivered, 10);
    CHECK_EQ(b.kept, 18);
    CHECK_EQ(b.topics, 2);
    CHECK_EQ(b.subscriptions, 1);
    hall_close(&h, &l, 1);
}

static void test_all_subscribers_get_it_in_the_order_of_subscribing_R30(void)
{
    enum { CROWD = 50 };
    hall h;
    listener *all[CROWD];
    hall_open(&h, 0);
    for (size_t i = 0; i < CROWD; i++) {
        all[i] = listener_start(&h.r, h.bus, NULL);
        subscribe(&h.r, all[i], "t", NULL);
    }
    uint64_t before = bus_counts(&h).delivered;
    hall_say(&h, h.t, 1, 20);
    for (size_t i = 0; i < CROWD; i++) {
        CHECK_VALUES(all[i], 0, 1, 20);
    }
    CHECK_EQ(bus_counts(&h).delivered - before, CROWD * 20);
    hall_close(&h, all, CROWD);
}

static void test_a_prefix_covers_topics_that_come_later(void)
{
    hall h;
    hall_open(&h, 0);
    listener *l = listener_start(&h.r, h.bus, NULL);
    listener *every = listener_start(&h.r, h.bus, NULL);
    jzx_topic near = topic_of(h.bus, "orders"); /* shorter than the prefix */
    jzx_topic new_orders = topic_of(h.bus, "orders/new");
    subscribe(&h.r, l, "orders/*", NULL);
    subscribe(&h.r, every, "*", NULL);
    hall_say(&h, new_orders, 1, 2);
    hall_say(&h, near, 50, 2);
    jzx_topic old = topic_of(h.bus, "orders/old");
    hall_say(&h, old, 3, 2);
    shout(&h, h.t, 60, 2);
    shout(&h, new_orders, 5, 2);
    rig_idle(&h.r);
    CHECK_VALUES(l, 0, 1, 6);
    CHECK_EQ(l->events[2].topic, old);
    CHECK_EQ(every->count, 10);
    for (size_t i = 1; i < every->count; i++) {
        CHECK_EQ(every->events[i].seq, every->events[i - 1].seq + 1);
    }
    CHECK_EQ(sub_counts(&h, l).published, 6);
    hall_close(&h, (listener *[]){l, every}, 2);
}

static void test_subscriptions_of_one_actor_are_independent(void)
{
    hall h;
    hall_open(&h, 0);
    listener *l = listener_start(&h.r, h.bus, NULL);
    subscribe(&h.r, l, "t", NULL);
    jzx_sub_ref first = l->ref;
    subscribe(&h.r, l, "*", NULL);
    CHECK(l->ref != first);
    hall_say(&h, h.t, 1, 1);
    REQUIRE_EQ(l->count, 2);
    CHECK_EQ(l->events[0].sub, first);
    CHECK_EQ(l->events[1].sub, l->ref);
    l->ref = first;
    listener_call(&h.r, l, do_unsubscribe, NULL);
    hall_say(&h, h.t, 2, 1);
    CHECK_EQ(l->count, 3);
    hall_close(&h, &l, 1);
}

static void test_tags_out_of_range_are_filtered(void)
{
    hall h;
    hall_open(&h, 0);
    jzx_sub_opts opts = {.tag_first = 3, .tag_last = 5};
    listener *l = listener_start(&h.r, h.bus, NULL);
    subscribe(&h.r, l, "t", &opts);
    hall_say(&h, h.t, 1, 9);
    shout(&h, h.t, 1, 9);
    rig_idle(&h.r);
    CHECK_EQ(l->count, 6);
    CHECK_EQ(l->events[0].value, 3);
    CHECK_EQ(l->events[5].value, 5);
    jzx_sub_counts c = sub_counts(&h, l);
    CHECK_EQ(c.delivered, 6);
    CHECK_EQ(c.filtered, 12);
    CHECK_EQ(bus_counts(&h).filtered, 12);
    uint64_t revoked = rig_counters(&h.r).revoked;
    hall_say(&h, h.t, 8, 1);
    /* On a loop nobody is woken for it; in a pool it is found out at the turn. */
    CHECK_EQ(rig_counters(&h.r).revoked - revoked, jzt_on_pool() > 0);
    hall_close(&h, &l, 1);
}

static int is_even(void *arg, const jzx_message *msg)
{
    uint64_t *calls = arg;
    CHECK_EQ(msg->kind, JZX_KIND_EVENT);
    (*calls)++;
    return msg->u64 % 2 == 0;
}

static void test_a_filter_runs_before_delivery(void)
{
    hall h;
    uint64_t calls = 0;
    hall_open(&h, 0);
    jzx_sub_opts opts = {.filter = is_even, .filter_arg = &calls};
    listener *l = listener_start(&h.r, h.bus, NULL);
    subscribe(&h.r, l, "t", &opts);
    uint64_t handled = l->self->handled;
    hall_say(&h, h.t, 1, 40);
    shout(&h, h.t, 41, 1);
    rig_idle(&h.r);
    CHECK_EQ(calls, 41);
    CHECK_EQ(l->count, 20);
    CHECK_EQ(l->self->handled - handled, 20);
    CHECK_EQ(l->events[19].value, 40);
    jzx_sub_counts c = sub_counts(&h, l);
    CHECK_EQ(c.filtered, 21);
    CHECK_EQ(c.pending, 0);
    hall_close(&h, &l, 1);
}

static void test_who_falls_behind_is_told_and_resumes_at_the_oldest_kept(void)
{
    for (int wide = 0; wide < 2; wide++) {
        hall h;
        hall_open(&h, 4);
        listener *l = listener_start(&h.r, h.bus, NULL);
        subscribe(&h.r, l, wide ? "*" : "t", NULL);
        hall_say(&h, h.t, 1, 2);
        shout(&h, h.t, 3, 10); /* 3 to 8 are overwritten */
        jzx_sub_counts c = sub_counts(&h, l);
        CHECK_EQ(c.pending, 10);
        rig_idle(&h.r);
        REQUIRE_EQ(l->lags, 1);
        CHECK_EQ(l->lag[0].lost, 6);
        CHECK_EQ(l->lag[0].sub, l->ref);
        CHECK_EQ(l->lag[0].resumes_at, 9);
        CHECK_EQ(l->lag_at[0], 2);
        CHECK_VALUES(l, 2, 9, 4);
        c = sub_counts(&h, l);
        CHECK_EQ(c.published, 12);
        CHECK_EQ(c.lagged, 6);
        CHECK_EQ(c.pending, 0);
        CHECK_EQ(bus_counts(&h).lagged, 6);
        CHECK_EQ(bus_counts(&h).kept, 4);
        shout(&h, h.t, 13, 4);
        rig_idle(&h.r);
        CHECK_EQ(l->lags, 1); /* it caught up */
        CHECK_VALUES(l, 6, 13, 4);
        hall_close(&h, &l, 1);
    }
}

static void test_a_resync_hook_is_called_instead(void)
{
    hall h;
    hall_open(&h, 2);
    jzx_sub_opts opts = {.resync = hear_lag};
    listener *l = listener_start(&h.r, h.bus, NULL);
    subscribe(&h.r, l, "t", &opts);
    uint64_t seen = l->self->handled; /* by its behavior */
    shout(&h, h.t, 1, 5);
    rig_idle(&h.r);
    REQUIRE_EQ(l->lags, 1);
    CHECK_EQ(l->lag[0].lost, 3);
    CHECK_VALUES(l, 0, 4, 2);
    CHECK_EQ(l->self->handled, seen + 2);
    hall_close(&h, &l, 1);
}

static void test_events_of_other_topics_overwrite_too_unless_a_topic_keeps_its_own(void)
{
    hall h;
    hall_open(&h, 4);
    jzx_topic quiet = 0;
    jzx_topic_opts own = {.keep = 3};
    REQUIRE_OK(jzx_bus_topic(h.bus, "quiet", &own, &quiet));
    listener *l = listener_start(&h.r, h.bus, NULL);
    listener *safe = listener_start(&h.r, h.bus, NULL);
    listener *wide = listener_start(&h.r, h.bus, NULL);
    subscribe(&h.r, l, "t", NULL);
    subscribe(&h.r, safe, "quiet", NULL);
    subscribe(&h.r, wide, "q*", NULL);
    jzx_topic noise = topic_of(h.bus, "noise");
    shout(&h, h.t, 1, 2);
    shout(&h, quiet, 10, 4);
    shout(&h, noise, 100, 6);
    rig_idle(&h.r);
    CHECK_EQ(l->count, 0);
    REQUIRE_EQ(l->lags, 1);
    CHECK_EQ(l->lag[0].lost, 2);
    CHECK_EQ(l->lag[0].resumes_at, 13); /* nothing of its topic is kept */
    REQUIRE_EQ(safe->lags, 1);
    CHECK_EQ(safe->lag[0].lost, 1);
    CHECK_EQ(safe->lag[0].resumes_at, 4);
    CHECK_VALUES(safe, 0, 11, 3);
    REQUIRE_EQ(wide->lags, 1); /* reads what the bus keeps */
    CHECK_EQ(wide->lag[0].lost, 4);
    CHECK_EQ(wide->count, 0);
    (void)sub_counts(&h, wide);
    hall_close(&h, (listener *[]){l, safe, wide}, 3);
}

/* A subscriber that misses only what it would not have got is not told. */
static void test_what_a_prefix_does_not_cover_is_not_missed(void)
{
    hall h;
    hall_open(&h, 4);
    listener *l = listener_start(&h.r, h.bus, NULL);
    jzx_topic x = topic_of(h.bus, "x");
    shout(&h, x, 1, 1);
    subscribe(&h.r, l, "x*", NULL);
    shout(&h, h.t, 50, 20);
    shout(&h, x, 2, 1);
    rig_idle(&h.r);
    CHECK_EQ(l->lags, 0);
    CHECK_VALUES(l, 0, 2, 1);
    hall_close(&h, &l, 1);
}

static void test_a_late_subscriber_may_begin_with_what_is_kept(void)
{
    for (int wide = 0; wide < 2; wide++) {
        hall h;
        hall_open(&h, 20);
        jzx_sub_opts opts = {.flags = JZX_SUB_FROM_OLDEST};
        listener *l = listener_start(&h.r, h.bus, NULL);
        jzx_topic other = topic_of(h.bus, "other");
        hall_say(&h, h.t, 1, 30);
        hall_say(&h, other, 100, 5);
        subscribe(&h.r, l, wide ? "t*" : "t", &opts);
        CHECK_VALUES(l, 0, 16, 15);
        hall_say(&h, h.t, 31, 2);
        CHECK_VALUES(l, 0, 16, 17);
        CHECK_EQ(l->lags, 0);
        CHECK_EQ(sub_counts(&h, l).published, 17);
        hall_close(&h, &l, 1);
    }
}

static void test_a_full_mailbox_lets_events_through_R8(void)
{
    hall h;
    jzx_spawn_opts tiny = {.mailbox_cap = 1};
    hall_open(&h, 0);
    listener *l = listener_start(&h.r, h.bus, &tiny);
    subscribe(&h.r, l, "t", NULL);
    tell(&h.r, l->self, MARK);
    CHECK_EQ(jzx_send_u64(h.r.loop, l->self->id, 0, MARK), JZX_ERR_MAILBOX_FULL);
    shout(&h, h.t, 1, 3);
    rig_idle(&h.r);
    CHECK_VALUES(l, 0, 1, 3);
    hall_close(&h, &l, 1);
}

static void do_send_around(jzx_context *ctx, listener *self, void *arg)
{
    const listener *to = arg;
    CHECK_OK(jzx_send_u64(ctx->loop, to->self->id, 0, MARK));
    CHECK_OK(jzx_bus_publish_u64(self->bus, 1, 7, 7));
    CHECK_OK(jzx_send_u64(ctx->loop, to->self->id, 0, MARK));
    CHECK_OK(jzx_bus_publish_u64(self->bus, 1, 8, 8));
}

static void test_an_event_does_not_overtake_what_its_publisher_sent_before_R6(void)
{
    hall h;
    hall_open(&h, 0);
    listener *l = listener_start(&h.r, h.bus, NULL);
    subscribe(&h.r, l, "t", NULL);
    l->self->log_len = 0;
    listener_call(&h.r, h.speaker, do_send_around, l);
    CHECK_LOG(l->self, MARK, 7, MARK, 8);
    hall_close(&h, &l, 1);
}

static void publish_again(jzx_context *ctx, listener *self, const jzx_message *msg)
{
    (void)ctx;
    if (msg->u64 < 40) {
        CHECK_OK(jzx_bus_publish_u64(self->bus, jzx_bus_event_of(ctx)->topic, msg->u64 + 1, 0));
    }
}

static void test_a_subscriber_may_publish_what_it_hears_itself(void)
{
    hall h;
    hall_open(&h, 2);
    listener *l = listener_start(&h.r, h.bus, NULL);
    l->during = publish_again;
    subscribe(&h.r, l, "t", NULL);
    hall_say(&h, h.t, 1, 1);
    CHECK_VALUES(l, 0, 1, 40);
    CHECK_EQ(l->lags, 0);
    hall_close(&h, &l, 1);
}

static void test_a_typed_topic_refuses_what_it_does_not_take(void)
{
    hall h;
    hall_open(&h, 0);
    jzx_topic typed = 0;
    jzx_topic again = 0;
    jzx_topic_opts opts = {.flags = JZX_TOPIC_TAG | JZX_TOPIC_LEN, .tag = 7, .len = 8};
    REQUIRE_OK(jzx_bus_topic(h.bus, "typed", &opts, &typed));
    CHECK_OK(jzx_bus_topic(h.bus, "typed", &opts, &again));
    CHECK_EQ(again, typed);
    CHECK_OK(jzx_bus_topic(h.bus, "typed", NULL, &again));
    CHECK_EQ(again, typed);
    jzx_topic_opts differs[] = {opts, opts, opts, opts};
    differs[0].tag = 8;
    differs[1].len = 9;
    differs[2].keep = 5;
    differs[3].flags = JZX_TOPIC_TAG;
    for (size_t i = 0; i < COUNT_OF(differs); i++) {
        CHECK_EQ(jzx_bus_topic(h.bus, "typed", &differs[i], &again), JZX_ERR_WRONG_TYPE);
    }
    CHECK_OK(jzx_bus_publish_u64(h.bus, typed, 1, 7));
    CHECK_OK(jzx_bus_publish_copy(h.bus, typed, "12345678", 8, 7));
    CHECK_EQ(jzx_bus_publish_u64(h.bus, typed, 1, 8), JZX_ERR_WRONG_TYPE);
    CHECK_EQ(jzx_bus_publish_copy(h.bus, typed, "1234567", 7, 7), JZX_ERR_WRONG_TYPE);
    CHECK_EQ(bus_counts(&h).wrong_type, 2);
    CHECK_EQ(bus_counts(&h).published, 2);
    hall_close(&h, NULL, 0);
}

static void test_an_unknown_topic_is_refused_and_counted(void)
{
    hall h;
    hall_open(&h, 0);
    jzx_topic found = 99;
    jzx_send_opts opts = {.u64 = 5, .flags = JZX_SEND_VALUE};
    listener *l = listener_start(&h.r, h.bus, NULL);
    CHECK_EQ(jzx_bus_publish_u64(h.bus, 0, 1, 1), JZX_ERR_NO_SUCH_TOPIC);
    CHECK_EQ(jzx_bus_publish_u64(h.bus, h.t + 1, 1, 1), JZX_ERR_NO_SUCH_TOPIC);
    CHECK_EQ(jzx_bus_publish_u64(h.bus, UINT32_MAX, 1, 1), JZX_ERR_NO_SUCH_TOPIC);
    CHECK_EQ(jzx_bus_publish_to(h.bus, "nobody", &opts), JZX_ERR_NO_SUCH_TOPIC);
    CHECK_EQ(bus_counts(&h).unknown, 4);
    CHECK_EQ(bus_counts(&h).published, 0);
    CHECK_EQ(jzx_bus_find(h.bus, "nobody", &found), JZX_ERR_NO_SUCH_TOPIC);
    CHECK_EQ(found, 99);
    CHECK_EQ(try_subscribe(&h.r, l, "nobody", NULL), JZX_ERR_NO_SUCH_TOPIC);
    subscribe(&h.r, l, "t", NULL);
    CHECK_OK(jzx_bus_publish_to(h.bus, "t", &opts));
    CHECK_OK(jzx_bus_find(h.bus, "t", &found));
    CHECK_EQ(found, h.t);
    rig_idle(&h.r);
    CHECK_VALUES(l, 0, 5, 1);
    hall_close(&h, &l, 1);
}

static void test_a_thousand_topics_are_found_by_name(void)
{
    hall h;
    char name[32];
    hall_open(&h, 0);
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "topic/%u", i);
        CHECK_EQ(topic_of(h.bus, name), i + 2);
    }
    listener *l = listener_start(&h.r, h.bus, NULL);
    subscribe(&h.r, l, "topic/777", NULL);
    for (uint32_t i = 0; i < 1000; i++) {
        jzx_send_opts opts = {.u64 = i, .flags = JZX_SEND_VALUE};
        snprintf(name, sizeof name, "topic/%u", i);
        CHECK_EQ(topic_of(h.bus, name), i + 2);
        CHECK_OK(jzx_bus_publish_to(h.bus, name, &opts));
    }
    rig_idle(&h.r);
    CHECK_VALUES(l, 0, 777, 1);
    hall_close(&h, &l, 1);
}

static void test_bad_input_changes_nothing(void)
{
    hall h;
    char long_name[JZX_TOPIC_NAME_MAX + 2];
    jzx_topic topic = 7;
    jzx_bus *none = NULL;
    jzx_bus_counts counts;
    hall_open(&h, 0);
    listener *l = listener_start(&h.r, h.bus, NULL);
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    CHECK_EQ(jzx_bus_create(NULL, NULL, &none), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_bus_create(h.r.loop, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_bus_create(h.r.loop, &(jzx_bus_opts){.keep = JZX_BUS_KEEP_MAX + 1}, &none),
             JZX_ERR_TOO_BIG);
    CHECK_EQ(jzx_bus_create(h.r.loop, &(jzx_bus_opts){.reserved = 1}, &none), JZX_ERR_INVALID_ARG);
    CHECK(none == NULL);
    const char *bad[] = {NULL, "", "*", "a*b", "a*"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CHECK_EQ(jzx_bus_topic(h.bus, bad[i], NULL, &topic), JZX_ERR_INVALID_ARG);
    }
    CHECK_EQ(jzx_bus_topic(NULL, "a", NULL, &topic), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_bus_topic(h.bus, "a", NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_bus_topic(h.bus, long_name, NULL, &topic), JZX_ERR_TOO_BIG);
    CHECK_EQ(jzx_bus_topic(h.bus, "a", &(jzx_topic_opts){.flags = 4}, &topic), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_bus_topic(h.bus, "a", &(jzx_topic_opts){.keep = JZX_BUS_KEEP_MAX + 1}, &topic),
             JZX_ERR_TOO_BIG);
    CHECK_EQ(topic, 7);
    CHECK_EQ(jzx_bus_find(h.bus, NULL, &topic), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_bus_publish_u64(NULL, h.t, 1, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_bus_publish_u64(h.bus, h.t, 1, JZX_TAG_SYSTEM_FIRST), JZX_ERR_RESERVED_TAG);
    CHECK_EQ(jzx_bus_publish_copy(h.bus, h.t, NULL, 4, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_bus_publish_copy(h.bus, h.t, "", JZX_COPY_MAX + 1, 1), JZX_ERR_TOO_BIG);
    CHECK_EQ(jzx_bus_publish_to(h.bus, "t", NULL), JZX_ERR_INVALID_ARG);
    jzx_send_opts sends[] = {{.flags = JZX_SEND_URGENT}, {.deadline_ns = 1}, {.margin = 1}};
    for (size_t i = 0; i < COUNT_OF(sends); i++) {
        CHECK_EQ(jzx_bus_publish_to(h.bus, "t", &sends[i]), JZX_ERR_INVALID_ARG);
    }
    CHECK_EQ(jzx_bus_subscribe(h.r.loop, h.bus, "t", NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_bus_subscribe(NULL, h.bus, "t", NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_bus_unsubscribe(h.r.loop, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(try_subscribe(&h.r, l, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(try_subscribe(&h.r, l, "*t", NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(try_subscribe(&h.r, l, long_name, NULL), JZX_ERR_TOO_BIG);
    CHECK_EQ(try_subscribe(&h.r, l, "t", &(jzx_sub_opts){.flags = 2}), JZX_ERR_INVALID_ARG);
    CHECK_EQ(try_subscribe(&h.r, l, "t", &(jzx_sub_opts){.tag_first = 2, .tag_last = 1}),
             JZX_ERR_INVALID_ARG);
    l->bus = NULL;
    CHECK_EQ(try_subscribe(&h.r, l, "t", NULL), JZX_ERR_INVALID_ARG);
    l->ref = 12345;
    listener_call(&h.r, l, do_unsubscribe, NULL);
    CHECK_EQ(l->err, JZX_ERR_NO_SUCH_REF);
    jzx_sub_counts sub;
    CHECK_EQ(jzx_bus_sub_stats(h.r.loop, l->self->id, 1, &sub), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_bus_sub_stats(h.r.loop, 12345, 1, &sub), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_bus_sub_stats(h.r.loop, l->self->id, 1, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_bus_stats(NULL, &counts), JZX_ERR_INVALID_ARG);
    CHECK(jzx_bus_event_of(NULL) == NULL);
    CHECK(jzx_bus_retain(NULL) == NULL);
    jzx_bus_release(NULL);
    CHECK_EQ(bus_counts(&h).published, 0);
    CHECK_EQ(bus_counts(&h).topics, 1);
    CHECK_EQ(bus_counts(&h).subscriptions, 0);
    hall_close(&h, &l, 1);
}

static void test_a_bus_of_another_loop_is_refused(void)
{
    hall h;
    hall_open(&h, 0);
    rig other = rig_open_fifo(NULL);
    jzx_bus *theirs = NULL;
    REQUIRE_OK(jzx_bus_create(other.loop, NULL, &theirs));
    (void)topic_of(theirs, "t");
    listener *l = listener_start(&h.r, theirs, NULL);
    CHECK_EQ(try_subscribe(&h.r, l, "t", NULL), JZX_ERR_INVALID_ARG);
    /* But anybody may publish; it is nobody there. */
    listener *far = listener_start(&other, theirs, NULL);
    subscribe(&other, far, "t", NULL);
    run what = {1, 5, 1};
    listener_call(&h.r, l, do_publish, &what);
    rig_idle(&other);
    CHECK_VALUES(far, 0, 5, 1);
    CHECK_EQ(far->events[0].sender, JZX_NOBODY);
    jzx_bus_release(theirs);
    rig_close(&other);
    listener_free(far);
    hall_close(&h, &l, 1);
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, test_##name                                                                         \
    }
static const jzt_test tests[] = {
    TEST(a_subscriber_gets_what_is_published_under_its_topic),
    TEST(all_subscribers_get_it_in_the_order_of_subscribing_R30),
    TEST(a_prefix_covers_topics_that_come_later),
    TEST(subscriptions_of_one_actor_are_independent),
    TEST(tags_out_of_range_are_filtered),
    TEST(a_filter_runs_before_delivery),
    TEST(who_falls_behind_is_told_and_resumes_at_the_oldest_kept),
    TEST(a_resync_hook_is_called_instead),
    TEST(events_of_other_topics_overwrite_too_unless_a_topic_keeps_its_own),
    TEST(what_a_prefix_does_not_cover_is_not_missed),
    TEST(a_late_subscriber_may_begin_with_what_is_kept),
    TEST(a_full_mailbox_lets_events_through_R8),
    TEST(an_event_does_not_overtake_what_its_publisher_sent_before_R6),
    TEST(a_subscriber_may_publish_what_it_hears_itself),
    TEST(a_typed_topic_refuses_what_it_does_not_take),
    TEST(an_unknown_topic_is_refused_and_counted),
    TEST(a_thousand_topics_are_found_by_name),
    TEST(bad_input_changes_nothing),
    TEST(a_bus_of_another_loop_is_refused),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
