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
    uint32_t end_cursor; /* jzx_loop_destroy(): the next slot to look at */
    bool in_step;
    bool in_run;          /* a stop request ends the wait; steps take no notice of it */
    bool embedded;        /* somebody has the descriptor: leave it truthful after each step */
    uint32_t poller_kind; /* jzx_poller_kind; AUTO: not one of ours */
    char audit[160];
};

#endif
