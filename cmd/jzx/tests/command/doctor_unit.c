/* Goal: what each fact of a program means: the rule, how grave it is, whom it is about and in which
 * words; and what is just below a limit means nothing. Method: tables of facts. That programs tell
 * these facts is in core/tests/control/doctor_*.c. */
#include "doctor.h"

#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define A "\"actor\":\"100000001\",\"name\":\"a\""

typedef struct row {
    const char *facts;    /* members */
    const char *rule;     /* NULL: none is found */
    const char *severity; /* NULL: warning */
    const char *text;
    const char *advice; /* a part of it; NULL: any */
} row;

static json_t *examine(const char *members)
{
    size_t size = strlen(members) + 16;
    char *text = malloc(size);
    (void)snprintf(text, size, "{%s}", members);
    json_t *facts = json_loads(text, 0, NULL);
    REQUIRE(facts != NULL);
    json_t *answer = jzd_findings(facts);
    REQUIRE(answer != NULL);
    json_decref(facts);
    free(text);
    return answer;
}

static const char *member(const json_t *finding, const char *name)
{
    const char *text = json_string_value(json_object_get(finding, name));
    return text == NULL ? "" : text;
}

static void check_row(const row *one)
{
    json_t *answer = examine(one->facts);
    const json_t *findings = json_object_get(answer, "findings");
    const json_t *first = json_array_get(findings, 0);
    CHECK_EQ(json_array_size(findings), one->rule == NULL ? 0 : 1);
    if (one->rule != NULL) {
        const char *advice = member(first, "advice");
        const char *who = strstr(one->facts, "\"actor\":\"") == NULL ? "" : "100000001";
        CHECK_STR(member(first, "rule"), one->rule);
        CHECK_STR(member(first, "severity"), one->severity == NULL ? "warning" : one->severity);
        CHECK_STR(member(first, "actor"), who);
        CHECK_STR(member(first, "name"), *who == '\0' ? "" : "a");
        CHECK_STR(member(first, "text"), one->text);
        CHECK(*advice != '\0' && advice[strlen(advice) - 1] == '.');
        if (one->advice != NULL && strstr(advice, one->advice) == NULL) {
            CHECK_STR(advice, one->advice);
        }
    }
    CHECK(json_is_false(json_object_get(answer, "cut")));
    json_decref(answer);
}

static void check_rows(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned before = jzt_failures();
        check_row(&rows[i]);
        if (jzt_failures() != before) {
            fprintf(stderr, "    of %s\n", rows[i].facts);
        }
    }
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

#define OF_ACTOR(members) "\"actors\":[{" A "," members "}]"

static void test_actors(void)
{
    static const row rows[] = {
        {OF_ACTOR("\"mailbox\":9,\"cap\":10"), "full-mailbox", NULL,
         "Its mailbox stays full: 9 of 10 messages wait.", "jzx_notify_room()"},
        {OF_ACTOR("\"mailbox\":8,\"cap\":10"), NULL, NULL, NULL, NULL},
        {OF_ACTOR("\"mailbox\":14,\"cap\":16"), NULL, NULL, NULL, NULL},
        {OF_ACTOR("\"mailbox\":16,\"cap\":18"), NULL, NULL, NULL, NULL},
        {OF_ACTOR("\"mailbox\":17,\"cap\":18"), "full-mailbox", NULL,
         "Its mailbox stays full: 17 of 18 messages wait.", NULL},
        {OF_ACTOR("\"mailbox\":0,\"cap\":0"), NULL, NULL, NULL, NULL},
        {OF_ACTOR("\"mailbox\":1,\"cap\":1"), "tiny-mailbox", "note",
         "Its mailbox holds one message: while that waits, all others are refused.", NULL},
        {OF_ACTOR("\"dead\":100,\"accepted\":1009,\"cap\":64"), "dead-letters", NULL,
         "100 of the 1009 messages that it accepted became dead letters.", "jzx dead"},
        {OF_ACTOR("\"dead\":100,\"accepted\":1010,\"cap\":64"), NULL, NULL, NULL, NULL},
        {OF_ACTOR("\"dead\":99,\"accepted\":99,\"cap\":64"), NULL, NULL, NULL, NULL},
        {OF_ACTOR("\"children\":1000,\"cap\":64"), "wide-parent", "note",
         "It is the plain parent of 1000 actors: if one of them fails it is gone, and when this "
         "one ends it waits for all of them.",
         NULL},
        {OF_ACTOR("\"children\":999,\"cap\":64"), NULL, NULL, NULL, NULL},
        {OF_ACTOR("\"children\":1000,\"cap\":64,\"supervisor\":true"), NULL, NULL, NULL, NULL},
        {"\"asks\":[{" A ",\"callee\":\"2\",\"callee_name\":\"b\",\"age_ms\":1000}]",
         "ask-without-deadline", NULL,
         "It asked actor b (2) 1000 ms ago, without a deadline, and has no answer.", "timeout_ms"},
        {"\"asks\":[{" A ",\"callee\":\"2\",\"callee_name\":null,\"age_ms\":1000}]",
         "ask-without-deadline", NULL,
         "It asked actor 2 1000 ms ago, without a deadline, and has no answer.", NULL},
        {"\"asks\":[{" A ",\"callee\":\"2\",\"age_ms\":999}]", NULL, NULL, NULL, NULL},
    };
    CHECK_ROWS(rows);
}

static void test_time(void)
{
    static const row rows[] = {
        {"\"watchdog\":true,\"running\":[{" A ",\"dispatcher\":\"loop\",\"index\":0,\"worker\":1,"
         "\"for_ms\":1000}]",
         "stuck", "error",
         "It has not returned from its code for 1000 ms, and keeps dispatcher loop, worker 1.",
         "jzx stuck"},
        {"\"running\":[{" A ",\"dispatcher\":\"loop\",\"for_ms\":999}]", NULL, NULL, NULL, NULL},
        {"\"watchdog\":true,\"slow\":[{" A ",\"times\":3,\"longest_ms\":100}]", "blocking-behavior",
         NULL, "It kept its dispatcher for over 100 ms 3 times of late, once for 100 ms.", NULL},
        {"\"watchdog\":true,\"slow\":[{" A ",\"times\":1,\"longest_ms\":1000}]",
         "blocking-behavior", NULL,
         "It kept its dispatcher for over 100 ms 1 times of late, once for 1000 ms.", NULL},
        {"\"slow\":[{" A ",\"times\":2,\"longest_ms\":999}]", NULL, NULL, NULL, NULL},
        {"\"dispatchers\":[{\"index\":1,\"name\":\"io\",\"actors\":7,\"run\":false,"
         "\"answering\":false}]",
         "not-run", "note", "No thread runs dispatcher io: its 7 actors wait.", NULL},
        {"\"dispatchers\":[{\"index\":1,\"name\":\"io\",\"run\":true,\"answering\":false}]",
         "not-answering", "error", "Dispatcher io did not answer within 150 ms.", NULL},
        {"\"dispatchers\":[{\"index\":1,\"name\":\"io\",\"run\":true,\"answering\":true}]", NULL,
         NULL, NULL, NULL},
        /* The actor that keeps it says it all. */
        {"\"watchdog\":true,\"running\":[{" A ",\"dispatcher\":\"io\",\"index\":1,\"worker\":0,"
         "\"for_ms\":1500}],\"dispatchers\":[{\"index\":1,\"name\":\"io\",\"run\":true,"
         "\"answering\":false}]",
         "stuck", "error",
         "It has not returned from its code for 1500 ms, and keeps dispatcher io, worker 0.", NULL},
    };
    CHECK_ROWS(rows);
}

static void test_the_program(void)
{
    static const row rows[] = {
        {"\"processors\":2,\"dispatchers\":[{\"name\":\"p\",\"pool\":true,\"workers\":1,"
         "\"answering\":true}]",
         "pool-of-one", "note",
         "Pool p has one worker: one actor that takes long keeps all others waiting.", NULL},
        {"\"processors\":1,\"dispatchers\":[{\"name\":\"p\",\"pool\":true,\"workers\":1}]", NULL,
         NULL, NULL, NULL},
        {"\"processors\":2,\"dispatchers\":[{\"name\":\"p\",\"pool\":true,\"workers\":2}]", NULL,
         NULL, NULL, NULL},
        {"\"guard_wanted\":true,\"guard_installed\":false", "no-crash-guard", NULL,
         "Actors ask for the crash guard (JZX_SPAWN_CRASH_GUARD), but it is not installed: a crash "
         "of theirs ends the process.",
         NULL},
        {"\"guard_wanted\":true,\"guard_installed\":true", NULL, NULL, NULL, NULL},
        {"\"names\":[{" A ",\"registered\":\"cache\",\"similar\":\"Cache\"}]", "similar-names",
         "note", "The registered names \"Cache\" and \"cache\" differ in case only.", NULL},
        {"\"counters\":{\"accepted\":2019,\"dead\":100},\"dead_by\":{\"dropped_newest\":40,"
         "\"dropped_oldest\":60}",
         "drops", NULL,
         "100 messages, more than one in 20, were dropped because a mailbox was full.", NULL},
        {"\"counters\":{\"accepted\":2020,\"dead\":100},\"dead_by\":{\"dropped_oldest\":100}", NULL,
         NULL, NULL, NULL},
        {"\"counters\":{\"accepted\":10,\"dead\":99},\"dead_by\":{\"dropped_oldest\":99}", NULL,
         NULL, NULL, NULL},
        {"\"counters\":{\"accepted\":400,\"dead\":199},\"dead_by\":{\"dropped_oldest\":99}",
         "dead-letter-rate", NULL, "100 messages, more than one in 20, were never handled.", NULL},
        {"\"counters\":{\"accepted\":400},\"refused\":{\"full\":100}", "refused-sends", NULL,
         "100 sends were refused because a mailbox was full; 400 were accepted.", NULL},
        {"\"counters\":{\"accepted\":400},\"refused\":{\"full\":99,\"stopping\":500}", NULL, NULL,
         NULL, NULL},
        {"\"counters\":{\"abandoned\":1}", "lost-data", NULL,
         "The data of 1 dead messages could not be released: it is lost memory.", NULL},
        {"\"counters\":{\"late_replies\":20,\"replies\":200}", "late-replies", NULL,
         "20 answers came when nobody waited for them any more; 200 came in time.", NULL},
        {"\"counters\":{\"late_replies\":20,\"replies\":210}", NULL, NULL, NULL, NULL},
        {"\"counters\":{\"late_replies\":19,\"replies\":0}", NULL, NULL, NULL, NULL},
        {"\"counters\":{\"escalations\":2}", "gave-up", NULL,
         "Supervisors gave up or escalated 2 times.", NULL},
    };
    CHECK_ROWS(rows);
}

#define FAMILY(what, members) "\"families\":[{" A ",\"what\":\"" what "\"" members "}]"

static void test_families(void)
{
    static const row rows[] = {
        {FAMILY("spec",
                ",\"rule\":\"no-backoff\",\"child\":\"c\",\"text\":\"it may: set x, or y\""),
         "no-backoff", NULL, "Child c: it may.", "Set x, or y."},
        {FAMILY("spec", ",\"rule\":\"r\",\"child\":null,\"text\":\"a: b; do c\""), "r", NULL,
         "A: b.", "Do c."},
        {FAMILY("empty", ""), "no-children", "note", "This supervisor has no children.", NULL},
        {FAMILY("restarts", ",\"restarts\":2,\"intensity\":4,\"period_ms\":5000,\"last\":null"),
         "restarts-often", NULL,
         "Its children failed and were restarted 2 times within 5000 ms, and it gives up after 4.",
         "set backoff_min_ms"},
        {FAMILY("restarts", ",\"restarts\":2,\"intensity\":3,\"period_ms\":5000,\"last\":\"c\","
                            "\"backoff\":true,\"together\":true"),
         "restarts-often", NULL,
         "Its children failed and were restarted 2 times within 5000 ms, and it gives up after 3; "
         "the last was c, and others went along.",
         "It has a backoff"},
        {FAMILY("restarts", ",\"restarts\":2,\"intensity\":5,\"period_ms\":5000"), NULL, NULL, NULL,
         NULL},
        {FAMILY("restarts", ",\"restarts\":1,\"intensity\":1,\"period_ms\":5000"), NULL, NULL, NULL,
         NULL},
        {FAMILY("restarts", ",\"restarts\":10,\"intensity\":1000,\"period_ms\":10000"),
         "restarts-often", NULL,
         "Its children failed and were restarted 10 times within 10000 ms, and it gives up after "
         "1000.",
         NULL},
        {FAMILY("restarts", ",\"restarts\":10,\"intensity\":1000,\"period_ms\":10001"), NULL, NULL,
         NULL, NULL},
        {FAMILY("child", ",\"child\":\"c\",\"child_actor\":\"2\",\"attempt\":3,\"restarts\":3"),
         "fails-again-and-again", NULL, "Child c has failed 3 times in a row.", "jzx actor"},
        {FAMILY("child", ",\"child\":\"c\",\"child_actor\":\"2\",\"attempt\":2,\"restarts\":10"),
         NULL, NULL, NULL, NULL},
        {FAMILY("child", ",\"child\":\"c\",\"child_actor\":null,\"attempt\":0,\"restarts\":11,"
                         "\"ago_ms\":59999"),
         "crash-loop", NULL,
         "c failed or ended, and was restarted 11 times, the last time less than a minute ago.",
         "give it or its supervisor a backoff_min_ms"},
        {FAMILY("child", ",\"child\":null,\"child_actor\":null,\"restarts\":11,\"backoff\":true,"
                         "\"together\":true"),
         "crash-loop", NULL,
         "It failed or ended, and was restarted 11 times, the last time less than a minute ago; "
         "siblings were restarted along with it.",
         "It has a backoff"},
        {FAMILY("child", ",\"child\":\"c\",\"restarts\":11,\"ago_ms\":60000"), NULL, NULL, NULL,
         NULL},
        {FAMILY("stop", ",\"stop_ms\":1,\"child_actor\":\"2\",\"child_name\":\"c\","
                        "\"child_stop_ms\":2"),
         "shutdown-too-short", NULL,
         "Its stop_timeout_ms is shorter than that of its child c (2): what is left then is "
         "killed.",
         NULL},
        {FAMILY("stop", ",\"stop_ms\":2,\"child_actor\":\"2\",\"child_stop_ms\":2"), NULL, NULL,
         NULL, NULL},
        {FAMILY("something", ""), NULL, NULL, NULL, NULL},
    };
    CHECK_ROWS(rows);
}

static void test_a_child_in_a_crash_loop_is_blamed_itself_when_it_is_up(void)
{
    json_t *answer = examine(FAMILY("child", ",\"child\":\"c\",\"child_actor\":\"2\","
                                             "\"child_name\":\"c2\",\"restarts\":11"));
    const json_t *first = json_array_get(json_object_get(answer, "findings"), 0);
    CHECK_STR(member(first, "actor"), "2");
    CHECK_STR(member(first, "name"), "c2");
    json_decref(answer);
}

static void test_the_worst_come_first_and_a_missing_watchdog_is_noted(void)
{
    static const char *const rules[] = {"stuck", "lost-data", "gave-up", "tiny-mailbox",
                                        "no-watchdog"};
    json_t *answer = examine("\"silent\":[\"loop\"],\"counters\":{\"abandoned\":1,"
                             "\"escalations\":1},\"actors\":[{\"cap\":1}],"
                             "\"running\":[{\"for_ms\":2000}]");
    const json_t *findings = json_object_get(answer, "findings");
    REQUIRE_EQ(json_array_size(findings), 5);
    for (size_t i = 0; i < 5; i++) {
        CHECK_STR(member(json_array_get(findings, i), "rule"), rules[i]);
    }
    CHECK_STR(json_string_value(json_array_get(json_object_get(answer, "silent"), 0)), "loop");
    CHECK(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
}

static void test_a_rule_is_told_sixteen_times_at_most(void)
{
    for (int count = 16; count <= 17; count++) {
        char facts[1024] = "\"actors\":[{\"cap\":1}";
        for (int i = 1; i < count; i++) {
            (void)strncat(facts, ",{\"cap\":1}", sizeof facts - strlen(facts) - 1);
        }
        (void)strncat(facts, "]", sizeof facts - strlen(facts) - 1);
        json_t *answer = examine(facts);
        CHECK_EQ(json_array_size(json_object_get(answer, "findings")), 16);
        CHECK_EQ(json_is_true(json_object_get(answer, "cut")), count > 16);
        json_decref(answer);
    }
    json_t *answer = examine("\"cut\":true"); /* the program left something out */
    CHECK(json_is_true(json_object_get(answer, "cut")));
    json_decref(answer);
}

/* A program may say anything. */
static void test_nonsense_is_no_finding(void)
{
    static const char *const nonsense[] = {
        "",
        "\"families\":7",
        "\"families\":[1,null,[],{}]",
        "\"actors\":{},\"running\":[[]]",
        "\"counters\":[],\"dead_by\":3,\"refused\":\"x\"",
        "\"dispatchers\":[{\"answering\":0}],\"names\":{\"a\":1},\"processors\":-1",
        "\"families\":[{\"what\":\"child\",\"attempt\":-3,\"restarts\":\"11\"}]",
        "\"actors\":[{\"cap\":-1,\"mailbox\":1e300}],\"silent\":{}"};
    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
        json_t *answer = examine(nonsense[i]);
        CHECK_EQ(json_array_size(json_object_get(answer, "findings")), 0);
        CHECK(json_is_array(json_object_get(answer, "silent")));
        json_decref(answer);
    }
    /* Members that are missing are empty. */
    json_t *answer = examine("\"families\":[{\"what\":\"spec\"},{\"what\":\"empty\"}],"
                             "\"names\":[{}],\"asks\":[{\"age_ms\":1e18}]");
    CHECK_EQ(json_array_size(json_object_get(answer, "findings")), 4);
    json_decref(answer);
}

static const jzt_test tests[] = {
    {"actors", test_actors},
    {"time", test_time},
    {"the_program", test_the_program},
    {"families", test_families},
    {"a_child_in_a_crash_loop_is_blamed_itself_when_it_is_up",
     test_a_child_in_a_crash_loop_is_blamed_itself_when_it_is_up},
    {"the_worst_come_first_and_a_missing_watchdog_is_noted",
     test_the_worst_come_first_and_a_missing_watchdog_is_noted},
    {"a_rule_is_told_sixteen_times_at_most", test_a_rule_is_told_sixteen_times_at_most},
    {"nonsense_is_no_finding", test_nonsense_is_no_finding},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
