/* The workers of a pool share everything but what is in jzi_worker, under one lock: the pool lock.
 * A worker holds it except while user code runs and while it waits, so an actor is on one worker at
 * a time and a thief can hurt none. How the workers wait is in pool_rest.c. */
#include "base/alloc.h"
#include "loop/loop_priv.h"
#include "os/debug/fault.h"
#include "os/debug/probe.h"
#include "os/thread.h"
#include "sched/sender.h"

#include <stdio.h>

/* What a thread of ours needs and the program may ask for at any time: an alternate stack for the
 * crash guard, and an ear for the watchdog's signal. */
static void equip(jzi_pool_thread *thread)
{
    int32_t signo = atomic_load_explicit(&thread->pool->loop->watch_signo, memory_order_relaxed);
    if (jzi_unlikely(signo != thread->signo)) {
        thread->signo = signo;
        jzi_thread_admit(signo);
    }
    jzi_fault_join();
}

/* A tick's turns, and what a message took in them. */
static void run_turns(jzx_loop *loop, jzi_worker *worker)
{
    uint64_t start = worker->now_ns;
    uint64_t handled = jzi_count_get(&worker->counters.handled);
    jzi_loop_turns(loop, worker, loop->max_turns);
    bool alone = worker->biased;
    jzi_worker_hold_pool_lock(worker);
    handled = jzi_count_get(&worker->counters.handled) - handled;
    if (handled > 0 && alone) { /* otherwise waiting for the pool lock would count */
        jzi_worker_set_pace(worker, (jzi_worker_clock(worker) - start) / handled);
    }
}

/* Two workers with tiny messages only wait for each other: one of them, which got something done
 * since the last time, gets everything and goes on alone. */
static bool hand_over(const jzi_pool_thread *thread)
{
    jzi_pool *pool = thread->pool;
    jzi_worker *worker = thread->worker;
    for (uint32_t i = 0; i < pool->count; i++) {
        jzi_pool_thread *other = &pool->threads[i];
        uint64_t before = other->seen;
        other->seen = jzi_worker_done(other->worker);
        if (other != thread && other != pool->driver && !other->is_parked &&
            other->seen != before && !jzi_worker_needs_help(other->worker)) {
            while (jzi_worker_ready(worker) > 0) {
                jzi_worker_enqueue(other->worker,
                                   worker->ring[worker->ring_head & worker->ring_mask]);
                worker->ring_head++;
            }
            return true;
        }
    }
    return false;
}

/* The life of a worker until the pool is parked. The caller has the pool lock. */
static void work(jzi_pool_thread *thread)
{
    jzi_pool *pool = thread->pool;
    jzi_worker *worker = thread->worker;
    jzx_loop *loop = pool->loop;
    while (pool->goal != JZI_GOAL_PARK) {
        equip(thread);
        if (jzi_unlikely(worker->dispatcher->deferred != NULL)) {
            jzi_pool_keep_watch(pool);
            jzi_worker_run_deferred(worker);
        }
        jzi_count_add(&worker->counters.ticks, 1);
        /* A thread that asks whether all is quiet looks at the inbound list first, then at this. */
        atomic_store_explicit(&worker->dispatcher->resting, 0, memory_order_seq_cst);
        jzi_loop_take_in(loop, worker);
        if (pool->goal == JZI_GOAL_DONE && jzi_loop_stop_requested(loop)) {
            pool->waiting++;
            jzi_pool_goal_reached(thread);
            pool->waiting--;
            continue;
        }
        if (jzi_worker_ready(worker) == 0 && !jzi_worker_steal(worker)) {
            jzi_pool_rest(thread);
            continue;
        }
        if (pool->driver == NULL) {
            jzx_err err = jzi_loop_glance(loop, worker);
            if (err != JZX_OK) {
                jzi_pool_reach(pool, err);
            }
        }
        pool->last_work_ns = worker->now_ns;
        jzi_pool_share(worker);
        jzi_pool_keep_watch(pool);
        worker->may_bias = pool->waiting == pool->count - 1;
        run_turns(loop, worker);
        if (pool->waiting + 1 < pool->count && jzi_worker_pace(worker) < JZI_PACE_SHARED &&
            pool->goal != JZI_GOAL_PARK && hand_over(thread)) {
            jzi_pool_rest(thread);
        }
    }
    jzi_worker_run_deferred(worker);
}

/* Waits until there is a goal. The thread that runs the loop may be the first worker meanwhile, so
 * nothing of the worker is touched before. */
static void park(jzi_pool_thread *thread)
{
    jzi_pool *pool = thread->pool;
    pool->parked++;
    (void)pthread_cond_broadcast(&pool->changed);
    while (pool->goal == JZI_GOAL_PARK && !pool->quit) {
        jzi_cond_wait(&thread->unparked, pool->pool_lock, UINT64_MAX);
    }
    pool->parked--;
}

/* One thread among others, from one goal to the next. */
static void work_together(jzi_pool_thread *thread)
{
    jzi_worker *worker = thread->worker;
    worker->pool_lock_depth = 1;
    jzi_worker_pool_is_locked(worker);
    jzi_worker_here = worker;
    atomic_store_explicit(&worker->tid, thread->tid, memory_order_relaxed);
    atomic_store_explicit(&worker->thread, jzi_thread_self(), memory_order_relaxed);
    work(thread);
    atomic_store_explicit(&worker->thread, 0, memory_order_relaxed);
    worker->pool_lock_depth = 0;
}

/* The one thread of a pinned loop: it runs the loop as any other thread would. */
static void work_alone(jzi_pool_thread *thread)
{
    jzi_pool *pool = thread->pool;
    jzi_goal goal = pool->goal;
    atomic_store_explicit(&thread->worker->tid, thread->tid, memory_order_relaxed);
    (void)pthread_mutex_unlock(pool->pool_lock);
    equip(thread);
    pool->loop->in_step = false;
    jzx_err err = goal == JZI_GOAL_IDLE    ? jzi_loop_run_idle_here(pool->loop)
                  : goal == JZI_GOAL_SERVE ? jzi_loop_serve_here(pool->loop)
                                           : jzi_loop_run_here(pool->loop);
    pool->loop->in_step = true;
    (void)pthread_mutex_lock(pool->pool_lock);
    jzi_pool_reach(pool, err);
    pool->goal = JZI_GOAL_PARK;
}

static void *hand_main(void *arg)
{
    jzi_pool_thread *thread = arg;
    jzi_pool *pool = thread->pool;
    if (pool->bound) {
        jzi_thread_bind(thread->cpu);
    }
    thread->tid = jzi_thread_tid();
    jzi_thread_admit(JZI_PROBE_SIGNAL); /* ignored unless a probe asks what the thread does */
    (void)pthread_mutex_lock(pool->pool_lock);
    for (;;) {
        park(thread);
        if (pool->quit) {
            break;
        }
        if (thread->worker->dispatcher->pooled) {
            work_together(thread);
        } else {
            work_alone(thread);
        }
    }
    (void)pthread_mutex_unlock(pool->pool_lock);
    return NULL;
}

void jzi_pool_wake_all(jzi_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        pool->threads[i].deep = false;
        (void)pthread_cond_signal(&pool->threads[i].unparked);
    }
    const jzi_worker *worker = &pool->loop->worker;
    bool alone = !worker->dispatcher->pooled;
    atomic_store_explicit(&pool->loop->inbox->asleep, 0, memory_order_seq_cst);
    if (pool->driver != NULL || (alone && !pool->reached)) { /* waits in the poller */
        worker->env->wake_signal(worker->env->ctx, pool->loop->inbox->wake_fd);
    }
}

static jzx_err start_threads(jzi_pool *pool)
{
    while (pool->started < pool->count) {
        jzi_pool_thread *thread = &pool->threads[pool->started];
        char name[16];
        (void)snprintf(name, sizeof name, "jzx-%.7s-%u", pool->loop->name, pool->started % 100);
        if (jzi_thread_start(hand_main, thread, name, &thread->handle) != JZX_OK) {
            return JZX_ERR_NO_THREADS;
        }
        pool->started++;
    }
    return JZX_OK;
}

static jzx_err pool_start(jzi_pool *pool)
{
    jzx_err err = start_threads(pool);
    if (err != JZX_OK) {
        return err;
    }
    while (pool->parked < pool->count) {
        jzi_cond_wait(&pool->changed, pool->pool_lock, UINT64_MAX);
    }
    return JZX_OK;
}

static void give_goal(jzi_pool *pool, jzi_goal goal)
{
    jzx_loop *loop = pool->loop;
    loop->in_step = true;
    atomic_store_explicit(&loop->dispatcher.running, 1, memory_order_relaxed);
    atomic_store_explicit(&loop->inbox->asleep, 0, memory_order_seq_cst);
    pool->err = JZX_OK;
    pool->reached = false;
    pool->goal = goal;
    jzi_pool_wake_all(pool);
}

/* All threads are parked: the loop is its caller's again. */
static void take_back(jzi_pool *pool)
{
    jzx_loop *loop = pool->loop;
    loop->dispatcher.acting = &loop->worker;
    if (loop->dispatcher.pooled) {
        jzi_far_trim(&loop->dispatcher);
    }
    atomic_store_explicit(&loop->dispatcher.running, 0, memory_order_relaxed);
    loop->in_step = false;
    jzi_loop_outside(loop);
}

jzx_err jzi_pool_serve(jzx_loop *loop)
{
    /* No thread is there yet, so no lock is needed: the caller has one of its own. */
    give_goal(loop->pool, JZI_GOAL_SERVE);
    return start_threads(loop->pool);
}

bool jzi_pool_halt(jzx_loop *loop, uint64_t timeout_ns)
{
    jzi_pool *pool = loop->pool;
    const jzx_env *env = loop->worker.env;
    uint64_t end = timeout_ns == UINT64_MAX ? UINT64_MAX : env->now_ns(env->ctx) + timeout_ns;
    (void)pthread_mutex_lock(pool->pool_lock);
    pool->goal = JZI_GOAL_PARK;
    atomic_store_explicit(&loop->inbox->stop, 1, memory_order_seq_cst);
    jzi_pool_wake_all(pool);
    uint64_t now = env->now_ns(env->ctx);
    while (pool->parked < pool->started && now < end) {
        jzi_cond_wait(&pool->changed, pool->pool_lock, end == UINT64_MAX ? end : end - now);
        now = env->now_ns(env->ctx);
    }
    bool parked = pool->parked == pool->started;
    if (parked) {
        take_back(pool);
    }
    (void)pthread_mutex_unlock(pool->pool_lock);
    return parked;
}

jzx_err jzi_pool_run(jzx_loop *loop, jzi_goal goal)
{
    jzi_pool *pool = loop->pool;
    (void)pthread_mutex_lock(pool->pool_lock);
    jzx_err err = pool_start(pool);
    if (err == JZX_OK) {
        give_goal(pool, goal);
        while (!pool->reached) {
            jzi_cond_wait(&pool->changed, pool->pool_lock, UINT64_MAX);
        }
        pool->goal = JZI_GOAL_PARK;
        jzi_pool_wake_all(pool);
        while (pool->parked < pool->count) {
            jzi_cond_wait(&pool->changed, pool->pool_lock, UINT64_MAX);
        }
        take_back(pool);
        err = pool->err;
    }
    (void)pthread_mutex_unlock(pool->pool_lock);
    return err;
}
