/* Goal: the duty to answer can be kept, passed on and given up, and is with exactly one at any
 * time; time and cancellation reach the callee; what comes too late is counted and not lost (R4,
 * R5, R11, R13, R21). Method: simulation; an asker, a callee and a helper that do as told. */
#include "ask_fixture.h"

static uint32_t drops;

static void count_drop(void *data)
{
    CHECK(data == &drops);
    drops++;
}

static const jzx_send_opts with_drop = {.data = &drops, .drop = count_drop, .tag = 3};

/* Answers the oldest kept one, and says what came of it: "b!OK". */
static void answer_kept(jzx_context *ctx, puppet *me)
{
    party *self = (party *)me;
    REQUIRE(self->kept_len > 0);
    jzx_err err = jzx_reply_u64(ctx, self->kept[0], 100, 1);
    say("%s!%s", me->name, err == JZX_OK ? "OK" : jzx_err_name(err) + strlen("JZX_ERR_"));
    self->kept_len--;
    memmove(self->kept, self->kept + 1, self->kept_len * sizeof self->kept[0]);
}

static void try_kept_of_b(jzx_context *ctx, puppet *me)
{
    jzx_request request = the_trio->b.kept[0];
    jzx_send_opts opts = {.tag = 1};
    (void)me;
    CHECK_EQ(jzx_request_is_wanted(ctx, request), 0);
    CHECK_EQ(jzx_request_deadline(ctx, request), 0);
    CHECK_EQ(jzx_reply_u64(ctx, request, 1, 1), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_request_drop(ctx, request), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_delegate(ctx, request, the_trio->a.me.id, &opts), JZX_ERR_NO_SUCH_REF);
}

static void test_a_kept_request_belongs_to_one_actor(void)
{
    trio t;
    trio_make(&t);
    t.b.how = KEEP;
    trio_ask(&t);
    CHECK_SAID("b?1"); /* and nobody says that it was forgotten */
    within(&t, &t.c, try_kept_of_b);
    within(&t, &t.a, try_kept_of_b);
    within(&t, &t.b, answer_kept);
    CHECK_SAID("b!OK a<replied 100>");
    t.b.kept_len = 1; /* once more, with what is over */
    within(&t, &t.b, answer_kept);
    CHECK_SAID("b!NO_SUCH_REF");
    CHECK_COUNTERS(&t, 1, 1, 0);
    trio_close(&t);
}

/* The slot of an ask is used again and again: an old handle means none of the later ones. */
static void test_old_handles_mean_nothing_R2(void)
{
    enum { ROUNDS = 200 };
    trio t;
    trio_make(&t);
    t.b.how = KEEP;
    jzx_request old[ROUNDS];
    jzx_ask_ref refs[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        trio_ask(&t);
        REQUIRE_EQ(t.b.kept_len, 1);
        old[i] = t.b.kept[0];
        refs[i] = t.a.ref;
        CHECK_EQ(refs[i], old[i]);
        for (size_t j = 0; j < i; j++) {
            CHECK(old[j] != old[i]);
        }
        said_clear();
        if (i > 0) {
            t.b.kept[0] = old[i - 1];
            within(&t, &t.b, answer_kept);
            CHECK_SAID("b!NO_SUCH_REF");
            t.b.kept[0] = old[i];
            t.b.kept_len = 1;
        }
        within(&t, &t.b, answer_kept);
        CHECK_SAID("b!OK a<replied 100>");
    }
    trio_close(&t);
}

static void cancel(jzx_context *ctx, puppet *me)
{
    party *self = (party *)me;
    CHECK_OK(jzx_ask_cancel(ctx->loop, self->ref));
    CHECK_EQ(jzx_ask_cancel(ctx->loop, self->ref), JZX_ERR_NO_SUCH_REF);
}

static void ask_and_cancel(jzx_context *ctx, puppet *me)
{
    party_ask(ctx, me);
    cancel(ctx, me);
}

static void cancel_of_a(jzx_context *ctx, puppet *me)
{
    (void)me;
    CHECK_EQ(jzx_ask_cancel(ctx->loop, the_trio->a.ref), JZX_ERR_NO_SUCH_REF);
}

static void test_a_cancelled_request_that_waits_is_not_handed_over(void)
{
    trio t;
    trio_make(&t);
    t.a.ask = (jzx_ask_opts){.data = &drops, .drop = count_drop, .tag = 4};
    drops = 0;
    within(&t, &t.a, ask_and_cancel);
    CHECK_SAID("");
    CHECK_DEAD(&t.r, DEAD(JZX_DEAD_CANCELLED, 4));
    CHECK_EQ(drops, 1);
    CHECK_COUNTERS(&t, 1, 0, 0);
    trio_close(&t);
}

static void see_if_wanted(jzx_context *ctx, puppet *me)
{
    party *self = (party *)me;
    say("%s.wanted=%d", me->name, jzx_request_is_wanted(ctx, self->kept[0]));
}

static void reply_late(jzx_context *ctx, puppet *me)
{
    party *self = (party *)me;
    jzx_send_opts opts = with_drop;
    CHECK_EQ(jzx_delegate(ctx, self->kept[0], the_trio->c.me.id, &opts), JZX_ERR_NOT_WANTED);
    CHECK_EQ(jzx_reply_with(ctx, self->kept[0], &opts), JZX_ERR_NOT_WANTED);
    CHECK_EQ(drops, 0);                                                       /* it is still ours */
    CHECK_EQ(jzx_reply_with(ctx, self->kept[0], &opts), JZX_ERR_NO_SUCH_REF); /* the duty is over */
    opts.flags = JZX_SEND_CONSUME;
    CHECK_EQ(jzx_reply_with(ctx, self->kept[0], &opts), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(drops, 1);
    self->kept_len = 0;
}

static void test_the_callee_can_see_that_nobody_waits_any_more(void)
{
    trio t;
    trio_make(&t);
    t.b.how = KEEP;
    drops = 0;
    trio_ask(&t);
    within(&t, &t.b, see_if_wanted);
    within(&t, &t.c, cancel_of_a); /* it is not its ask */
    within(&t, &t.a, cancel);
    within(&t, &t.b, see_if_wanted);
    CHECK_SAID("b?1 b.wanted=1 b.wanted=0");
    within(&t, &t.b, reply_late);
    CHECK_COUNTERS(&t, 1, 0, 1);
    trio_close(&t);
}

/* Answers with data, long or short or a copy, while the asker has no turn; then it cancels. */
static jzx_send_opts late_opts;

static void reply_then_cancel(jzx_context *ctx, puppet *me)
{
    (void)me;
    CHECK_OK(jzx_ask_cancel(ctx->loop, the_trio->a.ref));
}

static void answer_with(jzx_context *ctx, party *self)
{
    (void)self;
    CHECK_OK(jzx_reply_with(ctx, JZX_REQUEST_IN_HAND, &late_opts));
    /* Urgent: it comes before the answer. */
    the_trio->a.me.call = reply_then_cancel;
    CHECK_OK(try_urgent(ctx->loop, the_trio->a.me.id, T_CALL));
}

static void test_an_answer_that_is_queued_is_revoked_by_a_cancel(void)
{
    static char text[1000];
    const jzx_send_opts forms[] = {
        {.u64 = 1, .flags = JZX_SEND_VALUE},
        {.data = text, .len = 5, .flags = JZX_SEND_COPY},
        {.data = text, .len = sizeof text, .flags = JZX_SEND_COPY},
        with_drop,
        {.data = text}, /* nobody's business any more: abandoned */
    };
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        trio t;
        trio_make(&t);
        drops = 0;
        late_opts = forms[i];
        t.b.how = NOTHING;
        t.b.then = answer_with;
        trio_ask(&t);
        CHECK_SAID("b?1");
        CHECK_EQ(t.a.heard, 0);
        CHECK_EQ(drops, forms[i].drop == NULL ? 0 : 1);
        jzx_counters c = rig_counters(&t.r);
        CHECK_EQ(c.abandoned, i == 4 ? 1 : 0);
        CHECK_EQ(c.replies, 1);
        CHECK_EQ(c.late_replies, 1);
        CHECK_EQ(c.revoked, 1);
        CHECK_EQ(c.dead, 0);
        trio_close(&t);
    }
}

static void test_time_ends_an_ask_whose_callee_sleeps_on_it(void)
{
    trio t;
    trio_make(&t);
    t.b.how = KEEP;
    t.a.ask.timeout_ms = 50;
    uint64_t begin = jzx_loop_now(t.r.loop);
    trio_ask(&t);
    run_ms(&t.r, 49);
    CHECK_SAID("b?1");
    run_ms(&t.r, 2);
    CHECK_SAID("a<timed out>");
    CHECK_EQ(t.a.reply.err, JZX_ERR_TIMED_OUT);
    CHECK_EQ(t.a.reply.target, t.b.me.id);
    CHECK_EQ(t.a.reply.callee, t.b.me.id);
    CHECK_STR(t.a.reply.target_name, "b");
    CHECK(t.a.reply.age_ns >= 50 * MS && t.a.reply.age_ns < 52 * MS);
    CHECK(jzx_loop_now(t.r.loop) >= begin + 50 * MS);
    within(&t, &t.b, see_if_wanted);
    CHECK_SAID("b.wanted=0");
    drops = 0;
    within(&t, &t.b, reply_late);
    CHECK_COUNTERS(&t, 1, 0, 1);
    trio_close(&t);
}

static void test_the_default_is_five_seconds_and_none_can_be_asked_for(void)
{
    trio t;
    trio_make(&t);
    t.b.how = KEEP;
    trio_ask(&t);
    run_ms(&t.r, 4999);
    CHECK_SAID("b?1");
    run_ms(&t.r, 2);
    CHECK_SAID("a<timed out>");
    t.a.ask.timeout_ms = JZX_ASK_NO_TIMEOUT;
    trio_ask(&t);
    run_ms(&t.r, 1000000);
    CHECK_SAID("b?1");
    t.b.kept[0] = t.b.kept[1];
    within(&t, &t.b, answer_kept);
    CHECK_SAID("b!OK a<replied 100>");
    trio_close(&t);
}

static void spend_200(jzx_context *ctx, puppet *me)
{
    (void)me;
    spend(ctx->loop, 200 * MS);
}

static void ask_behind_work(jzx_context *ctx, puppet *me)
{
    const party *self = (const party *)me;
    the_trio->b.me.call = spend_200;
    CHECK_OK(jzx_send_u64(ctx->loop, self->to, 0, T_CALL));
    party_ask(ctx, me);
    CHECK_OK(jzx_send_u64(ctx->loop, self->to, 0, 0x11));
}

/* Its time passes while it waits behind other work: the callee does not get it, and whoever finds
 * out first says how it ended. */
static void test_a_request_whose_time_is_up_is_not_handed_over_R13(void)
{
    trio t;
    trio_make(&t);
    drops = 0;
    t.a.ask = (jzx_ask_opts){.data = &drops, .drop = count_drop, .tag = ASK_TAG, .timeout_ms = 100};
    within(&t, &t.a, ask_behind_work);
    CHECK_EQ(t.b.asked, 0);
    CHECK_EQ(t.a.heard, 1);
    CHECK(t.a.reply.outcome == JZX_OUTCOME_EXPIRED || t.a.reply.outcome == JZX_OUTCOME_TIMED_OUT);
    CHECK_EQ(t.a.reply.err, JZX_ERR_TIMED_OUT);
    CHECK_DEAD(&t.r, DEAD(JZX_DEAD_EXPIRED, ASK_TAG));
    CHECK_EQ(drops, 1);
    t.a.ask.timeout_ms = 500; /* and one that has enough */
    t.a.ask.drop = NULL;
    t.a.ask.flags = JZX_SEND_VALUE;
    within(&t, &t.a, ask_behind_work);
    CHECK_EQ(t.b.asked, 1);
    trio_close(&t);
}

/* The helper gets the request, and it is the helper who answers. */
static void test_a_request_can_be_passed_on_and_is_answered_by_another_one(void)
{
    trio t;
    trio_make(&t);
    t.a.ask.u64 = 1;
    t.b.how = FORWARD;
    trio_ask(&t);
    CHECK_SAID("b?1 c?1 a<replied 2>");
    CHECK_EQ(t.a.reply.target, t.b.me.id);
    CHECK_EQ(t.a.reply.callee, t.c.me.id);
    CHECK_EQ(t.a.msg.sender, t.c.me.id);
    t.b.how = DELEGATE;
    trio_ask(&t);
    CHECK_SAID("b?1 c?11 a<replied 12>");
    CHECK_EQ(t.a.reply.callee, t.c.me.id);
    t.c.how = FORGET;
    trio_ask(&t);
    CHECK_SAID("b?1 c?11 a<forgotten>");
    CHECK_EQ(t.a.reply.target, t.b.me.id);
    CHECK_EQ(t.a.reply.callee, t.c.me.id);
    t.b.next = &t.a; /* back to the asker, who answers itself */
    trio_ask(&t);
    CHECK_SAID("b?1 a?11 a<replied 12>");
    t.b.how = FORWARD;
    trio_ask(&t);
    CHECK_SAID("b?1 a?1 a<replied 2>");
    trio_close(&t);
}

static void delegate_kept(jzx_context *ctx, puppet *me)
{
    party *self = (party *)me;
    jzx_send_opts opts = {.u64 = 50, .tag = 8, .flags = JZX_SEND_VALUE};
    CHECK_OK(jzx_delegate(ctx, self->kept[0], self->next->me.id, &opts));
    CHECK_EQ(jzx_delegate(ctx, self->kept[0], self->next->me.id, &opts), JZX_ERR_NO_SUCH_REF);
    self->kept_len = 0;
}

static void test_a_kept_request_can_be_delegated_later(void)
{
    trio t;
    trio_make(&t);
    t.b.how = KEEP;
    trio_ask(&t);
    run_ms(&t.r, 1000);
    within(&t, &t.b, delegate_kept);
    CHECK_SAID("b?1 c?50 a<replied 51>");
    CHECK_EQ(t.a.reply.tag, ASK_TAG); /* of what was asked */
    CHECK_EQ(t.a.msg.tag, 8);
    trio_close(&t);
}

/* What was delegated has the time of the ask, or less if so wanted, and never more. */
static uint64_t delegate_within_ms;

static void delegate_behind_work(jzx_context *ctx, party *self)
{
    const party *to = self->next;
    jzx_send_opts opts = {.u64 = 50, .tag = 8, .flags = JZX_SEND_VALUE};
    opts.deadline_ns =
        delegate_within_ms == 0 ? 0 : jzx_loop_now(ctx->loop) + delegate_within_ms * MS;
    the_trio->c.me.call = spend_200;
    CHECK_OK(jzx_send_u64(ctx->loop, to->me.id, 0, T_CALL));
    CHECK_OK(jzx_delegate(ctx, JZX_REQUEST_IN_HAND, to->me.id, &opts));
}

static void test_the_time_of_the_ask_goes_along_with_a_delegation_R13(void)
{
    static const struct {
        uint32_t timeout_ms;
        uint64_t within_ms;
        bool expires;
    } cases[] = {{100, 0, true},
                 {100, 1000, true},
                 {1000, 100, true},
                 {1000, 0, false},
                 {1000, 500, false},
                 {JZX_ASK_NO_TIMEOUT, 0, false},
                 {JZX_ASK_NO_TIMEOUT, 100, true}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        trio t;
        trio_make(&t);
        delegate_within_ms = cases[i].within_ms;
        t.a.ask.timeout_ms = cases[i].timeout_ms;
        t.b.how = NOTHING;
        t.b.then = delegate_behind_work;
        trio_ask(&t);
        CHECK_EQ(t.c.asked, cases[i].expires ? 0 : 1);
        CHECK_EQ(t.a.heard, 1);
        CHECK_EQ(t.a.reply.err, cases[i].expires ? JZX_ERR_TIMED_OUT : JZX_OK);
        CHECK_EQ(rig_counters(&t.r).dead_by[JZX_DEAD_EXPIRED], cases[i].expires ? 1 : 0);
        trio_close(&t);
    }
}

static jzx_err delegate_err;
static bool delegate_keeps;

static void delegate_in_vain(jzx_context *ctx, party *self)
{
    jzx_request request = delegate_keeps ? jzx_request_keep(ctx) : JZX_REQUEST_IN_HAND;
    jzx_send_opts opts = with_drop;
    jzx_actor_id to = self->next == NULL ? JZX_NOBODY : self->next->me.id;
    CHECK_EQ(jzx_delegate(ctx, request, to, &opts), delegate_err);
    CHECK_EQ(drops, 0);
    opts.flags = JZX_SEND_CONSUME;
    CHECK_EQ(jzx_delegate(ctx, request, to, &opts), delegate_err);
    CHECK_EQ(drops, 1);
    opts.tag = JZX_TAG_SYSTEM_FIRST;
    opts.flags = 0;
    CHECK_EQ(jzx_delegate(ctx, request, to, &opts), JZX_ERR_RESERVED_TAG);
    CHECK_EQ(jzx_delegate_sized(ctx, request, to, NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_request_is_wanted(ctx, request), 1); /* the duty stayed here */
    CHECK_OK(jzx_reply_u64(ctx, request, 9, 1));
}

/* Full by what b itself sends it, which c cannot handle meanwhile. */
static void fill_and_delegate_in_vain(jzx_context *ctx, party *self)
{
    if (delegate_err == JZX_ERR_MAILBOX_FULL) {
        CHECK_OK(jzx_send_u64(ctx->loop, self->next->me.id, 0, 0x31));
    } else if (delegate_err == JZX_ERR_STOPPING) {
        CHECK_OK(jzx_stop(ctx->loop, self->next->me.id));
    } else {
        self->next = NULL;
    }
    delegate_in_vain(ctx, self);
}

static void test_a_refused_delegation_leaves_the_duty_R11(void)
{
    static const jzx_err errors[] = {JZX_ERR_NO_SUCH_ACTOR, JZX_ERR_MAILBOX_FULL, JZX_ERR_STOPPING};
    for (size_t n = 0; n < 2 * COUNT_OF(errors); n++) {
        trio t;
        trio_open(&t, NULL, NULL);
        t.c.opts.mailbox_cap = 1;
        trio_start(&t);
        drops = 0;
        delegate_keeps = n % 2 != 0;
        delegate_err = errors[n / 2];
        t.b.how = NOTHING;
        t.b.then = fill_and_delegate_in_vain;
        trio_ask(&t);
        CHECK_SAID("b?1 a<replied 9>");
        trio_close(&t);
    }
}

static const jzt_test tests[] = {
    {"a_kept_request_belongs_to_one_actor", test_a_kept_request_belongs_to_one_actor},
    {"old_handles_mean_nothing_R2", test_old_handles_mean_nothing_R2},
    {"a_cancelled_request_that_waits_is_not_handed_over",
     test_a_cancelled_request_that_waits_is_not_handed_over},
    {"the_callee_can_see_that_nobody_waits_any_more",
     test_the_callee_can_see_that_nobody_waits_any_more},
    {"an_answer_that_is_queued_is_revoked_by_a_cancel",
     test_an_answer_that_is_queued_is_revoked_by_a_cancel},
    {"time_ends_an_ask_whose_callee_sleeps_on_it", test_time_ends_an_ask_whose_callee_sleeps_on_it},
    {"the_default_is_five_seconds_and_none_can_be_asked_for",
     test_the_default_is_five_seconds_and_none_can_be_asked_for},
    {"a_request_whose_time_is_up_is_not_handed_over_R13",
     test_a_request_whose_time_is_up_is_not_handed_over_R13},
    {"a_request_can_be_passed_on_and_is_answered_by_another_one",
     test_a_request_can_be_passed_on_and_is_answered_by_another_one},
    {"a_kept_request_can_be_delegated_later", test_a_kept_request_can_be_delegated_later},
    {"the_time_of_the_ask_goes_along_with_a_delegation_R13",
     test_the_time_of_the_ask_goes_along_with_a_delegation_R13},
    {"a_refused_delegation_leaves_the_duty_R11", test_a_refused_delegation_leaves_the_duty_R11},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
