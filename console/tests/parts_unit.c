/* Goal: the parts that read what others send: JSON, Host, tokens, questions, lines, greetings.
 * Method: tables of what is right and what is wrong, without a loop or a socket. */
#include "check.h"

#include "answer.h"
#include "guard.h"
#include "json.h"
#include "lines.h"
#include "route.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many members an object has; -1: it is none. */
static int members(const char *text)
{
    json_t *object = jzc_json_read(text, strlen(text));
    int count = object == NULL ? -1 : (int)json_object_size(object);
    json_decref(object);
    return count;
}

static void test_objects_are_read_and_everything_else_is_refused(void)
{
    CHECK_EQ(members("{}"), 0);
    CHECK_EQ(members(" { } "), 0);
    CHECK_EQ(members("{\"a\":1,\"b\":\"x\",\"c\":null,\"d\":[1,{\"e\":\"]\"}]}"), 4);
    CHECK_EQ(members("{\"a\":-1.5e+7}"), 1);
    static const char *const wrong[] = {
        "",
        "{",
        "}",
        "[]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1",
        "{\"a\":1}}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":+1}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{\"a\":tru}",
        "{\"a\":\"\\q\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":[}",
        "{\"a\":\"\x01\"}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":\"\xc3\"}",
        "null",
        "{\"a\":1}x",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(members(wrong[i]), -1);
    }
}

static void test_reading_stops_at_every_cut(void)
{
    const char *whole = "{\"a\":\"\\u00e9\\n\",\"b\":[1,2,{\"c\":\"}\"}],\"d\":-1.5e3,\"e\":true}";
    for (size_t len = 0; len < strlen(whole); len++) {
        char *copy = malloc(len + 1); /* exactly as long, so that a sanitizer sees one byte more */
        memcpy(copy, whole, len);
        CHECK(jzc_json_read(copy, len) == NULL);
        free(copy);
    }
    CHECK_EQ(members(whole), 4);
}

/* The text of an answer, which is what metrics are: escapes are resolved. */
static void test_strings_mean_what_they_say(void)
{
    static const struct {
        const char *json;
        const char *text;
    } table[] = {
        {"\"\"", ""},
        {"\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "a\"\\/\b\f\n\r\t"},
        {"\"\\u00e9\\u20ac\"", "\xc3\xa9\xe2\x82\xac"},
        {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char line[128];
        uint64_t id = 0;
        int len = snprintf(line, sizeof line, "{\"id\":7,\"ok\":true,\"text\":%s}", table[i].json);
        jzc_answer *answer = jzc_answer_of_line(line, (size_t)len, &id);
        REQUIRE(answer != NULL);
        answer = jzc_answer_text_of(answer);
        REQUIRE(answer != NULL);
        CHECK_EQ(id, 7);
        CHECK_EQ(answer->len, strlen(table[i].text));
        CHECK(memcmp(answer->bytes, table[i].text, answer->len) == 0);
        jzc_answer_drop(answer);
    }
    jzc_text quoted = {0};
    jzc_text_quote(&quoted, "a\"\\\n\x7f\0b", 7);
    CHECK_STR(quoted.bytes, "\"a\\\"\\\\\\u000a\\u007f\\u0000b\"");
    jzc_text_free(&quoted);
}

static void test_utf8_is_told_from_what_is_none(void)
{
    static const char *const right[] = {"",
                                        "a",
                                        "\xc3\xa9",
                                        "\xe2\x82\xac",
                                        "\xf0\x9f\x98\x80",
                                        "\xed\x9f\xbf",
                                        "\xf4\x8f\xbf\xbf"};
    static const char *const wrong[] = {"\x80",
                                        "\xc0\x80",
                                        "\xc3",
                                        "\xe0\x80\x80",
                                        "\xed\xa0\x80",
                                        "\xf0\x80\x80\x80",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80",
                                        "\xff",
                                        "a\xe2\x82"};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        CHECK(jzc_utf8_ok(right[i], strlen(right[i])));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(!jzc_utf8_ok(wrong[i], strlen(wrong[i])));
    }
}

static void test_hosts_are_ours_or_foreign(void)
{
    jzc_place here = {.fd = -1, .port = 8417, .loopback = true};
    (void)snprintf(here.address, sizeof here.address, "127.0.0.1");
    CHECK(jzc_place_is_host(&here, "127.0.0.1:8417"));
    CHECK(jzc_place_is_host(&here, "localhost:8417"));
    CHECK(jzc_place_is_host(&here, "[::1]:8417"));
    static const char *const foreign[] = {"localhost",
                                          "localhost:",
                                          "localhost:84170",
                                          "localhost:8418",
                                          "::1:8417",
                                          "[::1:8417",
                                          "[::1]8417",
                                          "[]:8417",
                                          ":8417",
                                          "",
                                          "a.localhost:8417",
                                          "localhost:8417:1",
                                          "localhost:+8417",
                                          "[localhost]:8417",
                                          "0:8417",
                                          "192.168.1.5:8417",
                                          "localhost:08417x"};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        CHECK(!jzc_place_is_host(&here, foreign[i]));
    }
    jzc_place there = {.fd = -1, .port = 80, .wildcard = true};
    (void)snprintf(there.address, sizeof there.address, "0.0.0.0");
    (void)snprintf(there.host, sizeof there.host, "jazz.example:443");
    CHECK(jzc_place_is_host(&there, "192.168.1.5"));
    CHECK(jzc_place_is_host(&there, "[fe80::1]:80"));
    CHECK(jzc_place_is_host(&there, "JAZZ.example:443"));
    CHECK(!jzc_place_is_host(&there, "jazz.example"));
    CHECK(!jzc_place_is_host(&there, "other.example"));
}

static void test_tokens_are_equal_or_not(void)
{
    CHECK(jzc_token_equal("abc", "abc"));
    CHECK(!jzc_token_equal("abc", "abd"));
    CHECK(!jzc_token_equal("abc", "ab"));
    CHECK(!jzc_token_equal("abc", "abca"));
    CHECK(!jzc_token_equal("abc", "abcabc"));
    CHECK(!jzc_token_equal("abc", ""));
    /* As long as those that are made, and different at either end only. */
    CHECK(jzc_token_equal("0123456789abcdef", "0123456789abcdef"));
    CHECK(!jzc_token_equal("0123456789abcdef", "0123456789abcdeF"));
    CHECK(!jzc_token_equal("0123456789abcdef", "x123456789abcdef"));
    CHECK(jzc_token_is_sane("aZ09-._~"));
    CHECK(!jzc_token_is_sane(""));
    CHECK(!jzc_token_is_sane("a#b"));
}

static void test_answers_lose_their_id_and_get_a_status(void)
{
    static const struct {
        const char *line;
        const char *body; /* NULL: it is no answer */
        unsigned status;
        unsigned id;
    } table[] = {
        {"{\"id\":7,\"ok\":true,\"a\":1}", "{\"ok\":true,\"a\":1}", 200, 7},
        {"{\"id\":8,\"ok\":false,\"error\":\"NO_SUCH_ACTOR\",\"text\":\"x\"}",
         "{\"ok\":false,\"error\":\"NO_SUCH_ACTOR\",\"text\":\"x\"}", 404, 8},
        {"{\"id\":9,\"ok\":false,\"error\":\"NOT_ALLOWED\"}",
         "{\"ok\":false,\"error\":\"NOT_ALLOWED\"}", 403, 9},
        {"{\"id\":9,\"ok\":false,\"error\":\"CHILD_RUNNING\"}",
         "{\"ok\":false,\"error\":\"CHILD_RUNNING\"}", 409, 9},
        {"{\"id\":9}", "{}", 502, 9},
        {"{\"ok\":true,\"id\":9}", NULL, 0, 0},
        {"nonsense", NULL, 0, 0},
        {"", NULL, 0, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        uint64_t id = 0;
        jzc_answer *answer = jzc_answer_of_line(table[i].line, strlen(table[i].line), &id);
        CHECK_EQ(id, table[i].id);
        CHECK((answer == NULL) == (table[i].body == NULL));
        if (answer != NULL && table[i].body != NULL) {
            CHECK_STR(answer->bytes, table[i].body);
            CHECK_EQ(answer->status, table[i].status);
        }
        jzc_answer_drop(answer);
    }
}

static void test_lines_come_out_as_they_went_in_however_they_are_cut(void)
{
    const char *all = "one\n\ntwo two\nthree\n";
    for (size_t step = 1; step < 12; step++) {
        jzc_lines lines = {0};
        char seen[64] = "";
        for (size_t at = 0; at < strlen(all); at += step) {
            size_t len = strlen(all) - at < step ? strlen(all) - at : step;
            const char *line = NULL;
            size_t line_len = 0;
            CHECK(jzc_lines_feed(&lines, all + at, len));
            while (jzc_lines_next(&lines, &line, &line_len)) {
                (void)snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%.*s|",
                               (int)line_len, line);
            }
        }
        CHECK_STR(seen, "one||two two|three|");
        jzc_lines_free(&lines);
    }
}

static void test_a_line_has_a_limit_which_counts_what_is_about_to_come(void)
{
    static const char piece[1 << 16] = {'x'};
    jzc_lines lines = {0};
    for (size_t len = 0; len < JZC_LINE_MAX; len += sizeof piece) {
        REQUIRE(jzc_lines_feed(&lines, piece, sizeof piece));
    }
    CHECK(!jzc_lines_feed(&lines, "x", 1));
    jzc_lines_free(&lines);
}

static void test_greetings_of_others_are_told_apart(void)
{
    static const struct {
        const char *line;
        const char *error;
    } table[] = {
        {"{\"jzx\":\"0.1.0\",\"protocol\":1,\"pid\":7}", NULL},
        {"{\"jzx\":\"9.0.0\",\"protocol\":2}", "NOT_A_PROGRAM"},
        {"{\"ok\":false,\"error\":\"BUSY\",\"text\":\"x\"}", "BUSY"},
        {"{}", "NOT_A_PROGRAM"},
        {"220 mail.example", "NOT_A_PROGRAM"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *text = NULL;
        const char *error = jzc_greeting_error(table[i].line, strlen(table[i].line), &text);
        CHECK_STR(error == NULL ? "" : error, table[i].error == NULL ? "" : table[i].error);
        CHECK((error == NULL) == (text == NULL));
    }
}

static void test_the_same_question_is_the_same_text(void)
{
    static const char *const orders[][4] = {{"limit", "5", "sort", "name"},
                                            {"sort", "name", "limit", "005"}};
    char texts[2][128];
    for (size_t i = 0; i < 2; i++) {
        jzc_asked asked = {.route = jzc_route_find("/api/actors")};
        jzc_text text = {0};
        for (size_t k = 0; k < 4; k += 2) {
            const char *const *o = orders[i];
            CHECK_EQ(jzc_asked_query(&asked, o[k], strlen(o[k]), o[k + 1], strlen(o[k + 1])).status,
                     0);
        }
        CHECK_EQ(jzc_asked_question(&asked, &text).status, 0);
        (void)snprintf(texts[i], sizeof texts[i], "%s", text.bytes);
        jzc_text_free(&text);
        jzc_asked_free(&asked);
    }
    CHECK_STR(texts[0], "\"op\":\"actors\",\"sort\":\"name\",\"limit\":5");
    CHECK_STR(texts[1], texts[0]);
}

static const jzt_test tests[] = {
    {"objects_are_read_and_everything_else_is_refused",
     test_objects_are_read_and_everything_else_is_refused},
    {"reading_stops_at_every_cut", test_reading_stops_at_every_cut},
    {"strings_mean_what_they_say", test_strings_mean_what_they_say},
    {"utf8_is_told_from_what_is_none", test_utf8_is_told_from_what_is_none},
    {"hosts_are_ours_or_foreign", test_hosts_are_ours_or_foreign},
    {"tokens_are_equal_or_not", test_tokens_are_equal_or_not},
    {"answers_lose_their_id_and_get_a_status", test_answers_lose_their_id_and_get_a_status},
    {"lines_come_out_as_they_went_in_however_they_are_cut",
     test_lines_come_out_as_they_went_in_however_they_are_cut},
    {"a_line_has_a_limit_which_counts_what_is_about_to_come",
     test_a_line_has_a_limit_which_counts_what_is_about_to_come},
    {"greetings_of_others_are_told_apart", test_greetings_of_others_are_told_apart},
    {"the_same_question_is_the_same_text", test_the_same_question_is_the_same_text},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
