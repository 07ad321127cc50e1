#define _GNU_SOURCE
#include "os/jobs.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "os/clock.h"
#include "os/debug/probe.h"
#include "os/thread.h"

#include <pthread.h>
#include <stdio.h>

#ifndef JZI_STRESS
#define JZI_STRESS 0
#endif
#if JZI_STRESS
enum { IDLE_MS = 1 };
#else
enum { IDLE_MS = 10000 };
#endif

enum { NOWHERE, WAITING, RUNNING };

typedef struct work_queue {
    jzi_work *first;
    jzi_work *last;
    uint32_t count;
} work_queue;

/* Invariants, while the lock is free:
 *   I1  A work is in a queue exactly if its place is WAITING.
 *   I2  running counts works that a thread has, until their done() or left() returned.
 *   I3  Of these, `telling` are inside done(). */
struct jzi_jobs {
    jzx_allocator alloc;
    jzi_jobs_limits limits;
    pthread_mutex_t lock;
    pthread_cond_t wanted; /* there is work, or no more will come: for idle threads */
    pthread_cond_t quiet;  /* something ended: for jzi_jobs_close() */
    work_queue queue;
    uint32_t held;
    uint32_t running;
    uint32_t telling;
    uint32_t threads;
    uint32_t idle;
    uint32_t started; /* ever, for their names */
    uint64_t number;
    bool closed;
    bool left_behind; /* jzi_jobs_close() gave up: this struct has no owner */
    bool has_ended;
    pthread_t ended; /* the thread that ended last; the next one that ends joins it */
};

static void push(work_queue *queue, jzi_work *work)
{
    work->place = WAITING;
    JZI_QUEUE_APPEND(queue, work);
    queue->count++;
}

static void unqueue(work_queue *queue, jzi_work *work)
{
    JZI_QUEUE_REMOVE(queue, work);
    work->next = work->prev = NULL;
    work->place = NOWHERE;
    queue->count--;
}

static jzi_work *jobs_take(jzi_jobs *jobs)
{
    jzi_work *work = jobs->queue.first;
    unqueue(&jobs->queue, work);
    work->place = RUNNING;
    jobs->running++;
    return work;
}

jzx_err jzi_jobs_create(const jzx_allocator *alloc, const jzi_jobs_limits *limits,
                        jzi_jobs **out_jobs)
{
    jzi_jobs *jobs = jzi_alloc_zeroed(alloc, sizeof *jobs);
    if (jobs == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jobs->alloc = *alloc;
    jobs->limits = *limits;
    if (limits->idle_ms == 0) {
        jobs->limits.idle_ms = IDLE_MS;
    }
    jzi_mutex_init(&jobs->lock);
    jzi_cond_init(&jobs->wanted);
    jzi_cond_init(&jobs->quiet);
    *out_jobs = jobs;
    return JZX_OK;
}

static void jobs_lock(jzi_jobs *jobs)
{
    (void)pthread_mutex_lock(&jobs->lock);
}

static void jobs_unlock(jzi_jobs *jobs)
{
    (void)pthread_mutex_unlock(&jobs->lock);
}

/* False: that moment has come. */
static bool wait_until(jzi_jobs *jobs, pthread_cond_t *cond, uint64_t when_ns)
{
    uint64_t now = jzi_clock_now_ns(NULL);
    if (now >= when_ns) {
        return false;
    }
    jzi_cond_wait(cond, &jobs->lock, when_ns - now);
    return true;
}

/* A work is over: tells its owner. The lock is free meanwhile. */
static void finish(jzi_jobs *jobs, jzi_work *work)
{
    bool left = jobs->left_behind;
    work->place = NOWHERE;
    jobs->telling += left ? 0 : 1;
    jobs_unlock(jobs);
    if (left) {
        work->ops->left(work);
    } else {
        work->ops->done(work, true);
    }
    jobs_lock(jobs);
    jobs->telling -= left ? 0 : 1;
    jobs->running--;
    if (jobs->closed) {
        (void)pthread_cond_broadcast(&jobs->quiet);
    }
}

/* The last step of every thread; takes the lock away. Each one joins the one that ended before it,
 * and jzi_jobs_close() the last: so nothing has to wait for a thread while there is work to do. */
static void end_thread(jzi_jobs *jobs)
{
    bool join = jobs->has_ended;
    pthread_t before = jobs->ended;
    bool left = jobs->left_behind;
    if (!left) {
        jobs->ended = pthread_self();
        jobs->has_ended = true;
    }
    (void)pthread_cond_broadcast(&jobs->quiet);
    jobs_unlock(jobs);
    if (left) {
        (void)pthread_detach(pthread_self());
    } else if (join) {
        (void)pthread_join(before, NULL);
    }
}

/* Works until there was nothing to do for a while, or no more will come. */
static void work_on(jzi_jobs *jobs)
{
    for (;;) {
        uint64_t end_ns = jzi_clock_now_ns(NULL) + (uint64_t)jobs->limits.idle_ms * 1000000u;
        bool in_time = true;
        while (jobs->queue.first == NULL && !jobs->closed && in_time) {
            jobs->idle++;
            in_time = wait_until(jobs, &jobs->wanted, end_ns);
            jobs->idle--;
        }
        if (jobs->queue.first == NULL) {
            break;
        }
        jzi_work *work = jobs_take(jobs);
        jobs_unlock(jobs);
        work->ops->run(work);
        jobs_lock(jobs);
        finish(jobs, work);
    }
    jobs->threads--;
    end_thread(jobs);
}

static void *run_thread(void *arg)
{
    jzi_jobs *jobs = arg;
    jobs_lock(jobs);
    work_on(jobs);
    return NULL;
}

/* Starts a thread, which cannot do anything before we give the lock away. */
static bool jobs_start(jzi_jobs *jobs)
{
    pthread_t thread;
    char text[16];
    (void)snprintf(text, sizeof text, "jzx-job-%u", jobs->started % 10000u + 1);
    if (jzi_thread_start(run_thread, jobs, text, &thread) != JZX_OK) {
        return false;
    }
    jobs->started++;
    return true;
}

/* Sees that a thread takes what was put into the queue. False: there is no thread at all. */
static bool call_thread(jzi_jobs *jobs)
{
    if (jobs->queue.count <= jobs->idle) {
        (void)pthread_cond_signal(&jobs->wanted);
    } else if (jobs->threads < jobs->limits.threads && jobs_start(jobs)) {
        jobs->threads++;
    }
    return jobs->threads > 0;
}

static jzx_err jobs_admit(const jzi_jobs *jobs)
{
    if (jobs->closed) {
        return JZX_ERR_STOPPING;
    }
    /* An owner that hears that a work is over finds its place free. */
    uint64_t there = (uint64_t)jobs->queue.count + jobs->held + (jobs->running - jobs->telling);
    return there < (uint64_t)jobs->limits.threads + jobs->limits.queue ? JZX_OK
                                                                       : JZX_ERR_QUEUE_FULL;
}

jzx_err jzi_jobs_submit(jzi_jobs *jobs, jzi_work *work)
{
    jobs_lock(jobs);
    jzx_err err = jobs_admit(jobs);
    if (err == JZX_OK) {
        push(&jobs->queue, work);
        if (!call_thread(jobs)) {
            unqueue(&jobs->queue, work);
            err = JZX_ERR_NO_THREADS;
        }
    }
    jobs_unlock(jobs);
    return err;
}

bool jzi_jobs_withdraw(jzi_jobs *jobs, jzi_work *work)
{
    jobs_lock(jobs);
    bool waiting = work->place == WAITING;
    if (waiting) {
        unqueue(&jobs->queue, work);
    }
    jobs_unlock(jobs);
    return waiting;
}

jzx_err jzi_jobs_hold(jzi_jobs *jobs)
{
    jobs_lock(jobs);
    jzx_err err = jobs_admit(jobs);
    jobs->held += err == JZX_OK ? 1 : 0;
    jobs_unlock(jobs);
    return err;
}

void jzi_jobs_let_go(jzi_jobs *jobs)
{
    jobs_lock(jobs);
    jobs->held--;
    jobs_unlock(jobs);
}

uint64_t jzi_jobs_number(jzi_jobs *jobs)
{
    jobs_lock(jobs);
    uint64_t number = ++jobs->number;
    jobs_unlock(jobs);
    return number;
}

uint64_t jzi_jobs_last_number(jzi_jobs *jobs)
{
    jobs_lock(jobs);
    uint64_t number = jobs->number;
    jobs_unlock(jobs);
    return number;
}

static bool is_quiet(const jzi_jobs *jobs)
{
    return jobs->running == 0 && jobs->threads == 0;
}

/* Hands everything that waits back; the lock is free meanwhile. */
static void hand_back(jzi_jobs *jobs)
{
    work_queue *queue = &jobs->queue;
    while (queue->first != NULL) {
        jzi_work *work = queue->first;
        unqueue(queue, work);
        jobs_unlock(jobs);
        work->ops->done(work, false);
        jobs_lock(jobs);
    }
}

static bool await_quiet(jzi_jobs *jobs, uint64_t timeout_ns)
{
    uint64_t now = jzi_clock_now_ns(NULL);
    uint64_t end_ns = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
    bool in_time = true;
    while (!is_quiet(jobs) && in_time) {
        in_time = wait_until(jobs, &jobs->quiet, end_ns);
    }
    return is_quiet(jobs);
}

bool jzi_jobs_close(jzi_jobs *jobs, uint64_t timeout_ns)
{
    if (jobs == NULL) {
        return true;
    }
    jobs_lock(jobs);
    jobs->closed = true;
    hand_back(jobs);
    (void)pthread_cond_broadcast(&jobs->wanted);
    bool quiet = await_quiet(jobs, timeout_ns);
    jobs->left_behind = !quiet;
    while (!quiet && jobs->telling > 0) {
        (void)pthread_cond_wait(&jobs->quiet, &jobs->lock);
    }
    bool join = jobs->has_ended;
    jobs->has_ended = false;
    pthread_t last = jobs->ended;
    jobs_unlock(jobs);
    if (join) {
        (void)pthread_join(last, NULL);
    }
    return quiet;
}

void jzi_jobs_destroy(jzi_jobs *jobs)
{
    if (jobs == NULL) {
        return;
    }
    jzi_assert(is_quiet(jobs) && jobs->queue.count == 0);
    (void)pthread_cond_destroy(&jobs->quiet);
    (void)pthread_cond_destroy(&jobs->wanted);
    (void)pthread_mutex_destroy(&jobs->lock);
    jzx_allocator alloc = jobs->alloc;
    jzi_free(&alloc, jobs, sizeof *jobs);
}

void jzi_jobs_abandon(jzi_jobs *jobs)
{
    if (jobs == NULL) {
        return;
    }
    jzx_allocator alloc = jobs->alloc;
    jzi_free(&alloc, jobs, sizeof *jobs);
}

uint32_t jzi_jobs_threads(jzi_jobs *jobs)
{
    jobs_lock(jobs);
    uint32_t threads = jobs->threads;
    jobs_unlock(jobs);
    return threads;
}
