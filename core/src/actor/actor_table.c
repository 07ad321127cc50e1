#include "actor/actor_table.h"

#include "base/alloc.h"
#include "base/assert.h"

/* A table that has grown past this many chunks takes memory in slabs of sixteen: 2 MiB, which the
 * kernel can back with one huge page. */
enum { SMALL_CHUNKS = 16, SLAB_CHUNKS = 16, LINE = 64 };

jzx_err jzi_actor_table_init(jzi_actor_table *table, const jzx_allocator *alloc, uint32_t max_slots,
                             uint32_t salt)
{
    uint32_t chunk_count = (max_slots + JZI_CHUNK_SLOTS - 1) >> JZI_CHUNK_SHIFT;
    *table = (jzi_actor_table){
        .max_slots = max_slots,
        .free_head = JZI_NO_SLOT,
        .first_generation = (salt & 0x3FFFFFFFu) | 1u,
    };
    table->chunks = jzi_alloc_zeroed(alloc, chunk_count * sizeof *table->chunks);
    return table->chunks == NULL ? JZX_ERR_NO_MEMORY : JZX_OK;
}

void jzi_actor_table_deinit(jzi_actor_table *table, const jzx_allocator *alloc)
{
    while (table->slabs != NULL) {
        jzi_slab *slab = table->slabs;
        table->slabs = slab->next;
        jzi_free(alloc, slab, slab->bytes);
    }
    uint32_t chunk_count = (table->max_slots + JZI_CHUNK_SLOTS - 1) >> JZI_CHUNK_SHIFT;
    if (table->shared) {
        (void)pthread_mutex_destroy(&table->lock);
    }
    jzi_free(alloc, table->chunks, chunk_count * sizeof *table->chunks);
    *table = (jzi_actor_table){0};
}

static bool actor_table_grow(jzi_actor_table *table, const jzx_allocator *alloc)
{
    uint32_t have = table->chunk_slots >> JZI_CHUNK_SHIFT;
    uint32_t limit = (table->max_slots + JZI_CHUNK_SLOTS - 1) >> JZI_CHUNK_SHIFT;
    uint32_t count = have < SMALL_CHUNKS ? 1 : SLAB_CHUNKS;
    if (count > limit - have) {
        count = limit - have;
    }
    size_t bytes = sizeof(jzi_slab) + LINE + (size_t)count * JZI_CHUNK_SLOTS * sizeof(jzi_actor);
    jzi_slab *slab = jzi_alloc(alloc, bytes);
    if (slab == NULL) {
        return false;
    }
    *slab = (jzi_slab){.next = table->slabs, .bytes = bytes};
    table->slabs = slab;
    uintptr_t first = ((uintptr_t)(slab + 1) + LINE - 1) & ~(uintptr_t)(LINE - 1);
    for (uint32_t i = 0; i < count; i++) {
        jzi_actor *chunk = (jzi_actor *)first + (size_t)i * JZI_CHUNK_SLOTS;
        atomic_store_explicit(&table->chunks[have + i], chunk, memory_order_relaxed);
    }
    table->chunk_slots += count << JZI_CHUNK_SHIFT;
    return true;
}

/* A slot that no actor had before. */
static jzx_err take_fresh(jzi_actor_table *table, const jzx_allocator *alloc, jzi_actor **out_actor)
{
    uint32_t slot = atomic_load_explicit(&table->made, memory_order_relaxed);
    if (slot >= table->max_slots) {
        return JZX_ERR_MAX_ACTORS;
    }
    if (slot == table->chunk_slots && !actor_table_grow(table, alloc)) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_actor *chunk =
        atomic_load_explicit(&table->chunks[slot >> JZI_CHUNK_SHIFT], memory_order_relaxed);
    jzi_actor *actor = chunk + (slot & (JZI_CHUNK_SLOTS - 1));
    uint64_t gate = jzi_gate_make(table->first_generation - 1) | JZI_GATE_CLOSED;
    atomic_init(&actor->door.gate, gate);
    atomic_init(&actor->door.cap, 0);
    atomic_init(&actor->door.link, 0);
    atomic_init(&actor->counts, 0);
    actor->id = table->base | slot;
    actor->type = NULL;
    /* release: a thread that sees the new count sees the chunk and the gate. */
    atomic_store_explicit(&table->made, slot + 1, memory_order_release);
    *out_actor = actor;
    return JZX_OK;
}

static __attribute__((noinline)) jzx_err
take_locked(jzi_actor_table *table, const jzx_allocator *alloc, jzi_actor **out_actor)
{
    (void)pthread_mutex_lock(&table->lock);
    jzx_err err = take_fresh(table, alloc, out_actor);
    (void)pthread_mutex_unlock(&table->lock);
    return err;
}

jzx_err jzi_actor_table_take(jzi_actor_table *table, const jzx_allocator *alloc,
                             jzi_actor **out_actor)
{
    if (table->free_head != JZI_NO_SLOT) {
        jzi_actor *actor = jzi_actor_table_slot(table, table->free_head);
        table->free_head = actor->next_free;
        *out_actor = actor;
        return JZX_OK;
    }
    return table->shared ? take_locked(table, alloc, out_actor)
                         : take_fresh(table, alloc, out_actor);
}

void jzi_actor_table_share(jzi_actor_table *table, uint32_t base)
{
    table->shared = true;
    table->base = base;
    table->nursery = JZI_NO_SLOT;
    (void)pthread_mutex_init(&table->lock, NULL);
}

jzx_err jzi_actor_table_take_far(jzi_actor_table *table, const jzx_allocator *alloc,
                                 jzi_actor **out_actor)
{
    jzx_err err = JZX_OK;
    (void)pthread_mutex_lock(&table->lock);
    if (table->nursery != JZI_NO_SLOT) {
        *out_actor = jzi_actor_table_at(table, table->nursery);
        table->nursery = (*out_actor)->next_free;
    } else {
        err = take_fresh(table, alloc, out_actor);
    }
    (void)pthread_mutex_unlock(&table->lock);
    if (err == JZX_OK) {
        atomic_fetch_add_explicit(&table->debt, 1, memory_order_relaxed);
    }
    return err;
}
void jzi_actor_table_give_far(jzi_actor_table *table, jzi_actor *actor)
{
    (void)pthread_mutex_lock(&table->lock);
    actor->next_free = table->nursery;
    table->nursery = jzi_actor_slot(actor);
    (void)pthread_mutex_unlock(&table->lock);
    atomic_fetch_sub_explicit(&table->debt, 1, memory_order_relaxed);
}

/* Gives the slot to the nursery, if other threads took more slots than came back. */
static __attribute__((noinline)) bool give_shared(jzi_actor_table *table, jzi_actor *actor)
{
    if (atomic_load_explicit(&table->debt, memory_order_relaxed) == 0) {
        return false;
    }
    jzi_actor_table_give_far(table, actor);
    return true;
}

void jzi_actor_table_give(jzi_actor_table *table, jzi_actor *actor)
{
    uint64_t gate = jzi_actor_gate(actor);
    jzi_debug_assert(jzi_gate_is_free(gate));
    if (jzi_gate_generation(gate) == UINT32_MAX) {
        table->retired++;
        return;
    }
    if (jzi_unlikely(table->shared) && give_shared(table, actor)) {
        return;
    }
    actor->next_free = table->free_head;
    table->free_head = jzi_actor_slot(actor);
}
