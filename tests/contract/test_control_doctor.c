/* Goal: `doctor` finds each of the mistakes it knows, names who made it, and finds nothing in a
 * program that does well. Method: for every rule a program that has it; the one that does well has
 * the same actors without.
 * not on: pinned pool */
#define _GNU_SOURCE
#include "look_fixture.h"

enum {
    NOTHING = 1,
    ASK_A_WHILE,
    END,
    STAY,
    SLEEP,
    BURST,
    FAIL,
    KEEP,
    ASK_FOR_EVER,
    FORGET,
    BREED,
    LATE,
    ANSWER,
    BURST_AND_KILL
};

typedef struct one {
    jzx_actor_id id;
    jzx_actor_id peer;
    atomic_bool released;
    atomic_uint handled;
    uint32_t children;
    uint32_t child_stop_ms;
} one;

static jzx_behavior_result idle(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static void breed(jzx_context *ctx, const one *self)
{
    for (uint32_t i = 0; i < self->children; i++) {
        CHECK_OK(jzx_spawn(
            ctx->loop, &(jzx_spawn_opts){.behavior = idle, .stop_timeout_ms = self->child_stop_ms},
            NULL));
    }
}

/* Asks with hardly any time, and gets its answer too late. */
static void ask_in_a_hurry(jzx_context *ctx, const one *self)
{
    for (int i = 0; i < 30; i++) {
        CHECK_OK(jzx_ask(ctx->loop, self->peer,
                         &(jzx_ask_opts){.tag = LATE, .flags = JZX_SEND_VALUE, .timeout_ms = 2},
                         NULL));
    }
}

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    one *self = ctx->state;
    switch (msg->tag) {
    case STAY:
        while (!atomic_load(&self->released)) {
        }
        break;
    case SLEEP:
        nanosleep(&(struct timespec){.tv_nsec = 110000000}, NULL);
        break;
    case BURST: /* more than it can take */
    case BURST_AND_KILL:
        for (int i = 0; i < 400; i++) {
            jzx_err err = jzx_send_u64(ctx->loop, self->peer, 0, NOTHING);
            CHECK(err == JZX_OK || err == JZX_ERR_MAILBOX_FULL);
        }
        if (msg->tag == BURST_AND_KILL) {
            CHECK_OK(jzx_kill(ctx->loop, self->peer));
        }
        break;
    case FAIL:
        atomic_fetch_add(&self->handled, 1);
        return JZX_BEHAVIOR_FAIL;
    case KEEP:
        CHECK(jzx_request_keep(ctx) != 0);
        break;
    case ASK_FOR_EVER:
    case ASK_A_WHILE:
        CHECK_OK(jzx_ask(
            ctx->loop, self->peer,
            &(jzx_ask_opts){.tag = KEEP,
                            .flags = JZX_SEND_VALUE,
                            .timeout_ms = msg->tag == ASK_A_WHILE ? 60000 : JZX_ASK_NO_TIMEOUT},
            NULL));
        break;
    case END:
        return JZX_BEHAVIOR_STOP;
    case BREED:
        breed(ctx, self);
        break;
    case FORGET: /* data that nobody can release, to one who is not there to take it */
        CHECK_OK(jzx_send(ctx->loop, self->peer, self, 1, NOTHING));
        CHECK_OK(jzx_kill(ctx->loop, self->peer));
        break;
    case LATE:
        if (jzx_is_ask(ctx)) { /* kept until nobody wants it any more */
            CHECK_OK(jzx_timer_start(ctx->loop, ctx->self,
                                     &(jzx_timer_opts){.delay_ms = 20,
                                                       .tag = ANSWER,
                                                       .flags = JZX_TIMER_VALUE,
                                                       .u64 = jzx_request_keep(ctx)},
                                     NULL));
        } else {
            ask_in_a_hurry(ctx, self);
        }
        break;
    case ANSWER:
        (void)jzx_reply_u64(ctx, msg->u64, 1, NOTHING);
        break;
    default:
        break;
    }
    if (msg->kind != JZX_KIND_REPLY) {
        atomic_fetch_add(&self->handled, 1);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

static void spawn(program *p, one *self, jzx_spawn_opts opts)
{
    opts.behavior = behave;
    opts.state = self;
    REQUIRE_OK(jzx_spawn(p->loop, &opts, &self->id));
}

static void tell(program *p, jzx_actor_id id, uint32_t tag)
{
    REQUIRE_OK(jzx_send_async_u64(p->sender, id, 0, tag));
}

static void wait_handled(const one *self, unsigned count)
{
    uint64_t end = now_ms() + 20000;
    while (atomic_load(&self->handled) < count && now_ms() < end) {
        nap();
    }
    REQUIRE(atomic_load(&self->handled) >= count);
}

/* Where a rule is among the findings; -1: it is not. */
static int index_of(const char *answer, const char *rule)
{
    size_t count = count_at(answer, "findings");
    for (size_t i = 0; i < count; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "findings.%zu.rule", i);
        if (strcmp(text_at(answer, path), rule) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* Asks until the rule is found, and checks what is said of it. Only it is found, and `besides`. */
static void check_found(program *p, const char *rule, const char *severity, jzx_actor_id actor,
                        const char *word, const char *besides)
{
    UNTIL(index_of(p->answer, rule) >= 0, p, "\"op\":\"doctor\"}");
    char path[64];
    int at = index_of(p->answer, rule);
    (void)snprintf(path, sizeof path, "findings.%d.severity", at);
    CHECK_STR(text_at(p->answer, path), severity);
    (void)snprintf(path, sizeof path, "findings.%d.actor", at);
    CHECK_EQ(actor_at(p->answer, path), actor);
    (void)snprintf(path, sizeof path, "findings.%d.text", at);
    if (strstr(text_at(p->answer, path), word) == NULL) {
        CHECK_STR(text_at(p->answer, path), word);
    }
    const char *text = text_at(p->answer, path);
    CHECK_EQ(text[strlen(text) - 1], '.');
    (void)snprintf(path, sizeof path, "findings.%d.advice", at);
    text = text_at(p->answer, path);
    CHECK(strlen(text) > 10 && text[strlen(text) - 1] == '.');
    for (size_t i = 0; i < count_at(p->answer, "findings"); i++) {
        (void)snprintf(path, sizeof path, "findings.%zu.rule", i);
        text = text_at(p->answer, path);
        if (strcmp(text, rule) != 0 && strcmp(text, besides) != 0) {
            CHECK_STR(text, rule);
        }
    }
}

/* Supervisors. */

static jzx_actor_id supervise(program *p, const jzx_supervisor_spec *spec,
                              const jzx_child_spec *children, size_t count)
{
    jzx_actor_id sup = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn_supervisor(
        p->loop,
        &(jzx_supervisor_init){
            .name = "sup", .spec = spec, .children = children, .child_count = count},
        &sup));
    return sup;
}

static one shared;
static const jzx_child_spec steady = {
    .id = "steady", .behavior = behave, .init = begin, .arg = &shared};

/* One row per rule of the lint: a spec that breaks it. */
static void check_spec(const char *rule, const char *word, const jzx_supervisor_spec *spec,
                       const jzx_child_spec *children, size_t count)
{
    program *p = program_open();
    jzx_actor_id sup = supervise(p, spec, children, count);
    program_run(p);
    check_found(p, rule, "warning", sup, word, "");
    program_close(p);
}

static void test_live_specs_are_linted_and_each_rule_has_a_name(void)
{
    const jzx_supervisor_spec fast = {.intensity = 100, .period_ms = 1000};
    check_spec("no-backoff", "Child steady: it may be restarted more than 10 times", &fast, &steady,
               1);
    const jzx_supervisor_spec slow = {.intensity = 5, .period_ms = 1000, .backoff_min_ms = 1000};
    check_spec("limit-unreachable", "never reaches the limit", &slow, &steady, 1);
    jzx_child_spec endless = steady;
    endless.shutdown_ms = JZX_SHUTDOWN_INFINITE;
    check_spec("endless-shutdown", "shutdown_ms is infinite", NULL, &endless, 1);
    const jzx_supervisor_spec all = {.strategy = JZX_ONE_FOR_ALL};
    jzx_child_spec pair[2] = {steady, steady};
    pair[1].id = "guest";
    pair[1].mode = JZX_TEMPORARY;
    check_spec("temporary-bystander", "Child guest", &all, pair, 2);
    const jzx_supervisor_spec automatic = {.auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT};
    check_spec("auto-shutdown-useless", "Auto_shutdown has no effect", &automatic, &steady, 1);
    const jzx_supervisor_spec dynamic = {.strategy = JZX_DYNAMIC};
    check_spec("permanent-dynamic", "dynamic supervisor are permanent", &dynamic, &steady, 1);
    const jzx_supervisor_init nested = {.name = "below", .children = &steady, .child_count = 1};
    jzx_child_spec below = {.id = "below", .supervisor = &nested, .shutdown_ms = 100};
    check_spec("shutdown-too-short", "shutdown_ms is 100", NULL, &below, 1);
    below.shutdown_ms = JZX_SHUTDOWN_BRUTAL;
    check_spec("brutal-supervisor", "Child below: shutdown_ms is brutal", NULL, &below, 1);
    below.shutdown_ms = 0;
    below.mode = JZX_TEMPORARY;
    check_spec("supervisor-mode", "temporary", NULL, &below, 1);
    jzx_child_spec own = steady;
    own.intensity = 5;
    own.period_ms = 1000;
    const jzx_supervisor_spec mild = {.intensity = 4, .period_ms = 60000};
    check_spec("child-limit-useless", "its own intensity has no effect", &mild, &own, 1);
    const jzx_supervisor_spec patient = {
        .intensity = 20, .period_ms = 600000, .backoff_min_ms = 1000, .backoff_max_ms = 1000};
    check_spec("child-limit-unreachable", "its own intensity is never reached", &patient, &own, 1);
}

static void test_a_supervisor_without_children_is_noted(void)
{
    program *p = program_open();
    jzx_actor_id sup = supervise(p, NULL, NULL, 0);
    program_run(p);
    check_found(p, "no-children", "note", sup, "no children", "");
    program_close(p);
}

static void test_supervisors_are_looked_at_however_many_there_are(void)
{
    program *p = program_open();
    for (int i = 0; i < 70; i++) {
        (void)supervise(p, NULL, &steady, 1);
    }
    jzx_actor_id last = supervise(p, NULL, NULL, 0);
    program_run(p);
    check_found(p, "no-children", "note", last, "no children", "");
    CHECK_EQ(count_at(p->answer, "findings"), 1);
    program_close(p);
}

static void test_restarts_that_come_often_are_told_before_it_gives_up(void)
{
    program *p = program_open();
    one state = {0};
    jzx_child_spec shaky = {.id = "shaky", .behavior = behave, .init = begin, .arg = &state};
    const jzx_supervisor_spec spec = {.intensity = 3, .period_ms = 60000};
    jzx_actor_id sup = supervise(p, &spec, &shaky, 1);
    program_run(p);
    UNTIL(actor_at(p->answer, "detail.supervision.children.0.id") != 0, p,
          "\"op\":\"actor\",\"actor\":\"sup\"}");
    jzx_actor_id child = actor_at(p->answer, "detail.supervision.children.0.id");
    for (unsigned i = 0; i < 3; i++) {
        tell(p, child, FAIL);
        wait_handled(&state, i + 1);
    }
    check_found(p, "restarts-often", "warning", sup,
                "times within 60000 ms, and it gives up after 3", "fails-again-and-again");
    check_found(p, "fails-again-and-again", "warning", sup, "Child shaky has failed 3 times",
                "restarts-often");
    tell(p, child, FAIL);
    UNTIL(index_of(p->answer, "gave-up") >= 0, p, "\"op\":\"doctor\"}");
    program_close(p);
}

static void test_an_actor_that_was_restarted_many_times_is_told(void)
{
    program *p = program_open();
    one state = {0};
    jzx_child_spec shaky = {.id = "shaky", .behavior = behave, .init = begin, .arg = &state};
    const jzx_supervisor_spec spec = {
        .intensity = 1000, .period_ms = 600000, .backoff_min_ms = 1, .backoff_max_ms = 1};
    (void)supervise(p, &spec, &shaky, 1);
    program_run(p);
    UNTIL(actor_at(p->answer, "actor.id") != 0, p, "\"op\":\"actor\",\"actor\":\"shaky\"}");
    jzx_actor_id child = actor_at(p->answer, "actor.id");
    for (unsigned i = 0; i < 11; i++) {
        tell(p, child, FAIL);
        wait_handled(&state, i + 1);
    }
    UNTIL(number_at(p->answer, "actor.incarnation") == 12, p,
          "\"op\":\"actor\",\"actor\":\"shaky\"}");
    check_found(p, "crash-loop", "warning", child, "restarted 11 times", "fails-again-and-again");
    program_close(p);
}

/* Plain actors. */

static void test_a_child_that_may_take_longer_to_stop_than_its_parent_is_told(void)
{
    program *p = program_open();
    one parent = {.children = 1, .child_stop_ms = 9000};
    spawn(p, &parent, (jzx_spawn_opts){.stop_timeout_ms = 100, .name = "parent"});
    program_run(p);
    tell(p, parent.id, BREED);
    check_found(p, "shutdown-too-short", "warning", parent.id, "shorter than that of its child",
                "");
    program_close(p);
}

static void test_a_plain_parent_of_very_many_is_noted(void)
{
    program *p = program_open();
    one parent = {.children = 1000};
    spawn(p, &parent, (jzx_spawn_opts){.name = "parent"});
    program_run(p);
    tell(p, parent.id, BREED);
    check_found(p, "wide-parent", "note", parent.id, "parent of 1000 actors", "");
    program_close(p);
}

static void test_a_mailbox_that_stays_full_and_one_for_a_single_message_are_told(void)
{
    program *p = program_open();
    one stuck = {0}, tiny = {0};
    spawn(p, &stuck, (jzx_spawn_opts){.mailbox_cap = 16, .dispatcher = "pinned"});
    spawn(p, &tiny, (jzx_spawn_opts){.mailbox_cap = 1});
    program_run(p);
    tell(p, stuck.id, STAY);
    while (jzx_send_async_u64(p->sender, stuck.id, 0, NOTHING) == JZX_OK) {
    }
    UNTIL(index_of(p->answer, "full-mailbox") >= 0 && index_of(p->answer, "tiny-mailbox") >= 0, p,
          "\"op\":\"doctor\"}");
    char path[64];
    (void)snprintf(path, sizeof path, "findings.%d.actor", index_of(p->answer, "full-mailbox"));
    CHECK_EQ(actor_at(p->answer, path), stuck.id);
    (void)snprintf(path, sizeof path, "findings.%d.actor", index_of(p->answer, "tiny-mailbox"));
    CHECK_EQ(actor_at(p->answer, path), tiny.id);
    atomic_store(&stuck.released, true);
    UNTIL(index_of(p->answer, "full-mailbox") < 0, p, "\"op\":\"doctor\"}");
    program_close(p);
}

static void test_messages_that_are_dropped_or_refused_are_told(void)
{
    program *p = program_open();
    one drops = {0}, refuses = {0}, sender = {0}, other = {0};
    spawn(p, &drops, (jzx_spawn_opts){.mailbox_cap = 8, .full_policy = JZX_FULL_DROP_OLDEST});
    spawn(p, &refuses, (jzx_spawn_opts){.mailbox_cap = 8});
    spawn(p, &sender, (jzx_spawn_opts){0});
    spawn(p, &other, (jzx_spawn_opts){0});
    sender.peer = drops.id;
    other.peer = refuses.id;
    program_run(p);
    tell(p, sender.id, BURST);
    tell(p, other.id, BURST);
    wait_handled(&drops, 8);
    wait_handled(&refuses, 8);
    UNTIL(index_of(p->answer, "dead-letters") >= 0, p, "\"op\":\"doctor\"}");
    char path[64];
    (void)snprintf(path, sizeof path, "findings.%d.actor", index_of(p->answer, "dead-letters"));
    CHECK_EQ(actor_at(p->answer, path), drops.id);
    CHECK(index_of(p->answer, "drops") >= 0);
    CHECK(index_of(p->answer, "refused-sends") >= 0);
    CHECK(index_of(p->answer, "dead-letter-rate") < 0);
    program_close(p);
}

static void test_data_that_nobody_can_release_is_told(void)
{
    program *p = program_open();
    one loses = {0}, sender = {0};
    spawn(p, &loses, (jzx_spawn_opts){0});
    spawn(p, &sender, (jzx_spawn_opts){0});
    sender.peer = loses.id;
    program_run(p);
    tell(p, sender.id, FORGET);
    check_found(p, "lost-data", "warning", JZX_NOBODY, "of 1 dead messages", "");
    program_close(p);
}

static void test_messages_that_nobody_handles_are_told(void)
{
    program *p = program_open();
    one ends = {0}, sender = {0};
    spawn(p, &ends, (jzx_spawn_opts){0});
    spawn(p, &sender, (jzx_spawn_opts){0});
    sender.peer = ends.id;
    program_run(p);
    tell(p, sender.id, BURST_AND_KILL);
    check_found(p, "dead-letter-rate", "warning", JZX_NOBODY, "400 messages", "");
    program_close(p);
}

static void test_an_ask_that_may_wait_for_ever_is_told(void)
{
    program *p = program_open();
    one asker = {0}, other = {0}, keeper = {0};
    spawn(p, &keeper, (jzx_spawn_opts){0});
    spawn(p, &asker, (jzx_spawn_opts){0});
    spawn(p, &other, (jzx_spawn_opts){0});
    asker.peer = other.peer = keeper.id;
    program_run(p);
    tell(p, other.id, ASK_A_WHILE);
    tell(p, asker.id, ASK_FOR_EVER);
    check_found(p, "ask-without-deadline", "warning", asker.id, "without a deadline", "");
    CHECK_EQ(count_at(p->answer, "findings"), 1);
    program_close(p);
}

static void test_answers_that_come_too_late_are_told(void)
{
    program *p = program_open();
    one asker = {0}, slow = {0};
    spawn(p, &slow, (jzx_spawn_opts){0});
    spawn(p, &asker, (jzx_spawn_opts){0});
    asker.peer = slow.id;
    program_run(p);
    tell(p, asker.id, LATE);
    check_found(p, "late-replies", "warning", JZX_NOBODY, "when nobody waited", "");
    program_close(p);
}

/* Time. */

static void test_who_keeps_its_dispatcher_is_told_and_that_no_watchdog_is_there(void)
{
    program *p = program_open();
    one slow = {0};
    spawn(p, &slow, (jzx_spawn_opts){.name = "slow"});
    program_run(p);
    for (unsigned i = 0; i < 6; i++) {
        tell(p, slow.id, SLEEP);
    }
    wait_handled(&slow, 6);
    check_found(p, "blocking-behavior", "warning", slow.id, "for over 100 ms", "no-watchdog");
    CHECK(index_of(p->answer, "no-watchdog") >= 0);
    program_close(p);
}

static void hear_nothing(void *ctx, const jzx_stuck_report *report)
{
    (void)ctx;
    (void)report;
}

static void test_who_is_stuck_is_an_error_and_comes_first(void)
{
    program *p = program_open();
    one stuck = {0}, tiny = {0};
    jzx_watchdog *dog = NULL;
    spawn(p, &tiny, (jzx_spawn_opts){.mailbox_cap = 1});
    spawn(p, &stuck, (jzx_spawn_opts){.name = "stuck"});
    REQUIRE_OK(jzx_watchdog_start(p->loop, &(jzx_watchdog_opts){.on_stuck = hear_nothing}, &dog));
    program_run(p);
    tell(p, stuck.id, STAY);
    check_found(p, "stuck", "error", stuck.id, "keeps dispatcher loop", "tiny-mailbox");
    CHECK_EQ(index_of(p->answer, "stuck"), 0);
    CHECK_STR(text_at(p->answer, "silent.0"), "loop");
    atomic_store(&stuck.released, true);
    UNTIL(count_at(p->answer, "silent") == 0 && index_of(p->answer, "stuck") < 0, p,
          "\"op\":\"doctor\"}");
    jzx_watchdog_stop(dog);
    program_close(p);
}

static void test_a_dispatcher_that_does_not_answer_is_an_error_before_somebody_counts_as_stuck(void)
{
    program *p = program_open();
    one slow = {0};
    spawn(p, &slow, (jzx_spawn_opts){0});
    program_run(p);
    UNTIL(count_at(p->answer, "findings") == 0, p, "\"op\":\"doctor\"}");
    tell(p, slow.id, STAY);
    UNTIL(count_at(p->answer, "findings") > 0, p, "\"op\":\"doctor\"}");
    if (index_of(p->answer, "stuck") < 0) { /* else this machine is too slow to see it before */
        CHECK_EQ(index_of(p->answer, "not-answering"), 0);
        CHECK_STR(text_at(p->answer, "findings.0.severity"), "error");
        CHECK_STR(text_at(p->answer, "findings.0.text"),
                  "Dispatcher loop did not answer within 150 ms.");
    }
    atomic_store(&slow.released, true);
    program_close(p);
}

/* Programs. */

static void test_names_that_differ_in_case_only_are_noted(void)
{
    program *p = program_open();
    one a = {0}, b = {0}, c = {0};
    spawn(p, &a, (jzx_spawn_opts){0});
    spawn(p, &b, (jzx_spawn_opts){0});
    spawn(p, &c, (jzx_spawn_opts){0});
    REQUIRE_OK(jzx_register(p->loop, "cache", a.id));
    REQUIRE_OK(jzx_register(p->loop, "Cache", b.id));
    REQUIRE_OK(jzx_register(p->loop, "cache2", c.id));
    program_run(p);
    UNTIL(count_at(p->answer, "findings") == 1, p, "\"op\":\"doctor\"}");
    CHECK_STR(text_at(p->answer, "findings.0.rule"), "similar-names");
    CHECK_STR(text_at(p->answer, "findings.0.text"),
              "The registered names \\\"Cache\\\" and \\\"cache\\\" differ in case only.");
    program_close(p);
}

static void test_a_guard_that_is_wanted_and_not_installed_is_told(void)
{
    program *p = program_open();
    one guarded = {0}, other = {0};
    spawn(p, &other, (jzx_spawn_opts){0}); /* so that the run goes on */
    spawn(p, &guarded, (jzx_spawn_opts){.flags = JZX_SPAWN_CRASH_GUARD});
    program_run(p);
    check_found(p, "no-crash-guard", "warning", JZX_NOBODY, "not installed", "");
    if (jzx_crash_guard_install() == JZX_OK) {
        UNTIL(count_at(p->answer, "findings") == 0, p, "\"op\":\"doctor\"}");
        jzx_crash_guard_remove();
        UNTIL(count_at(p->answer, "findings") == 1, p, "\"op\":\"doctor\"}");
    }
    tell(p, guarded.id, END); /* nobody wants it any more */
    UNTIL(count_at(p->answer, "findings") == 0, p, "\"op\":\"doctor\"}");
    program_close(p);
}

static void test_a_pool_of_one_and_a_loop_that_nobody_runs_are_noted(void)
{
    program *p = calloc(1, sizeof *p);
    one self = {0};
    const jzx_dispatcher_spec spec = {.name = "lonely", .kind = JZX_DISPATCHER_POOL, .workers = 1};
    p->fd = -1;
    REQUIRE_OK(jzx_system_create(&(jzx_system_config){.dispatchers = &spec, .dispatcher_count = 1},
                                 &p->system));
    p->loop = jzx_system_loop(p->system);
    spawn(p, &self, (jzx_spawn_opts){0});
    program_serve(p);
    (void)ask(p, "\"op\":\"doctor\"}");
    CHECK(index_of(p->answer, "not-run") >= 0);
    CHECK(index_of(p->answer, "pool-of-one") >= 0 || sysconf(_SC_NPROCESSORS_ONLN) == 1);
    program_close(p);
}

static void test_a_program_that_does_well_has_no_findings(void)
{
    program *p = program_open();
    one actors[8] = {0}, family = {.children = 10};
    jzx_child_spec children[2] = {steady, steady};
    children[1].id = "other";
    children[1].dispatcher = "pool";
    const jzx_supervisor_spec strict = {.intensity = 1, .period_ms = 60000};
    const jzx_supervisor_init nested = {
        .name = "below", .spec = &strict, .children = children, .child_count = 2};
    jzx_child_spec below = {.id = "below", .supervisor = &nested};
    (void)supervise(p, NULL, &below, 1);
    for (size_t i = 0; i < COUNT_OF(actors); i++) {
        spawn(p, &actors[i], (jzx_spawn_opts){.dispatcher = i % 2 == 0 ? NULL : "pinned"});
    }
    actors[0].peer = actors[2].id;
    spawn(p, &family, (jzx_spawn_opts){.name = "family"});
    REQUIRE_OK(jzx_register(p->loop, "family", family.id));
    program_run(p);
    tell(p, family.id, BREED);
    tell(p, actors[0].id, BURST); /* fits into its mailbox */
    wait_handled(&family, 1);
    wait_handled(&actors[2], 400);
    UNTIL(actor_at(p->answer, "actor.id") != 0, p, "\"op\":\"actor\",\"actor\":\"other\"}");
    tell(p, actor_at(p->answer, "actor.id"), FAIL); /* once is nothing */
    UNTIL(number_at(p->answer, "actor.incarnation") == 2, p,
          "\"op\":\"actor\",\"actor\":\"other\"}");
    /* On a machine with much to do a dispatcher may be late; what is really wrong stays. */
    UNTIL(strcmp(text_at(p->answer, "findings"), "[]") == 0, p, "\"op\":\"doctor\"}");
    CHECK_STR(text_at(p->answer, "silent"), "[]");
    program_close(p);
}

static const jzt_test tests[] = {
    {"live_specs_are_linted_and_each_rule_has_a_name",
     test_live_specs_are_linted_and_each_rule_has_a_name},
    {"a_supervisor_without_children_is_noted", test_a_supervisor_without_children_is_noted},
    {"supervisors_are_looked_at_however_many_there_are",
     test_supervisors_are_looked_at_however_many_there_are},
    {"restarts_that_come_often_are_told_before_it_gives_up",
     test_restarts_that_come_often_are_told_before_it_gives_up},
    {"an_actor_that_was_restarted_many_times_is_told",
     test_an_actor_that_was_restarted_many_times_is_told},
    {"a_child_that_may_take_longer_to_stop_than_its_parent_is_told",
     test_a_child_that_may_take_longer_to_stop_than_its_parent_is_told},
    {"a_plain_parent_of_very_many_is_noted", test_a_plain_parent_of_very_many_is_noted},
    {"a_mailbox_that_stays_full_and_one_for_a_single_message_are_told",
     test_a_mailbox_that_stays_full_and_one_for_a_single_message_are_told},
    {"messages_that_are_dropped_or_refused_are_told",
     test_messages_that_are_dropped_or_refused_are_told},
    {"data_that_nobody_can_release_is_told", test_data_that_nobody_can_release_is_told},
    {"messages_that_nobody_handles_are_told", test_messages_that_nobody_handles_are_told},
    {"an_ask_that_may_wait_for_ever_is_told", test_an_ask_that_may_wait_for_ever_is_told},
    {"answers_that_come_too_late_are_told", test_answers_that_come_too_late_are_told},
    {"who_keeps_its_dispatcher_is_told_and_that_no_watchdog_is_there",
     test_who_keeps_its_dispatcher_is_told_and_that_no_watchdog_is_there},
    {"who_is_stuck_is_an_error_and_comes_first", test_who_is_stuck_is_an_error_and_comes_first},
    {"a_dispatcher_that_does_not_answer_is_an_error_before_somebody_counts_as_stuck",
     test_a_dispatcher_that_does_not_answer_is_an_error_before_somebody_counts_as_stuck},
    {"names_that_differ_in_case_only_are_noted", test_names_that_differ_in_case_only_are_noted},
    {"a_guard_that_is_wanted_and_not_installed_is_told",
     test_a_guard_that_is_wanted_and_not_installed_is_told},
    {"a_pool_of_one_and_a_loop_that_nobody_runs_are_noted",
     test_a_pool_of_one_and_a_loop_that_nobody_runs_are_noted},
    {"a_program_that_does_well_has_no_findings", test_a_program_that_does_well_has_no_findings},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
