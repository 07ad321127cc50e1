/* What spikes with two threads share: variants that take turns in short rounds, so that noise falls
 * on all of them, and the medians. A spike defines its variants and includes this once. */
#ifndef JZX_SPIKE_ROUNDS_H
#define JZX_SPIKE_ROUNDS_H

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LINE = 64, ROUNDS_MAX = 999, VARIANTS_MAX = 16 };

#define load(p, order) atomic_load_explicit(p, memory_order_##order)
#define store(p, value, order) atomic_store_explicit(p, value, memory_order_##order)
#define cas(p, old, new)                                                                           \
    atomic_compare_exchange_weak_explicit(p, old, new, memory_order_acq_rel, memory_order_acquire)

typedef struct variant {
    const char *name;
    void (*reset)(uint32_t size);
    void (*run)(int me, uint32_t size, uint64_t ops); /* on both threads; ops of both together */
    uint32_t size;
} variant;

static void back_off(unsigned *tries)
{
    if (++*tries <= 64) {
        __builtin_ia32_pause();
    } else {
        sched_yield();
    }
}

static const variant *now;
static uint64_t now_ops;
static pthread_barrier_t start;
static uint64_t begin_ns[2];
static uint64_t end_ns[2];

static uint64_t clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *variant_thread(void *arg)
{
    int me = (int)(intptr_t)arg;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)me, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    pthread_barrier_wait(&start);
    begin_ns[me] = clock_ns();
    now->run(me, now->size, now_ops);
    end_ns[me] = clock_ns();
    return NULL;
}

static double variant_round(const variant *v, uint64_t ops)
{
    pthread_t threads[2];
    now = v;
    now_ops = ops;
    v->reset(v->size);
    pthread_barrier_init(&start, NULL, 2);
    for (intptr_t i = 0; i < 2; i++) {
        if (pthread_create(&threads[i], NULL, variant_thread, (void *)i) != 0) {
            abort();
        }
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&start);
    uint64_t begin = begin_ns[0] < begin_ns[1] ? begin_ns[0] : begin_ns[1];
    uint64_t end = end_ns[0] > end_ns[1] ? end_ns[0] : end_ns[1];
    return (double)(end - begin) / (double)ops;
}

static int compare_ns(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The arguments are rounds and operations per round. */
static int run_rounds(int argc, char **argv, const variant *variants, int count)
{
    static double ns[VARIANTS_MAX][ROUNDS_MAX];
    int rounds = argc > 1 ? atoi(argv[1]) : 11;
    uint64_t ops = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
    if (rounds < 1 || rounds > ROUNDS_MAX || ops == 0 || count > VARIANTS_MAX) {
        fprintf(stderr, "usage: %s ROUNDS(1-999) OPERATIONS\n", argv[0]);
        return 2;
    }
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < count; i++) {
            int turn = (i + r) % count;
            ns[turn][r] = variant_round(&variants[turn], ops);
        }
    }
    for (int i = 0; i < count; i++) {
        qsort(ns[i], (size_t)rounds, sizeof(double), compare_ns);
        printf("%-8s %3u  p10 %7.1f  median %7.1f ns/op\n", variants[i].name, variants[i].size,
               ns[i][rounds / 10], ns[i][rounds / 2]);
    }
    return 0;
}

#endif
