/* Goal: the circuit breaker when callers, callee or breaker die, restart or are full, without
 * memory, and who releases what. Method: as in breaker_test.c; a storm on real threads where the
 * dispatcher has some. */
#include "breaker_kit.h"

/* --- who releases what --- */

static void test_data_of_refused_requests_is_released_once(void)
{
    bench b = bench_open(ANSWER, &(jzx_breaker_opts){0});
    open_circuit(&b);
    (void)call_with(
        &b.r, b.client, b.breaker,
        &(jzx_ask_opts){.data = new_string("x"), .len = 2, .tag = 1, .drop = drop_string});
    (void)call_with(&b.r, b.client, b.breaker,
                    &(jzx_ask_opts){.data = new_string("x"), .len = 2, .tag = 2});
    run_ms(&b.r, 2);
    CHECK_EQ(data_drops, 2);
    REQUIRE_OK(jzx_stop(b.r.loop, b.service->id));
    run_ms(&b.r, 200);
    (void)call_with(
        &b.r, b.client, b.breaker,
        &(jzx_ask_opts){.data = new_string("x"), .len = 2, .tag = 1, .drop = drop_string});
    run_ms(&b.r, 200); /* a probe that finds nobody */
    (void)call_with(&b.r, b.client, b.breaker,
                    &(jzx_ask_opts){.data = new_string("x"), .len = 2, .tag = 2});
    run_ms(&b.r, 2);
    CHECK_EQ(data_drops, 4);
    bench_close(&b);
}

static void test_replies_to_callers_that_are_gone_are_released_once_and_count(void)
{
    static const act forms[] = {DATA, RAW, ANSWER};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        bench b = bench_open(LATE, &(jzx_breaker_opts){0});
        b.service->late_ms = 20;
        b.service->late_as = forms[i];
        client *other = client_start(&b.r);
        (void)call(&b.r, other, b.breaker, 1);
        run_ms(&b.r, 5);
        CHECK_EQ(b.service->count, 1);
        REQUIRE_OK(jzx_send_u64(b.r.loop, other->id, 0, STOP_NOW));
        run_ms(&b.r, 30);
        CHECK_EQ(other->count, 0);
        CHECK_EQ(data_drops, forms[i] == ANSWER ? 0 : 1);
        CHECK_EQ(facts(&b)->successes, 1);
        bench_close(&b);
        free(other);
    }
}

/* --- time --- */

static void test_the_callee_gets_no_more_time_than_the_caller_has(void)
{
    bench b = bench_open(SILENT, &(jzx_breaker_opts){.timeout_ms = 1000, .window_calls = 20});
    uint64_t start = jzx_loop_now(b.r.loop);
    (void)call_with(&b.r, b.client, b.breaker, &(jzx_ask_opts){.tag = 1, .timeout_ms = 50});
    (void)call_with(&b.r, b.client, b.breaker,
                    &(jzx_ask_opts){.tag = 2, .timeout_ms = JZX_ASK_NO_TIMEOUT});
    run_ms(&b.r, 2);
    for (size_t i = 0; i < 2; i++) {
        const seen *it = &b.service->seen[i];
        uint64_t allowed = it->msg.tag == 1 ? 51 : 1005;
        CHECK(it->msg.deadline_ns > start && it->msg.deadline_ns <= start + allowed * MS);
    }
    run_ms(&b.r, 100);
    CHECK(answer_to(b.client, 0)->failed);
    CHECK_EQ(answer_to(b.client, 0)->failure.err, JZX_ERR_TIMED_OUT);
    run_ms(&b.r, 1000);
    CHECK_FAILED(b.client, 1, JZX_ERR_TIMED_OUT, JZX_OUTCOME_TIMED_OUT, 1);
    bench_close(&b);
}

static void test_a_cancelled_call_still_tells_the_breaker_how_the_callee_is(void)
{
    bench b = bench_open(SILENT, &(jzx_breaker_opts){.timeout_ms = 20});
    ask(&b, 1);
    REQUIRE_OK(jzx_send_u64(b.r.loop, b.client->id, 0, CANCEL_NOW));
    run_ms(&b.r, 30);
    CHECK_EQ(b.client->count, 0);
    CHECK_EQ(facts(&b)->failures, 1);
    CHECK_EQ(facts(&b)->in_flight, 0);
    bench_close(&b);
}

/* --- lives --- */

static void test_callers_hear_when_the_breaker_ends(void)
{
    bench b = bench_open(SILENT, &(jzx_breaker_opts){0});
    ask(&b, 1);
    REQUIRE_OK(jzx_stop(b.r.loop, b.breaker));
    run_ms(&b.r, 5);
    CHECK_FAILED(b.client, 0, JZX_ERR_NO_SUCH_ACTOR, JZX_OUTCOME_CALLEE_DIED, 0);
    ask(&b, 1);
    CHECK_EQ(b.client->errs[1], JZX_ERR_NO_SUCH_ACTOR);
    bench_close(&b);
}

static jzx_actor_id find_or_panic(jzx_context *ctx, void *arg)
{
    const service *callee = arg;
    if (callee->late_ms == 13) {
        jzx_panic(ctx, 1, "bad luck");
    }
    return callee->id;
}

static void test_a_restart_closes_it_and_forgets_what_it_counted_R18(void)
{
    rig r = rig_open(NULL);
    service *callee = service_start(&r, SILENT, NULL);
    client *c = client_start(&r);
    jzx_breaker_opts opts = {.find = find_or_panic, .arg = callee, .window_calls = 2};
    jzx_child_spec spec = {.id = "breaker"};
    REQUIRE_OK(jzx_breaker_child(r.loop, &opts, &spec));
    opts = (jzx_breaker_opts){0}; /* it was copied */
    jzx_actor_id sup = JZX_NOBODY;
    jzx_actor_id breaker = start_supervised(&r, &spec, &sup);
    SCRIPT(callee, FORGET, SILENT);
    call_and_run(&r, c, breaker, 1);
    call_and_run(&r, c, breaker, 1);
    CHECK_EQ(breaker_facts(&r, c, breaker)->failures, 1);
    callee->late_ms = 13;
    call_and_run(&r, c, breaker, 1);
    callee->late_ms = 0;
    /* The one that was under way and the one that made it fail. */
    CHECK_FAILED(c, 1, JZX_ERR_AGAIN, JZX_OUTCOME_CALLEE_RESTARTED, 0);
    CHECK_FAILED(c, 3, JZX_ERR_AGAIN, JZX_OUTCOME_CALLEE_RESTARTED, 0);
    const jzx_breaker_facts *f = breaker_facts(&r, c, breaker);
    CHECK_EQ(f->calls, 0);
    CHECK_EQ(f->state, JZX_BREAKER_CLOSED);
    CHECK_EQ(f->window_calls, 0);
    rig_close(&r);
    free(callee);
    free(c);
}

static jzx_actor_id find_nobody(jzx_context *ctx, void *arg)
{
    (void)ctx;
    (void)arg;
    return JZX_NOBODY;
}

static void test_who_is_asked_may_be_found_call_by_call(void)
{
    rig r = rig_open(NULL);
    service *callee = service_start(&r, ANSWER, NULL);
    bench b = bench_open_on(r, callee, &(jzx_breaker_opts){.find = find_or_panic, .arg = callee});
    ask(&b, 1);
    service *next = service_start(&b.r, ANSWER, NULL);
    callee->id = next->id;
    ask(&b, 1);
    CHECK_EQ(callee->count, 1);
    CHECK_EQ(next->count, 1);
    jzx_actor_id lost = breaker_start(&b.r, &(jzx_breaker_opts){.find = find_nobody});
    uint64_t which = call(&b.r, b.client, lost, 1);
    run_ms(&b.r, 2);
    CHECK_FAILED(b.client, which, JZX_ERR_NO_SUCH_ACTOR, JZX_OUTCOME_NO_SUCH_ACTOR, 1);
    CHECK_EQ(breaker_facts(&b.r, b.client, lost)->failures, 1);
    bench_close(&b);
    free(next);
}

static void test_a_breaker_behind_a_breaker_is_a_callee_that_fails(void)
{
    bench b = bench_open(FORGET, &(jzx_breaker_opts){0});
    jzx_actor_id outer =
        breaker_start(&b.r, &(jzx_breaker_opts){.callee = b.breaker, .window_calls = 3});
    for (uint32_t i = 0; i < 4; i++) {
        call_and_run(&b.r, b.client, outer, 1);
    }
    CHECK_FAILED(b.client, 1, JZX_ERR_AGAIN, JZX_OUTCOME_FORGOTTEN, 1);
    CHECK_FAILED(b.client, 2, JZX_ERR_CIRCUIT_OPEN, JZX_OUTCOME_REFUSED, 0); /* the inner one */
    CHECK_EQ(breaker_facts(&b.r, b.client, outer)->failures, 3);
    CHECK_EQ(breaker_facts(&b.r, b.client, outer)->short_circuited, 1);
    bench_close(&b);
}

/* --- bad input --- */

static jzx_err err_in_parent;

static jzx_behavior_result spawn_below_policy(jzx_context *ctx, const jzx_message *msg)
{
    jzx_supervisor_spec rules = {0};
    if (msg->kind == JZX_KIND_USER) {
        CHECK_OK(jzx_set_child_policy(ctx, &rules));
        err_in_parent =
            jzx_breaker_spawn(ctx->loop, &(jzx_breaker_opts){.callee = ctx->self}, NULL);
    }
    return JZX_BEHAVIOR_OK;
}

static void test_bad_input_is_refused_and_leaves_nothing_behind(void)
{
    bench b = bench_open(ANSWER, &(jzx_breaker_opts){0});
    jzx_loop *loop = b.r.loop;
    jzx_breaker_opts fine = {.callee = b.service->id};
    jzx_child_spec spec = {.id = "x"};
    struct {
        jzx_breaker_opts known;
        uint64_t unknown;
    } newer = {.known = fine, .unknown = 1};
    CHECK_EQ(jzx_breaker_spawn(NULL, &fine, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_breaker_spawn_sized(loop, NULL, sizeof fine, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_breaker_spawn(loop, &(jzx_breaker_opts){0}, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_breaker_spawn_sized(loop, &newer.known, sizeof newer, NULL), JZX_ERR_NEWER_STRUCT);
    CHECK_EQ(jzx_breaker_child(NULL, &fine, &spec), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_breaker_child(loop, &fine, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_breaker_child_sized(loop, NULL, sizeof fine, &spec), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_breaker_child_sized(loop, &newer.known, sizeof newer, &spec),
             JZX_ERR_NEWER_STRUCT);
    CHECK(spec.behavior == NULL && spec.arg == NULL);
    fine.mailbox_cap = JZX_MAILBOX_CAP_MAX + 1;
    CHECK_EQ(jzx_breaker_spawn(loop, &fine, NULL), JZX_ERR_TOO_BIG); /* of jzx_spawn() */
    CHECK_EQ(jzx_breaker_order(loop, b.breaker, 0), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_breaker_order(loop, b.breaker, 4), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_breaker_order(loop, JZX_NOBODY, JZX_BREAKER_RESET), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_STR(jzx_breaker_state_name(JZX_BREAKER_HALF_OPEN), "half-open");
    CHECK_STR(jzx_breaker_state_name(77), "unknown");
    REQUIRE_OK(jzx_breaker_child(loop, &(jzx_breaker_opts){.callee = b.service->id}, &spec));
    spec.drop_arg(spec.arg); /* a spec that nobody took */
    jzx_actor_id parent = JZX_NOBODY;
    jzx_spawn_opts plain = {.behavior = spawn_below_policy};
    REQUIRE_OK(jzx_spawn(loop, &plain, &parent));
    REQUIRE_OK(jzx_send_u64(loop, parent, 1, 1));
    run_ms(&b.r, 2);
    CHECK_EQ(err_in_parent, JZX_ERR_NOT_RESTARTABLE);
    bench_close(&b);
}

static void test_only_answers_without_an_answer_are_failures(void)
{
    jzx_call_failure out = {.err = 1};
    jzx_message msg = {.tag = JZX_TAG_CALL_FAILED, .flags = JZX_MSG_VALUE};
    CHECK_EQ(jzx_call_failed(NULL, &out), 0);
    CHECK_EQ(jzx_call_failed(&msg, &out), 0); /* sent, not replied */
    msg.kind = JZX_KIND_REPLY;
    CHECK_EQ(jzx_call_failed(&msg, NULL), 1);
    msg.flags = 0;
    CHECK_EQ(jzx_call_failed(&msg, &out), 0);
    msg = (jzx_message){.kind = JZX_KIND_REPLY, .tag = 7, .flags = JZX_MSG_VALUE};
    CHECK_EQ(jzx_call_failed(&msg, &out), 0);
    CHECK_EQ(out.err, 1);
    jzx_reply reply = {.outcome = JZX_OUTCOME_TIMED_OUT, .err = JZX_ERR_TIMED_OUT};
    msg = (jzx_message){.kind = JZX_KIND_REPLY, .tag = JZX_TAG_ASK_FAILED, .data = &reply};
    CHECK_EQ(jzx_call_failed(&msg, &out), 1);
    CHECK_EQ(out.err, JZX_ERR_TIMED_OUT);
    CHECK_EQ(out.outcome, JZX_OUTCOME_TIMED_OUT);
}

/* --- memory and threads --- */

static void let_pass(jzx_kit *kit, uint64_t ms)
{
    jzx_err err = jzx_kit_run(kit, ms);
    (void)err; /* in a sweep the world fails too */
}

/* Whatever fails: everybody who could ask hears once, and nothing is left. */
static const char *sweep_scenario(jzx_kit *kit, void *arg)
{
    rig r = {.kit = kit, .loop = kit->loop};
    static service callee;
    static client c;
    (void)arg;
    callee = (service){.then = COPY};
    c = (client){0};
    jzx_actor_id breaker = JZX_NOBODY;
    jzx_spawn_opts service_opts = {.behavior = service_behavior, .state = &callee};
    jzx_spawn_opts client_opts = {.behavior = client_behavior, .state = &c};
    if (jzx_spawn(r.loop, &service_opts, &callee.id) != JZX_OK ||
        jzx_spawn(r.loop, &client_opts, &c.id) != JZX_OK ||
        jzx_breaker_spawn(r.loop,
                          &(jzx_breaker_opts){.callee = callee.id, .listener = c.id, .open_ms = 9},
                          &breaker) != JZX_OK) {
        return NULL;
    }
    static const act script[] = {COPY, FORGET, FORGET, LATE, COPY};
    service_script(&callee, script, COUNT_OF(script));
    for (uint64_t i = 0; i < 6; i++) {
        c.to[i] = breaker;
        c.orders[i] = (jzx_ask_opts){.data = "text", .len = 5, .tag = 1, .flags = JZX_SEND_COPY};
        c.orders[i].arg = (void *)(uintptr_t)i;
        if (jzx_send_u64(r.loop, c.id, i, ASK_NOW) != JZX_OK) {
            c.errs[i] = JZX_ERR_NO_MEMORY;
        }
        let_pass(kit, 5);
    }
    c.to[6] = breaker;
    c.orders[6] = (jzx_ask_opts){.tag = JZX_TAG_BREAKER_FACTS};
    if (jzx_send_u64(r.loop, c.id, 6, ASK_NOW) != JZX_OK) {
        c.errs[6] = JZX_ERR_NO_MEMORY;
    }
    let_pass(kit, 20000);
    size_t refused = 0;
    for (size_t i = 0; i < 6; i++) {
        refused += c.errs[i] != JZX_OK ? 1 : 0;
    }
    bool facts_failed = c.errs[6] != JZX_OK || c.breaker.calls == 0;
    size_t extra = c.count > 6 - refused ? c.count - (6 - refused) : 0;
    if (c.count < 6 - refused || extra > (facts_failed ? 1u : 0u)) {
        return "a caller heard twice, or never";
    }
    return NULL;
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

/* The nth allocation from now fails, once, during a call with a copy there and a copy back. */
static const answer *call_without_memory(bench *b, uint64_t n)
{
    static char text[sizeof big];
    jzx_ask_opts opts = {.data = text, .len = sizeof text, .tag = 1, .flags = JZX_SEND_COPY};
    uint64_t which = call_with(&b->r, b->client, b->breaker, &opts);
    jzx_fault_arm_alloc(b->r.fault, n, 0);
    run_ms(&b->r, 2);
    jzx_fault_arm_alloc(b->r.fault, 0, 0);
    return b->client->errs[which] == JZX_OK ? answer_to(b->client, which) : NULL;
}

static void test_no_memory_is_told_at_once_and_counts_for_nothing(void)
{
    uint64_t told = 0;
    for (uint64_t n = 1; n < 30; n++) {
        bench b = bench_open(COPY, &(jzx_breaker_opts){0});
        const answer *it = call_without_memory(&b, n);
        /* The service too may have no memory for its answer, and then it forgets. */
        bool forgotten = it != NULL && it->failed && it->failure.err == JZX_ERR_AGAIN;
        bool no_memory = it != NULL && it->failed && it->failure.err == JZX_ERR_NO_MEMORY;
        CHECK(it == NULL || !it->failed || forgotten || no_memory);
        told += no_memory ? 1 : 0;
        CHECK_EQ(facts(&b)->failures, forgotten ? 1 : 0);
        bench_close(&b);
    }
    CHECK(told > 2);
}

static void test_a_probe_without_memory_gives_its_place_back(void)
{
    uint64_t errors = 0;
    for (uint64_t n = 1; n < 30; n++) {
        bench b = bench_open(ANSWER, &(jzx_breaker_opts){0});
        open_circuit(&b);
        run_ms(&b.r, 110);
        (void)call_without_memory(&b, n);
        errors += facts(&b)->errors;
        uint64_t which = call(&b.r, b.client, b.breaker, 1);
        run_ms(&b.r, 2);
        CHECK_GOOD(b.client, which, 2);
        bench_close(&b);
    }
    CHECK(errors > 0);
}

static uint32_t time_open(bench *b, const jzx_breaker_opts *opts)
{
    b->breaker = breaker_start(&b->r, opts);
    open_circuit(b);
    return b->client->breaker.retry_after_ms;
}

static void test_jitter_is_decided_by_the_seed_or_else_differs(void)
{
    bench b = bench_open(ANSWER, &(jzx_breaker_opts){0});
    jzx_breaker_opts opts = {.callee = b.service->id,
                             .window_calls = 2,
                             .open_ms = 1000000,
                             .open_jitter = 1,
                             .seed = 7};
    uint32_t one = time_open(&b, &opts);
    CHECK_EQ(time_open(&b, &opts), one);
    opts.seed = 0;
    uint32_t two = time_open(&b, &opts);
    CHECK(time_open(&b, &opts) != two);
    CHECK(two != one);
    bench_close(&b);
}

static void test_a_crowd_hears_every_answer_once(void)
{
    crowd c;
    crowd_open(&c);
    jzx_breaker_opts opts = {.callee = c.service, .failure_percent = 30, .open_ms = 1};
    jzx_actor_id breaker = JZX_NOBODY;
    REQUIRE_OK(jzx_breaker_spawn(c.kit->loop, &opts, &breaker));
    crowd_run(&c, breaker);
    CHECK_EQ(c.good + c.bad, c.served);
    CHECK(c.refused > 0);
    crowd_close(&c);
}

static const jzt_test tests[] = {
    {"data_of_refused_requests_is_released_once", test_data_of_refused_requests_is_released_once},
    {"replies_to_callers_that_are_gone_are_released_once_and_count",
     test_replies_to_callers_that_are_gone_are_released_once_and_count},
    {"the_callee_gets_no_more_time_than_the_caller_has",
     test_the_callee_gets_no_more_time_than_the_caller_has},
    {"a_cancelled_call_still_tells_the_breaker_how_the_callee_is",
     test_a_cancelled_call_still_tells_the_breaker_how_the_callee_is},
    {"callers_hear_when_the_breaker_ends", test_callers_hear_when_the_breaker_ends},
    {"a_restart_closes_it_and_forgets_what_it_counted_R18",
     test_a_restart_closes_it_and_forgets_what_it_counted_R18},
    {"who_is_asked_may_be_found_call_by_call", test_who_is_asked_may_be_found_call_by_call},
    {"a_breaker_behind_a_breaker_is_a_callee_that_fails",
     test_a_breaker_behind_a_breaker_is_a_callee_that_fails},
    {"bad_input_is_refused_and_leaves_nothing_behind",
     test_bad_input_is_refused_and_leaves_nothing_behind},
    {"only_answers_without_an_answer_are_failures",
     test_only_answers_without_an_answer_are_failures},
    {"every_allocation_may_fail", test_every_allocation_may_fail},
    {"no_memory_is_told_at_once_and_counts_for_nothing",
     test_no_memory_is_told_at_once_and_counts_for_nothing},
    {"a_probe_without_memory_gives_its_place_back",
     test_a_probe_without_memory_gives_its_place_back},
    {"jitter_is_decided_by_the_seed_or_else_differs",
     test_jitter_is_decided_by_the_seed_or_else_differs},
    {"a_crowd_hears_every_answer_once", test_a_crowd_hears_every_answer_once},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
