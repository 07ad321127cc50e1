#include "cron.h"

#include <stdbool.h>
#include <string.h>

#define MINUTE_MS 60000u
#define DAY_MINUTES 1440u
/* 29 February is missing for eight years around a century; no combination is rarer. */
#define SEARCH_DAYS (9u * 366u)
#define LAST_DAY 2932896u /* 31 December 9999 */

/* A text that is read from left to right. */
typedef struct reader {
    const char *at;
    const char *end;
} reader;

/* A field: its values, and names for them. Names are three letters each. */
typedef struct field {
    uint32_t min;
    uint32_t max;
    const char *names; /* NULL: none; the first one is `min` */
} field;

static const field minute_field = {0, 59, NULL};
static const field hour_field = {0, 23, NULL};
static const field day_field = {1, 31, NULL};
static const field month_field = {1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"};
static const field weekday_field = {0, 7, "sunmontuewedthufrisat"};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void skip_blanks(reader *r)
{
    while (r->at < r->end && is_blank(*r->at)) {
        r->at++;
    }
}

static bool cron_take(reader *r, char c)
{
    if (r->at == r->end || *r->at != c) {
        return false;
    }
    r->at++;
    return true;
}

static bool read_number(reader *r, uint32_t *out)
{
    const char *start = r->at;
    uint32_t value = 0;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
        if (r->at - start == 9) {
            return false;
        }
        value = value * 10 + (uint32_t)(*r->at++ - '0');
    }
    *out = value;
    return r->at > start;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool read_name(reader *r, const field *f, uint32_t *out)
{
    if (f->names == NULL || r->end - r->at < 3) {
        return false;
    }
    for (uint32_t i = 0; f->names[i * 3] != '\0'; i++) {
        const char *name = f->names + (size_t)i * 3;
        if (lower(r->at[0]) == name[0] && lower(r->at[1]) == name[1] &&
            lower(r->at[2]) == name[2]) {
            r->at += 3;
            *out = f->min + i;
            return true;
        }
    }
    return false;
}

static bool read_value(reader *r, const field *f, uint32_t *out)
{
    return (read_name(r, f, out) || read_number(r, out)) && *out >= f->min && *out <= f->max;
}

/* "*", "5", "5-9", each with "/step"; "5/10" goes on to the end. */
static bool read_part(reader *r, const field *f, uint64_t *bits)
{
    uint32_t first = f->min;
    uint32_t last = f->max;
    bool single = false;
    if (!cron_take(r, '*')) {
        if (!read_value(r, f, &first)) {
            return false;
        }
        single = !cron_take(r, '-');
        if (!single && !read_value(r, f, &last)) {
            return false;
        }
        if (!single && f == &weekday_field && last == 0 && first > 0) {
            last = 7; /* "sat-sun" */
        }
    }
    uint32_t step = 1;
    bool stepped = cron_take(r, '/');
    if (stepped && (!read_number(r, &step) || step == 0)) {
        return false;
    }
    if (single && !stepped) {
        last = first;
    }
    for (uint32_t v = first; v <= last; v += step) {
        *bits |= (uint64_t)1 << v;
    }
    return first <= last;
}

/* One field of the five, and the blank after it. */
static bool read_field(reader *r, const field *f, uint64_t *out_bits, uint8_t *out_any)
{
    const char *start = r->at;
    *out_bits = 0;
    do {
        if (!read_part(r, f, out_bits)) {
            return false;
        }
    } while (cron_take(r, ','));
    *out_any = r->at - start == 1 && *start == '*';
    if (r->at < r->end && !is_blank(*r->at)) {
        return false;
    }
    skip_blanks(r);
    return true;
}

static bool read_fields(reader *r, mfi_schedule *out)
{
    uint64_t minutes, hours, days, months, weekdays;
    uint8_t any;
    if (!read_field(r, &minute_field, &minutes, &any) ||
        !read_field(r, &hour_field, &hours, &any) ||
        !read_field(r, &day_field, &days, &out->any_day) ||
        !read_field(r, &month_field, &months, &any) ||
        !read_field(r, &weekday_field, &weekdays, &out->any_weekday) || r->at != r->end) {
        return false;
    }
    out->minutes = minutes;
    out->hours = (uint32_t)hours;
    out->days = (uint32_t)days;
    out->months = (uint16_t)months;
    out->weekdays = (uint8_t)((weekdays | weekdays >> 7) & 0x7f); /* 7 is Sunday too */
    return true;
}

/* "90s" after "@every". */
static bool read_every(reader *r, mfi_schedule *out)
{
    uint32_t number;
    if (r->at == r->end || !is_blank(*r->at)) {
        return false;
    }
    skip_blanks(r);
    if (!read_number(r, &number) || number == 0 || r->at == r->end) {
        return false;
    }
    uint64_t unit_ms = 0;
    switch (*r->at++) {
    case 's':
        unit_ms = 1000;
        break;
    case 'm':
        unit_ms = MINUTE_MS;
        break;
    case 'h':
        unit_ms = 60u * MINUTE_MS;
        break;
    case 'd':
        unit_ms = (uint64_t)DAY_MINUTES * MINUTE_MS;
        break;
    default:
        return false;
    }
    out->every_ms = number * unit_ms;
    skip_blanks(r);
    return r->at == r->end;
}

static const struct {
    const char *name;
    const char *fields;
} nicknames[] = {
    {"@hourly", "0 * * * *"},   {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
    {"@weekly", "0 0 * * 0"},   {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"},
};

static bool read_word(reader *r, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0) {
        return false;
    }
    r->at += len;
    return true;
}

static bool read_nickname(reader *r, mfi_schedule *out)
{
    for (size_t i = 0; i < sizeof nicknames / sizeof nicknames[0]; i++) {
        if (read_word(r, nicknames[i].name)) {
            skip_blanks(r);
            const char *fields = nicknames[i].fields;
            reader meaning = {fields, fields + strlen(fields)};
            return r->at == r->end && read_fields(&meaning, out);
        }
    }
    return false;
}

jzx_err mfi_schedule_parse(jzx_mf_span text, mfi_schedule *out)
{
    if (text.len == 0) {
        return JZX_ERR_BAD_SPEC;
    }
    reader r = {text.data, (const char *)text.data + text.len};
    mfi_schedule schedule = {0};
    skip_blanks(&r);
    bool fine = read_word(&r, "@every")        ? read_every(&r, &schedule)
                : r.at < r.end && *r.at == '@' ? read_nickname(&r, &schedule)
                                               : read_fields(&r, &schedule);
    if (!fine) {
        return JZX_ERR_BAD_SPEC;
    }
    *out = schedule;
    return JZX_OK;
}

/* A day of the calendar, from the days since 1 January 1970. Counted from 1 March of year 0, so
 * that the leap day is the last of its year, and in cycles of 400 years. */
static void civil_of(uint64_t day, uint32_t *out_month, uint32_t *out_day)
{
    uint32_t of_cycle = (uint32_t)((day + 719468u) % 146097u);
    uint32_t year = (of_cycle - of_cycle / 1460 + of_cycle / 36524 - of_cycle / 146096) / 365;
    uint32_t of_year = of_cycle - (365 * year + year / 4 - year / 100);
    uint32_t from_march = (5 * of_year + 2) / 153;
    *out_day = of_year - (153 * from_march + 2) / 5 + 1;
    *out_month = from_march < 10 ? from_march + 3 : from_march - 9;
}

static bool day_matches(const mfi_schedule *s, uint64_t day)
{
    uint32_t month, of_month;
    civil_of(day, &month, &of_month);
    if (!(s->months >> month & 1u)) {
        return false;
    }
    bool by_day = s->days >> of_month & 1u;
    bool by_weekday = s->weekdays >> ((day + 4) % 7) & 1u; /* 1 January 1970 was a Thursday */
    /* As cron has it: one of them is enough when both say something. */
    if (!s->any_day && !s->any_weekday) {
        return by_day || by_weekday;
    }
    return by_day && by_weekday;
}

/* The first minute of a day that matches, from `minute` on; DAY_MINUTES: none. */
static uint32_t minute_of(const mfi_schedule *s, uint32_t minute)
{
    for (; minute < DAY_MINUTES; minute++) {
        if (!(s->hours >> (minute / 60) & 1u)) {
            minute += 59 - minute % 60;
        } else if (s->minutes >> (minute % 60) & 1u) {
            break;
        }
    }
    return minute;
}

uint64_t mfi_schedule_next(const mfi_schedule *schedule, uint64_t after_ms)
{
    if (schedule->every_ms != 0) {
        return after_ms > UINT64_MAX - schedule->every_ms ? UINT64_MAX
                                                          : after_ms + schedule->every_ms;
    }
    uint64_t from = after_ms / MINUTE_MS + 1;
    uint64_t first_day = from / DAY_MINUTES;
    uint32_t minute = (uint32_t)(from % DAY_MINUTES);
    for (uint64_t day = first_day; day <= first_day + SEARCH_DAYS && day <= LAST_DAY; day++) {
        if (day_matches(schedule, day)) {
            uint32_t found = minute_of(schedule, minute);
            if (found < DAY_MINUTES) {
                return (day * DAY_MINUTES + found) * MINUTE_MS;
            }
        }
        minute = 0;
    }
    return UINT64_MAX;
}
