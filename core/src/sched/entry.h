/* How a public call gets in: from a loop to the worker that acts for the calling thread, in a pool
 * with its pool lock. Nothing here knows what a loop is, but that its worker is its first member,
 * which loop.h asserts; so the modules below the loop have entry points of their own. */
#ifndef JZI_ENTRY_H
#define JZI_ENTRY_H

#include "sched/worker.h"

/* The worker of a loop; of a pool, the first one. */
static inline jzi_worker *jzi_loop_worker(const jzx_loop *loop)
{
    return (jzi_worker *)(uintptr_t)loop;
}

/* The worker that acts for the calling thread. */
static inline jzi_worker *jzi_loop_here(const jzx_loop *loop)
{
    jzi_worker *worker = jzi_loop_worker(loop);
    jzi_worker *here =
        jzi_unlikely(worker->pooled) ? jzi_worker_of_thread(worker->dispatcher) : NULL;
    return here != NULL ? here : worker;
}

/* Entry points begin with this: `worker` acts for the caller, NULL without a loop. In a pool that
 * worker has the pool lock until the function returns. */
jzi_worker *jzi_loop_enter_pool(const jzx_loop *loop);
static inline jzi_worker *jzi_loop_enter(const jzx_loop *loop, const char *call)
{
    if (loop == NULL) {
        return NULL;
    }
    jzi_worker *worker = jzi_loop_worker(loop);
    jzi_worker_check_thread(worker, call);
    return jzi_unlikely(worker->pooled) ? jzi_loop_enter_pool(loop) : worker;
}
void jzi_loop_leave_pool(jzi_worker *worker);
static inline void jzi_loop_leave(jzi_worker *const *worker)
{
    if (*worker != NULL && jzi_unlikely((*worker)->pooled)) {
        jzi_loop_leave_pool(*worker);
    }
}
/* For short calls: no pool, so there is no pool lock to take. */
static inline bool jzi_loop_is_plain(const jzx_loop *loop, const char *call)
{
    jzi_worker *worker = jzi_loop_worker(loop);
    jzi_worker_check_thread(worker, call);
    return jzi_likely(!worker->pooled);
}
#define JZI_ENTER(loop, call)                                                                      \
    __attribute__((cleanup(jzi_loop_leave), unused)) jzi_worker *const worker =                    \
        jzi_loop_enter(loop, call)

/* The actor whose code is running, which a spawn now would be a child of; NULL: the program's. */
static inline jzi_actor *jzi_worker_self(const jzi_worker *worker)
{
    return worker->phase == JZI_PHASE_NONE || worker->ctx.self == JZX_NOBODY ? NULL
                                                                             : worker->current;
}

/* The worker of a context if code of an actor is running; NULL otherwise. */
static inline jzi_worker *jzi_worker_of_ctx(const jzx_context *ctx)
{
    if (ctx == NULL) {
        return NULL;
    }
    jzi_worker *worker = (jzi_worker *)(uintptr_t)jzi_container_of(ctx, const jzi_worker, ctx);
    bool empty_handed =
        worker->phase == JZI_PHASE_BEHAVIOR && (worker->in_hand == NULL || worker->dropping);
    return worker->phase == JZI_PHASE_NONE || empty_handed ? NULL : worker;
}
/* The same if a message is in hand. */
static inline jzi_worker *jzi_worker_with_message(const jzx_context *ctx)
{
    jzi_worker *worker = jzi_worker_of_ctx(ctx);
    return worker == NULL || worker->phase != JZI_PHASE_BEHAVIOR ? NULL : worker;
}

#endif
