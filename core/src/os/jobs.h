/* A bounded pool of threads for work that blocks (R27). It knows nothing of actors.
 *
 * Threads are started one at a time, when work arrives that no idle thread can take, and end when
 * they had nothing to do for a while.
 *
 *             submit             a thread takes it              done(ran)
 *   nowhere ---------> waiting -------------------> running ----------------> the owner's again
 *      ^                  |                            |
 *      |     withdraw     |   close: done(not ran)     |  left, after close lost its patience
 *      +------------------+-----------> the owner's    +-----------> leaked
 *
 * One lock guards all of this. The lock is a leaf: no function of another module is called while it
 * is held. */
#ifndef JZI_OS_JOBS_H
#define JZI_OS_JOBS_H

#include <jzx/types.h>

#include <stdbool.h>

typedef struct jzi_jobs jzi_jobs;
typedef struct jzi_work jzi_work;

/* None of the three is called while a lock is held. */
typedef struct jzi_work_ops {
    /* The work itself, on a thread of the pool. */
    void (*run)(jzi_work *work);
    /* The work is over, and the pool knows it no longer. `ran` is false if the work never began
     * because the pool was closed: then this is the closing thread. May not block. */
    void (*done)(jzi_work *work, bool ran);
    /* The work is over, but jzi_jobs_close() did not wait for that: nothing of the pool and
     * of the owner's world may be touched but the work itself, which is leaked. */
    void (*left)(jzi_work *work);
} jzi_work_ops;

/* Part of what is to be done; the owner's but for ops. Zeroed before it is used. */
struct jzi_work {
    const jzi_work_ops *ops;
    jzi_work *next;
    jzi_work *prev;
    uint32_t place;
};

typedef struct jzi_jobs_limits {
    uint32_t threads; /* at most this many run at once, */
    uint32_t queue;   /* and this many wait */
    uint32_t idle_ms; /* how long a thread waits for work; 0: 10,000 */
} jzi_jobs_limits;

/* Starts no thread. Errors: NO_MEMORY. Thread: any. */
jzx_err jzi_jobs_create(const jzx_allocator *alloc, const jzi_jobs_limits *limits,
                        jzi_jobs **out_jobs);
/* After jzi_jobs_close() returned true. NULL is fine. */
void jzi_jobs_destroy(jzi_jobs *jobs);
/* After fork(2), in the child: gives the memory back without touching lock or threads,
 * which belong to the parent. NULL is fine. */
void jzi_jobs_abandon(jzi_jobs *jobs);

/* Numbers that count up from 1, for callers that tell jobs apart. Thread: any. */
uint64_t jzi_jobs_number(jzi_jobs *jobs);
/* The last of these; 0: none yet. */
uint64_t jzi_jobs_last_number(jzi_jobs *jobs);

/* Hands work over. On an error nothing happened. Never waits for a thread.
 * Errors: STOPPING (closed), QUEUE_FULL, NO_THREADS. Thread: any. */
jzx_err jzi_jobs_submit(jzi_jobs *jobs, jzi_work *work);
/* Takes work back. True: it has not begun and never will; no operation is called for it. False:
 * the work runs or ran. Only between submit and done. Thread: any. */
bool jzi_jobs_withdraw(jzi_jobs *jobs, jzi_work *work);

/* For work that its owner does itself, in simulation: takes a place, and gives it back. Errors as
 * jzi_jobs_submit(). */
jzx_err jzi_jobs_hold(jzi_jobs *jobs);
void jzi_jobs_let_go(jzi_jobs *jobs);

/* No more work from now on; what waits is handed back with done(not ran), and what runs is waited
 * for. False: some work still runs after timeout_ns. That work is left behind with its thread and
 * with `jobs`, which must not be touched any more. NULL is fine. Thread: any, once. */
bool jzi_jobs_close(jzi_jobs *jobs, uint64_t timeout_ns);

/* Threads there are, for tests. */
uint32_t jzi_jobs_threads(jzi_jobs *jobs);

#endif
