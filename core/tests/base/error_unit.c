/* Goal: every error of the public header has its own name and a sentence that a user can act on.
 * Method: the constants are read from core/include/jzx/types.h itself, so a new one cannot be
 * forgotten.
 */
#include <jzx/types.h>

#include "support/check.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct constant {
    char name[64];
    int value;
} constant;

enum { MAX_CONSTANTS = 128 };

static constant constants[MAX_CONSTANTS];
static size_t count;

static void read_constants(void)
{
    FILE *header = fopen(JZT_SOURCES "/core/include/jzx/types.h", "r");
    char line[256];
    REQUIRE(header != NULL);
    count = 0;
    while (fgets(line, sizeof line, header) != NULL && count < MAX_CONSTANTS) {
        constant c;
        if (sscanf(line, " %63[A-Z0-9_] = %d", c.name, &c.value) == 2 &&
            (strncmp(c.name, "JZX_ERR_", 8) == 0 || strcmp(c.name, "JZX_OK") == 0)) {
            constants[count++] = c;
        }
    }
    fclose(header);
    REQUIRE(count > 30 && count < MAX_CONSTANTS);
}

static void test_every_constant_of_the_header_has_its_own_name(void)
{
    read_constants();
    for (size_t i = 0; i < count; i++) {
        CHECK_STR(jzx_err_name(constants[i].value), constants[i].name);
    }
}

static void test_every_constant_has_a_sentence_of_its_own(void)
{
    read_constants();
    for (size_t i = 0; i < count; i++) {
        const char *sentence = jzx_strerror(constants[i].value);
        REQUIRE(sentence != NULL);
        size_t len = strlen(sentence);
        CHECK(len > 5 && len < 120);
        CHECK(sentence[0] >= 'A' && sentence[0] <= 'Z');
        CHECK_EQ(sentence[len - 1], '.');
        CHECK(strcmp(sentence, jzx_strerror(1)) != 0);
        for (size_t j = 0; j < i; j++) {
            CHECK(strcmp(sentence, jzx_strerror(constants[j].value)) != 0);
        }
    }
}

static void test_values_are_zero_and_below_without_a_gap(void)
{
    read_constants();
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(constants[i].value, -(int)i);
    }
    CHECK_STR(constants[0].name, "JZX_OK");
    CHECK_EQ(JZX_ERR_INVALID_ARG, -1);
}

static void test_other_values_are_unknown_and_never_null(void)
{
    static const int values[] = {1, 2, 1000, INT_MAX, -1000, INT_MIN, INT_MIN + 1};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        CHECK_STR(jzx_err_name(values[i]), "JZX_ERR_UNKNOWN");
        CHECK(strlen(jzx_strerror(values[i])) > 5);
    }
    read_constants();
    CHECK_STR(jzx_err_name(-(int)count), "JZX_ERR_UNKNOWN");
}

static void test_reasons_have_names_and_the_version_is_the_headers(void)
{
    CHECK_STR(jzx_reason_name(JZX_REASON_NORMAL), "normal");
    CHECK_STR(jzx_reason_name(JZX_REASON_SHUTDOWN), "shutdown");
    CHECK_STR(jzx_reason_name(JZX_REASON_KILLED), "killed");
    CHECK_STR(jzx_reason_name(JZX_REASON_FAILED), "failed");
    CHECK_STR(jzx_reason_name(JZX_REASON_PANIC), "panic");
    CHECK_STR(jzx_reason_name(JZX_REASON_NOCONNECTION + 1), "unknown");
    CHECK_STR(jzx_reason_name(UINT32_MAX), "unknown");
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", JZX_VERSION_MAJOR, JZX_VERSION_MINOR,
             JZX_VERSION_PATCH);
    CHECK_STR(jzx_version(), version);
    CHECK_STR(jzx_version(), JZX_VERSION_STRING);
}

static const jzt_test tests[] = {
    {"every_constant_of_the_header_has_its_own_name",
     test_every_constant_of_the_header_has_its_own_name},
    {"every_constant_has_a_sentence_of_its_own", test_every_constant_has_a_sentence_of_its_own},
    {"values_are_zero_and_below_without_a_gap", test_values_are_zero_and_below_without_a_gap},
    {"other_values_are_unknown_and_never_null", test_other_values_are_unknown_and_never_null},
    {"reasons_have_names_and_the_version_is_the_headers",
     test_reasons_have_names_and_the_version_is_the_headers},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
