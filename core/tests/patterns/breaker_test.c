/* Goal: the circuit breaker as an actor: what callers, callee and listener see in every state.
 * Method: a scripted service and a client that remembers every answer, in virtual time. The
 * decisions themselves are tested in breaker_policy_unit.c. */
#include "breaker_kit.h"

#define CHECK_CHANGES(bench_, ...)                                                                 \
    do {                                                                                           \
        static const uint32_t want_[] = {__VA_ARGS__};                                             \
        check_tags(__LINE__, (bench_)->client->changes, (bench_)->client->change_count, want_,     \
                   COUNT_OF(want_));                                                               \
    } while (0)

/* --- closed --- */

static void test_closed_it_hands_on_requests_of_every_form(void)
{
    bench b = bench_open(ANSWER, &(jzx_breaker_opts){0});
    static char text[] = "hello";
    ask(&b, 41);
    (void)call_with(&b.r, b.client, b.breaker,
                    &(jzx_ask_opts){.data = text, .len = 6, .tag = 42, .flags = JZX_SEND_COPY});
    (void)call_with(
        &b.r, b.client, b.breaker,
        &(jzx_ask_opts){.data = new_string(text), .len = 6, .tag = 43, .drop = drop_string});
    (void)call_with(&b.r, b.client, b.breaker,
                    &(jzx_ask_opts){.data = new_string(text), .len = 6, .tag = 44});
    (void)call_with(&b.r, b.client, b.breaker,
                    &(jzx_ask_opts){.tag = 45, .flags = JZX_SEND_URGENT});
    run_ms(&b.r, 2);
    REQUIRE_EQ(b.service->count, 5);
    CHECK_GOOD(b.client, 0, 42);
    CHECK_EQ(answer_to(b.client, 0)->tag, 141);
    size_t with_text = 0;
    for (size_t i = 0; i < 5; i++) {
        const seen *it = &b.service->seen[i];
        CHECK_EQ(it->msg.sender, b.breaker);
        with_text += strcmp(it->bytes, text) == 0 ? 1 : 0;
        CHECK_EQ((it->msg.flags & JZX_MSG_URGENT) != 0, it->msg.tag == 45);
    }
    CHECK_EQ(with_text, 3);
    CHECK_EQ(data_drops, 2); /* of 43 by the runtime, of 44 by the service */
    CHECK_EQ(facts(&b)->successes, 5);
    bench_close(&b);
}

static void test_closed_it_hands_on_replies_of_every_form(void)
{
    bench b = bench_open(ANSWER, &(jzx_breaker_opts){0});
    SCRIPT(b.service, COPY, DATA, RAW, LATE);
    for (uint32_t i = 0; i < 4; i++) {
        ask(&b, 1 + i);
    }
    CHECK_STR(answer_to(b.client, 0)->bytes, "copied");
    CHECK_EQ(answer_to(b.client, 0)->flags & JZX_MSG_COPY, JZX_MSG_COPY);
    CHECK_STR(answer_to(b.client, 1)->bytes, "given");
    CHECK_STR(answer_to(b.client, 2)->bytes, "given");
    CHECK_EQ(answer_to(b.client, 2)->tag, 103);
    CHECK_GOOD(b.client, 3, 7);
    CHECK_EQ(data_drops, 2);
    bench_close(&b);
}

static jzx_err ask_err(bench *b, uint64_t which)
{
    const answer *it = answer_to(b->client, which);
    return it->failed ? (jzx_err)it->failure.err : JZX_OK;
}

static void test_every_outcome_but_a_reply_counts_and_is_told(void)
{
    static const struct {
        act what;
        jzx_err err;
        uint32_t outcome;
    } cases[] = {
        {SILENT, JZX_ERR_TIMED_OUT, JZX_OUTCOME_TIMED_OUT},
        {FORGET, JZX_ERR_AGAIN, JZX_OUTCOME_FORGOTTEN},
        {FAIL, JZX_ERR_AGAIN, JZX_OUTCOME_CALLEE_RESTARTED},
        {STOP, JZX_ERR_NO_SUCH_ACTOR, JZX_OUTCOME_CALLEE_DIED},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rig r = rig_open(NULL);
        bool dies = cases[i].what == STOP;
        service *callee =
            dies ? service_start(&r, ANSWER, NULL) : service_start_supervised(&r, ANSWER);
        bench b = bench_open_on(r, callee, &(jzx_breaker_opts){.timeout_ms = 20});
        SCRIPT(b.service, cases[i].what);
        ask(&b, 1);
        run_ms(&b.r, 30);
        CHECK_FAILED(b.client, 0, cases[i].err, cases[i].outcome, 1);
        CHECK_EQ(facts(&b)->failures, 1);
        ask(&b, 2); /* the next one is answered, unless there is nobody left */
        CHECK_EQ(ask_err(&b, 2), dies ? JZX_ERR_NO_SUCH_ACTOR : JZX_OK);
        CHECK_EQ(facts(&b)->window_failures, dies ? 2 : 1);
        CHECK_EQ(facts(&b)->state, JZX_BREAKER_OPEN); /* half of them is enough */
        bench_close(&b);
    }
}

static void test_a_full_mailbox_counts_as_a_failure(void)
{
    rig r = rig_open(NULL);
    service *callee = service_start(&r, ANSWER, &(jzx_spawn_opts){.mailbox_cap = 8});
    bench b = bench_open_on(r, callee, &(jzx_breaker_opts){.window_calls = 40, .min_calls = 40});
    uint64_t full = 0;
    for (uint32_t i = 0; i < 30; i++) {
        (void)call(&b.r, b.client, b.breaker, 1);
    }
    run_ms(&b.r, 5);
    for (uint64_t i = 0; i < 30; i++) {
        const answer *it = answer_to(b.client, i);
        full += it->failed && it->failure.outcome == JZX_OUTCOME_MAILBOX_FULL ? 1 : 0;
        CHECK(!it->failed || it->failure.err == JZX_ERR_MAILBOX_FULL);
    }
    CHECK_EQ(facts(&b)->failures, full);
    CHECK_EQ(facts(&b)->window_failures, full);
    bench_close(&b);
}

static void test_a_reply_that_the_user_calls_a_failure_is_handed_on_and_counts(void)
{
    bench b = bench_open(BAD, &(jzx_breaker_opts){.is_failure = is_bad});
    ask(&b, 1);
    ask(&b, 1);
    ask(&b, 1);
    CHECK_GOOD(b.client, 0, 13);
    CHECK_EQ(answer_to(b.client, 1)->tag, BAD_TAG);
    CHECK_FAILED(b.client, 2, JZX_ERR_CIRCUIT_OPEN, JZX_OUTCOME_REFUSED, 0);
    bench_close(&b);
}

static void test_slow_replies_are_handed_on_and_count_as_failures(void)
{
    bench b = bench_open(LATE, &(jzx_breaker_opts){.slow_ms = 10});
    b.service->late_ms = 5;
    ask(&b, 1);
    run_ms(&b.r, 10);
    CHECK_EQ(facts(&b)->slow, 0);
    b.service->late_ms = 30;
    (void)call(&b.r, b.client, b.breaker, 1);
    run_ms(&b.r, 50);
    CHECK_GOOD(b.client, 2, 7);
    const jzx_breaker_facts *f = facts(&b);
    CHECK_EQ(f->slow, 1);
    CHECK_EQ(f->failures, 1);
    CHECK_EQ(f->state, JZX_BREAKER_OPEN); /* one of two */
    bench_close(&b);
}

/* --- open and half-open --- */

static void test_open_it_answers_at_once_and_leaves_the_callee_alone(void)
{
    bench b = bench_open(ANSWER, &(jzx_breaker_opts){0});
    open_circuit(&b);
    size_t before = b.service->count;
    uint64_t asked_ns = jzx_loop_now(b.r.loop);
    uint64_t which = call(&b.r, b.client, b.breaker, 9);
    run_ms(&b.r, 2);
    CHECK_FAILED(b.client, which, JZX_ERR_CIRCUIT_OPEN, JZX_OUTCOME_REFUSED, 0);
    const answer *it = answer_to(b.client, which);
    CHECK(it->failure.retry_after_ms > 80 && it->failure.retry_after_ms <= 100);
    CHECK_EQ(it->outcome, JZX_OUTCOME_REPLIED);
    CHECK_EQ(it->tag, JZX_TAG_CALL_FAILED);
    CHECK(it->at_ns - asked_ns < MS);
    CHECK_EQ(b.service->count, before);
    const jzx_breaker_facts *f = facts(&b);
    CHECK_EQ(f->short_circuited, 1);
    CHECK_EQ(f->opened, 1);
    CHECK_CHANGES(&b, JZX_BREAKER_OPEN);
    bench_close(&b);
}

static void test_half_open_a_good_probe_closes_it(void)
{
    bench b = bench_open(ANSWER, &(jzx_breaker_opts){0});
    open_circuit(&b);
    run_ms(&b.r, 110);
    CHECK_CHANGES(&b, JZX_BREAKER_OPEN); /* no timer: nothing happens by itself */
    uint64_t which = call(&b.r, b.client, b.breaker, 1);
    run_ms(&b.r, 2);
    CHECK_GOOD(b.client, which, 2);
    CHECK_CHANGES(&b, JZX_BREAKER_OPEN, JZX_BREAKER_HALF_OPEN, JZX_BREAKER_CLOSED);
    const jzx_breaker_facts *f = facts(&b);
    CHECK_EQ(f->probes, 1);
    CHECK_EQ(f->window_calls, 0);
    bench_close(&b);
}

static void test_half_open_only_probes_pass_and_a_bad_one_opens_for_longer(void)
{
    bench b =
        bench_open(SILENT, &(jzx_breaker_opts){.probes = 2, .timeout_ms = 10, .open_max_ms = 1000});
    open_circuit(&b);
    run_ms(&b.r, 110);
    uint64_t first = call(&b.r, b.client, b.breaker, 1);
    for (int i = 0; i < 3; i++) {
        (void)call(&b.r, b.client, b.breaker, 1);
    }
    size_t before = b.service->count;
    run_ms(&b.r, 5);
    CHECK_EQ(b.service->count - before, 2);
    CHECK_FAILED(b.client, first + 2, JZX_ERR_CIRCUIT_OPEN, JZX_OUTCOME_REFUSED, 0);
    CHECK_EQ(answer_to(b.client, first + 3)->failure.retry_after_ms, 0);
    run_ms(&b.r, 20);
    CHECK_FAILED(b.client, first, JZX_ERR_TIMED_OUT, JZX_OUTCOME_TIMED_OUT, 1);
    const jzx_breaker_facts *f = facts(&b);
    CHECK_EQ(f->state, JZX_BREAKER_OPEN);
    CHECK(f->retry_after_ms > 150 && f->retry_after_ms <= 200);
    CHECK_EQ(f->opened, 2); /* the second probe's end opened nothing */
    CHECK_CHANGES(&b, JZX_BREAKER_OPEN, JZX_BREAKER_HALF_OPEN, JZX_BREAKER_OPEN);
    bench_close(&b);
}

static void test_the_facts_tell_of_half_open_when_the_time_is_over(void)
{
    bench b = bench_open(ANSWER, &(jzx_breaker_opts){0});
    open_circuit(&b);
    run_ms(&b.r, 110);
    CHECK_EQ(facts(&b)->state, JZX_BREAKER_HALF_OPEN);
    CHECK_CHANGES(&b, JZX_BREAKER_OPEN, JZX_BREAKER_HALF_OPEN);
    bench_close(&b);
}

static void test_an_outcome_from_before_the_opening_decides_nothing(void)
{
    bench b = bench_open(ANSWER, &(jzx_breaker_opts){.timeout_ms = 200});
    SCRIPT(b.service, SILENT, FORGET, FORGET);
    ask(&b, 1); /* times out at 200, when the circuit is half-open */
    ask(&b, 1);
    ask(&b, 1);
    run_ms(&b.r, 150);
    CHECK_EQ(facts(&b)->state, JZX_BREAKER_HALF_OPEN);
    run_ms(&b.r, 100);
    CHECK_FAILED(b.client, 0, JZX_ERR_TIMED_OUT, JZX_OUTCOME_TIMED_OUT, 1);
    CHECK_EQ(facts(&b)->state, JZX_BREAKER_HALF_OPEN);
    CHECK_EQ(facts(&b)->failures, 3);
    bench_close(&b);
}

static void test_orders_open_close_and_reset(void)
{
    bench b = bench_open(ANSWER, &(jzx_breaker_opts){0});
    REQUIRE_OK(jzx_breaker_order(b.r.loop, b.breaker, JZX_BREAKER_FORCE_OPEN));
    run_ms(&b.r, 100000);
    ask(&b, 1);
    CHECK_FAILED(b.client, 0, JZX_ERR_CIRCUIT_OPEN, JZX_OUTCOME_REFUSED, 0);
    CHECK_EQ(facts(&b)->forced, 1);
    REQUIRE_OK(jzx_breaker_order(b.r.loop, b.breaker, JZX_BREAKER_FORCE_CLOSED));
    b.service->then = FORGET;
    for (int i = 0; i < 5; i++) {
        ask(&b, 1);
    }
    CHECK_EQ(facts(&b)->state, JZX_BREAKER_CLOSED);
    CHECK_EQ(facts(&b)->failures, 5);
    REQUIRE_OK(jzx_breaker_order(b.r.loop, b.breaker, JZX_BREAKER_RESET));
    CHECK_EQ(facts(&b)->forced, 0);
    ask(&b, 1);
    ask(&b, 1);
    CHECK_EQ(facts(&b)->state, JZX_BREAKER_OPEN);
    CHECK_CHANGES(&b, JZX_BREAKER_OPEN, JZX_BREAKER_CLOSED, JZX_BREAKER_OPEN);
    bench_close(&b);
}

static void test_no_more_than_max_calls_are_under_way(void)
{
    bench b = bench_open(LATE, &(jzx_breaker_opts){.max_calls = 2});
    b.service->late_ms = 50;
    for (int i = 0; i < 3; i++) {
        ask(&b, 1);
    }
    CHECK_FAILED(b.client, 2, JZX_ERR_BUSY, JZX_OUTCOME_REFUSED, 0);
    CHECK_EQ(facts(&b)->in_flight, 2);
    run_ms(&b.r, 60);
    uint64_t which = call(&b.r, b.client, b.breaker, 1);
    run_ms(&b.r, 60);
    CHECK_GOOD(b.client, which, 7);
    const jzx_breaker_facts *f = facts(&b);
    CHECK_EQ(f->busy, 1);
    CHECK_EQ(f->successes, 3); /* being refused is nobody's failure */
    CHECK_EQ(f->failures, 0);
    bench_close(&b);
}

/* --- messages that are no asks --- */

static void test_plain_messages_pass_when_closed_and_are_dead_letters_otherwise(void)
{
    bench b = bench_open(ANSWER, &(jzx_breaker_opts){0});
    REQUIRE_OK(jzx_send_u64(b.r.loop, b.breaker, 5, 50));
    run_ms(&b.r, 2);
    CHECK_EQ(b.service->plain, 1);
    CHECK_EQ(b.service->seen[0].msg.sender, JZX_NOBODY); /* as it was sent, not from the breaker */
    open_circuit(&b);
    jzx_send_opts opts = {.data = new_string("lost"), .len = 5, .tag = 51, .drop = drop_string};
    REQUIRE_OK(jzx_send_with(b.r.loop, b.breaker, &opts));
    REQUIRE_OK(jzx_send(b.r.loop, b.breaker, new_string("lost"), 5, 52));
    run_ms(&b.r, 2);
    CHECK_EQ(b.service->plain, 1);
    CHECK_EQ(data_drops, 2);
    CHECK_DEAD(&b.r, DEAD(JZX_DEAD_DISCARDED, 51), DEAD(JZX_DEAD_DISCARDED, 52));
    const jzx_breaker_facts *f = facts(&b);
    CHECK_EQ(f->passed, 1);
    CHECK_EQ(f->dropped, 2);
    CHECK_EQ(f->calls, 2);
    bench_close(&b);
}

static void test_a_plain_message_to_a_callee_that_is_gone_is_a_dead_letter(void)
{
    bench b = bench_open(ANSWER, &(jzx_breaker_opts){0});
    REQUIRE_OK(jzx_stop(b.r.loop, b.service->id));
    run_ms(&b.r, 2);
    REQUIRE_OK(jzx_send(b.r.loop, b.breaker, new_string("lost"), 5, 52));
    run_ms(&b.r, 2);
    CHECK_EQ(data_drops, 1);
    CHECK_DEAD(&b.r, DEAD(JZX_DEAD_DISCARDED, 52));
    CHECK_EQ(facts(&b)->dropped, 1);
    bench_close(&b);
}

static const jzt_test tests[] = {
    {"closed_it_hands_on_requests_of_every_form", test_closed_it_hands_on_requests_of_every_form},
    {"closed_it_hands_on_replies_of_every_form", test_closed_it_hands_on_replies_of_every_form},
    {"every_outcome_but_a_reply_counts_and_is_told",
     test_every_outcome_but_a_reply_counts_and_is_told},
    {"a_full_mailbox_counts_as_a_failure", test_a_full_mailbox_counts_as_a_failure},
    {"a_reply_that_the_user_calls_a_failure_is_handed_on_and_counts",
     test_a_reply_that_the_user_calls_a_failure_is_handed_on_and_counts},
    {"slow_replies_are_handed_on_and_count_as_failures",
     test_slow_replies_are_handed_on_and_count_as_failures},
    {"open_it_answers_at_once_and_leaves_the_callee_alone",
     test_open_it_answers_at_once_and_leaves_the_callee_alone},
    {"half_open_a_good_probe_closes_it", test_half_open_a_good_probe_closes_it},
    {"half_open_only_probes_pass_and_a_bad_one_opens_for_longer",
     test_half_open_only_probes_pass_and_a_bad_one_opens_for_longer},
    {"the_facts_tell_of_half_open_when_the_time_is_over",
     test_the_facts_tell_of_half_open_when_the_time_is_over},
    {"an_outcome_from_before_the_opening_decides_nothing",
     test_an_outcome_from_before_the_opening_decides_nothing},
    {"orders_open_close_and_reset", test_orders_open_close_and_reset},
    {"no_more_than_max_calls_are_under_way", test_no_more_than_max_calls_are_under_way},
    {"plain_messages_pass_when_closed_and_are_dead_letters_otherwise",
     test_plain_messages_pass_when_closed_and_are_dead_letters_otherwise},
    {"a_plain_message_to_a_callee_that_is_gone_is_a_dead_letter",
     test_a_plain_message_to_a_callee_that_is_gone_is_a_dead_letter},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
