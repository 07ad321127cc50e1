/* The lock of a pool: the worker that holds it may touch whatever the workers share. It is a mutex,
 * and while only one worker has anything to do the lock is *biased* to that worker: the bias owner
 * gives the lock back as far as others are concerned, but comes and goes without touching the
 * mutex.
 *
 *   the bias owner                                 a worker that wants the lock, with the mutex
 *   bias_state = USER, mutex given back
 *   to come back: bias_state = BUSY                bias_revoked = 1
 *                 (a fence of the compiler's)      (a fence in all threads, by the kernel)
 *                 bias_revoked?                    waits while bias_state is BUSY
 *     no:  has the pool lock                       has the pool lock
 *     yes: bias_state = NOT; waits for the mutex
 *
 * Either the bias owner sees that its bias was revoked, or the other worker sees that the owner is
 * busy. A worker that does not come back from user code is USER all the time, so it cannot keep the
 * pool lock from the others (R34). tests/models/pool_lock.pml has this checked.
 *
 * Memory orders: USER and NOT are stored with release and read with acquire: a worker that takes
 * the pool lock from its bias owner sees what the owner did with it. Back again the lock goes over
 * the mutex. */
#include "os/asym.h"
#include "os/thread.h"
#include "sched/worker.h"

#include <pthread.h>

/* With the mutex: the lock is biased to no other worker from here on. */
static void revoke_bias(jzi_worker *worker)
{
    enum { PATIENCE = 200 };
    jzi_dispatcher *dispatcher = worker->dispatcher;
    jzi_worker *bias_owner = dispatcher->bias_owner;
    dispatcher->bias_owner = NULL;
    if (bias_owner == worker || bias_owner == NULL) {
        return;
    }
    atomic_store_explicit(&bias_owner->bias_revoked, 1, memory_order_seq_cst);
    jzi_asym_fence();
    for (int i = 0;
         atomic_load_explicit(&bias_owner->bias_state, memory_order_acquire) == JZI_BIAS_BUSY;
         i++) {
        if (i < PATIENCE) {
            jzi_cpu_relax();
        } else {
            jzi_thread_yield();
        }
    }
}

void jzi_worker_pool_is_locked(jzi_worker *worker)
{
    jzi_dispatcher *dispatcher = worker->dispatcher;
    revoke_bias(worker);
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
    (void)pthread_mutex_lock(&worker->dispatcher->pool_lock);
    worker->biased = false;
    atomic_store_explicit(&worker->bias_revoked, 0, memory_order_relaxed);
    jzi_worker_pool_is_locked(worker);
}

/* The worker's bias was revoked, or the worker wants the mutex itself. */
static void stop_keeping(jzi_worker *worker)
{
    atomic_store_explicit(&worker->bias_state, JZI_BIAS_NOT, memory_order_release);
    worker->may_bias = false; /* until its next tick: others have something to do */
    take_for_real(worker);
}

void jzi_worker_lock_pool(jzi_worker *worker)
{
    jzi_dispatcher *dispatcher = worker->dispatcher;
    if (worker->pool_lock_depth++ > 0) {
        return;
    }
    if (!dispatcher->threads) {
        jzi_worker_pool_is_locked(worker);
    } else if (!worker->biased) {
        take_for_real(worker);
    } else if (jzi_asym_store_load(&worker->bias_state, JZI_BIAS_BUSY, &worker->bias_revoked,
                                   worker->light_fence) != 0) {
        stop_keeping(worker);
    } else {
        worker->slots_made = atomic_load_explicit(&worker->table->made, memory_order_relaxed);
    }
}

void jzi_worker_unlock_pool(jzi_worker *worker)
{
    jzi_dispatcher *dispatcher = worker->dispatcher;
    if (--worker->pool_lock_depth > 0 || !dispatcher->threads) {
        return;
    }
    if (worker->biased) {
        atomic_store_explicit(&worker->bias_state, JZI_BIAS_USER, memory_order_release);
        return;
    }
    if (worker->may_bias) {
        dispatcher->bias_owner = worker;
        worker->biased = true;
        atomic_store_explicit(&worker->bias_state, JZI_BIAS_USER, memory_order_release);
    }
    (void)pthread_mutex_unlock(&dispatcher->pool_lock);
}

void jzi_worker_hold_pool_lock(jzi_worker *worker)
{
    if (worker->biased) {
        stop_keeping(worker);
    }
    worker->may_bias = false;
}

void jzi_worker_user_code_begins(jzi_worker *worker)
{
    enum { TIMED_EVERY = 8 };
    const jzi_dispatcher *dispatcher = worker->dispatcher;
    if (dispatcher->on_pool_unlocked != NULL) {
        dispatcher->on_pool_unlocked(worker);
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
