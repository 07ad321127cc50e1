/* Goal: who gets a message, and what happens when workers are full, so that nothing is lost or
 * reordered. Method: simulation; workers that hold on to what they get until told otherwise, so
 * that every mailbox is as full as the test wants. */
#include "router_fixture.h"

#define CHECK_HANDS(crew_, ...)                                                                    \
    do {                                                                                           \
        static const uint32_t want_[] = {__VA_ARGS__};                                             \
        uint32_t got_[NOTES_MAX];                                                                  \
        for (size_t i_ = 0; i_ < (crew_)->len; i_++) {                                             \
            got_[i_] = (crew_)->notes[i_].hand;                                                    \
        }                                                                                          \
        check_tags(__LINE__, got_, (crew_)->len, want_, COUNT_OF(want_));                          \
    } while (0)

static void test_round_robin_serves_workers_in_turn(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_ROUND_ROBIN, 3);
    for (uint64_t i = 0; i < 7; i++) {
        work(&r, router, i);
        rig_idle(&r);
    }
    CHECK_HANDS(c, 0, 1, 2, 0, 1, 2, 0);
    check_all_once(c, 7);
    rig_close(&r);
    free(c);
}

static void test_random_is_decided_by_the_seed(void)
{
    uint32_t first[40];
    for (int round = 0; round < 2; round++) {
        rig r = rig_open_fifo(NULL);
        crew *c = crew_new();
        jzx_router_opts opts = crew_opts(c, JZX_ROUTE_RANDOM, 4);
        opts.seed = 7;
        jzx_actor_id router = crew_route(&r, &opts);
        for (uint64_t i = 0; i < 40; i++) {
            work(&r, router, i);
            rig_idle(&r);
        }
        check_all_once(c, 40);
        uint32_t used = 0;
        for (uint32_t i = 0; i < 40; i++) {
            used |= 1u << c->notes[i].hand;
            CHECK(round == 0 || first[i] == c->notes[i].hand);
            first[i] = c->notes[i].hand;
        }
        CHECK_EQ(used, 15);
        rig_close(&r);
        free(c);
    }
}

static void test_least_mailbox_takes_the_emptiest(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_LEAST_MAILBOX, 3);
    c->hands[0].holds = c->hands[1].holds = c->hands[2].holds = true;
    for (uint64_t i = 0; i < 3; i++) { /* straight to a worker: 0 has three, 1 has one */
        work(&r, c->hands[0].id, 100 + i);
    }
    work(&r, c->hands[1].id, 200);
    rig_idle(&r);
    for (uint64_t i = 0; i < 4; i++) {
        work(&r, router, i);
        rig_idle(&r);
    }
    let_go(&r, &c->hands[2]);
    let_go(&r, &c->hands[1]);
    CHECK_EQ(c->hands[2].got, 2);
    CHECK_EQ(c->hands[1].got, 3);
    let_go(&r, &c->hands[0]);
    CHECK_EQ(c->hands[0].got, 3);
    rig_close(&r);
    free(c);
}

static void test_a_worker_sees_the_original_message(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_ROUND_ROBIN, 1);
    jzx_probe *probe = NULL;
    REQUIRE_OK(jzx_probe_spawn(r.loop, &probe));
    jzx_send_opts opts = {.u64 = 5, .tag = WORK, .flags = JZX_SEND_VALUE};
    REQUIRE_OK(jzx_probe_send(probe, router, &opts));
    rig_idle(&r);
    CHECK_EQ(c->len, 1);
    CHECK_EQ(c->notes[0].sender, jzx_probe_id(probe));
    CHECK_EQ(c->notes[0].value, 5);
    jzx_probe_free(probe);
    rig_close(&r);
    free(c);
}

static void test_a_full_worker_is_passed_over(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_ROUND_ROBIN, 2);
    c->hands[0].holds = true;
    for (uint64_t i = 0; i < 20; i++) {
        work(&r, router, i);
        rig_idle(&r);
    }
    CHECK_EQ(c->hands[1].got, 16); /* four are with worker 0 */
    stats_reader s = stats_of(&r, router);
    CHECK_EQ(s.stats.routed, 20);
    CHECK_EQ(s.stats.skipped, 1);
    CHECK_EQ(s.stats.waited, 0);
    CHECK_EQ(s.stats.full, 1);
    CHECK_EQ(s.workers[0].routed, 4);
    CHECK_EQ(s.workers[0].full, 1);
    CHECK_EQ(s.workers[1].routed, 16);
    let_go(&r, &c->hands[0]);
    check_all_once(c, 20);
    work(&r, router, 20);
    work(&r, router, 21);
    rig_idle(&r);
    CHECK_EQ(c->hands[0].got, 5); /* it told of room and takes its turn again */
    rig_close(&r);
    free(c);
}

/* All full: as many as the router's own cap wait, then senders are refused. */
static void test_all_full_is_backpressure_and_nothing_is_lost(void)
{
    for (uint32_t strategy = 0; strategy <= JZX_ROUTE_LEAST_MAILBOX; strategy++) {
        rig r = rig_open(NULL);
        crew *c = crew_new();
        jzx_actor_id router = crew_start(&r, c, strategy, 2);
        c->hands[0].holds = c->hands[1].holds = true;
        uint64_t sent = 0;
        jzx_err err = JZX_OK;
        while (err == JZX_OK && sent < 1000) {
            err = jzx_send_u64(r.loop, router, sent, WORK);
            sent += err == JZX_OK;
            rig_idle(&r);
        }
        CHECK_EQ(err, JZX_ERR_MAILBOX_FULL);
        CHECK_EQ(sent, 64 + 2 * 4);
        stats_reader s = stats_of(&r, router);
        CHECK_EQ(s.stats.waiting, 64);
        CHECK_EQ(s.stats.full, 2);
        let_go(&r, &c->hands[0]); /* one is enough to get everything through */
        CHECK_EQ(c->hands[0].got, sent - 4);
        let_go(&r, &c->hands[1]);
        check_all_once(c, sent);
        check_rising(c);
        CHECK_EQ(stats_of(&r, router).stats.waiting, 0);
        rig_close(&r);
        free(c);
    }
}

static void test_messages_wait_in_order_behind_each_other(void)
{
    static const uint32_t caps[] = {1, 2, 3, 7};
    for (size_t k = 0; k < COUNT_OF(caps); k++) {
        rig r = rig_open(NULL);
        crew *c = crew_new();
        jzx_spawn_opts worker = hand_opts;
        worker.mailbox_cap = caps[k];
        jzx_router_opts opts = crew_opts(c, JZX_ROUTE_ROUND_ROBIN, 1);
        opts.worker = &worker;
        opts.mailbox_cap = 200;
        jzx_actor_id router = crew_route(&r, &opts);
        c->hands[0].holds = true;
        uint64_t sent = 0;
        for (; sent < 150; sent++) {
            work(&r, router, sent);
        }
        rig_idle(&r);
        order(&r, &c->hands[0], GO);
        for (; sent < 190; sent++) { /* new ones come while the old ones are let in */
            work(&r, router, sent);
        }
        rig_idle(&r);
        check_all_once(c, sent);
        check_rising(c);
        rig_close(&r);
        free(c);
    }
}

static void test_a_router_that_waits_costs_nothing(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_ROUND_ROBIN, 2);
    c->hands[0].holds = c->hands[1].holds = true;
    for (uint64_t i = 0; i < 40; i++) {
        work(&r, router, i);
    }
    rig_idle(&r);
    jzx_counters before = rig_counters(&r);
    REQUIRE_OK(jzx_kit_run(r.kit, 10000));
    jzx_counters after = rig_counters(&r);
    CHECK_EQ(after.handled, before.handled);
    CHECK_EQ(after.timers, 0);
    rig_close(&r);
    free(c);
}

static void test_an_urgent_message_overtakes_those_that_wait(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_ROUND_ROBIN, 1);
    c->hands[0].holds = true;
    for (uint64_t i = 0; i < 10; i++) {
        work(&r, router, i);
    }
    rig_idle(&r);
    jzx_send_opts urgent = {.u64 = 99, .tag = WORK, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
    REQUIRE_OK(jzx_send_with(r.loop, router, &urgent));
    rig_idle(&r);
    CHECK_EQ(c->len, 1); /* full for others, but an eighth beyond the cap is for the urgent */
    CHECK_EQ(c->notes[0].value, 99);
    let_go(&r, &c->hands[0]);
    CHECK_EQ(c->len, 11);
    rig_close(&r);
    free(c);
}

/* R13: those that wait may expire; others behind them go on, in order. */
static void test_what_expires_while_it_waits_does_not_stop_the_others(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_router_opts opts = crew_opts(c, JZX_ROUTE_ROUND_ROBIN, 1);
    opts.mailbox_cap = 200;
    jzx_actor_id router = crew_route(&r, &opts);
    c->hands[0].holds = true;
    for (uint64_t i = 0; i < 4; i++) {
        work(&r, router, i);
    }
    rig_idle(&r);
    for (uint64_t i = 0; i < 100; i++) {
        jzx_send_opts mortal = {.u64 = 1000 + i,
                                .tag = WORK,
                                .flags = JZX_SEND_VALUE,
                                .deadline_ns = jzx_loop_now(r.loop) + 50 * MS};
        REQUIRE_OK(jzx_send_with(r.loop, router, &mortal));
    }
    for (uint64_t i = 4; i < 60; i++) {
        work(&r, router, i);
    }
    REQUIRE_OK(jzx_kit_run(r.kit, 100));
    CHECK_EQ(stats_of(&r, router).stats.waiting, 156);
    order(&r, &c->hands[0], GO);
    REQUIRE_OK(jzx_kit_settle(r.kit));
    check_all_once(c, 60);
    check_rising(c);
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_EXPIRED], 100);
    rig_close(&r);
    free(c);
}

static void test_asks_through_a_router_are_answered_by_the_worker(void)
{
    for (uint32_t strategy = 0; strategy <= JZX_ROUTE_LEAST_MAILBOX; strategy++) {
        rig r = rig_open_fifo(NULL);
        crew *c = crew_new();
        jzx_actor_id router = crew_start(&r, c, strategy, 2);
        asker a = ask_once(&r, router, ECHO, 7);
        CHECK_EQ(a.outcome, JZX_OUTCOME_REPLIED);
        CHECK_EQ(a.value / 100, 7);
        CHECK_EQ(a.callee, c->hands[a.value % 100].id);
        rig_close(&r);
        free(c);
    }
}

static const jzt_test tests[] = {
    {"round_robin_serves_workers_in_turn", test_round_robin_serves_workers_in_turn},
    {"random_is_decided_by_the_seed", test_random_is_decided_by_the_seed},
    {"least_mailbox_takes_the_emptiest", test_least_mailbox_takes_the_emptiest},
    {"a_worker_sees_the_original_message", test_a_worker_sees_the_original_message},
    {"a_full_worker_is_passed_over", test_a_full_worker_is_passed_over},
    {"all_full_is_backpressure_and_nothing_is_lost",
     test_all_full_is_backpressure_and_nothing_is_lost},
    {"messages_wait_in_order_behind_each_other", test_messages_wait_in_order_behind_each_other},
    {"a_router_that_waits_costs_nothing", test_a_router_that_waits_costs_nothing},
    {"an_urgent_message_overtakes_those_that_wait",
     test_an_urgent_message_overtakes_those_that_wait},
    {"what_expires_while_it_waits_does_not_stop_the_others",
     test_what_expires_while_it_waits_does_not_stop_the_others},
    {"asks_through_a_router_are_answered_by_the_worker",
     test_asks_through_a_router_are_answered_by_the_worker},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
