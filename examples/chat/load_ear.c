/* What a client says, and what it makes of the lines it hears. No actor, no socket: only text and
 * numbers. */
#include "load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ear *ear_open(const identity *who)
{
    uint32_t rooms = who->plan->rooms;
    uint32_t speakers = (who->plan->speakers + rooms - 1 - who->number % rooms) / rooms;
    ear *me = calloc(1, sizeof *me + speakers * sizeof me->next[0]);
    if (me != NULL) {
        me->who = who;
        me->speakers = speakers;
    }
    return me;
}

void line_make(char *out, uint32_t bytes, uint32_t number, uint64_t now_ns)
{
    uint32_t len = (uint32_t)snprintf(out, LINE_CAP, "%" PRIu32 " %" PRIu64 " ", number, now_ns);
    for (; len < bytes; len++) {
        out[len] = 'x';
    }
    memcpy(out + len, "\n", 2);
}

static uint32_t bucket_of(uint64_t ns)
{
    if (ns < 8) {
        return (uint32_t)ns;
    }
    uint32_t power = 63 - (uint32_t)__builtin_clzll(ns);
    uint32_t bucket = (power - 2) * 8 + (uint32_t)(ns >> (power - 3) & 7);
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

uint64_t bucket_begin_ns(uint32_t bucket)
{
    return bucket < 8 ? bucket : (uint64_t)(8 + bucket % 8) << (bucket / 8 - 1);
}

/* Lines of one speaker come in order. A gap is fine only if we are told that we missed something;
 * that is counted in the end. */
static void hear_speaker(ear *me, uint32_t speaker, uint32_t line, uint64_t took_ns)
{
    uint32_t place = speaker / me->who->plan->rooms;
    if (place >= me->speakers || line < me->next[place]) {
        me->report.wrong++;
        return;
    }
    me->next[place] = line + 1;
    me->report.heard++;
    me->own += speaker == me->who->number;
    if (me->who->part == SPEAKER) {
        me->report.took[bucket_of(took_ns)]++;
    }
}

void ear_hear(ear *me, const char *line, uint64_t now_ns)
{
    char gone[32], back[32];
    uint32_t speaker, number;
    uint64_t amount;
    (void)snprintf(gone, sizeof gone, "* s%" PRIu32 " left", me->who->saboteur);
    (void)snprintf(back, sizeof back, "s%" PRIu32 ": still there?", me->who->saboteur);
    if (sscanf(line, "c%" SCNu32 ": %" SCNu32 " %" SCNu64, &speaker, &number, &amount) == 3) {
        hear_speaker(me, speaker, number, now_ns - amount);
    } else if (sscanf(line, "* you missed %" SCNu64, &amount) == 1) {
        me->report.missed += amount;
        me->own = UINT32_MAX / 2; /* ours may be among them: do not wait for them */
    } else if (strcmp(line, gone) == 0) {
        me->left++;
    } else if (strcmp(line, back) == 0) {
        me->back = 1;
    } else if (strncmp(line, "* you are in ", 13) == 0) {
        me->inside = 1;
    }
}

double ear_share(const ear *me)
{
    double known = (double)(me->report.heard + me->report.missed);
    return known / ((double)me->speakers * me->who->plan->lines);
}

int ear_knows_all(const ear *me)
{
    int told = !me->who->plan->crash || me->left > 0 || me->report.missed > 0;
    return me->who->part != SABOTEUR && told && ear_share(me) >= 1;
}

const load_report *ear_close(ear *me)
{
    uint64_t all = (uint64_t)me->speakers * me->who->plan->lines;
    uint64_t absent = all - me->report.heard;
    int told_once = me->left == 1 || (me->left == 0 && me->report.missed > 0);
    if (me->who->part != SABOTEUR) {
        me->report.lost = absent > me->report.missed ? absent - me->report.missed : 0;
        me->report.untold = me->who->plan->crash && !told_once;
    }
    return &me->report;
}

void report_add(load_report *sum, const load_report *one)
{
    sum->heard += one->heard;
    sum->missed += one->missed;
    sum->lost += one->lost;
    sum->wrong += one->wrong;
    sum->untold += one->untold;
    sum->broken += one->broken;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        sum->took[i] += one->took[i];
    }
}
