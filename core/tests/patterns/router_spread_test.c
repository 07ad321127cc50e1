/* Goal: the strategies with rules of their own: a hash keeps keys together and in order, broadcast
 * shares what it can, the first reply is the asker's; groups; bad input.
 * Method: as router_test.c. */
#include "router_fixture.h"

#include <jzx/registry.h>

/* Each key was handled by one worker only, in rising order. */
static void check_keys(const crew *c)
{
    uint32_t owner[16];
    uint64_t last[16] = {0};
    memset(owner, 0xff, sizeof owner);
    for (size_t i = 0; i < c->len; i++) {
        const note *n = &c->notes[i];
        uint64_t key = n->value % keys;
        CHECK(owner[key] == UINT32_MAX || owner[key] == n->hand);
        CHECK(owner[key] == UINT32_MAX || n->value > last[key]);
        owner[key] = n->hand;
        last[key] = n->value;
    }
}

static void test_hash_keeps_keys_together_and_in_order(void)
{
    rig r = rig_open(NULL);
    crew *c = crew_new();
    jzx_router_opts opts = hash_opts(c, 5, JZX_OVERFLOW_WAIT);
    jzx_actor_id router = crew_route(&r, &opts);
    for (uint64_t i = 0; i < 640; i++) {
        work(&r, router, i);
        if (i % 50 == 49) {
            rig_idle(&r);
        }
    }
    rig_idle(&r);
    check_all_once(c, 640);
    check_keys(c);
    rig_close(&r);
    free(c);
}

static void test_hash_waits_for_a_full_owner_while_other_keys_go_on(void)
{
    rig r = rig_open(NULL);
    crew *c = crew_new();
    jzx_router_opts opts = hash_opts(c, 4, JZX_OVERFLOW_WAIT);
    opts.mailbox_cap = 400;
    jzx_actor_id router = crew_route(&r, &opts);
    c->hands[1].holds = true;
    for (uint64_t i = 0; i < 320; i++) {
        work(&r, router, i);
        rig_idle(&r);
    }
    stats_reader s = stats_of(&r, router);
    CHECK(s.stats.waiting > 0);
    CHECK_EQ(c->len + s.stats.waiting + 4, 320); /* all others were handled */
    for (size_t i = 0; i < c->len; i++) {
        CHECK(c->notes[i].hand != 1);
    }
    let_go(&r, &c->hands[1]);
    check_all_once(c, 320);
    check_keys(c);
    rig_close(&r);
    free(c);
}

static void test_hash_overflow_goes_to_the_next_worker(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_router_opts opts = hash_opts(c, 3, JZX_OVERFLOW_NEXT);
    jzx_actor_id router = crew_route(&r, &opts);
    c->hands[0].holds = true;
    for (uint64_t i = 0; i < 160; i++) {
        work(&r, router, i);
        rig_idle(&r);
    }
    CHECK_EQ(c->len, 156); /* nobody waited */
    let_go(&r, &c->hands[0]);
    check_all_once(c, 160);
    rig_close(&r);
    free(c);
}

/* From n to n + 1 and back: only keys of the worker that came or went change hands. */
static void test_a_resized_hash_moves_only_the_keys_it_must(void)
{
    enum { KEYS = 1000 };
    static uint32_t owner[3][KEYS];
    static const uint32_t sizes[] = {4, 5, 4};
    keys = KEYS;
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_router_opts opts = hash_opts(c, 4, JZX_OVERFLOW_WAIT);
    jzx_actor_id router = crew_route(&r, &opts);
    for (int round = 0; round < 3; round++) {
        REQUIRE_OK(jzx_router_resize(r.loop, router, sizes[round]));
        rig_idle(&r);
        c->len = 0;
        for (uint64_t i = 0; i < KEYS; i++) {
            work(&r, router, i);
            rig_idle(&r);
        }
        check_all_once(c, KEYS);
        for (size_t i = 0; i < KEYS; i++) {
            owner[round][c->notes[i].value] = c->notes[i].hand;
        }
    }
    keys = 16;
    uint32_t moved = 0;
    for (size_t i = 0; i < KEYS; i++) {
        moved += owner[0][i] != owner[1][i];
        CHECK(owner[0][i] == owner[1][i] || owner[1][i] == 4);
        CHECK_EQ(owner[0][i], owner[2][i]);
    }
    CHECK(moved > 140 && moved < 260); /* a fifth, give or take */
    rig_close(&r);
    free(c);
}

static void test_broadcast_gives_values_and_copies_to_everybody(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_BROADCAST, 3);
    jzx_probe *probe = NULL;
    REQUIRE_OK(jzx_probe_spawn(r.loop, &probe));
    uint64_t bytes = 8;
    jzx_send_opts value = {.u64 = 7, .tag = WORK, .flags = JZX_SEND_VALUE};
    jzx_send_opts copy = {.data = &bytes, .len = 8, .tag = WORK, .flags = JZX_SEND_COPY};
    REQUIRE_OK(jzx_probe_send(probe, router, &value));
    REQUIRE_OK(jzx_probe_send(probe, router, &copy));
    rig_idle(&r);
    CHECK_EQ(c->len, 6);
    uint64_t sum = 0;
    for (size_t i = 0; i < c->len; i++) {
        CHECK_EQ(c->notes[i].sender, jzx_probe_id(probe));
        sum += c->notes[i].value;
    }
    CHECK_EQ(sum, 3 * 7 + 3 * 8);
    CHECK_EQ(c->hands[2].got, 2);
    jzx_probe_free(probe);
    rig_close(&r);
    free(c);
}

static void test_broadcast_shares_data_and_drops_it_once(void)
{
    rig r = rig_open(NULL);
    crew *c = crew_new();
    jzx_router_opts opts = crew_opts(c, JZX_ROUTE_BROADCAST, 4);
    opts.drop_msg = drop_plain;
    jzx_actor_id router = crew_route(&r, &opts);
    drops = 0;
    c->hands[2].holds = true;
    REQUIRE_OK(send_owned(&r, router, 41, count_drop));
    rig_idle(&r);
    CHECK_EQ(c->len, 3);
    CHECK_EQ(drops, 0); /* one still has it */
    let_go(&r, &c->hands[2]);
    CHECK_EQ(c->len, 4);
    CHECK_EQ(drops, 1);
    for (size_t i = 0; i < c->len; i++) {
        CHECK_EQ(c->notes[i].value, 41);
    }
    REQUIRE_OK(send_owned(&r, router, 42, NULL)); /* cannot be shared */
    rig_idle(&r);
    CHECK_EQ(c->len, 4);
    CHECK_EQ(drops, 2); /* by the router's drop_msg, as a dead letter */
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_DISCARDED], 1);
    rig_close(&r);
    free(c);
}

static void test_broadcast_passes_over_the_full_and_waits_if_all_are(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_BROADCAST, 2);
    c->hands[0].holds = true;
    for (uint64_t i = 0; i < 10; i++) {
        work(&r, router, i);
        rig_idle(&r);
    }
    CHECK_EQ(c->hands[1].got, 10);
    c->hands[1].holds = true;
    drops = 0;
    for (uint64_t i = 10; i < 20; i++) {
        REQUIRE_OK(send_owned(&r, router, i, count_drop));
        rig_idle(&r);
    }
    stats_reader s = stats_of(&r, router);
    CHECK_EQ(s.stats.waiting, 6);
    CHECK_EQ(s.stats.skipped, 2 + 5 + 4); /* two verdicts, then copies that were not made */
    let_go(&r, &c->hands[0]);
    let_go(&r, &c->hands[1]);
    CHECK_EQ(drops, 10);
    CHECK_EQ(stats_of(&r, router).stats.waiting, 0);
    check_rising(c);
    rig_close(&r);
    free(c);
}

static void test_an_ask_cannot_be_broadcast(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_BROADCAST, 2);
    CHECK_EQ(ask_once(&r, router, ECHO, 1).outcome, JZX_OUTCOME_FORGOTTEN);
    CHECK_EQ(c->len, 0);
    rig_close(&r);
    free(c);
}

static void test_the_first_reply_is_the_askers(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_GATHER_FIRST, 3);
    c->hands[0].holds = c->hands[2].holds = true;
    asker a = ask_once(&r, router, ECHO, 5);
    CHECK_EQ(a.replies, 1);
    CHECK_EQ(a.outcome, JZX_OUTCOME_REPLIED);
    CHECK_EQ(a.tag, ECHO);
    CHECK_EQ(a.value, 501);
    let_go(&r, &c->hands[0]); /* the others are cancelled: they never see it */
    let_go(&r, &c->hands[2]);
    CHECK_EQ(c->len, 1);
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_CANCELLED], 2);
    rig_close(&r);
    free(c);
}

static void test_a_worker_that_does_not_reply_is_not_waited_for(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_GATHER_FIRST, 3);
    for (uint32_t i = 0; i < 3; i++) { /* whoever comes first forgets; another one answers */
        c->hands[i].holds = i != 0;
    }
    asker a;
    asker_start(&r, &a, router, MUTE, 1);
    ask_now(&r, &a);
    rig_idle(&r);
    CHECK_EQ(a.replies, 0); /* worker 0 forgot it, two are left */
    REQUIRE_OK(jzx_stop(r.loop, c->hands[1].id));
    rig_idle(&r);
    CHECK_EQ(a.replies, 0);
    let_go(&r, &c->hands[2]);
    CHECK_EQ(a.replies, 1);
    CHECK_EQ(a.tag, JZX_TAG_ROUTER_FAILED);
    CHECK_EQ(a.failure.asked, 3);
    CHECK_EQ(a.failure.outcome, JZX_OUTCOME_FORGOTTEN);
    rig_close(&r);
    free(c);
}

static void test_the_askers_time_goes_along_and_fanout_limits_the_crowd(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_router_opts opts = crew_opts(c, JZX_ROUTE_GATHER_FIRST, 4);
    opts.fanout = 2;
    jzx_actor_id router = crew_route(&r, &opts);
    for (uint32_t i = 0; i < 4; i++) {
        c->hands[i].holds = true;
    }
    uint64_t begin = jzx_loop_now(r.loop);
    asker a = ask_once(&r, router, ECHO, 1);
    CHECK_EQ(a.outcome, JZX_OUTCOME_TIMED_OUT);
    CHECK(jzx_loop_now(r.loop) - begin < 1100 * MS); /* nothing outlives the asker's second */
    CHECK_EQ(stats_of(&r, router).stats.routed, 2);
    for (uint32_t i = 0; i < 4; i++) {
        let_go(&r, &c->hands[i]);
    }
    CHECK_EQ(c->len, 0);
    CHECK_EQ(ask_once(&r, router, ECHO, 2).value / 100, 2);
    CHECK_EQ(c->len, 2 - (c->len == 1)); /* one may be cancelled in time */
    rig_close(&r);
    free(c);
}

static void test_gathering_waits_for_room_and_refuses_what_is_no_ask(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_GATHER_FIRST, 2);
    for (uint32_t i = 0; i < 2; i++) {
        c->hands[i].holds = true;
        for (uint64_t k = 0; k < 4; k++) {
            work(&r, c->hands[i].id, k);
        }
    }
    rig_idle(&r);
    asker a;
    asker_start(&r, &a, router, ECHO, 3);
    ask_now(&r, &a);
    rig_idle(&r);
    CHECK_EQ(stats_of(&r, router).stats.waiting, 1);
    let_go(&r, &c->hands[1]);
    CHECK_EQ(a.value, 301);
    work(&r, router, 1);
    rig_idle(&r);
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_DISCARDED], 1);
    rig_close(&r);
    free(c);
}

static void test_deaths_while_a_gather_is_under_way(void)
{
    enum { ROUTER, ASKER, WORKERS, CASES };
    for (int which = 0; which < CASES; which++) {
        rig r = rig_open_fifo(NULL);
        crew *c = crew_new();
        jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_GATHER_FIRST, 2);
        c->hands[0].holds = c->hands[1].holds = true;
        asker a;
        asker_start(&r, &a, router, ECHO, 3);
        ask_now(&r, &a);
        rig_idle(&r);
        if (which == ROUTER) {
            REQUIRE_OK(jzx_kill(r.loop, router));
        } else if (which == ASKER) {
            REQUIRE_OK(jzx_kill(r.loop, a.id));
        } else {
            REQUIRE_OK(jzx_stop(r.loop, c->hands[0].id));
            REQUIRE_OK(jzx_stop(r.loop, c->hands[1].id));
        }
        rig_idle(&r);
        if (which == ROUTER) {
            CHECK_EQ(a.outcome, JZX_OUTCOME_CALLEE_DIED);
        } else if (which == WORKERS) {
            CHECK_EQ(a.failure.outcome, JZX_OUTCOME_CALLEE_DIED);
            CHECK_EQ(a.failure.asked, 2);
        } else {
            let_go(&r, &c->hands[0]);
        }
        REQUIRE_OK(jzx_kit_settle(r.kit));
        rig_close(&r);
        free(c);
    }
}

static void test_a_group_is_served_as_it_changes(void)
{
    rig r = rig_open_fifo(NULL);
    puppet *s[3];
    jzx_router_opts opts = {.group = "crew", .mailbox_cap = 64};
    jzx_actor_id router = crew_route(&r, &opts);
    for (uint32_t tag = 1; tag <= 3; tag++) {
        REQUIRE_OK(jzx_send_u64(r.loop, router, 0, tag));
    }
    rig_idle(&r);
    CHECK_EQ(stats_of(&r, router).stats.waiting, 3); /* for the first member */
    for (size_t i = 0; i < 3; i++) {
        s[i] = puppet_start(&r, NULL, NULL);
        REQUIRE_OK(jzx_group_join(r.loop, "crew", s[i]->id));
        rig_idle(&r);
    }
    CHECK_LOG(s[0], 1, 2, 3);
    for (uint32_t tag = 4; tag <= 9; tag++) {
        REQUIRE_OK(jzx_send_u64(r.loop, router, 0, tag));
    }
    rig_idle(&r);
    CHECK_EQ(s[1]->handled, 2);
    REQUIRE_OK(jzx_group_leave(r.loop, "crew", s[1]->id));
    REQUIRE_OK(jzx_kill(r.loop, s[2]->id));
    rig_idle(&r);
    for (uint32_t tag = 10; tag <= 12; tag++) {
        REQUIRE_OK(jzx_send_u64(r.loop, router, 0, tag));
    }
    rig_idle(&r);
    CHECK_EQ(s[0]->handled, 3 + 2 + 3);
    CHECK_EQ(s[1]->handled, 2);
    stats_reader stats = stats_of(&r, router);
    CHECK_EQ(stats.stats.workers, 1);
    CHECK_EQ(stats.stats.joined, 3);
    CHECK_EQ(stats.stats.left, 2);
    rig_close(&r);
    for (size_t i = 0; i < 3; i++) {
        puppet_free(s[i]);
    }
}

static void test_a_router_in_its_own_group_does_not_serve_itself(void)
{
    rig r = rig_open_fifo(NULL);
    jzx_router_opts opts = {.group = "crew"};
    jzx_actor_id router = crew_route(&r, &opts);
    REQUIRE_OK(jzx_group_join(r.loop, "crew", router));
    REQUIRE_OK(jzx_send_u64(r.loop, router, 0, 1));
    rig_idle(&r);
    CHECK_EQ(stats_of(&r, router).stats.waiting, 1);
    rig_close(&r);
}

static jzx_behavior_result start_router_below_a_policy(jzx_context *ctx, const jzx_message *msg,
                                                       puppet *self)
{
    jzx_supervisor_spec spec = {0};
    jzx_router_opts opts = {.group = "x"};
    (void)msg;
    REQUIRE_OK(jzx_set_child_policy(ctx, &spec));
    self->number = (uint64_t)-jzx_router_spawn(ctx->loop, &opts, NULL);
    return JZX_BEHAVIOR_OK;
}

static void test_bad_options_are_refused_and_leave_nothing_behind(void)
{
    rig r = rig_open_fifo(NULL);
    size_t bytes = rig_bytes(&r);
    char long_name[JZX_NAME_MAX + 2];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    jzx_spawn_opts lost = hand_opts, stuck = hand_opts;
    lost.behavior = NULL;
    stuck.init = NULL;
    jzx_supervisor_spec dynamic = {.strategy = JZX_DYNAMIC}, odd = {.strategy = 9};
    jzx_actor_id twice[] = {5, 6, 5}, nobody[] = {5, JZX_NOBODY};
    const struct {
        jzx_router_opts opts;
        jzx_err err;
    } cases[] = {
        {{0}, JZX_ERR_INVALID_ARG},
        {{.worker = &hand_opts, .group = "x"}, JZX_ERR_INVALID_ARG},
        {{.worker = &hand_opts, .strategy = 6}, JZX_ERR_INVALID_ARG},
        {{.worker = &hand_opts, .on_empty = 4}, JZX_ERR_INVALID_ARG},
        {{.worker = &hand_opts, .overflow = 2}, JZX_ERR_INVALID_ARG},
        {{.worker = &hand_opts, .strategy = JZX_ROUTE_HASH}, JZX_ERR_INVALID_ARG},
        {{.worker = &lost}, JZX_ERR_INVALID_ARG},
        {{.worker = &stuck}, JZX_ERR_NOT_RESTARTABLE},
        {{.worker = &hand_opts, .restart = &dynamic}, JZX_ERR_BAD_SPEC},
        {{.worker = &hand_opts, .restart = &odd}, JZX_ERR_BAD_SPEC},
        {{.worker = &hand_opts, .workers = JZX_ROUTER_WORKERS_MAX + 1}, JZX_ERR_TOO_BIG},
        {{.list = twice}, JZX_ERR_INVALID_ARG},
        {{.list = twice, .list_count = 3}, JZX_ERR_INVALID_ARG},
        {{.list = nobody, .list_count = 2}, JZX_ERR_INVALID_ARG},
        {{.group = ""}, JZX_ERR_INVALID_ARG},
        {{.group = long_name}, JZX_ERR_TOO_BIG},
        {{.group = "x", .name = long_name}, JZX_ERR_TOO_BIG},
        {{.group = "x", .dispatcher = "nowhere"}, JZX_ERR_NO_SUCH_DISPATCHER},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        jzx_actor_id id = 77;
        jzx_err err = jzx_router_spawn(r.loop, &cases[i].opts, &id);
        if (err != cases[i].err) {
            fprintf(stderr, "  case %zu: %s\n", i, jzx_err_name(err));
        }
        CHECK_EQ(err, cases[i].err);
        CHECK_EQ(id, 77);
    }
    jzx_router_sizes sizes = {sizeof(jzx_router_opts) + 8, 0, 0};
    struct {
        jzx_router_opts opts;
        uint64_t more;
    } newer = {.opts = {.group = "x"}, .more = 1};
    CHECK_EQ(jzx_router_spawn_sized(r.loop, &newer.opts, sizes, NULL), JZX_ERR_NEWER_STRUCT);
    CHECK_EQ(jzx_router_spawn(NULL, &newer.opts, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_router_spawn(r.loop, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_router_child(r.loop, &newer.opts, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(rig_bytes(&r), bytes);
    jzx_child_spec unused = {0};
    REQUIRE_OK(jzx_router_child(r.loop, &newer.opts, &unused));
    unused.drop_arg(unused.arg); /* as jzx/router.h says */
    CHECK_EQ(rig_bytes(&r), bytes);
    puppet *parent = puppet_start(&r, start_router_below_a_policy, NULL);
    tell(&r, parent, 1);
    rig_idle(&r);
    CHECK_EQ(parent->number, -JZX_ERR_NOT_RESTARTABLE);
    CHECK_STR(jzx_router_strategy_name(JZX_ROUTE_HASH), "hash");
    CHECK_STR(jzx_router_strategy_name(99), "unknown");
    rig_close(&r);
    puppet_free(parent);
}

static void test_timers_to_a_router_are_dropped_and_counted(void)
{
    rig r = rig_open_fifo(NULL);
    crew *c = crew_new();
    jzx_actor_id router = crew_start(&r, c, JZX_ROUTE_ROUND_ROBIN, 1);
    REQUIRE_OK(jzx_send_after(r.loop, router, 5, NULL, 0, WORK, NULL));
    REQUIRE_OK(jzx_kit_run(r.kit, 10));
    CHECK_EQ(c->len, 0);
    CHECK_EQ(stats_of(&r, router).stats.discarded, 1);
    rig_close(&r);
    free(c);
}

static const jzt_test tests[] = {
    {"hash_keeps_keys_together_and_in_order", test_hash_keeps_keys_together_and_in_order},
    {"hash_waits_for_a_full_owner_while_other_keys_go_on",
     test_hash_waits_for_a_full_owner_while_other_keys_go_on},
    {"hash_overflow_goes_to_the_next_worker", test_hash_overflow_goes_to_the_next_worker},
    {"a_resized_hash_moves_only_the_keys_it_must", test_a_resized_hash_moves_only_the_keys_it_must},
    {"broadcast_gives_values_and_copies_to_everybody",
     test_broadcast_gives_values_and_copies_to_everybody},
    {"broadcast_shares_data_and_drops_it_once", test_broadcast_shares_data_and_drops_it_once},
    {"broadcast_passes_over_the_full_and_waits_if_all_are",
     test_broadcast_passes_over_the_full_and_waits_if_all_are},
    {"an_ask_cannot_be_broadcast", test_an_ask_cannot_be_broadcast},
    {"the_first_reply_is_the_askers", test_the_first_reply_is_the_askers},
    {"a_worker_that_does_not_reply_is_not_waited_for",
     test_a_worker_that_does_not_reply_is_not_waited_for},
    {"the_askers_time_goes_along_and_fanout_limits_the_crowd",
     test_the_askers_time_goes_along_and_fanout_limits_the_crowd},
    {"gathering_waits_for_room_and_refuses_what_is_no_ask",
     test_gathering_waits_for_room_and_refuses_what_is_no_ask},
    {"deaths_while_a_gather_is_under_way", test_deaths_while_a_gather_is_under_way},
    {"a_group_is_served_as_it_changes", test_a_group_is_served_as_it_changes},
    {"a_router_in_its_own_group_does_not_serve_itself",
     test_a_router_in_its_own_group_does_not_serve_itself},
    {"bad_options_are_refused_and_leave_nothing_behind",
     test_bad_options_are_refused_and_leave_nothing_behind},
    {"timers_to_a_router_are_dropped_and_counted", test_timers_to_a_router_are_dropped_and_counted},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
