/* Goal: nothing that a client says makes the control answer anything else than a line of JSON.
 * Method: a loop on a thread of its own and clients on a real socket. */
#define _GNU_SOURCE
#include "control_fixture.h"

static void test_bad_requests_are_refused_and_the_connection_goes_on(void)
{
    static const struct {
        const char *request;
        const char *answer;
    } rows[] = {
        {"", "{\"id\":0,\"ok\":false,\"error\":\"BAD_REQUEST\",\"text\":"},
        {"hello", "{\"id\":0,\"ok\":false,\"error\":\"BAD_REQUEST\",\"text\":"},
        {"{\"id\":3}", "{\"id\":3,\"ok\":false,\"error\":\"BAD_REQUEST\",\"text\":"},
        {"{\"id\":4,\"op\":\"nothing\"}", "{\"id\":4,\"ok\":false,\"error\":\"UNKNOWN_OP\""},
        {"{\"id\":5,\"op\":\"actors\",\"limit\":20001}",
         "{\"id\":5,\"ok\":false,\"error\":\"BAD_REQ"},
        {"{\"id\":6,\"op\":\"actors\",\"limit\":\"1\"}",
         "{\"id\":6,\"ok\":false,\"error\":\"BAD_REQ"},
        {"{\"id\":6,\"op\":\"actors\",\"sort\":\"size\"}",
         "{\"id\":6,\"ok\":false,\"error\":\"BAD_R"},
        {"{\"id\":6,\"op\":\"actors\",\"state\":\"x\"}",
         "{\"id\":6,\"ok\":false,\"error\":\"BAD_REQ"},
        {"{\"id\":6,\"op\":\"actors\",\"dispatcher\":\"x\"}", "\"error\":\"NO_SUCH_DISPATCHER\""},
        {"{\"id\":6,\"op\":\"actors\",\"under\":\"x\"}", "\"error\":\"NO_SUCH_ACTOR\""},
        {"{\"id\":6,\"op\":\"actors\",\"under\":5}", "\"error\":\"BAD_REQUEST\""},
        {"{\"id\":6,\"op\":\"dead\",\"after\":-1}", "\"error\":\"BAD_REQUEST\""},
        {"{\"id\":6,\"op\":\"end\"}", "\"error\":\"BAD_REQUEST\""},
        {"{\"id\":7,\"op\":\"stop\"}", "\"error\":\"BAD_REQUEST\""},
        {"{\"id\":7,\"op\":\"stop\",\"actor\":\"\"}", "\"error\":\"NO_SUCH_ACTOR\""},
        {"{\"id\":7,\"op\":\"stop\",\"actor\":\"0\"}", "\"error\":\"NO_SUCH_ACTOR\""},
        {"{\"id\":7,\"op\":\"stop\",\"actor\":\"ffffffffffffffff\"}",
         "\"error\":\"NO_SUCH_ACTOR\""},
        {"{\"id\":7,\"op\":\"stop\",\"actor\":\"two\"}", "\"error\":\"AMBIGUOUS\""},
        {"{\"id\":8,\"op\":\"send\",\"actor\":\"one\",\"tag\":4294967296}",
         "\"error\":\"BAD_REQUEST"},
        {"{\"id\":8,\"op\":\"send\",\"actor\":\"one\",\"u64\":1,\"text\":\"a\"}",
         "\"error\":\"BAD_REQUEST"},
        {"{\"id\":8,\"op\":\"send\",\"actor\":\"one\",\"tag\":4294967295}",
         "\"error\":\"RESERVED_TAG"},
        {"{\"id\":8,\"op\":\"restart\",\"actor\":\"one\"}", "\"error\":\"WRONG_SUPERVISOR\""},
        {"{\"id\":9,\"op\":\"program\"}", "{\"id\":9,\"ok\":true,"},
    };
    program p;
    caller c;
    make_program(&p);
    (void)spawn_note(&p, "one");
    (void)spawn_note(&p, "two");
    (void)spawn_note(&p, "two");
    program_serve(&p, JZX_CONTROL_ALL);
    program_run(&p);
    caller_open(&c, &p);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *line = caller_ask(&c, rows[i].request);
        CHECK_HAS(line, rows[i].answer);
        if (line_has(line, "\"ok\":false")) {
            CHECK_HAS(line, ".\"}"); /* a sentence */
        }
    }
    CHECK_EQ(line_number(caller_ask(&c, "{\"op\":\"actors\"}"), "total"), 3);
    CHECK_EQ(atomic_load(&p.notes), 0);
    caller_close(&c);
    unmake_program(&p);
}

/* In the order of the requests, however the bytes come. */
static void test_requests_may_be_split_anywhere_and_come_in_heaps(void)
{
    program p;
    caller c;
    char heap[4096];
    size_t len = 0;
    make_program(&p);
    (void)spawn_note(&p, "one");
    program_serve(&p, 0);
    program_run(&p);
    caller_open(&c, &p);
    for (int i = 0; i < 40; i++) {
        len += (size_t)snprintf(heap + len, sizeof heap - len, "{\"id\":%d,\"op\":\"%s\"}\n", i,
                                i % 3 == 0   ? "actors"
                                : i % 3 == 1 ? "dead"
                                             : "none");
    }
    for (int way = 0; way < 3; way++) {
        size_t step = way == 0 ? len : way == 1 ? 1 : 7;
        for (size_t at = 0; at < len; at += step) {
            caller_say(&c, heap + at, at + step < len ? step : len - at);
        }
        for (int i = 0; i < 40; i++) {
            char id[24];
            (void)snprintf(id, sizeof id, "{\"id\":%d,", i);
            CHECK_HAS(caller_hear(&c), id);
        }
    }
    caller_close(&c);
    unmake_program(&p);
}

static void test_a_line_that_is_too_long_ends_the_connection(void)
{
    program p;
    caller c;
    char line[5000];
    make_program(&p);
    program_serve(&p, 0);
    program_run(&p);
    memset(line, ' ', sizeof line);
    memcpy(line, "{\"id\":1,\"op\":\"dead\"}", 20);
    line[4096] = '\n';
    caller_open(&c, &p);
    caller_say(&c, line, 4097); /* the longest */
    CHECK_HAS(caller_hear(&c), "{\"id\":1,\"ok\":true");
    line[4096] = ' ';
    caller_say(&c, line, 4097);
    CHECK_HAS(caller_hear(&c), "{\"id\":0,\"ok\":false,\"error\":\"TOO_LONG\"");
    CHECK(caller_hear(&c) == NULL);
    caller_close(&c);
    caller_open(&c, &p);
    caller_close(&c);
    unmake_program(&p);
}

/* As `echo ... | socat` does it. */
static void test_who_only_asks_and_listens_gets_all_answers(void)
{
    program p;
    caller c;
    make_program(&p);
    (void)spawn_note(&p, "one");
    program_serve(&p, 0);
    program_run(&p);
    caller_open(&c, &p);
    const char *text = "{\"id\":1,\"op\":\"program\"}\n{\"id\":2,\"op\":\"actors\"}\n{\"id\":3";
    caller_say(&c, text, strlen(text));
    REQUIRE(shutdown(c.fd, SHUT_WR) == 0);
    CHECK_HAS(caller_hear(&c), "{\"id\":1,\"ok\":true");
    CHECK_HAS(caller_hear(&c), "{\"id\":2,\"ok\":true");
    CHECK(caller_hear(&c) == NULL);
    caller_close(&c);
    unmake_program(&p);
}

static const jzt_test tests[] = {
    {"bad_requests_are_refused_and_the_connection_goes_on",
     test_bad_requests_are_refused_and_the_connection_goes_on},
    {"requests_may_be_split_anywhere_and_come_in_heaps",
     test_requests_may_be_split_anywhere_and_come_in_heaps},
    {"a_line_that_is_too_long_ends_the_connection",
     test_a_line_that_is_too_long_ends_the_connection},
    {"who_only_asks_and_listens_gets_all_answers", test_who_only_asks_and_listens_gets_all_answers},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
