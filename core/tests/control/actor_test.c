/* Goal: `actor` tells all about one, as it is: what it has, whom it knows, what it waits for, whom
 * it supervises, how it failed and what it does just now; `failures` tells how all of them failed.
 * Method: an actor that has one of everything, on each kind of dispatcher, and one that is stuck.
 * not on: pinned pool */
#define _GNU_SOURCE
#include "look_fixture.h"

#include <fcntl.h>

enum { SETTLE = 1, STASH, KEEP, STAY, FAIL, PANIC, DONE, KILL, TICK };

/* One that has everything, and those it knows. */
typedef struct rich {
    jzx_actor_id id;
    jzx_actor_id watched;
    jzx_actor_id linked;
    jzx_actor_id callee;
    jzx_bus *bus;
    int fd;
    atomic_bool settled;
    atomic_bool released;
} rich;

static void *work(void *arg)
{
    rich *self = arg;
    while (!atomic_load(&self->released)) {
        nap();
    }
    return NULL;
}

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg);

static void settle(jzx_context *ctx, rich *self)
{
    CHECK_OK(jzx_timer_start(ctx->loop, ctx->self,
                             &(jzx_timer_opts){.delay_ms = 60000, .period_ms = 500, .tag = TICK},
                             NULL));
    CHECK_OK(jzx_timer_start(ctx->loop, ctx->self,
                             &(jzx_timer_opts){.delay_ms = 90000, .tag = TICK + 1}, NULL));
    CHECK_OK(jzx_watch(ctx->loop, self->watched, 0, NULL));
    CHECK_OK(jzx_link(ctx->loop, self->linked));
    CHECK_OK(jzx_register(ctx->loop, "first", ctx->self));
    CHECK_OK(jzx_register(ctx->loop, "second", ctx->self));
    CHECK_OK(jzx_group_join(ctx->loop, "crowd", ctx->self));
    CHECK_OK(jzx_bus_subscribe(ctx->loop, self->bus, "*", &(jzx_sub_opts){0}, NULL));
    CHECK_OK(jzx_watch_fd(ctx->loop, self->fd, ctx->self, JZX_IO_READ, TICK, NULL));
    CHECK_OK(jzx_run_blocking(ctx, work, self, DONE));
    CHECK_OK(jzx_ask(ctx->loop, self->callee,
                     &(jzx_ask_opts){.tag = KEEP, .flags = JZX_SEND_VALUE, .timeout_ms = 70000},
                     NULL));
    CHECK_OK(jzx_ask(
        ctx->loop, self->callee,
        &(jzx_ask_opts){.tag = KEEP, .flags = JZX_SEND_VALUE, .timeout_ms = JZX_ASK_NO_TIMEOUT},
        NULL));
    CHECK_OK(jzx_become_stacked(ctx, behave));
    atomic_store(&self->settled, true);
}

static PLACE void stay(rich *self)
{
    while (!atomic_load(&self->released)) {
    }
}

static PLACE jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    rich *self = ctx->state;
    switch (msg->tag) {
    case SETTLE:
        settle(ctx, self);
        break;
    case STASH:
        CHECK_OK(jzx_stash(ctx));
        break;
    case KEEP:
        CHECK(jzx_request_keep(ctx) != 0);
        break;
    case STAY:
        stay(self);
        break;
    case KILL:
        CHECK_OK(jzx_kill(ctx->loop, ctx->self));
        break;
    case FAIL:
        return jzx_fail(ctx, 4, "\"quoted\"");
    case PANIC:
        jzx_panic(ctx, 5, "all is lost");
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

static jzx_actor_id spawn(program *p, const char *name, const char *dispatcher, rich *state)
{
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn(p->loop,
                         &(jzx_spawn_opts){.behavior = behave,
                                           .init = begin,
                                           .state = state,
                                           .name = name,
                                           .dispatcher = dispatcher,
                                           .mailbox_cap = 77,
                                           .max_msgs = 9,
                                           .full_policy = JZX_FULL_DROP_OLDEST,
                                           .stop_timeout_ms = 1234},
                         &id));
    return id;
}

static void tell(program *p, jzx_actor_id id, uint32_t tag)
{
    REQUIRE_OK(jzx_send_async_u64(p->sender, id, 0, tag));
}

static void check_everything(const char *dispatcher, const char *others)
{
    program *p = program_open();
    rich self = {0}, plain = {0};
    REQUIRE_OK(jzx_bus_create(p->loop, &(jzx_bus_opts){0}, &self.bus));
    int ends[2];
    REQUIRE_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    self.fd = ends[0];
    self.watched = spawn(p, "watched", others, &plain);
    self.linked = spawn(p, "linked", others, &plain);
    self.callee = spawn(p, "callee", others, &plain);
    self.id = spawn(p, "rich", dispatcher, &self);
    program_run(p);
    tell(p, self.id, SETTLE);
    tell(p, self.id, STASH);
    tell(p, self.id, STASH);
    UNTIL(number_at(p->answer, "detail.stashed") == 2 && count_at(p->answer, "history") == 3 &&
              strcmp(text_at(p->answer, "doing"), "null") == 0,
          p, "\"op\":\"actor\",\"actor\":\"%llx\"}", (unsigned long long)self.id);
    const char *a = p->answer;
    CHECK_EQ(actor_at(a, "actor.id"), self.id);
    CHECK_STR(text_at(a, "actor.name"), "rich");
    CHECK_STR(text_at(a, "actor.state"), "running");
    CHECK_EQ(number_at(a, "actor.cap"), 77);
    CHECK_EQ(count_at(a, "history"), 3);
    CHECK_STR(text_at(a, "history.0"), "created");
    CHECK_STR(text_at(a, "history.2"), "running");
    CHECK_STR(text_at(a, "doing"), "null");
    CHECK_STR(text_at(a, "answering"), "true");
    CHECK_EQ(count_at(a, "detail.names"), 2);
    CHECK_STR(text_at(a, "detail.names.0"), "first");
    CHECK_STR(text_at(a, "detail.names.1"), "second");
    CHECK_EQ(count_at(a, "detail.groups"), 1);
    CHECK_STR(text_at(a, "detail.groups.0"), "crowd");
    CHECK_STR(text_at(a, "detail.full_policy"), "drop_oldest");
    CHECK_EQ(number_at(a, "detail.max_messages"), 9);
    CHECK_EQ(number_at(a, "detail.stop_timeout_ms"), 1234);
    CHECK_EQ(number_at(a, "detail.behaviors"), 2);
    REQUIRE_EQ(count_at(a, "detail.timers"), 2);
    size_t periodic = number_at(a, "detail.timers.0.tag") == TICK ? 0 : 1;
    CHECK_EQ(
        number_at(a, periodic == 0 ? "detail.timers.0.period_ms" : "detail.timers.1.period_ms"),
        500);
    long due = number_at(a, periodic == 0 ? "detail.timers.0.due_ms" : "detail.timers.1.due_ms");
    CHECK(due > 30000 && due <= 60000);
    CHECK_EQ(count_at(a, "detail.watching"), 1);
    CHECK_EQ(actor_at(a, "detail.watching.0"), self.watched);
    CHECK_EQ(count_at(a, "detail.watchers"), 0);
    CHECK_EQ(count_at(a, "detail.links"), 1);
    CHECK_EQ(actor_at(a, "detail.links.0"), self.linked);
    REQUIRE_EQ(count_at(a, "detail.asks"), 2);
    CHECK_EQ(actor_at(a, "detail.asks.0.to"), self.callee);
    CHECK_STR(text_at(a, "detail.asks.0.left_ms"), "null"); /* the latest first: it has no end */
    long left = number_at(a, "detail.asks.1.left_ms");
    CHECK(left > 40000 && left <= 70010);
    CHECK_EQ(count_at(a, "detail.owes"), 0);
    CHECK_EQ(number_at(a, "detail.sources"), 1);
    CHECK_EQ(number_at(a, "detail.jobs"), 1);
    CHECK_EQ(number_at(a, "detail.subscriptions"), 1);
    CHECK_STR(text_at(a, "detail.supervision"), "null");
    CHECK_EQ(count_at(a, "failures"), 0);

    /* From the other side. */
    UNTIL(count_at(p->answer, "detail.owes") == 2, p, "\"op\":\"actor\",\"actor\":\"callee\"}");
    CHECK_EQ(actor_at(p->answer, "detail.owes.0.to"), self.id);
    UNTIL(count_at(p->answer, "detail.watchers") == 1, p,
          "\"op\":\"actor\",\"actor\":\"watched\"}");
    CHECK_EQ(actor_at(p->answer, "detail.watchers.0"), self.id);
    UNTIL(count_at(p->answer, "detail.links") == 1, p, "\"op\":\"actor\",\"actor\":\"linked\"}");
    CHECK_EQ(actor_at(p->answer, "detail.links.0"), self.id);
    CHECK_EQ(count_at(p->answer, "detail.watchers"), 0);
    atomic_store(&self.released, true);
    program_close(p);
    jzx_bus_release(self.bus);
    close(ends[0]);
    close(ends[1]);
}

static void test_what_an_actor_has_and_knows_is_told(void)
{
    check_everything(NULL, NULL);
}

static void test_also_of_one_in_a_pool_who_knows_others_elsewhere(void)
{
    check_everything("pool", "pinned");
}

static void test_who_runs_is_seen_in_its_code_and_its_dispatcher_does_not_answer(void)
{
    program *p = program_open();
    rich self = {0};
    self.id = spawn(p, "busy", NULL, &self);
    program_run(p);
    tell(p, self.id, STAY);
    UNTIL(has_place(p->answer, "doing.frames"), p, "\"op\":\"actor\",\"actor\":\"busy\"}");
    CHECK_STR(text_at(p->answer, "doing.running"), "true");
    CHECK_EQ(number_at(p->answer, "doing.tag"), STAY);
    CHECK_STR(text_at(p->answer, "doing.kind"), "user");
    CHECK_STR(text_at(p->answer, "doing.hook"), "false");
    CHECK(number_at(p->answer, "doing.for_ms") >= 10);
    CHECK_STR(text_at(p->answer, "detail"), "null");
    CHECK_STR(text_at(p->answer, "answering"), "false");
    CHECK_EQ(actor_at(p->answer, "actor.id"), self.id);
    atomic_store(&self.released, true);
    UNTIL(strcmp(text_at(p->answer, "answering"), "true") == 0 &&
              strcmp(text_at(p->answer, "doing"), "null") == 0,
          p, "\"op\":\"actor\",\"actor\":\"busy\"}");
    program_close(p);
}

static void test_who_is_not_there_is_refused(void)
{
    program *p = program_open();
    rich self = {0};
    self.id = spawn(p, "alone", NULL, &self);
    program_run(p);
    CHECK_STR(text_at(ask(p, "\"op\":\"actor\",\"actor\":\"nobody\"}"), "error"), "NO_SUCH_ACTOR");
    CHECK_STR(text_at(ask(p, "\"op\":\"actor\"}"), "ok"), "false");
    CHECK_STR(text_at(ask(p, "\"op\":\"failures\",\"actor\":\"nobody\"}"), "error"),
              "NO_SUCH_ACTOR");
    CHECK_EQ(actor_at(ask(p, "\"op\":\"actor\",\"actor\":\"alone\"}"), "actor.id"), self.id);
    program_close(p);
}

static void test_a_supervisor_and_its_children_are_told(void)
{
    program *p = program_open();
    rich state = {0};
    jzx_actor_id sup = 0;
    const jzx_child_spec children[] = {
        {.id = "steady", .behavior = behave, .init = begin, .arg = &state},
        {.id = "shaky",
         .behavior = behave,
         .init = begin,
         .arg = &state,
         .mode = JZX_TRANSIENT,
         .dispatcher = "pinned"},
    };
    const jzx_supervisor_spec spec = {.strategy = JZX_ONE_FOR_ONE,
                                      .intensity = 5,
                                      .period_ms = 60000,
                                      .backoff_min_ms = 30000,
                                      .backoff_max_ms = 40000};
    REQUIRE_OK(jzx_spawn_supervisor(
        p->loop,
        &(jzx_supervisor_init){
            .name = "boss", .spec = &spec, .children = children, .child_count = 2},
        &sup));
    program_run(p);
    UNTIL(strcmp(text_at(p->answer, "detail.supervision.children.1.state"), "up") == 0, p,
          "\"op\":\"actor\",\"actor\":\"boss\"}");
    const char *a = p->answer;
    CHECK_STR(text_at(a, "detail.supervision.strategy"), "one_for_one");
    CHECK_EQ(number_at(a, "detail.supervision.intensity"), 5);
    CHECK_EQ(number_at(a, "detail.supervision.period_ms"), 60000);
    CHECK_EQ(number_at(a, "detail.supervision.restarts"), 0);
    REQUIRE_EQ(count_at(a, "detail.supervision.children"), 2);
    CHECK_STR(text_at(a, "detail.supervision.children.0.name"), "steady");
    CHECK_STR(text_at(a, "detail.supervision.children.0.mode"), "permanent");
    CHECK_STR(text_at(a, "detail.supervision.children.0.due_ms"), "null");
    CHECK_STR(text_at(a, "detail.supervision.children.1.mode"), "transient");
    jzx_actor_id shaky = actor_at(a, "detail.supervision.children.1.id");
    tell(p, shaky, PANIC);
    UNTIL(strcmp(text_at(p->answer, "detail.supervision.children.1.state"), "down") == 0, p,
          "\"op\":\"actor\",\"actor\":\"boss\"}");
    long due = number_at(p->answer, "detail.supervision.children.1.due_ms");
    CHECK(due > 10000 && due <= 30000); /* backs off */
    CHECK_EQ(number_at(p->answer, "detail.supervision.children.1.attempt"), 1);
    CHECK_EQ(number_at(p->answer, "detail.supervision.restarts"), 1);
    (void)ask(p, "\"op\":\"actor\",\"actor\":\"shaky\"}");
    REQUIRE_EQ(count_at(p->answer, "failures"), 1);
    CHECK_STR(text_at(p->answer, "failures.0.reason"), "panic");
    program_close(p);
}

static void test_failures_are_told_with_their_message_and_place_also_of_who_is_gone(void)
{
    program *p = program_open();
    rich self = {0};
    jzx_actor_id keeper = spawn(p, "keeper", NULL, &self);
    jzx_actor_id one = spawn(p, "one", NULL, &self);
    jzx_actor_id two = spawn(p, "two", "pool", &self);
    jzx_actor_id three = spawn(p, "three", NULL, &self);
    program_run(p);
    tell(p, one, FAIL);
    UNTIL(count_at(p->answer, "failures") == 1, p, "\"op\":\"failures\"}");
    tell(p, two, PANIC);
    UNTIL(count_at(p->answer, "failures") == 2, p, "\"op\":\"failures\"}");
    const char *a = p->answer;
    CHECK_EQ(actor_at(a, "failures.0.actor"), two); /* the newest first */
    CHECK_EQ(number_at(a, "failures.0.seq"), 2);
    CHECK_STR(text_at(a, "failures.0.name"), "two");
    CHECK_STR(text_at(a, "failures.0.reason"), "panic");
    CHECK_EQ(number_at(a, "failures.0.code"), 5);
    CHECK_STR(text_at(a, "failures.0.text"), "all is lost");
    CHECK_EQ(number_at(a, "failures.0.tag"), PANIC);
    CHECK_STR(text_at(a, "failures.0.kind"), "user");
    CHECK_EQ(number_at(a, "failures.0.incarnation"), 1);
    CHECK(number_at(a, "failures.0.ago_ms") >= 0 && number_at(a, "failures.0.ago_ms") < 20000);
    CHECK(has_place(a, "failures.0.frames"));
    CHECK_STR(text_at(a, "failures.1.text"), "\\\"quoted\\\"");
    CHECK_EQ(count_at(a, "failures.1.frames"), 1);
    CHECK(has_function(a, "failures.0.frames", "behave"));
    CHECK_STR(text_at(a, "failures.1.frames.0.text"), "behave+0x0 (actor_test)");
    CHECK(has_place(a, "failures.1.frames"));
    CHECK_EQ(count_at(ask(p, "\"op\":\"failures\",\"limit\":1}"), "failures"), 1);
    (void)ask(p, "\"op\":\"failures\",\"actor\":\"%llx\"}", (unsigned long long)one);
    REQUIRE_EQ(count_at(p->answer, "failures"), 1);
    CHECK_EQ(actor_at(p->answer, "failures.0.actor"), one);
    (void)ask(p, "\"op\":\"failures\",\"actor\":\"two\"}");
    REQUIRE_EQ(count_at(p->answer, "failures"), 1);
    CHECK_EQ(actor_at(p->answer, "failures.0.actor"), two);
    (void)ask(p, "\"op\":\"failures\",\"actor\":\"%llx\"}", (unsigned long long)keeper);
    CHECK_STR(text_at(p->answer, "ok"), "true");
    CHECK_EQ(count_at(p->answer, "failures"), 0);
    CHECK_STR(text_at(ask(p, "\"op\":\"failures\",\"limit\":\"all\"}"), "error"), "BAD_REQUEST");
    tell(p, three, KILL);
    UNTIL(count_at(p->answer, "failures") == 1, p, "\"op\":\"failures\",\"actor\":\"%llx\"}",
          (unsigned long long)three);
    CHECK_STR(text_at(p->answer, "failures.0.reason"), "killed");
    CHECK_STR(text_at(p->answer, "failures.0.tag"), "null");   /* it was in no message, */
    CHECK_STR(text_at(p->answer, "failures.0.hook"), "false"); /* nor in a hook */
    program_close(p);
}

static const jzt_test tests[] = {
    {"what_an_actor_has_and_knows_is_told", test_what_an_actor_has_and_knows_is_told},
    {"also_of_one_in_a_pool_who_knows_others_elsewhere",
     test_also_of_one_in_a_pool_who_knows_others_elsewhere},
    {"who_runs_is_seen_in_its_code_and_its_dispatcher_does_not_answer",
     test_who_runs_is_seen_in_its_code_and_its_dispatcher_does_not_answer},
    {"who_is_not_there_is_refused", test_who_is_not_there_is_refused},
    {"a_supervisor_and_its_children_are_told", test_a_supervisor_and_its_children_are_told},
    {"failures_are_told_with_their_message_and_place_also_of_who_is_gone",
     test_failures_are_told_with_their_message_and_place_also_of_who_is_gone},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
