/* What the program did over time: samples of its counters, kept by the console, so that every page
 * shows the same past and a page that is opened now shows what was before.
 *
 *   fine    one row per sample, the last 900 of them: 15 minutes at one per second
 *   coarse  one row per 10 samples, the last 2,160: 6 hours
 *
 * That is 120 KiB per console, whatever the program does and however long. */
#ifndef JZC_HISTORY_H
#define JZC_HISTORY_H

#include "text.h"

#define JZC_HISTORY_FINE 900u
#define JZC_HISTORY_COARSE 2160u
#define JZC_HISTORY_STEP 10u

/* What happened in `span_ms` before `end_ms`. Sums, but for the last two: the most of it. */
typedef struct jzc_moment {
    uint64_t end_ms; /* of the console's clock; grows from row to row */
    uint64_t handled;
    uint32_t span_ms;
    uint32_t restarts;
    uint32_t failures;
    uint32_t dead;
    uint32_t queued;     /* in all mailboxes */
    uint32_t latency_us; /* of the slowest dispatcher */
} jzc_moment;

/* A ring; the oldest is overwritten. */
typedef struct jzc_moments {
    jzc_moment *rows; /* owned */
    unsigned cap;
    unsigned first;
    unsigned count;
} jzc_moments;

typedef struct jzc_history {
    jzc_moments fine;
    jzc_moments coarse;
    jzc_moment open; /* of the coarse row that is not whole yet */
    unsigned open_count;
} jzc_history;

/* False: no memory. A zeroed history can be freed. */
bool jzc_history_init(jzc_history *history);
void jzc_history_free(jzc_history *history);
void jzc_history_add(jzc_history *history, const jzc_moment *moment);
/* Another program: nothing is known of it. */
void jzc_history_clear(jzc_history *history);
/* Adds the rows that end after `after_ms`, the oldest first, as arrays within one array of JSON:
 * coarse rows for as long as there is nothing finer. */
void jzc_history_write(const jzc_history *history, uint64_t after_ms, jzc_text *out);

/* What counts up in a program, as it says it; the rest is as it is just now. */
typedef struct jzc_reading {
    uint64_t pid;
    uint64_t uptime_ms;
    uint64_t now_ns;
    uint64_t handled;
    uint64_t restarts;
    uint64_t failures;
    uint64_t dead;
    uint64_t queued;
    uint64_t latency_us;
} jzc_reading;

/* Reads an answer to `program`. False: it is none. */
bool jzc_reading_of(const char *text, size_t len, jzc_reading *out);
/* Whether both are of the same run of a program. */
bool jzc_reading_continues(const jzc_reading *before, const jzc_reading *now);
/* What happened between the two. */
jzc_moment jzc_reading_between(const jzc_reading *before, const jzc_reading *now, uint64_t end_ms);

#endif
