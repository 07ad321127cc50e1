/* Running a system: "loop" on the caller's thread, the others on their own or, in simulation, by
 * turns (R30, R31). */
#include "loop/system.h"

#include "os/thread.h"

static bool is_quiet(const jzx_loop *loop)
{
    return !jzi_inbox_has_mail(loop->inbox);
}

bool jzi_system_nobody_left(jzx_system *system)
{
    bool left = atomic_load_explicit(&system->directory->unborn, memory_order_seq_cst) != 0;
    (void)pthread_mutex_lock(&system->lock);
    for (uint32_t i = 0; i < system->used && !left; i++) {
        jzx_loop *loop = jzi_system_loop_at(system, i);
        left = loop != NULL && (!jzi_loop_nobody_left(loop) || !is_quiet(loop));
    }
    (void)pthread_mutex_unlock(&system->lock);
    return !left;
}

/* Simulation: one step of one dispatcher, as the seed says. */
static jzx_err step_any(jzx_system *system, uint64_t max_ns)
{
    const jzx_env *env = system->env;
    uint32_t chosen = env->pick == NULL ? 0 : env->pick(env->ctx, system->used);
    uint64_t earliest = UINT64_MAX;
    jzx_loop *first = NULL;
    for (uint32_t i = 0; i < system->used; i++) {
        jzx_loop *loop = jzi_system_loop_at(system, (chosen + i) % system->used);
        if (loop == NULL) {
            continue;
        }
        uint64_t due = jzx_loop_deadline(loop);
        if (due < earliest || first == NULL) {
            earliest = due;
            first = loop;
        }
        if (due == 0) {
            break; /* something is ready here */
        }
    }
    /* What is ready is done without a wait: the others may be ready too, and only this thread can
     * run them. */
    jzx_err err = jzi_loop_step_here(first, earliest == 0 ? 0 : max_ns);
    first->dispatcher.on_stepped(&first->dispatcher);
    return err;
}

static bool goes_on(jzx_system *system)
{
    return !jzi_loop_stop_requested(jzi_system_main(system)) && !jzi_system_nobody_left(system);
}

jzx_err jzi_system_run_while(jzx_system *system, bool (*more)(jzx_system *system))
{
    jzx_loop *loop = jzi_system_main(system);
    jzx_err err = JZX_OK;
    if (loop->in_step || system->joined || jzi_worker_here != NULL) {
        return JZX_ERR_BUSY;
    }
    system->joined = true;
    JZI_PUBLISH(loop->in_run, true);
    loop->heeds_stop = more == goes_on;
    while (err == JZX_OK && more(system)) {
        err = system->simulated ? step_any(system, JZX_TIMEOUT_INFINITE)
                                : jzi_loop_step_here(loop, JZX_TIMEOUT_INFINITE);
        jzi_system_reap(system);
    }
    loop->heeds_stop = false;
    JZI_PUBLISH(loop->in_run, false);
    system->joined = false;
    return err;
}

jzx_err jzx_system_run(jzx_system *system)
{
    if (system == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_loop *loop = jzi_system_main(system);
    jzi_worker_check_thread(&loop->worker, "jzx_system_run");
    jzx_err err = jzi_system_run_while(system, goes_on);
    if (err != JZX_ERR_BUSY) {
        jzi_loop_stop_answered(loop);
    }
    return err;
}

void jzx_system_request_stop(jzx_system *system)
{
    if (system != NULL) {
        jzx_loop_request_stop(jzi_system_main(system));
    }
}

/* A number that changes whenever something happens on another dispatcher; 0: something is going on
 * right now. */
static uint64_t look_around(jzx_system *system)
{
    uint64_t sum = 1;
    bool busy = atomic_load_explicit(&system->directory->unborn, memory_order_seq_cst) != 0;
    (void)pthread_mutex_lock(&system->lock);
    for (uint32_t i = 0; i < system->used && !busy; i++) {
        const jzx_loop *loop = jzi_system_loop_at(system, i);
        if (loop == NULL) {
            continue;
        }
        const jzi_dispatcher *dispatcher = &loop->dispatcher;
        busy = !is_quiet(loop) ||
               (i > 0 && atomic_load_explicit(&dispatcher->resting, memory_order_acquire) == 0);
        for (uint32_t j = 0; j < dispatcher->worker_count; j++) {
            const jzi_counters *counters = &dispatcher->workers[j]->counters;
            /* Our own loop ticks because we look. */
            sum += (i > 0 ? jzi_count_get(&counters->ticks) : 0) +
                   jzi_count_get(&counters->accepted) + jzi_count_get(&counters->handled) +
                   jzi_count_get(&counters->ended);
        }
    }
    (void)pthread_mutex_unlock(&system->lock);
    return busy ? 0 : sum;
}

static jzx_err settle_simulated(jzx_system *system)
{
    for (;;) {
        bool ready = false;
        for (uint32_t i = 0; i < system->used && !ready; i++) {
            jzx_loop *loop = jzi_system_loop_at(system, i);
            ready =
                loop != NULL && jzx_loop_deadline(loop) <= system->env->now_ns(system->env->ctx);
        }
        jzx_err err = ready ? step_any(system, 0) : JZX_OK;
        jzi_system_reap(system);
        if (err != JZX_OK || !ready) {
            return err;
        }
    }
}

jzx_err jzx_system_run_until_idle(jzx_system *system, uint64_t timeout_ms)
{
    if (system == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_loop *loop = jzi_system_main(system);
    jzi_worker_check_thread(&loop->worker, "jzx_system_run_until_idle");
    if (loop->in_step || system->joined || jzi_worker_here != NULL) {
        return JZX_ERR_BUSY;
    }
    if (system->simulated) {
        return settle_simulated(system);
    }
    const jzx_env *env = system->env;
    uint64_t now = env->now_ns(env->ctx);
    uint64_t end =
        timeout_ms > (UINT64_MAX - now) / 1000000 ? UINT64_MAX : now + timeout_ms * 1000000;
    uint64_t seen = 0;
    for (;;) {
        jzx_err err = jzi_loop_run_idle_here(loop);
        jzi_system_reap(system);
        uint64_t sees = err == JZX_OK ? look_around(system) : 0;
        if (err != JZX_OK || (sees != 0 && sees == seen)) {
            return err;
        }
        seen = sees;
        if (env->now_ns(env->ctx) > end) {
            return JZX_ERR_TIMED_OUT;
        }
        jzi_thread_pause(50000);
    }
}
