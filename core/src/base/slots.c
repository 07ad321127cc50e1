#include "base/slots.h"

#include "base/alloc.h"

#include <string.h>

void jzi_slots_init(jzi_slots *slots)
{
    (void)pthread_mutex_init(&slots->lock, NULL);
}

static size_t chunk_bytes(uint32_t chunk, uint32_t bytes)
{
    return ((size_t)1 << (JZI_SLOTS_SHIFT + chunk)) * bytes;
}

void jzi_slots_deinit(jzi_slots *slots, const jzx_allocator *alloc)
{
    for (uint32_t i = 0; i < slots->chunk_count; i++) {
        jzi_free(alloc, atomic_load_explicit(&slots->chunks[i], memory_order_relaxed),
                 chunk_bytes(i, slots->bytes));
    }
    (void)pthread_mutex_destroy(&slots->lock);
    memset(slots, 0, sizeof *slots);
}

bool jzi_slots_grow(jzi_slots *slots, const jzx_allocator *alloc, uint32_t bytes)
{
    uint32_t chunk = slots->chunk_count;
    if (chunk == JZI_SLOTS_CHUNKS) {
        return false;
    }
    unsigned char *made = jzi_alloc(alloc, chunk_bytes(chunk, bytes));
    if (made == NULL) {
        return false;
    }
    slots->bytes = bytes;
    slots->chunk_count++;
    slots->next = made;
    slots->end = made + chunk_bytes(chunk, bytes);
    /* release: a thread with a number of the chunk finds it. */
    atomic_store_explicit(&slots->chunks[chunk], made, memory_order_release);
    return true;
}
