/* Goal: an ask is answered exactly once, with the reply as it was given or with the reason why
 * there is none; what is refused leaves everything as it was (R4-R9, R11, R13). Method: simulation;
 * an asker, a callee and a helper that do as told and write down what they hear; payloads that
 * count their drops. */
#include "ask_fixture.h"

/* Data that counts its ends. */
static struct {
    uint32_t drops;
    uint32_t owned;
    unsigned char bytes[10000];
} parcel;

static void parcel_drop(void *data)
{
    CHECK(data == &parcel);
    parcel.drops++;
}

static void parcel_reset(void)
{
    parcel.drops = parcel.owned = 0;
    for (size_t i = 0; i < sizeof parcel.bytes; i++) {
        parcel.bytes[i] = (unsigned char)(i * 7 + 3);
    }
}

static void test_a_reply_is_a_message_of_kind_reply(void)
{
    trio t;
    int mine = 0;
    trio_make(&t);
    t.a.ask.arg = &mine;
    t.a.ask.u64 = 41;
    trio_ask(&t);
    CHECK_OK(t.a.err);
    CHECK_SAID("b?41 a<replied 42>");
    CHECK_EQ(t.a.msg.kind, JZX_KIND_REPLY);
    CHECK_EQ(t.a.msg.tag, ASK_TAG);
    CHECK_EQ(t.a.msg.flags & 0xF, JZX_MSG_VALUE);
    CHECK_EQ(t.a.msg.sender, t.b.me.id);
    CHECK_EQ(t.a.reply.ask, t.a.ref);
    CHECK(t.a.reply.arg == &mine);
    CHECK_EQ(t.a.reply.target, t.b.me.id);
    CHECK_EQ(t.a.reply.callee, t.b.me.id);
    CHECK_EQ(t.a.reply.outcome, JZX_OUTCOME_REPLIED);
    CHECK_EQ(t.a.reply.err, JZX_OK);
    CHECK_EQ(t.a.reply.tag, ASK_TAG);
    CHECK_EQ(t.a.reply.queue_depth, 0);
    CHECK_COUNTERS(&t, 1, 1, 0);
    trio_close(&t);
}

/* The callee's side of the request. */
static struct {
    uint64_t deadline_ns;
    uint64_t msg_deadline_ns;
    uint64_t now_ns;
    int wanted;
} seen;

static void look_at_request(jzx_context *ctx, party *self)
{
    seen.deadline_ns = jzx_request_deadline(ctx, JZX_REQUEST_IN_HAND);
    seen.msg_deadline_ns = self->me.msg->deadline_ns;
    seen.wanted = jzx_request_is_wanted(ctx, JZX_REQUEST_IN_HAND);
    seen.now_ns = jzx_loop_now(ctx->loop);
}

static void test_the_time_of_the_asker_travels_with_the_request_R13(void)
{
    static const struct {
        uint32_t timeout_ms;
        uint64_t ms;
    } cases[] = {{0, 5000}, {1, 1}, {999, 999}, {1000, 1000}, {100000, 100000}};
    trio t;
    trio_make(&t);
    t.b.how = NOTHING;
    t.b.then = look_at_request;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        t.a.ask.timeout_ms = cases[i].timeout_ms;
        uint64_t before = jzx_loop_now(t.r.loop);
        trio_ask(&t);
        CHECK_EQ(seen.wanted, 1);
        CHECK_EQ(seen.deadline_ns, seen.msg_deadline_ns);
        CHECK(seen.deadline_ns >= before + cases[i].ms * MS);
        CHECK(seen.deadline_ns <= seen.now_ns + cases[i].ms * MS);
    }
    t.a.ask.timeout_ms = JZX_ASK_NO_TIMEOUT;
    trio_ask(&t);
    CHECK_EQ(seen.wanted, 1);
    CHECK_EQ(seen.deadline_ns, 0);
    CHECK_EQ(seen.msg_deadline_ns, 0);
    trio_close(&t);
}

/* How the reply is given, by the test. */
static jzx_send_opts answer_opts;
static bool answer_takes;

static void give_answer(jzx_context *ctx, party *self)
{
    jzx_request request = self->kept_len > 0 ? self->kept[--self->kept_len] : JZX_REQUEST_IN_HAND;
    CHECK_OK(jzx_reply_with(ctx, request, &answer_opts));
    CHECK_EQ(jzx_reply_with(ctx, request, &answer_opts), JZX_ERR_NO_SUCH_REF); /* not twice */
    CHECK_EQ(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 1, 1), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_is_ask(ctx), 0);
}

static jzx_behavior_result take_answer(jzx_context *ctx, const jzx_message *msg)
{
    party *self = ctx->state;
    self->heard++;
    CHECK_EQ(jzx_reply_of(ctx)->outcome, JZX_OUTCOME_REPLIED);
    CHECK_EQ(msg->tag, 9);
    CHECK_EQ(msg->len, answer_opts.len);
    if ((msg->flags & JZX_MSG_COPY) != 0) {
        CHECK(msg->len == 0 || memcmp(msg->data, parcel.bytes, msg->len) == 0);
        CHECK(msg->len == 0 || msg->data != parcel.bytes);
        CHECK(jzx_message_take(ctx) == NULL);
        return JZX_BEHAVIOR_OK;
    }
    CHECK(msg->data == answer_opts.data);
    if (answer_takes) {
        CHECK(jzx_message_take(ctx) == msg->data);
        parcel.owned++;
    } else if (msg->drop == NULL) {
        parcel.owned++;
    }
    CHECK_EQ(parcel.drops, 0);
    return JZX_BEHAVIOR_OK;
}

static void test_every_form_of_a_reply_arrives_and_is_released_once_R4(void)
{
    static const size_t lengths[] = {0, 1, 64, 65, sizeof parcel.bytes};
    static const jzx_send_opts forms[] = {
        {.data = parcel.bytes, .flags = JZX_SEND_COPY},
        {.data = &parcel, .drop = parcel_drop},
        {.data = &parcel},
        {.data = NULL, .drop = parcel_drop},
    };
    trio t;
    trio_make(&t);
    t.a.ask.on_reply = take_answer;
    t.b.then = give_answer;
    size_t bytes = 0;
    for (size_t n = 0; n < 2 * 2 * COUNT_OF(forms) * COUNT_OF(lengths); n++) {
        const jzx_send_opts *form = &forms[n / 4 % COUNT_OF(forms)];
        bool empty = form->data == NULL;
        parcel_reset();
        t.b.how = n % 2 == 0 ? NOTHING : KEEP;
        answer_takes = n / 2 % 2 != 0 && form->drop != NULL && !empty;
        answer_opts = *form;
        answer_opts.tag = 9;
        answer_opts.len = empty ? 0 : lengths[n / 4 / COUNT_OF(forms)];
        uint32_t heard = t.a.heard;
        trio_ask(&t);
        CHECK_EQ(t.a.heard, heard + 1);
        bool owned = form->drop == NULL && (form->flags & JZX_SEND_COPY) == 0;
        CHECK_EQ(parcel.owned, owned || answer_takes ? 1 : 0);
        CHECK_EQ(parcel.drops, form->drop != NULL && !answer_takes && !empty ? 1 : 0);
        if (n == 4) {
            bytes = rig_bytes(&t.r);
        }
    }
    CHECK_EQ(rig_bytes(&t.r), bytes);
    trio_close(&t);
}

static jzx_err tried[16];

static void try_bad_replies(jzx_context *ctx, party *self)
{
    static char big[1];
    (void)self;
    const jzx_send_opts bad[] = {
        {.tag = JZX_TAG_SYSTEM_FIRST},
        {.flags = JZX_SEND_COPY | JZX_SEND_VALUE},
        {.data = big, .flags = JZX_SEND_COPY, .len = (size_t)JZX_COPY_MAX + 1},
        {.flags = JZX_SEND_COPY, .len = 1},
        {.deadline_ns = 1},
        {.margin = 1},
        {.flags = JZX_SEND_URGENT},
        {.flags = 0x8000},
        {.reserved = 1},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        tried[i] = jzx_reply_with(ctx, JZX_REQUEST_IN_HAND, &bad[i]);
        CHECK_EQ(jzx_is_ask(ctx), 1); /* the duty remains */
    }
    jzx_send_opts newer[2] = {{.tag = 1}, {.tag = 1}};
    CHECK_EQ(jzx_reply_with_sized(ctx, JZX_REQUEST_IN_HAND, newer, sizeof newer),
             JZX_ERR_NEWER_STRUCT);
    CHECK_EQ(jzx_reply_with_sized(ctx, JZX_REQUEST_IN_HAND, NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_reply_u64(NULL, JZX_REQUEST_IN_HAND, 1, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 1, JZX_TAG_ASK_FAILED), JZX_ERR_RESERVED_TAG);
    CHECK_EQ(jzx_reply_u64(ctx, UINT64_MAX, 1, 1), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_reply_u64(ctx, 0x100000000, 1, 1), JZX_ERR_NO_SUCH_REF); /* not kept */
    jzx_send_opts eaten = {
        .data = &parcel, .drop = parcel_drop, .flags = JZX_SEND_CONSUME, .margin = 1};
    CHECK_EQ(jzx_reply_with(ctx, JZX_REQUEST_IN_HAND, &eaten), JZX_ERR_INVALID_ARG);
    CHECK_EQ(parcel.drops, 1);
    CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 77, 1));
}

static void test_a_refused_reply_leaves_the_duty(void)
{
    static const jzx_err want[] = {JZX_ERR_RESERVED_TAG, JZX_ERR_INVALID_ARG, JZX_ERR_TOO_BIG,
                                   JZX_ERR_INVALID_ARG,  JZX_ERR_INVALID_ARG, JZX_ERR_INVALID_ARG,
                                   JZX_ERR_INVALID_ARG,  JZX_ERR_INVALID_ARG, JZX_ERR_INVALID_ARG};
    trio t;
    parcel_reset();
    trio_make(&t);
    t.b.how = NOTHING;
    t.b.then = try_bad_replies;
    trio_ask(&t);
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        CHECK_EQ(tried[i], want[i]);
    }
    CHECK_SAID("b?1 a<replied 77>");
    CHECK_COUNTERS(&t, 1, 1, 0);
    trio_close(&t);
}

/* Outside of a request everything says so. */
static void try_without_request(jzx_context *ctx, puppet *me)
{
    jzx_send_opts opts = {.tag = 1};
    (void)me;
    CHECK_EQ(jzx_is_ask(ctx), 0);
    CHECK_EQ(jzx_request_keep(ctx), 0);
    CHECK_EQ(jzx_request_is_wanted(ctx, JZX_REQUEST_IN_HAND), 0);
    CHECK_EQ(jzx_request_deadline(ctx, JZX_REQUEST_IN_HAND), 0);
    CHECK_EQ(jzx_request_drop(ctx, JZX_REQUEST_IN_HAND), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 1, 1), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_reply_with(ctx, JZX_REQUEST_IN_HAND, &(jzx_send_opts){.tag = 1}),
             JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_reply_copy(ctx, JZX_REQUEST_IN_HAND, "x", 1, 1), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_delegate(ctx, JZX_REQUEST_IN_HAND, ctx->self, &opts), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_ask_cancel(ctx->loop, 0), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_ask_cancel(ctx->loop, UINT64_MAX), JZX_ERR_NO_SUCH_REF);
    CHECK(jzx_reply_of(ctx) == NULL);
}

static void test_without_a_request_there_is_nothing_to_answer(void)
{
    trio t;
    trio_make(&t);
    within(&t, &t.b, try_without_request);
    CHECK_EQ(jzx_is_ask(NULL), 0);
    CHECK_EQ(jzx_request_keep(NULL), 0);
    CHECK_EQ(jzx_request_is_wanted(NULL, 1), 0);
    CHECK_EQ(jzx_request_deadline(NULL, 1), 0);
    CHECK_EQ(jzx_request_drop(NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK(jzx_reply_of(NULL) == NULL);
    CHECK_EQ(jzx_ask_cancel(NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_ask_cancel(t.r.loop, 1), JZX_ERR_INVALID_ARG); /* outside an actor */
    trio_close(&t);
}

static jzx_behavior_result on_reply(jzx_context *ctx, const jzx_message *msg)
{
    party *self = ctx->state;
    say("%s.on_reply", self->me.name);
    (void)party_hear(ctx, msg);
    return party_finish(ctx, self);
}

static jzx_behavior_result other_behavior(jzx_context *ctx, const jzx_message *msg)
{
    const party *self = ctx->state;
    say("%s.other", self->me.name);
    return party_behavior(ctx, msg);
}

static void ask_and_become(jzx_context *ctx, puppet *me)
{
    party_ask(ctx, me);
    CHECK_OK(jzx_become(ctx, other_behavior));
}

static void test_a_callback_runs_in_the_actor_instead_of_its_behavior(void)
{
    trio t;
    trio_make(&t);
    t.a.ask.on_reply = on_reply;
    trio_ask(&t);
    CHECK_SAID("b?1 a.on_reply a<replied 2>");
    t.b.how = FORGET;
    trio_ask(&t);
    CHECK_SAID("b?1 a.on_reply a<forgotten>");
    t.b.how = ANSWER;
    t.a.ask.on_reply = NULL;
    within(&t, &t.a, ask_and_become); /* who it has become is who hears of it */
    CHECK_SAID("b?1 a.other a<replied 2>");
    trio_close(&t);
}

static void test_a_callback_that_fails_fails_the_actor(void)
{
    for (finish end = FAIL; end < FINISHES; end++) {
        trio t;
        trio_make(&t);
        t.a.ask.on_reply = on_reply;
        t.a.end = end;
        trio_ask(&t);
        CHECK_SAID("b?1 a.on_reply a<replied 2>");
        static const uint32_t reasons[FINISHES] = {
            [FAIL] = JZX_REASON_FAILED,      [PANIC] = JZX_REASON_PANIC,
            [STOP] = JZX_REASON_NORMAL,      [SELF_STOP] = JZX_REASON_SHUTDOWN,
            [SELF_KILL] = JZX_REASON_KILLED,
        };
        CHECK_ENDED(&t.r, &t.a.me, reasons[end]);
        trio_close(&t);
    }
}

/* The callee's own doing, and nobody dies. */
static void test_a_request_that_is_not_answered_is_forgotten_at_once(void)
{
    static const manner ways[] = {FORGET, DROP, DISCARD};
    trio t;
    trio_make(&t);
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        t.b.how = ways[i];
        trio_ask(&t);
        CHECK_SAID("b?1 a<forgotten>");
        CHECK_EQ(t.a.reply.err, JZX_ERR_AGAIN);
        CHECK_EQ(t.a.reply.callee, t.b.me.id);
        CHECK_STR(t.a.reply.target_name, "b");
        CHECK_EQ(rig_counters(&t.r).dead, ways[i] == DISCARD ? 1 : 0);
    }
    trio_close(&t);
}

static void ask_self(jzx_context *ctx, puppet *me)
{
    party *self = (party *)me;
    self->to = ctx->self;
    party_ask(ctx, me);
    CHECK_OK(self->err);
}

static void test_asking_oneself_without_waiting_works(void)
{
    trio t;
    trio_make(&t);
    within(&t, &t.a, ask_self);
    CHECK_SAID("a?1 a<replied 2>");
    t.a.how = KEEP_AND_ANSWER;
    within(&t, &t.a, ask_self);
    CHECK_SAID("a?1 a<replied 2>");
    t.a.how = FORGET;
    within(&t, &t.a, ask_self);
    CHECK_SAID("a?1 a<forgotten>");
    trio_close(&t);
}

static void send_around_reply(jzx_context *ctx, party *self)
{
    jzx_actor_id to = self->me.msg->sender;
    CHECK_OK(jzx_send_u64(ctx->loop, to, 0, 0x21));
    CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 7, 1));
    CHECK_OK(jzx_send_u64(ctx->loop, to, 0, 0x22));
    CHECK_OK(try_urgent(ctx->loop, to, 0x23));
}

static void send_around_ask(jzx_context *ctx, puppet *me)
{
    party *self = (party *)me;
    CHECK_OK(jzx_send_u64(ctx->loop, self->to, 0, 0x11));
    party_ask(ctx, me);
    CHECK_OK(jzx_send_u64(ctx->loop, self->to, 0, 0x12));
}

static void test_asks_and_replies_keep_their_place_among_messages_R6(void)
{
    trio t;
    trio_make(&t);
    t.a.me.mute = t.b.me.mute = false;
    t.b.how = NOTHING;
    t.b.then = send_around_reply;
    within(&t, &t.a, send_around_ask);
    CHECK_SAID("b:11 b?1 b:12 a:23 a:21 a<replied 7> a:22");
    trio_close(&t);
}

static void fill_asker(jzx_context *ctx, party *self)
{
    jzx_actor_id to = self->me.msg->sender;
    CHECK_OK(jzx_send_u64(ctx->loop, to, 0, 0x21));
    CHECK_OK(jzx_send_u64(ctx->loop, to, 0, 0x22));
    CHECK_EQ(jzx_send_u64(ctx->loop, to, 0, 0x23), JZX_ERR_MAILBOX_FULL);
    CHECK_OK(jzx_reply_copy(ctx, JZX_REQUEST_IN_HAND, "0123456789", 10, 1));
}

static jzx_behavior_result hear_digits(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    CHECK_EQ(msg->len, 10);
    say("a<%.10s>", (const char *)msg->data);
    return JZX_BEHAVIOR_OK;
}

static void test_a_reply_needs_no_room_R8(void)
{
    trio t;
    trio_open(&t, NULL, NULL);
    t.a.opts.mailbox_cap = 2;
    trio_start(&t);
    t.a.me.mute = false;
    t.a.ask.on_reply = hear_digits;
    t.b.how = NOTHING;
    t.b.then = fill_asker;
    trio_ask(&t);
    CHECK_SAID("b?1 a:21 a:22 a<0123456789>");
    trio_close(&t);
}

/* A reply without memory: the answer's place was taken when it was asked. */
static void reply_without_memory(jzx_context *ctx, party *self)
{
    (void)self;
    jzx_fault_arm_alloc(the_trio->r.fault, 1, 1);
    CHECK_EQ(jzx_reply_copy(ctx, JZX_REQUEST_IN_HAND, parcel.bytes, 65, 1), JZX_ERR_NO_MEMORY);
    CHECK_EQ(jzx_is_ask(ctx), 1); /* a long copy needs some, and the duty remains */
    CHECK_OK(jzx_reply_copy(ctx, JZX_REQUEST_IN_HAND, "0123456789", 10, 1));
}

static void test_a_reply_needs_no_memory_R9(void)
{
    trio t;
    trio_make(&t);
    t.a.ask.on_reply = hear_digits;
    t.b.how = NOTHING;
    t.b.then = reply_without_memory;
    trio_ask(&t);
    jzx_fault_arm_alloc(t.r.fault, 0, 0);
    CHECK_SAID("b?1 a<0123456789>");
    trio_close(&t);
}

static void test_names_and_lines_for_people(void)
{
    static const char *const names[] = {"replied",      "timed out",        "expired",
                                        "callee died",  "callee restarted", "no such actor",
                                        "mailbox full", "cancelled",        "forgotten",
                                        "refused",      "unknown"};
    for (uint32_t i = 0; i < COUNT_OF(names); i++) {
        CHECK_STR(jzx_outcome_name(i), names[i]);
    }
    CHECK_STR(jzx_outcome_name(UINT32_MAX), "unknown");
    char line[256];
    jzx_reply reply = {.target = 0x1000000a,
                       .tag = 7,
                       .outcome = JZX_OUTCOME_TIMED_OUT,
                       .age_ns = 5000 * MS,
                       .queue_depth = 17,
                       .target_name = "db"};
    const char *want = "ask 'db' (1000000a) tag 7: timed out after 5000.0 ms, 17 queued";
    CHECK_EQ(jzx_reply_format(&reply, line, sizeof line), strlen(want));
    CHECK_STR(line, want);
    CHECK_EQ(jzx_reply_format(&reply, line, 8), strlen(want)); /* as snprintf(3) */
    CHECK_STR(line, "ask 'db");
    CHECK_EQ(jzx_reply_format(&reply, NULL, 0), strlen(want));
    reply = (jzx_reply){.target = 1,
                        .outcome = JZX_OUTCOME_CALLEE_DIED,
                        .reason = {.kind = JZX_REASON_PANIC, .code = 7, .text = "disk full"}};
    (void)jzx_reply_format(&reply, line, sizeof line);
    CHECK_STR(line, "ask (1) tag 0: callee died (panic 7: disk full) after 0.0 ms, 0 queued");
    reply.outcome = JZX_OUTCOME_REPLIED;
    memset(reply.target_name, 'n', JZX_NAME_MAX);
    reply.target_name[JZX_NAME_MAX] = '\0';
    CHECK(jzx_reply_format(&reply, line, sizeof line) > JZX_NAME_MAX);
    CHECK(strstr(line, "nnn' (1) tag 0: replied after") != NULL);
    (void)jzx_reply_format(NULL, line, sizeof line);
    CHECK_STR(line, "no ask");
}

static const jzt_test tests[] = {
    {"a_reply_is_a_message_of_kind_reply", test_a_reply_is_a_message_of_kind_reply},
    {"the_time_of_the_asker_travels_with_the_request_R13",
     test_the_time_of_the_asker_travels_with_the_request_R13},
    {"every_form_of_a_reply_arrives_and_is_released_once_R4",
     test_every_form_of_a_reply_arrives_and_is_released_once_R4},
    {"a_refused_reply_leaves_the_duty", test_a_refused_reply_leaves_the_duty},
    {"without_a_request_there_is_nothing_to_answer",
     test_without_a_request_there_is_nothing_to_answer},
    {"a_callback_runs_in_the_actor_instead_of_its_behavior",
     test_a_callback_runs_in_the_actor_instead_of_its_behavior},
    {"a_callback_that_fails_fails_the_actor", test_a_callback_that_fails_fails_the_actor},
    {"a_request_that_is_not_answered_is_forgotten_at_once",
     test_a_request_that_is_not_answered_is_forgotten_at_once},
    {"asking_oneself_without_waiting_works", test_asking_oneself_without_waiting_works},
    {"asks_and_replies_keep_their_place_among_messages_R6",
     test_asks_and_replies_keep_their_place_among_messages_R6},
    {"a_reply_needs_no_room_R8", test_a_reply_needs_no_room_R8},
    {"a_reply_needs_no_memory_R9", test_a_reply_needs_no_memory_R9},
    {"names_and_lines_for_people", test_names_and_lines_for_people},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
