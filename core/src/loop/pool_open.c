/* Making and freeing the workers of a pool and what their threads need. */
#include "base/alloc.h"
#include "loop/loop_priv.h"
#include "os/asym.h"
#include "os/debug/probe.h"
#include "os/thread.h"
#include "sched/sender.h"

enum { DEFAULT_SPIN_US = 20 };

static jzi_worker *make_worker(const jzx_loop *loop, uint32_t number)
{
    const jzi_worker *first = &loop->worker;
    jzi_worker *worker = jzi_alloc_zeroed(&first->alloc, sizeof *worker);
    if (worker == NULL) {
        return NULL;
    }
    worker->dispatcher = first->dispatcher;
    worker->inbox = first->inbox;
    worker->table = first->table;
    worker->chunks = first->chunks;
    worker->base = first->base;
    worker->number = number;
    worker->env = first->env;
    worker->alloc = first->alloc;
    worker->ctx.loop = first->ctx.loop;
    worker->default_cap = first->default_cap;
    worker->default_max_msgs = first->default_max_msgs;
    worker->turn_budget_ns = first->turn_budget_ns;
    worker->max_stride = first->max_stride;
    worker->instrumented = first->instrumented;
    worker->recording = first->recording;
    worker->recording_often = first->recording_often;
    worker->stride = worker->until_clock = 1;
    worker->timers = first->timers;
    worker->alarms = first->alarms;
    worker->io = first->io;
    worker->store = first->store;
    jzi_worker_set_pace(worker, UINT64_MAX);
    (void)jzi_worker_clock(worker);
    return worker;
}

static void free_worker(const jzx_allocator *alloc, jzi_worker *worker)
{
    jzi_far_close(worker);
    jzi_worker_flush_returns(worker);
    jzi_event_ring_destroy(alloc, worker->event_ring);
    jzi_free(alloc, worker->ring,
             worker->ring == NULL ? 0 : ((size_t)worker->ring_mask + 1) * sizeof(jzi_actor *));
    jzi_free(alloc, worker, sizeof *worker);
}

static void free_workers(jzx_loop *loop)
{
    jzi_dispatcher *dispatcher = &loop->dispatcher;
    jzx_allocator alloc = loop->worker.alloc;
    uint32_t count = dispatcher->worker_count;
    jzi_worker **workers = dispatcher->workers;
    if (workers == &dispatcher->only) {
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        if (workers[i] != NULL) {
            free_worker(&alloc, workers[i]);
        }
    }
    jzi_free(&alloc, workers, count * sizeof(jzi_worker *));
    dispatcher->acting = &loop->worker;
    dispatcher->workers = &dispatcher->only;
    dispatcher->worker_count = 1;
}

static jzx_err make_workers(jzx_loop *loop, uint32_t count)
{
    jzi_dispatcher *dispatcher = &loop->dispatcher;
    jzi_worker **workers = jzi_alloc_zeroed(&loop->worker.alloc, count * sizeof(jzi_worker *));
    if (workers == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    workers[0] = &loop->worker;
    dispatcher->workers = workers;
    dispatcher->worker_count = count;
    for (uint32_t i = 1; i < count; i++) {
        workers[i] = make_worker(loop, i);
        if (workers[i] == NULL) {
            free_workers(loop);
            return JZX_ERR_NO_MEMORY;
        }
    }
    dispatcher->pooled = true;
    dispatcher->shared = true;
    for (uint32_t i = 0; i < count; i++) {
        workers[i]->pooled = true;
    }
    loop->worker.quick_slots = 0; /* the inbox may have been a pinned one's */
    loop->worker.quick = false;
    return JZX_OK;
}

jzx_err jzi_pool_open(jzx_loop *loop, const jzx_config *config, bool simulated)
{
    jzi_dispatcher *dispatcher = &loop->dispatcher;
    uint32_t count = config->workers == 0 ? 1 : config->workers;
    if (config->dispatcher == JZX_DISPATCHER_POOL) {
        jzx_err err = make_workers(loop, count);
        if (err != JZX_OK) {
            return err;
        }
    }
    if (simulated) {
        dispatcher->on_pool_unlocked = jzi_pool_get_ahead;
        return JZX_OK;
    }
    size_t bytes = sizeof(jzi_pool) + count * sizeof(jzi_pool_thread);
    jzi_pool *pool = jzi_alloc_zeroed(&loop->worker.alloc, bytes);
    if (pool == NULL) {
        free_workers(loop);
        return JZX_ERR_NO_MEMORY;
    }
    uint32_t spin_us = config->idle_spin_us != 0 ? config->idle_spin_us : DEFAULT_SPIN_US;
    dispatcher->threads = true;
    for (uint32_t i = 0; i < dispatcher->worker_count; i++) {
        dispatcher->workers[i]->light_fence = jzi_asym_ready();
    }
    jzi_worker_set_pace(&loop->worker, UINT64_MAX);
    dispatcher->on_more = jzi_pool_share;
    jzi_mutex_init(&dispatcher->pool_lock);
    pool->loop = loop;
    pool->pool_lock = &dispatcher->pool_lock;
    pool->count = count;
    pool->pid = jzi_process_id();
    pool->spin_ns = config->idle_spin_us == JZX_IDLE_NO_SPIN ? 0 : (uint64_t)spin_us * 1000;
    pool->bound = config->cpu_count > 0;
    jzi_cond_init(&pool->changed);
    for (uint32_t i = 0; i < count; i++) {
        pool->threads[i].pool = pool;
        pool->threads[i].worker = dispatcher->workers[i];
        /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): bound says that there is a processor. */
        pool->threads[i].cpu = pool->bound ? config->cpus[i % config->cpu_count] : 0;
        jzi_cond_init(&pool->threads[i].unparked);
    }
    loop->pool = pool;
    return JZX_OK;
}

bool jzi_pool_abandon(jzx_loop *loop)
{
    jzi_dispatcher *dispatcher = &loop->dispatcher;
    if (loop->pool->pid == jzi_process_id() || !dispatcher->pooled) {
        return true;
    }
    const jzi_worker *bias_owner = dispatcher->bias_owner;
    bool whole =
        pthread_mutex_trylock(&dispatcher->pool_lock) == 0 &&
        (bias_owner == NULL ||
         atomic_load_explicit(&bias_owner->bias_state, memory_order_relaxed) != JZI_BIAS_BUSY);
    dispatcher->bias_owner = NULL;
    dispatcher->threads = false;
    atomic_store_explicit(&dispatcher->running, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < dispatcher->worker_count; i++) {
        dispatcher->workers[i]->pool_lock_depth = 0;
        dispatcher->workers[i]->biased = dispatcher->workers[i]->may_bias = false;
    }
    return whole;
}

bool jzi_pool_close(jzx_loop *loop)
{
    jzi_pool *pool = loop->pool;
    if (pool != NULL) {
        if (pool->pid == jzi_process_id()) {
            (void)pthread_mutex_lock(pool->pool_lock);
            pool->quit = true;
            pool->goal = JZI_GOAL_PARK;
            jzi_pool_wake_all(pool);
            (void)pthread_mutex_unlock(pool->pool_lock);
        }
        for (uint32_t i = 0; i < pool->started; i++) {
            jzi_thread_join(pool->threads[i].handle, pool->pid);
        }
        for (uint32_t i = 0; i < pool->count && pool->pid == jzi_process_id(); i++) {
            (void)pthread_cond_destroy(&pool->threads[i].unparked);
        }
        if (pool->pid == jzi_process_id()) {
            (void)pthread_cond_destroy(&pool->changed);
        }
        size_t bytes = sizeof(jzi_pool) + pool->count * sizeof(jzi_pool_thread);
        jzi_free(&loop->worker.alloc, pool, bytes);
        loop->pool = NULL;
    }
    free_workers(loop);
    return true;
}
