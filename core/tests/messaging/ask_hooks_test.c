/* Goal: who may ask when: in every hook of an actor's life, and what a refused ask leaves behind;
 * asks by the thousand cost what they are, and the audit holds while answers wait (R5, R7, R15,
 * R16). Method: simulation; an asker that asks in all of its hooks, tables of bad input. */
#include "ask_fixture.h"

static uint32_t drops;

static void count_drop(void *data)
{
    CHECK(data == &drops);
    drops++;
}

/* Asks in every hook, and says what came of it: "a.pre_stop=OK". */
static void ask_in_hook(jzx_context *ctx, puppet *me, uint32_t what)
{
    party *self = (party *)me;
    jzx_err err = jzx_ask(ctx->loop, self->to, &self->ask, &self->ref);
    say("%s=%s",
        what == IN_INIT     ? "init"
        : what == IN_DEINIT ? "deinit"
                            : jzx_signal_name(what),
        err == JZX_OK ? "OK" : jzx_err_name(err) + strlen("JZX_ERR_"));
}

static jzx_spawn_opts hooked(party *d, trio *t)
{
    party_name(d, "d");
    d->me.during = ask_in_hook;
    d->to = t->b.me.id;
    d->ask = (jzx_ask_opts){.u64 = 1, .flags = JZX_SEND_VALUE};
    jzx_spawn_opts opts = puppet_opts(&d->me);
    opts.behavior = party_behavior;
    return opts;
}

static void test_asks_in_every_hook_R15(void)
{
    trio t;
    trio_make(&t);
    party d;
    jzx_spawn_opts opts = hooked(&d, &t);
    puppet_spawn_with(t.r.loop, &d.me, &opts);
    rig_idle(&t.r);
    CHECK_SAID("init=OK pre_start=OK post_start=OK b?1 b?1 b?1 "
               "d<replied 2> d<replied 2> d<replied 2>");
    CHECK_OK(jzx_stop(t.r.loop, d.me.id));
    rig_idle(&t.r);
    /* What PRE_STOP asks is cancelled with the end that follows. */
    CHECK_SAID("pre_stop=OK post_stop=STOPPING deinit=STOPPING");
    CHECK_DEAD(&t.r, DEAD(JZX_DEAD_CANCELLED, 0));
    trio_close(&t);
}

static void ask_in_pre_stop(jzx_context *ctx, puppet *me, uint32_t what)
{
    if (what == JZX_SIGNAL_PRE_STOP) {
        ask_in_hook(ctx, me, what);
    }
}

static void test_who_defers_its_stop_can_ask_and_be_answered_R16(void)
{
    trio t;
    trio_make(&t);
    party d;
    jzx_spawn_opts opts = hooked(&d, &t);
    d.me.during = ask_in_pre_stop;
    d.me.answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    puppet_spawn_with(t.r.loop, &d.me, &opts);
    rig_idle(&t.r);
    CHECK_OK(jzx_stop(t.r.loop, d.me.id));
    rig_idle(&t.r);
    CHECK_SAID("pre_stop=OK b?1 d<replied 2>");
    CHECK_EQ(d.me.ends, 0);
    CHECK_OK(jzx_kill(t.r.loop, d.me.id));
    rig_idle(&t.r);
    CHECK_EQ(d.me.ends, 1);
    trio_close(&t);
}

/* What a callee can do with kept requests in its hooks. */
static void answer_in_hook(jzx_context *ctx, puppet *me, uint32_t what)
{
    party *self = (party *)me;
    if (self->kept_len == 0 || what == IN_INIT) {
        return;
    }
    jzx_err err = jzx_reply_u64(ctx, self->kept[self->kept_len - 1], what, 1);
    say("%s=%s", what == IN_DEINIT ? "deinit" : jzx_signal_name(what),
        err == JZX_OK ? "OK" : jzx_err_name(err) + strlen("JZX_ERR_"));
    self->kept_len -= err == JZX_OK;
    CHECK_EQ(jzx_request_keep(ctx), 0);
    CHECK_EQ(jzx_is_ask(ctx), 0);
}

static void test_kept_requests_can_be_answered_until_the_clean_up_R16_R18(void)
{
    static const jzx_supervisor_spec restarts = {.intensity = 1000};
    for (int round = 0; round < 2; round++) {
        trio t;
        trio_open(&t, NULL, &restarts);
        trio_start(&t);
        t.b.how = KEEP;
        t.b.me.during = answer_in_hook;
        trio_ask(&t);
        trio_ask(&t);
        said_clear();
        if (round == 0) {
            CHECK_OK(jzx_stop(t.r.loop, t.b.me.id));
        } else {
            tell(&t.r, &t.b.me, T_FAIL);
        }
        rig_idle(&t.r);
        CHECK_SAID(round == 0
                       ? "pre_stop=OK post_stop=NO_SUCH_REF deinit=NO_SUCH_REF a<replied 3> "
                         "a<callee died: shutdown>"
                       : "pre_restart=OK post_stop=NO_SUCH_REF deinit=NO_SUCH_REF "
                         "pre_start=NO_SUCH_REF post_start=NO_SUCH_REF post_restart=NO_SUCH_REF "
                         "a<replied 5> a<callee restarted: failed 7>");
        trio_close(&t);
    }
}

/* Refused at once: nothing was sent, the data is the caller's, and nothing follows. */
static void ask_badly(jzx_context *ctx, puppet *me)
{
    static char bytes[1];
    party *self = (party *)me;
    const jzx_actor_id b = the_trio->b.me.id;
    const struct {
        jzx_ask_opts opts;
        jzx_actor_id to;
        jzx_err err;
    } bad[] = {
        {{.tag = JZX_TAG_SYSTEM_FIRST}, b, JZX_ERR_RESERVED_TAG},
        {{.flags = JZX_SEND_VALUE, .tag = UINT32_MAX}, b, JZX_ERR_RESERVED_TAG},
        {{.flags = 0x8000}, b, JZX_ERR_INVALID_ARG},
        {{.flags = JZX_SEND_COPY | JZX_SEND_VALUE}, b, JZX_ERR_INVALID_ARG},
        {{.flags = JZX_SEND_VALUE, .drop = count_drop}, b, JZX_ERR_INVALID_ARG},
        {{.flags = JZX_SEND_COPY, .len = 1}, b, JZX_ERR_INVALID_ARG},
        {{.flags = JZX_SEND_CONSUME}, b, JZX_ERR_INVALID_ARG},
        {{.data = bytes, .flags = JZX_SEND_COPY, .len = (size_t)JZX_COPY_MAX + 1},
         b,
         JZX_ERR_TOO_BIG},
        {{.reserved = 1}, b, JZX_ERR_INVALID_ARG},
        {{.flags = JZX_SEND_VALUE, .reserved = 1}, b, JZX_ERR_INVALID_ARG},
        {{.data = &drops, .drop = count_drop}, JZX_NOBODY, JZX_ERR_NO_SUCH_ACTOR},
        {{.flags = JZX_SEND_VALUE}, JZX_NOBODY, JZX_ERR_NO_SUCH_ACTOR},
        {{.flags = JZX_SEND_VALUE}, b + ((uint64_t)1 << 32), JZX_ERR_NO_SUCH_ACTOR},
        {{.flags = JZX_SEND_VALUE}, b ^ 0x7F000000, JZX_ERR_NO_SUCH_ACTOR},
        {{.flags = JZX_SEND_VALUE}, UINT64_MAX, JZX_ERR_NO_SUCH_ACTOR},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        jzx_ask_ref ref = 77;
        CHECK_EQ(jzx_ask(ctx->loop, bad[i].to, &bad[i].opts, &ref), bad[i].err);
        CHECK_EQ(ref, 77);
    }
    CHECK_EQ(drops, 0);
    jzx_ask_opts eaten = {.data = &drops, .drop = count_drop, .flags = JZX_SEND_CONSUME};
    CHECK_EQ(jzx_ask(ctx->loop, JZX_NOBODY, &eaten, NULL), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(drops, 1);
    jzx_ask_opts newer[2] = {self->ask, self->ask};
    CHECK_EQ(jzx_ask_sized(ctx->loop, b, newer, sizeof newer, NULL), JZX_ERR_NEWER_STRUCT);
    CHECK_EQ(jzx_ask_sized(ctx->loop, b, NULL, sizeof newer, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_ask(NULL, b, &self->ask, NULL), JZX_ERR_INVALID_ARG);
    /* Longer than we know, with nothing in it. */
    memset(&newer[1], 0, sizeof newer[1]);
    CHECK_OK(jzx_ask_sized(ctx->loop, b, newer, sizeof newer, NULL));
}

static void test_a_refused_ask_leaves_everything_as_it_was_R11(void)
{
    trio t;
    trio_make(&t);
    drops = 0;
    within(&t, &t.a, ask_badly);
    CHECK_SAID("b?1 a<replied 2>"); /* the last one */
    CHECK_COUNTERS(&t, 1, 1, 0);
    CHECK_EQ(rig_counters(&t.r).dead, 0);
    CHECK_EQ(jzx_ask(t.r.loop, t.b.me.id, &t.a.ask, NULL), JZX_ERR_INVALID_ARG); /* outside */
    run_ms(&t.r, 10000);
    CHECK_EQ(t.a.heard, 1);
    trio_close(&t);
}

/* The failure says who, what, how many waited and why. */
static void ask_the_stopping(jzx_context *ctx, puppet *me)
{
    party *self = (party *)me;
    CHECK_OK(jzx_send_u64(ctx->loop, self->to, 0, 1));
    CHECK_OK(jzx_stop(ctx->loop, self->to));
    party_ask(ctx, me);
}

static void test_the_failure_names_target_tag_depth_and_reason(void)
{
    trio t;
    trio_make(&t);
    int mine = 0;
    t.a.ask.arg = &mine;
    within(&t, &t.a, ask_the_stopping);
    CHECK_EQ(t.a.err, JZX_ERR_STOPPING);
    CHECK_EQ(t.a.failure.outcome, JZX_OUTCOME_NO_SUCH_ACTOR);
    CHECK_EQ(t.a.failure.err, JZX_ERR_STOPPING);
    CHECK_EQ(t.a.failure.target, t.b.me.id);
    CHECK_EQ(t.a.failure.callee, t.b.me.id);
    CHECK_EQ(t.a.failure.tag, ASK_TAG);
    CHECK_EQ(t.a.failure.queue_depth, 1);
    CHECK_EQ(t.a.failure.ask, 0);
    CHECK(t.a.failure.arg == &mine);
    CHECK_STR(t.a.failure.target_name, "b");
    within(&t, &t.a, party_ask); /* gone */
    CHECK_EQ(t.a.err, JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(t.a.failure.outcome, JZX_OUTCOME_NO_SUCH_ACTOR);
    CHECK_EQ(t.a.failure.queue_depth, 0);
    CHECK_STR(t.a.failure.target_name, "");
    trio_close(&t);
}

/* The stopping cannot ask, but for those who deferred it. */
static void stop_and_ask(jzx_context *ctx, puppet *me)
{
    CHECK_OK(jzx_stop(ctx->loop, ctx->self));
    party_ask(ctx, me);
}

static void test_an_actor_that_was_told_to_stop_does_not_ask_any_more(void)
{
    trio t;
    trio_make(&t);
    within(&t, &t.a, stop_and_ask);
    CHECK_EQ(t.a.err, JZX_ERR_STOPPING);
    CHECK_SAID("");
    trio_close(&t);
}

enum { MANY = 10000 };

/* Keeps what it is asked, by the thousand. */
typedef struct hoard {
    jzx_request kept[MANY];
    uint32_t count;
    uint32_t sum;
} hoard;

static jzx_behavior_result keep_all(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    hoard *h = self->arg;
    if (jzx_is_ask(ctx)) {
        h->kept[h->count] = jzx_request_keep(ctx);
        REQUIRE(h->kept[h->count] != 0);
        h->count++;
    } else if (msg->kind == JZX_KIND_USER) { /* answers all, in another order */
        for (uint32_t i = 0; i < h->count; i++) {
            uint32_t n = (uint32_t)((uint64_t)i * 7919 % h->count);
            (void)jzx_reply_u64(ctx, h->kept[n], n, 1);
        }
        h->count = 0;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result ask_many(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    hoard *h = self->arg;
    if (msg->kind == JZX_KIND_REPLY) {
        CHECK_EQ(jzx_reply_of(ctx)->outcome, JZX_OUTCOME_REPLIED);
        h->count++;
        h->sum += (uint32_t)msg->u64;
        return JZX_BEHAVIOR_OK;
    }
    jzx_ask_opts opts = {.flags = JZX_SEND_VALUE, .timeout_ms = JZX_ASK_NO_TIMEOUT};
    for (uint32_t i = 0; i < MANY; i++) {
        opts.timeout_ms = 1000 + i;
        CHECK_OK(jzx_ask(ctx->loop, self->number, &opts, NULL));
    }
    return JZX_BEHAVIOR_OK;
}

static void test_ten_thousand_asks_at_once(void)
{
    for (int round = 0; round < 3; round++) {
        rig r = rig_open_fifo(NULL);
        hoard *h = calloc(2, sizeof *h);
        REQUIRE(h != NULL);
        jzx_spawn_opts wide = {.mailbox_cap = MANY};
        puppet *callee = puppet_start(&r, keep_all, &wide);
        puppet *asker = puppet_start(&r, ask_many, NULL);
        callee->arg = &h[0];
        asker->arg = &h[1];
        asker->number = callee->id;
        tell(&r, asker, 1);
        rig_idle(&r);
        CHECK_EQ(h[0].count, MANY);
        CHECK_EQ(rig_counters(&r).asks, MANY);
        if (round == 0) {
            tell(&r, callee, 1);
            rig_idle(&r);
            CHECK_EQ(h[1].count, MANY);
            CHECK_EQ(h[1].sum, (uint32_t)((uint64_t)MANY * (MANY - 1) / 2));
            CHECK_EQ(rig_counters(&r).replies, MANY);
        } else { /* either side ends with all of them */
            CHECK_OK(jzx_kill(r.loop, round == 1 ? asker->id : callee->id));
            if (round == 1) {
                rig_idle(&r);
                tell(&r, callee, 1);
                rig_idle(&r);
                CHECK_EQ(rig_counters(&r).late_replies, MANY);
            } else {
                asker->on = NULL; /* it just counts */
                uint64_t before = asker->handled;
                rig_idle(&r);
                CHECK_EQ(asker->handled - before, MANY);
            }
        }
        rig_close(&r);
        free(h);
        puppet_free(callee);
        puppet_free(asker);
    }
}

/* One turn at a time, and the audit after each. */
static void test_the_audit_holds_while_requests_and_answers_wait_R5(void)
{
    trio t;
    trio_open(&t, &one_turn, NULL);
    trio_start(&t);
    t.b.how = DELEGATE;
    for (int i = 0; i < 20; i++) {
        t.a.me.call = party_ask;
        tell(&t.r, &t.a.me, T_CALL);
        for (int step = 0; step < 7; step++) {
            REQUIRE_OK(jzx_loop_step(t.r.loop, 0));
            const char *wrong = jzx_loop_audit(t.r.loop);
            CHECK_STR(wrong == NULL ? "" : wrong, "");
            jzx_counters c = rig_counters(&t.r);
            CHECK_EQ(c.accepted,
                     c.handled + c.dead + c.redirected + c.revoked + c.queued + c.in_hand);
        }
    }
    rig_idle(&t.r);
    CHECK_EQ(t.a.heard, 20);
    trio_close(&t);
}

static const jzt_test tests[] = {
    {"asks_in_every_hook_R15", test_asks_in_every_hook_R15},
    {"who_defers_its_stop_can_ask_and_be_answered_R16",
     test_who_defers_its_stop_can_ask_and_be_answered_R16},
    {"kept_requests_can_be_answered_until_the_clean_up_R16_R18",
     test_kept_requests_can_be_answered_until_the_clean_up_R16_R18},
    {"a_refused_ask_leaves_everything_as_it_was_R11",
     test_a_refused_ask_leaves_everything_as_it_was_R11},
    {"the_failure_names_target_tag_depth_and_reason",
     test_the_failure_names_target_tag_depth_and_reason},
    {"an_actor_that_was_told_to_stop_does_not_ask_any_more",
     test_an_actor_that_was_told_to_stop_does_not_ask_any_more},
    {"ten_thousand_asks_at_once", test_ten_thousand_asks_at_once},
    {"the_audit_holds_while_requests_and_answers_wait_R5",
     test_the_audit_holds_while_requests_and_answers_wait_R5},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
