/* Goal: the ring of a worker gives every event once, whole and in order, or says how many were
 * overwritten; histograms count each time once. Method: one thread against a plain reference, then
 * a writer against a reader that is slower than it. */
#include "actor/event_ring.h"

#include "base/alloc.h"
#include "support/check.h"

#include <pthread.h>
#include <string.h>

/* Every field follows from the number, so that a mixture shows. */
static jzi_event make(uint64_t n)
{
    return (jzi_event){.time_ns = n * 3,
                       .actor = n * 5,
                       .peer = n * 7,
                       .value = ~n,
                       .tag = (uint32_t)n,
                       .stamp = (uint32_t)(n >> 3),
                       .detail = (uint16_t)n,
                       .what = JZI_RING_HANDLED,
                       .kind = (uint8_t)n,
                       .more = (uint32_t)(n * 11)};
}

static void check_event(const jzi_event *event, uint64_t n)
{
    jzi_event wanted = make(n);
    wanted.seq = n;
    CHECK(memcmp(event, &wanted, sizeof wanted) == 0);
}

static void test_events_come_once_and_in_order(void)
{
    jzx_allocator alloc = jzi_default_allocator();
    jzi_event_ring *event_ring = jzi_event_ring_create(&alloc, 100); /* 128 */
    uint64_t cursor = 0;
    uint64_t lost = 0;
    uint64_t read = 0;
    jzi_event out[40];
    for (uint64_t n = 1; n <= 1000; n++) {
        jzi_event event = make(n);
        jzi_event_ring_write(event_ring, &event);
        if (n % 37 == 0) {
            size_t count = jzi_event_ring_read(event_ring, &cursor, out, 40, &lost);
            for (size_t i = 0; i < count; i++) {
                check_event(&out[i], ++read);
            }
        }
    }
    CHECK(lost == 0 && read >= 950);
    CHECK(jzi_event_ring_newest(event_ring) == 1000);
    jzi_event_ring_destroy(&alloc, event_ring);
}

static void test_a_late_reader_is_told_how_many_it_missed(void)
{
    jzx_allocator alloc = jzi_default_allocator();
    jzi_event_ring *event_ring = jzi_event_ring_create(&alloc, 64);
    for (uint64_t n = 1; n <= 1000; n++) {
        jzi_event event = make(n);
        jzi_event_ring_write(event_ring, &event);
    }
    uint64_t cursor = 0;
    uint64_t lost = 0;
    jzi_event out[100];
    size_t count = jzi_event_ring_read(event_ring, &cursor, out, 100, &lost);
    CHECK(count > 0 && count <= 64 && count + lost == 1000 && cursor == 1000);
    check_event(&out[0], 1000 - count + 1);
    check_event(&out[count - 1], 1000);
    CHECK(jzi_event_ring_read(event_ring, &cursor, out, 100, &lost) == 0);
    jzi_event_ring_destroy(&alloc, event_ring);
}

enum { MANY = 200000 };
static void *write_many(void *arg)
{
    jzi_event_ring *event_ring = arg;
    for (uint64_t n = 1; n <= MANY; n++) {
        jzi_event event = make(n);
        jzi_event_ring_write(event_ring, &event);
    }
    return NULL;
}

static void test_an_event_is_whole_or_lost_while_it_is_written(void)
{
    jzx_allocator alloc = jzi_default_allocator();
    jzi_event_ring *event_ring = jzi_event_ring_create(&alloc, 16);
    pthread_t writer;
    CHECK(pthread_create(&writer, NULL, write_many, event_ring) == 0);
    uint64_t cursor = 0;
    uint64_t lost = 0;
    uint64_t read = 0;
    uint64_t last = 0;
    jzi_event out[8];
    while (cursor < MANY) {
        size_t count = jzi_event_ring_read(event_ring, &cursor, out, 8, &lost);
        for (size_t i = 0; i < count; i++) {
            check_event(&out[i], out[i].seq);
            CHECK(out[i].seq > last);
            last = out[i].seq;
        }
        read += count;
    }
    CHECK(read + lost == MANY);
    (void)pthread_join(writer, NULL);
    jzi_event_ring_destroy(&alloc, event_ring);
}

static void test_a_time_is_counted_in_its_bucket(void)
{
    static const struct {
        uint64_t ns;
        uint32_t bucket;
    } cases[] = {{0, 0},
                 {511, 0},
                 {512, 1},
                 {1023, 1},
                 {1024, 2},
                 {1 << 20, 12},
                 {UINT64_MAX / 4, JZI_TIME_BUCKETS - 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        jzi_histogram histogram = {0};
        jzi_histogram_add(&histogram, cases[i].ns);
        CHECK(jzi_count_get(&histogram.buckets[cases[i].bucket]) == 1);
        CHECK(jzi_count_get(&histogram.sum_ns) == cases[i].ns);
    }
}

static const jzt_test tests[] = {
    {"events_come_once_and_in_order", test_events_come_once_and_in_order},
    {"a_late_reader_is_told_how_many_it_missed", test_a_late_reader_is_told_how_many_it_missed},
    {"an_event_is_whole_or_lost_while_it_is_written",
     test_an_event_is_whole_or_lost_while_it_is_written},
    {"a_time_is_counted_in_its_bucket", test_a_time_is_counted_in_its_bucket},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
