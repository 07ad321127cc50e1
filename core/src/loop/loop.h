/* The loop: one worker, a poller, a wheel, and the tick that ties them together (R23). */
#ifndef JZI_LOOP_H
#define JZI_LOOP_H

#include <jzx/system.h>

#include "io/source.h"
#include "supervision/children.h"
#include "time/timer.h"

/* In a system: to be shut down, and to say how that went. */
typedef struct jzi_last_call {
    jzi_errand errand;
    uint32_t ms;
    uint32_t epoch;
    _Atomic uint32_t under_way;
} jzi_last_call;

struct jzx_loop {
    jzi_worker worker; /* first: entry points find it without a load */
    jzi_dispatcher dispatcher;
    jzi_board own_board; /* of a loop alone */
    jzi_inbox *inbox;
    jzi_timers timers;
    jzi_alarms alarms;
    jzi_io io;
    jzi_root root;
    void *poller;
    uint64_t last_poll_ns;
    uint64_t tick_budget_ns;
    uint32_t max_turns;
    uint32_t max_drain;
    /* Set by jzx_watchdog_start(); any thread may stop it. */
    _Atomic(struct jzx_watchdog *) watchdog;
    _Atomic int32_t watch_signo; /* what the watchdog interrupts threads with; 0: none so far */
    _Atomic uint32_t looked_at;  /* a control wants to know on which thread the loop runs */
    jzx_shutdown_report report;
    uint64_t shutdown_start_ns;
    uint64_t shutdown_deadline_ns;
    jzi_alarm shutdown_alarm;
    jzx_system *system; /* NULL: the loop is alone */
    bool in_step;
    bool spins;                      /* before a sleep; see loop_tick.c */
    bool in_run;                     /* a thread is inside a run */
    bool heeds_stop;                 /* a stop request ends the wait; steps take no notice of it */
    void (*on_down)(jzx_loop *loop); /* in a system: its root is empty */
    bool down;
    jzi_last_call calls[2];
    uint32_t down_epoch;
    bool embedded; /* the program has the descriptor: leave it truthful after each step */
    char name[JZX_DISPATCHER_NAME_MAX + 1];
    char audit[160];
    struct jzi_pool *pool; /* threads of its own; NULL: the thread that runs the loop runs actors */
};
_Static_assert(offsetof(struct jzx_loop, worker) == 0, "entry.h finds the worker so");

/* The size of jzx_supervisor_spec when jzx_config.root_policy_size came. */
#define JZI_ROOT_POLICY_FIRST ((size_t)72)
_Static_assert(JZI_ROOT_POLICY_FIRST <= sizeof(jzx_supervisor_spec), "structs only grow");

/* What a dispatcher of a system has besides a config. */
typedef struct jzi_place {
    jzx_system *system;
    jzi_directory *directory;
    const char *name;
    uint32_t index;
    struct jzi_jobs *jobs;
    jzi_letter_office *letters;
    struct jzi_registry *registry;
    jzi_board *board;
} jzi_place;
/* What is behind jzx_loop_create() and its counterparts; see create.c. */
jzx_err jzi_loop_create_sized(const jzx_config *config, size_t config_size, jzx_loop **out_loop);
/* Whether the loop may be destroyed now. Errors: BUSY. */
jzx_err jzi_loop_may_end(jzx_loop *loop);
jzx_err jzi_loop_destroy(jzx_loop *loop);
void jzi_loop_abandon(jzx_loop *loop);
/* The parts of it, for a system. After fork(2): no code of the program runs here any more. False:
 * a thread that did not come along was at work, and it is unknown on what. */
bool jzi_loop_disown(jzx_loop *loop);
/* If so: only the descriptors that the loop itself has are closed. */
void jzi_loop_close_fds(jzx_loop *loop);
/* Makes a loop; place NULL: one of its own. */
jzx_err jzi_loop_create(const jzx_config *config, const jzi_place *place, jzx_loop **out_loop);
/* Ends all actors of the loop in this thread, then closes its jobs and its inbox, then frees the
 * loop: for a system that does each with all of its loops. False: a job did not end. */
void jzi_loop_end_actors(jzx_loop *loop);
bool jzi_loop_close(jzx_loop *loop);
void jzi_loop_free(jzx_loop *loop);

/* How a system runs the loops it has. */
bool jzi_loop_stop_requested(const jzx_loop *loop);
bool jzi_loop_nobody_left(const jzx_loop *loop);
/* Whether an actor is ready, with any worker. */
bool jzi_loop_has_ready(const jzx_loop *loop);
/* jzx_loop_step() for any loop of a system. */
jzx_err jzi_loop_step_here(jzx_loop *loop, uint64_t max_ns);
/* jzx_loop_run() and jzx_loop_run_until_idle() on this thread. */
jzx_err jzi_loop_run_here(jzx_loop *loop);
jzx_err jzi_loop_run_idle_here(jzx_loop *loop);
/* The same for a dispatcher of a system: until a stop is asked for. */
jzx_err jzi_loop_serve_here(jzx_loop *loop);
/* Has the threads of a pool run from now on. Errors: NO_THREADS. */
jzx_err jzi_pool_serve(jzx_loop *loop);
/* Parks them again. False: one did not come back from an actor's code in time; the others are
 * parked. Thread: any but theirs. */
bool jzi_pool_halt(jzx_loop *loop, uint64_t timeout_ns);

/* jzx_loop_begin_shutdown() in its own dispatcher. */
void jzi_loop_begin_shutdown(jzx_loop *loop, jzi_worker *worker, uint32_t timeout_ms);

/* A run or a shutdown is over, and with it the stop that was asked for until now. */
static inline void jzi_loop_stop_answered(jzx_loop *loop)
{
    atomic_store_explicit(&loop->inbox->stop, 0, memory_order_seq_cst);
}

#endif
