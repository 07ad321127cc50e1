/* Goal: the histograms of turns, waits and asks tell the times that a program really has, whoever
 * sends and in whatever rhythm. Method: programs with known times. A busy machine makes times
 * longer, never shorter: so only what is at least so long is counted. */
/* Loop and threads are both in it; not on: pinned pool */
#define _GNU_SOURCE
#include "look_fixture.h"

#include <jzx/ask.h>

enum { WORK = 1, ANSWER, MS = 1000000 };

static void sleep_ms(long ms)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = ms * MS}, NULL);
}

typedef struct one {
    jzx_actor_id id;
    jzx_actor_id peer;
    long takes_ms;      /* in its behavior */
    uint32_t sends;     /* to its peer, before that; 0: asks it, if there is one */
    uint32_t answer_ms; /* questions are answered after so long */
    struct one *reader; /* the peer, if bursts wait for it */
    uint32_t sent;
    _Atomic uint32_t handled;
} one;

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    one *self = ctx->state;
    if (jzx_is_ask(ctx)) {
        jzx_timer_opts later = {.delay_ms = self->answer_ms,
                                .tag = ANSWER,
                                .flags = JZX_TIMER_VALUE,
                                .u64 = jzx_request_keep(ctx)};
        CHECK_OK(jzx_timer_start(ctx->loop, ctx->self, &later, NULL));
        return JZX_BEHAVIOR_OK;
    }
    if (msg->tag == ANSWER) {
        CHECK_OK(jzx_reply_u64(ctx, msg->u64, 1, 0));
        return JZX_BEHAVIOR_OK;
    }
    atomic_fetch_add(&self->handled, 1);
    /* A burst comes when the last one is over, however slow the machine is. */
    bool due = self->reader == NULL || atomic_load(&self->reader->handled) == self->sent;
    for (uint32_t i = 0; due && i < self->sends; i++, self->sent++) {
        CHECK_OK(jzx_send_u64(ctx->loop, self->peer, 0, WORK));
    }
    if (self->sends == 0 && self->peer != JZX_NOBODY && msg->kind != JZX_KIND_REPLY) {
        jzx_ask_opts question = {.tag = WORK, .flags = JZX_SEND_VALUE, .timeout_ms = 60000};
        CHECK_OK(jzx_ask(ctx->loop, self->peer, &question, NULL));
    }
    if (self->takes_ms > 0) {
        sleep_ms(self->takes_ms);
    }
    return JZX_BEHAVIOR_OK;
}

static void spawn(program *p, one *self)
{
    jzx_spawn_opts opts = {.behavior = behave, .state = self};
    REQUIRE_OK(jzx_spawn(p->loop, &opts, &self->id));
}

/* A message for it every so often. */
static void wind_up(program *p, const one *self, uint64_t period_ms)
{
    jzx_timer_opts often = {.delay_ms = 1, .period_ms = period_ms, .tag = WORK};
    REQUIRE_OK(jzx_timer_start(p->loop, self->id, &often, NULL));
}

/* A sample of the text in the last answer; -1: it is not there. */
static double value(const program *p, const char *sample)
{
    char key[128];
    (void)snprintf(key, sizeof key, "\\n%s ", sample);
    const char *at = strstr(p->answer, key);
    return at == NULL ? -1 : strtod(at + strlen(key), NULL);
}

static double count(const program *p, const char *name)
{
    char key[64];
    (void)snprintf(key, sizeof key, "%s_count", name);
    return value(p, key);
}

/* How many of them took longer than a bound of the buckets. */
static double longer(const program *p, const char *name, const char *bound)
{
    char key[96];
    (void)snprintf(key, sizeof key, "%s_bucket{le=\\\"%s\\\"}", name, bound);
    CHECK(value(p, key) >= 0);
    return count(p, name) - value(p, key);
}

#define METRICS "\"op\":\"metrics\"}"

/* Ten at once for one that takes 2 ms each: they wait 0, 2, 4, ... 18 ms. */
static void test_of_a_burst_any_message_is_timed(void)
{
    program *p = program_open();
    one slow = {.takes_ms = 2}, sender = {.sends = 10};
    spawn(p, &slow);
    spawn(p, &sender);
    sender.peer = slow.id;
    sender.reader = &slow;
    wind_up(p, &sender, 30);
    program_run(p);
    UNTIL(count(p, "jzx_queue_wait_seconds") >= 12, p, METRICS);
    double all = count(p, "jzx_queue_wait_seconds");
    CHECK(longer(p, "jzx_queue_wait_seconds", "0.004194304") >= all / 3);
    CHECK(value(p, "jzx_queue_wait_seconds_sum") >= all * 0.004);
    program_close(p);
}

/* It lies on the way while the loop is busy, and then in a mailbox. */
static void test_a_message_of_another_thread_waits_since_it_was_sent(void)
{
    program *p = program_open();
    one slow = {.takes_ms = 20}, waiter = {0};
    spawn(p, &slow);
    spawn(p, &waiter);
    program_run(p);
    (void)ask(p, METRICS);
    for (uint64_t end = now_ms() + 20000; count(p, "jzx_queue_wait_seconds") < 12 && now_ms() < end;
         (void)ask(p, METRICS)) {
        REQUIRE_OK(jzx_send_async_u64(p->sender, slow.id, 0, WORK));
        nap();
        for (int i = 0; i < 3; i++) {
            REQUIRE_OK(jzx_send_async_u64(p->sender, waiter.id, 0, WORK));
        }
        sleep_ms(25);
    }
    double all = count(p, "jzx_queue_wait_seconds");
    CHECK(all >= 12);
    CHECK(longer(p, "jzx_queue_wait_seconds", "0.008388608") >= all / 4);
    program_close(p);
}

/* A long one and a short one, always in the same order. Of 60 timed ones, fewer than 15 of a
 * kind would be chance once in 10,000 runs. */
static void test_turns_of_every_kind_are_timed(void)
{
    program *p = program_open();
    one quick = {0}, slow = {.takes_ms = 5, .sends = 1};
    spawn(p, &quick);
    spawn(p, &slow);
    slow.peer = quick.id;
    wind_up(p, &slow, 10);
    program_run(p);
    UNTIL(count(p, "jzx_turn_seconds") >= 60, p, METRICS);
    double all = count(p, "jzx_turn_seconds");
    CHECK(longer(p, "jzx_turn_seconds", "0.004194304") >= all / 4);
    CHECK(longer(p, "jzx_turn_seconds", "0.004194304") <= all * 3 / 4);
    program_close(p);
}

static void test_asks_are_timed_from_question_to_answer(void)
{
    program *p = program_open();
    one callee = {.answer_ms = 50}, asker = {0};
    spawn(p, &callee);
    spawn(p, &asker);
    asker.peer = callee.id;
    program_run(p);
    (void)ask(p, METRICS);
    for (int i = 0; i < 10; i++) {
        REQUIRE_OK(jzx_send_async_u64(p->sender, asker.id, 0, WORK));
    }
    UNTIL(count(p, "jzx_ask_seconds") == 10, p, METRICS);
    CHECK_EQ(longer(p, "jzx_ask_seconds", "0.033554432"), 10);
    CHECK(value(p, "jzx_ask_seconds_sum") >= 0.5);
    program_close(p);
}

static const jzt_test tests[] = {
    {"of_a_burst_any_message_is_timed", test_of_a_burst_any_message_is_timed},
    {"a_message_of_another_thread_waits_since_it_was_sent",
     test_a_message_of_another_thread_waits_since_it_was_sent},
    {"turns_of_every_kind_are_timed", test_turns_of_every_kind_are_timed},
    {"asks_are_timed_from_question_to_answer", test_asks_are_timed_from_question_to_answer},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
