/* Goal: a schedule means the times that cron would run it at, and nothing else is a schedule.
 * Method: tables for texts; for times, random schedules against a walk minute by minute with the
 * calendar of libc. */
#include "cron.h"

#include "check.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MINUTE 60000u
#define DAY (1440u * MINUTE)

static uint64_t utc(int year, int month, int day, int hour, int minute)
{
    struct tm tm = {.tm_year = year - 1900,
                    .tm_mon = month - 1,
                    .tm_mday = day,
                    .tm_hour = hour,
                    .tm_min = minute};
    return (uint64_t)timegm(&tm) * 1000;
}

static jzx_err parse(const char *text, mfi_schedule *out)
{
    return mfi_schedule_parse((jzx_mf_span){text, strlen(text)}, out);
}

static uint64_t next_of(const char *text, uint64_t after)
{
    mfi_schedule schedule;
    CHECK_OK(parse(text, &schedule));
    return mfi_schedule_next(&schedule, after);
}

static void test_texts_that_are_no_schedules_are_refused(void)
{
    static const char *const bad[] = {
        "",
        " ",
        "*",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "* * * * 8",
        "-1 * * * *",
        "5- * * * *",
        "9-5 * * * *",
        "*/0 * * * *",
        "*/ * * * *",
        ", * * * *",
        "1, * * * *",
        "** * * * *",
        "1 * * foo *",
        "1 * * * mo",
        "1 * * * mond",
        "@",
        "@hour",
        "@hourlyx",
        "@hourly 5",
        "@every",
        "@every ",
        "@every s",
        "@every 0s",
        "@every 5",
        "@every 5x",
        "@every 5 s",
        "@every 5s5",
        "@every-5s",
        "@every5s",
        "1.5 * * * *",
        "1 * * * * x",
        "fri * * * *",
        "9999999999 * * * *",
        "@every 9999999999s",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mfi_schedule schedule;
        memset(&schedule, 0x5a, sizeof schedule);
        mfi_schedule before = schedule;
        if (parse(bad[i], &schedule) != JZX_ERR_BAD_SPEC) {
            printf("taken: \"%s\"\n", bad[i]);
            CHECK(0);
        }
        CHECK(memcmp(&schedule, &before, sizeof schedule) == 0);
    }
    mfi_schedule schedule;
    CHECK_EQ(mfi_schedule_parse((jzx_mf_span){"0 0 * * *\0", 10}, &schedule), JZX_ERR_BAD_SPEC);
    CHECK_EQ(mfi_schedule_parse((jzx_mf_span){NULL, 0}, &schedule), JZX_ERR_BAD_SPEC);
}

static void test_lists_ranges_steps_and_names_become_values(void)
{
    mfi_schedule s;
    CHECK_OK(parse("0,30-32,50/5 */8 1-31/10 jan,Dec mon-FRI", &s));
    CHECK_EQ(s.minutes, 1 | 7ull << 30 | 1ull << 50 | 1ull << 55);
    CHECK_EQ(s.hours, 1 | 1 << 8 | 1 << 16);
    CHECK_EQ(s.days, 1u << 1 | 1u << 11 | 1u << 21 | 1u << 31);
    CHECK_EQ(s.months, 1 << 1 | 1 << 12);
    CHECK_EQ(s.weekdays, 0x3e);
    CHECK_EQ(s.any_day, 0);
    CHECK_EQ(s.any_weekday, 0);
    CHECK_OK(parse("  5\t4   * * *  ", &s));
    CHECK_EQ(s.any_day, 1);
    CHECK_EQ(s.any_weekday, 1);
}

static void test_sunday_is_0_and_7(void)
{
    static const char *const texts[] = {"0 0 * * 0", "0 0 * * 7", "0 0 * * sun", "0 0 * * 7-7"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        mfi_schedule s;
        CHECK_OK(parse(texts[i], &s));
        CHECK_EQ(s.weekdays, 1);
    }
    mfi_schedule weekend;
    CHECK_OK(parse("0 0 * * sat-sun", &weekend));
    CHECK_EQ(weekend.weekdays, 0x41);
    CHECK_OK(parse("0 0 * * 5-7", &weekend));
    CHECK_EQ(weekend.weekdays, 0x61);
}

static void test_nicknames(void)
{
    uint64_t after = utc(2024, 2, 27, 13, 37);
    CHECK_EQ(next_of("@hourly", after), utc(2024, 2, 27, 14, 0));
    CHECK_EQ(next_of("@daily", after), utc(2024, 2, 28, 0, 0));
    CHECK_EQ(next_of("@midnight", after), utc(2024, 2, 28, 0, 0));
    CHECK_EQ(next_of("@weekly", after), utc(2024, 3, 3, 0, 0));
    CHECK_EQ(next_of("@monthly", after), utc(2024, 3, 1, 0, 0));
    CHECK_EQ(next_of("@yearly", after), utc(2025, 1, 1, 0, 0));
    CHECK_EQ(next_of(" @annually ", after), utc(2025, 1, 1, 0, 0));
}

static void test_every_adds(void)
{
    CHECK_EQ(next_of("@every 90s", 1234), 91234);
    CHECK_EQ(next_of("@every 5m", 7), 7 + 5 * MINUTE);
    CHECK_EQ(next_of("@every 2h", 0), 120 * MINUTE);
    CHECK_EQ(next_of("@every  1d ", 0), DAY);
    CHECK_EQ(next_of("@every 1s", UINT64_MAX - 10), UINT64_MAX);
}

static void test_the_time_is_after_the_one_given(void)
{
    uint64_t at = utc(2026, 11, 16, 14, 0);
    CHECK_EQ(next_of("0 14 * * *", at - 1), at);
    CHECK_EQ(next_of("0 14 * * *", at), at + DAY);
    CHECK_EQ(next_of("* * * * *", at), at + MINUTE);
    CHECK_EQ(next_of("* * * * *", at + 59999), at + MINUTE);
}

static void test_day_or_weekday_is_enough_when_both_are_given(void)
{
    /* 13 November 2026 is a Friday. */
    CHECK_EQ(next_of("0 0 13 * fri", utc(2026, 11, 1, 0, 0)), utc(2026, 11, 6, 0, 0));
    CHECK_EQ(next_of("0 0 13 * *", utc(2026, 11, 1, 0, 0)), utc(2026, 11, 13, 0, 0));
    CHECK_EQ(next_of("0 0 * * fri", utc(2026, 11, 7, 0, 0)), utc(2026, 11, 13, 0, 0));
    CHECK_EQ(next_of("0 0 10 * fri", utc(2026, 11, 7, 0, 0)), utc(2026, 11, 10, 0, 0));
}

static void test_leap_days_and_never(void)
{
    CHECK_EQ(next_of("0 0 29 2 *", utc(2024, 2, 29, 0, 0)), utc(2028, 2, 29, 0, 0));
    CHECK_EQ(next_of("0 0 29 2 *", utc(2096, 2, 29, 0, 0)), utc(2104, 2, 29, 0, 0));
    CHECK_EQ(next_of("0 0 29 2 *", utc(1999, 3, 1, 0, 0)), utc(2000, 2, 29, 0, 0));
    CHECK_EQ(next_of("0 0 30 2 *", 0), UINT64_MAX);
    CHECK_EQ(next_of("0 0 31 4,6,9,11 *", utc(2026, 1, 1, 0, 0)), UINT64_MAX);
    CHECK_EQ(next_of("* * * * *", UINT64_MAX), UINT64_MAX);
    CHECK_EQ(next_of("* * * * *", utc(9999, 12, 31, 23, 58)), utc(9999, 12, 31, 23, 59));
    CHECK_EQ(next_of("* * * * *", utc(9999, 12, 31, 23, 59)), UINT64_MAX);
}

/* A random field: its text, and the values it means. */
typedef struct chosen {
    char text[64];
    bool values[64];
    bool any;
} chosen;

static void choose(jzt_rng *rng, unsigned min, unsigned max, chosen *out)
{
    *out = (chosen){0};
    if (jzt_rng_below(rng, 2) == 0) {
        snprintf(out->text, sizeof out->text, "*");
        out->any = true;
        memset(out->values, 1, sizeof out->values);
        return;
    }
    size_t len = 0;
    unsigned parts = 1 + (unsigned)jzt_rng_below(rng, 3);
    for (unsigned i = 0; i < parts; i++) {
        unsigned first = min + (unsigned)jzt_rng_below(rng, max - min + 1);
        unsigned last = first + (unsigned)jzt_rng_below(rng, max - first + 1);
        unsigned step = 1 + (unsigned)jzt_rng_below(rng, 5);
        if (jzt_rng_below(rng, 2) == 0) {
            last = first;
        }
        len += (size_t)snprintf(out->text + len, sizeof out->text - len,
                                last == first ? "%s%u" : "%s%u-%u/%u", i > 0 ? "," : "", first,
                                last, step);
        for (unsigned v = first; v <= last; v += last == first ? 1 : step) {
            out->values[v] = true;
        }
    }
}

typedef struct line {
    chosen minute, hour, day, month, weekday;
    char text[400];
} line;

static bool matches(const line *l, uint64_t minute)
{
    time_t seconds = (time_t)(minute * 60);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    bool day = l->day.values[tm.tm_mday];
    bool weekday = l->weekday.values[tm.tm_wday] || (tm.tm_wday == 0 && l->weekday.values[7]);
    bool fits = l->day.any || l->weekday.any ? day && weekday : day || weekday;
    return fits && l->month.values[tm.tm_mon + 1] && l->hour.values[tm.tm_hour] &&
           l->minute.values[tm.tm_min];
}

static void test_random_schedules_agree_with_a_walk_by_minutes(void)
{
    enum { LINES = JZT_SANITIZED ? 60 : 250, WALK = 60000 };
    jzt_rng rng = jzt_rng_seeded();
    unsigned found = 0;
    for (int i = 0; i < LINES && jzt_failures() == 0; i++) {
        line l;
        choose(&rng, 0, 59, &l.minute);
        choose(&rng, 0, 23, &l.hour);
        choose(&rng, 1, 31, &l.day);
        choose(&rng, 1, 12, &l.month);
        choose(&rng, 0, 7, &l.weekday);
        snprintf(l.text, sizeof l.text, "%s %s %s %s %s", l.minute.text, l.hour.text, l.day.text,
                 l.month.text, l.weekday.text);
        /* From the end of a month on, to cross one; any year from 1970 to 2120. */
        uint64_t after = utc(1970 + (int)jzt_rng_below(&rng, 150), 1 + (int)jzt_rng_below(&rng, 12),
                             20 + (int)jzt_rng_below(&rng, 12), 0, 0) +
                         jzt_rng_below(&rng, DAY);
        uint64_t minute = after / MINUTE + 1;
        uint64_t end = minute + WALK;
        while (minute < end && !matches(&l, minute)) {
            minute++;
        }
        uint64_t next = next_of(l.text, after);
        if (minute < end) {
            found++;
            CHECK_EQ(next, minute * MINUTE);
        } else {
            CHECK(next >= end * MINUTE);
        }
        if (jzt_failures() > 0) {
            printf("%s after %llu\n", l.text, (unsigned long long)after);
        }
    }
    CHECK(found > LINES / 4);
}

static const jzt_test tests[] = {
    {"texts_that_are_no_schedules_are_refused", test_texts_that_are_no_schedules_are_refused},
    {"lists_ranges_steps_and_names_become_values", test_lists_ranges_steps_and_names_become_values},
    {"sunday_is_0_and_7", test_sunday_is_0_and_7},
    {"nicknames", test_nicknames},
    {"every_adds", test_every_adds},
    {"the_time_is_after_the_one_given", test_the_time_is_after_the_one_given},
    {"day_or_weekday_is_enough_when_both_are_given",
     test_day_or_weekday_is_enough_when_both_are_given},
    {"leap_days_and_never", test_leap_days_and_never},
    {"random_schedules_agree_with_a_walk_by_minutes",
     test_random_schedules_agree_with_a_walk_by_minutes},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
