/* What the program did over time. */
#include "history.h"

#include "json.h"

#include <stdlib.h>

static bool moments_init(jzc_moments *moments, unsigned cap)
{
    moments->rows = calloc(cap, sizeof *moments->rows);
    moments->cap = cap;
    return moments->rows != NULL;
}

bool jzc_history_init(jzc_history *history)
{
    *history = (jzc_history){0};
    if (moments_init(&history->fine, JZC_HISTORY_FINE) &&
        moments_init(&history->coarse, JZC_HISTORY_COARSE)) {
        return true;
    }
    jzc_history_free(history);
    return false;
}

void jzc_history_free(jzc_history *history)
{
    free(history->fine.rows);
    free(history->coarse.rows);
    *history = (jzc_history){0};
}

void jzc_history_clear(jzc_history *history)
{
    history->fine.first = history->fine.count = 0;
    history->coarse.first = history->coarse.count = 0;
    history->open_count = 0;
}

static void moments_push(jzc_moments *moments, const jzc_moment *moment)
{
    if (moments->count == moments->cap) {
        moments->first = (moments->first + 1) % moments->cap;
        moments->count--;
    }
    moments->rows[(moments->first + moments->count++) % moments->cap] = *moment;
}

static const jzc_moment *moments_at(const jzc_moments *moments, unsigned at)
{
    return &moments->rows[(moments->first + at) % moments->cap];
}

static uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void moment_join(jzc_moment *sum, const jzc_moment *next)
{
    sum->end_ms = next->end_ms;
    sum->span_ms += next->span_ms;
    sum->handled += next->handled;
    sum->restarts += next->restarts;
    sum->failures += next->failures;
    sum->dead += next->dead;
    sum->queued = greater(sum->queued, next->queued);
    sum->latency_us = greater(sum->latency_us, next->latency_us);
}

void jzc_history_add(jzc_history *history, const jzc_moment *moment)
{
    moments_push(&history->fine, moment);
    if (history->open_count == 0) {
        history->open = *moment;
    } else {
        moment_join(&history->open, moment);
    }
    if (++history->open_count == JZC_HISTORY_STEP) {
        moments_push(&history->coarse, &history->open);
        history->open_count = 0;
    }
}

static void moments_write(const jzc_moments *moments, uint64_t after_ms, uint64_t until_ms,
                          jzc_text *out, bool *comma)
{
    for (unsigned i = 0; i < moments->count; i++) {
        const jzc_moment *m = moments_at(moments, i);
        if (m->end_ms <= after_ms || m->end_ms > until_ms) {
            continue;
        }
        const uint64_t values[] = {m->end_ms,   m->span_ms,  m->handled,    m->queued,
                                   m->restarts, m->failures, m->latency_us, m->dead};
        jzc_text_str(out, *comma ? ",[" : "[");
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            jzc_text_str(out, k > 0 ? "," : "");
            jzc_text_u64(out, values[k]);
        }
        jzc_text_str(out, "]");
        *comma = true;
    }
}

void jzc_history_write(const jzc_history *history, uint64_t after_ms, jzc_text *out)
{
    bool comma = false;
    jzc_text_str(out, "[");
    if (history->fine.count > 0) {
        /* A coarse row that overlaps the fine ones would count twice what they tell. */
        const jzc_moment *oldest = moments_at(&history->fine, 0);
        uint64_t begins_ms = oldest->end_ms - oldest->span_ms;
        moments_write(&history->coarse, after_ms, begins_ms, out, &comma);
        moments_write(&history->fine, after_ms, UINT64_MAX, out, &comma);
    }
    jzc_text_str(out, "]");
}

/* Reading. */

typedef struct number_member {
    const char *name;
    uint64_t *out;
} number_member;

/* Takes the numbers that are asked for; returns how many there were. */
static size_t take_numbers(const json_t *object, const number_member *wanted, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += jzc_json_number(object, wanted[i].name, wanted[i].out);
    }
    return found;
}

/* The slowest of the dispatchers. */
static uint64_t latency_of(const json_t *dispatchers)
{
    uint64_t most = 0;
    for (size_t i = 0; i < json_array_size(dispatchers); i++) {
        uint64_t one = 0;
        (void)jzc_json_number(json_array_get(dispatchers, i), "latency_us", &one);
        most = one > most ? one : most;
    }
    return most;
}

bool jzc_reading_of(const char *text, size_t len, jzc_reading *out)
{
    *out = (jzc_reading){0};
    const number_member top[] = {
        {"pid", &out->pid}, {"uptime_ms", &out->uptime_ms}, {"now_ns", &out->now_ns}};
    const number_member counters[] = {{"handled", &out->handled},
                                      {"restarts", &out->restarts},
                                      {"failures", &out->failures},
                                      {"dead", &out->dead},
                                      {"queued", &out->queued}};
    json_t *object = jzc_json_read(text, len);
    bool whole = take_numbers(object, top, 3) == 3;
    (void)take_numbers(json_object_get(object, "counters"), counters, 5);
    out->latency_us = latency_of(json_object_get(object, "dispatchers"));
    json_decref(object);
    return whole;
}

bool jzc_reading_continues(const jzc_reading *before, const jzc_reading *now)
{
    return before->pid == now->pid && now->uptime_ms >= before->uptime_ms &&
           now->now_ns > before->now_ns;
}

static uint32_t narrow(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static uint64_t grown(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

jzc_moment jzc_reading_between(const jzc_reading *before, const jzc_reading *now, uint64_t end_ms)
{
    return (jzc_moment){
        .end_ms = end_ms,
        .span_ms = narrow((now->now_ns - before->now_ns) / 1000000u),
        .handled = grown(before->handled, now->handled),
        .restarts = narrow(grown(before->restarts, now->restarts)),
        .failures = narrow(grown(before->failures, now->failures)),
        .dead = narrow(grown(before->dead, now->dead)),
        .queued = narrow(now->queued),
        .latency_us = narrow(now->latency_us),
    };
}
