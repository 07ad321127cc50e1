/* What the two files of jzx-bench-watched share. */
#ifndef JZX_BENCH_WATCHED_H
#define JZX_BENCH_WATCHED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* How the program is looked at. */
typedef enum look_way {
    WAY_OFF,
    WAY_IDLE,
    WAY_TOP,
    WAY_TOP_OFTEN,
    WAY_METRICS,
    WAY_TRACE,
    WAY_UNREAD,     /* a trace with all that it may ask for, and no reader */
    WAY_UNREAD_TEN, /* ten of them */
    WAYS
} look_way;

enum { WATCHER_LOOKS_MAX = 1024, WATCHER_TRACES = 10 };

/* A client that looks, on a thread of its own: after half a period, and then once per period. */
typedef struct watcher {
    look_way how;
    const char *path; /* of the control socket */
    uint64_t period_ns;
    pthread_t thread;
    atomic_bool ended;
    int socket;
    int more[WATCHER_TRACES - 1];      /* further connections; -1: none */
    double took_ms[WATCHER_LOOKS_MAX]; /* from a question to the end of its answer */
    size_t count;
} watcher;

/* For WAY_IDLE these do nothing. */
void watcher_start(watcher *w);
void watcher_stop(watcher *w);

uint64_t watched_now(clockid_t clock);
_Noreturn void watched_fail(const char *what, const char *why);

#endif
