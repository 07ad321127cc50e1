#include "memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *mfi_alloc(size_t size)
{
    return malloc(size);
}

void *mfi_alloc_zeroed(size_t count, size_t size)
{
    return calloc(count, size);
}

void *mfi_alloc_aligned(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

void *mfi_realloc(void *ptr, size_t size)
{
    return realloc(ptr, size);
}

void mfi_free(void *ptr)
{
    free(ptr);
}

void *mfi_array_grow(void *items, size_t *cap, size_t first, size_t count, size_t size)
{
    if (count < *cap) {
        return items;
    }
    if (*cap > SIZE_MAX / 2 / size) {
        return NULL;
    }
    size_t more = *cap == 0 ? first : *cap * 2;
    void *grown = realloc(items, more * size);
    if (grown != NULL) {
        *cap = more;
    }
    return grown;
}

char *mfi_copy_text(const char *text, size_t len)
{
    char *copy = malloc(len + 1);
    if (copy != NULL) {
        memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}
