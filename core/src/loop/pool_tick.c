/* A worker of a pool on the caller's thread: in simulation, and for jzx_loop_step(). */
#include "loop/loop_priv.h"

/* In simulation the seed says which worker is next, and while user code of one is about to run
 * another one may get ahead of it. On a real environment the caller is the first worker. */
jzx_err jzi_pool_tick(jzx_loop *loop, uint64_t max_ns)
{
    const jzi_dispatcher *dispatcher = &loop->dispatcher;
    const jzx_env *env = loop->worker.env;
    uint32_t chosen = 0;
    if (!dispatcher->threads && env->pick != NULL) {
        chosen = env->pick(env->ctx, dispatcher->worker_count);
    }
    jzi_worker *worker = dispatcher->workers[chosen];
    jzi_worker *outer = loop->worker.outer;
    jzx_err err = JZX_OK;
    loop->worker.outer = NULL; /* whose place in the line the chosen one takes */
    worker->outer = outer;
    atomic_store_explicit(&loop->dispatcher.running, 1, memory_order_relaxed);
    jzi_worker_here = worker;
    jzi_worker_lock_pool(worker);
    jzi_count_add(&worker->counters.ticks, 1);
    jzi_loop_take_in(loop, worker);
    if (!jzi_loop_has_ready(loop)) {
        bool quiet = max_ns == 0 && loop->io.watched == 0 && !loop->embedded;
        atomic_store_explicit(&loop->worker.thread, 0, memory_order_relaxed);
        err = quiet ? JZX_OK : jzi_loop_sleep(loop, worker, max_ns);
        atomic_store_explicit(&loop->worker.thread, jzi_thread_self(), memory_order_relaxed);
        jzi_loop_take_in(loop, worker);
    } else {
        err = jzi_loop_glance(loop, worker);
    }
    if (jzi_worker_ready(worker) == 0) {
        (void)jzi_worker_steal(worker);
    }
    bool alone = dispatcher->threads || env->pick == NULL || dispatcher->worker_count == 1;
    jzi_loop_turns(loop, worker, alone || loop->max_turns < 4 ? loop->max_turns : 4);
    jzi_worker_run_deferred(worker);
    jzi_worker_unlock_pool(worker);
    worker->outer = NULL;
    loop->worker.outer = outer;
    jzi_worker_here = &loop->worker;
    atomic_store_explicit(&loop->dispatcher.running, 0, memory_order_relaxed);
    return err;
}

void jzi_pool_get_ahead(jzi_worker *worker)
{
    const jzi_dispatcher *dispatcher = worker->dispatcher;
    const jzx_env *env = worker->env;
    if (env->pick == NULL || dispatcher->destroying || env->pick(env->ctx, 4) != 0) {
        return;
    }
    jzi_worker *other = dispatcher->workers[env->pick(env->ctx, dispatcher->worker_count)];
    if (other->current != NULL || other->phase != JZI_PHASE_NONE || other == worker) {
        return;
    }
    jzx_loop *loop = worker->ctx.loop;
    other->outer = worker;
    jzi_worker_here = other;
    jzi_worker_lock_pool(other);
    jzi_loop_take_in(loop, other);
    if (jzi_worker_ready(other) > 0 || jzi_worker_steal(other)) {
        jzi_loop_turns(loop, other, 1);
    }
    jzi_worker_unlock_pool(other);
    other->outer = NULL;
    jzi_worker_here = worker;
}
