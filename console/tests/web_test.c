/* Goal: every endpoint answers what the program says, also when that is slow, gone or no program,
 * over real sockets. Method: a console in this process, a made-up program, requests as bytes. */
#include "web_kit.h"

static void test_each_endpoint_asks_its_op_and_passes_the_answer_on_without_the_id(void)
{
    static const struct {
        const char *path;
        const char *asked; /* behind the id */
    } table[] = {
        {"/api/program", ",\"op\":\"program\"}"},
        {"/api/actor?actor=worker-1", ",\"op\":\"actor\",\"actor\":\"worker-1\"}"},
        {"/api/dead?limit=5&after=57", ",\"op\":\"dead\",\"after\":57,\"limit\":5}"},
        {"/api/failures?limit=3", ",\"op\":\"failures\",\"limit\":3}"},
        {"/api/stuck?limit_ms=10", ",\"op\":\"stuck\",\"limit_ms\":10}"},
        {"/api/doctor", "," JZD_QUESTION "}"},
        {"/api/record?limit=9&text=1", ",\"op\":\"record\",\"limit\":9,\"text\":true}"},
        {"/api/actors?sort=handled&reverse=1&offset=40",
         ",\"op\":\"actors\",\"sort\":\"handled\",\"offset\":40,\"reverse\":true}"},
        {"/api/actors?sort=tree&limit=7&filter=a%22b%5C&under=1&depth=2",
         ",\"op\":\"actors\",\"sort\":\"tree\",\"limit\":7,\"filter\":\"a\\\"b\\\\\","
         "\"under\":\"1\",\"depth\":2}"},
    };
    site s = site_open(NULL);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char last[512];
        web_answer answer = web_get(s.port, table[i].path);
        fake_last(s.program, last, sizeof last);
        CHECK_EQ(answer.status, 200);
        CHECK(strncmp(answer.body, "{\"ok\":true,", 11) == 0);
        CHECK(!web_has(&answer, "\"id\":1,"));
        CHECK_STR(web_header(&answer, "Content-Type"), "application/json");
        CHECK(strncmp(last, "{\"id\":", 6) == 0);
        CHECK_STR(last + 6 + strspn(last + 6, "0123456789"), table[i].asked);
        web_free(&answer);
    }
    site_close(&s);
}

/* The program tells facts; the page gets what they mean. */
static void test_findings_and_circles_are_decided_here(void)
{
    site s = site_open(NULL);
    fake_set_counters(s.program, 3, 0);
    web_answer answer = web_get(s.port, "/api/doctor");
    CHECK_EQ(answer.status, 200);
    CHECK(web_has(&answer, "{\"severity\":\"warning\",\"rule\":\"lost-data\",\"actor\":null,"
                           "\"name\":null,\"text\":\"The data of 3 dead messages"));
    CHECK(web_has(&answer, "\"silent\":[\"io\"]"));
    CHECK(!web_has(&answer, "counters"));
    web_free(&answer);
    answer = web_get(s.port, "/api/stuck?limit_ms=10");
    CHECK_EQ(answer.status, 200);
    CHECK(web_has(&answer, "\"asks\":[],\"cycles\":[[\"1\",\"2\"]]"));
    CHECK(!web_has(&answer, "waits"));
    web_free(&answer);
    site_close(&s);
}

static void test_page_and_its_files_are_served_with_strict_headers(void)
{
    site s = site_open(NULL);
    web_answer page = web_get(s.port, "/");
    CHECK_EQ(page.status, 200);
    CHECK(web_has(&page, "<!doctype html>"));
    CHECK_STR(web_header(&page, "Content-Type"), "text/html; charset=utf-8");
    const char *policy = web_header(&page, "Content-Security-Policy");
    CHECK(strncmp(policy, "default-src 'none'; ", 20) == 0);
    CHECK(strstr(policy, "unsafe") == NULL && strstr(policy, "*") == NULL);
    CHECK(strstr(policy, "connect-src 'self'") != NULL);
    CHECK(strstr(policy, "frame-ancestors 'none'") != NULL);
    CHECK_STR(web_header(&page, "X-Content-Type-Options"), "nosniff");
    CHECK_STR(web_header(&page, "Referrer-Policy"), "no-referrer");
    CHECK_STR(web_header(&page, "Cache-Control"), "no-store");
    CHECK_STR(web_header(&page, "X-Frame-Options"), "DENY");
    CHECK_STR(web_header(&page, "Access-Control-Allow-Origin"), "");
    web_answer script = web_get(s.port, "/app.js");
    CHECK_EQ(script.status, 200);
    CHECK_STR(web_header(&script, "Content-Type"), "text/javascript; charset=utf-8");
    web_answer api = web_get(s.port, "/api/program");
    CHECK_STR(web_header(&api, "Cache-Control"), "no-store");
    CHECK_STR(web_header(&api, "X-Frame-Options"), "DENY");
    CHECK_STR(web_header(&api, "Access-Control-Allow-Origin"), "");
    web_answer head = web_ask(s.port, "HEAD", "/", NULL, NULL);
    CHECK_EQ(head.status, 200);
    CHECK_EQ(head.body_len, 0);
    web_free(&page);
    web_free(&script);
    web_free(&api);
    web_free(&head);
    site_close(&s);
}

static void test_metrics_are_plain_text(void)
{
    site s = site_open(NULL);
    web_answer answer = web_get(s.port, "/metrics");
    CHECK_EQ(answer.status, 200);
    CHECK_STR(answer.body, "# HELP jzx_up \"one\"\njzx_up 1\n\xc3\xa9\n");
    CHECK_STR(web_header(&answer, "Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
    web_free(&answer);
    site_close(&s);
}

static void test_trace_collects_for_a_while_on_a_connection_of_its_own(void)
{
    char last[512];
    site s = site_open(NULL);
    uint64_t began = web_now_ms();
    web_answer answer = web_get(s.port, "/api/trace?ms=200&actors=a,b&tag=7&sends=1&rate=10");
    CHECK_EQ(answer.status, 200);
    CHECK(web_now_ms() - began >= 200);
    CHECK(web_has(&answer, "\"skipped\":12,\"lost\":3,\"cut\":false,\"events\":[{\"what\""));
    CHECK(web_has(&answer, "\"t_ns\":4,\"tag\":7}]}"));
    fake_last(s.program, last, sizeof last);
    CHECK_STR(last, "{\"id\":1,\"op\":\"trace\",\"actors\":[\"a\",\"b\"],\"tag\":7,\"rate\":10,"
                    "\"sends\":true}");
    web_free(&answer);
    began = web_now_ms();
    answer = web_get(s.port, "/api/trace?ms=9000&limit=2");
    CHECK_EQ(answer.status, 200);
    CHECK(web_now_ms() - began < 5000); /* enough is enough */
    CHECK(web_has(&answer, "\"cut\":true") && !web_has(&answer, "\"t_ns\":2"));
    web_free(&answer);
    /* Their connections are gone. */
    uint64_t until = web_now_ms() + 20000;
    while (fake_clients(s.program) > 0 && web_now_ms() < until) {
        web_pause_ms(5);
    }
    CHECK_EQ(fake_clients(s.program), 0);
    site_close(&s);
}

static void *post_send(void *arg)
{
    const site *s = arg;
    intptr_t status =
        status_of(web_ask(s->port, "POST", "/api/send", SITE_TOKEN_HEADER, "{\"actor\":\"a\"}"));
    return (void *)status;
}

static void test_the_same_action_twice_is_two_actions(void)
{
    pthread_t threads[2];
    site s = site_open(NULL);
    fake_set_mode(s.program, FAKE_HANGS);
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, post_send, &s) == 0);
    }
    for (int i = 0; i < 2; i++) {
        void *status = NULL;
        (void)pthread_join(threads[i], &status);
        CHECK_EQ((intptr_t)status, 504);
    }
    CHECK_EQ(fake_asked(s.program, "send"), 2);
    site_close(&s);
}

static void test_trace_may_be_longer_than_the_patience_for_its_beginning(void)
{
    if (getenv("JZX_CONSOLE_LONG") == NULL) {
        jzt_skip("This takes 3.5 s: JZX_CONSOLE_LONG=1 runs it.");
    }
    site s = site_open(NULL);
    uint64_t began = web_now_ms();
    CHECK_EQ(status_of(web_get(s.port, "/api/trace?ms=3500")), 200);
    CHECK(web_now_ms() - began >= 3500);
    site_close(&s);
}

static void *get_program(void *arg)
{
    const site *s = arg;
    web_answer answer = web_get(s->port, "/api/program");
    intptr_t status = answer.status;
    web_free(&answer);
    return (void *)status;
}

static void test_many_browsers_with_the_same_question_ask_it_once(void)
{
    enum { BROWSERS = 16 };
    pthread_t threads[BROWSERS];
    site s = site_open(NULL);
    uint64_t began = web_now_ms();
    for (int i = 0; i < BROWSERS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, get_program, &s) == 0);
    }
    for (int i = 0; i < BROWSERS; i++) {
        void *status = NULL;
        (void)pthread_join(threads[i], &status);
        CHECK_EQ((intptr_t)status, 200);
    }
    uint64_t took = web_now_ms() - began;
    CHECK(fake_asked(s.program, "program") <= 1 + took / 100);
    /* A moment later it is asked anew. */
    unsigned before = fake_asked(s.program, "program");
    web_pause_ms(120);
    CHECK_EQ(status_of(web_get(s.port, "/api/program")), 200);
    CHECK_EQ(fake_asked(s.program, "program"), before + 1);
    site_close(&s);
}

static void test_program_that_is_gone_is_told_with_since_when_and_found_again(void)
{
    site s = site_open(NULL);
    CHECK_EQ(status_of(web_get(s.port, "/api/program")), 200);
    fake_leave(s.program);
    uint64_t until = web_now_ms() + 20000;
    web_answer answer = web_get(s.port, "/api/program");
    while (answer.status == 200 && web_now_ms() < until) {
        web_free(&answer);
        answer = web_get(s.port, "/api/program"); /* what it said a moment ago */
    }
    check_error(answer, 503, "NOT_REACHABLE");
    web_pause_ms(300);
    answer = web_get(s.port, "/api/program");
    CHECK_EQ(answer.status, 503);
    const char *since = strstr(answer.body, "\"since_ms\":");
    REQUIRE(since != NULL);
    CHECK(strtoul(since + 11, NULL, 10) >= 200);
    web_free(&answer);
    check_error(web_get(s.port, "/api/trace?ms=50"), 503, "NOT_REACHABLE");
    CHECK_EQ(status_of(web_get(s.port, "/healthz")), 200);

    fake_return(s.program);
    until = web_now_ms() + 20000;
    int status = 0;
    while ((status = status_of(web_get(s.port, "/api/program"))) != 200 && web_now_ms() < until) {
        web_pause_ms(20);
    }
    CHECK_EQ(status, 200);
    /* The next time is counted from the next time. */
    uint64_t left = web_now_ms();
    fake_leave(s.program);
    do {
        web_free(&answer);
        answer = web_get(s.port, "/api/program");
    } while (answer.status == 200 && web_now_ms() < until);
    CHECK_EQ(answer.status, 503);
    since = strstr(answer.body, "\"since_ms\":");
    REQUIRE(since != NULL);
    CHECK(strtoul(since + 11, NULL, 10) <= web_now_ms() - left);
    web_free(&answer);
    site_close(&s);
}

static void test_nothing_is_asked_before_the_greeting(void)
{
    site s = site_open(NULL);
    fake_set_mode(s.program, FAKE_SHY);
    CHECK_EQ(status_of(web_get(s.port, "/api/program")), 200);
    CHECK_EQ(status_of(web_get(s.port, "/api/trace?ms=1")), 200);
    CHECK_EQ(fake_hasty(s.program), 0);
    site_close(&s);
}

static void *get_trace(void *arg)
{
    const site *s = arg;
    intptr_t status = status_of(web_get(s->port, "/api/trace?ms=700"));
    return (void *)status;
}

static void test_four_traces_run_at_a_time_and_any_number_in_turn(void)
{
    enum { TRACES = 6 };
    pthread_t threads[TRACES];
    int statuses[2] = {0, 0};
    site s = site_open(NULL);
    for (int i = 0; i < TRACES; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, get_trace, &s) == 0);
    }
    for (int i = 0; i < TRACES; i++) {
        void *status = NULL;
        (void)pthread_join(threads[i], &status);
        CHECK((intptr_t)status == 200 || (intptr_t)status == 503);
        statuses[(intptr_t)status == 200]++;
    }
    CHECK(statuses[1] >= 4);
    for (int i = 0; i < TRACES; i++) {
        CHECK_EQ(status_of(web_get(s.port, "/api/trace?ms=1")), 200);
    }
    site_close(&s);
}

static void test_program_that_does_not_answer_gives_504_after_two_seconds(void)
{
    site s = site_open(NULL);
    fake_set_mode(s.program, FAKE_HANGS);
    uint64_t began = web_now_ms();
    check_error(web_get(s.port, "/api/program"), 504, "NOT_ANSWERING");
    uint64_t took = web_now_ms() - began;
    CHECK(took >= 1900 && took < 9000);
    CHECK_EQ(status_of(web_get(s.port, "/healthz")), 200);
    site_close(&s);
}

static void test_whoever_is_no_program_is_told_apart(void)
{
    site s = site_open(NULL);
    fake_set_mode(s.program, FAKE_BUSY);
    check_error(web_get(s.port, "/api/program"), 503, "BUSY");
    check_error(web_get(s.port, "/api/trace?ms=50"), 503, "BUSY");
    fake_set_mode(s.program, FAKE_NONSENSE);
    check_error(web_get(s.port, "/api/doctor"), 503, "NOT_A_PROGRAM");
    fake_set_mode(s.program, FAKE_GARBAGE);
    web_pause_ms(1100); /* longer than its backoff */
    check_error(web_get(s.port, "/api/doctor"), 503, "NOT_REACHABLE");
    site_close(&s);
}

static void test_a_long_answer_arrives_whole(void)
{
    site s = site_open(NULL);
    fake_set_actors(s.program, 15000);
    web_answer answer = web_get(s.port, "/api/actors?limit=20000");
    CHECK_EQ(answer.status, 200);
    CHECK(answer.body_len > (size_t)3 << 20);
    CHECK_EQ(strtoul(web_header(&answer, "Content-Length"), NULL, 10), answer.body_len);
    CHECK(strcmp(answer.body + answer.body_len - 3, "}]}") == 0);
    web_free(&answer);
    site_close(&s);
}

static void test_errors_of_start_are_told(void)
{
    jzx_console *other = NULL;
    site s = site_open(NULL);
    jzx_console_opts opts = {.control = fake_path(s.program), .port = s.port};
    CHECK_EQ(jzx_console_start(NULL, &opts, &other), JZX_ERR_ADDRESS_IN_USE);
    opts = (jzx_console_opts){.control = NULL};
    CHECK_EQ(jzx_console_start(NULL, &opts, &other), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_console_start(NULL, NULL, &other), JZX_ERR_INVALID_ARG);
    opts = (jzx_console_opts){.control = fake_path(s.program), .token = "a b"};
    CHECK_EQ(jzx_console_start(NULL, &opts, &other), JZX_ERR_INVALID_ARG);
    opts = (jzx_console_opts){.control = fake_path(s.program), .host = "a/b"};
    CHECK_EQ(jzx_console_start(NULL, &opts, &other), JZX_ERR_INVALID_ARG);
    opts = (jzx_console_opts){.control = fake_path(s.program), .reserved = 1};
    CHECK_EQ(jzx_console_start(NULL, &opts, &other), JZX_ERR_NEWER_STRUCT);
    opts = (jzx_console_opts){.control = fake_path(s.program), .address = "not.a.number"};
    CHECK_EQ(jzx_console_start(NULL, &opts, &other), JZX_ERR_BAD_ADDRESS);
    CHECK(other == NULL);
    jzx_console_stop(NULL);
    CHECK_STR(jzx_console_url(NULL), "");
    /* Two made-up tokens are not the same. */
    jzx_console *two = NULL;
    opts = (jzx_console_opts){.control = fake_path(s.program)};
    REQUIRE_OK(jzx_console_start(NULL, &opts, &other));
    REQUIRE_OK(jzx_console_start(NULL, &opts, &two));
    const char *a = strstr(jzx_console_url(other), "#token=");
    const char *b = strstr(jzx_console_url(two), "#token=");
    REQUIRE(a != NULL && b != NULL);
    CHECK_EQ(strlen(a), 7 + 32);
    CHECK(strcmp(a, b) != 0);
    jzx_console_stop(other);
    jzx_console_stop(two);
    site_close(&s);
}

static const jzt_test tests[] = {
    {"each_endpoint_asks_its_op_and_passes_the_answer_on_without_the_id",
     test_each_endpoint_asks_its_op_and_passes_the_answer_on_without_the_id},
    {"findings_and_circles_are_decided_here", test_findings_and_circles_are_decided_here},
    {"page_and_its_files_are_served_with_strict_headers",
     test_page_and_its_files_are_served_with_strict_headers},
    {"metrics_are_plain_text", test_metrics_are_plain_text},
    {"trace_collects_for_a_while_on_a_connection_of_its_own",
     test_trace_collects_for_a_while_on_a_connection_of_its_own},
    {"the_same_action_twice_is_two_actions", test_the_same_action_twice_is_two_actions},
    {"trace_may_be_longer_than_the_patience_for_its_beginning",
     test_trace_may_be_longer_than_the_patience_for_its_beginning},
    {"many_browsers_with_the_same_question_ask_it_once",
     test_many_browsers_with_the_same_question_ask_it_once},
    {"program_that_is_gone_is_told_with_since_when_and_found_again",
     test_program_that_is_gone_is_told_with_since_when_and_found_again},
    {"nothing_is_asked_before_the_greeting", test_nothing_is_asked_before_the_greeting},
    {"four_traces_run_at_a_time_and_any_number_in_turn",
     test_four_traces_run_at_a_time_and_any_number_in_turn},
    {"program_that_does_not_answer_gives_504_after_two_seconds",
     test_program_that_does_not_answer_gives_504_after_two_seconds},
    {"whoever_is_no_program_is_told_apart", test_whoever_is_no_program_is_told_apart},
    {"a_long_answer_arrives_whole", test_a_long_answer_arrives_whole},
    {"errors_of_start_are_told", test_errors_of_start_are_told},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
