/* Goal: the number of an ask that a plain thread waits for follows it through a nested ask, a
 * forward and a delegation over all dispatchers, comes back in the reply, and is what a trace shows
 * and picks by. Method: a system on a thread of its own; this thread asks, and looks through the
 * control plane. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "flight_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

enum { T_ASK = 0x50, T_PLAIN, LINKS = 4 };
#define CALLER UINT64_C(0xABCDEF0123456789)

typedef enum how { ASKS, FORWARDS, DELEGATES, ANSWERS, FAILS } how;
typedef struct hop {
    how how;
    jzx_actor_id id;
    jzx_actor_id next;
    uint64_t own;
    jzx_request kept;
    _Atomic uint64_t saw, saw_reply, saw_plain;
} hop;

static jzx_behavior_result pass(jzx_context *ctx, hop *self)
{
    jzx_send_opts other = {.tag = T_ASK, .flags = JZX_SEND_VALUE};
    jzx_ask_opts ask = {.tag = T_ASK, .flags = JZX_SEND_VALUE, .correlation = self->own};
    atomic_store(&self->saw, jzx_correlation(ctx));
    switch (self->how) {
    case ASKS:
        self->kept = jzx_request_keep(ctx);
        CHECK_OK(jzx_ask(ctx->loop, self->next, &ask, NULL));
        (void)!jzx_send_u64(ctx->loop, self->next, 0, T_PLAIN); /* one that fails may be gone */
        break;
    case FORWARDS:
        CHECK_OK(jzx_forward(ctx, self->next));
        break;
    case DELEGATES:
        CHECK_OK(jzx_delegate(ctx, JZX_REQUEST_IN_HAND, self->next, &other));
        break;
    case ANSWERS:
        CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 1, 1));
        break;
    case FAILS:
        return JZX_BEHAVIOR_FAIL;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result obey_link(jzx_context *ctx, const jzx_message *msg)
{
    hop *self = ctx->state;
    if (jzx_reply_of(ctx) != NULL) {
        atomic_store(&self->saw_reply, jzx_correlation(ctx));
        CHECK_OK(jzx_reply_u64(ctx, self->kept, 1, 1));
        return JZX_BEHAVIOR_OK;
    }
    if (msg->tag == T_ASK) {
        return pass(ctx, self);
    }
    atomic_store(&self->saw_plain, jzx_correlation(ctx) + 1); /* 1: none */
    return JZX_BEHAVIOR_OK;
}

/* A chain over dispatchers: asks, forwards, delegates, answers. */
typedef struct chain {
    stage s;
    jzx_system *system;
    jzx_sender *sender;
    pthread_t thread;
    hop links[LINKS];
} chain;

static void *run_system(void *arg)
{
    CHECK_OK(jzx_system_run(arg));
    return NULL;
}

static chain *chain_open(const char *const places[LINKS], how last)
{
    chain *c = calloc(1, sizeof *c);
    REQUIRE(c != NULL);
    jzx_dispatcher_spec desk = {.name = "desk", .kind = JZX_DISPATCHER_PINNED};
    jzx_system_config all = {.dispatchers = &desk, .dispatcher_count = 1, .pool_workers = 2};
    REQUIRE_OK(jzx_system_create(&all, &c->system));
    c->s = (stage){.loop = jzx_system_loop(c->system), .folder = "/tmp/jzx-chain-XXXXXX"};
    REQUIRE(mkdtemp(c->s.folder) != NULL);
    (void)snprintf(c->s.path, sizeof c->s.path, "%s/socket", c->s.folder);
    (void)snprintf(c->s.dump, sizeof c->s.dump, "%s/dump", c->s.folder);
    jzx_control_opts opts = {.path = c->s.path, .dump_path = c->s.dump, .name = "chain"};
    REQUIRE_OK(jzx_control_start(c->s.loop, &opts, &c->s.control));
    for (uint32_t i = LINKS; i-- > 0;) {
        static const char *const names[LINKS] = {"asks", "forwards", "delegates", "answers"};
        hop *it = &c->links[i];
        it->how = i == LINKS - 1 ? last : (how)i;
        it->next = i == LINKS - 1 ? JZX_NOBODY : c->links[i + 1].id;
        jzx_spawn_opts spawn = {
            .behavior = obey_link, .state = it, .dispatcher = places[i], .name = names[i]};
        REQUIRE_OK(jzx_spawn(c->s.loop, &spawn, &it->id));
    }
    REQUIRE_OK(jzx_system_sender(c->system, JZX_SENDER_SHARED, &c->sender));
    REQUIRE_EQ(pthread_create(&c->thread, NULL, run_system, c->system), 0);
    return c;
}

static void chain_close(chain *c)
{
    jzx_system_request_stop(c->system);
    pthread_join(c->thread, NULL);
    jzx_sender_release(c->sender);
    jzx_control_stop(c->s.control);
    CHECK_OK(jzx_system_destroy(c->system));
    CHECK_EQ(rmdir(c->s.folder), 0);
    free(c);
}

static jzx_reply ask_first(chain *c, uint64_t correlation)
{
    jzx_reply reply;
    jzx_message msg = {0};
    jzx_ask_opts ask = {
        .tag = T_ASK, .flags = JZX_SEND_VALUE, .correlation = correlation, .timeout_ms = 60000};
    if (jzx_ask_wait(c->sender, c->links[0].id, &ask, &reply, &msg) == JZX_OK) {
        jzx_reply_release(c->sender, &msg);
    }
    return reply;
}

static const char *const routes[][LINKS] = {
    {"loop", "desk", "pool", "pinned"}, {"pool", "loop", "pinned", "loop"},
    {"desk", "pool", "loop", "pool"},   {"pinned", "pinned", "desk", "pool"},
    {"pool", "pool", "pool", "pool"},
};

static void test_a_thread_gives_its_ask_a_number_that_follows_it(void)
{
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        chain *c = chain_open(routes[i], ANSWERS);
        uint64_t before = 0;
        for (int own = 0; own < 3; own++) {
            jzx_reply reply = ask_first(c, own == 1 ? CALLER : 0);
            CHECK_EQ(reply.outcome, JZX_OUTCOME_REPLIED);
            /* Without one it is the ask's own, and no other's. */
            CHECK(own == 1 ? reply.correlation == CALLER
                           : reply.correlation != 0 && reply.correlation != before);
            before = reply.correlation;
            for (size_t at = 0; at < LINKS; at++) {
                CHECK_EQ(atomic_load(&c->links[at].saw), before);
            }
            CHECK_EQ(atomic_load(&c->links[0].saw_reply), before);
        }
        REQUIRE_OK(jzx_send_async_u64(c->sender, c->links[0].id, 0, T_PLAIN));
        long end = now_ms() + PATIENCE_MS;
        while (atomic_load(&c->links[0].saw_plain) == 0 && now_ms() < end) {
            (void)poll(NULL, 0, 1);
        }
        CHECK_EQ(atomic_load(&c->links[0].saw_plain), 1);
        CHECK_EQ(atomic_load(&c->links[1].saw_plain), 1);
        chain_close(c);
    }
}

static void test_a_nested_ask_may_have_another_number_and_the_thread_gets_its_own(void)
{
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        chain *c = chain_open(routes[i], ANSWERS);
        c->links[0].own = 0x77;
        CHECK_EQ(ask_first(c, CALLER).correlation, CALLER);
        CHECK_EQ(atomic_load(&c->links[0].saw), CALLER);
        CHECK_EQ(atomic_load(&c->links[LINKS - 1].saw), 0x77);
        CHECK_EQ(atomic_load(&c->links[0].saw_reply), 0x77);
        chain_close(c);
    }
}

/* A failure far down the line: the asker there hears of it under the same number, and the thread's
 * reply has it too; also when there is nobody to ask. */
static void test_a_thread_that_gets_no_answer_is_told_the_number_too(void)
{
    chain *c = chain_open(routes[0], FAILS);
    c->links[0].next = c->links[3].id;
    jzx_reply reply = ask_first(c, CALLER);
    CHECK_EQ(reply.correlation, CALLER);
    CHECK_EQ(atomic_load(&c->links[0].saw_reply), CALLER);
    REQUIRE_OK(jzx_system_kill(c->system, c->links[0].id));
    do {
        reply = ask_first(c, CALLER);
        CHECK_EQ(reply.correlation, CALLER);
    } while (reply.err == JZX_OK);
    chain_close(c);
}

/* Which of the chain handled something under this number, as a trace with it says. */
typedef struct seen {
    uint32_t handled[LINKS];
    uint32_t replies;
    uint32_t sent;
    uint32_t others;
} seen;

static seen end_and_count(guest *g, const char *number)
{
    seen all = {0};
    char mine[64];
    (void)snprintf(mine, sizeof mine, "\"correlation\":%s", number);
    say(g, "{\"id\":8,\"op\":\"end\"}");
    for (const char *line = hear(g); strstr(line, "\"id\":8,") == NULL; line = hear(g)) {
        bool handled = strstr(line, "\"what\":\"handled\"") != NULL;
        bool sent = strstr(line, "\"what\":\"sent\"") != NULL;
        if (!handled && !sent) {
            continue;
        }
        if (strstr(line, mine) == NULL) {
            all.others++;
            continue;
        }
        all.sent += sent;
        all.replies += handled && strstr(line, "\"kind\":\"reply\"") != NULL;
        all.handled[0] += handled && strstr(line, "\"name\":\"asks\"") != NULL;
        all.handled[1] += handled && strstr(line, "\"name\":\"forwards\"") != NULL;
        all.handled[2] += handled && strstr(line, "\"name\":\"delegates\"") != NULL;
        all.handled[3] += handled && strstr(line, "\"name\":\"answers\"") != NULL;
    }
    return all;
}

static void test_a_trace_shows_it_and_picks_by_it(void)
{
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        chain *c = chain_open(routes[i], ANSWERS);
        guest picks = guest_open(&c->s);
        guest all = guest_open(&c->s);
        say(&picks, "{\"id\":7,\"op\":\"trace\",\"rate\":100000,\"sends\":true,"
                    "\"correlation\":\"abcdef0123456789\"}");
        REQUIRE(strstr(hear(&picks), "\"id\":7,\"ok\":true") != NULL);
        say(&all, "{\"id\":7,\"op\":\"trace\",\"rate\":100000}");
        REQUIRE(strstr(hear(&all), "\"id\":7,\"ok\":true") != NULL);
        (void)ask_first(c, 0); /* every dispatcher has seen the wish */
        CHECK_EQ(ask_first(c, CALLER).outcome, JZX_OUTCOME_REPLIED);
        (void)ask_first(c, 0x99);
        seen picked = end_and_count(&picks, "\"abcdef0123456789\"");
        for (size_t at = 0; at < LINKS; at++) { /* the first handles the reply too */
            CHECK_EQ(picked.handled[at], at == 0 ? 2 : 1);
        }
        CHECK_EQ(picked.replies, 1);
        CHECK(picked.sent >= 3);
        CHECK_EQ(picked.others, 0);
        seen plain = end_and_count(&all, "null"); /* T_PLAIN to the second */
        CHECK_EQ(plain.handled[0] + plain.handled[2] + plain.handled[3], 0);
        CHECK(plain.handled[1] >= 2 && plain.others >= 10);
        guest_close(&picks);
        guest_close(&all);
        chain_close(c);
    }
}

static void test_what_is_no_number_is_refused(void)
{
    static const char *const wrong[] = {"\"\"",    "\"0\"",   "\"12345678901234567\"",
                                        "\"xyz\"", "\"0x1\"", "17",
                                        "[\"1\"]", "\" 1\"",  "\"-1\""};
    chain *c = chain_open(routes[0], ANSWERS);
    guest g = guest_open(&c->s);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        say(&g, "{\"id\":7,\"op\":\"trace\",\"correlation\":%s}", wrong[i]);
        const char *line = hear(&g);
        CHECK(strstr(line, "\"ok\":false") != NULL && strstr(line, "BAD_REQUEST") != NULL);
    }
    guest_close(&g);
    chain_close(c);
}

static const jzt_test tests[] = {
    {"a_thread_gives_its_ask_a_number_that_follows_it",
     test_a_thread_gives_its_ask_a_number_that_follows_it},
    {"a_nested_ask_may_have_another_number_and_the_thread_gets_its_own",
     test_a_nested_ask_may_have_another_number_and_the_thread_gets_its_own},
    {"a_thread_that_gets_no_answer_is_told_the_number_too",
     test_a_thread_that_gets_no_answer_is_told_the_number_too},
    {"a_trace_shows_it_and_picks_by_it", test_a_trace_shows_it_and_picks_by_it},
    {"what_is_no_number_is_refused", test_what_is_no_number_is_refused},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
