/* Goal: an answer of another type, or to another question, is refused; threads that wait get
 * theirs. Method: protocol_ask_kit.h; threads that wait on a real loop. */
#include "protocol_ask_kit.h"

static void test_an_answer_of_another_type_is_refused(void)
{
    pair *p = pair_open(bank_tag_balance, WRONG_TAG);
    pair_ask(p);
    CHECK_EQ(p->a.err, JZX_ERR_WRONG_TYPE);
    pair_close(p);
    p = pair_open(bank_tag_history, WRONG_SIZE);
    pair_ask(p);
    CHECK_EQ(p->a.err, JZX_ERR_WRONG_TYPE);
    CHECK_EQ(p->a.cents, 0);
    pair_close(p);
}

/* The question changes between asking and looking, as with two asks and one function for both. */
static void test_the_answer_to_another_question_is_refused(void)
{
    pair *p = pair_open(bank_tag_balance, KEEP);
    pair_ask(p);
    p->a.question = bank_tag_count;
    REQUIRE_OK(bank_send_finish(p->r.loop, p->c.id));
    rig_idle(&p->r);
    CHECK_EQ(p->a.err, JZX_ERR_WRONG_TYPE);
    CHECK_EQ(p->a.cents, 0);
    pair_close(p);
}

static void test_the_failure_of_another_question_is_not_that_of_this_one(void)
{
    pair *p = pair_open(bank_tag_balance, KEEP);
    p->a.timeout_ms = 10;
    pair_ask(p);
    p->a.question = bank_tag_count;
    REQUIRE_OK(jzx_kit_run(p->r.kit, 50));
    CHECK_EQ(p->a.told, 1);
    CHECK_EQ(p->a.err, JZX_ERR_WRONG_TYPE);
    pair_close(p);
}

static void test_a_request_can_be_delegated_as_the_same_message(void)
{
    pair *p = pair_open(bank_tag_balance, DELEGATE);
    callee second = {.manner = ANSWER};
    jzx_spawn_opts to = {.behavior = callee_run, .state = &second};
    REQUIRE_OK(jzx_spawn(p->r.loop, &to, &second.id));
    p->c.next = second.id;
    pair_ask(p);
    CHECK_OK(p->a.err);
    CHECK_EQ(p->a.cents, 44);
    CHECK_EQ(second.asked, 1);
    pair_close(p);
}

/* Asks its neighbour what it can be asked itself. */
static jzx_behavior_result ask_first(jzx_context *ctx, const jzx_message *msg)
{
    const callee *me = ctx->state;
    if (msg->tag == 1) {
        CHECK_OK(bank_ask_balance(ctx->loop, me->next, 5, NULL, NULL));
        return JZX_BEHAVIOR_OK;
    }
    return callee_run(ctx, msg);
}

static void test_an_answer_is_not_taken_for_the_question(void)
{
    pair *p = pair_open(bank_tag_balance, ANSWER);
    callee peer = {.next = p->c.id};
    jzx_spawn_opts opts = {.behavior = ask_first, .state = &peer};
    REQUIRE_OK(jzx_spawn(p->r.loop, &opts, &peer.id));
    REQUIRE_OK(jzx_send_u64(p->r.loop, peer.id, 0, 1));
    rig_idle(&p->r);
    CHECK_EQ(p->c.asked, 1);
    CHECK_EQ(peer.asked, 0);
    CHECK_EQ(peer.sum, 10);
    pair_close(p);
}

static void *run_loop(void *loop)
{
    CHECK_OK(jzx_loop_run(loop));
    return NULL;
}

static cheque *cheque_new(_Atomic uint32_t *dropped)
{
    cheque *c = malloc(sizeof *c);
    REQUIRE(c != NULL);
    *c = (cheque){.dropped = dropped, .cents = 41};
    return c;
}

/* What a thread gets for each question. */
static void wait_for_each(jzx_sender *sender, callee *c)
{
    money balance = {0};
    entry first = {.cents = 41};
    entry last = {0};
    cheque *swapped = NULL;
    uint64_t count = 0;
    jzx_reply reply = {0};
    CHECK_OK(bank_ask_wait_balance(sender, c->id, 21, NULL, &reply, &balance));
    CHECK_EQ(balance.cents, 42);
    CHECK_EQ(reply.tag, bank_tag_balance);
    CHECK_OK(bank_ask_wait_history(sender, c->id, &first, NULL, NULL, &last));
    CHECK_EQ(last.cents, 42);
    CHECK_STR(last.from, "the bank");
    CHECK_OK(bank_ask_wait_swap(sender, c->id, cheque_new(c->dropped), NULL, NULL, &swapped));
    CHECK(swapped != NULL && swapped->cents == 42);
    if (swapped != NULL) {
        cheque_free(swapped);
    }
    CHECK_OK(bank_ask_wait_log(sender, c->id, "abc", 3, NULL, NULL));
    CHECK_OK(bank_ask_wait_count(sender, c->id, NULL, NULL, &count));
    CHECK_EQ(count, 5);
    cheque *mine = cheque_new(c->dropped);
    CHECK_EQ(bank_ask_wait_swap(sender, JZX_NOBODY, mine, NULL, NULL, &swapped),
             JZX_ERR_NO_SUCH_ACTOR);
    cheque_free(mine);
    CHECK_EQ(bank_ask_wait_history(sender, c->id, NULL, NULL, NULL, &last), JZX_ERR_INVALID_ARG);
}

/* Opens a real loop that runs on a thread of its own. */
static void wait_with(manner how, void (*ask_all)(jzx_sender *sender, callee *c),
                      uint32_t want_dropped)
{
    rig_current = &rig_worlds[1];
    rig r = rig_open(NULL);
    rig_current = &rig_worlds[0];
    _Atomic uint32_t dropped = 0;
    callee c = {.manner = how, .dropped = &dropped};
    jzx_spawn_opts opts = {.behavior = callee_run, .state = &c};
    jzx_sender *sender = NULL;
    pthread_t thread;
    REQUIRE_OK(jzx_spawn(r.loop, &opts, &c.id));
    REQUIRE_OK(jzx_sender_open(r.loop, 0, &sender));
    REQUIRE(pthread_create(&thread, NULL, run_loop, r.loop) == 0);
    ask_all(sender, &c);
    CHECK_OK(bank_send_async_finish(sender, c.id));
    REQUIRE(pthread_join(thread, NULL) == 0);
    jzx_sender_release(sender);
    rig_close(&r);
    CHECK_EQ(dropped, want_dropped);
}

static void test_a_thread_waits_for_a_typed_answer(void)
{
    wait_with(ANSWER, wait_for_each, 3);
}

static void wait_for_wrong_size(jzx_sender *sender, callee *c)
{
    entry first = {.cents = 41};
    entry last = {.cents = 7};
    CHECK_EQ(bank_ask_wait_history(sender, c->id, &first, NULL, NULL, &last), JZX_ERR_WRONG_TYPE);
    CHECK_EQ(last.cents, 7);
}

static void test_a_thread_that_waits_gets_no_other_type(void)
{
    wait_with(WRONG_SIZE, wait_for_wrong_size, 0);
}

static const jzt_test tests[] = {
    {"an_answer_of_another_type_is_refused", test_an_answer_of_another_type_is_refused},
    {"the_answer_to_another_question_is_refused", test_the_answer_to_another_question_is_refused},
    {"the_failure_of_another_question_is_not_that_of_this_one",
     test_the_failure_of_another_question_is_not_that_of_this_one},
    {"a_request_can_be_delegated_as_the_same_message",
     test_a_request_can_be_delegated_as_the_same_message},
    {"an_answer_is_not_taken_for_the_question", test_an_answer_is_not_taken_for_the_question},
    {"a_thread_waits_for_a_typed_answer", test_a_thread_waits_for_a_typed_answer},
    {"a_thread_that_waits_gets_no_other_type", test_a_thread_that_waits_gets_no_other_type},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
