/* Goal: retries as an actor: what is asked again, when, how often and for whom, and what the caller
 * hears in the end. Method: a scripted service and a client that remembers every answer, in virtual
 * time. The decisions themselves are tested in breaker_policy_unit.c. */
#include "retry_kit.h"

/* --- asking again --- */

static void test_a_good_first_answer_is_handed_on_in_every_form(void)
{
    bench b = bench_open(ANSWER, &(jzx_retry_opts){0});
    SCRIPT(b.service, ANSWER, COPY, DATA, RAW);
    for (uint32_t i = 0; i < 4; i++) {
        (void)ask(&b, 1, 2);
    }
    CHECK_GOOD(b.client, 0, 2);
    CHECK_STR(answer_to(b.client, 1)->bytes, "copied");
    CHECK_STR(answer_to(b.client, 2)->bytes, "given");
    CHECK_STR(answer_to(b.client, 3)->bytes, "given");
    CHECK_EQ(data_drops, 2);
    const jzx_retry_facts *f = facts(&b);
    CHECK_EQ(f->successes, 4);
    CHECK_EQ(f->attempts, 4);
    CHECK_EQ(f->retries, 0);
    bench_close(&b);
}

static void test_a_request_is_asked_again_as_it_was(void)
{
    static char text[] = "hello";
    bench b = bench_open(ANSWER, &(jzx_retry_opts){0});
    SCRIPT(b.service, FAIL, FAIL, ANSWER);
    (void)ask(&b, 41, 100);
    CHECK_GOOD(b.client, 0, 42);
    SCRIPT(b.service, FAIL, FAIL, COPY);
    (void)call_with(
        &b.r, b.client, b.retry,
        &(jzx_ask_opts){
            .data = text, .len = 6, .tag = 42, .flags = JZX_SEND_COPY | JZX_SEND_URGENT});
    text[0] = 'j'; /* too early: the client has not asked yet */
    run_ms(&b.r, 100);
    text[0] = 'h';
    REQUIRE_EQ(b.service->count, 3);
    for (size_t i = 0; i < 3; i++) {
        CHECK_STR(b.service->seen[i].bytes, "jello");
        CHECK_EQ(b.service->seen[i].msg.tag, 42);
        uint16_t flags = b.service->seen[i].msg.flags;
        CHECK((flags & JZX_MSG_COPY) != 0 && (flags & JZX_MSG_URGENT) != 0);
        CHECK_EQ(b.service->seen[i].msg.sender, b.retry);
    }
    SCRIPT(b.service, FAIL, COPY);
    (void)call_with(&b.r, b.client, b.retry, &(jzx_ask_opts){.tag = 43}); /* no data at all */
    (void)call_with(&b.r, b.client, b.retry,
                    &(jzx_ask_opts){.data = text, .tag = 44, .flags = JZX_SEND_COPY});
    run_ms(&b.r, 100);
    CHECK(!answer_to(b.client, 2)->failed && !answer_to(b.client, 3)->failed);
    CHECK_EQ(facts(&b)->retries, 5);
    bench_close(&b);
}

static void test_data_that_can_be_given_only_once_is_refused_and_released(void)
{
    bench b = bench_open(ANSWER, &(jzx_retry_opts){0});
    (void)call_with(
        &b.r, b.client, b.retry,
        &(jzx_ask_opts){.data = new_string("x"), .len = 2, .tag = 1, .drop = drop_string});
    (void)call_with(&b.r, b.client, b.retry,
                    &(jzx_ask_opts){.data = new_string("x"), .len = 2, .tag = 2});
    run_ms(&b.r, 5);
    CHECK_FAILED(b.client, 0, JZX_ERR_NOT_SUPPORTED, JZX_OUTCOME_REFUSED, 0);
    CHECK_FAILED(b.client, 1, JZX_ERR_NOT_SUPPORTED, JZX_OUTCOME_REFUSED, 0);
    CHECK_EQ(data_drops, 2);
    CHECK_EQ(b.service->count, 0);
    CHECK_EQ(facts(&b)->refused, 2);
    bench_close(&b);
}

static void test_after_the_last_attempt_the_caller_hears_what_happened(void)
{
    bench b = bench_open(SILENT, &(jzx_retry_opts){.max_attempts = 4});
    uint64_t which = ask(&b, 1, 500);
    CHECK_FAILED(b.client, which, JZX_ERR_TIMED_OUT, JZX_OUTCOME_TIMED_OUT, 4);
    CHECK_EQ(b.service->count, 4);
    const jzx_retry_facts *f = facts(&b);
    CHECK_EQ(f->failures, 1);
    CHECK_EQ(f->retries, 3);
    CHECK_EQ(f->in_flight, 0);
    bench_close(&b);
}

static void test_between_attempts_it_backs_off(void)
{
    bench b =
        bench_open(FORGET, &(jzx_retry_opts){.max_attempts = 6,
                                             .backoff_max_ms = 60,
                                             .retry_on = JZX_RETRY_ON(JZX_OUTCOME_FORGOTTEN)});
    static const uint64_t gap_ms[] = {10, 20, 40, 60, 60};
    (void)ask(&b, 1, 1000);
    REQUIRE_EQ(b.service->count, 6);
    for (size_t i = 0; i < COUNT_OF(gap_ms); i++) {
        uint64_t gap = b.service->seen[i + 1].at_ns - b.service->seen[i].at_ns;
        CHECK(gap >= gap_ms[i] * MS && gap < (gap_ms[i] + 3) * MS);
    }
    bench_close(&b);
}

static void test_only_outcomes_that_were_asked_for_are_tried_again(void)
{
    bench b = bench_open(ANSWER, &(jzx_retry_opts){0});
    SCRIPT(b.service, FORGET); /* is not, by default */
    uint64_t which = ask(&b, 1, 100);
    CHECK_FAILED(b.client, which, JZX_ERR_AGAIN, JZX_OUTCOME_FORGOTTEN, 1);
    bench_close(&b);
    b = bench_open(ANSWER, &(jzx_retry_opts){.retry_on = JZX_RETRY_NONE, .is_failure = is_bad});
    SCRIPT(b.service, FAIL, BAD, ANSWER);
    which = ask(&b, 1, 100);
    CHECK_FAILED(b.client, which, JZX_ERR_AGAIN, JZX_OUTCOME_CALLEE_RESTARTED, 1);
    which = ask(&b, 1, 100);
    CHECK_GOOD(b.client, which, 2);
    bench_close(&b);
}

static void test_a_bad_reply_is_tried_again_and_handed_on_in_the_end(void)
{
    bench b = bench_open(BAD, &(jzx_retry_opts){.is_failure = is_bad});
    SCRIPT(b.service, BAD, ANSWER);
    uint64_t which = ask(&b, 1, 100);
    CHECK_GOOD(b.client, which, 2);
    which = ask(&b, 1, 200);
    CHECK_GOOD(b.client, which, 13); /* what the callee said at last */
    CHECK_EQ(answer_to(b.client, which)->tag, BAD_TAG);
    const jzx_retry_facts *f = facts(&b);
    CHECK_EQ(f->successes, 1);
    CHECK_EQ(f->failures, 1);
    CHECK_EQ(f->attempts, 5);
    bench_close(&b);
}

static int is_string(void *arg, const jzx_message *reply)
{
    (void)arg;
    return (reply->flags & JZX_MSG_VALUE) == 0;
}

static void test_data_of_bad_replies_is_released_once(void)
{
    bench b = bench_open(ANSWER, &(jzx_retry_opts){.is_failure = is_string});
    SCRIPT(b.service, RAW, DATA, ANSWER); /* tried again */
    (void)ask(&b, 1, 100);
    CHECK_GOOD(b.client, 0, 2);
    CHECK_EQ(data_drops, 2);
    SCRIPT(b.service, RAW, DATA, RAW); /* the last one is handed on */
    (void)ask(&b, 1, 100);
    CHECK_STR(answer_to(b.client, 1)->bytes, "given");
    CHECK_EQ(data_drops, 5);
    SCRIPT(b.service, LATE); /* nobody waits for it */
    b.service->late_ms = 10;
    b.service->late_as = RAW;
    (void)ask(&b, 1, 5);
    REQUIRE_OK(jzx_send_u64(b.r.loop, b.client->id, 2, CANCEL_NOW));
    run_ms(&b.r, 50);
    CHECK_EQ(data_drops, 6);
    bench_close(&b);
}

static void test_a_full_mailbox_is_tried_again_when_there_is_room(void)
{
    rig r = rig_open(NULL);
    service *callee = service_start(&r, ANSWER, &(jzx_spawn_opts){.mailbox_cap = 8});
    bench b = bench_open_on(r, callee,
                            &(jzx_retry_opts){.max_attempts = 20,
                                              .backoff_jitter = 0.5,
                                              .budget_percent = JZX_RETRY_UNLIMITED});
    for (uint32_t i = 0; i < 30; i++) {
        (void)call(&b.r, b.client, b.retry, 1);
    }
    run_ms(&b.r, 2000);
    for (uint64_t i = 0; i < 30; i++) {
        CHECK_GOOD(b.client, i, 2);
    }
    bench_close(&b);
}

static jzx_actor_id find_service(jzx_context *ctx, void *arg)
{
    (void)ctx;
    return ((const service *)arg)->id;
}

static void test_a_callee_that_is_gone_is_found_again(void)
{
    rig r = rig_open(NULL);
    service *callee = service_start(&r, ANSWER, NULL);
    bench b = bench_open_on(r, callee, &(jzx_retry_opts){.find = find_service, .arg = callee});
    SCRIPT(callee, STOP);
    uint64_t which = ask(&b, 1, 5); /* died of it */
    service *next = service_start(&b.r, ANSWER, NULL);
    callee->id = next->id;
    run_ms(&b.r, 20);
    CHECK_GOOD(b.client, which, 2);
    callee->id = JZX_NOBODY;
    which = ask(&b, 1, 200);
    CHECK_FAILED(b.client, which, JZX_ERR_NO_SUCH_ACTOR, JZX_OUTCOME_NO_SUCH_ACTOR, 3);
    bench_close(&b);
    free(next);
}

/* --- for whom, and until when --- */

static void test_it_does_not_try_beyond_the_callers_deadline(void)
{
    bench b = bench_open(SILENT, &(jzx_retry_opts){.max_attempts = 10});
    uint64_t start = jzx_loop_now(b.r.loop);
    (void)call_with(&b.r, b.client, b.retry, &(jzx_ask_opts){.tag = 1, .timeout_ms = 75});
    run_ms(&b.r, 200);
    /* Attempts at 0 and 30; the next one would begin at 70 and be over at 75; none after that. */
    const answer *it = answer_to(b.client, 0);
    CHECK(it->failed && it->failure.err == JZX_ERR_TIMED_OUT);
    CHECK(it->at_ns - start <= 78 * MS);
    CHECK_EQ(b.service->count, 3);
    CHECK(b.service->seen[2].msg.deadline_ns <= start + 76 * MS);
    SCRIPT(b.service, SILENT, ANSWER);
    (void)call_with(&b.r, b.client, b.retry, &(jzx_ask_opts){.tag = 1, .timeout_ms = 28});
    run_ms(&b.r, 100);
    CHECK_FAILED(b.client, 1, JZX_ERR_TIMED_OUT, JZX_OUTCOME_TIMED_OUT, 1); /* told at 20 */
    CHECK_EQ(facts(&b)->no_time, 1);
    bench_close(&b);
}

static void test_nobody_waits_then_nobody_is_asked(void)
{
    bench b = bench_open(FAIL, &(jzx_retry_opts){.backoff_min_ms = 50});
    client *other = client_start(&b.r);
    (void)call(&b.r, b.client, b.retry, 1);
    (void)call(&b.r, other, b.retry, 1);
    run_ms(&b.r, 10);
    CHECK_EQ(b.service->count, 2);
    REQUIRE_OK(jzx_send_u64(b.r.loop, b.client->id, 0, CANCEL_NOW));
    REQUIRE_OK(jzx_send_u64(b.r.loop, other->id, 0, STOP_NOW));
    run_ms(&b.r, 500);
    CHECK_EQ(b.service->count, 2);
    CHECK_EQ(b.client->count + other->count, 0);
    const jzx_retry_facts *f = facts(&b);
    CHECK_EQ(f->unwanted, 2);
    CHECK_EQ(f->in_flight, 0);
    bench_close(&b);
    free(other);
}

/* --- the rest --- */

static void test_messages_that_are_no_asks_are_passed_on(void)
{
    bench b = bench_open(ANSWER, &(jzx_retry_opts){0});
    REQUIRE_OK(jzx_send(b.r.loop, b.retry, NULL, 0, 50));
    run_ms(&b.r, 2);
    CHECK_EQ(b.service->plain, 1);
    REQUIRE_OK(jzx_stop(b.r.loop, b.service->supervisor));
    run_ms(&b.r, 10);
    REQUIRE_OK(jzx_send(b.r.loop, b.retry, new_string("x"), 2, 51));
    run_ms(&b.r, 2);
    CHECK_EQ(data_drops, 1);
    CHECK_EQ(facts(&b)->passed, 1);
    CHECK_EQ(facts(&b)->dropped, 1);
    bench_close(&b);
}

static void test_no_more_than_max_calls_are_under_way(void)
{
    bench b = bench_open(FAIL, &(jzx_retry_opts){.max_calls = 2, .backoff_min_ms = 50});
    for (int i = 0; i < 3; i++) {
        (void)ask(&b, 1, 5);
    }
    CHECK_FAILED(b.client, 2, JZX_ERR_BUSY, JZX_OUTCOME_REFUSED, 0); /* two back off */
    CHECK_EQ(facts(&b)->in_flight, 2);
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

static void test_callers_hear_when_it_restarts_or_ends(void)
{
    rig r = rig_open(NULL);
    service *callee = service_start_supervised(&r, FAIL);
    client *c = client_start(&r);
    jzx_retry_opts opts = {.find = find_or_panic, .arg = callee, .backoff_min_ms = 50};
    jzx_child_spec spec = {.id = "retry"};
    REQUIRE_OK(jzx_retry_child(r.loop, &opts, &spec));
    opts = (jzx_retry_opts){0}; /* it was copied */
    jzx_actor_id sup = JZX_NOBODY;
    jzx_actor_id retry = start_supervised(&r, &spec, &sup);
    SCRIPT(callee, FAIL, SILENT);
    call_and_run(&r, c, retry, 1); /* backs off */
    call_and_run(&r, c, retry, 1); /* is asked */
    callee->late_ms = 13;
    call_and_run(&r, c, retry, 1);
    callee->late_ms = 0;
    for (uint64_t i = 0; i < 3; i++) {
        CHECK_FAILED(c, i, JZX_ERR_AGAIN, JZX_OUTCOME_CALLEE_RESTARTED, 0);
    }
    CHECK_EQ(retry_facts(&r, c, retry)->calls, 0);
    run_ms(&r, 500); /* timers and answers of its first life are gone */
    SCRIPT(callee, FAIL);
    call_and_run(&r, c, retry, 1);
    REQUIRE_OK(jzx_stop(r.loop, sup));
    run_ms(&r, 10);
    CHECK_FAILED(c, 4, JZX_ERR_NO_SUCH_ACTOR, JZX_OUTCOME_CALLEE_DIED, 0);
    rig_close(&r);
    free(callee);
    free(c);
}

static jzx_err err_in_parent;

static jzx_behavior_result spawn_below_policy(jzx_context *ctx, const jzx_message *msg)
{
    jzx_supervisor_spec rules = {0};
    if (msg->kind == JZX_KIND_USER) {
        CHECK_OK(jzx_set_child_policy(ctx, &rules));
        err_in_parent = jzx_retry_spawn(ctx->loop, &(jzx_retry_opts){.callee = ctx->self}, NULL);
    }
    return JZX_BEHAVIOR_OK;
}

static void test_bad_input_is_refused_and_leaves_nothing_behind(void)
{
    bench b = bench_open(ANSWER, &(jzx_retry_opts){0});
    jzx_loop *loop = b.r.loop;
    jzx_retry_opts fine = {.callee = b.service->id};
    jzx_child_spec spec = {.id = "x"};
    struct {
        jzx_retry_opts known;
        uint64_t unknown;
    } newer = {.known = fine, .unknown = 1};
    CHECK_EQ(jzx_retry_spawn(NULL, &fine, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_retry_spawn_sized(loop, NULL, sizeof fine, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_retry_spawn(loop, &(jzx_retry_opts){0}, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_retry_spawn_sized(loop, &newer.known, sizeof newer, NULL), JZX_ERR_NEWER_STRUCT);
    CHECK_EQ(jzx_retry_child(NULL, &fine, &spec), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_retry_child(loop, &fine, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_retry_child_sized(loop, NULL, sizeof fine, &spec), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_retry_child_sized(loop, &newer.known, sizeof newer, &spec), JZX_ERR_NEWER_STRUCT);
    CHECK(spec.behavior == NULL && spec.arg == NULL);
    fine.mailbox_cap = JZX_MAILBOX_CAP_MAX + 1;
    CHECK_EQ(jzx_retry_spawn(loop, &fine, NULL), JZX_ERR_TOO_BIG); /* of jzx_spawn() */
    REQUIRE_OK(jzx_retry_child(loop, &(jzx_retry_opts){.callee = b.service->id}, &spec));
    spec.drop_arg(spec.arg); /* a spec that nobody took */
    jzx_actor_id parent = JZX_NOBODY;
    jzx_spawn_opts plain = {.behavior = spawn_below_policy};
    REQUIRE_OK(jzx_spawn(loop, &plain, &parent));
    REQUIRE_OK(jzx_send_u64(loop, parent, 1, 1));
    run_ms(&b.r, 2);
    CHECK_EQ(err_in_parent, JZX_ERR_NOT_RESTARTABLE);
    bench_close(&b);
}

static const jzt_test tests[] = {
    {"a_good_first_answer_is_handed_on_in_every_form",
     test_a_good_first_answer_is_handed_on_in_every_form},
    {"a_request_is_asked_again_as_it_was", test_a_request_is_asked_again_as_it_was},
    {"data_that_can_be_given_only_once_is_refused_and_released",
     test_data_that_can_be_given_only_once_is_refused_and_released},
    {"after_the_last_attempt_the_caller_hears_what_happened",
     test_after_the_last_attempt_the_caller_hears_what_happened},
    {"between_attempts_it_backs_off", test_between_attempts_it_backs_off},
    {"only_outcomes_that_were_asked_for_are_tried_again",
     test_only_outcomes_that_were_asked_for_are_tried_again},
    {"a_bad_reply_is_tried_again_and_handed_on_in_the_end",
     test_a_bad_reply_is_tried_again_and_handed_on_in_the_end},
    {"data_of_bad_replies_is_released_once", test_data_of_bad_replies_is_released_once},
    {"a_full_mailbox_is_tried_again_when_there_is_room",
     test_a_full_mailbox_is_tried_again_when_there_is_room},
    {"a_callee_that_is_gone_is_found_again", test_a_callee_that_is_gone_is_found_again},
    {"it_does_not_try_beyond_the_callers_deadline",
     test_it_does_not_try_beyond_the_callers_deadline},
    {"nobody_waits_then_nobody_is_asked", test_nobody_waits_then_nobody_is_asked},
    {"messages_that_are_no_asks_are_passed_on", test_messages_that_are_no_asks_are_passed_on},
    {"no_more_than_max_calls_are_under_way", test_no_more_than_max_calls_are_under_way},
    {"callers_hear_when_it_restarts_or_ends", test_callers_hear_when_it_restarts_or_ends},
    {"bad_input_is_refused_and_leaves_nothing_behind",
     test_bad_input_is_refused_and_leaves_nothing_behind},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
