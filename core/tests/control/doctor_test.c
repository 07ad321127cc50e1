/* Goal: the doctor finds each of the mistakes it knows in actors and programs, names who made it,
 * and finds nothing in a program that does well. Method: for every rule a program that has it; the
 * one that does well has the same actors without. The supervisors' are in
 * doctor_specs_test.c. not on: pinned pool */
/* program of its own: it sees cmd/client, which the other tests of this folder must not. */
#define _GNU_SOURCE
#include "doctor_fixture.h"

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
    EXAMINE_UNTIL(
        index_of(p->answer, "full-mailbox") >= 0 && index_of(p->answer, "tiny-mailbox") >= 0, p);
    char path[64];
    (void)snprintf(path, sizeof path, "findings.%d.actor", index_of(p->answer, "full-mailbox"));
    CHECK_EQ(actor_at(p->answer, path), stuck.id);
    (void)snprintf(path, sizeof path, "findings.%d.actor", index_of(p->answer, "tiny-mailbox"));
    CHECK_EQ(actor_at(p->answer, path), tiny.id);
    atomic_store(&stuck.released, true);
    EXAMINE_UNTIL(index_of(p->answer, "full-mailbox") < 0, p);
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
    EXAMINE_UNTIL(index_of(p->answer, "dead-letters") >= 0, p);
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
    tell(p, asker.id, ASK_OFTEN);
    wait_handled(&slow, OFTEN);
    tell(p, asker.id, END);
    tell(p, slow.id, ANSWER_ALL);
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
    EXAMINE_UNTIL(count_at(p->answer, "silent") == 0 && index_of(p->answer, "stuck") < 0, p);
    jzx_watchdog_stop(dog);
    program_close(p);
}

static void test_a_dispatcher_that_does_not_answer_is_an_error_before_somebody_counts_as_stuck(void)
{
    program *p = program_open();
    one slow = {0};
    spawn(p, &slow, (jzx_spawn_opts){0});
    program_run(p);
    EXAMINE_UNTIL(count_at(p->answer, "findings") == 0, p);
    tell(p, slow.id, STAY);
    EXAMINE_UNTIL(count_at(p->answer, "findings") > 0, p);
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
    EXAMINE_UNTIL(count_at(p->answer, "findings") == 1, p);
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
        EXAMINE_UNTIL(count_at(p->answer, "findings") == 0, p);
        jzx_crash_guard_remove();
        EXAMINE_UNTIL(count_at(p->answer, "findings") == 1, p);
    }
    tell(p, guarded.id, END); /* nobody wants it any more */
    EXAMINE_UNTIL(count_at(p->answer, "findings") == 0, p);
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
    examine(p);
    CHECK(index_of(p->answer, "not-run") >= 0);
    CHECK(index_of(p->answer, "pool-of-one") >= 0 || sysconf(_SC_NPROCESSORS_ONLN) == 1);
    program_close(p);
}

/* However many there are, the answer stays short, and says that it is not all. */
static void test_a_mistake_of_very_many_actors_is_a_short_answer(void)
{
    enum { MANY = 20000 };
    program *p = program_open();
    one tiny = {0};
    for (int i = 0; i < MANY; i++) {
        spawn(p, &tiny, (jzx_spawn_opts){.mailbox_cap = 1});
    }
    for (int i = 0; i < 40; i++) {
        (void)supervise(p, NULL, NULL, 0);
    }
    program_run(p);
    UNTIL(count_at(p->answer, "families") == 16, p, JZD_QUESTION "}");
    CHECK_EQ(count_at(p->answer, "actors"), 16);
    CHECK_STR(text_at(p->answer, "cut"), "true");
    CHECK(strlen(p->answer) < 16384);
    EXAMINE_UNTIL(index_of(p->answer, "no-children") >= 0, p);
    CHECK_EQ(count_at(p->answer, "findings"), 32);
    CHECK_STR(text_at(p->answer, "cut"), "true");
    program_close(p);
}

/* Without limits all is told, up to what an answer has room for. */
static void test_limits_of_a_request_for_facts_are_the_clients(void)
{
    program *p = program_open();
    one plain = {0}, small = {0};
    spawn(p, &plain, (jzx_spawn_opts){.mailbox_cap = 64});
    spawn(p, &small, (jzx_spawn_opts){.mailbox_cap = 2});
    program_run(p);
    UNTIL(count_at(p->answer, "actors") == 0, p, "\"op\":\"facts\",\"mailbox_percent\":90}");
    CHECK_STR(text_at(p->answer, "cut"), "false");
    (void)ask(p, "\"op\":\"facts\",\"mailbox_percent\":90,\"cap_max\":2}");
    REQUIRE_EQ(count_at(p->answer, "actors"), 1);
    CHECK_EQ(actor_at(p->answer, "actors.0.actor"), small.id);
    CHECK_EQ(number_at(p->answer, "actors.0.cap"), 2);
    (void)ask(p, "\"op\":\"facts\"}");
    CHECK_EQ(count_at(p->answer, "actors"), 2);
    CHECK_STR(text_at(ask(p, "\"op\":\"facts\",\"mailbox_percent\":101}"), "error"), "BAD_REQUEST");
    CHECK_STR(text_at(ask(p, "\"op\":\"facts\",\"ask_ms\":\"soon\"}"), "error"), "BAD_REQUEST");
    CHECK_STR(text_at(ask(p, "\"op\":\"doctor\"}"), "error"), "UNKNOWN_OP");
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
    EXAMINE_UNTIL(strcmp(text_at(p->answer, "findings"), "[]") == 0, p);
    CHECK_STR(text_at(p->answer, "silent"), "[]");
    program_close(p);
}

static const jzt_test tests[] = {
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
    {"a_mistake_of_very_many_actors_is_a_short_answer",
     test_a_mistake_of_very_many_actors_is_a_short_answer},
    {"limits_of_a_request_for_facts_are_the_clients",
     test_limits_of_a_request_for_facts_are_the_clients},
    {"a_program_that_does_well_has_no_findings", test_a_program_that_does_well_has_no_findings},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
