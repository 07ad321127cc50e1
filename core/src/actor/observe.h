/* Counters and callbacks: the only outlet of the library. The loop's thread writes, any thread may
 * read; hence relaxed atomics that compile to plain loads and stores. */
#ifndef JZI_OBSERVE_H
#define JZI_OBSERVE_H

#include <jzx/observe.h>

#include <stdatomic.h>

typedef _Atomic uint64_t jzi_count;

/* In the order of jzx_counters, so that a snapshot is one loop. What is queued is not kept as a
 * difference that two sides change: lanes are entered on acceptance and left by being handled or in
 * some other way, which `left_lane` counts and dead, revoked or redirected explain. */
typedef struct jzi_counters {
    jzi_count accepted, handled, dead, redirected, revoked, left_lane, in_hand;
    jzi_count dead_by[JZX_REASON_SLOTS];
    jzi_count refused[JZX_REASON_SLOTS];
    jzi_count abandoned, commands, async_sent, async_arrived, spawned, ended, live, timers, refs,
        ticks, turns, polls, wakeups, wakes_sent, failures, restarts, escalations, watches, asks,
        replies, late_replies;
} jzi_counters;
_Static_assert(sizeof(jzi_counters) == sizeof(jzx_counters), "same members, same order");

/* Only the thread that owns the counter calls these. */
static inline void jzi_count_add(jzi_count *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n,
                          memory_order_relaxed);
}
/* release: a thread that sees that no actor is left (jzi_loop_nobody_left) sees what they did. */
static inline void jzi_count_sub(jzi_count *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) - n,
                          memory_order_release);
}
static inline void jzi_count_set(jzi_count *count, uint64_t n)
{
    atomic_store_explicit(count, n, memory_order_relaxed);
}
static inline uint64_t jzi_count_get(const jzi_count *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

/* The sum of several workers' counters. Thread: any. */
void jzi_counters_sum(const jzi_counters *const *all, size_t count, jzx_counters *out);

/* The index under which a refusal is counted. */
jzx_refused_reason jzi_refused_reason(jzx_err err);

typedef struct jzi_observer {
    jzx_observer on;
    void *ctx;
} jzi_observer;

#endif
