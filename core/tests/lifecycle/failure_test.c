/* Goal: a failure leaves on the board who failed, in which message, and where in the code; and
 * nothing while nobody asked. Method: actors that fail in every way there is, whose functions lie
 * in a section of their own, so that an address tells which code it is.
 * not on: pool1 pool2 */
#define _GNU_SOURCE
#include "loop/loop.h"
#include "os/debug/frames.h"

#include "crash.h"

/* Code that is looked for. Between these two. */
extern const char __start_jzt_place[];
extern const char __stop_jzt_place[];
#define PLACE __attribute__((noinline, section("jzt_place")))

static bool is_place(const void *pc)
{
    return (const char *)pc >= __start_jzt_place && (const char *)pc < __stop_jzt_place;
}

enum { PANIC = 1, FAIL, PLAIN_FAIL, CRASH, ASK, CALM };
typedef struct failing {
    jzx_actor_id id;
    jzx_actor_id peer;
    uint32_t where; /* a signal that fails, + 1; or IN_INIT_FAIL, IN_INIT_PANIC */
} failing;
enum { NOWHERE = 0, IN_INIT_FAIL = 1000, IN_INIT_PANIC };

static PLACE void go_wrong(jzx_context *ctx, const char *why)
{
    jzx_panic(ctx, 7, why);
}

static jzx_behavior_result fail_to_hear(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    return jzx_fail(ctx, 12, "the answer");
}

static PLACE jzx_behavior_result fail(jzx_context *ctx, const jzx_message *msg)
{
    const failing *self = ctx->state;
    switch (msg->tag) {
    case PANIC:
        go_wrong(ctx, "out of paper");
        break;
    case FAIL:
        return jzx_fail(ctx, 9, "no ink");
    case PLAIN_FAIL:
        return JZX_BEHAVIOR_FAIL;
    case CRASH:
        crash_pointer();
        break;
    case ASK:
        CHECK_OK(jzx_ask(ctx->loop, self->peer,
                         &(jzx_ask_opts){.on_reply = fail_to_hear, .flags = JZX_SEND_VALUE}, NULL));
        break;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result answer(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 1, 1));
    return JZX_BEHAVIOR_OK;
}

static PLACE jzx_behavior_result start_badly(jzx_context *ctx, void *arg)
{
    const failing *self = arg;
    ctx->state = arg;
    if (self->where == IN_INIT_PANIC) {
        go_wrong(ctx, "no paper at all");
    }
    return self->where == IN_INIT_FAIL ? jzx_fail(ctx, 3, "no printer") : JZX_BEHAVIOR_OK;
}

static PLACE jzx_behavior_result hear_badly(jzx_context *ctx, const jzx_signal *signal)
{
    const failing *self = ctx->state;
    return self != NULL && self->where == signal->kind + 1 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

typedef struct stage {
    rig r;
    jzi_failure found[JZI_FAILURES_KEPT];
    size_t count;
} stage;

static stage *open_stage(void)
{
    stage *s = calloc(1, sizeof *s);
    s->r = rig_open(NULL);
    REQUIRE_OK(jzi_board_keep_failures(s->r.loop->dispatcher.board));
    jzi_board_want(s->r.loop->dispatcher.board, JZI_WANT_RECORD, 0); /* as a control does */
    return s;
}

static void look(stage *s)
{
    s->count =
        jzi_board_failures(s->r.loop->dispatcher.board, JZX_NOBODY, s->found, JZI_FAILURES_KEPT);
}

static void close_stage(stage *s)
{
    rig_close(&s->r);
    free(s);
}

static failing spawn(stage *s, const jzx_spawn_opts *more)
{
    failing f = {0};
    jzx_spawn_opts opts = *more;
    opts.behavior = opts.behavior == NULL ? fail : opts.behavior;
    REQUIRE_OK(jzx_spawn(s->r.loop, &opts, &f.id));
    return f;
}

/* Sends one message and sees to it that there is one failure, which is returned. */
static const jzi_failure *fail_with(stage *s, uint32_t tag)
{
    failing f = spawn(s, &(jzx_spawn_opts){.name = "printer"});
    CHECK_OK(jzx_send_u64(s->r.loop, f.id, 0, CALM));
    CHECK_OK(jzx_send_u64(s->r.loop, f.id, 0, tag));
    rig_idle(&s->r);
    look(s);
    REQUIRE_EQ(s->count, 1);
    CHECK_EQ(s->found[0].actor, f.id);
    CHECK_EQ(s->found[0].seq, 1);
    CHECK_EQ(s->found[0].incarnation, 1);
    CHECK(s->found[0].time_ns > 0);
    CHECK_STR(s->found[0].name, "printer");
    return &s->found[0];
}

static void *address_of(jzx_behavior_fn function)
{
    void *address = NULL;
    memcpy(&address, &function, sizeof address);
    return address;
}

static void test_a_behavior_that_fails_is_kept_with_its_message_and_itself(void)
{
    stage *s = open_stage();
    const jzi_failure *failure = fail_with(s, FAIL);
    CHECK_EQ(failure->reason.kind, JZX_REASON_FAILED);
    CHECK_EQ(failure->reason.code, 9);
    CHECK_STR(failure->reason.text, "no ink");
    CHECK_EQ(failure->tag, FAIL);
    CHECK_EQ(failure->kind, JZX_KIND_USER);
    REQUIRE_EQ(failure->frame_count, 1);
    CHECK(failure->frames[0] == address_of(fail));
    close_stage(s);
}

static void test_a_panic_is_kept_with_the_code_that_called_it(void)
{
    stage *s = open_stage();
    const jzi_failure *failure = fail_with(s, PANIC);
    CHECK_EQ(failure->reason.kind, JZX_REASON_PANIC);
    CHECK_EQ(failure->reason.code, 7);
    CHECK_EQ(failure->tag, PANIC);
    CHECK_EQ(failure->kind, JZX_KIND_USER);
    if (JZI_HAVE_FRAMES) {
        REQUIRE(failure->frame_count >= 2);
        CHECK(is_place(failure->frames[0])); /* go_wrong() */
        CHECK(is_place(failure->frames[1])); /* fail(), which called it */
        CHECK(!is_place(failure->frames[2]));
    }
    close_stage(s);
}

static void test_a_crash_is_kept_with_its_backtrace(void)
{
    if (SANITIZED || jzt_on_threads()) {
        jzt_skip("Here the sanitizer, or the thread that installs, has the signals.");
    }
    stage *s = open_stage();
    REQUIRE_OK(jzx_crash_guard_install());
    failing f = spawn(s, &(jzx_spawn_opts){.flags = JZX_SPAWN_CRASH_GUARD});
    CHECK_OK(jzx_send_u64(s->r.loop, f.id, 0, CRASH));
    rig_idle(&s->r);
    look(s);
    REQUIRE_EQ(s->count, 1);
    CHECK_EQ(s->found[0].reason.kind, JZX_REASON_CRASH);
    CHECK_EQ(s->found[0].reason.code, SIGSEGV);
    CHECK_EQ(s->found[0].tag, CRASH);
    REQUIRE(s->found[0].frame_count >= 2);
    CHECK(is_place(s->found[0].frames[1])); /* fail(); crash_pointer() is elsewhere */
    jzx_crash_guard_remove();
    close_stage(s);
}

static void test_a_failure_after_a_panic_does_not_have_its_frames(void)
{
    stage *s = open_stage();
    (void)fail_with(s, PANIC);
    failing f = spawn(s, &(jzx_spawn_opts){0});
    CHECK_OK(jzx_send_u64(s->r.loop, f.id, 0, PLAIN_FAIL));
    rig_idle(&s->r);
    look(s);
    REQUIRE_EQ(s->count, 2);
    CHECK_EQ(s->found[0].seq, 2); /* the newest first */
    CHECK_EQ(s->found[0].frame_count, 1);
    CHECK(s->found[0].frames[0] == address_of(fail));
    CHECK_STR(s->found[0].name, "");
    close_stage(s);
}

static void test_messages_that_are_not_plain_are_known_too(void)
{
    stage *s = open_stage();
    failing f = spawn(s, &(jzx_spawn_opts){0});
    char text[] = "some bytes that are copied";
    CHECK_OK(jzx_send_copy(s->r.loop, f.id, text, sizeof text, FAIL));
    rig_idle(&s->r);
    f = spawn(s, &(jzx_spawn_opts){0});
    CHECK_OK(
        jzx_timer_start(s->r.loop, f.id, &(jzx_timer_opts){.delay_ms = 1, .tag = PANIC}, NULL));
    REQUIRE_OK(jzx_loop_run(s->r.loop));
    look(s);
    REQUIRE_EQ(s->count, 2);
    CHECK_EQ(s->found[1].tag, FAIL);
    CHECK_EQ(s->found[1].kind, JZX_KIND_USER);
    CHECK_EQ(s->found[0].tag, PANIC);
    CHECK_EQ(s->found[0].kind, JZX_KIND_TIMER);
    close_stage(s);
}

static void test_an_answer_has_a_function_that_is_not_known(void)
{
    stage *s = open_stage();
    failing peer = spawn(s, &(jzx_spawn_opts){.behavior = answer});
    failing asker = {.peer = peer.id};
    asker.id = spawn(s, &(jzx_spawn_opts){.state = &asker}).id;
    CHECK_OK(jzx_send_u64(s->r.loop, asker.id, 0, ASK));
    rig_idle(&s->r);
    look(s);
    REQUIRE_EQ(s->count, 1);
    CHECK_EQ(s->found[0].kind, JZX_KIND_REPLY);
    CHECK_EQ(s->found[0].reason.code, 12);
    CHECK_EQ(s->found[0].frame_count, 0);
    close_stage(s);
}

static void *init_address(void)
{
    jzx_behavior_result (*function)(jzx_context *, void *) = start_badly;
    void *address = NULL;
    memcpy(&address, &function, sizeof address);
    return address;
}

static void *signal_address(void)
{
    jzx_behavior_result (*function)(jzx_context *, const jzx_signal *) = hear_badly;
    void *address = NULL;
    memcpy(&address, &function, sizeof address);
    return address;
}

static void test_a_start_that_fails_is_kept_as_a_hook(void)
{
    stage *s = open_stage();
    failing f = {.where = IN_INIT_FAIL};
    (void)spawn(s, &(jzx_spawn_opts){.init = start_badly, .state = &f, .name = "late"});
    rig_idle(&s->r);
    look(s);
    REQUIRE_EQ(s->count, 1);
    CHECK_EQ(s->found[0].kind, JZI_FAILURE_HOOK);
    CHECK_EQ(s->found[0].reason.kind, JZX_REASON_START_FAILED);
    CHECK_EQ(s->found[0].reason.code, 3);
    REQUIRE_EQ(s->found[0].frame_count, 1);
    CHECK(s->found[0].frames[0] == init_address());
    f.where = IN_INIT_PANIC;
    (void)spawn(s, &(jzx_spawn_opts){.init = start_badly, .state = &f});
    rig_idle(&s->r);
    look(s);
    REQUIRE_EQ(s->count, 2);
    CHECK_EQ(s->found[0].kind, JZI_FAILURE_HOOK);
    CHECK(!JZI_HAVE_FRAMES || is_place(s->found[0].frames[0]));
    close_stage(s);
}

static void test_signals_that_fail_are_kept_as_hooks(void)
{
    static const uint32_t kinds[] = {JZX_SIGNAL_PRE_STOP, JZX_SIGNAL_POST_STOP};
    stage *s = open_stage();
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        failing f = {.where = kinds[i] + 1};
        jzx_actor_id id =
            spawn(s, &(jzx_spawn_opts){.init = start_badly, .on_signal = hear_badly, .state = &f})
                .id;
        rig_idle(&s->r);
        CHECK_OK(jzx_stop(s->r.loop, id));
        rig_idle(&s->r);
        look(s);
        REQUIRE_EQ(s->count, i + 1);
        CHECK_EQ(s->found[0].actor, id);
        CHECK_EQ(s->found[0].kind, JZI_FAILURE_HOOK);
        REQUIRE_EQ(s->found[0].frame_count, 1);
        CHECK(s->found[0].frames[0] == signal_address());
    }
    close_stage(s);
}

static void test_restarts_are_told_apart_by_incarnation(void)
{
    stage *s = open_stage();
    failing f = {0};
    jzx_actor_id sup = 0;
    jzx_child_spec child = {.id = "printer", .behavior = fail, .init = start_badly, .arg = &f};
    jzx_supervisor_spec spec = {.intensity = 10};
    REQUIRE_OK(jzx_spawn_supervisor(
        s->r.loop,
        &(jzx_supervisor_init){.name = "sup", .spec = &spec, .children = &child, .child_count = 1},
        &sup));
    rig_idle(&s->r);
    jzx_child_info info;
    REQUIRE_OK(jzx_supervisor_child(s->r.loop, sup, "printer", &info));
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_OK(jzx_send_u64(s->r.loop, info.actor, 0, i == 1 ? PANIC : FAIL));
        rig_idle(&s->r);
    }
    look(s);
    REQUIRE_EQ(s->count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(s->found[i].incarnation, 3 - i);
        CHECK_EQ(s->found[i].reason.kind, i == 1 ? JZX_REASON_PANIC : JZX_REASON_FAILED);
        CHECK_EQ(s->found[i].actor, info.actor);
    }
    close_stage(s);
}

static void test_the_last_ones_are_kept_the_newest_first(void)
{
    stage *s = open_stage();
    for (uint32_t i = 0; i < JZI_FAILURES_KEPT + 5; i++) {
        failing f = spawn(s, &(jzx_spawn_opts){0});
        CHECK_OK(jzx_send_u64(s->r.loop, f.id, 0, FAIL));
        rig_idle(&s->r);
    }
    look(s);
    REQUIRE_EQ(s->count, JZI_FAILURES_KEPT);
    for (uint32_t i = 0; i < JZI_FAILURES_KEPT; i++) {
        CHECK_EQ(s->found[i].seq, JZI_FAILURES_KEPT + 5 - i);
    }
    close_stage(s);
}

static void test_nothing_is_kept_while_nobody_asked(void)
{
    rig r = rig_open(NULL);
    jzi_failure one;
    jzx_actor_id id = 0;
    REQUIRE_OK(jzx_spawn(r.loop, &(jzx_spawn_opts){.behavior = fail}, &id));
    CHECK_OK(jzx_send_u64(r.loop, id, 0, PANIC));
    rig_idle(&r);
    CHECK_EQ(jzi_board_failures(r.loop->dispatcher.board, JZX_NOBODY, &one, 1), 0);
    CHECK_EQ(rig_counters(&r).failures, 1);
    rig_close(&r);
}

static const jzt_test tests[] = {
    {"a_behavior_that_fails_is_kept_with_its_message_and_itself",
     test_a_behavior_that_fails_is_kept_with_its_message_and_itself},
    {"a_panic_is_kept_with_the_code_that_called_it",
     test_a_panic_is_kept_with_the_code_that_called_it},
    {"a_crash_is_kept_with_its_backtrace", test_a_crash_is_kept_with_its_backtrace},
    {"a_failure_after_a_panic_does_not_have_its_frames",
     test_a_failure_after_a_panic_does_not_have_its_frames},
    {"messages_that_are_not_plain_are_known_too", test_messages_that_are_not_plain_are_known_too},
    {"an_answer_has_a_function_that_is_not_known", test_an_answer_has_a_function_that_is_not_known},
    {"a_start_that_fails_is_kept_as_a_hook", test_a_start_that_fails_is_kept_as_a_hook},
    {"signals_that_fail_are_kept_as_hooks", test_signals_that_fail_are_kept_as_hooks},
    {"restarts_are_told_apart_by_incarnation", test_restarts_are_told_apart_by_incarnation},
    {"the_last_ones_are_kept_the_newest_first", test_the_last_ones_are_kept_the_newest_first},
    {"nothing_is_kept_while_nobody_asked", test_nothing_is_kept_while_nobody_asked},
};

int main(int argc, char **argv)
{
    rig_current = &rig_worlds[1];
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
