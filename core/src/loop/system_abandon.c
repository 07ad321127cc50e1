/* A system in a forked child (R29). None of its threads came along but the one that forked, so each
 * dispatcher is as its thread left it: at rest, or in the middle of something. Where all were at
 * rest and none had a lock, everything is ended and freed as jzx_system_destroy() does, on this
 * thread and without code of the program. Otherwise the memory stays, and descriptors are closed.
 */
#include "loop/system.h"

#include "base/publish.h"
#include "messaging/registry.h"
#include "os/debug/probe.h"

/* A thread that had the lock is not here to give it back. */
static bool is_free(pthread_mutex_t *lock)
{
    if (pthread_mutex_trylock(lock) != 0) {
        return false;
    }
    (void)pthread_mutex_unlock(lock);
    return true;
}

static bool is_free_inbox(jzi_inbox *inbox)
{
    return inbox == NULL ||
           (is_free(&inbox->table.lock) && is_free(&inbox->asks.lock) &&
            is_free(&inbox->timers.lock) &&
            atomic_load_explicit(&inbox->registry_lock, memory_order_relaxed) == 0);
}

static bool are_free(jzx_system *system)
{
    bool all = is_free(&system->lock) && is_free(&system->end.lock) &&
               is_free(&system->letters.lock) && is_free(&system->board.lock) &&
               jzi_registry_is_free(system->registry);
    for (uint32_t i = 0; i < JZX_DISPATCHERS_MAX && all; i++) {
        all = is_free_inbox(jzi_directory_inbox(system->directory, i));
    }
    return all;
}

/* Whether nothing of it was half done. Of a pool the pool lock says that, see jzi_pool_abandon().
 */
static bool is_at_rest(const jzx_loop *loop, const jzi_worker *here)
{
    if (loop->dispatcher.pooled || (here != NULL && here->dispatcher == &loop->dispatcher)) {
        return true;
    }
    return JZI_PEEK(loop->io.in_wait) || (loop->pool == NULL && !loop->in_step);
}

/* The dispatcher's thread is not here: the calls of this one are in order. */
static void come_out(jzx_loop *loop)
{
    loop->in_step = false;
    for (uint32_t i = 0; i < loop->dispatcher.worker_count; i++) {
        atomic_store_explicit(&loop->dispatcher.workers[i]->thread, 0, memory_order_relaxed);
        loop->dispatcher.workers[i]->outer = NULL;
    }
}

void jzi_system_abandon(jzx_system *system)
{
    if (system->pid == jzi_process_id()) {
        return;
    }
    const jzi_worker *here = jzi_worker_here;
    bool whole = are_free(system);
    for (uint32_t i = 0; i < system->used; i++) {
        jzx_loop *loop = jzi_system_loop_at(system, i);
        if (loop != NULL) {
            whole = is_at_rest(loop, here) && jzi_loop_disown(loop) && whole;
            come_out(loop);
        }
    }
    jzi_worker_here = NULL;
    system->joined = false;
    atomic_store_explicit(&system->closing, 1, memory_order_relaxed);
    if (whole) {
        jzi_system_end_all(system);
        jzi_system_free_loops(system);
        jzi_jobs_abandon(system->jobs);
        system->jobs = NULL;
        jzi_system_free(system);
        return;
    }
    for (uint32_t i = 0; i < system->used; i++) {
        jzx_loop *loop = jzi_system_loop_at(system, i);
        if (loop != NULL) {
            jzi_loop_close_fds(loop);
        }
    }
}
