/* How the tour speaks, and how it opens and closes its loops. */
#define _POSIX_C_SOURCE 200809L
#include "tour.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PAUSE_TITLE_MS = 150, PAUSE_FACT_MS = 40 };

static void pause_ms(const tour *t, int ms)
{
    struct timespec span = {.tv_nsec = (int64_t)ms * 1000000};
    fflush(stdout);
    if (t->paced) {
        nanosleep(&span, NULL);
    }
}

static const char *style(const tour *t, const char *code)
{
    return t->colour ? code : "";
}

void tour_title(tour *t, unsigned number, const char *title)
{
    pause_ms(t, PAUSE_TITLE_MS);
    printf("\n%s", style(t, "\033[1;36m"));
    if (number > 0) {
        printf("%u. ", number);
    }
    printf("%s%s\n", title, style(t, "\033[0m"));
}

void tour_say(tour *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    pause_ms(t, PAUSE_FACT_MS);
}

bool tour_saw(tour *t, bool holds, const char *format, ...)
{
    va_list args;
    if (holds) {
        t->facts++;
        printf("   %s>%s ", style(t, "\033[32m"), style(t, "\033[0m"));
    } else {
        t->wrong++;
        printf("   %sNOT AS TOLD:%s ", style(t, "\033[1;31m"), style(t, "\033[0m"));
    }
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    pause_ms(t, PAUSE_FACT_MS);
    return holds;
}

bool tour_ok(tour *t, jzx_err err, const char *what)
{
    if (err != JZX_OK) {
        tour_saw(t, false, "cannot %s: %s", what, jzx_strerror(err));
    }
    return err == JZX_OK;
}

jzx_loop *tour_loop_open(tour *t)
{
    jzx_loop *loop = NULL;
    tour_ok(t, jzx_loop_create(NULL, &loop), "create a loop");
    return loop;
}

void tour_loop_close(tour *t, jzx_loop *loop)
{
    jzx_counters c;
    if (loop == NULL) {
        return;
    }
    /* News that is still on its way, such as the end of a connection, belongs to the step. */
    tour_ok(t, jzx_loop_run_until_idle(loop), "let the loop come to rest");
    const char *audit = jzx_loop_audit(loop);
    if (audit != NULL) {
        tour_saw(t, false, "the loop's audit says: %s", audit);
    }
    jzx_loop_counters(loop, &c);
    t->loops++;
    t->total.accepted += c.accepted;
    t->total.handled += c.handled;
    t->total.dead += c.dead;
    t->total.redirected += c.redirected;
    t->total.revoked += c.revoked;
    t->total.queued += c.queued;
    t->total.in_hand += c.in_hand;
    t->total.abandoned += c.abandoned;
    t->total.spawned += c.spawned;
    jzx_loop_destroy(loop);
}

const char *tour_count(uint64_t n)
{
    static char texts[4][32];
    static unsigned next;
    char digits[24];
    char *out = texts[next++ % 4];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    int at = 0;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) {
            out[at++] = ',';
        }
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}
