/* The workers of a pool share everything but what is in jzi_worker, under one lock: the floor. A
 * worker holds it except while user code runs and while it waits, so an actor is on one worker at a
 * time and nobody can be hurt by a thief. Who has nothing to do
 *
 *   drives     one at most: waits in the poller, for timers, descriptors and other threads;
 *   stands by  one at most: looks every millisecond whether somebody drives, while there is work;
 *   sleeps     until there is more work than those who are awake can take.
 *
 * A send inside the pool wakes nobody: the worker that sent looks at the inbound list when its turn
 * is over, and two actors that talk to each other stay where they are. Only if its turn does not
 * end, the driver finds what it left, a millisecond later at the latest (R34). For that nobody goes
 * into user code while everybody else sleeps: see keep_watch(). */
#include "base/alloc.h"
#include "loop_steps.h"
#include "os/fault.h"
#include "os/probe.h"
#include "os/thread.h"
#include "sender.h"

#include <stdio.h>

#define RESCUE_NS UINT64_C(1000000)
#define CALM_NS UINT64_C(10000000)

jzi_worker *jzi_loop_enter_pool(jzx_loop *loop)
{
    jzi_worker *worker = jzi_loop_here(loop);
    jzi_worker_take_floor(worker);
    if (worker->floors == 1 && jzi_post_has_mail(worker->post)) {
        jzi_worker_intake(worker);
    }
    return worker;
}

void jzi_loop_leave_pool(jzi_worker *worker)
{
    if (worker->floors == 1 && jzi_unlikely(worker->domain->chores != NULL)) {
        jzi_worker_do_chores(worker);
    }
    jzi_worker_give_floor(worker);
}

static uint32_t ready(const jzi_worker *worker)
{
    return worker->ring_tail - worker->ring_head;
}

static void reach(jzi_pool *pool, jzx_err err)
{
    pool->err = pool->err == JZX_OK ? err : pool->err;
    pool->reached = true;
    (void)pthread_cond_broadcast(&pool->changed);
}

/* Somebody in bed, NULL: nobody. Those who sleep deeply last: they cost more to wake. */
static jzi_hand *sleeper(jzi_pool *pool)
{
    jzi_hand *found = NULL;
    for (uint32_t i = 0; i < pool->count; i++) {
        jzi_hand *hand = &pool->hands[i];
        if (hand->in_bed && (found == NULL || found->deep)) {
            found = hand;
        }
    }
    return found;
}

/* One is called at a time, and calls the next one if there is still more. */
void jzi_pool_share(jzi_worker *worker)
{
    jzi_pool *pool = worker->ctx.loop->pool;
    if (pool == NULL || pool->waiting == 0 || pool->waking > 0 || ready(worker) < 2) {
        return;
    }
    jzi_hand *hand = sleeper(pool);
    bool drives = hand == NULL && pool->driver != NULL;
    hand = drives ? pool->driver : hand;
    if (hand == NULL) {
        return;
    }
    pool->waking++;
    hand->called = true;
    hand->deep = false;
    if (drives) {
        jzi_post_wake(pool->loop->post);
    } else {
        (void)pthread_cond_signal(&hand->bed);
    }
}

/* It is up, whoever woke it. */
static void rise(jzi_hand *hand)
{
    if (hand->called) {
        hand->called = false;
        hand->pool->waking--;
    }
}

/* Waits in bed. The floor is somebody else's meanwhile. */
static void lie_down(jzi_hand *hand, uint64_t ns)
{
    jzi_pool *pool = hand->pool;
    jzi_worker *worker = hand->worker;
    hand->in_bed = true;
    hand->deep = ns == UINT64_MAX;
    pool->in_bed++;
    atomic_store_explicit(&worker->thread, 0, memory_order_relaxed);
    jzi_cond_wait(&hand->bed, pool->floor, ns);
    atomic_store_explicit(&worker->thread, jzi_thread_self(), memory_order_relaxed);
    jzi_worker_floor_is_back(worker);
    pool->in_bed--;
    hand->in_bed = false;
    rise(hand);
}

/* Whether somebody lies in bed who gets up by himself, or was woken and is about to. */
static bool is_watched(const jzi_pool *pool, jzi_hand **out_deep)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        const jzi_hand *hand = &pool->hands[i];
        if (hand->in_bed && !hand->deep) {
            return true;
        }
        if (hand->in_bed && out_deep != NULL) {
            *out_deep = &hand->pool->hands[i];
        }
    }
    return false;
}

/* This worker is about to run user code, which may take its time. Somebody has to be there for what
 * comes meanwhile and for what that code sends: a driver who looks up now and then, or else one who
 * stands by. */
static void keep_watch(jzi_pool *pool)
{
    jzi_hand *deep = NULL;
    if (pool->driver != NULL) {
        if (pool->far) {
            pool->far = false;
            jzi_post_wake(pool->loop->post);
        }
    } else if (pool->in_bed > 0 && !is_watched(pool, &deep)) {
        deep->deep = false;
        (void)pthread_cond_signal(&deep->bed);
    }
}

/* Before it sleeps, for work that comes at once; only while the whole pool rests. */
static bool spin(const jzi_pool *pool, jzi_worker *worker)
{
    const jzi_post *post = pool->loop->post;
    uint64_t end = worker->now_ns + pool->spin_ns;
    jzi_worker_give_floor(worker);
    bool found = false;
    while (!found && worker->env->now_ns(worker->env->ctx) < end) {
        for (int i = 0; i < 64 && !found; i++) {
            found = jzi_post_has_mail(post);
            jzi_cpu_relax();
        }
    }
    jzi_worker_take_floor(worker);
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

/* The driver's wait itself. The floor is somebody else's meanwhile. */
static jzx_err wait_in_poller(jzi_hand *hand, uint64_t wait, jzi_poll_batch *out_batch)
{
    jzi_worker *worker = hand->worker;
    atomic_store_explicit(&worker->thread, 0, memory_order_relaxed);
    jzi_worker_give_floor(worker);
    jzx_err err = jzi_io_wait(&hand->pool->loop->io, wait, out_batch);
    jzi_worker_take_floor(worker);
    atomic_store_explicit(&worker->thread, jzi_thread_self(), memory_order_relaxed);
    return err;
}

static void drive(jzi_hand *hand)
{
    jzi_pool *pool = hand->pool;
    jzi_worker *worker = hand->worker;
    jzx_loop *loop = pool->loop;
    jzi_poll_batch batch;
    uint64_t wait = longest_wait(pool, worker);
    bool may_spin = pool->waiting == pool->count && pool->spin_ns > 0 && wait > pool->spin_ns;
    pool->driver = hand;
    if (may_spin && spin(pool, worker)) {
        pool->driver = NULL;
        rise(hand);
        return;
    }
    if (may_spin) { /* others had the floor meanwhile, and may have set a timer */
        (void)jzi_worker_clock(worker);
        wait = longest_wait(pool, worker);
    }
    if (pool->waiting < pool->count) {
        wait = wait > RESCUE_NS ? RESCUE_NS : wait;
    } else if (wait > 0) { /* nobody is in user code, so nobody sends */
        jzi_far_trim(worker->domain);
        jzi_domain_rests(worker->domain);
    }
    pool->far = wait > RESCUE_NS;
    /* seq_cst, then the last look: pairs with jzi_post_push() and jzi_post_wake(). */
    atomic_store_explicit(&loop->post->asleep, 1, memory_order_seq_cst);
    if (jzi_post_has_mail_now(loop->post) || jzi_loop_has_ready(loop) ||
        jzi_loop_stop_requested(loop) || pool->goal == JZI_GOAL_PARK) {
        wait = 0;
    }
    jzx_err err = wait_in_poller(hand, wait, &batch);
    pool->driver = NULL;
    rise(hand);
    atomic_store_explicit(&loop->post->asleep, 0, memory_order_seq_cst);
    atomic_store_explicit(&loop->domain.resting, 0, memory_order_relaxed);
    loop->last_poll_ns = jzi_worker_clock(worker);
    if (wait > 0) {
        jzi_count_add(&worker->counters.wakeups, 1);
    }
    if (err != JZX_OK) {
        reach(pool, err);
        return;
    }
    jzi_io_dispatch(&loop->io, &batch);
}

/* Whether nothing at all is to be done, now that everybody rests and nobody drives. */
static bool is_idle(jzi_pool *pool, jzi_worker *worker)
{
    jzx_loop *loop = pool->loop;
    jzx_err err = loop->io.watched > 0 ? jzi_io_poll(&loop->io, 0) : JZX_OK;
    if (err != JZX_OK) {
        reach(pool, err);
        return true;
    }
    return !jzi_post_has_mail_now(loop->post) && !jzi_loop_has_ready(loop) &&
           loop->domain.chores == NULL && jzi_loop_next_timer(loop) > jzi_worker_clock(worker);
}

static void goal_is_reached(jzi_hand *hand)
{
    reach(hand->pool, JZX_OK);
    lie_down(hand, UINT64_MAX);
}

/* There is nothing to do for this worker. */
static void rest(jzi_hand *hand)
{
    jzi_pool *pool = hand->pool;
    jzi_worker *worker = hand->worker;
    pool->waiting++;
    bool all_rest = pool->waiting == pool->count;
    if (all_rest && pool->goal == JZI_GOAL_DONE && jzi_loop_nobody_left(pool->loop) &&
        !jzi_post_has_mail_now(pool->loop->post)) {
        goal_is_reached(hand);
    } else if (all_rest && pool->goal == JZI_GOAL_IDLE && pool->driver == NULL) {
        if (is_idle(pool, worker)) {
            goal_is_reached(hand);
        }
    } else if (pool->driver == NULL) {
        drive(hand);
    } else {
        if (all_rest && pool->goal == JZI_GOAL_IDLE) {
            jzi_post_wake(pool->loop->post); /* the last one up looks whether that is all */
        }
        bool calm = all_rest && worker->now_ns - pool->last_work_ns > CALM_NS;
        if (all_rest) {
            jzi_domain_rests(worker->domain);
        }
        lie_down(hand, calm || is_watched(pool, NULL) ? UINT64_MAX : RESCUE_NS);
    }
    pool->waiting--;
}

/* What a thread of ours needs and the program may ask for at any time: an alternate stack for the
 * crash guard, and an ear for the watchdog's signal. */
static void equip(jzi_hand *hand)
{
    int32_t signo = atomic_load_explicit(&hand->pool->loop->watch_signo, memory_order_relaxed);
    if (jzi_unlikely(signo != hand->signo)) {
        hand->signo = signo;
        jzi_thread_admit(signo);
    }
    jzi_fault_join();
}

/* The life of a worker until the pool is parked. It has the floor. */
static void work(jzi_hand *hand)
{
    jzi_pool *pool = hand->pool;
    jzi_worker *worker = hand->worker;
    jzx_loop *loop = pool->loop;
    while (pool->goal != JZI_GOAL_PARK) {
        equip(hand);
        if (jzi_unlikely(worker->domain->chores != NULL) && !worker->domain->choring) {
            keep_watch(pool);
            jzi_worker_do_chores(worker);
        }
        jzi_count_add(&worker->counters.ticks, 1);
        /* Whoever asks whether all is quiet looks at the inbound list first, then at this. */
        atomic_store_explicit(&worker->domain->resting, 0, memory_order_seq_cst);
        jzi_loop_take_in(loop, worker);
        if (pool->goal == JZI_GOAL_DONE && jzi_loop_stop_requested(loop)) {
            pool->waiting++;
            goal_is_reached(hand);
            pool->waiting--;
            continue;
        }
        if (ready(worker) == 0 && !jzi_worker_steal(worker)) {
            rest(hand);
            continue;
        }
        if (pool->driver == NULL) {
            jzx_err err = jzi_loop_glance(loop, worker);
            if (err != JZX_OK) {
                reach(pool, err);
            }
        }
        pool->last_work_ns = worker->now_ns;
        jzi_pool_share(worker);
        keep_watch(pool);
        jzi_loop_turns(loop, worker, loop->max_turns);
    }
    jzi_worker_do_chores(worker);
}

/* Waits until there is a goal. Whoever runs the loop may be the first worker meanwhile, so nothing
 * of the worker is touched before. */
static void park(jzi_hand *hand)
{
    jzi_pool *pool = hand->pool;
    pool->parked++;
    (void)pthread_cond_broadcast(&pool->changed);
    while (pool->goal == JZI_GOAL_PARK && !pool->quit) {
        jzi_cond_wait(&hand->bed, pool->floor, UINT64_MAX);
    }
    pool->parked--;
}

/* One thread among others, from one goal to the next. */
static void work_together(jzi_hand *hand)
{
    jzi_worker *worker = hand->worker;
    worker->floors = 1;
    jzi_worker_floor_is_back(worker);
    jzi_worker_here = worker;
    atomic_store_explicit(&worker->tid, hand->tid, memory_order_relaxed);
    atomic_store_explicit(&worker->thread, jzi_thread_self(), memory_order_relaxed);
    work(hand);
    atomic_store_explicit(&worker->thread, 0, memory_order_relaxed);
    worker->floors = 0;
}

/* The one thread of a pinned loop: it runs the loop as anybody would. */
static void work_alone(jzi_hand *hand)
{
    jzi_pool *pool = hand->pool;
    jzi_goal goal = pool->goal;
    atomic_store_explicit(&hand->worker->tid, hand->tid, memory_order_relaxed);
    (void)pthread_mutex_unlock(pool->floor);
    equip(hand);
    pool->loop->in_step = false;
    jzx_err err = goal == JZI_GOAL_IDLE    ? jzi_loop_run_idle_here(pool->loop)
                  : goal == JZI_GOAL_SERVE ? jzi_loop_serve_here(pool->loop)
                                           : jzi_loop_run_here(pool->loop);
    pool->loop->in_step = true;
    (void)pthread_mutex_lock(pool->floor);
    reach(pool, err);
    pool->goal = JZI_GOAL_PARK;
}

static void *hand_main(void *arg)
{
    jzi_hand *hand = arg;
    jzi_pool *pool = hand->pool;
    if (pool->bound) {
        jzi_thread_bind(hand->cpu);
    }
    hand->tid = jzi_thread_tid();
    jzi_thread_admit(JZI_PROBE_SIGNAL); /* ignored unless somebody asks what it is doing */
    (void)pthread_mutex_lock(pool->floor);
    for (;;) {
        park(hand);
        if (pool->quit) {
            break;
        }
        if (hand->worker->domain->pooled) {
            work_together(hand);
        } else {
            work_alone(hand);
        }
    }
    (void)pthread_mutex_unlock(pool->floor);
    return NULL;
}

void jzi_pool_wake_all(jzi_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        pool->hands[i].deep = false;
        (void)pthread_cond_signal(&pool->hands[i].bed);
    }
    const jzi_worker *worker = &pool->loop->worker;
    bool alone = !worker->domain->pooled;
    if (pool->driver != NULL || (alone && !pool->reached)) { /* waits in the poller */
        worker->env->wake_signal(worker->env->ctx, pool->loop->post->wake_fd);
    }
}

static jzx_err start_threads(jzi_pool *pool)
{
    while (pool->started < pool->count) {
        jzi_hand *hand = &pool->hands[pool->started];
        char name[16];
        (void)snprintf(name, sizeof name, "jzx-%.7s-%u", pool->loop->name, pool->started % 100);
        if (jzi_thread_start(hand_main, hand, name, &hand->thread) != JZX_OK) {
            return JZX_ERR_NO_THREADS;
        }
        pool->started++;
    }
    return JZX_OK;
}

static jzx_err start(jzi_pool *pool)
{
    jzx_err err = start_threads(pool);
    if (err != JZX_OK) {
        return err;
    }
    while (pool->parked < pool->count) {
        jzi_cond_wait(&pool->changed, pool->floor, UINT64_MAX);
    }
    return JZX_OK;
}

static void give_goal(jzi_pool *pool, jzi_goal goal)
{
    jzx_loop *loop = pool->loop;
    loop->in_step = true;
    atomic_store_explicit(&loop->domain.running, 1, memory_order_relaxed);
    atomic_store_explicit(&loop->post->asleep, 0, memory_order_seq_cst);
    pool->err = JZX_OK;
    pool->reached = false;
    pool->goal = goal;
    jzi_pool_wake_all(pool);
}

/* All threads are parked: the loop is its caller's again. */
static void take_back(jzi_pool *pool)
{
    jzx_loop *loop = pool->loop;
    loop->domain.acting = &loop->worker;
    if (loop->domain.pooled) {
        jzi_far_trim(&loop->domain);
    }
    atomic_store_explicit(&loop->domain.running, 0, memory_order_relaxed);
    loop->in_step = false;
    jzi_loop_outside(loop);
}

jzx_err jzi_pool_serve(jzx_loop *loop)
{
    /* Nobody is there yet, so no lock is needed: the caller has one of its own. */
    give_goal(loop->pool, JZI_GOAL_SERVE);
    return start_threads(loop->pool);
}

bool jzi_pool_halt(jzx_loop *loop, uint64_t timeout_ns)
{
    jzi_pool *pool = loop->pool;
    const jzx_env *env = loop->worker.env;
    uint64_t end = timeout_ns == UINT64_MAX ? UINT64_MAX : env->now_ns(env->ctx) + timeout_ns;
    (void)pthread_mutex_lock(pool->floor);
    pool->goal = JZI_GOAL_PARK;
    atomic_store_explicit(&loop->post->stop, 1, memory_order_seq_cst);
    jzi_pool_wake_all(pool);
    uint64_t now = env->now_ns(env->ctx);
    while (pool->parked < pool->started && now < end) {
        jzi_cond_wait(&pool->changed, pool->floor, end == UINT64_MAX ? end : end - now);
        now = env->now_ns(env->ctx);
    }
    bool parked = pool->parked == pool->started;
    if (parked) {
        take_back(pool);
    }
    (void)pthread_mutex_unlock(pool->floor);
    return parked;
}

jzx_err jzi_pool_run(jzx_loop *loop, jzi_goal goal)
{
    jzi_pool *pool = loop->pool;
    (void)pthread_mutex_lock(pool->floor);
    jzx_err err = start(pool);
    if (err == JZX_OK) {
        give_goal(pool, goal);
        while (!pool->reached) {
            jzi_cond_wait(&pool->changed, pool->floor, UINT64_MAX);
        }
        pool->goal = JZI_GOAL_PARK;
        jzi_pool_wake_all(pool);
        while (pool->parked < pool->count) {
            jzi_cond_wait(&pool->changed, pool->floor, UINT64_MAX);
        }
        take_back(pool);
        err = pool->err;
    }
    (void)pthread_mutex_unlock(pool->floor);
    return err;
}
