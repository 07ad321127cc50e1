/* The floor between two threads.
 *
 * A runtime may not block a sender and carries a whole message, not an integer. So these rings have
 * 64-byte slots and a push that can refuse; what to do then is the caller's business, as it is for
 * a user of the runtime: try again, and let go of the CPU now and then. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"
#include "sides.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { RING_SLOTS = 1024, RING_MASK = RING_SLOTS - 1, PATIENCE = 64 };

/* Called with a counter that starts at 0: spins first, then yields. */
static void wait_a_bit(uint32_t *tries)
{
    if (*tries < PATIENCE) {
        bench_relax();
    } else {
        sched_yield();
    }
    (*tries)++;
}

typedef struct slot {
    _Atomic uint64_t turn; /* shared rings only: whose move it is */
    uint64_t value;
    uint64_t rest_of_a_message[6];
} slot;
_Static_assert(sizeof(slot) == BENCH_CACHE_LINE, "a slot is a cache line");

/* One producer, one consumer: each keeps a copy of the other's position and looks again only when
 * the copy says full or empty. */
typedef struct pair_ring {
    _Alignas(BENCH_CACHE_LINE) _Atomic uint64_t tail;
    uint64_t head_seen;
    _Alignas(BENCH_CACHE_LINE) _Atomic uint64_t head;
    uint64_t tail_seen;
    _Alignas(BENCH_CACHE_LINE) slot slots[RING_SLOTS];
} pair_ring;

static bool pair_push(pair_ring *ring, uint64_t value)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail - ring->head_seen == RING_SLOTS) {
        ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
        if (tail - ring->head_seen == RING_SLOTS) {
            return false;
        }
    }
    ring->slots[tail & RING_MASK].value = value;
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
    return true;
}

static bool pair_pop(pair_ring *ring, uint64_t *out_value)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (head == ring->tail_seen) {
        ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
        if (head == ring->tail_seen) {
            return false;
        }
    }
    *out_value = ring->slots[head & RING_MASK].value;
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
    return true;
}

static void pair_push_patiently(pair_ring *ring, uint64_t value)
{
    uint32_t tries = 0;
    while (!pair_push(ring, value)) {
        wait_a_bit(&tries);
    }
}

static uint64_t pair_pop_patiently(pair_ring *ring)
{
    uint64_t value = 0;
    uint32_t tries = 0;
    while (!pair_pop(ring, &value)) {
        wait_a_bit(&tries);
    }
    return value;
}

static pair_ring there;
static pair_ring back;

#define NO_MORE UINT64_MAX

static void *echo_thread(void *arg)
{
    (void)arg;
    bench_pin(1 % bench_cpu_count());
    for (;;) {
        uint64_t value = pair_pop_patiently(&there);
        if (value == NO_MORE) {
            return NULL;
        }
        pair_push_patiently(&back, value);
    }
}

void bench_raw_pingpong_2t(const bench_run *run, bench_sample *out)
{
    pthread_t thread;
    uint64_t trips = 0;
    bench_pin(0);
    pthread_create(&thread, NULL, echo_thread, NULL);
    bench_watch watch = bench_start();
    while (trips < run->ops) {
        pair_push_patiently(&there, trips);
        if (pair_pop_patiently(&back) != trips) {
            bench_fail("raw pingpong lost a message");
        }
        trips++;
        if (trips % 1024 == 0 && bench_now_ns() - watch.wall_ns > BENCH_PINGPONG_LIMIT_NS) {
            break;
        }
    }
    bench_stop(watch, trips, out);
    pair_push_patiently(&there, NO_MORE);
    pthread_join(thread, NULL);
}

static void *pair_producer(void *arg)
{
    const bench_run *run = arg;
    bench_pin(1 % bench_cpu_count());
    for (uint64_t i = 0; i < run->ops; i++) {
        pair_push_patiently(&there, 1);
    }
    return NULL;
}

void bench_raw_counting_2t(const bench_run *run, bench_sample *out)
{
    pthread_t thread;
    uint64_t sum = 0;
    bench_pin(0);
    bench_watch watch = bench_start();
    pthread_create(&thread, NULL, pair_producer, (void *)(uintptr_t)run);
    while (sum < run->ops) {
        sum += pair_pop_patiently(&there);
    }
    bench_stop(watch, run->ops, out);
    pthread_join(thread, NULL);
}

/* Made here, ended there, a word back; a batch at a time. */
static void *far_thread(void *arg)
{
    (void)arg;
    bench_pin(1 % bench_cpu_count());
    for (;;) {
        uint64_t value = pair_pop_patiently(&there);
        if (value == NO_MORE) {
            return NULL;
        }
        free((void *)(uintptr_t)value);
        pair_push_patiently(&back, 1);
    }
}

void bench_raw_spawn_far(const bench_run *run, bench_sample *out)
{
    pthread_t thread;
    bench_pin(0);
    pthread_create(&thread, NULL, far_thread, NULL);
    bench_watch watch = bench_start();
    for (uint64_t done = 0; done < run->ops; done += BENCH_BATCH) {
        for (uint32_t i = 0; i < BENCH_BATCH; i++) {
            uint64_t *actor = bench_alloc(1, BENCH_CACHE_LINE);
            *actor = i;
            pair_push_patiently(&there, (uintptr_t)actor);
        }
        for (uint32_t i = 0; i < BENCH_BATCH; i++) {
            (void)pair_pop_patiently(&back);
        }
    }
    bench_stop(watch, run->ops, out);
    pair_push_patiently(&there, NO_MORE);
    pthread_join(thread, NULL);
}

/* Many producers, one consumer. A slot's turn says which side may touch it: equal to a position,
 * the producer that claims that position; one more, the consumer. Refuses when the slot of its
 * position is still unread. */
typedef struct shared_ring {
    _Alignas(BENCH_CACHE_LINE) _Atomic uint64_t tail;
    _Alignas(BENCH_CACHE_LINE) uint64_t head;
    _Alignas(BENCH_CACHE_LINE) slot slots[RING_SLOTS];
} shared_ring;

static shared_ring shared;

static bool shared_push(shared_ring *ring, uint64_t value)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    for (;;) {
        slot *at = &ring->slots[tail & RING_MASK];
        uint64_t turn = atomic_load_explicit(&at->turn, memory_order_acquire);
        if (turn == tail) {
            if (atomic_compare_exchange_weak_explicit(&ring->tail, &tail, tail + 1,
                                                      memory_order_relaxed, memory_order_relaxed)) {
                at->value = value;
                atomic_store_explicit(&at->turn, tail + 1, memory_order_release);
                return true;
            }
        } else if (turn < tail) {
            return false;
        } else {
            tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
        }
    }
}

static bool shared_pop(shared_ring *ring, uint64_t *out_value)
{
    slot *at = &ring->slots[ring->head & RING_MASK];
    if (atomic_load_explicit(&at->turn, memory_order_acquire) != ring->head + 1) {
        return false;
    }
    *out_value = at->value;
    atomic_store_explicit(&at->turn, ring->head + RING_SLOTS, memory_order_release);
    ring->head++;
    return true;
}

static void *shared_producer(void *arg)
{
    const bench_run *run = arg;
    for (uint64_t i = 0; i < run->ops / 2; i++) {
        uint32_t tries = 0;
        while (!shared_push(&shared, 1)) {
            wait_a_bit(&tries);
        }
    }
    return NULL;
}

void bench_raw_counting2p_2t(const bench_run *run, bench_sample *out)
{
    pthread_t threads[2];
    uint64_t sum = 0;
    for (uint64_t i = 0; i < RING_SLOTS; i++) {
        atomic_store_explicit(&shared.slots[i].turn, i, memory_order_relaxed);
    }
    bench_watch watch = bench_start();
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, shared_producer, (void *)(uintptr_t)run);
    }
    while (sum < run->ops / 2 * 2) {
        uint64_t value = 0;
        uint32_t tries = 0;
        while (!shared_pop(&shared, &value)) {
            wait_a_bit(&tries);
        }
        sum += value;
    }
    bench_stop(watch, run->ops, out);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* The same instructions without a second thread: what a foreign send and its delivery cost when no
 * cache line has to travel. */
static void add(uint64_t *sum, uint64_t value)
{
    *sum += value;
}

void bench_raw_async(const bench_run *run, bench_sample *out)
{
    void (*volatile behavior)(uint64_t * sum, uint64_t value) = add;
    uint64_t sum = 0;
    bench_watch watch = bench_start();
    for (uint64_t done = 0; done < run->ops; done += BENCH_BATCH) {
        uint64_t value = 0;
        for (uint32_t i = 0; i < BENCH_BATCH; i++) {
            if (!pair_push(&there, 1)) {
                bench_fail("the raw ring is full");
            }
        }
        while (pair_pop(&there, &value)) {
            behavior(&sum, value);
        }
    }
    bench_stop(watch, run->ops, out);
}

/* A thread that sleeps in epoll until an eventfd is written to. */
typedef struct sleeper {
    const bench_run *run;
    int64_t *latencies;
    int event_fd;
    _Atomic uint64_t sent_ns;
    _Atomic uint64_t woken;
} sleeper;

static void *sleeper_thread(void *arg)
{
    sleeper *self = arg;
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, self->event_fd, &event);
    bench_pin(0);
    for (uint64_t i = 0; i < self->run->ops; i++) {
        uint64_t count = 0;
        if (epoll_wait(epoll_fd, &event, 1, -1) != 1 ||
            read(self->event_fd, &count, sizeof count) != (ssize_t)sizeof count) {
            bench_fail("the raw sleeper woke for nothing");
        }
        uint64_t sent_ns = atomic_load_explicit(&self->sent_ns, memory_order_acquire);
        self->latencies[i] = (int64_t)(bench_now_ns() - sent_ns);
        atomic_store_explicit(&self->woken, i + 1, memory_order_release);
    }
    close(epoll_fd);
    return NULL;
}

void bench_raw_wake(const bench_run *run, bench_sample *out)
{
    sleeper other = {.run = run, .latencies = bench_alloc(run->ops, sizeof(int64_t))};
    const struct timespec pause = {.tv_nsec = 100000}; /* time enough to fall asleep */
    const uint64_t one = 1;
    pthread_t thread;
    other.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bench_pin(1 % bench_cpu_count());
    pthread_create(&thread, NULL, sleeper_thread, &other);
    bench_watch watch = bench_start();
    for (uint64_t i = 0; i < run->ops; i++) {
        nanosleep(&pause, NULL);
        atomic_store_explicit(&other.sent_ns, bench_now_ns(), memory_order_release);
        if (write(other.event_fd, &one, sizeof one) != (ssize_t)sizeof one) {
            bench_fail("the raw wake-up failed");
        }
        while (atomic_load_explicit(&other.woken, memory_order_acquire) != i + 1) {
            sched_yield();
        }
    }
    bench_stop(watch, run->ops, out);
    pthread_join(thread, NULL);
    close(other.event_fd);
    out->latency = bench_latency_of(other.latencies, run->ops);
}
