/* The floor of a pool: who holds it may touch whatever the workers share. It is a mutex, and while
 * only one worker has anything to do that one *keeps* it: it gives the floor back as far as others
 * are concerned, but comes and goes without touching the mutex.
 *
 *   its worker                                  who wants the floor, with the mutex
 *   kept = USER, mutex given back
 *   to come back: kept = BUSY                   revoked = 1
 *                 (a fence of the compiler's)   (a fence in all threads, by the kernel)
 *                 revoked?                      waits while kept is BUSY
 *     no:  it has the floor                     has the floor
 *     yes: kept = NOT; waits for the mutex
 *
 * Either the worker sees that it was revoked, or the other one sees that it is busy. A worker that
 * does not come back from user code is USER all the time, so it cannot keep the floor from anybody
 * (R34). tests/models/floor.pml has it checked.
 *
 * Memory orders: USER and NOT are stored with release and read with acquire: who takes the floor
 * from its keeper sees what that did with it. Back again it goes over the mutex. */
#include "os/asym.h"
#include "os/thread.h"
#include "sched/worker.h"

#include <pthread.h>

/* With the mutex: it is nobody else's floor any more. */
static void take_from_keeper(jzi_worker *worker)
{
    enum { PATIENCE = 200 };
    jzi_dispatcher *dispatcher = worker->dispatcher;
    jzi_worker *keeper = dispatcher->keeper;
    dispatcher->keeper = NULL;
    if (keeper == worker || keeper == NULL) {
        return;
    }
    atomic_store_explicit(&keeper->revoked, 1, memory_order_seq_cst);
    jzi_asym_fence();
    for (int i = 0; atomic_load_explicit(&keeper->kept, memory_order_acquire) == JZI_KEPT_BUSY;
         i++) {
        if (i < PATIENCE) {
            jzi_cpu_relax();
        } else {
            jzi_thread_yield();
        }
    }
}

void jzi_worker_floor_is_back(jzi_worker *worker)
{
    jzi_dispatcher *dispatcher = worker->dispatcher;
    take_from_keeper(worker);
    dispatcher->acting = worker;
    /* What others did is not later than now. Inside a turn its own readings count: see
     * look_at_clock(). */
    if (worker->phase != JZI_PHASE_BEHAVIOR && dispatcher->now_ns > worker->now_ns) {
        worker->now_ns = dispatcher->now_ns;
    }
    worker->slots_made = atomic_load_explicit(&worker->table->made, memory_order_relaxed);
}

/* Over the mutex. */
static void take_for_real(jzi_worker *worker)
{
    (void)pthread_mutex_lock(&worker->dispatcher->floor);
    worker->keeps = false;
    atomic_store_explicit(&worker->revoked, 0, memory_order_relaxed);
    jzi_worker_floor_is_back(worker);
}

/* It was revoked, or wants the mutex itself. */
static void stop_keeping(jzi_worker *worker)
{
    atomic_store_explicit(&worker->kept, JZI_KEPT_NOT, memory_order_release);
    worker->may_keep = false; /* until its next tick: others have something to do */
    take_for_real(worker);
}

void jzi_worker_take_floor(jzi_worker *worker)
{
    jzi_dispatcher *dispatcher = worker->dispatcher;
    if (worker->floors++ > 0) {
        return;
    }
    if (!dispatcher->threads) {
        jzi_worker_floor_is_back(worker);
    } else if (!worker->keeps) {
        take_for_real(worker);
    } else if (jzi_asym_store_load(&worker->kept, JZI_KEPT_BUSY, &worker->revoked,
                                   worker->light_fence) != 0) {
        stop_keeping(worker);
    } else {
        worker->slots_made = atomic_load_explicit(&worker->table->made, memory_order_relaxed);
    }
}

void jzi_worker_give_floor(jzi_worker *worker)
{
    jzi_dispatcher *dispatcher = worker->dispatcher;
    if (--worker->floors > 0 || !dispatcher->threads) {
        return;
    }
    if (worker->keeps) {
        atomic_store_explicit(&worker->kept, JZI_KEPT_USER, memory_order_release);
        return;
    }
    if (worker->may_keep) {
        dispatcher->keeper = worker;
        worker->keeps = true;
        atomic_store_explicit(&worker->kept, JZI_KEPT_USER, memory_order_release);
    }
    (void)pthread_mutex_unlock(&dispatcher->floor);
}

void jzi_worker_hold_floor(jzi_worker *worker)
{
    if (worker->keeps) {
        stop_keeping(worker);
    }
    worker->may_keep = false;
}

void jzi_worker_user_code_begins(jzi_worker *worker)
{
    enum { TIMED_EVERY = 8 };
    const jzi_dispatcher *dispatcher = worker->dispatcher;
    if (dispatcher->on_floor_given != NULL) {
        dispatcher->on_floor_given(worker);
    }
    if (dispatcher->threads && worker->until_timed-- == 0) {
        worker->until_timed = TIMED_EVERY;
        worker->timed_from = worker->env->now_ns(worker->env->ctx);
    }
}

void jzi_worker_user_code_ended(jzi_worker *worker)
{
    uint64_t took = worker->env->now_ns(worker->env->ctx) - worker->timed_from;
    worker->timed_from = 0;
    uint64_t pace = jzi_worker_pace(worker);
    jzi_worker_set_pace(worker, pace == UINT64_MAX ? took : pace - pace / 4 + took / 4);
}
