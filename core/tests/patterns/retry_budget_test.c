/* Goal: the budget of all callers together holds; retries go with a breaker and without memory.
 * Method: as in retry_test.c; a storm on real threads where the dispatcher has some. */
#include "retry_kit.h"

/* --- the budget --- */

static void test_the_budget_of_all_callers_together_holds(void)
{
    bench b = bench_open(FAIL, &(jzx_retry_opts){.budget_percent = 20,
                                                 .budget_per_s = JZX_RETRY_NONE,
                                                 .budget_burst = 4,
                                                 .backoff_min_ms = 1});
    for (uint32_t i = 0; i < 100; i++) {
        (void)ask(&b, 1, 10);
    }
    uint64_t retries = 4 + 99 / 5; /* the first call found the bucket full */
    CHECK_EQ(b.service->count, 100 + retries);
    const jzx_retry_facts *f = facts(&b);
    CHECK_EQ(f->retries, retries);
    CHECK(f->no_budget >= 80);
    CHECK_EQ(f->failures, 100);
    CHECK(f->budget_permil < 1000);
    CHECK_FAILED(b.client, 98, JZX_ERR_NO_BUDGET, JZX_OUTCOME_CALLEE_RESTARTED, 1);
    bench_close(&b);
}

static void test_the_budget_comes_back_with_time(void)
{
    bench b = bench_open(FAIL, &(jzx_retry_opts){.max_attempts = 100,
                                                 .budget_percent = JZX_RETRY_NONE,
                                                 .budget_per_s = 2,
                                                 .budget_burst = 2,
                                                 .backoff_min_ms = 1,
                                                 .backoff_max_ms = 1});
    uint64_t which = ask(&b, 1, 20);
    CHECK_FAILED(b.client, which, JZX_ERR_NO_BUDGET, JZX_OUTCOME_CALLEE_RESTARTED, 3);
    run_ms(&b.r, 1000);
    which = ask(&b, 1, 20);
    CHECK_FAILED(b.client, which, JZX_ERR_NO_BUDGET, JZX_OUTCOME_CALLEE_RESTARTED, 3);
    bench_close(&b);
}

/* --- with a breaker --- */

static jzx_actor_id breaker_before(bench *b, jzx_actor_id callee, uint32_t window)
{
    return breaker_start(
        &b->r, &(jzx_breaker_opts){.callee = callee, .window_calls = window, .open_ms = 100});
}

static void test_before_a_breaker_it_waits_until_the_breaker_lets_it(void)
{
    rig r = rig_open(NULL);
    service *callee = service_start(&r, FORGET, NULL);
    jzx_actor_id breaker = breaker_start(
        &r, &(jzx_breaker_opts){.callee = callee->id, .window_calls = 2, .open_ms = 100});
    bench b = bench_open_on(
        r, callee,
        &(jzx_retry_opts){.callee = breaker,
                          .max_attempts = 4,
                          .retry_on = JZX_RETRY_ON_DEFAULT | JZX_RETRY_ON(JZX_OUTCOME_FORGOTTEN)});
    SCRIPT(callee, FORGET, FORGET, ANSWER);
    uint64_t which = ask(&b, 1, 30); /* two attempts open it, the third is refused */
    CHECK_EQ(callee->count, 2);
    CHECK_EQ(breaker_facts(&b.r, b.client, breaker)->state, JZX_BREAKER_OPEN);
    run_ms(&b.r, 200); /* the fourth waits for retry_after_ms and is the probe */
    CHECK_GOOD(b.client, which, 2);
    const jzx_breaker_facts *f = breaker_facts(&b.r, b.client, breaker);
    CHECK_EQ(f->state, JZX_BREAKER_CLOSED);
    CHECK_EQ(f->calls, 4);
    CHECK_EQ(f->short_circuited, 1);
    CHECK_EQ(callee->count, 3);
    bench_close(&b);
}

static void test_before_an_open_breaker_a_caller_in_a_hurry_hears_at_once(void)
{
    rig r = rig_open(NULL);
    service *callee = service_start(&r, FORGET, NULL);
    jzx_actor_id breaker = breaker_start(
        &r, &(jzx_breaker_opts){.callee = callee->id, .window_calls = 1, .open_ms = 10000});
    bench b = bench_open_on(r, callee, &(jzx_retry_opts){.callee = breaker});
    (void)ask(&b, 1, 5);
    uint64_t start = jzx_loop_now(b.r.loop);
    (void)call_with(&b.r, b.client, b.retry, &(jzx_ask_opts){.tag = 1, .timeout_ms = 1000});
    run_ms(&b.r, 5);
    CHECK_FAILED(b.client, 1, JZX_ERR_CIRCUIT_OPEN, JZX_OUTCOME_REFUSED, 1);
    CHECK(answer_to(b.client, 1)->failure.retry_after_ms > 9000);
    CHECK(answer_to(b.client, 1)->at_ns - start < 2 * MS);
    bench_close(&b);
}

static void test_behind_a_breaker_all_attempts_are_one_call(void)
{
    bench b = bench_open(FAIL, &(jzx_retry_opts){0});
    jzx_actor_id breaker = breaker_before(&b, b.retry, 2);
    uint64_t which = call(&b.r, b.client, breaker, 1);
    run_ms(&b.r, 200);
    CHECK_FAILED(b.client, which, JZX_ERR_AGAIN, JZX_OUTCOME_CALLEE_RESTARTED, 3);
    const jzx_breaker_facts *f = breaker_facts(&b.r, b.client, breaker);
    CHECK_EQ(f->calls, 1);
    CHECK_EQ(f->failures, 1);
    CHECK_EQ(b.service->count, 3);
    bench_close(&b);
}

/* --- memory --- */

static void let_pass(jzx_kit *kit, uint64_t ms)
{
    jzx_err err = jzx_kit_run(kit, ms);
    (void)err; /* in a sweep the world fails too */
}

/* Whatever fails: everybody who could ask hears once, and nothing is left. */
static const char *sweep_scenario(jzx_kit *kit, void *arg)
{
    enum { CALLS = 4 };
    static service callee;
    static client c;
    static const act script[] = {FORGET, COPY, LATE, FORGET, FORGET, FORGET, COPY};
    (void)arg;
    callee = (service){.then = COPY, .late_ms = 30};
    c = (client){0};
    service_script(&callee, script, COUNT_OF(script));
    jzx_actor_id retry = JZX_NOBODY;
    jzx_spawn_opts service_opts = {.behavior = service_behavior, .state = &callee};
    jzx_spawn_opts client_opts = {.behavior = client_behavior, .state = &c};
    jzx_retry_opts opts = {.timeout_ms = 20,
                           .retry_on = JZX_RETRY_ON_DEFAULT | JZX_RETRY_ON(JZX_OUTCOME_FORGOTTEN)};
    if (jzx_spawn(kit->loop, &service_opts, &callee.id) != JZX_OK ||
        jzx_spawn(kit->loop, &client_opts, &c.id) != JZX_OK) {
        return NULL;
    }
    opts.callee = callee.id;
    if (jzx_retry_spawn(kit->loop, &opts, &retry) != JZX_OK) {
        return NULL;
    }
    size_t refused = 0;
    for (uint64_t i = 0; i < CALLS; i++) {
        c.to[i] = retry;
        c.orders[i] = (jzx_ask_opts){.data = "text", .len = 5, .tag = 1, .flags = JZX_SEND_COPY};
        c.orders[i].arg = (void *)(uintptr_t)i;
        refused += jzx_send_u64(kit->loop, c.id, i, ASK_NOW) != JZX_OK ? 1 : 0;
        let_pass(kit, 5);
        refused += c.errs[i] != JZX_OK ? 1 : 0;
    }
    let_pass(kit, 20000);
    return c.count == CALLS - refused ? NULL : "a caller heard twice, or never";
}

static void test_every_allocation_may_fail(void)
{
    jzx_sim_opts sim = {.seed = jzt_seed() | 1};
    jzx_kit_opts opts = {.sim = &sim};
    jzx_sweep_report report = {0};
    const char *wrong = jzx_fault_sweep(&opts, sweep_scenario, NULL, 5000, &report);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK(report.allocs > 10);
}

static void test_without_memory_the_caller_hears_long_before_its_deadline(void)
{
    uint64_t without = 0;
    for (uint64_t n = 1; n < 40; n++) {
        rig r = rig_open(NULL);
        jzx_retry_opts again = {.retry_on =
                                    JZX_RETRY_ON_DEFAULT | JZX_RETRY_ON(JZX_OUTCOME_FORGOTTEN)};
        bench b = bench_open_on(r, service_start(&r, FORGET, NULL), &again);
        jzx_ask_opts opts = {.data = "text", .len = 5, .tag = 1, .flags = JZX_SEND_COPY};
        opts.timeout_ms = 60000;
        (void)call_with(&b.r, b.client, b.retry, &opts);
        jzx_fault_arm_alloc(b.r.fault, n, 0);
        run_ms(&b.r, 200);
        jzx_fault_arm_alloc(b.r.fault, 0, 0);
        if (b.client->errs[0] == JZX_OK) {
            const answer *it = answer_to(b.client, 0);
            CHECK(it->failed);
            CHECK(it->failure.err == JZX_ERR_AGAIN || it->failure.err == JZX_ERR_NO_MEMORY);
            without += it->failure.attempts < 3 ? 1 : 0;
        }
        CHECK_EQ(facts(&b)->in_flight, 0);
        bench_close(&b);
    }
    CHECK(without > 2);
}

static void test_a_crowd_before_retry_and_breaker_hears_every_answer_once(void)
{
    crowd c;
    crowd_open(&c);
    jzx_actor_id breaker = JZX_NOBODY;
    jzx_actor_id retry = JZX_NOBODY;
    jzx_breaker_opts guard = {.callee = c.service, .failure_percent = 40, .open_ms = 1};
    REQUIRE_OK(jzx_breaker_spawn(c.kit->loop, &guard, &breaker));
    jzx_retry_opts again = {.callee = breaker,
                            .retry_on = JZX_RETRY_ON_DEFAULT | JZX_RETRY_ON(JZX_OUTCOME_FORGOTTEN),
                            .backoff_min_ms = 1,
                            .backoff_jitter = 0.5,
                            .budget_percent = 50,
                            .budget_burst = 1000};
    REQUIRE_OK(jzx_retry_spawn(c.kit->loop, &again, &retry));
    crowd_run(&c, retry);
    CHECK(c.served > c.good);
    CHECK(c.good > (uint64_t)CROWD * EACH * 2 / 3); /* more than one attempt each would give */
    crowd_close(&c);
}

static const jzt_test tests[] = {
    {"the_budget_of_all_callers_together_holds", test_the_budget_of_all_callers_together_holds},
    {"the_budget_comes_back_with_time", test_the_budget_comes_back_with_time},
    {"before_a_breaker_it_waits_until_the_breaker_lets_it",
     test_before_a_breaker_it_waits_until_the_breaker_lets_it},
    {"before_an_open_breaker_a_caller_in_a_hurry_hears_at_once",
     test_before_an_open_breaker_a_caller_in_a_hurry_hears_at_once},
    {"behind_a_breaker_all_attempts_are_one_call", test_behind_a_breaker_all_attempts_are_one_call},
    {"every_allocation_may_fail", test_every_allocation_may_fail},
    {"without_memory_the_caller_hears_long_before_its_deadline",
     test_without_memory_the_caller_hears_long_before_its_deadline},
    {"a_crowd_before_retry_and_breaker_hears_every_answer_once",
     test_a_crowd_before_retry_and_breaker_hears_every_answer_once},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
