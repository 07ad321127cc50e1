#include "actor/event_ring.h"

#include "base/alloc.h"

#include <string.h>

static const char *const names[JZI_RING_WHATS] = {
    "none", "spawn", "start", "end",   "fail", "restart", "escalate", "dead", "full",
    "stop", "kill",  "timer", "sleep", "wake", "overrun", "handled",  "sent",
};

const char *jzi_event_what_name(uint32_t what)
{
    return what < JZI_RING_WHATS ? names[what] : "unknown";
}

jzi_event_ring *jzi_event_ring_create(const jzx_allocator *alloc, uint32_t events)
{
    uint32_t count = 16;
    while (count < events && count < (1u << 20)) {
        count *= 2;
    }
    size_t bytes = sizeof(jzi_event_ring) + (size_t)count * JZI_RING_WORDS * sizeof(uint64_t);
    jzi_event_ring *event_ring = jzi_alloc_zeroed(alloc, bytes);
    if (event_ring != NULL) {
        event_ring->mask = count - 1;
        event_ring->bytes = bytes;
        event_ring->until_timed = JZI_TIMED_TURNS;
        event_ring->share = 1; /* until it is known how much there is to do */
    }
    return event_ring;
}

void jzi_event_ring_destroy(const jzx_allocator *alloc, jzi_event_ring *event_ring)
{
    if (event_ring != NULL) {
        jzi_free(alloc, event_ring, event_ring->bytes);
    }
}

void jzi_event_ring_write(jzi_event_ring *event_ring, const jzi_event *event)
{
    uint64_t seq = jzi_count_get(&event_ring->written) + 1;
    _Atomic uint64_t *at = &event_ring->ring[(seq & event_ring->mask) * JZI_RING_WORDS];
    uint64_t words[JZI_RING_WORDS];
    memcpy(words, event, sizeof words);
    /* Readers see: no number, or this one and then all of it. Each word is released after the
     * cleared number and acquired by the reader, so that a word of this event means that the old
     * number is gone. */
    atomic_store_explicit(&at[0], 0, memory_order_relaxed);
    for (size_t i = 1; i < JZI_RING_WORDS; i++) {
        atomic_store_explicit(&at[i], words[i], memory_order_release);
    }
    atomic_store_explicit(&at[0], seq, memory_order_release);
    /* release: a reader that sees the count finds the event. */
    atomic_store_explicit(&event_ring->written, seq, memory_order_release);
}

/* False: the event was overwritten. */
static bool copy(const jzi_event_ring *event_ring, uint64_t seq, jzi_event *out)
{
    const _Atomic uint64_t *at = &event_ring->ring[(seq & event_ring->mask) * JZI_RING_WORDS];
    uint64_t words[JZI_RING_WORDS];
    words[0] = atomic_load_explicit(&at[0], memory_order_acquire);
    for (size_t i = 1; i < JZI_RING_WORDS; i++) {
        words[i] = atomic_load_explicit(&at[i], memory_order_acquire);
    }
    if (words[0] != seq || atomic_load_explicit(&at[0], memory_order_relaxed) != seq) {
        return false;
    }
    memcpy(out, words, sizeof *out);
    return true;
}

size_t jzi_event_ring_read(const jzi_event_ring *event_ring, uint64_t *cursor, jzi_event *out,
                           size_t cap, uint64_t *out_lost)
{
    size_t count = 0;
    uint64_t newest = jzi_event_ring_newest(event_ring);
    while (count < cap && *cursor < newest) {
        uint64_t oldest = newest > event_ring->mask ? newest - event_ring->mask : 1;
        if (*cursor + 1 < oldest) {
            *out_lost += oldest - 1 - *cursor;
            *cursor = oldest - 1;
        }
        if (copy(event_ring, *cursor + 1, &out[count])) {
            count++;
        } else {
            *out_lost += 1;
        }
        *cursor += 1;
        newest = jzi_event_ring_newest(event_ring);
    }
    return count;
}

void jzi_histogram_add(jzi_histogram *histogram, uint64_t ns)
{
    uint64_t above = ns >> JZI_TIME_FIRST;
    uint32_t bucket = above == 0 ? 0 : 64u - (uint32_t)__builtin_clzll(above);
    bucket = bucket < JZI_TIME_BUCKETS ? bucket : JZI_TIME_BUCKETS - 1;
    jzi_count_add(&histogram->buckets[bucket], 1);
    jzi_count_add(&histogram->sum_ns, ns);
}

void jzi_histogram_merge(jzi_histogram *histogram, const jzi_histogram *other)
{
    for (uint32_t i = 0; i < JZI_TIME_BUCKETS; i++) {
        jzi_count_add(&histogram->buckets[i], jzi_count_get(&other->buckets[i]));
    }
    jzi_count_add(&histogram->sum_ns, jzi_count_get(&other->sum_ns));
}
