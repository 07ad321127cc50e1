#include "ask_table.h"

#include "base/alloc.h"

void jzi_ask_table_init(jzi_ask_table *table)
{
    (void)pthread_mutex_init(&table->lock, NULL);
}

static size_t chunk_bytes(const jzi_ask_table *table, uint32_t chunk)
{
    return ((size_t)1 << (JZI_ASK_FIRST_SHIFT + chunk)) * table->slot_bytes;
}

void jzi_ask_table_deinit(jzi_ask_table *table, const jzx_allocator *alloc)
{
    for (uint32_t i = 0; i < table->chunk_count; i++) {
        jzi_free(alloc, atomic_load_explicit(&table->chunks[i], memory_order_relaxed),
                 chunk_bytes(table, i));
    }
    (void)pthread_mutex_destroy(&table->lock);
}

unsigned char *jzi_ask_table_grow(jzi_ask_table *table, const jzx_allocator *alloc,
                                  uint32_t *out_first, uint32_t *out_count)
{
    uint32_t chunk = table->chunk_count;
    if (chunk == JZI_ASK_CHUNKS) {
        return NULL;
    }
    unsigned char *slots = jzi_alloc_zeroed(alloc, chunk_bytes(table, chunk));
    if (slots == NULL) {
        return NULL;
    }
    *out_count = 1u << (JZI_ASK_FIRST_SHIFT + chunk);
    *out_first = *out_count - (1u << JZI_ASK_FIRST_SHIFT);
    table->chunk_count++;
    return slots;
}
