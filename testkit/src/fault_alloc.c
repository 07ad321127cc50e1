/* The allocator of jzx_fault. In front of each block is a header that knows its true size:
 *
 *     | size, owner's mark ... 16 or 32 bytes | the block |
 *
 * Nothing is merged or kept back, so that sanitizers see every block for itself. */
#include "fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_LIVE UINT64_C(0x6A617A7A6C697665)
#define BLOCK_DEAD UINT64_C(0x6A617A7A64656164)
#define FILL_NEW 0xA5
#define FILL_FREED 0xDD

typedef union block {
    struct {
        size_t size;
        uint64_t mark;
    } is;
    max_align_t align;
} block;

static void misuse(jzx_fault *fault, const char *what, size_t told, size_t known)
{
    int none = 0;
    if (atomic_compare_exchange_strong(&fault->misused, &none, 1)) {
        (void)snprintf(fault->misuse, sizeof fault->misuse, "%s (told %zu bytes, allocated %zu).",
                       what, told, known);
        atomic_store(&fault->misused, 2);
    }
}

static bool refuse(jzx_fault *fault)
{
    atomic_fetch_add(&fault->allocs, 1);
    uint64_t at = atomic_load(&fault->alloc_at);
    if (at == 0) {
        return false;
    }
    uint64_t seen = atomic_fetch_add(&fault->alloc_seen, 1) + 1;
    bool hit = atomic_load(&fault->alloc_forever) ? seen >= at : seen == at;
    if (hit) {
        atomic_fetch_add(&fault->injected, 1);
    }
    return hit;
}

static void *block_new(jzx_fault *fault, size_t size)
{
    block *b = size > SIZE_MAX - sizeof *b ? NULL : malloc(sizeof *b + size);
    if (b == NULL) {
        return NULL;
    }
    b->is.size = size;
    b->is.mark = BLOCK_LIVE;
    memset(b + 1, FILL_NEW, size);
    atomic_fetch_add(&fault->blocks, 1);
    atomic_fetch_add(&fault->bytes, size);
    return b + 1;
}

/* The block behind ptr, or NULL when it is not ours to touch. */
static block *block_of(jzx_fault *fault, void *ptr, size_t told)
{
    block *b = (block *)ptr - 1;
    if (b->is.mark != BLOCK_LIVE) {
        misuse(fault, "The allocator was given a block that is not its own, or was freed before",
               told, 0);
        return NULL;
    }
    if (b->is.size != told) {
        misuse(fault, "The allocator was told a wrong old_size", told, b->is.size);
    }
    return b;
}

static void block_free(jzx_fault *fault, block *b)
{
    atomic_fetch_sub(&fault->blocks, 1);
    atomic_fetch_sub(&fault->bytes, b->is.size);
    memset(b + 1, FILL_FREED, b->is.size);
    b->is.mark = BLOCK_DEAD;
    free(b);
}

static void *fault_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    jzx_fault *fault = ctx;
    block *old = ptr == NULL ? NULL : block_of(fault, ptr, old_size);
    if (new_size == 0) {
        if (old != NULL) {
            block_free(fault, old);
        }
        return NULL;
    }
    if ((ptr != NULL && old == NULL) || refuse(fault)) {
        return NULL;
    }
    void *fresh = block_new(fault, new_size);
    if (fresh != NULL && old != NULL) {
        memcpy(fresh, ptr, old->is.size < new_size ? old->is.size : new_size);
        block_free(fault, old);
    }
    return fresh;
}

void jzi_fault_alloc_init(jzx_fault *fault)
{
    atomic_init(&fault->allocs, 0);
    atomic_init(&fault->alloc_at, 0);
    atomic_init(&fault->alloc_seen, 0);
    atomic_init(&fault->alloc_forever, false);
    atomic_init(&fault->blocks, 0);
    atomic_init(&fault->bytes, 0);
    atomic_init(&fault->injected, 0);
    atomic_init(&fault->misused, 0);
}

jzx_allocator jzx_fault_allocator(jzx_fault *fault)
{
    return (jzx_allocator){.realloc = fault_realloc, .ctx = fault};
}

void jzx_fault_arm_alloc(jzx_fault *fault, uint64_t n, int forever)
{
    atomic_store(&fault->alloc_at, 0);
    atomic_store(&fault->alloc_seen, 0);
    atomic_store(&fault->alloc_forever, forever != 0);
    atomic_store(&fault->alloc_at, n);
}

uint64_t jzx_fault_allocs(const jzx_fault *fault)
{
    return atomic_load(&fault->allocs);
}

size_t jzx_fault_leaked(const jzx_fault *fault, size_t *out_bytes)
{
    if (out_bytes != NULL) {
        *out_bytes = atomic_load(&fault->bytes);
    }
    return atomic_load(&fault->blocks);
}

const char *jzx_fault_check(const jzx_fault *fault)
{
    return atomic_load(&fault->misused) == 2 ? fault->misuse : NULL;
}
