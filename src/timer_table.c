#include "timer_table.h"

#include "base/alloc.h"

#include <string.h>

#define SLOT_MAX 0xFFFFFFu
enum { CHUNKS_FIRST = 8 };

static size_t chunks_bytes(uint32_t cap)
{
    return sizeof(jzi_timer_chunks) + cap * sizeof(jzi_timer *);
}

void jzi_timer_table_share(jzi_timer_table *table)
{
    table->shared = true;
    (void)pthread_mutex_init(&table->lock, NULL);
}

void jzi_timer_table_deinit(jzi_timer_table *table, const jzx_allocator *alloc)
{
    jzi_timer_chunks *chunks = atomic_load_explicit(&table->chunks, memory_order_relaxed);
    for (uint32_t i = 0; chunks != NULL && i < chunks->count; i++) {
        jzi_free(alloc, chunks->at[i], JZI_TIMER_CHUNK * sizeof(jzi_timer));
    }
    while (chunks != NULL) {
        jzi_timer_chunks *before = chunks->before;
        jzi_free(alloc, chunks, chunks_bytes(chunks->cap));
        chunks = before;
    }
    if (table->shared) {
        (void)pthread_mutex_destroy(&table->lock);
    }
    memset(table, 0, sizeof *table);
}

static jzi_timer_chunks *larger(const jzi_timer_table *table, const jzx_allocator *alloc)
{
    jzi_timer_chunks *before = atomic_load_explicit(&table->chunks, memory_order_relaxed);
    if (before != NULL && before->count < before->cap) {
        return before;
    }
    uint32_t cap = before == NULL ? CHUNKS_FIRST : 2 * before->cap;
    jzi_timer_chunks *chunks = jzi_alloc(alloc, chunks_bytes(cap));
    if (chunks != NULL) {
        chunks->before = before;
        chunks->cap = cap;
        chunks->count = before == NULL ? 0 : before->count;
        if (before != NULL) {
            memcpy(chunks->at, before->at, before->count * sizeof *before->at);
        }
    }
    return chunks;
}

static bool grow(jzi_timer_table *table, const jzx_allocator *alloc)
{
    jzi_timer_chunks *chunks = larger(table, alloc);
    if (chunks == NULL) {
        return false;
    }
    /* release: whoever finds the list finds what is in it. One that has no chunk yet is as good as
     * the one before. */
    atomic_store_explicit(&table->chunks, chunks, memory_order_release);
    jzi_timer *chunk = jzi_alloc(alloc, JZI_TIMER_CHUNK * sizeof *chunk);
    if (chunk == NULL) {
        return false;
    }
    chunks->at[chunks->count++] = table->chunk = chunk;
    return true;
}

static jzi_timer *take_fresh(jzi_timer_table *table, const jzx_allocator *alloc, uint64_t bits)
{
    uint32_t slot = atomic_load_explicit(&table->made, memory_order_relaxed);
    bool new_chunk = (slot & (JZI_TIMER_CHUNK - 1)) == 0;
    if (slot > SLOT_MAX || (new_chunk && !grow(table, alloc))) {
        return NULL;
    }
    return jzi_timer_table_fresh(table, slot, bits);
}

static jzi_timer *pop_far(jzi_timer_table *table)
{
    jzi_timer *timer = table->far_list;
    if (timer != NULL) {
        table->far_list = timer->next;
    }
    return timer;
}

jzi_timer *jzi_timer_table_make(jzi_timer_table *table, const jzx_allocator *alloc)
{
    if (!table->shared) {
        return take_fresh(table, alloc, 0);
    }
    (void)pthread_mutex_lock(&table->lock);
    jzi_timer *timer = pop_far(table);
    if (timer == NULL) {
        timer = take_fresh(table, alloc, 0);
    }
    (void)pthread_mutex_unlock(&table->lock);
    return timer;
}

jzi_timer *jzi_timer_table_take_far(jzi_timer_table *table, const jzx_allocator *alloc)
{
    (void)pthread_mutex_lock(&table->lock);
    jzi_timer *timer = pop_far(table);
    if (timer == NULL) {
        timer = take_fresh(table, alloc, JZI_TIMER_FAR);
    }
    (void)pthread_mutex_unlock(&table->lock);
    return timer;
}

void jzi_timer_table_give_far(jzi_timer_table *table, jzi_timer *timer)
{
    (void)pthread_mutex_lock(&table->lock);
    timer->next = table->far_list;
    table->far_list = timer;
    (void)pthread_mutex_unlock(&table->lock);
}
