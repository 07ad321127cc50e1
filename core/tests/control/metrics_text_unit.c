/* Goal: metrics are written in the text format of Prometheus, to the letter. Method: families and
 * their text; a histogram whose buckets add up. */
#include "control/metrics_text.h"

#include "base/alloc.h"
#include "support/check.h"

#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static jzi_metrics begin(void)
{
    jzi_metrics to = {0};
    jzx_allocator alloc = jzi_default_allocator();
    jzi_json_init(&to.text, &alloc);
    return to;
}

static void check_text(jzi_metrics *to, const char *expected)
{
    jzi_json_raw(&to->text, "", 1);
    REQUIRE(!to->text.failed);
    CHECK_STR(to->text.bytes, expected);
    jzi_json_deinit(&to->text);
}

static void test_a_family_has_its_help_and_type_once(void)
{
    jzi_metrics to = begin();
    jzi_metrics_begin(&to, "jzx_x_total", "counter", "What x is.");
    jzi_metrics_u64(&to, (jzi_label[JZI_LABELS]){{"reason", "a"}}, 1);
    jzi_metrics_u64(&to, (jzi_label[JZI_LABELS]){{"reason", "b"}, {"worker", "0"}}, UINT64_MAX);
    jzi_metrics_one(&to, "jzx_y", "gauge", "Y.", 0);
    check_text(&to, "# HELP jzx_x_total What x is.\n"
                    "# TYPE jzx_x_total counter\n"
                    "jzx_x_total{reason=\"a\"} 1\n"
                    "jzx_x_total{reason=\"b\",worker=\"0\"} 18446744073709551615\n"
                    "# HELP jzx_y Y.\n"
                    "# TYPE jzx_y gauge\n"
                    "jzx_y 0\n");
}

static void test_values_of_labels_are_escaped(void)
{
    jzi_metrics to = begin();
    jzi_metrics_begin(&to, "jzx_x", "gauge", "X.");
    jzi_metrics_u64(&to, (jzi_label[JZI_LABELS]){{"name", "a\"b\\c\nd"}}, 1);
    check_text(&to, "# HELP jzx_x X.\n# TYPE jzx_x gauge\njzx_x{name=\"a\\\"b\\\\c\\nd\"} 1\n");
    /* Escape sequences are none any more; what is no control stays, as 0xa0 beside C1. */
    jzi_metrics_begin(&to, "jzx_y", "gauge", "Y.");
    jzi_metrics_u64(&to,
                    (jzi_label[JZI_LABELS]){{"name", "\033[31m\x7f\xc2\x9b"
                                                     "1m\xc2\xa0\xe5\x90\x8d"}},
                    1);
    check_text(&to, "# HELP jzx_y Y.\n# TYPE jzx_y gauge\n"
                    "jzx_y{name=\"\\\\x1b[31m\\\\x7f\\\\x9b1m\xc2\xa0\xe5\x90\x8d\"} 1\n");
}

static void test_seconds_are_exact(void)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } samples[] = {
        {0, "0"},          {1, "0.000000001"},    {512, "0.000000512"},
        {1000000000, "1"}, {10500000000, "10.5"}, {UINT64_MAX, "18446744073.709551615"},
    };
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        char expected[200] = "# HELP jzx_s S.\n# TYPE jzx_s gauge\njzx_s ";
        jzi_metrics to = begin();
        jzi_metrics_begin(&to, "jzx_s", "gauge", "S.");
        jzi_metrics_seconds(&to, NULL, samples[i].ns);
        strcat(expected, samples[i].text);
        strcat(expected, "\n");
        check_text(&to, expected);
    }
}

static void test_buckets_of_a_histogram_add_up(void)
{
    static const uint64_t buckets[4] = {3, 0, 2, 1};
    jzi_metrics to = begin();
    jzi_metrics_histogram(&to, "jzx_h_seconds", "H.", buckets, 4, 9, 1500000);
    check_text(&to, "# HELP jzx_h_seconds H.\n"
                    "# TYPE jzx_h_seconds histogram\n"
                    "jzx_h_seconds_bucket{le=\"0.000000512\"} 3\n"
                    "jzx_h_seconds_bucket{le=\"0.000001024\"} 3\n"
                    "jzx_h_seconds_bucket{le=\"0.000002048\"} 5\n"
                    "jzx_h_seconds_bucket{le=\"+Inf\"} 6\n"
                    "jzx_h_seconds_sum 0.0015\n"
                    "jzx_h_seconds_count 6\n");
}

static const jzt_test tests[] = {
    {"a_family_has_its_help_and_type_once", test_a_family_has_its_help_and_type_once},
    {"values_of_labels_are_escaped", test_values_of_labels_are_escaped},
    {"seconds_are_exact", test_seconds_are_exact},
    {"buckets_of_a_histogram_add_up", test_buckets_of_a_histogram_add_up},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
