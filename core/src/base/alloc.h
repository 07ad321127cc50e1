/* Every byte the library owns comes through here, from the system's one allocator (R36). */
#ifndef JZI_ALLOC_H
#define JZI_ALLOC_H

#include <jzx/types.h>

/* malloc and friends, used when the config names no allocator. */
jzx_allocator jzi_default_allocator(void);

/* NULL when there is no memory. The contents are undefined. */
static inline void *jzi_alloc(const jzx_allocator *alloc, size_t size)
{
    return alloc->realloc(alloc->ctx, NULL, 0, size);
}

/* The same, zeroed. */
void *jzi_alloc_zeroed(const jzx_allocator *alloc, size_t size);

/* ptr may be NULL; size is what it was allocated with. */
static inline void jzi_free(const jzx_allocator *alloc, void *ptr, size_t size)
{
    if (ptr != NULL) {
        (void)alloc->realloc(alloc->ctx, ptr, size, 0);
    }
}

/* Grows or shrinks; on NULL nothing changed. */
static inline void *jzi_realloc(const jzx_allocator *alloc, void *ptr, size_t old_size,
                                size_t new_size)
{
    return alloc->realloc(alloc->ctx, ptr, old_size, new_size);
}

/* Copies a caller-made struct of `given` bytes into one of `known` bytes (R36). A shorter one is
 * completed with zeros; a longer one is taken only if what we do not know is zero.
 * Errors: JZX_ERR_NEWER_STRUCT. */
jzx_err jzi_struct_adopt(void *out, size_t known, const void *given_struct, size_t given);

#endif
