/* The floor on one thread: one ring of {to, from, value}, and an indirect call per message. Each
 * file that includes it has a ring of its own. */
#ifndef JZX_BENCH_RAW_RING_H
#define JZX_BENCH_RAW_RING_H

#include "bench.h"

#include <string.h>

typedef struct raw_actor raw_actor;
typedef void (*raw_behavior)(raw_actor *self, raw_actor *from, int64_t value);

struct raw_actor {
    raw_behavior behavior;
    raw_actor *peer;
    int64_t left;
    uint32_t random;
};

typedef struct raw_message {
    raw_actor *to;
    raw_actor *from;
    int64_t value;
} raw_message;

static raw_message *ring;
static uint64_t ring_mask;
static uint64_t ring_head;
static uint64_t ring_tail;
static bool running;

static inline void ring_open(uint64_t capacity)
{
    ring = bench_alloc(capacity, sizeof *ring);
    memset(ring, 0, capacity * sizeof *ring);
    ring_mask = capacity - 1;
    ring_head = 0;
    ring_tail = 0;
}

static inline void post(raw_actor *to, raw_actor *from, int64_t value)
{
    if (__builtin_expect(ring_tail - ring_head > ring_mask, 0)) {
        bench_fail("the raw ring is full");
    }
    ring[ring_tail & ring_mask] = (raw_message){to, from, value};
    ring_tail++;
}

static __attribute__((noinline)) void run_until_stopped(void)
{
    running = true;
    while (running && ring_head != ring_tail) {
        raw_message message = ring[ring_head & ring_mask];
        ring_head++;
        message.to->behavior(message.to, message.from, message.value);
    }
}

#endif
