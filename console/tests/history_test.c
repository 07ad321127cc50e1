/* Goal: the console keeps the past of its program, within bounds and the same for everybody, and
 * knows how the program went. Method: the rings alone, with made-up moments; then a whole console
 * before a made-up program that is looked at every 10 ms. */
#include "site.h"

#include "history.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static jzc_moment moment_at(uint64_t n)
{
    return (jzc_moment){.end_ms = 1000 * (n + 1),
                        .span_ms = 1000,
                        .handled = n,
                        .queued = (uint32_t)(n % 7),
                        .latency_us = 5};
}

typedef struct rows {
    unsigned count;
    uint64_t handled;
    uint64_t first_ms;
    uint64_t last_ms;
    uint64_t span_ms;
    bool in_order;  /* each begins where the one before it ended, or later */
    bool ends_rise; /* all that can be said where answers are late: spans are the program's clock */
} rows;

/* What an array of rows says. */
static rows rows_of(const char *text, size_t len)
{
    rows out = {.in_order = true, .ends_rise = true};
    json_t *all = json_loadb(text, len, 0, NULL);
    CHECK(json_is_array(all));
    for (size_t n = 0; n < json_array_size(all); n++) {
        const json_t *row = json_array_get(all, n);
        uint64_t values[8] = {0};
        for (size_t i = 0; i < 8; i++) {
            CHECK(json_is_integer(json_array_get(row, i)));
            values[i] = (uint64_t)json_integer_value(json_array_get(row, i));
        }
        out.ends_rise = out.ends_rise && values[0] >= out.last_ms;
        out.in_order = out.in_order && values[0] - values[1] >= out.last_ms;
        out.first_ms = out.count == 0 ? values[0] - values[1] : out.first_ms;
        out.last_ms = values[0];
        out.span_ms += values[1];
        out.handled += values[2];
        out.count++;
    }
    json_decref(all);
    return out;
}

static rows rows_after(const jzc_history *history, uint64_t after_ms)
{
    jzc_text text = {0};
    jzc_history_write(history, after_ms, &text);
    REQUIRE(!text.failed);
    rows out = rows_of(text.bytes, text.len);
    jzc_text_free(&text);
    return out;
}

/* Nothing is told twice, whatever is fine and whatever is coarse, and nothing is forgotten before
 * its time. */
static void test_past_is_fine_then_coarse_and_bounded(void)
{
    enum { LONG = 30000 };
    jzc_history history;
    REQUIRE(jzc_history_init(&history));
    CHECK_EQ(rows_after(&history, 0).count, 0);
    for (uint64_t n = 0; n < LONG; n++) {
        jzc_moment moment = moment_at(n);
        jzc_history_add(&history, &moment);
        if (n == 899 || n == 900 || n == 904 || n == 2500 || n == LONG - 1) {
            rows all = rows_after(&history, 0);
            CHECK(all.in_order);
            CHECK(all.count <= JZC_HISTORY_FINE + JZC_HISTORY_COARSE);
            CHECK_EQ(all.last_ms, moment.end_ms);
            /* A coarse row that is partly fine is left out: less than ten seconds are missing. */
            CHECK(all.last_ms - all.first_ms - all.span_ms < 10000);
            CHECK(n == LONG - 1 || all.first_ms < 10000);
        }
    }
    rows all = rows_after(&history, 0);
    CHECK_EQ(all.last_ms - all.first_ms, 6 * 3600 * 1000);
    CHECK_EQ(rows_after(&history, 1000 * (LONG - 3)).count, 3);
    CHECK_EQ(rows_after(&history, 1000 * LONG).count, 0);
    jzc_history_clear(&history);
    CHECK_EQ(rows_after(&history, 0).count, 0);
    jzc_history_free(&history);
}

static void test_coarse_row_is_the_sum_and_the_most_of_its_moments(void)
{
    jzc_history history;
    REQUIRE(jzc_history_init(&history));
    for (uint64_t n = 0; n < JZC_HISTORY_FINE + 10; n++) {
        jzc_moment moment = moment_at(n);
        moment.restarts = moment.failures = moment.dead = 1;
        moment.latency_us = n == 3 ? 777 : 5;
        jzc_history_add(&history, &moment);
    }
    jzc_text text = {0};
    jzc_history_write(&history, 0, &text);
    const char wanted[] = "[[10000,10000,45,6,10,10,777,10],[11000,1000,10,";
    CHECK(strncmp(text.bytes, wanted, sizeof wanted - 1) == 0);
    jzc_text_free(&text);
    jzc_history_free(&history);
}

static void test_reading_is_what_the_program_says_and_nothing_else(void)
{
    const char text[] = "{\"ok\":true,\"pid\":7,\"uptime_ms\":50,\"now_ns\":3000000,\"counters\":{"
                        "\"handled\":5,\"queued\":2,\"restarts\":1,\"failures\":4,\"dead\":3},"
                        "\"dispatchers\":[{\"latency_us\":9},{\"latency_us\":null},"
                        "{\"latency_us\":12,\"workers\":[{\"latency_us\":99}]}]}";
    jzc_reading before;
    jzc_reading now;
    REQUIRE(jzc_reading_of(text, sizeof text - 1, &now));
    CHECK_EQ(now.latency_us, 12);
    CHECK_EQ(now.queued, 2);
    before = now;
    before.now_ns = 1000000;
    before.handled = 1;
    CHECK(jzc_reading_continues(&before, &now));
    jzc_moment moment = jzc_reading_between(&before, &now, 77);
    CHECK_EQ(moment.handled, 4);
    CHECK_EQ(moment.span_ms, 2);
    CHECK_EQ(moment.end_ms, 77);
    before.handled = now.handled + 1; /* a counter that went back is no huge step */
    CHECK_EQ(jzc_reading_between(&before, &now, 77).handled, 0);
    before.pid = 8;
    CHECK(!jzc_reading_continues(&before, &now));
    before.pid = 7;
    before.uptime_ms = 51; /* the same number again, of a later process */
    CHECK(!jzc_reading_continues(&before, &now));
    static const char *const none[] = {"", "[]", "{}", "{\"ok\":true,\"pid\":7}",
                                       "{\"pid\":7,\"uptime_ms\":1,\"now_ns\":1,\"counters\":{"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        CHECK(!jzc_reading_of(none[i], strlen(none[i]), &now));
    }
}

/* The rows of /api/history. */
static rows rows_from(const site *s, const char *path, char *out_body, size_t cap)
{
    web_answer answer = web_get(s->port, path);
    CHECK_EQ(answer.status, 200);
    const char *at = strstr(answer.body, "\"rows\":");
    REQUIRE(at != NULL);
    at += 7;
    size_t len = strlen(at) - 1; /* without the last bracket */
    rows out = rows_of(at, len);
    if (out_body != NULL) {
        (void)snprintf(out_body, cap, "%.*s", (int)len, at);
    }
    web_free(&answer);
    return out;
}

static rows rows_until(const site *s, unsigned count)
{
    uint64_t until = web_now_ms() + 20000;
    rows out = rows_from(s, "/api/history", NULL, 0);
    while (out.count < count && web_now_ms() < until) {
        web_pause_ms(20);
        out = rows_from(s, "/api/history", NULL, 0);
    }
    CHECK(out.count >= count);
    return out;
}

static void test_page_that_comes_late_sees_the_past_as_every_other(void)
{
    jzx_console_opts opts = {.history_ms = 10};
    site s = site_open(&opts);
    char line[256];
    /* Nobody has looked, and yet it is asked: cheaply. */
    uint64_t until = web_now_ms() + 20000;
    while (fake_asked(s.program, "program") < 3 && web_now_ms() < until) {
        web_pause_ms(5);
    }
    fake_last(s.program, line, sizeof line);
    CHECK(strstr(line, "\"op\":\"program\",\"watch\":false") != NULL);
    fake_set_counters(s.program, 500, 3);
    rows first = rows_until(&s, 5);
    CHECK(first.ends_rise);
    CHECK_EQ(rows_until(&s, first.count + 3).handled, 500);
    /* Two pages get the same rows. */
    char one[65536];
    char two[65536];
    char path[64];
    (void)rows_from(&s, "/api/history", one, sizeof one);
    rows all = rows_from(&s, "/api/history?after=0", two, sizeof two);
    CHECK(strncmp(one, two, strlen(one) - 1) == 0);
    (void)snprintf(path, sizeof path, "/api/history?after=%llu", (unsigned long long)all.last_ms);
    rows later = rows_from(&s, path, NULL, 0);
    CHECK(later.count == 0 || later.first_ms >= all.last_ms);
    site_close(&s);
}

static void test_past_stays_when_the_program_ends_and_another_begins_anew(void)
{
    jzx_console_opts opts = {.history_ms = 10};
    site s = site_open(&opts);
    fake_set_counters(s.program, 500, 3);
    rows before = rows_until(&s, 5);
    fake_leave(s.program);
    uint64_t until = web_now_ms() + 20000;
    web_answer answer = web_get(s.port, "/api/program");
    while (answer.status == 200 && web_now_ms() < until) {
        web_free(&answer);
        answer = web_get(s.port, "/api/program");
    }
    CHECK_EQ(answer.status, 503);
    web_free(&answer);
    rows after = rows_from(&s, "/api/history", NULL, 0);
    CHECK(after.count >= before.count);
    /* The same program, that could not be reached for a while, goes on. */
    fake_return(s.program);
    CHECK_EQ(rows_until(&s, after.count + 2).first_ms, before.first_ms);
    fake_leave(s.program);
    fake_set_pid(s.program, 2);
    fake_return(s.program);
    uint64_t first_ms = before.first_ms;
    while (first_ms == before.first_ms && web_now_ms() < until) {
        web_pause_ms(20);
        first_ms = rows_from(&s, "/api/history", NULL, 0).first_ms;
    }
    CHECK(first_ms != before.first_ms);
    site_close(&s);
}

static void test_without_history_nothing_is_asked_and_there_is_none(void)
{
    site s = site_open(NULL);
    CHECK_EQ(rows_from(&s, "/api/history", NULL, 0).count, 0);
    web_pause_ms(50);
    CHECK_EQ(fake_asked(s.program, NULL), 0);
    site_close(&s);
}

/* A process that runs until it is told to end. */
static pid_t process_start(int *out_pipe)
{
    int fds[2];
    char byte;
    REQUIRE(pipe(fds) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(fds[1]);
        (void)!read(fds[0], &byte, 1);
        _exit(0);
    }
    (void)close(fds[0]);
    *out_pipe = fds[1];
    return pid;
}

/* Asks until the answer has this in it. */
static void check_end(const site *s, const char *wanted)
{
    uint64_t until = web_now_ms() + 20000;
    web_answer answer = web_get(s->port, "/api/program");
    while (!web_has(&answer, wanted) && web_now_ms() < until) {
        web_pause_ms(20);
        web_free(&answer);
        answer = web_get(s->port, "/api/program");
    }
    CHECK(web_has(&answer, wanted));
    CHECK(web_has(&answer, "NOT_REACHABLE"));
    web_free(&answer);
}

static void test_end_of_the_program_is_told_by_how_it_went(void)
{
    site s = site_open(NULL);
    int alive = -1;
    int status = 0;
    pid_t pid = process_start(&alive);
    fake_set_pid(s.program, (unsigned long)pid);
    web_answer answer = web_get(s.port, "/api/program");
    CHECK_EQ(answer.status, 200);
    web_free(&answer);
    fake_leave(s.program);
    check_end(&s, "\"end\":\"lost\"");
    fake_close(s.program);
    check_end(&s, "\"end\":\"closing\"");
    (void)close(alive);
    /* It need not be waited for by its parent to have ended. */
    check_end(&s, "\"end\":\"closed\"");
    REQUIRE(waitpid(pid, &status, 0) == pid);
    check_end(&s, "\"end\":\"closed\"");
    site_close(&s);
}

static void test_program_that_died_left_its_socket_behind(void)
{
    site s = site_open(NULL);
    int alive = -1;
    int status = 0;
    pid_t pid = process_start(&alive);
    fake_set_pid(s.program, (unsigned long)pid);
    web_answer answer = web_get(s.port, "/api/program");
    CHECK_EQ(answer.status, 200);
    web_free(&answer);
    (void)close(alive);
    REQUIRE(waitpid(pid, &status, 0) == pid);
    fake_leave(s.program);
    check_end(&s, "\"end\":\"died\"");
    site_close(&s);
}

/* Also one who comes when it is over: the console was there. */
static void test_when_it_ended_is_known_though_nobody_looked(void)
{
    jzx_console_opts opts = {.history_ms = 10};
    site s = site_open(&opts);
    uint64_t until = web_now_ms() + 20000;
    while (fake_asked(s.program, "program") < 2 && web_now_ms() < until) {
        web_pause_ms(5);
    }
    fake_close(s.program);
    web_pause_ms(400);
    web_answer answer = web_get(s.port, "/api/program");
    CHECK_EQ(answer.status, 503);
    const char *since = strstr(answer.body, "\"since_ms\":");
    REQUIRE(since != NULL);
    CHECK(strtoul(since + 11, NULL, 10) >= 300);
    web_free(&answer);
    site_close(&s);
}

static void test_farewell_comes_with_the_end_of_the_console(void)
{
    site s = site_open(NULL);
    int waits = web_connect(s.port);
    char text[128];
    (void)snprintf(text, sizeof text, "GET /api/farewell HTTP/1.1\r\nHost: localhost:%u\r\n\r\n",
                   s.port);
    CHECK(web_write(waits, text, strlen(text)));
    /* The connection after it is served: that one has been read by then. */
    web_answer other = web_get(s.port, "/healthz");
    CHECK_EQ(other.status, 200);
    web_free(&other);
    jzx_console_stop(s.console);
    web_answer answer = web_read(waits, 5000);
    CHECK_EQ(answer.status, 200);
    CHECK(web_has(&answer, "{\"ok\":true,\"stopping\":true,\"own\":false}"));
    web_free(&answer);
    (void)close(waits);
    fake_stop(s.program);
}

static void test_farewell_that_does_not_come_is_asked_for_again(void)
{
    if (getenv("JZX_CONSOLE_LONG") == NULL) {
        jzt_skip("This takes 8 s: JZX_CONSOLE_LONG=1 runs it.");
    }
    site s = site_open(NULL);
    web_answer answer = web_get(s.port, "/api/farewell");
    CHECK_EQ(answer.status, 200);
    CHECK(web_has(&answer, "\"stopping\":false"));
    web_free(&answer);
    site_close(&s);
}

static const jzt_test tests[] = {
    {"past_is_fine_then_coarse_and_bounded", test_past_is_fine_then_coarse_and_bounded},
    {"coarse_row_is_the_sum_and_the_most_of_its_moments",
     test_coarse_row_is_the_sum_and_the_most_of_its_moments},
    {"reading_is_what_the_program_says_and_nothing_else",
     test_reading_is_what_the_program_says_and_nothing_else},
    {"page_that_comes_late_sees_the_past_as_every_other",
     test_page_that_comes_late_sees_the_past_as_every_other},
    {"past_stays_when_the_program_ends_and_another_begins_anew",
     test_past_stays_when_the_program_ends_and_another_begins_anew},
    {"without_history_nothing_is_asked_and_there_is_none",
     test_without_history_nothing_is_asked_and_there_is_none},
    {"end_of_the_program_is_told_by_how_it_went", test_end_of_the_program_is_told_by_how_it_went},
    {"program_that_died_left_its_socket_behind", test_program_that_died_left_its_socket_behind},
    {"when_it_ended_is_known_though_nobody_looked",
     test_when_it_ended_is_known_though_nobody_looked},
    {"farewell_comes_with_the_end_of_the_console", test_farewell_comes_with_the_end_of_the_console},
    {"farewell_that_does_not_come_is_asked_for_again",
     test_farewell_that_does_not_come_is_asked_for_again},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
