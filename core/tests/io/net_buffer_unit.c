/* Goal: bytes come out as they went in, whatever the ring's shape, and an empty one holds no
 * memory. Method: a seeded random walk against a plain queue; allocations are counted and refused.
 */
#include "check.h"

#include "io/net_buffer.h"

#include <stdlib.h>
#include <string.h>

enum { LIMIT = 20000 };

typedef struct memory {
    size_t held;
    int refuse;
} memory;

static void *memory_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    memory *self = ctx;
    if (new_size > 0 && self->refuse) {
        return NULL;
    }
    self->held += new_size - old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

static void test_a_random_walk_keeps_every_byte_in_order(void)
{
    memory mem = {0};
    jzx_allocator alloc = {.realloc = memory_realloc, .ctx = &mem};
    jzi_net_buffer buffer = {0};
    jzt_rng rng = jzt_rng_seeded();
    static unsigned char bytes[LIMIT];
    unsigned in = 0;
    unsigned out = 0;
    for (int step = 0; step < 200000 && jzt_failures() == 0; step++) {
        if (jzt_rng_below(&rng, 2) == 0) {
            size_t len = jzt_rng_below(&rng, jzt_rng_below(&rng, 8) == 0 ? LIMIT : 300);
            len = len < LIMIT - buffer.len ? len : LIMIT - buffer.len;
            for (size_t i = 0; i < len; i++) {
                bytes[i] = (unsigned char)(in + i);
            }
            mem.refuse = jzt_rng_below(&rng, 16) == 0;
            size_t before = buffer.len;
            jzx_err err = jzi_net_buffer_append(&buffer, &alloc, bytes, len, LIMIT);
            if (err == JZX_OK) {
                in += (unsigned)len;
            } else {
                CHECK(mem.refuse);
                CHECK_EQ(buffer.len, before);
            }
        } else if (buffer.len > 0) {
            size_t len;
            const unsigned char *front = jzi_net_buffer_front(&buffer, &len);
            size_t n = 1 + jzt_rng_below(&rng, len);
            for (size_t i = 0; i < n; i++) {
                CHECK_EQ(front[i], (unsigned char)(out + i));
            }
            out += (unsigned)n;
            jzi_net_buffer_consume(&buffer, &alloc, n);
        }
        CHECK_EQ(buffer.len, in - out);
        CHECK(buffer.cap <= LIMIT);
        CHECK_EQ(mem.held, buffer.cap);
        CHECK(buffer.len > 0 || mem.held == 0);
    }
    jzi_net_buffer_clear(&buffer, &alloc);
    CHECK_EQ(mem.held, 0);
}

static const jzt_test tests[] = {
    {"a_random_walk_keeps_every_byte_in_order", test_a_random_walk_keeps_every_byte_in_order},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
