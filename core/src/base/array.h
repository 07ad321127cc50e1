/* Arrays that grow by doubling, so that n additions copy at most 2 n items. */
#ifndef JZI_ARRAY_H
#define JZI_ARRAY_H

#include <jzx/types.h>

/* The capacity that is enough for `need`: `cap` (or `first`, if that is 0) doubled as often as it
 * takes. 0: there is no such number, or so many items of `size` bytes are more than memory can
 * have. */
size_t jzi_array_cap(size_t cap, size_t first, size_t need, size_t size);

/* Moves an array of *cap items into one with room for `need`, and sets *cap. The old pointer is
 * gone then; the new items are undefined. An array that is large enough stays. NULL: no memory;
 * nothing changed. need is not 0. */
void *jzi_array_grow(const jzx_allocator *alloc, void *items, size_t *cap, size_t first,
                     size_t need, size_t size);

#endif
