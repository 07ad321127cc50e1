/* Goal: workers come, go, fail and are resized, and nothing is lost or reordered meanwhile. Method:
 * as in router_test.c. */
#include "router_fixture.h"

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
    puppet *a = puppet_start(&r, NULL, NULL), *b = puppet_start(&r, NULL, NULL);
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
    puppet_free(a);
    puppet_free(b);
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
    {"an_ask_is_told_of_every_death", test_an_ask_is_told_of_every_death},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
