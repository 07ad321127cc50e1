/* Goal: whoever may not ask, or asks what is not to be asked, is refused, over real sockets.
 * Method: a console in this process, a made-up program, requests as bytes. */
#include "web_kit.h"

static void test_actions_need_the_token_in_a_header(void)
{
    char last[512];
    site s = site_open(NULL);
    const char *body = "{\"actor\":\"worker-1\"}";
    check_error(web_ask(s.port, "POST", "/api/stop", NULL, body), 403, "BAD_TOKEN");
    check_error(web_ask(s.port, "POST", "/api/stop", "X-Jzx-Token: 0123456789abcdee\r\n", body),
                403, "BAD_TOKEN");
    check_error(web_ask(s.port, "POST", "/api/stop", "X-Jzx-Token: 0123456789abcde\r\n", body), 403,
                "BAD_TOKEN");
    check_error(web_ask(s.port, "POST", "/api/stop", "X-Jzx-Token: " SITE_TOKEN "0\r\n", body), 403,
                "BAD_TOKEN");
    check_error(web_ask(s.port, "POST", "/api/stop", "X-Jzx-Token: \r\n", body), 403, "BAD_TOKEN");
    check_error(web_ask(s.port, "POST", "/api/stop?token=" SITE_TOKEN, NULL, body), 403,
                "BAD_TOKEN");
    CHECK_EQ(fake_asked(s.program, NULL), 0);
    CHECK_EQ(status_of(web_ask(s.port, "POST", "/api/stop", SITE_TOKEN_HEADER, body)), 200);
    CHECK_EQ(status_of(web_ask(s.port, "POST", "/api/restart",
                               "Authorization: Bearer " SITE_TOKEN "\r\n", body)),
             200);
    CHECK_EQ(status_of(web_ask(s.port, "POST", "/api/send", SITE_TOKEN_HEADER,
                               " { \"tag\" : 7 , \"text\":\"a\\u0022\\n\", \"actor\":\"w\" } ")),
             200);
    fake_last(s.program, last, sizeof last);
    CHECK(strstr(last, "\"op\":\"send\",\"actor\":\"w\",\"tag\":7,\"text\":\"a\\\"\\u000a\"}") !=
          NULL);
    /* Each is asked: nothing is remembered of actions. */
    CHECK_EQ(status_of(web_ask(s.port, "POST", "/api/stop", SITE_TOKEN_HEADER, body)), 200);
    CHECK_EQ(fake_asked(s.program, "stop"), 2);
    check_error(web_ask(s.port, "POST", "/api/kill", SITE_TOKEN_HEADER, body), 403, "NOT_ALLOWED");
    check_error(web_ask(s.port, "POST", "/api/stop", SITE_TOKEN_HEADER, "{\"actor\":\"nobody\"}"),
                404, "NO_SUCH_ACTOR");
    site_close(&s);
}

static void test_bodies_that_are_not_what_an_action_takes_are_refused(void)
{
    static const char *const bodies[] = {
        "",
        "{}",
        "[]",
        "{\"actor\":1}",
        "{\"actor\":\"a\",\"op\":\"kill\"}",
        "{\"actor\":\"a\",\"id\":7}",
        "{\"actor\":\"a\",\"actor\":\"b\"}",
        "{\"actor\":\"a\"",
        "{\"actor\":\"a\"}x",
        "{\"actor\":\"a\",}",
        "{\"actor\":\"a\\x\"}",
        "{\"actor\":\"a\n\"}",
        "{\"actor\":\"\xff\"}",
        "{\"actor\":{\"a\":1}}",
        "{\"actor\":\"a\",\"tag\":-1}",
        "{\"actor\":\"a\",\"tag\":1.5}",
        "{\"actor\":\"a\",\"tag\":\"7\"}",
        "{\"actor\":\"a\",\"u64\":9223372036854775808}",
        "{\"actor\":\"a\"}{\"actor\":\"b\"}",
    };
    site s = site_open(NULL);
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        check_error(web_ask(s.port, "POST", "/api/send", SITE_TOKEN_HEADER, bodies[i]), 400,
                    "BAD_REQUEST");
    }
    /* Nor has an action a query: whom it is about is in its body. */
    check_error(
        web_ask(s.port, "POST", "/api/stop?actor=b", SITE_TOKEN_HEADER, "{\"actor\":\"a\"}"), 400,
        "BAD_REQUEST");
    CHECK_EQ(fake_asked(s.program, NULL), 0);
    site_close(&s);
}

/* What somebody in between may read as another request than we do. */
static void test_bodies_whose_end_is_told_in_two_ways_are_refused(void)
{
    static const char *const heads[] = {
        "Content-Length: 13\r\nContent-Length: 5\r\n",
        "Content-Length: 13\r\nContent-Length: 13\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
    };
    site s = site_open(NULL);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        char text[512];
        int len = snprintf(text, sizeof text,
                           "POST /api/stop HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n" SITE_TOKEN_HEADER
                           "%s\r\nd\r\n{\"actor\":\"a\"}\r\n0\r\n\r\n"
                           "GET /api/program HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
                           s.port, heads[i], s.port);
        int fd = web_connect(s.port);
        REQUIRE(web_write(fd, text, (size_t)len));
        web_answer answer = web_read(fd, 5000); /* it is closed: what follows is nobody's */
        CHECK_EQ(answer.status, 400);
        CHECK(web_has(&answer, "\"BAD_REQUEST\""));
        CHECK(!web_has(&answer, "HTTP/1.1 200"));
        web_free(&answer);
        (void)close(fd);
    }
    CHECK_EQ(fake_asked(s.program, NULL), 0);
    /* Told once it is fine either way. */
    CHECK_EQ(
        status_of(web_ask(s.port, "POST", "/api/stop", SITE_TOKEN_HEADER, "{\"actor\":\"a\"}")),
        200);
    site_close(&s);
}

static void test_queries_that_a_path_does_not_know_are_refused(void)
{
    static const char *const paths[] = {
        "/api/actors?op=kill",    "/api/actors?limit=x",
        "/api/actors?limit=-1",   "/api/actors?limit=1&limit=2",
        "/api/actors?filter=%ff", "/api/program?a=b",
        "/api/record?text=maybe", "/api/dead?after=99999999999999999999",
        "/api/actors?limit=",
    };
    site s = site_open(NULL);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        check_error(web_get(s.port, paths[i]), 400, "BAD_REQUEST");
    }
    CHECK_EQ(fake_asked(s.program, NULL), 0);
    /* A newline does not end the line. */
    char last[512];
    CHECK_EQ(status_of(web_get(s.port, "/api/actors?filter=a%0a%7b%00b")), 200);
    fake_last(s.program, last, sizeof last);
    CHECK(strstr(last, "\"filter\":\"a\\u000a{\\u0000b\"}") != NULL);
    site_close(&s);
}

static void test_foreign_hosts_and_origins_are_refused(void)
{
    site s = site_open(NULL);
    char line[128];
    const char *const hosts[] = {"evil.example:%u",
                                 "127.0.0.1.evil.example:%u",
                                 "localhost.:%u",
                                 "10.0.0.1:%u",
                                 "127.0.0.1:%ux",
                                 "[::2]:%u",
                                 "",
                                 "0.0.0.0:%u",
                                 "@127.0.0.1:%u"};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        char host[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        (void)snprintf(host, sizeof host, hosts[i], s.port);
#pragma GCC diagnostic pop
        (void)snprintf(line, sizeof line, "Host: %s\r\n", host);
        check_error(web_ask(s.port, "GET", "/api/program", line, NULL), 421, "FOREIGN_HOST");
    }
    (void)snprintf(line, sizeof line, "Host: localhost:%u\r\nHost: evil.example\r\n", s.port);
    CHECK_EQ(status_of(web_ask(s.port, "GET", "/api/program", line, NULL)), 421);
    (void)snprintf(line, sizeof line, "Host: evil.example\r\nHost: localhost:%u\r\n", s.port);
    CHECK_EQ(status_of(web_ask(s.port, "GET", "/api/program", line, NULL)), 421);
    check_error(web_ask(s.port, "GET", "/api/program", "Host: localhost:1\r\n", NULL), 421,
                "FOREIGN_HOST");
    const char *const origins[] = {"http://evil.example", "null",   "http://localhost:3000", "",
                                   "http://127.0.0.1",    "file://"};
    for (size_t i = 0; i < sizeof origins / sizeof origins[0]; i++) {
        (void)snprintf(line, sizeof line, "Origin: %s\r\n" SITE_TOKEN_HEADER, origins[i]);
        check_error(web_ask(s.port, "GET", "/api/program", line, NULL), 403, "FOREIGN_ORIGIN");
        check_error(web_ask(s.port, "POST", "/api/stop", line, "{\"actor\":\"a\"}"), 403,
                    "FOREIGN_ORIGIN");
    }
    check_error(web_ask(s.port, "GET", "/api/program", "Sec-Fetch-Site: cross-site\r\n", NULL), 403,
                "FOREIGN_ORIGIN");
    check_error(web_ask(s.port, "GET", "/api/program", "Sec-Fetch-Site: same-site\r\n", NULL), 403,
                "FOREIGN_ORIGIN");
    CHECK_EQ(fake_asked(s.program, NULL), 0);
    site_close(&s);
}

static void test_our_own_names_and_origins_get_in(void)
{
    site s = site_open(NULL);
    char line[128];
    const char *const names[] = {"127.0.0.1", "localhost", "LocalHost", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(line, sizeof line, "Host: %s:%u\r\nOrigin: http://%s:%u\r\n", names[i],
                       s.port, names[i], s.port);
        CHECK_EQ(status_of(web_ask(s.port, "GET", "/api/program", line, NULL)), 200);
    }
    CHECK_EQ(status_of(web_ask(s.port, "GET", "/", "Sec-Fetch-Site: none\r\n", NULL)), 200);
    CHECK_EQ(status_of(web_ask(s.port, "GET", "/", "Sec-Fetch-Site: same-origin\r\n", NULL)), 200);
    site_close(&s);
}

static void test_paths_and_methods_that_are_none_are_refused(void)
{
    site s = site_open(NULL);
    check_error(web_get(s.port, "/nothing"), 404, "NOT_FOUND");
    check_error(web_get(s.port, "/../etc/passwd"), 404, "NOT_FOUND");
    check_error(web_get(s.port, "//"), 404, "NOT_FOUND");
    check_error(web_get(s.port, "/api/program%00"), 404, "NOT_FOUND");
    check_error(web_get(s.port, "/app.js%00.css"), 404, "NOT_FOUND");
    check_error(web_ask(s.port, "POST", "/nothing", SITE_TOKEN_HEADER, "{}"), 404, "NOT_FOUND");
    check_error(web_get(s.port, "/api/stop"), 405, "BAD_METHOD");
    check_error(web_ask(s.port, "POST", "/api/program", SITE_TOKEN_HEADER, "{}"), 405,
                "BAD_METHOD");
    check_error(web_ask(s.port, "OPTIONS", "/api/stop", NULL, NULL), 405, "BAD_METHOD");
    check_error(web_ask(s.port, "DELETE", "/", NULL, NULL), 405, "BAD_METHOD");
    web_answer put = web_ask(s.port, "PUT", "/api/program", NULL, NULL);
    CHECK_EQ(put.status, 405);
    CHECK_STR(web_header(&put, "Allow"), "GET, HEAD");
    web_free(&put);
    CHECK_EQ(fake_asked(s.program, NULL), 0);
    site_close(&s);
}

static void test_not_on_loopback_everything_that_tells_needs_the_token(void)
{
    jzx_console_opts opts = {.address = "0.0.0.0", .host = "jazz.example"};
    site s = site_open(&opts);
    check_error(web_get(s.port, "/api/program"), 403, "BAD_TOKEN");
    check_error(web_get(s.port, "/metrics"), 403, "BAD_TOKEN");
    check_error(web_get(s.port, "/nothing"), 403, "BAD_TOKEN");
    check_error(web_get(s.port, "/api/program?token=nonsense"), 403, "BAD_TOKEN");
    CHECK_EQ(fake_asked(s.program, NULL), 0);
    CHECK_EQ(status_of(web_get(s.port, "/healthz")), 200);
    CHECK_EQ(status_of(web_get(s.port, "/")), 200);
    CHECK_EQ(status_of(web_get(s.port, "/api/program?token=" SITE_TOKEN)), 200);
    CHECK_EQ(status_of(web_ask(s.port, "GET", "/metrics",
                               "Authorization: Bearer " SITE_TOKEN "\r\n", NULL)),
             200);
    CHECK_EQ(status_of(web_ask(s.port, "GET", "/api/program",
                               "Host: Jazz.Example\r\n" SITE_TOKEN_HEADER, NULL)),
             200);
    CHECK(strstr(jzx_console_url(s.console), "http://jazz.example:") != NULL);
    check_error(web_ask(s.port, "GET", "/api/program",
                        "Host: jazz.example.org\r\n" SITE_TOKEN_HEADER, NULL),
                421, "FOREIGN_HOST");
    site_close(&s);
}

static const jzt_test tests[] = {
    {"actions_need_the_token_in_a_header", test_actions_need_the_token_in_a_header},
    {"bodies_that_are_not_what_an_action_takes_are_refused",
     test_bodies_that_are_not_what_an_action_takes_are_refused},
    {"bodies_whose_end_is_told_in_two_ways_are_refused",
     test_bodies_whose_end_is_told_in_two_ways_are_refused},
    {"queries_that_a_path_does_not_know_are_refused",
     test_queries_that_a_path_does_not_know_are_refused},
    {"foreign_hosts_and_origins_are_refused", test_foreign_hosts_and_origins_are_refused},
    {"our_own_names_and_origins_get_in", test_our_own_names_and_origins_get_in},
    {"paths_and_methods_that_are_none_are_refused",
     test_paths_and_methods_that_are_none_are_refused},
    {"not_on_loopback_everything_that_tells_needs_the_token",
     test_not_on_loopback_everything_that_tells_needs_the_token},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
