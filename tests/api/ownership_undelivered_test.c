/* Goal: R4 for what is not delivered: queued at the end, without a drop, values and copies, timers,
 * messages of other threads. Method: as in ownership_test.c. */
#include "ownership_kit.h"

static void count_hooked(const jzx_message *msg)
{
    current->hooked++;
    if (msg->data != NULL) {
        ((payload *)msg->data)->drops++;
    }
}

static void test_destroy_drops_what_is_queued_once(void)
{
    witness w;
    payload queued[4] = {{0}}, armed = {0};
    witness_open(&w, (jzx_spawn_opts){0}, NULL);
    for (int i = 0; i < 4; i++) {
        REQUIRE_OK(send_payload(&w, &queued[i], KEEP, i % 2 == 0 ? JZX_SEND_URGENT : 0));
    }
    jzx_timer_opts timer = {.delay_ms = 1000, .data = &armed, .drop = payload_drop, .tag = KEEP};
    REQUIRE_OK(jzx_timer_start(w.kit->loop, w.id, &timer, NULL));
    CHECK_OK(jzx_loop_destroy(w.kit->loop));
    w.kit->loop = NULL;
    CHECK_EQ(w.handled, 0);
    CHECK_EQ(w.dead, 4);
    CHECK_EQ(w.dead_reason, JZX_DEAD_LOOP_CLOSED);
    witness_close(&w);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(queued[i].drops, 1);
    }
    CHECK_EQ(armed.drops, 1);
}

static void test_undelivered_data_without_drop_goes_to_drop_msg_once(void)
{
    witness w;
    payload handled = {0}, queued = {0};
    witness_open(&w, (jzx_spawn_opts){.drop_msg = count_hooked}, NULL);
    REQUIRE_OK(jzx_send(w.kit->loop, w.id, &handled, sizeof handled, KEEP));
    CHECK_OK(jzx_kit_settle(w.kit));
    CHECK_EQ(w.hooked, 0); /* it was the behavior's */
    REQUIRE_OK(jzx_send(w.kit->loop, w.id, &queued, sizeof queued, KEEP));
    CHECK_OK(jzx_stop(w.kit->loop, w.id));
    CHECK_OK(jzx_kit_settle(w.kit));
    CHECK_EQ(w.hooked, 1);
    CHECK_EQ(queued.drops, 1);
    CHECK_EQ(handled.drops, 0);
    CHECK_EQ(counters(&w).abandoned, 0);
    witness_close(&w);
}

static void test_undelivered_data_without_drop_and_hook_is_counted_as_abandoned(void)
{
    witness w;
    payload p = {0};
    witness_open(&w, (jzx_spawn_opts){0}, NULL);
    REQUIRE_OK(jzx_send(w.kit->loop, w.id, &p, sizeof p, KEEP));
    CHECK_OK(jzx_stop(w.kit->loop, w.id));
    CHECK_OK(jzx_kit_settle(w.kit));
    CHECK_EQ(counters(&w).abandoned, 1);
    witness_close(&w);
    CHECK_EQ(p.drops, 0);
}

static void test_values_copies_and_empty_messages_need_no_release(void)
{
    witness w;
    payload p = {0};
    witness_open(&w, (jzx_spawn_opts){.drop_msg = count_hooked}, NULL);
    REQUIRE_OK(jzx_send_u64(w.kit->loop, w.id, 1, KEEP));
    REQUIRE_OK(jzx_send_copy(w.kit->loop, w.id, &p, sizeof p, KEEP));
    REQUIRE_OK(jzx_send(w.kit->loop, w.id, NULL, 0, KEEP));
    jzx_send_opts empty = {.drop = payload_drop, .tag = KEEP};
    REQUIRE_OK(jzx_send_with(w.kit->loop, w.id, &empty)); /* drop(NULL) would crash */
    CHECK_OK(jzx_stop(w.kit->loop, w.id));
    CHECK_OK(jzx_kit_settle(w.kit));
    CHECK_EQ(w.dead, 4);
    CHECK_EQ(w.hooked, 0);
    CHECK_EQ(counters(&w).abandoned, 0);
    witness_close(&w);
    CHECK_EQ(p.drops, 0);
}

static void test_a_copy_is_the_receivers_and_the_original_stays_the_callers(void)
{
    witness w;
    char text[200];
    memset(text, 'x', sizeof text);
    witness_open(&w, (jzx_spawn_opts){0}, NULL);
    jzx_probe *probe = NULL;
    const jzx_probe_record *got = NULL;
    REQUIRE_OK(jzx_probe_spawn(w.kit->loop, &probe));
    REQUIRE_OK(jzx_send_copy(w.kit->loop, jzx_probe_id(probe), text, sizeof text, KEEP));
    memset(text, 'y', sizeof text);
    REQUIRE_OK(jzx_probe_expect(probe, KEEP, 10, &got));
    CHECK_EQ(got->len, sizeof text);
    CHECK_EQ(got->bytes[0], 'x');
    CHECK_EQ(got->bytes[JZX_PROBE_BYTES - 1], 'x');
    CHECK((got->flags & JZX_MSG_COPY) != 0);
    jzx_probe_free(probe);
    witness_close(&w);
}

static void test_timer_data_is_dropped_once_whatever_becomes_of_the_timer(void)
{
    enum { FIRED, CANCELLED, TARGET_ENDED, TAKEN, PERIODIC, WAYS };
    for (int way = 0; way < WAYS; way++) {
        witness w;
        payload p = {0};
        jzx_timer_id timer = 0;
        witness_open(&w, (jzx_spawn_opts){0}, NULL);
        jzx_timer_opts opts = {.delay_ms = 10,
                               .period_ms = way == PERIODIC ? 10 : 0,
                               .data = &p,
                               .drop = payload_drop,
                               .tag = way == TAKEN || way == PERIODIC ? TAKE : KEEP};
        REQUIRE_OK(jzx_timer_start(w.kit->loop, w.id, &opts, &timer));
        if (way == CANCELLED) {
            CHECK_OK(jzx_cancel_timer(w.kit->loop, timer));
            CHECK_EQ(p.drops, 1);
        } else if (way == TARGET_ENDED) {
            CHECK_OK(jzx_stop(w.kit->loop, w.id));
        }
        CHECK_OK(jzx_kit_run(w.kit, 55));
        if (way == PERIODIC) {
            CHECK_EQ(w.handled, 5);
            CHECK_EQ(w.takes, 0); /* it belongs to the timer, not to one of its messages */
            CHECK_EQ(p.drops, 0);
            CHECK_OK(jzx_cancel_timer(w.kit->loop, timer));
        }
        CHECK_EQ(w.handled, way == FIRED || way == TAKEN ? 1 : way == PERIODIC ? 5 : 0);
        CHECK_EQ(w.dead, 0); /* a timer that never delivers makes no dead letter */
        witness_close(&w);
        CHECK_EQ(p.drops, way == TAKEN ? 0 : 1);
    }
}

static void test_timer_cancelled_while_its_message_is_queued_drops_once(void)
{
    witness w;
    payload p = {0};
    witness_open(&w, (jzx_spawn_opts){0}, NULL);
    /* Both are due in one millisecond and fire in this order (R26): the first message finds the
     * second one queued behind it. */
    jzx_timer_opts opts = {.delay_ms = 10, .data = &p, .drop = payload_drop, .tag = KEEP};
    REQUIRE_OK(jzx_send_after(w.kit->loop, w.id, 10, NULL, 0, CANCEL, NULL));
    REQUIRE_OK(jzx_timer_start(w.kit->loop, w.id, &opts, &w.timer));
    CHECK_OK(jzx_kit_run(w.kit, 50));
    CHECK_EQ(w.handled, 1);
    CHECK_EQ(p.drops, 1);
    CHECK_EQ(counters(&w).live, 1); /* the cancel gave OK */
    CHECK_EQ(counters(&w).revoked, 1);
    CHECK_EQ(w.dead, 0);
    witness_close(&w);
    CHECK_EQ(p.drops, 1);
}

static void test_cancelled_timer_without_drop_goes_to_drop_msg(void)
{
    witness w;
    payload p = {0};
    jzx_timer_id timer = 0;
    witness_open(&w, (jzx_spawn_opts){.drop_msg = count_hooked}, NULL);
    REQUIRE_OK(jzx_send_after(w.kit->loop, w.id, 10, &p, sizeof p, KEEP, &timer));
    CHECK_OK(jzx_cancel_timer(w.kit->loop, timer));
    CHECK_EQ(w.hooked, 1);
    CHECK_EQ(p.drops, 1);
    CHECK_EQ(counters(&w).abandoned, 0);
    witness_close(&w);
    CHECK_EQ(w.hooked, 1);
}

static jzx_err send_async(jzx_sender *sender, jzx_actor_id to, payload *p, uint32_t flags)
{
    jzx_send_opts opts = {.data = p, .drop = payload_drop, .tag = KEEP, .flags = flags};
    return jzx_send_async_with(sender, to, &opts);
}

static void test_async_message_is_dropped_once_also_across_destroy(void)
{
    witness w;
    payload handled = {0}, dead = {0}, refused = {0}, in_flight = {0}, after = {0}, eaten = {0};
    jzx_actor_id other = JZX_NOBODY;
    jzx_sender *sender = NULL;
    witness_open(&w, (jzx_spawn_opts){0}, jzx_env_epoll());
    REQUIRE_OK(jzx_spawn(w.kit->loop, &(jzx_spawn_opts){.behavior = behave, .state = &w}, &other));
    REQUIRE_OK(jzx_sender_open(w.kit->loop, JZX_SENDER_SHARED, &sender));

    REQUIRE_OK(send_async(sender, w.id, &handled, 0));
    CHECK_OK(jzx_loop_run_until_idle(w.kit->loop));
    CHECK_EQ(handled.drops, 1);
    REQUIRE_OK(send_async(sender, w.id, &dead, 0));
    CHECK_OK(jzx_stop(w.kit->loop, w.id));
    CHECK_EQ(send_async(sender, w.id, &refused, 0), JZX_ERR_STOPPING);
    CHECK_OK(jzx_loop_run_until_idle(w.kit->loop));
    CHECK_EQ(dead.drops, 1);
    CHECK_EQ(send_async(sender, w.id, &refused, 0), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(refused.drops, 0);

    REQUIRE_OK(send_async(sender, other, &in_flight, 0));
    CHECK_OK(jzx_loop_destroy(w.kit->loop));
    w.kit->loop = NULL;
    CHECK_EQ(in_flight.drops, 1);
    CHECK_EQ(send_async(sender, other, &after, 0), JZX_ERR_LOOP_CLOSED);
    CHECK_EQ(after.drops, 0);
    CHECK_EQ(send_async(sender, other, &eaten, JZX_SEND_CONSUME), JZX_ERR_LOOP_CLOSED);
    CHECK_EQ(eaten.drops, 1);
    jzx_sender_release(sender);
    CHECK_EQ(w.handled, 1);
    CHECK_EQ(w.dead, 2);
    witness_close(&w);
}

static const jzt_test tests[] = {
    {"destroy_drops_what_is_queued_once", test_destroy_drops_what_is_queued_once},
    {"undelivered_data_without_drop_goes_to_drop_msg_once",
     test_undelivered_data_without_drop_goes_to_drop_msg_once},
    {"undelivered_data_without_drop_and_hook_is_counted_as_abandoned",
     test_undelivered_data_without_drop_and_hook_is_counted_as_abandoned},
    {"values_copies_and_empty_messages_need_no_release",
     test_values_copies_and_empty_messages_need_no_release},
    {"a_copy_is_the_receivers_and_the_original_stays_the_callers",
     test_a_copy_is_the_receivers_and_the_original_stays_the_callers},
    {"timer_data_is_dropped_once_whatever_becomes_of_the_timer",
     test_timer_data_is_dropped_once_whatever_becomes_of_the_timer},
    {"timer_cancelled_while_its_message_is_queued_drops_once",
     test_timer_cancelled_while_its_message_is_queued_drops_once},
    {"cancelled_timer_without_drop_goes_to_drop_msg",
     test_cancelled_timer_without_drop_goes_to_drop_msg},
    {"async_message_is_dropped_once_also_across_destroy",
     test_async_message_is_dropped_once_also_across_destroy},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
