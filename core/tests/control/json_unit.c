/* Goal: answers are JSON whatever is in them, and of requests only what is JSON, small and flat is
 * taken, with a sentence for everything else. */
#include "check.h"
#include "control/json.h"

#include "base/alloc.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static jzi_json made(void)
{
    jzx_allocator alloc = jzi_default_allocator();
    jzi_json json;
    jzi_json_init(&json, &alloc);
    return json;
}

/* What was written, and the end of it. */
static void check_text(jzi_json *json, const char *expected)
{
    REQUIRE(!json->failed);
    char *text = calloc(1, json->len + 1);
    REQUIRE(text != NULL);
    if (json->len > 0) {
        memcpy(text, json->bytes, json->len);
    }
    CHECK_STR(text, expected);
    free(text);
    jzi_json_deinit(json);
}

static void test_members_and_elements_have_commas_between_them(void)
{
    jzi_json json = made();
    jzi_json_open(&json, NULL, '{');
    jzi_json_u64(&json, "a", 1);
    jzi_json_open(&json, "b", '[');
    jzi_json_close(&json, ']');
    jzi_json_open(&json, "c", '[');
    jzi_json_bool(&json, NULL, true);
    jzi_json_bool(&json, NULL, false);
    jzi_json_null(&json, NULL);
    jzi_json_open(&json, NULL, '{');
    jzi_json_close(&json, '}');
    jzi_json_close(&json, ']');
    jzi_json_text(&json, "d", NULL);
    jzi_json_close(&json, '}');
    jzi_json_raw(&json, "\n", 1);
    jzi_json_open(&json, NULL, '{');
    jzi_json_close(&json, '}');
    check_text(&json, "{\"a\":1,\"b\":[],\"c\":[true,false,null,{}],\"d\":null}\n{}");
}

static void test_texts_are_escaped_and_always_utf8(void)
{
    static const struct {
        const char *text;
        const char *expected;
    } rows[] = {
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"say \"no\" \\", "\"say \\\"no\\\" \\\\\""},
        {"\n\r\t\x01\x1f\x7f", "\"\\n\\r\\t\\u0001\\u001f\\u007f\""},
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8E\xB7", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8E\xB7\""},
        {"a\xFFz", "\"a\xEF\xBF\xBDz\""},
        {"\xC0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},                 /* overlong */
        {"\xE0\x9F\xBF", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""}, /* overlong */
        {"\xE0\xA0\x80", "\"\xE0\xA0\x80\""},
        {"\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""}, /* half a pair */
        {"\xF4\x90\x80\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xE2\x82", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""}, /* cut */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jzi_json json = made();
        jzi_json_text(&json, NULL, rows[i].text);
        check_text(&json, rows[i].expected);
    }
}

static void test_numbers_are_exact_and_reals_have_a_point(void)
{
    jzi_json json = made();
    jzi_json_u64(&json, NULL, 0);
    jzi_json_u64(&json, NULL, UINT64_MAX);
    jzi_json_i64(&json, NULL, INT64_MIN);
    jzi_json_i64(&json, NULL, 7);
    jzi_json_actor(&json, NULL, 0x100000003);
    jzi_json_actor(&json, NULL, JZX_NOBODY);
    jzi_json_actor(&json, NULL, UINT64_MAX);
    jzi_json_pointer(&json, NULL, (const void *)(uintptr_t)0x55d0);
    check_text(&json, "0,18446744073709551615,-9223372036854775808,7,\"100000003\",null,"
                      "\"ffffffffffffffff\",\"55d0\"");
    json = made();
    jzi_json_real(&json, NULL, 0);
    jzi_json_real(&json, NULL, 950);
    jzi_json_real(&json, NULL, 0.12);
    jzi_json_real(&json, NULL, -1.5);
    jzi_json_real(&json, NULL, 0.000001);
    jzi_json_real(&json, NULL, -0.0000001);
    jzi_json_real(&json, NULL, 1e12);
    jzi_json_real(&json, NULL, NAN);
    jzi_json_real(&json, NULL, -INFINITY);
    check_text(&json, "0.0,950.0,0.12,-1.5,0.000001,0.0,1000000000000,null,null");
}

/* A program that speaks German writes 0,5. */
static void test_the_locale_has_no_say(void)
{
    jzi_json json = made();
    (void)setlocale(LC_ALL, "de_DE.UTF-8");
    jzi_json_real(&json, NULL, 0.5);
    (void)setlocale(LC_ALL, "C");
    check_text(&json, "0.5");
}

static void *never(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    (void)new_size;
    (void)ptr;
    return NULL;
}

static void test_without_memory_it_says_so_and_takes_no_more(void)
{
    jzx_allocator none = {.realloc = never};
    jzi_json json;
    jzi_json_init(&json, &none);
    jzi_json_u64(&json, "a", 1);
    CHECK(json.failed);
    CHECK_EQ(json.len, 0);
    jzi_json_deinit(&json);
}

/* Requests. */

static jzi_request request; /* some kilobytes */

static const char *read_line(const char *line)
{
    return jzi_request_read(&request, line, strlen(line));
}

static void test_a_request_is_read(void)
{
    const char *const *list = NULL;
    REQUIRE(read_line(" {\"id\":7, \"op\" : \"trace\",\"actors\":[\"a\",\"b\"],\"one\":\"c\","
                      "\"sends\":true,\"no\":null,\"tag\":4294967295,\"none\":[]}\r") == NULL);
    CHECK_EQ(request.id, 7);
    CHECK_STR(request.op, "trace");
    CHECK_EQ(jzi_request_list(&request, "actors", &list), 2);
    CHECK_STR(list[0], "a");
    CHECK_STR(list[1], "b");
    CHECK_EQ(jzi_request_list(&request, "one", &list), 1);
    CHECK_STR(list[0], "c");
    CHECK_EQ(jzi_request_list(&request, "none", &list), 0);
    CHECK_EQ(jzi_request_list(&request, "missing", &list), 0);
    CHECK(jzi_request_bool(&request, "sends", false));
    CHECK(jzi_request_bool(&request, "no", true));
    CHECK(!jzi_request_has(&request, "no"));
    CHECK(jzi_request_has(&request, "tag"));
    CHECK_EQ(jzi_request_u64(&request, "tag", 1, UINT32_MAX), UINT32_MAX);
    CHECK_EQ(jzi_request_u64(&request, "missing", 42, 43), 42);
    CHECK(jzi_request_text(&request, "missing") == NULL);
    CHECK(request.wrong == NULL);
}

static void test_a_member_of_another_type_is_noted_once(void)
{
    const char *const *list = NULL;
    REQUIRE(read_line("{\"op\":\"x\",\"a\":1.5,\"b\":[1],\"c\":\"t\",\"d\":-1,\"e\":11}") == NULL);
    CHECK_EQ(request.id, 0);
    CHECK_EQ(jzi_request_u64(&request, "a", 3, 10), 3);
    CHECK_STR(request.wrong, "a");
    CHECK_EQ(jzi_request_list(&request, "b", &list), 0);
    CHECK_STR(request.wrong, "a");
    const char *const lines[] = {"b", "c", "d", "e"};
    for (size_t i = 0; i < 4; i++) {
        request.wrong = NULL;
        CHECK_EQ(jzi_request_u64(&request, lines[i], 3, 10), 3);
        CHECK_STR(request.wrong, lines[i]);
    }
    request.wrong = NULL;
    CHECK(jzi_request_text(&request, "a") == NULL);
    CHECK_STR(request.wrong, "a");
    request.wrong = NULL;
    CHECK(jzi_request_bool(&request, "c", true));
    CHECK_STR(request.wrong, "c");
}

static void test_texts_are_unescaped(void)
{
    REQUIRE(
        read_line("{\"op\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83c\\udfb7\"}") ==
        NULL);
    CHECK_STR(request.op, "\"\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8E\xB7");
}

static void test_what_is_not_a_request_gets_a_sentence(void)
{
    static const char *const lines[] = {
        "",
        "x",
        "[]",
        "1",
        "{",
        "}",
        "{}",
        "{\"op\"}",
        "{\"op\":}",
        "{\"op\":\"a\"",
        "{\"op\":\"a\",}",
        "{\"op\":\"a\"} x",
        "{\"op\":\"a\"}{}",
        "{\"op\":1}",
        "{\"op\":null}",
        "{op:\"a\"}",
        "{\"op\":\"a\",\"op\":\"b\"}",
        "{\"op\":\"a\\u0000\"}",
        "{\"op\":\"\\ud83c\"}",
        "{\"op\":\"\\udfb7\"}",
        "{\"op\":\"\\ud83c\\u0041\"}",
        "{\"op\":\"\\u12\"}",
        "{\"op\":\"\\x\"}",
        "{\"op\":\"\\",
        "{\"op\":\"a\tb\"}",
        "{\"op\":\"a",
        "{\"op\":\"a\",\"n\":01}",
        "{\"op\":\"a\",\"n\":+1}",
        "{\"op\":\"a\",\"n\":1.}",
        "{\"op\":\"a\",\"n\":.5}",
        "{\"op\":\"a\",\"n\":1e}",
        "{\"op\":\"a\",\"n\":-}",
        "{\"op\":\"a\",\"n\":nul}",
        "{\"op\":\"a\",\"n\":truely}",
        "{\"op\":\"a\",\"n\":NaN}",
        "{\"op\":\"a\",\"n\":[}",
        "{\"op\":\"a\",\"n\":[1,]}",
        "{\"op\":\"a\",\"n\":[[[[1]]]]}",
        "{\"op\":\"a\",\"n\":{\"a\":{\"b\":{\"c\":{}}}}}",
        "{\"op\":\"a\",\"n\":{\"a\"}}",
        "{\"op\":\"a\xFF\"}",
        "{\"op\":\"a\",\"id\":\"1\"}",
        "{\"op\":\"a\",\"id\":-1}",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const char *why = read_line(lines[i]);
        if (why == NULL) {
            CHECK_STR(lines[i], "refused");
        } else {
            CHECK(strlen(why) > 10 && why[strlen(why) - 1] == '.');
        }
    }
}

static void test_the_id_is_read_even_if_the_rest_is_wrong(void)
{
    CHECK(read_line("{\"id\":12,\"op\":5}") != NULL);
    CHECK_EQ(request.id, 12);
    CHECK(read_line("{\"id\":13,\"op\"") != NULL);
    CHECK_EQ(request.id, 13);
    CHECK(read_line("{\"op\":5,\"id\":14}") != NULL);
    CHECK_EQ(request.id, 14);
    CHECK(read_line("x") != NULL);
    CHECK_EQ(request.id, 0);
}

/* A newer client may say more than we understand. */
static void test_unknown_members_of_any_shape_are_ignored(void)
{
    CHECK(read_line(
              "{\"op\":\"a\",\"m\":{\"x\":[1,{}],\"y\":\"z\"},\"n\":[[1],[\"q\"]],\"r\":1e-3}") ==
          NULL);
    CHECK_STR(request.op, "a");
}

static void test_there_are_limits(void)
{
    char line[JZI_REQUEST_MAX + 2];
    memset(line, ' ', sizeof line);
    memcpy(line, "{\"op\":\"a\"}", 10);
    CHECK(jzi_request_read(&request, line, JZI_REQUEST_MAX) == NULL);
    CHECK(jzi_request_read(&request, line, JZI_REQUEST_MAX + 1) != NULL);
    for (size_t count = JZI_REQUEST_MEMBERS - 1; count <= JZI_REQUEST_MEMBERS; count++) {
        size_t len = (size_t)snprintf(line, sizeof line, "{\"op\":\"a\"");
        for (size_t i = 0; i < count; i++) {
            len += (size_t)snprintf(line + len, sizeof line - len, ",\"m%zu\":0", i);
        }
        len += (size_t)snprintf(line + len, sizeof line - len, "}");
        CHECK_EQ(jzi_request_read(&request, line, len) == NULL, count < JZI_REQUEST_MEMBERS);
    }
    for (size_t count = JZI_REQUEST_LIST; count <= JZI_REQUEST_LIST + 1; count++) {
        size_t len = (size_t)snprintf(line, sizeof line, "{\"op\":\"a\",\"l\":[\"x\"");
        for (size_t i = 1; i < count; i++) {
            len += (size_t)snprintf(line + len, sizeof line - len, ",\"x\"");
        }
        len += (size_t)snprintf(line + len, sizeof line - len, "]}");
        CHECK_EQ(jzi_request_read(&request, line, len) == NULL, count <= JZI_REQUEST_LIST);
    }
}

static void test_whole_numbers_stop_at_64_bits(void)
{
    REQUIRE(read_line("{\"op\":\"a\",\"m\":18446744073709551615,\"n\":18446744073709551616}") ==
            NULL);
    CHECK(jzi_request_u64(&request, "m", 0, UINT64_MAX) == UINT64_MAX);
    CHECK(request.wrong == NULL);
    CHECK_EQ(jzi_request_u64(&request, "n", 5, UINT64_MAX), 5);
    CHECK_STR(request.wrong, "n");
}

/* What is written is read back, whatever bytes a name has. */
static void test_random_texts_come_back(void)
{
    jzt_rng rng = jzt_rng_seeded();
    for (int round = 0; round < 2000; round++) {
        char text[65] = {0};
        char line[1024];
        size_t len = (size_t)jzt_rng_below(&rng, sizeof text - 1);
        for (size_t i = 0; i < len; i++) {
            text[i] = (char)(1 + jzt_rng_below(&rng, 127));
        }
        jzi_json json = made();
        jzi_json_open(&json, NULL, '{');
        jzi_json_text(&json, "op", text);
        jzi_json_close(&json, '}');
        REQUIRE(json.len < sizeof line);
        memcpy(line, json.bytes, json.len);
        REQUIRE(jzi_request_read(&request, line, json.len) == NULL);
        CHECK_STR(request.op, text);
        jzi_json_deinit(&json);
    }
}

static const jzt_test tests[] = {
    {"members_and_elements_have_commas_between_them",
     test_members_and_elements_have_commas_between_them},
    {"texts_are_escaped_and_always_utf8", test_texts_are_escaped_and_always_utf8},
    {"numbers_are_exact_and_reals_have_a_point", test_numbers_are_exact_and_reals_have_a_point},
    {"the_locale_has_no_say", test_the_locale_has_no_say},
    {"without_memory_it_says_so_and_takes_no_more",
     test_without_memory_it_says_so_and_takes_no_more},
    {"a_request_is_read", test_a_request_is_read},
    {"a_member_of_another_type_is_noted_once", test_a_member_of_another_type_is_noted_once},
    {"texts_are_unescaped", test_texts_are_unescaped},
    {"what_is_not_a_request_gets_a_sentence", test_what_is_not_a_request_gets_a_sentence},
    {"the_id_is_read_even_if_the_rest_is_wrong", test_the_id_is_read_even_if_the_rest_is_wrong},
    {"unknown_members_of_any_shape_are_ignored", test_unknown_members_of_any_shape_are_ignored},
    {"there_are_limits", test_there_are_limits},
    {"whole_numbers_stop_at_64_bits", test_whole_numbers_stop_at_64_bits},
    {"random_texts_come_back", test_random_texts_come_back},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
