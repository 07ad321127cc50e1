/* Shared by the sources of loop: the tick, and the threads of pools and pinned loops. */
#ifndef JZI_LOOP_STEPS_H
#define JZI_LOOP_STEPS_H

#include "loop/loop.h"

#include <pthread.h>

/* What dispatcher->features leads to. */
extern const jzi_feature jzi_features[];

/* Everything that makes actors ready without asking the kernel. */
void jzi_loop_take_in(jzx_loop *loop, jzi_worker *worker);
/* Runs ready actors and sees to their lives, at most max_turns and for the time of a tick. */
void jzi_loop_turns(jzx_loop *loop, jzi_worker *worker, uint32_t max_turns);
/* Nothing is ready: waits for the kernel, for another thread or for the next timer (R25). */
jzx_err jzi_loop_sleep(jzx_loop *loop, jzi_worker *worker, uint64_t max_ns);
/* Looks at the poller, without waiting, if it is time to. */
jzx_err jzi_loop_glance(jzx_loop *loop, jzi_worker *worker);

uint64_t jzi_loop_next_timer(jzx_loop *loop);

/* One tick of a loop with one worker. */
jzx_err jzi_loop_tick(jzx_loop *loop, uint64_t max_ns);
/* Runs whatever is ready to its end: the loop is being destroyed. */
void jzi_loop_run_out(jzx_loop *loop);
/* A step or a run is over: leaves the descriptor truthful, if the program has it. */
void jzi_loop_outside(jzx_loop *loop);
/* Gives memory of a burst back, if the burst is over. */
void jzi_loop_trim(jzi_worker *worker);

/* Threads that run actors for a loop: the workers of a pool, or the one thread of a pinned loop.
 * They work while a caller is inside jzx_loop_run() or jzx_loop_run_until_idle(), and are parked
 * otherwise. */
typedef struct jzi_pool jzi_pool;

typedef enum jzi_goal {
    JZI_GOAL_PARK,
    JZI_GOAL_DONE, /* no actor is left, or a stop was asked for */
    JZI_GOAL_IDLE, /* nothing is ready */
    JZI_GOAL_SERVE /* none: until jzi_pool_halt() */
} jzi_goal;

/* Makes the workers and, unless the environment is a simulated one, what their threads need. The
 * loop is complete but for this. Errors: NO_MEMORY. */
jzx_err jzi_pool_open(jzx_loop *loop, const jzx_config *config, bool simulated);
/* Ends the threads and frees the workers. False: a thread is stuck in an actor's code and was left
 * behind, with everything that it may touch. */
bool jzi_pool_close(jzx_loop *loop);
/* Has the threads run until the goal is reached. Thread: loop. Errors: NO_THREADS, and what the
 * poller reports. */
jzx_err jzi_pool_run(jzx_loop *loop, jzi_goal goal);
/* After fork, in the child: none of the threads came along. False: one of them was just at work on
 * what all share, and the state of that is unknown. */
bool jzi_pool_abandon(jzx_loop *loop);
/* One tick of one worker on this thread, while the others are parked. */
jzx_err jzi_pool_tick(jzx_loop *loop, uint64_t max_ns);

/* A thread of the pool and what it knows of itself. All of it under the pool lock. */
typedef struct jzi_pool_thread {
    struct jzi_pool *pool;
    jzi_worker *worker;
    pthread_t handle;
    pthread_cond_t unparked;
    bool is_parked;
    bool deep;     /* parked until another thread wakes it */
    bool called;   /* to take work, and has not come yet */
    uint64_t seen; /* how far its worker was when another one last thought of handing over */
    uint32_t cpu;
    int32_t tid;
    int32_t signo; /* of a watchdog; let through since it was seen */
} jzi_pool_thread;

struct jzi_pool {
    jzx_loop *loop;
    pthread_mutex_t *pool_lock;
    pthread_cond_t changed; /* for the thread that runs the loop */
    jzi_goal goal;
    bool reached;
    bool quit;
    bool bound; /* to CPUs */
    bool far;   /* the driver waits for longer than RESCUE_NS: no worker was at work */
    jzx_err err;
    uint32_t count;
    uint32_t started;
    uint32_t parked;
    uint32_t waiting; /* found nothing to do: the driver and those parked */
    uint32_t resting;
    uint32_t waking; /* how many are called */
    uint64_t spin_ns;
    uint64_t last_work_ns;
    int32_t pid;
    jzi_pool_thread *driver;
    jzi_pool_thread threads[];
};

/* How many actors are ready with this worker. */
static inline uint32_t jzi_worker_ready(const jzi_worker *worker)
{
    return worker->ring_tail - worker->ring_head;
}

/* There is nothing to do for this worker: it waits, in one way or another. With the pool lock. */
void jzi_pool_rest(jzi_pool_thread *thread);
/* A worker is about to run user code, which may take its time: another one will be there for what
 * comes meanwhile and for what that code sends. With the pool lock. */
void jzi_pool_keep_watch(jzi_pool *pool);
/* The thread that runs the loop is told that the run is over. With the pool lock. */
void jzi_pool_reach(jzi_pool *pool, jzx_err err);
void jzi_pool_goal_reached(jzi_pool_thread *thread);
/* More is ready than this worker takes next: has another one come. */
void jzi_pool_share(jzi_worker *worker);
/* Simulation: another worker's turn, while user code of this one is about to run. */
void jzi_pool_get_ahead(jzi_worker *worker);
/* Has all threads look at what is wanted of them. */
void jzi_pool_wake_all(jzi_pool *pool);

#endif
