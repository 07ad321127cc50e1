/* The watchdog: says which actor does not return from its code (R22).
 *
 * C cannot end a behavior that loops for ever, and on one loop no other actor runs meanwhile. The
 * watchdog is a thread of its own that notices and reports: which actor, which message, for how
 * long, and where. Nothing is started, and no signal handler installed, unless asked for. */
#ifndef JZX_WATCHDOG_H
#define JZX_WATCHDOG_H

#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct jzx_watchdog jzx_watchdog;

#define JZX_STUCK_FRAMES 32

/* Borrowed for the call. */
typedef struct jzx_stuck_report {
    jzx_actor_id actor;
    uint64_t duration_ns; /* in this code so far, to within half of the limit */
    uint32_t tag;         /* of the message in hand */
    uint32_t kind;        /* jzx_kind of it; JZX_STUCK_HOOK: in init, a signal or deinit */
    uint32_t reports;     /* 1, 2, ... while it lasts: the time between them doubles */
    uint32_t frame_count;
    void *frames[JZX_STUCK_FRAMES]; /* return addresses, innermost first */
    char name[48];
} jzx_stuck_report;
#define JZX_STUCK_HOOK UINT32_MAX

typedef struct jzx_watchdog_opts {
    uint32_t limit_ms; /* 0: 1,000 */
    int32_t signo;     /* what interrupts the loop's thread for a moment; 0: SIGURG */
    /* On the watchdog's thread. Calls no jzx_ function but jzx_send_async(). */
    void (*on_stuck)(void *ctx, const jzx_stuck_report *report);
    void *ctx;
} jzx_watchdog_opts;

/* Watches the loop. Stop it before the loop is destroyed. Thread: loop. Errors: INVALID_ARG (an
 * argument is NULL, there is no `on_stuck`, or the signal cannot be used), NEWER_STRUCT, NO_MEMORY
 * (there is no memory or no thread, or the process has 256 watchdogs), ALREADY (the loop has one),
 * NOT_SUPPORTED (the loop is simulated). */
JZX_API JZX_NODISCARD jzx_err jzx_watchdog_start_sized(jzx_loop *loop,
                                                       const jzx_watchdog_opts *opts,
                                                       size_t opts_size,
                                                       jzx_watchdog **out_watchdog);
static inline JZX_NODISCARD jzx_err jzx_watchdog_start(jzx_loop *loop,
                                                       const jzx_watchdog_opts *opts,
                                                       jzx_watchdog **out_watchdog)
{
    return jzx_watchdog_start_sized(loop, opts, sizeof *opts, out_watchdog);
}
/* Ends the thread and waits for it. NULL is fine. Thread: any but the watchdog's own. */
JZX_API void jzx_watchdog_stop(jzx_watchdog *watchdog);

#ifdef __cplusplus
}
#endif
#endif
