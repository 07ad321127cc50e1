/* How the workers of a pool wait. A worker that has nothing to do
 *
 *   drives     one at most: waits in the poller, for timers, descriptors and other threads;
 *   stands by  one at most: looks every half millisecond whether a worker drives, while there is
 *              work;
 *   sleeps     until there is more work than the workers that are awake can take.
 *
 * A send inside the pool wakes no worker: the worker that sent looks at the inbound list when its
 * turn is over, and two actors that talk to each other stay where they are. Only if that turn does
 * not end, the driver finds what the worker left, a millisecond later or so (R34). For that no
 * worker goes into user code while all others sleep: see jzi_pool_keep_watch(). */
#include "loop/loop_priv.h"
#include "os/thread.h"
#include "sched/sender.h"

#define RESCUE_NS UINT64_C(500000)
#define CALM_NS UINT64_C(10000000)
enum { RESCUES_MAX = 20 };

void jzi_pool_reach(jzi_pool *pool, jzx_err err)
{
    pool->err = pool->err == JZX_OK ? err : pool->err;
    pool->reached = true;
    (void)pthread_cond_broadcast(&pool->changed);
}

/* A parked thread; NULL: there is none. One that sleeps deeply is the last choice: it costs more to
 * wake. */
static jzi_pool_thread *sleeper(jzi_pool *pool)
{
    jzi_pool_thread *found = NULL;
    for (uint32_t i = 0; i < pool->count; i++) {
        jzi_pool_thread *thread = &pool->threads[i];
        if (thread->is_parked && (found == NULL || found->deep)) {
            found = thread;
        }
    }
    return found;
}

/* One is called at a time, and calls the next one if there is still more. */
void jzi_pool_share(jzi_worker *worker)
{
    jzi_pool *pool = worker->ctx.loop->pool;
    if (pool == NULL || pool->waiting == 0 || pool->waking > 0 || jzi_worker_ready(worker) < 2 ||
        jzi_worker_pace(worker) < JZI_PACE_SHARED) {
        return;
    }
    jzi_pool_thread *thread = sleeper(pool);
    bool drives = thread == NULL && pool->driver != NULL;
    thread = drives ? pool->driver : thread;
    if (thread == NULL) {
        return;
    }
    pool->waking++;
    thread->called = true;
    thread->deep = false;
    if (drives) {
        jzi_inbox_wake(pool->loop->inbox);
    } else {
        (void)pthread_cond_signal(&thread->unparked);
    }
}

/* The thread is up, whatever woke it. */
static void unpark_thread(jzi_pool_thread *thread)
{
    if (thread->called) {
        thread->called = false;
        thread->pool->waking--;
    }
}

/* Parks the thread. Other threads have the pool lock meanwhile. */
static void park_thread(jzi_pool_thread *thread, uint64_t ns)
{
    jzi_pool *pool = thread->pool;
    jzi_worker *worker = thread->worker;
    thread->is_parked = true;
    thread->deep = ns == UINT64_MAX;
    pool->resting++;
    atomic_store_explicit(&worker->thread, 0, memory_order_relaxed);
    jzi_cond_wait(&thread->unparked, pool->pool_lock, ns);
    atomic_store_explicit(&worker->thread, jzi_thread_self(), memory_order_relaxed);
    jzi_worker_pool_is_locked(worker);
    pool->resting--;
    thread->is_parked = false;
    unpark_thread(thread);
}

/* Whether a parked thread wakes by itself, or was woken and is about to run. */
static bool is_watched(const jzi_pool *pool, jzi_pool_thread **out_deep)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        const jzi_pool_thread *thread = &pool->threads[i];
        if (thread->is_parked && !thread->deep) {
            return true;
        }
        if (thread->is_parked && out_deep != NULL) {
            *out_deep = &thread->pool->threads[i];
        }
    }
    return false;
}

/* This worker is about to run user code, which may take its time. Another worker has to be there
 * for what comes meanwhile and for what that code sends: a driver that looks up now and then, or
 * else one that stands by. */
void jzi_pool_keep_watch(jzi_pool *pool)
{
    jzi_pool_thread *deep = NULL;
    if (pool->driver != NULL) {
        if (pool->far) {
            pool->far = false;
            jzi_inbox_wake(pool->loop->inbox);
        }
    } else if (pool->resting > 0 && !is_watched(pool, &deep)) {
        deep->deep = false;
        (void)pthread_cond_signal(&deep->unparked);
    }
}

/* Before the driver sleeps, for work that comes at once; only while the whole pool rests. */
static bool spin(const jzi_pool *pool, jzi_worker *worker)
{
    const jzi_inbox *inbox = pool->loop->inbox;
    uint64_t end = worker->now_ns + pool->spin_ns;
    jzi_worker_unlock_pool(worker);
    bool found = false;
    while (!found && worker->env->now_ns(worker->env->ctx) < end) {
        for (int i = 0; i < 64 && !found; i++) {
            found = jzi_inbox_has_mail(inbox);
            jzi_cpu_relax();
        }
    }
    jzi_worker_lock_pool(worker);
    return found;
}

/* How long the driver may wait. */
static uint64_t longest_wait(const jzi_pool *pool, const jzi_worker *worker)
{
    uint64_t next = jzi_loop_next_timer(pool->loop);
    if (next == UINT64_MAX) {
        return UINT64_MAX;
    }
    return next <= worker->now_ns ? 0 : next - worker->now_ns;
}

/* Whether there are workers at work, and each got something done since the last look. A worker that
 * did not is stuck, for as long as it stays that way. */
static bool is_progressing(const jzi_dispatcher *dispatcher)
{
    bool all = true;
    bool any = false;
    for (uint32_t i = 0; i < dispatcher->worker_count; i++) {
        jzi_worker *each = dispatcher->workers[i];
        uint64_t done = jzi_worker_done(each);
        bool at_work = atomic_load_explicit(&each->thread, memory_order_relaxed) != 0;
        if (at_work && done == each->driver_saw) {
            atomic_store_explicit(&each->stuck_at, done, memory_order_relaxed);
            all = false;
        }
        any = any || at_work;
        each->driver_saw = done;
    }
    return all && any;
}

/* The driver's wait itself. Other threads have the pool lock meanwhile. */
static jzx_err wait_in_poller(jzi_pool_thread *thread, uint64_t wait, jzi_poll_batch *out_batch)
{
    jzi_worker *worker = thread->worker;
    jzi_inbox *inbox = thread->pool->loop->inbox;
    bool rescues = wait == RESCUE_NS;
    uint64_t waited = 0;
    jzx_err err = JZX_OK;
    atomic_store_explicit(&worker->thread, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < worker->dispatcher->worker_count; i++) {
        worker->dispatcher->workers[i]->driver_saw =
            jzi_worker_done(worker->dispatcher->workers[i]);
    }
    jzi_worker_unlock_pool(worker);
    do { /* while all is well the driver needs no pool lock for this */
        err = jzi_io_wait(&thread->pool->loop->io, wait, out_batch);
        waited++;
    } while (rescues && err == JZX_OK && out_batch->count == 0 && waited < RESCUES_MAX &&
             atomic_load_explicit(&inbox->asleep, memory_order_seq_cst) != 0 &&
             is_progressing(worker->dispatcher));
    jzi_worker_lock_pool(worker);
    atomic_store_explicit(&worker->thread, jzi_thread_self(), memory_order_relaxed);
    return err;
}

/* Whether there is something for a worker that is about to wait: an actor in the ring of a worker
 * that needs help, or mail that no worker in good order will look at. */
static bool is_needed(const jzi_pool *pool)
{
    bool well = false;
    for (uint32_t i = 0; i < pool->count; i++) {
        const jzi_pool_thread *thread = &pool->threads[i];
        bool helpless = jzi_worker_needs_help(thread->worker);
        if (jzi_worker_ready(thread->worker) > 0 && helpless) {
            return true;
        }
        well = well || (thread != pool->driver && !thread->is_parked && !helpless);
    }
    return !well && jzi_inbox_has_mail_now(pool->loop->inbox);
}

static void drive(jzi_pool_thread *thread)
{
    jzi_pool *pool = thread->pool;
    jzi_worker *worker = thread->worker;
    jzx_loop *loop = pool->loop;
    jzi_poll_batch batch;
    uint64_t wait = longest_wait(pool, worker);
    bool may_spin = pool->waiting == pool->count && pool->spin_ns > 0 && wait > pool->spin_ns;
    pool->driver = thread;
    if (may_spin && spin(pool, worker)) {
        pool->driver = NULL;
        unpark_thread(thread);
        return;
    }
    if (may_spin) { /* others had the pool lock meanwhile, and may have set a timer */
        (void)jzi_worker_clock(worker);
        wait = longest_wait(pool, worker);
    }
    if (pool->waiting < pool->count) {
        wait = wait > RESCUE_NS ? RESCUE_NS : wait;
    } else if (wait > 0) { /* no worker is in user code, so none sends */
        jzi_far_trim(worker->dispatcher);
        jzi_dispatcher_rests(worker->dispatcher);
    }
    pool->far = wait > RESCUE_NS;
    /* seq_cst, then the last look: pairs with jzi_inbox_push() and jzi_inbox_wake(). */
    atomic_store_explicit(&loop->inbox->asleep, 1, memory_order_seq_cst);
    if (jzi_loop_stop_requested(loop) || pool->goal == JZI_GOAL_PARK || is_needed(pool)) {
        wait = 0;
    }
    jzx_err err = wait_in_poller(thread, wait, &batch);
    pool->driver = NULL;
    unpark_thread(thread);
    atomic_store_explicit(&loop->inbox->asleep, 0, memory_order_seq_cst);
    atomic_store_explicit(&loop->dispatcher.resting, 0, memory_order_relaxed);
    loop->last_poll_ns = jzi_worker_clock(worker);
    if (wait > 0) {
        jzi_count_add(&worker->counters.wakeups, 1);
    }
    if (err != JZX_OK) {
        jzi_pool_reach(pool, err);
        return;
    }
    jzi_io_dispatch(&loop->io, &batch);
}

/* Whether nothing at all is to be done, now that every worker rests and none drives. */
static bool is_idle(jzi_pool *pool, jzi_worker *worker)
{
    jzx_loop *loop = pool->loop;
    jzx_err err = loop->io.watched > 0 ? jzi_io_poll(&loop->io, 0) : JZX_OK;
    if (err != JZX_OK) {
        jzi_pool_reach(pool, err);
        return true;
    }
    return !jzi_inbox_has_mail_now(loop->inbox) && !jzi_loop_has_ready(loop) &&
           loop->dispatcher.deferred == NULL &&
           jzi_loop_next_timer(loop) > jzi_worker_clock(worker);
}

/* From here on no worker begins anything: the caller returns to what it was told. */
void jzi_pool_goal_reached(jzi_pool_thread *thread)
{
    thread->pool->goal = JZI_GOAL_PARK;
    jzi_pool_reach(thread->pool, JZX_OK);
    park_thread(thread, UINT64_MAX);
}

/* There is nothing to do for this worker. */
void jzi_pool_rest(jzi_pool_thread *thread)
{
    jzi_pool *pool = thread->pool;
    jzi_worker *worker = thread->worker;
    pool->waiting++;
    bool all_rest = pool->waiting == pool->count;
    if (all_rest && pool->goal == JZI_GOAL_DONE && jzi_loop_nobody_left(pool->loop) &&
        !jzi_inbox_has_mail_now(pool->loop->inbox)) {
        jzi_pool_goal_reached(thread);
    } else if (all_rest && pool->goal == JZI_GOAL_IDLE && pool->driver == NULL) {
        if (is_idle(pool, worker)) {
            jzi_pool_goal_reached(thread);
        }
    } else if (pool->driver == NULL) {
        drive(thread);
    } else {
        if (all_rest && pool->goal == JZI_GOAL_IDLE) {
            jzi_inbox_wake(pool->loop->inbox); /* the last one up looks whether that is all */
        }
        bool calm = all_rest && worker->now_ns - pool->last_work_ns > CALM_NS;
        if (all_rest) {
            jzi_dispatcher_rests(worker->dispatcher);
        }
        park_thread(thread, calm || is_watched(pool, NULL) ? UINT64_MAX : RESCUE_NS);
    }
    pool->waiting--;
}
