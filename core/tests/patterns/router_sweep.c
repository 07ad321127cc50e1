/* Goal: a router without memory refuses, discards and counts, but keeps no message for ever and
 * leaks nothing. Method: one scenario with every allocation failing in turn; see jzx_fault_sweep().
 */
#include "router_fixture.h"

/* Every allocation fails in turn: whatever is refused is refused cleanly, and at the end nothing
 * waits in a router whose workers have room. */
static const char *scenario(jzx_kit *kit, void *arg)
{
    uint32_t strategy = *(uint32_t *)arg;
    const char *wrong = NULL;
    crew *c = crew_new();
    rig r = {.kit = kit, .loop = kit->loop, .sim = kit->sim, .fault = kit->fault};
    jzx_router_opts opts =
        strategy == JZX_ROUTE_HASH ? hash_opts(c, 2, 0) : crew_opts(c, strategy, 2);
    opts.mailbox_cap = 50;
    opts.drop_msg = drop_plain;
    jzx_actor_id router = 0;
    asker a = {0};
    if (jzx_router_spawn(r.loop, &opts, &router) != JZX_OK ||
        jzx_loop_run_until_idle(r.loop) != JZX_OK) {
        (void)!jzx_loop_run_until_idle(r.loop);
        goto out;
    }
    c->hands[0].holds = c->hands[1].holds = true;
    for (uint64_t i = 0; i < 44; i++) {
        (void)send_owned(&r, router, i, count_drop);
        jzx_send_opts mortal = {.u64 = i,
                                .tag = WORK,
                                .flags = JZX_SEND_VALUE,
                                .deadline_ns = jzx_loop_now(r.loop) + 20 * MS};
        jzx_err err = jzx_send_with(r.loop, router, &mortal);
        (void)err;
        (void)!jzx_loop_run_until_idle(r.loop);
    }
    a = (asker){.target = router, .opts = {.u64 = 1, .tag = ECHO, .flags = JZX_SEND_VALUE}};
    jzx_spawn_opts asks = {.behavior = asker_behavior, .state = &a};
    if (jzx_spawn(r.loop, &asks, &a.id) == JZX_OK) {
        (void)!jzx_send_u64(r.loop, a.id, 0, WORK);
    }
    (void)!jzx_kit_run(kit, 30);
    for (uint32_t i = 0; i < 2; i++) {
        c->hands[i].holds = false;
        (void)try_urgent(r.loop, c->hands[i].id, GO);
    }
    (void)!jzx_router_resize(r.loop, router, 3);
    (void)!jzx_kit_settle(kit);
    jzx_fault_arm_alloc(kit->fault, 0, 0); /* memory is back */
    (void)!jzx_router_resize(r.loop, router, 3);
    c->hands[0].holds = c->hands[1].holds = c->hands[2].holds = false;
    for (uint32_t i = 0; i < 3; i++) { /* in case the first GO was the victim */
        (void)try_urgent(r.loop, c->hands[i].id, GO);
    }
    (void)!jzx_kit_settle(kit);
    (void)!jzx_send_u64(r.loop, router, 1, WORK); /* tries those again that could not be asked */
    (void)!jzx_kit_settle(kit);
    jzx_actor_facts facts = {0};
    if (jzx_actor_inspect(r.loop, router, &facts) == JZX_OK && facts.stashed > 0) {
        wrong = "messages wait although there is room";
    } else if (facts.id != JZX_NOBODY && stats_of(&r, router).stats.full > 0) {
        wrong = "a worker is full for ever";
    }
out:
    (void)!jzx_kit_settle(kit);
    (void)jzx_kill(r.loop, router);
    (void)jzx_kill(r.loop, a.id);
    (void)!jzx_kit_settle(kit); /* the crew is not used any more */
    free(c);
    return wrong;
}

static void test_every_allocation_may_fail(void)
{
    for (uint32_t strategy = 0; strategy <= JZX_ROUTE_GATHER_FIRST; strategy++) {
        if (strategy == JZX_ROUTE_RANDOM || strategy == JZX_ROUTE_LEAST_MAILBOX) {
            continue; /* differ from round robin in the choice only */
        }
        jzx_sim_opts sim = {.seed = 11, .flags = JZX_SIM_FIFO};
        jzx_kit_opts kit = {.sim = &sim};
        jzx_sweep_report report = {0};
        const char *wrong = jzx_fault_sweep(&kit, scenario, &strategy, 3000, &report);
        CHECK_STR(wrong == NULL ? "" : wrong, "");
        CHECK(report.allocs > 20);
    }
}

/* Members come while there is no memory; when it is back the next message finds all of them. */
static const char *group_scenario(jzx_kit *kit, void *arg)
{
    enum { MEMBERS = 9 };
    const char *wrong = NULL;
    rig r = {.kit = kit, .loop = kit->loop, .sim = kit->sim, .fault = kit->fault};
    puppet *members[MEMBERS] = {0};
    jzx_router_opts opts = {.group = "crew"};
    jzx_actor_id router = 0;
    size_t joined = 0;
    (void)arg;
    bool up = jzx_router_spawn(r.loop, &opts, &router) == JZX_OK;
    for (size_t i = 0; i < MEMBERS; i++) {
        jzx_spawn_opts spawn = {.behavior = puppet_behavior,
                                .state = members[i] = puppet_new(NULL)};
        if (puppet_try_spawn(r.loop, members[i], &spawn) == JZX_OK) {
            joined += jzx_group_join(r.loop, "crew", members[i]->id) == JZX_OK;
        }
        (void)!jzx_loop_run_until_idle(r.loop);
    }
    jzx_fault_arm_alloc(kit->fault, 0, 0); /* memory is back */
    up = up && jzx_actor_state(r.loop, router) == JZX_STATE_RUNNING;
    if (up && stats_of(&r, router).stats.workers != joined) {
        wrong = "the router does not know all members";
    }
    (void)jzx_kill(r.loop, router);
    for (size_t i = 0; i < MEMBERS; i++) {
        (void)jzx_kill(r.loop, members[i]->id);
    }
    (void)!jzx_kit_settle(kit);
    for (size_t i = 0; i < MEMBERS; i++) {
        puppet_free(members[i]);
    }
    return wrong;
}

static void test_a_group_is_known_once_there_is_memory(void)
{
    jzx_sim_opts sim = {.seed = 12, .flags = JZX_SIM_FIFO};
    jzx_kit_opts kit = {.sim = &sim};
    jzx_sweep_report report = {0};
    const char *wrong = jzx_fault_sweep(&kit, group_scenario, NULL, 1000, &report);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK(report.allocs > 20);
}

static const jzt_test tests[] = {
    {"every_allocation_may_fail", test_every_allocation_may_fail},
    {"a_group_is_known_once_there_is_memory", test_a_group_is_known_once_there_is_memory},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
