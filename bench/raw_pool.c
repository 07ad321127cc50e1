/* The floor of a pool: one queue under a mutex, two threads that take from it, a condition that
 * wakes them. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"
#include "sides.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* Jobs are when they were sent, in ns; 0 is the one that sleeps. */
typedef struct queue {
    pthread_mutex_t lock;
    pthread_cond_t more;
    uint64_t *jobs;
    uint64_t head;
    uint64_t tail;
    uint64_t to_take; /* jobs that no thread has taken yet, queued or not */
    uint64_t count;
    uint32_t sleep_ms;
    int64_t *waits;
    _Atomic uint64_t waits_count;
} queue;

static void put(queue *all, uint64_t job)
{
    pthread_mutex_lock(&all->lock);
    all->jobs[all->tail] = job;
    all->tail++;
    pthread_cond_signal(&all->more);
    pthread_mutex_unlock(&all->lock);
}

static bool take(queue *all, uint64_t *out_job)
{
    pthread_mutex_lock(&all->lock);
    while (all->head == all->tail && all->to_take > 0) {
        pthread_cond_wait(&all->more, &all->lock);
    }
    bool found = all->to_take > 0;
    if (found) {
        *out_job = all->jobs[all->head];
        all->head++;
        all->to_take--;
    }
    if (all->to_take == 0) {
        pthread_cond_broadcast(&all->more);
    }
    pthread_mutex_unlock(&all->lock);
    return found;
}

/* The sleeper sends the first half of the messages before it falls asleep. */
static void sleep_after_sending(queue *all)
{
    const struct timespec nap = {.tv_sec = all->sleep_ms / 1000,
                                 .tv_nsec = (long)(all->sleep_ms % 1000) * 1000000};
    for (uint64_t i = 0; i < all->count / 2; i++) {
        put(all, bench_now_ns());
    }
    nanosleep(&nap, NULL);
}

static void *work(void *arg)
{
    queue *all = arg;
    uint64_t job = 0;
    while (take(all, &job)) {
        if (job == 0) {
            sleep_after_sending(all);
            continue;
        }
        uint64_t at = atomic_fetch_add_explicit(&all->waits_count, 1, memory_order_relaxed);
        all->waits[at] = (int64_t)(bench_now_ns() - job);
    }
    return NULL;
}

void bench_raw_rescue(const bench_run *run, bench_sample *out)
{
    queue all = {.jobs = bench_alloc(run->ops + 1, sizeof(uint64_t)),
                 .waits = bench_alloc(run->ops, sizeof(int64_t)),
                 .count = run->ops,
                 .to_take = run->ops + 1,
                 .sleep_ms = run->timer_ms};
    uint64_t later = run->ops - run->ops / 2;
    const struct timespec pause = {.tv_nsec = (long)run->timer_ms * 1000000 / (long)(later + 1)};
    pthread_t threads[2];
    pthread_mutex_init(&all.lock, NULL);
    pthread_cond_init(&all.more, NULL);
    bench_watch watch = bench_start();
    put(&all, 0);
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, work, &all);
    }
    for (uint64_t i = 0; i < later; i++) {
        nanosleep(&pause, NULL);
        put(&all, bench_now_ns());
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    bench_stop(watch, run->ops, out);
    out->latency = bench_latency_of(all.waits, run->ops);
    free(all.jobs);
    free(all.waits);
}

/* A thread that runs the job it is handed, while the thread that handed the job over waits. */
typedef struct desk {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void *(*job)(void *arg); /* NULL: none */
    bool closing;
} desk;

static void *empty_job(void *arg)
{
    return arg;
}

static void *run_jobs(void *arg)
{
    desk *self = arg;
    pthread_mutex_lock(&self->lock);
    for (;;) {
        while (self->job == NULL && !self->closing) {
            pthread_cond_wait(&self->changed, &self->lock);
        }
        if (self->job == NULL) {
            break;
        }
        pthread_mutex_unlock(&self->lock);
        (void)self->job(NULL);
        pthread_mutex_lock(&self->lock);
        self->job = NULL;
        pthread_cond_broadcast(&self->changed);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

void bench_raw_blocking(const bench_run *run, bench_sample *out)
{
    desk other = {0};
    pthread_t thread;
    pthread_mutex_init(&other.lock, NULL);
    pthread_cond_init(&other.changed, NULL);
    pthread_create(&thread, NULL, run_jobs, &other);
    bench_watch watch = bench_start();
    pthread_mutex_lock(&other.lock);
    for (uint64_t i = 0; i < run->ops; i++) {
        other.job = empty_job;
        pthread_cond_broadcast(&other.changed);
        while (other.job != NULL) {
            pthread_cond_wait(&other.changed, &other.lock);
        }
    }
    bench_stop(watch, run->ops, out);
    other.closing = true;
    pthread_cond_broadcast(&other.changed);
    pthread_mutex_unlock(&other.lock);
    pthread_join(thread, NULL);
}
