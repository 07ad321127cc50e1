#include "loop/loop_priv.h"

#include "actor/log.h"
#include "base/alloc.h"
#include "io/job.h"
#include "lifecycle/monitor.h"
#include "messaging/registry.h"
#include "os/debug/probe.h"
#include "sched/letters.h"
#include "sched/room.h"
#include "sched/sender.h"
#include "supervision/children.h"

#include <jzx/system.h>

#include "os/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static jzx_err loop_enter(jzx_loop *loop, const char *call)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_worker_check_thread(&loop->worker, call);
    if (loop->in_step || loop->dispatcher.destroying) {
        return JZX_ERR_BUSY;
    }
    if (atomic_load_explicit(&loop->watchdog, memory_order_relaxed) != NULL ||
        atomic_load_explicit(&loop->looked_at, memory_order_relaxed) != 0) {
        atomic_store_explicit(&loop->worker.tid, jzi_thread_tid(), memory_order_relaxed);
    }
    loop->in_step = true;
    loop->worker.outer = jzi_worker_here;
    jzi_worker_here = &loop->worker;
    atomic_store_explicit(&loop->worker.thread, jzi_thread_self(), memory_order_relaxed);
    atomic_store_explicit(&loop->inbox->asleep, 0, memory_order_seq_cst);
    return JZX_OK;
}

void jzi_loop_outside(jzx_loop *loop)
{
    if (!loop->embedded) {
        return;
    }
    /* From outside, "asleep" means "not inside step" (R29): senders must make the descriptor
     * readable, and so must we if something is left to do. */
    atomic_store_explicit(&loop->inbox->asleep, 1, memory_order_seq_cst);
    bool mail = jzi_inbox_has_mail_now(loop->inbox);
    if (mail || jzi_loop_has_ready(loop)) {
        loop->worker.env->wake_signal(loop->worker.env->ctx, loop->inbox->wake_fd);
    }
}

static void loop_leave(jzx_loop *loop)
{
    atomic_store_explicit(&loop->worker.thread, 0, memory_order_relaxed);
    jzi_worker_here = loop->worker.outer;
    loop->worker.outer = NULL;
    loop->in_step = false;
    if (!jzi_loop_has_ready(loop)) {
        jzi_loop_trim(&loop->worker);
    }
    jzi_loop_outside(loop);
}

static jzx_err tick(jzx_loop *loop, uint64_t max_ns)
{
    return loop->dispatcher.pooled ? jzi_pool_tick(loop, max_ns) : jzi_loop_tick(loop, max_ns);
}

jzx_err jzx_loop_step(jzx_loop *loop, uint64_t max_ns)
{
    if (loop != NULL && loop->system != NULL && loop->pool != NULL) {
        return JZX_ERR_BUSY; /* its own threads run it */
    }
    jzx_err err = jzi_loop_step_here(loop, max_ns);
    if (loop != NULL && loop->dispatcher.on_stepped != NULL) {
        loop->dispatcher.on_stepped(&loop->dispatcher);
    }
    return err;
}

jzx_err jzi_loop_step_here(jzx_loop *loop, uint64_t max_ns)
{
    jzx_err err = loop_enter(loop, "jzx_loop_step");
    if (err != JZX_OK) {
        return err;
    }
    err = tick(loop, max_ns);
    loop_leave(loop);
    return err;
}

jzx_err jzi_loop_run_here(jzx_loop *loop)
{
    jzx_err err = loop_enter(loop, "jzx_loop_run");
    if (err != JZX_OK) {
        return err;
    }
    JZI_PUBLISH(loop->in_run, true);
    loop->heeds_stop = true;
    while (err == JZX_OK && !jzi_loop_stop_requested(loop) && !jzi_loop_nobody_left(loop)) {
        err = tick(loop, JZX_TIMEOUT_INFINITE);
    }
    loop->heeds_stop = false;
    JZI_PUBLISH(loop->in_run, false);
    loop_leave(loop);
    return err;
}

jzx_err jzi_loop_serve_here(jzx_loop *loop)
{
    jzx_err err = loop_enter(loop, "jzx_loop_run");
    JZI_PUBLISH(loop->in_run, true);
    loop->heeds_stop = true;
    while (err == JZX_OK && !jzi_loop_stop_requested(loop)) {
        err = tick(loop, JZX_TIMEOUT_INFINITE);
    }
    loop->heeds_stop = false;
    JZI_PUBLISH(loop->in_run, false);
    loop_leave(loop);
    return err;
}

/* A dispatcher of a system that its own threads run. */
static bool runs_by_itself(const jzx_loop *loop)
{
    return loop->system != NULL && loop->pool != NULL;
}

jzx_err jzx_loop_run(jzx_loop *loop)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (runs_by_itself(loop)) {
        return JZX_ERR_BUSY;
    }
    if (loop->in_step || loop->dispatcher.destroying) {
        return JZX_ERR_BUSY;
    }
    jzi_observer observer = loop->dispatcher.observer;
    if (observer.on.on_loop_start != NULL) {
        observer.on.on_loop_start(observer.ctx);
    }
    jzx_err err = loop->pool != NULL ? jzi_pool_run(loop, JZI_GOAL_DONE) : jzi_loop_run_here(loop);
    jzi_loop_stop_answered(loop);
    observer = loop->dispatcher.observer;
    if (observer.on.on_loop_stop != NULL) {
        observer.on.on_loop_stop(observer.ctx);
    }
    return err;
}

jzx_err jzi_loop_run_idle_here(jzx_loop *loop)
{
    jzx_err err = loop_enter(loop, "jzx_loop_run_until_idle");
    if (err != JZX_OK) {
        return err;
    }
    do {
        loop->io.last_ready = 0;
        err = tick(loop, 0);
    } while (err == JZX_OK && (jzi_loop_has_ready(loop) || jzi_inbox_has_mail(loop->inbox) ||
                               loop->io.last_ready > 0 ||
                               jzi_loop_next_timer(loop) <= jzi_worker_clock(&loop->worker)));
    loop_leave(loop);
    return err;
}

jzx_err jzx_loop_run_until_idle(jzx_loop *loop)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (runs_by_itself(loop)) {
        return JZX_ERR_BUSY;
    }
    if (loop->pool == NULL) {
        return jzi_loop_run_idle_here(loop);
    }
    return loop->in_step || loop->dispatcher.destroying ? JZX_ERR_BUSY
                                                        : jzi_pool_run(loop, JZI_GOAL_IDLE);
}

void jzx_loop_request_stop(jzx_loop *loop)
{
    if (loop != NULL) {
        atomic_store_explicit(&loop->inbox->stop, 1, memory_order_seq_cst);
        jzi_inbox_wake(loop->inbox);
    }
}

int jzx_loop_done(jzx_loop *loop)
{
    return loop != NULL && (jzi_loop_stop_requested(loop) || jzi_loop_nobody_left(loop));
}

int jzx_loop_fd(jzx_loop *loop)
{
    if (loop == NULL) {
        return -1;
    }
    const jzx_env *env = loop->worker.env;
    int fd = env->poller_fd(env->ctx, loop->poller);
    if (fd >= 0 && !loop->embedded) {
        loop->embedded = true;
        if (!loop->in_step) {
            jzi_loop_outside(loop);
        }
    }
    return fd;
}

uint64_t jzx_loop_deadline(jzx_loop *loop)
{
    if (loop == NULL) {
        return 0;
    }
    return jzi_loop_has_ready(loop) || jzi_inbox_has_mail(loop->inbox) ? 0
                                                                       : jzi_loop_next_timer(loop);
}

int jzx_loop_timeout_ms(jzx_loop *loop)
{
    uint64_t deadline = jzx_loop_deadline(loop);
    if (deadline == JZX_TIMEOUT_INFINITE) {
        return -1;
    }
    uint64_t now = jzx_loop_now(loop);
    if (deadline <= now) {
        return 0;
    }
    uint64_t ms = (deadline - now + 999999) / 1000000;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

uint64_t jzx_loop_now(jzx_loop *loop)
{
    return loop == NULL ? 0 : loop->worker.env->now_ns(loop->worker.env->ctx);
}

const char *jzx_loop_poller_name(const jzx_loop *loop)
{
    if (loop == NULL) {
        return "";
    }
    return loop->worker.env == jzx_env_epoll() ? "epoll" : "custom";
}

void jzi_loop_free(jzx_loop *loop)
{
    jzi_worker *worker = &loop->worker;
    jzi_job_deinit(worker, loop->system == NULL ? loop->dispatcher.jobs : NULL);
    jzx_allocator alloc = worker->alloc;
    const jzx_env *env = worker->env;
    jzi_root_deinit(worker, &loop->root);
    jzi_io_deinit(&loop->io);
    jzi_timers_deinit(&loop->timers);
    env->poller_close(env->ctx, loop->poller);
    (void)jzi_pool_close(loop);
    jzi_far_close(worker);
    jzi_worker_flush_returns(worker);
    jzi_node_pool_deinit(&worker->plain, &alloc);
    jzi_node_pool_deinit(&worker->wide, &alloc);
    jzi_free(&alloc, worker->ring,
             worker->ring == NULL ? 0 : ((size_t)worker->ring_mask + 1) * sizeof(jzi_actor *));
    jzi_dead_letters_deinit(&worker->dispatcher->dead_letters, &alloc);
    jzi_event_ring_destroy(&alloc, worker->event_ring);
    if (loop->system == NULL) {
        jzi_registry_destroy(worker->dispatcher->registry);
        jzi_board_deinit(&loop->own_board);
        jzi_log_free(jzi_dispatcher_log(worker->dispatcher), true);
    }
    jzi_inbox_shut(loop->inbox, loop->dispatcher.abandoned);
    jzi_inbox_release(loop->inbox);
    jzi_free(&alloc, loop, sizeof *loop);
}

void jzi_loop_end_actors(jzx_loop *loop)
{
    JZI_ENTER(loop, "jzx_loop_destroy");
    if (!worker->dispatcher->destroying) {
        worker->dispatcher->destroying = true;
        jzi_lifecycle_kill_all(worker);
    }
    /* Of a system: what other dispatchers order and tell. A loop alone dead-letters what is under
     * way when no actor is left. */
    if (loop->system != NULL && jzi_inbox_has_mail(loop->inbox)) {
        jzi_worker_intake(worker);
    }
    worker->outer = jzi_worker_here == worker ? worker->outer : jzi_worker_here;
    jzi_worker_here = worker;
    jzi_loop_run_out(loop);
    jzi_worker_here = worker->outer;
    worker->outer = NULL;
}

bool jzi_loop_close(jzx_loop *loop)
{
    JZI_ENTER(loop, "jzx_loop_destroy");
    bool quiet = jzi_job_close(worker, loop->system == NULL ? &loop->dispatcher.jobs : NULL);
    /* No actor can be sent to any more; what was under way is dead-lettered, what comes now is
     * refused. */
    jzi_node *node = jzi_inbox_close(loop->inbox);
    while (node != NULL) {
        jzi_node *next = node->next;
        jzi_worker_take_in(worker, node);
        node = next;
    }
    return quiet;
}

static bool end_and_free(jzx_loop *loop)
{
    jzi_registry_close(loop->dispatcher.registry);
    jzi_loop_end_actors(loop);
    jzi_assert(jzi_loop_nobody_left(loop) || loop->io.lingering > 0);
    bool quiet = jzi_loop_close(loop);
    jzi_loop_free(loop);
    return quiet;
}

/* The code that this worker runs does not go on: the actor goes back where it came from. */
static void put_back(jzi_worker *worker)
{
    jzi_actor *actor = worker->current;
    if (actor != NULL) {
        jzi_worker_reattach(worker);
        worker->current = NULL;
        JZI_PUBLISH_HOT(worker->phase, JZI_PHASE_NONE);
        actor->flags |= JZI_ACTOR_QUEUED | JZI_ACTOR_LIFE;
        jzi_worker_enqueue(worker, actor);
    }
}

bool jzi_loop_disown(jzx_loop *loop)
{
    jzi_dispatcher *dispatcher = &loop->dispatcher;
    dispatcher->abandoned = true;
    jzi_dispatcher_observe(dispatcher, loop->inbox, &(jzi_observer){0});
    if (jzi_dispatcher_log(dispatcher) != NULL) {
        jzi_log_set(jzi_dispatcher_log(dispatcher), JZX_LOG_OFF, true);
    }
    jzi_registry_abandon(dispatcher->registry);
    if (loop->pool != NULL && !jzi_pool_abandon(loop)) {
        return false;
    }
    for (uint32_t i = 0; i < dispatcher->worker_count; i++) {
        put_back(dispatcher->workers[i]);
    }
    return true;
}

void jzi_loop_close_fds(jzx_loop *loop)
{
    const jzx_env *env = loop->worker.env;
    env->poller_close(env->ctx, loop->poller);
    jzi_inbox_refuse(loop->inbox);
    jzi_inbox_shut(loop->inbox, true);
}

void jzi_loop_abandon(jzx_loop *loop)
{
    if (jzi_loop_disown(loop)) {
        (void)end_and_free(loop);
    } else {
        jzi_loop_close_fds(loop);
    }
}

jzx_err jzi_loop_may_end(jzx_loop *loop)
{
    if (loop->system != NULL) {
        return JZX_ERR_BUSY; /* a dispatcher goes with its system */
    }
    jzi_worker_check_thread(&loop->worker, "jzx_loop_destroy");
    return loop->in_step || loop->dispatcher.destroying ? JZX_ERR_BUSY : JZX_OK;
}

jzx_err jzi_loop_destroy(jzx_loop *loop)
{
    return end_and_free(loop) ? JZX_OK : JZX_ERR_STUCK;
}
