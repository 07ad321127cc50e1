/* Goal: `doctor` finds what is wrong with supervisors, in their specs and in how often they
 * restart, and names who it is. Method: for every rule a supervisor that breaks it. */
/* Specs are the same everywhere; not on: pinned pool */
#define _GNU_SOURCE
#include "doctor_fixture.h"

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
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
