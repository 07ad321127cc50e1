/* Goal: `stuck` names who does not get on: who does not return from its code, with actor, message,
 * time and place, wherever it runs; whose mailbox is full; who waits for an answer, and in a
 * circle. Who gets on is not named. Method: behaviors that stay until they are released, on every
 * kind of dispatcher, and a client of the socket that asks until it is told. not on: pinned pool */
#define _GNU_SOURCE
#include "look_fixture.h"

#include <signal.h>

enum { STAY = 7, SLEEP, HIDE, SERVE, PING, KEEP, ASK_PEER, ASK_MUCH, PASS, STOP, LIMIT_MS = 30 };
enum { MUCH = 40000 };

/* An actor that stays in its code until it is released. */
typedef struct actor {
    jzx_actor_id id;
    jzx_actor_id peer;
    jzx_actor_id next; /* whom requests are passed on to */
    program *p;
    atomic_bool released;
    atomic_bool entered;
    atomic_int interrupted;
    atomic_ulong handled;
    bool in_init;
    bool in_signal;
} actor;

static PLACE void stay(actor *self)
{
    atomic_store(&self->entered, true);
    while (!atomic_load(&self->released)) {
    }
}

/* Sleeps without end; what interrupts it says EINTR. */
static PLACE void stay_asleep(actor *self)
{
    atomic_store(&self->entered, true);
    while (!atomic_load(&self->released)) {
        if (nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL) != 0 && errno == EINTR) {
            atomic_fetch_add(&self->interrupted, 1);
        }
    }
}

static void hide(actor *self)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    stay(self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    actor *self = ctx->state;
    atomic_fetch_add(&self->handled, 1);
    switch (msg->tag) {
    case STAY:
        stay(self);
        break;
    case SLEEP:
        stay_asleep(self);
        break;
    case HIDE:
        hide(self);
        break;
    case SERVE:
        program_serve(self->p);
        stay(self);
        break;
    case PING:
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, PING));
        break;
    case KEEP:
        CHECK(jzx_request_keep(ctx) != 0);
        break;
    case STOP:
        return JZX_BEHAVIOR_STOP;
    case PASS:
        CHECK(self->next == JZX_NOBODY || jzx_forward(ctx, self->next) == JZX_OK);
        break;
    case ASK_MUCH:
        for (int i = 0; i < MUCH; i++) {
            CHECK_OK(jzx_ask(ctx->loop, self->peer,
                             &(jzx_ask_opts){.tag = KEEP,
                                             .flags = JZX_SEND_VALUE,
                                             .timeout_ms = JZX_ASK_NO_TIMEOUT},
                             NULL));
        }
        break;
    case ASK_PEER:
        CHECK_OK(jzx_ask(ctx->loop, self->peer,
                         &(jzx_ask_opts){.tag = self->next != 0 ? PASS : KEEP,
                                         .flags = JZX_SEND_VALUE,
                                         .timeout_ms = 60000},
                         NULL));
        break;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    actor *self = arg;
    ctx->state = arg;
    if (self->in_init) {
        stay(self);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result hear(jzx_context *ctx, const jzx_signal *signal)
{
    actor *self = ctx->state;
    if (self->in_signal && signal->kind == JZX_SIGNAL_PRE_STOP) {
        stay(self);
    }
    return JZX_BEHAVIOR_OK;
}

static void spawn_on(program *p, actor *self, const char *name, const char *dispatcher,
                     uint32_t cap)
{
    self->p = p;
    REQUIRE_OK(jzx_spawn(p->loop,
                         &(jzx_spawn_opts){.behavior = behave,
                                           .init = begin,
                                           .on_signal = hear,
                                           .state = self,
                                           .name = name,
                                           .dispatcher = dispatcher,
                                           .mailbox_cap = cap},
                         &self->id));
}

/* From this thread, which runs nothing. */
static void tell(program *p, jzx_actor_id id, uint32_t tag)
{
    REQUIRE_OK(jzx_send_async_u64(p->sender, id, 0, tag));
}

static void release(actor *self)
{
    atomic_store(&self->released, true);
}

/* Is named as stuck in this message, there, for about that long. */
static void check_named(program *p, const actor *self, const char *dispatcher, long tag)
{
    const char *function = tag == SLEEP ? "stay_asleep" : "stay";
    /* On a machine with much to do its thread may take longer to answer than it is waited for. */
    UNTIL(count_at(p->answer, "running") == 1 &&
              strcmp(text_at(p->answer, "running.0.answered"), "true") == 0,
          p, "\"op\":\"stuck\",\"limit_ms\":%d}", LIMIT_MS);
    CHECK_EQ(actor_at(p->answer, "running.0.actor"), self->id);
    CHECK_STR(text_at(p->answer, "running.0.name"), "culprit");
    CHECK_STR(text_at(p->answer, "running.0.dispatcher"), dispatcher);
    CHECK(number_at(p->answer, "running.0.for_ms") >= LIMIT_MS);
    CHECK(number_at(p->answer, "running.0.for_ms") < 20000);
    CHECK_EQ(number_at(p->answer, "running.0.tag"), tag);
    CHECK_STR(text_at(p->answer, "running.0.hook"), tag < 0 ? "true" : "false");
    CHECK_STR(text_at(p->answer, "running.0.kind"), tag < 0 ? "null" : "user");
    CHECK(has_place(p->answer, "running.0.frames"));
    CHECK(has_function(p->answer, "running.0.frames", function));
}

static void check_on(const char *dispatcher, const char *name)
{
    program *p = program_open();
    actor self = {0};
    spawn_on(p, &self, "culprit", dispatcher, 0);
    program_run(p);
    UNTIL(count_at(p->answer, "running") == 0, p, "\"op\":\"stuck\",\"limit_ms\":%d}", LIMIT_MS);
    tell(p, self.id, STAY);
    check_named(p, &self, name, STAY);
    release(&self);
    UNTIL(count_at(p->answer, "running") == 0, p, "\"op\":\"stuck\",\"limit_ms\":%d}", LIMIT_MS);
    program_close(p);
}

static void test_who_does_not_return_is_named_with_message_time_and_place(void)
{
    check_on(NULL, "loop");
}

static void test_also_on_a_thread_of_its_own(void)
{
    check_on("pinned", "pinned");
}

static void test_also_in_a_pool(void)
{
    check_on("pool", "pool");
}

/* One hang has one beginning, whoever is asked, and every age in an answer is of its `now_ns`. */
static void test_one_hang_has_one_age_everywhere(void)
{
    program *p = program_open();
    actor self = {0};
    spawn_on(p, &self, "culprit", "pinned", 0);
    program_run(p);
    tell(p, self.id, STAY);
    UNTIL(count_at(p->answer, "running") == 1, p, "\"op\":\"stuck\",\"limit_ms\":%d}", LIMIT_MS);
    long since = number_at(p->answer, "running.0.since_ns");
    CHECK(since > 0);
    CHECK_EQ(number_at(p->answer, "running.0.for_ms"),
             (number_at(p->answer, "now_ns") - since) / 1000000);
    (void)ask(p, "\"op\":\"actor\",\"actor\":\"culprit\"}");
    CHECK_EQ(number_at(p->answer, "doing.since_ns"), since);
    CHECK_EQ(number_at(p->answer, "doing.for_ms"),
             (number_at(p->answer, "now_ns") - since) / 1000000);
    (void)ask(p, "\"op\":\"program\"}");
    long place = -1;
    for (size_t i = 0; i < count_at(p->answer, "dispatchers"); i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "dispatchers.%zu.workers.0.actor", i);
        place = actor_at(p->answer, path) == self.id ? (long)i : place;
    }
    REQUIRE(place >= 0);
    char path[64];
    (void)snprintf(path, sizeof path, "dispatchers.%ld.workers.0.since_ns", place);
    CHECK_EQ(number_at(p->answer, path), since);
    (void)snprintf(path, sizeof path, "dispatchers.%ld.workers.0.for_ms", place);
    CHECK_EQ(number_at(p->answer, path), (number_at(p->answer, "now_ns") - since) / 1000000);
    release(&self);
    program_close(p);
}

static void test_two_of_a_pool_are_both_named(void)
{
    program *p = program_open();
    actor one = {0}, two = {0};
    spawn_on(p, &one, "one", "pool", 0);
    spawn_on(p, &two, "two", "pool", 0);
    program_run(p);
    tell(p, one.id, STAY);
    tell(p, two.id, STAY);
    UNTIL(count_at(p->answer, "running") == 2 && has_place(p->answer, "running.0.frames") &&
              has_place(p->answer, "running.1.frames"),
          p, "\"op\":\"stuck\",\"limit_ms\":%d}", LIMIT_MS);
    CHECK(number_at(p->answer, "running.0.worker") != number_at(p->answer, "running.1.worker"));
    CHECK(actor_at(p->answer, "running.0.actor") != actor_at(p->answer, "running.1.actor"));
    release(&one);
    release(&two);
    program_close(p);
}

static void test_a_hook_that_does_not_return_is_named_as_one(void)
{
    program *p = program_open();
    actor self = {.in_init = true};
    spawn_on(p, &self, "culprit", NULL, 0);
    program_run(p);
    check_named(p, &self, "loop", -1);
    release(&self);
    self.in_init = false;
    UNTIL(count_at(p->answer, "running") == 0, p, "\"op\":\"stuck\",\"limit_ms\":%d}", LIMIT_MS);
    program_close(p);
}

static void test_a_signal_that_does_not_return_is_named_as_a_hook(void)
{
    program *p = program_open();
    actor self = {.in_signal = true};
    actor other = {0};
    spawn_on(p, &self, "culprit", NULL, 0);
    spawn_on(p, &other, "other", NULL, 0); /* so that the run goes on */
    program_run(p);
    tell(p, self.id, STOP);
    check_named(p, &self, "loop", -1);
    release(&self);
    program_close(p);
}

static void test_who_sleeps_in_the_kernel_is_named_and_sleeps_on(void)
{
    program *p = program_open();
    actor self = {0};
    spawn_on(p, &self, "culprit", NULL, 0);
    program_run(p);
    tell(p, self.id, SLEEP);
    check_named(p, &self, "loop", SLEEP);
    check_named(p, &self, "loop", SLEEP);
#if defined(__x86_64__)
    CHECK_EQ(atomic_load(&self.interrupted), 0);
#endif
    release(&self);
    program_close(p);
}

static void test_who_does_not_listen_is_named_without_a_place(void)
{
    program *p = program_open();
    actor self = {0};
    spawn_on(p, &self, "culprit", NULL, 0);
    program_run(p);
    tell(p, self.id, HIDE);
    UNTIL(count_at(p->answer, "running") == 1, p, "\"op\":\"stuck\",\"limit_ms\":%d}", LIMIT_MS);
    CHECK_EQ(actor_at(p->answer, "running.0.actor"), self.id);
    CHECK_STR(text_at(p->answer, "running.0.answered"), "false");
    CHECK_STR(text_at(p->answer, "running.0.tag"), "null");
    CHECK_EQ(count_at(p->answer, "running.0.frames"), 0);
    release(&self);
    program_close(p);
}

static void test_a_control_that_began_inside_of_the_run_sees_it_too(void)
{
    program *p = program_open();
    actor self = {0};
    spawn_on(p, &self, "culprit", NULL, 0);
    CHECK_OK(jzx_send_u64(p->loop, self.id, 0, SERVE));
    REQUIRE_EQ(pthread_create(&p->thread, NULL, program_main, p), 0);
    p->runs = true;
    while (!atomic_load(&self.entered)) {
        nap();
    }
    check_named(p, &self, "loop", SERVE);
    release(&self);
    program_close(p);
}

static void test_who_gets_on_is_not_named(void)
{
    program *p = program_open();
    actor busy = {0};
    spawn_on(p, &busy, "busy", NULL, 0);
    CHECK_OK(jzx_send_u64(p->loop, busy.id, 0, PING));
    program_run(p);
    uint64_t end = now_ms() + 150;
    while (now_ms() < end) {
        unsigned long before = atomic_load(&busy.handled);
        (void)ask(p, "\"op\":\"stuck\",\"limit_ms\":1000}");
        CHECK_EQ(count_at(p->answer, "running"), 0);
        CHECK_EQ(count_at(p->answer, "silent"), 0);
        while (atomic_load(&busy.handled) == before) {
        }
    }
    program_close(p);
}

static void test_full_mailboxes_are_listed_and_a_stuck_loop_is_silent(void)
{
    program *p = program_open();
    actor self = {0}, free_one = {0};
    spawn_on(p, &self, "culprit", NULL, 4);
    spawn_on(p, &free_one, "other", NULL, 4);
    program_run(p);
    tell(p, self.id, STAY);
    while (!atomic_load(&self.entered)) {
        nap();
    }
    while (jzx_send_async_u64(p->sender, self.id, 0, 100) == JZX_OK) {
    }
    for (int i = 0; i < 3; i++) { /* that one has room for one more */
        tell(p, free_one.id, 100);
    }
    (void)ask(p, "\"op\":\"stuck\",\"limit_ms\":%d}", LIMIT_MS);
    REQUIRE_EQ(count_at(p->answer, "full"), 1);
    CHECK_EQ(actor_at(p->answer, "full.0.id"), self.id);
    CHECK_EQ(number_at(p->answer, "full.0.mailbox"), 4);
    REQUIRE_EQ(count_at(p->answer, "silent"), 1);
    CHECK_STR(text_at(p->answer, "silent.0"), "loop");
    release(&self);
    UNTIL(count_at(p->answer, "silent") == 0 && count_at(p->answer, "full") == 0, p,
          "\"op\":\"stuck\"}");
    program_close(p);
}

/* Each asks its peer, which keeps what it is asked. One outside waits for the circle, and is no
 * part of it. */
static void test_asks_without_an_answer_and_who_waits_for_whom_in_a_circle_are_told(void)
{
    static const char *const places[] = {NULL, "pinned", "pool"};
    enum { COUNT = COUNT_OF(places) };
    program *p = program_open();
    actor ring[COUNT] = {0};
    actor outside = {0};
    spawn_on(p, &outside, "outside", NULL, 0);
    for (size_t i = 0; i < COUNT; i++) {
        char name[] = "ring-0";
        name[5] = (char)('0' + i);
        spawn_on(p, &ring[i], name, places[i], 0);
    }
    for (size_t i = 0; i < COUNT; i++) {
        ring[i].peer = ring[(i + 1) % COUNT].id;
    }
    outside.peer = ring[0].id;
    program_run(p);
    tell(p, outside.id, ASK_PEER);
    UNTIL(count_at(p->answer, "asks") == 1, p, "\"op\":\"stuck\",\"limit_ms\":1}");
    CHECK_EQ(actor_at(p->answer, "asks.0.asker"), outside.id);
    CHECK_STR(text_at(p->answer, "asks.0.asker_name"), "outside");
    CHECK_EQ(actor_at(p->answer, "asks.0.callee"), ring[0].id);
    CHECK_STR(text_at(p->answer, "asks.0.callee_name"), "ring-0");
    CHECK_EQ(count_at(p->answer, "waits"), 0);
    for (size_t i = 0; i < COUNT; i++) {
        tell(p, ring[i].id, ASK_PEER);
    }
    UNTIL(count_at(p->answer, "asks") == COUNT + 1, p, "\"op\":\"stuck\",\"limit_ms\":20}");
    CHECK_EQ(actor_at(p->answer, "asks.0.asker"), outside.id); /* the oldest first */
    CHECK(number_at(p->answer, "asks.0.age_ms") >= number_at(p->answer, "asks.3.age_ms"));
    REQUIRE_EQ(count_at(p->answer, "waits"), COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        char asker[32], callee[32];
        (void)snprintf(asker, sizeof asker, "waits.%zu.0", i);
        (void)snprintf(callee, sizeof callee, "waits.%zu.1", i);
        size_t at = 0;
        while (at < COUNT && ring[at].id != actor_at(p->answer, asker)) {
            at++;
        }
        REQUIRE(at < COUNT);
        CHECK_EQ(actor_at(p->answer, callee), ring[at].peer);
    }
    (void)ask(p, "\"op\":\"stuck\",\"limit_ms\":60000}");
    CHECK_EQ(count_at(p->answer, "asks"), 0); /* younger than that */
    CHECK_EQ(count_at(p->answer, "waits"), 0);
    program_close(p);
}

/* Somebody has very many asks under way, and two others who came later wait for each other. */
static void test_a_circle_is_found_behind_many_asks(void)
{
    program *p = program_open();
    actor crowd = {0};
    actor sink = {0};
    actor pair[2] = {0};
    spawn_on(p, &crowd, "crowd", NULL, 0);
    spawn_on(p, &sink, "sink", NULL, MUCH);
    spawn_on(p, &pair[0], "egg", NULL, 0);
    spawn_on(p, &pair[1], "hen", NULL, 0);
    crowd.peer = sink.id;
    pair[0].peer = pair[1].id;
    pair[1].peer = pair[0].id;
    program_run(p);
    tell(p, crowd.id, ASK_MUCH);
    UNTIL(atomic_load(&sink.handled) == MUCH, p, "\"op\":\"program\"}");
    tell(p, pair[0].id, ASK_PEER);
    tell(p, pair[1].id, ASK_PEER);
    UNTIL(atomic_load(&pair[0].handled) == 2 && atomic_load(&pair[1].handled) == 2, p,
          "\"op\":\"program\"}");
    UNTIL(count_at(p->answer, "waits") == 2, p, "\"op\":\"stuck\",\"limit_ms\":1}");
    CHECK_EQ(actor_at(p->answer, "waits.0.0"), actor_at(p->answer, "waits.1.1"));
    CHECK_EQ(actor_at(p->answer, "waits.0.1"), actor_at(p->answer, "waits.1.0"));
    CHECK_EQ(count_at(p->answer, "asks"), 64); /* the oldest of them */
    CHECK_EQ(actor_at(p->answer, "asks.0.asker"), crowd.id);
    CHECK_STR(text_at(p->answer, "cut"), "false");
    program_close(p);
}

static void test_an_ask_that_was_passed_on_waits_for_who_has_it(void)
{
    program *p = program_open();
    actor asker = {0}, clerk = {0}, chief = {0};
    spawn_on(p, &chief, "chief", "pinned", 0);
    spawn_on(p, &clerk, "clerk", NULL, 0);
    spawn_on(p, &asker, "asker", NULL, 0);
    asker.peer = clerk.id;
    asker.next = clerk.next = chief.id;
    program_run(p);
    tell(p, chief.id, STAY); /* it does not even take it into its hands */
    tell(p, asker.id, ASK_PEER);
    UNTIL(actor_at(p->answer, "asks.0.callee") == chief.id, p, "\"op\":\"stuck\",\"limit_ms\":1}");
    CHECK_EQ(actor_at(p->answer, "asks.0.asker"), asker.id);
    release(&chief);
    program_close(p);
}

static void test_a_request_for_it_is_checked(void)
{
    program *p = program_open();
    actor self = {0};
    spawn_on(p, &self, "self", NULL, 0);
    program_run(p);
    CHECK_STR(text_at(ask(p, "\"op\":\"stuck\",\"limit_ms\":\"soon\"}"), "error"), "BAD_REQUEST");
    CHECK_STR(text_at(ask(p, "\"op\":\"stuck\",\"limit_ms\":86400001}"), "error"), "BAD_REQUEST");
    CHECK_EQ(number_at(ask(p, "\"op\":\"stuck\"}"), "limit_ms"), 1000);
    program_close(p);
}

static const jzt_test tests[] = {
    {"who_does_not_return_is_named_with_message_time_and_place",
     test_who_does_not_return_is_named_with_message_time_and_place},
    {"also_on_a_thread_of_its_own", test_also_on_a_thread_of_its_own},
    {"also_in_a_pool", test_also_in_a_pool},
    {"one_hang_has_one_age_everywhere", test_one_hang_has_one_age_everywhere},
    {"two_of_a_pool_are_both_named", test_two_of_a_pool_are_both_named},
    {"a_hook_that_does_not_return_is_named_as_one",
     test_a_hook_that_does_not_return_is_named_as_one},
    {"a_signal_that_does_not_return_is_named_as_a_hook",
     test_a_signal_that_does_not_return_is_named_as_a_hook},
    {"who_sleeps_in_the_kernel_is_named_and_sleeps_on",
     test_who_sleeps_in_the_kernel_is_named_and_sleeps_on},
    {"who_does_not_listen_is_named_without_a_place",
     test_who_does_not_listen_is_named_without_a_place},
    {"a_control_that_began_inside_of_the_run_sees_it_too",
     test_a_control_that_began_inside_of_the_run_sees_it_too},
    {"who_gets_on_is_not_named", test_who_gets_on_is_not_named},
    {"full_mailboxes_are_listed_and_a_stuck_loop_is_silent",
     test_full_mailboxes_are_listed_and_a_stuck_loop_is_silent},
    {"asks_without_an_answer_and_who_waits_for_whom_in_a_circle_are_told",
     test_asks_without_an_answer_and_who_waits_for_whom_in_a_circle_are_told},
    {"a_circle_is_found_behind_many_asks", test_a_circle_is_found_behind_many_asks},
    {"an_ask_that_was_passed_on_waits_for_who_has_it",
     test_an_ask_that_was_passed_on_waits_for_who_has_it},
    {"a_request_for_it_is_checked", test_a_request_for_it_is_checked},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
