/* Goal: whoever dies, restarts or goes on, at every step of an ask: the asker hears exactly once
 * how it ended and why, unless it is the asker who is gone; nothing is lost or released twice (R4,
 * R5, R16, R18). Method: simulation; tables of what the callee does with a request and how it ends
 * then, under parents that leave it dead, restart it or let it go on. */
#include "ask_fixture.h"

static const jzx_supervisor_spec restarts = {.intensity = 1000};
static const jzx_supervisor_spec resumes = {.intensity = 1000, .action = JZX_ACTION_RESUME};
static const jzx_supervisor_spec late = {.intensity = 1000, .backoff_min_ms = 100};

static uint32_t drops;

static void count_drop(void *data)
{
    CHECK(data == &drops);
    drops++;
}

/* One ask; b does this with it, ends so, and answers all that follow. */
static const char *play(manner how, finish end, const jzx_supervisor_spec *policy, uint32_t flags)
{
    static char told[SAID_MAX];
    trio t;
    trio_open(&t, NULL, policy);
    t.b.opts.flags = flags;
    trio_start(&t);
    t.b.how = how;
    t.b.end = end;
    t.b.once = true;
    trio_ask(&t);
    snprintf(told, sizeof told, "%s", said);
    if (t.a.heard > 0) {
        CHECK_EQ(t.a.reply.target, t.b.me.id);
        CHECK_STR(t.a.reply.target_name, t.a.reply.outcome == JZX_OUTCOME_REPLIED ? "" : "b");
    }
    trio_close(&t);
    return told;
}

typedef struct ending {
    manner how;
    const char *told[FINISHES]; /* by how it ends */
} ending;

static void check_endings(const ending *rows, size_t count, const jzx_supervisor_spec *policy,
                          uint32_t flags)
{
    for (size_t i = 0; i < count; i++) {
        for (finish end = FAIL; end < FINISHES; end++) {
            CHECK_STR(play(rows[i].how, end, policy, flags), rows[i].told[end]);
        }
    }
}

#define ALL(text)                                                                                  \
    {                                                                                              \
        NULL, text, text, text, text, text                                                         \
    }

static void test_a_callee_that_ends_R16(void)
{
    static const ending rows[] = {
        {ANSWER, ALL("b?1 a<replied 2>")},
        {KEEP_AND_ANSWER, ALL("b?1 a<replied 2>")},
        {FORWARD, ALL("b?1 c?1 a<replied 2>")},
        {DELEGATE, ALL("b?1 c?11 a<replied 12>")},
        {DROP, ALL("b?1 a<forgotten>")},
        {DISCARD, ALL("b?1 a<forgotten>")},
        {FORGET,
         {NULL, "b?1 a<callee died: failed 7>", "b?1 a<callee died: panic 8>",
          "b?1 a<callee died: normal>", "b?1 a<forgotten>", "b?1 a<forgotten>"}},
        {KEEP,
         {NULL, "b?1 a<callee died: failed 7>", "b?1 a<callee died: panic 8>",
          "b?1 a<callee died: normal>", "b?1 a<callee died: shutdown>",
          "b?1 a<callee died: killed>"}},
        {STASH,
         {NULL, "b?1 a<callee died: failed 7>", "b?1 a<callee died: panic 8>",
          "b?1 a<callee died: normal>", "b?1 a<callee died: shutdown>",
          "b?1 a<callee died: killed>"}},
    };
    check_endings(rows, COUNT_OF(rows), NULL, 0);
}

/* A plain parent's policy restarts failures only. */
static void test_a_callee_that_restarts_R18(void)
{
    static const ending rows[] = {
        {ANSWER, ALL("b?1 a<replied 2>")},
        {KEEP_AND_ANSWER, ALL("b?1 a<replied 2>")},
        {FORWARD, ALL("b?1 c?1 a<replied 2>")},
        {DELEGATE, ALL("b?1 c?11 a<replied 12>")},
        {DISCARD, ALL("b?1 a<forgotten>")},
        {FORGET,
         {NULL, "b?1 a<callee restarted: failed 7>", "b?1 a<callee restarted: panic 8>",
          "b?1 a<callee died: normal>", "b?1 a<forgotten>", "b?1 a<forgotten>"}},
        {KEEP,
         {NULL, "b?1 a<callee restarted: failed 7>", "b?1 a<callee restarted: panic 8>",
          "b?1 a<callee died: normal>", "b?1 a<callee died: shutdown>",
          "b?1 a<callee restarted: killed>"}},
        {STASH, /* it waits, and the next incarnation gets it */
         {NULL, "b?1 b?1 a<replied 2>", "b?1 b?1 a<replied 2>", "b?1 a<callee died: normal>",
          "b?1 a<callee died: shutdown>", "b?1 b?1 a<replied 2>"}},
    };
    check_endings(rows, COUNT_OF(rows), &restarts, 0);
}

static void test_a_callee_that_restarts_and_gets_the_message_again_R18(void)
{
    static const ending rows[] = {
        {ANSWER, ALL("b?1 a<replied 2>")},
        {FORGET,
         {NULL, "b?1 b?1 a<replied 2>", "b?1 b?1 a<replied 2>", "b?1 a<callee died: normal>",
          "b?1 a<forgotten>", "b?1 a<forgotten>"}},
        {KEEP, /* what comes again is no request any more */
         {NULL, "b?1 a<callee restarted: failed 7>", "b?1 a<callee restarted: panic 8>",
          "b?1 a<callee died: normal>", "b?1 a<callee died: shutdown>",
          "b?1 a<callee restarted: killed>"}},
    };
    check_endings(rows, COUNT_OF(rows), &restarts, JZX_SPAWN_REDELIVER);
}

static void test_a_callee_that_goes_on_R18(void)
{
    static const ending rows[] = {
        {ANSWER, {NULL, "b?1 a<replied 2>", "b?1 a<replied 2>"}},
        {FORGET, {NULL, "b?1 a<forgotten>", "b?1 a<forgotten>"}},
        {KEEP, {NULL, "b?1", "b?1"}}, /* it still can */
        {STASH, {NULL, "b?1", "b?1"}},
    };
    for (uint32_t flags = 0; flags <= JZX_SPAWN_REDELIVER; flags += JZX_SPAWN_REDELIVER) {
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            for (finish end = FAIL; end <= PANIC; end++) {
                CHECK_STR(play(rows[i].how, end, &resumes, flags), rows[i].told[end]);
            }
        }
    }
}

static void answer_all_kept(jzx_context *ctx, puppet *me)
{
    party *self = (party *)me;
    for (size_t i = 0; i < self->kept_len; i++) {
        jzx_err err = jzx_reply_u64(ctx, self->kept[i], 100 + i, 1);
        say("%s!%s", me->name, err == JZX_OK ? "OK" : jzx_err_name(err) + strlen("JZX_ERR_"));
    }
    self->kept_len = 0;
}

static void test_what_was_kept_can_be_answered_after_a_resume_and_not_after_a_restart_R18(void)
{
    for (int round = 0; round < 2; round++) {
        trio t;
        trio_open(&t, NULL, round == 0 ? &resumes : &restarts);
        trio_start(&t);
        t.b.how = KEEP;
        trio_ask(&t);
        trio_ask(&t);
        CHECK_SAID("b?1 b?1");
        tell(&t.r, &t.b.me, T_FAIL);
        rig_idle(&t.r);
        CHECK_SAID(round == 0 ? "" : "a<callee restarted: failed 7> a<callee restarted: failed 7>");
        within(&t, &t.b, answer_all_kept);
        CHECK_SAID(round == 0 ? "b!OK b!OK a<replied 100> a<replied 101>"
                              : "b!NO_SUCH_REF b!NO_SUCH_REF");
        CHECK_COUNTERS(&t, 2, round == 0 ? 2 : 0, 0);
        trio_close(&t);
    }
}

static void reply_by_the_long_way(jzx_context *ctx, party *self)
{
    (void)self;
    jzx_send_opts opts = {.u64 = 9, .flags = JZX_SEND_VALUE};
    CHECK_OK(jzx_reply_with(ctx, JZX_REQUEST_IN_HAND, &opts));
}

/* The same slot again: party_hear() looks at every field of the reason. */
static void test_a_reply_shows_nothing_of_an_earlier_death(void)
{
    trio t;
    trio_open(&t, NULL, &restarts);
    trio_start(&t);
    t.b.once = true;
    for (int round = 0; round < 3; round++) {
        t.b.how = FORGET;
        t.b.end = FAIL;
        trio_ask(&t);
        CHECK_STR(t.a.reply.reason.text, "as told");
        t.b.how = NOTHING;
        t.b.then = reply_by_the_long_way;
        trio_ask(&t);
        t.b.how = FORGET;
        t.b.end = PANIC;
        trio_ask(&t);
        CHECK_EQ(t.a.reply.reason.code, 8);
        trio_ask(&t);
        CHECK_SAID("b?1 a<callee restarted: failed 7> b?1 a<replied 9> "
                   "b?1 a<callee restarted: panic 8> b?1 a<replied 2>");
    }
    trio_close(&t);
}

/* The handle of a message that comes again must not mean another request, which by now is in the
 * place of its own. */
static void keep_again(jzx_context *ctx, puppet *me)
{
    (void)me;
    say("again=%d", jzx_is_ask(ctx));
    CHECK_EQ(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 1, 1), JZX_ERR_NO_SUCH_REF);
}

static void test_a_message_that_comes_again_has_no_part_in_other_requests_R18(void)
{
    trio t;
    trio_open(&t, NULL, &late);
    t.b.opts.flags = JZX_SPAWN_REDELIVER;
    trio_start(&t);
    t.b.me.mute = true;
    t.b.me.call = keep_again;
    t.b.how = KEEP;
    t.b.end = FAIL;
    t.a.ask.tag = T_CALL; /* as no request it is a call */
    trio_ask(&t);
    CHECK_SAID("b?1 a<callee restarted: failed 7>"); /* it is over, and its place free */
    t.b.end = RETURN;
    t.a.ask.tag = ASK_TAG;
    t.a.ask.flags |= JZX_SEND_URGENT; /* before the one that comes again */
    t.a.ask.u64 = 2;
    trio_ask(&t);
    run_ms(&t.r, 200);
    CHECK_SAID("b?2 again=0");
    trio_close(&t);
}

/* Queued when the callee ends. */
static void ask_and_stop(jzx_context *ctx, puppet *me)
{
    party_ask(ctx, me);
    CHECK_OK(jzx_kill(ctx->loop, ((party *)me)->to));
}

static void test_requests_that_wait_when_the_callee_ends_R16(void)
{
    static const struct {
        uint32_t drain;
        uint32_t redirect_cap;
        const char *told;
        uint64_t letters;
    } cases[] = {
        {JZX_DRAIN_DEAD_LETTERS, 0, "a<callee died: killed>", 1},
        {JZX_DRAIN_DROP, 0, "a<callee died: killed>", 0},
        {JZX_DRAIN_REDIRECT, 8, "c?1 a<replied 2>", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        trio t;
        trio_open(&t, NULL, NULL);
        party_name(&t.c, "heir");
        snprintf(t.c.me.name, sizeof t.c.me.name, "c");
        t.p.during = NULL;
        jzx_spawn_opts parent = puppet_opts(&t.p);
        puppet_spawn_with(t.r.loop, &t.p, &parent);
        party_spawn_with(t.r.loop, &t.c);
        party_spawn_with(t.r.loop, &t.a);
        t.b.opts.drain = cases[i].drain;
        t.b.opts.redirect_to = cases[i].drain == JZX_DRAIN_REDIRECT ? t.c.me.id : JZX_NOBODY;
        party_spawn_with(t.r.loop, &t.b);
        rig_idle(&t.r);
        said_clear();
        drops = 0;
        t.a.to = t.b.me.id;
        t.a.ask = (jzx_ask_opts){.data = &drops, .drop = count_drop, .tag = ASK_TAG};
        if (cases[i].drain == JZX_DRAIN_REDIRECT) {
            t.a.ask = (jzx_ask_opts){.u64 = 1, .flags = JZX_SEND_VALUE, .tag = ASK_TAG};
        }
        within(&t, &t.a, ask_and_stop);
        CHECK_SAID(cases[i].told);
        CHECK_EQ(drops, cases[i].drain == JZX_DRAIN_REDIRECT ? 0 : 1);
        uint32_t facts[4];
        CHECK_EQ(dead_facts(&t.r, facts, 4), cases[i].letters);
        trio_close(&t);
    }
}

static void fail_then_ask(jzx_context *ctx, puppet *me)
{
    CHECK_OK(jzx_send_u64(ctx->loop, ((party *)me)->to, 0, T_FAIL));
    party_ask(ctx, me);
}

static void test_requests_that_wait_when_the_callee_restarts_R18(void)
{
    for (int round = 0; round < 4; round++) {
        trio t;
        trio_open(&t, NULL, &late);
        t.b.opts.flags = round == 0 ? JZX_SPAWN_DROP_QUEUE : 0;
        trio_start(&t);
        if (round == 2) {
            t.a.ask.timeout_ms = 50; /* not that long */
        }
        t.b.me.answer[IN_INIT] = round == 3 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
        within(&t, &t.a, fail_then_ask);
        CHECK_EQ(t.b.me.fails, 1);
        run_ms(&t.r, 99);
        if (round == 3) { /* it never comes up again */
            CHECK_SAID("");
            CHECK_OK(jzx_kill(t.r.loop, t.b.me.id));
        }
        run_ms(&t.r, 2);
        static const char *const told[] = {"a<callee restarted: failed 7>", "b?1 a<replied 2>",
                                           "a<timed out>", "a<callee died: failed 7>"};
        CHECK_SAID(told[round]);
        CHECK_EQ(rig_counters(&t.r).dead_by[JZX_DEAD_FAILED_ON], 1); /* what b failed on */
        CHECK_EQ(rig_counters(&t.r).dead, round == 1 ? 1 : 2);
        trio_close(&t);
    }
}

/* A callee that never starts. */
static void test_a_callee_that_does_not_start_R15(void)
{
    trio t;
    trio_make(&t);
    party d;
    party_name(&d, "d");
    d.me.answer[IN_INIT] = JZX_BEHAVIOR_FAIL;
    tell(&t.r, &t.a.me, T_CALL); /* its turn is before d's */
    t.a.me.call = party_ask;
    party_spawn_with(t.r.loop, &d);
    t.a.to = d.me.id;
    rig_idle(&t.r);
    CHECK_OK(t.a.err);
    CHECK_SAID("a<callee died: start_failed>");
    trio_close(&t);
}

static jzx_err err_of_three[3];

static void ask_three(jzx_context *ctx, puppet *me)
{
    party *self = (party *)me;
    for (size_t i = 0; i < 3; i++) {
        self->ask.u64 = i;
        self->ask.tag = 1 + (uint32_t)i;
        err_of_three[i] = jzx_ask(ctx->loop, self->to, &self->ask, NULL);
    }
}

static void test_full_mailboxes_R11(void)
{
    static const struct {
        uint32_t policy;
        const char *told;
    } cases[] = {{JZX_FULL_REJECT, "b?0 b?1 a<replied 1> a<replied 2>"},
                 {JZX_FULL_DROP_NEWEST, "a<mailbox full> b?0 b?1 a<replied 1> a<replied 2>"},
                 {JZX_FULL_DROP_OLDEST, "a<mailbox full> b?1 b?2 a<replied 2> a<replied 3>"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        trio t;
        trio_open(&t, NULL, NULL);
        t.b.opts.mailbox_cap = 2;
        t.b.opts.full_policy = cases[i].policy;
        trio_start(&t);
        t.a.opts.max_msgs = 1;
        within(&t, &t.a, ask_three);
        CHECK_EQ(said_times("<mailbox full>"), i == 0 ? 0 : 1);
        CHECK_EQ(said_times("<replied"), 2);
        CHECK(i != 1 || strstr(said, "b?2") == NULL);
        CHECK(i != 2 || strstr(said, "b?0") == NULL);
        CHECK_EQ(err_of_three[2], i == 0 ? JZX_ERR_MAILBOX_FULL : JZX_OK);
        if (i == 0) {
            CHECK_EQ(t.a.failure.outcome, JZX_OUTCOME_MAILBOX_FULL);
            CHECK_EQ(t.a.failure.err, JZX_ERR_MAILBOX_FULL);
            CHECK_EQ(t.a.failure.queue_depth, 2);
            CHECK_EQ(t.a.failure.tag, 3);
            CHECK_STR(t.a.failure.target_name, "b");
        }
        CHECK_COUNTERS(&t, i == 0 ? 2 : 3, 2, 0);
        trio_close(&t);
    }
}

/* The asker ends or restarts, at every step. */
typedef enum step { WAITS, IS_KEPT, IS_ANSWERED, WAS_DELEGATED, STEPS } step;

static void ask_and_end(jzx_context *ctx, puppet *me)
{
    party_ask(ctx, me);
    CHECK_OK(jzx_kill(ctx->loop, ctx->self));
}

static void answer_and_kill(jzx_context *ctx, party *self)
{
    jzx_send_opts opts = {.data = &drops, .drop = count_drop};
    CHECK_OK(jzx_reply_with(ctx, JZX_REQUEST_IN_HAND, &opts));
    CHECK_OK(jzx_kill(ctx->loop, self->me.msg->sender));
}

static void kill_self(jzx_context *ctx, puppet *me)
{
    (void)me;
    CHECK_OK(jzx_kill(ctx->loop, ctx->self));
}

static void reply_too_late(jzx_context *ctx, puppet *me)
{
    party *self = (party *)me;
    jzx_send_opts opts = {.data = &drops, .drop = count_drop};
    CHECK_EQ(jzx_request_is_wanted(ctx, self->kept[0]), 0);
    CHECK_EQ(jzx_reply_with(ctx, self->kept[0], &opts), JZX_ERR_NOT_WANTED);
    CHECK_EQ(drops, 0);
    self->kept_len = 0;
}

static void play_asker(step at, const jzx_supervisor_spec *policy)
{
    trio t;
    trio_open(&t, NULL, policy);
    trio_start(&t);
    drops = 0;
    bool again = policy != NULL;
    t.b.how = at == WAITS ? ANSWER : at == IS_KEPT ? KEEP : at == IS_ANSWERED ? NOTHING : DELEGATE;
    t.c.how = KEEP;
    t.b.then = at == IS_ANSWERED ? answer_and_kill : NULL;
    within(&t, &t.a, at == WAITS ? ask_and_end : party_ask);
    if (at == IS_KEPT || at == WAS_DELEGATED) {
        within(&t, &t.a, kill_self);
        within(&t, at == IS_KEPT ? &t.b : &t.c, reply_too_late);
    }
    run_ms(&t.r, 10000); /* and nothing is left of its time */
    CHECK_EQ(t.a.heard, 0);
    CHECK_EQ(t.a.me.ends, again ? 0 : 1);
    CHECK_EQ(t.a.me.restarts, again ? 1 : 0);
    CHECK_EQ(drops, at == IS_ANSWERED ? 1 : 0);
    /* Who waits for its parent's decision can still be answered, though it never hears of it. */
    jzx_counters c = rig_counters(&t.r);
    bool unheard = at == IS_ANSWERED || (at == WAITS && again);
    CHECK_EQ(c.dead_by[JZX_DEAD_CANCELLED], at == WAITS && !again ? 1 : 0);
    CHECK_EQ(c.late_replies, at == WAITS && !again ? 0 : 1);
    CHECK_EQ(c.replies, unheard ? 1 : 0);
    if (again) { /* the next incarnation has no part in it, and asks for itself */
        t.b.how = ANSWER;
        t.b.then = NULL;
        said_clear();
        trio_ask(&t);
        CHECK_SAID("b?1 a<replied 2>");
    }
    trio_close(&t);
}

static void test_an_asker_that_ends_or_restarts_R16_R18(void)
{
    for (step at = WAITS; at < STEPS; at++) {
        play_asker(at, NULL);
        play_asker(at, &restarts);
    }
}

static void test_an_asker_that_goes_on_is_answered_R18(void)
{
    trio t;
    trio_open(&t, NULL, &resumes);
    trio_start(&t);
    t.b.how = KEEP;
    trio_ask(&t);
    tell(&t.r, &t.a.me, T_FAIL);
    rig_idle(&t.r);
    within(&t, &t.b, answer_all_kept);
    CHECK_SAID("b?1 b!OK a<replied 100>");
    trio_close(&t);
}

static const jzt_test tests[] = {
    {"a_callee_that_ends_R16", test_a_callee_that_ends_R16},
    {"a_callee_that_restarts_R18", test_a_callee_that_restarts_R18},
    {"a_callee_that_restarts_and_gets_the_message_again_R18",
     test_a_callee_that_restarts_and_gets_the_message_again_R18},
    {"a_callee_that_goes_on_R18", test_a_callee_that_goes_on_R18},
    {"what_was_kept_can_be_answered_after_a_resume_and_not_after_a_restart_R18",
     test_what_was_kept_can_be_answered_after_a_resume_and_not_after_a_restart_R18},
    {"a_reply_shows_nothing_of_an_earlier_death", test_a_reply_shows_nothing_of_an_earlier_death},
    {"a_message_that_comes_again_has_no_part_in_other_requests_R18",
     test_a_message_that_comes_again_has_no_part_in_other_requests_R18},
    {"requests_that_wait_when_the_callee_ends_R16",
     test_requests_that_wait_when_the_callee_ends_R16},
    {"requests_that_wait_when_the_callee_restarts_R18",
     test_requests_that_wait_when_the_callee_restarts_R18},
    {"a_callee_that_does_not_start_R15", test_a_callee_that_does_not_start_R15},
    {"full_mailboxes_R11", test_full_mailboxes_R11},
    {"an_asker_that_ends_or_restarts_R16_R18", test_an_asker_that_ends_or_restarts_R16_R18},
    {"an_asker_that_goes_on_is_answered_R18", test_an_asker_that_goes_on_is_answered_R18},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
