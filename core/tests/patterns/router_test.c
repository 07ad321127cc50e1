/* Goal: who gets a message, what happens when workers are full, come, go, fail and are resized, and
 * that nothing is lost or reordered meanwhile. Method: simulation; workers that hold on to what
 * they get until told otherwise, so that every mailbox is as full as the test wants. */
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

static void test_a_worker_that_fails_is_restarted_and_stays(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_ROUND_ROBIN, 2);
    jzx_actor_id before = c->hands[0].id;
    REQUIRE_OK(jzx_send_u64(r.loop, router, 0, FAIL));
    for (uint64_t i = 1; i < 7; i++) {
        work(&r, router, i);
    }
    rig_idle(&r);
    CHECK_EQ(c->hands[0].starts, 2);
    CHECK_EQ(c->hands[0].id, before);
    check_all_once(c, 7);
    CHECK_EQ(c->hands[0].got, 4);
    stats_reader s = stats_of(&r, router);
    CHECK_EQ(s.stats.workers, 2);
    CHECK_EQ(s.stats.left, 0);
    rig_close(&r);
    free(c);
}

static void test_a_worker_that_ends_leaves_the_pool(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_ROUND_ROBIN, 3);
    REQUIRE_OK(jzx_send_u64(r.loop, router, 0, STOP));
    rig_idle(&r);
    for (uint64_t i = 1; i < 7; i++) {
        work(&r, router, i);
    }
    rig_idle(&r);
    check_all_once(c, 7);
    CHECK_EQ(c->hands[0].got, 1);
    stats_reader s = stats_of(&r, router);
    CHECK_EQ(s.stats.workers, 2);
    CHECK_EQ(s.stats.wanted, 3);
    CHECK_EQ(s.stats.left, 1);
    REQUIRE_OK(jzx_router_resize(r.loop, router, 3)); /* the gap is filled */
    rig_idle(&r);
    CHECK_EQ(c->hands[0].starts, 2);
    CHECK_EQ(stats_of(&r, router).stats.workers, 3);
    rig_close(&r);
    free(c);
}

static void test_without_workers_messages_wait_for_the_first(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_ROUND_ROBIN, 2);
    REQUIRE_OK(jzx_router_resize(r.loop, router, 0));
    rig_idle(&r);
    CHECK_EQ(c->hands[0].ends + c->hands[1].ends, 2);
    for (uint64_t i = 0; i < 50; i++) {
        work(&r, router, i);
    }
    rig_idle(&r);
    stats_reader s = stats_of(&r, router);
    CHECK_EQ(s.stats.waiting, 50);
    CHECK_EQ(s.stats.no_worker, 1);
    REQUIRE_OK(jzx_router_resize(r.loop, router, 1));
    rig_idle(&r);
    check_all_once(c, 50);
    check_rising(c);
    rig_close(&r);
    free(c);
}

static void test_without_workers_messages_may_be_discarded(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_router_opts opts = crew_opts(c, JZX_ROUTE_ROUND_ROBIN, 1);
    opts.on_empty = JZX_EMPTY_DISCARD;
    jzx_actor_id router = crew_route(&r, &opts);
    c->hands[0].holds = true;
    for (uint64_t i = 0; i < 6; i++) {
        work(&r, router, i); /* two of them wait in the router */
    }
    rig_idle(&r);
    REQUIRE_OK(jzx_kill(r.loop, c->hands[0].id));
    rig_idle(&r); /* restarted, with what it had */
    REQUIRE_OK(jzx_stop(r.loop, c->hands[0].id));
    rig_idle(&r);
    asker a = ask_once(&r, router, ECHO, 1);
    CHECK_EQ(a.outcome, JZX_OUTCOME_FORGOTTEN);
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_DISCARDED], 3);
    CHECK_EQ(stats_of(&r, router).stats.waiting, 0);
    rig_close(&r);
    free(c);
}

static void test_growing_and_shrinking_loses_nothing(void)
{
    rig r = rig_open(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_ROUND_ROBIN, 2);
    static const uint32_t sizes[] = {5, 1, 8, 3, 3, 0, 2};
    uint64_t sent = 0;
    for (size_t k = 0; k < COUNT_OF(sizes); k++) {
        for (int i = 0; i < 30; i++) {
            work(&r, router, sent++);
        }
        REQUIRE_OK(jzx_router_resize(r.loop, router, sizes[k]));
        rig_idle(&r);
        stats_reader s = stats_of(&r, router);
        CHECK_EQ(s.stats.workers, sizes[k]);
        CHECK_EQ(s.stats.wanted, sizes[k]);
    }
    check_all_once(c, sent);
    CHECK_EQ(rig_counters(&r).dead, 0);
    rig_close(&r);
    free(c);
}

static void test_a_worker_that_leaves_handles_what_it_has(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_ROUND_ROBIN, 2);
    for (uint64_t i = 0; i < 8; i++) {
        work(&r, c->hands[i % 2].id, i); /* straight to the workers, and not yet handled */
    }
    REQUIRE_OK(jzx_router_resize(r.loop, router, 0));
    rig_idle(&r);
    check_all_once(c, 8);
    CHECK_EQ(c->hands[0].ends, 1);
    CHECK_EQ(rig_counters(&r).dead, 0);
    rig_close(&r);
    free(c);
}

static void test_a_resize_by_ask_is_answered(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_ROUND_ROBIN, 2);
    asker a = ask_once(&r, router, JZX_TAG_ROUTER_RESIZE, 5);
    CHECK_EQ(a.outcome, JZX_OUTCOME_REPLIED);
    CHECK_EQ(a.tag, JZX_TAG_ROUTER_RESIZE);
    CHECK_EQ(a.value, 5);
    a = ask_once(&r, router, JZX_TAG_ROUTER_RESIZE, JZX_ROUTER_WORKERS_MAX + 1);
    CHECK_EQ(a.value, 5); /* too many: unchanged */
    CHECK_EQ(jzx_router_resize(r.loop, router, JZX_ROUTER_WORKERS_MAX + 1), JZX_ERR_TOO_BIG);
    CHECK_EQ(ask_once(&r, router, JZX_TAG_ROUTER_STATS, 0).tag, JZX_TAG_ROUTER_STATS);
    rig_close(&r);
    free(c);
}

static void test_orders_reach_a_router_whose_mailbox_is_full(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_ROUND_ROBIN, 1);
    c->hands[0].holds = true;
    uint64_t sent = 0;
    while (jzx_send_u64(r.loop, router, sent, WORK) == JZX_OK) {
        sent++;
        rig_idle(&r);
    }
    REQUIRE_OK(jzx_router_resize(r.loop, router, 2));
    rig_idle(&r);
    CHECK_EQ(c->hands[1].got, sent - 4); /* the new one takes all that waited */
    let_go(&r, &c->hands[0]);
    check_all_once(c, sent);
    rig_close(&r);
    free(c);
}

static void test_a_worker_hands_back_what_it_had_if_told_so(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_spawn_opts worker = hand_opts;
    worker.drain = JZX_DRAIN_REDIRECT;
    jzx_router_opts opts = crew_opts(c, JZX_ROUTE_ROUND_ROBIN, 2);
    opts.worker = &worker;
    jzx_actor_id router = crew_route(&r, &opts);
    c->hands[0].holds = true;
    for (uint64_t i = 0; i < 8; i++) {
        work(&r, router, i);
        rig_idle(&r);
    }
    CHECK_EQ(c->len, 4);
    REQUIRE_OK(jzx_stop(r.loop, c->hands[0].id));
    rig_idle(&r);
    check_all_once(c, 8); /* by the other one */
    rig_close(&r);
    free(c);
}

static jzx_actor_id supervised(rig *r, const jzx_router_opts *opts, jzx_actor_id *out_sup)
{
    jzx_child_spec spec = {.id = "router", .mailbox_cap = opts->mailbox_cap};
    REQUIRE_OK(jzx_router_child(r->loop, opts, &spec));
    jzx_supervisor_init init = {.children = &spec, .child_count = 1};
    REQUIRE_OK(jzx_spawn_supervisor(r->loop, &init, out_sup));
    rig_idle(r);
    jzx_child_info info;
    REQUIRE_OK(jzx_supervisor_child(r->loop, *out_sup, "router", &info));
    return info.actor;
}

static void test_a_router_that_is_restarted_keeps_what_waited_and_makes_a_new_pool(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id sup = 0;
    jzx_router_opts opts = crew_opts(c, JZX_ROUTE_ROUND_ROBIN, 1);
    jzx_actor_id router = supervised(&r, &opts, &sup);
    jzx_actor_id old = c->hands[0].id;
    c->hands[0].holds = true;
    for (uint64_t i = 0; i < 24; i++) {
        work(&r, router, i);
    }
    rig_idle(&r);
    REQUIRE_OK(jzx_kill(r.loop, router));
    c->hands[0].holds = false;
    rig_idle(&r);
    CHECK(c->hands[0].id != old);
    CHECK_EQ(c->hands[0].ends, 1);
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_STOPPED], 4); /* those the old worker had */
    CHECK_EQ(c->len, 20);
    check_rising(c);
    CHECK_EQ(jzx_actor_incarnation(r.loop, router), 2);
    rig_close(&r);
    free(c);
}

static void test_too_many_failures_of_workers_are_the_routers_failure(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id sup = 0;
    jzx_supervisor_spec strict = {.intensity = JZX_INTENSITY_NEVER};
    jzx_router_opts opts = crew_opts(c, JZX_ROUTE_ROUND_ROBIN, 2);
    opts.restart = &strict;
    jzx_actor_id router = supervised(&r, &opts, &sup);
    REQUIRE_OK(jzx_send_u64(r.loop, router, 0, FAIL));
    rig_idle(&r);
    jzx_child_info info;
    REQUIRE_OK(jzx_supervisor_child(r.loop, sup, "router", &info));
    CHECK_EQ(info.restarts, 1);
    CHECK_EQ(info.last.kind, JZX_REASON_GAVE_UP);
    CHECK_EQ(c->hands[1].starts, 2);
    work(&r, router, 1);
    rig_idle(&r);
    CHECK_EQ(c->len, 2);
    rig_close(&r);
    free(c);
}

static void test_a_start_that_fails_is_the_routers_failure(void)
{
    rig r = rig_open_fifo(NULL);
    jzx_spawn_opts worker = hand_opts;
    worker.dispatcher = "nowhere";
    crew *c = crew_new();
    jzx_router_opts opts = crew_opts(c, JZX_ROUTE_ROUND_ROBIN, 2);
    opts.worker = &worker;
    jzx_actor_id id = 0;
    REQUIRE_OK(jzx_router_spawn(r.loop, &opts, &id));
    rig_idle(&r);
    CHECK_EQ(jzx_actor_state(r.loop, id), JZX_STATE_TERMINATED);
    rig_close(&r);
    free(c);
}

static void test_a_list_loses_its_dead_and_fails_with_the_last(void)
{
    rig r = rig_open_fifo(NULL);
    subject *a = subject_start(&r, NULL, NULL), *b = subject_start(&r, NULL, NULL);
    jzx_actor_id ids[] = {a->id, b->id};
    jzx_router_opts opts = {.list = ids, .list_count = 2, .name = "list"};
    jzx_actor_id router = crew_route(&r, &opts);
    for (uint32_t tag = 1; tag <= 4; tag++) {
        REQUIRE_OK(jzx_send_u64(r.loop, router, 0, tag));
    }
    rig_idle(&r);
    CHECK_LOG(a, 1, 3);
    CHECK_LOG(b, 2, 4);
    REQUIRE_OK(jzx_stop(r.loop, a->id));
    REQUIRE_OK(jzx_send_u64(r.loop, router, 0, 5)); /* it may find out by itself */
    REQUIRE_OK(jzx_send_u64(r.loop, router, 0, 6));
    rig_idle(&r);
    CHECK_LOG(b, 2, 4, 5, 6);
    REQUIRE_OK(jzx_kill(r.loop, b->id));
    rig_idle(&r);
    CHECK_EQ(jzx_actor_state(r.loop, router), JZX_STATE_TERMINATED);
    rig_close(&r);
    free(a);
    free(b);
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

/* The asker hears in any case: the router dies with its ask, the worker does, or nobody has room
 * in time. */
static void test_an_ask_is_told_of_every_death(void)
{
    enum { ROUTER, WORKER, NO_ROOM, CASES };
    for (int which = 0; which < CASES; which++) {
        rig r = rig_open_fifo(NULL);
        crew *c = crew_new();
        jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_ROUND_ROBIN, 1);
        c->hands[0].holds = true;
        for (uint64_t i = 0; i < (which == WORKER ? 0 : 4); i++) {
            work(&r, router, i);
        }
        rig_idle(&r);
        asker a;
        asker_start(&r, &a, router, ECHO, 1);
        ask_now(&r, &a);
        rig_idle(&r);
        CHECK_EQ(a.replies, 0);
        if (which == ROUTER) {
            REQUIRE_OK(jzx_kill(r.loop, router));
        } else if (which == WORKER) {
            REQUIRE_OK(jzx_stop(r.loop, c->hands[0].id));
        }
        REQUIRE_OK(jzx_kit_settle(r.kit));
        CHECK_EQ(a.replies, 1);
        CHECK(which == NO_ROOM ? a.outcome == JZX_OUTCOME_TIMED_OUT
                               : a.outcome == JZX_OUTCOME_CALLEE_DIED);
        if (which == NO_ROOM) { /* and the worker never sees what nobody waits for */
            order(&r, &c->hands[0], GO);
            REQUIRE_OK(jzx_kit_settle(r.kit));
            CHECK_EQ(c->len, 4);
        }
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
    {"a_worker_that_fails_is_restarted_and_stays", test_a_worker_that_fails_is_restarted_and_stays},
    {"a_worker_that_ends_leaves_the_pool", test_a_worker_that_ends_leaves_the_pool},
    {"without_workers_messages_wait_for_the_first",
     test_without_workers_messages_wait_for_the_first},
    {"without_workers_messages_may_be_discarded", test_without_workers_messages_may_be_discarded},
    {"growing_and_shrinking_loses_nothing", test_growing_and_shrinking_loses_nothing},
    {"a_worker_that_leaves_handles_what_it_has", test_a_worker_that_leaves_handles_what_it_has},
    {"a_resize_by_ask_is_answered", test_a_resize_by_ask_is_answered},
    {"orders_reach_a_router_whose_mailbox_is_full",
     test_orders_reach_a_router_whose_mailbox_is_full},
    {"a_worker_hands_back_what_it_had_if_told_so", test_a_worker_hands_back_what_it_had_if_told_so},
    {"a_router_that_is_restarted_keeps_what_waited_and_makes_a_new_pool",
     test_a_router_that_is_restarted_keeps_what_waited_and_makes_a_new_pool},
    {"too_many_failures_of_workers_are_the_routers_failure",
     test_too_many_failures_of_workers_are_the_routers_failure},
    {"a_start_that_fails_is_the_routers_failure", test_a_start_that_fails_is_the_routers_failure},
    {"a_list_loses_its_dead_and_fails_with_the_last",
     test_a_list_loses_its_dead_and_fails_with_the_last},
    {"asks_through_a_router_are_answered_by_the_worker",
     test_asks_through_a_router_are_answered_by_the_worker},
    {"an_ask_is_told_of_every_death", test_an_ask_is_told_of_every_death},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
