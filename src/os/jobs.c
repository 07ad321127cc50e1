#define _GNU_SOURCE
#include "jobs.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "clock.h"
#include "file.h"
#include "probe.h"
#include "thread.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the kernel gets to give up file operations that nobody waits for any longer. */
#define CANCEL_NS UINT64_C(500000000)

#ifndef JZI_STRESS
#define JZI_STRESS 0
#endif
#if JZI_STRESS
enum { IDLE_MS = 1, REAP_MAX = 2 };
#else
enum { IDLE_MS = 10000, REAP_MAX = 32 };
#endif

enum { NOWHERE, WAITING, RUNNING };

/* Whether file operations go through io_uring. */
typedef enum engine {
    ENGINE_UNKNOWN, /* nobody asked for one yet */
    ENGINE_OPENING, /* its thread finds out */
    ENGINE_URING,
    ENGINE_THREADS
} engine;

typedef struct work_queue {
    jzi_work *first;
    jzi_work *last;
    uint32_t count;
} work_queue;

/* Invariants, while the lock is free:
 *   I1  A work is in a queue exactly if its place is WAITING.
 *   I2  running counts works that a thread or the ring has, until their done() or left() returned.
 *   I3  Of these, `telling` are inside done().
 *   I4  `files` is empty unless the engine is OPENING or URING. */
struct jzi_jobs {
    jzx_allocator alloc;
    jzi_jobs_limits limits;
    pthread_mutex_t lock;
    pthread_cond_t wanted; /* there is work, or no more will come: for idle threads */
    pthread_cond_t quiet;  /* something ended: for jzi_jobs_close() */
    work_queue queue;
    work_queue files; /* for the ring */
    uint32_t held;
    uint32_t running;
    uint32_t telling;
    uint32_t threads; /* of the pool, without the one that serves the ring */
    uint32_t idle;
    uint32_t started; /* ever, for their names */
    uint64_t number;
    bool closed;
    bool left_behind; /* jzi_jobs_close() gave up: this struct is nobody's */
    bool serving;     /* the thread of the ring is there */
    bool has_ended;
    pthread_t ended; /* the thread that ended last; who ends joins the one before */
    engine engine;
    jzi_file_ring *ring;
    bool ring_asleep; /* it waits, and must be woken for work */
    bool ring_cancel; /* it is to give up what it has */
};

static void push(work_queue *queue, jzi_work *work)
{
    work->place = WAITING;
    work->next = NULL;
    work->prev = queue->last;
    *(queue->last == NULL ? &queue->first : &queue->last->next) = work;
    queue->last = work;
    queue->count++;
}

static void unqueue(work_queue *queue, jzi_work *work)
{
    *(work->prev == NULL ? &queue->first : &work->prev->next) = work->next;
    *(work->next == NULL ? &queue->last : &work->next->prev) = work->prev;
    work->next = work->prev = NULL;
    work->place = NOWHERE;
    queue->count--;
}

static jzi_work *take(jzi_jobs *jobs, work_queue *queue)
{
    jzi_work *work = queue->first;
    unqueue(queue, work);
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
    const char *wish = getenv("JZX_FILES");
    if (wish != NULL && strcmp(wish, "threads") == 0) {
        jobs->engine = ENGINE_THREADS;
    }
    jzi_mutex_init(&jobs->lock);
    jzi_cond_init(&jobs->wanted);
    jzi_cond_init(&jobs->quiet);
    *out_jobs = jobs;
    return JZX_OK;
}

static void lock(jzi_jobs *jobs)
{
    (void)pthread_mutex_lock(&jobs->lock);
}

static void unlock(jzi_jobs *jobs)
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
    unlock(jobs);
    if (left) {
        work->ops->left(work);
    } else {
        work->ops->done(work, true);
    }
    lock(jobs);
    jobs->telling -= left ? 0 : 1;
    jobs->running--;
    if (jobs->closed) {
        (void)pthread_cond_broadcast(&jobs->quiet);
    }
}

/* The last step of every thread; takes the lock away. Each one joins the one that ended before it,
 * and jzi_jobs_close() the last: so nobody has to wait for a thread while there is work to do. */
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
    unlock(jobs);
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
        jzi_work *work = take(jobs, &jobs->queue);
        unlock(jobs);
        work->ops->run(work);
        lock(jobs);
        finish(jobs, work);
    }
    jobs->threads--;
    end_thread(jobs);
}

static void *run_thread(void *arg)
{
    jzi_jobs *jobs = arg;
    lock(jobs);
    work_on(jobs);
    return NULL;
}

/* Starts a thread, which cannot do anything before we give the lock away. */
static bool start(jzi_jobs *jobs, void *(*run)(void *arg), const char *name)
{
    pthread_t thread;
    char text[16];
    (void)snprintf(text, sizeof text, "%s-%u", name, jobs->started % 10000u + 1);
    if (jzi_thread_start(run, jobs, text, &thread) != JZX_OK) {
        return false;
    }
    jobs->started++;
    return true;
}

/* Sees that somebody takes what was put into the queue. False: there is no thread at all. */
static bool call_thread(jzi_jobs *jobs)
{
    if (jobs->queue.count <= jobs->idle) {
        (void)pthread_cond_signal(&jobs->wanted);
    } else if (jobs->threads < jobs->limits.threads && start(jobs, run_thread, "jzx-job")) {
        jobs->threads++;
    }
    return jobs->threads > 0;
}

/* No io_uring here: files are the pool's work, and this thread is one of the pool's if there is
 * room for it. */
static void fall_back(jzi_jobs *jobs)
{
    bool joins = jobs->threads < jobs->limits.threads;
    jobs->threads += joins ? 1 : 0;
    jobs->engine = ENGINE_THREADS;
    jobs->serving = false;
    while (jobs->files.first != NULL) {
        jzi_work *work = jobs->files.first;
        unqueue(&jobs->files, work);
        push(&jobs->queue, work);
        (void)call_thread(jobs);
    }
    if (joins) {
        work_on(jobs);
    } else {
        end_thread(jobs);
    }
}

static void serve(jzi_jobs *jobs, jzi_file_ring *ring)
{
    jzi_work *over[REAP_MAX];
    for (;;) {
        while (jobs->files.first != NULL && jzi_file_ring_has_room(ring)) {
            jzi_file_ring_add(ring, take(jobs, &jobs->files));
        }
        if (jobs->closed && jzi_file_ring_count(ring) == 0) {
            return;
        }
        if (jobs->ring_cancel) {
            jzi_file_ring_cancel(ring);
        }
        jobs->ring_asleep = true;
        unlock(jobs);
        size_t count = jzi_file_ring_wait(ring, over, REAP_MAX);
        lock(jobs);
        jobs->ring_asleep = false;
        for (size_t i = 0; i < count; i++) {
            finish(jobs, over[i]);
        }
    }
}

static void *run_ring(void *arg)
{
    jzi_jobs *jobs = arg;
    jzi_file_ring *ring = NULL;
    jzx_err err = jzi_file_ring_open(&jobs->alloc, &ring);
    lock(jobs);
    if (err != JZX_OK) {
        fall_back(jobs);
        return NULL;
    }
    jobs->engine = ENGINE_URING;
    jobs->ring = ring;
    serve(jobs, ring);
    jobs->ring = NULL;
    if (!jobs->left_behind) {
        jzi_file_ring_close(ring);
    }
    jobs->serving = false;
    end_thread(jobs);
    return NULL;
}

static void wake_ring(jzi_jobs *jobs)
{
    if (jobs->ring_asleep) {
        jobs->ring_asleep = false;
        jzi_file_ring_wake(jobs->ring);
    }
}

static bool goes_to_ring(jzi_jobs *jobs, const jzi_work *work)
{
    if (work->file == NULL || jobs->engine == ENGINE_THREADS) {
        return false;
    }
    if (jobs->engine == ENGINE_UNKNOWN) {
        jobs->serving = start(jobs, run_ring, "jzx-files");
        jobs->engine = jobs->serving ? ENGINE_OPENING : ENGINE_THREADS;
    }
    return jobs->engine != ENGINE_THREADS;
}

static jzx_err admit(const jzi_jobs *jobs)
{
    if (jobs->closed) {
        return JZX_ERR_STOPPING;
    }
    /* Whoever hears that a work is over finds its place free. */
    uint64_t there = (uint64_t)jobs->queue.count + jobs->files.count + jobs->held +
                     (jobs->running - jobs->telling);
    return there < (uint64_t)jobs->limits.threads + jobs->limits.queue ? JZX_OK
                                                                       : JZX_ERR_QUEUE_FULL;
}

jzx_err jzi_jobs_submit(jzi_jobs *jobs, jzi_work *work)
{
    lock(jobs);
    jzx_err err = admit(jobs);
    if (err == JZX_OK && goes_to_ring(jobs, work)) {
        push(&jobs->files, work);
        wake_ring(jobs);
    } else if (err == JZX_OK) {
        push(&jobs->queue, work);
        if (!call_thread(jobs)) {
            unqueue(&jobs->queue, work);
            err = JZX_ERR_NO_THREADS;
        }
    }
    unlock(jobs);
    return err;
}

bool jzi_jobs_withdraw(jzi_jobs *jobs, jzi_work *work)
{
    lock(jobs);
    bool waiting = work->place == WAITING;
    if (waiting) {
        bool of_ring = work->file != NULL && jobs->engine != ENGINE_THREADS;
        unqueue(of_ring ? &jobs->files : &jobs->queue, work);
    }
    unlock(jobs);
    return waiting;
}

jzx_err jzi_jobs_hold(jzi_jobs *jobs)
{
    lock(jobs);
    jzx_err err = admit(jobs);
    jobs->held += err == JZX_OK ? 1 : 0;
    unlock(jobs);
    return err;
}

void jzi_jobs_let_go(jzi_jobs *jobs)
{
    lock(jobs);
    jobs->held--;
    unlock(jobs);
}

uint64_t jzi_jobs_number(jzi_jobs *jobs)
{
    lock(jobs);
    uint64_t number = ++jobs->number;
    unlock(jobs);
    return number;
}

uint64_t jzi_jobs_last_number(jzi_jobs *jobs)
{
    lock(jobs);
    uint64_t number = jobs->number;
    unlock(jobs);
    return number;
}

static bool is_quiet(const jzi_jobs *jobs)
{
    return jobs->running == 0 && jobs->threads == 0 && !jobs->serving;
}

/* Hands everything that waits back; the lock is free meanwhile. */
static void hand_back(jzi_jobs *jobs, work_queue *queue)
{
    while (queue->first != NULL) {
        jzi_work *work = queue->first;
        unqueue(queue, work);
        unlock(jobs);
        work->ops->done(work, false);
        lock(jobs);
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
    lock(jobs);
    jobs->closed = true;
    hand_back(jobs, &jobs->queue);
    hand_back(jobs, &jobs->files);
    (void)pthread_cond_broadcast(&jobs->wanted);
    wake_ring(jobs);
    bool quiet = await_quiet(jobs, timeout_ns);
    if (!quiet && jobs->serving) {
        jobs->ring_cancel = true;
        wake_ring(jobs);
        quiet = await_quiet(jobs, CANCEL_NS);
    }
    jobs->left_behind = !quiet;
    while (!quiet && jobs->telling > 0) {
        (void)pthread_cond_wait(&jobs->quiet, &jobs->lock);
    }
    bool join = jobs->has_ended;
    jobs->has_ended = false;
    pthread_t last = jobs->ended;
    unlock(jobs);
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
    jzi_assert(is_quiet(jobs) && jobs->queue.count + jobs->files.count == 0);
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
    if (jobs->ring != NULL) {
        jzi_file_ring_close(jobs->ring);
    }
    jzi_free(&alloc, jobs, sizeof *jobs);
}

uint32_t jzi_jobs_threads(jzi_jobs *jobs)
{
    lock(jobs);
    uint32_t threads = jobs->threads;
    unlock(jobs);
    return threads;
}

const char *jzi_jobs_engine(jzi_jobs *jobs)
{
    static const char *const names[] = {"", "", "uring", "threads"};
    lock(jobs);
    const char *name = names[jobs->engine];
    unlock(jobs);
    return name;
}
