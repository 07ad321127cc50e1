/* Goal: a typed question gets its typed answer, or the reason why there is none, and nothing that
 * is handed over is lost on the way. Method: protocol_ask_kit.h. */
#include "protocol_ask_kit.h"

static void test_an_answer_by_value(void)
{
    pair *p = pair_open(bank_tag_balance, ANSWER);
    pair_ask(p);
    CHECK_OK(p->a.err);
    CHECK_EQ(p->a.cents, 42);
    CHECK_EQ(p->a.told, 1);
    pair_close(p);
}

static void test_an_answer_by_copy(void)
{
    pair *p = pair_open(bank_tag_history, ANSWER);
    pair_ask(p);
    CHECK_OK(p->a.err);
    CHECK_EQ(p->a.cents, 42);
    CHECK_STR(p->a.from, "the bank");
    pair_close(p);
}

static void test_an_owned_answer_is_the_askers(void)
{
    pair *p = pair_open(bank_tag_swap, ANSWER);
    pair_ask(p);
    CHECK_OK(p->a.err);
    CHECK_EQ(p->dropped, 1); /* the one that was given */
    REQUIRE(p->a.kept != NULL);
    CHECK_EQ(p->a.kept->cents, 42);
    cheque_free(p->a.kept);
    CHECK_EQ(p->dropped, 2);
    pair_close(p);
}

static void test_an_owned_answer_that_nobody_looks_at_is_dropped(void)
{
    pair *p = pair_open(bank_tag_swap, ANSWER);
    p->a.blind = true;
    pair_ask(p);
    CHECK_EQ(p->a.told, 1);
    CHECK_EQ(p->dropped, 2);
    pair_close(p);
}

static void test_an_answer_that_says_nothing(void)
{
    pair *p = pair_open(bank_tag_log, ANSWER);
    pair_ask(p);
    CHECK_OK(p->a.err);
    CHECK_EQ(p->c.sum, 5);
    CHECK_EQ(p->a.told, 1);
    pair_close(p);
}

static void test_the_behavior_gets_the_answer_without_on_reply(void)
{
    pair *p = pair_open(bank_tag_count, ANSWER);
    p->a.by_behavior = true;
    pair_ask(p);
    pair_ask(p);
    CHECK_OK(p->a.err);
    CHECK_EQ(p->a.cents, 2);
    CHECK_EQ(p->a.told, 2);
    pair_close(p);
}

static void test_why_there_is_no_answer(void)
{
    static const struct {
        manner manner;
        jzx_err err;
    } cases[] = {{FORGET, JZX_ERR_AGAIN}, {DIE, JZX_ERR_NO_SUCH_ACTOR}};
    static const uint32_t questions[] = {bank_tag_balance, bank_tag_history, bank_tag_swap,
                                         bank_tag_log, bank_tag_count};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (size_t q = 0; q < COUNT_OF(questions); q++) {
            pair *p = pair_open(questions[q], cases[i].manner);
            p->a.err = JZX_OK;
            pair_ask(p);
            CHECK_EQ(p->a.told, 1);
            CHECK_EQ(p->a.err, cases[i].err);
            CHECK_EQ(p->dropped, questions[q] == bank_tag_swap);
            pair_close(p);
        }
    }
}

static void test_an_ask_of_nobody_leaves_the_payload_with_the_asker(void)
{
    pair *p = pair_open(bank_tag_swap, ANSWER);
    p->a.callee = JZX_NOBODY;
    pair_ask(p);
    CHECK_EQ(p->a.asked, JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(p->a.told, 0);
    CHECK_EQ(p->dropped, 1);
    pair_close(p);
}

static void test_a_late_answer_is_not_wanted(void)
{
    pair *p = pair_open(bank_tag_balance, KEEP);
    p->a.timeout_ms = 10;
    pair_ask(p);
    REQUIRE_OK(jzx_kit_run(p->r.kit, 50));
    CHECK_EQ(p->a.err, JZX_ERR_TIMED_OUT);
    REQUIRE_OK(bank_send_finish(p->r.loop, p->c.id));
    rig_idle(&p->r);
    CHECK_EQ(p->c.late, JZX_ERR_NOT_WANTED);
    CHECK_EQ(p->a.told, 1);
    pair_close(p);
}

static void test_a_kept_request_is_answered_later(void)
{
    pair *p = pair_open(bank_tag_balance, KEEP);
    pair_ask(p);
    CHECK_EQ(p->a.told, 0);
    REQUIRE_OK(bank_send_finish(p->r.loop, p->c.id));
    rig_idle(&p->r);
    CHECK_OK(p->c.late);
    CHECK_OK(p->a.err);
    CHECK_EQ(p->a.cents, 77);
    pair_close(p);
}

static const jzt_test tests[] = {
    {"an_answer_by_value", test_an_answer_by_value},
    {"an_answer_by_copy", test_an_answer_by_copy},
    {"an_owned_answer_is_the_askers", test_an_owned_answer_is_the_askers},
    {"an_owned_answer_that_nobody_looks_at_is_dropped",
     test_an_owned_answer_that_nobody_looks_at_is_dropped},
    {"an_answer_that_says_nothing", test_an_answer_that_says_nothing},
    {"the_behavior_gets_the_answer_without_on_reply",
     test_the_behavior_gets_the_answer_without_on_reply},
    {"why_there_is_no_answer", test_why_there_is_no_answer},
    {"an_ask_of_nobody_leaves_the_payload_with_the_asker",
     test_an_ask_of_nobody_leaves_the_payload_with_the_asker},
    {"a_late_answer_is_not_wanted", test_a_late_answer_is_not_wanted},
    {"a_kept_request_is_answered_later", test_a_kept_request_is_answered_later},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
