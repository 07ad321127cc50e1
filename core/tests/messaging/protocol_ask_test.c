/* Goal: a typed question gets its typed answer, or the reason why there is none, and nothing that
 * is handed over is lost on the way. Method: an asker that keeps what it was told, a callee that
 * does what the test gave it to do, cheques that count their own end; threads that wait on a real
 * loop. */
#define JZX_PROTOCOL_CHECKS 0
#include "core_fixture.h"

#include <jzx/protocol.h>

#include <pthread.h>
#include <stdatomic.h>

typedef struct entry {
    uint64_t cents;
    char from[100];
} entry;

typedef struct cheque {
    _Atomic uint32_t *dropped;
    uint64_t cents;
} cheque;

typedef struct money {
    uint32_t cents;
} money;

static void cheque_free(cheque *c)
{
    atomic_fetch_add(c->dropped, 1);
    free(c);
}

#define BANK_MESSAGES(M, P)                                                                        \
    M(P, balance, uint32_t, value, money, value)                                                   \
    M(P, history, entry, copy, entry, copy)                                                        \
    M(P, swap, cheque, owned(cheque_free), cheque, owned(cheque_free))                             \
    M(P, log, char, array, void, none)                                                             \
    M(P, count, void, none, uint64_t, value)                                                       \
    M(P, finish, void, none)
JZX_PROTOCOL(bank, 0x1000, BANK_MESSAGES);

/* What the callee does with a question. */
typedef enum manner {
    ANSWER,
    FORGET,
    KEEP, /* and answer when `finish` comes */
    DIE,
    WRONG_TAG,  /* answers by hand, with the tag of another question */
    WRONG_SIZE, /* answers by hand, with too few bytes */
    DELEGATE    /* hands it on to `next` */
} manner;

typedef struct callee {
    jzx_actor_id id;
    jzx_actor_id next;
    manner manner;
    jzx_request kept;
    uint64_t asked;
    uint64_t sum;
    _Atomic uint32_t *dropped;
    jzx_err late; /* what answering the kept request gave */
} callee;

/* What is done with every question alike. False: answer it. */
static bool has_manner(jzx_context *ctx, jzx_behavior_result *out)
{
    callee *me = ctx->state;
    me->asked++;
    *out = JZX_BEHAVIOR_OK;
    switch (me->manner) {
    case FORGET:
        return true;
    case KEEP:
        me->kept = jzx_request_keep(ctx);
        CHECK(me->kept != 0);
        return true;
    case DIE:
        *out = JZX_BEHAVIOR_FAIL;
        return true;
    case WRONG_TAG:
        CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 1, bank_tag_finish));
        return true;
    case WRONG_SIZE:
        CHECK_OK(jzx_reply_copy(ctx, JZX_REQUEST_IN_HAND, "abc", 3, bank_tag_history));
        return true;
    default:
        return false;
    }
}

static jzx_behavior_result on_balance(jzx_context *ctx, const jzx_message *msg, uint32_t account)
{
    callee *me = ctx->state;
    jzx_behavior_result result;
    if (me->manner == DELEGATE) {
        jzx_send_opts opts = bank_opts_balance(account + 1);
        CHECK_OK(jzx_delegate(ctx, JZX_REQUEST_IN_HAND, me->next, &opts));
        return JZX_BEHAVIOR_OK;
    }
    CHECK_EQ(msg->tag, bank_tag_balance);
    if (!has_manner(ctx, &result)) {
        CHECK_OK(bank_reply_balance(ctx, JZX_REQUEST_IN_HAND, (money){account * 2}));
    }
    return result;
}
static jzx_behavior_result on_history(jzx_context *ctx, const jzx_message *msg, const entry *first)
{
    jzx_behavior_result result;
    CHECK_EQ(msg->len, sizeof *first);
    if (!has_manner(ctx, &result)) {
        entry last = {.cents = first->cents + 1, .from = "the bank"};
        CHECK_EQ(bank_reply_history(ctx, JZX_REQUEST_IN_HAND, NULL), JZX_ERR_INVALID_ARG);
        CHECK_OK(bank_reply_history(ctx, JZX_REQUEST_IN_HAND, &last));
    }
    return result;
}
static jzx_behavior_result on_swap(jzx_context *ctx, const jzx_message *msg, cheque *given)
{
    callee *me = ctx->state;
    jzx_behavior_result result;
    CHECK(msg->drop != NULL);
    if (!has_manner(ctx, &result)) {
        cheque *other = malloc(sizeof *other);
        REQUIRE(other != NULL);
        *other = (cheque){.dropped = me->dropped, .cents = given->cents + 1};
        CHECK_EQ(bank_reply_swap(ctx, JZX_REQUEST_IN_HAND, NULL), JZX_ERR_INVALID_ARG);
        CHECK_OK(bank_reply_swap(ctx, JZX_REQUEST_IN_HAND, other));
    }
    return result;
}
static jzx_behavior_result on_log(jzx_context *ctx, const jzx_message *msg, const char *text,
                                  size_t count)
{
    jzx_behavior_result result;
    CHECK(count == msg->len && text[0] == 'a');
    if (!has_manner(ctx, &result)) {
        ((callee *)ctx->state)->sum += count;
        CHECK_OK(bank_reply_log(ctx, JZX_REQUEST_IN_HAND));
        CHECK_EQ(bank_reply_log(ctx, JZX_REQUEST_IN_HAND), JZX_ERR_NO_SUCH_REF);
    }
    return result;
}
static jzx_behavior_result on_count(jzx_context *ctx, const jzx_message *msg)
{
    callee *me = ctx->state;
    jzx_behavior_result result;
    CHECK_EQ(msg->kind, JZX_KIND_USER);
    if (!has_manner(ctx, &result)) {
        CHECK_OK(bank_reply_count(ctx, JZX_REQUEST_IN_HAND, me->asked));
    }
    return result;
}
static jzx_behavior_result on_finish(jzx_context *ctx, const jzx_message *msg)
{
    callee *me = ctx->state;
    CHECK_EQ(msg->tag, bank_tag_finish);
    if (me->kept == 0) {
        return JZX_BEHAVIOR_STOP;
    }
    me->late = bank_reply_balance(ctx, me->kept, (money){77});
    me->kept = 0;
    return JZX_BEHAVIOR_OK;
}
static jzx_behavior_result on_other(jzx_context *ctx, const jzx_message *msg)
{
    /* An answer in a behavior that speaks the protocol itself: see the test of that name. */
    callee *me = ctx->state;
    money got = {0};
    if (msg->kind == JZX_KIND_REPLY) {
        CHECK_OK(bank_check(msg));
        CHECK_OK(bank_answer_balance(ctx, msg, &got));
        me->sum = got.cents;
    }
    return JZX_BEHAVIOR_OK;
}
JZX_PROTOCOL_DISPATCH(callee_run, bank, BANK_MESSAGES, on, on_other);

/* The asker: one ask per poke, and what came of it. */
typedef struct asker {
    jzx_actor_id id;
    jzx_actor_id callee;
    uint32_t question; /* a tag */
    uint32_t timeout_ms;
    bool by_behavior; /* no on_reply */
    bool blind;       /* does not look at the answer */
    _Atomic uint32_t *dropped;
    jzx_err asked;
    jzx_err err;
    uint32_t told;
    uint64_t cents;
    char from[100];
    cheque *kept;
} asker;

static jzx_err look(jzx_context *ctx, const jzx_message *msg, asker *me)
{
    money got = {0};
    const entry *last = NULL;
    jzx_err err = JZX_OK;
    switch (me->question) {
    case bank_tag_balance:
        err = bank_answer_balance(ctx, msg, &got);
        me->cents = got.cents;
        return err;
    case bank_tag_history:
        err = bank_answer_history(ctx, msg, &last);
        if (err == JZX_OK) {
            me->cents = last->cents;
            memcpy(me->from, last->from, sizeof me->from);
        }
        return err;
    case bank_tag_swap:
        return bank_answer_swap(ctx, msg, &me->kept);
    case bank_tag_log:
        return bank_answer_log(ctx, msg);
    default:
        return bank_answer_count(ctx, msg, &me->cents);
    }
}

static jzx_behavior_result on_answer(jzx_context *ctx, const jzx_message *msg)
{
    asker *me = ctx->state;
    me->told++;
    CHECK_EQ(msg->kind, JZX_KIND_REPLY);
    if (me->blind) {
        return JZX_BEHAVIOR_OK;
    }
    me->err = look(ctx, msg, me);
    return JZX_BEHAVIOR_OK;
}

static jzx_err ask(jzx_context *ctx, asker *me)
{
    jzx_ask_opts opts = {.timeout_ms = me->timeout_ms,
                         .on_reply = me->by_behavior ? NULL : on_answer};
    entry first = {.cents = 41};
    jzx_ask_ref ref = 0;
    cheque *mine = NULL;
    jzx_err err = JZX_OK;
    switch (me->question) {
    case bank_tag_balance:
        return bank_ask_balance(ctx->loop, me->callee, 21, &opts, &ref);
    case bank_tag_history:
        CHECK_EQ(bank_ask_history(ctx->loop, me->callee, NULL, &opts, &ref), JZX_ERR_INVALID_ARG);
        return bank_ask_history(ctx->loop, me->callee, &first, &opts, &ref);
    case bank_tag_swap:
        mine = malloc(sizeof *mine);
        REQUIRE(mine != NULL);
        *mine = (cheque){.dropped = me->dropped, .cents = 41};
        CHECK_EQ(bank_ask_swap(ctx->loop, me->callee, NULL, &opts, &ref), JZX_ERR_INVALID_ARG);
        err = bank_ask_swap(ctx->loop, me->callee, mine, &opts, &ref);
        if (err != JZX_OK) {
            cheque_free(mine);
        }
        return err;
    case bank_tag_log:
        return bank_ask_log(ctx->loop, me->callee, "abcde", 5, &opts, NULL);
    default:
        return bank_ask_count(ctx->loop, me->callee, me->by_behavior ? NULL : &opts, NULL);
    }
}

static jzx_behavior_result asker_run(jzx_context *ctx, const jzx_message *msg)
{
    asker *me = ctx->state;
    if (msg->kind == JZX_KIND_REPLY) {
        return on_answer(ctx, msg);
    }
    if (jzx_message_signal(msg) == NULL) {
        money got = {0};
        CHECK_EQ(bank_answer_balance(ctx, msg, &got), JZX_ERR_INVALID_ARG);
        me->asked = ask(ctx, me);
    }
    return JZX_BEHAVIOR_OK;
}

typedef struct pair {
    rig r;
    asker a;
    callee c;
    _Atomic uint32_t dropped;
} pair;

/* On the heap: actors keep pointers into it. */
static pair *pair_open(uint32_t question, manner how)
{
    pair *p = calloc(1, sizeof *p);
    REQUIRE(p != NULL);
    p->r = rig_open(NULL);
    p->c = (callee){.manner = how, .dropped = &p->dropped, .late = JZX_ERR_AGAIN};
    p->a = (asker){.question = question, .dropped = &p->dropped, .err = JZX_ERR_AGAIN};
    jzx_spawn_opts to = {.behavior = callee_run, .state = &p->c, .name = "callee"};
    jzx_spawn_opts by = {.behavior = asker_run, .state = &p->a, .name = "asker"};
    REQUIRE_OK(jzx_spawn(p->r.loop, &to, &p->c.id));
    REQUIRE_OK(jzx_spawn(p->r.loop, &by, &p->a.id));
    p->a.callee = p->c.id;
    return p;
}

static void pair_ask(pair *p)
{
    REQUIRE_OK(jzx_send_u64(p->r.loop, p->a.id, 0, 1));
    rig_idle(&p->r);
}

static void pair_close(pair *p)
{
    rig_close(&p->r);
    free(p);
}

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
    current = &worlds[1];
    rig r = rig_open(NULL);
    current = &worlds[0];
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
