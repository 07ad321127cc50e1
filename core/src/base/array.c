#include "base/array.h"

#include "base/alloc.h"
#include "base/assert.h"

size_t jzi_array_cap(size_t cap, size_t first, size_t need, size_t size)
{
    jzi_assert(first > 0 && size > 0);
    size_t most = SIZE_MAX / size;
    size_t enough = cap == 0 ? first : cap;
    while (enough < need && enough <= most / 2) {
        enough *= 2;
    }
    return enough < need || enough > most ? 0 : enough;
}

void *jzi_array_grow(const jzx_allocator *alloc, void *items, size_t *cap, size_t first,
                     size_t need, size_t size)
{
    jzi_assert(need > 0);
    if (need <= *cap) {
        return items;
    }
    size_t more = jzi_array_cap(*cap, first, need, size);
    void *grown = more == 0 ? NULL : jzi_realloc(alloc, items, *cap * size, more * size);
    if (grown != NULL) {
        *cap = more;
    }
    return grown;
}
