/* The loop: one worker, a poller, a wheel, and the tick that ties them together (R23). */
#ifndef JZI_LOOP_H
#define JZI_LOOP_H

#include <jzx/loop.h>

#include "lifecycle.h"

struct jzx_loop {
    jzi_worker worker; /* first: entry points find it without a load */
    jzi_post *post;
    jzi_timers timers;
    jzi_io io;
    void *poller;
    uint64_t last_poll_ns;
    uint64_t tick_budget_ns;
    uint32_t max_turns;
    _Atomic(struct jzx_watchdog *)
        watchdog;        /* set by jzx_watchdog_start(); any thread may stop it */
    _Atomic int32_t tid; /* of the thread inside a step; kept only while there is a watchdog */
    jzx_shutdown_report report;
    uint64_t shutdown_start_ns;
    uint64_t shutdown_deadline_ns;
    jzi_alarm shutdown_alarm;
    bool in_step;
    bool in_run;          /* a stop request ends the wait; steps take no notice of it */
    bool embedded;        /* somebody has the descriptor: leave it truthful after each step */
    uint32_t poller_kind; /* jzx_poller_kind; AUTO: not one of ours */
    char audit[160];
};

#endif
