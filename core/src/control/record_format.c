/* Events as lines. Everything is written by hand into the caller's buffer. */
#include "control/record_format.h"

#include <jzx/actor.h>

typedef struct text {
    char *at;
    char *end; /* where the final zero goes at the latest */
} text;

static void record_format_put(text *out, char c)
{
    if (out->at < out->end) {
        *out->at++ = c;
    }
}

static void record_format_put_text(text *out, const char *words)
{
    while (*words != '\0') {
        record_format_put(out, *words++);
    }
}

/* Text that others chose. */
static void put_foreign(text *out, const char *words)
{
    for (; *words != '\0'; words++) {
        unsigned char c = (unsigned char)*words;
        record_format_put(out, c < 0x20 || c == 0x7F ? '?' : *words);
    }
}

/* At least `width` digits. */
static void put_number(text *out, uint64_t value, unsigned base, int width)
{
    char digits[64];
    int count = 0;
    do {
        digits[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value > 0 || count < width);
    while (count > 0) {
        record_format_put(out, digits[--count]);
    }
}

static void put_signed(text *out, int64_t value)
{
    if (value < 0) {
        record_format_put(out, '-');
    }
    put_number(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10, 1);
}

/* Seconds and microseconds from now, to the right of a column. */
static void put_time(text *out, uint64_t time_ns, uint64_t now_ns)
{
    enum { COLUMN = 12, AFTER_POINT = 7 };
    bool before = time_ns <= now_ns;
    uint64_t us = (before ? now_ns - time_ns : time_ns - now_ns) / 1000;
    int wide = 2 + AFTER_POINT; /* a sign and a digit */
    for (uint64_t rest = us / 10000000; rest > 0; rest /= 10) {
        wide++;
    }
    for (; wide < COLUMN; wide++) {
        record_format_put(out, ' ');
    }
    record_format_put(out, before ? '-' : '+');
    put_number(out, us / 1000000, 10, 1);
    record_format_put(out, '.');
    put_number(out, us % 1000000, 10, 6);
}

static void put_duration(text *out, uint64_t ns)
{
    static const struct {
        uint64_t unit;
        const char *name;
    } units[] = {{1000000000, " s"}, {1000000, " ms"}, {1000, " us"}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (ns >= units[i].unit) {
            put_number(out, ns / units[i].unit, 10, 1);
            record_format_put(out, '.');
            put_number(out, ns % units[i].unit / (units[i].unit / 1000), 10, 3);
            record_format_put_text(out, units[i].name);
            return;
        }
    }
    put_number(out, ns, 10, 1);
    record_format_put_text(out, " ns");
}

static void put_actor(text *out, jzx_actor_id id, const char *name)
{
    if (id == JZX_NOBODY) {
        record_format_put_text(out, "nobody");
        return;
    }
    if (name[0] == '\0') {
        put_number(out, id, 16, 1);
        return;
    }
    put_foreign(out, name);
    record_format_put_text(out, " (");
    put_number(out, id, 16, 1);
    record_format_put(out, ')');
}

/* "panic 7", as jzx_reason_format(). */
static void put_reason(text *out, const jzi_event *event)
{
    int32_t code = (int32_t)event->value;
    record_format_put_text(out, jzx_reason_name(event->detail));
    if (code != 0) {
        record_format_put(out, ' ');
        put_signed(out, code);
    }
}

static void put_message(text *out, const jzi_event *event)
{
    static const char *const kinds[] = {"",       "timer ", "io ",   "notice ",
                                        "reply ", "job ",   "file ", "event "};
    record_format_put_text(out,
                           event->kind < sizeof kinds / sizeof kinds[0] ? kinds[event->kind] : "");
    record_format_put_text(out, "tag ");
    /* The system's own are known by their hexadecimal digits. */
    if (event->tag >= JZX_TAG_PATTERN_FIRST) {
        record_format_put_text(out, "0x");
        put_number(out, event->tag, 16, 1);
    } else {
        put_number(out, event->tag, 10, 1);
    }
}

static void put_peer(text *out, const char *words, const jzi_record_line *line)
{
    if (line->event->peer != JZX_NOBODY) {
        record_format_put_text(out, words);
        put_actor(out, line->event->peer, line->peer_name);
    }
}

static void put_life(text *out, const jzi_record_line *line)
{
    const jzi_event *event = line->event;
    switch (event->what) {
    case JZI_RING_SPAWN:
        put_peer(out, " by ", line);
        break;
    case JZI_RING_START:
        if (event->detail > 1) {
            record_format_put_text(out, ": incarnation ");
            put_number(out, event->detail, 10, 1);
        }
        break;
    case JZI_RING_END:
    case JZI_RING_FAIL:
        record_format_put_text(out, ": ");
        put_reason(out, event);
        break;
    case JZI_RING_RESTART:
        record_format_put(out, ' ');
        put_number(out, event->detail > 0 ? event->detail - 1u : 0, 10, 1);
        put_peer(out, " by ", line);
        break;
    default: /* JZI_RING_ESCALATE */
        record_format_put_text(out, ": ");
        record_format_put_text(out, jzx_reason_name(event->detail));
        put_peer(out, ", because of ", line);
        break;
    }
}

static void put_mail(text *out, const jzi_record_line *line)
{
    const jzi_event *event = line->event;
    record_format_put_text(out, ": ");
    put_message(out, event);
    put_peer(out, event->what == JZI_RING_SENT ? " to " : " from ", line);
    if (event->what == JZI_RING_DEAD) {
        record_format_put_text(out, ": ");
        record_format_put_text(out, jzx_dead_reason_name(event->detail));
    } else if (event->what == JZI_RING_HANDLED) {
        record_format_put_text(out, ", ");
        record_format_put_text(out, jzi_result_name(event->detail));
        record_format_put_text(out, ", in ");
        put_duration(out, event->value);
    }
}

static void put_details(text *out, const jzi_record_line *line)
{
    const jzi_event *event = line->event;
    switch (event->what) {
    case JZI_RING_SPAWN:
    case JZI_RING_START:
    case JZI_RING_END:
    case JZI_RING_FAIL:
    case JZI_RING_RESTART:
    case JZI_RING_ESCALATE:
        put_life(out, line);
        break;
    case JZI_RING_DEAD:
    case JZI_RING_FULL:
    case JZI_RING_TIMER:
    case JZI_RING_HANDLED:
    case JZI_RING_SENT:
        put_mail(out, line);
        break;
    case JZI_RING_STOP:
    case JZI_RING_KILL:
        put_peer(out, " by ", line);
        break;
    case JZI_RING_SLEEP:
        record_format_put_text(out, event->value == UINT64_MAX ? " until woken" : " at most ");
        if (event->value != UINT64_MAX) {
            put_duration(out, event->value);
        }
        break;
    case JZI_RING_WAKE:
        record_format_put_text(out, " after ");
        put_duration(out, event->value);
        break;
    case JZI_RING_OVERRUN:
        record_format_put_text(out, ": a turn of ");
        put_duration(out, event->value);
        break;
    default:
        break;
    }
}

static const char *verb_of(uint32_t what)
{
    switch (what) {
    case JZI_RING_DEAD:
        return "dead letter";
    case JZI_RING_FULL:
        return "mailbox full, refused";
    case JZI_RING_STOP:
        return "told to stop";
    case JZI_RING_KILL:
        return "told to die";
    case JZI_RING_TIMER:
        return "timer fired";
    default:
        return jzi_event_what_name(what);
    }
}

size_t jzi_record_format(const jzi_record_line *line, char *buf, size_t cap)
{
    text out = {.at = buf, .end = buf + cap - 1};
    put_time(&out, line->event->time_ns, line->now_ns);
    record_format_put_text(&out, "  ");
    put_foreign(&out, line->dispatcher);
    if (line->has_workers) {
        record_format_put(&out, '/');
        put_number(&out, line->worker, 10, 1);
    }
    record_format_put_text(&out, "  ");
    if (line->event->actor != JZX_NOBODY || line->event->what == JZI_RING_SENT) {
        put_actor(&out, line->event->actor, line->name);
        record_format_put_text(&out, ": ");
    }
    record_format_put_text(&out, verb_of(line->event->what));
    put_details(&out, line);
    if (line->event->more > 0) {
        record_format_put_text(&out, " (and ");
        put_number(&out, line->event->more, 10, 1);
        record_format_put_text(&out, " like it before)");
    }
    *out.at = '\0';
    return (size_t)(out.at - buf);
}

size_t jzi_duration_format(uint64_t ns, char *buf, size_t cap)
{
    text out = {.at = buf, .end = buf + cap - 1};
    put_duration(&out, ns);
    *out.at = '\0';
    return (size_t)(out.at - buf);
}

const char *jzi_result_name(uint32_t result)
{
    static const char *const names[] = {"ok", "stop", "fail", "defer"};
    return result < sizeof names / sizeof names[0] ? names[result] : "fail";
}
