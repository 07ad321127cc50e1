/* Goal: one number follows a request through asks, forwards, delegations and replies, also between
 * dispatchers and from plain threads, and plain messages have none. Method: simulation of a loop
 * and of a system; a chain of actors that write down the number they see. */
#include "puppet.h"

enum { T_ASK = 0x50, T_PLAIN, T_GO };

/* One of a chain: does with a request what `how` says. */
typedef enum how { ANSWERS, ASKS, FORWARDS, DELEGATES, KEEPS, FAILS } how;
typedef struct link {
    how how;
    jzx_actor_id next;
    uint64_t own; /* jzx_ask_opts.correlation of its asks */
    uint64_t saw, saw_plain, saw_reply;
    jzx_reply reply;
    jzx_request kept;
    jzx_ask_ref ref;
} link;

static void ask_next(jzx_context *ctx, link *self)
{
    jzx_ask_opts ask = {.tag = T_ASK, .flags = JZX_SEND_VALUE, .correlation = self->own};
    REQUIRE_OK(jzx_ask(ctx->loop, self->next, &ask, &self->ref));
}

static void handle(jzx_context *ctx, link *self)
{
    jzx_send_opts other = {.tag = T_ASK, .flags = JZX_SEND_VALUE};
    self->saw = jzx_correlation(ctx);
    switch (self->how) {
    case ANSWERS:
        CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 1, 1));
        CHECK_EQ(jzx_correlation(ctx), self->saw); /* it is still in hand */
        break;
    case ASKS:
    case KEEPS:
        self->kept = jzx_request_keep(ctx);
        CHECK_EQ(jzx_request_correlation(ctx, self->kept), self->saw);
        if (self->how == ASKS) {
            ask_next(ctx, self);
        }
        break;
    case FORWARDS:
        CHECK_OK(jzx_forward(ctx, self->next));
        break;
    case DELEGATES:
        CHECK_OK(jzx_delegate(ctx, JZX_REQUEST_IN_HAND, self->next, &other));
        break;
    case FAILS:
        jzx_panic(ctx, 1, NULL);
    }
}

static jzx_behavior_result work(jzx_context *ctx, const jzx_message *msg)
{
    link *self = ctx->state;
    const jzx_reply *reply = jzx_reply_of(ctx);
    if (reply != NULL) {
        self->reply = *reply;
        self->saw_reply = jzx_correlation(ctx);
        if (self->kept != 0) {
            CHECK_OK(jzx_reply_u64(ctx, self->kept, 1, 1));
            self->kept = 0;
        }
    } else if (msg->tag == T_ASK) {
        handle(ctx, self);
    } else if (msg->tag == T_GO) {
        CHECK_EQ(jzx_correlation(ctx), 0);
        ask_next(ctx, self);
    } else {
        self->saw_plain = jzx_correlation(ctx) + 1; /* 1: none */
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_actor_id put(jzx_loop *loop, link *it, const char *where)
{
    jzx_spawn_opts opts = {.behavior = work, .state = it, .dispatcher = where};
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn(loop, &opts, &id));
    return id;
}

static void test_a_correlation_follows_asks_forwards_and_replies(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        rig r = rig_open(NULL);
        link last = {.how = ANSWERS};
        link third = {.how = DELEGATES, .next = put(r.loop, &last, NULL)};
        link second = {.how = FORWARDS, .next = put(r.loop, &third, NULL)};
        link first = {.how = ASKS, .next = put(r.loop, &second, NULL)};
        link asker = {.next = put(r.loop, &first, NULL), .own = i == 0 ? 0 : 0xABCDEF0123456789};
        jzx_actor_id id = put(r.loop, &asker, NULL);
        REQUIRE_OK(jzx_send_u64(r.loop, id, 0, T_GO));
        REQUIRE_OK(jzx_send_u64(r.loop, id, 0, T_PLAIN));
        REQUIRE_OK(jzx_send_u64(r.loop, asker.next, 0, T_PLAIN));
        rig_idle(&r);
        uint64_t want = i == 0 ? asker.ref : asker.own;
        CHECK_EQ(asker.reply.outcome, JZX_OUTCOME_REPLIED);
        CHECK_EQ(asker.reply.correlation, want);
        CHECK_EQ(asker.saw_reply, want);
        CHECK_EQ(first.saw, want);
        CHECK_EQ(first.saw_reply, want);
        CHECK_EQ(second.saw, want);
        CHECK_EQ(third.saw, want);
        CHECK_EQ(last.saw, want);
        CHECK(first.ref != asker.ref);
        CHECK_EQ(asker.saw_plain, 1);
        CHECK_EQ(first.saw_plain, 1);
        /* What comes after an ask has nothing of it. */
        REQUIRE_OK(jzx_send_u64(r.loop, second.next, 0, T_PLAIN));
        rig_idle(&r);
        CHECK_EQ(third.saw_plain, 1);
        rig_close(&r);
    }
}

static void cancel_it(jzx_context *ctx, link *self)
{
    jzx_ask_ref ref = 0;
    jzx_ask_opts ask = {.tag = T_ASK, .flags = JZX_SEND_VALUE};
    REQUIRE_OK(jzx_ask(ctx->loop, self->next, &ask, &ref));
    REQUIRE_OK(jzx_ask_cancel(ctx->loop, ref));
    REQUIRE_OK(jzx_send_u64(ctx->loop, self->next, 0, T_PLAIN));
}
static jzx_behavior_result ask_and_cancel(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    cancel_it(ctx, ctx->state);
    return JZX_BEHAVIOR_OK;
}

static void test_a_message_behind_a_request_that_was_not_handed_over_has_none(void)
{
    rig r = rig_open(NULL);
    link callee = {.how = ANSWERS};
    link asker = {.next = put(r.loop, &callee, NULL)};
    jzx_spawn_opts opts = {.behavior = ask_and_cancel, .state = &asker};
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn(r.loop, &opts, &id));
    REQUIRE_OK(jzx_send_u64(r.loop, id, 0, T_GO));
    rig_idle(&r);
    CHECK_EQ(callee.saw, 0);
    CHECK_EQ(callee.saw_plain, 1);
    rig_close(&r);
}

static jzx_failed_on failed;
static void see_failure(void *ctx, const jzx_failure_event *event)
{
    (void)ctx;
    failed = event->failed_on;
}

static void test_a_failure_says_which_request_it_was(void)
{
    static const jzx_observer observer = {.on_failure = see_failure};
    rig r = rig_open(NULL);
    REQUIRE_OK(jzx_loop_set_observer(r.loop, &observer, NULL));
    link callee = {.how = FAILS};
    link asker = {.next = put(r.loop, &callee, NULL), .own = 77};
    jzx_actor_id id = put(r.loop, &asker, NULL);
    REQUIRE_OK(jzx_send_u64(r.loop, id, 0, T_GO));
    rig_idle(&r);
    CHECK_EQ(failed.there, 1);
    CHECK_EQ(failed.correlation, 77);
    CHECK_EQ(failed.sender, id);
    CHECK_EQ(failed.tag, T_ASK);
    CHECK_EQ(asker.reply.outcome, JZX_OUTCOME_CALLEE_DIED);
    CHECK_EQ(asker.reply.correlation, 77);
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_FAILED_ON], 1);
    rig_close(&r);
}

static void test_it_crosses_dispatchers(void)
{
    static const char *const places[] = {"loop", "pool", "desk", "pool", "loop"};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        jzx_sim *sim = NULL;
        jzx_system *system = NULL;
        REQUIRE_OK(jzx_sim_create(&(jzx_sim_opts){.seed = seed}, &sim));
        jzx_config config = {.env = jzx_sim_env(sim)};
        jzx_dispatcher_spec desk = {.name = "desk", .kind = JZX_DISPATCHER_PINNED};
        jzx_system_config all = {
            .loop = &config, .dispatchers = &desk, .dispatcher_count = 1, .pool_workers = 3};
        REQUIRE_OK(jzx_system_create(&all, &system));
        jzx_loop *loop = jzx_system_loop(system);
        link chain[5] = {{.own = 0xBEEF}, {.how = ASKS}, {.how = FORWARDS}, {.how = DELEGATES}};
        for (size_t i = 5; i-- > 0;) {
            jzx_actor_id id = put(loop, &chain[i], places[i]);
            if (i > 0) {
                chain[i - 1].next = id;
            } else {
                REQUIRE_OK(jzx_send_u64(loop, id, 0, T_GO));
            }
        }
        REQUIRE_OK(jzx_system_run_until_idle(system, 1000));
        for (size_t i = 1; i < 5; i++) {
            CHECK_EQ(chain[i].saw, 0xBEEF);
        }
        CHECK_EQ(chain[1].saw_reply, 0xBEEF);
        CHECK_EQ(chain[0].saw_reply, 0xBEEF);
        REQUIRE_OK(jzx_system_destroy(system));
        jzx_sim_destroy(sim);
    }
}

static const jzt_test tests[] = {
    {"a_correlation_follows_asks_forwards_and_replies",
     test_a_correlation_follows_asks_forwards_and_replies},
    {"a_message_behind_a_request_that_was_not_handed_over_has_none",
     test_a_message_behind_a_request_that_was_not_handed_over_has_none},
    {"a_failure_says_which_request_it_was", test_a_failure_says_which_request_it_was},
    {"it_crosses_dispatchers", test_it_crosses_dispatchers},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
