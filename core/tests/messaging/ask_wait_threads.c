/* Goal: a thread that runs no actor can ask one and wait, and gets exactly one outcome; what it was
 * given it can release (R4, R9, R33). Method: a system on real threads with callees in every place,
 * threads that ask them, ThreadSanitizer. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "ask_wait_kit.h"

static void test_every_form_of_a_reply_in_every_place_R4(void)
{
    world *w = world_open();
    for (size_t place = 0; place < PLACES; place++) {
        desk d;
        puppet *b = puppet_up(callee_new(w, place, &d));
        question q = {.w = w, .to = ID_OF(b), .opts = question_of(Q_ANSWER, 41)};
        ask_and_step(&q);
        CHECK_OK(q.err);
        CHECK_EQ(q.reply.outcome, JZX_OUTCOME_REPLIED);
        CHECK_EQ(q.reply.callee, q.to);
        CHECK_EQ(q.msg.u64, 42);
        CHECK_EQ(q.msg.kind, JZX_KIND_REPLY);
        CHECK_EQ(q.msg.sender, q.to);
        jzx_reply_release(w->sender, &q.msg); /* nothing to do */
        static const uint64_t lengths[] = {0, 1, 10, 64, 65, 1000};
        for (size_t i = 0; i < 2 * COUNT_OF(lengths); i++) {
            q.opts = question_of(Q_COPY, lengths[i / 2]);
            q.no_message = i % 2 != 0;
            ask_and_step(&q);
            CHECK_OK(q.err);
            if (!q.no_message) {
                CHECK_EQ(q.msg.len, lengths[i / 2]);
                CHECK(q.msg.len < 10 || memcmp(q.msg.data, "abcdefghij", 10) == 0);
                jzx_reply_release(w->sender, &q.msg);
                CHECK(q.msg.data == NULL && q.msg.len == 0);
                jzx_reply_release(w->sender, &q.msg); /* twice is harmless */
            }
        }
        for (int i = 0; i < 2; i++) {
            q.opts = question_of(Q_DATA, 5);
            q.no_message = i != 0;
            ask_and_step(&q);
            CHECK_EQ(atomic_load(&blocks), i == 0 ? 1 : 0);
            if (i == 0) {
                CHECK_EQ(*(uint64_t *)q.msg.data, 5);
                jzx_reply_release(w->sender, &q.msg);
                CHECK_EQ(atomic_load(&blocks), 0);
            }
        }
        puppet_end(b);
    }
    jzx_reply_release(w->sender, NULL);
    jzx_reply_release(NULL, NULL);
    world_close(w);
}

static void test_every_outcome_in_every_place(void)
{
    static const struct {
        uint32_t tag;
        jzx_outcome outcome;
        jzx_err err;
        uint32_t reason;
    } cases[] = {
        {Q_FORGET, JZX_OUTCOME_FORGOTTEN, JZX_ERR_AGAIN, JZX_REASON_NORMAL},
        {Q_KEEP, JZX_OUTCOME_TIMED_OUT, JZX_ERR_TIMED_OUT, JZX_REASON_NORMAL},
        {Q_FAIL, JZX_OUTCOME_CALLEE_DIED, JZX_ERR_NO_SUCH_ACTOR, JZX_REASON_FAILED},
        {Q_STOP, JZX_OUTCOME_CALLEE_DIED, JZX_ERR_NO_SUCH_ACTOR, JZX_REASON_NORMAL},
    };
    world *w = world_open();
    for (size_t place = 0; place < PLACES; place++) {
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            desk d;
            puppet *b = puppet_up(callee_new(w, place, &d));
            question q = {.w = w, .to = ID_OF(b), .opts = question_of(cases[i].tag, 0)};
            q.opts.timeout_ms = cases[i].tag == Q_KEEP ? 20 : 0;
            ask_and_step(&q);
            if (q.reply.outcome != JZX_OUTCOME_EXPIRED) { /* that slow a machine */
                CHECK_STR(jzx_outcome_name(q.reply.outcome), jzx_outcome_name(cases[i].outcome));
            }
            CHECK_EQ(q.err, cases[i].err);
            CHECK_EQ(q.reply.reason.kind, cases[i].reason);
            CHECK_EQ(q.reply.callee, q.to);
            CHECK(cases[i].tag != Q_KEEP || q.reply.age_ns >= 20 * MS);
            if (cases[i].tag == Q_FAIL) {
                CHECK_STR(q.reply.reason.text, "as told");
            }
            puppet_end(b);
            ask_and_step(&q); /* now it is gone */
            CHECK_EQ(q.err, JZX_ERR_NO_SUCH_ACTOR);
            CHECK_EQ(q.reply.outcome, JZX_OUTCOME_NO_SUCH_ACTOR);
        }
    }
    world_close(w);
}

/* The child restarts. */
static void spawn_child(jzx_context *ctx, puppet *self, void *arg)
{
    static const jzx_supervisor_spec policy = {.intensity = 1000};
    (void)self;
    CHECK_OK(jzx_set_child_policy(ctx, &policy));
    CHECK_OK(puppet_spawn_at(ctx->loop, arg));
}

static void test_a_callee_that_restarts_says_so_R18(void)
{
    world *w = world_open();
    for (size_t place = 0; place < PLACES; place++) {
        desk d;
        puppet *b = callee_new(w, place, &d);
        puppet *parent = puppet_up(puppet_at(w, "parent", "loop"));
        puppet_call(parent, spawn_child, b);
        WAIT(w, puppet_is_up(b));
        question q = {.w = w, .to = ID_OF(b), .opts = question_of(Q_FAIL, 0)};
        ask_and_step(&q);
        CHECK_EQ(q.err, JZX_ERR_AGAIN);
        CHECK_EQ(q.reply.outcome, JZX_OUTCOME_CALLEE_RESTARTED);
        CHECK_EQ(q.reply.reason.code, 7);
        q.opts = question_of(Q_ANSWER, 1);
        ask_and_step(&q);
        CHECK_OK(q.err);
        puppet_end(parent);
    }
    world_close(w);
}

/* It stands still, with work before the question. */
static void test_time_is_up_while_the_question_waits_and_the_depth_is_told(void)
{
    world *w = world_open();
    for (size_t place = AT_PINNED; place < PLACES; place++) {
        desk d;
        puppet *b = puppet_up(callee_new(w, place, &d));
        puppet_hold(b);
        for (int i = 0; i < 3; i++) {
            REQUIRE_OK(jzx_send_async_u64(w->sender, ID_OF(b), 0, 0));
        }
        question q = {.w = w, .to = ID_OF(b), .opts = question_of(Q_ANSWER, 0)};
        q.opts.timeout_ms = 20;
        ask_and_step(&q);
        CHECK_EQ(q.err, JZX_ERR_TIMED_OUT);
        CHECK_EQ(q.reply.outcome, JZX_OUTCOME_TIMED_OUT);
        CHECK_EQ(q.reply.queue_depth, 4);
        puppet_release(b);
        WAIT(w, jzx_mailbox_depth(w->loop, ID_OF(b)) == 0);
        puppet_end(b);
    }
    jzx_counters c = world_counters(w);
    CHECK_EQ(c.dead_by[JZX_DEAD_EXPIRED] + c.dead_by[JZX_DEAD_CANCELLED], PLACES - 1);
    CHECK_EQ(c.replies, 0);
    world_close(w);
}

static void test_a_full_mailbox_is_told_at_once_R11(void)
{
    world *w = world_open();
    for (size_t place = AT_PINNED; place < PLACES; place++) {
        desk d;
        puppet *b = callee_new(w, place, &d);
        b->opts.mailbox_cap = 2;
        puppet_up(b);
        puppet_hold(b);
        for (int i = 0; i < 2; i++) {
            REQUIRE_OK(jzx_send_async_u64(w->sender, ID_OF(b), 0, 0));
        }
        jzx_send_opts block = block_opts(1);
        question q = {.w = w, .to = ID_OF(b)};
        q.opts = (jzx_ask_opts){.data = block.data, .drop = block_free, .tag = Q_ANSWER};
        ask_and_step(&q);
        CHECK_EQ(q.err, JZX_ERR_MAILBOX_FULL);
        CHECK_EQ(q.reply.outcome, JZX_OUTCOME_MAILBOX_FULL);
        CHECK_EQ(q.reply.queue_depth, 2);
        CHECK_EQ(atomic_load(&blocks), 1); /* it is still ours */
        q.opts.flags = JZX_SEND_CONSUME;
        ask_and_step(&q);
        CHECK_EQ(atomic_load(&blocks), 0);
        puppet_release(b);
        puppet_end(b);
    }
    world_close(w);
}

static void test_bad_input_is_refused(void)
{
    world *w = world_open();
    desk d;
    puppet *b = puppet_up(callee_new(w, AT_PINNED, &d));
    jzx_ask_opts opts = question_of(Q_ANSWER, 1);
    jzx_reply reply = {.outcome = 99};
    jzx_message msg = {.tag = 99};
    CHECK_EQ(jzx_ask_wait(NULL, ID_OF(b), &opts, &reply, &msg), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_ask_wait_sized(w->sender, ID_OF(b), NULL, 1, &reply, sizeof reply, &msg),
             JZX_ERR_INVALID_ARG);
    jzx_ask_opts newer[2] = {opts, opts};
    CHECK_EQ(
        jzx_ask_wait_sized(w->sender, ID_OF(b), newer, sizeof newer, &reply, sizeof reply, &msg),
        JZX_ERR_NEWER_STRUCT);
    CHECK_EQ(reply.outcome, 99);
    opts.tag = JZX_TAG_SYSTEM_FIRST;
    CHECK_EQ(jzx_ask_wait(w->sender, ID_OF(b), &opts, &reply, &msg), JZX_ERR_RESERVED_TAG);
    CHECK_EQ(reply.outcome, JZX_OUTCOME_REFUSED);
    CHECK_EQ(reply.err, JZX_ERR_RESERVED_TAG);
    opts.tag = Q_ANSWER;
    opts.reserved = 1;
    CHECK_EQ(jzx_ask_wait(w->sender, ID_OF(b), &opts, &reply, &msg), JZX_ERR_INVALID_ARG);
    opts.reserved = 0;
    CHECK_EQ(jzx_ask_wait(w->sender, JZX_NOBODY, &opts, &reply, &msg), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_ask_wait(w->sender, ID_OF(b) ^ 0x7F000000, &opts, &reply, &msg),
             JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(msg.tag, 99);
    CHECK_OK(jzx_ask_wait(w->sender, ID_OF(b), &opts, NULL, NULL)); /* not interested in either */
    /* An older program's reply is shorter. */
    struct {
        jzx_ask_ref ask;
        uint64_t after;
    } small = {0, 77};
    CHECK_OK(jzx_ask_wait_sized(w->sender, ID_OF(b), &opts, sizeof opts, (jzx_reply *)&small,
                                sizeof small.ask, NULL));
    CHECK(small.ask != 0);
    CHECK_EQ(small.after, 77);
    world_close(w);
}

/* Waiting inside an actor would wait for itself. */
static void wait_inside(jzx_context *ctx, puppet *self, void *arg)
{
    jzx_ask_opts opts = question_of(Q_ANSWER, 1);
    opts.timeout_ms = 1;
    const jzx_actor_id *other = arg;
    CHECK_EQ(jzx_ask_wait(self->w->sender, ctx->self, &opts, NULL, NULL), JZX_ERR_DEADLOCK);
    CHECK_EQ(jzx_ask_wait(self->w->sender, *other, &opts, NULL, NULL), JZX_ERR_DEADLOCK);
}

static void wait_in_hook(jzx_context *ctx, puppet *self, uint32_t what)
{
    (void)what;
    wait_inside(ctx, self, self->arg);
}

static void test_waiting_inside_an_actor_is_refused(void)
{
    world *w = world_open();
    desk d;
    jzx_actor_id other = ID_OF(puppet_up(callee_new(w, AT_DESK, &d)));
    for (size_t place = 0; place < PLACES; place++) {
        puppet *a = puppet_at(w, "a", places[place]);
        a->during = wait_in_hook;
        a->arg = &other;
        puppet_up(a);
        puppet_call(a, wait_inside, &other);
        puppet_end(a);
    }
    world_close(w);
}

static const jzt_test tests[] = {
    {"every_form_of_a_reply_in_every_place_R4", test_every_form_of_a_reply_in_every_place_R4},
    {"every_outcome_in_every_place", test_every_outcome_in_every_place},
    {"a_callee_that_restarts_says_so_R18", test_a_callee_that_restarts_says_so_R18},
    {"time_is_up_while_the_question_waits_and_the_depth_is_told",
     test_time_is_up_while_the_question_waits_and_the_depth_is_told},
    {"a_full_mailbox_is_told_at_once_R11", test_a_full_mailbox_is_told_at_once_R11},
    {"bad_input_is_refused", test_bad_input_is_refused},
    {"waiting_inside_an_actor_is_refused", test_waiting_inside_an_actor_is_refused},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
