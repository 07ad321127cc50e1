/* Goal: the doctor finds what is wrong with supervisors, in their specs and in how often they
 * restart, and names who it is. Method: for every rule a supervisor that breaks it. */
/* Specs are the same everywhere; not on: pinned pool */
/* program of its own: it sees cmd/client, which the other tests of this folder must not. */
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
    EXAMINE_UNTIL(index_of(p->answer, "gave-up") >= 0, p);
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

/* What is advised after the finding of a rule. */
static const char *advice_of(const program *p, const char *rule)
{
    char path[64];
    (void)snprintf(path, sizeof path, "findings.%d.advice", index_of(p->answer, rule));
    return text_at(p->answer, path);
}

static size_t findings_of(const program *p, const char *rule)
{
    char word[80];
    size_t count = 0;
    (void)snprintf(word, sizeof word, "\"rule\":\"%s\"", rule);
    for (const char *at = p->answer; (at = strstr(at, word)) != NULL; at++) {
        count++;
    }
    return count;
}

/* Has one of three siblings fail so often; the last one is restarted as often. */
static program *fail_among_siblings(const jzx_supervisor_spec *spec, unsigned failures, one *state,
                                    jzx_actor_id *out_sup, jzx_actor_id *out_shaky)
{
    program *p = program_open();
    jzx_child_spec children[] = {
        {.id = "before", .behavior = idle, .flags = JZX_SPAWN_STATELESS},
        {.id = "shaky", .behavior = behave, .init = begin, .arg = state},
        {.id = "after", .behavior = idle, .flags = JZX_SPAWN_STATELESS},
    };
    *out_sup = supervise(p, spec, children, 3);
    program_run(p);
    UNTIL(actor_at(p->answer, "actor.id") != 0, p, "\"op\":\"actor\",\"actor\":\"shaky\"}");
    *out_shaky = actor_at(p->answer, "actor.id");
    for (unsigned i = 0; i < failures; i++) {
        tell(p, *out_shaky, FAIL);
        wait_handled(state, i + 1);
        UNTIL(number_at(p->answer, "actor.incarnation") == (long)i + 2 &&
                  strcmp(text_at(p->answer, "actor.state"), "running") == 0,
              p, "\"op\":\"actor\",\"actor\":\"after\"}");
    }
    return p;
}

/* Siblings that were only taken along have as many restarts as who failed, and are not blamed. */
static void test_who_was_restarted_along_is_not_blamed(void)
{
    static const uint32_t strategies[] = {JZX_ONE_FOR_ALL, JZX_REST_FOR_ONE};
    for (size_t i = 0; i < 2; i++) {
        one state = {0};
        jzx_actor_id sup, shaky;
        const jzx_supervisor_spec spec = {
            .strategy = strategies[i], .intensity = 1000, .period_ms = 600000};
        program *p = fail_among_siblings(&spec, 11, &state, &sup, &shaky);
        check_found(p, "crash-loop", "warning", shaky, "shaky failed or ended, and was restarted",
                    "fails-again-and-again");
        CHECK_EQ(findings_of(p, "crash-loop"), 1);
        CHECK_EQ(findings_of(p, "fails-again-and-again"), 1);
        CHECK(strstr(p->answer, "siblings were restarted along with it") != NULL);
        CHECK(strstr(advice_of(p, "crash-loop"), "backoff_min_ms") != NULL);
        program_close(p);
    }
}

static void test_a_backoff_is_advised_to_who_has_none(void)
{
    for (uint32_t backoff_ms = 0; backoff_ms < 2; backoff_ms++) {
        one state = {0};
        jzx_actor_id sup, shaky;
        jzx_supervisor_spec spec = {.strategy = JZX_ONE_FOR_ALL,
                                    .intensity = 20,
                                    .period_ms = 600000,
                                    .backoff_min_ms = backoff_ms,
                                    .backoff_max_ms = backoff_ms};
        program *p = fail_among_siblings(&spec, 11, &state, &sup, &shaky);
        EXAMINE_UNTIL(findings_of(p, "crash-loop") == 1 && findings_of(p, "restarts-often") == 1,
                      p);
        bool advised = strstr(advice_of(p, "crash-loop"), "backoff_min_ms") != NULL;
        CHECK_EQ(advised, backoff_ms == 0);
        advised = strstr(advice_of(p, "restarts-often"), "backoff_min_ms") != NULL;
        CHECK_EQ(advised, backoff_ms == 0);
        CHECK(strstr(p->answer, "; the last was shaky, and others went along.") != NULL);
        program_close(p);
    }
}

static const jzt_test tests[] = {
    {"live_specs_are_linted_and_each_rule_has_a_name",
     test_live_specs_are_linted_and_each_rule_has_a_name},
    {"a_supervisor_without_children_is_noted", test_a_supervisor_without_children_is_noted},
    {"supervisors_are_looked_at_however_many_there_are",
     test_supervisors_are_looked_at_however_many_there_are},
    {"restarts_that_come_often_are_told_before_it_gives_up",
     test_restarts_that_come_often_are_told_before_it_gives_up},
    {"who_was_restarted_along_is_not_blamed", test_who_was_restarted_along_is_not_blamed},
    {"a_backoff_is_advised_to_who_has_none", test_a_backoff_is_advised_to_who_has_none},
    {"an_actor_that_was_restarted_many_times_is_told",
     test_an_actor_that_was_restarted_many_times_is_told},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
